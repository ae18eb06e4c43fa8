"""Groups whose rows come in batches, from files and from dask: the same as from memory."""

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pytest

from muhat import Gaussian, KernelMeans, Nystrom, RandomFeatures, open_batches
from muhat.errors import MuhatError
from muhat.groups import _candidates, _moments
from muhat.groups._candidates import GroupCandidates, GroupVectors

SAME = 1e-10
"""Sums in memory and over batches, in weights and gains."""

T, N = 9, 270


@pytest.fixture(scope="module")
def groups():
    random = np.random.default_rng(3)
    codes = random.permutation(np.resize(np.arange(T), N))
    X = random.normal(size=(N, 3)) + np.sin(codes)[:, None]
    names = np.array([f"shop {t}" for t in range(T)])
    return X, names[codes]


@pytest.fixture
def few_rows(monkeypatch):
    """Everything beyond fifty rows is read in passes."""
    monkeypatch.setattr("muhat.groups._estimator.MAX_ROWS_EXACT", 50)


def pairs(X, labels, size=40):
    return [(X[i : i + size], labels[i : i + size]) for i in range(0, len(X), size)]


def assert_same(found, expected, tol=SAME):
    assert found.groups_.tolist() == expected.groups_.tolist()
    assert found.n_rows_.tolist() == expected.n_rows_.tolist()
    np.testing.assert_allclose(found.weights_, expected.weights_, atol=tol)
    np.testing.assert_allclose(found.bounds_, expected.bounds_, rtol=1e-9)
    assert abs(found.gain_ - expected.gain_) < tol
    np.testing.assert_allclose(found.distances_, expected.distances_, atol=1e-7)


def on_features(X):
    """An estimator whose features do not depend on which rows are drawn."""
    return KernelMeans(kernel=Gaussian(1.5), gram=Nystrom(landmarks=X[:25]))


def test_few_rows_in_batches_are_those_in_memory(groups):
    X, labels = groups
    expected = KernelMeans().fit(X, labels)
    found = KernelMeans().fit_batches(pairs(X, labels))
    np.testing.assert_array_equal(found.weights_, expected.weights_)
    assert found.gain_ == expected.gain_
    np.testing.assert_array_equal(found.score_samples(X[:4]), expected.score_samples(X[:4]))


def test_many_rows_in_batches_give_the_means_of_rows_in_memory(groups, few_rows):
    X, labels = groups
    expected = on_features(X).fit(X, labels)
    for size in (7, 100, N):
        found = on_features(X).fit_batches(pairs(X, labels, size))
        assert_same(found, expected)
    np.testing.assert_allclose(found.score_samples(X[:4]), expected.score_samples(X[:4]))
    np.testing.assert_allclose(found.transform([X[:9]]), expected.transform([X[:9]]), atol=1e-7)


def test_sums_are_put_together_where_parts_become_many(groups, few_rows, monkeypatch):
    X, labels = groups
    expected = on_features(X).fit(X, labels)
    monkeypatch.setattr("muhat.groups._cells.FEATURE_ROWS", 1)
    monkeypatch.setattr("muhat.data._sources.CHUNK_ROWS", 10)
    assert_same(on_features(X).fit_batches(pairs(X, labels, 10)), expected)


def test_batches_may_have_weights(groups, few_rows):
    X, labels = groups
    weights = np.random.default_rng(0).uniform(0.5, 2, N)
    weights[:7] = 0
    expected = on_features(X).fit(X, labels, sample_weight=weights)
    batches = [(x, y, weights[7 * i : 7 * i + 7]) for i, (x, y) in enumerate(pairs(X, labels, 7))]
    assert_same(on_features(X).fit_batches(batches), expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_tables_name_the_column_of_their_labels(groups, few_rows, make):
    X, labels = groups
    expected = on_features(X).fit(X, labels)
    tables = []
    for x, y in pairs(X, labels):
        tables.append(make({"a": x[:, 0], "shop": y, "b": x[:, 1], "c": x[:, 2]}))
    tables.insert(1, tables[0][:0])
    found = on_features(X).fit_batches(tables, groups="shop")
    assert_same(found, expected)
    assert list(found.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_in_batches(groups, few_rows, tmp_path, ending):
    X, labels = groups
    path = tmp_path / f"sales.{ending}"
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=labels)
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    read = open_batches(path, drop=["shop"], rows=50)
    found = on_features(X).fit_batches(read, groups="shop")
    assert_same(found, on_features(X).fit(X, labels), 1e-7)


def test_a_column_of_numbers_that_labels_the_rows_of_a_file_is_no_feature(groups, tmp_path):
    X, labels = groups
    codes = np.unique(labels, return_inverse=True)[1]
    path = tmp_path / "sales.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=codes).to_csv(path, index=False)
    found = KernelMeans().fit_batches(open_batches(path), groups="shop")
    assert found.n_features_in_ == 3
    np.testing.assert_allclose(found.weights_, KernelMeans().fit(X, codes).weights_, atol=1e-9)


@pytest.mark.parametrize("partitions", [1, 4])
def test_dask_data_frames_are_summed_up_on_their_workers(groups, few_rows, partitions):
    X, labels = groups
    weights = np.random.default_rng(0).uniform(0.5, 2, N)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=labels, mass=weights)
    with dask.config.set(scheduler="synchronous"):
        rows = dask.dataframe.from_pandas(frame, npartitions=partitions)
        found = on_features(X).fit(rows.drop(columns="mass"), groups="shop")
        assert_same(found, on_features(X).fit(X, labels))
        found = on_features(X).fit(rows, groups="shop", sample_weight="mass")
        assert_same(found, on_features(X).fit(X, labels, sample_weight=weights))
    assert list(found.feature_names_in_) == ["a", "b", "c"]


def test_dask_arrays_take_labels_as_an_array(groups, few_rows):
    X, labels = groups
    with dask.config.set(scheduler="synchronous"):
        rows = dask.array.from_array(X, chunks=(60, 2))
        found = on_features(X).fit(rows, dask.array.from_array(labels, chunks=50))
    assert_same(found, on_features(X).fit(X, labels))


def test_rows_that_are_read_in_passes_choose_landmarks_and_bandwidth(groups, few_rows):
    X, labels = groups
    found = KernelMeans(gram=Nystrom(40)).fit_batches(pairs(X, labels))
    exact = KernelMeans(gram=Nystrom(40)).fit(X, labels)
    assert abs(found.kernel_.bandwidth - exact.kernel_.bandwidth) < 0.1 * exact.kernel_.bandwidth
    assert np.abs(found.distances_ - exact.distances_).max() < 0.05


def test_one_group_may_have_most_of_the_rows(few_rows):
    random = np.random.default_rng(0)
    batches = []
    for _ in range(6):
        batches.append((random.normal(size=(9000, 2)), np.full(9000, "large")))
    batches += [(random.normal(size=(3, 2)), np.array(["a", "b", "c"])) for _ in range(4)]
    means = KernelMeans(gram=RandomFeatures(20)).fit_batches(batches)
    assert dict(zip(means.groups_, means.n_rows_, strict=True))["large"] == 54_000
    assert means.bounds_.argmin() == list(means.groups_).index("large")


def many_vectors(T=90, r=6):
    random = np.random.default_rng(1)
    sizes = np.where(np.arange(T) < 3, 500, 8).astype(float)
    kinds = random.integers(3, size=T)
    Z = np.eye(r)[kinds] * 0.3 + random.normal(size=(T, r)) * 0.3 / np.sqrt(sizes)[:, None]
    return GroupVectors(Z, sizes, np.full(T, 1.0))


def test_smoothers_over_some_groups_are_those_by_the_formula(monkeypatch):
    """W_tu over the sources and the group itself, by a loop."""
    vectors = many_vectors()
    monkeypatch.setattr(_candidates, "MAX_SOURCES", 20)
    candidates = GroupCandidates(vectors)
    sources = set(candidates.smoothers.sources.tolist())
    assert len(sources) == 20
    W = candidates.weights(np.arange(90))
    np.testing.assert_allclose(W.sum(axis=2), 1)
    means = candidates.at(np.arange(90))
    np.testing.assert_allclose(means.means, W @ vectors.Z, atol=1e-12)
    np.testing.assert_allclose(means.own_weights, np.diagonal(W, axis1=1, axis2=2), atol=1e-12)
    D, n, Z = vectors.noise, vectors.n, vectors.Z
    for t in (0, 5, 50):
        expected = np.zeros(90)
        for u in sources | {t}:
            gap = ((Z[t] - Z[u]) ** 2).sum() - D[t] - D[u] if u != t else 0.0
            expected[u] = n[u] * np.exp(-max(gap, 0) / (D[t] + D[u]))
        np.testing.assert_allclose(W[4, t], expected / expected.sum(), atol=1e-12)
    P = (W[3] + W[9]) / 2
    np.testing.assert_allclose(candidates.second.noise, P**2 @ D, rtol=1e-10)


def test_candidates_are_tested_on_groups_of_every_size(monkeypatch):
    vectors = many_vectors()
    assert (_moments.tested_groups(vectors) == 1).all()
    monkeypatch.setattr(_moments, "MAX_TESTED_GROUPS", 20)
    found = _moments.tested_groups(vectors)
    assert (found[:3] == 1).all()
    assert (found > 0).sum() == 20
    np.testing.assert_allclose(found.sum(), 90)


def test_some_of_many_groups_give_nearly_the_weights_of_all(groups, monkeypatch):
    X, labels = groups
    names = np.array([f"{label} {i // 30}" for i, label in enumerate(labels)])
    gram = Nystrom(landmarks=X[:25])
    expected = KernelMeans(kernel=Gaussian(1.5), gram=gram).fit(X, names)
    monkeypatch.setattr(_moments, "MAX_TESTED_GROUPS", 40)
    monkeypatch.setattr(_candidates, "MAX_SOURCES", 60)
    found = KernelMeans(kernel=Gaussian(1.5), gram=gram).fit(X, names)
    assert found.candidate_weights_.shape == expected.candidate_weights_.shape
    assert abs(found.gain_ - expected.gain_) < 2 * expected.gain_error_
    gaps = np.linalg.norm(found._joint.means - expected._joint.means, axis=1)
    assert gaps.mean() < 0.5 * expected.bounds_.mean()


X0 = np.random.default_rng(0).normal(size=(60, 2))
CODES = np.resize(np.arange(4), 60)
FRAME = pd.DataFrame(X0, columns=["a", "b"]).assign(shop=CODES)
BAD = {
    "an array": (lambda: KernelMeans().fit_batches(X0), "an iterable of"),
    "an iterator": (
        lambda: KernelMeans().fit_batches(iter([(X0, CODES)])),
        "iterated more than once",
    ),
    "nothing": (lambda: KernelMeans().fit_batches([]), "at least one batch"),
    "one group": (lambda: KernelMeans().fit_batches([(X0, 0 * CODES)]), "at least two groups"),
    "no labels": (lambda: KernelMeans().fit_batches([X0]), "a label for each row"),
    "too few labels": (lambda: KernelMeans().fit_batches([(X0, CODES[1:])]), "batch 0.*of 60 rows"),
    "a missing label": (
        lambda: KernelMeans().fit_batches([(X0, np.where(CODES == 3, np.nan, CODES))]),
        "a label for every row",
    ),
    "another column": (
        lambda: KernelMeans().fit_batches([FRAME], groups="town"),
        "must name a column",
    ),
    "an empty group": (
        lambda: KernelMeans().fit_batches([(X0, CODES, 1.5 * (CODES > 0))]),
        "a row of positive weight",
    ),
    "all pairs of many rows": (
        lambda: KernelMeans(gram="dense").fit_batches([(X0, CODES)]),
        "gram must be an approximation",
    ),
    "a column of dask": (
        lambda: KernelMeans().fit(dask.dataframe.from_pandas(FRAME, npartitions=2), "town"),
        "must name a column of the dask data frame: a, b, shop",
    ),
    "a negative weight of dask": (
        lambda: KernelMeans().fit(
            dask.dataframe.from_pandas(FRAME.assign(mass=-1.0), npartitions=2), "shop", "mass"
        ),
        "finite and not negative",
    ),
    "no weight at all": (
        lambda: KernelMeans().fit_batches([(X0, CODES, np.zeros(60))]),
        "must not sum to zero",
    ),
    "labels of dask": (
        lambda: KernelMeans().fit(dask.array.from_array(X0)),
        "a label for each row",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_batches_are_said_in_one_sentence(name, few_rows):
    call, words = BAD[name]
    with dask.config.set(scheduler="synchronous"), pytest.raises(MuhatError, match=words):
        call()


@pytest.mark.parametrize("most", [2000, 11])
def test_an_average_of_candidates_is_that_of_their_means(most, monkeypatch):
    monkeypatch.setattr("muhat.groups._candidates.MAX_SOURCES", most)
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(40, 30))
    own = (Z**2).sum(axis=1) + rng.uniform(1, 3, 40)
    candidates = GroupCandidates(GroupVectors(Z, rng.integers(1, 30, 40).astype(float), own))
    rows, weights = np.array([3, 5, 17, 39]), rng.dirichlet(np.ones(15), 4)
    each, averaged = candidates.at(rows), candidates.averaged(rows, weights)
    expected = np.einsum("tm,mtr->tr", weights, each.means)
    np.testing.assert_allclose(averaged.means, expected, atol=1e-12)
    expected = np.einsum("tm,mt->t", weights, each.own_weights)
    np.testing.assert_allclose(averaged.own_weights, expected, atol=1e-12)
