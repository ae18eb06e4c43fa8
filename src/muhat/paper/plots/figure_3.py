"""Figure 3: improvement over KME against iterations (a) and against the dimension (c), and run time (b)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat.paper.experiments.base import Row
from muhat.paper.experiments.figure_3b import WAYS
from muhat.paper.experiments.samples import SAMPLINGS
from muhat.paper.plots.bands import Line, distinct, entries, lines
from muhat.paper.reproduction import Results, where
from muhat.plots._style import blank, legend_below, lettered, logarithmic, name_of, plain, style_of, zero_is_kme

IMPROVEMENT = "improvement over KME\n(% of its risk)"
MIXTURES = {"redrawn": "a new mixture for each sample", "once": "one mixture for all samples"}

DIMENSIONS = [1, 2, 5, 10, 20, 50, 100]
"""The dimensions that are labelled."""

OFF_SCALE = 1.0
"""A line that is everywhere this many times farther below KME than the best is above it is told, not drawn."""

SHARES = (0, 104)
"""The limits of an axis of percents of samples."""

POWERS = {2: "top", 3: "bottom"}
"""Of n: what the slopes of run times are compared with, and the side of its name that is at its end."""

SPAN, CLEARANCE = 3, 8
"""Over how many sizes the slopes are drawn, and how many times under the fastest."""


def figure_3a(results: Results) -> Any:
    """Return figure 3a: improvement against the iterations, and below it where leave-one-out stops."""
    samplings = distinct(results.rows, "sampling", SAMPLINGS)
    iterative = [row for row in results.rows if row["estimator"] != "kme"]
    figure = blank(3.9)
    axes = figure.subplots(2, len(samplings), sharex=True, sharey="row", squeeze=False, height_ratios=[2.2, 1])
    for (upper, lower), sampling in zip(axes.T, samplings, strict=True):
        rows = where(iterative, sampling=sampling)
        zero_is_kme(upper, named=sampling == samplings[-1])
        for each in lines(rows, "t", "improvement"):
            each.draw(upper, markevery=0.08)
        plain(upper)
        _stops(lower, rows)
        logarithmic(lower.xaxis)
        lower.set_xlabel("iterations $t$")
    top = max([1e-3, *(row["improvement_high"] for row in iterative)])
    axes[0, 0].set(ylim=(-1.2 * top, 1.15 * top), ylabel=IMPROVEMENT)
    axes[1, 0].set(ylim=SHARES, ylabel="LOO has stopped\n(% of samples)")
    lettered(axes[0], [MIXTURES[sampling] for sampling in samplings])
    legend_below(figure, entries(lines(iterative, "t", "improvement")))
    return figure


def _stops(ax: Any, rows: Sequence[Row]) -> None:
    """Draw in how many samples leave-one-out has stopped by each iteration."""
    for estimator in distinct(rows, "estimator"):
        own = where(rows, estimator=estimator)
        share = 100 * np.cumsum([row["chosen"] for row in own])
        colour = style_of(estimator)["color"]
        ax.step([row["t"] for row in own], share, where="post", color=colour, linewidth=1.6, label=name_of(estimator))
    plain(ax)


def figure_3b(results: Results) -> Any:
    """Return figure 3b: median seconds with quartiles against n, a panel for each way of getting there."""
    ways, sizes = distinct(results.rows, "way", WAYS), sorted(distinct(results.rows, "n"))
    figure = blank(2.9)
    axes = figure.subplots(1, len(ways), sharex=True, sharey=True, squeeze=False)[0]
    for ax, way in zip(axes, ways, strict=True):
        drawn = lines(where(results.rows, way=way), "n", "seconds")
        for each in drawn:
            each.draw(ax)
        _slopes(ax, drawn)
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
        ax.set_xticks(sizes[::2], sizes[::2])
        ax.set_xlabel("sample size $n$")
        plain(ax)
    axes[0].set_ylabel("seconds on one core")
    lettered(axes, ways)
    legend_below(figure, entries(lines(results.rows, "n", "seconds")))
    return figure


def _slopes(ax: Any, drawn: Sequence[Line]) -> None:
    """Draw how n² and n³ grow, well under the fastest over the last sizes."""
    sizes = drawn[0].x[-SPAN:]
    start = min(each.low[-SPAN:][0] for each in drawn) / CLEARANCE
    for power, side in POWERS.items():
        seconds = start * (sizes / sizes[0]) ** power
        ax.plot(sizes, seconds, color="#777777", linewidth=0.8, linestyle=":", zorder=0)
        place = {"xytext": (2, 0), "textcoords": "offset points", "va": side}
        ax.annotate(f"$n^{power}$", (sizes[-1], seconds[-1]), color="#555555", **place)


def figure_3c(results: Results) -> Any:
    """Return figure 3c: improvement against the dimension with parameters chosen, and below it with the loss known."""
    samplings = distinct(results.rows, "sampling", SAMPLINGS)
    figure = blank(5.6)
    axes = figure.subplots(2, len(samplings), sharex=True, sharey="row", squeeze=False)
    rows = [row for row in results.rows if row["estimator"] != "kme"]
    chosen = [row for row in rows if row["rule"] != "oracle"]
    far = far_below(chosen)
    for column, sampling in zip(axes.T, samplings, strict=True):
        of_sampling = lines(where(chosen, sampling=sampling), "d", "improvement")
        last = sampling == samplings[-1]
        improvements(column[0], [each for each in of_sampling if (each.estimator, each.rule) not in far], last)
        improvements(column[1], lines(where(rows, sampling=sampling, rule="oracle"), "d", "improvement"), last)
        logarithmic(column[1].xaxis)
        column[1].set_xticks(DIMENSIONS, DIMENSIONS)
        column[1].set_xlabel("dimension $d$")
    for ax, how in zip(axes[:, 0], ("parameters chosen", "best parameters (oracle)"), strict=True):
        ax.set_ylabel(f"{how}:\n{IMPROVEMENT}")
    lettered(axes.flat, 2 * [MIXTURES[sampling] for sampling in samplings])
    legend_below(figure, entries(lines(chosen, "d", "improvement"), far), columns=3)
    return figure


def improvements(ax: Any, drawn: Iterable[Line], named: bool = True) -> None:
    """Draw improvements over KME, which is the line at zero."""
    zero_is_kme(ax, named)
    for each in drawn:
        each.draw(ax)
    plain(ax)


def far_below(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the estimators and rules that are far below KME all along, with the note that is told instead."""
    scale = max([1e-3, *(row["improvement"] for row in rows)])
    return {
        (each.estimator, each.rule): f"off scale, {each.y.min():.0f} to {each.y.max():.0f} %".replace("-", "−")
        for each in lines(rows, "d", "improvement")
        if each.y.max() < -OFF_SCALE * scale
    }
