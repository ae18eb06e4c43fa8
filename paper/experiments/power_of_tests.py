"""Power of the tests on the settings of MMDAgg's, FUSE's and HSICAgg's authors."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from muhat.testing import IndependenceTest, TwoSampleTest
from paper._arrays import Array
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, in_blocks, rows_of_tasks
from paper._figures import blank, legend_of_markers, name_rows
from paper._tables import distinct, grouped, markdown, where
from paper.experiments.levels_of_tests import note_of_size

LEVEL = 0.05

Published = dict[tuple[str, int, int, int], tuple[float, int]]
"""Power and repetitions by problem, d, P and n."""

MMDAGG: Published = {
    **{
        ("uniform", 1, P, 500): (power, 500)
        for P, power in enumerate((1.0, 0.988, 0.602, 0.228), 1)
    },
    **{("uniform", 2, P, 2000): (power, 500) for P, power in enumerate((1.0, 0.982, 0.260), 1)},
    **{
        ("mixture", 2, 4, 500 * k): (p, 200)
        for k, p in enumerate((0.19, 0.385, 0.665, 0.785, 0.89, 0.99), 1)
    },
}
FUSE: Published = {
    ("mixture", 2, 4, 500 * k): (power, 200)
    for k, power in enumerate((0.18, 0.38, 0.635, 0.765, 0.88, 0.97), 1)
}
HSICAGG: Published = {
    ("independence", d, 1, 1000): (power, 100)
    for d, power in zip((2, 3, 4, 5), (1.0, 1.0, 0.40, 0.03), strict=True)
}
PEERS = {"MMDAgg": MMDAGG, "FUSE": FUSE, "HSICAgg": HSICAGG}
"""As published: Schrab et al. 2023 (JMLR), Biggs et al. 2023, Schrab et al. 2022."""

DEFAULT = "default"
"""What our test is called in tables."""

STYLES = {
    DEFAULT: ("#D55E00", "o"),
    "MMDAgg": ("#000000", "|"),
    "FUSE": ("#CC79A7", "|"),
    "HSICAgg": ("#000000", "|"),
}
"""Colour and marker of each test, in the order of tables and legends."""

OUR_MARKER = {"markersize": 5, "zorder": 4}
"""Our own dots are small, and above the others."""


def settings(quick: bool) -> Settings:
    """Return the cells, each with its repetitions, and the permutations of all."""
    uniform = []
    for P in (1, 2, 3, 4):
        uniform.append((1, P, 500, 2.7, 200))
    mixture = []
    for n in (500, 1000):
        mixture.append((2, 4, n, 1.3, 200))
    paired = []
    for d in (2, 3, 4, 5):
        paired.append((d, 1, 1000, float(np.exp(d)), 100))
    if quick:
        uniform, mixture, paired = [(1, 1, 40, 2.7, 3)], [(2, 4, 40, 1.3, 3)], [(2, 1, 40, 7.3, 3)]
    names = ("d", "P", "n", "c", "repetitions")
    cells = []
    for problem, some in (("uniform", uniform), ("mixture", mixture), ("independence", paired)):
        for cell in some:
            cells.append({"problem": problem, **dict(zip(names, cell, strict=True))})
    chosen: Settings = {"seed": 12, "block": 20, "n_permutations": 999, "cells": cells}
    if quick:
        chosen |= {
            "n_permutations": 19,
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of repetitions of each cell, all cells advancing together."""
    found: list[Task] = []
    for number, cell in enumerate(settings["cells"]):
        found += in_blocks({"cell": number}, cell["repetitions"], settings["block"])

    def progress(task: Task) -> float:
        return float(task["first"] / settings["cells"][task["cell"]]["repetitions"])

    return sorted(found, key=progress)


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the p-values of a block of repetitions."""
    cell = settings["cells"][task["cell"]]
    p_values = []
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], task["cell"], number])
        p_values.append(_p_value(cell, settings["n_permutations"], rng))
    return [{"cell": task["cell"], "p_values": p_values}]


def _p_value(cell: Mapping[str, Any], n_permutations: int, rng: np.random.Generator) -> float:
    """Return the p-value of the default test on one draw."""
    n, d = cell["n"], cell["d"]
    test: type[Any] = TwoSampleTest
    if cell["problem"] == "independence":
        Z = perturbed_uniform(n, d, cell["P"], cell["c"], rng)
        X, Y, test = Z[:, :1], Z[:, 1:], IndependenceTest
    elif cell["problem"] == "mixture":
        X, Y = four_gaussians(n, 1.0, rng), four_gaussians(n, cell["c"], rng)
    else:
        X, Y = rng.random((n, d)), perturbed_uniform(n, d, cell["P"], cell["c"], rng)
    ours = test(n_permutations=n_permutations, random_state=int(rng.integers(2**31)), n_jobs=1)
    return float(ours.test(X, Y).p_value)


def perturbed_uniform(n: int, d: int, P: int, c: float, rng: np.random.Generator) -> Array:
    """Return n rows with the density 1 + c/P Σ_j θ_j Π_r G(P x_r − j_r), the signs θ drawn anew."""
    signs = rng.choice([-1.0, 1.0], size=(P,) * d)
    rows: list[Array] = []
    while sum(map(len, rows)) < n:
        x = rng.random((2 * n, d))
        cell = np.minimum((x * P).astype(int), P - 1)
        density = 1 + c / P * signs[tuple(cell.T)] * np.prod(_bump(x * P - cell - 1), axis=1)
        rows.append(x[rng.random(2 * n) * (1 + c / P * np.exp(-d)) <= density])
    return np.concatenate(rows)[:n]


def _bump(x: Array) -> Array:
    """G(x): a smooth bump on (−1, −½), and its negative on (−½, 0)."""
    left = x < -0.5
    inside = 1 - (4 * x + np.where(left, 3, 1)) ** 2
    height = np.exp(
        -1 / np.where(inside > 0, inside, np.inf), where=inside > 0, out=np.zeros_like(x)
    )
    return np.where(left, height, -height)


def four_gaussians(n: int, deviation: float, rng: np.random.Generator) -> Array:
    """Return n rows around (±20, ±20) with variance 1, except for the first centre."""
    centres = np.array(list(product((20.0, -20.0), repeat=2)))
    which = rng.integers(4, size=n)
    return centres[which] + np.where(which == 0, deviation, 1.0)[:, None] * rng.normal(size=(n, 2))


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the power in every cell with its standard error, and what peers published."""
    rows = rows_of_tasks(settings, results)
    found = []
    for number, cell in enumerate(settings["cells"]):
        place = {key: cell[key] for key in ("problem", "d", "P", "n")}
        blocks = where(rows, cell=number)
        if blocks:
            p_values = np.concatenate([row["p_values"] for row in blocks])
            power = float((p_values <= LEVEL).mean())
            found.append({**place, "test": DEFAULT, **_power(power, len(p_values))})
        key = tuple(place.values())
        for peer, published in PEERS.items():
            if key in published:
                found.append({**place, "test": peer, **_power(*published[key])})
    return found


def _power(power: float, repetitions: int) -> Row:
    error = float(np.sqrt(power * (1 - power) / repetitions))
    return {"power": power, "error": error, "repetitions": repetitions}


def findings(results: Results) -> list[Finding]:
    """Return, for every cell, the power of the default beside that of its peers."""
    found = []
    for cell, rows in _cells(results):
        numbers = []
        for row in sorted(rows, key=_is_peer):
            name = ""
            if _is_peer(row):
                name = f"{row['test']} "
            numbers.append(f"{name}{_with_error(row)}")
        found.append(Finding(f"{cell}: power at level {LEVEL:g}.", "; ".join(numbers)))
    return found


def _is_peer(row: Row) -> bool:
    return row["test"] in PEERS


def _with_error(row: Row) -> str:
    return f"{row['power']:.3f} ± {row['error']:.3f}"


def _cells(results: Results) -> list[tuple[str, list[Row]]]:
    """Return the name and the rows of every cell."""
    cells = grouped(results.rows, "problem", "d", "P", "n")
    found = []
    for place, rows in cells.items():
        found.append((_name(*place), rows))
    return found


def _name(problem: str, d: int, P: int, n: int) -> str:
    if problem == "mixture":
        return f"mixture, n = {n}"
    return f"{problem}, d = {d}, P = {P}"


def details(results: Results) -> str:
    """Return the power of all tests in all cells."""
    tests = distinct(results.rows, "test", STYLES)
    lines = []
    for cell, rows in _cells(results):
        shown = {}
        for row in rows:
            shown[row["test"]] = _with_error(row)
        powers = []
        for test in tests:
            powers.append(shown.get(test, ""))
        lines.append([cell, f"{rows[0]['repetitions']:.0f}", *powers])
    table = markdown(["cell", "repetitions", *map(_title, tests)], lines)
    return "\n".join([*note_of_size(results, settings(False)), *table])


def _title(test: str) -> str:
    if test == DEFAULT:
        return "the default"
    return f"{test}, published"


def figure(results: Results) -> Any:
    """Return the figure: the power of every test in every cell."""
    cells = _cells(results)
    drawn = blank(1.4 + 0.3 * len(cells))
    ax = drawn.subplots()
    for place, (_, rows) in enumerate(cells):
        for row in rows:
            colour, marker = STYLES[row["test"]]
            look = OUR_MARKER
            if _is_peer(row):
                look = {"markersize": 12, "zorder": 3}
            ax.plot(row["power"], place, marker=marker, color=colour, linestyle="none", **look)
    name_rows(ax, [name for name, _ in cells])
    ax.set(xlim=(-0.02, 1.02), xlabel="power at level 0.05")
    styles = {}
    for test in distinct(results.rows, "test", STYLES):
        styles[_title(test)] = STYLES[test]
    legend_of_markers(drawn, styles, columns=2)
    return drawn


EXPERIMENT = Experiment(
    name="test-power",
    title=(
        "how often the tests find a difference or a dependence, beside what other tests' authors "
        "published"
    ),
    text=(
        "Perturbed uniforms (density 1 + c/P Σ θ Π G, signs drawn anew), four Gaussians of which "
        "one is wider, and independence of the first column from the others on perturbed uniforms, "
        "at level 0.05: the cells on which the authors of MMDAgg, FUSE and HSICAgg published their "
        "power, beside what they published. `TwoSampleTest()` and `IndependenceTest()` are called "
        "without options, with 999 permutations: with 500 or 1000 rows they take landmarks or "
        "low-rank factors."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
