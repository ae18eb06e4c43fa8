"""Filters that treat all components alike: the empirical mean itself, and simple shrinkage of it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array
from muhat.filters._base import Formula, Product, as_numbers
from muhat.gram import Problem

ROUNDING = 1e-14
"""A minimiser below this is a rounding error of zero: nothing is to be shrunk."""

AROUND = np.geomspace(1e-2, 1e2, 32)  # without its middle, which is put there exactly


class Constant(Formula):
    """s_λ does not depend on γ."""

    constant: ClassVar[bool] = True
    B = 1.0

    def products(self, parameter: float) -> float:
        """No product is needed."""
        return 0

    def by_products(self, product: Product, mean: Array, target: Array, parameter: float) -> Array:
        """Return s_λ q; h_λ = 0."""
        return self.shrinkage(np.ones_like(mean), parameter) * mean


@dataclass
class KME(Constant):
    """s(γ) = 1: the empirical kernel mean μ̂, no shrinkage."""

    parameterless: ClassVar[bool] = True
    C = 0.0
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any = 0.0) -> Array:
        """s(γ) = 1."""
        return np.ones_like(gamma * parameter)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """r = 0."""
        return 0.0


@dataclass
class SimpleShrinkage(Constant):
    """s_λ(γ) = 1/(1+λ): S-KMSE, equation 3 of the paper, α = λ/(1+λ)."""

    C = 1.0
    qualification = 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = 1/(1+λ)."""
        return np.ones_like(gamma) / (1 + parameter)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """|r_λ| γ^η ≤ λ^η κ^(2η) for η ≤ 1."""
        return kappa2**eta

    def check(self, grid: Array) -> Array:
        """Return the grid as an array of positive numbers; infinity, which is the target itself, is one."""
        values = as_numbers(grid)
        super().check(np.minimum(values, np.finfo(np.float64).max))
        return values

    def grid(self, problem: Problem) -> Array:
        """Return λ around the minimiser of the leave-one-out score, the minimiser included.

        The score is quadratic in s = 1/(1+λ), so that its minimiser has a closed form, kept in [0, 1]. Without weights
        and target, s = (n−1)(nρ−ϱ)/(n(n−2)ρ+ϱ) with ρ the mean of K and ϱ that of its diagonal.
        """
        linear, quadratic = (np.sum(part, axis=-1) for part in (problem.left_out.linear, problem.left_out.quadratic))
        s = np.clip(np.divide(linear, quadratic, out=np.ones_like(linear), where=quadratic > 0), 0, 1)
        with np.errstate(divide="ignore"):
            best = np.unique(1 / s - 1)
        inside = best[(best > ROUNDING) & np.isfinite(best)]
        middle = float(np.exp(np.log(inside).mean())) if inside.size else 1 / problem.n
        around = middle * AROUND
        return np.unique(np.concatenate([around, inside, best[np.isinf(best)]]))
