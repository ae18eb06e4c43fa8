"""Theorem 3 and the operator it is proved with: how fast a filtered mean tends to the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._parts import as_kernel
from muhat._validation import above, as_points
from muhat.embedding import Embedding
from muhat.filters import Filter
from muhat.gram import DenseGram, DenseProblem, Spectrum
from muhat.kernels import Kernel
from muhat.theory._definition import bound_to, lambdas_of


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
    filter : Filter
        A filter that states its constants B, C, D and η0.
    parameter : float
        Its parameter: λ, or the number of iterations t, which acts as a λ.
    n : int
        The sample size.
    beta : float
        The smoothness β > 0 with μ_P in the range of C^β.
    source_norm : float
        ‖h‖ = ‖C^(−β)μ_P‖.
    kappa2 : float, default=1.0
        κ² = sup k(x, x).
    delta : float, default=5.0
        δ > 0: the bound holds with probability 1 − 3e^(−δ).
    tau : float, default=None
        τ with ‖C^β − Ĉ^β‖ ≤ τ ‖C − Ĉ‖^min(1, β); by default 1 for β ≤ 1 (t^β is operator monotone) and the Lipschitz
        constant βκ^(2(β−1)) of t^β beyond, which is not as universal as the paper has it.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> bound = theorem_3(Tikhonov(), 0.01, n=10_000, beta=1.0, source_norm=1.0)
    >>> round(bound.noise, 4), round(bound.bias, 4), round(bound.operator, 4)
    (0.0516, 0.01, 0.0632)
    """
    who = "theorem_3"
    size, beta, kappa2 = above(who, "n", n, 0), above(who, "beta", beta, 0), above(who, "kappa2", kappa2, 0)
    delta, h = above(who, "delta", delta, 0), above(who, "source_norm", source_norm, 0)
    lipschitz = 1.0 if beta <= 1 else beta * kappa2 ** (beta - 1)
    tau = lipschitz if tau is None else above(who, "tau", tau, 0)
    filter = bound_to(filter, kappa2)
    lam = float(lambdas_of(who, filter, filter.check(np.array([parameter])), kappa2)[0])
    eta = min(beta, filter.qualification)
    B, C, D, kappa = filter.B, filter.C, filter.D(eta, kappa2), kappa2**0.5
    if np.isnan([B, C, D, eta]).any():
        needed = "a filter that states its constants B, C, D and its qualification is needed"
        advice = "check_definition_1 measures them"
        raise ValueError(refusal(who, needed, f"{filter!r} with B = {B}, C = {C}, D = {D} at η = {eta}", advice))
    return Theorem3(
        noise=B * (2 * kappa + kappa * (2 * delta) ** 0.5) / size**0.5,
        bias=D * lam**eta * h,
        operator=C * tau * (2 * 2**0.5 * kappa2 * delta**0.5) ** min(1, beta) / size ** min(1 / 2, beta / 2) * h,
        probability=max(0.0, 1 - 3 * float(np.exp(-delta))),
    )


@dataclass(frozen=True)
class Rates:
    """What Theorem 3 says for growing n: ‖μ_λ − μ_P‖ = O(n^(−of_error)) if λ = o(n^(−of_lambda)).

    Attributes
    ----------
    of_error : float
        min(1/2, β/2).
    of_lambda : float
        min(1/2, β/2)/min(β, η0).
    """

    of_error: float
    of_lambda: float


def rates(filter: Filter, beta: float) -> Rates:
    """Return the exponents of Theorem 3 for a smoothness β > 0 and the qualification η0 of the filter.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> rates(Tikhonov(), beta=2.0)
    Rates(of_error=0.5, of_lambda=0.5)
    """
    beta = above("rates", "beta", beta, 0)
    if np.isnan(filter.qualification):
        needed, advice = "a filter that states its qualification is needed", "check_definition_1 measures its constants"
        raise ValueError(refusal("rates", needed, repr(filter), advice))
    of_error = min(1 / 2, beta / 2)
    return Rates(of_error, of_error / min(beta, filter.qualification))


@dataclass(frozen=True, eq=False)
class SmoothOperator:
    """F̂ = Ĉ g_λ(Ĉ) = s_λ(Ĉ): the operator on the RKHS that maps μ̂ to the Spectral-KMSE (Proposition 2).

    With Tikhonov's filter it is the regression of k(x, ·) on itself, the minimiser of equation 8. What the sample does
    not span is multiplied by s_λ(0), which is zero but for filters that treat all components alike.

    Attributes
    ----------
    kernel : Kernel
        k, with every parameter a number.
    points : array of shape (n, d)
        The sample.
    spectrum : Spectrum
        The eigenpairs of K/n.
    inverse : array of shape (n,)
        g_λ of each eigenvalue.
    at_zero : float
        s_λ(0).

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.filters import Tikhonov
    >>> from muhat.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0]])
    >>> F = SmoothOperator.from_sample(Gaussian(1.0), X, Tikhonov(), 0.1)
    >>> F(Embedding(Gaussian(1.0), X, np.array([0.5, 0.5]))).weights.round(4)
    array([0.4446, 0.4446])
    """

    kernel: Kernel
    points: Array
    spectrum: Spectrum
    inverse: Array
    at_zero: float

    @classmethod
    def from_sample(cls, kernel: Any, X: Array, filter: Filter, parameter: float) -> SmoothOperator:
        """Return the operator of a sample under a kernel, for a filter and its parameter."""
        X = as_points(X)
        kernel = as_kernel(kernel).resolve(X)
        problem = DenseProblem(DenseGram.from_sample(kernel, X))
        filter, spectrum = bound_to(filter, problem.kappa2(kernel.bound)), problem.spectrum
        grid = filter.check(np.array([parameter]))
        return cls(kernel, X, spectrum, filter.inverse(spectrum.gamma, grid.item()), float(filter.at_zero(grid)[0]))

    def __call__(self, f: Embedding) -> Embedding:
        """Return F̂f = s_λ(0) f + Σ_i g_λ(γ_i) γ_i ⟨f, v_i⟩ v_i, of any element f of the RKHS."""
        q = self.spectrum.root_masses
        weights = q * self.spectrum.apply(self.inverse, (q * f(self.points))[:, None])[:, 0]
        spanned = Embedding(self.kernel, self.points, weights)
        return spanned + self.at_zero * f if self.at_zero else spanned
