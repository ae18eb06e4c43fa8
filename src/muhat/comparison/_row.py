"""One filter of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._wording import gain_text, setting_text
from muhat.filters import Shrinker


@dataclass(frozen=True, eq=False)
class Row:
    """One filter of a comparison.

    Its name, the parameter that was chosen for it, and how it does.
    """

    name: str
    filter: Shrinker
    parameter: Any
    """The chosen λ or number of iterations t; None where there is none."""
    selection: str
    """The name of the rule that chose; empty where there was nothing to choose."""
    strength: float
    """‖μ̂ − μ_λ‖/‖μ̂‖, how far μ̂ was moved: 0 is not at all, 1 is onto the target."""
    at_edge: bool
    """Whether the parameter is the first or last of its grid."""
    index: int
    grid: Array
    """The candidates, in which the parameter has this place."""
    strengths: Array
    scores: Array | None
    improvements: Array | None
    """The strength, leave-one-out score and gain of each candidate.

    The gain is 100 (LOO_KME − LOO)/R, in percent of KME's estimated risk R, computed as a gain and
    not as a difference of scores. An estimate may be above 100, the gain is not. Scores are None
    where they would take a refit for each of too many points.
    """
    standard_error: float | None
    """That of the chosen parameter's improvement, in percent too.

    From the n differences to KME of which the score is the mean, or from a thousand of them. The
    improvement of the estimate on this very sample may be off by it.
    """
    shrinkage: Array
    """s of every component, for the chosen parameter."""

    @property
    def score(self) -> float | None:
        """The leave-one-out score of the chosen parameter."""
        if self.scores is None:
            return None
        return float(self.scores[self.index])

    @property
    def improvement(self) -> float | None:
        """The chosen parameter's estimate of 100 (R − R_λ)/R.

        It is optimistic if the parameter was chosen by this estimate.
        """
        if self.improvements is None:
            return None
        return float(self.improvements[self.index])

    @property
    def gain_text(self) -> str:
        """The improvement and its standard error with equally many digits: '0.4 ± 0.5'.

        It is '–' without an improvement.
        """
        return gain_text(self.improvement, self.standard_error)

    @property
    def symbol(self) -> str:
        """The parameter's letter: λ, or t for iterations; empty without a parameter."""
        return self.filter.symbol

    @property
    def setting(self) -> str:
        """The chosen parameter as text, such as 't = 12'; empty where there is none."""
        return setting_text(self.symbol, self.parameter)

    @property
    def label(self) -> str:
        """The name as used in sentences: S-KMSE for s-kmse."""
        if self.name.endswith(("kme", "kmse")):
            return self.name.upper()
        return self.name

    def __str__(self) -> str:
        if self.symbol:
            return f"{self.name} ({self.setting})"
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the row in JSON's types, None for what is not finite."""
        numbers = (
            "name",
            "symbol",
            "parameter",
            "selection",
            "score",
            "improvement",
            "standard_error",
            "strength",
        )
        arrays = ("grid", "strengths", "scores", "improvements")
        return {name: json_safe(getattr(self, name)) for name in (*numbers, "at_edge", *arrays)}


def json_safe(value: Any) -> Any:
    """Return a value in JSON's types, None for what is not finite."""
    if isinstance(value, dict):
        return {name: json_safe(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return list(map(json_safe, value.tolist()))
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
