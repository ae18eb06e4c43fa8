"""Arrays: chunks shared between cores, memory, and which eigenvalues are rounding."""

import math
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from muhat._tolerances import TINY_SHARE

Array: TypeAlias = npt.NDArray[Any]
Chunk = TypeVar("Chunk")
Found = TypeVar("Found")

_THIS_THREAD = threading.local()
"""How many cores what the thread calls may use, where that is limited."""


def share_between_cores(work: Callable[[Chunk], Found], chunks: Iterable[Chunk]) -> list[Found]:
    """Return ``work(chunk)`` of every chunk, computed by one thread per core.

    Every chunk is worked on once, and chunks are started in order. BLAS uses one thread meanwhile.
    Where threads cannot start (a browser, a restricted container), the calling thread does the
    same work in the same order.
    """
    chunks = list(chunks)
    if len(chunks) <= 1:
        return [work(chunk) for chunk in chunks]
    n_threads = min(available_cores(), len(chunks))
    if n_threads == 1:
        with BLAS_ON_ONE_THREAD, limit_cores(1):
            return [work(chunk) for chunk in chunks]
    waiting = deque(enumerate(chunks))
    found: dict[int, Found] = {}

    def work_until_done() -> None:
        while True:
            try:
                number, chunk = waiting.popleft()
            except IndexError:
                return
            found[number] = work(chunk)

    limit = partial(setattr, _THIS_THREAD, "cores", 1)
    with BLAS_ON_ONE_THREAD, ThreadPoolExecutor(n_threads, initializer=limit) as threads:
        running = []
        # The threads that did start do all the work.
        with suppress(RuntimeError):
            for _ in range(n_threads):
                running.append(threads.submit(work_until_done))
        try:
            if not running:
                with limit_cores(1):
                    work_until_done()
            for each in running:
                each.result()
        finally:
            waiting.clear()  # after an error, no further chunk is started
    return [found[number] for number in range(len(chunks))]


def available_cores() -> int:
    """Return how many cores the calling thread may use.

    These are the cores that joblib counts, which heeds affinity, a container's quota and
    ``LOKY_MAX_CPU_COUNT``, but no more than whoever runs us in parallel leaves: one in a thread of
    `share_between_cores` or of joblib, as many as joblib or dask allow a worker process by
    ``OMP_NUM_THREADS``, a share in a thread of a dask worker, and ``n_jobs`` inside
    ``joblib.parallel_config(n_jobs=...)``.
    """
    affinity = 0
    if hasattr(os, "sched_getaffinity"):
        affinity = len(os.sched_getaffinity(0))
    cores = _counted_cores(os.environ.get("LOKY_MAX_CPU_COUNT"), affinity)
    limits = [cores, getattr(_THIS_THREAD, "cores", math.inf), cores // _threads_of_dask_worker()]
    backend, n_jobs = get_active_backend()
    is_worker = multiprocessing.parent_process() is not None
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if is_worker and allowed.isdecimal():
        limits.append(int(allowed))
    elif backend.nesting_level:
        limits.append(1)
    elif n_jobs is not None and hasattr(joblib, "parallel_config"):
        # Versions of joblib without it say 1 if nothing is set.
        limits.append(joblib.effective_n_jobs(n_jobs))
    return max(1, int(min(limits)))


@lru_cache(maxsize=8)
def _counted_cores(maximum: str | None, affinity: int) -> int:
    """Return joblib's count of cores, cached: it reads files of the system.

    The arguments are the settings that it depends on.
    """
    return joblib.cpu_count()


def _threads_of_dask_worker() -> int:
    """Return how many threads a worker of dask's distributed runs here; 1 outside of its tasks."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None or not hasattr(distributed.thread_state, "execution_state"):
        return 1
    return max(1, int(distributed.get_worker().state.nthreads))


@contextmanager
def limit_cores(cores: int) -> Iterator[None]:
    """Let the calling thread use no more than this many cores."""
    before = getattr(_THIS_THREAD, "cores", math.inf)
    _THIS_THREAD.cores = min(cores, before)
    try:
        yield
    finally:
        _THIS_THREAD.cores = before


def available_memory() -> float:
    """Return how many bytes this process may still take, infinite where the system does not say."""
    limits = [math.inf]
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                limits.append(1024.0 * float(line.split()[1]))
    with suppress(OSError, ValueError):  # a container's own limit
        group = Path("/sys/fs/cgroup")
        maximum = float((group / "memory.max").read_text())
        limits.append(maximum - float((group / "memory.current").read_text()))
    return max(min(limits), 0.0)


class _BlasOnOneThread:
    """Keep BLAS on one thread while any thread is inside this context.

    The first to enter sets the limit, the last to leave lifts it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
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
"""The context in which BLAS starts no threads: matrices are small, or our threads are many."""


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Yield slices of one size, the last perhaps shorter, from start to stop."""
    return (slice(first, min(first + size, stop)) for first in range(start, stop, size))


def as_array(values: Any) -> Array:
    """Return values as an array; lists of unequal lengths become one of objects, not of numbers."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)


def float_type(is_single: bool) -> type[np.floating[Any]]:
    """Return float32 for numbers that all are, else float64."""
    if is_single:
        return np.float32
    return np.float64


def has_finite_sum(values: Array) -> bool:
    """Whether the sum is finite, and so every value; if not, perhaps only the sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def rounding(values: Array) -> float:
    """Return the rounding unit of an array's type."""
    return float(np.finfo(values.dtype).eps)


def quotient(numerator: Array, denominator: Array) -> Array:
    """Return numerator/denominator, zero where the denominator is."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    out = np.zeros(shape, np.result_type(numerator, denominator))
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def rounding_floor(gamma: Array, size: int, unit: float = 0.0) -> Array:
    """Return the largest eigenvalue that is rounding: max(size · ε, unit) · γ_max.

    This is the one rule for all of muhat. Every eigenvalue of a symmetric m × m matrix comes with
    an error of about m ε γ_max, ε being the rounding unit of its type. What is not larger is a
    rounding error of zero, and no filter may tell such eigenvalues apart.

    Parameters
    ----------
    gamma : array of shape (..., components)
        Eigenvalues in ascending order.
    size : int
        The number of rows of the matrix that was decomposed.
    unit : float, default=0.0
        The relative error of the matrix itself, where that was computed in a coarser type.

    Returns
    -------
    floor : array of shape (..., 1)
    """
    return max(size * rounding(gamma), unit) * np.maximum(gamma[..., -1:], 0)


def without_rounding(gamma: Array, size: int, unit: float = 0.0) -> Array:
    """Return the eigenvalues, with zero in place of those that are rounding."""
    return np.where(gamma <= rounding_floor(gamma, size, unit), 0, gamma)


def raised_above_zero(gamma: Array) -> Array:
    """Return the eigenvalues, none below ``TINY_SHARE`` of the largest.

    For regression, which keeps what is rounded: g_λ is smooth at zero, and new points have more of
    small components than the sample has.
    """
    return np.maximum(gamma, gamma[..., -1:] * TINY_SHARE)


def significant_eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, ascending, and eigenvectors in columns, without those that are rounding.

    The largest is always kept, so that there is one component at least.
    """
    gamma, V = np.linalg.eigh(matrix)
    kept = gamma > rounding_floor(gamma, len(gamma))
    kept[-1] = True
    return np.maximum(gamma[kept], 0), V[:, kept]
