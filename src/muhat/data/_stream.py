"""Rows in this process, a batch at a time: slices of an array, or whatever yields arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import as_frame
from muhat.data._batches import Columns, SampleBatch, Source, Sum, checked_batch

ROWS = 8192
"""Rows worked on at a time: many enough for BLAS, few enough for the cache."""


class LocalSource(Source):
    """Batches that are worked on one after the other."""

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        """Return the sum of ``work(batch)`` over all batches."""
        return reduce(add, map(work, self))

    def __iter__(self) -> Iterator[SampleBatch]:
        raise NotImplementedError


@dataclass(frozen=True)
class ArraySource(LocalSource):
    """An array in slices; one that is mapped from a file is never held as a whole.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows, finite floats.
    weights : array of shape (n,), default=None
        Their weights, positive; none is one each.
    first : int, default=0
        The number of rows before the array's own, where it is a part of a sample.
    """

    X: Array
    weights: Array | None = None
    first: int = 0

    def __iter__(self) -> Iterator[SampleBatch]:
        for start in range(0, len(self.X), ROWS):
            part = slice(start, start + ROWS)
            yield SampleBatch(self.X[part], self.first + start, None if self.weights is None else self.weights[part])


@dataclass(frozen=True)
class StreamSource(LocalSource):
    """Batches from elsewhere, each checked when it comes and cut to a size that fits the cache.

    Parameters
    ----------
    batches : iterable of arrays or data frames
        Iterated anew for each pass. All must have as many columns as the first, whose type of numbers all take.
    """

    batches: Iterable[Any]

    def __iter__(self) -> Iterator[SampleBatch]:
        start = 0
        for X in self._gathered():
            for first in range(0, len(X), ROWS):
                yield SampleBatch(X[first : first + ROWS], start + first)
            start += len(X)
        if not start:
            advice = "give what can be iterated anew, such as a list, or an iterator"
            raise ValueError(refusal("batches", "at least one batch is needed in every pass", "none", advice))

    def _gathered(self) -> Iterator[Array]:
        """Yield rows in order, small batches put together; if one cannot be taken, those before it come first."""
        pending: list[Array] = []
        start, columns = 0, None
        try:
            for number, values in enumerate(map(as_frame, self.batches)):
                X = checked_batch(values, number, columns, start)
                columns = columns or Columns.from_batch(X, values)
                start += len(X)
                pending.append(X)
                if sum(map(len, pending)) >= ROWS:
                    yield np.concatenate(pending)
                    pending = []
        except (Exception, KeyboardInterrupt):
            if pending:
                yield np.concatenate(pending)
            raise
        if pending:
            yield np.concatenate(pending)
