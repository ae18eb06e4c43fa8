"""Displays of a test: columns that differ, the statistic under the null, the witness function, all p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat._messages import p_value_text, shift_text
from muhat.plots._pair import PairDisplay
from muhat.plots._style import TITLE, axes_or_new, require_matplotlib, without_frame
from muhat.testing import Result, Statistic, TwoSampleResult
from muhat.testing._marginals import FeatureDifference
from muhat.testing._results import short
from muhat.testing._statistics import Filtered

OBSERVED, PERMUTED = "#D55E00", "#BBBBBB"
SAMPLES = ("#0072B2", "#E69F00")
"""The colours of the first and of the second sample."""

NAMES = ("X", "Y")
BINS, ROWS_PER_BIN = 40, 8
LEVEL = 0.05

MAX_BARS, LEAST_SLOTS = 12, 5
"""Columns that are drawn as bars, and the least number of bars there is room for."""

MAX_LABELS = 8
"""Labels on each side of a map of p-values; of more rows or columns, evenly spaced ones are named."""

NAME_LENGTH = 28


@dataclass(eq=False)
class PermutationDisplay:
    """The combined statistic of every permutation, as a histogram, and the observed one as a line.

    Parameters
    ----------
    permuted : array of shape (n_permutations,)
        The statistic of every permutation.
    statistic, p_value : float
        The observed one, and the share of all that are as large.
    is_complete : bool, default=False
        Whether these are all permutations that differ, instead of random ones.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import TwoSampleTest
    >>> result = TwoSampleTest("gaussian", random_state=0).test([[0.0], [1.0], [2.0]], [[3.0], [5.0], [4.0]])
    >>> len(PermutationDisplay.from_result(result).permuted)
    19
    """

    permuted: Array
    statistic: float
    p_value: float
    is_complete: bool = False

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the display of a test's result."""
        return cls(result.permuted, result.statistic, result.p_value, result.is_complete)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        n = len(self.permuted)
        observed = f"observed, {p_value_text(self.p_value, n, self.is_complete)}"
        self.ax_.hist(self.permuted, bins=BINS, color=PERMUTED, label=f"{n:,} permutations")
        self.ax_.axvline(self.statistic, color=OBSERVED, linewidth=2, label=observed)
        self.ax_.set_xlabel("combined statistic")
        self.ax_.set_ylabel("permutations")
        self.ax_.set_title("The statistic under the null hypothesis, and as observed", **TITLE)
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class FeatureDifferenceDisplay:
    """How much every column differs between two samples, as bars, the largest first.

    Parameters
    ----------
    features : sequence of FeatureDifference
        The columns.
    names : tuple of two str
        The names of the samples; a shift is the second's mean minus the first's.
    n_permutations : int
        The number of permutations behind the p-values.
    level : float, default=0.05
        Columns with a larger corrected p-value are drawn in grey.
    is_complete : bool, default=False
        Whether these are all permutations that differ, instead of random ones.
    """

    features: Sequence[FeatureDifference]
    names: tuple[str, str]
    n_permutations: int
    level: float = LEVEL
    is_complete: bool = False

    @classmethod
    def from_result(
        cls, result: TwoSampleResult, names: tuple[str, str] | None = None, level: float = LEVEL
    ) -> Self:
        """Return the display of the result of a test of two samples."""
        largest = sorted(result.features, key=lambda each: -each.share)
        return cls(largest, _names(result, names), result.n_permutations, level, result.is_complete)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        shown = self.features[:MAX_BARS]
        places = range(len(shown))
        widths = [100 * each.share for each in shown]
        colours = [SAMPLES[0] if each.p_value <= self.level else PERMUTED for each in shown]
        self.ax_.barh(places, widths, height=0.7, color=colours)
        for place, each in zip(places, shown, strict=True):
            p = p_value_text(each.p_value, self.n_permutations, self.is_complete)
            text = f" {shift_text(each.shift)} SD, {p}"
            self.ax_.annotate(text, (widths[place], place), va="center", fontsize=8)
        self.ax_.set_yticks(places, [_shortened(each.name) for each in shown])
        self.ax_.set_ylim(
            max(len(shown), LEAST_SLOTS) - 0.5, -0.5
        )  # from above; few bars are not made thick
        self.ax_.set_xlim(
            0, 1.45 * max([*widths, 1e-9])
        )  # room for the text behind the longest bar
        first, second = map(_shortened, self.names)
        self.ax_.set_xlabel(
            f"difference, % of its maximum  (SD: mean of {second} − mean of {first})"
        )
        more = (
            f" ({len(shown)} of {len(self.features):,})" if len(self.features) > len(shown) else ""
        )
        self.ax_.set_title(f"Columns that differ most{more}; grey: p > {self.level:g}", **TITLE)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class WitnessDisplay:
    """The values of the witness function at the rows of both samples: apart where the samples differ.

    Parameters
    ----------
    witness_x, witness_y : arrays of shape (n,) and (m,)
        The values.
    names : tuple of two str, default=('X', 'Y')
        The names of the samples.
    """

    witness_x: Array
    witness_y: Array
    names: tuple[str, str] = NAMES

    @classmethod
    def from_result(cls, result: TwoSampleResult, names: tuple[str, str] | None = None) -> Self:
        """Return the display of the result of a test of two samples."""
        return cls(result.witness_x, result.witness_y, _names(result, names))

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        pooled = np.concatenate([self.witness_x, self.witness_y])
        edges = np.histogram_bin_edges(pooled, min(BINS, max(10, len(pooled) // ROWS_PER_BIN)))
        for name, colour, values in zip(
            self.names, SAMPLES, (self.witness_x, self.witness_y), strict=True
        ):
            shares = np.full(len(values), 100 / len(values))
            label = f"{_shortened(name)}, {len(values):,} rows"
            self.ax_.hist(values, edges, weights=shares, color=colour, alpha=0.6, label=label)
        self.ax_.set_xlabel(f"witness function (larger: more of {_shortened(self.names[0])})")
        self.ax_.set_ylabel("% of the sample")
        self.ax_.set_title("The witness function at the rows of both samples", **TITLE)
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class WitnessAlongDisplay:
    """The witness function at the rows of both samples, along the feature that differs most.

    Parameters
    ----------
    name : str
        The feature.
    values_x, values_y : arrays of shape (n,) and (m,)
        Its values at the rows.
    witness_x, witness_y : arrays of shape (n,) and (m,)
        The values of the witness function there.
    names : tuple of two str, default=('X', 'Y')
        The names of the samples.
    standardized : bool, default=False
        Whether the values are standardized, which the axis then says.
    """

    name: str
    values_x: Array
    values_y: Array
    witness_x: Array
    witness_y: Array
    names: tuple[str, str] = NAMES
    standardized: bool = False

    @classmethod
    def from_result(
        cls,
        result: TwoSampleResult,
        feature: int = 0,
        names: tuple[str, str] | None = None,
        standardized: bool = False,
    ) -> Self:
        """Return the display along the feature that differs most, or the one after it for 1, and so on."""
        x, y = result.at_rows.columns_x[:, feature], result.at_rows.columns_y[:, feature]
        name = result.features[feature].name
        return cls(
            name, x, y, result.witness_x, result.witness_y, _names(result, names), standardized
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        points = ((self.values_x, self.witness_x), (self.values_y, self.witness_y))
        for name, colour, (x, y) in zip(self.names, SAMPLES, points, strict=True):
            self.ax_.scatter(
                x, y, s=8, color=colour, alpha=0.6, linewidths=0, label=_shortened(name)
            )
        self.ax_.axhline(0, color="black", linewidth=0.8, zorder=1)
        self.ax_.set_xlabel(
            f"{_shortened(self.name)}{' (standardized)' if self.standardized else ''}"
        )
        self.ax_.set_ylabel(f"witness function (larger: more of {_shortened(self.names[0])})")
        self.ax_.set_title(f"Where they differ, along {_shortened(self.name)}", **TITLE)
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class PValueMapDisplay:
    """The p-value of every statistic on its own, over bandwidths and λ: a square for each, dark where it is small.

    Parameters
    ----------
    columns : list of str
        The kernels, each with its bandwidth.
    rows : list of str
        The statistics, each with its λ or t.
    p_values : array of shape (rows, columns)
        NaN where a kernel has no such statistic.
    best : tuple of two ints
        The row and the column of the most significant statistic.
    """

    columns: list[str]
    rows: list[str]
    p_values: Array
    best: tuple[int, int]

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the display of a test's result; for independence, of the smallest p-value over the kernels of y."""
        places = [(short(each.kernels[0]), _row_name(each.statistics)) for each in result.tests]
        columns, rows = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
        p_values = np.full((len(rows), len(columns)), np.nan)
        for (column, row), each in zip(places, result.tests, strict=True):
            place = rows.index(row), columns.index(column)
            p_values[place] = np.fmin(p_values[place], each.p_value)
        column, row = places[result.tests.index(result.best)]
        return cls(columns, rows, p_values, (rows.index(row), columns.index(column)))

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        levels = np.log10(self.p_values)
        image = self.ax_.imshow(
            levels, aspect="auto", cmap="Blues_r", vmin=min(-2.0, np.nanmin(levels)), vmax=0
        )
        for axis, labels in ((self.ax_.xaxis, self.columns), (self.ax_.yaxis, self.rows)):
            shown = range(0, len(labels), -(-len(labels) // MAX_LABELS))
            axis.set_ticks(shown, [_shortened(labels[place]) for place in shown], fontsize=7)
        self.ax_.tick_params(axis="x", rotation=45 if len(self.columns) > 1 else 0)
        self.ax_.plot(
            *self.best[::-1],
            marker="o",
            markersize=9,
            fillstyle="none",
            color=OBSERVED,
            linestyle="none",
        )
        self.ax_.set_title(
            "p-value of each statistic on its own; circled: the most significant", **TITLE
        )
        self.figure_.colorbar(image, ax=self.ax_, label="log₁₀ p", shrink=0.8)
        return self


def _row_name(statistics: tuple[Statistic, ...]) -> str:
    """Return a statistic with λ as a share of the largest eigenvalue, where it was given so, for all kernels."""
    return " × ".join(
        each.relative if isinstance(each, Filtered) else str(each) for each in statistics
    )


def figure_of_test(
    result: Result,
    names: tuple[str, str] | None = None,
    *,
    standardized: bool = False,
    pair: PairDisplay | None = None,
    level: float = LEVEL,
) -> Any:
    """Return a figure of a test's displays, made without a screen; ``figure.savefig(...)`` writes it.

    Parameters
    ----------
    result : TwoSampleResult or IndependenceResult
        What the test found.
    names : tuple of two str, default=None
        The names of two samples.
    standardized : bool, default=False
        Whether the columns were standardized, which the axes then say.
    pair : PairDisplay, default=None
        For independence, the two columns to show beside the statistic.
    level : float, default=0.05
        Columns with a larger corrected p-value are drawn in grey.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if isinstance(result, TwoSampleResult):
        figure = Figure(figsize=(12.5, 8.4), layout="constrained")
        (columns, permutations), (along, witness) = figure.subplots(2, 2)
        FeatureDifferenceDisplay.from_result(result, names, level).plot(columns)
        WitnessAlongDisplay.from_result(result, names=names, standardized=standardized).plot(along)
        WitnessDisplay.from_result(result, names).plot(witness)
    elif pair is not None:
        figure = Figure(figsize=(12.5, 4.6), layout="constrained")
        columns, permutations = figure.subplots(1, 2)
        pair.plot(columns)
        columns.set_title(f"{_shortened(pair.names[1])} and {_shortened(pair.names[0])}", **TITLE)
    else:
        figure = Figure(figsize=(6.5, 4.6), layout="constrained")
        permutations = figure.subplots()
    PermutationDisplay.from_result(result).plot(permutations)
    return figure


def _names(result: TwoSampleResult, names: tuple[str, str] | None) -> tuple[str, str]:
    """Return the names of two samples: those given, those the result knows, or X and Y."""
    return names or getattr(result, "names", None) or NAMES


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
