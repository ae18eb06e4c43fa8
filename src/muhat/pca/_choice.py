"""The number of components, or λ, chosen by left-out rows, with the curves it was chosen from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array, quotient
from muhat.filters import Filter, TruncatedSVD
from muhat.filters._base import GRID_SIZE, Iteration
from muhat.pca._left_out import LeftOutRows
from muhat.pca._noise import ProbedRows

MAX_COMPONENTS_TRIED = 100
"""Most components that ``'loo'`` chooses from."""

LEAST_COMPONENTS_SHOWN = 20
"""Numbers of components that a path has beyond the given one, at least, where there are so many."""

MAX_EXPLAINED_SHARE = 0.95
"""The share of the variance of all columns, in left-out rows, beyond which ``'loo'`` adds none."""

LAMBDA_RANGE = (1e-6, 10.0)
"""The least and the largest λ that are tried, as shares of the largest eigenvalue."""

MIN_ERROR_ROWS = 2
"""Rows that a standard error takes."""


@dataclass(frozen=True, eq=False)
class ComponentPath:
    """Leave-one-out scores of every number of components, or every λ, and the one that was taken.

    Attributes
    ----------
    filter : Filter
        The filter; for truncated SVD the candidates are numbers of components.
    grid : array of shape (candidates,)
        The candidates: numbers of components from 0 on, values of λ or numbers of iterations t.
    index, parameter : int, and int or float
        The candidate that was taken, by its place in the grid and by itself.
    errors, standard_errors : arrays of shape (candidates,)
        The mean reconstruction error of left-out rows in the RKHS, ‖(1 − s(Ĉ_i))(φ(x_i) − μ_i)‖²,
        and its standard error. It never grows with more components.
    gains, gain_errors : arrays of shape (candidates,)
        How much nearer the filtered covariance is to that of left-out rows than zero is, in the
        squared Hilbert–Schmidt norm, and the standard error of that. λ has the largest; the number
        of components of a precomputed kernel is the least within one standard error of that.
    row_errors : array of shape (rows,)
        The reconstruction error of each left-out row at the candidate that was taken.
    is_chosen : bool
        Whether left-out rows chose the candidate; else it was given, or is one component where
        the mean alone describes left-out rows best.
    """

    filter: Filter
    grid: Array
    index: int
    errors: Array
    standard_errors: Array
    gains: Array
    gain_errors: Array
    row_errors: Array
    is_chosen: bool

    @property
    def parameter(self) -> Any:
        """The number of components, λ or t that was taken."""
        return self.grid[self.index].item()

    @property
    def n_rows(self) -> int:
        """The number of rows that were left out."""
        return len(self.row_errors)

    @classmethod
    def from_rows(
        cls,
        rows: LeftOutRows,
        filter: Filter,
        grid: Array,
        given: Any = None,
        is_chosen: bool = False,
    ) -> ComponentPath:
        """Leave out each row; take the given candidate, or the one with the largest gain."""
        if isinstance(filter, TruncatedSVD):
            scores = rows.truncated(int(grid[-1]))
        else:
            scores = rows.filtered(filter, grid)
        weights = rows.masses / rows.masses.sum()
        gains = weights @ scores.gains
        if given is None:
            index = int(np.argmax(gains))
            if isinstance(filter, TruncatedSVD):
                index = _fewest_components(scores.gains, weights, index)
        else:
            index = int(np.flatnonzero(grid == given)[0])
        return cls(
            filter=filter,
            grid=grid,
            index=index,
            errors=weights @ scores.errors,
            standard_errors=_standard_errors(scores.errors, weights),
            gains=gains,
            gain_errors=_standard_errors(scores.gains, weights),
            row_errors=scores.errors[:, index],
            is_chosen=is_chosen or given is None,
        )


def default_grid(filter: Filter, gamma: Array, given: Any = None) -> Array:
    """Return the candidates of a filter, ascending, with the given one among them."""
    if isinstance(filter, TruncatedSVD):
        most = MAX_COMPONENTS_TRIED
        if given is not None:
            most = max(2 * int(given), LEAST_COMPONENTS_SHOWN)
        return np.arange(min(len(gamma), most) + 1)
    largest = float(gamma[0]) or 1.0
    least, most_lambda = (share * largest for share in LAMBDA_RANGE)
    if isinstance(filter, Iteration):
        grid = filter.grid_down_to(least)
    else:
        grid = np.geomspace(least, most_lambda, GRID_SIZE)
    if given is None:
        return grid
    return np.unique(np.append(grid, given))


@dataclass(frozen=True, eq=False)
class ComponentChoice:
    """How well each number of components separates signal from noise, and the number to take.

    Attributes
    ----------
    grid : array of shape (candidates,)
        Numbers of components, from 0 on.
    scores, standard_errors : arrays of shape (candidates,)
        ‖x − x̂‖²/d over (1 − D/d)², x̂ being a left-out row as the components see it, and its
        standard error: generalised cross-validation over columns. Small is good.
    degrees_of_freedom : array of shape (candidates,)
        D, the mean divergence of x̂: in how many of the d columns x̂ follows the noise of x.
    noise_variances : array of shape (candidates,)
        ‖x − x̂‖²/(d − D), an estimate of the variance of the noise in one column.
    explained : array of shape (candidates,)
        1 − Σ‖x − x̂‖²/Σ‖x − mean‖² over left-out rows: the share of the variance of all columns.
    best : int
        The number with the least score; 0 if the mean alone is best.
    n_components : int
        The least number, from 1 on, whose score is within one standard error of the best, or that
        explains 95 % of the variance of all columns in left-out rows if this is less.
    is_limited : bool
        Whether the 95 % decided: then what is left out is not only noise.
    """

    grid: Array
    scores: Array
    standard_errors: Array
    degrees_of_freedom: Array
    noise_variances: Array
    explained: Array
    best: int
    n_components: int
    is_limited: bool

    @classmethod
    def from_rows(cls, rows: ProbedRows) -> ComponentChoice:
        """Leave out rows in folds, and score every number of components up to 100."""
        most = min(len(rows.gamma), MAX_COMPONENTS_TRIED)
        found = rows.component_scores(most)
        best = int(np.argmin(found.means))
        fewest = 1
        if np.isfinite(found.means[best]):
            fewest = _fewest_components(-found.rows, rows.weights, best)
        explained = 1 - quotient(found.squares, found.squares[:1])
        enough = np.flatnonzero(explained >= MAX_EXPLAINED_SHARE)
        is_limited = len(enough) > 0 and 1 <= enough[0] < fewest
        if is_limited:
            fewest = int(enough[0])
        return cls(
            grid=np.arange(most + 1),
            scores=found.means,
            standard_errors=_standard_errors(found.rows, rows.weights),
            degrees_of_freedom=found.freedom,
            noise_variances=found.variances,
            explained=explained,
            best=best,
            n_components=fewest,
            is_limited=bool(is_limited),
        )

    @property
    def noise_sd(self) -> float:
        """The standard deviation of what is left out, in one column: noise, unless limited."""
        return float(np.sqrt(self.noise_variances[min(self.n_components, len(self.grid) - 1)]))


def _fewest_components(gains: Array, weights: Array, best: int) -> int:
    """Return the least number of components, from one on, that is as good as the best.

    It is within one standard error of the difference between the two, row by row.
    """
    lost = gains[:, [best]] - gains
    is_close = weights @ lost <= _standard_errors(lost, weights)
    is_close[best] = True
    return max(1, int(np.flatnonzero(is_close)[0]))


def _standard_errors(values: Array, weights: Array) -> Array:
    """Return the standard error of each column's weighted mean."""
    if len(values) < MIN_ERROR_ROWS:
        return np.full(values.shape[1], np.nan)
    gaps = values - weights @ values
    size = 1 / float(weights @ weights)
    return np.sqrt(weights @ gaps**2 / max(size - 1, np.finfo(float).tiny))
