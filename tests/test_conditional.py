"""Conditional means: left-out rows, kernel ridge, coverage, distributions, estimator checks."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import reference
from catalogue import KERNELS, SAMPLES, SEED
from muhat import ConditionalMean, Fixed, Gaussian, LeaveOneOut, Nystrom, RandomFeatures, load, save
from muhat.conditional import ConditionalDistribution, ExtrapolationWarning, LeftOutFit
from muhat.conditional._distribution import nearest_probabilities
from muhat.filters import (
    FILTERS,
    Filter,
    IteratedTikhonov,
    Iteration,
    Landweber,
    NuMethod,
    Tikhonov,
)

SOME_ARE_FAR = pytest.mark.filterwarnings("ignore::muhat.conditional.ExtrapolationWarning")
"""For tests that draw so many new rows that some lie far from few training rows."""

EXACT = 1e-9
"""Relative to the size of y: left-out predictions against rows really left out."""

PARAMETERS = {
    "tikhonov": [3e-5, 0.02, 5.0],
    "iterated-tikhonov": [3e-5, 0.02, 5.0],
    "landweber": [1, 30, 300],
    "nu-method": [1, 7, 60],
    "showalter": [3e-3, 0.02, 5.0],
    "tsvd": [0.003, 0.05, 0.3],
}
"""Parameters of every filter that a regression can have; other filters are added below."""
for _name, _kind in FILTERS.items():
    if issubclass(_kind, Iteration):
        PARAMETERS.setdefault(_name, [1, 7, 60])
    elif issubclass(_kind, Filter) and not _kind.constant and _kind is not Tikhonov:
        PARAMETERS.setdefault(_name, [3e-3, 0.02, 5.0])

LEAST_EIGENVALUE = 1e-10
"""For smaller γ, s(γ)/γ is taken here: the difference 1 − r(γ) has lost the digits of s."""


def smoother(name, parameter, K, k, z, p, kappa2, has_intercept=True):
    """What a filter predicts at the columns of k, by its definition, from the Gram matrix K."""
    p = p / p.sum()
    mean = p @ z if has_intercept else np.zeros(z.shape[1])
    z = z - mean
    if name in ("tikhonov", "iterated-tikhonov"):  # (K + λ/p) β_j = z + (λ/p) β_(j−1)
        beta = np.zeros_like(z)
        ridge = parameter / p
        for _ in range(1 if name == "tikhonov" else 3):
            beta = np.linalg.solve(K + np.diag(ridge), z + ridge[:, None] * beta)
    elif name == "landweber":
        beta = np.zeros_like(z)
        for _ in range(parameter):
            beta = beta + p[:, None] * (z - K @ beta) / kappa2
    elif name == "nu-method":
        before = beta = np.zeros_like(z)
        for t in range(1, parameter + 1):
            momentum = (t - 1) * (2 * t - 3) * (2 * t + 1) / ((t + 1) * (2 * t + 3) * (2 * t - 1))
            step = 4 * (2 * t + 1) * t / ((t + 1) * (2 * t + 3)) if t > 1 else 6 / 5
            before, beta = (
                beta,
                beta + momentum * (beta - before) + step * p[:, None] * (z - K @ beta) / kappa2,
            )
    else:
        root = np.sqrt(p)[:, None]
        gamma, U = np.linalg.eigh(root * K * root.T)
        if name == "showalter":
            gamma = np.maximum(gamma, 1e-30)
            g = -np.expm1(-gamma / parameter) / gamma
        else:
            gamma = np.maximum(gamma, LEAST_EIGENVALUE)
            ones, zeros = np.ones_like(gamma), np.zeros_like(gamma)
            g = reference.shrunk(name, parameter, np.diag(gamma), ones, zeros, kappa2) / gamma
        beta = root * (U @ (g[:, None] * (U.T @ (root * z))))
    return k.T @ beta + mean


def left_out(name, parameter, K, z, p, kappa2, has_intercept=True):
    """The prediction of each row from all others."""
    rows = np.arange(len(K))
    found = [
        smoother(
            name, parameter, K[np.ix_(o, o)], K[np.ix_(o, ~o)], z[o], p[o], kappa2, has_intercept
        )[0]
        for o in (rows != i for i in rows)
    ]
    return np.array(found)


def fitted(name, parameter, kernel, X, y, weights=None, **settings):
    """A filter with its parameter given, on X as it is: references have no scaling."""
    settings = {
        "kernel": kernel,
        "filter": name,
        "selection": Fixed(parameter),
        "standardize": False,
        **settings,
    }
    return ConditionalMean(**settings).fit(X, y, sample_weight=weights)


def assert_close(found, true, tolerance=EXACT, size=None):
    assert np.abs(found - true).max() <= tolerance * (np.abs(true).max() if size is None else size)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(
    "sample", ["random", "clustered", "duplicated", "more features than rows", "two points"]
)
@pytest.mark.parametrize("has_intercept", [True, False])
def test_left_out_predictions_are_those_without_the_row(name, sample, has_intercept):
    X = SAMPLES[sample]
    y = np.random.default_rng(SEED).normal([3.0, -1.0], size=(len(X), 2))
    kernel = Gaussian(3.0 if sample != "more features than rows" else 8.0)
    for parameter in PARAMETERS[name]:
        model = fitted(name, parameter, kernel, X, y, fit_intercept=has_intercept)
        true = left_out(name, parameter, kernel(X), y, np.ones(len(X)), 1.0, has_intercept)
        assert_close(model.loo_predictions_, true, size=np.abs(y).max())
        np.testing.assert_allclose(
            model.loo_residuals_, y - model.loo_predictions_, rtol=0, atol=1e-14
        )


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("n", [12, 60])
def test_left_out_predictions_of_weighted_rows_are_those_without_the_row(name, n):
    """Few rows are all heavy, and left out by refits; many are interpolated between."""
    rng = np.random.default_rng(SEED)
    X, y, weights = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.uniform(0.5, 1.5, size=n)
    weights[3] = n / 5
    for parameter in PARAMETERS[name]:
        model = fitted(name, parameter, Gaussian(1.0), X, y, weights)
        true = left_out(name, parameter, Gaussian(1.0)(X), y, weights, 1.0)
        assert_close(model.loo_predictions_, true, size=np.abs(y).max())


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "laplacian", "sum"])
def test_left_out_predictions_hold_for_kernels_without_a_bound(kernel):
    X = SAMPLES["random"]
    y, K = X[:, :1] ** 2 + X[:, 1:2], KERNELS[kernel](X)
    for name in ("tikhonov", "landweber", "nu-method"):
        model = fitted(name, PARAMETERS[name][1], KERNELS[kernel], X, y[:, 0])
        kappa2 = KERNELS[kernel].bound if np.isfinite(KERNELS[kernel].bound) else K.diagonal().max()
        true = left_out(name, PARAMETERS[name][1], K, y, np.ones(len(X)), kappa2)
        assert_close(model.loo_predictions_, true[:, 0])


@pytest.mark.parametrize("gram", [Nystrom(20), RandomFeatures(30)])
@pytest.mark.parametrize("name", PARAMETERS)
def test_left_out_predictions_hold_for_the_approximated_kernel(gram, name):
    rng = np.random.default_rng(SEED)
    X, weights = rng.normal(size=(60, 2)), rng.uniform(0.5, 1.5, size=60)
    y = np.sin(X[:, :1]) + rng.normal(size=(60, 2))
    F = gram.resolve(Gaussian(1.0), X)(X)
    parameter = PARAMETERS[name][1]
    model = fitted(name, parameter, Gaussian(1.0), X, y, weights, gram=gram)
    assert_close(model.loo_predictions_, left_out(name, parameter, F @ F.T, y, weights, 1.0))
    assert_close(model.predict(X), smoother(name, parameter, F @ F.T, F @ F.T, y, weights, 1.0))


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_left_out_smoother_predicts_anywhere_as_a_refit(name):
    rng = np.random.default_rng(SEED)
    X, y, new, weights = (
        rng.normal(size=(40, 2)),
        rng.normal(size=(40, 2)),
        rng.normal(size=(5, 2)),
        np.ones(40),
    )
    weights[7] = 6.0
    kernel, parameter = Gaussian(1.0), PARAMETERS[name][1]
    model = fitted(name, parameter, kernel, X, y, weights)
    values = model._fit.left_out_values(new)
    for i in range(40):
        o = np.arange(40) != i
        true = smoother(name, parameter, kernel(X[o]), kernel(X[o], new), y[o], weights[o], 1.0)
        assert_close(values[..., i].T, true)


@pytest.mark.parametrize("name", PARAMETERS)
def test_scores_are_those_of_left_out_predictions_and_the_least_is_taken(name):
    rng = np.random.default_rng(SEED)
    X, weights = rng.normal(size=(50, 2)), rng.uniform(0.5, 1.5, size=50)
    y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.2 * rng.normal(size=(50, 2))
    rule = LeaveOneOut(grid=PARAMETERS[name])
    model = ConditionalMean(
        kernel=Gaussian(1.0), filter=name, selection=rule, standardize=False
    ).fit(X, y, weights)
    true = [
        left_out(name, parameter, Gaussian(1.0)(X), y, weights, 1.0)
        for parameter in PARAMETERS[name]
    ]
    scores = [weights / weights.sum() @ ((y - each) ** 2).sum(axis=1) for each in true]
    np.testing.assert_allclose(model.choice_.scores, scores, rtol=EXACT)
    assert model.choice_.parameter == PARAMETERS[name][int(np.argmin(scores))]
    spread = y - np.average(y, axis=0, weights=weights)
    share = 1 - min(scores) / (weights / weights.sum() @ (spread**2).sum(axis=1))
    assert model.loo_score_ == pytest.approx(share, rel=EXACT)


def test_auto_takes_the_filter_and_parameter_with_the_least_score():
    X, y = wave(80)
    model = ConditionalMean().fit(X, y)
    assert [type(choice.filter) for choice in model.choices_] == [
        Tikhonov,
        IteratedTikhonov,
        Landweber,
        NuMethod,
    ]
    assert model.choice_.score == min(choice.scores.min() for choice in model.choices_)
    assert model.choice_.score == pytest.approx(np.mean(model.loo_residuals_**2), rel=EXACT)
    for choice in model.choices_:
        one = ConditionalMean(
            kernel=model.kernel_, filter=choice.filter, selection=Fixed(choice.parameter)
        ).fit(X, y)
        assert np.mean(one.loo_residuals_**2) == pytest.approx(choice.score, rel=EXACT)
        assert not choice.at_edge


@pytest.mark.parametrize("has_intercept", [True, False])
def test_tikhonov_is_kernel_ridge_regression_with_the_ridge_n_lambda(has_intercept):
    rng = np.random.default_rng(SEED)
    X, y, new = rng.normal(size=(70, 3)), 5 + rng.normal(size=(70, 2)), rng.normal(size=(20, 3))
    for weights in (None, rng.uniform(0.5, 2.0, size=70)):
        total = 70 if weights is None else weights.sum()
        mean = np.average(y, axis=0, weights=weights) if has_intercept else 0.0
        for lam in (1e-5, 1e-3, 1.0):
            ridge = KernelRidge(alpha=total * lam, kernel="rbf", gamma=1 / (2 * 1.5**2))
            true = ridge.fit(X, y - mean, sample_weight=weights).predict(new) + mean
            model = fitted(
                "tikhonov", lam, Gaussian(1.5), X, y, weights, fit_intercept=has_intercept
            )
            assert_close(model.predict(new), true, 1e-10)


@pytest.mark.parametrize("name", PARAMETERS)
def test_predictions_are_the_filters_own(name):
    rng = np.random.default_rng(SEED)
    X, y, new = rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), rng.normal(size=(8, 2))
    for parameter in PARAMETERS[name]:
        model = fitted(name, parameter, Gaussian(1.0), X, y)
        true = smoother(
            name, parameter, Gaussian(1.0)(X), Gaussian(1.0)(X, new), y, np.ones(40), 1.0
        )
        assert_close(model.predict(new), true)
        assert_close(model.weights_at(new) @ y, true)
        assert_close(model.expect(lambda outputs: outputs, new), true)
        np.testing.assert_allclose(model.weights_at(new).sum(axis=1), 1, atol=1e-12)


def wave(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0, 3.0])
def test_the_standard_error_of_r2_is_that_of_a_bootstrap_of_rows(noise):
    rng = np.random.default_rng(SEED)
    predicted = rng.normal(size=400)
    truth = predicted + noise * rng.normal(size=400)

    def r2_of(rows):
        y, errors = truth[rows], truth[rows] - predicted[rows]
        return 1 - (errors**2).sum() / ((y - y.mean()) ** 2).sum()

    draws = [r2_of(rng.integers(400, size=400)) for _ in range(2000)]
    fit = LeftOutFit.from_predictions(truth, predicted, r2_of(np.arange(400)))
    assert fit.standard_error == pytest.approx(np.std(draws), rel=0.15)


def test_intervals_are_those_of_the_jackknife_plus():
    X, y = wave(60)
    new, _ = wave(50, seed=1)
    model = fitted("landweber", 200, Gaussian(0.5), X, y)
    refits = [clone(model).fit(X[rest], y[rest]) for rest in ~np.eye(60, dtype=bool)]
    values = np.array([each.predict(new) for each in refits])
    gaps = np.abs([y[i] - each.predict(X[[i]])[0] for i, each in enumerate(refits)])[:, None]
    low, high = (
        np.sort(values - gaps, axis=0)[6 - 1],
        np.sort(values + gaps, axis=0)[55 - 1],
    )  # ⌊.1·61⌋, ⌈.9·61⌉
    found = model.predict_interval(new, confidence=0.9, method="jackknife+")
    np.testing.assert_allclose(found, np.column_stack([low, high]), rtol=0, atol=1e-9)


def coverage(model, draws=20, method="jackknife+"):
    """The share of new y in 90 % intervals, for several samples."""
    covered = []
    for seed in range(draws):
        new, true = wave(500, seed + 100)
        low, high = clone(model).fit(*wave(60, seed)).predict_interval(new, method=method).T
        covered.append(np.mean((low <= true) & (true <= high)))
    return np.array(covered)


@SOME_ARE_FAR
def test_intervals_hold_what_they_promise():
    given = coverage(
        ConditionalMean(kernel=Gaussian(1.0), filter="tikhonov", selection=Fixed(1e-3))
    )
    assert 0.9 - 2 * given.std() / np.sqrt(len(given)) < given.mean() < 0.95
    chosen = coverage(ConditionalMean(filter="tikhonov"))
    assert (
        chosen.mean() > 2 * 0.9 - 1
    )  # what the theorem promises, though it does not speak of a chosen parameter


def test_rare_values_of_y_and_whole_numbers_too_large_for_floats_are_named():
    X, y = np.random.default_rng(SEED).normal(size=(40, 1)), np.zeros(40)
    held_out = np.random.default_rng(0).permutation(40)[:13]
    y[held_out[0]] = 1
    model = ConditionalMean().fit(X, y)
    with pytest.raises(ValueError, match=r"y must vary in the two thirds of the rows .*jackknife"):
        model.predict_interval(X, method="conformal")
    assert np.isfinite(model.predict_interval(X, method="jackknife+")).all()
    with pytest.raises(ValueError, match=r"above 2\*\*53 are rounded to floats: subtract"):
        ConditionalMean().fit(X, 2**60 + np.arange(40))


@SOME_ARE_FAR
def test_conformal_intervals_hold_what_they_promise_though_everything_was_chosen():
    covered = coverage(ConditionalMean(filter="tikhonov"), method="conformal")
    assert covered.mean() > 0.9 - 2 * covered.std() / np.sqrt(len(covered))


@pytest.mark.parametrize("kernel", ["gaussian", "precomputed"])
def test_conformal_intervals_are_those_of_a_model_of_two_thirds_of_the_rows(kernel):
    X, y = wave(60)
    new, _ = wave(10, seed=1)
    order = np.random.default_rng(0).permutation(60)
    some, rest = np.sort(order[:20]), np.sort(order[20:])
    part = ConditionalMean(kernel=Gaussian(1.0), standardize=False).fit(X[rest], y[rest])
    reach = np.sort(np.abs(y[some] - part.predict(X[some])))[19 - 1]  # ⌈.9·21⌉
    expected = part.predict(new)[:, None] + [-reach, reach]
    if kernel == "precomputed":
        model = ConditionalMean(kernel=kernel).fit(Gaussian(1.0)(X), y)
        found = model.predict_interval(Gaussian(1.0)(new, X), method="conformal")
    else:
        model = ConditionalMean(kernel=Gaussian(1.0), standardize=False).fit(X, y)
        found = model.predict_interval(new, method="conformal")
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_intervals_of_several_outputs_are_those_of_each():
    X, y = wave(40)
    both = fitted(
        "tikhonov", 0.01, Gaussian(1.0), X, np.column_stack([y, -2 * y])
    ).predict_interval(X[:4], 0.8)
    one = fitted("tikhonov", 0.01, Gaussian(1.0), X, y).predict_interval(X[:4], 0.8)
    np.testing.assert_allclose(both[:, 0], one, atol=1e-12)
    np.testing.assert_allclose(both[:, 1], -2 * one[:, ::-1], atol=1e-11)


def test_a_gaussian_kernel_on_y_is_scored_in_its_rkhs():
    X, y = wave(40)
    K, L = Gaussian(0.7)(X), Gaussian(0.5)(y[:, None])
    factor = np.linalg.cholesky(L + 1e-15 * np.eye(40))
    rule = LeaveOneOut(grid=[1e-3, 0.1])
    settings = {
        "kernel": Gaussian(0.7),
        "kernel_y": Gaussian(0.5),
        "filter": "tikhonov",
        "selection": rule,
    }
    model = ConditionalMean(**settings, standardize=False).fit(X, y)
    for lam, score in zip([1e-3, 0.1], model.choice_.scores, strict=True):
        true = (
            ((factor - left_out("tikhonov", lam, K, factor, np.ones(40), 1.0)) ** 2)
            .sum(axis=1)
            .mean()
        )
        assert score == pytest.approx(true, rel=1e-9)
    embedding = model.embedding_at(X[0])
    np.testing.assert_allclose(
        embedding(y[:3, None]), model.weights_at(X[:1])[0] @ L[:, :3], atol=1e-12
    )
    with pytest.raises(
        ValueError, match=r"ConditionalMean\.predict: kernel_y must be 'linear' for the mean of y"
    ):
        model.predict(X)


def test_probabilities_are_the_nearest_to_the_weights():
    rng = np.random.default_rng(SEED)
    weights = rng.normal(size=(50, 8))
    found = nearest_probabilities(weights)
    assert found.min() == 0
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-14)
    others = rng.dirichlet(np.ones(8), size=(50, 200))
    towards = ((weights - found)[:, None] * (others - found[:, None])).sum(axis=-1)
    assert (
        towards.max() < 1e-12
    )  # the gap to the nearest point of a convex set points away from all of it
    inside = rng.dirichlet(np.ones(8), size=3)
    np.testing.assert_allclose(nearest_probabilities(inside), inside, atol=1e-15)


def test_quantiles_are_calibrated_and_ordered_and_draws_follow_the_probabilities():
    X, y = wave(400)
    new, true = wave(4000, seed=1)
    model = ConditionalMean(kernel_y="gaussian").fit(X, y)
    quantiles = model.predict_quantiles(new, [0.1, 0.5, 0.9])
    assert (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose(
        (true[:, None] <= quantiles).mean(axis=0), [0.1, 0.5, 0.9], atol=0.05
    )
    at = model.distribution_at(new[:2])
    assert ((at.moved >= 0) & (at.moved < 0.5)).all()
    draws = model.sample(new[:2], 20_000, random_state=0)
    assert draws.shape == (2, 20_000)
    np.testing.assert_allclose(draws.mean(axis=1), at.mean()[:, 0], atol=0.02)
    np.testing.assert_array_equal(draws, model.sample(new[:2], 20_000, random_state=0))


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("gram", ["dense", Nystrom(20)])
@pytest.mark.parametrize("has_intercept", [True, False])
def test_left_out_weights_are_those_of_left_out_predictions(name, gram, has_intercept):
    rng = np.random.default_rng(SEED)
    X, y, weights = (
        rng.normal(size=(60, 2)),
        rng.normal(size=(60, 2)),
        rng.uniform(0.5, 1.5, size=60),
    )
    weights[3] = 12.0
    model = fitted(
        name,
        PARAMETERS[name][1],
        Gaussian(1.0),
        X,
        y,
        weights,
        gram=gram,
        fit_intercept=has_intercept,
    )
    W = model._fit.left_out_weights()
    assert (W.diagonal() == 0).all()
    assert_close(W @ y, model.loo_predictions_)


def test_left_out_distributions_are_those_of_refits():
    X, y = wave(30)
    model = fitted("landweber", 100, Gaussian(0.7), X, y)
    levels, inside, scores = [0.05, 0.5, 0.95], [], []
    quantiles = model.loo_distribution_.quantiles(levels)[:, 0]
    for i in range(30):
        o = np.arange(30) != i
        refit = fitted("landweber", 100, Gaussian(0.7), X[o], y[o])
        np.testing.assert_allclose(
            quantiles[i], refit.predict_quantiles(X[[i]], levels, "weights")[0], atol=1e-12
        )
        inside.append(quantiles[i, 0] <= y[i] <= quantiles[i, 2])
        scores.append(refit.distribution_at(X[[i]]).crps(y[i])[0, 0])
    assert model.loo_coverage(0.9) == pytest.approx(np.mean(inside))
    assert model.loo_crps() == pytest.approx(np.mean(scores), rel=1e-9)
    both = fitted("landweber", 100, Gaussian(0.7), X, np.column_stack([y, 2 * y]))
    np.testing.assert_allclose(both.loo_crps(), [model.loo_crps(), 2 * model.loo_crps()], rtol=1e-9)


def test_the_score_of_a_distribution_is_its_definition():
    rng = np.random.default_rng(SEED)
    outputs, weights, y = (
        rng.normal(size=(6, 2)),
        rng.dirichlet(np.ones(6), size=3),
        rng.normal(size=(3, 2)),
    )
    scores = ConditionalDistribution.from_weights(outputs, weights).crps(y)
    for row, column in np.ndindex(3, 2):
        v, p = outputs[:, column], weights[row]
        true = p @ np.abs(v - y[row, column]) - p @ np.abs(v[:, None] - v) @ p / 2
        assert scores[row, column] == pytest.approx(true, rel=1e-12)


def test_two_models_are_as_far_apart_as_their_embeddings():
    X, y = wave(40)
    new = X[:5]
    for kernel_y in (Gaussian(0.5), "linear"):
        one, other = (ConditionalMean(kernel_y=kernel_y).fit(X, each) for each in (y, y + 1))
        found = one.mmd_at(new, other)
        true = [one.embedding_at(x).distance(other.embedding_at(x)) for x in new]
        np.testing.assert_allclose(found, true, atol=1e-7)
        np.testing.assert_allclose(one.mmd_at(new, one), 0, atol=1e-6)
    np.testing.assert_allclose(found, 1, atol=1e-7)  # the distance of the means
    with pytest.raises(ValueError, match="both models must have the kernel_y"):
        one.mmd_at(new, ConditionalMean(kernel_y="gaussian").fit(X, y))


def as_one(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_columns_of_x_are_standardized_unless_that_is_not_wanted():
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(60, 3)) * [1, 1e6, 0] + [0, 3e6, 7]  # the last column is constant
    y, new = np.sin(X[:, 0]) + X[:, 1] / 1e6, X[:7] + 0.1
    new[:, 2] = 7
    scaled = (new - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    by_hand = ConditionalMean(standardize=False).fit(
        np.column_stack([as_one(X[:, :2]), np.zeros(60)]), y
    )
    model = ConditionalMean().fit(X, y)
    np.testing.assert_allclose(model.predict(new), by_hand.predict(scaled), rtol=1e-8)
    np.testing.assert_allclose(
        model.predict_interval(new), by_hand.predict_interval(scaled), rtol=1e-8
    )
    np.testing.assert_allclose(model.weights_at(new), by_hand.weights_at(scaled), atol=1e-8)
    assert model.loo_score_ > 0.9 > 0.75 > ConditionalMean(standardize=False).fit(X, y).loo_score_
    moved = ConditionalMean().fit(1e150 * X, y)  # scales that no square would survive
    np.testing.assert_allclose(moved.predict(1e150 * new), model.predict(new), rtol=1e-8)
    assert (
        ConditionalMean(kernel="precomputed").fit(Gaussian(1.0)(as_one(X[:, :2])), y).scaling_
        is None
    )


def test_rows_as_far_apart_as_floats_go_are_right_once_they_are_standardized():
    X, y = wave(40)
    near = ConditionalMean(kernel=Gaussian(1.0)).fit(np.where(X > 0, 1.0, -1.0), y)
    far = ConditionalMean(kernel=Gaussian(1.0)).fit(np.where(X > 0, 1.5e308, -1.5e308), y)
    np.testing.assert_allclose(
        far.predict([[1.5e308], [-1.5e308]]), near.predict([[1.0], [-1.0]]), rtol=1e-9
    )


@pytest.mark.parametrize("standardize", [True, False])
def test_batches_are_standardized_as_rows_in_memory(standardize):
    X, y = wave(90)
    X = np.column_stack([1e3 * X[:, 0] + 5e3, np.cos(X[:, 0])])
    settings = {
        "gram": Nystrom(90),
        "kernel": Gaussian(1.0 if standardize else 1e3),
        "standardize": standardize,
    }
    at_once = ConditionalMean(**settings).fit(X, y)
    rows = np.column_stack([X, y])
    streamed = ConditionalMean(**settings).fit_batches([rows[:37], rows[37:]], target=2)
    np.testing.assert_allclose(streamed.predict(X), at_once.predict(X), atol=1e-5)
    np.testing.assert_allclose(streamed.predict_interval(X), at_once.predict_interval(X), atol=1e-4)
    few = ConditionalMean(standardize=standardize).fit_batches([rows[:37], rows[37:]], target=2)
    np.testing.assert_allclose(
        few.predict(X), ConditionalMean(standardize=standardize).fit(X, y).predict(X)
    )


def reference_quantiles(model, X, y, new, levels):
    """The prediction plus quantiles of left-out residuals, scaled by the errors near x."""
    scaled, points = as_one(X), (new - X.mean(axis=0)) / X.std(axis=0)
    R, kernel, n = y - model.loo_predictions_, model.kernel_, len(X)

    def size(x, others):
        near = kernel(x[None], scaled[others])[0] ** 4
        return (near @ np.abs(R[others]) + 5 * np.abs(R).mean()) / (near.sum() + 5)

    ratios = np.sort([R[i] / size(scaled[i], np.arange(n) != i) for i in range(n)])
    places = [
        int(np.floor(q * (n + 1) + 1e-9)) if q < 0.5 else int(np.ceil(q * (n + 1) - 1e-9))
        for q in levels
    ]
    reach = np.array([ratios[place - 1] for place in places])
    sizes = np.array([size(x, np.arange(n) >= 0) for x in points])
    return model.predict(new)[:, None] + sizes[:, None] * reach


def test_quantiles_and_intervals_are_predictions_plus_quantiles_of_left_out_residuals():
    X, y = wave(60)
    new, _ = wave(9, seed=1)
    model = ConditionalMean().fit(X, y)
    levels = [0.05, 0.25, 0.7, 0.95]
    found = model.predict_quantiles(new, levels)
    np.testing.assert_allclose(found, reference_quantiles(model, X, y, new, levels), rtol=1e-9)
    np.testing.assert_array_equal(model.predict_interval(new, 0.9), found[:, [0, 3]])
    both = ConditionalMean(filter=model.filter_, selection=Fixed(model.choice_.parameter))
    both.fit(X, np.column_stack([y, -2 * y]))
    of_both = both.predict_quantiles(new, levels)
    np.testing.assert_allclose(of_both[:, 0], found, atol=1e-7)
    np.testing.assert_allclose(
        both.predict_quantiles(new, 0.3)[:, 1, 0], -2 * found[:, 2], atol=1e-7
    )
    plain = ConditionalMean(kernel="linear").fit(
        X, y
    )  # a kernel that does not say which rows are near
    ends = (
        plain.predict(new)[:, None] + np.sort(plain.loo_residuals_)[[2, 57]]
    )  # ⌊.05·61⌋ − 1 and ⌈.95·61⌉ − 1
    np.testing.assert_allclose(plain.predict_interval(new), ends, rtol=1e-12)


def test_quantiles_rise_with_their_level_and_agree_with_the_prediction():
    """On rows like those fitted, and on rows elsewhere."""
    X, y = wave(100)
    model = ConditionalMean().fit(X, y)
    for new in (wave(300, seed=1)[0], wave(300, seed=2)[0] + 3):
        quantiles = model.predict_quantiles(new, [0.05, 0.2, 0.5, 0.50001, 0.8, 0.95])
        assert (np.diff(quantiles, axis=1) >= 0).all()
        predicted = model.predict(new)
        assert np.mean((predicted < quantiles[:, 0]) | (predicted > quantiles[:, -1])) <= 0.02
    assert model.predict_quantiles(new, 0.5).shape == (300, 1)


def test_a_weight_of_two_moves_quantiles_as_two_rows():
    X, y = wave(200)
    weights = np.where(np.arange(200) < 100, 1.0, 2.0)
    settings = {"kernel": Gaussian(0.5), "filter": "tikhonov", "selection": Fixed(1e-2)}
    weighted = (
        ConditionalMean(**settings).fit(X, y, weights).predict_quantiles(X[:5], [0.1, 0.5, 0.9])
    )
    rows = np.repeat(np.arange(200), weights.astype(int))
    repeated = (
        ConditionalMean(**settings).fit(X[rows], y[rows]).predict_quantiles(X[:5], [0.1, 0.5, 0.9])
    )
    np.testing.assert_allclose(weighted, repeated, atol=0.06)
    unweighted = (
        ConditionalMean(**settings)
        .fit(X, y, np.ones(200))
        .predict_quantiles(X[:5], [0.1, 0.5, 0.9])
    )
    np.testing.assert_array_equal(
        unweighted, ConditionalMean(**settings).fit(X, y).predict_quantiles(X[:5], [0.1, 0.5, 0.9])
    )


LAWS = {
    "equal errors": lambda rng, x: 0.3 * rng.normal(size=len(x)),
    "errors that grow with x": lambda rng, x: (0.05 + 0.15 * (x + 3)) * rng.normal(size=len(x)),
    "skewed errors": lambda rng, x: 0.5 * (rng.exponential(size=len(x)) - 1),
    "heavy tails": lambda rng, x: 0.3 * rng.standard_t(2.5, size=len(x)),
}


@SOME_ARE_FAR
@pytest.mark.parametrize("law", LAWS)
def test_default_intervals_hold_about_what_they_say(law):
    covered, at_the_ends = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 3, size=600)
        y = np.sin(2 * x) + LAWS[law](rng, x)
        model = ConditionalMean(filter="tikhonov").fit(x[:80, None], y[:80])
        lower, upper = model.predict_interval(x[80:, None]).T
        inside = (lower <= y[80:]) & (y[80:] <= upper)
        covered.append(inside.mean())
        at_the_ends.append((inside[x[80:] < -1].mean(), inside[x[80:] > 1].mean()))
    error = np.std(covered) / 5
    assert 0.88 - 2 * error < np.mean(covered) < 0.93 + 2 * error
    if law == "errors that grow with x":  # one width for all x would hold .99 here and .78 there
        left, right = np.mean(at_the_ends, axis=0)
        assert left < 0.97
        assert right > 0.80


def test_points_far_from_all_rows_are_those_of_the_definition():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3)) * [1, 100, 0.01]
    X = np.concatenate([X, X[:20]])  # copies do not make rows nearer to others
    model = ConditionalMean().fit(X, X[:, 0])
    new = rng.normal(size=(60, 3)) * [3, 300, 0.03]
    Z, points = ((rows - X.mean(axis=0)) / X.std(axis=0) for rows in (X[:80], new))
    nearest = []
    for i in range(80):
        nearest.append(min(np.linalg.norm(Z[i] - Z[j]) for j in range(80) if j != i))
    expected = []
    for x in points:
        margin = (Z.max(axis=0) - Z.min(axis=0)) / 2
        is_outside = np.any(x > Z.max(axis=0) + margin) or np.any(x < Z.min(axis=0) - margin)
        distance = min(np.linalg.norm(x - z) for z in Z)
        expected.append(bool(is_outside or distance > 2 * np.quantile(nearest, 0.99)))
    assert 3 < sum(expected) < 57
    assert model.is_far(new).tolist() == expected
    with pytest.warns(ExtrapolationWarning, match=f"^{sum(expected)} of 60 rows lie far from all"):
        model.predict_interval(new)
    batches = ConditionalMean(gram=Nystrom(80)).fit_batches(
        [np.column_stack([X, X[:, 0]])], target=3
    )
    assert batches.is_far(new).tolist() == expected
    K = Gaussian(1.0)(X)
    assert not ConditionalMean(kernel="precomputed").fit(K, X[:, 0]).is_far(K).any()


@pytest.mark.parametrize("law", ["normal", "uniform", "counts"])
def test_hardly_a_row_of_the_same_law_is_far(law):
    rng = np.random.default_rng(6)
    draw = {
        "normal": lambda n: rng.normal(size=(n, 5)),
        "uniform": lambda n: rng.uniform(size=(n, 1)),
        "counts": lambda n: rng.poisson(3.0, size=(n, 2)),
    }[law]
    X = draw(200)
    model = ConditionalMean(filter="f-kmse").fit(X, X[:, 0])
    assert model.is_far(draw(1000)).mean() <= 0.005


def test_the_bandwidth_with_the_least_score_is_taken():
    X = np.random.default_rng(SEED).uniform(-3, 3, size=(60, 1))
    y = np.sin(6 * X[:, 0])
    model = ConditionalMean(bandwidth="loo", filter="tikhonov").fit(X, y)
    scores = [
        ConditionalMean(kernel=Gaussian(bandwidth), filter="tikhonov").fit(X, y).choice_.score
        for bandwidth in model.bandwidths_
    ]
    np.testing.assert_allclose(model.bandwidth_scores_, scores, rtol=1e-12)
    assert model.kernel_.bandwidth == model.bandwidths_[int(np.argmin(scores))]
    assert model.choice_.score < ConditionalMean(filter="tikhonov").fit(X, y).choice_.score


def test_a_bandwidth_that_is_given_stands_in_the_kernels_place():
    X, y = wave(40)
    for bandwidth in (0.4, "median"):
        model = ConditionalMean(kernel=Gaussian(9.0), bandwidth=bandwidth).fit(X, y)
        same = ConditionalMean(kernel=Gaussian(bandwidth)).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), same.predict(X))
        assert model.bandwidths_ is None


def test_generalised_cross_validation_is_its_formula():
    X, y = wave(50)
    for has_intercept in (True, False):
        settings = {"kernel": Gaussian(0.7), "filter": "tikhonov", "fit_intercept": has_intercept}
        model = ConditionalMean(selection="gcv", **settings).fit(X, y)
        place = model.choice_.index
        one = ConditionalMean(selection=Fixed(model.choice_.parameter), **settings).fit(X, y)
        S = one.weights_at(X)
        true = np.mean((y - S @ y) ** 2) / (1 - np.trace(S) / 50) ** 2
        assert model.choice_.scores[place] == pytest.approx(true, rel=1e-9)


def test_many_rows_of_truncated_svd_are_chosen_by_generalised_cross_validation():
    X, y = wave(320)
    assert repr(ConditionalMean(filter="tsvd").fit(X, y).choice_.rule) == "GCV(grid=None)"


@pytest.mark.parametrize("bandwidth", [100.0, 1000.0])
def test_a_largest_eigenvalue_that_stands_apart_needs_no_refits(bandwidth):
    X, y = wave(320)
    options = {"kernel": Gaussian(bandwidth), "filter": "nu-method", "standardize": False}
    model = ConditionalMean(**options).fit(X, y)
    refitted = ConditionalMean(**options, selection=Fixed(model.choice_.parameter)).fit(
        X[1:], y[1:]
    )
    np.testing.assert_allclose(model.loo_predictions_[:1], refitted.predict(X[:1]), rtol=1e-9)


def test_many_rows_are_not_left_out_by_refits():
    X, y = wave(320)
    model = ConditionalMean(filter="tsvd", selection=Fixed(0.01)).fit(X, y)
    with pytest.raises(ValueError, match="at most 300 rows can be left out by refits"):
        model.loo_predictions_  # noqa: B018


def test_rows_of_mass_zero_take_no_part():
    X, y = wave(30)
    weights = np.ones(30)
    weights[[2, 5]] = 0
    model = ConditionalMean().fit(X, y, weights)
    rest = ConditionalMean().fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(model.predict(X), rest.predict(X), atol=1e-9)
    assert np.isnan(model.loo_predictions_[[2, 5]]).all()
    assert (model.weights_at(X)[:, [2, 5]] == 0).all()


def test_a_precomputed_kernel_predicts_the_same():
    X, y = wave(30)
    K = Gaussian(1.0)(X)
    weights = np.where(np.arange(30) == 4, 0.0, 1.0)
    by_matrix = ConditionalMean(kernel="precomputed").fit(K, y, weights)
    by_points = ConditionalMean(kernel=Gaussian(1.0), standardize=False).fit(X, y, weights)
    np.testing.assert_allclose(by_matrix.predict(K[:5]), by_points.predict(X[:5]), atol=1e-8)
    np.testing.assert_allclose(by_matrix.loo_score_, by_points.loo_score_, atol=1e-8)


def test_it_works_in_pipelines_and_searches_with_frames_and_float32():
    X, y = wave(40)
    frame = pd.DataFrame({"x": X[:, 0], "more": X[:, 0] ** 2})
    pipeline = make_pipeline(StandardScaler(), ConditionalMean(filter="tikhonov")).fit(
        frame, pd.Series(y)
    )
    assert pipeline.score(frame, y) > 0.8
    search = GridSearchCV(
        ConditionalMean(kernel=Gaussian(1.0), filter="tikhonov"),
        {"kernel__bandwidth": [0.5, 50.0]},
        cv=3,
    )
    assert search.fit(X, y).best_params_ == {"kernel__bandwidth": 0.5}
    polars = pytest.importorskip("polars").from_pandas(frame)
    same = make_pipeline(StandardScaler(), ConditionalMean(filter="tikhonov")).fit(polars, y)
    np.testing.assert_allclose(same.predict(polars), pipeline.predict(frame), atol=1e-12)
    single = ConditionalMean().fit(X.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(single.predict(X), ConditionalMean().fit(X, y).predict(X), atol=0.02)
    model = ConditionalMean().fit(X, y)
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(model)).predict(X), model.predict(X), atol=1e-12
    )


def test_predictions_move_along_with_y():
    X, y = wave(40)
    model, moved = ConditionalMean().fit(X, y), ConditionalMean().fit(X, 1000 * y + 1e6)
    np.testing.assert_allclose((moved.predict(X) - 1e6) / 1000, model.predict(X), atol=1e-7)
    np.testing.assert_allclose(model.predict([[1e3]]), y.mean(), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-139, 1e139])
def test_the_choice_does_not_depend_on_the_scale_of_y(scale):
    X, y = wave(40)
    model, scaled = ConditionalMean().fit(X, y), ConditionalMean().fit(X, scale * y)
    assert scaled.choice_.parameter == model.choice_.parameter
    np.testing.assert_allclose(scaled.predict(X) / scale, model.predict(X), rtol=1e-9)


X, Y = wave(20)

REFUSED = {
    "y must be given": lambda: ConditionalMean().fit(X, None),
    "y must vary, got 2 in every row": lambda: ConditionalMean().fit(X, np.full(20, 2.0)),
    r"y must be finite, got Input y contains NaN in 1 row \(first: y\[3\]\)": lambda: (
        ConditionalMean().fit(X, np.where(np.arange(20) == 3, np.nan, Y))
    ),
    "X and y must have the same number of rows, got 20 rows of X and 19 of y": lambda: (
        ConditionalMean().fit(X, Y[:-1])
    ),
    "y must be real numbers, got text": lambda: ConditionalMean().fit(X, np.repeat("a", 20)),
    "y must be real numbers, got complex ones": lambda: ConditionalMean().fit(X, Y + 1j),
    r"interval: confidence must be between 0 and 1, got \[0.5, 0.9\]": lambda: (
        ConditionalMean().fit(X, Y).predict_interval(X, [0.5, 0.9])
    ),
    r"coverage: confidence must be between 0 and 1, got \[0.5, 0.9\]": lambda: (
        ConditionalMean().fit(X, Y).loo_coverage([0.5, 0.9])
    ),
    "between 0 and 1, got 1.5.$": lambda: ConditionalMean().fit(X, Y).predict_interval(X, 1.5),
    "return real numbers, the same number for each output, got text": lambda: (
        ConditionalMean().fit(X, Y).expect(lambda y: ["low"] * len(y), X)
    ),
    "return real numbers, the same number for each output, got complex": lambda: (
        ConditionalMean().fit(X, Y).expect(lambda y: y * 1j, X)
    ),
    "return real numbers, the same number for each output, got a list": lambda: (
        ConditionalMean().fit(X, Y).expect(lambda y: [[1.0], [1.0, 2.0]], X)
    ),
    "other must be a fitted ConditionalMean, got a int": lambda: (
        ConditionalMean().fit(X, Y).mmd_at(X, 3)
    ),
    r"y must be at most 1e\+140 in absolute value": lambda: ConditionalMean().fit(X, 1e200 * Y),
    "y must vary by at least 1e-140": lambda: ConditionalMean().fit(X, 1e-200 * Y),
    "q must be a number between 0 and 1": lambda: (
        ConditionalMean().fit(X, Y).predict_quantiles(X, [0.5, 1.0])
    ),
    "confidence must be between 0 and 1, got 90; for 90 % give 0.9": lambda: (
        ConditionalMean().fit(X, Y).predict_interval(X, 90)
    ),
    "confidence 0.99 needs at least 199 rows, got 20; use a confidence of 0.9 or less": lambda: (
        ConditionalMean().fit(X, Y).predict_interval(X, 0.99)
    ),
    "the quantile 0.99 needs at least 99 rows, got 20": lambda: (
        ConditionalMean().fit(X, Y).predict_quantiles(X, 0.99)
    ),
    "quantiles method: the name must be one of": lambda: (
        ConditionalMean().fit(X, Y).predict_quantiles(X, 0.5, "mean")
    ),
    "method='residuals': kernel_y must be 'linear'": lambda: (
        ConditionalMean(kernel_y="gaussian").fit(X, Y).predict_quantiles(X, 0.5, "residuals")
    ),
    "y must not have masked values, got masked": lambda: ConditionalMean().fit(
        X, np.ma.masked_equal(Y, Y[3])
    ),
    "sample_weight must not have masked values, got masked": lambda: ConditionalMean().fit(
        X, Y, np.ma.masked_equal(np.arange(1, 21), 9)
    ),
    "y must be real numbers, got dates": lambda: ConditionalMean().fit(
        X, np.arange(20).astype("datetime64[D]")
    ),
    "y must be real numbers, got dates or times": lambda: ConditionalMean().fit(
        X, pd.Series(pd.to_timedelta(np.arange(20)))
    ),
    "sample_weight must be zero or at least 1e-30 of the largest": lambda: ConditionalMean().fit(
        X, Y, np.where(np.arange(20) < 3, 1e300, 1)
    ),
    "rows further apart than the largest float": lambda: ConditionalMean(standardize=False).fit(
        np.where(X > 0, 1.5e308, -1.5e308), Y
    ),
    "standardize must be True or False, got 'yes'": lambda: ConditionalMean(standardize="yes").fit(
        X, Y
    ),
    "needs at least 9 rows for calibration, got 20 rows, 6 of them for calibration": lambda: (
        ConditionalMean().fit(X, Y).predict_interval(X, method="conformal")
    ),
    "unknown name 'bootstrap'|'bootstrap'": lambda: (
        ConditionalMean().fit(X, Y).predict_interval(X, method="bootstrap")
    ),
    "conformal intervals need rows of equal weight": lambda: (
        ConditionalMean().fit(X, Y, np.arange(20)).predict_interval(X, 0.5, method="conformal")
    ),
    "y must have 1 outputs, got 2": lambda: (
        ConditionalMean().fit(X, Y).distribution_at(X).crps(np.ones((20, 2)))
    ),
    "a filter with .* is needed, got SimpleShrinkage": lambda: ConditionalMean(filter="s-kmse").fit(
        X, Y
    ),
    "selection must be 'loo', 'gcv'": lambda: ConditionalMean(
        filter="tikhonov", selection="kfold"
    ).fit(X, Y),
    "bandwidth must be None, a positive number, 'median' or 'loo', got -3": lambda: ConditionalMean(
        bandwidth=-3
    ).fit(X, Y),
    "bandwidth must be None, .* got array": lambda: ConditionalMean(
        bandwidth=np.array([1.0, 2.0])
    ).fit(X, Y),
    "fit_intercept must be True or False, got 'no'": lambda: ConditionalMean(
        fit_intercept="no"
    ).fit(X, Y),
    "kernel_y: .* did you mean 'gaussian'": lambda: ConditionalMean(kernel_y="gausian").fit(X, Y),
    "bandwidth='loo' needs a kernel with a bandwidth": lambda: ConditionalMean(
        kernel="linear", bandwidth="loo"
    ).fit(X, Y),
    "kernel_y must be a kernel that is computed": lambda: ConditionalMean(
        kernel_y="precomputed"
    ).fit(X, Y),
    "one point is needed, got 20": lambda: ConditionalMean().fit(X, Y).embedding_at(X),
    "the function must return a number or a row": lambda: (
        ConditionalMean().fit(X, Y).expect(np.mean, X)
    ),
    "at least 2 rows": lambda: ConditionalMean().fit(X[:1], Y[:1]),
    "of the mass must be left": lambda: ConditionalMean().fit(
        X, Y, np.where(np.arange(20) == 0, 1e9, 1)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(message):
    with pytest.raises(ValueError, match=message) as refused:
        REFUSED[message]()
    assert "\n" not in str(refused.value)


@parametrize_with_checks(
    [ConditionalMean()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": (
            "a row of weight two is left out as one, two rows one by one"
        )
    },
)
@pytest.mark.filterwarnings("ignore:bandwidth='median'")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_a_row_of_weight_two_is_two_rows_where_nothing_is_chosen():
    """Of moments of columns too: X is standardized."""
    model = ConditionalMean(kernel=Gaussian(1.0), filter="nu-method", selection=Fixed(10))
    check_sample_weight_equivalence_on_dense_data("ConditionalMean", model)


def with_copies(n=30, copies=12):
    """Rows of which some are there again, in any order; and which row each is a copy of."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n, 2))
    y = np.sin(X) + rng.normal(size=(n, 2))
    rows = rng.permutation(np.r_[0:n, rng.integers(n, size=copies)])
    return X[rows], y[rows], rows


@pytest.mark.parametrize("kernel", ["points", "precomputed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_copies_of_a_row_are_left_out_together(kernel, weighted):
    X, y, rows = with_copies()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(X)) if weighted else np.ones(len(X))
    weights[4] = 0.0  # rows without mass are no copies
    K = Gaussian(1.0)(X)
    sample = X if kernel == "points" else K
    settings = {"filter": "tikhonov", "selection": Fixed(0.01), "standardize": False}
    model = ConditionalMean(kernel=Gaussian(1.0) if kernel == "points" else kernel, **settings)
    model.fit(sample, y, sample_weight=weights)
    taken = weights > 0
    assert model.n_copies_ == taken.sum() - len(np.unique(rows[taken]))
    for i in np.flatnonzero(taken):
        others = taken & (rows != rows[i])
        left = K[np.ix_(others, others)], K[np.ix_(others, [i])], y[others], weights[others]
        true = smoother("tikhonov", 0.01, *left, 1.0, True)[0]
        np.testing.assert_allclose(model.loo_predictions_[i], true, rtol=0, atol=1e-9)
    residuals = y[taken] - model.loo_predictions_[taken]
    spread = y[taken] - np.average(y[taken], axis=0, weights=weights[taken])
    explained = 1 - (weights[taken] @ residuals**2).sum() / (weights[taken] @ spread**2).sum()
    assert model.loo_score_ == pytest.approx(explained)


def test_copies_do_not_change_the_estimate(tmp_path):
    """All but the left-out scores is that of the rows with their copies."""
    X, y, _ = with_copies()
    model = ConditionalMean(filter="nu-method", selection=Fixed(10)).fit(X, y)
    K = model.kernel_((X - X.mean(axis=0)) / X.std(axis=0))
    assert np.median(-2 * np.log(K[np.triu_indices(len(K), 1)])) == pytest.approx(1)  # ‖x − x'‖²/σ²
    true = smoother("nu-method", 10, K, K, y, np.ones(len(X)), 1.0, True)
    np.testing.assert_allclose(model.predict(X), true, atol=1e-10)
    weights = model.weights_at(X)
    np.testing.assert_allclose(weights @ y, true, atol=1e-10)
    copies = (X[:, None] == X).all(axis=2)
    np.testing.assert_allclose(
        weights, weights @ copies / copies.sum(axis=0), atol=1e-12
    )  # shared out evenly
    np.testing.assert_allclose(model.expect(lambda y: y**2, X), weights @ y**2)
    left_out = model.loo_distribution_
    assert left_out.probabilities.shape == (len(X), len(X))
    save(model, tmp_path / "model.muhat")
    loaded = load(tmp_path / "model.muhat")
    assert loaded.n_copies_ == model.n_copies_ == 12
    np.testing.assert_array_equal(loaded.loo_predictions_, model.loo_predictions_)


@SOME_ARE_FAR
@pytest.mark.parametrize("method", ["residuals", "jackknife+", "conformal"])
def test_copies_promise_no_more_than_the_different_rows(method):
    """Row by row each copy would be predicted by the other: R² near one, no width."""
    held, claimed = [], []
    rng = np.random.default_rng(SEED)
    for _ in range(25):
        X, new = rng.normal(size=(60, 3)), rng.normal(size=(200, 3))
        y, true = X[:, 0] + rng.normal(size=60), new[:, 0] + rng.normal(size=200)
        once, twice = (
            ConditionalMean().fit(X, y),
            ConditionalMean().fit(np.tile(X, (2, 1)), np.tile(y, 2)),
        )
        low, high = twice.predict_interval(new, 0.9, method).T
        held.append(np.mean((low <= true) & (true <= high)))
        claimed.append(twice.loo_score_ - once.loo_score_)
    assert 0.86 < np.mean(held) < 0.97  # 60 rows calibrate: a standard error of 0.01
    assert np.abs(claimed).max() < 0.05  # the median bandwidth knows of pairs of copies


def test_equal_rows_of_few_values_are_observations_of_their_own():
    rng = np.random.default_rng(SEED)
    X = rng.integers(3, size=(120, 2)).astype(float)
    model = ConditionalMean(kernel=Gaussian(1.0)).fit(X, X[:, 0] + rng.integers(2, size=120))
    assert model.n_copies_ == 0
    labels = ConditionalMean(kernel=Gaussian(1.0)).fit(
        X, X[:, 0]
    )  # nine different rows, thirteen times each
    assert labels.n_copies_ == 0
    assert labels.loo_score_ > 0.99
    X, y, _ = with_copies()
    with pytest.warns(
        UserWarning,
        match="222 of 252 rows are exact copies of other rows. Leave-one-out scores",
    ):
        assert (
            ConditionalMean(kernel=Gaussian(1.0))
            .fit(np.tile(X, (6, 1)), np.tile(y, (6, 1)))
            .n_copies_
            == 0
        )
