"""The page of a test: how samples differ or columns depend, and the null distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from muhat._arrays import Array
from muhat._python_lines import test_lines
from muhat._summary import FOUND, NEUTRAL
from muhat._text import agree, all_shortened, count, listed, number, shortened
from muhat._wording import p_value_text, shift_text
from muhat.figures import Pair, Plot, differences_bars, permutations_plot, witness_plot
from muhat.figures._pair import most_dependent
from muhat.report._data import Context, ReportSample, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.testing import IndependenceResult, Result, TwoSampleResult
from muhat.testing._results import NOT_COMPARABLE
from muhat.testing._wording import change_title, size_text

MAX_COLUMNS, MAX_STATISTICS = 1000, 200
"""Columns and statistics that are listed."""

MAX_ROWS = 5
"""Rows of each sample that are named as typical of it."""

INDEPENDENT_ROWS = (
    "The rows are assumed to be independent of each other. In repeated measurements, time series "
    "and clusters of related rows they are not, and the true p-value is larger."
)

SINGLE_COLUMNS = (
    "The p-values of single columns use only the energy distance of the column, and are corrected "
    "for the number of columns. A single column can be significant although the test of all "
    "columns is not, and the other way round: columns may differ only in combination."
)

TWO_SAMPLES = {
    "null": "the two samples came from one distribution",
    "how": "the rows have been reassigned to the two groups at random",
    "axis": "combined statistic (larger: the samples differ more)",
    "kinds": "differences",
    "found": (
        "A small p-value means that there is a difference, not that the difference is large; see "
        "the sizes above."
    ),
    "not found": (
        "A test that finds no difference does not prove that there is none: with more rows, one "
        "may be detected."
    ),
}
INDEPENDENCE = {
    "null": "x and y were independent",
    "how": "the rows of y have been shuffled, which removes all dependence",
    "axis": "combined statistic (larger: stronger dependence)",
    "kinds": "kinds of dependence",
    "found": (
        "A small p-value means that there is dependence, not that the dependence is strong; see "
        "the kernel correlation above."
    ),
    "not found": (
        "A test that finds no dependence does not prove that there is none: with more rows, some "
        "may be detected."
    ),
}
"""What the pages of the two tests say in different words."""


def two_samples_report(result: TwoSampleResult, context: Context) -> Report:
    """Return the page of a test of two samples."""
    samples = context.samples("X", "Y")
    first, second = _group_names(result, samples)
    if getattr(result, "names", None) == ("X", "Y"):
        result = replace(result, names=(first, second))  # so that the verdict has them too
    n, m = result.n, result.m
    columns = count(len(result.features), "column")
    where = _where_section(result, context.level, (first, second))
    chance = Section("Could it be chance?", (), (), [_null_plot(result, TWO_SAMPLES)])
    return Report(
        kind="Two-sample test",
        question=f"Do {first} and {second} come from one distribution?",
        verdict=result.verdict(context.level),
        badge=_badge(result, context.level, "The samples differ", "No difference detected"),
        tone=_tone(result, context.level),
        facts=[
            _p_value(result),
            *_largest_difference(result, context.level, first, second),
            Fact(
                "distance of the kernel means",
                number(result.mmd),
                "MMD, kernel of the most significant statistic",
            ),
            Fact("rows", f"{n:,} and {m:,}", f"of {columns}"),
        ],
        sections=[where, chance, _statistics(result, TWO_SAMPLES)],
        data=_data(context, samples, f"{n:,} and {m:,} rows of {columns} were tested."),
        assumptions=[
            *_sureness(result, context.level, TWO_SAMPLES),
            SINGLE_COLUMNS,
            *_together(result),
            INDEPENDENT_ROWS,
        ],
        code=context.code or test_lines("TwoSampleTest", result.n_permutations),
        provenance=_provenance(result, context),
    )


def _where_section(result: TwoSampleResult, level: float, names: tuple[str, str]) -> Section:
    """Return the section on the columns and rows that differ."""
    bars = differences_bars(
        result.features, names, result.n_permutations, level, result.is_complete
    )
    witness = witness_plot(result.witness_x, result.witness_y, names)
    sentences = []
    if result.p_value <= level:
        sentences.append(_rows_text(result, *names))
    table = _features_table(result, level, *names)
    return Section("Where they differ", sentences, (), [bars, table, witness])


def _badge(result: Result, level: float, found: str, nothing: str) -> str:
    """Return the verdict in a few words."""
    if result.p_value <= level:
        return found
    if not result.is_too_small(level):
        return nothing
    if result.is_complete:
        return "Too few rows to tell"
    return "Too few permutations"


def _tone(result: Result, level: float) -> str:
    if result.p_value <= level:
        return FOUND
    return NEUTRAL


def _rows_text(result: TwoSampleResult, first: str, second: str) -> str:
    return (
        f"Rows most typical of {first} rather than {second}: {_row_numbers(result.rows_x)}. Rows "
        f"most typical of {second} rather than {first}: {_row_numbers(result.rows_y)}. Each sample "
        "has more rows like these than the other has. A single row far from all others is seldom "
        "among them. Rows are counted from 1, without the header."
    )


def independence_report(result: IndependenceResult, context: Context) -> Report:
    """Return the page of a test of independence."""
    samples = context.samples("x", "y")
    x, y = _side_names(context, "x"), _side_names(context, "y")
    name = ""
    if len(samples) == 1:
        name = shortened(samples[0].name, 40)
    strength = (
        f"The kernel correlation is {number(result.correlation, 2)}, from 0 (independent) to 1. "
        "Unlike Pearson's correlation it measures dependence of every kind, and even 0.1 can be a "
        f"clear dependence. {NOT_COMPARABLE}, and a stronger dependence can have a smaller value."
    )
    scale = "from 0 (independent) to 1; for this pair only"
    return Report(
        kind="Test of independence",
        question=f"{agree(len(x), 'Is', 'Are')} {listed(x)} independent of {listed(y)}?",
        verdict=result.verdict(context.level),
        badge=_badge(result, context.level, "They are dependent", "No dependence detected"),
        tone=_tone(result, context.level),
        facts=[
            _p_value(result),
            Fact("kernel correlation", number(result.correlation, 2), scale),
            Fact("rows", f"{result.n:,}", name),
        ],
        sections=[
            Section("How strong is the dependence?", [strength], (), _pair_blocks(samples, x, y)),
            Section("Could it be chance?", (), (), [_null_plot(result, INDEPENDENCE)]),
            _statistics(result, INDEPENDENCE),
        ],
        data=_data(context, _joined(samples), f"{count(result.n, 'row')} were tested."),
        assumptions=[
            *_sureness(result, context.level, INDEPENDENCE),
            "Dependence is not causation: both may be effects of something else.",
            INDEPENDENT_ROWS,
        ],
        code=context.code or test_lines("IndependenceTest", result.n_permutations),
        provenance=_provenance(result, context),
    )


def _group_names(result: TwoSampleResult, samples: Sequence[ReportSample]) -> tuple[str, str]:
    """Return the names of both samples: of the data shown, of the result, or X and Y."""
    if len(samples) == 2:
        return shortened(samples[0].name), shortened(samples[1].name)
    first, second = getattr(result, "names", None) or ("X", "Y")
    return shortened(first), shortened(second)


def _side_names(context: Context, side: str) -> list[str]:
    """Return the names of the columns of x or of y, as the settings have them."""
    given = context.settings.get(side, side)
    if isinstance(given, str):
        given = given.split(", ")
    return all_shortened(given, 60)


def _pair_blocks(
    samples: Sequence[ReportSample], x: Sequence[str], y: Sequence[str]
) -> list[Plot | Table]:
    """Return the figure of the columns that depend most, if the rows are known."""
    sides = _sides(samples, x, y)
    if sides is None:
        return []
    (x_columns, x_names), (y_columns, y_names) = sides
    if not x_names or not y_names:
        return []
    first, second = most_dependent(x_columns, y_columns)
    pair = Pair(x_columns[first], y_columns[second], (x_names[first], y_names[second]))
    remark = ""
    if len(x_columns) * len(y_columns) > 1:
        remark = (
            " Of all pairs of a column of x and one of y, the one with the largest distance "
            "correlation."
        )
    return [pair_block(pair, remark)]


Columns: TypeAlias = tuple[list[Array], list[str]]
"""Columns and their names."""


def _sides(
    samples: Sequence[ReportSample], x: Sequence[str], y: Sequence[str]
) -> tuple[Columns, Columns] | None:
    """Return the columns of x and of y, of two samples or of one by their names."""
    if len(samples) == 2 and len(samples[0].rows) == len(samples[1].rows):
        x_sample, y_sample = samples
        return _all_columns(x_sample), _all_columns(y_sample)
    if len(samples) != 1:
        return None
    return _named_columns(samples[0], x), _named_columns(samples[0], y)


def _all_columns(sample: ReportSample) -> Columns:
    return list(sample.rows.T), list(sample.columns)


def _joined(samples: Sequence[ReportSample]) -> list[ReportSample]:
    """Return x and y, which have the same rows, as one sample; one sample unchanged."""
    if len(samples) != 2 or len(samples[0].rows) != len(samples[1].rows):
        return [*samples]
    x, y = samples
    columns = []
    for each in samples:
        for column in each.columns:
            columns.append(f"{each.name}: {column}")
    rows = np.concatenate([x.rows, y.rows], axis=1)
    left_out = (*x.left_out, *y.left_out)
    return [ReportSample(f"{x.name} and {y.name}", x.n, rows, tuple(columns), left_out)]


def _named_columns(sample: ReportSample, names: Sequence[str]) -> Columns:
    """Return some columns of a sample; a text column, which has indicators there, as text again."""
    columns, found = [], []
    for name in names:
        column = _named_column(sample, name)
        if column is not None:
            columns.append(column)
            found.append(name)
    return columns, found


def _named_column(sample: ReportSample, name: str) -> Array | None:
    """Return a column of numbers, or of text that is put together from its indicators."""
    if name in sample.columns:
        return sample.rows[:, sample.columns.index(name)]
    prefix = f"{name} = "
    places, levels = [], []
    for place, column in enumerate(sample.columns):
        if column.startswith(prefix):
            places.append(place)
            levels.append(column.removeprefix(prefix))
    if not places:
        return None
    return np.array(levels)[sample.rows[:, places].argmax(axis=1)]


def pair_block(pair: Pair, remark: str = "") -> Plot | Table:
    """Return two columns as a scatter, as boxes, or as a table of counts."""
    if pair.kind != "counts":
        return pair.figure(remark)
    first, second = all_shortened(pair.names, 40)
    x_levels, y_levels, counts = pair.counts()
    rows = []
    for level, line in zip(x_levels, counts.tolist(), strict=True):
        cells = [Cell(f"{n:,}", float(n)) for n in line]
        rows.append([Cell(level, is_name=True), *cells])
    titles = [first]
    for level in y_levels:
        titles.append(f"{second}: {level}")
    return Table(f"{second} and {first}: number of rows.{remark}", titles, rows)


def _p_value(result: Result) -> Fact:
    if result.is_complete:
        how = f"all {result.n_permutations + 1:,} permutations"
    else:
        how = f"{count(result.n_permutations, 'random permutation')}"
    if result.is_at_floor:
        how = f"the smallest value that {count(result.n_permutations, 'permutation')} can give"
    return Fact("p-value", _p_value_alone(result, result.p_value), how)


def _p_value_alone(result: Result, p: float) -> str:
    """Return a p-value without the letter, such as "≤ 0.001"."""
    text = p_value_text(p, result.n_permutations, result.is_complete)
    return text.removeprefix("p = ").removeprefix("p ")


def _largest_difference(
    result: TwoSampleResult, level: float, first: str, second: str
) -> list[Fact]:
    if not result.features:
        return []
    most = result.features[0]
    label = f"{shortened(most.name, 30)} differs most"
    size, unit = size_text(most, level), f"{first} → {second}"
    match most.differs_in:
        case "share":
            unit = f"share of rows: {unit}"
        case "spread":
            unit = f"standard deviation: {unit}"
            size = size.removeprefix("SD ")
        case "mean and spread":
            unit = f"{unit}, in standard deviations"
        case "shape" if most.p_value <= level:
            unit = f"of its distribution: {unit}"
        case _ if most.medians is not None:
            unit = f"median: {unit}"
            size = size.removeprefix("median ")
        case _:
            size = shift_text(most.shift)
            unit = f"standard deviations, {second} − {first}"
    return [Fact(label, size, unit)]


def _data(context: Context, samples: Sequence[ReportSample], otherwise: str) -> Section:
    sentences = []
    if not samples:
        sentences.append(otherwise)
    if context.settings.get("standardize"):
        sentences.append(
            "For the test, every column was scaled to mean 0 and variance 1 over all rows."
        )
    if context.settings.get("one_hot"):
        sentences.append("Text columns were encoded: an indicator, 1 or 0, for each value.")
    return data_section(context, samples, sentences)


def _provenance(result: Result, context: Context) -> dict[str, str]:
    settings = {
        "permutations": result.n_permutations,
        "level of the verdict": context.level,
        **context.settings,
    }
    return Context(settings=settings).provenance()


def _sureness(result: Result, level: float, words: Mapping[str, str]) -> list[str]:
    is_exact = not isinstance(result, TwoSampleResult) or result.is_exact
    exactly = "approximately"
    if is_exact:
        exactly = "exactly, for any number of rows and any distribution"
    lines = [
        f"If {words['null']}, a p-value of {number(result.p_value)} or less would occur in at "
        f"most {number(100 * result.p_value)} % of such tests. This holds {exactly}, if the rows "
        "are independent.",
        f"The test combines {count(len(result.tests), 'statistic')}, and the p-value is corrected "
        "for combining them.",
    ]
    if result.is_at_floor:
        permutations = count(result.n_permutations, "permutation")
        smallest = f"(the smallest value that {permutations} can give)"
        lines.append(f"{result.p_text} {smallest}. More permutations may give a smaller p-value.")
    if result.p_value > level:
        lines.append(words["not found"])
    else:
        lines.append(words["found"])
    return lines


def _together(result: TwoSampleResult) -> list[str]:
    """Return a sentence on bins or blocks, where rows were not permuted one by one."""
    if result.rows_together == 1:
        return []
    if result.is_exact:
        return [
            "Because there are many rows, they were permuted in random bins of "
            f"{result.rows_together:,} rows. The p-value is still exact."
        ]
    return [
        f"Blocks of {result.rows_together:,} consecutive rows were permuted together, because rows "
        "may depend on each other in time. The p-value is approximate, and more accurate with more "
        "blocks."
    ]


def _row_numbers(rows: Array) -> str:
    return ", ".join(f"{row + 1:,}" for row in rows[:MAX_ROWS])


def _more(n: int) -> str:
    """Return the note of a table of which some rows are not shown."""
    if n == 0:
        return ""
    return f"And {n:,} more."


def _null_plot(result: Result, words: Mapping[str, str]) -> Plot:
    p = result.p_text
    return permutations_plot(result.permuted, result.statistic, p, words["how"], words["axis"])


def _features_table(result: TwoSampleResult, level: float, first: str, second: str) -> Table:
    rows = []
    for each in result.features[:MAX_COLUMNS]:
        rows.append(
            [
                Cell(each.name, is_name=True),
                Cell(size_text(each, level), each.shift),
                Cell(number(100 * each.share), each.share),
                Cell(_p_value_alone(result, each.p_value), each.p_value),
            ]
        )
    titles = ["column", change_title(first, second), "energy distance, % of its maximum"]
    titles.append("p, corrected for all columns")
    note = _more(len(result.features) - len(rows))
    return Table("Every column alone", titles, rows, note=note)


def _statistics(result: Result, words: Mapping[str, str]) -> Section:
    """Return the table of all statistics."""
    tests = sorted(result.tests, key=lambda each: -each.standardized)[:MAX_STATISTICS]
    rows = []
    for each in tests:
        score = Cell(f"{each.standardized:.2f}".replace("-", "−"), each.standardized)
        p = Cell(_p_value_alone(result, each.p_value), each.p_value)
        rows.append([Cell(str(each)), score, p])
    titles = ["statistic", "normal score", "p alone"]
    sentences = [
        f"Each kernel, bandwidth and statistic detects different {words['kinds']}. The p-values "
        "below are for each statistic alone. The p-value of the test is corrected for combining "
        "all of them."
    ]
    note = _more(len(result.tests) - len(tests))
    title = "Statistics, the most significant first"
    return Section(title, sentences, (), [Table(title, titles, rows, marked=0, note=note)])
