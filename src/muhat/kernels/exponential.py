"""exp(x) for x in a known range, by a polynomial and squarings: twice as fast as NumPy's where that has no AVX-512."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, factorial

import numpy as np
from numpy.polynomial import Polynomial, chebyshev

from muhat.arrays import Array

DEGREE = 6

TOLERANCE = {"float64": 6.5e-14, "float32": 2e-7}
"""The polynomial's share of the relative error of exp(x)."""

SQUARINGS = {"float64": 6, "float32": 3}
"""The most there may be: each of them doubles the rounding error, which stays below some ten units."""


@dataclass(frozen=True)
class Exponential:
    """exp(x) = p(w)^(2^s) for x = centre + 2^s w.

    Here p(w) = ((t² + a)² + t + b)((ct + d)² + e) with t = slope · w + offset, and the letters are such that p is the
    polynomial of degree 6 nearest to exp on the range of w.
    """

    slope: float
    offset: float
    a: float
    b: float
    c: float
    d: float
    e: float
    squarings: int

    @classmethod
    def between(cls, lowest: float, highest: float, dtype: np.dtype) -> Exponential | None:
        """Return it for x from lowest to highest, with slope and offset for x instead of w; None if that is too far."""
        centre, half_width = (lowest + highest) / 2, (highest - lowest) / 2
        tolerance = TOLERANCE.get(dtype.name, 0.0)
        for squarings in range(SQUARINGS.get(dtype.name, 0) + 1):
            if half_width < _reach(squarings, tolerance):
                slope, offset, a, b, c, d, e = _letters(squarings, tolerance)
                slope, part = slope / 2**squarings, exp(centre / 2**squarings)  # p's share of exp(centre)
                return cls(slope, offset - slope * centre, a, b, c * part**0.5, d * part**0.5, e * part, squarings)
        return None

    def __call__(self, t: Array, spare: Array) -> Array:
        """Return exp(x) from t = slope · x + offset, in place of the spare array and at the cost of t."""
        values = np.multiply(t, t, out=spare)
        values += self.a
        values *= values
        values += t
        values += self.b
        t *= self.c
        t += self.d
        t *= t
        t += self.e
        values *= t
        for _ in range(self.squarings):
            values *= values
        return values


def _reach(squarings: int, tolerance: float) -> float:
    """Return the half-width r where the error 2^s (r/2^s)^7 / (2^6 7!) of the polynomial is the tolerance."""
    return float((tolerance * 2**DEGREE * factorial(DEGREE + 1)) ** (1 / (DEGREE + 1)) * 2 ** (squarings * 6 / 7))


@cache
def _letters(squarings: int, tolerance: float) -> tuple[float, ...]:
    """Return slope, offset, a, b, c, d and e for w of either sign up to the reach over 2^s."""
    width = _reach(squarings, tolerance) / 2**squarings
    series = chebyshev.poly2cheb([width**k / factorial(k) for k in range(2 * DEGREE)])
    nearest = chebyshev.cheb2poly(series[: DEGREE + 1])
    left, middle, right = sorted((root for root in width * Polynomial(nearest).roots() if root.imag > 0), key=np.real)
    mean = (left.real + right.real) / 2
    outer = np.array([left, left.conj(), right, right.conj()]) - mean
    quartic = Polynomial.fromroots(outer).coef.real  # without a cubic term: (x² + a)² + qx + b
    unit = np.cbrt(quartic[1])  # x = unit · t makes its linear term t
    a, b = quartic[2] / 2 / unit**2, (quartic[0] - quartic[2] ** 2 / 4) / unit**4
    scale = nearest[0] * unit**4 / (abs(left) * abs(right) * abs(middle)) ** 2
    c, d, e = scale**0.5 * unit, scale**0.5 * (mean - middle.real), scale * middle.imag**2
    return tuple(float(value) for value in (1 / unit, -mean / unit, a, b, c, d, e))
