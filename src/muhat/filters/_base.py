"""What a shrinker is, and what a filter is: a function s_λ of the eigenvalues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array, quotient
from muhat._bases import BaseEstimator
from muhat.errors import MuhatError
from muhat.gram import Access, Components, Problem

GRID_SIZE = 50
"""Maximum number of parameters in a default grid."""

LARGE_LAMBDA_FACTORS = 10.0 ** np.arange(2, 17, 2)
"""Multiples of γ_max at the end of a grid of λ; at the last one, all that is left is rounding."""

MIN_SPREAD_SHARE = 1e-6
"""Lower limit for the spread of the points around their mean, as a share of tr A."""

REFINEMENT_STEPS = 3
"""Number of parameters added between the best one of a grid and each of its neighbours."""

EMPTY: Array = np.empty(0)


def as_numbers(grid: Any) -> Array:
    """Return a grid as an array of floats, a single NaN if it cannot be converted."""
    try:
        return np.atleast_1d(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError):
        return np.full(1, np.nan)


class Shrinker(BaseEstimator, ABC):
    """A rule for how much of each component of μ̂ − f* to keep.

    What tables, figures and defaults need to know about it are attributes of its class.
    """

    name: ClassVar[str] = ""
    """What users type, such as 'f-kmse'; the name of the class unless it states another."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that users may type."""
    label: ClassVar[str] = ""
    """What figures and tables call it, such as 'F-KMSE'; the name unless it states another."""
    symbol: ClassVar[str] = "λ"
    """The letter of its parameter, 't' for a number of iterations; empty without a parameter."""
    colour: ClassVar[str] = "#999999"
    """Its colour in figures."""
    marker: ClassVar[str] = "*"
    """Its marker in figures, for readers without colours."""
    in_auto: ClassVar[bool] = False
    """Whether ``KernelMean(filter="auto")`` considers it."""
    in_conditional_auto: ClassVar[bool] = False
    """Whether ``ConditionalMean(filter="auto")`` considers it."""

    parameterless: ClassVar[bool] = False
    """Whether it has no parameter to choose."""
    analytic: ClassVar[bool] = False
    """Whether it is a smooth function of γ, so that its exact leave-one-out score is cheap."""
    constant: ClassVar[bool] = False
    """Whether it treats all components alike, so that no spectrum is needed."""
    needs: Access = Access.SPECTRUM
    """What the estimate is computed from: all eigenpairs, the leading ones, or products with A."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if "label" not in vars(cls):
            cls.label = cls.name

    @abstractmethod
    def on(self, components: Components, grid: Array) -> Array:
        """Return s of every component for every parameter: shape (parameters, ..., components).

        Components are in ascending order of γ. Where γ is zero, s is that of ``at_zero``.
        """

    @abstractmethod
    def at_zero(self, grid: Array) -> Array:
        """Return s at γ = 0, where the sample has no variance: shape (parameters,)."""

    def grid(self, problem: Problem) -> Array:
        """Return the default parameters to choose from: shape (parameters,)."""
        raise NotImplementedError

    def refine_grid(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return more parameters near the one at the index, or beyond the end of an open grid."""
        return EMPTY

    def check(self, grid: Array) -> Array:
        """Return a grid given by the user as an array; raise MuhatError if it is invalid."""
        raise NotImplementedError

    def bounded_by(self, kappa2: float) -> Shrinker:
        """Return this filter with its step size set for kernels with k(x, x) ≤ κ²."""
        return self


class Filter(Shrinker):
    """A function s_λ(γ) of the eigenvalues of A = K/n: γ g_λ(γ) in the paper's letters.

    A filter of your own is a dataclass with one method, ``shrinkage``. A smooth one is scored by
    exact leave-one-out at no extra cost. The score checks its own error and falls back to one refit
    per row if the filter turns out not to be smooth.
    """

    analytic: ClassVar[bool] = True

    qualification: ClassVar[float] = float("nan")
    """η0 of Definition 1: the largest η with |r_λ(γ)| γ^η ≤ D(η) λ^η, r_λ = 1 − s_λ."""
    B: float = float("nan")
    """Definition 1: |s_λ(γ)| ≤ B on [0, κ²]; NaN where no constant is stated."""
    C: float = float("nan")
    """Definition 1: |r_λ(γ)| ≤ C on [0, κ²]; NaN where no constant is stated."""

    def D(self, eta: float, kappa2: float) -> float:
        """Return D(η) of Definition 1, a bound of |r_λ(γ)| (γ/λ)^η on [0, κ²]; NaN if unknown."""
        return float("nan")

    @property
    def needs(self) -> Access:  # type: ignore[override]
        """What the estimate is computed from: for a smooth function of γ, products with A."""
        if self.analytic:
            return Access.PRODUCTS
        return Access.SPECTRUM

    @abstractmethod
    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """Return s_λ(γ), the factor by which a component with eigenvalue γ is multiplied."""

    def inverse(self, gamma: Array, parameter: Any) -> Array:
        """Return g_λ(γ) = (s_λ(γ) − s_λ(0))/γ, the regularised 1/γ; zero at γ = 0.

        A constant filter keeps s_λ(0) of everything, also outside of the span of the sample, so
        that nothing is left to invert.
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
        """Return λ from almost no shrinkage to full shrinkage."""
        largest = problem.largest_eigenvalue or 1.0
        usual = np.geomspace(smallest_lambda(problem), 10 * largest, GRID_SIZE)
        return np.concatenate([usual, largest * LARGE_LAMBDA_FACTORS])

    def refine_grid(self, problem: Problem, grid: Array, index: int) -> Array:
        """Return λ on either side of the one at the index."""
        near = grid[max(index - 1, 0) : index + 2]
        near = near[np.isfinite(near)]
        added = [EMPTY]
        for low, high in pairwise(near):
            added.append(np.geomspace(low, high, REFINEMENT_STEPS + 2)[1:-1])
        return np.concatenate(added)

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

    def n_products(self, parameter: float) -> float:
        """Return the number of products with A that make the estimate exact.

        It is infinite unless s_λ is a polynomial.
        """
        return float("inf")


def smallest_lambda(problem: Problem) -> float:
    """Return the λ at which the squared bias is a tenth of KME's risk.

    The squared bias is at most λ for each component.
    """
    trace = float(np.mean(problem.trace)) or problem.largest_eigenvalue or 1.0
    spread = max(float(np.mean(problem.spread)), MIN_SPREAD_SHARE * trace)
    return spread / (10 * problem.n * problem.rank)


class Formula(Filter):
    """A filter whose ``shrinkage`` is one formula that broadcasts over parameters."""

    def path(self, gamma: Array, grid: Array) -> Array:
        column = grid.reshape(-1, *[1] * np.ndim(gamma))
        return self.shrinkage(np.asarray(gamma)[None], column)


class Iteration(Filter):
    """A filter whose parameter is the number of iterations t."""

    symbol: ClassVar[str] = "t"
    max_iterations: ClassVar[int]
    """The largest t that may be asked for."""

    def check(self, grid: Array) -> Array:
        values = as_numbers(grid)
        in_range = (values >= 1) & (values <= self.max_iterations)
        valid = in_range & (values == np.floor(values))
        if values.ndim != 1 or not values.size or not valid.all():
            numbers = f"a whole number from 1 to {self.max_iterations:g}, or a list of them"
            needed = f"the number of iterations t must be {numbers}"
            raise MuhatError(type(self).__name__, needed, str(grid))
        return values.astype(np.int64)

    def grid(self, problem: Problem) -> Array:
        """Return t from 1 up to almost no shrinkage."""
        return self.grid_down_to(smallest_lambda(problem))

    def grid_down_to(self, lam: float) -> Array:
        """Return t from 1 up to the number of iterations that acts as λ."""
        steps = np.geomspace(1, self.from_lambda(lam), GRID_SIZE)
        return np.unique(steps.round().astype(np.int64))

    def refine_grid(self, problem: Problem, grid: Array, index: int) -> Array:
        steps = super().refine_grid(problem, grid, index)
        return np.setdiff1d(steps.round().astype(np.int64), grid)

    def n_products(self, parameter: float) -> float:
        """Return t + 1: one product for each iteration, and one for the right-hand side."""
        return parameter + 1
