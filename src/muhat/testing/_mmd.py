"""The maximum mean discrepancy of two samples, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat._arrays import Array, slices
from muhat._parts import as_kernel
from muhat._validation import check_finite, checked_sample
from muhat.errors import MuhatError
from muhat.kernels import Kernel
from muhat.testing._base import as_rows, samples_of_matrix
from muhat.testing._samples import column_order, in_column_order
from muhat.testing._two_samples import TwoSampleTest, is_series

ROWS_PER_BLOCK = 1000
"""Rows of the Gram matrix that are held at a time."""


def mmd(
    X: Any, Y: Any, kernel: Any = "gaussian", *, squared: bool = False, unbiased: bool = False
) -> float:
    """Return the maximum mean discrepancy (MMD): the distance between two kernel means.

    This is MMD, not MMD², unless ``squared=True``. By default it is the biased V-statistic, the
    mean over all pairs of k(x, x') + k(y, y') − 2 k(x, y), which is never negative. Columns are
    taken as they are, without standardizing. A p-value comes from `TwoSampleTest`.

    Parameters
    ----------
    X, Y : arrays, data frames or Series, of shapes (n, d) and (m, d)
        The samples; one dimension is one column. For ``Precomputed(K)`` give row numbers of K.
    kernel : str, Kernel or callable, default='gaussian'
        The kernel; if its bandwidth σ is not a number, σ² is the median of the squared distances
        between all rows of both samples together (of Laplacian kernels, σ that of the distances).
    squared : bool, default=False
        Whether MMD² is returned.
    unbiased : bool, default=False
        Whether pairs of a row with itself are left out (the U-statistic), so that the mean of MMD²
        over samples is that of the distributions. It may be negative; its root is then taken as 0.

    Returns
    -------
    mmd : float
        MMD, or MMD² if ``squared``.

    Examples
    --------
    >>> from muhat import mmd
    >>> round(mmd([0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0]), 4)
    0.5801
    """
    kernel, X, Y = _prepared(as_kernel(kernel), X, Y)
    if unbiased and min(len(X), len(Y)) < 2:
        raise MuhatError(
            "mmd", "at least 2 rows of each sample are needed with unbiased=True", "1 row"
        )
    within = _mean(kernel, X, X, unbiased) + _mean(kernel, Y, Y, unbiased)
    value = within - 2 * _mean(kernel, X, Y)
    check_finite(value, kernel)
    if not unbiased:
        value = max(value, 0.0)  # rounding may make it negative
    if squared:
        return value
    return float(np.sqrt(max(value, 0.0)))


def _prepared(kernel: Kernel, X: Any, Y: Any) -> tuple[Kernel, Array, Array]:
    """Return the kernel with every parameter a number, and both samples as rows of one width."""
    known = samples_of_matrix("mmd", [kernel], (X, Y))
    if known is not None:
        first, second = known.samples
        return known.kernels[0], first, second
    rows, names = [], []
    for name, given in (("X", X), ("Y", Y)):
        table, columns = as_rows("mmd", name, given)
        rows.append(
            checked_sample(TwoSampleTest(), table, reset=True, name=name).astype(
                np.float64, copy=False
            )
        )
        names.append(columns)
    are_series = is_series(X) and is_series(Y)
    if names[0] and names[1] and names[0] != names[1] and not are_series:
        rows[1] = in_column_order(rows[1], column_order("mmd", names[0], names[1]))
    if rows[0].shape[1] != rows[1].shape[1]:
        got = f"{rows[0].shape[1]} and {rows[1].shape[1]} columns"
        raise MuhatError("mmd", "X and Y must have the same columns", got)
    return kernel.resolve(np.concatenate(rows)), rows[0], rows[1]


def _mean(kernel: Kernel, X: Array, Y: Array, without_diagonal: bool = False) -> float:
    """Return the mean of k(x, y) over all pairs, or without those of a row with itself."""
    with np.errstate(over="ignore", invalid="ignore"):  # raises in words above
        total = sum(float(kernel(X[some], Y).sum()) for some in slices(0, len(X), ROWS_PER_BLOCK))
        if without_diagonal:
            return (total - float(kernel.diagonal(X).sum())) / (len(X) * (len(X) - 1))
    return total / (len(X) * len(Y))
