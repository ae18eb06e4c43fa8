"""Samples of several files for one test: the same columns in the same order, text columns as indicators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from muhat._arrays import Array, available_memory
from muhat._files import FileError
from muhat._messages import refusal
from muhat.cli._compare import SHARE_OF_MEMORY
from muhat.data import ROWS, ColumnMoments, DataSet, FileBatches, open_batches
from muhat.data._formats import Wanted

MOST_VALUES = 20
"""The most different values of a text column that become indicators."""

GROWTH = 10
"""How many times larger numbers may be in memory than in a file."""

NOT_NUMERIC = "must be numeric"
"""What is said of a column of text, for which the command line has more advice."""

INDICATOR = " = "
"""What stands between a text column and its value in the name of an indicator."""

LISTED = 10
"""The most columns that a sentence lists."""


@dataclass(frozen=True)
class ReadSample:
    """The columns of numbers of a file, and those of text as words."""

    table: DataSet
    words: dict[str, Array]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, those of text last."""
        return (*self.table.feature_names, *self.words)


def read_sample(path: Path, reading: dict[str, Any], one_hot: bool, label: str | None = None) -> ReadSample:
    """Return a file's columns; without ``one_hot``, one of text is refused by name, unless it is the label."""
    drop = (*reading["drop"], *([label] if label else []))
    if not one_hot:
        try:
            return ReadSample(open_batches(path, **{**reading, "drop": drop}).read(), {})
        except FileError as problem:
            if NOT_NUMERIC in str(problem):
                ways = "--one-hot" if reading.get("columns") else "--drop, --only-numeric or --one-hot"
                raise FileError(f"{str(problem).rstrip('.')}, as by {ways}.") from problem
            raise
    numbers = Wanted(reading.get("columns"), drop, only_numeric=True)  # of which a file may have none
    batches = FileBatches(path, numbers, ROWS, reading["separator"])
    wanted = reading.get("columns") or batches.left_out
    text = [name for name in batches.left_out if name in wanted and name not in drop]
    _check_no_indicators(batches.columns, text)
    return ReadSample(batches.read(), {name: np.array(batches.words(name)) for name in text})


def _check_no_indicators(columns: Sequence[str], text: Sequence[str]) -> None:
    """Refuse a column that has the name of an indicator of another: one of them would be lost."""
    for name in (*columns, *text):
        of = text_column_of(name, text)
        if of is not None:
            needed, got = "no column may be named as an indicator of another", f"{name!r} beside {of!r}"
            raise ValueError(refusal("--one-hot", needed, got, f'rename it or leave it out with --drop "{name}"'))


def text_column_of(indicator: str, text: Iterable[str]) -> str | None:
    """Return the text column that a name would be an indicator of, the one with the longest name; or None."""
    return max((name for name in text if indicator.startswith(name + INDICATOR)), key=len, default=None)


@dataclass(frozen=True)
class LargeSample:
    """The rows of a file that are read in every pass, standardized or not."""

    columns: tuple[str, ...]
    batches: Iterable[Array]
    moments: ColumnMoments | None = None

    def __iter__(self) -> Iterator[Array]:
        for batch in self.batches:
            yield batch if self.moments is None else self.moments.standardized(batch)


def are_large(files: Sequence[Path]) -> bool:
    """Whether files may be too large to be read at once; compressed ones and text grow."""
    paths = [each for file in files for each in ([*file.iterdir()] if file.is_dir() else [file]) if each.is_file()]
    return GROWTH * sum(path.stat().st_size for path in paths) > SHARE_OF_MEMORY * available_memory()


def opened(file: Path, reading: dict[str, Any], columns: Sequence[str] | None = None) -> FileBatches:
    """Return a file to be read in batches, with these columns in their order, or refuse one that has others."""
    if columns is None:
        return open_batches(file, **reading)
    batches = open_batches(file, **{**reading, "drop": (), "columns": columns})
    more = [name for name in batches.left_out if name not in reading["drop"]]
    if more and not reading["only_numeric"]:
        needed, advice = "no columns are needed that the first file has not", f"leave it out with --drop {more[0]}"
        raise ValueError(refusal(str(file), needed, repr(more[0]), advice))
    return batches


def check_same_columns(samples: Sequence[ReadSample]) -> None:
    """Refuse files that have not the same columns, and name the first that one of them lacks."""
    first = samples[0]
    for second in samples[1:]:
        for one, other in ((first, second), (second, first)):
            missing = [name for name in one.names if name not in other.names]
            if missing:
                needed = f"both files must have the same columns, such as {missing[0]!r} of {one.table.name}"
                advice = "drop what only one of them has with --drop"
                raise ValueError(refusal(other.table.name, needed, _listed(other.names), advice))
        mixed = [name for name in first.words if name not in second.words]
        mixed += [name for name in second.words if name not in first.words]
        if mixed:
            needed = f"column {mixed[0]!r} must be numbers in both files, or text in both"
            raise ValueError(refusal(second.table.name, needed, "one of each", "drop it with --drop"))


def values_of(samples: Sequence[ReadSample]) -> dict[str, list[str]]:
    """Return the values of every text column in all samples together, or refuse one that has too many."""
    found = {}
    for name in samples[0].words:
        values = np.unique(np.concatenate([each.words[name] for each in samples])).tolist()
        if len(values) > MOST_VALUES:
            needed = f"a text column of at most {MOST_VALUES} values is needed to be made indicators"
            raise ValueError(
                refusal("--one-hot", needed, f"{len(values)} in {name!r}", f"leave it out with --drop {name}")
            )
        found[name] = values
    return found


def indicators(name: str, values: dict[str, list[str]]) -> list[str]:
    """Return the names of a text column's indicators; of a column of numbers, its own."""
    return [f"{name}{INDICATOR}{value}" for value in values[name]] if name in values else [name]


def encoded(sample: ReadSample, columns: Sequence[str], values: dict[str, list[str]]) -> DataSet:
    """Return a sample with these columns of numbers in their order, and an indicator of each value of a text column.

    A value that is not listed is none of them.
    """
    order = [sample.table.feature_names.index(name) for name in columns]
    parts = [sample.table.data[:, order]]
    parts += [sample.words[name][:, None] == np.array(each) for name, each in values.items()]
    names = [indicator for name in values for indicator in indicators(name, values)]
    data = np.column_stack(parts).astype(np.float64)
    left_out = tuple(name for name in sample.table.left_out if name not in sample.words)
    return replace(sample.table, data=data, feature_names=(*columns, *names), left_out=left_out)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:LISTED])) + ", …" * (len(names) > LISTED)
