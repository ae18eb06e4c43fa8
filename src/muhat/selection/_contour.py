"""Functions of a matrix as sums of resolvents: a contour around the spectrum that knows its own error.

By Cauchy's formula s(A) = (1/2πi) ∮ s(z) (z − A)⁻¹ dz; with the trapezoidal rule this is a rational function of A. How
far that function is from s can be looked at directly, on [0, γ_max], because leaving a point out moves no eigenvalue
out of that interval; and so can how much its terms cancel. So contours are tried until one is accurate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from muhat._arrays import Array, rounding, slices
from muhat.filters import Filter
from muhat.gram import Rows, SpectralProblem

ACCURATE = 1e-11
"""The error of a filter on its contour, next to 1, up to which the contour is taken."""

CANCELLED = 4e5
"""How large sums on a contour may be, in units of what they cancel to: rounding then stays below 1e-10."""

DIGITS = 13.5
"""The rule's error is about exp(−2 · DIGITS) before rounding."""

CHECKED = np.concatenate([[0.0], np.geomspace(1e-16, 1, 64), (1 - np.cos(np.linspace(0.02, 3.1, 33))) / 2])
"""Where on [0, 1] the rational function is compared with the filter."""

NODES_AT_ONCE = 32
"""Nodes at which resolvents are held together."""

GROUPS_AT_ONCE = 64
"""Masses for which a filter is evaluated together."""

COMPRESSED_FROM = 500
"""Rows from which on it pays to look for the few functions of γ that all resolvents are sums of."""

SKETCHED = 192
"""How many random sums of resolvents these functions are looked for in; twice as many where these are too few."""


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
                whole = 2 * np.real(values @ self.steps)  # zero, as r is analytic
                gaps = 2 * np.real(values @ self.resolvents[:, within]) - true
                moved = CHECKED[within] * gaps + whole[:, None]  # of γr: z/(z − γ) = 1 + γ/(z − γ)
                worst = max(worst, *(float(np.abs(each).max()) for each in (whole, gaps, moved)))
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
    likely = [shape for shape in slim if shape.nodes**2 > 4 / reach]
    likely += [_before_poles(distance, margin) for distance in (reach, reach / 16) for margin in (1.05, 1.4)]
    likely += [_along_decay(distance, margin) for distance in (4 * reach, reach) for margin in (1.0, 1.3)]
    if only_likely:
        return sorted(likely)
    others = [shape for shape in slim if shape.nodes**2 <= 4 / reach]
    others += [_before_poles(10.0**-k, 1.4) for k in range(0, 17, 2)]
    return sorted(likely) + sorted(others)


def accurate_contour(filter: Filter, grid: Array, interval: Interval) -> Contour | None:
    """Return a cheap contour around [0, 1] on which a filter is accurate for its whole grid, if there is one."""
    least = min(filter.as_lambda(grid[0]), filter.as_lambda(grid[-1]))
    reach = 1.0 if filter.constant else least / interval.largest
    stated = type(filter).as_lambda is not Filter.as_lambda
    for contour in (shape.contour() for shape in _ladder(min(reach, 1.0), only_likely=stated)):
        # The ends of the grid are the likeliest to fail.
        if all(contour.error(filter, part, interval) <= ACCURATE for part in (grid[[0, -1]], grid)):
            return contour
    return None


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
        resolvent = 1 / (z - gamma[..., None])
        sizes = () if gamma.ndim > 1 or n < COMPRESSED_FROM else (SKETCHED, 2 * SKETCHED)
        for size in (each for each in sizes if each <= min(len(gamma), 2 * len(z))):
            scale = np.abs(resolvent).max(axis=0)
            rows = _as_real(resolvent / scale)
            basis, sketch = np.linalg.qr(rows.T @ np.random.default_rng(0).normal(size=(len(gamma), size)))
            turn, sigma, _ = np.linalg.svd(sketch)
            rank = int((sigma > rounding(sigma) * sigma[0]).sum())
            if rank < size:  # else there may be more
                V = basis @ turn[:, :rank]
                return cls(z, steps, starts, rows @ V, np.ascontiguousarray(V.T).view(resolvent.dtype) * scale)
        return cls(z, steps, starts, None, resolvent)

    def sums(self, rows: Array, vector: Array) -> Callable[[slice], Array]:
        """Return Σ_k rows_ik vector_k/(z − γ_k) of every row i as a function of the nodes z."""
        if self.Q is None:
            return lambda some: _times(rows, vector[..., None] * self.C[..., some])
        few = rows @ (vector[:, None] * self.Q)
        return lambda some: _times(few, self.C[..., some])


@dataclass(frozen=True)
class Moments:
    """What rows contribute to a gain at each node z, summed over points of equal mass; those of two batches add up.

    With R_i the resolvent of (1 − p_i) Ĉ_i, ``linear`` is Σ p_i ⟨φ_i − m_i, R_i (m_i − f_i)⟩ and ``quadratic`` is
    Σ p_i ⟨m_i − f_i, R_i (m_i − f_i)⟩, up to what integrates to zero. Steps of the contour are included.
    """

    z: Array
    rest: Array
    """1 − p_i of each group."""
    linear: Array
    quadratic: Array

    @classmethod
    def from_rows(cls, problem: SpectralProblem, rows: Rows, nodes: Nodes) -> Moments:
        """Compute them for some rows, some nodes at a time."""
        order = np.argsort(rows.masses, kind="stable")
        kinds, starts = np.unique(rows.masses[order], return_index=True)
        one_mass = problem.mass_range[0] == problem.mass_range[1]

        def summed(values: Array) -> Array:
            if one_mass:
                return values.sum(axis=-2, keepdims=True)
            return np.add.reduceat(values[..., order, :], starts, axis=-2)

        blocks = [[summed(each) for each in pair] for pair in at_nodes(problem, rows, nodes, one_mass)]
        linear, quadratic = (np.concatenate(parts, axis=-1) * nodes.steps for parts in zip(*blocks, strict=True))
        return cls(nodes.z, 1 - kinds, linear, quadratic)

    def __add__(self, other: Moments) -> Moments:
        if len(self.rest) == len(other.rest) == 1 and self.rest == other.rest:
            return replace(self, linear=self.linear + other.linear, quadratic=self.quadratic + other.quadratic)
        parts = zip(*((each.linear, each.quadratic) for each in (self, other)), strict=True)
        return Moments(self.z, np.append(self.rest, other.rest), *(np.concatenate(each, axis=-2) for each in parts))

    def at(self, some: slice) -> Moments:
        """Return those at some nodes, the ones of one contour."""
        return Moments(self.z[some], self.rest, self.linear[..., some], self.quadratic[..., some])

    def gains(self, filter: Filter, grid: Array) -> Array:
        """Integrate a filter against them, the lower half of the contour being the conjugate of the upper.

        Every term has a factor r = 1 − s, so that what is summed up is as small as the gain.
        """
        gains: Array = np.zeros(len(grid))
        for some in slices(0, len(self.rest), GROUPS_AT_ONCE):
            r = 1 - filter.path(self.z / self.rest[some, None], grid)
            r = r.reshape(len(r), -1).T
            linear, quadratic = (
                values[..., some, :].reshape(*values.shape[:-2], -1) for values in (self.linear, self.quadratic)
            )
            gains = gains - 2 * np.real(2 * linear @ r + quadratic @ r**2)
        return gains


def at_nodes(problem: SpectralProblem, rows: Rows, nodes: Nodes, centred: bool) -> Iterator[tuple[Array, Array]]:
    """Yield p_i ⟨φ_i − m_i, R_i (m_i − f_i)⟩ and p_i ⟨m_i − f_i, R_i (m_i − f_i)⟩ of every row, some nodes at a time.

    With R = (z − Ĉ)⁻¹, a = φ_iᵀRφ_i, b = φ_iᵀRμ̂ and e = φ_iᵀRf*, taking p_i φ_i φ_iᵀ away from Ĉ leaves the resolvent
    R_i = R − p_i Rφ_i φ_iᵀR/t, t = 1 + p_i a (Sherman and Morrison). m_i − f_i is v + βφ_i with v = μ̂/c − κf*, so that
    with w = p_i (b/c − κe) − β the two are

        [p_i (b − μ̂ᵀRμ̂)/c − p_i κ(e − μ̂ᵀRf*) + p_i (b − a) w/t]/c   and   p_i vᵀRv − w²/t,

    the second but for β², which integrates to zero. Over all rows, b − μ̂ᵀRμ̂ and e − μ̂ᵀRf* have the mean zero: where
    all have one mass they can be left out (``centred``), which leaves what is of the order of p_i.
    """
    components, q, p = problem.components, rows.root_masses[:, None], rows.masses[:, None]
    c, beta, kappa = (each[:, None] for each in (rows.removal.rest, rows.removal.beta, rows.removal.kappa))
    root, ones = np.sqrt(components.gamma), np.ones_like(components.gamma)

    def form(x: Array, y: Array) -> Callable[[slice], Array]:
        return nodes.sums((x * y)[..., None, :], ones)

    m, f = components.mean, components.target
    own, mean, mean_mean = nodes.sums(rows.U**2, components.gamma), nodes.sums(rows.U, root * m), form(m, m)
    if problem.has_target:
        target, mean_target, target_target = nodes.sums(rows.U, root * f), form(m, f), form(f, f)
    for some in slices(0, len(nodes.z), NODES_AT_ONCE):
        pa, pb, whole = own(some), q * mean(some), mean_mean(some)
        w, form_of_v = pb / c - beta, whole / c**2
        first: Array | float = 0.0 if centred else (pb - p * whole) / c
        if problem.has_target:
            pe, crossed = q * target(some), mean_target(some)
            outside = np.asarray(problem.target_outside)[..., None, None] / nodes.z[some]
            w -= kappa * pe
            form_of_v = form_of_v - 2 * kappa / c * crossed + kappa**2 * (target_target(some) + outside)
            first = first - (kappa - centred) * (pe - p * crossed)
        y = w / (1 + pa)
        yield (first + (pb - pa) * y) / c, p * form_of_v - w * y


def _times(real: Array, complex_values: Array) -> Array:
    """Return the product of a real and a complex matrix, as one real product."""
    complex_type = np.result_type(real.dtype, np.complex64)
    return (real @ _as_real(complex_values.astype(complex_type, copy=False))).view(complex_type)


def _as_real(values: Array) -> Array:
    """Return complex numbers as pairs of real ones."""
    return np.ascontiguousarray(values).view(values.real.dtype)
