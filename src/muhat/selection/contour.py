"""Functions of a matrix as sums of resolvents: a contour around the spectrum that knows its own error.

By Cauchy's formula s(A) = (1/2πi) ∮ s(z) (z − A)⁻¹ dz; with the trapezoidal rule this is a rational function of A. How
far that function is from s on [0, γ_max] can be looked at directly, and bounds the error of everything computed with
it, because leaving a point out moves no eigenvalue out of that interval. So contours are tried until one is accurate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from muhat.arrays import Array
from muhat.filters import Filter

ACCURATE = 1e-11
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
        """Return the largest error, over a grid, of what is integrated to score a filter: s, s² and γs²."""
        worst = 0.0
        for scale in {interval.scales.min(), interval.scales.max()}:
            within = interval.largest * CHECKED <= scale * interval.bound
            s, finite = self._path(filter, grid, self.nodes * (interval.largest / scale))
            exact, exactly = self._path(filter, grid, CHECKED[within] * (interval.largest / scale))
            if not (finite and exactly):
                return np.inf
            for power, values, true in ((0, s, exact), (0, s**2, exact**2), (1, s**2, exact**2)):
                sums = 2 * np.real((values * self.nodes**power) @ self.resolvents[:, within])
                worst = max(worst, float(np.abs(sums - true * CHECKED[within] ** power).max()))
            worst = max(worst, float(np.abs(2 * np.real(s @ self.steps)).max()))
        return worst

    @staticmethod
    def _path(filter: Filter, grid: Array, points: Array) -> tuple[Array, bool]:
        with np.errstate(all="ignore"):
            values = filter.path(points, grid)
        return values, bool(np.isfinite(values).all() and (np.abs(values) < 1e100).all())


def _ellipse(low: float, high: float, log_rho: float, nodes: int) -> tuple[Array, Array]:
    """Return points of the ellipse with foci low and high, its upper half, and du/2πi there."""
    w = np.exp(log_rho + 1j * np.pi * (np.arange(nodes) + 0.5) / nodes)
    u = (low + high) / 2 + (high - low) / 4 * (w + 1 / w)
    return u, (high - low) / 4 * (w - 1 / w) / (2 * nodes)


@lru_cache(maxsize=128)
def around_polynomials(nodes: int) -> Contour:
    """Return an ellipse around [0, 1], slim enough for polynomials of a degree of about the number of nodes."""
    return Contour(*_ellipse(0.0, 1.0, DIGITS / nodes, nodes))


@lru_cache(maxsize=128)
def between_poles(nodes: int, distance: float) -> Contour:
    """Return an ellipse in the logarithm of z + distance: between [0, 1] and poles left of −distance."""
    low, high = np.log(distance), np.log1p(distance)
    u, du = _ellipse(low, high, _log_rho(distance), nodes)
    return Contour(np.exp(u) - distance, np.exp(u) * du)


def _log_rho(distance: float) -> float:
    """Return the ellipse's parameter: nearly half-way to the poles, which may be of high order and need more room."""
    return float(0.42 * np.arcsinh(2 * np.pi / np.log1p(1 / distance)))


def _ladder(reach: float) -> list[tuple[int, float]]:
    """Return contours as numbers of nodes and distances to poles (zero: none), likely ones first, then cheap ones.

    A filter that acts like λ = reach · γ_max wants its poles, if it has any, that far away, and as a polynomial it has
    a degree of about reach^(−1/2).
    """
    sizes = [quarters * 2**k // 4 for k in range(4, 13) for quarters in (4, 5, 6, 7)]
    likely = [(nodes, 0.0) for nodes in sizes if nodes**2 > 2 / reach]
    others = [(nodes, 0.0) for nodes in sizes if nodes**2 <= 2 / reach]
    likely += [_with_poles(distance, margin) for distance in (reach, reach / 16) for margin in (1.05, 1.4)]
    others += [_with_poles(10.0**-k, 1.4) for k in range(0, 17, 2)]
    return sorted(likely) + sorted(others)


def _with_poles(distance: float, margin: float) -> tuple[int, float]:
    return max(8, int(margin * DIGITS / _log_rho(distance))), distance


def accurate_contour(filter: Filter, grid: Array, interval: Interval) -> Contour | None:
    """Return a cheap contour around [0, 1] on which a filter is accurate for its whole grid, if there is one."""
    reach = min(filter.as_lambda(grid[0]), filter.as_lambda(grid[-1])) / interval.largest
    for nodes, distance in _ladder(reach):
        contour = between_poles(nodes, distance) if distance else around_polynomials(nodes)
        if is_accurate(contour, filter, grid, interval):
            return contour
    return None


def is_accurate(contour: Contour, filter: Filter, grid: Array, interval: Interval) -> bool:
    """Whether a contour is accurate for a filter's whole grid; its ends, the likeliest to fail, are looked at first."""
    return all(contour.error(filter, part, interval) <= ACCURATE for part in (grid[[0, -1]], grid))
