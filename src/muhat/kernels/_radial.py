"""Kernels of the distance ‖x − y‖ in units of a bandwidth σ, which the median rule may learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import gammaln, kve

from muhat._arrays import Array, slices
from muhat._validation import as_points, positive
from muhat.errors import MuhatError, MuhatTypeError
from muhat.kernels import _tiles as tiles
from muhat.kernels._base import Kernel
from muhat.kernels._closed_forms import SumOfGaussians
from muhat.kernels._scale_mixtures import BandwidthLaw

__all__ = ["Gaussian", "InverseMultiquadric", "Laplacian", "Matern", "RationalQuadratic"]

Metric = Literal["euclidean", "cityblock"]

LARGE_ORDER = 100.0
"""The order ν from which on the Matérn kernel is computed by its expansion in 1/ν, to 1e-11."""

MAX_ROWS_ALL_PAIRS = 2000
"""Rows up to which every pair is measured (2 million pairs)."""

N_PAIRS = 2_000_000
"""Pairs measured beyond that, drawn with a fixed seed."""

PAIRS_PER_CHUNK = 50_000
"""Pairs measured at a time."""


@dataclass
class Radial(Kernel):
    """k(x, y) = profile(−‖x − y‖²/2σ²) with profile(0) = 1, by default the exponential."""

    bandwidth: float | Literal["median"] = "median"
    translation_invariant: ClassVar[bool] = True
    isotropic: ClassVar[bool] = True
    positive_semidefinite: ClassVar[bool] = True
    _metric: ClassVar[Metric] = "euclidean"
    """The distance whose median may be the bandwidth."""
    _smooth: ClassVar[bool] = True
    """Whether the profile has a slope at zero, so that rounding errors of ‖x − y‖² stay small."""

    def _profile(self, exponent: Array) -> Array:
        return np.exp(exponent, out=exponent)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self._pairs(X, Y).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return self._pairs(X, Y).product(V)

    def _pairs(self, X: Array, Y: Array | None) -> tiles.TiledPairs:
        return tiles.radial(X, Y, self._sigma(), self._profile, self._smooth)

    def diagonal(self, X: Array) -> Array:
        X = as_points(X)
        return np.ones(len(X), X.dtype)

    def resolve(self, X: Array) -> Self:
        """Return this kernel with its bandwidth set, from X if it is not given.

        For 'median', σ² is the median of ‖x_i − x_j‖², i < j.
        """
        if self._is_median:
            return replace(self, bandwidth=median_distance(as_points(X), self._metric))
        return replace(self, bandwidth=self._sigma())

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def _is_median(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "median"

    def _sigma(self) -> float:
        if self._is_median:
            needed = "the bandwidth must be a number before the kernel is called"
            raise MuhatError(
                type(self).__name__,
                needed,
                "'median'",
                "call resolve(X) to learn the bandwidth from X",
            )
        return positive(self, "bandwidth", self.bandwidth, ", or 'median'")


class ScaleMixture(Radial):
    """A radial kernel that is a scale mixture of Gaussian kernels."""

    nonnegative: ClassVar[bool] = True
    has_frequencies: ClassVar[bool] = True
    has_gaussian_means: ClassVar[bool] = True

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        """Return the law of the bandwidths of the Gaussian kernels."""
        raise NotImplementedError

    def draw_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return self._law().draw_frequencies(rng, shape)

    def gaussian_means(self) -> SumOfGaussians:
        return SumOfGaussians(*self._law().nodes())

    def _law(self) -> BandwidthLaw:
        needed = ", a number that resolve(X) can learn from a sample"
        return self._bandwidth_law(positive(self, "bandwidth", self.bandwidth, needed))


@dataclass
class Gaussian(ScaleMixture):
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

    name = "gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("rbf",)

    def __new__(cls, *_: Any, gamma: Any = None, **__: Any) -> Self:
        """Raise MuhatTypeError for scikit-learn's gamma, and say which bandwidth it is."""
        if gamma is not None:
            advice = "give bandwidth=(2 * gamma) ** -0.5, as gamma is 1/(2 bandwidth²)"
            raise MuhatTypeError("Gaussian", "a bandwidth is needed", f"gamma={gamma!r}", advice)
        return super().__new__(cls)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j).

        The Gram matrix of X, and float32 input, use the exact exponential; other pairs the faster
        approximation.
        """
        if Y is None or np.asarray(X).dtype == np.float32:
            return super()._pairs(X, Y).matrix()
        return self._pairs(X, Y).matrix()

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        rows = tiles.from_the_centre(X)
        columns = rows
        if Y is not None:
            columns = tiles.from_the_centre(Y)
            Y = Y[columns]
        values = super()._product(X[rows], V[columns], Y)
        product = np.empty_like(values)
        product[rows] = values
        return product

    def _pairs(self, X: Array, Y: Array | None) -> tiles.TiledPairs:
        return tiles.radial(X, Y, self._sigma(), self._profile, self._smooth, is_exp=True)

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        return BandwidthLaw(sigma, np.inf, -0.5)

    def l1_norm(self, d: int) -> float:
        """Return (2πσ²)^(d/2)."""
        return float((self._sigma() * (2 * np.pi) ** 0.5) ** d)


@dataclass
class Laplacian(Radial):
    """k(x, y) = exp(−‖x − y‖₁/σ).

    The ``bandwidth`` 'median' is the median of ‖x_i − x_j‖₁ over the pairs i < j.
    """

    name = "laplacian"
    isotropic: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = True
    has_frequencies: ClassVar[bool] = True
    _metric: ClassVar[Metric] = "cityblock"

    def _pairs(self, X: Array, Y: Array | None) -> tiles.TiledPairs:
        return tiles.of_absolute_differences(X, Y, self._sigma(), self._profile)

    def draw_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Return draws of Cauchy/σ, independent in every feature."""
        return rng.standard_cauchy(shape) / self._sigma()

    def l1_norm(self, d: int) -> float:
        """Return (2σ)^d."""
        return float((2 * self._sigma()) ** d)


@dataclass
class Matern(ScaleMixture):
    """The Matérn kernel, 2^(1−ν)/Γ(ν) · (√(2ν) r)^ν K_ν(√(2ν) r) with r = ‖x − y‖/σ.

    Parameters
    ----------
    bandwidth, nu : float, default='median' and 1.5
        σ, as for Gaussian, and the smoothness ν > 0: 1/2, 3/2 and 5/2 have closed forms, infinity
        is the Gaussian.
    """

    name = "matern"
    nu: float = 1.5

    @property
    def _smooth(self) -> bool:  # type: ignore[override]
        return self._order > 1

    @property
    def _order(self) -> float:
        if isinstance(self.nu, float) and self.nu == np.inf:
            return np.inf
        return positive(self, "nu", self.nu, ", or infinity")

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
        return _matern_of_any_order(scaled, nu).astype(exponent.dtype)

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        return BandwidthLaw(sigma, self._order, 0.5)


def _matern_of_any_order(scaled: Array, nu: float) -> Array:
    """Return 2^(1−ν)/Γ(ν) · z^ν K_ν(z) at z = √(2ν)‖x − y‖/σ."""
    apart = np.maximum(scaled, np.finfo(scaled.dtype).tiny ** 0.5)
    # In logarithms, because K_ν is large near zero; kve is K_ν without its decay exp(−z).
    constant = (1 - nu) * np.log(2) - gammaln(nu)
    logarithm = constant + nu * np.log(apart) + np.log(kve(nu, apart)) - apart
    # Where K_ν overflows near zero, the first terms of the power series are exact: 1 − z²/4(ν − 1).
    near_zero: Array | float = 1.0
    if nu > 2:
        square = np.minimum(scaled, 1) ** 2
        near_zero = 1 + square / (4 * (1 - nu)) * (1 + square / (8 * (2 - nu)))
    # kve is NaN beyond a distance of 1e9, too, where the kernel is zero
    where_unknown = np.where(scaled < 1, near_zero, 0.0)
    return np.where(np.isfinite(logarithm), np.exp(np.minimum(logarithm, 0)), where_unknown)


def _log_matern_of_large_order(exponent: Array, nu: float) -> Array:
    """Return log k by Debye's expansion of K_ν and Stirling's of Γ(ν).

    Their large terms cancel in closed form.
    """
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
class RationalQuadratic(ScaleMixture):
    """k(x, y) = (1 + ‖x − y‖²/2ασ²)^(−α): Gaussian kernels of many bandwidths at once.

    Parameters
    ----------
    bandwidth, alpha : float, default='median' and 1.0
        σ, as for Gaussian, and α > 0; the smaller, the heavier the tails.
    """

    name = "rational-quadratic"
    alpha: float = 1.0

    def _profile(self, exponent: Array) -> Array:
        alpha = positive(self, "alpha", self.alpha)
        return np.exp(-alpha * np.log1p(-exponent / alpha))

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        return BandwidthLaw(sigma, positive(self, "alpha", self.alpha), -0.5)


@dataclass
class InverseMultiquadric(ScaleMixture):
    """k(x, y) = (1 + ‖x − y‖²/σ²)^(−1/2), with a ``bandwidth`` σ as for Gaussian."""

    name = "inverse-multiquadric"

    def _profile(self, exponent: Array) -> Array:
        return 1 / np.sqrt(1 - 2 * exponent)

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        return BandwidthLaw(sigma, 0.5, -0.5)  # a rational quadratic kernel with α = ½


def median_distance(X: Array, metric: Metric) -> float:
    """Return the median distance of the pairs i < j.

    It is exact up to 2000 rows. Beyond, it is the median of 2 million pairs drawn with a fixed
    seed, which is within about 0.1 % of the true median's rank. If more than half of the pairs
    coincide it is the median of the others, with a warning. If all do, or there is no pair, it is
    1, as for scikit-learn's ``gamma="scale"``.
    """
    if not len(X):
        raise MuhatError("kernel", "bandwidth='median' needs at least one row", "none")
    distances, unit = distances_of_pairs(X, metric)
    median = _median_length(distances, metric)
    if median == 0:
        apart = distances[distances > 0]
        median = _median_length(apart, metric) or 1.0
        if len(X) == 1:
            reason = "there is only one row"
        elif apart.size:
            reason = "more than half of the pairs of rows are equal"
        else:
            reason = "all rows are equal"
        warnings.warn(
            f"bandwidth='median': the median distance is zero because {reason}; "
            f"using {median * unit:.6g}. Give the bandwidth as a number to choose it yourself.",
            UserWarning,
            stacklevel=2,
        )
    return median * unit


def _median_length(distances: Array, metric: Metric) -> float:
    """Return the median distance, zero without any; Euclidean distances are given squared."""
    if not distances.size:
        return 0.0
    median = float(np.median(distances))
    if metric == "euclidean":
        return median**0.5
    return median


def distances_of_pairs(X: Array, metric: Metric) -> tuple[Array, float]:
    """Return the distances of the pairs i < j, squared if Euclidean, and their unit of length.

    Beyond 2000 rows they are those of 2 million pairs drawn with a fixed seed.
    """
    # From the first row, so that equal rows are exactly zero, and in units of the spread, so that
    # neither 1e200 nor 1e-200 leaves the range of a float.
    with np.errstate(over="ignore"):
        moved = X.astype(np.float64) - X[0]
    unit = float(np.abs(moved).max()) or 1.0
    if not np.isfinite(unit):
        needed = "bandwidth='median' needs distances that are finite"
        raise MuhatError("kernel", needed, "rows further apart than the largest float", "rescale X")
    moved /= unit
    if len(X) > MAX_ROWS_ALL_PAIRS:
        return _distances_of_some_pairs(moved, metric), unit
    return pdist(moved, {"euclidean": "sqeuclidean"}.get(metric, metric)), unit


def _distances_of_some_pairs(X: Array, metric: Metric) -> Array:
    """Return the distances of pairs i ≠ j drawn with a fixed seed, squared if Euclidean."""
    rng = np.random.default_rng(0)
    first = rng.integers(len(X), size=N_PAIRS)
    second = (first + rng.integers(1, len(X), size=N_PAIRS)) % len(X)
    distances = np.empty(N_PAIRS)
    for chunk in slices(0, N_PAIRS, PAIRS_PER_CHUNK):
        gaps = X[first[chunk]] - X[second[chunk]]
        if metric == "euclidean":
            distances[chunk] = np.einsum("ij,ij->i", gaps, gaps)
        else:
            distances[chunk] = np.abs(gaps).sum(axis=1)
    return distances
