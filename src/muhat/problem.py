"""One sample's estimation problem, as numbers: what every filter and every selection rule works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat.arrays import Array
from muhat.gram import Gram
from muhat.spectrum import Spectrum


@dataclass(frozen=True)
class Target:
    """The target f* as the sample sees it: f*(x_i) and ‖f*‖²."""

    values: Array
    squared_norm: float


@dataclass(frozen=True)
class Components:
    """μ̂ and f* in the kernel PCA basis (v_i) of Ĉ: what a shrinker shrinks, component by component."""

    gamma: Array
    mean: Array
    target: Array
    effective_size: Array
    """1/Σp_i², in a shape that broadcasts with the others."""


@dataclass(frozen=True)
class LeftOut:
    """What the sample is without point i, for every i, with m_i = μ̂^(−i): all that a constant filter's score needs."""

    base: Array
    """p_i ‖k(x_i, ·) − f*‖²."""
    linear: Array
    """p_i ⟨k(x_i, ·) − f*, m_i − f*⟩."""
    quadratic: Array
    """p_i ‖m_i − f*‖²."""
    unshrunk: Array
    """p_i ‖k(x_i, ·) − m_i‖², whose sum is the score of KME."""


@dataclass(frozen=True)
class Problem:
    """Estimate μ from a sample's Gram operator, shrinking μ̂ towards f*: μ_λ = f* + s_λ(Ĉ)(μ̂ − f*).

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
    def n(self) -> int:
        """The number of points."""
        return len(self.masses)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenpairs of A: computed once, when first asked for."""
        return self.gram.spectrum()

    @cached_property
    def root_masses(self) -> Array:
        """q = √p."""
        return np.sqrt(self.masses).astype(self.gram.diagonal().dtype)

    @cached_property
    def mean_values(self) -> Array:
        """Aq = D μ̂(X)."""
        return self.gram.product(self.root_masses)

    @cached_property
    def target_values(self) -> Array:
        """D f*(X), zero without a target."""
        return self.root_masses * (0 if self.target is None else self.target.values)

    @property
    def target_squared_norm(self) -> float:
        """‖f*‖²."""
        return 0.0 if self.target is None else self.target.squared_norm

    @property
    def largest_value(self) -> float:
        """max k(x_i, x_i)."""
        return float((self.gram.diagonal() / self.masses).max())

    def kappa2(self, bound: float) -> float:
        """Return κ² for a kernel with that bound: max k(x_i, x_i) where it has none, and never zero."""
        return bound if np.isfinite(bound) else self.largest_value or 1.0

    @cached_property
    def components(self) -> Components:
        """μ̂ and f* in the kernel PCA basis: ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i and ⟨f*, v_i⟩ = (UᵀDf*(X))_i / √γ_i."""
        root = np.sqrt(self.spectrum.gamma)
        mean = root * self.spectrum.coordinates
        target = np.zeros_like(mean)
        if self.target is not None:
            np.divide(self.spectrum.project(self.target_values), root, out=target, where=root > 0)
        return Components(self.spectrum.gamma, mean, target, np.asarray(self.spectrum.effective_size))

    @cached_property
    def target_outside(self) -> Array:
        """‖f*_⊥‖²: the part of f* that the sample does not span."""
        return np.maximum(self.target_squared_norm - (self.components.target**2).sum(axis=-1), 0)

    @cached_property
    def left_out(self) -> LeftOut:
        """What is left without each point, from products with A alone."""
        p, q = self.masses, self.root_masses
        rest = 1 - p
        own = self.gram.diagonal()  # p_i k(x_i, x_i)
        mean, target = q * self.mean_values, q * self.target_values  # p_i μ̂(x_i) and p_i f*(x_i)
        target_mean = target.sum(axis=-1, keepdims=True)  # ⟨f*, μ̂⟩
        target_norm = self.target_squared_norm
        with_left_out = (target_mean - target) / rest  # ⟨f*, m_i⟩
        own_with_left_out = (mean - p * own) / rest  # p_i ⟨k(x_i, ·), m_i⟩
        mean_norm = mean.sum(axis=-1, keepdims=True)  # ‖μ̂‖²
        squared = (mean_norm - 2 * mean + p * own) / rest**2  # ‖m_i‖²
        return LeftOut(
            base=own - 2 * target + p * target_norm,
            linear=own_with_left_out - target - p * with_left_out + p * target_norm,
            quadratic=p * (squared - 2 * with_left_out + target_norm),
            unshrunk=(own - 2 * mean + p * mean_norm) / rest**2,
        )

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

    def strengths(self, s: Array, s_at_zero: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖, how far μ̂ was moved, of which 0 is not at all and 1 is onto the target.

        s has the shape (parameters, ..., components); the result (..., parameters).
        """
        gap = (self.components.mean - self.components.target) ** 2
        outside = self.target_outside
        moved = ((1 - s) ** 2 * gap).sum(axis=-1) + np.multiply.outer((1 - s_at_zero) ** 2, outside)
        whole = gap.sum(axis=-1) + outside
        return np.sqrt(np.moveaxis(np.divide(moved, whole, out=np.zeros_like(moved), where=whole > 0), 0, -1))

    def strength_of(self, x: Array, s_at_zero: float) -> float:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖ for the weights β = Dx, from products with A alone."""

        def norm(vector: Array, share: float) -> float:  # of Ψᵀ·vector − share · f*
            squared = vector @ self.gram.product(vector) - 2 * share * (vector @ self.target_values)
            return float(np.sqrt(np.maximum(squared + share**2 * self.target_squared_norm, 0)))

        whole = norm(self.root_masses, 1.0)
        return norm(self.root_masses - x, 1 - s_at_zero) / whole if whole else 0.0
