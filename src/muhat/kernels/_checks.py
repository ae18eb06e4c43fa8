"""What a Gram matrix must be, checked where it is known: finite, symmetric, positive semi-definite."""

import numpy as np

from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat.kernels._base import Kernel


def check_values(K: Array, kernel: Kernel) -> None:
    """Refuse kernel values that are not finite or not symmetric."""
    with np.errstate(over="ignore", invalid="ignore"):
        check_finite(K.sum(), kernel)
    if not kernel.positive_semidefinite:
        gap = float(np.abs(K - K.T).max())
        scale = float(np.abs(K).max())
        if gap > rounding(K) ** 0.5 * scale:
            needed, got = "k(x, y) = k(y, x) is needed", f"a difference of {gap:.2g} where values reach {scale:.2g}"
            raise ValueError(refusal(type(kernel).__name__, needed, got, "pass (K + K.T)/2 if this is rounding"))


def check_finite(total: float, kernel: Kernel) -> None:
    """Refuse kernel values whose sum is not finite."""
    if not np.isfinite(total):
        needed, got = "values k(x, y) must be finite", "NaN or infinite ones"
        raise ValueError(refusal(type(kernel).__name__, needed, got, "rescale X or choose another kernel"))


def check_semidefinite(gamma: Array) -> None:
    """Refuse eigenvalues, in rising order, that are truly negative: more than rounding below zero."""
    allowed = rounding(gamma) ** 0.5 * np.abs(gamma[..., -1])
    if np.any(gamma[..., 0] < -allowed):
        share = float((gamma[..., 0] / np.abs(gamma[..., -1])).min())
        needed = "the Gram matrix must be positive semi-definite"
        got = f"an eigenvalue of {share:.2g} times the largest"
        raise ValueError(refusal("kernel", needed, got, "use a kernel that is, or clip the matrix's spectrum"))
