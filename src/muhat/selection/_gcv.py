"""Generalised cross-validation, the paper's rule for truncated SVD."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Shrinker
from muhat.gram import Access, BlockProblem, Problem, SpectralProblem
from muhat.selection._base import WORTHWHILE, Candidates, Choice, Scored, checked_grid
from muhat.selection._by_products import gcv_choice, gcv_scores


@dataclass
class GCV(Scored):
    """GCV(λ) = (1/n)‖Kβ − K1_n‖² / (1 − tr s_λ(A)/n)².

    It cannot choose for a constant filter, as numerator and denominator then shrink alike, whatever λ.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    grid: Any = None

    def needs(self, filter: Shrinker) -> Access:
        """All eigenpairs; for truncated SVD, the leading ones are enough."""
        return filter.needs if filter.needs == Access.LEADING else Access.SPECTRUM

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the filter treats components differently: else the score is flat."""
        return not filter.constant

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the least score."""
        if Access.SPECTRUM in problem.access:
            return super().choices(cast(SpectralProblem, problem), filters)
        grids = [None if self.grid is None else checked_grid(self, filter, self.grid) for filter in filters]
        blocks = cast(BlockProblem, problem)
        return [gcv_choice(self, blocks, *each) for each in zip(filters, grids, strict=True)]

    def scale(self, problem: Problem) -> Array:
        """Return ‖Aq‖², the score's numerator at full shrinkage."""
        return problem.squared_mean_values

    def worthwhile(self, problem: SpectralProblem) -> float:
        """Return by how much a score must fall for a grid to be widened: a share of its scale."""
        return WORTHWHILE * float(self.scale(problem))

    def scores(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the GCV scores of every filter's parameters."""
        return [self._scores_of(problem, each) for each in candidates]

    def _scores_of(self, problem: SpectralProblem, candidates: Candidates) -> Array:
        filter, components = candidates.filter, problem.components
        if filter.constant:
            needed, advice = "a filter that treats components differently is needed", "use selection='loo' for it"
            raise ValueError(refusal("GCV", needed, f"{type(filter).__name__}, whose score is flat", advice))
        r = 1 - filter.on(components, candidates.grid)
        gap = components.gamma * (components.mean - components.target) ** 2
        unseen = (problem.n - r.shape[-1]) * (1 - filter.at_zero(candidates.grid))
        freedom = (r.sum(axis=-1) + unseen.reshape(-1, *[1] * (r.ndim - 2))) / problem.n
        residual = (r**2 * gap).sum(axis=-1)
        return np.moveaxis(gcv_scores(residual, freedom), 0, -1)
