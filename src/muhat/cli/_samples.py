"""Samples of several files for one test: the same columns in one order, text as indicators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from muhat._arrays import Array, available_memory
from muhat._files import FileError
from muhat._messages import lacks_columns
from muhat.cli._outputs import files_of
from muhat.cli._reading import MAX_MEMORY_SHARE, places_of, row_numbers, show_notes, without
from muhat.data import (
    ColumnMoments,
    DataSet,
    FileBatches,
    alike_values_note,
    check_few_values,
    indicators_of,
    open_batches,
)

MAX_GROWTH = 10
"""How many times larger numbers may be in memory than in a file."""


@dataclass(frozen=True, eq=False)
class ReadSample:
    """The columns of numbers of a file, and those of text as words."""

    who: str
    """The file."""
    table: DataSet
    words: dict[str, Array]
    numbers: Array
    """The numbers of the rows in the file, from 0: without those that were dropped."""
    n_dropped: int = 0
    """Rows with missing values that were left out."""
    not_numbers: tuple[str, ...] = ()
    """Columns that were left out as they are not numbers."""
    labels: dict[str, Array] = field(default_factory=dict)
    """Columns of labels, as words: of groups, or of a design."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, those of text last."""
        return (*self.table.feature_names, *self.words)


def read_sample(
    path: Path, reading: dict[str, Any], one_hot: bool, labels: Sequence[str] = ()
) -> ReadSample:
    """Return a file's columns; without ``one_hot``, a text column other than labels raises."""
    drop = (*reading["drop"], *labels)
    batches = open_batches(path, **{**reading, "drop": drop, "one_hot": one_hot})
    text = batches.text_columns
    table, words = batches.read_with_words([*text, *labels])
    show_notes(table)
    label_words = {name: np.array(words.pop(name)) for name in labels}
    numbers = row_numbers(batches)
    if text:  # indicators are made later, of the values in all samples
        count = len(table.feature_names) - sum(map(len, batches.categories.values()))
        table = replace(
            table, data=table.data[:, :count], feature_names=table.feature_names[:count]
        )
    left_out: tuple[str, ...] = ()
    if reading["only_numeric"]:
        left_out = tuple(without(batches.left_out, drop))
    return ReadSample(str(path), table, words, numbers, len(batches.dropped), left_out, label_words)


@dataclass(frozen=True)
class LargeSample:
    """The rows of a file that are read in every pass, standardized or not."""

    columns: tuple[str, ...]
    batches: Iterable[Array]
    moments: ColumnMoments | None = None

    def __iter__(self) -> Iterator[Array]:
        for batch in self.batches:
            if self.moments is not None:
                batch = self.moments.standardized(batch)
            yield batch


def are_large(files: Sequence[Path]) -> bool:
    """Whether files may be too large to be read at once; compressed ones and text grow."""
    size = 0
    for file in files:
        for path in files_of(file):
            if path.is_file():
                size += path.stat().st_size
    return MAX_GROWTH * size > MAX_MEMORY_SHARE * available_memory()


def opened(
    file: Path, reading: dict[str, Any], columns: Sequence[str] | None = None
) -> FileBatches:
    """Return a file to be read in batches, with these columns in their order and no others."""
    if columns is None:
        return open_batches(file, **reading)
    batches = open_batches(file, **{**reading, "drop": (), "columns": columns})
    text = without(columns, batches.columns)
    if text:
        raise text_and_numbers(text[0], str(file), "the first file")
    more = without(batches.left_out, reading["drop"])
    if more and not reading["only_numeric"]:
        sentence = f"{file} has a column {more[0]!r} that the first file does not have"
        raise FileError(f"{sentence}; leave it out with --drop {quote(more[0])}.")
    return batches


def check_same_columns(samples: Sequence[ReadSample]) -> None:
    """Raise FileError for files with different columns; it names the first that one lacks."""
    first = samples[0]
    for second in samples[1:]:
        for one, other in ((first, second), (second, first)):
            missing = without(one.names, other.names)
            if missing and missing[0] in other.not_numbers:
                raise text_and_numbers(missing[0], other.who, one.who)
            if missing:
                advice = f"leave it out with --drop {quote(missing[0])}"
                whose = f"{one.who} has"
                raise FileError(lacks_columns(other.who, missing, whose, other.names, advice))
        for one, other in ((first, second), (second, first)):
            mixed = without(one.words, other.words)
            if mixed:
                raise text_and_numbers(mixed[0], one.who, other.who)


def text_and_numbers(name: str, text: str, numbers: str) -> FileError:
    """Return the error of a column that is text in one file and numbers in another."""
    sentence = f"column {name!r} is text in {text} and numbers in {numbers}"
    return FileError(f"{sentence}; leave it out with --drop {quote(name)}.")


def values_of(samples: Sequence[ReadSample]) -> dict[str, list[str]]:
    """Return the values of each text column in all samples together; too many values raise."""
    found = {}
    for name in samples[0].words:
        values = np.unique(np.concatenate([each.words[name] for each in samples])).tolist()
        check_few_values(name, values)
        found[name] = values
    return found


def alike_values_notes(values: dict[str, list[str]]) -> tuple[str, ...]:
    """Return a sentence for each text column with values that differ in case or spaces only."""
    found = (alike_values_note(name, each) for name, each in values.items())
    return tuple(filter(None, found))


def indicators(name: str, values: dict[str, list[str]]) -> list[str]:
    """Return the names of a text column's indicators; of a column of numbers, its own."""
    if name not in values:
        return [name]
    return indicators_of(name, values[name])


def encoded(sample: ReadSample, columns: Sequence[str], values: dict[str, list[str]]) -> DataSet:
    """Return a sample with these columns of numbers and indicators of its text columns.

    For a value that is not listed, all indicators are zero.
    """
    parts = [sample.table.data[:, places_of(sample.table, columns)]]
    for name, each in values.items():
        parts.append(sample.words[name][:, None] == np.array(each))
    names: list[str] = []
    for name in values:
        names += indicators(name, values)
    data = np.column_stack(parts).astype(np.float64)
    return replace(sample.table, data=data, feature_names=(*columns, *names))
