"""Results that can be sent around as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import Any

from muhat._files import atomic_write, check_writable


class Reportable:
    """A result that ``muhat.report`` has a page for; the page is made from it, and is no part of it."""

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        data: Any = None,
        code: str = "",
        settings: Mapping[str, Any] | None = None,
        warnings: Sequence[str] | None = None,
        level: float = 0.05,
    ) -> str:
        """Return the result as one HTML page that needs no network, and write it to a file.

        Parameters
        ----------
        path : str or path, default=None
            Where it is written; nowhere if not given.
        data : rows, tuple of them, or mapping of names to rows, default=None
            The rows that the result is of, as arrays, data frames or what ``read_table`` returns: the page then shows
            the distribution of every column.
        code : str, default=''
            The Python lines that reproduce it; by default what the result knows of them.
        settings : mapping, default=None
            Settings that the page lists, such as the seed.
        warnings : sequence of str, default=None
            Warnings that the page shows; an empty list says that there were none.
        level : float, default=0.05
            The level of the verdict of a test.

        Returns
        -------
        html : str
            The page.
        """
        if path is not None:
            check_writable(path)
        report = import_module("muhat.report")  # which is made of results, and so comes after them
        page = report.render(
            report.report_of(self, report.Context(data, code, settings or {}, warnings, level))
        )
        if path is not None:
            atomic_write(path, page.encode())
        return page
