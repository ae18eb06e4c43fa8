"""``python -m paper``: parse, call, print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from muhat.datasets import FOLDER_VARIABLE, NAMES, at_hand, load_dataset
from muhat.errors import MuhatError
from muhat.plots import save
from paper import (
    PAGES,
    Experiment,
    Page,
    TaskError,
    draw,
    evidence_page,
    read_finished,
    read_results,
    reproduce,
)
from paper._files import atomic_write
from paper.experiments.conditional_accuracy import WINE_QUALITY, wine_quality

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
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(reproduce_command)
    command: Any = typer.main.get_command(app)
    if arguments is None:
        given = sys.argv[1:]
    else:
        given = list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return command.main(given, prog_name="python -m paper", standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        say("interrupted.")
        return INTERRUPTED
    except (MuhatError, TaskError, OSError) as problem:
        say(problem)
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # else it is one of the parser's
            raise
        say(problem.format_message())
    return FAILED


def say(sentence: object) -> None:
    """Print one line on stderr."""
    print("paper:", " ".join(str(sentence).split()), file=sys.stderr)


def all_experiments() -> dict[str, Experiment]:
    """Return the experiments of all pages, by name."""
    found: dict[str, Experiment] = {}
    for page in PAGES.values():
        found.update(page.experiments)
    return found


def groups() -> dict[str, list[str]]:
    """Return the experiments of each page beyond the paper, by the name that stands for all."""
    names = {name.removesuffix("-evidence"): list(page.experiments) for name, page in PAGES.items()}
    del names["evidence"]
    return names


def _help_on_names() -> str:
    of_the_paper = ", ".join(PAGES["evidence"].experiments)
    beyond = [f"{name} for {', '.join(group)}" for name, group in groups().items()]
    return (
        f"Which: {of_the_paper}, all of these if none is named; beyond the paper, "
        f"{'; '.join(beyond)}."
    )


def reproduce_command(
    names: Annotated[list[str] | None, typer.Argument(help=_help_on_names())] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the experiments and exit.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run them small, in seconds: to see that all works.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"The folder of tables and figures; by default {RESULTS}, "
            f"with --quick {QUICK_RESULTS}."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="The file of the evidence page; by default evidence.md among the tables."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with data of table-2 and accuracy not in the package."),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Recompute finished experiments and overwrite results made with other settings.",
        ),
    ] = False,
    n_jobs: Annotated[
        int, typer.Option(help="How many tasks at a time; -1 for one per core.")
    ] = -1,
) -> None:
    """Reproduce the paper's figures and tables, and set them beside its claims on a page.

    Interrupted at any moment, the same command resumes.
    """
    if list_them:
        for experiment in all_experiments().values():
            typer.echo(f"{experiment.name:20}{experiment.title}")
        return
    chosen = _chosen(names or list(PAGES["evidence"].experiments))
    folder = out or (QUICK_RESULTS if quick else RESULTS)
    pages = _pages_of(chosen, page or folder / "evidence.md")
    if data is not None:
        os.environ[FOLDER_VARIABLE] = str(data.resolve())
    _check_data(chosen, quick)
    reproduce(chosen, folder, quick=quick, again=again, n_jobs=n_jobs)
    _write_figures(chosen, folder)
    _write_pages(pages, folder)
    if quick:
        typer.echo("Quick run, far below the paper's sizes: no verdicts.")
    for path in pages:
        typer.echo(f"Evidence: {path}")


def _chosen(names: Iterable[str]) -> list[Experiment]:
    """Return the experiments with these names, or of the groups with these names, each once."""
    known, by_group = all_experiments(), groups()
    chosen: dict[str, Experiment] = {}
    for name in names:
        if name not in known and name not in by_group:
            raise _unknown(name, [*known, *by_group])
        for each in by_group.get(name, [name]):
            chosen[each] = known[each]
    return list(chosen.values())


def _unknown(name: str, names: list[str]) -> MuhatError:
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    advice = ""
    if close:
        advice = f"did you mean {close[0]!r}?"
    return MuhatError(
        "reproduce", f"the name must be one of {', '.join(names)}", repr(name), advice
    )


def _pages_of(chosen: Iterable[Experiment], first: Path) -> dict[Path, Page]:
    """Return the pages that show any of the experiments, by their files."""
    names = {experiment.name for experiment in chosen}
    pages = {}
    for name, page in PAGES.items():
        if names & page.experiments.keys():
            path = first
            if name != "evidence":
                path = first.with_name(f"{name}.md")
            pages[path] = page
    return pages


def _write_figures(chosen: Iterable[Experiment], folder: Path) -> None:
    for experiment in chosen:
        figure = draw(experiment, read_results(folder, experiment.name))
        for ending in FORMATS:
            save(figure, folder / f"{experiment.name}{ending}")


def _write_pages(pages: dict[Path, Page], folder: Path) -> None:
    for path, page in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        finished = read_finished(folder, page.experiments.values())
        atomic_write(path, evidence_page(page, finished, folder, path).encode())


def _check_data(chosen: Iterable[Experiment], quick: bool) -> None:
    """Raise MuhatError for a folder without data or with wrong data; print what is missing."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder and not _has_data(Path(folder)):
        load_dataset("svmguide2")  # raises MuhatError and says where to get what is missing
    names = {experiment.name for experiment in chosen}
    if quick:
        return
    if "accuracy" in names:
        if "wine-quality" in all_experiments()["accuracy"].settings(False)["datasets"]:
            wine_quality()
        else:
            advice = f"--data names the folder that has {WINE_QUALITY}.csv"
            say(f"accuracy is without wine-quality; {advice}.")
    if "table-2" in names:
        for name in at_hand():
            load_dataset(name)
        missing = []
        for name in NAMES:
            if name not in at_hand():
                missing.append(name)
        if missing:
            say(f"table-2 is without {', '.join(missing)}; --data names the folder that has them.")


def _has_data(folder: Path) -> bool:
    """Whether a folder has the file of any data set."""
    for name in (*NAMES, WINE_QUALITY):
        if (folder / name).is_file() or (folder / f"{name}.csv").is_file():
            return True
    return False
