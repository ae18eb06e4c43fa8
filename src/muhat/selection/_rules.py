"""The rules beside leave-one-out: generalised cross-validation, k-fold, Lepski's, and parameters that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import positive, whole_number
from muhat.filters import Filter, Shrinker
from muhat.gram import Access, BlockProblem, DenseProblem, Problem, SpectralProblem
from muhat.gram._problem import summed
from muhat.selection._base import (
    WORTHWHILE,
    Candidates,
    Choice,
    Rule,
    Scored,
    candidates_of,
    check_rest,
    checked_grid,
    choice_at,
    only_choice,
    strengths_of,
    with_open_end,
)
from muhat.selection._krylov import Krylov, Leading
from muhat.selection._leave_one_out import scores_with_folds_left_out, scores_without

LEADING = 100
"""Thresholds that truncated SVD chooses from on ``gram="blocks"``, one behind each of the leading eigenvalues."""

NO_ROWS = np.empty(0, np.int64)
"""The fold that leaves out nothing: the whole sample."""

FACTOR = 4.0
"""How many stochastic errors an estimate may move by Lepski's rule."""


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
        return [self._choice_on_blocks(cast(BlockProblem, problem), filter) for filter in filters]

    def _choice_on_blocks(self, problem: BlockProblem, filter: Shrinker) -> Choice:
        """Return truncated SVD's choice from the leading eigenpairs.

        What lies behind them is cut off by every candidate: the part of b = Aq − D f*(X) outside of them.
        """
        if self.grid is None:
            leading = Leading(problem, min(LEADING + 1, problem.n))
            candidates = Candidates(filter, leading.thresholds())
        else:
            candidates = Candidates(filter, checked_grid(self, filter, self.grid))
            leading = Leading.down_to(problem, float(candidates.grid.min()))
        kept = leading.kept(candidates.grid)
        residual = (1 - kept) @ leading.projected**2 + leading.behind
        scores = _gcv(residual, 1 - kept.sum(axis=-1) / problem.n)
        choice = self.least(problem, candidates, scores, leading.strengths(kept))
        return leading.with_solution(choice, kept[choice.index])

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
        return np.moveaxis(_gcv(residual, freedom), 0, -1)


def _gcv(residual: Array, freedom: Array) -> Array:
    """Return residual/freedom²; no freedom is interpolation, which says nothing and is chosen after all else."""
    return np.divide(residual, freedom**2, out=np.full_like(residual, np.inf), where=freedom > 0)


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
        krylov = Krylov(blocks, [*self.folds(blocks.masses), NO_ROWS])
        return [self._choice(krylov, *each) for each in zip(candidates, krylov.settle(candidates), strict=True)]

    def _choice(self, krylov: Krylov, candidates: Candidates, error: Array) -> Choice:
        problem, scores = krylov.problem, krylov.scores(candidates)
        choice = self.least(problem, candidates, scores, krylov.strengths(candidates))
        choice = with_open_end(choice) if self.grid is None else choice
        # A candidate that has not settled matters if it was chosen, or might have been.
        doubtful = scores - error * np.abs(self.scale(problem)) <= choice.score
        return krylov.with_solution(choice, candidates, error, doubtful)

    def scores(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the k-fold scores of every filter's parameters."""
        if problem.fold_sums is not None:
            check_rest(self, 1 - float(problem.fold_sums.mass.max()))
            return scores_without(problem, problem.fold_sums, candidates)
        dense = cast(DenseProblem, problem)
        folds = self.folds(dense.masses)
        alike = [np.stack([fold for fold in folds if len(fold) == size]) for size in sorted({len(f) for f in folds})]
        return summed([scores_with_folds_left_out(dense, dense.rows, candidates, some) for some in alike])

    def folds(self, masses: Array) -> list[Array]:
        """Return the rows of each fold, split at random."""
        folds = np.array_split(np.random.default_rng(self.random_state).permutation(len(masses)), self.n_splits)
        check_rest(self, 1 - max(float(masses[fold].sum()) for fold in folds))
        return folds


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
        super().check(filter)

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
            return self._choice_on_blocks(cast(BlockProblem, problem), candidates)
        few = isinstance(filter, Filter) and filter.products(candidates.grid[0]) <= problem.n
        if few and Access.PRODUCTS in problem.access and not problem.batch:
            return self._by_products(cast(DenseProblem, problem), cast(Filter, filter), candidates)
        return only_choice(self, candidates, strengths_of(cast(SpectralProblem, problem), candidates))

    def _choice_on_blocks(self, problem: BlockProblem, candidates: Candidates) -> Choice:
        if candidates.filter.needs == Access.LEADING:
            leading = Leading.down_to(problem, float(candidates.grid[0]))
            kept = leading.kept(candidates.grid)
            return leading.with_solution(only_choice(self, candidates, leading.strengths(kept)), kept[0])
        krylov = Krylov(problem, [NO_ROWS])
        [error] = krylov.settle([candidates])
        choice = only_choice(self, candidates, krylov.strengths(candidates))
        return krylov.with_solution(choice, candidates, error, np.ones(1, dtype=bool))

    def _by_products(self, problem: DenseProblem, filter: Filter, candidates: Candidates) -> Choice:
        """Run the filter's own iteration: fewer products with A than an eigendecomposition would cost."""
        parameter = candidates.grid[0]
        x = filter.by_products(problem.gram.product, problem.root_masses, problem.target_values, parameter)
        strength = problem.strength_of(x, filter.at_zero(candidates.grid)[0])
        choice = only_choice(self, candidates, np.array([strength]))
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
