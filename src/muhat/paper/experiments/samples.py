"""Synthetic samples, cut into blocks that are pieces of work, and the tables of improvements that come of them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.paper.experiments.base import Piece, Row, Settings
from muhat.paper.experiments.contenders import Result
from muhat.paper.experiments.statistics import improvement, mean_of

SAMPLINGS = ("redrawn", "once")
"""Whether the mixture is drawn anew for each sample, or once for all."""

BLOCK = 200
"""Samples in a piece of work: some seconds, and enough that what a batch shares costs little."""

PILOT = 10**6
"""Added to a sample's index for one that only its bandwidth is taken from."""

KERNEL_VALUES = 2 * 10**7
"""In the Gram matrices of a piece, at most: 160 MB."""


def blocks(settings: Settings, cases: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of work: for each case, the m samples in blocks; n is the case's own or that of all."""
    m = settings["m"]
    pieces = []
    for case in cases:
        size = min(settings["block"], max(1, KERNEL_VALUES // int(case.get("n") or settings["n"]) ** 2))
        pieces += [{**case, "first": first, "last": min(first + size, m)} for first in range(0, m, size)]
    return pieces


def indices(piece: Piece) -> range:
    """Return the samples of a piece."""
    return range(piece["first"], piece["last"])


def raw_rows(results: Iterable[Result], **case: Any) -> list[Row]:
    """Return the losses of a block, a row for each estimator and rule."""
    return [
        {**case, "estimator": each.estimator, "rule": each.rule, "losses": each.losses.tolist()} for each in results
    ]


def joined(results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of all blocks, those of the same case, estimator and rule put together."""
    together: dict[tuple[Any, ...], Row] = {}
    for row in (row for rows in results for row in rows):
        key = tuple(value for value in row.values() if not isinstance(value, list))
        if key in together:
            for name, values in row.items():
                if isinstance(values, list):
                    together[key][name] = together[key][name] + values
        else:
            together[key] = dict(row)
    return list(together.values())


def risk_table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement over KME, with their intervals, of every case, estimator and rule."""
    rows = joined(results)
    baselines = losses_of("kme", rows)
    table = []
    for row in rows:
        losses, told = np.array(row["losses"]), {key: row[key] for key in row if key != "losses"}
        gain = improvement(losses, baselines[case_of(row)])
        table.append({**told, "m": len(losses), **mean_of(losses).columns("risk"), **gain.columns("improvement")})
    return table


def losses_of(estimator: str, rows: Sequence[Row]) -> dict[tuple[Any, ...], Array]:
    """Return the losses of one estimator by case, to compare others with."""
    return {case_of(row): np.array(row["losses"]) for row in rows if row["estimator"] == estimator}


def case_of(row: Row) -> tuple[Any, ...]:
    """Return what a row has in common with those it is compared with: all but estimator, rule and losses."""
    return tuple(value for key, value in row.items() if key not in ("estimator", "rule", "losses"))
