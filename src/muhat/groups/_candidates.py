"""The candidates: fifteen ways to estimate the mean of every group from the plain means of all.

Groups are rows of Z, their plain means as vectors of R^r. A candidate is a T × T matrix W whose
rows sum to one; its estimates are the rows of WZ. W is computed for some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array, slices

BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The h of the kernel smoothers ks_h."""

PENALTIES = (1.0, 3.0, 10.0, 30.0)
"""The c of the filters f_c."""

SECOND_BANDWIDTHS = (1.0, 2.0, 4.0, 8.0)
"""The h of the second look n_h."""

PILOT_BANDWIDTH = 0.5
"""The kernel smoother that, averaged with a filter, the second look starts from."""

PILOT_PENALTY = 10.0
"""The filter that, averaged with a kernel smoother, the second look starts from."""

PRIOR_DEGREES_OF_FREEDOM = 20.0
"""Degrees of freedom that the variance of all groups counts for in that of one.

A group's own variance alone fails on yes/no data, where a few equal rows have none."""

MIN_VARIANCE_SHARE = 1e-13
"""The least variance within groups, as a share of the mean of k(x, x): below it is rounding."""

BLOCK_ENTRIES = 2**22
"""Entries of all matrices W together that are held at a time: 32 MB."""

NAMES = (
    "plain",
    "pooled",
    *(f"smoother {h:g}" for h in BANDWIDTHS),
    *(f"filter {c:g}" for c in PENALTIES),
    *(f"second look {h:g}" for h in SECOND_BANDWIDTHS),
)
"""What the candidates are called, in their order."""

PLAIN = NAMES.index("plain")
"""The place of the plain means."""


@dataclass(frozen=True, eq=False)
class GroupVectors:
    """The plain means of T groups as vectors, and how well each is known.

    Attributes
    ----------
    Z : array of shape (T, r)
        Rows with ⟨Z_t, Z_u⟩ = G_tu, the inner products of the plain means.
    n : array of shape (T,)
        Numbers of rows; of weighted rows, the effective number (Σ m)²/Σ m².
    own : array of shape (T,)
        The mean of k(x, x) over each group.
    """

    Z: Array
    n: Array
    own: Array

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def variances(self) -> Array:
        """v_t, the variance of one row of each group in the RKHS, pulled towards that of all."""
        ss = self.n * (self.own - (self.Z**2).sum(axis=1))
        df = self.n - 1
        pooled = MIN_VARIANCE_SHARE * float(np.abs(self.own).mean())
        if df.sum() > 0:
            pooled = max(float(ss.sum() / df.sum()), pooled)
        pooled = max(pooled, float(np.finfo(np.float64).tiny))
        prior = PRIOR_DEGREES_OF_FREEDOM
        return (np.maximum(ss, 0) + prior * pooled) / (df + prior)

    @property
    def noise(self) -> Array:
        """D_t = v_t/n_t, the variance of each plain mean."""
        return self.variances / self.n

    @property
    def shares(self) -> Array:
        """w_t = n_t/N."""
        return self.n / self.n.sum()


class Candidates:
    """The matrices W of all candidates, in the order of `NAMES`, some rows at a time."""

    def __init__(self, vectors: GroupVectors) -> None:
        self.vectors = vectors
        smoothers = Smoothers(vectors.Z, vectors.noise, vectors.n, BANDWIDTHS, unbiased=True)
        filters = GroupFilters(vectors, PENALTIES)
        second = second_look(vectors)
        self.families = (Averages(vectors), smoothers, filters, second)

    def weights(self, rows: slice) -> Array:
        """Return the rows W_t of every candidate, of shape (15, rows, T)."""
        return np.concatenate([family.weights(rows) for family in self.families])

    def means(self, rows: slice) -> Array:
        """Return the estimates (WZ)_t of every candidate, of shape (15, rows, r)."""
        return np.concatenate([family.means(rows) for family in self.families])

    def blocks(self) -> Iterator[slice]:
        """Yield slices of rows, so few at a time that all candidates fit in memory."""
        return row_blocks(len(self.vectors), len(NAMES))


@dataclass(frozen=True, eq=False)
class Averages:
    """The plain means, W = I, and the mean of all rows, W = 1wᵀ."""

    vectors: GroupVectors

    def weights(self, rows: slice) -> Array:
        """Return both W, of shape (2, rows, T)."""
        T = len(self.vectors)
        plain = np.eye(T)[rows]
        return np.stack([plain, np.broadcast_to(self.vectors.shares, plain.shape)])

    def means(self, rows: slice) -> Array:
        """Return both WZ, of shape (2, rows, r)."""
        plain = self.vectors.Z[rows]
        pooled = self.vectors.shares @ self.vectors.Z
        return np.stack([plain, np.broadcast_to(pooled, plain.shape)])


@dataclass(frozen=True, eq=False)
class Smoothers:
    """Kernel smoothers over groups: W_tu ∝ n_u exp(−max(d²_tu, 0)/(h (D_t + D_u))), one for each h.

    Attributes
    ----------
    points : array of shape (T, r)
        The vectors whose squared distances are d².
    noise : array of shape (T,)
        D_t.
    n : array of shape (T,)
        The sizes of the groups.
    bandwidths : sequence of float
        The h.
    unbiased : bool
        Whether D_t + D_u, what noise adds to the squared distance of two groups, is subtracted.
    averaged : array of shape (T, r), default=None
        The vectors that are averaged; the points themselves if not given.
    """

    points: Array
    noise: Array
    n: Array
    bandwidths: Sequence[float]
    unbiased: bool
    averaged: Array | None = None

    def weights(self, rows: slice) -> Array:
        """Return W of every h, of shape (bandwidths, rows, T)."""
        scale = self.noise[rows, None] + self.noise
        distances = self._squared_distances(rows)
        if self.unbiased:
            distances -= scale
        exponents = np.maximum(distances, 0) / scale
        own = np.arange(len(self.n))[rows]
        exponents[np.arange(len(own)), own] = 0.0
        W = np.empty((len(self.bandwidths), *exponents.shape))
        for place, h in enumerate(self.bandwidths):
            np.multiply(exponents, -1 / h, out=W[place])
            np.exp(W[place], out=W[place])
            W[place] *= self.n
            W[place] /= W[place].sum(axis=1, keepdims=True)
        return W

    def means(self, rows: slice) -> Array:
        """Return WZ of every h, of shape (bandwidths, rows, r)."""
        return self.weights(rows) @ (self.points if self.averaged is None else self.averaged)

    def _squared_distances(self, rows: slice) -> Array:
        """Return the squared distances of some rows to all, of shape (rows, T)."""
        squares = (self._centred**2).sum(axis=1)
        products = self._centred[rows] @ self._centred.T
        return squares[rows, None] + squares - 2 * products

    @cached_property
    def _centred(self) -> Array:
        """The points from their mean, where distances lose fewer digits."""
        return self.points - self.points.mean(axis=0)


class GroupFilters:
    """The paper's filters on the groups: W = 1wᵀ + E^½ V diag(u/(u + c)) Vᵀ E^−½, one for each c.

    V diag(e) Vᵀ decomposes (I − qqᵀ) E^−½ G E^−½ (I − qqᵀ), q = √w, E_t = mean(v)/n_t: the groups
    from their common mean, in units of their noise, whose eigenvalues are one where there is
    nothing but noise; u = (e − 1)₊. Components with u = 0 vanish and are not kept.
    """

    def __init__(self, vectors: GroupVectors, penalties: Sequence[float]) -> None:
        self.vectors = vectors
        self.centre = vectors.shares @ vectors.Z
        self.gaps = vectors.Z - self.centre
        scale = np.sqrt(vectors.n / vectors.variances.mean())
        self.V, self.axes, e = principal_components(scale[:, None] * self.gaps)
        u = e - 1
        self.shrinkage = u / (u + np.asarray(penalties)[:, None])

    def weights(self, rows: slice) -> Array:
        """Return W of every c, of shape (penalties, rows, T)."""
        root = np.sqrt(self.vectors.n)
        left = self.shrinkage[:, None, :] * (self.V[rows] / root[rows, None])
        return self.vectors.shares + left @ (self.V * root[:, None]).T

    def means(self, rows: slice) -> Array:
        """Return WZ of every c, of shape (penalties, rows, r), by projecting on the components."""
        scores = self.gaps[rows] @ self.axes
        return self.centre + (self.shrinkage[:, None, :] * scores) @ self.axes.T


def principal_components(Y: Array) -> tuple[Array, Array, Array]:
    """Return V, R and e > 1 with Y = V √e Rᵀ, from the smaller one of YYᵀ and YᵀY."""
    T, r = Y.shape
    if r >= T:
        e, V = np.linalg.eigh(Y @ Y.T)
        kept = e > 1
        e, V = e[kept], V[:, kept]
        return V, (Y.T @ V) / np.sqrt(e), e
    e, R = np.linalg.eigh(Y.T @ Y)
    kept = e > 1
    e, R = e[kept], R[:, kept]
    return (Y @ R) / np.sqrt(e), R, e


def second_look(vectors: GroupVectors) -> Smoothers:
    """Return the smoothers by the distances of a pilot P = ½(ks_½ + f_10), which has less noise.

    W_tu ∝ n_u exp(−d′²_tu/(h (D′_t + D′_u))), d′² the squared distances of the rows of PZ and
    D′_t = Σ_u P²_tu D_u.
    """
    smoother = Smoothers(vectors.Z, vectors.noise, vectors.n, [PILOT_BANDWIDTH], unbiased=True)
    filters = GroupFilters(vectors, [PILOT_PENALTY])
    points = np.empty_like(vectors.Z)
    noise = np.empty(len(vectors))
    for rows in row_blocks(len(vectors), 2):
        P = (smoother.weights(rows)[0] + filters.weights(rows)[0]) / 2
        points[rows] = P @ vectors.Z
        noise[rows] = P**2 @ vectors.noise
    return Smoothers(points, noise, vectors.n, SECOND_BANDWIDTHS, False, averaged=vectors.Z)


def row_blocks(T: int, matrices: int) -> Iterator[slice]:
    """Yield slices of T rows, so few at a time that as many matrices W fit in memory."""
    return slices(0, T, max(1, BLOCK_ENTRIES // (T * matrices)))
