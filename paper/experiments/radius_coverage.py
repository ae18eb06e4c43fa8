"""Radius: how often the true kernel mean is within the radius of each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.kernels import Gaussian
from muhat.mean import KernelMean
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, legend_below, legend_handle, letter_panels, plain_numbers
from paper._samples import PILOT_OFFSET, median_bandwidth
from paper._style import without_frame
from paper._tables import where

CONFIDENCE = 0.95
SAMPLES_PER_TASK = 500
COLOURS = {
    "empirical-bernstein": ("#0072B2", "o"),
    "bernstein": ("#56B4E9", "s"),
    "mcdiarmid": ("#E69F00", "^"),
    "asymptotic": ("#D55E00", "v"),
}
METHODS = tuple(COLOURS)


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    chosen: Settings = {
        "seed": 2014,
        "draws": 10_000,
        "d": 20,
        "n": [20, 50, 100, 300, 1000],
    }
    if quick:
        chosen |= {"draws": 20, "n": [20, 100]}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return tasks of some draws of one size."""
    draws = settings["draws"]
    found = []
    for n in settings["n"]:
        for first in range(0, draws, SAMPLES_PER_TASK):
            found.append({"n": n, "first": first, "last": min(first + SAMPLES_PER_TASK, draws)})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how often each method's radius held, and the sums of radii and errors.

    The bandwidth is the median of another sample of the same mixture, as the bounds are for a
    kernel that was given.
    """
    n = task["n"]
    held = dict.fromkeys(METHODS, 0)
    radii = dict.fromkeys(METHODS, 0.0)
    errors = 0.0
    indices = range(task["first"], task["last"])
    draws = SyntheticFamily(settings["d"]).draw(indices, n, settings["seed"])
    for index, draw in zip(indices, draws, strict=True):
        rng = np.random.default_rng([settings["seed"], PILOT_OFFSET, index])
        pilot = draw.distribution.sample(50, rng)
        kernel = Gaussian(median_bandwidth(pilot))
        mean = KernelMean(kernel=kernel, filter="kme").fit(draw.X)
        error = float(np.sqrt(draw.distribution.squared_distance(mean.embedding_)))
        errors += error
        for method in METHODS:
            radius = mean.radius(CONFIDENCE, method)
            held[method] += int(error <= radius)
            radii[method] += radius
    found = []
    for method in METHODS:
        found.append(
            {
                "n": n,
                "method": method,
                "draws": len(indices),
                "held": held[method],
                "radius": radii[method],
                "error": errors,
            }
        )
    return found


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return coverage with its standard error, and the mean radius in units of the mean error."""
    sums: dict[tuple[int, str], Row] = {}
    for row in rows_of_tasks(settings, results):
        total = sums.setdefault(
            (row["n"], row["method"]), {"draws": 0, "held": 0, "radius": 0.0, "error": 0.0}
        )
        for key in total:
            total[key] += row[key]
    table = []
    for (n, method), total in sums.items():
        coverage = total["held"] / total["draws"]
        deviation = float(np.sqrt(coverage * (1 - coverage) / total["draws"]))
        length = total["radius"] / total["error"]
        labels = {"n": n, "method": method, "draws": total["draws"]}
        table.append(
            {**labels, "coverage": coverage, "coverage_error": deviation, "length": length}
        )
    return table


def findings(results: Results) -> list[Finding]:
    """Return how often each radius holds μ."""
    draws = results.settings["draws"]
    found = []
    for method in METHODS:
        rows = where(results.rows, method=method)
        parts = []
        for row in rows:
            parts.append(f"{100 * row['coverage']:.2f} % (n = {row['n']})")
        number = ", ".join(parts)
        proven = "at least, at every n"
        if method == METHODS[-1]:
            proven = "asymptotically"
        what = (
            f"{method}: share of {draws:,} draws with μ in the radius; 95 % {proven}, are promised."
        )
        found.append(Finding(what, number))
    return found


def figure(results: Results) -> Any:
    """Return the figure: coverage and length against n."""
    drawn = blank(2.8)
    left, right = drawn.subplots(1, 2)
    left.axhline(100 * CONFIDENCE, color="black", linewidth=0.8, zorder=1)
    for method, (colour, marker) in COLOURS.items():
        rows = where(results.rows, method=method)
        n, coverage, error, length = (
            np.array([row[key] for row in rows])
            for key in ("n", "coverage", "coverage_error", "length")
        )
        look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.3}
        left.errorbar(n, 100 * coverage, 200 * error, label=method, **look)
        right.plot(n, length, label=method, **look)
    left.set(xscale="log", xlabel="n", ylabel="% of draws within the radius")
    right.set(xscale="log", yscale="log", xlabel="n", ylabel="mean radius / mean error")
    for ax in (left, right):
        ax.set_xticks(results.settings["n"], map(str, results.settings["n"]))
        ax.xaxis.minorticks_off()
        without_frame(ax)
    plain_numbers(right.yaxis)
    legend_below(
        drawn,
        {
            method: legend_handle(color=c, marker=m, markersize=4)
            for method, (c, m) in COLOURS.items()
        },
    )
    letter_panels([left, right], ["coverage", "length"])
    return drawn


EXPERIMENT = Experiment(
    name="radius",
    title="coverage of the radius of a kernel mean at 95 %",
    text=(
        "`KernelMean.radius` on samples from the paper's family of mixtures, a new one for each "
        "sample, with the Gaussian kernel at the median bandwidth of another sample of the same "
        "mixture; the distance to the true mean is exact. Whiskers are two standard errors."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    figure=figure,
)
