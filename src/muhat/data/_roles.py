"""Warnings about columns that may not be features: ids, class labels, constants."""

import re
import warnings
from collections.abc import Sequence
from itertools import compress

import numpy as np

from muhat._arrays import Array
from muhat._messages import ID_ROLE, ColumnWarning, option
from muhat.data._errors import first_quoted

__all__ = ["warn_of_constants", "warn_of_roles"]

MIN_ROWS_FOR_ROLES = 20
"""Minimum number of rows used to guess a column's role."""

LABEL_NAMES = {
    "label",
    "labels",
    "class",
    "target",
    "y",
    "species",
    "category",
    "outcome",
    "response",
}
"""Names of columns, or their last words, that are likely class labels."""

ID_NAMES = {"id", "index", "row", "key", "uid"}
"""Names of columns, or their last words, that are likely ids if all values are different."""

REPEATED_ID_NAMES = {"id", "ids", "uid", "uuid", "nr"}
"""Those that are likely ids also if values repeat, as those of a customer with several rows."""

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words of a name such as ``customer_id``, ``customerID`` or ``Customer Id``."""

MAX_LABELS = 20
"""The most different values that a class label has."""


def warn_of_roles(names: Sequence[str], head: Array) -> None:
    """Warn of columns that look like row numbers, ids or labels in the first rows.

    Parameters
    ----------
    names : sequence of str
        The names of the columns.
    head : array of shape (rows, columns)
        The first rows.
    """
    if len(head) < MIN_ROWS_FOR_ROLES:
        return
    ids, labels = [], []
    for name, column in zip(names, head.T, strict=True):
        if (column != np.round(column)).any():
            continue
        n_different = len(np.unique(column))
        last_word = name.lower().rpartition("_")[2]
        if _looks_like_an_id(name, column, n_different):
            ids.append(name)
        elif last_word in LABEL_NAMES and n_different <= MAX_LABELS:
            labels.append(name)
    _warn_of_role(ID_ROLE, ids)
    _warn_of_role("a class label", labels)


def _looks_like_an_id(name: str, column: Array, n_different: int) -> bool:
    """Whether a column of whole numbers counts rows, or units of several rows, or is called so."""
    if _is_sorted(column):
        return True
    counts_units = column[0] in (0, 1) and bool(np.isin(np.diff(column), (0, 1)).all())
    if counts_units and n_different > MAX_LABELS:
        return True
    words = WORDS.findall(name) or [""]
    last_word = words[-1].lower()
    if last_word in REPEATED_ID_NAMES and n_different > 1:
        return True
    return last_word in ID_NAMES and n_different == len(column)


def _is_sorted(column: Array) -> bool:
    """Whether every value is above, or every value below, the one before it."""
    steps = np.diff(column)
    return bool((steps > 0).all() or (steps < 0).all())


def _warn_of_role(kind: str, names: list[str]) -> None:
    """Warn of columns, without their file: a column of several files is warned of once."""
    if not names:
        return
    found = first_quoted(names)
    drop = option("drop", names[0])
    if len(names) == 1:
        sentence = (
            f"column {found} looks like {kind}; exclude it with {drop} if it is not a feature."
        )
    else:
        advice = f"exclude them, as with {drop}, if they are not features"
        sentence = f"columns {found} look like {kind}; {advice}."
    warnings.warn(ColumnWarning(sentence, names, kind), stacklevel=6)


def warn_of_constants(names: Sequence[str], values: Array) -> None:
    """Warn of columns of numbers that have one value only, without their file: once for several.

    Parameters
    ----------
    names : sequence of str
        The names of the columns of numbers, which come first.
    values : array of shape (rows, columns)
        All rows.
    """
    if len(values) < MIN_ROWS_FOR_ROLES:
        return
    is_constant = (values == values[0]).all(axis=0)
    constant = list(compress(names, is_constant))
    if not constant:
        return
    subject = f"column {constant[0]!r} is"
    if len(constant) > 1:
        subject = f"columns {first_quoted(constant)} are"
    sentence = f"{subject} constant: the same value in every row of a file."
    warnings.warn(ColumnWarning(sentence, constant), stacklevel=4)
