"""The appendix's figure: the risk of S-KMSE with λ = c·n^(−β), against n."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.datasets import SyntheticFamily
from paper._claims import Claim, verdict, with_interval
from paper._estimators import EstimatorLosses, filter_named
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import (
    COLOURS,
    IMPROVEMENT,
    blank,
    legend_handle,
    letter_panels,
    line,
    percent_scale,
)
from paper._samples import (
    SAMPLES_PER_TASK,
    SAMPLINGS,
    blocks,
    exact_losses,
    indices,
    loss_rows,
    risk_table,
)
from paper._style import logarithmic, without_frame, zero_is_kme
from paper._tables import distinct, where

SIMILAR_PERCENT = 0.5
"""An improvement, in percent, up to which we call two estimators alike."""

LETTERS = {"c": "$c$", "beta": r"$\beta$"}

SHADES = (-0.6, 0.7)
"""How far from S-KMSE's colour its shades go: towards white, and towards black."""

SHADE_MARKERS = "soD^vPX"
"""The markers of S-KMSE with different c or β, beside shades of its colour."""


def settings(quick: bool) -> Settings:
    """Return the sizes; the paper does not say which c, β and n it took."""
    chosen: Settings = {
        "seed": 2014,
        "m": 1000,
        "block": SAMPLES_PER_TASK,
        "d": 20,
        "sizes": [10, 20, 50, 100, 200, 500, 1000],
        "samplings": list(SAMPLINGS),
        "fixed_beta": 1.5,
        "c": [0.01, 0.1, 1.0, 10.0, 100.0],
        "fixed_c": 1.0,
        "beta": [0.5, 1.1, 1.5, 2.0, 3.0],
    }
    if quick:
        chosen |= {"m": 20, "sizes": [10, 50]}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of samples of each size."""
    return blocks(
        settings,
        [{"sampling": each, "n": n} for each in settings["samplings"] for n in settings["sizes"]],
    )


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the losses of KME and of S-KMSE for every c and β on a block of samples."""
    n, sampling = task["n"], task["sampling"]
    family = SyntheticFamily(settings["d"], redraw=sampling == "redrawn")
    exact = exact_losses(family.draw(indices(task), n, settings["seed"]))
    plain = EstimatorLosses("kme", "none", exact.of_multiples(np.ones(1))[:, 0])
    rows = []
    for panel, c, beta in _panels(settings):
        s = filter_named("s-kmse").at_zero(np.array([c * n**-beta]))
        shrunk = EstimatorLosses("s-kmse", "rate", exact.of_multiples(s)[:, 0])
        rows += loss_rows([plain, shrunk], sampling=sampling, n=n, panel=panel, c=c, beta=beta)
    return rows


def _panels(settings: Settings) -> list[tuple[str, float, float]]:
    """Return c and β of every curve: on the left β is fixed, on the right c."""
    left = []
    for c in settings["c"]:
        left.append(("beta fixed", c, settings["fixed_beta"]))
    return left + [("c fixed", settings["fixed_c"], beta) for beta in settings["beta"]]


def claims(results: Results) -> list[Claim]:
    """Return the claims: λ = c·n^(−β) approaches KME for small c and for large β."""
    rows = where(results.rows, estimator="s-kmse", sampling="redrawn")
    small, large = min(results.settings["c"]), max(results.settings["beta"])
    ends = [
        (f"if c is very small (c = {small:g})", where(rows, panel="beta fixed", c=small)),
        (f"if β is very large (β = {large:g})", where(rows, panel="c fixed", beta=large)),
    ]
    found = []
    for condition, inside in ends:
        furthest = max(inside, key=lambda row: abs(row["improvement"]))
        says = (
            f"The estimator behaves like the empirical one {condition}: "
            f"within {SIMILAR_PERCENT} % of its risk at every n."
        )
        number = f"furthest at n = {furthest['n']}: {with_interval(furthest)}"
        found.append(
            Claim(
                "Appendix",
                says,
                number,
                verdict(abs(furthest["improvement"]) < SIMILAR_PERCENT),
            )
        )
    return found


def figure(results: Results) -> Any:
    """Return the figure: risk of S-KMSE with λ = c n^(−β), and its improvement, against n."""
    rows = where(results.rows, sampling=distinct(results.rows, "sampling", SAMPLINGS)[0])
    page = blank(5.2)
    axes = page.subplots(2, 2, sharex=True, sharey="row")
    for (upper, lower), panel, free in zip(axes.T, ("beta fixed", "c fixed"), LETTERS, strict=True):
        zero_is_kme(lower, named=lower is axes[1, 1])
        _by_rate(upper, lower, where(rows, panel=panel), free)
    axes[0, 0].set_ylabel(r"risk $E\|\mu_\lambda - \mu\|^2$")
    axes[1, 0].set_ylabel(IMPROVEMENT)
    letter_panels(
        axes[0],
        [f"{LETTERS[fixed]} = {results.settings[f'fixed_{fixed}']:g}" for fixed in ("beta", "c")],
    )
    return page


def _by_rate(upper: Any, lower: Any, rows: Sequence[Row], free: str) -> None:
    """Draw risk and improvement for every value of c or β, whichever is free."""
    values = sorted(distinct(rows, free))
    keys = {}
    for value, colour, marker in zip(values, shades(len(values)), SHADE_MARKERS, strict=False):
        group = where(rows, estimator="s-kmse", **{free: value})
        for ax, column in ((upper, "risk"), (lower, "improvement")):
            drawn = line("s-kmse", "rate", group, "n", column)
            drawn.draw(ax, color=colour, marker=marker)
        keys[f"{LETTERS[free]} = {value:g}"] = legend_handle(
            **{**drawn.style, "color": colour, "marker": marker}
        )
    of_kme = line("kme", "none", where(rows, estimator="kme", **{free: values[0]}), "n", "risk")
    of_kme.draw(upper, marker="", linestyle="--", linewidth=1)
    keys["KME"] = legend_handle(color=COLOURS["kme"], linestyle="--", linewidth=1)
    logarithmic(upper.xaxis)
    logarithmic(upper.yaxis)
    percent_scale(lower)
    lower.set_xlabel("sample size $n$")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.24), "ncols": 3, "frameon": False}
    lower.legend(list(keys.values()), list(keys), **below)
    without_frame(upper)
    without_frame(lower)


def shades(count: int) -> list[tuple[float, ...]]:
    """Return shades of S-KMSE's colour, from light to dark."""
    from matplotlib.colors import to_rgb

    colour = np.array(to_rgb(COLOURS["s-kmse"]))
    places = np.linspace(*SHADES, count)
    found = []
    for place in places:
        found.append(tuple(colour + abs(place) * ((place < 0) - colour)))
    return found


EXPERIMENT = Experiment(
    name="appendix",
    title="risk of S-KMSE with λ = c·n^(−β) against n",
    text="S-KMSE with λ = c·n^(−β). The paper does not say which c, β and n it took.",
    settings=settings,
    tasks=tasks,
    run=run,
    table=risk_table,
    claims=claims,
    figure=figure,
)
