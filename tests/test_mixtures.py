"""Kernel means of Gaussian mixtures: closed forms against draws, quadrature and the paper."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat import KernelMean
from muhat._arrays import Array
from muhat.embedding import Embedding
from muhat.gram import RandomFeatures
from muhat.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Mixture,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)

SEED = 7
DRAWS = 100_000
STANDARD_ERRORS = 5
EXACT = 1e-10

KERNELS = {
    "gaussian": Gaussian(1.3),
    "wide gaussian": Gaussian(20.0),
    "linear": Linear(),
    **{f"polynomial {degree}": Polynomial(degree, gamma=0.4, coef0=0.7) for degree in range(1, 7)},
    "homogeneous": Polynomial(4, gamma=0.5, coef0=0.0),
    "sum": Gaussian(0.8) + Polynomial(2),
    "multiple": 2.5 * Gaussian(1.0),
    "nested": 0.5 * (Linear() + 3.0 * (Gaussian(2.0) + Polynomial(3, gamma=0.2))),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def spread_out(components: int, dimension: int, seed: int) -> Mixture:
    """A mixture with correlated components, the last of them singular."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(components, dimension, dimension)) / 2
    factors[-1, :, 0] = 0
    weights = rng.dirichlet(np.ones(components))
    return Mixture(
        weights, rng.normal(size=(components, dimension)), factors @ factors.swapaxes(-2, -1)
    )


P, Q = spread_out(3, 3, seed=1), spread_out(2, 3, seed=2)


def assert_is_the_average_of(draws: Array, value: float) -> None:
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    assert abs(draws.mean() - value) <= STANDARD_ERRORS * error + EXACT * abs(value)


@dataclass(frozen=True)
class Quadrature:
    """A mixture as points and masses, exact for polynomials of degree below 2·nodes."""

    points: Array
    masses: Array


def quadrature(mixture: Mixture, nodes: int) -> Quadrature:
    d = mixture.means.shape[1]
    line, weights = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    masses = np.prod(np.meshgrid(*[weights / weights.sum()] * d, indexing="ij"), axis=0).ravel()
    variances, axes = np.linalg.eigh(mixture.covariances)
    roots = axes * np.sqrt(np.maximum(variances, 0))[:, None, :]
    points = mixture.means[:, None] + z @ roots.swapaxes(-2, -1)
    return Quadrature(points.reshape(-1, d), np.multiply.outer(mixture.weights, masses).ravel())


@every_kernel
def test_the_mean_at_a_point_is_the_average_over_draws(kernel: Kernel) -> None:
    X = np.array([[0.0, 0.0, 0.0], [1.0, -0.5, 0.3], [-2.0, 1.0, 2.0]])
    values = kernel(X, P.sample(DRAWS, SEED))
    for draws, value in zip(values, P.mean(kernel, X), strict=True):
        assert_is_the_average_of(draws, value)


@every_kernel
def test_the_inner_product_is_the_average_over_pairs_of_draws(kernel: Kernel) -> None:
    rng = np.random.default_rng(SEED)
    blocks = [kernel(P.sample(100, rng), Q.sample(100, rng)).mean() for _ in range(500)]
    assert_is_the_average_of(np.array(blocks), P.inner(kernel, Q))


@every_kernel
def test_the_expected_diagonal_is_the_average_over_draws(kernel: Kernel) -> None:
    assert_is_the_average_of(kernel.diagonal(P.sample(DRAWS, SEED)), P.expected_diagonal(kernel))


@every_kernel
def test_in_one_dimension_every_closed_form_is_an_integral_by_quadrature(kernel: Kernel) -> None:
    first = Mixture.isotropic([0.3, 0.7], [[-0.5], [1.0]], [0.4, 0.09])
    second = Mixture.isotropic([0.6, 0.4], [[0.2], [-1.5]], [0.0, 0.25])
    p, q = quadrature(first, nodes=80), quadrature(second, nodes=80)
    X = np.array([[-2.0], [0.0], [3.0]])
    np.testing.assert_allclose(first.mean(kernel, X), kernel(X, p.points) @ p.masses, rtol=EXACT)
    np.testing.assert_allclose(
        first.inner(kernel, second), p.masses @ kernel(p.points, q.points) @ q.masses, rtol=EXACT
    )
    np.testing.assert_allclose(
        first.expected_diagonal(kernel), p.masses @ kernel.diagonal(p.points), rtol=EXACT
    )


@pytest.mark.parametrize("degree", range(1, 7))
def test_in_three_dimensions_every_polynomial_is_a_sum_over_a_grid(degree: int) -> None:
    kernel = Polynomial(degree, gamma=0.4, coef0=0.7)
    p, q = quadrature(P, nodes=7), quadrature(Q, nodes=7)
    X = np.array([[1.0, -0.5, 0.3], [-2.0, 1.0, 2.0]])
    np.testing.assert_allclose(P.mean(kernel, X), kernel(X, p.points) @ p.masses, rtol=EXACT)
    np.testing.assert_allclose(
        P.inner(kernel, Q), p.masses @ kernel(p.points, q.points) @ q.masses, rtol=EXACT
    )
    np.testing.assert_allclose(
        P.expected_diagonal(kernel), p.masses @ kernel.diagonal(p.points), rtol=EXACT
    )


@every_kernel
def test_components_without_variance_are_points(kernel: Kernel) -> None:
    points = np.random.default_rng(SEED).normal(size=(4, 3))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    mixture = Mixture(weights, points, np.zeros((4, 3, 3)))
    X = points + 1
    np.testing.assert_allclose(mixture.mean(kernel, X), kernel(X, points) @ weights, rtol=EXACT)
    np.testing.assert_allclose(
        mixture.inner(kernel, mixture), weights @ kernel(points) @ weights, rtol=EXACT
    )
    np.testing.assert_allclose(
        mixture.expected_diagonal(kernel), weights @ kernel.diagonal(points), rtol=EXACT
    )
    assert mixture.squared_distance(Embedding(kernel, points, weights)) < 1e-12 * mixture.inner(
        kernel, mixture
    )


@every_kernel
def test_the_inner_product_with_a_point_is_the_mean_there(kernel: Kernel) -> None:
    x = np.array([[0.4, -1.0, 2.0]])
    point = Mixture.isotropic([1.0], x, [0.0])
    np.testing.assert_allclose(P.inner(kernel, point), P.mean(kernel, x)[0], rtol=EXACT)
    np.testing.assert_allclose(point.inner(kernel, P), P.mean(kernel, x)[0], rtol=EXACT)


@every_kernel
def test_the_inner_product_is_symmetric_and_obeys_cauchy_schwarz(kernel: Kernel) -> None:
    np.testing.assert_allclose(P.inner(kernel, Q), Q.inner(kernel, P), rtol=EXACT)
    assert P.inner(kernel, Q) ** 2 < P.inner(kernel, P) * Q.inner(kernel, Q)
    assert P.inner(kernel, P) < P.expected_diagonal(kernel)


@every_kernel
def test_the_average_loss_of_the_empirical_mean_is_its_risk(kernel: Kernel) -> None:
    # Narrow components: the twelfth power of a wide one has tails in which no standard error can be
    # trusted.
    narrow = Mixture(P.weights, P.means, P.covariances / 10)
    n, rng = 10, np.random.default_rng(SEED)
    weights = np.full(n, 1 / n)
    losses = [
        narrow.squared_distance(Embedding(kernel, narrow.sample(n, rng), weights))
        for _ in range(500)
    ]
    assert_is_the_average_of(
        np.array(losses), (narrow.expected_diagonal(kernel) - narrow.inner(kernel, narrow)) / n
    )


def test_the_loss_is_the_squared_distance_of_functions() -> None:
    X = P.sample(5, SEED)
    f = Embedding(Gaussian(1.3), X, np.array([0.5, -0.2, 0.3, 0.1, 0.9]))
    rng = np.random.default_rng(SEED)
    far = np.array(
        [
            (f - Embedding(f.kernel, P.sample(400, rng), np.full(400, 1 / 400))).squared_norm()
            for _ in range(200)
        ]
    )
    own = (P.expected_diagonal(f.kernel) - P.inner(f.kernel, P)) / 400  # of the draws themselves
    assert_is_the_average_of(far - own, P.squared_distance(f))


def test_the_loss_needs_no_matrix_of_all_pairs() -> None:
    n = 5000
    f = Embedding(Gaussian(1.3), P.sample(n, SEED), np.full(n, 1 / n))
    tracemalloc.start()
    try:
        loss = P.squared_distance(f)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n / 4
    assert 0 < loss < 5 / n


def test_the_characteristic_function_is_the_average_over_draws() -> None:
    omega = np.array([[0.0, 0.0, 0.0], [0.5, -1.0, 0.3], [2.0, 0.0, -1.0]])
    waves = np.exp(1j * P.sample(DRAWS, SEED) @ omega.T)
    for draws, value in zip(waves.T, P.characteristic_function(omega), strict=True):
        assert_is_the_average_of(draws.real, value.real)
        assert_is_the_average_of(draws.imag, value.imag)


def test_the_expectation_of_random_features_is_their_average_over_draws() -> None:
    features = RandomFeatures(20).resolve(2.0 * Gaussian(1.3), P.sample(50, SEED))
    values = features(P.sample(20_000, SEED))
    for draws, value in zip(values.T, features.expectation(P), strict=True):
        assert_is_the_average_of(draws, value)


def test_the_loss_of_random_features_is_under_their_own_kernel() -> None:
    mean = KernelMean(kernel=Gaussian(1.3), filter="f-kmse", gram=RandomFeatures(200)).fit(
        P.sample(50, SEED)
    )
    z, c = mean.features_, mean.embedding_.coordinates
    draws = z(P.sample(20_000, SEED))
    own = draws @ c  # f at the draws
    pairs = (draws[::2] * draws[1::2]).sum(axis=1)
    losses = mean.embedding_.squared_norm() - own[::2] - own[1::2] + pairs
    assert_is_the_average_of(losses, P.squared_distance(mean.embedding_))
    exact = KernelMean(kernel=Gaussian(1.3), filter="f-kmse").fit(P.sample(50, SEED)).embedding_
    assert P.squared_distance(mean.embedding_) == pytest.approx(P.squared_distance(exact), rel=0.5)


def test_the_gaussian_formula_is_that_of_the_paper_in_twenty_dimensions() -> None:
    rng = np.random.default_rng(SEED)
    d, sigma = 20, 15.0
    factors = np.sqrt(3) * rng.normal(size=(4, d, 7))
    S = factors @ factors.swapaxes(-2, -1) + 0.2 * np.eye(d)
    mixture = Mixture([0.05, 0.3, 0.4, 0.25], rng.uniform(-10, 10, size=(4, d)), S)
    x = rng.uniform(-10, 10, size=d)
    expected = 0.0
    for weight, theta, covariance in zip(mixture.weights, mixture.means, S, strict=True):
        inverse = np.linalg.inv(sigma**2 * np.eye(d) + covariance)
        root = np.linalg.det(np.eye(d) + covariance / sigma**2) ** -0.5
        expected += weight * root * np.exp(-(x - theta) @ inverse @ (x - theta) / 2)
    np.testing.assert_allclose(mixture.mean(Gaussian(sigma), x[None]), expected, rtol=EXACT)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(1.5), RationalQuadratic(1.5)])
def test_pairs_of_components_are_single_ones(kernel: Kernel) -> None:
    mixture, other = spread_out(4, 5, seed=1), spread_out(3, 5, seed=2)
    for left, right in ((mixture, mixture), (mixture, other)):
        singles = [
            [Mixture([1.0], a[None], S[None]).inner(kernel, Mixture([1.0], b[None], T[None]))
             for b, T in zip(right.means, right.covariances, strict=True)]
            for a, S in zip(left.means, left.covariances, strict=True)
        ]  # fmt: skip
        np.testing.assert_allclose(left.inner_products(kernel, right), singles, rtol=EXACT)


def test_pairs_of_gaussians_are_those_of_the_formula_also_where_no_system_is_solved() -> None:
    mixture, other = spread_out(3, 4, seed=1), spread_out(2, 4, seed=2)
    for sigma in (0.7, 1e-5):  # the second leaves the range in which systems are solved
        scaled = [Mixture(P.weights, P.means * sigma / 10, P.covariances) for P in (mixture, other)]
        for left, right in (scaled, [scaled[0], scaled[0]]):
            for j, (a, S) in enumerate(zip(left.means, left.covariances, strict=True)):
                for k, (b, T) in enumerate(zip(right.means, right.covariances, strict=True)):
                    total = np.eye(4) + (S + T) / sigma**2
                    exponent = (a - b) @ np.linalg.inv(total) @ (a - b) / (2 * sigma**2)
                    expected = np.linalg.det(total) ** -0.5 * np.exp(-exponent)
                    found = left.inner_products(Gaussian(sigma), right)[j, k]
                    np.testing.assert_allclose(
                        found, expected, rtol=1e-6 if sigma < 1e-4 else EXACT
                    )


def test_the_linear_kernel_mean_is_the_mean() -> None:
    center = P.weights @ P.means
    scatter = np.einsum("j,jkk->", P.weights, P.covariances) + P.weights @ (P.means**2).sum(axis=1)
    np.testing.assert_allclose(P.inner(Linear(), P), center @ center, rtol=EXACT)
    np.testing.assert_allclose(P.expected_diagonal(Linear()), scatter, rtol=EXACT)


@settings(max_examples=50, deadline=None)
@given(
    exponent=st.floats(-100, 100),
    bandwidth=st.floats(0.1, 10),
    dimension=st.integers(1, 4),
    components=st.integers(1, 3),
)
def test_the_gaussian_mean_does_not_depend_on_the_unit_of_length(
    exponent: float, bandwidth: float, dimension: int, components: int
) -> None:
    unit = 10.0**exponent
    mixture = spread_out(components, dimension, seed=3)
    scaled = Mixture(mixture.weights, unit * mixture.means, unit**2 * mixture.covariances)
    here, there = Gaussian(bandwidth), Gaussian(unit * bandwidth)
    X = mixture.sample(3, SEED)
    np.testing.assert_allclose(scaled.mean(there, unit * X), mixture.mean(here, X), rtol=1e-6)
    np.testing.assert_allclose(scaled.inner(there, scaled), mixture.inner(here, mixture), rtol=1e-6)


@settings(max_examples=50, deadline=None)
@given(degree=st.integers(1, 8), exponent=st.floats(-15, 15), dimension=st.integers(1, 4))
def test_the_homogeneous_polynomial_scales_with_the_unit_of_length(
    degree: int, exponent: float, dimension: int
) -> None:
    unit = 10.0**exponent
    mixture = spread_out(2, dimension, seed=4)
    scaled = Mixture(mixture.weights, unit * mixture.means, unit**2 * mixture.covariances)
    kernel = Polynomial(degree, coef0=0.0)
    factor = unit ** (2 * degree)
    np.testing.assert_allclose(
        scaled.inner(kernel, scaled), factor * mixture.inner(kernel, mixture), rtol=1e-8
    )
    np.testing.assert_allclose(
        scaled.expected_diagonal(kernel), factor * mixture.expected_diagonal(kernel), rtol=1e-8
    )


@settings(max_examples=50, deadline=None)
@given(share=st.floats(0, 1), seed=st.integers(0, 100), name=st.sampled_from(list(KERNELS)))
def test_a_component_split_in_two_is_the_same_distribution(
    share: float, seed: int, name: str
) -> None:
    mixture, kernel = spread_out(2, 2, seed), KERNELS[name]
    weights = np.append(mixture.weights, mixture.weights[0] * share)
    weights[0] *= 1 - share
    split = Mixture(
        weights,
        np.concatenate([mixture.means, mixture.means[:1]]),
        np.concatenate([mixture.covariances, mixture.covariances[:1]]),
    )
    np.testing.assert_allclose(
        split.inner(kernel, mixture), mixture.inner(kernel, mixture), rtol=EXACT
    )
    np.testing.assert_allclose(
        split.expected_diagonal(kernel), mixture.expected_diagonal(kernel), rtol=EXACT
    )


@settings(max_examples=50, deadline=None)
@given(mean=st.floats(-3, 3), variance=st.floats(0, 4), bandwidth=st.floats(0.3, 5))
def test_one_component_in_one_dimension_is_the_textbook_convolution(
    mean: float, variance: float, bandwidth: float
) -> None:
    mixture, total = Mixture.isotropic([1.0], [[mean]], [variance]), bandwidth**2 + variance
    expected = np.sqrt(bandwidth**2 / total) * np.exp(-((1 - mean) ** 2) / (2 * total))
    np.testing.assert_allclose(
        mixture.mean(Gaussian(bandwidth), np.array([[1.0]])), expected, rtol=EXACT
    )


def test_a_singular_covariance_much_wider_than_the_kernel_is_no_obstacle() -> None:
    direction = np.array([3.0, 4.0]) / 5
    origin = np.zeros((1, 2))
    aslant = Mixture([1.0], origin, [1e8 * np.outer(direction, direction)])
    np.testing.assert_allclose(aslant.mean(Gaussian(1.0), origin), 1e-4, rtol=1e-6)
    along_an_axis = Mixture([1.0], origin, [np.diag([1e20, 0.0])])
    np.testing.assert_allclose(along_an_axis.mean(Gaussian(1.0), origin), 1e-10, rtol=EXACT)
    np.testing.assert_allclose(
        along_an_axis.inner(Gaussian(1.0), along_an_axis), 0.5**0.5 * 1e-10, rtol=EXACT
    )


def test_a_sample_has_the_moments_of_its_mixture_and_stays_where_it_is_singular() -> None:
    X = P.sample(DRAWS, SEED)
    for k in range(3):
        assert_is_the_average_of(X[:, k], P.weights @ P.means[:, k])
        assert_is_the_average_of(
            X[:, k] ** 2, P.weights @ (P.means[:, k] ** 2 + P.covariances[:, k, k])
        )
    flat = Mixture([1.0], [[1.0, 2.0]], [[[1.0, 1.0], [1.0, 1.0]]])
    points = flat.sample(100, SEED)
    np.testing.assert_allclose(points[:, 1] - points[:, 0], 1, atol=1e-7)
    np.testing.assert_array_equal(points, flat.sample(100, SEED))


def test_lists_are_taken_for_arrays_and_the_mixture_shows_its_size() -> None:
    mixture = Mixture([0.5, 0.5], [[0, 1], [2, 3]], [[[1, 0], [0, 1]], [[2, 0], [0, 2]]])
    np.testing.assert_array_equal(
        mixture.covariances, Mixture.isotropic([0.5, 0.5], [[0, 1], [2, 3]], [1, 2]).covariances
    )
    assert repr(mixture) == "Mixture(2 components in 2 dimensions)"


@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian(1.0),
        Precomputed(np.eye(2)),
        Function("cosine"),
        Gaussian(1.0) * Linear(),
        Gaussian(1.0) + Laplacian(1.0),
        2.0 * Laplacian(1.0),
    ],
    ids=repr,
)
def test_a_kernel_without_a_closed_form_is_refused_by_naming_those_that_have_one(
    kernel: Kernel,
) -> None:
    with pytest.raises(ValueError, match=r"Gaussian, Matern, .*, or a sum or multiple .* instead"):
        P.mean(kernel, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="closed form is needed"):
        P.inner(kernel, Q)
    with pytest.raises(ValueError, match="closed form is needed"):
        P.expected_diagonal(kernel)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (
            Gaussian(),
            "Gaussian: bandwidth must be positive and finite, a number that resolve.* got 'median'",
        ),
        (Gaussian(-1.0), "Gaussian: bandwidth must be positive"),
        (Polynomial(0), "Polynomial: degree must be a whole number of at least 1, got 0"),
        (Polynomial(coef0=-1.0), "Polynomial: coef0 must be a number, not negative"),
        (Polynomial(gamma=0.0), "Polynomial: gamma must be positive"),
        (-1.0 * Linear(), "Scaled: factor must be positive"),
    ],
)
def test_a_kernel_with_a_bad_parameter_is_refused(kernel: Kernel, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        P.expected_diagonal(kernel)


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "sentence"),
    [
        (
            [0.5, 0.6],
            np.zeros((2, 1)),
            np.zeros((2, 1, 1)),
            r"must sum to one, got \[0.5, 0.6\] with sum 1.1; divide",
        ),
        ([-0.5, 1.5], np.zeros((2, 1)), np.zeros((2, 1, 1)), "must not be negative"),
        ([[1.0]], np.zeros((1, 1)), np.zeros((1, 1, 1)), r"weights must have the shape \(r,\)"),
        ([], np.zeros((0, 1)), np.zeros((0, 1, 1)), r"weights must have the shape \(r,\)"),
        (
            [1.0],
            np.zeros((2, 1)),
            np.zeros((2, 1, 1)),
            r"means must have the shape \(1, d\), got shape \(2, 1\)",
        ),
        (
            [1.0],
            np.zeros(1),
            np.zeros((1, 1, 1)),
            r"means must have the shape \(1, d\), got shape \(1,\)",
        ),
        (
            [1.0],
            np.zeros((1, 2)),
            np.zeros((1, 2)),
            r"have the shape \(1, 2, 2\), got shape \(1, 2\); use",
        ),
        (
            [1.0],
            np.zeros((1, 2)),
            [[[1.0, 0.5], [0.0, 1.0]]],
            r"component 0 must be symmetric, got S\[0, 1\] = 0.5 and",
        ),
        (
            [1.0],
            np.zeros((1, 2)),
            [[[1.0, 2.0], [2.0, 1.0]]],
            "component 0 must be positive semi-definite, got an eigenvalue of -0.33 times",
        ),
        ([np.nan], np.zeros((1, 1)), np.zeros((1, 1, 1)), "weights must be finite"),
        ([1.0], np.full((1, 1), np.inf), np.zeros((1, 1, 1)), "means must be finite"),
        ([1.0], [["a"]], np.zeros((1, 1, 1)), "means must be an array of numbers"),
        ([1.0], [[0.0], [0.0, 1.0]], np.zeros((1, 1, 1)), "means must be an array of numbers"),
    ],
)
def test_what_is_no_mixture_is_refused(
    weights: object, means: object, covariances: object, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Mixture(weights, means, covariances)


def test_what_does_not_fit_the_mixture_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"same number of features are needed, got shapes \(1, 2\) and \(3, 3\)"
    ):
        P.mean(Linear(), np.zeros((1, 2)))
    with pytest.raises(
        ValueError, match=r"same number of features are needed, got shapes \(3, 3\) and \(1, 1\)"
    ):
        P.inner(Linear(), Mixture.isotropic([1.0], [[0.0]], [1.0]))
    with pytest.raises(ValueError, match=r"variances must have the shape \(1,\), got shape \(2,\)"):
        Mixture.isotropic([1.0], [[0.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="whole number of at least 1, got 0"):
        P.sample(0, SEED)
