"""The matrix-free Gram: every route against the dense one, what it costs, and what it refuses."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.utils.estimator_checks import parametrize_with_checks

from catalogue import KERNELS, SAMPLES, SEED
from muhat import Embedding, KernelMean
from muhat.errors import MuhatError
from muhat.filters import Filter, Landweber, TruncatedSVD
from muhat.gram import BlockGram, BlockProblem, DenseGram
from muhat.kernels import Function, Gaussian, Linear, Polynomial
from muhat.selection import GCV, Fixed, KFold, LeaveOneOut, Rate
from muhat.selection import _krylov as krylov

SAME = 1e-10
SMOOTH = ("kme", "s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method")
PARAMETERS = {
    "s-kmse": (0.3,),
    "f-kmse": (1e-5, 1e-2, 1.0),
    "iterated-tikhonov": (1e-5, 1e-2, 1.0),
    "landweber": (1, 30, 100_000),
    "nu-method": (1, 12, 300),
    "tsvd": (1e-3, 0.05, 10.0),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*is at the end of its grid")

KERNEL = Gaussian(1.7)


def sample(n, d=4, seed=SEED):
    return np.random.default_rng(seed).normal(size=(n, d))


def elsewhere(kernel, d=4):
    rng = np.random.default_rng(SEED + 1)
    return Embedding(kernel, rng.normal(size=(5, d)), rng.normal(size=5) / 5)


def indefinite(X, Y):
    return Gaussian(0.3)(X, Y) - 0.1 * Gaussian(3.0)(X, Y)


def both(X, weight=None, **options):
    return [
        KernelMean(gram=gram, **options).fit(X, sample_weight=weight)
        for gram in ("dense", "blocks")
    ]


@dataclass
class Smooth(Filter):
    """A user's own filter, which keeps a part of what has no variance."""

    def shrinkage(self, gamma, parameter):
        return 0.25 + 0.75 * gamma / (gamma + parameter)


@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_the_matrix(name):
    X, masses = sample(20, 3), np.random.default_rng(SEED).dirichlet(np.ones(20))
    dense, blocks = (kind.from_sample(KERNELS[name], X, masses) for kind in (DenseGram, BlockGram))
    for vectors in (X, X[:, 0]):
        np.testing.assert_allclose(
            blocks.product(vectors), dense.product(vectors), rtol=1e-11, atol=1e-13
        )
    np.testing.assert_allclose(blocks.diagonal(), dense.diagonal(), rtol=1e-12)


@pytest.mark.parametrize("n", [30, 200])
def test_leading_eigenpairs_are_those_of_the_spectrum(n):
    dense, blocks = (kind.from_sample(KERNEL, sample(n)) for kind in (DenseGram, BlockGram))
    pairs = blocks.leading(7)
    np.testing.assert_allclose(pairs.gamma, dense.spectrum().gamma[-7:], rtol=1e-12)
    assert (
        np.linalg.norm(blocks.product(pairs.U) - pairs.gamma * pairs.U, axis=0).max()
        < 1e-13 * pairs.largest
    )
    assert BlockProblem(blocks).largest_eigenvalue == pytest.approx(
        dense.spectrum().largest, rel=1e-13
    )
    assert BlockProblem(blocks).trace == pytest.approx(dense.spectrum().trace, rel=1e-13)


@pytest.mark.parametrize("kind", ["plain", "weights", "weights and a target"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_given_parameters_give_the_dense_weights(name, kind):
    X = sample(150)
    weight = None if kind == "plain" else np.random.default_rng(SEED).uniform(0.2, 2, size=len(X))
    target = elsewhere(KERNEL) if "target" in kind else None
    for parameter in PARAMETERS[name]:
        options = {"kernel": KERNEL, "filter": name, "target": target}
        rule = GCV([parameter]) if name == "tsvd" else LeaveOneOut([parameter])  # by the spectrum
        dense = KernelMean(selection=rule, **options)
        dense.fit(X, sample_weight=weight)
        blocks = KernelMean(gram="blocks", selection=Fixed(parameter), **options).fit(
            X, sample_weight=weight
        )
        np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)
        np.testing.assert_allclose(
            blocks.choice_.strength, dense.choice_.strength, rtol=1e-6, atol=1e-7
        )
        if not dense.filter_.constant:
            assert blocks.choice_.residual < SAME
        values = [mu.embedding_(sample(5, seed=1)) for mu in (blocks, dense)]
        np.testing.assert_allclose(*values, atol=SAME)


@pytest.mark.parametrize(
    "sample_name", ["duplicated", "rank deficient", "two points", "three points", "huge"]
)
@pytest.mark.parametrize("name", PARAMETERS)
def test_given_parameters_give_the_dense_weights_on_hard_samples(name, sample_name):
    X = SAMPLES[sample_name]
    for kernel in (Gaussian(1.3), Polynomial(2, gamma=0.1), Linear()):
        if sample_name == "huge" and not isinstance(kernel, Gaussian):
            continue
        for parameter in PARAMETERS[name]:
            dense, blocks = both(X, kernel=kernel, filter=name, selection=Fixed(parameter))
            np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)


@pytest.mark.parametrize("name", ["f-kmse", "nu-method", "landweber"])
@pytest.mark.parametrize("with_target", [False, True])
def test_float32_stays_float32_and_close_to_float64(name, with_target):
    X = sample(200).astype(np.float32)
    target = np.random.default_rng(SEED).normal(size=200) / 200 if with_target else None
    options = {"kernel": KERNEL, "filter": name, "gram": "blocks", "target": target}
    one = KernelMean(**options).fit(X)
    other = KernelMean(**options).fit(X.astype(np.float64))
    assert one.weights_.dtype == np.float32
    np.testing.assert_allclose(one.choice_.scores, other.choice_.scores, rtol=1e-4)
    assert one.choice_.residual < 1e-5
    fixed = [
        KernelMean(**{**options, "selection": Fixed(PARAMETERS[name][1])}).fit(Z)
        for Z in (X, X.astype(float))
    ]
    np.testing.assert_allclose(fixed[0].weights_, fixed[1].weights_, atol=1e-6)


@pytest.mark.parametrize(
    "kind", ["plain", "weights", "weights and a target", "a target on the sample"]
)
@pytest.mark.parametrize("name", [*SMOOTH, "own"])
def test_k_fold_scores_weights_and_choice_are_the_dense_ones(name, kind):
    X = sample(103)
    rng = np.random.default_rng(SEED)
    weight = rng.uniform(0.2, 2, size=len(X)) if "weights" in kind else None
    target = {
        "weights and a target": elsewhere(KERNEL),
        "a target on the sample": rng.normal(size=len(X)) / 100,
    }
    filter = Smooth() if name == "own" else name
    rule = KFold(4, random_state=2)
    dense, blocks = both(
        X, weight, kernel=KERNEL, filter=filter, selection=rule, target=target.get(kind)
    )
    np.testing.assert_allclose(blocks.choice_.grid, dense.choice_.grid, rtol=1e-9)
    np.testing.assert_allclose(blocks.choice_.scores, dense.choice_.scores, rtol=SAME)
    np.testing.assert_allclose(blocks.choice_.strengths, dense.choice_.strengths, atol=1e-9)
    assert blocks.choice_.index == dense.choice_.index
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)
    assert blocks.eigenvalues_ is None


@pytest.mark.parametrize(
    "sample_name", ["duplicated", "rank deficient", "a constant column", "one feature"]
)
@pytest.mark.parametrize("name", SMOOTH)
def test_k_fold_scores_are_the_dense_ones_on_hard_samples(name, sample_name):
    X = SAMPLES[sample_name]
    for kernel in (Gaussian(1.3), Polynomial(2, gamma=0.1)):
        dense, blocks = both(X, kernel=kernel, filter=name, selection=KFold(3))
        scale = float(np.mean(kernel.diagonal(X)))
        np.testing.assert_allclose(
            blocks.choice_.scores, dense.choice_.scores, rtol=SAME, atol=SAME * scale
        )


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(
        np.float64, st.tuples(st.integers(4, 12), st.integers(1, 2)), elements=st.integers(-3, 3)
    ),
    name=st.sampled_from(SMOOTH),
    weighted=st.booleans(),
)
def test_k_fold_scores_are_the_dense_ones_whatever_the_sample(X, name, weighted):
    weight = 1.0 + np.arange(len(X)) % 3 if weighted else None
    dense, blocks = both(X, weight, kernel=KERNEL, filter=name, selection=KFold(3))
    np.testing.assert_allclose(blocks.choice_.grid, dense.choice_.grid, rtol=1e-9)
    np.testing.assert_allclose(blocks.choice_.scores, dense.choice_.scores, atol=SAME)
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_points_that_are_all_one_are_fitted_like_the_dense_ones(name):
    dense, blocks = both(np.ones((9, 2)), kernel=Gaussian(1.0), filter=name, selection="kfold")
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)


@pytest.mark.parametrize("n", [8, 100])
def test_a_kernel_that_is_zero_everywhere_is_fitted(n):
    for name in (*SMOOTH, "tsvd"):
        mu = KernelMean(kernel=Linear(), filter=name, gram="blocks").fit(np.zeros((n, 2)))
        assert np.isfinite(mu.weights_).all()


def test_two_points_are_enough_for_every_filter():
    for name in ("auto", *SMOOTH, "tsvd"):
        mu = KernelMean(kernel=KERNEL, filter=name, gram="blocks").fit(sample(2))
        assert np.isfinite(mu.weights_).all()


@pytest.mark.parametrize("name", ["kme", "s-kmse"])
def test_constant_filters_keep_their_exact_leave_one_out(name):
    dense, blocks = both(sample(80), kernel=KERNEL, filter=name)
    assert isinstance(blocks.rule_, LeaveOneOut)
    np.testing.assert_allclose(blocks.choice_.scores, dense.choice_.scores, rtol=SAME)
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=1e-14)


def test_leave_one_out_of_others_becomes_k_fold_with_the_same_grid():
    mu = KernelMean(
        kernel=KERNEL, filter="f-kmse", selection=LeaveOneOut(grid=[0.1, 1]), gram="blocks"
    ).fit(sample(60))
    assert isinstance(mu.rule_, KFold)
    np.testing.assert_array_equal(mu.choice_.grid, [0.1, 1])
    other = KernelMean(kernel=KERNEL, filter="f-kmse", selection=KFold(grid=[0.1, 1])).fit(
        sample(60)
    )
    np.testing.assert_allclose(mu.choice_.scores, other.choice_.scores, rtol=SAME)
    assert (
        KernelMean(kernel=KERNEL, filter="f-kmse", gram="blocks").fit(sample(3)).rule_.n_splits == 3
    )


@pytest.mark.parametrize("with_target", [False, True])
def test_truncated_svd_is_chosen_by_gcv_on_leading_eigenpairs(with_target):
    X = sample(300, 2)
    options = {
        "kernel": KERNEL,
        "filter": "tsvd",
        "target": elsewhere(KERNEL, 2) if with_target else None,
    }
    mu = KernelMean(gram="blocks", **options).fit(X)
    assert isinstance(mu.rule_, GCV)
    assert 1 < len(mu.choice_.grid) <= 100
    large = mu.choice_.grid > 1e-7  # what is behind smaller ones is rounding, on either route
    dense = KernelMean(selection=GCV(mu.choice_.grid[large]), **options).fit(X)
    np.testing.assert_allclose(mu.choice_.scores[large], dense.choice_.scores, rtol=1e-5)
    given = both(X, selection=GCV([0.01, 0.05]), **options)
    np.testing.assert_allclose(given[0].weights_, given[1].weights_, atol=SAME)
    assert mu.choice_.residual < 1e-12


def test_all_smooth_filters_compete_and_share_their_products():
    filters = ["kme", "s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method"]
    dense, blocks = both(sample(60), kernel=KERNEL, selection="kfold", filter=filters)
    assert len(blocks.choices_) == len(filters)
    for one, other in zip(blocks.choices_, dense.choices_, strict=False):
        np.testing.assert_allclose(one.scores, other.scores, rtol=SAME)


@pytest.mark.parametrize("selection", [Fixed(0.1), Rate(), "kfold"])
def test_a_filter_of_the_users_own_runs_on_blocks(selection):
    dense, blocks = both(
        sample(90), kernel=KERNEL, filter=Smooth(), selection=selection, target=elsewhere(KERNEL)
    )
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)


def test_a_matrix_known_beforehand_may_be_held_in_blocks():
    dense, blocks = both(
        KERNEL(sample(40)), kernel="precomputed", filter="f-kmse", selection="kfold"
    )
    np.testing.assert_allclose(blocks.weights_, dense.weights_, atol=SAME)


@pytest.fixture(autouse=True)
def grids_as_they_are(monkeypatch):
    """Products with A alone do not refine grids: both routes are compared on the same."""
    monkeypatch.setattr("muhat.selection._base.MAX_REFINEMENTS", 0)


@pytest.fixture
def products(monkeypatch):
    """The number of columns of every product that is taken."""
    taken, product = [], BlockGram.product

    def counted(self, vectors):
        taken.append(1 if vectors.ndim == 1 else vectors.shape[1])
        return product(self, vectors)

    monkeypatch.setattr(BlockGram, "product", counted)
    return taken


def test_the_nu_method_with_its_selection_takes_a_product_an_iteration_and_two_more(products):
    mu = KernelMean(kernel=KERNEL, filter="nu-method", gram="blocks").fit(sample(400))
    assert len(products) <= mu.choice_.grid.max() + 2
    assert max(products) == 6


def test_a_given_parameter_takes_few_products(products):
    KernelMean(kernel=KERNEL, filter="nu-method", gram="blocks", selection=Fixed(20)).fit(
        sample(400)
    )
    assert len(products) <= 22
    products.clear()
    KernelMean(kernel=KERNEL, filter="landweber", gram="blocks", selection=Fixed(1000)).fit(
        sample(400)
    )
    assert len(products) < 200
    products.clear()
    KernelMean(kernel=KERNEL, filter="s-kmse", gram="blocks").fit(sample(400))
    assert len(products) == 1


def test_memory_stays_far_below_that_of_the_matrix():
    X = sample(8000, 3).astype(np.float32)
    tracemalloc.start()
    KernelMean(
        kernel=KERNEL, filter="nu-method", gram="blocks", selection=KFold(3, grid=[1, 4, 8])
    ).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8000**2 * 4 / 8


def test_bases_stay_within_the_memory_that_is_allowed(monkeypatch):
    monkeypatch.setattr(krylov, "MAX_BASIS_BYTES", 6 * 200 * 8 * 20)
    with pytest.warns(UserWarning, match="has not converged after 20 products"):
        mu = KernelMean(
            kernel=KERNEL, filter=Landweber(), gram="blocks", selection=KFold(grid=[10**6])
        ).fit(sample(200))
    assert mu.choice_.residual > SAME
    monkeypatch.setattr(krylov, "MAX_BASIS_BYTES", 200 * 8 * 20)
    with pytest.warns(UserWarning, match=r"Fixed: Tikhonov.* relative error is about"):
        KernelMean(kernel=KERNEL, filter="f-kmse", gram="blocks", selection=Fixed(1e-8)).fit(
            sample(200)
        )


@pytest.mark.filterwarnings("ignore:.*has not converged")
@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [("f-kmse", 1e-3), ("f-kmse", 1e-6), ("iterated-tikhonov", 1e-2), ("landweber", 10**6)],
)
def test_the_reported_residual_is_no_less_than_the_error(name, parameter, with_target, monkeypatch):
    X, target = sample(200), elsewhere(KERNEL) if with_target else None
    mu = KernelMean(
        kernel=KERNEL, filter=name, gram="blocks", selection=Fixed(parameter), target=target
    )
    true = mu.fit(X).weights_
    for steps in (5, 10, 20, 30):
        monkeypatch.setattr(krylov, "MAX_BASIS_BYTES", 200 * 8 * steps)
        mu.fit(X)
        error = np.linalg.norm(mu.weights_ - true) / np.linalg.norm(true)
        assert error <= mu.choice_.residual
        assert steps > 5 or error > 1e-8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"filter": "componentwise"},
            "LeaveOneOut needs all eigenpairs for Componentwise.*gram='dense'",
        ),
        ({"filter": "f-kmse", "selection": "gcv"}, "GCV needs all eigenpairs.*selection='kfold'"),
        (
            {"filter": "tsvd", "selection": "kfold"},
            "KFold needs all eigenpairs for TruncatedSVD.*gram='dense'",
        ),
        ({"filter": "auto", "selection": "gcv"}, "GCV needs all eigenpairs"),
        (
            {"filter": "f-kmse", "kernel": lambda X, Y: -X @ Y.T},
            "positive semi-definite.*a quadratic form",
        ),
        ({"filter": "f-kmse", "kernel": indefinite}, "positive semi-definite.*an eigenvalue of"),
        (
            {"filter": "f-kmse", "kernel": Function(lambda X, Y: X[:, :1] + 0 * Y[:, 0])},
            "k.x, y. = k.y, x. is needed",
        ),
        ({"filter": "kme", "kernel": Polynomial(300, gamma=1e3)}, "values k.x, y. must be finite"),
    ],
)
def test_what_products_do_not_give_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        KernelMean(gram="blocks", **options).fit(sample(30))


def test_a_threshold_that_keeps_too_many_components_is_refused(monkeypatch):
    monkeypatch.setattr(krylov, "MAX_BASIS_BYTES", 3 * 200 * 8 * 10)
    with pytest.raises(ValueError, match="at most 10 components"):
        KernelMean(kernel=KERNEL, filter="tsvd", gram="blocks", selection=Fixed(1e-9)).fit(
            sample(200)
        )


class SoftThreshold(TruncatedSVD):
    """A filter that is not 0 or 1, and wrongly says that leading eigenpairs are enough."""

    def shrinkage(self, gamma, parameter):
        return np.clip(gamma / parameter, 0.0, 1.0)


@pytest.mark.parametrize("rule", [Fixed(0.05), GCV(), GCV([0.05, 0.2])])
def test_a_filter_between_0_and_1_cannot_be_computed_from_leading_eigenpairs(rule):
    mean = KernelMean(kernel=KERNEL, filter=SoftThreshold(), gram="blocks", selection=rule)
    with pytest.raises(MuhatError, match=r"needs = Access\.LEADING is for filters"):
        mean.fit(sample(60))


@parametrize_with_checks([KernelMean(gram="blocks"), KernelMean(gram="blocks", filter="tsvd")])
@pytest.mark.filterwarnings("ignore:bandwidth='median'")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)
