"""How many directions the rows of a group vary in: (tr Σ)²/tr Σ² of their covariance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muhat._arrays import Array
from muhat.groups._cells import CellRows

N_PROBE_ROWS = 1000
"""Rows that it is estimated from: about as many, from up to half as many groups."""


def effective_dimension(gram: Callable[[Array], Array], rows: CellRows) -> float:
    """Return r = (tr Σ)²/tr Σ², Σ the covariance within groups, at least one.

    From a sample covariance S with f degrees of freedom, tr Σ² is estimated without bias, for
    normal rows, by f²/((f − 1)(f + 2)) (tr S² − (tr S)²/f).

    Parameters
    ----------
    gram : callable
        The Gram matrix of some rows.
    rows : CellRows
        The rows of all groups.
    """
    places, groups = _probe(rows)
    _, starts, codes, counts = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    f = len(places) - len(counts)
    if f < 2:
        return 1.0
    K = gram(rows.X[places]).astype(np.float64)
    K -= (np.add.reduceat(K, starts, axis=0) / counts[:, None])[codes]
    K -= (np.add.reduceat(K, starts, axis=1) / counts)[:, codes]
    trace = float(np.trace(K)) / f
    squared = f**2 / ((f - 1) * (f + 2)) * (float((K**2).sum()) / f**2 - trace**2 / f)
    if not squared > 0:
        return float(f)
    return min(max(trace**2 / squared, 1.0), float(f))


def _probe(rows: CellRows) -> tuple[Array, Array]:
    """Return the places of some rows of some groups, evenly chosen, and their groups."""
    groups = rows.groups
    counts = np.bincount(groups)
    within = np.arange(len(groups)) - (np.cumsum(counts) - counts)[groups]
    n_groups = min(rows.T, N_PROBE_ROWS // 2)
    chosen = np.unique(np.linspace(0, rows.T - 1, n_groups).astype(int))
    most = -(-N_PROBE_ROWS // len(chosen))
    steps = -(-counts // most)
    places = np.flatnonzero((within % steps[groups] == 0) & np.isin(groups, chosen))
    return places, groups[places]
