"""Permutations, and the one exact p-value of many statistics that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from scipy.special import log_ndtr, ndtri

from muhat._arrays import Array, quotient, slices
from muhat._tolerances import COMBINED_TIE_TOLERANCE, CONSTANT_TOLERANCE, TIE_TOLERANCE

MAX_RANDOM_HELD = 2**22
"""Random numbers that are held at a time (32 MB)."""

SINGLE_TIE_TOLERANCE, SINGLE_COMBINED_TIE_TOLERANCE = 1e-5, 1e-4
"""Both for statistics from products in single precision, whose rounding errors are near 1e-6."""

SHARPNESS = 5.0
"""How close the soft maximum is to the largest score: at ∞ it is the largest score itself."""

MIN_SKEWNESS = 1e-2
"""Skewness below which a null distribution is taken as normal."""

LEAST_LOG = -500.0
"""Logarithm of the least factor by which a p-value is extrapolated."""

LEAST_CUBE = 1e-3
"""A χ² over its mean is kept above this, where the cube root is not steep."""


@dataclass(frozen=True, eq=False)
class Relabelings:
    """Which rows form the first sample: boolean, shape (N, B + 1), column 0 as observed."""

    labels: Array
    is_complete: bool
    """Whether these are all relabelings, instead of random ones."""

    @classmethod
    def draw(cls, observed: Array, n_permutations: int, rng: np.random.Generator) -> Relabelings:
        """Return the observed labels and random permutations; all relabelings if they are few."""
        N, n = len(observed), int(observed.sum())
        if comb(N, n) <= n_permutations + 1:
            return cls(_all_relabelings(observed), True)
        chosen = np.zeros((n_permutations + 1, N), dtype=bool)
        chosen[0] = observed
        for some in slices(1, n_permutations + 1, max(1, MAX_RANDOM_HELD // N)):
            chosen[some] = _smallest(rng.random((some.stop - some.start, N)), n)
        return cls(chosen.T, False)


def _smallest(values: Array, n: int) -> Array:
    """Return which are the n smallest values of each row."""
    chosen = values <= np.partition(values, n - 1, axis=1)[:, n - 1, None]
    for row in np.flatnonzero(np.count_nonzero(chosen, axis=1) != n):  # equal values
        chosen[row] = False
        chosen[row, values[row].argsort(kind="stable")[:n]] = True
    return chosen


def _all_relabelings(observed: Array) -> Array:
    """Return all relabelings with as many rows in the first sample, that observed first."""
    N, n = len(observed), int(observed.sum())
    rows = np.array(list(combinations(range(N), n)))
    labels = np.zeros((N, len(rows)), dtype=bool)
    labels[rows.T, np.arange(len(rows))] = True
    same = (labels == observed[:, None]).all(axis=0).argmax()
    labels[:, [0, same]] = labels[:, [same, 0]]
    return labels


@dataclass(frozen=True, eq=False)
class NullMoments:
    """Mean, standard deviation and skewness of each statistic under permutation, in theory.

    T = Σ_k h_k Z_k² of independent standard normal Z has the mean Σh, the variance 2Σh² and the
    skewness √8 Σh³/(Σh²)^3/2. They only give statistics a common scale: no p-value relies on them.
    """

    mean: Array
    spread: Array
    skewness: Array

    @classmethod
    def from_squares(
        cls, sums: Array, unit: Array | float, centred: Array | bool = False
    ) -> NullMoments:
        """Return the moments of Σ h_k Z_k², less its mean if centred, from Σh, Σh² and Σh³.

        The h are in a unit of each statistic, so that no power of them overflows.
        """
        first, second, third = sums
        spread = np.sqrt(2 * second)
        skewness = np.divide(8 * third, spread**3, out=np.zeros_like(third), where=spread > 0)
        return cls(np.where(centred, 0.0, unit * first), unit * spread, skewness)

    @classmethod
    def concatenate(cls, parts: Sequence[NullMoments]) -> NullMoments:
        """Return the moments of several groups of statistics as one."""
        return cls(
            np.concatenate([each.mean for each in parts]),
            np.concatenate([each.spread for each in parts]),
            np.concatenate([each.skewness for each in parts]),
        )

    @classmethod
    def from_values(cls, values: Array) -> NullMoments:
        """Return the mean and standard deviation of the permutations, without skewness."""
        return cls(values.mean(axis=1), values.std(axis=1), np.zeros(len(values)))

    def take(self, chosen: Array) -> NullMoments:
        """Return the moments of some of the statistics."""
        return NullMoments(self.mean[chosen], self.spread[chosen], self.skewness[chosen])

    def scores(self, values: Array) -> Array:
        """Return normal scores of values, by Wilson and Hilferty's cube root."""
        mean, spread, skewness = self.mean[:, None], self.spread[:, None], self.skewness[:, None]
        out = np.divide(values - mean, spread, out=np.zeros_like(values), where=spread > 0)
        g = np.maximum(skewness, MIN_SKEWNESS)
        # A χ² over its mean, kept away from zero, where the cube root is steep.
        cubed = np.maximum(1 + g * out / 2, LEAST_CUBE)
        return np.where(skewness < MIN_SKEWNESS, out, 6 / g * (np.cbrt(cubed) - 1) + g / 6)

    def values_at(self, score: float) -> Array:
        """Return the value of each statistic that has this normal score: the inverse of scores.

        Where every value has at least this score, it is −∞; where none has it, ∞.
        """
        g = np.maximum(self.skewness, MIN_SKEWNESS)
        root = 1 + (score - g / 6) * g / 6
        out = np.where(self.skewness < MIN_SKEWNESS, score, 2 / g * (root**3 - 1))
        found = self.mean + self.spread * out
        found[(self.skewness >= MIN_SKEWNESS) & (root**3 <= LEAST_CUBE)] = -np.inf
        found[self.spread == 0] = -np.inf if score <= 0 else np.inf
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Family:
    """Statistics of one kind, whose scores are on one scale: one p-value and one weight."""

    weight: float
    rows: Array
    """The numbers of its statistics in the table."""
    explains: bool = True
    """Whether one of its statistics may be named as the largest."""


@dataclass(frozen=True, eq=False)
class PermutationTable:
    """The values T_j(b) of every statistic j and permutation b; b = 0 is as observed.

    Every p-value is exact: where the labels mean nothing the columns are exchangeable, and each is
    computed by a function that treats all columns alike. The p-values of the single statistics are
    exact one by one; ``p_value`` is the one for all of them.

    Within a family, scores are combined by their soft maximum. Scores of statistics that differ in
    kind are not on one scale, as some have far heavier tails than others: families are combined by
    the ranks p_g(b) of their soft maxima, C(b) = Σ_g w_g tan(π(½ − p_g(b))), which is the Cauchy
    combination of p-values, ranked anew; it is shown as the standard normal value that is as far
    out. The least p_g, of the largest soft maximum, is extrapolated beyond 1/(B + 1).
    """

    values: Array
    scales: Array
    """Of each statistic: what its rounding errors are measured in."""
    null_moments: NullMoments | None = None
    """What makes the statistics of a family comparable."""
    families: tuple[Family, ...] = ()
    """Which statistics are of one kind; all, if empty."""
    is_single: bool = False
    """Whether values are from products in single precision, so that more of them are ties."""

    def only(self, chosen: Array) -> PermutationTable:
        """Return the table of some of the statistics, given by truth values, as one family."""
        moments = None
        if self.null_moments is not None:
            moments = self.null_moments.take(chosen)
        values, scales = self.values[chosen], self.scales[chosen]
        return PermutationTable(values, scales, moments, is_single=self.is_single)

    @cached_property
    def p_values(self) -> Array:
        """#{b : T_j(b) ≥ T_j(0)}/(B + 1) of every single statistic; ties count."""
        tolerance = TIE_TOLERANCE
        if self.is_single:
            tolerance = SINGLE_TIE_TOLERANCE
        observed = self.values[:, :1] - tolerance * self.scales[:, None]
        return (self.values >= observed).mean(axis=1)

    @cached_property
    def standardized(self) -> Array:
        """The normal score of every value; without null moments, by those of the row."""
        moments = self.null_moments
        if moments is None:
            moments = NullMoments.from_values(self.values)
        return moments.scores(self.values)

    @cached_property
    def varies(self) -> Array:
        """Which statistics some permutation changes; the others are ignored."""
        return np.asarray(
            quotient(self.values, self.scales[:, None]).std(axis=1) > CONSTANT_TOLERANCE
        )

    @cached_property
    def varying(self) -> tuple[Family, ...]:
        """The families without statistics that do not vary; families without any left go."""
        families = self.families or (Family(1.0, np.arange(len(self.values))),)
        some = [replace(each, rows=each.rows[self.varies[each.rows]]) for each in families]
        return tuple(each for each in some if len(each.rows))

    @cached_property
    def combined(self) -> Array:
        """The combination of all statistics for every permutation, shape (B + 1,)."""
        if not self.varying:
            return np.zeros(self.values.shape[1])
        maxima = [_soft_maximum(self.standardized[each.rows]) for each in self.varying]
        if len(maxima) == 1:
            return maxima[0]
        # At p = 1 the tangent is −∞, whatever the other families' p-values are.
        most = 1 - 0.5 / self.values.shape[1]
        p_values = np.array([np.minimum(self._extrapolated(each), most) for each in maxima])
        weights = np.array([each.weight for each in self.varying])
        cauchy = weights @ (1 / np.tan(np.pi * p_values)) / weights.sum()
        return np.asarray(-ndtri(np.arctan2(1, cauchy) / np.pi))  # as a standard normal value

    @property
    def p_value(self) -> float:
        """The exact p-value of the combination; of one statistic, its own."""
        if len(self.values) == 1:
            return float(self.p_values[0])
        return float((self.combined >= self.combined[0] - self._rounding_of(self.combined)).mean())

    @cached_property
    def family_p_values(self) -> Array:
        """The p-value of every family that varies, as if it were the only one."""
        maxima = [_soft_maximum(self.standardized[each.rows]) for each in self.varying]
        return np.array([self._ranked(each)[0] for each in maxima])

    @property
    def corrected(self) -> Array:
        """The p-value of every statistic, corrected for their number (Westfall and Young).

        Its score is compared with the largest one of its family in every permutation, and that
        p-value, over the family's weight, with the least of all families in every permutation.
        """
        found = np.ones(len(self.values))
        largest = [self.standardized[each.rows].max(axis=0) for each in self.varying]
        least = np.full(self.values.shape[1], np.inf)
        for each, scores in zip(self.varying, largest, strict=True):
            least = np.minimum(least, self._ranked(scores) / each.weight)
        for each, scores in zip(self.varying, largest, strict=True):
            observed = self.standardized[each.rows, 0] - self._rounding_of(scores)
            within = 1 - np.searchsorted(np.sort(scores), observed, side="left") / len(scores)
            reached = (1 + COMBINED_TIE_TOLERANCE) * within / each.weight
            found[each.rows] = np.searchsorted(np.sort(least), reached, side="right") / len(least)
        return found

    @property
    def largest_statistic(self) -> int:
        """The number of the largest observed score, in the families with the least p-value."""
        explaining = [each.explains for each in self.varying]
        if not any(explaining):
            return 0
        p_values = np.where(explaining, self.family_p_values, np.inf)
        places = np.flatnonzero(p_values == p_values.min())
        rows = np.concatenate([self.varying[place].rows for place in places])
        return int(rows[self.standardized[rows, 0].argmax()])

    def _ranked(self, scores: Array) -> Array:
        """Return #{b' : s(b') ≥ s(b)}/(B + 1) of every permutation b, ties up to rounding."""
        least = scores - self._rounding_of(scores)
        return 1 - np.searchsorted(np.sort(scores), least, side="left") / len(scores)

    def _extrapolated(self, scores: Array) -> Array:
        """Return the ranks, that of the largest score divided by how far out it is.

        Ranks end at 1/(B + 1), however large a score is, so that the largest score of a family with
        more weight would always outdo it. Here it is as far below the second largest as the tails
        of a normal distribution are. All permutations are treated alike.
        """
        found = self._ranked(scores)
        second, first = np.partition(scores, -2)[-2:]
        if first - second > self._rounding_of(scores):
            found[scores == first] *= np.exp(max(log_ndtr(-first) - log_ndtr(-second), LEAST_LOG))
        return found

    def _rounding_of(self, scores: Array) -> float:
        """Return by how much equal scores may differ."""
        tolerance = COMBINED_TIE_TOLERANCE
        if self.is_single:
            tolerance = SINGLE_COMBINED_TIE_TOLERANCE
        return float(tolerance * np.abs(scores).max())


def _soft_maximum(scores: Array) -> Array:
    """Return log(mean_j exp(c z_j))/c of the scores of every permutation."""
    largest = scores.max(axis=0)
    mean = np.exp(SHARPNESS * (scores - largest)).mean(axis=0)
    return np.asarray(largest + np.log(mean) / SHARPNESS)
