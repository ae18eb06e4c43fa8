"""Embeddings are vectors: their algebra, their geometry, and what cannot be combined."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from catalogue import SEED
from muhat import Embedding, KernelMean
from muhat.kernels import Function, Gaussian, Polynomial, Precomputed

RNG = np.random.default_rng(SEED)
X, Y, Z = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))
KERNEL = Gaussian(1.1)
F = Embedding(KERNEL, X, RNG.normal(size=7))
G = Embedding(KERNEL, Y, RNG.normal(size=5))


def test_an_embedding_is_the_function_it_says():
    values = [
        sum(w * KERNEL(z[None], x[None])[0, 0] for w, x in zip(F.weights, X, strict=True))
        for z in Z
    ]
    np.testing.assert_allclose(F(Z), values, rtol=1e-12)


def test_inner_products_norms_and_distances_are_those_of_the_space():
    inner = sum(
        F.weights[i] * G.weights[j] * KERNEL(X[[i]], Y[[j]])[0, 0]
        for i in range(7)
        for j in range(5)
    )
    assert F.inner(G) == pytest.approx(inner, rel=1e-12)
    assert F.squared_norm() == pytest.approx(F.inner(F), rel=1e-12)
    assert F.norm() ** 2 == pytest.approx(F.squared_norm(), rel=1e-12)
    assert F.distance(G) ** 2 == pytest.approx(F.inner(F) - 2 * F.inner(G) + G.inner(G), rel=1e-10)


def test_the_reproducing_property_holds():
    for z in Z:
        assert F.inner(Embedding(KERNEL, z[None], np.ones(1))) == pytest.approx(
            F(z[None])[0], rel=1e-12
        )


def test_sums_and_multiples_are_those_of_the_functions():
    combined = 2 * F - G / 4 + (-F)
    np.testing.assert_allclose(combined(Z), 2 * F(Z) - G(Z) / 4 - F(Z), atol=1e-13)


def test_two_embeddings_on_the_same_points_stay_on_those_points():
    assert len((F + F).points) == len(X)
    assert (F - F).norm() == 0
    assert F.distance(Embedding(KERNEL, X.copy(), F.weights)) == 0


@settings(max_examples=50, deadline=None)
@given(
    weights=arrays(np.float64, 6, elements=st.floats(-1e6, 1e6)),
    gap=st.sampled_from([0.0, 1e-12, 1e-7, 1e-3]),
)
def test_a_squared_norm_is_never_negative_however_the_weights_cancel(weights, gap):
    points = np.repeat(np.arange(3.0), 2)[:, None] + gap * np.tile([0.0, 1.0], 3)[:, None]
    assert (
        Embedding(
            KERNEL, points, np.where(np.arange(6) % 2, -weights[::-1], weights)
        ).squared_norm()
        >= 0
    )


def test_mmd_is_the_distance_of_two_kernel_means():
    kernel = Gaussian(1.0)
    one, other = (KernelMean(kernel=kernel, filter="kme").fit(points) for points in (X, Y))
    biased = kernel(X).mean() - 2 * kernel(X, Y).mean() + kernel(Y).mean()
    assert one.embedding_.distance(other.embedding_) ** 2 == pytest.approx(biased, rel=1e-10)


def test_values_inner_products_and_distances_need_no_matrix_of_all_pairs():
    n = 20_000
    points = np.random.default_rng(SEED).normal(size=(n, 2))
    one, other = (
        Embedding(Gaussian(4.0), half, np.full(n // 2, 2 / n))
        for half in (points[::2], points[1::2] + 0.1)
    )
    tracemalloc.start()
    try:
        distance, inner, values = one.distance(other), one.inner(other), one(points)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n / 100
    assert inner == pytest.approx(float(values[1::2].mean()), rel=0.01)
    squared = one.squared_norm() - 2 * inner + other.squared_norm()
    assert distance**2 == pytest.approx(squared, abs=1e-12)


def test_a_precomputed_kernel_has_embeddings_on_its_rows():
    every = np.concatenate([X, Y])
    kernel, rows = Precomputed(KERNEL(every)), np.arange(12)[:, None]
    f, g = Embedding(kernel, rows[:7], F.weights), Embedding(kernel, rows[7:], G.weights)
    assert f.inner(g) == pytest.approx(F.inner(G), rel=1e-12)
    assert f.distance(g) == pytest.approx(F.distance(G), rel=1e-12)
    np.testing.assert_allclose(f(rows), F(every), rtol=1e-12)


def test_lists_and_data_frames_are_points_and_weights():
    f = Embedding(KERNEL, pd.DataFrame(X), F.weights.tolist())
    np.testing.assert_array_equal(f(pd.DataFrame(Z)), F(Z))
    assert Embedding(KERNEL, X.tolist(), np.ones(7, int)).weights.dtype == np.float64


def test_an_embedding_does_not_change_with_the_arrays_it_was_made_of():
    points, weights = X.copy(), F.weights.copy()
    view = points.view()
    view.flags.writeable = False
    embeddings = [Embedding(KERNEL, each, weights) for each in (points, view)]
    before = F(Z)
    points[:], weights[:] = 0, 0
    for f in embeddings:
        np.testing.assert_array_equal(f(Z), before)
        with pytest.raises(ValueError, match="read-only"):
            f.points[0] = 0


def test_embeddings_share_the_points_that_nobody_can_change():
    assert (2 * F).points is F.points
    assert Embedding(KERNEL, F.points, np.ones(7)).points is F.points


REFUSED = {
    "a kernel's name": (
        ("gaussian", X, np.ones(7)),
        "kernel must be a kernel .*, got 'gaussian'; pass for example",
    ),
    "a kernel's class": ((Gaussian, X, np.ones(7)), "kernel must be a kernel"),
    "too few weights": (
        (KERNEL, X, np.ones(3)),
        r"weights must be real .* each of 7 points, got shape \(3,",
    ),
    "a column of weights": (
        (KERNEL, X, np.ones((7, 1))),
        r"one for each of 7 points, got shape \(7, 1\)",
    ),
    "words": ((KERNEL, X, ["a"] * 7), "weights must be real numbers"),
    "NaN weights": (
        (KERNEL, X, np.full(7, np.nan)),
        "weights must be finite, got NaN or infinite values",
    ),
    "infinite points": ((KERNEL, np.full((7, 2), np.inf), np.ones(7)), "points must be finite"),
    "one dimension": (
        (KERNEL, np.ones(7), np.ones(7)),
        r"points must be real numbers in two dimensions.*reshape",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_embedding_is_refused_in_one_sentence(case):
    arguments, sentence = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=sentence) as refused:
        Embedding(*arguments)
    assert "\n" not in str(refused.value)


def test_different_kernels_are_refused():
    with pytest.raises(ValueError, match="both embeddings must have the same kernel Gaussian"):
        F.inner(Embedding(Gaussian(1.2), Y, np.ones(5)))
    with pytest.raises(ValueError, match="same kernel"):
        F + Embedding(Polynomial(2), Y, np.ones(5))


def test_points_of_other_dimensions_are_refused():
    with pytest.raises(
        ValueError, match=r"same number of features are needed, got shapes \(7, 2\) and \(4, 3\)"
    ):
        F.distance(Embedding(KERNEL, np.ones((4, 3)), np.ones(4)))


def test_a_truly_negative_squared_norm_is_refused():
    indefinite = Function(lambda X, Y: -(X @ Y.T))
    with pytest.raises(ValueError, match="a squared norm cannot be negative"):
        Embedding(indefinite, X, np.ones(7)).norm()


def test_adding_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        F + 1
    with pytest.raises(TypeError):
        F * G


def test_its_repr_says_what_it_is():
    assert repr(Embedding(Gaussian(2.0), X, np.full(7, 1 / 7))) == (
        "Embedding(Gaussian(bandwidth=2.0), 7 points, weights sum to 1)"
    )


def test_points_that_are_whole_numbers_do_not_round_what_is_asked_for():
    f = Embedding(Gaussian(1.0), np.array([[0], [1]]), np.array([0.5, 0.5]))
    assert f(np.array([[0.5]]))[0] == pytest.approx(np.exp(-0.125), rel=1e-14)
