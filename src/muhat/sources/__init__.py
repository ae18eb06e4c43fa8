"""Where rows come from when there are too many to hold: slices, streams and clusters."""

from muhat.sources.base import Batch, BatchError, Columns, Source, as_frame, checked_batch
from muhat.sources.dask import DaskSource, is_dask
from muhat.sources.draw import Draw, folds_of
from muhat.sources.scaling import Changed, Spread
from muhat.sources.stream import ROWS, Slices, Stream

__all__ = [
    "ROWS",
    "Batch",
    "BatchError",
    "Changed",
    "Columns",
    "DaskSource",
    "Draw",
    "Slices",
    "Source",
    "Spread",
    "Stream",
    "as_frame",
    "checked_batch",
    "folds_of",
    "is_dask",
]
