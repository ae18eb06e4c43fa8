"""Where rows come from: arrays, batches, files, dask.

``Source`` is the one protocol that carries them all. ``__all__`` has what users need; the other
names are for muhat's own packages.
"""

from muhat.data._dask import DaskSource as DaskSource
from muhat.data._dask import as_source as as_source
from muhat.data._errors import NoColumnError as NoColumnError
from muhat.data._errors import RowsError as RowsError
from muhat.data._files import DataSet, FileBatches, open_batches, read_table
from muhat.data._files import has_decimal_commas as has_decimal_commas
from muhat.data._indicators import alike_values_note as alike_values_note
from muhat.data._indicators import check_few_values as check_few_values
from muhat.data._indicators import indicators_of as indicators_of
from muhat.data._paths import STANDARD_INPUT as STANDARD_INPUT
from muhat.data._paths import base_name as base_name
from muhat.data._selection import INDICATOR as INDICATOR
from muhat.data._selection import ColumnSelection as ColumnSelection
from muhat.data._selection import text_column_of as text_column_of
from muhat.data._sources import CHUNK_ROWS as CHUNK_ROWS
from muhat.data._sources import ArraySource as ArraySource
from muhat.data._sources import BatchError, Source
from muhat.data._sources import SampleBatch as SampleBatch
from muhat.data._sources import StreamSource as StreamSource
from muhat.data._sources import TransformedSource as TransformedSource
from muhat.data._sources import checked_batch as checked_batch
from muhat.data._sources import is_empty as is_empty
from muhat.data._summaries import ColumnMoments as ColumnMoments
from muhat.data._summaries import ReservoirSample as ReservoirSample
from muhat.data._summaries import folds_of as folds_of
from muhat.data._summaries import hashed_rows as hashed_rows
from muhat.data._summaries import places_of as places_of

__all__ = ["BatchError", "DataSet", "FileBatches", "Source", "open_batches", "read_table"]
