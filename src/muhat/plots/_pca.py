"""Displays of kernel PCA: left-out errors, the choice of components, and a map of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from muhat.figures import (
    Plot,
    components_plot,
    loadings_bars,
    noise_plot,
    scores_plot,
)
from muhat.filters import TruncatedSVD
from muhat.pca import ComponentsResult, KernelPCA, describe_components
from muhat.plots._display import Display
from muhat.plots._draw import draw


@dataclass(eq=False)
class ComponentsDisplay(Display):
    """The reconstruction error of left-out rows against the number of components, or λ.

    The band is one standard error, the dot the number that the estimator has.

    Parameters
    ----------
    curve : Plot
        The candidates, their mean errors and the standard errors of these.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelPCA
    >>> pca = KernelPCA(3).fit(np.random.default_rng(0).normal(size=(30, 2)))
    >>> display = ComponentsDisplay.from_estimator(pca)  # and display.plot() to draw it
    >>> display.curve.x.label
    'number of components'
    """

    curve: Plot

    @classmethod
    def from_estimator(cls, estimator: KernelPCA) -> Self:
        """Return the display of a fitted ``KernelPCA``."""
        return cls(components_plot(estimator.leave_one_out()))

    @classmethod
    def from_choice(cls, estimator: KernelPCA) -> Self:
        """Return how well each number of components separates signal from noise."""
        return cls(noise_plot(estimator.choose_components()))

    def content(self) -> Plot:
        """Return the curve."""
        return self.curve


@dataclass(eq=False)
class ComponentMapDisplay(Display):
    """A map of rows by their first two scores; with one component, by its score and the error.

    Parameters
    ----------
    map : Plot
        The rows, a series for each label.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import ComponentMapDisplay, KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> display = ComponentMapDisplay.from_estimator(KernelPCA(2).fit(X), X)
    >>> display.map.y.label  # and display.plot() to draw it
    'component 2'
    """

    map: Plot

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, labels: Sequence[str] | None = None) -> Self:
        """Return the map of rows, which a ``KernelPCA`` or a pipeline was fitted to."""
        return cls(scores_plot(describe_components(estimator, X, labels=labels)))

    def content(self) -> Plot:
        """Return the map."""
        return self.map


def figure_of_components(result: ComponentsResult) -> Any:
    """Return a figure of components: the map, how many there are, and what the first follows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    draw(scores_plot(result), left)
    curve = components_plot(result.path)
    if isinstance(result.pca.filter_, TruncatedSVD):
        curve = noise_plot(result.choice)
    draw(curve, middle)
    draw(loadings_bars(result), right)
    return figure
