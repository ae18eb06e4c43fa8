"""Displays of a conditional mean: predictions of left-out rows, quantiles of y along a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._text import number
from muhat._validation import as_frame
from muhat.conditional import ConditionalMean, training_rows
from muhat.errors import MuhatError
from muhat.figures import Plot, predictions_plot, quantiles_plot
from muhat.kernels import Linear
from muhat.plots._display import Display

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The levels of quantiles that are drawn by default."""

POINTS = 100
"""Places along a feature."""


@dataclass(eq=False)
class LeftOutDisplay(Display):
    """The left-out prediction of every row against its observed y.

    Parameters
    ----------
    predicted, observed : arrays of shape (n,)
        The predictions and the y.
    score : float
        The share of the variance of y that is predicted so.
    name : str, default='y'
        What y is called.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import ConditionalMean
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = ConditionalMean().fit(X, np.sin(X[:, 0]))
    >>> display = LeftOutDisplay.from_estimator(model)  # and display.plot() to draw it
    >>> display.score > 0.99
    True
    """

    predicted: Array
    observed: Array
    score: float
    name: str = "y"

    @classmethod
    def from_estimator(
        cls, estimator: ConditionalMean, output: int = 0, *, name: str = "y"
    ) -> Self:
        """Return the display of a fitted conditional mean, of one of its outputs."""
        check_is_fitted(estimator, "choice_")
        predicted = np.asarray(estimator.loo_predictions_)
        predicted = predicted.reshape(len(predicted), -1)[:, output]
        residuals = np.asarray(estimator.loo_residuals_).reshape(len(predicted), -1)[:, output]
        return cls(predicted, predicted + residuals, float(estimator.loo_score_), name)

    def content(self) -> Plot:
        """Return the predictions and the truth as data."""
        note = ""
        if self.score < 0:
            note = f"R² = {number(self.score, 2)}"
        elif np.isfinite(self.score):
            note = f"{100 * self.score:.3g} % of the variance of {self.name}"
        return predictions_plot(self.name, self.observed, self.predicted, note=note)


@dataclass(eq=False)
class QuantileDisplay(Display):
    """Quantiles of y along one feature, as bands; all other features are at their medians.

    Parameters
    ----------
    values : array of shape (points,)
        Where along the feature.
    levels : sequence of float
        The levels of the quantiles, ascending.
    quantiles : array of shape (points, levels)
        The quantiles.
    rows, outputs : arrays of shape (n,)
        The feature and y of the rows.
    name : str
        The feature's name.
    n_features : int, default=1
        The number of features; if there are others, the axis says that they are at their medians.
    output_name : str, default='y'
        What y is called.
    is_moved : bool, default=False
        Whether ``outputs`` are the predictions with the other features at their medians plus each
        row's residual (partial residuals), and not y itself.
    """

    values: Array
    levels: tuple[float, ...]
    quantiles: Array
    rows: Array
    outputs: Array
    name: str
    n_features: int = 1
    output_name: str = "y"
    is_moved: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: ConditionalMean,
        X: Any,
        y: Any,
        feature: int | str = 0,
        levels: tuple[float, ...] = LEVELS,
        names: tuple[str, str] | None = None,
    ) -> Self:
        """Return the display of a fitted conditional mean of one output.

        The bands hold the other features at their medians, and so do the rows: each is shown at
        its prediction there plus its residual, left-out for training rows.

        Parameters
        ----------
        estimator : ConditionalMean
            The estimator.
        X, y : array or data frame of shape (n, d), and array of shape (n,)
            The rows to show.
        feature : int or str, default=0
            The feature along which y is shown, by number or by name.
        levels : tuple of float
            The levels of the quantiles.
        names : tuple of two str, default=None
            What the feature and y are called, if not by the feature's name in X and y.
        """
        check_is_fitted(estimator, "choice_")
        frame = as_frame(X)
        known = list(map(str, getattr(estimator, "feature_names_in_", ())))
        rows = np.asarray(frame, dtype=float)
        place = _place_of(feature, known)
        values = np.linspace(rows[:, place].min(), rows[:, place].max(), POINTS)
        grid = np.tile(np.median(rows, axis=0), (POINTS, 1))
        grid[:, place] = values
        points = _like(frame, grid)
        quantiles = np.asarray(estimator.predict_quantiles(points, list(levels)))
        outputs, is_moved = np.asarray(y, dtype=float), False
        if rows.shape[1] > 1 and isinstance(estimator.kernel_y_, Linear):
            outputs, is_moved = _moved_to_medians(estimator, frame, rows, outputs, place), True
        if names is None and known:
            names = known[place], "y"
        name, output_name = names or (f"feature {place}", "y")
        return cls(
            values,
            tuple(levels),
            quantiles,
            rows[:, place],
            outputs,
            name,
            rows.shape[1],
            output_name,
            is_moved,
        )

    def content(self) -> Plot:
        """Return the quantiles and the rows as data."""
        label = self.name
        if self.n_features > 1:
            label += "  (other columns at their medians)"
        return quantiles_plot(
            label,
            self.values,
            self.levels,
            self.quantiles,
            self.rows,
            self.outputs,
            self.output_name,
            self.is_moved,
        )


def _moved_to_medians(
    estimator: ConditionalMean, frame: Any, rows: Array, outputs: Array, place: int
) -> Array:
    """Return y of rows as if all features but one were at their medians: partial residuals."""
    points = np.tile(np.median(rows, axis=0), (len(rows), 1))
    points[:, place] = rows[:, place]
    residuals = outputs - estimator.predict(frame)
    trained = training_rows(estimator)
    if trained is not None and np.array_equal(trained, rows):
        residuals = estimator.loo_residuals_
    return np.asarray(estimator.predict(_like(frame, points)) + residuals)


def _like(frame: Any, values: Array) -> Any:
    """Return values with the names of a pandas data frame's columns, if it is one."""
    if hasattr(frame, "iloc"):
        return type(frame)(values, columns=frame.columns)
    return values


def _place_of(feature: int | str, names: list[str]) -> int:
    """Return the number of a feature that is given by its number or its name."""
    if not isinstance(feature, str):
        return int(feature)
    if feature not in names:
        raise MuhatError("QuantileDisplay", f"feature must be one of {names}", repr(feature))
    return names.index(feature)
