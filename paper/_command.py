"""``python -m paper``: parse, call, print."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from muhat.datasets import FOLDER_VARIABLE
from muhat.errors import MuhatError
from muhat.plots import save
from paper import (
    PAGES,
    Experiment,
    TaskError,
    draw,
    evidence_page,
    read_finished,
    read_results,
    reproduce,
)
from paper._files import atomic_write

RESULTS = Path("muhat-results")
QUICK_RESULTS = Path("muhat-results-quick")
"""Where results go by default."""

FORMATS = (".png", ".svg")
"""The files that each figure is written to."""

FAILED = 2
"""The exit status of a run that failed, or could not start."""

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the arguments of the process, or others; return its exit status.

    An error of the user's and a task that failed are one sentence on stderr.
    """
    try:
        _run(_parser().parse_args(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (MuhatError, TaskError, OSError) as problem:
        print("paper:", " ".join(str(problem).split()), file=sys.stderr)
        return FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="Reproduce the paper's figures and tables, and set them beside its claims on "
        "a page. Interrupted at any moment, the same command resumes.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        help="experiments, or the name of a page for all of its own; by default those of the paper",
    )
    parser.add_argument("--list", action="store_true", help="print these names and exit")
    parser.add_argument(
        "--quick", action="store_true", help="run them small, in seconds: to see that all works"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"the folder of tables and figures; by default {RESULTS}, with --quick "
        f"{QUICK_RESULTS}",
    )
    parser.add_argument(
        "--page",
        type=Path,
        help="the file of the evidence page; by default evidence.md among the tables",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="the folder with data of table-2 and accuracy that are not in the package",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="recompute finished experiments and overwrite results made with other settings",
    )
    parser.add_argument(
        "--n-jobs", type=int, default=-1, help="how many tasks at a time; -1 for one per core"
    )
    return parser


def _run(asked: argparse.Namespace) -> None:
    if asked.list:
        _print_names()
        return
    if asked.data is not None:
        os.environ[FOLDER_VARIABLE] = str(asked.data.resolve())
    _check_data_folder()
    folder = asked.out
    if folder is None:
        folder = RESULTS
        if asked.quick:
            folder = QUICK_RESULTS
    chosen = _chosen(asked.names or ["evidence"])
    reproduce(chosen, folder, quick=asked.quick, again=asked.again, n_jobs=asked.n_jobs)
    _write_figures(chosen, folder)
    if asked.quick:
        print("Quick run, far below the paper's sizes: no verdicts.")
    _write_pages(chosen, folder, asked.page or folder / "evidence.md")


def _print_names() -> None:
    for name, page in PAGES.items():
        print(f"{_short(name)}: {page.title}")
        for experiment in page.experiments.values():
            print(f"  {experiment.name:20}{experiment.title}")


def _short(page: str) -> str:
    """Return what a page is called on the command line."""
    return page.removesuffix("-evidence")


def _chosen(names: Iterable[str]) -> list[Experiment]:
    """Return the experiments with these names, or of the pages with these names, each once."""
    known = {}
    for name, page in PAGES.items():
        known[_short(name)] = list(page.experiments.values())
        for experiment in page.experiments.values():
            known[experiment.name] = [experiment]
    chosen = {}
    for name in names:
        if name not in known:
            needed = f"a name must be one of {', '.join(known)}"
            raise MuhatError("reproduce", needed, repr(name))
        for experiment in known[name]:
            chosen[experiment.name] = experiment
    return list(chosen.values())


def _check_data_folder() -> None:
    """Raise MuhatError if the folder that is named for data is none."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder and not Path(folder).is_dir():
        needed = f"--data or {FOLDER_VARIABLE} must name a folder"
        raise MuhatError("reproduce", needed, folder, "no such folder")


def _write_figures(chosen: Iterable[Experiment], folder: Path) -> None:
    for experiment in chosen:
        figure = draw(experiment, read_results(folder, experiment.name))
        for ending in FORMATS:
            save(figure, folder / f"{experiment.name}{ending}")


def _write_pages(chosen: Iterable[Experiment], folder: Path, first: Path) -> None:
    """Write the pages that show any of the experiments, that on the paper as ``first``."""
    for name, page in PAGES.items():
        if not any(experiment.name in page.experiments for experiment in chosen):
            continue
        path = first
        if name != "evidence":
            path = first.with_name(f"{name}.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        finished = read_finished(folder, page.experiments.values())
        atomic_write(path, evidence_page(page, finished, folder, path).encode())
        print(f"Evidence: {path}")
