"""The measure itself: the closed-form loss against Monte Carlo, and KME's risk against its analytic value."""

from collections.abc import Sequence

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.embedding import Embedding
from muhat.kernels import Gaussian
from muhat.mean import KernelMean
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import BY_GCV, PAPER, Batch, median_bandwidth
from muhat.paper.experiments.samples import BLOCK, PILOT, blocks, indices
from muhat.paper.experiments.statistics import mean_of

AT_ONCE = 10_000
"""Draws whose kernel values are in memory at a time."""


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    return {
        "seed": 2014,
        "m": 20 if quick else 1000,
        "block": BLOCK,
        "n": 50,
        "d": 20,
        "draws": 20_000 if quick else 1_000_000,
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each estimator's loss, and one for each block of samples."""
    return [{"estimator": name} for name in PAPER] + blocks(settings, [{"estimator": None}])


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return one estimator's loss in both ways, or KME's losses on a block of samples under one kernel."""
    family = SyntheticFamily(settings["d"], redraw=False)
    (pilot,) = family.draw([PILOT], settings["n"], settings["seed"])
    bandwidth = median_bandwidth(pilot.X)
    if piece["estimator"] is not None:
        return [_by_both(settings, piece["estimator"], bandwidth)]
    batch = Batch.of(
        family.draw(indices(piece), settings["n"], settings["seed"]), bandwidths=[bandwidth] * len(indices(piece))
    )
    exact = (1 - float(batch.squared_norms[0])) / settings["n"]  # (∫k(x, x)dP − ‖μ‖²)/n
    return [{"losses": batch.constant(np.ones(1))[:, 0].tolist(), "exact": exact}]


def _by_both(settings: Settings, name: str, bandwidth: float) -> Row:
    """Return the loss of one estimate in closed form and by averages over draws Y of ‖f‖² − 2f(Y) + k(Y, Y′)."""
    (draw,) = SyntheticFamily(settings["d"], redraw=False).draw([0], settings["n"], settings["seed"])
    selection = "gcv" if name in BY_GCV else "loo"
    f: Embedding = KernelMean(kernel=Gaussian(bandwidth), filter=name, selection=selection).fit(draw.X).embedding_
    rng = np.random.default_rng([settings["seed"], PAPER.index(name)])
    values = []
    for _ in range(settings["draws"] // AT_ONCE):
        Y = draw.distribution.sample(AT_ONCE, rng)
        half = AT_ONCE // 2
        pairs = np.exp(-((Y[:half] - Y[half:]) ** 2).sum(axis=1) / (2 * bandwidth**2))
        values.append(pairs - f(Y[:half]) - f(Y[half:]))
    monte_carlo = mean_of(f.squared_norm() + np.concatenate(values))
    return {"estimator": name, "exact": draw.distribution.squared_distance(f), **monte_carlo.columns("loss")}


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return, for each quantity, its exact value and the average of draws or samples with its interval."""
    rows = [row for rows in results for row in rows]
    table = [
        {
            "quantity": "loss of one estimate",
            "estimator": row["estimator"],
            "draws": settings["draws"],
            "exact": row["exact"],
            "average": row["loss"],
            "average_low": row["loss_low"],
            "average_high": row["loss_high"],
        }
        for row in rows
        if "loss" in row
    ]
    samples = [row for row in rows if "losses" in row]
    risk = mean_of(np.concatenate([row["losses"] for row in samples]))
    told = {
        "quantity": "risk under one kernel",
        "estimator": "kme",
        "draws": settings["m"],
        "exact": samples[0]["exact"],
    }
    return [*table, {**told, **risk.columns("average")}]


EXPERIMENT = Experiment(
    name="loss",
    title="the closed-form loss against Monte Carlo, and KME's risk against its analytic value",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
)
