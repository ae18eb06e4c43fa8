"""What figures are made of: lines with bands, dots with intervals, panels, legends, styles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

import numpy as np

from muhat.filters import FILTERS
from paper._arrays import Array
from paper._estimators import NAMES, display_name
from paper._experiment import Experiment, Results, Row
from paper._style import style, without_frame, zero_is_kme

STYLES = {
    **{name: (kind.colour, kind.marker) for name, kind in FILTERS.items()},
    "auto": ("#5D5D5D", "X"),
    "default": ("#111111", "o"),
    "best": ("#999999", "P"),
    "stacked": ("#AA0044", "*"),
    "maximum likelihood": ("#808080", "d"),
    "k-means": ("#B3B3B3", "p"),
}
"""A colour and a marker for each estimator; greys for baselines and for choices among filters."""

COLOURS = {name: colour for name, (colour, _) in STYLES.items()}

DASHES = {"paper": "-", "loo": (0, (4, 1.5)), "oracle": "-"}
"""How lines are drawn: with the rules of the paper, with ours, and with the loss known."""

RULES = {"paper": "GCV", "loo": "exact LOO", "oracle": "oracle"}
"""What distinguishes two lines of one estimator, of which the paper's is by GCV."""

MIXTURES = {"redrawn": "a new mixture for each sample", "once": "one mixture for all samples"}
IMPROVEMENT = "improvement over KME\n(% of its risk)"

BAND = {"alpha": 0.2, "linewidth": 0}

WIDTH = 7.0
"""Inches: a page's text, so that a font is printed in the size it has here."""

PRINT: Any = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "mathtext.fontset": "dejavusans",
}
"""Settings of matplotlib for a figure in print."""


def draw(experiment: Experiment, results: Results) -> Any:
    """Return the figure of an experiment, made without a screen.

    Parameters
    ----------
    experiment : Experiment
        One of ``paper.EXPERIMENTS``.
    results : Results
        Its results, from ``paper.read_results``.

    Returns
    -------
    figure : matplotlib Figure
        For :func:`muhat.plots.save`.
    """
    from matplotlib import rc_context

    with rc_context(PRINT):
        return experiment.figure(results)


def blank(height: float, width: float = WIDTH) -> Any:
    """Return an empty figure of this size in inches, made without a screen."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05))


def style_of(estimator: str) -> dict[str, Any]:
    """Return an estimator's own colour and marker, as keywords of matplotlib."""
    return style(*STYLES.get(estimator, ()))


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
        look = {**self.style, **changes}
        ax.fill_between(self.x, self.low, self.high, color=look["color"], **BAND)
        ax.plot(self.x, self.y, label=display_name(self.estimator), zorder=3, **look)


def line(estimator: str, rule: str, rows: Sequence[Row], x: str, y: str) -> Line:
    """Return the line through the rows, from left to right."""
    columns = []
    for name in (x, y, f"{y}_low", f"{y}_high"):
        columns.append(np.array([row[name] for row in rows], float))
    order = columns[0].argsort()
    return Line(estimator, rule, *(column[order] for column in columns))


def lines(rows: Iterable[Row], x: str, y: str) -> list[Line]:
    """Return a line of y against x for each estimator and rule, in the order of legends."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["estimator"], row.get("rule") or "paper"), []).append(row)
    found = []
    for key, group in sorted(groups.items(), key=lambda each: place_of(each[1][0])):
        found.append(line(*key, group, x, y))
    return found


def place_of(row: Row) -> tuple[int, int]:
    """Return the place of a row's estimator and rule in a legend; unknown ones are last."""
    names, rules = list(NAMES), list(RULES)
    name, rule = row["estimator"], row.get("rule")
    return (
        names.index(name) if name in names else len(names),
        rules.index(rule) if rule in rules else len(rules),
    )


def as_in_the_paper(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of the paper's estimators with the paper's rules, and of ours; no KME."""
    ours = ("auto", "default", "stacked")
    found = []
    for row in rows:
        if row["estimator"] != "kme" and (row["rule"] == "paper" or row["estimator"] in ours):
            found.append(row)
    return found


def improvements(ax: Any, drawn: Iterable[Line], named: bool = True) -> None:
    """Draw improvements over KME, which is the line at zero."""
    zero_is_kme(ax, named)
    for each in drawn:
        each.draw(ax)
    without_frame(ax)


def dot(ax: Any, estimator: str, place: int, values: Sequence[float]) -> None:
    """Draw a value with its interval in a row of its own."""
    middle, low, high = values
    look = style_of(estimator)
    ax.plot(
        [low, high],
        [place, place],
        color=look["color"],
        linewidth=1.8,
        solid_capstyle="butt",
        zorder=2,
    )
    ax.plot(
        middle, place, linestyle="", markersize=4.5, zorder=3, label=display_name(estimator), **look
    )


def interval_columns(name: str) -> tuple[str, str, str]:
    """Return the columns of a value and its interval."""
    return name, f"{name}_low", f"{name}_high"


def name_rows(ax: Any, names: Sequence[str]) -> None:
    """Name the rows of dots, from the top down."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    without_frame(ax)
    ax.spines["left"].set_visible(False)


def letter_panels(axes: Iterable[Any], titles: Sequence[str]) -> None:
    """Give panels their letters and short titles."""
    for letter, ax, title in zip(ascii_lowercase, axes, titles, strict=False):
        ax.set_title(f"({letter}) {title}", loc="left")


def percent_scale(ax: Any) -> None:
    """Make the vertical axis linear up to one percent and logarithmic beyond."""
    ax.set_yscale("symlog", linthresh=1.0)
    plain_numbers(ax.yaxis)


def plain_numbers(axis: Any) -> None:
    """Label an axis with plain numbers, at its major ticks alone."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axis.set_minor_formatter(NullFormatter())


def legend_handle(**style: Any) -> Any:
    """Return what stands for a line in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)


def legend_entries(
    drawn: Iterable[Line], notes: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a legend's handles by label.

    Two lines of one estimator are distinguished by their rule; notes are on estimators and rules
    that are not drawn.
    """
    styles = {}
    for each in drawn:
        styles[(each.estimator, each.rule)] = each.style
    times = Counter(name for name, _ in styles)
    labels = {}
    for (name, rule), look in styles.items():
        remarks = [RULES.get(rule, rule) if times[name] > 1 else "", notes.get((name, rule), "")]
        inside = ", ".join(filter(None, remarks))
        labels[f"{display_name(name)} ({inside})" if inside else display_name(name)] = (
            legend_handle(**look)
        )
    return labels


def legend_of_markers(figure: Any, styles: Mapping[str, tuple[str, str]], columns: int = 4) -> None:
    """Put a legend of colours and markers, by their labels, under all panels."""
    entries = {}
    for label, (colour, marker) in styles.items():
        entries[label] = legend_handle(color=colour, marker=marker, linestyle="none")
    legend_below(figure, entries, columns)


def legend_below(figure: Any, entries: dict[str, Any], columns: int = 4) -> None:
    """Put a legend under all panels, where it covers nothing."""
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=2.6,
    )
