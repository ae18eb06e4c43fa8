"""The SVG renderer: a figure as data, as SVG that stretches to any width, and bars as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import TypeVar

import numpy as np

from muhat._arrays import Array
from muhat._text import number, shortened
from muhat.figures._plot import BLUE, ORANGE, PALETTE, Axis, Bars, Matrix, Plot, Reading, Series
from muhat.report._document import Spark

PLOT_SIDE = 1000
"""The width and the height of a plot, in the units of its SVG."""

MAX_DRAWN = 1500
"""Points of a series that are drawn."""

MAX_CELLS = 40
"""Cells along each side that are drawn."""

N_SHADES = 12
"""Shades of cells."""

MAX_READ = 240
"""Places of a curve whose values can be read off."""

MAX_IN_TABLE = 20
"""Points of a series in the table below a plot."""

MAX_TICKS, MIN_TICKS = 6, 3
"""Numbers along an axis."""

TICK_LENGTH = 12
"""Characters of a name on an axis."""

SHORT_NAMES = 24
"""Characters of all names of an axis that fit on the narrowest screen."""

ROOM_PER_NAME = 1.25
"""The height of a name on the vertical axis, in units of the type."""

MATRIX_NAME_LENGTH = 16
"""Characters of a name beside a matrix."""

BAR_NAME_LENGTH = 48
"""Characters of the name of a bar."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SWATCHES = {"points": "M13 5h.01", "bars": "M4 10V1H22V10Z", "band": "M1 9V1H25V9Z"}
"""The shape of a series in the legend, if it is not a line."""

RELATION, NOT_BROKEN = re.compile(" ([≤=]) "), "\u00a0\\1\u00a0"
"""A relation such as p ≤ 0.001 stays on one line."""

T = TypeVar("T")


def plot_html(plot: Plot, name: str) -> str:
    """Return a plot as HTML; the name is one that nothing else on the page has."""
    x_ticks, y_ticks = _ticks(plot.x), _ticks(plot.y)
    readings = _all_readings(plot)
    below = ""
    if readings:
        below = _reader(plot, readings) + _numbers(plot, readings)
    kind = css_class("plot", square=plot.is_square, named=bool(plot.y.ticks), small=plot.is_small)
    height = ""
    if plot.y.ticks:
        height = f' style="height:{2 + ROOM_PER_NAME * len(plot.y.ticks):.1f}rem"'
    title = escape(plot.title)
    return f"""<figure class="{kind}" aria-labelledby="{name}-name">
<figcaption><h3 id="{name}-name">{title}</h3><p>{escape(plot.caption)}</p></figcaption>
{_legend(plot)}<p class="axis" aria-hidden="true">{escape(plot.y.label)}</p>
<div class="frame"><div class="area"{height}>
<svg viewBox="0 0 {PLOT_SIDE} {PLOT_SIDE}" preserveAspectRatio="none" role="img" \
aria-labelledby="{name}-title {name}-text">
<title id="{name}-title">{title}</title><desc id="{name}-text">{escape(plot.summary)}</desc>
<clipPath id="{name}-clip"><rect width="{PLOT_SIDE}" height="{PLOT_SIDE}"/></clipPath>
<g class="grid">{_grid(plot.y, y_ticks)}</g>{_all_drawn(plot, f"{name}-clip")}</svg>
{_tick_labels(plot.x, x_ticks, "x")}{_tick_labels(plot.y, y_ticks, "y")}{_point_labels(plot)}
<div class="cross" hidden></div><div class="tip" hidden></div></div></div>
<p class="axis x" aria-hidden="true">{escape(plot.x.label)}</p>
{below}</figure>"""


def bars_html(bars: Bars, name: str) -> str:
    """Return bars as an HTML table, the longest as long as its column is wide.

    Where some are negative, all begin in the middle of the column.
    """
    lengths = [bar.length for bar in bars.bars]
    longest = max(map(abs, lengths), default=0.0) or 1.0
    is_signed = min(lengths, default=0.0) < 0
    rows = []
    for bar in bars.bars:
        share = abs(bar.length) / longest
        place = ""
        if is_signed:
            share /= 2
            place = f";margin-left:{0.5 - share * (bar.length < 0):.1%}"
        kind = css_class("bar", weak=not bar.is_strong)
        rows.append(
            f'<tr><th scope="row"><bdi>{escape(shortened(bar.name, BAR_NAME_LENGTH))}</bdi></th>'
            f'<td><span class="{kind}" style="width:{share:.1%}{place}"></span></td>'
            f'<td class="number">{RELATION.sub(NOT_BROKEN, escape(bar.text))}</td></tr>'
        )
    first, second = map(escape, bars.columns)
    return f"""<figure class="bars" aria-labelledby="{name}-name">
<figcaption><h3 id="{name}-name">{escape(bars.title)}</h3><p>{escape(bars.caption)}</p></figcaption>
<table><thead><tr><th scope="col">{first}</th>\
<th scope="col" colspan="2" class="number">{second}</th></tr></thead>
<tbody>{"".join(rows)}</tbody></table></figure>"""


def matrix_html(matrix: Matrix, name: str) -> str:
    """Return a matrix as an HTML table of coloured cells, whose numbers are read by pointing."""
    names = []
    for each in matrix.labels:
        names.append(escape(shortened(each, MATRIX_NAME_LENGTH)))
    largest = float(np.nanmax(matrix.values, initial=0)) or 1.0
    head = "".join(f'<th scope="col"><bdi>{each}</bdi></th>' for each in names)
    rows = []
    for own, values in zip(names, matrix.values, strict=True):
        cells = []
        for other, value in zip(names, values.tolist(), strict=True):
            if not np.isfinite(value):
                cells.append("<td></td>")
                continue
            share = 100 * value / largest
            text = f"{own}, {other}: {number(value)}"
            cells.append(f'<td style="--share:{share:.0f}%" title="{text}"></td>')
        rows.append(f'<tr><th scope="row"><bdi>{own}</bdi></th>{"".join(cells)}</tr>')
    title, axis = escape(matrix.title), escape(matrix.axis)
    return f"""<figure class="matrix" aria-labelledby="{name}-name">
<figcaption><h3 id="{name}-name">{title}</h3><p>{escape(matrix.caption)}</p></figcaption>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}-name">
<table><thead><tr><td></td>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>
<p class="scale">{axis}: 0 <span></span> {number(largest)}</p></figure>"""


def spark_svg(spark: Spark) -> str:
    """Return a histogram as small as a word."""
    tallest = float(np.max(spark.counts, initial=0)) or 1.0
    paths = []
    for colour, counts in zip((BLUE, ORANGE), spark.counts, strict=False):
        heights = 10 * (1 - np.asarray(counts) / tallest)
        steps = ""
        for place, height in enumerate(heights, 1):
            steps += f"V{height:.1f}H{place}"
        paths.append(f'<path{_coloured(colour)} d="M0 10{steps}V10Z"/>')
    width = np.shape(spark.counts)[1]
    box = f'viewBox="0 0 {width} 10" preserveAspectRatio="none"'
    return f'<svg class="spark" {box} aria-hidden="true">{"".join(paths)}</svg>'


def thinned(values: Sequence[T], most: int) -> list[T]:
    """Return at most this many of some values, evenly spaced, with the first and the last."""
    if len(values) <= most:
        return list(values)
    places = np.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[place] for place in places]


def css_class(name: str, **flags: bool) -> str:
    """Return the class of an element: its name, and those of the flags that are set.

    Examples
    --------
    >>> css_class("bar", weak=True), css_class("bar", weak=False)
    ('bar weak', 'bar')
    """
    for flag, is_set in flags.items():
        if is_set:
            name += f" {flag}"
    return name


def _coloured(colour: str, kind: str = "") -> str:
    """Return the attributes of an element of a colour: a class of the page, or the colour."""
    if colour in PALETTE:
        return f' class="{f"{kind} c{PALETTE.index(colour)}".strip()}"'
    return f' class="{kind}" style="--own:{escape(colour)}"'


def _css_colour(colour: str) -> str:
    if colour in PALETTE:
        return f"var(--c{PALETTE.index(colour)})"
    return colour


def _x(axis: Axis, value: float) -> float:
    return PLOT_SIDE * float(_share(axis, value))


def _y(axis: Axis, value: float) -> float:
    return PLOT_SIDE * (1 - float(_share(axis, value)))


def _share(axis: Axis, values: Array | float) -> Array:
    """Return how far along an axis values are, from 0 to 1; at most ten times beyond its ends."""
    low, high = axis.low, axis.high
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        if axis.is_log:
            low, high, values = log10(low), log10(high), np.log10(values)
        return np.clip((values - low) / (high - low or 1.0), -10, 10)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return round numbers along an axis with their text, or its names.

    Examples
    --------
    >>> [text for _, text in _ticks(Axis("", 0, 1))]
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    >>> [text for _, text in _ticks(Axis("", 0.01, 100, is_log=True))]
    ['10⁻²', '10⁻¹', '1', '10', '10²']
    """
    if axis.ticks:
        named = []
        for value, text in axis.ticks:
            named.append((value, shortened(text, TICK_LENGTH)))
        return named
    if axis.is_log:
        return _log_ticks(axis)
    low, high = sorted((axis.low, axis.high))
    step = _round_step((high - low) / MAX_TICKS or 1.0)
    ticks = []
    for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1):
        ticks.append((step * place, number(step * place, 6)))
    return ticks


def _round_step(least: float) -> float:
    """Return the smallest 1, 2, 5 or 10 times a power of ten that is not below a number."""
    power = 10.0 ** floor(log10(least))
    for factor in (1, 2, 5):
        if factor * power >= least * (1 - 1e-9):
            return factor * power
    return 10 * power


def _log_ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return powers of ten, or multiples of them by 1, 2 and 5 if there are few."""
    powers = range(ceil(log10(axis.low) - 1e-9), floor(log10(axis.high) + 1e-9) + 1)
    ticks = []
    if len(powers) >= MIN_TICKS:
        every = -(-len(powers) // MAX_TICKS)
        for power in powers[::every]:
            ticks.append((10.0**power, _power_text(power)))
        return ticks
    for power in range(floor(log10(axis.low)), powers.stop + 1):
        for factor in (1, 2, 5):
            value = factor * 10.0**power
            if axis.low <= value <= axis.high:
                ticks.append((value, number(value)))
    return ticks


def _power_text(power: int) -> str:
    if power in (0, 1):
        return str(10**power)
    return f"10{str(power).translate(SUPERSCRIPTS)}"


def _tick_labels(axis: Axis, ticks: list[tuple[float, str]], name: str) -> str:
    side = {"x": "left", "y": "bottom"}[name]
    kind = f"tick {name}"
    if axis.ticks:
        kind += " named"
        if len("".join(text for _, text in ticks)) <= SHORT_NAMES:
            kind += " short"
    labels = []
    for value, text in ticks:
        place = 100 * float(_share(axis, value))
        style = f"{side}:{place:.2f}%;--place:{place:.0f}%"
        text = escape(text)
        labels.append(f'<span class="{kind}" aria-hidden="true" style="{style}">{text}</span>')
    return "".join(labels)


def _point_labels(plot: Plot) -> str:
    """Return the labels of points beside them, if the plot names its points."""
    if not plot.names_points:
        return ""
    labels = []
    for series in plot.series:
        for x, y, text, side in series.placed_labels:
            left, bottom = 100 * float(_share(plot.x, x)), 100 * float(_share(plot.y, y))
            place = f"left:{left:.2f}%;bottom:{bottom:.2f}%"
            text = escape(shortened(text, TICK_LENGTH))
            labels.append(
                f'<span class="point {side}" aria-hidden="true" style="{place}">{text}</span>'
            )
    return "".join(labels)


def _grid(axis: Axis, ticks: list[tuple[float, str]]) -> str:
    """Return a horizontal line at every number of the vertical axis."""
    lines = []
    for value, _ in ticks:
        lines.append(f'<path d="M0 {_y(axis, value):.1f}H{PLOT_SIDE}"/>')
    return "".join(lines)


def _all_drawn(plot: Plot, clip: str) -> str:
    """Return all series as SVG."""
    drawn = []
    for series in plot.series:
        drawn.append(_drawn(series, plot, clip))
    return "".join(drawn)


def _drawn(series: Series, plot: Plot, clip: str) -> str:
    """Return a series as SVG."""
    shapes = ""
    if series.kind == "cells":
        shapes = _cells(series, plot)
    elif path := _path(series, plot):
        shapes = f'<path d="{path}"/>'
    kind = css_class(series.kind, strong=series.is_strong)
    body = f'<g clip-path="url(#{clip})" class="{kind}">{shapes}</g>'
    if series.chosen is not None:
        x, y = _x(plot.x, series.chosen[0]), _y(plot.y, series.chosen[1])
        if 0 <= x <= PLOT_SIDE and 0 <= y <= PLOT_SIDE:
            dot = f'd="M{x:.1f} {y:.1f}h.01"'
            body += f'<g class="chosen"><path class="ring" {dot}/><path {dot}/></g>'
    return f'<g{_coloured(series.colour, "series")} data-key="{_key(series)}">{body}</g>'


def _key(series: Series) -> str:
    return escape(series.key or series.name)


def _path(series: Series, plot: Plot) -> str:
    """Return the shape of a series, as the path of an SVG."""
    X = PLOT_SIDE * _share(plot.x, series.x)
    Y = PLOT_SIDE * (1 - _share(plot.y, series.y))
    if series.kind == "line":
        return _line(X, Y)
    if series.kind == "band":
        upper = PLOT_SIDE * (1 - _share(plot.y, np.asarray(series.upper)))
        return _line(np.concatenate([X, X[::-1]]), np.concatenate([Y, upper[::-1]])) + "Z"
    if series.kind == "points":
        return _dots(X, Y)
    if series.kind == "ranges":
        return _ranges(X, Y, PLOT_SIDE * (1 - _share(plot.y, np.asarray(series.upper))))
    if series.kind == "rug":
        return _rug(X)
    if series.kind == "bars":
        return _bars(X, Y)
    if len(Y):  # a rule, at a height or at a place
        return f"M0 {Y[0]:.1f}H{PLOT_SIDE}"
    return f"M{X[0]:.1f} 0V{PLOT_SIDE}"


def _dots(X: Array, Y: Array) -> str:
    dots = []
    for x, y in _finite(X, Y, MAX_DRAWN):
        dots.append(f"M{x:.1f} {y:.1f}h.01")
    return "".join(dots)


def _ranges(X: Array, lower: Array, upper: Array) -> str:
    lines = []
    for x, low, high in thinned(np.column_stack([X, lower, upper]).tolist(), MAX_DRAWN):
        lines.append(f"M{x:.1f} {low:.1f}V{high:.1f}")
    return "".join(lines)


def _cells(series: Series, plot: Plot) -> str:
    """Return squares as one path for each shade; of very many, evenly spaced ones, larger."""
    columns, X = _cell_edges(plot.x, series.x)
    rows, Y = _cell_edges(plot.y, series.y)
    shades = np.round(N_SHADES * series.shades[np.ix_(rows, columns)])
    paths = []
    for shade in range(1, N_SHADES + 1):  # the palest is the page itself
        squares = []
        for row, column in np.argwhere(shades == shade):
            (left, right), (bottom, top) = X[column], PLOT_SIDE - Y[row]
            squares.append(f"M{left:.1f} {bottom:.1f}H{right:.1f}V{top:.1f}H{left:.1f}Z")
        if squares:
            paths.append(f'<path fill-opacity="{shade / N_SHADES:g}" d="{"".join(squares)}"/>')
    return "".join(paths)


def _cell_edges(axis: Axis, places: Array) -> tuple[Array, Array]:
    """Return which of evenly spaced cells are drawn, and where each begins and ends."""
    drawn = np.arange(0, len(places), -(-len(places) // MAX_CELLS))
    middles = PLOT_SIDE * _share(axis, places[drawn])
    half = PLOT_SIDE / 2
    if len(drawn) > 1:
        half = (middles[-1] - middles[0]) / (len(drawn) - 1) / 2
    return drawn, np.column_stack([middles - half, middles + half])


def _rug(X: Array) -> str:
    marks = []
    for x in thinned(X.tolist(), MAX_DRAWN):
        marks.append(f"M{x:.1f} {PLOT_SIDE}v-24")
    return "".join(marks)


def _bars(edges: Array, tops: Array) -> str:
    bars = []
    for left, right, top in zip(edges[:-1], edges[1:], tops, strict=True):
        if top < PLOT_SIDE:
            bars.append(f"M{left:.1f} {PLOT_SIDE}V{top:.1f}H{right:.1f}V{PLOT_SIDE}Z")
    return "".join(bars)


def _line(X: Array, Y: Array) -> str:
    points = []
    for x, y in _finite(X, Y, 2 * MAX_DRAWN):
        points.append(f"{x:.1f} {y:.1f}")
    if not points:
        return ""
    return "M" + "L".join(points)


def _finite(X: Array, Y: Array, most: int) -> list[tuple[float, float]]:
    """Return the points whose numbers are finite, at most this many."""
    places = thinned(np.flatnonzero(np.isfinite(X) & np.isfinite(Y)).tolist(), most)
    points = np.column_stack([X[places], Y[places]])
    return [*map(tuple, points.tolist())]


def _all_readings(plot: Plot) -> list[tuple[Series, list[Reading]]]:
    """Return the series that something can be read off, each with what that is."""
    found = []
    for series in plot.series:
        readings = _readings(series, plot)
        if readings:
            found.append((series, readings))
    return found


def _readings(series: Series, plot: Plot) -> list[Reading]:
    """Return what can be read off a series; nothing off rules and rugs."""
    if series.kind in ("rug", "rule"):
        return []
    if series.readings is not None:
        return [each for each in series.readings if np.isfinite(each[:2]).all()]
    if series.kind == "cells":
        return _cell_readings(series)
    x = series.x
    if series.kind == "bars":
        x = (series.x[:-1] + series.x[1:]) / 2
    readings = []
    for a, b in _finite(x, series.y, MAX_DRAWN):
        readings.append((a, b, f"{number(b)}{plot.y.unit} at {number(a)}{plot.x.unit}"))
    return readings


def _cell_readings(series: Series) -> list[Reading]:
    """Return the values of cells, at evenly spaced ones where there are many."""
    values = np.asarray(series.upper)
    readings = []
    for row in thinned(range(len(series.y)), MAX_IN_TABLE):
        for column in thinned(range(len(series.x)), MAX_IN_TABLE):
            x, y = float(series.x[column]), float(series.y[row])
            text = f"{number(values[row, column])} at {number(x)}, {number(y)}"
            readings.append((x, y, text))
    return readings


def _legend(plot: Plot) -> str:
    """Return a switch for each series, if there are several."""
    if len(plot.series) < 2 or not plot.has_legend:
        return ""
    switches = []
    for each in plot.series:
        name = escape(shortened(each.name))
        switches.append(
            f'<button type="button" class="switch" aria-pressed="true" data-key="{_key(each)}">'
            f"{_swatch(each)}<span>{name}</span></button>"
        )
    label = f"Show in {escape(plot.title)}"
    return f'<div class="legend" role="group" aria-label="{label}">{"".join(switches)}</div>\n'


def _swatch(series: Series) -> str:
    shown_as = {"rug": "rule"}.get(series.kind, series.kind)
    kind = css_class(shown_as, strong=series.is_strong)
    shape = f'<g class="{kind}"><path d="{SWATCHES.get(series.kind, "M1 5H25")}"/></g>'
    colour = _coloured(series.colour, "swatch")
    return f'<svg{colour} viewBox="0 0 26 10" aria-hidden="true">{shape}</svg>'


def _reader(plot: Plot, readings: list[tuple[Series, list[Reading]]]) -> str:
    """Return the slider that reads values off with the keyboard, and what it reads."""
    most = MAX_READ
    if plot.by_point:
        most = MAX_DRAWN
    found = []
    for series, places in readings:
        points = []
        for x, y, text in thinned(places, most):
            points.append([round(_x(plot.x, x), 1), round(_y(plot.y, y), 1), text])
        found.append(
            {
                "key": series.key or series.name,
                "name": series.name,
                "colour": _css_colour(series.colour),
                "points": points,
            }
        )
    data = {"byPoint": plot.by_point, "series": found}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    label = escape(f"Read values of {plot.title}")
    return (
        f'<input class="reader" type="range" min="0" max="1" value="0" aria-label="{label}">'
        f'<script type="application/json">{text}</script>\n'
    )


def _numbers(plot: Plot, readings: list[tuple[Series, list[Reading]]]) -> str:
    """Return the table of what can be read off, behind a summary."""
    rows = []
    for series, found in readings:
        name = escape(shortened(series.name))
        for x, y, _ in thinned(found, MAX_IN_TABLE):
            rows.append(
                f'<tr><th scope="row">{name}</th><td class="number">{number(x, 4)}</td>'
                f'<td class="number">{number(y, 4)}</td></tr>'
            )
    label = escape(f"The numbers of {plot.title}")
    return f"""<details class="numbers"><summary>The numbers</summary>
<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>
<thead><tr><th scope="col">series</th>\
<th scope="col" class="number">{escape(plot.x.label)}</th>
<th scope="col" class="number">{escape(plot.y.label)}</th></tr></thead>\
<tbody>{"".join(rows)}</tbody></table></div></details>"""
