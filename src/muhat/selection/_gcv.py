"""Generalised cross-validation, the paper's rule for truncated SVD."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Shrinker, TruncatedSVD
from muhat.gram import Problem, ProductProblem
from muhat.selection._base import Candidates, Choice, Rule, Scored, checked_grid
from muhat.selection._by_products import gcv_choice


@dataclass
class GCV(Scored):
    """GCV(λ) = (1/n)‖Kβ − K1_n‖² / (1 − tr s_λ(A)/n)².

    It cannot choose for a constant filter: numerator and denominator then shrink alike, whatever λ.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    grid: Any = None

    def on_products(self, filters: Sequence[Shrinker], n: int) -> Rule:
        """Return itself for truncated SVD, which the leading eigenpairs are enough for; refuse others."""
        if all(isinstance(filter, TruncatedSVD) for filter in filters):
            return self
        return super().on_products(filters, n)

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the least score."""
        if not isinstance(problem, ProductProblem):
            return super().choices(problem, filters)
        grids = [None if self.grid is None else checked_grid(self, filter, self.grid) for filter in filters]
        return [gcv_choice(self, problem, *each) for each in zip(filters, grids, strict=True)]

    def scale(self, problem: Problem) -> Array:
        """Return ‖Aq‖², the score's numerator at full shrinkage."""
        return problem.squared_mean_values

    def scores(self, problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the GCV scores of every filter's parameters."""
        return [self._scores(problem, each) for each in candidates]

    def _scores(self, problem: Problem, candidates: Candidates) -> Array:
        filter, components = candidates.filter, problem.components
        if filter.constant:
            needed = "a filter that treats components differently is needed"
            advice = "use selection='loo' for it"
            raise ValueError(refusal("GCV", needed, f"{type(filter).__name__}, whose score is flat", advice))
        r = 1 - filter.on(components, candidates.grid)
        gap = components.gamma * (components.mean - components.target) ** 2
        unseen = (problem.n - r.shape[-1]) * (1 - filter.at_zero(candidates.grid))
        freedom = (r.sum(axis=-1) + unseen.reshape(-1, *[1] * (r.ndim - 2))) / problem.n
        residual = (r**2 * gap).sum(axis=-1)
        # No residual and no freedom is interpolation: it tells nothing, and is never chosen before something that does.
        scores = np.divide(residual, freedom**2, out=np.full_like(residual, np.inf), where=freedom > 0)
        return np.moveaxis(scores, 0, -1)
