"""Figure 2: the filters s_λ(γ) = γ g_λ(γ) as functions of γ."""

from typing import cast

import numpy as np

from muhat.filters import Filter
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings, as_they_are, one_piece
from muhat.paper.experiments.contenders import PAPER, filter_named


def settings(quick: bool) -> Settings:
    """Return the λ that all filters are drawn for."""
    return {"lambdas": [0.1, 0.01], "points": 20 if quick else 200, "least": 1e-4}


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return s of every filter at every γ, its parameter acting as λ."""
    gamma = np.geomspace(settings["least"], 1, settings["points"])
    rows = []
    for lam in settings["lambdas"]:
        for name in PAPER:
            filter = cast(Filter, filter_named(name))
            parameter = filter.from_lambda(lam)
            s = filter.path(gamma, np.array([parameter]))[0]
            told = None if filter.parameterless else float(parameter)
            rows += [
                {"lambda": lam, "estimator": name, "parameter": told, "gamma": x, "s": y}
                for x, y in zip(gamma.tolist(), s.tolist(), strict=True)
            ]
    return rows


EXPERIMENT = Experiment(
    name="figure-2",
    title="the filter functions s_λ(γ) of all estimators",
    settings=settings,
    pieces=one_piece,
    run=run,
    table=as_they_are,
)
