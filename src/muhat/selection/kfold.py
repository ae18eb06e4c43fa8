"""K-fold cross-validation: the leave-one-out score with whole folds left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from muhat.arrays import Array
from muhat.messages import refusal
from muhat.problem import Problem
from muhat.selection.base import Candidates, Scored, check_rest
from muhat.selection.leave_out import scores_with_folds_left_out


@dataclass
class KFold(Scored):
    """Σ_F Σ_{i ∈ F} p_i ‖k(x_i, ·) − μ_λ^(−F)‖² over folds F: an eigendecomposition each.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds.
    seed : int, default=0
        The seed that deals the points out to the folds.
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

    def scores(self, problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the k-fold scores of every filter's parameters."""
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise ValueError(refusal("KFold", "n_splits must be a whole number of at least 2", repr(self.n_splits)))
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise ValueError(refusal("KFold", "seed must be a whole number, not negative", repr(self.seed)))
        dealt = np.array_split(np.random.default_rng(self.seed).permutation(problem.n), self.n_splits)
        check_rest(self, 1 - np.array([problem.masses[fold].sum() for fold in dealt]))
        sizes = sorted({len(fold) for fold in dealt})
        parts = [
            scores_with_folds_left_out(problem, np.stack([fold for fold in dealt if len(fold) == size]), candidates)
            for size in sizes
        ]
        return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
