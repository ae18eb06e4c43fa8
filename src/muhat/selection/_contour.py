"""Functions of a matrix as sums of resolvents: a contour around the spectrum that knows its own error.

By Cauchy's formula s(A) = (1/2πi) ∮ s(z) (z − A)⁻¹ dz; with the trapezoidal rule this is a rational function of A. How
far that function is from s can be looked at directly, on [0, γ_max], because leaving a point out moves no eigenvalue
out of that interval; and so can how much its terms cancel. So contours are tried until one is accurate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from muhat._arrays import Array
from muhat.filters import Filter

ACCURATE = 1e-11
CANCELLED = 4e5
"""How large sums on a contour may be, in units of what they cancel to: rounding then stays below 1e-10."""

DIGITS = 13.5
"""The rule's error is about exp(−2 · DIGITS) before rounding."""

CHECKED = np.concatenate([[0.0], np.geomspace(1e-16, 1, 64), (1 - np.cos(np.linspace(0.02, 3.1, 33))) / 2])
"""Where on [0, 1] the rational function is compared with the filter."""


@dataclass(frozen=True)
class Interval:
    """Where the eigenvalues of A without a point can be: in [0, largest], and in [0, bound] once divided by its scale.

    Parameters
    ----------
    largest : float
        The largest eigenvalue; contours around [0, 1] are stretched by it.
    scales : array
        1 − p_i, the mass that is left without point i; filters are evaluated at γ/scale.
    bound : float
        max k(x_i, x_i), which no eigenvalue of a covariance exceeds.
    """

    largest: float
    scales: Array
    bound: float


@dataclass(frozen=True, eq=False)
class Contour:
    """The upper half of a closed curve around [0, 1]; the lower half follows by conjugation."""

    nodes: Array
    steps: Array
    """dz/2πi at each node."""

    @cached_property
    def resolvents(self) -> Array:
        """1/(z − x) times the step, at the points x that are checked: shape (nodes, points)."""
        return self.steps[:, None] / (self.nodes[:, None] - CHECKED)

    def error(self, filter: Filter, grid: Array, interval: Interval) -> float:
        """Return the largest error, over a grid, of what is integrated to score a filter: r, r², γr and γr², r = 1 − s.

        Infinite where the sums on the contour are so large that rounding alone could spoil what they cancel to.
        """
        worst = 0.0
        for scale in {interval.scales.min(), interval.scales.max()}:
            within = interval.largest * CHECKED <= scale * interval.bound
            s, finite = self._path(filter, grid, self.nodes * (interval.largest / scale))
            exact, exactly = self._path(filter, grid, CHECKED[within] * (interval.largest / scale))
            if not (finite and exactly):
                return np.inf
            for values, true in ((1 - s, 1 - exact), ((1 - s) ** 2, (1 - exact) ** 2)):
                if float((np.abs(values) @ np.abs(self.resolvents)).max()) > CANCELLED:
                    return np.inf
                for power in (0, 1):
                    sums = 2 * np.real((values * self.nodes**power) @ self.resolvents[:, within])
                    worst = max(worst, float(np.abs(sums - true * CHECKED[within] ** power).max()))
                worst = max(worst, float(np.abs(2 * np.real(values @ self.steps)).max()))
        return worst

    @staticmethod
    def _path(filter: Filter, grid: Array, points: Array) -> tuple[Array, bool]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                values = filter.path(points, grid)
        except (TypeError, np.exceptions.ComplexWarning):  # a function of real numbers only
            return points, False
        return values, bool(np.isfinite(values).all() and (np.abs(values) < 1e100).all())


@dataclass(frozen=True, order=True)
class Ellipse:
    """The shape of a contour: an ellipse with the foci 0 and 1, in z or in the logarithm of z + distance.

    Parameters
    ----------
    nodes : int
        The number of nodes on its upper half.
    distance : float
        Zero for an ellipse in z. In the logarithm, nodes crowd towards 0 and the contour keeps right of −distance.
    log_rho : float
        The logarithm of the ellipse's parameter: the larger, the rounder.
    """

    nodes: int
    distance: float
    log_rho: float

    @lru_cache(maxsize=256)  # noqa: B019 — shapes are few and small
    def contour(self) -> Contour:
        """Return the contour of this shape."""
        low, high = (np.log(self.distance), np.log1p(self.distance)) if self.distance else (0.0, 1.0)
        w = np.exp(self.log_rho + 1j * np.pi * (np.arange(self.nodes) + 0.5) / self.nodes)
        u = (low + high) / 2 + (high - low) / 4 * (w + 1 / w)
        du = (high - low) / 4 * (w - 1 / w) / (2 * self.nodes)
        return Contour(np.exp(u) - self.distance, np.exp(u) * du) if self.distance else Contour(u, du)


def _slim(nodes: int) -> Ellipse:
    """An ellipse for polynomials of a degree of about the number of nodes."""
    return Ellipse(nodes, 0.0, DIGITS / nodes)


def _in_logarithm(distance: float, height: float, share: float, margin: float) -> Ellipse:
    """An ellipse in the logarithm that goes a share of the way to an ellipse of that height."""
    log_rho = float(share * np.arcsinh(2 * height / np.log1p(1 / distance)))
    return Ellipse(max(8, int(margin * DIGITS / log_rho)), distance, log_rho)


def _before_poles(distance: float, margin: float) -> Ellipse:
    """An ellipse nearly half-way to poles left of −distance, at height π, which may be of high order."""
    return _in_logarithm(distance, np.pi, 0.42, margin)


def _along_decay(distance: float, margin: float) -> Ellipse:
    """An ellipse for what decays like exp(−z/distance): so flat that it decays on the ellipse too."""
    return _in_logarithm(distance, 0.8, 1.0, margin)


def _ladder(reach: float, only_likely: bool) -> list[Ellipse]:
    """Return shapes to try, likely ones first, then others, if wanted; of both, the cheapest first.

    A filter that acts like λ = reach · γ_max has its poles, if it has any, that far from zero; if it decays, it does so
    over that length; and if it is a polynomial that is best on an interval, its degree is about reach^(−1/2).
    """
    slim = [_slim(quarters * 2**k // 4) for k in range(4, 13) for quarters in (4, 5, 6, 7)]
    likely = [shape for shape in slim if shape.nodes**2 > 2 / reach]
    likely += [_before_poles(distance, margin) for distance in (reach, reach / 16) for margin in (1.05, 1.4)]
    likely += [_along_decay(distance, margin) for distance in (4 * reach, reach) for margin in (1.0, 1.3)]
    if only_likely:
        return sorted(likely)
    others = [shape for shape in slim if shape.nodes**2 <= 2 / reach]
    others += [_before_poles(10.0**-k, 1.4) for k in range(0, 17, 2)]
    return sorted(likely) + sorted(others)


def accurate_contour(filter: Filter, grid: Array, interval: Interval) -> Contour | None:
    """Return a cheap contour around [0, 1] on which a filter is accurate for its whole grid, if there is one."""
    reach = min(filter.as_lambda(grid[0]), filter.as_lambda(grid[-1])) / interval.largest
    stated = type(filter).as_lambda is not Filter.as_lambda
    contours = (shape.contour() for shape in _ladder(min(reach, 1.0), only_likely=stated))
    return next((contour for contour in contours if is_accurate(contour, filter, grid, interval)), None)


def is_accurate(contour: Contour, filter: Filter, grid: Array, interval: Interval) -> bool:
    """Whether a contour is accurate for a filter's whole grid; its ends, the likeliest to fail, are looked at first."""
    return all(contour.error(filter, part, interval) <= ACCURATE for part in (grid[[0, -1]], grid))
