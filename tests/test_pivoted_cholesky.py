"""The low-rank factor that knows its error, and estimates on it against dense ones."""

import numpy as np
import pytest

from muhat.gram import PivotedCholesky, pivoted_cholesky
from muhat.kernels import Function, Gaussian, Laplacian, Linear, Polynomial, Precomputed
from tests.catalogue import KERNELS, SAMPLES

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_factor_misses_what_it_says(kernel, name):
    X = SAMPLES[name]
    K = kernel(X)
    for tol in (1e-1, 1e-12):
        factor = pivoted_cholesky(kernel, X, tol)
        left = K - factor.L @ factor.L.T
        scale = K.diagonal().max()
        assert factor.is_converged
        assert factor.error <= tol
        np.testing.assert_allclose(left.diagonal(), factor.remainder, atol=1e-11 * scale)
        assert np.linalg.norm(left, 2) <= factor.error * np.trace(K) + 1e-11 * scale * len(X)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_pivots_of_many_blocks_leave_little_more_than_eigenvectors_do(d):
    X = RNG.normal(size=(600, d))
    kernel = Gaussian().resolve(X)
    K = kernel(X)
    gamma = np.linalg.eigvalsh(K)[::-1]
    for tol in (1e-3, 1e-6):
        factor = pivoted_cholesky(kernel, X, tol)
        assert np.trace(K - factor.L @ factor.L.T) <= tol * np.trace(K)
        needed = 1 + np.flatnonzero(np.cumsum(gamma) >= (1 - tol) * np.trace(K))[0]
        assert factor.rank <= 2.5 * needed + 10
        on_pivots = K[:, factor.pivots]
        nystrom = on_pivots @ np.linalg.pinv(K[np.ix_(factor.pivots, factor.pivots)], 1e-13)
        np.testing.assert_allclose(nystrom @ on_pivots.T, factor.L @ factor.L.T, atol=1e-7)


def test_a_rank_that_is_given_stops_it():
    X = RNG.normal(size=(300, 4))
    for most in (1, 7, 200):
        factor = pivoted_cholesky(Gaussian(1.0), X, max_rank=most)
        assert (factor.rank, factor.L.shape) == (most, (300, most))
        assert not factor.is_converged
        assert len(np.unique(factor.pivots)) == most
    assert pivoted_cholesky(Laplacian(1.0), X).rank == 300


def test_duplicates_constants_and_linear_kernels_have_the_rank_of_their_matrix():
    rows = RNG.normal(size=(5, 3))
    assert pivoted_cholesky(Gaussian(1.0), np.repeat(rows, 100, axis=0)).rank == 5
    assert pivoted_cholesky(Gaussian(1.0), np.ones((400, 2))).rank == 1
    assert pivoted_cholesky(Linear(), RNG.normal(size=(400, 7))).rank == 7
    assert pivoted_cholesky(Polynomial(2), RNG.normal(size=(400, 3))).rank == 10
    nothing = pivoted_cholesky(Linear(), np.zeros((30, 2)))
    assert (nothing.rank, nothing.error, nothing.is_converged) == (0, 0.0, True)


@pytest.mark.parametrize("unit", [1e-140, 1e-60, 1e60, 1e140])
def test_the_scale_of_the_kernel_does_not_matter(unit):
    X = RNG.normal(size=(200, 3))
    plain, scaled = pivoted_cholesky(Linear(), X), pivoted_cholesky(Linear(), unit * X)
    np.testing.assert_array_equal(np.sort(plain.pivots), np.sort(scaled.pivots))
    np.testing.assert_allclose(scaled.L @ scaled.L.T / unit**2, X @ X.T, atol=1e-11)


def test_float32_rows_are_factored_in_double():
    X = RNG.normal(size=(200, 2)).astype(np.float32)
    factor = pivoted_cholesky(Gaussian(1.0), X)
    assert factor.L.dtype == np.float64
    K = Gaussian(1.0)(X.astype(np.float64))
    np.testing.assert_allclose(factor.L @ factor.L.T, K, atol=1e-10)


def test_features_on_pivots_are_the_factor():
    X = RNG.normal(size=(300, 2))
    z = PivotedCholesky(tol=1e-8).resolve(Gaussian(1.0), X)
    np.testing.assert_allclose(z(X) @ z(X).T, Gaussian(1.0)(X), atol=1e-5)
    assert PivotedCholesky().resolve(Linear(), np.zeros((3, 2))).size == 1


@pytest.mark.parametrize(
    "values",
    [lambda x, y: np.sin(x @ y), lambda x, y: 1 + x[0] - y[0], lambda x, y: np.inf],
    ids=["indefinite", "not symmetric", "infinite"],
)
def test_a_function_that_is_no_kernel_is_refused(values):
    with pytest.raises(ValueError, match=r"positive semi-definite|k\(x, y\)"):
        pivoted_cholesky(Function(values, rows=True), RNG.normal(size=(60, 2)) * 3)


@pytest.mark.parametrize("wrong", [{"tol": 0.0}, {"tol": np.nan}, {"max_rank": 0}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=r"^PivotedCholesky"):
        PivotedCholesky(**wrong).check(Gaussian(1.0))


def test_a_kernel_that_is_a_matrix_is_refused():
    with pytest.raises(ValueError, match=r"^PivotedCholesky: a kernel that can be called"):
        PivotedCholesky().check(Precomputed())
