"""One sample's estimation problem, as numbers: what every filter and every selection rule works on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from muhat._arrays import Array


class Access(Flag):
    """What a way to hold the Gram operator A gives, and what a rule or a filter needs of it."""

    PRODUCTS = auto()
    """Products with A."""
    LEADING = auto()
    """The leading eigenpairs of A, as many as are asked for."""
    SPECTRUM = auto()
    """All eigenpairs of A."""
    ROWS = auto()
    """The rows once more, to leave them out."""

    def covers(self, need: Access) -> bool:
        """Whether all that is needed is given; whoever has all eigenpairs needs no products and no leading ones.

        Examples
        --------
        >>> Access.SPECTRUM.covers(Access.LEADING), Access.LEADING.covers(Access.SPECTRUM)
        (True, False)
        """
        return need in (self | Access.PRODUCTS | Access.LEADING if Access.SPECTRUM in self else self)


class Gram(Protocol):
    """The operator A = D K D of a sample, D = diag(√p); A = K/n for equal masses."""

    @property
    def masses(self) -> Array:
        """p: positive, with sum one."""

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors."""

    def diagonal(self) -> Array:
        """Return the diagonal of A."""


class Eigenvalues:
    """What follows from the eigenvalues and from Uᵀq alone, whether or not U is held."""

    gamma: Array
    """Eigenvalues of A, ascending, none negative."""
    coordinates: Array
    """Uᵀq, so that ⟨μ̂, v_i⟩ = √γ_i (Uᵀq)_i for the eigenfunctions v_i of Ĉ (Proposition 1)."""
    effective_size: float
    """1/Σp_i²: n for equal masses."""

    @property
    def trace(self) -> Array:
        """tr A = Σ p_i k(x_i, x_i)."""
        return self.gamma.sum(axis=-1)

    @property
    def squared_norm(self) -> Array:
        """‖μ̂‖²."""
        return (self.gamma * self.coordinates**2).sum(axis=-1)

    @property
    def largest(self) -> float:
        """The largest eigenvalue, over the whole batch."""
        return float(self.gamma.max(initial=0.0))

    @property
    def risk(self) -> Array:
        """The unbiased estimate of KME's risk E‖μ̂ − μ‖²: (tr A − ‖μ̂‖²)/(n − 1)."""
        return (self.trace - self.squared_norm) / (self.effective_size - 1)


@dataclass(frozen=True)
class Spectrum(Eigenvalues):
    """Eigenpairs of A = D K D, D = diag(√p): with equal masses p_i = 1/n this is A = K/n.

    Arrays may have leading batch dimensions: many samples of one size go through the same lines as one.

    Parameters
    ----------
    gamma : array of shape (..., r)
        Eigenvalues, ascending, none negative; components left out have the eigenvalue zero.
    U : array of shape (..., n, r)
        Eigenvectors, in columns.
    masses : array of shape (n,)
        p, positive, with sum one.
    """

    gamma: Array
    U: Array
    masses: Array

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.masses)

    @cached_property
    def root_masses(self) -> Array:
        """q = √p, so that μ̂ = Ψᵀq with Ψ the rows √p_i k(x_i, ·) and A = ΨΨᵀ."""
        return np.sqrt(self.masses).astype(self.U.dtype)

    @cached_property
    def coordinates(self) -> Array:  # type: ignore[override]
        """Uᵀq."""
        return self.project(self.root_masses)

    def project(self, vector: Array) -> Array:
        """Return Uᵀ·vector."""
        return (vector[..., None, :] @ self.U)[..., 0, :]

    def apply(self, values: Array, vectors: Array) -> Array:
        """Return f(A)·vectors = U diag(f(γ)) Uᵀ·vectors, given f(γ): the one place where a function of A is applied.

        Parameters
        ----------
        values : array of shape (..., r)
            f of every eigenvalue.
        vectors : array of shape (..., n, columns)
            The right-hand sides, in columns.

        Examples
        --------
        >>> import numpy as np
        >>> spectrum = Spectrum(np.array([1.0, 3.0]), np.eye(2), np.array([0.5, 0.5]))
        >>> spectrum.apply(1 / spectrum.gamma, np.array([[1.0, 2.0], [3.0, 6.0]]))
        array([[1., 2.],
               [1., 2.]])
        """
        return self.U @ (values[..., None] * (self.U.swapaxes(-1, -2) @ vectors))

    @property
    def effective_size(self) -> float:  # type: ignore[override]
        """1/Σp_i²: n for equal masses."""
        return float(1 / (self.masses**2).sum())


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
    def from_sums(
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

    This is what every way to hold the Gram operator knows: enough for a filter's grid and a constant filter's score.
    Leading batch dimensions, where there are any, go through every method.
    """

    access: Access
    """What the way to hold the Gram operator gives."""
    n: int
    """The number of points."""
    rank: int
    """r, the number of components: n where the Gram operator is not approximated."""
    dtype: np.dtype
    """The type of the sample's numbers."""
    trace: Array
    """tr A = Σ p_i k(x_i, x_i)."""
    largest_eigenvalue: float
    """γ_max, over the whole batch."""
    largest_value: float
    """max k(x_i, x_i)."""
    mass_range: tuple[float, float]
    """The least and the largest p_i."""
    mean_weights: Array
    """The weights of μ̂ itself, on the points or on the features."""
    left_out: LeftOut
    """What is left without each point."""
    has_target: bool
    target_squared_norm: float
    """‖f*‖²."""
    squared_mean_values: Array
    """‖Aq‖² = Σ p_i μ̂(x_i)²."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading batch dimensions."""
        return ()

    def kappa2(self, bound: float) -> float:
        """Return κ² for a kernel with that bound: max k(x_i, x_i) where it has none, and never zero."""
        return bound if np.isfinite(bound) else self.largest_value or 1.0


class SpectralProblem(Problem):
    """A problem whose eigenpairs are known: a filter acts on each component by itself."""

    spectrum: Eigenvalues
    """The eigenvalues of A."""
    components: Components
    """μ̂ and f* in the kernel PCA basis."""

    rows_are_near: bool = True
    """Whether rows are in memory, so that leaving them out once more costs no pass over a file or a cluster."""

    @property
    def fold_sums(self) -> HeldOut | None:
        """The folds that rows were split into as they were summed up; none where the rows are in memory."""
        return None

    @property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """γ_max, over the whole batch."""
        return self.spectrum.largest

    @property
    def trace(self) -> Array:  # type: ignore[override]
        """tr A = Σ p_i k(x_i, x_i)."""
        return self.spectrum.trace

    @abstractmethod
    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return the sums of what ``work(problem, rows, *arguments)`` returns, over all rows."""

    @abstractmethod
    def left_out_of(self, rows: Rows) -> LeftOut:
        """Return what is left without each of these rows."""

    @abstractmethod
    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return the weights of f* + s(Ĉ)(μ̂ − f*) beside (1 − s(0)) f*, given s at each eigenvalue and at zero."""

    @property
    def target_outside(self) -> Array:
        """‖f*_⊥‖²: the part of f* that the sample does not span."""
        return np.maximum(self.target_squared_norm - (self.components.target**2).sum(axis=-1), 0)

    @property
    def squared_mean_values(self) -> Array:  # type: ignore[override]
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


@dataclass(frozen=True)
class HeldOut:
    """Sets F of points, each to be left out in turn, in the kernel PCA basis.

    Parameters
    ----------
    mass, squared_masses : arrays of shape (sets,)
        Σ_F p_i and Σ_F p_i².
    own : array of shape (...)
        Σ p_i k(x_i, x_i) over the points of all sets.
    mean : array of shape (..., sets, r)
        Σ_F p_i φ_i.
    covariance : array of shape (..., sets, r, r)
        Σ_F p_i φ_i φ_iᵀ.
    """

    mass: Array
    squared_masses: Array
    own: Array
    mean: Array
    covariance: Array

    @classmethod
    def from_rows(cls, problem: SpectralProblem, rows: Rows, folds: Array) -> HeldOut:
        """Return the sets of rows that the folds, of shape (sets, size), number."""
        p = rows.masses[folds]
        features = (rows.U * np.sqrt(problem.components.gamma)[..., None, :])[..., folds, :]  # √p_i φ_i
        return cls(
            mass=p.sum(axis=-1),
            squared_masses=(p**2).sum(axis=-1),
            own=rows.own[..., folds].sum(axis=(-1, -2)),
            mean=np.einsum("fi,...fir->...fr", rows.root_masses[folds], features),
            covariance=np.swapaxes(features, -1, -2) @ features,
        )


@dataclass(frozen=True)
class Target:
    """The target f* as the sample sees it: f*(x_i) and ‖f*‖²."""

    values: Array
    squared_norm: float


@dataclass(frozen=True)
class InMemoryProblem(Problem):
    """A problem whose points are in memory: what follows from products with A and its diagonal.

    Parameters
    ----------
    gram : Gram
        A = D K D with its masses; leading batch dimensions go through every method.
    target : Target, default=None
        f*; none is f* = 0.
    """

    gram: Any
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
    def rank(self) -> int:  # type: ignore[override]
        """The number of components."""
        return self.n

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
    def squared_mean_values(self) -> Array:  # type: ignore[override]
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
    def left_out(self) -> LeftOut:  # type: ignore[override]
        """What is left without each point, from products with A alone."""
        p, q = self.masses, self.root_masses
        mean, target = q * self.mean_values, q * self.target_values
        mean_norm, target_mean = mean.sum(axis=-1, keepdims=True), target.sum(axis=-1, keepdims=True)
        own = self.gram.diagonal()
        return LeftOut.from_sums(p, p, own, mean, target, mean_norm, target_mean, self.target_squared_norm)

    def strength_of(self, x: Array, s_at_zero: float) -> float:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖ for the weights β = Dx, from products with A alone."""

        def norm(vector: Array, share: float) -> float:  # of Ψᵀ·vector − share · f*
            squared = vector @ self.gram.product(vector) - 2 * share * (vector @ self.target_values)
            return float(np.sqrt(np.maximum(squared + share**2 * self.target_squared_norm, 0)))

        whole = norm(self.root_masses, 1.0)
        return norm(self.root_masses - x, 1 - s_at_zero) / whole if whole else 0.0


def summed(parts: Sequence[list[Array]]) -> list[Array]:
    """Return the sums of several lists of arrays, place by place."""
    return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]


def quotient(numerator: Array, denominator: Array) -> Array:
    """Return numerator/denominator, zero where the denominator is.

    Examples
    --------
    >>> import numpy as np
    >>> quotient(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    out = np.zeros(shape, np.result_type(numerator, denominator))
    return np.divide(numerator, denominator, out=out, where=denominator != 0)
