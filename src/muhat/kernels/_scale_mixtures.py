"""The bandwidths of kernels that are scale mixtures of Gaussians.

Such a kernel is E exp(−‖x − y‖²/2σ²g^(2p)) with g ~ Gamma(a, a).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from muhat._arrays import Array

NODE_SPACING = 0.3
"""Distance of the trapezoidal rule's nodes in log g, in units of the density's width 1/√(1 + a)."""

MAX_LOG_G = 700.0
"""The largest |log g|, beyond which g is outside of the range of floats."""

TAIL_CUTOFF = 30.0
"""The tails are cut off at exp(−30) times the largest density."""


@dataclass(frozen=True)
class BandwidthLaw:
    """The law of the bandwidths σ g^p of a scale mixture; g ~ Gamma(a, a) has mean one."""

    sigma: float
    a: float
    """Infinite for a single Gaussian."""
    power: float

    def draw_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Return draws of ω ~ N(0, I)/(σ g^p), whose characteristic function is the kernel."""
        normal = rng.standard_normal(shape)
        if self.a == np.inf:
            return normal / self.sigma
        # For tiny a, g may be zero; beyond 1/ε the phase of a wave is rounding anyway.
        g = np.maximum(rng.gamma(self.a, 1 / self.a, (shape[0], 1)), np.finfo(np.float64).eps ** 2)
        return normal / g**self.power / self.sigma

    def nodes(self) -> tuple[Array, Array]:
        """Return factors and bandwidths of Gaussian kernels whose sum is the kernel, to 1e-10."""
        if self.a == np.inf:
            return np.ones(1), np.array([self.sigma])
        factors, g = _gamma_nodes(self.a)
        return factors, self.sigma * g**self.power


@lru_cache(maxsize=32)
def _gamma_nodes(a: float) -> tuple[Array, Array]:
    """Return weights and nodes for Gamma(a, a), by the trapezoidal rule in u = log g."""

    def excess(u: float) -> float:
        # the log density of u is a(u − e^u), largest at 0
        return a * (np.exp(u) - u - 1) - TAIL_CUTOFF

    least = -TAIL_CUTOFF / a - 2
    low = -MAX_LOG_G
    if least > low:
        low = brentq(excess, least, 0.0)
    high = brentq(excess, 0.0, np.log(TAIL_CUTOFF / a + 2) + 2)
    step = NODE_SPACING / np.sqrt(1 + a)
    u = np.arange(low, high + step, step)
    density = np.exp(a * (u - np.exp(u) + 1))
    return density / density.sum(), np.exp(u)
