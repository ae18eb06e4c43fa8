"""Intervals with a promise of coverage.

Which left-out residual they reach to, and the rows that calibrate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from muhat._arrays import Array
from muhat.errors import MuhatError
from muhat.kernels import Kernel

INTERVALS = ("residuals", "jackknife+", "conformal")
"""How intervals are made."""

QUANTILES = ("residuals", "weights")
"""How quantiles are made."""

PRIOR_ROWS = 5.0
"""Rows of average error that are added to those near x to estimate the size of errors."""

NEARNESS_POWER = 4
"""The power of k(x, x_i) that says which rows are near x.

For the Gaussian kernel, half of its bandwidth.
"""

CALIBRATION_SHARE = 1 / 3
"""The share of rows that conformal intervals are calibrated on."""


def checked_confidence(
    who: str, confidence: Any, n: int | None = None, noun: str = "rows"
) -> float:
    """Return a confidence between 0 and 1; raise MuhatError if it is invalid.

    Of n rows, or of what else the noun says, also one that these do not reach.
    """
    is_number = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not is_number or not 0 < float(confidence) < 1:
        advice = ""
        if is_number and 10 <= float(confidence) < 100:  # meant as a percentage
            advice = f"for {confidence:g} % give {float(confidence) / 100:g}"
        raise MuhatError(who, "confidence must be between 0 and 1", repr(confidence), advice)
    level = float(confidence)
    if n is not None and floor(round((1 - level) / 2 * (n + 1), 9)) < 1:
        least = ceil(round(2 / (1 - level) - 1, 9))
        needed = f"confidence {level:g} needs at least {least} {noun}"
        most = (
            floor(round(100 * (1 - 2 / (n + 1)), 9)) / 100
        )  # in whole percents, what n rows reach
        advice = f"give more {noun}"
        if most > 0:
            advice = f"use a confidence of {most:g} or less"
        raise MuhatError(who, needed, n, advice)
    return level


def checked_place(who: str, level: float, n: int, got: Any = None, noun: str = "rows") -> int:
    """Return ⌈level (n + 1)⌉, the place of the conformal quantile among n ascending values.

    It is exceeded with probability 1 − level at most.
    """
    place = ceil(round(level * (n + 1), 9))
    if place > n:
        least = ceil(round(level / (1 - level), 9))
        needed = f"confidence {level:g} needs at least {least} {noun}"
        if got:
            needed += " for calibration"
        if got is None:
            got = n
        raise MuhatError(who, needed, got, "use a lower confidence")
    return place


def check_calibration(who: str, level: float, n: int, noun: str = "rows") -> None:
    """Raise MuhatError if too few rows are left for calibration at that level."""
    held_out = floor(CALIBRATION_SHARE * n)
    checked_place(who, level, held_out, f"{n} {noun}, {held_out} of them for calibration", noun)


def calibrated(
    model: Any, X: Array, y: Array, is_pairwise: bool = False, groups: Array | None = None
) -> tuple[Any, Array | None, Array]:
    """Return a model of two thirds of the rows, its columns of X, and the others' |residuals|.

    The model is a clone of an estimator or pipeline, of which no part sees the rows that calibrate.
    Rows of a group, which are copies of each other, are held out together, and one of them
    calibrates.
    """
    if groups is None:
        groups = np.arange(len(X))
    _, first = np.unique(groups, return_index=True)
    order = np.random.default_rng(0).permutation(len(first))
    held_out = floor(CALIBRATION_SHARE * len(first))
    some, rest = np.sort(first[order[:held_out]]), np.flatnonzero(np.isin(groups, order[held_out:]))
    if (y[rest] == y[rest][0]).all():
        needed = "y must vary in the two thirds of the rows that the model is fitted to"
        advice = "use method='jackknife+' or 'residuals'"
        raise MuhatError("method='conformal'", needed, "one value", advice)
    columns: Array | None = None
    taken: Any = slice(None)
    if is_pairwise:
        columns = taken = rest
    fitted = clone(model).fit(X[rest][:, taken], y[rest])
    return (
        fitted,
        columns,
        np.abs(y[some] - fitted.predict(X[some][:, taken])).reshape(held_out, -1),
    )


def reach_of(who: str, level: float, gaps: Array) -> Array:
    """Return the half width of conformal intervals for each output, from residuals.

    These are the residuals of the rows that calibrate.
    """
    place = checked_place(who, level, len(gaps)) - 1
    return np.partition(gaps, place, axis=0)[place]


def widened_to(ends: Array, predictions: Array) -> Array:
    """Return intervals that contain the predictions: shapes (…, 2) and (…)."""
    lower = np.minimum(ends[..., 0], predictions)
    upper = np.maximum(ends[..., 1], predictions)
    return np.stack([lower, upper], axis=-1)


@dataclass(frozen=True, eq=False)
class ResidualQuantiles:
    """Quantiles of y around a prediction.

    Those of left-out residuals, scaled by the size of errors near x.

    With the absolute residual a_i of row i, the size of errors at x is a mean of the a_i near x,

        s(x) = (Σ_i v_i a_i + c ā)/(Σ_i v_i + c),  v_i = n p_i (k(x, x_i)/k(x, x))^4,  c = 5 rows of
        average size ā,

    and the quantile q of y at x is the prediction plus s(x) times the quantile q of
    R_i/s_(−i)(x_i), where s_(−i) does not know row i. Kernels that may be negative say nothing of
    nearness: for these s is one.
    """

    kernel: Kernel | None
    points: Array
    """x of the rows that calibrate, as the kernel sees it."""
    sizes: Array
    """Their absolute residuals, of shape (n, n_outputs)."""
    masses: Array
    """With sum one."""
    scaled: Array
    """Their residuals, each divided by s_(−i)(x_i)."""

    @classmethod
    def from_residuals(
        cls, kernel: Kernel, points: Array | None, residuals: Array, masses: Array
    ) -> ResidualQuantiles:
        """Calibrate with rows and their left-out residuals, of shape (n, n_outputs)."""
        masses, sizes = masses / masses.sum(), np.abs(residuals)
        if points is None or not kernel.nonnegative:
            return cls(None, np.empty((0, 0)), sizes, masses, residuals)
        near = _nearness(kernel, points, points)
        np.fill_diagonal(near, 0)
        scales = _scales(near, sizes, masses)
        scaled = np.divide(residuals, scales, out=np.zeros_like(residuals), where=scales > 0)
        return cls(kernel, points, sizes, masses, scaled)

    def around(self, X: Array, levels: Array) -> Array:
        """Return quantiles of y minus the prediction at new points.

        Shape (m, n_outputs, levels).
        """
        quantiles = np.stack([self._quantile(level) for level in levels], axis=-1)
        if self.kernel is None:
            return np.broadcast_to(quantiles, (len(X), *quantiles.shape))
        scales = _scales(_nearness(self.kernel, X, self.points), self.sizes, self.masses)
        return scales[:, :, None] * quantiles

    def check_levels(self, who: str, levels: Array) -> None:
        """Raise MuhatError for levels so near zero or one that the rows do not reach them."""
        extreme = float(np.minimum(levels, 1 - levels).min())
        if floor(round(extreme * (self._n + 1), 9)) < 1:
            low = (levels <= 0.5) & (np.minimum(levels, 1 - levels) == extreme)
            asked = 1 - extreme
            if low.any():
                asked = extreme
            needed = (
                f"the quantile {asked:.3g} needs at least {ceil(round(1 / extreme - 1, 9))} rows"
            )
            raise MuhatError(who, needed, f"{self._n:.0f}", "use a quantile closer to the median")

    @property
    def _n(self) -> float:
        """How many rows of equal mass know as much: 1/Σ p_i²."""
        return 1 / float((self.masses**2).sum())

    def _quantile(self, level: float) -> Array:
        """Return a quantile of the scaled residuals for each output, rounded away from the median.

        Of n rows of one mass, the ⌊level (n + 1)⌋-th smallest below the median and the ⌈level (n +
        1)⌉-th above.
        """
        if level < 0.5:
            return -self._upper(-self.scaled, 1 - level)
        if level > 0.5:
            return self._upper(self.scaled, level)
        return (self._upper(self.scaled, level) - self._upper(-self.scaled, level)) / 2

    def _upper(self, values: Array, level: float) -> Array:
        order = np.argsort(values, axis=0, kind="stable")
        cumulated = np.cumsum(self.masses[order], axis=0) * self._n
        reached = cumulated >= level * (self._n + 1) - 1e-9 * self._n
        reached[-1] = True
        place = reached.argmax(axis=0)[None]
        return np.take_along_axis(values, np.take_along_axis(order, place, axis=0), axis=0)[0]


def _nearness(kernel: Kernel, X: Array, points: Array) -> Array:
    """Return (k(x, x_i)/k(x, x))^4 for kernels whose k(x, x) is the same everywhere."""
    near: Array = (kernel(X, points) / kernel.bound) ** NEARNESS_POWER
    return near


def _scales(near: Array, sizes: Array, masses: Array) -> Array:
    """Return the size of errors at points: shape (points, n_outputs).

    ``near`` says how near all rows are.
    """
    counts = near * (masses * len(masses))
    return (counts @ sizes + PRIOR_ROWS * (masses @ sizes)) / (
        counts.sum(axis=1, keepdims=True) + PRIOR_ROWS
    )
