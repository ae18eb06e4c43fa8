"""Matrices of pairwise values, filled tile by tile: a tile stays in cache, and serves both halves where it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from muhat.arrays import Array, share_between_cores
from muhat.kernels.exponential import Exponential

TILE = 192

ACCURATE = 1e-13
"""Rounding allowed in an exponent of order one; in float32 the same multiple of its rounding unit."""


Tile = Callable[[slice, slice, Array, Array], Array]
"""Values at rows i and columns j, given two buffers of that shape: fresh memory costs more than the arithmetic."""


@dataclass(frozen=True)
class Pairs:
    """The values at all pairs of two samples, to be computed tile by tile."""

    tile: Tile
    rows: int
    columns: int
    dtype: np.dtype
    symmetric: bool
    """Whether both samples are the same one, so that a tile serves both halves."""
    diagonal: float
    """The value at a pair of equal points."""

    def at(self, i: slice, j: slice, buffers: Array) -> Array:
        """Return the values at rows i and columns j, in one of two buffers that are large enough."""
        shape = (i.stop - i.start, j.stop - j.start)
        first, second = buffers[:, : shape[0] * shape[1]].reshape(2, *shape)
        return self.tile(i, j, first, second)

    def matrix(self) -> Array:
        """Return all values; symmetric ones are computed once and mirrored."""
        matrix = np.empty((self.rows, self.columns), self.dtype)

        def fill_row(start: int) -> None:
            i = slice(start, min(start + TILE, self.rows))
            buffers = np.empty((2, TILE * TILE), self.dtype)
            for first in range(start if self.symmetric else 0, self.columns, TILE):
                j = slice(first, min(first + TILE, self.columns))
                values = self.at(i, j, buffers)
                if self.symmetric:
                    matrix[j, i] = values.T
                    if first == start:  # a product need not come out symmetric to the last digit
                        values = (values + values.T) / 2
                matrix[i, j] = values

        if self.rows <= TILE:
            fill_row(0)
        else:
            share_between_cores(fill_row, range(0, self.rows, TILE))
        if self.symmetric:
            np.fill_diagonal(matrix, self.diagonal)
        return matrix


def radial(X: Array, Y: Array | None, sigma: float, profile: Callable[[Array], Array], smooth: bool) -> Pairs:
    """Return profile(−‖x_i − y_j‖²/2σ²).

    The exponent is one matrix product, the squared norms being two extra columns of it. Where that would lose digits
    (points far from their centre in units of σ, or a profile with a kink at zero) it is summed over the features.
    """
    U, V = _in_units(X, Y, sigma)
    half_norms = _half_norms(U), _half_norms(V)
    if not smooth or max(map(_farthest, half_norms)) > ACCURATE / np.finfo(np.float64).eps:
        exponents = _by_feature(U, V, lambda gap, out: np.multiply(gap, gap, out=out), -0.5)
    else:
        products = _as_product(U, V, *half_norms)

        def exponents(i: slice, j: slice, out: Array, spare: Array) -> Array:
            return np.minimum(products(i, j, out, spare), 0, out=out)

    diagonal = profile(np.zeros(1, U.dtype))[0]
    return Pairs(lambda *tile: profile(exponents(*tile)), len(U), len(V), U.dtype, Y is None, diagonal)


def gaussian(X: Array, Y: Array | None, sigma: float) -> Pairs:
    """Return exp(−‖x_i − y_j‖²/2σ²), by a polynomial of the matrix product where points are near in units of σ."""
    U, V = _in_units(X, Y, sigma)
    half_norms = _half_norms(U), _half_norms(V)
    lowest = -((sum(_farthest(norms) ** 0.5 for norms in half_norms)) ** 2)  # −(max‖u‖ + max‖v‖)²/2
    exponential = Exponential.between(lowest, 0.0, U.dtype)
    if exponential is None:
        return radial(X, Y, sigma, lambda exponent: np.exp(exponent, out=exponent), smooth=True)
    products = _as_product(U, V, *half_norms, exponential.slope, exponential.offset)

    def tile(i: slice, j: slice, out: Array, spare: Array) -> Array:
        return exponential(products(i, j, spare, out), out)

    return Pairs(tile, len(U), len(V), U.dtype, Y is None, 1.0)


def _half_norms(U: Array) -> Array:
    """Return −‖u_i‖²/2."""
    return np.einsum("ij,ij->i", U, U) / -2


def _farthest(half_norms: Array) -> float:
    """Return the largest ‖u_i‖²/2."""
    return -float(half_norms.min(initial=0.0))


def _as_product(U: Array, V: Array, of_U: Array, of_V: Array, slope: float = 1.0, offset: float = 0.0) -> Tile:
    """Return the tile slope · (⟨u_i, v_j⟩ − ‖u_i‖²/2 − ‖v_j‖²/2) + offset, given the halves of the norms."""
    left = np.column_stack([slope * U, slope * of_U + offset, np.ones_like(of_U)])
    right = np.vstack([V.T, np.ones_like(of_V), slope * of_V])
    return lambda i, j, out, _: np.matmul(left[i], right[:, j], out=out)


def _in_units(X: Array, Y: Array | None, sigma: float) -> tuple[Array, Array]:
    """Return X and Y from the centre of X and in units of σ; whole numbers become floats."""
    centre = X.mean(axis=0)
    U = (X - centre) / sigma
    return U, U if Y is None else ((Y - centre) / sigma).astype(U.dtype, copy=False)


def laplacian(X: Array, Y: Array | None, sigma: float) -> Pairs:
    """Return exp(−‖x_i − y_j‖₁/σ)."""
    U, V = _in_units(X, Y, sigma)
    exponents = _by_feature(U, V, lambda gap, out: np.abs(gap, out=out), -1.0)

    def tile(i: slice, j: slice, out: Array, spare: Array) -> Array:
        return np.exp(exponents(i, j, out, spare), out=out)

    return Pairs(tile, len(U), len(V), U.dtype, Y is None, 1.0)


def _by_feature(U: Array, V: Array, measure: Callable[[Array, Array], Array], factor: float) -> Tile:
    """Return the tile factor · Σ_k measure(u_ik − v_jk), summed feature by feature: exact zeros for equal rows."""

    def tile(i: slice, j: slice, out: Array, gap: Array) -> Array:
        out[:] = 0
        for u, v in zip(U[i].T, V[j].T, strict=True):
            np.subtract(u[:, None], v, out=gap)
            out += measure(gap, gap)
        out *= factor
        return out

    return tile
