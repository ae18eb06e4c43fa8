"""From rows in memory, in batches or on a cluster to their components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._parts import Parts
from muhat._validation import check_range, check_scale
from muhat.data import ArraySource, ReservoirSample, SampleBatch, Source
from muhat.errors import MuhatError
from muhat.gram import Accumulation, Approximation, Folds
from muhat.gram._plan import Plan, plan_in_memory, plan_one_pass
from muhat.kernels import Kernel, Precomputed
from muhat.pca._center import Center
from muhat.pca._decomposition import (
    FeatureDirections,
    PrincipalComponents,
    decompose_points,
    decompose_sums,
)
from muhat.pca._left_out import LeftOutRows

MAX_ROWS_KEPT = 2000
"""Most rows that are left out, and that pre-images are learnt from: drawn from all rows."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows of the sample that are kept beside its components."""

    X: Array
    """The rows; of a precomputed kernel, their rows of the matrix."""
    masses: Array
    """Their shares of all masses."""


@dataclass(frozen=True, eq=False)
class FittedSample:
    """The components of a sample, and what they were computed from."""

    decomposition: PrincipalComponents
    kernel: Kernel
    plan: Plan
    n: int
    total_weight: float
    """Σ w_i: n without sample weights."""
    largest_value: float
    """max k(x_i, x_i)."""
    largest_mass: float
    kept: KeptRows
    all_masses: Array | None
    """The masses of all rows, where the Gram matrix was held."""
    most_components: int
    """The number of rows, or of features where these are fewer."""


def left_out_rows(
    decomposition: PrincipalComponents, kept: KeptRows, most: int, is_centred: bool
) -> LeftOutRows:
    """Return rows to be left out, drawn from those that are kept if these are too many."""
    kept = some_of(kept, most)
    projection = decomposition.directions.project(kept.X)
    norms = projection.squared_norms
    if not isinstance(decomposition.directions, FeatureDirections):
        norms = (projection.scores**2).sum(axis=1)  # rows are in the span of all rows
    return LeftOutRows(decomposition.gamma, projection.scores, norms, kept.masses, is_centred)


def some_of(kept: KeptRows, most: int) -> KeptRows:
    if len(kept.X) <= most:
        return kept
    some = np.sort(np.random.default_rng(0).choice(len(kept.X), most, replace=False))
    return KeptRows(kept.X[some], kept.masses[some])


def fit_rows(parts: Parts, center: Center, X: Array, weights: Array) -> FittedSample:
    """Return the components of rows in memory, or of a precomputed matrix.

    Parameters
    ----------
    X : array of shape (n, d), or (n, n) if the kernel is precomputed
    weights : array of shape (n,)
        A row of weight zero does not take part.
    """
    present = weights > 0
    n = int(present.sum())
    if not isinstance(parts.kernel, Precomputed):
        check_range(parts.who, X)
    plan = plan_in_memory(parts.gram, parts.kernel, n, X.itemsize)
    if isinstance(plan.gram, Approximation):
        own = weights[present]
        source = ArraySource(X[present], None if np.ptp(own) == 0 else own)
        return fit_source(parts, center, source, plan)
    kernel, points = parts.resolve_kernel(X, present)
    return decompose_rows(kernel, plan, center, X, points, weights)


def decompose_rows(
    kernel: Kernel, plan: Plan, center: Center, X: Array, points: Array, weights: Array
) -> FittedSample:
    """Return the components of rows from all eigenpairs of their Gram matrix."""
    present = weights > 0
    center.check(kernel, points.shape[1])
    own = kernel.diagonal(points[present])
    check_scale(type(kernel).__name__, float(own.max()), np.float64, points)
    scaled = weights / weights.max()
    masses = scaled / scaled.sum()
    return FittedSample(
        decomposition=decompose_points(kernel, points, masses, center),
        kernel=kernel,
        plan=plan,
        n=int(present.sum()),
        total_weight=float(weights.sum()),
        largest_value=float(own.max()),
        largest_mass=float(masses.max()),
        kept=KeptRows(X[present], masses[present]),
        all_masses=masses,
        most_components=int(present.sum()),
    )


def fit_source(
    parts: Parts, center: Center, source: Source, plan: Plan | None = None
) -> FittedSample:
    """Return the components of rows that can be read twice: to draw some, and to sum up.

    Without a plan, rows that turn out so few that all were drawn are held in memory instead.
    """
    approximation = (plan_one_pass(parts.gram) if plan is None else plan).gram
    assert isinstance(approximation, Approximation)
    size = max(approximation.rows_to_learn_from, MAX_ROWS_KEPT)
    drawn = source.total(partial(ReservoirSample.from_batch, size=size))
    check_range(parts.who, drawn.rows)
    if plan is None:
        plan = plan_in_memory(parts.gram, parts.kernel, drawn.count, drawn.rows.itemsize)
        if plan.gram == "dense":
            return fit_rows(parts, center, drawn.rows, np.ones(drawn.count))
    assert isinstance(plan.gram, Approximation)
    empty = Accumulation.from_rows(parts.kernel, plan.gram, Folds(), drawn.rows)
    accumulated = empty.add_source(source, drawn)
    weights = np.ones(len(drawn.rows))
    if isinstance(source, ArraySource) and source.weights is not None:
        weights = source.weights[drawn.numbers]
    return fit_sums(plan, center, accumulated, drawn.rows, weights)


def fit_sums(
    plan: Plan, center: Center, accumulated: Accumulation, rows: Array, weights: Array
) -> FittedSample:
    """Return the components from sums over all rows and a sample of them."""
    features, sums = accumulated.features, accumulated.sums
    assert sums is not None
    center.check(features.kernel, features.dimension)
    check_scale(type(features.kernel).__name__, sums.largest_value, np.float64, rows)
    masses = weights / sums.total_mass
    return FittedSample(
        decomposition=decompose_sums(features, sums, center),
        kernel=features.kernel,
        plan=plan,
        n=sums.n,
        total_weight=sums.total_mass,
        largest_value=sums.largest_value,
        largest_mass=sums.weight_range[1] / sums.total_mass,
        kept=some_of(KeptRows(rows, masses), MAX_ROWS_KEPT),
        all_masses=None,
        most_components=min(features.n_components, sums.n),
    )


@dataclass(frozen=True, eq=False)
class Stream:
    """The state of a fit to rows that are read once: sums of features, and some of the rows."""

    parts: Parts
    center: Center
    plan: Plan
    accumulated: Accumulation | None = None
    drawn: ReservoirSample | None = None
    """Rows with their weights in a last column."""

    def add(self, X: Array, weights: Array) -> Stream:
        """Return the stream with these rows too; the first ones choose kernel and features."""
        accumulated = self.accumulated
        start = 0
        if accumulated is None or self.drawn is None:
            check_range(self.parts.who, X)
            assert isinstance(self.plan.gram, Approximation)
            accumulated = Accumulation.from_rows(self.parts.kernel, self.plan.gram, Folds(), X)
        else:
            start = self.drawn.count
        X = X.astype(accumulated.features.dtype, copy=False)
        own: Array | None = weights
        if np.ptp(weights) == 0 and weights[0] == 1:
            own = None
        batch = SampleBatch(np.column_stack([X, weights]), start)
        drawn = ReservoirSample.from_batch(batch, size=MAX_ROWS_KEPT)
        if self.drawn is not None:
            drawn = self.drawn + drawn
        return replace(self, accumulated=accumulated.add_rows(X, own), drawn=drawn)

    def fitted(self) -> FittedSample:
        """Return the components of the rows so far."""
        assert self.accumulated is not None
        assert self.drawn is not None
        rows, weights = self.drawn.rows[:, :-1], self.drawn.rows[:, -1]
        rows = rows.astype(self.accumulated.features.dtype, copy=False)
        return fit_sums(self.plan, self.center, self.accumulated, rows, weights)


def check_gram(gram: Any) -> None:
    """Raise MuhatError for a matrix-free Gram operator."""
    if gram == "blocks":
        needed = "eigenpairs are needed: gram must be 'auto', 'dense', 'nystrom' or features"
        raise MuhatError("KernelPCA", needed, repr(gram), "use gram=Nystrom(1000) for many rows")
