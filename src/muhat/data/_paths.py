"""Files of tables: their endings, standard input, folders of files, and whether they changed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from muhat._files import FileError
from muhat.data._errors import no_rows

__all__ = [
    "ENDINGS",
    "STANDARD_INPUT",
    "TEXT_ENDINGS",
    "base_name",
    "check_not_empty",
    "ending_of",
    "file_states",
    "files_of",
    "saved_standard_input",
]

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
ENDINGS = (
    *TEXT_ENDINGS,
    *(f"{ending}.gz" for ending in TEXT_ENDINGS),
    ".parquet",
    ".feather",
    ".arrow",
    ".npy",
    ".npz",
)
"""The endings of the files that are read."""

STANDARD_INPUT = "-"
"""The name of a file that stands for standard input."""

ENDING_BY_FIRST_BYTES = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
}
"""What standard input holds, by its first bytes; if they are others it is text."""


def base_name(path: Path) -> str:
    """Return what a sample is called: the name of its file without the ending."""
    ending = ending_of(path)
    if ending in ENDINGS:
        return path.name[: -len(ending)]
    return path.name


def ending_of(path: Path) -> str:
    """Return the last suffix of a file in lower case; of a compressed one, the last two."""
    n_suffixes = 1
    if path.suffix.lower() == ".gz":
        n_suffixes = 2
    return "".join(path.suffixes[-n_suffixes:]).lower()


def saved_standard_input(folder: Path) -> Path:
    """Copy standard input to a file, which can be read in several passes; return its path."""
    if sys.stdin is None:
        advice = "name a file, or pipe rows into the command"
        raise FileError("standard input", "rows are needed", "a closed one", advice)
    path = folder / "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        start = file.read(8)
    ending = ".csv"
    for first_bytes, its_ending in ENDING_BY_FIRST_BYTES.items():
        if start.startswith(first_bytes):
            ending = its_ending
    return path.rename(path.with_name(path.name + ending))


def check_not_empty(path: Path, who: str) -> None:
    """Raise FileError if there is no such file, or it is empty."""
    if not path.exists():
        raise FileError(f"no such file: {who}")
    if path.is_file() and not path.stat().st_size:
        raise no_rows(who, "an empty file")


def files_of(path: Path) -> list[Path]:
    """Return the files that are read: of a folder, those of Parquet by name, but hidden ones."""
    if not path.is_dir():
        return [path]
    found = []
    for file in path.iterdir():
        is_hidden = file.name.startswith(".")
        if file.suffix.lower() == ".parquet" and not is_hidden and file.is_file():
            found.append(file)
    return sorted(found)


def file_states(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of the last change of files, which show whether they changed."""
    states = {}
    for file in files:
        stat = file.stat()
        states[file] = (stat.st_size, stat.st_mtime_ns)
    return states
