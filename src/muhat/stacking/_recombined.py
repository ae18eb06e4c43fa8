"""Candidates whose rows are put together from parts of several rows of one cluster."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from muhat._arrays import Array
from muhat._validation import positive, whole_number
from muhat.stacking._candidates import EMPTY, Candidate
from muhat.stacking._measures import Measure, Recombination, product_of_parts
from muhat.stacking._sample import TREE_UP_TO, Folds, Sample, Waves, cut


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
    def parts(self, sample: Sample) -> Array:
        """Return the factors a_b of the columns, with sum one: (B, d)."""

    def labels(self, sample: Sample) -> Array:
        """Return the cluster of each row, counted from zero."""
        return cut(sample.tree[0][None], [self.n_clusters])[0, 0]

    def is_for(self, sample: Sample) -> bool:
        """Whether the sample has three rows to a cluster, and few enough rows for Ward's tree of all."""
        return 3 * whole_number(self, "n_clusters", self.n_clusters, 2) <= sample.size <= TREE_UP_TO

    def fit(self, sample: Sample) -> list[Measure]:
        """Return the distribution of such rows."""
        return [Recombination(sample.X, sample.masses, self.labels(sample), self.parts(sample))]

    def left_out(self, sample: Sample, folds: Folds, waves: Waves) -> list[Array]:
        """Return its wave without each fold, in which clusters keep the rows that are left."""
        labels, count = self.labels(sample), self.n_clusters
        cells, shape = folds.labels * count + labels, (len(folds.shares), count)
        mass = np.bincount(cells, sample.masses, shape[0] * count).reshape(shape)
        left = mass.sum(axis=0) - mass
        left[left < EMPTY * mass.sum(axis=0)] = 0
        parts = []
        for part in self.parts(sample):
            sums = Waves(sample, part * waves.frequencies).averages(cells, shape[0] * count).reshape(*shape, -1)
            parts.append(sums.sum(axis=0) - sums)
        return [product_of_parts(left, parts).sum(axis=1) / (1 - folds.shares)[:, None]]


@dataclass
class IndependentBlocks(Recombined):
    """Features in blocks that depend on one another within the blocks only, in each of a few clusters.

    Blocks are those of average linkage of the features by 1 − |correlation|.

    Parameters
    ----------
    n_clusters : int, default=2
        The number of clusters.
    n_blocks : int, default=5
        The number of blocks; with no more features than that, each is a block of its own.
    """

    n_clusters: int = 2
    n_blocks: int = 5

    def names(self, sample: Sample) -> list[str]:
        """Return one name, if there are several features and rows enough."""
        count = min(whole_number(self, "n_blocks", self.n_blocks, 2), sample.X.shape[1])
        return [f"{count} blocks of features"] if count > 1 and self.is_for(sample) else []

    def parts(self, sample: Sample) -> Array:
        """Return the indicator of each block."""
        X = sample._scaled
        spread = np.sqrt(sample.masses @ X**2)
        X = np.divide(X, spread, out=np.zeros_like(X), where=spread > 0)
        apart = 1 - np.abs((sample.masses * X.T) @ X)
        np.fill_diagonal(apart, 0)
        tree = linkage(squareform(np.maximum(apart, 0), checks=False), "average")
        blocks = fcluster(tree, self.n_blocks, "maxclust")
        return np.unique(blocks)[:, None] == blocks


@dataclass
class ClusterJitter(Recombined):
    """Every row moved by a share of the difference of two rows of its cluster: what is constant there stays as it is.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    share : float, default=0.5
        The share of the difference.
    """

    n_clusters: int = 8
    share: float = 0.5

    def names(self, sample: Sample) -> list[str]:
        """Return one name, if there are rows enough."""
        return ["jitter"] if self.is_for(sample) else []

    def parts(self, sample: Sample) -> Array:
        """Return 1, the share, and minus the share."""
        share = positive(self, "share", self.share)
        return np.outer([1, share, -share], np.ones(sample.X.shape[1]))
