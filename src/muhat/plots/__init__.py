"""Displays of the library: leave-one-out curves and filters of a comparison, tests, and figures in files."""

from muhat.plots._displays import Curve, Display, FilterDisplay, LeaveOneOutDisplay, comparison_figure
from muhat.plots._style import COLOURS, save
from muhat.plots._testing import PermutationDisplay, WitnessDisplay, figure_of_test

__all__ = [
    "COLOURS",
    "Curve",
    "Display",
    "FilterDisplay",
    "LeaveOneOutDisplay",
    "PermutationDisplay",
    "WitnessDisplay",
    "comparison_figure",
    "figure_of_test",
    "save",
]
