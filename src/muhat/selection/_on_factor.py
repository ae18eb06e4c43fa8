"""F-KMSE's parameter chosen on a low-rank factor, its weights computed exactly: no ``eigh``.

With G = (A + s)⁻¹ and s = (1 − p)λ, the leave-one-out score of F-KMSE takes Gq and G²q, and the
diagonals of AG and AG². The first two are functions of A times q, which some dozen products give to
rounding for every λ (Lanczos). The diagonals come from a factor Z Zᵀ, and for what it misses of
each row i from one eigenvalue δ_i: what is left of A_ii, spread over the part of the row that the
eigenvectors of Z Zᵀ do not span. What that is wrong by is estimated at the chosen λ from a few
random vectors z, as z_i (Gz)_i is G_ii on average: λ is chosen with its averages over groups of
rows, and the gain of the chosen λ is corrected row by row, to second order. Its error is known from
how the random vectors differ (docs/scale.md has what was measured).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import (
    Array,
    quotient,
    share_between_cores,
    significant_eigenpairs,
    slices,
    without_rounding,
)
from muhat.filters import Shrinker, Tikhonov
from muhat.gram import Access, DenseGram, LowRankFactor
from muhat.gram._in_memory import InMemoryProblem
from muhat.gram._problem import dimension_of
from muhat.selection._base import Candidates, Choice, Rule, Scores, bias_factor_on, candidates_of
from muhat.selection._leave_one_out import LeaveOneOut

MIN_ROWS = 1500
"""Rows from which on this is quicker than an eigendecomposition."""

MAX_SCORE_ERROR = 0.1
"""The largest error of the chosen gain by the random vectors, in standard errors of that gain."""

N_GROUPS = 4
"""Groups of rows, beside the pivots, that the factor describes about equally well."""

N_PROBES = 24
"""Random vectors from which the error of the factor's diagonals is estimated."""

PROBE_TOL = 1e-6
"""The relative residual at which the resolvent times these vectors has converged."""

MAX_PROBE_STEPS = 40
"""The most products with A for that."""

SAME_LAMBDA = 0.1
"""The logarithm of the ratio of λ up to which a correction at one serves the other."""

SMALL_STEP = 1e-3
"""The step of central differences."""

CONVERGED = 1e-11
"""The relative change at which the weights have converged."""

CONVERGED_FOR_SCORES = 1e-6
"""The same for λ that are scored only."""

MAX_STEPS = 150
"""The most products with A: a fraction of an eigendecomposition."""

CONVERGED_BELOW = 10.0
"""λ down to the chosen one divided by this are scored by converged products."""

MAX_ROUNDS = 5
"""How often the choice may move to a λ that products or the correction are not for yet."""

FIRST_STEPS = 16
"""Products before the weights are looked at for the first time."""

PARAMETERS_PER_BLOCK = 8
"""Parameters that a core scores together."""

ROWS_PER_BLOCK = 512
"""Rows of the matrix that are centred together."""


@dataclass(eq=False)
class ProductProblem(InMemoryProblem):
    """The problem of equal masses whose Gram matrix is in memory and is not decomposed."""

    access: ClassVar[Access] = Access.PRODUCTS | Access.ROWS  # type: ignore[misc]
    gram: DenseGram

    @cached_property
    def lanczos(self) -> Lanczos:
        """Functions of A times q."""
        return Lanczos(self.gram, self.root_masses)

    @cached_property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """γ_max, which Lanczos' iteration finds first."""
        self.lanczos.converge(float(self.trace))
        return float(self.lanczos.theta[-1])

    @cached_property
    def effective_dimension(self) -> Array:
        """D, from the centred matrix, some rows at a time."""
        means = self.mean_values * np.sqrt(self.masses)
        mean = float(self.masses @ self.mean_values * np.sqrt(self.n))
        squared = share_between_cores(
            partial(self._centred_squares, means - mean / (2 * self.n)),
            slices(0, self.n, ROWS_PER_BLOCK),
        )
        return dimension_of(np.asarray(self.spread), np.asarray(sum(squared)))

    def _centred_squares(self, means: Array, some: slice) -> float:
        """Return Σ (A_ij − means_i − means_j)² over some rows i."""
        centred = self.gram.matrix[some] - means
        centred -= means[some, None]
        return float(np.vdot(centred, centred))


@dataclass(eq=False)
class Lanczos:
    """The Krylov space of A and q, ‖q‖ = 1, in an orthonormal basis that grows by products."""

    gram: DenseGram
    q: Array
    alpha: list[float] = field(default_factory=list)
    beta: list[float] = field(default_factory=list)
    is_exhausted: bool = False

    def __post_init__(self) -> None:
        self.basis = np.empty((FIRST_STEPS, len(self.q)))
        self._next = self.q / np.linalg.norm(self.q)
        self._decompose()

    @property
    def steps(self) -> int:
        """How many products were taken."""
        return len(self.alpha)

    def advance(self, steps: int) -> None:
        """Take products up to this number, or until the Krylov space is exhausted."""
        while self.steps < min(steps, len(self.q)) and not self.is_exhausted:
            k = self.steps
            if k == len(self.basis):
                self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
            self.basis[k] = self._next
            v = self.gram.product(self._next)
            self.alpha.append(float(self._next @ v))
            for _ in range(2):  # once leaves rounding errors of what it takes away
                v -= (self.basis[: k + 1] @ v) @ self.basis[: k + 1]
            norm = float(np.linalg.norm(v))
            self.beta.append(norm)
            self.is_exhausted = norm <= float(np.finfo(float).eps) * max(self.alpha)
            self._next = quotient(v, np.asarray(norm))
        self._decompose()

    def _decompose(self) -> None:
        """Compute the eigenpairs of the tridiagonal matrix."""
        if not self.steps:
            self.theta, self.W = np.zeros(1), np.ones((1, 1))
            return
        T = np.diag(self.alpha) + np.diag(self.beta[:-1], -1)
        theta, self.W = np.linalg.eigh(T)
        self.theta = without_rounding(theta, self.steps)

    @property
    def first(self) -> Array:
        """The coordinates of q in the Ritz vectors."""
        return self.W[0]

    def shrunk(self, lam: float) -> Array:
        """Return the coordinates of A(A + λ)⁻¹q in the basis."""
        return self.W @ (self.first * self.theta / (self.theta + lam))

    def converge(self, lam: float, tolerance: float = CONVERGED) -> bool:
        """Take products until A(A + λ)⁻¹q has converged, and return whether it has."""
        if not self.steps:
            self.advance(FIRST_STEPS)
        while True:
            before = self.shrunk(lam)
            if not self.is_exhausted:
                self.advance(self.steps + max(2, self.steps // 8))
            now = self.shrunk(lam)
            moved = now - np.pad(before, (0, len(now) - len(before)))
            if self.is_exhausted or np.linalg.norm(moved) <= tolerance * np.linalg.norm(now):
                return True
            if self.steps >= MAX_STEPS:
                return False

    def products(self, s: Array) -> list[Array]:
        """Return A(A + s)⁻¹q and A(A + s)⁻²q for each s: shape (n, len(s))."""
        column = self.theta[:, None] + s
        once = (self.first * self.theta)[:, None] / column
        return [self.vector(self.W @ once), self.vector(self.W @ (once / column))]

    def vector(self, coordinates: Array) -> Array:
        """Return the vector with coordinates in the basis; one for each column."""
        return self.basis[: self.steps].T @ coordinates


@dataclass(frozen=True, eq=False)
class FactorResolvents:
    """A(A + s)⁻¹ and A(A + s)⁻², from a factor and one eigenvalue a row for what it misses."""

    gamma: Array
    U: Array
    """The eigenvectors of the factor, of shape (n, r)."""
    squares: Array
    """U²."""
    outside: Array
    """1 − Σ_k U_ik²: how much of each row the eigenvectors do not span."""
    delta: Array
    """What the factor misses of A_ii, divided by that."""

    @classmethod
    def from_factor(cls, L: Array, own: Array) -> FactorResolvents:
        """Return them for the factor L Lᵀ/n of A, given the diagonal of A."""
        Z = L / np.sqrt(len(L))
        gamma, V = significant_eigenpairs(Z.T @ Z)
        U = Z @ quotient(V, np.sqrt(gamma))
        squares = U**2
        outside = np.maximum(1 - squares.sum(axis=1), 0)
        missed = np.maximum(own - (Z**2).sum(axis=1), 0)
        return cls(gamma, U, squares, outside, quotient(missed, outside))

    def diagonals(self, s: Array) -> list[Array]:
        """Return both diagonals for each s: shape (n, len(s))."""
        return self._at(s, self.squares, self.outside)

    @cached_property
    def mean_delta(self) -> float:
        """One eigenvalue for all that the factor misses."""
        return float(quotient(self.outside @ self.delta, self.outside.sum()))

    @cached_property
    def groups(self) -> Array:
        """The group of each row: pivots, which the factor has whole, and others by ``outside``."""
        order = np.argsort(self.outside, kind="stable")
        n, r = self.U.shape
        groups = np.zeros(n, int)
        groups[order[r:]] = 1 + N_GROUPS * np.arange(n - r) // max(n - r, 1)
        return groups

    def inverse(self, s: float, vectors: Array) -> Array:
        """Return (A + s)⁻¹·vectors with one eigenvalue outside of the eigenvectors."""
        outside = 1 / (self.mean_delta + s)
        inside = 1 / (self.gamma + s) - outside
        return self.U @ (inside[:, None] * (self.U.T @ vectors)) + outside * vectors

    def inverse_diagonals(self, s: float) -> Array:
        """Return the diagonals of that inverse and of its square: shape (2, n)."""
        inside, outside = 1 / (self.gamma + s), 1 / (self.mean_delta + s)
        return np.stack(
            [
                self.squares @ inside + self.outside * outside,
                self.squares @ inside**2 + self.outside * outside**2,
            ]
        )

    def products(self, s: Array, q: Array) -> list[Array]:
        """Return both products with q, in place of exact ones."""
        inside = q @ self.U
        return self._at(s, self.U * inside, q - self.U @ inside)

    def _at(self, s: Array, inside: Array, outside: Array) -> list[Array]:
        column, missed = self.gamma[:, None] + s, self.delta[:, None] + s
        rest = (outside * self.delta)[:, None] / missed
        return [
            inside @ (self.gamma[:, None] / column) + rest,
            inside @ (self.gamma[:, None] / column**2) + rest / missed,
        ]


@dataclass(frozen=True, eq=False)
class Correction:
    """What the diagonals of A(A + s)⁻¹ and A(A + s)⁻² lack, estimated at one s.

    Its average over groups of rows is size/(distance + s) for the first, whose derivative is minus
    that of the second; around the s of the estimate both are right to first order.
    """

    groups: Array
    """The group of each row."""
    size: Array
    distance: Array
    spread: Array
    """What each random vector says that a row's first diagonal lacks at that s beyond the average.

    Shape (n, vectors). Of a single row this is mostly noise, which is averaged in what is linear in
    it. Of the second diagonal it does not show in a gain.
    """

    @classmethod
    def none(cls, n: int) -> Correction:
        """Return the correction that adds nothing."""
        return cls(np.zeros(n, int), np.zeros(1), np.zeros(1), np.zeros((n, 1)))

    @classmethod
    def at(
        cls, s: float, problem: ProductProblem, resolvents: FactorResolvents
    ) -> Correction | None:
        """Estimate it at one s from random signs z; None if the products do not converge.

        The expectations of z_i (Gz)_i and of (Gz)_i² are the diagonals of G and G².
        """
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(problem.n, N_PROBES))
        exact = _solve(problem.gram, s, resolvents, signs)
        if exact is None:
            return None
        near = resolvents.inverse(s, signs)
        known, known2 = resolvents.inverse_diagonals(s)[..., None]
        once, twice = resolvents.diagonals(np.array([s]))
        own, own2 = known + signs * (exact - near), known2 + exact**2 - near**2
        by_vector = 1 - s * own - once
        groups = resolvents.groups
        lacking = np.bincount(groups, by_vector.mean(axis=1)) / np.bincount(groups)
        lacking2 = np.bincount(groups, (own - s * own2 - twice).mean(axis=1)) / np.bincount(groups)
        reach = np.maximum(quotient(lacking, lacking2), s)
        return cls(groups, lacking * reach, reach - s, by_vector - lacking[groups, None])

    def on(self, s: Array) -> tuple[Array, Array]:
        """Return what is to be added to both diagonals: shape (n, len(s))."""
        column = self.distance[:, None] + s
        once = self.size[:, None] / column
        return once[self.groups], (once / column)[self.groups]


def _solve(gram: DenseGram, s: float, resolvents: FactorResolvents, right: Array) -> Array | None:
    """Return (A + s)⁻¹·right by conjugate gradients, all columns in one product a step.

    The factor is the preconditioner. None if they have not converged after ``MAX_PROBE_STEPS``.
    """
    x = resolvents.inverse(s, right)
    residual = right - gram.product(x) - s * x
    smallest = PROBE_TOL * np.linalg.norm(right, axis=0)
    direction = np.zeros_like(x)
    before = np.ones(x.shape[1])
    for _ in range(MAX_PROBE_STEPS):
        if (np.linalg.norm(residual, axis=0) <= smallest).all():
            return x
        z = resolvents.inverse(s, residual)
        now = (residual * z).sum(axis=0)
        direction = z + direction * quotient(now, before)
        image = gram.product(direction) + s * direction
        step = quotient(now, (direction * image).sum(axis=0))
        x += step * direction
        residual -= step * image
        before = now
    return None


@dataclass(frozen=True)
class Refinement:
    """What is added to the gain of one λ, and how far that may be off."""

    gain: float
    error: float
    """Two standard errors of the random vectors, in units of the gain's own standard error."""


class ScoresOnFactor(Scores):
    """The leave-one-out gains of F-KMSE, and of constant filters, for equal masses."""

    problem: ProductProblem

    def __init__(
        self,
        problem: ProductProblem,
        candidates: Sequence[Candidates],
        bias_factor: Array,
        resolvents: FactorResolvents,
    ) -> None:
        super().__init__(problem, candidates)
        self.bias_factor, self.resolvents = bias_factor, resolvents
        self.converged_from = np.inf
        """The least λ for which products with A have converged."""
        self.correction = Correction.none(problem.n)
        self.unshrunk = problem.left_out.sums.unshrunk
        self._factor = float(bias_factor)

    def gains(self, place: int, grid: Array) -> Array:
        filter, factor = self.filters[place], self._factor
        if filter.constant:
            r, sums = 1 - filter.at_zero(grid), self.problem.left_out.sums
            return 0.0 - (2 * sums.linear * r + factor * sums.quadratic * r**2)
        chunks: list[Array] = []
        for part in (grid < self.converged_from, grid >= self.converged_from):
            numbers = np.flatnonzero(part)
            chunks += [numbers[some] for some in slices(0, len(numbers), PARAMETERS_PER_BLOCK)]
        found = share_between_cores(
            lambda some: self._terms(grid[some], factor)(*self._diagonals(grid[some])).mean(axis=0),
            chunks,
        )
        gains = np.empty(len(grid))
        gains[np.concatenate(chunks)] = np.concatenate(found)
        return gains

    def _diagonals(self, grid: Array) -> list[Array]:
        """Return the diagonals of A(A + s)⁻¹ and A(A + s)⁻² for each λ: shape (n, parameters)."""
        s = (1 - 1 / self.problem.n) * grid
        return list(map(np.add, self.resolvents.diagonals(s), self.correction.on(s)))

    def _terms(self, grid: Array, factor: float) -> Callable[[Array, Array], Array]:
        """Return what each λ gains at each row, as a function of both diagonals.

        With M = (Ĉ + s)⁻¹, leaving φ = k(x_i, ·) out makes it M_i = M + p MφφᵀM/(1 − a),
        a = p φᵀMφ (Sherman and Morrison). F-KMSE moves m_i = (μ̂ − pφ)/c by −h = −λc M_i m_i, which
        gains −2⟨φ − m_i, h⟩ − ‖h‖². All are of shape (n, parameters).
        """
        p, q = 1 / self.problem.n, self.problem.root_masses
        c = 1 - p
        if grid.min() >= self.converged_from:
            b, b2 = self.problem.lanczos.products(c * grid)
        else:
            b, b2 = self.resolvents.products(c * grid, q)
        whole, whole2 = q @ b, q @ b2  # μ̂ᵀMμ̂ and μ̂ᵀM²μ̂
        b, b2 = np.sqrt(p) * b, np.sqrt(p) * b2  # p φᵀMμ̂ and p φᵀM²μ̂, as a and a2 are of φ

        def terms(a: Array, a2: Array) -> Array:
            left = 1 - a
            moved = (b - p * a) / (c * p * left)  # φᵀM_i m_i
            linear = moved - (whole - 2 * b + p * a) / c**2 - p * left * moved**2
            quadratic = (whole2 - 2 * b2 + p * a2) / c**2
            quadratic += (2 * (b2 - p * a2) / c + p * a2 * moved) * moved
            return -grid * c * (2 * linear + factor * grid * c * quadratic)

        return terms

    def refinement(self, lam: float) -> Refinement:
        """Return what the rows' own corrections add to the gain of the λ they were estimated at.

        They are noisy. Their second order is taken from products of two random vectors' estimates,
        whose noise is independent.
        """
        grid, spread = np.array([lam]), self.correction.spread
        a, a2 = self._diagonals(grid)
        step, terms = SMALL_STEP * (1 - a), self._terms(grid, self._factor)
        above, at, below = terms(a + step, a2), terms(a, a2), terms(a - step, a2)
        slope, curvature = (above - below) / (2 * step), (above - 2 * at + below) / step**2
        others = (spread.sum(axis=1, keepdims=True) - spread) / (N_PROBES - 1)
        by_vector = (slope * spread + curvature / 2 * spread * others).mean(axis=0)
        error = 2 * by_vector.std(ddof=1) / np.sqrt(N_PROBES)
        unit = self._terms(grid, 1.0)(a, a2).std(ddof=1) / np.sqrt(self.problem.n)
        return Refinement(float(by_vector.mean()), float(quotient(error, unit)))

    def strengths(self, place: int, grid: Array) -> Array:
        filter, lanczos = self.filters[place], self.problem.lanczos
        if filter.constant:
            return np.abs(1 - filter.at_zero(grid))
        r = grid[:, None] / (lanczos.theta + grid[:, None])
        own = lanczos.theta * lanczos.first**2
        return np.sqrt(quotient(r**2 @ own, own.sum()))


@dataclass(frozen=True)
class FactorChoices:
    """Each filter's choice, and two standard errors of the correction of its gain.

    The latter is in standard errors of the gain.
    """

    choices: list[Choice]
    error: float


def can_choose_on_factor(rules: Sequence[Rule], filters: Sequence[Shrinker], n: int) -> bool:
    """Whether all filters are F-KMSE or constant, chosen by leave-one-out on many rows."""
    for rule, filter in zip(rules, filters, strict=True):
        if not isinstance(rule, LeaveOneOut) or repr(rule) != repr(rules[0]):
            return False
        if not (type(filter) is Tikhonov or filter.constant):
            return False
    return n >= MIN_ROWS and any(type(each) is Tikhonov for each in filters)


def choose_on_factor(
    problem: ProductProblem, rule: LeaveOneOut, filters: Sequence[Shrinker], factor: LowRankFactor
) -> FactorChoices | None:
    """Return each filter's choice with its exact weights, or None if the factor is too coarse."""
    bias_factor = bias_factor_on(rule.bias_factor, problem)
    if not (np.isfinite(bias_factor) and problem.largest_eigenvalue):
        return None
    candidates = [candidates_of(rule, filter, problem) for filter in filters]
    place = [type(each) for each in filters].index(Tikhonov)
    resolvents = FactorResolvents.from_factor(factor.L, problem.gram.diagonal())
    scores = ScoresOnFactor(problem, candidates, bias_factor, resolvents)
    choices = _converged_choices(rule, scores, candidates, place)
    if choices is None:
        return None
    rest = 1 - problem.mass_range[1]
    for _ in range(MAX_ROUNDS):
        before: Any = choices[place].parameter
        correction = Correction.at(rest * before, problem, resolvents)
        if correction is None:
            return None
        scores.correction = correction
        choices = _converged_choices(rule, scores, candidates, place)
        if choices is None:
            return None
        lam: Any = choices[place].parameter
        if abs(np.log(lam / before)) <= SAME_LAMBDA:
            break
    else:
        return None
    refinement = scores.refinement(lam)
    if refinement.error > MAX_SCORE_ERROR:
        return None
    choice = choices[place]
    choices[place] = _with_solution(problem, replace(choice, gains=choice.gains + refinement.gain))
    return FactorChoices(choices, refinement.error)


def _converged_choices(
    rule: LeaveOneOut, scores: ScoresOnFactor, candidates: Sequence[Candidates], place: int
) -> list[Choice] | None:
    """Return the choices once products with A have converged around the one at a place.

    None if they do not converge.
    """
    lanczos = scores.problem.lanczos
    for _ in range(MAX_ROUNDS):
        choices = rule.refined(scores, candidates)
        lam: Any = choices[place].parameter
        if lam >= scores.converged_from and lanczos.converge(lam):
            return choices
        if not lanczos.converge(lam / CONVERGED_BELOW, CONVERGED_FOR_SCORES):
            return None
        scores.converged_from = lam / CONVERGED_BELOW
    return None


def _with_solution(problem: ProductProblem, choice: Choice) -> Choice:
    """Return the choice with its weights on the sample."""
    if choice.filter.constant:
        return choice
    x = problem.lanczos.vector(problem.lanczos.shrunk(choice.parameter))
    return replace(choice, solution=problem.root_masses * x, residual=CONVERGED)
