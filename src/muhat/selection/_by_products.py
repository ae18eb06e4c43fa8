"""Selection where only products with A are to be had: the rules' work on ``gram="blocks"``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Shrinker, TruncatedSVD
from muhat.gram import Access, BlockProblem
from muhat.gram._problem import quotient
from muhat.selection._base import Candidates, Choice, Rule, Scored, choice_at, warned_at_edge
from muhat.selection._krylov import MEMORY, Krylov

LEADING = 100
"""Thresholds that truncated SVD chooses from, one behind each of the leading eigenvalues."""


def k_fold_choices(
    rule: Scored, problem: BlockProblem, candidates: Sequence[Candidates], folds: Sequence[Array]
) -> list[Choice]:
    """Return the choice of each filter by its score on the folds; the whole sample is one column more."""
    krylov = Krylov(problem, [*folds, np.empty(0, np.int64)])
    errors = krylov.settle(candidates)
    scores = [krylov.scores(each) for each in candidates]
    choices = []
    for each, score, error in zip(candidates, scores, errors, strict=True):
        choice = rule.least(problem, each, score, krylov.strengths(each))
        # A candidate that has not settled matters if it was chosen, or might have been.
        doubtful = (error > krylov.tolerance) & (score - error * np.abs(rule.scale(problem)) <= choice.score)
        if doubtful.any():
            _warn(rule, each.filter, krylov.steps, float(error[doubtful].max()))
        if rule.grid is None:
            warned_at_edge(choice)
        choices.append(_with_solution(choice, krylov, each, error))
    return choices


def given_choice(rule: Rule, problem: BlockProblem, candidates: Candidates) -> Choice:
    """Return the choice of a given parameter."""
    if candidates.filter.needs == Access.LEADING:
        leading = _Leading.down_to(problem, float(candidates.grid[0]))
        kept = leading.kept(candidates.grid)
        choice = choice_at(rule, candidates, np.array(0), np.full(1, np.nan), leading.strengths(kept))
        return leading.with_solution(choice, kept[0])
    krylov = Krylov(problem, [np.empty(0, np.int64)])
    [error] = krylov.settle([candidates])
    if error[0] > krylov.tolerance:
        _warn(rule, candidates.filter, krylov.steps, float(error[0]))
    choice = choice_at(rule, candidates, np.array(0), np.full(1, np.nan), krylov.strengths(candidates))
    return _with_solution(choice, krylov, candidates, error)


def gcv_choice(rule: Scored, problem: BlockProblem, filter: Shrinker, grid: Array | None) -> Choice:
    """Return truncated SVD's choice by generalised cross-validation, from the leading eigenpairs.

    What lies behind them is cut off by every candidate: the part of b = Aq − D f*(X) outside of them.
    """
    if grid is None:
        leading = _Leading(problem, min(LEADING + 1, problem.n))
        grid = leading.thresholds()
    else:
        leading = _Leading.down_to(problem, float(grid.min()))
    candidates = Candidates(filter, grid)
    kept = leading.kept(grid)
    residual = (1 - kept) @ leading.projected**2 + leading.behind
    freedom = 1 - kept.sum(axis=-1) / problem.n
    choice = rule.least(problem, candidates, gcv_scores(residual, freedom), leading.strengths(kept))
    return leading.with_solution(choice, kept[choice.index])


def gcv_scores(residual: Array, freedom: Array) -> Array:
    """Return residual/freedom²; no freedom is interpolation, which says nothing and is chosen after all else."""
    return np.divide(residual, freedom**2, out=np.full_like(residual, np.inf), where=freedom > 0)


def _with_solution(choice: Choice, krylov: Krylov, candidates: Candidates, error: Array) -> Choice:
    solution = None
    if not candidates.filter.constant:
        solution = krylov.problem.root_masses * krylov.solution(candidates, choice.index)
    return replace(choice, solution=solution, residual=float(error[choice.index]))


def _warn(rule: Rule, filter: Shrinker, steps: int, residual: float) -> None:
    warnings.warn(
        f"{type(rule).__name__}: {filter!r} has not settled after {steps} products with A, all that {MEMORY // 10**6} "
        f"MB of memory allow; its relative error is about {residual:.1g}, less with a larger λ or fewer iterations.",
        UserWarning,
        stacklevel=4,
    )


class _Leading:
    """The leading eigenpairs of A, with what a sample is in their terms."""

    def __init__(self, problem: BlockProblem, count: int) -> None:
        self.problem = problem
        self.pairs = problem.gram.leading(count)
        self.residual = problem.gram.residual(self.pairs)
        b = problem.mean_values - problem.target_values
        self.projected = self.pairs.project(b)
        self.behind = float(np.sum((b - self.pairs.U @ self.projected) ** 2))
        mean_squared = float(problem.root_masses @ (problem.mean_values - 2 * problem.target_values))
        self.distance = mean_squared + problem.target_squared_norm  # ‖μ̂ − f*‖²

    @classmethod
    def down_to(cls, problem: BlockProblem, threshold: float) -> _Leading:
        """Return as many as reach down to a threshold."""
        count = min(8, problem.n)
        allowed = MEMORY // (3 * problem.n * problem.root_masses.itemsize)  # the search holds twice as many vectors
        while True:
            leading = cls(problem, count)
            if leading.pairs.gamma[0] < threshold or count == problem.n:
                return leading
            if count >= allowed:
                needed = f"λ must leave no more than {allowed} components, which is what memory allows"
                raise ValueError(refusal("TruncatedSVD", needed, f"λ = {threshold:.3g}", "use a larger λ"))
            count = min(2 * count, problem.n, max(allowed, 1))

    def thresholds(self) -> Array:
        """Return the thresholds between neighbours, ascending; none below the last, of which no neighbour is known."""
        grid = TruncatedSVD.between(self.pairs.gamma)
        complete = len(self.pairs.gamma) == self.problem.n or self.pairs.gamma[0] == 0
        return grid if complete or len(grid) == 1 else grid[1:]

    def kept(self, grid: Array) -> Array:
        """Return which components each threshold keeps, shape (parameters, components), as numbers."""
        gamma = self.pairs.gamma
        return ((gamma >= grid[:, None]) & (gamma > 0)).astype(np.float64)

    def strengths(self, kept: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖: what is not kept, of all there is."""
        own = quotient(self.projected**2, self.pairs.gamma)
        behind = max(self.distance - float(own.sum()), 0.0)
        moved, whole = (1 - kept) @ own + behind, float(own.sum()) + behind
        return np.sqrt(moved / whole) if whole else np.zeros(len(kept))

    def with_solution(self, choice: Choice, kept: Array) -> Choice:
        """Return the choice with x, the projection of q on the components that are kept, towards the target."""
        towards = quotient(self.pairs.project(self.problem.target_values), self.pairs.gamma)
        x = self.pairs.U @ (kept * (self.pairs.coordinates - towards)).astype(self.problem.dtype)
        return replace(choice, solution=self.problem.root_masses * x, residual=self.residual)
