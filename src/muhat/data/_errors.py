"""What goes wrong with batches of a file."""

from __future__ import annotations

from muhat._files import FileError
from muhat.data._batches import BatchError


class FileBatchError(FileError, BatchError):
    """A batch of a file that cannot be read. The batches before it were good, and what was made of them still is.

    The sentence names the file, and in a text file the line.
    """
