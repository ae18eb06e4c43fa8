"""The problem of a sample on a low-rank factor A ≈ Z Zᵀ: r eigenpairs for the price of n r²."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array, quotient, significant_eigenpairs
from muhat.gram._in_memory import DenseProblem
from muhat.gram._pivoted_cholesky import LowRankFactor, pivoted_cholesky
from muhat.gram._problem import Spectrum
from muhat.kernels import Kernel

MAX_RANK_SHARE = 0.25
"""The most pivots of such a factor, as a share of the rows: n³/16 multiplications."""

EXACT_TOL = 1e-14
"""The share of tr K up to which what a factor misses is rounding."""


def factor_of_sample(kernel: Kernel, X: Array) -> LowRankFactor:
    """Return the factor that ``gram="auto"`` looks at; its error says whether it is exact."""
    return pivoted_cholesky(kernel, X, EXACT_TOL, max_rank=int(MAX_RANK_SHARE * len(X)))


@dataclass(frozen=True)
class FactorGram:
    """A = D K D by a factor Z = D L of n rows and r columns, and the diagonal of A itself."""

    Z: Array
    masses: Array
    own: Array
    """The diagonal of A, in the type of the rows."""

    @classmethod
    def from_factor(
        cls, factor: LowRankFactor, kernel: Kernel, X: Array, masses: Array | None = None
    ) -> FactorGram:
        """Return the Gram operator of a sample; equal masses by default."""
        if masses is None:
            masses = np.full(len(X), 1 / len(X))
        own = kernel.diagonal(X)
        return cls(np.sqrt(masses)[:, None] * factor.L, masses, masses.astype(own.dtype) * own)

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors."""
        return self.Z @ (self.Z.T @ vectors)

    def diagonal(self) -> Array:
        """Return the diagonal of A."""
        return self.own

    def spectrum(self) -> Spectrum:
        """Return the eigenpairs of A that are not zero, from those of ZᵀZ."""
        gamma, V = significant_eigenpairs(self.Z.T @ self.Z)
        return Spectrum.from_pairs(gamma, self.Z @ quotient(V, np.sqrt(gamma)), self.masses)


@dataclass(eq=False)
class FactorProblem(DenseProblem):
    """The problem of a sample whose Gram matrix is a factor, to rounding.

    Weights are on all rows, and all grids are those of the whole matrix.
    """

    gram: FactorGram  # type: ignore[assignment]

    @cached_property
    def eigenvalues(self) -> Array:
        """All n eigenvalues of A, ascending; those that the factor does not have are zero."""
        return np.append(np.zeros(self.n - len(self.spectrum.gamma)), self.spectrum.gamma)

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return β: what the eigenvectors do not span has the eigenvalue zero."""
        spectrum, q = self.spectrum, np.sqrt(self.masses)
        outside = q - spectrum.U @ spectrum.coordinates
        return super().weights(s, s_at_zero) + self.root_masses * (s_at_zero * outside)
