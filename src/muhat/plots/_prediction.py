"""The figure of predictions: left-out rows, new rows, and quantiles along a feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat.conditional import PredictionResult
from muhat.figures import new_rows_plot
from muhat.plots._conditional import LeftOutDisplay, QuantileDisplay
from muhat.plots._draw import draw


def figure_of_prediction(result: PredictionResult) -> Any:
    """Return a figure of predictions.

    Its panels are left-out training rows, new rows if there are any, and quantiles of y along the
    feature with the largest effect.
    """
    from matplotlib.figure import Figure

    panels = 3
    if result.new_rows is None:
        panels = 2
    figure = Figure(figsize=(6.25 * panels, 4.2), layout="constrained")
    left, *between, right = figure.subplots(1, panels)
    LeftOutDisplay.from_estimator(result.model, name=result.target).plot(left)
    for axes in between:
        draw(new_rows_plot(result), axes)
    column = int(np.argmax(result.importance))
    X, y = result.training_rows
    names = result.columns[column], result.target
    QuantileDisplay.from_estimator(result.model, X, y, column, names=names).plot(right)
    return figure
