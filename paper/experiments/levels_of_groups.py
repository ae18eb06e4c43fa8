"""Levels of the test of groups: every design, the design ignored, and a tolerance at its edge."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from muhat import Gaussian, GroupTest, mmd
from paper._arrays import Array
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank
from paper._tables import column, markdown, where
from paper.experiments.levels_of_tests import decimal_z, largest_expected, note_of_size

LEVEL = 0.05

Grouped = tuple[Array, Array, dict[str, Array]]
"""Rows, their groups, and the design."""

Draw = Callable[[np.random.Generator], Grouped]


def _balanced(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(40, 2)), np.repeat(np.arange(4), 10), {}


def _unbalanced(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(50, 2)), np.repeat(np.arange(3), [3, 12, 35]), {}


def _heavy_tails(rng: np.random.Generator) -> Grouped:
    return rng.standard_cauchy((40, 2)), np.repeat(np.arange(4), 10), {}


def _ties(rng: np.random.Generator) -> Grouped:
    return rng.integers(3, size=(40, 2)).astype(float), np.repeat(np.arange(4), 10), {}


def _twos(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(40, 2)), np.repeat(np.arange(20), 2), {}


def _ones(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(40, 2)), np.r_[np.arange(10), np.repeat([10, 11], 15)], {}


def _landmarks(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(700, 2)), np.repeat(np.arange(5), 140), {}


def _bins(rng: np.random.Generator) -> Grouped:
    return rng.normal(size=(1503, 2)), np.repeat(np.arange(4), [150, 350, 450, 553]), {}


def _strata(rng: np.random.Generator) -> Grouped:
    """Two sites that differ, with unequal shares of the groups."""
    site = np.repeat([0, 1], 24)
    first, second = np.repeat([0, 1, 2], [16, 4, 4]), np.repeat([0, 1, 2], [4, 4, 16])
    groups = np.r_[rng.permutation(first), rng.permutation(second)]
    return rng.normal(size=(48, 2)) + 1.5 * site[:, None], groups, {"strata": site}


def _clusters(rng: np.random.Generator) -> Grouped:
    """Repeated measures: twelve units in three groups, six rows each that are like each other."""
    unit = np.repeat(np.arange(12), 6)
    X = rng.normal(size=(12, 2))[unit] + 0.7 * rng.normal(size=(72, 2))
    return X, unit % 3, {"clusters": unit}


def _unequal_clusters(rng: np.random.Generator) -> Grouped:
    """The same with one to ten rows of each unit."""
    unit = np.repeat(np.arange(12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3, 5])
    X = rng.normal(size=(12, 2))[unit] + 0.7 * rng.normal(size=(len(unit), 2))
    return X, unit % 3, {"clusters": unit}


def _spread_clusters(rng: np.random.Generator) -> Grouped:
    """Twenty-four units of five rows, and a group of four units of one or twenty-five rows."""
    unit = np.repeat(np.arange(28), [*[5] * 24, *[1, 25] * 2])
    X = rng.normal(size=(28, 2))[unit] + 0.7 * rng.normal(size=(len(unit), 2))
    return X, (unit >= 24).astype(int), {"clusters": unit}


def _pairs(rng: np.random.Generator) -> Grouped:
    """Fifteen units that differ, each measured in all three groups."""
    unit = np.repeat(np.arange(15), 3)
    X = 2 * rng.normal(size=(15, 2))[unit] + rng.normal(size=(45, 2))
    return X, np.tile(np.arange(3), 15), {"pairs": unit}


def _clusters_in_strata(rng: np.random.Generator) -> Grouped:
    """Two sites that differ, eight units each of four rows, groups unequal by site."""
    unit = np.repeat(np.arange(16), 4)
    of_unit = np.r_[rng.permutation([0] * 6 + [1] * 2), rng.permutation([0] * 2 + [1] * 6)]
    X = rng.normal(size=(16, 2))[unit] + 0.7 * rng.normal(size=(64, 2))
    X += 1.5 * (unit >= 8)[:, None]
    return X, of_unit[unit], {"clusters": unit, "strata": unit // 8}


DESIGNS: dict[str, Draw] = {
    "balanced: 4 groups of 10": _balanced,
    "unbalanced: 3, 12, 35": _unbalanced,
    "Cauchy": _heavy_tails,
    "ties: 3 × 3 values": _ties,
    "20 groups of 2": _twos,
    "10 groups of 1, 2 of 15": _ones,
    "strata: 2 sites that differ": _strata,
    "clusters: repeated measures": _clusters,
    "clusters of 1 to 10 rows": _unequal_clusters,
    "clusters of 5 rows, of 1 or 25": _spread_clusters,
    "pairs: 15 units, 3 groups": _pairs,
    "clusters in strata": _clusters_in_strata,
    "700 rows: landmarks": _landmarks,
    "1,503 rows: landmarks and bins": _bins,
}
"""Groups that are alike under their design."""

IGNORED = (
    "strata: 2 sites that differ",
    "clusters: repeated measures",
    "clusters of 1 to 10 rows",
    "pairs: 15 units, 3 groups",
    "clusters in strata",
)
"""Designs that are left out, too, to see what that does."""

FEW_KERNELS: dict[str, Any] = {"kernel": "gaussian", "bandwidths": 3}


def _shift(shift: float, columns: int) -> Callable[[np.random.Generator, int, int], Array]:
    def draw(rng: np.random.Generator, n: int, m: int) -> Array:
        X = rng.normal(size=(n + m, columns))
        X[:n, 0] += shift
        return X

    return draw


def _scale(factor: float) -> Callable[[np.random.Generator, int, int], Array]:
    def draw(rng: np.random.Generator, n: int, m: int) -> Array:
        X = rng.normal(size=(n + m, 2))
        X[:n] *= factor
        return X

    return draw


def _exponential(factor: float) -> Callable[[np.random.Generator, int, int], Array]:
    def draw(rng: np.random.Generator, n: int, m: int) -> Array:
        X = rng.exponential(size=(n + m, 2))
        X[:n] *= factor
        return X

    return draw


LAWS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "shift by 0.3, d = 2": _shift(0.3, 2),
    "shift by 1, d = 2": _shift(1.0, 2),
    "shift by 1, d = 10": _shift(1.0, 10),
    "scale × 1.5, d = 2": _scale(1.5),
    "exponential × 2, d = 2": _exponential(2.0),
}
"""Two groups that differ; the tolerance is as large as their distance."""

SIZES = ((10, 100), (100, 10), (20, 20), (200, 200))

LARGE = 2000
"""Rows of a sample from which the distance of two laws is estimated without bias."""


def settings(quick: bool) -> Settings:
    """Return the cells, and the numbers of draws and permutations."""
    cells = []
    for name in DESIGNS:
        cells.append(["design", name, "given"])
    for name in IGNORED:
        cells.append(["design", name, "ignored"])
    for law in LAWS:
        for n, m in SIZES:
            cells.append(["tolerance", law, f"{n}, {m}"])
    if quick:
        cells = [*cells[:2], *cells[7:8], *cells[15:16], *cells[19:21]]
    chosen: Settings = {
        "seed": 24,
        "draws": {"design": 1000, "tolerance": 500},
        "n_permutations": {"design": 19, "tolerance": 99},
        "blocks": 4,
        "large": LARGE,
        "cells": cells,
    }
    if quick:
        chosen |= {"draws": {"design": 2, "tolerance": 2}, "blocks": 1, "large": 60}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each cell."""
    found = []
    for block in range(settings["blocks"]):
        for number, (kind, _, _) in enumerate(settings["cells"]):
            size = settings["draws"][kind] // settings["blocks"]
            found.append({"cell": number, "first": block * size, "last": (block + 1) * size})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how many of a block of draws were rejected; cells share no draws."""
    kind, name, how = settings["cells"][task["cell"]]
    row: Row = {"cell": task["cell"], "draws": task["last"] - task["first"]}
    if kind == "design":
        return [{**row, **_of_design(settings, task, name, how)}]
    return [{**row, **_of_tolerance(settings, task, name, how)}]


def _of_design(settings: Settings, task: Task, name: str, how: str) -> Row:
    """Return rejections of all groups together, of any group, pair or column; the smallest p."""
    n_all = n_groups = n_pairs = n_columns = 0
    smallest = 1.0
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], task["cell"], number])
        X, groups, design = DESIGNS[name](rng)
        if how == "ignored":
            design = {}
        test = GroupTest(
            **FEW_KERNELS,
            n_permutations=settings["n_permutations"]["design"],
            random_state=int(rng.integers(2**31)),
            n_jobs=1,
        )
        found = test.test(X, groups, **design)
        n_all += found.p_value <= LEVEL + 1e-9
        n_groups += found.groups[0].p_value <= LEVEL + 1e-9
        n_pairs += min(each.p_value for each in found.pairs) <= LEVEL + 1e-9
        n_columns += found.features[0].p_value <= LEVEL + 1e-9
        smallest = min(smallest, found.p_value, found.groups[0].p_value)
    return {
        "rejected": n_all,
        "groups": n_groups,
        "pairs": n_pairs,
        "columns": n_columns,
        "smallest": smallest,
    }


def _of_tolerance(settings: Settings, task: Task, law: str, sizes: str) -> Row:
    """Return rejections at the tolerance, and at half of it; the smallest p-value."""
    n, m = map(int, sizes.split(", "))
    delta = _distance(law, n / (n + m), settings["large"])
    at_edge = beyond = 0
    smallest = 1.0
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], task["cell"], number])
        X = LAWS[law](rng, n, m)
        groups = np.arange(n + m) < n
        test = GroupTest(
            "gaussian",
            bandwidths="median",
            statistics="mmd",
            n_permutations=settings["n_permutations"]["tolerance"],
            random_state=int(rng.integers(2**31)),
            n_jobs=1,
        )
        at = _p_value(test, delta, X, groups)
        half = _p_value(test, delta / 2, X, groups)
        at_edge += at <= LEVEL + 1e-9
        beyond += half <= LEVEL + 1e-9
        smallest = min(smallest, at, half)
    return {"rejected": at_edge, "beyond": beyond, "smallest": smallest, "delta": delta}


def _p_value(test: GroupTest, delta: float, X: Array, groups: Array) -> float:
    found = test.set_params(tolerance=delta).test(X, groups).tolerance
    assert found is not None
    return found.p_value


def _distance(law: str, share: float, rows: int) -> float:
    """Return the MMD of two laws at the median bandwidth, columns standardized over both."""
    total = 0.0
    repetitions = 4
    for seed in range(repetitions):
        rng = np.random.default_rng([1, seed])
        n = max(2, round(share * rows))
        X = LAWS[law](rng, n, rows - n)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        kernel = Gaussian().resolve(X)
        total += mmd(X[:n], X[n:], kernel, squared=True, unbiased=True) / repetitions
    return float(np.sqrt(max(total, 0.0)))


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the shares of draws that each cell rejects."""
    rows = rows_of_tasks(settings, results)
    found = []
    for number, (kind, name, how) in enumerate(settings["cells"]):
        some = where(rows, cell=number)
        draws = sum(row["draws"] for row in some)
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / draws))
        cell: Row = {"kind": kind, "name": name, "how": how, "draws": draws}
        for what in ("rejected", "groups", "pairs", "columns", "beyond"):
            if what in some[0]:
                cell[what] = sum(row[what] for row in some) / draws
            else:
                cell[what] = None
        cell["delta"] = some[0].get("delta")
        cell["smallest"] = column(some, "smallest").min()
        found.append({**cell, "error": error, "z": (cell["rejected"] - LEVEL) / error})
    return found


def findings(results: Results) -> list[Finding]:
    """Return the largest levels, with designs given, ignored, and at a tolerance."""
    given = where(results.rows, kind="design", how="given")
    ignored = where(results.rows, kind="design", how="ignored")
    tolerance = where(results.rows, kind="tolerance")
    largest = max(given, key=lambda row: row["z"])
    worst = max(tolerance, key=lambda row: row["rejected"])
    spoiled = []
    for row in ignored:
        if row["rejected"] > 0.2:
            spoiled.append(row)
    names = "; ".join(f"{row['name']}: {row['rejected']:.2f}" for row in spoiled) or "none"
    return [
        Finding(
            f"How far above {LEVEL} the share of rejections is at most, over all designs.",
            f"{decimal_z(largest)} standard errors ({largest['rejected']:.4f}: {largest['name']}); "
            f"the largest of {len(given)} independent standard normal numbers is "
            f"{largest_expected(len(given)):.1f} in the mean",
        ),
        Finding("Designs that reject more than 20 % of nulls if they are ignored.", names),
        Finding(
            "The largest level of a tolerance, which is approximate, where the distance is δ.",
            f"{worst['rejected']:.3f} ({worst['name']}; {worst['how']} rows)",
        ),
        Finding(
            "The smallest p-value, which is 0 for no valid test.",
            f"{min(row['smallest'] for row in results.rows):.3g}",
        ),
    ]


def details(results: Results) -> str:
    """Return the tables of designs and of tolerances."""
    lines = [*note_of_size(results, settings(False))]
    designs = where(results.rows, kind="design")
    draws, error = designs[0]["draws"], designs[0]["error"]
    lines.append(
        f"P(p ≤ {LEVEL}) where groups are alike under the design, {draws:,} draws each (standard "
        f"error {error:.4f}): of all groups together, of any group against the rest, of any pair, "
        "of any column, and of all groups together with the design ignored.\n"
    )
    ignored = {}
    for row in designs:
        if row["how"] == "ignored":
            ignored[row["name"]] = row
    body = []
    for row in designs:
        if row["how"] == "given":
            other = ignored.get(row["name"])
            if other is None:
                left_out = ""
            else:
                left_out = f"{other['rejected']:.3f}"
            shares = []
            for what in ("rejected", "groups", "pairs", "columns"):
                shares.append(f"{row[what]:.3f}")
            body.append([row["name"], *shares, left_out])
    titles = [
        "groups",
        "all together",
        "any group",
        "any pair",
        "any column",
        "design ignored",
    ]
    lines += markdown(titles, body)
    tolerances = where(results.rows, kind="tolerance")
    if tolerances:
        first = tolerances[0]
        lines.append(
            f"\nP(p ≤ {LEVEL}) of two groups with the tolerance δ, {first['draws']:,} draws each "
            f"(standard error {first['error']:.4f}), where their distance is δ (the level), and "
            "where it is 2 δ (the power).\n"
        )
        body = []
        for row in tolerances:
            shares = []
            for what in ("delta", "rejected", "beyond"):
                shares.append(f"{row[what]:.3f}")
            body.append([row["name"], row["how"], *shares])
        lines += markdown(["groups", "rows", "δ", "distance δ", "distance 2 δ"], body)
    return "\n".join(lines) + "\n"


def figure(results: Results) -> Any:
    """Return the figure: the share of rejections of every cell, on a logarithmic axis."""
    rows = results.rows
    drawn = blank(1.4 + 0.2 * len(rows))
    ax = drawn.subplots()
    ax.axvline(LEVEL, color="black", linewidth=0.8)
    names = []
    for place, row in enumerate(rows):
        colour = {"given": "#0072B2", "ignored": "#D55E00"}.get(row["how"], "#009E73")
        least = 0.5 / row["draws"]
        ax.plot(max(row["rejected"], least), place, "o", color=colour, markersize=4)
        if row["kind"] == "tolerance":
            how = row["how"]
        else:
            how = f"design {row['how']}"
        names.append(f"{row['name']} ({how})")
    ax.set_xscale("log")
    ax.set_yticks(range(len(rows)), names, fontsize="x-small")
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(f"share of p ≤ {LEVEL} where the null hypothesis holds")
    return drawn


EXPERIMENT = Experiment(
    name="group-levels",
    title="Levels of the test of groups",
    text=(
        "Groups that are alike under a design, and two groups whose distance is the tolerance. "
        "Blue: the design is given. Orange: it is ignored. Green: a tolerance, which is "
        "approximate."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    figure=figure,
    findings=findings,
    details=details,
)
