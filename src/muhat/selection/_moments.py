"""What rows contribute to the leave-one-out score at the nodes of contours: the resolvent with each point left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from muhat._arrays import Array, rounding
from muhat.filters import Filter
from muhat.gram import Problem, Rows
from muhat.selection._base import Candidates
from muhat.selection._contour import Contour

NODES_AT_ONCE = 64
GROUPS_AT_ONCE = 64
COMPRESSED_FROM = 4
"""Rows for each eigenvalue from which on it pays to look for the few functions of γ that all resolvents are sums of."""


@dataclass(frozen=True)
class Nodes:
    """The nodes z of several contours, with 1/(z − γ) at each as sums of few functions of γ.

    Seen from contours around them the eigenvalues blur: the matrix of all 1/(z − γ) has a rank, to rounding, far below
    the number of nodes and of eigenvalues, and only that many products with eigenvectors are needed for all nodes.

    Parameters
    ----------
    z, steps : arrays of shape (nodes,)
        The nodes of all contours, and dz/2πi at each.
    starts : tuple of int
        Where each contour's nodes start.
    Q : array of shape (r, rank) or None
        The functions of γ; none where each eigenvalue is one of its own.
    C : array of shape (..., rank, nodes)
        1/(z − γ) = Q C.
    """

    z: Array
    steps: Array
    starts: tuple[int, ...]
    Q: Array | None
    C: Array

    @classmethod
    def of(cls, gamma: Array, n: int, largest: float, contours: Sequence[Contour]) -> Nodes:
        """Return the nodes of contours stretched around [0, largest], for n rows."""
        z, steps = (
            largest * np.concatenate(parts) for parts in zip(*((c.nodes, c.steps) for c in contours), strict=True)
        )
        starts = tuple(np.cumsum([0, *(len(contour.nodes) for contour in contours)]).tolist())
        resolvent = (1 / (z - gamma[..., None])).astype(np.result_type(gamma.dtype, np.complex64), copy=False)
        if gamma.ndim > 1 or n < COMPRESSED_FROM * len(gamma):
            return cls(z, steps, starts, None, resolvent)
        scale = np.abs(resolvent).max(axis=0)
        Q, sigma, V = np.linalg.svd(_as_real(resolvent / scale), full_matrices=False)
        rank = int((sigma > rounding(sigma) * sigma[0]).sum())
        C = np.ascontiguousarray(sigma[:rank, None] * V[:rank]).view(resolvent.dtype) * scale
        return cls(z, steps, starts, np.ascontiguousarray(Q[:, :rank]), C)

    def blocks(self) -> Iterator[slice]:
        """Yield some nodes at a time."""
        return (slice(start, start + NODES_AT_ONCE) for start in range(0, len(self.z), NODES_AT_ONCE))

    def seen(self, rows: Array, vector: Array | None = None) -> _Seen:
        """Return the rows as all nodes see them, each eigenvector times the vector's entry first."""
        if self.Q is None:
            return _Seen(rows, self.C, vector)
        functions = self.Q if vector is None else vector[:, None] * self.Q
        return _Seen(rows @ functions.astype(rows.dtype, copy=False), self.C)


@dataclass(frozen=True)
class _Seen:
    """Σ_k rows_ik vector_k/(z − γ_k) at any nodes z, as a product with C."""

    rows: Array
    C: Array
    vector: Array | None = None

    def at(self, some: slice) -> Array:
        """Return it at some nodes."""
        C = self.C[..., some]
        return _times(self.rows, C if self.vector is None else self.vector[..., None] * C)


@dataclass(frozen=True)
class _Groups:
    """Points of equal mass: what is left without one of them is the same share of the whole."""

    order: Array
    starts: Array
    mass: Array
    """Σ p_i over the group."""
    rest: Array
    """1 − p_i."""

    @classmethod
    def of(cls, masses: Array, taken: Array) -> _Groups:
        """Group the points that are taken."""
        points = np.flatnonzero(taken)
        kinds, members, counts = np.unique(masses[points], return_inverse=True, return_counts=True)
        order = points[np.argsort(members, kind="stable")]
        return cls(order, np.cumsum(counts) - counts, counts * kinds, 1 - kinds)

    def sum(self, values: Array) -> Array:
        """Return the sums over the points of each group: (..., n, nodes) to (..., groups, nodes)."""
        if len(self.starts) == 1 and len(self.order) == values.shape[-2]:  # all points have one mass
            return values.sum(axis=-2, keepdims=True)
        return np.add.reduceat(values[..., self.order, :], self.starts, axis=-2)


@dataclass(frozen=True)
class Moments:
    """What rows contribute to the score at each node z, summed over points of equal mass.

    With c = 1 − p_i, ⟨φ_i − f*, s(Ĉ_i)(m_i − f*)⟩ integrates s(z/c) times ``linear``, and ⟨m_i − f*, s(Ĉ_i)(m_i − f*)⟩
    integrates s(z/c) times ``quadratic``, both summed over i. Steps of the contour are included.
    """

    nodes: Nodes
    rest: Array
    linear: Array
    quadratic: Array
    unshrunk: Array
    """The points' part of the score of KME."""

    @classmethod
    def of(cls, problem: Problem, rows: Rows, taken: Array, nodes: Nodes) -> Moments:
        """Compute them for the rows that are taken, some nodes at a time."""
        groups, view = _Groups.of(rows.masses, taken), _View.of(problem, rows, nodes)
        blocks = [_at_nodes(problem, view, some, groups) for some in nodes.blocks()]
        linear, quadratic = (np.concatenate(parts, axis=-1) * nodes.steps for parts in zip(*blocks, strict=True))
        unshrunk = problem.left_out_of(rows).unshrunk[..., groups.order].sum(axis=-1)
        return cls(nodes, groups.rest, linear, quadratic, unshrunk)

    def scores(self, place: int, candidates: Candidates) -> Array:
        """Integrate a filter against them on one of the contours, the lower half being the conjugate of the upper.

        In terms of r = 1 − s, so that what is integrated is small wherever the score is close to that of KME.
        """
        filter, contour = cast(Filter, candidates.filter), slice(*self.nodes.starts[place : place + 2])
        scores = np.asarray(self.unshrunk, dtype=np.float64)[..., None] + np.zeros(len(candidates.grid))
        for start in range(0, len(self.rest), GROUPS_AT_ONCE):
            some = slice(start, start + GROUPS_AT_ONCE)
            r = 1 - filter.path(self.nodes.z[contour] / self.rest[some, None], candidates.grid)
            r = r.reshape(len(r), -1).T
            linear, quadratic = (
                values[..., some, contour].reshape(*values.shape[:-2], -1) for values in (self.linear, self.quadratic)
            )
            scores = scores + 2 * np.real(2 * (linear - quadratic) @ r + quadratic @ r**2)
        return scores


@dataclass(frozen=True)
class _View:
    """Rows as the nodes see them: G = (z − A)⁻¹, its diagonal and its products with q and D f*(X), at any node.

    Eigenvectors that do not span everything leave (I − UUᵀ)/z of G beside them.
    """

    nodes: Nodes
    root_masses: Array
    squares: _Seen
    products: list[_Seen]
    beyond: tuple[Array, Array] | None
    """1 − ‖u_i‖² and q_i − (UUᵀq)_i."""

    @classmethod
    def of(cls, problem: Problem, rows: Rows, nodes: Nodes) -> _View:
        """Take the products with eigenvectors that all nodes share."""
        q = rows.root_masses[:, None]
        products = [nodes.seen(rows.U, vector) for vector in _projected(problem)]
        beyond = None
        if rows.beyond is not None:
            beyond = rows.beyond[:, None], q - (rows.U @ problem.spectrum.coordinates.astype(q.dtype))[:, None]
        return cls(nodes, q, nodes.seen(rows.U**2), products, beyond)

    def resolvent(self, some: slice) -> tuple[Array, list[Array]]:
        """Return G_ii and √p_i (Gq)_i, √p_i (GDf*(X))_i for each row at some nodes."""
        z = self.nodes.z[some]
        G, Gv = self.squares.at(some), [each.at(some) for each in self.products]
        if self.beyond is not None:
            G += self.beyond[0] / z
            Gv[0] += self.beyond[1] / z
        return G, [self.root_masses * each for each in Gv]


def _projected(problem: Problem) -> list[Array]:
    """Return Uᵀq and, if there is a target, UᵀDf*(X)."""
    vectors = [problem.spectrum.coordinates]
    if problem.has_target:
        vectors.append(np.sqrt(problem.components.gamma) * problem.components.target)
    return vectors


def _at_nodes(problem: Problem, view: _View, some: slice, groups: _Groups) -> tuple[Array, Array]:
    """Return Σ_i p_i ⟨φ_i − f*, R_i (m_i − f*)⟩ and Σ_i p_i ⟨m_i − f*, R_i (m_i − f*)⟩ over the points of each group.

    R_i = (z − (1 − p_i) Ĉ_i)⁻¹ is the resolvent without point i, m_i the mean without it. Removing row and column i of
    A changes vᵀ(z − A)⁻¹v by −(Gv)_i²/G_ii, with G = (z − A)⁻¹ (Schur complement). With v = zq − (1 − p_i) D f*(X),
    constants that integrate to zero against s dropped, the two are

        (Gv)_i/(√p_i G_ii) / (1−p_i)z − ⟨f*, ·⟩   and   [vᵀGv − (Gv)_i²/G_ii] / (1−p_i)²z + ‖f*‖²/z.
    """
    z, projected = view.nodes.z[some], _projected(problem)
    resolvent = 1 / (z - problem.components.gamma[..., None])
    G, Gv = view.resolvent(some)
    ratio = [vector / G for vector in Gv]
    mass, c = groups.mass[:, None], groups.rest[:, None]

    def without(j: int, k: int) -> Array:
        """Σ_i p_i [v_jᵀGv_k − (Gv_j)_i (Gv_k)_i/G_ii]."""
        whole = ((projected[j] * projected[k])[..., None] * resolvent).sum(axis=-2)
        if j == k == 0 and view.beyond is not None:
            whole += (1 - projected[0] @ projected[0]) / z
        return mass * whole[..., None, :] - groups.sum(Gv[j] * ratio[k])

    if not problem.has_target:
        return groups.sum(ratio[0]) / c, without(0, 0) * z / c**2
    mean, target = groups.sum(ratio[0]), groups.sum(ratio[1])
    mean_mean, mean_target, target_target = without(0, 0), without(0, 1), without(1, 1)
    outside = mass * problem.target_squared_norm / z
    linear = (z * mean - c * target - z * mean_target + c * target_target) / (c * z) + outside
    quadratic = (z**2 * mean_mean - 2 * z * c * mean_target + c**2 * target_target) / (c**2 * z) + outside
    return linear, quadratic


def _times(real: Array, complex_values: Array) -> Array:
    """Return the product of a real and a complex matrix, as one real product."""
    complex_type = np.result_type(real.dtype, np.complex64)
    return (real @ _as_real(complex_values.astype(complex_type, copy=False))).view(complex_type)


def _as_real(values: Array) -> Array:
    """Return complex numbers as pairs of real ones."""
    return np.ascontiguousarray(values).view(values.real.dtype)
