"""Tables as lists of rows: choosing rows, and CSV that keeps every number to the last bit."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat.errors import MuhatError
from paper._arrays import Array
from paper._experiment import Row

INTEGER = re.compile(r"-?[0-9]+")
FLOAT = re.compile(r"-?([0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?|inf)|nan")
WORDS = {"": None, "True": True, "False": False}


def to_csv(rows: Sequence[Row]) -> bytes:
    """Return a table as CSV, with a header of all keys; None and missing cells are empty.

    Examples
    --------
    >>> to_csv([{"n": 10, "loss": 0.1}, {"n": 20, "exact": True}]).decode().split()
    ['n,loss,exact', '10,0.1,', '20,,True']
    """
    header = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_written(key, row.get(key)) for key in header] for row in rows)
    return text.getvalue().encode()


def from_csv(content: bytes) -> list[Row]:
    """Return the rows of a table, each with every key; text that looks like a number is one.

    Examples
    --------
    >>> from_csv(b"n,loss,exact\\n10,0.1,\\n20,,True\\n")
    [{'n': 10, 'loss': 0.1, 'exact': None}, {'n': 20, 'loss': None, 'exact': True}]
    """
    header, *lines = csv.reader(io.StringIO(content.decode(), newline=""))
    found = []
    for line in lines:
        found.append(dict(zip(header, map(_read, line), strict=True)))
    return found


def where(rows: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows whose columns have the values given.

    Examples
    --------
    >>> where([{"n": 10, "loss": 0.1}, {"n": 20, "loss": 0.2}], n=20)
    [{'n': 20, 'loss': 0.2}]
    """
    found = []
    for row in rows:
        if _has(row, values):
            found.append(row)
    return found


def _has(row: Row, values: dict[str, object]) -> bool:
    return all(row[name] == value for name, value in values.items())


def where_not(rows: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows without those whose columns have the values given.

    Examples
    --------
    >>> where_not([{"n": 10, "loss": 0.1}, {"n": 20, "loss": 0.2}], n=20)
    [{'n': 10, 'loss': 0.1}]
    """
    found = []
    for row in rows:
        if not _has(row, values):
            found.append(row)
    return found


def one(rows: Iterable[Row], **values: object) -> Row:
    """Return the only row whose columns have the values given."""
    (row,) = where(rows, **values)
    return row


def column(rows: Iterable[Row], name: str) -> Array:
    """Return a column of numbers as an array.

    Examples
    --------
    >>> column([{"n": 10}, {"n": 20}], "n")
    array([10, 20])
    """
    values = []
    for row in rows:
        values.append(row[name])
    return np.array(values)


def picked(row: Row, names: Iterable[str]) -> Row:
    """Return some columns of a row.

    Examples
    --------
    >>> picked({"n": 10, "d": 1, "loss": 0.1}, ["n", "d"])
    {'n': 10, 'd': 1}
    """
    found = {}
    for name in names:
        found[name] = row[name]
    return found


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows with the same values in some columns, by these values.

    Examples
    --------
    >>> list(grouped([{"n": 10, "d": 1}, {"n": 20, "d": 1}, {"n": 10, "d": 1}], "n", "d"))
    [(10, 1), (20, 1)]
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(picked(row, columns).values()), []).append(row)
    return groups


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown.

    Examples
    --------
    >>> markdown(["n", "loss"], [["10", "0.1"]])
    ['| n | loss |', '|---|---|', '| 10 | 0.1 |']
    """
    rule = "|---" * len(header) + "|"
    return [_markdown_line(header), rule, *map(_markdown_line, lines)]


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def distinct(rows: Iterable[Row], column: str, order: Iterable[Any] = ()) -> list[Any]:
    """Return the different values of a column, in the order given or else of appearance.

    Examples
    --------
    >>> distinct([{"n": 10}, {"n": 20}, {"n": 10}], "n")
    [10, 20]
    """
    found = dict.fromkeys(row[column] for row in rows)
    first = []
    for value in order:
        if value in found:
            first.append(value)
    return [*first, *(value for value in found if value not in first)]


def _written(key: str, value: object) -> str:
    """Return the text of a cell."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return repr(value)
    raise MuhatError(
        f"column {key!r}", "a cell must be a string, a number, a boolean or None", repr(value)
    )


def _read(cell: str) -> str | float | bool | None:
    """Return the value of a cell."""
    if cell in WORDS:
        return WORDS[cell]
    if INTEGER.fullmatch(cell):
        return int(cell)
    if FLOAT.fullmatch(cell):
        return float(cell)
    return cell
