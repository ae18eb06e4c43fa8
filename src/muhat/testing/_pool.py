"""The pool: the rows of both samples without their labels, in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.linalg import eigvalsh

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, share_between_cores, slices
from muhat._validation import check_finite, check_semidefinite, check_values, frozen
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Kernel
from muhat.testing._distances import ranks_among
from muhat.testing._gram import PooledGram, PooledMatrix, PooledSpectrum, gram_matrix
from muhat.testing._landmarks import spectrum_on_landmarks
from muhat.testing._marginals import (
    ColumnDistances,
    column_cuts,
    counts_between,
    distances_at_cuts,
)
from muhat.testing._samples import TestSample
from muhat.testing._units import PermutationUnits

Found = TypeVar("Found")

TILE_ROWS = 640
"""Rows and columns of a tile of the Gram matrix, of which only sums over units are kept."""


RankScores = Callable[[Array], Array]
"""From ranks, as shares of all rows, to their scores."""

MapParts = Callable[[Callable[[Any], Any], Sequence[Any], int], list[Any]]
"""A function that calls work on many parts, given the number of rows."""

WorkOnGram: TypeAlias = Callable[[Kernel, PooledGram], Found]
"""From a kernel and its Gram matrix to what is asked for."""


class Pool(ABC):
    """Units whose labels can be permuted: Gram matrices, and differences of single columns."""

    units: PermutationUnits
    observed: Array
    """Whether each unit is of the first sample."""
    rows: Array
    """Rows to learn bandwidths from, whatever their labels are: all, or some drawn at random."""
    is_single: bool = False
    """Whether statistics are from products in single precision."""

    @abstractmethod
    def map(
        self, work: WorkOnGram[Found], kernels: Sequence[Kernel], share: MapParts
    ) -> list[Found]:
        """Return what work gives for the Gram matrix of every kernel."""

    def evaluated(self, witness: Element, x: TestSample, y: TestSample) -> tuple[Array, Array]:
        """Return the values of a function at the rows that are drawn of each sample."""
        return witness(x.drawn.rows), witness(y.drawn.rows)

    @abstractmethod
    def column_distances(self, labels: Array) -> ColumnDistances:
        """Return how far the samples are apart in every column, for every column of labels."""

    @abstractmethod
    def mean_scores(self, scores: RankScores) -> Array:
        """Return the mean score of every unit's ranks in every column, shape (units, d)."""


@dataclass(frozen=True, eq=False)
class MemoryPool(Pool):
    """Rows that are held, those of a unit one after the other."""

    units: PermutationUnits
    observed: Array
    rows: Array
    numbers: Array
    """The place of every row among those of both samples."""
    gram: str | Approximation
    for_mmd: bool
    """Whether MMD is all that is asked for, which needs no spectrum."""
    is_fast: bool = False
    """Whether spectra on landmarks are for the statistics of the default test only."""
    grams: dict[int, PooledGram] = field(default_factory=dict)
    """Gram matrices that are kept, by the id of the kernel: single ones, and those from tiles."""

    @classmethod
    def from_rows(
        cls,
        X: Array,
        Y: Array,
        gram: str | Approximation,
        units: PermutationUnits,
        rng: np.random.Generator,
        for_mmd: bool = False,
        is_fast: bool = False,
    ) -> MemoryPool:
        """Return the units of both samples in random order."""
        numbers = units.arranged(X, units.x, rng), len(X) + units.arranged(Y, units.y, rng)
        order = rng.permutation(units.x + units.y)
        places = np.concatenate(numbers)[order].ravel()
        return cls(
            units,
            units.observed[order],
            frozen(np.concatenate([X, Y])[places]),
            places,
            gram,
            for_mmd,
            is_fast,
        )

    def map(
        self, work: WorkOnGram[Found], kernels: Sequence[Kernel], share: MapParts
    ) -> list[Found]:
        """Return what work gives for the Gram matrix of every kernel; large ones are not kept."""
        if self.gram == "blocks":
            grams = [self._kept(kernel) for kernel in kernels]
            with BLAS_ON_ONE_THREAD:  # units are few
                return list(map(work, kernels, grams))
        make = self._make
        if len(kernels) == 1:
            make = self._kept
        return share(lambda kernel: work(kernel, make(kernel)), kernels, len(self.rows))

    @property
    def is_single(self) -> bool:  # type: ignore[override]
        """Whether statistics are from products in single precision: the default's few are."""
        return self.is_fast

    def _kept(self, kernel: Kernel) -> PooledGram:
        """Return the Gram matrix of a kernel, made on first use."""
        if id(kernel) not in self.grams:
            self.grams[id(kernel)] = self._make(kernel)
        return self.grams[id(kernel)]

    def _make(self, kernel: Kernel) -> PooledGram:
        """Return the Gram matrix of a kernel in the cheapest form that gives the statistics."""
        if self.gram == "blocks":
            means = self._means_by_tiles(kernel)
            if not kernel.positive_semidefinite:
                check_semidefinite(eigvalsh(means, check_finite=False))
            return PooledMatrix.from_means(kernel, self.rows, means)
        if self.gram == "dense" and self.for_mmd and kernel.positive_semidefinite:
            return PooledMatrix.from_means(kernel, self.rows, self._means(kernel))
        return self._spectrum(kernel)

    def column_distances(self, labels: Array) -> ColumnDistances:
        """Return how far the samples are apart in every column."""
        if self.units.size == 1 and self.is_fast:
            return ColumnDistances.at_quantiles(self.rows, labels)
        if self.units.size == 1:
            return ColumnDistances.from_rows(self.rows, labels)
        unit = np.repeat(np.arange(len(labels)), self.units.size)
        cuts = column_cuts(self.rows, len(labels))
        counts = [
            counts_between(*each, unit, len(labels)) for each in zip(self.rows.T, cuts, strict=True)
        ]
        return distances_at_cuts(counts, self.rows, labels)

    def mean_scores(self, scores: RankScores) -> Array:
        """Return the mean score of every unit's ranks in every column."""
        found = scores(self._rank_shares)
        return found.reshape(-1, self.units.size, found.shape[1]).mean(axis=1)

    @cached_property
    def _rank_shares(self) -> Array:
        """The rank of every row in every column, as a share of all rows, between 0 and 1."""
        return ranks_among(np.sort(self.rows, axis=0), self.rows) / len(self.rows)

    def evaluated(self, witness: Element, x: TestSample, y: TestSample) -> tuple[Array, Array]:
        """Return the values of the witness at all rows, by a symmetric product where possible."""
        rows = np.concatenate([x.drawn.rows, y.drawn.rows])
        if (
            not isinstance(witness, Embedding)
            or witness.points is not self.rows
            or len(rows) < x.n + y.n
        ):
            return super().evaluated(witness, x, y)
        values = np.empty(len(rows))
        values[self.numbers] = witness.kernel.product(self.rows, witness.weights)
        left_over = np.setdiff1d(np.arange(len(rows)), self.numbers)
        values[left_over] = witness(rows[left_over])
        return values[: x.n], values[x.n :]

    def _spectrum(self, kernel: Kernel) -> PooledSpectrum:
        """Return the spectrum with rows of U averaged over units: T keeps its formula."""
        if self.is_fast:
            assert isinstance(self.gram, Nystrom)
            assert self.gram.n_components is not None
            spectrum = spectrum_on_landmarks(
                kernel, self.gram.n_components, self.rows, self.units.size == 1
            )
        else:
            spectrum = PooledSpectrum.from_rows(kernel, self.rows, self.gram)
        size = self.units.size
        if size == 1:
            return spectrum
        return replace(
            spectrum,
            U=spectrum.U.reshape(-1, size, spectrum.U.shape[1]).sum(axis=1) / np.sqrt(size),
        )

    def _means(self, kernel: Kernel) -> Array:
        """Return the inner products of the units' kernel means from the whole Gram matrix."""
        K, size, count = gram_matrix(kernel, self.rows), self.units.size, len(self.observed)
        if size == 1:
            return K
        return K.reshape(count, size, count, size).mean(axis=(1, 3))

    def _means_by_tiles(self, kernel: Kernel) -> Array:
        """Return the inner products of the units' kernel means from tiles that are not kept."""
        size, rows, count = self.units.size, self.rows, len(self.observed)
        means = np.empty((count, count))
        strips = list(slices(0, count, max(1, TILE_ROWS // size)))
        member = np.kron(
            np.eye(strips[0].stop), np.full((size, 1), 1 / size)
        )  # of a strip's rows in its units

        def fill(i: slice) -> None:
            for j in strips[i.start // strips[0].stop :]:
                K = kernel(
                    rows[size * i.start : size * i.stop], rows[size * j.start : size * j.stop]
                )
                if i == j:
                    check_values(K, kernel)
                means[i, j] = member[: len(K), : i.stop - i.start].T @ (
                    K @ member[: K.shape[1], : j.stop - j.start]
                )
                means[j, i] = means[i, j].T

        with np.errstate(over="ignore", invalid="ignore"):  # raises in words below
            share_between_cores(fill, strips)
            check_finite(means.sum(), kernel)
        return means
