"""Figure 2: the filters s_λ(γ) = γ g_λ(γ) as functions of γ."""

from typing import Any, cast

import numpy as np

from muhat.filters import Filter
from paper._estimators import PAPER, display_name, filter_named
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, legend_below, legend_handle, letter_panels, style_of
from paper._style import logarithmic, without_frame
from paper._tables import distinct, where


def settings(quick: bool) -> Settings:
    """Return the λ that all filters are drawn for."""
    chosen: Settings = {"lambdas": [0.1, 0.01], "points": 200, "least": 1e-4}
    if quick:
        chosen |= {"points": 20}
    return chosen


def run(settings: Settings, task: Task) -> list[Row]:
    """Return s of every filter at every γ, its parameter acting as λ."""
    gamma = np.geomspace(settings["least"], 1, settings["points"])
    rows = []
    for lam in settings["lambdas"]:
        for name in PAPER:
            filter = cast(Filter, filter_named(name))
            parameter = filter.from_lambda(lam)
            s = filter.path(gamma, np.array([parameter]))[0]
            if filter.parameterless:
                value = None
            else:
                value = float(parameter)
            for x, y in zip(gamma.tolist(), s.tolist(), strict=True):
                rows.append(
                    {"lambda": lam, "estimator": name, "parameter": value, "gamma": x, "s": y}
                )
    return rows


def figure(results: Results) -> Any:
    """Return the figure: the filters, a panel for each λ."""
    lambdas = distinct(results.rows, "lambda")
    drawn = blank(2.9)
    axes = drawn.subplots(1, len(lambdas), sharey=True, squeeze=False)[0]
    estimators = distinct(results.rows, "estimator")
    for ax, lam in zip(axes, lambdas, strict=True):
        for place, estimator in enumerate(estimators):
            rows = where(results.rows, estimator=estimator, **{"lambda": lam})
            # One marker on each line, at a place of its own.
            at = [int(len(rows) * (place + 1) / (len(estimators) + 1))]
            gamma, s = ([row[column] for row in rows] for column in ("gamma", "s"))
            ax.plot(
                gamma,
                s,
                linewidth=1.3,
                markersize=5,
                markevery=at,
                label=display_name(estimator),
                **style_of(estimator),
            )
        logarithmic(ax.xaxis)
        ax.axvline(lam, color="#BBBBBB", linewidth=0.7, linestyle=":", zorder=0)
        ax.set_xlabel(r"eigenvalue $\gamma$")
        without_frame(ax)
    axes[0].set_ylabel(r"share kept $s_\lambda(\gamma)$")
    letter_panels(axes, [rf"$\lambda = {lam:g}$" for lam in lambdas])
    keys = {}
    for name in estimators:
        keys[display_name(name)] = legend_handle(linewidth=1.3, markersize=5, **style_of(name))
    legend_below(drawn, keys)
    return drawn


EXPERIMENT = Experiment(
    name="figure-2",
    title="the filter functions s_λ(γ) of all estimators",
    text=(
        "s_λ(γ) = γ g_λ(γ): what each filter leaves of a component with eigenvalue γ, with "
        "parameters that act as the same λ."
    ),
    settings=settings,
    run=run,
    figure=figure,
)
