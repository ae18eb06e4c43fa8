"""The core: Gram matrix, leave-one-out, a whole fit, many small samples, and importing it."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import Ratio, medians
from muhat import KernelMean
from muhat.filters import FILTERS, IteratedTikhonov, Landweber, NuMethod, SimpleShrinkage, Tikhonov, TruncatedSVD
from muhat.gram import DenseGram, SampleProblem
from muhat.kernels import Gaussian
from muhat.selection import GCV, LeaveOneOut

RNG = np.random.default_rng(0)


def leave_one_out() -> Iterator[Ratio]:
    """(a) All scores of all filters that one decomposition serves, at n = 2000."""
    n, really = 2000, 3
    X = RNG.normal(size=(n, 20)) * np.linspace(0.2, 2, 20)
    problem = SampleProblem(DenseGram.from_sample(Gaussian().resolve(X), X))
    problem.spectrum  # noqa: B018 — computed before the clock starts
    filters = [kind().bounded_by(1.0) for kind in FILTERS.values() if kind.analytic]
    candidates = sum(len(choice.grid) for choice in LeaveOneOut().choices(problem, filters))

    def leave_some_out() -> None:
        for i in range(really):
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
        rounds=3,
    )
    yield Ratio(f"(a) {candidates} leave-one-out scores, n = {n}, against one eigh", ours, eigh, 0.25)
    what = f"(a) the same against really leaving out {n} points (timed on {really})"
    yield Ratio(what, ours, some * n / really, 1000, larger_is_better=True)


def gaussian_gram() -> Iterator[Ratio]:
    """(b) The Gaussian Gram matrix at n = 10000, d = 20, near the origin and far from it."""
    X = RNG.normal(size=(10_000, 20))
    kernel = Gaussian(np.sqrt(40.0))
    ours, peer = medians(lambda: kernel(X), lambda: rbf_kernel(X, gamma=1 / 80), rounds=5)
    yield Ratio("(b) Gaussian Gram, n = 10000, d = 20, against rbf_kernel", ours, peer, 3, larger_is_better=True)
    single = X.astype(np.float32)
    ours32, peer32 = medians(lambda: kernel(single), lambda: rbf_kernel(single, gamma=1 / 80), rounds=3)
    yield Ratio("(b) the same in float32", ours32, peer32, 3, larger_is_better=True)
    for offset in (0.0, 1e6):
        rows = X[:500] + offset
        true = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=-1) / 80)
        error = float(np.abs(kernel(X + offset)[:500, :500] - true).max())
        print(f"(b) largest error at a distance of {offset:g} from the origin: {error:.1e} (≤ 1e-12)")


def whole_fit() -> Iterator[Ratio]:
    """(c) KernelMean().fit at n = 2000 against its Gram matrix and one eigh."""
    X = RNG.normal(size=(2000, 20))
    kernel = Gaussian().resolve(X)
    ours, peer = medians(lambda: KernelMean().fit(X), lambda: np.linalg.eigh(kernel(X) / 2000), rounds=5)
    yield Ratio("(c) KernelMean().fit, n = 2000, against one Gram and one eigh", ours, peer, 1.5)


def importing() -> Iterator[Ratio]:
    """(d) import muhat against what it stands on."""

    def fresh(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    base = "import numpy, scipy.linalg, sklearn.base"
    ours, peer = medians(lambda: fresh("import muhat"), lambda: fresh(base), rounds=15)
    yield Ratio("(d) import muhat against sklearn.base, numpy and scipy.linalg", ours, peer, 1.2)


def many_small_samples() -> Iterator[Ratio]:
    """(e) All seven estimators with the paper's selection rules on 1000 samples of n = 50."""
    samples, n = RNG.normal(size=(1000, 50, 20)), 50

    def grams() -> np.ndarray:
        return np.stack([DenseGram.from_sample(Gaussian().resolve(X), X).matrix for X in samples])

    matrices, masses = grams(), np.full(n, 1 / n)

    def estimate() -> None:
        problem = SampleProblem(DenseGram(grams(), masses))
        tuned = [SimpleShrinkage(), Tikhonov(), IteratedTikhonov(), Landweber(), NuMethod()]
        choices = LeaveOneOut().choices(problem, [FILTERS["kme"](), *tuned])
        choices.append(GCV().choose(problem, TruncatedSVD()))
        for choice in choices:
            choice.weights(problem)

    ours, gram_time, eigh = medians(estimate, grams, lambda: np.linalg.eigh(matrices), rounds=3)
    what = "(e) seven estimators on 1000 samples of 50, against Grams and one batched eigh"
    yield Ratio(what, ours, gram_time + eigh, 5)


ALL = (leave_one_out, gaussian_gram, whole_fit, importing, many_small_samples)
