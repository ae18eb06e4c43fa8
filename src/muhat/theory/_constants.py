"""The constants of Definition 1 on [0, κ²], with r_λ = 1 − s_λ.

|s_λ(γ)| ≤ B, |r_λ(γ)| ≤ C and |r_λ(γ)| γ^η ≤ D(η) λ^η.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.filters import Filter


@dataclass(frozen=True)
class Constants:
    """The constants of Definition 1, D at each exponent η; NaN where a filter states none."""

    B: float
    C: float
    D: Array
    qualification: float


def stated_constants(filter: Filter, exponents: Sequence[float], kappa2: float) -> Constants:
    """Return the constants that a filter states."""
    D = np.array([filter.D(eta, kappa2) for eta in exponents])
    return Constants(filter.B, filter.C, D, filter.qualification)
