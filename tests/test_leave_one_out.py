"""Leave-one-out scores equal refits without each point: every filter, kernel and sample."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference
from catalogue import CANCELLED, EXACT, NAMES, SAMPLES, SEED, VARIANTS
from muhat import Embedding, KernelMean
from muhat.filters import FILTERS, Filter
from muhat.gram import Nystrom
from muhat.kernels import Gaussian, Polynomial
from muhat.selection import LeaveOneOut

KERNELS = ("gaussian", "polynomial", "precomputed")


def fitted(kernel, X, name, **options):
    """A fit and the explicit features that it should be checked on."""
    if kernel == "precomputed":
        K = Gaussian(float(np.ptp(X)) or 1.0)(X) + np.multiply.outer(
            *[np.arange(1.0, len(X) + 1)] * 2
        ) / len(X)
        return KernelMean(kernel="precomputed", filter=name, **options).fit(K), reference.features(
            K
        )
    if kernel == "polynomial":
        X = X / np.abs(X).max()
    part = Gaussian() if kernel == "gaussian" else Polynomial(3)
    mu = KernelMean(kernel=part, filter=name, **options).fit(X)
    return mu, reference.features(mu.kernel_(X))


def kappa2(kernel, F):
    return 1.0 if kernel == "gaussian" else (F**2).sum(axis=1).max()


def assert_scores_are_true(mu, name, F, p, kappa2, target=None, **settings):
    settings["kappa2"] = kappa2
    true = [
        reference.leave_one_out_score(name, value, F, p, target, **settings)
        for value in mu.choice_.grid
    ]
    # Where the score itself cancels to nothing, its summands ‖φ_i‖² are what it can be relative to.
    np.testing.assert_allclose(
        mu.choice_.scores, true, rtol=EXACT, atol=CANCELLED * (F**2).sum() / len(F)
    )
    assert np.all(mu.choice_.scores >= 0)


@pytest.mark.filterwarnings("ignore:bandwidth='median'")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_really_leaving_each_point_out(name, sample, kernel):
    mu, F = fitted(kernel, SAMPLES[sample], name)
    n = len(F)
    assert_scores_are_true(mu, name, F, np.ones(n) / n, kappa2(kernel, F))


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_other_orders_equal_really_leaving_out(variant):
    name, part, options = VARIANTS[variant]
    mu, F = fitted("gaussian", SAMPLES["random"], part)
    assert_scores_are_true(mu, name, F, np.ones(len(F)) / len(F), 1.0, **options)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_weighted_scores_equal_really_leaving_out(name, kernel):
    X = SAMPLES["random"]
    weight = np.random.default_rng(SEED).uniform(0.2, 3, size=len(X))
    part = {"gaussian": Gaussian(1.5), "polynomial": Polynomial(2), "precomputed": "precomputed"}[
        kernel
    ]
    K = Gaussian(2.0)(X) if kernel == "precomputed" else part(X)
    mu = KernelMean(kernel=part, filter=name).fit(
        K if kernel == "precomputed" else X, sample_weight=weight
    )
    F = reference.features(K)
    assert_scores_are_true(
        mu, name, F, weight, 1.0 if kernel == "gaussian" else np.diagonal(K).max()
    )


TARGETS = {
    "elsewhere": lambda rng, n: rng.normal(size=4),
    "weights of either sign": lambda rng, n: rng.normal(size=n),
    "a measure": lambda rng, n: rng.dirichlet(np.ones(n)),
    "a measure on few points": lambda rng, n: np.array([0.4, 0.0, 0.3, *np.zeros(n - 3)]),
    "one point": lambda rng, n: np.eye(n)[2],
    "the mean": lambda rng, n: np.full(n, 1 / n),
}
"""Weights of a target on four other points, or on the sample, of which the left-out point's own is
left out too."""


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_scores_with_a_target_equal_really_leaving_out(name, weighted, where):
    rng = np.random.default_rng(SEED)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(4, 2))
    kernel, tau = Gaussian(1.4), TARGETS[where](rng, 9)
    weight = rng.uniform(0.5, 2, size=9) if weighted else np.ones(9)
    F = reference.features(kernel(np.concatenate([X, Y])))
    if where == "elsewhere":
        mu = KernelMean(kernel=kernel, filter=name, target=Embedding(kernel, Y, tau)).fit(
            X, sample_weight=weight
        )
        return assert_scores_are_true(mu, name, F[:9], weight, 1.0, F[9:].T @ tau)
    target = Embedding(kernel, X, tau) if weighted else tau
    mu = KernelMean(kernel=kernel, filter=name, target=target).fit(X, sample_weight=weight)
    assert_scores_are_true(mu, name, F[:9], weight, 1.0, target_weights=tau)
    return None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_scores_on_features_leave_the_point_out_of_the_target_too(name, weighted):
    rng = np.random.default_rng(SEED)
    X, tau = rng.normal(size=(15, 2)), rng.dirichlet(np.ones(15))
    weight = rng.uniform(0.5, 2, size=15) if weighted else np.ones(15)
    mu = KernelMean(kernel=Gaussian(1.4), filter=name, gram=Nystrom(15), target=tau).fit(
        X, sample_weight=weight
    )
    assert_scores_are_true(mu, name, mu.features_(X), weight, 1.0, target_weights=tau)


@st.composite
def small_samples(draw):
    shape = draw(st.tuples(st.integers(2, 7), st.integers(1, 3)))
    # Few different values, so that equal rows, constant columns and zero medians come up all the
    # time.
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, 100.0, 1e-3])
    return draw(arrays(np.float64, shape, elements=values))


@pytest.mark.filterwarnings("ignore:bandwidth='median'")
@settings(max_examples=60, deadline=None)
@given(
    X=small_samples(),
    name=st.sampled_from(NAMES),
    kernel=st.sampled_from(["gaussian", "polynomial"]),
)
def test_scores_equal_really_leaving_out_on_samples_nobody_thought_of(X, name, kernel):
    part = Gaussian() if kernel == "gaussian" else Polynomial(2, gamma=0.01)
    mu = KernelMean(kernel=part, filter=name).fit(X)
    F = reference.features(mu.kernel_(X))
    assert_scores_are_true(mu, name, F, np.ones(len(X)), kappa2(kernel, F))


@settings(max_examples=40, deadline=None)
@given(
    exponents=st.lists(st.floats(-20, 12), min_size=1, max_size=4),
    name=st.sampled_from(["f-kmse", "iterated-tikhonov", "s-kmse"]),
)
def test_any_grid_of_lambdas_gets_true_scores(exponents, name):
    X = SAMPLES["random"][:6]
    grid = np.unique([10.0**exponent for exponent in exponents])
    mu = KernelMean(kernel=Gaussian(1.0), filter=name, selection=LeaveOneOut(grid=grid)).fit(X)
    assert_scores_are_true(mu, name, reference.features(Gaussian(1.0)(X)), np.ones(6), 1.0)


@settings(max_examples=30, deadline=None)
@given(
    grid=st.lists(st.integers(1, 400), min_size=1, max_size=3),
    name=st.sampled_from(["landweber", "nu-method"]),
)
def test_any_grid_of_iterations_gets_true_scores(grid, name):
    X = SAMPLES["random"][:6]
    mu = KernelMean(kernel=Gaussian(1.0), filter=name, selection=LeaveOneOut(grid=grid)).fit(X)
    assert_scores_are_true(mu, name, reference.features(Gaussian(1.0)(X)), np.ones(6), 1.0)


def test_a_million_iterations_are_scored_truly_though_no_contour_can():
    X = SAMPLES["random"][:5]
    mu = KernelMean(
        kernel=Gaussian(1.0), filter="landweber", selection=LeaveOneOut(grid=[10, 1_000_000])
    ).fit(X)
    F = reference.features(Gaussian(1.0)(X))
    kme = reference.leave_one_out_score("kme", None, F, np.ones(5))
    np.testing.assert_allclose(mu.choice_.scores[1], kme, rtol=1e-6)
    np.testing.assert_allclose(
        mu.choice_.scores[0],
        reference.leave_one_out_score("landweber", 10, F, np.ones(5)),
        rtol=EXACT,
    )


@pytest.mark.parametrize("sample", ["random", "clustered", "duplicated", "far from the origin"])
def test_the_closed_form_of_simple_shrinkage_minimises_its_score(sample):
    X = SAMPLES[sample]
    n = len(X)
    kernel = Gaussian(2.0)
    mu = KernelMean(kernel=kernel, filter="s-kmse").fit(X)
    K = kernel(X)
    rho, varrho = K.mean(), np.diagonal(K).mean()
    closed = n * (varrho - rho) / ((n - 1) * (n * rho - varrho))
    assert mu.choice_.parameter == pytest.approx(closed, rel=1e-9)
    F = reference.features(K)
    around = [
        reference.leave_one_out_score("s-kmse", closed * (1 + e), F, np.ones(n))
        for e in (-1e-3, 0, 1e-3)
    ]
    assert min(around) == around[1]


def test_simple_shrinkage_of_centred_data_under_the_linear_kernel_is_the_target():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    mu = KernelMean(kernel="linear", filter="s-kmse").fit(X)
    assert mu.choice_.parameter == np.inf
    assert np.all(mu.weights_ == 0)


@dataclass
class Kinked(Filter):
    """A function of γ with a kink that calls itself analytic."""

    def shrinkage(self, gamma, parameter):
        return np.minimum(np.abs(gamma) / parameter, 1.0)


def test_the_price_of_refits_is_stated_before_it_is_paid(monkeypatch):
    monkeypatch.setattr("muhat.selection._leave_one_out.MAX_ROWS_REFIT", 5)
    with pytest.warns(
        UserWarning, match="Kinked has no cheap exact score; leaving out each of 12 points"
    ):
        KernelMean(filter=Kinked()).fit(SAMPLES["random"])


def test_every_filter_by_name_is_in_the_catalogue():
    assert set(NAMES) == set(FILTERS)
