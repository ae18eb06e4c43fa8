"""The Gram operator matrix-free: products with kernel blocks that are never held, and the problem they solve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat._validation import check_finite
from muhat.gram._problem import Access, InMemoryProblem, Spectrum
from muhat.kernels import Kernel

SMALL = 64
"""Rows up to which leading eigenpairs come from all of them."""

SEARCHED = 10
"""The least number of vectors that leading eigenpairs are looked for in."""


@dataclass(frozen=True)
class BlockGram:
    """A = D K D by its products: kernel values are computed when they are needed, in memory proportional to n."""

    kernel: Kernel
    X: Array
    masses: Array

    @classmethod
    def from_sample(cls, kernel: Kernel, X: Array, masses: Array | None = None) -> BlockGram:
        """Return the Gram operator of a sample; equal masses by default."""
        gram = cls(kernel, X, np.full(len(X), 1 / len(X)) if masses is None else masses)
        if not kernel.positive_semidefinite:
            _check_forms(gram)
        return gram

    @cached_property
    def root_masses(self) -> Array:
        """q = √p."""
        return np.sqrt(self.masses).astype(self._own.dtype)

    @cached_property
    def _own(self) -> Array:
        """k(x_i, x_i)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._finite(self.kernel.diagonal(self.X))

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors, one or many columns for one pass over the kernel's values."""
        root = self.root_masses.reshape(-1, *[1] * (vectors.ndim - 1))
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            return self._finite(root * self.kernel.product(self.X, root * vectors))

    def _finite(self, values: Array) -> Array:
        """Return values that come of the kernel, or refuse those that are not finite."""
        check_finite(values.sum(), self.kernel)
        return values

    def diagonal(self) -> Array:
        """Return the diagonal of A."""
        return self.root_masses**2 * self._own

    def leading(self, count: int, tolerance: float = 0.0) -> Spectrum:
        """Return so many leading eigenpairs of A, ascending, by Lanczos' iteration.

        The tolerance is the relative residual ‖Au − γu‖/γ to reach, by default the rounding unit. An eigenvalue's own
        error is of the order of its square.
        """
        n = len(self.masses)
        if n <= SMALL or 2 * count >= n:
            gamma, U = np.linalg.eigh(self.product(np.eye(n, dtype=self.root_masses.dtype)))
            gamma, U = gamma[-count:], U[:, -count:]
        elif not self.diagonal().any():  # a positive semi-definite matrix is then zero
            gamma, U = np.zeros(count, self.root_masses.dtype), np.eye(n, count, dtype=self.root_masses.dtype)
        else:
            operator = LinearOperator((n, n), self.product, matmat=self.product, dtype=self.root_masses.dtype)
            # Close to the leading eigenvector of a kernel with positive values, and orthogonal to none.
            start = self.root_masses + np.random.default_rng(0).normal(scale=0.1 / np.sqrt(n), size=n)
            size = min(n, max(2 * count + 1, SEARCHED))
            gamma, U = eigsh(operator, count, v0=start.astype(operator.dtype), ncv=size, tol=tolerance)
            order = np.argsort(gamma)
            gamma, U = gamma[order], U[:, order]
        # Eigenvalues this small are rounding errors of zero: no filter may tell them apart.
        floor = n * rounding(gamma) * gamma[-1]
        return Spectrum.from_pairs(np.where(gamma <= max(floor, 0), 0, gamma), U, self.masses)

    def residual(self, pairs: Spectrum) -> float:
        """Return the largest ‖Au − γu‖ of some eigenpairs, relative to the largest eigenvalue."""
        gaps = self.product(pairs.U) - pairs.gamma * pairs.U
        return float(np.linalg.norm(gaps, axis=0).max()) / (pairs.largest or 1.0)


@dataclass(eq=False)
class BlockProblem(InMemoryProblem):
    """The problem of a sample too large for all eigenpairs of A."""

    access = Access.PRODUCTS | Access.LEADING | Access.ROWS
    gram: BlockGram

    @cached_property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """γ_max, to rounding."""
        return self.gram.leading(1, tolerance=float(np.finfo(self.dtype).eps) ** 0.75).largest


def _check_forms(gram: BlockGram) -> None:
    """Refuse a kernel that is not symmetric or not positive semi-definite, as far as its forms uᵀAv tell.

    They are those of two random vectors, and of every point with itself.
    """
    pair = np.random.default_rng(0).normal(size=(len(gram.masses), 2)).astype(gram.root_masses.dtype)
    forms = pair.T @ gram.product(pair)
    gap, scale = abs(float(forms[0, 1] - forms[1, 0])), float(np.abs(forms).max())
    if gap > rounding(forms) ** 0.5 * scale:
        needed, got = "k(x, y) = k(y, x) is needed", f"a difference of {gap:.2g} where products reach {scale:.2g}"
        raise ValueError(refusal(type(gram.kernel).__name__, needed, got, "pass (K + K.T)/2 if this is rounding"))
    least = min(float(gram.diagonal().min()), float(np.diagonal(forms).min()))
    if least < -(rounding(forms) ** 0.5) * scale:
        needed, got = "the Gram matrix must be positive semi-definite", f"a quadratic form of {least:.2g}"
        raise ValueError(refusal("kernel", needed, got, "use a kernel that is, or clip the matrix's spectrum"))
