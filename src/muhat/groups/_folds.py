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
    hashed = hashed_rows(rows.X, seed)
    order = np.lexsort([hashed, rows.codes])
    starts = np.cumsum(rows.counts) - rows.counts
    # A group's first row goes to a fold of its own, so that groups of one row are in all folds.
    first_folds = np.add.reduceat(hashed[order], starts) % np.uint64(F)
    codes = rows.codes[order]
    turns = np.arange(len(codes)) - starts[codes] + first_folds[codes].astype(np.int64)
    folds = np.empty(len(codes), np.int64)
    folds[order] = turns % F
    return folds
