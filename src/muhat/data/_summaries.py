"""Sums over batches: a uniform subsample and the moments of columns; hashes and folds of rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Array
from muhat.data._sources import SampleBatch

SPLITMIX_STEP = np.uint64(0x9E3779B97F4A7C15)
SPLITMIX_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shift and factor of each round of SplitMix64 (Steele, Lea and Flood 2014)."""

SEED_FACTOR = np.uint64(0xD1342543DE82EF95)
"""Spreads the sequences of different random states."""


def scrambled(numbers: Array, random_state: int) -> Array:
    """Return 64 bits that look random for each whole number, by SplitMix64.

    They are those at that place of its sequence, which ``random_state`` chooses.
    """
    with np.errstate(over="ignore"):
        start = np.uint64(random_state % 2**64) * SEED_FACTOR
        bits = (numbers.astype(np.uint64) + start) * SPLITMIX_STEP
        for shift, factor in SPLITMIX_ROUNDS:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        return bits ^ (bits >> np.uint64(31))


def hashed_rows(X: Array, random_state: int = 0) -> Array:
    """Return 64 bits that look random for each row and depend on its numbers alone: shape (n,)."""
    bits = np.ascontiguousarray(X.astype(np.float64) + 0.0).view(np.uint64)  # −0 is 0
    hashed = np.zeros(len(X), np.uint64)
    for column in bits.T:
        hashed = scrambled(hashed ^ column, random_state)
    return hashed


def folds_of(X: Array, n_splits: int, random_state: int) -> Array:
    """Return the fold of every row, of shape (n,), which depends on its numbers alone.

    Equal rows go to the folds in turn.
    """
    hashed = hashed_rows(X, random_state)
    order = np.argsort(hashed, kind="stable")
    ordered = hashed[order]
    first = np.searchsorted(ordered, ordered)  # of those that are equal
    turn = np.empty(len(X), np.uint64)
    turn[order] = np.arange(len(X)) - first
    return ((hashed % np.uint64(n_splits) + turn) % np.uint64(n_splits)).astype(np.int64)


def places_of(points: Array, rows: Array) -> Array:
    """Return which row each point is, −1 for a point that is no row: shape (points,).

    Of equal rows, each is taken by one point.
    """
    places: dict[bytes, list[int]] = defaultdict(list)
    # Adding 0 makes a negative zero positive. Rows go in backwards, so that the first is popped.
    unsigned = rows + 0
    for place in range(len(rows) - 1, -1, -1):
        places[unsigned[place].tobytes()].append(place)
    found = np.full(len(points), -1, dtype=np.intp)
    for number, point in enumerate(points.astype(rows.dtype) + 0):
        equal = places[point.tobytes()]
        if equal:
            found[number] = equal.pop()
    return found


@dataclass(frozen=True)
class ReservoirSample:
    """A uniform subsample without replacement: the rows whose numbers have the least hashes.

    It does not depend on batches: two of them add up to the subsample of both samples.
    """

    rows: Array
    numbers: Array
    """The places of the rows in the sample, whose order they have."""
    size: int
    """The most rows it keeps."""
    random_state: int
    count: int
    """The number of rows it was drawn from."""

    @classmethod
    def from_batch(cls, batch: SampleBatch, size: int, random_state: int = 0) -> ReservoirSample:
        """Return the subsample of a batch."""
        numbers = np.arange(batch.start, batch.start + len(batch.X))
        return cls(batch.X, numbers, size, random_state, len(batch.X))._cut_to_size()

    def __add__(self, other: ReservoirSample) -> ReservoirSample:
        both = replace(
            self,
            rows=np.concatenate([self.rows, other.rows]),
            numbers=np.concatenate([self.numbers, other.numbers]),
            count=self.count + other.count,
        )
        return both._cut_to_size()

    def _cut_to_size(self) -> ReservoirSample:
        """Return the subsample with no more rows than it may have, in their order."""
        order = np.argsort(self.numbers, kind="stable")
        if len(order) > self.size:
            hashed = scrambled(self.numbers, self.random_state)
            least = np.argpartition(hashed, self.size)[: self.size]
            order = least[np.argsort(self.numbers[least])]
        return replace(self, rows=self.rows[order], numbers=self.numbers[order])


@dataclass(frozen=True)
class ColumnMoments:
    """Range, mean and variance of every column; two of them add up to those of both samples.

    A column is measured in units of a power of two near its largest value, which rounds nothing and
    lets no square overflow or vanish.
    """

    count: float
    """The number of rows, or the sum of their weights."""
    low: Array
    high: Array
    mean: Array
    squares: Array
    """Σ (x_i − mean)²; both in units of ``unit``."""

    @classmethod
    def from_batch(cls, batch: SampleBatch) -> ColumnMoments:
        """Return the moments of a batch, in float64; a row of weight two counts as two rows."""
        X = batch.X.astype(np.float64, copy=False)
        low, high = X.min(axis=0), X.max(axis=0)
        X = X / _unit(low, high)
        if batch.weights is not None:
            count = float(batch.weights.sum())
            mean = batch.weights @ X / count
            return cls(count, low, high, mean, batch.weights @ (X - mean) ** 2)
        mean = X.mean(axis=0)
        return cls(len(X), low, high, mean, ((X - mean) ** 2).sum(axis=0))

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        unit = _unit(low, high)
        own = np.minimum(self.unit / unit, 1)  # zeros may have any unit
        its = np.minimum(other.unit / unit, 1)
        count = self.count + other.count
        gap = its * other.mean - own * self.mean
        mean = own * self.mean + gap * (other.count / count)
        between = gap**2 * (self.count * other.count / count)
        squares = own**2 * self.squares + its**2 * other.squares + between
        return ColumnMoments(count, low, high, mean, squares)

    @property
    def unit(self) -> Array:
        """What each column is measured in."""
        return _unit(self.low, self.high)

    def standardized(self, X: Array, center: bool = True) -> Array:
        """Return rows with every column at mean 0 and variance 1; constant columns become 0.

        Without centring, columns are only scaled. A column is constant if it varies by no more than
        rounding can make it, by scikit-learn's measure.
        """
        scale = np.where(self.is_constant, 1, self.squares / self.count)
        scaled = X / self.unit
        if center:
            scaled = scaled - self._inner_mean
        return scaled / np.sqrt(scale)

    @property
    def is_constant(self) -> Array:
        """Whether each column varies by no more than rounding can make it."""
        variance = self.squares / self.count
        rounding = self.count * float(np.finfo(np.float64).eps)
        return np.asarray(variance <= rounding * variance + (rounding * self._inner_mean) ** 2)

    @property
    def _inner_mean(self) -> Array:
        """The mean, which rounding may not carry out of the range: of a constant column, itself."""
        return np.clip(self.mean, self.low / self.unit, self.high / self.unit)


def _unit(low: Array, high: Array) -> Array:
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    return np.ldexp(1.0, exponent - 1)
