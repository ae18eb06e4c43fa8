"""Levels of the tests: how often each rejects, on each route, under each null hypothesis."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from muhat.data import open_batches
from muhat.gram import Nystrom, RandomFeatures
from muhat.kernels import Gaussian, Precomputed
from muhat.testing import DriftDetector, IndependenceTest, TwoSampleTest
from paper._arrays import Array
from paper._checkpoints import through_json
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, legend_of_markers, name_rows
from paper._tables import column, distinct, grouped, markdown, where

LEVEL = 0.05
"""With 19 permutations the only level that is attained."""

Pair = tuple[Array, Array]


def _normal(n: int, m: int, d: int, e: int | None = None) -> Callable[[np.random.Generator], Pair]:
    return lambda rng: (rng.normal(size=(n, d)), rng.normal(size=(m, e or d)))


def _cauchy(rng: np.random.Generator) -> Pair:
    return rng.standard_cauchy((24, 2)), rng.standard_cauchy((24, 2))


def _ties(rng: np.random.Generator) -> Pair:
    return rng.integers(3, size=(24, 2)).astype(float), rng.integers(3, size=(24, 2)).astype(float)


def _categories(rng: np.random.Generator) -> Pair:
    """Return four categories, as columns of zeros and ones."""
    x, y = np.eye(4)[rng.choice(4, size=(2, 30), p=[0.4, 0.3, 0.2, 0.1])]
    return x, y


def _copies(rng: np.random.Generator) -> Pair:
    """Return rows from the same few points, so that the groups share copies of rows."""
    points = rng.normal(size=(15, 2))
    return points[rng.integers(15, size=24)], points[rng.integers(15, size=24)]


def _own_copies(rng: np.random.Generator) -> Pair:
    """Return rows of which each side has copies, drawn independently of the other side's."""
    points = rng.normal(size=(2, 10, 2))
    return points[0][rng.integers(10, size=30)], points[1][rng.integers(10, size=30)]


MANY_ROWS = "600 rows"
"""What a null hypothesis with many rows is called, for defaults that change with their number."""

NULLS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "normal, d = 1": _normal(24, 24, 1),
    "normal, d = 5": _normal(24, 24, 5),
    "normal, d = 20": _normal(24, 24, 20),
    "Cauchy": _cauchy,
    "ties": _ties,
    "categories": _categories,
    "n ≠ m": _normal(12, 36, 2),
    "copies": _copies,
}
"""Two samples from one distribution, of 24 rows each or as said."""

PAIRED_NULLS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "normal, d = 1": _normal(30, 30, 1),
    "normal, d = 5": _normal(30, 30, 5),
    "normal, d = 20": _normal(30, 30, 20),
    "Cauchy": _cauchy,
    "ties": _ties,
    "categories": _categories,
    "n ≠ m": _normal(30, 30, 1, 10),
    "copies": _own_copies,
    MANY_ROWS: _normal(600, 600, 2),
}
"""x and y independent of each other, of 24 to 30 rows; in place of n ≠ m, one column and ten."""

NULLS_OF_SLOW_ROUTES = ("normal, d = 5", "ties")
"""Null hypotheses for routes that differ from another only in how rows are read, and take long."""

FEW_KERNELS: dict[str, Any] = {"kernel": "gaussian", "bandwidths": 3}
"""For routes by option: fewer kernels than the default, so that a draw takes milliseconds."""

PValue = Callable[[Array, Array, dict[str, Any]], float]
"""A test on one route: from rows and the options of every test to the p-value."""


def _batches(X: Array) -> list[Array]:
    return [X[:7], X[7:]]


def _in_batches(X: Array, Y: Array, options: dict[str, Any]) -> float:
    return float(TwoSampleTest(**FEW_KERNELS, **options).test(_batches(X), _batches(Y)).p_value)


class _SumsOnly(TwoSampleTest):
    """The test as beyond 20,000 rows, where it holds sums over batches only, at any sample size."""

    max_single_rows = 16


def _summed(X: Array, Y: Array, options: dict[str, Any]) -> float:
    test = _SumsOnly(gram=Nystrom(8), bins=12, **FEW_KERNELS, **options)
    return float(test.test(_batches(X), _batches(Y)).p_value)


def _from_files(X: Array, Y: Array, options: dict[str, Any]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name in ("x.csv", "y.csv"):
            paths.append(Path(folder, name))
        header = ",".join(f"column {number}" for number in range(X.shape[1]))
        for path, rows in zip(paths, (X, Y), strict=True):
            np.savetxt(path, rows, delimiter=",", header=header, comments="")
        x, y = open_batches(paths[0], rows=10), open_batches(paths[1], rows=10)
        return float(TwoSampleTest(**FEW_KERNELS, **options).test(x, y).p_value)


def _by_dask(X: Array, Y: Array, options: dict[str, Any]) -> float:
    import dask
    import dask.array

    with dask.config.set(scheduler="synchronous"):
        x, y = (dask.array.from_array(rows, chunks=(10, -1)) for rows in (X, Y))
        return float(TwoSampleTest(**FEW_KERNELS, **options).test(x, y).p_value)


class _TwoOnLandmarks(TwoSampleTest):
    """The default test as beyond 600 rows, where landmarks stand for the rows, at any size."""

    max_rows_dense = 16
    n_landmarks = 12


class _PairsOfLowRank(IndependenceTest):
    """The default test as beyond 500 rows, where spectra come from low-rank factors."""

    max_rows_dense = 16


def _by(test: type[Any], **parameters: Any) -> PValue:
    """Return the p-value of a test of two samples, or of pairs."""
    return lambda X, Y, options: float(test(**parameters, **options).test(X, Y).p_value)


def _by_matrix(X: Array, Y: Array, options: dict[str, Any]) -> float:
    """Give the test a Gram matrix that was computed before, and row numbers."""
    numbers = np.arange(len(X) + len(Y))[:, None]
    test = TwoSampleTest(Precomputed(_gram(np.concatenate([X, Y]))), **options)
    return float(test.test(numbers[: len(X)], numbers[len(X) :]).p_value)


def _paired_by_matrices(X: Array, Y: Array, options: dict[str, Any]) -> float:
    numbers = np.arange(len(X))[:, None]
    test = IndependenceTest(Precomputed(_gram(X)), kernel_y=Precomputed(_gram(Y)), **options)
    return float(test.test(numbers, numbers).p_value)


def _gram(rows: Array) -> Array:
    return Gaussian(float(np.sqrt(rows.shape[1])))(rows)


def _function(x: Array, y: Array) -> Array:
    """Return a kernel that muhat does not know: 1/(1 + ‖x − y‖₁)."""
    return 1 / (1 + np.abs(x[:, None] - y).sum(axis=-1))


def _drift_by(
    read: Callable[[Array], Any] = np.asarray, default: bool = False, **parameters: Any
) -> PValue:
    """Return the p-value of a detector's first batch, whose level is half of alpha, 0.05."""

    def p_value(X: Array, Y: Array, options: dict[str, Any]) -> float:
        if default:
            test = None
        else:
            test = TwoSampleTest(**FEW_KERNELS, n_permutations=options["n_permutations"])
        detector = DriftDetector(
            test, alpha=2 * LEVEL, horizon=1, random_state=options["random_state"], **parameters
        )
        return float(detector.fit(read(X)).update(read(Y)).p_value)

    return p_value


PRECOMPUTED = "precomputed"

ROUTES: dict[str, dict[str, PValue]] = {
    "TwoSampleTest": {
        "dense, the default": _by(TwoSampleTest),
        "landmarks, the default of many rows": _by(_TwoOnLandmarks),
        "landmarks": _by(TwoSampleTest, gram=Nystrom(8), **FEW_KERNELS),
        "random features": _by(TwoSampleTest, gram=RandomFeatures(20), **FEW_KERNELS),
        "blocks": _by(TwoSampleTest, gram="blocks", statistics="mmd", bins=12, **FEW_KERNELS),
        "bins": _by(TwoSampleTest, bins=12, **FEW_KERNELS),
        "batches": _in_batches,
        "batches, sums only": _summed,
        "files": _from_files,
        "dask": _by_dask,
        "early stopping": _by(TwoSampleTest, early_stopping=3, **FEW_KERNELS),
        "block length": _by(TwoSampleTest, block_length=2, **FEW_KERNELS),
        "kernel function": _by(TwoSampleTest, kernel=_function),
        PRECOMPUTED: _by_matrix,
    },
    "IndependenceTest": {
        "dense, the default": _by(IndependenceTest),
        "low rank, the default of many rows": _by(_PairsOfLowRank),
        "landmarks": _by(IndependenceTest, gram=Nystrom(8)),
        "random features": _by(IndependenceTest, gram=RandomFeatures(20)),
        "shrunk covariance": _by(IndependenceTest, statistics="scose", bandwidths=2),
        "kernel function": _by(IndependenceTest, kernel=_function),
        PRECOMPUTED: _paired_by_matrices,
    },
    "DriftDetector": {
        "the default": _drift_by(default=True),
        "a test of one's own": _drift_by(),
        "as they come": _drift_by(standardize=False),
        "block length": _drift_by(block_length=2),
        "batches": _drift_by(_batches),
    },
}
"""Every public test, and the ways it can take by itself or by an option."""

SLOW_ROUTES = (
    "low rank, the default of many rows",
    "batches, sums only",
    "files",
    "dask",
    "as they come",
    "batches",
    "kernel function",
    "a test of one's own",
)
"""Routes that are run under few null hypotheses."""

CELLS_OF_MANY_ROWS = [
    ["IndependenceTest", "low rank, the default of many rows", MANY_ROWS],
    ["IndependenceTest", "landmarks", MANY_ROWS],
]
"""Cells of fewer draws."""

PEERS = Path(__file__).with_name("peers_of_tests.json")
"""What benchmarks/peers/measure.py found of other packages' tests, with their versions."""


def settings(quick: bool) -> Settings:
    """Return the cells, and the numbers of draws and permutations."""
    cells = []
    for test, routes in ROUTES.items():
        for route in routes:
            for null in NULLS_OF_SLOW_ROUTES if route in SLOW_ROUTES or quick else NULLS:
                cells.append([test, route, null])
    if quick:
        cells = [cell for cell in cells if cell[2] == NULLS_OF_SLOW_ROUTES[len(cell[1]) % 2]]
    else:
        cells += CELLS_OF_MANY_ROWS
    chosen: Settings = {
        "seed": 33,
        "draws": 2000,
        "draws_of_many_rows": 500,
        "n_permutations": 19,
        "block": 250,
        "cells": cells,
    }
    if quick:
        chosen |= {"draws": 2, "block": 2}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each cell."""
    block = settings["block"]
    found = []
    for first in range(0, settings["draws"], block):
        for number, (_, _, null) in enumerate(settings["cells"]):
            draws = settings["draws"]
            if null == MANY_ROWS:
                draws = settings["draws_of_many_rows"]
            if first < draws:
                found.append({"cell": number, "first": first, "last": min(first + block, draws)})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how many of a block of draws were rejected; cells share no draws."""
    test, route, null = settings["cells"][task["cell"]]
    nulls = NULLS
    if test == "IndependenceTest":
        nulls = PAIRED_NULLS
    draw = nulls[null]
    p_values = []
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], task["cell"], number])
        X, Y = draw(rng)
        options = {
            "n_permutations": settings["n_permutations"],
            "random_state": int(rng.integers(2**31)),
            "n_jobs": 1,
        }
        p_values.append(ROUTES[test][route](X, Y, options))
    rejected = sum(p <= LEVEL + 1e-9 for p in p_values)
    return [
        {
            "cell": task["cell"],
            "draws": len(p_values),
            "rejected": rejected,
            "smallest": min(p_values),
        }
    ]


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the share of draws that each cell rejects, and its distance from the level."""
    rows = rows_of_tasks(settings, results)
    found = []
    for number, (test, route, null) in enumerate(settings["cells"]):
        some = where(rows, cell=number)
        draws = sum(column(some, "draws").tolist())
        share = sum(column(some, "rejected").tolist()) / draws
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / draws))
        cell = {
            "test": test,
            "route": route,
            "null": null,
            "draws": draws,
            "rejected": share,
            "error": error,
        }
        found.append(
            {**cell, "z": (share - LEVEL) / error, "smallest": column(some, "smallest").min()}
        )
    return found


def largest_expected(count: int) -> float:
    """Return the expectation of the largest of independent standard normal numbers.

    Examples
    --------
    >>> round(largest_expected(2), 4), round(largest_expected(100), 2)
    (0.5642, 2.51)
    """
    density = lambda x: x * count * norm.pdf(x) * norm.cdf(x) ** (count - 1)  # noqa: E731
    return float(quad(density, -10, 10)[0])


def findings(results: Results) -> list[Finding]:
    """Return the cell that rejects most, beside what chance gives in that number of cells."""
    rows = results.rows
    largest = max(rows, key=lambda row: row["z"])
    above = []
    for row in rows:
        if row["z"] > 3:
            above.append(row)
    number = (
        f"{decimal_z(largest)} standard errors ({largest['rejected']:.4f}: {_name(largest)}); the "
        f"largest of {len(rows)} independent standard normal numbers is "
        f"{largest_expected(len(rows)):.1f} in the mean"
    )
    names = "; ".join(f"{_name(row)}: {row['rejected']:.3f}" for row in above) or "none"
    return [
        Finding(
            f"How far above {LEVEL} the share of rejections is at most, over all cells.", number
        ),
        Finding(f"Cells of more than {LEVEL} + 3 standard errors.", names),
        Finding(
            "The smallest p-value, which is 0 for no valid test.",
            f"{column(rows, 'smallest').min():.3g}",
        ),
    ]


def decimal_z(row: Row) -> str:
    """Return how far above the level a cell is, in standard errors."""
    return f"{row['z']:.1f}".replace("-", "−")


def _name(row: Row) -> str:
    return f"{row['test']}, {row['route']}, {row['null']}"


def details(results: Results) -> str:
    """Return the table of routes and null hypotheses, and levels of other packages."""
    nulls = distinct(results.rows, "null", NULLS)
    errors = []
    for (draws, error), _ in grouped(results.rows, "draws", "error").items():
        errors.append(f"{error:.4f} with {draws:.0f} draws")
    lines = [
        *note_of_size(results, settings(False)),
        (
            f"P(p ≤ {LEVEL}) under each null hypothesis; the standard error of a cell is "
            f"{', '.join(errors)}.\n"
        ),
    ]
    table = []
    for (test, route), rows in grouped(results.rows, "test", "route").items():
        shares = {}
        for row in rows:
            shares[row["null"]] = f"{row['rejected']:.4f}"
        table.append([test, route, *(shares.get(null, "") for null in nulls)])
    lines += markdown(["test", "route", *nulls], table)
    return "\n".join(lines) + "\n\n" + _of_peers()


def note_of_size(results: Results, full: Settings) -> list[str]:
    """Return a line that says so, where results have fewer draws or repetitions than a full run."""
    done = results.settings
    has_cells = all(cell in done["cells"] for cell in full["cells"])
    if has_cells and through_json({**done, "cells": []}) == through_json({**full, "cells": []}):
        return []
    return ["**Not a full run: fewer draws or repetitions, as stated below.**\n"]


def _of_peers() -> str:
    """Return the levels of other packages' tests, as far as they were measured."""
    found = json.loads(PEERS.read_text(encoding="utf-8"))["peers"]
    lines = [
        "Other packages' tests on two samples from one distribution "
        "(`benchmarks/peers/measure.py`, in an environment of their own):\n",
        f"| samples | test | draws | permutations | p ≤ {LEVEL} | p = 0 |",
        "|---" * 6 + "|",
    ]
    for samples in dict.fromkeys(
        samples for peer in found.values() for samples in peer.get("levels", {})
    ):
        for name, peer in found.items():
            if samples in peer.get("levels", {}):
                level = peer["levels"][samples]
                count = f"{level['draws']} | {level['permutations']}"
                share = f"{level['rejected'][str(LEVEL)]:.3f} | {level['zero']:.3f}"
                lines.append(f"| {samples} | {name} ({peer['version']}) | {count} | {share} |")
    missing = []
    for name, peer in found.items():
        if why := peer.get("missing") or peer.get("failed"):
            missing.append(f"{name}: {why}.")
    if missing:
        lines += ["", *missing]
    return "\n".join(lines)


COLOURS = (
    *("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7", "#000000", "#999999"),
    "#8B5A2B",
)
"""Of the null hypotheses."""


def figure(results: Results) -> Any:
    """Return the figure: how far the rejections are from the level, in standard errors."""
    names = list(grouped(results.rows, "test", "route"))
    colours = dict(zip([*NULLS, MANY_ROWS], COLOURS, strict=True))
    drawn = blank(1.6 + 0.24 * len(names))
    ax = drawn.subplots()
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    for row in results.rows:
        place = names.index((row["test"], row["route"]))
        ax.plot(
            row["z"],
            place,
            marker="o",
            markersize=4.5,
            linestyle="none",
            color=colours[row["null"]],
        )
    name_rows(ax, [f"{test}, {route}" for test, route in names])
    ax.set_xlabel(f"share of p ≤ {LEVEL} less {LEVEL}, in standard errors")
    shown = {}
    for null in distinct(results.rows, "null", NULLS):
        shown[null] = (colours[null], "o")
    legend_of_markers(drawn, shown)
    return drawn


EXPERIMENT = Experiment(
    name="test-levels",
    title="how often the tests reject where there is nothing to find, on every route",
    text=(
        "Both samples are drawn from one distribution, or x and y independently of each other, and "
        "the share of p-values up to 0.05 is counted, for each public test on each route that it "
        "takes by itself or by an option. Samples have 24 rows each (30 of categories, 12 and 36 "
        "where n ≠ m) and 19 permutations, with which 0.05 is the only level that is attained "
        "exactly; the drift detector takes 39 or stops early, and its first batch, which is what "
        "is counted, has the level 0.05. “Copies” are rows of both groups drawn from the same 15 "
        "points, for independence x and y from 10 points each; in place of n ≠ m, independence has "
        "one column and ten. Routes by option take three Gaussian kernels, so that a draw takes "
        "milliseconds; routes that only read rows in another way are run under two null "
        "hypotheses. “The default of many rows” is what happens beyond 600 rows of two "
        "samples and 500 pairs, forced on few; two routes of independence are also run with 600 "
        "rows, in fewer draws. “Sums only” is what happens beyond 20,000 rows, forced on few; "
        "“kernel function” is a Python function as the kernel, “precomputed” a Gram matrix. With "
        "ties and after an early stop fewer than 5 % may be rejected. Cells share no draws."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
