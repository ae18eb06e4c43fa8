"""Indicators of the values of a text column: their names, and which columns can have them."""

from collections.abc import Collection, Iterable, Sequence

from muhat._files import FileError
from muhat._messages import option
from muhat.data._layout import have_decimal_commas
from muhat.data._selection import INDICATOR, is_date, text_column_of

__all__ = ["alike_values_note", "check_few_values", "check_no_indicators", "indicators_of"]

MAX_CATEGORIES = 20
"""The most different values of a column of text that become indicators."""


def indicators_of(name: str, values: Sequence[str]) -> list[str]:
    """Return the names of the indicators of a column of text."""
    return [f"{name}{INDICATOR}{value}" for value in values]


def check_few_values(name: str, values: Collection[str]) -> None:
    """Raise FileError for a column of text with too many values to become indicators."""
    if len(values) > MAX_CATEGORIES:
        at_most = f"at most {MAX_CATEGORIES} different values to become indicators"
        advice = f"leave it out with {option('drop', name)}"
        if have_decimal_commas(values):
            advice = f"use {option('decimal', ',')} if it has decimal commas, or {advice}"
        if all(map(is_date, values)):
            advice = f"they are dates; {advice}"
        needed = f"a column of text needs {at_most}"
        raise FileError(option("one_hot"), needed, f"more in {name!r}", advice)


def alike_values_note(name: str, values: Iterable[str]) -> str:
    """Return a sentence on two values that differ in case or spaces at the ends only; or "".

    Examples
    --------
    >>> alike_values_note("ok", ["No", "Yes", "yes"])
    "'Yes' and 'yes' of column ok are different values; they differ only in upper and lower case."
    """
    seen: dict[str, str] = {}
    for value in values:
        first = seen.setdefault(value.strip().casefold(), value)
        if first != value:
            how = "upper and lower case or in spaces at the ends"
            if first.strip() == value.strip():
                how = "spaces at the ends"
            elif first.casefold() == value.casefold():
                how = "upper and lower case"
            different = f"{first!r} and {value!r} of column {name} are different values"
            return f"{different}; they differ only in {how}."
    return ""


def check_no_indicators(names: Sequence[str], text: Sequence[str]) -> None:
    """Raise FileError for a column named as an indicator of another: one of them would be lost."""
    for name in names:
        text_column = text_column_of(name, text)
        if text_column is not None:
            needed = "the indicator of a text column needs a name that no other column has"
            advice = f"rename it or leave it out with {option('drop', name)}"
            raise FileError(option("one_hot"), needed, f"{name!r} beside {text_column!r}", advice)
