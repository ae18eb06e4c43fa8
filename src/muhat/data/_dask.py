"""Rows on a cluster: the blocks of a dask array or data frame, each summed up where it is and added in a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from operator import add, call
from typing import Any

import numpy as np

from muhat._arrays import available_cores, limit_cores
from muhat._validation import is_dask
from muhat.data._sources import (
    ArraySource,
    Columns,
    SampleBatch,
    Source,
    StreamSource,
    Sum,
    checked_batch,
    names_of,
)
from muhat.errors import MuhatError

FAN_IN = 8
"""How many sums are added at each knot of the tree."""

LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
"""Dask's setting for the size of graphs that it warns of."""


@dataclass(frozen=True)
class Block:
    """Some rows, an array or a data frame, that are, or can be made, on a worker."""

    rows: Any
    number: int
    """That of the block in its collection, from 0; empty ones count."""
    start: int
    """The number of rows before it."""


@dataclass(frozen=True)
class DaskSource(Source):
    """The rows of a dask array or data frame, on whichever scheduler the user has.

    What reaches this process is one sum, whatever the number of rows. The tree in which blocks are
    added depends on how the rows are chunked alone, and so does the sum to the last bit, not on how
    many workers there are.
    """

    blocks: tuple[Block, ...]
    """Those that are not empty, at least one."""
    columns: Columns
    example: Any
    """A made-up row, an array or a data frame, with these columns."""

    @classmethod
    def from_collection(cls, X: Any) -> DaskSource:
        """Return the rows of a dask array with two dimensions, or of a dask data frame, or refuse others."""
        from dask import delayed

        kind = type(X).__name__
        if kind not in ("Array", "DataFrame") or X.ndim != 2:
            got = f"an array of shape {X.shape}" if kind == "Array" else f"dask's {kind}"
            raise MuhatError(
                "X", "a dask array with two dimensions or a dask data frame is needed", got
            )
        if kind == "Array":
            if np.isnan(X.shape).any():
                needed, got = "the sizes of a dask array's chunks must be known", "unknown ones"
                raise MuhatError("X", needed, got, "call X.compute_chunk_sizes() first")
            X = X.rechunk({1: -1})
            rows, sizes = X.to_delayed().ravel().tolist(), X.chunks[0]
            example, types = np.ones((1, X.shape[1]), X.dtype), {X.dtype}
        else:
            rows = X.to_delayed()
            sizes = _computed(delayed(list)([delayed(len)(each) for each in rows]))
            example, types = X._meta_nonempty.iloc[:1], set(X.dtypes)
        starts = accumulate(sizes, initial=0)
        blocks = [
            Block(each, number, start)
            for number, (each, start) in enumerate(zip(rows, starts, strict=False))
        ]
        blocks = [block for block, size in zip(blocks, sizes, strict=True) if size]
        if not blocks:
            raise MuhatError("X", "at least one row is needed", "empty blocks only")
        dtype = np.dtype(np.float32 if types == {np.dtype(np.float32)} else np.float64)
        return cls(tuple(blocks), Columns(example.shape[1], dtype, names_of(example)), example)

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        from dask import delayed

        on_block = partial(
            _total_of_block, work, self.columns, len(self.blocks)
        )  # sent to the workers once
        parts = (call, partial(reduce, add), on_block)
        called, added, once = (delayed(each, pure=False, traverse=False) for each in parts)
        level = [called(once, block.rows, block.number, block.start) for block in self.blocks]
        while len(level) > 1:
            level = [added(level[first : first + FAN_IN]) for first in range(0, len(level), FAN_IN)]
        return _computed(level[0], work)


def _total_of_block(
    work: Callable[[SampleBatch], Sum],
    columns: Columns,
    n_blocks: int,
    rows: Any,
    number: int,
    start: int,
) -> Sum:
    """Return the sum over a block, in chunks that fit the cache, on no more cores than other blocks leave."""
    if hasattr(rows, "dtypes") and all(kind.kind in "fiub" for kind in rows.dtypes):
        rows = rows.astype(
            columns.dtype
        )  # what is missing in a column of whole numbers becomes NaN
    with limit_cores(max(1, available_cores() // n_blocks)):
        return ArraySource(checked_batch(rows, number, columns, start), first=start).total(work)


def _computed(wanted: Any, work: Any = None) -> Any:
    """Return the result of a delayed call on the scheduler that is set."""
    from cloudpickle import dumps  # one of dask's own dependencies
    from dask import config
    from dask.utils import parse_bytes

    limit = config.get(LARGE_GRAPH, None)  # there is one once distributed has been imported
    if limit is None or work is None:
        return wanted.compute()
    # Data in a graph would be worth a warning; the work in ours, which is there once, is not.
    with config.set({LARGE_GRAPH: parse_bytes(limit) + len(dumps(work))}):
        return wanted.compute()


def as_source(who: str, X: Any) -> Source | None:
    """Return a dask collection, what open_batches returns or a list of arrays as a source; None for rows in memory."""
    if is_dask(X):
        return DaskSource.from_collection(X)
    if hasattr(X, "shape") or hasattr(X, "__array__") or isinstance(X, str | bytes | Mapping):
        return None
    is_list = isinstance(X, list | tuple)
    if not isinstance(X, Iterable) or (
        is_list and len(getattr(next(iter(X), 0), "shape", ())) != 2
    ):
        return None
    if isinstance(X, Iterator):
        needed, advice = (
            "batches that can be iterated anew are needed",
            "give a list, or what open_batches returns",
        )
        raise MuhatError(who, needed, f"a {type(X).__name__}", advice)
    return StreamSource(X)
