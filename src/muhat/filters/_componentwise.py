"""The rule of Theorem 2 with estimates plugged in: every component shrinks by what its own noise calls for."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from muhat._arrays import Array
from muhat.filters._base import Shrinker
from muhat.gram import Components

ALONE = 1e-9
"""Effective sizes closer to one than this are a single point, which tells nothing of its noise."""

SAME = 1e-8
"""Eigenvalues closer than this share of the largest belong to one eigenspace."""


@dataclass
class Componentwise(Shrinker):
    """s_i = 1 − α_i with α_i = Δ_i/(Δ_i + (f*_i − μ_i)²), the best shrinkage of component i (Theorem 2).

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
        mean = np.divide(along**2, squared_gap, out=np.zeros_like(gap), where=squared_gap > 0)
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
