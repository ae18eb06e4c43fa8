"""The layout of a text file, found from its first lines: separator, header, number of columns."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any, TextIO

from muhat._files import FileError
from muhat.data._errors import READABLE_NEEDED, THOUSANDS, RowsError, no_rows, raise_unreadable
from muhat.data._table import MAX_ROWS_PROBED

__all__ = [
    "BOOLEANS",
    "DECIMAL_COMMA",
    "MISSING",
    "Layout",
    "check_text",
    "counted",
    "have_decimal_commas",
    "is_blank",
    "is_numeric",
    "open_text",
    "read_layout",
    "rows_have_decimal_commas",
    "split_lines",
    "to_number",
    "uncommented",
    "with_point",
]

MISSING = {"", "?", ".", "-", "na", "n/a", "#n/a", "nan", "null", "none"}
"""What stands for a missing number in a text file, in lower case."""

BOOLEANS = {"true": 1.0, "false": 0.0}
"""Booleans of a text file as numbers, in lower case."""

DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
"""A number with a decimal comma."""

SAVE_AS_UTF_8 = "save it as UTF-8 (in Excel: CSV UTF-8)"
"""Advice on files of other encodings."""

SEPARATORS = "\t;,| "
"""Separators in the order they are tried. The semicolon comes before the comma: where it divides
all lines alike, commas may be decimal. A space stands for any blanks."""

SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " "}
"""Names for separators that are hard to type."""

SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=([^\w\n\"'.+#-])\"?\s*", re.IGNORECASE)
"""A first line that tells Excel the separator."""

N_SEPARATOR_LINES = 20
"""How many lines are used to find the separator."""

MAX_FIELDS_PROBED = 100_000
"""The most fields that are looked at when a file is opened, which may be wide."""


@dataclass(frozen=True)
class Line:
    """The fields of one line."""

    number: int
    """The line in the file, from 1; the last of them if quotes enclose line breaks."""
    fields: list[str]


@dataclass(frozen=True)
class Layout:
    """How a text file is to be read, and the fields of its first rows."""

    separator: str
    has_header: bool
    header_lines: int
    """How many lines come before the first row."""
    titles: list[str]
    """The names in the header, empty strings without one."""
    rows: list[list[str]]
    """The first rows, with decimal points."""
    first: list[str]
    """The fields of the first line, header or not."""

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.titles)

    @property
    def width_with_values(self) -> int:
        """The number of columns without those at the end that have no name and no value.

        They come from a separator at the end of every line.
        """
        width = self.width
        while width > 1 and not self.titles[width - 1]:
            if any(row[width - 1] for row in self.rows):
                break
            width -= 1
        return width

    def warnings(self) -> Iterator[str]:
        """Yield the warnings about the header."""
        numbers = [field for field in self.first if to_number(field) is not None]
        if self.has_header and self.first[0] and numbers:
            named = f"the first line is read as names, though {numbers[0]!r} is a number"
            yield f"{named}; if it is a data row, add a line of names above it"
        is_counting = self.first == counted(0, self.width) and self.width > 2
        if is_counting and not self.has_header:  # as pandas numbers columns without names
            found = "the first line looks like a header and is read as a row of numbers"
            yield f"{found}; if it is a header, delete it"

    def counts_rows(self) -> bool:
        """Whether the first column has no name and counts the rows, as pandas and R write it."""
        if not self.has_header or self.first[0]:
            return False
        numbers = [row[0] for row in self.rows]
        return numbers == counted(0, len(numbers)) or numbers == counted(1, len(numbers))


def read_layout(path: Path, who: str, separator: str | None, decimal: str) -> Layout:
    """Return the layout of a file, or raise FileError for a file without rows."""
    if separator is not None:
        separator = _checked_separator(who, separator)
    head = _first_lines(path, who, separator, decimal)
    lines = head.lines
    if not lines:
        raise no_rows(who, "only blank lines")
    has_header = _has_header(lines)
    if has_header and len(lines) == 1:
        raise no_rows(who, "only a header")
    first = lines[0].fields
    titles, header_lines = [""] * len(first), head.skipped
    if has_header:
        titles, header_lines = first, lines[0].number
        lines = lines[1:]
    rows = []
    for line in lines:
        if len(line.fields) == len(first):
            rows.append(line.fields)
    return Layout(
        separator=head.separator,
        has_header=has_header,
        header_lines=header_lines,
        titles=titles,
        rows=rows,
        first=first,
    )


def rows_have_decimal_commas(path: Path, who: str, separator: str | None) -> bool:
    """Whether a text file has numbers with decimal commas, by its first rows.

    So it is taken unless they can be read with decimal points: without such a number, and with a
    header or a number with a point.
    """
    layout = read_layout(path, who, separator, ".")
    fields = list(chain.from_iterable(layout.rows))
    if not fields or any(DECIMAL_COMMA.fullmatch(field) for field in fields):
        return True
    has_point = any("." in field and to_number(field) is not None for field in fields)
    return not (has_point or layout.has_header)


@dataclass(frozen=True)
class _FirstLines:
    """The first lines of a file that are not blank, and the separator, given or found."""

    separator: str
    lines: list[Line]
    skipped: int
    """1 if there is a line before them that names the separator, else 0."""


def _first_lines(path: Path, who: str, separator: str | None, decimal: str) -> _FirstLines:
    """Return the separator and the first lines that are not blank."""
    with open_text(path, who) as file:
        lines = uncommented(file)
        head: list[str] = []
        n_filled = 0
        for line in lines:
            check_text(who, line, len(head) + 1)
            head.append(line)
            n_filled += not line.isspace()
            if n_filled == N_SEPARATOR_LINES:
                break
        named = SEPARATOR_LINE.fullmatch("".join(head[:1]))
        if named:
            head[0] = "\n"
            separator = separator or named[1]
        if separator is None:
            separator = _found_separator(head, decimal)
        elif separator == decimal and not _has_quoted_fields(head, separator):
            needed = (
                "separator and decimal must be different characters, unless numbers are in quotes"
            )
            raise FileError(who, needed, f"{separator!r} for both")
        found: list[Line] = []
        try:
            for row in split_lines(chain(head, lines), separator):
                if is_blank(row):
                    continue
                fields = [with_point(field, decimal) for field in row.fields]
                found.append(Line(row.number, fields))
                if len(found) > max(1, min(MAX_ROWS_PROBED, MAX_FIELDS_PROBED // len(fields))):
                    break
        except csv.Error as error:
            # With a header and a row, reading the rows will name the line.
            if len(found) < 2:
                got = f"broken quotes or fields ({error})"
                raise RowsError(who, READABLE_NEEDED, got) from error
    return _FirstLines(separator, found, skipped=int(named is not None))


def _checked_separator(who: str, separator: str) -> str:
    """Return a separator that is given as a character or by name."""
    character = SEPARATOR_NAMES.get(separator, separator)
    is_valid = len(character) == 1 and character.isascii() and not character.isalnum()
    if not is_valid or character in "\r\n\"'.+-#_":
        needed = "separator must be 'tab', 'space' or one character that cannot be part of a number"
        raise FileError(who, needed, repr(separator))
    return character


def _found_separator(lines: list[str], decimal: str) -> str:
    """Return the separator that divides the first lines alike, else that of the most fields."""
    n_fields = {}
    candidates = SEPARATORS
    if not _has_quoted_fields(lines, decimal):
        candidates = SEPARATORS.replace(decimal, "")
    for separator in candidates:
        counts = []
        for line in split_lines(lines, separator, strict=False):
            if not is_blank(line):
                counts.append(len(line.fields))
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            return separator
        n_fields[separator] = 0
        if counts:
            n_fields[separator] = counts[0]
    return max(",;\t|".replace(decimal, ""), key=n_fields.__getitem__)


def _has_quoted_fields(lines: list[str], separator: str) -> bool:
    """Whether quotes and a separator stand side by side: it may then be in numbers, in quotes."""
    return any(f'"{separator}' in line or f'{separator}"' in line for line in lines)


def _has_header(lines: list[Line]) -> bool:
    """Whether the first line is names: it has no number, or a word above a number.

    Names that count from 0 after an empty one are those that pandas gives.
    """
    first = lines[0].fields
    is_word = [not is_numeric(field) for field in first]
    if all(to_number(field) is None for field in first):
        return any(is_word)
    if len(first) > 1 and first == ["", *counted(0, len(first) - 1)]:
        return True
    if len(lines) == 1:
        return False
    for word, below in zip(is_word, lines[1].fields, strict=False):
        if word and to_number(below) is not None:
            return True
    return False


@contextmanager
def open_text(path: Path, who: str) -> Iterator[TextIO]:
    """Open a file, plain or compressed, in UTF-8 or UTF-16; all line ends are read as one."""
    damaged = raise_unreadable(
        who, EOFError, zlib.error, gzip.BadGzipFile, got="a damaged one ({})"
    )
    opened: Callable[[str], Any] = path.open
    if path.suffix.lower() == ".gz":
        opened = partial(gzip.open, path)
    with damaged, opened("rb") as file:
        is_utf_16 = file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
        encoding = "utf-8-sig"
        if is_utf_16:
            encoding = "utf-16"
        try:
            yield TextIOWrapper(file, encoding, "surrogateescape")
        except UnicodeDecodeError as problem:
            needed = "text in UTF-8 is needed"
            raise RowsError(who, needed, "other bytes", SAVE_AS_UTF_8) from problem


def check_text(who: str, text: str, number: int) -> None:
    """Raise for bytes that are not text."""
    place = f"line {number}"
    if "\0" in text:
        advice = "check that it is a text file, saved as UTF-8"
        raise RowsError(who, "text is needed", "binary data", advice, place, at_row=True)
    if any("\udc80" <= character <= "\udcff" for character in text):
        needed = "text in UTF-8 is needed"
        raise RowsError(who, needed, "other bytes", SAVE_AS_UTF_8, place, at_row=True)


def uncommented(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, blank in place of comments; within quotes nothing is a comment."""
    inside = False
    for line in lines:
        if not inside and line.lstrip().startswith("#"):
            yield "\n"
        else:
            inside ^= line.count('"') % 2 == 1
            yield line


def split_lines(lines: Iterable[str], separator: str, *, strict: bool = True) -> Iterator[Line]:
    """Divide lines, numbered from 1, into fields."""
    if separator == " ":
        lines = (" ".join(line.split()) + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=strict)
    for fields in reader:
        yield Line(reader.line_num, [field.strip() for field in fields])


def is_blank(line: Line) -> bool:
    """Whether a line has no fields."""
    return line.fields in ([], [""])


def with_point(field: str, decimal: str) -> str:
    """Return a field whose decimal comma is a point; one with a point is then text."""
    if decimal == ".":
        return field
    if DECIMAL_COMMA.fullmatch(field):
        return field.replace(",", ".")
    if "." in field and to_number(field) is not None:
        return f"'{field}'"
    return field


def to_number(field: str) -> float | None:
    """Return what a field says if it is a number or a boolean."""
    try:
        number = float(field)
    except ValueError:
        return BOOLEANS.get(field.lower())
    if "_" in field:  # Python reads 1_000 as a number
        return None
    return number


def is_numeric(field: str) -> bool:
    """Whether a field is a number, a boolean or missing."""
    return to_number(field) is not None or field.lower() in MISSING


def have_decimal_commas(fields: Iterable[str]) -> bool:
    """Whether those fields that are not numbers are, if commas are decimal; not for thousands."""
    words = list(filterfalse(is_numeric, fields))
    if all(map(THOUSANDS.fullmatch, words)):
        return False
    return all(map(DECIMAL_COMMA.fullmatch, words))


def counted(start: int, count: int) -> list[str]:
    """Return the fields of a row or column that counts."""
    return [f"{number}" for number in range(start, start + count)]
