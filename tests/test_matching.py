"""Kernel mean matching: against a reference solver, by products alone, with a proven gap."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from muhat import Gaussian, KernelMean, KernelMeanMatching, Nystrom
from muhat.conditional import _matching

RNG = np.random.default_rng(20141208)
SOURCE, TARGET = RNG.normal(size=(40, 2)), RNG.normal(0.7, size=(50, 2))


def objective(kernel, X, mu):
    K, b = kernel(X), mu(X)
    return lambda v: v @ K @ v - 2 * b @ v, lambda v: 2 * (K @ v - b)


@pytest.mark.parametrize("bound", [1.5, 3.0, 10.0, None])
@pytest.mark.parametrize("rows", [2, 40])
def test_the_objective_is_that_of_a_reference_solver_to_a_millionth(bound, rows):
    X = SOURCE[:rows]
    model = KernelMeanMatching(bound=bound).fit(X, TARGET)
    mean = KernelMean(kernel=model.kernel_, filter="kme").fit(TARGET).embedding_
    value, gradient = objective(model.kernel_, X, mean)
    reference = minimize(
        value,
        np.full(rows, 1 / rows),
        jac=gradient,
        bounds=[(0, min((bound or np.inf) / rows, 1))] * rows,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    excess = value(model.weights_ / rows) - reference.fun
    assert -1e-9 < excess < 1e-6
    assert excess <= model.gap_ + 1e-12
    assert model.converged_
    assert model.weights_.min() >= 0
    assert model.weights_.max() <= (bound or np.inf) * (1 + 1e-12)
    assert model.weights_.mean() == pytest.approx(1, abs=1e-12)
    assert model.effective_size_ == pytest.approx(rows**2 / (model.weights_**2).sum())
    squared = value(model.weights_ / rows) + mean.squared_norm()
    assert model.distance_ == pytest.approx(np.sqrt(squared), abs=1e-7)


def test_products_alone_and_all_landmarks_give_the_same(monkeypatch):
    dense = KernelMeanMatching().fit(SOURCE, TARGET)
    by_products = KernelMeanMatching(gram="blocks").fit(SOURCE, TARGET)
    np.testing.assert_allclose(by_products.weights_, dense.weights_, atol=1e-8)
    monkeypatch.setattr(_matching, "MAX_ROWS_DENSE", 10)
    on_landmarks = KernelMeanMatching().fit(SOURCE, TARGET)
    assert on_landmarks.gram_ == Nystrom(90)
    np.testing.assert_allclose(on_landmarks.weights_, dense.weights_, atol=1e-3)
    assert on_landmarks.distance_ == pytest.approx(dense.distance_, rel=1e-3)


def test_few_landmarks_are_enough_for_many_rows():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(600, 1)), rng.normal(0.5, size=(500, 1))
    weights = [
        KernelMeanMatching(gram=gram, tol=1e-4).fit(X, target).weights_
        for gram in (Nystrom(40), "dense")
    ]
    mean = [
        KernelMean(kernel=Gaussian(1.0), filter="kme").fit(X, sample_weight=each).embedding_
        for each in weights
    ]
    assert mean[0].distance(mean[1]) < 0.01


def test_the_target_may_be_a_shrunk_mean():
    mean = KernelMean(kernel=Gaussian(1.0)).fit(TARGET).embedding_
    model = KernelMeanMatching().fit(SOURCE, mean)
    assert model.kernel_ == Gaussian(1.0)
    assert model.distance_ < KernelMean(kernel=Gaussian(1.0), filter="kme").fit(
        SOURCE
    ).embedding_.distance(mean)


def test_a_regression_with_the_weights_is_the_targets():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 1)), rng.normal(1.0, 0.5, size=(300, 1))
    weights = KernelMeanMatching().fit(X, new).weights_
    plain, weighted = (LinearRegression().fit(X, X[:, 0] ** 2, each) for each in (None, weights))
    errors = [np.mean((model.predict(new) - new[:, 0] ** 2) ** 2) for model in (plain, weighted)]
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("X", [SOURCE[:1], np.repeat(SOURCE[:1], 5, axis=0)])
def test_rows_that_are_all_the_same_weigh_the_same(X):
    np.testing.assert_allclose(KernelMeanMatching().fit(X, TARGET).weights_, 1, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "columns"), [("gaussian", 2), ("gaussian", 10), ("laplacian", 3)]
)
def test_few_products_are_enough_whatever_the_eigenvalues(kernel, columns):
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(500, columns)), rng.normal(0.5, size=(300, columns))
    model = KernelMeanMatching(kernel=kernel).fit(X, target)
    assert model.converged_
    assert model.n_iter_ < 300


def test_what_rounding_keeps_from_the_minimum_is_as_near_as_it_gets():
    with pytest.warns(ConvergenceWarning):
        model = KernelMeanMatching(tol=1e-18).fit(SOURCE, TARGET)
    assert 0 < model.gap_ < 1e-9
    assert model.n_iter_ < 1000


def test_too_few_products_are_warned_about():
    with pytest.warns(
        ConvergenceWarning, match="not converged after 3 products; raise max_iter or tol"
    ):
        assert not KernelMeanMatching(max_iter=3).fit(SOURCE, TARGET).converged_


@pytest.mark.parametrize(
    ("settings", "target", "message"),
    [
        ({"bound": 1.0}, TARGET, "bound must be above 1 and finite, or None, got 1.0"),
        ({"tol": 0.0}, TARGET, "tol must be positive"),
        ({"max_iter": 0}, TARGET, "max_iter must be a whole number of at least 1"),
        ({"kernel": "precomputed"}, TARGET, "computed from rows is needed, got a precomputed one"),
        ({}, TARGET[:, :1], "target must have the 2 columns of X, got 1"),
        ({}, np.full((3, 2), np.nan), "target must be finite, got 3 rows with NaN"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(settings, target, message):
    with pytest.raises(ValueError, match=message):
        KernelMeanMatching(**settings).fit(SOURCE, target)


def test_a_target_of_other_columns_is_refused():
    X = pd.DataFrame(SOURCE, columns=["a", "b"])
    with pytest.raises(
        ValueError, match="target must have the columns of X in the same order, got another order"
    ):
        KernelMeanMatching().fit(X, pd.DataFrame(TARGET, columns=["b", "a"]))
    with pytest.raises(
        ValueError, match="target must have the columns of X, got 'c', which X does not have"
    ):
        KernelMeanMatching().fit(X, pd.DataFrame(TARGET, columns=["a", "c"]))
