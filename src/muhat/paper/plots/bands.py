"""Lines with their bands: what most pictures of the experiments are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.paper.experiments.base import Row
from muhat.plots._style import NAMES, name_of, style_of

DASHES = {"paper": "-", "loo": (0, (4, 1.5)), "oracle": "-"}
"""How lines are drawn: with the rules of the paper, with ours, and with the loss known."""

RULES = {"paper": "GCV", "loo": "exact LOO", "oracle": "oracle"}
"""What tells two lines of one estimator apart; the paper chooses by GCV where we have a second rule."""

BAND = {"alpha": 0.2, "linewidth": 0}


@dataclass(frozen=True, eq=False)
class Line:
    """One estimator's line with its band.

    Attributes
    ----------
    estimator, rule : str
        Whose it is, and how the parameter was chosen.
    x, y, low, high : array
        The line, and the band around it.
    """

    estimator: str
    rule: str
    x: Array
    y: Array
    low: Array
    high: Array

    @property
    def style(self) -> dict[str, Any]:
        """The estimator's colour and marker and the rule's dashes, as keywords of matplotlib."""
        small = {"markersize": 4, "markeredgewidth": 0.4, "linewidth": 1.3}
        return {**style_of(self.estimator), **small, "linestyle": DASHES.get(self.rule, "-")}

    def draw(self, ax: Any, **changes: Any) -> None:
        """Draw the band and the line; changes are of its style."""
        style = {**self.style, **changes}
        ax.fill_between(self.x, self.low, self.high, color=style["color"], **BAND)
        ax.plot(self.x, self.y, label=name_of(self.estimator), zorder=3, **style)


def lines(rows: Iterable[Row], x: str, y: str) -> list[Line]:
    """Return a line of column y against column x for each estimator and rule, in the order of legends."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["estimator"], row.get("rule") or "paper"), []).append(row)
    return [line(*key, group, x, y) for key, group in sorted(groups.items(), key=lambda each: place_of(each[1][0]))]


def place_of(row: Row) -> tuple[int, int]:
    """Return the place of a row's estimator and rule in a legend; those that are not known come last."""
    names, rules = list(NAMES), list(RULES)
    name, rule = row["estimator"], row.get("rule")
    return (
        names.index(name) if name in names else len(names),
        rules.index(rule) if rule in rules else len(rules),
    )


def line(estimator: str, rule: str, rows: Sequence[Row], x: str, y: str) -> Line:
    """Return the line through the rows, from left to right."""
    columns = [np.array([row[name] for row in rows], float) for name in (x, y, f"{y}_low", f"{y}_high")]
    order = columns[0].argsort()
    return Line(estimator, rule, *(column[order] for column in columns))


def as_in_the_paper(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of the paper's estimators with the paper's rules, and of the best of all; without KME."""
    return [row for row in rows if row["estimator"] != "kme" and (row["rule"] == "paper" or row["estimator"] == "auto")]


def distinct(rows: Iterable[Row], column: str, order: Iterable[Any] = ()) -> list[Any]:
    """Return the different values of a column, in the order given or else of appearance."""
    found = dict.fromkeys(row[column] for row in rows)
    first = [value for value in order if value in found]
    return [*first, *(value for value in found if value not in first)]


def handle(**style: Any) -> Any:
    """Return what stands for a line in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)


def entries(drawn: Iterable[Line], notes: Mapping[tuple[str, str], str] = MappingProxyType({})) -> dict[str, Any]:
    """Return a legend's handles by label.

    Two lines of one estimator are told apart by their rule; notes are on estimators and rules that are not drawn.
    """
    styles = {(each.estimator, each.rule): each.style for each in drawn}
    times = Counter(name for name, _ in styles)
    labels = {}
    for (name, rule), style in styles.items():
        told = [RULES.get(rule, rule) if times[name] > 1 else "", notes.get((name, rule), "")]
        inside = ", ".join(filter(None, told))
        labels[f"{name_of(name)} ({inside})" if inside else name_of(name)] = handle(**style)
    return labels
