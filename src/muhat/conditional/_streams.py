"""Conditional means of rows that are not in memory.

Sums of features in one pass, exact leave-one-out in the next.

Rows come as [x, y]. With p = 1/n, features z and the covariance Σ p z zᵀ = VΓVᵀ, a row of U is √p
Γ^(−1/2) Vᵀ z: with the sums over all rows, every batch can be left out row by row on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any, cast

import numpy as np

from muhat._arrays import Array, quotient, significant_eigenpairs
from muhat._parts import Parts
from muhat._validation import check_scale
from muhat.conditional._fits import (
    Coordinates,
    Fit,
    bounded,
    choices_of,
    evenly_spaced,
)
from muhat.data import ReservoirSample, SampleBatch, Source, TransformedSource
from muhat.errors import MuhatError
from muhat.filters import Filter
from muhat.gram import Approximation, FeatureMap, FeatureSums, Folds
from muhat.gram._feature_problem import checked_features
from muhat.kernels import Kernel
from muhat.selection import Choice, Rule
from muhat.selection._base import Candidates
from muhat.selection._poles import Poles
from muhat.selection._regression import RegressionBatch, RegressionTotals
from muhat.selection._smoother import LeaveOneOutSmoother


@dataclass(frozen=True, eq=False)
class JointSource:
    """Rows [x, y] in batches, outputs last, and a reservoir sample to learn a kernel from."""

    source: Source
    columns: int
    """Those of x."""
    drawn: ReservoirSample

    @classmethod
    def from_source(cls, source: Source, columns: int, parts: Parts, plan: Any) -> JointSource:
        """Draw rows in a first pass over all."""
        approximation = plan.gram
        assert isinstance(approximation, Approximation)
        drawn = source.total(
            partial(ReservoirSample.from_batch, size=approximation.rows_to_learn_from)
        )
        return cls(source, columns, drawn)

    def transformed(self, change: Callable[[Array], Array]) -> JointSource:
        """Return the rows with each batch, and what was drawn, transformed."""
        drawn = replace(self.drawn, rows=change(self.drawn.rows))
        return JointSource(TransformedSource(self.source, change), self.columns, drawn)

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.drawn.count

    @property
    def X(self) -> Array:
        """The x of the rows that were drawn."""
        return self.drawn.rows[:, : self.columns].astype(np.float64)

    @property
    def y(self) -> Array:
        """Their outputs."""
        return self.drawn.rows[:, self.columns :].astype(np.float64)

    def fit(
        self,
        parts: Parts,
        kernel: Kernel,
        approximation: Approximation,
        rules: Sequence[Rule],
        has_intercept: bool,
    ) -> StreamFit:
        """Sum up, choose each filter's parameter, and leave rows out: a pass over the rows each."""
        features, offset = approximation.resolve(kernel, self.X), self.y.mean(axis=0)
        sums = self.source.total(
            partial(
                _RegressionSums.from_batch, features=features, columns=self.columns, offset=offset
            )
        )
        if sums.n != self.n:
            needed, got = "every pass must read the same rows", f"{self.n} and then {sums.n}"
            raise MuhatError("batches", needed, got, "give a list, or muhat.open_batches(path)")
        check_scale(type(kernel).__name__, sums.largest_value, np.dtype(np.float64), self.X)
        basis = _Basis.from_sums(features, self.columns, sums, offset, has_intercept)
        nothing = basis.part(np.empty((0, self.drawn.rows.shape[1])))
        filters = bounded(parts, kernel, sums.largest_value)

        def scores(candidates: list[Candidates]) -> list[Array]:
            poles = LeaveOneOutSmoother(nothing).poles(candidates)
            if len(poles) < len(candidates):
                needed = "rows in batches need a smooth filter"
                advice = "choose a smoother one or a shorter grid"
                raise MuhatError("leave-one-out", needed, "a filter that is not smooth", advice)
            return self.source.total(partial(_scores, basis, candidates, poles)).values

        choices = choices_of(nothing, rules, filters, scores)
        fit = StreamFit(kernel, basis, choices)
        one = Candidates(fit.choice.filter, np.array([fit.choice.parameter]))
        poles = LeaveOneOutSmoother(nothing).poles([one])
        if poles:
            pairs = self.source.total(partial(_predictions, basis, one, poles)).joined()
            fit.left_out, fit.outputs = np.split(pairs, 2, axis=1)
            fit.drawn, fit.numbers = evenly_spaced(self.X, self.drawn.numbers)
        return fit


@dataclass(eq=False)
class StreamFit(Fit):
    """A regression on features of rows that are gone.

    Of each, its outputs and its left-out prediction are kept.
    """

    kernel: Kernel
    basis: _Basis
    choices: list[Choice]
    left_out: Array | None = None
    outputs: Array | None = None
    """None for a filter that is not smooth, whose rows are left out by refits only."""
    drawn: Array | None = None
    numbers: Array | None = None
    """x of rows that were drawn from all, and their numbers."""

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.basis.whole.n

    def predictions(self, X: Array) -> Array:
        """Return what is predicted at new points."""
        inverse = self.filter.inverse(self.basis.gamma, self.choice.parameter)
        whole = self.basis.whole
        return self.basis.coordinates(X) @ (inverse[:, None] * whole.projected[:, :-1]) + whole.mean

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        if self.left_out is None:
            raise MuhatError(
                self._not_held("leave-one-out of this filter needs a refit for each row")
            )
        return self.left_out

    @property
    def residuals(self) -> Array:  # type: ignore[override]
        """Each row's outputs minus that."""
        predictions = self.left_out_predictions()
        assert self.outputs is not None
        return self.outputs - predictions

    def calibrating_rows(self) -> tuple[Array | None, Array]:
        """Return x of rows that were drawn from all, and their numbers."""
        self.left_out_predictions()
        assert self.numbers is not None
        return self.drawn, self.numbers

    def left_out_values(self, X: Array) -> Array:
        """Return full-sample predictions.

        With this many rows, leaving one out changes next to nothing.
        """
        return self.predictions(X).T[..., None]

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        return 1 - float((self.residuals**2).mean(axis=0).sum() / self.basis.variance)


@dataclass(frozen=True, eq=False)
class _RegressionSums:
    """Sums over rows of features and outputs; those of two samples add up.

    Outputs are measured from an offset, near their mean, so that no digits are lost.
    """

    features: FeatureSums
    """Σ z and Σ z zᵀ, and the number of rows."""
    crossed: Array
    """Σ z yᵀ, of shape (r, n_outputs)."""
    outputs: Array
    """Σ y."""
    squares: Array
    """Σ y²."""
    largest_value: float
    """max ‖z‖², which stands for k(x, x)."""

    @classmethod
    def from_batch(
        cls, batch: SampleBatch, features: FeatureMap, columns: int, offset: Array
    ) -> _RegressionSums:
        """Sum up a batch of rows [x, y]."""
        rows = batch.X.astype(np.float64)
        x, y = rows[:, :columns], rows[:, columns:] - offset
        Z = checked_features(features, x)
        return cls(
            features=FeatureSums.from_features(SampleBatch(x, 0, None), Z, features, Folds()),
            crossed=Z.T @ y,
            outputs=y.sum(axis=0),
            squares=(y**2).sum(axis=0),
            largest_value=float((Z**2).sum(axis=1).max()),
        )

    def __add__(self, other: _RegressionSums) -> _RegressionSums:
        return _RegressionSums(
            self.features + other.features,
            self.crossed + other.crossed,
            self.outputs + other.outputs,
            self.squares + other.squares,
            max(self.largest_value, other.largest_value),
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.features.n


@dataclass(frozen=True, eq=False)
class _Basis:
    """The eigenbasis of the features' covariance, and what all rows sum up to in it."""

    features: FeatureMap
    columns: int
    gamma: Array
    V: Array
    has_intercept: bool
    whole: RegressionTotals
    variance: float
    """Of the outputs, summed over them."""

    @classmethod
    def from_sums(
        cls,
        features: FeatureMap,
        columns: int,
        sums: _RegressionSums,
        offset: Array,
        has_intercept: bool,
    ) -> _Basis:
        """Decompose the covariance."""
        n, mean = sums.n, sums.outputs / sums.n
        gamma, V = significant_eigenpairs(sums.features.covariance[0] / n)
        # Outputs are measured from the offset in the sums, and from their mean, or zero, here.
        moved = -offset
        if has_intercept:
            moved = mean
        ones = sums.features.mean[0][:, None]
        crossed = np.hstack([sums.crossed - ones * moved, ones])
        projected = quotient(V.T @ crossed / n, np.sqrt(gamma)[:, None])
        spread = float((sums.squares / n - 2 * moved * mean + moved**2).sum())
        whole = RegressionTotals(n, offset + moved, projected, spread, sums.largest_value)
        variance = float((sums.squares / n - mean**2).sum())
        return cls(features, columns, gamma, V, has_intercept, whole, variance)

    @property
    def coordinates(self) -> Coordinates:
        """x ↦ UᵀD k(X, x)."""
        return Coordinates(self.features, self.V * np.sqrt(self.gamma))

    def part(self, rows: Array) -> RegressionBatch:
        """Return some rows [x, y] in this basis."""
        n, rows = self.whole.n, rows.astype(np.float64)
        x = rows[:, : self.columns]
        U = np.empty((0, len(self.gamma)))
        if len(rows):
            U = quotient(self.features(x) @ self.V, np.sqrt(n * self.gamma))
        masses, outputs = np.full(max(len(rows), 1), 1 / n), rows[:, self.columns :]
        return RegressionBatch(self.gamma, U, masses, outputs, self.has_intercept, whole=self.whole)


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of several filters, which add up."""

    values: list[Array]

    def __add__(self, other: _Scores) -> _Scores:
        return _Scores(list(map(add, self.values, other.values)))


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Values of rows, by the number of rows before them."""

    values: dict[int, Array]

    def __add__(self, other: _Pieces) -> _Pieces:
        return _Pieces({**self.values, **other.values})

    def joined(self) -> Array:
        """Return those of all rows, in their order."""
        return np.concatenate([self.values[start] for start in sorted(self.values)])


def _scores(
    basis: _Basis, candidates: Sequence[Candidates], poles: dict[int, Poles], batch: SampleBatch
) -> _Scores:
    return _Scores(LeaveOneOutSmoother(basis.part(batch.X)).scores(candidates, poles))


def _predictions(
    basis: _Basis, candidates: Candidates, poles: dict[int, Poles], batch: SampleBatch
) -> _Pieces:
    """Return left-out predictions of a batch, with the outputs beside them."""
    part = basis.part(batch.X)
    smoother = LeaveOneOutSmoother(part)
    filter = cast(Filter, candidates.filter)
    found = smoother.predictions(filter, candidates.grid[0], poles)
    return _Pieces({batch.start: np.hstack([found, part.outputs])})
