"""Conditional means of rows that are not in memory: sums of features in one pass, exact leave-one-out in the next.

Rows come as [x, y]. With p = 1/n, features z and the covariance Σ p z zᵀ = VΓVᵀ, a row of U is √p Γ^(−1/2) Vᵀ z: with
the sums over all rows, every batch can be left out row by row on its own.
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
from muhat._validation import check_finite, check_scale
from muhat.conditional._fits import (
    ConditionalChoice,
    Coordinates,
    Fit,
    bounded,
    choices_of,
    evenly_spaced,
)
from muhat.conditional._left_out import LeaveOneOutSmoother, RegressionBatch, RegressionTotals
from muhat.data import ReservoirSample, SampleBatch, Source, TransformedSource
from muhat.errors import MuhatError
from muhat.filters import Filter
from muhat.gram import Approximation, FeatureMap
from muhat.kernels import Kernel
from muhat.selection import Rule
from muhat.selection._base import Candidates
from muhat.selection._poles import Poles


@dataclass(frozen=True, eq=False)
class JointSource:
    """Rows [x, y] in batches, the last columns being the outputs, with some drawn from all to learn a kernel from."""

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
        """Sum up features and outputs, choose each filter's parameter in a second pass, leave rows out in a third."""
        features, offset = approximation.resolve(kernel, self.X), self.y.mean(axis=0)
        sums = self.source.total(
            partial(_Sums.from_batch, features=features, columns=self.columns, offset=offset)
        )
        if sums.n != self.n:
            needed, got = "the same rows must come in every pass", f"{self.n} and then {sums.n}"
            raise MuhatError("batches", needed, got, "give a list, or muhat.open_batches(path)")
        check_scale(type(kernel).__name__, sums.largest_value, np.dtype(np.float64), self.X)
        basis = _Basis.from_sums(features, self.columns, sums, offset, has_intercept)
        nothing = basis.part(np.empty((0, self.drawn.rows.shape[1])))
        filters = bounded(parts, kernel, sums.largest_value)

        def scores(candidates: list[Candidates]) -> list[Array]:
            poles = LeaveOneOutSmoother(nothing).poles(candidates)
            if len(poles) < len(candidates):
                needed, advice = (
                    "rows in batches take a smooth filter",
                    "choose a smoother one or a shorter grid",
                )
                raise MuhatError(
                    "leave-one-out", needed, "a filter that is no sum of resolvents", advice
                )
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
    """A regression on features of rows that are gone; of each, its outputs and its left-out prediction are kept."""

    kernel: Kernel
    basis: _Basis
    choices: list[ConditionalChoice]
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
        inverse = self.choice.filter.inverse(self.basis.gamma, self.choice.parameter)
        whole = self.basis.whole
        return self.basis.coordinates(X) @ (inverse[:, None] * whole.projected[:, :-1]) + whole.mean

    def left_out_predictions(self) -> Array:
        """Return what is predicted for each row by the smoother made without it."""
        if self.left_out is None:
            raise MuhatError(
                self._not_held("leave-one-out of this filter takes a refit for each row")
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
        """Return full-sample predictions: with this many rows, leaving one out changes next to nothing."""
        return self.predictions(X).T[..., None]

    def share_explained(self) -> float:
        """Return the share of the outputs' variance that is predicted without each row."""
        return 1 - float((self.residuals**2).mean(axis=0).sum() / self.basis.variance)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over rows, outputs measured from an offset; those of two samples add up."""

    n: int
    covariance: Array
    """Σ z zᵀ."""
    crossed: Array
    """Σ z [y, 1]ᵀ."""
    outputs: Array
    squares: Array
    largest_value: float

    @classmethod
    def from_batch(
        cls, batch: SampleBatch, features: FeatureMap, columns: int, offset: Array
    ) -> _Sums:
        """Sum up a batch."""
        rows = batch.X.astype(np.float64)
        y = rows[:, columns:] - offset
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            Z, own = features(rows[:, :columns]), features.kernel.diagonal(rows[:, :columns])
            check_finite((Z**2).sum() + own.sum(), features.kernel)
        crossed = Z.T @ np.column_stack([y, np.ones(len(y))])
        return cls(
            len(y),
            Z.T @ Z,
            crossed,
            y.sum(axis=0),
            (y**2).sum(axis=0),
            float((Z**2).sum(axis=1).max()),
        )

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.n + other.n,
            self.covariance + other.covariance,
            self.crossed + other.crossed,
            self.outputs + other.outputs,
            self.squares + other.squares,
            max(self.largest_value, other.largest_value),
        )


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
        cls, features: FeatureMap, columns: int, sums: _Sums, offset: Array, has_intercept: bool
    ) -> _Basis:
        """Decompose the covariance."""
        n = sums.n
        gamma, V = significant_eigenpairs(sums.covariance / n)
        moved = (
            sums.outputs / n if has_intercept else -offset
        )  # from the offset to what is measured from
        crossed = np.column_stack(
            [sums.crossed[:, :-1] - sums.crossed[:, -1:] * moved, sums.crossed[:, -1]]
        )
        spread = float((sums.squares / n - 2 * moved * sums.outputs / n + moved**2).sum())
        projected = quotient(V.T @ crossed / n, np.sqrt(gamma)[:, None])
        whole = RegressionTotals(n, offset + moved, projected, spread, sums.largest_value)
        variance = float((sums.squares / n - (sums.outputs / n) ** 2).sum())
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
