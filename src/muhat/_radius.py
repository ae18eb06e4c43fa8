"""How far an estimate may be from the true kernel mean: a radius r with P(‖μ̂ − μ‖ ≤ r) ≥ 1 − δ.

With v = E k(X, X) − ‖μ‖², κ² the bound of k(x, x) and D ≥ ‖k(x, ·) − k(y, ·)‖, which is √2 κ for a
kernel that is never negative and 2κ for any other:

- McDiarmid: ‖μ̂ − μ‖ changes by at most D/n with a row, and its mean is at most √(v/n):
  r = √(v/n) + D √(log(1/δ)/2n).
- Bernstein in a Hilbert space (Pinelis 1994; Wolfer and Alquier 2025, Theorem 2.1):
  r = √(2vL/n) + (4/3) κL/n with L = log(2/δ).
- Empirical Bernstein (Wolfer and Alquier 2025, Theorem 3.1). v̂, the mean over pairs of
  ‖k(x_i, ·) − k(x_j, ·)‖²/2, is self-bounding: √v ≤ √v̂ + 2D √(log(2/δ)/n) with probability
  1 − δ/2 (Maurer 2006). With Bernstein's radius at the other δ/2, and L = log(4/δ),
  r = √(2v̂L/n) + (2√2 D + (4/3) κ) L/n. For a nonnegative kernel the last term is their 16/3 κL/n.
- Asymptotic: n‖μ̂ − μ‖² tends to Σ γ_k Z_k², γ_k the eigenvalues of the centred covariance
  operator.

The first two take v ≤ κ² where it is not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, slices
from muhat._messages import unknown_name
from muhat._tolerances import PROBABILITY_TOL
from muhat._validation import positive
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.kernels import Kernel

METHODS = ("empirical-bernstein", "bernstein", "mcdiarmid", "asymptotic")

N_SPECTRUM_ROWS = 200
"""Rows from which the shape of the limit law is estimated; its mean comes from all rows."""

DROPPED_SHARE = 1e-4
"""Total share of the eigenvalues left out of the limit law, whose part is nearly constant."""

MAX_QUADRATIC_FORM = 40.0
"""Σ γ_k Z_k² with Σ γ_k = 1 exceeds this with a probability below 1e-9."""

MAX_NODES = 2**18
"""Maximum number of nodes of its integral."""


@dataclass(frozen=True, eq=False)
class SampleMean:
    """The plain average μ̂ of a sample, and what its distance to μ is estimated from."""

    element: Element
    n: int
    error: float
    """How far μ̂ itself is off, where features stand in for the kernel."""
    are_equal: bool
    """Whether all rows weigh the same."""
    own: float | None = None
    """Σ p_i k(x_i, x_i), where the rows are not in memory."""
    gamma: Array | None = None
    mean: Array | None = None
    """Eigenvalues of the features' covariance and μ̂ in their basis, without rows in memory."""

    @cached_property
    def spread(self) -> float:
        """Σ p_i k(x_i, x_i) − ‖μ̂‖²."""
        own = self.own
        if own is None:
            assert isinstance(self.element, Embedding)
            own = float(self.element.weights @ self.element.kernel.diagonal(self.element.points))
        return max(own - self.element.squared_norm(), 0.0)

    @property
    def variance(self) -> float:
        """v̂ = (mean of k(x_i, x_i)) − (mean of k(x_i, x_j), i ≠ j): unbiased for v."""
        return self.spread * self.n / (self.n - 1)

    @property
    def eigenvalues(self) -> Array:
        """Those of the limit law, ascending, with sum v̂ but for the small ones, left out."""
        if self.gamma is not None and self.mean is not None:
            gamma = np.linalg.eigvalsh(np.diag(self.gamma) - np.outer(self.mean, self.mean))
            total = self.spread
        else:
            assert isinstance(self.element, Embedding)
            X = self.element.points[self.element.weights > 0]
            rows = np.random.default_rng(0).permutation(len(X))[:N_SPECTRUM_ROWS]
            K = self.element.kernel(X[rows])
            K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
            gamma, total = np.linalg.eigvalsh(K), float(np.trace(K))
        if not total > 0:
            return np.zeros(0)
        gamma = np.maximum(gamma, 0) * (self.variance / total)
        return gamma[np.cumsum(gamma) > DROPPED_SHARE * self.variance]


def radius_of(
    mean: SampleMean, estimate: Element, confidence: Any, method: Any, variance: Any
) -> float:
    """Return r with ‖estimate − μ‖ ≤ r at that confidence: that of μ̂ and ‖estimate − μ̂‖."""
    who = "KernelMean.radius"
    if not isinstance(method, str) or method not in METHODS:
        raise MuhatError(unknown_name(f"{who} method", str(method), METHODS))
    share = positive(who, "confidence", confidence)
    if share >= 1:
        raise MuhatError(who, "confidence must be between 0 and 1", repr(confidence))
    if variance is not None and method not in ("bernstein", "mcdiarmid"):
        needed = "variance can be given only with 'bernstein' and 'mcdiarmid'"
        raise MuhatError(who, needed, f"method={method!r}", "leave it out")
    if mean.n < 2 or not mean.are_equal:
        got = "different weights"
        if mean.n < 2:
            got = f"{mean.n} row"
        raise MuhatError(who, "at least 2 rows, all of the same weight, are needed", got)
    if mean.gamma is not None and not isinstance(mean.element, Embedding):
        needed = "features whose error in the norm of the RKHS is known are needed"
        raise MuhatError(who, needed, "random features", "use gram='nystrom' or 'dense'")
    delta, kernel = 1 - share, mean.element.kernel
    if method == "asymptotic":
        r = sqrt(weighted_chi_square_quantile(mean.eigenvalues, mean.variance, share) / mean.n)
    else:
        if not np.isfinite(kernel.bound):
            advice = "use method='asymptotic'"
            raise MuhatError(
                who, f"{method!r} needs a kernel with a bound on k(x, x)", repr(kernel), advice
            )
        if variance is None:
            variance = kernel.bound
        v = positive(who, "variance", variance)
        r = _bound(method, mean, delta, sqrt(kernel.bound), _diameter(kernel), v)
    moved = 0.0
    if estimate is not mean.element:
        moved = (estimate - mean.element).norm()
    return min(r + moved + mean.error, _largest_distance(estimate))


def _largest_distance(estimate: Element) -> float:
    """Return how far any kernel mean can be from an estimate; infinite without a bound of k.

    ‖μ‖ ≤ κ for every distribution. Where the kernel is never negative, ⟨k(x, ·), μ⟩ is between 0
    and κ², so that ‖e − μ‖² ≤ ‖e‖² + κ² + 2κ² Σ max(−β_i, 0) for an estimate e with the weights β:
    at most 2κ² for the plain average.
    """
    bound = estimate.kernel.bound
    if not np.isfinite(bound):
        return np.inf
    squared = max(float(estimate.squared_norm()), 0.0)
    largest = sqrt(squared) + sqrt(bound)
    if isinstance(estimate, Embedding) and estimate.kernel.nonnegative:
        below_zero = float(np.maximum(-estimate.weights.astype(np.float64), 0).sum())
        largest = min(largest, sqrt(squared + bound * (1 + 2 * below_zero)))
    return largest


def _bound(method: str, mean: SampleMean, delta: float, kappa: float, D: float, v: float) -> float:
    n = mean.n
    if method == "mcdiarmid":
        return sqrt(v / n) + D * sqrt(log(1 / delta) / (2 * n))
    if method == "bernstein":
        L = log(2 / delta)
        return sqrt(2 * v * L / n) + 4 / 3 * kappa * L / n
    L = log(4 / delta)
    return sqrt(2 * mean.variance * L / n) + (2 * sqrt(2) * D + 4 / 3 * kappa) * L / n


def _diameter(kernel: Kernel) -> float:
    """Return D ≥ ‖k(x, ·) − k(y, ·)‖ for all x and y."""
    factor = 4
    if kernel.nonnegative:
        factor = 2
    return sqrt(factor * kernel.bound)


def weighted_chi_square_quantile(gamma: Array, mean: float, level: float) -> float:
    """Return the quantile of Σ γ_k Z_k² + (mean − Σ γ_k), Z_k independent standard normal.

    The distribution function is Imhof's integral by the trapezoidal rule (Davies 1973), whose error
    is what the law has beyond ``MAX_QUADRATIC_FORM`` times its mean.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import chi2
    >>> bool(abs(weighted_chi_square_quantile(np.ones(5), 5.0, 0.95) - chi2(5).ppf(0.95)) < 1e-4)
    True
    """
    total = float(gamma.sum())
    if not total:
        return mean
    share = gamma[::-1] / total
    # 2π/step is twice the largest value, and the quantile is below half of it
    step = np.pi / MAX_QUADRATIC_FORM
    count = 64
    while count < MAX_NODES and _modulus(share, step * count) / count > PROBABILITY_TOL:
        count *= 2
    u = step * (np.arange(count) + 0.5)
    size, phase = np.ones(count), np.zeros(count)
    for some in slices(0, len(share), 64):
        product = 2 * share[some, None] * u
        size *= np.exp(-np.log1p(product**2).sum(axis=0) / 4)
        phase += np.arctan(product).sum(axis=0)
    size /= np.pi * (np.arange(count) + 0.5)

    def excess(x: float) -> float:
        return 0.5 - float(size @ np.sin(phase / 2 - u * x)) - level

    if level > 1 - PROBABILITY_TOL or excess(MAX_QUADRATIC_FORM) <= 0:
        needed = (
            f"the limiting distribution is known only up to a confidence of 1 − {PROBABILITY_TOL:g}"
        )
        raise MuhatError("KernelMean.radius", needed, repr(level), "use a lower confidence")
    place = 0.0
    if excess(0) < 0:
        place = float(brentq(excess, 0, MAX_QUADRATIC_FORM, xtol=1e-10))
    return max(mean - total, 0.0) + total * place


def _modulus(share: Array, u: float) -> float:
    """Return |E exp(iuQ)|, Q = Σ γ_k Z_k²."""
    return float(np.exp(-np.log1p((2 * share * u) ** 2).sum() / 4))


class HasRadius:
    """An estimate of a kernel mean that says how far it may be from the true one."""

    embedding_: Any
    n_samples_seen_: int
    approximation_error_: float
    _mean: Element
    _spread: Any

    def radius(
        self,
        confidence: float = 0.95,
        method: str = "empirical-bernstein",
        variance: float | None = None,
    ) -> float:
        """Return a radius around the estimate that contains the true mean μ, in the RKHS norm.

        It is the radius of μ̂, with ‖μ̂ − μ_λ‖ added for a shrunk estimate and
        ``approximation_error_`` for one on landmarks; never more than the largest distance that the
        kernel allows, √2 κ for the plain average and a kernel that is never negative. The bounds
        hold for every n and P if the kernel was given; a learnt bandwidth is not part of them.

        Parameters
        ----------
        confidence : float, default=0.95
            The probability that μ is no further away.
        method : {'empirical-bernstein', 'bernstein', 'mcdiarmid', 'asymptotic'},
        default='empirical-bernstein'
            Bounds for kernels that have one, by the variance that the rows show or by the largest
            there can be; or the limit law of n‖μ̂ − μ‖², which is shorter and right for some
            hundred rows.
        variance : float, default=None
            E k(X, X) − ‖μ‖², where it is known, for 'bernstein' and 'mcdiarmid'; without it, the
            bound of k(x, x).
        """
        check_is_fitted(self, "embedding_")
        mean = SampleMean(
            self._mean, self.n_samples_seen_, self.approximation_error_, *self._spread
        )
        return radius_of(mean, self.embedding_, confidence, method, variance)
