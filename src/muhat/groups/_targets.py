"""One y for each group: from a mapping, a Series by label, or in the order of the groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from muhat._arrays import Array, as_array
from muhat._validation import as_frame, check_not_masked
from muhat.errors import MuhatError
from muhat.groups._rows import LabelledRows

BY_LABEL = "pass y as a dict, or as a Series indexed by group label"
"""What is clear whatever the order of the groups."""


def target_by_group(who: str, y: Any, rows: LabelledRows, is_by_sample: bool) -> Any:
    """Return one y for each of the sorted labels, or raise one sentence that says what is wrong.

    Parameters
    ----------
    who : str
        The estimator.
    y : array of shape (T,), mapping or Series
        A mapping, and a Series with the labels as its index, are taken by label.
    rows : LabelledRows
        The groups.
    is_by_sample : bool
        Whether there was one sample for each group: y is then in the order of these.
    """
    if y is None:
        raise MuhatError(who, "y must be given", "None", "call fit(X, y) or fit(X, y, groups)")
    check_not_masked(who, y, "y")
    y = as_frame(y)
    labels = rows.labels.tolist()
    if _is_table_of_one_column(y):
        y = y.iloc[:, 0]
    if isinstance(y, Mapping) or _is_by_label(y, labels):
        return _taken_by_label(who, y, labels)
    _check_length(who, y, rows)
    order = _order_of_appearance(rows)
    if is_by_sample:
        values = as_array(y)
        sorted_values = np.empty_like(values)
        sorted_values[order] = values
        return sorted_values
    if not np.array_equal(order, np.arange(len(order))):
        needed = "y must name its groups unless groups appear in sorted order"
        first, second = labels[order[0]], labels[0]
        if first == second:
            place = int(np.flatnonzero(order != np.arange(len(order)))[0])
            first, second = labels[order[place]], labels[place]
        got = f"an array, with {first} before {second}"
        raise MuhatError(who, needed, got, BY_LABEL)
    return y


def _is_table_of_one_column(y: Any) -> bool:
    """Whether y is a data frame of pandas with one column."""
    return hasattr(y, "iloc") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 1


def _is_by_label(y: Any, labels: list[Any]) -> bool:
    """Whether y is a Series with each label once in its index."""
    index = getattr(y, "index", None)
    if index is None or callable(index) or getattr(y, "ndim", 1) != 1:
        return False
    return len(y) == len(labels) and set(index) == set(labels)


def _taken_by_label(who: str, y: Any, labels: list[Any]) -> Array:
    missing = [label for label in labels if label not in y]
    if missing:
        needed = "y must have a value for each group"
        raise MuhatError(who, needed, f"none for {missing[0]}")
    return as_array([y[label] for label in labels])


def _check_length(who: str, y: Any, rows: LabelledRows) -> None:
    """Raise MuhatError unless y has one value for each group."""
    T, n = len(rows.labels), len(rows.codes)
    needed = f"y must have one value for each of {T} groups"
    if not hasattr(y, "__len__"):
        raise MuhatError(who, needed, repr(y))
    if len(y) == n != T:
        raise MuhatError(who, needed, f"{n} values, one for each row", BY_LABEL)
    if len(y) != T:
        raise MuhatError(who, needed, len(y))


def _order_of_appearance(rows: LabelledRows) -> Array:
    """Return the places of the sorted labels in the order in which groups first appear."""
    _, first = np.unique(rows.codes, return_index=True)
    return np.argsort(first)
