"""The sentences we refuse with, built in one place: who, what was needed, what was got, what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from math import floor, isfinite, log10
from shlex import quote

from muhat.errors import message

TINY_PERCENT = 0.01
"""Gains and errors below this percentage are shown as zero."""

LARGE_COUNT = 10**5
"""Numbers of iterations from here on are shown with three digits."""

LARGE_SHIFT = 10**6
"""Shifts from here on, in standard deviations, are shown with two digits."""

IN_COMMAND: ContextVar[bool] = ContextVar("IN_COMMAND", default=False)
"""Whether sentences are for somebody who typed a command, to whom options are ``--drop a`` and not ``drop=['a']``."""

LISTED = 10
"""The most names that a sentence lists."""


class Note(UserWarning):
    """Something that a user is told without being warned, such as how many rows were dropped as was asked for."""


class ColumnWarning(UserWarning):
    """A warning of columns that may not be features, which it names."""

    def __init__(self, message: str, columns: Iterable[str]) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


@contextmanager
def in_command() -> Iterator[None]:
    """Word options for the command line in sentences made here."""
    before = IN_COMMAND.set(True)
    try:
        yield
    finally:
        IN_COMMAND.reset(before)


def unknown_name(who: str, name: object, valid: Iterable[str]) -> str:
    """Refuse a name that is not in the list, with the closest one that is.

    Examples
    --------
    >>> unknown_name("filter", "landwebber", ["kme", "landweber"])
    "filter: the name must be one of 'kme', 'landweber', got 'landwebber'; did you mean 'landweber'?"
    """
    names = list(valid)
    sentence = message(who, "the name must be one of " + ", ".join(map(repr, names)), repr(name))
    close = get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    return f"{sentence[:-1]}; did you mean {close[0]!r}?" if close else sentence


def p_value_text(p: float, n_permutations: int, is_complete: bool = False) -> str:
    """Return a p-value as text, "p ≤ 0.001" where it is the smallest that so many random permutations can give.

    Examples
    --------
    >>> p_value_text(0.001, 999), p_value_text(0.4712, 999), p_value_text(0.05, 19, is_complete=True)
    ('p ≤ 0.001', 'p = 0.47', 'p = 0.05')
    """
    return p_text(p, is_at_floor(p, n_permutations, is_complete))


def is_at_floor(p: float, n_permutations: int, is_complete: bool = False) -> bool:
    """Whether a p-value is 1/(n_permutations + 1), the least that random permutations can give: a bound."""
    return not is_complete and p * (n_permutations + 1) < 1.5  # p is a whole number of such shares


def p_text(p: float, is_bound: bool) -> str:
    """Return a p-value in two digits, or with "≤" in three where it is a bound, which is known exactly."""
    return f"p ≤ {p:.3g}" if is_bound else f"p = {p:.2g}"


def shift_text(shift: float) -> str:
    """Return a shift in standard deviations with its sign.

    Examples
    --------
    >>> shift_text(0.984), shift_text(-12.3), shift_text(1.23e200)
    ('+0.98', '−12.30', '+1.2e+200')
    """
    text = f"{shift:+,.2f}" if abs(shift) < LARGE_SHIFT else f"{shift:+.2g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def gain_text(gain: float | None, error: float | None) -> str:
    """Return a gain in percent with its standard error, "0" for less than a hundredth of a percent.

    Examples
    --------
    >>> gain_text(0.4123, 0.52), gain_text(-3.26, 12.4), gain_text(-1.5e-7, 7e-8), gain_text(None, None)
    ('0.41 ± 0.52', '−3 ± 12', '0', '–')
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


def option(name: str, value: object = True) -> str:
    """Return an option as the reader of a sentence would write it, in Python or, in a command, on the command line.

    Examples
    --------
    >>> option("drop", "colour"), option("missing", "drop"), option("one_hot")
    ("drop=['colour']", "missing='drop'", 'one_hot=True')
    """
    if IN_COMMAND.get():
        flag = f"--{name.replace('_', '-')}"
        return flag if value is True else f"{flag} {quote(str(value))}".replace("','", ",")
    return f"{name}={[value] if name == 'drop' else value!r}"


def sample_size(n: int) -> str:
    """Return how many rows were given: in a command ``1 row``, else ``n_samples = 1`` as in scikit-learn.

    Examples
    --------
    >>> sample_size(1)
    'n_samples = 1'
    """
    return rows_text(n) if IN_COMMAND.get() else f"n_samples = {n}"


def rows_text(n: int) -> str:
    """Return a number of rows in words.

    Examples
    --------
    >>> rows_text(1), rows_text(1030)
    ('1 row', '1,030 rows')
    """
    return f"{n:,} row{'' if n == 1 else 's'}"


def listed_names(names: Iterable[str], most: int = LISTED) -> str:
    """Return names between commas, the first of many."""
    names = list(names)
    return ", ".join(names[:most]) + ", …" * (len(names) > most)


def same_but_for_case(name: str, names: Iterable[str]) -> str | None:
    """Return the name that differs from another in upper and lower case and blanks only, if there is one.

    Examples
    --------
    >>> same_but_for_case("Age", ["age ", "sex"]), same_but_for_case("Age", ["sex"])
    ('age ', None)
    """
    plain = str(name).strip().casefold()
    return next(
        (each for each in names if each != name and str(each).strip().casefold() == plain), None
    )


def no_column(who: str, name: str, names: Iterable[str]) -> str:
    """Say that a table has no column of a name, which it has, and which may be meant.

    Examples
    --------
    >>> no_column("concrete.csv", "strength", ["cement", "slag", "strenght"])
    "concrete.csv has no column 'strength'; its columns are cement, slag, strenght; did you mean 'strenght'?"
    """
    names = list(names)
    sentence = f"{who} has no column {name!r}; its columns are {listed_names(names)}"
    close = [same_but_for_case(name, names) or "", *get_close_matches(str(name), names, n=1)]
    close = [each for each in close if each]
    return f"{sentence}; did you mean {close[0]!r}?" if close else f"{sentence}."


def lacks_columns(
    who: str,
    missing: Iterable[str],
    whose: str = "the model was trained on",
    names: Iterable[str] = (),
    advice: str = "",
) -> str:
    """Say that a table lacks columns, the first by name, that something needs, and what to do.

    Of the ``names`` that it has, one that differs in case only is what may be meant.

    Examples
    --------
    >>> lacks_columns("diabetes.csv", ["cement", "slag", "ash"])
    "diabetes.csv lacks column 'cement' (and 2 more) that the model was trained on."
    """
    first, *others = missing
    more = f" (and {len(others)} more)" if others else ""
    sentence = f"{who} lacks column {first!r}{more} that {whose}"
    meant = same_but_for_case(first, names)
    if meant is not None:
        return f"{sentence}; did you mean {meant!r}?"
    return f"{sentence}; {advice}." if advice else f"{sentence}."


def setting_text(symbol: str, parameter: float) -> str:
    """Return a filter's parameter as text, with few digits; empty without a symbol.

    Examples
    --------
    >>> setting_text("t", 12), setting_text("t", 26263317), setting_text("λ", 0.0012345), setting_text("", 0.0)
    ('t = 12', 't = 2.63e+07', 'λ = 0.00123', '')
    """
    if not symbol:
        return ""
    is_count = symbol == "t" and parameter < LARGE_COUNT
    shown = f"{parameter}" if is_count else f"{parameter:.3g}"
    return f"{symbol} = {shown}".replace("inf", "∞")
