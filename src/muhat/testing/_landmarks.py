"""The default test of many rows: fewer statistics, and landmarks instead of all rows.

Where kernels, statistics or the Gram matrix are given, none of this is used. docs/tests.md has the
power beside that of all statistics on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from muhat._arrays import Array
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._distances import features_for
from muhat.testing._gram import PooledSpectrum, signed
from muhat.testing._statistics import MMD, Spectral, Statistic

N_LANDMARKS = 200
"""Landmarks of the default test: the spectra of wide kernels have fewer large eigenvalues."""

LEAST_SHARE = 3e-4
"""Eigenvalues below this share of the largest are left out: a third of the least λ below."""

SHARES = (0.1, 0.01, 0.001)
"""The λ of truncated SVD, as shares of the largest eigenvalue."""

MAX_ROWS_EXACT = 2000
"""Rows of the pool up to which MMD and its witness are those of all pairs of rows."""


def few_statistics() -> list[Statistic]:
    """Return MMD, and truncated SVD at λ whose eigenvalues landmarks have."""
    return [MMD(), Spectral(shares=SHARES)]


def spectrum_on_landmarks(
    kernel: Kernel, gram: Approximation, rows: Array, is_single_row: bool
) -> PooledSpectrum:
    """Return the large eigenpairs on landmarks, U in single precision, with which it is multiplied.

    If few rows are permuted one by one, it has the MMD of all pairs.
    """
    spectrum = PooledSpectrum.from_features(features_for(kernel, gram, rows), rows, LEAST_SHARE)
    spectrum = replace(spectrum, U=spectrum.U.astype(np.float32))
    if len(rows) > MAX_ROWS_EXACT or not is_single_row:
        return spectrum
    return PooledLandmarks.from_spectrum(spectrum, kernel, rows)


@dataclass(frozen=True, eq=False)
class PooledLandmarks(PooledSpectrum):
    """The spectrum on landmarks, for permutations; MMD and its witness are those of all rows."""

    kernel: Kernel
    rows: Array
    """All rows of the pool, each a unit of its own."""

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
        weights = np.column_stack([labels / labels.sum(), ~labels / (~labels).sum()])
        return self.kernel.product(self.rows, weights)
