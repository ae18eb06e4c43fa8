"""The joint estimate of all means, from candidates, their weights and limited translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.groups._candidates import LINEAR, GroupCandidates, GroupVectors
from muhat.groups._cells import Cells
from muhat.groups._gain import Gain, estimated_gain
from muhat.groups._moments import GroupLeftOutMoments
from muhat.groups._translation import LimitedMeans, limiting_factors


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The principal axes of estimated means, and how much rows vary along them.

    Attributes
    ----------
    centre : array of shape (r,)
        The mean of the estimated means.
    directions : array of shape (r, k)
        The axes in columns, k < T. The group furthest along an axis is on its positive side.
    variances : array of shape (k,)
        The variance of one row within its group along each axis; infinite if it is not known.
    """

    centre: Array
    directions: Array
    variances: Array

    @classmethod
    def from_means(cls, means: Array, cells: Cells, vectors: GroupVectors) -> PrincipalAxes:
        """Return the axes, with the variance of rows from that of the means of folds."""
        centre = means.mean(axis=0)
        directions = principal_directions(means - centre)
        df = (cells.mass > 0).sum() - len(means)
        if df < 1:
            return cls(centre, directions, np.full(directions.shape[1], np.inf))
        gaps = cells.fold_means(vectors) - vectors.Z[:, None]
        gaps *= np.sqrt(cells.mass)[:, :, None]
        gaps = gaps.reshape(-1, gaps.shape[2])
        squares = gaps.T @ gaps
        variances = np.einsum("rk,rk->k", directions, squares @ directions) / df
        return cls(centre, directions, np.maximum(variances, 0))

    def coordinates(self, means: Array) -> Array:
        """Return means from the centre along the axes."""
        return (means - self.centre) @ self.directions


def principal_directions(centred: Array) -> Array:
    """Return the principal axes of T rows with mean zero, in columns, fewer than T."""
    T, r = centred.shape
    k = min(T - 1, r)
    _, V = np.linalg.eigh(centred.T @ centred)
    axes = V[:, ::-1][:, :k]
    scores = centred @ axes
    furthest = scores[np.abs(scores).argmax(axis=0), np.arange(k)]
    return axes * np.where(furthest < 0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class JointMeans:
    """The means of T groups, estimated together.

    Attributes
    ----------
    vectors : GroupVectors
        The plain means.
    candidate_weights : array of shape (T, 15)
        The weights of the candidates for each group.
    filter_weights : array of shape (T, 15)
        The same without smoothers, which blur differences in scale.
    common_weights : array of shape (15,)
        Those that all groups share before their sizes are looked at.
    kappa : float
        κ of limited translation.
    means : array of shape (T, r)
        The estimated means as vectors.
    factors : array of shape (T,)
        How much of the way from its plain mean each group goes.
    gain : Gain or None
        The gain over the plain means, on rows left out; None with too few groups.
    axes : PrincipalAxes
        The principal axes of the estimated means.
    """

    vectors: GroupVectors
    candidate_weights: Array
    filter_weights: Array
    common_weights: Array
    kappa: float
    means: Array
    factors: Array
    gain: Gain | None
    axes: PrincipalAxes

    @classmethod
    def from_cells(cls, cells: Cells, kappa: float) -> JointMeans:
        """Estimate the means from sums over (group, fold)."""
        vectors = cells.vectors()
        moments = GroupLeftOutMoments.from_folds(
            cells.held_out_folds(), vectors, cells.mass.shape[1]
        )
        by_group = moments.weights(vectors.n, vectors.n)
        limited = limited_means(vectors, by_group, kappa)
        gain = estimated_gain(limited, vectors, moments, by_group, kappa)
        common = moments.common_weights()
        without_smoothers = np.zeros_like(by_group)
        filters_alone = moments.of_candidates(LINEAR)
        without_smoothers[:, LINEAR] = filters_alone.weights(vectors.n, vectors.n)
        axes = PrincipalAxes.from_means(limited.means, cells, vectors)
        return cls(
            vectors,
            by_group,
            without_smoothers,
            common,
            kappa,
            limited.means,
            limited.factors,
            gain,
            axes,
        )

    def weights(self) -> Array:
        """Return W, the weights of the estimates on the plain means, of shape (T, T)."""
        W = np.empty((len(self.vectors), len(self.vectors)))
        for rows, some in self._weights_of_rows():
            W[rows] = some
        return W

    def noise_factors(self) -> Array:
        """Return Σ_u W²_tu/n_u: the variance of one row, times this, is that of an estimate."""
        found = np.empty(len(self.vectors))
        for rows, some in self._weights_of_rows():
            found[rows] = some**2 @ (1 / self.vectors.n)
        return found

    def _weights_of_rows(self) -> Iterator[tuple[Array, Array]]:
        """Yield some groups at a time, and their rows of W."""
        candidates = GroupCandidates(self.vectors)
        for rows in candidates.blocks(np.arange(len(self.vectors))):
            by_group = self.candidate_weights[rows]
            W = np.einsum("tm,mtu->tu", by_group, candidates.weights(rows))
            W *= self.factors[rows, None]
            W[np.arange(len(rows)), rows] += 1 - self.factors[rows]
            yield rows, W

    def mean_of_new(self, vector: Array, n: float, own: float, by_group: Array) -> Array:
        """Return the estimate for a new group beside the fitted ones, whose estimates stay.

        The candidates have the weights of the fitted group nearest in size.

        Parameters
        ----------
        vector : array of shape (r + 1,)
            Its plain mean: along the vectors of the fitted groups, and its length outside of them.
        n : float
            Its number of rows.
        own : float
            Its mean of k(x, x).
        by_group : array of shape (T, 15)
            The weights of the candidates for each fitted group.
        """
        fitted = self.vectors
        Z = np.zeros((len(fitted) + 1, len(vector)))
        Z[:-1, :-1] = fitted.Z
        Z[-1] = vector
        joined = GroupVectors(Z, np.append(fitted.n, n), np.append(fitted.own, own))
        nearest = np.abs(np.log(fitted.n / n)).argmin()
        last = np.array([len(fitted)])
        means = GroupCandidates(joined).at(last).means[:, 0]
        step = by_group[nearest] @ means - vector
        squared_length = np.atleast_1d(step @ step)
        factor = limiting_factors(squared_length, joined.noise[-1:], self.kappa)
        return vector + factor * step


def limited_means(vectors: GroupVectors, by_group: Array, kappa: float) -> LimitedMeans:
    """Return the estimates of all groups, none further from its plain mean than noise allows.

    Parameters
    ----------
    vectors : GroupVectors
        The plain means.
    by_group : array of shape (T, 15)
        The weights of the candidates.
    kappa : float
        κ of limited translation.
    """
    candidates = GroupCandidates(vectors)
    steps = np.empty_like(vectors.Z)
    own_weights = np.empty(len(vectors))
    for rows in candidates.blocks(np.arange(len(vectors))):
        found = candidates.averaged(rows, by_group[rows])
        steps[rows] = found.means
        own_weights[rows] = found.own_weights
    steps -= vectors.Z
    squared_lengths = (steps**2).sum(axis=1)
    factors = limiting_factors(squared_lengths, vectors.noise, kappa)
    return LimitedMeans(
        means=vectors.Z + factors[:, None] * steps,
        factors=factors,
        own_weights=1 - factors * (1 - own_weights),
        squared_steps=factors**2 * squared_lengths,
    )
