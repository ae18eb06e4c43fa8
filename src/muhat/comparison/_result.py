"""What a comparison found: a row for each estimator, which is better here, and by how much of KME's risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._accumulation import LOOKED_AT
from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat.comparison._held import Held, Holding
from muhat.comparison._tuning import EXACT_UP_TO, Tuned, leave_one_out, name_of_rule, tune
from muhat.filters import KME, Iteration, Shrinker, name_of
from muhat.gram import DenseGram, SampleProblem
from muhat.kernels import Kernel
from muhat.mean import KernelMean
from muhat.selection import LeaveOneOut, as_rule

MISSED = 0.1
"""The share of the kernel that features may miss without a warning."""

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
    shrinkage : array of shape (n,) or (r,)
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
    eigenvalues : array of shape (n,) or (r,)
        The eigenvalues of K/n, ascending; those of its approximation where it is held by features.
    kernel : Kernel
        The kernel, every parameter a number.
    selection : str
        The name of the rule that was asked for.
    n, d : int
        The number of points and of features.
    how : Holding
        How the Gram matrix was held.
    """

    rows: tuple[Row, ...]
    best: Row
    risk: float
    eigenvalues: Array
    kernel: Kernel
    selection: str
    n: int
    d: int
    how: Holding

    @classmethod
    def of(cls, held: Held, tuned: Sequence[Tuned], selection: str) -> Comparison:
        """Score every choice by leave-one-out and measure it against KME, the first."""
        problem, choices = held.problem, [each.choice for each in tuned]
        scores = leave_one_out(problem, tuned)
        names = [name_of(choice.filter) for choice in choices]
        risk, rule = float(problem.spectrum.risk) * problem.n / (problem.n - 1), LeaveOneOut()
        baseline = scores[0] if risk > rule.tie(problem) else None
        rows = tuple(
            Row(
                name=name if names.count(name) == 1 else repr(each.choice.filter),
                filter=each.choice.filter,
                parameter=each.choice.parameter,
                selection="" if each.choice.filter.parameterless else name_of_rule(each.rule),
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
        scored = [replace(each, scores=score) for each, score in zip(choices, scores, strict=True) if score is not None]
        best = rule.best(problem, scored).filter
        winner = next(row for row in rows if row.filter is best)
        return cls(rows, winner, risk, problem.spectrum.gamma, held.kernel, selection, problem.n, held.d, held.how)

    @classmethod
    def from_estimator(cls, estimator: KernelMean) -> Comparison:
        """Return the comparison of all filters that a ``KernelMean`` has tried, fitted without target and weights."""
        check_is_fitted(estimator)
        if estimator.gram_ != "dense":
            needed = "an estimator that holds its Gram matrix is needed"
            got = "one fitted by products" if estimator.features_ is None else "one fitted by features"
            raise ValueError(refusal("Comparison", needed, got, "compare with muhat.comparison.compare(X, gram=...)"))
        problem = SampleProblem(
            DenseGram.from_sample(estimator.kernel_, estimator.embedding_.points[: len(estimator.weights_)])
        )
        weights = estimator.choice_.weights(problem)
        gap = np.abs(weights - estimator.weights_).max()
        if estimator.target is not None or gap > rounding(weights) ** 0.5 * np.abs(weights).max():
            needed, got = "an estimator fitted without target and sample_weight is needed", "one fitted with"
            raise ValueError(refusal("Comparison", needed, got, "compare with muhat.comparison.compare(X)"))
        rule = as_rule(estimator.selection)
        tuned = [Tuned(choice, rule) for choice in estimator.choices_]
        if not any(isinstance(each.choice.filter, KME) for each in tuned):
            tuned.insert(0, tune(problem, LeaveOneOut(), [KME()])[0])
        how = Holding("dense", estimator.gram_reason_)
        held = Held(problem, estimator.kernel_, estimator.n_features_in_, how)
        return cls.of(held, tuned, name_of_rule(rule))

    @property
    def gram(self) -> str:
        """How the Gram matrix was held: 'dense', 'nystrom' or 'random-features'."""
        return self.how.gram

    @property
    def gram_reason(self) -> str:
        """Why it was held so."""
        return self.how.reason

    @property
    def approximation_error(self) -> float:
        """What the features' mean misses, as ``KernelMean`` has it; zero where nothing is approximated."""
        return self.how.error

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table has to know, a sentence each."""
        notes = []
        if self.how.features:
            how = f"The Gram matrix is approximated by {self.how.features} features ({self.gram}; {self.gram_reason})"
            error = f"on {min(self.n, LOOKED_AT)} rows their mean is off by {self.approximation_error:.2g}"
            notes.append(f"{how}: {error} in {self.how.error_in}.")
            if self.how.kept < 1 - MISSED:
                kept = f"The features keep {100 * self.how.kept:.3g} % of the mean of k(x, x)"
                notes.append(
                    f"{kept}: scores and risk are of that part alone. More features, or a wider kernel, keep more."
                )
        unscored = [row.name for row in self.rows if row.scores is None]
        if unscored:
            names = " and ".join(filter(None, (", ".join(unscored[:-1]), unscored[-1])))
            price = f"{self.n} eigendecompositions"
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
        told = ("n", "d", "gram", "gram_reason", "approximation_error", "selection", "risk", "eigenvalues")
        return {
            **{name: _json_safe(getattr(self, name)) for name in told},
            "features": self.how.features or None,
            "kept": self.how.kept,
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


def _json_safe(value: Any) -> Any:
    """Return a value in JSON's types, None for what is not finite."""
    if isinstance(value, np.ndarray):
        return [_json_safe(each) for each in value.tolist()]
    return None if isinstance(value, float) and not np.isfinite(value) else value
