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

PILOT = BANDWIDTHS.index(0.5)
"""The kernel smoother that, averaged with a filter, the second look starts from."""

PILOT_PENALTY = 10.0
"""The filter that, averaged with a kernel smoother, the second look starts from."""

PRIOR_DEGREES_OF_FREEDOM = 20.0
"""Degrees of freedom that the variance of all groups counts for in that of one.

A group's own variance alone fails on yes/no data, where a few equal rows have none."""

MIN_VARIANCE_SHARE = 1e-13
"""The least variance within groups, as a share of the mean of k(x, x): below it is rounding."""

MAX_EXPONENT = 80.0
"""Where exponents are cut: exp(−80) is nothing beside one, and denormal numbers are slow."""

MIN_ROOT = float(np.exp(-MAX_EXPONENT / 2))
"""What is squared at the least, for the same reason."""

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

LINEAR = tuple(
    place for place, name in enumerate(NAMES) if name.startswith(("plain", "pooled", "filter"))
)
"""The places of the candidates without smoothers, the plain means first."""


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


@dataclass(frozen=True, eq=False)
class CandidateMeans:
    """What every candidate makes of some groups.

    Attributes
    ----------
    means : array of shape (15, rows, r)
        The estimates (WZ)_t.
    own_weights : array of shape (15, rows)
        W_tt, how much of its own plain mean each group keeps.
    """

    means: Array
    own_weights: Array


class Candidates:
    """The matrices W of all candidates, in the order of `NAMES`, some rows at a time.

    The second look smooths by the distances of a pilot P = ½(ks_½ + f_10), which has less noise:
    W_tu ∝ n_u exp(−d′²_tu/(h (D′_t + D′_u))), d′² the squared distances of the rows of PZ and
    D′_t = Σ_u P²_tu D_u.

    Parameters
    ----------
    vectors : GroupVectors
        The groups.
    dtype : type, default=float64
        What the smoothers are computed in, from the groups' centre: where there are thousands of
        groups these products take most of the time.
    """

    def __init__(self, vectors: GroupVectors, dtype: type = np.float64) -> None:
        self.vectors = vectors
        spectrum = GroupSpectrum.from_vectors(vectors)
        self.centre = spectrum.centre
        centred: Array = (vectors.Z - self.centre).astype(dtype)
        self.averages = Averages(vectors)
        self.filters = GroupFilters(spectrum, PENALTIES)
        self.smoothers = Smoothers(centred, vectors.noise, vectors.n, BANDWIDTHS, unbiased=True)
        self.smoothed = np.empty((len(BANDWIDTHS), *centred.shape), dtype)
        self.smoother_diagonals = np.empty((len(BANDWIDTHS), len(vectors)))
        pilot_filter = GroupFilters(spectrum, [PILOT_PENALTY])
        pilot_noise = np.empty(len(vectors))
        for rows in self.blocks():
            W = self.smoothers.weights(rows)
            self.smoothed[:, rows] = W @ centred
            self.smoother_diagonals[:, rows] = own_columns(W, rows)
            P = (W[PILOT] + pilot_filter.weights(rows)[0]) / 2
            pilot_noise[rows] = P**2 @ vectors.noise
        filtered = pilot_filter.means(slice(None))[0] - self.centre
        points = ((self.smoothed[PILOT] + filtered) / 2).astype(dtype)
        self.centred = centred
        self.second = Smoothers(points, pilot_noise, vectors.n, SECOND_BANDWIDTHS, unbiased=False)

    def weights(self, rows: slice) -> Array:
        """Return the rows W_t of every candidate, of shape (15, rows, T)."""
        families = (self.averages, self.smoothers, self.filters, self.second)
        return np.concatenate([family.weights(rows) for family in families])

    def at(self, rows: slice) -> CandidateMeans:
        """Return the estimates of every candidate for some groups, and the weights W_tt."""
        smoothed = self.centre + self.smoothed[:, rows]
        W = self.second.weights(rows)
        means = [
            self.averages.means(rows),
            smoothed,
            self.filters.means(rows),
            self.centre + W @ self.centred,
        ]
        own_weights = [
            self.averages.own_weights(rows),
            self.smoother_diagonals[:, rows],
            self.filters.own_weights(rows),
            own_columns(W, rows),
        ]
        return CandidateMeans(np.concatenate(means), np.concatenate(own_weights))

    def blocks(self) -> Iterator[slice]:
        """Yield slices of rows, so few at a time that all candidates fit in memory."""
        T = len(self.vectors)
        return slices(0, T, max(1, BLOCK_ENTRIES // (T * len(NAMES))))


def own_columns(W: Array, rows: slice) -> Array:
    """Return W_tt of some rows of matrices, of shape (matrices, rows)."""
    return np.diagonal(W[:, :, rows], axis1=1, axis2=2)


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

    def own_weights(self, rows: slice) -> Array:
        """Return W_tt of both, of shape (2, rows)."""
        shares = self.vectors.shares[rows]
        return np.stack([np.ones_like(shares), shares])


@dataclass(frozen=True, eq=False)
class Smoothers:
    """Kernel smoothers over groups: W_tu ∝ n_u exp(−max(d²_tu, 0)/(h (D_t + D_u))), one for each h.

    Attributes
    ----------
    points : array of shape (T, r)
        Vectors, not far from zero, whose squared distances are d².
    noise : array of shape (T,)
        D_t.
    n : array of shape (T,)
        The sizes of the groups.
    bandwidths : sequence of float
        The h, each twice the one before.
    unbiased : bool
        Whether D_t + D_u, what noise adds to the squared distance of two groups, is subtracted.
    """

    points: Array
    noise: Array
    n: Array
    bandwidths: Sequence[float]
    unbiased: bool

    def weights(self, rows: slice) -> Array:
        """Return W of every h, of shape (bandwidths, rows, T), in the type of the points."""
        scale = (self.noise[rows, None] + self.noise).astype(self.points.dtype)
        distances = self._squared_distances(rows)
        if self.unbiased:
            distances -= scale
        exponents = np.maximum(distances, 0) / scale
        own = np.arange(len(self.n))[rows]
        exponents[np.arange(len(own)), own] = 0.0
        n = self.n.astype(exponents.dtype)
        W = np.empty((len(self.bandwidths), *exponents.shape), exponents.dtype)
        np.multiply(exponents, -1 / self.bandwidths[-1], out=exponents)
        np.maximum(exponents, -MAX_EXPONENT, out=exponents)
        np.exp(exponents, out=W[-1])
        for place in range(len(W) - 2, -1, -1):  # half the bandwidth squares the weight
            np.maximum(W[place + 1], MIN_ROOT, out=W[place])
            np.square(W[place], out=W[place])
        for each in W:
            each *= n
            each /= each.sum(axis=1, keepdims=True)
        return W

    def _squared_distances(self, rows: slice) -> Array:
        """Return the squared distances of some rows to all, of shape (rows, T)."""
        squares = (self.points**2).sum(axis=1)
        products = self.points[rows] @ self.points.T
        return squares[rows, None] + squares - 2 * products


@dataclass(frozen=True, eq=False)
class GroupSpectrum:
    """The principal components of the groups, from their common mean and in units of their noise.

    V diag(e) Vᵀ decomposes (I − qqᵀ) E^−½ G E^−½ (I − qqᵀ), q = √w, E_t = mean(v)/n_t. Where
    there is nothing but noise, eigenvalues are about one; those up to one are not kept.

    Attributes
    ----------
    vectors : GroupVectors
        The groups.
    centre : array of shape (r,)
        Their common mean wᵀZ.
    V : array of shape (T, components)
        The eigenvectors.
    axes : array of shape (r, components)
        The same directions among the vectors Z.
    e : array of shape (components,)
        The eigenvalues, all above one.
    """

    vectors: GroupVectors
    centre: Array
    V: Array
    axes: Array
    e: Array

    @classmethod
    def from_vectors(cls, vectors: GroupVectors) -> GroupSpectrum:
        """Decompose the smaller one of YYᵀ and YᵀY, Y = (I − qqᵀ) E^−½ Z."""
        centre = vectors.shares @ vectors.Z
        scale = np.sqrt(vectors.n / vectors.variances.mean())
        Y = scale[:, None] * (vectors.Z - centre)
        if len(Y) <= Y.shape[1]:
            e, V = np.linalg.eigh(Y @ Y.T)
            e, V = e[e > 1], V[:, e > 1]
            return cls(vectors, centre, V, (Y.T @ V) / np.sqrt(e), e)
        e, axes = np.linalg.eigh(Y.T @ Y)
        e, axes = e[e > 1], axes[:, e > 1]
        return cls(vectors, centre, (Y @ axes) / np.sqrt(e), axes, e)


@dataclass(frozen=True, eq=False)
class GroupFilters:
    """The paper's filters on the groups: W = 1wᵀ + E^½ V diag(u/(u + c)) Vᵀ E^−½, one for each c.

    Here u = (e − 1)₊; components with u = 0 vanish.
    """

    spectrum: GroupSpectrum
    penalties: Sequence[float]

    def weights(self, rows: slice) -> Array:
        """Return W of every c, of shape (penalties, rows, T)."""
        n, V = self.spectrum.vectors.n, self.spectrum.V
        left = self._shrinkage * (V[rows] / np.sqrt(n[rows, None]))
        return self.spectrum.vectors.shares + left @ (V * np.sqrt(n)[:, None]).T

    def means(self, rows: slice) -> Array:
        """Return WZ of every c, of shape (penalties, rows, r), by projecting on the components."""
        centre, axes = self.spectrum.centre, self.spectrum.axes
        scores = (self.spectrum.vectors.Z[rows] - centre) @ axes
        return centre + (self._shrinkage * scores) @ axes.T

    def own_weights(self, rows: slice) -> Array:
        """Return W_tt of every c, of shape (penalties, rows)."""
        squares = self.spectrum.V[rows] ** 2
        return self.spectrum.vectors.shares[rows] + (self._shrinkage * squares).sum(axis=2)

    @property
    def _shrinkage(self) -> Array:
        """u/(u + c), of shape (penalties, 1, components)."""
        u = self.spectrum.e - 1
        return u / (u + np.asarray(self.penalties)[:, None, None])
