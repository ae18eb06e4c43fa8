"""Exact leave-one-out for every filter and every parameter.

Filters that are analytic take one eigendecomposition; for all others, and where whole folds are left out, there is one
for every set that is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from muhat._arrays import Array, rounding, share_between_cores
from muhat.filters import Filter, Shrinker
from muhat.gram import Access, Components, Problem, Rows, SpectralProblem
from muhat.gram._problem import HeldOut, summed
from muhat.selection._base import Candidates, Scored, check_rest
from muhat.selection._contour import Contour, Interval, Moments, Nodes, accurate_contour, is_accurate

HEAVY = 0.02
"""A point is heavy if what is left without it is smaller by this share than without the lightest."""

REFIT_UP_TO = 300
"""Points up to which each is left out in turn, by a refit, for filters that have no cheaper exact score."""

CHUNK = 2**22
"""Matrix entries a core holds at once."""

AT_LEAST = 4
"""Chunks, so that every core has something to do."""


@dataclass
class LeaveOneOut(Scored):
    """LOO(λ) = Σ_i p_i ‖k(x_i, ·) − μ_λ^(−i)‖², μ_λ^(−i) being the estimate without point i; p_i = 1/n unweighted.

    Constant filters have a closed form; for those that continue to complex γ, the average over i of what is left when
    row and column i are removed comes from the resolvent of the whole matrix, on a contour that is checked against the
    filter itself, and only points that hold much of the mass are left out by a refit. Truncated SVD and the
    component-wise rule have no such form: each of n points is left out by a refit for them, up to 300 points.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    grid: Any = None
    least_points: ClassVar[int] = 2

    def needs(self, filter: Shrinker) -> Access:
        """The rows to leave out, and all eigenpairs, unless the filter is constant and has a closed form."""
        return Access.ROWS | (Access.PRODUCTS if filter.constant else Access.SPECTRUM)

    def can_choose(self, filter: Shrinker, n: int) -> bool:
        """Whether the score is cheap, or points are so few that each can be left out in turn."""
        return filter.analytic or filter.constant or n <= REFIT_UP_TO

    def scores(self, problem: SpectralProblem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the leave-one-out scores of every filter's parameters."""
        check_rest(self, 1 - problem.mass_range[1])
        scores = {place: _closed_form(problem, each) for place, each in enumerate(candidates) if each.filter.constant}
        scores.update(_on_contours(problem, _contours(problem, candidates)))
        hard = {place: each for place, each in enumerate(candidates) if place not in scores}
        if hard:
            scores.update(_refitted(problem, hard))
        # A mean of squared norms: where it is zero, rounding may not make it less.
        return [np.maximum(scores[place], 0) for place in range(len(candidates))]

    @staticmethod
    def is_cheap(problem: SpectralProblem, candidates: Candidates) -> bool:
        """Whether the scores of these candidates take no refit."""
        return candidates.filter.constant or bool(_contours(problem, [candidates]))


def _contours(problem: SpectralProblem, candidates: Sequence[Candidates]) -> dict[Contour, dict[int, Candidates]]:
    """Return contours, as few as will do, with the filters that each is accurate for, by place."""
    analytic = {
        place: (cast(Filter, each.filter), each.grid)
        for place, each in enumerate(candidates)
        if each.filter.analytic and not each.filter.constant
    }
    if not analytic or not problem.spectrum.largest:
        return {}
    interval = _interval(problem)
    own = {place: accurate_contour(*each, interval) for place, each in analytic.items()}
    shared: dict[Contour, dict[int, Candidates]] = {}
    for contour in sorted({contour for contour in own.values() if contour}, key=lambda each: -len(each.nodes)):
        served = [place for place, found in own.items() if found and is_accurate(contour, *analytic[place], interval)]
        if served:
            shared[contour] = {place: candidates[place] for place in served}
            own = {place: found for place, found in own.items() if place not in served}
    return shared


def _on_contours(problem: SpectralProblem, ways: dict[Contour, dict[int, Candidates]]) -> dict[int, Array]:
    """Return the scores of filters on their contours, by place, in one pass over the rows."""
    if not ways:
        return {}
    nodes = Nodes.from_contours(problem.components.gamma, problem.n, _interval(problem).largest, list(ways))
    candidates = [list(served.values()) for served in ways.values()]
    lightest, heaviest = problem.mass_range
    if lightest < heaviest:
        scores = problem.sum_over_rows(_scores_of_rows, nodes, candidates)
    else:  # moments add up, so that filters are looked at once, whatever the number of batches
        sums = problem.sum_over_rows(_moments_of_rows, nodes)
        scores = _integrated(Moments(nodes, np.array([1 - lightest]), *sums), candidates)
    return dict(zip((place for served in ways.values() for place in served), scores, strict=True))


def _moments_of_rows(problem: SpectralProblem, rows: Rows, nodes: Nodes) -> list[Array]:
    """Return the moments of rows that all have one mass."""
    moments = Moments.from_rows(problem, rows, np.ones(len(rows.masses), dtype=bool), nodes)
    return [moments.linear, moments.quadratic, moments.unshrunk]


def _scores_of_rows(
    problem: SpectralProblem, rows: Rows, nodes: Nodes, candidates: list[list[Candidates]]
) -> list[Array]:
    """Return the rows' part of the scores on each contour, with heavy points left out by a refit."""
    # What is left without a heavy point is a share of its own.
    heavy = 1 - rows.masses < (1 - HEAVY) * (1 - problem.mass_range[0])
    parts = [_integrated(Moments.from_rows(problem, rows, ~heavy, nodes), candidates)]
    if heavy.any():
        everyone = [each for served in candidates for each in served]
        parts.append(scores_with_folds_left_out(problem, rows, everyone, np.flatnonzero(heavy)[:, None]))
    return summed(parts)


def _integrated(moments: Moments, candidates: list[list[Candidates]]) -> list[Array]:
    """Return the scores of all filters, each list of them on a contour of its own."""
    return [moments.scores(place, each) for place, served in enumerate(candidates) for each in served]


def _refitted(problem: SpectralProblem, candidates: dict[int, Candidates]) -> dict[int, Array]:
    """Return the scores of filters for which every point is left out by a refit, by place."""
    if problem.n > REFIT_UP_TO:
        names = " and ".join(type(each.filter).__name__ for each in candidates.values())
        warnings.warn(
            f"LeaveOneOut: {names} has no cheap exact score; leaving out each of {problem.n} points takes as many "
            "eigendecompositions. selection='gcv' (the paper's choice for truncated SVD) or 'kfold' takes one or five.",
            UserWarning,
            stacklevel=2,
        )
    scores = problem.sum_over_rows(scores_with_folds_left_out, list(candidates.values()))
    return dict(zip(candidates, scores, strict=True))


def _interval(problem: SpectralProblem) -> Interval:
    """Return where the eigenvalues can be when a point that is not heavy is left out."""
    lightest, heaviest = problem.mass_range
    rest = np.array([1 - lightest, max(1 - heaviest, (1 - HEAVY) * (1 - lightest))])
    return Interval(min(problem.spectrum.largest, rest[0] * problem.largest_value), rest, problem.largest_value)


def _closed_form(problem: Problem, candidates: Candidates) -> Array:
    """Return the scores of a constant filter: a quadratic in s."""
    s, left_out = candidates.filter.at_zero(candidates.grid), problem.left_out
    base, linear, quadratic = (
        part.sum(axis=-1)[..., None] for part in (left_out.base, left_out.linear, left_out.quadratic)
    )
    return base - 2 * linear * s + quadratic * s**2


def scores_with_folds_left_out(
    problem: SpectralProblem, rows: Rows, candidates: Sequence[Candidates], folds: Array | None = None
) -> list[Array]:
    """Return Σ over folds F, Σ over i in F, of p_i ‖k(x_i, ·) − μ^(−F)‖², with the same fold left out of all filters.

    The folds, of shape (folds, size), number the rows; by default each row is one. The scores of each filter have the
    shape (..., parameters).
    """
    folds = np.arange(len(rows.masses))[:, None] if folds is None else folds
    size = len(folds) * problem.components.gamma.size * problem.components.gamma.shape[-1]
    chunks = np.array_split(folds, min(len(folds), max(AT_LEAST, size // CHUNK)))
    parts: list[list[Array]] = [[] for _ in chunks]

    def work(place: int) -> None:
        parts[place] = scores_without(problem, HeldOut.from_rows(problem, rows, chunks[place]), candidates)

    share_between_cores(work, range(len(chunks)))
    return summed(parts)


def scores_without(problem: SpectralProblem, held_out: HeldOut, candidates: Sequence[Candidates]) -> list[Array]:
    """Return the scores with each set left out in turn: Ĉ is diag(γ), and F takes away its Σ p_i φ_i φ_iᵀ."""
    whole, rest = problem.components, (1 - held_out.mass)[:, None]
    covariance = -held_out.covariance
    diagonal = np.arange(covariance.shape[-1])
    covariance[..., diagonal, diagonal] += whole.gamma[..., None, :]
    gamma, V = np.linalg.eigh(covariance / rest[..., None])
    gamma = np.where(gamma <= problem.n * rounding(gamma) * gamma[..., -1:], 0, gamma)

    def turned(vectors: Array) -> Array:
        return np.einsum("...ri,...r->...i", V, vectors)

    mean = turned((whole.mean[..., None, :] - held_out.mean) / rest)
    target = turned(np.broadcast_to(whole.target[..., None, :], held_out.mean.shape))
    towards = turned(held_out.mean)
    squared_masses = 1 / problem.spectrum.effective_size - held_out.squared_masses[:, None]
    components = Components(gamma, mean, target, rest**2 / squared_masses)

    scores = []
    for each in candidates:
        s = each.filter.on(components, each.grid)
        outside = np.multiply.outer((1 - each.filter.at_zero(each.grid)) ** 2, problem.target_outside)
        estimate = target + s * (mean - target)
        crossed = np.einsum("g...fr,...fr->g...", estimate, towards)
        squared = np.einsum("g...fr,g...fr,f->g...", estimate, estimate, held_out.mass)
        squared += outside * held_out.mass.sum()
        scores.append(np.moveaxis(held_out.own - 2 * crossed + squared, 0, -1))
    return scores
