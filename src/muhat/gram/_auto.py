"""``gram="auto"`` beyond what an eigendecomposition takes: refine the plan by its error.

The empirical mean is off by its standard error √((mean k(x, x) − ‖μ̂‖²)/n) anyway. The error of
an approximation is kept below a tenth of that, which adds half a percent to it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Array
from muhat.data import ArraySource, ReservoirSample, Source, places_of
from muhat.gram import _plan
from muhat.gram._exact_mean import ExactMeanFeatures
from muhat.gram._feature_problem import Accumulation
from muhat.gram._nystrom import Nystrom, NystromFeatures
from muhat.gram._plan import Plan, access_of, fits_in_memory

ERROR_SHARE = 0.1
"""The largest error of an approximation, as a share of the mean's standard error."""

N_PROBE_ROWS = 2000
"""The most rows on which that error is estimated."""

MAX_PAIRS_EXACT_MEAN = 50_000**2
"""The most pairs of rows of which ``auto`` computes the kernel for an exact mean: half a minute."""

MAX_LANDMARK_WORK = 10**6 * 500**2
"""The most work, rows times squared landmarks, that ``auto`` takes on: about a minute."""

MAX_LOST_GAIN = 0.005
"""The share of the mean's risk that shrinkage may lose by landmarks without notice."""

DENSE_EXTENSION = 1.6
"""Where landmarks lose more than that, 1.6 times as many rows are decomposed, for four times the
work: up to 8000."""

LANDMARK_COUNTS = (1000, 2000, 4000)
"""Numbers of landmarks to try where 500 are too few."""


@dataclass(frozen=True)
class Accuracy:
    """The error of the mean on landmarks, beside the mean's standard error, in the RKHS norm."""

    error: float
    standard_error: float
    lost_gain: float = 0.0
    """What shrinking the part that landmarks miss could gain, as a share of the mean's risk."""

    @property
    def loses_shrinkage(self) -> bool:
        """Whether shrinkage could gain noticeably outside of the landmarks."""
        return self.lost_gain > MAX_LOST_GAIN

    @property
    def is_sufficient(self) -> bool:
        """Whether the error is below a tenth of the standard error."""
        return self.error <= ERROR_SHARE * self.standard_error

    def __str__(self) -> str:
        if not self.error:
            return "exact"
        if self.standard_error:
            share = self.error / self.standard_error
        else:
            share = np.inf
        standard_error = f"{share:.2g} of KME's standard error {self.standard_error:.2g}"
        return f"off by {self.error:.2g} ({standard_error})"


@dataclass(frozen=True)
class FittedPlan:
    """How the Gram operator is held, with its features, before any row has been summed."""

    plan: Plan
    accumulation: Accumulation


def refine_plan(
    plan: Plan, first: Accumulation, drawn: ReservoirSample, source: Source, shrinks: bool = True
) -> FittedPlan:
    """Return the plan that keeps the error small enough, at a price that ``auto`` may pay.

    In this order: up to 8000 rows are decomposed where landmarks would hide a gain; 500 landmarks
    with the exact mean, where all pairs of the rows can be computed; more landmarks. If none is
    accurate enough, the largest affordable number of landmarks is taken, with a warning.
    """
    features = first.features
    assert isinstance(features, NystromFeatures)
    n = drawn.count
    rows, weights = drawn.rows, None
    if isinstance(source, ArraySource):
        rows, weights = source.X, source.weights
    has_all_rows = len(rows) == n
    accuracy = estimate_accuracy(features, drawn, weights)

    if shrinks and accuracy.loses_shrinkage:
        gain = f"shrinkage could gain about {100 * accuracy.lost_gain:.2g} % of KME's risk"
        why = f"{gain} outside of {features.n_components} landmarks"
        is_affordable = n <= DENSE_EXTENSION * _plan.MAX_ROWS_DENSE
        if has_all_rows and is_affordable and fits_in_memory(n, rows.itemsize):
            reason = f"{n} rows are many for an eigendecomposition, but {why}"
            return FittedPlan(Plan("dense", reason, access_of("dense")), first)
        plan = replace(plan, reason=f"{plan.reason}; {why}, which the landmarks miss")

    if not accuracy.is_sufficient and has_all_rows and n**2 <= MAX_PAIRS_EXACT_MEAN:
        return _with_exact_mean(plan, first, rows, weights, accuracy)
    return _with_more_landmarks(plan, first, drawn, weights, accuracy)


def _with_exact_mean(
    plan: Plan, first: Accumulation, rows: Array, weights: Array | None, accuracy: Accuracy
) -> FittedPlan:
    """Return the same landmarks for the shrinkage, and the mean from all pairs of rows."""
    features = first.features
    assert isinstance(features, NystromFeatures)
    n = len(rows)
    if weights is None:
        masses = np.full(n, 1 / n)
    else:
        masses = weights / weights.sum()
    places = places_of(features.landmarks, rows)
    exact = ExactMeanFeatures(features.kernel, rows, masses, places)
    reason = (
        f"{plan.reason}; on {features.n_components} landmarks alone, the mean would be {accuracy}, "
        f"so the mean is computed exactly, from all {n**2:.2g} pairs, and landmarks are used only "
        "for shrinkage"
    )
    return FittedPlan(replace(plan, reason=reason), replace(first, features=exact, error=0.0))


def _with_more_landmarks(
    plan: Plan,
    first: Accumulation,
    drawn: ReservoirSample,
    weights: Array | None,
    accuracy: Accuracy,
) -> FittedPlan:
    """Return as many landmarks as the error asks for and the work allows."""
    features = first.features
    assert isinstance(features, NystromFeatures)
    gram = plan.gram
    n = drawn.count
    for m in LANDMARK_COUNTS:
        is_affordable = n * m**2 <= MAX_LANDMARK_WORK and 4 * m <= len(drawn.rows)
        if accuracy.is_sufficient or not is_affordable:
            break
        gram = Nystrom(m)
        features = gram.resolve(features.kernel, drawn.rows)
        accuracy = estimate_accuracy(features, drawn, weights)
    m = features.n_components
    why = f"on {m} landmarks, {float(n * m):.2g} kernel values in each pass, the mean is {accuracy}"
    if not accuracy.is_sufficient:
        advice = (
            "Use gram=Nystrom(m) with more landmarks, or gram='blocks', which is exact, for rows "
            "in memory"
        )
        found = f"gram='auto': {why}. This error is more than a tenth of the standard error"
        warnings.warn(f"{found}. {advice}.", UserWarning, stacklevel=6)
    plan = replace(plan, gram=gram, reason=f"{plan.reason}; {why}")
    return FittedPlan(plan, replace(first, features=features, error=accuracy.error))


def estimate_accuracy(
    features: NystromFeatures, drawn: ReservoirSample, weights: Array | None = None
) -> Accuracy:
    """Estimate ‖μ̂ − Pμ̂‖ for the mean of all n rows from rows that are not landmarks.

    With the residual kernel R = k − ⟨z, z⟩, the expected square is E R(x, x′) + E R(x, x)/n. Pairs
    of different rows give the first term; one standard deviation of it is added.
    """
    others = np.setdiff1d(np.arange(len(drawn.rows)), places_of(features.landmarks, drawn.rows))
    if len(others) < 2:
        return Accuracy(0.0, 0.0)
    step = -(-len(others) // N_PROBE_ROWS)
    others = others[::step]
    rows = drawn.rows[others].astype(np.float64)
    if weights is None:
        p = np.full(len(rows), 1 / len(rows))
        size = float(drawn.count)
    else:
        p = weights[drawn.numbers[others]].astype(np.float64)
        p /= p.sum()
        size = float(weights.sum() ** 2 / (weights**2).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        K, Z = features.kernel(rows), features(rows)
        R = K - Z @ Z.T
    if not np.isfinite(R).all():
        return Accuracy(0.0, 0.0)  # values that overflow raise when the rows are summed
    mean_diagonal = p @ np.diagonal(K)
    residual = p @ np.maximum(np.diagonal(R), 0)
    np.fill_diagonal(K, 0)
    np.fill_diagonal(R, 0)
    pairs = 1 - p @ p
    deviation = np.sqrt(2 * (p**2 @ R**2 @ p**2)) / pairs
    signal = max(p @ R @ p / pairs, 0)
    squared = signal + deviation + residual / size
    variance = max(mean_diagonal - p @ K @ p / pairs, 0) / size
    # What one factor for all that landmarks miss could gain: noise²/(noise + signal).
    noise = max(residual - signal, 0) / size
    lost = 0.0
    if noise * variance > 0:
        lost = noise**2 / ((noise + signal) * variance)
    return Accuracy(float(np.sqrt(squared)), float(np.sqrt(variance)), float(lost))
