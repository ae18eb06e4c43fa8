"""Running experiments: what is finished stays finished, however a run ends."""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from tqdm import tqdm

from muhat.errors import MuhatError
from paper._checkpoints import Checkpoints, FinishedTask, through_json
from paper._experiment import Experiment, Settings, Task
from paper._files import ResultsError, locked
from paper._provenance import provenance_of
from paper._results import read_results, table_path, write_results
from paper._workers import TaskCall, in_processes, process_pool


def reproduce(
    experiments: Sequence[Experiment],
    folder: str | PathLike[str],
    *,
    quick: bool = False,
    again: bool = False,
    n_jobs: int = -1,
) -> None:
    """Run experiments and write a table for each, resuming an interrupted run.

    Each finished task is written to a checkpoint at once. The same call resumes a run that was
    killed: nothing finished is computed twice, and the tables are the same to the last bit,
    whatever the number of processes. Lines on stderr, and a bar on a terminal, say how far it is.

    Parameters
    ----------
    experiments : sequence of Experiment
        Run one after the other, each with its tasks in parallel.
    folder : str or path
        Where ``<name>.csv`` and ``<name>.json`` go; made if it is missing.
    quick : bool, default=False
        Run the small version of each experiment.
    again : bool, default=False
        Compute experiments whose results are there already, and replace results of other settings.
        Checkpoints of an interrupted run are used also then.
    n_jobs : int, default=-1
        How many tasks run at a time, each in a process of its own; -1 for one per core.

    Raises
    ------
    ResultsError
        If another run is writing to the folder, or it has results of other settings.
    TaskError
        If a task cannot be computed; it names the experiment and the task.
    KeyboardInterrupt
        After Ctrl-C, when the workers have ended.
    """
    if n_jobs == 0:
        raise MuhatError("reproduce", "n_jobs must be a number of tasks or -1", n_jobs)
    place = Path(folder)
    with locked(place):
        provenance = provenance_of(place)
        runs = []
        for experiment in experiments:
            run = _Run.from_experiment(experiment, place, quick, provenance)
            if again or not run.is_finished():
                runs.append(run)
        if runs:
            with process_pool(effective_n_jobs(n_jobs)) as pool:
                for run in runs:
                    run.compute(pool)


@dataclass(frozen=True)
class _Run:
    """An experiment with its settings and its tasks, and the provenance of this run."""

    experiment: Experiment
    folder: Path
    settings: Settings
    tasks: list[Task]
    provenance: dict[str, Any]
    checkpoints: Checkpoints

    @classmethod
    def from_experiment(
        cls, experiment: Experiment, folder: Path, quick: bool, provenance: dict[str, Any]
    ) -> "_Run":
        """Return the run of an experiment.

        Settings and tasks pass through JSON, so that files hold all there is.
        """
        settings = through_json(experiment.settings(quick))
        tasks = through_json(experiment.tasks(settings))
        dependencies = (settings, provenance["versions"], provenance["source"])
        checkpoints = Checkpoints.from_dependencies(folder, experiment.name, *dependencies)
        return cls(experiment, folder, settings, tasks, provenance, checkpoints)

    def is_finished(self) -> bool:
        """Whether there are results of these settings; those of others raise ResultsError."""
        name = self.experiment.name
        try:
            there = read_results(self.folder, name)
        except ResultsError:
            return False
        if there.settings != self.settings:
            needed = f"a folder without results of {name} that have other settings is needed"
            advice = "name another by --out, or write over them with --again"
            raise ResultsError(str(self.folder), needed, "one that has some", advice)
        note = ""
        if there.provenance["source"] != self.provenance["source"]:
            note = ", by source code that has changed since"
        _report(f"{name}: already computed{note}")
        self.checkpoints.delete()  # a kill may have left them
        return True

    def compute(self, pool: ProcessPoolExecutor) -> None:
        """Compute the tasks that have no checkpoint, and write the results."""
        name = self.experiment.name
        try:
            self._compute_tasks(pool)
            seconds = self._write()
        except KeyboardInterrupt:
            done = f"{len(self._finished())} of {len(self.tasks)} tasks finished"
            _report(f"{name}: interrupted, {done}; the same command resumes")
            raise
        work = timedelta(seconds=round(seconds))
        _report(f"{name}: {table_path(self.folder, name)} ({work} of work)")
        self.checkpoints.delete()

    def _compute_tasks(self, pool: ProcessPoolExecutor) -> None:
        """Compute the tasks without a checkpoint and write one for each as it is finished."""
        self.checkpoints.folder.mkdir(parents=True, exist_ok=True)
        finished = self._finished()
        calls = []
        for number, task in enumerate(self.tasks):
            if number not in finished:
                calls.append(TaskCall(self.experiment, self.settings, number, task))
        with tqdm(
            desc=self.experiment.name,
            total=len(self.tasks),
            initial=len(finished),
            disable=None,  # unless stderr is a terminal
            leave=False,
        ) as bar:
            for call, result in in_processes(calls, pool):
                self.checkpoints.write(call.number, result)
                bar.update()

    def _finished(self) -> dict[int, FinishedTask]:
        """Return the tasks that have a checkpoint, by number."""
        found = {}
        for number in range(len(self.tasks)):
            finished = self.checkpoints.read(number)
            if finished is not None:
                found[number] = finished
        return found

    def _write(self) -> float:
        """Write the results and return the seconds of work in them."""
        finished = self._finished()
        rows, seconds = [], 0.0
        for number in range(len(self.tasks)):
            rows.append(finished[number].rows)
            seconds += finished[number].seconds
        about = {
            "name": self.experiment.name,
            "title": self.experiment.title,
            "settings": self.settings,
            **self.provenance,
            "seconds": seconds,
        }
        table = self.experiment.table(self.settings, rows)
        write_results(self.folder, self.experiment.name, table, about)
        return seconds


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
