"""The Gram operator as a matrix in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, rounding
from muhat._validation import check_semidefinite, check_values
from muhat.gram._spectrum import Spectrum
from muhat.kernels import Kernel


@dataclass(frozen=True)
class DenseGram:
    """A = D K D as a matrix of shape (..., n, n); leading dimensions are a batch of samples of one size.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Linear
    >>> DenseGram.from_sample(Linear(), np.array([[1.0], [3.0]])).matrix
    array([[0.5, 1.5],
           [1.5, 4.5]])
    """

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
        return Spectrum(np.where(gamma <= floor, 0, gamma), U, self.masses)
