"""One sample's estimation problem, as numbers.

What every filter and every selection rule works on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Protocol

import numpy as np

from muhat._arrays import Array, quotient
from muhat._tolerances import MIN_TARGET_MASS


class Access(Flag):
    """What a way to hold the Gram operator A gives, and what a rule or a filter needs of it."""

    PRODUCTS = auto()
    """Products with A."""
    LEADING = auto()
    """Any number of leading eigenpairs of A.

    Only for filters that keep a component or drop it (s is 0 or 1), as truncated SVD does."""
    SPECTRUM = auto()
    """All eigenpairs of A."""
    ROWS = auto()
    """The rows once more, to leave them out."""

    def __reduce__(self) -> tuple[type[Access], tuple[int]]:
        """Return how skops saves it: the class and its argument."""
        return type(self), (self.value,)

    def covers(self, need: Access) -> bool:
        """Whether all that is needed is given.

        Whoever has all eigenpairs needs no products and no leading ones.
        """
        return need in (
            self | Access.PRODUCTS | Access.LEADING if Access.SPECTRUM in self else self
        )


class Gram(Protocol):
    """The operator A = D K D of a sample, D = diag(√p); A = K/n for equal masses."""

    @property
    def masses(self) -> Array:
        """p: positive, with sum one."""

    def product(self, vectors: Array) -> Array:
        """Return A @ vectors."""

    def diagonal(self) -> Array:
        """Return the diagonal of A."""


@dataclass(frozen=True)
class Eigenvalues:
    """What follows from the eigenvalues and from Uᵀq alone, whether or not U is held."""

    gamma: Array
    """Eigenvalues of A, ascending, none negative; components left out have the eigenvalue zero."""
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
    """Eigenpairs of A; with leading batch dimensions, of many samples of one size."""

    U: Array
    """Eigenvectors, in columns: shape (..., n, r)."""
    root_masses: Array
    """q = √p, so that μ̂ = Ψᵀq with Ψ the rows √p_i k(x_i, ·) and A = ΨΨᵀ."""

    @classmethod
    def from_pairs(cls, gamma: Array, U: Array, masses: Array) -> Spectrum:
        """Return the eigenpairs of a sample with these masses."""
        q = np.sqrt(masses).astype(U.dtype)
        return cls(gamma, q @ U, float(1 / (masses**2).sum()), U, q)

    def project(self, vector: Array) -> Array:
        """Return Uᵀ·vector."""
        return (vector[..., None, :] @ self.U)[..., 0, :]

    def apply(self, values: Array, vectors: Array) -> Array:
        """Return f(A)·vectors = U diag(f(γ)) Uᵀ·vectors, given f(γ); the vectors are columns."""
        return self.U @ (values[..., None] * (self.U.swapaxes(-1, -2) @ vectors))


@dataclass(frozen=True)
class Components:
    """μ̂ and f* in the kernel PCA basis (v_i) of Ĉ.

    What a shrinker shrinks, component by component.
    """

    gamma: Array
    mean: Array
    target: Array
    effective_size: Array
    """1/Σp_i², in a shape that broadcasts with the others."""


@dataclass(frozen=True)
class TargetWeights:
    """The weights τ of a target on the sample's own points.

    A point that is left out takes its weight along.
    """

    tau: Array
    total: float | None
    """The sum of all its weights, where none is negative: a measure, whose mass is kept.

    None otherwise.
    """

    def __getitem__(self, points: Any) -> TargetWeights:
        return TargetWeights(self.tau[points], self.total)

    def kappa(self, tau: Array) -> Array:
        """Return the factor of the rest of the target when points with this mass are left out."""
        if self.total is None:
            return np.ones_like(tau)
        rest = self.total - tau
        return np.divide(
            self.total, rest, out=np.ones_like(rest), where=rest > MIN_TARGET_MASS * self.total
        )


class LeaveOneOutUpdate:
    """What leaving out point i does.

    Mean minus target is then m_i − f_i = μ̂/c + β k(x_i, ·) − κ f*.

    m_i = (μ̂ − p_i k(x_i, ·))/c. A target with the weight τ_i on the point is f_i = κ (f* − τ_i
    k(x_i, ·)).
    """

    rest: Array
    kappa: Array
    beta: Array

    def __init__(self, p: Array, target: TargetWeights | None) -> None:
        self.rest = 1 - p  # c
        if target is None:
            self.kappa = np.ones_like(p)
        else:
            self.kappa = target.kappa(target.tau)
        self.beta = (0 if target is None else self.kappa * target.tau) - p / self.rest


@dataclass(frozen=True)
class ConstantFilterScores:
    """What the sample is without point i, for every i.

    All that a constant filter's leave-one-out score needs.

    Each is a sum over the points of a group of equal masses, which may be one point. What leaves s
    = 1 − r of everything gains −Σ (2r linear + r² quadratic) over KME.
    """

    unshrunk: Array
    """p_i ‖k(x_i, ·) − m_i‖², whose sum is the score of KME."""
    linear: Array
    """p_i ⟨k(x_i, ·) − m_i, m_i − f_i⟩ without p_i ⟨k(x_i, ·) − μ̂, μ̂ − f*⟩.

    The latter sums to zero over all points. What is left is of the order of p_i², and not a
    difference of larger numbers.
    """
    quadratic: Array
    """p_i ‖m_i − f_i‖²."""

    @classmethod
    def from_sums(
        cls,
        without: LeaveOneOutUpdate,
        mass: Array,
        own: Array,
        mean: Array,
        target: Array,
        norms: tuple[Array, Array, float],
    ) -> ConstantFilterScores:
        """Return it from each group's Σ p_i, Σ p_i k(x_i, x_i), Σ p_i μ̂(x_i) and Σ p_i f*(x_i).

        The norms are ‖μ̂‖², ⟨f*, μ̂⟩ and ‖f*‖².
        """
        c, beta, kappa = without.rest, without.beta, without.kappa
        mean_norm, target_mean, target_norm = norms
        linear = (1 / c**2 - 1) * (mean - mass * mean_norm) - (kappa / c - 1) * (
            target - mass * target_mean
        )
        quadratic = mass * (mean_norm / c**2 - 2 * kappa * target_mean / c + kappa**2 * target_norm)
        return cls(
            unshrunk=(own - 2 * mean + mass * mean_norm) / c**2,
            linear=linear + beta * (own - mean) / c,
            quadratic=quadratic + beta * (beta * own + 2 * mean / c - 2 * kappa * target),
        )

    @property
    def sums(self) -> ConstantFilterScores:
        """The sums over all groups."""
        return ConstantFilterScores(
            *(part.sum(axis=-1) for part in (self.unshrunk, self.linear, self.quadratic))
        )


@dataclass(frozen=True)
class Target:
    """The target f* as the sample sees it.

    f*(x_i) and ‖f*‖², and its weights on the sample if it is made of that.
    """

    values: Array
    squared_norm: float
    weights: TargetWeights | None = None


@dataclass(frozen=True)
class EigenbasisRows:
    """Some of the sample's points, or all, in the eigenbasis."""

    U: Array
    """The points' rows of the eigenvectors."""
    masses: Array
    target: TargetWeights | None = None
    """What a target that is made of the sample's own points has on them."""

    def __getitem__(self, some: Any) -> EigenbasisRows:
        return EigenbasisRows(
            self.U[..., some, :], self.masses[some], self.target and self.target[some]
        )

    @property
    def root_masses(self) -> Array:
        """q = √p."""
        return np.sqrt(self.masses)

    @property
    def update(self) -> LeaveOneOutUpdate:
        """What leaving out each of them does."""
        return LeaveOneOutUpdate(self.masses, self.target)


def kappa2_of(bound: float, largest_value: float) -> float:
    """Return κ² = sup k(x, x): the kernel's bound, or max k(x_i, x_i) if it has none.

    Never zero.
    """
    if np.isfinite(bound):
        return bound
    return largest_value or 1.0


def dimension_of(trace: Array, squared: Array) -> Array:
    """Return D = (tr Σ)²/tr Σ², the number of components that share the variance.

    Zero where there is none.
    """
    return quotient(trace**2, squared)


class Problem(ABC):
    """Estimate μ from a sample, shrinking μ̂ towards f*: μ_λ = f* + s_λ(Ĉ)(μ̂ − f*).

    This is what every way to hold the Gram operator knows: enough for a filter's grid and a
    constant filter's score. Leading batch dimensions, where there are any, go through every method.
    """

    access: Access
    """What the way to hold the Gram operator gives."""
    n: int
    rank: int
    """r, the number of components: n where the Gram operator is not approximated."""
    dtype: np.dtype[Any]
    batch: tuple[int, ...] = ()
    """The leading batch dimensions."""
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
    left_out: ConstantFilterScores
    has_target: bool
    target_squared_norm: float
    """‖f*‖²."""
    spread: Array
    """tr A − ‖μ̂‖² = Σ p_i ‖k(x_i, ·) − μ̂‖²."""

    @property
    @abstractmethod
    def effective_dimension(self) -> Array:
        """D = (tr Σ̂)²/tr Σ̂² of the centred covariance Σ̂; zero where rows do not differ."""

    def kappa2(self, bound: float) -> float:
        """Return κ² for a kernel with that bound."""
        return kappa2_of(bound, self.largest_value)


class SpectralProblem(Problem):
    """A problem whose eigenpairs are known: a filter acts on each component by itself."""

    spectrum: Eigenvalues
    components: Components
    fold_sums: HeldOut | None = None
    """The folds that rows were split into as they were summed up.

    None where the rows are in memory.
    """

    @abstractmethod
    def sum_over_rows(self, work: Callable[..., list[Array]], *arguments: Any) -> list[Array]:
        """Return the sums of what ``work(problem, rows, *arguments)`` returns, over all rows."""

    @abstractmethod
    def weights(self, s: Array, s_at_zero: Array | float) -> Array:
        """Return the weights of f* + s(Ĉ)(μ̂ − f*) without those of (1 − s(0)) f*.

        s is given at each eigenvalue and at zero.
        """

    @property
    def largest_eigenvalue(self) -> float:  # type: ignore[override]
        """γ_max, over the whole batch."""
        return self.spectrum.largest

    @property
    def effective_dimension(self) -> Array:
        """D, from Σ̂ = diag(γ) − m mᵀ in the kernel PCA basis, m being μ̂ there.

        Entry by entry, as tr Ĉ² − 2 μ̂ᵀĈμ̂ + ‖μ̂‖⁴ would be a small difference of large numbers for
        a wide kernel.
        """
        squares = self.components.mean**2
        below = np.cumsum(squares, axis=-1) - squares
        above = np.cumsum(squares[..., ::-1], axis=-1)[..., ::-1] - squares
        diagonal = self.components.gamma - squares
        squared = (diagonal**2 + squares * (below + above)).sum(axis=-1)
        return dimension_of(diagonal.sum(axis=-1), squared)

    def left_out_of(self, rows: EigenbasisRows) -> ConstantFilterScores:
        """Return what is left without each of these rows."""
        root = np.sqrt(self.components.gamma)[..., None]
        own = rows.U**2 @ self.components.gamma[..., None]
        mean, target = (
            rows.root_masses * (rows.U @ (root * each[..., None]))[..., 0]
            for each in (self.components.mean, self.components.target)
        )
        return ConstantFilterScores.from_sums(
            rows.update, rows.masses, own[..., 0], mean, target, self.norms
        )

    @property
    def norms(self) -> tuple[Array, Array, float]:
        """‖μ̂‖², ⟨f*, μ̂⟩ and ‖f*‖²."""
        crossed = (self.components.mean * self.components.target).sum(axis=-1)
        return self.spectrum.squared_norm[..., None], crossed[..., None], self.target_squared_norm

    @property
    def target_outside(self) -> Array:
        """‖f*_⊥‖²: the part of f* that the sample does not span."""
        return np.maximum(self.target_squared_norm - (self.components.target**2).sum(axis=-1), 0)

    def strengths(self, s: Array, s_at_zero: Array) -> Array:
        """Return ‖μ̂ − μ_λ‖/‖μ̂ − f*‖: 0 leaves μ̂ where it is, 1 moves it onto the target.

        s has the shape (parameters, ..., components); the result (..., parameters).
        """
        gap = (self.components.mean - self.components.target) ** 2
        outside = self.target_outside
        moved = ((1 - s) ** 2 * gap).sum(axis=-1) + np.multiply.outer((1 - s_at_zero) ** 2, outside)
        whole = gap.sum(axis=-1) + outside
        return np.sqrt(
            np.moveaxis(np.divide(moved, whole, out=np.zeros_like(moved), where=whole > 0), 0, -1)
        )


@dataclass(frozen=True)
class HeldOut:
    """Sets F of points, each to be left out in turn, in the kernel PCA basis."""

    mass: Array
    """Σ_F p_i, of each set."""
    squared_masses: Array
    """Σ_F p_i²."""
    own: Array
    """Σ p_i k(x_i, x_i) over the points of all sets."""
    mean: Array
    """Σ_F p_i φ_i: shape (..., sets, r)."""
    covariance: Array
    """Σ_F p_i φ_i φ_iᵀ: shape (..., sets, r, r)."""
    target: Array | float = 0.0
    """Σ_F τ_i φ_i, of a target that is made of the sample's own points."""
    kappa: Array | float = 1.0
    """What the rest of such a target is multiplied by."""

    @classmethod
    def from_rows(cls, problem: SpectralProblem, rows: EigenbasisRows, folds: Array) -> HeldOut:
        """Return the sets of rows that the folds, of shape (sets, size), number."""
        p, q = rows.masses[folds], rows.root_masses[folds]
        features = (rows.U * np.sqrt(problem.components.gamma)[..., None, :])[
            ..., folds, :
        ]  # √p_i φ_i
        target: Array | float = 0.0
        kappa: Array | float = 1.0
        if rows.target is not None:
            tau = rows.target.tau[folds]
            target = np.einsum("fi,...fir->...fr", tau / q, features)
            kappa = rows.target.kappa(tau.sum(axis=-1))
        return cls(
            mass=p.sum(axis=-1),
            squared_masses=(p**2).sum(axis=-1),
            own=(features**2).sum(axis=(-1, -2, -3)),
            mean=np.einsum("fi,...fir->...fr", q, features),
            covariance=np.swapaxes(features, -1, -2) @ features,
            target=target,
            kappa=kappa,
        )


@dataclass(frozen=True)
class HeldOutBasis:
    """The eigenbasis of Ĉ without each of several sets F of points: one engine for all refits.

    In the kernel PCA basis Ĉ is diag(γ), a set F takes Σ_F p_i φ_i φ_iᵀ away, and what is left is
    divided by its mass. The right-hand sides are columns: a mean is one, a regression has one for
    each output.
    """

    rest: Array
    """1 − Σ_F p_i, of shape (sets, 1, 1)."""
    gamma: Array
    """The eigenvalues, as they were computed: shape (..., sets, r)."""
    V: Array
    """The eigenvectors, in columns: shape (..., sets, r, r)."""

    @classmethod
    def from_covariance(cls, gamma: Array, covariance: Array, rest: Array) -> HeldOutBasis:
        """Decompose Ĉ = diag(γ), of shape (..., r), without the Σ_F p_i φ_i φ_iᵀ of each set."""
        left = -covariance
        diagonal = np.arange(left.shape[-1])
        left[..., diagonal, diagonal] += gamma[..., None, :]
        gamma, V = np.linalg.eigh(left / rest)
        return cls(rest, gamma, V)

    def turned(self, columns: Array) -> Array:
        """Return the coordinates in this basis of columns, of shape (..., sets, r, columns)."""
        return np.swapaxes(self.V, -1, -2) @ columns
