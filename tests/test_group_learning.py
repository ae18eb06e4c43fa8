"""Learning from groups: exact leave-one-out, choices by the error of y, and bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from muhat import Gaussian, GroupClassifier, GroupRegressor, Nystrom
from muhat.errors import MuhatError
from muhat.groups._ridge import GroupKernel, ridge_path

REFITTED = 1e-8
"""Relative: left-out predictions against refitting."""


def made(T=30, n=15, seed=0):
    """Groups on a line and the place of each."""
    random = np.random.default_rng(seed)
    y = random.uniform(-1, 1, T)
    return [place + random.normal(size=(n, 2)) for place in y], y


@pytest.mark.parametrize("bandwidth", [None, 0.7])
def test_left_out_predictions_equal_those_of_refitting(bandwidth):
    random = np.random.default_rng(1)
    means, y = random.normal(size=(14, 3)), random.normal(size=(14, 2))
    kernel = GroupKernel(means, bandwidth)
    K = kernel(means)
    for fit in ridge_path(kernel, y)[4::6]:
        for t in range(14):
            others = np.arange(14) != t
            system = np.zeros((14, 14))  # [[K + λ, 1], [1ᵀ, 0]] [α, b] = [y, 0]
            system[:13, :13] = K[np.ix_(others, others)] + fit.ridge * np.eye(13)
            system[:13, 13] = system[13, :13] = 1
            solved = np.linalg.solve(system, np.vstack([y[others], np.zeros((1, 2))]))
            expected = solved[13] + K[t, others] @ solved[:13]
            np.testing.assert_allclose(fit.left_out[t], expected, rtol=REFITTED, atol=1e-8)


def test_the_fit_predicts_what_ridge_regression_does():
    random = np.random.default_rng(2)
    means, y = random.normal(size=(12, 3)), random.normal(size=(12, 1))
    fit = ridge_path(GroupKernel(means, 1.0), y)[10]
    K = GroupKernel(means, 1.0)(means)
    residuals = y - fit.predict(means)
    np.testing.assert_allclose(residuals, fit.ridge * fit.dual, atol=1e-9)
    assert abs(fit.dual.sum()) < 1e-9
    np.testing.assert_allclose(fit.predict(means), fit.intercept + K @ fit.dual)


@pytest.mark.parametrize("gram", ["dense", Nystrom(60)], ids=["dense", "landmarks"])
@pytest.mark.parametrize("means", ["auto", "plain", "filtered", "joint"])
def test_the_place_of_a_group_is_learnt(gram, means):
    samples, y = made()
    new, truth = made(seed=5)
    model = GroupRegressor(gram=gram, means=means).fit(samples, y)
    assert model.loo_score_ > 0.7
    assert np.corrcoef(model.predict(new), truth)[0, 1] > 0.8
    assert means in ("auto", model.means_)


def test_the_left_out_error_of_y_chooses_the_means():
    samples, y = made()
    model = GroupRegressor(means="auto").fit(samples, y)
    assert set(model.left_out_errors_) == {"plain", "filtered"}
    assert model.left_out_errors_[model.means_] == min(model.left_out_errors_.values())
    errors = (model.left_out_predictions_ - y) ** 2
    np.testing.assert_allclose(errors.mean(), model.left_out_errors_[model.means_])


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
    assert list(model.classes_) == ["a", "b", "c"]


def test_parameters_are_kept_and_cloned():
    model = clone(GroupRegressor(kernel=Gaussian(2.0), means="plain"))
    assert model.get_params()["kernel__bandwidth"] == 2.0


SAMPLES, Y = made(6)
BAD = {
    "y per row": (lambda: GroupRegressor().fit(SAMPLES, np.zeros(90)), "90, one for each row"),
    "too few": (lambda: GroupRegressor().fit(SAMPLES, Y[:4]), "each of 6 groups"),
    "a label missing": (lambda: GroupRegressor().fit(SAMPLES, {0: 1.0}), "none for 1"),
    "two columns": (lambda: GroupRegressor().fit(SAMPLES, np.ones((6, 2))), "one number"),
    "no y": (lambda: GroupRegressor().fit(SAMPLES, None), "y must be given"),
    "means": (lambda: GroupRegressor(means="best").fit(SAMPLES, Y), "means must be"),
    "one class": (lambda: GroupClassifier().fit(SAMPLES, np.zeros(6)), "two classes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_in_one_sentence(name):
    call, words = BAD[name]
    with pytest.raises(MuhatError, match=words):
        call()


def test_groups_that_do_not_differ_do_not_make_predictions_explode():
    rng = np.random.default_rng(3)
    samples = [rng.normal(size=(10, 2)) for _ in range(25)]
    y = rng.normal(size=25)
    new = [rng.normal(size=(10, 2)) for _ in range(50)]
    for means in ("plain", "filtered", "joint", "auto"):
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
    np.testing.assert_array_equal(by_series.fit_.dual, by_mapping.fit_.dual)
