"""Minimise vᵀKv − 2bᵀv over 0 ≤ v_i ≤ most with Σ v_i = 1, from products with K: an interior point method.

With multipliers θ of the sum and z, w of the bounds, the minimum is the end, τ → 0, of the path on which

    2(Kv − b) − θ1 − z + w = 0,   v_i z_i = τ,   (most − v_i) w_i = τ.

Mehrotra's predictor and corrector (Nocedal and Wright 2006, chapters 14 and 16) follow it by Newton steps, which solve
(2K + D) x = r, D = diag(z/v + w/(most − v)), by conjugate gradients. They are preconditioned by the same matrix with
FFᵀ, and what this lacks of K's diagonal, in place of K, F being a pivoted partial Cholesky factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from muhat._arrays import Array

RANK, LACKING = 300, 1e-9
"""The most columns of F, and the share of K's trace that it may lack."""

EXACT = 1e-2
"""The share of a Newton step's size, in the norm of the preconditioner, by which it may be off."""

INSIDE = 0.995
"""The share of the way to the nearest bound that a step takes at most."""

SHORT = 1e-10
"""Steps below are lost in rounding: there is no progress any more."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Weights of sum one, the objective, a bound on how far above its minimum that is, and the products they took."""

    v: Array
    value: float
    gap: float
    products: int


@dataclass(frozen=True, eq=False)
class _Point:
    """A point inside all bounds."""

    v: Array
    Kv: Array
    slack: Array
    theta: float
    z: Array
    w: Array

    @property
    def tau(self) -> float:
        """The mean of v_i z_i and (most − v_i) w_i."""
        return float(self.v @ self.z + self.slack @ self.w) / (2 * len(self.v))


@dataclass(frozen=True, eq=False)
class _Step:
    """A direction from a point."""

    v: Array
    theta: float
    z: Array
    w: Array

    def length(self, at: _Point) -> float:
        """Return how much of it, at most all, stays inside."""
        pairs = ((at.v, self.v), (at.slack, -self.v), (at.z, self.z), (at.w, self.w))
        return min(1.0, *(INSIDE * float((-x[dx < 0] / dx[dx < 0]).min(initial=2.0)) for x, dx in pairs))

    def tau(self, at: _Point) -> float:
        """Return τ at the end of what stays inside."""
        length = self.length(at)
        below = (at.v + length * self.v) @ (at.z + length * self.z)
        above = (at.slack - length * self.v) @ (at.w + length * self.w)
        return float(below + above) / (2 * len(at.v))


class QuadraticProgram:
    """vᵀKv − 2bᵀv over 0 ≤ v_i ≤ most with Σ v_i = 1.

    Parameters
    ----------
    product, column : callable
        KV for V of shape (n, columns), and K's column i.
    diagonal, b : arrays of shape (n,)
        K's diagonal, and b.
    most : float
        Above 1/n; from 1 on it is no bound.
    """

    def __init__(
        self,
        product: Callable[[Array], Array],
        column: Callable[[int], Array],
        diagonal: Array,
        b: Array,
        most: float,
    ) -> None:
        self._product, self.b = product, b
        self.most = min(most, 2.0)  # weights of sum one stay away from it
        self.products = 0
        self.F = _partial_cholesky(column, diagonal)
        self.lacking = np.maximum(diagonal - np.einsum("ij,ij->i", self.F, self.F), 0)

    def product(self, V: Array) -> Array:
        """Return KV, and count it."""
        self.products += 1
        return self._product(V)

    def solve(self, accepted: float, products: int) -> Minimum:
        """Return the minimum but for ``accepted``, or what so many products give."""
        at = self._start()
        gap = self.gap(at)
        while gap > accepted and self.products + 3 <= products:
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    at = self._newton(at, products)
            except np.linalg.LinAlgError:  # rounding: this is as near as it gets
                break
            gap = self.gap(at)
        return Minimum(at.v, float(at.v @ (at.Kv - 2 * self.b)), gap, self.products)

    def gap(self, at: _Point) -> float:
        """Return ∇ᵀ(v − s), s the weights of least ∇ᵀs: the objective at v is no further above its minimum."""
        gradient, n = 2 * (at.Kv - self.b), len(at.v)
        order, full = np.argsort(gradient), min(int(1 / self.most), n - 1)
        s = self.most * gradient[order[:full]].sum() + (1 - full * self.most) * gradient[order[full]]
        return float(gradient @ at.v - s)

    def _start(self) -> _Point:
        n = len(self.b)
        v = np.full(n, 1 / n)
        at = _Point(v, self.product(v[:, None])[:, 0], self.most - v, 0.0, np.zeros(n), np.zeros(n))
        gradient, multipliers = 2 * (at.Kv - self.b), np.full(n, max(self.gap(at), 0.0))
        return _Point(v, at.Kv, at.slack, float(gradient.mean()), multipliers, multipliers)

    def _newton(self, at: _Point, products: int) -> _Point:
        """Return the point after a predicted and a corrected step."""
        n = len(at.v)
        D = at.z / at.v + at.w / at.slack
        rest = -(2 * (at.Kv - self.b) - at.theta - at.z + at.w)

        def right(below: Array | float, above: Array | float) -> Array:
            """Return the right side of a step towards v_i z_i = below_i, (most − v_i) w_i = above_i."""
            return rest + (below / at.v - at.z) - (above / at.slack - at.w)

        def step(x: Array, below: Array | float, above: Array | float) -> _Step:
            theta = -float(x.sum()) / float(ones.sum())
            v = x + theta * ones
            v = v - v.mean()
            return _Step(v, theta, (below - at.z * v) / at.v - at.z, (above + at.w * v) / at.slack - at.w)

        precondition = _woodbury(self.F, D + 2 * self.lacking)
        ones, x = self._solved(D, np.column_stack([np.ones(n), right(0.0, 0.0)]), precondition, products).T
        predicted = step(x, 0.0, 0.0)
        aim = at.tau * (max(predicted.tau(at), 0.0) / at.tau) ** 3
        below, above = aim - predicted.v * predicted.z, aim + predicted.v * predicted.w
        corrected = step(self._solved(D, right(below, above)[:, None], precondition, products)[:, 0], below, above)
        length = corrected.length(at)
        if length < SHORT or not np.isfinite(corrected.v).all():
            raise np.linalg.LinAlgError("no progress")
        v = at.v + length * corrected.v
        z, w, theta = at.z + length * corrected.z, at.w + length * corrected.w, at.theta + length * corrected.theta
        return _Point(v, self.product(v[:, None])[:, 0], self.most - v, theta, z, w)

    def _solved(self, D: Array, R: Array, precondition: Callable[[Array], Array], products: int) -> Array:
        """Return X with (2K + D)X ≈ R, by conjugate gradients on all columns at once."""

        def times(V: Array) -> Array:
            return 2 * self.product(V) + D[:, None] * V

        X = precondition(R)
        enough = EXACT**2 * (R * X).sum(axis=0)
        R = R - times(X)
        P = Z = precondition(R)
        squared = (R * Z).sum(axis=0)
        while (squared > enough).any() and self.products < products - 2:
            Q = times(P)
            curvature = (P * Q).sum(axis=0)
            moves = (squared > enough) & (curvature > 0)  # rounding may spoil what is small already
            if not moves.any():
                break
            length = np.divide(squared, curvature, out=np.zeros_like(squared), where=moves)
            X, R = X + length * P, R - length * Q
            Z = precondition(R)
            before, squared = squared, (R * Z).sum(axis=0)
            P = Z + P * np.divide(squared, before, out=np.zeros_like(squared), where=moves)
        return X


def _partial_cholesky(column: Callable[[int], Array], diagonal: Array) -> Array:
    """Return F with FFᵀ ≈ K, the column with the most left being eliminated next."""
    n = len(diagonal)
    left, F = diagonal.astype(np.float64), np.zeros((n, min(RANK, n)))
    enough = LACKING * float(left.sum())
    for rank in range(F.shape[1]):
        pivot = int(np.argmax(left))
        if left.sum() <= enough or not left[pivot] > 0:
            return F[:, : max(rank, 1)]
        F[:, rank] = (column(pivot) - F[:, :rank] @ F[pivot, :rank]) / np.sqrt(left[pivot])
        left = np.maximum(left - F[:, rank] ** 2, 0)
        left[pivot] = 0
    return F


def _woodbury(F: Array, D: Array) -> Callable[[Array], Array]:
    """Return R ↦ (2FFᵀ + D)⁻¹R."""
    if not (np.isfinite(D).all() and D.min() > 0):
        raise np.linalg.LinAlgError("no inverse")
    A = F / D[:, None]
    factor = cho_factor(F.T @ A + np.eye(F.shape[1]) / 2)
    return lambda R: R / D[:, None] - A @ cho_solve(factor, A.T @ R, check_finite=False)
