"""Corners where a fast path could be silently wrong, or a refusal unclear."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import gammainc
from threadpoolctl import threadpool_info

import reference
from catalogue import EXACT, NAMES, SAMPLES, SEED
from muhat import Embedding, KernelMean
from muhat.comparison import compare
from muhat.filters import Filter, Landweber, NuMethod
from muhat.kernels import Gaussian, Laplacian, Matern, Precomputed, RationalQuadratic
from muhat.selection import Fixed, KFold, LeaveOneOut, Rate

X = np.random.default_rng(SEED).normal(size=(25, 3))
KERNEL = Gaussian(1.5)
F = reference.features(KERNEL(X))


@pytest.mark.parametrize("power", [3, 8, 12, 16, 30, 100])
@pytest.mark.parametrize("name", ["f-kmse", "iterated-tikhonov"])
def test_a_lambda_far_above_all_eigenvalues_scores_as_the_target_does(name, power):
    score = (
        KernelMean(kernel=KERNEL, filter=name, selection=LeaveOneOut(grid=[10.0**power]))
        .fit(X)
        .choice_.score
    )
    assert score == pytest.approx(
        reference.leave_one_out_score(name, 10.0**power, F, np.ones(25)), rel=EXACT
    )


@pytest.mark.parametrize("filter", [Landweber(eta=1e-17), NuMethod(kappa2=1e18)])
def test_steps_far_too_short_score_as_the_target_does(filter):
    score = (
        KernelMean(kernel=KERNEL, filter=filter, selection=LeaveOneOut(grid=[1, 5]))
        .fit(X)
        .choice_.score
    )
    assert score == pytest.approx(1.0, rel=EXACT)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_exact_however_heavy_one_point_is(name, share):
    weight = np.ones(12)
    weight[3] = 11 * share / (1 - share)
    points = SAMPLES["random"]
    for kernel in (Gaussian(1.5), Gaussian(5.0)):
        choice = KernelMean(kernel=kernel, filter=name).fit(points, sample_weight=weight).choice_
        G = reference.features(kernel(points))
        true = [reference.leave_one_out_score(name, value, G, weight) for value in choice.grid]
        np.testing.assert_allclose(choice.scores, true, rtol=EXACT)


@pytest.mark.parametrize("selection", ["loo", KFold(3)])
def test_masses_so_uneven_that_nothing_is_left_are_refused(selection):
    weight = np.ones(25)
    weight[3] = 1e6
    with pytest.raises(
        ValueError,
        match=r"^sample_weight: at least .* of the mass must be left .* left out, got 0",
    ):
        KernelMean(kernel=KERNEL, selection=selection).fit(X, sample_weight=weight)


@pytest.mark.parametrize("nu", [50.0, 99.0, 101.0, 150.0, 1000.0, 1e5])
def test_matern_kernels_of_large_order_tend_to_the_gaussian(nu):
    points = np.array([[0.0], [1e-9], [0.01], [0.1], [0.5], [1.0], [3.0]])
    gap = np.abs(Matern(1.0, nu=nu)(points) - Gaussian(1.0)(points)).max()
    assert 0.1 / nu < gap < 0.3 / nu


def test_the_expansion_for_large_order_meets_the_bessel_function():
    exponents = -np.geomspace(1e-6, 30, 200)
    just_below, just_above = (
        Matern(1.0, nu=nu)._profile(exponents.copy()) for nu in (100.0, np.nextafter(100.0, 101))
    )
    np.testing.assert_allclose(just_above, just_below, rtol=1e-10)


def test_a_rational_quadratic_kernel_of_large_alpha_is_gaussian():
    points = np.linspace(0, 3, 7)[:, None]
    np.testing.assert_allclose(
        RationalQuadratic(1.0, alpha=1e16)(points), Gaussian(1.0)(points), rtol=1e-12
    )


@dataclass
class OfSciPy(Filter):
    """Written with a special function, which takes real numbers only."""

    def shrinkage(self, gamma, parameter):
        return gammainc(2.0, gamma / parameter)


def test_a_filter_of_special_functions_has_the_score_of_really_leaving_out():
    choice = (
        KernelMean(kernel=KERNEL, filter=OfSciPy(), selection=LeaveOneOut(grid=[0.01]))
        .fit(X)
        .choice_
    )
    true = 0.0
    for i in range(25):
        rest = np.delete(F, i, axis=0)
        values, vectors = np.linalg.eigh(rest.T @ rest / 24)
        shrunk = gammainc(2.0, np.maximum(values, 0) / 0.01)
        true += ((F[i] - vectors @ (shrunk * (vectors.T @ rest.mean(axis=0)))) ** 2).sum() / 25
    assert choice.score == pytest.approx(true, rel=EXACT)


@dataclass
class Undefined(Filter):
    """0/0 at zero."""

    def shrinkage(self, gamma, parameter):
        return 1 - parameter / gamma * (1 - np.exp(-gamma / parameter))


@dataclass
class Complex(Filter):
    """Not a real number."""

    def shrinkage(self, gamma, parameter):
        return gamma / (gamma + 1j * parameter)


@pytest.mark.parametrize("selection", ["loo", "gcv", "kfold", Fixed(0.1)])
@pytest.mark.parametrize("filter", [Undefined(), Complex()])
def test_a_filter_that_is_no_number_is_refused(filter, selection):
    with pytest.raises(ValueError, match="s must be a finite real number for each γ"):
        KernelMean(kernel="linear", filter=filter, selection=selection).fit(X)


def test_a_rate_that_asks_for_endless_iteration_gives_the_empirical_mean():
    mu = KernelMean(kernel=KERNEL, filter="landweber", selection=Rate(1e-30)).fit(X)
    assert mu.choice_.parameter == Landweber.max_iterations
    assert mu.choice_.strength < 1e-6


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern()])
def test_data_of_any_size_have_a_bandwidth(kernel, scale):
    mu = KernelMean(kernel=kernel, filter="f-kmse")
    np.testing.assert_allclose(mu.fit(X * scale).weights_, mu.fit(X).weights_, rtol=1e-6)


@pytest.mark.parametrize("filter", ["kme", "auto"])
def test_rows_further_apart_than_the_largest_float_are_refused(filter):
    rows = np.array([[0.0], [1.5e308], [-1.5e308], [1.0]])
    for kernel in (Gaussian(1.0), Gaussian()):
        with pytest.raises(
            ValueError, match="rows further apart than the largest float; rescale X"
        ):
            KernelMean(kernel=kernel, filter=filter).fit(rows)


def test_a_bandwidth_too_small_for_the_data_is_refused():
    with pytest.raises(ValueError, match="must be finite"):
        KernelMean(kernel=Gaussian(1e-300)).fit(X * 1e20)


def test_precomputed_embeddings_of_one_matrix_are_of_one_space():
    K = KERNEL(X)
    one = KernelMean(kernel="precomputed", filter="kme").fit(K)
    other = pickle.loads(pickle.dumps(KernelMean(kernel="precomputed").fit(K)))
    best, mean = (
        KernelMean(kernel=KERNEL, filter=name).fit(X).embedding_ for name in ("auto", "kme")
    )
    assert one.embedding_.distance(other.embedding_) == pytest.approx(best.distance(mean), rel=1e-6)
    again = KernelMean(kernel=one.kernel_, filter="f-kmse", target=one.embedding_).fit(K)
    assert again.embedding_.distance(one.embedding_) < 1e-7
    assert repr(Precomputed(K)) == "Precomputed(25 × 25 matrix)"
    with pytest.raises(ValueError, match="same kernel"):
        one.embedding_.distance(KernelMean(kernel="precomputed").fit(2 * K).embedding_)


def test_whole_numbers_are_points_too():
    mu = KernelMean(kernel=KERNEL).fit(X)
    np.testing.assert_array_equal(mu.embedding_([[0, 1, 2]]), mu.embedding_([[0.0, 1.0, 2.0]]))
    whole = np.array([[0, 1], [2, 3]])
    for kernel in (Gaussian(1.0), Laplacian(1.0)):
        np.testing.assert_array_equal(kernel(whole), kernel(whole.astype(float)))


def test_points_and_targets_of_another_width_are_refused():
    with pytest.raises(
        ValueError, match=r"same number of features are needed, got shapes \(1, 2\) and \(25, 3\)"
    ):
        KernelMean(kernel=KERNEL).fit(X).embedding_([[0.0, 1.0]])
    target = Embedding(KERNEL, np.ones((2, 2)), np.ones(2))
    with pytest.raises(
        ValueError, match="the target's points must have 3 features, as X has, got 2"
    ):
        KernelMean(kernel=KERNEL, target=target).fit(X)


def test_a_grid_may_be_an_array_in_a_comparison():
    grid = np.array([0.1, 1.0])
    comparison = compare(
        X, filters=["f-kmse", "iterated-tikhonov"], selection=LeaveOneOut(grid=grid)
    )
    np.testing.assert_array_equal(comparison["f-kmse"].grid, grid)


def test_fits_in_several_threads_leave_blas_as_it_was():
    before = [library["num_threads"] for library in threadpool_info()]
    points = np.random.default_rng(SEED).normal(size=(330, 3))
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda n: KernelMean(filter="f-kmse").fit(points[: 300 + n]), range(18)))
    assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"kernel": Gaussian},
            "an object is needed, got the class Gaussian; create an object by calling the class",
        ),
        ({"kernel": Gaussian(np.array([1.0, 2.0]))}, "bandwidth must be positive"),
        ({"kernel": Matern(1.0, nu="a")}, "nu must be positive and finite, or infinity, got 'a'"),
        ({"filter": "f-kmse", "selection": KFold("a")}, "n_splits must be a whole number"),
        (
            {"filter": "f-kmse", "selection": KFold(3, random_state="a")},
            "random_state must be a whole number",
        ),
        ({"filter": "f-kmse", "selection": Fixed("a")}, "λ must be positive and finite"),
        (
            {"filter": "landweber", "selection": LeaveOneOut(grid=[np.inf])},
            "whole number from 1 to",
        ),
    ],
)
def test_parameters_of_a_wrong_kind_are_refused_in_one_sentence(parameters, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence) as refused:
        KernelMean(**parameters).fit(X)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sample",
    [X + 1j, X.astype("datetime64[s]"), np.array([["a", "b"], ["c", "d"]])],
    ids=["complex", "dates", "text"],
)
def test_samples_of_a_wrong_kind_are_refused_in_one_line(sample):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 — the line is what is tested
        KernelMean().fit(sample)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("weight", [["a"] * 25, np.ones(25) + 1j])
def test_weights_of_a_wrong_kind_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight must be real numbers"):
        KernelMean().fit(X, sample_weight=weight)
