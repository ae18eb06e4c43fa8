"""A sample seen by the candidates: its rows and masses, what they share, and how rows are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist, squareform

from muhat._arrays import Array, slices
from muhat.gram._random_features import frequency_law
from muhat.kernels import Kernel, Laplacian
from muhat.kernels._base import terms

ROWS = 8192
"""Rows whose waves are held at once."""

DENSE_UP_TO = 2000
"""Rows up to which the Gram matrix is held; beyond, its products are made from blocks."""

FOLDS = 20
"""The number of random folds, where rows are not left out one by one."""

TREE_UP_TO = 2000
"""Rows of which Ward's tree is made; the others join the nearest cluster."""

FLOOR = 0.1
"""What is added to the variances when rows are whitened, as a share of their mean."""

REPEATS_UP_TO = 5000
"""Rows up to which those that repeat are looked at."""

LEAST_DISTINCT, ELSEWHERE = 10, 2.0
"""Distinct rows from which on repeats can be told from chance, and how far their mean may be from KME, as a squared
distance in units of what it is where chance alone decides which rows repeat."""

CLOSE = 1e-12
"""Scores that are nearer to each other are equal."""

SPARSE_FROM = 100_000
"""The entries of a matrix of indicators beyond which it is held sparse."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in double precision with masses, all positive, that sum to one, and the kernel with its bandwidth."""

    kernel: Kernel
    X: Array
    masses: Array
    size: int
    """The number of rows of the whole sample, from which this may be what is left."""
    redrawn: float | None = None
    """If these are the distinct rows of a sample, the share of draws of a row that was drawn more than once; zero where
    the whole sample is there several times."""

    @classmethod
    def from_rows(cls, kernel: Kernel, X: Array) -> Sample:
        """Return all rows with equal masses; only the distinct ones, where the others are these, drawn again."""
        redrawn = None
        if 1 < len(X) <= REPEATS_UP_TO:
            first, counts = distinct_rows(X)
            if is_drawn_again(kernel, X, first, counts):
                redrawn = 0.0 if is_repeated_as_a_whole(counts) else float(counts[counts > 1].sum() / len(X))
                X = X[first]
        return cls(kernel, X, np.full(len(X), 1 / len(X)), len(X), redrawn)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.X)

    @cached_property
    def center(self) -> Array:
        """x̄, the mean of the rows."""
        return self.masses @ self.X

    def without(self, rows: Array) -> Sample:
        """Return the sample without some rows, given as a mask; the bandwidth stays."""
        left = self.masses[~rows]
        return Sample(self.kernel, self.X[~rows], left / left.sum(), self.size, self.redrawn)

    def product(self, V: Array) -> Array:
        """Return K V."""
        return self._gram @ V if self.n <= DENSE_UP_TO else self.kernel.product(self.X, V)

    @cached_property
    def _gram(self) -> Array:
        return self.kernel(self.X)

    @cached_property
    def tree(self) -> tuple[Array, Array, Array]:
        """Ward's tree of all rows, or of some that are drawn; which these are; and all rows, as it sees them."""
        return self._tree(self._scaled)

    @cached_property
    def whitened_tree(self) -> tuple[Array, Array, Array]:
        """The same of whitened rows."""
        X = self._scaled
        variances, axes = np.linalg.eigh((self.masses * X.T) @ X)
        floor = FLOOR * variances.mean() or 1.0
        return self._tree(X @ axes / np.sqrt(np.maximum(variances, 0) + floor))

    @cached_property
    def tree_of_features(self) -> Array:
        """The features by average linkage of 1 − |correlation|; its heights are 0, 1, …, to be cut into any number."""
        X = self._scaled
        spread = np.sqrt(self.masses @ X**2)
        X = np.divide(X, spread, out=np.zeros_like(X), where=spread > 0)
        apart = 1 - np.abs((self.masses * X.T) @ X)
        np.fill_diagonal(apart, 0)
        tree = linkage(squareform(np.maximum(apart, 0), checks=False), "average")
        tree[:, 2] = np.arange(len(tree))
        return tree

    @property
    def _scaled(self) -> Array:
        """The rows, centred and in a unit in which no square overflows."""
        X = self.X - self.center
        return X / (np.abs(X).max() or 1.0)

    def _tree(self, X: Array) -> tuple[Array, Array, Array]:
        members = np.arange(self.n)
        if self.n > TREE_UP_TO:
            members = np.sort(np.random.default_rng(0).choice(self.n, TREE_UP_TO, replace=False))
        return linkage(X[members], "ward"), members, X

    def nearest(self, count: int) -> Array:
        """Return the rows nearest to each row, itself among them, nearest first; ties in their order: (n, count)."""
        found = np.empty((self.n, count), dtype=np.intp)
        for rows in slices(0, self.n, max(1, ROWS * 512 // self.n)):
            found[rows] = _smallest(cdist(self.X[rows], self.X), count)
        return found


def distinct_rows(X: Array) -> tuple[Array, Array]:
    """Return the place of the first of all rows that are equal, in their order, and how many these are."""
    first, counts = np.unique(X, axis=0, return_index=True, return_counts=True)[1:]
    order = np.argsort(first)
    return first[order], counts[order]


def is_drawn_again(kernel: Kernel, X: Array, first: Array, counts: Array) -> bool:
    """Whether rows that are equal are one row of a finite population, drawn again, rather than equal by chance.

    Four things must tell so. There are ten distinct rows at least, and half as many as draws: of fewer, counts say how
    likely they are. The narrowest kernel prefers to count rows once (`is_better_once`). More pairs of rows are equal
    than differ in one or two columns: where rows are equal by chance, as those of a few columns of whole numbers or of
    categories (of which another one changes two indicators), many more are nearly equal. And where a row is says
    nothing on how often it was drawn: KME is about as far from the mean of the distinct rows as by chance.
    """
    n, D, is_copied = len(X), len(counts), is_repeated_as_a_whole(counts)
    if n == D or D < LEAST_DISTINCT or not (is_copied or (n <= 2 * D and is_better_once(counts))):
        return False
    differing = np.rint(pdist(X, "hamming") * X.shape[1])  # columns, of each pair
    if ((differing == 1) | (differing == 2)).sum() >= (differing == 0).sum():
        return False
    return is_copied or unevenness(kernel, X[first], counts) <= ELSEWHERE


def unevenness(kernel: Kernel, rows: Array, counts: Array) -> float:
    """Return ‖KME − mean of the distinct rows‖² in units of its mean over all ways to deal counts out to the rows."""
    D, v = len(counts), counts / counts.sum() - 1 / len(counts)  # vᵀKv in units of ‖v‖² tr(HK)/(D − 1)
    on_v, sums = kernel.product(rows, np.column_stack([v, np.ones(D)])).T
    by_chance = float((v @ v) * (kernel.diagonal(rows).sum() - sums.sum() / D) / (D - 1))
    return float(v @ on_v) / by_chance if by_chance > 0 else 0.0


def is_repeated_as_a_whole(counts: Array) -> bool:
    """Whether all rows are there equally often, as those of a table that was put below itself."""
    return bool(np.ptp(counts) == 0)


def is_better_once(counts: Array) -> bool:
    """Whether leave-one-out with the kernel k(x, y) = 1 if x = y else 0 prefers the mean of the distinct rows to KME.

    The scores are ‖μ‖² − 2μ(x_i) without x_i. It does not where a few likely rows repeat often.
    """
    n, D = int(counts.sum()), len(counts)
    single, squares = np.count_nonzero(counts == 1) / n, float((counts**2).sum())
    plain = (squares - 2 * squares / n + 1) / (n - 1) ** 2 - 2 * (squares - n) / (n * (n - 1))
    once = single / (D - 1) - (1 - single) / D
    return bool(once < plain - CLOSE)


def cut(trees: Array, sizes: Sequence[int]) -> Array:
    """Return the clusters of trees that are cut into so many, fewer where heights are tied: (trees, sizes, n).

    Of each tree, given by the rows of ``scipy.cluster.hierarchy.linkage``, all merges are made that are no higher than
    the last that is needed.
    """
    count, n = len(trees), trees.shape[1] + 1
    heights, nodes = trees[:, :, 2], np.arange(2 * n - 1)
    ascending = np.concatenate([np.full((count, 1), -np.inf), heights], axis=1)
    made = np.stack([(heights <= ascending[:, [n - size]]).sum(axis=1) for size in sizes], axis=1)
    parents = np.broadcast_to(nodes, (count, 2 * n - 1)).copy()
    for side in (0, 1):
        np.put_along_axis(parents, trees[:, :, side].astype(np.intp), nodes[n:][None], axis=1)
    tops = np.where(parents[:, None] < n + made[..., None], parents[:, None], nodes)
    before = None
    while before is None or not np.array_equal(before, tops):  # the top of the top, until all are reached
        before, tops = tops, np.take_along_axis(tops, tops, axis=-1)
    leaves = tops[..., :n]
    is_top = np.zeros(tops.shape, dtype=bool)
    np.put_along_axis(is_top, leaves, True, axis=-1)
    return np.take_along_axis(is_top.cumsum(axis=-1) - 1, leaves, axis=-1)


def _smallest(values: Array, count: int) -> Array:
    """Return the places of the smallest values of each row, smallest first; ties in their order."""
    if 4 * count > values.shape[1]:
        return np.argsort(values, axis=1, kind="stable")[:, :count]
    bound = np.partition(values, count - 1, axis=1)[:, count - 1 : count]
    places = np.argsort(np.where(values <= bound, values, np.inf), axis=1, kind="stable")
    return places[:, :count]


@dataclass(frozen=True, eq=False)
class Folds:
    """The groups in which rows are left out: each row by itself, or a number of random folds."""

    labels: Array
    """The group of each row, counted from zero."""
    masses: Array
    """The masses of the rows."""

    @classmethod
    def from_sample(cls, sample: Sample, n_splits: int | None, rng: np.random.Generator) -> Folds:
        """Return each row by itself, or random folds of equal size if a number is given."""
        if n_splits is None:
            return cls(np.arange(sample.n), sample.masses)
        return cls(rng.permutation(np.arange(sample.n) % n_splits), sample.masses)

    @cached_property
    def shares(self) -> Array:
        """The mass of each group."""
        return np.bincount(self.labels, self.masses)

    @cached_property
    def sizes(self) -> Array:
        """1/Σp², how many equal rows the masses p of those that are left amount to, for each group."""
        squares = np.bincount(self.labels, self.masses**2)
        return (1 - self.shares) ** 2 / np.maximum(squares.sum() - squares, np.finfo(float).tiny)

    @cached_property
    def left(self) -> Array:
        """The masses of the rows that are left, in a column for each group: (n, groups)."""
        masses = np.repeat(self.masses[:, None], len(self.shares), axis=1)
        masses[np.arange(len(masses)), self.labels] = 0
        return masses / (1 - self.shares)

    def __iter__(self) -> Iterator[Array]:
        """Yield the rows of each group, as masks."""
        return (self.labels == group for group in range(len(self.shares)))


@dataclass(frozen=True, eq=False)
class Waves:
    """Functions of the RKHS by their values at random frequencies: ⟨f, g⟩ ≈ k(x, x) mean_ω conj(F(ω)) G(ω).

    The wave of a measure is its characteristic function, with x̄ for the origin: that of a Gaussian depends on the data
    through the mean and the variance of ω·x alone.
    """

    sample: Sample
    frequencies: Array

    @cached_property
    def _phases(self) -> Array:
        return self._block(slice(None))

    def _block(self, rows: slice) -> Array:
        return (self.sample.X[rows] - self.sample.center) @ self.frequencies.T

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        if self.sample.n <= ROWS:
            yield slice(None), self._phases
            return
        for rows in slices(0, self.sample.n, ROWS):
            yield rows, self._block(rows)

    @cached_property
    def _all_waves(self) -> Array:
        return _wave(self._phases)

    def _waves(self) -> Iterator[tuple[slice, Array]]:
        if self.sample.n <= ROWS:
            yield slice(None), self._all_waves
            return
        for rows, phases in self._blocks():
            yield rows, _wave(phases)

    @cached_property
    def squares(self) -> Array:
        """‖ω‖² of each frequency."""
        return np.einsum("ij,ij->i", self.frequencies, self.frequencies)

    def of_weights(self, V: Array) -> Array:
        """Return the waves of weights on the rows, in columns: (columns, frequencies)."""
        total = np.zeros((V.shape[1], len(self.frequencies)), dtype=complex)
        for rows, wave in self._waves():
            total += V[rows].T @ wave
        return total

    def averages(self, cells: Array, count: int) -> Array:
        """Return Σ m_i exp(iω·x_i) over the rows of each cell."""
        total = np.zeros((count, len(self.frequencies)), dtype=complex)
        for rows, wave in self._waves():
            total += self._members(cells, count, rows) @ wave
        return total

    def moments(self, cells: Array, count: int) -> tuple[Array, Array, Array]:
        """Return Σ m_i, Σ m_i ω·x_i and Σ m_i (ω·x_i)² over the rows of each cell."""
        first = np.zeros((count, len(self.frequencies)))
        second = np.zeros_like(first)
        for rows, phases in self._blocks():
            members = self._members(cells, count, rows)
            first += members @ phases
            second += members @ phases**2
        return np.bincount(cells, self.sample.masses, count), first, second

    def _members(self, cells: Array, count: int, rows: slice) -> Any:
        return indicators(cells[rows], count, self.sample.masses[rows])


def _wave(phases: Array) -> Array:
    """Return exp(iφ), in half the time that the exponential of complex numbers takes."""
    wave = np.empty(phases.shape, dtype=complex)
    np.cos(phases, out=wave.real)
    np.sin(phases, out=wave.imag)
    return wave


def indicators(labels: Array, count: int, weights: Array | None = None) -> Any:
    """Return the matrix whose product with rows of values sums them up by label: sparse, unless it is small."""
    weights = np.ones(len(labels)) if weights is None else weights
    places = labels, np.arange(len(labels))
    if count * len(labels) > SPARSE_FROM:
        return csr_array((weights, places), shape=(count, len(labels)))
    matrix = np.zeros((count, len(labels)))
    matrix[places] = weights
    return matrix


def orthogonal_frequencies(kernel: Kernel, count: int, d: int, rng: np.random.Generator) -> Array:
    """Return frequencies of the kernel's law, orthogonal d by d where the law has no preferred direction.

    Raises
    ------
    ValueError
        If the kernel has no such law.
    """
    drawn = frequency_law(kernel)(rng, (count, d))
    if any(isinstance(part, Laplacian) for _, part in terms(kernel)):
        return drawn
    bases = np.linalg.qr(rng.standard_normal((-(-count // d), d, d)))[0]
    return np.linalg.norm(drawn, axis=1)[:, None] * bases.reshape(-1, d)[:count]
