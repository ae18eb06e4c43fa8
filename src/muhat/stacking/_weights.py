"""The weights of the candidates: least squares on their leave-one-out moments, pulled towards equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from muhat._arrays import Array
from muhat.stacking._candidates import Candidate
from muhat.stacking._sample import Folds, Sample, Waves
from muhat.stacking._span import Span

PULL = 0.2
"""How hard weights are pulled towards equal ones, in units of KME's risk."""

HEAVY = 1e5
"""How much heavier than the rest the equation Σ w = 1 is, where it must hold."""


@dataclass(frozen=True, eq=False)
class LeftOutMoments:
    """What decides the weights: the inner products ⟨μ_m, μ_m'⟩ and ⟨k(x_i, ·), μ_m⟩ of estimates without a fold.

    Attributes
    ----------
    inner_by_fold : array of shape (folds, M, M)
        ⟨μ_m, μ_m'⟩ without each fold.
    cross_by_fold : array of shape (folds, M)
        The mean of ⟨k(x_i, ·), μ_m⟩ over the rows x_i of each fold, which the μ_m are without.
    shares : array of shape (folds,)
        The mass of each fold.
    """

    inner_by_fold: Array
    cross_by_fold: Array
    shares: Array

    @classmethod
    def from_waves(cls, candidates: Sequence[Candidate], sample: Sample, folds: Folds, waves: Waves) -> LeftOutMoments:
        """Return the moments as means over random frequencies; the first candidate's first estimate is KME."""
        left_out = np.stack([wave for each in candidates for wave in each.left_out(sample, folds, waves)], axis=1)
        parts = np.concatenate([left_out.real, left_out.imag], axis=-1)  # (folds, M, 2 frequencies)
        rows = waves.averages(folds.labels, len(folds.shares)) / folds.shares[:, None]
        scale = sample.kernel.bound / len(waves.frequencies)
        inner = scale * (parts @ parts.swapaxes(-2, -1))
        cross = scale * (parts @ np.concatenate([rows.real, rows.imag], axis=-1)[..., None])[..., 0]
        return cls(inner, cross, folds.shares)

    @classmethod
    def from_refits(
        cls, candidates: Sequence[Candidate], sample: Sample, folds: Folds, n_draws: int, rng: np.random.Generator
    ) -> LeftOutMoments:
        """Return the moments from inner products in the RKHS, every candidate refitted without each fold."""
        inner, cross = [], []
        for rows in folds:
            left = sample.without(rows)
            span = Span.from_measures(left, [m for each in candidates for m in each.fit(left)], n_draws, rng)
            inner.append(span.gram())
            cross.append(np.average(span.values(sample.X[rows]), axis=0, weights=sample.masses[rows]))
        return cls(np.stack(inner), np.stack(cross), folds.shares)

    @cached_property
    def inner(self) -> Array:
        """B_mm', the mean of ⟨μ_m, μ_m'⟩."""
        return np.tensordot(self.shares, self.inner_by_fold, 1)

    @cached_property
    def cross(self) -> Array:
        """a_m, the mean of ⟨k(x_i, ·), μ_m⟩."""
        return self.shares @ self.cross_by_fold

    @property
    def risk(self) -> float:
        """R̂ = B_00 − a_0 of KME: its risk, as the sample tells it."""
        return float(self.inner[0, 0] - self.cross[0])

    def score(self, w: Array) -> float:
        """Return wᵀBw − 2aᵀw, the leave-one-out score of weights up to the mean of k(x_i, x_i)."""
        return float(w @ self.inner @ w - 2 * self.cross @ w)

    def gain(self, w: Array) -> tuple[float, float]:
        """Return how much lower the score of weights is than KME's, as a share of its risk, and the standard error."""
        if not self.risk > 0:
            return 0.0, 0.0
        scores = np.einsum("fij,i,j->f", self.inner_by_fold, w, w) - 2 * self.cross_by_fold @ w
        differences = self.inner_by_fold[:, 0, 0] - 2 * self.cross_by_fold[:, 0] - scores
        gain, count = float(self.shares @ differences), len(self.shares)
        error = np.sqrt((self.shares**2 @ (differences - gain) ** 2) * count / max(count - 1, 1))
        return gain / self.risk, float(error) / self.risk

    def best_weights(self) -> Array:
        """Return w ≥ 0, Σ w ≤ 1, that minimises wᵀBw − 2aᵀw + 0.2 R̂ ‖w − 1/M‖².

        Where candidates cannot be told apart, as when all rows are equal, the pull decides: equal weights.
        """
        count = len(self.cross)
        pull = max(PULL * self.risk, np.finfo(float).eps ** 0.5 * float(np.abs(self.inner).max()))
        root = cholesky(self.inner + pull * np.eye(count))
        aim = solve_triangular(root, self.cross + pull / count, trans="T")
        w = nnls(root, aim)[0]
        if w.sum() <= 1:
            return w
        heavy = HEAVY * np.abs(root).max()
        w = nnls(np.vstack([root, np.full(count, heavy)]), np.append(aim, heavy))[0]
        return w / w.sum()
