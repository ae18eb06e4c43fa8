"""Tables in files, chunk by chunk: what is asked of every format, and those that store numbers as numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from muhat._arrays import Array, has_finite_sum
from muhat._files import FileError
from muhat._messages import refusal, unknown_name

PARQUET_BUFFER = 2**16
"""Bytes of a column read from the disk at a time: without it a whole row group, which may be the whole file."""

LOOKED_AT = 1000
"""How many rows are looked at when a file is opened, for what its columns seem to hold."""

READABLE = "a readable file is needed"
LISTED = 3
"""How many places an error names."""


class RowsError(FileError):
    """Something in a file that cannot be read: the rows before it have been yielded.

    ``at_row`` says that it is the fault of the row after these, and not of the file.
    """

    def __init__(
        self, who: str, needed: str, got: object, place: str = "", advice: str = "", at_row: bool = False
    ) -> None:
        super().__init__(who, needed, got, place, advice, at_row)
        self.at_row = at_row

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, batch: int | None = None) -> str:
        """Return the sentence, with the number of the batch if rows are read in batches."""
        who, needed, got, place, advice, _ = self.args
        where = ", ".join(filter(None, ("" if batch is None else f"batch {batch}", place)))
        return refusal(who, needed, f"{got} in {where}" if where else got, advice)


def not_numeric(who: str, name: str, value: object, place: str, advice: str = "") -> RowsError:
    """Return the error of a value in a column that is no number."""
    advice = advice or "drop or encode that column"
    return RowsError(who, f"column {name!r} must be numeric", repr(value), place, advice, at_row=True)


@contextmanager
def refuse_unreadable(who: str, *errors: type[Exception], got: str = "{}") -> Iterator[None]:
    """Refuse a file in one sentence where reading it raises an error of the system or one of these."""
    try:
        yield
    except (OSError, *errors) as problem:  # type: ignore[misc]  # a tuple that is not known yet
        reason = getattr(problem, "strerror", None) or str(problem).split("\n")[0].split(". ")[0].rstrip(".")
        raise RowsError(who, READABLE, got.format(reason) if isinstance(problem, errors) else reason) from problem


def no_rows(who: str, got: str) -> FileError:
    """Return the error of a file without a row of numbers."""
    return FileError(refusal(who, "at least one row of numbers is needed", got))


def listed(words: Sequence[object]) -> str:
    """Return the first few words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(map(str, words[:LISTED])) + more


@dataclass(frozen=True)
class Wanted:
    """Which columns of a file to read, as `open_batches` documents it."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    only_numeric: bool = False

    def places(self, who: str, names: Sequence[str], is_numeric: Callable[[int], bool]) -> list[int]:
        """Return the places of the columns to read, or refuse names that are not there."""
        for option, asked in (("column to drop", self.drop), ("column to read", self.columns or ())):
            for name in asked:
                if name not in names:
                    raise FileError(unknown_name(f"{who}, {option}", name, names))
        order = range(len(names)) if self.columns is None else [names.index(name) for name in self.columns]
        kept = [place for place in order if names[place] not in self.drop]
        if not kept:
            raise FileError(refusal(who, "at least one column must be left", "all of them dropped"))
        return [place for place in kept if is_numeric(place)] if self.only_numeric else kept


def divided(names: Sequence[str], kept: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names at the places that are kept, in their order, and all others."""
    left_out = set(range(len(names))) - set(kept)
    return tuple(names[place] for place in kept), tuple(names[place] for place in sorted(left_out))


class Table(ABC):
    """A table in a file of which little has been read yet; it is known to have a row."""

    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """The names of the columns that are not read."""
    n: int | None = None
    """Number of rows, None for a text file, which does not say."""

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Array]:
        """Read it from its start, about so many rows at a time or more; all are finite."""

    def words(self, name: str) -> list[str]:
        """Return a column of any type as words, such as that of a label."""
        raise FileError(refusal(name, "a file whose columns have names is needed", "one without"))

    def _finite(self, who: str, values: Array, places: Sequence[int], unit: str = "row") -> Iterator[Array]:
        """Yield rows up to the first with a missing or infinite value, which is refused by its place in the file."""
        good = None if has_finite_sum(values) else np.isfinite(values)
        if good is None or good.all():
            yield values
            return
        rows = np.flatnonzero(~good.all(axis=1)).tolist()
        yield values[: rows[0]]
        names = [repr(self.columns[column]) for column in np.flatnonzero(~good.all(axis=0))]
        several = "s" if len(rows) > 1 else ""
        place = f"{unit}{several} {listed([places[row] for row in rows])}"
        place += " of the file" if unit == "row" else ""
        place += f", column{'s' if len(names) > 1 else ''} {listed(names)}"
        got = "missing or infinite values" if several else "a missing or infinite value"
        needed, advice = "every value must be there and finite", "drop or impute them first"
        raise RowsError(who, needed, got, place, advice, at_row=True)


class NumpyTable(Table):
    """A two-dimensional array in a ``.npy`` file or the only one of an ``.npz``; float32 stays, others become float64.

    A ``.npy`` file is memory-mapped, the array of an ``.npz`` is in memory while it is read.
    """

    def __init__(self, path: Path, who: str, wanted: Wanted) -> None:
        self.path, self.who = path, who
        array = self._load()
        names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
        self.kept = wanted.places(who, names, lambda _: True)
        self.columns, self.left_out = divided(names, self.kept)
        self.n = len(array)

    def chunks(self, rows: int) -> Iterator[Array]:
        """Read it by memory maps, one for each chunk: the pages of one that stays open would count as our memory."""
        loaded = self._load() if self.path.suffix.lower() == ".npz" else None
        for start in range(0, self.n or 0, rows):
            array = (self._load() if loaded is None else loaded)[start : start + rows]
            every = self.kept == list(range(array.shape[1]))
            dtype = np.float32 if array.dtype == np.float32 else np.float64
            values = np.array(array if every else array[:, self.kept], dtype, order="C")
            yield from self._finite(self.who, values, range(start, start + rows))

    def _load(self) -> Array:
        """Return the array in the file, or refuse what is no table of numbers."""
        damaged = "no array of numbers, or a damaged one ({})"
        with refuse_unreadable(self.who, ValueError, EOFError, BadZipFile, LookupError, got=damaged):
            array = np.load(self.path, allow_pickle=False, mmap_mode="r")
            names: list[str] = getattr(array, "files", [])
            if not isinstance(array, np.ndarray):
                with array as archive:
                    array = archive[names[0]]
        if len(names) > 1:
            got = f"an archive of several arrays ({', '.join(names)})"
            raise FileError(refusal(self.who, "a file with one array is needed", got, "save one to a file"))
        if array.ndim != 2:
            needed = "an array of two dimensions is needed, points in rows"
            advice = "save array.reshape(-1, 1) if it is one column" if array.ndim == 1 else "save array.reshape(n, -1)"
            raise FileError(refusal(self.who, needed, f"shape {array.shape}", advice))
        if array.dtype.kind not in "fiub":
            raise FileError(refusal(self.who, "numbers are needed", f"values of type {array.dtype}"))
        if not array.size:
            raise FileError(refusal(self.who, "at least one number is needed", f"shape {array.shape}"))
        return array


class ArrowTable(Table):
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
        kept = wanted.places(who, names, lambda place: all(file.is_numeric(place) for file in self.files))
        for file, place in product(self.files, kept):
            if not file.is_numeric(place):
                file.refuse_words(names[place])
        self.columns, self.left_out = divided(names, kept)
        self.n = sum(file.n for file in self.files)
        if not self.n:
            raise no_rows(who, "a header only")
        singles = all(str(file.types[place]) == "float" for file in self.files for place in kept)
        self.dtype = np.float32 if singles else np.float64

    def chunks(self, rows: int) -> Iterator[Array]:
        """Read it in the record batches of the files, those of Parquet with at most so many rows."""
        for file in self.files:
            start = 0
            for batch in file.batches(self.columns, rows):
                values = as_floats(batch, self.columns, self.dtype)
                yield from self._finite(file.who, values, range(start, start + len(values)))
                start += len(values)

    def words(self, name: str) -> list[str]:
        batches = (batch for file in self.files for batch in file.batches([name]))
        return [str(value) for batch in batches for value in batch.to_pydict()[name]]


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
        self.n: int = sum(batch.num_rows for batch in self.batches(self.names[:1])) if n is None else n

    def batches(self, columns: Sequence[str], rows: int = LOOKED_AT) -> Iterator[Any]:
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
        with refuse_unreadable(self.who, pyarrow.ArrowException, got=damaged):
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

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers or booleans."""
        from pyarrow import types

        tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(test(self.types[place]) for test in tests)

    def refuse_words(self, name: str) -> None:
        """Refuse a column of anything but numbers, with the first value that is there."""
        values = (value for batch in self.batches([name]) for value in batch.to_pydict()[name])
        row, value = next(((row, value) for row, value in enumerate(values) if value is not None), (0, None))
        raise not_numeric(self.who, name, value, f"row {row}")


def check_pyarrow(who: str) -> None:
    """Refuse a file that pyarrow reads if there is none."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        advice = "pip install 'muhat[cli]'"
        raise FileError(refusal(who, "pyarrow is needed to read it", "none installed", advice)) from None


def as_floats(rows: Any, names: Sequence[str], dtype: type[np.floating[Any]]) -> Array:
    """Return columns of a pyarrow table or record batch side by side, NaN where a value is missing.

    Reading a column of Parquet also reads those whose names begin with its name and a point, so they are picked again.
    """
    import pyarrow

    kind, found = pyarrow.from_numpy_dtype(dtype), rows.schema.names
    values = np.empty((rows.num_rows, len(names)), dtype)
    for place, name in enumerate(names):
        values[:, place] = rows.column(found.index(name)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values
