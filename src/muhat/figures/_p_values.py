"""The p-values of all statistics of a test, over kernels and λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from muhat._arrays import Array
from muhat._text import number, shortened
from muhat.figures._plot import BLUE, RED, Axis, Plot, Reading, Series
from muhat.figures._testing import NAME_LENGTH
from muhat.testing import Result, Statistic
from muhat.testing._results import short
from muhat.testing._statistics import Filtered

MAX_LABELS = 8
"""Names on each side of a map of p-values; of more, evenly spaced ones."""

MIN_SHADED_DECADES = 2.0
"""p-values from 1 down to 10 to the minus this are shaded at least, so that chance looks pale."""


@dataclass(eq=False)
class PValueMap:
    """The p-value of every statistic on its own, over kernels and λ."""

    columns: list[str]
    rows: list[str]
    p_values: Array
    best: tuple[int, int]

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the map of a test; for independence, of the smallest p over kernels of y."""
        places = []
        for each in result.tests:
            places.append((short(each.kernels[0]), _row_name(each.statistics)))
        columns, rows = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
        p_values = np.full((len(rows), len(columns)), np.nan)
        for (column, row), each in zip(places, result.tests, strict=True):
            place = rows.index(row), columns.index(column)
            p_values[place] = np.fmin(p_values[place], each.p_value)
        column, row = places[result.tests.index(result.best)]
        return cls(columns, rows, p_values, (rows.index(row), columns.index(column)))

    def content(self) -> Plot:
        """Return squares, the darker the smaller the p-value, and a dot in the most significant."""
        row, column = self.best
        digits = -np.log10(self.p_values)
        most = max(MIN_SHADED_DECADES, float(np.nanmax(digits)))
        x, y = _named_axis(self.columns), _named_axis(self.rows, from_above=True)
        squares = Series(
            "p-values",
            "cells",
            np.arange(len(self.columns)),
            np.arange(len(self.rows)),
            digits,
            colour=BLUE,
            ends=(0.0, most),
            readings=self._readings(),
        )
        best = Series(
            "most significant",
            "points",
            np.array([column]),
            np.array([row]),
            colour=RED,
            is_strong=True,
        )
        return Plot(
            "p-value of each statistic on its own; dot: the most significant",
            "Dark: a small p-value, not corrected for the number of statistics.",
            f"{len(self.rows)} by {len(self.columns)} squares; the least p-value is "
            f"{number(self.p_values[self.best])}, {self.rows[row]} with {self.columns[column]}.",
            x,
            y,
            [squares, best],
            by_point=True,
            has_legend=False,
            shades="−log₁₀ p",
        )

    def _readings(self) -> list[Reading]:
        readings = []
        for (row, column), p in np.ndenumerate(self.p_values):
            text = f"p = {number(p)}: {self.rows[row]}, {self.columns[column]}"
            readings.append((float(column), float(row), text))
        return readings


def _named_axis(names: Sequence[str], from_above: bool = False) -> Axis:
    """Return an axis with names at 0, 1, ..., of many only some."""
    ticks = []
    for place in range(0, len(names), -(-len(names) // MAX_LABELS)):
        ticks.append((float(place), shortened(names[place], NAME_LENGTH)))
    low, high = -0.5, len(names) - 0.5
    if from_above:
        low, high = high, low
    return Axis("", low, high, ticks=tuple(ticks))


def _row_name(statistics: tuple[Statistic, ...]) -> str:
    """Return the name of a statistic; λ as a share of the largest eigenvalue, if given so."""
    names = []
    for each in statistics:
        if isinstance(each, Filtered):
            names.append(each.relative)
        else:
            names.append(str(each))
    return " × ".join(names)
