"""Messages for whoever called: what is unknown or missing, and which option of theirs to use."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from shlex import quote

from muhat._wording import listed_names, rows_text
from muhat.errors import message

__all__ = [
    "IN_COMMAND",
    "ColumnWarning",
    "Note",
    "in_command",
    "lacks_columns",
    "no_column",
    "option",
    "sample_size",
    "unknown_name",
]

IN_COMMAND: ContextVar[bool] = ContextVar("IN_COMMAND", default=False)
"""Whether messages are for somebody who typed a command.

Options are then ``--drop a`` and not ``drop=['a']``.
"""


ID_ROLE = "an id"
"""The ``role`` of columns in a ColumnWarning that look like row numbers or ids."""


class Note(UserWarning):
    """Information that is not a warning, such as how many rows were dropped on request."""


class ColumnWarning(UserWarning):
    """A warning of columns that may not be features.

    ``columns`` has their names, and ``role`` what they look like, such as "an id", if anything.
    """

    def __init__(self, message: str, columns: Iterable[str], role: str = "") -> None:
        super().__init__(message)
        self.columns = tuple(columns)
        self.role = role


@contextmanager
def in_command() -> Iterator[None]:
    """Word options for the command line in messages that are made inside."""
    before = IN_COMMAND.set(True)
    try:
        yield
    finally:
        IN_COMMAND.reset(before)


def option(name: str, value: object = True) -> str:
    """Return an option as the reader would write it, in Python or on the command line.

    Examples
    --------
    >>> option("drop", "colour"), option("missing", "drop"), option("one_hot")
    ("drop=['colour']", "missing='drop'", 'one_hot=True')
    """
    if not IN_COMMAND.get():
        if name == "drop":
            value = [value]
        return f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return flag
    return f"{flag} {quote(str(value))}".replace("','", ",")


def sample_size(n: int) -> str:
    """Return how many rows were given: ``1 row`` in a command, ``n_samples = 1`` in Python.

    Examples
    --------
    >>> sample_size(1)
    'n_samples = 1'
    """
    if IN_COMMAND.get():
        return rows_text(n)
    return f"n_samples = {n}"


def unknown_name(who: str, name: object, valid: Iterable[str]) -> str:
    """Return the message that a name is not in a list, with the closest one that is.

    Examples
    --------
    >>> print(unknown_name("filter", "landwebber", ["kme", "landweber"]).replace("; ", ";\\n"))
    filter: the name must be one of 'kme', 'landweber', got 'landwebber';
    did you mean 'landweber'?
    """
    names = list(valid)
    sentence = message(who, "the name must be one of " + ", ".join(map(repr, names)), repr(name))
    close = get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    if close:
        return f"{sentence[:-1]}; did you mean {close[0]!r}?"
    return sentence


def no_column(who: str, name: str, names: Iterable[str]) -> str:
    """Return the message that a table has no column of a name, with the columns that it has.

    Examples
    --------
    >>> print(no_column("mix.csv", "strength", ["cement", "strenght"]).replace("; ", ";\\n"))
    mix.csv has no column 'strength';
    its columns are cement, strenght;
    did you mean 'strenght'?
    """
    names = list(names)
    sentence = f"{who} has no column {name!r}; its columns are {listed_names(names)}"
    meant = _same_but_for_case(name, names)
    if not meant:
        meant = next(iter(get_close_matches(str(name), names, n=1)), None)
    if meant:
        return f"{sentence}; did you mean {meant!r}?"
    return f"{sentence}."


def lacks_columns(
    who: str,
    missing: Iterable[str],
    whose: str = "the model was trained on",
    names: Iterable[str] = (),
    advice: str = "",
) -> str:
    """Return the message that a table lacks columns that something needs, and what to do.

    If one of the ``names`` that it has differs in case only, the message asks whether that is
    meant. If all are by number, as of a file without a header, it says so.

    Examples
    --------
    >>> lacks_columns("diabetes.csv", ["cement", "slag", "ash"])
    "diabetes.csv lacks column 'cement' (and 2 more) that the model was trained on."
    """
    first, *others = missing
    more = ""
    if others:
        more = f" (and {len(others)} more)"
    sentence = f"{who} lacks column {first!r}{more} that {whose}"
    names = list(names)
    meant = _same_but_for_case(first, names)
    if meant is not None:
        return f"{sentence}; did you mean {meant!r}?"
    by_number = [f"column {place + 1}" for place in range(len(names))]
    if names and names == by_number and not first.startswith("column "):
        return f"{sentence}; its first line looks like data, not names."
    if advice:
        return f"{sentence}; {advice}."
    return f"{sentence}."


def _same_but_for_case(name: str, names: Iterable[str]) -> str | None:
    """Return the name that differs in upper and lower case and blanks only, if there is one.

    Examples
    --------
    >>> _same_but_for_case("Age", ["age ", "sex"])
    'age '
    """
    plain = str(name).strip().casefold()
    for each in names:
        if each != name and str(each).strip().casefold() == plain:
            return each
    return None
