"""``muhat test`` and ``muhat independence``: a table, a verdict in one sentence, and an exit code for pipelines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Exit, Option, echo

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.cli._command_line import standard_output
from muhat.cli._compare import QUIET_UP_TO, check_figure
from muhat.cli._progress import ProgressBatches, spinner
from muhat.cli._reading import Decimal, Drop, Missing, OneHot, OnlyNumeric, Separator, show_notes
from muhat.cli._report import ReportFile, check_report, independence_lines, noted_warnings, two_samples_lines
from muhat.cli._samples import (
    LargeSample,
    are_large,
    check_same_columns,
    encoded,
    indicators,
    opened,
    read_sample,
    values_of,
)
from muhat.data import ColumnMoments, DataSet, FileBatches, StreamSource
from muhat.plots import figure_of_test, save
from muhat.testing import IndependenceTest, Result, TwoSampleResult, TwoSampleTest

FOUND = 3
"""The exit status where p is at most what ``--fail-below`` says."""

LEVEL = 0.05
"""The level of a verdict, unless ``--fail-below`` has another."""

LISTED = 10
"""The most features or statistics in a table."""

ROWS = 5
"""Rows that are named of each sample."""

Samples: TypeAlias = tuple[DataSet, DataSet, list[Array]]
"""Two samples, and the numbers that the rows of each have in their file."""

Kernels = Annotated[
    list[str] | None,
    Option(metavar="NAME", show_default=False, help="A kernel, repeatable; by default those of the test itself."),
]
Permutations = Annotated[int, Option(min=1, metavar="NUMBER", help="How many permutations.")]
RandomState = Annotated[int, Option(min=0, metavar="NUMBER", help="The seed of the permutations.")]
Standardize = Annotated[
    bool, Option("--standardize/--no-standardize", help="Bring columns to mean 0 and variance 1, or not.")
]
FailBelow = Annotated[
    float | None,
    Option(metavar="LEVEL", show_default=False, help=f"Exit with {FOUND} if p is at most this, as for a pipeline."),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON only.")]
Out = Annotated[Path | None, Option(metavar="FILE", show_default=False, help="A figure to draw: .png, .svg or .pdf.")]


def two_samples_command(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE [FILE]",
            show_default=False,
            help="Two samples, rows in files that muhat compare reads; or one file with --by.",
        ),
    ],
    by: Annotated[
        str | None,
        Option(metavar="COLUMN", show_default=False, help="The column of one file whose two values name the samples."),
    ] = None,
    kernel: Kernels = None,
    permutations: Permutations = 999,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    fail_below: FailBelow = None,
    drop: Drop = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Out = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether two samples come from one distribution: one exact p-value, and where they differ."""
    level = _level(fail_below, permutations)
    if out is not None:
        check_figure(out)
    check_report(report)
    reading = {"drop": tuple(drop or ()), "only_numeric": only_numeric, "separator": separator}
    reading |= {"missing": missing, "decimal": decimal}
    test = TwoSampleTest(kernel or None, n_permutations=permutations, random_state=random_state)
    is_large = by is None and not one_hot and len(files) == 2 and are_large(files)
    first: DataSet | FileBatches
    second: DataSet | FileBatches
    with noted_warnings() as warned:
        if is_large:
            first = opened(files[0], reading)
            second = opened(files[1], reading, first.columns)
            result = _test_large(test, first, second, standardize)
            show_notes(first, second)
        else:
            first, second, rows = (_two_files if by is None else partial(_one_file, by=by))(files, reading, one_hot)
            result = _test_read(test, first, second, standardize)
            x, y = rows[0][result.numbers_x], rows[1][result.numbers_y]
            result = replace(result, numbers_x=x, numbers_y=y)
    names = (first.name, second.name)
    if report is not None:
        given = {name: value for name, value in {**reading, "one_hot": one_hot}.items() if value}
        settings = {"random_state": random_state, "standardize": standardize, **given}
        lines = "" if one_hot or is_large else two_samples_lines(files, by, reading, test, standardize)
        result.to_html(report, data=(first, second), code=lines, settings=settings, warnings=warned, level=level)
    with standard_output():
        if as_json:
            echo(json.dumps({"samples": [*names], **result.to_dict(level)}, allow_nan=False))
        else:
            _print_two_samples(result, names, level)
    _finish(result, out, fail_below)


def independence_command(
    file: Annotated[
        Path, Argument(metavar="FILE", show_default=False, help="Rows, in a file that muhat compare reads.")
    ],
    x: Annotated[str, Option(metavar="A,B,...", show_default=False, help="The columns of x, between commas.")],
    y: Annotated[str, Option(metavar="A,B,...", show_default=False, help="The columns of y, between commas.")],
    kernel: Kernels = None,
    permutations: Permutations = 999,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    fail_below: FailBelow = None,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Out = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether some columns of a file have to do with others: one exact p-value."""
    level = _level(fail_below, permutations)
    if out is not None:
        check_figure(out)
    check_report(report)
    names = [each.split(",") for each in (x, y)]
    both = sorted({*names[0]} & {*names[1]})
    if both:
        raise ValueError(refusal("--x and --y", "a column must be in one of them only", f"{both[0]!r} in both"))
    with noted_warnings() as warned:
        wanted = [*names[0], *names[1]]
        reading = {"drop": (), "columns": wanted, "only_numeric": False, "separator": separator}
        reading |= {"missing": missing, "decimal": decimal}
        sample = read_sample(file, reading, one_hot)
    values = values_of([sample])
    table = encoded(sample, sample.table.feature_names, values)
    X, Y = (_of_columns(table, each, values) for each in names)
    if standardize:
        X, Y = _standardized(X), _standardized(Y)
    test = IndependenceTest(kernel or None, n_permutations=permutations, random_state=random_state)
    with spinner(f"testing {len(X):,} rows", shown=sys.stderr.isatty() and len(X) > QUIET_UP_TO):
        result = test.test(X, Y)
    if report is not None:
        settings = {"x": ", ".join(names[0]), "y": ", ".join(names[1]), "random_state": random_state}
        settings["standardize"] = standardize
        lines = "" if one_hot else independence_lines(file, names, separator, test, standardize)
        result.to_html(report, data=table, code=lines, settings=settings, warnings=warned, level=level)
    with standard_output():
        if as_json:
            echo(
                json.dumps({"data": table.name, "x": names[0], "y": names[1], **result.to_dict(level)}, allow_nan=False)
            )
        else:
            console = console_of()
            print_sentence(console, f"{table.name}: {len(X)} rows, x = {x}, y = {y}")
            console.print(_statistics_table(result))
            print_sentence(console, result.verdict(level))
    _finish(result, out, fail_below)


def _of_columns(table: DataSet, names: Sequence[str], values: dict[str, list[str]]) -> Array:
    """Return some columns of a table, of a text column its indicators."""
    columns = [each for name in names for each in indicators(name, values)]
    return table.data[:, [table.feature_names.index(column) for column in columns]]


def _level(fail_below: float | None, permutations: int) -> float:
    """Return the level of the verdict; refuse one that so few permutations cannot reach."""
    if fail_below is None:
        return LEVEL
    if not 0 < fail_below < 1:
        raise ValueError(refusal("--fail-below", "a level between 0 and 1 is needed", fail_below))
    if 1 / (permutations + 1) > fail_below:
        needed = f"at least {int(np.ceil(1 / fail_below - 1 - 1e-9))} permutations are needed for {fail_below:g}"
        raise ValueError(refusal("--fail-below", needed, permutations, "raise --permutations or the level"))
    return fail_below


def _finish(result: Result, out: Path | None, fail_below: float | None) -> None:
    """Draw the figure if one is asked for, and leave with the status that a pipeline waits for."""
    if out is not None:
        save(figure_of_test(result), out)
    if fail_below is not None and result.p_value <= fail_below:
        raise Exit(FOUND)


def _test_read(test: TwoSampleTest, first: DataSet, second: DataSet, standardize: bool) -> TwoSampleResult:
    """Test samples that are in memory."""
    pool = np.concatenate([first.data, second.data])
    if standardize:
        pool = _standardized(pool)
    X, Y = (named_rows(replace(first, data=rows)) for rows in np.split(pool, [len(first.data)]))
    with spinner(f"testing {len(pool):,} rows", shown=sys.stderr.isatty() and len(pool) > QUIET_UP_TO):
        return test.test(X, Y)


def _test_large(test: TwoSampleTest, x: FileBatches, y: FileBatches, standardize: bool) -> TwoSampleResult:
    """Test files that are read in each of the passes."""
    shown, passes = sys.stderr.isatty(), ["measuring columns"] * standardize + ["drawing rows", "adding up features"]
    with ProgressBatches(x, passes, shown=shown) as of_x, ProgressBatches(y, passes, shown=shown) as of_y:
        moments = None
        if standardize:
            moments = StreamSource(of_x).total(ColumnMoments.from_batch)
            moments += StreamSource(of_y).total(ColumnMoments.from_batch)
        samples = (LargeSample(x.columns, batches, moments) for batches in (of_x, of_y))
        return test.test(*samples)


def _two_files(files: Sequence[Path], reading: dict[str, Any], one_hot: bool) -> Samples:
    """Return the samples of two files, the columns of the second in the order of the first."""
    if len(files) != 2:
        needed = "two files are needed, or one with --by"
        raise ValueError(refusal("muhat test", needed, f"{len(files)} file{'s' if len(files) > 1 else ''}"))
    samples = [read_sample(file, reading, one_hot) for file in files]
    check_same_columns(samples)
    values = values_of(samples)
    first, second = (encoded(each, samples[0].table.feature_names, values) for each in samples)
    return first, second, [each.numbers for each in samples]


def _one_file(files: Sequence[Path], reading: dict[str, Any], one_hot: bool, by: str) -> Samples:
    """Return the two samples that the values of a column name."""
    if len(files) != 1:
        raise ValueError(refusal("--by", "one file is needed with it", len(files), "leave it out for two files"))
    sample = read_sample(files[0], reading, one_hot, label=by)
    table = encoded(sample, sample.table.feature_names, values_of([sample]))
    labels = np.array(sample.labels)
    values = np.unique(labels)
    if len(values) != 2:
        listed = ", ".join(map(repr, values[:3].tolist())) + ", …" * (len(values) > 3)
        needed = f"column {by!r} must have two values"
        raise ValueError(refusal("--by", needed, f"{len(values)} ({listed})", "select rows of two of them first"))
    rows = [np.flatnonzero(labels == value) for value in values]
    first, second = (
        replace(table, name=f"{by} = {value}", data=table.data[some])
        for value, some in zip(values.tolist(), rows, strict=True)
    )
    return first, second, [sample.numbers[some] for some in rows]


def _standardized(rows: Array) -> Array:
    """Return columns with mean 0 and variance 1, constant ones 0: of both samples together, whatever their labels."""
    centred = rows - rows.mean(axis=0)
    spread = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), np.inf)
    return centred / spread


def named_rows(sample: DataSet) -> Any:
    """Return rows with the names of their columns."""
    import pyarrow

    return pyarrow.table(dict(zip(sample.feature_names, sample.data.T, strict=True)))


def console_of() -> Console:
    """Return the terminal, or what stands for it, for text as it is."""
    return Console(highlight=False, markup=False, emoji=False)


def print_sentence(console: Console, sentence: str) -> None:
    """Print a sentence, in one line unless it is on a terminal."""
    console.print(sentence, soft_wrap=not console.is_terminal)


def _print_two_samples(result: TwoSampleResult, names: tuple[str, str], level: float) -> None:
    """Print the features, the rows that differ most, and the verdict."""
    console = console_of()
    sizes = ", ".join(f"{name}: {rows} rows" for name, rows in zip(names, (result.n, result.m), strict=True))
    print_sentence(
        console, f"{sizes}; {len(result.features)} columns, MMD {result.mmd:.3g} ({result.best.kernels[0]!r})"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("column by itself", no_wrap=True)
    for title in ("shift\n(standard deviations)", "difference\n(% of the most)", "p, corrected\nfor all columns"):
        table.add_column(title, justify="right")
    for each in result.features[:LISTED]:
        table.add_row(each.name, f"{each.shift:+.2f}", f"{100 * each.share:.2f}", f"{each.p_value:.3g}")
    console.print(table)
    for one, rows, other in zip(names, (result.rows_x, result.rows_y), names[::-1], strict=True):
        print_sentence(console, f"Rows of {one} that are least like {other}: {', '.join(map(str, rows[:ROWS]))}.")
    print_sentence(console, result.verdict(level))


def _statistics_table(result: Result) -> Table:
    """Return the statistics that were largest, with their own p-values."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("statistic")
    table.add_column("above its mean\n(standard deviations)", justify="right")
    table.add_column("p by itself", justify="right")
    for each in sorted(result.tests, key=lambda test: -test.standardized)[:ROWS]:
        table.add_row(str(each), f"{each.standardized:.2f}", f"{each.p_value:.3g}")
    return table
