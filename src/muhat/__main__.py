"""The command ``muhat``, also as ``python -m muhat``."""

import sys

TYPE_CHECKING = False  # as in typing, which is imported late: Ctrl-C is caught during imports
if TYPE_CHECKING:
    from typer import Typer

COMMANDS = {
    "tour": ("muhat.cli._tour:tour_command", "Demo on bundled data, in under a minute."),
    "test": (
        "muhat.cli._testing:two_samples_command",
        "Do two samples differ, and in what?",
    ),
    "groups": ("muhat.cli._groups:groups_command", "Do groups of rows differ, and which?"),
    "independence": (
        "muhat.cli._independence:independence_command",
        "Are two sets of columns independent?",
    ),
    "pca": (
        "muhat.cli._pca:pca_command",
        "What are the main directions, and which rows are unusual?",
    ),
    "drift": ("muhat.cli._drift:drift_command", "Has new data drifted from a reference?"),
    "predict": (
        "muhat.cli._predict:predict_command",
        "Predict a column from the others, with intervals.",
    ),
    "compare": (
        "muhat.cli._compare:compare_command",
        "Does shrinkage improve the kernel mean of a sample?",
    ),
    "apply": ("muhat.cli._apply:apply_command", "Apply a saved model to new rows."),
}
"""The function of each command, imported when it is used, and its line in the help.

A new command is a module with a function that Typer can read, and a line here.
"""

REQUIRED_PACKAGES = ("typer", "rich", "matplotlib", "pyarrow", "skops")
"""What ``pip install 'muhat[cli]'`` installs."""

USER_ERROR = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C, also during imports, ends it with one line and status 130."""
    try:
        _run()
    except KeyboardInterrupt:
        print("muhat: interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)


def command_line() -> "Typer":
    """Return the command line with all commands."""
    from muhat.cli import app_of

    return app_of(COMMANDS)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        from muhat import __version__

        print(f"muhat {__version__}")
        return
    _check_packages()
    _mend_streams()
    command_line()(prog_name="muhat")


def _check_packages() -> None:
    """Exit with one sentence if packages of the extra ``cli`` are not installed."""
    from importlib.util import find_spec

    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        from muhat.errors import message

        needed = "the command line needs packages that are not installed"
        got = f"no {' and no '.join(missing)}"
        print(message("muhat", needed, got, "run pip install 'muhat[cli]'"), file=sys.stderr)
        sys.exit(USER_ERROR)


def _mend_streams() -> None:
    """Open streams that the shell closed, and replace letters that a stream cannot encode."""
    import os

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="replace")  # λ has no place in ASCII


if __name__ == "__main__":
    main()
