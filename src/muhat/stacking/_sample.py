"""The sample that candidates are fitted to, its folds, and its moments at random frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array
from scipy.special import ndtri

from muhat._arrays import Array, slices
from muhat.gram._problem import dimension_of
from muhat.kernels import Kernel
from muhat.selection._base import bias_factor_of

ROWS_PER_CHUNK = 8192
"""Rows whose values at all frequencies are held at once."""

MAX_ROWS_DENSE = 2000
"""Rows up to which the Gram matrix is held; beyond, its products are made from blocks."""

N_FOLDS = 20
"""The number of random folds, where rows are not left out one by one."""

MAX_ROWS_TREE = 2000
"""Maximum number of rows in Ward's tree; the others join the nearest cluster."""

VARIANCE_FLOOR = 0.1
"""Added to the variances when rows are whitened, as a share of their mean."""

TIE_SHARE = 1e-3
"""Noise that breaks ties before clustering, as a share of the typical distance to the median.

Equal heights in Ward's tree would otherwise be ordered by rounding, and a change of 1e-9 would
change the clusters.
"""

RANK_REACH = 0.1
"""How near values count in part in each other's ranks, as a share of the feature's spread."""

N_ROWS_FOR_DISTINCT = 500
"""Rows among which the distinct ones, and the components that share the variance, are counted."""

SAME_ROW_TOL = 1e-4
"""Squared RKHS distance, as a share of the variance, below which two rows count as one."""

MIN_SIZE_SPARSE = 100_000
"""The entries of a matrix of indicators beyond which it is held sparse."""


@dataclass(frozen=True, eq=False)
class StackSample:
    """Rows in float64 with positive masses of sum one, and the kernel with its bandwidth."""

    kernel: Kernel
    X: Array
    masses: Array
    size: int
    """The number of rows of the whole sample, from which this may be what is left."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.X)

    @cached_property
    def center(self) -> Array:
        """x̄, the mean of the rows; exact where all rows are equal, however large they are."""
        return self.X[0] + self.masses @ (self.X - self.X[0])

    def without(self, rows: Array) -> StackSample:
        """Return the sample without some rows, given as a mask; the bandwidth stays."""
        left = self.masses[~rows]
        return StackSample(self.kernel, self.X[~rows], left / left.sum(), self.size)

    def product(self, V: Array) -> Array:
        """Return K V."""
        if self.n > MAX_ROWS_DENSE:
            return self.kernel.product(self.X, V)
        return self._gram @ V

    @cached_property
    def _gram(self) -> Array:
        return self.kernel(self.X)

    @cached_property
    def tree(self) -> tuple[Array, Array, Array]:
        """Ward's tree of all rows or of a random subset, the subset, and all rows as clustered."""
        return self._tree(self._scaled)

    @cached_property
    def whitened_tree(self) -> tuple[Array, Array, Array]:
        """The same of whitened rows."""
        X = self._scaled
        variances, axes = np.linalg.eigh((self.masses * X.T) @ X)
        floor = VARIANCE_FLOOR * variances.mean() or 1.0
        # Rotated back, so that whitened rows are continuous in the rows if eigenvalues repeat.
        return self._tree(X @ (axes / np.sqrt(np.maximum(variances, 0) + floor)) @ axes.T)

    @cached_property
    def tree_of_features(self) -> Array:
        """Average linkage of the features by 1 − |correlation|, with heights 0, 1, …"""
        X = self._in_unit_spread
        apart = 1 - np.abs((self.masses * X.T) @ X)
        apart += TIE_SHARE * np.random.default_rng(0).random(apart.shape)  # breaks ties
        tree = linkage(
            np.maximum((apart + apart.T)[np.triu_indices(len(apart), 1)], 0) / 2, "average"
        )
        tree[:, 2] = np.arange(len(tree))
        return tree

    @cached_property
    def normal_scores(self) -> Array:
        """Φ⁻¹ of the share of rows below each value, smoothed: continuous also where values tie.

        Every row counts in part, linearly, within a tenth of a feature's spread of its value.
        """
        found = np.empty_like(self.X)
        for j, values in enumerate(self._in_unit_spread.T):
            order = np.argsort(values, kind="stable")
            sorted_values, shares = values[order], np.cumsum(self.masses[order])
            # The integral of the share below: straight between the values, and of slope one after.
            ends = np.append(sorted_values, sorted_values[-1] + 2 * RANK_REACH)
            integral = np.append(0, np.cumsum(shares * np.diff(ends)))
            above, below = (
                np.interp(values + step, ends, integral) for step in (RANK_REACH, -RANK_REACH)
            )
            least = np.finfo(float).eps  # the mass of a row may be less
            found[:, j] = ndtri(np.clip((above - below) / (2 * RANK_REACH), least, 1 - least))
        return found - self.masses @ found

    @cached_property
    def n_distinct(self) -> float:
        """The number of distinct rows among at most 500: Σ_i 1/Σ_j s_ij, s_ij = 1 for equal rows.

        Continuous in the rows: noise that the kernel cannot see does not make equal rows distinct.
        """
        K = self._some_gram
        own = np.diagonal(K)
        variance = float(own.mean() - K.mean())
        unit = SAME_ROW_TOL * max(variance, 0.0) + np.finfo(float).eps * 100 * float(own.mean())
        apart = np.maximum(own[:, None] + own - 2 * K, 0)
        return float((1 / np.exp(-apart / (unit or 1.0)).sum(axis=1)).sum())

    @property
    def distinct_share(self) -> float:
        """The share of distinct rows among those that were counted."""
        return self.n_distinct / len(self._some_gram)

    @cached_property
    def bias_factor(self) -> float:
        """κ = D/(D − 2) for D = (tr Σ)²/tr Σ², the effective dimension; infinite up to D = 2."""
        K, masses = self._some_gram, self.masses[:: self._step]
        masses = masses / masses.sum()
        means = K @ masses
        squared_norm = masses @ means
        centred = K - means[:, None] - means + squared_norm
        trace = np.asarray(masses @ np.diagonal(K) - squared_norm)
        return float(bias_factor_of(dimension_of(trace, np.asarray(masses @ centred**2 @ masses))))

    @property
    def _step(self) -> int:
        """Every how many rows one is taken, where 500 at most are."""
        return -(-self.n // N_ROWS_FOR_DISTINCT)

    @cached_property
    def _some_gram(self) -> Array:
        """The Gram matrix of 500 rows at most."""
        return self.kernel(self.X[:: self._step])

    @property
    def _scaled(self) -> Array:
        """The rows, centred and in a unit in which no square overflows."""
        X = self.X - self.center
        return X / (np.abs(X).max() or 1.0)

    @cached_property
    def _in_unit_spread(self) -> Array:
        """The rows with features of mean zero and variance one, or zero if constant."""
        X = self._scaled
        spread = np.sqrt(self.masses @ X**2)
        spread = np.hypot(
            spread, TIE_SHARE * spread.max()
        )  # a feature that is constant but for noise has no direction
        return np.divide(X, spread, out=np.zeros_like(X), where=spread > 0)

    def _tree(self, X: Array) -> tuple[Array, Array, Array]:
        """Return Ward's tree of at most 2000 rows, with ties broken by fixed noise."""
        typical = np.sqrt(np.linalg.norm(X - np.median(X, axis=0), axis=1)).mean() ** 2
        rng = np.random.default_rng(0)
        X = X + TIE_SHARE * typical * rng.standard_normal(X.shape) / np.sqrt(X.shape[1])
        members = np.arange(self.n)
        if self.n > MAX_ROWS_TREE:
            members = np.sort(rng.choice(self.n, MAX_ROWS_TREE, replace=False))
        return linkage(X[members], "ward"), members, X


def cut(tree: Array, sizes: Sequence[int]) -> Array:
    """Return the cluster of each row when a tree is cut into each number: shape (sizes, n).

    There are fewer clusters if heights are tied.

    The tree has the rows of ``scipy.cluster.hierarchy.linkage``. All merges are made that are no
    higher than the last that is needed.
    """
    n = len(tree) + 1
    heights, nodes = tree[:, 2], np.arange(2 * n - 1)
    ascending = np.append(-np.inf, heights)
    made = np.array([(heights <= ascending[n - size]).sum() for size in sizes])
    parents = nodes.copy()
    for side in (0, 1):
        parents[tree[:, side].astype(np.intp)] = nodes[n:]
    tops = np.where(parents < n + made[:, None], parents, nodes)
    before = None
    while before is None or not np.array_equal(
        before, tops
    ):  # the top of the top, until all are reached
        before, tops = tops, np.take_along_axis(tops, tops, axis=-1)
    leaves = tops[:, :n]
    is_top = np.zeros(tops.shape, dtype=bool)
    np.put_along_axis(is_top, leaves, True, axis=-1)
    return np.take_along_axis(is_top.cumsum(axis=-1) - 1, leaves, axis=-1)


@dataclass(frozen=True, eq=False)
class Folds:
    """The groups in which rows are left out: each row by itself, or a number of random folds."""

    labels: Array
    """The group of each row, counted from zero."""
    masses: Array
    """The masses of the rows."""

    @classmethod
    def from_sample(
        cls, sample: StackSample, n_splits: int | None, rng: np.random.Generator
    ) -> Folds:
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
        """1/Σp², the effective number of rows left without each group."""
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
class RandomFourierMoments:
    """Functions by their values at random frequencies: ⟨f, g⟩ ≈ k(x, x) mean_ω conj(F(ω)) G(ω).

    The wave of a measure is its characteristic function, with x̄ for the origin: that of a Gaussian
    depends on the data through the mean and the variance of ω·x alone.
    """

    sample: StackSample
    frequencies: Array

    @cached_property
    def _phases(self) -> Array:
        return self._block(slice(None))

    def _block(self, rows: slice) -> Array:
        return (self.sample.X[rows] - self.sample.center) @ self.frequencies.T

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        if self.sample.n <= ROWS_PER_CHUNK:
            yield slice(None), self._phases
            return
        for rows in slices(0, self.sample.n, ROWS_PER_CHUNK):
            yield rows, self._block(rows)

    @cached_property
    def _all_waves(self) -> Array:
        return waves_of(self._phases)

    def _waves(self) -> Iterator[tuple[slice, Array]]:
        if self.sample.n <= ROWS_PER_CHUNK:
            yield slice(None), self._all_waves
            return
        for rows, phases in self._blocks():
            yield rows, waves_of(phases)

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


def waves_of(phases: Array) -> Array:
    """Return exp(iφ) as (1 − t²)/(1 + t²) + 2it/(1 + t²), t = tan φ/2.

    NumPy computes the tangents of many numbers at once, but exponentials, cosines and sines one by
    one.
    """
    wave = np.empty(phases.shape, dtype=complex)
    tangent = np.tan(phases / 2)
    share = 1 / (1 + tangent**2)
    np.subtract(2 * share, 1, out=wave.real)
    np.multiply(2 * tangent, share, out=wave.imag)
    return wave


def indicators(labels: Array, count: int, weights: Array | None = None) -> Any:
    """Return the matrix that sums rows of values by label, sparse unless it is small."""
    if weights is None:
        weights = np.ones(len(labels))
    places = labels, np.arange(len(labels))
    if count * len(labels) > MIN_SIZE_SPARSE:
        return csr_array((weights, places), shape=(count, len(labels)))
    matrix = np.zeros((count, len(labels)))
    matrix[places] = weights
    return matrix


def orthogonal_frequencies(kernel: Kernel, count: int, d: int, rng: np.random.Generator) -> Array:
    """Return random frequencies of the kernel; those of an isotropic one are orthogonal d by d."""
    drawn = kernel.draw_frequencies(rng, (count, d))
    if not kernel.isotropic:
        return drawn
    bases = np.linalg.qr(rng.standard_normal((-(-count // d), d, d)))[0]
    return np.linalg.norm(drawn, axis=1)[:, None] * bases.reshape(-1, d)[:count]
