"""How the candidates do on rows that are left out, and the weights that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from muhat._arrays import Array
from muhat.groups._candidates import NAMES, PLAIN, GroupCandidates, GroupVectors

RIDGE = 0.02
"""How hard weights are pulled towards equal ones, in units of the plain means' risk."""

MIN_RIDGE = 1e-12
"""The same as a share of the inner products, where that risk is nothing but rounding."""

MIN_GAIN = 0.02
"""The gain up to which groups keep their plain means, as a share of these means' risk.

A candidate that gains next to nothing in the RKHS is still biased, and bias shows in the values of
the means and in their distances. A gain g is damped to about g − MIN_GAIN²/g."""

MAX_GROUPS_DOUBLE = 1000
"""Groups up to which what chooses the weights is computed in float64; the estimates always are."""

MAX_TESTED_GROUPS = 500
"""Groups that candidates are tested on at most: they have one set of weights for each size."""

MAX_SIZES = 100
"""Sizes of groups for which weights are computed; of more, those that are alike share them."""


@dataclass(frozen=True, eq=False)
class HeldOutFold:
    """The groups without the rows of one fold, and the means of these rows.

    Attributes
    ----------
    fold : int
        The fold.
    vectors : GroupVectors
        The groups that have rows outside of the fold.
    present : array of int
        Their places among all T groups.
    tested : array of shape (present, r)
        Vectors Y with ⟨Z_u, Y_t⟩ = ⟨μ̂_u without the fold, μ̂_t of the fold⟩; zero if it has no rows.
    counts : array of shape (present,)
        n_tf, the rows of each group in the fold.
    """

    fold: int
    vectors: GroupVectors
    present: Array
    tested: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class GroupLeftOutMoments:
    """Inner products of the candidates without a fold, with one another and with the fold's mean.

    Attributes
    ----------
    B : array of shape (F, T, M, M)
        ⟨W_m μ̂^(−f), W_m′ μ̂^(−f)⟩_t.
    a : array of shape (F, T, M)
        ⟨W_m μ̂^(−f), μ̂^(f)⟩_t.
    counts : array of shape (F, T)
        What each of these counts for: n_tf times the multiplicity of the group, zero where group t
        has no rows in or outside of fold f.
    own_weights : array of shape (F, T, M)
        W_tt of the candidates without the fold.
    noise : array of shape (F, T)
        D_t without the fold.
    multiplicities : array of shape (T,)
        How many groups each stands for: one, unless some of many groups are tested; zero for those
        that are not, whose moments are zero.
    """

    B: Array
    a: Array
    own_weights: Array
    counts: Array
    noise: Array
    multiplicities: Array

    @classmethod
    def from_folds(
        cls, folds: Iterable[HeldOutFold], vectors: GroupVectors, F: int
    ) -> GroupLeftOutMoments:
        """Return the moments of all groups and F folds, every candidate rebuilt without each fold.

        Of more than `MAX_TESTED_GROUPS` groups some are tested.
        """
        T = len(vectors)
        M = len(NAMES)
        multiplicities = tested_groups(vectors)
        B = np.zeros((F, T, M, M))
        a = np.zeros((F, T, M))
        own_weights = np.zeros((F, T, M))
        counts = np.zeros((F, T))
        noise = np.zeros((F, T))
        for fold in folds:
            f = fold.fold
            is_large = len(fold.present) > MAX_GROUPS_DOUBLE
            candidates = GroupCandidates(fold.vectors, np.float32 if is_large else np.float64)
            tested = np.flatnonzero(multiplicities[fold.present] > 0)
            for rows in candidates.blocks(tested):
                found = candidates.at(rows)
                means = found.means.transpose(1, 0, 2)
                at = fold.present[rows]
                own_weights[f, at] = found.own_weights.T
                B[f, at] = means @ means.transpose(0, 2, 1)
                a[f, at] = (means @ fold.tested[rows][:, :, None])[..., 0]
            counts[f, fold.present] = fold.counts * multiplicities[fold.present]
            noise[f, fold.present] = fold.vectors.noise
        return cls(B, a, own_weights, counts, noise, multiplicities)

    def of_candidates(self, places: Sequence[int]) -> GroupLeftOutMoments:
        """Return the moments of some candidates alone; the first must be the plain means."""
        chosen = list(places)
        B = self.B[:, :, chosen][:, :, :, chosen]
        return replace(
            self, B=B, a=self.a[:, :, chosen], own_weights=self.own_weights[:, :, chosen]
        )

    @cached_property
    def all_folds(self) -> Array:
        """Every fold."""
        return np.ones(len(self.B), bool)

    def weights(self, n: Array, sizes: Array, folds: Array | None = None) -> Array:
        """Return the candidates' weights for groups of given sizes, of shape (sizes, M).

        Common weights come first; then for each size n the moments of all groups count
        exp(−½ log²(n_t/n)) times, and weights are pulled towards the common ones.

        Parameters
        ----------
        n : array of shape (T,)
            The sizes of the groups that the moments are of.
        sizes : array of shape (sizes,)
            The sizes that weights are for.
        folds : array of bool of shape (F,), default=None
            The folds whose moments are used; all by default.
        """
        if folds is None:
            folds = self.all_folds
        B, a = self._by_group(folds)
        common = self.common_weights(folds)
        found = np.empty((len(sizes), len(common)))
        representatives, places = alike(sizes)
        for place, size in enumerate(representatives):
            nearness = np.exp(-0.5 * np.log(n / size) ** 2)
            near_B = np.tensordot(nearness, B, 1)
            found[places == place] = best_weights(near_B, nearness @ a, common)
        return found

    def common_weights(self, folds: Array | None = None) -> Array:
        """Return the weights that all groups share, whatever their sizes, of shape (M,)."""
        B, a = self._by_group(self.all_folds if folds is None else folds)
        equal = np.full(a.shape[1], 1 / a.shape[1])
        return best_weights(B.sum(axis=0), a.sum(axis=0), equal)

    def _by_group(self, folds: Array) -> tuple[Array, Array]:
        """Return Σ_f n_tf B and Σ_f n_tf a of each group, of shapes (T, M, M) and (T, M)."""
        counts = self.counts[folds]
        B = np.einsum("ft,ftmk->tmk", counts, self.B[folds])
        a = np.einsum("ft,ftm->tm", counts, self.a[folds])
        return B, a


def tested_groups(vectors: GroupVectors) -> Array:
    """Return how many groups each stands for when candidates are tested, of shape (T,).

    Groups are chosen from each power of two of their sizes, of rare sizes all: the few large groups
    among many small ones have weights of their own.
    """
    if len(vectors) <= MAX_TESTED_GROUPS:
        return np.ones(len(vectors))
    strata = np.round(np.log2(vectors.n)).astype(np.int64)
    sizes, counts = np.unique(strata, return_counts=True)
    found = np.zeros(len(vectors))
    left = MAX_TESTED_GROUPS
    order = np.argsort(counts, kind="stable")
    for done, place in enumerate(order):
        quota = max(1, left // (len(order) - done))
        chosen = vectors.evenly_chosen(np.flatnonzero(strata == sizes[place]), quota)
        found[chosen] = counts[place] / len(chosen)
        left -= len(chosen)
    return found


def best_weights(B: Array, a: Array, centre: Array) -> Array:
    """Return w ≥ 0 that minimises wᵀBw − 2aᵀw + .02 R ‖w − centre‖², R = B_00 − a_0.

    Then w is scaled to sum one, so that the estimates have mass one; it is nearly one before. Of
    the step from the plain means, 1 − MIN_GAIN R/g is taken, g its gain; none if g is below that.

    Where nothing was left out, as with groups of one row each, these are the plain means' weights.
    """
    plain = np.eye(len(a))[PLAIN]
    if not B.any():
        return plain
    risk = B[PLAIN, PLAIN] - a[PLAIN]
    ridge = max(RIDGE * risk, MIN_RIDGE * B[PLAIN, PLAIN])
    L = np.linalg.cholesky(B + ridge * np.eye(len(a)))
    aim = solve_triangular(L, a + ridge * centre, lower=True)
    w = nnls(L.T, aim)[0]
    if not w.any():
        return plain
    step = w / w.sum() - plain
    gain = 2 * step @ (a - B[PLAIN]) - step @ B @ step
    least = max(MIN_GAIN * risk, 0.0)
    if not gain > least:
        return plain
    return plain + (1 - least / gain) * step


def alike(sizes: Array) -> tuple[Array, Array]:
    """Return distinct sizes and the place of each size in them; of many, those alike are one."""
    distinct, places = np.unique(sizes, return_inverse=True)
    if len(distinct) <= MAX_SIZES:
        return distinct, places
    edges = np.linspace(np.log(distinct[0]), np.log(distinct[-1]), MAX_SIZES)
    representatives, places = np.unique(
        np.exp(edges)[np.abs(np.log(sizes)[:, None] - edges).argmin(axis=1)], return_inverse=True
    )
    return representatives, places
