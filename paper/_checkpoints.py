"""A file for each finished task, so that a run that was killed is resumed."""

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper._experiment import Row, Task
from paper._files import atomic_write

CHECKPOINTS = ".checkpoints"
"""The folder of all checkpoints, among the results."""

DIGEST_LENGTH = 16
"""Characters of a digest in the name of a folder."""


@dataclass(frozen=True)
class FinishedTask:
    """A task that is computed: its rows and the seconds it took."""

    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class Checkpoints:
    """The finished tasks of one experiment with its settings, versions and source code."""

    folder: Path

    @classmethod
    def from_dependencies(cls, results: Path, name: str, *dependencies: object) -> "Checkpoints":
        """Return the checkpoints of tasks that depend on all this and on nothing else."""
        digest = hashlib.sha256(canonical(dependencies).encode()).hexdigest()
        return cls(results / CHECKPOINTS / f"{name}-{digest[:DIGEST_LENGTH]}")

    def write(self, number: int, task: Task, finished: FinishedTask) -> None:
        """Write the checkpoint of a task."""
        content = {"task": task, "seconds": finished.seconds, "rows": finished.rows}
        atomic_write(self._path(number), as_json(content).encode())

    def read(self, number: int, task: Task) -> FinishedTask | None:
        """Return a task from its checkpoint; None if it is missing, broken or of another task."""
        try:
            content = json.loads(self._path(number).read_bytes())
            if canonical(content["task"]) == canonical(task):
                return FinishedTask(content["rows"], content["seconds"])
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return None

    def delete(self) -> None:
        """Delete them all."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # those of other experiments are there
            self.folder.parent.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"


def as_json(content: object, *, sort_keys: bool = False) -> str:
    """Return content as JSON, with NumPy's numbers and arrays as plain ones."""
    return json.dumps(content, sort_keys=sort_keys, default=_plain)


def canonical(content: object) -> str:
    """Return the same text for the same content.

    Examples
    --------
    >>> canonical({"b": (1, 2.5), "a": None})
    '{"a": null, "b": [1, 2.5]}'
    """
    return as_json(content, sort_keys=True)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")
