"""``muhat compare``: a table, a verdict, a figure, and the Python lines that reproduce it."""

from __future__ import annotations

import json
import re
import sys
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text
from typer import Argument, Option, echo

from muhat import persistence
from muhat._arrays import available_memory
from muhat._messages import unknown_name
from muhat._parts import as_kernel
from muhat._python_lines import compare_lines, options_set
from muhat._text import count
from muhat._wording import TINY_PERCENT, rows_text
from muhat.cli._command_line import errors_named, shown_warnings, standard_output
from muhat.cli._options import (
    Decimal,
    Drop,
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
    path_text,
    print_sentence,
    print_written,
)
from muhat.cli._progress import MAX_QUIET_ROWS, ProgressBatches, spinner
from muhat.cli._reading import (
    MAX_MEMORY_SHARE,
    check_names,
    columns_named,
    names_of,
    show_notes,
)
from muhat.comparison import Comparison, compare, fit_best, passes
from muhat.data import DataSet, FileBatches, open_batches
from muhat.errors import MuhatError
from muhat.filters import FILTERS
from muhat.gram import APPROXIMATIONS, MAX_ROWS_DENSE, Approximation
from muhat.kernels import KERNELS, Kernel
from muhat.plots import comparison_figure, save
from muhat.selection import RULES

POINT_KERNELS = [name for name in KERNELS if name != "precomputed"]
"""Kernels that a command can take: functions of two points."""

GRAMS = ("auto", "dense", *APPROXIMATIONS)
"""Ways to hold the Gram matrix that ``compare`` takes."""

DEFAULT_FIGURE = Path("muhat-compare.png")

DEFAULTS = {**signature(compare).parameters, **signature(open_batches).parameters}

Bandwidth = Annotated[
    str | None,
    Option(
        metavar="NUMBER|median",
        show_default="median",
        help="Bandwidth σ of the kernel: a number, or 'median' for the median distance of rows.",
    ),
]


def compare_command(
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            show_default=False,
            help="File with one row for each observation: .csv, .tsv, .txt (or these as .gz), "
            ".parquet (or a folder of them), .feather, .arrow, .npy, .npz, or - for standard "
            "input. Without FILE, the bundled wine data are used.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            show_default=str(DEFAULT_FIGURE),
            help="Write the figure: .png, .svg or .pdf.",
        ),
    ] = None,
    report: ReportFile = None,
    as_json: Annotated[
        bool,
        Option(
            "--json", help="Print JSON instead of text. A figure is then written only with --out."
        ),
    ] = False,
    filter: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            show_default="all",
            help=f"Estimator to compare: {', '.join(FILTERS)}. Can be given several times.",
        ),
    ] = None,
    kernel: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"The kernel: {', '.join(POINT_KERNELS)}, or the name of a scikit-learn kernel.",
        ),
    ] = "gaussian",
    bandwidth: Bandwidth = None,
    selection: Annotated[
        str, Option(metavar="NAME", help=f"Rule that selects parameters: {', '.join(RULES)}.")
    ] = "loo",
    standardize: Standardize = True,
    drop: Drop = None,
    columns: Annotated[
        str | None,
        Option(
            metavar="A,B,...", show_default="all", help="The columns to use, separated by commas."
        ),
    ] = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
    gram: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"How the kernel matrix is stored: {', '.join(GRAMS)}. "
            f"{' and '.join(APPROXIMATIONS)} are approximations for any number of rows.",
        ),
    ] = "auto",
    features: Annotated[
        int | None,
        Option(
            min=1,
            metavar="NUMBER",
            show_default="from the number of rows",
            help="Number of landmarks (--gram nystrom) or random features.",
        ),
    ] = None,
    model: ModelFile = None,
) -> None:
    """Compare shrinkage estimators of the kernel mean with the plain average, by leave-one-out."""
    figure = out
    if figure is None and not as_json:
        figure = DEFAULT_FIGURE
    check_figure(figure)
    check_model_file(model)
    check_report(report)
    replaced = check_outputs([file], out=figure, report=report, save=model)
    options = _changed(
        kernel=_kernel(kernel, bandwidth),
        filters=filter or None,
        selection=selection,
        standardize=standardize,
        gram=_gram(gram, features),
    )
    names, files = None, [each for each in [file] if each is not None]
    text = {"separator": separator, "decimal": decimal}
    if columns is not None:
        names = list(columns_named([columns], files, text))
    reading = _changed(
        drop=columns_named(drop or (), files, text),
        columns=names,
        only_numeric=only_numeric,
        one_hot=one_hot,
        missing=missing,
        separator=separator,
        decimal=decimal,
    )
    shown = not as_json and sys.stderr.isatty()
    if file is None:
        sample: DataSet | FileBatches = _wine()
    else:
        sample = _sample(open_batches(file, **reading), gram, shown)
    if model is not None:
        check_names(sample.name, names_of(sample))
    with errors_named({"compare": file or sample.name}):
        comparison = _compared(sample, options, standardize, shown)
    show_notes(sample)
    if model is not None:
        given = {name: options[name] for name in ("selection", "gram") if name in options}
        rows: Any = sample
        if isinstance(sample, DataSet):
            rows = sample.data
        best = fit_best(comparison, rows, feature_names=names_of(sample), **given)
        persistence.save(best, model)
    lines = compare_lines(file, reading, options, in_batches=isinstance(sample, FileBatches))
    if figure is not None:
        save(comparison_figure(comparison), figure)
    if report is not None:
        settings = options_set(reading)
        comparison.to_html(
            report, data=sample, code=lines, settings=settings, warnings=shown_warnings()
        )
    with standard_output():
        if as_json:
            result = {"data": sample.name, **comparison.to_dict()}
            result["figure"] = path_text(figure)
            result["python"] = lines.splitlines()
            if report is not None:
                result["report"] = str(report)
            result["warnings"] = shown_warnings()
            echo(json.dumps(result, allow_nan=False))
        else:
            _print(comparison, sample.name)
            echo(f"The same in Python:\n{lines}")
            print_written(replaced, Figure=figure, Report=report, Saved=model)


def _compared(
    sample: DataSet | FileBatches, options: dict[str, Any], standardize: bool, shown: bool
) -> Comparison:
    """Compare on rows in memory or in batches, and show how far it is."""
    if isinstance(sample, FileBatches):
        titles = passes(options.get("filters"), standardize)
        with ProgressBatches(sample, titles, shown=shown) as batches:
            return compare(batches, **options)
    with spinner(
        f"comparing on {len(sample.data):,} rows", shown=shown and len(sample.data) > MAX_QUIET_ROWS
    ):
        return compare(sample.data, **options)


def _changed(**options: Any) -> dict[str, Any]:
    """Return the options that are not the defaults."""
    return {name: value for name, value in options.items() if value != DEFAULTS[name].default}


def _kernel(name: str, bandwidth: str | None) -> str | Kernel:
    """Return the kernel with the bandwidth, if one is given."""
    if bandwidth is None or bandwidth == "median":
        return name
    kernel = as_kernel(name)
    if "bandwidth" not in kernel.get_params(deep=False):
        raise MuhatError(
            "--bandwidth",
            "a kernel with a bandwidth is needed",
            f"{name!r}",
            "leave out --bandwidth",
        )
    try:
        return type(kernel)(bandwidth=float(bandwidth))  # type: ignore[call-arg]
    except ValueError:
        raise MuhatError("--bandwidth", "a number or 'median' is needed", repr(bandwidth)) from None


def _gram(name: str, features: int | None) -> str | Approximation:
    """Return how the Gram matrix is stored, with the number of features asked for."""
    if name not in GRAMS:
        raise MuhatError(unknown_name("--gram", name, GRAMS))
    if features is None:
        return name
    if name not in APPROXIMATIONS:
        needed = f"--gram {' or '.join(APPROXIMATIONS)} is needed with it"
        raise MuhatError(
            "--features", needed, f"--gram {name}", "add --gram nystrom, or leave out --features"
        )
    return APPROXIMATIONS[name](n_components=features)  # type: ignore[call-arg]


def _sample(batches: FileBatches, gram: str, shown: bool) -> DataSet | FileBatches:
    """Return a file's rows if they are few, or text that fits in memory; else its batches."""
    if gram == "dense" or (gram == "auto" and batches.most_rows <= MAX_ROWS_DENSE):
        return batches.read()
    size = 8 * batches.most_rows * len(batches.columns)
    if batches.is_text and size <= MAX_MEMORY_SHARE * available_memory():
        with ProgressBatches(batches, ["reading"], shown=shown) as rows:
            values = np.concatenate(list(rows))
        return DataSet(
            batches.name, values, batches.columns, left_out=batches.left_out, notes=batches.notes
        )
    return batches


def _wine() -> DataSet:
    """Return the data that are compared on if no file is named."""
    from sklearn.datasets import load_wine  # here, as it takes long to import

    return DataSet("wine", load_wine().data, tuple(load_wine().feature_names))


def _print(comparison: Comparison, name: str) -> None:
    """Print the table, the notes, and the verdict."""
    console = console_of()
    columns = count(comparison.d, "column")
    size = f"{rows_text(comparison.n)}, {columns}"
    print_sentence(console, f"{name}: {size}, kernel {kernel_text(comparison.kernel)}")
    console.print(_table(comparison))
    for note in comparison.notes:
        print_sentence(console, note)
    style = None
    if comparison.helps:
        style = "green"
    print_sentence(console, comparison.verdict(), style)
    for sentence in (comparison.default_verdict(), comparison.stacked_verdict()):
        if sentence:
            print_sentence(console, sentence)


def kernel_text(kernel: Kernel) -> str:
    """Return a kernel with its numbers in three digits."""
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda found: f"{float(found[0]):.3g}", repr(kernel))


def _table(comparison: Comparison) -> Table:
    """Return the estimators with their gains, the best in bold; narrow enough for 80 characters."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", no_wrap=True)
    table.add_column("parameter", no_wrap=True)
    table.add_column("gain over plain average\n(% of its error)", justify="right", no_wrap=True)
    table.add_column("shrunk\n(%)", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in comparison.rows:
        strength, shrunk = 100 * row.strength, "0"
        if strength >= TINY_PERCENT:
            shrunk = f"{strength:.3g}"
        marks, style = [], None
        if row is comparison.best:
            marks.append("best")
            style = "bold"
        if row.at_edge:
            marks.append("edge")
        cells = row.name, row.setting, row.gain_text, shrunk, ", ".join(marks)
        table.add_row(*cells, style=style)
    if any(row.at_edge for row in comparison.rows):
        table.caption = Text("edge: the parameter is the first or last that was tried")
    return table
