"""The measure itself: the closed-form loss against Monte Carlo, KME's risk against theory."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.embedding import Embedding
from muhat.kernels import Gaussian
from muhat.mean import KernelMean
from paper._claims import Claim, verdict
from paper._estimators import BY_GCV, PAPER, display_name
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, dot, interval_columns, name_rows
from paper._samples import (
    PILOT_OFFSET,
    SAMPLES_PER_TASK,
    blocks,
    exact_losses,
    indices,
    median_bandwidth,
)
from paper._statistics import mean_of
from paper._tables import one, where

DRAWS_PER_BLOCK = 10_000
"""Draws whose kernel values are in memory at a time."""


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    chosen: Settings = {
        "seed": 2014,
        "m": 10_000,
        "block": SAMPLES_PER_TASK,
        "n": 50,
        "d": 20,
        "draws": 1_000_000,
    }
    if quick:
        chosen |= {"m": 20, "draws": 20_000}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each estimator's loss, and one for each block of samples."""
    return [{"estimator": name} for name in PAPER] + blocks(settings, [{"estimator": None}])


def run(settings: Settings, task: Task) -> list[Row]:
    """Return one estimator's loss in both ways, or KME's losses on a block of samples."""
    family = SyntheticFamily(settings["d"], redraw=False)
    (pilot,) = family.draw([PILOT_OFFSET], settings["n"], settings["seed"])
    bandwidth = median_bandwidth(pilot.X)
    if task["estimator"] is not None:
        return [_by_both(settings, task["estimator"], bandwidth)]
    draws = family.draw(indices(task), settings["n"], settings["seed"])
    exact = exact_losses(draws, [Gaussian(bandwidth)] * len(indices(task)))
    risk = (1 - float(exact.squared_norms[0])) / settings["n"]  # (∫k(x, x)dP − ‖μ‖²)/n
    return [{"losses": exact.of_multiples(np.ones(1))[:, 0].tolist(), "exact": risk}]


def _by_both(settings: Settings, name: str, bandwidth: float) -> Row:
    """Return a loss in closed form and by averages over draws Y of ‖f‖² − 2f(Y) + k(Y, Y′)."""
    (draw,) = SyntheticFamily(settings["d"], redraw=False).draw(
        [0], settings["n"], settings["seed"]
    )
    selection = "loo"
    if name in BY_GCV:
        selection = "gcv"
    mean = KernelMean(kernel=Gaussian(bandwidth), filter=name, selection=selection).fit(draw.X)
    f = cast(Embedding, mean.embedding_)
    rng = np.random.default_rng([settings["seed"], PAPER.index(name)])
    values = []
    for _ in range(settings["draws"] // DRAWS_PER_BLOCK):
        Y = draw.distribution.sample(DRAWS_PER_BLOCK, rng)
        half = DRAWS_PER_BLOCK // 2
        pairs = np.exp(-((Y[:half] - Y[half:]) ** 2).sum(axis=1) / (2 * bandwidth**2))
        values.append(pairs - f(Y[:half]) - f(Y[half:]))
    monte_carlo = mean_of(f.squared_norm() + np.concatenate(values))
    return {
        "estimator": name,
        "exact": draw.distribution.squared_distance(f),
        **monte_carlo.columns("loss"),
    }


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the exact value of each quantity, and the average of draws with its interval."""
    rows = rows_of_tasks(settings, results)
    table = []
    for row in rows:
        if "loss" in row:
            table.append(
                {
                    "quantity": "loss of one estimate",
                    "estimator": row["estimator"],
                    "draws": settings["draws"],
                    "exact": row["exact"],
                    "average": row["loss"],
                    "average_low": row["loss_low"],
                    "average_high": row["loss_high"],
                }
            )
    samples = []
    for row in rows:
        if "losses" in row:
            samples.append(row)
    risk = mean_of(np.concatenate([row["losses"] for row in samples]))
    labels = {
        "quantity": "risk under one kernel",
        "estimator": "kme",
        "draws": settings["m"],
        "exact": samples[0]["exact"],
    }
    return [*table, {**labels, **risk.columns("average")}]


def claims(results: Results) -> list[Claim]:
    """Return what the paper says of the loss and of KME's risk, by which all else is measured."""
    losses = where(results.rows, quantity="loss of one estimate")
    reach = []
    for row in losses:
        reach.append((row["average"] - row["exact"]) / (row["average_high"] - row["average"]))
    inside = sum(abs(each) <= 1 for each in reach)
    risk = one(results.rows, quantity="risk under one kernel")
    low, high = risk["average_low"], risk["average_high"]
    return [
        Claim(
            "Section 5",
            "The loss has a closed form for Gaussian mixtures.",
            f"{inside} of {len(losses)} estimators' losses in the 95 % interval of "
            f"{losses[0]['draws']:,} draws; the furthest at {max(map(abs, reach)):.2f} "
            "half-widths (it holds below 2)",
            verdict(max(map(abs, reach)) < 2),
        ),
        Claim(
            "Section 2",
            "KME's risk is (∫k(x, x)dP − ‖μ‖²)/n.",
            f"{risk['average']:.6f} [{low:.6f}, {high:.6f}] against {risk['exact']:.6f}",
            verdict(low <= risk["exact"] <= high),
        ),
    ]


def figure(results: Results) -> Any:
    """Return the figure: Monte Carlo averages minus exact values, in half-widths."""
    rows = results.rows
    drawn = blank(0.8 + 0.24 * len(rows), width=5.0)
    ax = drawn.subplots()
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    for place, row in enumerate(rows):
        half = (row["average_high"] - row["average_low"]) / 2 or 1.0
        dot(
            ax,
            row["estimator"],
            place,
            [(row[name] - row["exact"]) / half for name in interval_columns("average")],
        )
    name_rows(
        ax, [f"{display_name(row['estimator'])}, {row['quantity'].split()[0]}" for row in rows]
    )
    reach = 1.05 * max(map(abs, ax.get_xlim()))
    ax.set(xlim=(-reach, reach), xlabel="Monte Carlo − exact\n(half-widths of the 95 % interval)")
    return drawn


EXPERIMENT = Experiment(
    name="loss",
    title="the closed-form loss against Monte Carlo, and KME's risk against its analytic value",
    text=(
        "Everything below is measured by the loss ‖μ_λ − μ‖² in closed form. Here it stands "
        "against averages over draws, and KME's average loss, under one mixture and one fixed "
        "bandwidth, against its analytic risk."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    figure=figure,
)
