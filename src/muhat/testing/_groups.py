"""Do groups differ? k samples at once, with strata, clusters or pairs, and which of them differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from muhat._arrays import Array
from muhat._labels import labels_in_order
from muhat._validation import KERNEL_OF_ROWS_NEEDED, as_frame
from muhat.data import ColumnMoments, SampleBatch
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Gaussian, Kernel, Laplacian, Precomputed
from muhat.testing._base import DEFAULT_STATISTICS, PermutationTest, spectral_gram
from muhat.testing._copies import RowCounts, are_copied_whole, are_ties, rows_recur
from muhat.testing._designs import Codes, GroupDesign, encode, repeated_rows
from muhat.testing._distances import Distance
from muhat.testing._group_columns import ColumnDifferences, column_differences, shares_of_ones
from muhat.testing._group_pairs import (
    PairChunk,
    PairFactor,
    chunks_of_pairs,
    corrected_over_pairs,
    multipliers,
    n_last_look,
    p_values_of_pairs,
)
from muhat.testing._group_pictures import GroupPictures, column_quantiles
from muhat.testing._group_results import GroupDifference, GroupResult, PairDifference
from muhat.testing._group_statistics import (
    GroupDistances,
    GroupSpectrum,
)
from muhat.testing._group_steps import GroupSteps, PermutedGroups, step_down
from muhat.testing._ladder import as_kernels, check_distances, kernels_at_bandwidths
from muhat.testing._results import result_fields
from muhat.testing._row_order import RowOrder
from muhat.testing._statistics import MMD, Filtered, Spectral, Statistic
from muhat.testing._tolerance import (
    HALVES,
    Tolerance,
    ToleranceTest,
    check_tolerance,
    equivalent_shift,
)

MAX_ROWS_DENSE = 500
"""Rows up to which ``gram="auto"`` decomposes whole Gram matrices."""

N_LANDMARKS = 200
"""Landmarks that stand for more rows than that."""

N_BANDWIDTHS = {Gaussian: 6, Laplacian: 3}
"""Default number of bandwidths of the default kernels: fewer than for two samples, as every
permutation takes sums over all groups."""

SHARES = (1e-1, 1e-2, 1e-3)
"""Default λ of filters, as shares of the largest eigenvalue."""

MAX_GROUPS_FOR_PAIRS = 50
"""Groups up to which all pairs are compared."""

PAIR_STATISTICS = (MMD(), Spectral("tsvd", shares=SHARES))
"""Default statistics of pairs; of the default kernels, pairs take every second bandwidth. They are
fewer than for all groups, as small corrected p-values of many pairs take many relabelings."""


class GroupTest(PermutationTest):
    """Test whether k groups come from one distribution, and which of them differ.

    All rows are pooled. Bandwidths and Gram matrices come from the pooled rows without labels, and
    labels are permuted as the design allows. All statistics are combined into one exact p-value, as
    in `TwoSampleTest`. The same permutations give a p-value for each group against the rest: all
    other groups except those that differ even more. It is corrected for the number of groups. For
    each pair, only the labels of these two groups are permuted: its p-value is valid whatever the
    other groups are, and is corrected for the number of pairs.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        The kernels; by default Gaussian and Laplacian.
    bandwidths : int, 'median' or list of float, default=None
        The bandwidths of kernels without a given one: their number (default: 6 for the Gaussian
        kernel, 3 for others; spread over the distances between rows), 'median', or a list.
    statistics : str, Statistic or list of these, default=('mmd', 'spectral', 'kernel-fisher')
        As in `TwoSampleTest`; λ is 0.1, 0.01 and 0.001 of the largest eigenvalue.
    gram : {'auto', 'dense', 'nystrom', 'random-features'} or Approximation, default='auto'
        How Gram matrices are stored. 'auto' is 'dense' up to 500 rows, and uses 200 landmarks
        beyond. The level of the test does not depend on it.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1, over all groups together.
    tolerance : float or 'halves', default=None
        A distance δ (MMD) up to which groups count as equal. Every group then also has an
        approximate p-value for a distance above δ from the rest. 'halves' takes the distance
        between the first halves of all groups together and their second halves together, with rows
        in the given order. Distances are measured with the Gaussian kernel at the median bandwidth
        of all rows, or with ``kernel`` if you give one kernel.
    n_permutations : int, default=999
        Number of random permutations. If there are no more relabelings, all are enumerated.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the permutations.
    n_jobs : int, default=None
        Number of cores; all if not given or −1.

    See Also
    --------
    TwoSampleTest : Two samples.
    KernelMeans : What each group looks like.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupTest
    >>> rng = np.random.default_rng(0)
    >>> shops = np.repeat(["north", "south", "east", "west"], 30)
    >>> X = rng.normal(size=(120, 2)) + 1.5 * (shops == "south")[:, None]
    >>> result = GroupTest().test(X, shops)
    >>> result.p_value
    0.001
    >>> print(result.groups[0].group, result.groups[0].p_value)
    south 0.001
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        bandwidths: Any = None,
        statistics: Any = DEFAULT_STATISTICS,
        gram: Any = "auto",
        standardize: bool = True,
        tolerance: Any = None,
        n_permutations: int = 999,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidths = bandwidths
        self.statistics = statistics
        self.gram = gram
        self.standardize = standardize
        self.tolerance = tolerance
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(
        self, X: Any, groups: Any, *, strata: Any = None, clusters: Any = None, pairs: Any = None
    ) -> GroupResult:
        """Test whether the groups of rows come from one distribution.

        Parameters
        ----------
        X : array, data frame or list, of shape (n, d)
            The rows of all groups; one dimension is one column.
        groups : array, list or Series of length n, or the name of a column of X
            The group of every row: text, numbers or anything that can be compared.
        strata : like ``groups``, default=None
            Strata, such as sites, days or batches, that may differ whatever the group. Labels are
            permuted only within strata.
        clusters : like ``groups``, default=None
            Units with several rows, such as patients with repeated measurements, each in one group.
            Whole units are permuted, not rows.
        pairs : like ``groups``, default=None
            Units with rows in several groups, such as patients before and after, or plots with all
            treatments. Labels are permuted only within units. If a unit has several rows in a
            group, these rows are kept together.

        Returns
        -------
        result : GroupResult
            The p-value, each group against the rest, all pairs, columns, and ``verdict()``.
        """
        statistics = self._check()
        rng = self._rng()
        X, given = _split_columns(X, groups=groups, strata=strata, clusters=clusters, pairs=pairs)
        rows, names = self._sample("X", X)
        names = names or tuple(f"column {number}" for number in range(rows.shape[1]))
        codes = _encoded(given, len(rows))
        design = GroupDesign.from_labels(
            codes["groups"], codes.get("strata"), codes.get("clusters"), codes.get("pairs"), rng
        )
        scaled = self._scaled(rows)
        permuted = self._permuted(scaled[design.rows], statistics, design, rng)
        stepped = self._step_down(statistics, permuted, rng)
        columns = column_differences(permuted.X, design, permuted.sums, names, stepped.steps)
        found = _Found(
            permuted.features,
            GroupDistances.from_features(permuted.features, design, stepped.steps),
            stepped.p_values,
            stepped.steps,
            self._pair_p_values(permuted, statistics, rng),
        )
        if self.tolerance is not None:
            found = self._with_tolerance(found, scaled, permuted, "pairs" in codes, rng)
        group_of_row = codes["groups"].codes
        quantiles = column_quantiles(rows, group_of_row, names, columns.features, design.n_groups)
        return GroupResult(
            **result_fields(permuted.table, permuted.candidates),
            **_design_fields(codes, design),
            n=len(rows),
            groups=_group_differences(found, design, rows, group_of_row, columns, names),
            pairs=_pair_differences(found, design),
            features=columns.features,
            least_p_value=design.least_p_value(self.n_permutations),
            is_complete=design.is_enumerable(self.n_permutations),
            row_order=_row_order(rows, codes, names),
            n_copies=_n_copies(rows, codes),
            tolerance=found.tolerance,
            pictures=GroupPictures.from_features(
                found.features, design, found.distances.between, quantiles
            ),
        )

    def _check(self) -> list[Statistic]:
        """Raise MuhatError for invalid parameters; return the statistics."""
        statistics = super()._check()
        check_tolerance("GroupTest", self.tolerance)
        for place, each in enumerate(statistics):
            if each.unbiased:
                needed = "statistics must not be unbiased"
                raise MuhatError("GroupTest", needed, "unbiased=True", "leave it out")
            if isinstance(each, Filtered) and each.shares is None and each.parameter is None:
                statistics[place] = replace(each, shares=SHARES)
        return statistics

    def _scaled(self, rows: Array) -> Array:
        """Return all rows, standardized over all groups if that is asked for."""
        if self.standardize:
            return ColumnMoments.from_batch(SampleBatch(rows, 0)).standardized(rows)
        check_distances("GroupTest", rows)
        return rows

    def _kernels(self, learn: Array) -> list[Kernel]:
        """Return the kernels at every bandwidth; by default also distances."""
        kernels = as_kernels(self.kernel)
        if any(isinstance(each, Precomputed) for each in kernels):
            needed, advice = KERNEL_OF_ROWS_NEEDED, "pass the rows and a kernel such as 'gaussian'"
            raise MuhatError("GroupTest", needed, "a precomputed one", advice)
        found: list[Kernel] = []
        for kernel in kernels:
            steps = self.bandwidths
            if steps is None:
                kind: Any = type(kernel)
                steps = N_BANDWIDTHS.get(kind, N_BANDWIDTHS[Laplacian])
            found += kernels_at_bandwidths([kernel], steps, learn)
        if self.kernel is None and self.statistics == DEFAULT_STATISTICS:
            found.append(Distance().resolve(learn))
            found.append(Distance(ranks=True).resolve(learn))
        return found

    def _gram(self, n: int) -> str | Approximation:
        """Return how Gram matrices of n rows are held, "auto" decided."""
        gram = spectral_gram(self, self.gram, as_kernels(self.kernel))
        if gram == "auto":
            return "dense" if n <= MAX_ROWS_DENSE else Nystrom(N_LANDMARKS)
        return gram

    def _permuted(
        self,
        X: Array,
        statistics: list[Statistic],
        design: GroupDesign,
        rng: np.random.Generator,
    ) -> PermutedGroups:
        """Return all statistics of all kernels for every relabeling."""
        # What is learnt from some rows only is learnt from random ones, whatever their labels.
        learn = X[rng.permutation(len(X))]
        kernels = self._kernels(learn)
        gram = self._gram(len(X))
        labels = design.relabelings(self.n_permutations, rng)
        if not np.ptp(X, axis=0).any():
            return PermutedGroups.of_equal_rows(kernels[0], X, design, labels)

        def spectrum_of(kernel: Kernel) -> GroupSpectrum:
            return GroupSpectrum.from_rows(kernel, X, gram, learn, design)

        return PermutedGroups.from_kernels(
            kernels, spectrum_of, statistics, X, design, labels, self._map
        )

    def _step_down(
        self, statistics: list[Statistic], permuted: PermutedGroups, rng: np.random.Generator
    ) -> GroupSteps:
        """Return p-values of each group against the rest, and at which step each is taken out."""

        def without(found: PermutedGroups, stays: Array) -> PermutedGroups | None:
            design = found.design.of_groups(stays)
            if not design.is_permutable:
                return None
            labels = design.relabelings(self.n_permutations, rng)
            return found.of_groups(stays, statistics, labels, self._map)

        return step_down(permuted, without)

    def _with_tolerance(
        self,
        found: _Found,
        X: Array,
        permuted: PermutedGroups,
        has_pairs: bool,
        rng: np.random.Generator,
    ) -> _Found:
        """Return what was found with distances in one kernel, and p-values for more than δ."""
        design = permuted.design
        learn = X[rng.permutation(design.rows)]
        kernel = self._tolerance_kernel(learn)
        allowed = ToleranceTest.nothing_to_compare(design, self.tolerance)
        if permuted.spectra:
            allowed = ToleranceTest.from_rows(
                X,
                design,
                kernel,
                self._gram(len(design.rows)),
                learn,
                self.tolerance,
                n_draws=self.n_permutations,
                rng=rng,
                has_pairs=has_pairs,
                steps=found.steps,
            )
        # More than δ is not found where no difference is.
        p_values = np.maximum(allowed.p_values, found.p_of_groups)
        p_values = np.maximum(p_values, permuted.table.p_value)
        tolerance = Tolerance(
            allowed.delta,
            self.tolerance == HALVES,
            equivalent_shift(kernel, learn, allowed.delta),
            kernel,
            float(allowed.distances.from_rest.max()),
            float(p_values.min()),
        )
        return replace(
            found,
            features=allowed.features,
            distances=allowed.distances,
            p_of_tolerance=p_values,
            tolerance=tolerance,
        )

    def _tolerance_kernel(self, learn: Array) -> Kernel:
        """Return the kernel in which a tolerance is measured, its bandwidth a number."""
        kernels = as_kernels(self.kernel)
        kernel = kernels[0]
        if self.kernel is None or len(kernels) > 1:
            kernel = Gaussian()
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # most rows are equal: result.tolerance.kernel
            return kernel.resolve(learn)

    def _pair_p_values(
        self, permuted: PermutedGroups, statistics: list[Statistic], rng: np.random.Generator
    ) -> Array:
        """Return the p-values of all pairs, in the order of combinations; none beyond 50 groups.

        The p-value of two groups is that of all groups. Pairs that no stratum has both groups of
        cannot be compared, and have a p-value of 1.
        """
        design = permuted.design
        if design.n_groups > MAX_GROUPS_FOR_PAIRS:
            return np.ones(0)
        pairs = np.column_stack(np.triu_indices(design.n_groups, 1))
        p_values = np.ones(len(pairs))
        p_of_all = permuted.table.p_value
        if len(pairs) == 1:
            p_values[0] = p_of_all
        elif permuted.spectra:
            factors = self._pair_factors(permuted.spectra, statistics)
            chunks = chunks_of_pairs(design, pairs, rng)
            compared = np.concatenate([each.pairs for each in chunks])
            steps = multipliers(design, len(compared))
            n_last = n_last_look(steps, self.n_permutations)

            def of_chunk(chunk: PairChunk) -> Array:
                return p_values_of_pairs(chunk, factors, design, n_last)

            found = self._map(of_chunk, chunks, len(design.rows))
            corrected = corrected_over_pairs(np.concatenate(found), steps, p_of_all)
            T = design.n_groups
            places = np.searchsorted(pairs @ [T, 1], compared @ [T, 1])
            p_values[places] = corrected
        return p_values

    def _pair_factors(
        self, spectra: list[tuple[Kernel, GroupSpectrum]], statistics: list[Statistic]
    ) -> list[PairFactor]:
        """Return what pairs are compared by: what was asked for, or less than for all groups."""
        factors = []
        is_default = self.kernel is None and self.statistics == DEFAULT_STATISTICS
        for place, (kernel, spectrum) in enumerate(spectra):
            own: list[Statistic] = statistics
            if isinstance(kernel, Distance):
                own = [MMD()]
            elif is_default:
                if place % 2:
                    continue
                own = list(PAIR_STATISTICS)
            H = spectrum.weights(spectrum.resolve(own))
            if len(H):
                factors.append(PairFactor(spectrum, H))
        return factors


def _encoded(given: dict[str, Any], n: int) -> dict[str, Codes]:
    """Return groups and columns of the design as whole numbers, for n rows.

    Rows of one unit of ``pairs`` in one group are a cluster, unless clusters are given.
    """
    codes = {what: encode(what, values, n) for what, values in given.items()}
    if "pairs" in codes and "clusters" not in codes:
        together = repeated_rows(codes["pairs"], codes["groups"])
        if together is not None:
            codes["clusters"] = together
    return codes


def _design_fields(codes: dict[str, Codes], design: GroupDesign) -> dict[str, Any]:
    """Return the fields of a result that say what was permuted within what."""
    rows_together = 1
    if design.are_bins:
        rows_together = int(design.sizes[0])
    n_clusters = None
    if "clusters" in codes:
        n_clusters = len(design.labels)
    return {
        "title": codes["groups"].title,
        "order": _order_of(codes["groups"]),
        "strata": _title_of(codes, "strata"),
        "pairs_by": _title_of(codes, "pairs"),
        "n_clusters": n_clusters,
        "clusters_by": _title_of(codes, "clusters"),
        "rows_together": rows_together,
        "left_out": design.left_out,
    }


def _order_of(groups: Codes) -> tuple[str, ...]:
    """Return the labels of groups: numbers as they rise, others as they appear."""
    first_rows = np.unique(groups.codes, return_index=True)[1]
    names = [str(groups.names[place]) for place in np.argsort(first_rows).tolist()]
    return tuple(labels_in_order(names))


def _title_of(codes: dict[str, Codes], what: str) -> str | None:
    """Return the name of a column of the design, "" if it has none; None without the column."""
    if what not in codes:
        return None
    return codes[what].title or ""


def _n_copies(rows: Array, codes: dict[str, Codes]) -> int:
    """Return how many rows equal an earlier one of their group.

    It is 0 with units of several rows, and where equal rows are ties of values that recur.
    """
    if "clusters" in codes or "pairs" in codes:
        return 0
    group = codes["groups"].codes
    n_copies = RowCounts.from_batch(SampleBatch(np.column_stack([rows, group]), 0)).n_copies
    if n_copies == 0 or are_ties([rows[group == each] for each in np.unique(group)]):
        return 0
    if rows_recur(n_copies, len(rows)) and not are_copied_whole(rows):
        return 0
    return n_copies


def _row_order(rows: Array, codes: dict[str, Codes], names: tuple[str, ...]) -> RowOrder | None:
    """Return in which column neighbouring rows of a group, and of a stratum, are alike.

    Rows of the same cluster or pair may be alike.
    """
    if "clusters" in codes or "pairs" in codes:
        return None
    by = [each.codes for each in codes.values()]
    cell = np.unique(np.column_stack(by), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(cell, kind="stable")
    samples = np.split(rows[order], np.cumsum(np.bincount(cell))[:-1])
    return RowOrder.from_samples(samples, names)


@dataclass(frozen=True, eq=False)
class _Found:
    """Distances and p-values of groups against the rest, and of pairs."""

    features: Array
    """Of units, in the kernel that distances are measured in, shape (C, r)."""
    distances: GroupDistances
    p_of_groups: Array
    steps: Array
    """The step at which each group is taken out of the rest, shape (T,)."""
    p_of_pairs: Array
    p_of_tolerance: Array | None = None
    tolerance: Tolerance | None = None


def _group_differences(
    found: _Found,
    design: GroupDesign,
    rows: Array,
    group_of_row: Array,
    columns: ColumnDifferences,
    names: tuple[str, ...],
) -> tuple[GroupDifference, ...]:
    """Return every group against the rest, the smallest p-value first."""
    n_rows = np.bincount(group_of_row, minlength=design.n_groups)
    shares: list[tuple[float, float] | None] = [None] * design.n_groups
    if len(design.counts) == 1:
        shares = shares_of_ones(rows, group_of_row, columns.columns, found.steps)
    groups = []
    for t, label in enumerate(design.names):
        column = columns.columns[t]
        p_tolerance = None
        if found.p_of_tolerance is not None:
            p_tolerance = float(found.p_of_tolerance[t])
        groups.append(
            GroupDifference(
                label,
                int(n_rows[t]),
                int(n_rows[found.steps >= found.steps[t]].sum() - n_rows[t]),
                float(found.distances.from_rest[t]),
                float(found.p_of_groups[t]),
                names[column],
                float(columns.shifts[t, column]),
                float(columns.spreads[t, column]),
                shares[t],
                p_tolerance,
                bool(columns.is_limited[column]),
            )
        )
    return tuple(sorted(groups, key=_most_different_first))


def _pair_differences(found: _Found, design: GroupDesign) -> tuple[PairDifference, ...]:
    """Return all pairs, the smallest p-value first; none if they have no p-values."""
    between = found.distances.between
    differences = []
    pairs = combinations(range(design.n_groups), 2)
    for (t, u), p in zip(pairs, found.p_of_pairs.tolist(), strict=False):
        names = design.names[t], design.names[u]
        differences.append(PairDifference(*names, float(between[t, u]), p))
    return tuple(sorted(differences, key=_most_different_first))


def _most_different_first(each: GroupDifference | PairDifference) -> tuple[float, float]:
    return each.p_value, -np.nan_to_num(each.mmd)


def _split_columns(X: Any, **given: Any) -> tuple[Any, dict[str, Any]]:
    """Return X without the columns that groups and designs name, and the values of these."""
    X = as_frame(X)
    if given["groups"] is None:
        needed = "groups must have a label for each row"
        raise MuhatError("GroupTest", needed, "None", "give a label for each row of X")
    found = {}
    used = []
    for what, values in given.items():
        if values is None:
            continue
        if isinstance(values, str):
            names = [str(each) for each in getattr(X, "columns", ())]
            if values not in names:
                needed = f"{what}={values!r} must name a column of a data frame"
                got = f"columns {', '.join(names[:8])}" if names else f"a {type(X).__name__}"
                raise MuhatError("GroupTest", needed, got)
            used.append(values)
            values = X[values]
        found[what] = values
    if used:
        X = X[[each for each in X.columns if str(each) not in used]]
    return X, found
