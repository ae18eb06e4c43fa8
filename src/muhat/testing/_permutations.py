"""Permutations, drawn once or enumerated, and the one exact p-value of many statistics that share them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from math import comb, factorial

import numpy as np

from muhat._arrays import Array, slices

AT_ONCE = 2**22
"""Random numbers that are held at a time (32 MB)."""

TIE = 1e-12
"""Values of a statistic that differ by less than this share of its scale are equal: they count."""

COMBINED_TIE = 1e-9
"""The same for the combination, whose rounding is that of the statistics over their standard deviation."""


@dataclass(frozen=True, eq=False)
class Relabelings:
    """Which rows of the pool form the first sample: a column of true and false each, the first one as observed."""

    labels: Array
    is_complete: bool
    """Whether these are all relabelings there are, instead of random ones."""

    @classmethod
    def draw(cls, observed: Array, n_permutations: int, rng: np.random.Generator) -> Relabelings:
        """Return the observed labels and random permutations of them; all relabelings where these are no more."""
        N, n = len(observed), int(observed.sum())
        if comb(N, n) <= n_permutations + 1:
            rows = np.array(list(combinations(range(N), n)))
            labels = np.zeros((N, len(rows)), dtype=bool)
            labels[rows.T, np.arange(len(rows))] = True
            same = (labels == observed[:, None]).all(axis=0).argmax()
            labels[:, [0, same]] = labels[:, [same, 0]]
            return cls(labels, True)
        labels = np.zeros((N, n_permutations + 1), dtype=bool)
        labels[:, 0] = observed
        for some in slices(1, n_permutations + 1, max(1, AT_ONCE // N)):
            rows = rng.random((some.stop - some.start, N)).argpartition(n - 1, axis=1)[:, :n]
            labels[rows.T, np.arange(some.start, some.stop)] = True
        return cls(labels, False)


def draw_orders(n: int, n_permutations: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """Return orders of n rows, one in each line, the first as observed, and whether they are all there are."""
    if n < 10 and factorial(n) <= n_permutations + 1:
        return np.array(list(permutations(range(n)))), True
    orders = np.tile(np.arange(n), (n_permutations + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    return orders, False


@dataclass(frozen=True, eq=False)
class PermutationTable:
    """The values T_j(b) of every statistic j for every permutation b, of which b = 0 is as observed.

    Every p-value is exact: where the labels mean nothing the columns are exchangeable, and each is computed by a
    function that treats all columns alike. The p-values of the single statistics are exact one by one; ``p_value`` is
    the one for all of them.
    """

    values: Array
    scales: Array
    """Of each statistic: what its rounding errors are measured in."""

    @cached_property
    def p_values(self) -> Array:
        """#{b : T_j(b) ≥ T_j(0)}/(B + 1) of every statistic by itself: at least 1/(B + 1), ties count."""
        observed = self.values[:, :1] - TIE * self.scales[:, None]
        return (self.values >= observed).mean(axis=1)

    @cached_property
    def standardized(self) -> Array:
        """(T_j(b) − mean_j)/sd_j over all permutations; zero for a statistic that no permutation changes."""
        centred = self.values - self.values.mean(axis=1, keepdims=True)
        spread = centred.std(axis=1, keepdims=True)
        return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > TIE * self.scales[:, None])

    @cached_property
    def varies(self) -> Array:
        """Which statistics some permutation changes: the others have nothing to say."""
        return np.asarray(self.standardized.any(axis=1))

    @cached_property
    def combined(self) -> Array:
        """The largest standardized statistic of every permutation, of those that vary."""
        return self.standardized[self.varies].max(axis=0) if self.varies.any() else self.standardized[0]

    @property
    def p_value(self) -> float:
        """The exact p-value of the combination."""
        return float((self.combined >= self.combined[0] - COMBINED_TIE * np.abs(self.combined).max()).mean())

    @property
    def corrected(self) -> Array:
        """The p-value of every statistic, corrected for there being many: its value against the largest ones."""
        observed = self.standardized[:, 0] - COMBINED_TIE * np.abs(self.combined).max()
        return np.where(self.varies, (self.combined >= observed[:, None]).mean(axis=1), 1.0)

    @property
    def loudest(self) -> int:
        """The statistic that is largest as observed."""
        return int(np.where(self.varies, self.standardized[:, 0], -np.inf).argmax())
