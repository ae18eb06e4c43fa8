"""What a run tells while it goes on: a bar on a terminal, a line per experiment elsewhere, or nothing."""

from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text


class Progress:
    """What a run tells; this one keeps it to itself. A run enters it as a context and leaves it at the end."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begun(self, name: str, pieces: int, stored: int) -> None:
        """An experiment begins; ``stored`` of its pieces are there from a run that was interrupted."""

    def piece_done(self) -> None:
        """One more piece of this experiment is computed and stored."""

    def written(self, name: str, table: str, seconds: float) -> None:
        """Its table is written, after so many seconds of work."""

    def done_before(self, name: str, *, same_source: bool) -> None:
        """Nothing is to do; the table may be from before the source code was changed."""

    def interrupted(self, name: str, pieces: int, stored: int) -> None:
        """Ctrl-C was pressed when ``stored`` of the pieces were there."""


class Lines(Progress):
    """A line for each experiment."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def written(self, name: str, table: str, seconds: float) -> None:
        """Say where the table is."""
        self.console.print(f"{name}: {table} ({_time(seconds)} of work)")

    def done_before(self, name: str, *, same_source: bool) -> None:
        """Say that the table was there."""
        note = "" if same_source else ", by source code that has changed since"
        self.console.print(f"{name}: done before{note}")

    def interrupted(self, name: str, pieces: int, stored: int) -> None:
        """Say how to go on."""
        self.console.print(f"{name}: interrupted, {stored} of {pieces} pieces done; the same command goes on from here")


class Bar(Lines):
    """The same, and meanwhile a bar for the experiment that runs."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        description = TextColumn("{task.description}")
        columns = [description, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _TimeLeft()]
        self.bars = Bars(*columns, console=self.console, transient=True)

    def __enter__(self) -> "Progress":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def begun(self, name: str, pieces: int, stored: int) -> None:
        """Draw its bar."""
        self.task = self.bars.add_task(name, total=pieces, completed=stored, stored=stored)

    def piece_done(self) -> None:
        """Move the bar."""
        self.bars.advance(self.task)

    def written(self, name: str, table: str, seconds: float) -> None:
        """Put a line in place of the bar."""
        self.bars.remove_task(self.task)
        super().written(name, table, seconds)


class _TimeLeft(ProgressColumn):
    """The time left, at the speed of this run: pieces stored before it do not count."""

    def render(self, task: Task) -> Text:
        """Return the time left, if a piece was computed."""
        computed = task.completed - task.fields["stored"]
        if not computed or task.elapsed is None or task.remaining is None:
            return Text("-:--:-- left")
        return Text(f"{_time(task.elapsed * task.remaining / computed)} left")


def progress_on(stream: TextIO) -> Progress:
    """Return a bar for a terminal and lines for anything else."""
    return Bar(stream) if stream.isatty() else Lines(stream)


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
