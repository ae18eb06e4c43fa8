"""What goes wrong with files."""

from __future__ import annotations

from muhat import sources


class FileError(ValueError):
    """A file that cannot be read or written, with one sentence that says why and what to do."""


class BatchError(FileError, sources.BatchError):
    """A batch of a file that cannot be read. The batches before it were good, and what was made of them still is.

    The sentence names the file, and in a text file the line.
    """
