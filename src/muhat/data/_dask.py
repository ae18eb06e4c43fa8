"""Rows on a cluster: the blocks of a dask collection, each summed on its worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, call
from typing import Any

import numpy as np

from muhat._arrays import available_cores, float_type, limit_cores
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

GRAPH_WARNING_SETTING = "distributed.admin.large-graph-warning-threshold"
"""Dask's setting for the size of graphs that it warns of."""


@dataclass(frozen=True)
class Block:
    """Some rows, an array or a data frame, held or computed by a worker."""

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
        """Return the rows of a dask array with two dimensions, or of a dask data frame."""
        from dask import delayed

        kind = type(X).__name__
        if kind not in ("Array", "DataFrame") or X.ndim != 2:
            got = f"dask's {kind}"
            if kind == "Array":
                got = f"an array of shape {X.shape}"
            needed = "a dask array with two dimensions or a dask data frame is needed"
            raise MuhatError("X", needed, got)
        if kind == "Array":
            if np.isnan(X.shape).any():
                needed = "the sizes of a dask array's chunks must be known"
                advice = "call X.compute_chunk_sizes() first"
                raise MuhatError("X", needed, "unknown ones", advice)
            X = X.rechunk({1: -1})
            rows = X.to_delayed().ravel().tolist()
            sizes = X.chunks[0]
            example = np.ones((1, X.shape[1]), X.dtype)
            types = {X.dtype}
        else:
            rows = X.to_delayed()
            sizes = _computed(delayed(list)(list(map(delayed(len), rows))))
            example = X._meta_nonempty.iloc[:1]
            types = set(X.dtypes)
        blocks = []
        start = 0
        for number, (each, size) in enumerate(zip(rows, sizes, strict=True)):
            if size:
                blocks.append(Block(each, number, start))
            start += size
        if not blocks:
            raise MuhatError("X", "at least one row is needed", "only empty blocks")
        dtype = np.dtype(float_type(types == {np.dtype(np.float32)}))
        return cls(tuple(blocks), Columns(example.shape[1], dtype, names_of(example)), example)

    def total(self, work: Callable[[SampleBatch], Sum]) -> Sum:
        from dask import delayed

        def as_task(function: Any) -> Any:
            return delayed(function, pure=False, traverse=False)

        called = as_task(call)
        added = as_task(partial(reduce, add))
        # A task of its own, so that the work is sent to the workers once.
        on_block = as_task(partial(_total_of_block, work, self.columns, len(self.blocks)))
        level = [called(on_block, block.rows, block.number, block.start) for block in self.blocks]
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
    """Return the sum over a block, in chunks that fit the cache, on its share of the cores."""
    if hasattr(rows, "dtypes") and all(kind.kind in "fiub" for kind in rows.dtypes):
        rows = rows.astype(columns.dtype)  # makes NaN of missing whole numbers
    with limit_cores(max(1, available_cores() // n_blocks)):
        return ArraySource(checked_batch(rows, number, columns, start), first=start).total(work)


def _computed(wanted: Any, work: Any = None) -> Any:
    """Return the result of a delayed call on the scheduler that is set."""
    from cloudpickle import dumps  # one of dask's own dependencies
    from dask import config
    from dask.utils import parse_bytes

    limit = config.get(
        GRAPH_WARNING_SETTING, None
    )  # there is one once distributed has been imported
    if limit is None or work is None:
        return wanted.compute()
    # Data in a graph would be worth a warning; the work in ours, which is there once, is not.
    with config.set({GRAPH_WARNING_SETTING: parse_bytes(limit) + len(dumps(work))}):
        return wanted.compute()


def as_source(who: str, X: Any) -> Source | None:
    """Return a dask collection, batches of a file or a list of arrays as a source.

    None stands for rows in memory.
    """
    if is_dask(X):
        return DaskSource.from_collection(X)
    if hasattr(X, "shape") or hasattr(X, "__array__") or isinstance(X, str | bytes | Mapping):
        return None
    if not isinstance(X, Iterable):
        return None
    if isinstance(X, list | tuple):
        first = next(iter(X), None)
        is_list_of_arrays = len(getattr(first, "shape", ())) == 2
        if not is_list_of_arrays:
            return None
    if isinstance(X, Iterator):
        needed = "batches that can be iterated more than once are needed"
        advice = "give a list, or the output of open_batches"
        raise MuhatError(who, needed, f"a {type(X).__name__}", advice)
    return StreamSource(X)
