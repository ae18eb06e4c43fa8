"""The paper's bandwidth: σ² is the median of the squared distances of the pairs i < j."""

import warnings
from typing import Literal

import numpy as np
from scipy.spatial.distance import pdist

from muhat._arrays import Array
from muhat._messages import refusal

Metric = Literal["euclidean", "cityblock"]

EXACT_UP_TO = 2000
"""Rows up to which every pair is measured (2 million pairs)."""

PAIRS = 2_000_000
SEED = 0
CHUNK = 50_000


def median_distance(X: Array, metric: Metric) -> float:
    """Return the median distance of the pairs i < j; of Euclidean ones, the root of the median of their squares.

    Exact up to 2000 rows; beyond that, the median of 2 million pairs drawn with a fixed seed, which lies within
    about 0.1 % of the true median's rank. Where more than half of the pairs coincide, the median of the others, with a
    warning; where all do, 1.
    """
    if len(X) < 2:
        needed = "bandwidth='median' needs at least 2 rows to have a pair"
        raise ValueError(refusal("kernel", needed, f"n_samples = {len(X)}", "give the bandwidth as a number"))
    # From the first row, so that equal rows are exactly zero, and in units of the spread, so that neither 1e200 nor
    # 1e-200 leaves the range of a float.
    with np.errstate(over="ignore"):
        moved = X.astype(np.float64) - X[0]
    unit = float(np.abs(moved).max())
    if unit == 0:
        return _fallback("all rows are equal", 1.0)
    if not np.isfinite(unit):
        needed, got = "bandwidth='median' needs distances that are finite", "rows further apart than the largest float"
        raise ValueError(refusal("kernel", needed, got, "rescale X"))
    moved /= unit
    power = 0.5 if metric == "euclidean" else 1.0
    distances = _all_distances(moved, metric) if len(X) <= EXACT_UP_TO else _some_distances(moved, metric)
    median = float(np.median(distances)) ** power
    if median > 0:
        return median * unit
    apart = distances[distances > 0]
    value = float(np.median(apart)) ** power if apart.size else 1.0
    return _fallback("more than half of the pairs of rows are equal", value * unit)


def _all_distances(X: Array, metric: Metric) -> Array:
    """Return the distances of all pairs i < j, squared if Euclidean."""
    return pdist(X, "sqeuclidean" if metric == "euclidean" else metric)


def _some_distances(X: Array, metric: Metric) -> Array:
    """Return the distances of pairs i ≠ j drawn with a fixed seed, squared if Euclidean."""
    rng = np.random.default_rng(SEED)
    first = rng.integers(len(X), size=PAIRS)
    second = (first + rng.integers(1, len(X), size=PAIRS)) % len(X)
    distances = np.empty(PAIRS)
    for start in range(0, PAIRS, CHUNK):
        chunk = slice(start, start + CHUNK)
        gaps = X[first[chunk]] - X[second[chunk]]
        distances[chunk] = np.einsum("ij,ij->i", gaps, gaps) if metric == "euclidean" else np.abs(gaps).sum(axis=1)
    return distances


def _fallback(reason: str, value: float) -> float:
    warnings.warn(
        f"bandwidth='median': the median distance is zero because {reason}; using {value:.6g} for it instead. "
        "Give the bandwidth as a number to choose it yourself.",
        UserWarning,
        stacklevel=2,
    )
    return value
