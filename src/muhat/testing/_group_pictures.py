"""What pictures of groups need: places on a map with errors, distances, quantiles of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array, quotient
from muhat.testing._designs import GroupDesign
from muhat.testing._group_columns import GroupFeature

MAX_COLUMNS = 6
"""Columns whose quantiles are kept: those with the smallest p-values."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of every group, in pictures of a column."""


@dataclass(frozen=True, eq=False)
class ColumnQuantiles:
    """The distribution of one column in every group, in the units of the data."""

    name: str
    quantiles: Array
    """At 5, 25, 50, 75 and 95 %, shape (T, 5)."""


@dataclass(frozen=True, eq=False)
class GroupPictures:
    """What pictures show of groups; rows of all arrays are in the order of ``labels``."""

    labels: tuple[Any, ...]
    n_rows: Array
    """Shape (T,)."""
    coordinates: Array
    """Of the kernel means along the two axes with the largest differences, shape (T, 2)."""
    errors: Array
    """Standard errors of the coordinates, shape (T, 2); nan for a group of one unit."""
    shares: Array
    """The share of the squared distances between groups that each axis shows, shape (2,)."""
    distances: Array
    """MMD between groups, shape (T, T)."""
    columns: tuple[ColumnQuantiles, ...]
    """The columns that differ most."""

    @classmethod
    def from_features(
        cls, features: Array, design: GroupDesign, distances: Array, columns: Any
    ) -> GroupPictures:
        """Return the pictures of groups from features of units, shape (C, r)."""
        T, r = design.n_groups, features.shape[1]
        n = design.row_counts.sum(axis=0)
        sums = np.zeros((T, r))
        np.add.at(sums, design.labels, features)
        means = sums / n[:, None]
        # Large groups decide on the axes: small ones are far from the others by chance.
        weighted = np.sqrt(n)[:, None] * (means - sums.sum(axis=0) / n.sum())
        axes = _axes(weighted)
        coordinates = (means - sums.sum(axis=0) / n.sum()) @ axes
        squares = (np.sqrt(n)[:, None] * coordinates) ** 2
        shares = quotient(squares.sum(axis=0), np.full(2, (weighted**2).sum()))
        residuals = (features - design.sizes[:, None] * means[design.labels]) @ axes
        total = np.zeros((T, 2))
        np.add.at(total, design.labels, residuals**2)
        count = np.bincount(design.labels, minlength=T).astype(np.float64)
        count[count < 2] = np.nan
        errors = np.sqrt(total * (count / (count - 1))[:, None]) / n[:, None]
        return cls(
            design.names, n.astype(int), coordinates, errors, shares, distances, tuple(columns)
        )


def _axes(weighted: Array) -> Array:
    """Return two orthogonal directions with the largest squares, shape (r, 2), signs fixed."""
    axes = np.zeros((weighted.shape[1], 2))
    found = np.linalg.svd(weighted, full_matrices=False)[2][:2].T
    axes[:, : found.shape[1]] = found
    places = weighted @ axes
    largest = places[np.abs(places).argmax(axis=0), np.arange(2)]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


def column_quantiles(
    rows: Array, group: Array, names: Sequence[str], features: Sequence[GroupFeature], n_groups: int
) -> list[ColumnQuantiles]:
    """Return the quantiles of the columns that differ most, in every group."""
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=n_groups))[:-1]
    found = []
    for each in features[:MAX_COLUMNS]:
        values = rows[order, list(names).index(each.name)]
        # Halves, exactly: differences of the largest floats are not finite.
        halves = np.split(values / 2, ends)
        quantiles = [2 * np.quantile(some, QUANTILES) for some in halves]
        found.append(ColumnQuantiles(each.name, np.array(quantiles)))
    return found
