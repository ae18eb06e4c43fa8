"""Tables in text files, whatever their separator, with or without a header: parsed by pyarrow, explained by us."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO, TextIOWrapper
from itertools import chain, islice, pairwise
from operator import eq
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from muhat._arrays import Array, available_cores, has_finite_sum
from muhat._files import FileError
from muhat._messages import no_column
from muhat.data._formats import (
    LOOKED_AT,
    READABLE,
    DecimalCommaError,
    RowsError,
    Table,
    TableChunk,
    Wanted,
    as_floats,
    check_pyarrow,
    divided,
    is_missing,
    no_rows,
    refuse_unreadable,
)

MISSING = {"", "?", ".", "-", "na", "n/a", "#n/a", "nan", "null", "none"}
BOOLEANS = {"true": 1.0, "false": 0.0}
"""What stands for a missing value and for truth in a text file, in lower case."""

MISSING_WORDS = MISSING - {".", "-", "none"}
"""What stands for a missing value in a column of text, where the others may be values like any."""

DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
"""A number with a decimal comma."""

SEPARATORS = "\t;,| "
"""Tried in this order: a semicolon that divides all rows alike leaves commas to be decimal; a space is any blank."""

SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " "}
"""How separators are named that are hard to type."""

HEAD, FIELDS_LOOKED_AT = 20, 100_000
"""How many lines tell the separator, and the most fields that are looked at to open a file, which may be wide."""

NULLS = sorted(
    {form for each in MISSING for form in (each, each.upper(), each.capitalize())}
    | {"NaN", "#N/A N/A"}
)
"""What pyarrow takes for a missing number."""

CHUNK_CHARACTERS = 2**21
BLOCK_BYTES = 2**19
"""How much of a file is parsed together, and how much of that one thread of pyarrow parses at a time."""

HARDLY = 0.005
"""The chance that a row is all whole numbers below which one that is looks like a header; of its values, a fifth."""

WHOLE = re.compile(r"[+-]?\d+")
BLANKS = re.compile(r"[ \t]+")
BLANK_LINE: list[list[str]] = [[], [""]]
"""The fields of a blank line."""


@dataclass(frozen=True)
class _Line:
    number: int
    """That of the last of its lines, if quotes enclose line breaks."""
    fields: list[str]


class TextTable(Table):
    """A text file, plain or compressed by gzip, whose layout is learnt from its first lines.

    Chunks of it are parsed by pyarrow. One that pyarrow refuses, or that has a missing value, is read once more line by
    line, which finds the line to name, and takes a few notations that pyarrow does not know.
    """

    def __init__(self, path: Path, who: str, wanted: Wanted, separator: str | None = None) -> None:
        check_pyarrow(who)
        self.path, self.who, self.wanted = path, who, wanted
        self.decimal = wanted.decimal
        self.separator = None if separator is None else _checked_separator(who, separator)
        if self.separator == self.decimal:
            needed = "separator and decimal must be two characters"
            raise FileError(who, needed, f"{separator!r} for both")
        lines = self._first_lines()
        if not lines:
            raise no_rows(who, "blank lines only")
        has_row_names = _has_row_names([line.fields for line in lines])
        if has_row_names:
            lines[0].fields.insert(0, "")
        first = lines[0].fields
        has_header = has_row_names or _has_header(lines)
        if has_header and len(lines) == 1:
            raise no_rows(who, "a header only")
        self.width = len(first)
        self.before = lines[0].number if has_header else 0
        titles = first if has_header else [""] * self.width
        self.names = names = self._distinct(
            [title or f"column {place}" for place, title in enumerate(titles, 1)]
        )
        rows = [line.fields for line in lines[has_header:] if len(line.fields) == self.width]
        if has_row_names:
            self._warn(
                "the header has one name less than there are columns: the first are names of rows, left out"
            )
            wanted = replace(wanted, drop=(*wanted.drop, names[0]))
        places = wanted.places(
            who, names, lambda place: all(_is_numeric(row[place]) for row in rows)
        )
        self.kept = places.numbers
        numbers = [field for field in first if _number(field) is not None]
        if has_header and first[0] and numbers:
            named = f"the first line is read as names, though {numbers[0]!r} is a number"
            self._warn(f"{named}; write names above it if it is a row")
        if not has_header and _looks_like_names(first, rows[1:]):
            self._warn(
                "the first line looks like a header and is read as a row of numbers; delete it if it is one"
            )
        if (
            has_header
            and not first[0]
            and wanted.columns is None
            and len(self.kept) > 1
            and self.kept[0] == 0
        ):
            numbers = [row[0] for row in rows]
            if numbers in (
                _counted(0, len(rows)),
                _counted(1, len(rows)),
            ):  # as pandas and R write it: no feature
                self._warn("the first column has no name and counts the rows; it is left out")
                self.kept = self.kept[1:]
        self.columns, self.left_out = divided(names, [*self.kept, *places.text])
        self.columns = self.columns[: len(self.kept)]
        self.text = tuple(names[place] for place in places.text)
        self.not_numbers = {
            names[place]: _first_word(row[place] for row in rows) for place in places.not_numbers
        }
        self.booleans = {
            place for place in self.kept if rows and rows[0][place].lower() in BOOLEANS
        }

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it in chunks of some megabytes, however many rows that is."""
        with _opened(self.path, self.who) as file:
            number = len(list(islice(file, self.before)))
            while text := file.read(CHUNK_CHARACTERS) + file.readline():
                text = "".join(_uncommented(StringIO(text))) if "#" in text else text
                is_quoted, end = text.count('"') % 2 == 1, len(text) + csv.field_size_limit()
                while is_quoted and len(text) < end and (line := file.readline()):
                    text, is_quoted = text + line, is_quoted ^ (line.count('"') % 2 == 1)
                chunk = self._parsed_by_pyarrow(text, words, with_gaps)
                if chunk is None:
                    yield from self._parsed_line_by_line(text, number, words)
                else:
                    yield chunk
                number += text.count("\n")

    def check_words(self, name: str) -> None:
        if name not in self.names:
            raise FileError(no_column(self.who, name, self.names))

    def _distinct(self, names: list[str]) -> list[str]:
        """Return names of which no two are equal: a column with the name of one before it is numbered."""
        distinct: list[str] = []
        for name in names:
            number, new = 1, name
            while new in distinct or (new in names and new != name):
                number += 1
                new = f"{name} ({number})"
            distinct.append(new)
            if new == name:
                continue
            asked = self.wanted.columns or ()
            if name in asked and new not in asked:  # which of them is meant is anybody's guess
                needed = "every column must have a name of its own"
                raise FileError(self.who, needed, f"{name!r} twice", "rename one")
            self._warn(f"two columns are named {name!r}; the later one is called {new!r} here")
        return distinct

    def _parsed_by_pyarrow(
        self, text: str, words: Sequence[str], with_gaps: bool
    ) -> TableChunk | None:
        """Return the rows, or None if something in them is not plainly a number, or missing and ``with_gaps`` false."""
        import pyarrow
        from pyarrow import csv as reader

        has_quotes = '"' in text
        if has_quotes and self._has_odd_quotes(text):
            return None
        if self.separator == " ":
            text = BLANKS.sub(" ", text).replace("\n ", "\n").replace(" \n", "\n").strip(" ")
        kinds = {
            f"{place}": pyarrow.bool_() if place in self.booleans else pyarrow.float64()
            for place in self.kept
        }
        of_words = {name: f"{self.names.index(name)}" for name in words}
        if kinds.keys() & of_words.values():  # numbers as words, which are as they were written
            return None
        try:
            table = reader.read_csv(
                pyarrow.BufferReader(_arrow_buffer(text.encode("utf-8", "surrogateescape"))),
                reader.ReadOptions(
                    use_threads=available_cores() > 1,
                    block_size=max(BLOCK_BYTES, 64 * self.width),
                    column_names=[f"{place}" for place in range(self.width)],
                ),
                reader.ParseOptions(delimiter=self.separator, newlines_in_values=has_quotes),
                reader.ConvertOptions(
                    column_types=kinds | {each: pyarrow.string() for each in of_words.values()},
                    include_columns=[*kinds, *of_words.values()],
                    decimal_point=self.decimal,
                    null_values=NULLS,
                ),
            )
        except pyarrow.ArrowInvalid:
            return None
        values = as_floats(table, list(kinds), np.float64)
        if not has_finite_sum(values):
            refused = np.isinf(values) if with_gaps else ~np.isfinite(values)
            if refused.any():
                return None
        found = {name: _as_words(table.column(each).to_pylist()) for name, each in of_words.items()}
        if not with_gaps and any(is_missing(column).any() for column in found.values()):
            return None
        return TableChunk(self.who, values, found, range(len(values)), "line")

    def _has_odd_quotes(self, text: str) -> bool:
        """Whether the last quote is not closed, or one neither opens nor closes a field, which pyarrow would accept."""
        other = rf'[^\n"{re.escape(str(self.separator))}]'
        return text.count('"') % 2 == 1 or re.search(f'{other}"{other}', text) is not None

    def _parsed_line_by_line(
        self, text: str, number: int, words: Sequence[str]
    ) -> Iterator[TableChunk]:
        """Yield the rows by the rules that are ours, up to the first that they refuse."""
        values: list[list[float]] = []
        found: dict[str, list[str]] = {name: [] for name in words}
        places: list[int] = []
        problem = None
        last = number
        try:
            for line in _split(StringIO(text), self.separator):
                last = number + line.number
                if line.fields not in BLANK_LINE:
                    values.append(self._numbers(line.fields, last))
                    places.append(last)
                    for name, column in found.items():
                        column.append(line.fields[self.names.index(name)])
        except csv.Error as error:
            got = f"broken quotes or fields ({error})"
            problem = RowsError(self.who, READABLE, got, place=f"line {last + 1}", at_row=True)
        except RowsError as error:
            problem = error
        numbers = np.array(values, float).reshape(len(values), len(self.kept))
        yield TableChunk(
            self.who,
            numbers,
            {name: _as_words(each) for name, each in found.items()},
            places,
            "line",
        )
        if problem is not None:
            raise problem

    def _numbers(self, fields: list[str], number: int) -> list[float]:
        """Return the numbers in a row, NaN for what is missing, or refuse it."""
        place = f"line {number}"
        if len(fields) != self.width:
            needed = f"every line must have as many fields as the first, {self.width}"
            raise RowsError(self.who, needed, len(fields), place=place, at_row=True)
        numbers = []
        for name, column in zip(self.columns, self.kept, strict=True):
            field = fields[column]
            value = _number(_with_point(field, self.decimal))
            if value is None and field.lower() not in MISSING:
                _check_text(self.who, field, number)
                if self.decimal != "," and DECIMAL_COMMA.fullmatch(field):
                    raise DecimalCommaError(self.who, name, field, place)
                raise self.wanted.not_numeric(self.who, name, field, place)
            numbers.append(np.nan if value is None else value)
        return numbers

    def _first_lines(self) -> list[_Line]:
        """Return the first lines that are not blank, at least two if there are, and learn the separator from them."""
        found: list[_Line] = []
        with _opened(self.path, self.who) as file:
            lines = _uncommented(file)
            head: list[str] = []
            while sum(not line.isspace() for line in head) < HEAD and (line := next(lines, "")):
                _check_text(self.who, line, len(head) + 1)
                head.append(line)
            self.separator = self.separator or _sniffed(head, self.decimal)
            try:
                for row in _split(chain(head, lines), self.separator):
                    if row.fields not in BLANK_LINE:
                        row = replace(
                            row, fields=[_with_point(field, self.decimal) for field in row.fields]
                        )
                        found.append(row)
                        if len(found) > max(1, min(LOOKED_AT, FIELDS_LOOKED_AT // len(row.fields))):
                            break
            except csv.Error as error:
                if len(found) < 2:
                    raise RowsError(
                        self.who, READABLE, f"broken quotes or fields ({error})"
                    ) from error
        return found

    def _warn(self, sentence: str) -> None:
        warnings.warn(f"{self.who}: {sentence}.", UserWarning, stacklevel=3)


def _checked_separator(who: str, separator: str) -> str:
    """Return a separator that is given as a character or by name, or refuse it."""
    character = SEPARATOR_NAMES.get(separator, separator)
    if (
        len(character) != 1
        or character.isalnum()
        or not character.isascii()
        or character in "\r\n\"'.+-#_"
    ):
        needed = "separator must be one character that is in no number, 'tab' or 'space'"
        raise FileError(who, needed, repr(separator))
    return character


def _arrow_buffer(content: bytes) -> Any:
    """Return bytes in Arrow's own memory.

    One of Arrow's threads may be the last to let go of what it parsed. Memory of Python's would then be released
    without Python's lock, and a process that ends at that moment is aborted (1 in 50, on a busy machine).
    """
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    stream.write(content)
    return stream.getvalue()


@contextmanager
def _opened(path: Path, who: str) -> Iterator[TextIO]:
    """Open a file, plain or compressed, in UTF-8 or UTF-16, and refuse it if it is damaged; all line ends are one."""
    damaged = refuse_unreadable(
        who, EOFError, zlib.error, gzip.BadGzipFile, got="a damaged one ({})"
    )
    with damaged, gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        wide = file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
        try:
            yield TextIOWrapper(file, "utf-16" if wide else "utf-8-sig", "surrogateescape")
        except UnicodeDecodeError as problem:
            raise RowsError(
                who, "text in UTF-8 is needed", "other bytes", advice="save it as UTF-8"
            ) from problem


def _check_text(who: str, text: str, number: int) -> None:
    """Refuse bytes that no text has."""
    place = f"line {number}"
    if "\0" in text:
        raise RowsError(
            who, "text is needed", "binary data", "check that it is a text file", place, at_row=True
        )
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise RowsError(
            who, "text in UTF-8 is needed", "other bytes", "save it as UTF-8", place, at_row=True
        )


def _uncommented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, blank where they are comments; within quotes nothing is a comment."""
    inside = False
    for line in lines:
        if not inside and line.lstrip().startswith("#"):
            yield "\n"
        else:
            inside ^= line.count('"') % 2 == 1
            yield line


def _split(lines: Iterable[str], separator: str | None, *, strict: bool = True) -> Iterator[_Line]:
    """Divide lines, numbered from 1, into fields."""
    if separator == " ":
        lines = (" ".join(line.split()) + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=separator or ",", skipinitialspace=True, strict=strict)
    for fields in reader:
        yield _Line(reader.line_num, [field.strip() for field in fields])


def _sniffed(lines: list[str], decimal: str) -> str:
    """Return the separator that divides the first lines alike, or else the one that divides the first line most."""
    widths = {
        each: [
            len(line.fields)
            for line in _split(lines, each, strict=False)
            if line.fields not in BLANK_LINE
        ]
        for each in SEPARATORS
        if each != decimal
    }
    for names_of_rows in (0, 1):
        for separator, counts in widths.items():
            if len(counts) > names_of_rows and {*counts[1:], counts[0] + names_of_rows} == {
                max(2, counts[-1])
            }:
                return separator
    return max(",;\t|".replace(decimal, ""), key=lambda separator: (widths[separator] or [0])[0])


def _has_header(lines: list[_Line]) -> bool:
    """Whether the first line is names: it has no number, or a word where the second line has a number.

    Names that count from 0 after an empty one are those that pandas gives.
    """
    first = lines[0].fields
    words = [not _is_numeric(field) for field in first]
    if all(_number(field) is None for field in first):
        return any(words)
    if len(first) > 1 and first == ["", *_counted(0, len(first) - 1)]:
        return True
    second = lines[1].fields if len(lines) > 1 else []
    return any(
        word and _number(field) is not None for word, field in zip(words, second, strict=False)
    )


def _has_row_names(lines: list[list[str]]) -> bool:
    """Whether each line has a field more than the first: a name of its row, as R's ``write.table`` puts it.

    Two below one may be a decimal comma, unless the names are words or count; an empty last one is no column.
    """
    first, *rows = lines
    if {len(row) for row in rows} != {len(first) + 1} or not any(row[-1] for row in rows):
        return False
    names = [row[0] for row in rows]
    return len(first) > 1 or not any(map(_is_numeric, names)) or names == _counted(1, len(rows))


def _looks_like_names(first: list[str], rows: list[list[str]]) -> bool:
    """Whether a line of numbers is hardly one of the rows: whole numbers, each once, where the others are none, or
    evenly spaced numbers, three or more, that are not found below; the chances are those of Laplace's rule.
    """
    if not rows or len({*first}) < len(first) or not all(map(WHOLE.fullmatch, first)):
        return False

    def chance(alike: list[list[bool]]) -> float:
        return float(np.prod((np.sum(alike, axis=0) + 1) / (len(rows) + 2)))

    def is_even(line: list[str]) -> bool:
        steps = {
            later - earlier for earlier, later in pairwise(_number(field) or 0.0 for field in line)
        }
        return len(line) > 2 and len(steps) == 1 and 0.0 not in steps

    if chance([[bool(WHOLE.fullmatch(field)) for field in row] for row in rows]) < HARDLY:
        return True
    return (
        is_even(first)
        and not is_even(rows[0])
        and chance([list(map(eq, row, first)) for row in rows]) < HARDLY / 5
    )


def _with_point(field: str, decimal: str) -> str:
    """Return a field whose decimal comma is a point; one with a point is then no number but text."""
    if decimal == ".":
        return field
    if DECIMAL_COMMA.fullmatch(field):
        return field.replace(",", ".")
    return f"'{field}'" if "." in field and _number(field) is not None else field


def _as_words(fields: Sequence[str]) -> Array:
    """Return fields as words, None where one is missing."""
    words = np.empty(len(fields), dtype=object)
    words[:] = [
        None if (word := field.strip()).lower() in MISSING_WORDS else word for field in fields
    ]
    return words


def _first_word(fields: Iterable[str]) -> str:
    """Return the first field that is no number."""
    return next((field for field in fields if not _is_numeric(field)), "")


def _number(field: str) -> float | None:
    """Return what a field says if it is a number or a boolean."""
    try:
        number = float(field)
    except ValueError:
        return BOOLEANS.get(field.lower())
    return None if "_" in field else number


def _is_numeric(field: str) -> bool:
    return _number(field) is not None or field.lower() in MISSING


def _counted(start: int, count: int) -> list[str]:
    """Return the fields of a row or column that counts."""
    return [f"{number}" for number in range(start, start + count)]
