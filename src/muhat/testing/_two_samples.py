"""Are two samples alike? One pooled Gram matrix per kernel answers for every statistic and permutation at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from typing import Any
from warnings import warn

import numpy as np

from muhat._arrays import Array
from muhat._messages import option
from muhat._parts import as_gram
from muhat._validation import whole_number
from muhat.data import ArraySource, ColumnMoments, DataSet, FileBatches, Source, TransformedSource
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Kernel
from muhat.testing._base import (
    DEFAULT_STATISTICS,
    PermutationTest,
    check_flag,
    checked_names,
    samples_of_matrix,
)
from muhat.testing._copies import distinct_rows
from muhat.testing._distances import Distance
from muhat.testing._gram import PooledGram
from muhat.testing._ladder import as_kernels, check_distances, kernels_at_bandwidths
from muhat.testing._marginals import FeatureDifference, shifts_between
from muhat.testing._permutations import Family, NullMoments, PermutationTable, Relabelings
from muhat.testing._pool import MemoryPool, Pool, TestSample, as_named_source
from muhat.testing._results import (
    DEFAULT_NAMES,
    Candidates,
    TwoSampleResult,
    Witness,
    result_fields,
)
from muhat.testing._sequential import permute_sequentially
from muhat.testing._statistics import MMD, Statistic
from muhat.testing._streams import SourcePool
from muhat.testing._units import MAX_SINGLE_ROWS, PermutationUnits
from muhat.testing._wording import with_moments

MAX_ROWS_DENSE = 2000
"""Rows of the pool up to which the eigendecompositions of twenty kernels take less than about a minute."""

N_LANDMARKS = 300
"""How many landmarks stand for more rows than that, if nothing else is asked for."""

KERNEL_WEIGHT, DISTANCE_WEIGHT = 0.95, 0.025
"""Weights of the default's families: all kernels; the energy distance, and that of ranks (docs/tests.md)."""


class TwoSampleTest(PermutationTest):
    """Test whether two samples come from one distribution, with one exact p-value for many kernels and statistics.

    Columns are standardized, and the rows pooled and shuffled. Bandwidths, λ and eigendecompositions come from the
    pool whatever the labels are; then labels are permuted. All statistics share the permutations, and one combination
    of them is compared with that of every permutation: the p-value is exact for every sample size and level, and never
    zero.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        Gaussian and Laplacian, if not given.
    bandwidths : int, 'median' or list of float, default=None
        For kernels whose bandwidth is not a number: how many, in equal ratios over the pooled distances (14 if not
        given, 6 but for the Gaussian kernel), the median, or the bandwidths themselves.
    statistics : str, Statistic or list of these, default=('mmd', 'spectral', 'kernel-fisher')
        'mmd', 'spectral', 'kernel-fisher', 'shrunk-means' or objects such as ``Spectral("landweber", [10, 100])``.
    gram : {'auto', 'dense', 'blocks', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: as it is, by default up to 2000 rows in both samples together, in blocks that are
        forgotten (for MMD alone), or approximated by features, 300 landmarks by default, drawn from the pool. The
        p-value is exact in any case.
    standardize : bool, default=True
        Whether columns are brought to mean 0 and variance 1 over both samples together, whatever their labels are.
        Kernels of row numbers or of objects (``Precomputed``, functions on lists) have no columns to scale.
    distinct : bool, default=False
        Whether of rows that are exact copies of each other, in either sample, only one is tested, drawn at random.
        Where that leaves too few rows to compare, p is 1.
        Without it copies are counted (``n_copies``, ``n_shared``) and the verdict says so.
    n_permutations : int, default=999
        Where there are no more relabelings than that, all of them are taken instead of random ones.
    bins : int, default=None
        How many bins of equal size the rows are put in at random, in both samples together; bins are then permuted as
        wholes, which is exact too, and permutations cost nothing. By default rows are permuted one by one up to 20,000
        in both samples, and in 500 bins beyond that, or for ``gram='blocks'``.
    block_length : int, default=None
        How many rows that follow each other stay together, where rows depend on those before them. The p-value is then
        approximate: better, the longer the blocks are than the dependence. By default rows are taken as independent.
    early_stopping : int, default=None
        Draw permutations until so many of them (20, say) are as large as observed, ``n_permutations`` at most: exact
        for ``p_value`` (Besag and Clifford 1991), not for those of single statistics. By default all are drawn, as they
        seldom cost more than the Gram matrices and their eigendecompositions.
    random_state : int, RandomState, Generator or None, default=0
        For the permutations. With None, every call draws others.
    n_jobs : int, default=None
        Cores to use, as many as there are if not given or −1.

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
    The samples differ (50 and 40 rows, p ≤ 0.001).
    Largest difference: column 0, 0.95 standard deviations higher in after.
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        bandwidths: Any = None,
        statistics: Any = DEFAULT_STATISTICS,
        gram: Any = "auto",
        standardize: bool = True,
        distinct: bool = False,
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
            One dimension is one column. Data frames must have the same columns; those of Y are put in the order of X.
            Batches are a list of arrays or data frames, or what ``muhat.open_batches`` returns: of any number of rows,
            passed over twice. Beyond 20,000 rows in both, only sums over rows are held, and 20,000 rows of each drawn
            at random, at which the witness is evaluated. For ``Precomputed(K)`` give row numbers of K, for
            ``kernel='precomputed'`` ``K[:n]`` and ``K[n:]``, and for kernel functions of objects lists of these.
        names : two strings, default=None
            What the verdict calls the samples; by default the names of files that they were read from, or X and Y.
        """
        statistics, kernels = self._check(), as_kernels(self.kernel)
        labels_of_samples = self._names(names, X, Y)
        known = samples_of_matrix("TwoSampleTest", kernels, (X, Y))
        too_few_distinct = False
        kernels = kernels if known is None else known.kernels
        gram = self._gram(kernels, statistics)
        rng = self._rng()
        if known is None:
            x, y = self._samples(X, Y, gram)
            self._check_sizes(x, y, statistics)
            if self.distinct:
                x, y, too_few_distinct = self._without_copies(x, y, statistics, rng)
            warn_of_constant_columns(x, y)
        else:
            x, y = map(TestSample.from_numbers, known.samples)
            self._check_sizes(x, y, statistics)
        moments = self._moments(x, y)
        scaled = (x, y) if moments is None else (x.standardized(moments), y.standardized(moments))
        if moments is None and x.moments is not None and y.moments is not None:
            both = x.moments + y.moments
            check_distances("TwoSampleTest", np.array([both.low, both.high]))
        pool = self._pool(*scaled, gram, rng, for_mmd=all(type(each) is MMD for each in statistics))
        ladder = kernels_at_bandwidths(kernels, self.bandwidths, pool.rows) + self._distances(
            pool.rows
        )
        is_complete = comb(len(pool.observed), pool.units.x) <= self.n_permutations + 1
        if too_few_distinct or _are_equal(x, y):
            table_of = self._table_without_differences
        elif self.early_stopping is None or is_complete:
            table_of = self._whole_table
        else:
            table_of = self._sequential_table
        table, labels, candidates = table_of(
            pool,
            ladder,
            statistics,
            lambda count: Relabelings.draw(pool.observed, count, rng).labels,
        )
        (kernel,), (largest_statistic,) = candidates[table.largest_statistic]
        [of_kernel] = pool.map(lambda each: each, [kernel], self._map)
        element = of_kernel.witness(largest_statistic, pool.observed)
        witness_x, witness_y = pool.evaluated(element, *scaled)
        columns = _column_names(x, y)
        features: tuple[FeatureDifference, ...] = ()
        if columns:
            assert x.moments is not None
            assert y.moments is not None
            features = pool.features(labels, shifts_between(x.moments, y.moments), columns)
            features = with_moments(features, x.moments, y.moments, columns)
        telling = [columns.index(each.name) for each in features[:2]]
        return TwoSampleResult(
            **result_fields(table, candidates),
            is_complete=is_complete,
            n=x.n,
            m=y.n,
            rows_together=pool.units.size,
            is_exact=self.block_length in (None, 1),
            mmd=of_kernel.mmd(pool.observed),
            mmd_interval=_mmd_interval(of_kernel, pool, kernel),
            witness=Witness(element, moments, x.names or y.names),
            witness_x=witness_x,
            witness_y=witness_y,
            numbers_x=x.drawn.numbers,
            numbers_y=y.drawn.numbers,
            features=features,
            most_telling_x=x.drawn.rows[:, telling].astype(np.float64),
            most_telling_y=y.drawn.rows[:, telling].astype(np.float64),
            names=labels_of_samples,
            least_p_value=_least_p_value(pool.units, self.n_permutations),
            **_copies(x, y),
            too_few_distinct=too_few_distinct,
        )

    def _table_without_differences(
        self, pool: Pool, ladder: list[Kernel], statistics: list[Statistic], draw: DrawLabels
    ) -> Drawn:
        """Return the table where there is nothing to compare: no permutation counts, and p is 1, of columns too."""
        labels = draw(self.n_permutations)
        table = PermutationTable(np.zeros((1, labels.shape[1])), np.zeros(1))
        return table, labels[:, :1], [((ladder[0],), (MMD(),))]

    def _whole_table(
        self, pool: Pool, ladder: list[Kernel], statistics: list[Statistic], draw: DrawLabels
    ) -> Drawn:
        """Return the values of all permutations, the labels of these, and the statistics."""
        labels = draw(self.n_permutations)

        def values_of(
            gram: PooledGram, statistics: list[Statistic]
        ) -> tuple[list[Statistic], Array, Array, NullMoments]:
            resolved = gram.resolve(statistics)
            return resolved, *gram.statistics(resolved, labels), gram.null_moments(resolved, labels)

        kernels = [each for each in ladder if not isinstance(each, Distance)]
        distances = [each for each in ladder if isinstance(each, Distance)]
        if isinstance(pool, SourcePool):  # one pass over the rows serves all of them
            pool.map(lambda gram: None, ladder, self._map)
        found = pool.map(lambda gram: values_of(gram, statistics), kernels, self._map)
        found += (
            pool.map(lambda gram: values_of(gram, [MMD()]), distances, self._map)
            if distances
            else []
        )
        resolved, values, scales, null_moments = zip(*found, strict=True)
        candidates = _candidates([*kernels, *distances], resolved)
        families = _families([each for (each,), _ in candidates])
        table = PermutationTable(
            np.concatenate(values),
            np.concatenate(scales),
            NullMoments.concatenate(null_moments),
            families,
        )
        return table, labels, candidates

    def _distances(self, rows: Array) -> list[Kernel]:
        """Return what the default has beside kernels: distances of the rows, and of their ranks in each column.

        Not where kernels or statistics are given, nor with early stopping, where the ranks that combine families would
        change with every permutation that is drawn.
        """
        is_default = (
            isinstance(self.statistics, Sequence) and tuple(self.statistics) == DEFAULT_STATISTICS
        )
        if self.kernel is not None or not is_default or self.early_stopping is not None:
            return []
        return [Distance(ranks).resolve(rows) for ranks in (False, True)]

    def _sequential_table(
        self, pool: Pool, ladder: list[Kernel], statistics: list[Statistic], draw: DrawLabels
    ) -> Drawn:
        """Return the values of as many permutations as it takes, the labels of some others, and the statistics."""
        grams = pool.map(lambda each: (each, each.resolve(statistics)), ladder, self._map)
        candidates = _candidates(ladder, [resolved for _, resolved in grams])

        def values_of(labels: Array) -> Array:
            return np.concatenate(
                self._map(lambda each: each[0].statistics(each[1], labels)[0], grams, len(labels))
            )

        null_moments = NullMoments.concatenate(
            [gram.null_moments(resolved, pool.observed[:, None]) for gram, resolved in grams]
        )
        assert self.early_stopping is not None
        return *permute_sequentially(
            values_of, null_moments, draw, self.early_stopping, self.n_permutations
        ), candidates

    def _check(self) -> list[Statistic]:
        """Raise ValueError for invalid parameters; return the statistics."""
        for name, least in (("bins", 4), ("block_length", 1), ("early_stopping", 1)):
            if getattr(self, name) is not None:
                whole_number(self, name, getattr(self, name), least)
        check_flag(self, "distinct", self.distinct)
        if self.distinct and self.block_length not in (None, 1):
            needed, advice = (
                "distinct must be False with block_length",
                "drop copies before, or leave out one of both",
            )
            raise MuhatError("TwoSampleTest", needed, "True", advice)
        return super()._check()

    def _names(self, names: Sequence[str] | None, X: Any, Y: Any) -> tuple[str, str]:
        """Return what the samples are called: as given, or as the files that they were read from."""
        if names is not None:
            if isinstance(names, str) or len(names) != 2:
                raise MuhatError("TwoSampleTest", "names must be two strings", repr(names))
            return str(names[0]), str(names[1])
        known = [each.name if isinstance(each, DataSet | FileBatches) else None for each in (X, Y)]
        if None in known or known[0] == known[1]:
            return DEFAULT_NAMES
        return str(known[0]), str(known[1])

    def _gram(self, kernels: list[Kernel], statistics: list[Statistic]) -> str | Approximation:
        """Return how the Gram matrix is to be held, or refuse a way that does not give the statistics."""
        gram = as_gram(self.gram)
        other = next((each for each in statistics if type(each) is not MMD), None)
        if gram == "blocks" and other is not None:
            needed, advice = (
                "statistics must be 'mmd' with gram='blocks'",
                "use gram='dense' or 'nystrom' for others",
            )
            raise MuhatError("TwoSampleTest", needed, type(other).__name__, advice)
        if isinstance(gram, Approximation):
            for kernel in kernels:
                gram.check(kernel)
        return gram

    def _samples(self, X: Any, Y: Any, gram: str | Approximation) -> tuple[TestSample, TestSample]:
        """Return both samples, or refuse them in one sentence."""
        size = max(
            MAX_SINGLE_ROWS, gram.rows_to_learn_from if isinstance(gram, Approximation) else 0
        )
        sources = [self._source(name, given) for name, given in (("X", X), ("Y", Y))]
        (_, first), (_, second) = sources
        if first and second and first != second:
            sources[1] = in_order_of(first, second, sources[1][0])
        x, y = (
            TestSample.from_source(*source, size=size, random_state=number)
            for number, source in enumerate(sources)
        )
        columns = [each.drawn.rows.shape[1] for each in (x, y)]
        if columns[0] != columns[1]:
            got = f"{columns[0]} and {columns[1]} columns"
            raise MuhatError("TwoSampleTest", "X and Y must have the same columns", got)
        return x, y

    def _without_copies(
        self,
        x: TestSample,
        y: TestSample,
        statistics: Sequence[Statistic],
        rng: np.random.Generator,
    ) -> tuple[TestSample, TestSample, bool]:
        """Return both samples without copies; as they are, and True, where too few rows would be left to compare."""
        if x.rows is None or y.rows is None:
            needed, advice = (
                f"rows in memory are needed with {option('distinct')}",
                "give arrays, or drop copies before",
            )
            raise MuhatError("TwoSampleTest", needed, f"{max(x.n, y.n)} rows in batches", advice)
        kept = distinct_rows(x.rows, y.rows, rng)
        n, m = map(len, kept)
        if min(n, m) < (2 if _are_unbiased(statistics) else 1) or n + m < 3:
            return x, y, True
        return x.only(kept[0], x.drawn.size), y.only(kept[1], y.drawn.size), False

    def _source(self, name: str, X: Any) -> tuple[Source, tuple[str, ...] | None]:
        """Return rows in memory, batches, files or dask as a source, with the names of the columns."""
        found = as_named_source(f"TwoSampleTest: {name}", X)
        if found is not None:
            source, columns = found
            return source, None if columns is None else checked_names(
                "TwoSampleTest", name, columns
            )
        rows, names = self._sample(name, X, least=1)
        return ArraySource(rows), names

    def _check_sizes(self, x: TestSample, y: TestSample, statistics: Sequence[Statistic]) -> None:
        """Refuse samples that are too small for any permutation to differ, or for a U-statistic."""
        unbiased = _are_unbiased(statistics)
        for name, each in (("X", x), ("Y", y)):
            if each.n < 2 and (unbiased or x.n + y.n < 3):
                needed = (
                    f"{name} must have at least 2 rows" + ", as a statistic is unbiased" * unbiased
                )
                raise MuhatError("TwoSampleTest", needed, "1 row")

    def _moments(self, x: TestSample, y: TestSample) -> ColumnMoments | None:
        """Return the moments of both samples together, if columns are to be standardized."""
        if not self.standardize or x.moments is None or y.moments is None:
            return None
        return x.moments + y.moments

    def _pool(
        self,
        x: TestSample,
        y: TestSample,
        gram: str | Approximation,
        rng: np.random.Generator,
        for_mmd: bool,
    ) -> Pool:
        """Return the pool of both samples: held where the rows are few or all pairs are needed, else summed up."""
        held = x.n + y.n <= MAX_SINGLE_ROWS or gram in ("dense", "blocks") or x.moments is None
        if gram == "auto":
            gram = "dense" if x.n + y.n <= MAX_ROWS_DENSE else Nystrom(N_LANDMARKS)
        one_by_one = 0 if gram == "blocks" else MAX_SINGLE_ROWS
        units = PermutationUnits.choose(
            x.n, y.n, bins=self.bins, block=self.block_length, one_by_one=one_by_one
        )
        if not held:
            assert isinstance(gram, Approximation)
            return SourcePool.from_samples(x, y, gram, units, rng)
        if x.rows is None or y.rows is None:
            needed, advice = (
                f"rows in memory are needed for gram={gram!r}",
                "use gram='nystrom', or give arrays",
            )
            raise MuhatError("TwoSampleTest", needed, f"{max(x.n, y.n)} rows in batches", advice)
        return MemoryPool.from_rows(x.rows, y.rows, gram, units, rng, for_mmd)


DrawLabels = Callable[[int], Array]
"""From a number of permutations to columns of labels, the first as observed."""

Drawn = tuple[PermutationTable, Array, Candidates]


def _families(kernels: list[Kernel]) -> tuple[Family, ...]:
    """Return the families of the statistics of some kernels: one for all kernels but distances, which have their own.

    Effect size and witness are those of a kernel, whose units do not depend on the data's.
    """
    distances = [number for number, kernel in enumerate(kernels) if isinstance(kernel, Distance)]
    if not distances:
        return ()
    others = [Family(DISTANCE_WEIGHT, np.array([number]), explains=False) for number in distances]
    return Family(KERNEL_WEIGHT, np.setdiff1d(np.arange(len(kernels)), distances)), *others


def _candidates(ladder: Sequence[Kernel], resolved: Sequence[list[Statistic]]) -> Candidates:
    """Return all statistics, or refuse kernels that give none."""
    found: Candidates = [
        ((kernel,), (each,)) for kernel, some in zip(ladder, resolved, strict=True) for each in some
    ]
    if not found:
        got, advice = "the same value k(x, y) for all pairs", "take another kernel or bandwidth"
        raise MuhatError("TwoSampleTest", "a kernel that tells rows apart is needed", got, advice)
    return found


def in_order_of(
    first: tuple[str, ...], second: tuple[str, ...], source: Source
) -> tuple[Source, tuple[str, ...] | None]:
    """Return a source with its columns in the order of the first sample's, or refuse other columns by name."""
    missing = [name for name in first if name not in second]
    more = [name for name in second if name not in first]
    if missing or more:
        whose, other = ("X", "Y") if missing else ("Y", "X")
        needed = "X and Y must have the same columns"
        got = f"{(missing or more)[0]!r} in {whose} but not in {other}"
        raise MuhatError("TwoSampleTest", needed, got, "select columns that both have")
    order = [second.index(name) for name in first]
    if isinstance(source, ArraySource):
        return replace(source, X=np.ascontiguousarray(source.X[:, order])), first
    return TransformedSource(source, partial(_columns_in_order, order=order)), first


def _columns_in_order(X: Array, order: list[int]) -> Array:
    return np.ascontiguousarray(X[:, order])


def _column_names(x: TestSample, y: TestSample) -> tuple[str, ...]:
    """Return the names of the columns, by default their numbers; none where there are no columns."""
    if x.moments is None:
        return ()
    return x.names or y.names or tuple(f"column {number}" for number in range(len(x.moments.mean)))


def _are_unbiased(statistics: Sequence[Statistic]) -> bool:
    """Whether any statistic needs pairs of different rows in each sample."""
    return any(each.unbiased for each in statistics)


def _are_equal(x: TestSample, y: TestSample) -> bool:
    """Whether all rows of both samples are equal."""
    if x.moments is None or y.moments is None:
        return False
    both = x.moments + y.moments
    return np.array_equal(both.low, both.high)


def warn_of_constant_columns(x: TestSample, y: TestSample) -> None:
    """Warn of columns that have one value in both samples, unless all have."""
    if x.moments is None or y.moments is None:
        return
    both = x.moments + y.moments
    constant = np.flatnonzero(both.low == both.high)
    if 0 < len(constant) < len(both.low):
        names = _column_names(x, y)
        listed = ", ".join(repr(names[place]) for place in constant[:3]) + ", …" * (
            len(constant) > 3
        )
        which = f"column {listed} has" if len(constant) == 1 else f"columns {listed} have each"
        warn(
            f"{which} only one value in both samples, and cannot show a difference.",
            ConstantColumns,
            stacklevel=3,
        )


class ConstantColumns(UserWarning):
    """Columns with one value in both samples."""


def _copies(x: TestSample, y: TestSample) -> dict[str, Any]:
    """Return how many rows are copies of others, and whether both samples are the same rows."""
    if x.counts is None or y.counts is None:
        return {}
    return {
        "n_copies": x.counts.n_copies + y.counts.n_copies,
        "n_shared": y.counts.n_shared(x.counts),
        "has_same_rows": x.counts.is_same(y.counts),
        "is_constant": _are_equal(x, y),
    }


def _least_p_value(units: PermutationUnits, n_permutations: int) -> float:
    """Return the least p-value that data of this size can give.

    Where all relabelings are taken, one that swaps two samples of one size has the statistics of that observed.
    """
    relabelings = comb(units.x + units.y, units.x)
    if relabelings > n_permutations + 1:
        return 1 / (n_permutations + 1)
    return (2 if units.x == units.y else 1) / relabelings


def _mmd_interval(gram: PooledGram, pool: Pool, kernel: Kernel) -> tuple[float, float]:
    """Return the interval of the distance; one unit in a sample says nothing about its spread: all that can be."""
    if min(pool.units.x, pool.units.y) > 1:
        return gram.mmd_interval(pool.observed)
    return 0.0, float(2 * np.sqrt(np.abs(kernel.diagonal(pool.rows)).max()))
