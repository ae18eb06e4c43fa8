"""Equal rows: counted by a hash of their values, and dropped on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat._messages import option
from muhat.data import SampleBatch, hashed_rows
from muhat.data._copies import MIN_ROWS_PER_VALUE

MAX_COUNTED_ROWS = 20_000
"""Distinct rows that are counted at most: those with the smallest hashes, a random subset."""

MIN_COPIED_ROWS = 20
"""Different rows from which on rows that repeat as a whole are called copies, however many."""

MIN_SHARE_REPEATED = 0.9
"""The share of the values of a single column that repeat from which on its rows may be copies."""

MAX_TIES_RATIO, MIN_COPIED_RATIO = 2, 10
"""Pairs of equal rows, per pair that independent columns would have, up to which they are ties of
values that recur, and from which on they are copies, however often rows repeat."""

MIN_SHARE_NAMED = 0.01
"""The share of copies among the rows from which a verdict mentions them."""


@dataclass(frozen=True, eq=False)
class RowCounts:
    """How often each distinct row of a sample occurs; those of two samples can be added.

    Of more than ``SIZE`` different rows those with the smallest hashes are kept. Equal rows have
    equal hashes, so that every copy of a kept row is counted, and shares over kept rows estimate
    those over all without bias.
    """

    n: int
    """Rows of the sample."""
    hashes: Array
    """Of the different rows, rising."""
    counts: Array

    @classmethod
    def from_batch(cls, batch: SampleBatch) -> RowCounts:
        """Return the counts of a batch."""
        hashes, counts = np.unique(hashed_rows(batch.X), return_counts=True)
        return cls(len(batch.X), hashes[:MAX_COUNTED_ROWS], counts[:MAX_COUNTED_ROWS])

    def __add__(self, other: RowCounts) -> RowCounts:
        both = np.concatenate([self.hashes, other.hashes])
        hashes, places = np.unique(both, return_inverse=True)
        counts = np.bincount(places, np.concatenate([self.counts, other.counts])).astype(np.int64)
        return RowCounts(self.n + other.n, hashes[:MAX_COUNTED_ROWS], counts[:MAX_COUNTED_ROWS])

    @property
    def n_copies(self) -> int:
        """How many rows equal an earlier one; an estimate if not all distinct rows were kept."""
        counted = int(self.counts.sum())
        return round(self.n * (counted - len(self.counts)) / counted)

    def n_shared(self, other: RowCounts) -> int:
        """How many rows equal a row of another sample; an estimate if not all were kept."""
        ends = [each.hashes[-1] for each in (self, other) if len(each.hashes) == MAX_COUNTED_ROWS]
        compared = self.hashes <= min(ends, default=np.uint64(2**64 - 1))
        is_shared = compared & np.isin(self.hashes, other.hashes)
        return round(self.n * int(self.counts[is_shared].sum()) / int(self.counts[compared].sum()))

    def is_same(self, other: RowCounts) -> bool:
        """Whether both samples consist of the same rows, as often."""
        same = np.array_equal(self.hashes, other.hashes) and np.array_equal(
            self.counts, other.counts
        )
        return self.n == other.n and same


def distinct_rows(X: Array, Y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return which rows of X and of Y stay if each distinct row of both is kept once.

    Which of several equal rows stays is drawn at random, whatever sample it is in: labels are as
    exchangeable among the rows that stay as they were among all.
    """
    order = rng.permutation(len(X) + len(Y))
    _, first = np.unique(hashed_rows(np.concatenate([X, Y]))[order], return_index=True)
    kept = np.sort(order[first])
    return kept[kept < len(X)], kept[kept >= len(X)] - len(X)


def are_copied_whole(rows: Array) -> bool:
    """Return whether rows repeat as a whole, and not because values recur.

    Values that recur by themselves meet in many combinations, copied rows in the same ones.
    """
    n_different = len(np.unique(hashed_rows(rows)))
    if not MIN_COPIED_ROWS <= n_different < len(rows):
        return False
    varying = _varying(rows)
    return len(varying) > 1 and _equal_ratio([rows], varying) >= MIN_COPIED_RATIO


def are_ties(samples: Sequence[Array]) -> bool:
    """Return whether equal rows are to be expected of values that recur, rather than copies.

    Several columns: there are not many more pairs of equal rows than in independent columns. One
    column: in a sample with copied rows nearly every value occurs more than once.
    """
    varying = _varying(np.concatenate(samples))
    if len(varying) == 1:
        return not any(_is_repeated(sample[:, varying[0]]) for sample in samples)
    return 0 < _equal_ratio(samples, varying) <= MAX_TIES_RATIO


def _varying(rows: Array) -> Array:
    """Return the columns with more than one value."""
    return np.flatnonzero(rows.min(axis=0) < rows.max(axis=0))


def _equal_ratio(samples: Sequence[Array], varying: Array) -> float:
    """Return the pairs of equal rows within samples, per pair that independent columns have."""
    equal = sum(_equal_pairs(hashed_rows(sample)) for sample in samples)
    if equal == 0:  # as in most data: columns need not be sorted
        return 0.0
    expected = 0.0
    for sample in samples:
        pairs = len(sample) * (len(sample) - 1) / 2
        by_chance = pairs
        for column in varying:
            by_chance *= _equal_pairs(sample[:, column]) / max(1.0, pairs)
        expected += by_chance
    if expected == 0:
        return 0.0
    return equal / expected


def _equal_pairs(values: Array) -> float:
    """Return how many pairs of values are equal."""
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return float((counts * (counts - 1)).sum() / 2)


def _is_repeated(values: Array) -> bool:
    """Whether nearly every value occurs more than once."""
    counts = np.unique(values, return_counts=True)[1]
    return bool((counts > 1).mean() >= MIN_SHARE_REPEATED)


def copies_note(
    n_copies: int,
    n_shared: int,
    n: int,
    names: tuple[str, str],
    is_found: bool = True,
    are_whole: bool = False,
) -> str:
    """Return sentences on what copies do to the p-value; empty without copies.

    That the true p-value is larger matters only where a difference was found. Where few different
    rows are possible nothing is said, unless rows ``are_whole`` copies.
    """
    notes: list[str] = []
    if rows_recur(n_copies, n) and not are_whole:
        return ""
    if is_found and n_copies > MIN_SHARE_NAMED * n:
        notes.append(_copies_within(n_copies, n, "sample"))
        if n_shared <= MIN_SHARE_NAMED * n:
            notes.append(f"Use {option('distinct')} to drop copies.")
    if n_shared > MIN_SHARE_NAMED * n:
        equal = f"{n_shared:,} rows of {names[1]} are equal to rows of {names[0]}"
        if n_shared == 1:
            equal = f"1 row of {names[1]} is equal to a row of {names[0]}"
        expected = "This is expected if few different values are possible"
        same = f"If both samples contain the same observations, use {option('distinct')}"
        notes.append(f"{equal}. {expected}. {same}.")
    return " ".join(notes)


def group_copies_note(n_copies: int, n: int) -> str:
    """Return sentences on copies within groups that were found to differ; empty if few."""
    if n_copies <= MIN_SHARE_NAMED * n:
        return ""
    return f"{_copies_within(n_copies, n, 'group')} Drop copies before the test."


def rows_recur(n_copies: int, n: int) -> bool:
    """Whether there are so few different rows that equal ones are to be expected."""
    return n >= MIN_ROWS_PER_VALUE * (n - n_copies)


def _copies_within(n_copies: int, n: int, whole: str) -> str:
    are = "rows are exact copies"
    if n_copies == 1:
        are = "row is an exact copy"
    return (
        f"{n_copies:,} of the {n:,} {are} of another row of the same {whole}. "
        "Unless copies are separate observations, the true p-value is larger."
    )
