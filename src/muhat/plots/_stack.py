"""The display of a stacked mean: who contributes, and how each candidate does by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat.plots._style import axes_or_new, without_frame
from muhat.stacking import StackedMean


@dataclass(eq=False)
class StackDisplay:
    """The weight of each candidate of a stacked mean, as a bar; beside it, how it does by itself.

    Parameters
    ----------
    names : sequence of str
        The candidates.
    weights : array of shape (M,)
        Their weights.
    gains : array of shape (M,)
        The improvement of each over KME by itself, as a share of KME's risk, by leave-one-out.
    gain, error : float
        That of the stacked mean on held-out rows, with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import StackedMean
    >>> mu = StackedMean().fit(np.random.default_rng(0).normal(size=(30, 5)))
    >>> display = StackDisplay.from_estimator(mu)  # and display.plot() to draw it
    >>> display.names[0]
    'KME'
    """

    names: Sequence[str]
    weights: Array
    gains: Array
    gain: float
    error: float

    @classmethod
    def from_estimator(cls, estimator: StackedMean) -> Self:
        """Return the display of a fitted stacked mean."""
        check_is_fitted(estimator, "moments_")
        return cls(
            estimator.names_,
            estimator.weights_,
            estimator.gains_,
            estimator.gain_,
            estimator.gain_error_,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; by default a new figure.

        Returns
        -------
        self : StackDisplay
            With ``ax_`` and ``figure_``, where it was drawn.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        places = np.arange(len(self.names))
        self.ax_.barh(places, self.weights, color="tab:blue")
        for place, weight, gain in zip(places, self.weights, self.gains, strict=True):
            text = f" alone {100 * gain:+.0f} %" if place else " the plain mean"
            self.ax_.text(weight, place, text, va="center", fontsize="small", color="0.35")
        self.ax_.set_yticks(places, self.names)
        self.ax_.invert_yaxis()
        self.ax_.set_xlim(0, 1.3 * max(self.weights.max(), 0.1))
        self.ax_.set_xlabel("weight")
        gain = f"{100 * self.gain:.0f} ± {100 * self.error:.0f} %"
        self.ax_.set_title(f"{gain} below KME's risk, on held-out rows", loc="left")
        without_frame(self.ax_)
        return self
