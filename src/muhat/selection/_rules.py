"""Generalised cross-validation, k-fold, and rules that know the parameter: Fixed and Rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from operator import add
from typing import Any, cast

import numpy as np

from muhat._arrays import Array
from muhat._validation import positive, whole_number
from muhat.errors import MuhatError
from muhat.filters import Filter, Shrinker
from muhat.gram import Access, BlockProblem, DenseProblem, Problem, SpectralProblem
from muhat.gram._in_memory import InMemoryProblem
from muhat.selection._base import (
    Candidates,
    Choice,
    Rule,
    Scored,
    Scores,
    bias_factor_on,
    candidates_of,
    check_remaining_mass,
    checked_bias_factor,
    checked_grid,
    gcv_scores,
    only_choice,
    strengths_of,
)
from muhat.selection._krylov import Krylov, Leading
from muhat.selection._leave_one_out import HeldOutFits, held_out_fits

__all__ = ["GCV", "Fixed", "KFold", "ParameterRule", "Rate"]

N_LEADING = 100
"""Most thresholds of truncated SVD on ``gram="blocks"``, one per leading eigenvalue."""

NO_ROWS = np.empty(0, np.int64)
"""The fold that leaves out nothing: the whole sample."""


@dataclass
class GCV(Scored):
    """GCV(λ) = (1/n)‖Kβ − K1_n‖² / (1 − tr s_λ(A)/n)².

    It cannot choose the parameter of a constant filter, for which the score is the same for all λ.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    name = "gcv"
    grid: Any = None

    def needs(self, filter: Shrinker) -> Access:
        """All eigenpairs; for truncated SVD, the leading ones are enough."""
        if filter.needs == Access.LEADING:
            return filter.needs
        return Access.SPECTRUM

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the filter treats components differently: else the score is flat."""
        return not filter.constant

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        if Access.SPECTRUM in problem.access:
            return super().choices(cast(SpectralProblem, problem), filters)
        return [self._choice_on_blocks(cast(BlockProblem, problem), filter) for filter in filters]

    def _choice_on_blocks(self, problem: BlockProblem, filter: Shrinker) -> Choice:
        """Return truncated SVD's choice from the leading eigenpairs.

        What lies behind them is cut off by every candidate: the part of b = Aq − D f*(X) outside of
        them.
        """
        if self.grid is None:
            leading = Leading(problem, min(N_LEADING + 1, problem.n))
            candidates = Candidates(filter, leading.thresholds())
        else:
            candidates = Candidates(filter, checked_grid(self, filter, self.grid))
            leading = Leading.down_to(problem, float(candidates.grid.min()))
        kept = leading.kept(filter, candidates.grid)
        residual = (1 - kept) @ leading.projected**2 + leading.behind
        gains = -gcv_scores(residual, 1 - kept.sum(axis=-1) / problem.n, problem.n)
        choice = self.largest(problem, candidates, gains, leading.strengths(kept), 0.0)
        return leading.with_solution(choice, kept[choice.index])

    def prepare(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> GCVScores:
        return GCVScores(problem, candidates)


class GCVScores(Scores):
    """Generalised cross-validation: a gain is minus the score, as that of KME is 0/0."""

    unshrunk: Array = np.zeros(())

    def gains(self, place: int, grid: Array) -> Array:
        """Return minus the GCV scores of a filter's parameters."""
        filter, components = self.filters[place], self.problem.components
        if filter.constant:
            needed = "a filter that shrinks components by different amounts is needed"
            got = f"{type(filter).__name__}, for which all parameters have the same score"
            raise MuhatError("GCV", needed, got, "use selection='loo' for it")
        r = 1 - filter.on(components, grid)
        gap = components.gamma * (components.mean - components.target) ** 2
        unseen = (self.problem.n - r.shape[-1]) * (1 - filter.at_zero(grid))
        freedom = (r.sum(axis=-1) + unseen.reshape(-1, *[1] * (r.ndim - 2))) / self.problem.n
        scores = gcv_scores((r**2 * gap).sum(axis=-1), freedom, self.problem.n)
        return -np.moveaxis(scores, 0, -1)


@dataclass
class KFold(Scored):
    """Σ_F Σ_{i ∈ F} p_i ‖k(x_i, ·) − μ_λ^(−F)‖² over folds F.

    It needs one eigendecomposition for each fold; with ``gram="blocks"``, one sequence of products
    for all folds.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds.
    random_state : int, default=0
        The seed of the split into folds. Rows in memory are split at random. Rows in batches are
        split by a hash of each row, so that the batches do not matter; equal rows of a batch are
        put into the folds in turn.
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    bias_factor : float, 'auto' or None, default=None
        How often the squared bias is counted, as in ``LeaveOneOut``.
    """

    name = "kfold"
    n_splits: int = 5
    random_state: int = 0
    grid: Any = None
    bias_factor: Any = None

    @property
    def least_points(self) -> int:  # type: ignore[override]
        """A point for each fold."""
        if isinstance(self.n_splits, Integral):
            return self.n_splits
        return 2

    def check(self, filter: Shrinker) -> None:
        super().check(filter)
        whole_number(self, "n_splits", self.n_splits, 2)
        whole_number(self, "random_state", self.random_state, 0)
        checked_bias_factor(self, self.bias_factor)

    def needs(self, filter: Shrinker) -> Access:
        """Products with A, in which all folds take part.

        All eigenpairs for filters that take any.
        """
        if filter.needs == Access.PRODUCTS:
            return filter.needs
        return Access.SPECTRUM

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        if Access.SPECTRUM in problem.access:
            return super().choices(cast(SpectralProblem, problem), filters)
        blocks = cast(BlockProblem, problem)
        candidates = [candidates_of(self, filter, blocks) for filter in filters]
        factor = bias_factor_on(self.bias_factor, blocks)
        krylov = Krylov(blocks, [*self.folds(blocks.masses), NO_ROWS], candidates, factor)
        return [krylov.with_solution(choice) for choice in self.refined(krylov, candidates)]

    def prepare(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> FoldScores:
        factor = bias_factor_on(self.bias_factor, problem)
        if problem.fold_sums is not None:
            check_remaining_mass(1 - float(problem.fold_sums.mass.max()))
            return FoldScores(
                problem, candidates, HeldOutFits.from_held_out(problem, problem.fold_sums), factor
            )
        dense = cast(DenseProblem, problem)
        folds = self.folds(dense.masses)
        alike = []
        for size in sorted({len(fold) for fold in folds}):
            alike.append(np.stack([fold for fold in folds if len(fold) == size]))
        without = reduce(add, (held_out_fits(dense, dense.rows, some) for some in alike))
        return FoldScores(dense, candidates, without, factor)

    def folds(self, masses: Array) -> list[Array]:
        """Return the rows of each fold, split at random."""
        folds = np.array_split(
            np.random.default_rng(self.random_state).permutation(len(masses)), self.n_splits
        )
        check_remaining_mass(1 - max(float(masses[fold].sum()) for fold in folds))
        return folds


class FoldScores(Scores):
    """The scores of folds that are left out by refits."""

    without: HeldOutFits
    unshrunk: Array
    bias_factor: Array

    def __init__(
        self,
        problem: SpectralProblem,
        candidates: Sequence[Candidates],
        without: HeldOutFits,
        bias_factor: Array,
    ) -> None:
        super().__init__(problem, candidates)
        self.without, self.unshrunk, self.bias_factor = without, without.unshrunk, bias_factor

    def gains(self, place: int, grid: Array) -> Array:
        factor = np.where(np.isfinite(self.bias_factor), self.bias_factor, 1.0)
        return self.without.gains(self.filters[place], grid, factor)


class ParameterRule(Rule):
    """A rule that knows its parameter without looking at the eigenvalues."""

    def parameter(self, filter: Shrinker, n: int) -> Array:
        """Return the parameter, checked, as an array of one."""
        raise NotImplementedError

    def check(self, filter: Shrinker) -> None:
        self.parameter(filter, n=2)

    def needs(self, filter: Shrinker) -> Access:
        """What the estimate itself takes."""
        return filter.needs

    def choices(self, problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
        return [self._choice(problem, filter) for filter in filters]

    def _choice(self, problem: Problem, filter: Shrinker) -> Choice:
        candidates = Candidates(filter, self.parameter(filter, problem.n))
        # Fewer products with A than rows cost less than an eigendecomposition.
        few = isinstance(filter, Filter) and filter.n_products(candidates.grid[0]) <= problem.n
        by_products = Access.PRODUCTS in problem.access and few and not problem.batch
        if filter.constant or (Access.SPECTRUM in problem.access and not by_products):
            return only_choice(
                self, candidates, strengths_of(cast(SpectralProblem, problem), candidates)
            )
        if filter.needs == Access.LEADING:
            leading = Leading.down_to(cast(BlockProblem, problem), float(candidates.grid[0]))
            kept = leading.kept(filter, candidates.grid)
            return leading.with_solution(
                only_choice(self, candidates, leading.strengths(kept)), kept[0]
            )
        krylov = Krylov(cast(InMemoryProblem, problem), [NO_ROWS], [candidates])
        return krylov.with_solution(
            only_choice(self, candidates, krylov.strengths(0, candidates.grid))
        )


@dataclass
class Fixed(ParameterRule):
    """The parameter you give as ``value``: λ, or the number of iterations t."""

    value: Any

    def parameter(self, filter: Shrinker, n: int) -> Array:
        grid = checked_grid(self, filter, self.value)
        if len(grid) != 1:
            advice = "give a grid to LeaveOneOut, GCV or KFold"
            raise MuhatError("Fixed", "one value is needed", self.value, advice)
        return grid


@dataclass
class Rate(ParameterRule):
    """λ = c n^(−β): the choice of Theorem 1 and of the paper's appendix.

    For iterations, t is the number that acts as λ.

    Parameters
    ----------
    c, beta : float, default=1.0 and 1.5
        c > 0 and β > 0; Theorem 1 needs β > 1.
    """

    name = "rate"
    c: float = 1.0
    beta: float = 1.5

    def parameter(self, filter: Shrinker, n: int) -> Array:
        lam = positive(self, "c", self.c) * n ** -positive(self, "beta", self.beta)
        if not isinstance(filter, Filter):
            got = f"{type(filter).__name__}, which has none"
            raise MuhatError("Rate", "a filter with a parameter λ is needed", got)
        return checked_grid(self, filter, filter.from_lambda(lam))
