"""The result of a test of two samples: how far they are apart, in which columns and rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._summary import FOUND, NEUTRAL, Summary
from muhat._validation import as_frame, as_points, check_not_masked
from muhat._wording import p_value_text, rows_text
from muhat.data import ColumnMoments, DataSet
from muhat.embedding import Element
from muhat.errors import MuhatError
from muhat.testing._copies import copies_note
from muhat.testing._marginals import FeatureDifference
from muhat.testing._results import LEVEL, N_NAMED, NO_SINGLE_COLUMN, Result, at_level
from muhat.testing._row_order import RowOrder, row_order_note
from muhat.testing._tolerance import Tolerance
from muhat.testing._wording import (
    change_text,
    change_title,
    quoted_name,
    repeated_text,
    size_text,
)

N_FAR_VALUES = 3
"""Columns with a far value that repeats, besides the one that differs most, that are named."""

FEW_ROWS = 8
"""Rows of the smaller sample below which a verdict says that only large differences show."""

DEFAULT_NAMES = ("X", "Y")
"""What two samples are called, unless they have names."""

TOO_FEW_DISTINCT = "after exact copies of rows were dropped, too few rows were left to compare"
"""What a verdict says where dropping copies leaves one sample without rows, or both with one."""


@dataclass(frozen=True, eq=False)
class Witness:
    """The function that shows where samples differ, of rows in their own units and columns.

    Parameters
    ----------
    element : Embedding or FeatureEmbedding
        The function of standardized rows.
    moments : ColumnMoments or None
        What rows are standardized by, if they are.
    columns : tuple of str or None
        The names of the columns, if they have names.
    """

    element: Element
    moments: ColumnMoments | None = None
    columns: tuple[str, ...] | None = None

    def __call__(self, X: Any) -> Array:
        """Return the function's values at rows; columns of a data frame are found by name."""
        if isinstance(X, DataSet):
            X = X.data
        else:
            X = as_frame(X)
        check_not_masked("witness", X, "X")
        if self.columns is not None and hasattr(X, "columns"):
            names = list(map(str, X.columns))
            missing = [name for name in self.columns if name not in names]
            if missing:
                needed = f"the columns of the samples are needed, such as {missing[0]!r}"
                raise MuhatError("witness", needed, ", ".join(map(repr, names[:N_NAMED])))
            X = np.column_stack([np.asarray(X[name]) for name in self.columns])
        if len(getattr(X, "shape", ())) == 1:
            X = np.asarray(X)[:, None]
        rows = as_points(X)
        if self.moments is None:
            return self.element(rows)
        if rows.shape[1] != len(self.moments.mean):
            needed = f"rows with {len(self.moments.mean)} columns are needed"
            raise MuhatError("witness", needed, f"shape {rows.shape}")
        return self.element(self.moments.standardized(rows.astype(np.float64)))


@dataclass(frozen=True, eq=False)
class WitnessedRows:
    """The rows of both samples as pictures show them; beyond 20,000 in both, some at random."""

    numbers_x: Array
    """Of the rows of X, shape (n,)."""
    numbers_y: Array
    """Of the rows of Y, shape (m,)."""
    witness_x: Array
    """The witness at these rows of X, shape (n,)."""
    witness_y: Array
    """The witness at these rows of Y, shape (m,)."""
    columns_x: Array
    """The two columns that differ most, at these rows of X: shape (n, 2), or (n, 1) of one."""
    columns_y: Array
    """The same of Y."""


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(Result):
    """Whether two samples come from one distribution, and where they differ.

    Attributes
    ----------
    p_value, statistic, permuted, n_permutations, is_complete, best, tests, least_p_value
        As for every ``Result``.
    n, m : int
        The numbers of rows.
    rows_together : int
        How many rows are permuted together, as a bin or a block.
    is_exact : bool
        Whether the p-value is exact; it is approximate where rows that depend on each other were
        permuted in blocks.
    mmd : float
        The effect size: the distance between the kernel means of the samples, for the kernel of the
        largest statistic. Noise makes it larger than the distance between the distributions.
    mmd_interval : tuple of two floats
        An approximate 95 % confidence interval of that distance between the distributions the
        samples come from, around the unbiased estimate. ``mmd`` is larger by its noise, and may lie
        above the interval.
        It covers in 80 to 90 % of cases only where the distributions differ by a few rows far away
        from all others, of which a sample may have none.
    witness : Witness
        A function that is larger where the first sample is denser. The difference of its means over
        X and Y is the largest statistic. It is known up to a constant, and its argument is rows in
        the units of the samples.
    features : tuple of FeatureDifference
        How each column differs by itself, the one that differs most first.
    at_rows : WitnessedRows
        The witness at the rows of both samples, for pictures and for ``rows_x`` and ``rows_y``.
    names : tuple of two strings
        What the verdict calls the samples.
    n_copies : int
        Rows that are exact copies of an earlier row of the same sample; estimated beyond 20,000
        different rows.
    n_shared : int
        Rows of Y that are exact copies of a row of X; estimated likewise.
    has_same_rows, is_constant : bool
        Whether both samples are the same rows, and whether all rows are equal.
    too_few_distinct : bool
        Whether ``distinct=True`` left too few rows to compare: p is then 1.
    left_out : tuple of str
        Sentences on what of the data was not tested, with which the verdict ends.
    tolerance : Tolerance or None
        What was allowed, in which kernel, and whether the samples differ by more.
    row_order : RowOrder or None
        In which ``column`` rows that follow each other are alike beyond chance, as in a time
        series, their rank ``correlation``, and the ``block_length`` that would be needed; None if
        they are not.
    block_length : int or None
        How many consecutive rows were permuted as a block, if the test was told to.
    are_copied_whole : bool
        Whether rows repeat as a whole: every column that varies has as many values as there are
        different rows.
    are_ties : bool
        Whether equal rows are to be expected, as values recur, and are no sign of copied rows.
    """

    n: int
    m: int
    rows_together: int
    is_exact: bool
    mmd: float
    mmd_interval: tuple[float, float]
    witness: Witness
    features: tuple[FeatureDifference, ...]
    at_rows: WitnessedRows
    names: tuple[str, str] = DEFAULT_NAMES
    n_copies: int = 0
    n_shared: int = 0
    has_same_rows: bool = False
    is_constant: bool = False
    too_few_distinct: bool = False
    left_out: tuple[str, ...] = ()
    tolerance: Tolerance | None = None
    row_order: RowOrder | None = None
    block_length: int | None = None
    are_copied_whole: bool = False
    are_ties: bool = False

    @property
    def witness_x(self) -> Array:
        """The witness at the rows of X, shape (n,); beyond 20,000 rows in both, at some of them."""
        return self.at_rows.witness_x

    @property
    def witness_y(self) -> Array:
        """The witness at the rows of Y, shape (m,); beyond 20,000 rows in both, at some of them."""
        return self.at_rows.witness_y

    @property
    def rows_x(self) -> Array:
        """The rows of X most typical of X rather than Y, in order: where the witness is largest.

        X has more rows like them than Y has. They need not be outliers: a single row far from all
        others is typical of neither sample.
        """
        return self.at_rows.numbers_x[self.witness_x.argsort(kind="stable")[::-1]]

    @property
    def rows_y(self) -> Array:
        """The rows of Y most typical of Y rather than X, in order: where the witness is least."""
        return self.at_rows.numbers_y[self.witness_y.argsort(kind="stable")]

    @property
    def details(self) -> str:
        """How the p-value was made: permutations, statistics, and the largest of these."""
        if self.rows_together == 1:
            return super().details
        what = "blocks"
        if self.is_exact:
            what = "bins"
        details = f"{super().details}, {what} of {self.rows_together} rows"
        if self.is_exact:
            return details
        return f"{details}, approximate"

    def _finding(self, level: float) -> str:
        """Return what the test finds at a level: whether the samples differ, and where most."""
        samples = self._samples_text
        nothing = f"No difference between {samples}"
        if self.is_constant:
            return f"{nothing}: all rows of both are equal (p = 1)."
        if self.too_few_distinct:
            return f"{nothing} detected: {TOO_FEW_DISTINCT} (p = 1)."
        if self.has_same_rows:
            same = "both consist of the same rows"
            if self.left_out:
                same += ", as far as they were tested"
            return f"{nothing}: {same} ({self.p_text})."
        if self.is_too_small(level):
            return self._too_few(f"{samples} differ", self._units_text, level)
        finding = f"{nothing} detected"
        if self.p_value <= level:
            finding = f"{sentence_start(samples)} differ"
        approximate = "approximate "
        if self.is_exact:
            approximate = ""
        sentences = [
            f"{finding}{at_level(self.p_value, level)} ({approximate}{self.p_text}).",
            self._few_rows_text(level),
            self._tolerance_text(level),
            self._where(level),
            self._far_values_text(level),
            self._copies_text(self.p_value <= level),
            self._row_order_text(level),
        ]
        return " ".join(filter(None, sentences))

    def _far_values_text(self, level: float) -> str:
        """Return which far values, such as 9999, repeat in columns that are not named already."""
        sentences = []
        for place, each in enumerate(self.features):
            is_named = place == 0 and max(self.p_value, each.p_value) <= level
            if each.repeated is not None and not is_named:
                found = f"In {quoted_name(each.name)}, {repeated_text(each, self.names)}."
                sentences.append(f"{found} It is far from all others.")
        return " ".join(sentences[:N_FAR_VALUES])

    def _few_rows_text(self, level: float) -> str:
        """Return that few rows show little, where they show nothing."""
        if self.p_value <= level or min(self.n, self.m) >= FEW_ROWS:
            return ""
        return "With so few rows, only a very large difference could be detected."

    def _tolerance_text(self, level: float) -> str:
        """Return whether the samples differ by more than the tolerance; empty without one."""
        if self.tolerance is None:
            return ""
        if self.p_value > level:
            return self.tolerance.no_difference
        p = p_value_text(self.tolerance.p_value, self.n_permutations, self.is_complete)
        return self.tolerance.finding(level, p)

    @property
    def _samples_text(self) -> str:
        """Both samples with their numbers of rows, by their names if they have names."""
        if tuple(self.names) == DEFAULT_NAMES:
            return f"the samples of {self.n:,} and {self.m:,} rows"
        first, second = self.names
        return f"{first} ({rows_text(self.n)}) and {second} ({rows_text(self.m)})"

    @property
    def _units_text(self) -> str:
        """What is permuted, as words that follow "with": rows, or blocks or bins of them."""
        if self.rows_together == 1:
            return "so few rows"
        what = "blocks"
        if self.is_exact:
            what = "bins"
        n, m = (each // self.rows_together for each in (self.n, self.m))
        return f"{n:,} and {m:,} {what} of {self.rows_together} rows"

    def _summary(self) -> Summary:
        rows = []
        for each in self.features:
            p = p_value_text(each.p_value, self.n_permutations, self.is_complete)
            rows.append((each.name, size_text(each, LEVEL), p))
        tone = NEUTRAL
        if self.p_value <= LEVEL:
            tone = FOUND
        return Summary(self.verdict(), change_header(*self.names), rows, tone)

    @property
    def is_same(self) -> bool:
        """Whether the samples are the same rows, or all rows are equal: no row stands out then."""
        return self.has_same_rows or self.is_constant

    @property
    def copies_note(self) -> str:
        """What copies of rows do to the p-value, as sentences; empty without copies."""
        return self._copies_text(is_found=True)

    def _copies_text(self, is_found: bool) -> str:
        n = self.n + self.m
        if self.are_ties:
            return ""
        return copies_note(
            self.n_copies, self.n_shared, n, self.names, is_found, self.are_copied_whole
        )

    def _row_order_text(self, level: float) -> str:
        """Return that rows are not independent, which matters only where something was found."""
        if self.p_value > level:
            return ""
        return row_order_note(self.row_order, min(self.n, self.m), self.block_length)

    def _where(self, level: float) -> str:
        """Return which column differs most, and in which direction."""
        if not self.features:
            return ""
        most = self.features[0]
        if self.p_value > level:
            if most.p_value > level:
                return ""
            return (
                f"Tested alone, {most.name} has p = {most.p_value:.2g}. Treat this as a hint only, "
                "because the test of all columns together found no difference."
            )
        if most.p_value > level and len(self.features) > 1:
            return NO_SINGLE_COLUMN
        change = change_text(most, (self.n, self.m), self.names, f"in {self.names[1]}")
        return f"Largest difference: {change}."

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types, and the rows most typical of each sample.

        Rows are counted from 1, as in the text.
        """
        return {
            "n": self.n,
            "m": self.m,
            "names": list(self.names),
            **super().to_dict(level),
            "n_copies": self.n_copies,
            "n_shared": self.n_shared,
            "rows_together": self.rows_together,
            "is_exact": self.is_exact,
            "block_length": self.block_length,
            "row_order": None if self.row_order is None else self.row_order.to_dict(),
            "mmd": self.mmd,
            "mmd_interval": list(self.mmd_interval),
            "rows_x": (self.rows_x[:N_NAMED] + 1).tolist(),
            "rows_y": (self.rows_y[:N_NAMED] + 1).tolist(),
            "features": [asdict(each) for each in self.features],
            "tolerance": None if self.tolerance is None else self.tolerance.to_dict(),
        }


def change_header(first: str, second: str) -> tuple[str, str, str]:
    """Return the titles of a table of columns that differ between two samples."""
    return "column", change_title(first, second), "p, corrected for all columns"


def sentence_start(text: str) -> str:
    """Return a text as the start of a sentence; names of files and columns stay as they are."""
    if text.startswith("the "):
        return f"The {text[4:]}"
    return text
