"""Parameters that are not chosen from the data: given, or given by a rate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import positive
from muhat.filters import Filter, Shrinker
from muhat.gram import Access, BlockProblem, DenseProblem, Problem, SpectralProblem
from muhat.selection._base import Candidates, Choice, Rule, checked_grid, choice_at, strengths_of
from muhat.selection._by_products import given_choice


class Given(Rule):
    """A rule that knows its parameter without looking at the eigenvalues."""

    def parameter(self, filter: Shrinker, n: int) -> Array:
        """Return the parameter, checked, as an array of one."""
        raise NotImplementedError

    def check(self, filter: Shrinker) -> None:
        """Refuse a parameter that does not fit the filter."""
        self.parameter(filter, n=2)

    def needs(self, filter: Shrinker) -> Access:
        """What the estimate itself takes."""
        return filter.needs

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return the given parameter for each filter, with its strength."""
        return [self._choice(problem, filter) for filter in filters]

    def _choice(self, problem: Problem, filter: Shrinker) -> Choice:
        candidates = Candidates(filter, self.parameter(filter, problem.n))
        if Access.SPECTRUM not in problem.access and not filter.constant:
            return given_choice(self, cast(BlockProblem, problem), candidates)
        few = isinstance(filter, Filter) and filter.products(candidates.grid[0]) <= problem.n
        if few and Access.PRODUCTS in problem.access and not problem.batch:
            return self._by_products(cast(DenseProblem, problem), cast(Filter, filter), candidates)
        strengths = strengths_of(cast(SpectralProblem, problem), candidates)
        index = np.zeros(strengths.shape[:-1], dtype=np.int64)
        return choice_at(self, candidates, index, np.full(strengths.shape, np.nan), strengths)

    def _by_products(self, problem: DenseProblem, filter: Filter, candidates: Candidates) -> Choice:
        """Run the filter's own iteration: fewer products with A than an eigendecomposition would cost."""
        parameter = candidates.grid[0]
        x = filter.by_products(problem.gram.product, problem.root_masses, problem.target_values, parameter)
        strength = problem.strength_of(x, filter.at_zero(candidates.grid)[0])
        choice = choice_at(self, candidates, np.array(0), np.full(1, np.nan), np.array([strength]))
        return replace(choice, solution=problem.root_masses * x)


@dataclass
class Fixed(Given):
    """The parameter you give: λ, or the number of iterations t.

    Parameters
    ----------
    value : float or int
        The parameter.
    """

    value: Any

    def parameter(self, filter: Shrinker, n: int) -> Array:
        """Return the value, checked."""
        grid = checked_grid(self, filter, self.value)
        if len(grid) != 1:
            advice = "give a grid to LeaveOneOut, GCV, KFold or Lepski"
            raise ValueError(refusal("Fixed", "one value is needed", self.value, advice))
        return grid


@dataclass
class Rate(Given):
    """λ = c n^(−β): the choice of Theorem 1 and of the paper's appendix; for iterations, the t that acts as λ.

    Parameters
    ----------
    c : float, default=1.0
        c > 0.
    beta : float, default=1.5
        β > 0; Theorem 1 needs β > 1.
    """

    c: float = 1.0
    beta: float = 1.5

    def parameter(self, filter: Shrinker, n: int) -> Array:
        """Return the parameter that acts as λ = c n^(−β)."""
        lam = positive(self, "c", self.c) * n ** -positive(self, "beta", self.beta)
        if not isinstance(filter, Filter):
            got = f"{type(filter).__name__}, which has none"
            raise ValueError(refusal("Rate", "a filter with a parameter λ is needed", got))
        return checked_grid(self, filter, filter.from_lambda(lam))
