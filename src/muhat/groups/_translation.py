"""Limited translation: no group's estimate is further from its plain mean than its noise allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, quotient


@dataclass(frozen=True, eq=False)
class LimitedMeans:
    """The joint means of T groups after limited translation.

    Attributes
    ----------
    means : array of shape (T, r)
        The estimated means as vectors.
    factors : array of shape (T,)
        How much of the way from its plain mean each group goes.
    own_weights : array of shape (T,)
        W_tt, the weight of each group's own plain mean in its estimate.
    squared_steps : array of shape (T,)
        ‖μ_t − μ̂_t‖², how far each estimate is from the plain mean.
    """

    means: Array
    factors: Array
    own_weights: Array
    squared_steps: Array


def allowance(effective_dimension: float) -> float:
    """Return κ = 1 + 2√(2/r): a plain mean is off by no more than √(κ D_t), but for rare chance."""
    return 1 + 2 * np.sqrt(2 / effective_dimension)


def limiting_factors(squared_lengths: Array, noise: Array, kappa: float) -> Array:
    """Return min(1, √(κ D_t/q_t)), how much of the way from the plain mean each group goes.

    Then ‖μ_t − μ*‖ ≤ ‖μ̂_t − μ*‖ + √(κ D_t) for every group t, whatever the others are.

    Parameters
    ----------
    squared_lengths : array of shape (T,)
        q_t = ‖(W − I)μ̂‖²_t.
    noise : array of shape (T,)
        D_t.
    kappa : float
        κ.
    """
    ratios = quotient(kappa * noise, np.maximum(squared_lengths, 0))
    return np.where(squared_lengths > 0, np.minimum(np.sqrt(ratios), 1), 1.0)
