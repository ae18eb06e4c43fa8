"""Levels of the default tests as they are now."""

from typing import Any

from muhat.gram import Nystrom, RandomFeatures
from muhat.testing import IndependenceTest, TwoSampleTest
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper.experiments import levels_of_tests as levels
from paper.experiments.levels_of_tests import (
    NULLS,
    NULLS_OF_SLOW_ROUTES,
    PValue,
    Routes,
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
        "landmarks": _by(IndependenceTest, gram=Nystrom(8)),
        "random features": _by(IndependenceTest, gram=RandomFeatures(20)),
    },
}
"""The routes whose statistics have changed."""

SLOW_ROUTES = ("low rank, the default of many rows", "random features")
"""Routes that are run under few null hypotheses."""


def settings(quick: bool) -> Settings:
    """Return the cells, and the numbers of draws and permutations."""
    cells = []
    for test, routes in ROUTES.items():
        for route in routes:
            nulls = list(NULLS)
            if route in SLOW_ROUTES:
                nulls = list(NULLS_OF_SLOW_ROUTES)
            if quick:
                nulls = list(NULLS_OF_SLOW_ROUTES[:1])
            for null in nulls:
                cells.append([test, route, null])
    chosen: Settings = {
        "seed": 26,
        "draws": 2000,
        "n_permutations": 19,
        "block": 250,
        "cells": cells,
    }
    if quick:
        chosen |= {
            "draws": 2,
            "block": 2,
        }
    return chosen


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
        "As above, for the defaults after their statistics were chosen anew. "
        "“Many rows” is what happens beyond 600 rows of two samples and 500 pairs, forced on few."
    ),
    settings=settings,
    tasks=levels.tasks,
    run=run,
    table=levels.table,
    findings=levels.findings,
    details=details,
    figure=levels.figure,
)
