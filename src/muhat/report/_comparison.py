"""The page of a comparison: every estimator, leave-one-out curves, spectrum and filters."""

from __future__ import annotations

from inspect import signature
from operator import attrgetter
from typing import Any

from muhat._python_lines import comparison_lines
from muhat._summary import GOOD, NEUTRAL
from muhat._text import count, number
from muhat._wording import TINY_PERCENT, gain_text
from muhat.comparison import Comparison, compare
from muhat.figures import Plot, filters_plot, leave_one_out_plot, spectrum_plot, stacked_bars
from muhat.filters import FILTERS
from muhat.report._data import Context, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table

SCALING_NOTE = "Every column was scaled to mean 0 and variance 1 first."

_DEFAULTS = signature(compare).parameters


def comparison_report(comparison: Comparison, context: Context) -> Report:
    """Return the page of a comparison."""
    samples = context.samples("the sample")
    name, sentences = "this sample", []
    if samples:
        name = samples[0].name
    else:
        rows, columns = count(comparison.n, "row"), count(comparison.d, "column")
        sentences.append(f"{rows} of {columns} were used.")
    if comparison.standardize:
        sentences.append(SCALING_NOTE)
    badge, tone = _badge(comparison)
    blocks = []
    if comparison.best.improvement is not None:
        blocks.append(leave_one_out_plot(comparison))
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
        sentence, bars = comparison.stacked_verdict(), stacked_bars(comparison.stacked)
        sections.insert(2, Section("The stacked mean", [sentence], (), [bars]))
    settings = {
        "kernel": repr(comparison.kernel),
        "parameters chosen by": comparison.selection,
        "matrix of all pairs": f"{comparison.gram} ({comparison.gram_reason})",
        "standardize": comparison.standardize,
        **context.settings,
    }
    return Report(
        kind="Comparison of estimators",
        question=f"Does shrinkage improve the kernel mean of {name}?",
        verdict=" ".join(filter(None, _verdicts(comparison))),
        badge=badge,
        tone=tone,
        facts=_facts(comparison),
        sections=sections,
        data=data_section(context, samples, sentences),
        assumptions=_assumptions(comparison),
        code=context.code or _code(comparison),
        provenance=Context(settings=settings).provenance(),
    )


def _verdicts(comparison: Comparison) -> tuple[str, ...]:
    return comparison.verdict(), comparison.default_verdict(), comparison.stacked_verdict()


def _badge(comparison: Comparison) -> tuple[str, str]:
    """Return a badge: green only where the gain is significant after trying all candidates."""
    if comparison.helps:
        return "Shrinkage helps here", GOOD
    return "No clear difference", NEUTRAL


def _facts(comparison: Comparison) -> list[Fact]:
    best, facts = comparison.best, []
    facts.append(Fact("lowest leave-one-out score", best.name, best.setting))
    if best.improvement is not None:
        facts.append(
            Fact(
                "estimated gain",
                f"{best.gain_text} %",
                "of the plain average's error, ± one standard error",
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
    titles = ["estimator", "parameter", "gain over KME, % of its error", "shrunk, %", "remark"]
    note = (
        "Gain: how much lower the error is than that of KME, estimated by leave-one-out, ± one "
        "standard error. Edge of grid: the parameter is the first or last that was tried. Press a "
        "title to sort."
    )
    return Table(
        f"Estimators on {comparison.n:,} rows",
        titles,
        rows,
        marked=comparison.rows.index(comparison.best),
        note=note,
    )


def _value(value: float | None) -> float:
    if value is None:
        return float("nan")
    return value


def _percent(share: float) -> str:
    """Return a share in percent, zero below a hundredth of a percent."""
    if 100 * share < TINY_PERCENT:
        return "0"
    return number(100 * share)


def _spectrum_plots(comparison: Comparison) -> list[Plot]:
    """Return the eigenvalues by rank, and each chosen filter over them."""
    spectrum = spectrum_plot(comparison)
    if spectrum is None:
        return []
    return [spectrum, filters_plot(comparison)]


def _assumptions(comparison: Comparison) -> list[str]:
    tried = 0
    for row in comparison.rows:
        if row.scores is not None:
            tried += len(row.grid)
    lines = [
        "All gains are estimated by leave-one-out: each row in turn is left out, the mean is "
        "estimated from the other rows and scored on the left-out row. This is computed exactly, "
        "without sampling.",
        "± is one standard error. If rows are independent, the true gain is within two standard "
        "errors in about 19 of 20 data sets like this one.",
    ]
    if comparison.selection == "loo":
        lines.append(
            f"The best of {tried:,} candidates was chosen by the same score that is shown, so its "
            "gain is somewhat optimistic, especially with few rows. The badge is green only "
            "if the gain exceeds two standard errors after correcting for the number of candidates."
        )
    if comparison.n_components:
        lines.append(
            f"The kernel was approximated by {comparison.n_components:,} features; all scores "
            "are exact for this approximation."
        )
    return [
        *lines,
        "The rows are assumed to be independent samples of one distribution. In time series and "
        "clusters of related rows they are not, and gains are overestimated.",
        "This page compares estimators for one given kernel and bandwidth. It does not say whether "
        "another kernel would suit the data better.",
    ]


def _code(comparison: Comparison) -> str:
    """Return the lines of Python that give the same comparison of rows X."""
    options: dict[str, Any] = {"kernel": comparison.kernel}
    names = [*map(attrgetter("name"), comparison.rows)]
    if set(names) != set(FILTERS):
        options["filters"] = names
    for name, default in (
        ("selection", "loo"),
        ("standardize", _DEFAULTS["standardize"].default),
        ("gram", "dense"),
    ):
        if getattr(comparison, name) != default:
            options[name] = getattr(comparison, name)
    return comparison_lines(options)
