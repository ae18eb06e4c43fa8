"""Gradient descent stopped early: Landweber's iteration (L2 boosting) and its accelerated form, the ν-method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import jv

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import positive
from muhat.filters._base import Formula, Iteration, Product


@dataclass
class Landweber(Formula, Iteration):
    """s_t(γ) = 1 − (1 − ηγ)^t: L2 boosting (Table 1 of the paper, with its sum from i = 0).

    Parameters
    ----------
    eta : float, default=None
        The step η; by default 1/κ², as in the paper, with κ² = max k(x_i, x_i) where the kernel has no bound.
    """

    eta: float | None = None
    longest: ClassVar[int] = 100_000
    most: ClassVar[int] = 10**15
    B = 1.0
    C = 1.0
    qualification = float("inf")

    @property
    def step(self) -> float:
        """η, 1 before it is bound to a kernel."""
        return 1.0 if self.eta is None else positive(self, "eta", self.eta)

    def bounded_by(self, kappa2: float) -> Landweber:
        """Return it with η = 1/κ²; refuse a longer step, with which the iteration may diverge."""
        if self.eta is None:
            return replace(self, eta=1 / kappa2)
        if self.step > (1 + 1e-9) / kappa2:
            needed = f"eta must be at most 1/κ² = {1 / kappa2:.6g}"
            raise ValueError(refusal("Landweber", needed, self.eta, "leave it out for 1/κ² itself"))
        return self

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_t(γ) = 1 − (1 − ηγ)^t."""
        return -np.expm1(parameter * _log1p(-self.step * gamma))

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """(1 − γ/κ²)^t γ^η ≤ exp(−tγ/κ²) γ^η ≤ (η/e)^η (κ²/t)^η."""
        return float((eta / np.e) ** eta)

    def as_lambda(self, parameter: float) -> float:
        """λ = 1/(ηt)."""
        return 1 / (self.step * parameter)

    def from_lambda(self, lam: float) -> float:
        """t = 1/(ηλ), at least 1."""
        return max(1, round(min(1 / (self.step * lam), self.most)))

    def by_products(self, product: Product, mean: Array, target: Array, parameter: float) -> Array:
        """x ← x + η (b − Ax)."""
        b = product(mean) - target
        x = np.zeros_like(b)
        for _ in range(int(parameter)):
            x += self.step * (b - product(x))
        return x


@dataclass
class NuMethod(Iteration):
    """s_t(γ) = 1 − p_t(γ/κ²), p_t the ν-method's residual polynomial: accelerated Landweber (Table 1 of the paper).

    Parameters
    ----------
    nu : float, default=1.0
        ν > 0, which is also its qualification.
    kappa2 : float, default=None
        κ²; by default the kernel's bound, or max k(x_i, x_i) where it has none.
    """

    nu: float = 1.0
    kappa2: float | None = None
    longest: ClassVar[int] = 50
    most: ClassVar[int] = 100_000
    C = 1.0

    @property
    def B(self) -> float:  # type: ignore[override]
        """ω_1, the overshoot of the first step at γ = κ²."""
        return self.coefficients(1)[1]

    @property
    def qualification(self) -> float:  # type: ignore[override]
        """η0 = ν."""
        return positive(self, "nu", self.nu)

    @property
    def scale(self) -> float:
        """κ², 1 before it is bound to a kernel."""
        return 1.0 if self.kappa2 is None else positive(self, "kappa2", self.kappa2)

    def bounded_by(self, kappa2: float) -> NuMethod:
        """Return it on [0, κ²]; refuse a smaller interval, outside of which the iteration diverges."""
        if self.kappa2 is None:
            return replace(self, kappa2=kappa2)
        if self.scale < kappa2 * (1 - 1e-9):
            needed = f"kappa2 must be at least the kernel's bound {kappa2:.6g}"
            raise ValueError(refusal("NuMethod", needed, self.kappa2, "leave it out for the bound itself"))
        return self

    def coefficients(self, t: int) -> tuple[float, float]:
        """Return the momentum m_t and the step ω_t; m_1 = 0 and ω_1 = (4ν+2)/(4ν+1)."""
        nu = positive(self, "nu", self.nu)
        if t == 1:
            return 0.0, (4 * nu + 2) / (4 * nu + 1)
        common = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
        momentum = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1) / (common * (2 * t + 2 * nu - 3))
        return momentum, 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / common

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_t(γ), by its recurrence."""
        return self.path(gamma, np.array([parameter], dtype=np.int64))[0]

    def path(self, gamma: Array, grid: Array) -> Array:
        """Return s_t(γ) for every t of the grid in one sweep of the recurrence."""
        scaled = np.asarray(gamma) / self.scale
        before, s = np.zeros_like(scaled), np.zeros_like(scaled)
        path = np.empty((len(grid), *scaled.shape), scaled.dtype)
        for t in range(1, int(grid.max()) + 1):
            momentum, omega = self.coefficients(t)
            before, s = s, s + momentum * (s - before) + omega * scaled * (1 - s)
            path[grid == t] = s
        return path

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """Return sup_z Γ(2ν+½) (z/2)^(2η−2ν+½) |J_(2ν−½)(z)|: for long iterations p_t tends to a Bessel function."""
        order = 2 * self.nu - 0.5
        z = np.linspace(1e-3, 50 + 10 * order, 20_000)
        values = (z / 2) ** (2 * eta - order) * np.abs(jv(order, z))
        return float(gamma_function(order + 1) * values.max())

    def as_lambda(self, parameter: float) -> float:
        """λ = κ²/t²."""
        return self.scale / parameter**2

    def from_lambda(self, lam: float) -> float:
        """t = √(κ²/λ), at least 1."""
        return max(1, round(min(float(np.sqrt(self.scale / lam)), self.most)))

    def by_products(self, product: Product, mean: Array, target: Array, parameter: float) -> Array:
        """x_t = x_(t−1) + m_t (x_(t−1) − x_(t−2)) + ω_t (b − A x_(t−1))/κ²."""
        b = product(mean) - target
        before, x = np.zeros_like(b), np.zeros_like(b)
        for t in range(1, int(parameter) + 1):
            momentum, omega = self.coefficients(t)
            before, x = x, x + momentum * (x - before) + omega / self.scale * (b - product(x))
        return x


def _log1p(x: Array) -> Array:
    """Return log(1 + x) with all its digits, for complex x too, so that a power of millions keeps them."""
    if not np.iscomplexobj(x):
        with np.errstate(divide="ignore"):
            return np.log1p(np.maximum(x, -1))
    return np.log1p(2 * x.real + np.abs(x) ** 2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real)
