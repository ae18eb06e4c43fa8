"""gram="auto" beyond an eigendecomposition: its error is kept small, measured and stated."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest

from catalogue import SEED
from muhat import Embedding, KernelMean, Nystrom, compare
from muhat.data import ArraySource, ReservoirSample, places_of
from muhat.gram._auto import estimate_accuracy
from muhat.gram._exact_mean import ExactMeanFeatures
from muhat.kernels import Gaussian, Laplacian

N = 600
KERNELS = {"median": Gaussian(), "fine": Gaussian(0.7), "laplacian": Laplacian()}


@pytest.fixture
def small(monkeypatch):
    """Sizes at which a test is quick: dense up to 200 rows, 30 landmarks beyond."""
    monkeypatch.setattr("muhat.gram._plan.MAX_ROWS_DENSE", 200)
    monkeypatch.setattr("muhat.gram._nystrom.DEFAULT_SIZE", 30)
    monkeypatch.setattr("muhat.gram._auto.LANDMARK_COUNTS", (60, 120))


def sample(n=N, d=4, seed=SEED):
    return np.random.default_rng(seed).normal(size=(n, d))


def mean_of(kernel, X, masses=None):
    return Embedding(kernel, X, np.full(len(X), 1 / len(X)) if masses is None else masses)


def drawn_from(X):
    return ArraySource(X).total(partial(ReservoirSample.from_batch, size=20_000))


class TestTheErrorThatIsMeasured:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("m", [30, 120])
    def test_is_that_of_the_mean_of_all_rows(self, name, m):
        X = sample(2500)
        kernel = KERNELS[name].resolve(X)
        features = Nystrom(m).resolve(kernel, X)
        accuracy = estimate_accuracy(features, drawn_from(X))
        assert accuracy.error == pytest.approx(features.error(X), rel=0.15)
        spread = 1 - mean_of(kernel, X).squared_norm()
        assert accuracy.standard_error == pytest.approx(np.sqrt(spread / 2500), rel=0.05)

    def test_is_that_of_the_weighted_mean(self):
        X = sample(4000)
        weights = np.random.default_rng(1).gamma(1.0, size=4000) * (1 + (X[:, 0] > 1))
        kernel = Gaussian().resolve(X)
        features = Nystrom(60).resolve(kernel, X)
        exact = np.sqrt(features.outside(mean_of(kernel, X, weights / weights.sum())))
        accuracy = estimate_accuracy(features, drawn_from(X), weights)
        assert accuracy.error == pytest.approx(exact, rel=0.15)

    def test_is_none_where_every_row_is_a_landmark(self):
        X = sample(40)
        assert estimate_accuracy(Nystrom(40).resolve(Gaussian(1.0), X), drawn_from(X)).is_sufficient

    def test_landmarks_are_found_among_rows_that_repeat(self):
        rows = np.array([[0.0], [1.0], [0.0], [2.0]])
        np.testing.assert_array_equal(places_of(np.array([[0.0], [0.0], [2.0]]), rows), [0, 2, 3])


class TestTheExactMean:
    @pytest.fixture
    def features(self):
        X = sample(80)
        masses = np.random.default_rng(2).dirichlet(np.ones(80))
        return ExactMeanFeatures(Gaussian(1.0), X, masses, np.arange(0, 80, 8))

    def test_is_one_of_the_maps_functions(self, features):
        mean = mean_of(features.kernel, features.points, features.masses)
        assert features.embedding(features.coordinates(mean)).distance(mean) < 1e-7
        assert features.outside(mean) < 1e-12
        np.testing.assert_allclose(
            features.masses @ features(features.points), features.coordinates(mean), atol=1e-12
        )

    def test_the_functions_of_the_features_are_orthonormal(self, features):
        basis = [features.embedding(each) for each in np.eye(features.size)]
        inner = [[one.inner(other) for other in basis] for one in basis]
        np.testing.assert_allclose(inner, np.eye(features.size), atol=1e-9)
        Y = sample(7, seed=3)
        np.testing.assert_allclose([each(Y) for each in basis], features(Y).T, atol=1e-9)

    def test_where_landmarks_miss_nothing_the_last_feature_is_zero(self):
        X = sample(20)
        features = ExactMeanFeatures(Gaussian(1.0), X, np.full(20, 0.05), np.arange(20))
        assert not features(X)[:, -1].any()

    def test_maps_are_equal_if_made_from_the_same(self, features):
        assert pickle.loads(pickle.dumps(features)) == features
        assert features != ExactMeanFeatures(
            features.kernel, features.points, features.masses, np.arange(10)
        )


class TestAuto:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("kind", [np.float64, np.float32])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_mean_is_off_by_less_than_a_tenth_of_its_standard_error(
        self, small, name, kind, weighted
    ):
        X = sample().astype(kind)
        masses = np.random.default_rng(4).dirichlet(np.ones(N)) if weighted else np.full(N, 1 / N)
        masses[:5] = 0
        masses /= masses.sum()
        mu = KernelMean(kernel=KERNELS[name], filter="kme").fit(X, sample_weight=masses)
        exact = mean_of(mu.kernel_, X.astype(np.float64), masses)
        error = mean_of(mu.kernel_, mu.embedding_.points.astype(np.float64), mu.weights_).distance(
            exact
        )
        standard_error = np.sqrt((1 - exact.squared_norm()) * (masses**2).sum())
        assert error <= 0.1 * standard_error
        assert isinstance(mu.features_, ExactMeanFeatures)

    def test_few_landmarks_are_taken_where_they_are_enough_and_it_says_so(self, small):
        mu = KernelMean(kernel=Gaussian(5.0)).fit(sample(d=1))
        assert mu.gram_ == Nystrom()
        assert mu.weights_.shape == (30,)
        assert (
            "on 30 landmarks, 1.8e+04 kernel values in each pass, the mean is off by"
            in mu.gram_reason_
        )
        assert f"off by {mu.approximation_error_:.2g}" in mu.gram_reason_

    def test_the_reason_has_error_standard_error_and_cost(self, small):
        mu = KernelMean().fit(sample())
        assert mu.gram_reason_.startswith(
            "600 rows are too many for an eigendecomposition; on 30 landmarks alone"
        )
        assert "of KME's standard error 0.0" in mu.gram_reason_
        assert "computed exactly, from all 3.6e+05 pairs" in mu.gram_reason_
        assert (mu.weights_.shape, mu.approximation_error_) == ((N,), 0.0)

    def test_rows_that_cannot_be_paired_get_more_landmarks(self, small, monkeypatch):
        monkeypatch.setattr("muhat.gram._auto.MAX_PAIRS_EXACT_MEAN", 100)
        X = sample(d=2)
        mu = KernelMean(kernel=Gaussian(1.5)).fit_batches(np.array_split(X, 4))
        assert mu.gram_.n_components in (60, 120)
        assert mu.approximation_error_ > 0
        exact = mean_of(mu.kernel_, X)
        assert mu.features_.outside(exact) <= 0.01 * (1 - exact.squared_norm()) / N

    def test_batches_that_were_all_drawn_have_the_same_mean_as_an_array(self, small):
        X = sample()
        batches, array = KernelMean().fit_batches(np.array_split(X, 4)), KernelMean().fit(X)
        assert (batches.gram_reason_, batches.features_) == (array.gram_reason_, array.features_)
        np.testing.assert_allclose(batches.weights_, array.weights_, rtol=1e-9)

    def test_where_the_most_landmarks_are_not_enough_it_warns_and_names_the_ways_out(
        self, small, monkeypatch
    ):
        monkeypatch.setattr("muhat.gram._auto.MAX_PAIRS_EXACT_MEAN", 100)
        with pytest.warns(
            UserWarning,
            match=r"gram='auto': on 120 landmarks, .* more than a tenth of .* Use gram=Nystrom",
        ):
            mu = KernelMean(kernel=Laplacian(1.0)).fit_batches([sample()])
        assert mu.gram_ == Nystrom(120)

    def test_work_that_cannot_be_paid_for_is_not_begun(self, small, monkeypatch):
        monkeypatch.setattr("muhat.gram._auto.MAX_PAIRS_EXACT_MEAN", 100)
        monkeypatch.setattr("muhat.gram._auto.MAX_LANDMARK_WORK", N * 60**2)
        with pytest.warns(UserWarning, match="on 60 landmarks"):
            assert KernelMean(kernel=Laplacian(1.0)).fit(sample()).gram_ == Nystrom(60)

    def test_leave_one_out_is_exact_for_the_features(self, small):
        X = sample(330)
        mu = KernelMean(kernel=Gaussian(1.0), filter="s-kmse").fit(X)
        Z = mu.features_(X)
        dense = KernelMean(kernel="precomputed", gram="dense", filter="s-kmse").fit(Z @ Z.T)
        assert mu.choice_.score == pytest.approx(dense.choice_.score, rel=1e-9)
        assert mu.choice_.parameter == pytest.approx(dense.choice_.parameter, rel=1e-6)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_gain_of_shrinkage_outside_of_the_landmarks_is_not_lost(self, small, weighted):
        rng = np.random.default_rng(SEED)
        X = rng.choice([-3.0, 0.0, 3.0], size=(300, 8)) + 0.3 * rng.normal(size=(300, 8))
        kernel, weights = Gaussian(2.0), rng.uniform(0.5, 1.5, size=300) if weighted else None
        mu = KernelMean(kernel=kernel, filter="f-kmse").fit(X, sample_weight=weights)
        dense = KernelMean(kernel=kernel, filter="f-kmse", gram="dense").fit(
            X, sample_weight=weights
        )
        assert mu.gram_ == "dense"
        assert "shrinkage could gain about" in mu.gram_reason_
        np.testing.assert_allclose(mu.weights_, dense.weights_, rtol=1e-9)
        assert (
            KernelMean(kernel=kernel, filter="kme").fit(X, sample_weight=weights).gram_ != "dense"
        )
        many = np.concatenate(
            [X, X + 0.1]
        )  # more than 1.6 times the 200 rows that are always decomposed
        assert (
            "% of KME's risk outside of 30 landmarks, which the landmarks miss"
            in KernelMean(kernel=kernel).fit(many).gram_reason_
        )

    def test_as_asked_nothing_is_added(self, small):
        assert KernelMean(gram="nystrom").fit(sample()).gram_reason_ == "as requested"

    def test_a_comparison_and_a_target_take_it_too(self, small):
        X = sample()
        comparison = compare(X, filters=["s-kmse", "f-kmse"])
        assert comparison.n_components == 31
        mu = KernelMean(kernel=Gaussian(1.0), target=np.full(N, 0.5 / N)).fit(X)
        assert mu.embedding_(X[:3]).shape == (3,)
        target = KernelMean(kernel=Gaussian(1.0), target=mu.embedding_).fit(X)
        assert np.isfinite(target.choice_.score)

    def test_no_warning_where_there_is_nothing_to_act_on(self, small):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KernelMean(kernel=Gaussian(1.0)).fit(np.ones((300, 2)))
            KernelMean().fit(np.repeat(sample(20), 15, axis=0))
