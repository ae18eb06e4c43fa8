"""What a selection rule is, and what it returns: a choice that says why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.filters import Shrinker
from muhat.gram import Access, Problem, SpectralProblem

TIE = 2e-10
"""Scores closer than this, relative to their scale, are one score; in float32, closer than 16 rounding units."""

WIDENINGS = 3
"""How often a grid is widened where the choice is at its end."""

NEGLIGIBLE = 1e-2
"""A strength up to which next to nothing is gained by shrinking less; its square is as near to shrinking all."""

WORTHWHILE = 1e-3
"""The share of KME's risk, or of the score's scale, that a wider grid must gain."""

LEAST_REST = 1e-3
"""The mass that must be left when points are left out: with less, what they hide has lost its digits."""


@dataclass(frozen=True)
class Candidates:
    """A filter with the parameters to choose from."""

    filter: Shrinker
    grid: Array


@dataclass(frozen=True, repr=False)
class Choice:
    """A filter's parameter, and what it was chosen from.

    For a batch of samples, every attribute but ``rule``, ``filter`` and ``grid`` has the batch's leading dimensions.

    Attributes
    ----------
    rule : Rule
        The rule that chose.
    filter : Shrinker
        The filter.
    parameter : float or int
        λ, or the number of iterations t; None where the filter has none.
    index : int
        Its place in the grid.
    grid, scores, strengths : array of shape (parameters,)
        The candidates, with the score and the strength of each: the smaller a score, the better; no score (NaN) where
        a rule needs none.
    score, strength : float
        Those of the chosen one; the strength is ‖μ̂ − μ_λ‖/‖μ̂ − f*‖, of which 0 leaves the empirical mean as it is and
        1 is the target.
    at_edge : bool
        Whether the choice is the first or last of several candidates, so that a wider grid might do better.
    """

    rule: Rule
    filter: Shrinker
    parameter: Any
    index: Any
    grid: Array
    scores: Array
    strengths: Array
    at_edge: Any
    solution: Array | None = None
    """β, where products with A alone have found it."""
    residual: float | None = None
    """The relative residual or error estimate of the solver, where one iterated."""
    has_open_end: bool = False
    """Whether the choice is at the end of a grid that was too dear to widen."""

    def __repr__(self) -> str:
        parameter = "" if self.parameter is None else f"parameter={self.parameter!r}, "
        edge = ", at_edge=True" if np.any(self.at_edge) else ""
        return f"Choice({self.filter!r}, {parameter}score={self.score!r}, strength={self.strength!r}{edge})"

    @property
    def score(self) -> Any:
        """The score of the chosen parameter."""
        return self._chosen(self.scores)

    @property
    def strength(self) -> Any:
        """The strength of the chosen parameter."""
        return self._chosen(self.strengths)

    @property
    def shrinkage_at_zero(self) -> Any:
        """s(0) for the chosen parameter."""
        return _plain(self.filter.at_zero(self.grid)[self.index])

    def _chosen(self, values: Array) -> Any:
        return _plain(np.take_along_axis(values, np.asarray(self.index)[..., None], axis=-1)[..., 0])

    def shrinkage(self, problem: SpectralProblem) -> Array:
        """Return s of every component for the chosen parameter."""
        if np.ndim(self.index) == 0:
            return self.filter.on(problem.components, self.grid[[self.index]])[0]
        s = self.filter.on(problem.components, self.grid)
        return np.take_along_axis(s, np.asarray(self.index)[None, ..., None], axis=0)[0]

    def weights(self, problem: Problem) -> Array:
        """Return β, the weights of the chosen estimate on the sample."""
        if self.solution is not None:
            return self.solution
        if self.filter.constant:
            return np.multiply.outer(self.shrinkage_at_zero, problem.mean_weights).astype(problem.dtype)
        spectral = cast(SpectralProblem, problem)
        return spectral.weights(self.shrinkage(spectral), self.shrinkage_at_zero)


class Rule(BaseEstimator, ABC):
    """A way to choose a filter's parameter."""

    comparable: ClassVar[bool] = False
    """Whether scores of different filters can be compared, as ``filter="auto"`` does."""
    least_points: ClassVar[int] = 1
    grid: Any = None

    def check(self, filter: Shrinker) -> None:
        """Refuse settings that are none, and a filter that the rule cannot choose for: before the first row is read."""
        if self.grid is not None:
            checked_grid(self, filter, self.grid)

    @abstractmethod
    def needs(self, filter: Shrinker) -> Access:
        """Return what must be known of the Gram operator to choose for a filter."""

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the rule can choose for a filter on n points, for the price of a few eigendecompositions."""
        return True

    @abstractmethod
    def choices(self, problem: Any, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return a choice for each filter; what they have in common is computed once."""

    def choose(self, problem: Problem, filter: Shrinker) -> Choice:
        """Return the choice for one filter."""
        return self.choices(problem, [filter])[0]

    def best(self, problem: Problem, choices: Sequence[Choice]) -> Choice:
        """Return the best of the choices for several filters, where the rule can compare them."""
        [only] = choices
        return only


def check_rest(rule: Rule, rest: float) -> None:
    """Refuse masses so uneven that next to nothing is left when some points are left out."""
    if rest < LEAST_REST:
        needed = f"at least {100 * LEAST_REST:g} % of the mass must be left when points are left out"
        advice = "drop the heaviest points or fix the parameter with selection=Fixed(...)"
        raise ValueError(refusal(type(rule).__name__, needed, f"{100 * rest:.2g} %", advice))


class Scored(Rule):
    """A rule that minimises a score over a grid."""

    comparable: ClassVar[bool] = True

    @abstractmethod
    def scores(self, problem: Any, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the scores of every filter's parameters, shape (..., parameters) each."""

    def scale(self, problem: Problem) -> Array:
        """Return the size that a score has before anything cancels in it, by which ties are judged."""
        return problem.left_out.base.sum(axis=-1)

    def tie(self, problem: Problem) -> Array:
        """Return the difference up to which two scores are one."""
        return max(TIE, 16 * float(np.finfo(problem.dtype).eps)) * np.abs(self.scale(problem))

    def worthwhile(self, problem: SpectralProblem) -> float:
        """Return by how much a score must fall for a grid to be widened: a share of KME's risk."""
        return WORTHWHILE * float(problem.spectrum.risk)

    def best(self, problem: Problem, choices: Sequence[Choice]) -> Choice:
        """Return the choice with the least score; of equal ones, the one that shrinks least."""
        if len(choices) == 1:
            return choices[0]
        least = min(choice.score for choice in choices)
        tied = [choice for choice in choices if choice.score <= least + self.tie(problem)]
        return tied[int(np.argmin([choice.strength for choice in tied]))]

    def choices(self, problem: SpectralProblem, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the least score; of equal ones, the one that shrinks least.

        Where that is at the end of a filter's own grid, the grid is widened as long as this lowers the score.
        """
        choices = self._least(problem, [candidates_of(self, self.grid, problem, filter) for filter in filters])
        if self.grid is not None or problem.batch or Access.SPECTRUM not in problem.access:
            return choices
        if Access.PRODUCTS not in problem.access and Access.ROWS in self.needs(filters[0]):  # a pass over the rows
            return [with_open_end(choice) for choice in choices]
        for _ in range(WIDENINGS):
            beyond = {place: beyond_edge(choice) for place, choice in enumerate(choices)}
            beyond = {place: grid for place, grid in beyond.items() if len(grid)}
            if not beyond:
                break
            found = self._least(problem, [Candidates(choices[place].filter, grid) for place, grid in beyond.items()])
            better = {
                place: more
                for place, more in zip(beyond, found, strict=True)
                if more.score < choices[place].score - self.worthwhile(problem)
            }
            if not better:
                break
            for place, more in better.items():
                choices[place] = self._joined(problem, choices[place], more)
        return choices

    def _least(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> list[Choice]:
        strengths = [strengths_of(problem, each) for each in candidates]
        scores = self.scores(problem, candidates)
        return [self.least(problem, *each) for each in zip(candidates, scores, strengths, strict=True)]

    def _joined(self, problem: Problem, choice: Choice, more: Choice) -> Choice:
        """Return the choice from two grids of one filter."""
        order = np.argsort([*choice.grid, *more.grid], kind="stable")
        grid, scores, strengths = (
            np.concatenate([getattr(choice, name), getattr(more, name)])[order]
            for name in ("grid", "scores", "strengths")
        )
        return self.least(problem, Candidates(choice.filter, grid), scores, strengths)

    def least(self, problem: Problem, candidates: Candidates, scores: Array, strengths: Array) -> Choice:
        """Return the choice with the least score; of equal ones, the one that shrinks least."""
        tied = scores <= scores.min(axis=-1, keepdims=True) + np.asarray(self.tie(problem))[..., None]
        index = np.where(tied, strengths, np.inf).argmin(axis=-1)
        return choice_at(self, candidates, index, scores, strengths)


def candidates_of(rule: Rule, grid: Any, problem: Problem, filter: Shrinker) -> Candidates:
    """Return a filter with the grid the user gave, or its own if there is none."""
    if grid is not None:
        return Candidates(filter, checked_grid(rule, filter, grid))
    return Candidates(filter, np.zeros(1) if filter.parameterless else filter.grid(problem))


def checked_grid(rule: Rule, filter: Shrinker, grid: Any) -> Array:
    """Return parameters given by the user, or refuse those that do not fit the filter."""
    if filter.parameterless:
        name = type(filter).__name__
        raise ValueError(refusal(type(rule).__name__, f"{name} has no parameter to give", grid, "leave it out"))
    return np.unique(filter.check(grid))


def strengths_of(problem: SpectralProblem, candidates: Candidates) -> Array:
    """Return how far each candidate moves μ̂ towards the target, shape (..., parameters); refuse what is no number."""
    filter, grid = candidates.filter, candidates.grid
    with np.errstate(all="ignore"):
        at_zero = filter.at_zero(grid)
        if filter.constant:
            return np.broadcast_to(np.abs(1 - at_zero), (*problem.batch, len(at_zero)))
        s = np.asarray(filter.on(problem.components, grid))
    check_shrinkage(candidates, problem.components.gamma, s, at_zero)
    return problem.strengths(s, at_zero)


def check_shrinkage(candidates: Candidates, gamma: Array, s: Array, at_zero: Array) -> None:
    """Refuse what a filter gives for the eigenvalues and for zero if it is not one finite real number for each."""
    shape = (len(candidates.grid), *gamma.shape)
    if s.shape != shape or np.iscomplexobj(s) or not (np.isfinite(s).all() and np.isfinite(at_zero).all()):
        needed = f"s must be a finite real number for each γ in [0, {float(gamma.max(initial=0.0)):.3g}], zero included"
        kind = "complex" if np.iscomplexobj(s) else "real, some of them NaN or infinite"
        raise ValueError(refusal(type(candidates.filter).__name__, needed, f"shape {s.shape} for {shape}, {kind}"))


def choice_at(rule: Rule, candidates: Candidates, index: Array, scores: Array, strengths: Array) -> Choice:
    """Return the choice of one candidate (of one for each sample of a batch)."""
    last = len(candidates.grid) - 1
    return Choice(
        rule=rule,
        filter=candidates.filter,
        parameter=None if candidates.filter.parameterless else _plain(candidates.grid[index]),
        index=_plain(index),
        grid=candidates.grid,
        scores=scores,
        strengths=strengths,
        at_edge=_plain((last > 0) & ((index == 0) | (index == last))),
    )


def beyond_edge(choice: Choice) -> Array:
    """Return parameters beyond the end of the grid that a choice is at, unless it shrinks next to nothing, or all."""
    is_open = NEGLIGIBLE < choice.strength < 1 - NEGLIGIBLE**2
    return choice.filter.beyond(choice.grid, choice.index) if is_open else np.empty(0)


def with_open_end(choice: Choice) -> Choice:
    """Return a choice that says whether it is at the end of a grid that might go on, and was not widened."""
    return replace(choice, has_open_end=len(beyond_edge(choice)) > 0)


def only_choice(rule: Rule, candidates: Candidates, strengths: Array) -> Choice:
    """Return the choice of the only candidate, which needs no score."""
    return choice_at(rule, candidates, np.zeros(strengths.shape[:-1], int), np.full(strengths.shape, np.nan), strengths)


def unscored_choice(rule: Rule, filter: Shrinker) -> Choice:
    """Return the choice of a filter without a parameter and without a score, which moves nothing: KME's."""
    return only_choice(rule, Candidates(filter, np.zeros(1)), np.zeros(1))


def _plain(value: Any) -> Any:
    """Return an array without dimensions as the number it is."""
    return value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
