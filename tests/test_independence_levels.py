"""Independent data is rejected as often as the level says, in every form of the test."""

import numpy as np
import pytest

from muhat import IndependenceTest, Nystrom, RandomFeatures
from muhat.gram import PivotedCholesky
from muhat.kernels import Function, Precomputed

DRAWS, PERMUTATIONS = 120, 19
MOST = 0.05 + 3 * np.sqrt(0.05 * 0.95 / DRAWS)
"""The level, and three standard errors of a share of so many draws: 0.11."""


def normal(columns, n=40):
    return lambda rng: (rng.normal(size=(n, columns)), rng.normal(size=(n, columns)))


def heavy(rng):
    return rng.standard_t(1.2, size=(40, 1)), rng.standard_t(1.2, size=(40, 2))


def tied(rng):
    return rng.normal(size=(40, 1)).round(), rng.poisson(2.0, size=(40, 1)).astype(float)


def row_numbers(rng):
    return np.arange(30)[:, None], rng.permutation(30)[:, None]


def words(rng):
    return list(rng.choice(["ant", "bee", "cicada", "dragonfly"], size=30)), rng.normal(size=30)


def by_length(a, b):
    return np.exp(-abs(len(a) - len(b)))


MATRIX = np.exp(-(np.subtract.outer(np.linspace(0, 3, 30), np.linspace(0, 3, 30)) ** 2))

CASES = {
    "dense": (normal(3), {}),
    "dense, heavy tails": (heavy, {}),
    "dense, ties": (tied, {}),
    "not standardized": (heavy, {"standardize": False}),
    "landmarks, one column": (normal(1), {"gram": Nystrom(8)}),
    "landmarks, three columns": (normal(3), {"gram": Nystrom(8)}),
    "landmarks, heavy tails": (heavy, {"gram": Nystrom(8)}),
    "landmarks, blocks of rows": (normal(1, 433), {"gram": Nystrom(8), "bandwidths": 2}),
    "landmarks by leverage": (normal(3), {"gram": Nystrom(8, landmarks="leverage")}),
    "landmarks by k-means++": (
        normal(3),
        {"gram": Nystrom(8, landmarks="k-means++"), "statistics": "mmd"},
    ),
    "landmarks, HSIC alone": (normal(1), {"gram": Nystrom(8), "statistics": "mmd"}),
    "landmarks, two kernels": (
        normal(3),
        {"gram": Nystrom(8), "kernel": ["gaussian", "laplacian"], "bandwidths": 2},
    ),
    "random features": (normal(3), {"gram": RandomFeatures(20)}),
    "SCOSE": (normal(1), {"statistics": ["mmd", "scose"], "bandwidths": 1}),
    "precomputed": (row_numbers, {"kernel": Precomputed(MATRIX), "kernel_y": Precomputed(MATRIX)}),
    "words": (
        words,
        {"kernel": Function(by_length, rows=True), "kernel_y": "gaussian", "bandwidths": 2},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_independent_data_is_rejected_as_often_as_the_level_says(case):
    draw, options = CASES[case]
    rejected = 0
    for seed in range(DRAWS):
        X, Y = draw(np.random.default_rng([22, seed]))
        test = IndependenceTest(n_permutations=PERMUTATIONS, random_state=seed, n_jobs=1, **options)
        rejected += test.test(X, Y).p_value <= 0.05
    assert rejected / DRAWS <= MOST


def test_so_it_is_where_landmarks_and_bandwidths_are_learnt_from_some_rows_by_default(monkeypatch):
    """With the limits of the default far lower.

    8 landmarks beyond 30 rows, bandwidths from the first 6 rows.
    """
    monkeypatch.setattr("muhat.testing._independence.MAX_ROWS_DENSE", 30)
    monkeypatch.setattr("muhat.testing._independence.MAX_ROWS_OF_MATRICES", 35)
    monkeypatch.setattr("muhat.testing._independence.N_LANDMARKS", 8)
    monkeypatch.setattr("muhat.testing._ladder.MAX_ROWS_FOR_DISTANCES", 6)
    rejected = 0
    for seed in range(DRAWS):
        X, Y = normal(2)(np.random.default_rng([23, seed]))
        test = IndependenceTest(n_permutations=PERMUTATIONS, random_state=seed, n_jobs=1)
        rejected += test.test(X, Y).p_value <= 0.05
    assert rejected / DRAWS <= MOST


def test_so_it_is_where_the_spectra_come_from_low_rank_factors(monkeypatch):
    """Matrices of all 40 rows, and 6 pivots for the spectrum, far fewer than it would need."""
    monkeypatch.setattr("muhat.testing._independence.MAX_ROWS_DENSE", 30)
    monkeypatch.setattr("muhat.testing._independence.PIVOTS", PivotedCholesky(max_rank=6))
    rejected = 0
    for seed in range(DRAWS):
        X, Y = normal(2)(np.random.default_rng([24, seed]))
        test = IndependenceTest(n_permutations=PERMUTATIONS, random_state=seed, n_jobs=1)
        rejected += test.test(X, Y).p_value <= 0.05
    assert rejected / DRAWS <= MOST


def test_landmarks_of_both_sides_are_drawn_independently_of_each_other():
    """Neither the same rows nor disjoint ones, whatever seed the landmarks have.

    8 of 40 rows share 1.6 on average.
    """
    shared = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = np.arange(40.0)[:, None]
        rows = [rng.permutation(40) for _ in range(2)]
        landmarks = [
            Nystrom(8).resolve(Function(lambda a, b: a @ b.T), x[order]).landmarks for order in rows
        ]
        shared.append(len({*landmarks[0].ravel()} & {*landmarks[1].ravel()}))
    assert 1.0 < np.mean(shared) < 2.2
    with pytest.raises(
        ValueError, match="landmarks of x and of y must be drawn at random, independently"
    ):
        IndependenceTest(gram=Nystrom(landmarks=np.zeros((3, 1)))).test(x, x)
