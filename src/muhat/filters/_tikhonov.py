"""Tikhonov's filter, once and iterated."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat.filters._base import Formula, Product


@dataclass
class Tikhonov(Formula):
    """s_λ(γ) = γ/(γ+λ): F-KMSE (section 3 of the paper)."""

    B = 1.0
    C = 1.0
    qualification = 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = γ/(γ+λ)."""
        return gamma / (gamma + parameter)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """λ γ^η/(γ+λ) ≤ η^η (1−η)^(1−η) λ^η for η ≤ 1."""
        return _largest_residual(eta, order=1)

    def by_products(self, product: Product, mean: Array, target: Array, parameter: float) -> Array:
        """(A + λ) x = b by conjugate gradients."""
        return _iterate(product, product(mean) - target, parameter, order=1)


@dataclass
class IteratedTikhonov(Formula):
    """s_λ(γ) = 1 − (λ/(γ+λ))^t: Tikhonov's filter on what it left over, t times (Table 1 of the paper).

    Parameters
    ----------
    order : int, default=3
        t ≥ 1; the paper uses 3.
    """

    order: int = 3
    B = 1.0
    C = 1.0

    @property
    def qualification(self) -> float:  # type: ignore[override]
        """η0 = t."""
        return float(self.order)

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = 1 − (λ/(γ+λ))^t."""
        if not isinstance(self.order, Integral) or self.order < 1:
            raise ValueError(refusal("IteratedTikhonov", "order must be a whole number of at least 1", self.order))
        return 1 - (parameter / (gamma + parameter)) ** int(self.order)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """(λ/(γ+λ))^t γ^η ≤ η^η (t−η)^(t−η)/t^t λ^η for η ≤ t."""
        return _largest_residual(eta, self.order)

    def by_products(self, product: Product, mean: Array, target: Array, parameter: float) -> Array:
        """(A + λ) x_j = b + λ x_(j−1), where the paper has (K + nλ) β_j = 1_n + nλ β_(j−1), by mistake."""
        return _iterate(product, product(mean) - target, parameter, self.order)


def _largest_residual(eta: float, order: int) -> float:
    """Return η^η (t−η)^(t−η)/t^t, the largest (λ/(γ+λ))^t (γ/λ)^η, at γ/λ = η/(t−η)."""
    return float(eta**eta * (order - eta) ** (order - eta) / order**order)


def _iterate(product: Product, b: Array, lam: float, order: int) -> Array:
    """Solve (A + λ) x_j = b + λ x_(j−1) for j = 1..order by conjugate gradients, to rounding."""
    shifted = LinearOperator((len(b), len(b)), matvec=lambda v: product(v) + lam * v, dtype=b.dtype)
    x = np.zeros_like(b)
    for _ in range(order):
        x, iterations = cg(shifted, b + lam * x, x0=x, rtol=10 * rounding(b), atol=0.0, maxiter=20 * len(b))
        if iterations:
            got = f"no solution after {iterations} products"
            raise ValueError(refusal("Tikhonov", f"(A + {lam:g}) x = b must be solvable", got, "use a larger λ"))
    return x
