"""The page of a drift detector: the time line of its batches, and which columns changed."""

from __future__ import annotations

from collections.abc import Sequence

from muhat._python_lines import detector_lines
from muhat._summary import BAD, NEUTRAL
from muhat._text import count, number, numbered, shortened
from muhat.figures import changes_bars, distances_plot, p_values_plot
from muhat.report._data import Context, ReportSample, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.testing import DriftDetector, DriftResult

MAX_BATCHES = 1000
"""Batches that are listed, the latest."""


def drift_report(detector: DriftDetector, context: Context) -> Report:
    """Return the page of a detector that has tested batches."""
    history = detector.history_
    names = getattr(detector, "feature_names_in_", numbered("column", detector.n_features_in_))
    name = str(context.settings.get("reference", "the reference"))
    rows = detector.reference_
    reference = ReportSample(name, len(rows), rows, tuple(map(str, names)))
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
    badge, tone = "No drift detected", NEUTRAL
    if detector.n_alarms_:
        badge, tone = "Drift detected", BAD
    return Report(
        kind="Drift",
        question=f"Has the data drifted since {shortened(samples[0].name)}?",
        verdict=detector.verdict(),
        badge=badge,
        tone=tone,
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
    kept, n = len(detector.reference_), detector.n_reference_rows_
    if n > kept:
        columns = f"drawn from {n:,}, {columns}"
    return [
        Fact("alarms", f"{detector.n_alarms_:,}", batches),
        Fact("first alarm", _first_alarm(detector)),
        Fact("false alarm probability", alpha, "in all batches together, if nothing drifts"),
        Fact("reference", f"{kept:,} rows", columns),
    ]


def _first_alarm(detector: DriftDetector) -> str:
    """Return the first batch with an alarm, by its number if its result was not kept."""
    for each in detector.history_:
        if each.is_alarm:
            return shortened(each.name, 40)
    if detector.first_alarm_ is None:
        return "none"
    return f"batch {detector.first_alarm_:,}"


def _changes(history: Sequence[DriftResult]) -> Section:
    """Return what changed most in the latest batch with an alarm, or else in the latest."""
    which, batch = "the latest batch", history[-1]
    for each in history:
        if each.is_alarm:
            which, batch = "the latest batch with an alarm", each
    bars = changes_bars(batch, which)
    return Section("What changed", (), (), [bars])


def _table(history: Sequence[DriftResult]) -> Table:
    rows = []
    for each in history[-MAX_BATCHES:]:
        rows.append(
            [
                Cell(each.name, is_name=True),
                Cell(f"{each.n:,}", float(each.n)),
                Cell(number(each.p_value), each.p_value),
                Cell(number(each.level, 2), each.level),
                Cell(number(each.mmd), each.mmd),
                Cell(each.finding),
                Cell(each.most_changed, is_name=True),
            ]
        )
    more = len(history) - len(rows)
    note = ""
    if more > 0:
        note = f"The latest {len(rows):,} batches. {more:,} earlier batches are not listed."
    titles = ["batch", "rows", "p-value", "level", "distance", "finding", "largest change in"]
    return Table(f"{count(len(history), 'batch')} in order of time", titles, rows, note=note)


def _assumptions(detector: DriftDetector) -> list[str]:
    alpha = f"{100 * detector.alpha:.3g} %"
    lines = [
        "There is an alarm if the p-value of a batch is at most its level. The level of each batch "
        "is fixed in advance. The levels of all batches, past and future, sum to at most "
        f"{alpha}.",
        "Therefore, as long as nothing drifts, the probability of one or more false alarms in all "
        f"batches together is at most {alpha}.",
        "The absence of an alarm does not prove the absence of drift: small changes in small "
        "batches go undetected.",
        "An alarm means that a batch differs from the reference. It does not say why; see the "
        "columns that changed most.",
    ]
    if detector.block_length not in (None, 1):
        lines.append(
            f"Blocks of {detector.block_length} consecutive rows were permuted together, because "
            "rows may depend on each other in time. The p-values are approximate."
        )
        return lines
    return [
        *lines,
        "The rows of the reference and of a batch are assumed to be independent of each other. In "
        "a time series they are not, and false alarms are more frequent; use block_length then.",
    ]
