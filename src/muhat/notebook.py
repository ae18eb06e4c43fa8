"""Progress bars for batches, in notebooks and on terminals."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from muhat.errors import message

__all__ = ["with_progress"]


def with_progress(batches: Iterable[Any], total: int | None = None) -> ProgressBatches:
    """Return batches that show the progress of each pass over them, by tqdm.

    Parameters
    ----------
    batches : iterable of arrays
        What ``fit_batches`` or ``compare`` takes, such as ``muhat.open_batches("big.parquet")``.
    total : int, default=None
        The number of rows, if the batches do not know it.

    Returns
    -------
    batches : ProgressBatches
        The same batches.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> batches = [np.random.default_rng(0).normal(size=(50, 2)) for _ in range(4)]
    >>> mu = KernelMean(gram="nystrom", filter="f-kmse").fit_batches(with_progress(batches, 200))
    >>> mu.n_samples_seen_
    200
    """
    if find_spec("tqdm") is None:
        needed, advice = "progress bars need tqdm", "run pip install tqdm"
        raise ImportError(message("with_progress", needed, "no tqdm", advice), name="tqdm")
    return ProgressBatches(batches, total)


class ProgressBatches:
    """Batches that show the progress of each pass over them."""

    n_passes: int

    def __init__(self, batches: Iterable[Any], total: int | None) -> None:
        self.batches = batches
        self.total = total
        self.n_passes = 0

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches, and count the rows of those that have been worked on.

        The bar appears after the first batch: taking the first batch alone is a look, not a pass.
        """
        bar = None
        try:
            for batch in self.batches:
                yield batch
                if bar is None:
                    bar = self._new_bar()
                bar.update(len(batch))
        finally:
            if bar is not None:
                bar.close()

    def _new_bar(self) -> Any:
        from tqdm.auto import tqdm

        self.n_passes += 1
        return tqdm(
            desc=f"pass {self.n_passes}",
            total=self.total or getattr(self.batches, "n", None),
            unit=" rows",
            unit_scale=True,
            disable=not _has_reader(),
        )


def _has_reader() -> bool:
    """Whether somebody looks: in a notebook or on a terminal, not in a file."""
    is_notebook = "ipykernel" in sys.modules
    return is_notebook or (sys.stderr is not None and sys.stderr.isatty())
