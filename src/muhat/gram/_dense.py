"""The Gram operator as a matrix in memory, and the problem on its eigenpairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Array, rounding
from muhat._validation import check_semidefinite, check_values
from muhat.gram._problem import (
    Access,
    Components,
    InMemoryProblem,
    Rows,
    SpectralProblem,
    Spectrum,
    quotient,
)
from muhat.kernels import Kernel


@dataclass(frozen=True)
class DenseGram:
    """A = D K D as a matrix of shape (..., n, n); leading dimensions are a batch of samples of one size."""

    matrix: Array
    masses: Array

    @classmethod
    def from_sample(cls, kernel: Kernel, X: Array, masses: Array | None = None) -> DenseGram:
        """Return the Gram operator of a sample; equal masses by default."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            K = kernel(X)
        check_values(K, kernel)
        if masses is None:
            K /= len(X)
            return cls(K, np.full(len(X), 1 / len(X)))
        root = np.sqrt(masses).astype(K.dtype)
        K *= root
        K *= root[:, None]
        return cls(K, masses)

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors."""
        return self.matrix @ vectors

    def diagonal(self) -> Array:
        """Return the diagonal of A."""
        return np.diagonal(self.matrix, axis1=-2, axis2=-1)

    def spectrum(self) -> Spectrum:
        """Return all eigenpairs of A; rounding below zero is zero, a truly negative eigenvalue is refused."""
        gamma, U = np.linalg.eigh(self.matrix)
        check_semidefinite(gamma)
        # Eigenvalues this small are rounding errors of zero: no filter may tell them apart.
        floor = self.matrix.shape[-1] * rounding(gamma) * gamma[..., -1:]
        return Spectrum.from_pairs(np.where(gamma <= floor, 0, gamma), U, self.masses)


@dataclass(eq=False)
class DenseProblem(InMemoryProblem, SpectralProblem):
    """The problem of a sample whose Gram matrix is in memory; eigenpairs are computed once, when first asked for."""

    access = Access.PRODUCTS | Access.LEADING | Access.SPECTRUM | Access.ROWS
    gram: DenseGram

    @cached_property
    def spectrum(self) -> Spectrum:  # type: ignore[override]
        """The eigenpairs of A."""
        return self.gram.spectrum()

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """μ̂ and f* in the kernel PCA basis: ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i and ⟨f*, v_i⟩ = (UᵀDf*(X))_i / √γ_i."""
        root = np.sqrt(self.spectrum.gamma)
        target = quotient(self.spectrum.project(self.target_values), root)
        mean = root * self.spectrum.coordinates
        return Components(self.spectrum.gamma, mean, target, np.asarray(self.spectrum.effective_size))

    @property
    def rows(self) -> Rows:
        """All points in the eigenbasis."""
        return Rows(self.spectrum.U, self.masses, self.gram.diagonal(), self.mean_values, self.target_values)

    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return what the work returns for all rows at once."""
        return work(self, self.rows, *arguments)

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return β, the weights on the sample.

        s(Ĉ)μ̂ has the weights D s(A) q. With h(γ) = (s(γ) − s(0))/γ, s(Ĉ)f* is s(0) f* plus the weights D h(A) D f*(X),
        so that (1 − s(0)) f* remains beside the sample.
        """
        x = self.spectrum.apply(s, self.root_masses[:, None])
        if self.target is not None:
            h = quotient(s - np.asarray(s_at_zero)[..., None], self.spectrum.gamma)
            x = x - self.spectrum.apply(h, self.target_values[:, None])
        return self.root_masses * x[..., 0]
