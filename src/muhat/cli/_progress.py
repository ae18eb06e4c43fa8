"""Bars on a terminal while something runs: which pass over a large file, how far and how fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from muhat.cli._command_line import clear_working

if TYPE_CHECKING:
    from muhat._arrays import Array
    from muhat.data import FileBatches


MAX_QUIET_ROWS = 1000
"""Rows up to which a command takes about a second, and no progress is shown."""


def progress_bars(*columns: ProgressColumn, console: Console | None = None) -> Progress:
    """Return bars of a description and columns, on stderr by default, that vanish at the end."""
    clear_working()
    console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
    return Progress(TextColumn("{task.description}"), *columns, console=console, transient=True)


@contextmanager
def spinner(description: str, *, shown: bool) -> Iterator[None]:
    """Show on stderr, while work goes on, what it is and how long it has taken."""
    if not shown:
        yield
        return
    with progress_bars(SpinnerColumn(), TimeElapsedColumn()) as bars:
        bars.add_task(description, total=None)
        yield


class ProgressBatches:
    """Batches of a file that show on stderr how far each pass is; ``passes`` are their titles."""

    bars: Progress
    done: int

    def __init__(self, batches: FileBatches, passes: Sequence[str], *, shown: bool) -> None:
        self.batches = batches
        self.passes = passes
        self.done = 0
        self.shown = shown
        self.bars = progress_bars(
            BarColumn(bar_width=20), RowsColumn(), TimeRemainingColumn(compact=True)
        )

    def __enter__(self) -> Self:
        if self.shown:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:  # on no terminal, bars that never started print an empty line when they stop
            self.bars.stop()

    def __iter__(self) -> Iterator[Array]:
        """Yield the batches, and show how many of their rows have been worked on."""
        self.done += 1
        number = max(self.done, len(self.passes))  # the last may have to be repeated
        title = f"pass {self.done} of {number}: {self.passes[min(self.done, len(self.passes)) - 1]}"
        task = self.bars.add_task(title, total=self.batches.n)
        try:
            for batch in self.batches:
                yield batch
                self.bars.advance(task, len(batch))
        finally:
            self.bars.remove_task(task)


class RowsColumn(ProgressColumn):
    """Rows done, of how many if that is known, and how many in a second."""

    def render(self, task: Task) -> Text:
        """Return it as text."""
        text = f"{task.completed:,.0f}"
        if task.total is not None:
            text += f" of {task.total:,.0f}"
        text += " rows"
        speed = task.finished_speed or task.speed
        if speed:
            text += f", {speed:,.0f} rows/s"
        return Text(text)
