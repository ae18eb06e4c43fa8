"""Displays of the library: leave-one-out curves and filters of a comparison, a stacked mean, and figures in files."""

from muhat.plots._displays import Curve, Display, FilterDisplay, LeaveOneOutDisplay, comparison_figure
from muhat.plots._stack import StackDisplay
from muhat.plots._style import COLOURS, save

__all__ = [
    "COLOURS",
    "Curve",
    "Display",
    "FilterDisplay",
    "LeaveOneOutDisplay",
    "StackDisplay",
    "comparison_figure",
    "save",
]
