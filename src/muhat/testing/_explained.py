"""How much of the variance of one column the other side of an independence test explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array

MIN_ROWS_PER_GROUP = 5
"""Rows on average in each group of equal values, and about as many in each bin."""

MAX_BINS, MIN_BINS = 100, 10
"""Bins of a column of numbers, and the fewest with which the share is not mostly noise."""


@dataclass(frozen=True)
class ExplainedVariance:
    """The share of the variance of one side that the other side explains."""

    by: str
    """The side that explains the other: 'x' or 'y'."""
    share: float
    """1 − (variance within groups of equal values, or within bins) / variance; at least 0."""

    @classmethod
    def from_rows(cls, x: Array, y: Array) -> ExplainedVariance | None:
        """Return that of y by x, else that of x by y; None unless one side is one column.

        The other side has few values, or is one column of numbers too.
        """
        for by, rows, other in (("x", x, y), ("y", y, x)):
            groups = _groups(rows)
            if other.shape[1] == 1 and groups is not None:
                return cls(by, _share_between(groups, other[:, 0]))
        return None


def _groups(rows: Array) -> Array | None:
    """Return the group of each row: rows with few values by these, one column by its ranks."""
    n = len(rows)
    values, groups = np.unique(rows, axis=0, return_inverse=True)
    if MIN_ROWS_PER_GROUP * len(values) <= n:
        return groups.ravel()
    n_bins = min(MAX_BINS, n // MIN_ROWS_PER_GROUP)
    if rows.shape[1] > 1 or n_bins < MIN_BINS:
        return None
    cuts = np.quantile(rows[:, 0], np.arange(1, n_bins) / n_bins)
    return np.searchsorted(cuts, rows[:, 0], side="right")


def _share_between(groups: Array, values: Array) -> float:
    """Return the share of the variance between groups, each variance by its degrees of freedom."""
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    n, n_groups = len(values), np.count_nonzero(counts)
    within = ((values - means[groups]) ** 2).sum() / (n - n_groups)
    total = values.var(ddof=1)
    if not total > 0:
        return 0.0
    return max(0.0, float(1 - within / total))
