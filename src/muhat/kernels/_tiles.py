"""Values k(x_i, y_j) at all pairs, tile by tile, as a matrix or as products with vectors.

A tile stays in cache, and is used for both halves of a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import exp
from threading import Event

import numpy as np
from numpy.polynomial import chebyshev

from muhat._arrays import Array, available_cores, share_between_cores, slices
from muhat._tolerances import EXPONENT_TOL, EXPONENTIAL_TOL
from muhat._validation import as_two_samples

TILE_SIDE = 640
"""Rows and columns of a tile: small enough for the cache, large enough that threads seldom wait."""

MIRRORED_TILE_SIDE = 264
"""The same for a tile that is also written to its mirror's place.

It is not a power of two: entries of a column would displace each other in the cache."""

N_ROWS_FOR_CENTRE = 1000
"""Rows whose median is the centre."""

SUMS_PER_CORE = 4
"""Partial sums of a symmetric product for each core, with some to spare for fast threads."""

MAX_BYTES_OF_SUMS = 2**28
"""Memory that all partial sums may take together."""

Profile = Callable[[Array], Array]
"""From exponents to values, perhaps in place."""

Tile = Callable[[slice, slice, Array, Array], tuple[Array, float]]
"""Values at rows i and columns j, and a factor that they still have to be multiplied by.

Two buffers of that shape are given, because fresh memory costs more than the arithmetic. In a
product it is cheaper to multiply the vector by the factor."""


@dataclass(frozen=True)
class TiledPairs:
    """The values at all pairs of two samples U and V, tile by tile; one on the diagonal."""

    tile: Tile
    U: Array
    V: Array

    @property
    def symmetric(self) -> bool:
        """Whether both samples are the same, so that a tile is used for both halves."""
        return self.U is self.V

    def at(self, i: slice, j: slice, buffers: Array) -> tuple[Array, float]:
        """Return the values at rows i and columns j, in one of the buffers, and their factor."""
        shape = (i.stop - i.start, j.stop - j.start)
        return self.tile(i, j, *buffers[:, : shape[0] * shape[1]].reshape(2, *shape))

    def _columns(self, i: slice, side: int) -> Iterator[slice]:
        """Yield the columns of the tiles of some rows; of a symmetric matrix, the upper half."""
        first = 0
        if self.symmetric:
            first = i.start
        return slices(first, len(self.V), side)

    def matrix(self) -> Array:
        """Return all values; symmetric ones are computed once and mirrored."""
        matrix = np.empty((len(self.U), len(self.V)), self.U.dtype)
        side = TILE_SIDE
        if self.symmetric:
            side = MIRRORED_TILE_SIDE

        def fill_strip(i: slice) -> None:
            buffers = np.empty((2, side * side), matrix.dtype)
            for j in self._columns(i, side):
                values, factor = self.at(i, j, buffers)
                if factor != 1:
                    values *= factor
                if self.symmetric and i == j:
                    # a matrix product need not be symmetric to the last digit
                    values = (values + values.T) / 2
                    np.fill_diagonal(values, 1)
                elif self.symmetric:
                    matrix[j, i] = values.T
                matrix[i, j] = values

        share_between_cores(fill_strip, slices(0, len(self.U), side))
        return matrix

    def product(self, vectors: Array) -> Array:
        """Return the matrix times the columns of ``vectors`` without holding the matrix.

        Symmetric values are computed once and used for both halves. Strips of tiles add their lower
        halves to a few partial sums, in a fixed order for each, so that the result is the same to
        the last digit each time.
        """
        vectors = vectors.astype(self.U.dtype, copy=False)
        strips = list(slices(0, len(self.U), TILE_SIDE))
        fitting = MAX_BYTES_OF_SUMS // max(len(self.U) * vectors.shape[1] * vectors.itemsize, 1)
        count = 1
        if self.symmetric:
            count = max(1, min(SUMS_PER_CORE * available_cores(), fitting))
        sums = np.zeros((count, len(self.U), vectors.shape[1]), vectors.dtype)
        finished = [Event() for _ in strips]

        def multiply(number: int) -> None:
            i, lower = strips[number], sums[number % count]
            if self.symmetric and number >= count:
                finished[number - count].wait()
            try:
                upper = np.zeros_like(sums[0, i])
                buffers = np.empty((2, TILE_SIDE * TILE_SIDE), vectors.dtype)
                for j in self._columns(i, TILE_SIDE):
                    values, factor = self.at(i, j, buffers)
                    if self.symmetric and i == j:
                        np.fill_diagonal(values, 1 / factor)
                    elif self.symmetric:
                        lower[j] += values.T @ (factor * vectors[i])
                    upper += values @ (factor * vectors[j])
                lower[i] += upper
            finally:
                finished[number].set()

        share_between_cores(multiply, range(len(strips)))
        return sums.sum(axis=0)


def radial(
    X: Array, Y: Array | None, sigma: float, profile: Profile, smooth: bool, is_exp: bool = False
) -> TiledPairs:
    """Return profile(−‖x_i − y_j‖²/2σ²); if ``is_exp``, by a fast exponential for near points.

    The exponent is one matrix product, the squared norms being two extra columns of it. Where that
    would lose digits (points far from their centre in units of σ, or a profile with a kink at zero)
    it is summed over the features.
    """
    U, V = _in_units(X, Y, sigma)
    of_U, of_V = _half_norms(U), _half_norms(V)
    farthest = max(_farthest(of_U), _farthest(of_V))
    if not smooth or farthest > EXPONENT_TOL / float(np.finfo(np.float64).eps):
        return _by_feature(U, V, np.square, -0.5, profile)
    # left @ right is ⟨u_i, v_j⟩ − ‖u_i‖²/2 − ‖v_j‖²/2
    left = np.column_stack([U, of_U, np.ones_like(of_U)])
    right = np.vstack([V.T, np.ones_like(of_V), of_V])
    near: tuple[Exponential, ...] = ()
    if is_exp:
        near = exponentials(U.dtype.name)

    def tile(i: slice, j: slice, out: Array, spare: Array) -> tuple[Array, float]:
        # −(max‖u‖ + max‖v‖)²/2
        lowest = -((_farthest(of_U[i]) ** 0.5 + _farthest(of_V[j]) ** 0.5) ** 2)
        exponential = next((each for each in near if each.lowest <= lowest), None)
        if exponential is None:
            # Exponents above zero are rounding; the maximum is faster to take than to cut off.
            if np.matmul(left[i], right[:, j], out=out).max() > 0:
                np.minimum(out, 0, out=out)
            return profile(out), 1.0
        scaled = exponential.slope * left[i]
        scaled[:, -2] += exponential.offset
        return exponential(np.matmul(scaled, right[:, j], out=spare), out), exponential.factor

    return TiledPairs(tile, U, V)


def of_absolute_differences(
    X: Array, Y: Array | None, sigma: float, profile: Profile
) -> TiledPairs:
    """Return profile(−‖x_i − y_j‖₁/σ)."""
    return _by_feature(*_in_units(X, Y, sigma), np.abs, -1.0, profile)


def from_the_centre(X: Array) -> Array:
    """Return the order of points by distance from their centre, so that a tile has similar ones."""
    gaps = X - _centre(X)
    with np.errstate(over="ignore"):
        return np.argsort(np.einsum("ij,ij->i", gaps, gaps))


def _centre(X: Array) -> Array:
    """Return the median of some rows, which a few rows far away do not move."""
    if not len(X):
        return np.zeros(X.shape[1])
    step = -(-len(X) // N_ROWS_FOR_CENTRE)
    return np.median(X[::step], axis=0)


def _half_norms(U: Array) -> Array:
    """Return −‖u_i‖²/2."""
    return np.einsum("ij,ij->i", U, U) / -2


def _farthest(half_norms: Array) -> float:
    """Return the largest ‖u_i‖²/2."""
    return -float(half_norms.min(initial=0.0))


def _in_units(X: Array, Y: Array | None, sigma: float) -> tuple[Array, Array]:
    """Return X and Y in units of σ from a centre of Y (or X) as floats."""
    X, Y = as_two_samples(X, Y)
    centre = _centre(Y)
    U = (X - centre) / sigma
    if Y is X:
        return U, U
    return U, ((Y - centre) / sigma).astype(U.dtype, copy=False)


def _by_feature(
    U: Array, V: Array, measure: np.ufunc, coefficient: float, profile: Profile
) -> TiledPairs:
    """Return profile(coefficient · Σ_k measure(u_ik − v_jk)), exact for equal rows."""
    farthest = -(float(np.finfo(U.dtype).max) ** 0.9)  # short of what makes a profile overflow

    def tile(i: slice, j: slice, out: Array, gap: Array) -> tuple[Array, float]:
        out[:] = 0
        with np.errstate(over="ignore"):
            for u, v in zip(U[i].T, V[j].T, strict=True):
                np.subtract(u[:, None], v, out=gap)
                out += measure(gap, out=gap)
            out *= coefficient
        return profile(np.maximum(out, farthest, out=out)), 1.0

    return TiledPairs(tile, U, V)


COTH = (2.0, 1 / 6, -1 / 360, 1 / 15120, -1 / 604800, 1 / 23950080)
"""The series of w coth(w/2) in powers of w²."""

DEGREE = 5
"""Of the odd polynomial that stands for w² coth(w/2)."""

MAX_SQUARINGS = {"float64": 6, "float32": 3}
"""Maximum number of squarings, each of which doubles the rounding error."""


@dataclass(frozen=True)
class Exponential:
    """exp(x) = factor · (q(w) / 2)^(2^s) for lowest ≤ x ≤ 0, with w = (x − lowest / 2) / 2^s.

    Here q(w) = (C + w)/(C − w) = 2C/(C − w) − 1, where C = w coth(w/2) would make it exp(w). The
    polynomial of degree four nearest to C is, up to a factor, E = (t² + a)² + b with t = slope · x
    + offset, so that q = 2E/(E + t) − 1.
    """

    lowest: float
    slope: float
    offset: float
    a: float
    b: float
    factor: float
    squarings: int

    @classmethod
    def from_squarings(cls, squarings: int, tolerance: float) -> Exponential:
        """Return it for as wide a range as s squarings allow."""
        scale = 2**squarings
        left_out = DEGREE + 2  # the first power that is left out of the series of w C
        # The nearest polynomial of this degree is 2^(left_out − 1) times nearer than the series.
        ratio = 2 * tolerance / scale * 2 ** (left_out - 1) / COTH[left_out // 2]
        reach = ratio ** (1 / left_out)
        powers = reach ** np.arange(2 * len(COTH))
        series = np.zeros(2 * len(COTH))
        series[1::2] = COTH
        truncated = chebyshev.poly2cheb(series * powers)[: DEGREE + 1]
        nearest = chebyshev.cheb2poly(truncated) / powers[: DEGREE + 1]
        zeroth, second, fourth = nearest[1::2]  # C = zeroth + second w² + fourth w⁴
        in_w = float(np.cbrt(-fourth))  # makes (E + t)/(C − w) the same as E/C
        middle = second / (2 * fourth)
        a, b = float(in_w**2 * middle), float(in_w**4 * (zeroth / fourth - middle**2))
        centre, slope = -reach * scale, in_w / scale
        return cls(2 * centre, slope, -slope * centre, a, b, exp(centre) * 2.0**scale, squarings)

    def __call__(self, t: Array, spare: Array) -> Array:
        """Return exp(x) / factor from t = slope · x + offset, in the spare array; overwrites t."""
        values = np.square(t, out=spare)
        values += self.a
        np.square(values, out=values)
        values += self.b
        t += values
        values /= t
        values -= 0.5
        for _ in range(self.squarings):
            np.square(values, out=values)
        return values


@cache
def exponentials(name: str) -> tuple[Exponential, ...]:
    """Return exponentials of ever wider ranges for float64 or float32; none for other types."""
    return tuple(
        Exponential.from_squarings(s, EXPONENTIAL_TOL[name])
        for s in range(MAX_SQUARINGS.get(name, -1) + 1)
    )
