"""``muhat compare --save`` keeps the estimator that did best; ``muhat apply`` applies a saved model to new rows."""

from __future__ import annotations

import csv
import io
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import pyarrow
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from typer import Argument, Option, echo

from muhat._arrays import Array
from muhat._files import atomic_write, check_writable
from muhat.cli._command_line import in_own_words, standard_output
from muhat.cli._outputs import check_outputs
from muhat.cli._progress import ProgressBatches
from muhat.cli._reading import Decimal, Missing, Separator, open_like, row_numbers, show_notes
from muhat.comparison import Comparison
from muhat.conditional import ConditionalMean
from muhat.conditional._evaluation import ROWS_COMPARED, Drift
from muhat.conditional._intervals import checked_confidence
from muhat.data import DataSet, FileBatches, ReservoirSample, SampleBatch, open_batches
from muhat.density import MatchedMixture
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.kernels import Linear, Precomputed
from muhat.mean import KernelMean
from muhat.persistence import load
from muhat.stacking import StackedMean
from muhat.testing import TwoSampleResult

ENDINGS = (".csv", ".json")

MOST_TRAINING_ROWS = 5000
"""Rows of a model up to which new ones are compared with them."""


def names_of(sample: DataSet | FileBatches) -> tuple[str, ...]:
    """Return the names of its columns."""
    return sample.feature_names if isinstance(sample, DataSet) else sample.columns


def check_names(who: str, names: Sequence[str]) -> None:
    """Refuse a name that two columns have: columns are found by their names later."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise MuhatError(
            who, "every column must have a name of its own", f"{twice!r} twice", "rename one"
        )


def fitted_winner(
    comparison: Comparison, sample: DataSet | FileBatches, options: dict[str, Any]
) -> Any:
    """Return the estimator that did best in ``compare(sample, **options)``, fitted to the same rows.

    Where the rows were standardized, a pipeline does the same to new ones.
    """
    best, stacked = comparison.best, comparison.stacked
    mean: Any = KernelMean(
        kernel=comparison.kernel,
        filter=best.filter,
        selection=options.get("selection", "loo"),
        gram=options.get("gram", "auto"),
    )
    if stacked is not None and 100 * stacked.gain_ > max(
        best.improvement or 0.0, 100 * stacked.gain_error_
    ):
        mean = StackedMean(kernel=comparison.kernel)
    rows: Any = sample.data if isinstance(sample, DataSet) else sample
    scaler = StandardScaler(with_mean=comparison.kernel.translation_invariant)
    is_scaled = comparison.standardize
    if is_scaled:
        for batch in [rows] if isinstance(sample, DataSet) else rows:
            scaler.partial_fit(batch)
        rows = scaler.transform(rows) if isinstance(sample, DataSet) else _Scaled(sample, scaler)
    if isinstance(sample, DataSet):
        mean.fit(rows)
    else:
        mean.fit_batches(rows)
    (scaler if is_scaled else mean).feature_names_in_ = np.array(names_of(sample), dtype=object)
    return make_pipeline(scaler, mean) if is_scaled else mean


@dataclass
class _Scaled:
    """Batches as a scaler brings them to mean 0 and variance 1, in each pass over them."""

    batches: FileBatches
    scaler: StandardScaler

    def __iter__(self) -> Iterator[Array]:
        return map(self.scaler.transform, self.batches)


def apply_command(
    model: Annotated[
        Path, Argument(metavar="MODEL", show_default=False, help="A file of muhat.save or --save.")
    ],
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            show_default=False,
            help="New rows, in a file that muhat compare reads, or -.",
        ),
    ],
    out: Annotated[
        Path | None,
        Option(metavar="FILE", show_default="standard output", help="Where to: .csv or .json."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON instead of CSV.")] = False,
    confidence: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="LEVEL",
            show_default=False,
            help="Also intervals that hold so many y: 0.9.",
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        Option(
            metavar="Q,Q,...",
            show_default=False,
            help="Also quantiles of y, such as 0.05,0.5,0.95.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN",
            show_default=False,
            help="A column to leave out, where the model knows no names.",
        ),
    ] = None,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = ".",
) -> None:
    """Apply a kept model to new rows: its prediction or score of each."""
    if out is not None:
        if out.suffix.lower() not in ENDINGS:
            raise MuhatError(
                "--out",
                f"a file name ending in {' or '.join(ENDINGS)} is needed",
                repr(str(out)),
            )
        check_writable(out)
    check_outputs([model, file], out=out)
    asked = _Asked(load(model), str(model), confidence, _levels(quantiles))
    if confidence is not None:
        checked_confidence("--interval", confidence)
    reading: dict[str, Any] = {"missing": missing, "separator": separator, "decimal": decimal}
    if asked.columns is None:
        batches = open_batches(file, drop or (), **reading)
    else:
        batches = open_like(file, asked.columns, reading)
    if asked.columns is not None:
        check_names(
            batches.name,
            [name for name in (*batches.columns, *batches.left_out) if name in asked.columns],
        )
    asked.read_numbers(batches if missing == "drop" else None)
    is_json = as_json or (out is not None and out.suffix.lower() == ".json")
    write = _write_json if is_json else _write_csv
    words = {
        "ConditionalMean.predict_interval": "--interval",
        "ConditionalMean.predict_quantiles": "--quantiles",
    }
    shown = out is not None and sys.stderr.isatty()
    with in_own_words(words), ProgressBatches(batches, ["applying"], shown=shown) as rows:
        if out is None:
            with standard_output():
                write(asked, rows, sys.stdout)
            show_notes(batches)
            asked.warn_of_drift(str(file))
            return
        text = io.StringIO()
        write(asked, rows, text)
    show_notes(batches)
    asked.warn_of_drift(str(file))
    atomic_write(out, text.getvalue().encode())
    echo(f"Saved: {out}")


def _levels(quantiles: str | None) -> list[float]:
    try:
        return [] if quantiles is None else [float(each) for each in quantiles.split(",")]
    except ValueError:
        needed = "numbers between 0 and 1, between commas, are needed"
        raise MuhatError("--quantiles", needed, repr(quantiles)) from None


def _training_rows(model: Any) -> Array | None:
    """Return the rows that a model was fitted to, where it has them and they are not too many to be looked at."""
    rows: Array | None = None
    if isinstance(model, ConditionalMean):
        kept = getattr(model, "_rows", None)
        rows = None if kept is None else kept[0]
    elif isinstance(model, KernelMean | StackedMean):
        element = getattr(model.embedding_, "atoms", model.embedding_)
        rows = element.points[: model.n_samples_seen_] if isinstance(element, Embedding) else None
        rows = rows if rows is not None and len(rows) == model.n_samples_seen_ else None
    if rows is None or len(rows) > MOST_TRAINING_ROWS or isinstance(model.kernel_, Precomputed):
        return None
    return np.asarray(rows, np.float64)


class _Asked:
    """A model, and what is asked of it for each row."""

    def __init__(
        self, model: Any, who: str, confidence: float | None, quantiles: list[float]
    ) -> None:
        self.model, self.who = model, who
        self.last = model[-1] if isinstance(model, Pipeline) else model
        self.confidence, self.quantiles = confidence, quantiles
        self.rows: Array | None = None
        self.training = _training_rows(self.last)
        self.seen: ReservoirSample | None = None
        names = getattr(model, "feature_names_in_", None)
        self.columns = None if names is None else list(names)
        if (quantiles or confidence is not None) and not isinstance(self.last, ConditionalMean):
            needed = "a model of y given x is needed for intervals and quantiles"
            raise MuhatError(who, needed, f"a {type(self.last).__name__}")

    def read_numbers(self, batches: FileBatches | None) -> None:
        """Learn the numbers of the rows in their file by a pass over it, where some may be dropped."""
        if batches is not None:
            for _ in batches:
                pass
            self.rows = row_numbers(batches) + 1

    def numbered(self, batches: ProgressBatches) -> Iterator[dict[str, Array]]:
        """Yield what the model says of each batch, after a column of the rows' numbers where some may be dropped."""
        start = 0
        for batch in batches:
            numbers = {} if self.rows is None else {"row": self.rows[start : start + len(batch)]}
            if self.training is not None:
                some = ReservoirSample.from_batch(
                    SampleBatch(self._transformed(batch), start), ROWS_COMPARED
                )
                self.seen = some if self.seen is None else self.seen + some
            start += len(batch)
            yield numbers | self.answers(batch)

    def warn_of_drift(self, file: str) -> None:
        """Warn of rows that are distributed differently from those that the model was fitted to, if it has them."""
        if self.training is None or self.seen is None:
            return
        names = self.columns or [
            f"column {place}" for place in range(1, self.training.shape[1] + 1)
        ]
        with warnings.catch_warnings(action="ignore"):
            drift = Drift.from_rows(self.training, self.seen.rows, names)
        if drift is not None and drift.is_found:
            sentence = drift.sentence("the rows that the model was fitted to", file)
            warnings.warn(
                f"{sentence} What it says there is extrapolation.", UserWarning, stacklevel=2
            )

    def _transformed(self, rows: Array) -> Array:
        """Return rows in the units of the model's training rows."""
        if not isinstance(self.model, Pipeline):
            return rows
        X = (
            rows
            if self.columns is None
            else pyarrow.table(dict(zip(self.columns, rows.T, strict=True)))
        )
        return np.asarray(self.model[:-1].transform(X))

    def answers(self, rows: Array) -> dict[str, Array]:
        """Return what the model says of rows, by the names of the columns to write."""
        X = (
            rows
            if self.columns is None
            else pyarrow.table(dict(zip(self.columns, rows.T, strict=True)))
        )
        if isinstance(self.model, Pipeline):
            X = self.model[:-1].transform(X)
        model = self.last
        if isinstance(model, ConditionalMean):
            return self._of_conditional(model, X)
        if isinstance(model, KernelMean | StackedMean):
            return {"score": model.score_samples(X)}
        if isinstance(model, MatchedMixture):
            return {"log_density": model.score_samples(X), "component": model.predict(X)}
        if isinstance(model, TwoSampleResult):
            return {"witness": model.witness(rows)}
        if isinstance(model, Element):
            return {"value": model(rows)}
        needed = "a model that says something of new rows is needed, such as a fitted mean"
        raise MuhatError(self.who, needed, f"a {type(model).__name__}")

    def _of_conditional(self, model: ConditionalMean, X: Any) -> dict[str, Array]:
        """Return predictions, and the intervals and quantiles that are asked for, for each output."""
        found = (
            {"prediction": model.predict(X)}
            if not self.quantiles or isinstance(model.kernel_y_, Linear)
            else {}
        )
        if self.confidence is not None:
            ends = model.predict_interval(X, self.confidence)
            found |= {"lower": ends[..., 0], "upper": ends[..., 1]}
        if self.quantiles:
            values = model.predict_quantiles(X, self.quantiles)
            found |= {
                f"q{level:g}": values[..., place] for place, level in enumerate(self.quantiles)
            }
        return {
            name if values.ndim == 1 else f"{name}_{output}": column
            for name, values in found.items()
            for output, column in enumerate(values.reshape(len(values), -1).T)
        }


def _write_csv(asked: _Asked, batches: ProgressBatches, file: TextIO) -> None:
    """Write a line for each row, batch by batch, with as many digits as give the same number again."""
    writer, is_first = csv.writer(file, lineterminator="\n"), True
    for answers in asked.numbered(batches):
        if is_first:
            writer.writerow(answers)
        writer.writerows(zip(*(column.tolist() for column in answers.values()), strict=True))
        is_first = False


def _write_json(asked: _Asked, batches: ProgressBatches, file: TextIO) -> None:
    """Write an object of columns."""
    columns: dict[str, list[Any]] = {}
    for answers in asked.numbered(batches):
        for name, values in answers.items():
            columns.setdefault(name, []).extend(values.tolist())
    json.dump({"model": type(asked.last).__name__, **columns}, file, allow_nan=False)
    file.write("\n")
