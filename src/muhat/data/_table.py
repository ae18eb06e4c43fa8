"""A table in a file, read chunk by chunk; rows with missing values are dropped or raise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from muhat._arrays import Array, has_finite_sum
from muhat._files import FileError
from muhat._messages import option
from muhat._text import agree
from muhat._wording import rows_text
from muhat.data._errors import RowsError, first_listed

__all__ = ["MAX_ROWS_PROBED", "DroppedRows", "FileTable", "TableChunk", "is_missing"]

MAX_ROWS_PROBED = 1000
"""How many rows are looked at when a file is opened, for what its columns seem to hold."""


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some rows of a table: numbers, NaN for a missing one, and words, None for a missing one."""

    who: str
    values: Array
    """Of shape (rows, columns)."""
    words: dict[str, Array]
    """Columns by name, each of shape (rows,)."""
    places: Sequence[int]
    """The numbers of the rows or lines in the file, from 1."""
    unit: str = "data row"
    """What these numbers count."""

    def __getitem__(self, rows: Any) -> TableChunk:
        places = np.asarray(self.places)[rows]
        words = {name: column[rows] for name, column in self.words.items()}
        return replace(self, values=self.values[rows], words=words, places=places)


@dataclass
class DroppedRows:
    """The rows with missing values that were dropped in a pass over a file."""

    n: int = 0
    of: int = 0
    """The number of all rows."""
    columns: Counter[str] = field(default_factory=Counter)
    """How many values each column misses."""
    numbers: list[Array] = field(default_factory=list)
    """The numbers of the dropped rows, from 0."""

    def count(self, names: Sequence[str], missing: Array) -> None:
        """Count the rows of a chunk, given which values are missing: shape (rows, columns)."""
        rows = np.flatnonzero(missing.any(axis=1))
        self.numbers.append(self.of + rows)
        self.of += len(missing)
        self.n += len(rows)
        for name, n in zip(names, missing.sum(axis=0).tolist(), strict=True):
            if n:
                self.columns[name] += n

    def sentence(self) -> str:
        """Return a sentence with these numbers, empty if no row was dropped."""
        if not self.n:
            return ""
        found = ", ".join(f"{name} {count:,}" for name, count in self.columns.most_common())
        return f"Dropped {self.n:,} of {rows_text(self.of)} with missing values ({found})."


def is_missing(words: Array) -> Array:
    """Return which words are None, of shape (rows,)."""
    return np.array([word is None for word in words.tolist()], dtype=bool)


class FileTable(ABC):
    """A table in a file, of which little has been read yet; it is known to have a row."""

    columns: tuple[str, ...]
    """The names of the columns that are read as numbers."""
    text: tuple[str, ...] = ()
    """The names of the columns that are to be indicators of their values."""
    left_out: tuple[str, ...] = ()
    """The names of the columns that are not read."""
    not_numbers: dict[str, object]
    """Those of them that do not hold numbers, each with its first value."""
    comma_columns: tuple[str, ...] = ()
    """Those of these, and of ``text``, that would hold numbers if commas were decimal."""
    n_empty: int = 0
    """How many columns at the end have no name and no value, and are not among the columns."""
    n: int | None = None
    """Number of rows, None for a text file, which does not say."""

    def chunks(
        self, rows: int, words: Sequence[str] = (), dropped: DroppedRows | None = None
    ) -> Iterator[TableChunk]:
        """Read it from its start, about ``rows`` at a time or more, with some columns as words.

        A row with a missing value raises RowsError, or is left out and counted in ``dropped``.
        Infinite numbers raise in either case.
        """
        for chunk in self._read(rows, words, with_gaps=dropped is not None):
            yield from self._without_gaps(chunk, dropped)

    @abstractmethod
    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it from its start; ``with_gaps`` says that missing values need not be located."""

    def check_words(self, name: str) -> None:
        """Raise FileError unless a column of this name can be read as words."""
        raise FileError(name, "a file whose columns have names is needed", "a file without names")

    def _without_gaps(self, chunk: TableChunk, dropped: DroppedRows | None) -> Iterator[TableChunk]:
        """Yield the complete rows of a chunk, and raise RowsError at the first invalid one."""
        gaps = {name: is_missing(column) for name, column in chunk.words.items()}
        if has_finite_sum(chunk.values) and not any(column.any() for column in gaps.values()):
            if dropped is not None:
                dropped.of += len(chunk.values)
            yield chunk
            return
        missing: Array = np.column_stack([np.isnan(chunk.values), *gaps.values()])
        if dropped is not None:
            dropped.count((*self.columns, *chunk.words), missing)
        complete: Array = ~np.asarray(missing.any(axis=1))
        is_wrong = np.isinf(chunk.values).any(axis=1)
        if dropped is None:
            is_wrong |= ~complete
        wrong = np.flatnonzero(is_wrong)
        if not wrong.size:
            yield chunk[complete]
            return
        before = slice(wrong[0])
        yield chunk[before][complete[before]]
        unwanted = missing[wrong]
        if dropped is not None:
            unwanted = np.zeros_like(unwanted)
        raise self._bad_values(chunk[wrong], unwanted)

    def _bad_values(self, chunk: TableChunk, missing: Array) -> RowsError:
        """Return the error of rows with missing or infinite values."""
        infinite: Array = np.zeros_like(missing)
        infinite[:, : chunk.values.shape[1]] = np.isinf(chunk.values)
        names = (*self.columns, *chunk.words)
        found = [repr(names[place]) for place in np.flatnonzero((missing | infinite).any(axis=0))]
        kinds = []
        if missing.any():
            kinds.append("missing")
        if infinite.any():
            kinds.append("infinite")
        kind = " or ".join(kinds)
        if len(chunk.places) > 1:
            got, rows = "some", f"{chunk.unit}s"
        else:
            got, rows = "one", chunk.unit
        counted = ""
        if chunk.unit == "data row":
            counted = " (counted from 1)"
        columns = agree(len(found), "column", "columns")
        place = f"{rows} {first_listed(chunk.places)}{counted}"
        advice = "replace or delete these rows"
        if missing.any():
            advice = f"drop these rows with {option('missing', 'drop')}, or fill them in"
        needed = f"{columns} {first_listed(found)} must have no {kind} values"
        return RowsError(chunk.who, needed, got, advice, place, at_row=True)
