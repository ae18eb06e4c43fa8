"""The centred Gram matrix of x or of y: the matrix itself, and its spectrum where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, quotient, rounding
from muhat._threaded_property import ThreadedProperty
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
from muhat.testing._gram import centre, gram_matrix
from muhat.testing._side_spectrum import SideSpectrum
from muhat.testing._statistics import Statistic

MAX_ROWS_KEPT = 500
"""Rows up to which the matrix is kept, and from which null moments are computed if there are more.

The product in tr A³ would take as long as all shifts."""


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

    Of few rows the matrix is kept; of many, the half of it is computed each time it is asked for.
    """

    kernel: Kernel
    rows: Array
    to_learn_from: Array
    """The same rows in a random order that is drawn for this side alone."""
    form: GramForm
    decompose: Callable[[], SideSpectrum]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @ThreadedProperty
    def spectrum(self) -> SideSpectrum:
        """The eigenpairs of A, or of what features make of it."""
        return self.decompose()

    def matrix(self) -> Array:
        """Return A, shape (n, n)."""
        if not self.form.has_matrices:
            return self._weighted_by(self.spectrum.gamma)
        if self._has_halves:
            return _centred(self.kernel, self.rows)
        return self._matrix

    @ThreadedProperty
    def _matrix(self) -> Array:
        return _centred(self.kernel, self.rows)

    def _weighted_by(self, h: Array) -> Array:
        U, V = self._weighted_factors(h)
        return U @ V.T

    def _weighted_factors(self, h: Array) -> tuple[Array, Array]:
        """Return U h(Γ) and U without the columns where h is zero."""
        used = h != 0
        U = self.spectrum.components(used)
        return U * h[used], U

    def transforms(self, statistic: Statistic, drawn: Array) -> list[Array]:
        """Return the Fourier transforms of U h(Γ) Uᵀ in each order, one after the other."""
        if statistic.needs_spectrum:
            L, R = self._weighted_factors(statistic.weight(self.spectrum.gamma))
            return [transformed(half_of_product(L[each], R[each])) for each in drawn]
        return [transformed(self.half(each)) for each in drawn]

    @property
    def _has_halves(self) -> bool:
        """Whether the half of A is computed without the whole matrix."""
        is_large = self.n > MAX_ROWS_KEPT and self.form.has_matrices
        return is_large and self.kernel.positive_semidefinite

    def half(self, order: Array) -> Array:
        """Return the half of A in an order, shape (n, n // 2 + 1): see ``half_of_matrix``."""
        if not self._has_halves:
            return half_of_matrix(self.matrix()[np.ix_(order, order)])
        half = half_of_gram(self.kernel, self.rows[order])
        centre_half(half)
        half /= self.n
        vars(self)["_trace"] = float(half[:, 0].sum())  # saves computing the half for it
        return half

    @ThreadedProperty
    def _trace(self) -> float:
        """The trace of A."""
        return float(self.half(np.arange(self.n))[:, 0].sum())

    @property
    def tells_apart(self) -> bool:
        """Whether the kernel has different values on some pairs of rows, beyond rounding."""
        if self._has_spectrum or not self.kernel.positive_semidefinite:
            return self.spectrum.gamma.size > 0  # raises an error for negative eigenvalues
        # ‖k(x_i, ·) − k(x_1, ·)‖², of which rounding makes some ε k(x, x)
        diagonal = self.kernel.diagonal(self.rows)
        apart = diagonal + diagonal[0] - 2 * self.kernel(self.rows, self.rows[:1])[:, 0]
        return bool(apart.max() > self.n * rounding(apart) * np.abs(diagonal).max())

    @property
    def _has_spectrum(self) -> bool:
        """Whether the spectrum has been computed, or is all there is."""
        return "spectrum" in vars(self) or not self.form.has_matrices

    def power_sums(self, statistic: Statistic) -> tuple[float, Array]:
        """Return a unit of h, and Σh, Σh² and Σh³ in it."""
        if not self._needs_spectrum(statistic):
            unit, sums = self._squares_and_cubes
            return unit, np.append(self._trace / (unit or 1.0), sums)
        h = statistic.weight(self.spectrum.gamma)
        unit = float(h.max(initial=0))
        h = quotient(h, np.array(unit))
        return unit, np.array([h.sum(), (h**2).sum(), (h**3).sum()])

    def _needs_spectrum(self, statistic: Statistic) -> bool:
        """Whether a statistic's null moments are those of all eigenvalues, which are known."""
        has_all = self._has_spectrum and self.form.features is None
        return statistic.needs_spectrum or has_all or not self.form.has_matrices

    def prepare(self, statistics: Sequence[Statistic]) -> None:
        """Compute what takes long and is needed later, so that threads can share it."""
        if not self.form.has_matrices or any(each.needs_spectrum for each in statistics):
            _ = self.spectrum
        if not all(map(self._needs_spectrum, statistics)):
            _ = self._squares_and_cubes

    @ThreadedProperty
    def _squares_and_cubes(self) -> tuple[float, Array]:
        """A unit of A, and the traces of A² and A³ in it; of many rows, from some of them.

        The means of the squares of entries are nearly those of all rows, and so are the largest
        eigenvalues, which make up most of tr A³. The trace of A is always that of all rows: the
        mean of T is tr A tr B/(n − 1), from which T of narrow kernels hardly differs.
        """
        if self._has_halves:
            A = _centred(self.kernel, self.to_learn_from[:MAX_ROWS_KEPT])
        else:
            A = self.matrix()
        unit = float(np.abs(A).max())
        A = quotient(A, np.array(unit))
        m, own = len(A), float((A.diagonal() ** 2).sum())
        # Entries are divided by the number of rows, and n of the n² are on the diagonal.
        squares = own * m / self.n + (float((A**2).sum()) - own) * (1 - 1 / self.n) / (1 - 1 / m)
        if self._has_spectrum:
            cubes = float((quotient(self.spectrum.gamma, np.array(unit)) ** 3).sum())
        else:
            cubes = float(np.vdot(A @ A, A))
        return unit, np.array([squares, cubes])


def _centred(kernel: Kernel, rows: Array) -> Array:
    """Return A = HKH/n."""
    A = gram_matrix(kernel, rows)
    centre(A)
    A /= len(A)
    return A


def kernel_correlation(x: SideGram, y: SideGram) -> float:
    """Return the cosine of the centred Gram matrices, corrected for chance.

    The cosine is c = HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)). Over all orders of the rows of y its mean
    is c₀ = tr A tr B/((n − 1) ‖A‖ ‖B‖) for centred A and B, which is far above zero for narrow
    kernels and few rows. Returned is (c − c₀)/(1 − c₀), or zero if that is negative.
    """
    if x.form.has_matrices:
        order = np.arange(x.n)
        A, B = x.half(order), y.half(order)
        A, B = quotient(A, np.abs(A).max()), quotient(B, np.abs(B).max())
        counted = times_counted(x.n)
        of_both, of_x, of_y = (counted @ (S * R).sum(axis=0) for S, R in ((A, B), (A, A), (B, B)))
        norms = np.sqrt(of_x * of_y)
        return _beyond_chance(of_both / norms, A[:, 0].sum() * B[:, 0].sum() / norms, x.n)
    of_x, of_y = x.spectrum, y.spectrum
    U, V = (each.components(each.gamma > 0) for each in (of_x, of_y))
    hsic = of_x.gamma @ (U.T @ V) ** 2 @ of_y.gamma
    norms = np.linalg.norm(of_x.gamma) * np.linalg.norm(of_y.gamma)
    return _beyond_chance(hsic / norms, of_x.gamma.sum() * of_y.gamma.sum() / norms, x.n)


def _beyond_chance(cosine: float, traces: float, n: int) -> float:
    """Return a cosine less its mean over all orders, as a share of the most that can be."""
    by_chance = traces / (n - 1)
    if by_chance >= 1:
        return 0.0
    return float(np.clip((cosine - by_chance) / (1 - by_chance), 0, 1))
