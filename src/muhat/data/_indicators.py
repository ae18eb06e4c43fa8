"""Indicators of the values of a text column: their names, and which columns can have them."""

from collections.abc import Collection, Sequence

from muhat._files import FileError
from muhat._messages import option
from muhat.data._layout import have_decimal_commas
from muhat.data._selection import INDICATOR, text_column_of

__all__ = ["check_few_values", "check_no_indicators", "indicators_of"]

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
        needed = f"a column of text needs {at_most}"
        raise FileError(option("one_hot"), needed, f"more in {name!r}", advice)


def check_no_indicators(names: Sequence[str], text: Sequence[str]) -> None:
    """Raise FileError for a column named as an indicator of another: one of them would be lost."""
    for name in names:
        text_column = text_column_of(name, text)
        if text_column is not None:
            needed = "the indicator of a text column needs a name that no other column has"
            advice = f"rename it or leave it out with {option('drop', name)}"
            raise FileError(option("one_hot"), needed, f"{name!r} beside {text_column!r}", advice)
