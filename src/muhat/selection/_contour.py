"""Functions of a matrix as sums of resolvents: a contour around the spectrum that knows its own error.

By Cauchy's formula s(A) = (1/2πi) ∮ s(z) (z − A)⁻¹ dz; with the trapezoidal rule this is a rational function of A. How
far that function is from s can be looked at directly, on [0, γ_max], because leaving a point out moves no eigenvalue
out of that interval; and so can how much its terms cancel. So contours are tried until one is accurate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import cast

import numpy as np

from muhat._arrays import Array, rounding, slices
from muhat._messages import refusal
from muhat.filters import Filter
from muhat.gram import Rows, SpectralProblem, Spectrum
from muhat.selection._base import Candidates

ACCURATE = 1e-11
"""The error of a filter on its contour, next to 1, up to which the contour is taken."""

CANCELLED = 4e5
"""How large sums on a contour may be, in units of what they cancel to: rounding then stays below 1e-10."""

DIGITS = 13.5
"""The rule's error is about exp(−2 · DIGITS) before rounding."""

CHECKED = np.concatenate([[0.0], np.geomspace(1e-16, 1, 64), (1 - np.cos(np.linspace(0.02, 3.1, 33))) / 2])
"""Where on [0, 1] the rational function is compared with the filter."""

NODES_AT_ONCE = 64
"""Nodes at which resolvents are held together."""

GROUPS_AT_ONCE = 64
"""Masses for which a filter is evaluated together."""

COMPRESSED_FROM = 4
"""Rows for each eigenvalue from which on it pays to look for the few functions of γ that all resolvents are sums of."""


@dataclass(frozen=True)
class Interval:
    """Where the eigenvalues of A without a point can be: in [0, largest]; divided by its scale, in [0, bound]."""

    largest: float
    """Contours around [0, 1] are stretched by it."""
    scales: Array
    """1 − p_i, the mass that is left without point i; filters are evaluated at γ/scale."""
    bound: float
    """max k(x_i, x_i), which no eigenvalue of a covariance exceeds."""


@dataclass(frozen=True, eq=False)
class Contour:
    """The upper half of a closed curve around [0, 1]; the lower half follows by conjugation."""

    nodes: Array
    steps: Array
    """dz/2πi at each node."""

    @cached_property
    def resolvents(self) -> Array:
        """1/(z − x) times the step, at the points x that are checked: shape (nodes, points)."""
        return self.steps[:, None] / (self.nodes[:, None] - CHECKED)

    def error(self, filter: Filter, grid: Array, interval: Interval) -> float:
        """Return the largest error, over a grid, of what is integrated to score a filter: r, r², γr and γr², r = 1 − s.

        Infinite where the sums on the contour are so large that rounding alone could spoil what they cancel to.
        """
        worst = 0.0
        for scale in {interval.scales.min(), interval.scales.max()}:
            within = interval.largest * CHECKED <= scale * interval.bound
            s, finite = self._path(filter, grid, self.nodes * (interval.largest / scale))
            exact, exactly = self._path(filter, grid, CHECKED[within] * (interval.largest / scale))
            if not (finite and exactly):
                return np.inf
            for values, true in ((1 - s, 1 - exact), ((1 - s) ** 2, (1 - exact) ** 2)):
                if float((np.abs(values) @ np.abs(self.resolvents)).max()) > CANCELLED:
                    return np.inf
                for power in (0, 1):
                    sums = 2 * np.real((values * self.nodes**power) @ self.resolvents[:, within])
                    worst = max(worst, float(np.abs(sums - true * CHECKED[within] ** power).max()))
                worst = max(worst, float(np.abs(2 * np.real(values @ self.steps)).max()))
        return worst

    @staticmethod
    def _path(filter: Filter, grid: Array, points: Array) -> tuple[Array, bool]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                values = filter.path(points, grid)
        except (TypeError, np.exceptions.ComplexWarning):  # a function of real numbers only
            return points, False
        return values, bool(np.isfinite(values).all() and (np.abs(values) < 1e100).all())


@dataclass(frozen=True, order=True)
class Ellipse:
    """The shape of a contour: an ellipse with the foci 0 and 1, in z or in the logarithm of z + distance."""

    nodes: int
    """The number of nodes on its upper half."""
    distance: float
    """Zero for an ellipse in z. In the logarithm, nodes crowd towards 0 and the contour keeps right of −distance."""
    log_rho: float
    """The logarithm of the ellipse's parameter: the larger, the rounder."""

    @lru_cache(maxsize=256)  # noqa: B019 — shapes are few and small
    def contour(self) -> Contour:
        """Return the contour of this shape."""
        low, high = (np.log(self.distance), np.log1p(self.distance)) if self.distance else (0.0, 1.0)
        w = np.exp(self.log_rho + 1j * np.pi * (np.arange(self.nodes) + 0.5) / self.nodes)
        u = (low + high) / 2 + (high - low) / 4 * (w + 1 / w)
        du = (high - low) / 4 * (w - 1 / w) / (2 * self.nodes)
        return Contour(np.exp(u) - self.distance, np.exp(u) * du) if self.distance else Contour(u, du)


def _in_logarithm(distance: float, margin: float, height: float, share: float) -> Ellipse:
    """An ellipse in the logarithm that goes a share of the way to an ellipse of that height."""
    log_rho = float(share * np.arcsinh(2 * height / np.log1p(1 / distance)))
    return Ellipse(max(8, int(margin * DIGITS / log_rho)), distance, log_rho)


_before_poles = partial(_in_logarithm, height=np.pi, share=0.42)
"""An ellipse nearly half-way to poles left of −distance, at height π, which may be of high order."""

_along_decay = partial(_in_logarithm, height=0.8, share=1.0)
"""An ellipse for what decays like exp(−z/distance): so flat that it decays on the ellipse too."""


def _ladder(reach: float, only_likely: bool) -> list[Ellipse]:
    """Return shapes to try, likely ones first, then others, if wanted; of both, the cheapest first.

    A filter that acts like λ = reach · γ_max has its poles, if it has any, that far from zero; if it decays, it does so
    over that length; and if it is a polynomial that is best on an interval, its degree is about reach^(−1/2).
    """
    sizes = [quarters * 2**k // 4 for k in range(4, 13) for quarters in (4, 5, 6, 7)]
    slim = [Ellipse(nodes, 0.0, DIGITS / nodes) for nodes in sizes]  # for polynomials of about that degree
    likely = [shape for shape in slim if shape.nodes**2 > 2 / reach]
    likely += [_before_poles(distance, margin) for distance in (reach, reach / 16) for margin in (1.05, 1.4)]
    likely += [_along_decay(distance, margin) for distance in (4 * reach, reach) for margin in (1.0, 1.3)]
    if only_likely:
        return sorted(likely)
    others = [shape for shape in slim if shape.nodes**2 <= 2 / reach]
    others += [_before_poles(10.0**-k, 1.4) for k in range(0, 17, 2)]
    return sorted(likely) + sorted(others)


def accurate_contour(filter: Filter, grid: Array, interval: Interval) -> Contour | None:
    """Return a cheap contour around [0, 1] on which a filter is accurate for its whole grid, if there is one."""
    reach = min(filter.as_lambda(grid[0]), filter.as_lambda(grid[-1])) / interval.largest
    stated = type(filter).as_lambda is not Filter.as_lambda
    contours = (shape.contour() for shape in _ladder(min(reach, 1.0), only_likely=stated))
    return next((contour for contour in contours if is_accurate(contour, filter, grid, interval)), None)


def is_accurate(contour: Contour, filter: Filter, grid: Array, interval: Interval) -> bool:
    """Whether a contour is accurate for a filter's whole grid; its ends, the likeliest to fail, are looked at first."""
    return all(contour.error(filter, part, interval) <= ACCURATE for part in (grid[[0, -1]], grid))


@dataclass(frozen=True)
class Nodes:
    """The nodes z of several contours, with 1/(z − γ) at each as sums of few functions of γ.

    Seen from contours around them the eigenvalues blur: the matrix of all 1/(z − γ) has a rank, to rounding, far below
    the number of nodes and of eigenvalues, and only that many products with eigenvectors are needed for all nodes.
    """

    z: Array
    steps: Array
    """dz/2πi at each node."""
    starts: tuple[int, ...]
    """Where each contour's nodes start."""
    Q: Array | None
    """The functions of γ, in columns; none where each eigenvalue is one of its own."""
    C: Array
    """1/(z − γ) = Q C: shape (..., rank, nodes)."""

    @classmethod
    def from_contours(cls, gamma: Array, n: int, largest: float, contours: Sequence[Contour]) -> Nodes:
        """Return the nodes of contours stretched around [0, largest], for n rows."""
        z, steps = (
            largest * np.concatenate(parts) for parts in zip(*((c.nodes, c.steps) for c in contours), strict=True)
        )
        starts = tuple(np.cumsum([0, *(len(contour.nodes) for contour in contours)]).tolist())
        resolvent = (1 / (z - gamma[..., None])).astype(np.result_type(gamma.dtype, np.complex64), copy=False)
        if gamma.ndim > 1 or n < COMPRESSED_FROM * len(gamma):
            return cls(z, steps, starts, None, resolvent)
        scale = np.abs(resolvent).max(axis=0)
        Q, sigma, V = np.linalg.svd(_as_real(resolvent / scale), full_matrices=False)
        rank = int((sigma > rounding(sigma) * sigma[0]).sum())
        C = np.ascontiguousarray(sigma[:rank, None] * V[:rank]).view(resolvent.dtype) * scale
        return cls(z, steps, starts, np.ascontiguousarray(Q[:, :rank]), C)

    def sums(self, rows: Array, vector: Array | None = None) -> Callable[[slice], Array]:
        """Return Σ_k rows_ik vector_k/(z − γ_k) of every row i as a function of the nodes z; no vector is all ones."""
        if self.Q is not None:
            functions = self.Q if vector is None else vector[:, None] * self.Q
            rows, vector = rows @ functions.astype(rows.dtype, copy=False), None
        return lambda some: _times(rows, self.C[..., some] if vector is None else vector[..., None] * self.C[..., some])


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
    def from_masses(cls, masses: Array, taken: Array) -> _Groups:
        """Group the points that are taken."""
        points = np.flatnonzero(taken)
        kinds, members, counts = np.unique(masses[points], return_inverse=True, return_counts=True)
        order = points[np.argsort(members, kind="stable")]
        return cls(order, np.cumsum(counts) - counts, counts * kinds, 1 - kinds)

    def sum(self, values: Array) -> Array:
        """Return the sums over the points of each group: (..., n, nodes) to (..., groups, nodes)."""
        if len(self.starts) == 1 and len(self.order) == values.shape[-2]:  # all points have one mass
            return values.sum(axis=-2, keepdims=True)
        return np.add.reduceat(values[..., self.order, :], self.starts, axis=-2)


@dataclass(frozen=True)
class Moments:
    """What rows contribute to the score at each node z, summed over points of equal mass.

    With c = 1 − p_i, ⟨φ_i − f*, s(Ĉ_i)(m_i − f*)⟩ integrates s(z/c) times ``linear``, and ⟨m_i − f*, s(Ĉ_i)(m_i − f*)⟩
    integrates s(z/c) times ``quadratic``, both summed over i. Steps of the contour are included.
    """

    nodes: Nodes
    rest: Array
    linear: Array
    quadratic: Array
    unshrunk: Array
    """The points' part of the score of KME."""

    @classmethod
    def from_rows(cls, problem: SpectralProblem, rows: Rows, taken: Array, nodes: Nodes) -> Moments:
        """Compute them for the rows that are taken, some nodes at a time."""
        groups, resolvent = _Groups.from_masses(rows.masses, taken), _resolvent(problem, rows, nodes)
        is_spanned = rows.beyond is None
        blocks = [
            _at_nodes(problem, groups, is_spanned, nodes.z[some], *resolvent(some))
            for some in slices(0, len(nodes.z), NODES_AT_ONCE)
        ]
        linear, quadratic = (np.concatenate(parts, axis=-1) * nodes.steps for parts in zip(*blocks, strict=True))
        unshrunk = problem.left_out_of(rows).unshrunk[..., groups.order].sum(axis=-1)
        return cls(nodes, groups.rest, linear, quadratic, unshrunk)

    def scores(self, place: int, candidates: Candidates) -> Array:
        """Integrate a filter against them on one of the contours, the lower half being the conjugate of the upper.

        In terms of r = 1 − s, so that what is integrated is small wherever the score is close to that of KME.
        """
        filter, contour = cast(Filter, candidates.filter), slice(*self.nodes.starts[place : place + 2])
        scores = np.asarray(self.unshrunk, dtype=np.float64)[..., None] + np.zeros(len(candidates.grid))
        for some in slices(0, len(self.rest), GROUPS_AT_ONCE):
            r = 1 - filter.path(self.nodes.z[contour] / self.rest[some, None], candidates.grid)
            r = r.reshape(len(r), -1).T
            linear, quadratic = (
                values[..., some, contour].reshape(*values.shape[:-2], -1) for values in (self.linear, self.quadratic)
            )
            scores = scores + 2 * np.real(2 * (linear - quadratic) @ r + quadratic @ r**2)
        return scores


def _resolvent(problem: SpectralProblem, rows: Rows, nodes: Nodes) -> Callable[[slice], tuple[Array, list[Array]]]:
    """Return G_ii and √p_i (Gq)_i, √p_i (GDf*(X))_i of each row as a function of the nodes, G = (z − A)⁻¹.

    Eigenvectors that do not span everything leave (I − UUᵀ)/z of G beside them.
    """
    q, beyond = rows.root_masses[:, None], None
    diagonal, products = nodes.sums(rows.U**2), [nodes.sums(rows.U, vector) for vector in _projected(problem)]
    if rows.beyond is not None:  # of the diagonal, and of q
        beyond = rows.beyond[:, None], q - (rows.U @ problem.spectrum.coordinates.astype(q.dtype))[:, None]

    def at(some: slice) -> tuple[Array, list[Array]]:
        G, Gv = diagonal(some), [product(some) for product in products]
        if beyond is not None:
            G += beyond[0] / nodes.z[some]
            Gv[0] += beyond[1] / nodes.z[some]
        return G, [q * each for each in Gv]

    return at


def _projected(problem: SpectralProblem) -> list[Array]:
    """Return Uᵀq and, if there is a target, UᵀDf*(X)."""
    vectors = [problem.spectrum.coordinates]
    if problem.has_target:
        vectors.append(np.sqrt(problem.components.gamma) * problem.components.target)
    return vectors


def _at_nodes(
    problem: SpectralProblem, groups: _Groups, is_spanned: bool, z: Array, G: Array, Gv: list[Array]
) -> tuple[Array, Array]:
    """Return Σ_i p_i ⟨φ_i − f*, R_i (m_i − f*)⟩ and Σ_i p_i ⟨m_i − f*, R_i (m_i − f*)⟩ over the points of each group.

    R_i = (z − (1 − p_i) Ĉ_i)⁻¹ is the resolvent without point i, m_i the mean without it. Removing row and column i of
    A changes vᵀ(z − A)⁻¹v by −(Gv)_i²/G_ii, with G = (z − A)⁻¹ (Schur complement). With v = zq − (1 − p_i) D f*(X),
    constants that integrate to zero against s dropped, the two are

        (Gv)_i/(√p_i G_ii) / (1−p_i)z − ⟨f*, ·⟩   and   [vᵀGv − (Gv)_i²/G_ii] / (1−p_i)²z + ‖f*‖²/z.
    """
    projected, resolvent = _projected(problem), 1 / (z - problem.components.gamma[..., None])
    ratio = [vector / G for vector in Gv]
    mass, c = groups.mass[:, None], groups.rest[:, None]

    def without(j: int, k: int) -> Array:
        """Σ_i p_i [v_jᵀGv_k − (Gv_j)_i (Gv_k)_i/G_ii]."""
        whole = ((projected[j] * projected[k])[..., None] * resolvent).sum(axis=-2)
        if j == k == 0 and not is_spanned:
            whole += (1 - projected[0] @ projected[0]) / z
        return mass * whole[..., None, :] - groups.sum(Gv[j] * ratio[k])

    if not problem.has_target:
        return groups.sum(ratio[0]) / c, without(0, 0) * z / c**2
    mean, target = groups.sum(ratio[0]), groups.sum(ratio[1])
    mean_mean, mean_target, target_target = without(0, 0), without(0, 1), without(1, 1)
    outside = mass * problem.target_squared_norm / z
    linear = (z * mean - c * target - z * mean_target + c * target_target) / (c * z) + outside
    quadratic = (z**2 * mean_mean - 2 * z * c * mean_target + c**2 * target_target) / (c**2 * z) + outside
    return linear, quadratic


def left_out_predictions(spectrum: Spectrum, Z: Array, filter: Filter, grid: Array) -> Array:
    """Return what the smoother g_λ(K/n)/n, made without point i, predicts there from the other rows of Z.

    That is Σ_j α_j z_j with α = g_λ(K/(n−1)) k_i/(n−1), all without point i. With G = (z − A)⁻¹ and c = 1 − 1/n it is
    (1/2πi) ∮ g_λ(z/c)/c (GZ)_i/G_ii dz, of which GZ and G_ii serve all parameters. The masses are equal; the result has
    the shape (parameters, n, columns).
    """
    U, n = spectrum.U, len(spectrum.U)
    rest, largest_value = 1 - 1 / n, float((U**2 @ spectrum.gamma).max()) * n
    interval = Interval(min(spectrum.largest, rest * largest_value), np.array([rest]), largest_value)
    contour = accurate_contour(filter, grid, interval) if filter.analytic else None
    if contour is None:
        needed, advice = "a filter with a contour is needed, smooth and not too steep", "leave points out by refits"
        raise ValueError(refusal("left_out_predictions", needed, f"{filter!r} at {grid}", advice))
    nodes = Nodes.from_contours(spectrum.gamma, n, interval.largest, [contour])
    diagonal, products = nodes.sums(U**2), [nodes.sums(U, vector) for vector in spectrum.project(Z.T)]
    g = np.stack([filter.inverse(nodes.z / rest, parameter) for parameter in grid.tolist()]) * (nodes.steps / rest)
    predictions = np.zeros((len(grid), *Z.shape), U.dtype)
    for some in slices(0, len(nodes.z), NODES_AT_ONCE):
        G = diagonal(some)
        for column, product in enumerate(products):
            predictions[..., column] += 2 * np.real(g[:, some] @ (product(some) / G).T)
    return predictions


def _times(real: Array, complex_values: Array) -> Array:
    """Return the product of a real and a complex matrix, as one real product."""
    complex_type = np.result_type(real.dtype, np.complex64)
    return (real @ _as_real(complex_values.astype(complex_type, copy=False))).view(complex_type)


def _as_real(values: Array) -> Array:
    """Return complex numbers as pairs of real ones."""
    return np.ascontiguousarray(values).view(values.real.dtype)
