"""The files of a finished experiment: its table as CSV, and settings and provenance as JSON."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from paper._experiment import Experiment, Results, Row
from paper._files import ResultsError, atomic_write
from paper._tables import from_csv, to_csv


def write_results(folder: Path, name: str, rows: Sequence[Row], about: dict[str, Any]) -> None:
    """Write the table, and then settings and provenance with a digest of the table.

    Only with both is the experiment finished.
    """
    table = to_csv(rows)
    atomic_write(table_path(folder, name), table)
    content = json.dumps({**about, "sha256": _sha256(table)}, indent=2, ensure_ascii=False)
    atomic_write(_about_path(folder, name), f"{content}\n".encode())


def read_results(folder: str | PathLike[str], name: str) -> Results:
    """Return the results of an experiment.

    Parameters
    ----------
    folder : str or path
        Where they were written to.
    name : str
        The name of the experiment.

    Raises
    ------
    ResultsError
        If they are missing or were changed since.
    """
    place = table_path(Path(folder), name)
    try:
        table = place.read_bytes()
        about = dict(json.loads(_about_path(Path(folder), name).read_bytes()))
    except (OSError, ValueError, TypeError) as problem:
        advice = f"compute them first with: python -m paper {name}"
        raise ResultsError(
            str(place), f"the results of {name} are needed", "none", advice
        ) from problem
    if about.get("sha256") != _sha256(table):
        needed, advice = f"the table of {name} as it was computed is needed", "compute it again"
        raise ResultsError(str(place), needed, "a file that was changed since", advice)
    return Results(about.pop("settings"), from_csv(table), about)


def read_finished(
    folder: str | PathLike[str], experiments: Iterable[Experiment]
) -> dict[str, Results]:
    """Return the results there are of experiments, by name, whatever version computed them.

    Those with other settings than the experiment now has are left out: its text and its figure
    are not about them.
    """
    found = {}
    for experiment in experiments:
        with suppress(ResultsError):
            results = read_results(folder, experiment.name)
            if results.settings.keys() == experiment.settings(False).keys():
                found[experiment.name] = results
    return found


def table_path(folder: Path, name: str) -> Path:
    """Return where the table of an experiment is."""
    return folder / f"{name}.csv"


def _about_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _sha256(table: bytes) -> str:
    return hashlib.sha256(table).hexdigest()
