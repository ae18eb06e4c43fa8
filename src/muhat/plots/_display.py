"""What all displays have in common: a figure as data, and ``plot`` to draw it."""

from __future__ import annotations

from typing import Any, Self

from muhat.figures._plot import Bars, Plot
from muhat.plots._draw import draw
from muhat.plots._style import axes_or_new


class Display:
    """A figure that matplotlib draws."""

    def content(self) -> Plot | Bars:
        """Return the figure as data."""
        raise NotImplementedError

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw in; by default those of a new figure.
        legend : bool, default=True
            Whether several series are named in a legend.

        Returns
        -------
        self : Display
            With ``ax_`` and ``figure_``, the axes and figure in which it was drawn.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw(legend)
        return self

    def _draw(self, legend: bool) -> None:
        draw(self.content(), self.ax_, legend=legend)
