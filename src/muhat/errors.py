"""The errors that muhat raises for input: who, what is needed, what it got, what to do."""

from textwrap import shorten

__all__ = ["MuhatError", "MuhatTypeError"]

MAX_GOT_CHARACTERS = 300
"""The most characters of the value that was got that a message shows: a matrix would fill the
screen."""


class MuhatError(ValueError):
    """Raised for input that muhat cannot use; its message is one sentence.

    Parameters
    ----------
    who : str or object
        The estimator, function or option that raises, by its name or as the object itself;
        alone, the whole sentence.
    needed : str, default=''
        What is needed.
    got : object, default=''
        What was given instead.
    advice : str, default=''
        What to do about it.

    Examples
    --------
    >>> str(MuhatError("Gaussian", "bandwidth must be positive or 'median'", -1))
    "Gaussian: bandwidth must be positive or 'median', got -1."
    """

    who: str
    needed: str
    advice: str
    got: str

    def __init__(self, who: object, needed: str = "", got: object = "", advice: str = "") -> None:
        self.who, self.needed, self.advice = name_of(who), needed, advice
        self.got = shorten(str(got), MAX_GOT_CHARACTERS, placeholder=" …")
        super().__init__(self.who, self.needed, self.got, self.advice)

    def __str__(self) -> str:
        if not self.needed:
            return self.who
        return message(self.who, self.needed, self.got, self.advice)


class MuhatTypeError(MuhatError, TypeError):
    """Raised for input of the wrong type, such as text instead of a number."""


def message(who: object, needed: str, got: object, advice: str = "") -> str:
    """Return the sentence of an error: ``who: needed, got got; advice.``.

    Examples
    --------
    >>> message("Gaussian", "bandwidth must be positive or 'median'", -1)
    "Gaussian: bandwidth must be positive or 'median', got -1."
    """
    shown = shorten(str(got), MAX_GOT_CHARACTERS, placeholder=" …")
    sentence = f"{name_of(who)}: {needed}, got {shown}"
    if advice:
        sentence += f"; {advice}"
    return f"{sentence}."


def name_of(who: object) -> str:
    """Return a name unchanged, and the class of any other object."""
    if isinstance(who, str):
        return who
    return type(who).__name__
