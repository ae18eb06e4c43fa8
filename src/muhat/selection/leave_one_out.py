"""Exact leave-one-out for every filter and every parameter; for analytic filters, from one eigendecomposition."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from muhat.arrays import Array
from muhat.filters import Filter
from muhat.problem import Problem
from muhat.selection.base import Candidates, Scored, check_rest
from muhat.selection.contour import Contour, Interval, accurate_contour, is_accurate
from muhat.selection.leave_out import scores_with_folds_left_out

NODES_AT_ONCE = 64
GROUPS_AT_ONCE = 64
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

    def scores(self, problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
        """Return the leave-one-out scores of every filter's parameters."""
        check_rest(self, 1 - problem.masses)
        scores = {place: _closed_form(problem, each) for place, each in enumerate(candidates) if each.filter.constant}
        for contour, places in _contours(problem, candidates).items():
            moments = _Moments.of(problem, contour)
            scores.update({place: moments.scores(candidates[place]) for place in places})
        integrated = [place for place in scores if not candidates[place].filter.constant]
        heavy = _heavy(problem)
        if integrated and len(heavy):
            parts = _left_out_one_by_one(problem, heavy, [candidates[place] for place in integrated])
            scores.update({place: scores[place] + part for place, part in zip(integrated, parts, strict=True)})
        hard = [place for place in range(len(candidates)) if place not in scores]
        if hard:
            scores.update(zip(hard, _really(problem, [candidates[place] for place in hard]), strict=True))
        # A mean of squared norms: where it is zero, rounding may not make it less.
        return [np.maximum(scores[place], 0) for place in range(len(candidates))]


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


def _interval(problem: Problem) -> Interval:
    """Return where the eigenvalues can be when a point that is not heavy is left out."""
    bound, rest = problem.largest_value, np.delete(1 - problem.masses, _heavy(problem))
    return Interval(min(problem.spectrum.largest, float(rest.max()) * bound), rest, bound)


def _heavy(problem: Problem) -> Array:
    """Return the points so heavy that what is left without them is a share of its own: few, and really left out."""
    rest = 1 - problem.masses
    return np.flatnonzero(rest < (1 - HEAVY) * rest.max())


def _closed_form(problem: Problem, candidates: Candidates) -> Array:
    """Return the scores of a constant filter: a quadratic in s."""
    s, left_out = candidates.filter.at_zero(candidates.grid), problem.left_out
    base, linear, quadratic = (
        part.sum(axis=-1)[..., None] for part in (left_out.base, left_out.linear, left_out.quadratic)
    )
    return base - 2 * linear * s + quadratic * s**2


def _really(problem: Problem, candidates: Sequence[Candidates]) -> list[Array]:
    if problem.n > WARN_ABOVE:
        names = " and ".join(type(each.filter).__name__ for each in candidates)
        warnings.warn(
            f"LeaveOneOut: {names} has no cheap exact score; leaving out each of {problem.n} points takes as many "
            "eigendecompositions. selection='gcv' (the paper's choice for truncated SVD) or 'kfold' takes one or five.",
            UserWarning,
            stacklevel=2,
        )
    return _left_out_one_by_one(problem, np.arange(problem.n), candidates)


def _left_out_one_by_one(problem: Problem, points: Array, candidates: Sequence[Candidates]) -> list[Array]:
    """Return the points' part of the scores, each really left out."""
    return scores_with_folds_left_out(problem, points[:, None], candidates)


@dataclass(frozen=True)
class _Groups:
    """Points of equal mass: what is left without one of them is the same share of the whole."""

    order: Array
    starts: Array
    mass: Array
    """Σ p_i over the group."""
    rest: Array
    """1 − p_i."""

    @classmethod
    def of(cls, problem: Problem) -> _Groups:
        """Group all points but the heavy ones."""
        points = np.delete(np.arange(problem.n), _heavy(problem))
        kinds, members, counts = np.unique(problem.masses[points], return_inverse=True, return_counts=True)
        order = points[np.argsort(members, kind="stable")]
        return cls(order, np.cumsum(counts) - counts, counts * kinds, 1 - kinds)

    def sum(self, values: Array) -> Array:
        """Return the sums over the points of each group: (..., n, nodes) to (..., groups, nodes)."""
        if len(self.starts) == 1 and len(self.order) == values.shape[-2]:  # all points have one mass
            return values.sum(axis=-2, keepdims=True)
        return np.add.reduceat(values[..., self.order, :], self.starts, axis=-2)


@dataclass(frozen=True)
class _Moments:
    """What the sample contributes to the score at each node z of a contour, summed over points of equal mass.

    With c = 1 − p_i, ⟨φ_i − f*, s(Ĉ_i)(m_i − f*)⟩ integrates s(z/c) times ``linear``, and ⟨m_i − f*, s(Ĉ_i)(m_i − f*)⟩
    integrates s(z/c) times ``quadratic``, both summed over i. Steps of the contour are included.
    """

    nodes: Array
    rest: Array
    linear: Array
    quadratic: Array
    unshrunk: Array
    """The points' part of the score of KME."""

    @classmethod
    def of(cls, problem: Problem, contour: Contour) -> _Moments:
        """Compute them, some nodes at a time."""
        largest = _interval(problem).largest
        nodes, steps = contour.nodes * largest, contour.steps * largest
        groups, squares = _Groups.of(problem), problem.spectrum.U**2
        blocks = [
            _at_nodes(problem, squares, nodes[start : start + NODES_AT_ONCE], groups)
            for start in range(0, len(nodes), NODES_AT_ONCE)
        ]
        linear, quadratic = (np.concatenate(parts, axis=-1) * steps for parts in zip(*blocks, strict=True))
        return cls(nodes, groups.rest, linear, quadratic, problem.left_out.unshrunk[..., groups.order].sum(axis=-1))

    def scores(self, candidates: Candidates) -> Array:
        """Integrate a filter against them; the lower half of the contour is the conjugate of the upper.

        In terms of r = 1 − s, so that what is integrated is small wherever the score is close to that of KME.
        """
        filter = cast(Filter, candidates.filter)
        scores = np.asarray(self.unshrunk, dtype=np.float64)[..., None]
        for start in range(0, len(self.rest), GROUPS_AT_ONCE):
            some = slice(start, start + GROUPS_AT_ONCE)
            r = 1 - filter.path(self.nodes / self.rest[some, None], candidates.grid)
            r = r.reshape(len(r), -1).T
            linear, quadratic = (
                values[..., some, :].reshape(*values.shape[:-2], -1) for values in (self.linear, self.quadratic)
            )
            scores = scores + 2 * np.real(2 * (linear - quadratic) @ r + quadratic @ r**2)
        return scores


def _at_nodes(problem: Problem, squares: Array, z: Array, groups: _Groups) -> tuple[Array, Array]:
    """Return Σ_i p_i ⟨φ_i − f*, R_i (m_i − f*)⟩ and Σ_i p_i ⟨m_i − f*, R_i (m_i − f*)⟩ over the points of each group.

    R_i = (z − (1 − p_i) Ĉ_i)⁻¹ is the resolvent without point i, m_i the mean without it. Removing row and column i of
    A changes vᵀ(z − A)⁻¹v by −(Gv)_i²/G_ii, with G = (z − A)⁻¹ (Schur complement). With v = zq − (1 − p_i) D f*(X),
    constants that integrate to zero against s dropped, the two are

        (Gv)_i/(√p_i G_ii) / (1−p_i)z − ⟨f*, ·⟩   and   [vᵀGv − (Gv)_i²/G_ii] / (1−p_i)²z + ‖f*‖²/z.
    """
    spectrum, q = problem.spectrum, problem.root_masses[:, None]
    resolvent = 1 / (z - spectrum.gamma[..., None])
    resolvent = resolvent.astype(np.result_type(spectrum.U.dtype, np.complex64), copy=False)
    projected = [spectrum.coordinates[..., None]]
    if problem.target is not None:
        projected.append(spectrum.project(problem.target_values)[..., None])
    G = _times(squares, resolvent)
    Gv = [q * _times(spectrum.U, vector * resolvent) for vector in projected]  # √p_i (G·)_i
    ratio = [vector / G for vector in Gv]
    mass, c = groups.mass[:, None], groups.rest[:, None]

    def without(j: int, k: int) -> Array:
        """Σ_i p_i [v_jᵀGv_k − (Gv_j)_i (Gv_k)_i/G_ii]."""
        whole = (projected[j] * projected[k] * resolvent).sum(axis=-2)[..., None, :]
        return mass * whole - groups.sum(Gv[j] * ratio[k])

    if problem.target is None:
        return groups.sum(ratio[0]) / c, without(0, 0) * z / c**2
    mean, target = groups.sum(ratio[0]), groups.sum(ratio[1])
    mean_mean, mean_target, target_target = without(0, 0), without(0, 1), without(1, 1)
    outside = mass * problem.target_squared_norm / z
    linear = (z * mean - c * target - z * mean_target + c * target_target) / (c * z) + outside
    quadratic = (z**2 * mean_mean - 2 * z * c * mean_target + c**2 * target_target) / (c**2 * z) + outside
    return linear, quadratic


def _times(real: Array, complex_values: Array) -> Array:
    """Return the product of a real and a complex matrix, as one real product."""
    values = np.ascontiguousarray(complex_values)
    return (real @ values.view(values.real.dtype)).view(values.dtype)
