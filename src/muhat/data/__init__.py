"""Where rows come from: arrays, batches, files, dask; one protocol, ``Source``, carries them all."""

from muhat.data._copies import row_hashes
from muhat.data._dask import DaskSource, as_source
from muhat.data._files import (
    STANDARD_INPUT,
    DataSet,
    FileBatches,
    base_name,
    check_few_values,
    indicators_of,
    open_batches,
    read_table,
)
from muhat.data._formats import INDICATOR, NoColumnError, RowsError, Wanted, text_column_of
from muhat.data._sources import (
    ROWS,
    ArraySource,
    BatchError,
    SampleBatch,
    Source,
    StreamSource,
    TransformedSource,
    checked_batch,
    is_empty,
)
from muhat.data._summaries import ColumnMoments, ReservoirSample, folds_of, hashed_rows, places_of

__all__ = [
    "BatchError",
    "DataSet",
    "FileBatches",
    "checked_batch",
    "is_empty",
    "open_batches",
    "read_table",
]
__all__ += [
    "ArraySource",
    "DaskSource",
    "SampleBatch",
    "Source",
    "StreamSource",
    "TransformedSource",
    "as_source",
]
__all__ += ["ROWS", "ColumnMoments", "ReservoirSample", "folds_of", "hashed_rows", "places_of"]
__all__ += ["INDICATOR", "STANDARD_INPUT", "NoColumnError", "RowsError", "Wanted"]
__all__ += ["base_name", "check_few_values", "indicators_of", "row_hashes", "text_column_of"]
