"""A low-rank factor K ≈ L Lᵀ that knows its error, by pivoted Cholesky in blocks.

Every step takes the rows that the factor describes worst as pivots. What is left, K − L Lᵀ, is
positive semi-definite, so that its trace bounds every error of the factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from muhat._arrays import Array
from muhat._tolerances import MIN_FACTOR_TOL
from muhat._validation import (
    check_finite,
    check_semidefinite,
    check_values,
    positive,
    whole_number,
)
from muhat.gram._features import Approximation
from muhat.gram._nystrom import NystromFeatures, check_is_function
from muhat.kernels import Kernel

DEFAULT_TOL = 1e-12
"""The share of tr K that the factor may miss by default."""

CANDIDATES_PER_BLOCK = 128
"""Rows of which the pivots of one step are taken: a matrix that stays in the cache."""

PIVOT_SHARE = 0.1
"""A candidate is a pivot of this step while it misses this share of what the median one does.

Below, another step, which draws candidates anew, finds better ones."""


@dataclass(frozen=True, eq=False)
class LowRankFactor:
    """K ≈ L Lᵀ of n rows with r pivots, and what it misses.

    Attributes
    ----------
    L : array of shape (n, r)
        The factor, in double. L Lᵀ is Nyström's matrix of the pivots.
    pivots : array of shape (r,)
        The rows that are the pivots.
    remainder : array of shape (n,)
        The diagonal of K − L Lᵀ, not negative.
    trace : float
        tr K.
    is_converged : bool
        Whether the error is within the tolerance that was asked for.
    """

    L: Array
    pivots: Array
    remainder: Array
    trace: float
    is_converged: bool

    @property
    def rank(self) -> int:
        """r, the number of pivots."""
        return len(self.pivots)

    @property
    def error(self) -> float:
        """tr(K − L Lᵀ)/tr K, which bounds ‖K − L Lᵀ‖/tr K; zero where K is."""
        if self.trace:
            return float(self.remainder.sum()) / self.trace
        return 0.0


def pivoted_cholesky(
    kernel: Kernel, X: Array, tol: float = DEFAULT_TOL, max_rank: int | None = None
) -> LowRankFactor:
    """Return a factor L of the Gram matrix of X with tr(K − L Lᵀ) ≤ tol · tr K.

    It computes n r kernel values and takes n r² multiplications; K itself is never held. It depends
    on the rows alone, and not on chance.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with every parameter a number.
    X : array of shape (n, d)
        The rows.
    tol : float, default=1e-12
        The share of tr K that the factor may miss.
    max_rank : int, default=None
        The most pivots, n if not given; with ``max_rank`` pivots it stops, whatever its error is.
    """
    X = X.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # the result is checked
        remainder = kernel.diagonal(X).astype(np.float64)
        check_finite(remainder.sum(), kernel)
    trace, largest = float(remainder.sum()), float(remainder.max())
    check_semidefinite(np.array([remainder.min(), largest]))
    enough = max(tol, MIN_FACTOR_TOL) * trace
    if max_rank is None:
        most = len(X)
    else:
        most = min(len(X), max_rank)
    L = np.empty((len(X), min(most, CANDIDATES_PER_BLOCK)))
    pivots = np.zeros(0, int)
    while len(pivots) < most and remainder.sum() > enough:
        chosen, root = _next_pivots(kernel, X, L[:, : len(pivots)], remainder)
        chosen = chosen[: most - len(pivots)]
        start, stop = len(pivots), len(pivots) + len(chosen)
        if stop > L.shape[1]:
            L = _widened(L, start, min(most, 2 * stop))
        columns = kernel(X, X[chosen]) - L[:, :start] @ L[chosen, :start].T
        check_finite(columns.sum(), kernel)
        root = root[: len(chosen), : len(chosen)]
        columns = solve_triangular(root, columns.T, lower=True, check_finite=False).T
        L[:, start:stop] = columns
        remainder = remainder - (columns**2).sum(axis=1)
        check_semidefinite(np.array([remainder.min(), largest]))
        remainder = np.maximum(remainder, 0)
        remainder[chosen] = 0  # a pivot is described exactly
        pivots = np.append(pivots, chosen)
    is_converged = bool(remainder.sum() <= enough)
    L = np.ascontiguousarray(L[:, : len(pivots)])
    return LowRankFactor(L, pivots, remainder, trace, is_converged)


def _widened(L: Array, used: int, columns: int) -> Array:
    """Return the columns of L that are used, with room for more."""
    wider = np.empty((len(L), columns))
    wider[:, :used] = L[:, :used]
    return wider


def _next_pivots(kernel: Kernel, X: Array, L: Array, remainder: Array) -> tuple[Array, Array]:
    """Return the pivots of the next step, and the Cholesky factor of what is left of K on them."""
    candidates = _candidates(remainder)
    K = kernel(X[candidates])
    check_values(K, kernel)
    left = K - L[candidates] @ L[candidates].T
    np.fill_diagonal(left, remainder[candidates])
    least = PIVOT_SHARE * float(np.median(remainder[candidates]))
    root, order, rank, _ = dpstrf(left, tol=least, lower=1)
    return candidates[order[:rank] - 1], np.tril(root[:rank, :rank])


def _candidates(remainder: Array) -> Array:
    """Return the row that is missed most, and rows spread evenly over all that is missed."""
    total = np.cumsum(remainder)
    places = (np.arange(CANDIDATES_PER_BLOCK) + 0.5) / CANDIDATES_PER_BLOCK * total[-1]
    spread = np.minimum(np.searchsorted(total, places), len(remainder) - 1)
    candidates = np.unique(np.append(spread, remainder.argmax()))
    return candidates[remainder[candidates] > 0]


@dataclass
class PivotedCholesky(Approximation):
    """As many pivots as an error asks for: K ≈ L Lᵀ with tr(K − L Lᵀ) ≤ tol · tr K.

    An estimator that is given this as ``gram`` works on the features of the pivots, as on Nyström's
    landmarks: weights are on the pivots, and the chosen parameter may differ from that of
    ``gram="dense"`` by some percent, as grids depend on the number of features. The factor itself,
    by ``factor``, is exact to ``tol``. It pays wherever the rank is far below n: smooth kernels in
    few dimensions, repeated rows, linear kernels.

    Parameters
    ----------
    tol : float, default=1e-12
        The share of tr K that the factor may miss.
    max_rank : int, default=None
        The most pivots; n if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(1000, 1))
    >>> factor = PivotedCholesky().factor(Gaussian(1.0), X)
    >>> factor.rank < 100, factor.error <= 1e-12
    (True, True)
    """

    tol: float = DEFAULT_TOL
    max_rank: int | None = None

    def check(self, kernel: Kernel) -> None:
        check_is_function(self, kernel)
        positive(self, "tol", self.tol)
        if self.max_rank is not None:
            whole_number(self, "max_rank", self.max_rank, 1)

    def factor(self, kernel: Kernel, X: Array) -> LowRankFactor:
        """Return the factor of the Gram matrix of X; the kernel's parameters are numbers."""
        self.check(kernel)
        return pivoted_cholesky(kernel, X, self.tol, self.max_rank)

    def resolve(self, kernel: Kernel, X: Array) -> NystromFeatures:
        """Return the features whose landmarks are the pivots of X."""
        pivots = self.factor(kernel, X).pivots
        if not len(pivots):  # the kernel is zero on all rows
            pivots = np.zeros(1, int)
        return NystromFeatures(kernel, X[np.sort(pivots)], X.dtype)
