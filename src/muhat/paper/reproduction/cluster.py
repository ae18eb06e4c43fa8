"""Pieces of work on a dask cluster that is running already; they come back and are stored here."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat._messages import refusal
from muhat.paper.reproduction.store import Finished
from muhat.paper.reproduction.workers import PieceError, Work, own_source

PATIENCE = 10
"""Seconds until a scheduler must have answered."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give a client of the scheduler at an address, or none for none; refuse an address that does not answer."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as problem:
        needed, advice = "a cluster needs dask", "install muhat[dask]"
        raise ValueError(refusal("reproduce", needed, f"no package {problem.name!r}", advice)) from problem
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        needed, advice = "the address of a dask scheduler that answers is needed", "such as tcp://127.0.0.1:8786"
        raise ValueError(refusal("reproduce", needed, repr(address), advice)) from problem
    with client:
        yield client


def do_all_on(client: Any, tasks: Sequence[Work], tell: Callable[[], object]) -> None:
    """Do pieces of work on a cluster, store each as it comes back, and call ``tell`` after it.

    With an error or Ctrl-C no other piece is begun; those that workers are at end unheard.
    """
    from distributed import KilledWorker, as_completed

    futures = dict(zip(client.map(_compute, tasks, pure=False), tasks, strict=True))
    try:
        for future in as_completed(futures, loop=client.loop):
            futures[future].keep(future.result())
            future.release()
            tell()
    except (KilledWorker, CancelledError) as problem:
        reason = "the cluster lost a piece of work, its workers or its scheduler being gone"
        raise PieceError(f"{tasks[0].experiment.name}: {reason}; what was finished is kept.") from problem
    finally:
        client.cancel(list(futures))


def _compute(task: Work) -> Finished:
    """Compute a piece on a worker, whose own threads stay as they are but for the time it takes."""
    if own_source() != task.source:
        raise PieceError(f"{task}: the source code of muhat is another on the cluster; install this one there.")
    with BLAS_ON_ONE_THREAD:
        return task.compute()
