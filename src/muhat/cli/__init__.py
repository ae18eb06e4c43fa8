"""The command line: parse, call, print. Whatever goes wrong is told in one sentence."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from muhat import __version__
from muhat._files import atomic_write, check_writable
from muhat._messages import refusal, unknown_name
from muhat._parts import as_kernel
from muhat.cli._progress import ProgressBatches
from muhat.comparison import Comparison, Row, compare, passes
from muhat.data import FileBatches, open_batches, read_table
from muhat.datasets import FOLDER_VARIABLE, DataSet, load, wine
from muhat.filters import FILTERS
from muhat.gram import APPROXIMATIONS, Approximation
from muhat.gram._plan import DENSE_UP_TO
from muhat.kernels import KERNELS, Kernel
from muhat.paper.evidence import page as evidence_page
from muhat.paper.experiments import EXPERIMENTS, Experiment
from muhat.paper.reproduction import PieceError, read_finished, read_results, reproduce
from muhat.plots import comparison_figure, experiment_figure, save
from muhat.selection import RULES

OF_POINTS = [name for name in KERNELS if name != "precomputed"]
GRAMS = ("auto", "dense", *APPROXIMATIONS)
FIGURES = (".png", ".svg", ".pdf")
FORMS = (".png", ".svg")
DEFAULT_FIGURE = Path("muhat-compare.png")
RESULTS, QUICK_RESULTS = Path("muhat-results"), Path("muhat-results-quick")

TABLE_2 = EXPERIMENTS["table-2"]

USER_ERROR = 2
INTERRUPTED = 130


class OneSentence(TyperGroup):
    """Commands that tell errors in one sentence on stderr, without a traceback, and exit with 2 (130 for Ctrl-C)."""

    def main(self, args: Any = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command that the arguments name."""
        try:
            with _warnings_told():
                code = super().main(args, standalone_mode=False, **extra)
        except typer.Abort:
            code = INTERRUPTED
        except (ValueError, PieceError) as problem:
            code = USER_ERROR
            _tell(problem)
        except OSError as problem:  # a full disk or a closed pipe behind standard output
            code = USER_ERROR
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 — for what is still to be flushed
            _tell(refusal("standard output", "a place that can be written to is needed", problem.strerror or problem))
        except MemoryError:
            code = USER_ERROR
            needed, advice = (
                "the matrix of all pairs of points must fit in memory",
                "take --gram nystrom, or fewer points",
            )
            _tell(refusal("muhat", needed, "too many points", advice))
        except Exception as problem:
            if not hasattr(problem, "format_message"):  # what the parser refuses has one
                raise
            code = USER_ERROR
            _tell(problem.format_message())
        if code == INTERRUPTED:
            _tell("interrupted.")
        if standalone_mode:
            sys.exit(code or 0)
        return code


app = typer.Typer(cls=OneSentence, add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # λ has no place in ASCII
    app(prog_name="muhat")


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Estimate kernel means better than by the plain average."""
    if version:
        typer.echo(f"muhat {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("compare")
def compare_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A .csv, .tsv, .parquet or .npy file, points in rows, or a folder of .parquet files; "
            "the wine data if none is named."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"Where the figure goes (.png, .svg or .pdf); by default {DEFAULT_FIGURE}.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON and nothing else; a figure is then made only with --out.")
    ] = False,
    filter: Annotated[
        list[str] | None, typer.Option(help=f"An estimator: {', '.join(FILTERS)}. May be repeated; by default all.")
    ] = None,
    kernel: Annotated[str, typer.Option(help=f"The kernel: {', '.join(OF_POINTS)}, or scikit-learn's.")] = "gaussian",
    bandwidth: Annotated[
        float | None, typer.Option(help="Its bandwidth σ; by default from the median distance.")
    ] = None,
    selection: Annotated[str, typer.Option(help=f"How parameters are chosen: {', '.join(RULES)}.")] = "loo",
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out, such as a label. May be repeated.")
    ] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize/--no-standardize", help="Bring features to mean 0 and variance 1.")
    ] = True,
    gram: Annotated[
        str,
        typer.Option(help=f"How the matrix of all pairs is held: {', '.join(GRAMS)}. The last two take any file."),
    ] = "auto",
    features: Annotated[
        int | None, typer.Option(min=1, help="How many landmarks (nystrom) or random features it is approximated by.")
    ] = None,
) -> None:
    """Compare all estimators on a sample: a table, a verdict and a figure."""
    figure = out if as_json else out or DEFAULT_FIGURE
    if figure is not None:
        _check_figure(figure)
    held = _gram(gram, features)
    chosen = _kernel(kernel, bandwidth)
    sample = wine() if file is None else _sample(file, drop or (), gram)
    options: dict[str, Any] = {"filters": filter or None, "standardize": standardize}
    if isinstance(sample, FileBatches):
        with ProgressBatches(sample, passes(**options), shown=not as_json and sys.stderr.isatty()) as batches:
            comparison = compare(batches, chosen, selection=selection, gram=held, **options)
    else:
        comparison = compare(sample.data, chosen, selection=selection, gram=held, **options)
    if figure is not None:
        save(comparison_figure(comparison), figure)
    if as_json:
        path = None if figure is None else str(figure)
        typer.echo(json.dumps({"data": sample.name, **comparison.to_dict(), "figure": path}, allow_nan=False))
    else:
        _print(comparison, sample.name)
        typer.echo(f"Figure: {figure}")


@app.command("reproduce")
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
        _tell("table-2 is without svmguide2, which is not in the package; --data names the folder that has it.")
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


def _tell(message: object) -> None:
    """Print one line on stderr."""
    print("muhat:", " ".join(str(message).split()), file=sys.stderr)


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Print warnings as one line each, those for programmers not at all."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | FutureWarning):
            _tell(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.showwarning = show
        yield


def _kernel(name: str, bandwidth: float | None) -> Kernel:
    """Return the kernel with the bandwidth, if one is given."""
    kernel = as_kernel(name)
    if bandwidth is None:
        return kernel
    if "bandwidth" not in kernel.get_params(deep=False):
        raise ValueError(refusal("--bandwidth", "a kernel that has one is needed", f"{name!r}", "leave it out"))
    return type(kernel)(bandwidth=bandwidth)


def _gram(name: str, features: int | None) -> str | Approximation:
    """Return how the Gram matrix is to be held, by as many features as are asked for."""
    if name not in GRAMS:
        raise ValueError(unknown_name("--gram", name, GRAMS))
    if features is None:
        return name
    if name not in APPROXIMATIONS:
        needed = f"--gram {' or '.join(APPROXIMATIONS)} is needed with it"
        raise ValueError(refusal("--features", needed, f"--gram {name}", "name one, or leave it out"))
    return APPROXIMATIONS[name](n_components=features)


def _sample(file: Path, drop: Sequence[str], gram: str) -> DataSet | FileBatches:
    """Return a file's table, or its batches where features are to be made of them or it may be too large for less."""
    if gram == "dense":
        return read_table(file, drop)
    batches = open_batches(file, drop)
    small = gram == "auto" and not file.is_dir() and batches.surely_at_most(DENSE_UP_TO)
    return read_table(file, drop) if small else batches


def _check_figure(path: Path) -> None:
    """Refuse a place or a format before the work."""
    if path.suffix.lower() not in FIGURES:
        needed = f"a file name ending in {', '.join(FIGURES)} is needed"
        raise ValueError(refusal("--out", needed, repr(str(path))))
    check_writable(path)


def _print(comparison: Comparison, name: str) -> None:
    """Print the table, what its reader has to know, and the verdict."""
    console = Console(highlight=False, markup=False, emoji=False)

    def say(sentence: str) -> None:
        console.print(sentence, soft_wrap=not console.is_terminal)

    kernel = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", repr(comparison.kernel))
    say(f"{name}: {comparison.n} points, {comparison.d} features, kernel {kernel}")
    console.print(_table(comparison))
    for note in comparison.notes:
        say(note)
    say(comparison.verdict())


def _table(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", no_wrap=True)
    table.add_column("parameter")
    for title in ("LOO score", "better than KME\n(% of its risk)", "shrunk\n(%)"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in comparison.rows:
        cells = _cells(row)
        best = row is comparison.best
        marks = ["best"] * best + ["edge"] * row.at_edge
        table.add_row(*cells, ", ".join(marks), style="bold" if best else None)
    if any(row.at_edge for row in comparison.rows):
        table.caption = Text("edge: the parameter is the first or last of its grid")
    return table


def _cells(row: Row) -> list[str]:
    score = "–" if row.score is None else f"{row.score:#.6g}"
    improvement = "–" if row.improvement is None else f"{round(row.improvement, 2) + 0.0:.2f}"
    return [row.name, row.setting, score, improvement, f"{100 * row.strength:.2f}"]
