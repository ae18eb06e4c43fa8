"""Eigenpairs of the centred covariance operator, of rows in memory or of sums of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from muhat._arrays import Array, quotient, rounding, slices
from muhat._tolerances import MAX_UNITS_LOST
from muhat._validation import check_semidefinite, check_values
from muhat.embedding import Embedding
from muhat.errors import MuhatError
from muhat.gram import FeatureEmbedding, FeatureMap, FeatureSums
from muhat.kernels import Kernel, Precomputed
from muhat.pca._center import Center

ROWS_PER_BLOCK = 8192
"""New rows whose features are held at once."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows seen from the centre, in the basis of the components."""

    scores: Array
    """⟨φ(x) − μ, v_k⟩: shape (rows, components)."""
    squared_norms: Array
    """‖φ(x) − μ‖²: shape (rows,); NaN where k(x, x) is not known."""


class Directions(ABC):
    """The eigenfunctions v_k, as what gives ⟨φ(x) − μ, v_k⟩ of new rows."""

    weights: Array
    """The weights of the eigenfunctions on points or features: shape (size, components)."""

    @abstractmethod
    def project(self, X: Array) -> Projection:
        """Return rows in the basis of the components."""

    @abstractmethod
    def leading(self, count: int) -> Directions:
        """Return the leading ones only."""


@dataclass(frozen=True, eq=False)
class PointDirections(Directions):
    """v_k = Σ_i W_ik (φ(x_i) − μ), for rows x_i in memory."""

    kernel: Kernel
    points: Array
    weights: Array
    center: Any
    """μ as an element of the RKHS; None for the origin."""
    center_weights: Array | None
    """The weights of μ on the same points, where it is their mean."""
    center_values: Array
    """μ(x_i)."""
    center_squared_norm: float

    def leading(self, count: int) -> PointDirections:
        return replace(self, weights=np.ascontiguousarray(self.weights[:, :count]))

    def project(self, X: Array) -> Projection:
        columns = self.weights
        if self.center_weights is not None:
            columns = np.column_stack([self.weights, self.center_weights])
        if isinstance(self.kernel, Precomputed):
            products = X @ columns
            own = np.full(len(X), np.nan)
        else:
            X = X.astype(np.float64, copy=False)
            products = self.kernel.product(X, columns, self.points)
            own = self.kernel.diagonal(X)
        values = np.zeros(len(X))
        if self.center_weights is not None:
            values = products[:, -1]
        elif self.center is not None:
            values = self.center(X)
        sums = self.weights.sum(axis=0)
        constant = self.center_squared_norm * sums - self.center_values @ self.weights
        scores = products[:, : self.weights.shape[1]] - values[:, None] * sums + constant
        return Projection(scores, own - 2 * values + self.center_squared_norm)


@dataclass(frozen=True, eq=False)
class FeatureDirections(Directions):
    """v_k = ⟨V_·k, z(·)⟩, for features z of any number of rows."""

    features: FeatureMap
    weights: Array
    center: Array
    """The coordinates of μ."""

    def leading(self, count: int) -> FeatureDirections:
        return replace(self, weights=np.ascontiguousarray(self.weights[:, :count]))

    def project(self, X: Array) -> Projection:
        rotated = self.features.rotated(np.column_stack([self.weights, self.center]))
        blocks = [np.empty((0, self.weights.shape[1] + 1))]
        for some in slices(0, len(X), ROWS_PER_BLOCK):
            blocks.append(rotated(X[some]).astype(np.float64))
        products = np.concatenate(blocks)
        scores = products[:, :-1] - self.center @ self.weights
        # Landmarks project onto their span: what is outside of it counts in ‖φ(x) − μ‖².
        own = self.features.kernel.diagonal(X).astype(np.float64)
        return Projection(scores, own - 2 * products[:, -1] + self.center @ self.center)


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """All components of a sample, the one with the largest variance first."""

    gamma: Array
    """The variances γ_k of the scores, descending: shape (r,)."""
    directions: Directions
    total_variance: float
    """Σ p_i ‖φ(x_i) − μ‖², of the kernel itself."""
    center: Any
    """μ as an element of the RKHS; None for the origin."""


def decompose_points(
    kernel: Kernel, points: Array, masses: Array, center: Center, matrix: Array | None = None
) -> PrincipalComponents:
    """Return the components of rows in memory.

    Parameters
    ----------
    kernel : Kernel
        Every parameter a number.
    points : array of shape (n, d)
        The rows; for a precomputed kernel, row numbers.
    masses : array of shape (n,)
        p_i, with sum one; a row of mass zero does not take part.
    center : Center
        What is subtracted.
    """
    if points.dtype.kind == "f":
        points = points.astype(np.float64, copy=False)
    present = masses > 0
    p = masses[present]
    K = _gram_matrix(kernel, points[present])
    largest_value = float(np.diagonal(K).max())
    values = np.zeros(len(p))
    element = center.element
    squared_norm = 0.0
    if center.is_estimated:
        element = Embedding(kernel, points, masses)
        values = K @ p
        squared_norm = float(p @ values)
    elif element is not None:
        if isinstance(element, FeatureEmbedding):
            advice = "fit the mean with the same gram, or use gram='random-features' here"
            raise MuhatError(
                "KernelPCA",
                "the centre must be in the kernel's RKHS",
                type(element).__name__,
                advice,
            )
        values = element(points[present])
        squared_norm = element.squared_norm()
    K -= values
    K += squared_norm - values[:, None]
    own = np.diagonal(K).copy()
    q = np.sqrt(p)
    K *= q
    K *= q[:, None]
    gamma, U = np.linalg.eigh(K)
    if not kernel.positive_semidefinite:
        check_semidefinite(np.append(gamma, largest_value))
    gamma, U = _significant(gamma, U, largest_value)
    weights = np.zeros((len(points), len(gamma)))
    weights[present] = quotient(q[:, None] * U, np.sqrt(gamma))
    on_all = np.zeros(len(points))
    on_all[present] = values
    directions = PointDirections(
        kernel=kernel,
        points=points,
        weights=weights,
        center=element,
        center_weights=np.array(masses) if center.is_estimated else None,
        center_values=on_all,
        center_squared_norm=squared_norm,
    )
    return PrincipalComponents(gamma, directions, float(p @ own), element)


def _gram_matrix(kernel: Kernel, points: Array) -> Array:
    """Return K in double, a copy of its own."""
    with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
        K = kernel(points)
    check_values(K, kernel)
    return np.array(K, np.float64)


def decompose_sums(features: FeatureMap, sums: FeatureSums, center: Center) -> PrincipalComponents:
    """Return the components of rows known by what their features sum up to."""
    mass = sums.total_mass
    mean = sums.mean.sum(axis=0) / mass
    covariance = sums.covariance.sum(axis=0) / mass
    mu = np.zeros_like(mean)
    if center.is_estimated:
        mu = mean
    elif center.element is not None:
        mu = features.coordinates(center.element)
    covariance -= np.outer(mu, mean) + np.outer(mean, mu) - np.outer(mu, mu)
    gamma, V = _significant(*np.linalg.eigh(covariance), sums.largest_value)
    total = sums.own / mass - 2 * float(mean @ mu) + float(mu @ mu)
    element = None
    if center.is_estimated or center.element is not None:
        element = features.embedding(mu.astype(features.precision))
    return PrincipalComponents(gamma, FeatureDirections(features, V, mu), total, element)


def _significant(gamma: Array, U: Array, largest_value: float) -> tuple[Array, Array]:
    """Return eigenpairs, the largest first, without those that are rounding; one at least.

    Centring takes away a large mean: its rounding is that of the largest k(x, x). The entry of
    largest size in each eigenvector is positive, so that signs do not depend on the solver.
    """
    floor = rounding(gamma) * max(len(gamma) * gamma[-1], MAX_UNITS_LOST * largest_value)
    kept = gamma > floor
    if not kept.any():
        return np.zeros(1), np.zeros((len(U), 1))
    gamma, U = gamma[kept][::-1], U[:, kept][:, ::-1]
    largest = np.abs(U).argmax(axis=0)
    return gamma, U * np.sign(U[largest, np.arange(len(gamma))])
