"""The problem of a sample that is held in memory, from its Gram operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.gram._base import Gram
from muhat.gram._problem import Components, LeftOut, Problem, Rows
from muhat.gram._spectrum import Spectrum


@dataclass(frozen=True)
class Target:
    """The target f* as the sample sees it: f*(x_i) and ‖f*‖²."""

    values: Array
    squared_norm: float


@dataclass(frozen=True)
class SampleProblem(Problem):
    """The problem of a sample with its Gram operator A.

    Parameters
    ----------
    gram : Gram
        A = D K D with its masses; leading batch dimensions go through every method.
    target : Target, default=None
        f*; none is f* = 0.
    """

    gram: Gram
    target: Target | None = None

    @property
    def masses(self) -> Array:
        """p: 1/n each, or the sample weights with sum one."""
        return self.gram.masses

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of points."""
        return len(self.masses)

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """The type of the Gram operator's numbers."""
        return self.gram.diagonal().dtype

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading batch dimensions."""
        return self.gram.diagonal().shape[:-1]

    @property
    def has_target(self) -> bool:  # type: ignore[override]
        """Whether f* is not zero."""
        return self.target is not None

    @cached_property
    def spectrum(self) -> Spectrum:  # type: ignore[override]
        """The eigenpairs of A: computed once, when first asked for."""
        return self.gram.spectrum()

    @cached_property
    def root_masses(self) -> Array:
        """q = √p."""
        return np.sqrt(self.masses).astype(self.dtype)

    @cached_property
    def mean_weights(self) -> Array:  # type: ignore[override]
        """p, the weights of μ̂ on the sample."""
        return self.masses.astype(self.dtype)

    @cached_property
    def mean_values(self) -> Array:
        """Aq = D μ̂(X)."""
        return self.gram.product(self.root_masses)

    @property
    def squared_mean_values(self) -> Array:
        """‖Aq‖² = Σ p_i μ̂(x_i)²."""
        return (self.mean_values**2).sum(axis=-1)

    @cached_property
    def target_values(self) -> Array:
        """D f*(X), zero without a target."""
        return self.root_masses * (0 if self.target is None else self.target.values)

    @property
    def target_squared_norm(self) -> float:  # type: ignore[override]
        """‖f*‖²."""
        return 0.0 if self.target is None else self.target.squared_norm

    @property
    def largest_value(self) -> float:  # type: ignore[override]
        """max k(x_i, x_i)."""
        return float((self.gram.diagonal() / self.masses).max())

    @property
    def mass_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The least and the largest p_i."""
        return float(self.masses.min()), float(self.masses.max())

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """μ̂ and f* in the kernel PCA basis: ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i and ⟨f*, v_i⟩ = (UᵀDf*(X))_i / √γ_i."""
        root = np.sqrt(self.spectrum.gamma)
        mean = root * self.spectrum.coordinates
        target = np.zeros_like(mean)
        if self.target is not None:
            np.divide(self.spectrum.project(self.target_values), root, out=target, where=root > 0)
        return Components(self.spectrum.gamma, mean, target, np.asarray(self.spectrum.effective_size))

    @cached_property
    def left_out(self) -> LeftOut:  # type: ignore[override]
        """What is left without each point, from products with A alone."""
        p, q = self.masses, self.root_masses
        mean, target = q * self.mean_values, q * self.target_values
        mean_norm, target_mean = mean.sum(axis=-1, keepdims=True), target.sum(axis=-1, keepdims=True)
        own = self.gram.diagonal()
        return LeftOut.of(p, p, own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    @property
    def rows(self) -> Rows:
        """All points in the eigenbasis."""
        return Rows(self.spectrum.U, self.masses, self.gram.diagonal(), self.mean_values, self.target_values)

    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return what the work returns for all rows at once."""
        return work(self, self.rows, *arguments)

    def left_out_of(self, rows: Rows) -> LeftOut:
        """Return what is left without each point: the rows are all there are."""
        return self.left_out

    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return β, the weights on the sample, of f* + s(Ĉ)(μ̂ − f*) given s at each eigenvalue and at zero.

        s(Ĉ)μ̂ has the weights D s(A) q. With h(γ) = (s(γ) − s(0))/γ, s(Ĉ)f* is s(0) f* plus the weights D h(A) D f*(X),
        so that (1 − s(0)) f* remains beside the sample.
        """
        gamma = self.spectrum.gamma
        coordinates = s * self.spectrum.coordinates
        if self.target is not None:
            h = np.zeros_like(gamma)
            np.divide(s - np.asarray(s_at_zero)[..., None], gamma, out=h, where=gamma > 0)
            coordinates = coordinates - h * self.spectrum.project(self.target_values)
        return self.root_masses * (self.spectrum.U @ coordinates[..., None])[..., 0]

    def strength_of(self, x: Array, s_at_zero: float) -> float:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖ for the weights β = Dx, from products with A alone."""

        def norm(vector: Array, share: float) -> float:  # of Ψᵀ·vector − share · f*
            squared = vector @ self.gram.product(vector) - 2 * share * (vector @ self.target_values)
            return float(np.sqrt(np.maximum(squared + share**2 * self.target_squared_norm, 0)))

        whole = norm(self.root_masses, 1.0)
        return norm(self.root_masses - x, 1 - s_at_zero) / whole if whole else 0.0
