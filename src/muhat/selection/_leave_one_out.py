"""Exact leave-one-out for every filter and every parameter; for analytic filters, from one eigendecomposition."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from muhat._arrays import Array
from muhat.filters import Filter, Shrinker, TruncatedSVD
from muhat.gram import Problem, Rows
from muhat.gram._problem import summed
from muhat.selection._base import Candidates, Rule, Scored, check_rest
from muhat.selection._contour import Contour, Interval, accurate_contour, is_accurate
from muhat.selection._gcv import GCV
from muhat.selection._kfold import KFold
from muhat.selection._leave_out import scores_with_folds_left_out
from muhat.selection._moments import Moments, Nodes

HEAVY = 0.02
"""A point is heavy if what is left without it is smaller by this share than without the lightest."""

WARN_ABOVE = 500


@dataclass
class LeaveOneOut(Scored):
    """LOO(λ) = Σ_i p_i ‖k(x_i, ·) − μ_λ^(−i)‖², μ_λ^(−i) being the estimate without point i; p_i = 1/n unweighted.

    Constant filters have a closed form; for those that continue to complex γ, the average over i of what is left when
    row and column i are removed comes from the resolvent of the whole matrix, on a contour that is checked against the
    filter itself, and only points that hold much of the mass are really left out. Truncated SVD and the component-wise
    rule have no such form: every point is really left out for them, n eigendecompositions.

    Parameters
    ----------
    grid : array, default=None
        The parameters to choose from; by default the filter's own, derived from the spectrum and n.
    """

    grid: Any = None
    least_points: ClassVar[int] = 2

    def on_products(self, filters: Sequence[Shrinker], n: int) -> Rule:
        """Return itself for constant filters, generalised cross-validation for truncated SVD, k-fold for others."""
        if all(filter.constant for filter in filters):
            return self
        if all(isinstance(filter, TruncatedSVD) for filter in filters):
            return GCV(self.grid)
        return KFold(min(KFold.n_splits, n), grid=self.grid).on_products(filters, n)

    def in_one_pass(self) -> KFold:
        """Return k-fold with the same grid."""
        return KFold(grid=self.grid)

    def scores(self, problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the leave-one-out scores of every filter's parameters."""
        check_rest(self, 1 - problem.mass_range[1])
        scores = {place: _closed_form(problem, each) for place, each in enumerate(candidates) if each.filter.constant}
        ways = {
            contour: {place: candidates[place] for place in places}
            for contour, places in _contours(problem, candidates).items()
        }
        scores.update(_on_contours(problem, ways))
        hard = {place: each for place, each in enumerate(candidates) if place not in scores}
        if hard:
            scores.update(_really(problem, hard))
        # A mean of squared norms: where it is zero, rounding may not make it less.
        return [np.maximum(scores[place], 0) for place in range(len(candidates))]

    @staticmethod
    def is_cheap(problem: Problem, candidates: Candidates) -> bool:
        """Whether the scores of these candidates take no point to be really left out."""
        return candidates.filter.constant or bool(_contours(problem, [candidates]))


def _contours(problem: Problem, candidates: Sequence[Candidates]) -> dict[Contour, list[int]]:
    """Return contours, as few as will do, with the places of the filters that each is accurate for."""
    analytic = {
        place: (cast(Filter, each.filter), each.grid)
        for place, each in enumerate(candidates)
        if each.filter.analytic and not each.filter.constant
    }
    if not analytic or not problem.spectrum.largest:
        return {}
    interval = _interval(problem)
    own = {place: accurate_contour(*each, interval) for place, each in analytic.items()}
    shared: dict[Contour, list[int]] = {}
    for contour in sorted({contour for contour in own.values() if contour}, key=lambda each: -len(each.nodes)):
        served = [place for place, found in own.items() if found and is_accurate(contour, *analytic[place], interval)]
        if served:
            shared[contour] = served
            own = {place: found for place, found in own.items() if place not in served}
    return shared


def _on_contours(problem: Problem, ways: dict[Contour, dict[int, Candidates]]) -> dict[int, Array]:
    """Return the scores of filters on their contours, by place, in one pass over the rows."""
    if not ways:
        return {}
    nodes = Nodes.of(problem.components.gamma, problem.n, _interval(problem).largest, list(ways))
    candidates = [list(served.values()) for served in ways.values()]
    lightest, heaviest = problem.mass_range
    if lightest < heaviest:
        scores = problem.sum_over_rows(_scores_of_rows, nodes, candidates)
    else:  # moments add up, so that filters are looked at once, whatever the number of batches
        sums = problem.sum_over_rows(_moments_of_rows, nodes)
        scores = _integrated(Moments(nodes, np.array([1 - lightest]), *sums), candidates)
    return dict(zip((place for served in ways.values() for place in served), scores, strict=True))


def _moments_of_rows(problem: Problem, rows: Rows, nodes: Nodes) -> list[Array]:
    """Return the moments of rows that all have one mass."""
    moments = Moments.of(problem, rows, np.ones(len(rows.masses), dtype=bool), nodes)
    return [moments.linear, moments.quadratic, moments.unshrunk]


def _scores_of_rows(problem: Problem, rows: Rows, nodes: Nodes, candidates: list[list[Candidates]]) -> list[Array]:
    """Return the rows' part of the scores on each contour, with heavy points really left out."""
    heavy = _is_heavy(problem, rows)
    parts = [_integrated(Moments.of(problem, rows, ~heavy, nodes), candidates)]
    if heavy.any():
        everyone = [each for served in candidates for each in served]
        parts.append(scores_with_folds_left_out(problem, rows, np.flatnonzero(heavy)[:, None], everyone))
    return summed(parts)


def _integrated(moments: Moments, candidates: list[list[Candidates]]) -> list[Array]:
    """Return the scores of all filters, each list of them on a contour of its own."""
    return [moments.scores(place, each) for place, served in enumerate(candidates) for each in served]


def _really(problem: Problem, candidates: dict[int, Candidates]) -> dict[int, Array]:
    """Return the scores of filters for which every point is really left out, by place."""
    if problem.n > WARN_ABOVE:
        names = " and ".join(type(each.filter).__name__ for each in candidates.values())
        warnings.warn(
            f"LeaveOneOut: {names} has no cheap exact score; leaving out each of {problem.n} points takes as many "
            "eigendecompositions. selection='gcv' (the paper's choice for truncated SVD) or 'kfold' takes one or five.",
            UserWarning,
            stacklevel=2,
        )
    return dict(zip(candidates, problem.sum_over_rows(_one_by_one, list(candidates.values())), strict=True))


def _one_by_one(problem: Problem, rows: Rows, candidates: list[Candidates]) -> list[Array]:
    return scores_with_folds_left_out(problem, rows, np.arange(len(rows.masses))[:, None], candidates)


def _interval(problem: Problem) -> Interval:
    """Return where the eigenvalues can be when a point that is not heavy is left out."""
    lightest, heaviest = problem.mass_range
    rest = np.array([1 - lightest, max(1 - heaviest, (1 - HEAVY) * (1 - lightest))])
    return Interval(min(problem.spectrum.largest, rest[0] * problem.largest_value), rest, problem.largest_value)


def _is_heavy(problem: Problem, rows: Rows) -> Array:
    """Tell which points are so heavy that what is left without them is a share of its own: few, and really left out."""
    return 1 - rows.masses < (1 - HEAVY) * (1 - problem.mass_range[0])


def _closed_form(problem: Problem, candidates: Candidates) -> Array:
    """Return the scores of a constant filter: a quadratic in s."""
    s, left_out = candidates.filter.at_zero(candidates.grid), problem.left_out
    base, linear, quadratic = (
        part.sum(axis=-1)[..., None] for part in (left_out.base, left_out.linear, left_out.quadratic)
    )
    return base - 2 * linear * s + quadratic * s**2
