"""Sums of the kernel over (group, fold), from which the means with and without a fold follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muhat._arrays import Array, rounding, share_between_cores, slices
from muhat.data import hashed_rows
from muhat.gram import FeatureMap
from muhat.groups._candidates import GroupVectors
from muhat.groups._moments import HeldOutFold
from muhat.groups._rows import LabelledRows
from muhat.kernels import Kernel

BLOCK_ROWS = 1024
"""Rows and columns of a block of the Gram matrix: 8 MB, of which each core holds one at a time."""

FEATURE_ROWS = 8192
"""Rows whose features are held at a time."""

N_SUMS = 3
"""Sums of each cell beside those of features: of weights, their squares, and squared norms."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows in the order of their cells: by group, and within a group by fold.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows, sorted.
    masses : array of shape (n,)
        The weight of each row, one without weights.
    cells : array of int of shape (n,)
        The cell of each row, t·F + f, ascending.
    T, F : int
        The numbers of groups and folds.
    """

    X: Array
    masses: Array
    cells: Array
    T: int
    F: int

    @classmethod
    def from_rows(cls, rows: LabelledRows, folds: Array, F: int) -> CellRows:
        """Sort rows by group and fold; those of one cell by a hash, so that their order is lost."""
        cells = rows.codes * F + folds
        order = np.lexsort([hashed_rows(rows.X, 0), cells])
        return cls(rows.X[order], rows.masses[order], cells[order], len(rows.labels), F)

    def with_rows(self, X: Array) -> CellRows:
        """Return the same with other values of the rows."""
        return replace(self, X=X)

    @property
    def groups(self) -> Array:
        """The group of each row, of shape (n,)."""
        return self.cells // self.F

    @cached_property
    def has_weights(self) -> bool:
        """Whether any row has a weight other than one."""
        return bool((self.masses != 1).any())

    def sums(self, values: Array) -> Array:
        """Return the sums of a value of each row over every cell, of shape (T, F)."""
        totals = np.bincount(self.cells, weights=values, minlength=self.T * self.F)
        return totals.reshape(self.T, self.F)


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """What is summed up over every (group, fold).

    Attributes
    ----------
    mass : array of shape (T, F)
        Σ m_i, the numbers of rows if they have no weights.
    squares : array of shape (T, F)
        Σ m_i².
    own : array of shape (T, F)
        Σ m_i k(x_i, x_i).
    """

    mass: Array
    squares: Array
    own: Array

    @abstractmethod
    def inner_products(self) -> Array:
        """Return G, the inner products of the plain means of all rows, of shape (T, T)."""

    @abstractmethod
    def vectors(self) -> GroupVectors:
        """Return the plain means of all rows as vectors."""

    @abstractmethod
    def fold_means(self, vectors: GroupVectors) -> Array:
        """Return the mean of every cell along the vectors of the groups, of shape (T, F, r).

        It is zero where a cell has no rows.
        """

    @abstractmethod
    def held_out(self, fold: int) -> HeldOutFold:
        """Return the groups without the rows of a fold, and the means of these rows."""

    def held_out_folds(self) -> Iterator[HeldOutFold]:
        """Yield the groups without each fold that can be left out: it has rows, and not all."""
        totals = self.mass.sum(axis=0)
        for fold in np.flatnonzero((totals > 0) & (totals < totals.sum())):
            yield self.held_out(int(fold))

    def _sizes(self, kept: Array) -> Array:
        """Return the effective numbers of rows (Σ m)²/Σ m² in the folds that are kept."""
        return self.mass[:, kept].sum(axis=1) ** 2 / self.squares[:, kept].sum(axis=1)

    def _own_means(self, kept: Array) -> Array:
        """Return the means of k(x, x) in the folds that are kept."""
        return self.own[:, kept].sum(axis=1) / self.mass[:, kept].sum(axis=1)

    def _kept_without(self, fold: int) -> tuple[Array, Array]:
        """Return which folds are kept without one, and the places of groups with rows in them."""
        kept = np.arange(self.mass.shape[1]) != fold
        return kept, np.flatnonzero(self.mass[:, kept].sum(axis=1) > 0)


@dataclass(frozen=True, eq=False)
class ExactCells(Cells):
    """Sums of K itself: ``sums[t, f, u, g]`` is Σ m_i m_j k(x_i, x_j) over two cells."""

    sums: Array

    @classmethod
    def from_rows(cls, kernel: Kernel, rows: CellRows) -> ExactCells:
        """Sum up the Gram matrix in blocks; it is never held whole."""
        n, size = len(rows.X), rows.T * rows.F
        sums = np.zeros((size, size))

        def strip(i: slice) -> Array:
            first, last = rows.cells[i.start], rows.cells[i.stop - 1] + 1
            found = np.zeros((last - first, size))
            for j in slices(i.start, n, BLOCK_ROWS):
                values = kernel(rows.X[i], rows.X[j] if i != j else None)
                places, totals = _block_sums(values, rows, i, j)
                if i == j:
                    totals = totals / 2  # the other half comes from the transposed matrix
                found[np.ix_(places[0] - first, places[1])] += totals
            return found

        strips = list(slices(0, n, BLOCK_ROWS))
        for i, found in zip(strips, share_between_cores(strip, strips), strict=True):
            sums[rows.cells[i.start] : rows.cells[i.stop - 1] + 1] += found
        sums += sums.T
        own = rows.sums(rows.masses * kernel.diagonal(rows.X))
        shape = (rows.T, rows.F, rows.T, rows.F)
        masses = rows.masses
        return cls(rows.sums(masses), rows.sums(masses**2), own, sums.reshape(shape))

    def inner_products(self) -> Array:
        return self._means(np.ones(self.mass.shape[1], bool))

    def vectors(self) -> GroupVectors:
        everything = np.ones(self.mass.shape[1], bool)
        Z = Factor.from_matrix(self._means(everything)).Z
        return GroupVectors(Z, self._sizes(everything), self._own_means(everything))

    def fold_means(self, vectors: GroupVectors) -> Array:
        totals = np.where(self.mass > 0, self.mass, 1)[:, :, None] * self.mass.sum(axis=1)
        products = self.sums.sum(axis=3) / totals
        return products @ (vectors.Z / (vectors.Z**2).sum(axis=0))

    def held_out(self, fold: int) -> HeldOutFold:
        kept, present = self._kept_without(fold)
        here = self._some_groups(present)
        factor = Factor.from_matrix(here._means(kept))
        vectors = GroupVectors(factor.Z, here._sizes(kept), here._own_means(kept))
        counts = here.mass[:, fold]
        cross = here.sums[:, kept][:, :, :, fold].sum(axis=1)
        cross /= here.mass[:, kept].sum(axis=1)[:, None] * np.where(counts > 0, counts, 1)
        return HeldOutFold(fold, vectors, present, factor.coordinates(cross), counts)

    def _some_groups(self, present: Array) -> ExactCells:
        if len(present) == len(self.mass):
            return self
        sums = self.sums[present][:, :, present]
        return ExactCells(self.mass[present], self.squares[present], self.own[present], sums)

    def _means(self, kept: Array) -> Array:
        """Return the inner products of the means of the rows in the folds that are kept."""
        totals = self.mass[:, kept].sum(axis=1)
        G = self.sums[:, kept][:, :, :, kept].sum(axis=(1, 3)) / np.outer(totals, totals)
        return (G + G.T) / 2


def _block_sums(
    values: Array, rows: CellRows, i: slice, j: slice
) -> tuple[tuple[Array, Array], Array]:
    """Return the cells of a block's rows and columns, and the sums of its values over them."""
    places, starts = [], []
    for some in (i, j):
        cells, first = np.unique(rows.cells[some], return_index=True)
        places.append(cells)
        starts.append(first)
    if rows.has_weights:
        values = values * rows.masses[j] * rows.masses[i, None]
    by_column = np.add.reduceat(values, starts[1], axis=1, dtype=np.float64)
    return (places[0], places[1]), np.add.reduceat(by_column, starts[0], axis=0)


@dataclass(frozen=True, eq=False)
class Factor:
    """Vectors Z with ZZᵀ = G, from the eigenpairs G = V diag(λ) Vᵀ."""

    V: Array
    roots: Array
    """√λ, none of them zero, so that coordinates can be found."""

    @classmethod
    def from_matrix(cls, G: Array) -> Factor:
        """Decompose a matrix of inner products."""
        gamma, V = np.linalg.eigh(G)
        least = max(rounding(gamma) * float(gamma[-1]), np.finfo(np.float64).tiny)
        return cls(V, np.sqrt(np.maximum(gamma, least)))

    @cached_property
    def Z(self) -> Array:
        """The vectors, of shape (T, T)."""
        return self.V * self.roots

    def coordinates(self, products: Array) -> Array:
        """Return vectors Y, one for each column of ``products``, with ZYᵀ = products."""
        return (products.T @ self.V) / self.roots


@dataclass(frozen=True, eq=False)
class CellTotals:
    """What some rows sum up to in their cells.

    Attributes
    ----------
    cells : array of int of shape (cells,)
        The cells that have rows, ascending.
    sums : array of shape (cells, r + 3)
        Σ m_i z(x_i), Σ m_i, Σ m_i² and Σ m_i ‖z(x_i)‖².
    """

    cells: Array
    sums: Array

    @classmethod
    def from_sorted(cls, features: FeatureMap, X: Array, masses: Array, cells: Array) -> CellTotals:
        """Return the sums of rows that are sorted by their cells."""
        Z = features(X).astype(np.float64, copy=False)
        squared_norms = np.einsum("ij,ij->i", Z, Z)
        present, starts = np.unique(cells, return_index=True)
        sums = np.empty((len(present), Z.shape[1] + N_SUMS))
        others = np.column_stack([masses, masses**2, masses * squared_norms])
        sums[:, -N_SUMS:] = np.add.reduceat(others, starts, axis=0)
        Z *= masses[:, None]
        sums[:, :-N_SUMS] = np.add.reduceat(Z, starts, axis=0)
        return cls(present, sums)


@dataclass(frozen=True, eq=False)
class SummedCells:
    """Sums over cells of rows that come in batches; two of them add up.

    Parts are kept until they have more rows than there are cells: adding a batch then costs no pass
    over all cells.

    Attributes
    ----------
    size : int
        The number of cells.
    parts : tuple of CellTotals
        What adds up to the sums.
    """

    size: int
    parts: tuple[CellTotals, ...]

    def __add__(self, other: SummedCells) -> SummedCells:
        both = SummedCells(self.size, self.parts + other.parts)
        n_rows = sum(len(part.cells) for part in both.parts)
        if n_rows <= self.size + FEATURE_ROWS:
            return both
        together = CellTotals(np.arange(self.size), both.totals())
        return SummedCells(self.size, (together,))

    def totals(self) -> Array:
        """Return the sums of all cells, of shape (cells, r + 3)."""
        found = np.zeros((self.size, self.parts[0].sums.shape[1]))
        for part in self.parts:
            found[part.cells] += part.sums
        return found


@dataclass(frozen=True, eq=False)
class FeatureCells(Cells):
    """Sums of features, ``sums[t, f]`` = Σ m_i z(x_i), where ⟨z(x), z(y)⟩ stands for k(x, y)."""

    sums: Array

    @classmethod
    def from_rows(cls, features: FeatureMap, rows: CellRows) -> FeatureCells:
        """Sum up the features of some rows at a time."""
        totals = np.zeros((rows.T * rows.F, features.size + N_SUMS))
        for some in slices(0, len(rows.X), FEATURE_ROWS):
            part = CellTotals.from_sorted(
                features, rows.X[some], rows.masses[some], rows.cells[some]
            )
            totals[part.cells] += part.sums
        return cls.from_totals(totals, rows.T, rows.F)

    @classmethod
    def from_totals(cls, totals: Array, T: int, F: int) -> FeatureCells:
        """Return the sums over cells, of shape (T·F, r + 3) as `CellTotals` has them."""
        mass, squares, own = totals[:, -N_SUMS:].T.reshape(N_SUMS, T, F)
        return cls(mass, squares, own, totals[:, :-N_SUMS].reshape(T, F, -1))

    def inner_products(self) -> Array:
        Z = self.vectors().Z
        return Z @ Z.T

    def vectors(self) -> GroupVectors:
        everything = np.ones(self.mass.shape[1], bool)
        Z = self.sums.sum(axis=1) / self.mass.sum(axis=1)[:, None]
        return GroupVectors(Z, self._sizes(everything), self._own_means(everything))

    def fold_means(self, vectors: GroupVectors) -> Array:
        return self.sums / np.where(self.mass > 0, self.mass, 1)[:, :, None]

    def held_out(self, fold: int) -> HeldOutFold:
        kept, present = self._kept_without(fold)
        here = FeatureCells(
            self.mass[present], self.squares[present], self.own[present], self.sums[present]
        )
        Z = here.sums[:, kept].sum(axis=1) / here.mass[:, kept].sum(axis=1)[:, None]
        vectors = GroupVectors(Z, here._sizes(kept), here._own_means(kept))
        counts = here.mass[:, fold]
        tested = here.sums[:, fold] / np.where(counts > 0, counts, 1)[:, None]
        return HeldOutFold(fold, vectors, present, tested, counts)
