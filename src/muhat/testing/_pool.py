"""Both samples together, their labels forgotten: where their rows come from, and the pool of those in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import eigvalsh

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, share_between_cores, slices
from muhat._validation import (
    as_frame,
    check_finite,
    check_semidefinite,
    check_values,
    frozen,
    is_dask,
)
from muhat.data import (
    ArraySource,
    ColumnMoments,
    DaskSource,
    DataSet,
    ReservoirSample,
    SampleBatch,
    Source,
    TransformedSource,
    as_source,
)
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._copies import RowCounts
from muhat.testing._gram import PooledGram, PooledMatrix, PooledSpectrum, gram_matrix
from muhat.testing._marginals import (
    FeatureDifference,
    column_cuts,
    counts_between,
    differences_at_cuts,
    feature_differences,
)
from muhat.testing._units import PermutationUnits

Found = TypeVar("Found")

TILE_ROWS = 640
"""About how many rows and columns of the Gram matrix are made at a time, where only sums over units are kept."""


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass over a sample learns, as sums over batches."""

    drawn: ReservoirSample
    moments: ColumnMoments
    counts: RowCounts

    @classmethod
    def from_batch(cls, batch: SampleBatch, size: int, random_state: int) -> FirstPass:
        """Return what a batch adds."""
        drawn = ReservoirSample.from_batch(batch, size, random_state)
        return cls(drawn, ColumnMoments.from_batch(batch), RowCounts.from_batch(batch))

    def __add__(self, other: FirstPass) -> FirstPass:
        return FirstPass(
            self.drawn + other.drawn, self.moments + other.moments, self.counts + other.counts
        )


@dataclass(frozen=True, eq=False)
class TestSample:
    """One of the two samples: its rows as a source, and some of them, drawn at random; all where they are few."""

    source: Source
    names: tuple[str, ...] | None
    drawn: ReservoirSample
    moments: ColumnMoments | None = None
    """Of every column; None for row numbers, which have no columns."""
    counts: RowCounts | None = None

    @classmethod
    def from_source(
        cls, source: Source, names: Sequence[str] | None, size: int, random_state: int
    ) -> TestSample:
        """Return a source with rows drawn from it, and moments of its columns, in one pass."""
        found = source.total(partial(FirstPass.from_batch, size=size, random_state=random_state))
        drawn = replace(found.drawn, rows=found.drawn.rows.astype(np.float64, copy=False))
        columns = None if names is None else tuple(map(str, names))
        return cls(source, columns, drawn, found.moments, found.counts)

    @classmethod
    def from_numbers(cls, rows: Array) -> TestSample:
        """Return a sample of row numbers."""
        n = len(rows)
        return cls(ArraySource(rows), None, ReservoirSample(rows, np.arange(n), n, 0, n))

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.drawn.count

    @property
    def rows(self) -> Array | None:
        """All rows, if they are in memory."""
        if isinstance(self.source, ArraySource):
            return self.source.X
        if isinstance(self.source, TransformedSource) and isinstance(
            self.source.source, ArraySource
        ):
            return self.source.change(self.source.source.X)
        return self.drawn.rows if len(self.drawn.rows) == self.n else None

    def standardized(self, moments: ColumnMoments) -> TestSample:
        """Return the sample with its columns at mean 0 and variance 1 by moments of both samples together."""
        drawn = replace(self.drawn, rows=moments.standardized(self.drawn.rows))
        return replace(
            self, source=TransformedSource(self.source, moments.standardized), drawn=drawn
        )

    def only(self, kept: Array, size: int) -> TestSample:
        """Return the sample of some of its rows, which are in memory; their numbers stay."""
        assert self.rows is not None
        some = TestSample.from_source(
            ArraySource(self.rows[kept]), self.names, size, self.drawn.random_state
        )
        return replace(some, drawn=replace(some.drawn, numbers=kept[some.drawn.numbers]))


def as_named_source(who: str, X: Any) -> tuple[Source, Sequence[str] | None] | None:
    """Return the rows of batches, files or dask with the names of their columns; None for what is in memory."""
    if isinstance(X, DataSet | range):
        return None
    if is_dask(X) and len(X.shape) == 1:
        X = X.to_frame() if hasattr(X, "to_frame") else X[:, None]
    source = as_source(who, X)
    if source is None:
        return None
    if isinstance(source, DaskSource):
        return source, source.columns.names
    return source, getattr(as_frame(X[0]) if isinstance(X, list | tuple) else X, "columns", None)


MapParts = Callable[[Callable[[Any], Any], Sequence[Any], int], list[Any]]
"""What calls some work on many parts, given the number of rows that are in it."""


class Pool(ABC):
    """Units whose labels can be permuted: a Gram matrix for every kernel, and the differences of single features."""

    units: PermutationUnits
    observed: Array
    """Whether each unit is of the first sample."""
    rows: Array
    """Rows to learn bandwidths from, whatever their labels are: all, or some drawn at random."""

    @abstractmethod
    def map(
        self, work: Callable[[PooledGram], Found], kernels: Sequence[Kernel], share: MapParts
    ) -> list[Found]:
        """Return what work gives for the Gram matrix of every kernel."""

    def evaluated(self, witness: Element, x: TestSample, y: TestSample) -> tuple[Array, Array]:
        """Return the values of a function at the rows that are drawn of each sample."""
        return witness(x.drawn.rows), witness(y.drawn.rows)

    @abstractmethod
    def features(
        self, labels: Array, shifts: Array, names: tuple[str, ...]
    ) -> tuple[FeatureDifference, ...]:
        """Return how much the samples differ in every column, with p-values from columns of labels."""


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
    grams: dict[int, PooledGram] = field(default_factory=dict)
    """Those that are kept, by the identity of the kernel: one that is asked for alone, and small ones, from blocks."""

    @classmethod
    def from_rows(
        cls,
        X: Array,
        Y: Array,
        gram: str | Approximation,
        units: PermutationUnits,
        rng: np.random.Generator,
        for_mmd: bool = False,
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
        )

    def map(
        self, work: Callable[[PooledGram], Found], kernels: Sequence[Kernel], share: MapParts
    ) -> list[Found]:
        """Return what work gives for the Gram matrix of every kernel, of which the large ones are not kept."""
        if self.gram == "blocks":
            grams = [self._kept(kernel) for kernel in kernels]
            with BLAS_ON_ONE_THREAD:  # units are few
                return [work(gram) for gram in grams]
        make = self._kept if len(kernels) == 1 else self._make
        return share(lambda kernel: work(make(kernel)), kernels, len(self.rows))

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

    def features(
        self, labels: Array, shifts: Array, names: tuple[str, ...]
    ) -> tuple[FeatureDifference, ...]:
        """Return how much the samples differ in every column."""
        if self.units.size == 1:
            return feature_differences(self.rows, labels, shifts, names)
        unit = np.repeat(np.arange(len(labels)), self.units.size)
        cuts = column_cuts(self.rows, len(labels))
        counts = [
            counts_between(*each, unit, len(labels)) for each in zip(self.rows.T, cuts, strict=True)
        ]
        return differences_at_cuts(counts, self.rows, labels, shifts, names)

    def evaluated(self, witness: Element, x: TestSample, y: TestSample) -> tuple[Array, Array]:
        """Return the values of a function at all rows; one on the rows themselves takes each pair of them once."""
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
        """Return the spectrum, of whose U the rows are means over units: T = N Σ_k h(γ_k) (u_kᵀ w)² stays as it is."""
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
        return K if size == 1 else K.reshape(count, size, count, size).mean(axis=(1, 3))

    def _means_by_tiles(self, kernel: Kernel) -> Array:
        """Return the inner products of the units' kernel means from tiles of the Gram matrix that are not held."""
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

        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            share_between_cores(fill, strips)
            check_finite(means.sum(), kernel)
        return means
