"""In which columns groups differ: distribution functions of every group, compared at quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, quotient
from muhat._tolerances import CONSTANT_TOLERANCE
from muhat.testing._designs import GroupDesign
from muhat.testing._group_statistics import (
    GroupSums,
    by_step,
    differences_from_rest,
    stratum_centred,
    sums_centred,
)
from muhat.testing._marginals import N_CUTS, clipped, counts_between, far_limits, in_units
from muhat.testing._permutations import PermutationTable

MAX_CUTS_OF_ALL = 2000
"""Quantiles of all columns together; at least ``MIN_CUTS`` of each."""

MIN_CUTS = 8
"""Quantiles of a column at which its distribution functions are compared, at least."""

LIMIT_RANGES = 3
"""Interquartile ranges from the quartiles to which few far values of a column are limited, before
means and standard deviations are computed."""


@dataclass(frozen=True)
class GroupFeature:
    """How much groups differ in one column, all others left aside."""

    name: str
    share: float
    """The share of the column's spread between groups: Σ n_t ∫(F_t − F)² over N ∫F(1 − F)."""
    p_value: float
    """Corrected for the number of columns: exact for whether any of them differs."""
    group: str
    """The group that adds most to that share."""
    shift: float
    """Its mean minus that of its rest, in standard deviations within groups (and strata)."""
    spread: float = 1.0
    """Its standard deviation over that within its rest; 0 if it has one row."""
    is_limited: bool = False
    """Whether few values are far from all others: shift and spread are computed with these limited
    to 3 interquartile ranges from the quartiles."""


@dataclass(frozen=True, eq=False)
class ColumnDifferences:
    """What single columns tell: features of all groups, and one column for every group."""

    features: tuple[GroupFeature, ...]
    """The column with the smallest p-value first."""
    columns: tuple[int, ...]
    """For every group the number of the column in which it differs most from the rest."""
    shifts: Array
    """Mean of every group minus that of its rest in standard deviations, shape (T, d)."""
    spreads: Array
    """The standard deviation in every group over that within its rest, shape (T, d)."""
    is_limited: Array
    """In which columns few values, far from all others, are limited, shape (d,)."""


def column_differences(
    X: Array, design: GroupDesign, sums: GroupSums, names: tuple[str, ...], steps: Array
) -> ColumnDifferences:
    """Return in which columns of the rows, shape (N, d), groups differ.

    The rest that a group is compared with are the other groups left at its step. Few values far
    from all others are limited, as they would make means and spreads alone.
    """
    d = X.shape[1]
    near = clipped(X, LIMIT_RANGES)
    is_limited = np.isfinite(far_limits(in_units(X))[0])
    functions = _DistributionFunctions.from_rows(clipped(X), design)
    F, W = functions.F, functions.W
    Z = sums_centred(F, design.sizes, design.strata)
    values = np.empty((d, sums.n_relabelings))
    n = sums.n_rows
    for some, S in sums.blocks(Z):
        values[:, some] = (((1 / n[some])[:, None, :] @ S**2)[:, 0] @ W).T
    from_rest = differences_from_rest(F, design, steps) ** 2 @ W
    added = from_rest * n[0][:, None]
    table = PermutationTable(values, np.abs(values).max(axis=1))
    N = design.sizes.sum()
    pooled = F.sum(axis=0) / N
    spread = N * (pooled * (1 - pooled)) @ W
    shares = np.divide(values[:, 0], spread, out=np.zeros(d), where=spread > 0)
    shifts = by_step(design, steps, lambda left, units: _shifts(near[units[design.unit]], left))
    spreads = by_step(design, steps, lambda left, units: _spreads(near[units[design.unit]], left))
    features = []
    for column, p in enumerate(table.corrected.tolist()):
        group = int(added[:, column].argmax())
        features.append(
            GroupFeature(
                names[column],
                float(shares[column]),
                p,
                str(design.names[group]),
                float(shifts[group, column]),
                float(spreads[group, column]),
                bool(is_limited[column]),
            )
        )
    features.sort(key=lambda each: (each.p_value, -each.share))
    # As shares of each column's spread, so that columns of different units can be compared.
    relative = np.divide(from_rest, spread, out=np.zeros_like(from_rest), where=spread > 0)
    columns = tuple(relative.argmax(axis=1).tolist())
    return ColumnDifferences(tuple(features), columns, shifts, spreads, is_limited)


@dataclass(frozen=True, eq=False)
class _DistributionFunctions:
    """Distribution functions of units at quantiles of every column, and weights to integrate."""

    F: Array
    """How many rows of every unit are below each cut of all columns, shape (C, cells)."""
    W: Array
    """The width of every cell in the column that it belongs to, shape (cells, d)."""

    @classmethod
    def from_rows(cls, scaled: Array, design: GroupDesign) -> _DistributionFunctions:
        """Return them at fewer cuts of each column if there are many columns."""
        d = scaled.shape[1]
        n_cuts = int(np.clip(MAX_CUTS_OF_ALL // d, MIN_CUTS, N_CUTS))
        below, widths, column_of = [], [], []
        for column, values in enumerate(scaled.T):
            cuts = np.unique(np.quantile(values, np.arange(1, n_cuts) / n_cuts))
            below.append(_below(values, cuts, design))
            ends = values.min(), values.max()
            widths.append(np.diff(np.concatenate([ends[:1], (cuts[1:] + cuts[:-1]) / 2, ends[1:]])))
            column_of.append(np.full(len(cuts), column))
        cells = np.concatenate(column_of)
        W = np.zeros((len(cells), d))
        W[np.arange(len(cells)), cells] = np.concatenate(widths)
        return cls(np.concatenate(below, axis=1), W)


def _below(values: Array, cuts: Array, design: GroupDesign) -> Array:
    """Return how many rows of every unit are below each cut, shape (C, len(cuts))."""
    counts = counts_between(values, cuts, design.unit, len(design.labels))
    return np.cumsum(counts[:, :-1], axis=1).astype(np.float64)


def _shifts(scaled: Array, design: GroupDesign) -> Array:
    """Return the mean of every group minus that of the rest, in SD within groups, shape (T, d).

    With strata, both are taken within strata.
    """
    sums = np.zeros((len(design.labels), scaled.shape[1]))
    np.add.at(sums, design.unit, scaled)
    differences = differences_from_rest(sums, design)
    within = np.sqrt(_squares_within(scaled, design) / _degrees(design))
    overall = scaled.std(axis=0)
    spread = np.where(within > CONSTANT_TOLERANCE * overall, within, overall)
    return quotient(differences, spread)


def _squares_within(scaled: Array, design: GroupDesign) -> Array:
    """Return the sum of squares within groups, and within strata if there are any, shape (d,)."""
    group = design.labels[design.unit]
    centred = stratum_centred(scaled, design.row_strata)
    sums = np.zeros((design.n_groups, scaled.shape[1]))
    np.add.at(sums, group, centred)
    means = sums / design.row_counts.sum(axis=0)[:, None]
    return np.asarray(((centred - means[group]) ** 2).sum(axis=0))


def _degrees(design: GroupDesign) -> float:
    """Return the degrees of freedom within groups and strata: rows less means."""
    n_strata, T = design.row_counts.shape
    return max(1.0, float(design.sizes.sum()) - n_strata - T + 1)


def _spreads(scaled: Array, design: GroupDesign) -> Array:
    """Return the SD of every group over that within the other groups, shape (T, d); 0 if unknown.

    With strata, it is that of rows less the mean of their stratum.
    """
    scaled = stratum_centred(scaled, design.row_strata)
    group = design.labels[design.unit]
    n = design.row_counts.sum(axis=0)[:, None]
    sums = np.zeros((design.n_groups, scaled.shape[1]))
    np.add.at(sums, group, scaled)
    squares = np.zeros_like(sums)
    np.add.at(squares, group, (scaled - (sums / n)[group]) ** 2)
    own = squares / np.maximum(n - 1, 1)
    others = (squares.sum(axis=0) - squares) / np.maximum(n.sum() - n - len(n) + 1, 1)
    return np.sqrt(quotient(own, others))


def shares_of_ones(
    rows: Array, group: Array, columns: Sequence[int], steps: Array
) -> list[tuple[float, float] | None]:
    """Return the share of ones in each group and in its rest, in one column for every group.

    It is None for a column of other values than zeros and ones.
    """
    found: list[tuple[float, float] | None] = []
    for t, column in enumerate(columns):
        values = rows[:, column]
        if not np.isin(values, (0, 1)).all() or not np.ptp(values):
            found.append(None)
            continue
        inside = group == t
        rest = ~inside & (steps >= steps[t])[group]
        found.append((float(values[inside].mean()), float(values[rest].mean())))
    return found
