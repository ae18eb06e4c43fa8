"""The constants of Definition 1: |s_λ| ≤ B, |r_λ| ≤ C and |r_λ(γ)|γ^η ≤ D(η)λ^η on [0, κ²], r_λ = 1 − s_λ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gamma, jv

from muhat._arrays import Array
from muhat.filters import KME, Filter, IteratedTikhonov, Landweber, NuMethod
from muhat.filters._spectral import Showalter, SimpleShrinkage, Tikhonov, TruncatedSVD

OURS = (
    KME,
    SimpleShrinkage,
    Tikhonov,
    IteratedTikhonov,
    Landweber,
    NuMethod,
    Showalter,
    TruncatedSVD,
)
"""The filters whose constants are known."""


@dataclass(frozen=True)
class Constants:
    """The constants of Definition 1, D at every exponent η that was looked at; NaN where a filter states none."""

    B: float
    C: float
    D: Array
    qualification: float


def stated_constants(filter: Filter, exponents: Sequence[float], kappa2: float) -> Constants:
    """Return the constants of a filter: what is proven of ours, and ``B``, ``C`` and ``D(η, κ²)`` of your own."""
    if type(filter) not in OURS:
        own: Any = filter
        D = [own.D(eta, kappa2) if hasattr(own, "D") else np.nan for eta in exponents]
        return Constants(
            getattr(own, "B", np.nan), getattr(own, "C", np.nan), np.array(D), filter.qualification
        )
    B = (
        filter.coefficients(1)[1] if isinstance(filter, NuMethod) else 1.0
    )  # its first step overshoots at γ = κ²
    C = 0.0 if isinstance(filter, KME) else 1.0
    return Constants(
        B, C, np.array([_residual(filter, eta, kappa2) for eta in exponents]), filter.qualification
    )


def _residual(filter: Filter, eta: float, kappa2: float) -> float:
    """Return D(η), the largest |r_λ(γ)| (γ/λ)^η."""
    match filter:
        case KME():
            return 0.0
        case SimpleShrinkage():  # |r_λ| = λ/(1+λ) ≤ λ^η for η ≤ 1, and γ^η ≤ κ^(2η)
            return kappa2**eta
        case Tikhonov() | IteratedTikhonov():  # (λ/(γ+λ))^t (γ/λ)^η is largest at γ/λ = η/(t−η)
            t = getattr(filter, "order", 1)
            return float(eta**eta * (t - eta) ** (t - eta) / t**t)
        case (
            Landweber() | Showalter()
        ):  # (1 − γ/κ²)^t ≤ exp(−tγ/κ²), and exp(−γ/λ) (γ/λ)^η is largest at γ/λ = η
            return float((eta / np.e) ** eta)
        case NuMethod():  # for long iterations p_t tends to Γ(2ν+½) (z/2)^(½−2ν) J_(2ν−½)(z)
            order = 2 * filter.nu - 0.5
            z = np.linspace(1e-3, 50 + 10 * order, 20_000)
            return float(
                gamma(order + 1) * ((z / 2) ** (2 * eta - order) * np.abs(jv(order, z))).max()
            )
    return 1.0  # of truncated SVD, γ < λ wherever r_λ = 1
