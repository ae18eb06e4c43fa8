"""Where a command writes: never onto a file that it reads, nor twice to one place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muhat._files import check_writable
from muhat.errors import MuhatError

MODEL = ".muhat"
"""The ending of files that ``--save`` writes."""


def check_outputs(inputs: Sequence[Path | None], **outputs: Path | None) -> None:
    """Refuse, before the work, an output that is an input of the same command, or the same as another output.

    Outputs are named by their options, ``save_predictions`` for ``--save-predictions``.
    """
    read = [each for path in inputs if path is not None for each in _files_of(path)]
    seen: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        if any(_is_same(path, each) for each in read):
            needed = "a file that is not read by the same command is needed"
            raise MuhatError(option, needed, f"its input {str(path)!r}", "name another")
        place = path.resolve()
        if place in seen:
            needed = "every output needs a file of its own"
            raise MuhatError(option, needed, f"{str(path)!r}, as {seen[place]}", "name another")
        seen[place] = option


def check_model_file(path: Path | None) -> None:
    """Refuse, before the work, a place or a name that a model cannot be saved to."""
    if path is None:
        return
    if path.suffix.lower() != MODEL:
        raise MuhatError("--save", f"a file name ending in {MODEL} is needed", repr(str(path)))
    check_writable(path)


def _files_of(path: Path) -> list[Path]:
    """Return the files that are read: those of a folder, else itself."""
    return [each for each in path.iterdir() if each.is_file()] if path.is_dir() else [path]


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also by links."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return one.resolve() == other.resolve()
