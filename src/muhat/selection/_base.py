"""What a selection rule is, and what it returns: a choice that says why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from muhat._arrays import Array, rounding
from muhat._bases import BaseEstimator
from muhat._tolerances import GAIN_ROUNDING, GAIN_TOLERANCE, MIN_REMAINING_MASS
from muhat._validation import positive
from muhat.errors import MuhatError
from muhat.filters import Shrinker
from muhat.gram import Access, Problem, SpectralProblem

MAX_REFINEMENTS = 6
"""How often a filter's own grid is refined around the best parameter, at most."""

MIN_IMPROVEMENT = 1e-3
"""The share of the gain that a finer grid must add for the next one to be tried.

And its square, of KME's risk.
"""

NEGLIGIBLE_STRENGTH = 1e-2
"""Shrinkage strength below which further iterations, which shrink less, are not tried."""

MAX_HARMED_DIMENSION = 2
"""Dimension up to which no shrinkage beats the plain average everywhere (Stein 1956)."""

DefaultGrid = Callable[[Any, Any], Array]
"""A function of a filter and a problem that returns the parameters to choose from."""


@dataclass(frozen=True)
class Candidates:
    """A filter with the parameters to choose from."""

    filter: Shrinker
    grid: Array


@dataclass(frozen=True, repr=False)
class Choice:
    """The chosen parameter of a filter, with all candidates and their scores.

    For a batch of samples, every attribute but ``rule``, ``filter`` and ``grid`` has the batch's
    leading dimensions.

    Attributes
    ----------
    rule, filter : Rule and Shrinker
        The rule that chose, and the filter.
    parameter, index : float or int, and int
        λ, or the number of iterations t, None where the filter has none; and its place in the grid.
    grid, gains, scores, strengths : array of shape (parameters,)
        The candidates, with the gain, the score and the strength of each. Low scores are good. The
        gain is the score of KME minus this score, computed directly, because as a difference of two
        scores it would lose most digits. Generalised cross-validation and conditional means have no
        score for KME: their gain is minus the score. Both are NaN for a rule without scores.
    unshrunk : float
        The score of KME by the same rule; 0 where there is none.
    gain, score, strength : float
        Gain, score and strength of the chosen parameter. The strength is ‖μ̂ − μ_λ‖/‖μ̂ − f*‖: 0 for
        the empirical mean, 1 for the target. It is NaN for conditional means.
    at_edge : bool
        Whether the choice is the first or last of several candidates.
    """

    rule: Rule
    filter: Shrinker
    parameter: Any
    index: Any
    grid: Array
    gains: Array
    unshrunk: Any
    strengths: Array
    at_edge: Any
    solution: Array | None = None
    """β, where products with A alone have found it."""
    residual: float | None = None
    """The relative residual or error estimate of the solver, where one iterated."""
    stopped_at_grid_end: bool = False
    """Whether the choice is the most iterations that were tried, and more were too dear to try."""

    def __repr__(self) -> str:
        parameter = ""
        if self.parameter is not None:
            parameter = f"parameter={self.parameter!r}, "
        found = f"gain={self.gain!r}, strength={self.strength!r}"
        if np.isnan(self.strengths).all():
            found = f"score={self.score:.6g}"
        edge = ""
        if np.any(self.at_edge):
            edge = ", at_edge=True"
        return f"Choice({self.filter!r}, {parameter}{found}{edge})"

    @property
    def scores(self) -> Array:
        """The scores of all candidates.

        A mean of squared norms, which rounding may not make less than zero.
        """
        return np.maximum(np.asarray(self.unshrunk)[..., None] - self.gains, 0)

    @property
    def gain(self) -> Any:
        """The gain of the chosen parameter."""
        return self._at_index(self.gains)

    @property
    def score(self) -> Any:
        """The score of the chosen parameter."""
        return self._at_index(self.scores)

    @property
    def strength(self) -> Any:
        """The strength of the chosen parameter."""
        return self._at_index(self.strengths)

    @property
    def shrinkage_at_zero(self) -> Any:
        """s(0) for the chosen parameter."""
        return _as_scalar(self.filter.at_zero(self.grid)[self.index])

    def _at_index(self, values: Array) -> Any:
        return _as_scalar(
            np.take_along_axis(values, np.asarray(self.index)[..., None], axis=-1)[..., 0]
        )

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
            return np.multiply.outer(self.shrinkage_at_zero, problem.mean_weights).astype(
                problem.dtype
            )
        spectral = cast(SpectralProblem, problem)
        return spectral.weights(self.shrinkage(spectral), self.shrinkage_at_zero)


class Rule(BaseEstimator, ABC):
    """A way to choose a filter's parameter."""

    name: ClassVar[str] = ""
    """What users type, such as 'kfold'; empty for a rule that cannot be given by name."""
    comparable: ClassVar[bool] = False
    """Whether scores of different filters can be compared, as ``filter="auto"`` does."""
    least_points: ClassVar[int] = 1
    grid: Any = None

    def check(self, filter: Shrinker) -> None:
        """Raise MuhatError for invalid settings, or a filter that the rule cannot choose for.

        This happens before the first row is read.
        """
        if self.grid is not None:
            checked_grid(self, filter, self.grid)

    @abstractmethod
    def needs(self, filter: Shrinker) -> Access:
        """Return what must be known of the Gram operator to choose for a filter."""

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the rule can choose on n points without more than a few eigendecompositions."""
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


def check_remaining_mass(rest: float) -> None:
    """Raise MuhatError if too little mass is left when some points are left out."""
    if rest < MIN_REMAINING_MASS:
        needed = (
            f"at least {100 * MIN_REMAINING_MASS:g} % of the mass must be left when points "
            "are left out"
        )
        advice = "drop the points of largest weight, or fix the parameter with selection=Fixed(...)"
        raise MuhatError("sample_weight", needed, f"{100 * rest:.2g} %", advice)


def checked_bias_factor(rule: Rule, factor: Any) -> Any:
    """Return how often a rule is to count the squared bias, or raise MuhatError."""
    if factor in (None, "auto"):
        return factor
    return positive(rule, "bias_factor", factor, ", 'auto' or None")


def bias_factor_on(factor: Any, problem: Problem) -> Array:
    """Return how often the squared bias is counted on a problem.

    Infinitely often where any shrinkage may do harm.

    'auto' is D/(D − 2), D being the number of components that share the variance. Leave-one-out
    shrinks the mean of p equal components by p/‖μ̂‖² in units of their noise, where p − 2 is best
    (James and Stein) and where no shrinkage beats the plain average for every distribution with p =
    1 or 2.
    """
    if factor != "auto":
        return np.asarray(1.0 if factor is None else factor)
    return bias_factor_of(np.asarray(problem.effective_dimension, np.float64))


def bias_factor_of(D: Array) -> Array:
    """Return κ = D/(D − 2), infinite up to D = 2."""
    return np.divide(
        D,
        D - MAX_HARMED_DIMENSION,
        out=np.full_like(D, np.inf),
        where=D > MAX_HARMED_DIMENSION * (1 + GAIN_TOLERANCE),
    )


class Scores(ABC):
    """The dear part of a rule's work on a problem, done once.

    The gain of any parameter follows from it.
    """

    problem: Any
    filters: list[Shrinker]

    unshrunk: Array
    """The score of KME."""
    bias_factor: Array = np.ones(())
    """How often the squared bias is counted: once, by default."""
    can_extend_grid: bool = True
    """Whether parameters beyond the grids that it was made for can be scored."""

    def __init__(self, problem: Any, candidates: Sequence[Candidates]) -> None:
        self.problem, self.filters = problem, [each.filter for each in candidates]

    @abstractmethod
    def gains(self, place: int, grid: Array) -> Array:
        """Return what each parameter of a filter, given by its place, gains over KME.

        Shape (..., parameters).
        """

    def strengths(self, place: int, grid: Array) -> Array:
        """Return how far each parameter moves the mean."""
        return strengths_of(self.problem, Candidates(self.filters[place], grid))


class Scored(Rule):
    """A rule that takes the least score, which is the largest gain over KME."""

    comparable: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, problem: Any, candidates: Sequence[Candidates]) -> Scores:
        """Return what is needed to score the filters' parameters."""

    def best(self, problem: Problem, choices: Sequence[Choice]) -> Choice:
        """Return the choice with the largest gain; of equal ones, the one that shrinks least."""
        if len(choices) == 1:
            return choices[0]
        gains = np.array([choice.gain for choice in choices])
        tied = np.flatnonzero(gains >= _least_tied_gain(problem, gains)).tolist()
        return min((choices[place] for place in tied), key=lambda choice: choice.strength)

    def choices(self, problem: Any, filters: Sequence[Shrinker]) -> list[Choice]:
        """Return, for each filter, the parameter with the largest gain.

        Of equal ones, the one that shrinks least.
        """
        candidates = [candidates_of(self, filter, problem) for filter in filters]
        return self.refined(self.prepare(problem, candidates), candidates)

    def refined(self, scores: Scores, candidates: Sequence[Candidates]) -> list[Choice]:
        """Return the choices.

        A filter's own grid is refined around the best parameter until the gain is flat there.
        """
        choices = [self._choice(scores, place, each.grid) for place, each in enumerate(candidates)]
        if self.grid is not None or scores.problem.batch:
            return choices
        return [self._refined(scores, place, choice) for place, choice in enumerate(choices)]

    def _refined(self, scores: Scores, place: int, choice: Choice) -> Choice:
        """Return the choice after refining the grid around the best parameter, again and again."""
        if not np.isfinite(choice.gain):
            return choice  # no parameter is to be taken
        for _ in range(MAX_REFINEMENTS):
            more = choice.filter.refine_grid(scores.problem, choice.grid, choice.index)
            if not (scores.can_extend_grid and choice.strength > NEGLIGIBLE_STRENGTH):
                more = more[more < choice.grid[-1]]
            if not len(more):
                break
            before, choice = choice, self._choice(scores, place, more, choice)
            risk = float(np.abs(scores.unshrunk)) * scores.problem.mass_range[1]
            if choice.gain - before.gain <= MIN_IMPROVEMENT * max(
                abs(choice.gain), MIN_IMPROVEMENT * risk
            ):
                break
        ends = choice.index < len(choice.grid) - 1 or choice.strength <= NEGLIGIBLE_STRENGTH
        beyond = (
            choice.filter.refine_grid(scores.problem, choice.grid, choice.index) > choice.grid[-1]
        )
        return replace(
            choice, stopped_at_grid_end=not (ends or scores.can_extend_grid) and bool(beyond.any())
        )

    def _choice(
        self, scores: Scores, place: int, grid: Array, known: Choice | None = None
    ) -> Choice:
        """Return the choice from a grid, and from another grid with known gains."""
        strengths = scores.strengths(place, grid)  # first, as this validates the filter
        gains = scores.gains(place, grid)
        gains = np.where(
            np.isfinite(scores.bias_factor)[..., None] | (strengths == 0), gains, -np.inf
        )
        if known is not None:
            order = np.argsort([*known.grid, *grid], kind="stable")
            pairs = ((known.grid, grid), (known.gains, gains), (known.strengths, strengths))
            grid, gains, strengths = (np.concatenate(pair)[order] for pair in pairs)
        candidates = Candidates(scores.filters[place], grid)
        return self.largest(scores.problem, candidates, gains, strengths, scores.unshrunk)

    def largest(
        self,
        problem: Problem,
        candidates: Candidates,
        gains: Array,
        strengths: Array,
        unshrunk: Any,
    ) -> Choice:
        """Return the choice with the largest gain; of equal ones, the one that shrinks least."""
        tied = gains >= _least_tied_gain(problem, gains)[..., None]
        index = np.where(tied, strengths, np.inf).argmin(axis=-1)
        return choice_at(self, candidates, index, gains, unshrunk, strengths)


def _least_tied_gain(problem: Problem, gains: Array) -> Array:
    """Return the least gain that equals the largest up to rounding."""
    largest = gains.max(axis=-1)
    return largest - np.maximum(
        GAIN_TOLERANCE * np.abs(largest),
        GAIN_ROUNDING * problem.mass_range[1] * np.asarray(problem.trace),
    )


def candidates_of(
    rule: Any, filter: Shrinker, problem: Any, default_grid: DefaultGrid | None = None
) -> Candidates:
    """Return a filter with the parameters that a rule chooses from.

    These are the user's grid, or else the default one: the filter's own for kernel means, another
    for conditional means.
    """
    if rule.grid is not None:
        return Candidates(filter, checked_grid(rule, filter, rule.grid))
    if filter.parameterless:
        return Candidates(filter, np.zeros(1))
    if default_grid is None:
        return Candidates(filter, filter.grid(problem))
    return Candidates(filter, default_grid(filter, problem))


def gcv_scores(residual: Array, freedom: Array, n: int) -> Array:
    """Return residual/freedom², the scores of generalised cross-validation.

    No freedom is interpolation, which says nothing and is chosen after all else: its score is
    infinite. ``freedom`` is 1 − tr S/n of the smoother S, a mean of n numbers of order one.
    """
    has_freedom = freedom > n * rounding(freedom)
    return np.divide(residual, freedom**2, out=np.full_like(residual, np.inf), where=has_freedom)


def least_score_choice(rule: Rule, candidates: Candidates, scores: Array) -> Choice:
    """Return the choice with the least of some scores, which are not compared with KME's."""
    unknown = np.full(len(candidates.grid), np.nan)
    if np.isnan(scores).all():
        return only_choice(rule, candidates, unknown)
    return choice_at(rule, candidates, np.asarray(np.nanargmin(scores)), -scores, 0.0, unknown)


def checked_grid(rule: Rule, filter: Shrinker, grid: Any) -> Array:
    """Return parameters given by the user, or refuse those that do not fit the filter."""
    if filter.parameterless:
        name = type(filter).__name__
        raise MuhatError(type(rule).__name__, f"{name} takes no parameter", grid, "leave it out")
    return np.unique(filter.check(grid))


def strengths_of(problem: SpectralProblem, candidates: Candidates) -> Array:
    """Return how far each candidate moves μ̂ towards the target, shape (..., parameters).

    Raise MuhatError if the filter gives something other than finite numbers.
    """
    filter, grid = candidates.filter, candidates.grid
    with np.errstate(all="ignore"):
        at_zero = filter.at_zero(grid)
        if filter.constant:
            return np.broadcast_to(np.abs(1 - at_zero), (*problem.batch, len(at_zero)))
        s = np.asarray(filter.on(problem.components, grid))
    check_shrinkage(candidates, problem.components.gamma, s, at_zero)
    return problem.strengths(s, at_zero)


def check_shrinkage(candidates: Candidates, gamma: Array, s: Array, at_zero: Array) -> None:
    """Raise MuhatError unless a filter gives a finite real number for each eigenvalue and 0."""
    shape = (len(candidates.grid), *gamma.shape)
    if (
        s.shape != shape
        or np.iscomplexobj(s)
        or not (np.isfinite(s).all() and np.isfinite(at_zero).all())
    ):
        needed = (
            "s must be a finite real number for each γ in [0, "
            f"{float(gamma.max(initial=0.0)):.3g}], zero included"
        )
        got = "NaN or infinite values"
        if np.iscomplexobj(s):
            got = "complex values"
        elif s.shape != shape:
            got = f"an array of shape {s.shape} instead of {shape}"
        raise MuhatError(type(candidates.filter).__name__, needed, got)


def choice_at(
    rule: Rule, candidates: Candidates, index: Array, gains: Array, unshrunk: Any, strengths: Array
) -> Choice:
    """Return the choice of one candidate (of one for each sample of a batch)."""
    last = len(candidates.grid) - 1
    return Choice(
        rule=rule,
        filter=candidates.filter,
        parameter=None if candidates.filter.parameterless else _as_scalar(candidates.grid[index]),
        index=_as_scalar(index),
        grid=candidates.grid,
        gains=gains,
        unshrunk=_as_scalar(unshrunk),
        strengths=strengths,
        at_edge=_as_scalar((last > 0) & ((index == 0) | (index == last))),
    )


def only_choice(rule: Rule, candidates: Candidates, strengths: Array) -> Choice:
    """Return the choice of the only candidate, which needs no score."""
    index = np.zeros(strengths.shape[:-1], int)
    return choice_at(rule, candidates, index, np.full(strengths.shape, np.nan), np.nan, strengths)


def unscored_choice(rule: Rule, filter: Shrinker) -> Choice:
    """Return KME's choice, which has neither a parameter nor a score and moves nothing."""
    return only_choice(rule, Candidates(filter, np.zeros(1)), np.zeros(1))


def _as_scalar(value: Any) -> Any:
    """Return an array without dimensions as the number it is."""
    if np.ndim(value) == 0 and hasattr(value, "item"):
        return value.item()
    return value
