"""The core: Gram matrix, leave-one-out, a whole fit, many small samples, and importing it."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import Ratio, medians
from muhat import KernelMean, Nystrom
from muhat.filters import (
    FILTERS,
    IteratedTikhonov,
    Landweber,
    NuMethod,
    SimpleShrinkage,
    Tikhonov,
    TruncatedSVD,
)
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian
from muhat.selection import GCV, LeaveOneOut

RNG = np.random.default_rng(0)


def leave_one_out(n: int = 2000, rounds: int = 3) -> Iterator[Ratio]:
    """(a) All scores of all filters that one decomposition serves."""
    timed = 3
    X = RNG.normal(size=(n, 20)) * np.linspace(0.2, 2, 20)
    problem = DenseProblem(DenseGram.from_sample(Gaussian().resolve(X), X))
    problem.spectrum  # noqa: B018 — computed before the clock starts
    filters = [kind().bounded_by(1.0) for kind in FILTERS.values() if kind.analytic]
    candidates = sum(len(choice.grid) for choice in LeaveOneOut().choices(problem, filters))

    def leave_some_out() -> None:
        for i in range(timed):
            rest = np.delete(np.arange(n), i)
            gamma, U = np.linalg.eigh(problem.gram.matrix[np.ix_(rest, rest)] * n / (n - 1))
            start = U.T @ np.full(n - 1, 1 / (n - 1))
            for choice in choices:
                U @ (choice.filter.path(np.maximum(gamma, 0), choice.grid) * start).T

    choices = LeaveOneOut().choices(problem, filters)
    ours, eigh, some = medians(
        lambda: LeaveOneOut().choices(problem, filters),
        lambda: np.linalg.eigh(problem.gram.matrix),
        leave_some_out,
        rounds=rounds,
    )
    yield Ratio(
        f"(a) {candidates} leave-one-out scores, n = {n}, against one eigh", ours, eigh, 0.15
    )
    what = f"(a) the same against a refit without each of {n} points (timed on {timed})"
    yield Ratio(what, ours, some * n / timed, 1000, larger_is_better=True)


def gaussian_gram(n: int = 10_000, rounds: int = 5) -> Iterator[Ratio]:
    """(b) The Gaussian Gram matrix at d = 20, near the origin and far from it."""
    X = RNG.normal(size=(n, 20))
    kernel = Gaussian(np.sqrt(40.0))
    ours, peer = medians(lambda: kernel(X), lambda: rbf_kernel(X, gamma=1 / 80), rounds=rounds)
    yield Ratio(
        f"(b) Gaussian Gram, n = {n}, d = 20, against rbf_kernel",
        ours,
        peer,
        3,
        larger_is_better=True,
    )
    single = X.astype(np.float32)
    ours32, peer32 = medians(
        lambda: kernel(single), lambda: rbf_kernel(single, gamma=1 / 80), rounds=rounds
    )
    yield Ratio("(b) the same in float32", ours32, peer32, 3, larger_is_better=True)
    for offset in (0.0, 1e6):
        rows = X[:500] + offset
        true = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=-1) / 80)
        error = float(np.abs(kernel(X + offset)[:500, :500] - true).max())
        print(
            f"(b) largest error at a distance of {offset:g} from the origin: {error:.1e} (≤ 1e-12)"
        )


def whole_fit(n: int = 2000, rounds: int = 5) -> Iterator[Ratio]:
    """(c) KernelMean().fit against its Gram matrix and one eigh."""
    X = RNG.normal(size=(n, 20))
    kernel = Gaussian().resolve(X)
    ours, peer = medians(
        lambda: KernelMean().fit(X), lambda: np.linalg.eigh(kernel(X) / n), rounds=rounds
    )
    yield Ratio(f"(c) KernelMean().fit, n = {n}, against one Gram and one eigh", ours, peer, 1.0)


def whole_fit_left_to_itself(n: int = 10_000, d: int = 10, rounds: int = 3) -> Iterator[Ratio]:
    """(c) KernelMean().fit with gram="auto" that refines its plan, against 500 landmarks."""
    X = RNG.normal(size=(n, d))
    ours, peer = medians(
        lambda: KernelMean().fit(X),
        lambda: KernelMean(gram=Nystrom(min(n, 500))).fit(X),
        rounds=rounds,
    )
    yield Ratio(f"(c) KernelMean().fit, {n} × {d}, against Nystrom(500)", ours, peer, 3)


def importing(rounds: int = 15) -> Iterator[Ratio]:
    """(d) import muhat against its dependencies, all compiled before."""

    def fresh(code: str) -> None:
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        )

    base = "import numpy, scipy.linalg, sklearn.base"
    ours, first_fit, peer = medians(
        lambda: fresh("import muhat"),
        lambda: fresh("from muhat import KernelMean"),
        lambda: fresh(base),
        rounds=rounds,
    )
    yield Ratio("(d) import muhat against sklearn.base, numpy and scipy.linalg", ours, peer, 1.1)
    yield Ratio("(d) from muhat import KernelMean against the same", first_fit, peer, 1.15)


def many_small_samples(count: int = 1000, n: int = 50, rounds: int = 3) -> Iterator[Ratio]:
    """(e) All seven estimators with the paper's selection rules on many samples of one size."""
    samples = RNG.normal(size=(count, n, 20))

    def grams() -> np.ndarray:
        return np.stack([DenseGram.from_sample(Gaussian().resolve(X), X).matrix for X in samples])

    matrices, masses = grams(), np.full(n, 1 / n)

    def estimate() -> None:
        problem = DenseProblem(DenseGram(grams(), masses))
        tuned = [SimpleShrinkage(), Tikhonov(), IteratedTikhonov(), Landweber(), NuMethod()]
        choices = LeaveOneOut().choices(problem, [FILTERS["kme"](), *tuned])
        choices.append(GCV().choose(problem, TruncatedSVD()))
        for choice in choices:
            choice.weights(problem)

    ours, gram_time, eigh = medians(
        estimate, grams, lambda: np.linalg.eigh(matrices), rounds=rounds
    )
    what = f"(e) seven estimators on {count} samples of {n}, against Grams and one batched eigh"
    yield Ratio(what, ours, gram_time + eigh, 5)


BENCHMARKS = {
    leave_one_out: {"n": 40, "rounds": 1},
    gaussian_gram: {"n": 600, "rounds": 1},
    whole_fit: {"n": 60, "rounds": 1},
    whole_fit_left_to_itself: {"n": 60, "rounds": 1},
    importing: {"rounds": 1},
    many_small_samples: {"count": 4, "n": 20, "rounds": 1},
}
