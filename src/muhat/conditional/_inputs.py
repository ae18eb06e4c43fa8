"""The rows that a conditional mean is fitted to, validated: masses, outputs, copies, columns."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._validation import MAX_EXACT_INTEGER, checked_sample, is_dask
from muhat.data import ColumnMoments, DaskSource, Source
from muhat.data._copies import EqualRows
from muhat.errors import MuhatError
from muhat.kernels import Kernel, Precomputed

MAX_OUTPUT = 1e140
"""Largest |y|, and 1/(smallest spread), whose sums of squares stay in the float range."""

MIN_MASS_SHARE = 1e-30
"""The least mass of a row beside the largest: below, its part in eigenvectors is rounding."""

MIN_COPY_AGREEMENT = 0.9
"""Share of equal rows that must be equal in both x and y for copies to be taken as one.

Rows equal in x are counted, or those equal in y if these are fewer.
"""

MIN_AMBIGUOUS_ROWS = 20
"""Different rows from which on it is not plain why each of them is there five times or more."""


def as_real_numbers(returned: Any) -> Array:
    """Return what a function of y returned as numbers; raise MuhatError if it is invalid."""
    try:
        values = np.asarray(returned)
    except ValueError:  # rows of different lengths
        values = np.empty(0, object)
    if values.dtype == object and values.size:  # numbers that came as objects
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        kinds = {"U": "text", "S": "text", "c": "complex ones"}
        needed = "the function must return real numbers, the same number for each output"
        got = kinds.get(values.dtype.kind, f"a {type(returned).__name__} of other things")
        raise MuhatError("ConditionalMean.expect", needed, got)
    return values.astype(np.float64, copy=False)


def has_copies(equal: EqualRows) -> bool:
    """Return whether equal rows are copies, and not values that repeat.

    Warn where this is ambiguous.
    """
    if not equal.n_copies or equal.agreement < MIN_COPY_AGREEMENT:
        return False
    if equal.recur and len(equal.first) >= MIN_AMBIGUOUS_ROWS:
        message = (
            f"ConditionalMean: {equal.n_copies:,} of {len(equal.groups):,} rows are exact "
            "copies of other rows. Leave-one-out scores and intervals treat the copies as separate "
            "observations. If they are not, drop the copies or pass their counts as sample_weight."
        )
        warnings.warn(message, UserWarning, stacklevel=5)
    return not equal.recur


def rows_taken(kernel: Kernel, X: Array, taken: Array) -> Array:
    """Return the rows that take part; of a Gram matrix, their columns too."""
    if taken.all():
        return X
    if isinstance(kernel, Precomputed):
        return X[np.ix_(taken, taken)]
    return X[taken]


def check_outputs(outputs: Array) -> None:
    """Raise MuhatError for outputs that do not vary, or whose squares overflow or underflow."""
    if len(outputs) > 1 and (outputs == outputs[0]).all():
        got = "the same row everywhere"
        if outputs.shape[1] == 1:
            got = f"{outputs[0, 0]:g} in every row"
        advice = ""
        if np.abs(outputs).max() > MAX_EXACT_INTEGER:
            advice = "numbers above 2**53 are rounded to floats: subtract a constant first"
        raise MuhatError("ConditionalMean", "y must vary", got, advice)
    largest = float(np.abs(outputs).max())
    if largest > MAX_OUTPUT:
        needed = f"y must be at most {MAX_OUTPUT:g} in absolute value, so that squares are finite"
        raise MuhatError("ConditionalMean", needed, f"{largest:.3g}", "rescale y")
    spread = float(np.ptp(outputs, axis=0).max())
    if len(outputs) > 1 and spread < 1 / MAX_OUTPUT:
        needed = f"y must vary by at least {1 / MAX_OUTPUT:g}, so that squares are not zero"
        raise MuhatError("ConditionalMean", needed, f"{spread:.3g}", "rescale y")


def split_columns(who: str, names: list[Any], target: Any) -> tuple[list[int], int]:
    """Return the numbers of all columns, those of y last, and how many these are."""
    if not isinstance(target, list | tuple):
        target = [target]
    places = []
    for each in target:
        if not isinstance(each, Hashable):
            needed = (
                "target must be the name or number of a column of the batches, or a list of them"
            )
            raise MuhatError(who, needed, f"a {type(each).__name__}")
        if each in names:
            places.append(names.index(each))
        elif isinstance(each, int) and -len(names) <= each < len(names):
            places.append(each % len(names))
        else:
            listed = ", ".join(map(repr, names[:5])) + ", …" * (len(names) > 5)
            raise MuhatError(who, f"target must be one or more of the columns {listed}", repr(each))
    others = [place for place in range(len(names)) if place not in places]
    if not others or not places or len(set(places)) < len(places):
        needed = "target must name at least one column, no column twice, and not all columns"
        raise MuhatError(who, needed, repr(target))
    return [*others, *places], len(places)


def check_masses(masses: Array) -> None:
    """Raise MuhatError for positive masses so small that their part is rounding."""
    least = float(masses[masses > 0].min() / masses.max())
    if least < MIN_MASS_SHARE:
        needed = f"sample_weight must be zero or at least {MIN_MASS_SHARE:g} of the largest"
        raise MuhatError(
            "ConditionalMean",
            needed,
            f"{least:.3g} of the largest",
            "set the smallest weights to zero",
        )


def leading_columns(columns: int, rows: Array) -> Array:
    return np.ascontiguousarray(
        rows[:, :columns]
    )  # sums of columns are rounded as those of an array of x alone


def standardized_rows(moments: ColumnMoments, rows: Array) -> Array:
    """Return rows [x, y] with x standardized."""
    columns = len(moments.mean)
    return np.hstack(
        [moments.standardized(rows[:, :columns].astype(np.float64)), rows[:, columns:]]
    )


def reordered(order: list[int], X: Array) -> Array:
    return X[:, order]


def joined_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Source, int, bool]:
    """Return the rows [x, y] of dask collections, the number of outputs, and if y is 1-d."""
    who = "ConditionalMean"
    if sample_weight is not None:
        needed = "weights are not supported for dask data"
        advice = "repeat rows, or load the rows and fit with weights in memory"
        raise MuhatError(who, needed, "sample_weight", advice)
    if not is_dask(y) or (type(X).__name__ == "Array") != (type(y).__name__ == "Array"):
        needed = "X and y must both be dask arrays, or both dask data frames or series"
        raise MuhatError(who, needed, f"{type(X).__name__} and {type(y).__name__}")
    checked_sample(model, DaskSource.from_collection(X).example, reset=True)
    is_flat = y.ndim == 1
    if hasattr(X, "columns"):
        outputs = {"output 0": y}
        if not is_flat:
            outputs = {f"output {place}": y[name] for place, name in enumerate(y.columns)}
        joined = X.assign(**outputs)
        return DaskSource.from_collection(joined), len(outputs), is_flat
    from dask.array import concatenate

    if len(X) != len(y):
        raise MuhatError(who, "X and y must have the same number of rows", f"{len(X)} and {len(y)}")
    y = y.reshape(len(y), -1)
    joined = concatenate([X, y.rechunk((X.chunks[0], -1))], axis=1)
    return DaskSource.from_collection(joined), y.shape[1], is_flat
