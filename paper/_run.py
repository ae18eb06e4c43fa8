"""Running experiments: what is finished stays finished, however a run ends."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from joblib import cpu_count

from muhat.errors import MuhatError
from paper._checkpoints import Checkpoints, FinishedTask, as_json, canonical
from paper._experiment import Experiment, Results, Settings, Task
from paper._files import ResultsError, check_writable, locked
from paper._progress import Progress
from paper._provenance import Provenance
from paper._results import read_results, table_path, write_results
from paper._workers import TaskCall, TaskError, in_processes, process_pool

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
    then: Callable[[], object] | None = None,
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
    then : callable, optional
        Called at the end, while no other run can write to the folder.

    Raises
    ------
    ResultsError
        If the folder cannot be written to, another run is writing there, or it has results of
        other settings.
    TaskError
        If a task cannot be computed; it names the experiment and the task.
    KeyboardInterrupt
        After Ctrl-C, when the workers have ended.
    """
    place = Path(folder)
    jobs = _job_count(n_jobs)
    shown = progress or Progress()
    with locked(place):
        provenance = Provenance.from_process(place)
        runs = [_Run.from_experiment(each, place, quick, provenance) for each in experiments]
        for run in runs:
            check_writable(table_path(place, run.experiment.name))
            if not again:
                run.check_settings()
        with process_pool(jobs) as pool:
            for run in runs:
                there = None
                if not again:
                    there = run.results()
                if there is None:
                    run.compute(pool, shown)
                else:
                    same_source = there.provenance.get("source") == provenance.source
                    shown.skipped(run.experiment.name, same_source=same_source)
                run.checkpoints.delete()
        if then is not None:
            then()


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

    def check_settings(self) -> None:
        """Raise ResultsError where results of other settings, of any version, would be lost."""
        try:
            there = read_results(self.folder, self.experiment.name)
        except ResultsError:
            return
        if not self._has_these_settings(there):
            name = self.experiment.name
            needed = f"a folder without results of {name} that have other settings is needed"
            advice = "name another by --out, or write over them with --again"
            raise ResultsError(str(self.folder), needed, "one that has some", advice)

    def results(self) -> Results | None:
        """Return the results that are there, if of these settings and this version of muhat."""
        try:
            there = read_results(self.folder, self.experiment.name)
            version = there.provenance["versions"]["muhat"]
        except (ResultsError, LookupError, TypeError):
            return None
        is_current = version == self.provenance.versions["muhat"]
        if is_current and self._has_these_settings(there):
            return there
        return None

    def compute(self, pool: ProcessPoolExecutor, progress: Progress) -> None:
        """Compute the tasks that have no checkpoint, and write the results."""
        name = self.experiment.name
        missing = [number for number, finished in enumerate(self._finished()) if finished is None]
        progress.started(name, len(self.tasks), len(self.tasks) - len(missing))
        try:
            self._compute_tasks(missing, pool, progress)
            seconds = self._write()
        except KeyboardInterrupt:
            finished = sum(each is not None for each in self._finished())
            progress.interrupted(name, len(self.tasks), finished)
            raise
        progress.written(name, str(table_path(self.folder, name)), seconds)

    def _compute_tasks(
        self, numbers: list[int], pool: ProcessPoolExecutor, progress: Progress
    ) -> None:
        """Compute some of the tasks and write a checkpoint for each as it is finished."""
        if not numbers:
            return
        self.checkpoints.make_folder()
        source = self.provenance.source
        calls = [
            TaskCall(self.experiment, self.settings, number, self.tasks[number], source)
            for number in numbers
        ]
        with closing(in_processes(calls, pool)) as computed:
            for call, finished in computed:
                self.checkpoints.write(call.number, call.task, finished)
                progress.task_done()

    def _finished(self) -> list[FinishedTask | None]:
        """Return every task that has a checkpoint, and None for the others."""
        return [self.checkpoints.read(number, task) for number, task in enumerate(self.tasks)]

    def _write(self) -> float:
        """Write the results and return the seconds of work in them."""
        name = self.experiment.name
        finished = [task for task in self._finished() if task is not None]
        if len(finished) < len(self.tasks):
            raise TaskError(f"{name}: checkpoints cannot be read again; start the run again.")
        rows = self.experiment.table(self.settings, [task.rows for task in finished])
        about = {
            "name": name,
            "title": self.experiment.title,
            "settings": self.settings,
            **asdict(self.provenance),
            "seconds": sum(task.seconds for task in finished),
        }
        write_results(self.folder, name, rows, about)
        return float(about["seconds"])

    def _has_these_settings(self, results: Results) -> bool:
        return canonical(results.settings) == canonical(self.settings)


def _through_json(content: Any) -> Any:
    """Return content as it is read back from a file."""
    return json.loads(as_json(content))


def _job_count(n_jobs: int) -> int:
    """Return how many tasks run at a time."""
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_whole or not (n_jobs >= 1 or n_jobs == ALL_CORES):
        needed = "n_jobs must be a whole number from 1, or -1 for all cores"
        raise MuhatError("reproduce", needed, repr(n_jobs))
    return int(cpu_count() if n_jobs == ALL_CORES else n_jobs)
