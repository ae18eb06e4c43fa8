"""Displays of a test: columns that differ, the null distribution, the witness, all p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from muhat._arrays import Array
from muhat._wording import p_value_text
from muhat.figures import (
    Bars,
    Plot,
    PValueMap,
    differences_bars,
    permutations_plot,
    witness_along_plot,
    witness_plot,
)
from muhat.plots._display import Display
from muhat.plots._pair import PairDisplay
from muhat.plots._style import require_matplotlib
from muhat.testing import Result, TwoSampleResult
from muhat.testing._marginals import FeatureDifference

DEFAULT_NAMES = ("X", "Y")
"""What two samples are called, unless they have names."""

LEVEL = 0.05
"""Columns with a larger corrected p-value are grey."""


@dataclass(eq=False)
class PermutationDisplay(Display):
    """The combined statistic of every permutation, as a histogram, and the observed one as a line.

    Parameters
    ----------
    permuted : array of shape (n_permutations,)
        The statistic of every permutation.
    statistic, p_value : float
        The observed one, and the share of all that are as large.
    is_complete : bool, default=False
        Whether these are all permutations that differ, instead of random ones.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import TwoSampleTest
    >>> X, Y = [[0.0], [1.0], [2.0]], [[3.0], [5.0], [4.0]]
    >>> result = TwoSampleTest("gaussian", random_state=0).test(X, Y)
    >>> len(PermutationDisplay.from_result(result).permuted)
    19
    """

    permuted: Array
    statistic: float
    p_value: float
    is_complete: bool = False

    @classmethod
    def from_result(cls, result: Result) -> Self:
        """Return the display of a test's result."""
        return cls(result.permuted, result.statistic, result.p_value, result.is_complete)

    def content(self) -> Plot:
        """Return the histogram and the line as data."""
        p = p_value_text(self.p_value, len(self.permuted), self.is_complete)
        return permutations_plot(self.permuted, self.statistic, p)


@dataclass(eq=False)
class FeatureDifferenceDisplay(Display):
    """How much every column differs between two samples, as bars, the largest first.

    Parameters
    ----------
    features : sequence of FeatureDifference
        The columns.
    names : tuple of two str
        The names of the samples; a shift is the second's mean minus the first's.
    n_permutations : int
        The number of permutations behind the p-values.
    level : float, default=0.05
        Columns with a larger corrected p-value are drawn in grey.
    is_complete : bool, default=False
        Whether these are all permutations that differ, instead of random ones.
    """

    features: Sequence[FeatureDifference]
    names: tuple[str, str]
    n_permutations: int
    level: float = LEVEL
    is_complete: bool = False

    @classmethod
    def from_result(
        cls, result: TwoSampleResult, names: tuple[str, str] | None = None, level: float = LEVEL
    ) -> Self:
        """Return the display of the result of a test of two samples."""
        largest = sorted(result.features, key=lambda each: -each.share)
        return cls(largest, _names(result, names), result.n_permutations, level, result.is_complete)

    def content(self) -> Bars:
        """Return the bars as data."""
        return differences_bars(
            self.features, self.names, self.n_permutations, self.level, self.is_complete
        )


@dataclass(eq=False)
class WitnessDisplay(Display):
    """The witness function at the rows of both samples, as histograms.

    Parameters
    ----------
    witness_x, witness_y : arrays of shape (n,) and (m,)
        The values.
    names : tuple of two str, default=('X', 'Y')
        The names of the samples.
    """

    witness_x: Array
    witness_y: Array
    names: tuple[str, str] = DEFAULT_NAMES

    @classmethod
    def from_result(cls, result: TwoSampleResult, names: tuple[str, str] | None = None) -> Self:
        """Return the display of the result of a test of two samples."""
        return cls(result.witness_x, result.witness_y, _names(result, names))

    def content(self) -> Plot:
        """Return the histograms as data."""
        return witness_plot(self.witness_x, self.witness_y, self.names)


@dataclass(eq=False)
class WitnessAlongDisplay(Display):
    """The witness function at the rows of both samples, along the feature that differs most.

    Parameters
    ----------
    name : str
        The feature.
    values_x, values_y : arrays of shape (n,) and (m,)
        Its values at the rows.
    witness_x, witness_y : arrays of shape (n,) and (m,)
        The values of the witness function there.
    names : tuple of two str, default=('X', 'Y')
        The names of the samples.
    standardized : bool, default=False
        Whether the values are standardized, which the axis then says.
    """

    name: str
    values_x: Array
    values_y: Array
    witness_x: Array
    witness_y: Array
    names: tuple[str, str] = DEFAULT_NAMES
    standardized: bool = False

    @classmethod
    def from_result(
        cls,
        result: TwoSampleResult,
        feature: int = 0,
        names: tuple[str, str] | None = None,
        standardized: bool = False,
    ) -> Self:
        """Return the display along the feature that differs most, or the next one for 1."""
        x, y = result.at_rows.columns_x[:, feature], result.at_rows.columns_y[:, feature]
        name = result.features[feature].name
        return cls(
            name, x, y, result.witness_x, result.witness_y, _names(result, names), standardized
        )

    def content(self) -> Plot:
        """Return the points as data."""
        values, witness = (self.values_x, self.values_y), (self.witness_x, self.witness_y)
        return witness_along_plot(self.name, values, witness, self.names, self.standardized)


class PValueMapDisplay(PValueMap, Display):
    """The p-value of each statistic alone, over bandwidths and λ: dark squares are small.

    Parameters
    ----------
    columns : list of str
        The kernels, each with its bandwidth.
    rows : list of str
        The statistics, each with its λ or t.
    p_values : array of shape (rows, columns)
        NaN where a kernel has no such statistic.
    best : tuple of two ints
        The row and the column of the most significant statistic.
    """


def figure_of_test(
    result: Result,
    names: tuple[str, str] | None = None,
    *,
    standardized: bool = False,
    pair: PairDisplay | None = None,
    level: float = LEVEL,
) -> Any:
    """Return a figure of a test's displays; ``figure.savefig(...)`` writes it.

    Parameters
    ----------
    result : TwoSampleResult or IndependenceResult
        What the test found.
    names : tuple of two str, default=None
        The names of two samples.
    standardized : bool, default=False
        Whether the columns were standardized, which the axes then say.
    pair : PairDisplay, default=None
        For independence, the two columns to show beside the statistic.
    level : float, default=0.05
        Columns with a larger corrected p-value are drawn in grey.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if isinstance(result, TwoSampleResult):
        figure = Figure(figsize=(12.5, 8.4), layout="constrained")
        (columns, permutations), (along, witness) = figure.subplots(2, 2)
        FeatureDifferenceDisplay.from_result(result, names, level).plot(columns)
        WitnessAlongDisplay.from_result(result, names=names, standardized=standardized).plot(along)
        WitnessDisplay.from_result(result, names).plot(witness)
    elif pair is not None:
        figure = Figure(figsize=(12.5, 4.6), layout="constrained")
        columns, permutations = figure.subplots(1, 2)
        pair.plot(columns)
    else:
        figure = Figure(figsize=(6.5, 4.6), layout="constrained")
        permutations = figure.subplots()
    PermutationDisplay.from_result(result).plot(permutations)
    return figure


def _names(result: TwoSampleResult, names: tuple[str, str] | None) -> tuple[str, str]:
    """Return the names of two samples: those given, those the result knows, or X and Y."""
    return names or getattr(result, "names", None) or DEFAULT_NAMES
