"""The option ``--report``, the files a command has written, and the Python lines that reproduce it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from typer import Option, echo

from muhat._files import check_writable
from muhat.cli._reading import sample_names
from muhat.data._files import base_name
from muhat.errors import MuhatError
from muhat.testing import DriftDetector, IndependenceTest, TwoSampleTest

ENDINGS = (".html", ".htm")

ReportFile = Annotated[
    Path | None,
    Option(
        "--report", metavar="FILE", show_default=False, help="Write a self-contained HTML report."
    ),
]


def check_report(path: Path | None) -> None:
    """Raise ValueError for a report that cannot be written, before the work."""
    if path is None:
        return
    if path.suffix.lower() not in ENDINGS:
        needed = f"a file name ending in {' or '.join(ENDINGS)} is needed"
        raise MuhatError("--report", needed, repr(str(path)))
    check_writable(path)


def print_written(**files: Path | None) -> None:
    """Print the files that a command has written, a line each: ``Figure: plot.png``; None is skipped."""
    for name, path in files.items():
        if path is not None:
            echo(f"{name}: {path}")


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Return a list that collects the warnings, which are shown as well."""
    noted: list[str] = []
    show = warnings.showwarning

    def note(message: Any, *rest: Any, **more: Any) -> None:
        noted.append(str(message))
        show(message, *rest, **more)

    warnings.showwarning = note
    try:
        yield noted
    finally:
        warnings.showwarning = show


def two_samples_lines(
    files: Sequence[Path],
    by: str | None,
    readings: Sequence[dict[str, Any]],
    test: TwoSampleTest,
    groups: Sequence[str] = (),
) -> str:
    """Return the lines of Python that test as ``muhat test`` does."""
    given, *others = ({name: value for name, value in each.items() if value} for each in readings)
    if by is None:
        names = sample_names(files)
        called = "" if names == [*map(base_name, files)] else f", names={names!r}"
        lines = [
            "from muhat import TwoSampleTest, read_table",
            f"first = {_call('read_table', str(files[0]), **given)}",
            f"second = {_call('read_table', str(files[1]), **others[0])}",
            f"result = {test!r}.test(first, second{called})",
        ]
    else:
        given["drop"] = (*given.get("drop", ()), by)
        lines = [
            "import numpy as np",
            "from muhat import TwoSampleTest, open_batches",
            f"batches = {_call('open_batches', str(files[0]), **given)}",
            f"rows, labels = batches.read().data, np.array(batches.words({by!r}))",
            f"names = {list(groups)!r}",
            "X, Y = (rows[labels == name] for name in names)",
            f"result = {test!r}.test(X, Y, names=names)",
        ]
    return "\n".join(lines)


def independence_lines(
    file: Path, names: Sequence[Sequence[str]], separator: str | None, test: IndependenceTest
) -> str:
    """Return the lines of Python that test as ``muhat independence`` does."""
    lines = [
        f"{sample} = {_call('read_table', str(file), columns=list(each), separator=separator)}"
        for sample, each in zip("XY", names, strict=True)
    ]
    return "\n".join(
        ["from muhat import IndependenceTest, read_table", *lines, f"result = {test!r}.test(X, Y)"]
    )


def drift_lines(
    detector: DriftDetector, files: Sequence[Path], resume: Path | None, reading: dict[str, Any]
) -> str:
    """Return the lines of Python that look for drift as ``muhat drift`` does."""
    given = "".join(f", {name}={value!r}" for name, value in reading.items() if value)
    new = [str(file) for file in (files if resume else files[1:])]
    if resume:
        start = ["from muhat import load, read_table", f"detector = load({str(resume)!r})"]
    else:
        start = [
            "from muhat import DriftDetector, read_table",
            f"reference = read_table({str(files[0])!r}{given})",
        ]
        start.append(f"detector = {detector!r}.fit(reference)")
    return "\n".join(
        [*start, f"for file in {new!r}:", f"    detector.update(read_table(file{given}), file)"]
    )


def predict_lines(file: Path, target: str, reading: dict[str, Any], model: Any) -> str:
    """Return the lines of Python that fit as ``muhat predict`` does."""
    return "\n".join(
        [
            "import numpy as np",
            "from muhat import ConditionalMean, read_table",
            f"table = {_call('read_table', str(file), **{name: value for name, value in reading.items() if value})}",
            f"place = table.feature_names.index({target!r})",
            "X, y = np.delete(table.data, place, axis=1), table.data[:, place]",
            f"model = {model!r}.fit(X, y)",
        ]
    )


def _call(name: str, file: str, **options: Any) -> str:
    given = [f"{option}={value!r}" for option, value in options.items() if value is not None]
    return f"{name}({', '.join([repr(file), *given])})"
