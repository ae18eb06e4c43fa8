"""Where rows come from when there are too many to hold: batches, over which sums are taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from muhat._arrays import Array, has_finite_sum
from muhat._messages import refusal


class Summable(Protocol):
    """What can be added to its like."""

    def __add__(self, other: Self, /) -> Any: ...


Sum = TypeVar("Sum", bound=Summable)


@dataclass(frozen=True)
class SampleBatch:
    """Some rows of a sample.

    Parameters
    ----------
    X : array of shape (rows, d)
        The rows, finite floats.
    start : int
        The number of rows before them.
    weights : array of shape (rows,), default=None
        Their weights, positive; none is one each.
    """

    X: Array
    start: int
    weights: Array | None = None


class Source(ABC):
    """A sample in batches, over which sums can be taken as often as they are needed."""

    @abstractmethod
    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        """Return the sum of ``work(batch)`` over all batches; the work must not depend on how rows are batched."""


class BatchError(ValueError):
    """A batch that cannot be taken, with one sentence that says which and why.

    Attributes
    ----------
    batch : int
        Its number, from 0.
    row : int or None
        The first row in it that is wrong, from 0; None where it is not a matter of rows.
    """

    def __init__(self, message: str, batch: int, row: int | None = None) -> None:
        super().__init__(message)
        self.batch = batch
        self.row = row

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.args[0], self.batch, self.row)


@dataclass(frozen=True)
class Columns:
    """The columns of a sample: how many, their names if they have any, and the type of their numbers."""

    count: int
    dtype: np.dtype
    names: tuple[str, ...] | None = None

    @classmethod
    def from_batch(cls, X: Array, values: Any) -> Columns:
        """Return the columns of a batch that got as ``values``."""
        return cls(X.shape[1], X.dtype, names_of(values))


def names_of(values: Any) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns, none for an array."""
    return tuple(map(str, values.columns)) if hasattr(values, "columns") else None


def checked_batch(values: Any, number: int, columns: Columns | None = None, first: int | None = None) -> Array:
    """Return a batch as an array of finite floats with two dimensions, or refuse it and say where it is wrong.

    Parameters
    ----------
    values : array or data frame
        The batch.
    number : int
        Its number, from 0.
    columns : Columns, default=None
        The columns it must have, if they are known; it takes the type of their numbers.
    first : int, default=None
        The number of rows before it, if that is known.
    """
    who = f"batch {number}"
    if np.ma.is_masked(values):
        got, advice = "masked ones", "fill or drop them first"
        raise BatchError(refusal(who, "every value must be there", got, advice), number)
    X = np.asarray(values)
    if X.dtype == object:  # a data frame of numbers, truths and whole numbers, some of them missing
        with suppress(TypeError, ValueError):
            X = values.to_numpy(np.float64, na_value=np.nan) if hasattr(values, "columns") else X.astype(np.float64)
    if X.dtype.kind not in "fiub":
        raise BatchError(refusal(who, "numbers are needed", f"values of type {X.dtype}"), number)
    if X.ndim != 2:
        advice = "reshape it with X.reshape(-1, 1) if it is one feature"
        raise BatchError(refusal(who, "two dimensions are needed, points in rows", f"shape {X.shape}", advice), number)
    if columns is not None:
        _check_columns(who, X, values, number, columns)
    if not X.shape[0]:
        advice = "leave empty batches out"
        raise BatchError(refusal(who, "at least one row is needed", "an empty batch", advice), number)
    as_given = X
    if columns is not None:
        with np.errstate(over="ignore"):
            X = X.astype(columns.dtype, copy=False)
    elif X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not has_finite_sum(X):
        wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if wrong.size:
            _refuse_row(who, as_given, X, number, int(wrong[0]), first)
    return np.ascontiguousarray(X)


def _refuse_row(who: str, as_given: Array, X: Array, number: int, row: int, first: int | None) -> None:
    """Refuse a row with a number that is not finite, or no longer is once it has the type of the first batch."""
    needed, advice = "numbers must be finite", "drop or impute that row"
    kind = "NaN" if np.isnan(X[row]).any() else "an infinite value"
    if np.isfinite(as_given[row]).all():
        needed, kind = f"numbers must be finite in {X.dtype}, the type of the first batch", "one that is too large"
        advice = f"give all batches as {as_given.dtype}"
    where = f"{kind} in its row {row}" + ("" if first is None else f" (row {first + row} of all)")
    raise BatchError(refusal(who, needed, where, advice), number, row)


def _check_columns(who: str, X: Array, values: Any, number: int, columns: Columns) -> None:
    advice = "give every batch the same columns, in the same order"
    if X.shape[1] != columns.count:
        needed = f"{columns.count} columns are needed, as the first batch has"
        raise BatchError(refusal(who, needed, X.shape[1], advice), number)
    names = names_of(values)
    if names and columns.names and names != columns.names:
        place = next(place for place, (its, first) in enumerate(zip(names, columns.names, strict=True)) if its != first)
        needed = f"column {place} must be {columns.names[place]!r}, as in the first batch"
        raise BatchError(refusal(who, needed, repr(names[place]), advice), number)
