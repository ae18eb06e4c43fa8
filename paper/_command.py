"""``python -m paper``: parse, call, print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from muhat.datasets import FOLDER_VARIABLE, NAMES, at_hand, load_dataset
from muhat.errors import MuhatError
from muhat.plots import save
from paper import (
    EXPERIMENTS,
    PAGES,
    Experiment,
    TaskError,
    draw,
    evidence_page,
    read_finished,
    read_results,
    reproduce,
)
from paper._files import atomic_write, check_writable
from paper.conditional_accuracy import WINE_QUALITY, wine_quality

FORMATS = (".png", ".svg")
RESULTS, QUICK_RESULTS = Path("muhat-results"), Path("muhat-results-quick")

ALL: dict[str, Experiment] = {
    name: each for page in PAGES.values() for name, each in page.experiments.items()
}
"""The experiments of all pages."""

GROUPS = {
    name.removesuffix("-evidence"): list(page.experiments)
    for name, page in PAGES.items()
    if name != "evidence"
}
"""The experiments of a page beyond the paper, by the name that stands for all of them."""

LIST = ", "

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
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            command = typer.main.get_command(app)
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


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Which: {', '.join(EXPERIMENTS)}, all of these if none is named; beyond the paper, "
            f"{'; '.join(f'{name} for {LIST.join(group)}' for name, group in GROUPS.items())}."
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the experiments and exit.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run them small, in seconds: to see that all works.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"The folder of tables and figures; by default {RESULTS}, with --quick {QUICK_RESULTS}."
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
        typer.Option(
            help="The folder with data of table-2 and accuracy that are not in the package."
        ),
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
        for experiment in ALL.values():
            typer.echo(f"{experiment.name:20}{experiment.title}")
        return
    wanted = [each for name in names or EXPERIMENTS for each in GROUPS.get(name, [name])]
    chosen = [_experiment(name) for name in dict.fromkeys(wanted)]
    folder = out or (QUICK_RESULTS if quick else RESULTS)
    first = page or folder / "evidence.md"
    pages = {
        first if name == "evidence" else first.with_name(f"{name}.md"): each
        for name, each in PAGES.items()
        if not {experiment.name for experiment in chosen}.isdisjoint(each.experiments)
    }
    if data is not None:
        os.environ[FOLDER_VARIABLE] = str(data.resolve())
    _check_data(chosen, quick)
    _check_outputs(chosen, folder, pages)

    def write() -> None:
        for experiment in chosen:
            figure = draw(experiment, read_results(folder, experiment.name))
            for form in FORMATS:
                save(figure, folder / f"{experiment.name}{form}")
        for path, shown in pages.items():
            finished = read_finished(folder, shown.experiments.values())
            atomic_write(path, evidence_page(shown, finished, folder, path).encode())

    reproduce(chosen, folder, quick=quick, again=again, n_jobs=n_jobs, then=write)
    if quick:
        typer.echo("Quick run, far below the paper's sizes: no verdicts.")
    for path in pages:
        typer.echo(f"Evidence: {path}")


def _experiment(name: str) -> Experiment:
    if name not in ALL:
        names = [*ALL, *GROUPS]
        close = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
        advice = f"did you mean {close[0]!r}?" if close else ""
        needed = f"the name must be one of {', '.join(names)}"
        raise MuhatError("reproduce", needed, repr(name), advice)
    return ALL[name]


def _check_data(chosen: Iterable[Experiment], quick: bool) -> None:
    """Refuse, before the work, a named folder without data and data with other values; print what is missing."""
    folder = os.environ.get(FOLDER_VARIABLE)
    known = (f"{name}{ending}" for name in (*NAMES, WINE_QUALITY) for ending in (".csv", ""))
    if folder and not any(Path(folder, name).is_file() for name in known):
        load_dataset(
            "svmguide2"
        )  # it refuses the folder, and says where to get what it should hold
    if ALL["accuracy"] in chosen and not quick:
        if "wine-quality" in ALL["accuracy"].settings(False)["datasets"]:
            wine_quality()
        else:
            say(
                f"accuracy is without wine-quality; --data names the folder that has {WINE_QUALITY}.csv."
            )
    if EXPERIMENTS["table-2"] in chosen and not quick:
        for name in at_hand():
            load_dataset(name)
        missing = [name for name in NAMES if name not in at_hand()]
        if missing:
            say(f"table-2 is without {', '.join(missing)}; --data names the folder that has them.")


def _check_outputs(chosen: Iterable[Experiment], folder: Path, pages: Iterable[Path]) -> None:
    """Refuse, before the work, a place where a file is to go and cannot; the folder of results is made if missing."""
    outputs = [
        *pages,
        *(folder / f"{each.name}{form}" for each in chosen for form in (".csv", ".json", *FORMATS)),
    ]
    for path in outputs:
        if folder.is_dir() or path.parent.resolve() != folder.resolve():
            check_writable(path)
