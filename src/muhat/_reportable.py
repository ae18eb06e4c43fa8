"""Results that can be sent around as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import muhat


class Reportable:
    """A result that has a page, which another module makes."""

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

        The same as ``muhat.report.to_html(result, ...)``.

        Parameters
        ----------
        path : str or path, default=None
            The file to write, if any.
        data : rows, tuple of them, or mapping of names to rows, default=None
            The rows of the result, as arrays, data frames or what ``read_table`` returns: the
            page then shows the distribution of every column.
        code : str, default=''
            The Python lines that reproduce it; by default those the result knows.
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
        to_html = muhat._provider("page")
        page: str = to_html(
            self,
            path,
            data=data,
            code=code,
            settings=settings,
            warnings=warnings,
            level=level,
        )
        return page
