"""Commands that are imported when they are used, and the one sentence that each error becomes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from muhat import __version__
from muhat._messages import ID_ROLE, ColumnWarning, Note, in_command
from muhat.errors import MuhatError, message

BUG = 1
USER_ERROR = 2
INTERRUPTED = 130
"""Exit statuses."""

TRACEBACK = "--traceback"

MOVED_COMMANDS = {"reproduce": "The paper's experiments are now run from a clone: python -m paper."}
"""What is said of a command that is no longer one of muhat's."""

ONE_FILE_COMMANDS = ("compare",)
"""Commands that take one file, but whose name suggests two."""

_WORKING: list[str] = []
"""The line that is on the terminal until a command prints something."""

_SHOWN: list[str] = []
"""The warnings and notes that the command has shown so far, each once."""

_LIKE_IDS: list[str] = []
"""The columns that the command has warned of as ids."""

PLAIN_OUTPUT: dict[str, Any] = {
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
        typer.Option(
            TRACEBACK,
            help="Print the full traceback of an error. This option can also be given after the "
            "command.",
        ),
    ] = False,
) -> None:
    """Compare distributions with kernels: two-sample, independence and drift tests, regression
    with prediction intervals, and shrinkage estimates of kernel means."""
    if version:
        typer.echo(f"muhat {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def app_of(commands: Mapping[str, tuple[str, str]]) -> typer.Typer:
    """Return a command line.

    Parameters
    ----------
    commands : mapping of str to (str, str)
        For the name of each command its function, as ``module:name``, and its line in the help.
        The module is imported when the command is used.
    """
    group = type("Commands", (CommandLine,), {"places": commands})
    app = typer.Typer(cls=group, **PLAIN_OUTPUT)
    app.callback(invoke_without_command=True)(about)
    return app


class CommandLine(TyperGroup):
    """Commands whose errors become one sentence on stderr, without a traceback.

    The exit status is 2 for an error of the user, 130 after Ctrl-C, and 1 for a bug.
    """

    places: Mapping[str, tuple[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.places)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command and return it."""
        if cmd_name not in self.places:
            return None
        module, _, name = self.places[cmd_name][0].partition(":")
        show_working(cmd_name)
        app = typer.Typer(**PLAIN_OUTPUT)
        app.command(cmd_name)(getattr(import_module(module), name))
        return get_command(app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name; suggest the closest for an unknown name."""
        name = args[0]
        if name not in self.places and not name.startswith("-"):
            if name in MOVED_COMMANDS:
                ctx.fail(MOVED_COMMANDS[name])
            close = get_close_matches(name.lower(), self.places, n=1, cutoff=0.5)
            advice = f"The commands are {', '.join(self.places)}."
            if close:
                advice = f"Did you mean {close[0]!r}?"
            ctx.fail(f"No such command {name!r}. {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the names of all commands and what they do, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.places.items()])

    def main(  # type: ignore[override]
        self, args: Any = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run the command that the arguments name."""
        if args is None:
            args = sys.argv[1:]
        given, with_traceback = _without_traceback(list(args))
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
        finally:
            clear_working()
        if code == INTERRUPTED:
            say("interrupted.")
        if standalone_mode:
            sys.exit(code or 0)
        return code


def show_working(command: str) -> None:
    """Show on a terminal that a command has started: what it needs takes long to import."""
    if sys.stderr.isatty() and not {"--help", "--json"} & set(sys.argv):
        _WORKING.append(f"muhat {command} …")
        print(_WORKING[-1], end="", file=sys.stderr, flush=True)


def clear_working() -> None:
    """Clear that line, before anything else is printed."""
    while _WORKING:
        width = len(_WORKING.pop())
        print(f"\r{' ' * width}\r", end="", file=sys.stderr, flush=True)


def say(message: object) -> None:
    """Print one line on stderr."""
    clear_working()
    print("muhat:", " ".join(str(message).split()), file=sys.stderr)


def shown_warnings() -> list[str]:
    """Return the warnings and notes that the command has shown so far, for reports and JSON."""
    return list(_SHOWN)


def columns_like_ids() -> tuple[str, ...]:
    """Return the columns that the command has warned of so far because they look like ids."""
    return tuple(dict.fromkeys(_LIKE_IDS))


@contextmanager
def errors_named(names: Mapping[str, object]) -> Iterator[None]:
    """Name the user's file or option in an error, instead of the Python object that raised it.

    Parameters
    ----------
    names : mapping of str to object
        From ``MuhatError.who`` to the name that the message should have, as
        ``{"ConditionalMean": "train.csv"}``.
    """
    try:
        yield
    except MuhatError as problem:
        if problem.who not in names:
            raise
        who = str(names[problem.who])
        raise MuhatError(who, problem.needed, problem.got, problem.advice) from problem


@contextmanager
def standard_output() -> Iterator[None]:
    """Name standard output in errors of what is printed here; a closed pipe ends quietly."""
    clear_working()
    try:
        yield
        sys.stdout.flush()
    except OSError as problem:
        if problem.errno == errno.EPIPE:  # click ends the command without a word
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 — for what Python flushes when it ends
        needed = "an output that can be written to is needed"
        raise MuhatError("standard output", needed, problem.strerror or problem) from problem


def _without_traceback(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the arguments without ``--traceback``, and whether it stood before ``--``."""
    end = len(arguments)
    if "--" in arguments:
        end = arguments.index("--")
    options = [each for each in arguments[:end] if each != TRACEBACK]
    return options + arguments[end:], TRACEBACK in arguments[:end]


def _explained(problem: Exception) -> tuple[int, str]:
    """Return the exit status and the sentence of an error."""
    if hasattr(problem, "format_message"):  # errors of the parser
        sentence = problem.format_message()
        command = getattr(getattr(problem, "ctx", None), "info_name", "")
        if command in ONE_FILE_COMMANDS and "extra argument" in sentence:  # click has no class
            sentence = f"{sentence.rstrip('.')}; to compare two files: muhat test a.csv b.csv."
        return USER_ERROR, sentence
    if isinstance(problem, MemoryError):
        needed = "the matrix of all pairs of rows must fit in memory"
        advice = "use --gram nystrom, or fewer rows"
        return USER_ERROR, message("muhat", needed, "too many rows", advice)
    if isinstance(problem, OSError):
        reason = f"{problem.strerror or problem}."
        if problem.filename is not None:
            reason = f"{problem.filename}: {reason}"
        return USER_ERROR, reason
    if isinstance(problem, MuhatError):
        return USER_ERROR, str(problem)
    what = f"{type(problem).__name__}: {problem}".rstrip(": .")
    advice = f"run it again with {TRACEBACK} and report what it prints"
    return BUG, f"this is a bug in muhat ({what}); {advice}."


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print warnings as one line each, the same one once, those for programmers not at all."""
    _SHOWN.clear()
    _LIKE_IDS.clear()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = str(message)
        if isinstance(message, ColumnWarning) and message.role == ID_ROLE:
            _LIKE_IDS.extend(message.columns)
        if text in _SHOWN:
            return
        _SHOWN.append(text)
        if isinstance(message, Note):
            say(text)
        else:
            say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # pyparsing's are UserWarnings too
        warnings.showwarning = show
        yield
