"""Samples to try things on: the nine data sets of the paper's Table 2, and its synthetic family."""

from muhat.datasets.base import DataSet, standardised
from muhat.datasets.catalogue import NAMES
from muhat.datasets.loading import FOLDER_VARIABLE, at_hand, load, wine
from muhat.datasets.synthetic import Draw, SyntheticFamily

__all__ = ["FOLDER_VARIABLE", "NAMES", "DataSet", "Draw", "SyntheticFamily", "at_hand", "load", "standardised", "wine"]
