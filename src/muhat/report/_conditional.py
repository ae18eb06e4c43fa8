"""The page of a conditional mean: left-out predictions, every filter, and how y spreads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.pipeline import Pipeline

from muhat._arrays import Array
from muhat._python_lines import model_lines
from muhat._summary import GOOD, NEUTRAL, UNSURE
from muhat._text import all_shortened, count, number, numbered, shortened
from muhat.conditional import ConditionalMean, LeftOutFit, copies_text, listed_columns
from muhat.errors import MuhatTypeError
from muhat.figures import (
    Plot,
    bandwidths_plot,
    errors_plot,
    fan_plot,
    filter_scores_plot,
    predictions_plot,
)
from muhat.figures._conditional import choice_setting
from muhat.filters import name_of
from muhat.kernels import Linear
from muhat.report._data import Context, ReportSample, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.selection import Choice

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of the fan."""

MAX_FAN_ROWS = 200
"""Rows of the fan, drawn at random."""

MAX_OUTPUTS = 4
"""Outputs that have figures."""


def pipeline_report(pipeline: Pipeline, context: Context) -> Report:
    """Return the page of a pipeline that ends in a conditional mean, in the units of its input."""
    if not isinstance(pipeline[-1], ConditionalMean):
        needed = "a pipeline that ends in a ConditionalMean is needed"
        raise MuhatTypeError("report_of", needed, type(pipeline[-1]).__name__)
    return conditional_report(pipeline[-1], context, pipeline[:-1].transform)


def conditional_report(
    model: ConditionalMean, context: Context, transform: Callable[[Array], Array] = np.asarray
) -> Report:
    """Return the page of a fitted conditional mean; the data are rows of x to predict at."""
    samples = context.samples("x", "new rows")
    name = str(context.settings.get("y", "y"))
    outputs = _Outputs.from_model(model, name)
    badge, tone = _badge(model, outputs)
    columns = _listed_columns(model, samples)
    sections = []
    if outputs:
        plots = []
        for each in outputs:
            plots += each.plots()
        sections.append(Section("Rows left out", (), (), plots))
    fans = _fans(model, samples, name, transform)
    if fans:
        sections.append(Section("How y spreads", (), (), fans))
    sections += [*context.sections, _filters_section(model)]
    bandwidth = "that of the kernel"
    if model.bandwidths_ is not None:
        bandwidth = "chosen by leave-one-out"
    settings = {
        "kernel on x": repr(model.kernel_),
        "kernel on y": repr(model.kernel_y_),
        "bandwidth": bandwidth,
        **context.settings,
    }
    sentences = []
    if not samples:
        sentences.append(f"Fitted to {count(model.n_features_in_, 'column')}.")
    return Report(
        kind="Prediction",
        question=f"How well can {shortened(name, 60)} be predicted from {columns}, and how sure?",
        verdict=_verdict(model, outputs, name, samples),
        badge=badge,
        tone=tone,
        facts=_facts(model, outputs),
        sections=sections,
        data=data_section(context, samples, sentences),
        assumptions=_assumptions(model, outputs),
        code=context.code or model_lines(model),
        provenance=Context(settings=settings).provenance(),
    )


class _Outputs:
    """One output: its values, and what is predicted for each row without it."""

    def __init__(self, name: str, truth: Array, predicted: Array, n_copies: int = 0) -> None:
        good = np.isfinite(predicted)  # rows of mass zero have no prediction
        self.name = name
        self.truth = truth[good]
        self.predicted = predicted[good]
        n = len(self.truth)
        plain = (self.truth - self.truth.mean()) * n / max(n - 1, 1)
        self.errors = self.truth - self.predicted
        self.gains = plain**2 - self.errors**2
        self.share = 0.0
        if plain.any():
            self.share = float(self.gains.sum() / (plain**2).sum())
        fit = LeftOutFit.from_predictions(truth, predicted, self.share, n_copies)
        self.error = fit.standard_error
        self.helps = fit.helps

    @classmethod
    def from_model(cls, model: ConditionalMean, name: str) -> list[_Outputs]:
        """Return all outputs; none for a kernel on y that has no mean of y."""
        if not isinstance(model.kernel_y_, Linear):
            return []
        predicted = np.asarray(model.loo_predictions_)
        truth = predicted + np.asarray(model.loo_residuals_)
        # models that were saved by earlier versions do not know their copies
        n_copies = getattr(model, "n_copies_", None) or 0
        if predicted.ndim == 1:
            return [cls(name, truth, predicted, n_copies)]
        outputs = []
        names = numbered(name, min(predicted.shape[1], MAX_OUTPUTS))
        for each, own_truth, own_predicted in zip(names, truth.T, predicted.T, strict=False):
            outputs.append(cls(each, own_truth, own_predicted, n_copies))
        return outputs

    def plots(self) -> list[Plot]:
        """Return the predictions against the truth, and the histogram of errors."""
        scatter = predictions_plot(self.name, self.truth, self.predicted)
        return [scatter, errors_plot(self.name, self.errors)]


def _badge(model: ConditionalMean, outputs: Sequence[_Outputs]) -> tuple[str, str]:
    if (outputs and outputs[0].share <= 0) or model.loo_score_ <= 0:
        return "x does not help to predict y", NEUTRAL
    if outputs and not outputs[0].helps:
        return "Not clear whether x helps", UNSURE
    return "x helps to predict y", GOOD


def _verdict(
    model: ConditionalMean, outputs: Sequence[_Outputs], name: str, samples: Sequence[ReportSample]
) -> str:
    if len(outputs) == 1:
        names = _column_names(model, samples) or ["x"]
        return LeftOutFit.from_model(model).sentence(shortened(name, 60), names)
    share = f"{number(100 * max(0.0, model.loo_score_))} %"
    found = f"On left-out rows, x explains {share} of the variance of {shortened(name, 60)}"
    found += f" (R² = {number(model.loo_score_)})"
    if not outputs:
        return f"{found}, measured in the RKHS of the kernel on y."
    middle = number(float(np.median(np.abs(outputs[0].errors))))
    return f"{found}. Half of the predictions are off by less than {middle}."


def _facts(model: ConditionalMean, outputs: Sequence[_Outputs]) -> list[Fact]:
    facts = [
        Fact(
            "R² on left-out rows",
            number(model.loo_score_),
            "1: perfect, 0: no better than the mean",
        )
    ]
    if outputs:
        first = outputs[0]
        facts[0] = Fact(
            facts[0].label,
            f"{number(model.loo_score_)} ± {number(first.error, 2)}",
            "± one standard error",
        )
        facts.append(
            Fact(
                "median absolute error",
                number(float(np.median(np.abs(first.errors)))),
                f"in units of {first.name}",
            )
        )
        facts.append(
            Fact("rows", f"{len(first.truth):,}", f"of {count(model.n_features_in_, 'column')}")
        )
    facts.append(Fact("filter", name_of(model.filter_), choice_setting(model.choice_)))
    return facts


def _fans(
    model: ConditionalMean,
    samples: Sequence[ReportSample],
    name: str,
    transform: Callable[[Array], Array],
) -> list[Plot]:
    """Return the quantiles of y at the rows given last, in the order of their medians."""
    if not samples or samples[-1].rows.shape[1] != model.n_features_in_:
        return []
    rows = samples[-1].rows
    some = np.random.default_rng(0).permutation(len(rows))[:MAX_FAN_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an array has no names of columns
        try:
            quantiles = np.asarray(model.predict_quantiles(transform(rows[some]), LEVELS))
        except (
            ValueError
        ):  # too few rows, or a fit that holds neither left-out residuals nor weights
            return []
    n_outputs = 1
    if quantiles.ndim == 3:
        n_outputs = quantiles.shape[1]
    quantiles = quantiles.reshape(len(quantiles), n_outputs, -1)
    names = [name]
    if n_outputs > 1:
        names = numbered(name, n_outputs)
    plots = []
    for place, each in enumerate(names[:MAX_OUTPUTS]):
        plots.append(fan_plot(each, quantiles[:, place], some))
    return plots


def _filters_section(model: ConditionalMean) -> Section:
    """Return every filter with its best parameter, and its scores along its grid."""
    choices: list[Choice] = []
    rows: list[list[Cell]] = []
    has_curves, best = False, 0
    for choice in model.choices_:
        if not np.isfinite(choice.scores).any():
            continue
        if choice is model.choice_:
            best = len(rows)
        has_curves |= len(choice.grid) > 1
        name, setting = Cell(name_of(choice.filter)), Cell(choice_setting(choice))
        choices.append(choice)
        rows.append([name, setting, Cell(number(choice.score, 5), choice.score)])
    if not rows:
        return Section(
            "The filter",
            [
                f"{name_of(model.filter_)} with {choice_setting(model.choice_)}, as given by the "
                "user."
            ],
        )
    titles = ["filter", "parameter", "mean squared error of left-out rows"]
    blocks: list[Table | Plot] = [
        Table("Filters, each at its best parameter", titles, rows, marked=best)
    ]
    if has_curves:
        blocks.append(filter_scores_plot(choices, model.choice_))
    if model.bandwidths_ is not None and model.bandwidth_scores_ is not None:
        blocks.append(bandwidths_plot(model.bandwidths_, model.bandwidth_scores_))
    return Section("Every filter", (), (), blocks)


def _assumptions(model: ConditionalMean, outputs: Sequence[_Outputs]) -> list[str]:
    lines = []
    n_copies = getattr(model, "n_copies_", None)
    if n_copies and outputs and len(outputs[0].truth):
        lines.append(copies_text(n_copies, len(outputs[0].truth)))
    return [
        *lines,
        "All errors and scores come from exact leave-one-out: each row is predicted by the model "
        "fitted to all other rows. Scaling, filter and bandwidth are those of all rows.",
        "Filter, parameter and, if requested, bandwidth were chosen by the same error. The error "
        "is therefore slightly optimistic, especially with few rows.",
        "The bands are predictions plus quantiles of the errors of left-out rows. They are wider "
        "where errors nearby are larger. ConditionalMean.predict_interval(method='conformal') "
        "gives intervals with guaranteed coverage.",
        "Rows are assumed to be independent, and new rows to come from the same distribution. "
        "For x far from all rows, predictions are extrapolations, which can be far off.",
        "Prediction does not imply causation: changing x need not change y.",
    ]


def _listed_columns(model: ConditionalMean, samples: Sequence[ReportSample]) -> str:
    names = _column_names(model, samples)
    if not names:
        return count(model.n_features_in_, "column")
    return listed_columns(names)


def _column_names(model: ConditionalMean, samples: Sequence[ReportSample]) -> list[str] | None:
    """Return the names of the columns of x, if they have names."""
    names = getattr(model, "feature_names_in_", None)
    if samples:
        names = samples[0].columns
    if names is None:
        return None
    return all_shortened(names, 30)
