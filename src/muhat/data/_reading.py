"""Reading a sample from a file: whole, or not at all and with one sentence why."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from muhat._files import FileError
from muhat._messages import refusal
from muhat.data._npy import NpySource
from muhat.data._parquet import ParquetSource
from muhat.data._pieces import READABLE, Source, no_rows, reason
from muhat.data._table import DataSet
from muhat.data._text import TextSource

READERS: dict[str, Callable[[Path, Sequence[str]], Source]] = {
    ".csv": TextSource,
    ".tsv": TextSource,
    ".parquet": lambda path, drop: ParquetSource(path, [path], drop),
    ".npy": NpySource,
}
"""How each kind of file is read, by its ending."""


def read_table(path: str | os.PathLike[str], drop: Sequence[str] = ()) -> DataSet:
    """Read a sample from a file, points in rows.

    Parameters
    ----------
    path : str or path
        A text file ``.csv`` or ``.tsv`` (separated by commas, semicolons or tabs, with or without a header), a
        ``.parquet`` file (which takes ``pip install 'muhat[parquet]'``), or a NumPy array ``.npy``.
    drop : sequence of str, default=()
        Names of columns to leave out, such as a label; they may hold anything.

    Returns
    -------
    table : DataSet
        The sample, named after the file; columns without names are called ``column 1`` and so on.

    Raises
    ------
    FileError
        If the file cannot be read as numbers, none of them missing.
    """
    path = Path(path)
    check_readable(path)
    if path.is_dir():
        raise FileError(refusal(str(path), "a file is needed", "a folder", "name a file in it"))
    try:
        table = opened_file(path, drop).whole()
    except OSError as problem:
        raise unreadable(path, problem) from problem
    table.check_complete()
    return DataSet(path.stem, table.values, table.names)


def check_readable(path: Path) -> None:
    """Refuse what is not there or is a file with nothing in it."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise FileError(refusal(str(path), "a file is needed", "no such file", "check the name")) from None
    except (OSError, ValueError) as problem:
        raise unreadable(path, problem) from problem
    if not size and not path.is_dir():
        raise no_rows(path, "an empty file")


def opened_file(path: Path, drop: Sequence[str]) -> Source:
    """Return the table in a file, known by its ending, with the columns that are not dropped."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        needed = f"a file ending in {', '.join(READERS)} is needed"
        got = f"the ending {path.suffix!r}" if path.suffix else "none"
        raise FileError(refusal(str(path), needed, got, "convert it, or rename it if it is one"))
    return reader(path, drop)


def unreadable(path: Path, problem: Exception) -> FileError:
    """Return the error of a file that the system does not let us read."""
    return FileError(refusal(str(path), READABLE, reason(problem)))
