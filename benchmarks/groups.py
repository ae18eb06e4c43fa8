"""The means of many groups, against the Gram matrix or the features that they are computed from."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.scale import GIB, measured
from benchmarks.timing import Ratio, medians
from muhat import Gaussian, GroupTest, KernelMeans, Nystrom
from muhat._arrays import Array, slices

RNG = np.random.default_rng(0)

BLOCK_ROWS = 1024
"""Rows of a block of the Gram matrix, as the estimator has them."""


def made_groups(T: int, n: int, d: int) -> tuple[Array, Array]:
    """Return the rows of T groups around centres of their own, and their labels."""
    centres = RNG.normal(size=(T, d))
    labels = np.repeat(np.arange(T), n)
    return centres[labels] + RNG.normal(size=(T * n, d)), labels


def gram_in_blocks(kernel: Gaussian, X: Array) -> float:
    """Compute the upper half of the Gram matrix in blocks, of which none is kept."""
    total = 0.0
    for i in slices(0, len(X), BLOCK_ROWS):
        for j in slices(i.start, len(X), BLOCK_ROWS):
            total += float(kernel(X[i], None if i == j else X[j])[0, 0])
    return total


def all_pairs(T: int = 200, n: int = 50, rounds: int = 3) -> Iterator[Ratio]:
    """Some hundred groups, against all values of the kernel."""
    X, labels = made_groups(T, n, 10)
    kernel = Gaussian(4.0)
    ours, peer = medians(
        lambda: KernelMeans(kernel=kernel, gram="blocks").fit(X, labels),
        lambda: gram_in_blocks(kernel, X),
        rounds=rounds,
    )
    yield Ratio(f"KernelMeans().fit, {T} groups of {n} rows, against K in blocks", ours, peer, 4.0)


def on_landmarks(
    T: int = 2000, n: int = 100, landmarks: int = 300, rounds: int = 2
) -> Iterator[Ratio]:
    """Some thousand groups, against the features of their rows."""
    X, labels = made_groups(T, n, 10)
    kernel = Gaussian(4.0)
    gram = Nystrom(landmarks)

    def features() -> None:
        z = gram.resolve(kernel, X)
        for some in slices(0, len(X), 8192):
            z(X[some])

    ours, peer = medians(
        lambda: KernelMeans(kernel=kernel, gram=gram).fit(X, labels), features, rounds=rounds
    )
    what = f"KernelMeans().fit, {T} groups of {n} rows on {landmarks} landmarks, against features"
    yield Ratio(what, ours, peer, 5.0)


def many_groups(T: int = 10_000, n: int = 10, landmarks: int = 300) -> Iterator[Ratio]:
    """Ten thousand groups: no T × T matrix, which alone has 0.75 GiB, is held."""
    setup = (
        "from muhat import KernelMeans\n"
        f"labels = np.repeat(np.arange({T}), {n})\n"
        "rng = np.random.default_rng(0)\n"
        f"X = rng.normal(size=({T}, 10))[labels] + rng.normal(size=({T * n}, 10))"
    )
    work = f"KernelMeans(kernel=Gaussian(4.0), gram=Nystrom({landmarks})).fit(X, labels)"
    peak, _ = measured(work, setup)
    what = f"KernelMeans().fit, {T} groups of {n} rows on {landmarks} landmarks, memory"
    yield Ratio(what, peak / GIB, 1.0, 1.0, unit=" GiB")


def one_large_group(rows: int = 1_000_000, landmarks: int = 300) -> Iterator[Ratio]:
    """A group of a million rows among small ones, in batches that are made anew in every pass."""
    setup = (
        "from muhat import KernelMeans\n"
        "class Labelled:\n"
        "    def __iter__(self):\n"
        f"        for number, X in enumerate(Made({rows})):\n"
        "            yield X, np.full(len(X), 0)\n"
        "        for group in range(1, 20):\n"
        "            yield np.random.default_rng(group).normal(size=(20, 20)), np.full(20, group)"
    )
    work = f"KernelMeans(kernel=Gaussian(6.0), gram=Nystrom({landmarks})).fit_batches(Labelled())"
    peak, _ = measured(work, setup)
    what = f"KernelMeans().fit_batches, a group of {rows} rows in batches, memory"
    yield Ratio(what, peak / GIB, 1.0, 0.5, unit=" GiB")


def comparing_all_pairs(
    T: int = 20, n: int = 1000, permutations: int = 999, peer_rows: int = 2000, rounds: int = 3
) -> Iterator[Ratio]:
    """A test of groups with all pairs, against one eigendecomposition."""
    labels = np.repeat(np.arange(T), n)
    alike = RNG.normal(size=(T * n, 5))
    K = Gaussian(2.0)(RNG.normal(size=(peer_rows, 5)))
    # Pairs that differ are relabeled until their corrected p-value can be small.
    samples = {
        "no pair differs": (alike, 3.0),
        "all pairs differ": (alike + 0.15 * labels[:, None], 10.0),
    }
    for what, (X, limit) in samples.items():
        ours, peer = medians(
            partial(GroupTest(n_permutations=permutations).test, X, labels),
            partial(np.linalg.eigh, K),
            rounds=rounds,
        )
        name = f"GroupTest().test, {T} groups of {n} rows, {what}, against eigh of {peer_rows}"
        yield Ratio(name, ours, peer, limit)


BENCHMARKS = {
    all_pairs: {"T": 6, "n": 4, "rounds": 1},
    many_groups: {"T": 6, "n": 4, "landmarks": 5},
    one_large_group: {"rows": 50, "landmarks": 5},
    on_landmarks: {"T": 6, "n": 4, "landmarks": 5, "rounds": 1},
    comparing_all_pairs: {"T": 3, "n": 4, "permutations": 9, "peer_rows": 5, "rounds": 1},
}
"""With the arguments of a tiny run."""
