"""Dask: what a cluster of two processes on this machine costs over the streamed route."""

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.timing import Ratio, medians
from muhat import KernelMean
from muhat._arrays import Array
from muhat.gram import Nystrom

COLUMNS, CHUNK = 20, 65_536


def rows_of(path: Path, first: int, size: int) -> Array:
    """Return some rows of a file that is mapped, as batches and blocks read them."""
    return np.array(np.load(path, mmap_mode="r")[first : first + size])


class Batches:
    """The file in batches, from its beginning each time."""

    def __init__(self, path: Path, n: int) -> None:
        self.path, self.n = path, n

    def __iter__(self) -> Iterator[Array]:
        return (rows_of(self.path, first, CHUNK) for first in range(0, self.n, CHUNK))


def block(path: Path, block_info: dict) -> Array:
    """Return a block of the dask array."""
    (first, last), _ = block_info[None]["array-location"]
    return rows_of(path, first, last - first)


def overhead(n: int = 1_000_000, landmarks: int = 200, rounds: int = 1) -> Iterator[Ratio]:
    """Fit a million rows of a file: all cores of one process, and two processes of one core."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.random.default_rng(0).normal(size=(n, COLUMNS)))
        chunks = (tuple(min(CHUNK, n - first) for first in range(0, n, CHUNK)), (COLUMNS,))
        rows = da.map_blocks(
            partial(block, path), dtype=np.float64, chunks=chunks, meta=np.empty((0, 0))
        )
        with (
            LocalCluster(
                2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
            ) as cluster,
            Client(cluster),
        ):
            ours, streamed = medians(
                lambda: KernelMean(gram=Nystrom(landmarks)).fit(rows),
                lambda: KernelMean(gram=Nystrom(landmarks)).fit_batches(Batches(path, n)),
                rounds=rounds,
            )
    yield Ratio(
        f"Dask, {n:,} rows, Nyström m = {landmarks}, against the streamed route",
        ours,
        streamed,
        1.5,
    )


BENCHMARKS = {overhead: {"n": 300, "landmarks": 10}}
