"""The page of predictions: the model's page with a verdict on new rows, predictions, effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from muhat._summary import BAD, GOOD, UNSURE
from muhat._text import count, number
from muhat.conditional import PredictionResult
from muhat.conditional._prediction import LEFT_OUT_INTERVALS
from muhat.figures import Bar, Bars, new_rows_plot
from muhat.report._conditional import conditional_report
from muhat.report._data import Context
from muhat.report._document import Cell, Fact, Report, Section, Table

MAX_PREDICTIONS = 1000
"""The most predictions on a page."""

MAX_EFFECTS = 10
"""The most features whose effect is shown."""


def prediction_report(result: PredictionResult, context: Context) -> Report:
    """Return the page of predictions, of new rows or of left-out ones."""
    settings = {
        "y": result.target,
        "confidence": result.confidence,
        "intervals": result.intervals,
        **context.settings,
    }
    sections = [_predictions_section(result), _effects_section(result)]
    page = conditional_report(result.model, replace(context, settings=settings, sections=sections))
    page = replace(page, verdict=result.verdict())
    if result.new_rows is None:
        return page
    badge, tone = _badge(result, page)
    return replace(
        page,
        badge=badge,
        tone=tone,
        facts=_facts(result, page.facts),
        sections=[Section("New rows", (), (), [new_rows_plot(result)]), *page.sections],
    )


def intervals_text(intervals: str) -> str:
    """Return in words how intervals were made."""
    if intervals == "residuals":
        return LEFT_OUT_INTERVALS
    return intervals


def _badge(result: PredictionResult, page: Report) -> tuple[str, str]:
    """Return the verdict on new rows in a few words, and its tone; by default the model's."""
    if result.has_training_rows:
        return "No new rows: these are training rows", UNSURE
    if result.evaluation is None:
        if result.has_shift:
            return "New rows are distributed differently", UNSURE
        if result.extrapolation is not None and result.extrapolation.n_far:
            return "Some new rows are far from all training rows", UNSURE
        return page.badge, page.tone
    if result.is_useless:
        return page.badge, page.tone
    match result.evaluation.standing:
        case "far worse":
            return "Far worse on new rows", BAD
        case "worse":
            return "Worse on new rows", UNSURE
        case "unclear":
            return "Perhaps worse on new rows", UNSURE
    if result.has_shift:
        return "As good on new rows, which are distributed differently", UNSURE
    return "As good on new rows", GOOD


def _facts(result: PredictionResult, facts: Sequence[Fact]) -> list[Fact]:
    """Return the model's facts, with one on the new rows in the second place."""
    n = len(result.predicted)
    fact = Fact("new rows", f"{n:,}", result.name)
    if result.r2 is not None:
        note = f"{count(n, 'row')}, not used in the fit"
        fact = Fact(f"R² on {result.name}", number(result.r2), note)
    return [*facts[:1], fact, *facts[1:]]


def _predictions_section(result: PredictionResult) -> Section:
    """Return the table of predictions, and how often true values are in their intervals."""
    titles = ["row", "predicted", "lower", "upper"]
    columns = [result.predicted, *result.ends.T]
    if result.true is not None:
        titles.append("true")
        columns.append(result.true)
    rows = []
    for place, row in enumerate(result.row_numbers[:MAX_PREDICTIONS].tolist()):
        cells = [Cell(number(column[place], 5), float(column[place])) for column in columns]
        rows.append([Cell(str(row), row), *cells])
    n = len(result.predicted)
    note = ""
    if n > MAX_PREDICTIONS:
        note = f"The first {MAX_PREDICTIONS:,} of {n:,} rows."
    made = f"by {intervals_text(result.intervals)}"
    if result.new_rows is None:
        made += " of these same rows"
    sentence = (
        f"The intervals should contain {100 * result.confidence:g} % of all values. They are "
        f"computed {made}."
    )
    if result.coverage is not None:
        sentence += f" They contain {100 * result.coverage:.1f} % of the true values."
    table = Table(f"Predictions of {result.name}", titles, rows, note=note)
    return Section("Predictions", [f"{sentence} Rows are counted from 1."], (), [table])


def _effects_section(result: PredictionResult) -> Section:
    """Return bars of the features that predictions follow most."""
    order = np.argsort(-result.importance, kind="stable")[:MAX_EFFECTS]
    largest = float(result.importance[order[0]]) or 1.0
    bars = []
    for place in order:
        effect = float(result.importance[place])
        bars.append(Bar(result.columns[place], effect / largest, number(effect)))
    figure = Bars(
        "What the prediction depends on",
        "How much the prediction varies (standard deviation) along each feature, with all other "
        "features at their medians.",
        ("feature", f"in units of {result.target}"),
        bars,
    )
    return Section("Features", (), (), [figure])
