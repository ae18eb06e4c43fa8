"""exp(x) for x in a known range, by a quotient and squarings: more than twice as fast as NumPy's without AVX-512."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp

import numpy as np
from numpy.polynomial import chebyshev

from muhat._arrays import Array

COTH = (2.0, 1 / 6, -1 / 360, 1 / 15120, -1 / 604800, 1 / 23950080)
"""The series of w coth(w/2) in powers of w²."""

DEGREE = 5
"""Of the odd polynomial that stands for w² coth(w/2)."""

TOLERANCE = {"float64": 1e-14, "float32": 2e-7}
"""The quotient's share of the relative error of exp(x)."""

SQUARINGS = {"float64": 6, "float32": 3}
"""The most there may be: each of them doubles the rounding error."""


@dataclass(frozen=True)
class Exponential:
    """exp(x) = factor · (q(w) / 2)^(2^s) for lowest ≤ x ≤ 0, with w = (x − lowest / 2) / 2^s.

    Here q(w) = (C + w)/(C − w) = 2C/(C − w) − 1, where C = w coth(w/2) would make it exp(w). The polynomial of degree
    four nearest to C is, up to a factor, E = (t² + a)² + b with t = slope · x + offset, so that q = 2E/(E + t) − 1.
    """

    lowest: float
    slope: float
    offset: float
    a: float
    b: float
    factor: float
    squarings: int

    @classmethod
    def with_squarings(cls, squarings: int, tolerance: float) -> Exponential:
        """Return it for as wide a range as s squarings allow."""
        reach, slope, a, b = _letters(tolerance / 2**squarings)
        centre, slope = -reach * 2**squarings, slope / 2**squarings
        return cls(2 * centre, slope, -slope * centre, a, b, exp(centre) * 2.0**2**squarings, squarings)

    def __call__(self, t: Array, spare: Array) -> Array:
        """Return exp(x) / factor from t = slope · x + offset, in place of the spare array and at the cost of t."""
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
    """Return those for a type of numbers, of ever wider ranges; none if it is neither float64 nor float32."""
    return tuple(Exponential.with_squarings(s, TOLERANCE[name]) for s in range(SQUARINGS.get(name, -1) + 1))


def _letters(tolerance: float) -> tuple[float, float, float, float]:
    """Return how far w may be from 0 for a quotient of this error, and the slope in w, a and b."""
    left_out = DEGREE + 2  # the first power left out of w C; the polynomial nearest to it is 2^6 times nearer
    reach = (2 * tolerance * 2 ** (left_out - 1) / COTH[left_out // 2]) ** (1 / left_out)
    powers = reach ** np.arange(2 * len(COTH))
    series = np.zeros(2 * len(COTH))
    series[1::2] = COTH
    nearest = chebyshev.cheb2poly(chebyshev.poly2cheb(series * powers)[: DEGREE + 1]) / powers[: DEGREE + 1]
    zeroth, second, fourth = nearest[1::2]  # C = zeroth + second w² + fourth w⁴
    slope, middle = np.cbrt(-fourth), second / (2 * fourth)  # this slope makes E + t as many times C − w as E of C
    return reach, float(slope), float(slope**2 * middle), float(slope**4 * (zeroth / fourth - middle**2))
