"""The pairs of an independence test: the rows of x and of y, copies, and what is learnt from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from muhat._arrays import Array
from muhat._messages import IN_COMMAND, option
from muhat.data import ColumnMoments, SampleBatch
from muhat.data._copies import EqualRows
from muhat.errors import MuhatError
from muhat.kernels import Kernel, Precomputed
from muhat.testing._contrast import ValueContrast
from muhat.testing._distances import features_for, ranks_among
from muhat.testing._explained import ExplainedVariance
from muhat.testing._gram import PooledSpectrum
from muhat.testing._ranks import as_ranks
from muhat.testing._row_order import RowOrder
from muhat.testing._side_gram import GramForm, SideGram
from muhat.testing._side_spectrum import SideSpectrum

MIN_COPY_AGREEMENT = 0.5
"""Agreement of rows that are equal in x and in y from which on a verdict mentions copies."""


@dataclass(frozen=True, eq=False)
class PairSide:
    """The rows of x or of y, with the names of their columns and their kernels."""

    rows: Array
    """Shape (n, d)."""
    names: tuple[str, ...] | None
    kernels: list[Kernel]

    @property
    def is_constant(self) -> bool:
        """Whether all rows are equal."""
        return not np.ptp(self.rows, axis=0).any()

    @property
    def has_row_numbers(self) -> bool:
        """Whether rows are numbers of rows of a matrix, which have no columns."""
        return any(isinstance(each, Precomputed) for each in self.kernels)

    def row_order(self, name: str) -> RowOrder | None:
        """Return in which column neighbouring rows are alike, if they are.

        A single column without a name is called as the side.
        """
        if self.has_row_numbers:
            return None
        d = self.rows.shape[1]
        names = self.names or tuple(f"column {place} of {name}" for place in range(d))
        if self.names is None and d == 1:
            names = (name,)
        return RowOrder.from_samples([self.rows], names)

    @property
    def standardized(self) -> PairSide:
        """It with columns at mean 0 and variance 1; row numbers stay."""
        if self.has_row_numbers:
            return self
        moments = ColumnMoments.from_batch(SampleBatch(self.rows, 0))
        return replace(self, rows=moments.standardized(self.rows))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both sides of n pairs, and how many of these are exact copies of others."""

    x: PairSide
    y: PairSide
    n_copies: int
    copies_stand_out: bool
    """Whether rows equal in x are mostly equal in y, beyond what repeated values explain."""
    copies_can_be_dropped: bool
    """Whether no two of the pairs that would stay are equal in x, or none in y."""
    contrast: ValueContrast | None = None
    """Between which values of a text column the other side differs most."""

    @classmethod
    def count_copies(cls, x: PairSide, y: PairSide, distinct: bool) -> Pairs:
        """Return the pairs, without exact copies if ``distinct``.

        If values of both sides repeat among the pairs that stay, dropping copies would leave the
        support of the pairs: common values of x with many of y, rare ones with the common ones of
        y only. No permutation looks like that, so that this raises MuhatError.
        """
        equal = EqualRows.from_pairs(x.rows, y.rows)
        n_kept = len(equal.first)
        can_be_dropped = equal.n_copies == 0 or max(equal.levels) == n_kept
        has_few_values = not can_be_dropped and equal.recur
        agrees = equal.n_copies > 0 and equal.agreement >= MIN_COPY_AGREEMENT
        stand_out = agrees and not has_few_values
        pairs = cls(x, y, equal.n_copies, stand_out, can_be_dropped)
        if not distinct or not equal.n_copies:
            return pairs
        if not can_be_dropped:
            raise _values_repeat(equal.levels, n_kept)
        return pairs.take(equal.first)

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.x.rows)

    @property
    def constant(self) -> tuple[str, ...]:
        """Which of 'x' and 'y' are the same in all rows."""
        return tuple(name for name in ("x", "y") if getattr(self, name).is_constant)

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's rank correlation of one column and one column; None otherwise."""
        has_single_columns = self.x.rows.shape[1] == 1 and self.y.rows.shape[1] == 1
        has_row_numbers = self.x.has_row_numbers or self.y.has_row_numbers
        if not has_single_columns or has_row_numbers or self.constant:
            return None
        x, y = self.x.rows, self.y.rows
        x_ranks = ranks_among(np.sort(x, axis=0), x)
        y_ranks = ranks_among(np.sort(y, axis=0), y)
        return float(np.corrcoef(x_ranks[:, 0], y_ranks[:, 0])[0, 1])

    @property
    def row_order(self) -> tuple[RowOrder, RowOrder] | None:
        """In which columns of x and of y neighbouring rows are alike; None if one side has none.

        If the rows of one side are independent, every order of the pairs is as probable.
        """
        x, y = self.x.row_order("x"), self.y.row_order("y")
        if x is None or y is None:
            return None
        return x, y

    @property
    def explained(self) -> ExplainedVariance | None:
        """How much of the variance of one side the other explains, if one side is one column."""
        if self.x.has_row_numbers or self.y.has_row_numbers or self.constant:
            return None
        return ExplainedVariance.from_rows(self.x.rows, self.y.rows)

    def with_contrast(self) -> Pairs:
        """Return the pairs with their contrast, which takes rows that are not standardized."""
        if self.x.has_row_numbers or self.y.has_row_numbers:
            return self
        x, y = self.x, self.y
        return replace(self, contrast=ValueContrast.from_sides(x.rows, x.names, y.rows, y.names))

    @property
    def standardized(self) -> Pairs:
        """Them with the columns of each side standardized by that side alone."""
        return replace(self, x=self.x.standardized, y=self.y.standardized)

    def take(self, places: Array) -> Pairs:
        """Return some of the pairs, in an order."""
        x = replace(self.x, rows=self.x.rows[places])
        y = replace(self.y, rows=self.y.rows[places])
        return replace(self, x=x, y=y)


def _values_repeat(levels: tuple[int, int], n_kept: int) -> MuhatError:
    """Return the error of dropping copies where values of x and of y repeat."""
    different = "must have different values in all rows that are not copies"
    needed = f"with {option('distinct')}, x or y {different}"
    got = f"{levels[0]:,} different values of x and {levels[1]:,} of y in {n_kept:,} such rows"
    leave_out = "use distinct=False"
    if IN_COMMAND.get():
        leave_out = "leave out --distinct"
    reason = "because rows that are equal only because few values are possible are not copies"
    return MuhatError("IndependenceTest", needed, got, f"{leave_out}, {reason}")


@dataclass(frozen=True, eq=False)
class ShuffledSide:
    """One side, and its rows in a random order, from which bandwidths and landmarks are learnt.

    Landmarks and rows that bandwidths are learnt from are special rows. If they were the same ones
    in x and in y, special rows would be paired with each other in the data and in no permutation,
    and independent data would be rejected; if they were disjoint, the test would be wrong in the
    other direction. The orders of x and of y are drawn independently of each other: what is learnt
    on one side says nothing about how it is paired, and the p-value is exact.
    """

    side: PairSide
    to_learn_from: Array
    """The rows in random order, shape (n, d)."""
    form: GramForm

    @classmethod
    def draw(cls, side: PairSide, form: GramForm, rng: np.random.Generator) -> ShuffledSide:
        """Return one side, with an order drawn."""
        return cls(side, side.rows[rng.permutation(len(side.rows))], form)

    @property
    def ranked(self) -> ShuffledSide:
        """The same side with the ranks of its values in every column."""
        rows, to_learn_from = as_ranks(self.side.rows, self.to_learn_from)
        return replace(self, side=replace(self.side, rows=rows), to_learn_from=to_learn_from)

    def gram(self, kernel: Kernel) -> SideGram:
        """Return the centred Gram matrix of a kernel."""
        decompose = partial(self.spectrum, kernel)
        return SideGram(kernel, self.side.rows, self.to_learn_from, self.form, decompose)

    def spectrum(self, kernel: Kernel) -> SideSpectrum:
        """Return the spectrum of the centred Gram matrix, or of features learnt from some rows."""
        if self.form.features is None:
            spectrum = PooledSpectrum.from_rows(kernel, self.side.rows)
            return SideSpectrum.from_eigenvectors(spectrum)
        features = features_for(kernel, self.form.features, self.to_learn_from)
        if self.form.has_matrices:
            spectrum = PooledSpectrum.from_features(features, self.side.rows)
            return SideSpectrum.from_eigenvectors(spectrum)
        return SideSpectrum.from_features(features, self.side.rows)
