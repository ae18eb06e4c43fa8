"""The Python lines that commands print and reports show: how to get the same result in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def call_text(function: str, *arguments: str, **options: Any) -> str:
    """Return a call as text; arguments are written as they are, options by their ``repr``.

    Examples
    --------
    >>> call_text("read_table", "'wine.csv'", drop=("kind",))
    "read_table('wine.csv', drop=('kind',))"
    """
    given = [f"{name}={value!r}" for name, value in options.items()]
    return f"{function}({', '.join([*arguments, *given])})"


class Code(str):
    """An option's value that is an expression, and is written without quotes."""

    def __repr__(self) -> str:
        return str(self)


def options_set(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are set, those worth to be written down."""
    return {name: value for name, value in options.items() if value}


def reading_columns(
    reading: Mapping[str, Any], columns: Sequence[str], one_hot: bool = True
) -> dict[str, Any]:
    """Return how to read exactly these columns in their order; some may be indicators of text."""
    exactly = {"drop": (), "only_numeric": False, "columns": list(columns), "one_hot": one_hot}
    return {**reading, **exactly}


def compare_lines(
    file: object | None, reading: Mapping[str, Any], options: Mapping[str, Any], in_batches: bool
) -> str:
    """Return lines that compare estimators on a file, or on the wine data without one."""
    if file is None:
        reader, rows = "load_dataset", 'load_dataset("wine").data'
    elif in_batches:
        reader, rows = "open_batches", _read("open_batches", file, reading)
    else:
        reader, rows = "read_table", f"{_read('read_table', file, reading)}.data"
    names = {"compare", reader}
    for value in options.values():
        names.update(_classes_in(value))
    return _joined(
        f"from muhat import {', '.join(sorted(names))}",
        f"X = {rows}",
        f"comparison = {call_text('compare', 'X', **options)}",
    )


def comparison_lines(options: Mapping[str, Any]) -> str:
    """Return lines that compare estimators on rows X and write the report."""
    names = {"compare"}
    for value in options.values():
        names.update(_classes_in(value))
    return _joined(
        f"from muhat import {', '.join(sorted(names))}",
        f"comparison = {call_text('compare', 'X', **options)}",
        'comparison.to_html("report.html")',
    )


def two_files_lines(
    files: Sequence[object],
    readings: Sequence[Mapping[str, Any]],
    test: object,
    names: Sequence[str] | None = None,
    reader: str = "read_table",
) -> str:
    """Return lines that test two files; ``names`` are given where the files' own do not do."""
    first, second = (_read(reader, *each) for each in zip(files, readings, strict=True))
    named = ""
    if names is not None:
        named = f", names={list(names)!r}"
    return _joined(
        f"from muhat import TwoSampleTest, {reader}",
        f"first = {first}",
        f"second = {second}",
        f"result = {test!r}.test(first, second{named})",
    )


def two_groups_lines(
    file: object, by: str, reading: Mapping[str, Any], test: object, groups: Sequence[str]
) -> str:
    """Return lines that test the two groups of rows that the values of a column name."""
    return _joined(
        "from dataclasses import replace",
        "from muhat import TwoSampleTest, open_batches",
        f"batches = {_read('open_batches', file, _without(reading, [by]))}",
        f"table, words = batches.read_with_words([{by!r}])",
        f"names = {list(groups)!r}",
        f"X, Y = (replace(table, data=table.data[words[{by!r}] == name]) for name in names)",
        f"result = {test!r}.test(X, Y, names=names)",
    )


def groups_lines(
    file: object, by: str, reading: Mapping[str, Any], test: object, design: Mapping[str, str]
) -> str:
    """Return lines that test groups of rows, which a column of the file names."""
    labels = [by, *design.values()]
    given = "".join(f", {name}=words[{column!r}]" for name, column in design.items())
    return _joined(
        "from muhat import GroupTest, open_batches",
        f"batches = {_read('open_batches', file, _without(reading, labels))}",
        f"table, words = batches.read_with_words({labels!r})",
        f"result = {test!r}.test(table, words[{by!r}]{given})",
    )


def group_files_lines(
    files: Sequence[object],
    readings: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    test: object,
) -> str:
    """Return lines that test files, each of which is a group."""
    tables = [_read("read_table", *each) for each in zip(files, readings, strict=True)]
    return _joined(
        "from dataclasses import replace",
        "import numpy as np",
        "from muhat import GroupTest, read_table",
        f"tables = [{', '.join(tables)}]",
        "X = replace(tables[0], data=np.concatenate([table.data for table in tables]))",
        f"groups = np.repeat({list(names)!r}, [len(table.data) for table in tables])",
        f"result = {test!r}.test(X, groups)",
    )


def independence_lines(
    file: object, x: Sequence[str], y: Sequence[str], reading: Mapping[str, Any], test: object
) -> str:
    """Return lines that test whether two sets of columns of a file are independent.

    The file is read once, so that a row with a missing value is left out of both sets.
    """
    return _joined(
        "from dataclasses import replace",
        "from muhat import IndependenceTest, read_table",
        f"x, y = {tuple(x)!r}, {tuple(y)!r}",
        f"table = {_read('read_table', file, {**reading, 'columns': Code('[*x, *y]')})}",
        "X = replace(table, data=table.data[:, : len(x)], feature_names=x)",
        "Y = replace(table, data=table.data[:, len(x) :], feature_names=y)",
        f"result = {test!r}.test(X, Y)",
    )


def test_lines(test: str, n_permutations: int) -> str:
    """Return lines that test samples X and Y, as far as a result knows its test."""
    return _joined(
        f"from muhat import {test}",
        "# and all other settings as in your call",
        f"result = {test}(n_permutations={n_permutations}).test(X, Y)",
        'result.to_html("report.html")',
    )


def drift_lines(
    detector: object, files: Sequence[object], readings: Sequence[Mapping[str, Any]]
) -> str:
    """Return lines that test files against the first of them, the reference."""
    return _joined(
        "from muhat import DriftDetector, read_table",
        f"reference = {_read('read_table', files[0], readings[0])}",
        f"detector = {detector!r}.fit(reference)",
        *_update_lines(files[1:], readings[1:]),
    )


def resumed_drift_lines(
    state: object, files: Sequence[object], readings: Sequence[Mapping[str, Any]]
) -> str:
    """Return lines that test files with a saved detector."""
    return _joined(
        "from muhat import load, read_table",
        f"detector = load({str(state)!r})",
        *_update_lines(files, readings),
    )


def detector_lines(detector: object) -> str:
    """Return lines that test batches against a reference and write the report."""
    return _joined(
        "from muhat import DriftDetector",
        f"detector = {detector!r}.fit(reference)",
        "for batch in batches:",
        "    detector.update(batch)",
        'detector.to_html("report.html")',
    )


def predict_lines(file: object, target: str, reading: Mapping[str, Any], model: object) -> str:
    """Return lines that fit a conditional mean to a file."""
    return _joined(
        "import numpy as np",
        "from muhat import ConditionalMean, read_table",
        f"table = {_read('read_table', file, reading)}",
        f"place = table.feature_names.index({target!r})",
        "X, y = np.delete(table.data, place, axis=1), table.data[:, place]",
        f"model = {model!r}.fit(X, y)",
    )


def pca_lines(
    file: object,
    reading: Mapping[str, Any],
    model: object,
    standardize: bool,
    labels: Sequence[str] = (),
) -> str:
    """Return lines that find the components of a file."""
    reading = {**reading, "drop": (*reading.get("drop", ()), *labels)}
    fitted, imports = f"{model!r}", []
    if standardize:
        fitted = f"make_pipeline(StandardScaler(), {model!r})"
        imports = [
            "from sklearn.pipeline import make_pipeline",
            "from sklearn.preprocessing import StandardScaler",
        ]
    reader, read = "read_table", [f"table = {_read('read_table', file, reading)}"]
    options = "columns=table.feature_names"
    if reading.get("missing") == "drop":  # rows have the numbers that they have in the file
        imports.insert(0, "import numpy as np")
        reader, options = "open_batches", f"{options}, row_numbers=rows"
        read = [
            f"batches = {_read(reader, file, reading)}",
            "table = batches.read()",
            "n = len(table.data) + len(batches.dropped)",
            "rows = np.delete(np.arange(1, n + 1), batches.dropped)",
        ]
    return _joined(
        *imports,
        f"from muhat import Gaussian, KernelPCA, {reader}",
        "from muhat.pca import describe_components",
        *read,
        f"model = {fitted}.fit(table.data)",
        f"result = describe_components(model, table.data, {options})",
        "print(result.verdict())",
    )


def model_lines(model: object) -> str:
    """Return lines that fit a conditional mean to rows X and y, and write the report."""
    return _joined(
        "from muhat import ConditionalMean",
        f"model = {model!r}.fit(X, y)",
        'model.to_html("report.html", data=X)',
    )


def _read(reader: str, file: object, reading: Mapping[str, Any]) -> str:
    """Return a call that reads a file, with the options that are set."""
    given = options_set(reading)
    return call_text(reader, repr(str(file)), **given)


def _without(reading: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Return how to read a file without its labels, unless its columns are named already."""
    if reading.get("columns"):
        return {**reading}
    return {**reading, "drop": (*reading.get("drop", ()), *labels)}


def _update_lines(files: Sequence[object], readings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines in which a detector tests files: a loop where all are read alike."""
    if any(reading != readings[0] for reading in readings):
        lines = []
        for file, reading in zip(files, readings, strict=True):
            lines.append(f"detector.update({_read('read_table', file, reading)}, {str(file)!r})")
        return lines
    given = options_set(readings[0])
    return [
        f"for file in {[str(file) for file in files]!r}:",
        f"    detector.update({call_text('read_table', 'file', **given)}, file)",
    ]


def _classes_in(value: object) -> list[str]:
    """Return the classes whose names a kernel or an approximation is written with."""
    if not hasattr(value, "get_params"):
        return []
    return re.findall(r"([A-Z]\w*)\(", repr(value))


def _joined(*lines: str) -> str:
    return "\n".join(lines)
