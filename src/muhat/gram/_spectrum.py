"""The spectrum of a sample: eigenpairs (γ_i, u_i) of A = K/n, which every filter and every score is a function of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array


class Eigenvalues:
    """What follows from the eigenvalues and from Uᵀq alone, whether or not U is held."""

    gamma: Array
    """Eigenvalues of A, ascending, none negative."""
    coordinates: Array
    """Uᵀq, so that ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i for the eigenfunctions v_i of Ĉ (Proposition 1)."""
    effective_size: float
    """1/Σp_i²: n for equal masses."""

    @property
    def trace(self) -> Array:
        """tr A = Σ p_i k(x_i, x_i)."""
        return self.gamma.sum(axis=-1)

    @property
    def squared_norm(self) -> Array:
        """‖μ̂‖²."""
        return (self.gamma * self.coordinates**2).sum(axis=-1)

    @property
    def largest(self) -> float:
        """The largest eigenvalue, over the whole batch."""
        return float(self.gamma.max(initial=0.0))

    @property
    def risk(self) -> Array:
        """The unbiased estimate of KME's risk E‖μ̂ − μ‖²: (tr A − ‖μ̂‖²)/(n − 1)."""
        return (self.trace - self.squared_norm) / (self.effective_size - 1)


@dataclass(frozen=True)
class Spectrum(Eigenvalues):
    """Eigenpairs of A = D K D, D = diag(√p): with equal masses p_i = 1/n this is A = K/n.

    Arrays may have leading batch dimensions: many samples of one size go through the same lines as one.

    Parameters
    ----------
    gamma : array of shape (..., r)
        Eigenvalues, ascending, none negative; components left out have the eigenvalue zero.
    U : array of shape (..., n, r)
        Eigenvectors, in columns.
    masses : array of shape (n,)
        p, positive, with sum one.
    """

    gamma: Array
    U: Array
    masses: Array

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.masses)

    @cached_property
    def root_masses(self) -> Array:
        """q = √p, so that μ̂ = Ψᵀq with Ψ the rows √p_i k(x_i, ·) and A = ΨΨᵀ."""
        return np.sqrt(self.masses).astype(self.U.dtype)

    @cached_property
    def coordinates(self) -> Array:  # type: ignore[override]
        """Uᵀq."""
        return self.project(self.root_masses)

    def project(self, vector: Array) -> Array:
        """Return Uᵀ·vector."""
        return (vector[..., None, :] @ self.U)[..., 0, :]

    @property
    def effective_size(self) -> float:  # type: ignore[override]
        """1/Σp_i²: n for equal masses."""
        return float(1 / (self.masses**2).sum())
