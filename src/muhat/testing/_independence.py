"""Does x have to do with y? Both Gram matrices are decomposed once; every permutation pairs their rows anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, quotient, slices
from muhat._messages import refusal
from muhat.data import ColumnMoments, SampleBatch
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Gaussian, Kernel
from muhat.testing._base import Numbered, PermutationTest, numbered, spectral_gram
from muhat.testing._gram import PooledSpectrum
from muhat.testing._ladder import as_kernels, kernels_at_bandwidths
from muhat.testing._permutations import Law, PermutationTable, draw_orders
from muhat.testing._results import Candidates, IndependenceResult, of_table
from muhat.testing._shrunk_covariance import COSE, ShrunkCovariance
from muhat.testing._statistics import STATISTICS, Filtered, Statistic

DENSE_UP_TO = 500
"""Rows up to which the matrices of all statistics are gathered for each permutation in a few milliseconds."""

LANDMARKS = 100
"""How many landmarks of x, and of y, stand for more rows than that, if nothing else is asked for."""

MOST_ROWS = {True: 2000, False: 100_000}
"""Rows beyond which all matrices, where these are dense, or the orders of all permutations do not fit in memory."""

STEPS = 4
"""Bandwidths of x, and of y, if nothing else is asked for."""

SHARES = (1e-1, 1e-2, 1e-3)
"""λ of x, and of y, as shares of the largest eigenvalue, if nothing else is asked for."""

CHUNK = 8
"""Permutations that a thread takes at a time."""


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
    gram : {'auto', 'dense', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How both Gram matrices are held: as they are, by default up to 500 rows, or approximated by features, 100
        landmarks by default, drawn from x and from y. The p-value is exact either way.
    standardize : bool, default=True
        Whether columns are brought to mean 0 and variance 1, those of x over x and those of y over y.
    n_permutations : int, default=999
        Where there are no more orders than that, all of them are taken instead of random ones.
    random_state : int, RandomState, Generator or None, default=0
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
        gram: Any = "auto",
        standardize: bool = True,
        n_permutations: int = 999,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.bandwidths = bandwidths
        self.statistics = statistics
        self.gram = gram
        self.standardize = standardize
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(self, X: Any, Y: Any) -> IndependenceResult:
        """Test whether the rows of X, of shape (n, d), are independent of those of Y, of shape (n, e)."""
        paired = self._paired(X, Y)
        kernel_x, kernel_y = paired.candidates[paired.table.loudest][0]
        return IndependenceResult(
            **of_table(paired.table, paired.candidates),
            is_complete=paired.is_complete,
            n=paired.n,
            correlation=_correlation(paired.x.spectrum(kernel_x), paired.y.spectrum(kernel_y)),
        )

    def _paired(self, X: Any, Y: Any) -> _Paired:
        """Return the values of all statistics for all orders of the rows of Y."""
        statistics = [
            replace(each, shares=SHARES) if isinstance(each, Filtered) and each.shares is None else each
            for each in self._check()
        ]
        if any(each.unbiased for each in statistics):
            needed = "statistics must not be unbiased"
            raise ValueError(refusal("IndependenceTest", needed, "unbiased=True", "leave it out"))
        kernels_x = [Gaussian()] if self.kernel is None else as_kernels(self.kernel)
        kernels_y = kernels_x if self.kernel_y is None else as_kernels(self.kernel_y)
        known = [numbered("IndependenceTest", *side) for side in ((kernels_x, [X]), (kernels_y, [Y]))]
        kernels_x, kernels_y = (
            given if each is None else each.kernels for given, each in zip((kernels_x, kernels_y), known, strict=True)
        )
        gram = spectral_gram(self, self.gram, [*kernels_x, *kernels_y])
        X, Y = self._pairs([X, Y], known, gram == "dense")
        if gram == "auto":
            gram = "dense" if len(X) <= DENSE_UP_TO else Nystrom(LANDMARKS)
        for each in statistics:
            if isinstance(each, ShrunkCovariance):
                each.check(len(X))
        rng = self._rng()
        order = rng.permutation(len(X))  # of the rows of both: what is chosen does not depend on the order of the rows
        orders, is_complete = draw_orders(len(X), self.n_permutations, rng)
        X, Y = X[order], Y[order]
        x, y = (self._side(*side, statistics, gram) for side in ((kernels_x, X), (kernels_y, Y)))
        if not (x.spectra and y.spectra):
            got, advice = "the same value k(x, y) for all pairs", "take another kernel or bandwidth"
            raise ValueError(refusal("IndependenceTest", "a kernel that tells rows apart is needed", got, advice))
        candidates: Candidates = [((k, other), (h, g)) for k, h in x.candidates for other, g in y.candidates]
        values, laws = [], []
        if candidates:
            values, laws = [self._statistics(x, y, orders, gram == "dense")], [x.law_with(y)]
        for shrunk in (each for each in statistics if isinstance(each, ShrunkCovariance)):
            for (k, one), (other, two) in product(x.spectra, y.spectra):
                values.append(_shrunk(shrunk, one, two, orders))
                laws.append(Law.of_values(values[-1]))
                candidates.append(((k, other), (shrunk,)))
        joined = np.concatenate(values)
        table = PermutationTable(joined, np.abs(joined).max(axis=1), Law.of_all(laws))
        return _Paired(x, y, table, candidates, is_complete, len(X))

    def _side(
        self, kernels: list[Kernel], rows: Array, statistics: list[Statistic], gram: str | Approximation
    ) -> _Side:
        """Return the spectra of one side at every bandwidth."""
        ladder = kernels_at_bandwidths(kernels, STEPS if self.bandwidths is None else self.bandwidths, rows)
        spectra = self._map(lambda kernel: PooledSpectrum.from_rows(kernel, rows, gram), ladder, len(rows))
        told = [(kernel, spectrum) for kernel, spectrum in zip(ladder, spectra, strict=True) if spectrum.gamma.size]
        return _Side(told, [each for each in statistics if not isinstance(each, ShrunkCovariance)])

    def _statistics(self, x: _Side, y: _Side, orders: Array, is_dense: bool) -> Array:
        """Return Σ h(γ_k) h'(δ_l) (u_kᵀ v_π(l))² for each weight of x with each of y, and every order π of the rows."""
        one_order = _from_pairs(x.matrices(), y.matrices()) if is_dense else _from_components(x, y)
        values = np.empty((len(orders), len(x.weights), len(y.weights)))

        def work(some: slice) -> None:
            for place in range(some.start, some.stop):
                values[place] = one_order(orders[place])

        self._map(work, list(slices(0, len(orders), CHUNK)), orders.shape[1])
        return values.reshape(len(orders), -1).T

    def _scaled(self, name: str, X: Any, known: Numbered | None) -> Array:
        """Return the rows of one side, standardized unless they are row numbers of a precomputed kernel."""
        if known is not None:
            return known.samples[0]
        rows, _ = self._sample(name, X)
        return ColumnMoments.from_batch(SampleBatch(rows, 0)).standardized(rows) if self.standardize else rows

    def _pairs(self, sides: list[Any], known: list[Numbered | None], is_dense: bool) -> tuple[Array, Array]:
        """Return both sides of the pairs, or refuse them in one sentence."""
        X, Y = (self._scaled(*each) for each in zip(("X", "Y"), sides, known, strict=True))
        if len(X) != len(Y):
            raise ValueError(refusal("IndependenceTest", "X and Y must have as many rows", f"{len(X)} and {len(Y)}"))
        most = MOST_ROWS[is_dense]
        if len(X) > most:
            advice = "use gram='nystrom'" if is_dense else "draw some of the rows"
            raise ValueError(refusal("IndependenceTest", f"at most {most} rows are needed", len(X), advice))
        for name, rows in (("X", X), ("Y", Y)):
            if not np.ptp(rows, axis=0).any():
                raise ValueError(refusal("IndependenceTest", f"rows of {name} that differ are needed", "equal ones"))
        return X, Y


@dataclass(frozen=True, eq=False)
class _Paired:
    """Both sides of n pairs, and every statistic for every order of the rows of y."""

    x: _Side
    y: _Side
    table: PermutationTable
    candidates: Candidates
    is_complete: bool
    n: int


@dataclass(frozen=True, eq=False)
class _Side:
    """The spectra of x or of y, and every weight on each of them."""

    spectra: list[tuple[Kernel, PooledSpectrum]]
    statistics: list[Statistic]

    def spectrum(self, kernel: Kernel) -> PooledSpectrum:
        """Return the spectrum of one of the kernels."""
        return next(spectrum for each, spectrum in self.spectra if each is kernel)

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

    def components(self) -> tuple[Array, Array]:
        """Eigenvectors of all kernels beside each other, and the weights of every candidate, zero but for its own."""
        U = np.concatenate([spectrum.U for _, spectrum in self.spectra], axis=1)
        H = np.zeros((len(self.weights), U.shape[1]))
        starts = np.cumsum([0, *(len(spectrum.gamma) for _, spectrum in self.spectra)])
        start_of = {id(spectrum): start for (_, spectrum), start in zip(self.spectra, starts.tolist(), strict=False)}
        for row, (spectrum, h) in zip(H, self.weights, strict=True):
            row[start_of[id(spectrum)] :][: len(h)] = h
        return U, H

    def law_with(self, other: _Side) -> Law:
        """Return the law of Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)² in theory: the mean of each square is 1/(n − 1)."""

        def units(side: _Side) -> Array:
            return np.array([h.max(initial=0) / np.sqrt(len(each.U) - 1) for each, h in side.weights])

        def sums(side: _Side, power: int) -> Array:
            return np.array([(quotient(h, h.max(initial=0)) ** power).sum() for _, h in side.weights])

        products = [np.outer(sums(self, power), sums(other, power)).ravel() for power in (1, 2, 3)]
        return Law.of_squares(np.array(products), np.outer(units(self), units(other)).ravel())


def _from_pairs(S: Array, R: Array) -> Callable[[Array], Array]:
    """Return the statistics as a function of an order π: Σ_ij S_ij R_π(i)π(j) for each S of x with each R of y."""
    n = S.shape[1]
    first, second = np.triu_indices(n)
    left = S[:, first, second] * np.where(first == second, 1, 2)  # each pair once, as all is symmetric
    right = np.ascontiguousarray(R.reshape(len(R), -1).T)  # a pair's values lie together, as they are gathered
    return lambda order: left @ right[order[first] * n + order[second]]


def _from_components(x: _Side, y: _Side) -> Callable[[Array], Array]:
    """Return the same from (u_kᵀ v_π(l))² of all components of all kernels, which are few."""
    (U, H), (V, G) = x.components(), y.components()
    return lambda order: H @ (U.T @ V[order]) ** 2 @ G.T


def _shrunk(statistic: ShrunkCovariance, x: PooledSpectrum, y: PooledSpectrum, orders: Array) -> Array:
    """Return ‖Σ_λ‖² of the shrunk cross-covariance for every order of the rows of y: shape (1, orders)."""
    K, L = ((each.U * each.gamma) @ each.U.T for each in (x, y))
    with BLAS_ON_ONE_THREAD:
        return np.array([[statistic.squared_norm(K * L[np.ix_(order, order)]) for order in orders]])


def _correlation(x: PooledSpectrum, y: PooledSpectrum) -> float:
    """Return HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)): the cosine of the two centred Gram matrices."""
    hsic = x.gamma @ (x.U.T @ y.U) ** 2 @ y.gamma
    return float(hsic / (np.linalg.norm(x.gamma) * np.linalg.norm(y.gamma)))
