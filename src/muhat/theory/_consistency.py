"""Definition 1 and Theorem 3: the constants of a filter, and rates of filtered means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._parts import as_kernel
from muhat._tolerances import BOUND_SLACK, VISIBLE_RESIDUAL
from muhat._validation import as_points, frozen, positive
from muhat.embedding import Embedding
from muhat.errors import MuhatError, MuhatTypeError
from muhat.filters import Filter
from muhat.gram import DenseGram, DenseProblem
from muhat.gram._problem import Spectrum
from muhat.kernels import Kernel
from muhat.theory._constants import Constants, stated_constants

EIGENVALUES = 4001
"""Values of γ in [0, κ²] at which Definition 1 is checked, in each of two spacings."""

EXPONENTS = (0.25, 0.5, 1.0, 2.0)
"""Exponents η at which (C3) is checked where the qualification is infinite or not stated."""


@dataclass(frozen=True)
class Definition1:
    """Definition 1, checked: |s_λ| ≤ B, |r_λ| ≤ C and |r_λ(γ)|γ^η ≤ D(η)λ^η on [0, κ²].

    Attributes
    ----------
    lambdas, exponents : array
        The λ and η it was checked for.
    measured : Constants
        The least constants that do; the qualification is the slope of log|r_λ| in log λ above κ²/2,
        at the two smallest λ where a residual can be seen: infinite where none can, NaN where one λ
        alone shows it.
    stated : Constants
        The filter's own.
    holds : bool
        Whether the filter states B, C and D and none is exceeded.
    """

    lambdas: Array
    exponents: Array
    measured: Constants
    stated: Constants
    holds: bool


def check_definition_1(
    filter: Filter, parameters: Any, kappa2: float = 1.0, exponents: Sequence[float] | None = None
) -> Definition1:
    """Measure the constants of Definition 1 for a filter, and compare them with the stated ones.

    Parameters
    ----------
    filter : Filter
        The filter, which is first bound to κ².
    parameters : array
        Its parameters: those that act as a λ ≤ κ², which is the family that Definition 1 speaks of.
    kappa2 : float, default=1.0
        κ²: the eigenvalues are in [0, κ²].
    exponents : sequence of float, default=None
        η in (0, η0]; by default four up to the qualification η0, or up to 2 where it is infinite or
        not stated.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> check = check_definition_1(Tikhonov(), [0.001, 0.01, 0.1])
    >>> check.holds, round(check.measured.qualification, 2)
    (True, 0.99)
    """
    kappa2 = positive("check_definition_1", "kappa2", kappa2)
    filter = _bound_to(filter, kappa2)
    grid = filter.check(parameters)
    lambdas = _lambdas("check_definition_1", filter, grid, kappa2)
    etas = _exponents(filter, exponents)

    angles = np.linspace(
        0, np.pi, EIGENVALUES
    )  # as dense at both ends as a polynomial's oscillations are
    small = np.geomspace(1e-12 * kappa2, kappa2, EIGENVALUES)
    gamma = np.unique(
        np.concatenate([kappa2 * np.sin(angles / 2) ** 2, small, np.nextafter(lambdas, 0)])
    )
    gamma = gamma[gamma <= kappa2]
    s = filter.path(gamma, grid)
    r = np.abs(1 - s)
    r[r < VISIBLE_RESIDUAL] = 0
    D = [float(((r * gamma**eta).max(axis=1) / lambdas**eta).max()) for eta in etas]
    measured = Constants(
        float(np.abs(s).max()),
        float(r.max()),
        np.array(D),
        _slope(lambdas, r[:, gamma > kappa2 / 2]),
    )
    stated = stated_constants(filter, etas, kappa2)
    pairs = [
        (measured.B, stated.B),
        (measured.C, stated.C),
        *zip(measured.D, stated.D, strict=True),
    ]
    holds = all(least <= constant * (1 + BOUND_SLACK) for least, constant in pairs)
    return Definition1(lambdas, np.array(etas), measured, stated, holds)


def _bound_to(filter: Filter, kappa2: float) -> Filter:
    """Return the filter for eigenvalues in [0, κ²]."""
    bound = filter.bounded_by(kappa2)
    if not isinstance(bound, Filter):
        raise MuhatTypeError("theory", "a filter s_λ(γ) is needed", repr(bound))
    return bound


def _lambdas(who: str, filter: Filter, grid: Array, kappa2: float) -> Array:
    """Return the λ that parameters act as, none beyond κ², where Definition 1 ends."""
    lambdas = np.array([filter.as_lambda(parameter) for parameter in grid.tolist()])
    if lambdas.max() > kappa2 * (1 + BOUND_SLACK):
        needed = f"the parameter must act as a λ of at most κ² = {kappa2:.6g}"
        raise MuhatError(who, needed, f"λ = {lambdas.max():.6g}")
    return lambdas


def _exponents(filter: Filter, exponents: Sequence[float] | None) -> list[float]:
    """Return the exponents to check (C3) at, none beyond the qualification."""
    limit = filter.qualification
    if exponents is None and np.isfinite(limit):
        return [limit * share for share in (0.25, 0.5, 0.75, 1.0)]
    if exponents is None:
        return list(EXPONENTS)
    etas = [positive("check_definition_1", "exponents", eta) for eta in exponents]
    if not etas or max(etas) > limit:
        needed = f"exponents must not be empty, and at most the filter's qualification {limit:g}"
        raise MuhatError("check_definition_1", needed, etas)
    return etas


def _slope(lambdas: Array, residuals: Array) -> float:
    """Return the slope of log max|r_λ| in log λ at the two smallest λ that show a rest."""
    order = np.argsort(lambdas)
    lambdas, left = lambdas[order], residuals[order].max(axis=1)
    seen = np.flatnonzero((left > 0) & (left < 0.5))[:2]
    if len(seen) < 2:
        if left[0] > 0:
            return float("nan")
        return float("inf")
    return float(np.diff(np.log(left[seen]))[0] / np.diff(np.log(lambdas[seen]))[0])


@dataclass(frozen=True)
class Theorem3:
    """The bound of Theorem 3 on ‖μ_λ − μ_P‖, which holds with probability 1 − 3e^(−δ).

    Attributes
    ----------
    noise : float
        B (2κ + κ√(2δ))/√n, for μ̂ − μ_P.
    bias : float
        D λ^min(β, η0) ‖C^(−β)μ_P‖, for what the filter takes away.
    operator : float
        C τ (2√2 κ²√δ)^min(1, β)/n^min(1/2, β/2) ‖C^(−β)μ_P‖, for Ĉ − C.
    probability : float
        1 − 3e^(−δ), zero where that is negative.
    """

    noise: float
    bias: float
    operator: float
    probability: float

    @property
    def total(self) -> float:
        """The bound, the sum of its three terms."""
        return self.noise + self.bias + self.operator


def theorem_3(
    filter: Filter,
    parameter: float,
    n: int,
    beta: float,
    source_norm: float,
    kappa2: float = 1.0,
    delta: float = 5.0,
    tau: float | None = None,
) -> Theorem3:
    """Return the error bound of Theorem 3, for μ_P = C^β h.

    Parameters
    ----------
    filter, parameter : Filter and float
        A filter that states its constants B, C, D and η0, and its λ, or its number of iterations t,
        which acts as a λ.
    n : int
        The sample size.
    beta, source_norm : float
        The smoothness β > 0 with μ_P in the range of C^β, and ‖h‖ = ‖C^(−β)μ_P‖.
    kappa2 : float, default=1.0
        κ² = sup k(x, x).
    delta : float, default=5.0
        δ > 0: the bound holds with probability 1 − 3e^(−δ).
    tau : float, default=None
        τ with ‖C^β − Ĉ^β‖ ≤ τ ‖C − Ĉ‖^min(1, β); by default 1 for β ≤ 1 (t^β is operator monotone)
        and the Lipschitz constant βκ^(2(β−1)) of t^β beyond, which is not as universal as the paper
        has it.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> bound = theorem_3(Tikhonov(), 0.01, n=10_000, beta=1.0, source_norm=1.0)
    >>> round(bound.noise, 4), round(bound.bias, 4), round(bound.operator, 4)
    (0.0516, 0.01, 0.0632)
    """
    who = "theorem_3"
    size, beta, kappa2 = (
        positive(who, "n", n),
        positive(who, "beta", beta),
        positive(who, "kappa2", kappa2),
    )
    delta, h = positive(who, "delta", delta), positive(who, "source_norm", source_norm)
    lipschitz = 1.0
    if beta > 1:
        lipschitz = beta * kappa2 ** (beta - 1)
    if tau is None:
        tau = lipschitz
    tau = positive(who, "tau", tau)
    filter = _bound_to(filter, kappa2)
    lam = float(_lambdas(who, filter, filter.check(np.array([parameter])), kappa2)[0])
    eta = min(beta, filter.qualification)
    stated = stated_constants(filter, [eta], kappa2)
    B, C, D, kappa = stated.B, stated.C, float(stated.D[0]), kappa2**0.5
    if np.isnan([B, C, D, eta]).any():
        needed = "a filter that states its constants B, C, D and its qualification is needed"
        advice = "check_definition_1 measures them"
        raise MuhatError(
            who, needed, f"{filter!r} with B = {B}, C = {C}, D = {D} at η = {eta}", advice
        )
    return Theorem3(
        noise=B * (2 * kappa + kappa * (2 * delta) ** 0.5) / size**0.5,
        bias=D * lam**eta * h,
        operator=C
        * tau
        * (2 * 2**0.5 * kappa2 * delta**0.5) ** min(1, beta)
        / size ** min(1 / 2, beta / 2)
        * h,
        probability=max(0.0, 1 - 3 * float(np.exp(-delta))),
    )


@dataclass(frozen=True)
class Rates:
    """What Theorem 3 says for growing n: ‖μ_λ − μ_P‖ = O(n^(−of_error)) if λ = o(n^(−of_lambda)).

    Attributes
    ----------
    of_error, of_lambda : float
        min(1/2, β/2) and min(1/2, β/2)/min(β, η0).
    """

    of_error: float
    of_lambda: float


def rates(filter: Filter, beta: float) -> Rates:
    """Return the exponents of Theorem 3 for smoothness β > 0 and qualification η0.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> rates(Tikhonov(), beta=2.0)
    Rates(of_error=0.5, of_lambda=0.5)
    """
    beta = positive("rates", "beta", beta)
    if np.isnan(filter.qualification):
        needed, advice = (
            "a filter that states its qualification is needed",
            "check_definition_1 measures its constants",
        )
        raise MuhatError("rates", needed, repr(filter), advice)
    of_error = min(1 / 2, beta / 2)
    return Rates(of_error, of_error / min(beta, filter.qualification))


class SmoothOperator:
    """F̂ = Ĉ g_λ(Ĉ) = s_λ(Ĉ): the operator that maps μ̂ to the Spectral-KMSE (Proposition 2).

    With Tikhonov's filter it is the regression of k(x, ·) on itself, the minimiser of equation 8.
    What the sample does not span is multiplied by s_λ(0), which is zero but for filters that treat
    all components alike.

    Parameters
    ----------
    kernel : str, Kernel or callable
        k, which learns from the sample what is not a number yet.
    X : array of shape (n, d)
        The sample.
    filter, parameter : Filter and float
        s_λ, and its λ or its number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.filters import Tikhonov
    >>> from muhat.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0]])
    >>> F = SmoothOperator(Gaussian(1.0), X, Tikhonov(), 0.1)
    >>> F(Embedding(Gaussian(1.0), X, np.array([0.5, 0.5]))).weights.round(4)
    array([0.4446, 0.4446])
    """

    points: Array
    spectrum: Spectrum
    inverse: Array
    at_zero: float

    def __init__(self, kernel: Any, X: Array, filter: Filter, parameter: float) -> None:
        self.points = frozen(as_points(X))
        self.kernel: Kernel = as_kernel(kernel).resolve(self.points)
        problem = DenseProblem(DenseGram.from_sample(self.kernel, self.points))
        filter, self.spectrum = (
            _bound_to(filter, problem.kappa2(self.kernel.bound)),
            problem.spectrum,
        )
        grid = filter.check(np.array([parameter]))
        self.inverse, self.at_zero = (
            filter.inverse(self.spectrum.gamma, grid.item()),
            float(filter.at_zero(grid)[0]),
        )

    def __call__(self, f: Embedding) -> Embedding:
        """Return F̂f = s_λ(0) f + Σ_i g_λ(γ_i) γ_i ⟨f, v_i⟩ v_i, of any element f of the RKHS."""
        q = self.spectrum.root_masses
        weights = q * self.spectrum.apply(self.inverse, (q * f(self.points))[:, None])[:, 0]
        spanned = Embedding(self.kernel, self.points, weights)
        if not self.at_zero:
            return spanned
        return spanned + self.at_zero * f
