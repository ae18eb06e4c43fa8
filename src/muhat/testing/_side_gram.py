"""The centred Gram matrix of x or of y: the matrix itself, and its spectrum where it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, quotient, rounding
from muhat._cached import ThreadedProperty
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._cyclic import (
    centre_half,
    half_of_gram,
    half_of_matrix,
    half_of_product,
    times_counted,
    transformed,
)
from muhat.testing._gram import PooledSpectrum, centre, gram_matrix
from muhat.testing._statistics import Statistic

MAX_ROWS_OF_CUBE = 500
"""Rows that tr A³ is computed from: beyond, this product would take as long as all shifts."""


@dataclass(frozen=True)
class GramForm:
    """How the Gram matrices of both sides are held."""

    has_matrices: bool
    """Whether there are n × n matrices; otherwise the features stand for them."""
    features: Approximation | None = None
    """What the spectrum is computed from, if not from the whole matrix."""


@dataclass(frozen=True, eq=False)
class SideGram:
    """A = HKH/n of one kernel on one side.

    A matrix is computed when it is asked for and not kept. Of many rows, where it would be computed
    several times, the half of it is.
    """

    kernel: Kernel
    rows: Array
    to_learn_from: Array
    """The same rows in a random order that is drawn for this side alone."""
    form: GramForm
    decompose: Callable[[], PooledSpectrum]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @ThreadedProperty
    def spectrum(self) -> PooledSpectrum:
        """The eigenpairs of A, or of what features make of it."""
        return self.decompose()

    def matrix(self) -> Array:
        """Return A, shape (n, n)."""
        if not self.form.has_matrices:
            return self._weighted_by(self.spectrum.gamma)
        A = gram_matrix(self.kernel, self.rows)
        centre(A)
        A /= len(A)
        return A

    def _weighted_by(self, h: Array) -> Array:
        U, V = self._weighted_factors(h)
        return U @ V.T

    def _weighted_factors(self, h: Array) -> tuple[Array, Array]:
        """Return U h(Γ) and U without the columns where h is zero."""
        used = h != 0
        U = self.spectrum.U[:, used]
        return U * h[used], U

    def transforms(self, statistic: Statistic, drawn: Array) -> list[Array]:
        """Return the Fourier transforms of U h(Γ) Uᵀ in each order, one after the other."""
        if statistic.needs_spectrum:
            L, R = self._weighted_factors(statistic.weight(self.spectrum.gamma))
            return [transformed(half_of_product(L[each], R[each])) for each in drawn]
        if not self._has_halves:
            A = self.matrix()
            return [transformed(half_of_matrix(A[np.ix_(each, each)])) for each in drawn]
        found = [transformed(self.half() / self.n)]  # the first order is that of the rows
        for order in drawn[1:]:
            half = half_of_gram(self.kernel, self.rows[order])
            centre_half(half)
            found.append(transformed(half / self.n))
        return found

    @property
    def _has_halves(self) -> bool:
        """Whether the half of HKH is computed without the whole matrix."""
        is_large = self.n > MAX_ROWS_OF_CUBE and self.form.has_matrices
        return is_large and self.kernel.positive_semidefinite

    def half(self) -> Array:
        """Return the half of HKH, shape (n, n // 2 + 1): see ``half_of_matrix``."""
        if self._has_halves:
            return self._half_and_largest[0]
        return half_of_matrix(self.matrix())

    @ThreadedProperty
    def _half_and_largest(self) -> tuple[Array, float]:
        """The half of HKH, and the largest value of K."""
        half = half_of_gram(self.kernel, self.rows)
        largest = float(np.abs(half).max())
        centre_half(half)
        return half, largest

    @property
    def tells_apart(self) -> bool:
        """Whether the kernel has different values on some pairs of rows, beyond rounding."""
        if self._has_spectrum or not self.kernel.positive_semidefinite:
            return self.spectrum.gamma.size > 0  # raises an error for negative eigenvalues
        unit, _ = self._power_sums_of_matrix
        return unit > 0

    @property
    def _has_spectrum(self) -> bool:
        """Whether the spectrum has been computed, or is all there is."""
        return "spectrum" in vars(self) or not self.form.has_matrices

    def power_sums(self, statistic: Statistic) -> tuple[float, Array]:
        """Return a unit of h, and Σh, Σh² and Σh³ in it."""
        if not statistic.needs_spectrum and self.form.has_matrices:
            return self._power_sums_of_matrix
        h = statistic.weight(self.spectrum.gamma)
        unit = float(h.max(initial=0))
        h = quotient(h, np.array(unit))
        return unit, np.array([h.sum(), (h**2).sum(), (h**3).sum()])

    @ThreadedProperty
    def _power_sums_of_matrix(self) -> tuple[float, Array]:
        """A unit of A, zero if all rows look alike, and the traces of A, A² and A³ in it."""
        if self._has_halves:
            half, largest = self._half_and_largest
        else:
            K = gram_matrix(self.kernel, self.rows)
            largest = float(np.abs(K).max())
            centre(K)
            half = half_of_matrix(K)
        unit = float(np.abs(half).max())
        if unit <= self.n * rounding(half) * largest:
            return 0.0, np.zeros(3)
        scaled = quotient(half, np.array(unit))
        squares = times_counted(self.n) @ np.einsum("ak,ak->k", scaled, scaled)
        unit /= self.n
        return unit, np.array([scaled[:, 0].sum(), squares, self._third_power_sum(unit)])

    def _third_power_sum(self, unit: float) -> float:
        """Return tr A³ in a unit: by eigenvalues where they are known, else from some of the rows.

        The eigenvalues of some rows' matrix are nearly those of all rows', and the largest of them,
        which are closest, make up most of this sum.
        """
        if self._has_spectrum:
            return float((quotient(self.spectrum.gamma, np.array(unit)) ** 3).sum())
        K = gram_matrix(self.kernel, self.to_learn_from[:MAX_ROWS_OF_CUBE])
        centre(K)
        A = quotient(K, np.array(unit * len(K)))
        return float(np.vdot(A @ A, A))


def kernel_correlation(x: SideGram, y: SideGram) -> float:
    """Return HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)): the cosine of the centred Gram matrices."""
    if x.form.has_matrices:
        A, B = x.half(), y.half()
        A, B = quotient(A, np.abs(A).max()), quotient(B, np.abs(B).max())
        counted = times_counted(x.n)
        of_both, of_x, of_y = (counted @ (S * R).sum(axis=0) for S, R in ((A, B), (A, A), (B, B)))
        return float(of_both / np.sqrt(of_x * of_y))
    of_x, of_y = x.spectrum, y.spectrum
    hsic = of_x.gamma @ (of_x.U.T @ of_y.U) ** 2 @ of_y.gamma
    return float(hsic / (np.linalg.norm(of_x.gamma) * np.linalg.norm(of_y.gamma)))
