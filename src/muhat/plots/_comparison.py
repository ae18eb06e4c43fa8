"""Displays of a comparison: the leave-one-out curves of all estimators, and their filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from muhat.comparison import Comparison
from muhat.figures import Plot, filters_plot, leave_one_out_plot
from muhat.mean import KernelMean
from muhat.plots._display import Display
from muhat.plots._draw import legend_entries
from muhat.plots._style import require_matplotlib


@dataclass(eq=False)
class _CurvesDisplay(Display):
    """Curves of a comparison."""

    curves: Plot

    @classmethod
    def from_estimator(cls, estimator: KernelMean) -> Self:
        """Return the display of the filters that a fitted ``KernelMean`` has tried."""
        return cls.from_comparison(Comparison.from_estimator(estimator))

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison."""
        raise NotImplementedError

    def content(self) -> Plot:
        """Return the curves."""
        return self.curves


@dataclass(eq=False)
class LeaveOneOutDisplay(_CurvesDisplay):
    """The leave-one-out score of every estimator against its strength of shrinkage.

    The height is the gain over KME, in percent of KME's estimated risk; KME is the line at zero.

    Parameters
    ----------
    curves : Plot
        Strength and gain, both in percent, along each estimator's grid.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> mu = KernelMean().fit(np.random.default_rng(0).normal(size=(30, 5)))
    >>> display = LeaveOneOutDisplay.from_estimator(mu)  # and display.plot() to draw it
    >>> [series.key for series in display.curves.series][:2]
    ['kme', 'f-kmse']
    """

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison, without estimators that have no score."""
        return cls(leave_one_out_plot(comparison))


@dataclass(eq=False)
class FilterDisplay(_CurvesDisplay):
    """The filter s_λ(γ) of every estimator for its chosen parameter, over the sample's spectrum.

    Parameters
    ----------
    curves : Plot
        γ and s_λ(γ): a line for a function of γ, a point for each eigenvalue otherwise; and the
        eigenvalues of K/n.
    """

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison."""
        return cls(filters_plot(comparison))


def comparison_figure(comparison: Comparison) -> Any:
    """Return a figure of both displays with one legend; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    scores = LeaveOneOutDisplay.from_comparison(comparison).plot(left, legend=False)
    filters = FilterDisplay.from_comparison(comparison).plot(right, legend=False)
    # the names of the curves of scores, which say what is off the scale, are preferred
    series = {each.key: each for each in filters.curves.series}
    series |= {each.key: each for each in scores.curves.series}
    handles, labels = legend_entries(list(series.values()))
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    return figure
