"""The matplotlib renderer: a figure as data, drawn in axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat._text import shortened
from muhat.figures._plot import BLACK, BLUE, GREY, Axis, Bars, Plot, Series
from muhat.plots._style import TITLE, logarithmic, without_frame

DASH = 5
"""The length of a dash, in points."""

COINCIDENCE_TOL = 0.02
"""Lines that are nowhere farther apart are drawn as lying on each other."""

MAX_LEGEND_INSIDE = 4
"""Entries of a legend inside the axes; a longer one stands to their right."""

MAX_TICK_CHARACTERS = 50
"""Characters of all names below a plot that fit side by side; more are turned."""

MIN_BAR_SLOTS = 5
"""Room for at least this many bars, so that few are not thick."""

NAME_LENGTH = 28
"""Characters of a bar's name."""

DOT_AREA, FEW_DOTS_AREA, STRONG_AREA = 12, 36, 60
"""The size of a dot, of one among few, and of one that matters, in square points."""

LABEL_PLACES = {
    "below": ((0, -6), "center", "top"),
    "above": ((0, 6), "center", "bottom"),
    "right": ((6, 0), "left", "center"),
    "left": ((-6, 0), "right", "center"),
}
"""How far a label is from its dot, in points, and how its text is aligned."""

FEW_DOTS = 20
"""Up to this many dots are drawn larger."""

FEW_CELLS = 30
"""Up to this many cells a side are drawn as squares, more as a smooth surface."""

CHOSEN_STYLE = {
    "linestyle": "",
    "markersize": 7,
    "markeredgecolor": "black",
    "markeredgewidth": 0.6,
}
"""How the chosen point of a curve is drawn."""


def draw(content: Plot | Bars, ax: Any, *, legend: bool = True) -> None:
    """Draw a figure in matplotlib's axes."""
    if isinstance(content, Bars):
        _draw_bars(content, ax)
    else:
        _draw_plot(content, ax)
        handles, labels = legend_entries(content.series)
        if legend and content.has_legend and len(labels) > 1:
            has_rug = any(each.kind == "rug" for each in content.series)
            _draw_legend(ax, handles, labels, outside=has_rug or len(labels) > MAX_LEGEND_INSIDE)
    title = content.title
    if content.note:
        title += f" ({content.note})"
    ax.set_title(title, **TITLE)
    without_frame(ax)


def _draw_plot(plot: Plot, ax: Any) -> None:
    if plot.x.is_log:
        logarithmic(ax.xaxis)
    if plot.y.is_log:
        logarithmic(ax.yaxis)
    ax.set_xlim(plot.x.low, plot.x.high)
    ax.set_ylim(plot.y.low, plot.y.high)
    dashes = dashes_in_turn(plot.series)
    for place, (series, dash) in enumerate(zip(plot.series, dashes, strict=True)):
        _draw_series(series, ax, dash, 2 + place / 100, plot.shades)
    _name_ticks(ax.xaxis, plot.x)
    _name_ticks(ax.yaxis, plot.y)
    ax.set_xlabel(plot.x.label)
    ax.set_ylabel(plot.y.label)


def _draw_series(series: Series, ax: Any, dash: Any, zorder: float, shades_label: str) -> None:
    colour, is_strong = series.colour, series.is_strong
    if series.kind == "line":
        line = {"linewidth": 1.6, "linestyle": dash}
        if is_strong:
            line["linewidth"] = 2.4
        ax.plot(series.x, series.y, color=colour, zorder=zorder, **line)
    elif series.kind == "points":
        are_few = len(series.x) <= FEW_DOTS and not series.marker
        dot: dict[str, Any] = {"s": DOT_AREA, "alpha": 0.6}
        if are_few:
            dot["s"] = FEW_DOTS_AREA
        if is_strong:
            dot = {"s": STRONG_AREA, "alpha": 1}
        if series.marker:
            dot |= {"marker": series.marker, "edgecolors": "black", "linewidths": 0.3}
        else:
            dot |= {"linewidths": 0}
        ax.scatter(series.x, series.y, color=colour, zorder=zorder, **dot)
    elif series.kind == "bars":
        ax.stairs(series.y, series.x, fill=True, color=colour, alpha=0.6, zorder=zorder)
    elif series.kind == "band":
        fill = {"color": lighter(colour, series.shade), "linewidth": 0}
        ax.fill_between(series.x, series.y, series.upper, zorder=zorder, **fill)
    elif series.kind == "ranges":
        ax.vlines(series.x, series.y, series.upper, color=colour, linewidth=0.8, alpha=0.6)
    elif series.kind == "cells":
        _draw_cells(series, ax, shades_label)
    elif series.kind == "rug":
        height = {"transform": ax.get_xaxis_transform(), "markersize": 7, "alpha": 0.6}
        ax.plot(series.x, np.full(len(series.x), 0.02), "|", color=colour, **height)
    else:
        _draw_rule(series, ax)
    if series.chosen is not None and _is_inside(ax, series.chosen):
        marker = series.marker or "o"
        ax.plot(
            *series.chosen, marker=marker, color=colour, clip_on=False, zorder=5, **CHOSEN_STYLE
        )
    for x, y, label, side in series.placed_labels:
        offset, horizontal, vertical = LABEL_PLACES[side]
        place = {"textcoords": "offset points", "ha": horizontal, "va": vertical}
        ax.annotate(label, (x, y), offset, fontsize=8, **place)


def _draw_cells(series: Series, ax: Any, label: str) -> None:
    """Draw squares, or a smooth surface where they are many, and the scale if it has a label."""
    from matplotlib.colors import LinearSegmentedColormap

    half = []
    for places in (series.x, series.y):
        half.append((places[-1] - places[0]) / max(len(places) - 1, 1) / 2 or 0.5)
    x, y = series.x, series.y
    extent = (x[0] - half[0], x[-1] + half[0], y[0] - half[1], y[-1] + half[1])
    values = np.asarray(series.upper)
    low, high = series.ends or (np.nanmin(values), np.nanmax(values))
    limits = ax.get_xlim(), ax.get_ylim()
    image = ax.imshow(
        values,
        cmap=LinearSegmentedColormap.from_list("shades", ["white", series.colour]),
        interpolation={True: "bilinear", False: "nearest"}[min(values.shape) > FEW_CELLS],
        vmin=low,
        vmax=high,
        extent=extent,
        origin="lower",
        aspect="auto",
    )
    ax.set(xlim=limits[0], ylim=limits[1])
    if label:
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.8)


def _draw_rule(series: Series, ax: Any) -> None:
    width = 1 + series.is_strong
    if len(series.y):
        ax.axhline(series.y[0], color=series.colour, linewidth=width, zorder=1)
    else:
        ax.axvline(series.x[0], color=series.colour, linewidth=width, zorder=3)


def _is_inside(ax: Any, point: tuple[float, float]) -> bool:
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return bool(left <= point[0] <= right and bottom <= point[1] <= top)


def _name_ticks(axis: Any, content: Axis) -> None:
    if not content.ticks:
        return
    places, names = zip(*content.ticks, strict=True)
    axis.set_ticks(places, names)
    if axis.axis_name == "x" and sum(map(len, names)) > MAX_TICK_CHARACTERS:
        for label in axis.get_ticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")


def _draw_bars(content: Bars, ax: Any) -> None:
    """Draw horizontal bars from above, the words behind each."""
    lengths, colours, names = [], [], []
    for each in content.bars:
        lengths.append(each.length)
        colours.append({True: BLUE, False: GREY}[bool(each.is_strong)])
        names.append(shortened(each.name, NAME_LENGTH))
    places = range(len(lengths))
    ax.barh(places, lengths, height=0.7, color=colours)
    for place, each in zip(places, content.bars, strict=True):
        text, side = f" {each.text}", "left"
        if each.length < 0:
            text, side = f"{each.text} ", "right"
        ax.annotate(text, (each.length, place), va="center", ha=side, fontsize=8)
    ax.set_yticks(places, names)
    ax.set_ylim(max(len(lengths), MIN_BAR_SLOTS) - 0.5, -0.5)
    longest = max([*map(abs, lengths), 1e-9])
    if min(lengths, default=0) < 0:
        ax.set_xlim(-1.7 * longest, 1.7 * longest)  # room for the words behind the longest bar
        ax.axvline(0, color=BLACK, linewidth=0.8)
    else:
        ax.set_xlim(0, 1.45 * longest)
    ticks = ax.get_xticks()
    ax.set_xticks(ticks[np.abs(ticks) <= 1.1 * longest])  # none where there are only words
    ax.set_xlabel(content.axis.replace("  (", "\n("))  # the unit below, as both are often too long


def _draw_legend(ax: Any, handles: list[Any], labels: list[str], outside: bool) -> None:
    if outside:  # to the right of the axes, where it covers nothing
        ax.legend(handles, labels, frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))
    else:
        ax.legend(handles, labels, frameon=False)


def legend_entries(series: Sequence[Series]) -> tuple[list[Any], list[str]]:
    """Return the handles and labels of a legend."""
    return [_handle(each) for each in series], [each.name for each in series]


def _handle(series: Series) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if series.kind == "band":
        return Patch(facecolor=lighter(series.colour, series.shade))
    if series.kind == "bars":
        return Patch(facecolor=series.colour, alpha=0.6)
    look: dict[str, Any] = {
        "color": series.colour,
        "markeredgecolor": "black",
        "markeredgewidth": 0.6,
    }
    if series.kind == "rug":
        return Line2D([], [], linewidth=0, marker="|", color=series.colour)
    if series.kind == "points":
        if not series.marker:
            return Line2D([], [], linewidth=0, marker="o", markersize=5, color=series.colour)
        return Line2D([], [], linewidth=0, marker=series.marker, **look)
    return Line2D([], [], linewidth=1.6, marker=series.marker, markersize=6, **look)


def lighter(colour: str, share: float) -> str:
    """Return a colour mixed with white, opaque: 0 is white, 1 the colour itself."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (1 - share * (1 - each) for each in to_rgb(colour))
    return str(to_hex((red, green, blue)))


def dashes_in_turn(series: Sequence[Series]) -> list[Any]:
    """Return a line style for each series: lines that coincide are dashed in turn, so all show."""
    groups: list[list[int]] = []
    for place, each in enumerate(series):
        for group in groups:
            if _coincide(series[group[0]], each):
                group.append(place)
                break
        else:
            groups.append([place])
    styles: list[Any] = ["-"] * len(series)
    for group in groups:
        if len(group) > 1:
            for turn, place in enumerate(group):
                styles[place] = (-DASH * turn, (DASH, DASH * (len(group) - 1)))
    return styles


def _coincide(one: Series, other: Series) -> bool:
    """Whether two lines would be drawn on each other."""
    if one.kind != "line" or other.kind != "line" or len(one.x) != len(other.x):
        return False
    is_same_place = np.array_equal(one.x, other.x)
    return bool(is_same_place and np.abs(one.y - other.y).max(initial=0) <= COINCIDENCE_TOL)
