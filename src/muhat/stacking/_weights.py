"""The weights of the candidates: least squares on their leave-one-out moments, pulled towards equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from muhat._arrays import Array
from muhat.stacking._candidates import Candidate, wave_of
from muhat.stacking._measures import Measure
from muhat.stacking._sample import Folds, Sample, Waves
from muhat.stacking._span import Span

PULL = 0.4
"""How hard weights are pulled towards equal ones, in units of KME's risk."""

TOTAL = 0.05
"""What is added to every a_m, in units of KME's risk: the noise of a would make Σ w too small."""

ROUNDED = 1e-12
"""The share of the largest inner product that is rounding."""

FEWEST = 3
"""Folds from which on a standard error can be told."""


@dataclass(frozen=True, eq=False)
class LeftOutMoments:
    """What decides the weights: the inner products ⟨μ_m, μ_m'⟩ and ⟨k(x_i, ·), μ_m⟩ of estimates without a fold.

    Of a row that was drawn more than once a copy stays, whichever is left out. Which rows these are says nothing: of a
    sample with a share q of such draws, every moment is 1 − q times that without the fold plus q times that with it.

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
        sample: Sample,
        folds: Folds,
        waves: Waves,
        measures: Sequence[Measure] = (),
    ) -> LeftOutMoments:
        """Return the moments as means over random frequencies; the first candidate's first estimate is KME.

        The estimates from all rows, ``measures``, take part where some were drawn again.
        """
        left_out = np.stack([wave for each in candidates for wave in each.left_out(sample, folds, waves)], axis=1)
        parts = np.concatenate([left_out.real, left_out.imag], axis=-1)  # (folds, M, 2 frequencies)
        rows = waves.averages(folds.labels, len(folds.shares)) / folds.shares[:, None]
        tested = np.concatenate([rows.real, rows.imag], axis=-1)
        scale = sample.kernel.bound / len(waves.frequencies)
        inner, cross = scale * (parts @ parts.swapaxes(-2, -1)), scale * (parts @ tested[..., None])[..., 0]
        without = cls(inner, cross, folds.shares)
        if not sample.redrawn:
            return without
        whole = np.concatenate([wave_of(measure, waves, np.ones(sample.n, dtype=bool)) for measure in measures])
        whole = np.concatenate([whole.real, whole.imag], axis=-1)
        return without._mixed(sample.redrawn, scale * (whole @ whole.T), scale * (tested @ whole.T))

    @classmethod
    def from_refits(
        cls, candidates: Sequence[Candidate], sample: Sample, folds: Folds, n_draws: int, rng: np.random.Generator
    ) -> LeftOutMoments:
        """Return the moments from inner products in the RKHS, every candidate refitted without each fold."""

        def moments(left: Sample, rows: Array) -> tuple[Array, Array]:
            span = Span.from_measures(left, [m for each in candidates for m in each.checked_fit(left)], n_draws, rng)
            return span.gram(), np.average(span.values(sample.X[rows]), axis=0, weights=sample.masses[rows])

        inner, cross = map(np.stack, zip(*(moments(sample.without(rows), rows) for rows in folds), strict=True))
        without = cls(inner, cross, folds.shares)
        if not sample.redrawn:
            return without
        return without._mixed(
            sample.redrawn, *map(np.stack, zip(*(moments(sample, rows) for rows in folds), strict=True))
        )

    def _mixed(self, share: float, inner: Array, cross: Array) -> LeftOutMoments:
        """Return 1 − share times these moments plus share times others."""
        B, a = self.inner_by_fold, self.cross_by_fold
        return LeftOutMoments(B + share * (inner - B), a + share * (cross - a), self.shares)

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
        """s(1 − s), normalised, for shares s: with these, folds of unequal size leave the same mean as equal ones."""
        weights = self.shares * (1 - self.shares) if len(self.shares) > 1 else self.shares
        return weights / weights.sum()

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
        weights, count = self._fold_weights, len(self.shares)
        gain = float(weights @ differences)
        if count < FEWEST:
            return gain / self.risk, np.nan
        error = np.sqrt((weights**2 @ (differences - gain) ** 2) * count / (count - 1))
        return gain / self.risk, float(error) / self.risk

    def best_weights(self) -> Array:
        """Return w ≥ 0, Σ w ≤ 1, that minimises wᵀBw − 2aᵀw + 0.4 R̂ ‖w − 1/M‖² − 0.1 R̂ Σ w.

        Where candidates cannot be told apart, as when all rows are equal, the pull decides: equal weights.
        """
        count = len(self.cross)
        least = ROUNDED * float(np.abs(self.inner).max())
        pull = max(PULL * self.risk, least)
        gamma, V = np.linalg.eigh(self.inner + pull * np.eye(count))
        scale = np.sqrt(np.maximum(gamma, least))[:, None]
        root, aim = scale * V.T, (V / scale.T).T @ (self.cross + TOTAL * max(self.risk, 0) + pull / count)
        w = nnls(root, aim)[0]
        if w.sum() > 1:
            # With Σ w = 1, ‖Cw‖ is to be least, C = root − aim 1ᵀ. So it is for w/Σw of the w that minimises ‖Cw‖² +
            # s² (Σw − 1)², for any s: the least value among the multiples of w increases with ‖Cw‖/Σw.
            s = np.abs(root).max()
            w = nnls(np.vstack([root - aim[:, None], np.full(count, s)]), np.append(np.zeros(count), s))[0]
            w /= w.sum()
        plain = np.eye(count)[0]
        return w if self.score(w) <= self.score(plain) + pull else plain
