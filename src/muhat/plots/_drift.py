"""The display of a drift detector: the p-value of every batch in time, beside its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from muhat.figures import Plot, p_values_plot
from muhat.plots._display import Display
from muhat.plots._style import require_matplotlib
from muhat.testing import DriftDetector, DriftResult


@dataclass(eq=False)
class DriftDisplay(Display):
    """The p-values of batches over time, their levels, and the column that changed most.

    Parameters
    ----------
    results : sequence of DriftResult
        The batches, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector(random_state=0).fit(rng.normal(size=(60, 1)))
    >>> result = detector.update(rng.normal(size=(20, 1)))
    >>> len(DriftDisplay.from_detector(detector).results)
    1
    """

    results: Sequence[DriftResult]

    @classmethod
    def from_detector(cls, detector: DriftDetector) -> Self:
        """Return the display of a detector's history."""
        return cls(detector.history_)

    def content(self) -> Plot:
        """Return the time line as data."""
        return p_values_plot(self.results)


def figure_of_drift(results: Sequence[DriftResult]) -> Any:
    """Return a figure of the time line; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 4.4), layout="constrained")
    DriftDisplay(results).plot(figure.subplots())
    return figure
