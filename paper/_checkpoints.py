"""A file for each finished task, so that a run that was killed is resumed."""

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper._experiment import Row
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
        content = json.dumps(dependencies, sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        return cls(results / CHECKPOINTS / f"{name}-{digest[:DIGEST_LENGTH]}")

    def write(self, number: int, finished: FinishedTask) -> None:
        """Write the checkpoint of a task."""
        content = {"seconds": finished.seconds, "rows": finished.rows}
        atomic_write(self._path(number), json.dumps(content, default=_plain).encode())

    def read(self, number: int) -> FinishedTask | None:
        """Return a task from its checkpoint; None if it is missing or broken."""
        try:
            return FinishedTask(**json.loads(self._path(number).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def delete(self) -> None:
        """Delete them all."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # those of other experiments are there
            self.folder.parent.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.json"


def through_json(content: Any) -> Any:
    """Return content as it is read back from a file, with lists for tuples and arrays."""
    return json.loads(json.dumps(content, default=_plain))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")
