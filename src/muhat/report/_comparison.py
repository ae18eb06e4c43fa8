"""The page of a comparison: every estimator, its leave-one-out curve, the spectrum and the chosen filters."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from muhat._messages import TINY_PERCENT, gain_text
from muhat._python_lines import comparison_lines
from muhat._summary import GOOD, NEUTRAL
from muhat.comparison import Comparison, Row, compare
from muhat.filters import FILTERS
from muhat.plots import Curve, FilterDisplay, LeaveOneOutDisplay
from muhat.report._data import Context, count, data_section
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
from muhat.stacking import StackedMean

OTHER_COLOUR = 9
"""The page's colour of a filter of the user's own; each filter of ours has its own before it."""

DECADES = 12
"""How far below the largest eigenvalue the picture of the spectrum goes."""

SCALED = "Every column was scaled to mean 0 and variance 1 first."

CONTRIBUTES = 0.0005
"""Candidates of the stacked mean with a smaller weight are not shown."""

_DEFAULTS = signature(compare).parameters


def comparison_report(comparison: Comparison, context: Context) -> Report:
    """Return the page of a comparison."""
    samples = context.samples("the sample")
    name = samples[0].name if samples else "this sample"
    badge, tone = _badge(comparison)
    blocks = [_scores_plot(comparison)] if comparison.best.improvement is not None else []
    sections = [
        Section(
            "Every estimator",
            ["KME is the plain average; the others shrink it."],
            (),
            [_table(comparison)],
        ),
        Section("Gain by shrinkage strength", comparison.notes, (), blocks),
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
    size = f"{count(comparison.n, 'row')} of {count(comparison.d, 'column')} were used."
    return Report(
        kind="Comparison of estimators",
        question=f"Does shrinkage improve the kernel mean of {name}?",
        verdict=" ".join(filter(None, _verdicts(comparison))),
        badge=badge,
        tone=tone,
        facts=_facts(comparison),
        sections=sections,
        data=data_section(
            context, samples, [size] * (not samples) + [SCALED] * comparison.standardize
        ),
        assumptions=_assumptions(comparison),
        code=context.code or _code(comparison),
        provenance=Context(settings=settings).provenance(),
    )


def _verdicts(comparison: Comparison) -> tuple[str, ...]:
    return comparison.verdict(), comparison.default_verdict(), comparison.stacked_verdict()


def _badge(comparison: Comparison) -> tuple[str, str]:
    """Return a badge: green only where the gain is significant after trying all candidates."""
    return ("Shrinkage helps here", GOOD) if comparison.helps else ("No clear difference", NEUTRAL)


def _facts(comparison: Comparison) -> list[Fact]:
    best, facts = comparison.best, []
    facts.append(Fact("lowest leave-one-out score", best.name, best.setting))
    if best.improvement is not None:
        facts.append(
            Fact(
                "estimated gain",
                f"{best.gain_text} %",
                "of the plain average's risk, ± one standard error",
            )
        )
    if comparison.stacked is not None and best.improvement is not None:
        gain, error = 100 * comparison.stacked.gain_, 100 * comparison.stacked.gain_error_
        facts.append(
            Fact(
                "gain of the stacked mean",
                f"{gain_text(gain, error)} %",
                "a weighted average of many estimates",
            )
        )
    facts.append(Fact("rows", f"{comparison.n:,}", f"of {count(comparison.d, 'column')}"))
    return facts


def _table(comparison: Comparison) -> Table:
    """Return every estimator with its parameter, score and gain."""
    rows = []
    for row in comparison.rows:
        words = ["best"] * (row is comparison.best) + ["edge of grid"] * row.at_edge
        rows.append(
            [
                Cell(row.name),
                Cell(row.setting.replace(" ", "\u00a0") or "none"),
                Cell(row.gain_text.replace("-", "−"), _value(row.improvement)),
                Cell(_percent(row.strength), 100 * row.strength),
                Cell(", ".join(words)),
            ]
        )
    titles = ["estimator", "parameter", "gain over KME, % of its risk", "shrunk, %", "remark"]
    note = (
        "Gain: by how much the leave-one-out estimate of the risk is below KME's, ± one standard error. Edge of grid: "
        "the parameter is the first or last that was tried. Press a title to sort."
    )
    return Table(
        f"Estimators on {comparison.n:,} rows",
        titles,
        rows,
        marked=comparison.rows.index(comparison.best),
        note=note,
    )


def _value(value: float | None) -> float:
    return float("nan") if value is None else value


def _percent(share: float) -> str:
    """Return a share in percent, zero below a hundredth of a percent."""
    return number(100 * share) if 100 * share >= TINY_PERCENT else "0"


def colour_of(name: str) -> int:
    """Return the number of a filter's colour, the same on every page."""
    return min(list(FILTERS).index(name), OTHER_COLOUR) if name in FILTERS else OTHER_COLOUR


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
        f"Curves of the gain over KME against how strongly each estimator shrinks. {best} has the highest "
        f"point, {best.gain_text} % of KME's risk, at a strength of {number(100 * best.strength)} %."
    )
    return Plot(
        "Leave-one-out curves",
        "Gain of each estimator over the plain average (KME), against how strongly it shrinks. The dot marks the "
        "chosen parameter. Point at a curve, or move the slider, to read values; press a name to hide or show it.",
        summary,
        Axis("shrinkage strength ‖μ̂ − μ_λ‖ / ‖μ̂‖, %", 0, limits.right, unit=" %"),
        Axis("gain over KME, % of its risk", limits.bottom, limits.top, unit=" %"),
        series,
    )


def _score_series(curve: Curve, row: Row, is_best: bool) -> Series:
    if len(curve.x) == 1 and row.name == "kme":
        return Series("kme (the plain average)", "rule", np.array([]), np.zeros(1), key="kme")
    readings = (
        [
            (100 * float(strength), float(gain), f"{number(gain)} % at {_setting(row, parameter)}")
            for strength, gain, parameter in zip(
                row.strengths,
                row.improvements,  # type: ignore[arg-type]
                row.grid,
                strict=True,
            )
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
    return f"{row.symbol} = {number(parameter)}" if row.symbol else "no parameter"


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
    readings = [
        (float(i), float(g), f"number {i:,}: γ = {number(g)}")
        for i, g in zip(ranks, gamma, strict=True)
    ]
    spectrum = Plot(
        "Eigenvalues",
        f"The eigenvalues of the Gram matrix divided by n, the largest first. {share}",
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
    ticks = Series(
        "this sample's eigenvalues",
        "rug",
        display.eigenvalues,
        np.array([]),
        colour=0,
        key="eigenvalues",
    )
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
        Bar(
            stacked.names_[place],
            float(stacked.weights_[place]) / largest,
            f"{100 * stacked.weights_[place]:.1f} %",
        )
        for place in order
        if stacked.weights_[place] > CONTRIBUTES
    ]
    return Section(
        "The stacked mean",
        [comparison.stacked_verdict()],
        (),
        [
            Bars(
                "Weights of the stacked mean",
                "The weight of each candidate estimate; candidates with weight zero are not listed.",
                ("candidate", "weight"),
                bars,
            )
        ],
    )


def _assumptions(comparison: Comparison) -> list[str]:
    tried = sum(len(row.grid) for row in comparison.rows if row.scores is not None)
    lines = [
        "All gains are by leave-one-out: each row in turn is left out, the mean is estimated from the other rows and "
        "scored on the row left out. This is computed exactly, not by sampling.",
        "± is one standard error. If rows are independent, the true gain is within two standard errors in about 19 of "
        "20 data sets like this one.",
    ]
    if comparison.selection == "loo":
        lines.append(
            f"The best of {tried:,} candidates was chosen by the same score that is shown, so its gain is somewhat "
            "optimistic, the more so the fewer rows there are. The badge is green only if the gain is beyond two "
            "standard errors after correcting for the number of candidates."
        )
    if comparison.n_components:
        lines.append(
            f"The kernel was approximated by {comparison.n_components:,} features; all scores are exact for this "
            "approximation."
        )
    return [
        *lines,
        "Assumed: the rows are independent draws from one distribution. Time series and clusters of related rows break "
        "this, and the gains would be overstated.",
        "Kernel and bandwidth were given: this page compares estimators for one kernel, and does not say whether "
        "another kernel would suit the data better.",
    ]


def _code(comparison: Comparison) -> str:
    """Return the lines of Python that give the same comparison of rows X."""
    options: dict[str, Any] = {"kernel": comparison.kernel}
    if {row.name for row in comparison.rows} != set(FILTERS):
        options["filters"] = [row.name for row in comparison.rows]
    for name, default in (
        ("selection", "loo"),
        ("standardize", _DEFAULTS["standardize"].default),
        ("gram", "dense"),
    ):
        if getattr(comparison, name) != default:
            options[name] = getattr(comparison, name)
    return comparison_lines(options)
