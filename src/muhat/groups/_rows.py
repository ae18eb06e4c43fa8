"""Rows and the group that each is in: from arrays with labels, data frames, lists or mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from muhat._arrays import Array, as_array
from muhat._labels import distinct_labels
from muhat._validation import as_frame, check_range, checked_sample, checked_weights
from muhat.errors import MuhatError

MAX_COUNTS = 20_000
"""The sum up to which weights that are whole numbers are counts, and rows are repeated."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows, the group of each, and their weights.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows of all groups.
    labels : array of shape (T,)
        What the groups are called, sorted.
    codes : array of int of shape (n,)
        The place in ``labels`` of each row's group.
    masses : array of shape (n,)
        The weights of the rows, all positive; one without weights.
    clusters : array of int of shape (n,), default=None
        The cluster of each row, if rows of one cluster must share a fold.
    """

    X: Array
    labels: Array
    codes: Array
    masses: Array
    clusters: Array | None = None

    @property
    def counts(self) -> Array:
        """The number of rows of each group, of shape (T,)."""
        return np.bincount(self.codes, minlength=len(self.labels))

    def taken(self, places: Array) -> LabelledRows:
        """Return the rows at some places, which may repeat."""
        clusters = None
        if self.clusters is not None:
            clusters = self.clusters[places]
        return replace(
            self,
            X=self.X[places],
            codes=self.codes[places],
            masses=self.masses[places],
            clusters=clusters,
        )

    def samples(self) -> list[Array]:
        """Return the rows of each group."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(self.X[order], np.cumsum(self.counts)[:-1])

    def of_groups(self, kept: Array) -> LabelledRows:
        """Return the rows of the groups for which ``kept``, of shape (T,), is true."""
        places = np.cumsum(kept) - 1
        some = self.taken(np.flatnonzero(kept[self.codes]))
        return replace(some, labels=self.labels[kept], codes=places[some.codes])


def labelled_rows(
    estimator: Any, X: Any, groups: Any, sample_weight: Any, clusters: Any
) -> LabelledRows:
    """Return rows with their groups, validated, or raise one sentence that says what is wrong.

    X and ``groups`` are as `KernelMeans.fit` takes them.
    """
    who = type(estimator).__name__
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        if groups is None:
            groups = list(X)
        X = list(X.values())
    if is_list_of_samples(X, groups):
        rows, labels = _from_samples(estimator, X, groups)
        sample_weight = _joined(sample_weight)
        clusters = _joined(clusters)
    else:
        X, labels = split_labels(who, as_frame(X), groups)
        rows = checked_sample(estimator, X, reset=True)
    check_range(who, rows)
    names, codes = _distinct(who, labels, len(rows))
    found = LabelledRows(rows, names, codes, np.ones(len(rows)))
    if clusters is not None:
        found = replace(found, clusters=_distinct(who, clusters, len(rows), "clusters")[1])
    if sample_weight is not None:
        found = weighted(found, checked_weights(who, sample_weight, len(rows)))
    check_groups(who, found)
    return found


def is_list_of_samples(X: Any, groups: Any) -> bool:
    """Whether X is a list with a sample for each group, rather than a list of rows."""
    if not isinstance(X, list | tuple):
        return False
    if groups is None:
        return True
    return any(len(getattr(each, "shape", ())) == 2 for each in X)


def is_by_sample(X: Any, groups: Any) -> bool:
    """Whether X has one sample for each group, in a list or a mapping."""
    is_mapping = isinstance(X, Mapping) and not hasattr(X, "shape")
    return is_mapping or is_list_of_samples(X, groups)


def new_groups(estimator: Any, X: Any, groups: Any) -> LabelledRows:
    """Return the rows of new groups: in the order of a list or mapping, or of sorted labels."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        if groups is None:
            groups = list(X)
        X = list(X.values())
    if is_list_of_samples(X, groups):
        samples = checked_samples(estimator, X, reset=False)
        if groups is None:
            names = np.arange(len(samples))
        else:
            names = as_labels(groups)
        codes = np.repeat(np.arange(len(samples)), [len(each) for each in samples])
        rows = np.concatenate(samples)
        return LabelledRows(rows, names, codes, np.ones(len(rows)))
    who = type(estimator).__name__
    X, labels = split_labels(who, as_frame(X), groups)
    rows = checked_sample(estimator, X, reset=False)
    names, codes = _distinct(who, labels, len(rows))
    return LabelledRows(rows, names, codes, np.ones(len(rows)))


def checked_samples(estimator: Any, samples: Any, reset: bool) -> list[Array]:
    """Return samples as arrays of two dimensions; one of one dimension is one column."""
    who = type(estimator).__name__
    if not isinstance(samples, list | tuple):
        needed = "a list with one sample for each group is needed"
        raise MuhatError(who, needed, f"a {type(samples).__name__}")
    checked: list[Array] = []
    for place, sample in enumerate(samples):
        name = f"sample {place}"
        rows = sample
        if not hasattr(sample, "shape"):
            rows = as_array(sample)
        if not rows.shape or not rows.shape[0]:
            raise MuhatError(who, "every group must have at least one row", f"none in {name}")
        if len(rows.shape) == 1:
            rows = np.asarray(rows).reshape(-1, 1)
        is_first = reset and not checked
        checked.append(checked_sample(estimator, rows, reset=is_first, name=name))
    return checked


def _from_samples(estimator: Any, samples: Sequence[Any], groups: Any) -> tuple[Array, Array]:
    """Return the rows of a list of samples one below the other, and a label for each row."""
    who = type(estimator).__name__
    if groups is None:
        labels = np.arange(len(samples))
    else:
        labels = as_labels(groups)
    if len(labels) != len(samples):
        needed = f"groups must have one label for each of {len(samples)} samples"
        raise MuhatError(who, needed, f"{len(labels)} labels")
    if len(np.unique(labels.astype(str))) < len(labels):
        advice = "put all rows of a group into one sample"
        raise MuhatError(who, "all samples must have different labels", "equal labels", advice)
    _check_enough_groups(who, len(samples))
    checked = checked_samples(estimator, samples, reset=True)
    lengths = [len(each) for each in checked]
    return np.concatenate(checked), np.repeat(labels, lengths)


def split_labels(who: str, X: Any, groups: Any) -> tuple[Any, Array]:
    """Return rows without their labels, and a label for each; ``groups`` may name a column of X."""
    if groups is None:
        advice = "call fit(X, groups), or fit a list with one sample for each group"
        raise MuhatError(who, "a label for each row is needed", "groups=None", advice)
    if not isinstance(groups, str):
        return X, as_labels(groups)
    names = [str(name) for name in getattr(X, "columns", ())]
    if groups not in names:
        needed = f"groups={groups!r} must name a column of a data frame"
        if names:
            got = f"columns {', '.join(names[:8])}"
        else:
            got = f"a {type(X).__name__} without names"
        raise MuhatError(who, needed, got)
    others = [place for place, name in enumerate(names) if name != groups]
    labels = np.asarray(X[groups])
    if hasattr(X, "iloc"):
        return X.iloc[:, others], labels
    return X[[names[place] for place in others]], labels


def as_labels(values: Any) -> Array:
    """Return labels as an array of one dimension; tuples stay tuples."""
    labels = as_array(as_frame(values))
    if np.ma.is_masked(values):
        labels = labels.astype(object)
        labels[np.ma.getmaskarray(values)] = None
    if labels.ndim == 1:
        return labels
    if labels.ndim == 2 and labels.shape[1] == 1:
        return labels[:, 0]
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = tuple(value)
    return found


def _distinct(who: str, labels: Any, n: int, name: str = "groups") -> tuple[Array, Array]:
    """Return the labels that occur, sorted where they can be, and the place of each row's label."""
    return distinct_labels(check_labels(who, labels, n, name))


def check_labels(who: str, labels: Any, n: int | None, name: str = "groups") -> Array:
    """Return labels as an array; raise MuhatError unless there is one for each of n rows.

    None for n if their number is not known.
    """
    labels = as_labels(labels)
    if n is not None and len(labels) != n:
        raise MuhatError(who, f"{name} must have one label for each of {n} rows", len(labels))
    missing = np.flatnonzero(is_missing(labels))
    if missing.size:
        got = f"{missing.size} missing (first: {name}[{missing[0]}])"
        raise MuhatError(who, f"{name} must have a label for every row", got, "drop these rows")
    return labels


def is_missing(labels: Array) -> Array:
    """Return which labels are None, NaN, NaT or pandas' NA."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), bool)
    return np.array([_is_missing_label(label) for label in labels], bool)


def _is_missing_label(label: Any) -> bool:
    """Whether one label is missing."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float) and label != label


def _joined(values: Any) -> Any:
    """Return what was given for each sample of a list as one array, one value for each row."""
    if isinstance(values, list | tuple) and values and hasattr(values[0], "__len__"):
        return np.concatenate([np.asarray(each) for each in values])
    return values


def weighted(rows: LabelledRows, weights: Array) -> LabelledRows:
    """Return rows with weights: repeated where these are counts; without those of weight zero."""
    are_counts = np.array_equal(weights, np.floor(weights))
    if are_counts and weights.sum() <= max(MAX_COUNTS, len(weights)):
        return rows.taken(np.repeat(np.arange(len(weights)), weights.astype(np.intp)))
    return replace(rows, masses=weights / weights.max()).taken(np.flatnonzero(weights > 0))


def check_groups(who: str, rows: LabelledRows) -> None:
    """Raise MuhatError unless there are two groups, each with a row."""
    check_sizes(who, rows.labels, rows.counts)


def check_sizes(who: str, labels: Array, counts: Array) -> None:
    """Raise MuhatError unless there are two groups, and rows of each."""
    _check_enough_groups(who, len(labels))
    empty = labels[counts == 0]
    if len(empty):
        needed = "every group must have a row of positive weight"
        raise MuhatError(who, needed, f"none in {empty[0]!s}", "drop this group")


def _check_enough_groups(who: str, T: int) -> None:
    if T < 2:
        advice = "use KernelMean for one sample"
        raise MuhatError(who, "at least two groups are needed", T, advice)
