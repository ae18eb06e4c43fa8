"""Eigenvalues of Gram matrices and covariances, and the one rule for which of them are rounding.

Every eigenvalue of a symmetric m × m matrix comes with an error of about m ε γ_max, ε being the
rounding unit of the type that it was computed in. What is not larger than that is a rounding error
of zero, and no filter may tell such eigenvalues apart.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Array, rounding

TINY_SHARE = 1e-30
"""The share of γ_max that eigenvalues are raised to where a filter divides by them.

Far below rounding, so that no eigenvalue that means anything changes, and far above underflow.
"""


def rounding_floor(gamma: Array, size: int, unit: float = 0.0) -> Array:
    """Return the largest eigenvalue that is rounding: max(size · ε, unit) · γ_max, of shape (..., 1).

    Parameters
    ----------
    gamma : array of shape (..., components)
        Eigenvalues in ascending order.
    size : int
        The number of rows of the matrix that was decomposed.
    unit : float, default=0.0
        The relative error of the matrix itself, where that was computed in a coarser type.
    """
    return max(size * rounding(gamma), unit) * np.maximum(gamma[..., -1:], 0)


def without_rounding(gamma: Array, size: int, unit: float = 0.0) -> Array:
    """Return the eigenvalues, with zero in place of those that are rounding."""
    return np.where(gamma <= rounding_floor(gamma, size, unit), 0, gamma)


def raised_above_zero(gamma: Array) -> Array:
    """Return the eigenvalues, none below ``TINY_SHARE`` of the largest.

    For regression, which keeps what is rounded: g_λ is smooth at zero, and new points have more of
    small components than the sample has.
    """
    return np.maximum(gamma, gamma[..., -1:] * TINY_SHARE)


def significant_eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, ascending, and eigenvectors in columns, without those that are rounding.

    The largest is always kept, so that there is one component at least: it is zero if the matrix is.
    """
    gamma, V = np.linalg.eigh(matrix)
    kept = gamma > rounding_floor(gamma, len(gamma))
    kept[-1] = True
    return np.maximum(gamma[kept], 0), V[:, kept]
