"""How commands read files: which columns, what samples are called, what was left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import Note, lacks_columns, no_column, option
from muhat._text import agree
from muhat._wording import listed_names, rows_text
from muhat.cli._command_line import columns_like_ids
from muhat.data import (
    CHUNK_ROWS,
    STANDARD_INPUT,
    ColumnSelection,
    DataSet,
    FileBatches,
    NoColumnError,
    RowsError,
    base_name,
    has_decimal_commas,
    open_batches,
)
from muhat.errors import MuhatError

MAX_MEMORY_SHARE = 0.25
"""A text file is read at once if it takes at most this share of memory, as parsing is slow."""


def without(names: Iterable[str], excluded: Iterable[str]) -> list[str]:
    """Return the names that are not among the excluded ones, in their order."""
    excluded = set(excluded)
    return [name for name in names if name not in excluded]


def places_of(table: DataSet, names: Iterable[str]) -> list[int]:
    """Return where the columns of these names are."""
    return list(map(table.feature_names.index, names))


def show_notes(*samples: DataSet | FileBatches) -> None:
    """Show the user which rows and columns of files were left out; a report has it too."""
    for sample in samples:
        for sentence in sample.notes:
            warnings.warn(sentence, Note, stacklevel=2)


def names_of(sample: DataSet | FileBatches) -> tuple[str, ...]:
    """Return the names of its columns."""
    if isinstance(sample, DataSet):
        return sample.feature_names
    return sample.columns


def check_names(who: str, names: Sequence[str]) -> None:
    """Raise MuhatError for a name that two columns have: columns are found by name later."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            needed = "all columns must have different names"
            raise MuhatError(who, needed, f"{name!r} twice", "rename one")
        seen.add(name)


def sample_names(files: Sequence[Path], *, endings: bool = False) -> list[str]:
    """Return the names of samples: those of their files, with folders if these are equal."""
    file_names = [file.name for file in files]
    short = file_names
    if not endings:
        short = list(map(base_name, files))
    for names in (short, file_names):
        if len(set(names)) == len(files):
            return names
    folders = [file.absolute().parent.parts[1:] for file in files]
    for depth in range(1, 1 + max(map(len, folders))):
        names = []
        for parts, name in zip(folders, short, strict=True):
            names.append("/".join([*parts[-depth:], name]))
        if len({*names}) == len(files):
            return names
    return short  # a file is given twice


def reading_options(
    files: Sequence[Path],
    drop: Sequence[str] | None,
    only_numeric: bool,
    separator: str | None,
    missing: str,
    decimal: str | None,
) -> dict[str, Any]:
    """Return how files are read, as keyword arguments of ``open_batches``."""
    reading: dict[str, Any] = {
        "drop": (),
        "only_numeric": only_numeric,
        "separator": separator,
        "missing": missing,
        "decimal": decimal,
    }
    return {**reading, "drop": columns_named(drop or (), files, reading)}


def columns_named(
    given: Sequence[str], files: Sequence[Path], reading: dict[str, Any]
) -> tuple[str, ...]:
    """Return the columns that an option names, several between commas.

    A name with commas that a file has is that of one column.
    """
    found: list[str] = []
    for name in given:
        if "," in name and not _is_column(name, files, reading):
            found += filter(None, map(str.strip, name.split(",")))
        else:
            found.append(name)
    return tuple(found)


def _is_column(name: str, files: Sequence[Path], reading: dict[str, Any]) -> bool:
    for file, each in zip(files, _with_decimals(files, reading), strict=True):
        if name in (columns_of(file, each) or ()):
            return True
    return False


def _with_decimals(files: Sequence[Path], reading: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how each file is read: of several, only those that have decimal commas with these."""
    readings = [reading] * len(files)
    if reading["decimal"] != "," or len(files) < 2:
        return readings
    for place, file in enumerate(files):
        if not has_decimal_commas(file, reading["separator"]):
            readings[place] = {**reading, "decimal": None}
    return readings


def readings_of(files: Sequence[Path], reading: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how each file is read: its ``drop`` has only columns that the file has.

    A column to leave out that no file has raises FileError.
    """
    drop = reading["drop"]
    readings = _with_decimals(files, reading)
    if not drop or len(files) < 2:
        return readings
    columns = [columns_of(file, each) for file, each in zip(files, readings, strict=True)]
    for name in drop:
        if not any(names is None or name in names for names in columns):
            raise FileError(no_column(str(files[0]), name, columns[0] or ()))
    for place, names in enumerate(columns):
        own = [name for name in drop if names is None or name in names]
        readings[place] = {**readings[place], "drop": tuple(own)}
    return readings


def columns_of(file: Path, reading: dict[str, Any]) -> list[str] | None:
    """Return the names of a file's columns, before its rows are read; None for standard input."""
    if str(file) == STANDARD_INPUT:  # which can be read only once
        return None
    # no column has this name, and the error lists all columns
    nothing = ColumnSelection(("\0",), decimal=reading["decimal"])
    try:
        with warnings.catch_warnings(action="ignore"):
            FileBatches(file, nothing, CHUNK_ROWS, reading["separator"])
    except NoColumnError as problem:
        return problem.names
    return None


def left_out_text(
    columns: Iterable[str],
    dropped: Sequence[tuple[str, int, int]],
    copies: Sequence[tuple[str, int, int]] = (),
) -> tuple[str, ...]:
    """Return sentences on what was not tested: columns, rows with gaps, and copies of rows.

    Parameters
    ----------
    columns : iterable of str
        Columns that were left out.
    dropped, copies : sequences of (str, int, int)
        For each sample its name (empty if there is one only), the number of rows that were left
        out, and of how many.
    """
    columns = list(dict.fromkeys(columns))
    sentences = []
    if columns:
        sentences.append(f"Not tested: {listed_names(columns)}.")
    parts = []
    n_dropped = 0
    for name, n, of in dropped:
        if n:
            n_dropped += n
            sample = ""
            if name:
                sample = f" of {name}"
            parts.append(f"{n:,} of {rows_text(of)}{sample}")
    if parts:
        were = agree(n_dropped, "was", "were")
        sentences.append(f"{' and '.join(parts)} with missing values {were} dropped.")
    for name, n, of in copies:
        if n:
            are = agree(n, "is an exact copy", "are exact copies")
            sentences.append(f"Dropped {n:,} of {rows_text(of)} of {name} that {are}.")
    return tuple(sentences)


def ids_text(columns: Iterable[str]) -> tuple[str, ...]:
    """Return a caution on those of the columns that look like ids; none without such columns.

    A verdict has it too: row numbers of a sorted file differ between any two samples.
    """
    used = set(columns)
    ids = []
    for name in columns_like_ids():
        if name in used:
            ids.append(name)
    if not ids:
        return ()
    drop = option("drop", ",".join(ids))
    if len(ids) == 1:
        looks = f"column {ids[0]} looks like an id and is used too"
        return (f"Caution: {looks}; leave it out with {drop} unless it is a measurement.",)
    looks = f"columns {listed_names(ids)} look like ids and are used too"
    return (f"Caution: {looks}; leave them out with {drop} unless they are measurements.",)


def row_numbers(batches: FileBatches) -> Array:
    """Return the numbers of the rows that were kept, from 0, after the file was read."""
    return np.delete(np.arange((batches.n or 0) + len(batches.dropped)), batches.dropped)


def read_with_target(file: Path, target: str, reading: dict[str, Any]) -> tuple[DataSet, Array]:
    """Return the rows of a file that has a column of numbers to predict, and their numbers in it.

    A file without such a column raises FileError.
    """
    try:
        batches = _opened_with_target(file, target, reading)
        return batches.read(), row_numbers(batches)
    except RowsError as problem:
        if problem.not_numeric == target:
            raise _text_target(file, target) from problem
        raise


def _opened_with_target(file: Path, target: str, reading: dict[str, Any]) -> FileBatches:
    """Return a file whose first rows have the target and columns to predict it from."""
    batches = open_batches(file, **reading)
    if target in (*batches.text_columns, *batches.left_out) and target not in reading["drop"]:
        raise _text_target(file, target)
    names = (*batches.columns, *batches.left_out)
    if target not in batches.columns:
        others = without(names, reading["drop"])
        raise FileError(no_column(str(file), target, others))
    if len(batches.columns) == 1:
        raise FileError(f"{file} has no column beside {target!r} to predict it from.")
    return batches


def _text_target(file: Path, target: str) -> FileError:
    needed = f"{file}: column {target!r} is text; --target must be a column of numbers."
    return FileError(f"{needed} If it has two values, such as yes and no, recode it as 0 and 1.")


def open_like(
    file: Path,
    names: Sequence[str],
    reading: dict[str, Any],
    *,
    optional: Sequence[str] = (),
    whose: str = "the model was trained on",
) -> FileBatches:
    """Return a file to be read with the columns that a model knows, indicators too, in their order.

    Other columns are ignored, except optional ones, which come last. A file that lacks some raises
    FileError: "lacks column 'a' that ``whose``".
    """
    options = {name: reading[name] for name in ("missing", "decimal") if name in reading}
    wanted = ColumnSelection(
        tuple(names), one_hot=True, optional=tuple(optional), only_known=True, **options
    )
    try:
        return FileBatches(Path(file), wanted, CHUNK_ROWS, reading.get("separator"))
    except NoColumnError as problem:
        raise FileError(
            lacks_columns(problem.file, problem.missing, whose, problem.names)
        ) from problem
