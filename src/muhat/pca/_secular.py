"""Leading eigenvalues of a diagonal matrix minus a rank-one matrix, for many vectors at once.

The eigenvalues of diag(γ) − ρ w wᵀ interlace with γ: the j-th is the root of
ρ Σ_k w_k²/(γ_k − θ) = 1 between γ_(j+1) and γ_j. Each is found by osculatory interpolation (Bunch,
Nielsen and Sorensen 1978), as its distance from the nearer end, so that no digits are lost there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, share_between_cores, slices
from muhat._tolerances import MIN_WEIGHT_SHARE, ROOT_TOL

ROWS_PER_BLOCK = 128
"""Vectors that a core works on together: blocks of their size stay in its cache."""

MAX_STEPS = 60
"""Most steps of a root: those of pure bisection; interpolation takes about five."""


@dataclass(frozen=True)
class LeadingPairs:
    """Leading eigenpairs (θ_j, v_j) of diag(γ) − ρ w wᵀ, one matrix for each row."""

    values: Array
    """θ_j, descending: shape (rows, count)."""
    squares: Array
    """(wᵀv_j)²: shape (rows, count)."""


def leading_pairs(gamma: Array, squares: Array, rho: Array, count: int) -> LeadingPairs:
    """Return the leading eigenpairs of diag(γ) − ρ w wᵀ for many w.

    Parameters
    ----------
    gamma : array of shape (r,)
        Eigenvalues, descending.
    squares : array of shape (rows, r)
        w_k² of each w.
    rho : array of shape (rows,)
        ρ > 0 of each; every matrix must be positive semi-definite.
    count : int
        How many to return, at most r.
    """

    def solve(some: slice) -> tuple[Array, Array]:
        return _leading(gamma, squares[some], rho[some], count)

    blocks = share_between_cores(solve, slices(0, len(squares), ROWS_PER_BLOCK))
    values = np.concatenate([each[0] for each in blocks])
    return LeadingPairs(values, np.concatenate([each[1] for each in blocks]))


def _leading(gamma: Array, squares: Array, rho: Array, count: int) -> tuple[Array, Array]:
    """Return θ and (wᵀv)² of some rows."""
    norms = squares.sum(axis=1)
    raised = np.maximum(
        squares, MIN_WEIGHT_SHARE * np.maximum(norms, np.finfo(float).tiny)[:, None]
    )
    values = np.empty((len(squares), count))
    found = np.zeros((len(squares), count))
    for j in range(min(count, len(gamma) - 1)):
        values[:, j] = gamma[j]
        if gamma[j] > gamma[j + 1] and len(squares):  # else equal: one of them is not moved
            values[:, j], found[:, j] = _root(gamma, raised, rho, j)
    if count == len(gamma):  # traces of both sides, of the matrix and of its product with w wᵀ
        last = gamma.sum() - rho * norms - values[:, :-1].sum(axis=1)
        values[:, -1] = np.clip(last, 0, gamma[-1])
        found[:, -1] = np.maximum(norms - found[:, :-1].sum(axis=1), 0)
    return values, np.minimum(found, norms[:, None])


def _root(gamma: Array, squares: Array, rho: Array, j: int) -> tuple[Array, Array]:
    """Return θ_j and (wᵀv_j)² of every row."""
    half = (gamma[j] - gamma[j + 1]) / 2
    at_middle = (squares / (gamma - (gamma[j + 1] + half))).sum(axis=1) - 1 / rho
    is_upper = at_middle < 0
    origin = np.where(is_upper, gamma[j], gamma[j + 1])
    # Offsets from the nearer end, in which the root has all its digits.
    low = np.where(is_upper, -half, 0.0)
    high = np.where(is_upper, 0.0, half)
    gaps = gamma - origin[:, None]
    x = np.where(is_upper, -half, half)
    done = np.zeros(len(x), bool)
    for _ in range(MAX_STEPS):
        inverse = 1 / (gaps - x[:, None])
        terms = squares * inverse
        value = terms.sum(axis=1) - 1 / rho
        slopes = terms * inverse
        left, right = slopes[:, : j + 1].sum(axis=1), slopes[:, j + 1 :].sum(axis=1)
        low = np.where(value < 0, x, low)
        high = np.where(value < 0, high, x)
        proposed = _interpolated(value, left, right, gaps[:, j] - x, gaps[:, j + 1] - x) + x
        inside = (proposed >= low) & (proposed <= high)
        step = np.where(inside, proposed, (low + high) / 2) - x
        x = np.where(done, x, x + step)
        done |= np.abs(step) <= ROOT_TOL * np.abs(x)
        if done.all():
            break
    derivative = (squares / (gaps - x[:, None]) ** 2).sum(axis=1)
    return origin + x, 1 / (rho**2 * derivative)


def _interpolated(value: Array, left: Array, right: Array, above: Array, below: Array) -> Array:
    """Return the step to the root of a/(above − t) + b/(below − t) + c between the two poles.

    a and b match the slopes of the terms on either side at t = 0, and c the value.
    """
    a, b = left * above**2, right * below**2
    c = value - left * above - right * below
    # c t² − (c (above + below) + a + b) t + c·above·below + a·below + b·above = 0
    linear = c * (above + below) + a + b
    constant = value * above * below
    root = np.sqrt(np.maximum(linear**2 - 4 * c * constant, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        near = 2 * constant / (linear + np.where(linear >= 0, root, -root))
        far = (linear + np.where(linear >= 0, root, -root)) / (2 * c)
    is_near = (near > below) & (near < above)
    return np.where(is_near, near, far)
