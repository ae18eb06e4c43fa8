"""The page of a drift detector: the time line of its batches, and which columns changed."""

from __future__ import annotations

from collections.abc import Sequence

from muhat._python_lines import detector_lines
from muhat._summary import BAD, NEUTRAL
from muhat._text import count, number, shortened
from muhat.figures import changes_bars, distances_plot, p_values_plot
from muhat.report._data import Context, ReportSample, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.testing import DriftDetector, DriftResult

MAX_BATCHES = 1000
"""Batches that are listed, the latest."""


def drift_report(detector: DriftDetector, context: Context) -> Report:
    """Return the page of a detector that has tested batches."""
    history = detector.history_
    names = getattr(
        detector,
        "feature_names_in_",
        [f"column {place}" for place in range(detector.n_features_in_)],
    )
    name = str(context.settings.get("reference", "the reference"))
    reference = ReportSample(
        name, len(detector.reference_), detector.reference_, tuple(map(str, names))
    )
    samples = context.samples("the reference") or [reference]
    sentences = ["Every batch is tested against these rows."]
    if context.settings.get("one_hot"):
        sentences.append("Text columns were encoded: an indicator, 1 or 0, for each value.")
    sections = []
    if history:
        plots = [p_values_plot(history), distances_plot(history)]
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
        facts=_facts(detector),
        sections=sections,
        data=data_section(context, samples, sentences),
        assumptions=_assumptions(detector),
        code=context.code or detector_lines(detector),
        provenance=Context(settings=settings).provenance(),
    )


def _facts(detector: DriftDetector) -> list[Fact]:
    alpha = f"≤ {100 * detector.alpha:.3g} %"
    batches = f"in {count(detector.n_batches_, 'batch')}"
    columns = f"of {count(detector.n_features_in_, 'column')}"
    return [
        Fact("alarms", f"{detector.n_alarms_:,}", batches),
        Fact("first alarm", _first_alarm(detector)),
        Fact("chance of any false alarm", alpha, "over all batches ever tested"),
        Fact("reference", f"{len(detector.reference_):,} rows", columns),
    ]


def _first_alarm(detector: DriftDetector) -> str:
    """Return the first batch with an alarm, by its number if its result was not kept."""
    for each in detector.history_:
        if each.is_alarm:
            return shortened(each.name, 40)
    return "none" if detector.first_alarm_ is None else f"batch {detector.first_alarm_:,}"


def _changes(history: Sequence[DriftResult]) -> Section:
    """Return what changed most in the latest batch with an alarm, or else in the latest."""
    alarms = [each for each in history if each.is_alarm]
    if alarms:
        bars = changes_bars(alarms[-1], "the latest batch with an alarm")
    else:
        bars = changes_bars(history[-1], "the latest batch")
    return Section("What changed", (), (), [bars])


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
        for each in history[-MAX_BATCHES:]
    ]
    more = len(history) - len(rows)
    note = f"The latest {len(rows):,}; {more:,} before them are not listed." if more > 0 else ""
    titles = ["batch", "rows", "p-value", "level", "distance", "finding", "largest change in"]
    return Table(f"{count(len(history), 'batch')} in order of time", titles, rows, note=note)


def _assumptions(detector: DriftDetector) -> list[str]:
    alpha = f"{100 * detector.alpha:.3g} %"
    lines = [
        "Every batch has a p-value and a level: its share of alpha, fixed in advance by its "
        "number. An alarm is a p-value at or below the level. The levels of all batches, "
        f"however many will come, sum up to at most {alpha}.",
        "So if nothing ever drifts, the chance of any false alarm, over all batches ever "
        f"tested, is at most {alpha}.",
        "No alarm does not prove that there is no drift: small changes in small batches go "
        "undetected.",
        "An alarm says that a batch differs from the reference, not why: see the columns that "
        "changed most.",
    ]
    if detector.block_length not in (None, 1):
        lines.append(
            f"Blocks of {detector.block_length} consecutive rows were permuted together, to "
            "allow for dependence in time: the p-values are approximate."
        )
        return lines
    return [
        *lines,
        "Assumed: the rows of the reference and of a batch are independent of each other. In a "
        "time series they are not, and false alarms are more frequent: use block_length.",
    ]
