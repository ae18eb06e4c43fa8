"""The folder of results: a checkpoint for each finished task, and a lock that lets in one run at a time."""

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
from muhat.errors import MuhatTypeError
from paper._experiment import Row, Task

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

CHECKPOINTS = ".checkpoints"
TEMPORARY = re.compile(r"\.muhat-[0-9a-f]{16}")
DIGITS = 16


@dataclass(frozen=True)
class FinishedTask:
    """A task that is computed: its rows and the seconds it took."""

    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class Checkpoints:
    """The finished tasks of one experiment with its settings, versions and source code: a file for each."""

    folder: Path

    @classmethod
    def from_dependencies(cls, results: Path, name: str, *dependencies: object) -> "Checkpoints":
        """Return the checkpoints of tasks that depend on all this and on nothing else."""
        digest = hashlib.sha256(canonical(dependencies).encode()).hexdigest()
        return cls(results / CHECKPOINTS / f"{name}-{digest[:DIGITS]}")

    def make_folder(self) -> None:
        """Make the folder they are in."""
        _make(self.folder)

    def write(self, number: int, task: Task, finished: FinishedTask) -> None:
        """Write the checkpoint of a task."""
        content = {"task": task, "seconds": finished.seconds, "rows": finished.rows}
        atomic_write(self._path(number), as_json(content).encode())

    def read(self, number: int, task: Task) -> FinishedTask | None:
        """Return a task from its checkpoint, None if there is none, or one that is broken or of another task."""
        try:
            content = json.loads(self._path(number).read_bytes())
            if canonical(content["task"]) == canonical(task):
                return FinishedTask(content["rows"], content["seconds"])
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return None

    def delete(self) -> None:
        """Delete them all."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # those of other experiments are there
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
    raise MuhatTypeError(f"JSON cannot hold a {type(value).__name__}")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and lock it against other runs; the system unlocks it however this one ends."""
    _make(folder)
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        needed, reason = (
            "a folder that can be written to is needed",
            problem.strerror or str(problem),
        )
        raise FileError(str(folder), needed, reason, "name another") from problem


def _lock(descriptor: int, folder: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        needed, advice = (
            "one run at a time can write its results here",
            "wait for the first or name another folder",
        )
        raise FileError(str(folder), needed, "a second one", advice) from None
    except OSError:  # a file system that has no locks
        pass


def delete_unfinished(folder: Path) -> None:
    """Delete the files that killed runs were writing."""
    for path in (*folder.glob(".muhat-*"), *folder.glob(f"{CHECKPOINTS}/*/.muhat-*")):
        if TEMPORARY.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
