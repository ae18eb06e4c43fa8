"""Displays of a conditional mean: what it predicts for rows that were left out, and quantiles of y along a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._validation import as_frame
from muhat.conditional import ConditionalMean
from muhat.errors import MuhatError
from muhat.plots._style import COLOURS, axes_or_new, without_frame

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
POINTS = 100


@dataclass(eq=False)
class LeftOutDisplay:
    """What is predicted for every row without it, against the y that was observed.

    Parameters
    ----------
    predicted, observed : arrays of shape (n,)
        The predictions and the y.
    score : float
        The share of the variance of y that is predicted so.

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

    @classmethod
    def from_estimator(cls, estimator: ConditionalMean, output: int = 0) -> Self:
        """Return the display of a fitted conditional mean, of one of its outputs."""
        check_is_fitted(estimator, "choice_")
        predicted = np.asarray(estimator.loo_predictions_)
        predicted = predicted.reshape(len(predicted), -1)[:, output]
        residuals = np.asarray(estimator.loo_residuals_).reshape(len(predicted), -1)[:, output]
        return cls(predicted, predicted + residuals, float(estimator.loo_score_))

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self.ax_.scatter(
            self.predicted, self.observed, s=12, color=COLOURS["f-kmse"], alpha=0.6, linewidths=0
        )
        both = np.concatenate([self.predicted, self.observed])
        ends = [np.nanmin(both), np.nanmax(both)]
        self.ax_.plot(ends, ends, color="black", linewidth=1)
        self.ax_.set_xlabel("predicted without the row")
        self.ax_.set_ylabel("observed y")
        self.ax_.set_title(
            f"leave-one-out: {100 * self.score:.3g} % of the variance of y", loc="left"
        )
        without_frame(self.ax_)
        return self


@dataclass(eq=False)
class QuantileDisplay:
    """Quantiles of y along one feature, the others at their medians, as a fan over the rows.

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
        The number of features; with more than one, the axis says that the others are at their medians.
    """

    values: Array
    levels: tuple[float, ...]
    quantiles: Array
    rows: Array
    outputs: Array
    name: str
    n_features: int = 1

    @classmethod
    def from_estimator(
        cls,
        estimator: ConditionalMean,
        X: Any,
        y: Any,
        feature: int | str = 0,
        levels: tuple[float, ...] = LEVELS,
        name: str | None = None,
    ) -> Self:
        """Return the display of a fitted conditional mean of one output.

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
        name : str, default=None
            What the feature is called, if not by its name in X.
        """
        check_is_fitted(estimator, "choice_")
        frame, names = as_frame(X), list(map(str, getattr(estimator, "feature_names_in_", ())))
        rows = np.asarray(frame, dtype=float)
        if isinstance(feature, str) and feature not in names:
            raise MuhatError("QuantileDisplay", f"feature must be one of {names}", repr(feature))
        place = names.index(feature) if isinstance(feature, str) else int(feature)
        values = np.linspace(rows[:, place].min(), rows[:, place].max(), POINTS)
        grid = np.tile(np.median(rows, axis=0), (POINTS, 1))
        grid[:, place] = values
        points: Any = type(frame)(grid, columns=frame.columns) if hasattr(frame, "iloc") else grid
        quantiles = np.asarray(estimator.predict_quantiles(points, list(levels)))
        name = name or (names[place] if names else f"feature {place}")
        outputs = np.asarray(y, dtype=float)
        return cls(values, tuple(levels), quantiles, rows[:, place], outputs, name, rows.shape[1])

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        bands = len(self.levels) // 2
        for low in range(bands):
            high = len(self.levels) - 1 - low
            label = f"{100 * self.levels[low]:g} to {100 * self.levels[high]:g} %"
            colour = _lighter(
                COLOURS["f-kmse"], (low + 1) / (bands + 2)
            )  # opaque: the legend shows the same
            lower, upper = self.quantiles[:, low], self.quantiles[:, high]
            self.ax_.fill_between(
                self.values, lower, upper, label=label, color=colour, linewidth=0, zorder=1
            )
        self.ax_.scatter(
            self.rows, self.outputs, s=8, color="0.35", alpha=0.6, linewidths=0, zorder=2
        )
        if len(self.levels) % 2:
            middle = self.quantiles[:, bands]
            self.ax_.plot(self.values, middle, color=COLOURS["landweber"], label="median", zorder=3)
        others = "  (other columns at their medians)" if self.n_features > 1 else ""
        self.ax_.set_xlabel(f"{self.name}{others}")
        self.ax_.set_ylabel("y")
        self.ax_.legend(frameon=False)
        without_frame(self.ax_)
        return self


def _lighter(colour: str, share: float) -> tuple[float, ...]:
    """Return a colour mixed with white: 0 is white, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - each) for each in to_rgb(colour))
