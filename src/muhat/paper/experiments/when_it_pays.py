"""When does shrinkage pay? Improvement against the bandwidth, the sample size, and ‖μ‖²/∫k(x, x)dP with Theorem 1."""

from collections.abc import Iterable, Sequence

import numpy as np

from muhat._arrays import Array
from muhat.datasets import Draw, SyntheticFamily
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import Batch, Result, filter_named, median_bandwidth
from muhat.paper.experiments.samples import BLOCK, PILOT, blocks, indices, joined, raw_rows, risk_table
from muhat.theory import admissible_fraction


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    factors = [0.1, 1.0] if quick else [0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0]
    return {
        "seed": 2014,
        "m": 20 if quick else 1000,
        "block": BLOCK,
        "n": 50,
        "d": 20,
        "factors": factors,
        "sizes": [10, 50] if quick else [10, 20, 50, 100, 200, 400],
        "pilot": 200,
        "rates": [[1.0, 1.5], [10.0, 1.5]],
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each block of samples of each panel and place."""
    cases = [{"panel": "bandwidth", "factor": factor, "n": settings["n"]} for factor in settings["factors"]]
    cases += [{"panel": "size", "factor": 1.0, "n": n} for n in settings["sizes"]]
    cases += [{"panel": "theorem-1", "factor": factor, "n": settings["n"]} for factor in settings["factors"]]
    return blocks(settings, cases)


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return the losses of all estimators on a block of samples."""
    family, case = SyntheticFamily(settings["d"]), {key: piece[key] for key in ("panel", "factor", "n")}
    draws = list(family.draw(indices(piece), piece["n"], settings["seed"]))
    if piece["panel"] != "theorem-1":
        return raw_rows(Batch.of(draws, piece["factor"]).results(), **case)
    bandwidths = _pilot_bandwidths(settings, draws, indices(piece))
    batch = Batch.of(draws, bandwidths=piece["factor"] * bandwidths)
    rows = raw_rows([*batch.results(), *_by_rate(settings, batch)], **case)
    return [{**row, "rho": batch.squared_norms.tolist()} for row in rows]


def _pilot_bandwidths(settings: Settings, draws: Sequence[Draw], places: Iterable[int]) -> Array:
    """Return each distribution's median bandwidth, from a sample of its own: the theorem's kernel is a given one."""
    pilots = [
        draw.distribution.sample(settings["pilot"], np.random.default_rng([settings["seed"], PILOT + place]))
        for draw, place in zip(draws, places, strict=True)
    ]
    return np.array([median_bandwidth(X) for X in pilots])


def _by_rate(settings: Settings, batch: Batch) -> list[Result]:
    """Return the losses of S-KMSE with λ = c n^(−β)."""
    lams = np.array([c * batch.problem.n**-beta for c, beta in settings["rates"]])
    losses = batch.constant(filter_named("s-kmse").at_zero(lams))
    return [Result("s-kmse", rate_name(*rate), losses[:, place]) for place, rate in enumerate(settings["rates"])]


def rate_name(c: float, beta: float) -> str:
    """Return what the rule λ = c n^(−β) is called in the table."""
    return f"rate({c:g}, {beta:g})"


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement of every case, and for Theorem 1 what is known exactly of each distribution."""
    raw = joined(results)
    known = [{"rho": float(np.mean(row["rho"])) if "rho" in row else None, **_exact(settings, row)} for row in raw]
    plain = [{key: value for key, value in row.items() if key != "rho"} for row in raw]
    return [{**row, **more} for row, more in zip(risk_table(settings, [plain]), known, strict=True)]


def _exact(settings: Settings, row: Row) -> Row:
    """Return the exact improvement of S-KMSE with λ = c n^(−β) on each distribution, against Theorem 1's class.

    R = (1−ρ)/n and R_λ = s²(1−ρ)/n + (1−s)²ρ with s = 1/(1+λ) and ρ = ‖μ‖², as k(x, x) = 1.
    """
    names = ("exact_risk", "exact_improvement", "boundary", "inside", "wins", "inside_and_wins")
    rate = next((rate for rate in settings["rates"] if row["rule"] == rate_name(*rate)), None)
    if "rho" not in row or (rate is None and row["estimator"] != "kme"):
        return dict.fromkeys(names)
    rho, n = np.array(row["rho"]), row["n"]
    risk = (1 - rho) / n
    if rate is None:
        return {**dict.fromkeys(names), "exact_risk": float(risk.mean())}
    s = float(filter_named("s-kmse").at_zero(np.array([rate[0] * n ** -rate[1]]))[0])
    shrunk = s**2 * risk + (1 - s) ** 2 * rho
    boundary = admissible_fraction(*rate)
    inside, wins = rho < boundary, shrunk < risk
    shares = (float(np.mean(each)) for each in (inside, wins, inside & wins))
    values = (float(shrunk.mean()), 100 * float(1 - shrunk.mean() / risk.mean()), boundary, *shares)
    return dict(zip(names, values, strict=True))


EXPERIMENT = Experiment(
    name="when-it-pays",
    title="improvement against bandwidth, n, and ‖μ‖²/∫k(x, x)dP with Theorem 1's boundary",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
)
