"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import refusal
from muhat.data._pieces import READABLE, Piece, Position, kept_columns, no_rows, reason

BUFFER = 2**16
"""Bytes of a column read from the disk at a time: without it a whole row group, which may be the whole file."""


class ParquetSource:
    """A Parquet file, or several with the same columns that are read one after the other.

    Parameters
    ----------
    path : path
        The file or folder, for what is said of all files.
    files : sequence of path
        The files, at least one.
    drop : sequence of str
        Names of columns to leave out.
    """

    def __init__(self, path: Path, files: Sequence[Path], drop: Sequence[str]) -> None:
        outlines = [_outline(file) for file in files]
        names = outlines[0].names
        for file, outline in zip(files, outlines, strict=True):
            if outline.names != names:
                needed = f"a folder's files must have the columns of its first, {', '.join(map(repr, names))}"
                got = ", ".join(map(repr, outline.names))
                raise FileError(refusal(str(file), needed, got, "read them one by one or move it away"))
        kept = kept_columns(path, names, drop)
        self.files = list(files)
        self.columns = tuple(names[place] for place in kept)
        self.n = sum(outline.rows for outline in outlines)
        for outline in outlines:
            outline.check_numeric(self.columns)
        if not self.n:
            raise no_rows(path, "a header only")
        singles = all(str(outline.types[place]) == "float" for outline in outlines for place in kept)
        self.dtype = np.float32 if singles else np.float64

    def whole(self) -> Piece:
        """Read it all at once, as float64."""
        [path] = self.files
        with _opened(Position(path)) as file:
            values = _numbers(file.read(columns=list(self.columns)), self.columns, np.float64)
        return Piece(Position(path), values, self.columns, range(len(values)), "row")

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Read it in pieces, which end where a file ends."""
        import pyarrow

        position = Position(self.files[0], 0)
        for path in self.files:
            position = replace(position, path=path)
            before = position.row
            with _opened(position) as file:
                chunks = file.iter_batches(batch_size=rows, columns=list(self.columns))
                while True:
                    try:
                        chunk = next(chunks, None)
                    except pyarrow.ArrowException as problem:
                        raise position.refused(READABLE, f"a damaged one ({reason(problem)})") from problem
                    if chunk is None:
                        break
                    if chunk.num_rows:
                        values = _numbers(pyarrow.Table.from_batches([chunk]), self.columns, self.dtype)
                        places = range(position.row - before, position.row - before + len(values))
                        yield Piece(position, values, self.columns, places, "row")
                        position = position.after(len(values))


class _Outline:
    """What the end of a Parquet file says of it."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        self.names: list[str] = file.schema_arrow.names
        self.types: list[Any] = file.schema_arrow.types
        self.rows: int = file.metadata.num_rows

    def check_numeric(self, names: Sequence[str]) -> None:
        """Refuse columns of anything but numbers, with the first value that is none."""
        from pyarrow import types

        numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        for name, kind in zip(self.names, self.types, strict=True):
            if name in names and not any(test(kind) for test in numeric):
                row, value = self._first_known(name)
                raise Position(self.path).not_numeric(name, repr(value), f"row {row}", "drop or encode that column")

    def _first_known(self, name: str) -> tuple[int, object]:
        """Return the row and the value of the first value that is there."""
        row = 0
        with _opened(Position(self.path)) as file:
            for chunk in file.iter_batches(batch_size=1024, columns=[name]):
                for value in chunk.column(chunk.schema.names.index(name)).to_pylist():
                    if value is not None:
                        return row, value
                    row += 1
        return 0, None


@contextmanager
def _opened(position: Position) -> Iterator[Any]:
    """Open a Parquet file, and refuse it if it is none."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        needed, advice = "pyarrow is needed to read parquet", "pip install 'muhat[parquet]'"
        raise FileError(refusal(str(position.path), needed, "none installed", advice)) from None
    try:
        with parquet.ParquetFile(position.path, buffer_size=BUFFER, pre_buffer=False) as file:
            yield file
    except pyarrow.ArrowException as problem:
        got = f"no parquet file, or a damaged one ({reason(problem)})"
        raise position.refused(READABLE, got) from problem


def _outline(path: Path) -> _Outline:
    with _opened(Position(path)) as file:
        return _Outline(path, file)


def _numbers(table: Any, names: Sequence[str], dtype: type[np.floating[Any]]) -> Array:
    """Return the columns of a table side by side, NaN where a value is missing.

    Reading a column also reads those whose names begin with its name and a point, so that columns are picked again.
    """
    import pyarrow

    kind = pyarrow.from_numpy_dtype(dtype)
    picked = [column for name, column in zip(table.column_names, table.columns, strict=True) if name in names]
    return np.stack([column.cast(kind, safe=False).to_numpy() for column in picked], axis=1)
