"""An element of the RKHS: Σ_i β_i k(x_i, ·), which can be called, measured, added and scaled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from muhat._arrays import Array, as_array, has_finite_sum, rounding
from muhat._validation import as_points, as_two_samples, frozen
from muhat.errors import MuhatError, MuhatTypeError
from muhat.kernels import Kernel, Mixture

__all__ = ["Element", "Embedding"]


class Element(ABC):
    """A vector of a space of functions: its values, its geometry and its algebra."""

    kernel: Kernel
    """k, whose RKHS this is, or is near to."""
    weights: Array
    """What the function is a sum with; it is linear in them."""
    absorbs_point_embeddings: ClassVar[bool] = False
    """Whether it knows what to do with a sum over points, which then leaves it to it."""

    @abstractmethod
    def __call__(self, Y: Array) -> Array:
        """Return the function's values at the rows of Y."""

    @abstractmethod
    def inner(self, other: Any) -> float:
        """Return the inner product ⟨f, g⟩."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Return ‖f‖², not negative."""

    @abstractmethod
    def loss(self, P: Mixture) -> float:
        """Return the paper's loss ‖f − μ_P‖² for a P with a kernel mean in closed form."""

    @abstractmethod
    def _check_same_space(self, other: Element) -> None: ...

    @abstractmethod
    def _plus(self, other: Any) -> Self: ...

    @abstractmethod
    def _times(self, factor: float) -> Self: ...

    def norm(self) -> float:
        """Return ‖f‖."""
        return float(np.sqrt(self.squared_norm()))

    def distance(self, other: Element) -> float:
        """Return ‖f − g‖: between two kernel means, the maximum mean discrepancy (MMD)."""
        return (self - other).norm()

    def __add__(self, other: Element) -> Self:
        if not isinstance(other, Element):
            return NotImplemented
        self._check_same_space(other)
        return self._plus(other)

    def __mul__(self, factor: float) -> Self:
        if isinstance(factor, Real):
            return self._times(factor)
        return NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: Element) -> Self:
        if isinstance(other, Element):
            return self + other * -1
        return NotImplemented

    def __truediv__(self, divisor: float) -> Self:
        return self * (1 / divisor)


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Element):
    """The function Σ_i β_i k(x_i, ·), a vector of the kernel's RKHS.

    Parameters
    ----------
    kernel : Kernel
        k, with every parameter a number.
    points : array, list or data frame of shape (n, d)
        The x_i, of which a copy is kept; for a precomputed kernel, the row numbers in one column.
    weights : array or list of shape (n,)
        The β_i, of any sign; a copy is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian
    >>> f = Embedding(Gaussian(1.0), np.array([[0.0], [1.0]]), np.array([0.5, 0.5]))
    >>> f(np.array([[0.5]])).round(4)
    array([0.8825])
    >>> (f - f).norm()
    0.0
    """

    kernel: Kernel
    points: Array
    weights: Array

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            needed, advice = (
                "kernel must be a kernel whose parameters are all numbers",
                "pass for example Gaussian(1.0)",
            )
            raise MuhatTypeError("Embedding", needed, repr(self.kernel), advice)
        points, weights = as_points(self.points), as_array(self.weights)
        if weights.shape != (len(points),) or weights.dtype.kind not in "fiub":
            needed = f"weights must be real numbers, one for each of {len(points)} points"
            raise MuhatError("Embedding", needed, f"shape {weights.shape} and type {weights.dtype}")
        if weights.dtype.kind != "f":
            weights = weights.astype(np.float64)
        for name, values in (("points", points), ("weights", weights)):
            if not has_finite_sum(values) and not np.isfinite(values).all():
                raise MuhatError("Embedding", f"{name} must be finite", "NaN or infinite values")
        vars(self).update(points=frozen(points), weights=frozen(weights))

    def __call__(self, Y: Array) -> Array:
        """Return the function's values at the rows of Y."""
        Y = as_points(Y)
        if self.points.dtype.kind == "f":
            Y = Y.astype(self.points.dtype, copy=False)
        return self.kernel.product(Y, self.weights, self.points)

    def inner(self, other: Any) -> float:
        """Return the inner product ⟨f, g⟩."""
        self._check_same_space(other)
        if other.absorbs_point_embeddings:
            return float(other.inner(self))
        return float(self.weights @ self.kernel.product(self.points, other.weights, other.points))

    def squared_norm(self) -> float:
        """Return ‖f‖² in float64, as gains are differences of norms; never negative."""
        points = self.points
        if points.dtype.kind == "f":
            points = points.astype(np.float64)
        squared = float(self.weights @ self.kernel.product(points, self.weights))
        if not squared < 0:
            return squared
        largest = (
            float(np.abs(self.weights) @ np.sqrt(np.maximum(self.kernel.diagonal(points), 0))) ** 2
        )
        if (
            -squared > rounding(self.weights) ** 0.5 * largest
        ):  # which bounds every sum that was cancelled
            advice = "use a positive semi-definite kernel"
            raise MuhatError(
                "Embedding", "a squared norm cannot be negative", f"{squared:.3g}", advice
            )
        return 0.0

    def loss(self, P: Mixture) -> float:
        """Return ‖f − μ_P‖², zero where rounding would make it negative."""
        cross = float(self.weights @ P.mean(self.kernel, self.points))
        return max(self.squared_norm() - 2 * cross + P.inner(self.kernel, P), 0.0)

    def __repr__(self) -> str:
        total = f"weights sum to {self.weights.sum():.6g}"
        return f"Embedding({self.kernel!r}, {len(self.points)} points, {total})"

    def _plus(self, other: Any) -> Any:
        if other.absorbs_point_embeddings:
            return other._plus(self)
        if self.points is other.points or np.array_equal(self.points, other.points):
            return replace(self, weights=self.weights + other.weights)
        points = np.concatenate([self.points, other.points])
        return replace(self, points=points, weights=np.concatenate([self.weights, other.weights]))

    def _times(self, factor: float) -> Self:
        return replace(self, weights=factor * self.weights)

    def _check_same_space(self, other: Element) -> None:
        if other.absorbs_point_embeddings:
            other._check_same_space(self)
            return
        if not isinstance(other, Embedding):
            converted = "features.embedding(features.coordinates(f))"
            advice = f"convert this one f with the features of the other: {converted}"
            raise MuhatError(
                "Embedding", "the other must be an Embedding too", type(other).__name__, advice
            )
        if self.kernel != other.kernel:
            needed = f"both embeddings must have the same kernel {self.kernel!r}"
            advice = "fit both with the same kernel, whose bandwidth is a number"
            raise MuhatError("Embedding", needed, repr(other.kernel), advice)
        as_two_samples(self.points, other.points)  # raises for points of other dimensions
