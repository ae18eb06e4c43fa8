"""Candidates, their weights, and what these gain: estimated on rows that neither has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, slices
from muhat.errors import MuhatError
from muhat.kernels import Mixture
from muhat.stacking._candidates import Candidate, wave_of_measure
from muhat.stacking._measures import Drawn, Measure
from muhat.stacking._sample import (
    N_FOLDS,
    ROWS_PER_CHUNK,
    Folds,
    RandomFourierMoments,
    StackSample,
    orthogonal_frequencies,
)
from muhat.stacking._span import Span
from muhat.stacking._weights import LeftOutMoments

MAX_ROWS_ONE_BY_ONE = 100
"""Rows up to which each is left out in turn; beyond, random folds are."""

N_DRAWS_WEIGHTS = 200
"""Points drawn from each candidate per fold, for kernels without random frequencies."""

DISTINCT_ROWS_RAMP = (12.0, 24.0)
"""Distinct rows at which trust in the candidates begins and is complete."""

DISTINCT_SHARE_RAMP = (0.8, 1.0)
"""The same for the share of distinct rows; the larger trust counts."""

N_OUTER_FOLDS = 5
"""Number of folds that the gain is estimated on."""

N_SCORING_FREQUENCIES = 1024
"""Random frequencies that the gain is estimated with."""

MIN_ROWS_FOR_ERROR = 3
"""Minimum number of rows for a standard error."""


@dataclass(frozen=True, eq=False)
class Stack:
    """The candidates' estimates from a sample, their left-out moments, and their weights."""

    names: list[str]
    measures: list[Measure]
    moments: LeftOutMoments
    weights: Array

    @classmethod
    def from_sample(
        cls,
        candidates: Sequence[Candidate],
        sample: StackSample,
        n_frequencies: int | None,
        unit_mass: bool,
        rng: np.random.Generator,
    ) -> Stack:
        """Return the candidates fitted to a sample and weighted; the first is the plain mean."""
        kept = candidates[:1]
        if sample.n > 1:
            kept = [each for each in candidates if each.names(sample)]
        names: list[str] = []
        measures: list[Measure] = []
        for each in kept:
            names.extend(each.names(sample))
            measures.extend(each.checked_fit(sample))
        moments = _moments(kept, sample, n_frequencies, rng)
        masses = None
        if unit_mass:
            masses = np.array([total_mass(measure) for measure in measures])
        w = moments.best_weights(masses)
        trust = trust_in_candidates(sample) * moments.damping(w, sample.bias_factor)
        w = trust * w
        w[0] += 1 - trust
        return cls(names, measures, moments, w)


def total_mass(measure: Measure) -> float:
    """Return the total mass of an estimate."""
    if isinstance(measure, Mixture | Drawn):
        return 1.0
    return float(measure.sum())


def trust_in_candidates(sample: StackSample) -> float:
    """Return the share of the weights that is kept; the rest goes to the plain mean.

    On data of a few values left-out scores are skewed and correlated with the choice that they
    decide: what they promise does not come true. It is continuous in the rows, with no threshold at
    which an estimate would jump.
    """
    return max(
        _ramp(sample.n_distinct, *DISTINCT_ROWS_RAMP),
        _ramp(sample.distinct_share, *DISTINCT_SHARE_RAMP),
    )


def _ramp(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _moments(
    candidates: Sequence[Candidate],
    sample: StackSample,
    n_frequencies: int | None,
    rng: np.random.Generator,
) -> LeftOutMoments:
    """Return the moments: from random frequencies, or else from refits."""
    if sample.n == 1:
        own = sample.kernel(sample.X)
        return LeftOutMoments(own[None], own, np.ones(1))
    known = sample.kernel.has_frequencies
    n_folds = None
    if sample.n > MAX_ROWS_ONE_BY_ONE or not known:
        n_folds = min(N_FOLDS, sample.n)
    folds = Folds.from_sample(sample, n_folds, rng)
    if n_frequencies is None or not known:
        return LeftOutMoments.from_refits(candidates, sample, folds, N_DRAWS_WEIGHTS, rng)
    with np.errstate(over="ignore"):
        frequencies = orthogonal_frequencies(sample.kernel, n_frequencies, sample.X.shape[1], rng)
        are_finite = np.isfinite(frequencies**2).all()
    if not are_finite:
        needed = "a larger bandwidth is needed: the squares of its frequencies must be finite"
        advice = "rescale X or take another bandwidth"
        raise MuhatError("StackedMean", needed, repr(sample.kernel), advice)
    with np.errstate(over="ignore", invalid="ignore"):
        moments = LeftOutMoments.from_waves(
            candidates, sample, folds, RandomFourierMoments(sample, frequencies)
        )
    if not np.isfinite(moments.inner).all():
        needed = "rows whose squares are finite, in units of the bandwidth, are needed"
        advice = "rescale X or take another bandwidth"
        raise MuhatError("StackedMean", needed, "larger ones", advice)
    return moments


@dataclass(frozen=True)
class HeldOutGain:
    """A gain over the plain mean, as a share of its risk, and its standard error."""

    gain: float
    error: float


def held_out_gain(
    candidates: Sequence[Candidate], sample: StackSample, n_frequencies: int | None, unit_mass: bool
) -> HeldOutGain:
    """Return the gain of the stacked mean, refitted without each of five folds and scored on it.

    That is the gain g' of s n rows, s = 4/5. The odds g/(1 − g) go with one over the number of rows
    where the bias does not depend on it: those of n rows are s times those of g'.
    """
    if sample.n < MIN_ROWS_FOR_ERROR:
        return HeldOutGain(0.0, np.nan)
    rng = np.random.default_rng(0)
    folds = Folds.from_sample(sample, min(N_OUTER_FOLDS, sample.n), rng)
    differences, risks = np.empty((2, sample.n))
    for rows in folds:
        masses = sample.masses[~rows] / sample.masses[~rows].sum()
        left = StackSample(sample.kernel, sample.X[~rows], masses, int((~rows).sum()))
        stack = Stack.from_sample(candidates, left, n_frequencies, unit_mass, rng)
        G, values = _scores(stack.measures, left, sample.X[rows], rng)
        w, plain = stack.weights, np.eye(len(G))[0]
        differences[rows] = plain @ G @ plain - w @ G @ w - 2 * values @ (plain - w)
        risks[rows] = G[0, 0] - values[:, 0]
    risk, share = float(sample.masses @ risks), 1 - 1 / len(folds.shares)
    if not risk > 0:
        return HeldOutGain(0.0, 0.0)
    gain = min(float(sample.masses @ differences) / risk, 1.0)
    error = np.sqrt(sample.masses**2 @ (differences - sample.masses @ differences) ** 2) / risk
    slope = 1 - (1 - share) * gain
    return HeldOutGain(share * gain / slope, float(error * share / slope**2))


def _scores(
    measures: Sequence[Measure], left: StackSample, X: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return inner products of estimates and their values: shapes (M, M) and (rows, M)."""
    if not left.kernel.has_frequencies:
        span = Span.from_measures(left, measures, N_DRAWS_WEIGHTS, rng)
        return span.gram(), span.values(X)
    waves = RandomFourierMoments(
        left, orthogonal_frequencies(left.kernel, N_SCORING_FREQUENCIES, X.shape[1], rng)
    )
    every = np.ones(left.n, dtype=bool)
    complex_waves = np.concatenate([wave_of_measure(measure, waves, every) for measure in measures])
    parts = np.concatenate([complex_waves.real, complex_waves.imag], axis=1)
    values = np.empty((len(X), len(parts)))
    for rows in slices(0, len(X), ROWS_PER_CHUNK):
        phases = (X[rows] - left.center) @ waves.frequencies.T
        values[rows] = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) @ parts.T
    scale = left.kernel.bound / N_SCORING_FREQUENCIES
    return scale * (parts @ parts.T), scale * values
