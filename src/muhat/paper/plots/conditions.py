"""Under which conditions shrinkage pays: the appendix's figure, and ours on bandwidth, n and Theorem 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.paper.experiments.base import Row
from muhat.paper.experiments.samples import SAMPLINGS
from muhat.paper.experiments.when_it_pays import rate_name
from muhat.paper.plots.bands import as_in_the_paper, distinct, entries, handle, line, lines
from muhat.paper.plots.figure_3 import IMPROVEMENT, improvements
from muhat.paper.reproduction import Results, where
from muhat.plots._comparison import smooth
from muhat.plots._style import (
    COLOURS,
    blank,
    legend_below,
    lettered,
    logarithmic,
    name_of,
    percents,
    plain,
    zero_is_kme,
)

LETTERS = {"c": "$c$", "beta": r"$\beta$"}

SHADES = (-0.6, 0.7)
"""How far from S-KMSE's colour its shades go: towards white, and towards black."""

SHADE_MARKERS = "soD^vPX"
"""The markers of S-KMSE with different c or β, beside shades of its colour."""

RATE_DASHES = ((0, (1, 1)), (0, (5, 1, 1, 1)), "--")
"""The dashes of S-KMSE with λ = c n^(−β), for each c and β."""

PLACES = {"bandwidth": "factor", "size": "n", "theorem-1": "rho"}
"""What each panel of our figure has on its horizontal axis."""


def appendix_figure(results: Results) -> Any:
    """Return the appendix's figure: risk of S-KMSE with λ = c n^(−β) and its improvement over KME, against n."""
    rows = where(results.rows, sampling=distinct(results.rows, "sampling", SAMPLINGS)[0])
    figure = blank(5.2)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    for (upper, lower), panel, free in zip(axes.T, ("beta fixed", "c fixed"), LETTERS, strict=True):
        zero_is_kme(lower, named=lower is axes[1, 1])
        _by_rate(upper, lower, where(rows, panel=panel), free)
    axes[0, 0].set_ylabel(r"risk $E\|\mu_\lambda - \mu\|^2$")
    axes[1, 0].set_ylabel(IMPROVEMENT)
    lettered(axes[0], [f"{LETTERS[fixed]} = {results.settings[f'fixed_{fixed}']:g}" for fixed in ("beta", "c")])
    return figure


def _by_rate(upper: Any, lower: Any, rows: Sequence[Row], free: str) -> None:
    """Draw risk and improvement for every value of c or β, whichever is free."""
    values = sorted(distinct(rows, free))
    keys = {}
    for value, colour, marker in zip(values, shades(len(values)), SHADE_MARKERS, strict=False):
        group = where(rows, estimator="s-kmse", **{free: value})
        for ax, column in ((upper, "risk"), (lower, "improvement")):
            drawn = line("s-kmse", "rate", group, "n", column)
            drawn.draw(ax, color=colour, marker=marker)
        keys[f"{LETTERS[free]} = {value:g}"] = handle(**{**drawn.style, "color": colour, "marker": marker})
    of_kme = line("kme", "none", where(rows, estimator="kme", **{free: values[0]}), "n", "risk")
    of_kme.draw(upper, marker="", linestyle="--", linewidth=1)
    keys["KME"] = handle(color=COLOURS["kme"], linestyle="--", linewidth=1)
    logarithmic(upper.xaxis)
    logarithmic(upper.yaxis)
    percents(lower)
    lower.set_xlabel("sample size $n$")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.24), "ncols": 3, "frameon": False}
    lower.legend(list(keys.values()), list(keys), **below)
    plain(upper)
    plain(lower)


def shades(count: int) -> list[tuple[float, ...]]:
    """Return shades of S-KMSE's colour, from light to dark."""
    from matplotlib.colors import to_rgb

    colour = np.array(to_rgb(COLOURS["s-kmse"]))
    places = np.linspace(*SHADES, count)
    return [tuple(colour + abs(place) * ((place < 0) - colour)) for place in places]


def when_it_pays_figure(results: Results) -> Any:
    """Return when shrinkage pays: improvement against bandwidth, n, and ‖μ‖²/∫k(x, x)dP with Theorem 1."""
    figure = blank(4.4)
    axes = figure.subplots(1, len(PLACES), sharey=True)
    shown = as_in_the_paper(results.rows)
    for ax, (panel, column) in zip(axes, PLACES.items(), strict=True):
        improvements(ax, lines(where(shown, panel=panel), column, "improvement"), named=ax is axes[-1])
    rates = _theorem_1(axes[2], where(results.rows, panel="theorem-1"), results.settings["rates"])
    for ax in axes[:2]:
        logarithmic(ax.xaxis)
    percents(axes[0])
    axes[0].set(xlabel="bandwidth / median", ylabel=IMPROVEMENT)
    axes[1].set_xlabel("sample size $n$")
    axes[2].set_xlabel(r"$\|\mu\|^2\,/\int k(x,x)\,dP$")
    n = results.settings["n"]
    lettered(axes, [f"$n = {n}$", "median bandwidth", f"$n = {n}$, bandwidth given"])
    legend_below(figure, {**entries(lines(shown, "n", "improvement")), **rates}, columns=3)
    return figure


def _theorem_1(ax: Any, rows: Sequence[Row], rates: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Draw S-KMSE with λ = c n^(−β), exact and simulated, and the theorem's boundaries; return the legend's entries."""
    keys = {}
    for (c, beta), dashes in zip(rates, RATE_DASHES, strict=False):
        group = sorted(where(rows, rule=rate_name(c, beta)), key=lambda row: row["rho"])
        if not group:
            continue
        simulated = line("s-kmse", "rate", group, "rho", "improvement")
        exact = smooth(simulated.x, np.array([row["exact_improvement"] for row in group], float))
        style = {"color": COLOURS["s-kmse"], "linestyle": dashes}
        ax.plot(*exact, linewidth=1.5, **style)
        ax.vlines(simulated.x, simulated.low, simulated.high, color=style["color"], linewidth=2.5)
        ax.plot(simulated.x, simulated.y, **{**simulated.style, "linestyle": "", "markersize": 2.5})
        ax.axvline(group[0]["boundary"], linewidth=0.9, zorder=1, **style)
        factor = "" if c == 1 else f"{c:g}\\,"
        told = rf"{name_of('s-kmse')}, $\lambda = {factor}n^{{-{beta:g}}}$ (vertical: Theorem 1)"
        keys[told] = handle(linewidth=1.5, **style)
    return keys
