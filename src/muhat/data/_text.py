"""Tables in text files, whatever their separator, with or without a header."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat.data._pieces import READABLE, Piece, Position, kept_columns, no_rows

MISSING = {"", "?", ".", "-", "na", "n/a", "#n/a", "nan", "null", "none"}
"""What stands for a missing value in a text file, in lower case."""

SEPARATORS = "\t;,"
"""Tried in this order: a semicolon that divides all rows alike leaves commas to be decimal."""

HEAD = 20
"""How many lines tell the separator."""

SAMPLE = 4096
"""How many rows tell whether a first column without a name counts the rows, where the file is not read whole."""


@dataclass(frozen=True)
class _Line:
    number: int
    """That of the last of its lines, if quotes hold line breaks."""
    fields: list[str]

    @property
    def blank(self) -> bool:
        return self.fields in ([], [""])


class TextSource:
    """A text file whose layout (separator, header, names) is learnt from its first lines."""

    n = None

    def __init__(self, path: Path, drop: Sequence[str]) -> None:
        self.path = path
        first = self._learnt()
        if not first:
            raise no_rows(path, "blank lines only")
        header = _has_header(first)
        if header and len(first) == 1:
            raise no_rows(path, "a header only")
        self.width = len(first[0].fields)
        self.before = first[0].number if header else 0
        titles = first[0].fields if header else [""] * self.width
        names = [title or f"column {place}" for place, title in enumerate(titles, 1)]
        self.kept = kept_columns(path, names, drop)
        self.names = tuple(names[place] for place in self.kept)
        self.may_count = header and not titles[0] and self.kept[0] == 0 and len(self.kept) > 1

    def _learnt(self) -> list[_Line]:
        """Learn the separator, and return the first two lines that are not blank."""
        with _learning(self.path) as file:
            head = list(islice(file, HEAD))
            _check_text(Position(self.path), head, 0)
            self.separator = _separator(head)
            lines = _split(chain(head, file), self.separator)
            return list(islice((line for line in lines if not line.blank), 2))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns a piece has."""
        return self.names if self._counted_from is None else self.names[1:]

    def whole(self) -> Piece:
        """Read it all at once."""
        [table] = self._read(None)
        counts = self.may_count and _count(self.path, table.values[:, 0]) is not None
        return _without_count(table) if counts else table

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Read it in pieces of at most so many lines."""
        for piece in self._read(rows):
            if self._counted_from is None:
                yield piece
            else:
                _check_count(piece, self._counted_from)
                yield _without_count(piece)

    @cached_property
    def _counted_from(self) -> int | None:
        """What the first column counts the rows from, by the first of them; None if it does not."""
        if not self.may_count:
            return None
        with _learning(self.path) as file:
            lines = (line for line in _split(file, self.separator) if line.number > self.before and not line.blank)
            fields = [line.fields[0] for line in islice(lines, SAMPLE)]
        return _count(self.path, np.array([_number(field) for field in fields], dtype=float))

    def _read(self, rows: int | None) -> Iterator[Piece]:
        """Read all columns that are kept, so many lines at a time (None: all of them)."""
        position = Position(self.path, None if rows is None else 0)
        with _opened(self.path) as file:
            number = self.before
            for _ in islice(file, number):
                pass
            while True:
                try:
                    piece, number = self._next(position, file, rows, number)
                except UnicodeDecodeError as problem:
                    raise _foreign(position, "" if rows is None else f"the lines after {number}") from problem
                if piece is None:
                    return
                if len(piece.values):
                    yield piece
                    position = position.after(len(piece.values))

    def _next(self, position: Position, file: TextIO, rows: int | None, number: int) -> tuple[Piece | None, int]:
        """Return the numbers in the lines after that number, None at the end, and the number of the last line."""
        lines = list(islice(file, rows))
        if not lines:
            return None, number
        _check_text(position, lines, number)
        values = self._plain(lines)
        if values is None:
            return self._careful(position, lines, file, number)
        places = range(number + 1, number + 1 + len(lines))
        return Piece(position, values, self.names, places, "line"), places[-1]

    def _plain(self, lines: list[str]) -> Array | None:
        """Return the numbers in lines that hold nothing but numbers, fast, or None if some hold anything else."""
        breaks = self.width - 1
        if any(line.count(self.separator) != breaks or '"' in line or line.isspace() for line in lines):
            return None
        try:
            return np.loadtxt(lines, delimiter=self.separator, comments=None, usecols=self.kept, ndmin=2)
        except ValueError:
            return None

    def _careful(self, position: Position, lines: list[str], file: TextIO, number: int) -> tuple[Piece, int]:
        """Return the numbers in any lines, and the number of the last: where it breaks in quotes, more are read."""
        rows: list[_Line] = []
        end = number + len(lines)
        try:
            for line in _split(chain(lines, file), self.separator, number):
                number = line.number
                if not line.blank:
                    rows.append(line)
                if number >= end:
                    break
        except csv.Error as problem:
            raise _broken(position, problem, f"line {number + 1}", len(rows)) from problem
        for row, line in enumerate(rows):
            if len(line.fields) != self.width:
                needed = f"every line must have as many fields as the first, {self.width}"
                raise position.refused(needed, len(line.fields), f"line {line.number}", row=row)
        columns = [_column(position, name, rows, place) for place, name in zip(self.kept, self.names, strict=True)]
        return Piece(position, np.stack(columns, axis=1), self.names, [line.number for line in rows], "line"), number


def _opened(path: Path) -> TextIO:
    """Return the file as text, with lines that end as they do in it."""
    with path.open("rb") as file:
        mark = file.read(2)
    encoding = "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return cast(TextIO, path.open(encoding=encoding, newline=""))


@contextmanager
def _learning(path: Path) -> Iterator[TextIO]:
    """Open a file to look at its first lines, and refuse them if they are no text or cannot be divided."""
    try:
        with _opened(path) as file:
            yield file
    except UnicodeDecodeError as problem:
        raise _foreign(Position(path)) from problem
    except csv.Error as problem:
        raise _broken(Position(path), problem) from problem


def _check_text(position: Position, lines: list[str], number: int) -> None:
    """Refuse lines, the first of them after that number, with bytes that no text has."""
    for index, line in enumerate(lines):
        if "\0" in line:
            row = sum(not other.isspace() for other in lines[:index])
            advice = "check that it is a text file"
            raise position.refused("text is needed", "binary data", f"line {number + 1 + index}", advice, row)


def _foreign(position: Position, place: str = "") -> FileError:
    return position.refused("text in UTF-8 is needed", "other bytes", place, "save it as UTF-8")


def _broken(position: Position, problem: csv.Error, place: str = "", row: int = 0) -> FileError:
    return position.refused(READABLE, f"broken quotes or fields ({problem})", place, row=row)


def _split(lines: Iterable[str], separator: str, number: int = 0, *, strict: bool = True) -> Iterator[_Line]:
    """Divide lines, the first of them after that number, into fields."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=strict)
    for fields in reader:
        yield _Line(number + reader.line_num, [field.strip() for field in fields])


def _separator(lines: list[str]) -> str:
    """Return the separator that divides the first lines alike, or else the one that divides the first line most."""
    widths = {
        each: [len(line.fields) for line in _split(lines, each, strict=False) if not line.blank] for each in SEPARATORS
    }
    for separator, counts in widths.items():
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            return separator
    return max(reversed(SEPARATORS), key=lambda separator: (widths[separator] or [0])[0])


def _has_header(lines: list[_Line]) -> bool:
    """Whether the first line is names: it has no number, or a word where the second line has a number."""
    first = lines[0].fields
    if all(_number(field) is None for field in first):
        return any(field.lower() not in MISSING for field in first)
    words = [_number(field) is None and field.lower() not in MISSING for field in first]
    return len(lines) > 1 and any(
        word and _number(field) is not None for word, field in zip(words, lines[1].fields, strict=False)
    )


def _column(position: Position, name: str, lines: list[_Line], place: int) -> Array:
    """Return the numbers of a column, NaN where one is missing."""
    values = np.full(len(lines), np.nan)
    for row, line in enumerate(lines):
        field = line.fields[place]
        number = _number(field)
        if number is not None:
            values[row] = number
        elif field.lower() not in MISSING:
            decimal_comma = re.fullmatch(r"[+-]?\d+,\d+", field)
            advice = "write decimals with a point" if decimal_comma else "drop or encode that column"
            raise position.not_numeric(name, repr(field), f"line {line.number}", advice, row)
    return values


def _number(field: str) -> float | None:
    """Return what a field says if it is a number."""
    try:
        number = float(field)
    except ValueError:
        return None
    return None if "_" in field else number


def _count(path: Path, values: Array) -> int | None:
    """Return what an unnamed first column counts the rows from, as pandas and R write it: it is no feature of the data.

    None if it does not count them.
    """
    for start in (0, 1):
        if np.array_equal(values, np.arange(start, start + len(values))):
            sentence = f"{path}: the first column has no name and counts the rows; it is left out."
            warnings.warn(sentence, UserWarning, stacklevel=2)
            return start
    return None


def _check_count(piece: Piece, start: int) -> None:
    """Refuse a first column that was left out because it counted the rows, and no longer does."""
    first = start + piece.position.row
    wrong = np.flatnonzero(piece.values[:, 0] != np.arange(first, first + len(piece.values)))
    if wrong.size:
        row = int(wrong[0])
        needed = "a first column that has no name and counts the rows must do so to the end"
        got = f"{piece.values[row, 0]:g} for {first + row}"
        place, advice = f"line {piece.places[row]}", f"drop {piece.names[0]!r}, or name it if it is data"
        raise piece.position.refused(needed, got, place, advice, row)


def _without_count(piece: Piece) -> Piece:
    return replace(piece, values=piece.values[:, 1:].copy(), names=piece.names[1:])
