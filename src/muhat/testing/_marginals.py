"""How far two samples are apart in each column: energy distances, with corrected p-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, quotient, share_between_cores, slices
from muhat._tolerances import CONSTANT_TOLERANCE
from muhat.data import ColumnMoments
from muhat.testing._permutations import PermutationTable

N_CUTS = 64
"""Quantiles of a column at which distribution functions are compared, if units are permuted."""

N_PLACES = 128
"""The same of many rows that are permuted one by one."""

MAX_VALUES_HELD = 2**17
"""Values of distribution functions held at a time; this number of them fits the cache."""

MAX_COUNTS_HELD = 2**23
"""How many counts of rows by unit, column and cut are held at most (64 MB)."""


MAX_SPREAD_RATIO = 3
"""Standard deviation, over that of a normal column with the same quartiles, of ordinary columns."""

FAR_RANGES, MAX_FAR_SHARE = 10, 0.05
"""Interquartile ranges from the quartiles beyond which values are far, and how many may be."""

NORMAL_RANGE = 1.349
"""The interquartile range of a normal distribution, in standard deviations."""


@dataclass(frozen=True)
class RepeatedValue:
    """The largest or smallest value of a column: it is far from all others and in several rows."""

    value: float
    shares: tuple[float, float]
    """The shares of the rows of both samples that have it."""


@dataclass(frozen=True)
class FeatureDifference:
    """How much two samples differ in one feature, all others left aside."""

    name: str
    share: float
    """The energy distance over 2 E|x − y|: 0 for equal samples, 1 for two constants."""
    shift: float
    """Mean of the second sample minus that of the first, in standard deviations within them; with
    ``medians``, of these, in interquartile ranges over 1.349."""
    p_value: float
    """Corrected for the number of features: exact for the question whether any of them differs."""
    means: tuple[float, float] | None = None
    """The means of both samples, in the column's own units."""
    spreads: tuple[float, float] | None = None
    """The standard deviations of both samples, likewise."""
    is_indicator: bool = False
    """Whether the column has the values 0 and 1 only: the means are then shares of rows."""
    differs_in: str = "mean"
    """What differs most: 'mean', 'share' of an indicator, 'spread', 'mean and spread', 'median', or
    'shape' where none of them clearly does."""
    medians: tuple[float, float] | None = None
    """The medians of both samples, of a column in which few values are far from all others: they
    make its means and standard deviations."""
    repeated: RepeatedValue | None = None
    """A value such as 9999 that is far from all others and more frequent in one sample."""


@dataclass(frozen=True, eq=False)
class ColumnDistances:
    """∫ (F − G)² of every column for every permutation: half the energy distance."""

    integrals: Array
    """Shape (d, B + 1)."""
    shares: Array
    """The observed integral of every column over E|x − y|."""

    @classmethod
    def from_rows(cls, Z: Array, labels: Array) -> ColumnDistances:
        """Return the distances from the rows of the pool; columns of labels are permutations.

        With both distribution functions F and G, the energy distance 2E|x−y| − E|x−x'| − E|y−y'|
        is 2 ∫ (F − G)².
        """
        columns = [SortedColumn.from_values(each) for each in clipped(Z).T]
        return cls.from_columns(columns, labels, lambda each: each.integrals(labels.T))

    @classmethod
    def at_quantiles(cls, Z: Array, labels: Array) -> ColumnDistances:
        """Return them from F − G at some places of each column only, for many rows.

        Shares are those of all rows.
        """
        columns = [SortedColumn.from_values(each) for each in clipped(Z).T]
        numbers = np.ascontiguousarray(labels).view(np.uint8)
        return cls.from_columns(columns, labels, lambda each: each.integrals_at_places(numbers))

    @classmethod
    def from_columns(
        cls, columns: list[SortedColumn], labels: Array, integrals: Callable[[SortedColumn], Array]
    ) -> ColumnDistances:
        """Return the distances from a function that computes those of one column."""
        found = share_between_cores(integrals, columns)
        return cls(np.array(found), np.array([each.share(labels[:, 0]) for each in columns]))

    def features(self, shifts: Array, names: tuple[str, ...]) -> tuple[FeatureDifference, ...]:
        """Return the difference in every column of the pool, the largest first."""
        table = PermutationTable(self.integrals, self.integrals.max(axis=1))
        found = []
        for name, share, shift, p in zip(names, self.shares, shifts, table.corrected, strict=True):
            found.append(FeatureDifference(name, float(share), float(shift), float(p)))
        return tuple(sorted(found, key=_most_different_first))


@dataclass(frozen=True, eq=False)
class SortedColumn:
    """A column of the pool in rising order, in which distribution functions are compared."""

    order: Array
    """The rows by their values."""
    gaps: Array
    """Between neighbouring values, shape (N − 1,)."""

    @classmethod
    def from_values(cls, values: Array) -> SortedColumn:
        """Return a column, sorted."""
        order = values.argsort(kind="stable")
        return cls(order, np.diff(values[order]))

    @property
    def pooled(self) -> Array:
        """The pool's distribution function in every gap."""
        N = len(self.order)
        return np.arange(1, N) / N

    def share(self, observed: Array) -> float:
        """Return ∫ (F − G)² over E|x − y| for one column of labels."""
        first = observed[self.order]
        F, G = (np.cumsum(each)[:-1] / each.sum() for each in (first, ~first))
        largest = float(self.gaps @ (F * (1 - G) + G * (1 - F)))
        if not largest:
            return 0.0
        return float(self.gaps @ (F - G) ** 2) / largest

    def integrals(self, labels: Array) -> Array:
        """Return ∫ (F − G)² for every row of labels."""
        N, n = len(self.order), int(labels[0].sum())
        found = np.empty(len(labels))
        with BLAS_ON_ONE_THREAD:
            for some in slices(0, len(found), max(1, MAX_VALUES_HELD // N)):
                ranked = labels[some].take(self.order, axis=1)
                F = np.cumsum(ranked, axis=1, dtype=np.int32)[:, :-1] / n
                # The pool's distribution function is a mean of F and G: F − G = (F − pool) N/m.
                found[some] = (N / (N - n)) ** 2 * ((F - self.pooled) ** 2 @ self.gaps)
        return found

    def integrals_at_places(self, labels: Array) -> Array:
        """Return about the same for every column of labels, which are 0 and 1.

        In each gap (F − G)² has a mean over permutations that is proportional to P (1 − P) of the
        pooled P. It is looked at in the middle of N_PLACES parts of the line that have the same
        mean of the integral, and stands for all of its part: columns with few values are exact but
        for the number of parts.
        """
        N, n = len(self.order), int(labels[:, 0].sum())
        spread = self.pooled * (1 - self.pooled)
        means = np.cumsum(self.gaps * spread)
        middles = (np.arange(N_PLACES) + 0.5) / N_PLACES * means[-1]
        places, parts = np.unique(np.searchsorted(means, middles), return_counts=True)
        ranked = labels[self.order]
        counts = np.empty((len(places), labels.shape[1]))
        start = 0
        for count, place in zip(counts, places, strict=True):
            ranked[start : place + 1].sum(axis=0, dtype=np.uint32, out=count)
            start = place + 1
        F = np.cumsum(counts, axis=0) / n
        widths = parts / N_PLACES * means[-1] / spread[places]
        return (N / (N - n)) ** 2 * (widths @ (F - self.pooled[places, None]) ** 2)


def in_units(rows: Array) -> Array:
    """Return columns in units of a power of two near their largest value: squares stay finite.

    Shares, shifts and p-values do not depend on the unit.
    """
    exponents = np.frexp(np.abs(rows).max(axis=0))[1]
    return np.ldexp(rows, -exponents)


def far_limits(rows: Array, ranges: float = FAR_RANGES) -> tuple[Array, Array]:
    """Return between which values a column counts; infinite, unless few rows make its spread.

    The limits are ``ranges`` interquartile ranges from the quartiles. Labels have no say in it, so
    that p-values stay exact.
    """
    first, third = np.quantile(rows, [0.25, 0.75], axis=0)
    width = third - first
    low, high = first - FAR_RANGES * width, third + FAR_RANGES * width
    far_share = ((rows < low) | (rows > high)).mean(axis=0)
    is_far = (width > 0) & (rows.std(axis=0) > MAX_SPREAD_RATIO * width / NORMAL_RANGE)
    is_far &= far_share <= MAX_FAR_SHARE
    low, high = first - ranges * width, third + ranges * width
    return np.where(is_far, low, -np.inf), np.where(is_far, high, np.inf)


def clipped(rows: Array, ranges: float = FAR_RANGES) -> Array:
    """Return columns in units of a power of two, few values far from all others brought near."""
    scaled = in_units(rows)
    return in_units(np.clip(scaled, *far_limits(scaled, ranges)))


def shifts_between(x: ColumnMoments, y: ColumnMoments) -> Array:
    """Return the shift of every column, y minus x, in standard deviations within both.

    The spread of the pool contains the shift itself, and would let none exceed 2 between samples
    of one size. It serves only where both samples are constant.
    """
    both = x + y
    unit_x = np.minimum(x.unit / both.unit, 1)  # the unit of a column of zeros is arbitrary
    unit_y = np.minimum(y.unit / both.unit, 1)
    # Rows less a mean for each sample, as in the standard deviations that verdicts show.
    degrees = max(1, x.count + y.count - 2)
    spread_x = unit_x * np.where(x.is_constant, 0, np.sqrt(x.squares / degrees))
    spread_y = unit_y * np.where(y.is_constant, 0, np.sqrt(y.squares / degrees))
    within = np.hypot(spread_x, spread_y)  # without squares, as those of tiny numbers vanish
    spread = np.where(within > 0, within, np.sqrt(both.squares / both.count))
    shift = y.mean * unit_y - x.mean * unit_x
    return np.divide(shift, spread, out=np.zeros_like(spread), where=both.low < both.high)


def _most_different_first(feature: FeatureDifference) -> tuple[float, float]:
    return feature.p_value, -feature.share


def column_cuts(rows: Array, units: int) -> list[Array]:
    """Return quantiles of every column; fewer if many columns or units would need much memory."""
    cuts = int(np.clip(MAX_COUNTS_HELD // (units * rows.shape[1]), 2, N_CUTS))
    # In units near the largest value: between rows that are far apart, quantiles would overflow.
    exponents = np.frexp(np.abs(rows).max(axis=0))[1]
    quantiles = np.quantile(np.ldexp(rows, -exponents), np.arange(1, cuts) / cuts, axis=0)
    return [np.unique(column) for column in np.ldexp(quantiles, exponents).T]


def counts_between(values: Array, cuts: Array, unit: Array, units: int) -> Array:
    """Return how many rows of each unit are between cuts, shape (units, len(cuts) + 1)."""
    cells = len(cuts) + 1
    places = unit * cells + np.searchsorted(cuts, values, side="right")
    return np.bincount(places, minlength=units * cells).reshape(units, cells)


def distances_at_cuts(counts: Sequence[Array], rows: Array, labels: Array) -> ColumnDistances:
    """Return the distance in every column from counts of units of one size.

    ∫ (F − G)² is a sum over the cells around quantiles of ``rows``, which are drawn from the pool.
    """
    first = int(labels[:, 0].sum())
    integrals, largest = np.empty((len(counts), labels.shape[1])), np.empty(len(counts))
    chosen = labels.astype(np.float64)
    scaled = in_units(rows)
    limits = np.transpose(far_limits(scaled))
    cuts_of_columns = column_cuts(scaled, len(labels))
    for column, (cuts, each) in enumerate(zip(cuts_of_columns, counts, strict=True)):
        below = np.cumsum(each[:, :-1], axis=1) / each[0].sum()  # of each unit, at the cuts
        with BLAS_ON_ONE_THREAD:
            F = below.T @ chosen / first
        G = (below.sum(axis=0)[:, None] - first * F) / (len(labels) - first)
        ends = scaled[:, column].min(), scaled[:, column].max()
        edges = np.concatenate([ends[:1], (cuts[1:] + cuts[:-1]) / 2, ends[1:]])
        widths = np.diff(np.clip(edges, *limits[column]))
        integrals[column] = widths @ (F - G) ** 2
        largest[column] = widths @ (F[:, 0] * (1 - G[:, 0]) + G[:, 0] * (1 - F[:, 0]))
    shares = np.divide(integrals[:, 0], largest, out=np.zeros_like(largest), where=largest > 0)
    return ColumnDistances(integrals, shares)


def mean_scores_at_cuts(counts: Sequence[Array], scores: Callable[[Array], Array]) -> Array:
    """Return the mean score of every unit's ranks, where rows between two cuts are ties.

    Ranks are shares of all rows.
    """
    found = []
    for each in counts:
        filled = each[:, each.sum(axis=0) > 0]
        of_cells = filled.sum(axis=0)
        shares = (np.cumsum(of_cells) - of_cells / 2) / of_cells.sum()
        found.append(filled @ scores(shares) / filled.sum(axis=1))
    return np.array(found).T


def largest_mean_difference(columns: Array, labels: Array) -> Array:
    """Return the largest |mean of X − mean of Y| of each permutation, over the columns of units.

    Each column is in its standard deviations under permutation, which are proportional to those of
    its values: shape (1, B + 1).
    """
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    is_constant = norms <= CONSTANT_TOLERANCE * np.linalg.norm(columns, axis=0)
    scaled = quotient(centred, np.where(is_constant, 0.0, norms))
    found = np.empty((1, labels.shape[1]))
    with BLAS_ON_ONE_THREAD:
        for some in slices(0, labels.shape[1], max(1, MAX_VALUES_HELD // len(labels))):
            sums = scaled.T @ labels[:, some].astype(np.float64)
            found[0, some] = np.abs(sums).max(axis=0)
    return found
