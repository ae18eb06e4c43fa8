"""Whether rows that follow each other are alike, as in time series: p-values assume they are not.

Nothing here depends on labels of rows beyond their samples, and no p-value depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, floor, log10
from typing import Any

import numpy as np
from scipy.stats import norm, poisson, rankdata

from muhat._arrays import Array, quotient
from muhat._messages import IN_COMMAND, option

MAX_ROWS, MAX_VALUES = 20_000, 4_000_000
"""Rows of each sample that are looked at, the first ones, and values of all samples together."""

FALSE_ALARMS = 0.001
"""The probability that independent rows are called alike, divided among columns and samples."""

MIN_CORRELATION = 0.2
"""The least rank correlation of neighbouring rows that is named."""

MIN_ROWS_ALONE = 10
"""Rows of a sample from which on it is looked at alone, too, and not only with all others."""

MAX_COLUMNS_FOLLOWED, MAX_SAMPLES_FOLLOWED = 20, 20
"""Columns, the most alike ones, whose autocorrelation time is measured, in the largest samples."""

WINDOW = 5
"""Autocorrelations are summed up to this many autocorrelation times (Sokal 1997, section 3)."""

BLOCK_TIMES, SHORT_BLOCK_TIMES = 5, 3
"""Autocorrelation times that a block should have, and below which it is called too short.

With an autoregression of first order, blocks of five leave a false alarm rate of 6 % at level 5 %,
and blocks of three one of 8 %.
"""

MIN_BLOCKS = 4
"""Blocks of the smaller sample from which on blocks are advised: p can then be 2/70."""


@dataclass(frozen=True)
class RowOrder:
    """The column in which rows that follow each other are most alike, and for how long."""

    column: str
    """Its name."""
    correlation: float
    """The rank correlation of its neighbouring rows."""
    block_length: int
    """Rows that a block needs to depend little on the next one: five autocorrelation times."""

    @classmethod
    def from_samples(
        cls, samples: Sequence[Array], columns: Sequence[str], spacings: Sequence[float] = ()
    ) -> RowOrder | None:
        """Return it for samples whose rows are in their order; None unless it is beyond chance.

        Parameters
        ----------
        samples : sequence of arrays of shape (n, d)
            Rows are compared with their neighbours in the same sample only.
        columns : sequence of str
            The names of the d columns.
        spacings : sequence of float
            For each sample, how many rows there were for each one that was drawn; by default 1.
        """
        d = len(columns)
        most = max(2, min(MAX_ROWS, MAX_VALUES // max(1, d * len(samples))))
        neighbours = _Neighbours.from_samples([rows[:most] for rows in samples])
        found = []
        if d:
            found = list(neighbours.alike())
        if not found:
            return None
        times = []
        for place, _, part in found:
            spacing = min(spacings[part], default=1.0)
            times.append(spacing * neighbours.autocorrelation_time(place, part))
        column, correlation, _ = found[0]
        return cls(columns[column], correlation, _rounded_up(BLOCK_TIMES * max(times)))

    def is_short(self, block_length: int) -> bool:
        """Whether blocks of consecutive rows are too short for this dependence."""
        return block_length * BLOCK_TIMES < SHORT_BLOCK_TIMES * self.block_length

    @property
    def distance(self) -> int:
        """Rows that are this far apart hardly depend on each other: one autocorrelation time."""
        return max(2, ceil(self.block_length / BLOCK_TIMES))

    def alike(self, of: str = "") -> str:
        """Return that neighbouring rows are alike, and how much; ``of`` names some of them."""
        measured = f"(rank correlation {self.correlation:.2f} in {self.column})"
        return f"neighbouring rows{of} are alike {measured}"

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return asdict(self)


MAY_BE_CHANCE = "If they depend on each other, as in a time series, this may be chance"
"""What follows from rows that are alike."""

SORTED = "If independent rows were only sorted, p is right."
"""What else rows that are alike can come from: p does not depend on the order of the rows."""


def row_order_note(
    found: RowOrder | None, n: int, block_length: int | None, verb: str = "use"
) -> str:
    """Return sentences on rows that are alike, of samples with n rows or more; else empty.

    With blocks of rows, there is a sentence only if they are too short for the dependence. The
    ``verb`` comes before the option that helps.
    """
    if found is None:
        return ""
    if block_length is None or block_length == 1:
        caution = f"Caution: {found.alike()}. {MAY_BE_CHANCE}"
        end = f". {SORTED}"
    elif found.is_short(block_length):
        short = f"Caution: blocks of {block_length:,} rows are too short"
        caution = f"{short}, because {found.alike()}. This may be chance"
        end = "."
    else:
        return ""
    if n < MIN_BLOCKS * found.block_length:
        needed = f"blocks of about {found.block_length:,} rows would be needed"
        return f"{caution}, and there are too few rows to tell: {needed}{end}"
    return f"{caution}: {verb} {option('block_length', found.block_length)}{end}"


def pairs_note(found: tuple[RowOrder, RowOrder] | None, n: int) -> str:
    """Return sentences on n pairs of which both sides are alike in neighbouring rows."""
    if found is None:
        return ""
    x, y = found
    of_x = f"in {x.column} (rank correlation {x.correlation:.2f})"
    of_y = f"in {y.column} ({y.correlation:.2f})"
    start = f"Caution: neighbouring rows are alike both {of_x} and {of_y}"
    distance = min(x.distance, y.distance)
    advice = f": keep only one row in {distance:,}"
    if n < MIN_ROWS_ALONE * distance:
        advice = f", and there are too few rows to tell: only about one in {distance:,} counts"
    return f"{start}. {MAY_BE_CHANCE}{advice}. {SORTED}"


def groups_note(found: RowOrder | None) -> str:
    """Return sentences on rows of a group that are alike; empty if none are."""
    if found is None:
        return ""
    clusters = "clusters"
    if IN_COMMAND.get():
        clusters = "--clusters COLUMN"
    advice = f"give units of several rows, such as days, as {clusters}"
    alike = found.alike(" of a group")
    return f"Caution: {alike}. {MAY_BE_CHANCE}: {advice}. {SORTED}"


def _rounded_up(value: float) -> int:
    """Return a number of rows, rounded up to two digits.

    Examples
    --------
    >>> _rounded_up(213.4), _rounded_up(17.2)
    (220, 18)
    """
    unit = 10 ** max(0, floor(log10(value)) - 1)
    return unit * ceil(value / unit)


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """Ranks of all rows, and which of them are followed by a row of the same sample."""

    rows: Array
    """Of all samples, one below the other, shape (N, d)."""
    sizes: Array
    """Rows of every sample, shape (S,)."""

    @classmethod
    def from_samples(cls, samples: Sequence[Array]) -> _Neighbours:
        """Return the rows of samples."""
        return cls(np.concatenate(samples), np.array([len(rows) for rows in samples]))

    @cached_property
    def starts(self) -> Array:
        """The first row of every sample."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def ranks(self) -> Array:
        """Ranks in every column over all rows, from the mean of the row's sample."""
        ranks = rankdata(self.rows, axis=0)
        means = np.add.reduceat(ranks, self.starts) / self.sizes[:, None]
        return np.asarray(ranks - np.repeat(means, self.sizes, axis=0))

    @cached_property
    def sums(self) -> tuple[Array, Array, Array]:
        """Of each sample, the products of neighbours, and squares of the first and the second."""
        first, second = self.ranks.copy(), self.ranks.copy()
        first[self.starts + self.sizes - 1] = 0
        second[self.starts] = 0
        products = np.zeros_like(first)
        products[:-1] = first[:-1] * second[1:]
        parts = (products, first**2, second**2)
        of_products, of_first, of_second = (np.add.reduceat(each, self.starts) for each in parts)
        return of_products, of_first, of_second

    def alike(self) -> Iterator[tuple[int, float, slice]]:
        """Yield columns whose neighbouring rows are alike beyond chance, the most alike first.

        Beside the number of the column there are its correlation, and the samples in which that is
        measured: one of them, or all.
        """
        parts = [slice(0, len(self.sizes))]
        if len(self.sizes) > 1:
            for s in np.flatnonzero(self.sizes >= MIN_ROWS_ALONE).tolist():
                parts.append(slice(s, s + 1))
        level = FALSE_ALARMS / (len(parts) * self.rows.shape[1])
        values = []
        for part in parts:
            products, first, second = (each[part].sum(axis=0) for each in self.sums)
            values.append(quotient(products, np.sqrt(first * second)))
        correlations = np.array(values)
        rows = np.array([self.sizes[part].sum() for part in parts])
        # Of rows in random order it is about normal, of mean 0 and variance 1/n.
        least = np.maximum(MIN_CORRELATION, norm.isf(level) / np.sqrt(rows))
        candidates = np.argwhere(correlations >= least[:, None])
        order = np.argsort(-correlations[tuple(candidates.T)], kind="stable")
        n_found = 0
        for place, column in candidates[order].tolist():
            if self._is_beyond_chance(column, parts[place], level):
                yield column, float(correlations[place, column]), parts[place]
                n_found += 1
            if n_found == MAX_COLUMNS_FOLLOWED:
                return

    def _is_beyond_chance(self, column: int, part: slice, level: float) -> bool:
        """Whether neighbours are alike beyond chance, also where few rows have another value.

        If most rows are equal, the correlation counts how often two of the k others are neighbours.
        In random order that is about a Poisson variable of mean k²/n, far from normal.
        """
        start, end = self.starts[part][0], self.starts[part][-1] + self.sizes[part][-1]
        values = self.rows[start:end, column]
        different, counts = np.unique(values, return_counts=True)
        if 2 * counts.max() <= len(values):
            return True
        is_other = values != different[counts.argmax()]
        starts = self.starts[part] - start
        others = np.add.reduceat(is_other.astype(np.int64), starts)
        is_pair = is_other[:-1] & is_other[1:]
        is_pair[starts[1:] - 1] = False
        expected = (others * (others - 1) / self.sizes[part]).sum()
        return bool(poisson.sf(is_pair.sum() - 1, expected) <= level)

    def autocorrelation_time(self, column: int, part: slice) -> float:
        """Return 1 + 2 Σ ρ_k of a column: how many rows tell as much as one independent row."""
        ranks = self.ranks[:, column]
        size = int(self.sizes[part].max())
        n_fft = 1 << (2 * size - 1).bit_length()
        power = np.zeros(n_fft // 2 + 1)
        largest = np.argsort(-self.sizes[part], kind="stable")[:MAX_SAMPLES_FOLLOWED]
        for s in largest + (part.start or 0):
            start = self.starts[s]
            power += np.abs(np.fft.rfft(ranks[start : start + self.sizes[s]], n_fft)) ** 2
        covariances = np.fft.irfft(power, n_fft)[:size]
        times = 2 * np.cumsum(covariances / covariances[0]) - 1
        is_enough = np.arange(size) >= WINDOW * times
        last = size - 1
        if is_enough.any():
            last = int(is_enough.argmax())
        return max(1.0, float(times[: last + 1].max()))
