"""Filters: the two routes agree, the limits are right, and one method is enough for a new one."""

from dataclasses import dataclass

import numpy as np
import pytest

import reference
from catalogue import NAMES, SAME_WEIGHTS, SAMPLES, SEED
from muhat import Embedding, KernelMean
from muhat._parts import as_filter
from muhat.filters import (
    FILTERS,
    Filter,
    IteratedTikhonov,
    Iteration,
    Landweber,
    NuMethod,
    Tikhonov,
    TruncatedSVD,
)
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian, Polynomial
from muhat.selection import Fixed, LeaveOneOut
from muhat.selection._base import Candidates
from muhat.selection._krylov import Krylov
from muhat.selection._rules import NO_ROWS
from paper.experiments.figure_3b import iterated

BY_PRODUCTS = {
    "s-kmse": [0.1, 3.0],
    "f-kmse": [1e-3, 0.1, 3.0],
    "iterated-tikhonov": [1e-3, 0.1, 3.0],
    "landweber": [1, 2, 17, 200],
    "nu-method": [1, 2, 17, 60],
}


def problem_of(sample, kernel=None):
    return DenseProblem(
        DenseGram.from_sample(kernel or Gaussian().resolve(SAMPLES[sample]), SAMPLES[sample])
    )


@pytest.mark.filterwarnings("ignore:bandwidth='median'")
@pytest.mark.parametrize(
    "sample", ["random", "clustered", "duplicated", "rank deficient", "more features than rows"]
)
@pytest.mark.parametrize("name", BY_PRODUCTS)
def test_the_spectral_and_the_iterative_route_give_the_same_weights(name, sample):
    for kernel in (None, Polynomial(2, gamma=0.1)):
        problem = problem_of(sample, kernel)
        largest = float((problem.gram.diagonal() * problem.n).max())
        filter = as_filter(name).bounded_by(largest if kernel else 1.0)
        for parameter in BY_PRODUCTS[name]:
            grid = np.array([parameter])
            spectral = problem.weights(
                filter.on(problem.components, grid)[0], filter.at_zero(grid)[0]
            )
            by_products = Krylov(problem, [NO_ROWS], [Candidates(filter, grid)])
            x = by_products.solution(Candidates(filter, grid), 0)
            np.testing.assert_allclose(problem.root_masses * x, spectral, atol=SAME_WEIGHTS)


@pytest.mark.parametrize("filter", [Landweber(), NuMethod()], ids=repr)
def test_a_few_iterations_take_no_eigendecomposition(filter):
    problem = problem_of("random", Gaussian(1.0))
    choice = Fixed(7).choose(problem, filter.bounded_by(1.0))
    assert "spectrum" not in vars(problem)
    np.testing.assert_allclose(
        choice.weights(problem), iterated(problem.gram, filter, 7), atol=SAME_WEIGHTS
    )


@pytest.mark.parametrize("name", BY_PRODUCTS)
def test_both_routes_agree_with_weights_and_a_target_elsewhere(name):
    rng = np.random.default_rng(SEED)
    X, Y, kernel = rng.normal(size=(10, 2)), rng.normal(size=(3, 2)), Gaussian(1.2)
    target, weight = Embedding(kernel, Y, rng.normal(size=3)), rng.uniform(0.5, 2, size=10)
    for parameter in BY_PRODUCTS[name]:
        options = {"kernel": kernel, "filter": name, "target": target}
        one = KernelMean(selection=LeaveOneOut(grid=[parameter]), **options).fit(
            X, sample_weight=weight
        )
        other = KernelMean(selection=Fixed(parameter), **options).fit(X, sample_weight=weight)
        np.testing.assert_allclose(other.weights_, one.weights_, atol=SAME_WEIGHTS)
        np.testing.assert_allclose(
            other.choice_.strength, one.choice_.strength, rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_is_what_its_definition_says(name, weighted):
    rng = np.random.default_rng(SEED)
    X, Y, kernel = rng.normal(size=(9, 2)), rng.normal(size=(4, 2)), Gaussian(1.4)
    F = reference.features(kernel(np.concatenate([X, Y])))
    tau, weight = rng.normal(size=4), rng.uniform(0.5, 2, size=9) if weighted else np.ones(9)
    for target in (None, Embedding(kernel, Y, tau)):
        mu = KernelMean(kernel=kernel, filter=name, target=target).fit(X, sample_weight=weight)
        f = None if target is None else F[9:].T @ tau
        true = reference.estimate(name, mu.choice_.parameter, F[:9], weight, f)
        estimate = F[:9].T @ mu.weights_
        if target is not None:
            estimate = estimate + (1 - mu.choice_.shrinkage_at_zero) * f
            values = F @ true
            np.testing.assert_allclose(mu.embedding_(np.concatenate([X, Y])), values, atol=1e-9)
        np.testing.assert_allclose(estimate, true, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "parameter"), [("s-kmse", 1e-13), ("f-kmse", 1e-13), ("iterated-tikhonov", 1e-8)]
)
def test_a_vanishing_lambda_gives_the_empirical_mean(name, parameter):
    X = SAMPLES["random"]
    mu = KernelMean(filter=name, selection=Fixed(parameter)).fit(X)
    np.testing.assert_allclose(mu.weights_, 1 / len(X), atol=1e-10)


@pytest.mark.parametrize(("name", "parameter"), [("landweber", 10_000_000), ("nu-method", 20_000)])
def test_endless_iteration_gives_the_empirical_mean(name, parameter):
    X = SAMPLES["random"]
    mu = KernelMean(filter=name, selection=LeaveOneOut(grid=[parameter])).fit(X)
    np.testing.assert_allclose(mu.weights_, 1 / len(X), atol=1e-6)


def test_truncation_below_all_eigenvalues_gives_the_empirical_mean():
    X = SAMPLES["random"]
    mu = KernelMean(filter="tsvd", selection=Fixed(1e-12)).fit(X)
    np.testing.assert_allclose(mu.weights_, 1 / len(X), atol=1e-12)


def test_iterated_tikhonov_of_order_one_is_tikhonov():
    gamma = np.geomspace(1e-8, 1, 30)
    np.testing.assert_allclose(
        IteratedTikhonov(1).shrinkage(gamma, 0.03), Tikhonov().shrinkage(gamma, 0.03), rtol=1e-8
    )


def test_landwebers_filter_is_the_sum_from_zero():
    gamma, eta, t = np.linspace(0.01, 1, 20), 0.7, 9
    g = eta * sum((1 - eta * gamma) ** i for i in range(t))
    np.testing.assert_allclose(Landweber(eta=eta).shrinkage(gamma, t), gamma * g, rtol=1e-13)


def test_the_nu_method_overshoots_a_little():
    path = NuMethod().path(np.linspace(0, 1, 4001), np.arange(1, 41))
    assert 1 < path.max() < 1.5


def test_iterations_act_as_one_over_t_for_landweber_and_as_one_over_t_squared_for_the_nu_method():
    gamma = np.geomspace(1e-6, 1, 100_001)

    def half(filter, t):
        return gamma[filter.shrinkage(gamma, t) > 0.5][0]

    for t in (20, 50, 100):
        assert half(Landweber(), t) * t == pytest.approx(np.log(2), rel=0.05)
        assert half(NuMethod(), t) * t**2 == pytest.approx(half(NuMethod(), 200) * 200**2, rel=0.1)


def test_a_batch_of_parameters_is_the_same_as_one_by_one():
    gamma = np.linspace(0, 1, 7).reshape(1, 7)
    for kind in FILTERS.values():
        filter = kind()
        if isinstance(filter, Filter):
            grid = (
                np.array([1, 2, 5]) if isinstance(filter, Iteration) else np.array([0.1, 0.5, 2.0])
            )
            np.testing.assert_array_equal(
                filter.path(gamma, grid),
                np.stack([filter.shrinkage(gamma, parameter) for parameter in grid]),
            )


@dataclass
class Fractional(Filter):
    """s_λ(γ) = 1 − (λ/(γ+λ))^(3/2), which the library does not have."""

    def shrinkage(self, gamma, parameter):
        return 1 - (1 + gamma / parameter) ** -1.5


@dataclass
class Kinked(Filter):
    """s_λ(γ) = min(γ/λ, 1): no analytic function, though its author does not say so."""

    def shrinkage(self, gamma, parameter):
        return np.minimum(np.real(gamma) / parameter, 1)


@pytest.mark.parametrize("filter", [Fractional(), Kinked()])
def test_a_filter_of_ones_own_is_one_method_and_scored_exactly(filter):
    X = SAMPLES["random"]
    mu = KernelMean(kernel=Gaussian(1.5), filter=filter).fit(X)
    F = reference.features(Gaussian(1.5)(X))
    for parameter, score in zip(mu.choice_.grid, mu.choice_.scores, strict=True):
        true = 0.0
        for i in range(len(X)):
            rest = np.delete(F, i, axis=0)
            values, vectors = np.linalg.eigh(rest.T @ rest / len(rest))
            shrunk = filter.shrinkage(np.maximum(values, 0), parameter)
            true += (
                (F[i] - vectors @ (shrunk * (vectors.T @ rest.mean(axis=0)))) ** 2
            ).sum() / len(X)
        assert score == pytest.approx(true, rel=1e-8)


def test_components_within_an_eigenspace_do_not_depend_on_the_eigensolver():
    # Points so far apart that K is the identity: one eigenvalue, any basis.
    X = 1e3 * np.arange(6.0)[:, None]
    mu = KernelMean(kernel=Gaussian(1.0), filter="componentwise").fit(X)
    np.testing.assert_allclose(mu.weights_, mu.weights_[0], rtol=1e-12)


def test_truncation_thresholds_lie_between_eigenvalues():
    problem = problem_of("random")
    grid = TruncatedSVD().grid(problem)
    gamma = problem.spectrum.gamma
    kept = [(gamma >= threshold).sum() for threshold in grid]
    assert sorted(kept, reverse=True) == kept
    assert kept[-1] == 0
    assert kept[0] == (gamma > 0).sum()
    assert all(np.abs(gamma / threshold - 1).min() > 1e-9 for threshold in grid)
