"""``muhat apply``: the predictions or scores of a saved model for new rows."""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import pyarrow
from sklearn.pipeline import Pipeline
from typer import Argument, Option, echo

from muhat._arrays import Array
from muhat._files import atomic_write
from muhat._text import numbered
from muhat.cli._command_line import errors_named, shown_warnings, standard_output
from muhat.cli._options import Decimal, Drop, Missing, Separator
from muhat.cli._outputs import FAR_TITLE, check_file, check_outputs, csv_values, print_written
from muhat.cli._progress import ProgressBatches
from muhat.cli._reading import (
    check_names,
    columns_named,
    open_like,
    row_numbers,
    show_notes,
)
from muhat.conditional import (
    MAX_SHIFT_ROWS,
    ConditionalMean,
    CovariateShift,
    ExtrapolationWarning,
    checked_confidence,
    training_rows,
)
from muhat.conditional._extrapolation import far_text
from muhat.data import FileBatches, ReservoirSample, SampleBatch, open_batches
from muhat.data._selection import INDICATOR
from muhat.density import MatchedMixture
from muhat.embedding import Element
from muhat.errors import MuhatError
from muhat.groups import KernelMeans
from muhat.kernels import Linear
from muhat.mean import KernelMean
from muhat.pca import KernelPCA
from muhat.persistence import load
from muhat.stacking import StackedMean
from muhat.testing import TwoSampleResult

ENDINGS = (".csv", ".json")

DEFAULT_CONFIDENCE = 0.9
"""That of the intervals of a regression, as in ``muhat predict``."""


def apply_command(
    model: Annotated[
        Path,
        Argument(metavar="MODEL", show_default=False, help="Model saved by muhat.save or --save."),
    ],
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            show_default=False,
            help="File with new rows (.csv, .parquet and others), or - for standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        Option(metavar="FILE", show_default="standard output", help="Output file: .csv or .json."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of CSV.")] = False,
    confidence: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="LEVEL",
            show_default=False,
            help="Share of the true values that intervals should contain; 0 for no intervals. "
            "Default: 0.9, or "
            "none with --quantiles.",
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        Option(
            metavar="Q,Q,...",
            show_default=False,
            help="Also write these quantiles of the prediction, such as 0.05,0.5,0.95.",
        ),
    ] = None,
    drop: Drop = None,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
) -> None:
    """Apply a saved model to new rows: a prediction or score for each row."""
    check_file("--out", out, ENDINGS)
    replaced = check_outputs([model, file], out=out)
    if confidence:
        checked_confidence("--interval", confidence)
    applied = _AppliedModel(load(model), str(model), confidence, _levels(quantiles))
    batches = applied.open(file, drop, missing, separator, decimal)
    as_json = as_json or (out is not None and out.suffix.lower() == ".json")
    text = io.StringIO()
    names_in_errors = {
        "ConditionalMean.predict_interval": "--interval",
        "ConditionalMean.predict_quantiles": "--quantiles",
    }
    shown = out is not None and sys.stderr.isatty()
    with errors_named(names_in_errors), ProgressBatches(batches, ["applying"], shown=shown) as rows:
        if as_json:
            columns = _all_columns(applied, rows)
        elif out is None:
            with standard_output():
                _write_csv(applied, rows, sys.stdout)
        else:
            _write_csv(applied, rows, text)
    show_notes(batches)
    applied.warn_of_shift(str(file))
    applied.warn_of_far_rows(str(file))
    if as_json:  # after the warnings, which it contains
        found = {"model": type(applied.last).__name__, **columns, "warnings": shown_warnings()}
        text.write(json.dumps(found, allow_nan=False) + "\n")
    if as_json and out is None:
        with standard_output():
            echo(text.getvalue(), nl=False)
    if out is not None:
        atomic_write(out, text.getvalue().encode())
        print_written(replaced, Saved=out)


def _levels(quantiles: str | None) -> list[float]:
    """Return the levels of quantiles that are asked for."""
    if quantiles is None:
        return []
    try:
        return list(map(float, quantiles.split(",")))
    except ValueError:
        needed = "numbers between 0 and 1, separated by commas, are needed"
        raise MuhatError("--quantiles", needed, repr(quantiles)) from None


class _AppliedModel:
    """A saved model, and the values that it gives for each new row."""

    def __init__(
        self, model: Any, who: str, confidence: float | None, quantiles: list[float]
    ) -> None:
        self.model = model
        self.who = who
        self.last = model
        if isinstance(model, Pipeline):
            self.last = model[-1]
        self.confidence = confidence
        if confidence is None and not quantiles and _has_intervals(self.last, DEFAULT_CONFIDENCE):
            self.confidence = DEFAULT_CONFIDENCE
        self.quantiles = quantiles
        self.n_rows = self.n_far = 0
        self.row_numbers: Array | None = None
        self.training = training_rows(self.last)
        self.seen: ReservoirSample | None = None
        self.columns: list[str] | None = None
        if hasattr(model, "feature_names_in_"):
            self.columns = list(model.feature_names_in_)
        if (quantiles or confidence is not None) and not isinstance(self.last, ConditionalMean):
            needed = "a model of y given x is needed for intervals and quantiles"
            raise MuhatError(who, needed, f"a {type(self.last).__name__}")

    def open(
        self,
        file: Path,
        drop: list[str] | None,
        missing: str,
        separator: str | None,
        decimal: str | None,
    ) -> FileBatches:
        """Return a file to be read with the columns of the model."""
        reading: dict[str, Any] = {"missing": missing, "separator": separator, "decimal": decimal}
        if self.columns is None:
            batches = open_batches(file, columns_named(drop or (), [file], reading), **reading)
        else:
            batches = open_like(file, self.columns, reading)
            self._check_dropped(columns_named(drop or (), [file], reading))
            found = (*batches.columns, *batches.left_out)
            check_names(batches.name, [name for name in found if name in self.columns])
        if (
            missing == "drop"
        ):  # a pass over the file, after which it knows the rows that are dropped
            for _ in batches:
                pass
            self.row_numbers = row_numbers(batches) + 1
        return batches

    def _check_dropped(self, dropped: Sequence[str]) -> None:
        """Raise MuhatError for a column of the model that is to be left out."""
        for name in dropped:
            indicators = [each for each in self.columns or () if each.startswith(name + INDICATOR)]
            if name in (self.columns or ()) or indicators:
                needed = "columns that the model does not need can be dropped"
                raise MuhatError("--drop", needed, f"{name!r}, which it was trained on")

    def values(self, batches: Iterable[Array]) -> Iterator[dict[str, Array]]:
        """Yield the columns to write for each batch, first row numbers if some are dropped."""
        start = 0
        for batch in batches:
            end = start + len(batch)
            columns = {}
            if self.row_numbers is not None:
                columns["row"] = self.row_numbers[start:end]
            X = self._transformed(batch)
            if self.training is not None:
                rows = batch
                if isinstance(self.model, Pipeline):
                    rows = np.asarray(X)
                some = ReservoirSample.from_batch(SampleBatch(rows, start), MAX_SHIFT_ROWS)
                if self.seen is not None:
                    some = self.seen + some
                self.seen = some
            start = end
            yield columns | self._values_at(X, batch)

    def warn_of_shift(self, file: str) -> None:
        """Warn of rows that are distributed differently from the model's training rows."""
        if self.training is None or self.seen is None:
            return
        names = self.columns
        if names is None:
            names = numbered("column", self.training.shape[1], start=1)
        with warnings.catch_warnings(action="ignore"):
            shift = CovariateShift.from_rows(self.training, self.seen.rows, names)
        if shift is not None and shift.is_found:
            fitted = "the rows that the model was fitted to"
            sentence = shift.sentence(file, f"The rows of {file}", fitted)
            extrapolates = "Predictions and scores may be wrong."
            warnings.warn(f"{sentence} {extrapolates}", UserWarning, stacklevel=2)

    def warn_of_far_rows(self, file: str) -> None:
        """Warn of rows at which a regression extrapolates."""
        if self.n_far:
            far = far_text(self.n_far, self.n_rows, file)
            message = (
                f"{far}: predictions for such rows are extrapolations, and intervals may be too "
                "narrow."
            )
            warnings.warn(message, ExtrapolationWarning, stacklevel=2)

    def _transformed(self, rows: Array) -> Any:
        """Return rows with the names of the columns, as the last step of the model takes them."""
        X: Any = rows
        if self.columns is not None:
            X = pyarrow.table(dict(zip(self.columns, rows.T, strict=True)))
        if isinstance(self.model, Pipeline):
            return self.model[:-1].transform(X)
        return X

    def _values_at(self, X: Any, rows: Array) -> dict[str, Array]:
        """Return the values of the model at rows, by the names of the columns to write."""
        model = self.last
        if isinstance(model, ConditionalMean):
            return self._conditional_values(model, X)
        if isinstance(model, KernelMean | StackedMean):
            return {"score": model.score_samples(X)}
        if isinstance(model, KernelMeans):
            names = [f"score_{group}" for group in model.groups_]
            return dict(zip(names, model.score_samples(X).T, strict=True))
        if isinstance(model, KernelPCA):
            return _component_values(model, X)
        if isinstance(model, MatchedMixture):
            return {"log_density": model.score_samples(X), "component": model.predict(X)}
        if isinstance(model, TwoSampleResult):
            return {"witness": model.witness(rows)}
        if isinstance(model, Element):
            return {"value": model(rows)}
        needed = "a model that can be applied to new rows is needed, such as a fitted mean"
        raise MuhatError(self.who, needed, f"a {type(model).__name__}")

    def _conditional_values(self, model: ConditionalMean, X: Any) -> dict[str, Array]:
        """Return predictions, and the intervals and quantiles that are asked for."""
        found = {}
        is_far = model.is_far(X)
        self.n_rows += len(is_far)
        self.n_far += int(is_far.sum())
        if not self.quantiles or isinstance(model.kernel_y_, Linear):
            found["prediction"] = model.predict(X)
        if self.confidence:
            with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
                ends = model.predict_interval(X, self.confidence)
            found["lower"], found["upper"] = ends[..., 0], ends[..., 1]
        if self.quantiles:
            values = model.predict_quantiles(X, self.quantiles)
            for place, level in enumerate(self.quantiles):
                found[f"q{level:g}"] = values[..., place]
        columns = {}
        for name, values in found.items():
            if values.ndim == 1:
                columns[name] = values
                continue
            for output, column in enumerate(values.T):
                columns[f"{name}_{output}"] = column
        columns[FAR_TITLE] = is_far
        return columns


def _has_intervals(model: Any, confidence: float) -> bool:
    """Whether a model is a regression of numbers on enough rows for intervals."""
    if not isinstance(model, ConditionalMean) or not isinstance(model.kernel_y_, Linear):
        return False
    try:
        model._residual_quantiles.check_levels("", np.array([(1 - confidence) / 2]))
    except MuhatError:
        return False
    return True


def _component_values(model: KernelPCA, X: Any) -> dict[str, Array]:
    """Return the scores of rows, and how unusual they are."""
    columns = {}
    for k, scores in enumerate(np.asarray(model.transform(X)).T):
        columns[f"component_{k + 1}"] = scores
    columns["reconstruction_error"] = model.reconstruction_error(X)
    columns["novelty_p"] = model.novelty_p_values(X)
    return columns


def _write_csv(applied: _AppliedModel, batches: ProgressBatches, file: TextIO) -> None:
    """Write a line for each row, batch by batch, with all digits of each number."""
    writer = csv.writer(file, lineterminator="\n")
    is_first = True
    for columns in applied.values(batches):
        if is_first:
            writer.writerow(columns)
        writer.writerows(zip(*map(csv_values, columns.values()), strict=True))
        is_first = False


def _all_columns(applied: _AppliedModel, batches: ProgressBatches) -> dict[str, list[Any]]:
    """Return the columns of all rows as lists."""
    found: dict[str, list[Any]] = {}
    for columns in applied.values(batches):
        for name, values in columns.items():
            found.setdefault(name, []).extend(values.tolist())
    return found
