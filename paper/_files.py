"""Files that are written in one atomic step, and a folder that one run at a time may write to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from muhat.errors import MuhatError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None


class ResultsError(MuhatError):
    """Results that cannot be read or written, with one sentence that says why and what to do."""


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file, or replace one: beside its place first, then renamed to it.

    What a killed run leaves beside it is overwritten by the run that resumes.
    """
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    os.replace(temporary, path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and lock it against other runs, where the system has locks.

    The system unlocks it however this process ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        needed = "one run at a time can write its results here"
        advice = "wait for the first or name another folder"
        raise ResultsError(str(folder), needed, "a second one", advice) from None
