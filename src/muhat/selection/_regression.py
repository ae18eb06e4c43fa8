"""Regression in the eigenbasis of A = DKD: what a smoother and its scores are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from muhat._arrays import Array
from muhat.filters import Filter
from muhat.selection._base import Candidates, gcv_scores


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows in the eigenbasis of A = DKD, with what is to be predicted of each."""

    gamma: Array
    """Eigenvalues of A, none below zero."""
    U: Array
    """Eigenvectors, in columns.

    All n of them, or those of a matrix of low rank that has no others.
    """
    masses: Array
    outputs: Array
    """Of shape (n, columns)."""
    has_intercept: bool
    """Whether what the weights α_i(x) lack to one goes to the mean of the outputs."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.masses)

    @cached_property
    def mean(self) -> Array:
        """The mean of the outputs, or zero without an intercept."""
        if not self.has_intercept:
            return np.zeros(self.outputs.shape[1])
        return self.masses @ self.outputs

    @cached_property
    def Z(self) -> Array:
        """The outputs, measured from their mean."""
        return self.outputs - self.mean

    @cached_property
    def left_out_means(self) -> Array:
        """The mean of all z_j but one, for each row.

        As the mean of all is zero, −p_i z_i/(1 − p_i).
        """
        if not self.has_intercept:
            return np.zeros_like(self.Z)
        return -(self.masses / (1 - self.masses))[:, None] * self.Z

    @property
    def root_masses(self) -> Array:
        """The diagonal of D."""
        return np.sqrt(self.masses)

    @cached_property
    def projected(self) -> Array:
        """UᵀDZ, with UᵀD1 as one more column."""
        with_ones = np.column_stack([self.Z, np.ones(len(self.Z))])
        return self.U.T @ (self.root_masses[:, None] * with_ones)

    @cached_property
    def own(self) -> Array:
        """A_ii = p_i k(x_i, x_i)."""
        return self.U**2 @ self.gamma

    @property
    def largest_value(self) -> float:
        """max k(x_i, x_i)."""
        return float((self.own / self.masses).max())

    @property
    def spread(self) -> float:
        """Σ p_i ‖z_i‖²."""
        return float((self.masses @ self.Z**2).sum())

    def gcv(self, candidates: Candidates) -> Array:
        """Return Σ p_i ‖z_i − ẑ_i‖²/(1 − tr S/n)² for every parameter.

        ẑ = S z are the fitted values.
        """
        r = 1 - cast(Filter, candidates.filter).path(self.gamma, candidates.grid)
        n = self.n
        squares, ones = (self.projected[:, :-1] ** 2).sum(axis=1), self.projected[:, -1] ** 2
        # What the eigenvectors do not span is not smoothed at all.
        outside = max(self.spread - float(squares.sum()), 0.0)
        residual = r**2 @ squares + outside
        freedom = (r.sum(axis=1) + n - len(self.gamma)) / n
        if self.has_intercept:
            # S has (1 − α(x)ᵀ1) p beside α(x), whose trace is qᵀ(1 − s(A))q.
            ones_outside = max(1 - float(ones.sum()), 0.0)
            freedom -= (r @ ones + ones_outside) / n
        return gcv_scores(residual, freedom, n)


@dataclass(frozen=True)
class RegressionTotals:
    """What the rows of a regression sum up to, where they are not in memory."""

    n: int
    mean: Array
    projected: Array
    spread: float
    largest_value: float


@dataclass(frozen=True, eq=False)
class RegressionBatch(Regression):
    """Some rows of a regression whose sums over all rows are known."""

    whole: RegressionTotals = field(kw_only=True)

    def __post_init__(self) -> None:
        vars(self).update(mean=self.whole.mean, projected=self.whole.projected)

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.whole.n

    @property
    def spread(self) -> float:
        """Σ p_i ‖z_i‖² over all rows."""
        return self.whole.spread

    @property
    def largest_value(self) -> float:
        """max k(x_i, x_i) over all rows."""
        return self.whole.largest_value
