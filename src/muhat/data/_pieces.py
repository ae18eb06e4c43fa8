"""Pieces of a table, the whole of it being one: what is asked of every format, and how a bad place in it is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import refusal, unknown_name
from muhat.data._errors import FileBatchError

LISTED = 3
"""How many places an error names."""

READABLE = "a readable file is needed"


@dataclass(frozen=True)
class Position:
    """Where a piece begins: in which file, which batch (None if the table is read whole) and after how many rows."""

    path: Path
    batch: int | None = None
    row: int = 0

    def after(self, rows: int) -> Position:
        """Return where the next piece of the same file begins."""
        return self if self.batch is None else Position(self.path, self.batch + 1, self.row + rows)

    def refused(self, needed: str, got: object, place: str = "", advice: str = "", row: int | None = None) -> FileError:
        """Return the error of something at a place in this piece, at the given row of it if there is one to blame."""
        batch = "" if self.batch is None else f"batch {self.batch}"
        where = ", ".join(filter(None, (batch, place)))
        sentence = refusal(str(self.path), needed, f"{got} in {where}" if where else got, advice)
        return FileError(sentence) if self.batch is None else FileBatchError(sentence, self.batch, row)

    def not_numeric(self, name: str, value: str, place: str, advice: str, row: int | None = None) -> FileError:
        """Return the error of a value that is no number."""
        return self.refused(f"column {name!r} must be numeric", value, place, advice, row)


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a table in their order, NaN where a value is missing, with the place in the file of each."""

    position: Position
    values: Array
    names: tuple[str, ...]
    places: Sequence[int]
    unit: str
    """What places count: lines (from 1, as editors do) or rows (from 0, as arrays do)."""

    def check_complete(self) -> None:
        """Refuse missing and infinite values by row and column."""
        good = np.isfinite(self.values)
        if good.all():
            return
        rows = np.flatnonzero(~good.all(axis=1)).tolist()
        names = [repr(self.names[column]) for column in np.flatnonzero(~good.all(axis=0))]
        kind = "a missing or infinite value" if len(rows) == 1 else "missing or infinite values"
        unit = self.unit if len(rows) == 1 else self.unit + "s"
        place = f"{unit} {_listed([str(self.places[row]) for row in rows])}"
        place += " of the file" if self.unit == "row" and self.position.batch is not None else ""
        place += f", column{'s' if len(names) > 1 else ''} {_listed(names)}"
        needed, advice = "every value must be there and finite", "drop or impute them first"
        raise self.position.refused(needed, kind, place, advice, rows[0])


class Source(Protocol):
    """A table in a file, of which nothing but its outline has been read yet; it is known to have a row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns a piece has."""

    @property
    def n(self) -> int | None:
        """Number of rows, if the file knows it."""

    def whole(self) -> Piece:
        """Read it all at once."""

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Read it from its start, at most so many rows at a time, never none."""


def kept_columns(path: Path, names: Sequence[str], drop: Sequence[str]) -> list[int]:
    """Return the places of the columns that are not to be dropped."""
    for name in drop:
        if name not in names:
            raise FileError(unknown_name(f"{path}, column to drop", name, names))
    kept = [place for place, name in enumerate(names) if name not in drop]
    if not kept:
        raise FileError(refusal(str(path), "at least one column must be left", "all of them dropped"))
    return kept


def no_rows(path: Path, got: str) -> FileError:
    """Return the error of a file without a row of numbers."""
    return FileError(refusal(str(path), "at least one row of numbers is needed", got))


def reason(problem: Exception) -> str:
    """Return why something failed, without the details of an implementation."""
    return getattr(problem, "strerror", None) or str(problem).split("\n")[0].split(". ")[0].rstrip(".")


def _listed(words: list[str]) -> str:
    """Return the first few words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more
