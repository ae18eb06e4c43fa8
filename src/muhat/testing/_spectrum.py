"""The spectrum of a pooled, centred Gram matrix, and what every relabeling of its rows gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from muhat._arrays import Array, slices
from muhat._validation import check_semidefinite, check_values
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation, FeatureMap
from muhat.kernels import Kernel
from muhat.testing._permutations import Law
from muhat.testing._statistics import MMD, Statistic

NORMAL_95 = 1.959964
"""The normal quantile of a two-sided interval of 95 %."""

ROWS = 8192
"""Rows of which the labels are held as numbers at a time."""


@dataclass(frozen=True, eq=False)
class PooledSpectrum:
    """The eigenpairs of A = HKH/N, without those that are rounding errors of zero."""

    gamma: Array
    U: Array
    kappa2: float
    """A bound of k(x, x)."""
    function: Callable[[Array], Element]
    """The function Σ_k a_k e_k of the orthonormal eigenfunctions e_k of the covariance operator, up to a constant."""

    @classmethod
    def from_rows(cls, kernel: Kernel, Z: Array, gram: str | Approximation = "dense") -> PooledSpectrum:
        """Decompose the centred Gram matrix of the rows, or that of features which stand for it."""
        if isinstance(gram, Approximation):
            return cls.from_features(gram.resolve(kernel, Z), Z)
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            K = kernel(Z)
        check_values(K, kernel)
        kappa2 = kernel.bound if np.isfinite(kernel.bound) else float(K.diagonal().max())
        means = K.mean(axis=0)
        K += means.mean() - means - means[:, None]
        K /= len(K)
        gamma, U = eigh(K, driver="evd", overwrite_a=True, check_finite=False)
        check_semidefinite(gamma)
        kept = is_kept(gamma, len(Z))
        gamma, U = gamma[kept], U[:, kept]
        return cls(gamma, U, kappa2, lambda a: Embedding(kernel, Z, U @ (a / np.sqrt(len(Z) * gamma))))

    @classmethod
    def from_features(cls, features: FeatureMap, Z: Array) -> PooledSpectrum:
        """Decompose the covariance HΦ of the features Φ = z(Z): as many eigenpairs as there are features, at most."""
        phi = features(Z)
        bound = features.kernel.bound
        kappa2 = bound if np.isfinite(bound) else float(np.einsum("ij,ij->i", phi, phi).max())
        phi -= phi.mean(axis=0)
        gamma, V = eigh(phi.T @ phi / len(Z), driver="evd", check_finite=False)
        kept = is_kept(gamma, len(Z))
        gamma, V = gamma[kept], V[:, kept]
        return cls(gamma, phi @ (V / np.sqrt(len(Z) * gamma)), kappa2, lambda a: features.embedding(V @ a))

    def resolve(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Return the statistics with every parameter a number; none where the kernel does not tell any rows apart."""
        if not self.gamma.size:
            return []
        return [each for one in statistics for each in one.resolve(self.gamma, self.kappa2)]

    def statistics(self, statistics: Sequence[Statistic], labels: Array) -> tuple[Array, Array]:
        """Return T of every statistic for every column of labels, and the scale of each.

        With a the indicator of the first sample, S = N U h(Γ) Uᵀ and S1 = 0, all three sums of S over pairs of samples
        are ±aᵀSa: T = (1/n + 1/m)² aᵀSa, and the U-statistic takes the diagonal of S out of the sums within.
        """
        N = len(labels)
        n = int(labels[:, 0].sum())
        m = N - n
        h = N * np.array([each.weight(self.gamma) for each in statistics]).reshape(len(statistics), len(self.gamma))
        # Uᵀ1 = 0 but for rounding: with n/N taken off, a relabeling and its complement have the same T to the last bit.
        T = (1 / n + 1 / m) ** 2 * (h @ _product(self.U, labels, n / N) ** 2)
        scales = np.abs(T).max(axis=1)
        unbiased = np.array([each.unbiased for each in statistics], dtype=bool)
        if unbiased.any():
            diagonal = self.U**2 @ h[unbiased].T
            inside = _product(diagonal, labels)  # its sum over the first sample
            q = T[unbiased] / (1 / n + 1 / m) ** 2
            total = diagonal.sum(axis=0)[:, None]
            T[unbiased] = (q - inside) / (n * (n - 1)) + (q - total + inside) / (m * (m - 1)) + 2 * q / (n * m)
        return T, scales

    def law(self, statistics: Sequence[Statistic], labels: Array) -> Law:
        """Return what permutations of every statistic are distributed like, in theory.

        The mean of (u_kᵀ w)² over all permutations is (1/n + 1/m) ‖u_k‖²/(N − 1); for large samples its square root is
        normal. A U-statistic has the mean zero.
        """
        N, n = len(labels), int(labels[:, 0].sum())
        squares = np.einsum("ik,ik->k", self.U, self.U)  # one each, but for units of several rows
        h = np.array([each.weight(self.gamma) for each in statistics]).reshape(len(statistics), len(self.gamma))
        h = N / (N - 1) * (1 / n + 1 / (N - n)) * h * squares
        first = h.sum(axis=1)
        unbiased = np.array([each.unbiased for each in statistics], dtype=bool)
        return Law.of_squares(first, (h**2).sum(axis=1), (h**3).sum(axis=1), np.where(unbiased, -first, 0.0))

    def mmd(self, labels: Array) -> float:
        """Return ‖μ̂_X − μ̂_Y‖."""
        T, _ = self.statistics([MMD()], labels[:, None])
        return float(np.sqrt(np.maximum(T.sum(), 0)))

    def mmd_interval(self, labels: Array) -> tuple[float, float]:
        """Return an approximate 95 % confidence interval of the distance ‖μ_X − μ_Y‖ between the distributions.

        The U-statistic of MMD² has about the variance 4 Var f(x)/n + 4 Var f(y)/m, with f = μ_X − μ_Y, and that which
        it has where both are equal: the first counts where they are far apart, the second where they are not.
        """
        observed, unbiased = labels[:, None], [MMD(unbiased=True)]
        squared = float(self.statistics(unbiased, observed)[0][0, 0])
        f = len(labels) * self.U @ (self.gamma * (self.U.T @ signed(labels)))
        variance = sum(4 * f[each].var(ddof=1) / each.sum() for each in (labels, ~labels))
        reach = NORMAL_95 * np.sqrt(variance + self.law(unbiased, observed).spread[0] ** 2)
        return tuple(float(np.sqrt(max(squared + side, 0.0))) for side in (-reach, reach))  # type: ignore[return-value]

    def witness(self, statistic: Statistic, labels: Array) -> Element:
        """Return the function whose mean over X less that over Y is T: for h(γ) = γ, μ̂_X − μ̂_Y."""
        a = self.U.T @ signed(labels)
        return self.function(np.sqrt(len(labels) / self.gamma) * statistic.weight(self.gamma) * a)


def signed(labels: Array) -> Array:
    """Return w: 1/n on the first sample and −1/m on the second."""
    n = labels.sum()
    return np.where(labels, 1 / n, -1 / (len(labels) - n))


def is_kept(gamma: Array, n: int) -> Array:
    """Return which eigenvalues are no rounding errors of zero."""
    return gamma > n * np.finfo(gamma.dtype).eps * gamma[-1]


def _product(M: Array, labels: Array, less: float = 0.0) -> Array:
    """Return Mᵀ times columns of true and false, as numbers less a constant, in blocks of rows."""
    return sum(M[rows].T @ (labels[rows] - less) for rows in slices(0, len(M), ROWS))  # type: ignore[return-value]
