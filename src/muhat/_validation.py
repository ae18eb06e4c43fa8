"""What is accepted as a parameter, a sample, weights or a Gram matrix, and how the rest is refused."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from muhat._arrays import Array, has_finite_sum, rounding
from muhat._messages import refusal


def positive(part: object, name: str, value: object, alternative: str = "", above: float = 0.0) -> float:
    """Return a parameter as a float, or refuse it unless it is finite and above a number, zero if none is given.

    ``part`` is the object whose parameter it is, or its name.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and above < float(value) < inf:
        return float(value)
    needed = f"{name} must be {f'above {above:g}' if above else 'positive'} and finite{alternative}"
    raise ValueError(refusal(part, needed, repr(value)))


def whole_number(part: object, name: str, value: object, least: int = 1) -> int:
    """Return a parameter as an int, or refuse it unless it is a whole number of at least ``least``."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise ValueError(refusal(part, f"{name} must be a whole number of at least {least}", repr(value)))


def as_frame(values: Any) -> Any:
    """Return one of pyarrow's tables as a data frame, and anything else as it is."""
    return values.to_pandas() if type(values).__module__.partition(".")[0] == "pyarrow" else values


def as_array(values: Any) -> Array:
    """Return values as an array; lists of unequal lengths as one of objects, which no check takes for numbers."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)


def is_dask(X: Any) -> bool:
    """Whether X is one of dask's collections; dask is not imported to say so."""
    kinds = type(X).__mro__
    return hasattr(type(X), "__dask_graph__") and any(kind.__module__.partition(".")[0] == "dask" for kind in kinds)


def as_points(X: Any) -> Array:
    """Return points, one in each row of an array, a list or a data frame, as an array of two dimensions."""
    try:
        values = np.asarray(as_frame(X))
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
    except (TypeError, ValueError) as error:
        raise ValueError(refusal("kernel", POINTS, f"{type(X).__name__} of something else")) from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        got = f"shape {values.shape} and type {values.dtype}"
        advice = "reshape one feature with X.reshape(-1, 1)" if values.ndim == 1 else ""
        raise ValueError(refusal("kernel", POINTS, got, advice))
    return values


def as_two_samples(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the points of X and of Y, which must have as many features; without Y, those of X twice."""
    X = as_points(X)
    Y = X if Y is None else as_points(Y)
    if X.shape[1] != Y.shape[1]:
        got = f"shapes {X.shape} and {Y.shape}"
        raise ValueError(refusal("kernel", "points with the same number of features are needed", got))
    return X, Y


POINTS = "points must be real numbers in two dimensions, one point in each row"


def frozen(values: Array) -> Array:
    """Return an array that nobody can write to: the one given if it is such, else a copy."""
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if values.flags.writeable or owner.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return values


def checked_sample(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Array:
    """Return X as a float array of two dimensions, float32 if it was, or refuse it in one sentence.

    ``reset`` is true in ``fit``, where the features are learnt, and false later, where they are compared. ``name``
    is what sentences call X.
    """
    who = type(estimator).__name__
    if is_dask(X):
        advice = "use fit, X.map_blocks(mu.score_samples, drop_axis=1, dtype=float) for values, or X.compute()"
        raise TypeError(refusal(who, f"{name} must be in memory here", f"dask's {type(X).__name__}", advice))
    if issparse(X):
        raise TypeError(refusal(who, f"{name} must be dense", "a sparse matrix", "use X.toarray()"))
    X = as_frame(X if hasattr(X, "shape") else _as_array(who, X, name))
    if np.ma.is_masked(X):
        raise ValueError(refusal(who, f"{name} must have a value everywhere", "masked ones", "fill or drop them first"))
    if len(X.shape) == 1:
        advice = "Reshape your data with X.reshape(-1, 1) for one feature, or X.reshape(1, -1) for one point"
        raise ValueError(refusal(who, f"{name} must have two dimensions, points in rows", f"shape {X.shape}", advice))
    _check_numeric(who, X, name)
    options = {"dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False, "ensure_min_samples": 0}
    values: Array = validate_data(estimator, X, reset=reset, **options)
    if not len(values):
        raise ValueError(refusal(who, "at least one row is needed", "0 sample(s)"))
    _check_finite(who, values, name)
    return values


def _as_array(who: str, X: Any, name: str) -> Array:
    """Return lists as an array, or say how what is no sample at all becomes one."""
    needed = f"{name} must be an array, a data frame or lists of equal lengths, points in rows"
    if isinstance(X, str | PathLike):
        raise TypeError(refusal(who, needed, f"a {type(X).__name__}", "read a file with muhat.read_table(path).data"))
    if not isinstance(X, list | tuple) and not hasattr(X, "__array__"):
        advice = "give batches to fit_batches, and rows as a list" if hasattr(X, "__iter__") else ""
        advice = "give its data, as in read_table(path).data" if hasattr(X, "data") else advice
        raise TypeError(refusal(who, needed, f"a {type(X).__name__}", advice))
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError(refusal(who, needed, "unequal ones", "give batches to fit_batches")) from None


def _check_numeric(who: str, X: Any, name: str) -> None:
    """Refuse columns that hold no numbers, by name."""
    if hasattr(X, "columns"):
        words = [str(column) for column in X.columns if not _is_numeric(np.asarray(X[column]))]
        if words:
            got = "text or dates in " + ", ".join(map(repr, words[:5])) + (", …" if len(words) > 5 else "")
            raise ValueError(refusal(who, f"every column of {name} must be numeric", got, "drop or encode"))
        return
    values = np.asarray(X)
    if values.dtype.kind == "c":
        needed, got = f"{name} must be real: Complex data not supported", f"values of type {values.dtype}"
        raise ValueError(refusal(who, needed, got))
    if not _is_numeric(values):
        first = next((number for number, column in enumerate(values.T) if not _is_numeric(column)), 0)
        got = f"text, dates or lists in column {first}"
        raise ValueError(refusal(who, f"{name} must be numeric", got, "drop or encode that column"))


def _is_numeric(column: Array) -> bool:
    """Whether a column can be read as numbers; all but text and lists is left to scikit-learn."""
    if column.dtype.kind not in "USO":
        return column.dtype.kind not in "Mm"
    if column.dtype.kind == "O" and not any(isinstance(value, str | list | np.ndarray) for value in column.flat):
        return True
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _check_finite(who: str, X: Array, name: str) -> None:
    """Refuse NaN and infinities, and say where the first is."""
    if has_finite_sum(X):
        return
    for kind, found in (("NaN", np.isnan(X)), ("infinite values (inf)", np.isinf(X))):
        rows = np.flatnonzero(found.any(axis=1))
        if rows.size:
            got = f"{rows.size} row{'s' if rows.size > 1 else ''} with {kind} (first: row {rows[0]})"
            raise ValueError(refusal(who, f"{name} must be finite", got, "drop or impute them first"))


def check_scale(who: str, largest: float, dtype: Any, X: Array) -> None:
    """Refuse kernel values so large or so small, given the largest k(x, x), that their squares are no numbers."""
    least, most = float(np.finfo(dtype).tiny) ** 0.5, float(np.finfo(dtype).max) ** 0.5
    vanished = largest == 0 and 0 < float(np.abs(X).max()) < least
    if vanished or 0 < largest < least or largest > most:
        needed = f"the largest k(x, x) must be between {least:.2g} and {most:.2g}"
        raise ValueError(refusal(who, needed, f"{largest:.3g}", "rescale X"))


def checked_masses(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as masses with sum one, or refuse them; equal ones, held once, without weights."""
    if sample_weight is None:
        return np.broadcast_to(1 / n, n)
    weights = checked_weights(who, sample_weight, n)
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def checked_weights(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as floats, finite, not negative and not all zero, or refuse them."""
    if as_array(sample_weight).dtype.kind not in "fiub":
        got = f"values of type {as_array(sample_weight).dtype}"
        raise ValueError(refusal(who, "sample_weight must be real numbers", got))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise ValueError(refusal(who, f"sample_weight must have one weight for each of {n} rows", weights.shape))
    if not np.isfinite(weights).all() or weights.min() < 0:
        rows = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
        got = f"{weights[rows[0]]} in row {rows[0]}"
        raise ValueError(refusal(who, "sample_weight must be finite and not negative", got))
    if not weights.max() > 0:
        raise ValueError(refusal(who, "sample_weight must not sum to zero", "only zeros"))
    return weights


def checked_gram(who: str, K: Array) -> Array:
    """Return a precomputed Gram matrix, exactly symmetric, or refuse it."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(refusal(who, "a precomputed kernel must be a square matrix", f"shape {K.shape}"))
    check_symmetric(who, "a precomputed kernel must be symmetric", K)
    return (K + K.T) / 2


def check_values(K: Array, kernel: Any) -> None:
    """Refuse the values of a kernel on a sample if they are not finite or, where that is not proven, not symmetric."""
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(K.sum(), kernel)
    if not kernel.positive_semidefinite:
        check_symmetric(type(kernel).__name__, "k(x, y) = k(y, x) is needed", K)


def check_finite(total: float, kernel: Any) -> None:
    """Refuse the values of a kernel if their sum is not finite."""
    if not np.isfinite(total):
        needed, got = "values k(x, y) must be finite", "NaN or infinite ones"
        raise ValueError(refusal(type(kernel).__name__, needed, got, "rescale X or choose another kernel"))


def check_semidefinite(gamma: Array, who: str = "kernel", what: str = "the Gram matrix") -> None:
    """Refuse eigenvalues, in rising order, that are below zero by more than rounding."""
    allowed = rounding(gamma) ** 0.5 * np.abs(gamma[..., -1])
    if np.any(gamma[..., 0] < -allowed):
        share = float((gamma[..., 0] / np.abs(gamma[..., -1])).min())
        got, advice = f"an eigenvalue of {share:.2g} times the largest", "use one that is, or clip its spectrum"
        raise ValueError(refusal(who, f"{what} must be positive semi-definite", got, advice))


def check_symmetric(who: str, needed: str, K: Array, name: str = "K") -> None:
    """Refuse a matrix that is not symmetric up to rounding, and say where."""
    gap = np.abs(K - K.T)
    if gap.max() > rounding(K) ** 0.5 * np.abs(K).max():
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        got = f"{name}[{i}, {j}] = {K[i, j]:.6g} and {name}[{j}, {i}] = {K[j, i]:.6g}"
        raise ValueError(refusal(who, needed, got, f"take ({name} + {name}.T)/2 if that is meant"))
