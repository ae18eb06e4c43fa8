"""``muhat independence``: a verdict, a figure, an exit status for pipelines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option, echo

from muhat._python_lines import independence_lines
from muhat._wording import rows_text
from muhat.cli._command_line import errors_named, shown_warnings, standard_output
from muhat.cli._options import (
    AsJson,
    Decimal,
    Distinct,
    FailBelow,
    FigureFile,
    Kernels,
    Missing,
    OneHot,
    Permutations,
    RandomState,
    ReportFile,
    Separator,
    Standardize,
)
from muhat.cli._outputs import (
    check_figure,
    check_outputs,
    check_report,
    console_of,
    print_sentence,
)
from muhat.cli._reading import (
    columns_named,
    left_out_text,
    places_of,
    reading_options,
)
from muhat.cli._samples import (
    ReadSample,
    alike_values_notes,
    encoded,
    indicators,
    read_sample,
    values_of,
)
from muhat.cli._testing import checked_level, finish, print_floor, test_spinner, verdict_style
from muhat.data import DataSet
from muhat.errors import MuhatError
from muhat.testing import (
    IndependenceResult,
    IndependenceTest,
)
from muhat.testing._results import NOT_COMPARABLE


def independence_command(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            show_default=False,
            help="File with one row for each observation (.csv, .parquet and others).",
        ),
    ],
    x: Annotated[
        str,
        Option(
            metavar="A,B,...", show_default=False, help="First set of columns, separated by commas."
        ),
    ],
    y: Annotated[
        str,
        Option(
            metavar="A,B,...",
            show_default=False,
            help="Second set of columns, separated by commas.",
        ),
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
    decimal: Decimal = None,
    out: FigureFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test whether two sets of columns are independent."""
    level = checked_level(fail_below, permutations)
    check_figure(out)
    check_report(report)
    replaced = check_outputs([file], out=out, report=report)
    reading = reading_options([file], None, False, separator, missing, decimal)
    x_names = list(columns_named([x], [file], reading))
    y_names = list(columns_named([y], [file], reading))
    both = sorted({*x_names} & {*y_names})
    if both:
        needed = "a column can be in only one of them"
        raise MuhatError("--x and --y", needed, f"{both[0]!r} in both")
    reading["columns"] = [*x_names, *y_names]
    sample = read_sample(file, reading, one_hot)
    values = values_of([sample])
    table = encoded(sample, sample.table.feature_names, values)
    X, Y = _of_columns(table, x_names, values), _of_columns(table, y_names, values)
    test = IndependenceTest(
        kernel or None,
        standardize=standardize,
        distinct=distinct,
        n_permutations=permutations,
        random_state=random_state,
    )
    with test_spinner(len(table.data)), errors_named({"IndependenceTest": file}):
        result = test.test(X, Y)
    left_out = left_out_text((), [("", sample.n_dropped, sample.n_dropped + len(sample.numbers))])
    left_out += alike_values_notes(values)
    # a text column is one name, whatever the number of its indicators
    result = replace(result, left_out=left_out, x_names=tuple(x_names), y_names=tuple(y_names))
    if report is not None:
        settings = {"x": ", ".join(x_names), "y": ", ".join(y_names), "random_state": random_state}
        columns = X.feature_names, Y.feature_names
        lines = independence_lines(file, *columns, {**reading, "one_hot": one_hot}, test)
        result.to_html(
            report,
            data=table,
            code=lines,
            settings={**settings, "standardize": standardize},
            warnings=shown_warnings(),
            level=level,
        )
    with standard_output():
        if as_json:
            found = {"data": table.name, "x": x_names, "y": y_names, **result.to_dict(level)}
            echo(json.dumps({**found, "warnings": shown_warnings()}, allow_nan=False))
        else:
            size = f"{table.name}: {rows_text(len(table.data))}, x = {x}, y = {y}"
            _print_independence(result, size, level)
    figure = None
    if out is not None:
        from muhat.plots import PairDisplay, figure_of_test  # here, as it takes long to import

        x_shown, y_shown = _shown_columns(sample, x_names), _shown_columns(sample, y_names)
        pair = PairDisplay.from_samples(x_shown, y_shown, names=[x_names, y_names])
        figure = figure_of_test(result, pair=pair, level=level)
    finish(result, figure, out, report, fail_below, as_json, replaced)


def _of_columns(table: DataSet, names: Sequence[str], values: dict[str, list[str]]) -> DataSet:
    """Return some columns of a table, of a text column its indicators."""
    columns: list[str] = []
    for name in names:
        columns += indicators(name, values)
    places = places_of(table, columns)
    return replace(table, data=table.data[:, places], feature_names=tuple(columns))


def _print_independence(result: IndependenceResult, size: str, level: float) -> None:
    """Print how strong the dependence is, and the verdict."""
    console = console_of()
    print_sentence(console, size)
    scale = "from 0 (independent) to 1; it counts dependence of every kind"
    print_sentence(console, f"Kernel correlation: {result.correlation:.2g}, {scale}.")
    print_sentence(console, f"{NOT_COMPARABLE}.")
    print_sentence(console, result.verdict(level), verdict_style(result, level))
    print_floor(console, result)


def _shown_columns(sample: ReadSample, names: Sequence[str]) -> Any:
    """Return columns as the file has them, text as words: an array of shape (n, len(names))."""
    columns = []
    for name in names:
        if name in sample.words:
            columns.append(sample.words[name])
        else:
            columns.append(sample.table.data[:, sample.table.feature_names.index(name)])
    if sample.words:
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)
