"""Lepski's rule: shrink as long as the estimate moves by no more than its noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._messages import refusal
from muhat.filters import Shrinker
from muhat.gram import Access, SpectralProblem
from muhat.selection._base import Choice, Rule, candidates_of, checked_grid, choice_at, strengths_of

FACTOR = 4.0
"""How many stochastic errors an estimate may move."""


@dataclass
class Lepski(Rule):
    """The strongest shrinkage whose estimate stays within four stochastic errors of every weaker one.

    The stochastic error of μ_λ' is estimated by (Σ_i s_λ'(γ_i)² (γ_i − ⟨μ̂, v_i⟩²)/(n−1))^½: KME's own where s = 1. The
    scores it returns are the largest such ratio, in units of four stochastic errors: admissible up to 1.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    grid: Any = None

    least_points: ClassVar[int] = 2

    def check(self, filter: Shrinker) -> None:
        """Refuse a filter without a parameter, and a grid that does not fit."""
        if filter.parameterless:
            got = f"{type(filter).__name__}, which has no parameter"
            raise ValueError(refusal("Lepski", "a filter with a parameter is needed", got))
        if self.grid is not None:
            checked_grid(self, filter, self.grid)

    def needs(self, filter: Shrinker) -> Access:
        """All eigenpairs: distances of all pairs of estimates are taken."""
        return Access.SPECTRUM

    def choices(self, problem: SpectralProblem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return the choice for each filter."""
        return [self._choice(problem, filter) for filter in filters]

    def _choice(self, problem: SpectralProblem, filter: Shrinker) -> Choice:
        candidates = candidates_of(self, self.grid, problem, filter)
        grid = candidates.grid
        components = problem.components
        strengths = strengths_of(problem, candidates)
        s, at_zero = filter.on(components, grid), filter.at_zero(grid)
        noise = np.maximum(components.gamma - components.mean**2, 0) / (components.effective_size - 1)
        error = np.sqrt((s**2 * noise).sum(axis=-1))
        gap = (components.mean - components.target) ** 2

        # Distances of all pairs of estimates, ‖μ_λ − μ_λ'‖², a parameter at a time.
        distances = np.stack([((s - each) ** 2 * gap).sum(axis=-1) for each in s])
        between_zeros = (at_zero[:, None] - at_zero) ** 2
        distances = np.sqrt(distances + np.multiply.outer(between_zeros, problem.target_outside))
        weaker = np.moveaxis(strengths[..., :, None] > strengths[..., None, :], (-2, -1), (0, 1))
        without_error = np.where(distances > 0, np.inf, 0.0)
        ratio = np.divide(distances, FACTOR * error, out=without_error, where=error > 0)
        scores = np.moveaxis(np.where(weaker, ratio, 0).max(axis=1), 0, -1)
        index = np.where(scores <= 1, strengths, -np.inf).argmax(axis=-1)
        return choice_at(self, candidates, index, scores, strengths)
