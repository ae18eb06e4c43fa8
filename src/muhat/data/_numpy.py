"""Tables in NumPy's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from muhat._arrays import Array, float_type
from muhat._files import FileError
from muhat.data._errors import raise_unreadable
from muhat.data._selection import ColumnSelection, divided
from muhat.data._table import FileTable, TableChunk

__all__ = ["NumpyTable"]


class NumpyTable(FileTable):
    """A two-dimensional array in a ``.npy`` file, or the only one of an ``.npz``.

    float32 stays, other types become float64. A ``.npy`` file is memory-mapped, the array of an
    ``.npz`` is in memory while it is read.
    """

    def __init__(self, path: Path, who: str, selection: ColumnSelection) -> None:
        self.path, self.who = path, who
        array = self._load()
        names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
        self.kept = selection.places(who, names, lambda _: True).numbers
        self.columns, self.left_out = divided(names, self.kept)
        self.not_numbers = {}
        self.n = len(array)

    def _read(self, rows: int, words: Sequence[str], with_gaps: bool) -> Iterator[TableChunk]:
        """Read it by memory maps, a new one for each chunk.

        The pages of one that stays open would count as our memory.
        """
        is_archive = self.path.suffix.lower() == ".npz"
        array = self._load()
        for start in range(0, self.n or 0, rows):
            if not is_archive:
                array = self._load()
            chunk = array[start : start + rows]
            if self.kept != list(range(array.shape[1])):
                chunk = chunk[:, self.kept]
            dtype = float_type(array.dtype == np.float32)
            values = np.array(chunk, dtype, order="C")
            yield TableChunk(self.who, values, {}, range(start + 1, start + len(values) + 1))

    def _load(self) -> Array:
        """Return the array in the file; raise FileError unless it is a table of numbers."""
        damaged = "no array of numbers, or a damaged one ({})"
        with raise_unreadable(self.who, ValueError, EOFError, BadZipFile, LookupError, got=damaged):
            array = np.load(self.path, allow_pickle=False, mmap_mode="r")
            names: list[str] = getattr(array, "files", [])
            if not isinstance(array, np.ndarray):
                with array as archive:
                    array = archive[names[0]]
        if len(names) > 1:
            got = f"an archive of several arrays ({', '.join(names)})"
            raise FileError(
                self.who, "a file with one array is needed", got, "save each array to its own file"
            )
        if array.ndim != 2:
            needed = "an array of two dimensions is needed, points in rows"
            advice = "save array.reshape(n, -1)"
            if array.ndim == 1:
                advice = "save array.reshape(-1, 1) if it is one column"
            raise FileError(self.who, needed, f"shape {array.shape}", advice)
        if array.dtype.kind not in "fiub":
            raise FileError(self.who, "numbers are needed", f"values of type {array.dtype}")
        if not array.size:
            raise FileError(self.who, "at least one number is needed", f"shape {array.shape}")
        return array
