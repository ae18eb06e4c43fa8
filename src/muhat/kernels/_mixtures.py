"""Gaussian mixtures, whose kernel means are known: the truth to measure estimates against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Array, rounding
from muhat._text import count
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import (
    as_two_samples,
    check_semidefinite,
    check_symmetric,
    frozen,
    whole_number,
)
from muhat.errors import MuhatError
from muhat.kernels._base import GaussianMeans, Kernel, classes_with, terms


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(UnsavedCaches):
    """The distribution P = Σ_j π_j N(θ_j, S_j), with its kernel mean in closed form.

    It is known for kernels with ``has_gaussian_means``: Gaussian, Linear and Polynomial, scale
    mixtures of Gaussians such as Matern (to 1e-10), and sums and multiples of these.

    Parameters
    ----------
    weights : array of shape (r,)
        The π_j: not negative, with sum one.
    means : array of shape (r, d)
        The θ_j.
    covariances : array of shape (r, d, d)
        The S_j: symmetric and positive semi-definite; zero is a point.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian, Linear
    >>> P = Mixture([0.5, 0.5], [[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    >>> P.mean(Gaussian(1.0), np.array([[0.0]])).round(4)
    array([0.5507])
    >>> P.inner(Linear(), P), P.expected_diagonal(Linear())
    (0.0, 2.0)
    """

    weights: Array
    means: Array
    covariances: Array

    def __post_init__(self) -> None:
        weights = _numbers("weights", self.weights, ("r",))
        means = _numbers("means", self.means, (len(weights), "d"))
        d, advice = means.shape[1], "use Mixture.isotropic for one variance each"
        covariances = _numbers("covariances", self.covariances, (len(weights), d, d), advice)
        if weights.min() < 0 or abs(weights.sum() - 1) > rounding(weights) ** 0.5:
            needed = "weights must not be negative and must sum to one"
            got = f"{weights.tolist()} with sum {weights.sum():.6g}"
            raise MuhatError("Mixture", needed, got, "divide them by their sum")
        symmetric = (covariances + covariances.swapaxes(-2, -1)) / 2
        variances, axes = np.linalg.eigh(symmetric)
        for number in np.flatnonzero((covariances != symmetric).any(axis=(1, 2))):
            needed = f"the covariance of component {number} must be symmetric"
            check_symmetric("Mixture", needed, covariances[number], "S")
        for number in np.flatnonzero(variances[:, 0] < 0):
            check_semidefinite(
                variances[number], "Mixture", f"the covariance of component {number}"
            )
        vars(self).update(weights=frozen(weights), means=frozen(means), covariances=symmetric)
        vars(self).update(eigenpairs=(np.maximum(variances, 0), axes))

    @classmethod
    def from_moments(cls, weights: Array, means: Array, covariances: Array) -> Mixture:
        """Return the mixture with moments computed from rows, without validating them again."""
        self = object.__new__(cls)
        vars(self).update(weights=weights, means=means, covariances=covariances)
        return self

    @cached_property
    def eigenpairs(self) -> tuple[Array, Array]:
        """Eigenvalues of each S_j, shape (r, d), none negative, and eigenvectors in columns."""
        variances, axes = np.linalg.eigh(self.covariances)
        return np.maximum(variances, 0), axes

    @cached_property
    def _roots(self) -> Array:
        """Lower triangular factors L_j with S_j = L_j L_jᵀ, of shape (r, d, d).

        Draws are made with these rather than with eigenvectors: those of a repeated eigenvalue are
        arbitrary, and another LAPACK picks others, while L_j is unique. The loop also takes a
        singular S_j, for which LAPACK's Cholesky factorization fails: columns without variance left
        are zero.
        """
        rest = np.array(self.covariances, dtype=np.float64)
        roots = np.zeros_like(rest)
        largest = np.diagonal(rest, axis1=-2, axis2=-1).max(axis=-1)
        least = 10 * rest.shape[-1] * rounding(rest) * largest
        for column in range(rest.shape[-1]):
            pivots = rest[:, column, column]
            kept = pivots > least
            scale = np.sqrt(pivots, out=np.ones_like(pivots), where=kept)
            roots[:, column:, column] = np.where(kept, rest[:, column:, column].T / scale, 0.0).T
            rest[:, column:, column:] -= (
                roots[:, column:, None, column] * roots[:, None, column:, column]
            )
        return roots

    @classmethod
    def isotropic(cls, weights: Any, means: Any, variances: Any) -> Mixture:
        """Return Σ_j π_j N(θ_j, σ_j² I) from the variances σ_j², of shape (r,)."""
        means = _numbers("means", means, ("r", "d"))
        variances = _numbers("variances", variances, (len(means),))
        return cls(weights, means, variances[:, None, None] * np.eye(means.shape[1]))

    def __repr__(self) -> str:
        components, dimension = self.means.shape
        return f"Mixture({count(components, 'component')} in {dimension} dimensions)"

    def sample(self, n: int, random_state: int | np.random.Generator) -> Array:
        """Return n points drawn from P, of shape (n, d)."""
        n, rng = whole_number(self, "n", n), np.random.default_rng(random_state)
        components = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        X = rng.standard_normal((n, self.means.shape[1]))
        for j, root in enumerate(self._roots):
            X[components == j] = self.means[j] + X[components == j] @ root.T
        return X

    def mean(self, kernel: Kernel, X: Array) -> Array:
        """Return the kernel mean μ_P(x) = E k(x, Y), Y ~ P, at the rows x of X."""
        return self.weights @ self.means_at(kernel, X)

    def means_at(self, kernel: Kernel, X: Array) -> Array:
        """Return the kernel mean of each component at the rows of X, of shape (r, n)."""
        X = as_two_samples(X, self.means)[0].astype(np.float64, copy=False)
        found = [factor * _gaussian_means(part).at(self, X) for factor, part in terms(kernel)]
        return np.sum(found, axis=0)

    def inner(self, kernel: Kernel, other: Mixture) -> float:
        """Return ⟨μ_P, μ_Q⟩ = E k(X, Y), X ~ P and Y ~ Q = other independent."""
        return float(self.weights @ self.inner_products(kernel, other) @ other.weights)

    def inner_products(self, kernel: Kernel, other: Mixture) -> Array:
        """Return the inner products of the components' kernel means with other's: shape (r, r')."""
        as_two_samples(self.means, other.means)  # raises for mixtures of other dimensions
        found = []
        for factor, part in terms(kernel):
            found.append(factor * _gaussian_means(part).between(self, other))
        return np.sum(found, axis=0)

    def expected_diagonal(self, kernel: Kernel) -> float:
        """Return ∫ k(x, x) dP(x)."""
        found = [factor * _gaussian_means(part).own(self) for factor, part in terms(kernel)]
        return float(self.weights @ np.sum(found, axis=0))

    def squared_distance(self, embedding: Any) -> float:
        """Return the paper's loss L = ‖f − μ_P‖² of an embedding f.

        For random features the norm is that of the kernel they approximate by.
        """
        return embedding.loss(self)

    def characteristic_function(self, omega: Array) -> Array:
        """Return φ_P(ω) = Σ_j π_j exp(i⟨ω, θ_j⟩ − ½ ωᵀS_jω) at the rows ω: complex, shape (n,)."""
        omega = as_two_samples(omega, self.means)[0].astype(np.float64, copy=False)
        angles, spread = self.means @ omega.T, ((omega @ self.covariances) * omega).sum(axis=-1)
        heights = self.weights[:, None] * np.exp(-spread / 2)
        return (heights * np.cos(angles)).sum(axis=0) + 1j * (heights * np.sin(angles)).sum(axis=0)

    @cached_property
    def pair_eigenpairs(self) -> tuple[Array, Array]:
        """Eigenpairs of S_j + S_l for all pairs, kept as they are most of the cost of ‖μ_P‖²."""
        left, right = np.triu_indices(len(self.means))
        found = np.linalg.eigh(self.covariances[left] + self.covariances[right])
        places = np.empty((len(self.means),) * 2, dtype=int)
        places[left, right] = places[right, left] = np.arange(len(left))
        return np.maximum(found[0], 0)[places], found[1][places]


def _gaussian_means(kernel: Kernel) -> GaussianMeans:
    """Return the expectations of a kernel; raise MuhatError if they are not known."""
    if kernel.has_gaussian_means:
        return kernel.gaussian_means()
    known = ", ".join(classes_with("has_gaussian_means"))
    needed = f"a kernel with a closed form is needed: {known}, or a sum or multiple of these"
    advice = "average the kernel over sample(n, random_state) instead"
    raise MuhatError("Mixture", needed, repr(kernel), advice)


def _numbers(name: str, values: Any, shape: tuple[int | str, ...], advice: str = "") -> Array:
    """Return a parameter as finite numbers of a shape, or raise MuhatError.

    A letter in the shape is any size but zero.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MuhatError("Mixture", f"{name} must be an array of numbers", repr(values)) from error
    if not _has_shape(array, shape):
        needed = f"{name} must have the shape {shape}".replace("'", "")
        raise MuhatError("Mixture", needed, f"shape {array.shape}", advice)
    if not np.isfinite(array).all():
        raise MuhatError("Mixture", f"{name} must be finite", "NaN or infinite values")
    return array


def _has_shape(array: Array, shape: tuple[int | str, ...]) -> bool:
    """Whether an array has a shape in which a letter is any size but zero."""
    if array.ndim != len(shape):
        return False
    for size, wanted in zip(array.shape, shape, strict=True):
        if size == 0 or (size != wanted and not isinstance(wanted, str)):
            return False
    return True
