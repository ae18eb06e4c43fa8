"""The display of two columns of the same rows."""

from __future__ import annotations

import numpy as np

from muhat.figures import Pair, Plot
from muhat.plots._display import Display
from muhat.plots._draw import draw

DARK_SHARE = 0.6
"""The share from which on a square of the table is so dark that its text is white."""


class PairDisplay(Pair, Display):
    """Two columns of the same rows: a scatter, boxes of numbers by category, or counts.

    Parameters
    ----------
    x, y, names
        As of ``muhat.figures.Pair``.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> names = (["age", "dose"], "effect")
    >>> display = PairDisplay.from_samples(x, x[:, 1] ** 2, names=names)
    >>> display.names, display.kind  # the columns that depend most; display.plot() draws them
    (('dose', 'effect'), 'scatter')
    """

    def content(self) -> Plot:
        """Return the scatter or the boxes as data."""
        return self.figure()

    def _draw(self, legend: bool) -> None:
        if self.kind == "counts":
            self._draw_counts()
        else:
            draw(self.content(), self.ax_, legend=legend)

    def _draw_counts(self) -> None:
        """Draw the table of counts as squares: a page has it as a table."""
        x_levels, y_levels, table = self.counts()
        shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        self.ax_.imshow(shares.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, origin="lower")
        for (row, column), share in np.ndenumerate(shares):
            colour = "black"
            if share > DARK_SHARE:
                colour = "white"
            text = f"{table[row, column]:,}\n{100 * share:.0f} %"
            self.ax_.text(row, column, text, ha="center", va="center", color=colour, fontsize=8)
        self.ax_.set_xticks(range(len(x_levels)), x_levels)
        self.ax_.set_yticks(range(len(y_levels)), y_levels)
        self.ax_.set_xlabel(self.names[0])
        self.ax_.set_ylabel(f"{self.names[1]}  (rows, and % of each column)")
