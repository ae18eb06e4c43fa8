"""Conditional means of rows in memory: a decomposition, each filter's choice, and what follows from both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from muhat._arrays import Array, quotient, raised_above_zero, significant_eigenpairs
from muhat._caches import UnsavedCaches
from muhat._parts import Parts
from muhat._validation import check_scale, check_semidefinite
from muhat.conditional._left_out import LeaveOneOutSmoother, Regression
from muhat.errors import MuhatError, message
from muhat.filters import Filter, Iteration
from muhat.filters._base import GRID_SIZE, Formula
from muhat.gram import Approximation, DenseGram, FeatureMap
from muhat.gram._plan import Plan
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import GCV, LeaveOneOut, ParameterRule, Rule
from muhat.selection._base import Candidates, check_rest, checked_grid

MIN_LAMBDA_SHARE = 1e-9
"""The least λ of a grid, in units of γ_max: below it, rounding of the eigenvalues shows in predictions."""

MAX_STEPS = 128
"""The most iterations of a grid for filters that are computed step by step."""

FACTOR_TOLERANCE = 1e-14
"""The share of the largest l(y, y) that a factor of the Gram matrix of y leaves out."""

MAX_CALIBRATION_ROWS = 1000
"""The most rows whose left-out residuals calibrate quantiles."""


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

    @property
    def masses(self) -> Array:
        """The masses of the rows, with sum one."""
        return np.full(self.n, 1 / self.n)

    @abstractmethod
    def calibrating_rows(self) -> tuple[Array | None, Array]:
        """Return x of the rows that calibrate quantiles, as the kernel sees it, and their numbers.

        x is None where only the Gram matrix is known.
        """

    @cached_property
    def choice(self) -> ConditionalChoice:
        """The choice with the least score."""
        return (
            min(self.choices, key=lambda choice: choice.score)
            if len(self.choices) > 1
            else self.choices[0]
        )

    @abstractmethod
    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points: shape (m, columns)."""

    @abstractmethod
    def left_out_values(self, X: Array) -> Array:
        """Return what the smoother made without each row predicts at new points: shape (columns, m, n or 1)."""

    def weights(self, X: Array) -> Array:
        """Return the weights of the outputs at new points: shape (m, n)."""
        raise MuhatError(self._not_held("weights and distributions take every output"))

    def left_out_weights(self) -> Array:
        """Return the weights of the others in each row's left-out prediction: shape (n, n)."""
        raise MuhatError(self._not_held("left-out distributions take every output"))

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        raise MuhatError(self._not_held("leave-one-out takes all eigenpairs"))

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        raise MuhatError(self._not_held("leave-one-out takes all eigenpairs"))

    def _not_held(self, needed: str) -> str:
        advice = "fit an array with gram='dense', 'nystrom' or 'random-features'"
        return message("ConditionalMean", needed, "a fit in batches", advice)


@dataclass(frozen=True, eq=False)
class RegressionRows(UnsavedCaches):
    """The rows that a regression is fitted to: those of positive mass, x as the kernel sees it."""

    X: Array
    masses: Array
    outputs: Array
    """The y_i, of shape (n, n_outputs)."""
    kernel_y: Kernel
    has_intercept: bool

    @cached_property
    def targets(self) -> Array:
        """What is regressed: the y_i, or rows of a factor of their Gram matrix for a kernel that is not linear."""
        return factor_of(self.kernel_y, self.outputs)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.masses)


@dataclass(eq=False)
class SpectralFit(Fit):
    """A regression in the eigenbasis of the Gram matrix, every row of it in memory.

    Predictions and residuals take n numbers an output. The eigenvectors, n × n numbers, are for what needs each row's
    weight; a model that was loaded from a file computes them again when they are first asked for.
    """

    kernel: Kernel
    rows: RegressionRows
    features: FeatureMap | None
    """The feature map of an approximated kernel."""
    choices: list[ConditionalChoice]
    coefficients: Array | None
    """β of shape (n or features, n_outputs): predictions are k(x, X) β, or z(x) β, beside the mean."""
    mean: Array
    left_out: Array | None = None
    """What is predicted for each row without it, once it was asked for."""

    @classmethod
    def from_rows(
        cls,
        kernel: Kernel,
        rows: RegressionRows,
        plan: Plan,
        choose: Callable[[Regression], list[ConditionalChoice]],
    ) -> SpectralFit:
        """Decompose the Gram matrix of a kernel, held as planned, and choose each filter's parameter."""
        features = (
            plan.gram.resolve(kernel, rows.X) if isinstance(plan.gram, Approximation) else None
        )
        decomposition = Decomposition.from_rows(kernel, rows, features)
        check_scale(
            type(kernel).__name__,
            decomposition.regression.largest_value,
            np.dtype(np.float64),
            rows.X,
        )
        choices = choose(decomposition.regression)
        fit = cls(kernel, rows, features, choices, None, decomposition.regression.mean)
        vars(fit)["decomposition"] = decomposition  # where the cached property would put it
        if isinstance(rows.kernel_y, Linear):
            fit.coefficients = decomposition.basis @ (
                fit.inverse[:, None] * fit.regression.projected[:, :-1]
            )
        return fit

    def __getstate__(self) -> dict[str, Any]:
        """Return what is saved: n numbers for each output, and no n × n matrix."""
        if isinstance(self.rows.kernel_y, Linear):
            with suppress(ValueError):  # a filter that jumps, with more rows than are refitted for
                self.left_out_predictions()
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.rows.n

    @cached_property
    def decomposition(self) -> Decomposition:
        """The eigenbasis of the Gram matrix."""
        return Decomposition.from_rows(self.kernel, self.rows, self.features)

    @property
    def regression(self) -> Regression:
        """The rows in the eigenbasis."""
        return self.decomposition.regression

    @cached_property
    def inverse(self) -> Array:
        """g_λ(γ) of every component."""
        return self.choice.filter.inverse(self.regression.gamma, self.choice.parameter)

    def _values(self, X: Array) -> Array:
        """Return k(x, X) or z(x) of new points, in rows; of a precomputed kernel, what is given."""
        if self.features is not None:
            return self.features(X)
        return X if isinstance(self.kernel, Precomputed) else self.kernel(X, self.rows.X)

    def coordinates(self, X: Array) -> Array:
        """Return UᵀD k(X, x) of new points, in rows."""
        return self._values(X) @ self.decomposition.basis

    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points."""
        assert self.coefficients is not None
        return self._values(X) @ self.coefficients + self.mean

    @cached_property
    def _functions(self) -> Array:
        return LeaveOneOutSmoother(self.regression).functions(
            self.choice.filter, self.choice.parameter
        )

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        if self.left_out is None:
            self.left_out = LeaveOneOutSmoother(self.regression).predictions(
                self.choice.filter, self.choice.parameter
            )
        return self.left_out

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Each row's outputs minus that."""
        return self.rows.targets - self.left_out_predictions()

    @property
    def masses(self) -> Array:
        """The masses of the rows, with sum one."""
        return self.rows.masses

    def calibrating_rows(self) -> tuple[Array | None, Array]:
        """Return x of rows in memory, and their numbers."""
        is_matrix = isinstance(self.kernel, Precomputed)
        return (None, np.arange(self.n)) if is_matrix else evenly_spaced(self.rows.X)

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
        return LeaveOneOutSmoother(self.regression).weights(
            self.choice.filter, self.choice.parameter
        )

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        masses, targets = self.rows.masses, self.rows.targets
        spread = targets - masses @ targets
        return 1 - float((masses @ self.residuals**2).sum() / (masses @ spread**2).sum())


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The eigenbasis of A = DKD, D = diag(√p), with the rows in it, and how new points come into it."""

    regression: Regression
    basis: Array
    """What k(x, X), or z(x), is multiplied with for the coordinates UᵀD k(X, x)."""

    @classmethod
    def from_rows(
        cls, kernel: Kernel, rows: RegressionRows, features: FeatureMap | None
    ) -> Decomposition:
        """Decompose the Gram matrix, or the covariance of features."""
        return cls._dense(kernel, rows) if features is None else cls._on_features(features, rows)

    @classmethod
    def _dense(cls, kernel: Kernel, rows: RegressionRows) -> Decomposition:
        points = np.arange(rows.n)[:, None] if isinstance(kernel, Precomputed) else rows.X
        gram = DenseGram.from_sample(kernel, points, rows.masses)
        gamma, U = np.linalg.eigh(gram.matrix)
        check_semidefinite(gamma)
        gamma = raised_above_zero(gamma)
        regression = Regression(gamma, U, rows.masses, rows.targets, rows.has_intercept)
        return cls(regression, np.sqrt(rows.masses)[:, None] * U)

    @classmethod
    def _on_features(cls, features: FeatureMap, rows: RegressionRows) -> Decomposition:
        """K ≈ FFᵀ: with DF = U Γ^(1/2) Vᵀ, the coordinates UᵀD k(X, x) are Γ^(1/2) Vᵀ z(x)."""
        F = features(rows.X) * np.sqrt(rows.masses)[:, None]
        gamma, V = significant_eigenpairs(F.T @ F)
        root = np.sqrt(gamma)
        U = quotient(F @ V, root)
        regression = Regression(gamma, U, rows.masses, rows.targets, rows.has_intercept)
        return cls(regression, V * root)


def evenly_spaced(X: Array, numbers: Array | None = None) -> tuple[Array, Array]:
    """Return at most as many rows as calibrate quantiles, evenly spaced in their order, and their numbers."""
    numbers = np.arange(len(X)) if numbers is None else numbers
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), MAX_CALIBRATION_ROWS)).astype(int))
    return X[some], numbers[some]


def bounded(parts: Parts, kernel: Kernel, largest_value: float) -> list[Any]:
    """Return the filters for kernels with k(x, x) ≤ κ², which is the largest of the sample where there is no bound."""
    kappa2 = kernel.bound if np.isfinite(kernel.bound) else largest_value or 1.0
    return [filter.bounded_by(kappa2) for filter in parts.filters]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """x ↦ UᵀD k(X, x): features times a basis."""

    values: Any
    """A feature map."""
    basis: Array

    def __call__(self, X: Array) -> Array:
        return self.values(X) @ self.basis


def choices_by_leaving_out(
    parts: Parts, kernel: Kernel, rules: Sequence[Rule], regression: Regression
) -> list[ConditionalChoice]:
    """Return each filter's choice on rows in memory."""
    filters = bounded(parts, kernel, regression.largest_value)
    return choices_of(regression, rules, filters, LeaveOneOutSmoother(regression).scores)


def choices_of(
    regression: Regression,
    rules: Sequence[Rule],
    filters: Sequence[Any],
    left_out_scores: Callable[[list[Candidates]], list[Array]],
) -> list[ConditionalChoice]:
    """Return each filter's choice by its rule; what filters have in common by leave-one-out is computed once."""
    largest = float(regression.gamma.max(initial=0.0))
    candidates = [
        candidates_of(largest, regression.n, *each) for each in zip(rules, filters, strict=True)
    ]
    scores = [np.full(len(each.grid), np.nan) for each in candidates]
    left_out = [place for place, rule in enumerate(rules) if isinstance(rule, LeaveOneOut)]
    if left_out:
        check_rest(1 - float(regression.masses.max()))
        found = left_out_scores([candidates[place] for place in left_out])
        for place, each in zip(left_out, found, strict=True):
            scores[place] = each
    for place, rule in enumerate(rules):
        if isinstance(rule, GCV):
            scores[place] = regression.gcv(candidates[place])
    return [
        ConditionalChoice(rule, each.filter, each.grid, own)  # type: ignore[arg-type]
        for rule, each, own in zip(rules, candidates, scores, strict=True)
    ]


def candidates_of(largest: float, n: int, rule: Any, filter: Filter) -> Candidates:
    """Return a filter with the parameters to choose from: those given, or from hardly any regularisation to all.

    ``largest`` is γ_max.
    """
    if isinstance(rule, ParameterRule):
        return Candidates(filter, rule.parameter(filter, n))
    if rule.grid is not None:
        return Candidates(filter, checked_grid(rule, filter, rule.grid))
    largest = largest or 1.0
    if isinstance(filter, Iteration):
        last = filter.from_lambda(MIN_LAMBDA_SHARE * largest)
        last = last if isinstance(filter, Formula) else min(last, MAX_STEPS)
        return Candidates(
            filter, np.unique(np.geomspace(1, last, GRID_SIZE).round().astype(np.int64))
        )
    return Candidates(filter, np.geomspace(MIN_LAMBDA_SHARE * largest, 10 * largest, GRID_SIZE))


def factor_of(kernel: Kernel, outputs: Array) -> Array:
    """Return Z with ZZᵀ the Gram matrix of the outputs: these themselves, or a pivoted Cholesky factor."""
    if isinstance(kernel, Linear):
        return outputs
    L = kernel(outputs)
    factor, pivots, rank, _ = dpstrf(L, tol=FACTOR_TOLERANCE * float(np.diagonal(L).max()), lower=1)
    Z = np.empty((len(L), rank))
    Z[pivots - 1] = np.tril(factor)[:, :rank]
    return Z
