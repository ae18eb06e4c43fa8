"""Tasks computed in parallel by processes of this machine, each on one core.

A worker would outlive a parent that is killed, and a busy one would finish its task first. Ours
wait in a thread for the end of the parent, which itself kills them after Ctrl-C or a task that
failed.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from time import process_time

from threadpoolctl import threadpool_limits

from paper._checkpoints import FinishedTask
from paper._experiment import Experiment, Settings, Task

ONE_CORE_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
"""The environment of a worker: muhat and joblib then use one core."""


class TaskError(RuntimeError):
    """A task of an experiment that could not be computed."""


@dataclass(frozen=True)
class TaskCall:
    """All that a worker needs to compute a task."""

    experiment: Experiment
    settings: Settings
    number: int
    task: Task

    def compute(self) -> FinishedTask:
        """Compute the task, with BLAS on one thread, so that its last bits are always the same."""
        start = process_time()
        try:
            with threadpool_limits(limits=1):
                rows = self.experiment.run(self.settings, self.task)
        except Exception as problem:
            place = f"{self.experiment.name}, task {self.number} {self.task}"
            raise TaskError(f"{place}: {type(problem).__name__}: {problem}") from problem
        return FinishedTask(rows, process_time() - start)


@contextmanager
def process_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that compute tasks; after an error they end at once."""
    others = active_children()
    pool = ProcessPoolExecutor(n_jobs, get_context("spawn"), _start_worker)
    try:
        # A terminal sends Ctrl-C to all processes. Workers inherit that they ignore it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for _ in range(n_jobs):  # each submission starts one worker, as no other is ready yet
            pool.submit(os.getpid)
        signal.signal(signal.SIGINT, handler)
        yield pool
    except BaseException:
        for worker in set(active_children()).difference(others):
            worker.kill()
        raise
    finally:
        pool.shutdown()


def in_processes(
    calls: Sequence[TaskCall], pool: ProcessPoolExecutor
) -> Iterator[tuple[TaskCall, FinishedTask]]:
    """Yield tasks as they are finished; those that measure times are computed one at a time."""
    together = max(1, len(calls))
    if calls and calls[0].experiment.alone:
        together = 1
    try:
        for start in range(0, len(calls), together):
            futures = {}
            for call in calls[start : start + together]:
                futures[pool.submit(call.compute)] = call
            for future in as_completed(futures):
                yield futures[future], future.result()
    except BrokenProcessPool as problem:
        reason = "a worker process was ended from outside, perhaps for want of memory"
        message = f"{calls[0].experiment.name}: {reason}; what was finished is kept."
        raise TaskError(message) from problem


def _start_worker() -> None:
    """Set up a worker: one core, and an end with its parent."""
    os.environ.update(ONE_CORE_ENVIRONMENT)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent is gone, and end this process at once."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
