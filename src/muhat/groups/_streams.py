"""The means of groups whose rows are not in memory: one pass to learn from, one to sum up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from muhat._arrays import Array
from muhat.data import ColumnMoments, ReservoirSample, SampleBatch, hashed_rows
from muhat.gram import FeatureMap
from muhat.groups._batches import LabelledSource
from muhat.groups._cells import CellTotals, FeatureCells, SummedCells
from muhat.groups._folds import dealt_by_hash
from muhat.groups._rows import LabelledRows

N_COLUMNS = 2
"""Columns behind those of the rows: weights and codes."""


@dataclass(frozen=True, eq=False)
class RowKeys:
    """What is kept of every row: a hash of its numbers, its group and its weight."""

    start: int
    hashed: Array
    codes: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class GroupsFirstPass:
    """What is learnt from all rows before their features are summed up; two of them add up.

    Attributes
    ----------
    keys : tuple of RowKeys
        Of all rows, in parts.
    moments : ColumnMoments or None
        Of the columns; None without a row of positive weight.
    drawn : ReservoirSample
        Some of the rows, with their weights and codes.
    """

    keys: tuple[RowKeys, ...]
    moments: ColumnMoments | None
    drawn: ReservoirSample

    @classmethod
    def from_batch(cls, batch: SampleBatch, size: int, seed: int) -> GroupsFirstPass:
        """Return what a batch of rows, weights and codes gives."""
        X, weights, codes = columns_of(batch.X)
        key = RowKeys(batch.start, hashed_rows(X, seed), codes.astype(np.int32), weights)
        present = weights > 0
        moments = None
        if present.any():
            moments = ColumnMoments.from_batch(SampleBatch(X[present], 0, weights[present]))
        return cls((key,), moments, ReservoirSample.from_batch(batch, size))

    def __add__(self, other: GroupsFirstPass) -> GroupsFirstPass:
        moments = self.moments
        if other.moments is not None:
            moments = other.moments
        if self.moments is not None and other.moments is not None:
            moments = self.moments + other.moments
        return GroupsFirstPass(self.keys + other.keys, moments, self.drawn + other.drawn)

    @property
    def all_keys(self) -> RowKeys:
        """Those of all rows, in their order."""
        ordered = sorted(self.keys, key=lambda key: key.start)
        joined = []
        for name in ("hashed", "codes", "weights"):
            joined.append(np.concatenate([getattr(key, name) for key in ordered]))
        return RowKeys(0, *joined)


def columns_of(joined: Array) -> tuple[Array, Array, Array]:
    """Return the columns of the rows, their weights, and the places of their labels."""
    X = np.ascontiguousarray(joined[:, :-N_COLUMNS])
    return X, joined[:, -2].astype(np.float64), joined[:, -1].astype(np.int64)


def first_pass(rows: LabelledSource, size: int, seed: int) -> GroupsFirstPass:
    """Read all rows once, and draw ``size`` of them."""
    return rows.source.total(partial(GroupsFirstPass.from_batch, size=size, seed=seed))


def drawn_rows(rows: LabelledSource, found: GroupsFirstPass) -> tuple[LabelledRows, Array]:
    """Return the rows that were drawn, with equal weights, and their weights."""
    X, weights, codes = columns_of(found.drawn.rows)
    return LabelledRows(X, rows.labels, codes, np.ones(len(X))), weights


@dataclass(frozen=True, eq=False)
class StreamedGroups:
    """The sizes of the groups, and the fold of every row.

    Attributes
    ----------
    counts : array of int of shape (T,)
        Rows of positive weight.
    folds : array of int of shape (n,)
        The fold of each row, in the order of the rows.
    largest_weight : float
        The largest weight, which counts one.
    """

    counts: Array
    folds: Array
    largest_weight: float

    @classmethod
    def from_keys(cls, keys: RowKeys, T: int, F: int) -> StreamedGroups:
        """Deal the rows of every group to folds, as rows in memory are."""
        present = keys.weights > 0
        counts = np.bincount(keys.codes[present], minlength=T)
        folds = np.zeros(len(keys.codes), np.int8 if F < 128 else np.int32)
        if counts.min() > 0:
            folds[present] = dealt_by_hash(keys.hashed[present], keys.codes[present], counts, F)
        return cls(counts, folds, float(keys.weights.max()))

    def sums(
        self,
        rows: LabelledSource,
        features: FeatureMap,
        scale: Callable[[Array], Array],
        F: int,
    ) -> FeatureCells:
        """Read all rows again, and sum up their features over (group, fold)."""
        T = len(rows.labels)
        work = partial(_summed, self, features, scale, T, F)
        return FeatureCells.from_totals(rows.source.total(work).totals(), T, F)


def _summed(
    groups: StreamedGroups,
    features: FeatureMap,
    scale: Callable[[Array], Array],
    T: int,
    F: int,
    batch: SampleBatch,
) -> SummedCells:
    """Return the sums of one batch."""
    X, weights, codes = columns_of(batch.X)
    folds = groups.folds[batch.start : batch.start + len(X)]
    cells = codes * F + folds
    order = np.argsort(cells, kind="stable")
    order = order[weights[order] > 0]
    if not len(order):
        return SummedCells(T * F, ())
    masses = weights[order] / groups.largest_weight
    part = CellTotals.from_sorted(features, scale(X[order]), masses, cells[order])
    return SummedCells(T * F, (part,))


def with_weights(rows: LabelledRows, weights: Array) -> LabelledRows:
    """Return drawn rows of positive weight, with their weights."""
    found = replace(rows, masses=weights / max(float(weights.max()), np.finfo(float).tiny))
    return found.taken(np.flatnonzero(weights > 0))
