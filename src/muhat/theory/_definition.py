"""Definition 1: the constants of a filter, stated and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import above
from muhat.filters import Filter

SLACK = 1e-6
"""The relative excess over a bound that counts as rounding."""

EIGENVALUES = 4001
"""Values of γ in [0, κ²] at which Definition 1 is checked, in each of two spacings."""

EXPONENTS = (0.25, 0.5, 1.0, 2.0)
"""Exponents η at which (C3) is checked where the qualification is infinite or not stated."""

VISIBLE = 1e-10
"""Residuals |r_λ| below this are taken for zero: 1 − s_λ has lost their digits."""


@dataclass(frozen=True)
class Constants:
    """The constants of Definition 1, D at every exponent η that was looked at; NaN where a filter states none."""

    B: float
    C: float
    D: Array
    qualification: float


@dataclass(frozen=True)
class Definition1:
    """Definition 1, checked: for all λ looked at, |s_λ| ≤ B, |r_λ| ≤ C and |r_λ(γ)|γ^η ≤ D(η)λ^η on [0, κ²].

    Attributes
    ----------
    lambdas, exponents : array
        The λ and η it was checked for.
    measured : Constants
        The least constants that do; the qualification is the slope of log|r_λ| in log λ above κ²/2, at the two smallest
        λ where a residual can be seen: infinite where none can, NaN where one λ alone shows it.
    stated : Constants
        The filter's own.
    holds : bool
        Whether the filter states B, C and D and none is exceeded.
    """

    lambdas: Array
    exponents: Array
    measured: Constants
    stated: Constants
    holds: bool


def check_definition_1(
    filter: Filter, parameters: Any, kappa2: float = 1.0, exponents: Sequence[float] | None = None
) -> Definition1:
    """Measure the constants of Definition 1 for any filter, and compare them with those that it states.

    Parameters
    ----------
    filter : Filter
        The filter, which is first bound to κ².
    parameters : array
        Its parameters: those that act as a λ ≤ κ², which is the family that Definition 1 speaks of.
    kappa2 : float, default=1.0
        κ²: the eigenvalues are in [0, κ²].
    exponents : sequence of float, default=None
        η in (0, η0]; by default four up to the qualification η0, or up to 2 where it is infinite or not stated.

    Examples
    --------
    >>> from muhat.filters import Tikhonov
    >>> check = check_definition_1(Tikhonov(), [0.001, 0.01, 0.1])
    >>> check.holds, round(check.measured.qualification, 2)
    (True, 0.99)
    """
    kappa2 = above("check_definition_1", "kappa2", kappa2, 0)
    filter = bound_to(filter, kappa2)
    grid = filter.check(parameters)
    lambdas = lambdas_of("check_definition_1", filter, grid, kappa2)
    etas = _exponents(filter, exponents)

    angles = np.linspace(0, np.pi, EIGENVALUES)  # as dense at both ends as a polynomial's oscillations are
    small = np.geomspace(1e-12 * kappa2, kappa2, EIGENVALUES)
    gamma = np.unique(np.concatenate([kappa2 * np.sin(angles / 2) ** 2, small, np.nextafter(lambdas, 0)]))
    gamma = gamma[gamma <= kappa2]
    s = filter.path(gamma, grid)
    r = np.abs(1 - s)
    r[r < VISIBLE] = 0
    D = [float(((r * gamma**eta).max(axis=1) / lambdas**eta).max()) for eta in etas]
    measured = Constants(float(np.abs(s).max()), float(r.max()), np.array(D), _slope(lambdas, r[:, gamma > kappa2 / 2]))
    stated = Constants(filter.B, filter.C, np.array([filter.D(eta, kappa2) for eta in etas]), filter.qualification)
    pairs = [(measured.B, stated.B), (measured.C, stated.C), *zip(measured.D, stated.D, strict=True)]
    holds = all(least <= constant * (1 + SLACK) for least, constant in pairs)
    return Definition1(lambdas, np.array(etas), measured, stated, holds)


def bound_to(filter: Filter, kappa2: float) -> Filter:
    """Return the filter for eigenvalues in [0, κ²]."""
    bound = filter.bounded_by(kappa2)
    if not isinstance(bound, Filter):
        raise TypeError(refusal("theory", "a filter s_λ(γ) is needed", repr(bound)))
    return bound


def lambdas_of(who: str, filter: Filter, grid: Array, kappa2: float) -> Array:
    """Return the λ that parameters act as, none beyond κ², where Definition 1 ends."""
    lambdas = np.array([filter.as_lambda(parameter) for parameter in grid.tolist()])
    if lambdas.max() > kappa2 * (1 + SLACK):
        needed = f"the parameter must act as a λ of at most κ² = {kappa2:.6g}"
        raise ValueError(refusal(who, needed, f"λ = {lambdas.max():.6g}"))
    return lambdas


def _exponents(filter: Filter, exponents: Sequence[float] | None) -> list[float]:
    """Return the exponents to check (C3) at, none beyond the qualification."""
    limit = filter.qualification
    if exponents is None:
        return [limit * share for share in (0.25, 0.5, 0.75, 1.0)] if np.isfinite(limit) else list(EXPONENTS)
    etas = [above("check_definition_1", "exponents", eta, 0) for eta in exponents]
    if not etas or max(etas) > limit:
        needed = f"exponents must be some, and at most the filter's qualification {limit:g}"
        raise ValueError(refusal("check_definition_1", needed, etas))
    return etas


def _slope(lambdas: Array, residuals: Array) -> float:
    """Return the slope of log max|r_λ| in log λ at the two smallest λ where most is kept and a rest can be seen."""
    order = np.argsort(lambdas)
    lambdas, left = lambdas[order], residuals[order].max(axis=1)
    seen = np.flatnonzero((left > 0) & (left < 0.5))[:2]
    if len(seen) < 2:
        return float("nan") if left[0] > 0 else float("inf")
    return float(np.diff(np.log(left[seen]))[0] / np.diff(np.log(lambdas[seen]))[0])
