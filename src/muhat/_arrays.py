"""The array type, and how a computation is cut into pieces that fit in cache and shared between cores."""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

Array: TypeAlias = npt.NDArray[Any]
Piece = TypeVar("Piece")


def share_between_cores(work: Callable[[Piece], object], pieces: Iterable[Piece]) -> None:
    """Call ``work`` on every piece, a thread per core, with BLAS held to one thread meanwhile; one piece needs none."""
    pieces = list(pieces)
    if len(pieces) == 1:
        work(pieces[0])
        return
    with BLAS_ON_ONE_THREAD, ThreadPoolExecutor(1 if _ON_ONE_CORE.is_set() else available_cores()) as threads:
        for _ in threads.map(work, pieces):
            pass


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Return how many bytes this process may still take, infinite where the system does not say."""
    limits = [math.inf]
    with suppress(OSError, ValueError, IndexError):
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        limits.append(1024.0 * float(line.split()[1]))
    with suppress(OSError, ValueError):  # a container's own limit
        group = Path("/sys/fs/cgroup")
        limits.append(float((group / "memory.max").read_text()) - float((group / "memory.current").read_text()))
    return max(min(limits), 0.0)


def stay_on_one_core() -> None:
    """Hold this process to one thread for good: what is shared between cores, BLAS and OpenMP, loaded or not yet."""
    _ON_ONE_CORE.set()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    ThreadpoolController().limit(limits=1)


_ON_ONE_CORE = Event()


class _BlasOnOneThread:
    """Hold BLAS to one thread while anyone is inside: the first to enter sets the limit, the last to leave lifts it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside = 0
        self.blas: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.blas = self.blas or ThreadpoolController()
                self.limit = self.blas.limit(limits=1)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


BLAS_ON_ONE_THREAD = _BlasOnOneThread()
"""The context to be in where matrices are so small, or threads so many, that BLAS had better not start its own."""


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Yield slices of one size, the last perhaps shorter, from start to stop."""
    return (slice(first, min(first + size, stop)) for first in range(start, stop, size))


def has_finite_sum(values: Array) -> bool:
    """Whether the sum is finite, and so every value; if not, it may be the sum alone that overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def rounding(values: Array) -> float:
    """Return the rounding unit of an array's type."""
    return float(np.finfo(values.dtype).eps)
