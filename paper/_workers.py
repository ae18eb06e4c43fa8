"""Tasks computed in parallel, by joblib's processes on this machine.

joblib's loky pool starts the processes, gives each one thread, and notices one that died. Three things are by hand,
because it does not do them:

- Its workers outlive a parent that is killed: an idle one waits for minutes, a busy one finishes its task. Ours hold
  the reading end of a pipe whose writing end only the parent has, and end when it closes, whatever ended the parent.
- Ctrl-C goes to all processes of a terminal, and workers of a pool print a traceback each. Ours ignore it, and are
  started while it is blocked, so that none hears it before it can ignore it. The pool's own thread that feeds them is
  waited for: cut off at the end of the process, it may leave a semaphore, which joblib warns about.
- ``joblib.Parallel`` with one job computes in the process that calls it, where BLAS has other threads and so other
  last bits. We use the pool itself, also for one worker.
"""

import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from time import perf_counter
from typing import Any, TypeAlias

from joblib.externals.loky import ProcessPoolExecutor

from muhat._arrays import BLAS_ON_ONE_THREAD
from paper._checkpoints import FinishedTask
from paper._experiment import Experiment, Settings, Task
from paper._provenance import source_digest

FEEDER, FEEDER_SECONDS = "QueueFeederThread", 10
"""What multiprocessing calls the thread that gives tasks to workers, and how long it is waited for."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
"""The environment of a worker, so that its libraries are loaded with one thread."""


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
        """Compute the task, on one thread."""
        if own_source() != self.source:
            reason = "this worker has other source code of muhat than the run was started with"
            raise TaskError(f"{self}: {reason}; start the run again.")
        start = perf_counter()
        try:
            with BLAS_ON_ONE_THREAD:
                rows = self.experiment.run(self.settings, self.task)
        except Exception as problem:
            raise TaskError(f"{self}: {type(problem).__name__}: {problem}") from problem
        return FinishedTask(rows, perf_counter() - start)


Computing: TypeAlias = Generator[tuple[TaskCall, FinishedTask], None, None]
"""Tasks as they are finished, in any order."""


@cache
def own_source() -> str:
    """Return the digest of the source code that this process was started with."""
    return source_digest()


@contextmanager
def process_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes of this machine, started with the first task; at the end they end at once, whatever they do."""
    others, pool = set(threading.enumerate()), None
    alive, held_by_parent = Pipe(duplex=False)
    try:
        with _interrupts_deferred():
            start = {"initializer": _start_worker, "initargs": (alive,), "env": ONE_THREAD}
            pool = ProcessPoolExecutor(n_jobs, timeout=None, **start)
        yield pool
    finally:
        with _interrupts_deferred():
            held_by_parent.close()
            alive.close()
            if pool is not None:
                pool.shutdown()
            for thread in set(threading.enumerate()) - others:
                if thread.name == FEEDER:
                    thread.join(FEEDER_SECONDS)


def in_processes(calls: Sequence[TaskCall], pool: ProcessPoolExecutor) -> Computing:
    """Yield tasks as the processes of a pool finish them; those that measure times are run one at a time.

    When the iteration ends early, the others end with the pool. They are not cancelled, because joblib before 1.6
    prints a traceback if workers end while the pool has cancelled tasks.
    """
    alone = calls[0].experiment.alone
    try:
        for together in [[call] for call in calls] if alone else [calls]:
            with _interrupts_deferred():
                futures = {pool.submit(call.compute): call for call in together}
            for future in as_completed(futures):
                yield futures[future], future.result()
    except BrokenProcessPool as problem:
        reason = "a worker process was ended from outside, perhaps for want of memory"
        raise TaskError(
            f"{calls[0].experiment.name}: {reason}; what was finished is kept."
        ) from problem


def _start_worker(alive: Connection) -> None:
    """Set up a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()


def _end_with_parent(alive: Connection) -> None:
    """Wait until the parent closes the pipe or is gone, and end this process at once."""
    wait_for_any([alive])
    os._exit(1)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block, where the system can; processes started in it do not get it.

    In the main thread a handler keeps it, whichever thread gets it; the signal mask is what new processes inherit.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    handler: Any = signal.getsignal(signal.SIGINT)
    received: list[bool] = []
    is_kept = callable(handler) and threading.current_thread() is threading.main_thread()
    if is_kept:
        signal.signal(signal.SIGINT, lambda *_: received.append(True))
    resource_tracker.ensure_running()  # it unblocks Ctrl-C when it is started, and would be by the first worker
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_kept:
            signal.signal(signal.SIGINT, handler)
        if received:
            handler(signal.SIGINT, None)
