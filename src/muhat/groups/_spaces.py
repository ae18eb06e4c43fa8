"""Where the estimated means live: functions on the sample's own rows, or on features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array, slices
from muhat.embedding import Element, Embedding
from muhat.gram import FeatureMap
from muhat.groups._candidates import GroupVectors
from muhat.groups._cells import CellRows, Cells, ExactCells, FeatureCells
from muhat.groups._dimension import effective_dimension
from muhat.groups._joint import JointMeans
from muhat.groups._translation import allowance
from muhat.kernels import Kernel

CHUNK_ENTRIES = 2**22
"""Kernel values that are held at a time where the means are evaluated: 32 MB."""


@dataclass(frozen=True, eq=False)
class NewGroup:
    """The plain mean of a new group beside the fitted ones.

    Attributes
    ----------
    vector : array of shape (r + 1,)
        Along the vectors of the fitted groups, and its length outside of them.
    n : int
        Its number of rows.
    own : float
        Its mean of k(x, x).
    """

    vector: Array
    n: int
    own: float


class MeanSpace(ABC):
    """A space of functions that the means of groups are computed in."""

    kernel: Kernel
    """k, every parameter a number."""

    @abstractmethod
    def cells(self, rows: CellRows) -> Cells:
        """Return the sums over (group, fold)."""

    @abstractmethod
    def gram(self, X: Array) -> Array:
        """Return the inner products of k(x, ·) of some rows, as this space has them."""

    @abstractmethod
    def embedding(self, joint: JointMeans, t: int, weights: Callable[[], Array]) -> Element:
        """Return the estimated mean of group t; weights on the plain means are there if needed."""

    @abstractmethod
    def values(self, X: Array, joint: JointMeans, weights: Callable[[], Array]) -> Array:
        """Return the values of all estimated means at the rows of X, of shape (m, T)."""

    @abstractmethod
    def new_group(self, X: Array, vectors: GroupVectors) -> NewGroup:
        """Return the plain mean of the rows of X beside those of the fitted groups."""

    def estimate(self, rows: CellRows) -> JointMeans:
        """Estimate the means of all groups together."""
        kappa = allowance(effective_dimension(self.gram, rows))
        return JointMeans.from_cells(self.cells(rows), kappa)


@dataclass(frozen=True, eq=False)
class PointSpace(MeanSpace):
    """The kernel's RKHS: a mean is a sum of k(x_i, ·) over all rows.

    Attributes
    ----------
    kernel : Kernel
        k, every parameter a number.
    points : array of shape (n, d)
        The rows, group by group.
    shares : array of shape (n,)
        The share of each row in its group's plain mean.
    groups : array of int of shape (n,)
        The group of each row, ascending.
    """

    kernel: Kernel
    points: Array
    shares: Array
    groups: Array

    @classmethod
    def from_rows(cls, kernel: Kernel, rows: CellRows) -> PointSpace:
        """Return the space of functions on these rows."""
        totals = np.bincount(rows.groups, weights=rows.masses)
        return cls(kernel, rows.X, rows.masses / totals[rows.groups], rows.groups)

    def cells(self, rows: CellRows) -> ExactCells:
        return ExactCells.from_rows(self.kernel, rows)

    def gram(self, X: Array) -> Array:
        return self.kernel(X)

    def embedding(self, joint: JointMeans, t: int, weights: Callable[[], Array]) -> Embedding:
        return Embedding(self.kernel, self.points, weights()[t][self.groups] * self.shares)

    def values(self, X: Array, joint: JointMeans, weights: Callable[[], Array]) -> Array:
        return self._plain_values(X) @ weights().T

    def new_group(self, X: Array, vectors: GroupVectors) -> NewGroup:
        products = self._plain_values(X).mean(axis=0)
        squared_lengths = (vectors.Z**2).sum(axis=0)  # Z = V √λ, the columns of V orthonormal
        inside = (products @ vectors.Z) / squared_lengths
        plain = np.full(len(X), 1 / len(X))
        squared_norm = float(plain @ self.kernel.product(X, plain))
        outside = np.sqrt(max(squared_norm - float(inside @ inside), 0.0))
        own = float(self.kernel.diagonal(X).mean())
        return NewGroup(np.append(inside, outside), len(X), own)

    def _plain_values(self, X: Array) -> Array:
        """Return the values of the plain means at the rows of X, of shape (m, T)."""
        values = np.empty((len(X), len(self._starts)))
        X = X.astype(self.points.dtype, copy=False)
        for some in slices(0, len(X), max(1, CHUNK_ENTRIES // len(self.points))):
            K = self.kernel(X[some], self.points) * self.shares
            values[some] = np.add.reduceat(K, self._starts, axis=1)
        return values

    @cached_property
    def _starts(self) -> Array:
        """The place of each group's first row."""
        return np.flatnonzero(np.diff(self.groups, prepend=-1))


@dataclass(frozen=True, eq=False)
class FeatureSpace(MeanSpace):
    """The space of a feature map: a mean is a vector of its r features."""

    features: FeatureMap

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """The kernel that the features stand for."""
        return self.features.kernel

    def cells(self, rows: CellRows) -> FeatureCells:
        return FeatureCells.from_rows(self.features, rows)

    def gram(self, X: Array) -> Array:
        Z = self._features(X)
        return Z @ Z.T

    def embedding(self, joint: JointMeans, t: int, weights: Callable[[], Array]) -> Element:
        return self.features.embedding(joint.means[t].astype(self.features.precision))

    def values(self, X: Array, joint: JointMeans, weights: Callable[[], Array]) -> Array:
        values = np.empty((len(X), len(joint.means)))
        for some in slices(0, len(X), max(1, CHUNK_ENTRIES // self.features.size)):
            values[some] = self._features(X[some]) @ joint.means.T
        return values

    def new_group(self, X: Array, vectors: GroupVectors) -> NewGroup:
        Z = self._features(X)
        own = float((Z**2).sum(axis=1).mean())
        return NewGroup(np.append(Z.mean(axis=0), 0.0), len(X), own)

    def _features(self, X: Array) -> Array:
        return self.features(X).astype(np.float64, copy=False)
