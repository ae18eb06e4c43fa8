"""Plots as SVG that stretches to any width while its lines and words keep their size, and bars as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import TypeVar

import numpy as np

from muhat._arrays import Array
from muhat.report._document import Axis, Bars, Plot, Series, Spark, number

SIDE = 1000
"""The width and the height of a plot, in the units of its SVG."""

MOST_DRAWN, MOST_READ, MOST_LISTED = 1500, 240, 20
"""Points of a series that are drawn at most, that can be read off, and that stand in the table below a plot."""

MOST_TICKS, LEAST_TICKS = 6, 3

TICK_LENGTH, SHORT_NAMES = 12, 24
"""Characters of a name on an axis, and of all its names where they fit on the narrowest screen."""

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

T = TypeVar("T")


def plot_html(plot: Plot, name: str) -> str:
    """Return a plot as HTML; the name is one that nothing else on the page has."""
    places = {axis: _ticks(axis) for axis in (plot.x, plot.y)}
    body = "".join(_drawn(each, plot, f"{name}-clip") for each in plot.series)
    grid = "".join(f'<path d="M0 {_y(plot.y, v):.1f}H{SIDE}"/>' for v, _ in places[plot.y])
    readings = [(series, _readings(series, plot)) for series in plot.series]
    data = {
        "byPoint": plot.by_point,
        "series": [
            {
                "key": series.key or series.name,
                "name": series.name,
                "colour": series.colour,
                "points": [
                    [round(_x(plot.x, x), 1), round(_y(plot.y, y), 1), text]
                    for x, y, text in thinned(found, MOST_DRAWN if plot.by_point else MOST_READ)
                ],
            }
            for series, found in readings
            if found
        ],
    }
    has_readings = any(found for _, found in readings)
    return f"""<figure class="plot{" square" if plot.is_square else ""}" aria-labelledby="{name}-name">
<figcaption><h3 id="{name}-name">{escape(plot.title)}</h3><p>{escape(plot.caption)}</p></figcaption>
{_legend(plot)}<p class="axis" aria-hidden="true">{escape(plot.y.label)}</p>
<div class="frame"><div class="area">
<svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" role="img" aria-labelledby="{name}-title {name}-text">
<title id="{name}-title">{escape(plot.title)}</title><desc id="{name}-text">{escape(plot.summary)}</desc>
<clipPath id="{name}-clip"><rect width="{SIDE}" height="{SIDE}"/></clipPath>
<g class="grid">{grid}</g>{body}</svg>
{_tick_labels(plot.x, places[plot.x], "x")}{_tick_labels(plot.y, places[plot.y], "y")}
<div class="cross" hidden></div><div class="tip" hidden></div></div></div>
<p class="axis x" aria-hidden="true">{escape(plot.x.label)}</p>
{_reader(plot, data) if has_readings else ""}{_numbers(plot, readings) if has_readings else ""}</figure>"""


def bars_html(bars: Bars, name: str) -> str:
    """Return bars as an HTML table, each as long as its share of the width."""
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(shortened(bar.name, 48))}</bdi></th><td><span class="bar'
        f'{"" if bar.is_strong else " weak"}" style="width:{max(0.0, min(1.0, bar.share)):.1%}"></span></td>'
        f'<td class="number">{escape(bar.text)}</td></tr>'
        for bar in bars.bars
    )
    first, second = map(escape, bars.columns)
    return f"""<figure class="bars" aria-labelledby="{name}-name">
<figcaption><h3 id="{name}-name">{escape(bars.title)}</h3><p>{escape(bars.caption)}</p></figcaption>
<table><thead><tr><th scope="col">{first}</th><th scope="col" colspan="2" class="number">{second}</th></tr></thead>
<tbody>{rows}</tbody></table></figure>"""


def spark_svg(spark: Spark) -> str:
    """Return a histogram as small as a word."""
    tallest = max((float(np.max(each, initial=0)) for each in spark.counts), default=0) or 1
    paths = []
    for colour, counts in zip((2, 1), spark.counts, strict=False):
        heights = 10 * (1 - np.asarray(counts) / tallest)
        steps = "".join(f"V{height:.1f}H{place}" for place, height in enumerate(heights, 1))
        paths.append(f'<path class="c{colour}" d="M0 10{steps}V10Z"/>')
    width = max(len(each) for each in spark.counts)
    box = f'viewBox="0 0 {width} 10" preserveAspectRatio="none"'
    return f'<svg class="spark" {box} aria-hidden="true">{"".join(paths)}</svg>'


def shortened(text: str, most: int = 80) -> str:
    """Return a text of at most so many characters: the beginning and the end of a long one.

    Examples
    --------
    >>> shortened("a long name", 8)
    'a lo…ame'
    """
    return (
        text
        if len(text) <= most
        else f"{text[: most // 2]}…{text[len(text) - (most - most // 2 - 1) :]}"
    )


def thinned(values: Sequence[T], most: int) -> list[T]:
    """Return at most so many of some values, evenly spaced, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[place] for place in np.linspace(0, len(values) - 1, most).round().astype(int)]


def _x(axis: Axis, value: float) -> float:
    return SIDE * float(_share(axis, value))


def _y(axis: Axis, value: float) -> float:
    return SIDE * (1 - float(_share(axis, value)))


def _share(axis: Axis, values: Array | float) -> Array:
    """Return how far along an axis values are, from 0 to 1; far beyond its ends, no farther than ten times that."""
    low, high = (log10(axis.low), log10(axis.high)) if axis.is_log else (axis.low, axis.high)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log10(values) if axis.is_log else np.asarray(values, dtype=float)
        return np.clip((values - low) / (high - low or 1.0), -10, 10)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return round numbers along an axis, with their text: multiples of 1, 2 or 5, or powers of ten.

    Examples
    --------
    >>> [text for _, text in _ticks(Axis("", 0, 1))]
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    >>> [text for _, text in _ticks(Axis("", 0.01, 100, is_log=True))]
    ['10⁻²', '10⁻¹', '1', '10', '10²']
    """
    if axis.ticks:
        return [(value, shortened(text, TICK_LENGTH)) for value, text in axis.ticks]
    if axis.is_log:
        powers = range(ceil(log10(axis.low) - 1e-9), floor(log10(axis.high) + 1e-9) + 1)
        if len(powers) < LEAST_TICKS:
            steps = [
                factor * 10.0**p
                for p in range(floor(log10(axis.low)), powers.stop + 1)
                for factor in (1, 2, 5)
            ]
            return [(value, number(value)) for value in steps if axis.low <= value <= axis.high]
        every = -(-len(powers) // MOST_TICKS)
        return [
            (10.0**p, {0: "1", 1: "10"}.get(p, f"10{str(p).translate(RAISED)}"))
            for p in powers[::every]
        ]
    rough = (axis.high - axis.low) / MOST_TICKS or 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = ceil(axis.low / step - 1e-9)
    values = [step * place for place in range(first, floor(axis.high / step + 1e-9) + 1)]
    return [(value, number(value, 6)) for value in values]


def _tick_labels(axis: Axis, ticks: list[tuple[float, str]], name: str) -> str:
    side = "left" if name == "x" else "bottom"
    kind = " named" if axis.ticks else ""
    if axis.ticks and sum(len(text) for _, text in ticks) <= SHORT_NAMES:
        kind += " short"
    return "".join(
        f'<span class="tick {name}{kind}" aria-hidden="true" style="{side}:{place:.2f}%;--place:{place:.0f}%">'
        f"{escape(text)}</span>"
        for place, text in ((100 * float(_share(axis, value)), text) for value, text in ticks)
    )


def _drawn(series: Series, plot: Plot, clip: str) -> str:
    """Return a series as SVG."""
    key = escape(series.key or series.name)
    path = _path(series, plot)
    shapes = f'<path d="{path}"/>' if path else ""
    kind = f"{series.kind}{' strong' if series.is_strong else ''}"
    body = f'<g clip-path="url(#{clip})" class="{kind}">{shapes}</g>'
    if series.chosen is not None:
        x, y = _x(plot.x, series.chosen[0]), _y(plot.y, series.chosen[1])
        if 0 <= x <= SIDE and 0 <= y <= SIDE:
            dot = f'd="M{x:.1f} {y:.1f}h.01"'
            body += f'<g class="chosen"><path class="ring" {dot}/><path {dot}/></g>'
    return f'<g class="series c{series.colour}" data-key="{key}">{body}</g>'


def _path(series: Series, plot: Plot) -> str:
    """Return the shape of a series, as the path of an SVG."""
    X = SIDE * _share(plot.x, series.x)
    Y = SIDE * (1 - _share(plot.y, series.y))
    if series.kind == "line":
        return _line(X, Y)
    if series.kind == "band":
        upper = SIDE * (1 - _share(plot.y, np.asarray(series.upper)))
        return _line(np.concatenate([X, X[::-1]]), np.concatenate([Y, upper[::-1]])) + "Z"
    if series.kind == "points":
        return "".join(f"M{x:.1f} {y:.1f}h.01" for x, y in _finite(X, Y, MOST_DRAWN))
    if series.kind == "rug":
        return "".join(f"M{x:.1f} {SIDE}v-24" for x in thinned(X.tolist(), MOST_DRAWN))
    if series.kind == "rule":
        return f"M0 {Y[0]:.1f}H{SIDE}" if len(Y) else f"M{X[0]:.1f} 0V{SIDE}"
    return "".join(
        f"M{left:.1f} {SIDE}V{top:.1f}H{right:.1f}V{SIDE}Z"
        for left, right, top in zip(X[:-1], X[1:], Y, strict=True)
        if top < SIDE
    )


def _line(X: Array, Y: Array) -> str:
    points = _finite(X, Y, 2 * MOST_DRAWN)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def _finite(X: Array, Y: Array, most: int) -> list[tuple[float, float]]:
    """Return the points whose numbers are finite, at most so many."""
    places = thinned(np.flatnonzero(np.isfinite(X) & np.isfinite(Y)).tolist(), most)
    return [(float(X[place]), float(Y[place])) for place in places]


def _readings(series: Series, plot: Plot) -> list[tuple[float, float, str]]:
    """Return what can be read off a series: where, and the text; nothing off rules and rugs."""
    if series.kind in ("rug", "rule"):
        return []
    if series.readings is not None:
        return [each for each in series.readings if np.isfinite(each[:2]).all()]
    middles = (series.x[:-1] + series.x[1:]) / 2 if series.kind == "bars" else series.x
    return [
        (x, y, f"{number(y)}{plot.y.unit} at {number(x)}{plot.x.unit}")
        for x, y in _finite(middles, series.y, MOST_DRAWN)
    ]


def _legend(plot: Plot) -> str:
    """Return a switch for each series, where there are several."""
    if len(plot.series) < 2 or not plot.has_legend:
        return ""
    switches = "".join(
        f'<button type="button" class="switch" aria-pressed="true" data-key="{escape(each.key or each.name)}">'
        f"{_swatch(each)}<span>{escape(shortened(each.name))}</span></button>"
        for each in plot.series
    )
    return f'<div class="legend" role="group" aria-label="Show in {escape(plot.title)}">{switches}</div>\n'


def _swatch(series: Series) -> str:
    path = {"points": "M13 5h.01", "bars": "M4 10V1H22V10Z", "band": "M1 9V1H25V9Z"}.get(
        series.kind, "M1 5H25"
    )
    kind = "rule" if series.kind == "rug" else series.kind
    shape = f'<g class="{kind}{" strong" if series.is_strong else ""}"><path d="{path}"/></g>'
    return (
        f'<svg class="swatch c{series.colour}" viewBox="0 0 26 10" aria-hidden="true">{shape}</svg>'
    )


def _reader(plot: Plot, data: dict[str, object]) -> str:
    """Return the slider that reads values off with the keyboard, and what it reads."""
    label = escape(f"Read values of {plot.title}")
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<input class="reader" type="range" min="0" max="1" value="0" aria-label="{label}">'
        f'<script type="application/json">{text}</script>\n'
    )


def _numbers(plot: Plot, readings: list[tuple[Series, list[tuple[float, float, str]]]]) -> str:
    """Return the table of what can be read off, behind a summary."""
    rows = "".join(
        f'<tr><th scope="row">{escape(shortened(series.name))}</th><td class="number">{number(x, 4)}</td>'
        f'<td class="number">{number(y, 4)}</td></tr>'
        for series, found in readings
        for x, y, _ in thinned(found, MOST_LISTED)
    )
    label = escape(f"The numbers of {plot.title}")
    return f"""<details class="numbers"><summary>The numbers</summary>
<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>
<thead><tr><th scope="col">series</th><th scope="col" class="number">{escape(plot.x.label)}</th>
<th scope="col" class="number">{escape(plot.y.label)}</th></tr></thead><tbody>{rows}</tbody></table></div></details>"""
