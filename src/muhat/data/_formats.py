"""Tables in files, chunk by chunk: what is asked of every format, and those that store numbers as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal, Protocol
from zipfile import BadZipFile

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import refusal, unknown_name

READABLE = "a readable file is needed"

PARQUET_BUFFER = 2**16
"""Bytes of a column read from the disk at a time: without it a whole row group, which may be the whole file."""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table in their order, NaN where a value is missing."""

    values: Array
    places: Sequence[int]
    """The line (from 1) or row (from 0) of each in its file; empty for text where all is finite, as no one asks."""
    path: str
    """The name of the file."""

    def __getitem__(self, rows: slice) -> Chunk:
        return Chunk(self.values[rows], self.places[rows], self.path)


class BadRows(Exception):  # noqa: N818 — becomes an error where it is known in which batch
    """Something in a file that cannot be read: the rows before it have been yielded.

    ``at_row`` says that it is the fault of the row after these, ``row`` which row of a batch it is, if that is known.
    """

    def __init__(
        self,
        path: str,
        needed: str,
        got: object,
        place: str = "",
        advice: str = "",
        *,
        at_row: bool = False,
        row: int | None = None,
    ) -> None:
        super().__init__(path, needed, got)
        self.path, self.needed, self.got, self.place, self.advice = path, needed, got, place, advice
        self.at_row, self.row = at_row, row

    def sentence(self, batch: int | None = None) -> str:
        """Return the sentence, with the number of the batch if rows are read in batches."""
        where = ", ".join(filter(None, ("" if batch is None else f"batch {batch}", self.place)))
        return refusal(self.path, self.needed, f"{self.got} in {where}" if where else self.got, self.advice)


@dataclass(frozen=True)
class Wanted:
    """Which columns of a file to read, as `open_batches` documents it."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    only_numeric: bool = False

    def places(self, who: str, names: Sequence[str]) -> list[int]:
        """Return the places of the columns to read, by name alone, or refuse names that are not there."""
        for option, asked in (("column to drop", self.drop), ("column to read", self.columns or ())):
            for name in asked:
                if name not in names:
                    raise FileError(unknown_name(f"{who}, {option}", name, names))
        order = range(len(names)) if self.columns is None else [names.index(name) for name in self.columns]
        kept = [place for place in order if names[place] not in self.drop]
        if not kept:
            raise FileError(refusal(who, "at least one column must be left", "all of them dropped"))
        return kept

    def numeric(self, who: str, kept: list[int], is_numeric: Sequence[bool]) -> list[int]:
        """Return those of the columns that are numeric, if only these are wanted."""
        if not self.only_numeric:
            return kept
        numeric = [place for place in kept if is_numeric[place]]
        if not numeric:
            raise FileError(refusal(who, "at least one column of numbers is needed", "none"))
        return numeric


class Table(Protocol):
    """A table in a file of which little has been read yet; it is known to have a row."""

    columns: tuple[str, ...]
    n: int | None
    """Number of rows, None for a text file, which does not say."""
    unit: Literal["line", "row"]
    """What the places of a chunk count."""

    def head(self) -> Array:
        """Return the first rows, NaN for what is no number."""

    def at_most(self, rows: int) -> bool:
        """Whether it surely has no more than so many rows, as far as that is seen quickly."""

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Read it from its start, about so many rows at a time or more, never none."""


def no_rows(who: str, got: str) -> FileError:
    """Return the error of a file without a row of numbers."""
    return FileError(refusal(who, "at least one row of numbers is needed", got))


def reason(problem: Exception) -> str:
    """Return why something failed, without the details of an implementation."""
    return getattr(problem, "strerror", None) or str(problem).split("\n")[0].split(". ")[0].rstrip(".")


def check_pyarrow(who: str) -> None:
    """Refuse a file that pyarrow reads if there is none."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        advice = "pip install 'muhat[cli]'"
        raise FileError(refusal(who, "pyarrow is needed to read it", "none installed", advice)) from None


class _OfKnownSize:
    n: int | None
    unit: Literal["line", "row"] = "row"

    def at_most(self, rows: int) -> bool:
        """Whether it has no more than so many rows."""
        return self.n is not None and self.n <= rows


class NumpyTable(_OfKnownSize):
    """A two-dimensional array in a ``.npy`` file or the only one of an ``.npz``; float32 stays, others become float64.

    A ``.npy`` file is memory-mapped, the array of an ``.npz`` is in memory while it is read.
    """

    def __init__(self, path: Path, who: str, wanted: Wanted) -> None:
        self.path, self.who = path, who
        array = self._load()
        names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
        self.kept = wanted.places(who, names)
        self.columns = tuple(names[place] for place in self.kept)
        self.n = len(array)

    def head(self) -> Array:
        """Return the first rows."""
        return self._numbers(self._load()[:LOOKED_AT])

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Read it by memory maps, one for each chunk: the pages of one that stays open would count as our memory."""
        loaded = self._load() if self.path.suffix.lower() == ".npz" else None
        for start in range(0, self.n or 0, rows):
            values = self._numbers((self._load() if loaded is None else loaded)[start : start + rows])
            yield Chunk(values, range(start, start + len(values)), self.who)

    def _numbers(self, array: Array) -> Array:
        every = self.kept == list(range(array.shape[1]))
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        return np.array(array if every else array[:, self.kept], dtype, order="C")

    def _load(self) -> Array:
        """Return the array in the file, or refuse what is no table of numbers."""
        try:
            array = np.load(self.path, allow_pickle=False, mmap_mode="r")
            if not isinstance(array, np.ndarray):
                with array as archive:
                    if len(archive.files) != 1:
                        got = f"an archive of several arrays ({', '.join(archive.files)})"
                        raise BadRows(self.who, "a file with one array is needed", got, advice="save one to a file")
                    array = archive[archive.files[0]]
        except (ValueError, EOFError, BadZipFile, KeyError) as problem:
            raise BadRows(self.who, READABLE, f"no array of numbers, or a damaged one ({reason(problem)})") from problem
        if array.ndim != 2:
            needed = "an array of two dimensions is needed, points in rows"
            advice = "save array.reshape(-1, 1) if it is one column" if array.ndim == 1 else "save array.reshape(n, -1)"
            raise FileError(refusal(self.who, needed, f"shape {array.shape}", advice))
        if array.dtype.kind not in "fiub":
            raise FileError(refusal(self.who, "numbers are needed", f"values of type {array.dtype}"))
        if not array.size:
            raise FileError(refusal(self.who, "at least one number is needed", f"shape {array.shape}"))
        return array


LOOKED_AT = 1000
"""How many rows are looked at when a file is opened, for what its columns seem to hold."""


class ArrowTable(_OfKnownSize):
    """A Parquet, Feather or Arrow file, or several Parquet files with the same columns, one after the other."""

    def __init__(self, files: Sequence[Path], who: str, wanted: Wanted) -> None:
        check_pyarrow(who)
        self.files = [_ArrowFile(file, who if len(files) == 1 else str(file)) for file in files]
        names = self.files[0].names
        for file in self.files:
            if file.names != names:
                needed = f"a folder's files must have the columns of its first, {', '.join(map(repr, names))}"
                got = ", ".join(map(repr, file.names))
                raise FileError(refusal(file.who, needed, got, "read them one by one or move it away"))
        numeric = [all(file.is_numeric(place) for file in self.files) for place in range(len(names))]
        kept = wanted.numeric(who, wanted.places(who, names), numeric)
        for file, place in product(self.files, kept):
            if not file.is_numeric(place):
                file.refuse_words(place)
        self.columns = tuple(names[place] for place in kept)
        self.n = sum(file.rows for file in self.files)
        if not self.n:
            raise no_rows(who, "a header only")
        singles = all(str(file.types[place]) == "float" for file in self.files for place in kept)
        self.dtype = np.float32 if singles else np.float64

    def head(self) -> Array:
        """Return the first rows."""
        chunk = next(self.chunks(LOOKED_AT), None)
        return np.empty((0, len(self.columns))) if chunk is None else chunk.values

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Read it in the record batches of the files, those of Parquet with at most so many rows."""
        for file in self.files:
            row = 0
            for batch in file.batches(self.columns, rows):
                if batch.num_rows:
                    values = _numbers(batch, self.columns, self.dtype)
                    yield Chunk(values, range(row, row + len(values)), file.who)
                    row += len(values)


class _ArrowFile:
    """What a Parquet, Feather or Arrow file says of itself, and its record batches."""

    def __init__(self, path: Path, who: str) -> None:
        self.path, self.who = path, who
        self.is_parquet = path.suffix.lower() == ".parquet"
        with self._opened() as file:
            schema = file.schema_arrow if self.is_parquet else file.schema
            self.names: list[str] = schema.names
            self.types: list[Any] = schema.types
            self.rows = self._count(file)

    def _count(self, file: Any) -> int:
        """Return the number of rows, from what the file says of itself; a stream has to be read for it."""
        from pyarrow import dataset

        if self.is_parquet:
            return int(file.metadata.num_rows)
        if hasattr(file, "num_record_batches"):
            return int(dataset.dataset(self.path, format="ipc").count_rows())
        return sum(batch.num_rows for batch in file)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches with these columns."""
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

        kind = self.path.suffix.lower()[1:]
        try:
            if self.is_parquet:
                with parquet.ParquetFile(self.path, buffer_size=PARQUET_BUFFER, pre_buffer=False) as file:
                    yield file
            else:
                fields = None if columns is None else [self.names.index(name) for name in columns]
                options = ipc.IpcReadOptions(included_fields=fields)
                with pyarrow.OSFile(str(self.path)) as file:
                    is_stream = file.read(6) != b"ARROW1"
                    file.seek(0)
                    yield (ipc.open_stream if is_stream else ipc.open_file)(file, options=options)
        except pyarrow.ArrowException as problem:
            got = f"no {kind} file, or a damaged one ({reason(problem)})"
            raise BadRows(self.who, READABLE, got) from problem

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers or booleans."""
        from pyarrow import types

        tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(test(self.types[place]) for test in tests)

    def refuse_words(self, place: int) -> None:
        """Refuse a column of anything but numbers, with the first value that is there."""
        name = self.names[place]
        batches = self.batches([name], LOOKED_AT)
        values = chain.from_iterable(batch.column(batch.schema.names.index(name)).to_pylist() for batch in batches)
        row, value = next(((row, value) for row, value in enumerate(values) if value is not None), (0, None))
        raise BadRows(self.who, *not_numeric(name, repr(value), f"row {row}"))


def not_numeric(name: str, value: str, place: str, advice: str = "drop or encode that column") -> tuple[str, ...]:
    """Return what is said of a value that is no number: what was needed, what it is, where, and what to do."""
    return f"column {name!r} must be numeric", value, place, advice


def _numbers(batch: Any, names: Sequence[str], dtype: type[np.floating[Any]]) -> Array:
    """Return columns of a record batch side by side, NaN where a value is missing.

    Reading a column of Parquet also reads those whose names begin with its name and a point, so they are picked again.
    """
    import pyarrow

    kind, found = pyarrow.from_numpy_dtype(dtype), batch.schema.names
    values = np.empty((batch.num_rows, len(names)), dtype)
    for place, name in enumerate(names):
        values[:, place] = batch.column(found.index(name)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values
