"""Figures of a drift detector: p-values and distances of its batches in time, what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._text import agree, count, number, shortened
from muhat.figures._plot import BLUE, GREY, RED, Axis, Bar, Bars, Plot, Series
from muhat.figures._testing import MAX_BARS
from muhat.testing import DriftResult
from muhat.testing._results import LEVEL
from muhat.testing._wording import change_title, size_text

TOO_FEW_STYLE = {"colour": GREY, "marker": "s"}
"""How batches are drawn that have too few rows for an alarm."""

MAX_NAMED_BATCHES = 8
"""Batches that are named on the axis; of more, evenly spaced ones."""

MAX_NAMED_ALARMS = 12
"""Alarms that have the name of the column that changed most beside them."""


def p_values_plot(history: Sequence[DriftResult]) -> Plot:
    """Return the p-value of every batch, and the level that it was tested at."""
    p, levels = _values(history, "p_value"), _values(history, "level")
    alarms = [each for each in history if each.is_alarm]
    have = agree(len(alarms), "has", "have")
    said = f"{len(alarms):,} of {count(len(history), 'batch')} {have} an alarm."
    if alarms:
        said += f" The first alarm is in {shortened(alarms[0].name, 60)}."
    note = ""
    if alarms:
        note = "below each alarm: the column that changed most"
    numbers = _values(history, "number")
    level = Series("level of an alarm", "line", numbers, levels, colour=GREY, readings=())
    lowest = min(p.min(initial=1.0), levels.min(initial=1.0))
    return Plot(
        "p-values over time",
        "Each dot is the p-value of a batch, tested against the reference. On or below the line "
        f"there is an alarm. {said}",
        f"Dots of p-values against the number of the batch, and a falling line of levels. {said}",
        _batch_axis(history),
        Axis("p-value", 0.3 * float(lowest), 1.5, is_log=True),
        [level, *_by_finding(history, p)],
        by_point=True,
        note=note,
    )


def distances_plot(history: Sequence[DriftResult]) -> Plot:
    """Return the distance of every batch from the reference."""
    distances = _values(history, "mmd")
    largest = history[int(distances.argmax())]
    name = shortened(largest.name, 60)
    return Plot(
        "How far each batch is from the reference",
        "The distance between the kernel means (MMD) shows how large a change is, not how certain.",
        f"Dots of distances; the largest is {number(largest.mmd)}, of {name}.",
        _batch_axis(history),
        Axis("distance (MMD)", 0, 1.08 * float(distances.max()) or 1.0),
        _by_finding(history, distances),
        by_point=True,
    )


def _values(history: Sequence[DriftResult], name: str) -> Array:
    """Return an attribute of every batch: array of shape (batches,)."""
    return np.fromiter(map(attrgetter(name), history), dtype=float)


def _batch_axis(history: Sequence[DriftResult]) -> Axis:
    """Return the axis of the batches, with the names of some of them."""
    if not history:
        return Axis("batch", 0.5, 1.5)
    every = -(-len(history) // MAX_NAMED_BATCHES)
    ticks = []
    for each in history[::every]:
        ticks.append((float(each.number), each.name))
    return Axis("batch", history[0].number - 0.5, history[-1].number + 0.5, ticks=tuple(ticks))


def _by_finding(history: Sequence[DriftResult], heights: Array) -> list[Series]:
    """Return the batches without an alarm, with too few rows for one, and with one, as points."""
    found = np.array([each.finding for each in history])
    series = []
    for finding, style in (("no drift", {"colour": BLUE}), ("too few rows", TOO_FEW_STYLE)):
        places = np.flatnonzero(found == finding)
        if len(places):
            series.append(_batch_points(history, heights, places, **style))
    places = np.flatnonzero(found == "drift")
    if len(places):
        points = _batch_points(history, heights, places, colour=RED, marker="v", is_strong=True)
        labels = []
        for place in places[:MAX_NAMED_ALARMS]:
            labels.append(history[place].most_changed or "several columns")
        series.append(replace(points, labels=labels))
    return series


def _batch_points(
    history: Sequence[DriftResult], heights: Array, places: Array, **style: Any
) -> Series:
    """Return some batches, all with the same finding, as points with what they say."""
    x, y = _values(history, "number")[places], heights[places]
    readings = []
    for place in places:
        batch = history[place]
        readings.append((float(batch.number), float(heights[place]), _reading(batch)))
    return Series(history[places[0]].finding, "points", x, y, readings=readings, **style)


def _reading(batch: DriftResult) -> str:
    text = f"{shortened(batch.name, 40)}: p = {number(batch.p_value)}"
    text += f", level {number(batch.level, 2)}"
    if batch.is_alarm and batch.most_changed:
        most = batch.features[0]
        size = size_text(most, LEVEL)
        text += f"; largest change: {shortened(most.name, 40)}, {size}"
    return text


def changes_bars(batch: DriftResult, which: str) -> Bars:
    """Return the columns of a batch that changed most; ``which`` says which batch it is."""
    bars = []
    for each in batch.features[:MAX_BARS]:
        bars.append(Bar(each.name, each.share, size_text(each, LEVEL), each.p_value <= LEVEL))
    name = shortened(batch.name, 60)
    return Bars(
        "The most changed columns",
        f"The columns of {name}, {which}. Bars: the energy distance of each column from the "
        "reference, which measures changes of any kind, not only of the mean. Grey: the corrected "
        f"p-value is above {LEVEL:g}.",
        ("column", change_title("the reference", name)),
        bars,
        axis="energy distance, as a share of its maximum",
    )
