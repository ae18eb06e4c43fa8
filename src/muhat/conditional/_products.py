"""Conditional means by products with the Gram matrix alone, which is never held; filters are chosen by k-fold.

Lanczos' basis Q of the Krylov space of A_F = P_F A P_F/c and v = P_F D z/√c, P_F the rows outside the fold F and c
their mass, has g_λ(A_F) v ≈ ‖v‖ Q g_λ(T) e_1 for every filter and parameter, T = QᵀA_F Q. The products AQ have the rows
of F too, so that what is predicted there costs nothing more. All folds, the whole sample and all outputs advance
together.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from muhat._arrays import Array, rounding
from muhat._parts import Parts
from muhat.conditional._fits import ConditionalChoice, Fit, bounded, candidates_of, evenly_spaced
from muhat.filters import Filter
from muhat.gram import BlockGram
from muhat.kernels import Kernel
from muhat.selection import KFold, Rule
from muhat.selection._base import Candidates
from muhat.selection._krylov import MEMORY

LOOK = 16
"""Steps before the first look at the scores; there are twice as many before each further one."""

SETTLED = 1e-6
"""The relative change of a solution, over the last eighth of all steps, at which it has settled."""


@dataclass(eq=False)
class _Space:
    """The Krylov space of one output outside one fold; the empty fold is the whole sample."""

    fold: Array
    rest: float
    output: int
    norm: float
    basis: Array
    """Qᵀ, of shape (steps, n), with room for more."""
    products: Array
    """(AQ)ᵀ in the rows of the fold."""
    alpha: list[float]
    beta: list[float]

    def coordinates(self, candidates: Candidates, steps: int) -> Array:
        """Return ‖v‖ g_λ(T) e_1 for every parameter, of T after some steps: shape (parameters, steps)."""
        steps = min(steps, len(self.alpha))
        if not steps:
            return np.zeros((len(candidates.grid), 0))
        theta, W = np.linalg.eigh(np.diag(self.alpha[:steps]) + np.diag(self.beta[: steps - 1], -1))
        theta = np.maximum(theta, theta[-1] * rounding(theta))
        g = cast(Filter, candidates.filter).path(theta, candidates.grid) / theta
        return self.norm * (g * W[0]) @ W.T


@dataclass(eq=False)
class BlockFit(Fit):
    """A conditional mean whose Gram matrix is known by its products, with those without each fold."""

    kernel: Kernel
    X: Array
    choices: list[ConditionalChoice]
    mean: Array
    beta: Array
    """Of shape (n, columns): predictions are k(x, X) β beside the mean."""
    fold_means: Array
    fold_betas: Array
    """The same without each fold, of shape (folds, columns) and (folds, n, columns)."""
    fold_of: Array
    """The fold of each row."""
    residuals: Array
    row_masses: Array

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return len(self.X)

    @property
    def masses(self) -> Array:
        """The masses of the rows, with sum one."""
        return self.row_masses

    def calibrating_rows(self) -> tuple[Array | None, Array]:
        """Return x of rows in memory, and their numbers."""
        return evenly_spaced(self.X)

    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points."""
        return self.kernel.product(X, self.beta, self.X) + self.mean

    def left_out_values(self, X: Array) -> Array:
        """Return what the smoother made without each row's fold predicts at new points (CV+)."""
        betas = np.concatenate(list(self.fold_betas), axis=1)
        values = self.kernel.product(X, betas, self.X).reshape(len(X), len(self.fold_betas), -1)
        return np.moveaxis(values + self.fold_means, (2, 0, 1), (0, 1, 2))[..., self.fold_of]


class Products:
    """The Krylov spaces of a sample without each fold, of every output, all advancing by one product a step."""

    def __init__(
        self, gram: BlockGram, outputs: Array, folds: Sequence[Array], has_intercept: bool
    ) -> None:
        self.gram, self.outputs, self.folds = gram, outputs, [*folds, np.empty(0, int)]
        self.masses, self.n = gram.masses, len(outputs)
        self.limit = int(
            max(2, min(MEMORY // (8 * self.n * len(self.folds) * outputs.shape[1]), self.n))
        )
        self.spaces: list[_Space] = []
        self.means = np.zeros((len(self.folds), outputs.shape[1]))
        starts = []
        for number, fold in enumerate(self.folds):
            p = self.masses.copy()
            p[fold] = 0
            rest = float(p.sum())
            if has_intercept:
                self.means[number] = p @ outputs / rest
            for output, z in enumerate((outputs - self.means[number]).T):
                v = np.sqrt(p / rest) * z
                norm = float(np.linalg.norm(v))
                room = (np.zeros((0, self.n)), np.zeros((0, len(fold))))
                self.spaces.append(_Space(fold, rest, output, norm, *room, [], []))
                starts.append(v / norm if norm else v)
        self.vectors = np.stack(starts)

    @property
    def steps(self) -> int:
        """How many products were taken."""
        return max(len(space.alpha) for space in self.spaces)

    @cached_property
    def _everything(self) -> float:
        return float(self.gram.diagonal().sum())

    def advance(self, steps: int) -> bool:
        """Take some products more; return whether there was anything left to take."""
        first = self.steps
        for space in self.spaces:
            space.basis = np.concatenate(
                [space.basis[: len(space.alpha)], np.zeros((steps, self.n))]
            )
            space.products = np.concatenate(
                [space.products[: len(space.alpha)], np.zeros((steps, len(space.fold)))]
            )
        for _ in range(steps):
            if not self.vectors.any():
                break
            products = self.gram.product(self.vectors.T).T
            for number, (space, q, Aq) in enumerate(
                zip(self.spaces, self.vectors.copy(), products, strict=True)
            ):
                if q.any():
                    self.vectors[number] = self._next(space, q, Aq)
        return self.steps > first

    def _next(self, space: _Space, q: Array, Aq: Array) -> Array:
        """Keep a vector and its product, and return the next vector of the basis, zero if there is none."""
        place = len(space.alpha)
        space.basis[place], space.products[place] = q, Aq[space.fold]
        following = Aq / space.rest
        following[space.fold] = 0
        space.alpha.append(float(q @ following))
        basis = space.basis[: place + 1]
        for _ in range(2):  # once leaves rounding errors of what it takes away
            following = following - (basis @ following) @ basis
        norm = float(np.linalg.norm(following))
        space.beta.append(norm)
        is_last = (
            norm <= rounding(following) * self._everything / space.rest or place + 1 >= self.limit
        )
        return np.zeros_like(following) if is_last else following / norm

    def scores(self, candidates: Candidates, steps: int) -> Array:
        """Return Σ_F Σ_{i∈F} p_i ‖z_i − ẑ_i‖² for every parameter, from so many steps."""
        scores = np.zeros(len(candidates.grid))
        for number, space in enumerate(self.spaces):
            if len(space.fold):
                predicted = self._held_out(number, space.coordinates(candidates, steps))
                scores += (self.outputs[space.fold, space.output] - predicted) ** 2 @ self.masses[
                    space.fold
                ]
        return scores

    def _held_out(self, number: int, coordinates: Array) -> Array:
        """Return predictions in the rows of a space's fold: shape (parameters, rows)."""
        space = self.spaces[number]
        scale = np.sqrt(self.masses[space.fold] * space.rest)
        fold = number // self.outputs.shape[1]
        return (
            coordinates @ space.products[: coordinates.shape[1]] / scale
            + self.means[fold, space.output]
        )

    def change(self, candidates: Candidates, steps: int) -> float:
        """Return how far the solutions of one parameter were from now after so many steps, relative to their size."""
        changes = []
        for space in self.spaces:
            now, then = (
                space.coordinates(candidates, self.steps)[0],
                space.coordinates(candidates, steps)[0],
            )
            gap = np.linalg.norm(now - np.pad(then, (0, len(now) - len(then))))
            changes.append(float(gap / (np.linalg.norm(now) or 1.0)))
        return max(changes)

    def residuals(self, candidates: Candidates) -> Array:
        """Return the outputs minus what is predicted for them without their fold, for one parameter."""
        residuals = self.outputs.copy()
        for number, space in enumerate(self.spaces):
            if len(space.fold):
                predicted = self._held_out(number, space.coordinates(candidates, self.steps))
                residuals[space.fold, space.output] -= predicted[0]
        return residuals

    def betas(self, candidates: Candidates) -> Array:
        """Return β without each fold, the last being of the whole sample, for one parameter: (folds, n, columns)."""
        betas = np.empty((len(self.spaces), self.n))
        for beta, space in zip(betas, self.spaces, strict=True):
            y = space.coordinates(candidates, self.steps)[0]
            beta[:] = np.sqrt(self.masses / space.rest) * (y @ space.basis[: len(y)])
        return np.moveaxis(betas.reshape(len(self.folds), -1, self.n), 1, 2)


def fit_blocks(
    parts: Parts,
    kernel: Kernel,
    X: Array,
    masses: Array,
    outputs: Array,
    rules: Sequence[Rule],
    has_intercept: bool,
) -> BlockFit:
    """Fit by products with the Gram matrix; a filter whose parameter is given has folds for intervals only."""
    gram = BlockGram.from_sample(kernel, X, masses)
    k_fold = next(
        (rule for rule in rules if isinstance(rule, KFold)), KFold(min(KFold.n_splits, len(X)))
    )
    products = Products(gram, outputs, k_fold.folds(masses), has_intercept)
    filters = bounded(parts, kernel, float(kernel.diagonal(X).max()))
    largest = gram.leading(1, tolerance=1e-3).largest
    candidates = [
        candidates_of(largest, len(X), *each) for each in zip(rules, filters, strict=True)
    ]
    choices = _choices(products, rules, candidates)
    best = min(choices, key=lambda choice: choice.score) if len(choices) > 1 else choices[0]
    one = Candidates(best.filter, np.array([best.parameter]))
    betas, fold_of = products.betas(one), np.empty(len(X), int)
    for number, fold in enumerate(products.folds[:-1]):
        fold_of[fold] = number
    means, residuals = products.means, products.residuals(one)
    return BlockFit(
        kernel, X, choices, means[-1], betas[-1], means[:-1], betas[:-1], fold_of, residuals, masses
    )


def _choices(
    products: Products, rules: Sequence[Rule], candidates: Sequence[Candidates]
) -> list[ConditionalChoice]:
    """Take products until the best solution of each filter has settled, and return the choices."""
    change, scores = np.inf, [np.zeros(len(each.grid)) for each in candidates]
    while change > SETTLED and products.advance(max(products.steps, LOOK)):
        scores = [products.scores(each, products.steps) for each in candidates]
        best = [
            Candidates(each.filter, each.grid[[own.argmin()]])
            for each, own in zip(candidates, scores, strict=True)
        ]
        change = max(
            products.change(each, products.steps - max(1, products.steps // 8)) for each in best
        )
    if change > SETTLED and products.steps >= products.limit < products.n:
        message = (
            f"gram='blocks': solutions still change by {change:.1g} after {products.steps} products"
        )
        warnings.warn(
            f"{message}, all that memory allows; give a larger λ.", UserWarning, stacklevel=4
        )
    return [
        ConditionalChoice(
            rule,
            each.filter,
            each.grid,
            own if isinstance(rule, KFold) else np.full_like(own, np.nan),
        )
        for rule, each, own in zip(rules, candidates, scores, strict=True)
    ]
