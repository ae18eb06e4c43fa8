"""The appendix's figure: the risk of S-KMSE with λ = c·n^(−β), against n."""

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import Batch, Result, filter_named
from muhat.paper.experiments.samples import BLOCK, SAMPLINGS, blocks, indices, raw_rows, risk_table


def settings(quick: bool) -> Settings:
    """Return the sizes; the paper does not say which c, β and n it took."""
    return {
        "seed": 2014,
        "m": 20 if quick else 1000,
        "block": BLOCK,
        "d": 20,
        "sizes": [10, 50] if quick else [10, 20, 50, 100, 200, 500, 1000],
        "samplings": list(SAMPLINGS),
        "fixed_beta": 1.5,
        "c": [0.01, 0.1, 1.0, 10.0, 100.0],
        "fixed_c": 1.0,
        "beta": [0.5, 1.1, 1.5, 2.0, 3.0],
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each block of samples of each size."""
    return blocks(settings, [{"sampling": each, "n": n} for each in settings["samplings"] for n in settings["sizes"]])


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return the losses of KME and of S-KMSE for every c and β on a block of samples."""
    n, sampling = piece["n"], piece["sampling"]
    family = SyntheticFamily(settings["d"], redraw=sampling == "redrawn")
    batch = Batch.of(family.draw(indices(piece), n, settings["seed"]))
    plain = Result("kme", "none", batch.constant(np.ones(1))[:, 0])
    rows = []
    for panel, c, beta in _panels(settings):
        s = filter_named("s-kmse").at_zero(np.array([c * n**-beta]))
        shrunk = Result("s-kmse", "rate", batch.constant(s)[:, 0])
        rows += raw_rows([plain, shrunk], sampling=sampling, n=n, panel=panel, c=c, beta=beta)
    return rows


def _panels(settings: Settings) -> list[tuple[str, float, float]]:
    """Return c and β of every curve: on the left β is fixed, on the right c."""
    left = [("beta fixed", c, settings["fixed_beta"]) for c in settings["c"]]
    return left + [("c fixed", settings["fixed_c"], beta) for beta in settings["beta"]]


EXPERIMENT = Experiment(
    name="appendix",
    title="risk of S-KMSE with λ = c·n^(−β) against n",
    settings=settings,
    pieces=pieces,
    run=run,
    table=risk_table,
)
