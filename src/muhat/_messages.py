"""The sentences we refuse with, built in one place: who, what was needed, what was got, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten


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
