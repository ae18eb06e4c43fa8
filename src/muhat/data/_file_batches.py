"""Reading a file larger than memory: batch by batch, as often as needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from numbers import Integral
from pathlib import Path

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import refusal
from muhat.data._parquet import ParquetSource
from muhat.data._pieces import READABLE, Position, Source, reason
from muhat.data._reading import check_readable, opened_file, unreadable


class FileBatches:
    """The rows of a file in batches: an iterable that reads the file from its start each time it is gone through.

    Made by `open_batches`. No batch is kept and no file stays open between two passes: memory is that of one batch
    and of one page of each column (a Parquet file's own unit, usually of 1 MiB).

    Attributes
    ----------
    name : str
        The name of the file without its ending.
    columns : tuple of str
        The names of the features.
    n : int or None
        Number of rows; of a text file it is known once it has been read to its end.
    rows : int
        The most rows a batch has.
    """

    def __init__(self, path: Path, drop: Sequence[str], rows: int) -> None:
        self._path = path
        self._states = _states(_files(path))
        self._source = _opened_folder(path, drop) if path.is_dir() else opened_file(path, drop)
        self.name = path.name if path.is_dir() and path.suffix.lower() != ".parquet" else path.stem
        self.columns = self._source.columns
        self.n = self._source.n
        self.rows = rows

    def __iter__(self) -> Iterator[Array]:
        """Yield float arrays of shape (at most ``rows``, number of features), in the order of the file.

        Raises
        ------
        BatchError
            If a batch cannot be read as numbers, none of them missing, or if the file is no longer what it was.
        """
        position = Position(self._path, 0)
        self._check_unchanged(position)
        pieces = self._source.pieces(self.rows)
        while True:
            try:
                piece = next(pieces, None)
            except (OSError, FileError) as problem:
                self._check_unchanged(position)
                if isinstance(problem, FileError):
                    raise
                raise position.refused(READABLE, reason(problem)) from problem
            if piece is None:
                break
            self._check_unchanged(position, piece.position.path)
            piece.check_complete()
            yield piece.values
            position = position.after(len(piece.values))
        self.n = position.row

    def surely_at_most(self, rows: int) -> bool:
        """Whether it has no more than so many rows, as far as that is seen in a moment: a text file has fewer lines."""
        if self.n is not None:
            return self.n <= rows
        try:
            with self._path.open("rb") as file:
                return len(list(islice(file, rows + 1))) <= rows
        except OSError as problem:
            raise unreadable(self._path, problem) from problem

    def _check_unchanged(self, position: Position, file: Path | None = None) -> None:
        """Refuse a file, by default any, that is new, gone, or written to since all were opened."""
        needed, advice = "the data must stay as they were when they were opened", "open them again"
        try:
            states = _states([*self._states, *_files(self._path)] if file is None else [file])
        except OSError as problem:
            got = "no such file any more" if isinstance(problem, FileNotFoundError) else reason(problem)
            raise position.refused(needed, got, advice=advice) from problem
        if any(self._states.get(file) != state for file, state in states.items()):
            raise position.refused(needed, "another size or time of change", advice=advice)


def open_batches(path: str | os.PathLike[str], drop: Sequence[str] = (), rows: int = 8192) -> FileBatches:
    """Open a file to be read in batches, so that it may be larger than memory.

    Parameters
    ----------
    path : str or path
        A file that `read_table` reads, or a folder of ``.parquet`` files with the same columns, which are read in the
        order of their names.
    drop : sequence of str, default=()
        Names of columns to leave out, such as a label; they may hold anything.
    rows : int, default=8192
        The most rows a batch has.

    Returns
    -------
    batches : FileBatches
        The batches, float64, or float32 if all the columns of a ``.parquet`` or ``.npy`` file are.

    Raises
    ------
    FileError
        If the file is none that can be read, as far as that is seen without reading it to its end.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/sample.npy", np.arange(10.0).reshape(5, 2))
    ...     batches = open_batches(f"{folder}/sample.npy", rows=2)
    ...     print(batches.n, [batch.shape for batch in batches], sum(batch.sum() for batch in batches))
    5 [(2, 2), (2, 2), (1, 2)] 45.0
    """
    if not isinstance(rows, Integral) or rows < 1:
        raise ValueError(refusal("open_batches", "rows must be a positive integer", repr(rows)))
    path = Path(path)
    check_readable(path)
    try:
        return FileBatches(path, drop, int(rows))
    except OSError as problem:
        raise unreadable(path, problem) from problem


def _opened_folder(path: Path, drop: Sequence[str]) -> Source:
    """Return the table in the Parquet files of a folder."""
    files = _files(path)
    if not files:
        needed = "a file or a folder of .parquet files is needed"
        raise FileError(refusal(str(path), needed, "a folder without any", "name a file"))
    for file in files:
        check_readable(file)
    return ParquetSource(path, files, drop)


def _files(path: Path) -> list[Path]:
    """Return the files that are read: those of a folder by name, without the hidden ones."""
    if not path.is_dir():
        return [path]
    inside = [file for file in path.iterdir() if file.suffix.lower() == ".parquet" and file.name[0] != "."]
    return sorted(file for file in inside if file.is_file())


def _states(files: list[Path]) -> dict[Path, tuple[int, int]]:
    """Return what tells that a file was written to: its size and the time of its last change."""
    return {file: ((stat := file.stat()).st_size, stat.st_mtime_ns) for file in files}
