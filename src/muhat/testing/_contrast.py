"""Between which values of a text column the other side of an independence test differs most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat._text import number
from muhat.data._selection import INDICATOR
from muhat.testing._wording import quoted_name, share_texts

MIN_ROWS_PER_VALUE = 5
"""Rows that a value of a text column must have to be compared."""


@dataclass(frozen=True)
class ValueContrast:
    """The two values of a text column whose rows have the largest and the smallest mean."""

    of: str
    """The column whose means are compared: of numbers, or of zeros and ones."""
    values: tuple[str, str]
    """The indicators of both values, such as "sex = female", that of the largest mean first."""
    means: tuple[float, float]
    """The means of the column in the rows of both values."""
    is_share: bool
    """Whether the column has only zeros and ones: means are then shares of rows."""

    @classmethod
    def from_sides(
        cls, x: Array, x_names: Sequence[str] | None, y: Array, y_names: Sequence[str] | None
    ) -> ValueContrast | None:
        """Return the contrast of y between values of x, else that of x between values of y.

        None unless one side is the indicators of one text column, and the other side too or a
        single column.
        """
        if x_names is None or y_names is None:
            return None
        sides = ((x, x_names), (y, y_names))
        for (rows, names), (other, other_names) in (sides, sides[::-1]):
            is_simple = len(other_names) == 1 or are_indicators(other, other_names)
            if are_indicators(rows, names) and is_simple:
                return cls._largest(rows, names, other, other_names)
        return None

    @classmethod
    def _largest(
        cls, indicators: Array, names: Sequence[str], other: Array, other_names: Sequence[str]
    ) -> ValueContrast | None:
        """Return the contrast in the column of the other side that differs most.

        Of two indicators, which differ equally, it is the second: "yes" rather than "no".
        """
        counts = indicators.sum(axis=0)
        compared = np.flatnonzero(counts >= MIN_ROWS_PER_VALUE)
        if len(compared) < 2:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            means = (indicators.T @ other)[compared] / counts[compared, None]
            widths = np.round(means.max(axis=0) - means.min(axis=0), 12)
        if not np.isfinite(widths).all():
            return None
        place = len(widths) - 1 - int(widths[::-1].argmax())
        high, low = int(means[:, place].argmax()), int(means[:, place].argmin())
        return cls(
            other_names[place],
            (names[compared[high]], names[compared[low]]),
            (float(means[high, place]), float(means[low, place])),
            bool(np.isin(other[:, place], (0, 1)).all()),
        )

    @property
    def words(self) -> str:
        """The contrast as a sentence."""
        first, second = self.values
        if not self.is_share:
            high, low = map(number, self.means)
            mean = f"The mean of {quoted_name(self.of)} is highest for {first} ({high})"
            return f"{mean} and lowest for {second} ({low})."
        name = self.of
        if INDICATOR not in name:
            name = f"{name} = 1"
        high, low = share_texts(self.means)
        return f"{name} in {high} of the rows with {first} and in {low} of those with {second}."


def are_indicators(rows: Array, names: Sequence[str]) -> bool:
    """Return whether columns are the indicators of one text column: in each row one is 1."""
    if len(names) < 2:
        return False
    sources = set()
    for name in names:
        source, sign, _ = name.partition(INDICATOR)
        if not sign:
            return False
        sources.add(source)
    are_binary = bool(np.isin(rows, (0, 1)).all())
    return len(sources) == 1 and are_binary and bool((rows.sum(axis=1) == 1).all())
