"""An element of the RKHS: Σ_i β_i k(x_i, ·), which can be called, measured, added and scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from muhat.arrays import Array, rounding
from muhat.kernels import Kernel
from muhat.messages import refusal


@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """The function Σ_i β_i k(x_i, ·), a vector of the kernel's RKHS.

    Parameters
    ----------
    kernel : Kernel
        k, with every parameter a number.
    points : array of shape (n, d)
        The x_i; for a precomputed kernel, the row numbers in one column.
    weights : array of shape (n,)
        The β_i, of any sign.

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

    def __call__(self, Y: Array) -> Array:
        """Return the function's values at the rows of Y."""
        Y = np.asarray(Y)
        if Y.ndim != 2 or Y.shape[1] != self.points.shape[1]:
            needed = f"points in rows of {self.points.shape[1]} features are needed"
            raise ValueError(refusal("Embedding", needed, f"shape {Y.shape}"))
        return self.kernel.product(Y.astype(self.points.dtype, copy=False), self.weights, self.points)

    def inner(self, other: Embedding) -> float:
        """Return the inner product ⟨f, g⟩."""
        self._check_same_space(other)
        return float(self.weights @ self.kernel.product(self.points, other.weights, other.points))

    def squared_norm(self) -> float:
        """Return ‖f‖², zero where rounding would make it negative."""
        squared = float(self.weights @ self.kernel.product(self.points, self.weights))
        if not squared < 0:
            return squared
        diagonal = np.maximum(self.kernel.diagonal(self.points), 0)
        largest = float(np.abs(self.weights) @ np.sqrt(diagonal)) ** 2  # bounds every sum that was cancelled
        if -squared > rounding(self.weights) ** 0.5 * largest:
            advice = "use a positive semi-definite kernel"
            raise ValueError(refusal("Embedding", "a squared norm cannot be negative", f"{squared:.3g}", advice))
        return 0.0

    def norm(self) -> float:
        """Return ‖f‖."""
        return float(np.sqrt(self.squared_norm()))

    def distance(self, other: Embedding) -> float:
        """Return ‖f − g‖: between two kernel means, the maximum mean discrepancy (MMD)."""
        return (self - other).norm()

    def __add__(self, other: Embedding) -> Embedding:
        if not isinstance(other, Embedding):
            return NotImplemented
        self._check_same_space(other)
        if self.points is other.points or np.array_equal(self.points, other.points):
            return replace(self, weights=self.weights + other.weights)
        points = np.concatenate([self.points, other.points])
        return replace(self, points=points, weights=np.concatenate([self.weights, other.weights]))

    def __mul__(self, factor: float) -> Embedding:
        return replace(self, weights=factor * self.weights) if isinstance(factor, Real) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Embedding:
        return -1 * self

    def __sub__(self, other: Embedding) -> Embedding:
        return self + -1 * other if isinstance(other, Embedding) else NotImplemented

    def __truediv__(self, divisor: float) -> Embedding:
        return self * (1 / divisor)

    def __repr__(self) -> str:
        return f"Embedding({self.kernel!r}, {len(self.points)} points, weights sum to {self.weights.sum():.6g})"

    def _check_same_space(self, other: Embedding) -> None:
        if self.kernel != other.kernel:
            needed = f"both embeddings must have the same kernel {self.kernel!r}"
            advice = "fit both with one kernel, its bandwidth a number"
            raise ValueError(refusal("Embedding", needed, repr(other.kernel), advice))
        if self.points.shape[1] != other.points.shape[1]:
            needed = f"both embeddings must have points of {self.points.shape[1]} features"
            raise ValueError(refusal("Embedding", needed, other.points.shape[1]))
