"""The processes that work: on one core each, deaf to Ctrl-C, and gone with their parent however it ends."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from threading import Thread
from time import perf_counter

from muhat._arrays import stay_on_one_core
from muhat._files import FileError
from muhat.paper.experiments.base import Experiment, Piece, Settings
from muhat.paper.reproduction.circumstances import source_digest
from muhat.paper.reproduction.store import Finished, PieceStore

SPARE = 2
"""How many pieces wait for a worker to be free: enough to keep all busy."""


class PieceError(RuntimeError):
    """A piece of an experiment that could not be computed."""


@dataclass(frozen=True)
class Work:
    """One piece of an experiment: all that a worker needs to compute and store it.

    ``source`` is the digest of the source code that the run began with.
    """

    experiment: Experiment
    settings: Settings
    number: int
    piece: Piece
    store: PieceStore
    source: str

    def __str__(self) -> str:
        return f"{self.experiment.name}, piece {self.number} {self.piece}"

    def do(self) -> None:
        """Compute the piece and store it."""
        if own_source() != self.source:
            raise PieceError(f"{self}: the source code of muhat has changed since this run began; start it again.")
        self.keep(self.compute())

    def compute(self) -> Finished:
        """Compute the piece."""
        start = perf_counter()
        with self._named():
            return Finished(self.experiment.run(self.settings, self.piece), perf_counter() - start)

    def keep(self, finished: Finished) -> None:
        """Store the piece."""
        with self._named():
            self.store.keep(self.number, self.piece, finished)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the piece's name before what goes wrong."""
        try:
            yield
        except FileError:
            raise
        except Exception as problem:
            raise PieceError(f"{self}: {type(problem).__name__}: {problem}") from problem


def do_all(tasks: Sequence[Work], processes: int, tell: Callable[[], object]) -> None:
    """Do pieces of work in parallel, and call ``tell`` after each.

    With an error or Ctrl-C the workers end at once. What they had stored by then stays.
    """
    waiting = iter(tasks)
    with _pool(min(processes, len(tasks))) as pool:
        running = _submit(pool, islice(waiting, processes + SPARE))
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                _check(future, tasks[0].experiment)
                tell()
            running |= _submit(pool, islice(waiting, len(done)))


def _check(future: "Future[None]", experiment: Experiment) -> None:
    """Raise what went wrong, if anything did."""
    try:
        future.result()
    except BrokenProcessPool as problem:
        reason = "a worker process was ended from outside, perhaps for want of memory"
        raise PieceError(f"{experiment.name}: {reason}; what was finished is kept.") from problem


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Give workers that hang on a line whose other end this process holds: when it is let go, they end."""
    context = multiprocessing.get_context("spawn")
    line, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(line,))
    try:
        yield pool
    except BaseException:
        end.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        end.close()
        line.close()


def _submit(pool: ProcessPoolExecutor, tasks: Iterator[Work]) -> "set[Future[None]]":
    """Hand over work. A worker that starts inherits that Ctrl-C is blocked, and so hears none before it is set up."""
    with _interrupts_held():
        return {pool.submit(task.do) for task in tasks}


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(line: Connection) -> None:
    """Set up a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, args=(line,), daemon=True).start()
    stay_on_one_core()


def _end_with_parent(line: Connection) -> None:
    """Wait until the parent lets go of the line or is gone, and end this process at once."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for_any([line, parent.sentinel])
    os._exit(1)


@cache
def own_source() -> str:
    """Return the digest of the source code that this worker began with."""
    return source_digest()
