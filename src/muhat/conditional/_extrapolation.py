"""Which new points lie far from all training rows: predictions there are extrapolations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from muhat._arrays import Array
from muhat._text import agree, listed
from muhat._wording import rows_text

NEAR_QUANTILE, FAR_RATIO = 0.99, 2.0
"""A point is far if its nearest row is over twice as far as 99 % of rows are from their nearest."""

FAR_SHARE_OF_RANGE = 0.5
"""Or if it lies outside the range of a column by more than this share of the range."""

MAX_NAMED = 4
"""The most rows, and columns, that a sentence names."""


class ExtrapolationWarning(UserWarning):
    """Warns of predictions at points far from all training rows."""


@dataclass(frozen=True, eq=False)
class TrainingRegion:
    """Where the training rows are: the range of each column, and how near rows are to others."""

    points: Array
    """Rows, as the kernel sees them, each once."""
    reach: float
    """The distance to the nearest row beyond which a point is far from all."""

    @classmethod
    def from_points(cls, points: Array) -> TrainingRegion:
        """Learn the region from rows of shape (n, d); copies of a row count once."""
        points = np.unique(points, axis=0)
        gaps = cdist(points, points)
        np.fill_diagonal(gaps, np.inf)
        nearest = gaps.min(axis=1)
        reach = np.inf  # of one row, nothing is known about distances
        if len(points) > 1:
            reach = FAR_RATIO * float(np.quantile(nearest, NEAR_QUANTILE))
        return cls(points, reach)

    def outside(self, X: Array) -> Array:
        """Return by how much values lie outside their column's range: shape (m, d)."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        return np.maximum(np.maximum(low - X, X - high), 0)

    def outside_far(self, X: Array) -> Array:
        """Return which values lie outside by more than half of the range: shape (m, d).

        A constant column has no range to compare with: there, distances decide.
        """
        ranges = np.ptp(self.points, axis=0)
        return self.outside(X) > np.where(ranges > 0, FAR_SHARE_OF_RANGE * ranges, self.reach)

    def is_far(self, X: Array) -> Array:
        """Return whether points are far from all rows: shape (m,)."""
        is_away = cdist(X, self.points).min(axis=1) > self.reach
        return np.asarray(is_away | self.outside_far(X).any(axis=1))


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """Which new rows are predicted by extrapolation.

    Attributes
    ----------
    is_far : array of bool of shape (m,)
        Whether each row is far from all training rows: outside the range of a column by more than
        half of that range, or with its nearest training row more than twice as far as 99 % of
        training rows are from theirs.
    is_outside : array of bool of shape (m,)
        Whether some value of the row is outside the range of its column at all.
    columns : tuple of str
        The columns whose ranges the far rows leave by more than half of them.
    """

    is_far: Array
    is_outside: Array
    columns: tuple[str, ...] = ()

    @classmethod
    def from_rows(cls, region: TrainingRegion, X: Array, names: Sequence[str]) -> Extrapolation:
        """Compare new rows, as the kernel sees them, with the region of the training rows."""
        columns = np.flatnonzero(region.outside_far(X).any(axis=0)).tolist()
        is_outside = np.asarray((region.outside(X) > 0).any(axis=1))
        return cls(region.is_far(X), is_outside, tuple(names[place] for place in columns))

    @property
    def n_far(self) -> int:
        """How many rows are far from all training rows."""
        return int(self.is_far.sum())

    def sentence(self, new: str, row_numbers: Array) -> str:
        """Return one sentence on rows that are far from all training rows; empty if none is.

        ``row_numbers`` has the number of each new row.
        """
        n = self.n_far
        if not n:
            return ""
        noun = agree(n, "row", "rows")
        which = listed(list(map(str, row_numbers[self.is_far].tolist())), MAX_NAMED)
        where = ""
        if self.columns:
            where = f", outside the range of {listed(self.columns, MAX_NAMED, 'more columns')}"
        return (
            f"{far_text(n, len(self.is_far), new)} ({noun} {which}{where}): "
            f"{agree(n, 'its interval', 'their intervals')} may be much too narrow."
        )


def far_text(n_far: int, n: int, new: str = "") -> str:
    """Return how many of n rows are far from all training rows."""
    rows = f"{n_far:,} of {rows_text(n)}"
    if n == 1:
        rows = "The only row"
    if new:
        rows += f" of {new}"
    return f"{rows} {agree(n_far, 'lies', 'lie')} far from all training rows"
