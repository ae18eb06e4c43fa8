"""``muhat groups``: which groups of rows differ from the rest, and in which column."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from typer import Argument, Exit, Option, echo

from muhat._arrays import Array
from muhat._frames import ColumnFrame
from muhat._messages import Note
from muhat._python_lines import group_files_lines, groups_lines, reading_columns
from muhat._wording import is_at_floor, rows_text
from muhat.cli._command_line import errors_named, shown_warnings, standard_output
from muhat.cli._options import (
    FOUND,
    AsJson,
    Decimal,
    Drop,
    FailBelow,
    FigureFile,
    Kernels,
    Missing,
    ModelFile,
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
    check_model_file,
    check_outputs,
    check_report,
    console_of,
    print_sentence,
    print_written,
)
from muhat.cli._progress import spinner
from muhat.cli._reading import (
    ids_text,
    left_out_text,
    reading_options,
    readings_of,
    sample_names,
)
from muhat.cli._samples import (
    alike_values_notes,
    check_same_columns,
    encoded,
    read_sample,
    values_of,
)
from muhat.cli._testing import checked_level, checked_tolerance
from muhat.data import DataSet, hashed_rows
from muhat.errors import MuhatError
from muhat.groups import KernelMeans
from muhat.persistence import save
from muhat.plots import figure_of_groups
from muhat.plots import save as save_figure
from muhat.testing import GroupResult, GroupTest
from muhat.testing._group_results import WHICH_REST

MAX_LISTED = 20
"""The most groups in a table."""

MAX_QUIET_ROWS = 500
"""Rows up to which the test takes about a second, and no progress is shown."""


def groups_command(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE ...",
            show_default=False,
            help="Either one file, with --by, or one file for each group (.csv, .parquet and "
            "others).",
        ),
    ],
    by: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column that has the group label of each row.",
        ),
    ] = None,
    strata: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column with strata, such as sites or days. Only rows of the same stratum are "
            "compared.",
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column that names the patient, or other unit, of each row. Use it if units have "
            "several rows in one group; whole units are then permuted.",
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column that names the patient, or other unit, of each row. Use it if units have "
            "rows in several groups, such as before and after; labels are then permuted within "
            "units.",
        ),
    ] = None,
    tolerance: ToleranceText = None,
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
    decimal: Decimal = None,
    out: FigureFile = None,
    report: ReportFile = None,
    save_to: ModelFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether groups of rows come from one distribution, and show which differ."""
    level = checked_level(fail_below, permutations)
    check_model_file(save_to)
    check_figure(out)
    check_report(report)
    replaced = check_outputs(files, out=out, report=report, save=save_to)
    reading = reading_options(files, drop, only_numeric, separator, missing, decimal)
    design = {"strata": strata, "clusters": clusters, "pairs": pairs}
    columns = {name: column for name, column in design.items() if column is not None}
    if by is None:
        sample = _files_as_groups(files, reading, one_hot, columns)
    else:
        sample = _file_by_column(files, reading, one_hot, by, columns)
    test = GroupTest(
        kernel or None,
        standardize=standardize,
        tolerance=checked_tolerance(tolerance),
        n_permutations=permutations,
        random_state=random_state,
    )
    table = sample.table
    X = ColumnFrame(table.data, table.feature_names)
    shown = sys.stderr.isatty() and len(X) > MAX_QUIET_ROWS
    with spinner(f"testing {len(X):,} rows", shown=shown), errors_named({"GroupTest": table.name}):
        result = test.test(X, sample.groups, **sample.design)
    left_out = (*result.left_out, *sample.left_out, *ids_text(table.feature_names))
    result = replace(
        result,
        title=by,
        strata=strata,
        pairs_by=pairs,
        clusters_by=clusters or result.clusters_by,
        left_out=left_out,
    )
    if out is not None:
        save_figure(figure_of_groups(result, level), out)
    if report is not None:
        settings = {"random_state": random_state, "standardize": standardize}
        lines = _python_lines(files, by, reading, columns, test, table.feature_names, one_hot)
        result.to_html(
            report,
            data=table,
            code=lines,
            settings=settings,
            warnings=shown_warnings(),
            level=level,
        )
    if save_to is not None:
        means = KernelMeans(standardize=standardize, random_state=random_state)
        means.fit(table.data, sample.groups)
        means.feature_names_in_ = np.array(table.feature_names, dtype=object)
        save(means, save_to)
    with standard_output():
        if as_json:
            found = {"data": table.name, **result.to_dict(level), "warnings": shown_warnings()}
            echo(json.dumps(found, allow_nan=False))
        else:
            _print(result, table, level)
            print_written(replaced, Figure=out, Report=report, Saved=save_to)
    p_value = result.p_value
    if result.tolerance is not None:
        p_value = result.tolerance.p_value
    if fail_below is not None and p_value <= fail_below:
        raise Exit(FOUND)


@dataclass(frozen=True, eq=False)
class _GroupedSample:
    """The rows of all groups, the label of each, and labels of the design by their names."""

    table: DataSet
    groups: Array
    design: dict[str, Array]
    left_out: tuple[str, ...]
    """Sentences on what is not tested."""


def _file_by_column(
    files: Sequence[Path], reading: dict[str, Any], one_hot: bool, by: str, design: dict[str, str]
) -> _GroupedSample:
    """Return the rows of one file, with the group of each in a column."""
    if len(files) != 1:
        needed, advice = (
            "one file is needed with --by",
            "leave out --by to use one file for each group",
        )
        raise MuhatError("--by", needed, len(files), advice)
    labels = [by, *design.values()]
    for column in labels:
        if labels.count(column) > 1:
            needed = "--by, --strata, --clusters and --pairs need different columns"
            raise MuhatError("muhat groups", needed, f"{column!r} twice")
    sample = read_sample(files[0], reading, one_hot, labels)
    values = values_of([sample])
    table = encoded(sample, sample.table.feature_names, values)
    of_design = {name: sample.labels[column] for name, column in design.items()}
    dropped = ("", sample.n_dropped, sample.n_dropped + len(sample.numbers))
    left_out = left_out_text(sample.not_numbers, [dropped]) + alike_values_notes(values)
    return _GroupedSample(table, sample.labels[by], of_design, left_out)


def _files_as_groups(
    files: Sequence[Path], reading: dict[str, Any], one_hot: bool, design: dict[str, str]
) -> _GroupedSample:
    """Return the rows of several files, each a group that is called as its file."""
    if len(files) < 2:
        needed = "a column of groups, or a file for each group, is needed"
        raise MuhatError("muhat groups", needed, "1 file", "name the column of groups with --by")
    _check_different(files)
    samples = []
    for file, each in zip(files, readings_of(files, reading), strict=True):
        samples.append(read_sample(file, each, one_hot, list(design.values())))
    check_same_columns(samples)
    values = values_of(samples)
    tables = [encoded(each, samples[0].table.feature_names, values) for each in samples]
    _note_equal_files(files, tables)
    groups = np.repeat(sample_names(files), [len(each.data) for each in tables])
    rows = np.concatenate([each.data for each in tables])
    of_design = {}
    for name, column in design.items():
        of_design[name] = np.concatenate([each.labels[column] for each in samples])
    dropped = []
    columns: list[str] = []
    for label, sample in zip(sample_names(files), samples, strict=True):
        dropped.append((label, sample.n_dropped, sample.n_dropped + len(sample.numbers)))
        columns += sample.not_numbers
    table = replace(tables[0], name=f"{len(files)} files", data=rows)
    left_out = left_out_text(columns, dropped) + alike_values_notes(values)
    return _GroupedSample(table, groups, of_design, left_out)


def _check_different(files: Sequence[Path]) -> None:
    """Raise MuhatError for a file given twice, whose rows would be counted twice."""
    seen: set[Path] = set()
    for file in files:
        path = file.resolve()
        if path in seen:
            needed, advice = "a different file for each group is needed", "give each file once"
            raise MuhatError("muhat groups", needed, f"{file} twice", advice)
        seen.add(path)


def _note_equal_files(files: Sequence[Path], tables: Sequence[DataSet]) -> None:
    """Say which files have the rows of an earlier one, in their order: they are copies."""
    seen: dict[bytes, Path] = {}
    for file, table in zip(files, tables, strict=True):
        content = hashed_rows(table.data).tobytes()
        if content in seen:
            found = f"{file} has the same rows as {seen[content]}."
            warnings.warn(found, Note, stacklevel=2)
        else:
            seen[content] = file


def _python_lines(
    files: Sequence[Path],
    by: str | None,
    reading: dict[str, Any],
    design: dict[str, str],
    test: GroupTest,
    columns: Sequence[str],
    one_hot: bool,
) -> str:
    """Return the lines of Python that test as the command does; none for files with a design."""
    readings = readings_of(files, reading)
    if one_hot or by is None:  # the columns of files may be in different orders
        readings = [reading_columns(each, columns, one_hot) for each in readings]
    if by is not None:
        return groups_lines(files[0], by, readings[0], test, design)
    if design:
        return ""
    return group_files_lines(files, readings, sample_names(files), test)


def _print(result: GroupResult, table: DataSet, level: float) -> None:
    """Print each group against the rest, and the verdict."""
    console = console_of()
    d = table.data.shape[1]
    columns = "1 column"
    if d != 1:
        columns = f"{d:,} columns"
    groups = f"{len(result.groups):,} groups"
    print_sentence(console, f"{table.name}: {rows_text(result.n)}, {columns}, {groups}")
    console.print(_table(result))
    if len(result.groups) > 2 and result.groups[0].p_value <= level:
        console.print(WHICH_REST)
    verdict = result.verdict(level)
    if result.which_deviations and result.which_deviations not in verdict:
        console.print(result.which_deviations)
    print_sentence(console, verdict, ALERT if result.p_value <= level else "bold")


def _table(result: GroupResult) -> Table:
    """Return a row for each group, those that differ most first."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("group", overflow="ellipsis", no_wrap=True)
    titles = ["rows", "rows of\nthe rest", "MMD from\nthe rest", "p,\ncorrected"]
    if result.tolerance is not None:
        titles.append("p, more than\nthe tolerance")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("differs most in\n(SD from the rest)", overflow="ellipsis", no_wrap=True)
    for each in result.groups[:MAX_LISTED]:
        p_values = [_p(result, each.p_value)]
        if each.p_tolerance is not None:
            p_values.append(_p(result, each.p_tolerance))
        change = result.change_text(each)
        sizes = f"{each.n:,}", f"{each.n_rest:,}", f"{each.mmd:.2g}"
        table.add_row(str(each.group), *sizes, *p_values, change)
    if len(result.groups) > MAX_LISTED:
        table.caption = f"… and {len(result.groups) - MAX_LISTED:,} more"
    return table


def _p(result: GroupResult, p: float) -> str:
    """Return a p-value of the table, with a sign if it is the least possible."""
    is_bound = is_at_floor(p, result.n_permutations, result.is_complete)
    return f"{'≤ ' if is_bound else ''}{p:.3g}"
