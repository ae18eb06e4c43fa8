"""Levels of the default tests as they are now, of GroupTest and of its designs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.gram import Nystrom, RandomFeatures
from muhat.testing import GroupTest, IndependenceTest, TwoSampleTest
from paper._arrays import Array
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper.experiments import levels_of_tests as levels
from paper.experiments.levels_of_tests import (
    FEW_KERNELS,
    NULLS,
    NULLS_OF_SLOW_ROUTES,
    PValue,
    Routes,
)

N_GROUPS = 4
"""Groups that the rows of both samples are put in, whichever sample they are of."""


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


def _groups(X: Array, Y: Array, options: dict[str, Any]) -> float:
    """Return the p-value of four groups of the rows of both samples."""
    return float(_result_of_groups(X, Y, options).p_value)


def _pairs_of_groups(X: Array, Y: Array, options: dict[str, Any]) -> float:
    """Return the least p-value of all pairs: at most 0.05 with probability 0.05."""
    result = _result_of_groups(X, Y, options, statistics="mmd", **FEW_KERNELS)
    return float(min(each.p_value for each in result.pairs))


def _result_of_groups(X: Array, Y: Array, options: dict[str, Any], **parameters: Any) -> Any:
    rows = np.concatenate([X, Y])
    return GroupTest(**parameters, **options).test(rows, np.arange(len(rows)) % N_GROUPS)


def _in_design(design: str) -> PValue:
    """Return the p-value of four groups whose rows are alike within strata or units.

    These are three standard deviations apart; strata have unequal shares of the groups.
    """

    def p_value(X: Array, Y: Array, options: dict[str, Any]) -> float:
        rows = np.concatenate([X, Y])
        number = np.arange(len(rows))
        if design == "strata":
            units, groups = 4 * number // len(rows), np.sqrt(number).astype(int) % N_GROUPS
        elif design == "clusters":
            units = number // 3
            groups = units % N_GROUPS
        else:
            units, groups = number // N_GROUPS, number % N_GROUPS
        rng = np.random.default_rng(options["random_state"])
        effects = 3 * rng.normal(size=(units.max() + 1, rows.shape[1]))
        test = GroupTest(**FEW_KERNELS, **options)
        return float(test.test(rows + effects[units], groups, **{design: units}).p_value)

    return p_value


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
    "GroupTest": {
        "dense, the default": _groups,
        "least p of all pairs": _pairs_of_groups,
        "strata": _in_design("strata"),
        "clusters": _in_design("clusters"),
        "pairs": _in_design("pairs"),
    },
}
"""The routes whose statistics have changed, and those of many groups."""

SLOW_ROUTES = (
    "low rank, the default of many rows",
    "random features",
    "strata",
    "clusters",
    "pairs",
)
"""Routes that are run under few null hypotheses."""


def settings(quick: bool) -> Settings:
    """Return the cells, and the numbers of draws and permutations."""
    cells = []
    for test, routes in ROUTES.items():
        for route in routes:
            nulls = NULLS_OF_SLOW_ROUTES if route in SLOW_ROUTES or quick else tuple(NULLS)
            for null in nulls[:1] if quick else nulls:
                cells.append([test, route, null])
    return {
        "seed": 26,
        "draws": 2 if quick else 1000,
        "n_permutations": 19,
        "block": 2 if quick else 250,
        "cells": cells,
    }


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how many of a block of draws were rejected."""
    return levels.run_on(ROUTES, settings, task)


def findings(results: Results) -> Sequence[Finding]:
    """Return the cell that rejects most, beside what chance makes of so many cells."""
    return levels.findings(results)


def details(results: Results) -> str:
    """Return the table of routes and null hypotheses."""
    return levels.level_table(results, settings(False))


EXPERIMENT = Experiment(
    name="test-default-levels",
    title="the same for the defaults as they are now, and for many groups",
    text=(
        "As above, with fewer draws, for the defaults after their statistics were chosen anew, and "
        "for `GroupTest`, whose four groups share the rows of both samples. “Many rows” is what "
        "happens beyond 600 rows of two samples and 500 pairs, forced on few. The least p-value of "
        "all pairs of groups has the level 0.05 at most, as it is corrected for their number. In "
        "strata, clusters and pairs rows that belong together are three standard deviations from "
        "others, and strata have unequal shares of the groups: without the design, such rows would "
        "make false differences or hide true ones."
    ),
    settings=settings,
    tasks=levels.tasks,
    run=run,
    table=levels.table,
    findings=findings,
    details=details,
    figure=levels.figure,
)
