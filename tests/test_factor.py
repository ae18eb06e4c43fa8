"""Estimates on a low-rank factor of K, and choices on one, against those of the whole matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat import Comparison, Embedding, KernelMean, compare
from muhat.filters import FILTERS, KME, SimpleShrinkage, Tikhonov
from muhat.gram import DenseGram, DenseProblem, PivotedCholesky, pivoted_cholesky
from muhat.gram._factor import FactorGram, FactorProblem, factor_of_sample
from muhat.gram._plan import MIN_ROWS_FACTOR
from muhat.kernels import Function, Gaussian, Laplacian, Linear, Polynomial
from muhat.selection import GCV, Fixed, KFold, LeaveOneOut
from muhat.selection import _on_factor as on_factor
from muhat.selection._base import Candidates, bias_factor_on
from muhat.selection._leave_one_out import gain_errors

N = 600
EQUAL_WEIGHTS = 1e-9
"""The largest difference of weights, relative to the largest weight, that docs/scale.md states."""
EQUAL_GAINS = 1e-9
"""The largest difference of gains, relative to KME's risk."""


def rows(d, n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def risk_of(mu):
    return abs(float(mu.choice_.unshrunk)) / mu.n_samples_seen_


SAMPLES = {
    "one column": (rows(1), {}),
    "two columns": (rows(2), {}),
    "linear": (rows(5), {"kernel": Linear()}),
    "polynomial": (rows(3), {"kernel": Polynomial(2)}),
    "repeated rows": (np.repeat(rows(6, 40), 15, axis=0), {}),
    "far from the origin": (rows(2) + 1e6, {}),
    "nearly constant": (np.r_[np.ones((N - 1, 2)), [[1.0, 1.1]]], {"kernel": Gaussian(1.0)}),
    "yes and no": (rows(3).round().clip(-1, 1), {}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_default_on_a_factor_is_that_of_the_whole_matrix(name):
    X, arguments = SAMPLES[name]
    mu, dense = KernelMean(**arguments).fit(X), KernelMean(**arguments, gram="dense").fit(X)
    assert isinstance(mu.gram_, PivotedCholesky)
    assert dense.gram_ == "dense"
    assert type(mu.filter_) is type(dense.filter_)
    if dense.choice_.parameter is not None:
        assert mu.choice_.parameter == pytest.approx(dense.choice_.parameter, rel=1e-6)
    assert mu.weights_.shape == dense.weights_.shape
    largest = np.abs(dense.weights_).max()
    np.testing.assert_allclose(mu.weights_, dense.weights_, atol=EQUAL_WEIGHTS * largest)
    assert mu.choice_.gain == pytest.approx(dense.choice_.gain, abs=EQUAL_GAINS * risk_of(dense))
    assert mu.choice_.score == pytest.approx(dense.choice_.score, rel=1e-9)
    unit = float(dense.eigenvalues_.max())
    np.testing.assert_allclose(mu.eigenvalues_, dense.eigenvalues_, atol=1e-12 * unit)
    distance = (mu.embedding_ - dense.embedding_).norm()
    assert distance <= 1e-7 * np.sqrt(dense.embedding_.squared_norm())


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_chooses_the_same_on_a_factor(name):
    X = rows(2)
    for selection in ("loo", "gcv", "kfold"):
        if selection == "gcv" and FILTERS[name].constant:
            continue
        both = [
            KernelMean(filter=name, selection=selection, gram=gram).fit(X)
            for gram in ("auto", "dense")
        ]
        assert both[0].gram_ != "dense"
        assert both[0].rule_ == both[1].rule_
        grids = [each.choice_.grid for each in both]
        if name not in ("tsvd", "componentwise"):  # whose thresholds are between the eigenvalues
            np.testing.assert_allclose(*grids, rtol=1e-9)
            assert both[0].choice_.parameter == pytest.approx(both[1].choice_.parameter)
        norm = np.sqrt(both[1].embedding_.squared_norm())
        assert (both[0].embedding_ - both[1].embedding_).norm() <= 1e-6 * norm


def test_weights_and_float32_are_taken():
    X, mass = rows(2), np.random.default_rng(1).gamma(1.0, size=N)
    mass[:50] = 0
    mu = KernelMean().fit(X, sample_weight=mass)
    dense = KernelMean(gram="dense").fit(X, sample_weight=mass)
    assert mu.gram_ != "dense"
    np.testing.assert_allclose(mu.weights_, dense.weights_, atol=1e-9 * dense.weights_.max())
    single = KernelMean().fit(X.astype(np.float32))
    whole = KernelMean(gram="dense").fit(X.astype(np.float32))
    assert single.gram_ != "dense"
    assert single.weights_.dtype == whole.weights_.dtype == np.float32
    assert single.choice_.parameter == pytest.approx(whole.choice_.parameter, rel=0.1)
    assert (single.embedding_ - whole.embedding_).norm() <= 1e-4


def test_parameters_that_are_given_are_taken_on_a_factor():
    X = rows(2)
    for name, value in (("tikhonov", 0.01), ("landweber", 7), ("nu-method", 900), ("tsvd", 0.01)):
        both = [
            KernelMean(filter=name, selection=Fixed(value), gram=gram).fit(X).weights_
            for gram in ("auto", "dense")
        ]
        np.testing.assert_allclose(*both, atol=1e-9 * both[1].max())


def test_kept_constant_shares_reach_what_the_factor_does_not_span():
    X = np.repeat(rows(3, 60), 10, axis=0)
    mu = KernelMean(filter="s-kmse").fit(X)
    assert mu.gram_ != "dense"
    np.testing.assert_allclose(mu.weights_, np.full(N, mu.weights_[0]), rtol=1e-12)


def test_the_reason_names_rank_and_error():
    mu = KernelMean().fit(rows(2))
    rank = pivoted_cholesky(mu.kernel_, rows(2), 1e-14).rank
    assert f"has rank {rank} to rounding" in mu.gram_reason_
    assert "of its trace" in mu.gram_reason_


def test_where_a_factor_is_not_known_to_be_right_the_matrix_is_decomposed():
    X = rows(2)
    few = KernelMean().fit(X[: MIN_ROWS_FACTOR - 1])
    assert few.gram_ == "dense"
    assert "eigendecomposition" in few.gram_reason_
    assert KernelMean(kernel=Function(Gaussian(1.0).__call__)).fit(X).gram_ == "dense"
    K = Gaussian(1.0)(X)
    assert KernelMean(kernel="precomputed").fit(K).gram_ == "dense"
    assert KernelMean(kernel=Laplacian(1.0)).fit(X).gram_ == "dense"
    target = Embedding(Gaussian(1.0), X[:3], np.full(3, 1 / 3))
    assert KernelMean(kernel=Gaussian(1.0), target=target).fit(X).gram_ == "dense"
    assert KernelMean(gram="dense").fit(X).gram_reason_ == "as requested"


def test_a_comparison_on_a_factor_is_that_of_the_whole_matrix():
    X = rows(2)
    own, dense = compare(X), compare(X, gram="dense")
    assert own.gram == "low-rank"
    assert own.best.name == dense.best.name
    for mine, other in zip(own.rows, dense.rows, strict=True):
        if mine.improvement is not None:
            assert mine.improvement == pytest.approx(other.improvement, abs=1e-5)
            assert mine.standard_error == pytest.approx(other.standard_error, rel=1e-5, abs=1e-9)


def test_an_estimator_on_a_factor_can_be_compared(monkeypatch):
    monkeypatch.setattr(on_factor, "MIN_ROWS", N)
    for X in (rows(2), rows(20)):
        mu = KernelMean().fit(X)
        assert Comparison.from_estimator(mu).best.name in ("kme", "f-kmse")
        assert compare(X, filters=["f-kmse"]).best.name in ("kme", "f-kmse")


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 3),
    unit=st.sampled_from([1e-100, 1.0, 1e100]),
    distinct=st.integers(1, 40),
)
def test_odd_samples_have_the_estimate_of_the_whole_matrix(seed, d, unit, distinct):
    rng = np.random.default_rng(seed)
    X = unit * rng.standard_t(2, size=(distinct, d))[rng.integers(distinct, size=MIN_ROWS_FACTOR)]
    kernel = Gaussian(unit)
    mu, dense = (KernelMean(kernel=kernel, gram=gram).fit(X) for gram in ("auto", "dense"))
    assert type(mu.filter_) is type(dense.filter_)
    norm = np.sqrt(dense.embedding_.squared_norm())
    assert (mu.embedding_ - dense.embedding_).norm() <= 1e-6 * norm


@pytest.mark.parametrize("n", [5, 50, 501])
def test_the_default_of_any_size_is_the_definition(n):
    X = rows(2, n)
    mu = KernelMean().fit(X)
    A = mu.kernel_(X) / n
    if mu.choice_.parameter is None:
        expected = np.full(n, 1 / n)
    else:
        expected = np.linalg.solve(A + mu.choice_.parameter * np.eye(n), A @ np.full(n, 1 / n))
    np.testing.assert_allclose(mu.weights_, expected, atol=1e-8 / n)


@pytest.mark.parametrize("n", [5001, 50_000])
def test_the_default_beyond_the_dense_limit_is_near_the_definition(n):
    X = rows(2, n)
    mu = KernelMean().fit(X)
    values = mu.kernel_(X[:50], X).mean(axis=1)
    error = np.sqrt((1 - values.mean()) / n)
    np.testing.assert_allclose(mu.score_samples(X[:50]), values, atol=0.2 * error)


# Choices on a factor of a matrix of high rank.

CHOSEN_GAIN = 0.1
"""The largest error of the chosen gain, in its standard errors, at a rank of 150;
``python -m benchmarks seconds`` has it for 1500 rows, 0.067 at most of 69 samples."""

WIDE = {"normal": (20, 1.0), "narrow": (20, 0.5), "eight columns": (8, 0.6)}


def problems(d, width, n=N, seed=0):
    X = rows(d, n, seed)
    kernel = Gaussian(width * Gaussian().resolve(X).bandwidth)
    gram = DenseGram.from_sample(kernel, X)
    return X, kernel, on_factor.ProductProblem(gram), DenseProblem(gram)


@pytest.mark.parametrize("name", WIDE)
def test_a_choice_on_a_factor_loses_less_than_a_tenth_of_a_standard_error(name):
    X, kernel, problem, dense = problems(*WIDE[name])
    rule, filters = LeaveOneOut(bias_factor="auto"), [KME(), Tikhonov(), SimpleShrinkage()]
    found = on_factor.choose_on_factor(problem, rule, filters, factor_of_sample(kernel, X))
    assert found is not None
    exact = rule.choices(dense, filters)
    own, best = found.choices[1], exact[1]
    error = gain_errors(dense, dense.rows, [best]).standard_errors[0]
    both = np.array([own.parameter, best.parameter])
    gains = rule.prepare(dense, [Candidates(Tikhonov(), both)]).gains(0, both)
    assert gains[1] - gains[0] <= 0.1 * error
    assert abs(own.gain - gains[0]) <= CHOSEN_GAIN * error
    for mine, other in ((found.choices[0], exact[0]), (found.choices[2], exact[2])):
        assert mine.parameter == pytest.approx(other.parameter)
        np.testing.assert_allclose(mine.gains, other.gains, atol=1e-15)
    assert own.unshrunk == pytest.approx(best.unshrunk, rel=1e-12)

    s = Tikhonov().path(dense.components.gamma, both[:1])
    expected = dense.weights(s[0], 0.0)
    np.testing.assert_allclose(own.solution, expected, atol=1e-10 * np.abs(expected).max())
    assert own.strength == pytest.approx(dense.strengths(s, np.zeros(1))[0], rel=1e-9)
    assert problem.largest_eigenvalue == pytest.approx(dense.largest_eigenvalue, rel=1e-10)
    assert problem.effective_dimension == pytest.approx(dense.effective_dimension, rel=1e-8)


def test_scores_on_the_whole_matrix_are_exact():
    X, kernel, problem, dense = problems(20, 1.0, n=200)
    L = np.linalg.cholesky(kernel(X))
    rule, filter = LeaveOneOut(bias_factor="auto"), Tikhonov()
    candidates = [Candidates(filter, np.geomspace(1e-5, 10, 30))]
    scores = on_factor.ScoresOnFactor(
        problem,
        candidates,
        bias_factor_on("auto", problem),
        on_factor.FactorResolvents.from_factor(L, problem.gram.diagonal()),
    )
    expected = rule.prepare(dense, candidates).gains(0, candidates[0].grid)
    risk = float(scores.unshrunk) / problem.n
    on_factor_only = scores.gains(0, candidates[0].grid)
    np.testing.assert_allclose(on_factor_only, expected, atol=1e-8 * risk)
    problem.lanczos.converge(1e-5)
    scores.converged_from = 1e-5
    by_products = scores.gains(0, candidates[0].grid)
    np.testing.assert_allclose(by_products, expected, atol=1e-8 * risk)


def test_what_a_factor_lacks_is_estimated():
    X, kernel, problem, _ = problems(20, 0.5)
    factor = pivoted_cholesky(kernel, X, max_rank=100)
    resolvents = on_factor.FactorResolvents.from_factor(factor.L, problem.gram.diagonal())
    s = 1e-3
    correction = on_factor.Correction.at(s, problem, resolvents)
    G = np.linalg.inv(problem.gram.matrix + s * np.eye(N))
    for power, near, added in zip(
        (1, 2), resolvents.diagonals(np.array([s])), correction.on(np.array([s])), strict=True
    ):
        exact = np.diagonal(problem.gram.matrix @ np.linalg.matrix_power(G, power))
        before = np.abs(np.mean(near[:, 0] - exact))
        after = np.abs(np.mean(near[:, 0] + added[:, 0] - exact))
        assert after < 0.1 * before
    own = np.diagonal(problem.gram.matrix @ G)
    for group in range(len(correction.size)):
        some = correction.groups == group
        by_vector = correction.spread[some].mean(axis=0)
        error = by_vector.std(ddof=1) / np.sqrt(len(by_vector))
        lacking = np.mean(own[some] - resolvents.diagonals(np.array([s]))[0][some, 0])
        estimate = correction.size[group] / (correction.distance[group] + s)
        assert abs(lacking - estimate) <= 4 * error


def test_only_defaults_on_many_rows_are_chosen_on_a_factor(monkeypatch):
    monkeypatch.setattr(on_factor, "MIN_ROWS", N)
    X = rows(20)
    mu, dense = KernelMean().fit(X), KernelMean(gram="dense").fit(X)
    assert mu.gram_ == "dense"
    assert "chosen on a low-rank factor of 150 pivots" in mu.gram_reason_
    assert mu.eigenvalues_ is None
    assert mu.choice_.parameter == pytest.approx(dense.choice_.parameter, rel=0.2)
    assert (mu.embedding_ - dense.embedding_).norm() <= 1e-3
    asked = KernelMean(filter="tikhonov", selection=LeaveOneOut(grid=[1e-3, 1e-2])).fit(X)
    assert asked.eigenvalues_ is None
    assert asked.choice_.parameter == 1e-3
    for other in (
        KernelMean(filter="landweber"),
        KernelMean(selection=KFold()),
        KernelMean(filter="tikhonov", selection=GCV()),
    ):
        assert other.fit(X).eigenvalues_ is not None
    weights = np.random.default_rng(0).gamma(1.0, size=N)
    assert KernelMean().fit(X, sample_weight=weights).eigenvalues_ is not None
    assert KernelMean().fit(X.astype(np.float32)).eigenvalues_ is not None


def test_a_factor_multiplies_like_its_matrix():
    X = rows(2, 80)
    kernel, masses = Gaussian(1.0), np.random.default_rng(0).dirichlet(np.ones(80))
    gram = FactorGram.from_factor(pivoted_cholesky(kernel, X, 1e-14), kernel, X, masses)
    whole = DenseGram.from_sample(kernel, X, masses)
    np.testing.assert_allclose(gram.product(np.eye(80)), whole.matrix, atol=1e-14)
    np.testing.assert_allclose(gram.diagonal(), whole.diagonal(), rtol=1e-14)
    problem = FactorProblem(gram)
    assert problem.eigenvalues.shape == (80,)
    np.testing.assert_allclose(problem.eigenvalues, np.linalg.eigvalsh(whole.matrix), atol=1e-14)
