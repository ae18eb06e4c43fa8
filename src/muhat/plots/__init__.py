"""Pictures: of a comparison of estimators on a sample, and of the experiments that reproduce the paper."""

from muhat.plots.comparison import Curve, Display, FilterDisplay, LeaveOneOutDisplay, comparison_figure
from muhat.plots.experiments import experiment_figure
from muhat.plots.saving import save
from muhat.plots.style import COLOURS, MARKERS, NAMES

__all__ = [
    "COLOURS",
    "MARKERS",
    "NAMES",
    "Curve",
    "Display",
    "FilterDisplay",
    "LeaveOneOutDisplay",
    "comparison_figure",
    "experiment_figure",
    "save",
]
