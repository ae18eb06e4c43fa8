"""Figures 1 and 2: what shrinking does in the plane, and the filters as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat.paper.plots.bands import distinct, handle
from muhat.paper.reproduction import Results, where
from muhat.plots._style import blank, legend_below, lettered, logarithmic, name_of, plain, style_of

DIRECTION = 45.0
"""Degrees: where θ is drawn."""

LEVELS = (1.0, 2.0)
"""Level sets of the density, in standard deviations."""

NEARER, FARTHER = "#756BB1", "#969696"
"""The colours of the x that shrinking brings closer to θ, and of those it does not."""

SHAPES = {"isotropic": {"color": "#54278F", "linestyle": "-"}, "anisotropic": {"color": "#54278F", "linestyle": "--"}}


def figure_1(results: Results) -> Any:
    """Return figure 1: the x that shrinking brings closer to θ, and how much depends on the direction of θ."""
    figure = blank(2.75)
    grid = figure.add_gridspec(2, 3, width_ratios=[1.12, 1.12, 1])
    shapes = results.settings["shapes"]
    planes = [figure.add_subplot(grid[:, place]) for place in range(len(shapes))]
    reach = 1.05 * LEVELS[-1] * max(np.sqrt(variances).max() for variances in shapes.values())
    for ax, variances in zip(planes, shapes.values(), strict=True):
        _plane(ax, np.array(variances), results.settings["length"], results.settings["alpha"], reach)
    upper = figure.add_subplot(grid[0, -1])
    lower = figure.add_subplot(grid[1, -1], sharex=upper)
    _against_direction(upper, results, "probability", 100, "%")
    _against_direction(lower, results, "gain_along", 1, "% of the risk")
    upper.tick_params(labelbottom=False)
    lower.set_xlabel("direction of θ (degrees)")
    lettered([*planes, upper, lower], [*shapes, "chance of gain", "gain along θ"])
    legend_below(figure, _key(results.settings["alpha"]), columns=4)
    return figure


def _plane(ax: Any, variances: Any, length: float, alpha: float, reach: float) -> None:
    """Draw θ, the origin, and the density of x ~ N(θ, Σ), in one colour within the circle and in another outside."""
    from matplotlib.patches import Circle, Ellipse, Rectangle

    theta = (length * np.cos(np.radians(DIRECTION)), length * np.sin(np.radians(DIRECTION)))
    centre = (theta[0] / (2 - alpha), theta[1] / (2 - alpha))
    circle = Circle(centre, length / (2 - alpha), fill=False, linestyle=(0, (4, 2)), zorder=2)
    ax.add_patch(circle)
    ellipses = [(2 * level * np.sqrt(variances)).tolist() for level in LEVELS]
    for width, height in ellipses:
        ax.add_patch(Ellipse(theta, width, height, facecolor=NEARER, alpha=0.28, linewidth=0))
    ax.add_patch(Rectangle((-9, -9), 18, 18, facecolor="white", clip_path=circle))
    for width, height in ellipses:
        inside = ax.add_patch(Ellipse(theta, width, height, facecolor=FARTHER, alpha=0.28, linewidth=0))
        inside.set_clip_path(circle)
        ax.add_patch(Ellipse(theta, width, height, fill=False, edgecolor="#666666", linewidth=0.5))
    ax.plot(*theta, "o", color="black", markersize=4)
    ax.plot(0, 0, "+", color="black", markersize=8)
    ax.annotate("θ", theta, (4, -11), textcoords="offset points")
    ax.annotate("0", (0, 0), (-9, -10), textcoords="offset points")
    ax.set(xlim=(theta[0] - reach, theta[0] + reach), ylim=(theta[1] - reach, theta[1] + reach), aspect="equal")
    ax.set(xlabel="$x_1$", ylabel="$x_2$", xticks=range(-1, 4), yticks=range(-1, 4))
    plain(ax)


def _against_direction(ax: Any, results: Results, column: str, factor: float, label: str) -> None:
    """Draw a column of the table against the direction of θ, for both shapes."""
    for shape in distinct(results.rows, "shape"):
        rows = where(results.rows, shape=shape)
        ax.plot([row["angle"] for row in rows], [factor * row[column] for row in rows], **SHAPES[shape])
    ax.set(ylabel=label, xlim=(0, 90), xticks=[0, 30, 60, 90])
    ax.margins(y=0.12)
    plain(ax)


def _key(alpha: float) -> dict[str, Any]:
    """Return what stands for the two regions and the two shapes in the legend."""
    from matplotlib.patches import Patch

    regions = {
        f"x nearer to θ when shrunk by {alpha:g}": Patch(facecolor=NEARER, alpha=0.6),
        "x farther from θ": Patch(facecolor=FARTHER, alpha=0.6),
    }
    return regions | {shape: handle(**style) for shape, style in SHAPES.items()}


def figure_2(results: Results) -> Any:
    """Return figure 2: the filters, a panel for each λ."""
    lambdas = distinct(results.rows, "lambda")
    figure = blank(2.9)
    axes = figure.subplots(1, len(lambdas), sharey=True, squeeze=False)[0]
    estimators = distinct(results.rows, "estimator")
    for ax, lam in zip(axes, lambdas, strict=True):
        for place, estimator in enumerate(estimators):
            rows = where(results.rows, estimator=estimator, **{"lambda": lam})
            # One marker on each line, at a place of its own.
            at = [int(len(rows) * (place + 1) / (len(estimators) + 1))]
            gamma, s = ([row[column] for row in rows] for column in ("gamma", "s"))
            ax.plot(
                gamma, s, linewidth=1.3, markersize=5, markevery=at, label=name_of(estimator), **style_of(estimator)
            )
        logarithmic(ax.xaxis)
        ax.axvline(lam, color="#BBBBBB", linewidth=0.7, linestyle=":", zorder=0)
        ax.set_xlabel(r"eigenvalue $\gamma$")
        plain(ax)
    axes[0].set_ylabel(r"share kept $s_\lambda(\gamma)$")
    lettered(axes, [rf"$\lambda = {lam:g}$" for lam in lambdas])
    keys = {name_of(name): handle(linewidth=1.3, markersize=5, **style_of(name)) for name in estimators}
    legend_below(figure, keys)
    return figure
