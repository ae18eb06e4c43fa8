"""Writing a result to a file in one atomic step, or not at all and with one sentence why."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from muhat.errors import MuhatError


class FileError(MuhatError):
    """A file that cannot be read or written, with one sentence that says why and what to do."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise FileError, before the work is done, if no file can be written there."""
    with _temporary_beside(path) as temporary:
        temporary.touch(exist_ok=False)


def atomic_write(
    path: str | os.PathLike[str], content: bytes | Callable[[BinaryIO], object]
) -> None:
    """Write a file, or replace one, in one atomic step: beside its place first, then renamed to it.

    The content is bytes, or a function that writes it to the binary file it is given. A place that
    cannot be written to raises FileError, and what was there before is as it was.
    """
    with _temporary_beside(path) as temporary:
        with temporary.open("xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
        os.replace(temporary, Path(path).resolve())


@contextmanager
def _temporary_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an unused name in the same folder, so that renaming it is one step.

    A place that cannot be written to raises FileError.
    """
    target = Path(path).resolve()
    temporary = target.parent / f".muhat-{secrets.token_hex(8)}"
    needed = "a path that can be written to is needed"
    try:
        _check_place(str(path), target)
        yield temporary
    except OSError as problem:
        raise FileError(
            str(path), needed, problem.strerror or problem, "choose another path"
        ) from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _check_place(who: str, target: Path) -> None:
    """Raise FileError if the folder is missing, or the place is not one for a file."""
    if target.is_dir():
        raise FileError(who, "a file name is needed to write to", "a folder", "add a name to it")
    if target.exists() and not target.is_file():
        raise FileError(who, "a file name is needed to write to", "a device or pipe")
    if not target.parent.is_dir():
        advice = f"make {target.parent} first"
        raise FileError(who, "a folder is needed to write into", "none of that name", advice)
