"""The display of a stacked mean: which candidates contribute, and how each does alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._wording import gain_text
from muhat.figures import Bars, weights_bars
from muhat.plots._display import Display
from muhat.stacking import StackedMean


@dataclass(eq=False)
class StackDisplay(Display):
    """The weight of each candidate of a stacked mean, as bars, and its gain alone.

    Parameters
    ----------
    names : sequence of str
        The candidates.
    weights : array of shape (M,)
        Their weights.
    gains : array of shape (M,)
        The gain of each alone over KME, as a share of KME's risk, by leave-one-out.
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
            estimator.candidate_weights_,
            estimator.gains_,
            estimator.gain_,
            estimator.gain_error_,
        )

    def content(self) -> Bars:
        """Return the weights as data."""
        gain = gain_text(100 * self.gain, 100 * self.error)
        note = f"gain {gain} % of KME's error, on held-out rows"
        return weights_bars(self.names, self.weights, self.gains, note)
