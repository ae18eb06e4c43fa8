"""The page of a conditional mean: predictions of rows left out against the truth, every filter, and how y spreads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from muhat._arrays import Array
from muhat._python_lines import model_lines
from muhat._summary import GOOD, NEUTRAL, UNSURE
from muhat.conditional import ConditionalMean, LeftOutFit, copies_text, listed_columns
from muhat.errors import MuhatTypeError
from muhat.filters import Iteration, name_of
from muhat.kernels import Linear
from muhat.report._comparison import colour_of
from muhat.report._data import Context, Sample, count, data_section
from muhat.report._document import (
    Axis,
    Cell,
    Fact,
    Plot,
    Report,
    Section,
    Series,
    Table,
    number,
)
from muhat.report._figures import shortened

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of the fan."""

MOST_FANNED, MOST_DOTS, MOST_OUTPUTS, BINS = 200, 1000, 4, 40
"""Rows of the fan, dots of a scatter plot, outputs with figures, and bins of a histogram."""


def pipeline_report(pipeline: Pipeline, context: Context) -> Report:
    """Return the page of a pipeline that ends in a conditional mean, in the units of the rows that it is given."""
    if not isinstance(pipeline[-1], ConditionalMean):
        needed = "a pipeline that ends in a ConditionalMean is needed"
        raise MuhatTypeError("report_of", needed, type(pipeline[-1]).__name__)
    return conditional_report(pipeline[-1], context, pipeline[:-1].transform)


def conditional_report(
    model: ConditionalMean, context: Context, transform: Callable[[Array], Array] = np.asarray
) -> Report:
    """Return the page of a fitted conditional mean; the data, if given, are rows of x to show predictions at."""
    samples = context.samples("x", "new rows")
    name = str(context.settings.get("y", "y"))
    outputs = _Outputs.from_model(model, name)
    badge, tone = _badge(model, outputs)
    columns = _listed_columns(model, samples)
    sections = (
        [Section("Rows left out", (), (), [plot for each in outputs for plot in each.plots()])]
        if outputs
        else []
    )
    fans = _fans(model, samples, name, transform)
    if fans:
        sections.append(Section("How y spreads", (), (), fans))
    sections += [*context.sections, _filters_section(model)]
    settings = {
        "kernel on x": repr(model.kernel_),
        "kernel on y": repr(model.kernel_y_),
        "bandwidth": "chosen by leave-one-out"
        if model.bandwidths_ is not None
        else "that of the kernel",
        **context.settings,
    }
    return Report(
        kind="Prediction",
        question=f"How well can {shortened(name, 60)} be predicted from {columns}, and how sure?",
        verdict=_verdict(model, outputs, name, samples),
        badge=badge,
        tone=tone,
        facts=_facts(model, outputs),
        sections=sections,
        data=data_section(
            context,
            samples,
            [] if samples else [f"Fitted to {count(model.n_features_in_, 'column')}."],
        ),
        assumptions=_assumptions(model, outputs),
        code=context.code or model_lines(model),
        provenance=Context(settings=settings).provenance(),
    )


def new_rows_plot(target: str, shown: str, truth: Array, predicted: Array) -> Plot:
    """Return predictions of new rows against their true values."""
    said = f"Each dot is a row of {shown}, predicted by the model of the training rows."
    return _Outputs(target, truth, predicted).scatter(
        f"{target}: predictions of {shown} against the truth", said
    )


class _Outputs:
    """One output: its values, and what is predicted for each row without it."""

    def __init__(self, name: str, truth: Array, predicted: Array, n_copies: int = 0) -> None:
        good = np.isfinite(predicted)  # rows of mass zero have no prediction
        self.name, self.truth, self.predicted = name, truth[good], predicted[good]
        n = len(self.truth)
        plain = (self.truth - self.truth.mean()) * n / max(n - 1, 1)
        self.errors = self.truth - self.predicted
        self.gains = plain**2 - self.errors**2
        self.share = float(self.gains.sum() / (plain**2).sum()) if plain.any() else 0.0
        self.error = LeftOutFit.from_predictions(
            truth, predicted, self.share, n_copies
        ).standard_error

    @classmethod
    def from_model(cls, model: ConditionalMean, name: str) -> list[_Outputs]:
        """Return all outputs; none for a kernel on y that has no mean of y."""
        if not isinstance(model.kernel_y_, Linear):
            return []
        predicted = np.asarray(model.loo_predictions_)
        truth = predicted + np.asarray(model.loo_residuals_)
        n_copies = (
            getattr(model, "n_copies_", None) or 0
        )  # models that were saved by earlier versions have none
        if predicted.ndim == 1:
            return [cls(name, truth, predicted, n_copies)]
        names = [f"{name} {place}" for place in range(predicted.shape[1])]
        return [cls(*each, n_copies) for each in zip(names, truth.T, predicted.T, strict=True)][
            :MOST_OUTPUTS
        ]

    def plots(self) -> list[Plot]:
        """Return the predictions against the truth, and the histogram of errors."""
        return [self._scatter(), self._histogram()]

    def _scatter(self) -> Plot:
        said = "Each dot is a row, predicted from all others."
        return self.scatter(f"{self.name}: left-out predictions against the truth", said)

    def scatter(self, title: str, said: str) -> Plot:
        """Return predictions against the truth, with a title and what each dot is."""
        some = np.random.default_rng(0).permutation(len(self.truth))[:MOST_DOTS]
        X, Y = self.predicted[some], self.truth[some]
        low, high = float(min(X.min(), Y.min())), float(max(X.max(), Y.max()))
        margin = 0.04 * (high - low) or 1.0
        readings = [
            (float(x), float(y), f"{number(y)}, predicted {number(x)} (row {row + 1})")
            for x, y, row in zip(X, Y, some, strict=True)
        ]
        drawn = (
            f" {len(some):,} of {len(self.truth):,} rows are drawn."
            if len(some) < len(self.truth)
            else ""
        )
        ends = np.array([low - margin, high + margin])
        return Plot(
            title,
            f"{said} On the line, the prediction is right.{drawn}",
            f"A cloud of {len(some):,} dots around the diagonal; the correlation is {number(_correlation(X, Y))}.",
            Axis(f"predicted {self.name}", *ends.tolist()),
            Axis(f"true {self.name}", *ends.tolist()),
            [
                Series("rows", "points", X, Y, colour=2, readings=readings),
                Series("right", "line", ends, ends, colour=0, readings=()),
            ],
            by_point=True,
            is_square=True,
        )

    def _histogram(self) -> Plot:
        counts, edges = np.histogram(self.errors, bins=min(BINS, max(5, len(self.errors) // 8)))
        readings = [
            (
                (left + right) / 2,
                float(n),
                f"{count(int(n), 'row')} from {number(left)} to {number(right)}",
            )
            for left, right, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        middle, nine = np.quantile(np.abs(self.errors), [0.5, 0.9])
        words = f"Half of all errors are below {number(middle)}, nine of ten below {number(nine)}."
        return Plot(
            f"{self.name}: errors of left-out predictions",
            f"The truth less the prediction. {words}",
            f"A histogram of errors from {number(edges[0])} to {number(edges[-1])}. {words}",
            Axis(f"true less predicted {self.name}", float(edges[0]), float(edges[-1])),
            Axis("rows", 0, 1.08 * max(1, int(counts.max()))),
            [
                Series("rows", "bars", edges, counts.astype(float), colour=2, readings=readings),
                Series("no error", "rule", np.zeros(1), np.array([]), colour=0),
            ],
        )


def _correlation(x: Array, y: Array) -> float | None:
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and np.ptp(x) and np.ptp(y) else None


def _badge(model: ConditionalMean, outputs: Sequence[_Outputs]) -> tuple[str, str]:
    if (outputs and outputs[0].share <= 0) or model.loo_score_ <= 0:
        return "x does not help to predict y", NEUTRAL
    if outputs and outputs[0].share <= 2 * outputs[0].error:
        return "Not clear whether x helps", UNSURE
    return "x helps to predict y", GOOD


def _verdict(
    model: ConditionalMean, outputs: Sequence[_Outputs], name: str, samples: Sequence[Sample]
) -> str:
    if len(outputs) == 1:
        names = _column_names(model, samples) or ["x"]
        return LeftOutFit.from_model(model).sentence(shortened(name, 60), names)
    share = f"{number(100 * max(0.0, model.loo_score_))} %"
    found = f"On rows left out, x explains {share} of the variance of {shortened(name, 60)}"
    found += f" (R² = {number(model.loo_score_)})"
    if not outputs:
        return f"{found}, in the space of its kernel."
    middle = number(float(np.median(np.abs(outputs[0].errors))))
    return f"{found}; half of the predictions are off by less than {middle}."


def _facts(model: ConditionalMean, outputs: Sequence[_Outputs]) -> list[Fact]:
    facts = [Fact("R² on rows left out", number(model.loo_score_), "1 is all, 0 is none")]
    if outputs:
        first = outputs[0]
        facts[0] = Fact(
            facts[0].label,
            f"{number(model.loo_score_)} ± {number(first.error, 2)}",
            "± one standard error",
        )
        facts.append(
            Fact(
                "middle error",
                number(float(np.median(np.abs(first.errors)))),
                f"in units of {first.name}",
            )
        )
        facts.append(
            Fact("rows", f"{len(first.truth):,}", f"of {count(model.n_features_in_, 'column')}")
        )
    facts.append(Fact("filter", name_of(model.filter_), _setting(model.choice_)))
    return facts


def _setting(choice: Any) -> str:
    return f"{choice.filter.symbol} = {number(choice.parameter)}"


def _fans(
    model: ConditionalMean,
    samples: Sequence[Sample],
    name: str,
    transform: Callable[[Array], Array],
) -> list[Plot]:
    """Return the quantiles of y at the rows given last, in the order of their medians."""
    if not samples or samples[-1].rows.shape[1] != model.n_features_in_:
        return []
    rows = samples[-1].rows
    some = np.random.default_rng(0).permutation(len(rows))[:MOST_FANNED]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names, which an array has not
        try:
            quantiles = np.asarray(model.predict_quantiles(transform(rows[some]), LEVELS))
        except (
            ValueError
        ):  # too few rows, or a fit that holds neither left-out residuals nor weights
            return []
    quantiles = quantiles[:, None] if quantiles.ndim == 2 else quantiles
    names = (
        [name]
        if quantiles.shape[1] == 1
        else [f"{name} {place}" for place in range(quantiles.shape[1])]
    )
    return [
        _fan(each, quantiles[:, place], some) for place, each in enumerate(names[:MOST_OUTPUTS])
    ]


def _fan(name: str, quantiles: Array, rows: Array) -> Plot:
    order = np.argsort(quantiles[:, 2], kind="stable")
    quantiles, rows = quantiles[order], rows[order]
    X = np.arange(1.0, len(rows) + 1)
    low, high = float(quantiles.min()), float(quantiles.max())
    margin = 0.04 * (high - low) or 1.0
    width = number(float(np.median(quantiles[:, 4] - quantiles[:, 0])))

    def readings(lower: int, upper: int) -> list[tuple[float, float, str]]:
        return [
            (x, float(q[upper]), f"{number(q[lower])} to {number(q[upper])} (row {row + 1})")
            for x, q, row in zip(X.tolist(), quantiles, rows, strict=True)
        ]

    middle = [
        (x, float(q[2]), f"{number(q[2])} (row {row + 1})")
        for x, q, row in zip(X.tolist(), quantiles, rows, strict=True)
    ]
    return Plot(
        f"{name}: the range of what is likely",
        f"At {count(len(rows), 'row')}, in the order of the median: nine of ten values of y are expected in the pale "
        "band, half of them in the darker one.",
        f"Bands around a rising line of medians, from {number(low)} to {number(high)}; the median width of the 90 % "
        f"band is {width}.",
        Axis("rows, in the order of the median", 1, max(2, len(rows))),
        Axis(name, low - margin, high + margin),
        [
            Series(
                "90 %",
                "band",
                X,
                quantiles[:, 0],
                quantiles[:, 4],
                colour=3,
                readings=readings(0, 4),
            ),
            Series(
                "50 %",
                "band",
                X,
                quantiles[:, 1],
                quantiles[:, 3],
                colour=2,
                readings=readings(1, 3),
            ),
            Series("median", "line", X, quantiles[:, 2], colour=2, readings=middle),
        ],
    )


def _filters_section(model: ConditionalMean) -> Section:
    """Return every filter with its best parameter, and its scores along its grid."""
    choices = [choice for choice in model.choices_ if np.isfinite(choice.scores).any()]
    rows = [
        [Cell(name_of(each.filter)), Cell(_setting(each)), Cell(number(each.score, 5), each.score)]
        for each in choices
    ]
    if not rows:
        return Section(
            "The filter",
            [f"{name_of(model.filter_)} with {_setting(model.choice_)}, as it was asked for."],
        )
    best = next(place for place, each in enumerate(choices) if each is model.choice_)
    titles = ["filter", "parameter", "mean squared error of rows left out"]
    blocks: list[Table | Plot] = [
        Table("Filters, each at its best parameter", titles, rows, marked=best)
    ]
    if any(len(each.grid) > 1 for each in choices):
        blocks.append(_scores_plot(model, choices))
    if model.bandwidths_ is not None and model.bandwidth_scores_ is not None:
        blocks.append(_bandwidths_plot(model.bandwidths_, model.bandwidth_scores_))
    return Section("Every filter", (), (), blocks)


def _scores_plot(model: ConditionalMean, choices: Sequence[Any]) -> Plot:
    series = []
    for each in choices:
        grid = np.asarray(each.grid, dtype=float)
        symbol = each.filter.symbol
        places = 1 / grid if isinstance(each.filter, Iteration) else grid
        readings = [
            (float(x), float(y), f"{number(y)} at {symbol} = {number(p)}")
            for x, y, p in zip(places, each.scores, grid, strict=True)
        ]
        chosen = (float(places[each.index]), each.score)
        name = name_of(each.filter)
        series.append(
            Series(
                f"{name} ({_setting(each)})",
                "line",
                places,
                each.scores,
                colour=colour_of(name),
                key=name,
                chosen=chosen,
                is_strong=each is model.choice_,
                readings=readings,
            )
        )
    places = np.concatenate([each.x for each in series])
    scores = np.concatenate([each.y[np.isfinite(each.y)] for each in series])
    least, most = float(scores.min()), float(np.quantile(scores, 0.9))
    margin = 0.06 * (most - least) or abs(least) or 1.0
    best = f"{name_of(model.filter_)} with {_setting(model.choice_)}"
    return Plot(
        "Leave-one-out curves",
        "The error of rows left out against how strongly each filter smooths: much on the right, little on the left. "
        "The dot is what was chosen.",
        f"Curves with one valley each; the lowest point is that of {best}, {number(model.choice_.score)}.",
        Axis("λ, or 1/t for iterations", float(places.min()), float(places.max()), is_log=True),
        Axis("mean squared error of rows left out", least - margin, most + margin),
        series,
    )


def _bandwidths_plot(bandwidths: Array, scores: Array) -> Plot:
    place = int(np.nanargmin(scores))
    margin = 0.08 * float(np.nanmax(scores) - np.nanmin(scores)) or 1.0
    words = f"The least error is at {number(bandwidths[place])}."
    series = Series(
        "bandwidths",
        "line",
        bandwidths,
        scores,
        colour=2,
        chosen=(float(bandwidths[place]), float(scores[place])),
    )
    return Plot(
        "Bandwidths",
        f"The error of rows left out at each bandwidth that was tried. {words}",
        f"A curve over {count(len(bandwidths), 'bandwidth')}. {words}",
        Axis(
            "bandwidth", float(bandwidths.min()) / 1.1, 1.1 * float(bandwidths.max()), is_log=True
        ),
        Axis(
            "mean squared error",
            float(np.nanmin(scores)) - margin,
            float(np.nanmax(scores)) + margin,
        ),
        [series],
    )


def _assumptions(model: ConditionalMean, outputs: Sequence[_Outputs]) -> list[str]:
    n = len(outputs[0].truth) if outputs else 0
    n_copies = getattr(model, "n_copies_", None)
    return [
        *([copies_text(n_copies, n)] if n_copies and n else []),
        "Every number on how well it predicts comes from leaving out: each row is predicted by what is fitted to all "
        "others, exactly; scaling, filter and bandwidth are those of all rows.",
        "Filter, parameter and, if asked for, bandwidth were chosen by the same error, so that it is slightly "
        "optimistic: more so the fewer the rows.",
        "The bands are predictions plus quantiles of the errors of left-out rows, wider where errors nearby are "
        "larger. ConditionalMean.predict_interval(method='conformal') gives intervals with a guarantee.",
        "Assumed: rows are independent, and new rows come from the same distribution as these. For x far from all rows "
        "the prediction goes back to the mean of y.",
        "A prediction is no cause: changing x need not change y.",
    ]


def _listed_columns(model: ConditionalMean, samples: Sequence[Sample]) -> str:
    names = _column_names(model, samples)
    return listed_columns(names) if names else count(model.n_features_in_, "column")


def _column_names(model: ConditionalMean, samples: Sequence[Sample]) -> list[str] | None:
    """Return the names of the columns of x, if they have names."""
    names = samples[0].columns if samples else getattr(model, "feature_names_in_", None)
    return None if names is None else [shortened(str(name), 30) for name in names]
