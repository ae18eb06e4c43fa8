"""What a feature map is: z(x) in R^r with ⟨z(x), z(y)⟩ ≈ k(x, y), and the functions it spans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from muhat._arrays import Array, slices
from muhat._messages import refusal
from muhat.embedding import Element
from muhat.kernels import Kernel, Mixture

ROWS = 4096
"""Rows of which the features are held at once, where only a sum over them is needed."""


class FeatureMap(ABC):
    """x ↦ z(x), a vector of r features with ⟨z(x), z(y)⟩ ≈ k(x, y).

    A map is never changed once it is made. It can be pickled, and sent to other machines so that all have the same; two
    maps are equal if they have the same kernel, type and landmarks or frequencies.

    Attributes
    ----------
    kernel : Kernel
        k, with every parameter a number.
    dtype : dtype
        The type of the points that the map was made for.
    n_components : int
        The number m of landmarks or random features that were asked for.
    size : int
        The number of features r, at most m.
    dimension : int
        The number of columns d that points have.
    """

    kernel: Kernel
    dtype: np.dtype[Any]
    n_components: int
    size: int
    dimension: int
    made_from: ClassVar[str]
    """The attribute that has the landmarks or frequencies."""
    error_unit: ClassVar[str] = "the norm of the RKHS"
    """What ``error`` is measured in."""

    @abstractmethod
    def _features(self, X: Array) -> Array:
        """Return z(x_i) of points whose type is at least as precise as the map's own."""

    def rotated(self, V: Array) -> Callable[[Array], Array]:
        """Return the map x ↦ Vᵀ z(x), for V of shape (r, directions)."""
        return lambda X: self(X) @ V.astype(self.dtype)

    @abstractmethod
    def embedding(self, coordinates: Array) -> Element:
        """Return the function x ↦ ⟨coordinates, z(x)⟩."""

    @abstractmethod
    def coordinates(self, embedding: Element) -> Array:
        """Return the coordinates of the function of the map's space that is nearest to the one given."""

    def compatible(self, embedding: Element) -> Element:
        """Return a function in the space where those of ``embedding`` live: nearest to the one given, or itself."""
        return self.embedding(self.coordinates(embedding))

    @abstractmethod
    def expectation(self, P: Mixture) -> Array:
        """Return E z(X), X ~ P: the coordinates of P's kernel mean."""

    @abstractmethod
    def outside(self, embedding: Element) -> float:
        """Return the squared norm of what ``coordinates`` leaves out, never negative."""

    @abstractmethod
    def error(self, X: Array) -> float:
        """Return how far the mean of k(x_i, ·) over the rows of X is from the map's, at the price of their pairs."""

    def __call__(self, X: Array) -> Array:
        """Return the features Z of the rows of X, with Z Zᵀ ≈ k(X, X), in the type of X."""
        X = self._points(X)
        return self._features(X.astype(np.result_type(X, self.dtype), copy=False)).astype(X.dtype, copy=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureMap) or type(self) is not type(other):
            return NotImplemented
        same = self.kernel == other.kernel and self.dtype == other.dtype
        return same and np.array_equal(getattr(self, self.made_from), getattr(other, self.made_from))

    __hash__ = None  # type: ignore[assignment]

    def _points(self, X: Array) -> Array:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.dimension:
            needed = f"points in rows of {self.dimension} features are needed"
            raise ValueError(refusal(type(self).__name__, needed, f"shape {X.shape}"))
        return X if X.dtype.kind == "f" else X.astype(np.float64)

    def _check_coordinates(self, coordinates: Array) -> Array:
        coordinates = np.asarray(coordinates)
        if coordinates.shape != (self.size,):
            needed = f"{self.size} coordinates are needed, one for each feature"
            raise ValueError(refusal(type(self).__name__, needed, f"shape {coordinates.shape}"))
        return coordinates

    def _check_kernel(self, embedding: Element) -> None:
        if embedding.kernel != self.kernel:
            needed = f"an embedding with the same kernel {self.kernel!r} is needed"
            advice = "fit both with one kernel, its bandwidth a number"
            raise ValueError(refusal(type(self).__name__, needed, repr(embedding.kernel), advice))


class Approximation(BaseEstimator, ABC):
    """A way to a feature map: what it is made from, before kernel and data are known."""

    @property
    def rows_to_learn_from(self) -> int:
        """How many rows, drawn uniformly, are enough to resolve a kernel and this on."""
        return 20_000

    def transformed(self, transform: Callable[[Array], Array], X: Array) -> Self:
        """Return this for transformed rows, of which X are some: what it holds of them is transformed too."""
        return self

    @abstractmethod
    def check(self, kernel: Kernel) -> None:
        """Refuse parameters, or a kernel, that no features can be made with: before the first row is read."""

    @abstractmethod
    def resolve(self, kernel: Kernel, X: Array) -> FeatureMap:
        """Return the feature map of a kernel, of which every parameter is a number.

        X are the rows to learn from: the data, or a sample of it drawn uniformly.
        """


@dataclass(frozen=True, eq=False, repr=False)
class FeatureEmbedding(Element):
    """The function x ↦ ⟨c, z(x)⟩: the features z, with coordinates c in the space that they span.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.gram import RandomFeatures
    >>> from muhat.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0]])
    >>> z = RandomFeatures(1000).resolve(Gaussian(1.0), X)
    >>> f = FeatureEmbedding(z, z(X).mean(axis=0))
    >>> bool(abs(f(np.array([[0.5]])) - 0.8825) < 0.01)
    True
    """

    features: FeatureMap
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
        """Return the function's values at the rows of Y."""
        Y = self.features._points(Y).astype(self.features.dtype, copy=False)
        values = np.empty(len(Y), np.result_type(Y, self.coordinates))
        for rows in blocks(len(Y)):
            values[rows] = self.features(Y[rows]) @ self.coordinates
        return values

    def inner(self, other: FeatureEmbedding) -> float:
        """Return the inner product ⟨f, g⟩ of the coordinates."""
        self._check_same_space(other)
        return float(self.coordinates @ other.coordinates)

    def squared_norm(self) -> float:
        """Return ‖f‖² = ‖c‖²."""
        return float(self.coordinates @ self.coordinates)

    def loss(self, P: Mixture) -> float:
        """Return ‖c − E z(X)‖², X ~ P: the loss under the kernel ⟨z(x), z(y)⟩ that stands for k."""
        gap = self.coordinates - self.features.expectation(P)
        return float(gap @ gap)

    def __repr__(self) -> str:
        return f"FeatureEmbedding({self.kernel!r}, {self.features.size} features, norm {self.norm():.6g})"

    def _plus(self, other: FeatureEmbedding) -> Self:
        return replace(self, coordinates=self.coordinates + other.coordinates)

    def _times(self, factor: float) -> Self:
        return replace(self, coordinates=factor * self.coordinates)

    def _check_same_space(self, other: Element) -> None:
        if not isinstance(other, FeatureEmbedding):
            advice = "carry the other over first: features.embedding(features.coordinates(g))"
            raise ValueError(refusal("FeatureEmbedding", "both must be of features", type(other).__name__, advice))
        if self.features != other.features:
            needed, got = "both embeddings must have the same features", "others"
            advice = "fit both with one kernel, its bandwidth a number, and one seed"
            raise ValueError(refusal("FeatureEmbedding", needed, got, advice))


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of so many rows that their features fit in memory."""
    return slices(0, n, ROWS)
