"""The folder of results: finished pieces one by one, and only one run at a time."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from muhat._files import FileError, atomic_write
from muhat._messages import refusal
from muhat.paper.experiments.base import Piece, Row

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

PIECES = ".pieces"
TEMPORARY = re.compile(r"\.muhat-[0-9a-f]{16}")
DIGITS = 16


@dataclass(frozen=True)
class Finished:
    """A piece of work that is done: its raw rows and the seconds it took."""

    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class PieceStore:
    """The finished pieces of one experiment with its settings, versions and source code: a file for each."""

    folder: Path

    @classmethod
    def of(cls, results: Path, name: str, *dependencies: object) -> "PieceStore":
        """Return the place for pieces that depend on all this and on nothing else."""
        digest = hashlib.sha256(canonical(dependencies).encode()).hexdigest()
        return cls(results / PIECES / f"{name}-{digest[:DIGITS]}")

    def open(self) -> None:
        """Make the folder."""
        _make(self.folder)

    def keep(self, number: int, piece: Piece, finished: Finished) -> None:
        """Store a finished piece."""
        content = {"piece": piece, "seconds": finished.seconds, "rows": finished.rows}
        atomic_write(self._path(number), as_json(content).encode())

    def find(self, number: int, piece: Piece) -> Finished | None:
        """Return a piece that was stored. A file that is torn, or of another piece, counts as none."""
        try:
            content = json.loads(self._path(number).read_bytes())
            if canonical(content["piece"]) == canonical(piece):
                return Finished(content["rows"], content["seconds"])
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return None

    def forget(self) -> None:
        """Delete the pieces."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # others are still there
            self.folder.parent.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"


def as_json(content: object, *, sort_keys: bool = False) -> str:
    """Return content as JSON, NumPy's numbers and arrays as plain ones."""
    return json.dumps(content, sort_keys=sort_keys, default=_plain)


def canonical(content: object) -> str:
    """Return the same text for the same content.

    Examples
    --------
    >>> canonical({"b": (1, 2.5), "a": None})
    '{"a": null, "b": [1, 2.5]}'
    """
    return as_json(content, sort_keys=True)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


@contextmanager
def only_run_in(folder: Path) -> Iterator[None]:
    """Make a folder and keep other runs out of it; the system lets them in again however this one ends."""
    _make(folder)
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        _lock(place, folder)
        yield
    finally:
        os.close(place)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        needed, reason = "a folder that can be written to is needed", problem.strerror or str(problem)
        raise FileError(refusal(str(folder), needed, reason, "name another")) from problem


def _lock(place: int, folder: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        needed, advice = "one run at a time can write its results here", "wait for the first or name another folder"
        raise FileError(refusal(str(folder), needed, "a second one", advice)) from None
    except OSError:  # a file system that has no locks
        pass


def sweep(folder: Path) -> None:
    """Delete what killed runs were writing."""
    for path in (*folder.glob(".muhat-*"), *folder.glob(f"{PIECES}/*/.muhat-*")):
        if TEMPORARY.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
