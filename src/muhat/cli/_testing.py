"""``muhat test`` and ``muhat independence``: a table, a verdict, a figure, and an exit status for pipelines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
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
from muhat._messages import rows_text, shift_text
from muhat.cli._command_line import in_own_words, standard_output
from muhat.cli._compare import QUIET_UP_TO, check_figure
from muhat.cli._outputs import check_outputs
from muhat.cli._progress import ProgressBatches, spinner
from muhat.cli._reading import (
    Decimal,
    Drop,
    Missing,
    OneHot,
    OnlyNumeric,
    Separator,
    left_out_text,
    readings_of,
    sample_names,
    show_notes,
)
from muhat.cli._report import (
    ReportFile,
    check_report,
    independence_lines,
    noted_warnings,
    print_written,
    two_samples_lines,
)
from muhat.cli._samples import (
    LargeSample,
    ReadSample,
    are_large,
    check_same_columns,
    encoded,
    indicators,
    opened,
    read_sample,
    values_of,
)
from muhat.data import DataSet, FileBatches
from muhat.errors import MuhatError
from muhat.plots import PairDisplay, figure_of_test, save
from muhat.testing import IndependenceTest, Result, TwoSampleResult, TwoSampleTest

FOUND = 3
"""The exit status where p is at most what ``--fail-below`` says."""

LEVEL = 0.05
"""The level of a verdict, unless ``--fail-below`` has another."""

LISTED = 10
"""The most features or statistics in a table."""

ROWS = 5
"""Rows that are named of each sample."""

NAME_LENGTH = 24
"""Characters of a sample's name in tables."""

ALERT = "bold yellow"
"""The colour of what was found; green would call it good."""

OWN_WORDS = {
    "TwoSampleTest": "muhat test",
    "distinct=True": "--distinct",
    "leave out distinct": "leave out --distinct",
}
"""What the command calls what Python has other names for."""

Samples: TypeAlias = tuple[DataSet, DataSet, list[Array], tuple[str, ...]]
"""Two samples, the numbers that the rows of each have in their file, and sentences on what was left out."""

Kernels = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        show_default=False,
        help="A kernel (repeatable); by default those of the test.",
    ),
]
Permutations = Annotated[
    int,
    Option(min=1, metavar="NUMBER", help="Number of permutations; p is at least 1/(NUMBER + 1)."),
]
RandomState = Annotated[int, Option(min=0, metavar="NUMBER", help="Seed of the permutations.")]
Standardize = Annotated[
    bool, Option("--standardize/--no-standardize", help="Scale columns to mean 0 and variance 1.")
]
FailBelow = Annotated[
    float | None,
    Option(
        metavar="LEVEL", show_default=False, help=f"Exit with status {FOUND} if p ≤ LEVEL (for CI)."
    ),
]
Distinct = Annotated[
    bool, Option("--distinct", help="Drop rows that are exact copies of others before testing.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON only.")]
Out = Annotated[
    Path | None,
    Option(metavar="FILE", show_default=False, help="Write a figure (.png, .svg or .pdf)."),
]


def two_samples_command(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE [FILE]",
            show_default=False,
            help="Two samples, each a file of rows (formats as for muhat compare); or one file with --by.",
        ),
    ],
    by: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column of the one file whose two values name the samples.",
        ),
    ] = None,
    kernel: Kernels = None,
    permutations: Permutations = 999,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    distinct: Distinct = False,
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
    """Test whether two samples come from one distribution, and show where they differ."""
    level = _level(fail_below, permutations)
    if out is not None:
        check_figure(out)
    check_report(report)
    check_outputs(files, out=out, report=report)
    reading = {"drop": tuple(drop or ()), "only_numeric": only_numeric, "separator": separator}
    reading |= {"missing": missing, "decimal": decimal}
    test = TwoSampleTest(
        kernel or None,
        standardize=standardize,
        distinct=distinct,
        n_permutations=permutations,
        random_state=random_state,
    )
    is_large = by is None and not one_hot and len(files) == 2 and are_large(files)
    first: DataSet | FileBatches
    second: DataSet | FileBatches
    with noted_warnings() as warned:
        if is_large:
            readings = readings_of(files, reading)
            first = opened(files[0], readings[0])
            second = opened(files[1], readings[1], first.columns)
            first.name, second.name = sample_names(files)
            with in_own_words(OWN_WORDS):
                result = _test_large(test, first, second)
            dropped = [
                (each.name, len(each.dropped), len(each.dropped) + (each.n or 0))
                for each in (first, second)
            ]
            names = [
                name
                for each in (first, second)
                for name in each.left_out
                if name not in (drop or ())
            ]
            result = replace(result, left_out=left_out_text(names, dropped))
            show_notes(first, second)
        else:
            first, second, rows, left_out = (
                _two_files if by is None else partial(_one_file, by=by)
            )(files, reading, one_hot)
            whose = [str(file) for file in files] if by is None else [first.name, second.name]
            words = {
                f"TwoSampleTest: {name} must": f"{who}: it must"
                for name, who in zip("XY", whose, strict=True)
            }
            with _spinner(len(first.data) + len(second.data)), in_own_words(words | OWN_WORDS):
                result = test.test(first, second)
            at_rows = replace(
                result.at_rows,
                numbers_x=rows[0][result.at_rows.numbers_x],
                numbers_y=rows[1][result.at_rows.numbers_y],
            )
            sizes = zip(
                result.names, (len(first.data), len(second.data)), (result.n, result.m), strict=True
            )
            copies = (
                left_out_text((), (), [(name, of - n, of) for name, of, n in sizes])
                if distinct
                else ()
            )
            result = replace(result, at_rows=at_rows, left_out=left_out + copies)
    if report is not None:
        given = {name: value for name, value in {**reading, "one_hot": one_hot}.items() if value}
        settings = {"random_state": random_state, "standardize": standardize, **given}
        lines = (
            ""
            if one_hot or is_large
            else two_samples_lines(
                files, by, readings_of(files, reading), test, _labels_of(result.names, by)
            )
        )
        result.to_html(
            report,
            data=(first, second),
            code=lines,
            settings=settings,
            warnings=warned,
            level=level,
        )
    with standard_output():
        if as_json:
            echo(json.dumps({"samples": [*result.names], **result.to_dict(level)}, allow_nan=False))
        else:
            _print_two_samples(result, level)
    figure = figure_of_test(result, level=level) if out is not None else None
    _finish(result, figure, out, report, fail_below, as_json)


def independence_command(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            show_default=False,
            help="A file of rows (formats as for muhat compare).",
        ),
    ],
    x: Annotated[
        str,
        Option(metavar="A,B,...", show_default=False, help="Columns of x, separated by commas."),
    ],
    y: Annotated[
        str,
        Option(metavar="A,B,...", show_default=False, help="Columns of y, separated by commas."),
    ],
    kernel: Kernels = None,
    permutations: Permutations = 999,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    distinct: Distinct = False,
    fail_below: FailBelow = None,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Out = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether two sets of columns are independent."""
    level = _level(fail_below, permutations)
    if out is not None:
        check_figure(out)
    check_report(report)
    check_outputs([file], out=out, report=report)
    names = [each.split(",") for each in (x, y)]
    both = sorted({*names[0]} & {*names[1]})
    if both:
        raise MuhatError(
            "--x and --y", "a column must be in one of them only", f"{both[0]!r} in both"
        )
    with noted_warnings() as warned:
        wanted = [*names[0], *names[1]]
        reading = {"drop": (), "columns": wanted, "only_numeric": False, "separator": separator}
        reading |= {"missing": missing, "decimal": decimal}
        sample = read_sample(file, reading, one_hot)
    values = values_of([sample])
    table = encoded(sample, sample.table.feature_names, values)
    X, Y = (_of_columns(table, each, values) for each in names)
    test = IndependenceTest(
        kernel or None,
        standardize=standardize,
        distinct=distinct,
        n_permutations=permutations,
        random_state=random_state,
    )
    with _spinner(len(table.data)), in_own_words({"IndependenceTest": str(file)}):
        result = test.test(X, Y)
    result = replace(
        result, x_names=tuple(names[0]), y_names=tuple(names[1])
    )  # a text column is one name
    dropped = ("", sample.n_dropped, sample.n_dropped + len(sample.numbers))
    result = replace(result, left_out=left_out_text((), [dropped]))
    if report is not None:
        settings = {
            "x": ", ".join(names[0]),
            "y": ", ".join(names[1]),
            "random_state": random_state,
        }
        settings["standardize"] = standardize
        lines = "" if one_hot else independence_lines(file, names, separator, test)
        result.to_html(
            report, data=table, code=lines, settings=settings, warnings=warned, level=level
        )
    with standard_output():
        if as_json:
            echo(
                json.dumps(
                    {"data": table.name, "x": names[0], "y": names[1], **result.to_dict(level)},
                    allow_nan=False,
                )
            )
        else:
            console = console_of()
            size = f"{table.name}: {rows_text(len(table.data))}, x = {x}, y = {y}"
            print_sentence(
                console,
                f"{size}; kernel correlation {result.correlation:.2g} (0: none, 1: the most)",
            )
            print_sentence(console, _verdict(result, level), _style(result, level))
            _print_floor(console, result)
    figure = None
    if out is not None:
        shown = [_shown_columns(sample, each) for each in names]
        pair = PairDisplay.from_samples(shown[0], shown[1], names=names)
        figure = figure_of_test(result, pair=pair, level=level)
    _finish(result, figure, out, report, fail_below, as_json)


def _of_columns(table: DataSet, names: Sequence[str], values: dict[str, list[str]]) -> DataSet:
    """Return some columns of a table, of a text column its indicators."""
    columns = [each for name in names for each in indicators(name, values)]
    places = [table.feature_names.index(column) for column in columns]
    return replace(table, data=table.data[:, places], feature_names=tuple(columns))


def _level(fail_below: float | None, permutations: int) -> float:
    """Return the level of the verdict; refuse one that so few permutations cannot reach."""
    if fail_below is None:
        return LEVEL
    if not 0 < fail_below < 1:
        raise MuhatError("--fail-below", "a level between 0 and 1 is needed", fail_below)
    if 1 / (permutations + 1) > fail_below:
        needed = f"at least {int(np.ceil(1 / fail_below - 1 - 1e-9))} permutations are needed for {fail_below:g}"
        raise MuhatError("--fail-below", needed, permutations, "raise --permutations or the level")
    return fail_below


def _finish(
    result: Result,
    figure: Any,
    out: Path | None,
    report: Path | None,
    fail_below: float | None,
    as_json: bool,
) -> None:
    """Write the figure, say what was written, and leave with the status that a pipeline waits for."""
    if out is not None:
        save(figure, out)
    if not as_json:
        with standard_output():
            print_written(Figure=out, Report=report)
    if fail_below is not None and result.p_value <= fail_below:
        raise Exit(FOUND)


def _spinner(rows: int) -> AbstractContextManager[Any]:
    return spinner(f"testing {rows:,} rows", shown=sys.stderr.isatty() and rows > QUIET_UP_TO)


def _test_large(test: TwoSampleTest, x: FileBatches, y: FileBatches) -> TwoSampleResult:
    """Test files that are read in each of the passes."""
    shown, passes = sys.stderr.isatty(), ["drawing rows", "adding up features"]
    with (
        ProgressBatches(x, passes, shown=shown) as of_x,
        ProgressBatches(y, passes, shown=shown) as of_y,
    ):
        samples = (LargeSample(file.columns, batches) for file, batches in ((x, of_x), (y, of_y)))
        return test.test(*samples, names=(x.name, y.name))


def _two_files(files: Sequence[Path], reading: dict[str, Any], one_hot: bool) -> Samples:
    """Return the samples of two files, the columns of the second in the order of the first."""
    if len(files) != 2:
        needed = "two files are needed, or one with --by"
        raise MuhatError("muhat test", needed, f"{len(files)} file{'s' if len(files) > 1 else ''}")
    readings = readings_of(files, reading)
    samples = [read_sample(file, each, one_hot) for file, each in zip(files, readings, strict=True)]
    check_same_columns(samples)
    values = values_of(samples)
    first, second = (
        replace(encoded(each, samples[0].table.feature_names, values), name=name)
        for each, name in zip(samples, sample_names(files), strict=True)
    )
    dropped = [
        (name, each.n_dropped, each.n_dropped + len(each.numbers))
        for name, each in zip(sample_names(files), samples, strict=True)
    ]
    left_out = left_out_text([name for each in samples for name in each.not_numbers], dropped)
    return first, second, [each.numbers for each in samples], left_out


def _one_file(files: Sequence[Path], reading: dict[str, Any], one_hot: bool, by: str) -> Samples:
    """Return the two samples that the values of a column name."""
    if len(files) != 1:
        raise MuhatError(
            "--by", "one file is needed with it", len(files), "leave it out for two files"
        )
    sample = read_sample(files[0], reading, one_hot, label=by)
    table = encoded(sample, sample.table.feature_names, values_of([sample]))
    labels = np.array(sample.labels)
    values = np.array(groups_in_order(labels.tolist()))
    if len(values) != 2:
        listed = ", ".join(map(repr, values[:3].tolist())) + ", …" * (len(values) > 3)
        needed = f"column {by!r} must have two values"
        raise MuhatError(
            "--by", needed, f"{len(values)} ({listed})", "select rows of two of them first"
        )
    rows = [np.flatnonzero(labels == value) for value in values]
    first, second = (
        replace(table, name=_group_name(by, value), data=table.data[some])
        for value, some in zip(values.tolist(), rows, strict=True)
    )
    dropped = ("", sample.n_dropped, sample.n_dropped + len(sample.numbers))
    return (
        first,
        second,
        [sample.numbers[some] for some in rows],
        left_out_text(sample.not_numbers, [dropped]),
    )


def groups_in_order(labels: Sequence[str]) -> list[str]:
    """Return the different labels: numbers as they rise, others in the order of the file."""
    groups = list(dict.fromkeys(labels))
    try:
        return sorted(groups, key=float)
    except ValueError:
        return groups


def _group_name(by: str, value: str) -> str:
    """Return what a group is called: its value, or the column and the value where that is a number."""
    try:
        float(value)
    except ValueError:
        return value
    return f"{by} = {value}"


def _labels_of(names: Sequence[str], by: str | None) -> list[str]:
    """Return the values of the column that groups are called by."""
    return [name.removeprefix(f"{by} = ") for name in names]


def console_of() -> Console:
    """Return a rich Console without markup or highlighting."""
    return Console(highlight=False, markup=False, emoji=False)


def print_sentence(console: Console, sentence: str, style: str | None = None) -> None:
    """Print a sentence, in one line unless it is on a terminal."""
    console.print(sentence, style=style, soft_wrap=not console.is_terminal)


def _style(result: Result, level: float) -> str:
    """Return the colour of a verdict: what is found stands out, and is not called good."""
    return ALERT if result.p_value <= level else "bold"


def _verdict(result: Result, level: float) -> str:
    """Return the verdict with the option of the command instead of the parameter of Python."""
    return as_option(result.verdict(level))


def as_option(verdict: str) -> str:
    """Return a sentence with ``--distinct`` where it names the parameter."""
    return verdict.replace("distinct=True (--distinct)", "--distinct").replace(
        "distinct=True", "--distinct"
    )


def _print_floor(console: Console, result: Result) -> None:
    """Say how a p-value that is a bound can be followed further."""
    if result.is_at_floor:
        least = f"{result.p_value:.3g} is the least p that {result.n_permutations:,} permutations can give"
        more = 10 * (result.n_permutations + 1) - 1
        print_sentence(console, f"{least}; --permutations {more} looks further.")


def _print_two_samples(result: TwoSampleResult, level: float) -> None:
    """Print the features, the rows that differ most, and the verdict."""
    console = console_of()
    names = tuple(_shortened(name) for name in result.names)
    sizes = ", ".join(
        f"{name}: {rows_text(rows)}" for name, rows in zip(names, (result.n, result.m), strict=True)
    )
    print_sentence(
        console, f"{sizes}; {len(result.features)} column{'s' * (len(result.features) != 1)}"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("column", no_wrap=True)
    shift = f"mean of {names[1]} −\nmean of {names[0]}\n(standard deviations)"
    for title in (shift, "difference\n(% of its maximum)", "p, corrected\nfor all columns"):
        table.add_column(title, justify="right")
    for each in result.features[:LISTED]:
        is_floor = not result.is_complete and each.p_value * (result.n_permutations + 1) < 1.5
        p = f"{'≤ ' * is_floor}{each.p_value:.3g}"
        table.add_row(each.name, shift_text(each.shift), f"{100 * each.share:.2f}", p)
    console.print(table)
    unlike = (
        ()
        if result.is_same
        else ((names[0], result.rows_x, names[1]), (names[1], result.rows_y, names[0]))
    )
    for one, rows, other in unlike:
        listed = ", ".join(str(row + 1) for row in rows[:ROWS])
        print_sentence(
            console, f"Rows of {one} that are least like {other}, counted from 1: {listed}."
        )
    print_sentence(console, _verdict(result, level), _style(result, level))
    _print_floor(console, result)


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def _shown_columns(sample: ReadSample, names: Sequence[str]) -> Any:
    """Return columns as the file has them, text as words."""
    data = sample.table.data
    places = sample.table.feature_names
    columns = [
        sample.words[name] if name in sample.words else data[:, places.index(name)]
        for name in names
    ]
    return (
        np.column_stack([column.astype(object) for column in columns])
        if sample.words
        else np.column_stack(columns)
    )
