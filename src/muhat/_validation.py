"""Validation of parameters, samples, targets, sample weights and kernel values."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import inf
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from muhat._arrays import Array, as_array, has_finite_sum, rounding
from muhat._frames import ColumnFrame, from_arrow, has_dates, is_date, repeated_name
from muhat._wording import listed_names
from muhat.errors import MuhatError, MuhatTypeError

__all__ = [
    "KERNEL_OF_ROWS_NEEDED",
    "as_frame",
    "as_points",
    "as_two_samples",
    "check_finite",
    "check_not_masked",
    "check_range",
    "check_scale",
    "check_semidefinite",
    "check_symmetric",
    "check_values",
    "checked_gram",
    "checked_masses",
    "checked_sample",
    "checked_target",
    "checked_weights",
    "frozen",
    "is_dask",
    "positive",
    "whole_number",
]

POINTS_NEEDED = "points must be real numbers in two dimensions, one point in each row"

KERNEL_OF_ROWS_NEEDED = "a kernel that is computed from rows is needed"

ENCODE_ADVICE = (
    "encode text with pandas.get_dummies or scikit-learn's OneHotEncoder, or drop the column"
)

DASK_ADVICE = (
    "use fit, or for values X.map_blocks(mu.score_samples, drop_axis=1, dtype=float), or load X "
    "with X.compute()"
)

MAX_EXACT_INTEGER = 2**53
"""The largest whole number up to which all are floats."""

MAX_TEXT_COLUMNS_NAMED = 5
"""The most columns of text that an error names."""


def positive(
    part: object, name: str, value: object, alternative: str = "", above: float = 0.0
) -> float:
    """Return a parameter as a float; raise MuhatError unless it is finite and above a bound.

    ``part`` is the object whose parameter it is, or its name. The bound is zero by default, and
    ``alternative`` says in the message what else is accepted.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and above < float(value) < inf:
        return float(value)
    bound = "positive"
    if above:
        bound = f"above {above:g}"
    raise MuhatError(part, f"{name} must be {bound} and finite{alternative}", repr(value))


def whole_number(part: object, name: str, value: object, least: int = 1) -> int:
    """Return a parameter as an int; raise MuhatError unless it is one of at least ``least``."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise MuhatError(part, f"{name} must be a whole number of at least {least}", repr(value))


def as_frame(values: Any) -> Any:
    """Return pyarrow's tables as ColumnFrame and its arrays as arrays; anything else unchanged."""
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return from_arrow(values)
    return values


def is_dask(X: Any) -> bool:
    """Whether X is one of dask's collections; dask is not imported to find out."""
    if not hasattr(type(X), "__dask_graph__"):
        return False
    return any(kind.__module__.partition(".")[0] == "dask" for kind in type(X).__mro__)


def as_points(X: Any) -> Array:
    """Return points, one in each row of an array, a list or a data frame: shape (n, d)."""
    check_not_masked("kernel", X, "points")
    try:
        values = np.asarray(as_frame(X))
        if values.dtype.kind in "OMm" and is_date(values):
            raise TypeError("dates")
        if values.dtype.kind == "O":
            values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        got = f"{type(X).__name__} of text, dates or other objects"
        raise MuhatError("kernel", POINTS_NEEDED, got) from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        got = f"shape {values.shape} and type {values.dtype}"
        advice = ""
        if values.ndim == 1:
            advice = "reshape one feature with X.reshape(-1, 1)"
        raise MuhatError("kernel", POINTS_NEEDED, got, advice)
    return values


def as_two_samples(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the points of X and of Y, with equally many features; without Y, those of X twice."""
    X = as_points(X)
    if Y is None:
        return X, X
    Y = as_points(Y)
    if X.shape[1] != Y.shape[1]:
        got = f"shapes {X.shape} and {Y.shape}"
        raise MuhatError("kernel", "points with the same number of features are needed", got)
    return X, Y


def frozen(values: Array) -> Array:
    """Return a read-only array: the one given if nobody can write to it, else a copy."""
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if values.flags.writeable or owner.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return values


def checked_sample(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Array:
    """Return X as a float array of shape (n, d), float32 if it was; raise MuhatError if invalid.

    ``reset`` is true in ``fit``, where the features are learnt, and false later, where they are
    compared. ``name`` is what messages call X.
    """
    who = type(estimator).__name__
    if is_dask(X):
        got = f"dask's {type(X).__name__}"
        raise MuhatTypeError(who, f"{name} must be in memory here", got, DASK_ADVICE)
    if issparse(X):
        advice = f"use {name}.toarray()"
        raise MuhatTypeError(who, f"{name} must be dense", "a sparse matrix", advice)
    if not hasattr(X, "shape"):
        X = _as_array(estimator, X, name)
    X = as_frame(X)
    check_not_masked(who, X, name)
    _check_two_dimensions(who, X, name)
    _check_columns(who, X, name)
    _check_numeric(who, X, name)
    _check_exact(who, X, name)
    options = {
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
    }
    # scikit-learn finds the names of a pyarrow table's columns, but not those of a class of ours.
    named = X
    if isinstance(X, ColumnFrame):
        named = X.to_arrow()
    values: Array = validate_data(estimator, named, reset=reset, **options)
    if not len(values):
        raise MuhatError(who, "at least one row is needed", "0 sample(s)")
    _check_finite(who, values, name)
    return values


def _as_array(estimator: Any, X: Any, name: str) -> Array:
    """Return lists as an array; raise MuhatError for other objects, and say how to convert them."""
    who = type(estimator).__name__
    needed = f"{name} must be an array, a data frame or lists of equal lengths, points in rows"
    takes_batches = hasattr(estimator, "fit_batches")
    got = f"a {type(X).__name__}"
    if isinstance(X, str | PathLike):
        raise MuhatTypeError(who, needed, got, "read a file with muhat.read_table(path).data")
    if not isinstance(X, list | tuple) and not hasattr(X, "__array__"):
        raise MuhatTypeError(who, needed, got, _conversion_advice(X, takes_batches))
    try:
        return np.asarray(X)
    except ValueError:
        advice = "give all rows the same number of values"
        if takes_batches:
            advice += ", or batches of rows to fit_batches"
        raise MuhatError(who, needed, "unequal ones", advice) from None


def _conversion_advice(X: Any, takes_batches: bool) -> str:
    """Return how to make a sample of an object that is not an array."""
    if hasattr(X, "data") and not callable(X.data):
        return "pass its data, as in read_table(path).data"
    if isinstance(X, Mapping):
        return "convert it to a data frame, such as with pandas.DataFrame(X)"
    if isinstance(X, Set):
        return "pass a list of rows, because a set has no order and no repeated rows"
    if isinstance(X, range):
        return "pass an array of two dimensions, such as numpy.arange(n).reshape(-1, 1)"
    if not hasattr(X, "__iter__"):
        return ""
    advice = "pass the rows as a list, such as list(X)"
    if takes_batches:
        advice += ", or batches to fit_batches"
    return advice


def check_not_masked(who: str, values: Any, name: str) -> None:
    """Raise MuhatError for masked values: NumPy would use what is hidden."""
    if np.ma.is_masked(values):
        needed = f"{name} must not have masked values"
        raise MuhatError(who, needed, "masked ones", "fill or drop them first")


def _check_two_dimensions(who: str, X: Any, name: str) -> None:
    """Raise MuhatError for one dimension, with the ways to make it two."""
    if len(X.shape) != 1:
        return
    advice = f"Reshape your data with {name}.to_frame() for one feature"
    if not hasattr(X, "to_frame"):
        one_feature = f"Reshape your data with {name}.reshape(-1, 1) for one feature"
        advice = f"{one_feature}, or {name}.reshape(1, -1) for one point"
    needed = f"{name} must have two dimensions, points in rows"
    raise MuhatError(who, needed, f"shape {X.shape}", advice)


def _check_columns(who: str, X: Any, name: str) -> None:
    """Raise MuhatError for a data frame with two columns of one name, or with sparse columns."""
    if not hasattr(X, "columns"):
        return
    repeated = repeated_name(list(X.columns))
    if repeated is not None:
        needed = f"all columns of {name} must have different names"
        raise MuhatError(who, needed, f"{repeated!r} twice", "rename or drop one of them")
    if any(type(kind).__name__ == "SparseDtype" for kind in getattr(X, "dtypes", ())):
        got = "a data frame with sparse columns"
        raise MuhatTypeError(who, f"{name} must be dense", got, f"use {name}.sparse.to_dense()")


def _check_numeric(who: str, X: Any, name: str) -> None:
    """Raise MuhatError for columns of text, dates or lists, by name or by place."""
    if hasattr(X, "columns"):
        words = []
        for column in X.columns:
            if not _is_numeric(np.asarray(X[column])):
                words.append(repr(str(column)))
        if words:
            got = f"text or dates in {listed_names(words, MAX_TEXT_COLUMNS_NAMED)}"
            raise MuhatError(who, f"every column of {name} must be numeric", got, ENCODE_ADVICE)
        return
    values = np.asarray(X)
    if values.dtype.kind == "c":
        needed = f"{name} must be real: Complex data not supported"
        raise MuhatError(who, needed, f"values of type {values.dtype}")
    if not _is_numeric(values):
        are_numeric = list(map(_is_numeric, values.T))
        first = 0
        if False in are_numeric:
            first = are_numeric.index(False)
        got = f"text, dates or lists in column {first}"
        raise MuhatError(who, f"{name} must be numeric", got, ENCODE_ADVICE)


def _check_exact(who: str, X: Any, name: str) -> None:
    """Raise MuhatError for whole numbers so large that different rows would be equal as floats."""
    if isinstance(X, ColumnFrame):
        kinds: Any = [X.values.dtype]
    else:
        kinds = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    if not all(str(kind).lower().startswith(("int64", "uint64")) for kind in kinds):
        return
    values = np.asarray(X)
    if values.ndim != 2 or not values.size or values.dtype.kind not in "iu":
        return
    if max(int(values.max()), -int(values.min())) <= MAX_EXACT_INTEGER:
        return
    before = len(np.unique(values, axis=0))
    after = len(np.unique(values.astype(np.float64), axis=0))
    if after < before:
        needed = (
            f"different rows of {name} must stay different as floats, which are exact up to 2**53"
        )
        got = (
            f"{before} different rows of larger whole numbers, which become {after} different rows"
        )
        raise MuhatError(who, needed, got, "subtract a constant, or drop the column if it is an id")


def _is_numeric(column: Array) -> bool:
    """Whether a column can be read as numbers; all but text and lists is left to scikit-learn."""
    if column.dtype.kind not in "USO":
        return column.dtype.kind not in "Mm"
    if column.dtype.kind == "O":
        has_text = any(isinstance(value, str | list | np.ndarray) for value in column.flat)
        if not has_text:
            return not is_date(column)
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _check_finite(who: str, X: Array, name: str) -> None:
    """Raise MuhatError for NaN and infinities, and say where the first is."""
    if has_finite_sum(X):
        return
    for kind, found in (("NaN", np.isnan(X)), ("infinite values (inf)", np.isinf(X))):
        rows = np.flatnonzero(found.any(axis=1))
        if rows.size:
            several = ""
            if rows.size > 1:
                several = "s"
            got = f"{rows.size} row{several} with {kind} (first: {name}[{rows[0]}])"
            raise MuhatError(who, f"{name} must be finite", got, "drop or impute them first")


def checked_target(who: str, y: Any, n: int | None = None) -> Array:
    """Return y as floats, of shape (n,) or (n, n_outputs); raise MuhatError if it is invalid."""
    if y is None:
        needed = "y must be given: this estimator requires y to be passed, but the target y is None"
        raise MuhatError(who, needed, "None", "call fit with y, as in fit(X, y)")
    check_not_masked(who, y, "y")
    values = _as_target(who, as_frame(y))
    if values.ndim not in (1, 2) or not values.size:
        raise MuhatError(who, "y must be of shape (n,) or (n, n_outputs)", f"shape {values.shape}")
    if n is not None and len(values) != n:
        got = f"{n} rows of X and {len(values)} of y: inconsistent numbers of samples"
        raise MuhatError(who, "X and y must have the same number of rows", got)
    for kind, found in (("NaN", np.isnan(values)), ("infinity (inf)", np.isinf(values))):
        rows = np.flatnonzero(found.reshape(len(values), -1).any(axis=1))
        if rows.size:
            several = ""
            if rows.size > 1:
                several = "s"
            where = f"in {rows.size} row{several} (first: y[{rows[0]}])"
            got = f"Input y contains {kind} {where}"
            raise MuhatError(who, "y must be finite", got, "drop these rows first")
    return values


def _as_target(who: str, y: Any) -> Array:
    """Return y as an array of floats; raise MuhatError for text, dates and complex numbers."""
    needed = "y must be real numbers"
    if has_dates(y):
        advice = "convert times to numbers, such as (y - y.min()) / numpy.timedelta64(1, 'D')"
        raise MuhatError(who, needed, "dates or times", advice)
    values = as_array(y)
    if values.dtype.kind == "c":
        raise MuhatError(
            who, needed, "complex ones", "pass the real and imaginary parts as two outputs"
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise MuhatError(who, needed, "text or objects", "encode it first") from None


def check_range(who: str, X: Array, name: str = "X") -> None:
    """Raise MuhatError if rows are further apart than the largest float."""
    if not X.size:
        return
    with np.errstate(over="ignore"):
        spread = X.max(axis=0) - X.min(axis=0)
        distance = largest = float(spread.max())
        if 0 < largest < inf:
            # Scaled first, as the squares of large numbers overflow before their distance does.
            distance = largest * float(np.sqrt(np.sum((spread / largest) ** 2)))
    if not np.isfinite(distance):
        needed = f"distances between rows of {name} must be finite"
        got = "rows further apart than the largest float"
        raise MuhatError(who, needed, got, f"rescale {name}")


def checked_masses(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as masses with sum one, of shape (n,); raise MuhatError if invalid.

    Without weights the masses are equal, and held once.
    """
    if sample_weight is None:
        return np.broadcast_to(1 / n, n)
    weights = checked_weights(who, sample_weight, n)
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def checked_weights(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as floats of shape (n,); raise MuhatError if they are invalid.

    They must be finite, not negative and not all zero.
    """
    check_not_masked(who, sample_weight, "sample_weight")
    given = as_array(sample_weight)
    if given.dtype.kind not in "fiub":
        got = f"values of type {given.dtype}"
        raise MuhatError(who, "sample_weight must be real numbers", got)
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        needed = f"sample_weight must have one weight for each of {n} rows"
        raise MuhatError(who, needed, weights.shape)
    if not np.isfinite(weights).all() or weights.min() < 0:
        rows = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
        got = f"{weights[rows[0]]} in sample_weight[{rows[0]}]"
        raise MuhatError(who, "sample_weight must be finite and not negative", got)
    if not weights.max() > 0:
        raise MuhatError(who, "sample_weight must not sum to zero", "only zeros")
    if not has_finite_sum(weights):
        got = f"weights up to {weights.max():.3g}"
        raise MuhatError(
            who, "sample_weight must have a finite sum", got, "divide it by a constant"
        )
    return weights


def checked_gram(who: str, K: Array) -> Array:
    """Return a precomputed Gram matrix, exactly symmetric; raise MuhatError for other matrices."""
    if K.shape[0] != K.shape[1]:
        raise MuhatError(who, "a precomputed kernel must be a square matrix", f"shape {K.shape}")
    check_symmetric(who, "a precomputed kernel must be symmetric", K)
    return (K + K.T) / 2


def check_values(K: Array, kernel: Any) -> None:
    """Raise MuhatError unless a kernel's values on a sample are finite and symmetric.

    Symmetry is looked at only if the kernel is not known to be positive semi-definite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(K.sum(), kernel)
    if not kernel.positive_semidefinite:
        check_symmetric(type(kernel).__name__, "k(x, y) = k(y, x) is needed", K)


def check_finite(total: float, kernel: Any) -> None:
    """Raise MuhatError for a kernel whose values have a sum that is not finite."""
    if not np.isfinite(total):
        needed = "values k(x, y) must be finite"
        advice = "rescale X or choose another kernel"
        raise MuhatError(type(kernel).__name__, needed, "NaN or infinite ones", advice)


def check_scale(who: str, largest: float, dtype: Any, X: Array) -> None:
    """Raise MuhatError if squares of kernel values overflow or underflow.

    ``largest`` is the largest k(x, x) of the rows X.
    """
    least = float(np.finfo(dtype).tiny) ** 0.5
    most = float(np.finfo(dtype).max) ** 0.5
    vanished = largest == 0 and 0 < float(np.abs(X).max()) < least
    if vanished or 0 < largest < least or largest > most:
        needed = f"the largest k(x, x) must be between {least:.2g} and {most:.2g}"
        raise MuhatError(who, needed, f"{largest:.3g}", "rescale X")


def check_semidefinite(gamma: Array, who: str = "kernel", what: str = "the Gram matrix") -> None:
    """Raise MuhatError for an eigenvalue below zero by more than rounding.

    ``gamma`` has the eigenvalues in ascending order, of shape (..., components).
    """
    allowed = rounding(gamma) ** 0.5 * np.abs(gamma[..., -1])
    if np.any(gamma[..., 0] < -allowed):
        share = float((gamma[..., 0] / np.abs(gamma[..., -1])).min())
        needed = f"{what} must be positive semi-definite"
        got = f"an eigenvalue of {share:.2g} times the largest"
        raise MuhatError(
            who,
            needed,
            got,
            "use a positive semi-definite one, or set its negative eigenvalues to zero",
        )


def check_symmetric(who: str, needed: str, K: Array, name: str = "K") -> None:
    """Raise MuhatError if a matrix is not symmetric up to rounding, and say where."""
    gap = np.abs(K - K.T)
    if gap.max() > rounding(K) ** 0.5 * np.abs(K).max():
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        got = f"{name}[{i}, {j}] = {K[i, j]:.6g} and {name}[{j}, {i}] = {K[j, i]:.6g}"
        raise MuhatError(
            who, needed, got, f"take ({name} + {name}.T)/2 if the difference is only rounding"
        )
