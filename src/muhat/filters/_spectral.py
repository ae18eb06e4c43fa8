"""The filters s_λ(γ) of the paper's Table 1, Showalter's, and the rule of Theorem 2.

γ is an eigenvalue of K/n. A class that ``__all__`` lists is known to users by its ``name``; tables
and legends have them in the order of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import jv

from muhat._arrays import Array, quotient
from muhat._tolerances import (
    DISTINCT_RATIO,
    EIGENSPACE_TOL,
    MIN_SHRINKAGE,
    SINGLE_POINT_TOL,
    STEP_TOL,
)
from muhat._validation import positive
from muhat.errors import MuhatError
from muhat.filters._base import Formula, Iteration, Shrinker, as_numbers
from muhat.gram import Access, Components, Problem, SpectralProblem

__all__ = [
    "KME",
    "Componentwise",
    "IteratedTikhonov",
    "Landweber",
    "NuMethod",
    "Showalter",
    "SimpleShrinkage",
    "Tikhonov",
    "TruncatedSVD",
]

GRID_FACTORS = np.geomspace(1e-2, 1e2, 32)
"""Multiples of the minimiser in the grid of simple shrinkage, beside the minimiser itself."""

MAX_THRESHOLDS = 100
"""Maximum number of thresholds that truncated SVD chooses from."""

CHEAP_ITERATIONS = 128
"""Iterations of the ν-method that a default grid may have on any sample."""

STEPS_BEYOND = 16
"""Numbers of iterations tried beyond the end of the ν-method's grid."""


class Constant(Formula):
    """A filter that does not depend on γ."""

    constant: ClassVar[bool] = True

    def n_products(self, parameter: float) -> float:
        return 0


@dataclass
class KME(Constant):
    """s(γ) = 1: the empirical kernel mean μ̂, no shrinkage."""

    name = "kme"
    label = "KME"
    symbol = ""
    colour: ClassVar[str] = "#000000"
    marker: ClassVar[str] = "o"
    in_auto = True
    parameterless: ClassVar[bool] = True
    qualification: ClassVar[float] = float("inf")
    B, C = 1.0, 0.0

    def D(self, eta: float, kappa2: float) -> float:
        return 0.0

    def shrinkage(self, gamma: Array, parameter: Any = 0.0) -> Array:
        return np.ones_like(gamma * parameter)


@dataclass
class SimpleShrinkage(Constant):
    """s_λ(γ) = 1/(1+λ): S-KMSE, equation 3 of the paper, α = λ/(1+λ)."""

    name = "s-kmse"
    label = "S-KMSE"
    colour: ClassVar[str] = "#E69F00"
    marker: ClassVar[str] = "s"
    qualification: ClassVar[float] = 1.0
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        """|r_λ| = λ/(1+λ) ≤ λ^η for η ≤ 1, and γ^η ≤ κ^(2η)."""
        return kappa2**eta

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return np.ones_like(gamma) / (1 + parameter)

    def check(self, grid: Array) -> Array:
        """Return the grid as an array of positive numbers; infinity is valid: the target itself."""
        values = as_numbers(grid)
        super().check(np.minimum(values, np.finfo(np.float64).max))
        return values

    def grid(self, problem: Problem) -> Array:
        """Return λ around the minimiser of the leave-one-out score, the minimiser included.

        The score is quadratic in r = λ/(1+λ), so that its minimiser has a closed form, clipped to
        [0, 1]. Without weights and target, r = n(ϱ−ρ)/(n(n−2)ρ+ϱ) with ρ the mean of K and ϱ that
        of its diagonal.
        """
        sums = problem.left_out.sums
        convex = sums.quadratic > 0
        r = np.divide(-sums.linear, sums.quadratic, out=np.zeros_like(sums.linear), where=convex)
        r = np.clip(r, 0, 1)
        with np.errstate(divide="ignore"):
            best = np.unique(r / (1 - r))
        inside = best[(best > MIN_SHRINKAGE) & np.isfinite(best)]
        middle = 1 / problem.n
        if inside.size:
            middle = float(np.exp(np.log(inside).mean()))
        return np.unique(np.concatenate([middle * GRID_FACTORS, inside, best[np.isinf(best)]]))


@dataclass
class Tikhonov(Formula):
    """s_λ(γ) = γ/(γ+λ): F-KMSE (section 3 of the paper)."""

    name = "f-kmse"
    aliases: ClassVar[tuple[str, ...]] = ("tikhonov",)
    label = "F-KMSE"
    colour: ClassVar[str] = "#0072B2"
    marker: ClassVar[str] = "o"
    in_auto = True
    in_conditional_auto = True
    qualification: ClassVar[float] = 1.0
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        return _largest_power_of_ridge(eta, 1)

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return gamma / (gamma + parameter)


@dataclass
class IteratedTikhonov(Formula):
    """s_λ(γ) = 1 − (λ/(γ+λ))^t: Tikhonov's filter applied t times to the remainder (Table 1).

    Parameters
    ----------
    order : int, default=3
        t ≥ 1; the paper uses 3.
    """

    name = "iterated-tikhonov"
    label = "iterated Tikhonov"
    colour: ClassVar[str] = "#56B4E9"
    marker: ClassVar[str] = "D"
    in_conditional_auto = True
    order: int = 3
    B, C = 1.0, 1.0

    @property
    def qualification(self) -> float:  # type: ignore[override]
        """η0 = t."""
        return float(self.order)

    def D(self, eta: float, kappa2: float) -> float:
        return _largest_power_of_ridge(eta, self.order)

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        if not isinstance(self.order, Integral) or self.order < 1:
            needed = "order must be a whole number of at least 1"
            raise MuhatError("IteratedTikhonov", needed, self.order)
        # by expm1 and log1p, so that small values keep all their digits
        return -np.expm1(-int(self.order) * np.log1p(gamma / parameter))


def _largest_power_of_ridge(eta: float, t: int) -> float:
    """Return the maximum of (λ/(γ+λ))^t (γ/λ)^η, which is at γ/λ = η/(t−η)."""
    return float(eta**eta * (t - eta) ** (t - eta) / t**t)


def _largest_power_of_exponential(eta: float) -> float:
    """Return the maximum of exp(−γ/λ) (γ/λ)^η, which is at γ/λ = η."""
    return float((eta / np.e) ** eta)


@dataclass
class Landweber(Formula, Iteration):
    """s_t(γ) = 1 − (1 − ηγ)^t: L2 boosting (Table 1 of the paper, with its sum from i = 0).

    Parameters
    ----------
    eta : float, default=None
        The step η. By default it is 1/κ², as in the paper, with κ² = max k(x_i, x_i) for a kernel
        without a bound.
    """

    name = "landweber"
    label = "Landweber"
    colour: ClassVar[str] = "#D55E00"
    marker: ClassVar[str] = "^"
    in_conditional_auto = True
    eta: float | None = None
    max_iterations: ClassVar[int] = 10**15
    qualification: ClassVar[float] = float("inf")
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        """(1 − γ/κ²)^t ≤ exp(−tγ/κ²)."""
        return _largest_power_of_exponential(eta)

    @property
    def step(self) -> float:
        """η, 1 until ``bounded_by`` sets it."""
        if self.eta is None:
            return 1.0
        return positive(self, "eta", self.eta)

    def bounded_by(self, kappa2: float) -> Landweber:
        """Return it with η = 1/κ²; raise MuhatError for a longer step, which may diverge."""
        if self.eta is None:
            return replace(self, eta=1 / kappa2)
        if self.step > (1 + STEP_TOL) / kappa2:
            needed = f"eta must be at most 1/κ² = {1 / kappa2:.6g}"
            raise MuhatError("Landweber", needed, self.eta, "leave out eta to use 1/κ²")
        return self

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        with np.errstate(divide="ignore"):
            return -np.expm1(parameter * np.log1p(np.maximum(-self.step * gamma, -1)))

    def as_lambda(self, parameter: float) -> float:
        return 1 / (self.step * parameter)

    def from_lambda(self, lam: float) -> float:
        return max(1, round(min(1 / (self.step * lam), self.max_iterations)))


@dataclass
class NuMethod(Iteration):
    """s_t(γ) = 1 − p_t(γ/κ²), p_t the ν-method's residual polynomial: accelerated Landweber.

    It is in Table 1 of the paper.

    Parameters
    ----------
    nu : float, default=1.0
        ν > 0, which is also its qualification.
    kappa2 : float, default=None
        κ². By default it is the kernel's bound, or max k(x_i, x_i) for a kernel without one.
    """

    name = "nu-method"
    aliases: ClassVar[tuple[str, ...]] = ("accelerated-landweber",)
    label = "ν-method"
    colour: ClassVar[str] = "#CC79A7"
    marker: ClassVar[str] = "v"
    in_conditional_auto = True
    nu: float = 1.0
    kappa2: float | None = None
    max_iterations: ClassVar[int] = 100_000
    C = 1.0

    @property
    def B(self) -> float:  # type: ignore[override]
        """ω_1: the first step overshoots at γ = κ²."""
        return float(self.coefficients(1)[1])

    @property
    def qualification(self) -> float:  # type: ignore[override]
        """η0 = ν."""
        return positive(self, "nu", self.nu)

    def D(self, eta: float, kappa2: float) -> float:
        """For long iterations p_t tends to Γ(2ν+½) (z/2)^(½−2ν) J_(2ν−½)(z)."""
        order = 2 * self.nu - 0.5
        z = np.linspace(1e-3, 50 + 10 * order, 20_000)
        values = (z / 2) ** (2 * eta - order) * np.abs(jv(order, z))
        return float(gamma_function(order + 1) * values.max())

    @property
    def scale(self) -> float:
        """κ², 1 until ``bounded_by`` sets it."""
        if self.kappa2 is None:
            return 1.0
        return positive(self, "kappa2", self.kappa2)

    def bounded_by(self, kappa2: float) -> NuMethod:
        """Return it on [0, κ²]; raise MuhatError for a smaller interval, outside of it diverges."""
        if self.kappa2 is None:
            return replace(self, kappa2=kappa2)
        if self.scale < kappa2 * (1 - STEP_TOL):
            needed = f"kappa2 must be at least the kernel's bound {kappa2:.6g}"
            raise MuhatError("NuMethod", needed, self.kappa2, "leave out kappa2 to use this bound")
        return self

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return the momentum m_t and the step ω_t of one t or of an array of them.

        m_1 = 0 and ω_1 = (4ν+2)/(4ν+1).
        """
        nu = positive(self, "nu", self.nu)
        common = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
        last = 2 * np.maximum(t, 2) + 2 * nu - 3  # at t = 1 any positive number: m_1 is zero
        momentum = (t - 1) * (2 * t - 3) * (2 * t + 2 * nu - 1) / (common * last)
        omega = 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / common
        return momentum, omega

    def iterates(
        self, gradient: Callable[[Array], Array], start: Array, last: int
    ) -> Iterator[Array]:
        """Yield x_1, ..., x_last, where x_t = x_(t−1) + m_t (x_(t−1) − x_(t−2)) + ω_t ∇(x_(t−1)).

        The gradient ∇ is that of the problem scaled to [0, 1], A/κ² times what is missing.
        """
        momenta, omegas = self.coefficients(np.arange(1, last + 1))
        before = x = start
        for momentum, omega in zip(momenta.tolist(), omegas.tolist(), strict=True):
            before, x = x, x + momentum * (x - before) + omega * gradient(x)
            yield x

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return self.path(gamma, np.array([parameter], dtype=np.int64))[0]

    def path(self, gamma: Array, grid: Array) -> Array:
        """Return s_t(γ) for every t of the grid in one pass over the iterations."""
        scaled = np.asarray(gamma) / self.scale
        path = np.empty((len(grid), *scaled.shape), scaled.dtype)
        wanted = set(grid.tolist())
        iterates = self.iterates(lambda s: scaled * (1 - s), np.zeros_like(scaled), int(grid.max()))
        for t, s in enumerate(iterates, start=1):
            if t in wanted:
                path[grid == t] = s
        return path

    def grid(self, problem: Problem) -> Array:
        """Return t from 1 up to where λ ≈ tr(A)/10r, a tenth of the average eigenvalue.

        On samples of many rows and low rank r it goes on up to λ ≈ tr(A)/10n, but not beyond
        ``CHEAP_ITERATIONS``.
        """
        trace = float(np.mean(problem.trace)) or 1.0
        by_rank = trace / (10 * problem.rank)
        by_rows = trace / (10 * problem.n)
        return self.grid_down_to(min(by_rank, max(by_rows, self.as_lambda(CHEAP_ITERATIONS))))

    def refine_grid(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return t on either side of the one at the index; at the end, up to four times as many."""
        more = super().refine_grid(problem, grid, index)
        if index < len(grid) - 1:
            return more
        beyond = np.geomspace(grid[-1], min(4 * grid[-1], self.max_iterations), STEPS_BEYOND)
        return np.append(more, np.setdiff1d(beyond.round().astype(np.int64), grid))

    def as_lambda(self, parameter: float) -> float:
        return self.scale / parameter**2

    def from_lambda(self, lam: float) -> float:
        return max(1, round(min(float(np.sqrt(self.scale / lam)), self.max_iterations)))


@dataclass
class Showalter(Formula):
    """s_λ(γ) = 1 − exp(−γ/λ): gradient flow, Landweber's iteration with infinitely small steps.

    The flow is stopped at time 1/λ.
    """

    name = "showalter"
    label = "Showalter"
    colour: ClassVar[str] = "#882255"
    marker: ClassVar[str] = "X"
    qualification: ClassVar[float] = float("inf")
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        return _largest_power_of_exponential(eta)

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return -np.expm1(-gamma / parameter)


@dataclass
class TruncatedSVD(Formula):
    """s_λ(γ) = 1 if γ ≥ λ else 0: projection on the leading kernel principal components (Table 1).

    It has a jump, so that its exact leave-one-out score takes an eigendecomposition for each
    left-out point. The paper chooses its λ by generalised cross-validation
    (``selection="gcv"``).
    """

    name = "tsvd"
    label = "truncated SVD"
    colour: ClassVar[str] = "#009E73"
    marker: ClassVar[str] = "P"
    analytic: ClassVar[bool] = False
    needs = Access.LEADING
    qualification: ClassVar[float] = float("inf")
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        """γ < λ wherever r_λ = 1."""
        return 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return (gamma >= parameter).astype(gamma.dtype)

    def grid(self, problem: Problem) -> Array:
        """Return thresholds that keep from no component to all, denser among the first ones."""
        thresholds = self._thresholds(problem)
        kept = np.unique(np.geomspace(1, len(thresholds), MAX_THRESHOLDS).round().astype(int))
        return thresholds[len(thresholds) - kept][::-1]

    def refine_grid(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return the thresholds between the one at the index and its neighbours."""
        thresholds = self._thresholds(problem)
        low, high = grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)]
        inside = np.setdiff1d(thresholds[(thresholds > low) & (thresholds < high)], grid)
        stride = max(1, -(-len(inside) // MAX_THRESHOLDS))
        return inside[::stride]

    def _thresholds(self, problem: Problem) -> Array:
        gamma = cast(SpectralProblem, problem).spectrum.gamma
        return self.between(gamma, 1 - problem.mass_range[1])

    @staticmethod
    def between(gamma: Array, rest: float) -> Array:
        """Return thresholds between neighbouring eigenvalues, and one below and one above all.

        Let c be the mass left without a point. The eigenvalues without it interlace with γ/c: a
        threshold above γ_(k+1)/c and up to γ_k keeps k components of the sample, and of the sample
        without any one of its points.

        Parameters
        ----------
        gamma : array of shape (..., r)
            Eigenvalues, ascending.
        rest : float
            c.
        """
        descending = gamma.reshape(-1, gamma.shape[-1]).mean(axis=0)[::-1].astype(np.float64)
        positive = descending[descending > 0]
        if not positive.size:
            return np.ones(1)
        following = np.append(positive[1:], positive[-1] / 4)
        above = DISTINCT_RATIO * following / rest
        between = np.where(above < positive, above, np.sqrt(positive * following))
        between = between[positive > DISTINCT_RATIO * following]
        return np.append(between[::-1], 2 * positive[0] / rest)


@dataclass
class Componentwise(Shrinker):
    """s_i = 1 − α_i, α_i = Δ_i/(Δ_i + (f*_i − μ_i)²): Theorem 2's best shrinkage, estimated.

    The estimates are μ_i ≈ ⟨μ̂, v_i⟩ and Δ_i ≈ (γ_i − ⟨μ̂, v_i⟩²)/(n − 1). The basis of an
    eigenspace is not unique: one axis is laid along μ̂ − f*, so that the result does not depend on
    the eigensolver.

    It is not a function of γ alone, so that its exact leave-one-out score takes an
    eigendecomposition for each point.
    """

    name = "componentwise"
    label = "component-wise"
    symbol = ""
    colour: ClassVar[str] = "#F0E442"
    marker: ClassVar[str] = "h"
    parameterless: ClassVar[bool] = True

    def on(self, components: Components, grid: Array) -> Array:
        gap = components.mean - components.target
        spaces = _eigenspaces(components.gamma)
        squared_gap = _sum_within(spaces, gap**2)
        along = _sum_within(spaces, gap * components.mean)
        mean = quotient(along**2, squared_gap)
        spread = np.maximum(components.gamma - mean, 0)
        others = components.effective_size - 1
        several = others > SINGLE_POINT_TOL
        noise = np.divide(spread, others, out=np.zeros_like(spread), where=several)
        total = noise + squared_gap
        s = np.divide(squared_gap, total, out=np.ones_like(total), where=total > 0)
        return np.broadcast_to(s, (len(grid), *s.shape))

    def at_zero(self, grid: Array) -> Array:
        """Return 1: no noise, no shrinkage."""
        return np.ones(len(grid))


def _eigenspaces(gamma: Array) -> Array:
    """Number the eigenspaces: ascending eigenvalues that are nearly equal share a number."""
    tolerance = EIGENSPACE_TOL * gamma.max(axis=-1, keepdims=True, initial=0)
    steps = np.diff(gamma, axis=-1, prepend=gamma[..., :1]) > tolerance
    return np.cumsum(steps, axis=-1)


def _sum_within(spaces: Array, values: Array) -> Array:
    """Return, for each component, the sum of the values over its eigenspace."""
    size = spaces.shape[-1]
    labels = spaces.reshape(-1, size) + size * np.arange(spaces.size // size)[:, None]
    sums = np.bincount(labels.ravel(), values.ravel(), minlength=spaces.size)
    return sums[labels].reshape(values.shape).astype(values.dtype)
