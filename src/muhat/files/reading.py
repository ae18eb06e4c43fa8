"""Reading a sample from a file: whole, or not at all and with one sentence why."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muhat.arrays import Array
from muhat.datasets import DataSet
from muhat.files.errors import FileError
from muhat.messages import refusal, unknown_name

MISSING = {"", "?", ".", "-", "na", "n/a", "#n/a", "nan", "null", "none"}
"""What stands for a missing value in a text file, in lower case."""

SEPARATORS = "\t;,"
"""Tried in this order: a semicolon that divides all rows alike leaves commas to be decimal."""

LISTED = 3
"""How many places an error names."""


def read_table(path: str | os.PathLike[str], drop: Sequence[str] = ()) -> DataSet:
    """Read a sample from a file, points in rows.

    Parameters
    ----------
    path : str or path
        A text file ``.csv`` or ``.tsv`` (separated by commas, semicolons or tabs, with or without a header), a
        ``.parquet`` file (which takes ``pip install 'muhat[parquet]'``), or a NumPy array ``.npy``.
    drop : sequence of str, default=()
        Names of columns to leave out, such as a label; they may hold anything.

    Returns
    -------
    table : DataSet
        The sample, named after the file; columns without names are called ``column 1`` and so on.

    Raises
    ------
    FileError
        If the file cannot be read as numbers, none of them missing.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    _check_readable(path)
    if reader is None:
        needed = f"a file ending in {', '.join(READERS)} is needed"
        came = f"the ending {path.suffix!r}" if path.suffix else "none"
        raise FileError(refusal(str(path), needed, came, "convert it, or rename it if it is one"))
    try:
        columns = reader(path, drop)
    except OSError as problem:
        raise _unreadable(path, problem.strerror or problem) from problem
    _check_complete(path, columns)
    data = np.stack([column.values for column in columns], axis=1)
    return DataSet(path.stem, data, tuple(column.name for column in columns))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of numbers, NaN where a value is missing, with the place in the file of each."""

    name: str
    values: Array
    places: Sequence[int]
    unit: str
    """What places count: lines (from 1, as editors do) or rows (from 0, as arrays do)."""


def _check_readable(path: Path) -> None:
    """Refuse what is no file or has nothing in it."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise FileError(refusal(str(path), "a file is needed", "no such file", "check the name")) from None
    except (OSError, ValueError) as problem:
        raise _unreadable(path, getattr(problem, "strerror", None) or problem) from problem
    if path.is_dir():
        raise FileError(refusal(str(path), "a file is needed", "a folder", "name a file in it"))
    if not size:
        raise FileError(refusal(str(path), "at least one row of numbers is needed", "an empty file"))


def _check_complete(path: Path, columns: list[_Column]) -> None:
    """Refuse a table without rows, and missing or infinite values by row and column."""
    if not columns or not len(columns[0].values):
        raise FileError(refusal(str(path), "at least one row of numbers is needed", "a header only"))
    holes = [column for column in columns if not np.isfinite(column.values).all()]
    if holes:
        bad = np.logical_or.reduce([~np.isfinite(column.values) for column in holes])
        kind = "a missing or infinite value" if bad.sum() == 1 else "missing or infinite values"
        unit = holes[0].unit if bad.sum() == 1 else holes[0].unit + "s"
        places = _listed([str(holes[0].places[index]) for index in np.flatnonzero(bad).tolist()])
        names = _listed([repr(column.name) for column in holes])
        came = f"{kind} in {unit} {places}, column{'s' if len(holes) > 1 else ''} {names}"
        raise FileError(refusal(str(path), "every value must be there and finite", came, "drop or impute them first"))


def _listed(words: list[str]) -> str:
    """Return the first few words, and how many more there are."""
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more


def _unreadable(path: Path, reason: object) -> FileError:
    return FileError(refusal(str(path), "a readable file is needed", reason))


@dataclass(frozen=True)
class _Line:
    number: int
    fields: list[str]


def _read_text(path: Path, drop: Sequence[str]) -> list[_Column]:
    """Return the columns of a text file, whatever its separator, with or without a header."""
    lines = _lines(path)
    if not lines:
        raise FileError(refusal(str(path), "at least one row of numbers is needed", "blank lines only"))
    width = len(lines[0].fields)
    for line in lines:
        if len(line.fields) != width:
            needed = f"every line must have as many fields as the first, {width}"
            raise FileError(refusal(str(path), needed, f"{len(line.fields)} in line {line.number}"))
    header = _has_header(lines)
    names, rows = (lines[0].fields, lines[1:]) if header else ([""] * width, lines)
    named = _kept(path, [name or f"column {place}" for place, name in enumerate(names, 1)], drop)
    columns = [_text_column(path, name, rows, place) for place, name in named]
    unnamed = header and not names[0] and named[0][0] == 0 and len(columns) > 1
    return columns[1:] if unnamed and _counts_rows(path, columns[0]) else columns


def _lines(path: Path) -> list[_Line]:
    """Return the lines that are not blank, split into fields."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as problem:
        raise FileError(refusal(str(path), "text in UTF-8 is needed", "other bytes", "save it as UTF-8")) from problem
    if "\0" in text:
        raise FileError(refusal(str(path), "text is needed", "binary data", "check that it is a text file"))
    rows = list(io.StringIO(text, newline=""))
    try:
        return _split(rows, _separator(rows), strict=True)
    except csv.Error as problem:
        raise _unreadable(path, f"broken quotes or fields ({problem})") from problem


def _split(rows: list[str], separator: str, *, strict: bool) -> list[_Line]:
    reader = csv.reader(rows, delimiter=separator, skipinitialspace=True, strict=strict)
    lines = [_Line(reader.line_num, [field.strip() for field in fields]) for fields in reader]
    return [line for line in lines if line.fields not in ([], [""])]


def _separator(rows: list[str]) -> str:
    """Return the separator that divides the first rows alike, or else the one that divides the first row most."""
    widths = {each: [len(line.fields) for line in _split(rows[:20], each, strict=False)] for each in SEPARATORS}
    for separator, counts in widths.items():
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            return separator
    return max(reversed(SEPARATORS), key=lambda separator: (widths[separator] or [0])[0])


def _has_header(lines: list[_Line]) -> bool:
    """Whether the first line is names: it has no number, or a word where the second line has a number."""
    first = lines[0].fields
    if not any(map(_is_number, first)):
        return any(field.lower() not in MISSING for field in first)
    words = [not _is_number(field) and field.lower() not in MISSING for field in first]
    return len(lines) > 1 and any(
        word and _is_number(field) for word, field in zip(words, lines[1].fields, strict=True)
    )


def _text_column(path: Path, name: str, lines: list[_Line], place: int) -> _Column:
    values = np.empty(len(lines))
    for row, line in enumerate(lines):
        field = line.fields[place]
        if field.lower() in MISSING:
            values[row] = np.nan
        elif _is_number(field):
            values[row] = float(field)
        else:
            decimal_comma = re.fullmatch(r"[+-]?\d+,\d+", field)
            advice = "write decimals with a point" if decimal_comma else "drop or encode that column"
            raise _not_numeric(path, name, repr(field), f"line {line.number}", advice)
    return _Column(name, values, [line.number for line in lines], "line")


def _kept(path: Path, names: Sequence[str], drop: Sequence[str]) -> list[tuple[int, str]]:
    """Return the places and names of the columns that are not to be dropped."""
    for name in drop:
        if name not in names:
            raise FileError(unknown_name(f"{path}, column to drop", name, names))
    kept = [(place, name) for place, name in enumerate(names) if name not in drop]
    if not kept:
        raise FileError(refusal(str(path), "at least one column must be left", "all of them dropped"))
    return kept


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _not_numeric(path: Path, name: str, value: str, place: str, advice: str) -> FileError:
    needed = f"column {name!r} must be numeric"
    return FileError(refusal(str(path), needed, f"{value} in {place}", advice))


def _counts_rows(path: Path, column: _Column) -> bool:
    """Whether an unnamed first column is the row numbers that pandas and R write; they are no feature of the data."""
    n = len(column.values)
    counts = n > 0 and any(np.array_equal(column.values, np.arange(start, start + n)) for start in (0, 1))
    if counts:
        warnings.warn(
            f"{path}: the first column has no name and counts the rows; it is left out.", UserWarning, stacklevel=2
        )
    return counts


def _read_parquet(path: Path, drop: Sequence[str]) -> list[_Column]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        needed, advice = "pyarrow is needed to read parquet", "pip install 'muhat[parquet]'"
        raise FileError(refusal(str(path), needed, "none installed", advice)) from None
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except pyarrow.ArrowException as problem:
        raise _unreadable(path, f"no parquet file, or a damaged one ({_first_sentence(problem)})") from problem
    return [_parquet_column(path, name, table.column(place)) for place, name in _kept(path, table.column_names, drop)]


def _parquet_column(path: Path, name: str, column: Any) -> _Column:
    from pyarrow import float64, types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)):
        known = ((row, value) for row, value in enumerate(column.to_pylist()) if value is not None)
        row, value = next(known, (0, None))
        raise _not_numeric(path, name, repr(value), f"row {row}", "drop or encode that column")
    values = column.cast(float64(), safe=False).to_numpy()
    return _Column(name, values, range(len(values)), "row")


def _read_npy(path: Path, drop: Sequence[str]) -> list[_Column]:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise _unreadable(path, f"no array of numbers, or a damaged one ({_first_sentence(problem)})") from problem
    if not isinstance(array, np.ndarray):
        array.close()
        raise _unreadable(path, "an archive of several arrays")
    if array.ndim != 2:
        needed = "an array of two dimensions is needed, points in rows"
        advice = "save array.reshape(-1, 1) if it is one column" if array.ndim == 1 else "save array.reshape(n, -1)"
        raise FileError(refusal(str(path), needed, f"shape {array.shape}", advice))
    if array.dtype.kind not in "fiub":
        raise FileError(refusal(str(path), "numbers are needed", f"values of type {array.dtype}"))
    if not array.size:
        raise FileError(refusal(str(path), "at least one number is needed", f"shape {array.shape}"))
    array = array if array.dtype == np.float32 else array.astype(np.float64)
    names = [f"column {place}" for place in range(1, array.shape[1] + 1)]
    return [_Column(name, array[:, place], range(len(array)), "row") for place, name in _kept(path, names, drop)]


def _first_sentence(problem: Exception) -> str:
    return str(problem).split("\n")[0].split(". ")[0].rstrip(".")


READERS: dict[str, Callable[[Path, Sequence[str]], list[_Column]]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".parquet": _read_parquet,
    ".npy": _read_npy,
}
"""How each kind of file is read, by its ending."""
