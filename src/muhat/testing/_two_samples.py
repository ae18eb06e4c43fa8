"""Do two samples differ? One Gram matrix of the pool per kernel serves all statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array, limit_cores
from muhat._messages import option
from muhat._parts import as_gram
from muhat._validation import whole_number
from muhat.data import ColumnMoments, DataSet, FileBatches, Source, TransformedSource
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Gaussian, Kernel
from muhat.testing import _landmarks
from muhat.testing._base import (
    PermutationTest,
    check_flag,
    checked_names,
    samples_of_matrix,
)
from muhat.testing._copies import are_copied_whole, are_ties, distinct_rows
from muhat.testing._distances import Distance, LargestRankDifference
from muhat.testing._gram import PooledGram
from muhat.testing._ladder import as_kernels, check_distances, kernels_at_bandwidths
from muhat.testing._landmarks import few_kernels, few_statistics
from muhat.testing._marginals import (
    FeatureDifference,
    largest_mean_difference,
    shifts_between,
)
from muhat.testing._permutations import Family, NullMoments, PermutationTable, Relabelings
from muhat.testing._pool import MemoryPool, Pool
from muhat.testing._results import Candidates, result_fields
from muhat.testing._row_order import RowOrder
from muhat.testing._samples import (
    TestSample,
    as_named_source,
    column_names,
    column_order,
    in_column_order,
    warn_of_constant_columns,
)
from muhat.testing._sequential import permute_sequentially
from muhat.testing._statistics import MMD, Statistic
from muhat.testing._streams import SourcePool
from muhat.testing._tolerance import Tolerance, check_tolerance, tolerance_of_two
from muhat.testing._two_sample_results import (
    DEFAULT_NAMES,
    TwoSampleResult,
    Witness,
    WitnessedRows,
)
from muhat.testing._units import MAX_SINGLE_ROWS, PermutationUnits
from muhat.testing._wording import with_medians, with_moments

MAX_ROWS_DENSE_DEFAULT = 600
"""Rows of the pool up to which the default test decomposes the Gram matrices of all its kernels.

Beyond, it takes fewer statistics, on landmarks (``_landmarks``): with 700 rows a tenth of the time,
for 3 points of power against a correlation of two columns.
"""

MAX_ROWS_DENSE = 2000
"""The same where kernels or statistics are given: then about one decomposition for each."""

N_LANDMARKS = 300
"""Landmarks that stand for more rows than that."""

DEFAULT_STATISTICS = ("mmd", "spectral")
"""MMD for overall differences, truncated SVD for fine structure."""

RANK_DIFFERENCES = (LargestRankDifference(), LargestRankDifference(spread=True))
"""The default's families beside that of all kernels, of one statistic each.

They compare mean ranks, and how far ranks are from the middle, in the column in which that differs
most.
"""

RANK_WEIGHTS = (0.1, 0.02)
"""Their weights; kernels have the rest. docs/tests-design.md has the power by weight."""

N_COLUMNS_FOR_PICTURES = 2
"""Columns that differ most, of which a result holds the values for pictures."""


class TwoSampleTest(PermutationTest):
    """Test whether two samples come from one distribution: one exact p-value, many kernels.

    Columns are standardized, and the rows of both samples are pooled and shuffled. Bandwidths, λ
    and eigendecompositions come from the pooled rows, without their labels. Then the labels are
    permuted. All statistics are combined into one, which is ranked among all permutations. So the
    p-value is exact for every sample size and level, and never zero.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        The kernels; by default Gaussian and Laplacian.
    bandwidths : int, 'median' or list of float, default=None
        The bandwidths of kernels without a given one: their number (default: 14 for the Gaussian
        kernel, 6 for others, fewer beyond 600 rows; spread over the distances between rows),
        'median', or a list.
    statistics : str, Statistic or list of these, default=('mmd', 'spectral')
        'mmd', 'spectral', 'kernel-fisher', 'shrunk-means', or objects such as
        ``Spectral("landweber", [10, 100])``.
    gram : str, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is stored: 'dense', 'blocks' (never as a whole; MMD only), 'nystrom' or
        'random-features'. 'auto' is 'dense' up to 600 rows in both samples, and uses 200 landmarks
        beyond; if kernels or statistics are given, up to 2000 rows and 300 landmarks. The p-value
        is always exact.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1, over both samples together. Row numbers
        and objects (``Precomputed``, functions on lists) are not scaled.
    distinct : bool, default=False
        Whether each different row is tested only once, in a sample drawn at random. If too few rows
        are left, p is 1. If False, copies are counted (``n_copies``, ``n_shared``) and the verdict
        mentions them.
    tolerance : float or 'halves', default=None
        A distance δ (MMD) up to which the samples count as equal. The result then also has an
        approximate p-value for a distance above δ. 'halves' takes the distance between the first
        and the second half of X, in the given order. The distance is measured with the Gaussian
        kernel at the median bandwidth of all rows, or with ``kernel`` if you give one kernel.
    n_permutations : int, default=999
        Number of random permutations. If there are no more relabelings, all are enumerated.
    bins : int, default=None
        Number of bins: rows are put at random into bins of equal size, and whole bins are permuted.
        This is exact too, and faster. By default single rows are permuted up to 20,000 rows in both
        samples, and 500 bins beyond that or with ``gram='blocks'``.
    block_length : int, default=None
        If consecutive rows depend on each other: the length of the blocks of rows that are
        permuted. The p-value is then approximate; blocks must be much longer than the dependence.
        By default rows are assumed to be independent.
    early_stopping : int, default=None
        Stop when this number of permutations (for example 20) are as large as observed, at most
        after ``n_permutations``. ``p_value`` stays exact (Besag and Clifford 1991), p-values of
        single statistics do not. By default all permutations are drawn.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the permutations. With None, every call draws new ones.
    n_jobs : int, default=None
        Number of cores; all if not given or −1.

    See Also
    --------
    GroupTest : Many groups in one table.
    DriftDetector : New batches against one reference, again and again.
    mmd : The distance alone.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import TwoSampleTest
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 2)), rng.normal(1.0, 1.0, size=(40, 2))
    >>> result = TwoSampleTest().test(X, Y, names=("before", "after"))
    >>> result.p_value
    0.001
    >>> print(result.verdict().replace(". ", ".\\n"))
    before (50 rows) and after (40 rows) differ (p ≤ 0.001).
    Largest difference: mean of column 0, 0.94 standard deviations higher in after.
    """

    max_single_rows: ClassVar[int] = MAX_SINGLE_ROWS
    """Rows of both samples up to which single rows are permuted; beyond, bins of rows."""
    max_rows_dense: ClassVar[int] = MAX_ROWS_DENSE_DEFAULT
    """Rows of both samples up to which the default statistics come from whole Gram matrices."""
    n_landmarks: ClassVar[int] = _landmarks.N_LANDMARKS
    """Landmarks that stand for more rows than that."""

    def __init__(
        self,
        kernel: Any = None,
        *,
        bandwidths: Any = None,
        statistics: Any = DEFAULT_STATISTICS,
        gram: Any = "auto",
        standardize: bool = True,
        distinct: bool = False,
        tolerance: Any = None,
        n_permutations: int = 999,
        bins: int | None = None,
        block_length: int | None = None,
        early_stopping: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidths = bandwidths
        self.statistics = statistics
        self.gram = gram
        self.standardize = standardize
        self.distinct = distinct
        self.tolerance = tolerance
        self.n_permutations = n_permutations
        self.bins = bins
        self.block_length = block_length
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(self, X: Any, Y: Any, *, names: Sequence[str] | None = None) -> TwoSampleResult:
        """Test whether the rows of X and of Y come from one distribution.

        Parameters
        ----------
        X, Y : array, data frame, Series, dask collection or batches, of shapes (n, d) and (m, d)
            An array of one dimension is one column; the name of a Series is the name of its
            sample. Data frames must have the same columns, in any order. Batches are a list of
            arrays or data frames, or the output of ``muhat.open_batches``; they are read twice.
            Beyond 20,000 rows in both samples, only sums over rows are kept, and 20,000 random rows
            of each sample, at which the witness is evaluated. For ``Precomputed(K)`` give row
            numbers of K, for ``kernel='precomputed'`` ``K[:n]`` and ``K[n:]``, and for kernel
            functions of objects lists of objects.
        names : two strings, default=None
            Names of the samples in the verdict; by default their file names, or X and Y.

        Returns
        -------
        result : TwoSampleResult
            The p-value, the effect size, which columns differ and where, and ``verdict()``.
        """
        statistics = self._check()
        sample_names = self._sample_names(names, X, Y)
        rng = self._rng()
        samples = self._samples(X, Y, statistics, rng)
        is_fast = self._is_default and samples.n_rows > self.max_rows_dense
        if is_fast:
            statistics = few_statistics()
        with self._blas_threads(), limit_cores(self._n_cores):
            pool = self._pool(samples, statistics, rng, is_fast)
            kernels = self._kernels(samples, pool.rows, is_fast)
            permuted = self._permuted(samples, pool, kernels, statistics, rng)
            return self._result(samples, pool, permuted, sample_names)

    def _check(self) -> list[Statistic]:
        """Raise MuhatError for invalid parameters; return the statistics."""
        for name, least in (("bins", 4), ("block_length", 1), ("early_stopping", 1)):
            if getattr(self, name) is not None:
                whole_number(self, name, getattr(self, name), least)
        check_flag(self, "distinct", self.distinct)
        check_tolerance("TwoSampleTest", self.tolerance)
        if self.tolerance is not None and self.block_length not in (None, 1):
            needed = "tolerance and block_length cannot be combined"
            raise MuhatError("TwoSampleTest", needed, repr(self.tolerance), "leave out one of them")
        if self.distinct and self.block_length not in (None, 1):
            needed = "distinct and block_length cannot be combined"
            advice = "drop copies before the test, or leave out one of them"
            raise MuhatError("TwoSampleTest", needed, "True", advice)
        return super()._check()

    @property
    def _is_default(self) -> bool:
        """Whether kernels, statistics and how Gram matrices are held are left to the test."""
        is_given = self.kernel is not None or self.bandwidths is not None
        is_auto = isinstance(self.gram, str) and self.gram == "auto"
        return is_auto and not is_given and self._has_default_statistics

    @property
    def _has_default_statistics(self) -> bool:
        given = self.statistics
        return isinstance(given, Sequence) and tuple(given) == DEFAULT_STATISTICS

    def _sample_names(self, names: Sequence[str] | None, X: Any, Y: Any) -> tuple[str, str]:
        """Return what the samples are called: as given, or as the files they were read from."""
        if names is not None:
            if isinstance(names, str) or len(names) != 2:
                raise MuhatError("TwoSampleTest", "names must be two strings", repr(names))
            first, second = map(str, names)
            if first == second:
                raise MuhatError("TwoSampleTest", "names must be different", repr(names))
            return first, second
        if is_series(X) and is_series(Y) and str(X.name) != str(Y.name):
            return str(X.name), str(Y.name)
        if not isinstance(X, DataSet | FileBatches) or not isinstance(Y, DataSet | FileBatches):
            return DEFAULT_NAMES
        if X.name is None or Y.name is None or X.name == Y.name:
            return DEFAULT_NAMES
        return str(X.name), str(Y.name)

    def _samples(
        self, X: Any, Y: Any, statistics: list[Statistic], rng: np.random.Generator
    ) -> _Samples:
        """Return both samples, validated, with the kernels and how Gram matrices are held."""
        kernels = as_kernels(self.kernel)
        of_matrix = samples_of_matrix("TwoSampleTest", kernels, (X, Y))
        if of_matrix is not None:
            gram = self._gram(of_matrix.kernels, statistics)
            x, y = map(TestSample.from_row_numbers, of_matrix.samples)
            self._check_sizes(x, y, statistics)
            return _Samples(x, y, of_matrix.kernels, gram)
        gram = self._gram(kernels, statistics)
        x, y = self._read(X, Y, gram)
        self._check_sizes(x, y, statistics)
        too_few_distinct = False
        if self.distinct:
            x, y, too_few_distinct = self._without_copies(x, y, statistics, rng)
        warn_of_constant_columns(x, y)
        samples = _Samples(x, y, kernels, gram, bool(self.standardize), too_few_distinct)
        if not self.standardize:
            both = samples.moments
            check_distances("TwoSampleTest", np.array([both.low, both.high]))
        return samples

    def _gram(self, kernels: list[Kernel], statistics: list[Statistic]) -> str | Approximation:
        """Return how the Gram matrix is held; raise if that cannot give the statistics."""
        gram = as_gram(self.gram)
        other = next((each for each in statistics if type(each) is not MMD), None)
        if gram == "blocks" and other is not None:
            needed = "statistics must be 'mmd' with gram='blocks'"
            advice = "use gram='dense' or 'nystrom' for others"
            raise MuhatError("TwoSampleTest", needed, type(other).__name__, advice)
        if isinstance(gram, Approximation):
            for kernel in kernels:
                gram.check(kernel)
        return gram

    def _read(self, X: Any, Y: Any, gram: str | Approximation) -> tuple[TestSample, TestSample]:
        """Return both samples with their columns in one order."""
        size = self.max_single_rows
        if isinstance(gram, Approximation):
            size = max(size, gram.rows_to_learn_from)
        first, x_names = self._rows_or_source("X", X)
        second, y_names = self._rows_or_source("Y", Y)
        if is_series(X) and is_series(Y) and x_names != y_names:  # the names are the samples'
            x_names = y_names = ("value",)
        if x_names and y_names and x_names != y_names:
            order = column_order("TwoSampleTest", x_names, y_names)
            y_names = x_names
            if isinstance(second, Source):
                second = TransformedSource(second, partial(in_column_order, order=order))
            else:
                second = in_column_order(second, order)
        x = _as_sample(first, x_names, size, random_state=0)
        y = _as_sample(second, y_names, size, random_state=1)
        if x.n_columns != y.n_columns:
            got = f"{x.n_columns} and {y.n_columns} columns"
            raise MuhatError("TwoSampleTest", "X and Y must have the same columns", got)
        return x, y

    def _rows_or_source(self, name: str, X: Any) -> tuple[Array | Source, tuple[str, ...] | None]:
        """Return rows in memory as an array, batches, files or dask as a source; column names."""
        found = as_named_source(f"TwoSampleTest: {name}", X)
        if found is None:
            return self._sample(name, X, least=1)
        source, columns = found
        if columns is None:
            return source, None
        return source, checked_names("TwoSampleTest", name, columns)

    def _check_sizes(self, x: TestSample, y: TestSample, statistics: list[Statistic]) -> None:
        """Raise for samples too small for any permutation to differ, or for a U-statistic."""
        unbiased = _are_unbiased(statistics)
        for name, each in (("X", x), ("Y", y)):
            if each.n < 2 and (unbiased or x.n + y.n < 3):
                needed = f"{name} must have at least 2 rows"
                if unbiased:
                    needed += ", as a statistic is unbiased"
                raise MuhatError("TwoSampleTest", needed, "1 row")

    def _without_copies(
        self,
        x: TestSample,
        y: TestSample,
        statistics: list[Statistic],
        rng: np.random.Generator,
    ) -> tuple[TestSample, TestSample, bool]:
        """Return both samples without copies; unchanged, and True, if too few rows would stay."""
        if x.rows is None or y.rows is None:
            needed = f"rows in memory are needed with {option('distinct')}"
            advice = "pass arrays, or drop copies before the test"
            raise MuhatError("TwoSampleTest", needed, f"{max(x.n, y.n)} rows in batches", advice)
        kept_x, kept_y = distinct_rows(x.rows, y.rows, rng)
        n, m = len(kept_x), len(kept_y)
        least = 1
        if _are_unbiased(statistics):
            least = 2
        if min(n, m) < least or n + m < 3:
            return x, y, True
        return x.only(kept_x), y.only(kept_y), False

    def _pool(
        self,
        samples: _Samples,
        statistics: list[Statistic],
        rng: np.random.Generator,
        is_fast: bool,
    ) -> Pool:
        """Return both samples as one pool: held if few or if all pairs are needed, else summed."""
        x, y = samples.scaled
        gram, N = samples.gram, samples.n_rows
        is_held = self.max_single_rows >= N or gram in ("dense", "blocks") or x.moments is None
        if is_fast:
            gram = Nystrom(min(N, self.n_landmarks))
        elif gram == "auto":
            if N <= MAX_ROWS_DENSE:
                gram = "dense"
            else:
                gram = Nystrom(N_LANDMARKS)
        one_by_one = 0
        if gram != "blocks":
            one_by_one = self.max_single_rows
        units = PermutationUnits.choose(
            x.n, y.n, bins=self.bins, block=self.block_length, one_by_one=one_by_one
        )
        if not is_held:
            assert isinstance(gram, Approximation)
            return SourcePool.from_samples(x, y, gram, units, rng)
        if x.rows is None or y.rows is None:
            needed = f"rows in memory are needed for gram={gram!r}"
            advice = "use gram='nystrom', or give arrays"
            raise MuhatError("TwoSampleTest", needed, f"{max(x.n, y.n)} rows in batches", advice)
        for_mmd = all(type(each) is MMD for each in statistics)
        return MemoryPool.from_rows(x.rows, y.rows, gram, units, rng, for_mmd, is_fast)

    def _kernels(self, samples: _Samples, rows: Array, is_fast: bool) -> list[Kernel]:
        """Return the kernels at every bandwidth."""
        if is_fast:
            return few_kernels(rows)
        return kernels_at_bandwidths(samples.kernels, self.bandwidths, rows)

    @property
    def _compares_ranks(self) -> bool:
        """Whether differences of ranks are families of statistics, too.

        They are left out if kernels or statistics are given, and with early stopping: the p-values
        that combine families would change with every permutation that is drawn.
        """
        is_default = self.kernel is None and self._has_default_statistics
        return is_default and self.early_stopping is None

    def _permuted(
        self,
        samples: _Samples,
        pool: Pool,
        kernels: list[Kernel],
        statistics: list[Statistic],
        rng: np.random.Generator,
    ) -> _Permuted:
        """Return the statistics of the observed labels and of permutations of them."""

        def draw(count: int) -> Array:
            return Relabelings.draw(pool.observed, count, rng).labels

        is_complete = pool.units.n_relabelings <= self.n_permutations + 1
        if samples.too_few_distinct or samples.are_equal:
            return _no_differences(draw(self.n_permutations), kernels[0], is_complete)
        if self.early_stopping is None or is_complete:
            return self._all_permuted(pool, kernels, statistics, draw, is_complete)
        return self._sequentially_permuted(pool, kernels, statistics, draw)

    def _all_permuted(
        self,
        pool: Pool,
        kernels: list[Kernel],
        statistics: list[Statistic],
        draw: DrawLabels,
        is_complete: bool,
    ) -> _Permuted:
        """Return the statistics of all permutations."""
        labels = draw(self.n_permutations)

        def values_of(kernel: Kernel, gram: PooledGram) -> _KernelStatistics:
            resolved = gram.resolve(statistics)
            values, scales = gram.statistics(resolved, labels)
            return _KernelStatistics(resolved, values, scales, gram.null_moments(resolved, labels))

        found = pool.map(values_of, kernels, self._map)
        candidates = candidates_of("TwoSampleTest", kernels, [each.statistics for each in found])
        if self._compares_ranks:
            for difference in RANK_DIFFERENCES:
                largest = largest_mean_difference(pool.mean_scores(difference.scores), labels)
                found.append(_KernelStatistics.from_values([MMD()], largest))
                candidates.append(((difference,), (MMD(),)))
        table = PermutationTable(
            np.concatenate([each.values for each in found]),
            np.concatenate([each.scales for each in found]),
            NullMoments.concatenate([each.null_moments for each in found]),
            families_of_kernels([kernel for (kernel,), _ in candidates], RANK_WEIGHTS),
            pool.is_single,
        )
        return _Permuted(table, labels, candidates, is_complete)

    def _sequentially_permuted(
        self,
        pool: Pool,
        kernels: list[Kernel],
        statistics: list[Statistic],
        draw: DrawLabels,
    ) -> _Permuted:
        """Return the statistics of as many permutations as the sequential p-value takes."""
        assert self.early_stopping is not None
        grams = pool.map(lambda _, gram: (gram, gram.resolve(statistics)), kernels, self._map)
        candidates = candidates_of("TwoSampleTest", kernels, [resolved for _, resolved in grams])

        def values_of(labels: Array) -> Array:
            def of_gram(part: tuple[PooledGram, list[Statistic]]) -> Array:
                gram, resolved = part
                return gram.statistics(resolved, labels)[0]

            return np.concatenate(self._map(of_gram, grams, len(labels)))

        observed = pool.observed[:, None]
        moments = [gram.null_moments(resolved, observed) for gram, resolved in grams]
        table, labels = permute_sequentially(
            values_of,
            NullMoments.concatenate(moments),
            draw,
            self.early_stopping,
            self.n_permutations,
            pool.is_single,
        )
        return _Permuted(table, labels, candidates, is_complete=False)

    def _result(
        self, samples: _Samples, pool: Pool, permuted: _Permuted, names: tuple[str, str]
    ) -> TwoSampleResult:
        """Return the p-value with the effect size, the witness and the differences of columns."""
        x, y = samples.x, samples.y
        (kernel,), (statistic,) = permuted.candidates[permuted.table.largest_statistic]
        [gram] = pool.map(lambda _, each: each, [kernel], self._map)
        element = gram.witness(statistic, pool.observed)
        features = samples.features(pool, permuted)
        return TwoSampleResult(
            **result_fields(permuted.table, permuted.candidates),
            is_complete=permuted.is_complete,
            n=x.n,
            m=y.n,
            rows_together=pool.units.size,
            is_exact=self.block_length in (None, 1),
            mmd=gram.mmd(pool.observed),
            mmd_interval=_mmd_interval(gram, pool, kernel),
            witness=Witness(element, samples.scaling, x.names or y.names),
            features=features,
            names=names,
            least_p_value=pool.units.least_p_value(self.n_permutations),
            **samples.copies,
            row_order=samples.row_order,
            block_length=self.block_length,
            too_few_distinct=samples.too_few_distinct,
            tolerance=self._tolerance(samples, permuted.table.p_value),
            at_rows=samples.at_rows(pool.evaluated(element, *samples.scaled), features),
        )

    def _tolerance(self, samples: _Samples, p_value: float) -> Tolerance | None:
        """Return whether the samples differ by more than the tolerance; None without one.

        Of very many rows it looks at those that are held, drawn at random.
        """
        if self.tolerance is None:
            return None
        kernel: Kernel = Gaussian()
        if self.kernel is not None and len(samples.kernels) == 1:
            kernel = samples.kernels[0]
        x, y = (_drawn_in_order(each) for each in samples.scaled)
        gram: str | Approximation = "dense"
        if samples.has_columns and len(x) + len(y) > MAX_ROWS_DENSE_DEFAULT:
            gram = Nystrom(_landmarks.N_LANDMARKS)
        return tolerance_of_two(
            x,
            y,
            kernel,
            gram,
            self.tolerance,
            n_draws=self.n_permutations,
            rng=self._rng(),
            p_value=p_value,
        )


DrawLabels = Callable[[int], Array]
"""From a number of permutations to columns of labels, the first as observed."""


@dataclass(frozen=True, eq=False)
class _Samples:
    """Both samples of a test, with the kernels and how their Gram matrices are held."""

    x: TestSample
    y: TestSample
    kernels: list[Kernel]
    gram: str | Approximation
    is_scaled: bool = False
    """Whether columns are standardized."""
    too_few_distinct: bool = False
    """Whether dropping copies would leave too few rows to compare."""

    @property
    def n_rows(self) -> int:
        """N = n + m."""
        return self.x.n + self.y.n

    @property
    def has_columns(self) -> bool:
        """Whether rows have columns; row numbers of a matrix have none."""
        return self.x.moments is not None

    @cached_property
    def moments(self) -> ColumnMoments:
        """Of the columns of both samples together."""
        assert self.x.moments is not None
        assert self.y.moments is not None
        return self.x.moments + self.y.moments

    @property
    def scaling(self) -> ColumnMoments | None:
        """What columns are standardized by, if they are."""
        if self.is_scaled:
            return self.moments
        return None

    @cached_property
    def scaled(self) -> tuple[TestSample, TestSample]:
        """Both samples, standardized over both together if they are to be."""
        if self.scaling is None:
            return self.x, self.y
        return self.x.standardized(self.scaling), self.y.standardized(self.scaling)

    @property
    def are_equal(self) -> bool:
        """Whether all rows of both samples are equal."""
        return self.has_columns and np.array_equal(self.moments.low, self.moments.high)

    @property
    def copies(self) -> dict[str, Any]:
        """How many rows are copies of others, and whether both samples are the same rows."""
        x, y = self.x.counts, self.y.counts
        if x is None or y is None:
            return {}
        return {
            "n_copies": x.n_copies + y.n_copies,
            "n_shared": y.n_shared(x),
            "has_same_rows": x.is_same(y),
            "is_constant": self.are_equal,
            "are_copied_whole": are_copied_whole(
                np.concatenate([self.x.drawn.rows, self.y.drawn.rows])
            ),
            "are_ties": are_ties([self.x.drawn.rows, self.y.drawn.rows]),
        }

    @property
    def row_order(self) -> RowOrder | None:
        """In which column neighbouring rows are alike, if they are; None without columns.

        Of samples that are not in memory it looks at the rows that are held.
        """
        if not self.has_columns:
            return None
        samples, spacings = [], []
        for each in (self.x, self.y):
            if each.held is not None and len(each.drawn.rows) < each.n:
                samples.append(each.held)
                spacings.append(1.0)
            else:
                samples.append(_drawn_in_order(each))
                spacings.append(each.n / len(each.drawn.rows))
        return RowOrder.from_samples(samples, column_names(self.x, self.y), spacings)

    def features(self, pool: Pool, permuted: _Permuted) -> tuple[FeatureDifference, ...]:
        """Return how much the samples differ in every column, the largest difference first."""
        x, y = self.x.moments, self.y.moments
        if x is None or y is None:
            return ()
        names = column_names(self.x, self.y)
        columns = pool.column_distances(permuted.labels)
        found = with_moments(columns.features(shifts_between(x, y), names), x, y, names)
        return with_medians(found, self.x.drawn.rows, self.y.drawn.rows, names)

    def at_rows(
        self, witness: tuple[Array, Array], features: tuple[FeatureDifference, ...]
    ) -> WitnessedRows:
        """Return what pictures show of single rows: the witness, and the columns that differ."""
        names = column_names(self.x, self.y)
        most = [names.index(each.name) for each in features[:N_COLUMNS_FOR_PICTURES]]
        x, y = self.x.drawn, self.y.drawn
        return WitnessedRows(
            *(x.numbers, y.numbers),
            *witness,
            *(x.rows[:, most].astype(np.float64), y.rows[:, most].astype(np.float64)),
        )


@dataclass(frozen=True, eq=False)
class _KernelStatistics:
    """The statistics of one kernel: values for every permutation, scales and null moments."""

    statistics: list[Statistic]
    values: Array
    scales: Array
    null_moments: NullMoments

    @classmethod
    def from_values(cls, statistics: list[Statistic], values: Array) -> _KernelStatistics:
        """Return statistics whose moments are those of the permutations."""
        scales = np.abs(values).max(axis=1)
        return cls(statistics, values, scales, NullMoments.from_values(values))


@dataclass(frozen=True, eq=False)
class _Permuted:
    """All statistics for all permutations, and the labels with which columns are compared."""

    table: PermutationTable
    labels: Array
    candidates: Candidates
    is_complete: bool


def _no_differences(labels: Array, kernel: Kernel, is_complete: bool) -> _Permuted:
    """Return the table of samples with nothing to compare: p is 1, that of columns too."""
    table = PermutationTable(np.zeros((1, labels.shape[1])), np.zeros(1))
    return _Permuted(table, labels[:, :1], [((kernel,), (MMD(),))], is_complete)


def _as_sample(
    given: Array | Source, names: tuple[str, ...] | None, size: int, random_state: int
) -> TestSample:
    """Return rows in memory, or a source, as a sample."""
    if isinstance(given, Source):
        return TestSample.from_source(given, names, size, random_state)
    return TestSample.from_rows(given, names, size, random_state)


def is_series(X: Any) -> bool:
    """Whether X is one column with a name, as of pandas or polars: the name of its sample."""
    return len(getattr(X, "shape", ())) == 1 and getattr(X, "name", None) is not None


def _drawn_in_order(sample: TestSample) -> Array:
    """Return the rows that are held of a sample, in the order in which they were given."""
    return sample.drawn.rows[np.argsort(sample.drawn.numbers, kind="stable")]


def families_of_kernels(
    kernels: list[Kernel], distance_weights: Sequence[float]
) -> tuple[Family, ...]:
    """Return one family for all kernels and one for each distance; none without distances.

    Effect size and witness are those of a kernel, whose units do not depend on the data's.
    """
    distances = [number for number, kernel in enumerate(kernels) if isinstance(kernel, Distance)]
    if not distances:
        return ()
    others = []
    for number, weight in zip(distances, distance_weights, strict=True):
        others.append(Family(weight, np.array([number]), explains=False))
    rest = np.setdiff1d(np.arange(len(kernels)), distances)
    return Family(1 - sum(distance_weights), rest), *others


def candidates_of(
    who: str, kernels: Sequence[Kernel], resolved: Sequence[list[Statistic]]
) -> Candidates:
    """Return every statistic with its kernel; raise if no kernel tells rows apart."""
    found: Candidates = []
    for kernel, statistics in zip(kernels, resolved, strict=True):
        for statistic in statistics:
            found.append(((kernel,), (statistic,)))
    if not found:
        got, advice = "the same value for all pairs of rows", "use another kernel or bandwidth"
        raise MuhatError(who, "the kernel must distinguish different rows", got, advice)
    return found


def _are_unbiased(statistics: Sequence[Statistic]) -> bool:
    """Whether any statistic needs pairs of different rows in each sample."""
    return any(each.unbiased for each in statistics)


def _mmd_interval(gram: PooledGram, pool: Pool, kernel: Kernel) -> tuple[float, float]:
    """Return the interval of the distance; with one unit in a sample, from 0 to the largest."""
    if min(pool.units.x, pool.units.y) > 1:
        return gram.mmd_interval(pool.observed)
    return 0.0, float(2 * np.sqrt(np.abs(kernel.diagonal(pool.rows)).max()))
