"""Kernels of our own: of the inner product ⟨x, y⟩, and of the distance ‖x − y‖ in units of a bandwidth σ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import gammaln, kve

from muhat._arrays import Array, slices
from muhat._validation import as_points, as_two_samples, positive, whole_number
from muhat.errors import MuhatError
from muhat.kernels import _tiles as tiles
from muhat.kernels._base import Kernel

Metric = Literal["euclidean", "cityblock"]


@dataclass
class Linear(Kernel):
    """k(x, y) = ⟨x, y⟩: the kernel mean is the mean, and shrinking it is James–Stein's setting."""

    positive_semidefinite: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_two_samples(X, Y)
        return X @ Y.T

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return X @ ((X if Y is None else Y).T @ V)

    def diagonal(self, X: Array) -> Array:
        X = as_points(X)
        return np.einsum("ij,ij->i", X, X)


@dataclass
class Polynomial(Kernel):
    """k(x, y) = (γ⟨x, y⟩ + c)^p.

    Parameters
    ----------
    degree, gamma, coef0 : int, float and float, default=2, 1.0 and 1.0
        p ≥ 1, γ > 0 and c ≥ 0.
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0
    positive_semidefinite: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self._power(Linear()(X, Y))

    def diagonal(self, X: Array) -> Array:
        return self._power(Linear().diagonal(X))

    def _power(self, products: Array) -> Array:
        degree = whole_number(self, "degree", self.degree)
        if not isinstance(self.coef0, Real) or not self.coef0 >= 0:
            advice = "a negative one makes the kernel indefinite"
            raise MuhatError(
                "Polynomial", "coef0 must be a number, not negative", repr(self.coef0), advice
            )
        return (positive(self, "gamma", self.gamma) * products + self.coef0) ** degree


@dataclass
class Radial(Kernel):
    """k(x, y) = profile(−‖x − y‖²/2σ²), with profile(0) = 1: an exponential unless a kernel has another."""

    bandwidth: float | Literal["median"] = "median"
    translation_invariant: ClassVar[bool] = True
    positive_semidefinite: ClassVar[bool] = True
    _metric: ClassVar[Metric] = "euclidean"
    """Of the distances whose median the bandwidth may be."""
    _smooth: ClassVar[bool] = True
    """Whether the profile has a slope at zero, so that a rounding error in ‖x − y‖² stays one."""

    def _profile(self, exponent: Array) -> Array:
        return np.exp(exponent, out=exponent)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self._pairs(X, Y).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return self._pairs(X, Y).product(V)

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.radial(X, Y, self._sigma(), self._profile, self._smooth)

    def diagonal(self, X: Array) -> Array:
        X = as_points(X)
        return np.ones(len(X), X.dtype)

    def resolve(self, X: Array) -> Self:
        """Return the kernel with its bandwidth a number: σ² the median of ‖x_i − x_j‖², i < j, if 'median'."""
        bandwidth = (
            median_distance(as_points(X), self._metric) if self._is_median else self._sigma()
        )
        return replace(self, bandwidth=bandwidth)

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def _is_median(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "median"

    def _sigma(self) -> float:
        if self._is_median:
            needed = "a number is needed for the bandwidth before the kernel is called"
            raise MuhatError(
                type(self).__name__, needed, "'median'", "call resolve(X) to learn it from X"
            )
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

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j); that of X itself, whose rank is asked for, and float32 to the last digit."""
        return (super()._pairs if Y is None or np.asarray(X).dtype == np.float32 else self._pairs)(
            X, Y
        ).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        rows = tiles.from_the_centre(X)
        columns = rows if Y is None else tiles.from_the_centre(Y)
        values = super()._product(X[rows], V[columns], None if Y is None else Y[columns])
        product = np.empty_like(values)
        product[rows] = values
        return product

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.radial(X, Y, self._sigma(), self._profile, self._smooth, is_exp=True)


@dataclass
class Matern(Radial):
    """The Matérn kernel, 2^(1−ν)/Γ(ν) · (√(2ν) r)^ν K_ν(√(2ν) r) with r = ‖x − y‖/σ.

    Parameters
    ----------
    bandwidth, nu : float, default='median' and 1.5
        σ, as for Gaussian, and the smoothness ν > 0: 1/2, 3/2 and 5/2 have closed forms, infinity is the Gaussian.
    """

    nu: float = 1.5

    @property
    def _smooth(self) -> bool:  # type: ignore[override]
        return self._order > 1

    @property
    def _order(self) -> float:
        endless = isinstance(self.nu, float) and self.nu == np.inf
        return np.inf if endless else positive(self, "nu", self.nu, ", or infinity")

    def _profile(self, exponent: Array) -> Array:
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
        logarithm = (
            (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(apart) + np.log(kve(nu, apart)) - apart
        )
        # So near zero that K_ν overflows, the leading term of its power series is all there is: 1 − z²/4(ν − 1).
        square = np.minimum(scaled, 1) ** 2
        near_zero = 1 + square / (4 * (1 - nu)) * (1 + square / (8 * (2 - nu))) if nu > 2 else 1.0
        where_unknown = np.where(
            scaled < 1, near_zero, 0.0
        )  # kve gives up beyond a distance of 1e9, too
        return np.where(
            np.isfinite(logarithm), np.exp(np.minimum(logarithm, 0)), where_unknown
        ).astype(exponent.dtype)


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
    u4 = (
        4465125 * t**4 - 94121676 * t**6 + 349922430 * t**8 - 446185740 * t**10 + 185910725 * t**12
    ) / 39813120
    debye = np.log1p(-u1 / nu + u2 / nu**2 - u3 / nu**3 + u4 / nu**4)
    stirling = 1 / (12 * nu) - 1 / (360 * nu**3) + 1 / (1260 * nu**5)
    return nu * (np.log1p(excess / 2) - excess) - np.log(w) / 2 + debye - stirling


@dataclass
class RationalQuadratic(Radial):
    """k(x, y) = (1 + ‖x − y‖²/2ασ²)^(−α): Gaussian kernels of many bandwidths at once.

    Parameters
    ----------
    bandwidth, alpha : float, default='median' and 1.0
        σ, as for Gaussian, and α > 0; the smaller, the heavier the tails.
    """

    alpha: float = 1.0

    def _profile(self, exponent: Array) -> Array:
        alpha = positive(self, "alpha", self.alpha)
        return np.exp(-alpha * np.log1p(-exponent / alpha))


@dataclass
class InverseMultiquadric(Radial):
    """k(x, y) = (1 + ‖x − y‖²/σ²)^(−1/2), with a ``bandwidth`` σ as for Gaussian."""

    def _profile(self, exponent: Array) -> Array:
        return 1 / np.sqrt(1 - 2 * exponent)


@dataclass
class Laplacian(Radial):
    """k(x, y) = exp(−‖x − y‖₁/σ), where the ``bandwidth`` 'median' is that of ‖x_i − x_j‖₁ over the pairs i < j."""

    _metric: ClassVar[Metric] = "cityblock"

    def _pairs(self, X: Array, Y: Array | None) -> tiles.Pairs:
        return tiles.of_absolute_differences(X, Y, self._sigma(), self._profile)


EXACT_UP_TO = 2000
"""Rows up to which every pair is measured (2 million pairs)."""

PAIRS, CHUNK = 2_000_000, 50_000
"""Pairs that are measured beyond that, drawn with a fixed seed, and of those at a time."""


def median_distance(X: Array, metric: Metric) -> float:
    """Return the median distance of the pairs i < j; of Euclidean ones, the root of the median of their squares.

    Exact up to 2000 rows; beyond that, the median of 2 million pairs drawn with a fixed seed, which lies within
    about 0.1 % of the true median's rank. Where more than half of the pairs coincide, the median of the others, with a
    warning; where all do, or there is no pair, 1, as scikit-learn's ``gamma="scale"`` has it.
    """
    if not len(X):
        raise MuhatError("kernel", "bandwidth='median' needs at least one row", "none")
    distances, unit = distances_of_pairs(X, metric)
    power = 0.5 if metric == "euclidean" else 1.0
    median = float(np.median(distances)) ** power if distances.size else 0.0
    if median == 0:
        apart = distances[distances > 0]
        median = float(np.median(apart)) ** power if apart.size else 1.0
        reason = (
            "more than half of the pairs of rows are equal" if apart.size else "all rows are equal"
        )
        reason = reason if len(X) > 1 else "there is one row only"
        message = f"bandwidth='median': the median distance is zero because {reason}; using {median * unit:.6g}. "
        warnings.warn(
            message + "Give the bandwidth as a number to choose it yourself.",
            UserWarning,
            stacklevel=2,
        )
    return median * unit


def distances_of_pairs(X: Array, metric: Metric) -> tuple[Array, float]:
    """Return the distances of the pairs i < j, squared if Euclidean, and the unit of length they are measured in.

    Beyond 2000 rows, those of 2 million pairs drawn with a fixed seed.
    """
    # From the first row, so that equal rows are exactly zero, and in units of the spread, so that neither 1e200 nor
    # 1e-200 leaves the range of a float.
    with np.errstate(over="ignore"):
        moved = X.astype(np.float64) - X[0]
    unit = float(np.abs(moved).max()) or 1.0
    if not np.isfinite(unit):
        needed, got = (
            "bandwidth='median' needs distances that are finite",
            "rows further apart than the largest float",
        )
        raise MuhatError("kernel", needed, got, "rescale X")
    moved /= unit
    if len(X) <= EXACT_UP_TO:
        return pdist(moved, "sqeuclidean" if metric == "euclidean" else metric), unit
    return _distances_of_some_pairs(moved, metric), unit


def _distances_of_some_pairs(X: Array, metric: Metric) -> Array:
    """Return the distances of pairs i ≠ j drawn with a fixed seed, squared if Euclidean."""
    rng = np.random.default_rng(0)
    first = rng.integers(len(X), size=PAIRS)
    second = (first + rng.integers(1, len(X), size=PAIRS)) % len(X)
    distances = np.empty(PAIRS)
    for chunk in slices(0, PAIRS, CHUNK):
        gaps = X[first[chunk]] - X[second[chunk]]
        distances[chunk] = (
            np.einsum("ij,ij->i", gaps, gaps) if metric == "euclidean" else np.abs(gaps).sum(axis=1)
        )
    return distances
