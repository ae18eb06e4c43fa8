"""How every command reads files: the options that they share, and what is told of columns and rows left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import Note, lacks_columns, listed_names, no_column
from muhat.data import ROWS, DataSet, FileBatches, open_batches
from muhat.data._files import STANDARD_INPUT, base_name
from muhat.data._formats import ColumnSelection, NoColumnError, RowsError

Drop = Annotated[
    list[str] | None,
    Option(metavar="COLUMN", show_default=False, help="A column to leave out, repeatable."),
]
OnlyNumeric = Annotated[
    bool, Option("--only-numeric", help="Leave out columns that are not numbers.")
]
OneHot = Annotated[
    bool, Option("--one-hot", help="Turn columns of text or categories into 0/1 indicators.")
]
Missing = Annotated[
    str,
    Option(
        metavar="error|drop",
        help="Missing values: stop with an error, or drop these rows and say how many.",
    ),
]
Separator = Annotated[
    str | None,
    Option(
        metavar="CHARACTER",
        show_default="detected",
        help="Field separator of text files; also 'tab' or 'space'.",
    ),
]
Decimal = Annotated[
    str, Option(metavar="CHARACTER", help="Decimal sign of text files: '.' or ','.")
]


def show_notes(*samples: DataSet | FileBatches) -> None:
    """Tell the user what of files was left out; a report has it too."""
    for sample in samples:
        for sentence in sample.notes:
            warnings.warn(sentence, Note, stacklevel=2)


def sample_names(files: Sequence[Path], *, endings: bool = False) -> list[str]:
    """Return what samples are called: as their files, with as many folders before that as tell them apart."""
    short = [file.name if endings else base_name(file) for file in files]
    if len({*short}) == len(files):
        return short
    if len({file.name for file in files}) == len(files):
        return [file.name for file in files]
    folders = [file.absolute().parent.parts[1:] for file in files]
    for depth in range(1, 1 + max(map(len, folders))):
        names = [
            "/".join([*parts[-depth:], name]) for parts, name in zip(folders, short, strict=True)
        ]
        if len({*names}) == len(files):
            return names
    return short  # one of them is there twice


def readings_of(files: Sequence[Path], reading: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how each file is read: without those of the columns to leave out that only others have.

    A column to leave out that no file has is refused.
    """
    drop = reading["drop"]
    if not drop or len(files) < 2:
        return [reading] * len(files)
    columns = [columns_of(file, reading) for file in files]
    for name in drop:
        if not any(names is None or name in names for names in columns):
            raise FileError(no_column(str(files[0]), name, columns[0] or ()))
    return [
        {**reading, "drop": tuple(name for name in drop if names is None or name in names)}
        for names in columns
    ]


def columns_of(file: Path, reading: dict[str, Any]) -> list[str] | None:
    """Return the names of a file's columns without reading its rows; None for standard input, which is read once."""
    if str(file) == STANDARD_INPUT:
        return None
    nothing = ColumnSelection(
        ("\0",), decimal=reading["decimal"]
    )  # a name that no column has: the answer names all there are
    try:
        with warnings.catch_warnings(action="ignore"):
            FileBatches(file, nothing, ROWS, reading["separator"])
    except NoColumnError as problem:
        return problem.names
    return None


def left_out_text(
    columns: Iterable[str],
    dropped: Sequence[tuple[str, int, int]],
    copies: Sequence[tuple[str, int, int]] = (),
) -> tuple[str, ...]:
    """Return sentences on what of samples was not tested: columns, rows with gaps, and copies of rows.

    Rows are given with the sample's name, empty where there is one only, how many were left out, and of how many.
    """
    columns = list(dict.fromkeys(columns))
    found = [f"Not tested: {listed_names(columns)}."] if columns else []
    parts = [
        f"{n:,} of {of:,} row{'s' * (of != 1)}{f' of {name}' * bool(name)}"
        for name, n, of in dropped
        if n
    ]
    if parts:
        is_one = sum(n for _, n, _ in dropped) == 1
        found.append(
            f"{' and '.join(parts)} with missing values {'was' if is_one else 'were'} dropped."
        )
    for name, n, of in copies:
        if n:
            are = "is an exact copy" if n == 1 else "are exact copies"
            found.append(f"Dropped {n:,} of {of:,} row{'s' * (of != 1)} of {name} that {are}.")
    return tuple(found)


def row_numbers(batches: FileBatches) -> Array:
    """Return the numbers that the rows of a file have in it, from 0, once they were read: without dropped ones."""
    return np.delete(np.arange((batches.n or 0) + len(batches.dropped)), batches.dropped)


def read_with_target(file: Path, target: str, reading: dict[str, Any]) -> tuple[DataSet, Array]:
    """Return the rows of a file in which a column of numbers is to be predicted, and their numbers in it.

    A file that has no such column is refused.
    """
    try:
        batches = _opened_with_target(file, target, reading)
        return batches.read(), row_numbers(batches)
    except RowsError as problem:
        if problem.args[1] == f"column {target!r} must be numeric":
            raise _text_target(file, target) from problem
        raise


def _opened_with_target(file: Path, target: str, reading: dict[str, Any]) -> FileBatches:
    """Return a file that has the target, as far as its first rows say, and columns to predict it from."""
    batches = open_batches(file, **reading)
    if target in (*batches.text_columns, *batches.left_out) and target not in reading["drop"]:
        raise _text_target(file, target)
    names = (*batches.columns, *batches.left_out)
    if target not in batches.columns:
        raise FileError(
            no_column(str(file), target, [name for name in names if name not in reading["drop"]])
        )
    if len(batches.columns) == 1:
        raise FileError(f"{file} has no column beside {target!r} to predict it from.")
    return batches


def _text_target(file: Path, target: str) -> FileError:
    return FileError(f"{file}: column {target!r} is text; --target must be a column of numbers.")


def open_like(
    file: Path,
    names: Sequence[str],
    reading: dict[str, Any],
    *,
    optional: Sequence[str] = (),
    whose: str = "the model was trained on",
) -> FileBatches:
    """Return a file to be read with the columns that a model knows, indicators too, in their order.

    Other columns are ignored, but for optional ones, which come last. A file that lacks some is refused, and said to
    lack what ``whose`` says of them.
    """
    options = {name: reading[name] for name in ("missing", "decimal") if name in reading}
    wanted = ColumnSelection(
        tuple(names), one_hot=True, optional=tuple(optional), only_known=True, **options
    )
    try:
        return FileBatches(Path(file), wanted, ROWS, reading.get("separator"))
    except NoColumnError as problem:
        raise FileError(
            lacks_columns(problem.file, problem.missing, whose, problem.names)
        ) from problem
