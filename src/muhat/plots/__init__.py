"""Pictures: of a comparison of estimators on a sample, and of the experiments that reproduce the paper."""

from muhat.paper.plots.experiments import experiment_figure
from muhat.plots._comparison import Curve, Display, FilterDisplay, LeaveOneOutDisplay, comparison_figure
from muhat.plots._saving import save
from muhat.plots._style import COLOURS, MARKERS, NAMES

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
