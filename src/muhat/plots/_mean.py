"""The display of a kernel mean itself: a function of x, over a plane or along a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._validation import as_frame
from muhat.errors import MuhatError
from muhat.figures import Plot, mean_plot
from muhat.mean import KernelMean
from muhat.plots._display import Display
from muhat.stacking import StackedMean

GRID_SIDE = 80
"""Points along each side of the plane."""

MARGIN = 0.08
"""How far the plane goes beyond the rows, as a share of their range."""


@dataclass(eq=False)
class MeanDisplay(Display):
    """The values μ(x) of a kernel mean of one or two features: high where the sample is dense.

    Parameters
    ----------
    rows : array of shape (n, 1) or (n, 2)
        The sample.
    axes : tuple of arrays
        Where the function is evaluated, along each feature.
    values : array of shape (points,) or (points, points)
        Its values.
    names : tuple of str
        The features' names.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> mu = KernelMean().fit(X)
    >>> display = MeanDisplay.from_estimator(mu, X)  # and display.plot() to draw it
    >>> display.values.shape
    (80, 80)
    """

    rows: Array
    axes: tuple[Array, ...]
    values: Array
    names: tuple[str, ...]

    @classmethod
    def from_estimator(cls, estimator: KernelMean | StackedMean, X: Any) -> Self:
        """Return the display of a fitted mean of one or two features, with the rows X."""
        check_is_fitted(estimator, "embedding_")
        rows = np.asarray(as_frame(X), dtype=float)
        if rows.ndim != 2 or rows.shape[1] not in (1, 2):
            needed, advice = "one or two features are needed", "fit the mean to some columns only"
            raise MuhatError("MeanDisplay", needed, f"shape {rows.shape}", advice)
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = MARGIN * (high - low)
        axes = tuple(
            np.linspace(a, b, GRID_SIDE) for a, b in zip(low - margin, high + margin, strict=True)
        )
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        values = np.asarray(estimator.embedding_(points)).reshape([GRID_SIDE] * len(axes))
        numbered = [f"feature {place}" for place in range(len(axes))]
        names = getattr(estimator, "feature_names_in_", numbered)
        return cls(rows, axes, values, tuple(map(str, names)))

    def content(self) -> Plot:
        """Return the function and the rows as data."""
        return mean_plot(self.rows, self.axes, self.values, self.names)
