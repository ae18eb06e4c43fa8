"""Learning from groups: exact leave-one-out, choices by the error of y, and bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

from muhat import (
    ConditionalMean,
    Fixed,
    Gaussian,
    GroupClassifier,
    GroupRegressor,
    KernelMeans,
    Nystrom,
    load,
    save,
)
from muhat.errors import MuhatError
from muhat.groups._regression import GroupRegressions, fitted_vectors, new_vectors

REFITTED = 1e-8
"""Relative: left-out predictions against refitting."""


def made(T=30, n=15, seed=0):
    """Groups on a line and the place of each."""
    random = np.random.default_rng(seed)
    y = random.uniform(-1, 1, T)
    return [place + random.normal(size=(n, 2)) for place in y], y


@pytest.mark.parametrize("shape", ["line", "scales"])
@pytest.mark.parametrize("filter", ["tikhonov", "landweber"])
def test_left_out_predictions_equal_those_of_refitting_without_the_group(shape, filter):
    samples, y = made(12)
    if shape == "scales":
        samples = [np.exp(level) * (rows - level) for rows, level in zip(samples, y, strict=True)]
    fixed = {"kernel": Gaussian(1.5), "standardize": False}
    model = GroupRegressor(filter=filter, **fixed).fit(samples, y)
    chosen = model._fit.single.model
    for t in range(12):
        others = [place for place in range(12) if place != t]
        without = GroupRegressor(**fixed).fit([samples[place] for place in others], y[others])
        vectors = fitted_vectors(without.group_means_, ["plain"])["plain"]
        new = new_vectors(without.group_means_, [samples[t]], ["plain"])["plain"]
        rows = np.column_stack([vectors, np.zeros(11)])
        scale = model._fit.single.scale
        again = ConditionalMean(
            kernel=chosen.kernel_,
            filter=chosen.filter_,
            selection=Fixed(chosen.choice_.parameter),
            standardize=False,
        )
        expected = again.fit(rows / scale, y[others]).predict(new / scale)[0]
        np.testing.assert_allclose(
            model.left_out_predictions_[t], expected, rtol=REFITTED, atol=REFITTED
        )


def test_what_is_predicted_is_ridge_regression_on_distances():
    samples, y = made(10)
    model = GroupRegressor(kernel=Gaussian(1.5), standardize=False).fit(samples, y)
    fit = model._fit.single
    Z = fitted_vectors(model.group_means_, ["plain"])["plain"]
    squared = ((Z[:, None] - Z) ** 2).sum(axis=2) / fit.scale**2
    kernel, penalty = fit.model.kernel_, 10 * fit.model.choice_.parameter
    K = Z @ Z.T / fit.scale**2
    if isinstance(kernel, Gaussian):
        K = np.exp(-squared / (2 * kernel.bandwidth**2))
    # what the weights lack to one goes to the mean of y
    expected = y.mean() + K @ np.linalg.solve(K + penalty * np.eye(10), y - y.mean())
    np.testing.assert_allclose(model.predict(samples), expected, atol=1e-7)


@pytest.mark.parametrize("gram", ["dense", Nystrom(60)], ids=["dense", "landmarks"])
@pytest.mark.parametrize("means", ["plain", "filtered", "joint", "average"])
def test_the_place_of_a_group_is_learnt(gram, means):
    samples, y = made()
    new, truth = made(seed=5)
    model = GroupRegressor(gram=gram, means=means).fit(samples, y)
    assert model.loo_score_ > 0.7
    assert np.corrcoef(model.predict(new), truth)[0, 1] > 0.8
    assert means == model.means_


@pytest.mark.parametrize("transductive", [False, True])
def test_the_error_for_groups_left_out_chooses_the_means(transductive):
    samples, y = made(12)
    model = GroupRegressor(means="auto", transductive=transductive).fit(samples, y)
    assert set(model.means_errors_) == {"plain", "filtered", "joint", "average"}
    assert model.means_errors_[model.means_] == min(model.means_errors_.values())
    plain = GroupRegressor(transductive=transductive).fit(samples, y)
    error = np.mean((y - y.mean()) ** 2) * (1 - plain.nested_score_)
    if not transductive:  # nested cross-validation of the plain means has the same folds
        np.testing.assert_allclose(model.means_errors_["plain"], error)
    assert GroupRegressor(means="auto").fit(samples[:8], y[:8]).means_ == "plain"


def test_an_average_is_that_of_the_three_predictions():
    samples, y = made(15)
    models = []
    for means in ("plain", "filtered", "joint"):
        models.append(GroupRegressor(means=means).fit(samples, y))
    average = GroupRegressor(means="average").fit(samples, y)
    for found in ("left_out_predictions_", "predict"):
        expected = []
        for model in models:
            value = getattr(model, found)
            expected.append(value(samples[:4]) if callable(value) else value)
        value = getattr(average, found)
        value = value(samples[:4]) if callable(value) else value
        np.testing.assert_allclose(value, np.mean(expected, axis=0), atol=1e-12)


def test_transductive_predictions_are_those_of_means_estimated_with_the_new_groups():
    samples, y = made(16)
    new, _ = made(3, seed=9)
    model = GroupRegressor(means="joint", transductive=True).fit(samples, y)
    means = KernelMeans().fit([*samples, *new])
    vectors = fitted_vectors(means, ["joint"])
    fit = GroupRegressions.fit({"joint": vectors["joint"][:16]}, y[:, None], "tikhonov")
    expected = fit.predict({"joint": vectors["joint"][16:]})[:, 0]
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-10)
    alone = np.array([model.predict([each])[0] for each in new])
    assert np.abs(alone - model.predict(new)).max() > 0  # it depends on the other new groups
    usual = GroupRegressor(means="joint").fit(samples, y)
    each = np.array([usual.predict([one])[0] for one in new])
    np.testing.assert_allclose(usual.predict(new), each, atol=1e-12)


@pytest.mark.parametrize(
    ("means", "method"),
    [("plain", "residuals"), ("plain", "conformal"), ("average", "conformal")],
)
def test_intervals_hold_new_groups(means, method):
    samples, y = made(30)
    new, truth = made(40, seed=8)
    model = GroupRegressor(means=means).fit(samples, y)
    low, high = model.predict_interval(new, confidence=0.8, method=method).T
    assert 0.6 <= np.mean((low <= truth) & (truth <= high)) <= 0.97
    narrow = np.diff(model.predict_interval(new, confidence=0.5, method=method))[:, 0]
    assert (narrow <= high - low).all()
    if method == "residuals":
        assert ((low <= model.predict(new)) & (model.predict(new) <= high)).all()


def test_intervals_of_one_kind_of_means_are_those_of_the_conditional_mean():
    samples, y = made(30)
    model = GroupRegressor().fit(samples, y)
    fit = model._fit.single
    rows = fit.rows(new_vectors(model.group_means_, samples[:5], ["plain"])["plain"])
    for method in ("residuals", "jackknife+"):
        expected = fit.intercept + fit.unit * fit.model.predict_interval(rows, 0.8, method)[:, 0]
        found = model.predict_interval(samples[:5], confidence=0.8, method=method)
        np.testing.assert_allclose(found, expected)


def test_conformal_intervals_are_calibrated_on_groups_that_the_model_has_not_seen():
    samples, y = made(30)
    model = GroupRegressor().fit(samples, y)
    calibrating, gaps = model._calibration
    assert len(gaps) == 10
    assert len(calibrating.groups_) == 20
    others = np.setdiff1d(np.arange(30), calibrating.groups_)
    refitted = GroupRegressor().fit(
        [samples[t] for t in calibrating.groups_], y[calibrating.groups_]
    )
    expected = np.abs(y[others] - refitted.predict([samples[t] for t in others]))
    np.testing.assert_allclose(gaps, expected, atol=1e-10)
    found = model.predict_interval(samples[:2], confidence=0.8, method="conformal")
    np.testing.assert_allclose(np.diff(found)[:, 0], 2 * np.sort(gaps)[8])


def test_the_nested_score_is_not_that_of_the_choice():
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(4):
        samples = [rng.normal(size=(4, 2)) for _ in range(14)]
        model = GroupRegressor().fit(samples, rng.normal(size=14))
        gaps.append(model.loo_score_ - model.nested_score_)
    assert np.mean(gaps) > 0.02  # y is noise: what was chosen looks better than it is
    assert GroupRegressor().fit(*made(5)).nested_score_ is None
    lone = np.array(["a"] * 9 + ["b"])
    assert GroupClassifier().fit(made(10)[0], lone).nested_score_ is None


def test_y_follows_its_samples_whatever_their_labels_are():
    samples, y = made(12)
    names = [f"shop {t}" for t in range(12)]  # sorted: shop 0, shop 1, shop 10, shop 11, shop 2, …
    plain = GroupRegressor().fit(samples, y)
    named = GroupRegressor().fit(samples, y, names)
    mapped = GroupRegressor().fit(dict(zip(names, samples, strict=True)), y)
    order = [names.index(label) for label in named.groups_]
    np.testing.assert_allclose(
        named.left_out_predictions_, plain.left_out_predictions_[order], atol=1e-9
    )
    np.testing.assert_allclose(
        mapped.left_out_predictions_, plain.left_out_predictions_[order], atol=1e-9
    )
    X, labels = np.concatenate(samples), np.repeat(names, 15)
    with pytest.raises(MuhatError, match="got an array, with shop 2 before shop 10; pass y as a"):
        GroupRegressor().fit(X, y, labels)
    by_label = GroupRegressor().fit(X, dict(zip(names, y, strict=True)), labels)
    np.testing.assert_allclose(by_label.left_out_predictions_, named.left_out_predictions_)


def test_scores_of_new_groups_take_what_predict_takes():
    samples, y = made(20)
    new, truth = made(8, seed=3)
    model = GroupRegressor().fit(samples, y)
    expected = r2_score(truth, model.predict(new))
    X, labels = np.concatenate(new), np.repeat(list("abcdefgh"), 15)
    by_label = pd.Series(truth, index=list("abcdefgh"))[::-1]
    assert model.score(new, truth) == pytest.approx(expected)
    assert model.score(X, by_label, labels) == pytest.approx(expected)
    assert cross_val_score(model, samples, y, cv=3).shape == (3,)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_scale_of_y_and_of_x_does_not_matter(scale):
    samples, y = made(12)
    plain = GroupRegressor().fit(samples, y)
    model = GroupRegressor().fit([scale * each for each in samples], scale * y)
    np.testing.assert_allclose(
        model.left_out_predictions_ / scale, plain.left_out_predictions_, rtol=1e-6
    )
    assert model.loo_score_ == pytest.approx(plain.loo_score_)


def test_corner_groups():
    samples, y = made(8)
    ones = [each[:1] for each in samples]
    assert np.isfinite(GroupRegressor().fit(ones, y).predict(ones)).all()
    constant = GroupRegressor().fit(samples, np.ones(8))
    assert (constant.predict(samples) == 1).all()
    assert constant.loo_score_ == 0.0
    two = GroupRegressor().fit(samples[:2], y[:2])
    np.testing.assert_allclose(two.left_out_predictions_, y[:2][::-1])
    equal = GroupRegressor().fit([samples[0]] * 8, y)
    np.testing.assert_allclose(equal.predict(samples), np.full(8, y.mean()))
    single = GroupRegressor().fit([each.astype(np.float32) for each in samples], y)
    np.testing.assert_allclose(
        single.left_out_predictions_,
        GroupRegressor().fit(samples, y).left_out_predictions_,
        rtol=1e-3,
    )


def test_a_fitted_model_is_saved_with_its_intervals(tmp_path):
    samples, y = made(30)
    model = GroupRegressor().fit(samples, y)
    conformal = model.predict_interval(samples[:3], confidence=0.8, method="conformal")
    save(model, tmp_path / "model.muhat")
    again = load(tmp_path / "model.muhat")
    np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
    found = again.predict_interval(samples[:3], confidence=0.8, method="conformal")
    np.testing.assert_array_equal(found, conformal)


def test_rows_with_labels_and_lists_give_the_same():
    samples, y = made()
    X, codes = np.concatenate(samples), np.repeat(np.arange(30), 15)
    first = GroupRegressor().fit(samples, y)
    second = GroupRegressor().fit(X, y, codes)
    third = GroupRegressor().fit(X, dict(enumerate(y)), codes)
    np.testing.assert_array_equal(first.left_out_predictions_, second.left_out_predictions_)
    np.testing.assert_array_equal(first.left_out_predictions_, third.left_out_predictions_)
    np.testing.assert_allclose(first.predict(samples), second.predict(X, codes), atol=1e-12)


def test_classes_of_groups_are_learnt():
    random = np.random.default_rng(0)
    y = np.array(["a", "b", "c"] * 8)
    scale = {"a": 1.0, "b": 2.0, "c": 4.0}
    samples = [scale[kind] * random.normal(size=(20, 2)) for kind in y]
    model = GroupClassifier().fit(samples, y)
    assert model.loo_score_ > 0.8
    assert (model.predict(samples) == y).mean() > 0.8
    assert model.decision_function(samples[:4]).shape == (4, 3)
    assert model.nested_score_ > 0.6
    two = GroupClassifier().fit(samples[:2] * 5, y[:2].tolist() * 5)
    decision = two.decision_function(samples)
    assert (two.predict(samples) == np.where(decision > 0, "b", "a")).all()
    assert list(model.classes_) == ["a", "b", "c"]


def test_parameters_are_kept_and_cloned():
    model = clone(GroupRegressor(kernel=Gaussian(2.0), means="plain"))
    assert model.get_params()["kernel__bandwidth"] == 2.0


SAMPLES, Y = made(6)
BAD = {
    "y per row": (
        lambda: GroupRegressor().fit(SAMPLES, np.zeros(90)),
        "90 values, one for each row",
    ),
    "too few": (lambda: GroupRegressor().fit(SAMPLES, Y[:4]), "each of 6 groups"),
    "a label missing": (lambda: GroupRegressor().fit(SAMPLES, {0: 1.0}), "none for 1"),
    "two columns": (lambda: GroupRegressor().fit(SAMPLES, np.ones((6, 2))), "one number"),
    "no y": (lambda: GroupRegressor().fit(SAMPLES, None), "y must be given"),
    "means": (lambda: GroupRegressor(means="jont").fit(SAMPLES, Y), "did you mean 'joint'"),
    "few for intervals": (
        lambda: GroupRegressor().fit(SAMPLES, Y).predict_interval(SAMPLES),
        "confidence 0.9 needs at least 19 groups, got 6; use a confidence of 0.71 or less",
    ),
    "few to calibrate": (
        lambda: GroupRegressor().fit(SAMPLES, Y).predict_interval(SAMPLES, method="conformal"),
        "at least 9 groups for calibration, got 6 groups, 2 of them",
    ),
    "method": (
        lambda: GroupRegressor().fit(SAMPLES, Y).predict_interval(SAMPLES, method="conform"),
        "did you mean 'conformal'",
    ),
    "jackknife+ of an average": (
        lambda: (
            GroupRegressor(means="average")
            .fit(SAMPLES, Y)
            .predict_interval(SAMPLES, confidence=0.5, method="jackknife+")
        ),
        "jackknife. needs means of a single kind",
    ),
    "conformal and transductive": (
        lambda: (
            GroupRegressor(transductive=True)
            .fit(SAMPLES, Y)
            .predict_interval(SAMPLES, confidence=0.5, method="conformal")
        ),
        "transductive=False",
    ),
    "not fitted": (lambda: GroupRegressor().predict(SAMPLES), "not fitted"),
    "transductive": (lambda: GroupRegressor(transductive=1).fit(SAMPLES, Y), "True or False"),
    "fractions as classes": (lambda: GroupClassifier().fit(SAMPLES, Y), "use GroupRegressor"),
    "missing class": (
        lambda: GroupClassifier().fit(SAMPLES, np.array(["a", None] * 3, dtype=object)),
        "missing ones",
    ),
    "y per row by label": (
        lambda: GroupRegressor().fit(
            np.concatenate(SAMPLES),
            pd.Series(np.zeros(90), index=np.repeat(np.arange(6), 15)),
            np.repeat(np.arange(6), 15),
        ),
        "90 values, one for each row",
    ),
    "one class": (lambda: GroupClassifier().fit(SAMPLES, np.zeros(6)), "two classes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_in_one_sentence(name):
    call, words = BAD[name]
    with pytest.raises((MuhatError, NotFittedError), match=words):
        call()


def test_groups_that_do_not_differ_do_not_make_predictions_explode():
    rng = np.random.default_rng(3)
    samples = [rng.normal(size=(10, 2)) for _ in range(25)]
    y = rng.normal(size=25)
    new = [rng.normal(size=(10, 2)) for _ in range(20)]
    for means in ("plain", "filtered", "joint", "average", "auto"):
        predicted = GroupRegressor(means=means).fit(samples, y).predict(new)
        assert np.abs(predicted).max() < 10 * np.abs(y).max(), means


def test_a_series_indexed_by_the_labels_is_taken_by_label():
    rng = np.random.default_rng(4)
    labels = np.repeat(list("abcdefgh"), 10)
    level = {label: float(place) for place, label in enumerate("abcdefgh")}
    X = rng.normal(size=(80, 2)) + np.array([level[label] for label in labels])[:, None]
    shuffled = pd.Series(level).sort_values(ascending=False)
    by_series = GroupRegressor().fit(X, shuffled, labels)
    by_mapping = GroupRegressor().fit(X, level, labels)
    np.testing.assert_array_equal(by_series.left_out_predictions_, by_mapping.left_out_predictions_)
