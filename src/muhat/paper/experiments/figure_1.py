"""Figure 1: the geometry of shrinkage, isotropic and anisotropic, computed.

x ~ N(θ, Σ) in the plane. Shrinking x to (1−α)x brings it closer to θ exactly if x is outside of the circle with centre
θ/(2−α) and radius ‖θ‖/(2−α). Shrinking along one direction u alone, to x − α⟨x, u⟩u, changes the risk by
α²(uᵀΣu + ⟨θ, u⟩²) − 2α uᵀΣu, least at α = uᵀΣu/(uᵀΣu + ⟨θ, u⟩²): as in Theorem 2, component by component.
"""

import numpy as np
from scipy.special import ndtr

from muhat._arrays import Array
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings, as_they_are, one_piece

SHAPES = {"isotropic": [1.0, 1.0], "anisotropic": [1.8, 0.2]}
"""The variances along both axes, with the same sum."""


def settings(quick: bool) -> Settings:
    """Return θ's length and the amount of shrinkage."""
    return {"length": 1.5, "alpha": 0.3, "angles": 7 if quick else 91, "shapes": SHAPES}


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return, for θ in every direction, how probable it is that shrinking helps, and what shrinking along it gains."""
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
                    "probability": probability_closer(theta, np.array(variances), settings["alpha"]),
                    "gain_of_all": 100 * _gain(settings["alpha"], sum(variances), settings["length"], sum(variances)),
                    "best_alpha": best,
                    "gain_along": 100 * _gain(best, along, settings["length"], sum(variances)),
                }
            )
    return rows


def _gain(alpha: float, variance: float, length: float, risk: float) -> float:
    """Return by what share of the whole risk shrinking by α lowers it, where the estimate varies by the variance."""
    return (2 * alpha * variance - alpha**2 * (variance + length**2)) / risk


def probability_closer(theta: Array, variances: Array, alpha: float, nodes: int = 400) -> float:
    """Return P(‖(1−α)x − θ‖ < ‖x − θ‖) for x ~ N(θ, diag(variances)): that x is outside of the circle, by quadrature.

    Examples
    --------
    >>> round(probability_closer(np.array([1.5, 0.0]), np.array([1.0, 1.0]), alpha=0.3), 4)
    0.7242
    """
    centre, radius = theta / (2 - alpha), float(np.linalg.norm(theta)) / (2 - alpha)
    angle, weight = np.polynomial.legendre.leggauss(nodes)
    angle, weight = angle * np.pi / 2, weight * np.pi / 2
    x = centre[0] + radius * np.sin(angle)  # so that the chord's ends have no root in them
    half = radius * np.cos(angle)
    deviation = np.sqrt(variances)
    density = np.exp(-(((x - theta[0]) / deviation[0]) ** 2) / 2) / (deviation[0] * np.sqrt(2 * np.pi))
    chord = ndtr((centre[1] + half - theta[1]) / deviation[1]) - ndtr((centre[1] - half - theta[1]) / deviation[1])
    return float(1 - weight @ (density * chord * half))


EXPERIMENT = Experiment(
    name="figure-1",
    title="the geometry of shrinkage, isotropic and anisotropic",
    settings=settings,
    pieces=one_piece,
    run=run,
    table=as_they_are,
)
