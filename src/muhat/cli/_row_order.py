"""A hint where rows that follow each other in a file are alike, as in a time series."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from muhat._arrays import Array, quotient

MAX_ROWS = 20_000
"""Rows of each sample that are looked at, the first ones."""

MIN_CORRELATION, MIN_DEVIATIONS = 0.2, 4
"""Rank autocorrelation that is named: the least, and its least size in standard deviations."""


@dataclass(frozen=True)
class Autocorrelation:
    """The largest lag-1 rank autocorrelation over the columns of some samples."""

    column: str
    value: float
    is_clear: bool
    """Whether rows in random order would hardly ever have as much."""

    @classmethod
    def from_samples(cls, samples: Sequence[Array], columns: Sequence[str]) -> Autocorrelation:
        """Return it for rows in their order; 0 if none is clearly beyond chance."""
        largest = cls(columns[0], 0.0, False)
        for rows in samples:
            if len(rows) < 3:
                continue
            values = _rank_autocorrelations(rows[:MAX_ROWS])
            place = int(values.argmax())
            value = float(values[place])
            # in random order it is about normal, of variance 1/n
            least = max(MIN_CORRELATION, MIN_DEVIATIONS / min(len(rows), MAX_ROWS) ** 0.5)
            if value >= least and value > largest.value:
                largest = cls(columns[place], value, True)
        return largest


def warn_of_alike_rows(
    samples: Sequence[Array], columns: Sequence[str], advice: str = "", where: str = ""
) -> None:
    """Warn if rows that follow each other are alike beyond chance: p may then be too small.

    ``advice`` names an option that helps, and ``where`` the file.
    """
    found = Autocorrelation.from_samples(samples, columns)
    if found.is_clear:
        alike = f"rows that follow each other are alike in {found.column}"
        measured = f"rank correlation of neighbours {found.value:.2f}"
        reason = "unless the file was sorted, rows are not independent, and p is too small"
        parts = filter(None, [where, f"{alike} ({measured})", reason])
        warnings.warn(f"{': '.join(parts)}{advice}.", UserWarning, stacklevel=2)


def _rank_autocorrelations(rows: Array) -> Array:
    """Return Spearman's correlation of each column with itself one row later; 0 for constants."""
    ranks = rankdata(rows, axis=0)
    first, second = (each - each.mean(axis=0) for each in (ranks[:-1], ranks[1:]))
    scales = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return quotient((first * second).sum(axis=0), scales)
