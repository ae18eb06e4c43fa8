"""One sample's estimation problem, as numbers: what every filter and every selection rule works on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.gram._spectrum import Eigenvalues


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
    """What the sample is without point i, for every i, with m_i = μ̂^(−i): all that a constant filter's score needs.

    Each is a sum over the points of a group of equal masses, which may be one point.
    """

    base: Array
    """p_i ‖k(x_i, ·) − f*‖²."""
    linear: Array
    """p_i ⟨k(x_i, ·) − f*, m_i − f*⟩."""
    quadratic: Array
    """p_i ‖m_i − f*‖²."""
    unshrunk: Array
    """p_i ‖k(x_i, ·) − m_i‖², whose sum is the score of KME."""

    @classmethod
    def of(
        cls,
        p: Array,
        mass: Array,
        own: Array,
        mean: Array,
        target: Array,
        mean_norm: Array,
        target_mean: Array,
        target_norm: float,
    ) -> LeftOut:
        """Return it from sums over the groups.

        Parameters
        ----------
        p, mass : arrays
            The mass of each point of a group, and of them all.
        own, mean, target : arrays
            The sums of p_i k(x_i, x_i), of p_i μ̂(x_i) and of p_i f*(x_i) over a group.
        mean_norm, target_mean, target_norm : arrays and float
            ‖μ̂‖², ⟨f*, μ̂⟩ and ‖f*‖².
        """
        rest = 1 - p
        with_left_out = (mass * target_mean - p * target) / rest  # p_i ⟨f*, m_i⟩
        own_with_left_out = (mean - p * own) / rest  # p_i ⟨k(x_i, ·), m_i⟩
        squared = (mass * mean_norm - 2 * p * mean + p**2 * own) / rest**2  # p_i ‖m_i‖²
        return cls(
            base=own - 2 * target + mass * target_norm,
            linear=own_with_left_out - target - with_left_out + mass * target_norm,
            quadratic=squared - 2 * with_left_out + mass * target_norm,
            unshrunk=(own - 2 * mean + mass * mean_norm) / rest**2,
        )


@dataclass(frozen=True)
class Rows:
    """Some of the sample's points, or all, in the eigenbasis.

    Parameters
    ----------
    U : array of shape (..., rows, r)
        The points' rows of the eigenvectors.
    masses : array of shape (rows,)
        p_i.
    own : array of shape (..., rows)
        p_i k(x_i, x_i), the diagonal of A.
    mean_values, target_values : arrays of shape (..., rows)
        √p_i μ̂(x_i) and √p_i f*(x_i).
    beyond : array of shape (rows,), default=None
        1 − ‖u_i‖², the share of the point that the eigenvectors do not span; none if they span everything.
    """

    U: Array
    masses: Array
    own: Array
    mean_values: Array
    target_values: Array
    beyond: Array | None = None

    @property
    def root_masses(self) -> Array:
        """q = √p."""
        return np.sqrt(self.masses).astype(self.U.dtype)


class Problem(ABC):
    """Estimate μ from a sample, shrinking μ̂ towards f*: μ_λ = f* + s_λ(Ĉ)(μ̂ − f*).

    Leading batch dimensions, where there are any, go through every method.
    """

    n: int
    """The number of points."""
    dtype: np.dtype
    """The type of the sample's numbers."""
    spectrum: Eigenvalues
    """The eigenvalues of A."""
    components: Components
    """μ̂ and f* in the kernel PCA basis."""
    target_squared_norm: float
    """‖f*‖²."""
    left_out: LeftOut
    """What is left without each point."""
    largest_value: float
    """max k(x_i, x_i)."""
    mass_range: tuple[float, float]
    """The least and the largest p_i."""
    mean_weights: Array
    """The weights that ``weights`` returns for μ̂ itself."""
    has_target: bool

    @property
    def largest_eigenvalue(self) -> float:
        """γ_max, over the whole batch."""
        return self.spectrum.largest

    @property
    def trace(self) -> Array:
        """tr A = Σ p_i k(x_i, x_i)."""
        return self.spectrum.trace

    @property
    def rank(self) -> int:
        """r, the number of components: n where the Gram operator is not approximated."""
        return self.n

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading batch dimensions."""
        return ()

    @abstractmethod
    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return the sums of what ``work(problem, rows, *arguments)`` returns, over all rows."""

    @abstractmethod
    def left_out_of(self, rows: Rows) -> LeftOut:
        """Return what is left without each of these rows."""

    @abstractmethod
    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return the weights of f* + s(Ĉ)(μ̂ − f*) beside (1 − s(0)) f*, given s at each eigenvalue and at zero."""

    def kappa2(self, bound: float) -> float:
        """Return κ² for a kernel with that bound: max k(x_i, x_i) where it has none, and never zero."""
        return bound if np.isfinite(bound) else self.largest_value or 1.0

    @property
    def target_outside(self) -> Array:
        """‖f*_⊥‖²: the part of f* that the sample does not span."""
        return np.maximum(self.target_squared_norm - (self.components.target**2).sum(axis=-1), 0)

    @property
    def squared_mean_values(self) -> Array:
        """‖Aq‖² = Σ p_i μ̂(x_i)²."""
        return (self.components.gamma * self.components.mean**2).sum(axis=-1)

    def strengths(self, s: Array, s_at_zero: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖, how far μ̂ was moved, of which 0 is not at all and 1 is onto the target.

        s has the shape (parameters, ..., components); the result (..., parameters).
        """
        gap = (self.components.mean - self.components.target) ** 2
        outside = self.target_outside
        moved = ((1 - s) ** 2 * gap).sum(axis=-1) + np.multiply.outer((1 - s_at_zero) ** 2, outside)
        whole = gap.sum(axis=-1) + outside
        return np.sqrt(np.moveaxis(np.divide(moved, whole, out=np.zeros_like(moved), where=whole > 0), 0, -1))


def summed(parts: Sequence[list[Array]]) -> list[Array]:
    """Return the sums of several lists of arrays, place by place."""
    return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
