"""Figure 3b: run time against the sample size, with the parameter known and with choosing it, the paper's way and ours.

Without an exact score for all at once, choosing takes a matrix inverse for each λ (F-KMSE), or an iteration on every
left-out sample (Landweber, ν-method). Times are of one core.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from scipy.linalg import solve

from muhat._arrays import Array
from muhat.datasets import SyntheticFamily
from muhat.filters import Filter, Landweber, NuMethod, Tikhonov
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import filter_named
from muhat.selection import Choice, LeaveOneOut

ESTIMATORS = ("f-kmse", "landweber", "nu-method")
WAYS = ("parameter known", "choosing, the paper's way", "choosing, ours")


def settings(quick: bool) -> Settings:
    """Return the sizes: as many candidates for each estimator, and the repetitions whose median is taken."""
    sizes = [50, 100] if quick else [50, 100, 200, 400, 800, 1600]
    return {"seed": 2014, "d": 20, "sizes": sizes, "candidates": 5 if quick else 50, "repetitions": 3 if quick else 5}


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each size, estimator and way."""
    return [{"n": n, "estimator": name, "way": way} for n in settings["sizes"] for name in ESTIMATORS for way in WAYS]


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Return the times of one estimator, done one way, and the parameter that leave-one-out chooses."""
    n, name = piece["n"], piece["estimator"]
    (draw,) = SyntheticFamily(settings["d"]).draw([0], n, settings["seed"])
    gram = DenseGram.from_sample(Gaussian().resolve(draw.X), draw.X)
    count = settings["candidates"]
    grid = np.geomspace(1 / n**2, 1, count) if name == "f-kmse" else np.arange(1, count + 1)
    choice = LeaveOneOut(grid).choose(DenseProblem(gram), filter_named(name))
    work = _works(gram, choice)[piece["way"]]
    times = []
    for _ in range(settings["repetitions"] + 1):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return [{**piece, "parameter": choice.parameter, "at_edge": bool(choice.at_edge), "seconds": times[1:]}]


def _works(gram: DenseGram, choice: Choice) -> dict[str, Callable[[], Any]]:
    """Return what is timed for an estimator, by way."""
    filter, grid, n = cast(Filter, choice.filter), choice.grid, len(gram.matrix)
    K, ones = n * gram.matrix, np.full(n, 1 / n)

    def known() -> Array:
        if isinstance(filter, Tikhonov):
            return solve(K + n * choice.parameter * np.eye(n), K @ ones, assume_a="pos")
        root = np.sqrt(ones)
        return root * filter.by_products(gram.product, root, np.zeros(n), choice.parameter)

    def one_by_one() -> Array:
        if isinstance(filter, Landweber | NuMethod):
            return scores_by_iterating(K, filter, int(grid[-1]))
        return scores_by_inverting(K, grid)

    return dict(
        zip(WAYS, (known, one_by_one, lambda: LeaveOneOut(grid).choose(DenseProblem(gram), filter)), strict=True)
    )


def scores_by_inverting(K: Array, grid: Array) -> Array:
    """Return F-KMSE's exact leave-one-out scores with an inverse (K + cI)⁻¹, c = (n−1)λ, for each λ.

    Without point i, ‖μ^(−i)‖² is the sum of all entries of K³(K + cI)⁻² = K − 2c + 3c²(K + cI)⁻¹ − c³(K + cI)⁻² over
    (n−1)², and (K + cI)⁻¹e follows from the inverse of the whole by one column.
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
    """Return the exact leave-one-out scores of t = 1..last by iterating on all n left-out samples, a column each."""
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
    rows = [row for rows in results for row in rows]
    quartiles = [np.quantile(row["seconds"], [0.25, 0.5, 0.75]).tolist() for row in rows]
    return [
        {**row, "seconds": middle, "seconds_low": low, "seconds_high": high, "repetitions": len(row["seconds"])}
        for row, (low, middle, high) in zip(rows, quartiles, strict=True)
    ]


EXPERIMENT = Experiment(
    name="figure-3b",
    title="run time against n, F-KMSE the paper's way and ours",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
    alone=True,
)
