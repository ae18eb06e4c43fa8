"""Do groups differ by more than a tolerance δ? A bootstrap of the distance of kernel means.

The observed difference of kernel means is shortened to the length δ, noise as that of the rows is
added, and the length of the sum is compared with that observed. docs/group-tests.md has the
argument, and paper/experiments/levels_of_groups.py measures levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from muhat._arrays import Array, quotient, slices
from muhat.errors import MuhatError
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._designs import Codes, GroupDesign
from muhat.testing._group_statistics import (
    GroupDistances,
    GroupSpectrum,
    differences_from_rest,
    effective_rows,
)

HALVES = "halves"
"""The tolerance that is as large as the distance between two halves of the rows."""

MAX_NOISE_HELD = 2**21
"""Numbers of a bootstrap that are held at a time (16 MB)."""

N_ROWS_SHIFTED, N_COLUMNS_SHIFTED = 300, 20
"""Rows and columns from which the shift is computed that is as large as a tolerance."""

LARGE_DEGREES = 10**6
"""Degrees of freedom of a spread that counts as known."""

SHIFTS = np.geomspace(1e-3, 10, 41)
"""Shifts that are tried, in standard deviations."""


@dataclass(frozen=True)
class Tolerance:
    """A distance up to which groups count as alike, and whether any is further away.

    Attributes
    ----------
    delta : float
        δ, as a distance (MMD) of kernel means.
    is_from_halves : bool
        Whether δ is the distance between the first and the second half of the rows: of each group,
        or of the first of two samples.
    shift : float or None
        How far one column would have to be shifted, in standard deviations, to move the kernel mean
        by δ: the mean over columns. None if no shift up to 10 does.
    kernel : Kernel
        The kernel in which distances are measured.
    distance : float
        The largest distance found, of a group from the rest or of two samples.
    p_value : float
        For the null hypothesis that no distance is larger than δ: approximate, and never below the
        exact p-value for no difference at all.
    """

    delta: float
    is_from_halves: bool
    shift: float | None
    kernel: Kernel
    distance: float
    p_value: float

    def finding(self, level: float, p_text: str) -> str:
        """Return a sentence on whether two samples differ by more than the tolerance."""
        tested = f"by more than the tolerance (approximate {p_text})"
        if self.p_value <= level:
            found = f"They differ {tested}"
        elif self.distance > self.delta:
            found = f"Whether they differ {tested.replace(' (', ' is open (', 1)}"
        else:
            found = f"They do not detectably differ {tested}"
        distance = f"the estimated distance (MMD) is {self.against(self.distance)}"
        return f"{found}: {distance}. {self.sentence}".rstrip()

    @property
    def no_difference(self) -> str:
        """The sentence that follows where no difference at all was found."""
        more = f"a difference larger than the tolerance (MMD {self.delta:.2g})"
        return f"So {more} was not detected either."

    def against(self, distance: float) -> str:
        """Return a distance beside the tolerance, as "0.67 against a tolerance of 0.15"."""
        return f"{distance:.2g} against a tolerance of {self.delta:.2g}"

    @property
    def sentence(self) -> str:
        """A sentence on how large the tolerance is; empty if nothing is known but the number."""
        if self.is_from_halves:
            halves = "the distance between the first and the second half of the rows"
            return f"The tolerance is {halves}{self._shift_text}."
        if not self._shift_text:
            return ""
        deviations = f"{self.shift:.2g} standard deviations"
        return f"A shift of one column by {deviations} is about as large as the tolerance."

    @property
    def text(self) -> str:
        """The tolerance in words, as they follow "the tolerance"."""
        found = f"MMD {self.delta:.2g}"
        if self.is_from_halves:
            found += ", the distance between the first and the second half of the rows"
        return found + self._shift_text

    @property
    def _shift_text(self) -> str:
        """The shift of one column that is as large, in brackets; empty if there is none."""
        if self.shift is None or self.shift <= SHIFTS[0]:
            return ""
        return f" (about as large as a shift of one column by {self.shift:.2g} standard deviations)"

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {
            "delta": self.delta,
            "is_from_halves": self.is_from_halves,
            "shift": self.shift,
            "kernel": repr(self.kernel),
            "distance": self.distance,
            "p_value": self.p_value,
        }


def check_tolerance(who: str, tolerance: Any) -> None:
    """Raise MuhatError unless a tolerance is None, a number of at least 0, or 'halves'."""
    if tolerance is None or (isinstance(tolerance, str) and tolerance == HALVES):
        return
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool | np.bool_)
    if not is_number or not 0 <= float(tolerance) < np.inf:
        needed = f"tolerance must be a number of at least 0, {HALVES!r} or None"
        raise MuhatError(who, needed, repr(tolerance))


@dataclass(frozen=True, eq=False)
class ToleranceTest:
    """Every group against the rest in one kernel: distances, δ, and p-values for more than δ."""

    features: Array
    """Of units, shape (C, r)."""
    distances: GroupDistances
    delta: float
    p_values: Array
    """Corrected for the number of groups, shape (T,); 1 for a group of one unit."""

    @classmethod
    def nothing_to_compare(cls, design: GroupDesign, tolerance: float | str) -> ToleranceTest:
        """Return what is found in rows that are all equal."""
        T = design.n_groups
        delta = 0.0
        if tolerance != HALVES:
            delta = float(tolerance)
        features = np.zeros((len(design.labels), 1))
        return cls(features, GroupDistances.from_features(features, design), delta, np.ones(T))

    @classmethod
    def from_rows(
        cls,
        X: Array,
        design: GroupDesign,
        kernel: Kernel,
        gram: str | Approximation,
        learn: Array,
        tolerance: float | str,
        *,
        n_draws: int,
        rng: np.random.Generator,
        has_pairs: bool = False,
        reference: int | None = None,
        steps: Array | None = None,
    ) -> ToleranceTest:
        """Compare the groups of rows, shape (n, d), with the rest.

        Halves are those of all groups, or of the group that is the reference. The rest of a group
        are the other groups left at its step; all, without steps.
        """
        if steps is None:
            steps = np.zeros(design.n_groups, dtype=np.int64)
        _check_cells(design, has_pairs)
        split, is_second = _split_in_halves(design)
        spectrum = GroupSpectrum.from_rows(kernel, X[split.rows], gram, learn, split)
        features = spectrum.features(split)
        if tolerance == HALVES:
            is_used = np.ones(len(split.labels), dtype=bool)
            if reference is not None:
                is_used = split.labels == reference
            delta = _halves_distance(features, split, is_second, is_used)
        else:
            delta = float(tolerance)
        starts = np.searchsorted(split.unit_of_part, np.arange(len(design.labels)))
        units = np.add.reduceat(features, starts, axis=0)
        of_noise = _PairNoise if has_pairs else _CellNoise
        noise = of_noise(units, design, steps)
        p_values = _p_values(noise, delta, n_draws, rng)
        p_values[_n_units(design, has_pairs) < 2] = 1.0
        distances = GroupDistances.from_features(units, design, steps)
        return cls(units, distances, delta, p_values)


@dataclass(frozen=True, eq=False)
class _SplitDesign(GroupDesign):
    """A design whose units are the first and the second halves of units."""

    unit_of_part: Any = None
    """The unit that every part belongs to, shape (parts,), ascending."""


def _split_in_halves(design: GroupDesign) -> tuple[_SplitDesign, Array]:
    """Return the design with each unit in two parts, and which parts are of second halves.

    The halves are those of every group's rows, in the order in which they were given; of a group
    with one row, there is a first half only.
    """
    group = design.labels[design.unit]
    order = np.lexsort((design.rows, group))
    counts = np.bincount(group, minlength=design.n_groups)
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = place >= (counts[group] + 1) // 2
    part = 2 * design.unit + second
    sorting = np.argsort(part, kind="stable")
    present, numbers = np.unique(part[sorting], return_inverse=True)
    unit = present // 2
    split = _SplitDesign(
        names=design.names,
        rows=design.rows[sorting],
        unit=numbers,
        labels=design.labels[unit],
        strata=design.strata[unit],
        are_bins=design.are_bins,
        unit_of_part=unit,
    )
    return split, present % 2 == 1


def _halves_distance(
    features: Array, split: _SplitDesign, is_second: Array, is_used: Array
) -> float:
    """Return the distance between the first and the second halves of the rows of some groups."""
    has_both = is_used & np.isin(split.labels, split.labels[is_second])
    first, second = has_both & ~is_second, has_both & is_second
    if not second.any():
        return 0.0
    difference = features[first].sum(axis=0) / split.sizes[first].sum()
    difference -= features[second].sum(axis=0) / split.sizes[second].sum()
    return float(np.linalg.norm(difference))


def _n_units(design: GroupDesign, has_pairs: bool) -> Array:
    """Return from how many units the noise of every group is known, shape (T,)."""
    if has_pairs:
        n = design.row_counts
        return np.asarray(((n > 0) & (n < n.sum(axis=1, keepdims=True))).sum(axis=0))
    return np.bincount(design.labels, minlength=design.n_groups)


def _check_cells(design: GroupDesign, has_pairs: bool) -> None:
    """Raise MuhatError for strata with single units of a group, whose noise is not known."""
    counts = design.counts
    if has_pairs or len(counts) == 1:
        return
    single = np.argwhere((counts == 1) & (counts.sum(axis=1, keepdims=True) > 1))
    if len(single):
        needed = "with a tolerance, each stratum must have two units of each of its groups"
        got = f"one unit of {design.names[single[0][1]]!r} in a stratum"
        raise MuhatError("GroupTest", needed, got, "pass small strata as pairs= instead of strata=")


class _CellNoise:
    """Noise of the differences from the rest: units of each group and stratum vary freely.

    With z_i the sum of features over the n_i rows of unit i and m the mean row of its cell (group
    and stratum), noise is Σ ε_i a_ti (z_i − n_i m)√(c/(c − 1)), c the units of the cell, where a_ti
    is how unit i enters the difference of group t. ε_i = g_i √((c − 1)/χ²) with normal g_i: as in a
    t-test, few units have a less certain spread.
    """

    def __init__(self, features: Array, design: GroupDesign, steps: Array) -> None:
        self.design = design
        self.steps = steps
        self.differences = differences_from_rest(features, design, steps)
        cells = design.strata * design.n_groups + design.labels
        _, self.cell, counts = np.unique(cells, return_inverse=True, return_counts=True)
        self.degrees = np.where(counts > 1, counts - 1, LARGE_DEGREES)
        sums = np.zeros((len(counts), features.shape[1]))
        np.add.at(sums, self.cell, features)
        means = sums / np.bincount(self.cell, weights=design.sizes)[:, None]
        # A single unit varies around the mean of all rows: too much rather than too little.
        means[counts == 1] = features.sum(axis=0) / design.sizes.sum()
        factor = np.sqrt(np.where(counts > 1, counts / self.degrees, 1.0))
        residuals = features - design.sizes[:, None] * means[self.cell]
        self.residuals = residuals * factor[self.cell][:, None]

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return noise of the difference of every group from the rest, shape (count, T, r)."""
        chi2 = rng.chisquare(self.degrees, size=(count, len(self.degrees))) / self.degrees
        multipliers = rng.normal(size=(count, len(self.cell))) / np.sqrt(chi2[:, self.cell])
        own = self._sums(multipliers, self.design.labels, self.design.n_groups)
        n = self.design.row_counts
        for step in np.unique(self.steps):
            left = self.steps >= step
            here = self.steps == step
            strata = self._sums(multipliers * left[self.design.labels], self.design.strata, len(n))
            shares = quotient(n, (n * left).sum(axis=1, keepdims=True))[:, here].T
            own[:, here] -= shares @ strata
            own[:, here] /= effective_rows(n[:, left])[here[left]][:, None]
        return own

    def _sums(self, multipliers: Array, of_unit: Array, n: int) -> Array:
        """Return Σ ε_i R_i over the units of each group or stratum, shape (count, n, r)."""
        found = np.zeros((len(multipliers), n, self.residuals.shape[1]))
        order = np.argsort(of_unit, kind="stable")
        ends = np.cumsum(np.bincount(of_unit, minlength=n))
        for place, units in enumerate(np.split(order, ends[:-1])):
            found[:, place] = multipliers[:, units] @ self.residuals[units]
        return found


class _PairNoise:
    """Noise of the differences from the rest: pairs vary freely, rows of one pair together.

    With S_pt the sum of features of group t in pair p, less the mean of the pair, and w_pt the rows
    that it counts for, noise is Σ_p ε_p (S_pt − w_pt Δ_t)√(c/(c − 1)) over Σ_p w_pt.
    """

    def __init__(self, features: Array, design: GroupDesign, steps: Array) -> None:
        self.differences = differences_from_rest(features, design, steps)
        n = design.row_counts
        sums = np.zeros((*n.shape, features.shape[1]))
        np.add.at(sums, (design.strata, design.labels), features)
        self.residuals = np.empty_like(sums)
        for step in np.unique(steps):
            left = steps >= step
            residuals = _pair_residuals(sums[:, left], n[:, left], self.differences[left])
            self.residuals[:, steps == step] = residuals[:, steps[left] == step]
        self.degrees = max(1, len(n) - 1)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return noise of the difference of every group from the rest, shape (count, T, r)."""
        P, T, r = self.residuals.shape
        chi2 = rng.chisquare(self.degrees, size=(count, 1)) / self.degrees
        multipliers = rng.normal(size=(count, P)) / np.sqrt(chi2)
        return (multipliers @ self.residuals.reshape(P, T * r)).reshape(count, T, r)


def _pair_residuals(sums: Array, n: Array, differences: Array) -> Array:
    """Return what pairs add to the noise of groups, from their sums and rows, (pairs, T, r)."""
    N = np.maximum(n.sum(axis=1, keepdims=True), 1)
    w = n * (N - n) / N
    centred = sums - n[:, :, None] * (sums.sum(axis=1) / N)[:, None, :]
    counts = np.maximum((w > 0).sum(axis=0), 2)
    factor = np.sqrt(counts / (counts - 1)) / np.maximum(w.sum(axis=0), 1e-300)
    return np.asarray((centred - w[:, :, None] * differences) * factor[:, None])


def _p_values(
    noise: _CellNoise | _PairNoise, delta: float, n_draws: int, rng: np.random.Generator
) -> Array:
    """Return p-values of every group for a distance of more than δ, by the largest score."""
    observed = np.linalg.norm(noise.differences, axis=1)
    shortened = delta * quotient(noise.differences, observed[:, None])
    lengths = np.empty((n_draws, len(observed)))
    for some in slices(0, n_draws, max(1, MAX_NOISE_HELD // max(1, noise.residuals.size))):
        e = noise.draw(some.stop - some.start, rng)
        lengths[some] = np.linalg.norm(shortened + e, axis=2)
    mean, spread = lengths.mean(axis=0), lengths.std(axis=0)
    scores = quotient(lengths - mean, spread)
    reached = quotient(observed - mean, spread)
    largest = scores.max(axis=1)
    exceeding = (largest[:, None] >= reached - 1e-12).sum(axis=0)
    p_values = (1 + exceeding) / (1 + n_draws)
    return np.asarray(np.where(observed > delta, p_values, np.maximum(p_values, 0.5)))


def equivalent_shift(kernel: Kernel, X: Array, delta: float) -> float | None:
    """Return by how many standard deviations one column is shifted if the kernel mean moves by δ.

    X are some rows, whose order is random. Row numbers of a matrix cannot be shifted.
    """
    if X.dtype.kind != "f":
        return None
    X = X[:N_ROWS_SHIFTED]
    spreads = X.std(axis=0)
    columns = np.flatnonzero(spreads > 0)[:N_COLUMNS_SHIFTED]
    if len(X) < 3 or not len(columns):
        return None
    different = ~np.eye(len(X), dtype=bool)
    within = kernel(X)[different].mean()
    moved = np.zeros(len(SHIFTS))
    for place, shift in enumerate(SHIFTS):
        for column in columns:
            other = X.copy()
            other[:, column] += shift * spreads[column]
            squared = 2 * (within - kernel(X, other)[different].mean())
            moved[place] += np.sqrt(max(squared, 0.0)) / len(columns)
        if moved[place] >= delta:
            if place == 0:
                return float(shift)
            before, after = SHIFTS[place - 1], shift
            low, high = moved[place - 1], moved[place]
            return float(before + (after - before) * (delta - low) / (high - low))
    return None


def tolerance_of_two(
    X: Array,
    Y: Array,
    kernel: Kernel,
    gram: str | Approximation,
    tolerance: float | str,
    *,
    n_draws: int,
    rng: np.random.Generator,
    p_value: float,
) -> Tolerance:
    """Return whether two samples differ by more than a tolerance; X is the reference of halves.

    ``p_value`` is the exact one for any difference, below which that for more than δ never is.
    """
    rows = np.concatenate([X, Y])
    labels = Codes((0, 1), np.repeat([0, 1], [len(X), len(Y)]))
    design = GroupDesign.from_labels(labels, None, None, None, rng)
    learn = rows[rng.permutation(len(rows))]
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # most rows are equal: the result has the kernel
        kernel = kernel.resolve(learn)
    found = ToleranceTest.from_rows(
        rows, design, kernel, gram, learn, tolerance, n_draws=n_draws, rng=rng, reference=0
    )
    return Tolerance(
        found.delta,
        tolerance == HALVES,
        equivalent_shift(kernel, learn, found.delta),
        kernel,
        float(found.distances.from_rest[0]),
        max(p_value, float(found.p_values.max())),
    )
