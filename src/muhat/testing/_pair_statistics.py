"""Statistics of x with y, Σ h(γ_k) h'(δ_l) (u_kᵀ v_l)², for every order of the rows of y."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, quotient, slices
from muhat.kernels import Kernel
from muhat.testing._gram import PooledSpectrum
from muhat.testing._permutations import Family, NullMoments
from muhat.testing._results import Candidates
from muhat.testing._shrunk_covariance import ShrunkCovariance
from muhat.testing._statistics import Statistic

PAIRS_PER_BLOCK = 8192
"""Pairs of rows whose values are gathered at a time, so that they stay in the cache."""

Spectra = list[tuple[Kernel, PooledSpectrum]]
"""Kernels, each with the spectrum of its Gram matrix of one side."""


@dataclass(frozen=True, eq=False)
class SideSpectra:
    """The spectra of x or of y, and every statistic's weights on each of them."""

    spectra: Spectra
    statistics: list[Statistic]

    @cached_property
    def resolved(self) -> list[tuple[Kernel, PooledSpectrum, Statistic]]:
        """Every kernel and its spectrum with every statistic, all parameters numbers."""
        found = []
        for kernel, spectrum in self.spectra:
            for statistic in spectrum.resolve(self.statistics):
                found.append((kernel, spectrum, statistic))
        return found

    @cached_property
    def weights(self) -> list[tuple[PooledSpectrum, Array]]:
        """The spectrum and h(γ) of every candidate."""
        return [(spectrum, each.weight(spectrum.gamma)) for _, spectrum, each in self.resolved]

    def matrices(self) -> Array:
        """Return U h(Γ) Uᵀ of every candidate, shape (candidates, n, n)."""
        return np.array([(spectrum.U * h) @ spectrum.U.T for spectrum, h in self.weights])

    def components(self) -> Array:
        """Return the eigenvectors of all kernels beside each other, n rows."""
        return np.concatenate([spectrum.U for _, spectrum in self.spectra], axis=1)

    def weights_of_components(self) -> Array:
        """Return every candidate's weights on these eigenvectors: zero on other kernels'."""
        start_of = {}
        size = 0
        for _, spectrum in self.spectra:
            start_of[id(spectrum)] = size
            size += len(spectrum.gamma)
        H = np.zeros((len(self.weights), size))
        for row, (spectrum, h) in zip(H, self.weights, strict=True):
            start = start_of[id(spectrum)]
            row[start : start + len(h)] = h
        return H

    def scaled_power_sums(self) -> tuple[Array, Array]:
        """Return a unit of each candidate's h, and Σh, Σh² and Σh³ in it, shape (3, candidates)."""
        units = np.empty(len(self.weights))
        sums = np.empty((3, len(self.weights)))
        for place, (spectrum, h) in enumerate(self.weights):
            largest = h.max(initial=0)
            units[place] = largest / np.sqrt(len(spectrum.U) - 1)
            for power in (1, 2, 3):
                sums[power - 1, place] = (quotient(h, largest) ** power).sum()
        return units, sums


@dataclass(frozen=True, eq=False)
class StatisticPairs:
    """Every statistic of x with every one of y: part of a family, which has a weight."""

    x: SideSpectra
    y: SideSpectra
    weight: float
    family: int

    @classmethod
    def from_spectra(
        cls,
        sides: Sequence[Spectra],
        statistics: list[Statistic],
        weight: float = 1.0,
        family: int = 0,
    ) -> StatisticPairs:
        """Return the statistics on every kernel of x with those on every kernel of y."""
        x, y = (SideSpectra(each, statistics) for each in sides)
        return cls(x, y, weight, family)

    @cached_property
    def candidates(self) -> Candidates:
        """The kernels and statistics of every pair."""
        found: Candidates = []
        for kernel_x, _, of_x in self.x.resolved:
            for kernel_y, _, of_y in self.y.resolved:
                found.append(((kernel_x, kernel_y), (of_x, of_y)))
        return found

    @property
    def null_moments(self) -> NullMoments:
        """Of every pair, in theory: the mean of each (u_kᵀ v_l)² is 1/(n − 1)."""
        units_x, sums_x = self.x.scaled_power_sums()
        units_y, sums_y = self.y.scaled_power_sums()
        products = [np.outer(a, b).ravel() for a, b in zip(sums_x, sums_y, strict=True)]
        return NullMoments.from_squares(np.array(products), np.outer(units_x, units_y).ravel())

    def spectra_of(self, kernels: Sequence[Kernel]) -> tuple[PooledSpectrum, PooledSpectrum] | None:
        """Return the spectra of a kernel on x and one on y; None if it has not both."""
        found = []
        for side, wanted in zip((self.x, self.y), kernels, strict=True):
            found += [spectrum for kernel, spectrum in side.spectra if kernel is wanted]
        return (found[0], found[1]) if len(found) == 2 else None


def families_of(parts: Sequence[StatisticPairs]) -> tuple[Family, ...]:
    """Return which statistics, in the order of the parts, are of which family."""
    numbers = np.concatenate([np.full(len(each.candidates), each.family) for each in parts])
    weights = {each.family: each.weight for each in parts}
    return tuple(
        Family(weight, np.flatnonzero(numbers == number)) for number, weight in weights.items()
    )


def statistics_by_matrices(parts: Sequence[StatisticPairs]) -> Callable[[Array], Array]:
    """Return the statistics as a function of an order π: Σ_ij S_ij R_π(i)π(j), S of x, R of y.

    The values of a pair of rows lie together, as they are gathered; some pairs at a time, so that
    they stay in the cache.
    """
    S = np.concatenate([each.x.matrices() for each in parts])
    R = np.concatenate([each.y.matrices() for each in parts])
    n = S.shape[1]
    rows, columns = np.triu_indices(n)
    twice = np.where(rows == columns, 1, 2)  # each pair once, as S and R are symmetric
    blocks = []
    for some in slices(0, len(rows), PAIRS_PER_BLOCK):
        i, j = rows[some], columns[some]
        blocks.append((i, j, S[:, i, j] * twice[some]))
    right = np.ascontiguousarray(R.reshape(len(R), -1).T)
    wanted = _own_pairs(parts)

    def statistics(order: Array) -> Array:
        found = np.zeros((len(S), len(R)))
        for i, j, left in blocks:
            found += left @ right.take(n * order[i] + order[j], axis=0)
        return np.concatenate([found[some].ravel() for some in wanted])

    return statistics


def _own_pairs(parts: Sequence[StatisticPairs]) -> list[tuple[slice, slice]]:
    """Return where each part's statistics are among those of all parts on x with all on y."""
    found = []
    start_x = start_y = 0
    for each in parts:
        end_x, end_y = start_x + len(each.x.weights), start_y + len(each.y.weights)
        found.append((slice(start_x, end_x), slice(start_y, end_y)))
        start_x, start_y = end_x, end_y
    return found


def statistics_by_components(parts: Sequence[StatisticPairs]) -> Callable[[Array], Array]:
    """Return the same from (u_kᵀ v_π(l))² of all components of all kernels, which are few.

    Parts with the same kernels share these squares.
    """
    weights = []
    shared = {}
    for each in parts:
        weights.append((each.x.weights_of_components(), each.y.weights_of_components().T))
        shared[id(each.x.spectra)] = each.x.components().T, each.y.components()

    def statistics(order: Array) -> Array:
        squares = {key: (U @ V[order]) ** 2 for key, (U, V) in shared.items()}
        found = []
        for each, (H, G) in zip(parts, weights, strict=True):
            found.append((H @ squares[id(each.x.spectra)] @ G).ravel())
        return np.concatenate(found)

    return statistics


def shrunk_statistics(
    statistic: ShrunkCovariance, x: PooledSpectrum, y: PooledSpectrum, orders: Array
) -> Array:
    """Return ‖Σ_λ‖² of the shrunk cross-covariance for every order of y: shape (1, orders)."""
    K = (x.U * x.gamma) @ x.U.T
    L = (y.U * y.gamma) @ y.U.T
    with BLAS_ON_ONE_THREAD:
        return np.array([[statistic.squared_norm(K * L[np.ix_(order, order)]) for order in orders]])


def kernel_correlation(x: PooledSpectrum, y: PooledSpectrum) -> float:
    """Return HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)): the cosine of the centred Gram matrices."""
    hsic = x.gamma @ (x.U.T @ y.U) ** 2 @ y.gamma
    return float(hsic / (np.linalg.norm(x.gamma) * np.linalg.norm(y.gamma)))
