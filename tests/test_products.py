"""Matrix-free products with a kernel matrix equal those with the matrix."""

import os
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import KERNELS, SAMPLES, SEED
from muhat._tolerances import EXPONENTIAL_TOL
from muhat.kernels import (
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Precomputed,
    Scaled,
    _base,
    _tiles,
)
from muhat.kernels._tiles import exponentials

EXACT = 1e-13
"""Absolute, on a value of a Gaussian kernel in float64."""
SINGLE = 5e-6
"""The same in float32."""


def sample(n, d=3, seed=SEED):
    return np.random.default_rng(seed).normal(size=(n, d))


def assert_products_are_those_with_the_matrix(kernel, X, Y, accuracy=EXACT):
    rng = np.random.default_rng(SEED)
    for other in (None, Y):
        K = kernel(X, other)
        for shape in ((), (0,), (1,), (3,)):
            V = rng.normal(size=(K.shape[1], *shape)).astype(K.dtype)
            product = kernel.product(X, V, other)
            assert product.shape == (len(X), *shape)
            assert product.dtype == K.dtype
            np.testing.assert_allclose(
                product, K @ V, rtol=0, atol=accuracy * K.shape[1] * max(np.abs(K).max(), 1)
            )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("points", SAMPLES)
def test_a_product_is_that_with_the_matrix(name, points):
    X = SAMPLES[points]
    assert_products_are_those_with_the_matrix(KERNELS[name], X, X[::-1][:7] * 0.9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("blocks", [(8, 5), (10, 2), (37, 16)])
def test_blocks_and_tiles_cover_every_pair_once(name, blocks, monkeypatch):
    for module, size, value in zip((_base, _tiles), ("BLOCK", "TILE_SIDE"), blocks, strict=True):
        monkeypatch.setattr(module, size, value)
    assert_products_are_those_with_the_matrix(KERNELS[name], sample(38), sample(23, seed=1))


@pytest.mark.parametrize(
    ("kernel", "edge"),
    [
        *(
            (kernel, edge)
            for kernel in (Gaussian(2.0), Matern(2.0))
            for edge in (1, 2, _tiles.TILE_SIDE, 2 * _tiles.TILE_SIDE)
        ),
        (Gaussian(2.0) * Linear(), _base.BLOCK),
    ],
)
def test_sizes_around_the_edges_of_blocks_and_tiles_are_right(kernel, edge):
    for n in {max(edge - 1, 1), edge, edge + 1}:
        X, V = sample(n, 2), np.cos(np.arange(n))
        np.testing.assert_allclose(kernel.product(X, V), kernel(X) @ V, atol=1e-11)
        np.testing.assert_allclose(kernel.product(X[:5], V, X), kernel(X[:5], X) @ V, atol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_float32_stays_float32_in_products(name):
    X = sample(300).astype(np.float32)
    assert_products_are_those_with_the_matrix(KERNELS[name], X, X[:50], accuracy=SINGLE)


def test_whole_numbers_and_arrays_by_columns_are_taken():
    X = np.random.default_rng(SEED).integers(-3, 4, size=(300, 3))
    for kernel in KERNELS.values():
        np.testing.assert_allclose(
            kernel.product(X, np.ones(300, int)), kernel(X).sum(axis=1), rtol=1e-11
        )
        np.testing.assert_allclose(
            kernel.product(np.asfortranarray(X), np.ones((300, 2), order="F")),
            kernel.product(X, np.ones((300, 2))),
        )


def test_kernels_from_elsewhere_multiply_in_blocks(monkeypatch):
    monkeypatch.setattr(_base, "BLOCK", 16)
    X = sample(50)
    matrix = Gaussian(1.5)(X)
    numbers = np.arange(50)[:, None]
    for kernel, points in (
        (Function(Gaussian(1.5)), X),
        (Function("rbf"), X),
        (Precomputed(matrix), numbers),
    ):
        assert_products_are_those_with_the_matrix(kernel, points, points[10:30])


def true_gaussian(X, Y, sigma):
    return np.exp(
        -((X[:, None].astype(np.longdouble) - Y) ** 2).sum(axis=-1) / (2 * sigma**2)
    ).astype(np.float64)


@settings(max_examples=60, deadline=None)
@given(
    sigma=st.floats(-3, 3).map(lambda power: 10**power),
    offset=st.sampled_from([0.0, 1e3, 1e6]),
    d=st.integers(1, 8),
    single=st.booleans(),
)
def test_gaussian_values_are_exact_however_wide_the_kernel_and_however_far_the_points(
    sigma, offset, d, single
):
    X = (offset + sample(40, d)).astype(np.float32 if single else np.float64)
    X[1] = X[0]
    Y = X[:10] + sigma / 8
    kernel, accuracy = Gaussian(sigma), (SINGLE if single else 5 * EXACT)
    if single:
        accuracy *= (
            1 + np.abs(X - X.mean(axis=0, dtype=np.float64)).max() ** 2 / sigma**2
        )  # of the exponent
    for other in (None, Y):
        true = true_gaussian(X, X if other is None else other, sigma)
        np.testing.assert_allclose(kernel(X, other), true, rtol=0, atol=accuracy)
        columns = np.eye(true.shape[1], dtype=X.dtype)
        np.testing.assert_allclose(kernel.product(X, columns, other), true, rtol=0, atol=accuracy)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.bound == 1])
def test_the_diagonal_is_exactly_one(name):
    X = sample(300)
    assert np.all(np.diagonal(KERNELS[name].product(X, np.eye(300))) == 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quotient_and_squarings_are_the_exponential_on_their_range(dtype):
    family, accuracy = exponentials(np.dtype(dtype).name), EXACT if dtype == np.float64 else SINGLE
    for exponential in family:
        x = np.linspace(exponential.lowest, 0, 20_001).astype(dtype)
        t = (exponential.slope * x.astype(np.longdouble) + exponential.offset).astype(dtype)
        values = exponential(t, np.empty_like(t))
        assert values.dtype == dtype
        true = np.exp(x.astype(np.longdouble)).astype(np.float64)
        np.testing.assert_allclose(exponential.factor * values, true, rtol=0, atol=accuracy)
    ranges = [exponential.lowest for exponential in family]
    assert ranges == sorted(ranges, reverse=True)
    assert ranges[-1] < -5


def test_the_quotient_is_as_near_as_it_says():
    exponential = exponentials("float64")[0]
    w = np.linspace(exponential.lowest, 0, 1001).astype(np.longdouble)
    t = exponential.slope * w + exponential.offset
    E = (t**2 + exponential.a) ** 2 + exponential.b
    error = np.abs(exponential.factor * (E / (E + t) - 0.5) / np.exp(w) - 1).max()
    assert 0.9 * EXPONENTIAL_TOL["float64"] < error < 1.1 * EXPONENTIAL_TOL["float64"]


def test_there_are_none_for_another_type():
    assert exponentials("float16") == exponentials("longdouble") == ()


def test_a_product_is_the_same_each_time():
    X, V = sample(3000), sample(3000, 2, seed=1)
    for kernel in (Gaussian(1.0), Laplacian(1.0)):
        first = kernel.product(X, V)
        for _ in range(3):
            np.testing.assert_array_equal(kernel.product(X, V), first)


class Counting(Kernel):
    """Counts the values it is asked for."""

    count = 0

    def __call__(self, X, Y=None):
        Counting.count += len(X) * len(X if Y is None else Y)
        return X @ (X if Y is None else Y).T


def test_a_block_off_the_diagonal_is_computed_once(monkeypatch):
    monkeypatch.setattr(_base, "BLOCK", 10)
    Counting().product(sample(100), np.ones(100))
    assert Counting.count <= 100 * 110 / 2 + 1


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(2.0), Gaussian(0.03), Laplacian(3.0), 2.0 * Gaussian(2.0) + Linear()],
    ids=repr,
)
def test_memory_does_not_grow_with_the_pairs(kernel):
    n = 12_000
    X, V = sample(n), np.ones((n, 2))
    kernel.product(X[:500], V[:500])
    tracemalloc.start()
    try:
        kernel.product(X, V)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 20


@pytest.mark.parametrize(
    "V",
    [np.ones(3), np.ones((3, 2)), np.ones((4, 1, 1)), np.float64(1), 1j * np.ones(4), ["a"] * 4],
    ids=str,
)
def test_vectors_of_another_length_or_kind_are_refused(V):
    with pytest.raises(
        ValueError,
        match=r"Gaussian.product: a vector or a matrix of 4 rows of real numbers is needed",
    ):
        Gaussian(1.0).product(np.ones((4, 2)), V)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0), Matern(1.0), Linear()], ids=lambda kernel: type(kernel).__name__
)
@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 2)])
def test_a_product_of_nothing_is_nothing(kernel, shape):
    nothing = np.empty((0, 3))
    assert kernel.product(nothing, np.empty(shape)).shape == shape
    assert kernel.product(nothing, np.ones((4, 2)), np.ones((4, 3))).shape == (0, 2)
    np.testing.assert_array_equal(
        kernel.product(np.ones((4, 3)), np.empty((0, 2)), nothing), np.zeros((4, 2))
    )


def test_an_error_in_a_thread_reaches_the_caller():
    class Broken(Matern):
        def _profile(self, exponent):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken(1.0, nu=2.5).product(sample(1000), np.ones(1000))


def test_a_scaled_kernel_checks_its_factor_in_products_too():
    with pytest.raises(ValueError, match="factor"):
        Scaled(Gaussian(1.0), -1.0).product(sample(3), np.ones(3))


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_ctrl_c_interrupts_a_product():
    code = (
        "import numpy as np; from muhat.kernels import Gaussian; "
        "X = np.random.default_rng(0).normal(size=(100_000, 20)); "
        "print('started', flush=True); Gaussian(6.0).product(X, X)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline() == "started\n"
        time.sleep(1.0)
        run.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in run.communicate(timeout=120)[1]
