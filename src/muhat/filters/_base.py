"""What a shrinker is, and what a filter is: a function s_λ of the eigenvalues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from muhat._arrays import Array, quotient
from muhat.errors import MuhatError
from muhat.gram import Access, Components, Problem

GRID_SIZE = 50
"""How many parameters a default grid has, at most."""

FAR = 10.0 ** np.arange(2, 17, 2)
"""Multiples of γ_max that λ is tried at too: from the last on, what is left of any component is rounding."""

LEAST_SPREAD = 1e-6
"""The share of tr A that the spread of the points around their mean is taken to be at least."""

STEPS_BETWEEN = 3
"""How many parameters a grid is refined by, on either side of the best."""

NONE: Array = np.empty(0)


def as_numbers(grid: Any) -> Array:
    """Return a grid as an array of floats, NaN for what is no number."""
    try:
        return np.atleast_1d(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError):
        return np.full(1, np.nan)


class Shrinker(BaseEstimator, ABC):
    """A rule that says, component by component, what is left of μ̂ − f*."""

    parameterless: ClassVar[bool] = False
    """Whether there is nothing to choose."""
    analytic: ClassVar[bool] = False
    """Whether it is a smooth function of γ, so that its leave-one-out score is cheap."""
    constant: ClassVar[bool] = False
    """Whether it treats all components alike, so that no spectrum is needed."""
    needs: Access = Access.SPECTRUM
    """What the estimate takes: all eigenpairs, the leading ones, or products with A alone."""

    @abstractmethod
    def on(self, components: Components, grid: Array) -> Array:
        """Return s of every component for every parameter: shape (parameters, ..., components)."""

    @abstractmethod
    def at_zero(self, grid: Array) -> Array:
        """Return s where the sample has no variance, for every parameter."""

    def grid(self, problem: Problem) -> Array:
        """Return the parameters to choose from, if there is something to choose."""
        raise NotImplementedError

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return parameters between the one at the index and its neighbours, or beyond the end of an open grid."""
        return NONE

    def check(self, grid: Array) -> Array:
        """Return a grid given by the user as an array, or refuse it."""
        raise NotImplementedError

    def bounded_by(self, kappa2: float) -> Shrinker:
        """Return this shrinker for kernels with k(x, x) ≤ κ², for those whose steps depend on it."""
        return self


class Filter(Shrinker):
    """A function s_λ(γ) of the eigenvalues of A = K/n: γ g_λ(γ) in the paper's letters.

    A filter of your own is a dataclass with one method, ``shrinkage``. If it is smooth it is scored by exact
    leave-one-out at no extra price: the score checks its own error, and points are left out by refits where it is not.
    """

    analytic: ClassVar[bool] = True
    qualification: float = float("nan")
    """η0 of Definition 1: the largest η with |r_λ(γ)| γ^η ≤ D(η) λ^η, r_λ = 1 − s_λ."""

    @property
    def needs(self) -> Access:  # type: ignore[override]
        """What the estimate takes: a function of γ without jumps is found by products with A alone."""
        return Access.PRODUCTS if self.analytic else Access.SPECTRUM

    @abstractmethod
    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """Return s_λ(γ), what is left of a component with eigenvalue γ."""

    def inverse(self, gamma: Array, parameter: Any) -> Array:
        """Return g_λ(γ) = (s_λ(γ) − s_λ(0))/γ, the regularised 1/γ; zero at γ = 0, where no component is.

        A constant filter leaves s_λ(0) of everything, spanned by the sample or not: there is nothing to invert.
        """
        at_zero = self.at_zero(np.atleast_1d(parameter))[0]
        return quotient(self.shrinkage(gamma, parameter) - at_zero, np.asarray(gamma))

    def path(self, gamma: Array, grid: Array) -> Array:
        """Return s_λ(γ) for every λ of the grid: shape (parameters, *gamma.shape)."""
        return np.stack([self.shrinkage(gamma, parameter) for parameter in grid.tolist()])

    def on(self, components: Components, grid: Array) -> Array:
        return self.path(components.gamma, grid)

    def at_zero(self, grid: Array) -> Array:
        return self.path(np.zeros(1), grid)[:, 0]

    def grid(self, problem: Problem) -> Array:
        """Return λ from where next to nothing is shrunk to where nothing but the target is left."""
        largest = problem.largest_eigenvalue or 1.0
        return np.concatenate(
            [np.geomspace(least_lambda(problem), 10 * largest, GRID_SIZE), largest * FAR]
        )

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return λ on either side of the one at the index."""
        near = grid[max(index - 1, 0) : index + 2]
        near = near[np.isfinite(near)]
        parts = [np.geomspace(low, high, STEPS_BETWEEN + 2)[1:-1] for low, high in pairwise(near)]
        return np.concatenate([NONE, *parts])

    def check(self, grid: Array) -> Array:
        values = as_numbers(grid)
        if values.ndim != 1 or not values.size or not ((values > 0) & (values < np.inf)).all():
            needed = "λ must be positive and finite, a number or a list of them"
            raise MuhatError(type(self).__name__, needed, str(grid), "a smaller λ > 0 shrinks less")
        return values

    def as_lambda(self, parameter: float) -> float:
        """Return the λ that the parameter acts as."""
        return parameter

    def from_lambda(self, lam: float) -> float:
        """Return the parameter that acts as λ."""
        return lam

    def products(self, parameter: float) -> float:
        """Return after how many products with A the estimate is exact: infinite unless s_λ is a polynomial."""
        return float("inf")


def least_lambda(problem: Problem) -> float:
    """Return the λ up to which the squared bias, at most λ for each component, is below a tenth of KME's risk."""
    trace = float(np.mean(problem.trace)) or problem.largest_eigenvalue or 1.0
    return max(float(np.mean(problem.spread)), LEAST_SPREAD * trace) / (
        10 * problem.n * problem.rank
    )


class Formula(Filter):
    """A filter whose ``shrinkage`` is one formula, which takes a column of parameters as well as one."""

    def path(self, gamma: Array, grid: Array) -> Array:
        column = grid.reshape(-1, *[1] * np.ndim(gamma))
        return self.shrinkage(np.asarray(gamma)[None], column)


class Iteration(Filter):
    """A filter whose parameter is the number of iterations t."""

    most: ClassVar[int]
    """The largest t that can be asked for."""

    def check(self, grid: Array) -> Array:
        values = as_numbers(grid)
        whole = (values >= 1) & (values <= self.most) & (values == np.floor(values))
        if values.ndim != 1 or not values.size or not whole.all():
            needed = f"the number of iterations t must be a whole number from 1 to {self.most:g}, or a list of them"
            raise MuhatError(type(self).__name__, needed, str(grid))
        return values.astype(np.int64)

    def grid(self, problem: Problem) -> Array:
        """Return t from 1 up to where next to nothing is shrunk."""
        return self.up_to(least_lambda(problem))

    def up_to(self, lam: float) -> Array:
        """Return t from 1 up to what acts as λ."""
        return np.unique(np.geomspace(1, self.from_lambda(lam), GRID_SIZE).round().astype(np.int64))

    def around(self, problem: Problem, grid: Array, index: int) -> Array:
        return np.setdiff1d(super().around(problem, grid, index).round().astype(np.int64), grid)

    def products(self, parameter: float) -> float:
        """One product an iteration, and one for the right-hand side."""
        return parameter + 1
