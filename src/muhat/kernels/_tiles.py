"""Matrices of pairwise values, tile by tile: a tile stays in cache, and serves both halves where it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, check_same_columns, share_between_cores, slices
from muhat.kernels._exponential import exponentials

TILE = 640
"""Rows and columns of a tile: near enough to the core, and so much work at a time that threads seldom wait in turn."""

MIRRORED = 256
"""The same where a tile is also written in its mirror's place."""

CENTRED_BY = 1000
"""Rows whose median is the centre."""

ACCURATE = 1e-13
"""Rounding allowed in an exponent of order one; in float32 the same multiple of its rounding unit."""


Exponents = Callable[[slice, slice, Array, Array], Array]
"""Exponents at rows i and columns j, given two buffers of that shape: fresh memory costs more than the arithmetic."""

Tile = Callable[[slice, slice, Array, Array], tuple[Array, float]]
"""Values, given the same, and a factor still to be multiplied by: in a product it is the vector that is."""


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

    def at(self, i: slice, j: slice, buffers: Array) -> tuple[Array, float]:
        """Return the values at rows i and columns j, in one of two buffers that are large enough, and their factor."""
        shape = (i.stop - i.start, j.stop - j.start)
        first, second = buffers[:, : shape[0] * shape[1]].reshape(2, *shape)
        return self.tile(i, j, first, second)

    def matrix(self) -> Array:
        """Return all values; symmetric ones are computed once and mirrored."""
        matrix = np.empty((self.rows, self.columns), self.dtype)
        side = MIRRORED if self.symmetric else TILE

        def fill_strip(i: slice) -> None:
            buffers = np.empty((2, side * side), self.dtype)
            for j in slices(i.start if self.symmetric else 0, self.columns, side):
                values, factor = self.at(i, j, buffers)
                values *= factor
                if self.symmetric:
                    matrix[j, i] = values.T
                    if i == j:  # a product need not come out symmetric to the last digit
                        values = (values + values.T) / 2
                matrix[i, j] = values

        if self.rows <= side:
            fill_strip(slice(0, self.rows))
        else:
            share_between_cores(fill_strip, slices(0, self.rows, side))
        if self.symmetric:
            np.fill_diagonal(matrix, self.diagonal)
        return matrix


def radial(X: Array, Y: Array | None, sigma: float, profile: Callable[[Array], Array], smooth: bool) -> Pairs:
    """Return profile(−‖x_i − y_j‖²/2σ²).

    The exponent is one matrix product, the squared norms being two extra columns of it. Where that would lose digits
    (points far from their centre in units of σ, or a profile with a kink at zero) it is summed over the features.
    """
    U, V = _in_units(X, Y, sigma)
    of_U, of_V = _half_norms(U), _half_norms(V)
    if not smooth or _far(of_U, of_V):
        exponents = _by_feature(U, V, lambda gap, out: np.multiply(gap, gap, out=out), -0.5)
    else:
        exponents = _by_product(*_factors(U, V, of_U, of_V))

    diagonal = profile(np.zeros(1, U.dtype))[0]
    return Pairs(lambda *tile: (profile(exponents(*tile)), 1.0), len(U), len(V), U.dtype, Y is None, diagonal)


def gaussian(X: Array, Y: Array | None, sigma: float) -> Pairs:
    """Return exp(−‖x_i − y_j‖²/2σ²); of points near each other in units of σ, by quotients and squarings."""
    U, V = _in_units(X, Y, sigma)
    of_U, of_V = _half_norms(U), _half_norms(V)
    if _far(of_U, of_V):
        return radial(X, Y, sigma, lambda exponent: np.exp(exponent, out=exponent), smooth=True)
    left, right = _factors(U, V, of_U, of_V)
    exponents, near = _by_product(left, right), exponentials(U.dtype.name)

    def tile(i: slice, j: slice, out: Array, spare: Array) -> tuple[Array, float]:
        lowest = -((_farthest(of_U[i]) ** 0.5 + _farthest(of_V[j]) ** 0.5) ** 2)  # −(max‖u‖ + max‖v‖)²/2
        exponential = next((each for each in near if each.lowest <= lowest), None)
        if exponential is None:
            return np.exp(exponents(i, j, out, spare), out=out), 1.0
        scaled = exponential.slope * left[i]
        scaled[:, -2] += exponential.offset
        return exponential(np.matmul(scaled, right[:, j], out=spare), out), exponential.factor

    return Pairs(tile, len(U), len(V), U.dtype, Y is None, 1.0)


def from_the_centre(X: Array) -> Array:
    """Return the order of points by their distance from their centre, so that those of a tile are alike in it."""
    gaps = X - _centre(X)
    with np.errstate(over="ignore"):
        return np.argsort(np.einsum("ij,ij->i", gaps, gaps))


def _centre(X: Array) -> Array:
    """Return the median of some rows: a few that are far away, from which the others look equal, do not move it."""
    return np.median(X[:: -(-len(X) // CENTRED_BY) or 1], axis=0) if len(X) else np.zeros(X.shape[1])


def _half_norms(U: Array) -> Array:
    """Return −‖u_i‖²/2."""
    return np.einsum("ij,ij->i", U, U) / -2


def _farthest(half_norms: Array) -> float:
    """Return the largest ‖u_i‖²/2."""
    return -float(half_norms.min(initial=0.0))


def _far(of_U: Array, of_V: Array) -> bool:
    """Whether points are so far from the centre that a product of them loses digits."""
    return max(_farthest(of_U), _farthest(of_V)) > ACCURATE / float(np.finfo(np.float64).eps)


def _factors(U: Array, V: Array, of_U: Array, of_V: Array) -> tuple[Array, Array]:
    """Return the matrices whose product is ⟨u_i, v_j⟩ − ‖u_i‖²/2 − ‖v_j‖²/2, given the halves of the norms."""
    left = np.column_stack([U, of_U, np.ones_like(of_U)])
    right = np.vstack([V.T, np.ones_like(of_V), of_V])
    return left, right


def _by_product(left: Array, right: Array) -> Exponents:
    """Return the product of the factors, never above 0, where rounding may lift it."""
    return lambda i, j, out, _: np.minimum(np.matmul(left[i], right[:, j], out=out), 0, out=out)


def _in_units(X: Array, Y: Array | None, sigma: float) -> tuple[Array, Array]:
    """Return X and Y in units of σ from a centre of the latter, if there is one; whole numbers become floats."""
    if Y is not None:
        check_same_columns(X, Y)
    centre = _centre(X if Y is None else Y)
    U = (X - centre) / sigma
    return U, U if Y is None else ((Y - centre) / sigma).astype(U.dtype, copy=False)


def laplacian(X: Array, Y: Array | None, sigma: float) -> Pairs:
    """Return exp(−‖x_i − y_j‖₁/σ)."""
    U, V = _in_units(X, Y, sigma)
    exponents = _by_feature(U, V, lambda gap, out: np.abs(gap, out=out), -1.0)

    def tile(i: slice, j: slice, out: Array, spare: Array) -> tuple[Array, float]:
        return np.exp(exponents(i, j, out, spare), out=out), 1.0

    return Pairs(tile, len(U), len(V), U.dtype, Y is None, 1.0)


def _by_feature(U: Array, V: Array, measure: Callable[[Array, Array], Array], coefficient: float) -> Exponents:
    """Return coefficient · Σ_k measure(u_ik − v_jk), summed feature by feature: exact zeros for equal rows."""
    farthest = -(float(np.finfo(U.dtype).max) ** 0.9)  # short of what makes a profile overflow

    def tile(i: slice, j: slice, out: Array, gap: Array) -> Array:
        out[:] = 0
        with np.errstate(over="ignore"):
            for u, v in zip(U[i].T, V[j].T, strict=True):
                np.subtract(u[:, None], v, out=gap)
                out += measure(gap, gap)
            out *= coefficient
        return np.maximum(out, farthest, out=out)

    return tile
