"""What a command writes: files that are checked before the work, and sentences on a terminal."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from typer import echo

from muhat._arrays import Array
from muhat._files import check_writable
from muhat.errors import MuhatError

FIGURE_ENDINGS = (".png", ".svg", ".pdf")
REPORT_ENDINGS = (".html", ".htm")
MODEL_ENDINGS = (".muhat",)

FAR_TITLE = "far_from_training"
"""The column of predictions in a CSV file that says which rows are extrapolated."""

ALERT = "bold yellow"
"""The colour of what was found; green would call it good."""


def check_outputs(inputs: Sequence[Path | None], **outputs: Path | None) -> set[Path]:
    """Raise MuhatError, before the work, for an output that is an input or another output.

    Outputs are named by their options, ``save_predictions`` for ``--save-predictions``. Returns
    those that exist, which the command replaces.
    """
    read: list[Path] = []
    for path in inputs:
        if path is not None:
            read += files_of(path)
    seen: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        if any(_is_same(path, each) for each in read):
            needed = "an output file that is not an input of the same command is needed"
            raise MuhatError(option, needed, f"the input {str(path)!r}", "choose another name")
        place = path.resolve()
        if place in seen:
            needed = "every output needs a different file"
            raise MuhatError(
                option, needed, f"{str(path)!r}, as for {seen[place]}", "choose another name"
            )
        seen[place] = option
    return {path for path in outputs.values() if path is not None and path.exists()}


def check_figure(path: Path | None) -> None:
    """Raise MuhatError, before the work, for a figure that cannot be written."""
    check_file("--out", path, FIGURE_ENDINGS)


def check_report(path: Path | None) -> None:
    """Raise MuhatError, before the work, for a report that cannot be written."""
    check_file("--report", path, REPORT_ENDINGS)


def check_model_file(path: Path | None) -> None:
    """Raise MuhatError, before the work, for a place or a name that a model cannot be saved to."""
    check_file("--save", path, MODEL_ENDINGS)


def check_file(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Raise MuhatError for a file, if one is given, of another ending or that cannot be written."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        *others, last = endings
        names = " or ".join(filter(None, [", ".join(others), last]))
        needed = f"a file name ending in {names} is needed"
        raise MuhatError(option, needed, repr(str(path)))
    check_writable(path)


def csv_values(column: Array) -> list[Any]:
    """Return the values of a column as a CSV file has them: all digits, or true and false."""
    if column.dtype == bool:
        return ["true" if each else "false" for each in column.tolist()]
    return column.tolist()


def path_text(path: Path | None) -> str | None:
    """Return a path as text for JSON, or None."""
    if path is None:
        return None
    return str(path)


def print_written(replaced: Container[Path], **files: Path | None) -> None:
    """Print the files that a command has written, a line each: ``Figure: plot.png``.

    A line says if the file replaced an older one, as ``check_outputs`` returned.
    """
    for name, path in files.items():
        if path in replaced:
            echo(f"{name}: {path} (replaced an older file)")
        elif path is not None:
            echo(f"{name}: {path}")


def console_of() -> Console:
    """Return a rich Console without markup or highlighting."""
    return Console(highlight=False, markup=False, emoji=False)


def print_sentence(console: Console, sentence: str, style: str | None = None) -> None:
    """Print a sentence, in one line unless it is on a terminal."""
    console.print(sentence, style=style, soft_wrap=not console.is_terminal)


def files_of(path: Path) -> list[Path]:
    """Return the files that are read: those of a folder, else the file."""
    if not path.is_dir():
        return [path]
    return [each for each in path.iterdir() if each.is_file()]


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also by links."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.resolve() == other.resolve()
