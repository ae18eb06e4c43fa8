"""Samples to try things on: the nine data sets of the paper's Table 2, and its synthetic family."""

from muhat.data import DataSet
from muhat.paper.datasets._loading import FOLDER_VARIABLE, NAMES, at_hand, load_dataset, standardized, wine
from muhat.paper.datasets._synthetic import Draw, SyntheticFamily

__all__ = [
    "FOLDER_VARIABLE",
    "NAMES",
    "DataSet",
    "Draw",
    "SyntheticFamily",
    "at_hand",
    "load_dataset",
    "standardized",
    "wine",
]
