"""Running experiments: what is finished stays finished, however a run ends."""

import json
from collections.abc import Container, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from joblib import cpu_count

from muhat.errors import MuhatError
from paper._checkpoints import Checkpoints, FinishedTask, as_json, canonical
from paper._experiment import Experiment, Results, Settings, Task
from paper._files import ResultsError, locked
from paper._progress import Progress
from paper._provenance import Provenance
from paper._results import read_results, table_path, write_results
from paper._workers import TaskCall, in_processes, process_pool

ALL_CORES = -1
"""The number of jobs that stands for one per core."""


def reproduce(
    experiments: Sequence[Experiment],
    folder: str | PathLike[str],
    *,
    quick: bool = False,
    again: bool = False,
    n_jobs: int = ALL_CORES,
    progress: Progress | None = None,
) -> None:
    """Run experiments and write a table for each, resuming an interrupted run.

    Each finished task is written to a checkpoint at once. The same call resumes a run that was
    killed: nothing finished is computed twice, and the tables are the same to the last bit,
    whatever the number of processes.

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
    progress : Progress, optional
        What is shown of the run; by default lines on stderr, and a bar on a terminal.

    Raises
    ------
    ResultsError
        If another run is writing to the folder, or it has results of other settings.
    TaskError
        If a task cannot be computed; it names the experiment and the task.
    KeyboardInterrupt
        After Ctrl-C, when the workers have ended.
    """
    place = Path(folder)
    shown = progress or Progress()
    with locked(place), process_pool(_job_count(n_jobs)) as pool:
        provenance = Provenance.from_process(place)
        runs = []
        for experiment in experiments:
            run = _Run.from_experiment(experiment, place, quick, provenance)
            there = None
            if not again:
                there = run.finished_results()
            if there is None:
                runs.append(run)
            else:
                run.skip(there, shown)
        for run in runs:
            run.compute(pool, shown)


@dataclass(frozen=True)
class _Run:
    """An experiment with its settings and its tasks, and the provenance of this run."""

    experiment: Experiment
    folder: Path
    settings: Settings
    tasks: list[Task]
    provenance: Provenance
    checkpoints: Checkpoints

    @classmethod
    def from_experiment(
        cls, experiment: Experiment, folder: Path, quick: bool, provenance: Provenance
    ) -> "_Run":
        """Return the run of an experiment.

        Settings and tasks pass through JSON, so that files hold all there is.
        """
        settings = _through_json(experiment.settings(quick))
        tasks = _through_json(experiment.tasks(settings))
        dependencies = (settings, provenance.versions, provenance.source)
        checkpoints = Checkpoints.from_dependencies(folder, experiment.name, *dependencies)
        return cls(experiment, folder, settings, tasks, provenance, checkpoints)

    def finished_results(self) -> Results | None:
        """Return the results of these settings by this version of muhat, if there are some.

        Results of other settings, by any version, would be lost: they raise ResultsError.
        """
        name = self.experiment.name
        try:
            there = read_results(self.folder, name)
        except ResultsError:
            return None
        if canonical(there.settings) != canonical(self.settings):
            needed = f"a folder without results of {name} that have other settings is needed"
            advice = "name another by --out, or write over them with --again"
            raise ResultsError(str(self.folder), needed, "one that has some", advice)
        if there.provenance["versions"].get("muhat") != self.provenance.versions["muhat"]:
            return None
        return there

    def skip(self, there: Results, progress: Progress) -> None:
        """Report results that are there already, and delete what a kill left of their run."""
        same_source = there.provenance.get("source") == self.provenance.source
        progress.skipped(self.experiment.name, same_source=same_source)
        self.checkpoints.delete()

    def compute(self, pool: ProcessPoolExecutor, progress: Progress) -> None:
        """Compute the tasks that have no checkpoint, and write the results."""
        name = self.experiment.name
        finished = self._finished()
        progress.started(name, len(self.tasks), len(finished))
        try:
            self._compute_tasks(finished, pool, progress)
            seconds = self._write()
        except KeyboardInterrupt:
            progress.interrupted(name, len(self.tasks), len(self._finished()))
            raise
        progress.written(name, str(table_path(self.folder, name)), seconds)
        self.checkpoints.delete()

    def _compute_tasks(
        self, finished: Container[int], pool: ProcessPoolExecutor, progress: Progress
    ) -> None:
        """Compute the tasks without a checkpoint and write one for each as it is finished."""
        self.checkpoints.folder.mkdir(parents=True, exist_ok=True)
        calls = []
        for number, task in enumerate(self.tasks):
            if number not in finished:
                calls.append(TaskCall(self.experiment, self.settings, number, task))
        with closing(in_processes(calls, pool)) as computed:
            for call, result in computed:
                self.checkpoints.write(call.number, call.task, result)
                progress.task_done()

    def _finished(self) -> dict[int, FinishedTask]:
        """Return the tasks that have a checkpoint, by number."""
        found = {}
        for number, task in enumerate(self.tasks):
            finished = self.checkpoints.read(number, task)
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
            **asdict(self.provenance),
            "seconds": seconds,
        }
        table = self.experiment.table(self.settings, rows)
        write_results(self.folder, self.experiment.name, table, about)
        return seconds


def _through_json(content: Any) -> Any:
    """Return content as it is read back from a file."""
    return json.loads(as_json(content))


def _job_count(n_jobs: int) -> int:
    """Return how many tasks run at a time."""
    if n_jobs == ALL_CORES:
        return int(cpu_count())
    if n_jobs < 1:
        needed = "n_jobs must be a whole number from 1, or -1 for all cores"
        raise MuhatError("reproduce", needed, n_jobs)
    return n_jobs
