"""The problem of a sample of any size, from sums of its features; rows are passed over again only to be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import check_finite
from muhat.data import ArraySource, ReservoirSample, SampleBatch, Source, folds_of
from muhat.gram._features import Approximation, FeatureMap
from muhat.gram._problem import Access, Components, Eigenvalues, HeldOut, LeftOut, Rows, SpectralProblem, quotient
from muhat.kernels import Kernel

ERROR_ROWS = 2000
"""Rows on which the error of an approximation is measured."""

SPANNED = 1e-12
"""A point of which less than this share is beyond the eigenvectors lies in their span."""


@dataclass(frozen=True)
class Folds:
    """How rows are split into folds: by a hash of each row, so that it does not matter in which batch it comes."""

    n_splits: int = 1
    random_state: int = 0


@dataclass(frozen=True)
class FeatureSums:
    """Sums over the rows of each fold, w_i being the weights and z_i the features; those of two samples add up.

    Parameters
    ----------
    folds : Folds
        How rows are split.
    count : array of shape (folds,)
        The number of rows.
    mass, squared_masses : arrays of shape (folds,)
        Σ w_i and Σ w_i².
    mean : array of shape (folds, r)
        Σ w_i z_i.
    covariance : array of shape (folds, r, r)
        Σ w_i z_i z_iᵀ.
    own : float
        Σ w_i k(x_i, x_i), of the kernel itself.
    weight_range : tuple of float
        The least and the largest w_i.
    largest_value : float
        max k(x_i, x_i).
    """

    folds: Folds
    count: Array
    mass: Array
    squared_masses: Array
    mean: Array
    covariance: Array
    own: float
    weight_range: tuple[float, float]
    largest_value: float

    @classmethod
    def from_batch(cls, batch: SampleBatch, features: FeatureMap, folds: Folds) -> FeatureSums:
        """Sum up a batch; its products are in the type of the rows, the sums in float64."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            Z, own = features(batch.X), features.kernel.diagonal(batch.X)
            check_finite((Z**2).sum() + own.sum(), features.kernel)
        weights = np.ones(len(Z)) if batch.weights is None else batch.weights.astype(np.float64)
        root = np.sqrt(weights).astype(Z.dtype)
        if batch.weights is not None:
            Z = Z * root[:, None]
        number = folds_of(batch.X, folds.n_splits, folds.random_state) if folds.n_splits > 1 else None
        members = [slice(None) if number is None else number == fold for fold in range(folds.n_splits)]
        parts = [(root[each], Z[each]) for each in members]
        return cls(
            folds,
            count=np.array([len(rows) for _, rows in parts]),
            mass=np.array([weights[each].sum() for each in members]),
            squared_masses=np.array([(weights[each] ** 2).sum() for each in members]),
            mean=np.stack([(q @ rows).astype(np.float64) for q, rows in parts]),
            covariance=np.stack([(rows.T @ rows).astype(np.float64) for _, rows in parts]),
            own=float(weights @ own),
            weight_range=(float(weights.min()), float(weights.max())),
            largest_value=float(own.max()),
        )

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(
            self.folds,
            self.count + other.count,
            self.mass + other.mass,
            self.squared_masses + other.squared_masses,
            self.mean + other.mean,
            self.covariance + other.covariance,
            self.own + other.own,
            (min(self.weight_range[0], other.weight_range[0]), max(self.weight_range[1], other.weight_range[1])),
            max(self.largest_value, other.largest_value),
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @property
    def total_mass(self) -> float:
        """Σ w_i over all rows."""
        return float(self.mass.sum())


@dataclass(frozen=True)
class FeatureSpectrum(Eigenvalues):
    """Eigenpairs of the features' covariance Σ p_i z_i z_iᵀ, whose eigenvalues are those of A for the kernel ⟨z, z⟩.

    Parameters
    ----------
    gamma : array of shape (r,)
        Eigenvalues, ascending, positive.
    V : array of shape (features, r)
        Eigenvectors, in columns.
    mean : array of shape (r,)
        Vᵀμ̂.
    effective_size : float
        1/Σp_i².
    """

    gamma: Array
    V: Array
    mean: Array
    effective_size: float

    @classmethod
    def from_sums(cls, sums: FeatureSums, dtype: np.dtype) -> FeatureSpectrum:
        """Decompose the covariance of all rows; eigenvalues that are rounding errors of zero are left out."""
        mass = sums.total_mass
        gamma, V = np.linalg.eigh(sums.covariance.sum(axis=0) / mass)
        kept = gamma > len(gamma) * float(np.finfo(dtype).eps) * gamma[-1]
        if not kept.any():
            kept[-1] = True
        gamma, V = np.maximum(gamma[kept], 0), V[:, kept]
        effective_size = mass**2 / float(sums.squared_masses.sum())
        return cls(gamma, V, V.T @ (sums.mean.sum(axis=0) / mass), effective_size)

    @property
    def coordinates(self) -> Array:  # type: ignore[override]
        """Uᵀq = Vᵀμ̂/√γ."""
        return quotient(self.mean, np.sqrt(self.gamma))


@dataclass(frozen=True)
class FeatureProblem(SpectralProblem):
    """The problem of a sample under the kernel ⟨z(x), z(y)⟩ of a feature map.

    Parameters
    ----------
    features : FeatureMap
        z.
    sums : FeatureSums
        What the rows sum up to.
    spectrum : FeatureSpectrum
        The eigenpairs of their covariance.
    source : Source or None
        The rows, to be passed over again; none where they are gone.
    target_coordinates : array, default=None
        The coordinates of f* in feature space; none is f* = 0.
    target_squared_norm : float, default=0.0
        ‖f*‖², with the part that the features do not span.
    """

    features: FeatureMap
    sums: FeatureSums
    spectrum: FeatureSpectrum
    source: Source | None = None
    target_coordinates: Array | None = None
    target_squared_norm: float = 0.0

    @classmethod
    def from_sums(
        cls, features: FeatureMap, sums: FeatureSums, source: Source | None = None, target: Any = None
    ) -> FeatureProblem:
        """Return the problem with its eigenpairs; the target is an element of the RKHS or none."""
        spectrum = FeatureSpectrum.from_sums(sums, features.dtype)
        if target is None:
            return cls(features, sums, spectrum, source)
        inside = features.coordinates(target)
        return cls(features, sums, spectrum, source, inside, float(inside @ inside) + features.outside(target))

    @property
    def access(self) -> Access:  # type: ignore[override]
        """What features give: all eigenpairs, and the rows where these can be passed over again."""
        return Access.SPECTRUM if self.source is None else Access.SPECTRUM | Access.ROWS

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of points."""
        return self.sums.n

    @property
    def rank(self) -> int:  # type: ignore[override]
        """The number of components that m landmarks or features can have."""
        return min(self.features.n_components, self.n)

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """The type of the sample's numbers."""
        return self.features.dtype

    @property
    def has_target(self) -> bool:  # type: ignore[override]
        """Whether f* is not zero."""
        return self.target_coordinates is not None

    @property
    def largest_value(self) -> float:  # type: ignore[override]
        """max k(x_i, x_i)."""
        return self.sums.largest_value

    @property
    def mass_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The least and the largest p_i."""
        least, largest = self.sums.weight_range
        return least / self.sums.total_mass, largest / self.sums.total_mass

    @property
    def mean_weights(self) -> Array:  # type: ignore[override]
        """The coordinates of μ̂ in feature space."""
        return self.sums.mean.sum(axis=0) / self.sums.total_mass

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """μ̂ and f* in the kernel PCA basis: Vᵀμ̂ and Vᵀf*."""
        spectrum, target = self.spectrum, self.target_coordinates
        inside = np.zeros_like(spectrum.mean) if target is None else spectrum.V.T @ target
        return Components(spectrum.gamma, spectrum.mean, inside, np.asarray(spectrum.effective_size))

    @cached_property
    def left_out(self) -> LeftOut:  # type: ignore[override]
        """What is left without each point, summed over all; of rows that are gone, as if their masses were equal."""
        least, largest = self.mass_range
        if least < largest and self.source is not None:
            return LeftOut(*self.sum_over_rows(_left_out))
        p, (mean_norm, target_mean) = np.array([1 / self.spectrum.effective_size]), self._norms
        own, mean, target = (np.array([each]) for each in (self.spectrum.trace, mean_norm, target_mean))
        return LeftOut.from_sums(p, np.ones(1), own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    @property
    def rows_are_near(self) -> bool:  # type: ignore[override]
        """Whether rows are in memory."""
        return self.source is None or self.source.is_in_memory

    @property
    def fold_sums(self) -> HeldOut:
        """The folds that rows were split into as they were summed up."""
        sums, V = self.sums, self.spectrum.V
        filled = sums.count > 0
        if filled.sum() < 2:
            got = f"all {self.n} in one"
            advice = "fix the parameter with selection=Fixed(...)"
            raise ValueError(refusal("KFold", "rows in at least two folds are needed", got, advice))
        covariance = V.T @ (sums.covariance[filled] / sums.total_mass) @ V
        return HeldOut(
            mass=sums.mass[filled] / sums.total_mass,
            squared_masses=sums.squared_masses[filled] / sums.total_mass**2,
            own=np.trace(covariance, axis1=1, axis2=2).sum(),
            mean=(sums.mean[filled] / sums.total_mass) @ V,
            covariance=covariance,
        )

    @property
    def _norms(self) -> tuple[Array, Array]:
        """‖μ̂‖² and ⟨f*, μ̂⟩."""
        return self.spectrum.squared_norm, self.components.mean @ self.components.target

    def left_out_of(self, rows: Rows) -> LeftOut:
        """Return what is left without each of these rows."""
        p, q = rows.masses, rows.root_masses
        mean_norm, target_mean = self._norms
        mean, target = q * rows.mean_values, q * rows.target_values
        return LeftOut.from_sums(p, p, rows.own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    def rows(self, batch: SampleBatch) -> Rows:
        """Return a batch of the sample in the eigenbasis."""
        weights = np.ones(len(batch.X)) if batch.weights is None else batch.weights
        masses = weights / self.sums.total_mass
        root_gamma = np.sqrt(self.spectrum.gamma).astype(self.dtype)
        psi = self._rotated(batch.X)
        psi *= np.sqrt(masses).astype(self.dtype)[:, None]  # √p_i φ_i
        own, mean, target = (
            psi_sums.astype(self.dtype)
            for psi_sums in (
                np.einsum("ij,ij->i", psi, psi),
                psi @ self.components.mean.astype(self.dtype),
                psi @ self.components.target.astype(self.dtype),
            )
        )
        U = np.divide(psi, root_gamma, out=psi, where=root_gamma > 0)
        beyond = 1 - np.einsum("ij,ij->i", U, U)
        beyond[np.abs(beyond) < SPANNED] = 0
        return Rows(U, masses, own, mean, target, beyond)

    @cached_property
    def _rotated(self) -> Callable[[Array], Array]:
        """x ↦ Vᵀz(x)."""
        return self.features.rotated(self.spectrum.V)

    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return the sums of what the work returns for each batch, in one pass over the rows."""
        assert self.source is not None, "rules that look at rows are not asked where rows are gone"
        parts = self.source.total(partial(_work_on, replace(self, source=None), work, arguments))
        return list(parts)

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return the coordinates, in feature space, of f* + s(Ĉ)(μ̂ − f*) beside (1 − s(0)) f*."""
        shrunk = s * self.components.mean - (s - s_at_zero) * self.components.target
        return self.spectrum.V @ shrunk


class _Parts(list[Array]):
    """Arrays that are added place by place."""

    def __add__(self, other: list[Array]) -> _Parts:  # type: ignore[override]
        return _Parts(mine + its for mine, its in zip(self, other, strict=True))


def _work_on(problem: FeatureProblem, work: Callable[..., list[Array]], arguments: Any, batch: SampleBatch) -> _Parts:
    return _Parts(work(problem, problem.rows(batch), *arguments))


def _left_out(problem: FeatureProblem, rows: Rows) -> list[Array]:
    left_out = problem.left_out_of(rows)
    parts = (left_out.base, left_out.linear, left_out.quadratic, left_out.unshrunk)
    return [each.sum(keepdims=True) for each in parts]


@dataclass(frozen=True)
class Accumulation:
    """What is kept of the rows so far; two with the same features and folds add up.

    Parameters
    ----------
    features : FeatureMap
        z, the same for all rows.
    folds : Folds
        How rows are split into folds.
    error : float, default=0.0
        What the features' mean misses on some rows.
    sums : FeatureSums, default=None
        What the rows so far sum up to; none before the first.
    """

    features: FeatureMap
    folds: Folds
    error: float = 0.0
    sums: FeatureSums | None = None

    @classmethod
    def from_rows(cls, kernel: Kernel, approximation: Approximation, folds: Folds, rows: Array) -> Accumulation:
        """Return an accumulation without rows: kernel and features are learnt from these, and an error measured."""
        features = approximation.resolve(kernel.resolve(rows), rows)
        with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are refused as rows are summed up
            return cls(features, folds, features.error(rows[:: -(-len(rows) // ERROR_ROWS)]))

    def add_rows(self, X: Array, weights: Array | None = None) -> Accumulation:
        """Return the accumulation of these rows too."""
        return self.add_source(ArraySource(X, weights))

    def add_source(self, source: Source, drawn: ReservoirSample | None = None) -> Accumulation:
        """Return the accumulation of a source's rows too, in one pass over them; as many as were drawn from before."""
        sums = source.total(partial(FeatureSums.from_batch, features=self.features, folds=self.folds))
        if drawn is not None and drawn.count != sums.n:
            needed, got = "the same rows must come in every pass", f"{drawn.count} and then {sums.n}"
            raise ValueError(refusal("batches", needed, got, "give a list, or an iterator, which is passed over once"))
        return replace(self, sums=sums if self.sums is None else self.sums + sums)

    def problem(self, source: Source | None = None, target: Any = None) -> FeatureProblem:
        """Return the problem of the rows, with their source where they can be passed over again."""
        assert self.sums is not None, "there are rows in it"
        return FeatureProblem.from_sums(self.features, self.sums, source, target)

    def __add__(self, other: Accumulation) -> Accumulation:
        if self.features.dtype != other.features.dtype:
            got = f"{self.features.dtype} and {other.features.dtype}"
            raise ValueError(refusal("KernelMean.merge", "both estimators must have seen rows of one type", got))
        if self.features != other.features:
            needed = "both estimators must have the same kernel and features"
            advice = "give both the same bandwidth as a number, and the same landmarks as an array"
            raise ValueError(refusal("KernelMean.merge", needed, "others", advice))
        if self.folds != other.folds:
            got = f"{self.folds!r} and {other.folds!r}"
            raise ValueError(refusal("KernelMean.merge", "both estimators must have the same folds", got))
        if self.sums is None or other.sums is None:
            return other if self.sums is None else self
        return replace(self, sums=self.sums + other.sums)
