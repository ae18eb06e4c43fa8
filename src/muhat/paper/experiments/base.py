"""What an experiment is: settings, independent pieces of work, and the table that is made of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Settings: TypeAlias = dict[str, Any]
"""Everything that the numbers of an experiment depend on; JSON can hold it."""

Piece: TypeAlias = dict[str, Any]
"""What one piece of work is told beside the settings; JSON can hold it."""

Row: TypeAlias = dict[str, Any]
"""One row: of a tidy table, with strings, numbers, booleans or None; or raw, where lists of numbers may stand too."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment that can be cut into pieces, interrupted and taken up again.

    Its four functions stand at the top level of a module, so that worker processes find them by name. Settings, pieces
    and raw rows go through JSON before they are used: tuples arrive as lists and keys as strings.

    Parameters
    ----------
    name : str
        What it is called on the command line and how its files are named, such as ``"figure-3c"``.
    title : str
        One line on what it shows.
    settings : callable
        ``settings(quick)`` returns everything that the numbers depend on, the seed included; ``quick`` asks for a
        small version of the experiment that takes seconds.
    pieces : callable
        ``pieces(settings)`` returns the pieces of work, in order. None needs the result of another.
    run : callable
        ``run(settings, piece)`` returns the raw rows of one piece. It is called in another process, on one core; it
        draws random numbers from the seed in the settings and from the piece alone.
    table : callable
        ``table(settings, results)`` returns the tidy table, from the raw rows of all pieces in their order.
    alone : bool, default=False
        Whether times are measured: then its pieces run one at a time, and nothing else beside them.
    """

    name: str
    title: str
    settings: Callable[[bool], Settings]
    pieces: Callable[[Settings], list[Piece]]
    run: Callable[[Settings, Piece], list[Row]]
    table: Callable[[Settings, list[list[Row]]], list[Row]]
    alone: bool = False


def one_piece(settings: Settings) -> list[Piece]:
    """Return the pieces of an experiment that is not worth cutting."""
    return [{}]


def as_they_are(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the raw rows, where they are the table."""
    return [row for rows in results for row in rows]
