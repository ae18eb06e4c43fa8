"""The estimator that was best in a comparison, fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from muhat._arrays import Array
from muhat.comparison._result import Comparison
from muhat.mean import KernelMean
from muhat.stacking import StackedMean


def fit_best(
    comparison: Comparison,
    X: Any,
    *,
    selection: Any = "loo",
    gram: Any = "auto",
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Return the estimator that was best in ``compare(X, ...)``, fitted to the same rows.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    X : array of shape (n, d), or batches that can be iterated again
        The rows that were compared on.
    selection, gram : as in ``compare``
        What was asked for there.
    feature_names : sequence of str, default=None
        Names by which the fitted estimator knows its columns.

    Returns
    -------
    estimator : KernelMean, StackedMean or Pipeline
        A pipeline standardizes new rows as the rows of the comparison were.
    """
    mean = _best_mean(comparison, selection, gram)
    scaler = None
    rows = X
    if comparison.standardize:
        scaler = StandardScaler(with_mean=comparison.kernel.translation_invariant)
        if hasattr(X, "shape"):
            rows = scaler.fit_transform(X)
        else:
            for batch in X:
                scaler.partial_fit(batch)
            rows = _ScaledBatches(X, scaler)
    if hasattr(X, "shape"):
        mean.fit(rows)
    else:
        mean.fit_batches(rows)
    if feature_names is not None:
        first = mean
        if scaler is not None:
            first = scaler
        first.feature_names_in_ = np.array(feature_names, dtype=object)
    if scaler is None:
        return mean
    return make_pipeline(scaler, mean)


def _best_mean(comparison: Comparison, selection: Any, gram: Any) -> Any:
    """Return the stacked mean if its gain is clear and the largest, else the best filter."""
    best, stacked = comparison.best, comparison.stacked
    if stacked is not None:
        to_beat = max(best.improvement or 0.0, 100 * stacked.gain_error_)
        if 100 * stacked.gain_ > to_beat:
            return StackedMean(kernel=comparison.kernel)
    kernel, filter = comparison.kernel, best.filter
    return KernelMean(kernel=kernel, filter=filter, selection=selection, gram=gram)


@dataclass
class _ScaledBatches:
    """Batches that a scaler brings to mean 0 and variance 1 in each pass over them."""

    batches: Iterable[Array]
    scaler: StandardScaler

    def __iter__(self) -> Iterator[Array]:
        return map(self.scaler.transform, self.batches)
