"""Two columns of the same rows: points, boxes, or counts, by what the columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat._text import all_shortened, count, number, numbered, shortened
from muhat._validation import as_frame
from muhat.errors import MuhatError
from muhat.figures._plot import BLUE, Axis, Plot, Series

MAX_LEVELS = 8
"""A column of numbers with at most this many distinct values is drawn as categories."""

MAX_POINTS = 5000
"""Points of a scatter; of more rows, evenly spaced ones are drawn."""

SEARCH_ROWS, SEARCH_COLUMNS = 200, 50
"""Rows, and columns of each side, among which the pair that depends most is looked for."""

NAME_LENGTH = 40
"""Characters of a column's name in a figure."""

BOX_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Box:
    """The numbers of one category: how many rows, and their 5, 25, 50, 75 and 95 % quantiles."""

    level: str
    n: int
    quantiles: Array


@dataclass(eq=False)
class Pair:
    """Two columns of the same rows: a scatter, boxes of numbers by category, or counts.

    A column of text, or of at most eight distinct values, is drawn as categories.

    Parameters
    ----------
    x, y : arrays of shape (n,)
        The values of both columns, numbers or text.
    names : tuple of two str
        The names of both columns.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> pair = Pair.from_samples(x, x[:, 1] ** 2, names=(["age", "dose"], "effect"))
    >>> pair.names, pair.kind  # the columns that depend most on each other
    (('dose', 'effect'), 'scatter')
    """

    x: Array
    y: Array
    names: tuple[str, str] = ("x", "y")

    @classmethod
    def from_samples(
        cls, x: Any, y: Any, names: Sequence[str | Sequence[str]] | None = None
    ) -> Self:
        """Return the pair of columns of two samples with the same rows that depends most.

        Parameters
        ----------
        x, y : arrays or data frames of shape (n,) or (n, d)
            The rows; numbers or text.
        names : sequence of two, each a str or a sequence of str, default=None
            The names of the columns of x and of y; by default those of data frames, or x and y.
        """
        x_given, y_given = None, None
        if names is not None:
            x_given, y_given = names
        x_columns, x_names = _columns(x, x_given, "x")
        y_columns, y_names = _columns(y, y_given, "y")
        n, m = _length(x_columns), _length(y_columns)
        if n != m or n == 0:
            needed = "x and y must have the same rows, at least one"
            raise MuhatError("PairDisplay", needed, f"{n} and {m}")
        first, second = most_dependent(x_columns, y_columns)
        return cls(x_columns[first], y_columns[second], (x_names[first], y_names[second]))

    @property
    def kind(self) -> str:
        """What is drawn: 'scatter', 'boxes' or 'counts'."""
        n_categories = is_category(self.x) + is_category(self.y)
        return ("scatter", "boxes", "counts")[n_categories]

    def boxes(self) -> list[Box]:
        """Return the quantiles of the numbers within each category, of boxes."""
        labels, values = self.x, self.y
        if not is_category(labels):
            labels, values = values, labels
        levels, places = np.unique(labels, return_inverse=True)
        boxes = []
        for place, level in enumerate(levels):
            group = np.asarray(values, dtype=float)[places == place]
            boxes.append(Box(_level(level), len(group), np.quantile(group, BOX_QUANTILES)))
        return boxes

    def counts(self) -> tuple[list[str], list[str], Array]:
        """Return the levels of x, those of y, and how many rows have each pair of them."""
        x_levels, x_places = np.unique(self.x, return_inverse=True)
        y_levels, y_places = np.unique(self.y, return_inverse=True)
        table = np.zeros((len(x_levels), len(y_levels)), dtype=int)
        np.add.at(table, (x_places, y_places), 1)
        return [*map(_level, x_levels)], [*map(_level, y_levels)], table

    def points(self) -> tuple[Array, Array]:
        """Return the numbers of both columns, at evenly spaced rows where there are very many."""
        every = slice(None, None, -(-len(self.x) // MAX_POINTS))
        return np.asarray(self.x[every], dtype=float), np.asarray(self.y[every], dtype=float)

    def figure(self, remark: str = "") -> Plot:
        """Return the scatter or the boxes; a remark ends the caption. Counts are a table."""
        if self.kind == "boxes":
            return _boxes_plot(self, remark)
        return _scatter_plot(self, remark)


def _scatter_plot(pair: Pair, remark: str) -> Plot:
    """Return two columns of numbers as points."""
    first, second = all_shortened(pair.names, NAME_LENGTH)
    x, y = pair.points()
    drawn = count(len(x), "row")
    if len(x) < len(pair.x):
        drawn = f"{len(x):,} of {len(pair.x):,} rows"
    readings = []
    for a, b in zip(x, y, strict=True):
        readings.append((float(a), float(b), f"{first} {number(a)}, {second} {number(b)}"))
    return Plot(
        f"{second} and {first}",
        f"Each dot is a row.{remark}",
        f"A scatter plot of {drawn}.",
        Axis.around(first, x),
        Axis.around(second, y),
        [Series("rows", "points", x, y, colour=BLUE, readings=readings)],
        by_point=True,
    )


def _boxes_plot(pair: Pair, remark: str) -> Plot:
    """Return the quantiles of the numbers within each category."""
    boxes = pair.boxes()
    first, second = all_shortened(pair.names, NAME_LENGTH)
    categories, numbers = first, second
    if not is_category(pair.x):
        categories, numbers = second, first
    series: list[Series] = []
    said, ticks, values = [], [], []
    for place, box in enumerate(boxes):
        series += _box_series(place, box)
        said.append(f"{_box_name(box)}: {_box_text(box)}.")
        ticks.append((float(place), f"{box.level} ({box.n:,})"))
        values.append(box.quantiles)
    categories_axis = Axis(f"{categories} (rows)", -0.6, len(boxes) - 0.4, ticks=tuple(ticks))
    return Plot(
        f"{second} and {first}",
        f"Thick line: median. Box: 25 to 75 %. Thin line: 5 to 95 % of the rows.{remark}",
        " ".join(said),
        categories_axis,
        Axis.around(numbers, np.concatenate(values)),
        series,
        has_legend=False,
        note="median; box 25 to 75 %; line 5 to 95 %",
    )


def _box_series(place: int, box: Box) -> list[Series]:
    """Return the box, the line from 5 to 95 %, and the median of one category."""
    low, lower, middle, upper, high = map(float, box.quantiles)
    name, key = _box_name(box), f"level {place}"
    ends, centre = np.array([place - 0.3, place + 0.3]), np.full(2, float(place))
    reading = [(float(place), middle, _box_text(box))]
    lower_ends, upper_ends = np.full(2, lower), np.full(2, upper)
    line, median = np.array([low, high]), np.full(2, middle)
    return [
        Series(name, "band", ends, lower_ends, upper_ends, BLUE, key, readings=reading),
        Series(name, "line", centre, line, colour=BLUE, key=key, readings=()),
        Series(name, "line", ends, median, colour=BLUE, key=key, is_strong=True, readings=()),
    ]


def _box_name(box: Box) -> str:
    return f"{shortened(box.level, 30)}, {count(box.n, 'row')}"


def _box_text(box: Box) -> str:
    low, lower, middle, upper, high = map(number, box.quantiles)
    return f"median {middle}, 25 to 75 %: {lower} to {upper}, 5 to 95 %: {low} to {high}"


def is_category(values: Array) -> bool:
    """Whether a column is drawn as categories: text, truth values, or few distinct numbers."""
    return values.dtype.kind not in "fiu" or len(np.unique(values)) <= MAX_LEVELS


def most_dependent(x_columns: Sequence[Array], y_columns: Sequence[Array]) -> tuple[int, int]:
    """Return the places of the columns of x and of y with the largest distance correlation."""
    if len(x_columns) == 1 and len(y_columns) == 1:
        return 0, 0
    n = len(x_columns[0])
    rows = np.linspace(0, n - 1, min(n, SEARCH_ROWS)).round().astype(int)
    correlations = _distance_vectors(x_columns, rows) @ _distance_vectors(y_columns, rows).T
    first, second = np.unravel_index(int(correlations.argmax()), correlations.shape)
    return int(first), int(second)


def _centred_distances(values: Array) -> Array:
    """Return the distances of all pairs of values, doubly centred and with norm one, as one vector.

    The distance of two categories is 0 or 1. Products of such vectors are squared distance
    correlations.
    """
    if values.dtype.kind in "fiu":
        scale = float(np.ptp(values)) or 1.0
        scaled = (values - values.min()) / scale
        distances = np.abs(scaled[:, None] - scaled)
    else:
        distances = (values[:, None] != values).astype(float)
    distances = (
        distances
        - distances.mean(axis=0)
        - distances.mean(axis=1, keepdims=True)
        + distances.mean()
    )
    return distances.ravel() / (np.linalg.norm(distances) or 1.0)


def _columns(
    sample: Any, names: str | Sequence[str] | None, side: str
) -> tuple[list[Array], list[str]]:
    """Return the columns of a sample and their names."""
    frame = as_frame(sample)
    own = getattr(frame, "column_names", getattr(frame, "columns", None))  # pyarrow's, pandas's
    values = np.asarray(frame)
    if values.ndim not in (1, 2):
        needed = "a sample must have one or two dimensions"
        raise MuhatError("PairDisplay", needed, f"shape {values.shape}")
    values = values.reshape(len(values), -1)
    columns = [*map(_typed, values.T)]
    if names is None and own is not None:
        names = [*map(str, own)]
    if names is None or isinstance(names, str):
        names = [names or side]
        if len(columns) > 1:
            names = numbered(names[0], len(columns), start=1)
    if len(names) != len(columns):
        needed = f"a name for each of the {len(columns)} columns of {side} is needed"
        raise MuhatError("PairDisplay", needed, f"{len(names)}")
    return columns, [*names]


def _typed(column: Array) -> Array:
    """Return a column of objects as numbers if they all are, else as text."""
    if column.dtype.kind != "O":
        return column
    if all(map(_is_number, column)):
        return column.astype(float)
    return column.astype(str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _level(level: Any) -> str:
    if isinstance(level, int | float | np.number):
        return f"{level:.4g}"
    return str(level)


def _length(columns: Sequence[Array]) -> int:
    """Return the number of rows, zero without columns."""
    if not columns:
        return 0
    return len(columns[0])


def _distance_vectors(columns: Sequence[Array], rows: Array) -> Array:
    """Return the centred distances of the first columns at some rows: one vector a column."""
    vectors = []
    for column in columns[:SEARCH_COLUMNS]:
        vectors.append(_centred_distances(column[rows]))
    return np.stack(vectors)
