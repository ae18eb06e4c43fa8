"""Files that are written in one atomic step, and a folder that one run at a time may write to."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as problem:
        raise _not_writable(path, problem) from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise ResultsError where no file can be written, before the work whose result goes there."""
    if path.is_dir():
        raise ResultsError(str(path), "a file name is needed to write to", "a folder")
    if not path.parent.is_dir():
        needed, advice = "a folder is needed to write into", f"make {path.parent} first"
        raise ResultsError(str(path), needed, "none of that name", advice)
    if not os.access(path.parent, os.W_OK):
        raise ResultsError(str(path), "a place that can be written to is needed", "one that cannot")


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _not_writable(folder, problem) from problem


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and lock it against other runs; the system unlocks it however this one ends.

    Files that a killed run was writing are deleted.
    """
    make_folder(folder)
    descriptor = None
    if fcntl is not None:
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        if descriptor is not None:
            _lock(descriptor, folder)
        for path in folder.rglob(UNFINISHED_FILES):
            path.unlink(missing_ok=True)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        needed = "one run at a time can write its results here"
        advice = "wait for the first or name another folder"
        raise ResultsError(str(folder), needed, "a second one", advice) from None
    except OSError:  # a file system that has no locks
        pass


def _not_writable(path: Path, problem: OSError) -> ResultsError:
    needed = "a place that can be written to is needed"
    return ResultsError(str(path), needed, problem.strerror or problem, "name another")
