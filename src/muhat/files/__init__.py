"""Files in and out: a sample is read whole, a result is written whole, or one sentence says why not."""

from muhat.files.errors import FileError
from muhat.files.reading import read_table
from muhat.files.writing import check_writable, write_whole

__all__ = ["FileError", "check_writable", "read_table", "write_whole"]
