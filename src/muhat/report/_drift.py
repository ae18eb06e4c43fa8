"""The page of a drift detector: the time line of its batches, and which columns changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat._messages import shift_text
from muhat._python_lines import detector_lines
from muhat._summary import BAD, NEUTRAL
from muhat.report._data import Context, Sample, count, data_section
from muhat.report._document import (
    Axis,
    Bar,
    Bars,
    Cell,
    Fact,
    Plot,
    Report,
    Section,
    Series,
    Table,
    number,
)
from muhat.report._figures import shortened
from muhat.testing import DriftDetector, DriftResult

MOST_BARS, MOST_BATCHES, MOST_NAMED = 15, 1000, 6
"""Columns drawn, batches listed, and batches named on an axis."""


def drift_report(detector: DriftDetector, context: Context) -> Report:
    """Return the page of a detector that has tested batches."""
    history = detector.history_
    names = getattr(
        detector,
        "feature_names_in_",
        [f"column {place}" for place in range(detector.n_features_in_)],
    )
    name = str(context.settings.get("reference", "the reference"))
    reference = Sample(name, len(detector.reference_), detector.reference_, tuple(map(str, names)))
    samples = context.samples("the reference") or [reference]
    encoded = (
        ["Text columns were encoded: an indicator, 1 or 0, for each value."]
        if context.settings.get("one_hot")
        else []
    )
    first = next((shortened(each.name, 40) for each in history if each.is_alarm), None)
    if first is None:
        first = "none" if detector.first_alarm_ is None else f"batch {detector.first_alarm_:,}"
    sections = []
    if history:
        plots = [_time_line(history), _effects(history)]
        sections = [Section("Batches over time", (), (), plots), _changes(history)]
        sections.append(Section("Every batch", (), (), [_table(history)]))
    settings = {
        "alpha": detector.alpha,
        "horizon": f"{detector.horizon:,} batches",
        "standardize": detector.standardize,
    }
    settings |= {"random_state": detector.random_state, **context.settings}
    return Report(
        kind="Drift",
        question=f"Has the data drifted since {shortened(samples[0].name)}?",
        verdict=detector.verdict(),
        badge="It has drifted" if detector.n_alarms_ else "No drift detected",
        tone=BAD if detector.n_alarms_ else NEUTRAL,
        facts=[
            Fact("alarms", f"{detector.n_alarms_:,}", f"in {_batches(detector.n_batches_)}"),
            Fact("first alarm", first),
            Fact(
                "chance of any false alarm",
                f"≤ {100 * detector.alpha:.3g} %",
                "over all batches ever tested",
            ),
            Fact(
                "reference",
                f"{len(detector.reference_):,} rows",
                f"of {count(detector.n_features_in_, 'column')}",
            ),
        ],
        sections=sections,
        data=data_section(
            context, samples, ["Every batch is tested against these rows.", *encoded]
        ),
        assumptions=_assumptions(detector),
        code=context.code or detector_lines(detector),
        provenance=Context(settings=settings).provenance(),
    )


def _batches(n: int) -> str:
    return f"{n:,} batch{'' if n == 1 else 'es'}"


def _reading(each: DriftResult) -> str:
    changed = ""
    if each.is_alarm and each.features:
        changed = f"; largest change: {shortened(each.features[0].name, 40)}, {_shift(each.features[0].shift)}"
    return f"{shortened(each.name, 40)}: p = {number(each.p_value)}, level {number(each.level, 2)}{changed}"


def _split(history: Sequence[DriftResult], heights: Array) -> list[Series]:
    """Return the batches without and with an alarm, as points."""
    X = np.array([float(each.number) for each in history])
    alarms = np.array([each.is_alarm for each in history])
    found = []
    for name, those, colour in (("no drift", ~alarms, 2), ("drift", alarms, 4)):
        readings = [
            (float(x), float(y), _reading(each))
            for x, y, each, taken in zip(X, heights, history, those, strict=True)
            if taken
        ]
        if readings:
            strong = colour == 4
            found.append(
                Series(
                    name,
                    "points",
                    X[those],
                    heights[those],
                    colour=colour,
                    is_strong=strong,
                    readings=readings,
                )
            )
    return found


def _shift(shift: float) -> str:
    return f"{shift_text(shift)} standard deviations"


def _batch_axis(history: Sequence[DriftResult]) -> Axis:
    """Return the axis of the batches, with the names of some of them."""
    every = -(-len(history) // MOST_NAMED)
    ticks = tuple((float(each.number), each.name) for each in history[::every])
    return Axis("batch", *_ends(history), ticks=ticks)


def _ends(history: Sequence[DriftResult]) -> tuple[float, float]:
    return history[0].number - 0.5, history[-1].number + 0.5


def _time_line(history: Sequence[DriftResult]) -> Plot:
    """Return the p-value of every batch, and the level that it was tested at."""
    p = np.array([each.p_value for each in history])
    X, levels = (
        np.array([float(each.number) for each in history]),
        np.array([each.level for each in history]),
    )
    alarms = [each for each in history if each.is_alarm]
    said = f"{len(alarms):,} of {_batches(len(history))} {'is' if len(alarms) == 1 else 'are'} at or below the level."
    if alarms:
        said += f" The first is {shortened(alarms[0].name, 60)}."
    level = Series("level of an alarm", "line", X, levels, colour=1, readings=())
    return Plot(
        "p-values over time",
        f"Each dot is a batch, tested against the reference. At or below the line there is an alarm. {said}",
        f"Dots of p-values against the number of the batch, and a falling line of levels. {said}",
        _batch_axis(history),
        Axis("p-value", 0.5 * float(min(p.min(), levels.min())), 1.5, is_log=True),
        [*_split(history, p), level],
        by_point=True,
    )


def _effects(history: Sequence[DriftResult]) -> Plot:
    """Return the distance of every batch from the reference."""
    distances = np.array([each.mmd for each in history])
    largest = history[int(distances.argmax())]
    return Plot(
        "How far each batch is from the reference",
        "The distance of the kernel means (MMD): how large a change is, not how sure it is.",
        f"Dots of distances; the largest is {number(largest.mmd)}, of {shortened(largest.name, 60)}.",
        _batch_axis(history),
        Axis("distance (MMD)", 0, 1.08 * float(distances.max()) or 1.0),
        _split(history, distances),
        by_point=True,
    )


def _changes(history: Sequence[DriftResult]) -> Section:
    """Return the columns that were among the most changed, in the latest batch that drifted or else the latest."""
    alarms = [each for each in history if each.is_alarm]
    latest = (alarms or history)[-1]
    largest = max([each.share for each in latest.features], default=0.0) or 1.0
    bars = [
        Bar(each.name, each.share / largest, shift_text(each.shift))
        for each in latest.features[:MOST_BARS]
    ]
    what = "the latest batch with an alarm" if alarms else "the latest batch"
    name = shortened(latest.name, 60)
    caption = (
        f"In {name}, {what}. Bars: the energy distance of each column from the reference, which also sees changes "
        "other than of the mean."
    )
    title = f"mean of {shortened(name, 24)} − mean of the reference, in standard deviations"
    return Section(
        "What changed", (), (), [Bars("The most changed columns", caption, ("column", title), bars)]
    )


def _table(history: Sequence[DriftResult]) -> Table:
    rows = [
        [
            Cell(each.name, is_name=True),
            Cell(f"{each.n:,}", float(each.n)),
            Cell(number(each.p_value), each.p_value),
            Cell(number(each.level, 2), each.level),
            Cell(number(each.mmd), each.mmd),
            Cell("drift" if each.is_alarm else "no drift"),
            Cell(each.features[0].name if each.features else "", is_name=True),
        ]
        for each in history[-MOST_BATCHES:]
    ]
    more = len(history) - len(rows)
    note = f"The latest {len(rows):,}; {more:,} before them are not listed." if more > 0 else ""
    titles = ["batch", "rows", "p-value", "level", "distance", "finding", "largest change in"]
    return Table(f"{_batches(len(history))} in order of time", titles, rows, note=note)


def _assumptions(detector: DriftDetector) -> list[str]:
    alpha = f"{100 * detector.alpha:.3g} %"
    lines = [
        "Every batch has a p-value and a level: its share of alpha, fixed in advance by its number. An alarm is a "
        f"p-value at or below the level. The levels of all batches, however many will come, sum up to at most {alpha}.",
        f"So if nothing ever drifts, the chance of any false alarm, over all batches ever tested, is at most {alpha}.",
        "No alarm does not prove that there is no drift: small changes in small batches go undetected.",
        "An alarm says that a batch differs from the reference, not why: see the columns that changed most.",
    ]
    if detector.block_length not in (None, 1):
        lines.append(
            f"Blocks of {detector.block_length} consecutive rows were permuted together, to allow for dependence in "
            "time: the p-values are approximate."
        )
        return lines
    return [
        *lines,
        "Assumed: the rows of the reference and of a batch are independent of each other. In a time series they are "
        "not, and false alarms are more frequent: use block_length.",
    ]
