"""Errors for files that cannot be read: the place, what is wrong, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from muhat._files import FileError
from muhat._messages import IN_COMMAND, no_column, option
from muhat.errors import message

__all__ = [
    "NUMBER_WITH_POINTS",
    "READABLE_NEEDED",
    "THOUSANDS",
    "DecimalCommaError",
    "DecimalPointError",
    "NoColumnError",
    "RowsError",
    "first_listed",
    "first_quoted",
    "no_rows",
    "raise_unreadable",
]

READABLE_NEEDED = "a readable file is needed"

MAX_PLACES_LISTED = 3
"""The most rows, columns or values that an error or warning lists."""


class RowsError(FileError):
    """Something in a file that cannot be read: the rows before it have been yielded.

    ``at_row`` says that the row after these is wrong, and not the file; ``not_numeric`` is the
    column whose value is not a number, if that is what is wrong.
    """

    def __init__(
        self,
        who: str,
        needed: str,
        got: object,
        advice: str = "",
        place: str = "",
        at_row: bool = False,
        not_numeric: str | None = None,
    ) -> None:
        super().__init__(who, needed, got, advice)
        self.not_numeric = not_numeric
        self.place = place
        self.at_row = at_row

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, batch: int | None = None) -> str:
        """Return the sentence, with the number of the batch for somebody who reads in batches."""
        where = self._where(batch)
        got = self.got
        if where:
            got += f" in {where}"
        return message(self.who, self.needed, got, self.advice)

    def _where(self, batch: int | None) -> str:
        # Whoever typed a command did not choose batches: the file, the line or row, and the column
        # say where to look.
        if batch is None or IN_COMMAND.get():
            return self.place
        in_batch = f"batch {batch} (counted from 0)"
        return ", ".join(filter(None, [self.place, in_batch]))


THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
"""A number with thousands separators."""


NUMBER_WITH_POINTS = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d{1,3}(\.\d{3})+(,\d*)?)([eE][+-]?\d+)?")
"""A number with a decimal point, or with points as thousands separators."""


class NoColumnError(FileError):
    """A table without columns that were asked for.

    ``missing`` has their names, ``names`` those of the columns that the table has.
    """

    file: str
    missing: list[str]
    names: list[str]

    def __init__(self, who: str, missing: Sequence[str], names: Sequence[str]) -> None:
        super().__init__(no_column(who, missing[0], names))
        self.file = who
        self.missing = list(missing)
        self.names = list(names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.missing, self.names)


class _SignError(RowsError):
    """A number of a column with commas or points that are not the decimal sign of the file."""

    def __init__(self, who: str, name: str, value: str, place: str) -> None:
        self.signs, advice = self._signs_and_advice(value)
        super().__init__(who, name, value, advice, place, at_row=True)

    @staticmethod
    def _signs_and_advice(value: str) -> tuple[str, str]:
        """Return what the commas or points of a value are called, and what to do."""
        raise NotImplementedError

    def sentence(self, batch: int | None = None) -> str:
        where = self._where(batch)
        return (
            f"{self.who}: column {self.needed!r} has {self.signs}, "
            f"as {self.got!r} in {where}; {self.advice}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.who, self.needed, self.got, self.place)


class DecimalCommaError(_SignError):
    """A number with a decimal comma, or thousands separators, in a file read with decimal points.

    '1,000' may be either: both are named.
    """

    @staticmethod
    def _signs_and_advice(value: str) -> tuple[str, str]:
        if not THOUSANDS.fullmatch(value):
            return "decimal commas", f"use {option('decimal', ',')} or convert them"
        advice = "remove them"
        if value.count(",") == 1 and "." not in value:
            advice += f", or use {option('decimal', ',')} if they are decimal commas"
        return "thousands separators", advice


class DecimalPointError(_SignError):
    """A number with a point, in a file that is read with decimal commas.

    '1.234' may be 1234 or 1.234: both are named.
    """

    @staticmethod
    def _signs_and_advice(value: str) -> tuple[str, str]:
        if "," in value or value.count(".") > 1:
            return "thousands separators", "remove them"
        left_out = f"leave out {option('decimal', ',')} if they are decimal points"
        return "points", f"remove them if they are thousands separators, or {left_out}"


@contextmanager
def raise_unreadable(who: str, *errors: type[Exception], got: str = "{}") -> Iterator[None]:
    """Raise RowsError, in one sentence, for an error of the system or one of ``errors``.

    ``got`` is what the sentence says of one of ``errors``, with its reason in place of the braces.
    """
    try:
        yield
    except (OSError, *errors) as problem:  # type: ignore[misc]  # a tuple that is not known yet
        reason = _reason(problem)
        if isinstance(problem, errors):
            reason = got.format(reason)
        raise RowsError(who, READABLE_NEEDED, reason) from problem


def _reason(problem: Exception) -> str:
    """Return what the system says, else the first sentence of an error."""
    reason = getattr(problem, "strerror", None)
    if reason:
        return str(reason)
    first_line = str(problem).split("\n")[0]
    return first_line.split(". ")[0].rstrip(".")


def no_rows(who: str, got: str) -> FileError:
    """Return the error of a file without a row of numbers."""
    return FileError(who, "at least one row of numbers is needed", got)


def first_quoted(names: Iterable[str]) -> str:
    """Return the first few names in quotes, and how many more there are."""
    return first_listed(list(map(repr, names)))


def first_listed(words: Sequence[object]) -> str:
    """Return the first few words, and how many more there are."""
    found = ", ".join(map(str, words[:MAX_PLACES_LISTED]))
    if len(words) > MAX_PLACES_LISTED:
        return f"{found} and {len(words) - MAX_PLACES_LISTED} more"
    return found
