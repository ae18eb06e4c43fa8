"""The page of a comparison: every estimator, its leave-one-out curve, the spectrum and the chosen filters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from muhat.comparison import Comparison, Row
from muhat.filters import FILTERS
from muhat.plots import Curve, FilterDisplay, LeaveOneOutDisplay
from muhat.report._data import Context, count, data_section
from muhat.report._document import (
    FOUND,
    NOTHING,
    UNSURE,
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
from muhat.stacking import StackedMean

COLOURS = ("kme", "s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method", "tsvd", "componentwise")
"""The filters with a colour of their own."""

DECADES = 12
"""How far below the largest eigenvalue the picture of the spectrum goes."""

SCALED = "Every column was brought to mean 0 and variance 1 first."

CONTRIBUTES = 0.0005
"""The weight from which on a candidate of the stacked mean is shown."""


def comparison_report(comparison: Comparison, context: Context) -> Report:
    """Return the page of a comparison."""
    samples = context.samples("the sample")
    name = samples[0].name if samples else "this sample"
    badge, tone = _badge(comparison)
    blocks = [_scores_plot(comparison)] if comparison.best.improvement is not None else []
    sections = [
        Section("Every estimator", ["The plain average is KME. The others shrink it."], (), [_table(comparison)]),
        Section("What shrinking gains", comparison.notes, (), blocks),
        Section("The spectrum and the filters", (), (), _spectrum_plots(comparison)),
    ]
    if comparison.stacked is not None and comparison.best.improvement is not None:
        sections.insert(2, _stacked_section(comparison, comparison.stacked))
    settings = {
        "kernel": repr(comparison.kernel),
        "parameters chosen by": comparison.selection,
        "matrix of all pairs": f"{comparison.gram} ({comparison.gram_reason})",
        "standardize": comparison.standardize,
        **context.settings,
    }
    size = f"{count(comparison.n, 'row')} of {count(comparison.d, 'column')} were compared on."
    return Report(
        kind="Comparison of estimators",
        question=f"Which estimate of the kernel mean of {name} is best, and by how much?",
        verdict=" ".join(filter(None, (comparison.verdict(), comparison.stacked_verdict()))),
        badge=badge,
        tone=tone,
        facts=_facts(comparison),
        sections=sections,
        data=data_section(context, samples, [size] * (not samples) + [SCALED] * comparison.standardize),
        assumptions=_assumptions(comparison),
        code=context.code or _code(comparison),
        provenance=Context(settings=settings).provenance(),
    )


def _badge(comparison: Comparison) -> tuple[str, str]:
    best = comparison.best
    if best.improvement is None or best.improvement <= 0:
        return "Shrinkage does not help here", NOTHING
    if best.improvement <= (best.standard_error or 0.0):
        return "No difference can be told", UNSURE
    return "Shrinkage helps here", FOUND


def _facts(comparison: Comparison) -> list[Fact]:
    best, facts = comparison.best, []
    facts.append(Fact("lowest leave-one-out score", best.name, best.setting))
    if best.improvement is not None:
        facts.append(
            Fact("better than the plain average by", f"{best.gain_text} %", "of its risk, ± one standard error")
        )
    if comparison.stacked is not None and best.improvement is not None:
        gain, error = 100 * comparison.stacked.gain_, 100 * comparison.stacked.gain_error_
        facts.append(Fact("the stacked mean, by", f"{number(gain)} ± {number(error, 2)} %", "many estimates, weighted"))
    facts.append(Fact("rows", f"{comparison.n:,}", f"of {count(comparison.d, 'column')}"))
    return facts


def _table(comparison: Comparison) -> Table:
    """Return every estimator with its parameter, score and gain."""
    rows = []
    for row in comparison.rows:
        words = ["best"] * (row is comparison.best) + ["at the edge of its grid"] * row.at_edge
        rows.append(
            [
                Cell(row.name),
                Cell(row.setting or "none"),
                Cell(number(row.score, 6), _value(row.score)),
                Cell(row.gain_text.replace("-", "−"), _value(row.improvement)),
                Cell(number(100 * row.strength), 100 * row.strength),
                Cell(", ".join(words)),
            ]
        )
    titles = ["estimator", "parameter", "leave-one-out score", "better than KME, % of its risk", "shrunk, %", "remark"]
    note = "The lower the score the better. ± is one standard error. Press a title to sort."
    return Table(
        f"Estimators on {comparison.n:,} rows", titles, rows, marked=comparison.rows.index(comparison.best), note=note
    )


def _value(value: float | None) -> float:
    return float("nan") if value is None else value


def colour_of(name: str) -> int:
    """Return the colour of a filter, the same on every page."""
    return COLOURS.index(name) if name in COLOURS else len(COLOURS)


def _scores_plot(comparison: Comparison) -> Plot:
    """Return the leave-one-out curves, each with the chosen point."""
    display = LeaveOneOutDisplay.from_comparison(comparison)
    limits = display.limits
    rows = {row.name: row for row in comparison.rows}
    series = [
        _score_series(curve, rows[curve.estimator], rows[curve.estimator] is comparison.best)
        for curve in display.curves
    ]
    best = comparison.best
    summary = (
        f"Curves of the improvement over KME against how strongly each estimator shrinks. {best} has the highest "
        f"point, {best.gain_text} % of KME's risk, at a strength of {number(100 * best.strength)} %."
    )
    return Plot(
        "Leave-one-out curves",
        "How much better than the plain average each estimator is, against how strongly it shrinks. The dot is what "
        "was chosen. Point at a curve, or move the slider, to read it; press a name to hide or show it.",
        summary,
        Axis("shrinkage strength ‖μ̂ − μ_λ‖ / ‖μ̂‖, %", 0, limits.right, unit=" %"),
        Axis("improvement over KME, % of its risk", limits.bottom, limits.top, unit=" %"),
        series,
    )


def _score_series(curve: Curve, row: Row, is_best: bool) -> Series:
    if len(curve.x) == 1 and row.name == "kme":
        return Series("kme (the plain average)", "rule", np.array([]), np.zeros(1), key="kme")
    readings = (
        [
            (100 * float(strength), float(gain), f"{number(gain)} % at {_setting(row, parameter)}")
            for strength, gain, parameter in zip(row.strengths, row.improvements, row.grid, strict=True)  # type: ignore[arg-type]
        ]
        if len(row.grid) == len(row.strengths)
        else None
    )
    kind = "line" if curve.joined else "points"
    return Series(
        str(row),
        kind,
        curve.x,
        curve.y,
        colour=colour_of(row.name),
        key=row.name,
        chosen=curve.chosen,
        is_strong=is_best,
        readings=readings,
    )


def _setting(row: Row, parameter: float) -> str:
    return f"{row.symbol} = {number(parameter)}" if row.symbol else "its only parameter"


def _spectrum_plots(comparison: Comparison) -> list[Plot]:
    """Return the eigenvalues by rank, and each chosen filter over them."""
    gamma = np.sort(comparison.eigenvalues)[::-1]
    gamma = gamma[gamma > 10.0**-DECADES * gamma[0]]
    if not len(gamma) or gamma[0] <= 0:
        return []
    half = 1 + int(np.searchsorted(np.cumsum(gamma) / gamma.sum(), 0.5))
    first = "the first" if half == 1 else f"the first {half:,}"
    share = f"Half of the sum of all {len(comparison.eigenvalues):,} is in {first}."
    ranks = np.arange(1, len(gamma) + 1)
    readings = [(float(i), float(g), f"number {i:,}: γ = {number(g)}") for i, g in zip(ranks, gamma, strict=True)]
    spectrum = Plot(
        "Eigenvalues",
        f"Those of K/n, the largest first. {share}",
        f"A falling line from {number(gamma[0])} to {number(gamma[-1])}. {share}",
        Axis("number", 0.93, 1.07 * max(2, len(gamma)), is_log=True),
        Axis("eigenvalue γ", 0.6 * min(gamma[-1], gamma[0] / 10), 1.6 * gamma[0], is_log=True),
        [
            Series(
                "eigenvalues",
                "points" if len(gamma) < 200 else "line",
                ranks.astype(float),
                gamma,
                colour=2,
                readings=readings,
            )
        ],
    )
    display = FilterDisplay.from_comparison(comparison)
    if not len(display.eigenvalues):
        return [spectrum]
    low = min([display.eigenvalues.min(), *(curve.x.min() for curve in display.curves)])
    top = max(1.05, *(1.03 * float(curve.y.max(initial=0)) for curve in display.curves))
    series = [
        Series(
            curve.label,
            "line" if curve.joined else "points",
            curve.x,
            curve.y,
            colour=colour_of(curve.estimator),
            key=curve.estimator,
            is_strong=curve.joined and curve.estimator == comparison.best.name,
        )
        for curve in display.curves
    ]
    ticks = Series("this sample's eigenvalues", "rug", display.eigenvalues, np.array([]), colour=0, key="eigenvalues")
    filters = Plot(
        "The chosen filters",
        "The share of a component that each estimator keeps, against the component's eigenvalue. At 1 it is kept, at 0 "
        "it is removed: small components are mostly noise.",
        "Curves that rise from near 0 for the smallest eigenvalues to near 1 for the largest; KME keeps everything.",
        Axis("eigenvalue γ of K/n", low, display.eigenvalues.max(), is_log=True),
        Axis("share kept, s(γ)", 0, top),
        [*series, ticks],
    )
    return [spectrum, filters]


def _stacked_section(comparison: Comparison, stacked: StackedMean) -> Section:
    """Return who contributes to the stacked mean."""
    order = np.argsort(-stacked.weights_, kind="stable")
    largest = float(stacked.weights_[order[0]]) or 1.0
    bars = [
        Bar(stacked.names_[place], float(stacked.weights_[place]) / largest, f"{100 * stacked.weights_[place]:.1f} %")
        for place in order
        if stacked.weights_[place] > CONTRIBUTES
    ]
    return Section(
        "The stacked mean",
        [comparison.stacked_verdict()],
        (),
        [
            Bars(
                "Who contributes",
                "The weight of each candidate; those without any are not listed.",
                ("candidate", "weight"),
                bars,
            )
        ],
    )


def _assumptions(comparison: Comparison) -> list[str]:
    tried = sum(len(row.grid) for row in comparison.rows if row.scores is not None)
    lines = [
        "Every number comes from leaving out: each row in turn is left out, the estimate is made from the others, and "
        "what it says of the row left out is scored. This is exact, not sampled.",
        "± is one standard error. If rows are independent, the true improvement is within two of them in about 19 of "
        "20 data sets like this one.",
    ]
    if comparison.selection == "loo":
        lines.append(
            f"The best of {tried:,} candidates was chosen by the very score that is shown, so that its gain is "
            "somewhat optimistic: more so the fewer the rows."
        )
    if comparison.n_components:
        lines.append(
            f"The kernel was approximated by {comparison.n_components:,} features; all scores are exact for that "
            "approximated kernel."
        )
    return [
        *lines,
        "Assumed: rows are independent draws from one distribution. Repeated rows, time series and clusters of related "
        "rows break this, and gains would be overstated.",
        "Kernel and bandwidth were taken as given: this page compares estimators for one kernel, and does not say "
        "whether that kernel is the right one.",
    ]


def _code(comparison: Comparison) -> str:
    kernel = re.match(r"\w+", repr(comparison.kernel))
    names = f"{kernel[0]}, compare" if kernel else "compare"
    options: dict[str, Any] = {"kernel": comparison.kernel}
    if {row.name for row in comparison.rows} != set(FILTERS):
        options["filters"] = [row.name for row in comparison.rows]
    for name, default in (("selection", "loo"), ("standardize", False), ("gram", "dense")):
        if getattr(comparison, name) != default:
            options[name] = getattr(comparison, name)
    call = f"comparison = compare(X, {', '.join(f'{name}={value!r}' for name, value in options.items())})"
    return f'from muhat import {names}\n{call}\ncomparison.to_html("report.html")'
