"""The sentences we refuse with, built in one place: who, what was needed, what was got, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import floor, isfinite, log10
from textwrap import shorten

TINY_PERCENT = 0.01
"""Gains and errors below this percentage are shown as zero."""

LARGE_COUNT = 10_000
"""Numbers of iterations from here on are shown with two digits."""


def refusal(who: object, needed: str, got: object, advice: str = "") -> str:
    """One sentence: ``who: needed, got got; advice.``.

    ``who`` is a name, or an object that is called by its class; of a matrix, ``got`` has what fits in a few lines.

    Examples
    --------
    >>> refusal("Gaussian", "bandwidth must be positive or 'median'", -1)
    "Gaussian: bandwidth must be positive or 'median', got -1."
    """
    name = who if isinstance(who, str) else type(who).__name__
    sentence = f"{name}: {needed}, got {shorten(str(got), 300, placeholder=' …')}"
    return f"{sentence}; {advice}." if advice else f"{sentence}."


def unknown_name(who: str, name: object, valid: Iterable[str]) -> str:
    """Refuse a name that is not in the list, with the closest one that is.

    Examples
    --------
    >>> unknown_name("filter", "landwebber", ["kme", "landweber"])
    "filter: the name must be one of 'kme', 'landweber', got 'landwebber'; did you mean 'landweber'?"
    """
    names = list(valid)
    sentence = refusal(who, "the name must be one of " + ", ".join(map(repr, names)), repr(name))
    close = get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    return f"{sentence[:-1]}; did you mean {close[0]!r}?" if close else sentence


def p_value_text(p: float, n_permutations: int, is_complete: bool = False) -> str:
    """Return a p-value as text, "p ≤ 0.001" where it is the smallest that so many random permutations can give.

    Examples
    --------
    >>> p_value_text(0.001, 999), p_value_text(0.4712, 999), p_value_text(0.05, 19, is_complete=True)
    ('p ≤ 0.001', 'p = 0.47', 'p = 0.05')
    """
    is_floor = not is_complete and p * (n_permutations + 1) < 1.5  # p is a whole number of such shares
    return f"p {'≤' if is_floor else '='} {p:.2g}"


def setting_text(symbol: str, parameter: float) -> str:
    """Return a filter's parameter as text, with few digits; empty without a symbol.

    Examples
    --------
    >>> setting_text("t", 12), setting_text("t", 26263317), setting_text("λ", 0.0012345), setting_text("", 0.0)
    ('t = 12', 't = 2.6e7', 'λ = 0.00123', '')
    """
    if not symbol:
        return ""
    if symbol == "t" and parameter < LARGE_COUNT:
        return f"t = {parameter:,}"
    digits = 2 if symbol == "t" else 3
    text = f"{parameter:.{digits}g}".replace("inf", "∞")
    return f"{symbol} = {text.replace('e+0', 'e').replace('e+', 'e')}"


def gain_text(gain: float | None, error: float | None) -> str:
    """Return a gain in percent with its standard error, "0" for less than a hundredth of a percent.

    Examples
    --------
    >>> gain_text(0.4123, 0.52), gain_text(-3.26, 12.4), gain_text(-1.5e-7, 7e-8), gain_text(None, None)
    ('0.41 ± 0.52', '−3 ± 12', '0', '–')
    """
    if gain is None or not isfinite(gain):
        return "–"
    if error is None or not isfinite(error) or error < TINY_PERCENT:
        return "0" if abs(gain) < TINY_PERCENT else f"{gain:.3g}".replace("-", "−")
    decimals = min(2, max(0, 1 - floor(log10(error))))
    text = f"{gain:.{decimals}f}"
    if float(text) == 0:  # neither "−0.00" nor more digits than the error has
        text = text.removeprefix("-")
    return f"{text} ± {error:.{decimals}f}".replace("-", "−")
