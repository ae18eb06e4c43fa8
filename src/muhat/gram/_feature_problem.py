"""The problem of a sample of any size, from sums of its features; rows are seen again only to be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.data import SampleBatch, Source
from muhat.gram._features import FeatureMap
from muhat.gram._problem import Components, LeftOut, Problem, Rows
from muhat.gram._spectrum import Eigenvalues
from muhat.gram._summary import Summary

SPANNED = 1e-12
"""A point of which less than this share is beyond the eigenvectors lies in their span."""


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
    def of(cls, summary: Summary, dtype: np.dtype) -> FeatureSpectrum:
        """Decompose the covariance of all rows; eigenvalues that are rounding errors of zero are left out."""
        mass = summary.total_mass
        gamma, V = np.linalg.eigh(summary.covariance.sum(axis=0) / mass)
        kept = gamma > len(gamma) * float(np.finfo(dtype).eps) * gamma[-1]
        if not kept.any():
            kept[-1] = True
        gamma, V = np.maximum(gamma[kept], 0), V[:, kept]
        effective_size = mass**2 / float(summary.squared_masses.sum())
        return cls(gamma, V, V.T @ (summary.mean.sum(axis=0) / mass), effective_size)

    @property
    def coordinates(self) -> Array:  # type: ignore[override]
        """Uᵀq = Vᵀμ̂/√γ."""
        return np.divide(self.mean, np.sqrt(self.gamma), out=np.zeros_like(self.mean), where=self.gamma > 0)


@dataclass(frozen=True)
class FeatureProblem(Problem):
    """The problem of a sample under the kernel ⟨z(x), z(y)⟩ of a feature map.

    Parameters
    ----------
    features : FeatureMap
        z.
    summary : Summary
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
    summary: Summary
    spectrum: FeatureSpectrum
    source: Source | None = None
    target_coordinates: Array | None = None
    target_squared_norm: float = 0.0

    @classmethod
    def of(
        cls, features: FeatureMap, summary: Summary, source: Source | None = None, target: Any = None
    ) -> FeatureProblem:
        """Return the problem with its eigenpairs; the target is an element of the RKHS or none."""
        spectrum = FeatureSpectrum.of(summary, features.dtype)
        if target is None:
            return cls(features, summary, spectrum, source)
        inside = features.coordinates(target)
        return cls(features, summary, spectrum, source, inside, float(inside @ inside) + features.outside(target))

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of points."""
        return self.summary.n

    @property
    def rank(self) -> int:
        """The number of components that m landmarks or features can have."""
        return min(self.features.m, self.n)

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
        return self.summary.largest_value

    @property
    def mass_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The least and the largest p_i."""
        least, largest = self.summary.weight_range
        return least / self.summary.total_mass, largest / self.summary.total_mass

    @property
    def mean_weights(self) -> Array:  # type: ignore[override]
        """The coordinates of μ̂ in feature space."""
        return self.summary.mean.sum(axis=0) / self.summary.total_mass

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
        return LeftOut.of(p, np.ones(1), own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    @property
    def _norms(self) -> tuple[Array, Array]:
        """‖μ̂‖² and ⟨f*, μ̂⟩."""
        return self.spectrum.squared_norm, self.components.mean @ self.components.target

    def left_out_of(self, rows: Rows) -> LeftOut:
        """Return what is left without each of these rows."""
        p, q = rows.masses, rows.root_masses
        mean_norm, target_mean = self._norms
        mean, target = q * rows.mean_values, q * rows.target_values
        return LeftOut.of(p, p, rows.own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    def rows(self, batch: SampleBatch) -> Rows:
        """Return a batch of the sample in the eigenbasis."""
        weights = np.ones(len(batch.X)) if batch.weights is None else batch.weights
        masses = weights / self.summary.total_mass
        root_gamma = np.sqrt(self.spectrum.gamma).astype(self.dtype)
        psi = self._turned(batch.X)
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
    def _turned(self) -> Callable[[Array], Array]:
        """x ↦ Vᵀz(x)."""
        return self.features.turned(self.spectrum.V)

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
