"""Table 2 and the check of the loss: dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muhat.paper.experiments.base import Row
from muhat.paper.experiments.table_2 import CONVERGED
from muhat.paper.plots.bands import as_in_the_paper, distinct, handle, place_of
from muhat.paper.reproduction import Results, where
from muhat.plots._style import blank, lettered, name_of, plain, style_of

STEPS = 40
"""The steps of the solver that table 2 is shown after."""

COLUMNS = 3
"""Of panels, one for each data set."""

SIGNIFICANT = 0.05

SAME = 5e-5
"""Cells of Table 2 that differ by less are the same in the four decimals of the paper."""

COUNTS = {
    "below KME": {"marker": "o", "linestyle": "-"},
    f"below, p < {SIGNIFICANT:g}": {"marker": "v", "linestyle": "--"},
    f"above, p < {SIGNIFICANT:g}": {"marker": "^", "linestyle": ":"},
}
"""What is counted by the steps of the solver, and how it is drawn."""


def loss_figure(results: Results) -> Any:
    """Return the figure of the loss: Monte Carlo averages minus exact values, in half-widths of their intervals."""
    rows = results.rows
    figure = blank(0.8 + 0.24 * len(rows), width=5.0)
    ax = figure.subplots()
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    for place, row in enumerate(rows):
        half = (row["average_high"] - row["average_low"]) / 2 or 1.0
        _dot(ax, row["estimator"], place, [(row[name] - row["exact"]) / half for name in _interval("average")])
    _listed(ax, [f"{name_of(row['estimator'])}, {row['quantity'].split()[0]}" for row in rows])
    reach = 1.05 * max(map(abs, ax.get_xlim()))
    ax.set(xlim=(-reach, reach), xlabel="Monte Carlo − exact\n(half-widths of the 95 % interval)")
    return figure


def table_2_figure(results: Results, steps: int = STEPS) -> Any:
    """Return the figure of table 2: differences from KME, and how many of them are negative after how many steps.

    Parameters
    ----------
    results : Results
        Of the experiment.
    steps : int, default=40
        The steps of the solver after which the differences are shown; the most there are if these are not among them.
    """
    known = distinct(results.rows, "steps")
    steps = steps if steps in known else max(known)
    datasets = distinct(results.rows, "dataset")
    lines = -(-len(datasets) // COLUMNS)
    figure = blank(0.6 + 1.75 * (lines + 1))
    upper, lower = figure.subfigures(2, 1, height_ratios=[lines, 1])
    grid = upper.subplots(lines, COLUMNS, sharey=True, squeeze=False)
    for ax, dataset in zip(grid.flat, datasets, strict=False):
        _differences(ax, where(results.rows, steps=steps, dataset=dataset))
    for ax in grid.flat[len(datasets) :]:
        ax.set_visible(False)
    upper.supxlabel(
        f"difference from KME's negative log-likelihood after {steps_in_words(steps)} (nats per point)",
        fontsize="medium",
    )
    counts = lower.subplots()
    _counts(counts, results.rows)
    lettered([*grid.flat[: len(datasets)], counts], [*datasets, "all data sets"])
    return figure


def _differences(ax: Any, rows: Sequence[Row]) -> None:
    """Draw the differences on one data set; of baselines that are far away, tell where."""
    estimators = sorted(as_in_the_paper(rows), key=place_of)
    baselines = where(rows, rule="baseline")
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    for place, row in enumerate(estimators):
        _dot(ax, row["estimator"], place, [row[name] for name in _interval("difference")])
    left, right = ax.get_xlim()
    for place, row in enumerate(baselines, len(estimators)):
        if left < row["difference"] < right:
            _dot(ax, row["estimator"], place, [row[name] for name in _interval("difference")])
        else:
            _arrow(ax, place, row["difference"])
    ax.set_xlim(left, right)
    ax.locator_params(axis="x", nbins=4)
    _listed(ax, [name_of(row["estimator"]) for row in [*estimators, *baselines]])


def _interval(name: str) -> tuple[str, str, str]:
    """Return the columns of a value and its interval."""
    return name, f"{name}_low", f"{name}_high"


def _dot(ax: Any, estimator: str, place: int, values: Sequence[float]) -> None:
    """Draw a value with its interval."""
    middle, low, high = values
    style = style_of(estimator)
    ax.plot([low, high], [place, place], color=style["color"], linewidth=1.8, solid_capstyle="butt", zorder=2)
    ax.plot(middle, place, linestyle="", markersize=4.5, zorder=3, label=name_of(estimator), **style)


def _arrow(ax: Any, place: int, value: float) -> None:
    """Tell a value that is off the scale."""
    text = f"{value:.2f}".replace("-", "−")
    x, side, told = (0.0, "left", f"← {text}") if value < 0 else (1.0, "right", f"{text} →")
    ax.text(x, place, told, transform=ax.get_yaxis_transform(), ha=side, va="center", fontsize=8, color="#555555")


def _listed(ax: Any, names: Sequence[str]) -> None:
    """Name the rows, from the top down."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    plain(ax)
    ax.spines["left"].set_visible(False)


def steps_in_words(steps: int) -> str:
    """Return when the solver stopped."""
    return "convergence" if steps == CONVERGED else f"{steps} steps"


def _counts(ax: Any, rows: Sequence[Row]) -> None:
    """Draw how many of the paper's cells are below KME, by the steps of the solver."""
    cells = [row for row in rows if row["rule"] == "paper" and row["estimator"] != "kme"]
    steps = sorted(distinct(cells, "steps"))
    keys = {}
    for name, style in COUNTS.items():
        look = {**style, "color": "black", "markerfacecolor": "white", "linewidth": 1.2, "markersize": 5}
        ax.plot(range(len(steps)), [_count(where(cells, steps=each), name) for each in steps], clip_on=False, **look)
        keys[name] = handle(**look)
    total = len(where(cells, steps=steps[0]))
    ax.set_xticks(range(len(steps)), ["converged" if each == CONVERGED else each for each in steps])
    ax.set(ylim=(0, total), xlabel="steps of the solver", ylabel=f"cells of {total}")
    ax.legend(list(keys.values()), list(keys), loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
    plain(ax)


def _count(cells: Sequence[Row], name: str) -> int:
    found = above(cells) if name.startswith("above") else below(cells)
    return len(significant(found) if name.endswith(f"{SIGNIFICANT:g}") else found)


def below(cells: Sequence[Row]) -> list[Row]:
    """Return the cells below KME, in the paper's decimals."""
    return [row for row in cells if row["difference"] < -SAME]


def above(cells: Sequence[Row]) -> list[Row]:
    """Return the cells above KME, in the paper's decimals."""
    return [row for row in cells if row["difference"] > SAME]


def significant(cells: Sequence[Row]) -> list[Row]:
    """Return the cells that differ significantly from KME."""
    return [row for row in cells if row["p_value"] < SIGNIFICANT]
