"""``gram="auto"`` beyond what an eigendecomposition takes: as exact as the data deserve.

KME itself is off by its standard error √((mean k(x, x) − ‖μ̂‖²)/n). An approximation that is off by a tenth of that
adds half a percent to it, and nobody can tell.
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

ENOUGH = 0.1
"""The share of KME's standard error that an approximation may be off by."""

PROBED = 2000
"""Rows on which it is measured."""

MOST_PAIRS, MOST_WORK = 50_000**2, 10**6 * 500**2
"""Pairs of rows of which the kernel is computed for an exact mean, and rows times squared landmarks that are worked on
unasked: about half a minute and one."""

LOST, BEYOND = 0.005, 1.6
"""The share of KME's risk that shrinkage may lose by landmarks without notice, and how many times the rows that are
always decomposed are decomposed instead: 8000, for four times the work."""

LARGER = (1000, 2000, 4000)
"""Numbers of landmarks that are tried where 500 are too few."""


@dataclass(frozen=True)
class Accuracy:
    """How far the mean on landmarks is from the mean of all rows, and that from the truth, in the norm of the RKHS."""

    error: float
    standard_error: float
    lost: float = 0.0
    """What shrinking the part that landmarks miss could gain, as a share of KME's risk."""

    @property
    def loses_shrinkage(self) -> bool:
        """Whether what shrinkage could gain outside of the landmarks is worth a notice."""
        return self.lost > LOST

    @property
    def is_enough(self) -> bool:
        """Whether the error is below a tenth of the standard error."""
        return self.error <= ENOUGH * self.standard_error

    def __str__(self) -> str:
        if not self.error:
            return "exact"
        share = self.error / self.standard_error if self.standard_error else np.inf
        return f"off by {self.error:.2g}, {share:.2g} of KME's standard error {self.standard_error:.2g}"


@dataclass(frozen=True)
class Learnt:
    """How the Gram operator is held, and the features it is held by, before the first row is summed up."""

    plan: Plan
    accumulation: Accumulation


def as_exact_as_needed(
    plan: Plan, first: Accumulation, drawn: ReservoirSample, source: Source, shrinks: bool = True
) -> Learnt:
    """Return landmarks, as many as the error asks for and the work allows; or 500 of them and the exact mean.

    The exact mean takes rows that are in memory, or that were all drawn, and so few that all pairs can be paid for.
    Where neither is enough, the most landmarks that can be paid for are taken, with a warning. Where the mean is to be
    shrunk and landmarks miss the part in which that gains, up to 8000 rows are decomposed after all; of more, the
    reason says what is not seen.
    """
    features, n = first.features, drawn.count
    assert isinstance(features, NystromFeatures)
    weights = source.weights if isinstance(source, ArraySource) else None
    accuracy = accuracy_on(features, drawn, weights)
    rows = source.X if isinstance(source, ArraySource) else drawn.rows
    if shrinks and accuracy.loses_shrinkage:
        few = f"outside of {features.n_components} landmarks"
        why = f"shrinkage could gain about {100 * accuracy.lost:.2g} % of KME's risk {few}"
        if len(rows) == n <= BEYOND * _plan.DENSE_UP_TO and fits_in_memory(n, rows.itemsize):
            reason = f"{n} rows are many for an eigendecomposition, but {why}"
            return Learnt(Plan("dense", reason, access_of("dense")), first)
        plan = replace(plan, reason=f"{plan.reason}; {why}, which is not seen")
    if not accuracy.is_enough and len(rows) == n and n**2 <= MOST_PAIRS:
        masses = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        exact = ExactMeanFeatures(
            features.kernel, rows, masses, places_of(features.landmarks, rows)
        )
        alone = f"on {features.n_components} landmarks alone the mean would be {accuracy}"
        why = f"{plan.reason}; {alone}: it is computed exactly, from all {n**2:.2g} pairs, and shrunk on landmarks"
        return Learnt(replace(plan, reason=why), replace(first, features=exact, error=0.0))
    gram = plan.gram
    for m in LARGER:
        if accuracy.is_enough or n * m**2 > MOST_WORK or 4 * m > len(drawn.rows):
            break
        gram = Nystrom(m)
        features = gram.resolve(features.kernel, drawn.rows)
        accuracy = accuracy_on(features, drawn, weights)
    m = features.n_components
    why = f"on {m} landmarks, {float(n * m):.2g} kernel values in each pass, the mean is {accuracy}"
    if not accuracy.is_enough:
        advice = "gram=Nystrom(m) with more landmarks is nearer; gram='blocks' is exact, for rows in memory"
        warnings.warn(
            f"gram='auto': {why}, more than a tenth; {advice}.", UserWarning, stacklevel=5
        )
    plan = replace(plan, gram=gram, reason=f"{plan.reason}; {why}")
    return Learnt(plan, replace(first, features=features, error=accuracy.error))


def accuracy_on(
    features: NystromFeatures, drawn: ReservoirSample, weights: Array | None = None
) -> Accuracy:
    """Estimate ‖μ̂ − Pμ̂‖ for the mean of all n rows from some that are no landmarks.

    With the residual kernel R = k − ⟨z, z⟩, its square is on average E R(x, x′) + E R(x, x)/n: pairs of different rows
    give the first, and their spread how far that can be told; one standard deviation is added.
    """
    others = np.setdiff1d(np.arange(len(drawn.rows)), places_of(features.landmarks, drawn.rows))
    if len(others) < 2:
        return Accuracy(0.0, 0.0)
    others = others[:: -(-len(others) // PROBED)]
    rows = drawn.rows[others].astype(np.float64)
    p = np.ones(len(rows)) if weights is None else weights[drawn.numbers[others]].astype(np.float64)
    p /= p.sum()
    size = float(drawn.count) if weights is None else float(weights.sum() ** 2 / (weights**2).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        K, Z = features.kernel(rows), features(rows)
        R = K - Z @ Z.T
    if not np.isfinite(R).all():
        return Accuracy(0.0, 0.0)  # values that overflow are refused as rows are summed up
    own, residual = p @ np.diagonal(K), p @ np.maximum(np.diagonal(R), 0)
    np.fill_diagonal(K, 0)
    np.fill_diagonal(R, 0)
    pairs = 1 - p @ p
    deviation = np.sqrt(2 * (p**2 @ R**2 @ p**2)) / pairs
    signal = max(p @ R @ p / pairs, 0)
    squared = signal + deviation + residual / size
    variance = max(own - p @ K @ p / pairs, 0) / size
    # What one factor for all that is missed could gain: noise²/(noise + signal), of KME's risk.
    noise = max(residual - signal, 0) / size
    lost = noise**2 / ((noise + signal) * variance) if noise * variance > 0 else 0.0
    return Accuracy(float(np.sqrt(squared)), float(np.sqrt(variance)), float(lost))
