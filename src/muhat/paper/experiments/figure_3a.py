"""Figure 3a: the risk of Landweber and the ν-method against the number of iterations."""

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat.datasets import SyntheticFamily
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import Batch, filter_named
from muhat.paper.experiments.samples import BLOCK, SAMPLINGS, blocks, indices, joined
from muhat.paper.experiments.statistics import improvement, mean_of
from muhat.selection import LeaveOneOut

LONGEST = {"landweber": 100_000, "nu-method": 1000}
"""The last iteration: λ = 1/t and 1/t², about 1e-5 and 1e-6, far below the average eigenvalue 1/n."""


def settings(quick: bool) -> Settings:
    """Return the paper's sizes, or small ones."""
    return {
        "seed": 2014,
        "m": 20 if quick else 1000,
        "block": BLOCK,
        "n": 50,
        "d": 20,
        "samplings": list(SAMPLINGS),
        "longest": {name: last // 100 if quick else last for name, last in LONGEST.items()},
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each block of samples."""
    return blocks(settings, [{"sampling": sampling} for sampling in settings["samplings"]])


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return the losses at every iteration of a block of samples, and the iteration that leave-one-out chooses."""
    family = SyntheticFamily(settings["d"], redraw=piece["sampling"] == "redrawn")
    batch = Batch.of(family.draw(indices(piece), settings["n"], settings["seed"]))
    sampling = piece["sampling"]
    rows = [{"sampling": sampling, "estimator": "kme", "t": None, "losses": batch.constant(np.ones(1))[:, 0].tolist()}]
    for name, last in settings["longest"].items():
        grid = iterations(last)
        filter = filter_named(name)
        losses = batch.path(filter, grid)
        chosen = np.asarray(LeaveOneOut(grid).choose(batch.problem, filter).parameter)
        rows += [
            {
                "sampling": sampling,
                "estimator": name,
                "t": t,
                "losses": losses[:, place].tolist(),
                "chosen": (chosen == t).tolist(),
            }
            for place, t in enumerate(grid.tolist())
        ]
    return rows


def iterations(last: int) -> Array:
    """Return every iteration up to 100, as the ν-method swings from one to the next, and then 20 in each decade."""
    return np.union1d(
        np.arange(1, min(last, 100) + 1), np.geomspace(1, last, 1 + round(20 * np.log10(last))).round().astype(int)
    )


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk, improvement over KME and how often leave-one-out stops there, for every iteration."""
    rows = joined(results)
    baselines = {row["sampling"]: np.array(row["losses"]) for row in rows if row["estimator"] == "kme"}
    return [
        {
            "sampling": row["sampling"],
            "estimator": row["estimator"],
            "t": row["t"],
            "m": len(row["losses"]),
            **mean_of(np.array(row["losses"])).columns("risk"),
            **improvement(np.array(row["losses"]), baselines[row["sampling"]]).columns("improvement"),
            "chosen": float(np.mean(row["chosen"])) if "chosen" in row else None,
        }
        for row in rows
    ]


EXPERIMENT = Experiment(
    name="figure-3a",
    title="risk of Landweber and the ν-method against the number of iterations",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
)
