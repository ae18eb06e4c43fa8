"""``muhat predict``: what y is and how sure, for new rows or for each row from all others; a verdict and a table."""

from __future__ import annotations

import csv
import io
import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Option, echo

from muhat._arrays import Array
from muhat._files import atomic_write, check_writable
from muhat._messages import rows_text, setting_text, unknown_name
from muhat._summary import BAD, GOOD, UNSURE
from muhat._text import count
from muhat._validation import positive
from muhat.cli._apply import check_names
from muhat.cli._command_line import in_own_words, standard_output
from muhat.cli._compare import check_figure
from muhat.cli._outputs import check_model_file, check_outputs
from muhat.cli._reading import (
    Decimal,
    Missing,
    OneHot,
    Separator,
    open_like,
    read_with_target,
    readings_of,
    row_numbers,
    sample_names,
    show_notes,
)
from muhat.cli._report import ReportFile, check_report, noted_warnings, predict_lines
from muhat.conditional import ConditionalMean
from muhat.conditional._evaluation import (
    Drift,
    Evaluation,
    LeftOutFit,
    copies_text,
    effects,
    r2_text,
)
from muhat.conditional._intervals import INTERVALS, checked_confidence
from muhat.data import DataSet
from muhat.data._copies import row_hashes
from muhat.errors import MuhatError
from muhat.filters import name_of
from muhat.persistence import save as save_model
from muhat.plots import LeftOutDisplay, QuantileDisplay, save
from muhat.report import Bar, Bars, Cell, Context, Fact, Report, Section, render, report_of
from muhat.report import Table as PageTable
from muhat.report import number as as_text
from muhat.report._conditional import new_rows_plot
from muhat.testing._results import short

LISTED = 10
"""The most rows or features in a table."""

POINTS = 100
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Where along a feature quantiles are drawn, and which."""

DRAWN, NEW_COLOUR = 200, "#D55E00"
"""The most new rows that are drawn with their intervals, and their colour."""

ON_PAGE = 1000
"""The most predictions on a page."""

OWN = "leave-one-out residuals"
"""How intervals of training rows are made: around each left-out prediction, by the residuals of these same rows."""

EFFECT = "effect on prediction (SD along this feature, others at median)"
"""What the table of features shows."""


def predict_command(
    file: Annotated[Path, Argument(metavar="FILE", show_default=False, help="Rows to learn from.")],
    new: Annotated[
        Path | None,
        Argument(
            metavar="[NEW]",
            show_default=False,
            help="Rows to predict; without, each row of FILE from all others.",
        ),
    ] = None,
    target: Annotated[
        str, Option(metavar="COLUMN", show_default=False, help="The column to predict.")
    ] = "",
    confidence: Annotated[
        float, Option(metavar="SHARE", help="What share of y the intervals are to hold.")
    ] = 0.9,
    intervals: Annotated[
        str, Option(metavar="NAME", help=f"How those of NEW are made: {', '.join(INTERVALS)}.")
    ] = "residuals",
    bandwidth: Annotated[
        str,
        Option(
            metavar="NUMBER|median|loo",
            help="A number, 'median', or 'loo' to choose it by leave-one-out.",
        ),
    ] = "median",
    standardize: Annotated[
        bool,
        Option(
            "--standardize/--no-standardize",
            help="Bring features to mean 0 and variance 1, or not.",
        ),
    ] = True,
    drop: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", show_default=False, help="A column to leave out, repeatable."),
    ] = None,
    only_numeric: Annotated[
        bool, Option("--only-numeric", help="Leave out columns that are not numbers.")
    ] = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Annotated[
        Path | None,
        Option(metavar="FILE", show_default=False, help="A figure to draw: .png, .svg or .pdf."),
    ] = None,
    save_predictions: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            show_default=False,
            help="A .csv file for all predictions and intervals.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        Option(
            "--save", metavar="FILE", show_default=False, help="Keep the model, for muhat apply."
        ),
    ] = None,
    report: ReportFile = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Predict a column from all others: a table with intervals, how well it does, and a figure."""
    checked_confidence("--confidence", confidence)
    _check(target, intervals, out, save_predictions)
    check_model_file(keep)
    check_report(report)
    check_outputs([file, new], out=out, report=report, save=keep, save_predictions=save_predictions)
    reading = {"drop": tuple(drop or ()), "only_numeric": only_numeric, "separator": separator}
    reading |= {"one_hot": one_hot, "missing": missing, "decimal": decimal}
    with noted_warnings() as warned:
        files = [file] if new is None else [file, new]
        readings, names = readings_of(files, reading), sample_names(files)
        sample = _Sample.from_file(file, names[0], target, readings[0])
        later = (
            None
            if new is None
            else _Sample.from_file(new, names[1], target, readings[1], like=sample)
        )
    model = ConditionalMean(bandwidth=_bandwidth(bandwidth), standardize=standardize)
    words = {"ConditionalMean.predict_interval": "--confidence", "ConditionalMean": str(file)}
    words |= {"give more rows, or the parameter, as in selection=Fixed(0.1)": "give more rows"}
    with in_own_words(words | {"selection by LeaveOneOut needs": "choosing a model needs"}):
        model.fit(sample.X, sample.y)
        result = _Result.from_model(model, sample, confidence)
        if later is not None:
            result = result.on_new(later, intervals)
    if out is not None:
        save(result.figure(), out)
    if save_predictions is not None:
        atomic_write(save_predictions, result.as_csv().encode())
    if report is not None:
        data = tuple(each.as_data_set() for each in (sample, later) if each is not None)
        lines = predict_lines(file, target, readings[0], model)
        settings = {
            "y": target,
            "confidence": confidence,
            "intervals": result.intervals,
            "standardize": standardize,
        }
        context = Context(data, lines, settings, warned, sections=result.sections())
        page = report_of(model, context)
        atomic_write(report, render(page if later is None else result.on_page(page)).encode())
    if keep is not None:
        model.feature_names_in_ = np.array(sample.names, dtype=object)
        save_model(model, keep)
    with standard_output():
        if as_json:
            figure = None if out is None else str(out)
            echo(json.dumps({**result.to_dict(), "figure": figure}, allow_nan=False))
        else:
            result.print()
            written = {
                "Figure": out,
                "Predictions": save_predictions,
                "Report": report,
                "Saved": keep,
            }
            for name, path in written.items():
                if path is not None:
                    echo(f"{name}: {path}")


def _bandwidth(text: str) -> float | str:
    """Return a bandwidth as ConditionalMean takes it, or refuse it."""
    if text in ("median", "loo"):
        return text
    try:
        return positive("--bandwidth", "it", float(text), ", 'median' or 'loo'")
    except ValueError:
        needed = "a positive number, 'median' or 'loo' is needed"
        raise MuhatError("--bandwidth", needed, repr(text)) from None


def _check(target: str, intervals: str, out: Path | None, *files: Path | None) -> None:
    """Refuse, before the work, what is missing and places where a file cannot go."""
    if not target:
        raise MuhatError(
            "--target", "the column to predict is needed", "none", "name it by --target"
        )
    if intervals not in INTERVALS:
        raise MuhatError(unknown_name("--intervals", intervals, INTERVALS))
    if out is not None:
        check_figure(out)
    for path in files:
        if path is not None:
            check_writable(path)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows of a file: features, their names, and the target, if the file has it."""

    name: str
    X: Array
    y: Array
    """NaN where the file does not have it."""
    names: tuple[str, ...]
    target: str
    rows: Array
    """The numbers of the rows in the file, from 1 after the header."""
    left_out: tuple[str, ...] = ()

    @classmethod
    def from_file(
        cls,
        file: Path,
        name: str,
        target: str,
        reading: dict[str, Any],
        like: _Sample | None = None,
    ) -> _Sample:
        """Read a file, called by a name; that a target looks like a label is no reason to warn."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if like is None:
                table, numbers = read_with_target(file, target, reading)
            else:
                batches = open_like(
                    file, like.names, reading, optional=[target], whose=f"{like.name} has"
                )
                table, numbers = batches.read(), row_numbers(batches)
        for each in caught:
            if repr(target) not in str(each.message):
                warnings.warn(each.message, each.category, stacklevel=2)
        show_notes(table)
        check_names(name, table.feature_names)
        wanted = (
            like.names if like else tuple(name for name in table.feature_names if name != target)
        )
        columns = [table.feature_names.index(name) for name in wanted]
        has_target = target in table.feature_names
        y = (
            table.data[:, table.feature_names.index(target)]
            if has_target
            else np.full(len(table.data), np.nan)
        )
        return cls(name, table.data[:, columns], y, wanted, target, numbers + 1, table.left_out)

    def is_part_of(self, train: _Sample) -> bool:
        """Whether all rows, with their targets, are among those of another sample, of which few are equal."""
        mine, its = (row_hashes(np.column_stack([each.X, each.y])) for each in (self, train))
        return (
            not np.isnan(self.y).any()
            and len(np.unique(its)) > 0.9 * len(its)
            and bool(np.isin(mine, its).all())
        )

    def as_data_set(self) -> DataSet:
        """Return the features by themselves."""
        return DataSet(self.name, self.X, self.names, left_out=self.left_out)


@dataclass(frozen=True, eq=False)
class _Result:
    """What a model says of its own rows, each from all others, or of new ones."""

    model: ConditionalMean
    sample: _Sample
    confidence: float
    intervals: str
    importance: Array
    """The standard deviation of predictions along each feature, the others at their medians."""
    shown: str
    predicted: Array
    ends: Array
    true: Array | None
    rows: Array
    """The numbers of the rows that are shown in their file, from 1."""
    evaluation: Evaluation | None = None
    """How new rows are predicted beside left-out ones, where their true values are known."""
    drift: Drift | None = None
    has_training_rows: bool = False
    """Whether new rows, with the truth of each, are rows that the model was fitted to."""
    new: _Sample | None = None
    """The new rows, if these are shown."""

    @classmethod
    def from_model(cls, model: ConditionalMean, sample: _Sample, confidence: float) -> _Result:
        """Return the left-out predictions of the rows that a model was fitted to."""
        around = model.predict_interval(sample.X, confidence) - model.predict(sample.X)[:, None]
        predicted = model.loo_predictions_
        ends = predicted[:, None] + around
        shown = f"{sample.name}, each row from all others"
        found = effects(model, sample.X), shown, predicted, ends, sample.y, sample.rows
        return cls(model, sample, confidence, OWN, *found)

    def on_new(self, new: _Sample, intervals: str) -> _Result:
        """Return what the same model says of new rows."""
        ends, predicted = (
            self.model.predict_interval(new.X, self.confidence, intervals),
            self.model.predict(new.X),
        )
        true = None if np.isnan(new.y).any() else new.y
        evaluation = None
        if true is not None:
            left_out = self.model.loo_residuals_, self.model.loo_score_
            evaluation = Evaluation.from_predictions(
                true, predicted, ends, *left_out, self.confidence
            )
        drift = Drift.from_rows(self.sample.X, new.X, self.sample.names)
        shown = replace(
            self, shown=new.name, predicted=predicted, ends=ends, true=true, rows=new.rows, new=new
        )
        return replace(
            shown,
            intervals=intervals,
            evaluation=evaluation,
            drift=drift,
            has_training_rows=new.is_part_of(self.sample),
        )

    def verdict(self) -> str:
        """Return one or two sentences: how well the rows shown are predicted, and what speaks against it."""
        sentences = []
        if self.evaluation is not None:
            sentences.append(self.evaluation.sentence(self.shown))
        else:
            fit = LeftOutFit.from_model(self.model)
            known = fit.sentence(self.sample.target, self.sample.names)
            if self.new is not None:
                rows = f"Predictions for {count(len(self.predicted), 'row')} of {self.shown}"
                r2 = f"R² {r2_text(fit.r2)} on left-out training rows"
                known = f"{rows}; {r2}." if fit.helps else f"{rows}. {known}"
            sentences.append(known)
        if self.model.n_copies_:
            sentences.append(copies_text(self.model.n_copies_, len(self.sample.X)))
        if self.has_training_rows:
            what = (
                "is the training rows themselves"
                if len(self.predicted) == len(self.sample.X)
                else "has training rows only"
            )
            sentences.append(
                f"But {self.shown} {what}: this does not show how new rows are predicted."
            )
        if self.drift is not None and self.drift.is_found:
            sentences.append(self.drift.sentence(self.sample.name, self.shown))
            if self.evaluation is None:
                sentences.append("Predictions there are extrapolation.")
        return " ".join(sentences)

    @property
    def details(self) -> str:
        """The filter and its parameter, and the kernel."""
        model = self.model
        symbol = model.filter_.symbol
        how = f"{name_of(model.filter_)} filter, {setting_text(symbol, model.choice_.parameter)}"
        return f"{how[0].upper()}{how[1:]}, {short(model.kernel_)}"

    def on_page(self, page: Report) -> Report:
        """Return the page of the model with the verdict on new rows, their numbers and their figure."""
        badge, tone = self.badge(page)
        facts = list(page.facts)
        rows = count(len(self.predicted), "row")
        if self.evaluation is not None and self.evaluation.r2 is not None:
            facts.insert(
                1,
                Fact(
                    f"R² on {self.shown}",
                    as_text(self.evaluation.r2),
                    f"{rows}, none of them fitted",
                ),
            )
        else:
            facts.insert(1, Fact("new rows", f"{len(self.predicted):,}", self.shown))
        sections = list(page.sections)
        if self.true is not None:
            plot = new_rows_plot(self.sample.target, self.shown, self.true, self.predicted)
            sections.insert(0, Section("New rows", (), (), [plot]))
        return replace(
            page, verdict=self.verdict(), badge=badge, tone=tone, facts=facts, sections=sections
        )

    def badge(self, page: Report) -> tuple[str, str]:
        """Return the verdict on new rows in a few words, and its kind; that of the model where no more is known."""
        if self.has_training_rows:
            return "No new rows: these are training rows", UNSURE
        has_drift = self.drift is not None and self.drift.is_found
        if self.evaluation is None:
            return (
                ("New rows are distributed differently", UNSURE)
                if has_drift
                else (page.badge, page.tone)
            )
        match self.evaluation.standing:
            case "far worse":
                return "Far worse on new rows", BAD
            case "worse":
                return "Worse on new rows", UNSURE
        if has_drift:
            return "As good on new rows, which are distributed differently", UNSURE
        return "As good on new rows", GOOD

    def figure(self) -> Any:
        """Return predictions of left-out rows, of new rows if any, and quantiles along the feature with most effect."""
        from matplotlib.figure import Figure

        panels = 2 if self.new is None else 3
        figure = Figure(figsize=(6.25 * panels, 4.2), layout="constrained")
        left, *between, right = figure.subplots(1, panels)
        LeftOutDisplay.from_estimator(self.model).plot(left)
        left.set_ylabel(f"observed {self.sample.target}")
        X, column = self.sample.X, int(np.argmax(self.importance))
        for axes in between:
            self._draw_new(axes, column)
        points = np.tile(np.median(X, axis=0), (POINTS, 1))
        points[:, column] = np.linspace(X[:, column].min(), X[:, column].max(), POINTS)
        quantiles = self.model.predict_quantiles(points, LEVELS)
        name = f"{self.sample.names[column]}, other features at their medians"
        QuantileDisplay(
            points[:, column], LEVELS, quantiles, X[:, column], self.sample.y, name
        ).plot(right)
        right.set_ylabel(self.sample.target)
        return figure

    def _draw_new(self, axes: Any, column: int) -> None:
        """Draw new rows: predicted against true values, or, where these are not known, the intervals."""
        assert self.new is not None
        if self.true is not None:
            r2 = None if self.evaluation is None else self.evaluation.r2
            LeftOutDisplay(self.predicted, self.true, np.nan if r2 is None else r2).plot(axes)
            axes.set_xlabel(f"predicted for {self.shown}")
            axes.set_ylabel(f"observed {self.sample.target}")
            score = "" if r2 is None else f", R² {r2_text(r2)}"
            axes.set_title(f"{self.shown}: {count(len(self.true), 'row')}{score}", loc="left")
            return
        some = np.random.default_rng(0).permutation(len(self.predicted))[:DRAWN]
        places = self.new.X[some, column]
        axes.vlines(places, *self.ends[some].T, color=NEW_COLOUR, linewidth=0.8, alpha=0.6)
        axes.scatter(places, self.predicted[some], s=12, color=NEW_COLOUR)
        axes.set_xlabel(self.sample.names[column])
        axes.set_ylabel(f"predicted {self.sample.target}")
        drawn = f"{len(some):,} of " * (len(some) < len(self.predicted))
        axes.set_title(
            f"{self.shown}: {drawn}{count(len(self.predicted), 'row')}, {100 * self.confidence:g} % intervals",
            loc="left",
        )
        axes.spines[["top", "right"]].set_visible(False)

    def coverage(self) -> float | None:
        """Return the share of true values inside, where they are known and the intervals are not made from them."""
        return None if self.evaluation is None else self.evaluation.coverage

    def share_explained(self) -> float | None:
        """Return R² on the rows shown, where their true values are known and vary."""
        return (
            self.model.loo_score_ if self.intervals == OWN else getattr(self.evaluation, "r2", None)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON can hold it."""
        model = self.model
        rows = [
            {"row": number, "prediction": predicted, "lower": lower, "upper": upper}
            for number, predicted, (lower, upper) in zip(
                self.rows.tolist(), self.predicted.tolist(), self.ends.tolist(), strict=True
            )
        ]
        return {
            "data": self.sample.name,
            "target": self.sample.target,
            "n": len(self.sample.X),
            "n_copies": model.n_copies_,
            "filter": repr(model.filter_),
            "parameter": model.choice_.parameter,
            "kernel": repr(model.kernel_),
            "loo_r2": model.loo_score_,
            "loo_rmse": float(np.sqrt(np.mean(model.loo_residuals_**2))),
            "importance": dict(zip(self.sample.names, self.importance.tolist(), strict=True)),
            "confidence": self.confidence,
            "intervals": self.intervals,
            "shown": self.shown,
            "r2": self.share_explained(),
            "coverage": self.coverage(),
            "rmse": None if self.evaluation is None else self.evaluation.rmse,
            "drift_p_value": None if self.drift is None else self.drift.p_value,
            "drift_columns": [] if self.drift is None else list(self.drift.columns),
            "verdict": self.verdict(),
            "details": self.details,
            "predictions": rows,
        }

    def as_csv(self) -> str:
        """Return all predictions with their intervals, and the true values where they are known."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        names = ["row", "prediction", "lower", "upper"]
        writer.writerow(names if self.true is None else [*names, self.sample.target])
        for number, predicted in enumerate(self.predicted.tolist()):
            cells = [int(self.rows[number]), predicted, *self.ends[number].tolist()]
            writer.writerow(cells if self.true is None else [*cells, float(self.true[number])])
        return text.getvalue()

    def sections(self) -> list[Section]:
        """Return what a page shows beside the model: the predictions, and what they follow."""
        titles = ["row", "predicted", "lower", "upper", *([] if self.true is None else ["true"])]
        columns = [self.predicted, *self.ends.T, *([] if self.true is None else [self.true])]
        rows = [
            [Cell(str(row), row), *(Cell(as_text(value, 5), float(value)) for value in values)]
            for row, values in zip(self.rows.tolist(), zip(*columns, strict=True), strict=True)
        ]
        more = f"The first {ON_PAGE:,} of {len(rows):,} rows." if len(rows) > ON_PAGE else ""
        coverage = self.coverage()
        held = "" if coverage is None else f" {100 * coverage:.1f} % of the true values are inside."
        made = f"by {_how(self.intervals)}" + " of these same rows" * (self.intervals == OWN)
        said = f"The intervals are made to hold {100 * self.confidence:g} % of all values, {made}.{held} "
        said += "Rows are counted from 1."
        table = PageTable(f"Predictions of {self.shown}", titles, rows[:ON_PAGE], note=more)
        order = np.argsort(-self.importance, kind="stable")[:LISTED]
        largest = float(self.importance[order[0]]) or 1.0
        bars = [
            Bar(
                self.sample.names[place],
                float(self.importance[place]) / largest,
                as_text(self.importance[place]),
            )
            for place in order
        ]
        caption = "The standard deviation of the prediction along each feature, all others at their medians."
        looked = Bars(
            "What the prediction follows",
            caption,
            ("feature", f"in units of {self.sample.target}"),
            bars,
        )
        return [Section("Predictions", [said], (), [table]), Section("Features", (), (), [looked])]

    def print(self) -> None:
        """Print how well the model does, what it looks at, and the first predictions."""
        console = Console(highlight=False, markup=False, emoji=False)
        sample = self.sample

        def say(sentence: str) -> None:
            console.print(sentence, soft_wrap=not console.is_terminal)

        features = f"{len(sample.names)} feature{'s' * (len(sample.names) != 1)}"
        say(f"{sample.name}: {rows_text(len(sample.X))}, {features}, predicting {sample.target!r}")
        say(self.verdict())
        say(f"{self.details}.")
        looked = Table(box=SIMPLE_HEAD, pad_edge=False)
        looked.add_column("feature", no_wrap=True)
        looked.add_column(EFFECT, justify="right")
        for place in np.argsort(-self.importance)[:LISTED]:
            looked.add_row(sample.names[place], f"{self.importance[place]:.4g}")
        console.print(looked)
        say(
            f"{self.shown}, {100 * self.confidence:g} % intervals by {_how(self.intervals)}; rows counted from 1:"
        )
        console.print(self._table())

    def _table(self) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for title in (
            "row",
            "predicted",
            "lower",
            "upper",
            *(["true"] if self.true is not None else []),
        ):
            table.add_column(title, justify="right")
        for number in range(min(LISTED, len(self.predicted))):
            values = [
                self.predicted[number],
                *self.ends[number],
                *([] if self.true is None else [self.true[number]]),
            ]
            table.add_row(str(self.rows[number]), *(f"{value:.5g}" for value in values))
        if len(self.predicted) > LISTED:
            table.caption = f"… and {len(self.predicted) - LISTED:,} more"
        return table


def _how(intervals: str) -> str:
    """Return in words how intervals were made."""
    return OWN if intervals == "residuals" else intervals
