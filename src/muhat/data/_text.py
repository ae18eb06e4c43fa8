"""Tables in text files: parsed by pyarrow; a line that cannot be read is found and named by us."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from muhat._arrays import Array, available_cores, has_finite_sum
from muhat._files import FileError
from muhat._messages import no_column
from muhat.data._arrow import as_floats, check_pyarrow
from muhat.data._errors import (
    NUMBER_WITH_POINTS,
    READABLE_NEEDED,
    THOUSANDS,
    DecimalCommaError,
    DecimalPointError,
    RowsError,
)
from muhat.data._layout import (
    BOOLEANS,
    DECIMAL_COMMA,
    MISSING,
    Layout,
    check_text,
    have_decimal_commas,
    is_blank,
    is_numeric,
    open_text,
    read_layout,
    split_lines,
    to_number,
    uncommented,
    with_point,
)
from muhat.data._selection import ColumnSelection, divided
from muhat.data._table import FileTable, TableChunk, is_missing
from muhat.data._thousands import (
    THOUSANDS_POINTS,
    ThousandsPoints,
    ThousandsPointsError,
    first_with_thousands,
)

__all__ = ["TextTable"]

MISSING_WORDS = MISSING - {".", "-", "none"}
"""What stands for a missing value in a column of text, where the others may be values."""

NULLS = ["NaN", "#N/A N/A"]
"""What pyarrow takes for a missing number."""
for _word in sorted(MISSING):
    NULLS += [_word, _word.upper(), _word.capitalize()]

CHUNK_CHARACTERS = 2**21
"""How much of a file is parsed together."""

BLOCK_BYTES = 2**19
"""How much of a chunk one thread of pyarrow parses at a time."""

BLANKS = re.compile(r"[ \t]+")


class TextTable(FileTable):
    """A text file, plain or compressed by gzip, whose layout is found from its first lines.

    Chunks of it are parsed by pyarrow. A chunk that pyarrow cannot parse, or that has a missing
    value, is read once more line by line. This finds the line to name, and accepts a few notations
    that pyarrow does not know.
    """

    def __init__(
        self, path: Path, who: str, selection: ColumnSelection, separator: str | None = None
    ) -> None:
        check_pyarrow(who)
        self.path, self.who, self.selection = path, who, selection
        self.decimal = selection.decimal or "."
        layout = read_layout(path, who, separator, self.decimal)
        self.separator = layout.separator
        self.width = layout.width
        self.header_lines = layout.header_lines
        self.n_empty = layout.width - layout.width_with_values
        self.names = self._distinct_names(layout.titles[: layout.width_with_values])
        self._choose_columns(layout)
        self._check_thousands(layout.rows)
        for sentence in layout.warnings():
            self._warn(sentence)

    def _choose_columns(self, layout: Layout) -> None:
        """Set which columns are read as numbers, as text or not at all."""
        names, rows = self.names, layout.rows

        def holds_numbers(place: int) -> bool:
            return all(is_numeric(row[place]) for row in rows)

        places = self.selection.places(self.who, names, holds_numbers)
        self.kept = places.numbers
        is_first_kept = len(self.kept) > 1 and self.kept[0] == 0
        if self.selection.columns is None and is_first_kept and layout.counts_rows():
            self._warn("the first column has no name and counts the rows; it is left out")
            self.kept = self.kept[1:]
        read, self.left_out = divided(names, [*self.kept, *places.text])
        self.columns = read[: len(self.kept)]
        self.text_places = places.text
        self.text = tuple(names[place] for place in places.text)
        self.not_numbers = {}
        for place in places.not_numbers:
            self.not_numbers[names[place]] = _first_word(row[place] for row in rows)
        self.comma_columns = self._comma_columns([*places.not_numbers, *places.text], rows)
        self.booleans = set()
        for place in self.kept:
            if rows and rows[0][place].lower() in BOOLEANS:
                self.booleans.add(place)

    def _check_thousands(self, rows: list[list[str]]) -> None:
        """Raise for a column whose points separate thousands in the first rows.

        A column that these do not decide is decided by the first chunk of the file in which it has
        a value with a point.
        """
        self.undecided: set[int] = set()
        for place in self.text_places:
            example = first_with_thousands(map(itemgetter(place), rows))
            if example is not None:
                raise ThousandsPointsError(self.who, self.names[place], example)
        if self.selection.decimal is not None or self.separator != ";":
            return
        for place in self.kept:
            points = ThousandsPoints.from_fields(map(itemgetter(place), rows))
            self._check_points(place, points)
            if points.may_be:
                self.undecided.add(place)

    def _check_points(self, place: int, points: ThousandsPoints) -> None:
        if points.are_likely:
            raise ThousandsPointsError(
                self.who, self.names[place], str(points.with_point), points.whole
            )

    def _check_undecided(self, text: str, values: Array) -> None:
        """Raise if the first values with points of a column look like thousands.

        ``values`` are the numbers of all columns that were read from the text.
        """
        places = []
        for place in sorted(self.undecided):
            column = values[:, self.kept.index(place)]
            if not np.all((column % 1 == 0) | np.isnan(column)):
                places.append(place)
        if not places:
            return
        rows = []
        for line in split_lines(StringIO(text), self.separator, strict=False):
            if len(line.fields) == self.width:
                rows.append(line.fields)
        for place in places:
            self._check_points(place, ThousandsPoints.from_fields(map(itemgetter(place), rows)))
            self.undecided.discard(place)

    def _comma_columns(self, places: Sequence[int], rows: list[list[str]]) -> tuple[str, ...]:
        """Return the columns that would be numbers with decimal commas, if no other has points."""
        for row in rows:
            if any("." in row[place] for place in self.kept):
                return ()
        found = []
        for place in places:
            if have_decimal_commas(map(itemgetter(place), rows)):
                found.append(self.names[place])
        return tuple(found)

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it in chunks of some megabytes, however many rows that is."""
        with open_text(self.path, self.who) as file:
            number = len(list(islice(file, self.header_lines)))
            while text := _next_chunk(file):
                for chunk in self._parsed(text, number, words, with_gaps):
                    self._check_undecided(text, chunk.values)
                    yield chunk
                number += text.count("\n")

    def _parsed(
        self, text: str, number: int, words: Sequence[str], with_gaps: bool
    ) -> Iterator[TableChunk]:
        """Yield the rows of some text, by pyarrow if it can parse them."""
        chunk = self._parsed_by_pyarrow(text, words, with_gaps)
        if chunk is None:
            yield from self._parsed_line_by_line(text, number, words)
        else:
            yield chunk

    def check_words(self, name: str) -> None:
        if name not in self.names:
            raise FileError(no_column(self.who, name, self.names))

    def _distinct_names(self, titles: list[str]) -> list[str]:
        """Return the names of the columns; one with the name of another before it is numbered."""
        names = [title or f"column {place}" for place, title in enumerate(titles, 1)]
        distinct: list[str] = []
        for name in names:
            number, new = 1, name
            while new in distinct or (new in names and new != name):
                number += 1
                new = f"{name} ({number})"
            distinct.append(new)
            if new == name:
                continue
            asked = self.selection.columns or ()
            if name in asked and new not in asked:  # either of them may be meant
                needed = "all columns must have different names"
                raise FileError(self.who, needed, f"{name!r} twice", "rename one")
            self._warn(f"two columns are named {name!r}; the later one is called {new!r} here")
        return distinct

    def _parsed_by_pyarrow(
        self, text: str, words: Sequence[str], with_gaps: bool
    ) -> TableChunk | None:
        """Return the rows, or None if they have to be read line by line.

        That is if a value is not plainly a number, or is missing and ``with_gaps`` is false.
        """
        import pyarrow

        if '"' in text and self._has_odd_quotes(text):
            return None
        number_places = {f"{place}" for place in self.kept}
        word_places = {name: f"{self.names.index(name)}" for name in words}
        if number_places & set(word_places.values()):  # as words, numbers are as they were written
            return None
        try:
            table = self._arrow_table(text, list(word_places.values()))
        except pyarrow.ArrowInvalid:
            return None
        values = as_floats(table, [f"{place}" for place in self.kept], np.float64)
        if not has_finite_sum(values):
            is_wrong = ~np.isfinite(values)
            if with_gaps:
                is_wrong = np.isinf(values)
            if is_wrong.any():
                return None
        found = {}
        for name, place in word_places.items():
            found[name] = _as_words(table.column(place).to_pylist())
            if not with_gaps and is_missing(found[name]).any():
                return None
        return TableChunk(self.who, values, found, range(len(values)), "line")

    def _arrow_table(self, text: str, word_places: list[str]) -> Any:
        """Return the columns that are read as a pyarrow table, each named by its place."""
        import pyarrow
        from pyarrow import csv as reader

        if self.separator == " ":
            text = BLANKS.sub(" ", text).replace("\n ", "\n").replace(" \n", "\n").strip(" ")
        kinds = {}
        for place in self.kept:
            kinds[f"{place}"] = pyarrow.float64()
            if place in self.booleans:
                kinds[f"{place}"] = pyarrow.bool_()
        for name in word_places:
            kinds[name] = pyarrow.string()
        for place in range(len(self.names), self.width):
            kinds[f"{place}"] = pyarrow.null()
        return reader.read_csv(
            pyarrow.BufferReader(_arrow_buffer(text.encode("utf-8", "surrogateescape"))),
            reader.ReadOptions(
                use_threads=available_cores() > 1,
                block_size=max(BLOCK_BYTES, 64 * self.width),
                column_names=[f"{place}" for place in range(self.width)],
            ),
            reader.ParseOptions(delimiter=self.separator, newlines_in_values='"' in text),
            reader.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                decimal_point=self.decimal,
                null_values=NULLS,
            ),
        )

    def _has_odd_quotes(self, text: str) -> bool:
        """Whether a quote is not closed, or neither opens nor closes a field.

        pyarrow would accept both.
        """
        other = rf'[^\n"{re.escape(self.separator)}]'
        return text.count('"') % 2 == 1 or re.search(f'{other}"{other}', text) is not None

    def _parsed_line_by_line(
        self, text: str, number: int, words: Sequence[str]
    ) -> Iterator[TableChunk]:
        """Yield the rows before the first that cannot be read, and raise for that one."""
        values: list[list[float]] = []
        found: dict[str, list[str]] = {name: [] for name in words}
        places: list[int] = []
        problem = None
        last = number
        try:
            for line in split_lines(StringIO(text), self.separator):
                last = number + line.number
                if not is_blank(line):
                    values.append(self._numbers(line.fields, last))
                    places.append(last)
                    for name, column in found.items():
                        column.append(line.fields[self.names.index(name)])
        except csv.Error as error:
            got = f"broken quotes or fields ({error})"
            problem = RowsError(
                self.who, READABLE_NEEDED, got, place=f"line {last + 1}", at_row=True
            )
        except RowsError as error:
            problem = error
        numbers = np.array(values, float).reshape(len(values), len(self.kept))
        as_words = {name: _as_words(column) for name, column in found.items()}
        yield TableChunk(self.who, numbers, as_words, places, "line")
        if problem is not None:
            raise problem

    def _numbers(self, fields: list[str], number: int) -> list[float]:
        """Return the numbers in a row, NaN for a missing one."""
        place = f"line {number}"
        if len(fields) != self.width:
            needed = f"every line must have {self.width} fields, as the first line has"
            raise RowsError(self.who, needed, len(fields), place=place, at_row=True)
        for field in fields[len(self.names) :]:
            if field:
                needed = "the last column must be empty, as in the first rows, or have a name"
                raise RowsError(self.who, needed, repr(field), place=place, at_row=True)
        numbers = []
        for name, column in zip(self.columns, self.kept, strict=True):
            field = fields[column]
            value = to_number(with_point(field, self.decimal))
            if value is None and field.lower() not in MISSING:
                check_text(self.who, field, number)
                has_comma = DECIMAL_COMMA.fullmatch(field) or THOUSANDS.fullmatch(field)
                if self.decimal != "," and has_comma:
                    raise DecimalCommaError(self.who, name, field, place)
                if self.decimal == "," and NUMBER_WITH_POINTS.fullmatch(field):
                    raise DecimalPointError(self.who, name, field, place)
                if THOUSANDS_POINTS.fullmatch(field):
                    raise ThousandsPointsError(self.who, name, field, place=place)
                raise self.selection.not_numeric(self.who, name, field, place)
            if value is None:
                value = np.nan
            numbers.append(value)
        return numbers

    def _warn(self, sentence: str) -> None:
        warnings.warn(f"{self.who}: {sentence}.", UserWarning, stacklevel=3)


def _next_chunk(file: TextIO) -> str:
    """Return whole lines without comments, and all lines that quotes enclose; empty at the end."""
    text = file.read(CHUNK_CHARACTERS) + file.readline()
    if "#" in text:
        text = "".join(uncommented(StringIO(text)))
    is_quoted = text.count('"') % 2 == 1
    end = len(text) + csv.field_size_limit()  # a quote that is never closed
    while is_quoted and len(text) < end:
        line = file.readline()
        if not line:
            break
        text += line
        is_quoted ^= line.count('"') % 2 == 1
    return text


def _arrow_buffer(content: bytes) -> Any:
    """Return bytes in Arrow's own memory.

    One of Arrow's threads may be the last to release what it parsed. It would release Python's
    memory without Python's lock, and a process that ends at that moment is aborted (1 in 50, on a
    busy machine).
    """
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    stream.write(content)
    return stream.getvalue()


def _as_words(fields: Sequence[str]) -> Array:
    """Return fields as words, None for a missing one: shape (n,), objects."""
    found: list[str | None] = []
    for field in fields:
        word = field.strip()
        if word.lower() in MISSING_WORDS:
            found.append(None)
        else:
            found.append(word)
    words = np.empty(len(found), dtype=object)
    words[:] = found
    return words


def _first_word(fields: Iterable[str]) -> str:
    """Return the first field that is not a number."""
    return next((field for field in fields if not is_numeric(field)), "")
