"""The page of kernel PCA: a map, how many components, what they follow, unusual rows."""

from __future__ import annotations

import numpy as np

from muhat._summary import FOUND, NEUTRAL
from muhat._text import count, number
from muhat._wording import rows_text, setting_text
from muhat.figures import (
    Bars,
    components_plot,
    loadings_bars,
    noise_plot,
    scores_plot,
    variance_bars,
)
from muhat.filters import TruncatedSVD
from muhat.pca import ComponentsResult
from muhat.report._data import Context, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table

MAX_COMPONENTS = 8
"""Components with a column in the table of correlations."""

MAX_ROWS = 50
"""Unusual rows that are listed."""

MAX_LOADING_BARS = 2
"""Components whose correlations are drawn."""


def components_report(result: ComponentsResult, context: Context) -> Report:
    """Return the page of the components of a table."""
    pca = result.pca
    is_tsvd = isinstance(pca.filter_, TruncatedSVD)
    has_structure = result.choice.best > 0
    figures = [noise_plot(result.choice)] if is_tsvd else []
    settings = {
        "kernel": repr(pca.kernel_),
        "filter": pca.filter_.label,
        "n_components": pca.n_components_,
        **context.settings,
    }
    badge = count(pca.n_components_, "component")
    if not has_structure:
        badge = "No number of components chosen"
    return Report(
        kind="Kernel PCA",
        question=f"What are the main directions of {result.name}, and which rows are unusual?",
        verdict=result.verdict(),
        badge=badge,
        tone=FOUND if has_structure else NEUTRAL,
        facts=_facts(result, is_tsvd),
        sections=[
            Section("Map", (), (), [scores_plot(result)]),
            Section("Columns", (), (), [*_bars(result), _loadings_table(result)]),
            Section("How many components", (), (), [*figures, variance_bars(pca)]),
            Section("Left-out rows", (), (), [components_plot(result.path)]),
            Section("Unusual rows", _unusual_sentences(result), (), [_unusual_table(result)]),
        ],
        data=data_section(context, context.samples("data"), ()),
        assumptions=_assumptions(),
        code=context.code,
        provenance=Context(settings=settings).provenance(),
    )


def _bars(result: ComponentsResult) -> list[Bars]:
    shown = min(result.scores.shape[1], MAX_LOADING_BARS)
    return [loadings_bars(result, k) for k in range(shown)]


def _facts(result: ComponentsResult, is_tsvd: bool) -> list[Fact]:
    pca, choice = result.pca, result.choice
    taken = "as given"
    if result.path.is_chosen:
        taken = "chosen by left-out rows"
    elif is_tsvd and pca.n_components == "loo":
        taken = "shown; none was chosen"
    facts = [Fact("components", f"{pca.n_components_:,}", taken)]
    if not is_tsvd:
        setting = setting_text(pca.filter_.symbol, pca.parameter_)
        facts = [Fact(pca.filter_.label, setting, taken)]
    else:
        note = "in left-out rows"
        share = f"{100 * max(result.explained, 0):.0f} %"
        facts.append(Fact("variance of columns explained", share, note))
        what = "noise in a column"
        if choice.is_limited:
            what = "unexplained in a column"
        facts.append(Fact(what, number(choice.noise_sd), "standard deviation"))
    return [*facts, Fact("rows", f"{len(result.scores):,}")]


def _loadings_table(result: ComponentsResult) -> Table:
    """Return the correlation of every column with the first components."""
    shown = min(result.scores.shape[1], MAX_COMPONENTS)
    strongest = np.argsort(-np.abs(result.correlations[:, :shown]).max(axis=1), kind="stable")
    rows = []
    for place in strongest:
        cells = [Cell(result.columns[place], is_name=True)]
        for k in range(shown):
            r = float(result.correlations[place, k])
            cells.append(Cell(number(r, 2), r))
        rows.append(cells)
    titles = ["column"]
    for k in range(shown):
        titles.append(f"component {k + 1}")
    return Table("Correlation of every column with the scores", titles, rows)


def _unusual_sentences(result: ComponentsResult) -> list[str]:
    if result.is_ranked_in_sample:
        rows = rows_text(result.path.n_rows)
        return [
            "A row is unusual if the components describe it badly. Its novelty p-value is the "
            f"share of rows whose error is at least as large, among itself and {rows} drawn at "
            f"random, so no p-value is below {number(1 / (result.path.n_rows + 1))}."
        ]
    return [
        "A row is unusual if the components found from all other rows describe it badly. Its "
        "novelty p-value is the share of rows whose error is at least as large, so some row always "
        "has the smallest p-value."
    ]


def _unusual_table(result: ComponentsResult) -> Table:
    rows = []
    for place in result.unusual[:MAX_ROWS].tolist():
        own = int(result.row_numbers[place])
        error, p = float(result.errors[place]), float(result.p_values[place])
        cells = [Cell(str(own), own), Cell(number(error), error), Cell(number(p), p)]
        if result.labels is not None:
            cells.append(Cell(str(result.labels[place]), is_name=True))
        rows.append(cells)
    titles = ["row", "error when left out", "novelty p-value"]
    if result.is_ranked_in_sample:
        titles = ["row", "error", f"novelty p-value, among {result.path.n_rows:,} random rows"]
    if result.labels is not None:
        titles.append("label")
    return Table("The most unusual rows, counted from 1", titles, rows)


def _assumptions() -> list[str]:
    return [
        "Noise is assumed to be independent between columns and of equal size in every column. "
        "Standardize columns that have different units. Noise that is common to several columns "
        "counts as signal.",
        "The first components describe what varies most under the kernel. A small but important "
        "difference may not be visible in them.",
        "Correlations are linear: a component can depend on a column without any correlation.",
        "Novelty p-values are ranks: in every data set, about 1 % of the rows have p ≤ 0.01.",
    ]
