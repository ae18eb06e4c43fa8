"""Displays of a conditional mean: what it predicts without each row, and how y spreads along one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat.conditional import ConditionalMean
from muhat.plots._style import axes_or_new, require_matplotlib, without_frame

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a fan."""

POINTS = 100
"""Where along a feature they are drawn."""

COLOUR, DOTS = "#0072B2", "#555555"


@dataclass(eq=False)
class PredictionDisplay:
    """What is predicted for each row without it, against what is true: on the diagonal where it is right.

    Parameters
    ----------
    predicted, true : arrays of shape (n,)
        The left-out predictions, and the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import ConditionalMean
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> PredictionDisplay.from_estimator(ConditionalMean().fit(X, X[:, 0] ** 2)).predicted.shape
    (30,)
    """

    predicted: Array
    true: Array

    @classmethod
    def from_estimator(cls, model: ConditionalMean, output: int = 0) -> Self:
        """Return the display of a fitted model, or of one of its outputs."""
        predicted, residuals = (
            np.atleast_2d(each.T)[output] for each in (model.loo_predictions_, model.loo_residuals_)
        )
        return cls(predicted, predicted + residuals)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        ends = [min(self.predicted.min(), self.true.min()), max(self.predicted.max(), self.true.max())]
        self.ax_.plot(ends, ends, color="black", linewidth=0.8, zorder=1)
        self.ax_.scatter(self.predicted, self.true, s=12, color=COLOUR, alpha=0.6, linewidths=0, zorder=2)
        self.ax_.set(xlabel="predicted without the row", ylabel="true")
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class QuantileFanDisplay:
    """Quantiles of y along one feature, all others at their medians, with the rows of the sample.

    Parameters
    ----------
    feature : array of shape (m,)
        The values of the feature.
    quantiles : array of shape (m, 5)
        The quantiles at 5, 25, 50, 75 and 95 %.
    rows, outputs : arrays of shape (n,)
        The feature and the output of each row of the sample.
    name : str
        What the feature is called.
    """

    feature: Array
    quantiles: Array
    rows: Array
    outputs: Array
    name: str = "x"

    @classmethod
    def from_estimator(cls, model: Any, X: Array, y: Array, column: int, name: str = "x") -> Self:
        """Return the display of a fitted model, or a pipeline that ends with one, on its sample."""
        X = np.asarray(X, dtype=np.float64)
        points = np.tile(np.median(X, axis=0), (POINTS, 1))
        points[:, column] = np.linspace(X[:, column].min(), X[:, column].max(), POINTS)
        return cls(points[:, column], quantiles_of(model, points), X[:, column], np.asarray(y), name)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        low, lower, middle, upper, high = self.quantiles.T
        self.ax_.scatter(self.rows, self.outputs, s=8, color=DOTS, alpha=0.4, linewidths=0, zorder=1, label="rows")
        self.ax_.fill_between(self.feature, low, high, color=COLOUR, alpha=0.2, linewidth=0, label="5 to 95 %")
        self.ax_.fill_between(self.feature, lower, upper, color=COLOUR, alpha=0.35, linewidth=0, label="25 to 75 %")
        self.ax_.plot(self.feature, middle, color=COLOUR, linewidth=1.5, label="median")
        self.ax_.set(xlabel=f"{self.name} (other features at their medians)", ylabel="y")
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


def quantiles_of(model: Any, points: Array) -> Array:
    """Return the quantiles of a model, or of a pipeline that ends with one, at points."""
    if hasattr(model, "predict_quantiles"):
        return model.predict_quantiles(points, LEVELS)
    *before, last = [step for _, step in model.steps]
    for step in before:
        points = step.transform(points)
    return last.predict_quantiles(points, LEVELS)


def prediction_figure(displays: Sequence[Any]) -> Any:
    """Return a figure of some displays side by side, made without a screen; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.25 * len(displays), 4.2), layout="constrained")
    for display, ax in zip(displays, np.atleast_1d(figure.subplots(1, len(displays))), strict=True):
        display.plot(ax)
    return figure
