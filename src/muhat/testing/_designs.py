"""Designs of a test of groups: which units have labels, and which labels may be exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import exp, factorial, lgamma, log
from typing import Any

import numpy as np

from muhat._arrays import Array, quotient, slices
from muhat._labels import distinct_labels
from muhat._tolerances import TIE_TOLERANCE
from muhat._validation import as_frame
from muhat.errors import MuhatError

MAX_SINGLE_ROWS = 1000
"""Rows beyond which they are put into bins of equal size, drawn at random within each group."""

MIN_BINS, BINS_PER_GROUP = 500, 25
"""Bins of all groups, and on average of one group, if rows are put into bins."""

MIN_BINS_PER_GROUP = 5
"""The smallest group is left at least this many bins, if it has the rows."""

MAX_UNITS_HELD = 20_000
"""Units that are permuted at most; beyond that, each group keeps a random part of its units."""

MAX_RANDOM_HELD = 2**22
"""Random numbers that are held at a time (32 MB)."""

MAX_SIZES_P_VALUE, N_SIZE_RELABELINGS = 0.1, 199
"""Up to this p-value, from so many relabelings, numbers of rows of clusters go with the group."""

WHO = "GroupTest"
"""Who raises errors on designs."""


@dataclass(frozen=True, eq=False)
class Codes:
    """A value per row as numbers: groups, strata, clusters or pairs."""

    names: tuple[Any, ...]
    """The distinct values, sorted."""
    codes: Array
    """The place of every row's value among them, shape (n,)."""
    title: str | None = None
    """What the values are called: the name of their column."""


def encode(what: str, values: Any, n: int | None = None) -> Codes:
    """Return labels of rows as numbers; raise MuhatError unless each of n rows has one."""
    values = as_frame(values)
    title = getattr(values, "name", None)
    _check_categories(what, values)
    if hasattr(values, "to_list"):
        values = values.to_list()
    labels = values
    if not isinstance(values, np.ndarray):
        labels = _as_objects(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise MuhatError(WHO, f"{what} must have one dimension", f"shape {labels.shape}")
    if n is not None and len(labels) != n:
        raise MuhatError(WHO, f"{what} must have a label for each of {n} rows", len(labels))
    missing = np.flatnonzero([each is None or each != each for each in labels.tolist()])
    if missing.size:
        got = f"{missing.size} missing (first: row {missing[0]})"
        advice = "drop these rows, or give them another label"
        raise MuhatError(WHO, f"{what} must have a label for each row", got, advice)
    distinct, codes = distinct_labels(labels)
    return Codes(tuple(distinct.tolist()), codes, None if title is None else str(title))


def _as_objects(values: Any) -> Array:
    """Return a list as an array of objects, so that no number becomes text."""
    try:
        items = list(values)
    except TypeError:
        needed = "labels must be an array, a list or a column, one for each row"
        raise MuhatError(WHO, needed, f"a {type(values).__name__}") from None
    labels = np.empty(len(items), dtype=object)
    labels[:] = items
    return labels


def _check_categories(what: str, values: Any) -> None:
    """Raise MuhatError for a column of categories of which one has no rows."""
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is None or what != "groups":
        return
    present = set(values)
    empty = [each for each in categories if each not in present]
    if empty:
        advice = "use groups.cat.remove_unused_categories()"
        raise MuhatError(WHO, "every group must have rows", f"none of {empty[0]!r}", advice)


@dataclass(frozen=True, eq=False)
class GroupDesign:
    """Units of rows, the group of each, and the strata within which groups may be exchanged."""

    names: tuple[Any, ...]
    """Of the T groups."""
    rows: Array
    """The numbers of the rows that are used, shape (N,), those of a unit one after the other."""
    unit: Array
    """The unit of each of these rows, shape (N,), from 0 to C − 1."""
    labels: Array
    """The group of every unit, shape (C,)."""
    strata: Array
    """The stratum of every unit, shape (C,), ascending."""
    are_bins: bool = False
    """Whether units are bins of rows, drawn at random."""
    left_out: tuple[str, ...] = ()
    """Sentences on rows that are not used."""

    @classmethod
    def from_labels(
        cls,
        groups: Codes,
        strata: Codes | None,
        clusters: Codes | None,
        pairs: Codes | None,
        rng: np.random.Generator,
    ) -> GroupDesign:
        """Return the design of rows; raise MuhatError if it leaves nothing to permute."""
        n = len(groups.codes)
        if len(groups.names) < 2:
            raise MuhatError(WHO, "at least two groups are needed", f"one ({groups.names[0]!r})")
        stratum = _crossed([each.codes for each in (strata, pairs) if each is not None], n)
        if clusters is not None:
            _check_clusters(clusters, groups, stratum)
            unit, are_bins = clusters.codes, False
        else:
            unit, are_bins = _bins(groups.codes, stratum, rng)
        used = np.flatnonzero(unit >= 0)
        used = used[np.lexsort((unit[used], stratum[used]))]
        first, numbers = _first_of_units(unit[used])
        labels, of_unit = groups.codes[used][first], stratum[used][first]
        design = cls(groups.names, used, numbers, labels, of_unit, are_bins)
        design._check_permutable(strata, clusters, pairs)
        if clusters is not None and design._sizes_go_with_groups(rng):
            return design._with_equal_sizes(rng)
        return design

    def of_groups(self, stays: Array) -> GroupDesign:
        """Return the design of some groups, given by truth values, with the same units."""
        is_kept = stays[self.labels]
        used = is_kept[self.unit]
        return replace(
            self,
            names=tuple(name for name, kept in zip(self.names, stays, strict=True) if kept),
            rows=self.rows[used],
            unit=(np.cumsum(is_kept) - 1)[self.unit][used],
            labels=(np.cumsum(stays) - 1)[self.labels[is_kept]],
            strata=np.unique(self.strata[is_kept], return_inverse=True)[1],
        )

    def _sizes_go_with_groups(self, rng: np.random.Generator) -> bool:
        """Whether units of some groups have more rows, or more varied numbers of rows, than others.

        Then units cannot be exchanged: means of few rows vary more than means of many. As in
        Lepage's test, means of log sizes and of their distances from the median are compared.
        """
        if len(np.unique(self.sizes)) == 1:
            return False
        logs = np.log(self.sizes)
        medians = [np.median(some) for some in np.split(logs, self._ends_of_strata[:-1])]
        deviations = np.abs(logs - np.array(medians)[self.strata])
        labels = self.relabelings(N_SIZE_RELABELINGS, rng)
        values = self._between_groups(logs, labels) + self._between_groups(deviations, labels)
        p_value = (values >= values[0] * (1 - TIE_TOLERANCE) - TIE_TOLERANCE).mean()
        return bool(p_value <= MAX_SIZES_P_VALUE)

    def _between_groups(self, values: Array, labels: Array) -> Array:
        """Return the sum of squares between groups for every relabeling, over its mean.

        ``values`` are of units, shape (C,), and are centred within strata; labels are (B + 1, C).
        """
        means = np.bincount(self.strata, weights=values) / np.bincount(self.strata)
        cells = labels + self.n_groups * np.arange(len(labels))[:, None]
        weights = np.broadcast_to(values - means[self.strata], cells.shape).ravel()
        sums = np.bincount(cells.ravel(), weights=weights, minlength=cells.shape[0] * self.n_groups)
        squares = sums.reshape(len(labels), self.n_groups) ** 2
        found = (squares / self.counts.sum(axis=0)).sum(axis=1)
        return np.asarray(quotient(found, found.mean()))

    def _with_equal_sizes(self, rng: np.random.Generator) -> GroupDesign:
        """Return the design with as many random rows of each unit; smaller units are left out.

        If rows do not depend on the group, nor on how many rows their unit has, these units are
        exchangeable whatever their sizes were.
        """
        size = self._common_size()
        order = np.lexsort((rng.random(len(self.unit)), self.unit))
        starts = np.cumsum(self.sizes) - self.sizes
        place = np.arange(len(order)) - starts[self.unit].astype(np.int64)
        is_large = self.sizes >= size
        kept = np.sort(order[(place < size) & is_large[self.unit]])
        found = replace(
            self,
            rows=self.rows[kept],
            unit=(np.cumsum(is_large) - 1)[self.unit[kept]],
            labels=self.labels[is_large],
            strata=np.unique(self.strata[is_large], return_inverse=True)[1],
        )
        each = f"{size} random rows of each cluster are"
        if size == 1:
            each = "one random row of each cluster is"
        sentence = f"The size of clusters differs between groups, so only {each} compared"
        n_left_out = int((~is_large).sum())
        if n_left_out:
            sentence += f", and {n_left_out:,} smaller clusters are left out"
        return replace(found, left_out=(f"{sentence}.",))

    def _common_size(self) -> int:
        """Return to how many rows units are cut: as many as tell most.

        At an intraclass correlation of ½, a unit of m rows tells as much as 2m/(m + 1) rows. Every
        group keeps two units, or the one that it has.
        """
        best, most = int(self.sizes.min()), 0.0
        if len(self.counts) > 1:
            return best  # so that every stratum keeps its units
        n_units = self.counts.sum(axis=0)
        for size in np.unique(self.sizes).astype(int).tolist():
            is_large = self.sizes >= size
            left = np.bincount(self.labels[is_large], minlength=self.n_groups)
            told = is_large.sum() * size / (size + 1)
            if told > most and (left >= np.minimum(n_units, 2)).all():
                best, most = size, told
        return best

    def pair(self, first: int, second: int) -> GroupDesign:
        """Return the design of two groups, whose rows are the units of this one.

        Units are sorted by stratum and group, so that designs of equal counts have equal labels.
        """
        units = np.flatnonzero((self.labels == first) | (self.labels == second))
        is_second = self.labels[units] == second
        order = np.lexsort((is_second, self.strata[units]))
        units = units[order]
        return GroupDesign(
            names=(self.names[first], self.names[second]),
            rows=units,
            unit=np.arange(len(units)),
            labels=is_second[order].astype(np.int64),
            strata=np.unique(self.strata[units], return_inverse=True)[1],
        )

    @property
    def n_groups(self) -> int:
        """T."""
        return len(self.names)

    @cached_property
    def sizes(self) -> Array:
        """The rows of every unit, shape (C,)."""
        return np.bincount(self.unit, minlength=len(self.labels)).astype(np.float64)

    @property
    def _ends_of_strata(self) -> Array:
        """Behind the last unit of every stratum, shape (strata,)."""
        return np.cumsum(np.bincount(self.strata))

    @cached_property
    def row_strata(self) -> Array:
        """The stratum of every row that is used, shape (N,)."""
        return self.strata[self.unit]

    @cached_property
    def counts(self) -> Array:
        """How many units of every stratum are in every group, shape (strata, T)."""
        counts = np.zeros((self.strata.max() + 1, self.n_groups), dtype=np.int64)
        np.add.at(counts, (self.strata, self.labels), 1)
        return counts

    @cached_property
    def expected_rows(self) -> Array:
        """The mean number of rows of every group over relabelings, shape (T,).

        It does not depend on labels: the rows of groups do, if units differ in size.
        """
        rows, units = self.row_counts.sum(axis=1), self.counts.sum(axis=1)
        return np.asarray((rows[:, None] * self.counts / units[:, None]).sum(axis=0))

    @cached_property
    def row_counts(self) -> Array:
        """How many rows of every stratum are in every group, shape (strata, T)."""
        counts = np.zeros((self.strata.max() + 1, self.n_groups))
        np.add.at(counts, (self.strata, self.labels), self.sizes)
        return counts

    @cached_property
    def log_relabelings(self) -> float:
        """The logarithm of the number of relabelings: a multinomial for every stratum."""
        total = 0.0
        for row in self.counts:
            total += lgamma(row.sum() + 1) - sum(lgamma(each + 1) for each in row)
        return total

    @property
    def is_permutable(self) -> bool:
        """Whether some relabeling differs from the observed labels."""
        return self.log_relabelings > 1e-9

    def is_enumerable(self, n_permutations: int) -> bool:
        """Whether there are no more relabelings than permutations and the observed labels."""
        return self.log_relabelings <= log(n_permutations + 1) + 1e-9

    def least_p_value(self, n_permutations: int) -> float:
        """Return the least p-value that this design can give.

        Groups with as many units in every stratum can be swapped without changing a statistic.
        """
        if not self.is_enumerable(n_permutations):
            return 1 / (n_permutations + 1)
        swaps = 1
        if len(np.unique(self.sizes)) == 1:
            _, alike = np.unique(self.counts, axis=1, return_counts=True)
            for each in alike.tolist():
                swaps *= factorial(each)
        return min(1.0, swaps / round(exp(self.log_relabelings)))

    def relabelings(self, n_permutations: int, rng: np.random.Generator) -> Array:
        """Return labels of all units, shape (B + 1, C), row 0 as observed."""
        if self.is_enumerable(n_permutations):
            return self._all_relabelings()
        labels = np.empty((n_permutations + 1, len(self.labels)), dtype=self.labels.dtype)
        labels[0] = self.labels
        for some in slices(1, len(labels), max(1, MAX_RANDOM_HELD // len(self.labels))):
            # Units are sorted by stratum, so that sorting these keys shuffles within strata.
            keys = self.strata + rng.random((some.stop - some.start, len(self.labels)))
            labels[some] = self.labels[keys.argsort(axis=1)]
        return labels

    def _all_relabelings(self) -> Array:
        """Return every relabeling once, that observed first."""
        parts = [list(_arrangements(row)) for row in self.counts]
        found = [sum(parts, ()) for parts in product(*parts)]
        labels = np.array(found, dtype=self.labels.dtype)
        same = (labels == self.labels).all(axis=1).argmax()
        labels[[0, same]] = labels[[same, 0]]
        return labels

    def _check_permutable(
        self, strata: Codes | None, clusters: Codes | None, pairs: Codes | None
    ) -> None:
        """Raise MuhatError if no relabeling differs from the observed labels."""
        if self.counts.sum(axis=0).max() == 1:
            what = "row" if clusters is None else "cluster"
            needed = f"at least one group must have two or more {what}s"
            raise MuhatError(WHO, needed, f"{self.n_groups:,} groups with one {what} each")
        if self.is_permutable:
            return
        if strata is None and pairs is None:
            needed = "at least two clusters that can be exchanged are needed"
            raise MuhatError(WHO, needed, f"{len(self.labels)} units")
        what = "pairs"
        if pairs is None:
            what = "strata"
        needed = f"some {what} must have rows of two or more groups"
        got = f"one group in each of {len(self.counts):,} {what}"
        raise MuhatError(
            WHO, needed, got, f"leave out {what}, or give {what} that contain more groups"
        )


def _arrangements(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all different orders of labels, of which each is there as often as it counts."""
    left = list(counts)
    if not sum(left):
        yield ()
        return
    for label, count in enumerate(left):
        if not count:
            continue
        left[label] -= 1
        for rest in _arrangements(left):
            yield (label, *rest)
        left[label] += 1


def _crossed(codes: list[Array], n: int) -> Array:
    """Return one number for every combination of strata and pairs; 0 without any."""
    if not codes:
        return np.zeros(n, dtype=np.int64)
    _, crossed = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    return np.asarray(crossed).ravel()


def repeated_rows(pairs: Codes, groups: Codes) -> Codes | None:
    """Return clusters of the rows that a unit has in one group; None if no unit has several.

    Repeated measurements of a patient before and after depend on each other, so they have to change
    sides together.
    """
    codes = _crossed([pairs.codes, groups.codes], len(groups.codes))
    n_cells = int(codes.max()) + 1
    if n_cells == len(codes):
        return None
    return Codes(tuple(range(n_cells)), codes, "unit and group")


def _check_clusters(clusters: Codes, groups: Codes, stratum: Array) -> None:
    """Raise MuhatError if a cluster has rows of two groups, or of two strata."""
    for what, codes in (("group", groups.codes), ("stratum", stratum)):
        low = np.full(len(clusters.names), codes.max())
        high = np.zeros(len(clusters.names), dtype=codes.dtype)
        np.minimum.at(low, clusters.codes, codes)
        np.maximum.at(high, clusters.codes, codes)
        mixed = np.flatnonzero(low < high)
        if mixed.size:
            needed = f"all rows of a cluster must be in one {what}"
            got = f"two in cluster {clusters.names[mixed[0]]!r}"
            advice = ""
            if what == "group":
                advice = (
                    "pass units with rows in several groups as pairs; if numbers of units start "
                    "again in each group, make them different"
                )
            raise MuhatError(WHO, needed, got, advice)


def _bins(groups: Array, stratum: Array, rng: np.random.Generator) -> tuple[Array, bool]:
    """Return the unit of every row: the row itself, or a bin of rows; −1 for rows left out.

    Bins have one size and are filled at random within every group of every stratum. Under the null
    hypothesis they are exchangeable as rows are.
    """
    n = len(groups)
    _, cell, counts = np.unique(
        np.column_stack([stratum, groups]), axis=0, return_inverse=True, return_counts=True
    )
    n_bins = max(MIN_BINS, BINS_PER_GROUP * len(counts))
    size = max(1, min(n // n_bins, int(counts.min()) // MIN_BINS_PER_GROUP))
    if n <= MAX_SINGLE_ROWS or (size == 1 and n <= MAX_UNITS_HELD):
        return np.arange(n), False
    most = max(1, MAX_UNITS_HELD // len(counts))
    shuffled = rng.permutation(n)
    order = shuffled[np.argsort(np.asarray(cell).ravel()[shuffled], kind="stable")]
    unit = np.full(n, -1)
    start = number = 0
    for count in counts.tolist():
        n_units = min(count // size, most)
        kept = order[start : start + n_units * size]
        unit[kept] = number + np.arange(len(kept)) // size
        start, number = start + count, number + n_units
    return unit, size > 1


def _first_of_units(unit: Array) -> tuple[Array, Array]:
    """Return where each unit begins among rows sorted by it, and units numbered in that order."""
    is_first = np.ones(len(unit), dtype=bool)
    is_first[1:] = unit[1:] != unit[:-1]
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1
