"""Synthetic samples in blocks, one task each, their exact losses and tables of improvements."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat.datasets import Draw
from muhat.kernels import Gaussian, Kernel
from muhat.theory import ExactLosses
from paper._arrays import Array
from paper._estimators import EstimatorLosses
from paper._experiment import Row, Settings, Task, in_blocks, rows_of_tasks
from paper._statistics import improvement, mean_of

SAMPLINGS = ("redrawn", "once")
"""Whether the mixture is drawn anew for each sample, or once for all."""

SAMPLES_PER_TASK = 200
"""Samples in a task: some seconds, and enough that what they share costs little."""

PILOT_OFFSET = 10**6
"""Added to a sample's index for one that only its bandwidth is taken from."""

MAX_KERNEL_VALUES = 2 * 10**7
"""In the Gram matrices of a task, at most: 160 MB."""


def blocks(settings: Settings, cases: Iterable[Task]) -> list[Task]:
    """Return the tasks of each case: its m samples in blocks."""
    tasks: list[Task] = []
    for case in cases:
        n = int(case.get("n") or settings["n"])
        size = min(settings["block"], max(1, MAX_KERNEL_VALUES // n**2))
        tasks += in_blocks(case, settings["m"], size)
    return tasks


def indices(task: Task) -> range:
    """Return the samples of a task."""
    return range(task["first"], task["last"])


def median_bandwidth(X: Array) -> float:
    """Return the Gaussian kernel's σ by the median rule."""
    return float(Gaussian().resolve(X).bandwidth)


def gaussian_kernels(draws: Iterable[Draw], factor: float = 1.0) -> list[Kernel]:
    """Return a Gaussian kernel for each sample, its bandwidth a multiple of the median rule's."""
    kernels: list[Kernel] = []
    for draw in draws:
        kernels.append(Gaussian(factor * median_bandwidth(draw.X)))
    return kernels


def exact_losses(draws: Iterable[Draw], kernels: Iterable[Kernel] | None = None) -> ExactLosses:
    """Return the exact losses of filters, by default under Gaussian kernels by the median rule."""
    draws = list(draws)
    if kernels is None:
        kernels = gaussian_kernels(draws)
    return ExactLosses.from_samples(
        [draw.X for draw in draws], [draw.distribution for draw in draws], kernels
    )


def loss_rows(found: Iterable[EstimatorLosses], **case: Any) -> list[Row]:
    """Return the losses of a block, a row for each estimator and rule."""
    collected = []
    for each in found:
        collected.append(
            {**case, "estimator": each.estimator, "rule": each.rule, "losses": each.losses.tolist()}
        )
    return collected


def joined(results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of all blocks, those of the same case, estimator and rule put together."""
    together: dict[tuple[Any, ...], Row] = {}
    for row in rows_of_tasks({}, results):
        key = tuple(value for value in row.values() if not isinstance(value, list))
        if key in together:
            for name, values in row.items():
                if isinstance(values, list):
                    together[key][name] = together[key][name] + values
        else:
            together[key] = dict(row)
    return list(together.values())


def risk_table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement over KME, with intervals, of every case, estimator and rule."""
    rows = joined(results)
    baselines = losses_by_case("kme", rows)
    table = []
    for row in rows:
        losses, labels = np.array(row["losses"]), {key: row[key] for key in row if key != "losses"}
        gain = improvement(losses, baselines[case_of(row)])
        table.append(
            {
                **labels,
                "m": len(losses),
                **mean_of(losses).columns("risk"),
                **gain.columns("improvement"),
            }
        )
    return table


def losses_by_case(estimator: str, rows: Sequence[Row]) -> dict[tuple[Any, ...], Array]:
    """Return the losses of one estimator by case, to compare others with."""
    found = {}
    for row in rows:
        if row["estimator"] == estimator:
            found[case_of(row)] = np.array(row["losses"])
    return found


def case_of(row: Row) -> tuple[Any, ...]:
    """Return the cells of a row that say which case it is: all but estimator, rule and losses."""
    return tuple(value for key, value in row.items() if key not in ("estimator", "rule", "losses"))
