"""Feature maps: Z Zᵀ ≈ K, Nyström projects, frequencies have the kernel's law, errors."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

import reference
from catalogue import KERNELS, SAMPLES, SEED
from muhat import Embedding
from muhat.data import ArraySource, SampleBatch
from muhat.errors import MuhatError
from muhat.gram import (
    APPROXIMATIONS,
    Approximation,
    FeatureEmbedding,
    FeatureMap,
    FeatureSums,
    Folds,
    FourierFeatures,
    Nystrom,
    NystromFeatures,
    RandomFeatures,
)
from muhat.gram._nystrom import leverage
from muhat.kernels import Function, Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed

RNG = np.random.default_rng(SEED)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(7, 3))
KERNEL = Laplacian(2.0)
RULES = ("uniform", "k-means++", "leverage")
STATIONARY = {
    "gaussian": Gaussian(1.3),
    "laplacian": Laplacian(2.1),
    "matern 1/2": Matern(1.1, nu=0.5),
    "matern 5/2": Matern(1.1, nu=2.5),
    "matern 0.8": Matern(1.1, nu=0.8),
    "matern inf": Matern(1.1, nu=np.inf),
    "scaled": 2.5 * Laplacian(0.7),
    "scaled twice": 0.5 * (3.0 * Gaussian(0.9)),
}
SAME = 1e-8
"""All points as landmarks, against the Gram matrix."""


def mean_of(kernel, rows):
    return Embedding(kernel, rows, np.full(len(rows), 1 / len(rows)))


# Nyström: the projection


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_points_as_landmarks_give_the_gram_matrix(kernel, sample):
    rows = SAMPLES[sample]
    K = KERNELS[kernel](rows)
    for rule in RULES:
        features = Nystrom(len(rows), landmarks=rule).resolve(KERNELS[kernel], rows)
        np.testing.assert_array_equal(features.landmarks, rows)
        Z = features(rows)
        assert Z.shape == (len(rows), features.size)
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=SAME * np.abs(K).max())


@pytest.mark.parametrize("rule", RULES)
def test_the_estimate_is_the_projection_of_the_empirical_mean(rule):
    features = Nystrom(9, landmarks=rule).resolve(KERNEL, X)
    estimate = features.embedding(features(X).mean(axis=0))
    L = features.landmarks
    weights = np.linalg.pinv(KERNEL(L)) @ KERNEL(L, X) @ np.full(len(X), 1 / len(X))
    np.testing.assert_allclose(estimate.weights, weights, rtol=1e-10)
    np.testing.assert_array_equal(estimate.points, L)
    np.testing.assert_allclose(
        features.coordinates(mean_of(KERNEL, X)), features(X).mean(axis=0), rtol=1e-10
    )


@pytest.mark.parametrize("name", ["laplacian", "gaussian", "linear", "sum", "scaled"])
def test_it_is_the_nearest_function_on_the_landmarks(name):
    kernel, landmarks = KERNELS[name], X[:6]
    F = reference.features(kernel(np.concatenate([X, Y])))
    phi, mean = F[:6], F[: len(X)].mean(axis=0)
    nearest = phi.T @ np.linalg.lstsq(phi.T, mean, rcond=1e-12)[0]
    features = Nystrom(landmarks=landmarks).resolve(kernel, X)
    estimate = features.embedding(features.coordinates(mean_of(kernel, X)))
    np.testing.assert_allclose(estimate(Y), F[len(X) :] @ nearest, rtol=1e-7, atol=1e-9)
    assert features.outside(mean_of(kernel, X)) == pytest.approx(
        ((mean - nearest) ** 2).sum(), rel=1e-6, abs=1e-12
    )
    assert features.error(X) == pytest.approx(np.linalg.norm(mean - nearest), rel=1e-6, abs=1e-7)


def test_its_error_is_the_distance_of_the_two_means():
    features = Nystrom(8, random_state=3).resolve(KERNEL, X)
    w, p = (
        np.linalg.solve(KERNEL(features.landmarks), KERNEL(features.landmarks, X).mean(axis=1)),
        1 / len(X),
    )
    squared = sum(p * p * KERNEL(x[None], y[None])[0, 0] for x in X for y in X)
    squared -= 2 * sum(
        p * v * KERNEL(x[None], y[None])[0, 0]
        for x in X
        for v, y in zip(w, features.landmarks, strict=True)
    )
    squared += w @ KERNEL(features.landmarks) @ w
    assert features.error(X) == pytest.approx(np.sqrt(squared), rel=1e-8)


def test_its_error_falls_as_landmarks_are_added_and_ends_in_rounding():
    errors = [Nystrom(landmarks=X[:m]).resolve(KERNEL, X).error(X) for m in (1, 5, 20, 39, 40)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1
    assert errors[-1] < 1e-7


def test_a_function_on_the_landmarks_is_its_own_projection():
    features = Nystrom(landmarks=X[:6]).resolve(KERNEL, X)
    f = Embedding(KERNEL, X[:6], RNG.normal(size=6))
    np.testing.assert_allclose(
        features.embedding(features.coordinates(f)).weights, f.weights, rtol=1e-9
    )
    assert features.outside(f) == pytest.approx(0, abs=1e-12)
    assert features.coordinates(f) @ features.coordinates(f) == pytest.approx(
        f.squared_norm(), rel=1e-10
    )


@settings(max_examples=40, deadline=None)
@given(
    landmarks=arrays(np.float64, (5, 2), elements=st.integers(-2, 2).map(float)),
    weights=arrays(np.float64, 6, elements=st.floats(-100, 100)),
    kernel=st.sampled_from([Gaussian(1.0), Laplacian(1.5), Linear(), Polynomial(2)]),
)
def test_a_projection_repeats_itself_and_never_lengthens_whatever_the_landmarks(
    landmarks, weights, kernel
):
    features = Nystrom(landmarks=landmarks).resolve(kernel, np.zeros((1, 2)))
    f = Embedding(kernel, np.random.default_rng(0).normal(size=(6, 2)), weights)
    once = features.coordinates(f)
    again = features.coordinates(features.embedding(once))
    np.testing.assert_allclose(again, once, atol=1e-6 * max(f.norm(), 1e-6))
    assert 0 <= features.outside(f) <= f.squared_norm() * (1 + 1e-9)
    assert once @ once <= f.squared_norm() * (1 + 1e-7) + 1e-9


def test_duplicate_landmarks_change_nothing_but_the_rank():
    once = Nystrom(landmarks=X[:5]).resolve(KERNEL, X)
    twice = Nystrom(landmarks=np.concatenate([X[:5], X[2:5]])).resolve(KERNEL, X)
    assert twice.size == once.size == 5
    np.testing.assert_allclose(twice(X) @ twice(X).T, once(X) @ once(X).T, rtol=1e-10)
    np.testing.assert_allclose(
        twice.embedding(twice(X).mean(axis=0))(Y), once.embedding(once(X).mean(axis=0))(Y)
    )
    assert twice.error(X) == pytest.approx(once.error(X), rel=1e-6)


# Nyström: the landmarks


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_landmarks_are_rows_in_their_order_and_the_seed_decides(sample, rule):
    rows = SAMPLES[sample]
    for m in sorted({1, 2, len(rows) - 1}):
        landmarks = Nystrom(m, landmarks=rule, random_state=7).resolve(KERNEL, rows).landmarks
        assert landmarks.shape == (m, rows.shape[1])
        places = [np.flatnonzero((rows == landmark).all(axis=1)) for landmark in landmarks]
        assert all(len(place) for place in places)
        assert all(a[0] <= b[-1] for a, b in pairwise(places))
        np.testing.assert_array_equal(
            Nystrom(m, landmarks=rule, random_state=7).resolve(KERNEL, rows).landmarks, landmarks
        )


@pytest.mark.parametrize("rule", RULES)
def test_another_seed_draws_others(rule):
    first, second = (
        Nystrom(5, landmarks=rule, random_state=seed).resolve(KERNEL, X).landmarks
        for seed in (0, 1)
    )
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("rule", ["uniform", "leverage"])
def test_no_row_is_drawn_twice(rule):
    landmarks = Nystrom(39, landmarks=rule).resolve(KERNEL, X).landmarks
    assert len(np.unique(landmarks, axis=0)) == 39


def test_the_default_number_is_500_or_all_rows():
    assert len(Nystrom().resolve(KERNEL, X).landmarks) == 40
    assert len(Nystrom().resolve(KERNEL, RNG.normal(size=(510, 3))).landmarks) == 500


def test_leverage_scores_are_those_of_the_ridge():
    K, m = KERNEL(X), 10
    sigma = np.linalg.eigvalsh(K)
    ridge = (np.trace(K) - sigma[-5:].sum()) / 5
    exact = np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))
    np.testing.assert_allclose(leverage(reference.features(K), np.diag(K), m), exact, rtol=1e-10)
    assert exact.sum() <= m


def test_a_pilot_that_sees_little_overstates_leverage_and_stays_below_one():
    K = KERNEL(X)
    ridge = (np.trace(K) - np.linalg.eigvalsh(K)[-5:].sum()) / 5
    exact = np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))
    scores = leverage(Nystrom(10).resolve(KERNEL, X)(X), np.ones(40), 10)
    assert ((scores > 0) & (scores <= 1 + 1e-12)).all()
    assert np.corrcoef(scores, exact)[0, 1] > 0.5


def test_leverage_and_k_means_find_a_lone_point_that_uniform_draws_miss():
    crowd = np.concatenate([0.01 * RNG.normal(size=(400, 2)), [[5.0, 5.0]]])
    found = {}
    for rule in RULES:
        drawn = (
            Nystrom(5, landmarks=rule, random_state=seed).resolve(Gaussian(1.0), crowd).landmarks
            for seed in range(20)
        )
        found[rule] = sum(5.0 in landmarks for landmarks in drawn)
    assert found["uniform"] < 5
    assert found["k-means++"] == 20
    assert found["leverage"] > 15


def test_rows_that_the_kernel_sends_to_zero_can_be_landmarks():
    rows = np.zeros((6, 2))
    for rule in RULES:
        features = Nystrom(3, landmarks=rule).resolve(Linear(), rows)
        np.testing.assert_array_equal(features(rows), np.zeros((6, 1)))
        assert features.error(rows) == 0


def test_landmarks_given_are_copied():
    mine = X[:5].copy()
    features = Nystrom(landmarks=mine).resolve(KERNEL, X)
    mine[:] = 0
    np.testing.assert_array_equal(features.landmarks, X[:5])


def test_landmarks_given_may_be_more_than_the_rows():
    assert Nystrom(40, landmarks=X).resolve(KERNEL, X[:3]).size == 40


# Random features


@pytest.mark.parametrize("name", STATIONARY)
def test_frequencies_have_the_law_whose_transform_is_the_kernel(name):
    kernel, pairs = STATIONARY[name], 40_000
    features = RandomFeatures(2 * pairs, random_state=SEED).resolve(kernel, X)
    gaps = np.array(
        [[0.0, 0.0, 0.3], [1.0, 0.0, 0.0], [0.6, -0.6, 0.6], [2.0, 1.0, -1.0], [0.0, 4.0, 0.0]]
    )
    mean = np.array(
        [
            kernel.bound * np.mean([np.cos(w @ gap) for w in features.frequencies[:pairs]])
            for gap in gaps
        ]
    )
    # cos has a variance of at most one half: four and a half standard errors.
    np.testing.assert_allclose(
        mean, kernel(gaps, np.zeros((1, 3)))[:, 0], atol=4.5 * kernel.bound / np.sqrt(2 * pairs)
    )


def test_inner_products_of_features_are_means_of_cosines():
    kernel = STATIONARY["scaled"]
    features = RandomFeatures(12).resolve(kernel, X)
    for x in X[:4]:
        for y in Y[:4]:
            mean = kernel.bound * sum(np.cos(w @ (x - y)) for w in features.frequencies) / 6
            assert features(x[None])[0] @ features(y[None])[0] == pytest.approx(mean, rel=1e-10)


@pytest.mark.parametrize("name", STATIONARY)
def test_the_diagonal_is_exact(name):
    kernel = STATIONARY[name]
    for rows in SAMPLES.values():
        Z = RandomFeatures(20).resolve(kernel, rows)(rows)
        np.testing.assert_allclose((Z**2).sum(axis=1), kernel.diagonal(rows), rtol=1e-12)


def test_a_matern_kernel_so_rough_that_frequencies_overflow_still_has_features():
    features = RandomFeatures(20_000).resolve(Matern(1.0, nu=0.01), X)
    assert np.isfinite(features(X)).all()


def test_the_same_seed_and_number_of_columns_give_the_same_features_whatever_the_rows():
    features = RandomFeatures(50, random_state=4).resolve(KERNEL, X)
    assert features == RandomFeatures(50, random_state=4).resolve(KERNEL, Y)
    assert features != RandomFeatures(50, random_state=5).resolve(KERNEL, X)
    assert features != RandomFeatures(50, random_state=4).resolve(KERNEL, Y[:, :2])
    assert RandomFeatures().resolve(KERNEL, X).size == 1000


def test_its_error_is_the_root_mean_square_of_the_gaps():
    kernel = 2 * Gaussian(1.5)
    features = RandomFeatures(30).resolve(kernel, X)
    squares = []
    for x in X:
        true = np.mean([kernel(x[None], y[None])[0, 0] for y in X])
        squares.append(
            (np.mean([features(x[None])[0] @ features(y[None])[0] for y in X]) - true) ** 2
        )
    assert features.error(X) == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-10)


def test_coordinates_of_a_large_embedding_are_summed_in_blocks(monkeypatch):
    monkeypatch.setattr("muhat.gram._random_features.ROWS_PER_BLOCK", 7)
    features = RandomFeatures(30).resolve(KERNEL, X)
    f = Embedding(KERNEL, X, RNG.normal(size=40))
    np.testing.assert_allclose(features.coordinates(f), f.weights @ features(X), rtol=1e-10)
    g = features.embedding(features.coordinates(f))
    np.testing.assert_allclose(g(X), features(X) @ g.coordinates, rtol=1e-10)
    assert features.outside(f) == 0


# Functions of features


def pair():
    features = RandomFeatures(30).resolve(KERNEL, X)
    return features, *(FeatureEmbedding(features, RNG.normal(size=30)) for _ in range(2))


def test_a_function_of_features_is_a_vector():
    features, f, g = pair()
    np.testing.assert_allclose(f(Y), [f.coordinates @ features(y[None])[0] for y in Y], rtol=1e-12)
    combined = 2 * f - g / 4 + (-f)
    np.testing.assert_allclose(combined(Y), f(Y) - g(Y) / 4, rtol=1e-10)
    assert f.inner(g) == pytest.approx(sum(f.coordinates * g.coordinates))
    assert f.squared_norm() == pytest.approx(f.inner(f))
    assert f.distance(g) ** 2 == pytest.approx(f.inner(f) - 2 * f.inner(g) + g.inner(g))
    assert f.norm() == pytest.approx(np.linalg.norm(f.weights))
    assert f.kernel == KERNEL
    np.testing.assert_array_equal(features.coordinates(f), f.coordinates)
    assert repr(0 * f) == "FeatureEmbedding(Laplacian(bandwidth=2.0), 30 features, norm 0)"


def test_its_mmd_is_near_that_of_the_kernel():
    features = RandomFeatures(4000).resolve(KERNEL, X)
    f, g = (mean_of(KERNEL, rows) for rows in (X, Y))
    near = features.embedding(features.coordinates(f)).distance(
        features.embedding(features.coordinates(g))
    )
    assert near == pytest.approx(f.distance(g), abs=0.03)


def test_functions_of_different_spaces_do_not_mix():
    features, f, _ = pair()
    other = RandomFeatures(30, random_state=9).resolve(KERNEL, X)
    with pytest.raises(
        ValueError, match=r"both embeddings must have the same features.*the same seed"
    ):
        f + FeatureEmbedding(other, f.coordinates)
    with pytest.raises(ValueError, match="both embeddings must have the same features"):
        other.coordinates(f)
    exact = mean_of(KERNEL, X)
    for combine in (exact.inner, exact.distance):
        with pytest.raises(
            ValueError,
            match=r"Embedding: the other must be an Embedding too, got FeatureEmbedding; convert",
        ):
            combine(f)
    for combine in (f.inner, f.distance):
        with pytest.raises(
            ValueError,
            match="FeatureEmbedding: the other embedding must have features too, got Embedding",
        ):
            combine(exact)
    with pytest.raises(TypeError):
        f + 1
    with pytest.raises(TypeError):
        f * f
    with pytest.raises(
        ValueError, match="NystromFeatures: an embedding in the kernel's RKHS is needed"
    ):
        Nystrom(3).resolve(KERNEL, X).coordinates(f)
    for each in (features, Nystrom(3).resolve(KERNEL, X)):
        with pytest.raises(
            ValueError,
            match=r"an embedding with the same kernel Laplacian\(bandwidth=2.0\) is needed",
        ):
            each.coordinates(mean_of(Laplacian(1.0), X))


# What every map is


MAPS = {
    **{f"nystrom {rule}": Nystrom(6, landmarks=rule) for rule in RULES},
    "nystrom given": Nystrom(landmarks=X[:6]),
    "random features": RandomFeatures(40),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_keeps_the_type_of_the_points(name):
    double = MAPS[name].resolve(KERNEL, X)
    single = MAPS[name].resolve(KERNEL, X.astype(np.float32))
    assert double.dtype == np.float64
    assert single.dtype == np.float32
    for features in (double, single):
        for dtype in (np.float32, np.float64):
            Z = features(X.astype(dtype))
            assert Z.dtype == dtype
            np.testing.assert_allclose(Z @ Z.T, double(X) @ double(X).T, atol=1e-5)
    mean = single.coordinates(mean_of(KERNEL, X.astype(np.float32)))
    assert (
        single.embedding(single(X.astype(np.float32)).mean(axis=0))(Y.astype(np.float32)).dtype
        == np.float32
    )
    np.testing.assert_allclose(
        single.embedding(mean)(Y), double.embedding(double(X).mean(axis=0))(Y), atol=1e-5
    )
    assert single.error(X.astype(np.float32)) == pytest.approx(double.error(X), abs=1e-5)


def test_smooth_kernels_in_single_precision_lose_no_more_than_its_rounding():
    rows = RNG.normal(size=(300, 2)).astype(np.float32).astype(np.float64)
    features = Nystrom(200).resolve(Gaussian(2.0), rows.astype(np.float32))
    Z = features(rows.astype(np.float32)).astype(np.float64)
    double = Nystrom(200).resolve(Gaussian(2.0), rows)
    assert (
        features.size == double.size
    )  # the type of the rows decides nothing about the landmarks' span
    np.testing.assert_allclose(
        Z @ Z.T, double(rows) @ double(rows).T, atol=4 * np.finfo(np.float32).eps
    )
    f = mean_of(Gaussian(2.0), rows.astype(np.float32))
    np.testing.assert_allclose(features.coordinates(f), double(rows).mean(axis=0), atol=1e-6)
    exact = mean_of(Gaussian(2.0), rows)
    np.testing.assert_allclose(features.embedding(Z.mean(axis=0))(rows), exact(rows), atol=1e-5)


def test_more_landmarks_have_no_fewer_features_in_single_precision():
    rows = np.random.default_rng(SEED).normal(size=(1000, 20)).astype(np.float32)
    assert [Nystrom(m).resolve(Gaussian(5.0), rows).size for m in (300, 1000)] == [300, 1000]


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_pickled_compared_and_never_changed(name):
    features = MAPS[name].resolve(KERNEL, X)
    assert isinstance(features, FeatureMap)
    copy = pickle.loads(pickle.dumps(features))
    assert copy == features
    np.testing.assert_array_equal(copy(Y), features(Y))
    assert features == clone(MAPS[name]).resolve(KERNEL, X)
    assert features != MAPS[name].resolve(Laplacian(1.0), X)
    assert features != MAPS[name].resolve(KERNEL, X.astype(np.float32))
    assert features != "features"
    with pytest.raises(AttributeError):
        features.kernel = Gaussian(1.0)


def test_approximations_are_parts_like_any_other():
    assert {"nystrom": Nystrom, "random-features": RandomFeatures} == APPROXIMATIONS
    for part in MAPS.values():
        assert isinstance(part, Approximation)
        assert clone(part) == part
    assert Nystrom(5) != Nystrom(6)
    assert Nystrom(landmarks=X) != Nystrom()
    assert Nystrom(landmarks=X) != Nystrom(landmarks=X + 1)
    assert Nystrom(5) != RandomFeatures(5)
    assert Nystrom().set_params(n_components=7).get_params() == {
        "n_components": 7,
        "landmarks": "uniform",
        "random_state": 0,
    }
    assert repr(Nystrom(7)) == "Nystrom(n_components=7)"


@pytest.mark.parametrize(
    "name", ["one row", "two points", "equal rows", "more features than rows", "a constant column"]
)
def test_small_and_degenerate_samples_have_features(name):
    samples = {**SAMPLES, "one row": X[:1], "equal rows": np.ones((5, 2))}
    rows = samples[name]
    for part in (*(Nystrom(landmarks=rule) for rule in RULES), Nystrom(1), RandomFeatures(2)):
        features = part.resolve(KERNEL, rows)
        assert features(rows).shape == (len(rows), features.size)
        assert 0 <= features.error(rows) <= 2
        assert np.isfinite(features.embedding(features(rows).mean(axis=0))(rows)).all()


def test_whole_numbers_are_points_too():
    assert Nystrom(3).resolve(KERNEL, X)(np.ones((2, 3), int)).dtype == np.float64


# What is refused


REFUSED = {
    "more landmarks than rows": (
        Nystrom(41),
        "Nystrom: n_components must be at most the number of rows, 40, got 41; use fewer",
    ),
    "m zero": (Nystrom(0), "Nystrom: n_components must be a whole number of at least 1, got 0"),
    "m negative": (
        RandomFeatures(-2),
        "RandomFeatures: n_components must be a whole number of at least 1, got -2",
    ),
    "m a fraction": (Nystrom(2.5), "n_components must be a whole number of at least 1, got 2.5"),
    "m a word": (
        RandomFeatures("many"),
        "n_components must be a whole number of at least 1, got 'many'",
    ),
    "m true": (Nystrom(True), "n_components must be a whole number of at least 1, got True"),
    "m odd": (
        RandomFeatures(11),
        "n_components must be even, because features come in pairs.*got 11; use 12",
    ),
    "seed a fraction": (
        RandomFeatures(10, random_state=0.5),
        "random_state must be None, a whole number from 0 to .*, got 0.5",
    ),
    "seed negative": (
        Nystrom(5, random_state=-1),
        "random_state must be None, a whole number from 0 to .*, got -1",
    ),
    "rule misspelt": (
        Nystrom(5, landmarks="kmeans++"),
        "one of 'uniform'.*got 'kmeans..'; did you mean 'k-means..'",
    ),
    "landmarks of other features": (
        Nystrom(landmarks=X[:, :2]),
        r"at least one row of 3 features, got shape \(40, 2\)",
    ),
    "landmarks of one dimension": (
        Nystrom(landmarks=X[0]),
        r"at least one row of 3 features, got shape \(3,\)",
    ),
    "landmarks empty": (
        Nystrom(landmarks=X[:0]),
        r"at least one row of 3 features, got shape \(0, 3\)",
    ),
    "landmarks with NaN": (
        Nystrom(landmarks=np.full((2, 3), np.nan)),
        "landmarks must be finite, got NaN or infinite",
    ),
    "landmarks of words": (
        Nystrom(landmarks=[["a", "b", "c"]]),
        "landmarks must be an array of numbers or one of",
    ),
    "landmarks and another m": (
        Nystrom(6, landmarks=X[:5]),
        "n_components must be the number of landmarks given, 5, or None, got 6",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_parameter_is_refused(case):
    part, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence) as refused:
        part.resolve(KERNEL, X)
    assert "\n" not in str(refused.value)


NO_FEATURES = {
    "linear": Linear(),
    "sum": Gaussian(1.0) + Laplacian(1.0),
    "product": Gaussian(1.0) * Laplacian(1.0),
    "a multiple of another": 2 * Linear(),
    "precomputed": Precomputed(np.eye(3)),
}


@pytest.mark.parametrize("case", NO_FEATURES)
def test_a_kernel_without_random_features_is_refused(case):
    with pytest.raises(
        ValueError, match=r"RandomFeatures: .*Gaussian, .*Laplacian, or a multiple.*use Nystrom"
    ):
        RandomFeatures(10).resolve(NO_FEATURES[case], X)


def test_an_unsettled_bandwidth_is_refused():
    with pytest.raises(
        ValueError,
        match=r"bandwidth must be positive and finite, a number that resolve\(X\) can learn",
    ):
        RandomFeatures(10).resolve(Gaussian(), X)


@pytest.mark.parametrize("kernel", [Precomputed(np.eye(40)), 2 * Precomputed(np.eye(40))])
def test_a_precomputed_kernel_has_no_landmarks(kernel):
    with pytest.raises(
        ValueError,
        match=r"Nystrom: a kernel that can be called on points is needed, got .*Precomputed",
    ):
        Nystrom(5).resolve(kernel, np.arange(40)[:, None])


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            lambda X, Y: -(X @ Y.T),
            "the Gram matrix must be positive semi-definite, got an eigenvalue of",
        ),
        (lambda X, Y: X[:, :1] + 2 * Y[:, 0], "is needed, got K"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "must be finite"),
    ],
    ids=["indefinite", "not symmetric", "not finite"],
)
def test_a_function_that_is_no_kernel_is_refused(function, sentence):
    with pytest.raises(ValueError, match=sentence):
        Nystrom(5).resolve(Function(function), X)


@pytest.mark.parametrize("name", MAPS)
def test_points_and_coordinates_of_the_wrong_shape_are_refused(name):
    features = MAPS[name].resolve(KERNEL, X)
    with pytest.raises(
        ValueError, match=r"points in rows of 3 features are needed, got shape \(40, 2\)"
    ):
        features(X[:, :2])
    with pytest.raises(
        ValueError, match=r"points in rows of 3 features are needed, got shape \(3,\)"
    ):
        features.error(X[0])
    with pytest.raises(
        ValueError,
        match=rf"{features.size} coordinates are needed, one for each feature, got shape \(2,\)",
    ):
        features.embedding(np.ones(2))


def test_the_two_kinds_of_maps_are_never_equal():
    nystrom, fourier = NystromFeatures(KERNEL, X[:3], X.dtype), FourierFeatures(KERNEL, X[:3])
    assert nystrom != fourier
    assert FourierFeatures(KERNEL, X[:3]) == fourier


@pytest.mark.parametrize("n_splits", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(4.0), Laplacian(3.0)], ids=repr)
def test_sums_that_are_whitened_afterwards_are_those_of_whitened_rows(kernel, weighted, n_splits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    weights = rng.gamma(1.0, size=400) if weighted else None
    features = Nystrom(60).resolve(kernel, X)
    assert features.can_whiten_sums
    assert not Nystrom(60).resolve(kernel, X.astype(np.float32)).can_whiten_sums
    folds = Folds(n_splits)
    sums = FeatureSums.from_source(ArraySource(X, weights), features, folds)
    rows = FeatureSums.from_batch(SampleBatch(X, 0, weights), features, folds)
    np.testing.assert_allclose(sums.mean, rows.mean, atol=1e-10 * 400)
    np.testing.assert_allclose(sums.covariance, rows.covariance, atol=1e-10 * 400)
    assert (sums.n, sums.own, sums.largest_value) == (rows.n, pytest.approx(rows.own), 1.0)


def test_rows_are_whitened_one_by_one_where_landmarks_are_nearly_dependent():
    X = np.random.default_rng(0).normal(size=(400, 2))
    assert not Nystrom(60).resolve(Gaussian(2.0), X).can_whiten_sums


def test_sums_that_overflow_are_refused():
    X = np.random.default_rng(0).normal(size=(400, 12))
    features = Nystrom(20).resolve(Linear(), X)
    with pytest.raises(MuhatError, match="finite"):
        FeatureSums.from_source(ArraySource(1e200 * X), features, Folds())
