"""Rows that come with their labels in batches, files and dask collections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._labels import distinct_labels
from muhat._validation import as_frame, checked_sample, checked_weights
from muhat.data import DaskSource, FileBatches, Source, StreamSource, checked_batch, is_empty
from muhat.errors import MuhatError
from muhat.groups._rows import as_labels, check_labels, split_labels

CODE, WEIGHT = "muhat: code", "muhat: weight"
"""Names of the two columns that are behind those of the rows."""


@dataclass(frozen=True, eq=False)
class LabelledSource:
    """Rows of many groups that can be read several times.

    Attributes
    ----------
    source : Source
        The rows, with two more columns: the weight of each, and the place of its label.
    labels : array of shape (T,)
        What the groups are called, sorted.
    """

    source: Source
    labels: Array


def labelled_batches(estimator: Any, batches: Any, groups: Any) -> LabelledSource:
    """Return rows and labels that come in batches, after a pass that finds the labels.

    The columns of the first batch are learnt by the estimator.

    Parameters
    ----------
    batches : iterable
        Of pairs (rows, labels), of triples with weights, or of tables with a column of labels; or
        what `open_batches` returns.
    groups : str or None
        The name of the column with the labels.
    """
    who = f"{type(estimator).__name__}.fit_batches"
    is_one = hasattr(batches, "shape") or isinstance(batches, str | PathLike)
    if is_one or not isinstance(batches, Iterable):
        needed = "batches must be an iterable of (rows, labels), or of tables with groups='column'"
        advice = "use fit for an array, and muhat.open_batches for a path"
        raise MuhatError(who, needed, f"a {type(batches).__name__}", advice)
    if isinstance(batches, Iterator):
        needed = "batches that can be iterated more than once are needed"
        advice = "give a list, or the output of open_batches"
        raise MuhatError(who, needed, f"a {type(batches).__name__}", advice)
    read = LabelledBatches(who, batches, groups)
    labels: set[Any] = set()
    for number, batch in enumerate(read.batches()):
        if not number:
            checked_batch(batch.X, 0)
            checked_sample(estimator, batch.X, reset=True)
        labels.update(batch.labels.tolist())
    if not labels:
        raise MuhatError(who, "at least one batch is needed", "no batch with rows")
    sorted_labels = _sorted(list(labels))
    return LabelledSource(StreamSource(CodedBatches(read, sorted_labels)), sorted_labels)


def _sorted(labels: list[Any]) -> Array:
    """Return distinct labels, sorted, in an array of their type or, if they differ, of objects."""
    if len({type(label) for label in labels}) == 1:
        return distinct_labels(as_labels(labels))[0]
    mixed = np.empty(len(labels), dtype=object)
    mixed[:] = labels
    return distinct_labels(mixed)[0]


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Some rows as they came, with their labels and weights."""

    X: Any
    labels: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class LabelledBatches:
    """Batches with labels, of any of the kinds that are accepted."""

    who: str
    given: Any
    groups: Any

    def batches(self) -> Iterator[LabelledBatch]:
        """Yield the batches that have rows, from the first."""
        for number, (X, labels, weights) in enumerate(self._split()):
            X = as_frame(X)
            if is_empty(X):
                continue
            who = f"{self.who}, batch {number}"
            if hasattr(X, "shape"):
                n = X.shape[0]
            else:
                n = len(X)
            found = check_labels(who, labels, n)
            masses = np.ones(n)
            if weights is not None:
                some = np.any(np.asarray(weights))  # a batch may have no weight at all
                if some:
                    masses = checked_weights(who, weights, n)
                else:
                    masses = np.zeros(n)
            yield LabelledBatch(X, found, masses)

    def _split(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the rows, the labels and the weights of each batch."""
        if isinstance(self.given, FileBatches):
            if not isinstance(self.groups, str):
                needed = "groups must name the column of a file that has the labels"
                raise MuhatError(self.who, needed, repr(self.groups))
            for X, words in self.given.with_words(self.groups):
                yield X, words, None
            return
        for batch in self.given:
            if isinstance(batch, tuple) and len(batch) in (2, 3):
                yield batch[0], batch[1], batch[2] if len(batch) == 3 else None
            else:
                X, labels = split_labels(self.who, as_frame(batch), self.groups)
                yield X, labels, None


@dataclass(frozen=True, eq=False)
class CodedBatches:
    """An iterable of arrays: the columns of the rows, their weights, the places of their labels."""

    read: LabelledBatches
    labels: Array

    def __iter__(self) -> Iterator[Array]:
        places = {label: place for place, label in enumerate(self.labels.tolist())}
        for number, batch in enumerate(self.read.batches()):
            X = checked_batch(batch.X, number)
            try:
                codes = [places[label] for label in batch.labels.tolist()]
            except KeyError as problem:
                needed = "labels must be the same in every pass over the batches"
                raise MuhatError(self.read.who, needed, repr(problem.args[0])) from problem
            yield np.column_stack([X, batch.weights.astype(X.dtype), np.array(codes, X.dtype)])


def labelled_on_cluster(estimator: Any, X: Any, groups: Any, sample_weight: Any) -> LabelledSource:
    """Return rows and labels of a dask array or data frame.

    Parameters
    ----------
    X : dask array of shape (n, d) or dask data frame
        The rows.
    groups : str or array of shape (n,)
        The name of the column with the labels of a data frame; else the label of each row.
    sample_weight : str, array of shape (n,) or None
        The same of the weights.
    """
    who = type(estimator).__name__
    if hasattr(X, "columns"):
        return _from_frame(estimator, X, groups, sample_weight)
    from dask.array import concatenate, from_array

    if groups is None or isinstance(groups, str):
        raise MuhatError(who, "groups must have a label for each row", repr(groups))
    example = DaskSource.from_collection(X).example
    checked_sample(estimator, example, reset=True)
    found = check_labels(who, _computed(groups), len(X))
    labels, codes = distinct_labels(found)
    weights = np.ones(len(X))
    if sample_weight is not None:
        weights = checked_weights(who, _computed(sample_weight), len(X))
    behind = from_array(np.column_stack([weights, codes]), chunks=(X.chunks[0], 2))
    return LabelledSource(DaskSource.from_collection(concatenate([X, behind], axis=1)), labels)


def _from_frame(estimator: Any, X: Any, groups: Any, sample_weight: Any) -> LabelledSource:
    """Return the rows of a dask data frame that has labels, and perhaps weights, in columns."""
    who = type(estimator).__name__
    names = [str(name) for name in X.columns]
    for what, name in (("groups", groups), ("sample_weight", sample_weight)):
        is_left_out = what == "sample_weight" and name is None
        if not is_left_out and (not isinstance(name, str) or name not in names):
            needed = f"{what} must name a column of the dask data frame: {', '.join(names[:8])}"
            raise MuhatError(who, needed, repr(name))
    labels = check_labels(who, X[groups].unique().compute().to_numpy(dtype=object), None)
    sorted_labels = _sorted(labels.tolist())
    coded = partial(_coded, groups=groups, weight=sample_weight, labels=sorted_labels)
    joined = X.map_partitions(coded, meta=coded(X._meta))
    source = DaskSource.from_collection(joined)
    checked_sample(estimator, source.example.iloc[:, :-2], reset=True)
    return LabelledSource(source, sorted_labels)


def _coded(frame: Any, groups: str, weight: str | None, labels: Array) -> Any:
    """Return a part of a data frame with weights and codes in its last two columns."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    codes = [float(places[label]) for label in frame[groups].tolist()]
    weights = np.ones(len(frame))
    dropped = [groups]
    if weight is not None:
        weights = frame[weight].to_numpy(np.float64)
        dropped.append(weight)
    return frame.drop(columns=dropped).assign(**{WEIGHT: weights, CODE: codes})


def _computed(values: Any) -> Any:
    if hasattr(values, "compute"):
        return values.compute()
    return values
