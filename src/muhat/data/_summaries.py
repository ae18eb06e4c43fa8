"""What one pass over a sample learns, as sums over batches: a uniform subsample, moments of columns; and folds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Array
from muhat.data._sources import SampleBatch

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def scrambled(numbers: Array, random_state: int) -> Array:
    """Return 64 bits that look random for each whole number: those of SplitMix64 at that place of its sequence."""
    with np.errstate(over="ignore"):
        bits = (
            numbers.astype(np.uint64)
            + np.uint64(random_state % 2**64) * np.uint64(0xD1342543DE82EF95)
        ) * STEP
        for shift, factor in MIX:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        return bits ^ (bits >> np.uint64(31))


def hashed_rows(X: Array, random_state: int) -> Array:
    """Return 64 bits that look random for each row and depend on its numbers alone."""
    bits = np.ascontiguousarray(X.astype(np.float64) + 0.0).view(np.uint64)  # −0 is 0
    hashed = np.zeros(len(X), np.uint64)
    for column in bits.T:
        hashed = scrambled(hashed ^ column, random_state)
    return hashed


def folds_of(X: Array, n_splits: int, random_state: int) -> Array:
    """Return the fold of every row, which depends on its numbers alone; equal rows go to the folds in turn."""
    hashed = hashed_rows(X, random_state)
    order = np.argsort(hashed, kind="stable")
    ordered = hashed[order]
    first = np.searchsorted(ordered, ordered)  # of those that are equal
    turn = np.empty(len(X), np.uint64)
    turn[order] = np.arange(len(X)) - first
    return ((hashed % np.uint64(n_splits) + turn) % np.uint64(n_splits)).astype(np.int64)


def places_of(points: Array, rows: Array) -> Array:
    """Return which row each point is, −1 where none is left: of equal rows, as many as there are equal points."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for place, row in zip(
        range(len(rows) - 1, -1, -1), rows[::-1] + 0, strict=True
    ):  # no row has a negative zero
        places[row.tobytes()].append(place)
    found = [places[point.tobytes()] for point in points.astype(rows.dtype) + 0]
    return np.array([equal.pop() if equal else -1 for equal in found], dtype=np.intp)


@dataclass(frozen=True)
class ReservoirSample:
    """A uniform subsample without replacement: the rows whose number has the least hash, however they are batched.

    Two of them add up to the subsample of both samples.
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
        rows, numbers = (
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.numbers, other.numbers]),
        )
        return replace(
            self, rows=rows, numbers=numbers, count=self.count + other.count
        )._cut_to_size()

    def _cut_to_size(self) -> ReservoirSample:
        """Return the subsample with no more rows than it may have, in their order."""
        order = np.argsort(self.numbers, kind="stable")
        if len(order) > self.size:
            least = np.argpartition(scrambled(self.numbers, self.random_state), self.size)[
                : self.size
            ]
            order = least[np.argsort(self.numbers[least])]
        return replace(self, rows=self.rows[order], numbers=self.numbers[order])


@dataclass(frozen=True)
class ColumnMoments:
    """Range, mean and variance of every column of a sample; two of them add up to that of both samples.

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
        mine, its = (
            np.minimum(each.unit / _unit(low, high), 1) for each in (self, other)
        )  # of zeros, any unit
        count, gap = self.count + other.count, its * other.mean - mine * self.mean
        mean = mine * self.mean + gap * (other.count / count)
        squares = (
            mine**2 * self.squares
            + its**2 * other.squares
            + gap**2 * (self.count * other.count / count)
        )
        return ColumnMoments(count, low, high, mean, squares)

    @property
    def unit(self) -> Array:
        """What each column is measured in."""
        return _unit(self.low, self.high)

    def standardized(self, X: Array, center: bool = True) -> Array:
        """Return rows with every column at mean 0 and variance 1 over the whole sample; constant ones become 0.

        Without centring, columns are only scaled. A column is constant if it varies by no more than
        rounding can make it, by scikit-learn's measure.
        """
        scale = np.where(self.is_constant, 1, self.squares / self.count)
        return (X / self.unit - (self._inner_mean if center else 0)) / np.sqrt(scale)

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
