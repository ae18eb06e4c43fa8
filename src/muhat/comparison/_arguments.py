"""The arguments and the sample of a comparison, validated."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import sample_size
from muhat._parts import Parts
from muhat._validation import KERNEL_OF_ROWS_NEEDED, as_frame, checked_sample
from muhat.data import Source, as_source
from muhat.errors import MuhatError
from muhat.filters import FILTERS, KME
from muhat.kernels import Precomputed
from muhat.mean import KernelMean
from muhat.selection import LeaveOneOut


def checked_parts(kernel: Any, filters: Any, selection: Any, gram: Any) -> Parts:
    """Resolve and check every argument but the sample."""
    parts = Parts.from_arguments(
        "compare",
        kernel=kernel,
        filter=with_kme(filters),
        selection=selection,
        gram=gram,
        auto=tuple(FILTERS),
        best_of=False,
    )
    if isinstance(parts.kernel, Precomputed):
        advice = "pass the rows and the kernel's name"
        raise MuhatError("compare", KERNEL_OF_ROWS_NEEDED, "'precomputed'", advice)
    if parts.gram == "blocks":
        needed = "leave-one-out needs gram='dense', 'nystrom' or 'random-features'"
        raise MuhatError(
            "compare",
            needed,
            "'blocks'",
            "use one of these, or KernelMean(gram='blocks') for one filter",
        )
    return parts


def with_kme(filters: Any) -> list[Any]:
    """Return the filters asked for, KME first."""
    if not isinstance(filters, list | tuple):
        if filters is None:
            filters = "auto"
        filters = [filters]
    return [KME(), *filters]


def checked_rows(parts: Parts, X: Any) -> Array | Source:
    """Return a sample as rows in memory or as batches that can be passed over again, validated."""
    X = _one_column(X)
    source = as_source("compare", X)
    if source is not None:
        parts.check_batches(rows_again=True)
        return source
    rows = checked_sample(KernelMean(), X, reset=True)
    if len(rows) < LeaveOneOut.least_points:
        raise MuhatError("compare", "at least 2 rows are needed", sample_size(len(rows)))
    return rows


def _one_column(X: Any) -> Any:
    """Return what has one dimension, as a Series or a list of numbers, as one column.

    Anything else is returned unchanged.
    """
    X = as_frame(X)
    if isinstance(X, range) or (
        isinstance(X, list | tuple) and all(isinstance(each, Real) for each in X)
    ):
        X = np.asarray(X)
    if len(getattr(X, "shape", ())) != 1:
        return X
    if hasattr(X, "to_frame"):
        return X.to_frame()
    return X[:, None]
