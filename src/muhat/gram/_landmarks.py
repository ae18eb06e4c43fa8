"""Which rows become landmarks: drawn uniformly, spread out, or in proportion to their leverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muhat._arrays import Array, rounding


def uniform(X: Array, m: int, seed: int) -> Array:
    """Return the numbers of m rows, each as likely as any other."""
    return np.random.default_rng(seed).choice(len(X), m, replace=False, shuffle=False)


def spread(X: Array, m: int, seed: int) -> Array:
    """Return the numbers of m rows drawn by k-means++: each by its squared distance to those before it."""
    from sklearn.cluster import kmeans_plusplus  # here, as it takes long to import

    # From the centre and in units of the spread, because scikit-learn's distances lose digits, and overflow.
    moved = X - X.mean(axis=0)
    unit = float(np.abs(moved).max()) or 1.0
    return kmeans_plusplus(moved / unit, m, random_state=np.random.RandomState(seed))[1]


def by_leverage(X: Array, m: int, seed: int, pilot: Callable[[Array], Array], diagonal: Array) -> Array:
    """Return the numbers of m rows drawn without replacement in proportion to their ridge leverage scores."""
    rng = np.random.default_rng(seed)
    scores = leverage(pilot(rng.choice(len(X), m, replace=False)), diagonal, m)
    return rng.choice(len(X), m, replace=False, p=scores / scores.sum(), shuffle=False)


def leverage(Z: Array, diagonal: Array, m: int) -> Array:
    """Return the approximate ridge leverage scores ℓ_i = [K (K + nλ)⁻¹]_ii, all positive.

    With K ≈ Z Zᵀ from a pilot, ℓ_i is z_iᵀ (ZᵀZ + nλ)⁻¹ z_i and, for what the pilot does not see of the point,
    (k(x_i, x_i) − ‖z_i‖²)/nλ; one at most. The ridge nλ is the trace of K that its leading m/2 components leave over,
    spread over m/2: components below it are too many for m landmarks to catch one by one. Their number above it, the
    sum of the scores, is then at most m.

    Parameters
    ----------
    Z : array of shape (n, r)
        The pilot's features.
    diagonal : array of shape (n,)
        k(x_i, x_i).
    m : int
        How many landmarks will be drawn.
    """
    sigma, V = np.linalg.eigh(Z.T @ Z)
    leading = max(m // 2, 1)
    left_over = (diagonal.sum() - sigma[-leading:].sum()) / leading
    ridge = max(left_over, len(Z) * rounding(Z) * diagonal.sum(), np.finfo(Z.dtype).tiny)
    seen = ((Z @ V) ** 2 / (np.maximum(sigma, 0) + ridge)).sum(axis=1)
    unseen = np.maximum(diagonal - (Z**2).sum(axis=1), 0) / ridge
    scores = np.minimum(seen + unseen, 1)
    return scores + max(rounding(Z) * scores.max(), np.finfo(Z.dtype).tiny)
