"""The weights of the candidates: least squares on their leave-one-out moments, pulled towards equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """What decides the weights: B_mm' = mean ⟨μ_m, μ_m'⟩ and a_m = mean ⟨k(x_i, ·), μ_m⟩.

    The means are over the rows x_i, whose fold is left out of the μ_m, so that wᵀBw − 2aᵀw + mean k(x_i, x_i) is the
    leave-one-out score of Σ_m w_m μ_m.

    Attributes
    ----------
    inner : array of shape (M, M)
        B.
    cross : array of shape (M,)
        a.
    risk : float
        R̂ = B_00 − a_0 of KME: its risk, as estimated from the sample.
    """

    inner: Array
    cross: Array
    risk: float

    @classmethod
    def from_waves(cls, candidates: Sequence[Candidate], sample: Sample, folds: Folds, waves: Waves) -> LeftOutMoments:
        """Return the moments as means over random frequencies; the first candidate's first estimate is KME."""
        left_out = np.stack([wave for each in candidates for wave in each.left_out(sample, folds, waves)])
        rows = waves.averages(folds.labels, len(folds.shares))  # Σ m_i k(x_i, ·) over each fold
        scale = sample.kernel.bound / len(waves.frequencies)
        weighted = (left_out * np.sqrt(folds.shares)[:, None]).reshape(len(left_out), -1)
        inner = scale * (weighted.real @ weighted.real.T + weighted.imag @ weighted.imag.T)
        cross = scale * (left_out.reshape(len(left_out), -1) @ rows.conj().ravel()).real
        return cls(inner, cross, float(inner[0, 0] - cross[0]))

    @classmethod
    def from_refits(
        cls, candidates: Sequence[Candidate], sample: Sample, folds: Folds, n_draws: int, rng: np.random.Generator
    ) -> LeftOutMoments:
        """Return the moments from inner products in the RKHS, every candidate refitted without each fold."""
        count = sum(len(each.names(sample)) for each in candidates)
        inner, cross = np.zeros((count, count)), np.zeros(count)
        for rows, share in zip(folds, folds.shares, strict=True):
            left = sample.without(rows)
            span = Span.from_measures(left, [m for each in candidates for m in each.fit(left)], n_draws, rng)
            inner += share * span.gram()
            cross += sample.masses[rows] @ span.values(sample.X[rows])
        return cls(inner, cross, float(inner[0, 0] - cross[0]))

    def score(self, w: Array) -> float:
        """Return the leave-one-out score of weights, up to the mean of k(x_i, x_i)."""
        return float(w @ self.inner @ w - 2 * self.cross @ w)

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
