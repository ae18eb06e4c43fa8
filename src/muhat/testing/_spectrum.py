"""The spectrum of a pooled, centred Gram matrix, and what every relabeling of its rows gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from muhat._arrays import Array
from muhat._validation import check_semidefinite, check_values
from muhat.kernels import Kernel
from muhat.testing._statistics import MMD, Statistic


@dataclass(frozen=True, eq=False)
class PooledSpectrum:
    """The eigenpairs of A = HKH/N, without those that are rounding errors of zero."""

    kernel: Kernel
    gamma: Array
    U: Array
    kappa2: float
    """A bound of k(x, x)."""

    @classmethod
    def from_rows(cls, kernel: Kernel, Z: Array) -> PooledSpectrum:
        """Decompose the centred Gram matrix of the rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            K = kernel(Z)
        check_values(K, kernel)
        kappa2 = kernel.bound if np.isfinite(kernel.bound) else float(K.diagonal().max())
        means = K.mean(axis=0)
        K += means.mean() - means - means[:, None]
        K /= len(K)
        gamma, U = eigh(K, driver="evd", overwrite_a=True, check_finite=False)
        check_semidefinite(gamma)
        kept = gamma > len(gamma) * np.finfo(gamma.dtype).eps * gamma[-1]
        return cls(kernel, gamma[kept], U[:, kept], kappa2)

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
        T = (1 / n + 1 / m) ** 2 * (h @ (self.U.T @ labels) ** 2)
        scales = np.abs(T).max(axis=1)
        unbiased = np.array([each.unbiased for each in statistics], dtype=bool)
        if unbiased.any():
            inside = h[unbiased] @ (self.U**2).T @ labels  # the diagonal's sum over the first sample
            q = T[unbiased] / (1 / n + 1 / m) ** 2
            total = h[unbiased].sum(axis=1, keepdims=True)
            T[unbiased] = (q - inside) / (n * (n - 1)) + (q - total + inside) / (m * (m - 1)) + 2 * q / (n * m)
        return T, scales

    def mmd(self, labels: Array) -> float:
        """Return ‖μ̂_X − μ̂_Y‖."""
        T, _ = self.statistics([MMD()], labels[:, None])
        return float(np.sqrt(np.maximum(T.sum(), 0)))

    def witness(self, statistic: Statistic, labels: Array) -> Array:
        """Return the weights U h(Γ)/Γ Uᵀ w of the function whose mean over X less that over Y is T."""
        n = labels.sum()
        w = labels / n - (1 - labels) / (len(labels) - n)
        return self.U @ (statistic.weight(self.gamma) / self.gamma * (self.U.T @ w))
