"""Are x and y independent? Both Gram matrices are decomposed once; every permutation pairs their rows anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, quotient, slices
from muhat._messages import IN_COMMAND, option
from muhat.data import ColumnMoments
from muhat.data._copies import EqualRows
from muhat.data._sources import SampleBatch
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Function, Gaussian, Kernel, Precomputed
from muhat.testing._base import (
    PermutationTest,
    check_flag,
    has_objects,
    samples_of_matrix,
    spectral_gram,
)
from muhat.testing._distances import Distance, features_for
from muhat.testing._gram import PooledSpectrum
from muhat.testing._ladder import as_kernels, check_distances, kernels_at_bandwidths, wide_kernel
from muhat.testing._permutations import Family, NullMoments, PermutationTable, draw_orders
from muhat.testing._results import Candidates, IndependenceResult, result_fields
from muhat.testing._shrunk_covariance import COSE, ShrunkCovariance
from muhat.testing._statistics import MMD, STATISTICS, Filtered, Spectral, Statistic

MAX_ROWS_DENSE = 500
"""Rows up to which the matrices of all statistics are gathered for each permutation in a few milliseconds."""

N_LANDMARKS = 100
"""How many landmarks of x, and of y, stand for more rows than that, if nothing else is asked for."""

MAX_ROWS = {True: 2000, False: 100_000}
"""Rows beyond which all matrices, where these are dense, or the orders of all permutations do not fit in memory."""

N_BANDWIDTHS = 4
"""Bandwidths of x, and of y, if nothing else is asked for."""

KERNEL_STATISTICS = ("mmd", "spectral")
"""The statistics of kernels that are given, each on x with each on y, if no statistics are."""

SHARES = (1e-1, 1e-2, 1e-3)
"""Their λ of x, and of y, as shares of the largest eigenvalue."""

FINE_SHARES = (1e-1, 1e-2)
"""λ of the default's truncated SVD, the same share on both sides."""

FINE_WEIGHT, SMOOTH_WEIGHT, DISTANCE_WEIGHT, RANK_WEIGHT, WIDE_WEIGHT = 0.40, 0.15, 0.20, 0.15, 0.10
"""Weights of the default's families: truncated SVD, HSIC, distance covariance, that of ranks, HSIC of wide kernels.

Chosen by power at 999 permutations (docs/tests.md).
"""

MIN_COPY_AGREEMENT = 0.5
"""The agreement of rows that are equal in x and in y from which on copies are mentioned."""

ORDERS_PER_CHUNK = 8
"""Permutations that a thread takes at a time."""

PAIRS_PER_BLOCK = 8192
"""Pairs of rows whose values are gathered at a time, so that they stay in the processor's cache."""


class IndependenceTest(PermutationTest):
    """Test whether x and y are independent, with one exact p-value for many kernels and statistics.

    The kernel of x has bandwidths and λ from x, that of y from y; then the rows of y are permuted. With the eigenpairs
    γ, u of x's centred Gram matrix and δ, v of y's, the statistics are Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)²: HSIC for h(γ) = γ
    and h'(δ) = δ, its spectral-regularised form with filters. By default five families of them look for fine
    structure, smooth dependence, linear and monotone dependence; each has a p-value, and these are combined into one.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        The kernel on x. If neither this nor ``kernel_y`` is given, Gaussian kernels and distances. With
        ``Precomputed(K)``, X has row numbers of K; with 'precomputed', X is K; functions may take lists of anything.
    kernel_y : str, Kernel, callable or list of these, default=None
        The kernel on y. If not given, as on x; but Gaussian, where x has row numbers for ``Precomputed(K)``, or objects
        for a function and y has none.
    bandwidths : int, 'median' or list of float, default=None
        For kernels whose bandwidth is not a number: how many, in equal ratios over the distances of x or y (4 if not
        given), the median of x or y, or the bandwidths themselves.
    statistics : str, Statistic or list of these, default=None
        The weights h and h', each with each: 'mmd' and 'mmd' is HSIC. For few rows also 'scose', 'fcose' or
        ``ShrunkCovariance(filter)``: the norm of the cross-covariance operator, shrunk. By default truncated SVD and
        HSIC on four bandwidths of x and of y, distance covariance of the values and of their ranks, and HSIC at a wide
        bandwidth, 51 statistics in five families; for a kernel that is given, ('mmd', 'spectral').
    gram : {'auto', 'dense', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How both Gram matrices are held: as they are, by default up to 500 rows, or approximated by features, 100
        landmarks by default, drawn from x and from y independently of each other. The p-value is exact either way.
    standardize : bool, default=True
        Whether every column is brought to mean 0 and variance 1 first; not for row numbers or lists of objects.
    distinct : bool, default=False
        Whether rows of (x, y) that are exact copies of others are dropped, as copies are not independent draws. Refused
        where values of x and values of y still repeat: each pair of values would then be kept once, however often it
        was drawn, and which pairs occur depends on how common both values are, even if x and y are independent.
    n_permutations : int, default=999
        Where there are no more orders than that, all of them are taken instead of random ones.
    random_state : int, RandomState, Generator or None, default=0
        For the permutations, and for which rows landmarks and bandwidths are learnt from.
    n_jobs : int, default=None
        Cores to use, as many as there are if not given or −1.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import IndependenceTest
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, size=80)
    >>> x, y = np.cos(angle) + 0.1 * rng.normal(size=80), np.sin(angle) + 0.1 * rng.normal(size=80)
    >>> IndependenceTest().test(x, 1000 * y).p_value < 0.01
    True
    """

    names: ClassVar[Mapping[str, Callable[[], Statistic]]] = {**STATISTICS, **COSE}

    def __init__(
        self,
        kernel: Any = None,
        *,
        kernel_y: Any = None,
        bandwidths: Any = None,
        statistics: Any = None,
        gram: Any = "auto",
        standardize: bool = True,
        distinct: bool = False,
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
        self.distinct = distinct
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(self, X: Any, Y: Any) -> IndependenceResult:
        """Test whether the rows of X, of shape (n, d), are independent of those of Y, of shape (n, e).

        A Series or an array of one dimension is one column. Where X or Y is constant, p is 1.
        """
        paired = self._paired(X, Y)
        pairs = paired.pairs
        return IndependenceResult(
            **result_fields(paired.table, paired.candidates),
            is_complete=paired.is_complete,
            n=pairs.n,
            correlation=paired.correlation,
            x_names=pairs.x.names,
            y_names=pairs.y.names,
            n_copies=pairs.n_copies,
            copies_stand_out=pairs.copies_stand_out,
            copies_can_be_dropped=pairs.copies_can_be_dropped,
            distinct=bool(self.distinct),
            constant=tuple(
                name for name, side in (("x", pairs.x), ("y", pairs.y)) if side.is_constant
            ),
            least_p_value=1 / paired.table.values.shape[1],
        )

    def _check(self) -> list[Statistic]:
        """Raise ValueError for invalid parameters; return the statistics that are asked for by name or object."""
        check_flag(self, "distinct", self.distinct)
        if self.statistics is not None:
            return super()._check()
        given = self.get_params(deep=False) | {"statistics": KERNEL_STATISTICS}
        return type(self)(**given)._check()

    def _paired(self, X: Any, Y: Any) -> _PairedStatistics:
        """Return the values of all statistics for all orders of the rows of Y."""
        statistics = [
            replace(each, shares=SHARES)
            if isinstance(each, Filtered) and each.shares is None
            else each
            for each in self._check()
        ]
        if any(each.unbiased for each in statistics):
            needed = "statistics must not be unbiased"
            raise MuhatError("IndependenceTest", needed, "unbiased=True", "leave it out")
        pairs, gram = self._pairs(X, Y)
        for each in statistics:
            if isinstance(each, ShrunkCovariance):
                each.check(pairs.n)
        rng = self._rng()
        pairs = pairs.taken(rng.permutation(pairs.n))  # no choice depends on the order of the rows
        orders, is_complete = draw_orders(pairs.n, self.n_permutations, rng)
        if pairs.x.is_constant or pairs.y.is_constant:
            return _constant_side(pairs, len(orders), is_complete)
        x, y = (_ShuffledSide.shuffled(side, gram, rng) for side in (pairs.x, pairs.y))
        is_default = self.kernel is None and self.kernel_y is None and self.statistics is None
        blocks = self._default_blocks(x, y) if is_default else self._given_blocks(x, y, statistics)
        values, candidates, families = [], [], []
        null_moments: list[NullMoments] = []
        shrunk = [each for each in statistics if isinstance(each, ShrunkCovariance)]
        if blocks[0].candidates:
            values, null_moments = (
                [self._statistics(blocks, orders, gram == "dense")],
                [each.null_moments for each in blocks],
            )
            candidates = [each for block in blocks for each in block.candidates]
            families = _families(blocks)
        for statistic in shrunk:
            for (k, one), (other, two) in product(blocks[0].x.spectra, blocks[0].y.spectra):
                values.append(_shrunk(statistic, one, two, orders))
                null_moments.append(NullMoments.from_values(values[-1]))
                candidates.append(((k, other), (statistic,)))
        joined = np.concatenate(values)
        table = PermutationTable(
            joined,
            np.abs(joined).max(axis=1),
            NullMoments.concatenate(null_moments),
            () if shrunk else tuple(families),
        )
        kernels = candidates[table.largest_statistic][0]
        correlation = next(
            _correlation(*spectra)
            for block in blocks
            if (spectra := block.spectra_of(kernels)) is not None
        )
        return _PairedStatistics(pairs, table, candidates, is_complete, correlation)

    def _default_blocks(self, x: _ShuffledSide, y: _ShuffledSide) -> list[_StatisticPairs]:
        """Return the default statistics: five families that see fine, smooth, linear and monotone dependence."""
        fine = [self._spectra(side, self._ladder([Gaussian()], side)) for side in (x, y)]
        blocks = [
            _StatisticPairs.of_spectra(fine, [Spectral(shares=(share,))], FINE_WEIGHT, 0)
            for share in FINE_SHARES
        ]
        blocks.append(_StatisticPairs.of_spectra(fine, [MMD()], SMOOTH_WEIGHT, 1))
        others: list[tuple[Callable[[Array], Kernel], float]] = [
            (Distance().resolve, DISTANCE_WEIGHT),
            (Distance(ranks=True).resolve, RANK_WEIGHT),
            (wide_kernel, WIDE_WEIGHT),
        ]
        for number, (learnt, weight) in enumerate(others, 2):
            spectra = [self._spectra(side, [learnt(side.to_learn_from)]) for side in (x, y)]
            blocks.append(_StatisticPairs.of_spectra(spectra, [MMD()], weight, number))
        return [each for each in blocks if each.candidates]

    def _given_blocks(
        self, x: _ShuffledSide, y: _ShuffledSide, statistics: list[Statistic]
    ) -> list[_StatisticPairs]:
        """Return every statistic on x with every one on y, as one family."""
        spectra = [self._spectra(side, self._ladder(side.side.kernels, side)) for side in (x, y)]
        if not all(spectra):
            got, advice = "the same value k(x, y) for all pairs", "take another kernel or bandwidth"
            raise MuhatError(
                "IndependenceTest", "a kernel that tells rows apart is needed", got, advice
            )
        return [
            _StatisticPairs.of_spectra(
                spectra, [each for each in statistics if not isinstance(each, ShrunkCovariance)]
            )
        ]

    def _ladder(self, kernels: list[Kernel], rows: _ShuffledSide) -> list[Kernel]:
        """Return the kernels at every bandwidth, learnt from one side."""
        steps = N_BANDWIDTHS if self.bandwidths is None else self.bandwidths
        return kernels_at_bandwidths(kernels, steps, rows.to_learn_from)

    def _spectra(self, rows: _ShuffledSide, kernels: list[Kernel]) -> Spectra:
        """Return the spectrum of every kernel that tells some rows of one side apart."""
        spectra = self._map(rows.spectrum, kernels, len(rows.side.rows))
        return [
            (kernel, spectrum)
            for kernel, spectrum in zip(kernels, spectra, strict=True)
            if spectrum.gamma.size
        ]

    def _statistics(self, blocks: list[_StatisticPairs], orders: Array, is_dense: bool) -> Array:
        """Return Σ h(γ_k) h'(δ_l) (u_kᵀ v_π(l))² for the weights of x and y in every block, and every order π."""
        one_order = _from_pairs(blocks) if is_dense else _from_components(blocks)
        values = np.empty((len(orders), sum(len(each.candidates) for each in blocks)))

        def work(some: slice) -> None:
            for place in range(some.start, some.stop):
                values[place] = one_order(orders[place])

        self._map(work, list(slices(0, len(orders), ORDERS_PER_CHUNK)), orders.shape[1])
        return values.T

    def _pairs(self, X: Any, Y: Any) -> tuple[_Pairs, str | Approximation]:
        """Return both sides of the pairs and how their Gram matrices are held, or refuse them in one sentence."""
        kernels_x = [Gaussian()] if self.kernel is None else as_kernels(self.kernel)
        kernels_y = (
            _kernels_as_on_x(kernels_x, X, Y)
            if self.kernel_y is None
            else as_kernels(self.kernel_y)
        )
        gram = spectral_gram(self, self.gram, [*kernels_x, *kernels_y])
        if isinstance(gram, Nystrom) and not isinstance(gram.landmarks, str):
            needed, got = (
                "landmarks must be drawn, of x and of y independently of each other",
                "given ones",
            )
            raise MuhatError("IndependenceTest", needed, got, "use gram=Nystrom(100)")
        x, y = self._side("X", X, kernels_x), self._side("Y", Y, kernels_y)
        n = len(x.rows)
        if n != len(y.rows):
            got = f"{n} and {len(y.rows)}"
            raise MuhatError("IndependenceTest", "X and Y must have as many rows", got)
        if gram == "auto":
            by_matrix = any(isinstance(each, Precomputed) for each in (*x.kernels, *y.kernels))
            gram = "dense" if n <= MAX_ROWS_DENSE or by_matrix else Nystrom(N_LANDMARKS)
        most = MAX_ROWS[gram == "dense"]
        if n > most:
            advice = "use gram='nystrom'" if gram == "dense" else "draw some of the rows"
            raise MuhatError("IndependenceTest", f"at most {most} rows are needed", n, advice)
        pairs = _Pairs.counted(x, y, distinct=bool(self.distinct))
        if self.standardize:
            return pairs.standardized, gram
        for side in (pairs.x, pairs.y):
            if not side.has_numbers:
                check_distances("IndependenceTest", side.rows)
        return pairs, gram

    def _side(self, name: str, X: Any, kernels: list[Kernel]) -> _PairSide:
        """Return the rows of one side, row numbers for kernels that are known by a matrix."""
        of_numbers = samples_of_matrix("IndependenceTest", kernels, [X])
        if of_numbers is not None:
            return _PairSide(of_numbers.samples[0], None, of_numbers.kernels)
        rows, names = self._sample(name, X)
        return _PairSide(rows, names, kernels)


def _kernels_as_on_x(kernels: list[Kernel], X: Any, Y: Any) -> list[Kernel]:
    """Return the kernels of y, if none are given: those of x, unless they say nothing about y."""
    of_numbers = any(isinstance(each, Precomputed) and each.matrix is not None for each in kernels)
    of_objects = (
        all(isinstance(each, Function) for each in kernels)
        and has_objects(X)
        and not has_objects(Y)
    )
    return [Gaussian()] if of_numbers or of_objects else kernels


Spectra = list[tuple[Kernel, PooledSpectrum]]
"""Kernels, and what each of them sees of one side."""


@dataclass(frozen=True, eq=False)
class _PairSide:
    """The rows of x or of y, with the names of their columns and their kernels."""

    rows: Array
    names: tuple[str, ...] | None
    kernels: list[Kernel]

    @property
    def is_constant(self) -> bool:
        """Whether all rows are equal."""
        return not np.ptp(self.rows, axis=0).any()

    @property
    def has_numbers(self) -> bool:
        """Whether rows are numbers of rows of a matrix, which have no columns."""
        return any(isinstance(each, Precomputed) for each in self.kernels)

    @property
    def standardized(self) -> _PairSide:
        """It with columns at mean 0 and variance 1; row numbers as they are."""
        if self.has_numbers:
            return self
        moments = ColumnMoments.from_batch(SampleBatch(self.rows, 0))
        return replace(self, rows=moments.standardized(self.rows))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Both sides of n pairs, and how many of these are exact copies of others."""

    x: _PairSide
    y: _PairSide
    n_copies: int
    copies_stand_out: bool
    """Whether rows that are equal in x are mostly equal in y too, beyond what values that repeat explain."""
    copies_can_be_dropped: bool
    """Whether no two of the pairs that would stay are equal in x, or none in y."""

    @classmethod
    def counted(cls, x: _PairSide, y: _PairSide, distinct: bool) -> _Pairs:
        """Return the pairs, without exact copies if these are to be dropped.

        Where values of both sides repeat among those that stay, what stays is the support of the pairs: common values
        of x are there with many of y, rare ones with the common ones of y only, which no permutation is like.
        """
        equal = EqualRows.from_pairs(x.rows, y.rows)
        copies, kept = equal.n_copies, len(equal.first)
        can_be_dropped = copies == 0 or max(equal.levels) == kept
        pairs = cls(
            x, y, copies, copies > 0 and equal.agreement >= MIN_COPY_AGREEMENT, can_be_dropped
        )
        if not distinct or not copies:
            return pairs
        if not pairs.copies_can_be_dropped:
            given, plain = (
                option("distinct"),
                "leave out --distinct" if IN_COMMAND.get() else "use distinct=False",
            )
            needed = f"with {given}, x or y must have no value twice in rows that are not copies"
            got = f"{equal.levels[0]:,} different values of x and {equal.levels[1]:,} of y in {kept:,} such rows"
            advice = (
                f"{plain}, as rows that are equal because few values are possible are no copies"
            )
            raise MuhatError("IndependenceTest", needed, got, advice)
        return pairs.taken(equal.first)

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.x.rows)

    @property
    def standardized(self) -> _Pairs:
        """Them with the columns of each side standardized by that side alone."""
        return replace(self, x=self.x.standardized, y=self.y.standardized)

    def taken(self, places: Array) -> _Pairs:
        """Return some of the pairs, in an order."""
        x, y = (replace(each, rows=each.rows[places]) for each in (self.x, self.y))
        return replace(self, x=x, y=y)


@dataclass(frozen=True, eq=False)
class _ShuffledSide:
    """One side, and its rows in an order of their own, from which everything is learnt that looks at some rows only.

    Landmarks and rows that bandwidths are learnt from are special rows. Were they the same ones in x and in y, special
    rows would be paired with each other as observed and in no permutation, and independent data rejected; were they
    disjoint, the test would be wrong in the other direction. As the orders of x and of y are drawn independently of
    each other, what is learnt on one side says nothing about how it is paired, and the p-value is exact.
    """

    side: _PairSide
    to_learn_from: Array
    gram: str | Approximation

    @classmethod
    def shuffled(
        cls, side: _PairSide, gram: str | Approximation, rng: np.random.Generator
    ) -> _ShuffledSide:
        """Return one side, with an order drawn."""
        return cls(side, side.rows[rng.permutation(len(side.rows))], gram)

    def spectrum(self, kernel: Kernel) -> PooledSpectrum:
        """Return the spectrum of a kernel's centred Gram matrix, or of features learnt from the shuffled rows."""
        if isinstance(self.gram, Approximation):
            features = features_for(kernel, self.gram, self.to_learn_from)
            return PooledSpectrum.from_features(features, self.side.rows)
        return PooledSpectrum.from_rows(kernel, self.side.rows)


@dataclass(frozen=True, eq=False)
class _PairedStatistics:
    """Every statistic of n pairs for every order of the rows of y, and the effect size."""

    pairs: _Pairs
    table: PermutationTable
    candidates: Candidates
    is_complete: bool
    correlation: float


def _constant_side(pairs: _Pairs, orders: int, is_complete: bool) -> _PairedStatistics:
    """Return the test of a constant: no order changes anything, so that p is 1."""
    table = PermutationTable(np.zeros((1, orders)), np.ones(1))
    kernels = tuple(
        kernels_at_bandwidths(each.kernels[:1], [1.0], each.rows)[0] for each in (pairs.x, pairs.y)
    )
    return _PairedStatistics(pairs, table, [(kernels, (MMD(), MMD()))], is_complete, 0.0)


@dataclass(frozen=True, eq=False)
class _SideSpectra:
    """The spectra of x or of y, and every weight on each of them."""

    spectra: Spectra
    statistics: list[Statistic]

    @cached_property
    def candidates(self) -> list[tuple[Kernel, Statistic]]:
        """Every kernel with every statistic, parameters resolved."""
        return [
            (kernel, each)
            for kernel, spectrum in self.spectra
            for each in spectrum.resolve(self.statistics)
        ]

    @cached_property
    def weights(self) -> list[tuple[PooledSpectrum, Array]]:
        """The spectrum and h(γ) of every candidate."""
        resolved = [
            (spectrum, each)
            for _, spectrum in self.spectra
            for each in spectrum.resolve(self.statistics)
        ]
        return [(spectrum, each.weight(spectrum.gamma)) for spectrum, each in resolved]

    def matrices(self) -> Array:
        """U h(Γ) Uᵀ of every candidate."""
        return np.array([(spectrum.U * h) @ spectrum.U.T for spectrum, h in self.weights])

    def components(self) -> Array:
        """Return the eigenvectors of all kernels beside each other."""
        return np.concatenate([spectrum.U for _, spectrum in self.spectra], axis=1)

    def weights_of_components(self) -> Array:
        """Return the weights of every candidate on these eigenvectors, zero but for those of its kernel."""
        starts = np.cumsum([0, *(len(spectrum.gamma) for _, spectrum in self.spectra)])
        H = np.zeros((len(self.weights), starts[-1]))
        start_of = {
            id(spectrum): start
            for (_, spectrum), start in zip(self.spectra, starts.tolist(), strict=False)
        }
        for row, (spectrum, h) in zip(H, self.weights, strict=True):
            row[start_of[id(spectrum)] :][: len(h)] = h
        return H

    def null_moments_with(self, other: _SideSpectra) -> NullMoments:
        """Return the law of Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)² in theory: the mean of each square is 1/(n − 1)."""

        def units(side: _SideSpectra) -> Array:
            return np.array(
                [h.max(initial=0) / np.sqrt(len(each.U) - 1) for each, h in side.weights]
            )

        def sums(side: _SideSpectra, power: int) -> Array:
            return np.array(
                [(quotient(h, h.max(initial=0)) ** power).sum() for _, h in side.weights]
            )

        products = [np.outer(sums(self, power), sums(other, power)).ravel() for power in (1, 2, 3)]
        return NullMoments.from_squares(
            np.array(products), np.outer(units(self), units(other)).ravel()
        )


@dataclass(frozen=True, eq=False)
class _StatisticPairs:
    """Statistics that are each one of x with one of y: all of these pairs, in a family with some weight."""

    x: _SideSpectra
    y: _SideSpectra
    weight: float
    family: int

    @classmethod
    def of_spectra(
        cls,
        sides: Sequence[Spectra],
        statistics: list[Statistic],
        weight: float = 1.0,
        family: int = 0,
    ) -> _StatisticPairs:
        """Return the statistics on every kernel of x with those on every kernel of y."""
        x, y = (_SideSpectra(each, statistics) for each in sides)
        return cls(x, y, weight, family)

    @cached_property
    def candidates(self) -> Candidates:
        """The kernels and statistics of every pair."""
        return [
            ((k, other), (h, g)) for k, h in self.x.candidates for other, g in self.y.candidates
        ]

    @property
    def null_moments(self) -> NullMoments:
        """The law of every pair."""
        return self.x.null_moments_with(self.y)

    def spectra_of(self, kernels: Sequence[Kernel]) -> tuple[PooledSpectrum, PooledSpectrum] | None:
        """Return the spectra of a kernel on x and one on y, if they are these."""
        found = [
            [spectrum for each, spectrum in side.spectra if each is kernel]
            for side, kernel in zip((self.x, self.y), kernels, strict=True)
        ]
        return (found[0][0], found[1][0]) if all(found) else None


def _families(blocks: Sequence[_StatisticPairs]) -> list[Family]:
    """Return which statistics, in the order of the blocks, are of which family."""
    numbers = np.concatenate([np.full(len(each.candidates), each.family) for each in blocks])
    weights = {each.family: each.weight for each in blocks}
    return [Family(weight, np.flatnonzero(numbers == number)) for number, weight in weights.items()]


def _from_pairs(blocks: Sequence[_StatisticPairs]) -> Callable[[Array], Array]:
    """Return the statistics as a function of an order π: Σ_ij S_ij R_π(i)π(j) for each S of x with each R of y.

    The values of a pair lie together, as they are gathered; some pairs at a time, so that they stay in the cache.
    """
    S, R = (
        np.concatenate([getattr(each, side).matrices() for each in blocks]) for side in ("x", "y")
    )
    n = S.shape[1]
    first, second = np.triu_indices(n)
    twice = np.where(first == second, 1, 2)  # each pair once, as all is symmetric
    parts = [(first[some], second[some]) for some in slices(0, len(first), PAIRS_PER_BLOCK)]
    left = [
        S[:, i, j] * twice[some]
        for (i, j), some in zip(parts, slices(0, len(first), PAIRS_PER_BLOCK), strict=True)
    ]
    right = np.ascontiguousarray(R.reshape(len(R), -1).T)
    ends = [
        np.cumsum([0, *(len(getattr(each, side).weights) for each in blocks)])
        for side in ("x", "y")
    ]
    inside = [(slice(*a), slice(*b)) for a, b in zip(*map(pairwise, ends), strict=True)]

    def statistics(order: Array) -> Array:
        found = np.zeros((len(S), len(R)))
        for values, (i, j) in zip(left, parts, strict=True):
            found += values @ right.take(n * order[i] + order[j], axis=0)
        return np.concatenate([found[some].ravel() for some in inside])

    return statistics


def _from_components(blocks: Sequence[_StatisticPairs]) -> Callable[[Array], Array]:
    """Return the same from (u_kᵀ v_π(l))² of all components of all kernels, which are few.

    Blocks with the same kernels share these squares.
    """
    weights = [
        (each.x.weights_of_components(), each.y.weights_of_components().T) for each in blocks
    ]
    shared = {id(each.x.spectra): (each.x.components().T, each.y.components()) for each in blocks}

    def statistics(order: Array) -> Array:
        squares = {key: (U @ V[order]) ** 2 for key, (U, V) in shared.items()}
        found = [
            (H @ squares[id(each.x.spectra)] @ G).ravel()
            for each, (H, G) in zip(blocks, weights, strict=True)
        ]
        return np.concatenate(found)

    return statistics


def _shrunk(
    statistic: ShrunkCovariance, x: PooledSpectrum, y: PooledSpectrum, orders: Array
) -> Array:
    """Return ‖Σ_λ‖² of the shrunk cross-covariance for every order of the rows of y: shape (1, orders)."""
    K, L = ((each.U * each.gamma) @ each.U.T for each in (x, y))
    with BLAS_ON_ONE_THREAD:
        return np.array([[statistic.squared_norm(K * L[np.ix_(order, order)]) for order in orders]])


def _correlation(x: PooledSpectrum, y: PooledSpectrum) -> float:
    """Return HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)): the cosine of the two centred Gram matrices."""
    hsic = x.gamma @ (x.U.T @ y.U) ** 2 @ y.gamma
    return float(hsic / (np.linalg.norm(x.gamma) * np.linalg.norm(y.gamma)))
