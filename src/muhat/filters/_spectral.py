"""The filters s_λ(γ) of the paper's Table 1, γ an eigenvalue of K/n, Showalter's, and the rule of Theorem 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np

from muhat._arrays import Array, quotient
from muhat._validation import positive
from muhat.errors import MuhatError
from muhat.filters._base import Formula, Iteration, Shrinker, as_numbers
from muhat.gram import Access, Components, Problem, SpectralProblem

ROUNDING = 1e-14
"""A minimiser below this is a rounding error of zero: nothing is to be shrunk."""

AROUND = np.geomspace(1e-2, 1e2, 32)
"""Multiples of the minimiser that simple shrinkage also looks at; without 1, which is put there exactly."""

THRESHOLDS = 100
"""The most thresholds that truncated SVD chooses from."""

FEW, STEPS_BEYOND = 128, 16
"""Iterations of the ν-method that are cheap to score, and how many more numbers are tried beyond the most there are."""

DISTINCT = 1 + 1e-8
"""Eigenvalues whose quotient is less are one: no threshold goes between them."""

ALONE, SAME = 1e-9, 1e-8
"""Effective sizes this close to one are a single point, which tells nothing of its noise; eigenvalues closer than this
share of the largest belong to one eigenspace."""


class Constant(Formula):
    """s_λ does not depend on γ."""

    constant: ClassVar[bool] = True

    def products(self, parameter: float) -> float:
        return 0


@dataclass
class KME(Constant):
    """s(γ) = 1: the empirical kernel mean μ̂, no shrinkage."""

    parameterless: ClassVar[bool] = True
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any = 0.0) -> Array:
        return np.ones_like(gamma * parameter)


@dataclass
class SimpleShrinkage(Constant):
    """s_λ(γ) = 1/(1+λ): S-KMSE, equation 3 of the paper, α = λ/(1+λ)."""

    qualification = 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return np.ones_like(gamma) / (1 + parameter)

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
        linear, quadratic = left_out.linear, left_out.quadratic
        r = np.clip(
            np.divide(-linear, quadratic, out=np.zeros_like(linear), where=quadratic > 0), 0, 1
        )
        with np.errstate(divide="ignore"):
            best = np.unique(r / (1 - r))
        inside = best[(best > ROUNDING) & np.isfinite(best)]
        middle = float(np.exp(np.log(inside).mean())) if inside.size else 1 / problem.n
        around = middle * AROUND
        return np.unique(np.concatenate([around, inside, best[np.isinf(best)]]))


@dataclass
class Tikhonov(Formula):
    """s_λ(γ) = γ/(γ+λ): F-KMSE (section 3 of the paper)."""

    qualification = 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return gamma / (gamma + parameter)


@dataclass
class IteratedTikhonov(Formula):
    """s_λ(γ) = 1 − (λ/(γ+λ))^t: Tikhonov's filter on what it left over, t times (Table 1 of the paper).

    Parameters
    ----------
    order : int, default=3
        t ≥ 1; the paper uses 3.
    """

    order: int = 3

    @property
    def qualification(self) -> float:  # type: ignore[override]
        """η0 = t."""
        return float(self.order)

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        if not isinstance(self.order, Integral) or self.order < 1:
            raise MuhatError(
                "IteratedTikhonov", "order must be a whole number of at least 1", self.order
            )
        return -np.expm1(
            -int(self.order) * np.log1p(gamma / parameter)
        )  # all digits of what is small, too


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
            raise MuhatError("Landweber", needed, self.eta, "leave it out for 1/κ² itself")
        return self

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        with np.errstate(divide="ignore"):
            return -np.expm1(parameter * np.log1p(np.maximum(-self.step * gamma, -1)))

    def as_lambda(self, parameter: float) -> float:
        return 1 / (self.step * parameter)

    def from_lambda(self, lam: float) -> float:
        return max(1, round(min(1 / (self.step * lam), self.most)))


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
            raise MuhatError("NuMethod", needed, self.kappa2, "leave it out for the bound itself")
        return self

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return the momentum m_t and the step ω_t of one t or of many; m_1 = 0 and ω_1 = (4ν+2)/(4ν+1)."""
        nu = positive(self, "nu", self.nu)
        common = (t + 2 * nu - 1) * (2 * t + 4 * nu - 1)
        momentum = (
            (t - 1)
            * (2 * t - 3)
            * (2 * t + 2 * nu - 1)
            / (common * (2 * np.maximum(t, 2) + 2 * nu - 3))
        )
        return momentum, 4 * (2 * t + 2 * nu - 1) * (t + nu - 1) / common

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return self.path(gamma, np.array([parameter], dtype=np.int64))[0]

    def path(self, gamma: Array, grid: Array) -> Array:
        """Return s_t(γ) for every t of the grid in one sweep of the recurrence."""
        scaled = np.asarray(gamma) / self.scale
        before, s = np.zeros_like(scaled), np.zeros_like(scaled)
        path = np.empty((len(grid), *scaled.shape), scaled.dtype)
        steps, wanted = np.arange(1, int(grid.max()) + 1), set(grid.tolist())
        for t, momentum, omega in zip(
            *(each.tolist() for each in (steps, *self.coefficients(steps))), strict=True
        ):
            before, s = s, s + momentum * (s - before) + omega * scaled * (1 - s)
            if t in wanted:
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

    def as_lambda(self, parameter: float) -> float:
        return self.scale / parameter**2

    def from_lambda(self, lam: float) -> float:
        return max(1, round(min(float(np.sqrt(self.scale / lam)), self.most)))


@dataclass
class Showalter(Formula):
    """s_λ(γ) = 1 − exp(−γ/λ): gradient flow, Landweber's iteration with steps that vanish, stopped at time 1/λ."""

    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return -np.expm1(-gamma / parameter)


@dataclass
class TruncatedSVD(Formula):
    """s_λ(γ) = 1 if γ ≥ λ else 0: projection on the leading kernel principal components (Table 1 of the paper).

    It jumps, so that it has no cheap leave-one-out score: an exact one takes an eigendecomposition for each left-out
    point. The paper chooses its λ by generalised cross-validation (``selection="gcv"``).
    """

    analytic: ClassVar[bool] = False
    needs = Access.LEADING
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return (gamma >= parameter).astype(gamma.dtype)

    def grid(self, problem: Problem) -> Array:
        """Return thresholds that keep from nothing to all, at most a hundred, denser among the first."""
        thresholds = self.between(
            cast(SpectralProblem, problem).spectrum.gamma, 1 - problem.mass_range[1]
        )
        kept = np.unique(np.geomspace(1, len(thresholds), THRESHOLDS).round().astype(int))
        return thresholds[len(thresholds) - kept][::-1]

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return the thresholds between that at the index and its neighbours, at most a hundred."""
        thresholds = self.between(
            cast(SpectralProblem, problem).spectrum.gamma, 1 - problem.mass_range[1]
        )
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
        between = np.where(above < positive, above, np.sqrt(positive * following))[
            positive > DISTINCT * following
        ]
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
