"""Kernels of the inner product ⟨x, y⟩."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_points, as_two_samples, positive, whole_number
from muhat.errors import MuhatError
from muhat.kernels._base import Kernel
from muhat.kernels._closed_forms import PolynomialMoments

__all__ = ["Linear", "Polynomial"]


@dataclass
class Linear(Kernel):
    """k(x, y) = ⟨x, y⟩: the kernel mean is the mean, and shrinking it is James–Stein's setting."""

    name = "linear"
    positive_semidefinite: ClassVar[bool] = True
    has_gaussian_means: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_two_samples(X, Y)
        return X @ Y.T

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        if Y is None:
            Y = X
        return X @ (Y.T @ V)

    def diagonal(self, X: Array) -> Array:
        X = as_points(X)
        return np.einsum("ij,ij->i", X, X)

    def gaussian_means(self) -> PolynomialMoments:
        return PolynomialMoments(1, 1.0, 0.0)


@dataclass
class Polynomial(Kernel):
    """k(x, y) = (γ⟨x, y⟩ + c)^p.

    Parameters
    ----------
    degree, gamma, coef0 : int, float and float, default=2, 1.0 and 1.0
        p ≥ 1, γ > 0 and c ≥ 0.
    """

    name = "polynomial"
    aliases: ClassVar[tuple[str, ...]] = ("poly",)
    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0
    positive_semidefinite: ClassVar[bool] = True
    has_gaussian_means: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self._power(Linear()(X, Y))

    def diagonal(self, X: Array) -> Array:
        return self._power(Linear().diagonal(X))

    def gaussian_means(self) -> PolynomialMoments:
        degree, gamma, coef0 = self._checked()
        return PolynomialMoments(degree, gamma, coef0)

    def _power(self, products: Array) -> Array:
        degree, gamma, coef0 = self._checked()
        return (gamma * products + coef0) ** degree

    def _checked(self) -> tuple[int, float, float]:
        """Return p, γ and c; raise MuhatError if one is invalid."""
        degree = whole_number(self, "degree", self.degree)
        if not isinstance(self.coef0, Real) or not self.coef0 >= 0:
            needed = "coef0 must be a number, not negative"
            advice = "a negative one makes the kernel indefinite"
            raise MuhatError("Polynomial", needed, repr(self.coef0), advice)
        return degree, float(positive(self, "gamma", self.gamma)), float(self.coef0)
