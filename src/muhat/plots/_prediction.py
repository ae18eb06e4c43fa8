"""The figure of predictions: left-out rows, new rows, and quantiles along a feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._wording import rows_text
from muhat.conditional import PredictionResult, r2_text
from muhat.plots._conditional import LeftOutDisplay, QuantileDisplay
from muhat.plots._style import without_frame

MAX_DRAWN_ROWS = 200
"""The most new rows that are drawn with their intervals."""

NEW_ROWS_COLOUR = "#D55E00"
"""The colour of new rows without true values: no estimator's."""


def figure_of_prediction(result: PredictionResult) -> Any:
    """Return a figure of predictions.

    Its panels are left-out training rows, new rows if there are any, and quantiles of y along the
    feature with the largest effect.
    """
    from matplotlib.figure import Figure

    panels = 2 if result.new_rows is None else 3
    figure = Figure(figsize=(6.25 * panels, 4.2), layout="constrained")
    left, *between, right = figure.subplots(1, panels)
    LeftOutDisplay.from_estimator(result.model).plot(left)
    left.set_ylabel(f"observed {result.target}")
    column = int(np.argmax(result.importance))
    for axes in between:
        if result.true is not None:
            _draw_against_truth(result, result.true, axes)
        elif result.new_rows is not None:
            _draw_intervals(result, result.new_rows[:, column], axes)
            axes.set_xlabel(result.columns[column])
    X, y = result.training_rows
    name = f"{result.columns[column]}, other features at their medians"
    display = QuantileDisplay.from_estimator(result.model, X, y, column, name=name)
    display.n_features = 1  # the name says it of the others
    display.plot(right)
    right.set_ylabel(result.target)
    return figure


def _draw_against_truth(result: PredictionResult, true: Array, axes: Any) -> None:
    """Draw predictions of new rows against their true values."""
    r2 = result.r2
    LeftOutDisplay(result.predicted, true, np.nan if r2 is None else r2).plot(axes)
    axes.set_xlabel(f"predicted for {result.name}")
    axes.set_ylabel(f"observed {result.target}")
    score = "" if r2 is None else f", R² {r2_text(r2)}"
    axes.set_title(f"{result.name}: {rows_text(len(result.predicted))}{score}", loc="left")


def _draw_intervals(result: PredictionResult, x: Array, axes: Any) -> None:
    """Draw the intervals of new rows whose true values are not known, along a feature."""
    n = len(result.predicted)
    some = np.random.default_rng(0).permutation(n)[:MAX_DRAWN_ROWS]
    axes.vlines(x[some], *result.ends[some].T, color=NEW_ROWS_COLOUR, linewidth=0.8, alpha=0.6)
    axes.scatter(x[some], result.predicted[some], s=12, color=NEW_ROWS_COLOUR)
    axes.set_ylabel(f"predicted {result.target}")
    drawn = f"{len(some):,} of " if len(some) < n else ""
    intervals = f"{100 * result.confidence:g} % intervals"
    axes.set_title(f"{result.name}: {drawn}{rows_text(n)}, {intervals}", loc="left")
    without_frame(axes)
