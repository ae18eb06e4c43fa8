"""The problem of a sample of any size, from sums of its features.

Rows are passed over again only to be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import InitVar, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from muhat._arrays import Array, quotient, significant_eigenpairs
from muhat._validation import check_finite
from muhat.data import ArraySource, ReservoirSample, SampleBatch, Source, folds_of
from muhat.embedding import Element
from muhat.errors import MuhatError
from muhat.gram._features import Approximation, FeatureMap
from muhat.gram._nystrom import NystromFeatures
from muhat.gram._problem import (
    Access,
    Components,
    ConstantFilterScores,
    EigenbasisRows,
    Eigenvalues,
    HeldOut,
    SpectralProblem,
    TargetWeights,
)
from muhat.kernels import Kernel

ERROR_ROWS = 2000
"""Rows on which the error of an approximation is measured."""


@dataclass(frozen=True)
class Folds:
    """How rows are split into folds.

    By a hash of each row, so that it does not matter in which batch it comes.
    """

    n_splits: int = 1
    random_state: int = 0


@dataclass(frozen=True)
class FeatureSums:
    """Sums over the rows of each fold, w_i being the weights and z_i the features.

    Those of two samples add up.
    """

    folds: Folds
    count: Array
    """The number of rows of each fold."""
    mass: Array
    """Σ w_i, of each fold."""
    squared_masses: Array
    """Σ w_i²."""
    mean: Array
    """Σ w_i z_i: shape (folds, r)."""
    covariance: Array
    """Σ w_i z_i z_iᵀ: shape (folds, r, r)."""
    own: float
    """Σ w_i k(x_i, x_i) over all rows, of the kernel itself."""
    weight_range: tuple[float, float]
    """The least and the largest w_i."""
    largest_value: float
    """max k(x_i, x_i)."""

    @classmethod
    def from_batch(cls, batch: SampleBatch, features: FeatureMap, folds: Folds) -> FeatureSums:
        """Sum up a batch; its features are in the type of the rows, all sums in float64."""
        return cls.from_features(batch, checked_features(features, batch.X), features, folds)

    @classmethod
    def from_source(cls, source: Source, features: FeatureMap, folds: Folds) -> FeatureSums:
        """Sum up all rows of a source."""
        if isinstance(features, NystromFeatures) and features.can_whiten_sums:
            sums = source.total(partial(cls._unwhitened, features=features, folds=folds))
            W = features.whitening
            return replace(sums, mean=sums.mean @ W, covariance=W.T @ sums.covariance @ W)
        return source.total(partial(cls.from_batch, features=features, folds=folds))

    @classmethod
    def _unwhitened(
        cls, batch: SampleBatch, features: NystromFeatures, folds: Folds
    ) -> FeatureSums:
        """Sum up k(L, x) and its products, so that the sums are whitened and not every row."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = features.kernel(batch.X, features.landmarks)
            sums = cls.from_features(batch, values, features, folds)
            squares = np.trace(sums.covariance, axis1=1, axis2=2)
            check_finite(sums.own + float(squares.sum()), features.kernel)
        return sums

    @classmethod
    def from_features(
        cls, batch: SampleBatch, Z: Array, features: FeatureMap, folds: Folds
    ) -> FeatureSums:
        """Sum up a batch whose features Z, of shape (rows, r), are known."""
        own = features.kernel.diagonal(batch.X)
        # With many rows filters differ in small eigenvalues only, which products in float32 do not
        # have.
        if batch.weights is None:
            weights = np.ones(len(Z))
            Z = Z.astype(np.float64, copy=False)
        else:
            weights = batch.weights.astype(np.float64)
            Z = Z * np.sqrt(weights)[:, None]
        members: list[Any] = [slice(None)]
        if folds.n_splits > 1:
            fold_of_row = folds_of(batch.X, folds.n_splits, folds.random_state)
            members = [fold_of_row == fold for fold in range(folds.n_splits)]
        return cls(
            folds,
            count=np.array([len(Z[each]) for each in members]),
            mass=np.array([weights[each].sum() for each in members]),
            squared_masses=np.array([(weights[each] ** 2).sum() for each in members]),
            mean=np.stack([np.sqrt(weights[each]) @ Z[each] for each in members]),
            covariance=np.stack([Z[each].T @ Z[each] for each in members]),
            own=float(weights @ own),
            weight_range=(float(weights.min()), float(weights.max())),
            largest_value=float(own.max()),
        )

    def __add__(self, other: FeatureSums) -> FeatureSums:
        added = ("count", "mass", "squared_masses", "mean", "covariance", "own")
        sums = {name: getattr(self, name) + getattr(other, name) for name in added}
        least, most = zip(self.weight_range, other.weight_range, strict=True)
        largest_value = max(self.largest_value, other.largest_value)
        return replace(
            self, **sums, weight_range=(min(least), max(most)), largest_value=largest_value
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @property
    def total_mass(self) -> float:
        """Σ w_i over all rows."""
        return float(self.mass.sum())


def checked_features(features: FeatureMap, X: Array) -> Array:
    """Return z(x_i) in rows; raise MuhatError if they, or k(x_i, x_i), are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        Z = features(X)
        check_finite((Z**2).sum() + features.kernel.diagonal(X).sum(), features.kernel)
    return Z


@dataclass(eq=False)
class FeatureProblem(SpectralProblem):
    """The problem of a sample under the kernel ⟨z(x), z(y)⟩ of a feature map.

    The eigenvalues of A for that kernel are those of the features' covariance Σ p_i z_i z_iᵀ.
    """

    features: FeatureMap
    sums: FeatureSums
    source: Source | None = None
    """The rows, to be passed over again; none where they are gone."""
    target: InitVar[Element | None] = None
    """f*; none is f* = 0."""
    target_weights: TargetWeights | None = None
    """Its weights on the rows, if it is made of those."""

    def __post_init__(self, target: Element | None) -> None:
        sums, mass = self.sums, self.sums.total_mass
        if self.source is None:
            self.access: Access = Access.SPECTRUM
        else:
            self.access = Access.SPECTRUM | Access.ROWS
        self.n: int = sums.n
        self.dtype: np.dtype[Any] = self.features.dtype
        self.largest_value: float = sums.largest_value
        self.rank: int = min(self.features.n_components, self.n)
        self.mass_range: tuple[float, float] = (
            sums.weight_range[0] / mass,
            sums.weight_range[1] / mass,
        )
        self.mean_weights: Array = sums.mean.sum(axis=0) / mass
        gamma, self.V = significant_eigenpairs(sums.covariance.sum(axis=0) / mass)
        mean = self.V.T @ self.mean_weights
        effective_size = mass**2 / float(sums.squared_masses.sum())
        self.spectrum: Eigenvalues = Eigenvalues(
            gamma, quotient(mean, np.sqrt(gamma)), effective_size
        )
        self.trace: Array = self.spectrum.trace
        self.has_target: bool = target is not None
        self.target_squared_norm: float = 0.0
        self.spread: Array = self.trace - self.spectrum.squared_norm
        inside = np.zeros_like(self.mean_weights)
        if target is not None:
            inside = self.features.coordinates(target)
            self.target_squared_norm = float(inside @ inside) + self.features.outside(target)
        self.components: Components = Components(
            gamma, mean, self.V.T @ inside, np.asarray(effective_size)
        )

    @cached_property
    def left_out(self) -> ConstantFilterScores:  # type: ignore[override]
        """What is left without each point, summed over all.

        Of rows that are gone, as if their masses were equal.
        """
        least, largest = self.mass_range
        if self.source is not None and (least < largest or self.target_weights is not None):
            return ConstantFilterScores(*self.sum_over_rows(_left_out))
        update = EigenbasisRows(np.ones(1), np.array([1 / self.spectrum.effective_size])).update
        mean, target, _ = self.norms
        return ConstantFilterScores.from_sums(
            update, np.ones(1), self.trace[None], mean, target, self.norms
        )

    @property
    def fold_sums(self) -> HeldOut:  # type: ignore[override]
        """The folds that rows were split into as they were summed up."""
        sums, V = self.sums, self.V
        filled = sums.count > 0
        if filled.sum() < 2:
            got, advice = f"all {self.n} in one", "fix the parameter with selection=Fixed(...)"
            raise MuhatError("KFold", "rows in at least two folds are needed", got, advice)
        covariance = V.T @ (sums.covariance[filled] / sums.total_mass) @ V
        return HeldOut(
            mass=sums.mass[filled] / sums.total_mass,
            squared_masses=sums.squared_masses[filled] / sums.total_mass**2,
            own=np.trace(covariance, axis1=1, axis2=2).sum(),
            mean=(sums.mean[filled] / sums.total_mass) @ V,
            covariance=covariance,
        )

    def rows(self, batch: SampleBatch) -> EigenbasisRows:
        """Return a batch of the sample in the eigenbasis."""
        if batch.weights is None:
            weights = np.ones(len(batch.X))
        else:
            weights = batch.weights
        masses = weights / self.sums.total_mass
        U = self._rotated(batch.X).astype(np.float64, copy=False)
        if batch.weights is not None:
            U *= np.sqrt(weights)[:, None]
        target, numbers = self.target_weights, slice(batch.start, batch.start + len(batch.X))
        return EigenbasisRows(U, masses, None if target is None else target[numbers])

    @cached_property
    def _rotated(self) -> Callable[[Array], Array]:
        """x ↦ Γ^(−1/2) Vᵀz(x)/√(Σ w_i): the row of the eigenvectors of a point of weight one."""
        root = np.sqrt(self.sums.total_mass * self.spectrum.gamma)
        return self.features.rotated(quotient(self.V, root))

    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        assert self.source is not None, "rules that look at rows are not asked where rows are gone"
        without_source = copy(self)
        without_source.source = None
        return list(self.source.total(partial(_work_on, without_source, work, arguments)))

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        shrunk = s * self.components.mean - (s - s_at_zero) * self.components.target
        return self.V @ shrunk


class _Parts(list[Array]):
    """Arrays that are added place by place."""

    def __add__(self, other: list[Array]) -> _Parts:  # type: ignore[override]
        return _Parts(mine + its for mine, its in zip(self, other, strict=True))


def _work_on(
    problem: FeatureProblem, work: Callable[..., list[Array]], arguments: Any, batch: SampleBatch
) -> _Parts:
    return _Parts(work(problem, problem.rows(batch), *arguments))


def _left_out(problem: FeatureProblem, rows: EigenbasisRows) -> list[Array]:
    left_out = problem.left_out_of(rows)
    return [
        each.sum(keepdims=True) for each in (left_out.unshrunk, left_out.linear, left_out.quadratic)
    ]


@dataclass(frozen=True)
class Accumulation:
    """What is kept of the rows so far; two with the same features and folds add up."""

    features: FeatureMap
    folds: Folds
    error: float = 0.0
    """What the features' mean misses on some rows."""
    sums: FeatureSums | None = None

    @classmethod
    def from_rows(
        cls, kernel: Kernel, approximation: Approximation, folds: Folds, rows: Array
    ) -> Accumulation:
        """Return an accumulation without rows.

        Kernel and features are learnt from these, and an error measured.
        """
        features = approximation.resolve(kernel.resolve(rows), rows)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # values that overflow are refused as rows are summed up
            return cls(features, folds, features.error(rows[:: -(-len(rows) // ERROR_ROWS)]))

    def add_rows(self, X: Array, weights: Array | None = None) -> Accumulation:
        """Return the accumulation of these rows too."""
        return self.add_source(ArraySource(X, weights))

    def add_source(self, source: Source, drawn: ReservoirSample | None = None) -> Accumulation:
        """Return the accumulation of a source's rows too, in one pass over them.

        As many as were drawn from before.
        """
        sums = FeatureSums.from_source(source, self.features, self.folds)
        if drawn is not None and drawn.count != sums.n:
            needed = "every pass must read the same rows"
            got = f"{drawn.count} rows and then {sums.n}"
            advice = "pass a list, or an iterator if the rows can be read only once"
            raise MuhatError("batches", needed, got, advice)
        return replace(self, sums=sums if self.sums is None else self.sums + sums)

    def problem(
        self, source: Source | None, target: Element | None, weights: TargetWeights | None = None
    ) -> FeatureProblem:
        """Return the problem of the rows, with their source where they can be passed over again."""
        assert self.sums is not None, "rows must have been summed"
        return FeatureProblem(self.features, self.sums, source, target, weights)

    def __add__(self, other: Accumulation) -> Accumulation:
        if self.features.dtype != other.features.dtype:
            got = f"{self.features.dtype} and {other.features.dtype}"
            needed = "both estimators must be fitted to rows of the same type"
            raise MuhatError("KernelMean.merge", needed, got)
        if self.features != other.features:
            needed = "both estimators must have the same kernel and features"
            advice = "give both the same bandwidth as a number, and the same landmarks as an array"
            raise MuhatError("KernelMean.merge", needed, "others", advice)
        if self.folds != other.folds:
            got = f"{self.folds!r} and {other.folds!r}"
            raise MuhatError("KernelMean.merge", "both estimators must have the same folds", got)
        if self.sums is None or other.sums is None:
            if self.sums is None:
                return other
            return self
        return replace(self, sums=self.sums + other.sums)
