"""Writing a result to a file: whole, or not at all and with one sentence why."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from muhat._messages import refusal


class FileError(ValueError):
    """A file that cannot be read or written, with one sentence that says why and what to do."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where no file can be written, before the work whose result is to go there."""
    target = Path(path).resolve()
    temporary = _beside(target)
    try:
        _check_place(path, target)
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as problem:
        raise _unwritable(path, problem) from problem


def atomic_write(path: str | os.PathLike[str], content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write a file whole or not at all: beside its place first, then renamed to it.

    Parameters
    ----------
    path : str or path
        Where to; a file that is there is replaced.
    content : bytes or callable
        What to write, or a function that writes it to the binary file it is given.

    Raises
    ------
    FileError
        If the place cannot be written to. What was there before is then as it was.
    """
    target = Path(path).resolve()
    temporary = _beside(target)
    try:
        _check_place(path, target)
        with temporary.open("xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
        os.replace(temporary, target)
    except OSError as problem:
        raise _unwritable(path, problem) from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _check_place(path: str | os.PathLike[str], target: Path) -> None:
    """Refuse a folder that is not there and a place taken by something that is no file."""
    if target.is_dir():
        raise FileError(refusal(str(path), "a file name is needed to write to", "a folder", "add a name to it"))
    if target.exists() and not target.is_file():
        raise FileError(refusal(str(path), "a file name is needed to write to", "a device or pipe"))
    if not target.parent.is_dir():
        advice = f"make {target.parent} first"
        raise FileError(refusal(str(path), "a folder is needed to write into", "none of that name", advice))


def _beside(target: Path) -> Path:
    """Return a name in the same folder that no one else uses, so that renaming it is one step."""
    return target.parent / f".muhat-{secrets.token_hex(8)}"


def _unwritable(path: str | os.PathLike[str], problem: OSError) -> FileError:
    reason = problem.strerror or str(problem)
    return FileError(refusal(str(path), "a place that can be written to is needed", reason, "name another"))
