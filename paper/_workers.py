"""Tasks computed in parallel by processes of this machine, each on one core.

A worker outlives a parent that is killed, and a busy one finishes its task first. Ours hold the
reading end of a pipe whose writing end only the parent has. They end when it closes: because the
parent closed it, after Ctrl-C or a task that failed, or because the parent is gone.
"""

import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe, get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from time import process_time

from threadpoolctl import threadpool_limits

from paper._checkpoints import FinishedTask
from paper._experiment import Experiment, Settings, Task
from paper._provenance import source_digest

ONE_CORE_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
"""The environment of a worker: muhat and joblib then use one core."""


class TaskError(RuntimeError):
    """A task of an experiment that could not be computed."""


@dataclass(frozen=True)
class TaskCall:
    """All that a worker needs to compute a task.

    ``source`` is the digest of the source code that the run was started with.
    """

    experiment: Experiment
    settings: Settings
    number: int
    task: Task
    source: str

    def __str__(self) -> str:
        return f"{self.experiment.name}, task {self.number} {self.task}"

    def compute(self) -> FinishedTask:
        """Compute the task, with BLAS on one thread, so that its last bits are always the same."""
        if own_source() != self.source:
            reason = "this worker has other source code than the run was started with"
            raise TaskError(f"{self}: {reason}; start the run again.")
        start = process_time()
        try:
            with threadpool_limits(limits=1):
                rows = self.experiment.run(self.settings, self.task)
        except Exception as problem:
            raise TaskError(f"{self}: {type(problem).__name__}: {problem}") from problem
        return FinishedTask(rows, process_time() - start)


@cache
def own_source() -> str:
    """Return the digest of the source code that this process was started with."""
    return source_digest()


@contextmanager
def process_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that start with the first tasks; after an error they end at once."""
    alive, held_by_parent = Pipe(duplex=False)
    pool = ProcessPoolExecutor(n_jobs, get_context("spawn"), _start_worker, (alive,))
    try:
        yield pool
    except BaseException:
        held_by_parent.close()
        raise
    finally:
        pool.shutdown()
        held_by_parent.close()
        alive.close()


def in_processes(
    calls: Sequence[TaskCall], pool: ProcessPoolExecutor
) -> Generator[tuple[TaskCall, FinishedTask], None, None]:
    """Yield tasks as they are finished; those that measure times are computed one at a time."""
    groups = [calls]
    if calls[0].experiment.alone:
        groups = [[call] for call in calls]
    try:
        for group in groups:
            with _interrupts_deferred():
                futures = {pool.submit(call.compute): call for call in group}
            for future in as_completed(futures):
                yield futures[future], future.result()
    except BrokenProcessPool as problem:
        reason = "a worker process was ended from outside, perhaps for want of memory"
        message = f"{calls[0].experiment.name}: {reason}; what was finished is kept."
        raise TaskError(message) from problem


def _start_worker(alive: Connection) -> None:
    """Set up a worker: one core, no Ctrl-C, and an end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(ONE_CORE_ENVIRONMENT)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()


def _end_with_parent(alive: Connection) -> None:
    """Wait until the parent closes the pipe or is gone, and end this process at once."""
    wait_for_any([alive])
    os._exit(1)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C wait while workers are started, where the system can.

    A terminal sends it to all processes. Workers inherit the mask, so that none prints a traceback
    before it can ignore Ctrl-C.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first worker would start it, which lifts the mask
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
