"""Rows as ranks in every column, on which no outlier and no scale has a say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muhat._arrays import Array
from muhat.data import ColumnMoments, SampleBatch
from muhat.kernels import Gaussian
from muhat.testing._distances import ranks_among


@dataclass
class RankGaussian(Gaussian):
    """The Gaussian kernel of rows that have been replaced by their ranks.

    The bandwidth is in standard deviations of a column's ranks.
    """

    name: ClassVar[str] = ""


def as_ranks(rows: Array, *others: Array) -> list[Array]:
    """Return rows, and others, as ranks among the rows, each column at mean 0 and variance 1."""
    reference = np.sort(rows, axis=0)
    ranks = ranks_among(reference, rows)
    moments = ColumnMoments.from_batch(SampleBatch(ranks, 0))
    found = [moments.standardized(ranks)]
    for each in others:
        found.append(moments.standardized(ranks_among(reference, each)))
    return found
