"""Reading a sample from a file: at once, or batch by batch as often as needed, larger than memory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from muhat._arrays import Array
from muhat._files import FileError
from muhat._messages import IN_COMMAND, option
from muhat._validation import whole_number
from muhat.data._formats import (
    INDICATOR,
    MAX_ROWS_PROBED,
    ArrowTable,
    ColumnSelection,
    DroppedRows,
    NumpyTable,
    RowsError,
    Table,
    TableChunk,
    listed,
    no_rows,
    raise_unreadable,
    text_column_of,
)
from muhat.data._roles import warn_of_constants, warn_of_roles
from muhat.data._sources import BatchError
from muhat.data._text import TextTable
from muhat.errors import MuhatError, MuhatTypeError

TEXT = (".csv", ".tsv", ".txt")
ENDINGS = (
    *TEXT,
    *(f"{ending}.gz" for ending in TEXT),
    ".parquet",
    ".feather",
    ".arrow",
    ".npy",
    ".npz",
)
"""The endings of the files that are read."""

STANDARD_INPUT = "-"
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
}
"""What standard input holds, by its first bytes; if they are others it is text."""

MAX_COMPRESSION = 20
"""How many times smaller gzip makes text of numbers, at most."""

MAX_VALUES_PROBED = 100_000
"""About the most values that are used to guess a column's role."""

MAX_CATEGORIES = 20
"""The most different values of a column of text that become indicators."""


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
    """The rows of a file in batches: an iterable that reads the file from its start in each pass over it.

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
        self, path: Path, wanted: ColumnSelection, rows: int, separator: str | None
    ) -> None:
        _check_settings(wanted)
        self._who = str(path)
        if self._who == STANDARD_INPUT:
            self._who, folder = "standard input", tempfile.mkdtemp(prefix="muhat-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = _saved_standard_input(Path(folder))
        self._path, self._wanted = path, wanted
        with raise_unreadable(self._who):
            _check_not_empty(path, self._who)
            self._states = _states(_files(path))
            self._table = _opened(path, self._who, wanted, separator)
        self.name = base_name(path)
        self.left_out = self._table.left_out
        self.rows = rows
        self._dropped: DroppedRows | None = None
        self._unknown: dict[str, Counter[str]] = {}
        self.categories = self._learnt_categories()
        indicators = (
            indicator
            for name, values in self.categories.items()
            for indicator in indicators_of(name, values)
        )
        self._plain_columns = (*self._table.columns, *indicators)
        self._places = self._order()
        self.columns = self._plain_columns
        if self._places is not None:
            self.columns = tuple(self._plain_columns[place] for place in self._places)
        self.n = self._table.n if wanted.missing == "error" else None
        if wanted.columns is None:
            self._warn_of_columns()

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of text that are, or with ``one_hot`` would be, read as indicators."""
        return self._table.text

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is left out, and why; on rows, once they have been read."""
        found = []
        if self._table.not_numbers:
            names, first = (
                ", ".join(self._table.not_numbers),
                next(iter(self._table.not_numbers.values())),
            )
            found.append(f"Left out: {names} (not numbers: {first!r}).")
        found.append(self._dropped.sentence() if self._dropped else "")
        for name, values in self._unknown.items():
            listed_values = listed([*map(repr, values)])
            n, rows = values.total(), "row" if values.total() == 1 else "rows"
            found.append(
                f"{n:,} {rows} with an unknown {name} ({listed_values}): all its indicators are 0 there."
            )
        return tuple(f"{self._who}: {sentence}" for sentence in found if sentence)

    def _learnt_categories(self) -> dict[str, list[str]]:
        """Return the values of each column of text that is to be indicators, given or by a pass over the file."""
        text, known = self._table.text, self._known_values()
        learnt = [name for name in text if name not in known]
        check_no_indicators((*self._table.columns, *text), text)
        found: dict[str, set[str]] = {name: set() for name in learnt}
        for chunk in self._table_chunks(learnt) if learnt else ():
            for name, column in chunk.words.items():
                found[name].update(column.tolist())
                check_few_values(name, found[name])
        return {name: known.get(name) or sorted(found[name]) for name in text}

    def _known_values(self) -> dict[str, list[str]]:
        """Return the values of columns of text that the names of indicators ask for."""
        names = (*self._table.columns, *self._table.text, *self._table.left_out)
        return self._wanted.split(names)[1]

    def _order(self) -> list[int] | None:
        """Return the places of the columns that were asked for by name, where that is another order."""
        asked = self._wanted.columns
        if not self.categories or asked is None or not {*asked} <= {*self._plain_columns}:
            return None
        others = [name for name in self._plain_columns if name not in asked]
        order = [self._plain_columns.index(name) for name in (*asked, *others)]
        return None if order == sorted(order) else order

    def _warn_of_columns(self) -> None:
        """Warn of columns that look like row numbers, ids or labels in the first rows."""
        columns = self._table.columns
        with suppress(FileError):  # which the first pass raises
            rows = max(MAX_ROWS_PROBED, MAX_VALUES_PROBED // max(1, len(columns)))
            chunks = (chunk.values for chunk in self._table.chunks(rows, (), self._new_count()))
            head = next(filter(len, chunks), np.empty((0, len(columns))))
            warn_of_roles(columns, head[:rows])

    def __iter__(self) -> Iterator[Array]:
        """Yield float arrays of shape (``rows``, number of features), in the order of the file.

        A batch that cannot be read as numbers, none of them missing, is a BatchError, as is a file
        that has changed.
        """
        batch, n_waiting = 0, 0
        waiting: list[Array] = []
        try:
            for chunk in self._chunks():
                waiting.append(chunk)
                n_waiting += len(chunk)
                while n_waiting >= self.rows:
                    cut = len(waiting[-1]) - (n_waiting - self.rows)
                    self._check_unchanged(self._states)
                    yield np.concatenate([*waiting[:-1], waiting[-1][:cut]])
                    waiting, n_waiting = [waiting[-1][cut:]], n_waiting - self.rows
                    batch += 1
            self._check_unchanged(self._states)
            if n_waiting:
                yield np.concatenate(waiting)
        except RowsError as problem:
            row = n_waiting if problem.at_row else None
            raise FileBatchError(problem.sentence(batch), batch, row) from problem.__cause__
        self.n = batch * self.rows + n_waiting

    def read(self) -> DataSet:
        """Return all rows at once, as a sample named after the file, or raise FileError as `read_table` does."""
        return self.read_with_words(())[0]

    @property
    def dropped(self) -> Array:
        """The numbers of the rows that were dropped in the last pass, from 0 in the order of the file."""
        found = self._dropped.numbers if self._dropped else []
        return np.concatenate(found) if found else np.empty(0, int)

    def words(self, name: str) -> list[str]:
        """Return a column of any type, which may be one that is dropped, as words: a label of each row.

        They are those of the rows that are read: with ``missing="drop"``, of rows that have all
        values, this one too.
        """
        return self.read_with_words([name])[1][name].tolist()

    def read_with_words(self, names: Sequence[str]) -> tuple[DataSet, dict[str, Array]]:
        """Return all rows at once, and some columns of any type as words, of the same rows."""
        for name in names:
            self._table.check_words(name)
        self._unknown = {}
        with self._unchanged():
            chunks = list(self._table_chunks((*self._table.text, *names)))
        values = np.concatenate([self._with_indicators(chunk) for chunk in chunks])
        words = {
            name: np.concatenate([chunk.words[name] for chunk in chunks]).astype(str)
            for name in names
        }
        self.n = len(values)
        if not self.n:
            raise no_rows(self._who, "only rows with missing values")
        if self._places is None:
            warn_of_constants(self._who, self._table.columns, values)
        return DataSet(
            self.name, values, self.columns, left_out=self.left_out, notes=self.notes
        ), words

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
        return (
            size
            * (MAX_COMPRESSION if self._path.suffix.lower() == ".gz" else 1)
            // (2 * len(self.columns))
            + 1
        )

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
        return DroppedRows() if self._wanted.missing == "drop" else None

    def _with_indicators(self, chunk: TableChunk) -> Array:
        """Return numbers, and an indicator of each value of a column of text; a value that is unknown is counted."""
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
        return together if self._places is None else together[:, self._places]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Refuse a file that has changed before it is read, and say so if reading fails because of it."""
        self._check_unchanged([*self._states, *_files(self._path)])
        try:
            yield
        except FileError:
            self._check_unchanged(self._states)
            raise
        self._check_unchanged(self._states)

    def _check_unchanged(self, files: Iterable[Path]) -> None:
        """Refuse files that are new, gone, or written to since all were opened."""
        needed, advice = "the data must stay as they were when they were opened", "open them again"
        try:
            states = _states(files)
        except OSError as problem:
            got = (
                "no such file any more"
                if isinstance(problem, FileNotFoundError)
                else problem.strerror
            )
            raise RowsError(self._who, needed, got, advice=advice) from problem
        if any(self._states.get(file) != state for file, state in states.items()):
            raise RowsError(self._who, needed, "another size or time of change", advice=advice)


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
    decimal: str = ".",
) -> FileBatches:
    """Open a file to be read in batches, so that it may be larger than memory.

    Parameters
    ----------
    path : str or path
        A text file (``.csv``, ``.tsv`` or ``.txt``, also compressed as ``.csv.gz`` and so on; with
        or without a header, any of the usual separators, comments after ``#``), a ``.parquet`` file
        or a folder of such with the same columns, which are read in the order of their names, a
        ``.feather`` or ``.arrow`` file, a NumPy array in ``.npy`` or ``.npz``, or ``"-"`` for
        standard input, which is copied to a temporary file. All but NumPy's take ``pip install
        'muhat[cli]'``.
    drop : sequence of str, default=()
        Names of columns to leave out, such as a label; they may hold anything.
    rows : int, default=8192
        The number of rows of a batch; the last may have fewer.
    columns : sequence of str, default=None
        Names of the columns to read, in this order; all by default.
    only_numeric : bool, default=False
        Whether columns that hold no numbers are left out, of a text file by its first rows; else
        they are refused.
    one_hot : bool, default=False
        Whether columns of text and categories become indicators, a column of zeros and ones ``city
        = Bern`` for each of at most 20 values, after all columns of numbers. The values are learnt
        by one more pass over the file. To read a file with the indicators of another, give their
        names in ``columns``, such as the ``feature_names`` of that one: a value that has no
        indicator there is noted, and has zeros only. Booleans are zeros and ones in any case.
    missing : {"error", "drop"}, default="error"
        Whether a missing value in a column that is read is refused, or its row left out, which is
        noted.
    separator : str, default=None
        The character between the fields of a text file, ``"tab"``, or ``"space"`` for any blanks;
        by default it is learnt from the first lines.
    decimal : {".", ","}, default="."
        The decimal sign of a text file.

    Returns
    -------
    batches : FileBatches
        The batches, float64, or float32 if all the columns of a file of numbers are.

    Raises
    ------
    FileError
        If the file is none that can be read, as far as that is seen without reading it to its end.
        A column that looks like a row number, an id or a class label, two columns of one name, and
        a header that looks like numbers, are warned about.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/sample.npy", np.arange(10.0).reshape(5, 2))
    ...     batches = open_batches(f"{folder}/sample.npy", rows=2)
    ...     print(batches.n, [batch.shape for batch in batches], sum(batch.sum() for batch in batches))
    5 [(2, 2), (2, 2), (1, 2)] 45.0
    """
    rows = whole_number("open_batches", "rows", rows)
    for parameter, names in (("drop", drop), ("columns", columns)):
        if isinstance(names, str):
            raise MuhatTypeError(
                "open_batches", f"{parameter} must be a list of names", repr(names)
            )
    batches = FileBatches(
        Path(path),
        ColumnSelection(columns, drop, only_numeric, one_hot, missing, decimal),
        rows,
        separator,
    )
    if not batches.columns:
        raise FileError(str(path), "at least one column of numbers is needed", "none")
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
    decimal: str = ".",
) -> DataSet:
    """Read a sample from a file, points in rows, with the arguments of `open_batches`.

    Columns without names are called ``column 1`` and so on. A file that cannot be read as numbers,
    none of them missing, is refused with a FileError.

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


def _check_settings(wanted: ColumnSelection) -> None:
    """Refuse a setting that is none of its values, by the name that its reader gave it."""
    for name, values in (("missing", ("error", "drop")), ("decimal", (".", ","))):
        given = getattr(wanted, name)
        if given not in values:
            valid = " or ".join(map(repr, values))
            who, needed = (
                (f"--{name}", f"{valid} is needed")
                if IN_COMMAND.get()
                else ("open_batches", f"{name} must be {valid}")
            )
            raise MuhatError(who, needed, repr(given))


def _opened(path: Path, who: str, wanted: ColumnSelection, separator: str | None) -> Table:
    """Return the table in a file, known by its ending, or in a folder."""
    ending = _ending(path)
    if path.is_dir():
        files = _files(path)
        if not files:
            needed = "a file or a folder of .parquet files is needed"
            raise FileError(who, needed, "a folder without any", "name a file")
        for file in files:
            _check_not_empty(file, str(file))
        return ArrowTable(files, who, wanted)
    if ending not in ENDINGS:
        got = f"the ending {path.suffix!r}" if path.suffix else "none"
        needed, advice = (
            f"a file ending in {', '.join(ENDINGS)} is needed",
            "convert it, or rename it if it is one",
        )
        raise FileError(who, needed, got, advice)
    if ending.removesuffix(".gz") in TEXT:
        return TextTable(path, who, wanted, separator)
    for given, default, name in ((separator, None, "separator"), (wanted.decimal, ".", "decimal")):
        if given != default:
            needed = f"{name} is an option of text files"
            raise FileError(who, needed, f"the ending {ending!r}", "leave it out")
    return (
        NumpyTable(path, who, wanted)
        if ending in (".npy", ".npz")
        else ArrowTable([path], who, wanted)
    )


def base_name(path: Path) -> str:
    """Return what a sample is called: its file without the ending."""
    return path.name[: -len(_ending(path))] if _ending(path) in ENDINGS else path.name


def _ending(path: Path) -> str:
    """Return what tells the kind of a file, in lower case: its last suffix, of a compressed one the last two."""
    return "".join(
        path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    ).lower()


def _saved_standard_input(folder: Path) -> Path:
    """Copy standard input to a file, as passes need to read it anew."""
    if sys.stdin is None:
        raise FileError(
            "standard input", "rows are needed", "a closed one", "name a file, or pipe it in"
        )
    path = folder / "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        start = file.read(8)
    ending = next(
        (ending for magic, ending in BEGINNINGS.items() if start.startswith(magic)), ".csv"
    )
    return path.rename(path.with_name(path.name + ending))


def _check_not_empty(path: Path, who: str) -> None:
    """Refuse what is not there or is a file with nothing in it."""
    if not path.exists():
        raise FileError(f"no such file: {who}")
    if path.is_file() and not path.stat().st_size:
        raise no_rows(who, "an empty file")


def _files(path: Path) -> list[Path]:
    """Return the files that are read: those of a folder by name, without the hidden ones."""
    if not path.is_dir():
        return [path]
    inside = [
        file for file in path.iterdir() if file.suffix.lower() == ".parquet" and file.name[0] != "."
    ]
    return sorted(file for file in inside if file.is_file())


def _states(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return what shows that a file was written to: its size and the time of its last change."""
    return {file: ((stat := file.stat()).st_size, stat.st_mtime_ns) for file in files}


def indicators_of(name: str, values: Sequence[str]) -> list[str]:
    """Return the names of the indicators of a column of text."""
    return [f"{name}{INDICATOR}{value}" for value in values]


def check_few_values(name: str, values: Collection[str]) -> None:
    """Refuse a column of text with too many values to become indicators."""
    if len(values) > MAX_CATEGORIES:
        needed = (
            f"a column of text needs at most {MAX_CATEGORIES} different values to become indicators"
        )
        advice = f"leave it out with {option('drop', name)}"
        raise FileError(option("one_hot"), needed, f"more in {name!r}", advice)


def check_no_indicators(names: Sequence[str], text: Sequence[str]) -> None:
    """Refuse a column that has the name of an indicator of another: one of them would be lost."""
    for name in names:
        of = text_column_of(name, text)
        if of is not None:
            needed, got = (
                "no column may be named as an indicator of another",
                f"{name!r} beside {of!r}",
            )
            advice = f"rename it or leave it out with {option('drop', name)}"
            raise FileError(option("one_hot"), needed, got, advice)
