"""Figure 3c: how much each estimator improves on KME, against the dimension."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.datasets import SyntheticFamily
from paper._claims import (
    FAILS,
    HOLDS,
    NEGLIGIBLE_PERCENT,
    Claim,
    in_one_cell,
    verdict_for,
    with_interval,
)
from paper._estimators import display_name, losses_by_rule
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import (
    IMPROVEMENT,
    MIXTURES,
    blank,
    improvements,
    legend_below,
    legend_entries,
    letter_panels,
    lines,
)
from paper._samples import (
    SAMPLES_PER_TASK,
    SAMPLINGS,
    blocks,
    case_of,
    exact_losses,
    indices,
    joined,
    loss_rows,
    losses_by_case,
    risk_table,
)
from paper._statistics import improvement
from paper._style import logarithmic
from paper._tables import distinct, one, where, where_not

FILTERS = ("f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The spectral filters that the paper compares with S-KMSE."""

SHRINKING = ("s-kmse", *FILTERS)
"""All estimators of the paper but KME."""

MAIN_DIMENSION = 20
"""The dimension of the paper's other figures."""

DIMENSIONS = [1, 2, 5, 10, 20, 50, 100]
"""The dimensions that are labelled."""

OFF_SCALE = 1.0
"""A line this many times farther below KME than the best is above it is noted, not drawn."""


def settings(quick: bool) -> Settings:
    """Return the paper's sizes, or small ones."""
    dimensions = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    if quick:
        dimensions = [1, 20, 50]
    chosen: Settings = {
        "seed": 2014,
        "m": 1000,
        "block": SAMPLES_PER_TASK,
        "n": 50,
        "dimensions": dimensions,
        "samplings": list(SAMPLINGS),
    }
    if quick:
        chosen |= {"m": 10, "n": 20}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of samples of each dimension."""
    cases = []
    for sampling in settings["samplings"]:
        for d in settings["dimensions"]:
            cases.append({"sampling": sampling, "d": d})
    return blocks(settings, cases)


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the losses of all estimators on a block of samples."""
    seed = 1000 * settings["seed"] + task["d"]  # samples of its own for each dimension
    family = SyntheticFamily(task["d"], redraw=task["sampling"] == "redrawn")
    draws = list(family.draw(indices(task), settings["n"], seed))
    found = losses_by_rule(exact_losses(draws))
    return loss_rows(found, sampling=task["sampling"], d=task["d"])


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement of every case, and the improvement over S-KMSE."""
    rows = joined(results)
    simple = losses_by_case("s-kmse", [row for row in rows if row["rule"] == "paper"])
    gains = []
    for row in rows:
        gains.append(
            improvement(np.array(row["losses"]), simple[case_of(row)]).columns("over_s_kmse")
        )
    found = []
    for row, gain in zip(risk_table(settings, results), gains, strict=True):
        found.append({**row, **gain})
    return found


def claims(results: Results) -> list[Claim]:
    """Return the claims: gains by dimension, filters against S-KMSE, and truncated SVD."""
    dimensions, typical = results.settings["dimensions"], typical_dimension(results)
    ends = [(next(d for d in dimensions if d > 1), typical), (typical, max(dimensions))]
    found = []
    for sampling in results.settings["samplings"]:
        rows = where(results.rows, sampling=sampling, rule="paper")
        for pair in ends:
            if pair[0] < pair[1]:
                found.append(_growth(rows, sampling, *pair))
        found += [
            _against_simple(where(rows, d=typical), sampling),
            _truncation(where(rows, d=typical), sampling),
        ]
    return found


def typical_dimension(results: Results) -> int:
    """Return the dimension of the paper's other figures, or the nearest to it that there is."""
    return int(min(results.settings["dimensions"], key=lambda d: abs(d - MAIN_DIMENSION)))


def _growth(rows: list[Row], sampling: str, low: int, high: int) -> Claim:
    """The improvement from one dimension to a higher one."""
    what = "The improvement becomes increasingly remarkable in high dimension"
    parts, grown = [], []
    for name in SHRINKING:
        gap = _gap(rows, name, low, high)
        parts.append(f"{display_name(name)} {with_interval(gap, unit=' points')}")
        if gap["improvement_low"] > 0:
            grown.append(name)
    says = f"{what} (mixture {sampling}, from d = {low} to {high})."
    return Claim("Figure 3c", says, in_one_cell(parts), verdict_for(grown, SHRINKING))


def _against_simple(rows: list[Row], sampling: str) -> Claim:
    """The spectral filters against S-KMSE, in pairs."""
    parts, better = [], []
    for name in FILTERS:
        row = one(rows, estimator=name)
        parts.append(f"{display_name(name)} {with_interval(row, 'over_s_kmse')}")
        if row["over_s_kmse_low"] > 0:
            better.append(name)
    says = f"Most spectral filters outperform S-KMSE (mixture {sampling}, d = {rows[0]['d']})."
    number = in_one_cell(parts)
    if 2 * len(better) > len(FILTERS):
        verdict = HOLDS
    else:
        verdict = verdict_for(better, FILTERS)
    return Claim("Figure 3c", says, number, verdict)


def _truncation(rows: list[Row], sampling: str) -> Claim:
    """Truncated SVD against the others."""
    gains = {}
    for name in SHRINKING:
        gains[name] = one(rows, estimator=name)
    mine = gains.pop("tsvd")
    other = min(gains.values(), key=lambda row: float(row["improvement"]))
    says = (
        f"Truncated SVD still gains, but less than the others (mixture {sampling}, d = "
        f"{mine['d']})."
    )
    number = in_one_cell([with_interval(mine), f"the least of the others {with_interval(other)}"])
    if mine["improvement"] >= other["improvement"] or mine["improvement"] < -NEGLIGIBLE_PERCENT:
        return Claim("Figure 3c", says, number, FAILS)
    gained = mine["improvement_low"] > 0 and mine["improvement"] > NEGLIGIBLE_PERCENT
    return Claim(
        "Figure 3c", says, number, HOLDS if gained else "it gains least, but next to nothing"
    )


def _gap(rows: list[Row], name: str, low_d: int, high_d: int) -> Row:
    """Return the difference of two improvements from independent samples."""
    low, high = one(rows, estimator=name, d=low_d), one(rows, estimator=name, d=high_d)
    value = high["improvement"] - low["improvement"]
    reach = float(np.hypot(*(row["improvement_high"] - row["improvement"] for row in (low, high))))
    return {
        "improvement": value,
        "improvement_low": value - reach,
        "improvement_high": value + reach,
    }


def details(results: Results) -> str:
    """Return the improvements of all estimators and rules at one dimension."""
    d, samplings = typical_dimension(results), results.settings["samplings"]
    lines = [f"| d = {d} | rule | " + " | ".join(f"mixture {each}" for each in samplings) + " |"]
    lines.append("|---|---|" + "---|" * len(samplings))
    for row in where(results.rows, sampling=samplings[0], d=d):
        pair = {"estimator": row["estimator"], "rule": row["rule"], "d": d}
        cells = []
        for each in samplings:
            cells.append(with_interval(where(results.rows, sampling=each, **pair)[0]))
        lines.append(
            f"| {display_name(row['estimator'])} | {row['rule']} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines)


def figure(results: Results) -> Any:
    """Return the figure: improvement against the dimension, chosen and with the loss known."""
    samplings = distinct(results.rows, "sampling", SAMPLINGS)
    drawn = blank(5.6)
    axes = drawn.subplots(2, len(samplings), sharex=True, sharey="row", squeeze=False)
    rows = where_not(results.rows, estimator="kme")
    chosen = where_not(rows, rule="oracle")
    far = far_below(chosen)
    for column, sampling in zip(axes.T, samplings, strict=True):
        of_sampling = lines(where(chosen, sampling=sampling), "d", "improvement")
        last = sampling == samplings[-1]
        improvements(
            column[0],
            [each for each in of_sampling if (each.estimator, each.rule) not in far],
            last,
        )
        improvements(
            column[1],
            lines(where(rows, sampling=sampling, rule="oracle"), "d", "improvement"),
            last,
        )
        logarithmic(column[1].xaxis)
        column[1].set_xticks(DIMENSIONS, DIMENSIONS)
        column[1].set_xlabel("dimension $d$")
    for ax, how in zip(axes[:, 0], ("parameters chosen", "best parameters (oracle)"), strict=True):
        ax.set_ylabel(f"{how}:\n{IMPROVEMENT}")
    letter_panels(axes.flat, 2 * [MIXTURES[sampling] for sampling in samplings])
    legend_below(drawn, legend_entries(lines(chosen, "d", "improvement"), far), columns=3)
    return drawn


def far_below(rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the estimators and rules that are far below KME, with the note for the legend."""
    scale = max([1e-3, *(row["improvement"] for row in rows)])
    found = {}
    for each in lines(rows, "d", "improvement"):
        if each.y.max() < -OFF_SCALE * scale:
            found[
                each.estimator,
                each.rule,
            ] = f"off scale, {each.y.min():.0f} to {each.y.max():.0f} %".replace("-", "−")
    return found


EXPERIMENT = Experiment(
    name="figure-3c",
    title="improvement over KME against the dimension, d from 1 to 100",
    text=(
        "100 (R − R_λ)/R, n = 50, with the paper's rules, with ours, and with an oracle that knows "
        "the loss and bounds what any rule could reach. Where one mixture serves all samples, "
        "intervals are those of that mixture: another one for the same d gives other values."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    details=details,
    figure=figure,
)
