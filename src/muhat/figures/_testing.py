"""Figures of a test: the statistic under the null, columns that differ, the witness function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat._text import count, number, shortened
from muhat._wording import p_value_text
from muhat.figures._plot import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    RED,
    Axis,
    Bar,
    Bars,
    Plot,
    Series,
    histogram_readings,
)
from muhat.testing._marginals import FeatureDifference
from muhat.testing._wording import change_title, size_text

SAMPLE_COLOURS = (BLUE, ORANGE)
"""The colours of the first and of the second sample."""

MAX_BINS, MIN_BINS = 40, 5

PERMUTATIONS_PER_BIN, ROWS_PER_BIN = 10, 8
"""Fewer values than this in a bin make a histogram ragged."""

MAX_BARS = 12
"""Columns that are drawn as bars."""

NAME_LENGTH = 28
"""Characters of a name on an axis or in a legend."""


def permutations_plot(
    permuted: Array,
    statistic: float,
    p_text: str,
    how: str = "random permutations",
    axis: str = "combined statistic",
) -> Plot:
    """Return the histogram of the permuted statistics, and the observed one as a line.

    Parameters
    ----------
    permuted : array of shape (n_permutations,)
        The statistic of every permutation.
    statistic : float
        The observed one.
    p_text, how, axis : str
        The p-value as text, what was permuted, and what the statistic is called.
    """
    permuted = permuted[np.isfinite(permuted)]
    n_bins = min(MAX_BINS, max(MIN_BINS, len(permuted) // PERMUTATIONS_PER_BIN))
    counts, edges = np.histogram(permuted, bins=n_bins)
    as_large = int(np.sum(permuted >= statistic))
    share = (
        f"{as_large:,} of {count(len(permuted), 'permutation')} give a value at least as large as "
        f"the observed one, {number(statistic)}."
    )
    bars = Series(
        count(len(permuted), "permutation"),
        "bars",
        edges,
        counts.astype(float),
        colour=GREY,
        readings=histogram_readings(edges, counts, "permutation"),
    )
    line = Series(
        f"observed: {number(statistic)}, {p_text}",
        "rule",
        np.array([statistic]),
        np.array([]),
        colour=RED,
        is_strong=True,
    )
    ends = f"from {number(edges[0])} to {number(edges[-1])}"
    return Plot(
        "Distribution of the statistic under the null hypothesis",
        f"Grey: the statistic after {how}. Line: the observed value. {share}",
        f"A histogram of the permuted statistics, {ends}, and a line at the observed one. {share}",
        Axis.around(axis, np.append(edges, statistic)),
        Axis("permutations", 0, 1.08 * max(1, int(counts.max()))),
        [bars, line],
    )


def differences_bars(
    features: Sequence[FeatureDifference],
    names: tuple[str, str],
    n_permutations: int,
    level: float,
    is_complete: bool = False,
) -> Bars:
    """Return how much each column differs between two samples on its own, the largest first."""
    shown = sorted(features, key=lambda each: -each.share)[:MAX_BARS]
    more, few = "", ""
    if len(features) > len(shown):
        more = f" Of {len(features):,} columns, the {len(shown)} with the largest distance are "
        more += "shown."
        few = f"{len(shown)} of {len(features):,}; "
    bars = []
    for each in shown:
        p = p_value_text(each.p_value, n_permutations, is_complete)
        text = f"{size_text(each, level)}, {p}"
        bars.append(Bar(each.name, 100 * each.share, text, each.p_value <= level))
    return Bars(
        "Columns that differ most",
        "Bars: the energy distance between the samples in each column, which measures differences "
        f"of any kind, not only of the mean. Grey: the corrected p-value is above "
        f"{number(level)}.{more}",
        ("column", change_title(*names)),
        bars,
        axis=f"energy distance, % of its maximum  ({_short_change(*names)})",
        note=f"{few}grey: p > {level:g}",
    )


def _short_change(first: str, second: str) -> str:
    """Return what the texts of bars say."""
    return f"change from {shortened(first, 24)} to {shortened(second, 24)}"


def witness_plot(witness_x: Array, witness_y: Array, names: tuple[str, str]) -> Plot:
    """Return the histograms of the witness function at the rows of both samples.

    Parameters
    ----------
    witness_x, witness_y : arrays of shape (n,) and (m,)
        Its values at the rows.
    names : tuple of two str
        The names of the samples.
    """
    first, second = names
    pooled = np.concatenate([witness_x, witness_y])
    edges = np.histogram_bin_edges(pooled, min(MAX_BINS, max(10, len(pooled) // ROWS_PER_BIN)))
    series, highest = [], 1.0
    for name, values, colour in zip(names, (witness_x, witness_y), SAMPLE_COLOURS, strict=True):
        shares = 100 * np.histogram(values, edges)[0] / len(values)
        readings = []
        for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True):
            text = f"{number(share)} % of the rows, from {number(left)} to {number(right)}"
            readings.append(((left + right) / 2, float(share), text))
        label = f"{shortened(name, NAME_LENGTH)}, {count(len(values), 'row')}"
        series.append(Series(label, "bars", edges, shares, colour=colour, readings=readings))
        highest = max(highest, float(shares.max()))
    apart = number(float(witness_x.mean() - witness_y.mean()))
    return Plot(
        "The witness function at the rows of both samples",
        f"The witness function is positive where rows of {first} are more frequent, and negative "
        f"where rows of {second} are. The further apart the two histograms are, the more the "
        "samples differ.",
        f"Two histograms. The mean over {first} minus the mean over {second} is {apart}.",
        Axis.around(_witness_label(first), edges, 0.03),
        Axis("% of the sample", 0, 1.08 * highest, unit=" %"),
        series,
    )


def _witness_label(first: str) -> str:
    return f"witness function (larger: more of {shortened(first, NAME_LENGTH)})"


def witness_along_plot(
    feature: str,
    values: tuple[Array, Array],
    witness: tuple[Array, Array],
    names: tuple[str, str],
    is_standardized: bool = False,
) -> Plot:
    """Return the witness function at the rows of both samples, along one feature.

    Parameters
    ----------
    feature : str
        Its name.
    values, witness : tuples of arrays of shape (n,) and (m,)
        The feature and the witness function at the rows of both samples.
    names : tuple of two str
        The names of the samples.
    is_standardized : bool
        Whether the values are standardized.
    """
    series = []
    for name, x, y, colour in zip(names, values, witness, SAMPLE_COLOURS, strict=True):
        label = shortened(name, NAME_LENGTH)
        series.append(Series(label, "points", x, y, colour=colour))
    zero = Series("equal density", "rule", np.array([]), np.zeros(1), colour=BLACK)
    label = shortened(feature, NAME_LENGTH)
    axis_label = label
    if is_standardized:
        axis_label += " (standardized)"
    return Plot(
        f"Where they differ, along {label}",
        f"Each dot is a row. Where dots are above the line, rows of {names[0]} are more frequent; "
        f"where they are below it, rows of {names[1]}.",
        f"The witness function against {feature}, as dots of two colours.",
        Axis.around(axis_label, np.hstack(values)),
        Axis.around(_witness_label(names[0]), np.hstack([*witness, 0.0])),
        [*series, zero],
        by_point=True,
    )
