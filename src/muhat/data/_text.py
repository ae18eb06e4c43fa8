"""Tables in text files, whatever their separator, with or without a header: parsed by pyarrow, explained by us."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np

from muhat._arrays import Array, available_cores, has_finite_sum
from muhat._files import FileError
from muhat._messages import refusal
from muhat.data._formats import LOOKED_AT, READABLE, BadRows, Chunk, Wanted, check_pyarrow, no_rows, not_numeric

MISSING = {"", "?", ".", "-", "na", "n/a", "#n/a", "nan", "null", "none"}
"""What stands for a missing value in a text file, in lower case."""

BOOLEANS = {"true": 1.0, "false": 0.0}

SEPARATORS = "\t;,| "
"""Tried in this order: a semicolon that divides all rows alike leaves commas to be decimal; a space is any blank."""

SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " "}
"""How separators are named that are hard to type."""

HEAD = 20
"""How many lines tell the separator."""

FIELDS_LOOKED_AT = 100_000
"""The most fields that are looked at when a file is opened, so that wide files open quickly too."""

CHUNK_BYTES = 2**21
BLOCK_BYTES = 2**19
"""How much of a file is parsed together, and how much of that one thread of pyarrow parses at a time."""

HEAD_BYTES = 2**16
"""How much of a file is read at a time when it is opened."""

BLANKS = re.compile(rb"[ \t]+")
COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)


@dataclass(frozen=True)
class _Line:
    number: int
    """That of the last of its lines, if quotes enclose line breaks."""
    fields: list[str]


@dataclass(frozen=True)
class _Parsed:
    """Rows of some data, how many bytes and lines of it they are, and what is wrong with the row after them, if so.

    Where line breaks are quoted the data may end within a row, which is left to be parsed with the next.
    """

    chunk: Chunk
    size: int
    lines: int
    problem: BadRows | None = None


class TextTable:
    """A text file, plain or compressed by gzip, whose layout is learnt from its first lines.

    Chunks of it are parsed by pyarrow. One that pyarrow refuses, or that has a missing value, is read once more line by
    line, which finds the line to name, and takes a few notations that pyarrow does not know.
    """

    n: int | None = None
    unit: Literal["line", "row"] = "line"

    def __init__(self, path: Path, who: str, wanted: Wanted, separator: str | None = None) -> None:
        check_pyarrow(who)
        self.path, self.who = path, who
        self.separator = "," if separator is None else checked_separator(who, separator)
        lines = self._first_lines(is_given=separator is not None)
        if not lines:
            raise no_rows(who, "blank lines only")
        header = _has_header(lines)
        if header and len(lines) == 1:
            raise no_rows(who, "a header only")
        self._warn_of_numbers_as_names(lines, header)
        self.width = len(lines[0].fields)
        self.before = lines[0].number if header else 0
        titles = lines[0].fields if header else [""] * self.width
        names = [title or f"column {place}" for place, title in enumerate(titles, 1)]
        rows = [line.fields for line in lines[header:] if len(line.fields) == self.width]
        kept = wanted.places(who, names)
        if wanted.columns is None and kept[0] == 0 and not titles[0] and header and len(kept) > 1:
            kept = self._without_row_numbers(kept, [row[0] for row in rows])
        numeric = [all(map(_is_numeric, column)) for column in zip(*rows, strict=True)] or [True] * self.width
        self.kept = wanted.numeric(who, kept, numeric)
        self.columns = tuple(names[place] for place in self.kept)
        self.booleans = {place for place in self.kept if rows and rows[0][place].lower() in BOOLEANS}
        first = [[_number(row[place]) for place in self.kept] for row in rows]
        self.first = np.array(first, float).reshape(-1, len(self.kept))

    def head(self) -> Array:
        """Return the first rows, NaN for what is no number."""
        return self.first

    def at_most(self, rows: int) -> bool:
        """Whether it has no more than so many lines, and so no more rows."""
        with _opened(self.path, self.who) as file:
            return len(list(islice(file, rows + 1))) <= rows

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Read it in chunks of some megabytes, however many rows that is."""
        to_skip, number, rest = self.before, self.before, b""
        for block, is_last in self._blocks(CHUNK_BYTES):
            data, start = rest + block, 0
            while to_skip and (end := data.find(b"\n", start) + 1):
                start, to_skip = end, to_skip - 1
            if to_skip:
                rest = data[start:]
                continue
            end = len(data) if is_last else data.rfind(b"\n") + 1
            parsed = self._parsed(data[start:end], number, is_last)
            rest, number = data[start + parsed.size :], number + parsed.lines
            if len(parsed.chunk.values):
                yield parsed.chunk
            if parsed.problem is not None:
                raise parsed.problem

    def _parsed(self, data: bytes, number: int, is_last: bool) -> _Parsed:
        """Return the rows in complete lines, the first of them after that number."""
        plain = data if b"#" not in data else COMMENT.sub(b"", data)
        has_quotes = b'"' in plain
        if not has_quotes or (len(plain) == len(data) and not self._has_odd_quotes(data)):
            values = self._parsed_by_pyarrow(plain, has_quotes)
            if values is not None:
                return _Parsed(Chunk(values, (), self.who), len(data), data.count(b"\n"))
        return self._parsed_line_by_line(data, number, is_last)

    def _has_odd_quotes(self, data: bytes) -> bool:
        """Whether the last quote is not closed, or one neither opens nor closes a field, which pyarrow would accept."""
        edge = re.escape(self.separator).encode()
        return data.count(b'"') % 2 == 1 or re.search(rb'[^\n"%b]"[^\n"%b]' % (edge, edge), data) is not None

    def _parsed_by_pyarrow(self, data: bytes, has_quotes: bool) -> Array | None:
        """Return the rows, or None if something in them is not plainly a number."""
        import pyarrow
        from pyarrow import csv as reader

        if self.separator == " ":
            data = BLANKS.sub(b" ", data).replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")
        kinds = {f"{place}": pyarrow.bool_() if place in self.booleans else pyarrow.float64() for place in self.kept}
        try:
            table = reader.read_csv(
                pyarrow.BufferReader(data),
                reader.ReadOptions(
                    use_threads=available_cores() > 1,
                    block_size=max(BLOCK_BYTES, 64 * self.width),
                    column_names=[f"{place}" for place in range(self.width)],
                ),
                reader.ParseOptions(delimiter=self.separator, newlines_in_values=has_quotes),
                reader.ConvertOptions(column_types=kinds, include_columns=list(kinds)),
            )
        except pyarrow.ArrowInvalid:
            return None
        values = np.empty((table.num_rows, table.num_columns))
        for place, column in enumerate(table.columns):
            values[:, place] = column.cast(pyarrow.float64()).to_numpy()
        return values if has_finite_sum(values) or np.isfinite(values).all() else None

    def _parsed_line_by_line(self, data: bytes, number: int, is_last: bool) -> _Parsed:
        """Return the rows by the rules that are ours, up to the first that they refuse."""
        lines = data.splitlines(keepends=True)
        values: list[list[float]] = []
        places: list[int] = []
        read, problem = 0, None
        try:
            for line in _split(map(_decoded, lines), self.separator):
                if line.fields not in BLANK:
                    values.append(self._numbers(line.fields, number + line.number))
                    places.append(number + line.number)
                read = line.number
        except csv.Error as error:
            if is_last or str(error) != INCOMPLETE:
                got, place = f"broken quotes or fields ({error})", f"line {number + read + 1}"
                problem = BadRows(self.who, READABLE, got, place, at_row=True)
        except BadRows as error:
            problem = error
        chunk = Chunk(np.array(values, float).reshape(-1, len(self.kept)), places, self.who)
        return _Parsed(chunk, sum(map(len, lines[:read])), read, problem)

    def _numbers(self, fields: list[str], number: int) -> list[float]:
        """Return the numbers in a row, NaN for what is missing, or refuse it."""
        place = f"line {number}"
        if len(fields) != self.width:
            needed = f"every line must have as many fields as the first, {self.width}"
            raise BadRows(self.who, needed, len(fields), place, at_row=True)
        numbers = []
        for name, column in zip(self.columns, self.kept, strict=True):
            field = fields[column]
            value = _number(field)
            if value is None and field.lower() not in MISSING:
                _check_text(self.who, field, number)
                decimal_comma = re.fullmatch(r"[+-]?\d+,\d+", field)
                advice = "write decimals with a point" if decimal_comma else "drop or encode that column"
                raise BadRows(self.who, *not_numeric(name, repr(field), place, advice), at_row=True)
            numbers.append(np.nan if value is None else value)
        return numbers

    def _first_lines(self, is_given: bool) -> list[_Line]:
        """Return the first lines that are not blank, at least two if there are, and learn the separator from them."""
        lines = self._lines()
        head: list[str] = []
        while sum(not line.isspace() for line in _uncommented(head)) < HEAD and (line := next(lines, None)) is not None:
            _check_text(self.who, line, len(head) + 1)
            head.append(line)
        if not is_given:
            self.separator = _sniffed(head)
        found: list[_Line] = []
        try:
            for row in _split(chain(head, lines), self.separator):
                if row.fields not in BLANK:
                    found.append(row)
                    if len(found) > max(1, min(LOOKED_AT, FIELDS_LOOKED_AT // len(row.fields))):
                        break
        except csv.Error as error:
            if len(found) < 2:
                raise BadRows(self.who, READABLE, f"broken quotes or fields ({error})") from error
        lines.close()
        return found

    def _lines(self) -> Generator[str]:
        """Yield the lines of the file, with their ends."""
        rest = b""
        for block, _ in self._blocks(HEAD_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            yield from (_decoded(line) + "\n" for line in lines)
        if rest:
            yield _decoded(rest)

    def _blocks(self, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yield blocks of the file in UTF-8, each with whether it is the last, every line end one character."""
        with _opened(self.path, self.who) as file:
            read = _reader(file)
            block = read(size)
            while block:
                while block.endswith(b"\r") and (more := read(1)):
                    block += more
                following = read(size)
                if b"\r" in block:
                    block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                yield block, not following
                block = following

    def _warn_of_numbers_as_names(self, lines: list[_Line], header: bool) -> None:
        """Warn where it is in doubt whether the first line is names or numbers."""
        first = lines[0].fields
        numbers = [field for field in first if _number(field) is not None]
        if header and numbers and first[0]:
            named = f"the first line is read as names, though {numbers[0]!r} is a number"
            warnings.warn(f"{self.who}: {named}; write names above it if it is a row.", UserWarning, stacklevel=2)
        if not header and len(first) > 1 and len(lines) > 1 and first == [f"{place}" for place in range(len(first))]:
            counted = "the first line counts the columns from 0, as a header may, and is read as a row of numbers"
            warnings.warn(f"{self.who}: {counted}; delete it if it is a header.", UserWarning, stacklevel=2)

    def _without_row_numbers(self, kept: list[int], fields: list[str]) -> list[int]:
        """Leave out an unnamed first column that counts the rows, as pandas and R write it: it is no feature."""
        if not _counts(fields):
            return kept
        sentence = f"{self.who}: the first column has no name and counts the rows; it is left out."
        warnings.warn(sentence, UserWarning, stacklevel=2)
        return kept[1:]


BLANK: list[list[str]] = [[], [""]]
"""The fields of a blank line."""

INCOMPLETE = "unexpected end of data"
"""What Python's csv says where quotes are not closed."""


def checked_separator(who: str, separator: str) -> str:
    """Return a separator that is given as a character or by name, or refuse it."""
    character = SEPARATOR_NAMES.get(separator, separator)
    if len(character) != 1 or character.isalnum() or not character.isascii() or character in "\r\n\"'.+-#_":
        needed = "separator must be one character that is in no number, 'tab' or 'space'"
        raise FileError(refusal(who, needed, repr(separator)))
    return character


@contextmanager
def _opened(path: Path, who: str) -> Iterator[BinaryIO]:
    """Open a file, plain or compressed, and refuse it if it is neither or no text."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise BadRows(who, READABLE, f"a damaged one ({problem})") from problem
    except UnicodeDecodeError as problem:
        raise BadRows(who, "text in UTF-8 is needed", "other bytes", advice="save it as UTF-8") from problem


def _reader(file: BinaryIO) -> Callable[[int], bytes]:
    """Return a function that reads so many bytes or characters, in UTF-8 and without a byte order mark."""
    mark = file.read(3)
    if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):
        file.seek(0)
        text = TextIOWrapper(file, encoding="utf-16", newline="")
        return lambda size: text.read(size).encode()
    if mark != b"\xef\xbb\xbf":
        file.seek(0)
    return file.read


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _check_text(who: str, text: str, number: int) -> None:
    """Refuse bytes that no text has."""
    place = f"line {number}"
    if "\0" in text:
        raise BadRows(who, "text is needed", "binary data", place, "check that it is a text file", at_row=True)
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise BadRows(who, "text in UTF-8 is needed", "other bytes", place, "save it as UTF-8", at_row=True)


def _uncommented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, blank where they are comments; within quotes nothing is a comment."""
    inside = False
    for line in lines:
        if not inside and line.lstrip().startswith("#"):
            yield "\n"
        else:
            inside ^= line.count('"') % 2 == 1
            yield line


def _split(lines: Iterable[str], separator: str, *, strict: bool = True) -> Iterator[_Line]:
    """Divide lines, numbered from 1, into fields."""
    lines = _uncommented(lines)
    if separator == " ":
        lines = (" ".join(line.split()) + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=strict)
    for fields in reader:
        yield _Line(reader.line_num, [field.strip() for field in fields])


def _sniffed(lines: list[str]) -> str:
    """Return the separator that divides the first lines alike, or else the one that divides the first line most."""
    widths = {
        each: [len(line.fields) for line in _split(lines, each, strict=False) if line.fields not in BLANK]
        for each in SEPARATORS
    }
    for separator, counts in widths.items():
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            return separator
    return max(",;\t|", key=lambda separator: (widths[separator] or [0])[0])


def _has_header(lines: list[_Line]) -> bool:
    """Whether the first line is names: it has no number, or a word where the second line has a number.

    Names that count from 0 after an empty one are those that pandas gives.
    """
    first = lines[0].fields
    if all(_number(field) is None for field in first):
        return any(field.lower() not in MISSING for field in first)
    if len(first) > 1 and first == ["", *map(str, range(len(first) - 1))]:
        return True
    words = [_number(field) is None and field.lower() not in MISSING for field in first]
    return len(lines) > 1 and any(
        word and _number(field) is not None for word, field in zip(words, lines[1].fields, strict=False)
    )


def _number(field: str) -> float | None:
    """Return what a field says if it is a number or a boolean."""
    try:
        number = float(field)
    except ValueError:
        return BOOLEANS.get(field.lower())
    return None if "_" in field else number


def _is_numeric(field: str) -> bool:
    return _number(field) is not None or field.lower() in MISSING


def _counts(fields: list[str]) -> bool:
    """Whether fields count from 0 or 1."""
    numbers = [_number(field) for field in fields]
    return any(numbers == list(range(start, start + len(numbers))) for start in (0, 1))
