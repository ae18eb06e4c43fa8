"""A figure as data: axes with series, or bars. matplotlib draws it, and so does a page as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from muhat._arrays import Array
from muhat._messages import unknown_name
from muhat._text import count, number
from muhat.errors import MuhatError

BLACK, ORANGE, BLUE, SKY, RED = "#000000", "#E69F00", "#0072B2", "#56B4E9", "#D55E00"
PINK, WINE, GREEN, YELLOW, GREY = "#CC79A7", "#882255", "#009E73", "#F0E442", "#999999"

PALETTE = (BLACK, ORANGE, BLUE, SKY, RED, PINK, WINE, GREEN, YELLOW, GREY)
"""Okabe and Ito's colours, Tol's wine and a grey: colour-blind readers can distinguish them.

Pages have a lighter and a darker shade of each, for dark and light backgrounds."""

KINDS = ("line", "points", "bars", "band", "ranges", "cells", "rug", "rule")
"""How a series is drawn."""

Reading: TypeAlias = tuple[float, float, str]
"""A place (x, y), and the text that is read off there."""


@dataclass(frozen=True)
class Axis:
    """One axis of a plot, with a name at each of the ``ticks`` (place, name) instead of numbers."""

    label: str
    low: float
    high: float
    is_log: bool = False
    unit: str = ""
    ticks: tuple[tuple[float, str], ...] = ()

    @classmethod
    def around(cls, label: str, values: Array, margin: float = 0.04) -> Axis:
        """Return an axis that holds finite values, with a margin as a share of their range."""
        low, high = float(np.min(values)), float(np.max(values))
        beyond = margin * (high - low) or 0.5
        return cls(label, low - beyond, high + beyond)


@dataclass(frozen=True, eq=False)
class Series:
    """One named part of a plot, such as a curve or dots, which can be hidden.

    Attributes
    ----------
    name : str
        What the legend calls it.
    kind : {'line', 'points', 'bars', 'band', 'ranges', 'cells', 'rug', 'rule'}
        How it is drawn: bars between the edges ``x``, a band between ``y`` and ``upper`` or a
        vertical line at each ``x``, shaded squares around evenly spaced ``x`` and ``y``, a rug of
        ticks at ``x``, a rule across the whole plot at ``x``, or at ``y`` if that is given.
    x, y, upper : arrays of shape (points,)
        In the units of the axes; bars have one more x than y. The ``upper`` of cells has shape
        (len(y), len(x)): the larger, the darker; NaN is empty.
    colour : str
        One of ``PALETTE``, or another one such as '#123456'.
    key : str
        Series of several plots with the same key are switched together; by default the name.
    chosen : tuple of two floats or None
        A point to mark.
    is_strong : bool
        Whether it is drawn thicker than the others.
    readings : sequence of (x, y, text) or None
        What is read off it on a page, if not simply x and y.
    marker : str
        matplotlib's marker of points and of the chosen one, for readers without colours.
    labels : sequence of str
        Words at single points, on paper; a page has them in its readings.
    label_sides : sequence of {'below', 'above', 'right', 'left'}
        On which side of its point each label is; below it by default.
    shade : float
        How strong the colour of a band is on paper, from 0 (white) to 1.
    ends : tuple of two floats or None
        The values of cells that are white and darkest; by default the least and the largest.
    """

    name: str
    kind: str
    x: Array
    y: Array
    upper: Array | None = None
    colour: str = BLACK
    key: str = ""
    chosen: tuple[float, float] | None = None
    is_strong: bool = False
    readings: Sequence[Reading] | None = None
    marker: str = ""
    labels: Sequence[str] = ()
    label_sides: Sequence[str] = ()
    shade: float = 0.3
    ends: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MuhatError(unknown_name("Series, kind", self.kind, KINDS))

    @property
    def placed_labels(self) -> list[tuple[float, float, str, str]]:
        """The labels that are not empty: x, y, the text, and the side of the point it is on."""
        placed = []
        sides = self.label_sides or ["below"] * len(self.labels)
        for x, y, text, side in zip(self.x, self.y, self.labels, sides, strict=False):
            if text:
                placed.append((float(x), float(y), text, side))
        return placed

    @property
    def shades(self) -> Array:
        """The shade of each cell from 0 (white) to 1, of shape (len(y), len(x)); NaN is empty."""
        values = np.asarray(self.upper, dtype=float)
        low, high = self.ends or (np.nanmin(values), np.nanmax(values))
        return np.clip((values - low) / ((high - low) or 1.0), 0, 1)


@dataclass(frozen=True)
class Plot:
    """Series in one pair of axes.

    Attributes
    ----------
    title, caption : str
        The headline, and how to read the figure.
    summary : str
        What is to be seen, for those who do not see it.
    x, y : Axis
        The axes.
    series : sequence of Series
        In the order in which they are drawn.
    by_point : bool
        Whether values are read off the nearest point, or else those of all series at one place.
    is_square : bool
        Whether both axes have the same length.
    has_legend : bool
        Whether series are named beside the plot; not if the axis names them.
    note : str
        A few words behind the title, in figures that have no caption.
    shades : str
        What the shades of cells are; without it, figures have no scale of them.
    names_points : bool
        Whether a page shows the labels of points, too.
    is_small : bool
        Whether a page sets it beside others that are small.
    """

    title: str
    caption: str
    summary: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    by_point: bool = False
    is_square: bool = False
    has_legend: bool = True
    note: str = ""
    shades: str = ""
    names_points: bool = False
    is_small: bool = False


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length in any unit, and its value in words; a weak one is grey.

    A negative length goes to the left.
    """

    name: str
    length: float
    text: str
    is_strong: bool = True


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, the longest first.

    Attributes
    ----------
    title, caption : str
        The headline, and how to read the figure.
    columns : tuple of two str
        What the names and the words are.
    bars : sequence of Bar
        The bars.
    axis : str
        What the length is; without it there is no axis.
    note : str
        A few words behind the title, in figures that have no caption.
    """

    title: str
    caption: str
    columns: tuple[str, str]
    bars: Sequence[Bar]
    axis: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A square table of numbers as colours: larger numbers have a stronger colour.

    Attributes
    ----------
    title, caption : str
        The headline, and how to read the figure.
    labels : sequence of str
        What rows and columns are, in their order.
    values : array of shape (labels, labels)
        Numbers of at least zero; nan is left empty.
    axis : str
        What the numbers are.
    note : str
        A few words behind the title, in figures that have no caption.
    """

    title: str
    caption: str
    labels: Sequence[str]
    values: Array
    axis: str = ""
    note: str = ""


def histogram_readings(edges: Array, counts: Array, noun: str) -> list[Reading]:
    """Return what is read off a histogram of counts."""
    readings = []
    for left, right, n in zip(edges[:-1], edges[1:], counts, strict=True):
        text = f"{count(int(n), noun)} from {number(left)} to {number(right)}"
        readings.append(((left + right) / 2, float(n), text))
    return readings
