"""Figure 3a: the risk of Landweber and the ν-method against the number of iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.datasets import SyntheticFamily
from muhat.selection import LeaveOneOut
from paper._arrays import Array
from paper._claims import (
    NEGLIGIBLE_PERCENT,
    Claim,
    Finding,
    in_one_cell,
    verdict_for,
    with_interval,
)
from paper._estimators import display_name, filter_named
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import (
    IMPROVEMENT,
    MIXTURES,
    blank,
    legend_below,
    legend_entries,
    letter_panels,
    lines,
    style_of,
)
from paper._samples import SAMPLES_PER_TASK, SAMPLINGS, blocks, exact_losses, indices, joined
from paper._statistics import improvement, mean_of
from paper._style import logarithmic, without_frame, zero_is_kme
from paper._tables import column, distinct, where, where_not

MAX_ITERATIONS = {"landweber": 100_000, "nu-method": 1000}
"""The last iteration: λ = 1/t and 1/t² are far below the average eigenvalue 1/n."""

FEW_ITERATIONS = 10
"""Iterations that we call a few."""

SHARES = (0, 104)
"""The limits of an axis of percents of samples."""


def settings(quick: bool) -> Settings:
    """Return the paper's sizes, or small ones."""
    chosen: Settings = {
        "seed": 2014,
        "m": 1000,
        "block": SAMPLES_PER_TASK,
        "n": 50,
        "d": 20,
        "samplings": list(SAMPLINGS),
        "longest": dict(MAX_ITERATIONS),
    }
    if quick:
        chosen |= {"m": 20, "longest": {name: last // 100 for name, last in MAX_ITERATIONS.items()}}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of samples."""
    return blocks(settings, [{"sampling": sampling} for sampling in settings["samplings"]])


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the losses at every iteration of a block of samples, and the chosen iterations."""
    family = SyntheticFamily(settings["d"], redraw=task["sampling"] == "redrawn")
    exact = exact_losses(family.draw(indices(task), settings["n"], settings["seed"]))
    sampling = task["sampling"]
    rows = [
        {
            "sampling": sampling,
            "estimator": "kme",
            "t": None,
            "losses": exact.of_multiples(np.ones(1))[:, 0].tolist(),
        }
    ]
    for name, last in settings["longest"].items():
        grid = iterations(last)
        filter = filter_named(name)
        losses = exact.of_path(filter, grid)
        chosen = np.asarray(LeaveOneOut(grid).choose(exact.problem, filter).parameter)
        for place, t in enumerate(grid.tolist()):
            rows.append(
                {
                    "sampling": sampling,
                    "estimator": name,
                    "t": t,
                    "losses": losses[:, place].tolist(),
                    "chosen": (chosen == t).tolist(),
                }
            )
    return rows


def iterations(last: int) -> Array:
    """Return every iteration up to 100, where the ν-method swings, and then 20 in each decade."""
    return np.union1d(
        np.arange(1, min(last, 100) + 1),
        np.geomspace(1, last, 1 + round(20 * np.log10(last))).round().astype(int),
    )


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk, improvement and how often leave-one-out stops there, for every iteration."""
    rows = joined(results)
    baselines = {}
    for row in rows:
        if row["estimator"] == "kme":
            baselines[row["sampling"]] = np.array(row["losses"])
    found = []
    for row in rows:
        found.append(
            {
                "sampling": row["sampling"],
                "estimator": row["estimator"],
                "t": row["t"],
                "m": len(row["losses"]),
                **mean_of(np.array(row["losses"])).columns("risk"),
                **improvement(np.array(row["losses"]), baselines[row["sampling"]]).columns(
                    "improvement"
                ),
                "chosen": float(np.mean(row["chosen"])) if "chosen" in row else None,
            }
        )
    return found


def claims(results: Results) -> list[Claim]:
    """Return the claims: stopping shrinks, the best stop is early, running on returns to KME."""
    found, place = [], "Figure 3a"
    ends = []
    for name, sampling in _iterated(results):
        ends.append(_Curve.from_results(results, name, sampling))
    names = list(dict.fromkeys(end.estimator for end in ends))

    def holding(test: Callable[[_Curve], bool]) -> str:
        failing = set()
        for each in ends:
            if not test(each):
                failing.add(each.estimator)
        return verdict_for([name for name in names if name not in failing], names)

    says = "The number of iterations acts as shrinkage parameter: stopping early beats KME."
    number = in_one_cell(
        f"{each.label} {with_interval(each.best)} at t = {each.best['t']}" for each in ends
    )
    found.append(Claim(place, says, number, holding(lambda each: each.best["improvement_low"] > 0)))
    says = (
        "Its optimal value is attained within just a few iterations "
        f"(here: at most {FEW_ITERATIONS})."
    )
    number = in_one_cell(
        f"{each.label} best t = {each.best['t']}, leave-one-out stops at {each.median_stop} in the "
        "median"
        for each in ends
    )
    found.append(Claim(place, says, number, holding(lambda each: each.best["t"] <= FEW_ITERATIONS)))
    says = (
        "Running on returns to the empirical estimator, and is never worse (but for "
        f"{NEGLIGIBLE_PERCENT} %)."
    )
    number = in_one_cell(
        f"{each.label} at least {with_interval(each.worst_after)} (t = {each.worst_after['t']}), "
        f"at the end {with_interval(each.rows[-1])}"
        for each in ends
    )
    return [*found, Claim(place, says, number, holding(_Curve.returns))]


def findings(results: Results) -> list[Finding]:
    """Return what stopping far too early costs."""
    parts = []
    for name, sampling in _iterated(results):
        curve = _Curve.from_results(results, name, sampling)
        parts.append(f"{curve.label} {with_interval(curve.rows[0])}")
    number = in_one_cell(parts)
    return [Finding("Improvement over KME after one iteration, which shrinks too much.", number)]


def _iterated(results: Results) -> list[tuple[str, str]]:
    found = []
    for sampling in results.settings["samplings"]:
        for name in results.settings["longest"]:
            found.append((name, sampling))
    return found


@dataclass(frozen=True)
class _Curve:
    """The risk of one iterative estimator."""

    estimator: str
    sampling: str
    rows: list[Row]

    @classmethod
    def from_results(cls, results: Results, name: str, sampling: str) -> _Curve:
        return cls(name, sampling, where(results.rows, estimator=name, sampling=sampling))

    @property
    def label(self) -> str:
        return f"{display_name(self.estimator)} ({self.sampling})"

    @property
    def best(self) -> Row:
        return max(self.rows, key=lambda row: row["improvement"])

    @property
    def worst_after(self) -> Row:
        """The worst iteration after the best."""
        later = []
        for row in self.rows:
            if row["t"] >= self.best["t"]:
                later.append(row)
        return min(later, key=lambda row: row["improvement"])

    def returns(self) -> bool:
        """Whether it ends at KME and is not worse on the way there."""
        end, worst = self.rows[-1]["improvement"], self.worst_after["improvement"]
        return bool(abs(end) < NEGLIGIBLE_PERCENT and worst > -NEGLIGIBLE_PERCENT)

    @property
    def median_stop(self) -> int:
        shares = np.cumsum(column(self.rows, "chosen"))
        return int(self.rows[int(np.searchsorted(shares, shares[-1] / 2))]["t"])


def figure(results: Results) -> Any:
    """Return the figure: improvement against iterations, and where leave-one-out stops."""
    samplings = distinct(results.rows, "sampling", SAMPLINGS)
    iterative = where_not(results.rows, estimator="kme")
    drawn = blank(3.9)
    axes = drawn.subplots(
        2, len(samplings), sharex=True, sharey="row", squeeze=False, height_ratios=[2.2, 1]
    )
    for (upper, lower), sampling in zip(axes.T, samplings, strict=True):
        rows = where(iterative, sampling=sampling)
        zero_is_kme(upper, named=sampling == samplings[-1])
        for each in lines(rows, "t", "improvement"):
            each.draw(upper, markevery=0.08)
        without_frame(upper)
        _stops(lower, rows)
        logarithmic(lower.xaxis)
        lower.set_xlabel("iterations $t$")
    top = max([1e-3, *(row["improvement_high"] for row in iterative)])
    axes[0, 0].set(ylim=(-1.2 * top, 1.15 * top), ylabel=IMPROVEMENT)
    axes[1, 0].set(ylim=SHARES, ylabel="LOO has stopped\n(% of samples)")
    letter_panels(axes[0], [MIXTURES[sampling] for sampling in samplings])
    legend_below(drawn, legend_entries(lines(iterative, "t", "improvement")))
    return drawn


def _stops(ax: Any, rows: Sequence[Row]) -> None:
    """Draw in how many samples leave-one-out has stopped by each iteration."""
    for estimator in distinct(rows, "estimator"):
        own = where(rows, estimator=estimator)
        share = 100 * np.cumsum(column(own, "chosen"))
        colour = style_of(estimator)["color"]
        ax.step(
            [row["t"] for row in own],
            share,
            where="post",
            color=colour,
            linewidth=1.6,
            label=display_name(estimator),
        )
    without_frame(ax)


EXPERIMENT = Experiment(
    name="figure-3a",
    title="risk of Landweber and the ν-method against the number of iterations",
    text=(
        "Risk against the number of iterations, and where leave-one-out stops. The paper's figure "
        "has no scale that we could compare with; the claims are in the table above."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    findings=findings,
    figure=figure,
)
