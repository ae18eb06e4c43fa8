"""Tables in NumPy's own files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import refusal
from muhat.data._pieces import READABLE, Piece, Position, kept_columns, reason


class NpySource:
    """A two-dimensional array in a ``.npy`` file; float32 stays float32, all else becomes float64."""

    def __init__(self, path: Path, drop: Sequence[str]) -> None:
        array = _load(Position(path), "r")
        names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
        self.path = path
        self.kept = kept_columns(path, names, drop)
        self.columns = tuple(names[place] for place in self.kept)
        self.n = len(array)

    def whole(self) -> Piece:
        """Read it all at once."""
        return self._piece(Position(self.path), _load(Position(self.path), None))

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Read it in pieces, each through a memory map of its own: pages of a kept one would count as our memory."""
        for batch, start in enumerate(range(0, self.n, rows)):
            position = Position(self.path, batch, start)
            yield self._piece(position, _load(position, "r")[start : start + rows])

    def _piece(self, position: Position, array: Array) -> Piece:
        kept = array if len(self.kept) == array.shape[1] else array[:, self.kept]
        values = np.array(kept, np.float32 if array.dtype == np.float32 else np.float64, order="C")
        return Piece(position, values, self.columns, range(position.row, position.row + len(values)), "row")


def _load(position: Position, mmap_mode: Literal["r"] | None) -> Array:
    """Return the array in the file, or refuse what is no table of numbers."""
    path = position.path
    try:
        array = np.load(path, allow_pickle=False, mmap_mode=mmap_mode)
    except (ValueError, EOFError) as problem:
        got = f"no array of numbers, or a damaged one ({reason(problem)})"
        raise position.refused(READABLE, got) from problem
    if not isinstance(array, np.ndarray):
        array.close()
        raise position.refused(READABLE, "an archive of several arrays")
    if array.ndim != 2:
        needed = "an array of two dimensions is needed, points in rows"
        advice = "save array.reshape(-1, 1) if it is one column" if array.ndim == 1 else "save array.reshape(n, -1)"
        raise FileError(refusal(str(path), needed, f"shape {array.shape}", advice))
    if array.dtype.kind not in "fiub":
        raise FileError(refusal(str(path), "numbers are needed", f"values of type {array.dtype}"))
    if not array.size:
        raise FileError(refusal(str(path), "at least one number is needed", f"shape {array.shape}"))
    return array
