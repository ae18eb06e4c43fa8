"""What the theorems are asked about: numbers above a least one, and filters on [0, κ²]."""

from numbers import Real
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Filter

SLACK = 1e-6
"""The relative excess over a bound that counts as rounding."""


def above(who: str, name: str, value: Any, least: float) -> float:
    """Return a parameter as a float above the least, or refuse it."""
    if isinstance(value, Real) and not isinstance(value, bool) and least < float(value) < np.inf:
        return float(value)
    raise ValueError(refusal(who, f"{name} must be above {least:g} and finite", repr(value)))


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
