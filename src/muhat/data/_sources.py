"""A sample as a source of validated batches, over which sums are taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from operator import add
from typing import Any, Self, TypeVar

import numpy as np

from muhat._arrays import (
    Array,
    as_array,
    available_cores,
    has_finite_sum,
    share_between_cores,
)
from muhat._frames import has_dates
from muhat._validation import as_frame
from muhat.errors import MuhatError, message

__all__ = [
    "CHUNK_ROWS",
    "ArraySource",
    "BatchError",
    "Columns",
    "SampleBatch",
    "Source",
    "StreamSource",
    "Sum",
    "TransformedSource",
    "checked_batch",
    "is_empty",
    "names_of",
]

CHUNK_ROWS = 8192
"""Rows that are worked on together: enough for BLAS to be fast, few enough for the cache."""

MIN_CHUNK_ROWS = 512
"""Fewer rows are not worth a core of their own."""

BATCHES_PER_CORE = 2
"""Batches that are read before the cores work on them; as many results are held."""

Sum = TypeVar("Sum")
"""A type whose values can be added."""


@dataclass(frozen=True)
class SampleBatch:
    """Some rows of a sample, finite floats."""

    X: Array
    start: int
    """The number of rows before them."""
    weights: Array | None = None
    """Positive, of shape (rows,); None is one each."""


class Source(ABC):
    """A sample in batches, over which sums can be taken as often as they are needed."""

    @abstractmethod
    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        """Return the sum of ``work(batch)`` over all batches.

        The sum must not depend on how rows are batched.
        """


class LocalSource(Source):
    """Batches that are worked on in this process, each by one core."""

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        return reduce(add, self._each(work))

    def _each(self, work: Callable[[SampleBatch], Sum]) -> Iterator[Sum]:
        """Yield ``work(batch)`` in order; this thread reads some batches, which the cores share."""
        batches = iter(self)
        together = BATCHES_PER_CORE * available_cores()
        while some := list(islice(batches, together)):
            yield from share_between_cores(work, some)

    @abstractmethod
    def __iter__(self) -> Iterator[SampleBatch]:
        """Yield the batches, at least one."""


def _rows_of_chunk(n: int) -> int:
    """Return into chunks of how many rows n are cut: of equal size, so that no core waits long."""
    cores = available_cores()
    per_core = -(-n // (cores * CHUNK_ROWS))
    return max(-(-n // (cores * per_core)), min(MIN_CHUNK_ROWS, CHUNK_ROWS))


@dataclass(frozen=True)
class ArraySource(LocalSource):
    """An array of finite floats in chunks; one that is memory-mapped is never in memory at once."""

    X: Array
    weights: Array | None = None
    first: int = 0
    """The number of rows before the array's own, where it is a part of a sample."""

    def __iter__(self) -> Iterator[SampleBatch]:
        rows = _rows_of_chunk(len(self.X))
        for start in range(0, len(self.X), rows):
            chunk = slice(start, start + rows)
            weights = self.weights
            if weights is not None:
                weights = weights[chunk]
            yield SampleBatch(self.X[chunk], self.first + start, weights)


@dataclass(frozen=True)
class StreamSource(LocalSource):
    """Arrays, data frames or pyarrow tables, read again in each pass; empty ones are skipped.

    Each is checked when it arrives, and joined or cut to chunks. All must have the columns of the
    first, whose type of numbers all take.
    """

    batches: Iterable[Any]

    def __iter__(self) -> Iterator[SampleBatch]:
        start = 0
        for X in self._joined():
            for first in range(0, len(X), CHUNK_ROWS):
                yield SampleBatch(X[first : first + CHUNK_ROWS], start + first)
            start += len(X)
        if not start:
            advice = "give a list of arrays, or an iterator of them"
            needed = "at least one batch is needed in every pass"
            raise MuhatError("batches", needed, "no batch with rows", advice)

    def _joined(self) -> Iterator[Array]:
        """Yield rows in order, small batches joined; an invalid batch raises after them."""
        waiting: list[Array] = []
        start = yielded = 0
        columns = None
        try:
            for number, values in enumerate(map(as_frame, self.batches)):
                if is_empty(values):
                    continue
                X = checked_batch(values, number, columns, start)
                columns = columns or Columns(X.shape[1], X.dtype, names_of(values))
                start += len(X)
                waiting.append(X)
                if start - yielded >= CHUNK_ROWS:
                    yield np.concatenate(waiting)
                    waiting = []
                    yielded = start
        except (Exception, KeyboardInterrupt):
            if waiting:
                yield np.concatenate(waiting)
            raise
        if waiting:
            yield np.concatenate(waiting)


@dataclass(frozen=True)
class TransformedSource(Source):
    """A sample whose rows are transformed batch by batch."""

    source: Source
    change: Callable[[Array], Array]

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        return self.source.total(partial(_on_transformed, work, self.change))


def _on_transformed(
    work: Callable[[SampleBatch], Sum], change: Callable[[Array], Array], batch: SampleBatch
) -> Sum:
    return work(replace(batch, X=change(batch.X)))


class BatchError(MuhatError):
    """Raised for an invalid batch, with one sentence that says which and why.

    ``batch`` is its number, and ``row`` that of the first row in it that is wrong, both from 0;
    None where no row is.
    """

    def __init__(self, message: str, batch: int, row: int | None = None) -> None:
        super().__init__(message)
        self.batch = batch
        self.row = row

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.args[0], self.batch, self.row)


@dataclass(frozen=True)
class Columns:
    """The columns of a sample: their number, their names if any, the type of their numbers."""

    count: int
    dtype: np.dtype
    names: tuple[str, ...] | None = None


def names_of(values: Any) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns, None for an array."""
    if not hasattr(values, "columns"):
        return None
    return tuple(map(str, values.columns))


def is_empty(values: Any) -> bool:
    """Whether a batch has no rows."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return bool(shape[:1] == (0,))
    return isinstance(values, list | tuple) and not values


def checked_batch(
    values: Any, number: int, columns: Columns | None = None, first: int | None = None
) -> Array:
    """Return a batch as finite floats of shape (rows, d); raise BatchError and say where if not.

    It must have the columns, if they are known, and takes the type of their numbers; ``first`` rows
    are before it.
    """
    if np.ma.is_masked(values):
        needed = "batches must not have masked values"
        raise _batch_error(number, needed, "masked ones", "fill or drop them first")
    if has_dates(values):
        needed = "batches must be numeric"
        advice = "drop columns of dates, or convert them to numbers"
        raise _batch_error(number, needed, "dates or times", advice)
    X = _as_numbers(values)
    if X.dtype.kind not in "fiub":
        raise _batch_error(number, "numbers are needed", f"values of type {X.dtype}")
    if X.ndim != 2:
        needed = "two dimensions are needed, points in rows"
        advice = "reshape it with X.reshape(-1, 1) if it is one feature"
        raise _batch_error(number, needed, f"shape {X.shape}", advice)
    if columns is not None:
        _check_columns(X, values, number, columns)
    if not X.shape[0]:
        raise _batch_error(number, "at least one row is needed", "an empty batch")
    as_given = X
    if columns is not None:
        with np.errstate(over="ignore"):
            X = X.astype(columns.dtype, copy=False)
    elif X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not has_finite_sum(X):
        wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if wrong.size:
            raise _bad_row(as_given, X, number, int(wrong[0]), first)
    return np.ascontiguousarray(X)


def _as_numbers(values: Any) -> Array:
    """Return a batch as an array, of numbers if it can be.

    A data frame of numbers, booleans and integers, some of them missing, is an array of objects.
    """
    X = as_array(values)
    if X.dtype != object:
        return X
    try:
        if hasattr(values, "columns"):
            return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
        return X.astype(np.float64)
    except (TypeError, ValueError):
        return X


def _batch_error(
    number: int, needed: str, got: object, advice: str = "", row: int | None = None
) -> BatchError:
    return BatchError(message(f"batch {number}", needed, got, advice), number, row)


def _bad_row(as_given: Array, X: Array, number: int, row: int, first: int | None) -> BatchError:
    """Return the error of a row that is not finite, as given or in the type of the first batch."""
    needed = "numbers must be finite"
    advice = "drop or impute that row"
    kind = "an infinite value"
    if np.isnan(X[row]).any():
        kind = "NaN"
    if np.isfinite(as_given[row]).all():
        needed = f"numbers must be finite in {X.dtype}, the type of the first batch"
        advice = f"give all batches as {as_given.dtype}"
        kind = "a number that is too large for it"
    of_all = ""
    if first is not None:
        of_all = f"row {first + row} of all, "
    where = f"{kind} in its row {row} ({of_all}counted from 0)"
    return _batch_error(number, needed, where, advice, row)


def _check_columns(X: Array, values: Any, number: int, columns: Columns) -> None:
    """Raise BatchError unless a batch has the columns of the first."""
    advice = "give every batch the same columns, in the same order"
    if X.shape[1] != columns.count:
        needed = f"{columns.count} columns are needed, as the first batch has"
        raise _batch_error(number, needed, X.shape[1], advice)
    names = names_of(values)
    if not names or not columns.names:
        return
    for place, (name, expected) in enumerate(zip(names, columns.names, strict=True)):
        if name != expected:
            needed = f"column {place} must be {expected!r}, as in the first batch"
            raise _batch_error(number, needed, repr(name), advice)
