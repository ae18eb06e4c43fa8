"""All estimators on one sample, side by side: which is better here, and by how much of KME's risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat.arrays import Array, rounding
from muhat.datasets import standardised
from muhat.estimator import KernelMean
from muhat.filters import FILTERS, KME, Iteration, Shrinker, as_filter, name_of
from muhat.gram import DenseGram
from muhat.kernels import Kernel, Precomputed, as_kernel
from muhat.messages import refusal
from muhat.problem import SampleProblem
from muhat.selection import GCV, RULES, Choice, LeaveOneOut, Rule, as_rule
from muhat.selection.base import Candidates
from muhat.validation import checked_sample

EXACT_UP_TO = 300
"""Rows up to which every point is really left out for the filters that have no cheaper exact score."""

HARDLY = 1.0
"""An improvement, in percent of KME's risk, below which there is hardly a difference."""


@dataclass(frozen=True, eq=False)
class Row:
    """One estimator of a comparison.

    Attributes
    ----------
    name, filter : str and Shrinker
        The estimator's name and its filter.
    parameter : float or int
        The chosen λ or number of iterations t; None where there is none.
    selection : str
        The name of the rule that chose; empty where there was nothing to choose.
    strength : float
        ‖μ̂ − μ_λ‖/‖μ̂‖, how far μ̂ was moved: 0 is not at all, 1 is onto the target.
    at_edge : bool
        Whether the parameter is the first or last of its grid.
    index : int
        The parameter's place in the grid.
    grid, strengths, scores, improvements : array of shape (parameters,)
        All candidates, with the strength and leave-one-out score of each and 100 (LOO_KME − LOO)/R, in percent of KME's
        estimated risk R. Scores are None where they would take an eigendecomposition for each of too many points.
    shrinkage : array of shape (n,)
        s of every component, for the chosen parameter.
    """

    name: str
    filter: Shrinker
    parameter: Any
    selection: str
    strength: float
    at_edge: bool
    index: int
    grid: Array
    strengths: Array
    scores: Array | None
    improvements: Array | None
    shrinkage: Array

    @property
    def score(self) -> float | None:
        """The leave-one-out score of the chosen parameter."""
        return None if self.scores is None else float(self.scores[self.index])

    @property
    def improvement(self) -> float | None:
        """The chosen parameter's estimate of 100 (R − R_λ)/R; optimistic where the parameter was chosen by it."""
        return None if self.improvements is None else float(self.improvements[self.index])

    @property
    def symbol(self) -> str:
        """The parameter's letter: λ, or t for iterations; empty without a parameter."""
        return "" if self.filter.parameterless else "t" if isinstance(self.filter, Iteration) else "λ"

    @property
    def setting(self) -> str:
        """The chosen parameter as text, such as 't = 12'; empty where there is none."""
        form = {"": "", "t": "t = {}", "λ": "λ = {:.3g}"}[self.symbol]
        return form.format(self.parameter).replace("inf", "∞")

    def __str__(self) -> str:
        return f"{self.name} ({self.setting})" if self.symbol else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the row in JSON's types, None for what is not finite."""
        told = ("name", "symbol", "parameter", "selection", "score", "improvement", "strength", "at_edge")
        return {name: _json_safe(getattr(self, name)) for name in (*told, "grid", "strengths", "scores")}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every estimator on one sample, tuned and scored on one decomposition.

    Attributes
    ----------
    rows : tuple of Row
        The estimators; KME, which all are measured against, comes first.
    best : Row
        The one with the least leave-one-out score; of equal ones, the one that shrinks least.
    risk : float
        R, the unbiased estimate of KME's risk E‖μ̂ − μ‖² on n − 1 points, which is what leave-one-out leaves.
    eigenvalues : array of shape (n,)
        The eigenvalues of K/n, ascending.
    kernel : Kernel
        The kernel, every parameter a number.
    selection : str
        The name of the rule that was asked for.
    n, d : int
        The number of points and of features.
    """

    rows: tuple[Row, ...]
    best: Row
    risk: float
    eigenvalues: Array
    kernel: Kernel
    selection: str
    n: int
    d: int

    @classmethod
    def from_estimator(cls, estimator: KernelMean) -> Comparison:
        """Return the comparison of all filters that a ``KernelMean`` has tried, fitted without target and weights."""
        check_is_fitted(estimator)
        problem = SampleProblem(DenseGram.of(estimator.kernel_, estimator.embedding_.points[: len(estimator.weights_)]))
        weights = estimator.choice_.weights(problem)
        gap = np.abs(weights - estimator.weights_).max()
        if estimator.target is not None or gap > rounding(weights) ** 0.5 * np.abs(weights).max():
            needed, came = "an estimator fitted without target and sample_weight is needed", "one fitted with"
            raise ValueError(refusal("Comparison", needed, came, "compare with muhat.comparison.compare(X)"))
        rule = as_rule(estimator.selection)
        tuned = [_Tuned(choice, rule) for choice in estimator.choices_]
        if not any(isinstance(each.choice.filter, KME) for each in tuned):
            tuned.insert(0, _tune(problem, LeaveOneOut(), [KME()])[0])
        return _compared(problem, tuned, estimator.kernel_, _name_of_rule(rule), estimator.n_features_in_)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table has to know, a sentence each."""
        notes = []
        unscored = [row.name for row in self.rows if row.scores is None]
        if unscored:
            names, price = " and ".join(unscored), f"{self.n} eigendecompositions"
            notes.append(f"No leave-one-out score for {names}, beyond {EXACT_UP_TO} points: it takes {price}.")
        for row in self.rows:
            if row.selection not in ("", self.selection):
                notes.append(f"The parameter of {row.name} is chosen by {row.selection}, not {self.selection}.")
        return tuple(notes)

    def verdict(self) -> str:
        """Return one sentence: which estimator is best here and by how much, or that none is."""
        among = "" if all(row.scores is not None for row in self.rows) else " of those scored"
        if self.best.improvement is None:
            return "KME's estimated risk is zero, as all points are equal to the kernel: there is nothing to improve."
        if self.best.improvement <= 0:
            return f"No estimator{among} beats KME on these {self.n} points: shrinkage does not help here."
        gain = f"{self.best.improvement:.3g} % of KME's estimated risk"
        if self.best.improvement < HARDLY:
            gain += ", which is hardly a difference"
        elif self.selection == "loo":
            tried = sum(len(row.grid) for row in self.rows if row.scores is not None)
            gain += f", an optimistic number as the best of {tried} candidates"
        if self.best.at_edge:
            side = "strongest" if self.best.strength >= self.best.strengths.max() else "weakest"
            gain += f"; its parameter is at the edge of its grid, the {side} shrinkage tried"
        score = "its leave-one-out score is lower than KME's by"
        return f"{self.best} does best{among} on these {self.n} points: {score} {gain}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types, None for what is not finite."""
        told = ("n", "d", "selection", "risk", "eigenvalues")
        return {
            **{name: _json_safe(getattr(self, name)) for name in told},
            "kernel": repr(self.kernel),
            "best": self.best.name,
            "verdict": self.verdict(),
            "notes": list(self.notes),
            "estimators": [row.to_dict() for row in self.rows],
        }

    def __getitem__(self, name: str) -> Row:
        return {row.name: row for row in self.rows}[name]

    def __repr__(self) -> str:
        return f"Comparison({len(self.rows)} estimators on {self.n} points of {self.d} features, best: {self.best})"


def compare(
    X: Any, kernel: Any = "gaussian", filters: Any = None, selection: Any = "loo", standardise: bool = True
) -> Comparison:
    """Compare estimators of a sample's kernel mean, all on one decomposition.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        The sample, of at least 2 points.
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel.
    filters : sequence of str or Shrinker, default=None
        The estimators; by default, or for ``'auto'``, all of ``muhat.filters.FILTERS``. KME, which all are measured
        against, always takes part.
    selection : str or Rule, default='loo'
        How their parameters are chosen. Where a rule cannot choose for a filter another one does: leave-one-out for
        simple shrinkage, which generalised cross-validation cannot tell apart; generalised cross-validation for
        truncated SVD beyond 300 points, where leave-one-out takes too many eigendecompositions.
    standardise : bool, default=True
        Whether every feature is brought to mean 0 and variance 1, as in the paper; constant features become 0.

    Returns
    -------
    comparison : Comparison
        A row for each estimator, with its leave-one-out score, whatever rule chose the parameter.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> comparison = compare(X, filters=["s-kmse", "landweber"])
    >>> [row.name for row in comparison.rows]
    ['kme', 's-kmse', 'landweber']
    >>> comparison["kme"].improvement
    0.0
    """
    rule = as_rule(selection)
    shrinkers = _shrinkers(filters)
    kernel = as_kernel(kernel)
    if isinstance(kernel, Precomputed):
        needed, advice = "a kernel of points is needed", "pass the points and the kernel's name"
        raise ValueError(refusal("compare", needed, "'precomputed'", advice))
    X = checked_sample(KernelMean(), X, reset=True)
    least = max(rule.least_points, LeaveOneOut.least_points)
    if len(X) < least:
        raise ValueError(refusal("compare", f"at least {least} rows are needed", f"n_samples = {len(X)}"))
    if standardise:
        X = standardised(X)

    kernel = kernel.resolve(X)
    problem = SampleProblem(DenseGram.of(kernel, X))
    tuned = _tune(problem, rule, [filter.bounded_by(problem.kappa2(kernel.bound)) for filter in shrinkers])
    return _compared(problem, tuned, kernel, _name_of_rule(rule), X.shape[1])


@dataclass(frozen=True)
class _Tuned:
    """A choice and the rule that made it."""

    choice: Choice
    rule: Rule


def _shrinkers(filters: Any) -> list[Shrinker]:
    """Return the filters that names and objects stand for, each once, KME first."""
    if filters is None or isinstance(filters, (str, Shrinker)):
        filters = ["auto" if filters is None else filters]
    shrinkers: list[Shrinker] = [KME()]
    for filter in map(as_filter, FILTERS if "auto" in filters else filters):
        if filter not in shrinkers:
            shrinkers.append(filter)
    return shrinkers


def _tune(problem: SampleProblem, wanted: Rule, filters: Sequence[Shrinker]) -> list[_Tuned]:
    """Choose a parameter for each filter, by the wanted rule where it can; what filters share is computed once."""
    rules = [_rule_for(filter, wanted, problem.n) for filter in filters]
    tuned: dict[int, _Tuned] = {}
    for kind in dict.fromkeys(kind for kind, _ in rules):
        places = [place for place, (own, _) in enumerate(rules) if own == kind]
        rule = rules[places[0]][1]
        choices = rule.choices(problem, [filters[place] for place in places])
        tuned.update(zip(places, (_Tuned(choice, rule) for choice in choices), strict=True))
    return [tuned[place] for place in range(len(filters))]


def _rule_for(filter: Shrinker, wanted: Rule, n: int) -> tuple[str, Rule]:
    """Return the rule for a filter, by name: the wanted one, unless there is nothing to choose or it cannot choose."""
    if filter.parameterless:
        return ("unscored", GCV()) if not _affordable(filter, n) else ("parameterless", LeaveOneOut())
    if isinstance(wanted, LeaveOneOut) and not _affordable(filter, n):
        return "gcv instead", GCV(grid=wanted.grid)
    if isinstance(wanted, GCV) and filter.constant:
        return "loo instead", LeaveOneOut(grid=wanted.grid)
    return "wanted", wanted


def _affordable(filter: Shrinker, n: int) -> bool:
    """Whether the exact leave-one-out score takes less than minutes."""
    return filter.analytic or filter.constant or n <= EXACT_UP_TO


def _compared(problem: SampleProblem, tuned: Sequence[_Tuned], kernel: Kernel, selection: str, d: int) -> Comparison:
    """Score every choice by leave-one-out and measure it against KME, the first."""
    choices = [each.choice for each in tuned]
    scores = _leave_one_out(problem, tuned)
    names = [name_of(choice.filter) for choice in choices]
    risk, rule = float(problem.spectrum.risk) * problem.n / (problem.n - 1), LeaveOneOut()
    baseline = scores[0] if risk > rule.tie(problem) else None
    rows = tuple(
        Row(
            name=name if names.count(name) == 1 else repr(each.choice.filter),
            filter=each.choice.filter,
            parameter=each.choice.parameter,
            selection="" if each.choice.filter.parameterless else _name_of_rule(each.rule),
            strength=each.choice.strength,
            at_edge=each.choice.at_edge,
            index=each.choice.index,
            grid=each.choice.grid,
            strengths=each.choice.strengths,
            scores=score,
            improvements=None if baseline is None or score is None else 100 * (baseline - score) / risk,
            shrinkage=each.choice.shrinkage(problem),
        )
        for name, each, score in zip(names, tuned, scores, strict=True)
    )
    scored = [replace(choice, scores=score) for choice, score in zip(choices, scores, strict=True) if score is not None]
    best = rule.best(problem, scored).filter
    winner = next(row for row in rows if row.filter is best)
    return Comparison(rows, winner, risk, problem.spectrum.gamma, kernel, selection, problem.n, d)


def _leave_one_out(problem: SampleProblem, tuned: Sequence[_Tuned]) -> list[Array | None]:
    """Return the leave-one-out scores along each grid: known already where that rule chose, None where too dear."""
    known = [each.choice.scores if isinstance(each.rule, LeaveOneOut) else None for each in tuned]
    choices = [each.choice for each, scores in zip(tuned, known, strict=True) if scores is None]
    missing = [Candidates(choice.filter, choice.grid) for choice in choices if _affordable(choice.filter, problem.n)]
    found = dict(zip([id(each.filter) for each in missing], LeaveOneOut().scores(problem, missing), strict=True))
    return [found.get(id(each.choice.filter), scores) for each, scores in zip(tuned, known, strict=True)]


def _name_of_rule(rule: Rule) -> str:
    """Return a rule's name, or its class's own."""
    return next((name for name, kind in RULES.items() if type(rule) is kind), type(rule).__name__)


def _json_safe(value: Any) -> Any:
    """Return a value in JSON's types, None for what is not finite."""
    if isinstance(value, np.ndarray):
        return [_json_safe(each) for each in value.tolist()]
    return None if isinstance(value, float) and not np.isfinite(value) else value
