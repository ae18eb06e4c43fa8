"""The weights of the candidates: ridge regression on their leave-one-out moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from muhat._arrays import Array
from muhat._tolerances import INNER_PRODUCT_TOL
from muhat.stacking._candidates import Candidate
from muhat.stacking._sample import Folds, RandomFourierMoments, StackSample
from muhat.stacking._span import Span

RIDGE = 0.2
"""Strength of the ridge penalty towards equal weights, in units of KME's risk."""

SUM_BONUS = 0.05
"""Added to every a_m, in units of KME's risk, if Σ w is free: noise in a makes it too small."""


@dataclass(frozen=True, eq=False)
class LeftOutMoments:
    """The inner products ⟨μ_m, μ_m'⟩ and ⟨k(x_i, ·), μ_m⟩ of estimates without each fold.

    One copy of a row that is there several times is left out at a time; its other copies stay.

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
    def from_waves(
        cls,
        candidates: Sequence[Candidate],
        sample: StackSample,
        folds: Folds,
        waves: RandomFourierMoments,
    ) -> LeftOutMoments:
        """Return the moments as means over random frequencies; the first estimate is KME."""
        left_out = np.stack(
            [wave for each in candidates for wave in each.left_out(sample, folds, waves)], axis=1
        )
        parts = np.concatenate([left_out.real, left_out.imag], axis=-1)  # (folds, M, 2 frequencies)
        rows = waves.averages(folds.labels, len(folds.shares)) / folds.shares[:, None]
        tested = np.concatenate([rows.real, rows.imag], axis=-1)
        scale = sample.kernel.bound / len(waves.frequencies)
        inner, cross = (
            scale * (parts @ parts.swapaxes(-2, -1)),
            scale * (parts @ tested[..., None])[..., 0],
        )
        return cls(inner, cross, folds.shares)

    @classmethod
    def from_refits(
        cls,
        candidates: Sequence[Candidate],
        sample: StackSample,
        folds: Folds,
        n_draws: int,
        rng: np.random.Generator,
    ) -> LeftOutMoments:
        """Return the moments in the RKHS, every candidate refitted without each fold."""

        def moments(left: StackSample, rows: Array) -> tuple[Array, Array]:
            span = Span.from_measures(
                left, [m for each in candidates for m in each.checked_fit(left)], n_draws, rng
            )
            return span.gram(), np.average(
                span.values(sample.X[rows]), axis=0, weights=sample.masses[rows]
            )

        inner, cross = map(
            np.stack, zip(*(moments(sample.without(rows), rows) for rows in folds), strict=True)
        )
        return cls(inner, cross, folds.shares)

    @cached_property
    def inner(self) -> Array:
        """B_mm', the mean of ⟨μ_m, μ_m'⟩."""
        return np.tensordot(self._fold_weights, self.inner_by_fold, 1)

    @cached_property
    def cross(self) -> Array:
        """a_m, the mean of ⟨k(x_i, ·), μ_m⟩."""
        return self._fold_weights @ self.cross_by_fold

    @property
    def _fold_weights(self) -> Array:
        """s(1 − s), normalised: with these, folds of unequal shares s leave the mean unchanged."""
        weights = self.shares
        if len(self.shares) > 1:
            weights = self.shares * (1 - self.shares)
        return weights / weights.sum()

    @property
    def risk(self) -> float:
        """R̂ = B_00 − a_0 of KME: its risk, as the sample tells it."""
        return float(self.inner[0, 0] - self.cross[0])

    def score(self, w: Array) -> float:
        """Return wᵀBw − 2aᵀw, the leave-one-out score of weights up to the mean of k(x_i, x_i)."""
        return float(w @ self.inner @ w - 2 * self.cross @ w)

    def gain(self, w: Array) -> float:
        """Return how much lower the score of weights is than KME's, as a share of KME's risk."""
        plain = np.eye(len(w))[0]
        if self.risk <= 0:
            return 0.0
        return (self.score(plain) - self.score(w)) / self.risk

    def damping(self, w: Array, bias_factor: float) -> float:
        """Return how far to go from the plain mean to the estimate of weights w, between 0 and 1.

        With h = μ_w − μ̂ it is the c that maximises 2c ⟨k(x_i, ·) − μ̂, h⟩ − κ c² ‖h‖², the
        left-out gain with the squared bias counted κ times, as ``KernelMean()`` counts it: what is
        chosen by left-out scores is correlated with their noise, the more so the fewer components
        share the variance.
        """
        h = w - np.eye(len(w))[0]
        gained, squared = float(self.cross @ h - self.inner[0] @ h), float(h @ self.inner @ h)
        if squared <= INNER_PRODUCT_TOL * float(np.abs(self.inner).max()):
            return 1.0  # no step at all
        return min(max(gained / (bias_factor * squared), 0.0), 1.0)

    def best_weights(self, masses: Array | None = None) -> Array:
        """Return w ≥ 0 that minimises wᵀBw − 2aᵀw + 0.2 R̂ ‖w − 1/M‖² with total mass one.

        Where candidates are indistinguishable, as when all rows are equal, the pull decides: equal
        weights.

        Parameters
        ----------
        masses : array of shape (M,), default=None
            The total mass of each candidate. If None, the total mass of the estimate is free: Σ w ≤
            1, and −0.1 R̂ Σ w is added.
        """
        count = len(self.cross)
        least = INNER_PRODUCT_TOL * float(np.abs(self.inner).max())
        pull = max(RIDGE * self.risk, least)
        gamma, V = np.linalg.eigh(self.inner + pull * np.eye(count))
        scale = np.sqrt(np.maximum(gamma, least))[:, None]
        bonus = 0.0
        if masses is None:
            bonus = SUM_BONUS * max(self.risk, 0)
        root, aim = scale * V.T, (V / scale.T).T @ (self.cross + bonus + pull / count)
        if masses is None:
            w = nnls(root, aim)[0]
            if w.sum() > 1:
                w = _least_squares_with_total(root, aim, np.ones(count))
        else:
            w = _least_squares_with_total(root, aim, masses)
        plain = np.eye(count)[0]
        if self.score(w) <= self.score(plain) + pull:
            return w
        return plain


def _least_squares_with_total(root: Array, aim: Array, masses: Array) -> Array:
    """Return w ≥ 0 with Σ c_m w_m = 1, for masses c, that minimises ‖root w − aim‖.

    With that total it is ‖Cw‖ that is to be least, C = root − aim cᵀ. So it is for w/cᵀw of the w
    that minimises ‖Cw‖² + s² (cᵀw − 1)², for any s: the least value among the multiples of w
    increases with ‖Cw‖/cᵀw.
    """
    s = np.abs(root).max()
    w = nnls(
        np.vstack([root - np.outer(aim, masses), s * masses]), np.append(np.zeros(len(root)), s)
    )[0]
    return w / (masses @ w)
