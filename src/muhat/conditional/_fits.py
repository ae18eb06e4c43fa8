"""Conditional means of rows in memory: a decomposition, each filter's choice, and what follows from both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from muhat._arrays import Array, rounding
from muhat._messages import refusal
from muhat._parts import Parts
from muhat._validation import check_scale, check_semidefinite, checked_gram
from muhat.conditional._left_out import LeftOut, Regression
from muhat.filters import Filter, Iteration
from muhat.filters._base import GRID_SIZE, Formula
from muhat.gram import Approximation, DenseGram
from muhat.gram._plan import Plan
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import GCV, Given, LeaveOneOut, Rule
from muhat.selection._base import Candidates, check_rest, checked_grid

LEAST = 1e-9
"""The least λ of a grid, in units of γ_max: below it, rounding of the eigenvalues shows in predictions."""

STEPS = 128
"""The most iterations of a grid for filters that are computed step by step."""

FACTORED = 1e-14
"""The share of the largest l(y, y) that a factor of the Gram matrix of y leaves out."""


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalChoice:
    """A filter's parameter for a conditional mean, and what it was chosen from.

    Attributes
    ----------
    rule, filter : Rule and Filter
        The rule that chose, and for what.
    parameter, score, index : float or int, float, and int
        λ or the number of iterations t, its score and its place in the grid.
    grid, scores : arrays of shape (parameters,)
        The candidates and the score of each: by leave-one-out, the weighted mean of ‖y_i − ŷ_i‖² in the space of y; NaN
        where the parameter was given.
    at_edge : bool
        Whether it is the first or last of several candidates.
    """

    rule: Rule
    filter: Filter
    grid: Array
    scores: Array

    @property
    def index(self) -> int:
        """The place of the least score."""
        return 0 if np.isnan(self.scores).all() else int(np.nanargmin(self.scores))

    @property
    def parameter(self) -> Any:
        """The chosen λ or t."""
        return self.grid[self.index].item()

    @property
    def score(self) -> float:
        """Its score."""
        return float(self.scores[self.index])

    @property
    def at_edge(self) -> bool:
        """Whether it is the first or last of several."""
        return len(self.grid) > 1 and self.index in (0, len(self.grid) - 1)

    def __repr__(self) -> str:
        edge = ", at_edge=True" if self.at_edge else ""
        return f"ConditionalChoice({self.filter!r}, parameter={self.parameter!r}, score={self.score:.6g}{edge})"


class Fit(ABC):
    """A conditional mean on one kernel, with each filter's choice."""

    kernel: Kernel
    choices: list[ConditionalChoice]
    n: int
    residuals: Array
    """Each row's outputs minus what is predicted for them by the smoother made without it: shape (n, columns)."""

    @cached_property
    def choice(self) -> ConditionalChoice:
        """The choice with the least score."""
        return min(self.choices, key=lambda choice: choice.score) if len(self.choices) > 1 else self.choices[0]

    @abstractmethod
    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points: shape (m, columns)."""

    @abstractmethod
    def left_out_values(self, X: Array) -> Array:
        """Return what the smoother made without each row predicts at new points: shape (columns, m, n or 1)."""

    def weights(self, X: Array) -> Array:
        """Return the weights of the outputs at new points: shape (m, n)."""
        raise ValueError(self._not_held("weights and distributions take every output"))

    def left_out_weights(self) -> Array:
        """Return the weights of the others in each row's left-out prediction: shape (n, n)."""
        raise ValueError(self._not_held("left-out distributions take every output"))

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        raise ValueError(self._not_held("leave-one-out takes all eigenpairs"))

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        raise ValueError(self._not_held("leave-one-out takes all eigenpairs"))

    def _not_held(self, needed: str) -> str:
        advice = "fit an array with gram='dense', 'nystrom' or 'random-features'"
        return refusal("ConditionalMean", needed, "a fit in batches or on gram='blocks'", advice)


@dataclass(eq=False)
class SpectralFit(Fit):
    """A regression in the eigenbasis of the Gram matrix, every row of it in memory."""

    kernel: Kernel
    regression: Regression
    coordinates: Callable[[Array], Array]
    """UᵀD k(X, x) of new points, in rows."""
    choices: list[ConditionalChoice]

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.regression.n

    @cached_property
    def inverse(self) -> Array:
        """g_λ(γ) of every component."""
        return self.choice.filter.inverse(self.regression.gamma, self.choice.parameter)

    @cached_property
    def coefficients(self) -> Array:
        """What coordinates are multiplied with to predict, measured from the mean."""
        return self.inverse[:, None] * self.regression.projected[:, :-1]

    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points."""
        return self.coordinates(X) @ self.coefficients + self.regression.mean

    @cached_property
    def _left_out(self) -> Array:
        return LeftOut(self.regression).predictions(self.choice.filter, self.choice.parameter)

    @cached_property
    def _functions(self) -> Array:
        return LeftOut(self.regression).functions(self.choice.filter, self.choice.parameter)

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        return self._left_out

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Each row's outputs minus that."""
        return self.regression.outputs - self._left_out

    def left_out_values(self, X: Array) -> Array:
        """Return what each left-out smoother predicts at new points."""
        means = self.regression.mean + self.regression.left_out_means
        return self.coordinates(X) @ self._functions + means.T[:, None]

    def weights(self, X: Array) -> Array:
        """Return the weights of the outputs at new points."""
        regression = self.regression
        weights = (self.coordinates(X) * self.inverse) @ (regression.U.T * regression.root_masses)
        if regression.has_intercept:
            weights += (1 - weights.sum(axis=1, keepdims=True)) * regression.masses
        return weights

    def left_out_weights(self) -> Array:
        """Return the weights of the others in each row's left-out prediction."""
        return LeftOut(self.regression).weights(self.choice.filter, self.choice.parameter)

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        masses, outputs = self.regression.masses, self.regression.outputs
        spread = outputs - masses @ outputs
        return 1 - float((masses @ self.residuals**2).sum() / (masses @ spread**2).sum())


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that take part, with their outputs, before a kernel on x is chosen."""

    parts: Parts
    X: Array
    masses: Array
    outputs: Array
    has_intercept: bool

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel on x, its bandwidth a number."""
        if isinstance(self.parts.kernel, Precomputed):
            return Precomputed(checked_gram("ConditionalMean", self.X))
        return self.parts.kernel.resolve(self.X)

    def fit(self, kernel: Kernel, plan: Plan, rules: Sequence[Rule]) -> SpectralFit:
        """Decompose the Gram matrix of a kernel, held as planned, and choose each filter's parameter."""
        if isinstance(plan.gram, Approximation):
            regression, coordinates = self._on_features(kernel, plan.gram)
        else:
            regression, coordinates = self._dense(kernel)
        check_scale(type(kernel).__name__, regression.largest_value, np.dtype(np.float64), self.X)
        filters = bounded(self.parts, kernel, regression.largest_value)
        choices = choices_of(regression, rules, filters, LeftOut(regression).scores)
        return SpectralFit(kernel, regression, coordinates, choices)

    def _dense(self, kernel: Kernel) -> tuple[Regression, Callable[[Array], Array]]:
        points = np.arange(len(self.X))[:, None] if isinstance(kernel, Precomputed) else self.X
        gram = DenseGram.from_sample(kernel, points, self.masses)
        gamma, U = np.linalg.eigh(gram.matrix)
        check_semidefinite(gamma)
        # Kept, though rounded: g_λ is smooth at zero, and new points have more of small components than the sample has.
        gamma = np.maximum(gamma, gamma[-1] * 1e-30)
        basis = np.sqrt(self.masses)[:, None] * U
        regression = Regression(gamma, U, self.masses, self.outputs, self.has_intercept)
        return regression, Coordinates(None if isinstance(kernel, Precomputed) else kernel, points, basis)

    def _on_features(self, kernel: Kernel, approximation: Approximation) -> tuple[Regression, Callable[[Array], Array]]:
        """K ≈ FFᵀ: with DF = U Γ^(1/2) Vᵀ, the coordinates UᵀD k(X, x) are Γ^(1/2) Vᵀ z(x)."""
        features = approximation.resolve(kernel, self.X)
        F = features(self.X) * np.sqrt(self.masses)[:, None]
        gamma, V = np.linalg.eigh(F.T @ F)
        kept = gamma > len(F) * rounding(gamma) * gamma[-1]
        root, V = np.sqrt(gamma[kept]), V[:, kept]
        regression = Regression(gamma[kept], F @ V / root, self.masses, self.outputs, self.has_intercept)
        return regression, Coordinates(features, None, V * root)


def bounded(parts: Parts, kernel: Kernel, largest_value: float) -> list[Any]:
    """Return the filters for kernels with k(x, x) ≤ κ², which is the largest of the sample where there is no bound."""
    kappa2 = kernel.bound if np.isfinite(kernel.bound) else largest_value or 1.0
    return [filter.bounded_by(kappa2) for filter in parts.filters]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """x ↦ UᵀD k(X, x): kernel values, or features, times a basis."""

    values: Any
    """A kernel, a feature map, or None where the values themselves are given."""
    points: Array | None
    basis: Array

    def __call__(self, X: Array) -> Array:
        if self.values is None:
            return X @ self.basis
        if self.points is None:
            return self.values(X) @ self.basis
        return self.values(X, self.points) @ self.basis


def choices_of(
    regression: Regression,
    rules: Sequence[Rule],
    filters: Sequence[Any],
    left_out_scores: Callable[[list[Candidates]], list[Array]],
) -> list[ConditionalChoice]:
    """Return each filter's choice by its rule; what filters have in common by leave-one-out is computed once."""
    largest = float(regression.gamma.max(initial=0.0))
    candidates = [candidates_of(largest, regression.n, *each) for each in zip(rules, filters, strict=True)]
    scores = [np.full(len(each.grid), np.nan) for each in candidates]
    left_out = [place for place, rule in enumerate(rules) if isinstance(rule, LeaveOneOut)]
    if left_out:
        check_rest(rules[left_out[0]], 1 - float(regression.masses.max()))
        found = left_out_scores([candidates[place] for place in left_out])
        for place, each in zip(left_out, found, strict=True):
            scores[place] = each
    for place, rule in enumerate(rules):
        if isinstance(rule, GCV):
            scores[place] = regression.gcv(candidates[place])
    return [
        ConditionalChoice(rule, each.filter, each.grid, own)
        for rule, each, own in zip(rules, candidates, scores, strict=True)
    ]


def candidates_of(largest: float, n: int, rule: Any, filter: Filter) -> Candidates:
    """Return a filter with the parameters to choose from: those given, or from hardly any regularisation to all.

    ``largest`` is γ_max.
    """
    if isinstance(rule, Given):
        return Candidates(filter, rule.parameter(filter, n))
    if rule.grid is not None:
        return Candidates(filter, checked_grid(rule, filter, rule.grid))
    largest = largest or 1.0
    if isinstance(filter, Iteration):
        last = filter.from_lambda(LEAST * largest)
        last = last if isinstance(filter, Formula) else min(last, STEPS)
        return Candidates(filter, np.unique(np.geomspace(1, last, GRID_SIZE).round().astype(np.int64)))
    return Candidates(filter, np.geomspace(LEAST * largest, 10 * largest, GRID_SIZE))


def factor_of(kernel: Kernel, outputs: Array) -> Array:
    """Return Z with ZZᵀ the Gram matrix of the outputs: these themselves, or a pivoted Cholesky factor."""
    if isinstance(kernel, Linear):
        return outputs
    L = kernel(outputs)
    factor, pivots, rank, _ = dpstrf(L, tol=FACTORED * float(np.diagonal(L).max()), lower=1)
    Z = np.empty((len(L), rank))
    Z[pivots - 1] = np.tril(factor)[:, :rank]
    return Z
