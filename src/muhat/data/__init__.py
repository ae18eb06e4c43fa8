"""Where rows come from: arrays, batches, files, dask; one protocol, ``Source``, carries them all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from muhat.data._dask import DaskSource, as_source
from muhat.data._sources import ArraySource, BatchError, SampleBatch, Source, StreamSource, checked_batch, is_empty
from muhat.data._summaries import ColumnMoments, ReservoirSample, folds_of, places_of

__all__ = ["BatchError", "DataSet", "FileBatches", "checked_batch", "is_empty", "open_batches", "read_table"]
__all__ += ["ArraySource", "DaskSource", "SampleBatch", "Source", "StreamSource", "as_source"]
__all__ += ["ColumnMoments", "ReservoirSample", "folds_of", "places_of"]

if TYPE_CHECKING:
    from muhat.data._files import DataSet, FileBatches, open_batches, read_table
else:

    def __getattr__(name: str) -> Any:
        """Import what reads files once it is asked for, as a fit to an array does without."""
        if name in __all__:
            return getattr(import_module("muhat.data._files"), name)
        raise AttributeError(f"module 'muhat.data' has no attribute {name!r}")
