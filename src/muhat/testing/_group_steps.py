"""Which groups stand out from the rest, step by step: those that do are taken out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._tolerances import COMBINED_TIE_TOLERANCE
from muhat.kernels import Kernel
from muhat.testing._designs import GroupDesign
from muhat.testing._distances import Distance
from muhat.testing._group_statistics import (
    GroupDistances,
    GroupSpectrum,
    GroupSums,
    KernelGroupStatistics,
    kernel_statistics,
)
from muhat.testing._permutations import SHARPNESS, NullMoments, PermutationTable
from muhat.testing._results import Candidates
from muhat.testing._statistics import MMD, Statistic
from muhat.testing._two_samples import candidates_of, families_of_kernels

DISTANCE_WEIGHTS = (0.025, 0.025)
"""Weights of the default's families beside that of all kernels, which has the rest.

These are the energy distance, and that of ranks. With 0.06 each, power among 5
and 20 groups changed by −0.025 to 0.025 in 9 alternatives of 120 draws: 0.02 up for shifts of heavy
tails, 0.02 down for scales and correlations, −0.005 ± 0.004 on average.
"""

MAX_STEP_P_VALUE, MAX_STEPS = 0.1, 10
"""Groups up to this p-value are taken out of the rest of the others, in so many steps at most."""

MIN_STEP_SCORE = 0.85
"""Groups whose score is at least this share of the largest one are taken out together.

A group that only differs from a rest with an odd group in it has a score far below: with k groups
of one size its distance is 1/(k − 1) of that of the odd one, and scores grow as distance^⅔."""

MIN_SHARE_LEFT = 0.5
"""The share of the groups that are never taken out of the rest, and two at least."""

MAX_MAJORITIES = 30
"""Groups up to which a p-value is held against a majority around the group, least certain first."""

UPPER_QUANTILE = 0.99
"""The quantile of a group's scores over relabelings by which they are scaled."""


@dataclass(frozen=True, eq=False)
class PermutedGroups:
    """All statistics for every relabeling, scores of groups, and features of units."""

    X: Array
    """The rows, in the order of the design."""
    design: GroupDesign
    table: PermutationTable
    candidates: Candidates
    scores: Array
    """The soft maximum of every group's scores against the rest, shape (T, B + 1)."""
    features: Array
    """Of units, for the kernel of the largest statistic, shape (C, r)."""
    sums: GroupSums
    spectra: list[tuple[Kernel, GroupSpectrum]]
    """Every kernel with its spectrum; none if all rows are equal."""

    @classmethod
    def from_kernels(
        cls,
        kernels: list[Kernel],
        spectrum_of: Callable[[Kernel], GroupSpectrum],
        statistics: list[Statistic],
        X: Array,
        design: GroupDesign,
        labels: Array,
        run: Callable[..., Iterable[Any]],
    ) -> PermutedGroups:
        """Return the statistics of all kernels for labels of units, shape (B + 1, C)."""
        sums = GroupSums.from_labels(labels, design.sizes, design.n_groups)

        def of_kernel(kernel: Kernel) -> tuple[GroupSpectrum, KernelGroupStatistics]:
            spectrum = spectrum_of(kernel)
            own: list[Statistic] = [MMD()] if isinstance(kernel, Distance) else statistics
            return spectrum, kernel_statistics(spectrum, own, sums, design)

        both = list(run(of_kernel, kernels, len(X)))
        spectra = [each for each, _ in both]
        found = [each for _, each in both]
        candidates = candidates_of("GroupTest", kernels, [each.statistics for each in found])
        values = np.concatenate([each.values for each in found])
        table = PermutationTable(
            values,
            np.abs(values).max(axis=1),
            NullMoments.concatenate([each.null_moments for each in found]),
            families_of_kernels([kernel for (kernel,), _ in candidates], DISTANCE_WEIGHTS),
        )
        scores = np.logaddexp.reduce([each.log_scores for each in found])
        (kernel,), _ = candidates[table.largest_statistic]
        (place,) = (number for number, each in enumerate(kernels) if each is kernel)
        features = spectra[place].features(design)
        soft_maxima = (scores - np.log(len(candidates))) / SHARPNESS
        soft_maxima = comparable_scores(soft_maxima, design.counts)
        pool = list(zip(kernels, spectra, strict=True))
        return cls(X, design, table, candidates, soft_maxima, features, sums, pool)

    @classmethod
    def of_equal_rows(
        cls, kernel: Kernel, X: Array, design: GroupDesign, labels: Array
    ) -> PermutedGroups:
        """Return what is found in rows that are all equal: every p-value is 1."""
        sums = GroupSums.from_labels(labels, design.sizes, design.n_groups)
        table = PermutationTable(np.zeros((1, len(labels))), np.zeros(1))
        scores = np.zeros((design.n_groups, len(labels)))
        features = np.zeros((len(design.labels), 1))
        candidates: Candidates = [((kernel,), (MMD(),))]
        return cls(X, design, table, candidates, scores, features, sums, [])

    def of_groups(
        self,
        stays: Array,
        statistics: list[Statistic],
        labels: Array,
        run: Callable[..., Iterable[Any]],
    ) -> PermutedGroups:
        """Return the same of some groups alone, with kernels and features from all rows.

        These do not depend on labels, so that p-values are exact as before.
        """
        design = self.design.of_groups(stays)
        used = stays[self.design.labels][self.design.unit]
        X = self.X[used]
        spectra = {id(kernel): spectrum for kernel, spectrum in self.spectra}
        if not np.ptp(X, axis=0).any():
            return PermutedGroups.of_equal_rows(self.spectra[0][0], X, design, labels)

        def spectrum_of(kernel: Kernel) -> GroupSpectrum:
            return spectra[id(kernel)].of_groups(kernel, self.X, self.design, stays)

        kernels = [kernel for kernel, _ in self.spectra]
        return PermutedGroups.from_kernels(kernels, spectrum_of, statistics, X, design, labels, run)


@dataclass(frozen=True, eq=False)
class GroupSteps:
    """P-values of each group against the rest, and at which step each is taken out of it."""

    p_values: Array
    """Shape (T,)."""
    steps: Array
    """Shape (T,); the rest of a group are the other groups whose step is not before its own."""


def step_down(
    permuted: PermutedGroups,
    without: Callable[[PermutedGroups, Array], PermutedGroups | None],
) -> GroupSteps:
    """Return p-values of each group against the rest, corrected for the number of groups.

    Groups that stand out most are taken out, and the others are compared without them: else they
    would differ from a rest that contains odd groups. P-values never fall from step to step. None
    is below that of a majority of groups around it: see ``_majority_p_values``.

    Parameters
    ----------
    permuted : PermutedGroups
        Of all groups.
    without : callable
        Returns the same of the groups that stay, given truth values; None if nothing can be
        permuted among them.
    """
    T = permuted.design.n_groups
    p_values, steps = np.ones(T), np.zeros(T, dtype=np.int64)
    of_all = permuted
    left, floor = np.arange(T), 0.0
    least_left = max(2, int(np.ceil(MIN_SHARE_LEFT * T)))
    for step in range(MAX_STEPS + 1):
        p_values[left] = np.maximum(floor, corrected_p_values(permuted.scores))
        steps[left] = step
        out = _stand_out(permuted.scores[:, 0], p_values[left], len(left) - least_left)
        if not out.any() or step == MAX_STEPS:
            break
        rest = without(permuted, ~out)
        if rest is None:
            break
        permuted = rest
        floor = float(p_values[left[out]].max())
        left = left[~out]
    if T > 2:
        p_values = np.maximum(p_values, _majority_p_values(of_all, p_values, without))
    # Groups that turn out to be like the others go back to them.
    steps[p_values > MAX_STEP_P_VALUE] = steps.max()
    return GroupSteps(p_values, steps)


def _majority_p_values(
    permuted: PermutedGroups,
    p_values: Array,
    without: Callable[[PermutedGroups, Array], PermutedGroups | None],
) -> Array:
    """Return, for each group with a small p-value, that of a majority of groups that has it.

    If more than half of the groups are alike, one of these may only be called odd if the test of
    all of them together finds a difference, which has the probability of the level: closed testing
    over majorities. Of all majorities that have the group, that of those most alike is tested.
    """
    found = np.zeros(len(p_values))
    small = np.flatnonzero(p_values <= MAX_STEP_P_VALUE)
    if not len(small) or not permuted.spectra:
        return found
    unlike = _unlikeness(permuted)
    majorities = [_most_alike(unlike, group) for group in small.tolist()]
    spreads = [float(unlike[np.ix_(each, each)].sum()) for each in majorities]
    p_of_majority: dict[bytes, float] = {}
    for place in np.argsort(spreads)[:MAX_MAJORITIES].tolist():
        majority = majorities[place]
        key = majority.tobytes()
        if key not in p_of_majority:
            compared = without(permuted, majority)
            p_of_majority[key] = 1.0
            if compared is not None:
                p_of_majority[key] = float(corrected_p_values(compared.scores).min())
        found[small[place]] = p_of_majority[key]
    return found


def _unlikeness(permuted: PermutedGroups) -> Array:
    """Return squared distances of pairs of groups over what noise adds to them, shape (T, T)."""
    n = permuted.design.row_counts.sum(axis=0)
    between = GroupDistances.from_features(permuted.features, permuted.design).between
    unlike = between**2 / (1 / n + 1 / n[:, None])
    return np.nan_to_num(unlike, nan=float(np.nanmax(unlike)))


def _most_alike(unlike: Array, group: int) -> Array:
    """Return a majority of groups that are most alike, one given, as truth values."""
    inside = np.zeros(len(unlike), dtype=bool)
    inside[group] = True
    for _ in range(len(unlike) // 2):
        inside[np.where(inside, np.inf, unlike[inside].sum(axis=0)).argmin()] = True
    return inside


def _stand_out(scores: Array, p_values: Array, at_most: int) -> Array:
    """Return which groups stand out most, as truth values."""
    out = (p_values <= MAX_STEP_P_VALUE) & (scores >= MIN_STEP_SCORE * scores.max())
    most_first = np.argsort(-scores, kind="stable")
    out[most_first[max(at_most, 0) :]] = False
    return np.asarray(out)


def comparable_scores(scores: Array, counts: Array) -> Array:
    """Return scores on one scale: their median 0 and their upper quantile 1.

    Normal scores of groups of one or two rows have far heavier tails than those of large groups,
    which they would hide: the largest score of a relabeling would mostly be theirs. Groups with as
    many units in every stratum are on one scale already, and share both quantiles. All relabelings
    are treated alike, so that p-values are as exact as before.

    Parameters
    ----------
    scores : array of shape (T, B + 1)
        Of every group and relabeling.
    counts : array of shape (strata, T)
        How many units of every stratum are in every group.
    """
    _, alike = np.unique(counts, axis=1, return_inverse=True)
    alike = np.asarray(alike).ravel()
    found = np.empty_like(scores)
    for number in range(alike.max() + 1):
        same = alike == number
        low, high = np.quantile(scores[same], (0.5, UPPER_QUANTILE))
        scale = 1.0
        if high > low:
            scale = high - low
        found[same] = (scores[same] - low) / scale
    return found


def corrected_p_values(scores: Array) -> Array:
    """Return p-values of rows of scores by the largest score of every relabeling.

    This is Westfall and Young's correction: exact for the question whether any row is too large.
    """
    largest = scores.max(axis=0)
    observed = scores[:, 0] - COMBINED_TIE_TOLERANCE * np.abs(largest).max()
    smaller = np.searchsorted(np.sort(largest), observed, side="left")
    return (len(largest) - smaller) / len(largest)
