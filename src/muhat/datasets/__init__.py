"""Samples to try things on: the nine data sets of the paper's Table 2, and its synthetic family."""

from muhat.datasets._loading import (
    FOLDER_VARIABLE,
    NAMES,
    PublishedDataSet,
    at_hand,
    find_file,
    load_dataset,
    standardized,
    wine,
)
from muhat.datasets._synthetic import Draw, SyntheticFamily

__all__ = [
    "FOLDER_VARIABLE",
    "NAMES",
    "Draw",
    "PublishedDataSet",
    "SyntheticFamily",
    "at_hand",
    "find_file",
    "load_dataset",
    "standardized",
    "wine",
]
