"""The level of every route that a test can take, in a small table.

A cell with a level of .3 would fail. Each draws samples from one law and rejects at 0.1 with 19
permutations, of which the exact level is at most 0.1. Of 60 draws more than 15 are rejected with
probability 2e-4 at that level, and with probability .76 at .3; every route has several cells, so
that a route of that level fails in one of them with near certainty.
"""

from contextlib import suppress
from itertools import combinations

import numpy as np
import pytest

from muhat import MMD, DriftDetector, Nystrom, Precomputed, RandomFeatures, TwoSampleTest
from muhat.kernels import Gaussian

DRAWS, LEVEL, MOST = 60, 0.1, 15

LAWS = {
    "normal, 1 column": lambda rng, n: rng.normal(size=(n, 1)),
    "normal, 5 columns": lambda rng, n: rng.normal(size=(n, 5)),
    "heavy tails": lambda rng, n: rng.standard_t(1.2, size=(n, 2)),
    "ties": lambda rng, n: rng.integers(4, size=(n, 2)).astype(float),
    "categories": lambda rng, n: np.eye(3)[rng.integers(3, size=n)],
}

SIZES = {"equal": (14, 14), "unequal": (9, 22)}

FEW = {"kernel": "gaussian", "bandwidths": 2, "n_permutations": 19}


def rows(each):
    return each


def in_batches(each):
    return [each[:5], each[5:]]


def in_dask(each):
    return pytest.importorskip("dask.array").from_array(each, chunks=(8, each.shape[1]))


ROUTES = {
    "dense": ({}, rows),
    "default statistics of two kernels": ({"kernel": None}, rows),
    "landmarks": ({"gram": Nystrom(6)}, rows),
    "random features": ({"gram": RandomFeatures(10)}, rows),
    "blocks": ({"gram": "blocks", "statistics": "mmd"}, rows),
    "bins": ({"bins": 8}, rows),
    "batches": ({"gram": Nystrom(6)}, in_batches),
    "early stopping": ({"early_stopping": 5}, rows),
    "block length": ({"block_length": 2}, rows),
    "distinct": ({"distinct": True}, rows),
    "unbiased": ({"statistics": MMD(unbiased=True), "bandwidths": "median"}, rows),
}


def rejections(test_of, law, sizes, seed=0):
    rng = np.random.default_rng(seed)
    found = tested = 0
    for number in range(DRAWS):
        X, Y = (LAWS[law](rng, n) for n in sizes)
        with suppress(ValueError):  # of few categories, copies may be all that one sample has
            found += test_of(X, Y, number) <= LEVEL
            tested += 1
    assert tested > DRAWS / 2
    return found


@pytest.mark.filterwarnings("ignore")  # of constant columns, which few draws of categories have
@pytest.mark.parametrize("law", LAWS)
def test_the_default_of_many_rows_keeps_its_level(law, monkeypatch):
    monkeypatch.setattr("muhat.testing.TwoSampleTest.max_rows_dense", 20)
    monkeypatch.setattr("muhat.testing.TwoSampleTest.n_landmarks", 12)
    sizes = SIZES["equal" if len(law) % 2 else "unequal"]

    def p_value(X, Y, number):
        return TwoSampleTest(n_permutations=19, random_state=number).test(X, Y).p_value

    assert rejections(p_value, law, sizes) <= MOST


def test_the_default_of_many_rows_is_valid_over_all_labelings_of_a_pool(monkeypatch):
    """Of all labelings of eight rows, no more than a share α may have p ≤ α."""
    monkeypatch.setattr("muhat.testing.TwoSampleTest.max_rows_dense", 4)
    monkeypatch.setattr("muhat.testing.TwoSampleTest.n_landmarks", 5)
    pool = np.random.default_rng(3).normal(size=(8, 2))
    found = []
    for first in combinations(range(8), 4):
        is_first = np.isin(np.arange(8), first)
        test = TwoSampleTest(n_permutations=69, random_state=len(found))
        found.append(test.test(pool[is_first], pool[~is_first]).p_value)
    for level in (0.05, 0.1, 0.2, 0.5):
        # Landmarks differ between labelings, so that the share varies around its expectation.
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 70)


@pytest.mark.filterwarnings("ignore")  # of constant columns, which few draws of categories have
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("route", ROUTES)
def test_a_route_rejects_samples_of_one_law_no_more_often_than_its_level(route, law):
    options, form = ROUTES[route]
    sizes = SIZES["equal" if len(law) % 2 else "unequal"]

    def p_value(X, Y, number):
        return TwoSampleTest(**FEW | options, random_state=number).test(form(X), form(Y)).p_value

    assert rejections(p_value, law, sizes) <= MOST


@pytest.mark.parametrize(
    "route", ["sums over a stream", "sums over dask", "precomputed", "copies across"]
)
def test_a_route_of_other_inputs_keeps_its_level(route, monkeypatch):
    form = {"sums over a stream": in_batches, "sums over dask": in_dask}.get(route, rows)
    if route.startswith("sums"):
        monkeypatch.setattr("muhat.testing.TwoSampleTest.max_single_rows", 10)

    def p_value(X, Y, number):
        test = TwoSampleTest(**FEW, random_state=number)
        if route == "precomputed":
            K = Gaussian(1.0)(np.concatenate([X, Y]))
            return (
                test.set_params(kernel=Precomputed(K))
                .test(range(len(X)), range(len(X), len(K)))
                .p_value
            )
        if route == "copies across":  # rows in both samples make p larger, never smaller
            return test.test(X, np.concatenate([Y, X[:4]])).p_value
        return test.set_params(gram=Nystrom(6), bins=8).test(form(X), form(Y)).p_value

    assert rejections(p_value, "normal, 1 column", SIZES["unequal"]) <= MOST


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("law", LAWS)
def test_drift_is_seen_in_batches_of_the_reference_no_more_often_than_its_level(law):
    """The p-value of one batch, as ``score`` gives it: that of a detector's own test."""

    def p_value(X, Y, number):
        test = TwoSampleTest(**FEW, gram=Nystrom(6), early_stopping=5)
        return DriftDetector(test, random_state=number).fit(X).score(Y)

    assert rejections(p_value, law, SIZES["unequal"]) <= MOST
