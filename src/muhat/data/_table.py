"""A table of points with names, and how its columns are standardized."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array


@dataclass(frozen=True, eq=False)
class DataSet:
    """A sample with names.

    Attributes
    ----------
    name : str
        What it is called.
    data : array of shape (n, d)
        The points, in rows; unscaled.
    feature_names : tuple of str
        The names of the d columns.
    target : array of shape (n,) or None
        What others predict from the data, numbers or names of classes; a kernel mean has no use for it.
    source : str
        Where it comes from, in one line.
    licence : str
        On what terms, in one line.
    """

    name: str
    data: Array
    feature_names: tuple[str, ...]
    target: Array | None = None
    source: str = ""
    licence: str = ""


def standardized(X: Array) -> Array:
    """Return features with mean 0 and variance 1, as the paper's experiments use them; constant ones become 0.

    Examples
    --------
    >>> import numpy as np
    >>> standardized(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    from sklearn.preprocessing import StandardScaler

    size = np.abs(X).max(axis=0)  # divided out first, so that the variance neither overflows nor vanishes
    return StandardScaler().fit_transform(X / np.where(size > 0, size, 1))
