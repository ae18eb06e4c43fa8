"""Numbers, counts and names as a reader sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

MAX_LISTED = 4
"""Names in a list of a sentence; of more, the rest are counted."""

MAX_EXACT_LENGTH = 9
"""Characters up to which a number is shown with all of its digits, as in 9,999,999."""


def number(value: Any, digits: int = 3) -> str:
    """Return a number with at most this many digits and a true minus sign; a dash for None or NaN.

    Examples
    --------
    >>> number(-1234.5), number(0.000123), number(None)
    ('−1,230', '0.000123', '–')
    """
    if value is None or not isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits}g}")
    text = f"{rounded:.{digits}g}"
    if 1000 <= abs(rounded) < 1e7:
        text = f"{rounded:,.0f}"
    return text.replace("-", "−")


def exact_number(value: float) -> str:
    """Return a number with all of its digits if these are few, otherwise with three.

    Examples
    --------
    >>> exact_number(9999), exact_number(-99.99), exact_number(1 / 3)
    ('9,999', '−99.99', '0.333')
    """
    text = f"{value:,.15g}"
    if not isfinite(value) or len(text) > MAX_EXACT_LENGTH:
        return number(value)
    return text.replace("-", "−")


def count(n: int, noun: str) -> str:
    """Return a number of things, in words that agree.

    Examples
    --------
    >>> count(1, "row"), count(1200, "row"), count(2, "batch")
    ('1 row', '1,200 rows', '2 batches')
    """
    if n == 1:
        return f"1 {noun}"
    plural = "s"
    if noun.endswith("ch"):
        plural = "es"
    return f"{n:,} {noun}{plural}"


def shortened(text: str, most: int = 80) -> str:
    """Return a text of at most this many characters: the beginning and the end of a long one.

    Examples
    --------
    >>> shortened("a long name", 8)
    'a lo…ame'
    """
    if len(text) <= most:
        return text
    head = most // 2
    tail = most - head - 1
    return f"{text[:head]}…{text[len(text) - tail :]}"


def listed(names: Sequence[str], most: int = MAX_LISTED, more: str = "more") -> str:
    """Return names with commas and an "and" before the last; of many, the first and how many more.

    Examples
    --------
    >>> listed(["cement", "water"]), listed("abcdef")
    ('cement and water', 'a, b, c and 3 more')
    """
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1:,} {more}"]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def agree(n: int, one: str, several: str) -> str:
    """Return the word that agrees with a number, such as "is" or "are".

    Examples
    --------
    >>> agree(1, "is", "are"), agree(0, "is", "are")
    ('is', 'are')
    """
    if n == 1:
        return one
    return several


def numbered(noun: str, n: int, start: int = 0) -> list[str]:
    """Return numbered names, such as 'column 1'.

    Examples
    --------
    >>> numbered("column", 2), numbered("x", 2, start=1)
    (['column 0', 'column 1'], ['x 1', 'x 2'])
    """
    names = []
    for place in range(start, start + n):
        names.append(f"{noun} {place}")
    return names


def all_shortened(texts: Iterable[str], most: int) -> list[str]:
    """Return texts of at most this many characters each."""
    return [shortened(str(text), most) for text in texts]
