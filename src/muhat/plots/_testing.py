"""Displays of a test: the observed statistic among its permutations, and the witness function at both samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat.plots._style import axes_or_new, require_matplotlib, without_frame
from muhat.testing import Result, TwoSampleResult

OBSERVED, PERMUTED = "#D55E00", "#BBBBBB"
SAMPLES = {"X": "#0072B2", "Y": "#E69F00"}
BINS = 40


@dataclass(eq=False)
class PermutationDisplay:
    """The largest standardized statistic of every permutation, as a histogram, and the observed one as a line.

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
        self.ax_.set_xlabel("largest statistic, in standard deviations above its mean")
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


def figure_of_test(result: Result) -> Any:
    """Return a figure of a test's displays, made without a screen; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    if not isinstance(result, TwoSampleResult):
        figure = Figure(figsize=(6.5, 4.2), layout="constrained")
        PermutationDisplay.from_result(result).plot(figure.subplots())
        return figure
    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    PermutationDisplay.from_result(result).plot(left)
    WitnessDisplay.from_result(result).plot(right)
    return figure
