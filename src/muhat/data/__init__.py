"""Where rows come from: arrays, batches, files, dask; one protocol, ``Source``, carries them all."""

from muhat.data._batches import BatchError, Columns, SampleBatch, Source, checked_batch
from muhat.data._dask import DaskSource
from muhat.data._errors import FileBatchError
from muhat.data._file_batches import FileBatches, open_batches
from muhat.data._reading import read_table
from muhat.data._reservoir import ReservoirSample, folds_of
from muhat.data._standardize import ColumnMoments, TransformedSource
from muhat.data._stream import ROWS, ArraySource, StreamSource

__all__ = [
    "ROWS",
    "ArraySource",
    "BatchError",
    "ColumnMoments",
    "Columns",
    "DaskSource",
    "FileBatchError",
    "FileBatches",
    "ReservoirSample",
    "SampleBatch",
    "Source",
    "StreamSource",
    "TransformedSource",
    "checked_batch",
    "folds_of",
    "open_batches",
    "read_table",
]
