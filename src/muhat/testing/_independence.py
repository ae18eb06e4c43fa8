"""Are x and y independent? Their Gram matrices are decomposed once, then rows are paired anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from muhat._arrays import Array, limit_cores, slices
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom, PivotedCholesky
from muhat.kernels import Function, Gaussian, Kernel, Precomputed
from muhat.testing._base import (
    PermutationTest,
    check_flag,
    has_objects,
    samples_of_matrix,
    spectral_gram,
)
from muhat.testing._cyclic import (
    CyclicOrders,
    ShiftedColumns,
    squares_over_shifts,
    sums_over_shifts,
)
from muhat.testing._distances import Distance
from muhat.testing._ladder import as_kernels, check_distances, kernels_at_bandwidths, wide_kernel
from muhat.testing._pair_statistics import (
    StatisticPairs,
    families_of,
    shrunk_statistics,
    used_components,
    with_same_grams,
)
from muhat.testing._pairs import Pairs, PairSide, ShuffledSide
from muhat.testing._permutations import NullMoments, PermutationTable
from muhat.testing._ranks import RankGaussian
from muhat.testing._results import Candidates, IndependenceResult, result_fields
from muhat.testing._shrunk_covariance import COSE, ShrunkCovariance
from muhat.testing._side_gram import GramForm, SideGram, kernel_correlation
from muhat.testing._statistics import MMD, STATISTICS, Filtered, Spectral, Statistic

MAX_ROWS_DENSE = 500
"""Rows up to which ``gram="auto"`` decomposes whole matrices."""

MAX_ROWS_OF_MATRICES = 3000
"""Rows up to which it takes whole matrices but a low-rank factor of each for the spectrum.

The transforms of all statistics then take some seconds, and 0.7 GB; beyond, landmarks stand for
the rows.
"""

PIVOTS = PivotedCholesky(tol=1e-4, max_rank=300)
"""The low-rank factor: what it misses is far below the least eigenvalue that statistics take.

Narrow kernels of many columns would need more pivots; their statistics hardly vary.
"""

N_LANDMARKS = 100
"""Landmarks of x, and of y, that stand for more rows than that."""

MAX_ROWS_DECOMPOSED = 2000
"""Rows up to which ``gram="dense"`` decomposes whole matrices, each in some seconds."""

MAX_ROWS = 100_000
"""Rows beyond which the eigenvectors of all kernels take more than about 1 GB."""

ENTRIES_HELD = 2**26
"""Entries of the matrices of x, and of those of y, that are held at a time (512 MB each)."""

N_BANDWIDTHS = 4
"""Default number of bandwidths of x, and of y."""

KERNEL_STATISTICS = ("mmd", "spectral")
"""The default statistics of kernels that are given, each on x with each on y."""

SHARES = (1e-1, 1e-2, 1e-3)
"""Their λ of x, and of y, as shares of the largest eigenvalue."""

FINE_SHARES = (1e-1,)
"""λ of the default's truncated SVD, the same share on both sides."""

RANK_SHARES = (1e-1, 1e-2)
"""The same of ranks, whose spectra have no outliers in them."""

FINE_WEIGHT = 0.30
"""Of the default's families: truncated SVD and HSIC. docs/tests.md says how it was chosen."""

RANK_WEIGHT = 0.25
"""Truncated SVD of ranks."""

TREND_WEIGHT = 0.45
"""Distance covariance, that of ranks, and HSIC of wide kernels."""

COMPONENTS_PER_CHUNK = 8
"""Eigenvectors of x that a thread takes at a time."""


class IndependenceTest(PermutationTest):
    """Test whether x and y are independent, with one exact p-value for many statistics.

    Bandwidths and λ for x come from x, those for y from y. Then the rows of y are permuted. Let
    γ, u be the eigenpairs of the centred Gram matrix of x, and δ, v those of y. The statistics are
    Σ h(γ_k) g(δ_l) (u_kᵀ v_l)², which is HSIC for h(γ) = γ and g(δ) = δ. By default there are
    three families of statistics: for structure of any kind, for structure of ranks, and for linear
    and monotone trends. Their p-values are combined into one.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        The kernel on x; by default Gaussian kernels and distances. With ``Precomputed(K)``, X has
        row numbers of K; with 'precomputed', X is K; a function can take lists of any objects.
    kernel_y : str, Kernel, callable or list of these, default=None
        The kernel on y; by default the kernel on x. If x has row numbers or objects and y has
        numbers, the default is Gaussian.
    bandwidths : int, 'median' or list of float, default=None
        The bandwidths of kernels without a given one: their number (default: 4, spread over the
        distances of x or of y), 'median', or a list.
    statistics : str, Statistic or list of these, default=None
        The functions h and g; every h is combined with every g. 'mmd' with 'mmd' is HSIC. For few
        rows there are also 'scose', 'fcose' and ``ShrunkCovariance(filter)``: the norm of the
        shrunk cross-covariance operator. The default has 67 statistics in three families; for a
        kernel of your own it is ('mmd', 'spectral').
    gram : str, Nystrom or RandomFeatures, default='auto'
        How both Gram matrices are stored: 'dense', 'nystrom' or 'random-features'. 'auto' uses all
        rows up to 3000, and 100 landmarks each of x and of y beyond. The p-value is always exact.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1, x and y each by itself. Row numbers and
        objects are not scaled.
    distinct : bool, default=False
        Whether exact copies of rows (x, y) are dropped, as copies are not independent draws. An
        error is raised if a value of x, and a value of y, still occurs in several rows afterwards:
        dropping copies would then make x and y dependent.
    n_permutations : int, default=999
        Number of random permutations. If there are no more orders, all are enumerated.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the permutations, and of the rows drawn for landmarks and bandwidths.
    n_jobs : int, default=None
        Number of cores; all if not given or −1.

    See Also
    --------
    TwoSampleTest : Do two samples differ?
    ConditionalMean : Predict y from x.

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
    max_rows_dense: ClassVar[int] = MAX_ROWS_DENSE
    """Rows up to which ``gram='auto'`` decomposes whole matrices; beyond, low-rank factors."""

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
        """Test whether x and y are independent; row i of X belongs to row i of Y.

        Parameters
        ----------
        X, Y : array, data frame, Series or list, of shapes (n, d) and (n, e)
            A Series or an array of one dimension is one column. For ``Precomputed(K)`` give row
            numbers of K, for kernel functions of objects lists of these.

        Returns
        -------
        result : IndependenceResult
            The p-value, 1 where X or Y is constant, the effect size and ``verdict()``.
        """
        statistics = self._check()
        pairs, form = self._pairs(X, Y, statistics)
        rng = self._rng()
        row_order = pairs.row_order
        pairs = pairs.take(rng.permutation(pairs.n))  # no choice depends on the order of the rows
        in_blocks = not form.has_matrices
        orders = CyclicOrders.draw(pairs.n, self.n_permutations, rng, in_blocks)
        if pairs.constant:
            permuted = _constant_side(pairs, len(orders))
        else:
            x = ShuffledSide.draw(pairs.x, form, rng)
            y = ShuffledSide.draw(pairs.y, form, rng)
            with self._blas_threads(), limit_cores(self._n_cores):
                permuted = self._permuted(x, y, statistics, orders)
        return IndependenceResult(
            **result_fields(permuted.table, permuted.candidates),
            is_complete=orders.is_complete,
            n=pairs.n,
            correlation=permuted.correlation,
            rank_correlation=pairs.rank_correlation,
            explained=pairs.explained,
            contrast=pairs.contrast,
            x_names=pairs.x.names,
            y_names=pairs.y.names,
            n_copies=pairs.n_copies,
            copies_stand_out=pairs.copies_stand_out,
            copies_can_be_dropped=pairs.copies_can_be_dropped,
            p_value_distinct=self._p_value_without_copies(X, Y, pairs),
            distinct=bool(self.distinct),
            constant=pairs.constant,
            least_p_value=1 / len(orders),
            row_order=row_order,
        )

    @property
    def _is_default(self) -> bool:
        """Whether kernels and statistics are left to the test."""
        return self.kernel is None and self.kernel_y is None and self.statistics is None

    def _p_value_without_copies(self, X: Any, Y: Any, pairs: Pairs) -> float | None:
        """Return p without copies of rows, if these stand out and were not dropped already."""
        if self.distinct or not (pairs.copies_stand_out and pairs.copies_can_be_dropped):
            return None
        return clone(self).set_params(distinct=True).test(X, Y).p_value

    def _check(self) -> list[Statistic]:
        """Raise MuhatError for invalid parameters; return the statistics asked for."""
        check_flag(self, "distinct", self.distinct)
        if self.statistics is None:
            given = self.get_params(deep=False) | {"statistics": KERNEL_STATISTICS}
            return type(self)(**given)._check()
        statistics = super()._check()
        if any(each.unbiased for each in statistics):
            needed = "statistics must not be unbiased"
            raise MuhatError("IndependenceTest", needed, "unbiased=True", "leave it out")
        for place, each in enumerate(statistics):
            if isinstance(each, Filtered) and each.shares is None:
                statistics[place] = replace(each, shares=SHARES)
        return statistics

    def _pairs(self, X: Any, Y: Any, statistics: list[Statistic]) -> tuple[Pairs, GramForm]:
        """Return both sides of the pairs, validated, and how their Gram matrices are held."""
        kernels_x: list[Kernel] = [Gaussian()]
        if self.kernel is not None:
            kernels_x = as_kernels(self.kernel)
        if self.kernel_y is None:
            kernels_y = _kernels_as_on_x(kernels_x, X, Y)
        else:
            kernels_y = as_kernels(self.kernel_y)
        gram = spectral_gram(self, self.gram, [*kernels_x, *kernels_y])
        if isinstance(gram, Nystrom) and not isinstance(gram.landmarks, str):
            needed = "landmarks of x and of y must be drawn at random, independently of each other"
            raise MuhatError("IndependenceTest", needed, "given ones", "use gram=Nystrom(100)")
        x, y = self._side("X", X, kernels_x), self._side("Y", Y, kernels_y)
        if len(x.rows) != len(y.rows):
            got = f"{len(x.rows)} and {len(y.rows)}"
            raise MuhatError("IndependenceTest", "X and Y must have the same number of rows", got)
        form = _gram_form(gram, x, y, self.max_rows_dense)
        pairs = Pairs.count_copies(x, y, distinct=bool(self.distinct)).with_contrast()
        for statistic in statistics:
            if isinstance(statistic, ShrunkCovariance):
                statistic.check(pairs.n)
        if self.standardize:
            return pairs.standardized, form
        for side in (pairs.x, pairs.y):
            if not side.has_row_numbers:
                check_distances("IndependenceTest", side.rows)
        return pairs, form

    def _side(self, name: str, X: Any, kernels: list[Kernel]) -> PairSide:
        """Return the rows of one side, row numbers for kernels that are known by a matrix."""
        of_matrix = samples_of_matrix("IndependenceTest", kernels, [X])
        if of_matrix is not None:
            return PairSide(of_matrix.samples[0], None, of_matrix.kernels)
        rows, names = self._sample(name, X)
        return PairSide(rows, names, kernels)

    def _permuted(
        self, x: ShuffledSide, y: ShuffledSide, statistics: list[Statistic], orders: CyclicOrders
    ) -> _Permuted:
        """Return the values of all statistics for all orders of the rows of y."""
        if self._is_default:
            parts = self._default_statistics(x, y)
        else:
            parts = self._given_statistics(x, y, statistics)
        values: list[Array] = []
        null_moments: list[NullMoments] = []
        candidates: Candidates = []
        families = families_of(parts)
        if parts[0].candidates:
            values.append(self._values(parts, orders))
            null_moments += [each.null_moments for each in parts]
            for part in parts:
                candidates += part.candidates
        for statistic in statistics:
            if not isinstance(statistic, ShrunkCovariance):
                continue
            families = ()  # with these, all statistics are one family
            for of_x in parts[0].x.grams:
                for of_y in parts[0].y.grams:
                    values.append(shrunk_statistics(statistic, of_x, of_y, orders))
                    null_moments.append(NullMoments.from_values(values[-1]))
                    candidates.append(((of_x.kernel, of_y.kernel), (statistic,)))
        joined = np.concatenate(values)
        scales = np.abs(joined).max(axis=1)
        table = PermutationTable(joined, scales, NullMoments.concatenate(null_moments), families)
        kernels, _ = candidates[_largest_hsic(table, candidates)]
        grams = [each.grams_of(kernels) for each in parts]
        of_x, of_y = next(each for each in grams if each is not None)
        return _Permuted(table, candidates, kernel_correlation(of_x, of_y))

    def _default_statistics(self, x: ShuffledSide, y: ShuffledSide) -> list[StatisticPairs]:
        """Return three families: any structure, fine structure of ranks, and trends."""
        sides = (x, y)
        ranked = (x.ranked, y.ranked)
        fine: list[Statistic] = [Spectral(shares=(share,)) for share in FINE_SHARES]
        of_ranks: list[Statistic] = [Spectral(shares=(share,)) for share in RANK_SHARES]
        parts = self._pairs_of_equal(sides, Gaussian(), [*fine, MMD()], FINE_WEIGHT, 0)
        parts += self._pairs_of_equal(ranked, RankGaussian(), of_ranks, RANK_WEIGHT, 1)
        trends: list[Callable[[Array], Kernel]] = [
            Distance().resolve,
            Distance(ranks=True).resolve,
            wide_kernel,
        ]
        for kernel_from in trends:
            kernels = [[kernel_from(each.to_learn_from)] for each in sides]
            grams = self._grams(sides, kernels, [MMD()])
            parts.append(StatisticPairs.from_grams(grams, [MMD()], TREND_WEIGHT, 2))
        return [each for each in parts if each.candidates]

    def _pairs_of_equal(
        self,
        sides: tuple[ShuffledSide, ShuffledSide],
        kernel: Kernel,
        statistics: list[Statistic],
        weight: float,
        family: int,
    ) -> list[StatisticPairs]:
        """Return statistics that are the same on both sides, at all bandwidths, as one family."""
        grams = self._grams(sides, [self._ladder([kernel], each) for each in sides], statistics)
        parts = []
        for statistic in statistics:
            parts.append(StatisticPairs.from_grams(grams, [statistic], weight, family))
        return parts

    def _given_statistics(
        self, x: ShuffledSide, y: ShuffledSide, statistics: list[Statistic]
    ) -> list[StatisticPairs]:
        """Return every statistic on x with every one on y, as one family."""
        weights = [each for each in statistics if not isinstance(each, ShrunkCovariance)]
        kernels = [self._ladder(each.side.kernels, each) for each in (x, y)]
        grams = self._grams((x, y), kernels, weights)
        if not all(grams):
            needed = "the kernel must distinguish different rows"
            got, advice = "the same value for all pairs of rows", "use another kernel or bandwidth"
            raise MuhatError("IndependenceTest", needed, got, advice)
        return [StatisticPairs.from_grams(grams, weights)]

    def _ladder(self, kernels: list[Kernel], side: ShuffledSide) -> list[Kernel]:
        """Return the kernels at every bandwidth, learnt from one side."""
        steps = self.bandwidths
        if self.bandwidths is None:
            steps = N_BANDWIDTHS
        return kernels_at_bandwidths(kernels, steps, side.to_learn_from)

    def _grams(
        self,
        sides: Sequence[ShuffledSide],
        kernels: Sequence[list[Kernel]],
        statistics: Sequence[Statistic],
    ) -> list[list[SideGram]]:
        """Return, for each side, the Gram matrix of every kernel that tells some rows apart."""
        grams = []
        for side, some in zip(sides, kernels, strict=True):
            grams += [side.gram(kernel) for kernel in some]

        def tells_apart(gram: SideGram) -> bool:
            gram.prepare(statistics)
            return gram.tells_apart

        kept = self._map(tells_apart, grams, grams[0].n)
        n_x = len(kernels[0])
        return [list(compress(grams[:n_x], kept[:n_x])), list(compress(grams[n_x:], kept[n_x:]))]

    def _values(self, parts: list[StatisticPairs], orders: CyclicOrders) -> Array:
        """Return Σ h(γ_k) h'(δ_l) (u_kᵀ v_π(l))², shape (statistics, orders)."""
        values = []
        for some in with_same_grams(parts):
            if some[0].has_matrices and not some[0].has_few_components(len(orders.drawn)):
                values += [self._values_by_matrices(each, orders) for each in some]
            else:
                values += self._values_by_components(some, orders)
        return np.concatenate(values)

    def _values_by_components(
        self, parts: list[StatisticPairs], orders: CyclicOrders
    ) -> list[Array]:
        """Return those of each part from the eigenvectors that all have in common."""
        m = orders.n_blocks
        V, G = used_components([each.y for each in parts])
        of_y = [ShiftedColumns.from_columns(V, order, m) for order in orders.drawn]
        del V  # before as much is needed for x
        U, H = used_components([each.x for each in parts])

        def sums(some: slice) -> Array:
            x = ShiftedColumns.from_columns(U[:, some], orders.drawn[0], m)
            found = [squares_over_shifts(x, y, H[:, some], G) for y in of_y]
            return np.concatenate(found, axis=-1)

        some = slices(0, U.shape[1], COMPONENTS_PER_CHUNK)
        values = np.asarray(sum(self._map(sums, list(some), parts[0].n)))[..., orders.chosen]
        found = []
        n_x = n_y = 0
        for each in parts:
            of_part = values[n_x:, n_y:][: len(each.x.resolved), : len(each.y.resolved)]
            found.append(of_part.reshape(-1, len(orders)))
            n_x, n_y = n_x + len(each.x.resolved), n_y + len(each.y.resolved)
        return found

    def _values_by_matrices(self, part: StatisticPairs, orders: CyclicOrders) -> Array:
        """Return the same of one part from matrices, for all shifts of an order at once."""
        n, n_x, n_y = part.n, len(part.x.resolved), len(part.y.resolved)
        values = np.empty((n_x, n_y, len(orders)))
        observed = orders.drawn[:1]

        def transforms(each: tuple[SideGram, Statistic, Array]) -> list[Array]:
            gram, statistic, drawn = each
            return gram.transforms(statistic, drawn)

        for some_x in slices(0, n_x, max(1, ENTRIES_HELD // n**2)):
            of_x = [(*each, observed) for each in part.x.resolved[some_x]]
            for some_y in slices(0, n_y, max(1, ENTRIES_HELD // orders.drawn.size // n)):
                of_y = [(*each, orders.drawn) for each in part.y.resolved[some_y]]
                found = self._map(transforms, of_x + of_y, n)
                x = [first for (first,) in found[: len(of_x)]]
                sums = sums_over_shifts(x, found[len(of_x) :], n)
                values[some_x, some_y] = sums[..., orders.chosen]
        return values.reshape(n_x * n_y, -1)


@dataclass(frozen=True, eq=False)
class _Permuted:
    """Every statistic for every order of the rows of y, and the effect size."""

    table: PermutationTable
    candidates: Candidates
    correlation: float


def _largest_hsic(table: PermutationTable, candidates: Candidates) -> int:
    """Return the number of the largest HSIC; of the largest statistic if HSIC was not asked for."""
    found = []
    for number, (_, statistics) in enumerate(candidates):
        if all(type(each) is MMD for each in statistics):
            found.append(number)
    if not found:
        return table.largest_statistic
    return found[int(table.standardized[found, 0].argmax())]


def _constant_side(pairs: Pairs, n_orders: int) -> _Permuted:
    """Return the test of a constant: no order changes anything, so that p is 1."""
    table = PermutationTable(np.zeros((1, n_orders)), np.ones(1))
    kernels = []
    for side in (pairs.x, pairs.y):
        kernels += kernels_at_bandwidths(side.kernels[:1], [1.0], side.rows)
    return _Permuted(table, [(tuple(kernels), (MMD(), MMD()))], 0.0)


def _gram_form(
    gram: str | Approximation, x: PairSide, y: PairSide, max_rows_dense: int
) -> GramForm:
    """Return how Gram matrices are held, "auto" decided; raise MuhatError for too many rows."""
    n = len(x.rows)
    if gram == "auto":
        has_row_numbers = x.has_row_numbers or y.has_row_numbers
        if n <= max_rows_dense or has_row_numbers:
            gram = "dense"
        elif n <= MAX_ROWS_OF_MATRICES:
            return GramForm(has_matrices=True, features=PIVOTS)
        else:
            gram = Nystrom(N_LANDMARKS)
    if isinstance(gram, Approximation):
        most, advice = MAX_ROWS, "use a random sample of the rows"
        form = GramForm(has_matrices=False, features=gram)
    else:
        most, advice = MAX_ROWS_DECOMPOSED, "use gram='nystrom'"
        form = GramForm(has_matrices=True)
    if n > most:
        raise MuhatError("IndependenceTest", f"at most {most} rows are supported", n, advice)
    return form


def _kernels_as_on_x(kernels: list[Kernel], X: Any, Y: Any) -> list[Kernel]:
    """Return the default kernels of y: those of x, unless they cannot be used on y."""
    has_matrix = any(isinstance(each, Precomputed) and each.matrix is not None for each in kernels)
    are_functions = all(isinstance(each, Function) for each in kernels)
    if has_matrix or (are_functions and has_objects(X) and not has_objects(Y)):
        return [Gaussian()]
    return kernels
