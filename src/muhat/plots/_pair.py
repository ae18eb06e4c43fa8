"""The display of two columns of the same rows: points, boxes, or counts, by what the columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_frame
from muhat.errors import MuhatError
from muhat.plots._style import COLOURS, axes_or_new, without_frame

MAX_LEVELS = 8
"""A column of numbers with at most this many distinct values is drawn as categories."""

MAX_POINTS = 5000
"""Points of a scatter; of more rows, evenly spaced ones are drawn."""

SEARCH_ROWS, SEARCH_COLUMNS = 200, 50
"""Rows, and columns of each side, among which the pair that depends most is looked for."""

BOX_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Box:
    """The numbers of one category: how many rows, and their 5, 25, 50, 75 and 95 % quantiles."""

    level: str
    n: int
    quantiles: Array


@dataclass(eq=False)
class PairDisplay:
    """Two columns of the same rows: a scatter, boxes of a number within each category, or a table of counts.

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
    >>> display = PairDisplay.from_samples(x, x[:, 1] ** 2, names=(["age", "dose"], "effect"))
    >>> display.names, display.kind  # the columns that depend most on each other; display.plot() draws them
    (('dose', 'effect'), 'scatter')
    """

    x: Array
    y: Array
    names: tuple[str, str] = ("x", "y")

    @classmethod
    def from_samples(
        cls, x: Any, y: Any, names: Sequence[str | Sequence[str]] | None = None
    ) -> Self:
        """Return the display of two samples of the same rows; of several columns, of the pair that depends most.

        Parameters
        ----------
        x, y : arrays or data frames of shape (n,) or (n, d)
            The rows; numbers or text.
        names : sequence of two, each a str or a sequence of str, default=None
            The names of the columns of x and of y; by default those of data frames, or x and y.
        """
        given = (None, None) if names is None else tuple(names)
        sides = [
            _columns(each, name, side) for each, name, side in zip((x, y), given, "xy", strict=True)
        ]
        lengths = [len(columns[0]) if columns else 0 for columns, _ in sides]
        if lengths[0] != lengths[1] or not lengths[0]:
            needed = "x and y must have the same rows, at least one"
            raise MuhatError("PairDisplay", needed, f"{lengths[0]} and {lengths[1]}")
        (x_columns, x_names), (y_columns, y_names) = sides
        first, second = most_dependent(x_columns, y_columns)
        return cls(x_columns[first], y_columns[second], (x_names[first], y_names[second]))

    @property
    def kind(self) -> str:
        """What is drawn: 'scatter', 'boxes' or 'counts'."""
        return {0: "scatter", 1: "boxes", 2: "counts"}[is_category(self.x) + is_category(self.y)]

    def boxes(self) -> list[Box]:
        """Return the quantiles of the numbers within each category, where one column has categories."""
        labels, values = (self.x, self.y) if is_category(self.x) else (self.y, self.x)
        levels, places = np.unique(labels, return_inverse=True)
        groups = [np.asarray(values, dtype=float)[places == place] for place in range(len(levels))]
        return [
            Box(_level(level), len(group), np.quantile(group, BOX_QUANTILES))
            for level, group in zip(levels, groups, strict=True)
        ]

    def counts(self) -> tuple[list[str], list[str], Array]:
        """Return the levels of x, those of y, and how many rows have each pair of them."""
        (x_levels, x_places), (y_levels, y_places) = (
            np.unique(each, return_inverse=True) for each in (self.x, self.y)
        )
        table = np.zeros((len(x_levels), len(y_levels)), dtype=int)
        np.add.at(table, (x_places, y_places), 1)
        return [*map(_level, x_levels)], [*map(_level, y_levels)], table

    def points(self) -> tuple[Array, Array]:
        """Return the numbers of both columns, at evenly spaced rows where there are very many."""
        every = slice(None, None, -(-len(self.x) // MAX_POINTS))
        return np.asarray(self.x[every], dtype=float), np.asarray(self.y[every], dtype=float)

    def plot(self, ax: Any = None) -> Self:
        """Draw it in matplotlib's axes, by default of a new figure; ``ax_`` and ``figure_`` are where it was drawn."""
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        {"scatter": self._scatter, "boxes": self._boxes, "counts": self._counts}[self.kind]()
        return self

    def _scatter(self) -> None:
        x, y = self.points()
        self.ax_.scatter(x, y, s=12, color=COLOURS["f-kmse"], alpha=0.5, linewidths=0)
        self.ax_.set_xlabel(self.names[0])
        self.ax_.set_ylabel(self.names[1])
        without_frame(self.ax_)

    def _boxes(self) -> None:
        boxes = self.boxes()
        drawn = [
            {
                "label": f"{box.level}\n({box.n:,})",
                **dict(zip(_PARTS, map(float, box.quantiles), strict=True)),
            }
            for box in boxes
        ]
        fill = {"facecolor": COLOURS["iterated-tikhonov"], "alpha": 0.6}
        middle = {"color": "black", "linewidth": 1.6}
        self.ax_.bxp(drawn, showfliers=False, patch_artist=True, boxprops=fill, medianprops=middle)
        categories, numbers = self.names if is_category(self.x) else self.names[::-1]
        self.ax_.set_xlabel(f"{categories} (rows)")
        self.ax_.set_ylabel(f"{numbers}  (median; box 25 to 75 %; line 5 to 95 %)")
        without_frame(self.ax_)

    def _counts(self) -> None:
        x_levels, y_levels, table = self.counts()
        shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        self.ax_.imshow(shares.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, origin="lower")
        for (row, column), share in np.ndenumerate(shares):
            colour = "white" if share > 0.6 else "black"
            text = f"{table[row, column]:,}\n{100 * share:.0f} %"
            self.ax_.text(row, column, text, ha="center", va="center", color=colour, fontsize=8)
        self.ax_.set_xticks(range(len(x_levels)), x_levels)
        self.ax_.set_yticks(range(len(y_levels)), y_levels)
        self.ax_.set_xlabel(self.names[0])
        self.ax_.set_ylabel(f"{self.names[1]}  (rows, and % of each column)")


_PARTS = ("whislo", "q1", "med", "q3", "whishi")
"""Matplotlib's names of the five quantiles of a box."""


def is_category(values: Array) -> bool:
    """Whether a column is drawn as categories: text, truth values, or numbers with few distinct values."""
    return values.dtype.kind not in "fiu" or len(np.unique(values)) <= MAX_LEVELS


def most_dependent(x_columns: Sequence[Array], y_columns: Sequence[Array]) -> tuple[int, int]:
    """Return the places of the column of x and the column of y with the largest distance correlation."""
    if len(x_columns) == 1 and len(y_columns) == 1:
        return 0, 0
    n = len(x_columns[0])
    rows = np.linspace(0, n - 1, min(n, SEARCH_ROWS)).round().astype(int)
    sides = [
        np.stack([_centred_distances(column[rows]) for column in columns[:SEARCH_COLUMNS]])
        for columns in (x_columns, y_columns)
    ]
    correlations = sides[0] @ sides[1].T
    first, second = np.unravel_index(int(correlations.argmax()), correlations.shape)
    return int(first), int(second)


def _centred_distances(values: Array) -> Array:
    """Return the distances of all pairs of values, doubly centred and with norm one, as one vector.

    The distance of two categories is 0 or 1. Products of such vectors are distance correlations (squared).
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
        raise MuhatError("PairDisplay", "one or two dimensions are needed", f"shape {values.shape}")
    values = values.reshape(len(values), -1)
    columns = [_typed(column) for column in values.T]
    if names is None and own is not None:
        names = [*map(str, own)]
    if names is None or isinstance(names, str):
        name = names or side
        names = (
            [name]
            if len(columns) == 1
            else [f"{name} {place}" for place in range(1, len(columns) + 1)]
        )
    if len(names) != len(columns):
        needed = f"a name for each of the {len(columns)} columns of {side} is needed"
        raise MuhatError("PairDisplay", needed, f"{len(names)}")
    return columns, [*names]


def _typed(column: Array) -> Array:
    """Return a column of objects as numbers if they all are, else as text."""
    if column.dtype.kind != "O":
        return column
    if all(
        isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in column
    ):
        return column.astype(float)
    return column.astype(str)


def _level(level: Any) -> str:
    return f"{level:.4g}" if isinstance(level, int | float | np.number) else str(level)
