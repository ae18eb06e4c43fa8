"""Does x have to do with y? Both Gram matrices are decomposed once; every permutation pairs their rows anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, slices
from muhat._messages import refusal
from muhat.kernels import Gaussian, Kernel
from muhat.testing._base import PermutationTest
from muhat.testing._ladder import as_kernels, kernels_at_bandwidths
from muhat.testing._permutations import Law, PermutationTable, draw_orders
from muhat.testing._results import IndependenceResult, of_table
from muhat.testing._shrunk_covariance import COSE, ShrunkCovariance
from muhat.testing._spectrum import PooledSpectrum
from muhat.testing._statistics import STATISTICS, Filtered, Statistic

MOST_ROWS = 2000
"""Rows beyond which the matrices of all statistics do not fit in memory comfortably."""

STEPS = 4
"""Bandwidths of x, and of y, if nothing else is asked for."""

SHARES = (1e-1, 1e-2, 1e-3)
"""λ of x, and of y, as shares of the largest eigenvalue, if nothing else is asked for."""

AT_ONCE = 2**22
"""Values of y's matrices that are gathered at a time (32 MB)."""


class IndependenceTest(PermutationTest):
    """Test whether x and y are independent, with one exact p-value for many kernels and statistics.

    The kernel of x has bandwidths and λ from x, that of y from y; then the rows of y are permuted. With the eigenpairs
    γ, u of x's centred Gram matrix and δ, v of y's, the statistics are Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)²: HSIC for h(γ) = γ
    and h'(δ) = δ, its spectral-regularised form with filters. All share the permutations, as in ``TwoSampleTest``.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        The kernel on x; Gaussian, if not given.
    kernel_y : str, Kernel, callable or list of these, default=None
        The kernel on y; as on x, if not given.
    bandwidths : int, 'median' or list of float, default=None
        For kernels whose bandwidth is not a number: how many, in equal ratios over the distances of x or y (4 if not
        given), the median of x or y, or the bandwidths themselves.
    statistics : str, Statistic or list of these, default=('mmd', 'spectral')
        The weights h and h', each with each: 'mmd' and 'mmd' is HSIC. For few rows also 'scose', 'fcose' or
        ``ShrunkCovariance(filter)``: the norm of the cross-covariance operator, shrunk.
    n_permutations : int, default=999
        Where there are no more orders than that, all of them are taken instead of random ones.
    random_state : int, RandomState or None, default=None
        For the permutations.
    n_jobs : int, default=None
        Cores to use, as many as there are if not given or −1.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import IndependenceTest
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, size=80)
    >>> x, y = np.cos(angle) + 0.1 * rng.normal(size=80), np.sin(angle) + 0.1 * rng.normal(size=80)
    >>> IndependenceTest(random_state=0).test(x[:, None], 1000 * y[:, None]).p_value
    0.001
    """

    names: ClassVar[Mapping[str, Callable[[], Statistic]]] = {**STATISTICS, **COSE}

    def __init__(
        self,
        kernel: Any = None,
        *,
        kernel_y: Any = None,
        bandwidths: Any = None,
        statistics: Any = ("mmd", "spectral"),
        n_permutations: int = 999,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.bandwidths = bandwidths
        self.statistics = statistics
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(self, X: Any, Y: Any) -> IndependenceResult:
        """Test whether the rows of X, of shape (n, d), are independent of those of Y, of shape (n, e)."""
        statistics = self._check()
        statistics = [
            replace(each, shares=SHARES) if isinstance(each, Filtered) and each.shares is None else each
            for each in statistics
        ]
        if any(each.unbiased for each in statistics):
            needed = "statistics must not be unbiased"
            raise ValueError(refusal("IndependenceTest", needed, "unbiased=True", "leave it out"))
        kernels_x = [Gaussian()] if self.kernel is None else as_kernels(self.kernel)
        kernels_y = kernels_x if self.kernel_y is None else as_kernels(self.kernel_y)
        X, Y = self._pairs(X, Y)
        for each in statistics:
            if isinstance(each, ShrunkCovariance):
                each.check(len(X))
        rng = self._rng()
        order = rng.permutation(len(X))  # of the rows of both: what is chosen does not depend on the order of the rows
        orders, is_complete = draw_orders(len(X), self.n_permutations, rng)
        X, Y = X[order], Y[order]
        x, y = self._side(kernels_x, statistics, X), self._side(kernels_y, statistics, Y)
        if not (x.spectra and y.spectra):
            got, advice = "the same value k(x, y) for all pairs", "take another kernel or bandwidth"
            raise ValueError(refusal("IndependenceTest", "a kernel that tells rows apart is needed", got, advice))
        candidates: list[tuple[tuple[Kernel, ...], tuple[Statistic, ...]]]
        candidates = [((k, other), (h, g)) for k, h in x.candidates for other, g in y.candidates]
        values, laws = [], []
        if candidates:
            values, laws = [self._statistics(x.matrices(), y.matrices(), orders)], [x.law_with(y)]
        for shrunk in (each for each in statistics if isinstance(each, ShrunkCovariance)):
            for (k, one), (other, two) in product(x.spectra, y.spectra):
                values.append(_shrunk(shrunk, one, two, orders))
                laws.append(Law.of_values(values[-1]))
                candidates.append(((k, other), (shrunk,)))
        joined = np.concatenate(values)
        table = PermutationTable(joined, np.abs(joined).max(axis=1), Law.of_all(laws))
        kernel_x, kernel_y = candidates[table.loudest][0]
        return IndependenceResult(
            **of_table(table, candidates),
            is_complete=is_complete,
            n=len(X),
            correlation=_correlation(kernel_x, X, kernel_y, Y),
        )

    def _side(self, kernels: list[Kernel], statistics: list[Statistic], rows: Array) -> _Side:
        """Return the spectra of one side at every bandwidth."""
        ladder = kernels_at_bandwidths(kernels, STEPS if self.bandwidths is None else self.bandwidths, rows)
        spectra = self._map(lambda kernel: PooledSpectrum.from_rows(kernel, rows), ladder, len(rows))
        told = [(kernel, spectrum) for kernel, spectrum in zip(ladder, spectra, strict=True) if spectrum.gamma.size]
        return _Side(told, [each for each in statistics if not isinstance(each, ShrunkCovariance)])

    def _statistics(self, S: Array, R: Array, orders: Array) -> Array:
        """Return Σ_ij S_ij R_π(i)π(j) for each matrix S of x with each R of y, and every order π of the rows."""
        n = orders.shape[1]
        first, second = np.triu_indices(n)
        left = S[:, first, second] * np.where(first == second, 1, 2)  # each pair once, as all is symmetric
        right = np.ascontiguousarray(R.reshape(len(R), -1).T)  # a pair's values lie together, as they are gathered
        values = np.empty((len(orders), len(S), len(R)))

        def work(some: slice) -> None:
            gathered = right[orders[some][:, first] * n + orders[some][:, second]]
            values[some] = left @ gathered

        chunk = max(1, AT_ONCE // (len(first) * len(R)))
        self._map(work, list(slices(0, len(orders), chunk)), n)
        return values.reshape(len(orders), -1).T

    def _pairs(self, X: Any, Y: Any) -> tuple[Array, Array]:
        """Return both sides of the pairs, or refuse them in one sentence."""
        (X, _), (Y, _) = self._sample("X", X), self._sample("Y", Y)
        if len(X) != len(Y):
            raise ValueError(refusal("IndependenceTest", "X and Y must have as many rows", f"{len(X)} and {len(Y)}"))
        if len(X) > MOST_ROWS:
            needed, advice = f"at most {MOST_ROWS} rows are needed", "draw some of the rows"
            raise ValueError(refusal("IndependenceTest", needed, len(X), advice))
        for name, rows in (("X", X), ("Y", Y)):
            if not np.ptp(rows, axis=0).any():
                raise ValueError(refusal("IndependenceTest", f"rows of {name} that differ are needed", "equal ones"))
        return X, Y


@dataclass(frozen=True, eq=False)
class _Side:
    """The spectra of x or of y, and every weight on each of them."""

    spectra: list[tuple[Kernel, PooledSpectrum]]
    statistics: list[Statistic]

    @cached_property
    def candidates(self) -> list[tuple[Kernel, Statistic]]:
        """Every kernel with every statistic, parameters resolved."""
        return [(kernel, each) for kernel, spectrum in self.spectra for each in spectrum.resolve(self.statistics)]

    @cached_property
    def weights(self) -> list[tuple[PooledSpectrum, Array]]:
        """The spectrum and h(γ) of every candidate."""
        resolved = [(spectrum, each) for _, spectrum in self.spectra for each in spectrum.resolve(self.statistics)]
        return [(spectrum, each.weight(spectrum.gamma)) for spectrum, each in resolved]

    def matrices(self) -> Array:
        """U h(Γ) Uᵀ of every candidate."""
        return np.array([(spectrum.U * h) @ spectrum.U.T for spectrum, h in self.weights])

    def law_with(self, other: _Side) -> Law:
        """Return the law of Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)² in theory: the mean of each square is 1/(n − 1)."""

        def sums(side: _Side, power: int) -> Array:
            return np.array([(h**power).sum() / (len(each.U) - 1) ** (power / 2) for each, h in side.weights])

        return Law.of_squares(*(np.outer(sums(self, power), sums(other, power)).ravel() for power in (1, 2, 3)))


def _shrunk(statistic: ShrunkCovariance, x: PooledSpectrum, y: PooledSpectrum, orders: Array) -> Array:
    """Return ‖Σ_λ‖² of the shrunk cross-covariance for every order of the rows of y: shape (1, orders)."""
    K, L = ((each.U * each.gamma) @ each.U.T for each in (x, y))
    with BLAS_ON_ONE_THREAD:
        return np.array([[statistic.squared_norm(K * L[np.ix_(order, order)]) for order in orders]])


def _correlation(kernel_x: Kernel, X: Array, kernel_y: Kernel, Y: Array) -> float:
    """Return HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)): the cosine of the two centred Gram matrices."""
    x, y = PooledSpectrum.from_rows(kernel_x, X), PooledSpectrum.from_rows(kernel_y, Y)
    hsic = x.gamma @ (x.U.T @ y.U) ** 2 @ y.gamma
    return float(hsic / (np.linalg.norm(x.gamma) * np.linalg.norm(y.gamma)))
