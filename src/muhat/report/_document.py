"""A page as data: the question, the finding, the data, how sure it is, and the Python lines that reproduce it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import unknown_name
from muhat._summary import BAD, FOUND, GOOD, NEUTRAL, UNSURE
from muhat.errors import MuhatError

TONES = (GOOD, BAD, UNSURE, FOUND, NEUTRAL)
"""The tones of a badge, each with a colour: green, red, amber, blue, grey."""

KINDS = ("line", "points", "bars", "band", "rug", "rule")
"""How a series is drawn."""


def number(value: Any, digits: int = 3) -> str:
    """Return a number in so many digits, with a true minus sign; a dash where there is none.

    Examples
    --------
    >>> number(-1234.5), number(0.000123), number(None)
    ('−1,230', '0.000123', '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    value = float(f"{value:.{digits}g}")
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.{digits}g}"
    return text.replace("-", "−")


@dataclass(frozen=True)
class Spark:
    """A histogram as small as a word, of one sample or of several."""

    counts: Sequence[Array]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, what it is sorted by, and a small picture before it."""

    text: str
    value: float | None = None
    spark: Spark | None = None
    is_name: bool = False
    """Whether the text is a user's, such as a column's name, in any script."""


@dataclass(frozen=True)
class Table:
    """A table that can be sorted by each of its columns.

    Attributes
    ----------
    caption : str
        What it shows.
    columns : sequence of str
        The titles.
    rows : sequence of rows, each a sequence of Cell
        The first cell of each is its title.
    marked : int or None
        The row that the verdict is about.
    note : str
        A sentence below it.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    marked: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Axis:
    """One axis of a plot; with ``ticks``, pairs of a place and its name, instead of round numbers."""

    label: str
    low: float
    high: float
    is_log: bool = False
    unit: str = ""
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Series:
    """What belongs together in a plot, and can be switched off together.

    Attributes
    ----------
    name : str
        What the legend calls it.
    kind : {'line', 'points', 'bars', 'band', 'rug', 'rule'}
        How it is drawn: bars between the edges ``x``, a band between ``y`` and ``upper``, a rug of ticks at ``x``, a
        rule across the whole plot at ``x``, or at ``y`` if that is given.
    x, y, upper : arrays
        In the units of the axes.
    colour : int
        Which of the page's ten colours.
    key : str
        Series of several plots with the same key are switched together; by default the name.
    chosen : tuple of two floats or None
        A point to mark.
    is_strong : bool
        Whether it is drawn thicker than the others.
    readings : sequence of (x, y, text) or None
        What is read off it, where that is not simply x and y.
    """

    name: str
    kind: str
    x: Array
    y: Array
    upper: Array | None = None
    colour: int = 0
    key: str = ""
    chosen: tuple[float, float] | None = None
    is_strong: bool = False
    readings: Sequence[tuple[float, float, str]] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MuhatError(unknown_name("Series, kind", self.kind, KINDS))


@dataclass(frozen=True)
class Plot:
    """Series in one pair of axes.

    ``summary`` says what is to be seen, for those who do not see it. In a plot of single points, ``by_point``, values
    are read off the nearest one; else those of every series at one place are. Without ``has_legend`` there are no
    switches, as where the axis names the series.
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


@dataclass(frozen=True)
class Bar:
    """A bar with its name, the share of the width it takes, and its value in words."""

    name: str
    share: float
    text: str
    is_strong: bool = True


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, the longest first."""

    title: str
    caption: str
    columns: tuple[str, str]
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Fact:
    """A number that is worth a large type: what it is, its value, and a word on it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A headline, sentences, warnings, and tables and figures below."""

    title: str
    sentences: Sequence[str] = ()
    warnings: Sequence[str] = ()
    blocks: Sequence[Table | Plot | Bars] = ()


@dataclass(frozen=True)
class Report:
    """A page to send around.

    Attributes
    ----------
    kind : str
        What was done, in a few words.
    question, verdict : str
        What was asked, and the answer, in a sentence each.
    badge, tone : str
        The answer in two or three words, and its kind: ``'good'``, ``'bad'``, ``'unsure'``, ``'found'`` or
        ``'neutral'``.
    facts : sequence of Fact
        The numbers that matter most.
    sections : sequence of Section
        Tables and figures.
    data : Section
        The rows and columns, what was left out, and warnings.
    assumptions : sequence of str
        How sure the finding is, and what was assumed, in plain words.
    code : str
        The Python lines that reproduce it.
    provenance : mapping of str to str
        Versions, seed and settings.
    """

    kind: str
    question: str
    verdict: str
    badge: str
    tone: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    data: Section
    assumptions: Sequence[str]
    code: str
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise MuhatError(unknown_name("Report, tone", self.tone, TONES))
