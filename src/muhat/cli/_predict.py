"""``muhat predict``: predictions with intervals of new rows, or of each row from all others."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from typer import Argument, Option, echo

from muhat._arrays import Array
from muhat._files import atomic_write, check_writable
from muhat._messages import ColumnWarning, Note, unknown_name
from muhat._python_lines import predict_lines
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
    FAR_TITLE,
    check_figure,
    check_model_file,
    check_outputs,
    check_report,
    console_of,
    csv_values,
    path_text,
    print_sentence,
    print_written,
)
from muhat.cli._reading import (
    check_names,
    ids_text,
    open_like,
    places_of,
    read_with_target,
    reading_options,
    readings_of,
    row_numbers,
    sample_names,
    show_notes,
    without,
)
from muhat.conditional import (
    INTERVALS,
    ConditionalMean,
    PredictionResult,
    checked_confidence,
    evaluate,
)
from muhat.data import DataSet
from muhat.errors import MuhatError
from muhat.persistence import save as save_model
from muhat.plots import figure_of_prediction, save
from muhat.report import intervals_text
from muhat.selection import LeaveOneOut

MAX_LISTED = 10
"""The most rows or features in a table."""

EFFECT_TITLE = "effect on prediction (SD along this feature, others at median)"


def predict_command(
    file: Annotated[
        Path, Argument(metavar="FILE", show_default=False, help="File with training rows.")
    ],
    new: Annotated[
        Path | None,
        Argument(
            metavar="[NEW]",
            show_default=False,
            help="File with rows to predict. Without NEW, each row of FILE is predicted from the "
            "others.",
        ),
    ] = None,
    target: Annotated[
        str, Option(metavar="COLUMN", show_default=False, help="The column to predict.")
    ] = "",
    confidence: Annotated[
        float,
        Option(
            metavar="SHARE",
            help="Share of the true values that prediction intervals should contain.",
        ),
    ] = 0.9,
    intervals: Annotated[
        str,
        Option(metavar="NAME", help=f"Method for the intervals of NEW: {', '.join(INTERVALS)}."),
    ] = "residuals",
    bandwidth: Annotated[
        str,
        Option(
            metavar="NUMBER|median|loo",
            help="Bandwidth of the kernel: a number, 'median', or 'loo' (chosen by leave-one-out).",
        ),
    ] = "median",
    standardize: Standardize = True,
    drop: Drop = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
    out: FigureFile = None,
    save_predictions: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            show_default=False,
            help="Write all predictions and intervals to a .csv file.",
        ),
    ] = None,
    save_to: ModelFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict a column from all others, with intervals and an estimate of the accuracy."""
    _check_options(target, confidence, intervals)
    check_figure(out)
    check_model_file(save_to)
    check_report(report)
    if save_predictions is not None:
        check_writable(save_predictions)
    outputs = {"out": out, "report": report, "save": save_to, "save_predictions": save_predictions}
    replaced = check_outputs([file, new], **outputs)
    model = ConditionalMean(bandwidth=_bandwidth(bandwidth), standardize=standardize)
    files = [file]
    if new is not None:
        files.append(new)
    elif intervals != INTERVALS[0]:
        ignored = f"--intervals {intervals} is for rows of NEW; without NEW it is not used."
        warnings.warn(ignored, Note, stacklevel=2)
    reading = reading_options(files, drop, only_numeric, separator, missing, decimal)
    reading["one_hot"] = one_hot
    readings = readings_of(files, reading)
    samples = _read_samples(files, target, readings)
    with errors_named(
        {"ConditionalMean": file, "ConditionalMean.predict_interval": "--confidence"}
    ):
        result = _predicted(model, samples, confidence, intervals)
    if out is not None:
        save(figure_of_prediction(result), out)
    if save_predictions is not None:
        atomic_write(save_predictions, _as_csv(result).encode())
    if report is not None:
        result.to_html(
            report,
            data=tuple(each.as_data_set() for each in samples),
            code=predict_lines(file, target, readings[0], model),
            settings={"standardize": standardize},
            warnings=shown_warnings(),
        )
    if save_to is not None:
        model.feature_names_in_ = np.array(samples[0].names, dtype=object)
        save_model(model, save_to)
    with standard_output():
        if as_json:
            found = {"data": samples[0].name, **result.to_dict(), "figure": path_text(out)}
            echo(json.dumps({**found, "warnings": shown_warnings()}, allow_nan=False))
        else:
            _print(result)
            written = {"Figure": out, "Predictions": save_predictions, "Report": report}
            print_written(replaced, **written, Saved=save_to)


def _bandwidth(text: str) -> float | str:
    """Return a bandwidth as ConditionalMean takes it, or raise MuhatError."""
    if text in ("median", "loo"):
        return text
    try:
        return positive("--bandwidth", "it", float(text), ", 'median' or 'loo'")
    except ValueError:
        needed = "a positive number, 'median' or 'loo' is needed"
        raise MuhatError("--bandwidth", needed, repr(text)) from None


def _check_options(target: str, confidence: float, intervals: str) -> None:
    """Raise MuhatError, before a file is read, for options that cannot be used."""
    checked_confidence("--confidence", confidence)
    if not target:
        needed = "the column to predict is needed"
        raise MuhatError("--target", needed, "none", "name the column with --target")
    if intervals not in INTERVALS:
        raise MuhatError(unknown_name("--intervals", intervals, INTERVALS))


@dataclass(frozen=True, eq=False)
class _LabelledSample:
    """The rows of a file: features, their names, and the target, if the file has it."""

    name: str
    X: Array
    y: Array | None
    names: tuple[str, ...]
    target: str
    row_numbers: Array
    """The numbers of the rows in the file, from 1 after the header."""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on rows and columns that were left out."""

    @classmethod
    def from_table(
        cls, table: DataSet, name: str, features: tuple[str, ...], target: str, rows: Array
    ) -> _LabelledSample:
        """Return the features in their order, and the target if the table has it without gaps."""
        check_names(name, table.feature_names)
        places = places_of(table, features)
        y = None
        if target in table.feature_names:
            y = table.data[:, table.feature_names.index(target)]
            if np.isnan(y).any():
                y = None
        X, numbers = table.data[:, places], rows + 1
        return cls(name, X, y, features, target, numbers, table.left_out, table.notes)

    def as_data_set(self) -> DataSet:
        """Return the features alone."""
        return DataSet(self.name, self.X, self.names, left_out=self.left_out)


def _read_samples(
    files: list[Path], target: str, readings: list[dict[str, Any]]
) -> list[_LabelledSample]:
    """Return the training rows, and the new rows if there is a second file."""
    names = sample_names(files)
    with _no_warning_of_label(target):
        table, rows = read_with_target(files[0], target, readings[0])
    show_notes(table)
    features = tuple(without(table.feature_names, [target]))
    samples = [_LabelledSample.from_table(table, names[0], features, target, rows)]
    if len(files) > 1:
        whose = f"{names[0]} has"
        with _no_warning_of_label(target):
            batches = open_like(files[1], features, readings[1], optional=[target], whose=whose)
            table = batches.read()
        show_notes(table)
        rows = row_numbers(batches)
        samples.append(_LabelledSample.from_table(table, names[1], features, target, rows))
    return samples


@contextmanager
def _no_warning_of_label(target: str) -> Iterator[None]:
    """Show warnings but those that name the target: it may well look like a label."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        if isinstance(each.message, ColumnWarning) and target in each.message.columns:
            continue
        warnings.warn(each.message, each.category, stacklevel=3)


def _predicted(
    model: ConditionalMean, samples: list[_LabelledSample], confidence: float, intervals: str
) -> PredictionResult:
    """Fit the model, and predict new rows, or each training row from all others."""
    train = samples[0]
    if len(train.X) < LeaveOneOut.least_points:
        needed = f"choosing a model needs at least {LeaveOneOut.least_points} rows"
        raise MuhatError("ConditionalMean", needed, rows_text(len(train.X)), "give more rows")
    model.fit(train.X, train.y)
    shown = samples[-1]
    new: tuple[Any, Any] = None, None
    if len(samples) > 1:
        new = shown.X, shown.y
    result = evaluate(
        model,
        *new,
        confidence=confidence,
        intervals=intervals,
        names=[each.name for each in samples],
        columns=train.names,
        target=train.target,
    )
    notes: list[str] = []
    for each in samples:
        notes += each.notes
    left_out = (*notes, *ids_text(train.names))
    return replace(result, row_numbers=shown.row_numbers, left_out=left_out)


def _as_csv(result: PredictionResult) -> str:
    """Return all predictions with their intervals, and the true values where they are known.

    Of new rows there is also a column that says which are far from all training rows.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    titles = ["row", "prediction", "lower", "upper"]
    columns = [result.row_numbers, result.predicted, *result.ends.T]
    if result.true is not None:
        titles.append(result.target)
        columns.append(result.true)
    if result.extrapolation is not None:
        titles.append(FAR_TITLE)
        columns.append(result.extrapolation.is_far)
    writer.writerow(titles)
    writer.writerows(zip(*map(csv_values, columns), strict=True))
    return text.getvalue()


def _print(result: PredictionResult) -> None:
    """Print how well the model does, what its predictions follow, and the first of them."""
    console = console_of()
    n, d = result.training_rows[0].shape
    features = count(d, "feature")
    start = f"{result.names[0]}: {rows_text(n)}, {features}, predicting {result.target!r}"
    print_sentence(console, start)
    print_sentence(console, result.verdict())
    print_sentence(console, f"{result.details}.")
    effects = Table(box=SIMPLE_HEAD, pad_edge=False)
    effects.add_column("feature", no_wrap=True)
    effects.add_column(EFFECT_TITLE, justify="right")
    for place in np.argsort(-result.importance)[:MAX_LISTED]:
        effects.add_row(result.columns[place], f"{result.importance[place]:.4g}")
    console.print(effects)
    made = f"{100 * result.confidence:g} % intervals from {intervals_text(result.intervals)}"
    print_sentence(console, f"Predictions of {result.name}, with {made}, rows counted from 1:")
    console.print(_table(result))


def _table(result: PredictionResult) -> Table:
    """Return the first predictions with their intervals, and true values where they are known."""
    titles = ["row", "predicted", "lower", "upper"]
    columns = [result.predicted, *result.ends.T]
    if result.true is not None:
        titles.append("true")
        columns.append(result.true)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right")
    for place, number in enumerate(result.row_numbers[:MAX_LISTED].tolist()):
        table.add_row(str(number), *(f"{column[place]:.5g}" for column in columns))
    if len(result.predicted) > MAX_LISTED:
        table.caption = f"… and {len(result.predicted) - MAX_LISTED:,} more"
    return table
