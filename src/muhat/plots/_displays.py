"""Displays of a comparison: the leave-one-out curves of all estimators, and their filters over the spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.interpolate import PchipInterpolator

from muhat._arrays import Array
from muhat.comparison import Comparison, Row
from muhat.filters import Filter
from muhat.mean import KernelMean
from muhat.plots._style import (
    TITLE,
    axes_or_new,
    filter_style,
    logarithmic,
    require_matplotlib,
    without_frame,
    zero_is_kme,
)

CURVE_POINTS = 600
DECADES = 6
"""How far below the largest eigenvalue the picture of the filters goes."""

OFF_SCALE = 1.5
"""A choice this many times worse than KME as the best is better is written in the legend instead of drawn."""

DASH, SAME = 5, 0.02
"""The length of a dash in points, and how far apart curves of filters may be that count as lying on each other."""

LEAST_SCALE, SHORT_LABELS = 1.0, 0.1
"""What the axes reach to, in percent, where all is less; and from where on labels are so long that fewer fit."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One estimator's curve."""

    estimator: str
    """The estimator's name, by which it gets its colour."""
    label: str
    """Its name and parameter, for the legend."""
    x: Array
    y: Array
    joined: bool = True
    """Whether neighbouring points are joined by a line."""
    chosen: tuple[float, float] = (0.0, 0.0)
    """The point of the chosen parameter, where the curve is of several."""

    @property
    def style(self) -> dict[str, Any]:
        """The estimator's own colour and marker, as keywords of matplotlib."""
        return filter_style(self.estimator)


class Display:
    """What the displays have in common: what they are made from, where they are drawn, and their legend."""

    curves: Sequence[Curve]

    @classmethod
    def from_estimator(cls, estimator: KernelMean) -> Self:
        """Return the display of the filters that a fitted ``KernelMean(filter="auto")`` has tried."""
        return cls.from_comparison(Comparison.from_estimator(estimator))

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison."""
        raise NotImplementedError

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw it on the axes given or in a new figure, and return it with these as ``ax_`` and ``figure_``."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        without_frame(self.ax_)
        if legend:  # to the right of the axes, where it covers nothing
            self.ax_.legend(
                *_entries(self.legend()), loc="upper left", bbox_to_anchor=(1.1, 1), frameon=False
            )
        return self

    def legend(self) -> dict[str, Curve]:
        """Return the curves by what a legend calls them."""
        return {curve.label: curve for curve in self.curves}

    def _draw(self, ax: Any) -> None:
        """Draw the curves and name the axes."""
        raise NotImplementedError


@dataclass(eq=False)
class LeaveOneOutDisplay(Display):
    """The leave-one-out curve of every estimator, against how strongly it shrinks.

    The height is the improvement over KME, in percent of KME's estimated risk; KME itself is the line at zero.

    Parameters
    ----------
    curves : sequence of Curve
        Strength and improvement, both in percent, along each estimator's grid.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> mu = KernelMean().fit(np.random.default_rng(0).normal(size=(30, 5)))
    >>> display = LeaveOneOutDisplay.from_estimator(mu)  # and display.plot() to draw it
    >>> [curve.estimator for curve in display.curves][:2]
    ['kme', 'f-kmse']
    """

    curves: Sequence[Curve]

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Return the display of a comparison; estimators without a leave-one-out score are not in it."""
        return cls(
            [
                _score_curve(row, row.improvements)
                for row in comparison.rows
                if row.improvements is not None
            ]
        )

    def _draw(self, ax: Any) -> None:
        limits = self.limits
        zero_is_kme(ax)
        for curve in self.curves:
            line = (
                {"linewidth": 1.6}
                if curve.joined
                else {"linestyle": "", "marker": ".", "markersize": 4}
            )
            ax.plot(curve.x, curve.y, color=curve.style["color"], zorder=2, **line)
            if limits.contain(curve.chosen):
                ax.plot(
                    *curve.chosen,
                    linestyle="",
                    markersize=7,
                    clip_on=False,
                    zorder=5,
                    **curve.style,
                )
        ax.set_xlim(0, limits.right)
        ax.locator_params(axis="x", nbins="auto" if limits.right > SHORT_LABELS else 5)
        ax.set_ylim(limits.bottom, limits.top)
        ax.set_xlabel(r"shrinkage strength  $\|\hat\mu - \mu_\lambda\|\,/\,\|\hat\mu\|$  (%)")
        ax.set_ylabel("improvement over KME  (% of its risk)")

    def legend(self) -> dict[str, Curve]:
        """Return the curves by what a legend calls them; a choice that is off the scale is marked there."""
        return {self._label(curve): curve for curve in self.curves}

    def _label(self, curve: Curve) -> str:
        value = curve.chosen[1]
        text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
        off_scale = f", off scale: {text.replace('-', '−')} %"
        return curve.label + ("" if self.limits.contain(curve.chosen) else off_scale)

    @property
    def limits(self) -> Limits:
        """Limits that show the peak of every curve, and every choice that is not far worse than KME."""
        scale = max([LEAST_SCALE, *(float(curve.y.max()) for curve in self.curves)])
        shown = [curve.chosen for curve in self.curves if curve.chosen[1] >= -OFF_SCALE * scale]
        peaks = [float(curve.x[curve.y.argmax()]) for curve in self.curves if curve.y.max() > 0]
        right = min(1.5 * max([0.0, *peaks, *(x for x, _ in shown)]), 102)
        return Limits(
            right or LEAST_SCALE, min([-scale / 2, *(1.1 * y for _, y in shown)]), 1.15 * scale
        )


@dataclass(frozen=True)
class Limits:
    """How far the axes of leave-one-out curves reach, in percent."""

    right: float
    bottom: float
    top: float

    def contain(self, point: tuple[float, float]) -> bool:
        """Whether a point is inside."""
        return point[0] <= self.right and self.bottom <= point[1] <= self.top


@dataclass(eq=False)
class FilterDisplay(Display):
    """The filter s_λ(γ) of every estimator for its chosen parameter, over the sample's spectrum.

    Parameters
    ----------
    eigenvalues : array
        The eigenvalues of K/n.
    curves : sequence of Curve
        γ and s_λ(γ): a line for a function of γ, a point for each eigenvalue otherwise.
    """

    eigenvalues: Array
    curves: Sequence[Curve]

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        shown = comparison.eigenvalues > 10.0**-DECADES * comparison.eigenvalues.max()
        gamma = comparison.eigenvalues[shown]
        return cls(
            gamma, [_filter_curve(row, gamma, row.shrinkage[shown]) for row in comparison.rows]
        )

    def _draw(self, ax: Any) -> None:
        for curve, dashes in zip(self.curves, self.dashes(), strict=True):
            if curve.joined:
                ax.plot(
                    curve.x, curve.y, linewidth=1.8, linestyle=dashes, color=curve.style["color"]
                )
            else:
                small = {**curve.style, "markersize": 4, "markeredgewidth": 0.3}
                ax.plot(curve.x, curve.y, linestyle="", zorder=3, **small)
        ax.plot(
            self.eigenvalues,
            np.full(len(self.eigenvalues), -0.07),
            "|",
            color="black",
            markersize=7,
            alpha=0.6,
        )
        logarithmic(ax.xaxis)
        ax.set_ylim(-0.13, max(1.08, *(1.03 * curve.y.max(initial=0) for curve in self.curves)))
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ax.set_xlabel(r"eigenvalue $\gamma$ of $K/n$  (ticks: the sample's)")
        ax.set_ylabel(r"share kept  $s_\lambda(\gamma)$")

    def dashes(self) -> list[Any]:
        """Return a line style for each curve: curves that lie on each other are dashed in turn, so all are seen."""
        groups: list[list[int]] = []
        for place, curve in enumerate(self.curves):
            alike = next(
                (group for group in groups if _coincide(self.curves[group[0]], curve)), None
            )
            if alike is None:
                groups.append([place])
            else:
                alike.append(place)
        styles: list[Any] = ["-"] * len(self.curves)
        for group in (each for each in groups if len(each) > 1):
            for turn, place in enumerate(group):
                styles[place] = (-DASH * turn, (DASH, DASH * (len(group) - 1)))
        return styles


def _coincide(one: Curve, other: Curve) -> bool:
    """Whether two lines would be drawn on each other."""
    same_places = one.joined and other.joined and len(one.x) == len(other.x)
    return same_places and bool(np.abs(one.y - other.y).max(initial=0) <= SAME)


def comparison_figure(comparison: Comparison) -> Any:
    """Return a figure of both displays with one legend, made without a screen; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    scores = LeaveOneOutDisplay.from_comparison(comparison).plot(left, legend=False)
    filters = FilterDisplay.from_comparison(comparison).plot(right, legend=False)
    left.set_title("Gain by leave-one-out (marked: the chosen parameter)", **TITLE)
    right.set_title("The chosen filters (dashed in turn where they coincide)", **TITLE)
    labels = {curve.estimator: label for label, curve in scores.legend().items()}
    entries = {
        labels.get(curve.estimator, label): curve for label, curve in filters.legend().items()
    }
    figure.legend(*_entries(entries), loc="outside right upper", frameon=False)
    return figure


def _score_curve(row: Row, improvements: Array) -> Curve:
    """Return improvement against strength; points are not joined where the strength goes back and forth."""
    x, y = 100 * row.strengths, improvements
    steps = np.diff(x)
    joined = len(steps) > 0 and bool((steps >= 0).all() or (steps <= 0).all())
    if joined and row.symbol == "λ" and row.filter.analytic:
        x, y = smooth(x, y)
    return Curve(
        row.name, str(row), x, y, joined, (100 * row.strength, float(improvements[row.index]))
    )


def smooth(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a smooth curve through points that lie on one; it overshoots none of them."""
    x, places = np.unique(x, return_index=True)
    if len(x) < 3:
        return x, y[places]
    between = np.interp(np.linspace(0, len(x) - 1, CURVE_POINTS), np.arange(len(x)), x)
    fine = np.union1d(x, between)
    return fine, PchipInterpolator(x, y[places])(fine)


def _filter_curve(row: Row, gamma: Array, s: Array) -> Curve:
    """Return s against γ: as a function where it is one, at the eigenvalues where it is not."""
    label = f"{row}, not scored" if row.scores is None else str(row)
    if not isinstance(row.filter, Filter) or not gamma.size:
        return Curve(row.name, label, gamma, s, joined=False)
    fine = np.geomspace(min(gamma.min(), gamma.max() / 100), gamma.max(), CURVE_POINTS)
    return Curve(row.name, label, fine, row.filter.path(fine, row.grid[[row.index]])[0])


def _entries(curves: dict[str, Curve]) -> tuple[list[Any], list[str]]:
    """Return a legend's handles and labels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linewidth=1.6 if curve.joined else 0, markersize=6, **curve.style)
        for curve in curves.values()
    ]
    return handles, list(curves)
