"""Conditional means of rows in memory.

A decomposition, each filter's choice, and what follows from both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.linalg.lapack import dpstrf

from muhat._arrays import Array, quotient, raised_above_zero, significant_eigenpairs
from muhat._parts import Parts
from muhat._tolerances import FACTOR_TOL
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import check_scale, check_semidefinite
from muhat.errors import MuhatError, message
from muhat.filters import Filter, Iteration
from muhat.filters._base import GRID_SIZE, Formula
from muhat.gram import Approximation, DenseGram, FeatureMap
from muhat.gram._plan import Plan
from muhat.gram._problem import kappa2_of
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import GCV, Choice, LeaveOneOut, ParameterRule, Rule
from muhat.selection._base import (
    Candidates,
    candidates_of,
    check_remaining_mass,
    least_score_choice,
)
from muhat.selection._regression import Regression
from muhat.selection._smoother import LeaveOneOutSmoother

MIN_LAMBDA_SHARE = 1e-9
"""The least λ of a grid, in units of γ_max.

Below it, rounding of the eigenvalues shows in predictions.
"""

MAX_STEPS = 128
"""The most iterations of a grid for filters that are computed step by step."""

MAX_CALIBRATION_ROWS = 1000
"""The most rows whose left-out residuals calibrate quantiles."""


class Fit(ABC):
    """A conditional mean on one kernel, with each filter's choice."""

    kernel: Kernel
    choices: list[Choice]
    n: int
    residuals: Array
    """Each row's outputs minus what is predicted for them by the smoother made without it.

    Shape (n, columns).
    """

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
    def choice(self) -> Choice:
        """The choice with the least score."""
        if len(self.choices) > 1:
            return min(self.choices, key=lambda choice: choice.score)
        return self.choices[0]

    @property
    def filter(self) -> Filter:
        """The chosen filter; only filters that invert are accepted."""
        return cast(Filter, self.choice.filter)

    @abstractmethod
    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points: shape (m, columns)."""

    @abstractmethod
    def left_out_values(self, X: Array) -> Array:
        """Return what the smoother made without each row predicts at new points.

        Shape (columns, m, n or 1).
        """

    def weights(self, X: Array) -> Array:
        """Return the weights of the outputs at new points: shape (m, n)."""
        raise MuhatError(self._not_held("weights and distributions need the outputs of all rows"))

    def left_out_weights(self) -> Array:
        """Return the weights of the others in each row's left-out prediction: shape (n, n)."""
        raise MuhatError(self._not_held("left-out distributions need the outputs of all rows"))

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        raise MuhatError(self._not_held("leave-one-out needs all eigenpairs"))

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        raise MuhatError(self._not_held("leave-one-out needs all eigenpairs"))

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
        """What is regressed, of shape (n, columns).

        The y_i, or rows of a factor of their Gram matrix for a kernel that is not linear.
        """
        return factor_of(self.kernel_y, self.outputs)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.masses)


@dataclass(eq=False)
class SpectralFit(Fit):
    """A regression in the eigenbasis of the Gram matrix, every row of it in memory.

    Predictions and residuals take n numbers an output. The eigenvectors, n × n numbers, are for
    what needs each row's weight; a model that was loaded from a file computes them again when they
    are first asked for.
    """

    kernel: Kernel
    rows: RegressionRows
    features: FeatureMap | None
    """The feature map of an approximated kernel."""
    choices: list[Choice]
    coefficients: Array | None
    """β of shape (n or features, n_outputs).

    Predictions are k(x, X) β, or z(x) β, beside the mean.
    """
    mean: Array
    left_out: Array | None = None
    """What is predicted for each row without it, once it was asked for."""

    @classmethod
    def from_rows(
        cls,
        kernel: Kernel,
        rows: RegressionRows,
        plan: Plan,
        choose: Callable[[Regression], list[Choice]],
    ) -> SpectralFit:
        """Decompose the Gram matrix of a kernel and choose each filter's parameter."""
        features = None
        if isinstance(plan.gram, Approximation):
            features = plan.gram.resolve(kernel, rows.X)
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
        return self.filter.inverse(self.regression.gamma, self.choice.parameter)

    def _values(self, X: Array) -> Array:
        """Return k(x, X) or z(x) of new points, in rows; of a precomputed kernel, what is given."""
        if self.features is not None:
            return self.features(X)
        if isinstance(self.kernel, Precomputed):
            return X
        return self.kernel(X, self.rows.X)

    def coordinates(self, X: Array) -> Array:
        """Return UᵀD k(X, x) of new points, in rows."""
        return self._values(X) @ self.decomposition.basis

    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points."""
        assert self.coefficients is not None
        return self._values(X) @ self.coefficients + self.mean

    @cached_property
    def _functions(self) -> Array:
        return LeaveOneOutSmoother(self.regression).functions(self.filter, self.choice.parameter)

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        if self.left_out is None:
            self.left_out = LeaveOneOutSmoother(self.regression).predictions(
                self.filter, self.choice.parameter
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
        if is_matrix:
            return (None, np.arange(self.n))
        return evenly_spaced(self.rows.X)

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
        return LeaveOneOutSmoother(self.regression).weights(self.filter, self.choice.parameter)

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        masses, targets = self.rows.masses, self.rows.targets
        spread = targets - masses @ targets
        return 1 - float((masses @ self.residuals**2).sum() / (masses @ spread**2).sum())


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The eigenbasis of A = DKD with the rows in it, and the map of new points into it.

    D = diag(√p).
    """

    regression: Regression
    basis: Array
    """What k(x, X), or z(x), is multiplied with for the coordinates UᵀD k(X, x)."""

    @classmethod
    def from_rows(
        cls, kernel: Kernel, rows: RegressionRows, features: FeatureMap | None
    ) -> Decomposition:
        """Decompose the Gram matrix, or the covariance of features."""
        if features is None:
            return cls._dense(kernel, rows)
        return cls._on_features(features, rows)

    @classmethod
    def _dense(cls, kernel: Kernel, rows: RegressionRows) -> Decomposition:
        if isinstance(kernel, Precomputed):
            points = np.arange(rows.n)[:, None]
        else:
            points = rows.X
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
    """Return the rows that calibrate quantiles, evenly spaced, and their numbers."""
    if numbers is None:
        numbers = np.arange(len(X))
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), MAX_CALIBRATION_ROWS)).astype(int))
    return X[some], numbers[some]


def bounded(parts: Parts, kernel: Kernel, largest_value: float) -> list[Any]:
    """Return the filters for kernels with k(x, x) ≤ κ²."""
    kappa2 = kappa2_of(kernel.bound, largest_value)
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
) -> list[Choice]:
    """Return each filter's choice on rows in memory."""
    filters = bounded(parts, kernel, regression.largest_value)
    return choices_of(regression, rules, filters, LeaveOneOutSmoother(regression).scores)


def choices_of(
    regression: Regression,
    rules: Sequence[Rule],
    filters: Sequence[Any],
    left_out_scores: Callable[[list[Candidates]], list[Array]],
) -> list[Choice]:
    """Return each filter's choice by its rule.

    What filters have in common by leave-one-out is computed once.
    """
    candidates = []
    scores = []
    for rule, filter in zip(rules, filters, strict=True):
        if isinstance(rule, ParameterRule):
            own = Candidates(filter, rule.parameter(filter, regression.n))
        else:
            own = candidates_of(rule, filter, regression, regression_grid)
        candidates.append(own)
        scores.append(np.full(len(own.grid), np.nan))
        if isinstance(rule, GCV):
            scores[-1] = regression.gcv(own)
    left_out = [place for place, rule in enumerate(rules) if isinstance(rule, LeaveOneOut)]
    if left_out:
        check_remaining_mass(1 - float(regression.masses.max()))
        found = left_out_scores([candidates[place] for place in left_out])
        for place, own_scores in zip(left_out, found, strict=True):
            scores[place] = own_scores
    return list(map(least_score_choice, rules, candidates, scores))


def regression_grid(filter: Filter, regression: Regression) -> Array:
    """Return the parameters to choose from: from hardly any regularisation to all of it."""
    largest = float(regression.gamma.max(initial=0.0)) or 1.0
    if not isinstance(filter, Iteration):
        return np.geomspace(MIN_LAMBDA_SHARE * largest, 10 * largest, GRID_SIZE)
    last = filter.from_lambda(MIN_LAMBDA_SHARE * largest)
    if not isinstance(filter, Formula):
        last = min(last, MAX_STEPS)
    return np.unique(np.geomspace(1, last, GRID_SIZE).round().astype(np.int64))


def factor_of(kernel: Kernel, outputs: Array) -> Array:
    """Return Z with ZZᵀ the Gram matrix of the outputs.

    These themselves, or a pivoted Cholesky factor.
    """
    if isinstance(kernel, Linear):
        return outputs
    L = kernel(outputs)
    factor, pivots, rank, _ = dpstrf(L, tol=FACTOR_TOL * float(np.diagonal(L).max()), lower=1)
    Z = np.empty((len(L), rank))
    Z[pivots - 1] = np.tril(factor)[:, :rank]
    return Z
