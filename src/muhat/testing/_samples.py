"""The two samples of a test: their rows, moments of their columns, and counts of equal rows."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from warnings import warn

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_frame, is_dask
from muhat.data import (
    ArraySource,
    ColumnMoments,
    DaskSource,
    DataSet,
    ReservoirSample,
    SampleBatch,
    Source,
    TransformedSource,
    as_source,
)
from muhat.errors import MuhatError
from muhat.testing._copies import RowCounts

MAX_CONSTANT_NAMED = 3
"""Constant columns that the warning lists by name."""


class ConstantColumns(UserWarning):
    """Columns with one value in both samples."""


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass over a sample learns, as sums over batches."""

    drawn: ReservoirSample
    moments: ColumnMoments
    counts: RowCounts

    @classmethod
    def from_batch(cls, batch: SampleBatch, size: int, random_state: int) -> FirstPass:
        """Return what a batch adds."""
        drawn = ReservoirSample.from_batch(batch, size, random_state)
        return cls(drawn, ColumnMoments.from_batch(batch), RowCounts.from_batch(batch))

    def __add__(self, other: FirstPass) -> FirstPass:
        return FirstPass(
            self.drawn + other.drawn, self.moments + other.moments, self.counts + other.counts
        )


@dataclass(frozen=True, eq=False)
class TestSample:
    """One of the two samples: where its rows come from, and a subsample that is held."""

    source: Source
    names: tuple[str, ...] | None
    """Of the columns, if they have names."""
    drawn: ReservoirSample
    """Rows drawn at random; all rows, in their order, where they are few."""
    held: Array | None = None
    """All rows as given, shape (n, d), if they are in memory."""
    moments: ColumnMoments | None = None
    """Of every column; None for row numbers of a matrix, which have no columns."""
    counts: RowCounts | None = None
    scaling: ColumnMoments | None = None
    """What ``drawn`` and ``source`` are standardized by, if they are."""

    @classmethod
    def from_source(
        cls, source: Source, names: Sequence[str] | None, size: int, random_state: int
    ) -> TestSample:
        """Return a source with rows drawn from it, and moments of its columns, in one pass."""
        found = source.total(partial(FirstPass.from_batch, size=size, random_state=random_state))
        drawn = replace(found.drawn, rows=found.drawn.rows.astype(np.float64, copy=False))
        columns = None
        if names is not None:
            columns = tuple(map(str, names))
        held = None
        if len(drawn.rows) == drawn.count:
            held = drawn.rows
        return cls(source, columns, drawn, held, found.moments, found.counts)

    @classmethod
    def from_rows(
        cls, rows: Array, names: tuple[str, ...] | None, size: int, random_state: int
    ) -> TestSample:
        """Return a sample that is in memory; beyond ``size`` rows, some are drawn from it."""
        if len(rows) > size:
            sample = cls.from_source(ArraySource(rows), names, size, random_state)
            return replace(sample, held=rows)
        batch = SampleBatch(rows, 0)
        drawn = ReservoirSample(rows, np.arange(len(rows)), size, random_state, len(rows))
        moments = ColumnMoments.from_batch(batch)
        return cls(ArraySource(rows), names, drawn, rows, moments, RowCounts.from_batch(batch))

    @classmethod
    def from_row_numbers(cls, numbers: Array) -> TestSample:
        """Return a sample of row numbers of a precomputed matrix."""
        n = len(numbers)
        drawn = ReservoirSample(numbers, np.arange(n), n, 0, n)
        return cls(ArraySource(numbers), None, drawn, numbers)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.drawn.count

    @property
    def rows(self) -> Array | None:
        """All rows, standardized if the sample is; None if they are not in memory."""
        if self.held is None:
            return None
        if len(self.drawn.rows) == self.n:
            return self.drawn.rows
        # A large array is standardized only for those who need all of it: here, not before.
        if self.scaling is None:
            return self.held
        return self.scaling.standardized(self.held)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.drawn.rows.shape[1])

    def standardized(self, moments: ColumnMoments) -> TestSample:
        """Return the sample with its columns at mean 0 and variance 1 by the moments of both."""
        drawn = replace(self.drawn, rows=moments.standardized(self.drawn.rows))
        source = TransformedSource(self.source, moments.standardized)
        return replace(self, source=source, drawn=drawn, scaling=moments)

    def only(self, kept: Array) -> TestSample:
        """Return the sample of some of its rows, which are in memory; row numbers stay."""
        assert self.rows is not None
        size, random_state = self.drawn.size, self.drawn.random_state
        some = TestSample.from_rows(self.rows[kept], self.names, size, random_state)
        return replace(some, drawn=replace(some.drawn, numbers=kept[some.drawn.numbers]))


def as_named_source(who: str, X: Any) -> tuple[Source, Sequence[str] | None] | None:
    """Return batches, files or dask with the names of their columns; None for rows in memory."""
    if isinstance(X, np.ndarray | DataSet | range | Set):
        return None
    if is_dask(X) and len(X.shape) == 1:
        if hasattr(X, "to_frame"):
            X = X.to_frame()
        else:
            X = X[:, None]
    source = as_source(who, X)
    if source is None:
        return None
    if isinstance(source, DaskSource):
        return source, source.columns.names
    first = X
    if isinstance(X, list | tuple):
        first = as_frame(X[0])
    return source, getattr(first, "columns", None)


def column_order(who: str, first: tuple[str, ...], second: tuple[str, ...]) -> list[int]:
    """Return where the columns of X are in Y; raise MuhatError unless both have the same ones."""
    missing = [name for name in first if name not in second]
    more = [name for name in second if name not in first]
    if missing:
        got = f"{missing[0]!r} in X but not in Y"
    elif more:
        got = f"{more[0]!r} in Y but not in X"
    else:
        return [second.index(name) for name in first]
    needed, advice = "X and Y must have the same columns", "select columns that both have"
    raise MuhatError(who, needed, got, advice)


def in_column_order(X: Array, order: list[int]) -> Array:
    """Return the columns of X in an order; a function of the module, so that it can be pickled."""
    return np.ascontiguousarray(X[:, order])


def column_names(x: TestSample, y: TestSample) -> tuple[str, ...]:
    """Return the names of the columns, by default by number; none of row numbers."""
    if x.moments is None:
        return ()
    names = x.names or y.names
    return names or tuple(f"column {number}" for number in range(x.n_columns))


def warn_of_constant_columns(x: TestSample, y: TestSample) -> None:
    """Warn of columns that have one value in both samples, unless all have."""
    if x.moments is None or y.moments is None:
        return
    both = x.moments + y.moments
    constant = np.flatnonzero(both.low == both.high)
    if not 0 < len(constant) < len(both.low):
        return
    names = column_names(x, y)
    listed = ", ".join(repr(names[place]) for place in constant[:MAX_CONSTANT_NAMED])
    if len(constant) > MAX_CONSTANT_NAMED:
        listed += ", …"
    if len(constant) == 1:
        which = f"column {listed} is"
    else:
        which = f"columns {listed} are"
    message = f"{which} constant in all rows of both samples, and cannot show a difference."
    warn(message, ConstantColumns, stacklevel=4)
