"""Conditional means: leave-one-out against one ``eigh``, a fit against a grid search."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from benchmarks.timing import Ratio, medians
from muhat import ConditionalMean, KernelMeanMatching, Nystrom
from muhat.selection._base import Candidates
from muhat.selection._smoother import LeaveOneOutSmoother

RNG = np.random.default_rng(0)
FOLDS = 5


def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.normal(size=(n, 10))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=n)


def leave_one_out(n: int = 2000, rounds: int = 3) -> Iterator[Ratio]:
    """All scores of all filters beyond the eigendecomposition that they share."""
    X, y = _rows(n)
    model = ConditionalMean().fit(X, y)
    K, regression = model.kernel_(X) / n, model._fit.regression
    candidates = [Candidates(choice.filter, choice.grid) for choice in model.choices_]
    ours, eigh = medians(
        lambda: LeaveOneOutSmoother(regression).scores(candidates),
        lambda: np.linalg.eigh(K),
        rounds=rounds,
    )
    count = sum(len(each.grid) for each in candidates)
    yield Ratio(
        f"{count} leave-one-out scores of a regression, n = {n}, against one eigh", ours, eigh, 0.3
    )


def grid_search(n: int = 1000, tried: int = 5) -> Iterator[Ratio]:
    """A fit against a grid search of kernel ridge regression, timed on some of the candidates."""
    X, y = _rows(n)
    model = ConditionalMean().fit(X, y)
    count = sum(len(choice.grid) for choice in model.choices_)
    lam = model.choices_[0].grid
    some = lam[:: max(1, len(lam) // tried)] * n * (1 - 1 / FOLDS)
    ridge = KernelRidge(kernel="rbf", gamma=1 / (2 * model.kernel_.bandwidth**2))
    start = perf_counter()
    GridSearchCV(ridge, {"alpha": some}, cv=FOLDS, refit=False).fit(X, y)
    each = (perf_counter() - start) / len(some)
    default, only_ridge = medians(
        lambda: ConditionalMean().fit(X, y),
        lambda: ConditionalMean(filter="tikhonov").fit(X, y),
        rounds=1,
    )
    peer = f"GridSearchCV(KernelRidge) of its {count} candidates"
    what = f"ConditionalMean().fit, n = {n}, against {peer}"
    yield Ratio(what, default, count * each, 20, larger_is_better=True)
    what = f"the same with filter='tikhonov', against GridSearchCV of the same {len(lam)} λ"
    yield Ratio(what, only_ridge, len(lam) * each, 20, larger_is_better=True)


def many_rows(n: int = 100_000, landmarks: int = 200) -> Iterator[Ratio]:
    """Twice the rows in batches, with every filter and λ scored by exact leave-one-out."""
    X, y = _rows(2 * n)
    batches = np.array_split(np.column_stack([X, y]), 8)
    model = ConditionalMean(gram=Nystrom(landmarks))
    twice, once = medians(
        lambda: model.fit_batches(batches, -1), lambda: model.fit_batches(batches[:4], -1), rounds=1
    )
    yield Ratio(
        f"ConditionalMean().fit_batches, n = {2 * n}, against half the rows", twice, once, 2.5
    )


def matching(n: int = 100_000) -> Iterator[Ratio]:
    """Importance weights of many rows: no matrix of pairs, which would take n times as much."""
    source, target = RNG.normal(size=(n, 2)), RNG.normal(0.5, size=(n, 2))
    start = perf_counter()
    model = KernelMeanMatching().fit(source, target)
    seconds = perf_counter() - start
    print(
        f"matching {n} rows with {n}: {seconds:.1f} s, {model.n_iter_} products, "
        f"held by {model.gram_!r}"
    )
    held = 8.0 * n * min(n, 500) / 2**30
    what = f"KernelMeanMatching, {n} rows with {n}: GiB of features against the matrix of pairs"
    yield Ratio(what, held, 8.0 * n**2 / 2**30, 0.1 if n > 5000 else 1.0, unit=" GiB")


BENCHMARKS = {
    leave_one_out: {"n": 60, "rounds": 1},
    grid_search: {"n": 40, "tried": 2},
    many_rows: {"n": 400, "landmarks": 20},
    matching: {"n": 60},
}
"""With the arguments of a tiny run."""
