"""What a feature map is: z(x) in R^r with ⟨z(x), z(y)⟩ ≈ k(x, y), and the functions it spans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.kernels import Kernel


class FeatureMap(ABC):
    """x ↦ z(x), a vector of r features with ⟨z(x), z(y)⟩ ≈ k(x, y).

    A map is never changed once it is made. It can be pickled, and sent to other machines so that
    all have the same; two maps are equal if they have the same kernel, type and landmarks or
    frequencies.
    """

    kernel: Kernel
    """k, with every parameter a number."""
    dtype: np.dtype[Any]
    """The type of the points that the map was made for."""
    precision: np.dtype[Any]
    """The type of functions on the features, precise enough to hide their rounding."""
    n_components: int
    """The number m of landmarks or random features that were asked for."""
    size: int
    """The number of features r, at most m."""
    dimension: int
    """The number of columns d that points have."""
    made_from: ClassVar[str]
    """The attribute that has the landmarks or frequencies."""
    projects: ClassVar[bool] = True
    """Whether z(x) are the coordinates of k(x, ·) projected onto a part of its RKHS.

    Else z has a space of its own.
    """

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
        """Return the coordinates of the nearest function in the space of the map."""

    def compatible(self, embedding: Element) -> Element:
        """Return a function in the space where those of ``embedding`` live.

        Nearest to the one given, or itself.
        """
        if self.projects:
            return embedding
        return self.embedding(self.coordinates(embedding))

    def outside(self, embedding: Element) -> float:
        """Return ‖f‖² − ‖P f‖², what the projection P leaves out.

        Nothing where the features do not project.
        """
        if not self.projects:
            return 0.0
        inside = self.coordinates(embedding)
        return max(embedding.squared_norm() - float(inside @ inside), 0.0)

    def error(self, X: Array) -> float:
        """Return the distance between the mean of k(x_i, ·) and that of the features.

        It takes the kernel values of all pairs of rows of X.

        That is ‖μ̂ − P μ̂‖, of which rounding makes √ε where it is zero; where the features do not
        project, the root mean square of the difference of the values at these rows.
        """
        X = self._points(X).astype(np.float64)
        mean = Embedding(self.kernel, X, np.full(len(X), 1 / len(X)))
        if self.projects:
            return float(np.sqrt(self.outside(mean)))
        return float(np.sqrt(np.mean((self.compatible(mean)(X) - mean(X)) ** 2)))

    def __call__(self, X: Array) -> Array:
        """Return the features Z of the rows of X, with Z Zᵀ ≈ k(X, X), in the type of X."""
        X = self._points(X)
        return self._features(X.astype(np.result_type(X, self.dtype), copy=False)).astype(
            X.dtype, copy=False
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureMap) or type(self) is not type(other):
            return NotImplemented
        same = self.kernel == other.kernel and self.dtype == other.dtype
        return same and np.array_equal(
            getattr(self, self.made_from), getattr(other, self.made_from)
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def _points(self, X: Array) -> Array:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.dimension:
            needed = f"points in rows of {self.dimension} features are needed"
            raise MuhatError(type(self).__name__, needed, f"shape {X.shape}")
        if X.dtype.kind == "f":
            return X
        return X.astype(np.float64)

    def _check_coordinates(self, coordinates: Array) -> Array:
        coordinates = np.asarray(coordinates)
        if coordinates.shape != (self.size,):
            needed = f"{self.size} coordinates are needed, one for each feature"
            raise MuhatError(type(self).__name__, needed, f"shape {coordinates.shape}")
        return coordinates

    def _check_kernel(self, embedding: Element) -> None:
        if embedding.kernel != self.kernel:
            needed = f"an embedding with the same kernel {self.kernel!r} is needed"
            advice = "fit both with the same kernel, whose bandwidth is a number"
            raise MuhatError(type(self).__name__, needed, repr(embedding.kernel), advice)


class Approximation(BaseEstimator, ABC):
    """A recipe for a feature map: its settings, before kernel and data are known."""

    @property
    def rows_to_learn_from(self) -> int:
        """How many rows, drawn uniformly, are enough to resolve a kernel and this on."""
        return 20_000

    def transformed(self, transform: Callable[[Array], Array], X: Array) -> Self:
        """Return the same for transformed rows; X is a sample of them.

        Stored rows, such as landmarks, are transformed too.
        """
        return self

    @abstractmethod
    def check(self, kernel: Kernel) -> None:
        """Raise MuhatError for parameters, or a kernel, that features cannot be made with.

        This happens before the first row is read.
        """

    @abstractmethod
    def resolve(self, kernel: Kernel, X: Array) -> FeatureMap:
        """Return the feature map of a kernel with numeric parameters.

        X are the rows to learn from: the data, or a sample of it drawn uniformly.
        """
