"""Samples of any size: one pass over the rows sums features and counts over units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from muhat._arrays import Array
from muhat._validation import check_finite
from muhat.data import SampleBatch
from muhat.gram import Approximation, FeatureMap
from muhat.kernels import Kernel
from muhat.testing._distances import features_for
from muhat.testing._gram import PooledSpectrum, is_kept
from muhat.testing._marginals import (
    ColumnDistances,
    column_cuts,
    counts_between,
    distances_at_cuts,
    mean_scores_at_cuts,
)
from muhat.testing._pool import Found, MapParts, Pool, RankScores, WorkOnGram
from muhat.testing._samples import TestSample
from muhat.testing._units import PermutationUnits, UnitAssignment


@dataclass(eq=False)
class SourcePool(Pool):
    """A pool that holds only sums over the rows of each unit: of features and of counts."""

    units: PermutationUnits
    observed: Array
    rows: Array
    gram: Approximation
    samples: tuple[TestSample, TestSample]
    assignments: tuple[UnitAssignment, UnitAssignment]
    spectra: dict[str, PooledSpectrum] = field(default_factory=dict)
    """Those of the kernels that were asked for, by their text."""
    sums: tuple[UnitSums, ...] = ()
    """Of each sample, once a pass has been made."""

    @classmethod
    def from_samples(
        cls,
        x: TestSample,
        y: TestSample,
        gram: Approximation,
        units: PermutationUnits,
        rng: np.random.Generator,
    ) -> SourcePool:
        """Return the units of both samples, and a uniform sample of the pool to learn from."""
        assignments = (
            UnitAssignment.draw(x.n, units.x, units, rng),
            UnitAssignment.draw(y.n, units.y, units, rng),
        )
        size = min(x.drawn.size, x.n + y.n)
        share = rng.hypergeometric(x.n, y.n, size)
        rows = [
            each.drawn.rows[rng.choice(len(each.drawn.rows), some, replace=False)]
            for each, some in ((x, share), (y, size - share))
        ]
        return cls(
            units, units.observed, rng.permutation(np.concatenate(rows)), gram, (x, y), assignments
        )

    def map(
        self, work: WorkOnGram[Found], kernels: Sequence[Kernel], share: MapParts
    ) -> list[Found]:
        """Return what work gives for every kernel; one pass over the rows serves all new ones."""
        new = [kernel for kernel in kernels if repr(kernel) not in self.spectra]
        if new:
            maps = tuple(features_for(kernel, self.gram, self.rows) for kernel in new)
            centres = tuple(each(self.rows).mean(axis=0) for each in maps)
            cuts = column_cuts(self.rows, len(self.observed))
            self.sums = tuple(
                sample.source.total(UnitWork(maps, centres, cuts, assignment))
                for sample, assignment in zip(self.samples, self.assignments, strict=True)
            )
            for number, kernel in enumerate(new):
                self.spectra[repr(kernel)] = self._spectrum(maps[number], number)

        def of_kernel(kernel: Kernel) -> Found:
            return work(kernel, self.spectra[repr(kernel)])

        return share(of_kernel, kernels, len(self.observed))

    def _spectrum(self, features: FeatureMap, number: int) -> PooledSpectrum:
        """Return the spectrum of HΦᵀΦH/N, of whose U the rows are means over units."""
        size, count = self.units.size, len(self.observed)
        sums = np.concatenate([each.features[number] for each in self.sums])
        means = sums / size
        mean = means.mean(axis=0)
        C = sum(each.squares[number] for each in self.sums) / (size * count) - np.outer(mean, mean)
        check_finite(float(C.sum()), features.kernel)
        gamma, V = eigh(C, driver="evd", check_finite=False)
        kept = is_kept(gamma, size * count)
        gamma, V = gamma[kept], V[:, kept]
        kappa2 = max(float(each.largest[number]) for each in self.sums)
        U = (means - mean) @ (V / np.sqrt(count * gamma))
        return PooledSpectrum(gamma, U, kappa2, lambda a: features.embedding(V @ a))

    def column_distances(self, labels: Array) -> ColumnDistances:
        """Return how far the samples are apart in every column, compared at cuts."""
        return distances_at_cuts(self._counts, self.rows, labels)

    def mean_scores(self, scores: RankScores) -> Array:
        """Return the mean score of every unit's ranks in every column, ranked between cuts."""
        return mean_scores_at_cuts(self._counts, scores)

    @property
    def _counts(self) -> list[Array]:
        """Of each column, how many of each unit's rows are between two cuts."""
        of_samples = zip(*(each.counts for each in self.sums), strict=True)
        return [np.concatenate(each) for each in of_samples]


@dataclass(frozen=True, eq=False)
class UnitSums:
    """What the rows of some batches of a sample add up to."""

    features: tuple[Array, ...]
    """Of each kernel, the features of each unit's rows, from their centre."""
    squares: tuple[Array, ...]
    """Of each kernel, ΦᵀΦ."""
    largest: Array
    """Of each kernel, a bound of the squared norm of a row's features."""
    counts: tuple[Array, ...]
    """Of each column, how many of each unit's rows are between two cuts."""

    def __add__(self, other: UnitSums) -> UnitSums:
        return UnitSums(
            _added(self.features, other.features),
            _added(self.squares, other.squares),
            np.maximum(self.largest, other.largest),
            _added(self.counts, other.counts),
        )


def _added(first: tuple[Array, ...], second: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the sums of two lists of arrays, one by one."""
    return tuple(map(np.add, first, second))


@dataclass(frozen=True, eq=False)
class UnitWork:
    """What a pass does with each batch: it can be sent to other machines."""

    maps: tuple[FeatureMap, ...]
    centres: tuple[Array, ...]
    cuts: list[Array]
    assignment: UnitAssignment

    def __call__(self, batch: SampleBatch) -> UnitSums:
        """Return the sums over a batch's rows; rows without a unit are left out."""
        unit = self.assignment(batch.start, len(batch.X))
        order = np.argsort(unit, kind="stable")[: int((unit < self.assignment.units).sum())]
        X, unit = batch.X[order].astype(np.float64, copy=False), unit[order]
        starts = np.searchsorted(unit, np.arange(self.assignment.units + 1))
        member = csr_matrix(
            (np.ones(len(X)), np.arange(len(X)), starts), shape=(self.assignment.units, len(X))
        )
        features, squares, largest = [], [], []
        for features_of, centre in zip(self.maps, self.centres, strict=True):
            phi = features_of(X)
            bound = features_of.kernel.bound
            if not np.isfinite(bound):
                bound = np.einsum("ij,ij->i", phi, phi).max(initial=0.0)
            largest.append(bound)
            # Near the mean of the pool, so that subtracting the rest of it later costs no digits.
            phi -= centre
            features.append(member @ phi)
            squares.append(phi.T @ phi)
        counts = []
        for values, cuts in zip(X.T, self.cuts, strict=True):
            counts.append(counts_between(values, cuts, unit, self.assignment.units))
        return UnitSums(tuple(features), tuple(squares), np.array(largest), tuple(counts))
