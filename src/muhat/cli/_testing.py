"""``muhat test`` and ``muhat independence``: a table, a verdict in one sentence, and an exit code for pipelines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Exit, Option, echo

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.cli._command_line import standard_output
from muhat.cli._compare import check_figure
from muhat.cli._report import ReportFile, check_report, independence_lines, noted_warnings, two_samples_lines
from muhat.data import DataSet, open_batches, read_table
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
Separator = Annotated[
    str | None, Option(metavar="CHARACTER", show_default="learnt", help="What divides text; also 'tab' or 'space'.")
]


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
    drop: Annotated[
        list[str] | None, Option(metavar="COLUMN", show_default=False, help="A column to leave out, repeatable.")
    ] = None,
    only_numeric: Annotated[bool, Option("--only-numeric", help="Leave out columns that are not numbers.")] = False,
    separator: Separator = None,
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
    with noted_warnings() as warned:
        first, second = _two_files(files, reading) if by is None else _one_file(files, by, reading)
    pool = np.concatenate([first.data, second.data])
    if standardize:
        pool = _standardized(pool)
    X, Y = (_frame(rows, first.feature_names) for rows in np.split(pool, [len(first.data)]))
    test = TwoSampleTest(kernel or None, n_permutations=permutations, random_state=random_state)
    result = test.test(X, Y)
    if report is not None:
        settings = {"random_state": random_state, "standardize": standardize, **{k: v for k, v in reading.items() if v}}
        lines = two_samples_lines(files, by, reading, test, standardize)
        result.to_html(report, data=(first, second), code=lines, settings=settings, warnings=warned, level=level)
    with standard_output():
        if as_json:
            echo(json.dumps({"samples": [first.name, second.name], **result.to_dict(level)}, allow_nan=False))
        else:
            _print_two_samples(result, first, second, level)
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
    separator: Separator = None,
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
        table = read_table(file, columns=[*names[0], *names[1]], separator=separator)
    X, Y = (table.data[:, [table.feature_names.index(name) for name in each]] for each in names)
    if standardize:
        X, Y = _standardized(X), _standardized(Y)
    test = IndependenceTest(kernel or None, n_permutations=permutations, random_state=random_state)
    result = test.test(X, Y)
    if report is not None:
        settings = {"x": ", ".join(names[0]), "y": ", ".join(names[1]), "random_state": random_state}
        settings["standardize"] = standardize
        lines = independence_lines(file, names, separator, test, standardize)
        result.to_html(report, data=table, code=lines, settings=settings, warnings=warned, level=level)
    with standard_output():
        if as_json:
            echo(
                json.dumps({"data": table.name, "x": names[0], "y": names[1], **result.to_dict(level)}, allow_nan=False)
            )
        else:
            console = _console()
            _say(console, f"{table.name}: {len(X)} rows, x = {x}, y = {y}")
            console.print(_statistics_table(result))
            _say(console, result.verdict(level))
    _finish(result, out, fail_below)


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


def _two_files(files: Sequence[Path], reading: dict[str, Any]) -> tuple[DataSet, DataSet]:
    """Return the samples of two files, the columns of the second in the order of the first."""
    if len(files) != 2:
        needed = "two files are needed, or one with --by"
        raise ValueError(refusal("muhat test", needed, f"{len(files)} file{'s' if len(files) > 1 else ''}"))
    first, second = (read_table(file, **reading) for file in files)
    for one, other in ((first, second), (second, first)):
        missing = [name for name in one.feature_names if name not in other.feature_names]
        if missing:
            needed = f"both files must have the same columns, such as {missing[0]!r} of {one.name}"
            advice = "drop what only one of them has with --drop"
            raise ValueError(refusal(other.name, needed, ", ".join(map(repr, other.feature_names[:LISTED])), advice))
    order = [second.feature_names.index(name) for name in first.feature_names]
    return first, replace(second, data=second.data[:, order], feature_names=first.feature_names)


def _one_file(files: Sequence[Path], by: str, reading: dict[str, Any]) -> tuple[DataSet, DataSet]:
    """Return the two samples that the values of a column name."""
    if len(files) != 1:
        raise ValueError(refusal("--by", "one file is needed with it", len(files), "leave it out for two files"))
    batches = open_batches(files[0], **{**reading, "drop": (*reading["drop"], by)})
    table, labels = batches.read(), np.array(batches.words(by))
    values = np.unique(labels)
    if len(values) != 2:
        listed = ", ".join(map(repr, values[:3].tolist())) + ", …" * (len(values) > 3)
        needed = f"column {by!r} must have two values"
        raise ValueError(refusal("--by", needed, f"{len(values)} ({listed})", "select rows of two of them first"))
    first, second = (
        replace(table, name=f"{by} = {value}", data=table.data[labels == value]) for value in values.tolist()
    )
    return first, second


def _standardized(rows: Array) -> Array:
    """Return columns with mean 0 and variance 1, constant ones 0: of both samples together, whatever their labels."""
    centred = rows - rows.mean(axis=0)
    spread = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), np.inf)
    return centred / spread


def _frame(rows: Array, names: Sequence[str]) -> Any:
    """Return rows with the names of their columns."""
    import pyarrow

    return pyarrow.table(dict(zip(names, rows.T, strict=True)))


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, soft_wrap=not console.is_terminal)


def _print_two_samples(result: TwoSampleResult, first: DataSet, second: DataSet, level: float) -> None:
    """Print the features, the rows that differ most, and the verdict."""
    console = _console()
    sizes = ", ".join(f"{each.name}: {len(each.data)} rows" for each in (first, second))
    _say(console, f"{sizes}; {len(result.features)} columns, MMD {result.mmd:.3g} ({result.best.kernels[0]!r})")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("column by itself", no_wrap=True)
    for title in ("shift\n(standard deviations)", "difference\n(% of the most)", "p, corrected\nfor all columns"):
        table.add_column(title, justify="right")
    for each in result.features[:LISTED]:
        table.add_row(each.name, f"{each.shift:+.2f}", f"{100 * each.share:.2f}", f"{each.p_value:.3g}")
    console.print(table)
    for one, rows, other in ((first, result.rows_x, second), (second, result.rows_y, first)):
        _say(console, f"Rows of {one.name} that are least like {other.name}: {', '.join(map(str, rows[:ROWS]))}.")
    _say(console, result.verdict(level))


def _statistics_table(result: Result) -> Table:
    """Return the statistics that were largest, with their own p-values."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("statistic")
    table.add_column("above its mean\n(standard deviations)", justify="right")
    table.add_column("p by itself", justify="right")
    for each in sorted(result.tests, key=lambda test: -test.standardized)[:ROWS]:
        table.add_row(str(each), f"{each.standardized:.2f}", f"{each.p_value:.3g}")
    return table
