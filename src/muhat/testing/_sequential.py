"""Permutations until it is clear: the sequential p-value of Besag and Clifford (1991), which is exact too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array
from muhat.testing._permutations import COMBINED_TIE, TIE, PermutationTable

PILOT = 499
"""Permutations that say how the statistics are standardized; they count in no p-value."""

CHUNK = 100
"""Permutations that are drawn at first; after that, as many as there have been."""

AT_ONCE = 2**25
"""Labels that are held at a time (32 MB)."""


@dataclass(frozen=True, eq=False)
class SequentialTable(PermutationTable):
    """The values of the permutations up to where it was clear that p is large.

    Statistics are standardized by permutations drawn for that alone, so that the combination is one function of the
    labels, whatever was observed. Permutations are then drawn until h of them are as large as observed: with l drawn,
    p = h/l. If B come first, p = (1 + their number)/(B + 1). P(p ≤ α) ≤ α for every α (Besag and Clifford 1991).
    """

    centres: Array
    spreads: Array
    enough: int
    """h."""

    @cached_property
    def standardized(self) -> Array:
        """(T_j(b) − mean_j)/sd_j with the moments of other permutations; zero for one that none of these changes."""
        centred = self.values - self.centres[:, None]
        spread = self.spreads[:, None]
        return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > TIE * self.scales[:, None])

    @cached_property
    def exceeding(self) -> Array:
        """How many of the first permutations are as large as observed, for each number of them."""
        observed = self.combined[0] - COMBINED_TIE * np.abs(self.combined).max()
        return np.cumsum(self.combined[1:] >= observed)

    @property
    def is_clear(self) -> bool:
        """Whether h permutations are as large as observed."""
        return bool(self.exceeding[-1] >= self.enough)

    @property
    def p_value(self) -> float:
        """The sequential p-value."""
        if self.is_clear:
            return float(self.enough / (1 + np.searchsorted(self.exceeding, self.enough)))
        return float((1 + self.exceeding[-1]) / (1 + len(self.exceeding)))


def permute_until_clear(
    values_of: Callable[[Array], Array], draw: Callable[[int], Array], enough: int, most: int
) -> tuple[SequentialTable, Array]:
    """Return the table of as many permutations as it takes, and the observed labels with those that standardize.

    ``values_of`` gives the statistics of columns of labels, ``draw`` the observed labels and so many random ones.
    """
    pilot = draw(min(PILOT, most))
    first = values_of(pilot)
    centres, spreads = first[:, 1:].mean(axis=1), first[:, 1:].std(axis=1)
    scales, values = np.abs(first).max(axis=1), first[:, :1]
    while True:
        drawn = values.shape[1] - 1
        more = min(max(CHUNK, drawn), max(1, AT_ONCE // len(pilot)), most - drawn)
        values = np.concatenate([values, values_of(draw(more)[:, 1:])], axis=1)
        table = SequentialTable(values, scales, centres, spreads, enough)
        if table.is_clear or drawn + more == most:
            return table, pilot
