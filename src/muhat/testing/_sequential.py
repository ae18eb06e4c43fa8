"""The sequential p-value of Besag and Clifford (1991): exact, and cheap where p is large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array
from muhat.testing._permutations import NullMoments, PermutationTable

N_PERMUTATIONS_FOR_FEATURES = 499
"""Permutations for the p-values of single columns, which are not sequential."""

FIRST_CHUNK = 100
"""Permutations that are drawn at first; after that, as many as there have been."""

MAX_LABELS_HELD = 2**25
"""Labels that are held at a time (32 MB)."""


@dataclass(frozen=True, eq=False)
class SequentialTable(PermutationTable):
    """The values of the permutations until enough of them are as large as observed.

    Scores come from null moments in theory, so that the combination is one function of the labels,
    whatever was observed. Permutations are drawn until h of them are as large as observed: with l
    drawn, p = h/l. If that takes more than B, p = (1 + their number)/(B + 1). P(p ≤ α) ≤ α for
    every α (Besag and Clifford 1991).
    """

    n_exceeding: int = 1
    """h."""

    @cached_property
    def varies(self) -> Array:
        """Which statistics are combined, whatever was drawn."""
        assert self.null_moments is not None
        return np.asarray(self.null_moments.spread > 0)

    @cached_property
    def exceeding(self) -> Array:
        """How many of the first permutations are as large as observed, for each number of them."""
        observed = self.combined[0] - self._rounding_of(self.combined)
        return np.cumsum(self.combined[1:] >= observed)

    @property
    def can_stop(self) -> bool:
        """Whether h permutations are as large as observed."""
        return bool(self.exceeding[-1] >= self.n_exceeding)

    @property
    def p_value(self) -> float:
        """The sequential p-value."""
        if self.can_stop:
            return float(self.n_exceeding / (1 + np.searchsorted(self.exceeding, self.n_exceeding)))
        return float((1 + self.exceeding[-1]) / (1 + len(self.exceeding)))


def permute_sequentially(
    values_of: Callable[[Array], Array],
    null_moments: NullMoments,
    draw: Callable[[int], Array],
    n_exceeding: int,
    most: int,
    is_single: bool = False,
) -> tuple[SequentialTable, Array]:
    """Return the table of as many permutations as it takes, and labels for single columns.

    ``values_of`` gives the statistics of columns of labels, ``draw`` the observed labels and so
    many random ones; ``is_single`` is whether they are from products in single precision.
    """
    others = draw(min(N_PERMUTATIONS_FOR_FEATURES, most))
    values = values_of(others[:, :1])
    while True:
        drawn = values.shape[1] - 1
        more = min(max(FIRST_CHUNK, drawn), max(1, MAX_LABELS_HELD // len(others)), most - drawn)
        values = np.concatenate([values, values_of(draw(more)[:, 1:])], axis=1)
        table = SequentialTable(
            values,
            np.abs(values).max(axis=1),
            null_moments,
            is_single=is_single,
            n_exceeding=n_exceeding,
        )
        if table.can_stop or drawn + more == most:
            return table, others
