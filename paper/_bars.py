"""What a run shows by rich: a bar on a terminal, a line per experiment elsewhere."""

from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TimeElapsedColumn
from rich.text import Text

from muhat.cli import progress_bars
from paper._progress import Progress


class Lines(Progress):
    """A line for each experiment."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(
            file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    def written(self, name: str, table: str, seconds: float) -> None:
        """Print where the table is."""
        self.console.print(f"{name}: {table} ({_time(seconds)} of work)")

    def skipped(self, name: str, *, same_source: bool) -> None:
        """Print that the table was there."""
        note = "" if same_source else ", by source code that has changed since"
        self.console.print(f"{name}: already computed{note}")

    def interrupted(self, name: str, tasks: int, finished: int) -> None:
        """Print how to resume."""
        self.console.print(
            f"{name}: interrupted, {finished} of {tasks} tasks finished; the same command resumes"
        )


class Bar(Lines):
    """The same, and meanwhile a bar for the experiment that runs."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.bars = progress_bars(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=self.console,
        )

    def __enter__(self) -> Progress:
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

    def render(self, task: Task) -> Text:
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
