"""Writing a figure so that the same figure gives the same file, byte for byte."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from muhat._files import atomic_write

DPI = 200
UNDATED = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Nothing about when and with which version a file was written."""


def save(figure: Any, path: str | PathLike[str]) -> None:
    """Write a figure, whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
        What to write.
    path : str or path
        Where to; its ending, .png, .svg or .pdf, says in which format.

    Raises
    ------
    FileError
        If the place cannot be written to.
    """
    from matplotlib import rc_context

    form = Path(path).suffix.lower().removeprefix(".")
    with rc_context({"svg.hashsalt": "muhat"}):
        atomic_write(path, lambda file: figure.savefig(file, format=form, dpi=DPI, metadata=UNDATED.get(form)))
