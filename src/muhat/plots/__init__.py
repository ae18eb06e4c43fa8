"""Displays of the library: comparisons, their filters, stacked means, tests, and figures in files."""

from muhat.plots._conditional import LeftOutDisplay, QuantileDisplay
from muhat.plots._displays import (
    Curve,
    Display,
    FilterDisplay,
    LeaveOneOutDisplay,
    comparison_figure,
)
from muhat.plots._drift import DriftDisplay, figure_of_drift
from muhat.plots._groups import GroupDistanceDisplay, GroupMapDisplay
from muhat.plots._mean import MeanDisplay
from muhat.plots._pair import PairDisplay
from muhat.plots._prediction import figure_of_prediction
from muhat.plots._stack import StackDisplay
from muhat.plots._style import COLOURS, save
from muhat.plots._testing import (
    FeatureDifferenceDisplay,
    PermutationDisplay,
    PValueMapDisplay,
    WitnessAlongDisplay,
    WitnessDisplay,
    figure_of_test,
)

__all__ = [
    "COLOURS",
    "Curve",
    "Display",
    "FilterDisplay",
    "LeaveOneOutDisplay",
    "comparison_figure",
    "save",
]
__all__ += ["LeftOutDisplay", "MeanDisplay", "PairDisplay", "QuantileDisplay", "StackDisplay"]
__all__ += [
    "DriftDisplay",
    "FeatureDifferenceDisplay",
    "PValueMapDisplay",
    "PermutationDisplay",
    "WitnessAlongDisplay",
    "WitnessDisplay",
]
__all__ += ["GroupDistanceDisplay", "GroupMapDisplay"]
__all__ += ["figure_of_drift", "figure_of_prediction", "figure_of_test"]
