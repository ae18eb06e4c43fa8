"""Power of the default test of two samples at 1000 rows each, beside the same with all kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.gram import Nystrom
from muhat.testing import TwoSampleTest
from paper._alternatives import clusters, correlated, moved, scaled
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, legend_of_markers, name_rows
from paper._tables import column, markdown, where
from paper.experiments.levels_of_tests import note_of_size

LEVEL = 0.05

N_ROWS = 1000
"""Rows of each sample."""

DIFFERENCES = {
    "shift of one of 20 columns": moved(0.15, 20, sparse=True),
    "shift, Student 3 degrees, 2 columns": moved(0.105, 2, 3.0),
    "correlation .15": correlated(0.15),
    "one scale of five": scaled(1.12, 5),
    "one of four clusters": clusters(1.21),
}
"""Laws of two samples that differ so little that the power is near one half."""

TESTS: dict[str, dict[str, Any]] = {"default": {}, "all": {"gram": Nystrom(200)}}
"""The options of each test: with a Gram matrix that is given, all kernels and λ are taken."""

STYLES = {"the default": ("#D55E00", "o"), "all kernels and λ": ("#0072B2", "x")}
"""Tests in the order of legends."""


def settings(quick: bool) -> Settings:
    """Return the differences, and the numbers of rows, repetitions and permutations."""
    chosen: Settings = {
        "seed": 2629,
        "n": N_ROWS,
        "repetitions": 200,
        "n_permutations": 199,
        "block": 10,
        "cells": list(DIFFERENCES),
    }
    if quick:
        chosen |= {
            "n": 310,
            "repetitions": 2,
            "n_permutations": 19,
            "block": 2,
            "cells": list(DIFFERENCES)[:1],
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of repetitions of each difference."""
    count, block = settings["repetitions"], settings["block"]
    found = []
    for first in range(0, count, block):
        for name in settings["cells"]:
            found.append({"difference": name, "first": first, "last": min(first + block, count)})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return which of a block of draws each test rejects, with both on the same permutations."""
    place = list(DIFFERENCES).index(task["difference"])
    found = []
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], place, number])
        X, Y = DIFFERENCES[task["difference"]](rng, settings["n"])
        options = {
            "n_permutations": settings["n_permutations"],
            "random_state": int(rng.integers(2**31)),
            "n_jobs": 1,
        }
        row: Row = {"difference": task["difference"]}
        for name, given in TESTS.items():
            p = TwoSampleTest(**given, **options).test(X, Y).p_value
            row[name] = int(p <= LEVEL + 1e-9)
        found.append(row)
    return found


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the power of both tests, and the difference on the same draws with its error."""
    rows = rows_of_tasks(settings, results)
    found = []
    for name in settings["cells"]:
        cell = where(rows, difference=name)
        default, full = column(cell, "default"), column(cell, "all")
        gap = default - full
        row: Row = {"difference": name, "n": settings["n"], "draws": len(cell)}
        row |= {"default": float(default.mean()), "all": float(full.mean())}
        row |= {"gap": float(gap.mean()), "error": float(gap.std() / np.sqrt(len(gap)))}
        found.append(row)
    return found


def findings(results: Results) -> list[Finding]:
    """Return what fewer kernels cost in the mean of all differences."""
    gaps, errors = column(results.rows, "gap"), column(results.rows, "error")
    error = float(np.sqrt((errors**2).sum())) / len(errors)
    number = f"{_signed(float(gaps.mean()))} ± {error:.3f} in the mean of {len(gaps)}"
    return [Finding("power of the default less that with all kernels and λ.", number)]


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def details(results: Results) -> str:
    """Return the power against every difference."""
    lines = list(note_of_size(results, settings(False)))
    shown = []
    for row in results.rows:
        gap = f"{_signed(row['gap'])} ± {row['error']:.3f}"
        powers = []
        for test in TESTS:
            powers.append(f"{row[test]:.3f}")
        shown.append([row["difference"], f"{row['n']:.0f}", f"{row['draws']:.0f}", *powers, gap])
    titles = ["two samples", "n", "repetitions", *STYLES, "difference on the same draws"]
    return "\n".join([*lines, *markdown(titles, shown)])


def figure(results: Results) -> Any:
    """Return the figure: the power of both tests against every difference."""
    drawn = blank(1.4 + 0.3 * len(results.rows))
    ax = drawn.subplots()
    for place, row in enumerate(results.rows):
        for test, (colour, marker) in zip(TESTS, STYLES.values(), strict=True):
            ax.plot(row[test], place, marker=marker, color=colour, linestyle="none")
    name_rows(ax, [row["difference"] for row in results.rows])
    ax.set(xlim=(-0.02, 1.02), xlabel=f"power at level {LEVEL}")
    legend_of_markers(drawn, STYLES, columns=2)
    return drawn


EXPERIMENT = Experiment(
    name="test-many-rows",
    title="what the default of many rows loses by taking fewer kernels",
    text=(
        "Two samples of 1000 rows each that differ a little. Power at level 0.05 of "
        "`TwoSampleTest()`, which beyond 600 rows takes bandwidths in steps of at least √2, three "
        "Laplacian kernels, three λ and distances of columns at 128 places, beside "
        "`TwoSampleTest(gram=Nystrom(200))`, which takes all kernels and λ that it takes for few "
        "rows, on as many landmarks. Both see the same draws and permutations (199)."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
