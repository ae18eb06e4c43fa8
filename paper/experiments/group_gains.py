"""The gain that `KernelMeans` reports, beside the true one, with few groups and few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat import KernelMeans
from paper._claims import Finding, decimal
from paper._experiment import Experiment, Results, Row, Settings, Task, in_blocks, rows_of_tasks
from paper._figures import blank, legend_of_markers
from paper._group_laws import draw_groups
from paper._tables import column, grouped, markdown, where
from paper.experiments.group_means import LAWS, averaged, by_group

NAMES = (
    "rotated Gaussians",
    "five clusters, radius 1",
    "five clusters, radius 2",
    "curve, d = 10",
    "centres N(0, I), d = 2",
    "centres N(0, I), d = 10",
    "nothing in common, d = 2",
    "wine, shares differ much",
    "glass, shares differ much",
)

SIZES = ((2,), (3,), (5,), (20,), (3, 10, 50))


def settings(quick: bool) -> Settings:
    """Return the cells, and how many samples are drawn in each."""
    chosen: Settings = {
        "seed": 2412,
        "draws": 40,
        "laws": list(NAMES),
        "groups": [6, 8, 10, 20, 50],
        "sizes": [list(sizes) for sizes in (SIZES)],
        "block": 40,
    }
    if quick:
        chosen |= {
            "draws": 2,
            "laws": list(NAMES[:1]),
            "groups": [6],
            "sizes": [list(sizes) for sizes in (SIZES[:1])],
            "block": 2,
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each cell."""
    found: list[Task] = []
    for law in settings["laws"]:
        for T in settings["groups"]:
            for sizes in settings["sizes"]:
                case = {"law": law, "T": T, "sizes": sizes}
                found += in_blocks(case, settings["draws"], settings["block"])
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the reported and the true gain of each draw."""
    rows = []
    for number in range(task["first"], task["last"]):
        place = NAMES.index(task["law"])
        seed = [settings["seed"], place, task["T"], *task["sizes"], number]
        rng = np.random.default_rng(seed)
        law = LAWS[task["law"]](task["T"], rng)
        samples, n = draw_groups(law, task["sizes"], rng)
        model = KernelMeans(standardize=False).fit(samples)
        X = np.concatenate(samples)
        G = by_group(averaged(model.kernel_, X, X, n), n)
        cross = by_group(law.values(model.kernel_, X), n)
        own = np.diag(law.gram(model.kernel_))
        losses = []
        for W in (np.eye(len(n)), model.weights_):
            lengths = np.einsum("tu,tu->t", W @ G, W)
            losses.append(float(n @ (lengths - 2 * np.einsum("tu,ut->t", W, cross) + own)))
        gain = 1 - losses[1] / losses[0]
        case = {"law": task["law"], "T": task["T"], "sizes": " ".join(map(str, task["sizes"]))}
        row = {**case, "reported": model.gain_, "error": model.gain_error_, "true": gain}
        rows.append(row)
    return rows


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return mean gains, errors and coverage of every cell."""
    draws = rows_of_tasks(settings, results)
    found = []
    for (law, T, sizes), some in grouped(draws, "law", "T", "sizes").items():
        reported, error, true = (
            np.array([row[name] for row in some], float) for name in ("reported", "error", "true")
        )
        gaps = reported - true
        found.append(
            {
                "law": law,
                "T": T,
                "sizes": sizes,
                "draws": len(some),
                "true": float(true.mean()),
                "reported": float(reported.mean()),
                "bias": float(gaps.mean()),
                "spread": float(np.sqrt((gaps**2).mean())),
                "error": float(error.mean()),
                "covered": float((np.abs(gaps) <= 2 * error).mean()),
            }
        )
    return found


def findings(results: Results) -> list[Finding]:
    """Return coverage and bias, by the number of groups."""
    found = []
    for T in results.settings["groups"]:
        rows = where(results.rows, T=T)
        covered = column(rows, "covered")
        bias = column(rows, "bias")
        lowest = min(rows, key=lambda row: row["covered"])
        highest = max(rows, key=lambda row: row["bias"])
        what = f"Two errors around the reported gain hold the true one, T = {T}."
        number = (
            f"{100 * covered.mean():.0f} % of draws; least {100 * lowest['covered']:.0f} % "
            f"({lowest['law']}, n = {_sizes(lowest)})"
        )
        found.append(Finding(what, number))
        number = (
            f"{decimal(100 * bias.mean(), 1)} points in the mean of cells, at most "
            f"{decimal(100 * highest['bias'], 1)} ({highest['law']}, n = {_sizes(highest)})"
        )
        found.append(Finding(f"How much too high the reported gain is, T = {T}.", number))
    return found


def _sizes(row: Row) -> str:
    return str(row["sizes"]).replace(" ", "/")


def details(results: Results) -> str:
    """Return the table of cells."""
    lines = []
    for row in results.rows:
        percent = []
        for name in ("true", "reported", "error", "covered"):
            percent.append(decimal(100 * row[name], 0))
        lines.append([row["law"], str(row["T"]), _sizes(row), *percent])
    header = ["groups", "T", "n", "true gain", "reported", "its error", "two errors cover"]
    return "\n".join(["Means over draws, in percent.\n", *markdown(header, lines)])


COLOURS = {6: "#D55E00", 8: "#CC79A7", 10: "#E69F00", 20: "#009E73", 50: "#0072B2"}
MARKERS = {"2": "o", "3": "s", "5": "D", "20": "v", "3 10 50": "*"}


def figure(results: Results) -> Any:
    """Return the figure: reported against true gains, the mean of every cell."""
    drawn = blank(4.2)
    ax = drawn.subplots()
    ax.axline((0, 0), slope=1, color="black", linewidth=0.8)
    for row in results.rows:
        marker = MARKERS[str(row["sizes"])]
        colour = COLOURS[row["T"]]
        ax.errorbar(
            100 * row["true"],
            100 * row["reported"],
            yerr=100 * row["error"],
            color=colour,
            marker=marker,
            elinewidth=0.4,
        )
    ax.set(xlabel="true gain, %", ylabel="reported gain ± its error, %")
    named = {f"{T} groups": (colour, "o") for T, colour in COLOURS.items()}
    for rows, marker in MARKERS.items():
        named[f"{rows.replace(' ', '/')} rows"] = ("#555555", marker)
    legend_of_markers(drawn, named)
    return drawn


EXPERIMENT = Experiment(
    name="group-gains",
    title="the gain that is reported, beside the true one",
    text=(
        "`gain_` and `gain_error_` from the rows alone, against the true gain on the same rows, "
        "each group's squared error times its number of rows. Gaussian kernel at the median "
        "bandwidth; sizes that take turns are separated by strokes. Means over 40 draws of a cell."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
