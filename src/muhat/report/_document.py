"""A page as data: question, verdict, tables, figures, assumptions, and the lines of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muhat._arrays import Array
from muhat._messages import unknown_name
from muhat._summary import BAD, FOUND, GOOD, NEUTRAL, UNSURE
from muhat.errors import MuhatError
from muhat.figures import Bars, Matrix, Plot

TONES = (GOOD, BAD, UNSURE, FOUND, NEUTRAL)
"""The tones of a badge, each with a colour: green, red, amber, blue, grey."""


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

    def has_numbers(self, place: int) -> bool:
        """Whether some cell of a column has a number."""
        return any(row[place].value is not None for row in self.rows)

    rows: Sequence[Sequence[Cell]]
    marked: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Fact:
    """A number that is worth a large type: what it is, its value, and a word on it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A headline, sentences, warnings, and tables and figures below, small ones side by side."""

    title: str
    sentences: Sequence[str] = ()
    warnings: Sequence[str] = ()
    blocks: Sequence[Table | Plot | Bars | Matrix] = ()


@dataclass(frozen=True)
class Report:
    """A report: one HTML page.

    Attributes
    ----------
    kind : str
        What was done, in a few words.
    question, verdict : str
        What was asked, and the answer, in a sentence each.
    badge, tone : str
        The answer in two or three words, and its tone: ``'good'``, ``'bad'``, ``'unsure'``,
        ``'found'`` or ``'neutral'``.
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
