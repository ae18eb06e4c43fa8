"""Figures of a drift detector: p-values and distances of its batches in time, what changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat._text import count, number, shortened
from muhat._wording import shift_text
from muhat.figures._plot import BLUE, GREY, RED, Axis, Bar, Bars, Plot, Series
from muhat.figures._testing import MAX_BARS, shift_title
from muhat.testing import DriftResult

MAX_NAMED_BATCHES = 8
"""Batches that are named on the axis; of more, evenly spaced ones."""

MAX_NAMED_ALARMS = 12
"""Alarms that have the name of the column that changed most beside them."""


def p_values_plot(history: Sequence[DriftResult]) -> Plot:
    """Return the p-value of every batch, and the level that it was tested at."""
    p = np.array([each.p_value for each in history])
    levels = np.array([each.level for each in history])
    alarms = [each for each in history if each.is_alarm]
    are = "is" if len(alarms) == 1 else "are"
    said = f"{len(alarms):,} of {count(len(history), 'batch')} {are} at or below the level."
    if alarms:
        said += f" The first is {shortened(alarms[0].name, 60)}."
    numbers = np.array([float(each.number) for each in history])
    level = Series("level of an alarm", "line", numbers, levels, colour=GREY, readings=())
    lowest = min(p.min(initial=1.0), levels.min(initial=1.0))
    return Plot(
        "p-values over time",
        "Each dot is a batch, tested against the reference. At or below the line there is an "
        f"alarm. {said}",
        f"Dots of p-values against the number of the batch, and a falling line of levels. {said}",
        _batch_axis(history),
        Axis("p-value", 0.3 * float(lowest), 1.5, is_log=True),
        [level, *_with_and_without_alarm(history, p)],
        by_point=True,
    )


def distances_plot(history: Sequence[DriftResult]) -> Plot:
    """Return the distance of every batch from the reference."""
    distances = np.array([each.mmd for each in history])
    largest = history[int(distances.argmax())]
    name = shortened(largest.name, 60)
    return Plot(
        "How far each batch is from the reference",
        "The distance of the kernel means (MMD): how large a change is, not how sure it is.",
        f"Dots of distances; the largest is {number(largest.mmd)}, of {name}.",
        _batch_axis(history),
        Axis("distance (MMD)", 0, 1.08 * float(distances.max()) or 1.0),
        _with_and_without_alarm(history, distances),
        by_point=True,
    )


def _batch_axis(history: Sequence[DriftResult]) -> Axis:
    """Return the axis of the batches, with the names of some of them."""
    if not history:
        return Axis("batch", 0.5, 1.5)
    every = -(-len(history) // MAX_NAMED_BATCHES)
    ticks = tuple((float(each.number), each.name) for each in history[::every])
    return Axis("batch", history[0].number - 0.5, history[-1].number + 0.5, ticks=ticks)


def _with_and_without_alarm(history: Sequence[DriftResult], heights: Array) -> list[Series]:
    """Return the batches without and with an alarm, as points."""
    series = []
    for is_alarm in (False, True):
        places = [place for place, each in enumerate(history) if each.is_alarm == is_alarm]
        if not places:
            continue
        batches = [history[place] for place in places]
        x = np.array([float(each.number) for each in batches])
        y = heights[places]
        texts = map(_reading, batches)
        labels = []
        if is_alarm:
            labels = [each.features[0].name for each in batches[:MAX_NAMED_ALARMS] if each.features]
        series.append(
            Series(
                "drift" if is_alarm else "no drift",
                "points",
                x,
                y,
                colour=RED if is_alarm else BLUE,
                is_strong=is_alarm,
                readings=list(zip(x.tolist(), y.tolist(), texts, strict=True)),
                marker="v" if is_alarm else "",
                labels=labels,
            )
        )
    return series


def _reading(batch: DriftResult) -> str:
    text = f"{shortened(batch.name, 40)}: p = {number(batch.p_value)}"
    text += f", level {number(batch.level, 2)}"
    if batch.is_alarm and batch.features:
        most = batch.features[0]
        shift = f"{shift_text(most.shift)} standard deviations"
        text += f"; largest change: {shortened(most.name, 40)}, {shift}"
    return text


def changes_bars(batch: DriftResult, which: str) -> Bars:
    """Return the columns of a batch that changed most; ``which`` says which batch it is."""
    bars = [
        Bar(each.name, each.share, shift_text(each.shift)) for each in batch.features[:MAX_BARS]
    ]
    name = shortened(batch.name, 60)
    return Bars(
        "The most changed columns",
        f"In {name}, {which}. Bars: the energy distance of each column from the reference, which "
        "also sees changes other than of the mean.",
        ("column", shift_title("the reference", name)),
        bars,
        axis="energy distance, as a share of its maximum",
    )
