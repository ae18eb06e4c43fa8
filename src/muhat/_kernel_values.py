"""Validation of kernel values: finite, symmetric, positive semi-definite, of a scale to square."""

from typing import Any

import numpy as np

from muhat._arrays import Array, rounding
from muhat.errors import MuhatError

__all__ = [
    "check_finite",
    "check_scale",
    "check_semidefinite",
    "check_symmetric",
    "check_values",
    "checked_gram",
]


def checked_gram(who: str, K: Array) -> Array:
    """Return a precomputed Gram matrix, exactly symmetric; raise MuhatError for other matrices."""
    if K.shape[0] != K.shape[1]:
        raise MuhatError(who, "a precomputed kernel must be a square matrix", f"shape {K.shape}")
    check_symmetric(who, "a precomputed kernel must be symmetric", K)
    return (K + K.T) / 2


def check_values(K: Array, kernel: Any) -> None:
    """Raise MuhatError unless a kernel's values on a sample are finite and symmetric.

    Symmetry is looked at only if the kernel is not known to be positive semi-definite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(K.sum(), kernel)
    if not kernel.positive_semidefinite:
        check_symmetric(type(kernel).__name__, "k(x, y) = k(y, x) is needed", K)


def check_finite(total: float, kernel: Any) -> None:
    """Raise MuhatError for a kernel whose values have a sum that is not finite."""
    if not np.isfinite(total):
        needed = "values k(x, y) must be finite"
        advice = "rescale X or choose another kernel"
        raise MuhatError(type(kernel).__name__, needed, "NaN or infinite ones", advice)


def check_scale(who: str, largest: float, dtype: Any, X: Array) -> None:
    """Raise MuhatError if squares of kernel values overflow or underflow.

    ``largest`` is the largest k(x, x) of the rows X.
    """
    least = float(np.finfo(dtype).tiny) ** 0.5
    most = float(np.finfo(dtype).max) ** 0.5
    vanished = largest == 0 and 0 < float(np.abs(X).max()) < least
    if vanished or 0 < largest < least or largest > most:
        needed = f"the largest k(x, x) must be between {least:.2g} and {most:.2g}"
        raise MuhatError(who, needed, f"{largest:.3g}", "rescale X")


def check_semidefinite(gamma: Array, who: str = "kernel", what: str = "the Gram matrix") -> None:
    """Raise MuhatError for an eigenvalue below zero by more than rounding.

    ``gamma`` has the eigenvalues in ascending order, of shape (..., components).
    """
    allowed = rounding(gamma) ** 0.5 * np.abs(gamma[..., -1])
    if np.any(gamma[..., 0] < -allowed):
        share = float((gamma[..., 0] / np.abs(gamma[..., -1])).min())
        needed = f"{what} must be positive semi-definite"
        got = f"an eigenvalue of {share:.2g} times the largest"
        raise MuhatError(who, needed, got, "use one that is, or clip its spectrum")


def check_symmetric(who: str, needed: str, K: Array, name: str = "K") -> None:
    """Raise MuhatError if a matrix is not symmetric up to rounding, and say where."""
    gap = np.abs(K - K.T)
    if gap.max() > rounding(K) ** 0.5 * np.abs(K).max():
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        got = f"{name}[{i}, {j}] = {K[i, j]:.6g} and {name}[{j}, {i}] = {K[j, i]:.6g}"
        raise MuhatError(who, needed, got, f"take ({name} + {name}.T)/2 if that is meant")
