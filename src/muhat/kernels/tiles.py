"""Matrices of pairwise values, filled tile by tile: a tile stays in cache, and serves both halves where it can."""

from collections.abc import Callable

import numpy as np

from muhat.arrays import Array, rounding, share_between_cores

TILE = 256

ACCURATE = 1e-13
"""Rounding allowed in an exponent of order one; in float32 the same multiple of its rounding unit."""


def fill(tile: Callable[[slice, slice], Array], rows: int, columns: int, dtype: np.dtype, symmetric: bool) -> Array:
    """Return the matrix whose block at (i, j) is ``tile(i, j)``; a symmetric one is computed once and mirrored."""
    matrix = np.empty((rows, columns), dtype)

    def fill_row(start: int) -> None:
        i = slice(start, min(start + TILE, rows))
        for first in range(start if symmetric else 0, columns, TILE):
            j = slice(first, min(first + TILE, columns))
            values = tile(i, j)
            matrix[i, j] = values
            if symmetric and first > start:
                matrix[j, i] = values.T

    if rows <= TILE:
        fill_row(0)
    else:
        share_between_cores(fill_row, range(0, rows, TILE))
    return matrix


def radial(X: Array, Y: Array | None, sigma: float, profile: Callable[[Array], Array], smooth: bool) -> Array:
    """Return profile(−‖x_i − y_j‖²/2σ²).

    The exponent is one matrix product, the squared norms being two extra columns of it. Where that would lose digits
    (points far from their centre in units of σ, or a profile with a kink at zero) it is summed over the features.
    """
    centre = X.mean(axis=0)
    U = (X - centre) / sigma
    V = U if Y is None else (Y - centre) / sigma
    half_norms = [np.einsum("ij,ij->i", points, points) / -2 for points in (U, V)]
    farthest = -min(float(norms.min(initial=0.0)) for norms in half_norms)
    if not smooth or farthest * rounding(X) > ACCURATE * rounding(X) / np.finfo(np.float64).eps:
        exponents = _by_feature(U, V, lambda gap, out: np.multiply(gap, gap, out=out), -0.5)
    else:
        one = np.ones((1, 1), X.dtype)
        left = np.hstack([U, half_norms[0][:, None], one.repeat(len(U), axis=0)])
        right = np.hstack([V, one.repeat(len(V), axis=0), half_norms[1][:, None]]).T.copy()

        def exponents(i: slice, j: slice) -> Array:
            values = left[i] @ right[:, j]
            return np.minimum(values, 0, out=values)

    matrix = fill(lambda i, j: profile(exponents(i, j)), len(U), len(V), X.dtype, Y is None)
    if Y is None:
        np.fill_diagonal(matrix, profile(np.zeros(1, X.dtype))[0])
    return matrix


def laplacian(X: Array, Y: Array | None, sigma: float) -> Array:
    """Return exp(−‖x_i − y_j‖₁/σ)."""
    centre = X.mean(axis=0)
    U = (X - centre) / sigma
    V = U if Y is None else (Y - centre) / sigma
    exponents = _by_feature(U, V, lambda gap, out: np.abs(gap, out=out), -1.0)

    def tile(i: slice, j: slice) -> Array:
        values = exponents(i, j)
        return np.exp(values, out=values)

    return fill(tile, len(U), len(V), X.dtype, Y is None)


def _by_feature(
    U: Array, V: Array, measure: Callable[[Array, Array], Array], factor: float
) -> Callable[[slice, slice], Array]:
    """Return the tile factor · Σ_k measure(u_ik − v_jk), summed feature by feature: exact zeros for equal rows."""

    def tile(i: slice, j: slice) -> Array:
        total = np.zeros((i.stop - i.start, j.stop - j.start), U.dtype)
        gap = np.empty_like(total)
        for u, v in zip(U[i].T, V[j].T, strict=True):
            np.subtract(u[:, None], v, out=gap)
            total += measure(gap, gap)
        total *= factor
        return total

    return tile
