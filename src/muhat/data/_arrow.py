"""Tables in Parquet, Feather and Arrow files, read by pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from muhat._arrays import Array, float_type
from muhat._files import FileError
from muhat._frames import repeated_name
from muhat._messages import no_column
from muhat.data._errors import no_rows, raise_unreadable
from muhat.data._selection import ColumnSelection, divided
from muhat.data._table import MAX_ROWS_PROBED, FileTable, TableChunk

__all__ = ["ArrowTable", "as_floats", "check_pyarrow"]

PARQUET_BUFFER_BYTES = 2**16
"""Bytes of a column read from the disk at a time: without it a whole row group, which may be the
whole file."""


NAMELESS_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls the row labels of a frame in a file, where they have no name: no column."""


class ArrowTable(FileTable):
    """A Parquet, Feather or Arrow file, or several Parquet files with the same columns in turn."""

    def __init__(self, files: Sequence[Path], who: str, selection: ColumnSelection) -> None:
        check_pyarrow(who)
        self.files = [_ArrowFile(files[0], who)]
        if len(files) > 1:  # each then has its own name in messages
            self.files = [_ArrowFile(file, str(file)) for file in files]
        names = self.files[0].names
        self._check_names(who)
        places = selection.places(who, names, self._is_numeric)
        self._check_numeric(selection, places.numbers)
        read, self.left_out = divided(names, [*places.numbers, *places.text])
        self.columns = read[: len(places.numbers)]
        self.text = read[len(places.numbers) :]
        self.not_numbers = {}
        for place in places.not_numbers:
            self.not_numbers[names[place]] = self.files[0].first_value(names[place])[0]
        self.n = sum(file.n for file in self.files)
        if not self.n:
            raise no_rows(who, "only a header")
        is_single = not self.text and all(file.is_single(places.numbers) for file in self.files)
        self.dtype = float_type(is_single)

    def _check_names(self, who: str) -> None:
        """Raise FileError unless all files have the same columns, each with its own name."""
        names = self.files[0].names
        for file in self.files:
            if file.names != names:
                first = ", ".join(map(repr, names))
                needed = f"all files of a folder must have the columns of its first file, {first}"
                got = ", ".join(map(repr, file.names))
                advice = "read the files one by one, or remove this file from the folder"
                raise FileError(file.who, needed, got, advice)
        repeated = repeated_name(names)
        if repeated is not None:  # columns are read by their names
            needed = "all columns must have different names"
            raise FileError(who, needed, f"{repeated!r} twice", "rename one")

    def _is_numeric(self, place: int) -> bool:
        return all(file.is_numeric(place) for file in self.files)

    def _check_numeric(self, selection: ColumnSelection, places: Sequence[int]) -> None:
        """Raise FileError for a column that is to be numbers and is not, in any file."""
        for file in self.files:
            for place in places:
                if not file.is_numeric(place):
                    name = file.names[place]
                    value, where = file.first_value(name)
                    raise selection.not_numeric(file.who, name, value, where)

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read the record batches of the files, those of Parquet with at most ``rows``."""
        columns = list(dict.fromkeys([*self.columns, *words]))
        for file in self.files:
            start = 1
            for batch in file.batches(columns, rows):
                values = as_floats(batch, self.columns, self.dtype)
                found = {name: _words(batch, name) for name in words}
                yield TableChunk(file.who, values, found, range(start, start + len(values)))
                start += len(values)

    def check_words(self, name: str) -> None:
        if name not in self.files[0].names:
            raise FileError(no_column(self.files[0].who, name, self.files[0].names))


def _words(rows: Any, name: str) -> Array:
    """Return a column of any type as words, None for a missing value: shape (rows,), objects."""
    column = rows.column(rows.schema.names.index(name))
    found = np.empty(rows.num_rows, dtype=object)
    for place, value in enumerate(column.to_pylist()):
        is_nan = value != value
        if value is not None and not is_nan:  # None stays otherwise
            found[place] = str(value)
    return found


class _ArrowFile:
    """The columns and rows that a Parquet, Feather or Arrow file has, and its record batches."""

    def __init__(self, path: Path, who: str) -> None:
        self.path, self.who = path, who
        self.is_parquet = path.suffix.lower() == ".parquet"
        with self._opened() as file:
            if self.is_parquet:
                schema, n = file.schema_arrow, file.metadata.num_rows
            else:
                schema, n = file.schema, None
        columns = []
        for name, kind in zip(schema.names, schema.types, strict=True):
            if not NAMELESS_INDEX.fullmatch(name):
                columns.append((name, kind))
        self.names: list[str] = [name for name, _ in columns]
        self.types: list[Any] = [kind for _, kind in columns]
        self._stored: list[str] = schema.names
        if n is None:
            n = sum(batch.num_rows for batch in self.batches(self.names[:1]))
        self.n: int = n

    def batches(self, columns: Sequence[str], rows: int = MAX_ROWS_PROBED) -> Iterator[Any]:
        """Yield record batches with these columns, those of Parquet with at most ``rows``."""
        with self._opened(columns) as file:
            if self.is_parquet:
                yield from file.iter_batches(batch_size=rows, columns=list(columns))
            elif hasattr(file, "num_record_batches"):
                yield from map(file.get_batch, range(file.num_record_batches))
            else:
                yield from file

    @contextmanager
    def _opened(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Open the file; raise FileError if it is damaged or of another kind."""
        import pyarrow
        from pyarrow import ipc, parquet

        damaged = f"no {self.path.suffix.lower()[1:]} file, or a damaged one ({{}})"
        with raise_unreadable(self.who, pyarrow.ArrowException, got=damaged):
            if self.is_parquet:
                with parquet.ParquetFile(
                    self.path, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False
                ) as file:
                    yield file
                return
            options = ipc.IpcReadOptions()
            if columns is not None:
                options.included_fields = list(map(self._stored.index, columns))
            with pyarrow.OSFile(str(self.path)) as file:
                is_stream = file.read(6) != b"ARROW1"
                file.seek(0)
                if is_stream:
                    yield ipc.open_stream(file, options=options)
                else:
                    yield ipc.open_file(file, options=options)

    def is_numeric(self, place: int) -> bool:
        """Whether a column holds numbers or booleans."""
        from pyarrow import types

        tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(test(self.types[place]) for test in tests)

    def is_single(self, places: Sequence[int]) -> bool:
        """Whether all these columns are float32, which pyarrow calls "float"."""
        return all(str(self.types[place]) == "float" for place in places)

    def first_value(self, name: str) -> tuple[object, str]:
        """Return the first value of a column that is not missing, and its place."""
        row = 0
        for batch in self.batches([name]):
            for value in batch.to_pydict()[name]:
                row += 1
                if value is not None:
                    return value, f"data row {row} (counted from 1)"
        return None, "data row 1 (counted from 1)"


def check_pyarrow(who: str) -> None:
    """Raise FileError for a file that pyarrow reads if it is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        advice = "run pip install 'muhat[cli]'"
        raise FileError(who, "pyarrow is needed to read this file", "no pyarrow", advice) from None


def as_floats(rows: Any, names: Sequence[str], dtype: type[np.floating[Any]]) -> Array:
    """Return columns of a pyarrow table or record batch side by side, NaN for a missing value.

    The shape is (rows, columns). Reading a column of Parquet also reads those whose names begin
    with its name and a point, so they are picked again.
    """
    import pyarrow

    kind = pyarrow.from_numpy_dtype(dtype)
    found = rows.schema.names
    values = np.empty((rows.num_rows, len(names)), dtype)
    for place, name in enumerate(names):
        column = rows.column(found.index(name)).cast(kind, safe=False)
        values[:, place] = column.to_numpy(zero_copy_only=False)
    return values
