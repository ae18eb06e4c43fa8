"""K-fold cross-validation: the leave-one-out score with whole folds left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, cast

import numpy as np

from muhat._arrays import Array
from muhat._validation import whole_number
from muhat.filters import Shrinker
from muhat.gram import Access, BlockProblem, DenseProblem, Problem, SpectralProblem
from muhat.gram._problem import summed
from muhat.selection._base import Candidates, Choice, Scored, candidates_of, check_rest
from muhat.selection._by_products import k_fold_choices
from muhat.selection._leave_out import scores_with_folds_left_out, scores_without


@dataclass
class KFold(Scored):
    """Σ_F Σ_{i ∈ F} p_i ‖k(x_i, ·) − μ_λ^(−F)‖² over folds F.

    It takes an eigendecomposition for each fold; on ``gram="blocks"``, one sequence of products for all of them.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds.
    random_state : int, default=0
        The seed that splits the points into folds: at random, or, of a sample that is known by its features only, by a
        hash of each row, so that it does not matter how rows are batched; equal rows of a batch in turn.
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    n_splits: int = 5
    random_state: int = 0
    grid: Any = None

    @property
    def least_points(self) -> int:  # type: ignore[override]
        """A point for each fold."""
        return self.n_splits if isinstance(self.n_splits, Integral) else 2

    def check(self, filter: Shrinker) -> None:
        """Refuse a number of folds or a seed that is none, and a grid that does not fit."""
        super().check(filter)
        whole_number(self, "n_splits", self.n_splits, 2)
        whole_number(self, "random_state", self.random_state, 0)

    def needs(self, filter: Shrinker) -> Access:
        """Products with A, in which all folds take part; all eigenpairs for filters that take any."""
        return filter.needs if filter.needs == Access.PRODUCTS else Access.SPECTRUM

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the least score."""
        if Access.SPECTRUM in problem.access:
            return super().choices(cast(SpectralProblem, problem), filters)
        blocks = cast(BlockProblem, problem)
        candidates = [candidates_of(self, self.grid, blocks, filter) for filter in filters]
        return k_fold_choices(self, blocks, candidates, self.folds(blocks.masses))

    def scores(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the k-fold scores of every filter's parameters."""
        if problem.fold_sums is not None:
            check_rest(self, 1 - float(problem.fold_sums.mass.max()))
            return scores_without(problem, problem.fold_sums, candidates)
        dense = cast(DenseProblem, problem)
        folds = self.folds(dense.masses)
        alike = [np.stack([fold for fold in folds if len(fold) == size]) for size in sorted({len(f) for f in folds})]
        return summed([scores_with_folds_left_out(dense, dense.rows, some, candidates) for some in alike])

    def folds(self, masses: Array) -> list[Array]:
        """Return the rows of each fold, split at random."""
        folds = np.array_split(np.random.default_rng(self.random_state).permutation(len(masses)), self.n_splits)
        check_rest(self, 1 - max(float(masses[fold].sum()) for fold in folds))
        return folds
