"""The Gram operator of points in memory, as a matrix or matrix-free, and the problem on each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from muhat._arrays import Array, quotient, rounding, slices, without_rounding
from muhat._validation import check_finite, check_semidefinite, check_values
from muhat.errors import MuhatError
from muhat.gram._problem import (
    Access,
    Components,
    ConstantFilterScores,
    EigenbasisRows,
    Problem,
    SpectralProblem,
    Spectrum,
    Target,
    TargetWeights,
    dimension_of,
)
from muhat.kernels import Kernel

MAX_ROWS_FULL_SEARCH = 64
"""Most rows for which leading eigenpairs are taken from a full decomposition."""

MIN_SEARCH_VECTORS = 10
"""Fewest vectors in which leading eigenpairs are searched."""

ROWS_PER_BLOCK = 512
"""Rows of a matrix that are brought to a higher precision together."""


@dataclass(eq=False)
class InMemoryProblem(Problem):
    """A problem whose points are in memory: what follows from products with A and its diagonal."""

    gram: Any
    target: Target | None = None
    """f*; none is f* = 0."""

    def __post_init__(self) -> None:
        own = self.gram.diagonal()
        self.masses: Array = self.gram.masses
        self.n: int = len(self.masses)
        self.rank: int = self.n
        self.dtype: np.dtype[Any] = own.dtype
        self.batch: tuple[int, ...] = own.shape[:-1]
        self.trace: Array = own.sum(axis=-1, dtype=np.float64)
        self.largest_value: float = float((own / self.masses).max())
        self.mass_range: tuple[float, float] = float(self.masses.min()), float(self.masses.max())
        self.mean_weights: Array = self.masses.astype(self.dtype)
        self.root_masses: Array = np.sqrt(self.masses).astype(self.dtype)
        self.has_target: bool = self.target is not None
        self.target_values: Array = np.zeros_like(self.root_masses)
        self.target_squared_norm: float = 0.0
        self.target_weights: TargetWeights | None = None
        if self.target is not None:
            self.target_values = self.root_masses * self.target.values
            self.target_squared_norm = self.target.squared_norm
            self.target_weights = self.target.weights

    @cached_property
    def mean_values(self) -> Array:
        """Aq = D μ̂(X)."""
        return self.gram.product(np.sqrt(self.masses))

    @property
    def spread(self) -> Array:  # type: ignore[override]
        """tr A − ‖μ̂‖²."""
        return self.trace - self.mean_values @ np.sqrt(self.masses)

    @cached_property
    def left_out(self) -> ConstantFilterScores:  # type: ignore[override]
        """What is left without each point, from products with A alone, summed up in double."""
        p, q = self.masses, np.sqrt(self.masses)
        mean, target = q * self.mean_values, q * self.target_values
        norms = (
            mean.sum(axis=-1, keepdims=True),
            target.sum(axis=-1, keepdims=True),
            self.target_squared_norm,
        )
        own = self.gram.diagonal().astype(np.float64)
        return ConstantFilterScores.from_sums(
            EigenbasisRows(self.root_masses, p, self.target_weights).update,
            p,
            own,
            mean,
            target,
            norms,
        )


@dataclass(frozen=True)
class DenseGram:
    """A = D K D as a matrix of shape (..., n, n).

    Leading dimensions are a batch of samples of one size.
    """

    matrix: Array
    masses: Array

    @classmethod
    def from_sample(cls, kernel: Kernel, X: Array, masses: Array | None = None) -> DenseGram:
        """Return the Gram operator of a sample; equal masses by default."""
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
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
        """Return A @ vectors, in the precision of the vectors.

        A matrix of a lower precision is converted some rows at a time.
        """
        if np.can_cast(vectors.dtype, self.matrix.dtype):
            return self.matrix @ vectors
        chunks = slices(0, self.matrix.shape[-2], ROWS_PER_BLOCK)
        return np.concatenate(
            [self.matrix[..., some, :].astype(vectors.dtype) @ vectors for some in chunks],
            axis=-min(vectors.ndim, 2),
        )

    def diagonal(self) -> Array:
        """Return the diagonal of A."""
        return np.diagonal(self.matrix, axis1=-2, axis2=-1)

    def spectrum(self) -> Spectrum:
        """Return all eigenpairs of A, in double.

        Rounding below zero is zero, a negative eigenvalue is refused.
        """
        gamma, U = np.linalg.eigh(self.matrix.astype(np.float64, copy=False))
        check_semidefinite(gamma.astype(self.matrix.dtype))
        gamma = without_rounding(gamma, self.matrix.shape[-1], unit=rounding(self.matrix))
        return Spectrum.from_pairs(gamma, U, self.masses)


@dataclass(eq=False)
class DenseProblem(InMemoryProblem, SpectralProblem):
    """The problem of a sample whose Gram matrix is in memory.

    Eigenpairs are computed once, when first asked for.
    """

    access: ClassVar[Access] = (  # type: ignore[misc]
        Access.PRODUCTS | Access.LEADING | Access.SPECTRUM | Access.ROWS
    )
    gram: DenseGram

    @cached_property
    def spectrum(self) -> Spectrum:  # type: ignore[override]
        """The eigenpairs of A."""
        return self.gram.spectrum()

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """μ̂ and f* in the kernel PCA basis.

        ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i and ⟨f*, v_i⟩ = (UᵀDf*(X))_i / √γ_i.
        """
        root = np.sqrt(self.spectrum.gamma)
        target = quotient(self.spectrum.project(self.target_values), root)
        mean = root * self.spectrum.coordinates
        return Components(
            self.spectrum.gamma, mean, target, np.asarray(self.spectrum.effective_size)
        )

    @property
    def rows(self) -> EigenbasisRows:
        """All points in the eigenbasis."""
        return EigenbasisRows(self.spectrum.U, self.masses, self.target_weights)

    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        return work(self, self.rows, *arguments)

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return β, the weights on the sample.

        s(Ĉ)μ̂ has the weights D s(A) q. With h(γ) = (s(γ) − s(0))/γ, s(Ĉ)f* is s(0) f* plus the
        weights D h(A) D f*(X), so that (1 − s(0)) f* remains beside the sample.
        """
        x = self.spectrum.apply(s, self.root_masses[:, None])
        if self.target is not None:
            h = quotient(s - np.asarray(s_at_zero)[..., None], self.spectrum.gamma)
            x = x - self.spectrum.apply(h, self.target_values[:, None])
        return self.root_masses * x[..., 0]


@dataclass(frozen=True)
class BlockGram:
    """A = D K D by its products.

    Kernel values are computed when they are needed, in memory proportional to n.
    """

    kernel: Kernel
    X: Array
    masses: Array

    @classmethod
    def from_sample(cls, kernel: Kernel, X: Array, masses: Array | None = None) -> BlockGram:
        """Return the Gram operator of a sample; equal masses by default."""
        if masses is None:
            masses = np.full(len(X), 1 / len(X))
        gram = cls(kernel, X, masses)
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
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
            return self._finite(root * self.kernel.product(self.X, root * vectors))

    def _finite(self, values: Array) -> Array:
        """Return values that come of the kernel, or refuse those that are not finite."""
        check_finite(values.sum(), self.kernel)
        return values

    def diagonal(self) -> Array:
        """Return the diagonal of A."""
        return self.root_masses**2 * self._own

    def centred(self, some: slice, mean_values: Array) -> Array:
        """Return some rows of D (k − μ̂ − μ̂ + ‖μ̂‖²) D, given D μ̂(X), in double."""
        q = np.sqrt(self.masses)
        mean = mean_values / q
        K = self.kernel(self.X[some], self.X).astype(np.float64)
        K -= mean
        K += float(self.masses @ mean) - mean[some, None]
        K *= q
        K *= q[some, None]
        return K

    def leading(self, count: int, tolerance: float = 0.0) -> Spectrum:
        """Return ``count`` leading eigenpairs of A, ascending, by Lanczos' iteration.

        The tolerance is the relative residual ‖Au − γu‖/γ to reach, by default the rounding unit.
        An eigenvalue's own error is of the order of its square.
        """
        n = len(self.masses)
        if n <= MAX_ROWS_FULL_SEARCH or 2 * count >= n:
            gamma, U = np.linalg.eigh(self.product(np.eye(n, dtype=self.root_masses.dtype)))
            gamma, U = gamma[-count:], U[:, -count:]
        elif not self.diagonal().any():  # a positive semi-definite matrix is then zero
            gamma = np.zeros(count, self.root_masses.dtype)
            U = np.eye(n, count, dtype=self.root_masses.dtype)
        else:
            operator = LinearOperator(
                (n, n), self.product, matmat=self.product, dtype=self.root_masses.dtype
            )
            # Close to the leading eigenvector of a kernel with positive values, and orthogonal to
            # none.
            start = self.root_masses + np.random.default_rng(0).normal(
                scale=0.1 / np.sqrt(n), size=n
            )
            size = min(n, max(2 * count + 1, MIN_SEARCH_VECTORS))
            gamma, U = eigsh(
                operator, count, v0=start.astype(operator.dtype), ncv=size, tol=tolerance
            )
            order = np.argsort(gamma)
            gamma, U = gamma[order], U[:, order]
        return Spectrum.from_pairs(without_rounding(gamma, n), U, self.masses)


@dataclass(eq=False)
class BlockProblem(InMemoryProblem):
    """The problem of a sample too large for all eigenpairs of A."""

    access: ClassVar[Access] = (  # type: ignore[misc]
        Access.PRODUCTS | Access.LEADING | Access.ROWS
    )
    gram: BlockGram

    @cached_property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """γ_max, to rounding."""
        return self.gram.leading(1, tolerance=float(np.finfo(self.dtype).eps) ** 0.75).largest

    @cached_property
    def effective_dimension(self) -> Array:
        """D, from the centred kernel values of all pairs, some rows at a time."""
        squared = sum(
            (self.gram.centred(some, self.mean_values) ** 2).sum()
            for some in slices(0, self.n, ROWS_PER_BLOCK)
        )
        return dimension_of(np.asarray(self.spread), np.asarray(squared))


def _check_forms(gram: BlockGram) -> None:
    """Raise MuhatError if forms uᵀAv show that a kernel is not symmetric or not semi-definite.

    They are those of two random vectors, and of every point with itself.
    """
    pair = (
        np.random.default_rng(0).normal(size=(len(gram.masses), 2)).astype(gram.root_masses.dtype)
    )
    forms = pair.T @ gram.product(pair)
    gap, scale = abs(float(forms[0, 1] - forms[1, 0])), float(np.abs(forms).max())
    if gap > rounding(forms) ** 0.5 * scale:
        needed = "k(x, y) = k(y, x) is needed"
        got = f"a difference of {gap:.2g} where products reach {scale:.2g}"
        raise MuhatError(
            type(gram.kernel).__name__,
            needed,
            got,
            "if the difference is rounding, pass (K + K.T)/2",
        )
    least = min(float(gram.diagonal().min()), float(np.diagonal(forms).min()))
    if least < -(rounding(forms) ** 0.5) * scale:
        needed = "the Gram matrix must be positive semi-definite"
        got = f"a quadratic form of {least:.2g}"
        raise MuhatError(
            "kernel",
            needed,
            got,
            "use a positive semi-definite kernel, or set negative eigenvalues to zero",
        )
