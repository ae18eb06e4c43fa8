"""Samples to try things on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat.arrays import Array


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
    """

    name: str
    data: Array
    feature_names: tuple[str, ...]


def wine() -> DataSet:
    """Return the wine data of Table 2: 13 measurements of 178 wines, unscaled, as scikit-learn ships them.

    Examples
    --------
    >>> wine().data.shape
    (178, 13)
    """
    from sklearn.datasets import load_wine  # here, because it takes longer to import than all of muhat

    bunch = load_wine()
    return DataSet("wine", bunch.data, tuple(bunch.feature_names))


def standardised(X: Array) -> Array:
    """Return features with mean 0 and variance 1, as the paper's experiments use them; constant ones become 0.

    Examples
    --------
    >>> import numpy as np
    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    from sklearn.preprocessing import StandardScaler

    size = np.abs(X).max(axis=0)  # divided out first, so that the variance neither overflows nor vanishes
    return StandardScaler().fit_transform(X / np.where(size > 0, size, 1))
