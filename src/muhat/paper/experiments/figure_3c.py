"""Figure 3c: how much each estimator improves on KME, against the dimension."""

from collections.abc import Sequence

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import Batch
from muhat.paper.experiments.samples import (
    BLOCK,
    SAMPLINGS,
    blocks,
    case_of,
    indices,
    joined,
    losses_of,
    raw_rows,
    risk_table,
)
from muhat.paper.experiments.statistics import improvement


def settings(quick: bool) -> Settings:
    """Return the paper's sizes, or small ones."""
    dimensions = [1, 20, 50] if quick else [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    return {
        "seed": 2014,
        "m": 20 if quick else 1000,
        "block": BLOCK,
        "n": 50,
        "dimensions": dimensions,
        "samplings": list(SAMPLINGS),
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each block of samples of each dimension."""
    cases = [{"sampling": sampling, "d": d} for sampling in settings["samplings"] for d in settings["dimensions"]]
    return blocks(settings, cases)


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return the losses of all estimators on a block of samples."""
    seed = 1000 * settings["seed"] + piece["d"]  # samples of its own for each dimension
    family = SyntheticFamily(piece["d"], redraw=piece["sampling"] == "redrawn")
    batch = Batch.of(family.draw(indices(piece), settings["n"], seed))
    return raw_rows(batch.results(), sampling=piece["sampling"], d=piece["d"])


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement of every case, and the improvement over S-KMSE with the paper's rule."""
    rows = joined(results)
    simple = losses_of("s-kmse", [row for row in rows if row["rule"] == "paper"])
    gains = [improvement(np.array(row["losses"]), simple[case_of(row)]).columns("over_s_kmse") for row in rows]
    return [{**row, **gain} for row, gain in zip(risk_table(settings, results), gains, strict=True)]


EXPERIMENT = Experiment(
    name="figure-3c",
    title="improvement over KME against the dimension, d from 1 to 100",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
)
