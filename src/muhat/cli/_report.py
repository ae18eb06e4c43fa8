"""The option ``--report`` of commands that find something: a page to send around."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from muhat._files import check_writable
from muhat._messages import refusal
from muhat.testing import DriftDetector, IndependenceTest, TwoSampleTest

ENDINGS = (".html", ".htm")

ReportFile = Annotated[
    Path | None,
    Option("--report", metavar="FILE", show_default=False, help="A page to send around: .html, one file, no network."),
]


def check_report(path: Path | None) -> None:
    """Refuse a place or a format of a page before the work."""
    if path is None:
        return
    if path.suffix.lower() not in ENDINGS:
        needed = f"a file name ending in {' or '.join(ENDINGS)} is needed"
        raise ValueError(refusal("--report", needed, repr(str(path))))
    check_writable(path)


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Give the list that the warnings shown from here on are also put into."""
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
    reading: dict[str, Any],
    test: TwoSampleTest,
    standardize: bool,
) -> str:
    """Return the lines of Python that test as ``muhat test`` does."""
    given = {name: value for name, value in reading.items() if value}
    if by is None:
        names = "TwoSampleTest, read_table"
        lines = [
            f"first = {_call('read_table', str(files[0]), **given)}",
            f"second = {_call('read_table', str(files[1]), **given)}",
            "order = [second.feature_names.index(name) for name in first.feature_names]",
            "X, Y = first.data, second.data[:, order]",
        ]
    else:
        given["drop"] = (*given.get("drop", ()), by)
        names = "TwoSampleTest, open_batches"
        lines = [
            f"batches = {_call('open_batches', str(files[0]), **given)}",
            f"rows, labels = batches.read().data, np.array(batches.words({by!r}))",
            "X, Y = (rows[labels == value] for value in np.unique(labels))",
        ]
    if standardize:
        lines.append("X, Y = np.split(StandardScaler().fit_transform(np.concatenate([X, Y])), [len(X)])")
    return "\n".join([*_imports(names, standardize), *lines, f"result = {test!r}.test(X, Y)"])


def independence_lines(
    file: Path, names: Sequence[Sequence[str]], separator: str | None, test: IndependenceTest, standardize: bool
) -> str:
    """Return the lines of Python that test as ``muhat independence`` does."""
    lines = [
        f"{sample} = {_call('read_table', str(file), columns=list(each), separator=separator)}.data"
        for sample, each in zip("XY", names, strict=True)
    ]
    if standardize:
        lines.append("X, Y = (StandardScaler().fit_transform(each) for each in (X, Y))")
    return "\n".join([*_imports("IndependenceTest, read_table", standardize), *lines, f"result = {test!r}.test(X, Y)"])


def drift_lines(detector: DriftDetector, files: Sequence[Path], resume: Path | None, reading: dict[str, Any]) -> str:
    """Return the lines of Python that look for drift as ``muhat drift`` does."""
    given = "".join(f", {name}={value!r}" for name, value in reading.items() if value)
    new = [str(file) for file in (files if resume else files[1:])]
    if resume:
        start = ["from muhat import load, read_table", f"detector = load({str(resume)!r})"]
    else:
        start = ["from muhat import DriftDetector, read_table", f"reference = read_table({str(files[0])!r}{given})"]
        start.append(f"detector = {detector!r}.fit(reference.data)")
    return "\n".join([*start, f"for file in {new!r}:", f"    detector.update(read_table(file{given}).data, file)"])


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


def _imports(names: str, standardize: bool) -> list[str]:
    scaler = ["from sklearn.preprocessing import StandardScaler"] if standardize else []
    return ["import numpy as np", *scaler, f"from muhat import {names}"]


def _call(name: str, file: str, **options: Any) -> str:
    given = [f"{option}={value!r}" for option, value in options.items() if value is not None]
    return f"{name}({', '.join([repr(file), *given])})"
