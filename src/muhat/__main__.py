"""The command ``muhat``, also as ``python -m muhat``: nothing is imported before Ctrl-C is caught."""

import os
import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than all else before the handler
if TYPE_CHECKING:
    from collections.abc import Callable

    from typer import Typer

COMMANDS = {
    "compare": (
        "muhat.cli._compare:compare_command",
        "Does shrinkage improve the kernel mean of a sample?",
    ),
    "apply": ("muhat.cli._apply:apply_command", "Apply a saved model to new rows."),
    "predict": (
        "muhat.cli._predict:predict_command",
        "Predict a column from the others, with intervals.",
    ),
    "test": (
        "muhat.cli._testing:two_samples_command",
        "Do two samples come from one distribution?",
    ),
    "independence": (
        "muhat.cli._testing:independence_command",
        "Are two sets of columns independent?",
    ),
    "drift": ("muhat.cli._drift:drift_command", "Has new data drifted from a reference?"),
    "tour": ("muhat.cli._tour:tour_command", "30-second demo on bundled data."),
}
"""Where each command is, imported when it is used, and its line in the help."""

EXTRA = ("typer", "rich", "matplotlib", "pyarrow", "skops")
"""What ``pip install 'muhat[cli]'`` brings."""

USER_ERROR = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        import signal

        before = signal.getsignal(signal.SIGINT)
        if (
            before is signal.default_int_handler
        ):  # else Ctrl-C is ignored, as in the background of a shell
            signal.signal(signal.SIGINT, _leave)  # at once, as imports may lose an exception
        try:
            _run(lambda: signal.signal(signal.SIGINT, before))
        finally:
            signal.signal(signal.SIGINT, before)
    except KeyboardInterrupt:
        _leave()


def _run(imported: "Callable[[], object]") -> None:
    if sys.argv[1:] == ["--version"]:
        from muhat import __version__

        print(f"muhat {__version__}")
        return
    from importlib.util import find_spec

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        from muhat.errors import message

        needed = "the command line needs packages that are not part of the core"
        got = f"no {' and no '.join(missing)}"
        print(message("muhat", needed, got, "pip install 'muhat[cli]'"), file=sys.stderr)
        sys.exit(USER_ERROR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="replace")  # λ has no place in ASCII
    command_line(imported)(prog_name="muhat")


def command_line(imported: "Callable[[], object]" = lambda: None) -> "Typer":
    """Return the command line with all commands; ``imported`` is called when one has been imported, before it runs."""
    from muhat.cli import app_of

    return app_of(COMMANDS, imported)


def _leave(*_: object) -> None:
    os.write(2, b"muhat: interrupted.\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
