"""Means with their confidence intervals, over independent samples."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from paper._arrays import Array

LEVEL = 0.95
"""The confidence of every interval."""


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval."""

    value: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """Return it as three columns of a table."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def mean_of(values: Array) -> Interval:
    """Return the mean of independent values.

    Examples
    --------
    >>> mean_of(np.array([1.0, 3.0])).value
    2.0
    """
    return _around(float(np.mean(values)), _standard_error(values), len(values))


def improvement(losses: Array, baseline: Array) -> Interval:
    """Return 100 (R − R_λ)/R, R and R_λ the means of paired losses; its error by the delta method.

    Examples
    --------
    >>> improvement(np.array([1.0, 1.0]), np.array([2.0, 2.0])).value
    50.0
    """
    risk = float(np.mean(baseline))
    if risk == 0:
        return Interval(0.0, 0.0, 0.0)
    ratio = float(np.mean(losses)) / risk
    return _around(
        100 * (1 - ratio), 100 * _standard_error(losses - ratio * baseline) / risk, len(losses)
    )


def _standard_error(values: Array) -> float:
    if len(values) > 1:
        return float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return float("nan")


def _around(value: float, error: float, n: int) -> Interval:
    if n > 1:
        reach = error * float(student.ppf((1 + LEVEL) / 2, n - 1))
    else:
        reach = float("nan")
    return Interval(value, value - reach, value + reach)
