"""Files that are written in one atomic step, and a folder that one run at a time may write to."""

import os
import secrets
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

UNFINISHED_FILES = ".muhat-*"
"""The names of files that are being written; those of a killed run are deleted by the next."""


class ResultsError(MuhatError):
    """Results that cannot be read or written, with one sentence that says why and what to do."""


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file, or replace one: beside its place first, then renamed to it."""
    temporary = path.with_name(UNFINISHED_FILES.replace("*", secrets.token_hex(8)))
    temporary.write_bytes(content)
    os.replace(temporary, path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and lock it against other runs; the system unlocks it however this one ends.

    Files that a killed run was writing are deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _lock(folder)
    try:
        for path in folder.rglob(UNFINISHED_FILES):
            path.unlink(missing_ok=True)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Return what holds the lock until it is closed; None where the system has no locks."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        needed = "one run at a time can write its results here"
        advice = "wait for the first or name another folder"
        raise ResultsError(str(folder), needed, "a second one", advice) from None
    return descriptor
