"""The page of a test: the observed statistic among its permutations, and where two samples differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat.report._data import Context, Sample, count, data_section
from muhat.report._document import (
    FOUND,
    NOTHING,
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
from muhat.testing import IndependenceResult, Result, TwoSampleResult

BINS = 40
MOST_BARS, MOST_COLUMNS, MOST_STATISTICS, MOST_ROWS = 15, 1000, 200, 5
"""Features drawn, features and statistics listed, and rows named of each sample."""

EXCHANGEABLE = (
    "Assumed: rows are independent of each other, or at least exchangeable if the two samples are alike. Repeated "
    "measurements, time series and clusters of related rows break this, and p would be too small."
)


def two_samples_report(result: TwoSampleResult, context: Context) -> Report:
    """Return the page of a test of two samples."""
    samples = context.samples("X", "Y")
    first, second = [shortened(each.name) for each in samples] if len(samples) == 2 else ("X", "Y")
    differ = result.p_value <= context.level
    n, m = result.n, result.m
    where = Section(
        "Where they differ",
        [
            f"Rows of {first} that are least like {second}: {_row_numbers(result.rows_x)}. Rows of {second} that are "
            f"least like {first}: {_row_numbers(result.rows_y)}. Rows are counted from 0."
        ],
        (),
        [_contributions(result, context.level), _features_table(result), _witness_plot(result, first, second)],
    )
    return Report(
        kind="Test of two samples",
        question=f"Do {first} and {second} come from one distribution?",
        verdict=result.verdict(context.level),
        badge="The samples differ" if differ else "No difference is found",
        tone=FOUND if differ else NOTHING,
        facts=[
            _p_value(result),
            Fact("distance of the kernel means", number(result.mmd), "MMD, for the kernel that spoke"),
            Fact("rows", f"{n:,} and {m:,}", f"of {count(len(result.features), 'column')}"),
        ],
        sections=[Section("Could it be chance?", (), (), [_permutations_plot(result)]), where, _statistics(result)],
        data=_data(context, samples, f"{n:,} and {m:,} rows of {count(len(result.features), 'column')} were tested."),
        assumptions=[
            *_sureness(result, context.level, "the two samples came from one distribution"),
            "The p-values of single columns are corrected for their number. A column may differ only together with "
            "others: then no single one shows it.",
            *_together(result),
            EXCHANGEABLE,
        ],
        code=context.code or _code("TwoSampleTest", result, "X, Y"),
        provenance=_provenance(result, context),
    )


def independence_report(result: IndependenceResult, context: Context) -> Report:
    """Return the page of a test of independence."""
    samples = context.samples("the sample")
    of = f" in {shortened(samples[0].name)}" if samples else ""
    dependent = result.p_value <= context.level
    x, y = (shortened(str(context.settings.get(name, name)), 120) for name in ("x", "y"))
    return Report(
        kind="Test of independence",
        question=f"Does {x} have to do with {y}{of}?",
        verdict=result.verdict(context.level),
        badge="They are dependent" if dependent else "No dependence is found",
        tone=FOUND if dependent else NOTHING,
        facts=[
            _p_value(result),
            Fact("kernel correlation", number(result.correlation), "from 0, none, to 1"),
            Fact("rows", f"{result.n:,}"),
        ],
        sections=[Section("Could it be chance?", (), (), [_permutations_plot(result)]), _statistics(result)],
        data=_data(context, samples, f"{count(result.n, 'row')} were tested."),
        assumptions=[
            *_sureness(result, context.level, "x and y had nothing to do with each other"),
            "Dependence is no cause: both may follow from something else.",
            EXCHANGEABLE.replace("if the two samples are alike", "if x and y are independent"),
        ],
        code=context.code or _code("IndependenceTest", result, "X, Y"),
        provenance=_provenance(result, context),
    )


def _p_value(result: Result) -> Fact:
    how = "all that differ" if result.is_complete else "random ones"
    return Fact("p-value", number(result.p_value), f"{count(result.n_permutations, 'permutation')}, {how}")


def _data(context: Context, samples: Sequence[Sample], otherwise: str) -> Section:
    sentences = [] if samples else [otherwise]
    if context.settings.get("standardize"):
        sentences.append("Every column was brought to mean 0 and variance 1, over all rows together, before the test.")
    if context.settings.get("one_hot"):
        sentences.append(
            "Columns of text were encoded: each value has an indicator, 1 where the row has it and else 0."
        )
    return data_section(context, samples, sentences)


def _provenance(result: Result, context: Context) -> dict[str, str]:
    settings = {"permutations": result.n_permutations, "level of the verdict": context.level, **context.settings}
    return Context(settings=settings).provenance()


def _sureness(result: Result, level: float, null: str) -> list[str]:
    least = 1 / (result.n_permutations + 1)
    is_exact = not isinstance(result, TwoSampleResult) or result.is_exact
    exactly = ". This holds exactly, for any number of rows and any distribution" if is_exact else ", approximately"
    lines = [
        f"If {null}, a p-value of {number(result.p_value)} or less would come up in at most "
        f"{number(100 * result.p_value)} % of such tests{exactly}.",
        f"{count(len(result.tests), 'statistic')} share the permutations, and p is for all of them together: nothing "
        "has to be corrected.",
        f"The least p that {count(result.n_permutations, 'permutation')} can give is {number(least)}.",
    ]
    if result.p_value > level:
        lines.append("That nothing is found is no proof that there is nothing: more rows may show it.")
    else:
        lines.append("A small p says that there is a difference, not that it is large: see the effect size above.")
    return lines


def _together(result: TwoSampleResult) -> list[str]:
    """Return what is to be said where rows were not permuted one by one."""
    if result.rows_together == 1:
        return []
    if result.is_exact:
        return [
            f"Rows were permuted in bins of {result.rows_together:,}, drawn at random, as there are many: p is exact."
        ]
    return [
        f"Blocks of {result.rows_together:,} rows that follow each other were permuted together, as rows depend on "
        "those before them: p is approximate, and better the more blocks there are."
    ]


def _row_numbers(rows: Array) -> str:
    return ", ".join(f"{row}" for row in rows[:MOST_ROWS])


def _permutations_plot(result: Result) -> Plot:
    """Return the histogram of the permuted statistics, and the observed one as a line."""
    permuted = result.permuted[np.isfinite(result.permuted)]
    counts, edges = np.histogram(permuted, bins=min(BINS, max(5, len(permuted) // 10)))
    low, high = min(edges[0], result.statistic), max(edges[-1], result.statistic)
    margin = 0.04 * (high - low)
    readings = [
        ((left + right) / 2, float(n), f"{count(int(n), 'permutation')} from {number(left)} to {number(right)}")
        for left, right, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    as_large = int(np.sum(permuted >= result.statistic))
    observed = number(result.statistic)
    share = f"{as_large:,} of {count(len(permuted), 'permutation')} are as large as what was observed, {observed}."
    ends = f"from {number(edges[0])} to {number(edges[-1])}"
    return Plot(
        "The observed statistic among its permutations",
        f"What the statistic would be if chance had dealt the rows. {share}",
        f"A histogram of the permuted statistics, {ends}, and a line at the observed one. {share}",
        Axis("all statistics together, the larger the less alike", low - margin, high + margin),
        Axis("permutations", 0, 1.08 * max(1, int(counts.max()))),
        [
            Series("permutations", "bars", edges, counts.astype(float), colour=0, readings=readings),
            Series(
                f"observed: {number(result.statistic)}",
                "rule",
                np.array([result.statistic]),
                np.array([]),
                colour=4,
                is_strong=True,
            ),
        ],
    )


def _witness_plot(result: TwoSampleResult, first: str, second: str) -> Plot:
    """Return the histograms of the witness function at both samples."""
    pooled = np.concatenate([result.witness_x, result.witness_y])
    edges = np.histogram_bin_edges(pooled, BINS)
    series = []
    for name, values, colour in ((first, result.witness_x, 2), (second, result.witness_y, 1)):  # of some rows, if many
        shares = 100 * np.histogram(values, edges)[0] / len(values)
        readings = [
            ((left + right) / 2, float(share), f"{number(share)} % of the rows, from {number(left)} to {number(right)}")
            for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True)
        ]
        series.append(
            Series(f"{name}, {count(len(values), 'row')}", "bars", edges, shares, colour=colour, readings=readings)
        )
    margin = 0.03 * (edges[-1] - edges[0])
    apart = number(float(result.witness_x.mean() - result.witness_y.mean()))
    return Plot(
        "The witness function at the rows of both samples",
        f"The larger, the more a place belongs to {first} rather than {second}. The farther the two histograms are "
        "apart, the more the samples differ.",
        f"Two histograms. The mean over {first} less the mean over {second} is {apart}.",
        Axis("witness function", edges[0] - margin, edges[-1] + margin),
        Axis("% of the sample", 0, 1.08 * max(1.0, *(float(each.y.max()) for each in series)), unit=" %"),
        series,
    )


def _contributions(result: TwoSampleResult, level: float) -> Bars:
    """Return how much each column differs by itself, as bars."""
    shown = sorted(result.features, key=lambda each: -each.share)[:MOST_BARS]
    largest = max([each.share for each in shown], default=0) or 1.0
    more = f" The {len(shown)} largest of {len(result.features):,}." if len(result.features) > len(shown) else ""
    bars = [
        Bar(
            each.name,
            each.share / largest,
            f"{100 * each.share:.2g} %, p = {number(each.p_value)}",
            each.p_value <= level,
        )
        for each in shown
    ]
    caption = (
        "The energy distance of every column alone, in percent of the most it can be. Grey ones can be chance: their "
        f"corrected p is above {number(level)}.{more}"
    )
    return Bars("Columns by themselves", caption, ("column", "difference"), bars)


def _features_table(result: TwoSampleResult) -> Table:
    rows = [
        [
            Cell(each.name, is_name=True),
            Cell(f"{each.shift:+.2f}".replace("-", "−"), each.shift),
            Cell(number(100 * each.share), each.share),
            Cell(number(each.p_value), each.p_value),
        ]
        for each in result.features[:MOST_COLUMNS]
    ]
    titles = ["column", "shift, standard deviations", "difference, % of the most", "p, corrected for all columns"]
    more = len(result.features) - len(rows)
    return Table("Every column by itself", titles, rows, note=f"And {more:,} more." if more else "")


def _statistics(result: Result) -> Section:
    """Return the table of all statistics."""
    tests = sorted(result.tests, key=lambda each: -each.standardized)[:MOST_STATISTICS]
    rows = [
        [
            Cell(str(each)),
            Cell(f"{each.standardized:.2f}".replace("-", "−"), each.standardized),
            Cell(number(each.p_value), each.p_value),
        ]
        for each in tests
    ]
    titles = ["statistic", "above its mean, standard deviations", "p by itself"]
    sentences = [
        "Each kernel, bandwidth and statistic sees other differences. These p-values are as if each had been the only "
        "one asked; the one that counts is that of the finding, for all of them together."
    ]
    more = len(result.tests) - len(tests)
    note = f"And {more:,} more." if more else ""
    return Section(
        "Which statistic spoke",
        sentences,
        (),
        [Table("Statistics, the largest first", titles, rows, marked=0, note=note)],
    )


def _code(test: str, result: Result, samples: str) -> str:
    call = f"result = {test}(n_permutations={result.n_permutations}).test({samples})"
    return f'from muhat import {test}\n{call}\nresult.to_html("report.html")'
