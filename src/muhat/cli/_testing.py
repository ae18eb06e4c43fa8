"""``muhat test``: a verdict, a figure, an exit status for pipelines."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Exit, Option, echo

from muhat._arrays import Array
from muhat._labels import labels_in_order
from muhat._python_lines import (
    options_set,
    reading_columns,
    two_files_lines,
    two_groups_lines,
)
from muhat._text import count
from muhat._wording import is_at_floor, listed_names, rows_text
from muhat.cli._command_line import (
    columns_like_ids,
    errors_named,
    shown_warnings,
    standard_output,
)
from muhat.cli._options import (
    FOUND,
    AsJson,
    BlockLength,
    Decimal,
    Distinct,
    Drop,
    FailBelow,
    FigureFile,
    Kernels,
    Missing,
    OneHot,
    OnlyNumeric,
    Permutations,
    RandomState,
    ReportFile,
    Separator,
    Standardize,
    ToleranceText,
)
from muhat.cli._outputs import (
    ALERT,
    check_figure,
    check_outputs,
    check_report,
    console_of,
    print_sentence,
    print_written,
)
from muhat.cli._progress import MAX_QUIET_ROWS, ProgressBatches, spinner
from muhat.cli._reading import (
    ids_text,
    left_out_text,
    reading_options,
    readings_of,
    sample_names,
    show_notes,
    without,
)
from muhat.cli._samples import (
    LargeSample,
    alike_values_notes,
    are_large,
    check_same_columns,
    encoded,
    opened,
    read_sample,
    values_of,
)
from muhat.data import DataSet, FileBatches, base_name
from muhat.data._paths import check_not_empty
from muhat.errors import MuhatError
from muhat.testing import (
    Result,
    TwoSampleResult,
    TwoSampleTest,
)
from muhat.testing._samples import ConstantColumns
from muhat.testing._tolerance import HALVES
from muhat.testing._wording import size_text

LEVEL = 0.05
"""The level of a verdict, unless ``--fail-below`` has another."""

MIN_ROWS_TOGETHER = 3
"""The fewest rows of two samples together: with two, no permutation changes the statistic."""

MAX_LISTED = 10
"""The most features in a table."""

MAX_NAMED_ROWS = 5
"""The most rows that are named of each sample."""

MAX_NAME_LENGTH = 24
"""Characters of a sample's name in tables."""


def two_samples_command(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE [FILE]",
            show_default=False,
            help="Either two files, one for each sample (.csv, .parquet and others), or one file "
            "with --by.",
        ),
    ],
    by: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column that says which sample each row belongs to. It must have two values.",
        ),
    ] = None,
    kernel: Kernels = None,
    permutations: Permutations = 999,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    distinct: Distinct = False,
    tolerance: ToleranceText = None,
    block_length: BlockLength = None,
    fail_below: FailBelow = None,
    drop: Drop = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
    out: FigureFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether two samples come from one distribution, and show where they differ."""
    level = checked_level(fail_below, permutations)
    check_figure(out)
    check_report(report)
    replaced = check_outputs(files, out=out, report=report)
    reading = reading_options(files, drop, only_numeric, separator, missing, decimal)
    test = TwoSampleTest(
        kernel or None,
        standardize=standardize,
        distinct=distinct,
        tolerance=checked_tolerance(tolerance),
        block_length=block_length,
        n_permutations=permutations,
        random_state=random_state,
    )
    has_two_tables = by is None and not one_hot and len(files) == 2
    is_large = has_two_tables and block_length is None and are_large(files)
    with errors_named({"TwoSampleTest": "muhat test"}):
        if is_large:
            tested = _test_large_files(test, files, reading)
        elif by is None:
            tested = _test_samples(test, _two_files(files, reading, one_hot))
        else:
            tested = _test_samples(test, _one_file(files, reading, one_hot, by))
    result = tested.result
    if report is not None:
        columns = None
        if one_hot:
            columns = tested.columns
        reader = "read_table"
        if is_large:
            reader = "open_batches"
        lines = _python_lines(files, by, reading, test, result, columns, reader)
        given = options_set({**reading, "one_hot": one_hot})
        result.to_html(
            report,
            data=tested.samples,
            code=lines,
            settings={"random_state": random_state, "standardize": standardize, **given},
            warnings=shown_warnings(),
            level=level,
        )
    with standard_output():
        if as_json:
            found = {"samples": [*result.names], **result.to_dict(level)}
            echo(json.dumps({**found, "warnings": shown_warnings()}, allow_nan=False))
        else:
            _print_two_samples(result, level)
    figure = None
    if out is not None:
        from muhat.plots import figure_of_test  # here, as it takes long to import

        figure = figure_of_test(result, level=level)
    finish(result, figure, out, report, fail_below, as_json, replaced)


@dataclass(frozen=True, eq=False)
class _SamplePair:
    """Two samples in memory.

    ``numbers`` are the numbers of the rows of each in its file, from 0; ``left_out`` has sentences
    on columns and rows that were left out.
    """

    first: DataSet
    second: DataSet
    numbers: tuple[Array, Array]
    left_out: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _TestedSamples:
    """The result of a test, and the samples as a report shows them."""

    result: TwoSampleResult
    samples: tuple[DataSet | FileBatches, DataSet | FileBatches]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that were tested."""
        first = self.samples[0]
        if isinstance(first, FileBatches):
            return first.columns
        return first.feature_names


def _test_samples(test: TwoSampleTest, pair: _SamplePair) -> _TestedSamples:
    """Test samples in memory; rows of the result have their numbers in the files."""
    sizes = len(pair.first.data), len(pair.second.data)
    with test_spinner(sum(sizes)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumns)  # they were warned of when they were read
        result = test.test(pair.first, pair.second)
    copies = []
    if test.distinct:
        for name, n, of in zip(result.names, (result.n, result.m), sizes, strict=True):
            copies.append((name, of - n, of))
    at_rows = replace(
        result.at_rows,
        numbers_x=pair.numbers[0][result.at_rows.numbers_x],
        numbers_y=pair.numbers[1][result.at_rows.numbers_y],
    )
    left_out = pair.left_out + left_out_text((), (), copies)
    left_out += ids_text(pair.first.feature_names)
    result = replace(result, at_rows=at_rows, left_out=left_out)
    return _TestedSamples(result, (pair.first, pair.second))


def _test_large_files(
    test: TwoSampleTest, files: Sequence[Path], reading: dict[str, Any]
) -> _TestedSamples:
    """Test files that are read in each of the passes over them."""
    readings = readings_of(files, reading)
    first = opened(files[0], readings[0])
    second = opened(files[1], readings[1], first.columns)
    first.name, second.name = sample_names(files)
    shown, passes = sys.stderr.isatty(), ["drawing rows", "adding up features"]
    with (
        ProgressBatches(first, passes, shown=shown) as x,
        ProgressBatches(second, passes, shown=shown) as y,
    ):
        samples = LargeSample(first.columns, x), LargeSample(second.columns, y)
        result = test.test(*samples, names=(first.name, second.name))
    dropped = []
    columns: list[str] = []
    for each in (first, second):
        dropped.append((each.name, len(each.dropped), len(each.dropped) + (each.n or 0)))
        columns += without(each.left_out, reading["drop"])
    show_notes(first, second)
    left_out = left_out_text(columns, dropped) + ids_text(first.columns)
    result = replace(result, left_out=left_out)
    return _TestedSamples(result, (first, second))


def _python_lines(
    files: Sequence[Path],
    by: str | None,
    reading: dict[str, Any],
    test: TwoSampleTest,
    result: TwoSampleResult,
    columns: Sequence[str] | None,
    reader: str,
) -> str:
    """Return the lines of Python that test as the command does; some columns are indicators."""
    readings = readings_of(files, reading)
    if columns is not None:
        readings = [reading_columns(each, columns) for each in readings]
    if by is not None:
        groups = [name.removeprefix(f"{by} = ") for name in result.names]
        return two_groups_lines(files[0], by, readings[0], test, groups)
    names = sample_names(files)
    has_own_names = names == [base_name(file) for file in files]
    return two_files_lines(files, readings, test, None if has_own_names else names, reader)


def checked_tolerance(text: str | None) -> float | str | None:
    """Return a tolerance as a number, or as the word that it is; raise MuhatError for others."""
    if text is None or text == HALVES:
        return text
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < np.inf:
        needed = f"a number of at least 0, or {HALVES!r}, is needed"
        raise MuhatError("--tolerance", needed, repr(text))
    return found


def checked_level(fail_below: float | None, permutations: int) -> float:
    """Return the level of the verdict; raise MuhatError for one that permutations cannot reach."""
    if fail_below is None:
        return LEVEL
    if not 0 < fail_below < 1:
        raise MuhatError("--fail-below", "a level between 0 and 1 is needed", fail_below)
    if 1 / (permutations + 1) > fail_below:
        least = int(np.ceil(1 / fail_below - 1 - 1e-9))
        needed = f"at least {least} permutations are needed for {fail_below:g}"
        raise MuhatError("--fail-below", needed, permutations, "raise --permutations or the level")
    return fail_below


def finish(
    result: Result,
    figure: Any,
    out: Path | None,
    report: Path | None,
    fail_below: float | None,
    as_json: bool,
    replaced: Container[Path],
) -> None:
    """Write the figure, print what was written, and exit with the status for pipelines."""
    if out is not None:
        from muhat.plots import save

        save(figure, out)
    if not as_json:
        with standard_output():
            print_written(replaced, Figure=out, Report=report)
    tolerance = getattr(result, "tolerance", None)
    p_value = result.p_value if tolerance is None else tolerance.p_value
    if fail_below is not None and p_value <= fail_below:
        raise Exit(FOUND)


def test_spinner(rows: int) -> AbstractContextManager[Any]:
    return spinner(f"testing {rows:,} rows", shown=sys.stderr.isatty() and rows > MAX_QUIET_ROWS)


def _two_files(files: Sequence[Path], reading: dict[str, Any], one_hot: bool) -> _SamplePair:
    """Return the samples of two files, the columns of the second in the order of the first."""
    if len(files) != 2:
        needed = "two files are needed, or one with --by"
        advice = "add a file, or name the column of samples with --by"
        if len(files) > 2:
            advice = "use muhat groups for more than two samples"
        raise MuhatError("muhat test", needed, count(len(files), "file"), advice)
    for file in files:  # the second must not be found missing after the first has been read
        check_not_empty(file, str(file))
    samples = []
    for file, each in zip(files, readings_of(files, reading), strict=True):
        samples.append(read_sample(file, each, one_hot))
    check_same_columns(samples)
    values = values_of(samples)
    tables, dropped = [], []
    columns: list[str] = []
    for sample, name in zip(samples, sample_names(files), strict=True):
        table = encoded(sample, samples[0].table.feature_names, values)
        tables.append(replace(table, name=name))
        dropped.append((name, sample.n_dropped, sample.n_dropped + len(sample.numbers)))
        columns += sample.not_numbers
    _check_sizes(str(files[0]), tables)
    numbers = samples[0].numbers, samples[1].numbers
    left_out = left_out_text(columns, dropped) + alike_values_notes(values)
    return _SamplePair(tables[0], tables[1], numbers, left_out)


def _one_file(
    files: Sequence[Path], reading: dict[str, Any], one_hot: bool, by: str
) -> _SamplePair:
    """Return the two samples that the values of a column name."""
    if len(files) != 1:
        needed, advice = "one file is needed with --by", "leave out --by to compare two files"
        raise MuhatError("--by", needed, len(files), advice)
    sample = read_sample(files[0], reading, one_hot, [by])
    values = values_of([sample])
    table = encoded(sample, sample.table.feature_names, values)
    labels = sample.labels[by]
    groups = labels_in_order(labels.tolist())
    if len(groups) != 2:
        listed = listed_names(map(repr, groups), 3)
        needed, advice = f"column {by!r} must have two values", ""
        if len(groups) > 2:
            advice = "keep only the rows of two values, or use muhat groups"
        raise MuhatError("--by", needed, f"{len(groups)} ({listed})", advice)
    tables, numbers = [], []
    for group in groups:
        rows = np.flatnonzero(labels == group)
        tables.append(replace(table, name=_group_name(by, group), data=table.data[rows]))
        numbers.append(sample.numbers[rows])
    _check_sizes(tables[0].name, tables)
    dropped = ("", sample.n_dropped, sample.n_dropped + len(sample.numbers))
    left_out = left_out_text(sample.not_numbers, [dropped]) + alike_values_notes(values)
    left_out += _pairs_text(files[0], by, tables)
    return _SamplePair(tables[0], tables[1], (numbers[0], numbers[1]), left_out)


def _pairs_text(file: Path, by: str, tables: Sequence[DataSet]) -> tuple[str, ...]:
    """Return a caution if a column of ids has the same values, each once, in both samples."""
    first, second = tables
    for name in columns_like_ids():
        if name not in first.feature_names:
            continue
        place = first.feature_names.index(name)
        ids, others = np.sort(first.data[:, place]), np.sort(second.data[:, place])
        if len(np.unique(ids)) == len(ids) and np.array_equal(ids, others):
            command = f"muhat groups {quote(str(file))} --by {quote(by)} --pairs {quote(name)}"
            both = f"each value of {name} is once in both samples"
            return (f"Caution: {both}. If it names the same units, use {command}.",)
    return ()


def _check_sizes(who: str, tables: Sequence[DataSet]) -> None:
    """Raise MuhatError for two samples of one row each, which no permutation changes."""
    first, second = tables
    if len(first.data) + len(second.data) < MIN_ROWS_TOGETHER:
        raise MuhatError(who, "it must have at least 2 rows", "1 row")


def _group_name(by: str, value: str) -> str:
    """Return the name of a group: its value, or column and value if that is a number."""
    try:
        float(value)
    except ValueError:
        return value
    return f"{by} = {value}"


def verdict_style(result: Result, level: float) -> str:
    """Return the style of a verdict: a finding stands out, but not in green."""
    if result.p_value <= level:
        return ALERT
    return "bold"


def print_floor(console: Console, result: Result) -> None:
    """Say how a p-value that is a bound can be followed further."""
    if result.is_at_floor:
        n = result.n_permutations
        least = f"{result.p_value:.3g} is the smallest p-value that {n:,} permutations can give."
        more = f"Use --permutations {10 * (n + 1) - 1} to find out whether p is smaller."
        print_sentence(console, f"{least} {more}")


def _print_two_samples(result: TwoSampleResult, level: float) -> None:
    """Print the features, the rows that differ most, and the verdict."""
    console = console_of()
    first, second = map(_shortened, result.names)
    sizes = f"{first}: {rows_text(result.n)}, {second}: {rows_text(result.m)}"
    d = len(result.features)
    print_sentence(console, f"{sizes}; {d} column{'s' * (d != 1)}")
    console.print(_features_table(result, first, second, level))
    if result.p_value <= level:
        _print_typical_rows(console, first, result.rows_x, second)
        _print_typical_rows(console, second, result.rows_y, first)
    print_sentence(console, result.verdict(level), verdict_style(result, level))
    print_floor(console, result)


def _features_table(result: TwoSampleResult, first: str, second: str, level: float) -> Table:
    """Return the columns that differ most, with their change, distance and p-value."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("column", no_wrap=True)
    change = f"change from {first}\nto {second}"
    for title in (change, "energy distance\n(% of its maximum)", "p, corrected\nfor all columns"):
        table.add_column(title, justify="right")
    for each in result.features[:MAX_LISTED]:
        is_bound = is_at_floor(each.p_value, result.n_permutations, result.is_complete)
        p = f"{each.p_value:.3g}"
        if is_bound:
            p = f"≤ {p}"
        table.add_row(each.name, size_text(each, level), f"{100 * each.share:.2f}", p)
    return table


def _print_typical_rows(console: Console, one: str, rows: Array, other: str) -> None:
    listed = ", ".join(str(row + 1) for row in rows[:MAX_NAMED_ROWS])
    typical = f"Rows most typical of {one} rather than {other}"
    print_sentence(console, f"{typical}, counted from 1: {listed}.")


def _shortened(name: str) -> str:
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return f"{name[: MAX_NAME_LENGTH - 1]}…"
