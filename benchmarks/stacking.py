"""The stacked mean, against the filters and one eigendecomposition, and how its time grows."""

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Ratio, medians
from muhat import Gaussian, StackedMean, compare

RNG = np.random.default_rng(0)


def few_rows(n: int = 50, rounds: int = 15) -> Iterator[Ratio]:
    """A small sample, against all filters with their leave-one-out scores."""
    X = RNG.normal(size=(n, 10))
    ours, peer = medians(lambda: StackedMean().fit(X), lambda: compare(X), rounds=rounds)
    yield Ratio(
        f"StackedMean().fit, n = {n}, against all filters with their leave-one-out", ours, peer, 1.0
    )


def many_rows(n: int = 2000, rounds: int = 3) -> Iterator[Ratio]:
    """Some thousand rows, against one eigendecomposition of their Gram matrix."""
    X = RNG.normal(size=(n, 10))
    K = Gaussian(3.0)(X)
    ours, peer = medians(lambda: StackedMean().fit(X), lambda: np.linalg.eigh(K), rounds=rounds)
    yield Ratio(f"StackedMean().fit, n = {n}, against one eigh", ours, peer, 3.0)


def growth(n: int = 50_000, rounds: int = 3) -> Iterator[Ratio]:
    """Twice the rows, where the time grows in proportion to them."""
    X = RNG.normal(size=(2 * n, 5))
    kernel = Gaussian(0.5)
    twice, once = medians(
        lambda: StackedMean(kernel=kernel).fit(X),
        lambda: StackedMean(kernel=kernel).fit(X[:n]),
        rounds=rounds,
    )
    yield Ratio(f"StackedMean().fit, n = {2 * n}, against half the rows", twice, once, 2.5)


BENCHMARKS = {
    few_rows: {"n": 20, "rounds": 1},
    many_rows: {"n": 60, "rounds": 1},
    growth: {"n": 60, "rounds": 1},
}
"""With the arguments of a tiny run."""
