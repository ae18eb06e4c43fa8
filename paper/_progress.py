"""What a run prints: a line for each experiment and, on a terminal, a bar meanwhile."""

import sys
from datetime import timedelta
from typing import TextIO

from tqdm import tqdm


class Progress:
    """Print a line on stderr for each experiment; a run calls the methods as it proceeds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        if stream is None:
            self.stream = sys.stderr

    def started(self, name: str, tasks: int, finished: int) -> None:
        """Draw a bar on a terminal; ``finished`` of the tasks have a checkpoint already."""
        self.bar = tqdm(
            desc=name,
            total=tasks,
            initial=finished,
            file=self.stream,
            disable=None,  # unless the stream is a terminal
            leave=False,
        )

    def task_done(self) -> None:
        """Move the bar: one more task has its checkpoint."""
        self.bar.update()

    def written(self, name: str, table: str, seconds: float) -> None:
        """Print where the table is, and how many seconds of work are in it."""
        self.bar.close()
        self._print(f"{name}: {table} ({timedelta(seconds=round(seconds))} of work)")

    def skipped(self, name: str, *, same_source: bool) -> None:
        """Print that the table was there; it may be from before the source code was changed."""
        note = ", by source code that has changed since"
        if same_source:
            note = ""
        self._print(f"{name}: already computed{note}")

    def interrupted(self, name: str, tasks: int, finished: int) -> None:
        """Print after Ctrl-C how far it came and how to resume."""
        self.bar.close()
        done = f"{finished} of {tasks} tasks finished"
        self._print(f"{name}: interrupted, {done}; the same command resumes")

    def _print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)
