"""Cyclic shifts of random orders: the orders differ, and one FFT gives all their statistics."""

from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from catalogue import SEED
from muhat import IndependenceTest
from muhat.kernels import Gaussian
from muhat.testing._cyclic import (
    CyclicOrders,
    ShiftedColumns,
    centre_half,
    half_of_gram,
    half_of_matrix,
    half_of_product,
    squares_over_shifts,
    sums_over_shifts,
    transformed,
)


def rng():
    return np.random.default_rng(SEED)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 9, 12, 30])
@pytest.mark.parametrize("n_permutations", [1, 5, 22, 23, 99, 250])
def test_orders_differ_are_as_many_as_asked_for_and_begin_with_the_observed_one(n, n_permutations):
    orders = CyclicOrders.draw(n, n_permutations, rng())
    found = np.array([orders[place] for place in range(len(orders))])
    assert (found[0] == np.arange(n)).all()
    assert (np.sort(found, axis=1) == np.arange(n)).all()
    assert len(np.unique(found, axis=0)) == len(orders)
    assert len(orders) == min(n_permutations + 1, factorial(n))
    assert orders.is_complete == (factorial(n) <= n_permutations + 1)


def test_shifts_of_the_observed_order_are_drawn_equally_often_and_so_are_all_others():
    """Of 24 orders, 5 beside the observed one; its shifts always come with it, others seldom."""
    random, draws = rng(), 2000
    times = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(draws):
        orders = CyclicOrders.draw(4, 5, random)
        for place in range(1, len(orders)):
            times[tuple(orders[place].tolist())] += 1
    del times[0, 1, 2, 3]
    shifts = [(1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
    of_shifts = np.array([times.pop(each) for each in shifts]) / draws
    of_others = np.array(list(times.values())) / draws
    assert np.ptp(of_shifts) < 0.06
    assert np.ptp(of_others) < 0.06


@pytest.mark.parametrize("n", [2, 3, 6, 11, 16])
def test_one_transform_gives_the_sums_of_a_loop_over_orders(n):
    random = rng()
    S, R = random.normal(size=(2, n, n)), random.normal(size=(3, n, n))
    S, R = S + S.transpose(0, 2, 1), R + R.transpose(0, 2, 1)
    orders = CyclicOrders.draw(n, 40, random)
    of_x = np.array([transformed(half_of_matrix(each)) for each in S])
    of_y = []
    for each in R:
        moved = [each[np.ix_(order, order)] for order in orders.drawn]
        of_y.append([transformed(half_of_matrix(other)) for other in moved])
    values = sums_over_shifts(of_x, np.array(of_y), n)[..., orders.chosen]
    for place in range(len(orders)):
        moved = R[:, orders[place]][:, :, orders[place]]
        expected = np.einsum("pab,qab->pq", S, moved)
        np.testing.assert_allclose(values[:, :, place], expected, atol=1e-10)


@pytest.mark.parametrize("n", [2, 3, 6, 11, 16])
def test_transforms_of_components_give_the_sums_of_their_matrices(n):
    random = rng()
    U, V = random.normal(size=(n, 4)), random.normal(size=(n, 3))
    H, G = random.random((2, 4)), random.random((5, 3))
    x, y = (ShiftedColumns.from_columns(each, np.arange(n), n) for each in (U, V))
    found = squares_over_shifts(x, y, H, G)
    for s in range(n):
        shifted = np.roll(V, -s, axis=0)
        for i, h in enumerate(H):
            for j, g in enumerate(G):
                expected = (U * h @ U.T * (shifted * g @ shifted.T)).sum()
                assert found[i, j, s] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "n_permutations"), [(23, 4), (401, 19), (433, 99), (37, 80)])
def test_orders_in_blocks_differ_and_leave_few_rows_where_they_are(n, n_permutations):
    orders = CyclicOrders.draw(n, n_permutations, rng(), in_blocks=True)
    found = np.array([orders[place] for place in range(len(orders))])
    assert (found[0] == np.arange(n)).all()
    assert (np.sort(found, axis=1) == np.arange(n)).all()
    assert len(np.unique(found, axis=0)) == len(orders) == n_permutations + 1
    assert not orders.is_complete
    length = n // orders.n_blocks
    n_left_over = n - length * orders.n_blocks
    assert n_left_over < length + 0.01 * n
    for order in found[orders.chosen < orders.n_blocks]:
        assert (order[n - n_left_over :] == np.arange(n - n_left_over, n)).all()
        blocks = order[: n - n_left_over].reshape(-1, length)
        assert (np.diff(blocks, axis=1) == 1).all()


def test_in_blocks_hardly_more_shifts_are_computed_than_are_asked_for():
    for n in (3001, 5001, 20_011, 50_000):
        orders = CyclicOrders.draw(n, 999, rng(), in_blocks=True)
        assert len(orders.drawn) == 1
        assert 1000 <= orders.n_blocks < 1400


@pytest.mark.parametrize(("n", "n_permutations"), [(23, 4), (37, 80), (60, 14), (130, 19)])
def test_squares_in_blocks_are_those_of_products_in_every_order(n, n_permutations, monkeypatch):
    """Rows left over, several random orders, unequal numbers of columns, parts of few columns."""
    monkeypatch.setattr("muhat.testing._cyclic.MIN_BLOCKS", 3)
    monkeypatch.setattr("muhat.testing._cyclic.COLUMNS_PER_TRANSFORM", 2)
    monkeypatch.setattr("muhat.testing._cyclic.PRODUCTS_HELD", 100)
    random = rng()
    U, V = random.normal(size=(n, 4)), random.normal(size=(n, 7))
    H, G = random.random((2, 4)), random.random((5, 7))
    orders = CyclicOrders.draw(n, n_permutations, random, in_blocks=True)
    x = ShiftedColumns.from_columns(U, orders.drawn[0], orders.n_blocks)
    y = [ShiftedColumns.from_columns(V, order, orders.n_blocks) for order in orders.drawn]
    found = np.concatenate([squares_over_shifts(x, each, H, G) for each in y], axis=-1)
    for place, chosen in enumerate(orders.chosen):
        expected = H @ (U.T @ V[orders[place]]) ** 2 @ G.T
        np.testing.assert_allclose(found[..., chosen], expected, rtol=1e-10)


@pytest.mark.parametrize("n_permutations", [1, 2])
def test_over_all_orders_p_values_in_blocks_are_exact(n_permutations, monkeypatch):
    """Each of the 720 orders of 6 rows observed: without ties, P(p ≤ k/(B + 1)) = k/(B + 1)."""
    monkeypatch.setattr("muhat.testing._cyclic.MIN_BLOCKS", 3)
    random = rng()
    statistic = {order: random.random() for order in permutations(range(6))}
    ranks = []
    for observed in statistic:
        orders = CyclicOrders.draw(6, n_permutations, random, in_blocks=True)
        assert orders.n_blocks == 3
        moved = [tuple(np.array(observed)[orders[place]]) for place in range(len(orders))]
        values = np.array([statistic[each] for each in moved])
        ranks.append((values >= values[0]).sum())
    for k in range(1, n_permutations + 1):
        share = k / (n_permutations + 1)
        error = np.sqrt(share * (1 - share) / len(ranks))
        assert abs(np.mean(np.array(ranks) <= k) - share) <= 3 * error


@pytest.mark.parametrize("n", [2, 3, 6, 11, 16])
def test_halves_are_those_of_whole_matrices(n, monkeypatch):
    monkeypatch.setattr("muhat.testing._cyclic.ROWS_PER_STRIP", 4)  # several strips
    X = rng().normal(size=(n, 3))
    K = Gaussian(1.0)(X)
    H = np.eye(n) - 1 / n
    half = half_of_gram(Gaussian(1.0), X)
    np.testing.assert_allclose(half, half_of_matrix(K), atol=1e-13)
    centre_half(half)
    np.testing.assert_allclose(half, half_of_matrix(H @ K @ H), atol=1e-13)
    np.testing.assert_allclose(half_of_product(X, X), half_of_matrix(X @ X.T), atol=1e-13)
    for a in range(n):
        for k in range(n // 2 + 1):
            assert half_of_matrix(K)[a, k] == K[a, (a + k) % n]


def test_over_all_orders_p_values_from_some_shifts_are_valid():
    """Every order of 5 rows observed, 11 permutations each: P(p ≤ k/12) ≤ k/12, on average."""
    X, Y = rng().normal(size=(5, 1)), rng().normal(size=(5, 1))
    found = []
    for seed in range(4):
        for order in permutations(range(5)):
            test = IndependenceTest(statistics="mmd", n_permutations=11, random_state=seed)
            p_value = test.test(X, Y[list(order)]).p_value
            found.append(Fraction(p_value).limit_denominator(1000))
    for k in range(1, 12):
        share = np.mean([p <= Fraction(k, 12) for p in found])
        assert share <= k / 12 + 3 * np.sqrt(k * (12 - k)) / 12 / np.sqrt(len(found))
