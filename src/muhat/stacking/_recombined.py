"""Candidates whose rows are put together from parts of several rows of one cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat._tolerances import EMPTY_CLUSTER_SHARE
from muhat._validation import positive, whole_number
from muhat.stacking._candidates import Candidate, whole_numbers
from muhat.stacking._measures import Measure, Recombination, product_of_parts
from muhat.stacking._sample import MAX_ROWS_TREE, Folds, RandomFourierMoments, StackSample, cut


@dataclass
class Recombined(Candidate):
    """Rows put together from parts of several rows of one of Ward's clusters.

    Parameters
    ----------
    n_clusters : int
        The number of clusters. They are those of the whole sample when a fold is left out.
    """

    n_clusters: int

    @abstractmethod
    def parts(self, sample: StackSample) -> list[Array]:
        """Return the factors a_b of the columns, with sum one, of each estimate: arrays (B, d)."""

    def labels(self, sample: StackSample) -> Array:
        """Return the cluster of each row, counted from zero."""
        return cut(sample.tree[0], [self.n_clusters])[0]

    def is_for(self, sample: StackSample) -> bool:
        """Whether there are three rows per cluster, and few enough for Ward's tree of all."""
        return (
            3 * whole_number(self, "n_clusters", self.n_clusters, 2) <= sample.size <= MAX_ROWS_TREE
        )

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the distributions of such rows."""
        labels = self.labels(sample)
        return [
            Recombination(sample.X, sample.masses, labels, parts) for parts in self.parts(sample)
        ]

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return their waves without each fold, in which clusters keep the rows that are left."""
        labels, count = self.labels(sample), self.n_clusters
        cells, shape = folds.labels * count + labels, (len(folds.shares), count)
        mass = np.bincount(cells, sample.masses, shape[0] * count).reshape(shape)
        left = mass.sum(axis=0) - mass
        left[left < EMPTY_CLUSTER_SHARE * mass.sum(axis=0)] = 0

        def without_folds(part: Array) -> Array:
            sums = (
                RandomFourierMoments(sample, part * waves.frequencies)
                .averages(cells, shape[0] * count)
                .reshape(*shape, -1)
            )
            return sums.sum(axis=0) - sums

        found = [
            product_of_parts(left, [without_folds(part) for part in parts])
            for parts in self.parts(sample)
        ]
        return [wave.sum(axis=1) / (1 - folds.shares)[:, None] for wave in found]


@dataclass
class IndependentBlocks(Recombined):
    """Features in blocks that are independent of each other within each of a few clusters.

    Blocks are those of the sample's tree of features.

    Parameters
    ----------
    n_clusters : int, default=2
        The number of clusters.
    n_blocks : tuple of int, default=(2, 5)
        The numbers of blocks; with no more features than that, each is a block of its own.
    """

    n_clusters: int = 2
    n_blocks: Sequence[int] = (2, 5)

    def names(self, sample: StackSample) -> list[str]:
        """Return a name for each number of blocks, if there are enough features and rows."""
        if not self.is_for(sample):
            return []
        return [f"{count} blocks of features" for count in self._counts(sample)]

    def _counts(self, sample: StackSample) -> list[int]:
        asked, d = whole_numbers(self, "n_blocks", self.n_blocks, 2), sample.X.shape[1]
        return sorted({min(count, d) for count in asked if d > 1})

    def parts(self, sample: StackSample) -> list[Array]:
        """Return the indicators of the blocks, for each number of these."""
        levels = cut(sample.tree_of_features, self._counts(sample))
        return [np.arange(level.max() + 1)[:, None] == level for level in levels]


@dataclass
class ClusterJitter(Recombined):
    """Every row moved by a share of the difference of two rows of its cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    share : float, default=0.5
        The share of the difference.
    """

    n_clusters: int = 8
    share: float = 0.5

    def names(self, sample: StackSample) -> list[str]:
        """Return one name, if there are rows enough."""
        if not self.is_for(sample):
            return []
        return ["jitter"]

    def parts(self, sample: StackSample) -> list[Array]:
        """Return 1, the share, and minus the share."""
        share = positive(self, "share", self.share)
        factors = np.array([1, share, -share])[:, None]
        return [np.broadcast_to(factors, (3, sample.X.shape[1]))]
