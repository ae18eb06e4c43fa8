"""Displays, which draw figures with matplotlib, and figures in files."""

from muhat.plots._comparison import FilterDisplay, LeaveOneOutDisplay, comparison_figure
from muhat.plots._conditional import LeftOutDisplay, QuantileDisplay
from muhat.plots._display import Display
from muhat.plots._draw import draw
from muhat.plots._drift import DriftDisplay, figure_of_drift
from muhat.plots._groups import (
    GroupBarsDisplay,
    GroupColumnDisplay,
    GroupDistanceDisplay,
    GroupMapDisplay,
    GroupTreeDisplay,
    figure_of_groups,
)
from muhat.plots._mean import MeanDisplay
from muhat.plots._pair import PairDisplay
from muhat.plots._pca import ComponentMapDisplay, ComponentsDisplay, figure_of_components
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
    "ComponentMapDisplay",
    "ComponentsDisplay",
    "Display",
    "DriftDisplay",
    "FeatureDifferenceDisplay",
    "FilterDisplay",
    "GroupBarsDisplay",
    "GroupColumnDisplay",
    "GroupDistanceDisplay",
    "GroupMapDisplay",
    "GroupTreeDisplay",
    "LeaveOneOutDisplay",
    "LeftOutDisplay",
    "MeanDisplay",
    "PValueMapDisplay",
    "PairDisplay",
    "PermutationDisplay",
    "QuantileDisplay",
    "StackDisplay",
    "WitnessAlongDisplay",
    "WitnessDisplay",
    "comparison_figure",
    "draw",
    "figure_of_components",
    "figure_of_drift",
    "figure_of_groups",
    "figure_of_prediction",
    "figure_of_test",
    "save",
]
