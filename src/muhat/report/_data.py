"""The section on the data: rows, the distribution of each column, what was left out, warnings."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn

from muhat import __version__
from muhat._arrays import Array
from muhat._text import count, listed, number, shortened
from muhat._validation import as_frame
from muhat.data import DataSet, FileBatches
from muhat.report._document import Cell, Section, Spark, Table

LEVEL = 0.05
"""The level of a verdict, unless another is asked for."""

MAX_COLUMNS = 1000
"""Columns that are listed."""

MAX_LEFT_OUT = 8
"""Columns left out that are named."""

MAX_HISTOGRAM_ROWS = 100_000
"""Rows that the small histograms of columns are drawn from."""

SPARK_BINS = 24


@dataclass(frozen=True, eq=False)
class Context:
    """What a page shows in addition to the result.

    Attributes
    ----------
    data : rows, or a mapping of names to rows
        The rows, as an array, a data frame, or what ``read_table`` and ``open_batches`` return.
    code : str
        The lines of Python that give the same.
    settings : mapping
        What was asked for, such as the seed, by name.
    warnings : sequence of str or None
        What the reader has to be warned of; None if that is not known.
    level : float
        The level of the verdict of a test.
    sections : sequence of Section
        What a page of a conditional mean shows beside its own.
    """

    data: Any = None
    code: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] | None = None
    level: float = LEVEL
    sections: Sequence[Section] = ()

    def samples(self, *names: str) -> list[ReportSample]:
        """Return the samples, named as in the data or else as here."""
        if self.data is None:
            return []
        if isinstance(self.data, Mapping):
            return [
                replace(ReportSample.from_rows(rows, ""), name=str(name))
                for name, rows in self.data.items()
            ]
        several = self.data if isinstance(self.data, tuple) else (self.data,)
        found = [
            ReportSample.from_rows(rows, name) for rows, name in zip(several, names, strict=False)
        ]
        if len({each.name for each in found}) == len(found):
            return found
        return [replace(each, name=f"{each.name} ({place})") for place, each in enumerate(found, 1)]

    def provenance(self) -> dict[str, str]:
        """Return versions, the day, and all settings."""
        versions = {
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "SciPy": scipy.__version__,
        }
        versions["scikit-learn"] = sklearn.__version__
        return {
            "muhat": __version__,
            "made on": f"{datetime.now(UTC):%d %B %Y}".lstrip("0"),
            **{name: str(value) for name, value in self.settings.items()},
            "with": ", ".join(f"{name} {version}" for name, version in versions.items()),
        }


@dataclass(frozen=True, eq=False)
class ReportSample:
    """A sample as a page shows it.

    Attributes
    ----------
    name : str
        What it is called.
    n : int
        How many rows it has.
    rows : array of shape (m, d)
        All of its rows, or its first.
    columns, left_out : tuple of str
        The names of the columns, and of those of its file that were not read.
    """

    name: str
    n: int
    rows: Array
    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def from_rows(cls, rows: Any, name: str) -> ReportSample:
        """Return what a page shows of an array, a data frame, a data set, or batches of a file."""
        if isinstance(rows, DataSet):
            return cls(
                rows.name, len(rows.data), rows.data, tuple(rows.feature_names), rows.left_out
            )
        if isinstance(rows, FileBatches):
            first = next(iter(rows))
            return cls(rows.name, rows.n or len(first), first, rows.columns, rows.left_out)
        frame = as_frame(rows)
        values = np.asarray(frame)
        values = values.reshape(len(values), -1)
        unnamed = [f"column {place}" for place in range(values.shape[1])]
        columns = getattr(frame, "columns", unnamed)
        columns = getattr(frame, "column_names", columns)  # of pyarrow, whose columns are arrays
        return cls(name, len(values), values, tuple(map(str, columns)))


def data_section(
    context: Context, samples: Sequence[ReportSample], sentences: Sequence[str] = ()
) -> Section:
    """Return the section on the data."""
    said = [
        f"{shortened(each.name)}: {each.n:,} rows, {count(len(each.columns), 'column')}."
        for each in samples
    ]
    for each in samples:
        name = shortened(each.name)
        if each.left_out:
            columns = [shortened(column, 40) for column in each.left_out]
            said.append(f"Left out of {name}: {listed(columns, MAX_LEFT_OUT)}.")
        if len(each.rows) < each.n:
            said.append(f"The numbers below are of the first {len(each.rows):,} rows of {name}.")
    warnings = list(dict.fromkeys(context.warnings or ()))
    if context.warnings is not None and not warnings:
        said.append("There were no warnings.")
    blocks = []
    if samples and all(_is_numeric(each.rows) for each in samples):
        blocks.append(_columns_table(samples))
    return Section("The data", [" ".join([*said, *sentences])], warnings, blocks)


def _is_numeric(rows: Array) -> bool:
    return rows.ndim == 2 and rows.dtype.kind in "fiub" and rows.size > 0


def _columns_table(samples: Sequence[ReportSample]) -> Table:
    """Return the table of all columns: the distribution of each, in every sample."""
    names = samples[0].columns
    means = [each.rows.mean(axis=0) for each in samples]
    deviations = [each.rows.std(axis=0) for each in samples]
    low = np.min([each.rows.min(axis=0) for each in samples], axis=0)
    high = np.max([each.rows.max(axis=0) for each in samples], axis=0)
    several = len(samples) > 1
    titles = ["column", "distribution"]
    for title in ("mean", "standard deviation"):
        titles += [f"{title}, {shortened(each.name, 24)}" if several else title for each in samples]
    rows = []
    for place, name in enumerate(names[:MAX_COLUMNS]):
        counts = [_counts(each.rows[:, place], low[place], high[place]) for each in samples]
        values = [moment[place] for moment in (*means, *deviations)]
        spark = Cell("", spark=Spark(counts))
        ends = [_numeric(low[place]), _numeric(high[place])]
        rows.append([Cell(name, is_name=True), spark, *map(_numeric, values), *ends])
    note = ""
    if len(names) > MAX_COLUMNS:
        note = f"The first {MAX_COLUMNS:,} of {len(names):,} columns."
    if several:
        note += " In the small histograms, the first sample is blue and the second orange."
    return Table("Every column", [*titles, "smallest", "largest"], rows, note=note.strip())


def _numeric(value: Any) -> Cell:
    return Cell(number(value), float(value))


def _counts(values: Array, low: float, high: float) -> Array:
    """Return the shares of values in equal bins between two numbers: shape (SPARK_BINS,)."""
    some = values[:: -(-len(values) // MAX_HISTOGRAM_ROWS)].astype(float)
    if not np.isfinite(high - low) or high <= low:
        return np.eye(1, SPARK_BINS, SPARK_BINS // 2)[0]
    return np.histogram(some, bins=SPARK_BINS, range=(float(low), float(high)))[0] / len(some)
