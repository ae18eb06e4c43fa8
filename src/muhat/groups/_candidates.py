"""The candidates: fifteen ways to estimate the mean of every group from the plain means of all.

Groups are rows of Z, their plain means as vectors of R^r. A candidate is a T × T matrix W whose
rows sum to one; its estimates are the rows of WZ. W is computed for some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Array, slices
from muhat._tolerances import MIN_VARIANCE_SHARE

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

MAX_EXPONENT = 80.0
"""Where exponents are cut: exp(−80) is nothing beside one, and denormal numbers are slow."""

MIN_ROOT = float(np.exp(-MAX_EXPONENT / 2))
"""What is squared at the least, for the same reason."""

BLOCK_ENTRIES = 2**22
"""Entries of all matrices W and means together that are held at a time: 32 MB."""

MAX_SOURCES = 2000
"""Groups that smoothers average over at most."""

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

FIRST_LOOK = slice(2, 2 + len(BANDWIDTHS))
"""The places of the smoothers."""

FILTERS = slice(FIRST_LOOK.stop, FIRST_LOOK.stop + len(PENALTIES))
"""The places of the filters."""

SECOND_LOOK = slice(FILTERS.stop, FILTERS.stop + len(SECOND_BANDWIDTHS))
"""The places of the smoothers of the second look."""

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

    def evenly_chosen(self, places: Array, most: int) -> Array:
        """Return some groups, or all if these are few enough: in the order of their norms, evenly.

        They do not depend on the order of the labels. Nor are they the nearest ones to any group:
        groups that are nearest to a noisy mean share its noise.
        """
        if len(places) <= most:
            return places
        order = places[np.argsort((self.Z[places] ** 2).sum(axis=1), kind="stable")]
        return np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])

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


@dataclass(frozen=True, eq=False)
class AveragedMeans:
    """What a weighted average of all candidates makes of some groups.

    Attributes
    ----------
    means : array of shape (rows, r)
        The estimates (WZ)_t, W = Σ_m w_tm W_m.
    own_weights : array of shape (rows,)
        W_tt.
    """

    means: Array
    own_weights: Array


class GroupCandidates:
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
        spectrum = GroupComponents.from_vectors(vectors)
        self.centre = spectrum.centre
        self.averages = Averages(vectors)
        self.filters = GroupFilters(spectrum, PENALTIES)
        self.centred: Array = (vectors.Z - self.centre).astype(dtype)
        sources = vectors.evenly_chosen(np.arange(len(vectors)), MAX_SOURCES)
        self.smoothers = Smoothers(
            self.centred, vectors.noise, vectors.n, sources, BANDWIDTHS, unbiased=True
        )
        pilot_filter = GroupFilters(spectrum, [PILOT_PENALTY])
        pilot = replace(self.smoothers, bandwidths=[BANDWIDTHS[PILOT]])
        self.pilot_means = np.empty_like(self.centred)
        pilot_noise = np.empty(len(vectors))
        for rows in self.blocks(np.arange(len(vectors))):
            weights = pilot.weights(rows)
            self.pilot_means[rows] = weights.means(self.centred)[0]
            pilot_noise[rows] = pilot_filter.noise_with(weights)
        filtered = pilot_filter.means(slice(None))[0] - self.centre
        points = ((self.pilot_means + filtered) / 2).astype(dtype)
        self.second = Smoothers(
            points, pilot_noise, vectors.n, sources, SECOND_BANDWIDTHS, unbiased=False
        )

    def weights(self, rows: Array) -> Array:
        """Return the rows W_t of every candidate, of shape (15, rows, T)."""
        T = len(self.vectors)
        return np.concatenate(
            [
                self.averages.weights(rows),
                self.smoothers.weights(rows).on_all(T),
                self.filters.weights(rows),
                self.second.weights(rows).on_all(T),
            ]
        )

    def at(self, rows: Array) -> CandidateMeans:
        """Return the estimates of every candidate for some groups, and the weights W_tt."""
        first, second = self.smoothers.weights(rows), self.second.weights(rows)
        smoothed = np.empty((len(BANDWIDTHS), len(rows), self.centred.shape[1]))
        smoothed[PILOT] = self.pilot_means[rows]
        for place in range(len(BANDWIDTHS)):
            if place != PILOT:
                smoothed[place] = first.of(place).means(self.centred)[0]
        means = [
            self.averages.means(rows),
            self.centre + smoothed,
            self.filters.means(rows),
            self.centre + second.means(self.centred),
        ]
        own_weights = [
            self.averages.own_weights(rows),
            first.own_weights,
            self.filters.own_weights(rows),
            second.own_weights,
        ]
        return CandidateMeans(np.concatenate(means), np.concatenate(own_weights))

    def averaged(self, rows: Array, by_group: Array) -> AveragedMeans:
        """Return the average of all candidates for some groups, by weights of shape (rows, 15).

        Weights on groups are averaged before they meet the vectors, so that two products take the
        place of one for each smoother.
        """
        first = self.smoothers.weights(rows).averaged(by_group[:, FIRST_LOOK])
        second = self.second.weights(rows).averaged(by_group[:, SECOND_LOOK])
        plain = by_group[:, PLAIN, None]
        means = plain * self.vectors.Z[rows]
        means += (by_group.sum(axis=1)[:, None] - plain) * self.centre
        means += first.means(self.centred)[0]
        means += second.means(self.centred)[0]
        means += self.filters.averaged_steps(rows, by_group[:, FILTERS])
        averages = np.concatenate([self.averages.own_weights(rows), self.filters.own_weights(rows)])
        of_averages = np.r_[: FIRST_LOOK.start, FILTERS]
        own_weights = np.einsum("tm,mt->t", by_group[:, of_averages], averages)
        own_weights += first.own_weights[0] + second.own_weights[0]
        return AveragedMeans(means, own_weights)

    def blocks(self, places: Array) -> Iterator[Array]:
        """Yield some groups at a time, so few that all candidates fit in memory."""
        columns = len(self.vectors) + self.vectors.Z.shape[1]
        for some in slices(0, len(places), max(1, BLOCK_ENTRIES // (columns * len(NAMES)))):
            yield places[some]


@dataclass(frozen=True, eq=False)
class Averages:
    """The plain means, W = I, and the mean of all rows, W = 1wᵀ."""

    vectors: GroupVectors

    def weights(self, rows: Array) -> Array:
        """Return both W, of shape (2, rows, T)."""
        plain = np.zeros((len(rows), len(self.vectors)))
        plain[np.arange(len(rows)), rows] = 1.0
        return np.stack([plain, np.broadcast_to(self.vectors.shares, plain.shape)])

    def means(self, rows: Array) -> Array:
        """Return both WZ, of shape (2, rows, r)."""
        plain = self.vectors.Z[rows]
        pooled = self.vectors.shares @ self.vectors.Z
        return np.stack([plain, np.broadcast_to(pooled, plain.shape)])

    def own_weights(self, rows: Array) -> Array:
        """Return W_tt of both, of shape (2, rows)."""
        shares = self.vectors.shares[rows]
        return np.stack([np.ones_like(shares), shares])


@dataclass(frozen=True, eq=False)
class SmootherWeights:
    """Some rows of W of kernel smoothers, on the groups that these average over.

    Attributes
    ----------
    rows : array of int of shape (rows,)
        The groups whose means are estimated.
    sources : array of int of shape (S,)
        The groups that are averaged over; each of ``rows`` takes part in its own mean, too.
    W : array of shape (bandwidths, rows, S)
        The weights of these.
    outside : array of shape (bandwidths, rows)
        The weight of a group in its own mean where it is not among ``sources``; zero if it is.
    own_weights : array of shape (bandwidths, rows)
        W_tt, wherever it is.
    """

    rows: Array
    sources: Array
    W: Array
    outside: Array
    own_weights: Array

    def of(self, place: int) -> SmootherWeights:
        """Return the weights of one bandwidth alone."""
        one = slice(place, place + 1)
        return replace(
            self, W=self.W[one], outside=self.outside[one], own_weights=self.own_weights[one]
        )

    def averaged(self, by_group: Array) -> SmootherWeights:
        """Return the average over bandwidths, by weights of shape (rows, bandwidths), as one."""
        return replace(
            self,
            W=np.einsum("tm,mts->ts", by_group, self.W)[None],
            outside=np.einsum("tm,mt->t", by_group, self.outside)[None],
            own_weights=np.einsum("tm,mt->t", by_group, self.own_weights)[None],
        )

    def means(self, points: Array) -> Array:
        """Return the weighted means of vectors of all groups, of shape (bandwidths, rows, r)."""
        found = self.W @ self._averaged(points)
        if self.outside.any():
            found += self.outside[:, :, None].astype(found.dtype) * points[self.rows]
        return found

    def on_all(self, T: int) -> Array:
        """Return W on all groups, of shape (bandwidths, rows, T)."""
        found = np.zeros((*self.W.shape[:2], T), self.W.dtype)
        found[:, :, self.sources] = self.W
        found[:, np.arange(len(self.rows)), self.rows] += self.outside.astype(self.W.dtype)
        return found

    def _averaged(self, points: Array) -> Array:
        if len(points) == len(self.sources):
            return points
        return points[self.sources]


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
    sources : array of int of shape (S,)
        The groups u that are averaged over.
    bandwidths : sequence of float
        The h, each twice the one before.
    unbiased : bool
        Whether D_t + D_u, what noise adds to the squared distance of two groups, is subtracted.
    """

    points: Array
    noise: Array
    n: Array
    sources: Array
    bandwidths: Sequence[float]
    unbiased: bool

    def weights(self, rows: Array) -> SmootherWeights:
        """Return W of every h for some groups, in the type of the points."""
        sources = self.sources
        dtype = self.points.dtype
        scale = (self.noise[rows, None] + self.noise[sources]).astype(dtype)
        distances = self._squared_distances(rows)
        if self.unbiased:
            distances -= scale
        exponents = np.maximum(distances, 0) / scale
        places = np.searchsorted(sources, rows)
        places[places == len(sources)] = 0
        inside = np.flatnonzero(sources[places] == rows)
        exponents[inside, places[inside]] = 0.0
        W = np.empty((len(self.bandwidths), *exponents.shape), dtype)
        np.multiply(exponents, -1 / self.bandwidths[-1], out=exponents)
        np.maximum(exponents, -MAX_EXPONENT, out=exponents)
        np.exp(exponents, out=W[-1])
        for place in range(len(W) - 2, -1, -1):  # half the bandwidth squares the weight
            np.maximum(W[place + 1], MIN_ROOT, out=W[place])
            np.square(W[place], out=W[place])
        own = self.n[rows].copy()
        own[inside] = 0.0
        outside = np.empty((len(W), len(rows)))
        n = self.n[sources].astype(dtype)
        for place, each in enumerate(W):
            each *= n
            total = each.sum(axis=1) + own.astype(dtype)
            each /= total[:, None]
            outside[place] = own / total
        own_weights = outside.copy()
        own_weights[:, inside] = W[:, inside, places[inside]]
        return SmootherWeights(rows, sources, W, outside, own_weights)

    def _squared_distances(self, rows: Array) -> Array:
        """Return the squared distances of some groups to the sources, of shape (rows, S)."""
        points = self.points
        if len(self.sources) < len(points):
            points = points[self.sources]
        own = self.points[rows]
        products = own @ points.T
        products *= -2
        products += (points**2).sum(axis=1)
        products += (own**2).sum(axis=1)[:, None]
        return products


@dataclass(frozen=True, eq=False)
class GroupComponents:
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
    def from_vectors(cls, vectors: GroupVectors) -> GroupComponents:
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

    spectrum: GroupComponents
    penalties: Sequence[float]

    def weights(self, rows: Array) -> Array:
        """Return W of every c, of shape (penalties, rows, T)."""
        return self.spectrum.vectors.shares + self._left(rows) @ self._right.T

    def noise_with(self, smoother: SmootherWeights) -> Array:
        """Return Σ_u P²_tu D_u of P = ½(ks + f), of the first bandwidth and penalty: shape (rows,).

        f_tu = w_u + ⟨left_t, right_u⟩, so that no row of f on all groups is needed.
        """
        vectors = self.spectrum.vectors
        rows, sources = smoother.rows, smoother.sources
        D, w = vectors.noise, vectors.shares
        left, right = self._left(rows)[0], self._right
        of_filter = w**2 @ D + 2 * left @ (right.T @ (w * D))
        of_filter += np.einsum("tc,tc->t", left @ self._noise_of_right, left)
        W = smoother.W[0]
        of_smoother = W**2 @ D[sources]
        noisy = self._noisy_right(W.dtype)[sources]
        both = W @ (w * D)[sources] + np.einsum("tc,tc->t", W @ noisy, left)
        own = smoother.outside[0]
        if own.any():
            f_own = w[rows] + np.einsum("tc,tc->t", left, right[rows])
            of_smoother += own**2 * D[rows]
            both += own * f_own * D[rows]
        return (of_smoother + 2 * both + of_filter) / 4

    def means(self, rows: Array | slice) -> Array:
        """Return WZ of every c, of shape (penalties, rows, r), by projecting on the components."""
        centre, axes = self.spectrum.centre, self.spectrum.axes
        scores = (self.spectrum.vectors.Z[rows] - centre) @ axes
        return centre + (self._shrinkage * scores) @ axes.T

    def averaged_steps(self, rows: Array, by_group: Array) -> Array:
        """Return the average of WZ − 1wᵀZ by weights of shape (rows, penalties)."""
        axes = self.spectrum.axes
        scores = (self.spectrum.vectors.Z[rows] - self.spectrum.centre) @ axes
        return np.asarray((by_group @ self._shrinkage[:, 0] * scores) @ axes.T)

    def own_weights(self, rows: Array) -> Array:
        """Return W_tt of every c, of shape (penalties, rows)."""
        squares = self.spectrum.V[rows] ** 2
        return self.spectrum.vectors.shares[rows] + (self._shrinkage * squares).sum(axis=2)

    def _left(self, rows: Array) -> Array:
        """Return the part of W that belongs to its rows, of shape (penalties, rows, components)."""
        n = self.spectrum.vectors.n[rows, None]
        return self._shrinkage * (self.spectrum.V[rows] / np.sqrt(n))

    @cached_property
    def _right(self) -> Array:
        """The part of W that belongs to its columns, of shape (T, components)."""
        return self.spectrum.V * np.sqrt(self.spectrum.vectors.n)[:, None]

    @cached_property
    def _noise_of_right(self) -> Array:
        """Σ_u D_u right_u right_uᵀ, of shape (components, components)."""
        return self._right.T @ self._noisy_right(np.float64)

    def _noisy_right(self, dtype: Any) -> Array:
        """Return D_u right_u, of shape (T, components)."""
        return (self.spectrum.vectors.noise[:, None] * self._right).astype(dtype)

    @property
    def _shrinkage(self) -> Array:
        """u/(u + c), of shape (penalties, 1, components)."""
        u = self.spectrum.e - 1
        return u / (u + np.asarray(self.penalties)[:, None, None])
