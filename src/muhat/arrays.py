"""The array type, and how a computation is cut into pieces that fit in cache and shared between cores."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

Array: TypeAlias = npt.NDArray[Any]
Piece = TypeVar("Piece")


def share_between_cores(work: Callable[[Piece], object], pieces: Iterable[Piece]) -> None:
    """Call ``work`` on every piece, a thread per core, with BLAS held to one thread meanwhile."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with _blas().limit(limits=1), ThreadPoolExecutor(cores) as threads:
        for _ in threads.map(work, pieces):
            pass


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def rounding(values: Array) -> float:
    """Return the rounding unit of an array's type."""
    return float(np.finfo(values.dtype).eps)
