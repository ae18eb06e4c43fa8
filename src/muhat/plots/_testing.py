"""Displays of a test: the observed one among its permutations, the p-values of all statistics, the witness function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat.plots._style import axes_or_new, require_matplotlib, without_frame
from muhat.testing import Result, Statistic, TwoSampleResult
from muhat.testing._results import short
from muhat.testing._statistics import Filtered

OBSERVED, PERMUTED = "#D55E00", "#BBBBBB"
SAMPLES = {"X": "#0072B2", "Y": "#E69F00"}
BINS = 40


@dataclass(eq=False)
class PermutationDisplay:
    """The combined statistic of every permutation, as a histogram, and the observed one as a line.

    Parameters
    ----------
    permuted : array of shape (n_permutations,)
        The statistic of every permutation.
    statistic, p_value : float
        The observed one, and the share of all that are as large.

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

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the display of a test's result."""
        return cls(result.permuted, result.statistic, result.p_value)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self.ax_.hist(self.permuted, bins=BINS, color=PERMUTED, label=f"{len(self.permuted)} permutations")
        self.ax_.axvline(self.statistic, color=OBSERVED, linewidth=2, label=f"observed, p = {self.p_value:.3g}")
        self.ax_.set_xlabel("soft maximum of all statistics, as normal scores")
        self.ax_.set_ylabel("permutations")
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class WitnessDisplay:
    """The values of the witness function at the rows of both samples: apart where the samples differ.

    Parameters
    ----------
    witness_x, witness_y : arrays of shape (n,) and (m,)
        The values.
    """

    witness_x: Array
    witness_y: Array

    @classmethod
    def from_result(cls, result: TwoSampleResult) -> Self:
        """Return the display of the result of a test of two samples."""
        return cls(result.witness_x, result.witness_y)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        edges = np.histogram_bin_edges(np.concatenate([self.witness_x, self.witness_y]), BINS)
        for (name, colour), values in zip(SAMPLES.items(), (self.witness_x, self.witness_y), strict=True):
            shares = np.full(len(values), 100 / len(values))
            self.ax_.hist(values, edges, weights=shares, color=colour, alpha=0.6, label=f"{name}, {len(values)} rows")
        self.ax_.set_xlabel("witness function: the larger, the more of X is there")
        self.ax_.set_ylabel("% of the sample")
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
    """

    name: str
    values_x: Array
    values_y: Array
    witness_x: Array
    witness_y: Array

    @classmethod
    def from_result(cls, result: TwoSampleResult, feature: int = 0) -> Self:
        """Return the display along the feature that differs most, or the one after it for 1, and so on."""
        x, y = result.most_telling_x[:, feature], result.most_telling_y[:, feature]
        return cls(result.features[feature].name, x, y, result.witness_x, result.witness_y)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        points = ((self.values_x, self.witness_x), (self.values_y, self.witness_y))
        for (name, colour), (x, y) in zip(SAMPLES.items(), points, strict=True):
            self.ax_.scatter(x, y, s=8, color=colour, alpha=0.6, linewidths=0, label=name)
        self.ax_.set_xlabel(self.name)
        self.ax_.set_ylabel("witness function")
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class PValueMapDisplay:
    """The p-value of every statistic by itself, over bandwidths and λ: a square for each, dark where it is small.

    Parameters
    ----------
    columns : list of str
        The kernels, each with its bandwidth.
    rows : list of str
        The statistics, each with its λ or t.
    p_values : array of shape (rows, columns)
        NaN where a kernel has no such statistic.
    best : tuple of two ints
        The row and the column of the statistic that spoke.
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
        image = self.ax_.imshow(levels, aspect="auto", cmap="cividis", vmin=min(-2.0, np.nanmin(levels)), vmax=0)
        self.ax_.set_xticks(range(len(self.columns)), self.columns, rotation=90, fontsize=7)
        self.ax_.set_yticks(range(len(self.rows)), self.rows, fontsize=7)
        self.ax_.plot(*self.best[::-1], marker="o", markersize=9, fillstyle="none", color=OBSERVED, linestyle="none")
        self.ax_.set_title("p-value of each statistic by itself; circled: the one that spoke", fontsize=9)
        self.figure_.colorbar(image, ax=self.ax_, label="log₁₀ p", shrink=0.8)
        return self


def _row_name(statistics: tuple[Statistic, ...]) -> str:
    """Return a statistic with λ as a share of the largest eigenvalue, where it was given so, for all kernels."""
    return " × ".join(each.relative if isinstance(each, Filtered) else str(each) for each in statistics)


def figure_of_test(result: Result) -> Any:
    """Return a figure of a test's displays, made without a screen; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    if not isinstance(result, TwoSampleResult):
        figure = Figure(figsize=(12.5, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
    else:
        figure = Figure(figsize=(12.5, 8.4), layout="constrained")
        (left, middle), (right, last) = figure.subplots(2, 2)
        WitnessDisplay.from_result(result).plot(middle)
        WitnessAlongDisplay.from_result(result).plot(last)
    PermutationDisplay.from_result(result).plot(left)
    PValueMapDisplay.from_result(result).plot(right)
    return figure
