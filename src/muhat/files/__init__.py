"""Files in and out: a sample is read whole or in batches, a result is written whole, or one sentence says why not."""

from muhat.files.batches import FileBatches, open_batches
from muhat.files.errors import BatchError, FileError
from muhat.files.reading import read_table
from muhat.files.writing import check_writable, write_whole

__all__ = ["BatchError", "FileBatches", "FileError", "check_writable", "open_batches", "read_table", "write_whole"]
