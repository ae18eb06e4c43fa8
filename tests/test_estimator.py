"""KernelMean as an estimator: scikit-learn's checks, pipelines, searches, frames, weights."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.model_selection import KFold as SplitIntoFolds
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from catalogue import NAMES, SAMPLES, SEED
from muhat import ConditionalMean, KernelMean, KernelMeanMatching, StackedMean
from muhat.filters import Landweber
from muhat.gram import DenseGram
from muhat.kernels import Gaussian, Laplacian
from muhat.selection import Fixed, KFold, LeaveOneOut

X = SAMPLES["random"]


def expected_failures(estimator):
    """Checks that cannot hold for Gram matrices as input; there is none for points."""
    if estimator.kernel != "precomputed":
        return {}
    return {
        "check_positive_only_tag_during_fit": "it passes a random matrix, which is no Gram matrix",
        "check_estimators_dtypes": "it rounds a Gram matrix, which is then not semi-definite",
    }


# scikit-learn itself skips one check, check_array_api_input, unless SCIPY_ARRAY_API is set for the
# whole process.
@parametrize_with_checks(
    [KernelMean(), KernelMean(kernel="precomputed"), *(KernelMean(filter=name) for name in NAMES)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:bandwidth='median'")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_it_works_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), KernelMean())
    values = pipeline.fit(X).score_samples(X)
    assert values.shape == (len(X),)
    assert pipeline.score(X) < 0


def test_a_grid_search_reaches_the_filter_and_the_bandwidth_of_which_it_takes_the_largest():
    """Why docs/selection.md says that scores never compare bandwidths."""
    points = np.random.default_rng(SEED).normal(size=(30, 2))
    search = GridSearchCV(
        KernelMean(), {"kernel__bandwidth": [0.5, 1.0, 2.0], "filter": ["kme", "f-kmse"]}, cv=3
    )
    search.fit(points)
    assert set(search.cv_results_["param_kernel__bandwidth"]) == {0.5, 1.0, 2.0}
    assert len(set(search.cv_results_["mean_test_score"])) == 6
    assert (
        search.best_estimator_.kernel_.bandwidth == search.best_params_["kernel__bandwidth"] == 2.0
    )


@pytest.mark.parametrize(
    "estimator", [KernelMean(), StackedMean(), ConditionalMean(), KernelMeanMatching()], ids=repr
)
def test_the_parameters_of_a_kernel_given_by_name_can_be_set(estimator):
    assert estimator.set_params(kernel__bandwidth=2.0).kernel == Gaussian(2.0)
    assert estimator.set_params(kernel="laplacian", kernel__bandwidth=3.0).kernel == Laplacian(3.0)
    assert clone(estimator).set_params(kernel__bandwidth=4.0).kernel == Laplacian(4.0)
    assert estimator.kernel == Laplacian(3.0)  # a clone's kernel is its own
    assert estimator.set_params(kernel="gaussian").kernel == "gaussian"
    with pytest.raises(ValueError, match="Invalid parameter 'width'"):
        estimator.set_params(kernel__width=1.0)
    with pytest.raises(ValueError, match="did you mean 'laplacian'"):
        estimator.set_params(kernel="laplacain", kernel__bandwidth=1.0)


def test_a_grid_search_works_on_a_precomputed_kernel():
    K = Gaussian(1.0)(np.random.default_rng(SEED).normal(size=(20, 2)))
    folds = list(SplitIntoFolds(4).split(K))
    search = GridSearchCV(
        KernelMean(kernel="precomputed"), {"filter": ["kme", "s-kmse"]}, cv=folds
    ).fit(K)
    for name, score in zip(("kme", "s-kmse"), search.cv_results_["mean_test_score"], strict=True):
        by_hand = []
        for train, test in folds:
            mu = KernelMean(kernel="precomputed", filter=name).fit(K[np.ix_(train, train)])
            by_hand.append(
                2 * (K[np.ix_(test, train)] @ mu.weights_).mean()
                - mu.weights_ @ K[np.ix_(train, train)] @ mu.weights_
            )
        assert score == pytest.approx(np.mean(by_hand), rel=1e-9)


def test_its_score_is_minus_the_mean_squared_distance_to_new_points():
    mu = KernelMean(kernel=Gaussian(1.2), filter="f-kmse").fit(X[:8])
    F = reference.features(Gaussian(1.2)(X))
    estimate = F[:8].T @ mu.weights_
    assert mu.score(X[8:]) == pytest.approx(-((F[8:] - estimate) ** 2).sum(axis=1).mean(), rel=1e-9)


def test_cross_validation_by_scikit_learn_is_our_k_fold():
    order = np.random.default_rng(0).permutation(len(X))
    folds = [(np.setdiff1d(order, fold), fold) for fold in np.array_split(order, 4)]
    options = {"kernel": Gaussian(1.2), "filter": "f-kmse"}
    ours = KernelMean(selection=KFold(4, grid=[0.05]), **options).fit(X).choice_.score
    theirs = cross_val_score(KernelMean(selection=Fixed(0.05), **options), X, cv=folds)
    assert ours == pytest.approx(
        -np.average(theirs, weights=[len(fold) for _, fold in folds]), rel=1e-9
    )


def test_data_frames_of_both_kinds_and_lists_give_the_same_fit():
    mu = KernelMean().fit(X)
    names = ["a", "b", "c"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        other = KernelMean().fit(frame)
        np.testing.assert_array_equal(other.weights_, mu.weights_)
        np.testing.assert_array_equal(other.feature_names_in_, names)
        np.testing.assert_array_equal(other.score_samples(frame), mu.score_samples(X))
    np.testing.assert_array_equal(KernelMean().fit(X.tolist()).weights_, mu.weights_)


def test_whole_numbers_are_taken_as_floats():
    whole = np.array([[1, 2], [3, 4], [0, 1], [7, 7]])
    np.testing.assert_array_equal(
        KernelMean().fit(whole).weights_, KernelMean().fit(whole.astype(float)).weights_
    )


@pytest.mark.parametrize("name", ["auto", *NAMES])
def test_float32_stays_float32_and_close_to_float64(name):
    mu = KernelMean(filter=name).fit(X.astype(np.float32))
    other = KernelMean(filter=name).fit(X.astype(np.float32).astype(np.float64))
    assert mu.weights_.dtype == np.float32
    assert mu.score_samples(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(mu.choice_.score, other.choice_.score, rtol=1e-5)
    if mu.choice_.parameter == other.choice_.parameter:
        np.testing.assert_allclose(mu.weights_, other.weights_, atol=1e-5)


def test_a_fit_leaves_its_input_and_its_parameters_alone():
    points, kernel = X.copy(), Gaussian()
    estimator = KernelMean(kernel=kernel)
    before = estimator.get_params()
    estimator.fit(points)
    np.testing.assert_array_equal(points, X)
    assert estimator.get_params() == before
    assert kernel.bandwidth == "median"
    K = Gaussian(1.0)(X)
    KernelMean(kernel="precomputed").fit(K)
    np.testing.assert_array_equal(K, Gaussian(1.0)(X))


def test_a_kernel_functions_own_matrix_is_left_alone():
    K = Gaussian(1.0)(X)
    KernelMean(kernel=lambda X, Y: K, filter="kme").fit(X)
    np.testing.assert_array_equal(K, Gaussian(1.0)(X))


def test_it_clones_and_pickles():
    estimator = KernelMean(
        kernel=2 * Laplacian() + Gaussian(1.0),
        filter=Landweber(),
        selection=LeaveOneOut(grid=[1, 5]),
    )
    assert repr(clone(estimator)) == repr(estimator)
    mu = estimator.fit(X)
    copy = pickle.loads(pickle.dumps(mu))
    np.testing.assert_array_equal(copy.score_samples(X), mu.score_samples(X))
    assert repr(copy.choice_) == repr(mu.choice_)


def test_its_repr_tells_what_was_chosen():
    assert repr(KernelMean(filter="f-kmse")) == "KernelMean(filter='f-kmse')"
    mu = KernelMean(filter="f-kmse", selection=Fixed(0.25)).fit(X)
    assert repr(mu).endswith("% shrunk")
    assert "fitted to 12 points: Tikhonov() at 0.25, " in repr(mu)


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_zero_is_as_good_as_absence(name):
    weight = np.ones(len(X))
    weight[[2, 5]] = 0
    mu = KernelMean(filter=name).fit(X, sample_weight=weight)
    other = KernelMean(filter=name).fit(X[weight > 0])
    assert np.all(mu.weights_[[2, 5]] == 0)
    np.testing.assert_allclose(mu.weights_[weight > 0], other.weights_, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_size_of_weights_does_not_matter_and_equal_ones_are_none(name):
    weight = np.random.default_rng(SEED).uniform(1, 2, size=len(X))
    one, other = (
        KernelMean(filter=name).fit(X, sample_weight=factor * weight) for factor in (1, 1e200)
    )
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-9)
    equal = KernelMean(filter=name).fit(X, sample_weight=np.full(len(X), 7.0))
    np.testing.assert_array_equal(equal.weights_, KernelMean(filter=name).fit(X).weights_)


@pytest.mark.parametrize(
    ("name", "parameter"), [("f-kmse", 0.1), ("landweber", 5), ("tsvd", 0.05), ("s-kmse", 0.2)]
)
def test_a_weight_of_two_is_as_good_as_two_copies_for_a_given_parameter(name, parameter):
    weight = 1.0 + np.arange(len(X)) % 3
    copies = np.repeat(X, weight.astype(int), axis=0)
    options = {"kernel": Gaussian(1.3), "filter": name, "selection": Fixed(parameter)}
    mu = KernelMean(**options).fit(X, sample_weight=weight)
    other = KernelMean(**options).fit(copies)
    np.testing.assert_allclose(mu.score_samples(X), other.score_samples(X), atol=1e-10)


def test_the_empirical_mean_is_the_average_of_kernel_values():
    mu = KernelMean(kernel=Gaussian(1.3), filter="kme").fit(X)
    np.testing.assert_allclose(
        mu.score_samples(X[:3]), Gaussian(1.3)(X[:3], X).mean(axis=1), rtol=1e-12
    )


def test_a_target_of_weights_and_the_same_target_as_an_embedding_agree():
    tau = np.random.default_rng(SEED).normal(size=len(X))
    kernel = Gaussian(1.3)
    target = KernelMean(kernel=kernel, filter="kme").fit(X).embedding_
    target = type(target)(kernel, X, tau)
    for name in NAMES:
        one = KernelMean(kernel=kernel, filter=name, target=tau).fit(X).embedding_
        other = KernelMean(kernel=kernel, filter=name, target=target).fit(X).embedding_
        assert one.distance(other) == pytest.approx(0, abs=1e-7)


def test_shrinking_towards_the_truth_with_all_ones_strength_reaches_it():
    target = KernelMean(kernel=Gaussian(1.3), filter="kme").fit(X + 0.5).embedding_
    mu = KernelMean(kernel=Gaussian(1.3), filter="s-kmse", selection=Fixed(1e9), target=target).fit(
        X
    )
    assert mu.embedding_.distance(target) < 1e-8


def test_one_row_is_enough_where_nothing_is_left_out():
    mu = KernelMean(kernel=Gaussian(1.0), filter="s-kmse", selection=Fixed(1.0)).fit(X[:1])
    np.testing.assert_array_equal(mu.weights_, [0.5])


@st.composite
def samples(draw):
    shape = draw(st.tuples(st.integers(2, 9), st.integers(1, 4)))
    scale = 10.0 ** draw(st.integers(-100, 100))
    values = st.one_of(st.floats(-5, 5, width=32), st.sampled_from([0.0, 1.0]))
    return (draw(arrays(np.float64, shape, elements=values)) * scale).astype(
        draw(st.sampled_from([np.float64]))
    )


@pytest.mark.filterwarnings("ignore:bandwidth='median'")
@settings(max_examples=80, deadline=None)
@given(
    X=samples(),
    name=st.sampled_from(["auto", *NAMES]),
    selection=st.sampled_from(["loo", "kfold", "gcv"]),
)
def test_whatever_the_sample_a_fit_is_finite_and_no_better_than_its_score_says(X, name, selection):
    if selection == "gcv" and name in ("kme", "s-kmse"):
        return
    mu = KernelMean(filter=name, selection=KFold(2) if selection == "kfold" else selection).fit(X)
    assert np.isfinite(mu.weights_).all()
    assert np.isfinite(mu.score_samples(X)).all()
    assert -1e-9 <= mu.choice_.strength <= 1.5
    assert not np.isnan(mu.choice_.scores).any()
    if selection == "loo" and name == "auto":
        kme = next(choice for choice in mu.choices_ if choice.parameter is None)
        assert mu.choice_.score <= kme.score + 1e-9


def test_the_gram_operator_multiplies_like_its_matrix():
    masses = np.random.default_rng(SEED).dirichlet(np.ones(len(X)))
    gram = DenseGram.from_sample(Gaussian(1.0), X, masses)
    A = np.sqrt(masses)[:, None] * Gaussian(1.0)(X) * np.sqrt(masses)
    np.testing.assert_allclose(gram.product(np.eye(len(X))), A, rtol=1e-13)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(A), rtol=1e-13)
    spectrum = gram.spectrum()
    np.testing.assert_allclose((spectrum.U * spectrum.gamma) @ spectrum.U.T, A, atol=1e-14)
