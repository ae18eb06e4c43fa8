"""Kernels of the distance ‖x − y‖, with a bandwidth σ that may be learnt from the sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import gammaln, kve

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import positive
from muhat.kernels import _tiles as tiles
from muhat.kernels._bandwidth import median_distance
from muhat.kernels._base import Kernel
from muhat.kernels._products import by_tiles


@dataclass
class Radial(Kernel):
    """k(x, y) = profile(−‖x − y‖²/2σ²), with profile(0) = 1."""

    bandwidth: float | Literal["median"] = "median"
    smooth: ClassVar[bool] = True

    def profile(self, exponent: Array) -> Array:
        """Return the kernel's value at exponent = −‖x − y‖²/2σ²; may work in place."""
        raise NotImplementedError

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j)."""
        return self._pairs(X, Y).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return by_tiles(self._pairs(X, Y), V)

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.radial(X, Y, self._sigma(), self.profile, self.smooth)

    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i) = 1."""
        return np.ones(len(X), X.dtype)

    def resolve(self, X: Array) -> Self:
        """Return the kernel with its bandwidth a number: σ² the median of ‖x_i − x_j‖², i < j, if 'median'."""
        return replace(self, bandwidth=self._median(X) if self._is_median else self._sigma())

    @property
    def bound(self) -> float:
        """κ² = 1."""
        return 1.0

    def _median(self, X: Array) -> float:
        return median_distance(X, "euclidean")

    @property
    def _is_median(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "median"

    def _sigma(self) -> float:
        if self._is_median:
            needed = "a number is needed for the bandwidth before the kernel is called"
            raise ValueError(refusal(type(self).__name__, needed, "'median'", "call resolve(X) to learn it from X"))
        return positive(self, "bandwidth", self.bandwidth, ", or 'median'")


@dataclass
class Gaussian(Radial):
    """k(x, y) = exp(−‖x − y‖²/2σ²).

    Parameters
    ----------
    bandwidth : float or 'median', default='median'
        σ; 'median' is the paper's rule, σ² = median of ‖x_i − x_j‖² over the pairs i < j.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(bandwidth=1.0)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    def profile(self, exponent: Array) -> Array:
        """exp(−‖x − y‖²/2σ²)."""
        return np.exp(exponent, out=exponent)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j); that of X itself, whose rank may be asked for, to the last digit."""
        return (super()._pairs(X, None) if Y is None else self._pairs(X, Y)).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        rows = tiles.from_the_centre(X)
        columns = rows if Y is None else tiles.from_the_centre(Y)
        values = super()._product(X[rows], V[columns], None if Y is None else Y[columns])
        product = np.empty_like(values)
        product[rows] = values
        return product

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.gaussian(X, Y, self._sigma())


@dataclass
class Matern(Radial):
    """The Matérn kernel, 2^(1−ν)/Γ(ν) · (√(2ν) r)^ν K_ν(√(2ν) r) with r = ‖x − y‖/σ.

    Parameters
    ----------
    bandwidth : float or 'median', default='median'
        σ; 'median' is the square root of the median of ‖x_i − x_j‖² over the pairs i < j.
    nu : float, default=1.5
        Smoothness ν > 0; 1/2, 3/2 and 5/2 have closed forms, infinity is the Gaussian kernel.
    """

    nu: float = 1.5

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the profile has a slope at zero, so that a rounding error in ‖x − y‖² stays one."""
        return self._order > 1

    @property
    def _order(self) -> float:
        endless = isinstance(self.nu, float) and self.nu == np.inf
        return np.inf if endless else positive(self, "nu", self.nu, ", or infinity")

    def profile(self, exponent: Array) -> Array:
        """Return the kernel's value at −‖x − y‖²/2σ²."""
        nu = self._order
        if nu == np.inf:
            return np.exp(exponent)
        if nu > LARGE_ORDER:
            return np.exp(_log_matern_of_large_order(exponent, nu))
        scaled = np.sqrt(-4 * nu * exponent)
        if nu == 0.5:
            return np.exp(-scaled)
        if nu == 1.5:
            return (1 + scaled) * np.exp(-scaled)
        if nu == 2.5:
            return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
        apart = np.maximum(scaled, np.finfo(scaled.dtype).tiny ** 0.5)
        # In logarithms, because K_ν is large near zero; kve is K_ν without its decay exp(−scaled).
        logarithm = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(apart) + np.log(kve(nu, apart)) - apart
        # So near zero that K_ν overflows, the leading term of its power series is all there is: 1 − z²/4(ν − 1).
        square = np.minimum(scaled, 1) ** 2
        near_zero = 1 + square / (4 * (1 - nu)) * (1 + square / (8 * (2 - nu))) if nu > 2 else 1.0
        where_unknown = np.where(scaled < 1, near_zero, 0.0)  # kve gives up beyond a distance of 1e9, too
        return np.where(np.isfinite(logarithm), np.exp(np.minimum(logarithm, 0)), where_unknown).astype(exponent.dtype)


LARGE_ORDER = 100.0
"""The order ν from which on the Matérn kernel is computed by its expansion in 1/ν, to 1e-11."""


def _log_matern_of_large_order(exponent: Array, nu: float) -> Array:
    """Return log k by Debye's expansion of K_ν and Stirling's of Γ(ν), whose large terms cancel in closed form."""
    w = np.sqrt(1 - 4 * exponent / nu)  # √(1 + x²) with νx = √(2ν)‖x − y‖/σ
    excess = -4 * exponent / nu / (1 + w)  # w − 1
    t = 1 / w
    u1 = (3 * t - 5 * t**3) / 24
    u2 = (81 * t**2 - 462 * t**4 + 385 * t**6) / 1152
    u3 = (30375 * t**3 - 369603 * t**5 + 765765 * t**7 - 425425 * t**9) / 414720
    u4 = (4465125 * t**4 - 94121676 * t**6 + 349922430 * t**8 - 446185740 * t**10 + 185910725 * t**12) / 39813120
    debye = np.log1p(-u1 / nu + u2 / nu**2 - u3 / nu**3 + u4 / nu**4)
    stirling = 1 / (12 * nu) - 1 / (360 * nu**3) + 1 / (1260 * nu**5)
    return nu * (np.log1p(excess / 2) - excess) - np.log(w) / 2 + debye - stirling


@dataclass
class RationalQuadratic(Radial):
    """k(x, y) = (1 + ‖x − y‖²/2ασ²)^(−α): Gaussian kernels of many bandwidths at once.

    Parameters
    ----------
    bandwidth : float or 'median', default='median'
        σ; 'median' is the square root of the median of ‖x_i − x_j‖² over the pairs i < j.
    alpha : float, default=1.0
        α > 0; the smaller, the heavier the tails.
    """

    alpha: float = 1.0

    def profile(self, exponent: Array) -> Array:
        """Return the kernel's value at −‖x − y‖²/2σ²."""
        alpha = positive(self, "alpha", self.alpha)
        return np.exp(-alpha * np.log1p(-exponent / alpha))


@dataclass
class InverseMultiquadric(Radial):
    """k(x, y) = (1 + ‖x − y‖²/σ²)^(−1/2).

    Parameters
    ----------
    bandwidth : float or 'median', default='median'
        σ; 'median' is the square root of the median of ‖x_i − x_j‖² over the pairs i < j.
    """

    def profile(self, exponent: Array) -> Array:
        """Return the kernel's value at −‖x − y‖²/2σ²."""
        return 1 / np.sqrt(1 - 2 * exponent)


@dataclass
class Laplacian(Radial):
    """k(x, y) = exp(−‖x − y‖₁/σ).

    Parameters
    ----------
    bandwidth : float or 'median', default='median'
        σ; 'median' is the median of ‖x_i − x_j‖₁ over the pairs i < j.
    """

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.laplacian(X, Y, self._sigma())

    def _median(self, X: Array) -> float:
        return median_distance(X, "cityblock")
