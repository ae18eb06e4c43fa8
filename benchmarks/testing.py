"""Two-sample tests against other packages, features of many rows, and one Gram matrix."""

from collections.abc import Iterator

import numpy as np

from benchmarks.scale import GIB, measured
from benchmarks.timing import Ratio, medians
from muhat import Gaussian, TwoSampleTest
from muhat._arrays import share_between_cores, slices
from paper.experiments.times_of_tests import times_of_peers

TWO_MILLION = """
from muhat import TwoSampleTest
kernel = Gaussian(np.sqrt(40.0))
gram = Nystrom({r})
test = TwoSampleTest(
    kernel, statistics={statistics}, gram=gram, n_permutations=999, random_state=0
)
"""

FEATURES = """
features = Nystrom({r}).resolve(kernel, next(iter(Made({n}))))
for both in (Made({n}), Made({n})):
    for batch in both:
        features(batch)
"""


def many_rows(n: int = 1_000_000, r: int = 300) -> Iterator[Ratio]:
    """(a) Memory and time of a test in batches, against making all rows and features once."""
    setup = TWO_MILLION.format(statistics=["mmd", "spectral"], r=r)
    peak, ours = measured(f"result = test.test(Made({n}), Made({n}))", setup)
    _, features = measured(FEATURES.format(r=r, n=n), setup)
    what = f"TwoSampleTest(Nystrom({r})), 999 permutations, n = m = {n:g}"
    yield Ratio(f"(a) peak memory of {what}", peak / GIB, 1.0, 1.0, unit=" GiB")
    yield Ratio(f"(a) {what}, against one pass of features", ours, features, 3.0)


def plain_mmd(n: int = 5000, rounds: int = 3) -> Iterator[Ratio]:
    """(b) MMD of one kernel, matrix-free, against computing the Gram matrix once in blocks."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 10)), rng.normal(size=(n, 10))
    Z, kernel = np.concatenate([X, Y]), Gaussian(np.sqrt(20.0))
    test = TwoSampleTest(
        kernel, statistics="mmd", gram="blocks", n_permutations=999, random_state=0
    )

    def gram() -> None:
        def strip(i: slice) -> None:
            for j in slices(i.start, len(Z), 1000):
                kernel(Z[i], Z[j])

        share_between_cores(strip, slices(0, len(Z), 1000))

    ours, peer = medians(lambda: test.test(X, Y), gram, rounds=rounds)
    yield Ratio(
        f"(b) MMD in blocks, 999 permutations, n = m = {n}, against one Gram matrix in blocks",
        ours,
        peer,
        3.0,
    )


def against_others(n: int = 500, permutations: int = 1999, rounds: int = 3) -> Iterator[Ratio]:
    """(c) The default and plain MMD against hyppo's MMD and dcor's energy test, n = m = 500.

    Theirs were measured in an environment of their own (benchmarks/peers), and are kept as data.
    """
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5))
    default = TwoSampleTest(n_permutations=permutations, random_state=0)
    plain = TwoSampleTest(
        "gaussian",
        bandwidths="median",
        statistics="mmd",
        n_permutations=permutations,
        random_state=0,
    )
    many, one = medians(lambda: default.test(X, Y), lambda: plain.test(X, Y), rounds=rounds)
    peers = times_of_peers(permutations)
    hyppo, dcor = (
        next(peers[name] for name in peers if name.startswith(each))
        for each in ("hyppo MMD (", "dcor")
    )
    what = f"{permutations} permutations, n = m = {n}, against"
    yield Ratio(
        f"(c) the default, {what} hyppo's one MMD", many, hyppo, 20.0, larger_is_better=True
    )
    yield Ratio(f"(c) MMD, {what} hyppo's", one, hyppo, 500.0, larger_is_better=True)
    yield Ratio(f"(c) MMD, {what} dcor's energy test", one, dcor, 1.0, larger_is_better=True)


BENCHMARKS = {
    against_others: {"n": 20, "permutations": 19, "rounds": 1},
    many_rows: {"n": 12_000, "r": 10},
    plain_mmd: {"n": 40, "rounds": 1},
}
"""With the arguments of a tiny run."""
