"""Drawing rows and dealing them out to folds, so that it does not matter how they are batched or where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.data._batches import SampleBatch

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def scrambled(numbers: Array, seed: int) -> Array:
    """Return 64 bits that look random for each whole number: those of SplitMix64 at that place of its sequence."""
    with np.errstate(over="ignore"):
        bits = (numbers.astype(np.uint64) + np.uint64(seed % 2**64) * np.uint64(0xD1342543DE82EF95)) * STEP
        for shift, factor in MIX:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        return bits ^ (bits >> np.uint64(31))


def folds_of(X: Array, n_splits: int, seed: int) -> Array:
    """Return the fold of every row, which depends on its numbers alone; equal rows are dealt out in turn."""
    bits = (X.astype(np.float64) + 0.0).view(np.uint64)  # −0 is 0
    hashed = np.zeros(len(X), np.uint64)
    for column in bits.T:
        hashed = scrambled(hashed ^ column, seed)
    order = np.argsort(hashed, kind="stable")
    ordered = hashed[order]
    first = np.searchsorted(ordered, ordered)  # of those that are equal
    turn = np.empty(len(X), np.uint64)
    turn[order] = np.arange(len(X)) - first
    return ((hashed % np.uint64(n_splits) + turn) % np.uint64(n_splits)).astype(np.int64)


@dataclass(frozen=True)
class ReservoirSample:
    """Rows drawn uniformly without replacement: those whose number's hash is least.

    Two draws add up to the draw from both samples.
    """

    rows: Array
    numbers: Array
    size: int
    seed: int
    count: int
    """The number of rows drawn from."""

    @classmethod
    def from_batch(cls, batch: SampleBatch, size: int, seed: int = 0) -> ReservoirSample:
        """ReservoirSample from a batch."""
        numbers = np.arange(batch.start, batch.start + len(batch.X))
        return cls(batch.X, numbers, size, seed, len(batch.X))._kept()

    def __add__(self, other: ReservoirSample) -> ReservoirSample:
        rows, numbers = np.concatenate([self.rows, other.rows]), np.concatenate([self.numbers, other.numbers])
        return ReservoirSample(rows, numbers, self.size, self.seed, self.count + other.count)._kept()

    def _kept(self) -> ReservoirSample:
        """Return the draw with no more rows than it may have, in their order."""
        order = np.argsort(self.numbers, kind="stable")
        if len(order) > self.size:
            least = np.argpartition(scrambled(self.numbers, self.seed), self.size)[: self.size]
            order = least[np.argsort(self.numbers[least])]
        return ReservoirSample(self.rows[order], self.numbers[order], self.size, self.seed, self.count)
