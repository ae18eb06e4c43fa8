"""Which columns of a table are read: as numbers, as indicators of their values, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time

from muhat._files import FileError
from muhat._messages import option
from muhat.data._errors import NoColumnError, RowsError

__all__ = ["INDICATOR", "ColumnSelection", "divided", "text_column_of"]

INDICATOR = " = "
"""What stands between a column of text and its value in the name of an indicator."""

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b|\d{1,2}:\d\d")
"""How a word begins that is a date or a time."""


@dataclass(frozen=True)
class Places:
    """The places of a table's columns, by what is done with them."""

    numbers: list[int]
    text: list[int]
    """Columns that become indicators of their values."""
    not_numbers: list[int]
    """Columns that are left out as they do not hold numbers."""


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns and rows of a file to read, and how, as `open_batches` documents it."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    only_numeric: bool = False
    one_hot: bool = False
    missing: str = "error"
    decimal: str | None = None
    """None for a point that does not look like a thousands separator."""
    optional: Sequence[str] = ()
    """Columns to read beside ``columns`` where the file has them."""
    only_known: bool = False
    """Whether a column of text becomes indicators only if ``columns`` names some of them."""

    def places(self, who: str, names: Sequence[str], is_numeric: Callable[[int], bool]) -> Places:
        """Return the places of the columns to read; raise FileError for names that are missing."""
        wanted, values = self.split(names)
        missing = [name for name in (*self.drop, *wanted) if name not in names]
        if missing:
            raise NoColumnError(who, missing, names)
        order = list(range(len(names)))
        if self.columns is not None:
            order = list(map(names.index, wanted))
        kept = [place for place in order if names[place] not in self.drop]
        if not kept:
            raise FileError(who, "at least one column must be left", "all of them dropped")
        found = Places([], [], [])
        for place in kept:
            is_known = names[place] in values
            if self.one_hot and (is_known or not (self.only_known or is_numeric(place))):
                found.text.append(place)
            elif self.only_numeric and not self.one_hot and not is_numeric(place):
                found.not_numbers.append(place)
            else:
                found.numbers.append(place)
        return found

    def split(self, names: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
        """Return the columns that are asked for, each once, and the values that are known of some.

        With ``one_hot``, the name of an indicator, such as ``city = Bern``, asks for column
        ``city`` and makes its value ``Bern`` known.
        """
        asked = [*(self.columns or ())]
        asked += [name for name in self.optional if name in names]
        wanted: list[str] = []
        values: dict[str, list[str]] = {}
        for name in asked:
            text_column = None
            if self.one_hot and name not in names:
                text_column = text_column_of(name, names)
            if text_column is None:
                wanted.append(name)
            else:
                value = name.removeprefix(text_column + INDICATOR)
                values.setdefault(text_column, []).append(value)
                wanted.append(text_column)
        return list(dict.fromkeys(wanted)), values

    def not_numeric(self, who: str, name: str, value: object, place: str) -> RowsError:
        """Return the error of a value that is not a number, with the options that would help."""
        needed = f"column {name!r} must be numeric"
        advice = self._advice(name, value)
        return RowsError(who, needed, repr(value), advice, place, at_row=True, not_numeric=name)

    def _advice(self, name: str, value: object) -> str:
        """Return what to do with a column that is not numeric."""
        leave_out = f"leave it out with {option('drop', name)}"
        make_indicators = f"make indicators of its values with {option('one_hot')}"
        if is_date(value):  # every value would become an indicator
            as_number = "write it as a number, such as days since the first"
            if self.columns is None:
                return f"{leave_out}, or {as_number}"
            return as_number
        if self.columns is not None:
            if self.one_hot:
                return "write numbers in that column"
            return make_indicators
        if self.one_hot:
            return leave_out
        return f"{leave_out} or {option('only_numeric')}, or {make_indicators}"


def text_column_of(indicator: str, text: Iterable[str]) -> str | None:
    """Return the text column that a name would be an indicator of, None if there is none.

    If several could be meant, it is the one with the longest name.
    """
    candidates = [name for name in text if indicator.startswith(name + INDICATOR)]
    return max(candidates, key=len, default=None)


def is_date(value: object) -> bool:
    """Whether a value is a date or a time, or a word that begins as one."""
    return isinstance(value, date | time) or bool(DATE.match(str(value).strip()))


def divided(names: Sequence[str], kept: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names at the places that are kept, in their order, and all others."""
    left_out = sorted(set(range(len(names))) - set(kept))
    return tuple(names[place] for place in kept), tuple(names[place] for place in left_out)
