"""Kernels: their values, their bandwidth, their algebra and where they may come from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import reference
from catalogue import KERNELS, SAMPLES, SEED
from muhat import KernelMean
from muhat import kernels as muhat_kernels
from muhat._parts import as_kernel
from muhat.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Mixture,
    Precomputed,
    SklearnKernel,
    _radial,
)
from muhat.kernels._radial import median_distance

ACCURATE = 1e-12


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "sample", ["random", "duplicated", "one feature", "more features than rows"]
)
def test_a_gram_matrix_has_the_values_of_the_definition(name, sample):
    kernel, X = KERNELS[name], SAMPLES[sample]
    K = kernel(X)
    true = np.array([[reference.kernel_value(kernel, x, y) for y in X] for x in X])
    np.testing.assert_allclose(K, true, rtol=1e-9 if "matern" in name else 1e-11, atol=ACCURATE)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(K), rtol=1e-13)
    np.testing.assert_allclose(kernel(X[:2], X), K[:2], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_close_together_have_the_values_of_the_definition(name):
    kernel = KERNELS[name]
    steps = np.array([0.0, 1e-10, 1e-8, 1e-6, 1e-4])
    X = np.column_stack([steps, -steps]) + np.array([[3.0, 4.0]])
    X = np.vstack([X, -X])  # the centre, from which rows are measured, is in neither cluster
    true = np.array([[reference.kernel_value(kernel, x, y) for y in X] for x in X])
    np.testing.assert_allclose(kernel(X), true, rtol=1e-9 if "matern" in name else 1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_a_gram_matrix_is_positive_semidefinite_and_within_its_bound(name):
    K = KERNELS[name](SAMPLES["random"])
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.abs(K).max()
    assert np.diagonal(K).max() <= KERNELS[name].bound * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 191, 192, 193, 500])
def test_tiles_fill_the_whole_matrix_whatever_its_size(n):
    X = np.random.default_rng(SEED).normal(size=(n, 4))
    np.testing.assert_allclose(
        Gaussian(1.7)(X), rbf_kernel(X, gamma=1 / (2 * 1.7**2)), atol=ACCURATE
    )
    np.testing.assert_allclose(
        Gaussian(1.7)(X, X[:3]), rbf_kernel(X, X[:3], gamma=1 / (2 * 1.7**2)), atol=ACCURATE
    )
    np.testing.assert_allclose(Laplacian(2.0)(X), laplacian_kernel(X, gamma=0.5), atol=ACCURATE)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("spread", [1.0, 1e3, 1e6])
def test_the_gaussian_gram_is_accurate_far_from_the_origin_and_for_clusters_far_apart(
    offset, spread
):
    rng = np.random.default_rng(SEED)
    X = offset + np.concatenate([rng.normal(size=(20, 3)), spread + rng.normal(size=(20, 3))])
    true = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1) / 2)
    np.testing.assert_allclose(Gaussian(1.0)(X), true, atol=ACCURATE)


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "linear", "polynomial"])
def test_points_with_other_features_are_refused(name):
    kernel, X = as_kernel(name).resolve(SAMPLES["random"]), SAMPLES["random"]
    for rows, columns in ((X[:, :1], X), (X, X[:, :2])):
        with pytest.raises(
            ValueError, match="points with the same number of features are needed, got shapes"
        ):
            kernel(rows, columns)
        with pytest.raises(
            ValueError, match="points with the same number of features are needed, got shapes"
        ):
            kernel.product(rows, np.ones(len(columns)), columns)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1e-300), Laplacian(1e-300), Matern(1e-300), Matern(1e-300, 2.5)], ids=str
)
def test_points_further_apart_than_a_float_have_nothing_in_common(kernel):
    X = np.array([[0.0], [0.0], [1.0], [3.0]])
    true = np.kron(np.diag([1, 0, 0]), np.ones((2, 2)))[:4, :4]
    true[2:, 2:] = np.eye(2)
    np.testing.assert_array_equal(kernel(X), true)
    np.testing.assert_array_equal(kernel.product(X, np.eye(4)), true)


def test_no_median_is_learnt_from_rows_further_apart_than_the_largest_float():
    with pytest.raises(
        ValueError,
        match=r"^kernel: bandwidth='median' needs distances that are finite.*rescale X\.$",
    ):
        Gaussian().resolve(np.array([[1.7e308], [-1.7e308], [0.0]]))


def test_equal_rows_have_the_value_one_exactly_where_the_profile_has_a_kink():
    X = np.repeat(np.random.default_rng(SEED).normal(size=(3, 5)) * 7, 2, axis=0)
    for kernel in (Matern(1.0, nu=0.5), Laplacian(1.0)):
        assert np.all(kernel(X)[0::2, 1::2].diagonal() == 1)


@pytest.mark.parametrize("name", KERNELS)
def test_float32_stays_float32_and_is_as_accurate_as_it_can_be(name):
    X = SAMPLES["random"].astype(np.float32)
    K = KERNELS[name](X)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, KERNELS[name](X.astype(np.float64)), rtol=2e-5, atol=2e-5)


def test_an_infinitely_smooth_matern_kernel_is_gaussian_and_a_half_one_is_exponential():
    X = SAMPLES["random"]
    np.testing.assert_allclose(Matern(1.2, nu=np.inf)(X), Gaussian(1.2)(X), rtol=1e-13)
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))
    np.testing.assert_allclose(Matern(1.2, nu=0.5)(X), np.exp(-distances / 1.2), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.8, 3.7])
def test_a_matern_kernel_vanishes_however_far_points_are_apart(nu):
    for gap in (1e3, 1e9, 1e12, 1e100):
        np.testing.assert_array_equal(Matern(1.0, nu=nu)(np.array([[0.0], [gap]])), np.eye(2))


def test_scikit_learns_gamma_is_refused_with_the_bandwidth_that_it_is():
    with pytest.raises(TypeError, match=r"got gamma=0.5; give bandwidth=\(2 \* gamma\) \*\* -0.5"):
        Gaussian(gamma=0.5)
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(Gaussian((2 * 0.3) ** -0.5)(X), rbf_kernel(X, gamma=0.3))


def test_the_bandwidth_is_the_median_of_the_pairs():
    X = SAMPLES["random"]
    pairs = [((X[i] - X[j]) ** 2).sum() for i in range(len(X)) for j in range(i + 1, len(X))]
    assert Gaussian().resolve(X).bandwidth == pytest.approx(np.sqrt(np.median(pairs)), rel=1e-13)
    city = [np.abs(X[i] - X[j]).sum() for i in range(len(X)) for j in range(i + 1, len(X))]
    assert Laplacian().resolve(X).bandwidth == pytest.approx(np.median(city), rel=1e-13)


def test_beyond_its_limit_the_median_comes_from_seeded_pairs(monkeypatch):
    X = np.random.default_rng(SEED).normal(size=(400, 3))
    exact = median_distance(X, "euclidean")
    monkeypatch.setattr(_radial, "MAX_ROWS_ALL_PAIRS", 100)
    sampled = median_distance(X, "euclidean")
    assert sampled == median_distance(X, "euclidean")
    assert sampled == pytest.approx(exact, rel=5e-3)
    assert median_distance(X, "cityblock") == pytest.approx(
        np.median([np.abs(X[i] - X[j]).sum() for i in range(400) for j in range(i)]), rel=5e-3
    )


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(np.float64, (6, 2), elements=st.floats(-10, 10, width=32), unique=True),
    power=st.integers(-150, 150),
)
def test_the_bandwidth_scales_with_the_data_however_large_or_small(X, power):
    scale = 10.0**power
    one, other = median_distance(X, "cityblock"), median_distance(X * scale, "cityblock")
    assert other == pytest.approx(one * scale, rel=1e-9)
    assert np.isfinite(Gaussian().resolve(X * scale)(X * scale)).all()


def test_a_zero_median_falls_back_on_the_pairs_that_differ_and_says_so():
    X = np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])
    with pytest.warns(UserWarning, match="more than half of the pairs of rows are equal; using 3"):
        assert Gaussian().resolve(X).bandwidth == 3.0
    with pytest.warns(UserWarning, match="all rows are equal; using 1"):
        assert (
            Gaussian().resolve(np.full((3, 2), 0.00075)).bandwidth == 1.0
        )  # whose mean is not 0.00075


def test_kernels_clone_and_give_their_parameters():
    for kernel in KERNELS.values():
        assert clone(kernel) == kernel
    nested = Gaussian(1.0) + 2.0 * Matern(3.0)
    assert nested.get_params()["right__kernel__bandwidth"] == 3.0
    nested.set_params(left__bandwidth=5.0)
    assert nested.left.bandwidth == 5.0


def test_parts_of_a_composite_are_resolved_and_the_original_is_left_alone():
    X = SAMPLES["random"]
    kernel = Gaussian() * Laplacian() + 0.5 * Matern()
    resolved = kernel.resolve(X)
    assert resolved.left.left.bandwidth == Gaussian().resolve(X).bandwidth
    assert kernel.left.left.bandwidth == "median"


def test_kernels_from_elsewhere_give_the_same_matrix():
    X = SAMPLES["random"]
    true = Gaussian(1.5)(X)
    gamma = 1 / (2 * 1.5**2)
    by_rows = Function(lambda x, y: float(np.exp(-gamma * ((x - y) ** 2).sum())), rows=True)
    for kernel in (
        SklearnKernel(RBF(1.5)),
        Function(lambda X, Y: rbf_kernel(X, Y, gamma=gamma)),
        by_rows,
    ):
        np.testing.assert_allclose(kernel(X), true, atol=ACCURATE)
        np.testing.assert_allclose(kernel(X[:3], X), true[:3], atol=ACCURATE)
        np.testing.assert_allclose(kernel.diagonal(X), np.ones(len(X)))
        assert not kernel.positive_semidefinite


def test_names_and_objects_become_kernels():
    assert as_kernel("rbf") == Gaussian()
    assert as_kernel("cosine") == Function("cosine")
    assert isinstance(as_kernel(RBF(1.0)), SklearnKernel)
    assert isinstance(as_kernel(lambda X, Y: X @ Y.T), Function)
    assert as_kernel(Gaussian(2.0)).bandwidth == 2.0


def test_a_matrix_of_its_own_is_a_kernel_of_row_numbers():
    K = Gaussian(1.0)(SAMPLES["random"])
    kernel = Precomputed(K)
    rows = np.array([[2], [0]])
    np.testing.assert_array_equal(kernel(rows), K[np.ix_([2, 0], [2, 0])])
    np.testing.assert_array_equal(kernel.diagonal(rows), [1, 1])


@dataclass
class Own(Kernel):
    """A kernel of a user's own, which has not been proven to be one."""

    sign: float = 1.0

    def __call__(self, X, Y=None):
        return self.sign * Gaussian(1.0)(X, Y)

    def diagonal(self, X):
        return self.sign * np.ones(len(X))


def test_a_kernel_of_your_own_is_checked_by_its_eigenvalues_unless_it_says_that_it_is_proven():
    X = SAMPLES["random"]
    assert not Own().positive_semidefinite
    assert not (Own() + Gaussian(1.0)).positive_semidefinite
    assert all(kernel.positive_semidefinite for kernel in KERNELS.values())
    np.testing.assert_array_equal(
        KernelMean(kernel=Own(), filter="kme").fit(X).weights_, np.full(len(X), 1 / len(X))
    )
    with pytest.raises(ValueError, match="the Gram matrix must be positive semi-definite"):
        KernelMean(kernel=Own(-1.0), filter="kme").fit(X)


@pytest.mark.parametrize("kind", [np.ndarray.tolist, pd.DataFrame])
@pytest.mark.parametrize(
    "kernel", [*KERNELS.values(), Function("rbf"), SklearnKernel(RBF(1.5))], ids=str
)
def test_lists_and_data_frames_are_points(kernel, kind):
    X, Y = SAMPLES["random"], SAMPLES["random"][:5] + 1
    np.testing.assert_allclose(kernel(kind(X)), kernel(X), rtol=ACCURATE)
    np.testing.assert_allclose(kernel(kind(X), kind(Y)), kernel(X, Y), rtol=ACCURATE)
    np.testing.assert_allclose(kernel.diagonal(kind(X)), kernel.diagonal(X), rtol=ACCURATE)
    product = kernel.product(kind(X), np.ones(5), kind(Y))
    np.testing.assert_allclose(product, kernel.product(X, np.ones(5), Y), rtol=ACCURATE)


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Gaussian() + Matern()], ids=str)
def test_a_bandwidth_is_learnt_from_a_data_frame(kernel):
    X = SAMPLES["random"]
    frame = pd.DataFrame(X).assign(whole=np.arange(len(X)))
    assert kernel.resolve(frame) == kernel.resolve(frame.to_numpy())


@pytest.mark.parametrize(
    "points",
    [np.zeros(3), [1.0, 2.0], [[1.0], [2.0, 3.0]], [["a"]], np.zeros((1, 1, 1)), [[1j]], None],
    ids=repr,
)
def test_what_is_no_list_of_points_is_refused_in_one_sentence(points):
    for ask in (
        Gaussian().resolve,
        Gaussian(1.0),
        Linear().diagonal,
        lambda X: Matern(1.0).product(X, np.ones(3)),
    ):
        with pytest.raises(
            ValueError, match="kernel: points must be real numbers in two dimensions, one"
        ):
            ask(points)


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda X, Y: X[0] @ Y[0], r"shape \(\) and type float64"),
        (lambda X, Y: X[:, 99] * Y[:, 99], "IndexError: index 99 is out of bounds"),
        (lambda X, Y: X @ Y, "ValueError: matmul"),
        (lambda X, Y: None, r"shape \(\) and type object"),
        (lambda X, Y: [["a"] * len(Y)] * len(X), "type <U1"),
        (lambda X, Y: 1j * (X @ Y.T), "type complex128"),
        (lambda x: 1.0, r"TypeError: .* takes 1 positional argument but 2 were given"),
    ],
)
def test_a_function_that_gives_no_matrix_is_refused_in_one_sentence(function, got):
    needed = r"^Function: real numbers of shape \(12, 12\) must be .*"
    sentence = rf"{needed}, got .*{got}.*; if it is a function"
    for ask in (Function(function), KernelMean(kernel=function).fit):
        with pytest.raises(ValueError, match=sentence):
            ask(SAMPLES["random"])
    with pytest.raises(ValueError, match="with rows=True the function takes two rows"):
        Function(lambda x, y: x[99], rows=True)(SAMPLES["random"])


def test_a_function_of_whole_numbers_keeps_its_fractions():
    X = np.array([[0], [1]])
    np.testing.assert_allclose(Function(Gaussian(1.0))(X), Gaussian(1.0)(X))
    assert Function(Linear())(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("rows", [[[0.5]], [[3]], [[-1]], [[0, 1]]], ids=str)
def test_a_matrix_is_only_asked_for_rows_that_it_has(rows):
    with pytest.raises(
        ValueError, match="Precomputed: points must be row numbers, integers below 3 in one column"
    ):
        Precomputed(np.eye(3))(rows)


def test_every_public_kernel_is_in_the_catalogue():
    tested = {type(kernel) for kernel in KERNELS.values()} | {
        Function,
        SklearnKernel,
        Precomputed,
        Kernel,
    }
    public = [getattr(muhat_kernels, name) for name in muhat_kernels.__all__]
    assert {
        part for part in public if isinstance(part, type) and issubclass(part, Kernel)
    } <= tested


@pytest.mark.parametrize("name", [name for name, each in KERNELS.items() if each.has_frequencies])
def test_frequencies_have_the_law_that_the_kernel_is_the_transform_of(name):
    kernel, rng = KERNELS[name], np.random.default_rng(5)
    X = rng.normal(size=(12, 2))
    frequencies = kernel.draw_frequencies(rng, (200_000, 2))
    phases = X @ frequencies.T
    mean = (np.cos(phases) @ np.cos(phases).T + np.sin(phases) @ np.sin(phases).T) / 200_000
    np.testing.assert_allclose(kernel.bound * mean, kernel(X), atol=0.012 * kernel.bound)


@pytest.mark.parametrize(
    "name", [name for name, each in KERNELS.items() if each.has_gaussian_means]
)
def test_the_mean_of_a_narrow_gaussian_is_the_kernel_at_its_centre(name):
    kernel, rng = KERNELS[name], np.random.default_rng(6)
    X, centre = rng.normal(size=(12, 2)), np.array([[0.3, -0.8]])
    narrow = Mixture([1.0], centre, [1e-10 * np.eye(2)])
    np.testing.assert_allclose(narrow.mean(kernel, X), kernel(X, centre)[:, 0], rtol=1e-4)
