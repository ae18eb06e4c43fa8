"""Numbers and lists as they are written in sentences, tables and figures."""

from collections.abc import Iterable
from math import floor, isfinite, log10

__all__ = [
    "LARGE_SHIFT",
    "TINY_PERCENT",
    "gain_parts",
    "gain_text",
    "is_at_floor",
    "listed_names",
    "p_text",
    "p_value_text",
    "rows_text",
    "setting_text",
    "shift_text",
]

TINY_PERCENT = 0.01
"""Gains and errors below this percentage are shown as zero."""

LARGE_COUNT = 10**5
"""Numbers of iterations from here on are shown with three digits."""

LARGE_SHIFT = 10**6
"""Shifts from here on, in standard deviations, are shown with two digits."""

MAX_NAMES_LISTED = 10
"""The most names that a sentence lists; more would hide what it says."""


def p_value_text(p: float, n_permutations: int, is_complete: bool = False) -> str:
    """Return a p-value as text, "p ≤ 0.001" if random permutations cannot give a smaller one.

    Examples
    --------
    >>> p_value_text(0.001, 999), p_value_text(0.4712, 999)
    ('p ≤ 0.001', 'p = 0.47')
    >>> p_value_text(0.05, 19, is_complete=True)
    'p = 0.05'
    """
    return p_text(p, is_at_floor(p, n_permutations, is_complete))


def is_at_floor(p: float, n_permutations: int, is_complete: bool = False) -> bool:
    """Whether a p-value is 1/(n_permutations + 1), the least of random permutations: a bound."""
    return not is_complete and p * (n_permutations + 1) < 1.5  # p is a whole number of such shares


def p_text(p: float, is_bound: bool) -> str:
    """Return a p-value in two digits; a bound, which is known exactly, with "≤" and in three."""
    if is_bound:
        return f"p ≤ {p:.3g}"
    return f"p = {p:.2g}"


def shift_text(shift: float) -> str:
    """Return a shift in standard deviations with its sign.

    Examples
    --------
    >>> shift_text(0.984), shift_text(-12.3), shift_text(1.23e200)
    ('+0.98', '−12.30', '+1.2e+200')
    """
    text = f"{shift:+,.2f}"
    if abs(shift) >= LARGE_SHIFT:
        text = f"{shift:+.2g}"
    if text.startswith("-"):  # not the sign of an exponent
        return text.replace("-", "−", 1)
    return text


def gain_text(gain: float | None, error: float | None) -> str:
    """Return a gain in percent with its standard error, "0" for less than a hundredth of a percent.

    Examples
    --------
    >>> gain_text(0.4123, 0.52), gain_text(-3.26, 12.4)
    ('0.41 ± 0.52', '−3 ± 12')
    >>> gain_text(-1.5e-7, 7e-8), gain_text(None, None)
    ('0', '–')
    """
    if gain is None or not isfinite(gain):
        return "–"
    if abs(gain) < TINY_PERCENT and (error is None or not error >= TINY_PERCENT):
        return "0"
    if error is None or not isfinite(error):
        return f"{gain:.3g}".replace("-", "−")
    decimals = min(2, max(0, 1 - floor(log10(max(error, TINY_PERCENT)))))
    text = f"{gain:.{decimals}f}"
    if float(text) == 0:  # neither "−0.00" nor more digits than the error has
        text = text.removeprefix("-")
    return f"{text} ± {error:.{decimals}f}".replace("-", "−")


def gain_parts(gain: float, error: float | None) -> tuple[str, str]:
    """Return how far an error is lowered, and the standard error of that, for a sentence.

    Examples
    --------
    >>> gain_parts(1.731, 0.402)
    ('1.73 % lower', 'standard error 0.40 %')
    >>> gain_parts(-3.26, 12.4), gain_parts(2.5, None)
    (('3 % higher', 'standard error 12 %'), ('2.5 % lower', ''))
    """
    size, _, spread = gain_text(gain, error).partition(" ± ")
    side, standard_error = "lower", ""
    if size.startswith("−"):
        side = "higher"
    if spread:
        standard_error = f"standard error {spread} %"
    return f"{size.removeprefix('−')} % {side}", standard_error


def setting_text(symbol: str, parameter: float) -> str:
    """Return a filter's parameter as text, with few digits; empty without a symbol.

    Examples
    --------
    >>> setting_text("t", 12), setting_text("t", 26263317)
    ('t = 12', 't = 2.63e+07')
    >>> setting_text("λ", 0.0012345), setting_text("", 0.0)
    ('λ = 0.00123', '')
    """
    if not symbol:
        return ""
    shown = f"{parameter:.3g}"
    if symbol == "t" and parameter < LARGE_COUNT:
        shown = f"{parameter}"
    return f"{symbol} = {shown}".replace("inf", "∞")


def rows_text(n: int) -> str:
    """Return a number of rows in words.

    Examples
    --------
    >>> rows_text(1), rows_text(1030)
    ('1 row', '1,030 rows')
    """
    if n == 1:
        return "1 row"
    return f"{n:,} rows"


def listed_names(names: Iterable[str], most: int = MAX_NAMES_LISTED) -> str:
    """Return names between commas; of many, the first and an ellipsis.

    Examples
    --------
    >>> listed_names(["age", "sex"]), listed_names(["age", "sex"], most=1)
    ('age, sex', 'age, …')
    """
    names = list(names)
    if len(names) > most:
        names = [*names[:most], "…"]
    return ", ".join(names)
