"""Running experiments: what is finished stays finished, however a run ends."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from muhat._arrays import available_cores
from muhat._files import FileError, check_writable
from muhat._messages import refusal
from muhat.paper.experiments.base import Experiment, Piece, Settings
from muhat.paper.reproduction.circumstances import Circumstances
from muhat.paper.reproduction.cluster import connected, do_all_on
from muhat.paper.reproduction.progress import Progress, progress_on
from muhat.paper.reproduction.results import Results, read_results, table_path, write_results
from muhat.paper.reproduction.store import Finished, PieceStore, as_json, canonical, only_run_in, sweep
from muhat.paper.reproduction.workers import PieceError, Work, do_all


def reproduce(
    experiments: Sequence[Experiment],
    folder: str | PathLike[str],
    *,
    quick: bool = False,
    again: bool = False,
    processes: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    then: Callable[[], object] | None = None,
) -> None:
    """Run experiments and write a table for each, going on where an interrupted run ended.

    Each finished piece is stored at once. A run that was killed is taken up by the same call: nothing finished is
    computed twice, and the tables are the same to the last bit, whatever the number of processes.

    Parameters
    ----------
    experiments : sequence of Experiment
        Run one after the other, each with its pieces in parallel.
    folder : str or path
        Where ``<name>.csv`` and ``<name>.json`` go; made if it is missing.
    quick : bool, default=False
        Run the small version of each experiment.
    again : bool, default=False
        Compute experiments whose results are there already. Pieces of an interrupted run are used also then.
    processes : int, optional
        How many pieces run at a time; by default one per core.
    cluster : str, optional
        The address of a dask scheduler, whose workers do the pieces instead; they need the same source code of muhat.
        What measures times still runs here.
    progress : Progress, optional
        What is told of the run; by default a bar or lines on stderr.
    then : callable, optional
        Called at the end, while no other run can write to the folder.

    Raises
    ------
    FileError
        If the folder cannot be written to, or another run is writing there.
    PieceError
        If a piece cannot be computed; it names the experiment and the piece.
    KeyboardInterrupt
        After Ctrl-C, when the workers have ended.
    """
    place = Path(folder)
    count = _count(processes)
    if cluster is not None and processes is not None:
        needed = "either processes or cluster is needed"
        raise ValueError(refusal("reproduce", needed, "both", "a cluster has as many workers as it was started with"))
    with only_run_in(place), connected(cluster) as client, progress or progress_on(sys.stderr) as told:
        sweep(place)
        for experiment in experiments:
            check_writable(table_path(place, experiment.name))
        circumstances = Circumstances.now(place)
        for experiment in experiments:
            run = _Run.of(experiment, place, quick, circumstances)
            there = None if again else run.results()
            if there is None:
                run.compute(count, client, told)
            else:
                told.done_before(experiment.name, same_source=there.about.get("source") == circumstances.source)
            run.store.forget()
        if then is not None:
            then()


@dataclass(frozen=True)
class _Run:
    """An experiment with its settings and its pieces, under the circumstances of this run."""

    experiment: Experiment
    folder: Path
    settings: Settings
    pieces: list[Piece]
    circumstances: Circumstances
    store: PieceStore

    @classmethod
    def of(cls, experiment: Experiment, folder: Path, quick: bool, circumstances: Circumstances) -> "_Run":
        """Return the run of an experiment. Settings and pieces go through JSON, so that files hold all there is."""
        settings = _through_json(experiment.settings(quick))
        pieces = _through_json(experiment.pieces(settings))
        store = PieceStore.of(folder, experiment.name, settings, circumstances.versions, circumstances.source)
        return cls(experiment, folder, settings, pieces, circumstances, store)

    def results(self) -> Results | None:
        """Return the results that are there, if they are of these settings and this version of muhat."""
        try:
            there = read_results(self.folder, self.experiment.name)
            same_version = there.about["versions"]["muhat"] == self.circumstances.versions["muhat"]
        except (FileError, LookupError, TypeError):
            return None
        return there if same_version and canonical(there.settings) == canonical(self.settings) else None

    def compute(self, processes: int, client: Any, progress: Progress) -> None:
        """Compute the pieces that are missing, in processes or on a client's cluster, and write the results."""
        name = self.experiment.name
        missing = [number for number, finished in enumerate(self._found()) if finished is None]
        progress.begun(name, len(self.pieces), len(self.pieces) - len(missing))
        try:
            if missing:
                self.store.open()
                tasks = [self._work(number) for number in missing]
                if client is None or self.experiment.alone:
                    do_all(tasks, 1 if self.experiment.alone else processes, progress.piece_done)
                else:
                    do_all_on(client, tasks, progress.piece_done)
            seconds = self._write()
        except KeyboardInterrupt:
            stored = sum(finished is not None for finished in self._found())
            progress.interrupted(name, len(self.pieces), stored)
            raise
        progress.written(name, str(table_path(self.folder, name)), seconds)

    def _found(self) -> list[Finished | None]:
        """Return every piece that is stored, and None for the others."""
        return [self.store.find(number, piece) for number, piece in enumerate(self.pieces)]

    def _work(self, number: int) -> Work:
        source = self.circumstances.source
        return Work(self.experiment, self.settings, number, self.pieces[number], self.store, source)

    def _write(self) -> float:
        """Write the results and return the seconds of work in them."""
        finished = [piece for piece in self._found() if piece is not None]
        if len(finished) < len(self.pieces):
            raise PieceError(f"{self.experiment.name}: pieces that were stored cannot be read again; start it again.")
        rows = self.experiment.table(self.settings, [piece.rows for piece in finished])
        seconds = sum(piece.seconds for piece in finished)
        about = {"name": self.experiment.name, "title": self.experiment.title, "settings": self.settings}
        write_results(
            self.folder, self.experiment.name, rows, {**about, **asdict(self.circumstances), "seconds": seconds}
        )
        return seconds


def _through_json(content: Any) -> Any:
    """Return content as it comes back from a file."""
    return json.loads(as_json(content))


def _count(processes: int | None) -> int:
    """Return how many processes to use, or refuse a number that is none."""
    if processes is None:
        return available_cores()
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ValueError(refusal("reproduce", "processes must be a whole number from 1 or None", repr(processes)))
    return processes
