"""Tables in files, chunk by chunk: what is asked of every format, and those that store numbers as numbers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, time
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from muhat._arrays import Array, has_finite_sum
from muhat._files import FileError
from muhat._messages import IN_COMMAND, no_column, option
from muhat.errors import message

PARQUET_BUFFER = 2**16
"""Bytes of a column read from the disk at a time: without it a whole row group, which may be the
whole file."""

MAX_ROWS_PROBED = 1000
"""How many rows are looked at when a file is opened, for what its columns seem to hold."""

READABLE = "a readable file is needed"
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b|\d{1,2}:\d\d")
"""How a word begins that is a date or a time."""

LISTED = 3
"""How many places an error names."""


class RowsError(FileError):
    """Something in a file that cannot be read: the rows before it have been yielded.

    ``at_row`` says that it is the fault of the row after these, and not of the file;
    ``not_numeric`` is the column whose value is not a number, if that is the fault.
    """

    def __init__(
        self,
        who: str,
        needed: str,
        got: object,
        advice: str = "",
        place: str = "",
        at_row: bool = False,
        not_numeric: str | None = None,
    ) -> None:
        super().__init__(who, needed, got, advice)
        self.not_numeric = not_numeric
        self.place = place
        self.at_row = at_row

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, batch: int | None = None) -> str:
        """Return the sentence, with the number of the batch where the reader of it chose to read in batches."""
        where = self._where(batch)
        got = f"{self.got} in {where}" if where else self.got
        return message(self.who, self.needed, got, self.advice)

    def _where(self, batch: int | None) -> str:
        # A command's batches are its own affair: the file, the line or row, and the column say
        # where to look.
        if batch is None or IN_COMMAND.get():
            return self.place
        return ", ".join(filter(None, (self.place, f"batch {batch} (counted from 0)")))


class NoColumnError(FileError):
    """A table without columns that were asked for: ``missing`` has their names, ``names`` those that there are."""

    file: str
    missing: list[str]
    names: list[str]

    def __init__(self, who: str, missing: Sequence[str], names: Sequence[str]) -> None:
        super().__init__(no_column(who, missing[0], names))
        self.file, self.missing, self.names = who, list(missing), list(names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.missing, self.names)


class DecimalCommaError(RowsError):
    """A number with a decimal comma in a file that is read with decimal points."""

    def __init__(self, who: str, name: str, value: str, place: str) -> None:
        advice = f"use {option('decimal', ',')} or convert them"
        super().__init__(who, name, value, advice, place, at_row=True)

    def sentence(self, batch: int | None = None) -> str:
        where = self._where(batch)
        return (
            f"{self.who}: column {self.needed!r} has decimal commas, "
            f"as {self.got!r} in {where}; {self.advice}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.who, self.needed, self.got, self.place)


@contextmanager
def raise_unreadable(who: str, *errors: type[Exception], got: str = "{}") -> Iterator[None]:
    """Refuse a file in one sentence where reading it raises an error of the system or one of these."""
    try:
        yield
    except (OSError, *errors) as problem:  # type: ignore[misc]  # a tuple that is not known yet
        reason = getattr(problem, "strerror", None) or str(problem).split("\n")[0].split(". ")[
            0
        ].rstrip(".")
        raise RowsError(
            who, READABLE, got.format(reason) if isinstance(problem, errors) else reason
        ) from problem


def no_rows(who: str, got: str) -> FileError:
    """Return the error of a file without a row of numbers."""
    return FileError(who, "at least one row of numbers is needed", got)


def listed(words: Sequence[object]) -> str:
    """Return the first few words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(map(str, words[:LISTED])) + more


INDICATOR = " = "
"""What stands between a column of text and its value in the name of an indicator."""


def text_column_of(indicator: str, text: Iterable[str]) -> str | None:
    """Return the text column that a name would be an indicator of, the one with the longest name; or None."""
    return max(
        (name for name in text if indicator.startswith(name + INDICATOR)), key=len, default=None
    )


@dataclass(frozen=True)
class Places:
    """The places of a table's columns, by what is done with them."""

    numbers: list[int]
    text: list[int]
    """Columns that become indicators of their values."""
    not_numbers: list[int]
    """Columns that are left out as they do not hold numbers."""


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns and rows of a file to read, and how, as `open_batches` documents it."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    only_numeric: bool = False
    one_hot: bool = False
    missing: str = "error"
    decimal: str = "."
    optional: Sequence[str] = ()
    """Columns to read beside ``columns`` where the file has them."""
    only_known: bool = False
    """Whether a column of text becomes indicators only if ``columns`` names some of them."""

    def places(self, who: str, names: Sequence[str], is_numeric: Callable[[int], bool]) -> Places:
        """Return the places of the columns to read, or refuse names that are not there."""
        wanted, _ = self.split(names)
        missing = [name for name in (*self.drop, *wanted) if name not in names]
        if missing:
            raise NoColumnError(who, missing, names)
        order = (
            range(len(names)) if self.columns is None else [names.index(name) for name in wanted]
        )
        kept = [place for place in order if names[place] not in self.drop]
        if not kept:
            raise FileError(who, "at least one column must be left", "all of them dropped")
        if self.one_hot:
            known = {names.index(name) for name in self.split(names)[1]}
            text = [
                place
                for place in kept
                if place in known or not (self.only_known or is_numeric(place))
            ]
            return Places([place for place in kept if place not in text], text, [])
        not_numbers = (
            [place for place in kept if not is_numeric(place)] if self.only_numeric else []
        )
        return Places([place for place in kept if place not in not_numbers], [], not_numbers)

    def split(self, names: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
        """Return the columns of a table that are asked for, each once, and the values that are known of some.

        With ``one_hot``, the name of an indicator, such as ``city = Bern``, asks for column
        ``city``.
        """
        wanted: list[str] = []
        values: dict[str, list[str]] = {}
        for name in (*(self.columns or ()), *(each for each in self.optional if each in names)):
            of = None if name in names or not self.one_hot else text_column_of(name, names)
            if of is not None:
                values.setdefault(of, []).append(name.removeprefix(of + INDICATOR))
            wanted.append(of or name)
        return list(dict.fromkeys(wanted)), values

    def not_numeric(self, who: str, name: str, value: object, place: str) -> RowsError:
        """Return the error of a value in a column that is no number, with the options that would help here."""
        if is_date(value):  # of which every value would be an indicator
            leave = f"leave it out with {option('drop', name)}, or " if self.columns is None else ""
            advice = f"{leave}write it as a number, such as days since the first"
        elif self.one_hot and self.columns is not None:
            advice = "write numbers in that column"
        elif self.one_hot:
            advice = f"leave it out with {option('drop', name)}"
        elif self.columns is not None:
            advice = f"make indicators of its values with {option('one_hot')}"
        else:
            ways = f"leave it out with {option('drop', name)} or {option('only_numeric')}"
            advice = f"{ways}, or make indicators of its values with {option('one_hot')}"
        needed = f"column {name!r} must be numeric"
        return RowsError(who, needed, repr(value), advice, place, at_row=True, not_numeric=name)


def is_date(value: object) -> bool:
    """Whether a value is a date or a time, or a word that begins as one."""
    return isinstance(value, date | time) or bool(DATE.match(str(value).strip()))


def divided(names: Sequence[str], kept: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names at the places that are kept, in their order, and all others."""
    left_out = set(range(len(names))) - set(kept)
    return tuple(names[place] for place in kept), tuple(names[place] for place in sorted(left_out))


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some rows of a table: numbers, NaN where one is missing, and words, None where one is."""

    who: str
    values: Array
    words: dict[str, Array]
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
    """How many rows of how many were left out in a pass over a file, and in which columns values were missing."""

    n: int = 0
    of: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    numbers: list[Array] = field(default_factory=list)
    """The numbers of these rows, from 0."""

    def sentence(self) -> str:
        """Return the sentence that says so, empty where none was."""
        if not self.n:
            return ""
        found = ", ".join(f"{name} {count:,}" for name, count in self.columns.most_common())
        row = "row" if self.of == 1 else "rows"
        return f"Dropped {self.n:,} of {self.of:,} {row} with missing values ({found})."


def is_missing(words: Array) -> Array:
    """Return where words are None."""
    return np.array([word is None for word in words.tolist()], dtype=bool)


class Table(ABC):
    """A table in a file of which little has been read yet; it is known to have a row."""

    columns: tuple[str, ...]
    """The names of the columns that are read as numbers."""
    text: tuple[str, ...] = ()
    """The names of the columns that are to be indicators of their values."""
    left_out: tuple[str, ...] = ()
    """The names of the columns that are not read."""
    not_numbers: dict[str, object]
    """Those of them that do not hold numbers, each with its first value."""
    n: int | None = None
    """Number of rows, None for a text file, which does not say."""

    def chunks(
        self, rows: int, words: Sequence[str] = (), dropped: DroppedRows | None = None
    ) -> Iterator[TableChunk]:
        """Read it from its start, about so many rows at a time or more, with some columns as words.

        A row with a missing value is refused, or left out and counted in ``dropped``; numbers must
        be finite.
        """
        for chunk in self._read(rows, words, with_gaps=dropped is not None):
            yield from self._without_gaps(chunk, dropped)

    @abstractmethod
    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it from its start; ``with_gaps`` says that missing values are no reason to look where they are."""

    def check_words(self, name: str) -> None:
        """Refuse a name that is none of a column that can be read as words."""
        raise FileError(name, "a file whose columns have names is needed", "one without")

    def _without_gaps(self, chunk: TableChunk, dropped: DroppedRows | None) -> Iterator[TableChunk]:
        """Yield the rows of a chunk that have all values, up to the first that is refused by its place in the file."""
        gaps = {name: is_missing(column) for name, column in chunk.words.items()}
        if has_finite_sum(chunk.values) and not any(column.any() for column in gaps.values()):
            if dropped is not None:
                dropped.of += len(chunk.values)
            yield chunk
            return
        missing: Array = np.column_stack([np.isnan(chunk.values), *gaps.values()])
        wrong = np.isinf(chunk.values).any(axis=1)
        if dropped is None:
            wrong |= missing.any(axis=1)
        else:
            names = (*self.columns, *chunk.words)
            dropped.numbers.append(dropped.of + np.flatnonzero(missing.any(axis=1)))
            dropped.of += len(missing)
            dropped.n += int(missing.any(axis=1).sum())
            dropped.columns.update(
                {name: int(n) for name, n in zip(names, missing.sum(axis=0), strict=True) if n}
            )
        rows = np.flatnonzero(wrong)
        complete: Array = ~np.asarray(missing.any(axis=1))
        if not rows.size:
            yield chunk[complete]
            return
        yield chunk[: rows[0]][complete[: rows[0]]]
        raise self._bad_values(
            chunk[rows], missing[rows] if dropped is None else np.zeros_like(missing[rows])
        )

    def _bad_values(self, chunk: TableChunk, missing: Array) -> RowsError:
        """Return the error of rows with missing or infinite values."""
        infinite: Array = np.zeros_like(missing)
        infinite[:, : chunk.values.shape[1]] = np.isinf(chunk.values)
        names = (*self.columns, *chunk.words)
        found = [repr(names[place]) for place in np.flatnonzero((missing | infinite).any(axis=0))]
        several = "s" if len(chunk.places) > 1 else ""
        counted = " (counted from 1)" if chunk.unit == "data row" else ""
        place = f"{chunk.unit}{several} {listed(chunk.places)}{counted}"
        place += f", column{'s' if len(found) > 1 else ''} {listed(found)}"
        kind = " or ".join(["missing"] * bool(missing.any()) + ["infinite"] * bool(infinite.any()))
        article = "an" if kind == "infinite" else "a"
        got = f"{kind} values" if several else f"{article} {kind} value"
        drop = f"drop these rows with {option('missing', 'drop')}, or fill them in"
        advice = drop if missing.any() else "replace or delete these rows"
        return RowsError(
            chunk.who, "every value must be there and finite", got, advice, place, at_row=True
        )


class NumpyTable(Table):
    """A two-dimensional array in a ``.npy`` file or the only one of an ``.npz``; float32 stays, others become float64.

    A ``.npy`` file is memory-mapped, the array of an ``.npz`` is in memory while it is read.
    """

    def __init__(self, path: Path, who: str, wanted: ColumnSelection) -> None:
        self.path, self.who = path, who
        array = self._load()
        names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
        self.kept = wanted.places(who, names, lambda _: True).numbers
        self.columns, self.left_out = divided(names, self.kept)
        self.not_numbers = {}
        self.n = len(array)

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it by memory maps, one for each chunk: the pages of one that stays open would count as our memory."""
        loaded = self._load() if self.path.suffix.lower() == ".npz" else None
        for start in range(0, self.n or 0, rows):
            array = (self._load() if loaded is None else loaded)[start : start + rows]
            every = self.kept == list(range(array.shape[1]))
            dtype = np.float32 if array.dtype == np.float32 else np.float64
            values = np.array(array if every else array[:, self.kept], dtype, order="C")
            yield TableChunk(self.who, values, {}, range(start + 1, start + len(values) + 1))

    def _load(self) -> Array:
        """Return the array in the file, or refuse what is no table of numbers."""
        damaged = "no array of numbers, or a damaged one ({})"
        with raise_unreadable(self.who, ValueError, EOFError, BadZipFile, LookupError, got=damaged):
            array = np.load(self.path, allow_pickle=False, mmap_mode="r")
            names: list[str] = getattr(array, "files", [])
            if not isinstance(array, np.ndarray):
                with array as archive:
                    array = archive[names[0]]
        if len(names) > 1:
            got = f"an archive of several arrays ({', '.join(names)})"
            raise FileError(self.who, "a file with one array is needed", got, "save one to a file")
        if array.ndim != 2:
            needed = "an array of two dimensions is needed, points in rows"
            advice = (
                "save array.reshape(-1, 1) if it is one column"
                if array.ndim == 1
                else "save array.reshape(n, -1)"
            )
            raise FileError(self.who, needed, f"shape {array.shape}", advice)
        if array.dtype.kind not in "fiub":
            raise FileError(self.who, "numbers are needed", f"values of type {array.dtype}")
        if not array.size:
            raise FileError(self.who, "at least one number is needed", f"shape {array.shape}")
        return array


class ArrowTable(Table):
    """A Parquet, Feather or Arrow file, or several Parquet files with the same columns, one after the other."""

    def __init__(self, files: Sequence[Path], who: str, wanted: ColumnSelection) -> None:
        check_pyarrow(who)
        self.files = [_ArrowFile(file, who if len(files) == 1 else str(file)) for file in files]
        names = self.files[0].names
        for file in self.files:
            if file.names != names:
                needed = f"a folder's files must have the columns of its first, {', '.join(map(repr, names))}"
                got = ", ".join(map(repr, file.names))
                raise FileError(file.who, needed, got, "read them one by one or move it away")
        _check_names_differ(who, names)
        places = wanted.places(
            who, names, lambda place: all(file.is_numeric(place) for file in self.files)
        )
        for file, place in product(self.files, places.numbers):
            if not file.is_numeric(place):
                raise wanted.not_numeric(file.who, names[place], *file.first_value(names[place]))
        self.columns, self.left_out = divided(names, [*places.numbers, *places.text])
        self.columns = self.columns[: len(places.numbers)]
        self.text = tuple(names[place] for place in places.text)
        self.not_numbers = {
            names[place]: self.files[0].first_value(names[place])[0] for place in places.not_numbers
        }
        self.n = sum(file.n for file in self.files)
        if not self.n:
            raise no_rows(who, "a header only")
        singles = all(
            str(file.types[place]) == "float" for file in self.files for place in places.numbers
        )
        self.dtype = np.float32 if singles and not self.text else np.float64

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it in the record batches of the files, those of Parquet with at most so many rows."""
        for file in self.files:
            start = 1
            for batch in file.batches(list(dict.fromkeys([*self.columns, *words])), rows):
                values = as_floats(batch, self.columns, self.dtype)
                found = {name: _words(batch, name) for name in words}
                yield TableChunk(file.who, values, found, range(start, start + len(values)))
                start += len(values)

    def check_words(self, name: str) -> None:
        if name not in self.files[0].names:
            raise FileError(no_column(self.files[0].who, name, self.files[0].names))


def _check_names_differ(who: str, names: Sequence[str]) -> None:
    """Refuse a name that two columns have: they are read by their names."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise FileError(
            who, "every column must have a name of its own", f"{twice!r} twice", "rename one"
        )


def _words(rows: Any, name: str) -> Array:
    """Return a column of any type as words, None where a value is missing."""
    column = rows.column(rows.schema.names.index(name))
    found = np.empty(rows.num_rows, dtype=object)
    found[:] = [
        None if value is None or value != value else str(value) for value in column.to_pylist()
    ]
    return found


class _ArrowFile:
    """What a Parquet, Feather or Arrow file says of itself, and its record batches."""

    def __init__(self, path: Path, who: str) -> None:
        self.path, self.who = path, who
        self.is_parquet = path.suffix.lower() == ".parquet"
        with self._opened() as file:
            schema = file.schema_arrow if self.is_parquet else file.schema
            self.names: list[str] = schema.names
            self.types: list[Any] = schema.types
            n = file.metadata.num_rows if self.is_parquet else None
        self.n: int = (
            sum(batch.num_rows for batch in self.batches(self.names[:1])) if n is None else n
        )

    def batches(self, columns: Sequence[str], rows: int = MAX_ROWS_PROBED) -> Iterator[Any]:
        """Yield record batches with these columns, those of Parquet with so many rows."""
        with self._opened(columns) as file:
            if self.is_parquet:
                yield from file.iter_batches(batch_size=rows, columns=list(columns))
            elif hasattr(file, "num_record_batches"):
                yield from map(file.get_batch, range(file.num_record_batches))
            else:
                yield from file

    @contextmanager
    def _opened(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Open the file, and refuse it if it is none of its kind."""
        import pyarrow
        from pyarrow import ipc, parquet

        damaged = f"no {self.path.suffix.lower()[1:]} file, or a damaged one ({{}})"
        with raise_unreadable(self.who, pyarrow.ArrowException, got=damaged):
            if self.is_parquet:
                with parquet.ParquetFile(
                    self.path, buffer_size=PARQUET_BUFFER, pre_buffer=False
                ) as file:
                    yield file
            else:
                fields = None if columns is None else [self.names.index(name) for name in columns]
                options = ipc.IpcReadOptions(included_fields=fields)
                with pyarrow.OSFile(str(self.path)) as file:
                    is_stream = file.read(6) != b"ARROW1"
                    file.seek(0)
                    yield (ipc.open_stream if is_stream else ipc.open_file)(file, options=options)

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers or booleans."""
        from pyarrow import types

        tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(test(self.types[place]) for test in tests)

    def first_value(self, name: str) -> tuple[object, str]:
        """Return the first value of a column that is there, and its place."""
        values = (value for batch in self.batches([name]) for value in batch.to_pydict()[name])
        row, value = next(
            ((row, value) for row, value in enumerate(values, 1) if value is not None), (1, None)
        )
        return value, f"data row {row} (counted from 1)"


def check_pyarrow(who: str) -> None:
    """Refuse a file that pyarrow reads if there is none."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        advice = "pip install 'muhat[cli]'"
        raise FileError(who, "pyarrow is needed to read it", "none installed", advice) from None


def as_floats(rows: Any, names: Sequence[str], dtype: type[np.floating[Any]]) -> Array:
    """Return columns of a pyarrow table or record batch side by side, NaN where a value is missing.

    Reading a column of Parquet also reads those whose names begin with its name and a point, so
    they are picked again.
    """
    import pyarrow

    kind, found = pyarrow.from_numpy_dtype(dtype), rows.schema.names
    values = np.empty((rows.num_rows, len(names)), dtype)
    for place, name in enumerate(names):
        values[:, place] = (
            rows.column(found.index(name)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
        )
    return values
