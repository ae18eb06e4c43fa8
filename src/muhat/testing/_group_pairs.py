"""Which pairs of groups differ: each pair permuted within itself, then corrected over all pairs.

The p-value of a pair permutes the labels of its two groups only. Kernels, landmarks and spectra
come from all rows without their labels, so that it is exact for P_a = P_b whatever the other groups
are. docs/group-tests.md has the argument for the looks and for the correction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from muhat._arrays import Array, slices
from muhat._tolerances import COMBINED_TIE_TOLERANCE
from muhat.testing._designs import GroupDesign
from muhat.testing._group_statistics import (
    GroupSpectrum,
    sums_centred,
    sums_of_weighted_chi_squares,
)
from muhat.testing._permutations import NullMoments

LOOKS = (99, 999)
"""Relabelings after which pairs that are far from significant stop."""

MAX_EXCEEDANCES = 10
"""A pair stops at a look if this many relabelings reach its statistic: p ≥ 11/(B + 1)."""

SMALLEST_P_VALUE, LARGEST_SMALLEST_P_VALUE = 0.01, 0.04
"""The smallest corrected p-value that the last look allows: the second where pairs are many."""

MAX_RELABELINGS_OF_ALL = 2**22
"""Relabelings of all pairs together beyond which the second applies."""

PAIRS_PER_CHUNK = 48
"""Pairs that are worked on together by one core: they share the products of labels."""

MAX_PRODUCTS_HELD = 2**21
"""Products of labels, or sums over units, that are held at a time (16 MB)."""


@dataclass(frozen=True, eq=False)
class PairFactor:
    """The spectrum of one kernel with the statistics that pairs take from it."""

    spectrum: GroupSpectrum
    H: Array
    """h_j(γ_k) of every statistic and component, shape (J, r)."""


@dataclass(frozen=True, eq=False)
class PairChunk:
    """Pairs of groups whose units can be relabeled in the same ways."""

    pairs: Array
    """Two groups in each row, shape (P, 2)."""
    design: GroupDesign
    """The two groups of any of them."""
    seed: int
    """For the relabelings: chunks of one structure share them."""


def chunks_of_pairs(design: GroupDesign, pairs: Array, rng: np.random.Generator) -> list[PairChunk]:
    """Return pairs with the same number of units in every stratum together, in chunks.

    Pairs of which no stratum has both groups are left out: nothing can be permuted.
    """
    structures: dict[bytes, tuple[GroupDesign, int, list[Array]]] = {}
    for pair in pairs:
        of_pair = design.pair(*pair.tolist())
        if not of_pair.is_permutable:
            continue
        key = of_pair.counts.tobytes()
        if key not in structures:
            structures[key] = of_pair, int(rng.integers(2**63)), []
        structures[key][2].append(pair)
    chunks = []
    for of_pair, seed, members in structures.values():
        for some in slices(0, len(members), PAIRS_PER_CHUNK):
            chunks.append(PairChunk(np.array(members[some]), of_pair, seed))
    return chunks


def n_last_look(steps: Array, n_permutations: int) -> int:
    """Return the relabelings after which no pair goes on, given the multipliers of p-values.

    They are enough for corrected p-values of 0.01; of 0.04, if that takes very many.
    """
    wanted = steps[0] / SMALLEST_P_VALUE
    least = steps[0] / LARGEST_SMALLEST_P_VALUE
    affordable = MAX_RELABELINGS_OF_ALL / len(steps)
    return max(n_permutations, int(max(least, min(wanted, affordable))))


def p_values_of_pairs(
    chunk: PairChunk, factors: Sequence[PairFactor], design: GroupDesign, n_last: int
) -> Array:
    """Return the exact p-value of each pair of a chunk, not corrected, shape (P,).

    After each look, pairs of which ten relabelings have reached the statistic stop.
    """
    statistics = _chunk_statistics(chunk, factors, design)
    if chunk.design.is_enumerable(n_last):
        labels = chunk.design.relabelings(n_last, np.random.default_rng(chunk.seed))
        everyone = np.arange(len(chunk.pairs))
        return statistics.exceedances(labels == 0, everyone) / len(labels)
    rng = np.random.default_rng(chunk.seed)
    reached = np.zeros(len(chunk.pairs))
    found = np.ones(len(chunk.pairs))
    going = np.arange(len(chunk.pairs))
    drawn = 0
    for look in (*(each for each in LOOKS if each < n_last), n_last):
        for some in slices(drawn, look, statistics.n_held):
            labels = chunk.design.relabelings(some.stop - some.start, rng)[1:]
            reached[going] += statistics.exceedances(labels == 0, going)
        drawn = look
        found[going] = (1 + reached[going]) / (1 + look)
        going = going[reached[going] < MAX_EXCEEDANCES]
        if not len(going):
            break
    return found


class _PairStatistics:
    """The statistics of pairs for any relabeling, and the values that count as large.

    With the units of a pair centred within strata, S_k the sum of u_k over the units of the first
    group and n_a, n_b the rows of both, every statistic is (1/n_a + 1/n_b) Σ_k h_k S_k². A pair's
    statistic is its largest normal score.
    """

    n_held: int
    """Relabelings that are worked on together."""

    def __init__(self, sizes: Array, moments: list[NullMoments], observed: Array) -> None:
        self.sizes = sizes
        first = observed[None]
        values = self.values(first, np.arange(len(sizes)))[0]
        self.thresholds = np.empty_like(values)
        for place, (each, own) in enumerate(zip(moments, values, strict=True)):
            largest = float(each.scores(own[:, None]).max())
            reached = each.values_at(largest)
            rounding = COMBINED_TIE_TOLERANCE * np.maximum(np.abs(own), each.mean)
            self.thresholds[place] = reached - rounding

    def exceedances(self, member: Array, some: Array) -> Array:
        """Return how many relabelings reach the observed statistic, for some of the pairs.

        ``member`` is whether units are in the first group, shape (relabelings, c).
        """
        count = np.zeros(len(some))
        for held in slices(0, len(member), self.n_held):
            values = self.values(member[held], some)
            count += (values >= self.thresholds[some]).any(axis=2).sum(axis=0)
        return count

    def values(self, member: Array, some: Array) -> Array:
        """Return the statistics of some pairs, shape (relabelings, len(some), J)."""
        inside = member.astype(np.float64)
        return np.asarray(self._squares(inside, some) * self._factors(inside, some)[:, :, None])

    def _factors(self, inside: Array, some: Array) -> Array:
        """Return 1/n_a + 1/n_b of every relabeling and pair, shape (relabelings, len(some))."""
        n = inside @ self.sizes[some].T
        return np.asarray(1 / n + 1 / (self.sizes[some].sum(axis=1) - n))

    def _squares(self, inside: Array, some: Array) -> Array:
        raise NotImplementedError


class _QuadraticForms(_PairStatistics):
    """By the products of labels, which all pairs share: for few units."""

    def __init__(
        self, forms: Array, sizes: Array, moments: list[NullMoments], observed: Array
    ) -> None:
        c = forms.shape[-1]
        self.first, self.second = np.triu_indices(c)
        packed = forms[:, :, self.first, self.second]
        packed[:, :, self.first != self.second] *= 2
        self.forms = packed  # (P, J, c(c + 1)/2)
        # In single precision products are twice as fast; a sum of k terms is off by k ε Σ|a| at
        # most, and what is closer to a threshold than that is computed again.
        self.single = packed.astype(np.float32)
        self.rounding = len(self.first) * 2.0**-23 * np.abs(packed).sum(axis=2)  # (P, J)
        self.n_held = max(1, MAX_PRODUCTS_HELD // len(self.first))
        super().__init__(sizes, moments, observed)

    def exceedances(self, member: Array, some: Array) -> Array:
        """Return how many relabelings reach the observed statistic, for some of the pairs."""
        count = np.zeros(len(some))
        thresholds = self.thresholds[some]
        for held in slices(0, len(member), self.n_held):
            factor = self._factors(member[held].astype(np.float64), some)
            # T ≥ threshold as a limit of the sum, which is T over a factor.
            limits = thresholds / factor[:, :, None]
            close = self.rounding[some]
            found = self._products(member[held].astype(np.float32), self.single[some])
            is_sure = (found >= limits + close).any(axis=2)
            is_close = (found >= limits - close).any(axis=2) & ~is_sure
            count += is_sure.sum(axis=0)
            for place in np.flatnonzero(is_close.any(axis=0)).tolist():
                again = member[held][is_close[:, place]]
                values = self.values(again, some[[place]])[:, 0]
                count[place] += (values >= thresholds[place]).any(axis=1).sum()
        return count

    def _squares(self, inside: Array, some: Array) -> Array:
        return self._products(inside, self.forms[some])

    def _products(self, inside: Array, forms: Array) -> Array:
        """Return xᵀAx of every relabeling x and form A, shape (relabelings, P, J)."""
        products = inside[:, self.first] * inside[:, self.second]
        P, J, length = forms.shape
        return (products @ forms.reshape(-1, length).T).reshape(len(inside), P, J)


class _SumsOverUnits(_PairStatistics):
    """By sums of eigenvectors over the units of the first group: for many units."""

    def __init__(
        self,
        parts: list[list[tuple[Array, Array]]],
        sizes: Array,
        moments: list[NullMoments],
        observed: Array,
    ) -> None:
        self.parts = parts
        self.n_held = max(1, MAX_PRODUCTS_HELD // max(sizes.shape[1], len(parts[0][0][0].T)))
        super().__init__(sizes, moments, observed)

    def _squares(self, inside: Array, some: Array) -> Array:
        found = []
        for place in some.tolist():
            of_pair = [(inside @ Z) ** 2 @ H.T for Z, H in self.parts[place]]
            found.append(np.concatenate(of_pair, axis=1))
        return np.array(found).transpose(1, 0, 2)


def _chunk_statistics(
    chunk: PairChunk, factors: Sequence[PairFactor], design: GroupDesign
) -> _PairStatistics:
    """Return the statistics of a chunk's pairs in the cheaper of two ways."""
    strata, c = chunk.design.strata, len(chunk.design.labels)
    n_statistics = sum(len(each.H) for each in factors)
    n_components = sum(each.H.shape[1] for each in factors)
    use_forms = (c + 1) * n_statistics <= 2 * n_components
    sizes, moments, forms, parts = [], [], [], []
    for units in _units_of_pairs(chunk, design):
        own = design.sizes[units]
        n_first = _expected_rows(own, chunk.design)
        factor = 1 / n_first + 1 / (own.sum() - n_first)
        centred = [sums_centred(each.spectrum.Z[units], own, strata) for each in factors]
        found = []
        for Z, each in zip(centred, factors, strict=True):
            found.append(_null_moments(Z, each.H, chunk.design, factor))
        sizes.append(own)
        moments.append(NullMoments.concatenate(found))
        parts.append([(Z, each.H) for Z, each in zip(centred, factors, strict=True)])
        if use_forms:
            forms.append(np.concatenate([_forms(Z, H) for Z, H in parts.pop()]))
    observed = chunk.design.labels == 0
    if use_forms:
        return _QuadraticForms(np.array(forms), np.array(sizes), moments, observed)
    return _SumsOverUnits(parts, np.array(sizes), moments, observed)


def _expected_rows(sizes: Array, design: GroupDesign) -> float:
    """Return the mean number of rows of the first group over relabelings."""
    rows = np.bincount(design.strata, weights=sizes)
    return float((rows * design.counts[:, 0] / design.counts.sum(axis=1)).sum())


def _units_of_pairs(chunk: PairChunk, design: GroupDesign) -> Iterator[Array]:
    """Yield the units of every pair, in the order of the chunk's design."""
    for a, b in chunk.pairs.tolist():
        yield design.pair(a, b).rows


def _forms(Z: Array, H: Array) -> Array:
    """Return Z diag(h_j) Zᵀ of every statistic, shape (J, c, c)."""
    return np.asarray((H[:, None, :] * Z) @ Z.T)


def _null_moments(Z: Array, H: Array, design: GroupDesign, factor: float) -> NullMoments:
    """Return the moments of the statistics of a pair over its relabelings.

    In a stratum of c units, m of them in the first group, sums over that group have the covariance
    m (c − m)/(c (c − 1)) Σ_i z̃_i z̃_iᵀ, z̃ less its mean over units: a sum of weighted χ².
    """
    strata = design.strata
    c, m = design.counts.sum(axis=1), design.counts[:, 0]
    share = m * (c - m) / np.maximum(c * (c - 1), 1)
    deviations = sums_centred(Z, np.ones(len(Z)), strata) * np.sqrt(share[strata])[:, None]
    if len(Z) <= Z.shape[1]:
        matrices = factor * _forms(deviations, H)
    else:
        root = np.sqrt(H)
        matrices = factor * root[:, :, None] * (deviations.T @ deviations) * root[:, None, :]
    return sums_of_weighted_chi_squares(matrices)


@lru_cache(maxsize=64)
def numbers_of_true_pairs(n_groups: int) -> frozenset[int]:
    """Return how many pairs of groups can be equal: Σ s(s − 1)/2 over the blocks of a partition."""
    if n_groups <= 1:
        return frozenset({0})
    found = set()
    for block in range(1, n_groups + 1):
        for rest in numbers_of_true_pairs(n_groups - block):
            found.add(block * (block - 1) // 2 + rest)
    return frozenset(found)


def multipliers(design: GroupDesign, n_pairs: int) -> Array:
    """Return what sorted p-values of pairs are multiplied by, behind a test of all groups.

    This is Shaffer's step-down (1986): the most pairs that can be equal if one is not, nor the
    pairs before. It needs that a = b and b = c make a = c. If some stratum lacks a group, they need
    not, and it is Holm's: all pairs but one, and one less from step to step.
    """
    left = np.arange(n_pairs, 0, -1)
    left[0] -= 1
    if not design.counts.all():
        return left
    possible = np.array(sorted(numbers_of_true_pairs(design.n_groups)))
    return np.asarray(possible[np.searchsorted(possible, left, side="right") - 1])


def corrected_over_pairs(p_values: Array, steps: Array, p_of_all: float) -> Array:
    """Return p-values of pairs, corrected so that the chance of any false one is at most α.

    ``p_of_all`` is the p-value of all groups together: none of a pair is below it.
    """
    order = np.argsort(p_values, kind="stable")
    largest = np.maximum.accumulate(p_values[order] * steps)
    corrected = np.empty_like(p_values)
    corrected[order] = np.clip(largest, p_of_all, 1.0)
    return corrected
