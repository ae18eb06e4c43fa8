"""The candidates that are stacked: estimates of a distribution, with and without each fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from muhat._arrays import Array, slices
from muhat._bases import BaseEstimator
from muhat._tolerances import EMPTY_CLUSTER_SHARE
from muhat._validation import whole_number
from muhat.errors import MuhatError
from muhat.filters import NuMethod
from muhat.kernels import Mixture
from muhat.stacking._measures import Drawn, Measure, measure_from
from muhat.stacking._sample import (
    MIN_SIZE_SPARSE,
    ROWS_PER_CHUNK,
    Folds,
    RandomFourierMoments,
    StackSample,
    cut,
    indicators,
)

MAX_ROWS_PRODUCTS = 5000
"""Rows up to which a candidate may take products with the Gram matrix, or all distances."""

PRIOR_SIZE = 5.0
"""Points that each cluster borrows from the covariance within all clusters."""


class Candidate(BaseEstimator, ABC):
    """One or more estimates of a distribution, made from a sample.

    A candidate of your own is a subclass, a dataclass with ``names`` and ``fit``. It is left out by
    refits, one for each fold, unless it has a faster ``left_out``.
    """

    @abstractmethod
    def names(self, sample: StackSample) -> list[str]:
        """Return the names of its estimates for a sample of this size; empty if it has none."""

    @abstractmethod
    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the estimates."""

    def checked_fit(self, sample: StackSample) -> list[Measure]:
        """Return the estimates; raise MuhatError if ``fit`` returned anything else."""
        measures, names = self.fit(sample), self.names(sample)
        kinds = f"weights on {sample.n} rows or Mixture objects"
        needed = f"fit must return a list of {len(names)} estimates, {kinds}"
        if not isinstance(measures, list) or len(measures) != len(names):
            raise MuhatError(type(self).__name__, needed, repr(measures)[:60])
        found: list[Measure] = []
        for measure in measures:
            if not isinstance(measure, Mixture | Drawn):
                if (
                    np.shape(measure) != (sample.n,)
                    or not np.isfinite(np.asarray(measure, dtype=float)).all()
                ):
                    raise MuhatError(type(self).__name__, needed, repr(measure)[:60])
                measure = np.asarray(measure, dtype=float)
            found.append(measure)
        return found

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return the characteristic values without each fold: arrays (folds, frequencies)."""
        by_fold = []
        for rows in folds:
            refits = self.checked_fit(sample.without(rows))
            by_fold.append([wave_of_measure(measure, waves, ~rows) for measure in refits])
        return [np.concatenate(each) for each in zip(*by_fold, strict=True)]


def whole_numbers(part: Candidate, name: str, values: Any, least: int) -> list[int]:
    """Return a parameter as a list of whole numbers; raise MuhatError if it is not one."""
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise MuhatError(
            type(part).__name__, f"{name} must be a list of whole numbers", repr(values)
        )
    return [whole_number(part, f"each of {name}", value, least) for value in values]


def wave_of_measure(measure: Measure, waves: RandomFourierMoments, rows: Array) -> Array:
    """Return the wave of a measure made from some rows, of shape (1, frequencies)."""
    if isinstance(measure, Mixture | Drawn):
        return measure_from(measure, waves.sample.center).characteristic_function(
            waves.frequencies
        )[None]
    weights = np.zeros((waves.sample.n, 1))
    weights[rows, 0] = measure
    return waves.of_weights(weights)


@dataclass
class PlainMean(Candidate):
    """KME: every row with its mass."""

    def names(self, sample: StackSample) -> list[str]:
        """Return one name."""
        return ["KME"]

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the masses."""
        return [sample.masses]

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return the mean of the waves of the rows that are left."""
        sums = waves.averages(folds.labels, len(folds.shares))
        return [(sums.sum(axis=0) - sums) / (1 - folds.shares)[:, None]]


@dataclass
class NuSteps(Candidate):
    """The ν-method, stopped after some numbers of steps.

    Parameters
    ----------
    steps : tuple of int, default=(4, 8, 16)
        The numbers of steps.
    """

    steps: Sequence[int] = (4, 8, 16)

    def names(self, sample: StackSample) -> list[str]:
        """Return a name for each number of steps, up to 5000 rows."""
        steps = whole_numbers(self, "steps", self.steps, 1)
        if sample.size > MAX_ROWS_PRODUCTS:
            return []
        return [f"ν-method, {t} steps" for t in steps]

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the weights after each number of steps."""
        return [weights[:, 0] for weights in self._paths_of(sample, sample.masses[:, None])]

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return the waves of the weights without each fold, all folds in one iteration."""
        return list(map(waves.of_weights, self._paths_of(sample, folds.left)))

    def _paths_of(self, sample: StackSample, masses: Array) -> list[Array]:
        bound = sample.kernel.bound
        if bound == np.inf:
            bound = float(sample.kernel.diagonal(sample.X).max())
        return self.paths(lambda V: sample.product(V) / bound, masses)

    def paths(self, product: Callable[[Array], Array], masses: Array) -> list[Array]:
        """Return the weights after each number of steps, of each column of masses m.

        The ν-method minimises over β with the gradient m ⊙ (K/κ²)(m − β); ``product`` is that with
        K/κ².
        """
        iterates = (
            NuMethod()
            .bounded_by(1.0)
            .iterates(
                lambda weights: masses * product(masses - weights),
                np.zeros_like(masses),
                max(self.steps),
            )
        )
        kept = dict(enumerate(iterates, start=1))
        return [kept[t] for t in self.steps]


@dataclass
class GaussianFit(Candidate):
    """The Gaussians N(x̄, Σ̂) and N(x̄, (tr Σ̂/d) I) of the sample's mean and covariance."""

    def names(self, sample: StackSample) -> list[str]:
        """Return two names; in one dimension both are the same, and one is left."""
        return ["Gaussian", "Gaussian, isotropic"][: min(sample.X.shape[1], 2)]

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return both."""
        centered = sample.X - sample.center
        covariance = (
            (sample.masses * centered.T) @ centered * unbiased(1 / (sample.masses**2).sum())
        )
        isotropic = np.eye(len(covariance)) * np.trace(covariance) / len(covariance)
        covariances = [covariance, isotropic][: len(self.names(sample))]
        return [Mixture.from_moments(np.ones(1), sample.center[None], S[None]) for S in covariances]

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return exp(iω·x̄ − ½ var(ω·x)) from the mean and the variance of what is left."""
        count, kept = len(folds.shares), 1 - folds.shares[:, None]
        _, first, second = waves.moments(folds.labels, count)
        mean = (first.sum(axis=0) - first) / kept
        spread = np.maximum((second.sum(axis=0) - second) / kept - mean**2, 0)
        factor = unbiased(folds.sizes)[:, None]
        wave = np.cos(mean) + 1j * np.sin(mean)
        found = [wave * np.exp(-factor / 2 * spread)]
        if len(self.names(sample)) == 2:
            centered = sample.X - sample.center
            sums = np.stack(
                [np.bincount(folds.labels, sample.masses * x, count) for x in centered.T], axis=1
            )
            squares = np.bincount(folds.labels, sample.masses * (centered**2).sum(axis=1), count)
            means = (sums.sum(axis=0) - sums) / kept
            trace = np.maximum(
                (squares.sum() - squares)[:, None] / kept - (means**2).sum(axis=1, keepdims=True), 0
            )
            found.append(wave * np.exp(-factor * trace / (2 * centered.shape[1]) * waves.squares))
        return found


def unbiased(size: Array | float) -> Array:
    """Return n/(n − 1), the factor that makes a variance unbiased; zero for one row."""
    size = np.asarray(size, dtype=float)
    return np.where(size > 1.5, size / np.maximum(size - 1, 0.5), 0.0)


@dataclass
class WardMixtures(Candidate):
    """Mixtures of Gaussians, one for each of Ward's clusters, with covariances that borrow.

    A cluster c of n_c points has the covariance S_c = (scatter_c + 5 S_w)/(n_c + 4), where S_w is
    the covariance within all clusters. A fold is left out of the clusters of the whole sample.

    Parameters
    ----------
    sizes : tuple of int, default=(2, 4, 8, 16, 32)
        The numbers of clusters; those of more than a fifth of the rows are left out.
    whiten : bool, default=False
        Whether distances are those of the whitened rows.
    """

    sizes: Sequence[int] = (2, 4, 8, 16, 32)
    whiten: bool = False

    def names(self, sample: StackSample) -> list[str]:
        """Return a name for each number of clusters."""
        kind = "clusters"
        if self.whiten:
            kind = "whitened clusters"
        return [f"{size} {kind}" for size in self.sizes_for(sample)]

    def sizes_for(self, sample: StackSample) -> list[int]:
        """Return the numbers of clusters that a sample has rows enough for."""
        if self.whiten and sample.X.shape[1] == 1:
            return []  # a line has one direction only
        return [
            size for size in whole_numbers(self, "sizes", self.sizes, 2) if size <= sample.size / 5
        ]

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the mixtures."""
        labels, parents = self._clusters(sample)
        return [mixture_of_clusters(sample, parent[labels]) for parent in parents]

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return the mixtures' waves without each fold; clusters keep their other points."""
        labels, parents = self._clusters(sample)
        cells = _Cells.from_labels(labels, folds, waves)
        return [cells.merged(parent).left_out(folds) for parent in parents]

    def _clusters(self, sample: StackSample) -> tuple[Array, list[Array]]:
        """Return the finest cluster of each row, and the parents of these at each level."""
        tree, members, X = sample.tree
        if self.whiten:
            tree, members, X = sample.whitened_tree
        levels = cut(tree, self.sizes_for(sample))
        labels = max(levels, key=np.max)
        first = np.unique(labels, return_index=True)[1]
        parents = list(levels[:, first])
        if len(members) < sample.n:
            labels = _nearest_cluster(X, members, labels)
        return labels, parents


def _nearest_cluster(X: Array, members: Array, labels: Array) -> Array:
    """Return the cluster of each row: that of the nearest mean for rows outside of the tree."""
    means = np.stack([X[members][labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    joined = np.concatenate(
        [cdist(X[rows], means).argmin(axis=1) for rows in slices(0, len(X), ROWS_PER_CHUNK)]
    )
    joined[members] = labels
    return joined


def mixture_of_clusters(sample: StackSample, labels: Array) -> Mixture:
    """Return the mixture of one Gaussian for each cluster."""
    centered = sample.X - sample.center  # so that rows far from the origin keep their digits
    pi, means, scatter = cluster_moments(centered, sample.masses, labels, labels.max() + 1)
    size = 1 / (sample.masses**2).sum()
    within = size * scatter.sum(axis=0) / np.maximum(size - len(pi), 1)
    covariances = covariance_of_cluster(size * scatter, within, size * pi[:, None, None])
    return Mixture.from_moments(pi, sample.center + means, covariances)


def cluster_moments(
    X: Array, masses: Array, labels: Array, count: int
) -> tuple[Array, Array, Array]:
    """Return the mass, mean and scatter Σ m_i (x_i − x̄)(x_i − x̄)ᵀ of each cluster.

    They are zero for an empty cluster.
    """
    pi, d = np.bincount(labels, masses, count), X.shape[1]
    member = indicators(labels, count, masses)
    means = member @ X / np.where(pi > 0, pi, 1)[:, None]
    if count * X.size <= MIN_SIZE_SPARSE:  # then the members are held dense
        centered = X - means[labels]
        return pi, means, (member[:, None] * centered.T) @ centered
    scatter = np.zeros((count, d, d))
    order = np.split(
        np.argsort(labels, kind="stable"), np.bincount(labels, minlength=count).cumsum()[:-1]
    )
    for c, rows in enumerate(order):
        centered = X[rows] - means[c]
        scatter[c] = (masses[rows] * centered.T) @ centered
    return pi, means, scatter


def covariance_of_cluster(scatter: Any, within: Any, size: Array) -> Array:
    """Return (scatter + 5 S_w)/(n_c + 4), of matrices or of quadratic forms."""
    return (scatter + PRIOR_SIZE * within) / (size + PRIOR_SIZE - 1)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Sums Σ m_i, Σ m_i ω·x_i and Σ m_i (ω·x_i)² over the rows of each fold and cluster."""

    group: Array
    """The fold of each cell."""
    cluster: Array
    mass: Array
    first: Array
    second: Array

    @classmethod
    def from_labels(cls, labels: Array, folds: Folds, waves: RandomFourierMoments) -> _Cells:
        """Return the cells of all rows, given the cluster of each."""
        count = labels.max() + 1
        pairs, cells = np.unique(folds.labels * count + labels, return_inverse=True)
        return cls(pairs // count, pairs % count, *waves.moments(cells, len(pairs)))

    def merged(self, parent: Array) -> _Cells:
        """Return the cells of larger clusters, given the one that each cluster is in."""
        count = parent.max() + 1
        pairs, cells = np.unique(self.group * count + parent[self.cluster], return_inverse=True)
        sums = (
            _sum_by(cells, values, len(pairs)) for values in (self.mass, self.first, self.second)
        )
        return _Cells(pairs // count, pairs % count, *sums)

    def left_out(self, folds: Folds) -> Array:
        """Return the waves of the mixture without each fold: shape (folds, frequencies).

        A fold changes the clusters that it has rows in, and of the others only what they borrow.
        """
        count, kept, size = self.cluster.max() + 1, 1 - folds.shares, folds.sizes
        group, cluster = self.group, self.cluster
        mass, first, second = (
            _sum_by(cluster, values, count) for values in (self.mass, self.first, self.second)
        )
        mean, scatter = _mean_and_scatter(mass, first, second)
        left_mass = mass[cluster] - self.mass
        left_mass[left_mass < EMPTY_CLUSTER_SHARE * mass[cluster]] = 0
        left_mean, left_scatter = _mean_and_scatter(
            left_mass, first[cluster] - self.first, second[cluster] - self.second
        )

        per_fold = (size / kept)[:, None]  # from masses of the whole sample to numbers of points
        nonempty = count - np.bincount(group, left_mass == 0, len(kept))
        pooled = per_fold * (
            scatter.sum(axis=0) + _sum_by(group, left_scatter - scatter[cluster], len(kept))
        )
        within = pooled / np.maximum(size - nonempty, 1)[:, None]

        shares = mass[:, None] / kept
        shares[cluster, group] = 0  # these are changed
        real, imaginary = np.zeros((2, *within.shape))
        for c, (cosine, sine) in enumerate(zip(np.cos(mean), np.sin(mean), strict=True)):
            spread = covariance_of_cluster(per_fold * scatter[c], within, per_fold * mass[c])
            heights = shares[c][:, None] * np.exp(-spread / 2)  # (folds, frequencies)
            real += heights * cosine
            imaginary += heights * sine
        spread = covariance_of_cluster(
            per_fold[group] * left_scatter, within[group], per_fold[group] * left_mass[:, None]
        )
        heights = (left_mass / kept[group])[:, None] * np.exp(-spread / 2)
        real += _sum_by(group, heights * np.cos(left_mean), len(kept))
        imaginary += _sum_by(group, heights * np.sin(left_mean), len(kept))
        return real + 1j * imaginary


def _mean_and_scatter(mass: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return Σmx/Σm and Σmx² − (Σmx)²/Σm, zero where there is no mass."""
    mean = np.divide(first, mass[:, None], out=np.zeros_like(first), where=mass[:, None] > 0)
    return mean, np.where(mass[:, None] > 0, np.maximum(second - mean * first, 0), 0)


def _sum_by(labels: Array, values: Array, count: int) -> Array:
    """Return the sums of the values, or rows of values, with each label."""
    return indicators(labels, count) @ values
