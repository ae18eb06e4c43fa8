"""The default test of many rows: fewer statistics, and landmarks instead of all rows.

Where kernels, statistics or the Gram matrix are given, none of this is used. docs/tests.md has the
power beside that of all statistics on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from muhat._arrays import Array
from muhat.embedding import Element, Embedding
from muhat.kernels import Gaussian, Kernel, Laplacian
from muhat.testing._gram import PooledSpectrum, gram_matrix, is_kept, signed
from muhat.testing._ladder import N_GAUSSIAN_BANDWIDTHS, kernels_at_bandwidths, ladder
from muhat.testing._statistics import MMD, Spectral, Statistic

N_LANDMARKS = 200
"""Landmarks of the default test: the spectra of wide kernels have fewer large eigenvalues."""

LEAST_SHARE = 3e-4
"""Eigenvalues below this share of the largest are left out: a third of the least λ below."""

SHARES = (0.1, 0.01, 0.001)
"""The λ of truncated SVD, as shares of the largest eigenvalue."""

PIVOT_TOL = 1e-5
"""A landmark that the others describe up to this share of k(x, x) is left out."""

LEAST_RATIO = 2**0.5
"""Neighbouring bandwidths of the Gaussian kernel: closer ones have nearly the same statistics."""

N_LAPLACIAN_BANDWIDTHS = 3
"""Bandwidths of the Laplacian kernel."""

ROWS_FOR_BANDWIDTHS = 500
"""Rows whose distances the bandwidths are learnt from."""

MAX_ROWS_EXACT = 2000
"""Rows of the pool up to which MMD and its witness are those of all pairs of rows."""


def few_statistics() -> list[Statistic]:
    """Return MMD, and truncated SVD at λ whose eigenvalues landmarks have."""
    return [MMD(), Spectral(shares=SHARES)]


def few_kernels(rows: Array) -> list[Kernel]:
    """Return Gaussian kernels in steps of at least √2, and Laplacian ones, over the same range."""
    some = rows[:ROWS_FOR_BANDWIDTHS]
    bandwidths = ladder(some, "euclidean", N_GAUSSIAN_BANDWIDTHS, LEAST_RATIO)
    found: list[Kernel] = [Gaussian(sigma) for sigma in bandwidths.tolist()]
    return found + kernels_at_bandwidths([Laplacian()], N_LAPLACIAN_BANDWIDTHS, some)


def spectrum_on_landmarks(
    kernel: Kernel, n_landmarks: int, rows: Array, is_single_row: bool
) -> PooledSpectrum:
    """Return the large eigenpairs on landmarks, U in single precision, with which it is multiplied.

    Landmarks are spread evenly over the rows, which are in random order. If few rows are permuted
    one by one, it has the MMD of all pairs.
    """
    landmarks = rows[:: len(rows) // n_landmarks][:n_landmarks]
    K = gram_matrix(kernel, landmarks)
    # K = R Rᵀ on the pivots, so that k(x, pivots) R⁻ᵀ are features.
    root, order, rank, _ = dpstrf(K, tol=PIVOT_TOL * float(K.diagonal().max()), lower=1)
    pivots = landmarks[order[:rank] - 1]
    whitening = solve_triangular(root[:rank, :rank], np.eye(rank), lower=True).T
    features = kernel(rows, pivots) @ whitening
    features -= features.mean(axis=0)
    single = features.astype(np.float32)
    gamma, V = np.linalg.eigh((single.T @ single).astype(np.float64) / len(rows))
    kept = is_kept(gamma, len(rows)) & (gamma >= LEAST_SHARE * gamma.max())
    gamma, V = gamma[kept], V[:, kept]
    U = single @ (V / np.sqrt(len(rows) * gamma)).astype(np.float32)

    def function(a: Array) -> Embedding:
        return Embedding(kernel, pivots, whitening @ (V @ a))

    spectrum = PooledSpectrum(gamma, U, kernel.bound, function)
    if len(rows) > MAX_ROWS_EXACT or not is_single_row:
        return spectrum
    return PooledLandmarks.from_spectrum(spectrum, kernel, rows)


@dataclass(frozen=True, eq=False)
class PooledLandmarks(PooledSpectrum):
    """The spectrum on landmarks, for permutations; MMD and its witness are those of all rows."""

    kernel: Kernel
    rows: Array
    """All rows of the pool, each a unit of its own."""
    known: list[Array] = field(default_factory=list)
    """Labels, and the kernel means of both samples at every row: asked for several times."""

    @classmethod
    def from_spectrum(cls, spectrum: PooledSpectrum, kernel: Kernel, rows: Array) -> Self:
        """Return a spectrum on landmarks together with the rows that these stand for."""
        return cls(spectrum.gamma, spectrum.U, spectrum.kappa2, spectrum.function, kernel, rows)

    def differences(self, labels: Array) -> Array:
        """Return μ̂_X − μ̂_Y at every row."""
        means = self._means(labels)
        return means[:, 0] - means[:, 1]

    def squared_mmd(self, labels: Array, unbiased: bool = False) -> float:
        """Return MMD², the mean of k(x, x') + k(y, y') − 2 k(x, y) over all pairs of rows."""
        means, diagonal = self._means(labels), self.kernel.diagonal(self.rows)
        squared = -2 * float(means[~labels, 0].mean())
        for column, sample in enumerate((labels, ~labels)):
            within, n = float(means[sample, column].mean()), int(sample.sum())
            if unbiased:
                within = (n * within - float(diagonal[sample].mean())) / (n - 1)
            squared += within
        return squared

    def witness(self, statistic: Statistic, labels: Array) -> Element:
        """Return μ̂_X − μ̂_Y on all rows for MMD, a function on the landmarks for others."""
        if type(statistic) is not MMD:
            return super().witness(statistic, labels)
        return Embedding(self.kernel, self.rows, signed(labels))

    def _means(self, labels: Array) -> Array:
        """Return the kernel means of X and of Y at every row, shape (N, 2)."""
        if not self.known or not np.array_equal(self.known[0], labels):
            weights = np.column_stack([labels / labels.sum(), ~labels / (~labels).sum()])
            self.known[:] = labels, self.kernel.product(self.rows, weights)
        return self.known[1]
