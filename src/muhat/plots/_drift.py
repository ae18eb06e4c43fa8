"""The display of a drift detector: the p-value of every batch in time, beside the level it was tested at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat.plots._style import axes_or_new, logarithmic, require_matplotlib, without_frame
from muhat.testing import DriftDetector, DriftResult

ALARM, QUIET, LEVEL = "#D55E00", "#0072B2", "#555555"
NAMED = 12
"""The most batches that have their names below them, and the most alarms that have the feature that changed most."""


@dataclass(eq=False)
class DriftDisplay:
    """The p-values of batches in time, the level of each, and what changed most where there is an alarm.

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

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        number, p, level = (
            np.array([getattr(each, name) for each in self.results])
            for name in ("number", "p_value", "level")
        )
        alarm = p <= level
        self.ax_.step(
            number,
            level,
            where="mid",
            color=LEVEL,
            linestyle="--",
            linewidth=1.2,
            label="level of the batch",
        )
        self.ax_.plot(number[~alarm], p[~alarm], "o", color=QUIET, label="p-value, no drift found")
        if alarm.any():
            self.ax_.plot(
                number[alarm], p[alarm], "v", color=ALARM, markersize=9, label="p-value, drifted"
            )
        for each in [each for each in self.results if each.is_alarm][:NAMED]:
            self.ax_.annotate(
                each.features[0].name,
                (each.number, each.p_value),
                (0, -8),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=8,
                color=ALARM,
            )
        self._finish(number, p, level)
        return self

    def _finish(self, number: Any, p: Any, level: Any) -> None:
        logarithmic(self.ax_.yaxis)
        if len(number):
            self.ax_.set_ylim(min(p.min(), level.min()) / 5, 3)
            self.ax_.set_xlim(number[0] - 0.6, number[-1] + 0.6)
        if 0 < len(number) <= NAMED:
            self.ax_.set_xticks(
                number, [each.name for each in self.results], rotation=30, ha="right"
            )
        else:
            self.ax_.set_xlabel("batch")
        self.ax_.set_ylabel("p-value against the reference")
        self.ax_.legend(
            frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3, fontsize=9
        )
        without_frame(self.ax_)


def figure_of_drift(results: Sequence[DriftResult]) -> Any:
    """Return a figure of the time line, made without a screen; ``figure.savefig(...)`` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 4.4), layout="constrained")
    DriftDisplay(results).plot(figure.subplots())
    return figure
