"""Labels of rows as whole numbers."""

from collections.abc import Iterable

import numpy as np

from muhat._arrays import Array

__all__ = ["distinct_labels", "labels_in_order"]


def distinct_labels(labels: Array) -> tuple[Array, Array]:
    """Return the distinct labels, sorted, and the place of each label among them.

    Numbers and text have no common order: mixed labels are sorted by type, then as text.

    Parameters
    ----------
    labels : array of shape (n,)

    Returns
    -------
    distinct : array of shape (T,)
    codes : array of int of shape (n,)
    """
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        found = labels.tolist()
        ordered = sorted(set(found), key=lambda label: (type(label).__name__, str(label)))
        distinct = np.empty(len(ordered), dtype=object)
        distinct[:] = ordered
        places = {label: place for place, label in enumerate(ordered)}
        codes = np.array([places[label] for label in found])
    return distinct, codes.reshape(-1)


def labels_in_order(labels: Iterable[str]) -> list[str]:
    """Return the different labels: numbers as they rise, others as they appear.

    Examples
    --------
    >>> labels_in_order(["before", "after", "before"]), labels_in_order(["10", "9"])
    (['before', 'after'], ['9', '10'])
    """
    found = list(dict.fromkeys(labels))
    try:
        return sorted(found, key=float)
    except ValueError:
        return found
