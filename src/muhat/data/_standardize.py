"""Features brought to mean 0 and variance 1 in batches: one pass for what their columns hold, then as rows come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from muhat._arrays import Array
from muhat.data._batches import SampleBatch, Source, Sum


@dataclass(frozen=True)
class TransformedSource(Source):
    """A sample whose rows are changed as they come.

    Parameters
    ----------
    source : Source
        The rows.
    change : callable
        What is done to an array of them.
    """

    source: Source
    change: Callable[[Array], Array]

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        """Return the sum of ``work(batch)`` over all batches, their rows changed."""
        return self.source.total(partial(_on_changed, work, self.change))


def _on_changed(work: Callable[[SampleBatch], Sum], change: Callable[[Array], Array], batch: SampleBatch) -> Sum:
    return work(SampleBatch(change(batch.X), batch.start, batch.weights))


@dataclass(frozen=True)
class ColumnMoments:
    """Where the columns of a sample lie; two of them add up to that of both samples.

    A column is measured in units of a power of two near its largest value, which rounds nothing and lets no square
    overflow or vanish.

    Parameters
    ----------
    count : int
        The number of rows.
    low, high : arrays of shape (d,)
        The least and the largest value of each column.
    mean, squares : arrays of shape (d,)
        m = (1/n) Σ x_i and Σ (x_i − m)², in units of ``unit``.
    """

    count: int
    low: Array
    high: Array
    mean: Array
    squares: Array

    @classmethod
    def from_batch(cls, batch: SampleBatch) -> ColumnMoments:
        """Return the spread of a batch, in float64."""
        X = batch.X.astype(np.float64, copy=False)
        low, high = X.min(axis=0), X.max(axis=0)
        X = X / _unit(low, high)
        mean = X.mean(axis=0)
        return cls(len(X), low, high, mean, ((X - mean) ** 2).sum(axis=0))

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        mine, its = (np.minimum(each.unit / _unit(low, high), 1) for each in (self, other))  # of zeros, any unit
        count, gap = self.count + other.count, its * other.mean - mine * self.mean
        mean = mine * self.mean + gap * (other.count / count)
        squares = mine**2 * self.squares + its**2 * other.squares + gap**2 * (self.count * other.count / count)
        return ColumnMoments(count, low, high, mean, squares)

    @property
    def unit(self) -> Array:
        """What each column is measured in."""
        return _unit(self.low, self.high)

    def standardized(self, X: Array, center: bool = True) -> Array:
        """Return rows with every column at mean 0 and variance 1 over the whole sample; constant ones become 0.

        Without centring, columns are only scaled. A column is constant if it varies by no more than rounding can make
        it, by scikit-learn's measure.
        """
        unit, variance = self.unit, self.squares / self.count
        mean = np.clip(self.mean, self.low / unit, self.high / unit)  # of a constant column, itself
        rounding = self.count * float(np.finfo(np.float64).eps)
        constant = variance <= rounding * variance + (rounding * mean) ** 2
        return (X / unit - (mean if center else 0)) / np.sqrt(np.where(constant, 1, variance))


def _unit(low: Array, high: Array) -> Array:
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    return np.ldexp(1.0, exponent - 1)
