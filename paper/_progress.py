"""What a run reports while it goes on."""


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
