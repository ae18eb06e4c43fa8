"""Commands that are imported when they are used, and the one sentence that each error becomes."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from muhat import __version__
from muhat._files import FileError
from muhat._messages import Note, in_command, rows_text
from muhat.errors import MuhatError, message

BUG = 1
USER_ERROR = 2
INTERRUPTED = 130


TRACEBACK = "--traceback"

MOVED = {"reproduce": "The paper's experiments are now run from a clone: python -m paper."}
"""What is said of a command that is no longer one of muhat's."""

PLAIN: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}
"""Help in two columns, which fits 80 characters; help in boxes does not."""


def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    show_traceback: Annotated[
        bool,
        typer.Option(TRACEBACK, help="Also print the traceback of an error; may follow a command."),
    ] = False,
) -> None:
    """Compare distributions with kernels: two-sample, independence and drift tests, regression with prediction
    intervals, and shrinkage estimates of kernel means."""
    if version:
        typer.echo(f"muhat {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def app_of(
    commands: Mapping[str, tuple[str, str]], imported: Callable[[], object] = lambda: None
) -> typer.Typer:
    """Return the command line of some commands: where the function of each is (``module:name``), and a line of help.

    A command is imported when it is used; then ``imported`` is called, before it runs.
    """
    group = type(
        "Commands", (CommandLine,), {"places": commands, "imported": staticmethod(imported)}
    )
    app = typer.Typer(cls=group, **PLAIN)
    app.callback(invoke_without_command=True)(about)
    return app


class CommandLine(TyperGroup):
    """Commands whose errors become one sentence on stderr, without a traceback.

    The exit status is 2 for an error of the user's, 130 after Ctrl-C, and 1 for a bug, which the sentence says.
    """

    places: Mapping[str, tuple[str, str]]
    imported: Callable[[], object]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.places)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command and return it."""
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name][0].partition(":")
        app = typer.Typer(**PLAIN)
        app.command(cmd_name)(getattr(import_module(module), name))
        self.imported()
        return get_command(app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name; of an unknown one, suggest the closest."""
        name = args[0]
        if name not in self.places and not name.startswith("-"):
            if name in MOVED:
                ctx.fail(MOVED[name])
            close = get_close_matches(name.lower(), self.places, n=1, cutoff=0.5)
            advice = (
                f"Did you mean {close[0]!r}?"
                if close
                else f"The commands are {', '.join(self.places)}."
            )
            ctx.fail(f"No such command {name!r}. {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the names of all commands and what they do, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.places.items()])

    def main(self, args: Any = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command that the arguments name."""
        given = list(sys.argv[1:] if args is None else args)
        options = given[: given.index("--")] if "--" in given else given
        with_traceback = TRACEBACK in options
        given = [each for each in options if each != TRACEBACK] + given[len(options) :]
        try:
            with _warnings_in_one_line(), in_command():
                code = super().main(given, standalone_mode=False, **extra)
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except Exception as problem:
            if with_traceback:
                traceback.print_exception(problem)
            code, sentence = _explained(problem)
            say(sentence)
        if code == INTERRUPTED:
            say("interrupted.")
        if standalone_mode:
            sys.exit(code or 0)
        return code


def say(message: object) -> None:
    """Print one line on stderr."""
    print("muhat:", " ".join(str(message).split()), file=sys.stderr)


def _explained(problem: Exception) -> tuple[int, str]:
    """Return the exit status and the sentence of an error."""
    if hasattr(problem, "format_message"):  # errors of the parser
        return USER_ERROR, problem.format_message()
    if isinstance(problem, MemoryError):
        needed, advice = (
            "the matrix of all pairs of points must fit in memory",
            "use --gram nystrom, or fewer points",
        )
        return USER_ERROR, message("muhat", needed, "too many points", advice)
    if isinstance(problem, OSError):
        file = "" if problem.filename is None else f"{problem.filename}: "
        return USER_ERROR, f"{file}{problem.strerror or problem}."
    if isinstance(problem, MuhatError):
        return USER_ERROR, str(problem)
    what = f"{type(problem).__name__}: {problem}".rstrip(": .")
    return (
        BUG,
        f"this is a bug in muhat ({what}); run it again with {TRACEBACK} and report what it prints.",
    )


@contextmanager
def in_own_words(words: Mapping[str, str]) -> Iterator[None]:
    """Say of errors raised here what the command calls things: files and options instead of Python's names."""
    try:
        yield
    except ValueError as problem:
        sentence = str(problem)
        for theirs, ours in words.items():
            sentence = sentence.replace(theirs, ours)
        sentence = re.sub(r"n_samples = (\d+)", lambda found: rows_text(int(found[1])), sentence)
        if sentence == str(problem):
            raise
        raise FileError(sentence) from problem


@contextmanager
def standard_output() -> Iterator[None]:
    """Say of an error in what is printed here that it is one of standard output; a closed pipe ends quietly."""
    try:
        yield
        sys.stdout.flush()
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 — for what Python flushes when it ends
        needed = "a place that can be written to is needed"
        raise MuhatError("standard output", needed, problem.strerror or problem) from problem


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print warnings as one line each, the same one once, those for programmers not at all."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            say(message if isinstance(message, Note) else f"warning: {message}")
        shown.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # pyparsing's are UserWarnings too
        warnings.showwarning = show
        yield
