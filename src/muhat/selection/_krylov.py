"""Every smooth filter and every parameter from one sequence of products.

Lanczos' bases, many samples at once.

In the Krylov space of A and a vector v, A is a small tridiagonal matrix T in an orthonormal basis Q
that starts with v/‖v‖, and f(A)v ≈ ‖v‖ Q f(T) e_1: exact for a polynomial f once the space has more
dimensions than its degree, and for any f once the space is exhausted. So products are the whole
price, and all filters share them. The sample without each of several folds takes part in them as a
column of its own, A_F = P_F A P_F/(1 − p_F) with P_F the rows outside F.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from muhat._arrays import Array, quotient, rounding, without_rounding
from muhat._tolerances import CONVERGED
from muhat._validation import check_semidefinite
from muhat.errors import MuhatError
from muhat.filters import Filter, Shrinker, TruncatedSVD
from muhat.gram import BlockProblem
from muhat.gram._in_memory import InMemoryProblem
from muhat.selection._base import Candidates, Choice, Scores, check_shrinkage

MAX_BASIS_BYTES = 600_000_000
"""Bytes that all bases together may take."""

STEPS_PER_CHUNK = 16
"""Steps for which memory is taken at once."""

FIRST_CHECK = 4
"""Steps before convergence is first checked."""

CHECK_EVERY = 8
"""Convergence is checked again after an eighth more steps.

The change since the last check is then no less than what is still missing, as long as the error
falls geometrically.
"""


@dataclass(eq=False)
class _Column:
    """The sample without the rows of a fold, and what its Krylov space says of it."""

    fold: Array
    rest: float
    """1 − p_F."""
    norm: float = 0.0
    """‖v‖ of the vector v that the space starts at."""
    exhausted: bool = False
    alpha: list[float] = field(default_factory=list)
    beta: list[float] = field(default_factory=list)
    """The diagonal of T, and what stands beside it."""
    towards: list[float] = field(default_factory=list)
    """Σ_{i∈F} p_i f(x_i) of each basis vector's function f."""
    ritz: _Ritz | None = None
    """The eigenpairs of T, once they were asked for."""
    mean_towards: float = 0.0
    mean_squared: float = 0.0
    """The same of the mean without F, and its squared norm; both only where there is a target."""
    target_values: Array = field(default_factory=lambda: np.zeros(1))
    target_squared: float = 0.0
    """D f*(X) and ‖f*‖² of the target without F."""

    @property
    def steps(self) -> int:
        return len(self.alpha)


@dataclass(frozen=True)
class _Ritz:
    """Eigenvalues of T, its eigenvectors in columns, and ‖v‖ times their first entries."""

    theta: Array
    W: Array
    first: Array


@dataclass(frozen=True)
class _Values:
    """r = 1 − s at a column's Ritz values and at zero, and what it takes from the mean.

    Each is for every parameter.
    """

    r: Array
    r_at_zero: Array
    moved: Array
    """The coordinates of q − x in the eigenvectors of T; with a target, of r(0) q short of that."""


class Krylov(Scores):
    """The Krylov spaces of a sample without each of several folds.

    All of them advance by one product a step.

    Without a target they start at q, and x = s_λ(A) q; with one they start at b = Aq − D f*(X), and
    x = s_λ(0) q + h_λ(A) b with h_λ(γ) = (s_λ(γ) − s_λ(0))/γ, so that β = Dx are the weights.

    Bases are kept orthogonal to rounding, so that n · (folds) · steps numbers are held, of which
    ``MAX_BASIS_BYTES`` limits the steps: at n = 100,000 with five folds and the whole sample, 125.
    An empty fold stands for the whole sample.
    """

    can_extend_grid = False

    def __init__(
        self,
        problem: InMemoryProblem,
        folds: Sequence[Array],
        candidates: Sequence[Candidates],
        bias_factor: Array | float = 1.0,
    ) -> None:
        super().__init__(problem, candidates)
        self.bias_factor = np.asarray(bias_factor)
        self.columns = [_Column(fold, float(1 - problem.masses[fold].sum())) for fold in folds]
        self.rest = np.array([column.rest for column in self.columns], problem.root_masses.dtype)[
            :, None
        ]
        self.unit = rounding(problem.root_masses)
        self.tolerance = max(CONVERGED, 64 * self.unit)
        width = len(folds) * problem.n * problem.root_masses.itemsize
        self.limit = int(max(2, min(MAX_BASIS_BYTES // width, problem.n)))
        self.chunks: list[Array] = []
        start = self._start()
        for column, norm in zip(self.columns, np.linalg.norm(start, axis=-1).tolist(), strict=True):
            column.norm = norm
            column.exhausted = not norm
        self.vectors = _scaled(start, [column.norm for column in self.columns])
        self.settle(candidates)
        self.unshrunk = np.sum(
            [self._unshrunk(column) for column in self.columns if len(column.fold)], axis=0
        )

    @property
    def steps(self) -> int:
        """How many products were taken."""
        return max(column.steps for column in self.columns)

    def settle(self, candidates: Sequence[Candidates]) -> list[Array]:
        """Advance until every solution has converged.

        Return an estimate of the relative error of each.
        """
        exact = [
            np.array([cast(Filter, each.filter).n_products(t) for t in each.grid.tolist()])
            for each in candidates
        ]
        last = max(float(each.max()) for each in exact)
        look = FIRST_CHECK
        if last <= self.limit:
            look = int(max(last, 1))
        while True:
            while self.steps < min(look, self.limit) and not self._exhausted:
                self._advance()
            by_column = zip(
                *(self._look(column, candidates) for column in self.columns), strict=True
            )
            errors = [
                np.where(products <= self.steps, self.unit, np.max(each, axis=0))
                for products, each in zip(exact, by_column, strict=True)
            ]
            converged = all((each <= self.tolerance).all() for each in errors)
            if converged or self._exhausted or self.steps >= self.limit:
                return errors
            look = self.steps + max(1, self.steps // CHECK_EVERY)

    def gains(self, place: int, grid: Array) -> Array:
        """Return what every parameter gains.

        Σ_F Σ_{i∈F} p_i (‖φ_i − m‖² − ‖φ_i − μ^(−F)‖²), m the mean without F.
        """
        candidates = Candidates(self.filters[place], grid)
        self.settle([candidates])
        return np.sum(
            [self._gain(column, candidates) for column in self.columns if len(column.fold)], axis=0
        )

    def strengths(self, place: int, grid: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖ of the whole sample, the last column, for every parameter."""
        column = self.columns[-1]
        ritz = self._ritz(column)
        values = self._values(ritz, Candidates(self.filters[place], grid))
        outside = 0.0
        if self.problem.target is None:
            gap = ritz.theta * ritz.first**2
        else:
            gap = quotient(ritz.first**2, ritz.theta)
            product = 2 * float(self.problem.root_masses @ self.problem.target_values)
            squared = column.mean_squared - product + self.problem.target_squared_norm  # ‖μ̂ − f*‖²
            outside = max(squared - float(gap.sum()), 0.0)
        moved = (values.r**2 * gap).sum(axis=-1) + values.r_at_zero**2 * outside
        whole = float(gap.sum()) + outside
        if whole:
            return np.sqrt(moved / whole)
        return np.zeros_like(moved)

    def solution(self, candidates: Candidates, index: int) -> Array:
        """Return x of the whole sample, the last column, for one parameter."""
        one = Candidates(candidates.filter, candidates.grid[[index]])
        ritz = self._ritz(self.columns[-1])
        y = self._solution(ritz, one)[0].astype(self.problem.root_masses.dtype)
        x = np.zeros_like(self.problem.root_masses)
        for place, chunk in enumerate(self.chunks):
            part = y[place * STEPS_PER_CHUNK : (place + 1) * STEPS_PER_CHUNK]
            x += part @ chunk[-1, : len(part)]
        if self.problem.target is not None:
            x += (1 - self._values(ritz, one).r_at_zero[0]).astype(
                x.dtype
            ) * self.problem.root_masses
        return x

    def with_solution(self, choice: Choice) -> Choice:
        """Return the choice with its weights and error.

        Warn of what might be better and has not converged.
        """
        candidates = Candidates(choice.filter, choice.grid)
        [error] = self.settle([candidates])
        doubtful = (len(choice.grid) == 1) | (
            choice.gains + error * np.abs(self.unshrunk) >= choice.gain
        )
        unsettled = error[doubtful & (error > self.tolerance)]
        if unsettled.size:
            spent = (
                f"{self.steps} products with A, all that {MAX_BASIS_BYTES // 10**6} MB of "
                "memory allow"
            )
            error_now = (
                f"its relative error is about {unsettled.max():.1g}, less with a larger λ or "
                "fewer iterations"
            )
            message = (
                f"{type(choice.rule).__name__}: {choice.filter!r} has not converged after "
                f"{spent}; {error_now}."
            )
            warnings.warn(message, UserWarning, stacklevel=4)
        solution = None
        if not choice.filter.constant:
            solution = self.problem.root_masses * self.solution(candidates, choice.index)
        return replace(choice, solution=solution, residual=float(error[choice.index]))

    @property
    def _exhausted(self) -> bool:
        return all(column.exhausted for column in self.columns)

    def _start(self) -> Array:
        """Return the vectors that the spaces start at, in rows."""
        q = self._outside(np.tile(self.problem.root_masses, (len(self.columns), 1))) / np.sqrt(
            self.rest
        )
        if self.problem.target is None:
            return q
        values = self.problem.gram.product(q.T).T
        for column, mean, row in zip(self.columns, q, values, strict=True):
            column.mean_towards = self._towards(column, row)
            column.mean_squared = float(mean @ row) / column.rest
            column.target_values, column.target_squared = self._target_without(column.fold)
        targets = np.stack([column.target_values for column in self.columns])
        return self._outside(values / self.rest - targets / np.sqrt(self.rest))

    def _target_without(self, fold: Array) -> tuple[Array, float]:
        """Return D f*(X) and ‖f*‖² of the target without its weights on a fold, if it has any."""
        problem, weights = self.problem, self.problem.target_weights
        if weights is None or not len(fold):
            return problem.target_values, problem.target_squared_norm
        tau = np.zeros(problem.n)
        tau[fold] = weights.tau[fold]
        kappa, taken = weights.kappa(tau.sum()), problem.gram.product(tau / np.sqrt(problem.masses))
        crossed = (tau / np.sqrt(problem.masses)) @ (taken - 2 * problem.target_values)
        values = kappa * (problem.target_values - taken)
        return values.astype(problem.dtype), float(
            kappa**2 * (problem.target_squared_norm + crossed)
        )

    def _outside(self, rows: Array) -> Array:
        """Set what is inside each column's fold to zero, in place."""
        for column, row in zip(self.columns, rows, strict=True):
            row[column.fold] = 0
        return rows

    def _towards(self, column: _Column, values: Array) -> float:
        """Return Σ_{i∈F} p_i f(x_i), given Ax.

        f is the function that has the weights Dx/√(1 − p_F).
        """
        fold = column.fold
        return float(self.problem.root_masses[fold] @ values[fold]) / column.rest**0.5

    def _advance(self) -> None:
        """Take one product, and the next vector of every basis that has one."""
        place = self.steps % STEPS_PER_CHUNK
        if place == 0:
            self.chunks.append(
                np.empty((len(self.columns), STEPS_PER_CHUNK, self.problem.n), self.vectors.dtype)
            )
        self.chunks[-1][:, place] = self.vectors
        values = self.problem.gram.product(self.vectors.T).T
        towards = [
            self._towards(column, row) for column, row in zip(self.columns, values, strict=True)
        ]
        values = self._outside(values / self.rest)
        alpha = np.einsum("fi,fi->f", self.vectors, values)
        for _ in range(2):  # once leaves rounding errors of what it takes away
            for number, chunk in enumerate(self.chunks):
                if number < len(self.chunks) - 1:
                    basis = chunk
                else:
                    basis = chunk[:, : place + 1]
                values -= ((basis @ values[..., None]).swapaxes(-1, -2) @ basis)[:, 0]
        norms = np.linalg.norm(values, axis=-1).tolist()
        nothing = self.unit * float(np.sum(self.problem.trace))
        for number, column in enumerate(self.columns):
            if column.exhausted:
                norms[number] = 0.0
                continue
            column.ritz = None
            column.alpha.append(float(alpha[number]))
            column.beta.append(norms[number])
            column.towards.append(towards[number])
            full = column.steps == self.problem.n - len(column.fold)
            if full or norms[number] <= nothing / column.rest:
                column.exhausted, norms[number] = True, 0.0
        self.vectors = _scaled(values, norms)

    def _ritz(self, column: _Column) -> _Ritz:
        """Return the eigenpairs of T, computed once a step."""
        if column.ritz is None:
            column.ritz = self._ritz_after(column, column.steps)
        return column.ritz

    def _ritz_after(self, column: _Column, steps: int) -> _Ritz:
        """Return the eigenpairs of T as it was then.

        A negative eigenvalue raises MuhatError, unless it is rounding.
        """
        if not steps:
            return _Ritz(np.zeros(1), np.ones((1, 1)), np.zeros(1))
        theta, W = _tridiagonal_eigh(column.alpha[:steps], column.beta[: steps - 1])
        check_semidefinite(theta.astype(self.vectors.dtype))
        return _Ritz(without_rounding(theta, steps, steps * self.unit), W, column.norm * W[0])

    def _with_zero(self, column: _Column) -> _Ritz | None:
        """Return the eigenpairs of T after one more step that makes zero, or nearly, an eigenvalue.

        This is the rule of Gauss and Radau.

        None where an eigenvalue of T is there already.
        """
        ritz = self._ritz(column)
        zero = 2 * column.steps * self.unit * ritz.theta[-1]
        if ritz.theta[0] <= 2 * zero:
            return None
        last = zero + column.beta[-1] ** 2 * float((ritz.W[-1] ** 2 / (ritz.theta - zero)).sum())
        theta, W = _tridiagonal_eigh([*column.alpha, last], column.beta)
        return _Ritz(np.maximum(theta, zero), W, column.norm * W[0])

    def _values(self, ritz: _Ritz, candidates: Candidates) -> _Values:
        filter = cast(Filter, candidates.filter)
        with np.errstate(all="ignore"):
            s = np.asarray(filter.path(ritz.theta, candidates.grid))
            at_zero = filter.at_zero(candidates.grid)
        check_shrinkage(candidates, ritz.theta, s, at_zero)
        r, r_at_zero = 1 - s, 1 - at_zero
        if self.problem.target is None:
            return _Values(r, r_at_zero, r * ritz.first)
        return _Values(r, r_at_zero, quotient(r - r_at_zero[:, None], ritz.theta) * ritz.first)

    def _solution(self, ritz: _Ritz, candidates: Candidates) -> Array:
        """Return the coordinates of every solution in the basis Q, shape (parameters, steps)."""
        moved = self._values(ritz, candidates).moved
        if self.problem.target is None:
            return (ritz.first - moved) @ ritz.W.T
        return -moved @ ritz.W.T

    def _look(self, column: _Column, candidates: Sequence[Candidates]) -> list[Array]:
        """Return how far each solution may be from where it settles, relative to its size.

        That is how far it moved over the last steps, or moves if the space finds an eigenvalue next
        to zero, whichever is further: a filter that is one wherever eigenvalues were found has not
        converged before the small ones are.
        """
        if column.exhausted:
            return [np.full(len(each.grid), self.unit) for each in candidates]
        others = [
            self._ritz_after(column, column.steps - max(1, column.steps // (CHECK_EVERY + 1)))
        ]
        with_zero = self._with_zero(column)
        if with_zero is not None:
            others.append(with_zero)
        errors = []
        for each in candidates:
            now = self._solution(self._ritz(column), each)
            moved = np.max(
                [_distances(now, self._solution(other, each)) for other in others], axis=0
            )
            errors.append(np.maximum(quotient(moved, np.linalg.norm(now, axis=-1)), self.unit))
        return errors

    def _unshrunk(self, column: _Column) -> float:
        """Return Σ_{i∈F} p_i ‖k(x_i, ·) − m‖²."""
        own = float(self.problem.gram.diagonal()[column.fold].sum())
        crossed, squared = column.mean_towards, column.mean_squared
        if self.problem.target is None:
            ritz = self._ritz(column)
            crossed = float(ritz.first @ (np.array(column.towards or [0.0]) @ ritz.W))
            squared = float(ritz.first**2 @ ritz.theta)
        return own - 2 * crossed + (1 - column.rest) * squared

    def _gain(self, column: _Column, candidates: Candidates) -> Array:
        """Return Σ_{i∈F} p_i (‖k(x_i, ·) − m‖² − ‖k(x_i, ·) − m + h‖²).

        h = r(Ĉ)(m − f*) is what the filter takes from m.
        """
        ritz, mass = self._ritz(column), 1 - column.rest
        values = self._values(ritz, candidates)
        factor = 1.0
        if np.isfinite(self.bias_factor):
            factor = float(self.bias_factor)
        crossed = values.moved @ (np.array(column.towards or [0.0]) @ ritz.W)  # Σ_F p_i h(x_i)
        if self.problem.target is None:
            own = ritz.theta * ritz.first**2
            return -2 * crossed + mass * ((2 - factor * values.r) * values.r) @ own
        r, root_rest = values.r_at_zero, column.rest**0.5
        fold, q, target = column.fold, self.problem.root_masses, column.target_values
        held_out = float(q[fold] @ target[fold])  # Σ_{i∈F} p_i f*(x_i)
        mean_target = (float(q @ target) - held_out) / column.rest  # ⟨m, f*⟩
        in_basis = values.moved @ (
            self._in_basis(column, target / root_rest) @ ritz.W
        )  # ⟨f*, h − r(0)(m − f*)⟩
        with_gap = values.moved @ ritz.first  # ⟨m − f*, h − r(0)(m − f*)⟩, by A q = b + D f*(X)
        gap_squared = column.mean_squared - 2 * mean_target + column.target_squared
        crossed += r * (column.mean_towards - held_out)
        mean = with_gap + in_basis + r * (column.mean_squared - mean_target)  # ⟨m, h⟩
        squared = values.moved**2 @ ritz.theta + r * (2 * with_gap + r * gap_squared)  # ‖h‖²
        return -2 * (crossed - mass * mean) - factor * mass * squared

    def _in_basis(self, column: _Column, vector: Array) -> Array:
        """Return Qᵀ·vector; a basis has nothing inside its fold."""
        number, parts = self.columns.index(column), np.zeros(max(column.steps, 1))
        for start, chunk in zip(range(0, column.steps, STEPS_PER_CHUNK), self.chunks, strict=False):
            some = slice(start, min(start + STEPS_PER_CHUNK, column.steps))
            parts[some] = chunk[number, : some.stop - start] @ vector
        return parts


class Leading:
    """The leading eigenpairs of A, with what a sample is in their terms.

    All that truncated SVD takes.
    """

    def __init__(self, problem: BlockProblem, count: int) -> None:
        self.problem = problem
        self.pairs = problem.gram.leading(count)
        gaps = problem.gram.product(self.pairs.U) - self.pairs.gamma * self.pairs.U
        self.residual = float(np.linalg.norm(gaps, axis=0).max()) / (self.pairs.largest or 1.0)
        b = problem.mean_values - problem.target_values
        self.projected = self.pairs.project(b)
        self.behind = float(np.sum((b - self.pairs.U @ self.projected) ** 2))
        mean_squared = float(
            problem.root_masses @ (problem.mean_values - 2 * problem.target_values)
        )
        self.distance = mean_squared + problem.target_squared_norm  # ‖μ̂ − f*‖²

    @classmethod
    def down_to(cls, problem: BlockProblem, threshold: float) -> Leading:
        """Return the leading eigenpairs down to a threshold."""
        count = min(8, problem.n)
        allowed = MAX_BASIS_BYTES // (
            3 * problem.n * problem.root_masses.itemsize
        )  # the search holds twice as many vectors
        while True:
            leading = cls(problem, count)
            if leading.pairs.gamma[0] < threshold or count == problem.n:
                return leading
            if count >= allowed:
                needed = f"λ must keep at most {allowed} components, as more do not fit in memory"
                raise MuhatError("TruncatedSVD", needed, f"λ = {threshold:.3g}", "use a larger λ")
            count = min(2 * count, problem.n, max(allowed, 1))

    def thresholds(self) -> Array:
        """Return the thresholds between neighbours, ascending.

        None below the last, of which no neighbour is known.
        """
        grid = TruncatedSVD.between(self.pairs.gamma, 1 - self.problem.mass_range[1])
        complete = len(self.pairs.gamma) == self.problem.n or self.pairs.gamma[0] == 0
        if complete or len(grid) == 1:
            return grid
        return grid[1:]

    def kept(self, filter: Shrinker, grid: Array) -> Array:
        """Return 1 where a filter keeps a component, else 0: shape (parameters, components).

        The components behind these pairs are dropped, which is right only for a filter that keeps
        what is above its parameter and drops the rest. Any other raises MuhatError.
        """
        gamma = self.pairs.gamma
        kept = ((gamma >= grid[:, None]) & (gamma > 0)).astype(np.float64)
        if isinstance(filter, Filter):
            own = np.where(gamma > 0, filter.path(gamma, grid), 0.0)
            if not np.array_equal(own, kept):
                needed = "needs = Access.LEADING is for filters that are 1 from λ on and 0 below"
                advice = "remove `needs` from the class, so that all eigenpairs are used"
                raise MuhatError(
                    type(filter).__name__, needed, "a filter with values other than these", advice
                )
        return kept

    def strengths(self, kept: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖: what is not kept, of all there is."""
        own = quotient(self.projected**2, self.pairs.gamma)
        behind = max(self.distance - float(own.sum()), 0.0)
        moved, whole = (1 - kept) @ own + behind, float(own.sum()) + behind
        if whole:
            return np.sqrt(moved / whole)
        return np.zeros(len(kept))

    def with_solution(self, choice: Choice, kept: Array) -> Choice:
        """Return the choice with its solution x.

        That is the projection of q on the components that are kept, towards the target.
        """
        towards = quotient(self.pairs.project(self.problem.target_values), self.pairs.gamma)
        x = self.pairs.U @ (kept * (self.pairs.coordinates - towards)).astype(self.problem.dtype)
        return replace(choice, solution=self.problem.root_masses * x, residual=self.residual)


def _tridiagonal_eigh(alpha: Sequence[float], beta: Sequence[float]) -> tuple[Array, Array]:
    """Return the eigenpairs of T.

    They come from divide and conquer, which keeps eigenvectors orthogonal to rounding.
    """
    return cast("tuple[Array, Array]", np.linalg.eigh(np.diag(alpha) + np.diag(beta, -1)))


def _distances(some: Array, others: Array) -> Array:
    """Return the distances between rows, the shorter ones continued with zeros."""
    width = max(some.shape[-1], others.shape[-1])
    padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[-1]))) for rows in (some, others)]
    return np.linalg.norm(padded[0] - padded[1], axis=-1)


def _scaled(rows: Array, norms: Sequence[float]) -> Array:
    """Return rows divided by their norms, zero where that is."""
    factors = quotient(np.ones(len(norms)), np.asarray(norms)).astype(rows.dtype)
    return rows * factors[:, None]
