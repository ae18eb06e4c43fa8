"""Functions of a matrix as sums of resolvents that know their own error.

On the interval where eigenvalues can be, r(γ) ≈ Re Σ_j c_j/(z_j − γ) with poles z_j on a curve
around it, c being found by least squares at points of it. Leaving a row of the sample out moves no
eigenvalue out of that interval, so that r of every left-out matrix is the same sum of its
resolvents. How far the sum is from r is seen between the points, and so is how much its terms
cancel: more poles are taken until it is accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain
from operator import add

import numpy as np
from scipy.linalg import solve_triangular

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, rounding, share_between_cores, slices
from muhat._tolerances import MAX_CANCELLATION, MAX_FIT_ERROR
from muhat.filters import Filter
from muhat.gram import EigenbasisRows, SpectralProblem

ELLIPSE_DIGITS = {"smooth": 16.0, "polynomial": 14.0}
"""The truncation error is about exp(−2 · ELLIPSE_DIGITS); rounding takes digits of polynomials."""

ELLIPSE_HEIGHT = 1.6
"""Angle between the interval and poles for all scales, seen from the interval's lower end."""

POINTS_PER_POLE = 3
"""Points for each pole at which a function is fitted."""

MAX_POLES = 1024
"""Most poles that are tried."""

N_CHECKED_PARAMETERS = 80
"""Most parameters of a grid at which the error is checked."""

POLES_PER_BLOCK = 32
"""Poles at which resolvents are held together."""

MASSES_PER_BLOCK = 64
"""Masses at which a filter is evaluated together."""

ROWS_PER_BLOCK = 512
"""Rows that a core works on together."""

MIN_ROWS_COMPRESSED = 500
"""Fewest rows for which all resolvents are written as sums of few functions of γ."""

SKETCH_SIZE = 160
"""Random sums of resolvents in which these functions are searched; twice that on a second try."""


@dataclass(frozen=True)
class Interval:
    """Where the eigenvalues of A without a point can be.

    The largest alone near γ_max, all others from zero on.
    """

    largest: float
    """γ_max: poles around [0, 1] are stretched by it."""
    second: float
    """In units of it, what no eigenvalue but the largest exceeds, if that stands apart; else 1."""
    first: float
    """In units of it, what the largest does not fall below."""
    scales: Array
    """1 − p_i, the mass that is left without point i; filters are evaluated at γ/scale."""

    @classmethod
    def from_spectrum(cls, gamma: Array, rest: tuple[float, float], bound: float) -> Interval:
        """Return the interval, given the eigenvalues of A and the least and largest 1 − p_i.

        Eigenvalues are ascending; k(x, x) is at most ``bound``.

        (1 − p_i) Ĉ_i = Ĉ − p_i φ_i φ_iᵀ has eigenvalues that are lower by no more than p_i k(x_i,
        x_i) (Weyl).
        """
        largest = min(float(gamma.max(initial=0.0)), rest[1] * bound)
        second = 0.0
        if gamma.shape[-1] > 1:
            second = float(gamma[..., -2].max())
        first = float(gamma[..., -1].min(initial=np.inf)) - (1 - rest[0]) * bound
        if first < 2 * second or not largest > 0:
            return cls(largest, 1.0, 0.0, np.array(rest))
        return cls(largest, second / largest, first / largest, np.array(rest))


@dataclass(frozen=True)
class Ellipse:
    """The upper half of an ellipse around an interval, in z or in log(z + distance).

    The ends of the interval are its foci.
    """

    nodes: int
    log_rho: float
    """The logarithm of the ellipse's parameter: the larger, the rounder."""
    low: float = 0.0
    high: float = 1.0
    distance: float = 0.0
    """Zero for an ellipse in z.

    In the logarithm, poles crowd towards 0 and keep right of −distance.
    """

    def at(self, log_rho: float, angles: Array) -> Array:
        """Return points of the ellipse with that parameter: with zero, of the interval."""
        low, high = self.low, self.high
        if self.distance:
            low, high = np.log([low + self.distance, high + self.distance])
        u = (low + high) / 2 + (high - low) / 2 * np.cosh(log_rho + 1j * angles)
        if self.distance:
            return np.exp(u) - self.distance
        return u

    def poles_and_points(self) -> tuple[Array, Array, Array]:
        """Return poles on the ellipse, points to fit a function at, and points between these."""
        angles = np.linspace(0, np.pi, POINTS_PER_POLE * self.nodes)
        points = np.clip(self.at(0.0, angles).real, self.low, self.high)
        poles = self.at(self.log_rho, np.pi * (np.arange(self.nodes) + 0.5) / self.nodes)
        return poles, points, self.at(0.0, (angles[1:] + angles[:-1]) / 2).real


def _in_logarithm(distance: float) -> Ellipse:
    """Return an ellipse for functions that vary on all scales down to a distance from zero.

    They may have poles at that distance.
    """
    log_rho = float(np.arcsinh(2 * ELLIPSE_HEIGHT / np.log1p(1 / distance)))
    return Ellipse(max(8, round(ELLIPSE_DIGITS["smooth"] / log_rho)), log_rho, distance=distance)


@dataclass(frozen=True, eq=False)
class Poles:
    """Poles whose resolvents fit a function on [0, 1].

    They are in units of γ_max, and stand for their conjugates too.
    """

    z: Array
    points: Array
    checks: Array
    """Where the error is looked at: between the points."""
    power: float
    """Errors of f are those of γ^power f(γ)."""

    def _resolvents(self, x: Array) -> Array:
        """Return the real and minus the imaginary part of 1/(z − x), times x^power.

        Shape (points, 2 · poles).
        """
        resolvent = x[:, None] ** self.power / (self.z - x[:, None])
        return np.concatenate([resolvent.real, -resolvent.imag], axis=1)

    @cached_property
    def _factors(self) -> tuple[Array, Array, Array]:
        """Q and R of the resolvents at the points, columns scaled to length 1, and the lengths."""
        resolvents = self._resolvents(self.points)
        lengths = np.sqrt((resolvents**2).sum(axis=0))
        Q, R = np.linalg.qr(resolvents / lengths)
        return Q, R, lengths

    def fit(self, values: Array) -> Array:
        """Return the real and imaginary parts of c, in columns, for values of functions in rows."""
        Q, R, lengths = self._factors
        return (
            solve_triangular(R, Q.T @ (values * self.points**self.power).T, check_finite=False)
            / lengths[:, None]
        )

    def weights(self, sums: Array) -> Array:
        """Return w with Σ_x w(x) f(x) = Re Σ_j c_j F_j for every fitted f, given F in rows.

        x are the points at which f is fitted.
        """
        Q, R, lengths = self._factors
        parts = np.concatenate([sums.real, -sums.imag], axis=-1) / lengths
        solved = solve_triangular(
            R, parts.reshape(-1, len(lengths)).T, trans="T", check_finite=False
        )
        return (Q @ solved).T.reshape(*sums.shape[:-1], -1) * self.points**self.power

    def errors(self, at_points: Array, at_checks: Array) -> Array:
        """Return the largest error of each function, by its values.

        Infinite where rounding could spoil the sum.
        """
        fit, resolvents = self.fit(at_points), self._resolvents(self.checks)
        gaps = np.abs(resolvents @ fit - (at_checks * self.checks**self.power).T).max(axis=0)
        return np.where(
            (np.abs(resolvents) @ np.abs(fit)).max(axis=0) > MAX_CANCELLATION, np.inf, gaps
        )


@lru_cache(maxsize=4)
def _poles(ellipses: tuple[Ellipse, ...], power: float) -> Poles:
    """Return poles on ellipses.

    Their factors, once they are computed, serve the next sample too.
    """
    on_each = [each.poles_and_points() for each in ellipses]
    z, points, checks = map(np.concatenate, zip(*on_each, strict=True))
    return Poles(z, points, checks, power)


def _for_polynomials(nodes: int, interval: Interval) -> tuple[Ellipse, ...]:
    """Return an ellipse of poles for polynomials, and a second one if γ_max stands apart.

    The first goes around all eigenvalues but one that is far above the others, the second, of few
    poles, around that one.
    """
    log_rho, width = ELLIPSE_DIGITS["polynomial"] / nodes, max(1 - interval.first, 1e-6)
    if interval.second == 1:
        return (Ellipse(nodes, log_rho),)
    rounder = float(np.arccosh(1 + (interval.first - interval.second) / (8 * width)))
    around = Ellipse(max(6, round(ELLIPSE_DIGITS["smooth"] / rounder)), rounder, low=1 - width)
    return Ellipse(nodes, log_rho, high=max(interval.second, 1e-6)), around


def poles_to_try(
    filter: Filter, grid: Array, interval: Interval, power: float = 0.0
) -> Iterator[Poles]:
    """Yield poles that may serve a filter on its whole grid, likely ones first.

    Of these, the fewest first.

    A filter that acts like λ = reach · γ_max varies over all scales down to that, because it
    decays or has poles there; if it is a polynomial that is best on an interval, its degree is
    about reach^(−1/2).
    """
    reach = 1.0
    if not filter.constant:
        ends = float(filter.as_lambda(grid[0])), float(filter.as_lambda(grid[-1]))
        reach = min(max(min(ends) / interval.largest, 1e-300), 1.0)
    # Distances are powers of four, so that filters and samples share their poles.
    power_of_four = np.floor(np.log(reach) / np.log(4))
    likely: list[tuple[Ellipse, ...]] = []
    for more in (1, 0, -2):
        likely.append((_in_logarithm(4.0 ** (power_of_four + more)),))
    # A polynomial may be steep around a largest eigenvalue that stands apart.
    for second in {interval.second, 1.0}:
        least = 8 + round(1.5 * np.sqrt(second / reach))  # for its square
        if least <= MAX_POLES:
            part = replace(interval, second=second)
            for k in range(4):
                likely.append(_for_polynomials(min(round(least * 1.3**k), MAX_POLES), part))
    likely.sort(key=lambda ellipses: sum(each.nodes for each in ellipses))
    if type(filter).as_lambda is Filter.as_lambda:  # its parameter need not be like λ
        for k in range(0, 17, 4):
            likely.append((_in_logarithm(10.0**-k),))
        likely.append(_for_polynomials(64, interval))
    return (_poles(ellipses, power) for ellipses in likely)


def find_poles(
    filter: Filter, grid: Array, interval: Interval, known: Iterable[Poles]
) -> Poles | None:
    """Return poles by which a filter is accurate for its whole grid, if there are any.

    Known ones cost least.
    """
    tried = chain(known, poles_to_try(filter, grid, interval))
    error = partial(_fit_error, filter=filter, grid=grid, interval=interval)
    return first_accurate_poles(tried, error, MAX_FIT_ERROR)


def first_accurate_poles(
    tried: Iterable[Poles], error: Callable[[Poles], float], tolerance: float
) -> Poles | None:
    """Return the first poles whose error is within the tolerance.

    None if there are no such poles.
    """
    with BLAS_ON_ONE_THREAD:  # matrices are small
        for poles in tried:
            if error(poles) <= tolerance:
                return poles
    return None


def _fit_error(poles: Poles, filter: Filter, grid: Array, interval: Interval) -> float:
    """Return the largest error, over a grid, of the functions that score a filter: r and r²."""
    some = np.unique(np.linspace(0, len(grid) - 1, N_CHECKED_PARAMETERS).round().astype(int))
    grid, worst = grid[some], 0.0
    for scale in set(interval.scales.tolist()):
        both = []
        for x in (poles.points, poles.checks):
            with np.errstate(all="ignore"):
                r = 1 - filter.path(x * (interval.largest / scale), grid)
            # Values of a filter above 1e100 are ruled out before their squares overflow.
            if not (np.isfinite(r).all() and (np.abs(r) < 1e100).all()):
                return np.inf
            both.append(np.concatenate([r, r**2]))
        worst = max(worst, float(poles.errors(*both).max()))
    return worst


@dataclass(frozen=True)
class Nodes:
    """The poles z of several filters, with 1/(z − γ) as sums of few functions of γ.

    Seen from poles around them the eigenvalues blur: the matrix of all 1/(z − γ) has a rank, to
    rounding, below the number of poles and eigenvalues, and only that many products with
    eigenvectors are needed for all poles.
    """

    z: Array
    starts: tuple[int, ...]
    """Where the poles of each choice start."""
    Q: Array | None
    """The functions of γ, in columns; none where each eigenvalue is one of its own."""
    C: Array
    """1/(z − γ) = Q C: shape (..., rank, poles)."""

    @classmethod
    def from_poles(cls, gamma: Array, n: int, largest: float, chosen: Sequence[Poles]) -> Nodes:
        """Return poles stretched around [0, largest], for n rows."""
        on_each = [each.z for each in chosen]
        z = largest * np.concatenate(on_each)
        starts = tuple(np.cumsum([0, *map(len, on_each)]).tolist())
        resolvent = 1 / (z - gamma[..., None])
        if gamma.ndim == 1 and n >= MIN_ROWS_COMPRESSED:
            for size in (SKETCH_SIZE, 2 * SKETCH_SIZE):
                if size <= min(len(gamma), 2 * len(z)):
                    compressed = cls._compressed(z, starts, resolvent, size)
                    if compressed is not None:
                        return compressed
        return cls(z, starts, None, resolvent)

    @classmethod
    def _compressed(
        cls, z: Array, starts: tuple[int, ...], resolvent: Array, size: int
    ) -> Nodes | None:
        """Return the poles with fewer functions of γ than a sketch has columns, or None."""
        scale = np.abs(resolvent).max(axis=0)
        rows = (resolvent / scale).view(np.float64)
        with BLAS_ON_ONE_THREAD:  # threads of its own would still wait for work when ours begin
            signs = np.random.default_rng(0).random((len(rows), size)) - 0.5
            basis, sketch = np.linalg.qr(rows.T @ signs)
            turn, sigma, _ = np.linalg.svd(sketch)
            rank = int((sigma > rounding(sigma) * sigma[0]).sum())
            if rank == size:  # there may be more
                return None
            V = basis @ turn[:, :rank]
            C = np.ascontiguousarray(V.T).view(resolvent.dtype) * scale
            return cls(z, starts, rows @ V, C)

    def sums(self, rows: Array, vector: Array) -> Callable[[slice], Array]:
        """Return Σ_k rows_ik vector_k/(z − γ_k) of every row i as a function of the poles z."""
        if self.Q is None:
            return lambda some: _real_times_complex(rows, vector[..., None] * self.C[..., some])
        few = rows @ (vector[:, None] * self.Q)
        return lambda some: _real_times_complex(few, self.C[..., some])


@dataclass(frozen=True)
class Moments:
    """What rows contribute to a gain at each pole z, summed over points of equal mass.

    Those of two batches add up.

    With R_i the resolvent of (1 − p_i) Ĉ_i, ``linear`` is Σ p_i ⟨φ_i − m_i, R_i (m_i − f_i)⟩ and
    ``quadratic`` is Σ p_i ⟨m_i − f_i, R_i (m_i − f_i)⟩; or both are the weights that follow at
    points of [0, γ_max].
    """

    z: Array
    """The poles, or the points."""
    rest: Array
    """1 − p_i of each group."""
    linear: Array
    quadratic: Array

    @classmethod
    def from_rows(cls, problem: SpectralProblem, rows: EigenbasisRows, nodes: Nodes) -> Moments:
        """Compute them for rows, of which each core takes some at a time."""
        chunks = slices(0, max(len(rows.masses), 1), ROWS_PER_BLOCK)
        return reduce(
            add,
            share_between_cores(lambda some: cls._from_some(problem, rows[some], nodes), chunks),
        )

    @classmethod
    def _from_some(cls, problem: SpectralProblem, rows: EigenbasisRows, nodes: Nodes) -> Moments:
        """Compute them for some rows, some poles at a time."""
        one_mass = problem.mass_range[0] == problem.mass_range[1]
        order = np.argsort(rows.masses, kind="stable")
        kinds, starts = np.unique(rows.masses[order], return_index=True)

        def in_groups(values: Array) -> Array:
            return np.add.reduceat(values[..., order, :], starts, axis=-2)

        linear, quadratic = [], []
        for terms in resolvent_terms(problem, rows, nodes, one_mass):
            if one_mass:
                both = terms.sums()
            else:
                by_row = terms.by_row()
                both = in_groups(by_row[0]), in_groups(by_row[1])
            linear.append(both[0])
            quadratic.append(both[1])
        return cls(
            nodes.z,
            1 - kinds,
            np.concatenate(linear, axis=-1),
            np.concatenate(quadratic, axis=-1),
        )

    def __add__(self, other: Moments) -> Moments:
        if len(self.rest) == len(other.rest) == 1 and self.rest == other.rest:
            return replace(
                self, linear=self.linear + other.linear, quadratic=self.quadratic + other.quadratic
            )
        return Moments(
            self.z,
            np.append(self.rest, other.rest),
            np.concatenate([self.linear, other.linear], axis=-2),
            np.concatenate([self.quadratic, other.quadratic], axis=-2),
        )

    def on_points(self, poles: Poles, largest: float, some: slice) -> Moments:
        """Return the weights at the points of poles, which are some of those the moments are at."""
        linear = poles.weights(largest * self.linear[..., some])
        quadratic = poles.weights(largest * self.quadratic[..., some])
        return Moments(largest * poles.points, self.rest, linear, quadratic)

    def gains(self, filter: Filter, grid: Array, bias_factor: Array) -> Array:
        """Return what each parameter gains over KME, from weights.

        Each term has a factor r, as small as the gain.

        The squared bias, which is what ``quadratic`` sums up to, is counted ``bias_factor`` times.
        """
        gains: Array = np.zeros(len(grid))
        quadratic = self.quadratic * bias_factor[..., None, None]
        for some in slices(0, len(self.rest), MASSES_PER_BLOCK):
            r = 1 - filter.path(self.z / self.rest[some, None], grid)
            for values, factors in ((2 * self.linear, r), (quadratic, r**2)):
                gains = gains - np.tensordot(
                    values[..., some, :], factors, axes=((-2, -1), (-2, -1))
                )
        return gains


@dataclass(frozen=True, eq=False)
class ResolventTerms:
    """The linear and the quadratic term of every row's gain at some poles.

    These are p_i ⟨φ_i − m_i, R_i (m_i − f_i)⟩ and p_i ⟨m_i − f_i, R_i (m_i − f_i)⟩.

    With R = (z − Ĉ)⁻¹, a = φ_iᵀRφ_i, b = φ_iᵀRμ̂ and e = φ_iᵀRf*, taking p_i φ_i φ_iᵀ away from Ĉ
    leaves the resolvent R_i = R − p_i Rφ_i φ_iᵀR/t, t = 1 + p_i a (Sherman and Morrison). m_i − f_i
    is v + βφ_i with v = μ̂/c − κf*, so that with h = p_i (b/c − κe) − β the two are

        [p_i (b − μ̂ᵀRμ̂)/c − p_i κ(e − μ̂ᵀRf*) + p_i (b − a) h/t]/c   and   p_i vᵀRv + β² − h²/t.
    """

    first: Array
    """p_i (b − μ̂ᵀRμ̂)/c − p_i κ(e − μ̂ᵀRf*), without what sums to zero where that is left out."""
    gap: Array
    """p_i (b − a)."""
    h: Array
    ratio: Array
    """h/t."""
    form: Array
    """p_i vᵀRv + β²."""
    rest: Array
    """c."""

    def by_row(self) -> tuple[Array, Array]:
        """Return both terms of each row: shape (..., rows, poles)."""
        return (self.first + self.gap * self.ratio) / self.rest, self.form - self.h * self.ratio

    def sums(self) -> tuple[Array, Array]:
        """Return the sums over rows, which all have the same c."""
        linear = np.einsum("...ij,...ij->...j", self.gap, self.ratio)[..., None, :]
        quadratic = np.einsum("...ij,...ij->...j", self.h, self.ratio)[..., None, :]
        return (self._total(self.first) + linear) / self.rest[0], self._total(self.form) - quadratic

    def _total(self, values: Array) -> Array:
        """Return the sum over rows of values that may be the same for all of them."""
        if values.shape[-2] == len(self.rest):
            return values.sum(axis=-2, keepdims=True)
        return len(self.rest) * values


def resolvent_terms(
    problem: SpectralProblem, rows: EigenbasisRows, nodes: Nodes, centred: bool
) -> Iterator[ResolventTerms]:
    """Yield the terms of every row's gain, some poles at a time.

    Over all rows, b − μ̂ᵀRμ̂ and e − μ̂ᵀRf* have the mean zero: where all have one mass they can be
    left out (``centred``), which leaves what is of the order of p_i.
    """
    components, q, p = problem.components, rows.root_masses[:, None], rows.masses[:, None]
    update = rows.update
    c, beta, kappa = update.rest[:, None], update.beta[:, None], update.kappa[:, None]
    root, ones = np.sqrt(components.gamma), np.ones_like(components.gamma)
    if centred and not problem.has_target:  # rows differ in neither
        p, c, beta = p[:1], c[:1], beta[:1]

    def form(x: Array, y: Array) -> Callable[[slice], Array]:
        return nodes.sums((x * y)[..., None, :], ones)

    m, f = components.mean, components.target
    own = nodes.sums(rows.U**2, components.gamma)
    mean = nodes.sums(rows.U, root * m)
    mean_mean = form(m, m)
    if problem.has_target:
        target, mean_target, target_target = nodes.sums(rows.U, root * f), form(m, f), form(f, f)
    for some in slices(0, len(nodes.z), POLES_PER_BLOCK):
        pa, pb, whole = own(some), q * mean(some), mean_mean(some)
        h, form_of_v = pb / c, whole / c**2
        h -= beta
        first: Array = np.zeros((1, 1))
        if not centred:
            first = (pb - p * whole) / c
        if problem.has_target:
            pe, crossed = q * target(some), mean_target(some)
            outside = np.asarray(problem.target_outside)[..., None, None] / nodes.z[some]
            h -= kappa * pe
            form_of_v = (
                form_of_v - 2 * kappa / c * crossed + kappa**2 * (target_target(some) + outside)
            )
            first = first - (kappa - centred) * (pe - p * crossed)
        gap = np.subtract(pb, pa, out=pb)
        pa += 1
        yield ResolventTerms(first, gap, h, h / pa, p * form_of_v + beta**2, update.rest[:, None])


def _real_times_complex(real: Array, complex_values: Array) -> Array:
    """Return the product of a real and a complex matrix, as one real product."""
    values = np.ascontiguousarray(complex_values, np.result_type(real.dtype, np.complex64))
    return (real @ values.view(values.real.dtype)).view(values.dtype)
