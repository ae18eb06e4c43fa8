"""Kernels that are Gaussian ones averaged over bandwidths: E exp(−‖x − y‖²/2σ²g^(2p)), g ~ Gamma(a, a)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from muhat._arrays import Array
from muhat._validation import positive
from muhat.kernels._own import Gaussian, InverseMultiquadric, Matern, RationalQuadratic

AVERAGES = (Gaussian, Matern, RationalQuadratic, InverseMultiquadric)
"""Kernels that are scale mixtures of Gaussians."""

STEP = 0.3
"""Between the nodes of the trapezoidal rule in log g, in units of the width 1/√(1 + a) of its density."""

FARTHEST = 700.0
"""The largest |log g|, beyond which g is no float."""

TAIL = 30.0
"""The logarithm of the share of the largest density at which its tails are cut off."""


@dataclass(frozen=True)
class BandwidthLaw:
    """The bandwidths σ g^p of the Gaussian kernels that a kernel is the average of, g ~ Gamma(a, a) with mean one."""

    sigma: float
    a: float
    """Infinite where there is one Gaussian alone."""
    power: float

    def drawn_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Return frequencies ω ~ N(0, I)/(σ g^p), whose characteristic function the kernel is."""
        normal = rng.standard_normal(shape)
        if self.a == np.inf:
            return normal / self.sigma
        # For tiny a, g may be zero; beyond 1/ε the phase of a wave is lost to rounding anyway.
        g = np.maximum(rng.gamma(self.a, 1 / self.a, (shape[0], 1)), np.finfo(np.float64).eps ** 2)
        return normal / g**self.power / self.sigma

    def nodes(self) -> tuple[Array, Array]:
        """Return factors and bandwidths of Gaussian kernels whose sum is the average, to 1e-10."""
        if self.a == np.inf:
            return np.ones(1), np.array([self.sigma])
        factors, g = _gamma_nodes(self.a)
        return factors, self.sigma * g**self.power


def bandwidth_law(kernel: Any) -> BandwidthLaw:
    """Return the law of a kernel's bandwidths; the inverse multiquadric is a rational quadratic with α = ½."""
    sigma = positive(
        kernel, "bandwidth", kernel.bandwidth, ", a number that resolve(X) can learn from a sample"
    )
    if isinstance(kernel, Matern):
        return BandwidthLaw(sigma, kernel._order, 0.5)
    if isinstance(kernel, RationalQuadratic):
        return BandwidthLaw(sigma, positive(kernel, "alpha", kernel.alpha), -0.5)
    return BandwidthLaw(sigma, np.inf if isinstance(kernel, Gaussian) else 0.5, -0.5)


@lru_cache(maxsize=32)
def _gamma_nodes(a: float) -> tuple[Array, Array]:
    """Return weights and nodes of the law Gamma(a, a), whose mean is one, by the trapezoidal rule in u = log g."""

    def excess(u: float) -> float:  # the log density of u is a(u − e^u), largest at 0
        return a * (np.exp(u) - u - 1) - TAIL

    least = -TAIL / a - 2
    low = brentq(excess, least, 0.0) if least > -FARTHEST else -FARTHEST
    high = brentq(excess, 0.0, np.log(TAIL / a + 2) + 2)
    step = STEP / np.sqrt(1 + a)
    u = np.arange(low, high + step, step)
    density = np.exp(a * (u - np.exp(u) + 1))
    return density / density.sum(), np.exp(u)
