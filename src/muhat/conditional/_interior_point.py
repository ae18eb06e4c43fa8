"""Minimise vᵀKv − 2bᵀv over 0 ≤ v_i ≤ most with Σ v_i = 1, from products with K.

An interior point method.

With multipliers θ of the sum and z, w of the bounds, the minimum is the end, τ → 0, of the path on
which

    2(Kv − b) − θ1 − z + w = 0,   v_i z_i = τ,   (most − v_i) w_i = τ.

Newton steps towards ever smaller τ (Nocedal and Wright 2006, section 16.6) solve (2K + D) x = r, D
= diag(z/v + w/(most − v)), by conjugate gradients. They are preconditioned by the same matrix with
FFᵀ, and what this lacks of K's diagonal, in place of K, F being a pivoted partial Cholesky factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from muhat._arrays import Array
from muhat._tolerances import MAX_MISSING_TRACE

MAX_FACTOR_RANK = 300
"""The most columns of the factor F."""

CG_TOL = 1e-2
"""The share of a step's size, in the norm of the preconditioner, by which it may be off."""

CENTERING = 0.1
"""The τ that a step aims at, next to the present one."""

STEP_TO_BOUNDARY, MIN_STEP = 0.99, 1e-10
"""The share of the way to the nearest bound that a step takes at most.

And what is lost in rounding, of a step.
"""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Weights of sum one, the objective, its distance bound, and the number of products.

    The bound says how far the objective is above its minimum at most.
    """

    v: Array
    value: float
    gap: float
    products: int


class QuadraticProgram:
    """The program, of K by its products with matrices, its columns by number, and its diagonal."""

    def __init__(
        self,
        product: Callable[[Array], Array],
        column: Callable[[int], Array],
        diagonal: Array,
        b: Array,
        most: float,
    ) -> None:
        self._product, self.b, self.products = product, b, 0
        self.most = min(most, 2.0)  # weights of sum one stay away from it
        self.F = _partial_cholesky(column, diagonal)
        self.lacking = np.maximum(diagonal - np.einsum("ij,ij->i", self.F, self.F), 0)

    def product(self, V: Array) -> Array:
        """Return KV, and count it."""
        self.products += 1
        return self._product(V)

    def solve(self, accepted: float, products: int) -> Minimum:
        """Return the minimum but for ``accepted``, or the best after ``products`` products."""
        n, b = len(self.b), self.b
        v = np.full(n, 1 / n)
        Kv = self.product(v[:, None])[:, 0]
        best = self._at(v, Kv)
        z = w = np.full(n, max(best.gap, 0.0))
        theta = 2 * float((Kv - b).mean())
        while best.gap > accepted and self.products + 2 <= products:
            slack = self.most - v
            tau = CENTERING * float(v @ z + slack @ w) / (2 * n)
            with np.errstate(
                over="ignore", invalid="ignore", divide="ignore"
            ):  # such a step is not taken
                right = tau / v - tau / slack - 2 * (Kv - b) + theta
                ones, x = self._solved(
                    z / v + w / slack, np.column_stack([np.ones(n), right]), products - 1
                ).T
                sideways = -float(x.sum() / ones.sum())
                dv = x + sideways * ones
                dv -= dv.mean()
                dz, dw = (tau - z * dv) / v - z, (tau + w * dv) / slack - w
            pairs = ((v, dv), (slack, -dv), (z, dz), (w, dw))
            length = min(
                1.0,
                *(
                    STEP_TO_BOUNDARY * float((-a[da < 0] / da[da < 0]).min(initial=2.0))
                    for a, da in pairs
                ),
            )
            if length < MIN_STEP or not np.isfinite(dv).all():
                break
            v, z, w, theta = (
                v + length * dv,
                z + length * dz,
                w + length * dw,
                theta + length * sideways,
            )
            Kv = self.product(v[:, None])[:, 0]
            best = min(best, self._at(v, Kv), key=lambda each: each.gap)
        return replace(best, products=self.products)

    def _at(self, v: Array, Kv: Array) -> Minimum:
        """Return what is known at v.

        It is no further above the minimum than ∇ᵀ(v − s), s the weights of least ∇ᵀs.
        """
        gradient = 2 * (Kv - self.b)
        order, full = np.argsort(gradient), min(int(1 / self.most), len(v) - 1)
        s = (
            self.most * gradient[order[:full]].sum()
            + (1 - full * self.most) * gradient[order[full]]
        )
        return Minimum(v, float(v @ (Kv - 2 * self.b)), float(gradient @ v - s), self.products)

    def _solved(self, D: Array, R: Array, products: int) -> Array:
        """Return X with (2K + D)X ≈ R, by conjugate gradients on all columns at once.

        NaN where rounding forbids it.
        """
        A = self.F / (D + 2 * self.lacking)[:, None]
        inner = self.F.T @ A + np.eye(self.F.shape[1]) / 2
        try:
            factor = cho_factor(inner)
        except (ValueError, np.linalg.LinAlgError):
            return np.full_like(R, np.nan)

        def precondition(R: Array) -> Array:  # Woodbury's formula
            return R / (D + 2 * self.lacking)[:, None] - A @ cho_solve(
                factor, A.T @ R, check_finite=False
            )

        def times(V: Array) -> Array:
            return 2 * self.product(V) + D[:, None] * V

        X = precondition(R)
        enough = CG_TOL**2 * (R * X).sum(axis=0)
        R = R - times(X)
        P = Z = precondition(R)
        squared = (R * Z).sum(axis=0)
        while (squared > enough).any() and self.products < products:
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
    left, F = diagonal.astype(np.float64), np.zeros((n, min(MAX_FACTOR_RANK, n)))
    enough = MAX_MISSING_TRACE * float(left.sum())
    for rank in range(F.shape[1]):
        pivot = int(np.argmax(left))
        if left.sum() <= enough or not left[pivot] > 0:
            return F[:, : max(rank, 1)]
        F[:, rank] = (column(pivot) - F[:, :rank] @ F[pivot, :rank]) / np.sqrt(left[pivot])
        left = np.maximum(left - F[:, rank] ** 2, 0)
        left[pivot] = 0
    return F
