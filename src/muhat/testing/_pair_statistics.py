"""Statistics of x with y, Σ h(γ_k) g(δ_l) (u_kᵀ v_l)², for every order of the rows of y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, share_between_cores
from muhat.kernels import Kernel
from muhat.testing._cyclic import CyclicOrders
from muhat.testing._permutations import Family, NullMoments
from muhat.testing._results import Candidates
from muhat.testing._shrunk_covariance import ShrunkCovariance
from muhat.testing._side_gram import SideGram
from muhat.testing._statistics import Statistic


@dataclass(frozen=True, eq=False)
class SideStatistics:
    """The Gram matrices of x or of y, and every statistic's weights on each of them."""

    grams: list[SideGram]
    statistics: list[Statistic]

    @cached_property
    def resolved(self) -> list[tuple[SideGram, Statistic]]:
        """Every Gram matrix with every statistic, all parameters numbers."""
        found = []
        for gram in self.grams:
            for statistic in self.statistics:
                if not statistic.needs_spectrum:
                    found.append((gram, statistic))
                    continue
                for each in gram.spectrum.resolve([statistic]):
                    found.append((gram, each))
        return found

    def weights_of_components(self) -> Array:
        """Return every candidate's weights on the eigenvectors of all kernels: zero on others'."""
        start_of = {}
        size = 0
        for gram in self.grams:
            start_of[id(gram)] = size
            size += len(gram.spectrum.gamma)
        H = np.zeros((len(self.resolved), size))
        for row, (gram, statistic) in zip(H, self.resolved, strict=True):
            start = start_of[id(gram)]
            h = statistic.weight(gram.spectrum.gamma)
            row[start : start + len(h)] = h
        return H

    def components(self, used: Array) -> Array:
        """Return the eigenvectors of all kernels that truth values say are used, n rows."""
        sizes = [len(gram.spectrum.gamma) for gram in self.grams]
        used_of_grams = np.split(used, np.cumsum(sizes)[:-1])
        ends = np.cumsum([each.sum() for each in used_of_grams])
        U = np.empty((self.grams[0].n, int(ends[-1])))

        def fill(place: int) -> None:
            of_gram = used_of_grams[place]
            end = ends[place]
            U[:, end - of_gram.sum() : end] = self.grams[place].spectrum.components(of_gram)

        share_between_cores(fill, range(len(self.grams)))
        return U

    def scaled_power_sums(self) -> tuple[Array, Array]:
        """Return a unit of each candidate's h, and Σh, Σh² and Σh³ in it, shape (3, candidates)."""
        units = np.empty(len(self.resolved))
        sums = np.empty((3, len(self.resolved)))
        for place, (gram, statistic) in enumerate(self.resolved):
            unit, sums[:, place] = gram.power_sums(statistic)
            units[place] = unit / np.sqrt(gram.n - 1)
        return units, sums


@dataclass(frozen=True, eq=False)
class StatisticPairs:
    """Every statistic of x with every one of y: part of a family, which has a weight."""

    x: SideStatistics
    y: SideStatistics
    weight: float
    family: int

    @classmethod
    def from_grams(
        cls,
        sides: Sequence[list[SideGram]],
        statistics: list[Statistic],
        weight: float = 1.0,
        family: int = 0,
    ) -> StatisticPairs:
        """Return the statistics on every kernel of x with those on every kernel of y."""
        x, y = (SideStatistics(each, statistics) for each in sides)
        return cls(x, y, weight, family)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.x.grams[0].n

    @property
    def has_matrices(self) -> bool:
        """Whether there are n × n matrices, instead of eigenvectors alone."""
        return self.x.grams[0].form.has_matrices

    def has_few_components(self, n_orders: int) -> bool:
        """Whether pairs of eigenvectors are fewer than diagonals of all matrices."""
        if any(not each.needs_spectrum for each in (*self.x.statistics, *self.y.statistics)):
            return False
        n_pairs = n_orders
        for side in (self.x, self.y):
            n_pairs *= int(side.weights_of_components().any(axis=0).sum())
        n_matrices = len(self.x.resolved) + n_orders * len(self.y.resolved)
        return n_pairs < n_matrices * self.n / 2

    @cached_property
    def candidates(self) -> Candidates:
        """The kernels and statistics of every pair."""
        found: Candidates = []
        for gram_x, of_x in self.x.resolved:
            for gram_y, of_y in self.y.resolved:
                found.append(((gram_x.kernel, gram_y.kernel), (of_x, of_y)))
        return found

    @property
    def null_moments(self) -> NullMoments:
        """Of every pair, in theory: the mean of each (u_kᵀ v_l)² is 1/(n − 1)."""
        units_x, sums_x = self.x.scaled_power_sums()
        units_y, sums_y = self.y.scaled_power_sums()
        products = [np.outer(a, b).ravel() for a, b in zip(sums_x, sums_y, strict=True)]
        return NullMoments.from_squares(np.array(products), np.outer(units_x, units_y).ravel())

    def grams_of(self, kernels: Sequence[Kernel]) -> tuple[SideGram, SideGram] | None:
        """Return the Gram matrices of a kernel on x and one on y; None if it has not both."""
        found = []
        for side, wanted in zip((self.x, self.y), kernels, strict=True):
            found += [gram for gram in side.grams if gram.kernel is wanted]
        if len(found) == 2:
            return (found[0], found[1])
        return None


def with_same_grams(parts: Sequence[StatisticPairs]) -> list[list[StatisticPairs]]:
    """Return parts that follow each other in groups that have the same Gram matrices.

    Where there are whole matrices each part is its own group.
    """
    found: list[list[StatisticPairs]] = []
    for each in parts:
        is_first = not found or found[-1][0].x.grams is not each.x.grams
        if is_first or each.has_matrices:
            found.append([])
        found[-1].append(each)
    return found


def used_components(sides: Sequence[SideStatistics]) -> tuple[Array, Array]:
    """Return the eigenvectors that some candidate uses, and every candidate's weights.

    The sides are those of several parts with the same Gram matrices.
    """
    H = np.concatenate([each.weights_of_components() for each in sides])
    used = np.asarray(H.any(axis=0))
    return sides[0].components(used), H[:, used]


def families_of(parts: Sequence[StatisticPairs]) -> tuple[Family, ...]:
    """Return which statistics, in the order of the parts, are of which family."""
    numbers = np.concatenate([np.full(len(each.candidates), each.family) for each in parts])
    weights = {each.family: each.weight for each in parts}
    return tuple(
        Family(weight, np.flatnonzero(numbers == number)) for number, weight in weights.items()
    )


def shrunk_statistics(
    statistic: ShrunkCovariance, x: SideGram, y: SideGram, orders: CyclicOrders
) -> Array:
    """Return ‖Σ_λ‖² of the shrunk cross-covariance for every order of y: shape (1, orders)."""
    K, L = x.matrix(), y.matrix()
    values = np.empty((1, len(orders)))
    with BLAS_ON_ONE_THREAD:
        for place in range(len(orders)):
            order = orders[place]
            values[0, place] = statistic.squared_norm(K * L[np.ix_(order, order)])
    return values
