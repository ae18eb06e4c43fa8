"""Equal rows, found by a hash of their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.data._summaries import hashed_rows

MIN_ROWS_PER_VALUE = 5
"""From this many rows per different row on, equal rows are expected: few values are possible."""


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Which of the pairs (x, y) are equal, and whether repeated values alone explain it."""

    first: Array
    """The number of the first row of each different pair, rising."""
    groups: Array
    """For each row, the place of its pair in ``first``."""
    agreement: float
    """Of the rows that are equal in x, or in y where these are fewer, the share equal in both,
    beyond chance."""
    levels: tuple[int, int]
    """The numbers of different rows of x and of y."""

    @classmethod
    def from_pairs(cls, x: Array, y: Array) -> EqualRows:
        """Compare the rows of x and y, of shape (n, columns) each."""
        of_x = np.unique(hashed_rows(x), return_inverse=True)[1]
        of_y = np.unique(hashed_rows(y), return_inverse=True)[1]
        numbers = np.column_stack([of_x, of_y]).astype(np.float64)
        _, first, groups = np.unique(hashed_rows(numbers), return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(first), np.int64)
        place[order] = np.arange(len(first))
        groups = place[groups]
        fewer, most = sorted([_equal_pairs(of_x), _equal_pairs(of_y)])
        by_chance = most / max(len(x) * (len(x) - 1) / 2, 1) * fewer
        beyond = fewer - by_chance
        agreement = 0.0
        if beyond > 0:
            agreement = (_equal_pairs(groups) - by_chance) / beyond
        levels = (int(of_x.max()) + 1, int(of_y.max()) + 1)
        return cls(first[order], groups, agreement, levels)

    @property
    def n_copies(self) -> int:
        """How many rows equal one before them."""
        return len(self.groups) - len(self.first)

    @property
    def recur(self) -> bool:
        """Whether there are so few different rows that equal ones are to be expected."""
        return len(self.groups) >= MIN_ROWS_PER_VALUE * len(self.first)


def _equal_pairs(groups: Array) -> float:
    """Return how many pairs of rows are in the same group."""
    counts = np.bincount(groups).astype(np.float64)
    return float((counts * (counts - 1) / 2).sum())
