"""``muhat pca``: kernel principal components of a file, what they follow, and unusual rows."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer import Argument, Option, echo

from muhat._arrays import Array
from muhat._files import atomic_write, check_writable
from muhat._frames import ColumnFrame
from muhat._python_lines import pca_lines
from muhat._text import count
from muhat._validation import positive
from muhat._wording import rows_text
from muhat.cli._command_line import errors_named, shown_warnings, standard_output
from muhat.cli._options import (
    AsJson,
    Decimal,
    Drop,
    FigureFile,
    Missing,
    ModelFile,
    OneHot,
    OnlyNumeric,
    ReportFile,
    Separator,
    Standardize,
)
from muhat.cli._outputs import (
    check_figure,
    check_model_file,
    check_outputs,
    check_report,
    console_of,
    print_sentence,
    print_written,
)
from muhat.cli._progress import spinner
from muhat.cli._reading import check_names, ids_text, reading_options, sample_names
from muhat.cli._samples import encoded, read_sample, values_of
from muhat.data import DataSet
from muhat.errors import MuhatError
from muhat.kernels import Gaussian
from muhat.pca import ComponentsResult, KernelPCA, describe_components
from muhat.persistence import save as save_model
from muhat.plots import figure_of_components, save

MAX_LISTED = 10
"""The most columns, components or rows in a table."""

MAX_COMPONENTS_LISTED = 4
"""Components with a column of correlations in the table."""

MAX_QUIET_ROWS = 1000
"""Rows up to which no progress is shown."""

MIN_ROWS = 3
"""Rows that components with left-out rows take."""


def pca_command(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            show_default=False,
            help="File with one row for each observation (.csv, .parquet and others), or - for "
            "standard input.",
        ),
    ],
    components: Annotated[
        str,
        Option(
            metavar="NUMBER|loo",
            help="Number of components, or 'loo' to choose it by cross-validation: the smallest "
            "number that separates signal from noise.",
        ),
    ] = "loo",
    filter: Annotated[
        str,
        Option(
            metavar="NAME",
            help="How components are kept: tsvd cuts small ones off, tikhonov and others shrink "
            "them.",
        ),
    ] = "tsvd",
    bandwidth: Annotated[
        str, Option(metavar="NUMBER|median", help="Bandwidth of the Gaussian kernel.")
    ] = "median",
    by: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="Column that colours the rows on the map. It is not used to find the components.",
        ),
    ] = None,
    standardize: Standardize = True,
    drop: Drop = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
    scores: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            show_default=False,
            help="Write the scores, reconstruction errors and novelty p-values of all rows to a "
            ".csv file.",
        ),
    ] = None,
    out: FigureFile = None,
    save_to: ModelFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Find the main directions in which rows vary, straight or curved, and unusual rows."""
    pca = KernelPCA(_components(components), kernel=Gaussian(_bandwidth(bandwidth)), filter=filter)
    check_figure(out)
    check_model_file(save_to)
    check_report(report)
    if scores is not None:
        if scores.suffix.lower() != ".csv":
            needed = "a file name ending in .csv is needed"
            raise MuhatError("--scores", needed, repr(str(scores)))
        check_writable(scores)
    replaced = check_outputs([file], scores=scores, out=out, report=report, save=save_to)
    reading = reading_options([file], drop, only_numeric, separator, missing, decimal)
    labels = [] if by is None else [by]
    sample = read_sample(file, reading, one_hot, labels)
    table = encoded(sample, sample.table.feature_names, values_of([sample]))
    table = replace(table, name=sample_names([file])[0])
    check_names(table.name, table.feature_names)
    model = _fitted(pca, table, standardize)
    result = describe_components(
        model,
        table.data if standardize else ColumnFrame(table.data, table.feature_names),
        name=table.name,
        columns=table.feature_names,
        labels=None if by is None else sample.labels[by].tolist(),
    )
    left_out = (*sample.table.notes, *ids_text(table.feature_names))
    result = replace(result, row_numbers=sample.numbers + 1, left_out=left_out)
    if scores is not None:
        atomic_write(scores, scores_as_csv(result).encode())
    if out is not None:
        save(figure_of_components(result), out)
    if report is not None:
        result.to_html(
            report,
            data=table,
            code=pca_lines(file, {**reading, "one_hot": one_hot}, pca, standardize, labels),
            settings={"standardize": standardize},
            warnings=shown_warnings(),
        )
    if save_to is not None:
        if standardize:
            model[0].feature_names_in_ = np.array(table.feature_names, dtype=object)
        save_model(model, save_to)
    with standard_output():
        if as_json:
            found = {"data": table.name, **result.to_dict(), "warnings": shown_warnings()}
            echo(json.dumps(found, allow_nan=False))
        else:
            _print(result)
            print_written(replaced, Scores=scores, Figure=out, Report=report, Saved=save_to)


def _components(text: str) -> int | str:
    """Return a number of components as KernelPCA takes it, or raise MuhatError."""
    if text == "loo":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        needed = "a whole number of at least 1, or 'loo', is needed"
        raise MuhatError("--components", needed, repr(text))
    return number


def _bandwidth(text: str) -> float | Literal["median"]:
    """Return a bandwidth as a kernel takes it, or raise MuhatError."""
    if text == "median":
        return "median"
    try:
        return positive("--bandwidth", "it", float(text), " or 'median'")
    except ValueError:
        needed = "a positive number or 'median' is needed"
        raise MuhatError("--bandwidth", needed, repr(text)) from None


def _fitted(pca: KernelPCA, table: DataSet, standardize: bool) -> Any:
    """Return the model, a pipeline if columns are standardized, fitted to a table."""
    n = len(table.data)
    if n < MIN_ROWS:
        needed = f"components need at least {MIN_ROWS} rows"
        raise MuhatError(table.name, needed, rows_text(n), "give more rows")
    if not np.ptp(table.data, axis=0).any():
        raise MuhatError(table.name, "some column must vary", "only constants")
    shown = sys.stderr.isatty() and n > MAX_QUIET_ROWS
    with spinner(f"decomposing {n:,} rows", shown=shown), errors_named({"KernelPCA": table.name}):
        if not standardize:
            return pca.fit(ColumnFrame(table.data, table.feature_names))
        return make_pipeline(StandardScaler(), pca).fit(table.data)


def scores_as_csv(result: ComponentsResult) -> str:
    """Return the scores, reconstruction error and novelty of every row."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    columns: dict[str, Array] = {"row": result.row_numbers}
    for k in range(result.scores.shape[1]):
        columns[f"component_{k + 1}"] = result.scores[:, k]
    columns |= {"reconstruction_error": result.errors, "novelty_p": result.p_values}
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue()


def _print(result: ComponentsResult) -> None:
    """Print the verdict, correlations of columns, and the most unusual rows."""
    console = console_of()
    n, d = len(result.scores), len(result.columns)
    print_sentence(console, f"{result.name}: {rows_text(n)}, {count(d, 'column')}")
    console.print(_loadings_table(result))
    console.print(_unusual_table(result))
    print_sentence(console, result.verdict(), "bold")


def _loadings_table(result: ComponentsResult) -> Table:
    """Return the correlations of columns with the first components."""
    shown = min(result.scores.shape[1], MAX_COMPONENTS_LISTED)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(
        "correlation with\n(% of kernel's variance)", overflow="ellipsis", no_wrap=True
    )
    for k in range(shown):
        share = 100 * result.pca.explained_variance_ratio_[k]
        table.add_column(f"component\n{k + 1} ({share:.3g} %)", justify="right", no_wrap=True)
    strongest = np.argsort(-np.abs(result.correlations[:, :shown]).max(axis=1), kind="stable")
    for place in strongest[:MAX_LISTED]:
        cells = []
        for k in range(shown):
            cells.append(f"{result.correlations[place, k]:.2f}".replace("-", "−"))
        table.add_row(result.columns[place], *cells)
    if len(strongest) > MAX_LISTED:
        table.caption = f"… and {len(strongest) - MAX_LISTED:,} more columns"
    return table


def _unusual_table(result: ComponentsResult) -> Table:
    """Return the most unusual rows."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("most unusual rows\n(counted from 1)", justify="right")
    error = "error of the row\nwhen left out"
    if result.is_ranked_in_sample:
        error = "error of\nthe row"
    table.add_column(error, justify="right")
    described = "novelty p: share of rows\nat least as unusual"
    if result.is_ranked_in_sample:
        described = f"novelty p, compared with\n{result.path.n_rows:,} random rows"
    table.add_column(described, justify="right")
    for place in result.unusual[: MAX_LISTED // 2].tolist():
        number = str(result.row_numbers[place])
        table.add_row(number, f"{result.errors[place]:.3g}", f"{result.p_values[place]:.2g}")
    return table
