"""Figure 1: the geometry of shrinkage, isotropic and anisotropic, computed.

x ~ N(θ, Σ) in the plane. Shrinking x to (1−α)x brings it closer to θ exactly if x is outside of the
circle with centre θ/(2−α) and radius ‖θ‖/(2−α). Shrinking along one direction u alone, to x − α⟨x,
u⟩u, changes the risk by α²(uᵀΣu + ⟨θ, u⟩²) − 2α uᵀΣu, least at α = uᵀΣu/(uᵀΣu + ⟨θ, u⟩²): as in
Theorem 2, component by component.
"""

from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from paper._arrays import Array
from paper._claims import FAILS, HOLDS, Claim, in_one_cell
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, legend_below, legend_handle, letter_panels
from paper._style import without_frame
from paper._tables import distinct, where

SHAPES = {"isotropic": [1.0, 1.0], "anisotropic": [1.8, 0.2]}
"""The variances along both axes, with the same sum."""

NODES = 400
"""Of the quadrature of a probability."""

DIRECTION = 45.0
"""Degrees: where θ is drawn."""

LEVELS = (1.0, 2.0)
"""Level sets of the density, in standard deviations."""

IMPROVED_COLOUR, WORSENED_COLOUR = "#756BB1", "#969696"
"""The colours of the x that shrinking brings closer to θ, and of those it does not."""

LINES = {
    "isotropic": {"color": "#54278F", "linestyle": "-"},
    "anisotropic": {"color": "#54278F", "linestyle": "--"},
}
"""How both shapes are drawn."""


def settings(quick: bool) -> Settings:
    """Return θ's length and the amount of shrinkage."""
    chosen: Settings = {"length": 1.5, "alpha": 0.3, "angles": 91, "shapes": SHAPES}
    if quick:
        chosen |= {"angles": 7}
    return chosen


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the probability that shrinking helps, and its gain, for θ in every direction."""
    rows = []
    for shape, variances in settings["shapes"].items():
        for degrees in np.linspace(0, 90, settings["angles"]).tolist():
            direction = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
            theta = settings["length"] * direction
            along = float(direction**2 @ variances)  # uᵀΣu
            best = along / (along + settings["length"] ** 2)
            rows.append(
                {
                    "shape": shape,
                    "angle": degrees,
                    "probability": probability_closer(
                        theta, np.array(variances), settings["alpha"]
                    ),
                    "gain_of_all": 100
                    * _gain(settings["alpha"], sum(variances), settings["length"], sum(variances)),
                    "best_alpha": best,
                    "gain_along": 100 * _gain(best, along, settings["length"], sum(variances)),
                }
            )
    return rows


def _gain(alpha: float, variance: float, length: float, risk: float) -> float:
    """Return the share of the whole risk that shrinking by α saves along one direction."""
    return (2 * alpha * variance - alpha**2 * (variance + length**2)) / risk


def probability_closer(theta: Array, variances: Array, alpha: float) -> float:
    """Return P(‖(1−α)x − θ‖ < ‖x − θ‖) for x ~ N(θ, diag(variances)), by quadrature.

    Examples
    --------
    >>> round(probability_closer(np.array([1.5, 0.0]), np.array([1.0, 1.0]), alpha=0.3), 4)
    0.7242
    """
    centre, radius = theta / (2 - alpha), float(np.linalg.norm(theta)) / (2 - alpha)
    angle, weight = (np.pi / 2 * each for each in _quadrature())
    x = centre[0] + radius * np.sin(angle)  # so that the chord's ends have no root in them
    half = radius * np.cos(angle)
    deviation = np.sqrt(variances)
    density = np.exp(-(((x - theta[0]) / deviation[0]) ** 2) / 2) / (
        deviation[0] * np.sqrt(2 * np.pi)
    )
    chord = ndtr((centre[1] + half - theta[1]) / deviation[1]) - ndtr(
        (centre[1] - half - theta[1]) / deviation[1]
    )
    return float(1 - weight @ (density * chord * half))


@cache
def _quadrature() -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre on [−1, 1]."""
    return np.polynomial.legendre.leggauss(NODES)


def claims(results: Results) -> list[Claim]:
    """Return the claim that direction matters only where the distribution is anisotropic."""
    spread = {}
    for shape in results.settings["shapes"]:
        spread[shape] = [row["probability"] for row in where(results.rows, shape=shape)]
    gain = {}
    for shape in results.settings["shapes"]:
        gain[shape] = [row["gain_along"] for row in where(results.rows, shape=shape)]
    parts = []
    for shape in spread:
        helped, gained = spread[shape], gain[shape]
        parts.append(
            f"{shape}: helps with probability {min(helped):.3f} to {max(helped):.3f}, "
            f"shrinking along θ gains {min(gained):.1f} to {max(gained):.1f} % of the risk"
        )
    number = in_one_cell(parts)
    says = (
        "For an isotropic Gaussian shrinkage has the same effect in every direction, for an "
        "anisotropic one not."
    )
    same = np.ptp(gain["isotropic"]) < 1e-9 < np.ptp(gain["anisotropic"])
    return [Claim("Figure 1", says, number, HOLDS if same else FAILS)]


def figure(results: Results) -> Any:
    """Return the figure: the x that shrinking brings closer to θ, and the effect by direction."""
    drawn = blank(2.75)
    grid = drawn.add_gridspec(2, 3, width_ratios=[1.12, 1.12, 1])
    shapes = results.settings["shapes"]
    planes = []
    for place in range(len(shapes)):
        planes.append(drawn.add_subplot(grid[:, place]))
    reach = 1.05 * LEVELS[-1] * max(np.sqrt(variances).max() for variances in shapes.values())
    for ax, variances in zip(planes, shapes.values(), strict=True):
        _plane(
            ax, np.array(variances), results.settings["length"], results.settings["alpha"], reach
        )
    upper = drawn.add_subplot(grid[0, -1])
    lower = drawn.add_subplot(grid[1, -1], sharex=upper)
    _against_direction(upper, results, "probability", 100, "%")
    _against_direction(lower, results, "gain_along", 1, "% of the risk")
    upper.tick_params(labelbottom=False)
    lower.set_xlabel("direction of θ (degrees)")
    letter_panels([*planes, upper, lower], [*shapes, "chance of gain", "gain along θ"])
    legend_below(drawn, _key(results.settings["alpha"]), columns=4)
    return drawn


def _plane(ax: Any, variances: Any, length: float, alpha: float, reach: float) -> None:
    """Draw θ, the origin, and the density of x ~ N(θ, Σ), inside and outside the circle."""
    from matplotlib.patches import Circle, Ellipse, Rectangle

    theta = (length * np.cos(np.radians(DIRECTION)), length * np.sin(np.radians(DIRECTION)))
    centre = (theta[0] / (2 - alpha), theta[1] / (2 - alpha))
    circle = Circle(centre, length / (2 - alpha), fill=False, linestyle=(0, (4, 2)), zorder=2)
    ax.add_patch(circle)
    ellipses = []
    for level in LEVELS:
        ellipses.append((2 * level * np.sqrt(variances)).tolist())
    for width, height in ellipses:
        ax.add_patch(
            Ellipse(theta, width, height, facecolor=IMPROVED_COLOUR, alpha=0.28, linewidth=0)
        )
    ax.add_patch(Rectangle((-9, -9), 18, 18, facecolor="white", clip_path=circle))
    for width, height in ellipses:
        inside = ax.add_patch(
            Ellipse(theta, width, height, facecolor=WORSENED_COLOUR, alpha=0.28, linewidth=0)
        )
        inside.set_clip_path(circle)
        ax.add_patch(Ellipse(theta, width, height, fill=False, edgecolor="#666666", linewidth=0.5))
    ax.plot(*theta, "o", color="black", markersize=4)
    ax.plot(0, 0, "+", color="black", markersize=8)
    ax.annotate("θ", theta, (4, -11), textcoords="offset points")
    ax.annotate("0", (0, 0), (-9, -10), textcoords="offset points")
    ax.set(
        xlim=(theta[0] - reach, theta[0] + reach),
        ylim=(theta[1] - reach, theta[1] + reach),
        aspect="equal",
    )
    ax.set(xlabel="$x_1$", ylabel="$x_2$", xticks=range(-1, 4), yticks=range(-1, 4))
    without_frame(ax)


def _against_direction(ax: Any, results: Results, column: str, factor: float, label: str) -> None:
    """Draw a column of the table against the direction of θ, for both shapes."""
    for shape in distinct(results.rows, "shape"):
        rows = where(results.rows, shape=shape)
        ax.plot(
            [row["angle"] for row in rows], [factor * row[column] for row in rows], **LINES[shape]
        )
    ax.set(ylabel=label, xlim=(0, 90), xticks=[0, 30, 60, 90])
    ax.margins(y=0.12)
    without_frame(ax)


def _key(alpha: float) -> dict[str, Any]:
    """Return what stands for the two regions and the two shapes in the legend."""
    from matplotlib.patches import Patch

    regions = {
        f"x nearer to θ when shrunk by {alpha:g}": Patch(facecolor=IMPROVED_COLOUR, alpha=0.6),
        "x farther from θ": Patch(facecolor=WORSENED_COLOUR, alpha=0.6),
    }
    return regions | {shape: legend_handle(**style) for shape, style in LINES.items()}


EXPERIMENT = Experiment(
    name="figure-1",
    title="the geometry of shrinkage, isotropic and anisotropic",
    text=(
        "x ~ N(θ, Σ) in the plane. Shaded: where shrinking by α brings x closer to θ. On the "
        "right, how that depends on the direction of θ."
    ),
    settings=settings,
    run=run,
    claims=claims,
    figure=figure,
)
