"""``muhat reproduce``: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from muhat._files import atomic_write, check_writable
from muhat._messages import refusal, unknown_name
from muhat.datasets import FOLDER_VARIABLE, load
from muhat.paper.evidence import page as evidence_page
from muhat.paper.experiments import EXPERIMENTS, Experiment
from muhat.paper.reproduction import read_finished, read_results, reproduce
from muhat.plots import experiment_figure, save

FORMS = (".png", ".svg")
RESULTS, QUICK_RESULTS = Path("muhat-results"), Path("muhat-results-quick")
TABLE_2 = EXPERIMENTS["table-2"]


def reproduce_command(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(EXPERIMENTS)}; all if none is named.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the experiments and leave.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run them small, in seconds: to see that all works.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Where tables and figures go; by default {RESULTS}, with --quick {QUICK_RESULTS}."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Where the evidence page goes; by default evidence.md among the tables.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder with svmguide2, the data set of table-2 that is not in the package.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Compute also what is done already.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many pieces of work at a time; by default one per core.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The address of a dask scheduler, whose workers do the work instead.")
    ] = None,
) -> None:
    """Reproduce the paper's figures and tables, and write them up beside its claims.

    Interrupted at any moment, the same command goes on from there.
    """
    if list_them:
        for experiment in EXPERIMENTS.values():
            typer.echo(f"{experiment.name:14}{experiment.title}")
        return
    chosen = [_experiment(name) for name in dict.fromkeys(names or EXPERIMENTS)]
    folder = out or (QUICK_RESULTS if quick else RESULTS)
    place = page or folder / "evidence.md"
    if data is not None:
        os.environ[FOLDER_VARIABLE] = str(data.resolve())
    if os.environ.get(FOLDER_VARIABLE):
        load("svmguide2")
    elif TABLE_2 in chosen and not quick:
        _say("table-2 is without svmguide2, which is not in the package; --data names the folder that has it.")
    _check_outputs(chosen, folder, place)
    if not again:
        _check_settings(chosen, folder, quick)

    def write() -> None:
        for experiment in chosen:
            figure = experiment_figure(experiment.name, read_results(folder, experiment.name))
            for form in FORMS:
                save(figure, folder / f"{experiment.name}{form}")
        there = read_finished(folder, EXPERIMENTS.values())
        atomic_write(place, evidence_page(there, folder, place).encode())

    reproduce(chosen, folder, quick=quick, again=again, processes=processes, cluster=cluster, then=write)
    typer.echo(f"Evidence: {place}")


def _check_outputs(chosen: Iterable[Experiment], folder: Path, page: Path) -> None:
    """Refuse, before the work, a place where a file is to go and cannot; the folder of results is made if missing."""
    outputs = [page, *(folder / f"{each.name}{form}" for each in chosen for form in (".csv", ".json", *FORMS))]
    for path in outputs:
        if folder.is_dir() or path.parent.resolve() != folder.resolve():
            check_writable(path)


def _check_settings(chosen: Iterable[Experiment], folder: Path, quick: bool) -> None:
    """Refuse to write over finished results of other settings: a full run is not lost by a quick one."""
    there = read_finished(folder, chosen)
    for experiment in chosen:
        if experiment.name in there and there[experiment.name].settings != experiment.settings(quick):
            needed = f"a folder without results of {experiment.name} that have other settings is needed"
            got, advice = "one with such", "name another by --out, or write over them with --again"
            raise ValueError(refusal(str(folder), needed, got, advice))


def _experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise ValueError(unknown_name("reproduce", name, EXPERIMENTS))
    return EXPERIMENTS[name]


def _say(message: str) -> None:
    """Print one line on stderr."""
    print("muhat:", message, file=sys.stderr)
