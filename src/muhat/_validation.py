"""What is accepted as a parameter, a sample, weights or a Gram matrix, and how the rest is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, time, timedelta
from math import inf
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from muhat._arrays import Array, has_finite_sum, rounding
from muhat.errors import MuhatError, MuhatTypeError, message


def positive(
    part: object, name: str, value: object, alternative: str = "", above: float = 0.0
) -> float:
    """Return a parameter as a float, or refuse it unless it is finite and above a number, zero if none is given.

    ``part`` is the object whose parameter it is, or its name.
    """
    if isinstance(value, Real) and not isinstance(value, bool) and above < float(value) < inf:
        return float(value)
    needed = f"{name} must be {f'above {above:g}' if above else 'positive'} and finite{alternative}"
    raise MuhatError(part, needed, repr(value))


def whole_number(part: object, name: str, value: object, least: int = 1) -> int:
    """Return a parameter as an int, or refuse it unless it is a whole number of at least ``least``."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise MuhatError(part, f"{name} must be a whole number of at least {least}", repr(value))


class ColumnFrame:
    """Columns with names, as a data frame has them: what a pyarrow table becomes without pandas.

    It has what is asked of a data frame here: ``columns``, ``shape``, ``frame[name]``,
    ``frame.iloc[rows, places]``, and NumPy takes it as an array.
    """

    def __init__(self, values: Any, columns: Sequence[str]) -> None:
        self.values: Array = np.asarray(values)
        self.columns = list(columns)

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """Return the columns of a pyarrow table or record batch; missing numbers are NaN, categories text."""
        columns = [_arrow_column(table.column(place)) for place in range(table.num_columns)]
        if any(column.dtype.kind not in "fiub" for column in columns):
            columns = [column.astype(object) for column in columns]
        values = np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
        return cls(values, table.schema.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""
        return self.values.shape

    @property
    def iloc(self) -> _ByPlace:
        """Rows and columns by their places."""
        return _ByPlace(self)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Array:
        return self.values[:, self.columns.index(name)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    def to_numpy(self, dtype: Any = None, na_value: Any = None) -> Array:
        """Return the values as an array; what is missing is NaN already."""
        return self.values.astype(dtype or self.values.dtype)

    def to_arrow(self) -> Any:
        """Return the same as a pyarrow table, whose names scikit-learn knows how to find."""
        import pyarrow

        return pyarrow.table(list(self.values.T), names=self.columns)


@dataclass(frozen=True)
class _ByPlace:
    """What ``frame.iloc`` gives."""

    frame: ColumnFrame

    def __getitem__(self, places: tuple[Any, Any]) -> ColumnFrame:
        rows, columns = places
        names = np.array(self.frame.columns, dtype=object)[columns]
        return ColumnFrame(self.frame.values[rows][:, columns], names.tolist())


def _arrow_column(column: Any) -> Array:
    """Return a pyarrow column as an array: numbers and booleans as such, NaN where one is missing."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    is_boolean_with_gaps = types.is_boolean(kind) and column.null_count
    if types.is_decimal(kind) or is_boolean_with_gaps or types.is_null(kind):
        column = column.cast("float64")
    values = (
        column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    )
    return np.asarray(values)


def as_frame(values: Any) -> Any:
    """Return one of pyarrow's tables as columns with names, its arrays as arrays, and anything else as it is."""
    if type(values).__module__.partition(".")[0] != "pyarrow":
        return values
    return ColumnFrame.from_arrow(values) if hasattr(values, "schema") else _arrow_column(values)


def as_array(values: Any) -> Array:
    """Return values as an array; lists of unequal lengths as one of objects, which no check takes for numbers."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)


def is_dask(X: Any) -> bool:
    """Whether X is one of dask's collections; dask is not imported to say so."""
    kinds = type(X).__mro__
    return hasattr(type(X), "__dask_graph__") and any(
        kind.__module__.partition(".")[0] == "dask" for kind in kinds
    )


def as_points(X: Any) -> Array:
    """Return points, one in each row of an array, a list or a data frame, as an array of two dimensions."""
    try:
        values = np.asarray(as_frame(X))
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
    except (TypeError, ValueError) as error:
        raise MuhatError("kernel", POINTS, f"{type(X).__name__} of something else") from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        got = f"shape {values.shape} and type {values.dtype}"
        advice = "reshape one feature with X.reshape(-1, 1)" if values.ndim == 1 else ""
        raise MuhatError("kernel", POINTS, got, advice)
    return values


def as_two_samples(X: Any, Y: Any) -> tuple[Array, Array]:
    """Return the points of X and of Y, which must have as many features; without Y, those of X twice."""
    X = as_points(X)
    Y = X if Y is None else as_points(Y)
    if X.shape[1] != Y.shape[1]:
        got = f"shapes {X.shape} and {Y.shape}"
        raise MuhatError("kernel", "points with the same number of features are needed", got)
    return X, Y


POINTS = "points must be real numbers in two dimensions, one point in each row"

EXACT_UP_TO = 2**53
"""The largest whole number up to which all are floats."""


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

    ``reset`` is true in ``fit``, where the features are learnt, and false later, where they are
    compared. ``name`` is what sentences call X.
    """
    who = type(estimator).__name__
    if is_dask(X):
        advice = "use fit, X.map_blocks(mu.score_samples, drop_axis=1, dtype=float) for values, or X.compute()"
        raise MuhatTypeError(
            who, f"{name} must be in memory here", f"dask's {type(X).__name__}", advice
        )
    if issparse(X):
        raise MuhatTypeError(
            who, f"{name} must be dense", "a sparse matrix", f"use {name}.toarray()"
        )
    X = as_frame(X if hasattr(X, "shape") else _as_array(estimator, X, name))
    _check_not_masked(who, X, name)
    if len(X.shape) == 1:
        raise MuhatError(_one_dimension(who, X, name))
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
    named = X.to_arrow() if isinstance(X, ColumnFrame) else X
    values: Array = validate_data(estimator, named, reset=reset, **options)
    if not len(values):
        raise MuhatError(who, "at least one row is needed", "0 sample(s)")
    _check_finite(who, values, name)
    return values


def _as_array(estimator: Any, X: Any, name: str) -> Array:
    """Return lists as an array, or say how what is no sample at all becomes one."""
    who = type(estimator).__name__
    needed = f"{name} must be an array, a data frame or lists of equal lengths, points in rows"
    takes_batches = hasattr(estimator, "fit_batches")
    if isinstance(X, str | PathLike):
        raise MuhatTypeError(
            who, needed, f"a {type(X).__name__}", "read a file with muhat.read_table(path).data"
        )
    if not isinstance(X, list | tuple) and not hasattr(X, "__array__"):
        raise MuhatTypeError(
            who, needed, f"a {type(X).__name__}", _advice_for_others(X, takes_batches)
        )
    try:
        return np.asarray(X)
    except ValueError:
        advice = "give every row as many numbers"
        advice += ", or batches of rows to fit_batches" if takes_batches else ""
        raise MuhatError(who, needed, "unequal ones", advice) from None


def _advice_for_others(X: Any, takes_batches: bool) -> str:
    """Return what to do with something that is no array: its data, a list of it, or batches where they are taken."""
    if hasattr(X, "data") and not callable(X.data):
        return "give its data, as in read_table(path).data"
    if isinstance(X, Mapping):
        return "make it a data frame, as by pandas.DataFrame(X)"
    if isinstance(X, Set):
        return "a set has no order and no repeats; give a list of rows"
    if isinstance(X, range):
        return "give an array of two dimensions, as by numpy.arange(n).reshape(-1, 1)"
    if hasattr(X, "__iter__"):
        return "give rows as a list, as by list(X)" + (
            ", or batches to fit_batches" if takes_batches else ""
        )
    return ""


def _check_not_masked(who: str, values: Any, name: str) -> None:
    """Refuse a masked array in which something is masked: NumPy would use the hidden values."""
    if np.ma.is_masked(values):
        raise MuhatError(
            who,
            f"{name} must have a value everywhere",
            "masked ones",
            "fill or drop them first",
        )


def _one_dimension(who: str, X: Any, name: str) -> str:
    """Return the sentence that refuses one dimension where two are needed."""
    if hasattr(X, "to_frame"):
        advice = f"Reshape your data with {name}.to_frame() for one feature"
    else:
        advice = f"Reshape your data with {name}.reshape(-1, 1) for one feature, or {name}.reshape(1, -1) for one point"
    return message(
        who, f"{name} must have two dimensions, points in rows", f"shape {X.shape}", advice
    )


def _check_columns(who: str, X: Any, name: str) -> None:
    """Refuse a data frame in which two columns have one name, or columns are sparse."""
    if not hasattr(X, "columns"):
        return
    names = list(X.columns)
    twice = next((each for place, each in enumerate(names) if each in names[:place]), None)
    if twice is not None:
        needed = f"every column of {name} must have a name of its own"
        raise MuhatError(who, needed, f"{twice!r} twice", "rename or drop one of them")
    if any(type(kind).__name__ == "SparseDtype" for kind in getattr(X, "dtypes", ())):
        advice = f"use {name}.sparse.to_dense()"
        raise MuhatTypeError(
            who, f"{name} must be dense", "a data frame with sparse columns", advice
        )


ENCODE = "encode text with pandas.get_dummies or scikit-learn's OneHotEncoder, or drop it"
"""What to do with a column that is not numbers."""


def _check_numeric(who: str, X: Any, name: str) -> None:
    """Refuse columns that hold no numbers, by name."""
    if hasattr(X, "columns"):
        words = [str(column) for column in X.columns if not _is_numeric(np.asarray(X[column]))]
        if words:
            got = (
                "text or dates in "
                + ", ".join(map(repr, words[:5]))
                + (", …" if len(words) > 5 else "")
            )
            raise MuhatError(who, f"every column of {name} must be numeric", got, ENCODE)
        return
    values = np.asarray(X)
    if values.dtype.kind == "c":
        needed, got = (
            f"{name} must be real: Complex data not supported",
            f"values of type {values.dtype}",
        )
        raise MuhatError(who, needed, got)
    if not _is_numeric(values):
        first = next(
            (number for number, column in enumerate(values.T) if not _is_numeric(column)), 0
        )
        got = f"text, dates or lists in column {first}"
        raise MuhatError(who, f"{name} must be numeric", got, ENCODE)


def _check_exact(who: str, X: Any, name: str) -> None:
    """Refuse whole numbers so large that rows which differ would be equal as floats."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None:
        kinds = [getattr(X, "dtype", None)] if not isinstance(X, ColumnFrame) else [X.values.dtype]
    if not all(str(kind).lower().startswith(("int64", "uint64")) for kind in kinds):
        return
    values = np.asarray(X)
    if values.ndim != 2 or not values.size or values.dtype.kind not in "iu":
        return
    if max(int(values.max()), -int(values.min())) <= EXACT_UP_TO:
        return
    before, after = (len(np.unique(each, axis=0)) for each in (values, values.astype(np.float64)))
    if after < before:
        needed = f"rows of {name} that differ must differ as floats, which are exact up to 2**53"
        got = f"{before} different rows of larger whole numbers, of which {after} are left"
        raise MuhatError(who, needed, got, "subtract a constant, or drop the column if it is an id")


def _is_numeric(column: Array) -> bool:
    """Whether a column can be read as numbers; all but text and lists is left to scikit-learn."""
    if column.dtype.kind not in "USO":
        return column.dtype.kind not in "Mm"
    if column.dtype.kind == "O" and not any(
        isinstance(value, str | list | np.ndarray) for value in column.flat
    ):
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
            got = f"{rows.size} row{'s' if rows.size > 1 else ''} with {kind} (first: {name}[{rows[0]}])"
            raise MuhatError(who, f"{name} must be finite", got, "drop or impute them first")


def checked_target(who: str, y: Any, n: int | None = None) -> Array:
    """Return y as floats of one or two dimensions, one row for each of n, or refuse it in one sentence."""
    if y is None:
        needed = "y must be given: this estimator requires y to be passed, but the target y is None"
        raise MuhatError(who, needed, "None", "call fit(X, y)")
    _check_not_masked(who, y, "y")
    values = _as_target(who, as_frame(y))
    if values.ndim not in (1, 2) or not values.size:
        raise MuhatError(who, "y must be of shape (n,) or (n, n_outputs)", f"shape {values.shape}")
    if n is not None and len(values) != n:
        got = f"{n} rows of X and {len(values)} of y: inconsistent numbers of samples"
        raise MuhatError(who, "X and y must have as many rows", got)
    for kind, found in (("NaN", np.isnan(values)), ("infinity (inf)", np.isinf(values))):
        rows = np.flatnonzero(found.reshape(len(values), -1).any(axis=1))
        if rows.size:
            got = f"Input y contains {kind} in {rows.size} row{'s' if rows.size > 1 else ''} (first: y[{rows[0]}])"
            raise MuhatError(who, "y must be finite", got, "drop these rows first")
    return values


def _as_target(who: str, y: Any) -> Array:
    """Return y as an array of floats, or refuse text, dates and complex numbers."""
    if any(_is_date(column) for column in _columns_of(y)):
        advice = "give a difference as a number, such as (y - y.min()) / numpy.timedelta64(1, 'D')"
        raise MuhatError(who, "y must be real numbers", "dates or times", advice)
    values = as_array(y)
    if values.dtype.kind == "c":
        raise MuhatError(
            who, "y must be real numbers", "complex ones", "give both parts as two outputs"
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise MuhatError(
            who, "y must be real numbers", "text or objects", "encode it first"
        ) from None


def _columns_of(values: Any) -> list[Array]:
    """Return the columns of a data frame, each of its own type, or an array by itself."""
    if not hasattr(values, "columns"):
        return [as_array(values)]
    if isinstance(values, ColumnFrame) or not hasattr(values, "iloc"):
        return [np.asarray(values[name]) for name in values.columns]
    return [np.asarray(values.iloc[:, place]) for place in range(values.shape[1])]


def _is_date(values: Array) -> bool:
    """Whether values are dates, times or spans of time, also as Python's objects."""
    if values.dtype.kind == "O":
        return any(
            isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64)
            for value in values.flat
        )
    return values.dtype.kind in "Mm"


def check_is_random_state(who: object, random_state: Any) -> None:
    """Refuse what is no random state, without drawing from one that is."""
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    is_number = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not is_number or not 0 <= int(random_state) < 2**32:
        raise MuhatError(who, RANDOM_STATE, repr(random_state))


def as_random_state(who: object, random_state: Any) -> np.random.RandomState:
    """Return numpy's older kind of generator, which scikit-learn takes, or refuse what is no random state.

    None is a new one each time; equal numbers give the same draws; a RandomState or a Generator is
    drawn from.
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(int(random_state.integers(2**31)))
    check_is_random_state(who, random_state)
    return check_random_state(random_state)


def checked_seed(who: object, random_state: Any) -> int:
    """Return a whole number below 2**31 that a random state gives, or refuse what is none."""
    return int(as_random_state(who, random_state).randint(2**31))


def as_rng(who: object, random_state: Any) -> np.random.Generator:
    """Return numpy's kind of generator, seeded by a number itself, or refuse what is no random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = checked_seed(who, random_state)
    return np.random.default_rng(int(random_state) if isinstance(random_state, Integral) else seed)


RANDOM_STATE = "random_state must be None, a whole number from 0 to 2**32 - 1, a numpy Generator or a RandomState"


def check_range(who: str, X: Array, name: str = "X") -> None:
    """Refuse rows that are further apart than the largest float, whose distances would be infinite."""
    if not X.size:
        return
    with np.errstate(over="ignore"):
        spread = X.max(axis=0) - X.min(axis=0)
        # Scaled first, as the squares of large numbers overflow before their distance does.
        largest = float(spread.max())
        distance = (
            largest * float(np.sqrt(np.sum((spread / largest) ** 2)))
            if 0 < largest < inf
            else largest
        )
    if not np.isfinite(distance):
        needed = f"distances between rows of {name} must be finite"
        raise MuhatError(
            who, needed, "rows further apart than the largest float", f"rescale {name}"
        )


def check_scale(who: str, largest: float, dtype: Any, X: Array) -> None:
    """Refuse kernel values whose squares overflow or underflow, given the largest k(x, x)."""
    least, most = float(np.finfo(dtype).tiny) ** 0.5, float(np.finfo(dtype).max) ** 0.5
    vanished = largest == 0 and 0 < float(np.abs(X).max()) < least
    if vanished or 0 < largest < least or largest > most:
        needed = f"the largest k(x, x) must be between {least:.2g} and {most:.2g}"
        raise MuhatError(who, needed, f"{largest:.3g}", "rescale X")


def checked_masses(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as masses with sum one, or refuse them; equal ones, held once, without weights."""
    if sample_weight is None:
        return np.broadcast_to(1 / n, n)
    weights = checked_weights(who, sample_weight, n)
    scaled = weights / weights.max()
    return scaled / scaled.sum()


def checked_weights(who: str, sample_weight: Any, n: int) -> Array:
    """Return sample weights as floats, finite, not negative and not all zero, or refuse them."""
    _check_not_masked(who, sample_weight, "sample_weight")
    if as_array(sample_weight).dtype.kind not in "fiub":
        got = f"values of type {as_array(sample_weight).dtype}"
        raise MuhatError(who, "sample_weight must be real numbers", got)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.shape != (n,):
        raise MuhatError(
            who, f"sample_weight must have one weight for each of {n} rows", weights.shape
        )
    if not np.isfinite(weights).all() or weights.min() < 0:
        rows = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
        got = f"{weights[rows[0]]} in sample_weight[{rows[0]}]"
        raise MuhatError(who, "sample_weight must be finite and not negative", got)
    if not weights.max() > 0:
        raise MuhatError(who, "sample_weight must not sum to zero", "only zeros")
    return weights


def checked_gram(who: str, K: Array) -> Array:
    """Return a precomputed Gram matrix, exactly symmetric, or refuse it."""
    if K.shape[0] != K.shape[1]:
        raise MuhatError(who, "a precomputed kernel must be a square matrix", f"shape {K.shape}")
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
        raise MuhatError(type(kernel).__name__, needed, got, "rescale X or choose another kernel")


def check_semidefinite(gamma: Array, who: str = "kernel", what: str = "the Gram matrix") -> None:
    """Refuse eigenvalues, in rising order, that are below zero by more than rounding."""
    allowed = rounding(gamma) ** 0.5 * np.abs(gamma[..., -1])
    if np.any(gamma[..., 0] < -allowed):
        share = float((gamma[..., 0] / np.abs(gamma[..., -1])).min())
        got, advice = (
            f"an eigenvalue of {share:.2g} times the largest",
            "use one that is, or clip its spectrum",
        )
        raise MuhatError(who, f"{what} must be positive semi-definite", got, advice)


def check_symmetric(who: str, needed: str, K: Array, name: str = "K") -> None:
    """Refuse a matrix that is not symmetric up to rounding, and say where."""
    gap = np.abs(K - K.T)
    if gap.max() > rounding(K) ** 0.5 * np.abs(K).max():
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        got = f"{name}[{i}, {j}] = {K[i, j]:.6g} and {name}[{j}, {i}] = {K[j, i]:.6g}"
        raise MuhatError(who, needed, got, f"take ({name} + {name}.T)/2 if that is meant")
