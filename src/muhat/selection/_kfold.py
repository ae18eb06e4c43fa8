"""K-fold cross-validation: the leave-one-out score with whole folds left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Shrinker
from muhat.gram import FeatureProblem, Problem, ProductProblem, SampleProblem
from muhat.gram._problem import summed
from muhat.selection._base import Candidates, Choice, Rule, Scored, candidates_of, check_rest
from muhat.selection._by_products import check_filters, k_fold_choices
from muhat.selection._leave_out import HeldOut, scores_with_folds_left_out, scores_without


@dataclass
class KFold(Scored):
    """Σ_F Σ_{i ∈ F} p_i ‖k(x_i, ·) − μ_λ^(−F)‖² over folds F.

    It takes an eigendecomposition for each fold; on ``gram="blocks"``, one sequence of products for all of them.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds.
    seed : int, default=0
        The seed that deals the points out to the folds: at random, or, of a sample that is known by its features only,
        by a hash of each row, so that it does not matter how rows are batched; equal rows of a batch in turn.
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    n_splits: int = 5
    seed: int = 0
    grid: Any = None

    @property
    def least_points(self) -> int:  # type: ignore[override]
        """A point for each fold."""
        return self.n_splits if isinstance(self.n_splits, Integral) else 2

    def on_products(self, filters: Sequence[Shrinker], n: int) -> Rule:
        """Return itself: all folds take part in the same products."""
        check_filters(self, filters, truncated=False)
        return self

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the least score."""
        self.check_settings()
        if not isinstance(problem, ProductProblem):
            return super().choices(problem, filters)
        candidates = [candidates_of(self, self.grid, problem, filter) for filter in filters]
        return k_fold_choices(self, problem, candidates, self.folds(problem))

    def scores(self, problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the k-fold scores of every filter's parameters."""
        self.check_settings()
        if isinstance(problem, FeatureProblem):
            return self._of_features(problem, candidates)
        assert isinstance(problem, SampleProblem)
        dealt = self.folds(problem)
        alike = [np.stack([fold for fold in dealt if len(fold) == size]) for size in sorted({len(f) for f in dealt})]
        return summed([scores_with_folds_left_out(problem, problem.rows, folds, candidates) for folds in alike])

    def folds(self, problem: SampleProblem) -> list[Array]:
        """Return the rows of each fold, dealt out at random."""
        dealt = np.array_split(np.random.default_rng(self.seed).permutation(problem.n), self.n_splits)
        check_rest(self, 1 - max(float(problem.masses[fold].sum()) for fold in dealt))
        return dealt

    def check_settings(self) -> None:
        """Refuse a number of folds or a seed that is none."""
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise ValueError(refusal("KFold", "n_splits must be a whole number of at least 2", repr(self.n_splits)))
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise ValueError(refusal("KFold", "seed must be a whole number, not negative", repr(self.seed)))

    def _of_features(self, problem: FeatureProblem, candidates: Sequence[Candidates]) -> list[Array]:
        """Take the folds that the rows were dealt out to as they were summed up."""
        summary, V = problem.summary, problem.spectrum.V
        filled = summary.count > 0
        if filled.sum() < 2:
            got = f"all {problem.n} in one"
            advice = "fix the parameter with selection=Fixed(...)"
            raise ValueError(refusal("KFold", "rows in at least two folds are needed", got, advice))
        mass = summary.mass[filled] / summary.total_mass
        check_rest(self, 1 - float(mass.max()))
        covariance = V.T @ (summary.covariance[filled] / summary.total_mass) @ V
        held_out = HeldOut(
            mass=mass,
            squared_masses=summary.squared_masses[filled] / summary.total_mass**2,
            own=np.trace(covariance, axis1=1, axis2=2).sum(),
            mean=(summary.mean[filled] / summary.total_mass) @ V,
            covariance=covariance,
        )
        return scores_without(problem, held_out, candidates)
