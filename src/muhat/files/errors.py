"""What goes wrong with files."""


class FileError(ValueError):
    """A file that cannot be read or written, with one sentence that says why and what to do."""
