"""The section on the data: rows, the distribution of each column, what was left out, warnings."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import numpy as np
import scipy
import sklearn

from muhat import __version__
from muhat._arrays import Array
from muhat._text import all_shortened, count, exact_number, listed, number, numbered, shortened
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
            named = []
            for name, rows in self.data.items():
                named.append(replace(ReportSample.from_rows(rows, ""), name=str(name)))
            return named
        several = self.data
        if not isinstance(several, tuple):
            several = (several,)
        found = []
        for rows, name in zip(several, names, strict=False):
            found.append(ReportSample.from_rows(rows, name))
        return _distinctly_named(found)

    def provenance(self) -> dict[str, str]:
        """Return versions, the day, and all settings."""
        versions = (
            f"Python {platform.python_version()}, NumPy {np.__version__}, "
            f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
        )
        made_on = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
        lines = {"muhat": __version__, "made on": made_on}
        for name, value in self.settings.items():
            lines[name] = str(value)
        return lines | {"with": versions}


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
        unnamed = numbered("column", values.shape[1])
        columns = getattr(frame, "columns", unnamed)
        columns = getattr(frame, "column_names", columns)  # of pyarrow, whose columns are arrays
        return cls(name, len(values), values, tuple(map(str, columns)))


def _distinctly_named(samples: list[ReportSample]) -> list[ReportSample]:
    """Return samples with a number behind each name if some have the same name."""
    names = set(map(attrgetter("name"), samples))
    if len(names) == len(samples):
        return samples
    counted = []
    for place, each in enumerate(samples, 1):
        counted.append(replace(each, name=f"{each.name} ({place})"))
    return counted


def data_section(
    context: Context, samples: Sequence[ReportSample], sentences: Sequence[str] = ()
) -> Section:
    """Return the section on the data."""
    said = []
    for each in samples:
        columns = count(len(each.columns), "column")
        said.append(f"{shortened(each.name)}: {each.n:,} rows, {columns}.")
    for each in samples:
        name = shortened(each.name)
        if each.left_out:
            left_out = all_shortened(each.left_out, 40)
            said.append(f"Left out of {name}: {listed(left_out, MAX_LEFT_OUT)}.")
        if len(each.rows) < each.n:
            said.append(f"The numbers below are of the first {len(each.rows):,} rows of {name}.")
    warnings = list(dict.fromkeys(context.warnings or ()))
    if context.warnings is not None and not warnings:
        said.append("There were no warnings.")
    blocks = []
    if samples and all(map(_is_numeric, samples)):
        blocks.append(_columns_table(samples))
    return Section("The data", [" ".join([*said, *sentences])], warnings, blocks)


def _is_numeric(sample: ReportSample) -> bool:
    rows = sample.rows
    return rows.ndim == 2 and rows.dtype.kind in "fiub" and rows.size > 0


def _columns_table(samples: Sequence[ReportSample]) -> Table:
    """Return the table of all columns: the distribution of each, in every sample."""
    names = samples[0].columns
    moments, lowest, highest = [], [], []
    for each in samples:
        moments.append((each.rows.mean(axis=0), each.rows.std(axis=0)))
        lowest.append(each.rows.min(axis=0))
        highest.append(each.rows.max(axis=0))
    low, high = np.min(lowest, axis=0), np.max(highest, axis=0)
    values = np.transpose(moments, (1, 0, 2)).reshape(-1, len(names))  # all means come first
    rows = []
    for place, name in enumerate(names[:MAX_COLUMNS]):
        spark = _spark(samples, place, low[place], high[place])
        numbers = map(_numeric, values[:, place])
        # 9999 and the like stand for missing values, and are to be seen as they are.
        ends = _exact(low[place]), _exact(high[place])
        rows.append([Cell(name, is_name=True), Cell("", spark=spark), *numbers, *ends])
    note = ""
    if len(names) > MAX_COLUMNS:
        note = f"The first {MAX_COLUMNS:,} of {len(names):,} columns."
    if len(samples) > 1:
        note += " In the small histograms, the first sample is blue and the second orange."
    return Table("Every column", _column_titles(samples), rows, note=note.strip())


def _column_titles(samples: Sequence[ReportSample]) -> list[str]:
    """Return the titles of the table of all columns; of several samples, with their names."""
    titles = ["column", "distribution"]
    for moment in ("mean", "standard deviation"):
        if len(samples) == 1:
            titles.append(moment)
            continue
        for each in samples:
            titles.append(f"{moment}, {shortened(each.name, 24)}")
    return [*titles, "smallest", "largest"]


def _spark(samples: Sequence[ReportSample], place: int, low: float, high: float) -> Spark:
    """Return the histograms of one column in every sample."""
    counts = []
    for each in samples:
        counts.append(_counts(each.rows[:, place], low, high))
    return Spark(counts)


def _numeric(value: Any) -> Cell:
    return Cell(number(value), float(value))


def _exact(value: Any) -> Cell:
    return Cell(exact_number(float(value)), float(value))


def _counts(values: Array, low: float, high: float) -> Array:
    """Return the shares of values in equal bins between two numbers: shape (SPARK_BINS,)."""
    some = values[:: -(-len(values) // MAX_HISTOGRAM_ROWS)].astype(float)
    if not np.isfinite(high - low) or high <= low:
        return np.eye(1, SPARK_BINS, SPARK_BINS // 2)[0]
    return np.histogram(some, bins=SPARK_BINS, range=(float(low), float(high)))[0] / len(some)
