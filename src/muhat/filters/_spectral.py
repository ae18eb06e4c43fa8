"""The filters s_λ(γ) of the paper's Table 1, γ an eigenvalue of K/n, Showalter's, and the rule of Theorem 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import gamma as gamma_function
from scipy.special import jv

from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat._validation import positive
from muhat.filters._base import Formula, Iteration, Product, Shrinker, as_numbers
from muhat.gram import Access, Components, Problem, SpectralProblem
from muhat.gram._problem import quotient

ROUNDING = 1e-14
"""A minimiser below this is a rounding error of zero: nothing is to be shrunk."""

AROUND = np.geomspace(1e-2, 1e2, 32)
"""Multiples of the minimiser that simple shrinkage also looks at; without 1, which is put there exactly."""

THRESHOLDS = 100
"""The most thresholds that truncated SVD chooses from."""

FEW = 128
"""Iterations of the ν-method that are cheap to score, whatever the rank."""

STEPS_BEYOND = 16
"""How many more numbers of iterations the ν-method tries where the best is the most there are."""

DISTINCT = 1 + 1e-8
"""Eigenvalues whose quotient is less are one: no threshold goes between them."""

ALONE = 1e-9
"""Effective sizes closer to one than this are a single point, which tells nothing of its noise."""

SAME = 1e-8
"""Eigenvalues closer than this share of the largest belong to one eigenspace."""


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

        The score is quadratic in r = λ/(1+λ), so that its minimiser has a closed form, kept in [0, 1]. Without weights
        and target, r = n(ϱ−ρ)/(n(n−2)ρ+ϱ) with ρ the mean of K and ϱ that of its diagonal.
        """
        left_out = problem.left_out.sums
        r = np.divide(
            -left_out.linear, left_out.quadratic, out=np.zeros_like(left_out.linear), where=left_out.quadratic > 0
        )
        r = np.clip(r, 0, 1)
        with np.errstate(divide="ignore"):
            best = np.unique(r / (1 - r))
        inside = best[(best > ROUNDING) & np.isfinite(best)]
        middle = float(np.exp(np.log(inside).mean())) if inside.size else 1 / problem.n
        around = middle * AROUND
        return np.unique(np.concatenate([around, inside, best[np.isinf(best)]]))


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
        return -np.expm1(-int(self.order) * _log1p(gamma / parameter))  # all digits of what is small, too

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


@dataclass
class Landweber(Formula, Iteration):
    """s_t(γ) = 1 − (1 − ηγ)^t: L2 boosting (Table 1 of the paper, with its sum from i = 0).

    Parameters
    ----------
    eta : float, default=None
        The step η; by default 1/κ², as in the paper, with κ² = max k(x_i, x_i) where the kernel has no bound.
    """

    eta: float | None = None
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

    def grid(self, problem: Problem) -> Array:
        """Return t from 1 up to where λ ≈ tr(A)/10r, a tenth of the average eigenvalue, or tr(A)/10n, but few."""
        trace = float(np.mean(problem.trace)) or 1.0
        by_rank, by_rows = (trace / (10 * number) for number in (problem.rank, problem.n))
        return self.up_to(min(by_rank, max(by_rows, self.as_lambda(FEW))))

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return t on either side of the one at the index; up to four times as many where it is the most there are."""
        more = super().around(problem, grid, index)
        if index < len(grid) - 1:
            return more
        beyond = np.geomspace(grid[-1], min(4 * grid[-1], self.most), STEPS_BEYOND)
        return np.append(more, np.setdiff1d(beyond.round().astype(np.int64), grid))

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


@dataclass
class Showalter(Formula):
    """s_λ(γ) = 1 − exp(−γ/λ): gradient flow, Landweber's iteration with steps that vanish, stopped at time 1/λ."""

    B = 1.0
    C = 1.0
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = 1 − exp(−γ/λ)."""
        return -np.expm1(-gamma / parameter)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """exp(−γ/λ) γ^η ≤ (η/e)^η λ^η."""
        return float((eta / np.e) ** eta)


def _log1p(x: Array) -> Array:
    """Return log(1 + x) with all its digits, for complex x too, so that a power of millions keeps them."""
    if not np.iscomplexobj(x):
        with np.errstate(divide="ignore"):
            return np.log1p(np.maximum(x, -1))
    return np.log1p(2 * x.real + np.abs(x) ** 2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real)


@dataclass
class TruncatedSVD(Formula):
    """s_λ(γ) = 1 if γ ≥ λ else 0: projection on the leading kernel principal components (Table 1 of the paper).

    It jumps, so that it has no cheap leave-one-out score: an exact one takes an eigendecomposition for each left-out
    point. The paper chooses its λ by generalised cross-validation (``selection="gcv"``).
    """

    analytic: ClassVar[bool] = False
    needs = Access.LEADING
    B = 1.0
    C = 1.0
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = 1 if γ ≥ λ else 0."""
        return (gamma >= parameter).astype(gamma.dtype)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """γ^η < λ^η wherever r_λ = 1."""
        return 1.0

    def grid(self, problem: Problem) -> Array:
        """Return thresholds that keep from nothing to all, at most a hundred, denser among the first."""
        thresholds = self.between(cast(SpectralProblem, problem).spectrum.gamma, 1 - problem.mass_range[1])
        kept = np.unique(np.geomspace(1, len(thresholds), THRESHOLDS).round().astype(int))
        return thresholds[len(thresholds) - kept][::-1]

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return the thresholds between that at the index and its neighbours, at most a hundred."""
        thresholds = self.between(cast(SpectralProblem, problem).spectrum.gamma, 1 - problem.mass_range[1])
        low, high = grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)]
        inside = np.setdiff1d(thresholds[(thresholds > low) & (thresholds < high)], grid)
        return inside[:: -(-len(inside) // THRESHOLDS) or 1]

    @staticmethod
    def between(gamma: Array, rest: float) -> Array:
        """Return thresholds between neighbouring eigenvalues, given ascending, and one below and one above all.

        With c the mass that is left without a point, its eigenvalues interlace with γ/c: above γ_(k+1)/c and up to γ_k
        a threshold keeps k components of the sample, and of the sample without any of its points.
        """
        descending = gamma.reshape(-1, gamma.shape[-1]).mean(axis=0)[::-1].astype(np.float64)
        positive = descending[descending > 0]
        if not positive.size:
            return np.ones(1)
        following = np.append(positive[1:], positive[-1] / 4)
        above = DISTINCT * following / rest
        between = np.where(above < positive, above, np.sqrt(positive * following))[positive > DISTINCT * following]
        return np.append(between[::-1], 2 * positive[0] / rest)


@dataclass
class Componentwise(Shrinker):
    """s_i = 1 − α_i with α_i = Δ_i/(Δ_i + (f*_i − μ_i)²), the best shrinkage of component i (Theorem 2), estimated.

    The estimates are μ_i ≈ ⟨μ̂, v_i⟩ and Δ_i ≈ (γ_i − ⟨μ̂, v_i⟩²)/(n − 1). Within an eigenspace, where the basis is not
    unique, one axis is laid along μ̂ − f*, so that the result does not depend on the eigensolver.

    It is no function of γ alone, so that its exact leave-one-out score takes an eigendecomposition for each point.
    """

    parameterless: ClassVar[bool] = True

    def on(self, components: Components, grid: Array) -> Array:
        """Return s_i of every component."""
        gap = components.mean - components.target
        spaces = _eigenspaces(components.gamma)
        squared_gap = _sum_within(spaces, gap**2)
        along = _sum_within(spaces, gap * components.mean)
        mean = quotient(along**2, squared_gap)
        spread = np.maximum(components.gamma - mean, 0)
        others = components.effective_size - 1
        noise = np.divide(spread, others, out=np.zeros_like(spread), where=others > ALONE)
        total = noise + squared_gap
        s = np.divide(squared_gap, total, out=np.ones_like(total), where=total > 0)
        return np.broadcast_to(s, (len(grid), *s.shape))

    def at_zero(self, grid: Array) -> Array:
        """Return 1: no noise, no shrinkage."""
        return np.ones(len(grid))


def _eigenspaces(gamma: Array) -> Array:
    """Number the eigenspaces: ascending eigenvalues that lie close together share a number."""
    tolerance = SAME * gamma.max(axis=-1, keepdims=True, initial=0)
    steps = np.diff(gamma, axis=-1, prepend=gamma[..., :1]) > tolerance
    return np.cumsum(steps, axis=-1)


def _sum_within(spaces: Array, values: Array) -> Array:
    """Return, for each component, the sum of the values over its eigenspace."""
    size = spaces.shape[-1]
    labels = spaces.reshape(-1, size) + size * np.arange(spaces.size // size)[:, None]
    sums = np.bincount(labels.ravel(), values.ravel(), minlength=spaces.size)
    return sums[labels].reshape(values.shape).astype(values.dtype)
