"""Kernels of the inner product ⟨x, y⟩."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from muhat._arrays import Array, check_same_columns
from muhat._messages import refusal
from muhat._validation import as_points, positive, whole_number
from muhat.kernels._base import Kernel


@dataclass
class Linear(Kernel):
    """k(x, y) = ⟨x, y⟩: the kernel mean is the mean, and shrinking it is James–Stein's setting."""

    positive_semidefinite: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix ⟨x_i, y_j⟩."""
        return _inner_products(X, Y)

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return X @ ((X if Y is None else Y).T @ V)

    def diagonal(self, X: Array) -> Array:
        """Return ‖x_i‖²."""
        return _squared_norms(X)


@dataclass
class Polynomial(Kernel):
    """k(x, y) = (γ⟨x, y⟩ + c)^p.

    Parameters
    ----------
    degree : int, default=2
        p ≥ 1.
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=1.0
        c ≥ 0.
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0
    positive_semidefinite: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self._power(_inner_products(X, Y))

    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i)."""
        return self._power(_squared_norms(X))

    def _power(self, products: Array) -> Array:
        degree = whole_number(self, "degree", self.degree)
        if not isinstance(self.coef0, Real) or not self.coef0 >= 0:
            advice = "a negative one makes the kernel indefinite"
            raise ValueError(refusal("Polynomial", "coef0 must be a number, not negative", repr(self.coef0), advice))
        return (positive(self, "gamma", self.gamma) * products + self.coef0) ** degree


def _inner_products(X: Array, Y: Array | None) -> Array:
    X = as_points(X)
    Y = X if Y is None else as_points(Y)
    check_same_columns(X, Y)
    return X @ Y.T


def _squared_norms(X: Array) -> Array:
    X = as_points(X)
    return np.einsum("ij,ij->i", X, X)
