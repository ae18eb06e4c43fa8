"""The command ``muhat``, also as ``python -m muhat``: nothing is imported before it is known to be installed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from muhat._messages import refusal

if TYPE_CHECKING:
    from typer import Typer

COMMANDS = {
    "compare": ("muhat.cli._compare:compare_command", "Compare all estimators of the kernel mean of a sample."),
    "reproduce": ("muhat.paper._command:reproduce_command", "Reproduce the paper's figures and tables."),
}
"""Where each command is, imported when it is asked for, and what the help of all says of it."""

EXTRA = ("typer", "rich", "matplotlib", "pyarrow")
"""What ``pip install 'muhat[cli]'`` brings."""

USER_ERROR = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    with _leaving_on_interrupt() as imported:
        if sys.argv[1:] == ["--version"]:
            from muhat import __version__

            print(f"muhat {__version__}")
            return
        missing = [name for name in EXTRA if find_spec(name) is None]
        if missing:
            needed = "the command line needs packages that are not part of the core"
            got = f"no {' and no '.join(missing)}"
            print(refusal("muhat", needed, got, "pip install 'muhat[cli]'"), file=sys.stderr)
            sys.exit(USER_ERROR)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # λ has no place in ASCII
        command_line(imported)(prog_name="muhat")


def command_line(imported: Callable[[], object] = lambda: None) -> Typer:
    """Return the command line with all commands; ``imported`` is called when one has been imported, before it runs."""
    from muhat.cli import app_of

    return app_of(COMMANDS, imported)


@contextmanager
def _leaving_on_interrupt() -> Iterator[Callable[[], object]]:
    """Leave at once on Ctrl-C until the function that this gives is called, as imports may lose an exception."""
    before = signal.getsignal(signal.SIGINT)
    restore = partial(signal.signal, signal.SIGINT, before)
    if before is signal.default_int_handler:  # else Ctrl-C is ignored, as in the background of a shell
        signal.signal(signal.SIGINT, _leave)
    try:
        yield restore
    finally:
        restore()


def _leave(*_: object) -> None:
    os.write(2, b"muhat: interrupted.\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
