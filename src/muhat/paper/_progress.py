"""What a run reports, and to whom: a bar on a terminal, a line per experiment elsewhere, or nobody."""

from typing import TextIO

from muhat._messages import refusal

EXTRA = "pip install 'muhat[paper]'"


class Progress:
    """What a run reports to; this one shows nothing. A run enters it as a context and leaves it at the end."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, name: str, tasks: int, finished: int) -> None:
        """An experiment was started; ``finished`` of its tasks have a checkpoint of an interrupted run."""

    def task_done(self) -> None:
        """One more task of this experiment has its checkpoint."""

    def written(self, name: str, table: str, seconds: float) -> None:
        """Its table was written, after so many seconds of work."""

    def skipped(self, name: str, *, same_source: bool) -> None:
        """Its results are there; they may be from before the source code was changed."""

    def interrupted(self, name: str, tasks: int, finished: int) -> None:
        """Ctrl-C was pressed when ``finished`` of the tasks had a checkpoint."""


def progress_on(stream: TextIO) -> Progress:
    """Return a bar for a terminal and lines for anything else."""
    try:
        from muhat.paper._bars import Bar, Lines
    except ImportError as problem:
        needed, advice = "running the experiments needs packages that are not part of the core", EXTRA
        got = f"no {str(problem.name).split('.')[0]}"
        raise ImportError(refusal("muhat.paper", needed, got, advice), name=problem.name) from problem
    return Bar(stream) if stream.isatty() else Lines(stream)
