"""Figure 3b: run time against n, with the parameter known and with choosing it in two ways.

Without an exact score for all at once, choosing takes a matrix inverse for each λ (F-KMSE), or an
iteration on every left-out sample (Landweber, ν-method). Times are the processor's, of one core.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from scipy.linalg import solve

from muhat.datasets import SyntheticFamily
from muhat.filters import Filter, Landweber, NuMethod, Tikhonov
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian
from muhat.selection import Choice, LeaveOneOut
from paper._arrays import Array
from paper._claims import Claim, Finding, in_one_cell, verdict_for
from paper._estimators import display_name, filter_named
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import Line, blank, legend_below, legend_entries, letter_panels, lines
from paper._style import logarithmic, without_frame
from paper._tables import distinct, one, where

ESTIMATORS = ("f-kmse", "landweber", "nu-method")
WAYS = ("parameter known", "choosing, the paper's way", "choosing, ours")

POWERS = {2: "top", 3: "bottom"}
"""Powers of n that slopes are compared with, and the side of the name at its end."""

SPAN, CLEARANCE = 3, 8
"""Over how many sizes the slopes are drawn, and how many times under the fastest."""


def settings(quick: bool) -> Settings:
    """Return the sizes: candidates for each estimator, and repetitions to take the median of."""
    sizes = [50, 100, 200, 400, 800, 1600]
    if quick:
        sizes = [50, 100]
    chosen: Settings = {
        "seed": 2014,
        "d": 20,
        "sizes": sizes,
        "candidates": 50,
        "repetitions": 5,
    }
    if quick:
        chosen |= {"candidates": 5, "repetitions": 3}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each size, estimator and way."""
    found = []
    for n in settings["sizes"]:
        for name in ESTIMATORS:
            for way in WAYS:
                found.append({"n": n, "estimator": name, "way": way})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the times of one estimator, done one way, and the parameter that is chosen."""
    n, name = task["n"], task["estimator"]
    (draw,) = SyntheticFamily(settings["d"]).draw([0], n, settings["seed"])
    gram = DenseGram.from_sample(Gaussian().resolve(draw.X), draw.X)
    count = settings["candidates"]
    if name == "f-kmse":
        grid = np.geomspace(1 / n**2, 1, count)
    else:
        grid = np.arange(1, count + 1)
    choice = LeaveOneOut(grid).choose(DenseProblem(gram), filter_named(name))
    work = _works(gram, choice)[task["way"]]
    times = []
    for _ in range(settings["repetitions"] + 1):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return [
        {
            **task,
            "parameter": choice.parameter,
            "at_edge": bool(choice.at_edge),
            "seconds": times[1:],
        }
    ]


def _works(gram: DenseGram, choice: Choice) -> dict[str, Callable[[], Any]]:
    """Return what is timed for an estimator, by way."""
    filter, grid, n = cast(Filter, choice.filter), choice.grid, len(gram.matrix)
    K, ones = n * gram.matrix, np.full(n, 1 / n)

    def known() -> Array:
        if isinstance(filter, Tikhonov):
            return solve(K + n * choice.parameter * np.eye(n), K @ ones, assume_a="pos")
        return iterated(gram, cast(Any, filter), choice.parameter)

    def one_by_one() -> Array:
        if isinstance(filter, Landweber | NuMethod):
            return scores_by_iterating(K, filter, int(grid[-1]))
        return scores_by_inverting(K, grid)

    return dict(
        zip(
            WAYS,
            (known, one_by_one, lambda: LeaveOneOut(grid).choose(DenseProblem(gram), filter)),
            strict=True,
        )
    )


def iterated(gram: DenseGram, filter: Landweber | NuMethod, t: int) -> Array:
    """Return the weights after t steps of Table 1: β ← β + m (β − β_before) + ω A (1_n − β)."""
    ones = np.full(len(gram.matrix), 1 / len(gram.matrix))
    weights, before, right = np.zeros_like(ones), np.zeros_like(ones), gram.product(ones)
    for step in range(1, t + 1):
        momentum, omega = filter.coefficients(step) if isinstance(filter, NuMethod) else (0.0, 1.0)
        towards = right - gram.product(weights)
        weights, before = weights + momentum * (weights - before) + omega * towards, weights
    return weights


def scores_by_inverting(K: Array, grid: Array) -> Array:
    """Return F-KMSE's exact leave-one-out scores by an inverse (K + cI)⁻¹ for each λ.

    Without point i, ‖μ^(−i)‖² is the sum of all entries of K³(K + cI)⁻² = K − 2c + 3c²(K + cI)⁻¹ −
    c³(K + cI)⁻² over (n−1)², and (K + cI)⁻¹e follows from the inverse of the whole by one column.
    """
    n = len(K)
    row_sums, diagonal = K.sum(axis=1), np.diagonal(K)
    rest_sums = row_sums - diagonal
    scores = []
    for lam in grid:
        c = (n - 1) * lam
        G = np.linalg.inv(K + c * np.eye(n))
        w = G.sum(axis=1)
        ratio = w / np.diagonal(G)
        once = w.sum() - w * ratio  # eᵀ(K_(−i) + cI)⁻¹e
        twice = w @ w - 2 * ratio * (G @ w) + ratio**2 * (G**2).sum(axis=0)  # eᵀ(K_(−i) + cI)⁻²e
        at_left_out = (rest_sums - c * (1 - ratio)) / (n - 1)
        total = row_sums.sum() - 2 * row_sums + diagonal  # eᵀK_(−i)e
        squared = (total - 2 * c * (n - 1) + 3 * c**2 * once - c**3 * twice) / (n - 1) ** 2
        scores.append((diagonal - 2 * at_left_out + squared).mean())
    return np.array(scores)


def scores_by_iterating(K: Array, filter: Landweber | NuMethod, last: int) -> Array:
    """Return the exact leave-one-out scores of t = 1..last by iterating on n left-out samples."""
    n = len(K)
    right = (K.sum(axis=1)[:, None] - K) / (n - 1)  # in column i, K_(−i) times the masses 1/(n−1)
    weights, before, products = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    scores = []
    for t in range(1, last + 1):
        momentum, omega = filter.coefficients(t) if isinstance(filter, NuMethod) else (0.0, 1.0)
        step = omega * (right - products) / (n - 1)
        weights, before = weights + momentum * (weights - before) + step, weights
        np.fill_diagonal(weights, 0)
        products = K @ weights
        at_left_out = np.diagonal(products)
        scores.append((np.diagonal(K) - 2 * at_left_out + (weights * products).sum(axis=0)).mean())
    return np.array(scores)


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the median times, with the quartiles."""
    rows = rows_of_tasks(settings, results)
    found = []
    for row in rows:
        low, middle, high = np.quantile(row["seconds"], [0.25, 0.5, 0.75]).tolist()
        found.append(
            {
                **row,
                "seconds": middle,
                "seconds_low": low,
                "seconds_high": high,
                "repetitions": len(row["seconds"]),
            }
        )
    return found


def claims(results: Results) -> list[Claim]:
    """Return the claims on Landweber and the ν-method against F-KMSE."""
    n = max(results.settings["sizes"])
    rows = where(results.rows, n=n)
    found = []
    for way in distinct(rows, "way"):
        times = {}
        for row in where(rows, way=way):
            times[row["estimator"]] = row
        peer = times.pop("f-kmse")
        says = (
            f"Landweber and the ν-method are more efficient than F-KMSE ({way}, n = {n}; quartiles "
            "in brackets)."
        )
        parts, faster = [], []
        for name, row in times.items():
            parts.append(f"{display_name(name)}{_at(row)} {_times_as_fast(row, peer)}")
            if row["seconds_high"] < peer["seconds_low"]:
                faster.append(name)
        found.append(Claim("Figure 3b", says, in_one_cell(parts), verdict_for(faster, times)))
    return found


def findings(results: Results) -> list[Finding]:
    """Return how much faster our way of choosing is than the paper's."""
    n = max(results.settings["sizes"])
    rows = where(results.rows, n=n)
    _, slow, fast = WAYS
    names = distinct(rows, "estimator")
    cells = []
    for name in names:
        ours = one(rows, estimator=name, way=fast)
        theirs = one(rows, estimator=name, way=slow)
        cells.append(f"{display_name(name)} {_times_as_fast(ours, theirs)}")
    number = in_one_cell(cells)
    what = (
        "All exact leave-one-out scores from one decomposition, against computing them one by one"
    )
    return [Finding(f"{what} (n = {n}; quartiles in brackets).", number)]


def _at(row: Row) -> str:
    """Return the number of iterations, where it matters."""
    if row["way"] != WAYS[0]:
        return ""
    return f" at t = {row['parameter']:g}{', the last candidate,' if row['at_edge'] else ''}"


def _times_as_fast(row: Row, peer: Row) -> str:
    """Return how many times as fast as a peer, with what the quartiles make of it."""
    ratio = peer["seconds"] / row["seconds"]
    low, high = peer["seconds_low"] / row["seconds_high"], peer["seconds_high"] / row["seconds_low"]
    return f"{ratio:.2g} times as fast [{low:.2g}, {high:.2g}]"


def figure(results: Results) -> Any:
    """Return the figure: median seconds with quartiles against n, a panel for each way."""
    ways, sizes = distinct(results.rows, "way", WAYS), sorted(distinct(results.rows, "n"))
    page = blank(2.9)
    axes = page.subplots(1, len(ways), sharex=True, sharey=True, squeeze=False)[0]
    for ax, way in zip(axes, ways, strict=True):
        drawn = lines(where(results.rows, way=way), "n", "seconds")
        for each in drawn:
            each.draw(ax)
        _slopes(ax, drawn)
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
        ax.set_xticks(sizes[::2], sizes[::2])
        ax.set_xlabel("sample size $n$")
        without_frame(ax)
    axes[0].set_ylabel("seconds on one core")
    letter_panels(axes, ways)
    legend_below(page, legend_entries(lines(results.rows, "n", "seconds")))
    return page


def _slopes(ax: Any, drawn: Sequence[Line]) -> None:
    """Draw how n² and n³ grow, well under the fastest over the last sizes."""
    sizes = drawn[0].x[-SPAN:]
    start = min(each.low[-SPAN:][0] for each in drawn) / CLEARANCE
    for power, side in POWERS.items():
        seconds = start * (sizes / sizes[0]) ** power
        ax.plot(sizes, seconds, color="#777777", linewidth=0.8, linestyle=":", zorder=0)
        place = {"xytext": (2, 0), "textcoords": "offset points", "va": side}
        ax.annotate(f"$n^{power}$", (sizes[-1], seconds[-1]), color="#555555", **place)


EXPERIMENT = Experiment(
    name="figure-3b",
    title="run time against n, F-KMSE the paper's way and ours",
    text=(
        "Processor time of one core. *Parameter known*: one linear system for F-KMSE, t products "
        "for the others. *The paper's way*: a matrix inverse for each λ, or the iteration on all "
        "left-out samples. *Ours*: one eigendecomposition and sums of resolvents."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    findings=findings,
    figure=figure,
    alone=True,
)
