"""Which rows are left out together: every group's rows dealt to a few folds."""

from __future__ import annotations

import numpy as np

from muhat._arrays import Array
from muhat.data import hashed_rows
from muhat.groups._rows import LabelledRows


def dealt_to_folds(rows: LabelledRows, F: int, seed: int) -> Array:
    """Return a fold from 0 to F − 1 for each row, of shape (n,).

    A group's rows are spread evenly over the folds, in the order of a hash of their numbers:
    neither the order of the rows nor that of the labels changes the estimates. Rows of one cluster
    share a fold.
    """
    if rows.clusters is not None:
        turns = np.random.default_rng(seed).permutation(int(rows.clusters.max()) + 1)
        return turns[rows.clusters] % F
    return dealt_by_hash(hashed_rows(rows.X, seed), rows.codes, rows.counts, F)


def dealt_by_hash(hashed: Array, codes: Array, counts: Array, F: int) -> Array:
    """Return a fold for each row, given its hash, its group and the sizes of the groups."""
    order = np.lexsort([hashed, codes])
    starts = np.cumsum(counts) - counts
    # A group's first row goes to a fold of its own, so that groups of one row are in all folds.
    first_folds = np.add.reduceat(hashed[order], starts) % np.uint64(F)
    ordered = codes[order]
    turns = np.arange(len(codes)) - starts[ordered] + first_folds[ordered].astype(np.int64)
    folds = np.empty(len(codes), np.int64)
    folds[order] = turns % F
    return folds
