"""Reading a sample from a file: at once, or in batches if it is larger than memory."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NoReturn

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import IN_COMMAND, option
from muhat._text import agree, listed
from muhat._validation import whole_number
from muhat._wording import rows_text
from muhat.data._arrow import ArrowTable
from muhat.data._errors import RowsError, first_quoted, no_rows, raise_unreadable
from muhat.data._indicators import (
    alike_values_note,
    check_few_values,
    check_no_indicators,
    indicators_of,
)
from muhat.data._layout import rows_have_decimal_commas
from muhat.data._numpy import NumpyTable
from muhat.data._paths import (
    ENDINGS,
    STANDARD_INPUT,
    TEXT_ENDINGS,
    base_name,
    check_not_empty,
    ending_of,
    file_states,
    files_of,
    saved_standard_input,
)
from muhat.data._roles import warn_of_constants, warn_of_roles
from muhat.data._selection import ColumnSelection
from muhat.data._sources import BatchError
from muhat.data._table import MAX_ROWS_PROBED, DroppedRows, FileTable, TableChunk
from muhat.data._text import TextTable
from muhat.errors import MuhatError, MuhatTypeError

__all__ = ["DataSet", "FileBatchError", "FileBatches", "open_batches", "read_table"]

MAX_COMPRESSION = 20
"""How many times smaller gzip makes text of numbers, at most."""

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
"""Endings of files that a spreadsheet program can save as CSV."""

MAX_VALUES_PROBED = 100_000
"""About the most values that are used to guess a column's role."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """A sample with names."""

    name: str
    data: Array
    """The points, in rows; unscaled."""
    feature_names: tuple[str, ...]
    """The names of the columns."""
    left_out: tuple[str, ...] = field(default=(), kw_only=True)
    """The names of the columns of its file that were not read."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """Sentences on what of its file was left out, and why: columns that are not numbers, rows with
    missing values."""


class FileBatchError(FileError, BatchError):
    """A batch of a file that cannot be read; the batches before it were good."""


class FileBatches:
    """The rows of a file in batches: an iterable that reads the file each time it is iterated.

    Made by `open_batches`. No batch is kept and no file stays open between two passes: memory is
    that of one batch and of what is read together (some megabytes of text, a page of each column of
    Parquet, a record batch of Arrow; the array of an ``.npz`` file is in memory during a pass).

    Attributes
    ----------
    name, columns, left_out : str and tuples of str
        The name of the file without its ending, those of the features, and those of the columns
        that are not read.
    categories : dict of str to list of str
        The values of each column of text that is read as indicators, with ``one_hot``.
    n, rows : int
        The number of rows, known after the first pass over a text file or where rows may be
        dropped, and of every batch but the last.
    """

    name: str
    left_out: tuple[str, ...]
    categories: dict[str, list[str]]
    columns: tuple[str, ...]

    def __init__(
        self, path: Path, selection: ColumnSelection, rows: int, separator: str | None
    ) -> None:
        _check_settings(selection)
        self._who = str(path)
        if self._who == STANDARD_INPUT:
            self._who = "standard input"
            folder = tempfile.mkdtemp(prefix="muhat-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = saved_standard_input(Path(folder))
        self._path = path
        self._selection = selection
        with raise_unreadable(self._who):
            check_not_empty(path, self._who)
            self._states = file_states(files_of(path))
            self._table = _opened(path, self._who, selection, separator)
        self.name = base_name(path)
        self.left_out = self._table.left_out
        self.rows = rows
        self._dropped: DroppedRows | None = None
        self._unknown: dict[str, Counter[str]] = {}
        self.categories = self._learnt_categories()
        names = list(self._table.columns)
        for name, values in self.categories.items():
            names += indicators_of(name, values)
        self._places = self._order(names)
        if self._places is not None:
            names = [names[place] for place in self._places]
        self.columns = tuple(names)
        self.n: int | None = None
        if selection.missing == "error":
            self.n = self._table.n
        if selection.columns is None:
            self._warn_of_columns()

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of text that are, or with ``one_hot`` would be, read as indicators."""
        return self._table.text

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what was left out, and why; about rows, once these are read."""
        found = []
        not_numbers = self._table.not_numbers
        if not_numbers:
            sentence = f"Left out: {_listed_by_kind(not_numbers)}."
            found.append(f"{sentence} {self._on_commas}".rstrip())
        for name, known in self.categories.items():
            sentence = alike_values_note(name, known)
            if sentence:
                found.append(sentence)
        if self._table.n_empty == 1:
            found.append("Left out: the last column, which has no name and no values.")
        elif self._table.n_empty:
            many = f"the last {self._table.n_empty} columns"
            found.append(f"Left out: {many}, which have no names and no values.")
        if self._dropped and self._dropped.n:
            found.append(self._dropped.sentence())
        for name, values in self._unknown.items():
            unknown = f"an unknown {name} ({first_quoted(values)})"
            rows = rows_text(values.total())
            found.append(
                f"{rows} with {unknown}: all indicators of this column are 0 in these rows."
            )
        return tuple(f"{self._who}: {sentence}" for sentence in found)

    @property
    def _on_commas(self) -> str:
        """What to do about columns that are not read as numbers for their commas; empty if none."""
        columns = self._table.comma_columns
        if not columns:
            return ""
        have = agree(len(columns), "has", "have")
        return f"Use {option('decimal', ',')} if {listed(columns)} {have} decimal commas."

    def _learnt_categories(self) -> dict[str, list[str]]:
        """Return the values of each column of text that becomes indicators.

        They are those that the selection names, else learnt by a pass over the file.
        """
        text = self._table.text
        known = self._known_values()
        unknown = [name for name in text if name not in known]
        check_no_indicators((*self._table.columns, *text), text)
        learnt: dict[str, set[str]] = defaultdict(set)
        commas = list(filter(unknown.__contains__, self._table.comma_columns))
        if unknown:
            for chunk in self._table_chunks(unknown):
                for name, column in chunk.words.items():
                    learnt[name].update(column.tolist())
                    check_few_values(name, learnt[name])
        if commas:
            become = agree(len(commas), "becomes", "become")
            found = f"{self._who}: {listed(commas)} {become} indicators of values."
            warnings.warn(f"{found} {self._on_commas}", UserWarning, stacklevel=3)
        return {name: known.get(name) or sorted(learnt[name]) for name in text}

    def _known_values(self) -> dict[str, list[str]]:
        """Return the values of columns of text that the names of indicators ask for."""
        names = (*self._table.columns, *self._table.text, *self._table.left_out)
        return self._selection.split(names)[1]

    def _order(self, names: Sequence[str]) -> list[int] | None:
        """Return the places of the columns in the order asked for, None if they have it already."""
        asked = self._selection.columns
        if not self.categories or asked is None or not set(asked) <= set(names):
            return None
        others = [name for name in names if name not in asked]
        order = list(map(names.index, (*asked, *others)))
        if order == sorted(order):
            return None
        return order

    def _warn_of_columns(self) -> None:
        """Warn of columns that look like row numbers, ids or labels in the first rows."""
        columns = self._table.columns
        rows = max(MAX_ROWS_PROBED, MAX_VALUES_PROBED // max(1, len(columns)))
        with suppress(FileError):  # which the first pass raises
            for chunk in self._table.chunks(rows, (), self._new_count()):
                if len(chunk.values):
                    warn_of_roles(columns, chunk.values[:rows])
                    return

    def __iter__(self) -> Iterator[Array]:
        """Yield float arrays of shape (``rows``, number of features), in the order of the file.

        A batch that cannot be read as numbers, none of them missing, is a BatchError, as is a file
        that has changed.
        """
        batch = 0
        n_waiting = 0
        waiting: list[Array] = []
        try:
            for chunk in self._chunks():
                waiting.append(chunk)
                n_waiting += len(chunk)
                while n_waiting >= self.rows:
                    cut = len(waiting[-1]) - (n_waiting - self.rows)
                    self._check_unchanged(self._states)
                    yield np.concatenate([*waiting[:-1], waiting[-1][:cut]])
                    waiting = [waiting[-1][cut:]]
                    n_waiting -= self.rows
                    batch += 1
            self._check_unchanged(self._states)
            if n_waiting:
                yield np.concatenate(waiting)
        except RowsError as problem:
            row = None
            if problem.at_row:
                row = n_waiting
            raise FileBatchError(problem.sentence(batch), batch, row) from problem.__cause__
        self.n = batch * self.rows + n_waiting

    def read(self) -> DataSet:
        """Return all rows at once, as a sample named after the file; raise as `read_table` does."""
        return self.read_with_words(())[0]

    @property
    def dropped(self) -> Array:
        """The numbers of the rows that the last pass dropped, from 0: shape (dropped,)."""
        if self._dropped is None or not self._dropped.numbers:
            return np.empty(0, int)
        return np.concatenate(self._dropped.numbers)

    def words(self, name: str) -> list[str]:
        """Return a column of any type, also a dropped one, as words: a label of each row.

        They are those of the rows that are read: with ``missing="drop"``, of rows that have all
        values, this one too.
        """
        return self.read_with_words([name])[1][name].tolist()

    def with_words(self, name: str) -> Iterator[tuple[Array, Array]]:
        """Yield rows, and a column of any type as words: a label of each.

        The column is not among those of the rows, also if it is one of numbers.
        """
        self._table.check_words(name)
        others = [place for place, column in enumerate(self.columns) if column != name]
        self._unknown = {}
        with self._unchanged():
            for chunk in self._table_chunks((*self._table.text, name)):
                values = self._with_indicators(chunk)
                yield values[:, others], chunk.words[name].astype(str)

    def read_with_words(self, names: Sequence[str]) -> tuple[DataSet, dict[str, Array]]:
        """Return all rows at once, and some columns of any type as words, of the same rows."""
        for name in names:
            self._table.check_words(name)
        self._unknown = {}
        with self._unchanged():
            chunks = list(self._table_chunks((*self._table.text, *names)))
        values = np.concatenate([*map(self._with_indicators, chunks)])
        words = {}
        for name in names:
            words[name] = np.concatenate([chunk.words[name] for chunk in chunks]).astype(str)
        self.n = len(values)
        if not self.n:
            raise no_rows(self._who, "only rows with missing values")
        if self._places is None:
            warn_of_constants(self._table.columns, values)
        sample = DataSet(self.name, values, self.columns, left_out=self.left_out, notes=self.notes)
        return sample, words

    @property
    def is_text(self) -> bool:
        """Whether it is a text file, which takes longer to read than other files."""
        return isinstance(self._table, TextTable)

    @property
    def most_rows(self) -> int:
        """The most rows it can have: in text, a number and its separator are two bytes or more."""
        if self._table.n is not None:
            return self._table.n
        size = sum(size for size, _ in self._states.values())
        if self._path.suffix.lower() == ".gz":
            size *= MAX_COMPRESSION
        return size // (2 * len(self.columns)) + 1

    def _chunks(self) -> Iterator[Array]:
        """Read the file; if that fails because it has changed, say so."""
        self._unknown = {}
        with self._unchanged():
            for chunk in self._table_chunks(self._table.text):
                yield self._with_indicators(chunk)

    def _table_chunks(self, words: Sequence[str]) -> Iterator[TableChunk]:
        """Read the file from its start, and count the rows that are dropped."""
        dropped = self._new_count()
        words = tuple(dict.fromkeys(words))
        with raise_unreadable(self._who):
            yield from self._table.chunks(self.rows, words, dropped)
        self._dropped = dropped

    def _new_count(self) -> DroppedRows | None:
        """Return a count of dropped rows, None if missing values raise."""
        if self._selection.missing == "drop":
            return DroppedRows()
        return None

    def _with_indicators(self, chunk: TableChunk) -> Array:
        """Return numbers, then indicators of the text columns; count values without indicator."""
        if not self.categories:
            return chunk.values
        parts = [chunk.values]
        for name, values in self.categories.items():
            is_value = chunk.words[name][:, None] == np.array(values, dtype=object)
            unknown = chunk.words[name][~is_value.any(axis=1)].tolist()
            if unknown:
                self._unknown.setdefault(name, Counter()).update(unknown)
            parts.append(is_value.astype(chunk.values.dtype))
        together = np.column_stack(parts)
        if self._places is None:
            return together
        return together[:, self._places]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise RowsError if the file has changed before or while it is read."""
        self._check_unchanged([*self._states, *files_of(self._path)])
        try:
            yield
        except FileError:
            self._check_unchanged(self._states)
            raise
        self._check_unchanged(self._states)

    def _check_unchanged(self, files: Iterable[Path]) -> None:
        """Raise RowsError for files that are new, gone, or written to since all were opened."""
        needed = "the data must not change after they were opened"
        advice = "open them again"
        try:
            states = file_states(files)
        except OSError as problem:
            got = problem.strerror
            if isinstance(problem, FileNotFoundError):
                got = "a file that no longer exists"
            raise RowsError(self._who, needed, got, advice=advice) from problem
        for file, state in states.items():
            if self._states.get(file) != state:
                raise RowsError(
                    self._who, needed, "another size or modification time", advice=advice
                )


def open_batches(
    path: str | os.PathLike[str],
    drop: Sequence[str] = (),
    rows: int = 8192,
    *,
    columns: Sequence[str] | None = None,
    only_numeric: bool = False,
    one_hot: bool = False,
    missing: str = "error",
    separator: str | None = None,
    decimal: str | None = None,
) -> FileBatches:
    """Open a file for reading in batches; it can be larger than memory.

    Parameters
    ----------
    path : str or path
        One of: a text file (``.csv``, ``.tsv`` or ``.txt``, also compressed, such as ``.csv.gz``)
        with or without a header, with any of the usual separators, and with comments after ``#`` or
        a first line such as ``sep=;``; a ``.parquet`` file, or a folder of ``.parquet`` files with
        the same columns, read in the order of their names; a ``.feather`` or ``.arrow`` file; a
        NumPy array in ``.npy`` or ``.npz``; or ``"-"`` for standard input, which is copied to a
        temporary file. All except NumPy files need ``pip install 'muhat[cli]'``.
    drop : sequence of str, default=()
        Names of columns to leave out, such as a label. These columns can contain anything.
    rows : int, default=8192
        The number of rows of a batch; the last may have fewer.
    columns : sequence of str, default=None
        Names of the columns to read, in this order; all by default.
    only_numeric : bool, default=False
        Whether columns that are not numbers are left out; if False, they raise FileError. In a text
        file, the first rows decide whether a column has numbers.
    one_hot : bool, default=False
        Whether columns of text and categories become indicators: columns of zeros and ones, such as
        ``city = Bern``, one for each of at most 20 values, after all columns of numbers. The values
        are found by reading the file once more. To read a file with the indicators of another file,
        pass the ``feature_names`` of that file as ``columns``; a value without an indicator then
        has only zeros, and ``notes`` mentions it. Booleans are always zeros and ones.
    missing : {"error", "drop"}, default="error"
        What to do with rows that have a missing value in a column that is read: raise FileError, or
        leave the row out and mention it in ``notes``.
    separator : str, default=None
        The separator of a text file: a character, ``"tab"``, or ``"space"`` for any blanks; by
        default it is detected from the first lines.
    decimal : {".", ","}, default=None
        The decimal sign of a text file. By default it is a point, and a column of a file separated
        by semicolons is refused if its points look like thousands separators, such as 2.440 beside
        785.

    Returns
    -------
    batches : FileBatches
        The batches, float64, or float32 if all the columns of a file of numbers are.

    Raises
    ------
    FileError
        If the first lines or the header of the file show that it cannot be read.

    Warns
    -----
    UserWarning
        If a column looks like a row number, an id or a class label, if two columns have the same
        name, or if a header looks like numbers.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/sample.npy", np.arange(10.0).reshape(5, 2))
    ...     batches = open_batches(f"{folder}/sample.npy", rows=2)
    ...     print(batches.n, [batch.shape for batch in batches])
    5 [(2, 2), (2, 2), (1, 2)]
    """
    rows = whole_number("open_batches", "rows", rows)
    for parameter, names in (("drop", drop), ("columns", columns)):
        if isinstance(names, str):
            needed = f"{parameter} must be a list of names"
            raise MuhatTypeError("open_batches", needed, repr(names))
    selection = ColumnSelection(columns, drop, only_numeric, one_hot, missing, decimal)
    batches = FileBatches(Path(path), selection, rows, separator)
    if not batches.columns:
        advice = batches._on_commas.removesuffix(".").replace("Use", "use")
        raise FileError(str(path), "at least one column of numbers is needed", "none", advice)
    return batches


def read_table(
    path: str | os.PathLike[str],
    drop: Sequence[str] = (),
    *,
    columns: Sequence[str] | None = None,
    only_numeric: bool = False,
    one_hot: bool = False,
    missing: str = "error",
    separator: str | None = None,
    decimal: str | None = None,
) -> DataSet:
    """Read a table from a file into memory, with the arguments of `open_batches`.

    Columns without names are called ``column 1`` and so on. FileError is raised if a value is
    missing or not a number, unless an argument says how to treat it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/trees.csv", "w") as file:
    ...         _ = file.write("height,girth,kind\\n21.3,8.3,oak\\n19.8,8.6,ash\\n")
    ...     trees = read_table(f"{folder}/trees.csv", only_numeric=True)
    ...     kinds = read_table(f"{folder}/trees.csv", columns=["kind"], one_hot=True)
    >>> trees.feature_names, trees.data.tolist()
    (('height', 'girth'), [[21.3, 8.3], [19.8, 8.6]])
    >>> kinds.feature_names, kinds.data.tolist()
    (('kind = ash', 'kind = oak'), [[0.0, 1.0], [1.0, 0.0]])
    """
    return open_batches(
        path,
        drop,
        columns=columns,
        only_numeric=only_numeric,
        one_hot=one_hot,
        missing=missing,
        separator=separator,
        decimal=decimal,
    ).read()


def has_decimal_commas(path: Path, separator: str | None) -> bool:
    """Whether a file is to be read with decimal commas, by the first rows of a text file."""
    if str(path) == STANDARD_INPUT or not path.exists():
        return True
    if path.is_dir() or ending_of(path).removesuffix(".gz") not in TEXT_ENDINGS:
        return False
    return rows_have_decimal_commas(path, str(path), separator)


def _listed_by_kind(columns: Mapping[str, object]) -> str:
    """Return columns that are not numbers, given a value of each: "ts (dates)"."""
    dates: list[str] = []
    others: list[str] = []
    for name, value in columns.items():
        if isinstance(value, date):
            dates.append(name)
        else:
            others.append(name)
    kinds = []
    if others:
        kinds.append(f"{', '.join(others)} (not numbers: {columns[others[0]]!r})")
    if dates:
        kinds.append(f"{', '.join(dates)} (dates)")
    return ", ".join(kinds)


def _check_settings(selection: ColumnSelection) -> None:
    """Raise MuhatError for an invalid setting, by the name that the reader gave it."""
    for name, values in (("missing", ("error", "drop")), ("decimal", (".", ",", None))):
        given = getattr(selection, name)
        if given in values:
            continue
        valid = " or ".join(map(repr, values[:2]))
        if IN_COMMAND.get():
            raise MuhatError(f"--{name}", f"{valid} is needed", repr(given))
        raise MuhatError("open_batches", f"{name} must be {valid}", repr(given))


def _opened(path: Path, who: str, selection: ColumnSelection, separator: str | None) -> FileTable:
    """Return the table in a file, of the format that its ending says, or in a folder."""
    if path.is_dir():
        return _opened_folder(path, who, selection)
    ending = ending_of(path)
    if ending not in ENDINGS:
        got = "none"
        if path.suffix:
            got = f"the ending {path.suffix!r}"
        needed = f"a file ending in {', '.join(ENDINGS)} is needed"
        advice = "convert the file, or rename it if only its ending is wrong"
        if path.suffix.lower() in SPREADSHEETS:
            advice = "save the sheet as a CSV file (in Excel: CSV UTF-8)"
        raise FileError(who, needed, got, advice)
    if ending.removesuffix(".gz") in TEXT_ENDINGS:
        return TextTable(path, who, selection, separator)
    if separator is not None:
        _raise_text_option(who, "separator", ending)
    if selection.decimal not in (None, "."):
        _raise_text_option(who, "decimal", ending)
    if ending in (".npy", ".npz"):
        return NumpyTable(path, who, selection)
    return ArrowTable([path], who, selection)


def _opened_folder(path: Path, who: str, selection: ColumnSelection) -> FileTable:
    """Return the table in the Parquet files of a folder."""
    files = files_of(path)
    if not files:
        needed = "a file or a folder of .parquet files is needed"
        raise FileError(who, needed, "a folder without .parquet files", "choose a file")
    for file in files:
        check_not_empty(file, str(file))
    return ArrowTable(files, who, selection)


def _raise_text_option(who: str, name: str, ending: str) -> NoReturn:
    """Raise FileError for an option that files with this ending do not have."""
    needed = f"{name} applies only to text files"
    raise FileError(who, needed, f"the ending {ending!r}", "leave it out")
