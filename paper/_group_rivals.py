"""Other estimators of many means, from their formulas, each for a grid of its constants.

An estimate is W μ̂ with a T × T matrix W. The constants are for whoever knows the truth to choose:
what an estimator reaches with the best of them is more than anybody gets who has only the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from paper._arrays import Array

PRIOR_ROWS = 20.0
"""Rows that the variance of all groups counts for in that of one, as for `KernelMeans`."""

THRESHOLDS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Squared distances up to which two groups count as neighbours, in units of their noise."""

OWN_SHARES = (0.0, 0.1, 0.3, 0.6)
"""How much of its own plain mean a group keeps beside the average of its neighbours."""

PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Of multi-task averaging."""

BIAS_FACTORS = (0.1, 0.3, 1.0)
"""How much of the threshold counts as the bias of neighbours."""

CONFIDENCES = (0.0, 0.1, 0.3, 1.0, 3.0)
"""How many standard deviations Q-aggregation adds to distances."""

STEPS = 400
"""Of the projected gradient method."""

Constants = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class PlainMeans:
    """The plain means of T groups, as far as other estimators need them.

    Attributes
    ----------
    G : array of shape (T, T)
        Their inner products.
    n : array of shape (T,)
        The numbers of rows.
    noise : array of shape (T,)
        D_t, the variance of each plain mean.
    """

    G: Array
    n: Array
    noise: Array

    @classmethod
    def from_gram(cls, G: Array, own: Array, n: Array) -> PlainMeans:
        """Return the plain means, with their noise from the means of k(x, x)."""
        ss = n * (own - np.diag(G))
        pooled = ss.sum() / max((n - 1).sum(), 1)
        return cls(G, n, (ss + PRIOR_ROWS * pooled) / (n - 1 + PRIOR_ROWS) / n)

    @property
    def products(self) -> Array:
        """U: the inner products of the true means, estimated without bias."""
        return np.asarray(self.G - np.diag(self.noise))

    @property
    def squared_distances(self) -> Array:
        """Those of the true means, estimated without bias: zero on the diagonal."""
        norms = np.diag(self.products)
        found = norms[:, None] + norms - 2 * self.products
        np.fill_diagonal(found, 0)
        return np.asarray(found)

    def neighbours(self, threshold: float) -> Array:
        """Return which groups a test finds alike, of shape (T, T); each is its own neighbour."""
        both = self.noise[:, None] + self.noise
        found = self.squared_distances <= threshold * both
        np.fill_diagonal(found, True)
        return np.asarray(found)


def rivals(means: PlainMeans) -> Iterator[tuple[str, Constants, Array]]:
    """Yield the name, the constants and W of every estimator."""
    T = len(means.n)
    for threshold in THRESHOLDS:
        near = means.neighbours(threshold)
        averages = near / near.sum(axis=1, keepdims=True)
        laplacian = np.diag(near.sum(axis=1)) - near
        for share in OWN_SHARES:
            yield "neighbours", (threshold, share), share * np.eye(T) + (1 - share) * averages
        for penalty in PENALTIES:
            smoothed = np.linalg.inv(np.eye(T) + penalty * laplacian)
            yield "MTA on neighbours", (threshold, penalty), smoothed
        for factor in BIAS_FACTORS:
            bias = factor * threshold
            yield "neighbours, weighted", (threshold, factor), weighted(means, near, bias)
    for penalty in PENALTIES:
        yield "MTA", (penalty,), multi_task_average(means, penalty)
    for threshold in THRESHOLDS[1:]:
        for share in OWN_SHARES:
            W = merged(means, threshold)
            yield "merged groups", (threshold, share), share * np.eye(T) + (1 - share) * W
    for confidence in CONFIDENCES:
        yield "Q-aggregation", (confidence,), q_aggregation(means, confidence)
    shrinkage = np.maximum(np.diag(means.products), 0)
    yield "S-KMSE", (), np.diag(shrinkage / (shrinkage + means.noise))


def weighted(means: PlainMeans, near: Array, bias: float) -> Array:
    """Return the neighbours' mean by inverse variances, and the own one, by the least bound.

    The bound on the risk is ω² D_t + (1 − ω)² (D_V + bias D_t), D_V the variance of the mean of the
    neighbours (Blanchard, Fermanian and Marienwald 2024, testing approach).
    """
    T = len(means.n)
    others = near & ~np.eye(T, dtype=bool)
    precisions = others / means.noise
    total = precisions.sum(axis=1)
    D = means.noise
    D_V = np.divide(1, total, out=np.full(T, np.inf), where=total > 0)
    own = 1 - D / (D + D_V + bias * D)
    mean = np.divide(precisions, total[:, None], out=np.eye(T), where=total[:, None] > 0)
    return np.asarray(own[:, None] * np.eye(T) + (1 - own)[:, None] * mean)


def multi_task_average(means: PlainMeans, penalty: float) -> Array:
    """Return multi-task averaging with one similarity for all pairs (Feldman and others 2014).

    W = (I + c/T diag(D) L)⁻¹, L the Laplacian of the similarity 2/(mean squared distance).
    """
    T = len(means.n)
    distances = means.squared_distances
    spread = max(float(distances.sum()) / (T * (T - 1)), 1e-12)
    similarity = 2 / spread * (np.ones((T, T)) - np.eye(T))
    laplacian = np.diag(similarity.sum(axis=1)) - similarity
    return np.linalg.inv(np.eye(T) + penalty / T * means.noise[:, None] * laplacian)


def merged(means: PlainMeans, threshold: float) -> Array:
    """Return the mean of all rows of the groups that average linkage merges up to a threshold."""
    both = means.noise[:, None] + means.noise
    ratios = np.maximum(means.squared_distances / both, 0)
    tree = linkage(squareform(ratios, checks=False), "average")
    labels = fcluster(tree, threshold, "distance")
    together = labels[:, None] == labels
    weights = together * means.n
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def q_aggregation(means: PlainMeans, confidence: float) -> Array:
    """Return the weights ω_t in the simplex with the least upper bound on the risk.

    The bound is ω G ωᵀ − 2 ω U_t + c Σ_u ω_u (D_t + D_u) (Blanchard, Fermanian and Marienwald 2024:
    minimization of an upper confidence bound), by the accelerated projected gradient method.
    """
    T = len(means.n)
    centring = np.eye(T) - np.full((T, T), 1 / T)
    # As weights sum to one, inner products may be taken from any centre.
    G = centring @ means.G @ centring
    U = G - np.diag(means.noise)
    both = means.noise[:, None] + means.noise
    np.fill_diagonal(both, 0)
    linear = 2 * U - confidence * both
    rate = 1 / (2 * float(np.linalg.eigvalsh(G)[-1]))
    W = ahead = np.eye(T)
    momentum = 1.0
    for _ in range(STEPS):
        new = projected(ahead - rate * (2 * ahead @ G - linear))
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - W)
        W, momentum = new, following
    return W


def projected(rows: Array) -> Array:
    """Return the nearest points of the simplex.

    Examples
    --------
    >>> projected(np.array([[0.5, 0.5, -1.0], [3.0, 0.0, 0.0]]))
    array([[0.5, 0.5, 0. ],
           [1. , 0. , 0. ]])
    """
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    level = excess[np.arange(len(rows)), last]
    return np.asarray(np.maximum(rows - level[:, None], 0))
