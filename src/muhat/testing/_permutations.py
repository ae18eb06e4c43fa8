"""Permutations, drawn once or enumerated, and the one exact p-value of many statistics that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from math import comb, factorial

import numpy as np
from scipy.special import ndtri

from muhat._arrays import Array, quotient, slices

MAX_RANDOM_HELD = 2**22
"""Random numbers that are held at a time (32 MB)."""

TIE_TOLERANCE = 1e-12
"""Values of a statistic that differ by less than this share of its scale are equal: they count."""

COMBINED_TIE_TOLERANCE = 1e-9
"""The same for the combination, whose rounding is that of the statistics over their standard deviation."""

CONSTANT_TOLERANCE = 1e-6
"""A statistic whose permutations differ by less than this share of its scale has nothing to say."""

SHARPNESS = 5.0
"""How close the combination is to the largest score: at 1 many scores that are large count, at ∞ one is enough."""

MIN_SKEWNESS = 1e-2
"""Skewness below which a law is as good as normal."""


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
        chosen = np.zeros((n_permutations + 1, N), dtype=bool)
        chosen[0] = observed
        for some in slices(1, n_permutations + 1, max(1, MAX_RANDOM_HELD // N)):
            rows = rng.random((some.stop - some.start, N)).argpartition(n - 1, axis=1)[:, :n]
            np.put_along_axis(chosen[some], rows, True, axis=1)
        return cls(chosen.T, False)


def draw_orders(n: int, n_permutations: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """Return orders of n rows, one in each line, the first as observed, and whether they are all there are."""
    if n < 10 and factorial(n) <= n_permutations + 1:
        return np.array(list(permutations(range(n)))), True
    orders = np.tile(np.arange(n), (n_permutations + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    return orders, False


@dataclass(frozen=True, eq=False)
class NullMoments:
    """What permutations of each statistic are distributed like, in theory: its mean, standard deviation and skewness.

    T = Σ_k h_k Z_k² of independent standard normal Z has the mean Σh, the variance 2Σh² and the skewness
    √8 Σh³/(Σh²)^3/2. A law only says on which scale statistics are compared: no p-value relies on it.
    """

    mean: Array
    spread: Array
    skewness: Array

    @classmethod
    def from_squares(
        cls, sums: Array, unit: Array | float, centred: Array | bool = False
    ) -> NullMoments:
        """Return the law of Σ h_k Z_k², less its mean if centred, from Σh, Σh² and Σh³ of each statistic, in rows.

        The h are in a unit of each statistic, so that no power of them is beyond the range of numbers.
        """
        first, second, third = sums
        spread = np.sqrt(2 * second)
        skewness = np.divide(8 * third, spread**3, out=np.zeros_like(third), where=spread > 0)
        return cls(np.where(centred, 0.0, unit * first), unit * spread, skewness)

    @classmethod
    def concatenate(cls, null_moments: Sequence[NullMoments]) -> NullMoments:
        """Return the laws of several groups of statistics as one."""
        return cls(
            *(
                np.concatenate(each)
                for each in zip(
                    *((x.mean, x.spread, x.skewness) for x in null_moments), strict=True
                )
            )
        )

    @classmethod
    def from_values(cls, values: Array) -> NullMoments:
        """Return the mean and standard deviation of the permutations themselves, as of a normal law."""
        return cls(values.mean(axis=1), values.std(axis=1), np.zeros(len(values)))

    def scores(self, values: Array) -> Array:
        """Return the standard normal value as far out as each of the values, by Wilson and Hilferty's cube root."""
        mean, spread, skewness = (each[:, None] for each in (self.mean, self.spread, self.skewness))
        out = np.divide(values - mean, spread, out=np.zeros_like(values), where=spread > 0)
        g = np.maximum(skewness, MIN_SKEWNESS)
        cubed = np.maximum(
            1 + g * out / 2, 1e-3
        )  # of a χ² over its mean; the cube root is steep at zero
        return np.where(skewness < MIN_SKEWNESS, out, 6 / g * (np.cbrt(cubed) - 1) + g / 6)


@dataclass(frozen=True, eq=False)
class Family:
    """Statistics of one kind, whose scores are on one scale: together they have one p-value and one weight."""

    weight: float
    rows: Array
    """The numbers of its statistics in the table."""
    explains: bool = True
    """Whether one of its statistics may be named as the one that found something."""


@dataclass(frozen=True, eq=False)
class PermutationTable:
    """The values T_j(b) of every statistic j for every permutation b, of which b = 0 is as observed.

    Every p-value is exact: where the labels mean nothing the columns are exchangeable, and each is computed by a
    function that treats all columns alike. The p-values of the single statistics are exact one by one; ``p_value`` is
    the one for all of them.

    Within a family, scores are combined by their soft maximum. Scores of statistics that differ in kind are not on one
    scale, as some have far heavier tails than others: families are combined by the ranks p_g(b) of their soft maxima,
    C(b) = Σ_g w_g tan(π(½ − p_g(b))), which is the Cauchy combination of p-values, ranked anew; it is shown as the
    standard normal value that is as far out.
    """

    values: Array
    scales: Array
    """Of each statistic: what its rounding errors are measured in."""
    null_moments: NullMoments | None = None
    """On which scale the statistics of a family are compared with each other."""
    families: tuple[Family, ...] = ()
    """Which statistics are of one kind; without any, all are."""

    def only(self, chosen: Array) -> PermutationTable:
        """Return the table of some of the statistics, given by truth values, as one family."""
        null_moments = self.null_moments and NullMoments(
            self.null_moments.mean[chosen],
            self.null_moments.spread[chosen],
            self.null_moments.skewness[chosen],
        )
        return PermutationTable(self.values[chosen], self.scales[chosen], null_moments)

    @cached_property
    def p_values(self) -> Array:
        """#{b : T_j(b) ≥ T_j(0)}/(B + 1) of every statistic by itself: at least 1/(B + 1), ties count."""
        observed = self.values[:, :1] - TIE_TOLERANCE * self.scales[:, None]
        return (self.values >= observed).mean(axis=1)

    @cached_property
    def standardized(self) -> Array:
        """The normal score of every value by its statistic's law; by mean and spread of the row, if none is known."""
        return (
            NullMoments.from_values(self.values) if self.null_moments is None else self.null_moments
        ).scores(self.values)

    @cached_property
    def varies(self) -> Array:
        """Which statistics some permutation changes: the others have nothing to say."""
        return np.asarray(
            quotient(self.values, self.scales[:, None]).std(axis=1) > CONSTANT_TOLERANCE
        )

    @cached_property
    def varying(self) -> tuple[Family, ...]:
        """The families, without statistics that do not vary and without families that then have none."""
        families = self.families or (Family(1.0, np.arange(len(self.values))),)
        some = [replace(each, rows=each.rows[self.varies[each.rows]]) for each in families]
        return tuple(each for each in some if len(each.rows))

    @cached_property
    def combined(self) -> Array:
        """What is compared between permutations: the soft maximum of one family, the combined ranks of several."""
        if not self.varying:
            return np.zeros(self.values.shape[1])
        maxima = [_soft_maximum(self.standardized[each.rows]) for each in self.varying]
        if len(maxima) == 1:
            return maxima[0]
        most = (
            1 - 0.5 / self.values.shape[1]
        )  # at p = 1 the tangent is −∞, whatever the other families say
        p_values = np.array([np.minimum(_ranked(each), most) for each in maxima])
        weights = np.array([each.weight for each in self.varying])
        cauchy = weights @ np.tan(np.pi * (0.5 - p_values)) / weights.sum()
        return np.asarray(
            -ndtri(np.arctan2(1, cauchy) / np.pi)
        )  # as far out as a standard normal value

    @property
    def p_value(self) -> float:
        """The exact p-value of the combination; of one statistic, its own."""
        if len(self.values) == 1:
            return float(self.p_values[0])
        return float(
            (
                self.combined
                >= self.combined[0] - COMBINED_TIE_TOLERANCE * np.abs(self.combined).max()
            ).mean()
        )

    @cached_property
    def family_p_values(self) -> Array:
        """The p-value of every family that varies by itself, as if it alone had been asked for."""
        return np.array(
            [_ranked(_soft_maximum(self.standardized[each.rows]))[0] for each in self.varying]
        )

    @property
    def corrected(self) -> Array:
        """The p-value of every statistic, corrected for there being many.

        Its score is compared with the largest one of its family in every permutation, and that p-value, over the
        family's weight, with the least of all families in every permutation.
        """
        found = np.ones(len(self.values))
        largest = [self.standardized[each.rows].max(axis=0) for each in self.varying]
        least = np.min(
            [
                _ranked(scores) / each.weight
                for each, scores in zip(self.varying, largest, strict=True)
            ],
            axis=0,
            initial=np.inf,
        )
        for each, scores in zip(self.varying, largest, strict=True):
            observed = self.standardized[each.rows, :1] - _rounding_of(scores)
            within = (scores >= observed).mean(axis=1)
            reached = (1 + COMBINED_TIE_TOLERANCE) * within / each.weight
            found[each.rows] = (least <= reached[:, None]).mean(axis=1)
        return found

    @property
    def largest_statistic(self) -> int:
        """The statistic whose score is largest as observed, in the families with the least p-value."""
        explaining = [each.explains for each in self.varying]
        if not any(explaining):
            return 0
        p_values = np.where(explaining, self.family_p_values, np.inf)
        rows = np.concatenate(
            [
                each.rows
                for each, p in zip(self.varying, p_values, strict=True)
                if p == p_values.min()
            ]
        )
        return int(rows[self.standardized[rows, 0].argmax()])


def _soft_maximum(scores: Array) -> Array:
    """Return log(mean_j exp(c z_j))/c of the scores of every permutation."""
    largest = scores.max(axis=0)
    return np.asarray(
        largest + np.log(np.exp(SHARPNESS * (scores - largest)).mean(axis=0)) / SHARPNESS
    )


def _ranked(scores: Array) -> Array:
    """Return #{b' : s(b') ≥ s(b)}/(B + 1) of every permutation b; scores that differ by rounding are equal."""
    ordered = np.sort(scores)
    return 1 - np.searchsorted(ordered, scores - _rounding_of(scores), side="left") / len(scores)


def _rounding_of(scores: Array) -> float:
    """Return by how much scores that are equal may differ."""
    return float(COMBINED_TIE_TOLERANCE * np.abs(scores).max())
