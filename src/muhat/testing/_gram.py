"""The centred Gram matrix of the pool, whole or by its spectrum: statistics of relabelings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Array, quotient, rounding, rounding_floor, slices
from muhat._threaded_property import ThreadedProperty
from muhat._tolerances import ROUNDING_UNITS
from muhat._validation import check_semidefinite, check_values
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation, FeatureMap
from muhat.kernels import Kernel
from muhat.testing._distances import features_for
from muhat.testing._permutations import NullMoments
from muhat.testing._statistics import MMD, Statistic, resolved_statistics

NORMAL_95 = 1.959964
"""The normal quantile of a two-sided interval of 95 %."""

ROWS_PER_BLOCK = 8192
"""Rows of which the labels are held as numbers at a time."""

RELABELINGS_PER_BLOCK = 256
"""Relabelings of which all labels are held as numbers at a time."""


class PooledGram(ABC):
    """A centred Gram matrix of the pool: the statistics of every relabeling, and the MMD."""

    @abstractmethod
    def resolve(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Return the statistics with numbers as parameters; none if all rows look alike."""

    @abstractmethod
    def statistics(self, statistics: Sequence[Statistic], labels: Array) -> tuple[Array, Array]:
        """Return T of every statistic for every column of labels, and the scale of each."""

    @abstractmethod
    def null_moments(self, statistics: Sequence[Statistic], labels: Array) -> NullMoments:
        """Return the moments of every statistic under permutation, in theory."""

    @abstractmethod
    def differences(self, labels: Array) -> Array:
        """Return the mean of μ̂_X − μ̂_Y over every unit, up to a constant."""

    @abstractmethod
    def witness(self, statistic: Statistic, labels: Array) -> Element:
        """Return the function whose mean over X less that over Y is T; μ̂_X − μ̂_Y if h(γ) = γ."""

    def squared_mmd(self, labels: Array, unbiased: bool = False) -> float:
        """Return ‖μ̂_X − μ̂_Y‖², or its U-statistic."""
        T, _ = self.statistics([MMD(unbiased)], labels[:, None])
        return float(T[0, 0])

    def mmd(self, labels: Array) -> float:
        """Return ‖μ̂_X − μ̂_Y‖."""
        return float(np.sqrt(max(self.squared_mmd(labels), 0.0)))

    def mmd_interval(self, labels: Array) -> tuple[float, float]:
        """Return an approximate 95 % confidence interval of ‖μ_X − μ_Y‖ of the distributions.

        The U-statistic of MMD² has about the variance 4 Var f(x)/n + 4 Var f(y)/m, with f = μ_X −
        μ_Y, and that which it has where both are equal: the first counts where they are far apart,
        the second where they are not.
        """
        squared = self.squared_mmd(labels, unbiased=True)
        f = self.differences(labels)
        unit = np.abs(f).max()  # whose square may be beyond the range of numbers
        f = quotient(f, unit)
        error_x = 2 * unit * f[labels].std(ddof=1) / np.sqrt(labels.sum())
        error_y = 2 * unit * f[~labels].std(ddof=1) / np.sqrt((~labels).sum())
        null_spread = self.null_moments([MMD(unbiased=True)], labels[:, None]).spread[0]
        reach = NORMAL_95 * np.hypot(np.hypot(error_x, error_y), null_spread)
        low, high = max(squared - reach, 0.0), max(squared + reach, 0.0)
        return float(np.sqrt(low)), float(np.sqrt(high))


@dataclass(frozen=True, eq=False)
class PooledMatrix(PooledGram):
    """The centred Gram matrix S of the units' kernel means: all that MMD needs."""

    S: Array
    kernel: Kernel
    rows: Array
    """Those of a unit one after the other."""

    @classmethod
    def from_means(cls, kernel: Kernel, rows: Array, means: Array) -> PooledMatrix:
        """Return the matrix from inner products of the units' kernel means, centred in place."""
        largest = np.abs(means).max()
        centre(means)
        if np.abs(means).max() <= len(means) * rounding(means) * largest:
            means[:] = 0  # but for rounding, it is
        return cls(means, kernel, rows)

    def resolve(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Return MMD as it is; nothing where all units are equal to the kernel."""
        if self.S.any():
            return list(statistics)
        return []

    def statistics(self, statistics: Sequence[Statistic], labels: Array) -> tuple[Array, Array]:
        """Return MMD² by products of S with all columns of labels."""
        # S1 = 0 but for rounding: with this, a relabeling and its complement have the same T.
        less = labels[:, 0].mean()
        q = np.empty(labels.shape[1])
        for some in slices(0, len(q), RELABELINGS_PER_BLOCK):
            P = labels[:, some] - less
            q[some] = np.einsum("ib,ib->b", P, self.S @ P)
        return _values(
            np.tile(q, (len(statistics), 1)),
            statistics,
            labels,
            lambda i: self.S.diagonal()[:, None],
        )

    def null_moments(self, statistics: Sequence[Statistic], labels: Array) -> NullMoments:
        """Return the null moments by the traces of S, S² and S³."""
        unit, traces = self._traces
        sums = np.tile(traces[:, None], len(statistics))
        return NullMoments.from_squares(sums, _mean_square(labels) * unit, _unbiased(statistics))

    @ThreadedProperty
    def _traces(self) -> tuple[float, Array]:
        """A unit u, and the traces of S/u, (S/u)² and (S/u)³."""
        unit = float(np.abs(self.S).max())
        S = quotient(self.S, np.array(unit))
        squared = S @ S.T
        return unit, np.array([S.trace(), squared.trace(), np.vdot(squared, S)])

    def differences(self, labels: Array) -> Array:
        """Return S w."""
        return self.S @ signed(labels)

    def witness(self, statistic: Statistic, labels: Array) -> Element:
        """Return μ̂_X − μ̂_Y."""
        size = len(self.rows) // len(labels)
        return Embedding(self.kernel, self.rows, np.repeat(signed(labels) / size, size))


@dataclass(frozen=True, eq=False)
class FeatureAxes:
    """The eigenpairs of the covariance of features, without rounding errors of zero."""

    gamma: Array
    V: Array
    means: Array
    n: int
    kappa2: float
    """A bound of k(x, x)."""

    @classmethod
    def from_values(cls, features: FeatureMap, phi: Array) -> FeatureAxes:
        """Return them from the features of all rows, which are centred in place."""
        kappa2 = features.kernel.bound
        if not np.isfinite(kappa2):
            kappa2 = float(np.einsum("ij,ij->i", phi, phi).max())
        means = phi.mean(axis=0)
        phi -= means
        gamma, V = np.linalg.eigh(phi.T @ phi / len(phi))
        kept = is_kept(gamma, len(phi))
        return cls(gamma[kept], V[:, kept], means, len(phi), kappa2)

    def take(self, used: Array) -> FeatureAxes:
        """Return some of the eigenpairs."""
        return replace(self, gamma=self.gamma[used], V=self.V[:, used])

    def components(self, centred: Array) -> Array:
        """Return the eigenvectors of the Gram matrix of the features, from these centred."""
        return np.asarray(centred @ (self.V / np.sqrt(self.n * self.gamma)))


@dataclass(frozen=True, eq=False)
class PooledSpectrum(PooledGram):
    """The eigenpairs of A = HKH/N, without those that are rounding errors of zero."""

    gamma: Array
    U: Array
    kappa2: float
    """A bound of k(x, x)."""
    function: Callable[[Array], Element]
    """From a to Σ_k a_k e_k, up to a constant; e_k are the covariance operator's eigenfunctions."""

    @classmethod
    def from_rows(
        cls, kernel: Kernel, Z: Array, gram: str | Approximation = "dense"
    ) -> PooledSpectrum:
        """Decompose the centred Gram matrix of the rows, or that of features which replace it."""
        if isinstance(gram, Approximation):
            return cls.from_features(features_for(kernel, gram, Z), Z)
        K = gram_matrix(kernel, Z)
        largest = float(K.diagonal().max())
        centre(K)
        K /= len(K)
        gamma, U = np.linalg.eigh(K)  # unlike SciPy's, it lets other threads go on
        if not kernel.positive_semidefinite:
            check_semidefinite(gamma)
        kept = is_kept(gamma, len(Z), largest)
        gamma, U = gamma[kept], U[:, kept]
        bound = largest
        if np.isfinite(kernel.bound):
            bound = kernel.bound
        return cls(
            gamma, U, bound, lambda a: Embedding(kernel, Z, U @ (a / np.sqrt(len(Z) * gamma)))
        )

    @classmethod
    def from_features(
        cls, features: FeatureMap, Z: Array, least_share: float = 0.0
    ) -> PooledSpectrum:
        """Decompose the covariance of the features Φ = z(Z): at most one eigenpair per feature.

        Eigenvalues below the least share of the largest are left out.
        """
        phi = features(Z)
        axes = FeatureAxes.from_values(features, phi)
        axes = axes.take(axes.gamma >= least_share * axes.gamma.max(initial=0))
        return cls(
            axes.gamma,
            axes.components(phi),
            axes.kappa2,
            lambda a: features.embedding(axes.V @ a),
        )

    def resolve(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Return the statistics with numbers as parameters; none if all rows look alike."""
        return resolved_statistics(statistics, self.gamma, self.kappa2)

    def statistics(self, statistics: Sequence[Statistic], labels: Array) -> tuple[Array, Array]:
        """Return T for S = N U h(Γ) Uᵀ."""
        N, n = len(labels), int(labels[:, 0].sum())
        h = N * self._weights(statistics)
        # Uᵀ1 = 0 but for rounding: with n/N taken off, a relabeling and its complement
        # have the same T to the last bit.
        return _values(
            h @ _product(self.U, labels, n / N) ** 2,
            statistics,
            labels,
            lambda i: self.U**2 @ h[i].T,
        )

    def null_moments(self, statistics: Sequence[Statistic], labels: Array) -> NullMoments:
        """Return the null moments by the sums of h, h² and h³.

        For large samples u_kᵀ w is normal.
        """
        # One each, but for units of several rows.
        squares = np.einsum("ik,ik->k", self.U, self.U, dtype=np.float64)
        h = len(labels) * _mean_square(labels) * self._weights(statistics) * squares
        unit = np.abs(h).max(axis=1, initial=0)
        h = quotient(h, unit[:, None])
        return NullMoments.from_squares(
            np.array([(h**power).sum(axis=1) for power in (1, 2, 3)]), unit, _unbiased(statistics)
        )

    def _weights(self, statistics: Sequence[Statistic]) -> Array:
        """Return h(γ), a row for each statistic."""
        return np.array([each.weight(self.gamma) for each in statistics]).reshape(
            len(statistics), len(self.gamma)
        )

    def differences(self, labels: Array) -> Array:
        """Return N U Γ Uᵀ w."""
        return len(labels) * self.U @ (self.gamma * (self.U.T @ signed(labels)))

    def witness(self, statistic: Statistic, labels: Array) -> Element:
        """Return the function whose mean over X less that over Y is T: for h(γ) = γ, μ̂_X − μ̂_Y."""
        a = self.U.T @ signed(labels)
        return self.function(np.sqrt(len(labels) / self.gamma) * statistic.weight(self.gamma) * a)


def gram_matrix(kernel: Kernel, Z: Array) -> Array:
    """Return the Gram matrix of the rows; raise MuhatError if its values are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # raises in words below
        K = kernel(Z)
    check_values(K, kernel)
    return K


def signed(labels: Array) -> Array:
    """Return w: 1/n on the first sample and −1/m on the second."""
    n = labels.sum()
    return np.where(labels, 1 / n, -1 / (len(labels) - n))


def is_kept(gamma: Array, n: int, largest: float = 0.0) -> Array:
    """Return which eigenvalues are not rounding errors of zero: n rows, k(x, x) ≤ largest."""
    floor = ROUNDING_UNITS * rounding(gamma) * largest
    return gamma > np.maximum(rounding_floor(gamma, n), floor)


def centre(K: Array) -> None:
    """Turn K into HKH."""
    means = K.mean(axis=0)
    K += means.mean() - means - means[:, None]


def _values(
    q: Array, statistics: Sequence[Statistic], labels: Array, diagonal_of: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return T and its scale from q = aᵀSa, a the indicator of X in each column of labels.

    As S1 = 0 all three sums of S over pairs of samples are ±q: T = (1/n + 1/m)² q, and the
    U-statistic takes the diagonal of S out of the sums within.
    """
    n = int(labels[:, 0].sum())
    m = len(labels) - n
    T = (1 / n + 1 / m) ** 2 * q
    scales = np.abs(T).max(axis=1)
    unbiased = _unbiased(statistics)
    if unbiased.any():
        diagonal = diagonal_of(unbiased)
        inside = _product(diagonal, labels)  # its sum over the first sample
        q, total = q[unbiased], diagonal.sum(axis=0)[:, None]
        T[unbiased] = (
            (q - inside) / (n * (n - 1)) + (q - total + inside) / (m * (m - 1)) + 2 * q / (n * m)
        )
    return T, scales


def _mean_square(labels: Array) -> float:
    """Return (1/n + 1/m)/(N − 1): the mean of (u_kᵀ w)² over permutations, for |u_k| = 1."""
    N, n = len(labels), int(labels[:, 0].sum())
    return (1 / n + 1 / (N - n)) / (N - 1)


def _unbiased(statistics: Sequence[Statistic]) -> Array:
    """Return which are U-statistics."""
    return np.array([each.unbiased for each in statistics], dtype=bool)


def _product(M: Array, labels: Array, less: float = 0.0) -> Array:
    """Return Mᵀ times columns of true and false, as numbers less a constant, in blocks of rows.

    Each block is multiplied in the precision of M, and added in double.
    """
    product = np.zeros((M.shape[1], *labels.shape[1:]))
    for rows in slices(0, len(M), ROWS_PER_BLOCK):
        product += M[rows].T @ (labels[rows] - M.dtype.type(less))
    return product
