"""What a run shows: a bar on a terminal, a line per experiment elsewhere, or nothing."""

from datetime import timedelta
from typing import TextIO

from muhat._messages import refusal

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TimeElapsedColumn
    from rich.progress import Task as BarTask
    from rich.text import Text

    from muhat.cli import progress_bars
except ImportError as problem:
    needed, advice = "the paper's experiments need packages that are not part of the core", "pip install 'muhat[paper]'"
    got = f"no {str(problem.name).split('.')[0]}"
    raise ImportError(refusal("muhat.paper", needed, got, advice), name=problem.name) from problem


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


class Lines(Progress):
    """A line for each experiment."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def written(self, name: str, table: str, seconds: float) -> None:
        """Print where the table is."""
        self.console.print(f"{name}: {table} ({_time(seconds)} of work)")

    def skipped(self, name: str, *, same_source: bool) -> None:
        """Print that the table was there."""
        note = "" if same_source else ", by source code that has changed since"
        self.console.print(f"{name}: already computed{note}")

    def interrupted(self, name: str, tasks: int, finished: int) -> None:
        """Print how to resume."""
        self.console.print(f"{name}: interrupted, {finished} of {tasks} tasks finished; the same command resumes")


class Bar(Lines):
    """The same, and meanwhile a bar for the experiment that runs."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.bars = progress_bars(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _TimeLeft(), console=self.console
        )

    def __enter__(self) -> "Progress":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def started(self, name: str, tasks: int, finished: int) -> None:
        """Draw its bar."""
        self.bar = self.bars.add_task(name, total=tasks, completed=finished, resumed=finished)

    def task_done(self) -> None:
        """Move the bar."""
        self.bars.advance(self.bar)

    def written(self, name: str, table: str, seconds: float) -> None:
        """Print a line in place of the bar."""
        self.bars.remove_task(self.bar)
        super().written(name, table, seconds)


class _TimeLeft(ProgressColumn):
    """The time left, at the speed of this run: tasks resumed from checkpoints do not count."""

    def render(self, task: BarTask) -> Text:
        """Return the time left, if a task was computed."""
        computed = task.completed - task.fields["resumed"]
        if not computed or task.elapsed is None or task.remaining is None:
            return Text("-:--:-- left")
        return Text(f"{_time(task.elapsed * task.remaining / computed)} left")


def progress_on(stream: TextIO) -> Progress:
    """Return a bar for a terminal and lines for anything else."""
    return Bar(stream) if stream.isatty() else Lines(stream)


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
