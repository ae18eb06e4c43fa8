"""Levels of the default tests as they are now."""

from typing import Any

from muhat.gram import Nystrom, RandomFeatures
from muhat.testing import IndependenceTest, TwoSampleTest
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper.experiments import levels_of_tests as levels
from paper.experiments.levels_of_tests import (
    MANY_ROWS,
    NULLS,
    NULLS_OF_SLOW_ROUTES,
    PValue,
    Routes,
    drift_by,
)


class _OnLandmarks(TwoSampleTest):
    """The default test as beyond 600 rows, where landmarks stand for the rows, at any size."""

    max_rows_dense = 16
    n_landmarks = 12


class _LowRank(IndependenceTest):
    """The default test as beyond 500 rows, where spectra come from low-rank factors."""

    max_rows_dense = 16


def _by(test: type[Any], **parameters: Any) -> PValue:
    """Return the p-value of a test of two samples, or of pairs."""
    return lambda X, Y, options: float(test(**parameters, **options).test(X, Y).p_value)


ROUTES: Routes = {
    "TwoSampleTest": {
        "dense, the default": _by(TwoSampleTest),
        "landmarks, the default of many rows": _by(_OnLandmarks),
    },
    "IndependenceTest": {
        "dense, the default": _by(IndependenceTest),
        "low rank, the default of many rows": _by(_LowRank),
        "low rank, many rows": _by(IndependenceTest),
        "landmarks": _by(IndependenceTest, gram=Nystrom(8)),
        "landmarks, many rows": _by(IndependenceTest, gram=Nystrom(20)),
        "random features": _by(IndependenceTest, gram=RandomFeatures(20)),
    },
    "DriftDetector": {"the default": drift_by(default=True)},
}
"""The routes whose statistics have changed."""

NULLS_OF_ROUTES = {
    "low rank, the default of many rows": NULLS_OF_SLOW_ROUTES,
    "low rank, many rows": (MANY_ROWS,),
    "landmarks, many rows": (MANY_ROWS,),
    "random features": NULLS_OF_SLOW_ROUTES,
    "the default": NULLS_OF_SLOW_ROUTES,
}
"""Of routes that are run under few null hypotheses."""


UNCHANGED = {
    ("IndependenceTest", "dense, the default"),
    ("IndependenceTest", "low rank, the default of many rows"),
    ("DriftDetector", "the default"),
}
"""Routes that gave the same p-values in an earlier run of more draws, on other seeds."""


def settings(quick: bool) -> Settings:
    """Return the cells, and the numbers of draws and permutations."""
    cells = []
    for test, routes in ROUTES.items():
        for route in routes:
            nulls = NULLS_OF_ROUTES.get(route, tuple(NULLS))
            if quick:
                nulls = nulls[:1]
            for null in nulls:
                cells.append([test, route, null])
    chosen: Settings = {
        "seed": 28,
        "draws": 500,
        "draws_of_unchanged": 250,
        "draws_of_many_rows": 250,
        "n_permutations": 19,
        "block": 250,
        "cells": cells,
    }
    if quick:
        chosen |= {
            "draws": 2,
            "draws_of_many_rows": 2,
            "block": 2,
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each cell; some cells have fewer draws."""
    found = []
    for task in levels.tasks(settings):
        test, route, null = settings["cells"][task["cell"]]
        draws = settings["draws"]
        if null == MANY_ROWS:
            draws = settings["draws_of_many_rows"]
        elif (test, route) in UNCHANGED:
            draws = min(draws, settings["draws_of_unchanged"])
        if task["last"] <= draws:
            found.append(task)
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how many of a block of draws were rejected."""
    return levels.run_on(ROUTES, settings, task)


def details(results: Results) -> str:
    """Return the table of routes and null hypotheses."""
    return levels.level_table(results, settings(False))


EXPERIMENT = Experiment(
    name="test-default-levels",
    title="the same for the defaults as they are now",
    text=(
        "As above, for the defaults after their statistics were chosen anew. “The default of many "
        "rows” is what happens beyond 600 rows of two samples and 500 pairs, forced on few; for "
        "independence two routes are also run with 600 rows of two columns each, in fewer draws. "
        "An earlier run, at commit 7660f21 on other seeds, had 2000 draws of each cell and "
        "rejected 4.0 to 5.7 %. Since then the default of two samples has a family for spreads, "
        "and independence on landmarks shifts blocks of rows; the other routes give the same "
        "p-values as before, and have fewer draws here."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=levels.table,
    findings=levels.findings,
    details=details,
    figure=levels.figure,
)
