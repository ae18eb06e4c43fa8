"""Random Fourier features.

Cosines and sines whose frequencies have the law that the kernel is the transform of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from muhat._arrays import Array, slices
from muhat._random_states import as_rng, check_is_random_state
from muhat._validation import whole_number
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError, MuhatTypeError
from muhat.gram._features import Approximation, FeatureMap
from muhat.kernels import Kernel, Mixture
from muhat.kernels._base import classes_with

DEFAULT_SIZE = 1000
"""The number of features."""

ROWS_PER_BLOCK = 4096
"""Rows of which the features are held at once, where only a sum over them is needed."""


@dataclass(frozen=True, eq=False)
class FourierFeatures(FeatureMap):
    """z(x) = √(2c/m) (cos ω_1·x, …, cos ω_(m/2)·x, sin ω_1·x, …, sin ω_(m/2)·x), c = k(x, x).

    Then ⟨z(x), z(y)⟩ is c times the mean of cos ω_j·(x − y), whose expectation is k(x, y) if the
    ω_j have the law that k/c is the characteristic function of; and ‖z(x)‖² = c for every x.
    """

    kernel: Kernel
    frequencies: Array
    """The ω_j, of shape (m/2, d), copied; their type is the map's."""
    made_from: ClassVar[str] = "frequencies"
    projects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        frequencies = np.array(self.frequencies)
        half, dimension = frequencies.shape
        dtype, size = frequencies.dtype, 2 * half
        vars(self).update(
            frequencies=frequencies, dtype=dtype, precision=dtype, dimension=dimension
        )
        vars(self).update(n_components=size, size=size)

    def _features(self, X: Array) -> Array:
        phases = X @ self.frequencies.astype(X.dtype, copy=False).T
        Z = np.empty((len(X), self.size), X.dtype)
        half = len(self.frequencies)
        np.cos(phases, out=Z[:, :half])
        np.sin(phases, out=Z[:, half:])
        Z *= np.sqrt(self.kernel.bound / half)
        return Z

    def embedding(self, coordinates: Array) -> FeatureEmbedding:
        return FeatureEmbedding(self, self._check_coordinates(coordinates))

    def coordinates(self, embedding: Element) -> Array:
        """Return Σ_j β_j z(y_j) for the function Σ_j β_j k(y_j, ·).

        For one with these features, its own.
        """
        if isinstance(embedding, FeatureEmbedding):
            embedding.inner(
                self.embedding(np.zeros(self.size, self.dtype))
            )  # refuses other features
            return embedding.coordinates
        self._check_kernel(embedding)
        if not isinstance(embedding, Embedding):
            raise MuhatTypeError(
                "FourierFeatures", "an embedding is needed", type(embedding).__name__
            )
        chunks = slices(0, len(embedding.points), ROWS_PER_BLOCK)
        parts = (
            embedding.weights[rows].astype(np.float64) @ self(embedding.points[rows])
            for rows in chunks
        )
        return sum(parts, np.zeros(self.size))

    def expectation(self, P: Mixture) -> Array:
        """Return E z(X), X ~ P.

        It comes from the characteristic function E exp(i ω·X) of P at the frequencies.
        """
        phi = P.characteristic_function(self.frequencies)
        return np.sqrt(self.kernel.bound / len(phi)) * np.concatenate([phi.real, phi.imag])


@dataclass(frozen=True, eq=False, repr=False)
class FeatureEmbedding(Element):
    """The function x ↦ ⟨c, z(x)⟩.

    The features z, with coordinates c in the space that they span.
    """

    features: FourierFeatures
    coordinates: Array

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """The kernel k that ⟨z(x), z(y)⟩ stands for."""
        return self.features.kernel

    @property
    def weights(self) -> Array:  # type: ignore[override]
        """The coordinates: what the features are summed with."""
        return self.coordinates

    def __call__(self, Y: Array) -> Array:
        Y = self.features._points(Y).astype(self.features.dtype, copy=False)
        values = np.empty(len(Y), np.result_type(Y, self.coordinates))
        for rows in slices(0, len(Y), ROWS_PER_BLOCK):
            values[rows] = self.features(Y[rows]) @ self.coordinates
        return values

    def inner(self, other: FeatureEmbedding) -> float:
        self._check_same_space(other)
        return float(self.coordinates @ other.coordinates)

    def squared_norm(self) -> float:
        return float(self.coordinates @ self.coordinates)

    def loss(self, P: Mixture) -> float:
        """Return ‖c − E z(X)‖², X ~ P: the loss under the kernel ⟨z(x), z(y)⟩ that stands for k."""
        gap = self.coordinates - self.features.expectation(P)
        return float(gap @ gap)

    def __repr__(self) -> str:
        return (
            f"FeatureEmbedding({self.kernel!r}, {self.features.size} features, norm "
            f"{self.norm():.6g})"
        )

    def _plus(self, other: FeatureEmbedding) -> Self:
        return replace(self, coordinates=self.coordinates + other.coordinates)

    def _times(self, factor: float) -> Self:
        return replace(self, coordinates=factor * self.coordinates)

    def _check_same_space(self, other: Element) -> None:
        if not isinstance(other, FeatureEmbedding):
            advice = "convert the other one g first: features.embedding(features.coordinates(g))"
            raise MuhatError(
                "FeatureEmbedding",
                "the other embedding must have features too",
                type(other).__name__,
                advice,
            )
        if self.features != other.features:
            needed, got = "both embeddings must have the same features", "different ones"
            advice = "fit both with the same kernel, whose bandwidth is a number, and the same seed"
            raise MuhatError("FeatureEmbedding", needed, got, advice)


@dataclass
class RandomFeatures(Approximation):
    """Approximation of the kernel by m random Fourier features.

    They exist for Gaussian, Laplacian, Matérn and rational quadratic kernels and multiples of them.

    The features depend only on the kernel, the number of columns and ``random_state``, not on the
    data. So two machines with the same settings have the same features.

    Parameters
    ----------
    n_components : int, default=None
        The number of features m, even, because they come in pairs of a cosine and a sine: 1000 if
        not given.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the frequencies. With None, every call draws new ones.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Laplacian
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> z = RandomFeatures(2000).resolve(Laplacian(2.0), X)
    >>> bool(abs(z(X) @ z(X).T - Laplacian(2.0)(X)).max() < 0.15)
    True
    """

    n_components: int | None = None
    random_state: Any = 0

    def check(self, kernel: Kernel) -> None:
        check_is_random_state(self, self.random_state)
        m = self._size
        if m % 2:
            needed = (
                "n_components must be even, because features come in pairs of a cosine and a sine"
            )
            raise MuhatError("RandomFeatures", needed, m, f"use {m + 1}")
        check_frequencies(kernel)

    def resolve(self, kernel: Kernel, X: Array) -> FourierFeatures:
        """Return the features for points with as many columns as X, and of its type."""
        self.check(kernel)
        rng = as_rng(self, self.random_state)
        frequencies = kernel.draw_frequencies(rng, (self._size // 2, X.shape[1]))
        return FourierFeatures(kernel, frequencies.astype(X.dtype, copy=False))

    @property
    def _size(self) -> int:
        if self.n_components is None:
            return DEFAULT_SIZE
        return whole_number(self, "n_components", self.n_components, 1)


def check_frequencies(kernel: Kernel) -> None:
    """Raise MuhatError for a kernel without a known law of frequencies."""
    if not kernel.has_frequencies:
        known = ", ".join(classes_with("has_frequencies"))
        needed = f"a kernel with random features is needed: {known}, or a multiple of one of these"
        advice = "use Nystrom, which supports any kernel"
        raise MuhatError("RandomFeatures", needed, repr(kernel), advice)
