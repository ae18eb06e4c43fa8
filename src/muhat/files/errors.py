"""What goes wrong with files."""

from __future__ import annotations


class FileError(ValueError):
    """A file that cannot be read or written, with one sentence that says why and what to do."""


class BatchError(FileError):
    """A batch that cannot be read. The batches before it were good, and what was made of them still is.

    Attributes
    ----------
    batch : int
        Its number, from 0.
    row : int
        The first bad row, from 0, counted through all files of a folder; the first row of the batch where no row is
        to blame. The sentence names the file, and in a text file the line.
    """

    def __init__(self, sentence: str, batch: int, row: int) -> None:
        super().__init__(sentence)
        self.batch = batch
        self.row = row

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, int, int]]:
        return BatchError, (str(self), self.batch, self.row)
