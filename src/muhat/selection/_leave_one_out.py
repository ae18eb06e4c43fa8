"""Exact leave-one-out for every filter and every parameter.

Filters that are smooth take one eigendecomposition; for all others, and where whole folds are left
out, there is one for every set that is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import ndtr, stdtrit

from muhat._arrays import Array, share_between_cores, slices, without_rounding
from muhat._tolerances import GAIN_ROUNDING
from muhat.filters import Filter, Shrinker
from muhat.gram import Access, Components, EigenbasisRows, SpectralProblem
from muhat.gram._problem import HeldOut, HeldOutBasis
from muhat.selection._base import (
    Candidates,
    Choice,
    Scored,
    Scores,
    bias_factor_on,
    check_remaining_mass,
    checked_bias_factor,
)
from muhat.selection._poles import Interval, Moments, Nodes, Poles, find_poles, resolvent_terms

__all__ = ["MAX_ROWS_REFIT", "LeaveOneOut"]

HEAVY_MASS_SHARE = 0.02
"""A point is heavy if the rest is smaller by this share than without the lightest point."""

MAX_ROWS_REFIT = 300
"""Most points that are left out one by one, for filters without a cheaper exact score."""

MAX_ENTRIES_PER_CHUNK = 2**22
"""Matrix entries a core holds at once."""

MIN_CHUNKS = 4
"""Chunks, so that every core has something to do."""

SINGLE_GAIN_ERRORS = 2.0
"""Standard errors beyond which a single gain is clear."""

N_MULTIPLIER_DRAWS = 2000
"""Draws of the largest of many gains under chance."""

N_GRID_CANDIDATES = 40
"""Candidates of a filter's grid that take part in these draws: neighbours are nearly one."""

PARAMETERS_PER_BLOCK = 8
"""Parameters for which a filter is evaluated together on all left-out samples."""


@dataclass
class LeaveOneOut(Scored):
    """LOO(λ) = Σ_i p_i ‖k(x_i, ·) − μ_λ^(−i)‖², μ_λ^(−i) being the estimate without point i.

    The masses p_i are 1/n without sample weights.

    The score is exact. Constant filters have a closed form. For smooth functions of γ, the score is
    computed from resolvents of the full matrix, without refits; only points that have a large share
    of the mass are left out by a refit. Truncated SVD and the component-wise rule need a refit for
    each of the n points, which is done for up to 300 points.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    bias_factor : float, 'auto' or None, default=None
        The factor κ of the squared bias. The gain over KME is 2A − Q, where Q = Σ p_i ‖m_i −
        μ_λ^(−i)‖² is the squared bias. With κ > 1, 2A − κQ is maximised, which shrinks less.
        ``'auto'`` is κ = D/(D − 2), where D is the number of components that share the variance; if
        D is at most 2, the plain average is chosen (docs/selection.md). None is 1, or ``'auto'``
        for ``KernelMean(filter="auto")``.
    """

    name = "loo"
    grid: Any = None
    bias_factor: Any = None
    least_points: ClassVar[int] = 2

    def check(self, filter: Shrinker) -> None:
        super().check(filter)
        checked_bias_factor(self, self.bias_factor)

    def needs(self, filter: Shrinker) -> Access:
        """The rows and all eigenpairs; products with A for a constant filter."""
        if filter.constant:
            return Access.PRODUCTS
        return Access.ROWS | Access.SPECTRUM

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the score is cheap, or points are so few that each can be left out in turn."""
        return filter.analytic or filter.constant or n <= MAX_ROWS_REFIT

    def prepare(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> LeftOutScores:
        """Return what is left without each point: in closed form, from resolvents, or by refits."""
        check_remaining_mass(1 - problem.mass_range[1])
        return LeftOutScores(problem, candidates, bias_factor_on(self.bias_factor, problem))

    @staticmethod
    def is_cheap(problem: SpectralProblem, candidates: Candidates) -> bool:
        """Whether the scores of these candidates need no refit."""
        return candidates.filter.constant or _poles_of(problem, candidates) is not None


class LeftOutScores(Scores):
    """The leave-one-out scores of several filters on one problem.

    They come from a quadratic in r for constant filters, from moments of resolvents for smooth
    ones, and from the sample without each point for all others.
    """

    can_extend_grid: bool
    unshrunk: Array
    most: list[Any]

    def __init__(
        self, problem: SpectralProblem, candidates: Sequence[Candidates], bias_factor: Array
    ) -> None:
        super().__init__(problem, candidates)
        self.bias_factor = bias_factor
        self.can_extend_grid = (
            Access.PRODUCTS in problem.access
        )  # else it takes a pass over the rows
        self.unshrunk = problem.left_out.sums.unshrunk
        self.most = [each.grid.max() for each in candidates]
        self.poles: dict[int, Poles] = {}
        others = []
        for place, filter in enumerate(self.filters):
            if filter.constant:
                continue
            known = dict.fromkeys(self.poles.values())  # each once, in order
            poles = _poles_of(problem, candidates[place], known)
            if poles is None:
                others.append(place)
            else:
                self.poles[place] = poles
        self.parts: dict[int, list[Any]] = self._at_poles(self.poles)
        if others:
            self._state_price([type(self.filters[place]).__name__ for place in others])
            self.parts |= dict.fromkeys(others, problem.sum_over_rows(_rows_left_out))

    def gains(self, place: int, grid: Array) -> Array:
        filter = self.filters[place]
        factor = np.where(np.isfinite(self.bias_factor), self.bias_factor, 1.0)
        if filter.constant:
            r, sums = 1 - filter.at_zero(grid), self.problem.left_out.sums
            linear, quadratic = 2 * sums.linear[..., None], (factor * sums.quadratic)[..., None]
            return 0.0 - (linear * r + quadratic * r**2)
        if place in self.poles and grid.max() > self.most[place]:
            wider = _poles_of(self.problem, Candidates(filter, grid))
            if wider is None:
                return np.full((*self.problem.batch, len(grid)), -np.inf)  # too steep to go on
            self.most[place] = grid.max()
            self.parts |= self._at_poles({place: wider})
        gains = sum(part.gains(filter, grid, factor) for part in self.parts[place])
        # Scores are not negative, so that no gain exceeds the score of KME.
        most = np.maximum(self.unshrunk - GAIN_ROUNDING * self.problem.trace, 0)
        return np.minimum(gains, most[..., None])

    def _at_poles(self, poles: dict[int, Poles]) -> dict[int, list[Any]]:
        """Compute the moments at all poles, in one pass over the rows.

        Heavy points are left out by refits.
        """
        if not poles:
            return {}
        problem, each = self.problem, list(dict.fromkeys(poles.values()))
        largest = _interval(problem).largest
        nodes = Nodes.from_poles(problem.components.gamma, problem.n, largest, each)
        moments, *heavy = problem.sum_over_rows(_moments_of_rows, nodes)
        on_points = {}
        for k, own in enumerate(each):
            some = slice(*nodes.starts[k : k + 2])
            on_points[own] = moments.on_points(own, largest, some)
        return {place: [on_points[own], *heavy] for place, own in poles.items()}

    def _state_price(self, names: Sequence[str]) -> None:
        """Warn of many refits."""
        if self.problem.n > MAX_ROWS_REFIT:
            price = f"leaving out each of {self.problem.n} points needs as many eigendecompositions"
            advice = (
                "selection='gcv' (the paper's choice for truncated SVD) or 'kfold' takes one "
                "or five"
            )
            message = (
                f"LeaveOneOut: {' and '.join(names)} has no cheap exact score; {price}. {advice}."
            )
            warnings.warn(message, UserWarning, stacklevel=2)


def _poles_of(
    problem: SpectralProblem, candidates: Candidates, known: Iterable[Poles] = ()
) -> Poles | None:
    """Return poles whose resolvents represent a filter accurately, or None."""
    if not candidates.filter.analytic or not problem.spectrum.largest:
        return None
    return find_poles(cast(Filter, candidates.filter), candidates.grid, _interval(problem), known)


def is_heavy(masses: Array, lightest: float) -> Array:
    """Return which points are heavy, given the least mass of all points."""
    return 1 - masses < (1 - HEAVY_MASS_SHARE) * (1 - lightest)


def _moments_of_rows(problem: SpectralProblem, rows: EigenbasisRows, nodes: Nodes) -> list[Any]:
    """Return the moments of rows, and the sample without each of those that are heavy."""
    lightest, heaviest = problem.mass_range
    if not is_heavy(np.asarray(heaviest), lightest):
        return [Moments.from_rows(problem, rows, nodes)]
    heavy = is_heavy(rows.masses, lightest)
    fits = held_out_fits(problem, rows, np.flatnonzero(heavy)[:, None])
    return [Moments.from_rows(problem, rows[~heavy], nodes), fits]


def _rows_left_out(problem: SpectralProblem, rows: EigenbasisRows) -> list[Any]:
    return [held_out_fits(problem, rows, np.arange(len(rows.masses))[:, None])]


def _interval(problem: SpectralProblem) -> Interval:
    """Return where the eigenvalues can be when a point that is not heavy is left out."""
    lightest, heaviest = problem.mass_range
    rest = max(1 - heaviest, (1 - HEAVY_MASS_SHARE) * (1 - lightest)), 1 - lightest
    return Interval.from_spectrum(problem.spectrum.gamma, rest, problem.largest_value)


@dataclass(frozen=True)
class GainErrors:
    """How far leave-one-out gains may be off by chance.

    Attributes
    ----------
    standard_errors : list of float
        That of each choice's gain.
    threshold : float
        How many of its standard errors the largest of all candidates' gains must exceed, to be as
        unlikely by chance as two standard errors are for a single gain.
    """

    standard_errors: list[float]
    threshold: float


def gain_errors(
    problem: SpectralProblem, rows: EigenbasisRows, choices: Sequence[Choice]
) -> GainErrors:
    """Return the standard error of each choice's leave-one-out gain.

    It comes from the gain's terms at these rows, which have equal masses.

    The gain is the mean over i of ‖k(x_i, ·) − m_i‖² − ‖k(x_i, ·) − μ_λ^(−i)‖²; its error is the
    spread of these differences over the root of n: an estimate of the sampling error of the gain.
    """
    terms = [_terms_of_grid(problem, rows, choice) for choice in choices]
    if len(rows.masses) < 2:
        return GainErrors([np.nan] * len(choices), np.inf)
    deviations = [np.std(each, axis=0, ddof=1) for each in terms]
    errors = [float(each[0]) / np.sqrt(problem.n) for each in deviations]
    standardized = []
    for each, deviation in zip(terms, deviations, strict=True):
        varies = deviation > GAIN_ROUNDING * problem.largest_value
        some = each[:, varies]
        standardized.append((some - some.mean(axis=0)) / deviation[varies])
    return GainErrors(errors, _threshold(np.concatenate(standardized, axis=1)))


def _threshold(terms: Array) -> float:
    """Return the number of standard errors that the largest of several gains has to exceed.

    By chance it is exceeded as rarely as two standard errors are by a single gain.

    The means have the correlations of these standardised terms: random signs of the rows, normal
    ones, give the law of the largest. With few rows, its tails are those of Student's distribution.
    """
    n, level = len(terms), float(ndtr(SINGLE_GAIN_ERRORS))
    quantile = SINGLE_GAIN_ERRORS
    if terms.shape[1]:
        multipliers = np.random.default_rng(0).standard_normal((N_MULTIPLIER_DRAWS, n))
        largest = (multipliers @ terms).max(axis=1) / np.sqrt(n - 1)
        quantile = max(SINGLE_GAIN_ERRORS, float(np.quantile(largest, level)))
    return float(-stdtrit(n - 1, ndtr(-quantile)))


def _terms_of_grid(problem: SpectralProblem, rows: EigenbasisRows, choice: Choice) -> Array:
    """Return what a choice and other candidates of its grid gain at each of some rows.

    Shape (rows, candidates).
    """
    own = _terms(problem, rows, choice.filter, choice.grid[[choice.index]])
    some = np.unique(np.linspace(0, len(choice.grid) - 1, N_GRID_CANDIDATES).astype(int))
    others = choice.grid[some[some != choice.index]]
    if not len(others):
        return own
    candidates = Candidates(choice.filter, others)
    if problem.n > MAX_ROWS_REFIT and _poles_of(problem, candidates) is None:
        return own
    return np.concatenate([own, _terms(problem, rows, choice.filter, others)], axis=1)


def _terms(problem: SpectralProblem, rows: EigenbasisRows, filter: Shrinker, grid: Array) -> Array:
    """Return what each parameter gains at each of some rows: shape (rows, parameters)."""
    poles = _poles_of(problem, Candidates(filter, grid))
    if poles is None:
        without = held_out_fits(problem, rows, np.arange(len(rows.masses))[:, None])
        return without.terms(filter, grid).T / rows.masses[:, None]
    largest = _interval(problem).largest
    r = 1 - cast(Filter, filter).path(largest * poles.points / (1 - rows.masses[0]), grid).T
    nodes = Nodes.from_poles(problem.components.gamma, len(rows.masses), largest, [poles])
    terms = resolvent_terms(problem, rows, nodes, centred=False)
    parts = zip(*(each.by_row() for each in terms), strict=True)
    linear, quadratic = (poles.weights(largest * np.concatenate(each, axis=-1)) for each in parts)
    return -(2 * linear @ r + quadratic @ r**2) / rows.masses[:, None]


@dataclass(frozen=True)
class HeldOutFits:
    """The sample without each of several sets F of points.

    Each is in the basis that makes its own covariance diagonal.

    The sets are in the last axis but one, or in the last of what is a number for each.
    """

    mass: Array
    """Σ_F p_i."""
    effective_size: Array
    outside: Array
    """The squared norm of the part of the target that the sample does not span."""
    own: Array
    """Σ_F p_i k(x_i, x_i), summed over the sets."""
    gamma: Array
    mean: Array
    target: Array
    towards: Array
    """Σ_F p_i φ_i − (Σ_F p_i) m, m being the mean without F."""

    @classmethod
    def from_held_out(cls, problem: SpectralProblem, held_out: HeldOut) -> HeldOutFits:
        """Decompose the covariance without each set.

        Ĉ is diag(γ), and F takes away its Σ p_i φ_i φ_iᵀ.
        """
        whole, rest = problem.components, (1 - held_out.mass)[:, None]
        basis = HeldOutBasis.from_covariance(whole.gamma, held_out.covariance, rest[..., None])
        mean = (whole.mean[..., None, :] - held_out.mean) / rest
        kappa = np.broadcast_to(held_out.kappa, rest.shape[:1])
        target = kappa[:, None] * (whole.target[..., None, :] - held_out.target)
        towards = held_out.mean - held_out.mass[:, None] * mean
        columns = np.stack([mean, np.broadcast_to(target, mean.shape), towards], axis=-1)
        mean, target, towards = np.moveaxis(basis.turned(columns), -1, 0)
        remaining_squares = 1 / problem.spectrum.effective_size - held_out.squared_masses
        return cls(
            mass=held_out.mass,
            effective_size=rest[:, 0] ** 2 / remaining_squares,
            outside=kappa**2 * np.asarray(problem.target_outside)[..., None],
            own=np.asarray(held_out.own)[..., None],
            gamma=without_rounding(basis.gamma, problem.n),
            mean=mean,
            target=target,
            towards=towards,
        )

    def __add__(self, other: HeldOutFits) -> HeldOutFits:
        vectors = ("gamma", "mean", "target", "towards")
        joined = {}
        for each in fields(self):
            axis = -1
            if each.name in vectors:
                axis = -2
            pair = getattr(self, each.name), getattr(other, each.name)
            joined[each.name] = np.concatenate(pair, axis=axis)
        return HeldOutFits(**joined)

    @property
    def unshrunk(self) -> Array:
        """Σ_F Σ_{i∈F} p_i ‖φ_i − m‖², the score of KME."""
        crossed = (2 * self.towards * self.mean).sum(axis=-1) + self.mass * (self.mean**2).sum(
            axis=-1
        )
        return self.own.sum(axis=-1) - crossed.sum(axis=-1)

    def terms(self, filter: Shrinker, grid: Array, bias_factor: Array | float = 1.0) -> Array:
        """Return what each parameter gains by each set: shape (parameters, ..., sets).

        With h = r(m − f*), the shrinkage r = 1 − s moving m by −h, that is −2⟨Σ_F p_i (φ_i − m), h⟩
        − Σ_F p_i ‖h‖². The last, the squared bias, is counted ``bias_factor`` times.
        """
        components = Components(self.gamma, self.mean, self.target, self.effective_size[:, None])
        h = (1 - filter.on(components, grid)) * (self.mean - self.target)
        outside = np.multiply.outer((1 - filter.at_zero(grid)) ** 2, self.outside)
        squared = np.asarray(bias_factor)[..., None] * ((h**2).sum(axis=-1) + outside)
        return -2 * (h * self.towards).sum(axis=-1) - self.mass * squared

    def gains(self, filter: Shrinker, grid: Array, bias_factor: Array) -> Array:
        """Return what each parameter gains over KME: shape (..., parameters)."""
        chunks = slices(0, len(grid), PARAMETERS_PER_BLOCK)
        parts = [self.terms(filter, grid[some], bias_factor).sum(axis=-1) for some in chunks]
        return np.moveaxis(np.concatenate(parts), 0, -1)


def held_out_fits(problem: SpectralProblem, rows: EigenbasisRows, folds: Array) -> HeldOutFits:
    """Return the sample without each fold; folds, of shape (folds, size), hold row numbers."""
    gamma = problem.components.gamma
    chunks = refit_chunks(folds, gamma.size * gamma.shape[-1])
    held_out = partial(HeldOut.from_rows, problem, rows)
    return reduce(
        add,
        share_between_cores(
            lambda some: HeldOutFits.from_held_out(problem, held_out(some)), chunks
        ),
    )


def refit_chunks(sets: Array, entries: int) -> list[Array]:
    """Return sets to leave out, in chunks that fit in memory and give every core something to do.

    ``entries`` is the number of matrix entries that leaving out one of them takes.
    """
    count = max(MIN_CHUNKS, len(sets) * entries // MAX_ENTRIES_PER_CHUNK)
    return np.array_split(sets, max(1, min(len(sets), count)))
