"""Tests of two samples and of independence.

The fast path is the obvious loop, and every p-value is exact.
"""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

import reference
from muhat import (
    Embedding,
    Gaussian,
    IndependenceTest,
    KernelMean,
    Laplacian,
    Linear,
    Nystrom,
    RandomFeatures,
    TwoSampleTest,
)
from muhat.data import ColumnMoments, SampleBatch
from muhat.filters import FILTERS, Iteration
from muhat.plots import PValueMapDisplay, figure_of_test
from muhat.testing import MMD, ShrunkCovariance, ShrunkMeans, Spectral
from muhat.testing._cyclic import CyclicOrders
from muhat.testing._distances import Distance
from muhat.testing._gram import PooledSpectrum
from muhat.testing._ladder import ladder
from muhat.testing._landmarks import few_kernels, spectrum_on_landmarks
from muhat.testing._marginals import (
    ColumnDistances,
    clipped,
    far_limits,
    in_units,
    shifts_between,
)
from muhat.testing._pairs import PairSide, ShuffledSide
from muhat.testing._permutations import NullMoments, PermutationTable, Relabelings
from muhat.testing._side_gram import GramForm
from muhat.testing._wording import share_texts

CLOSE = 1e-10
EVALUATED = 1e-8
"""Relative: functions evaluated by blocks of the kernel."""
SEED = 12
OF_GAMMA = [name for name in FILTERS if name != "componentwise"]
QUICK = {"bandwidths": 3, "n_permutations": 39, "random_state": SEED}


def rng():
    return np.random.default_rng(SEED)


def filter_of(name, parameter, C):
    """s_λ(C) as a matrix: what the definition makes of each unit vector."""
    columns = [
        reference.shrunk(name, parameter, C, unit, np.zeros(len(C))) for unit in np.eye(len(C))
    ]
    return np.column_stack(columns)


def weighted_kernel(statistic, K):
    """The kernel matrix whose MMD the statistic is, from the centred Gram matrix."""
    H = np.eye(len(K)) - 1 / len(K)
    gamma, U = np.linalg.eigh(H @ K @ H)
    F = (U * np.sqrt(np.maximum(gamma, 0)))[:, gamma > 1e-12 * gamma[-1]]
    if isinstance(statistic, MMD):
        return F @ F.T
    C = F.T @ F / len(K)
    s = filter_of(statistic.filter, statistic.parameter, C)
    return F @ (np.linalg.inv(C) @ s if isinstance(statistic, Spectral) else s @ s) @ F.T


def mmd_of(S, x, y, unbiased):
    """The V- or U-statistic from the matrix of a kernel, by loops over pairs."""

    def mean(a, b, same):
        pairs = [S[i, j] for i in a for j in b if not (same and unbiased and i == j)]
        return sum(pairs) / len(pairs)

    return mean(x, x, True) + mean(y, y, True) - 2 * mean(x, y, False)


def every_statistic():
    yield MMD()
    for name in OF_GAMMA:
        parameter = 7 if issubclass(FILTERS[name], Iteration) else 0.03
        yield ShrunkMeans(name, parameter)
        if not FILTERS[name].constant:
            yield Spectral(name, parameter)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("sizes", [(6, 6), (5, 8), (9, 3)])
@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplacian(2.0)])
def test_all_statistics_at_once_are_those_of_the_obvious_loop(kernel, sizes, unbiased):
    n, m = sizes
    Z = rng().normal(size=(n + m, 3))
    labels = Relabelings.draw(np.arange(n + m) < n, 6, rng()).labels
    statistics = [each.set_params(unbiased=unbiased) for each in every_statistic()]
    spectrum = PooledSpectrum.from_rows(kernel, Z)
    values, _ = spectrum.statistics(spectrum.resolve(statistics), labels)
    assert values.shape == (len(statistics), 7)
    for statistic, row in zip(statistics, values, strict=True):
        for column, value in zip(labels.T, row, strict=True):
            order = np.concatenate([np.flatnonzero(column), np.flatnonzero(~column)])
            S = weighted_kernel(statistic, kernel(Z[order]))  # anew, on the permuted rows
            assert value == pytest.approx(
                mmd_of(S, range(n), range(n, n + m), unbiased), abs=CLOSE
            ), statistic


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("options", [{}, {"bins": 6}, {"block_length": 3}])
def test_mmd_without_a_spectrum_is_mmd_with_one(options, unbiased):
    """A kernel that does not say that it is positive semi-definite has its spectrum looked at."""
    X, Y = rng().normal(size=(14, 2)), rng().normal(0.5, size=(10, 2))
    test = TwoSampleTest(statistics=MMD(unbiased), random_state=SEED, **options)
    direct, checked = (
        test.set_params(kernel=kernel).test(X, Y)
        for kernel in (Gaussian(1.3), lambda x, y: Gaussian(1.3)(x, y))
    )
    assert direct.p_value == checked.p_value < 1
    assert direct.tests[0].value == pytest.approx(checked.tests[0].value, rel=CLOSE)
    assert direct.mmd == pytest.approx(checked.mmd, rel=CLOSE)
    np.testing.assert_allclose(*(np.diff(each.witness_x) for each in (direct, checked)), atol=CLOSE)
    if not options:  # else the spectrum is that of rows, and their law about that of units
        np.testing.assert_allclose(direct.mmd_interval, checked.mmd_interval, atol=CLOSE)
        np.testing.assert_allclose(direct.permuted, checked.permuted, atol=CLOSE)


def test_a_statistic_that_is_made_from_mmd_keeps_its_own_weight():
    class Root(MMD):
        def weight(self, gamma):
            return np.sqrt(gamma)

    X, Y = rng().normal(size=(8, 2)), rng().normal(0.5, size=(7, 2))
    alone, beside = (
        TwoSampleTest(Gaussian(1.0), statistics=each, random_state=SEED).test(X, Y)
        for each in (Root(), [Root(), MMD()])
    )
    assert (
        alone.tests[0].value
        == pytest.approx(beside.tests[0].value, rel=CLOSE)
        != beside.tests[1].value
    )


@pytest.mark.parametrize("statistics", ["mmd", ["mmd", "spectral"]])
def test_no_scale_is_beyond_the_p_value(statistics):
    """γ³ is beyond the range of numbers long before γ is."""
    X, Y = rng().normal(size=(20, 2)), rng().normal(0.5, size=(15, 2))
    test = TwoSampleTest(Linear(), statistics=statistics, random_state=SEED)
    expected = test.test(X, Y).p_value
    assert [test.test(X * scale, Y * scale).p_value for scale in (1e-150, 1e-55, 1e52, 1e150)] == [
        expected
    ] * 4
    pairs = IndependenceTest(Linear(), n_permutations=99, random_state=SEED)
    assert pairs.test(1e-60 * X, 1e60 * X).p_value == pairs.test(X, X).p_value


def test_a_wide_kernel_is_no_indefinite_one():
    """What is left of K when it is centred is 1e-8 of it.

    So are its rounding errors of what is left.
    """
    X, Y = rng().normal(size=(30, 2)), rng().normal(0.5, size=(30, 2))
    wide = TwoSampleTest(Gaussian(1e4), random_state=SEED).test(X, Y)
    assert wide.p_value == pytest.approx(
        TwoSampleTest(Linear(), random_state=SEED).test(X, Y).p_value, abs=0.01
    )
    for kernel, options in ((Gaussian(1e12), {}), (0.1 * Gaussian(1e12), {"statistics": "mmd"})):
        with pytest.raises(ValueError, match="the kernel must distinguish different rows"):
            TwoSampleTest(kernel, **options).test(X, Y)


def test_blocks_refuse_what_is_no_kernel():
    X, Y = rng().normal(size=(20, 2)), rng().normal(size=(20, 2))
    test = TwoSampleTest(lambda x, y: -Gaussian(1.0)(x, y), statistics="mmd", gram="blocks")
    with pytest.raises(ValueError, match="must be positive semi-definite"):
        test.test(X, Y)
    with pytest.raises(ValueError, match=r"k\(x, y\) = k\(y, x\) is needed"):
        test.set_params(kernel=lambda x, y: np.outer(x[:, 0], y[:, 1])).test(X, Y)


def test_constant_shrinkage_and_samples_of_one_size_change_no_p_value():
    X, Y = rng().normal(size=(12, 2)), rng().normal(0.7, size=(12, 2))
    single = {"kernel": Gaussian(1.0), "random_state": SEED}
    plain, unbiased, shrunk = (
        TwoSampleTest(**single, statistics=each).test(X, Y)
        for each in (MMD(), MMD(True), ShrunkMeans("s-kmse", 0.5))
    )
    assert plain.p_value == unbiased.p_value == shrunk.p_value < 1
    assert plain.tests[0].value == pytest.approx(1.5**2 * shrunk.tests[0].value, rel=CLOSE)
    assert plain.mmd == pytest.approx(np.sqrt(plain.tests[0].value), rel=CLOSE)


@pytest.mark.parametrize("statistics", ["mmd", ["mmd", "spectral"]])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 4)])
def test_over_all_relabelings_the_p_value_has_the_distribution_that_theory_says(n, m, statistics):
    """Each relabeling observed once.

    P(p ≤ k/R) = k/R, in pairs where a relabeling and its complement are alike.
    """
    Z = rng().normal(size=(n + m, 2))
    found = []
    for rows in combinations(range(n + m), n):
        rest = np.setdiff1d(np.arange(n + m), rows)
        result = TwoSampleTest(statistics=statistics, bandwidths=[1.0, 2.0], random_state=1).test(
            Z[list(rows)], Z[rest]
        )
        assert result.is_complete
        found.append(Fraction(result.p_value).limit_denominator(1000))
    each = 2 if n == m else 1
    assert len(found) == {(4, 4): 70, (3, 4): 35}[n, m] == result.n_permutations + 1
    assert sorted(found) == [
        Fraction(each * (1 + place // each), len(found)) for place in range(len(found))
    ]


def test_over_all_orders_the_p_value_of_independence_has_the_distribution_that_theory_says():
    X, Y = rng().normal(size=(4, 2)), rng().normal(size=(4, 1))
    found = []
    for order in permutations(range(4)):
        result = IndependenceTest(bandwidths=[0.8, 2.0], random_state=1).test(X, Y[list(order)])
        found.append(Fraction(result.p_value).limit_denominator(1000))
    assert result.is_complete
    assert sorted(found) == [Fraction(place + 1, 24) for place in range(24)]


def test_permutations_keep_the_sizes_and_are_uniform():
    observed = np.array([1, 0, 0, 1, 0]) > 0
    drawn = Relabelings.draw(observed, 9, rng())
    assert drawn.is_complete
    assert len(np.unique(drawn.labels, axis=1).T) == 10
    random = Relabelings.draw(observed, 8, rng())
    assert not random.is_complete
    many = Relabelings.draw(np.arange(20) < 7, 4000, rng()).labels
    for labels in (drawn.labels, random.labels):
        assert (labels[:, 0] == observed).all()
        assert (labels.sum(axis=0) == 2).all()
    assert (many.sum(axis=0) == 7).all()
    assert np.abs(many[:, 1:].mean(axis=1) - 0.35).max() < 4 * np.sqrt(0.35 * 0.65 / 4000)


def null_samples(name, random):
    if name == "ties":
        return random.integers(3, size=(7, 2)), random.integers(3, size=(9, 2))
    if name == "heavy tails":
        return random.standard_cauchy((8, 2)), random.standard_cauchy((6, 2))
    return random.normal(size=(5, 30)), random.normal(size=(6, 30))


@pytest.mark.parametrize("name", ["ties", "heavy tails", "more features than rows"])
def test_the_level_holds_on_samples_of_one_distribution(name):
    """At most α of the p-values are up to α.

    About as many where there are no ties: 200 draws, fixed seed.
    """
    random, draws = rng(), 100
    found = np.array(
        [
            TwoSampleTest(bandwidths=2, n_permutations=19, random_state=seed)
            .test(*null_samples(name, random))
            .p_value
            for seed in range(draws)
        ]
    )
    assert found.min() >= 1 / 20
    for level in (0.05, 0.2, 0.5):
        error = 3 * np.sqrt(level * (1 - level) / draws)
        assert (found <= level).mean() <= level + error
        if name != "ties":
            assert (found <= level).mean() >= level - error


def test_the_level_holds_where_x_and_y_are_independent():
    random, draws = rng(), 100
    found = np.array(
        [
            IndependenceTest(bandwidths=2, n_permutations=19, random_state=seed)
            .test(random.normal(size=(8, 1)), random.integers(4, size=(8, 2)))
            .p_value
            for seed in range(draws)
        ]
    )
    for level in (0.05, 0.2, 0.5):
        assert (found <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / draws)


def test_a_p_value_counts_ties_and_is_never_zero():
    values = np.array(
        [[3.0, 3.0 * (1 - 1e-14), 1.0, 2.0], [1.0, 1.0, 1.0, 1.0], [9.0, 1.0, 2.0, 3.0]]
    )
    table = PermutationTable(values, np.abs(values).max(axis=1))
    assert table.p_values.tolist() == [0.5, 1.0, 0.25]
    assert not table.standardized[1].any()
    assert table.largest_statistic == 2
    assert table.p_value == 0.25
    assert (table.corrected >= table.p_values).all()
    below = PermutationTable(np.array([[1.0, 2.0, 3.0], [7.0, 7.0, 7.0]]), np.array([3.0, 7.0]))
    assert below.combined[0] < 0  # what never changes has no say
    assert below.largest_statistic == 0
    assert below.corrected.tolist() == [1.0, 1.0]
    equal = TwoSampleTest(**QUICK).test([[0.0], [1.0], [2.0]], [[0.0], [1.0], [2.0]])
    assert equal.p_value == 1.0


@pytest.mark.parametrize("kernel", [None, Linear(), "rational-quadratic"])
def test_scaling_and_moving_the_data_change_no_p_value(kernel):
    X, Y = rng().normal(size=(15, 3)), rng().normal(0.4, size=(11, 3))
    test = TwoSampleTest(kernel, **QUICK)
    plain, scaled, moved = (
        test.test(X, Y),
        test.test(1000 * X, 1000 * Y),
        test.test(X + 100, Y + 100),
    )
    for other in (scaled, moved) if kernel is None else (scaled,):
        assert other.p_value == plain.p_value
        assert [each.p_value for each in other.tests] == [each.p_value for each in plain.tests]
        assert [each.p_value for each in other.features] == [
            each.p_value for each in plain.features
        ]


def test_the_order_of_the_rows_changes_nothing_where_all_relabelings_are_taken():
    X, Y = rng().normal(size=(4, 2)), rng().normal(1.0, size=(4, 2))
    one, other = (
        TwoSampleTest(bandwidths=3, random_state=seed).test(X[order], Y[order[::-1]])
        for seed, order in ((0, np.arange(4)), (5, np.array([2, 0, 3, 1])))
    )
    assert one.is_complete
    assert other.p_value == one.p_value
    assert other.statistic == pytest.approx(one.statistic, abs=CLOSE)
    assert [each.p_value for each in other.tests] == [each.p_value for each in one.tests]


def test_scaling_one_side_changes_no_p_value_of_independence():
    x = rng().normal(size=(30, 1))
    y = x**2 + rng().normal(size=(30, 1))
    test = IndependenceTest(**QUICK)
    plain, scaled = test.test(x, y), test.test(x, 1000 * y)
    assert [each.p_value for each in scaled.tests] == [each.p_value for each in plain.tests]
    assert scaled.p_value == plain.p_value
    assert scaled.correlation == pytest.approx(plain.correlation, rel=CLOSE)


@pytest.mark.parametrize("gram", ["dense", Nystrom(9)])
def test_statistics_of_independence_are_those_of_the_obvious_loop(gram):
    X, Y = rng().normal(size=(9, 2)), rng().normal(size=(9, 1))
    n, H = 9, np.eye(9) - 1 / 9
    orders = CyclicOrders.draw(n, 5, rng())
    statistics = [MMD(), Spectral("f-kmse", 0.02), ShrunkMeans("landweber", 4)]
    test = IndependenceTest([Gaussian(1.0), Laplacian(0.7)])
    kernels = [Gaussian(1.0), Laplacian(0.7)]
    form = GramForm(has_matrices=True)
    if gram != "dense":
        form = GramForm(has_matrices=False, features=gram)
    x, y = (ShuffledSide.draw(PairSide(rows, None, kernels), form, rng()) for rows in (X, Y))
    [part] = test._given_statistics(x, y, statistics)
    values = test._values([part], orders).reshape(6, 6, len(orders))
    assert [of_y.kernel for of_y, _ in part.y.resolved] == [Gaussian(1.0)] * 3 + [
        Laplacian(0.7)
    ] * 3
    for a, (k, h) in enumerate((k, h) for k in (Gaussian(1.0), Laplacian(0.7)) for h in statistics):
        for b, (other, g) in enumerate(
            (other, g) for other in (Gaussian(1.0), Laplacian(0.7)) for g in statistics
        ):
            for column in range(len(orders)):
                order = orders[column]
                left, right = weighted_kernel(h, k(X)), weighted_kernel(g, other(Y[order]))
                hsic = np.trace(left @ H @ right @ H) / n**2
                assert values[a, b, column] == pytest.approx(
                    hsic, abs=CLOSE if gram == "dense" else EVALUATED
                )


@pytest.mark.parametrize(("n", "n_permutations"), [(33, 70), (431, 19)])
def test_default_statistics_on_landmarks_are_those_of_products_in_every_order(n, n_permutations):
    """Of few rows in several random orders, and of many rows in blocks."""
    X, Y = rng().normal(size=(n, 2)), rng().normal(size=(n, 1))
    orders = CyclicOrders.draw(n, n_permutations, rng(), in_blocks=True)
    test = IndependenceTest()
    form = GramForm(has_matrices=False, features=Nystrom(9))
    kernels = [Gaussian()]
    x, y = (ShuffledSide.draw(PairSide(rows, None, kernels), form, rng()) for rows in (X, Y))
    parts = test._default_statistics(x, y)
    values = iter(test._values(parts, orders))
    for part in parts:
        for of_x, h in part.x.resolved:
            for of_y, g in part.y.resolved:
                found, (U, V) = next(values), (of_x.spectrum, of_y.spectrum)
                h_x, g_y = h.weight(U.gamma), g.weight(V.gamma)
                U, V = U.components(U.gamma > 0), V.components(V.gamma > 0)
                for place in (0, 1, len(orders) // 2, len(orders) - 1):
                    expected = h_x @ (U.T @ V[orders[place]]) ** 2 @ g_y
                    assert found[place] == pytest.approx(expected, rel=1e-9)
    assert next(values, None) is None


def test_many_pairs_take_landmarks_by_themselves(monkeypatch):
    monkeypatch.setattr("muhat.testing._independence.MAX_ROWS_DENSE", 50)
    monkeypatch.setattr("muhat.testing._independence.MAX_ROWS_OF_MATRICES", 60)
    monkeypatch.setattr("muhat.testing._independence.N_LANDMARKS", 20)
    x = rng().normal(size=(90, 1))
    y = x**2 + 0.5 * rng().normal(size=(90, 1))
    few, dense = (IndependenceTest(gram=gram, **QUICK).test(x, y) for gram in ("auto", "dense"))
    assert few.p_value == dense.p_value == 1 / 40
    one = {"kernel": Gaussian(1.0), "statistics": "mmd", **QUICK}
    few, dense = (
        IndependenceTest(gram=gram, **one).test(x, y).correlation for gram in ("auto", "dense")
    )
    assert few == pytest.approx(dense, rel=0.01)
    apart = IndependenceTest("gaussian", gram=RandomFeatures(30), **QUICK).test(
        x, rng().normal(size=(90, 1))[::-1]
    )
    assert apart.p_value > 1 / 40


def test_a_difference_and_a_dependence_are_found():
    random = rng()
    X, Y = random.normal(size=(60, 3)), random.normal(size=(50, 3)) * [1, 3, 1]
    result = TwoSampleTest(n_permutations=199, random_state=0).test(X, Y)
    assert result.p_value == 1 / 200
    assert result.features[0].name == "column 1"
    assert result.features[0].p_value == 1 / 200
    assert result.features[0].share > result.features[1].share
    assert result.verdict() == (
        "The samples of 60 and 50 rows differ (p ≤ 0.005). "
        "Largest difference: column 1 varies more in Y (SD 3.1) than in X (SD 0.89)."
    )
    assert result.verdict(level=0.001) == (
        "It was not tested at level 0.001 whether the samples of 60 and 50 rows differ: with only "
        "199 permutations, p cannot be below 0.005. Use more permutations."
    )
    assert len(result.permuted) == 199
    assert len(result.tests) == len({str(each) for each in result.tests})
    angle = random.uniform(0, 2 * np.pi, size=80)
    x, y = (f(angle)[:, None] + 0.1 * random.normal(size=(80, 1)) for f in (np.cos, np.sin))
    found = IndependenceTest(n_permutations=199, random_state=1).test(x, y)
    assert found.p_value == 1 / 200
    assert found.verdict().startswith("x and y are dependent (80 rows, p ≤ 0.005). ")
    assert 0 < found.correlation < IndependenceTest(**QUICK).test(x, x).correlation
    assert repr(found).startswith("IndependenceResult(p ≤ 0.005")


def test_the_displays_show_the_result():
    X, Y = rng().normal(size=(14, 2)), rng().normal(1.0, size=(10, 2))
    result = TwoSampleTest(**QUICK).test(X, Y)
    columns, permutations, along, witness = figure_of_test(result).axes[:4]
    assert len(columns.patches) == 2
    assert sum(bars.get_data().values.sum() for bars in permutations.patches) == 39
    assert permutations.lines[0].get_xdata()[0] == result.statistic
    observed = permutations.get_legend().get_texts()[-1].get_text()
    assert observed.startswith("observed: ")
    assert observed.endswith(result.p_text)
    shares = [bars.get_data().values.sum() for bars in witness.patches]
    assert shares == pytest.approx([100, 100])
    assert [text.get_text() for text in witness.get_legend().get_texts()] == [
        "X, 14 rows",
        "Y, 10 rows",
    ]
    number = int(result.features[0].name.removeprefix("column "))
    assert along.get_xlabel() == result.features[0].name
    shown = np.column_stack([Y[:, number], result.witness_y])
    np.testing.assert_array_equal(along.collections[1].get_offsets(), shown)
    chart = PValueMapDisplay.from_result(result)
    # MMD and truncated SVD at five λ; two kernels at three bandwidths, mean ranks and their spread
    assert chart.p_values.shape == (6, 8)
    assert chart.rows[:2] == ["MMD", "Spectral(tsvd, 0.1 γ₁)"]
    shown = chart.p_values.T.ravel()
    np.testing.assert_array_equal(shown[~np.isnan(shown)], [each.p_value for each in result.tests])
    assert chart.p_values[chart.best] == result.best.p_value
    dependence = IndependenceTest(
        bandwidths=2, statistics=["mmd", "scose"], n_permutations=19, random_state=0
    ).test(X, X**2)
    assert PValueMapDisplay.from_result(dependence).p_values.shape == (2, 2)
    assert len(figure_of_test(dependence).axes) == 1


def test_scores_are_normal_quantiles_of_weighted_sums_of_squares():
    """Wilson and Hilferty's scores of exact quantiles.

    Of χ² with k degrees of freedom, and of sums with two weights.
    """
    for h in (np.ones(1), np.ones(20), np.array([1.0, 0.5, 0.5, 0.1])):
        law = NullMoments.from_squares(
            np.array([[(h**power).sum()] for power in (1, 2, 3)]), np.ones(1)
        )
        drawn = np.sort(rng().normal(size=(200_000, len(h))) ** 2 @ h)
        for level in (0.5, 0.9, 0.99):
            assert law.scores(drawn[[[int(level * len(drawn))]]])[0, 0] == pytest.approx(
                norm.ppf(level), abs=0.1
            )


@pytest.mark.parametrize("unbiased", [False, True])
def test_permutations_have_the_mean_and_about_the_spread_that_theory_says(unbiased):
    Z = rng().normal(size=(60, 2))
    labels = Relabelings.draw(np.arange(60) < 25, 4000, rng()).labels
    spectrum = PooledSpectrum.from_rows(Gaussian(1.0), Z)
    statistics = spectrum.resolve([MMD(unbiased), Spectral("f-kmse", 0.1, unbiased)])
    values, _ = spectrum.statistics(statistics, labels)
    law = spectrum.null_moments(statistics, labels)
    error = values.std(axis=1) / np.sqrt(4000)
    assert (np.abs(values.mean(axis=1) - law.mean) < 4 * error).all()
    np.testing.assert_allclose(values.std(axis=1), law.spread, rtol=0.2)


def test_the_interval_of_the_distance_covers_it():
    """Two Gaussians at known distance, in the RKHS too.

    95 % within the error of 200 draws, or more; and none apart.
    """
    random, kernel, draws = rng(), Gaussian(1.0), 200
    for shift in (0.0, 0.4, 1.5):
        within, across = (
            np.exp(-(gap**2) / 6) / np.sqrt(3) for gap in (0.0, shift)
        )  # E k(x, y), variance 1 + 1 + 1
        distance, covered = np.sqrt(2 * (within - across)), 0
        for _ in range(draws):
            Z = np.concatenate([random.normal(size=(40, 1)), random.normal(shift, size=(30, 1))])
            low, high = PooledSpectrum.from_rows(kernel, Z).mmd_interval(np.arange(70) < 40)
            covered += low <= distance <= high
        assert covered / draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)


def test_the_interval_covers_less_often_where_few_rows_far_away_differ():
    """What docs/tests.md says of it: 3 % of one sample is far away."""
    kernel, n, share, draws = Gaussian(10.0), 100, 0.03, 100
    within, across = (np.exp(-(gap**2) / 204) * (100 / 102) ** 0.5 for gap in (0.0, 50.0))
    distance, covered = share * np.sqrt(2 * (within - across)), 0
    for seed in range(draws):
        random = np.random.default_rng([11, seed])
        X, Y = random.normal(size=(2, n, 1))
        Y[random.uniform(size=n) < share] += 50
        Z = np.concatenate([X, Y])
        low, high = PooledSpectrum.from_rows(kernel, Z).mmd_interval(np.arange(2 * n) < n)
        covered += low <= distance <= high
    error = 3 * np.sqrt(0.85 * 0.15 / draws)
    assert 0.8 - error <= covered / draws <= 0.9 + error


@pytest.mark.parametrize("name", ["scose", "fcose", "landweber"])
def test_the_shrunk_cross_covariance_is_that_of_the_obvious_loop(name):
    X, Y = rng().normal(size=(9, 2)), rng().normal(size=(9, 1))
    H = np.eye(9) - 1 / 9
    statistic = {"scose": ShrunkCovariance("s-kmse"), "fcose": ShrunkCovariance()}.get(
        name, ShrunkCovariance(name, 5)
    )
    options = {
        "statistics": name if name.endswith("cose") else statistic,
        "n_permutations": 4,
        "standardize": False,
    }
    result = IndependenceTest(Gaussian(1.0), kernel_y=Laplacian(0.7), **options).test(X, Y)
    order = rng().permutation(9)
    for shuffled in (np.arange(9), order):
        K, L = H @ Gaussian(1.0)(X) @ H, H @ Laplacian(0.7)(Y[shuffled]) @ H
        F = reference.features(K * L / np.mean(np.diag(K) * np.diag(L)))
        if name == "landweber":
            shrunk = reference.estimate(name, 5, F, np.ones(9), kappa2=(F**2).sum(axis=1).max())
        else:
            filter = {"scose": "s-kmse", "fcose": "f-kmse"}[name]
            grid = KernelMean(kernel="precomputed", filter=filter).fit(F @ F.T).choice_.grid
            scores = [
                sum(
                    (
                        (
                            F[i]
                            - reference.estimate(filter, lam, np.delete(F, i, axis=0), np.ones(8))
                        )
                        ** 2
                    ).sum()
                    for i in range(9)
                )
                for lam in grid
            ]
            shrunk = reference.estimate(filter, grid[int(np.argmin(scores))], F, np.ones(9))
        expected = (shrunk @ shrunk) * np.mean(np.diag(K) * np.diag(L))
        assert statistic.squared_norm(K * L) == pytest.approx(expected, rel=1e-10)
    if name == "landweber":
        assert str(result.best) == "ShrunkCovariance(landweber, 5) of Gaussian(1) × Laplacian(0.7)"
    assert result.tests[0].value * 81 == pytest.approx(
        statistic.squared_norm((H @ Gaussian(1.0)(X) @ H) * (H @ Laplacian(0.7)(Y) @ H)), rel=1e-10
    )


@pytest.mark.parametrize(
    "statistic", [MMD(), Spectral("f-kmse", 0.01), ShrunkMeans("nu-method", 4)]
)
def test_the_witness_is_an_embedding_that_carries_the_statistic(statistic):
    X, Y = rng().normal(size=(14, 2)), rng().normal(1.0, size=(10, 2))
    result = TwoSampleTest(Gaussian(1.5), statistics=statistic, standardize=False).test(X, Y)
    assert isinstance(result.witness.element, Embedding)
    assert result.witness(X).mean() - result.witness(Y).mean() == pytest.approx(
        result.tests[0].value, rel=EVALUATED
    )
    np.testing.assert_allclose(result.witness_x, result.witness(X))
    assert result.witness_x[result.rows_x[0]] == result.witness_x.max()
    assert result.witness_y[result.rows_y[0]] == result.witness_y.min()
    if isinstance(statistic, MMD):
        means = (
            Embedding(Gaussian(1.5), X, np.full(14, 1 / 14)),
            Embedding(Gaussian(1.5), Y, np.full(10, 1 / 10)),
        )
        np.testing.assert_allclose(result.witness(X), (means[0] - means[1])(X), atol=CLOSE)
        assert result.mmd == pytest.approx(means[0].distance(means[1]), rel=EVALUATED)


@pytest.mark.parametrize("unbiased", [False, True])
def test_as_many_landmarks_as_rows_give_the_dense_test(unbiased):
    X, Y = rng().normal(size=(14, 2)), rng().normal(0.6, size=(9, 2))
    statistics = [MMD(unbiased), Spectral("f-kmse", [0.1, 0.01], unbiased)]
    options = {"kernel": Gaussian(1.0), "statistics": statistics, "random_state": 3}
    dense, nystrom = (
        TwoSampleTest(gram=gram, **options).test(X, Y) for gram in ("dense", Nystrom(23))
    )
    assert nystrom.p_value == dense.p_value
    for one, other in zip(nystrom.tests, dense.tests, strict=True):
        assert one.value == pytest.approx(other.value, rel=EVALUATED)
        assert one.p_value == other.p_value
    shift = (dense.witness_x - nystrom.witness_x).mean()  # the witness is known up to a constant
    np.testing.assert_allclose(nystrom.witness_y + shift, dense.witness_y, atol=1e-6)


def test_many_rows_take_landmarks_by_themselves(monkeypatch):
    monkeypatch.setattr("muhat.testing._two_samples.MAX_ROWS_DENSE", 50)
    monkeypatch.setattr("muhat.testing._two_samples.N_LANDMARKS", 20)
    monkeypatch.setattr("muhat.testing._gram.ROWS_PER_BLOCK", 7)
    monkeypatch.setattr("muhat.testing._permutations.MAX_RANDOM_HELD", 1000)
    monkeypatch.setattr("muhat.testing._marginals.MAX_VALUES_HELD", 1000)
    X, Y = rng().normal(size=(60, 2)), rng().normal(1.0, size=(40, 2))
    result = TwoSampleTest(**QUICK).test(X, Y)
    assert result.p_value == 1 / 40
    assert len(result.witness.element.points) == 20
    random = TwoSampleTest("gaussian", gram=RandomFeatures(30), **QUICK).test(X, Y)
    assert random.p_value == 1 / 40
    assert random.witness_x.mean() > random.witness_y.mean()


def test_the_difference_in_a_feature_is_its_energy_distance():
    X, Y = rng().integers(5, size=(7, 2)).astype(float), rng().normal(1.0, size=(6, 2))
    labels = Relabelings.draw(np.arange(13) < 7, 19, rng()).labels
    moments = (ColumnMoments.from_batch(SampleBatch(each, 0)) for each in (X, Y))
    columns = ColumnDistances.from_rows(np.concatenate([X, Y]), labels)
    for each in columns.features(shifts_between(*moments), ("a", "b")):
        x, y = X[:, "ab".index(each.name)], Y[:, "ab".index(each.name)]
        across, within_x, within_y = (
            np.abs(a[:, None] - b).mean() for a, b in ((x, y), (x, x), (y, y))
        )
        assert each.share == pytest.approx(
            (2 * across - within_x - within_y) / (2 * across), abs=CLOSE
        )
        within = np.sqrt((7 * x.var() + 6 * y.var()) / 11)
        assert each.shift == pytest.approx((y.mean() - x.mean()) / within, abs=CLOSE)


def test_columns_of_many_rows_are_compared_at_places_that_stand_for_all():
    Z = np.column_stack(
        [
            rng().normal(size=800),
            rng().standard_cauchy(size=800),
            rng().integers(2, size=800),
            rng().integers(6, size=800),
            np.zeros(800),
        ]
    )
    labels = Relabelings.draw(np.arange(800) < 300, 99, rng()).labels
    whole, places = ColumnDistances.from_rows(Z, labels), ColumnDistances.at_quantiles(Z, labels)
    np.testing.assert_array_equal(places.shares, whole.shares)
    for one, other in zip(places.integrals[:4], whole.integrals, strict=False):
        assert np.corrcoef(one, other)[0, 1] > 0.998
        assert one.mean() == pytest.approx(other.mean(), rel=0.02)
    np.testing.assert_allclose(places.integrals[2], whole.integrals[2], rtol=CLOSE)  # two values
    np.testing.assert_array_equal(places.integrals[4], 0)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(3.0), Distance(ranks=True)], ids=repr)
def test_large_eigenpairs_on_all_rows_as_landmarks_are_those_of_the_gram_matrix(kernel):
    Z = rng().normal(size=(60, 2))
    kernel = kernel.resolve(Z)
    labels = Relabelings.draw(np.arange(60) < 25, 19, rng()).labels
    found = spectrum_on_landmarks(kernel, 60, Z, is_single_row=True)
    expected = PooledSpectrum.from_rows(kernel, Z)
    largest = expected.gamma[::-1][: len(found.gamma)]
    np.testing.assert_allclose(found.gamma[::-1], largest, rtol=2e-2, atol=1e-5 * largest[0])
    statistics = [MMD(), *Spectral(shares=(0.1, 0.01)).resolve(expected.gamma, 1.0)]
    values, _ = found.statistics(statistics, labels)
    exact, _ = expected.statistics(statistics, labels)
    np.testing.assert_allclose(values, exact, rtol=1e-2)
    assert found.squared_mmd(labels[:, 0]) == pytest.approx(exact[0, 0], rel=1e-10)
    for statistic, value in zip(statistics, exact[:, 0], strict=True):
        f = found.witness(statistic, labels[:, 0])(Z)
        first = labels[:, 0]
        assert f[first].mean() - f[~first].mean() == pytest.approx(value, rel=1e-2)


def test_bandwidths_of_many_rows_are_in_steps_of_at_least_a_root_of_two():
    for d in (1, 5, 20):
        Z = rng().normal(size=(400, d))
        kernels = few_kernels(Z)
        sigma = np.array([each.bandwidth for each in kernels if isinstance(each, Gaussian)])
        whole = ladder(Z, "euclidean", 14)
        assert sigma[[0, -1]] == pytest.approx(whole[[0, -1]])
        assert 2 <= len(sigma) <= 14
        np.testing.assert_allclose(sigma[1:] / sigma[:-1], sigma[1] / sigma[0])
        assert sigma[1] / sigma[0] >= np.sqrt(2) or len(sigma) == 14
    equal = few_kernels(np.ones((10, 2)))
    assert all(each.bandwidth > 0 for each in equal)


def test_bandwidths_come_from_the_distances_between_rows_that_differ():
    Z = np.repeat([[0.0], [1.0], [3.0]], 20, axis=0)
    for metric in ("euclidean", "cityblock"):
        steps = ladder(Z, metric, 3)
        assert steps[0] == pytest.approx(0.5)
        assert steps[-1] == pytest.approx(3.0)
        np.testing.assert_allclose(steps[1] ** 2, steps[0] * steps[2])
    asked = TwoSampleTest(
        ["gaussian", Gaussian(7.0), "linear"],
        bandwidths=[1.0, 2.0],
        statistics="mmd",
        random_state=0,
    )
    result = asked.test(Z[:30] + rng().normal(size=(30, 1)), Z[30:])
    assert [repr(each.kernels[0]) for each in result.tests] == [
        *(
            "Gaussian(bandwidth=1.0)",
            "Gaussian(bandwidth=2.0)",
            "Gaussian(bandwidth=7.0)",
            "Linear()",
        ),
    ]
    median = TwoSampleTest("gaussian", bandwidths="median", statistics="mmd", random_state=0).test(
        Z[::2], Z[1::2]
    )
    assert len(median.tests) == 1


def test_the_result_depends_on_the_seed_alone_and_the_test_object_on_nothing():
    X, Y = pd.DataFrame(rng().normal(size=(12, 2)), columns=["a", "b"]), rng().normal(size=(9, 2))
    test = TwoSampleTest(**QUICK)
    first, again = test.test(X, Y), clone(test).test(X, Y)
    one_core = clone(test).set_params(n_jobs=np.int64(1)).test(X, Y)
    for other in (again, one_core):
        assert other.p_value == first.p_value
        np.testing.assert_array_equal(other.permuted, first.permuted)
    assert {each.name for each in first.features} == {"a", "b"}
    assert vars(test) == vars(clone(test))


A = rng().normal(size=(6, 2))
FRAME = pd.DataFrame(A, columns=["a", "b"])
REFUSED = {
    "other columns": (A, A[:, :1], "X and Y must have the same columns, got 2 and 1 columns"),
    "other names": (
        FRAME,
        FRAME.rename(columns={"b": "c"}),
        "X and Y must have the same columns, got 'b' in X but not in Y",
    ),
    "one row each": (A[:1], A[:1], "X must have at least 2 rows, got 1 row"),
    "ragged": (
        A,
        [[1.0, 2.0], [3.0]],
        "the rows of Y must have equal lengths, got unequal ones; make all rows equally long",
    ),
    "a dict": (
        {"a": 1},
        A,
        "X must be an array, a data frame or a list, points in rows, got a dict",
    ),
    "a generator": (
        (row for row in A),
        A,
        "batches that can be iterated more than once are needed, got a generator",
    ),
    "a name twice": (
        FRAME.set_axis(["a", "a"], axis=1),
        A,
        "columns of X must have different names, got 'a' twice; rename or drop one",
    ),
    "NaN": (
        A,
        np.where(np.arange(6)[:, None] == 4, np.nan, A),
        r"Y must be finite, got 1 row with NaN \(first: Y\[4\]\)",
    ),
    "text": (
        A,
        pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
        "every column of Y must be numeric, got text or dates in 'b'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_samples_are_refused_in_one_sentence(case):
    X, Y, sentence = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=f"^TwoSampleTest: .*{sentence}") as refused:
        TwoSampleTest().test(X, Y)
    assert "\n" not in str(refused.value)


PARAMETERS = {
    "permutations": (
        {"n_permutations": 0},
        "n_permutations must be a whole number of at least 1, got 0",
    ),
    "statistic": ({"statistics": "mdd"}, "did you mean 'mmd'?"),
    "no statistics": ({"statistics": []}, "at least one statistic is needed"),
    "a number": ({"statistics": 3}, "a name, a statistic such as"),
    "constant": (
        {"statistics": Spectral("s-kmse", 1.0)},
        "Spectral: the filter must weight eigenvalues differently, got s-kmse",
    ),
    "componentwise": (
        {"statistics": ShrunkMeans("componentwise")},
        "a function of γ is needed, got componentwise",
    ),
    "parameter": ({"statistics": Spectral("f-kmse", -1)}, "λ must be positive and finite"),
    "shares": (
        {"statistics": Spectral(shares=[0.1, -1])},
        "Spectral: each of shares must be positive",
    ),
    "bandwidths": (
        {"bandwidths": "mean"},
        "bandwidths must be a number of steps, 'median', or a list",
    ),
    "bandwidth": ({"bandwidths": [1.0, -1.0]}, "each of bandwidths must be positive"),
    "no kernel": ({"kernel": []}, "at least one kernel is needed"),
    "kernel": ({"kernel": "gausian"}, "did you mean 'gaussian'?"),
    "gram": ({"gram": "densse"}, "did you mean 'dense'?"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs must be a whole number, not zero, or None, got 0"),
}


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (case, kind)
        for case, (parameters, _) in PARAMETERS.items()
        for kind in (TwoSampleTest, IndependenceTest)
        if {*parameters} <= {*kind().get_params()}
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(case, kind):
    parameters, sentence = PARAMETERS[case]
    with pytest.raises((ValueError, TypeError)) as refused:
        kind(**parameters).test(A, A + 1)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_independence_refuses_what_it_cannot_pair():
    with pytest.raises(
        ValueError, match="at most 2000 rows are supported, got 2001; use gram='nystrom'"
    ):
        IndependenceTest(gram="dense").test(np.zeros((2001, 1)), np.zeros((2001, 1)))
    with pytest.raises(
        ValueError,
        match="IndependenceTest: at most 100000 rows are supported, got 100001; use a random",
    ):
        IndependenceTest().test(np.zeros((100_001, 1)), np.zeros((100_001, 1)))
    with pytest.raises(
        ValueError, match="IndependenceTest: a gram with eigenvalues is needed, got 'blocks'"
    ):
        IndependenceTest(gram="blocks").test(A, A)
    with pytest.raises(
        ValueError,
        match=r"ShrunkCovariance\(f-kmse\): at most 200 rows are supported, got 201; use 'scose'",
    ):
        IndependenceTest(statistics="fcose").test(
            rng().normal(size=(201, 1)), rng().normal(size=(201, 1))
        )
    with pytest.raises(
        ValueError, match="ShrunkCovariance: a statistic of the pooled eigenvalues is needed"
    ):
        TwoSampleTest(statistics=ShrunkCovariance()).test(A, A + 1)
    with pytest.raises(ValueError, match="must not be unbiased"):
        IndependenceTest(statistics=MMD(unbiased=True)).test(A, A)
    with pytest.raises(
        ValueError, match="statistics must be 'mmd' with gram='blocks', got Spectral"
    ):
        TwoSampleTest(gram="blocks").test(A, A + 1)
    for test in (TwoSampleTest, IndependenceTest):
        with pytest.raises(ValueError, match="the kernel must distinguish different rows"):
            test(lambda X, Y: np.ones((len(X), len(Y)))).test(A, A)


def test_a_verdict_says_whether_a_column_is_wider_shifted_or_of_another_shape():
    random = rng()
    normal, wide = random.normal(size=(200, 1)), 3 * random.normal(size=(150, 1))
    names = ("var_b", "var_a")

    def where(X, Y, **options):
        found = TwoSampleTest(n_permutations=99, **options).test(X, Y, names=names).verdict()
        return found.partition("). Largest difference: ")[2]

    small, large = f"{normal.std(ddof=1):.2f}", f"{wide.std(ddof=1):.1f}"
    spread = f"varies more in var_a (SD {large}) than in var_b (SD {small})."
    assert where(normal, wide) == f"column 0 {spread}"
    assert where(normal, wide, bins=20) == f"column 0 {spread}"
    turned = f"varies more in var_b (SD {large}) than in var_a (SD {small})."
    assert where(wide, normal) == f"column 0 {turned}"
    two = np.tile([-1.0, 1.0], 100)[:, None] + 0.1 * normal  # mean 0 and variance 1, with two modes
    assert (
        where(normal - normal.mean(), two - two.mean())
        == "column 0, in the shape of its distribution rather than its mean or spread."
    )
    assert where(normal, normal + 1).endswith(" standard deviations higher in var_a.")
    both = where(normal, wide + 1)  # the spread differs more than the mean
    assert both.startswith("mean of column 0, ")
    assert both.endswith(f" standard deviations higher in var_a; column 0 also {spread}")
    assert where(normal, 1.5 * normal + 2).endswith(" standard deviations higher in var_a.")


def test_columns_of_zeros_and_ones_are_told_in_shares():
    order = rng().permutation(100)
    X, Y = (pd.DataFrame({"region = north": order < many}).astype(float) for many in (21, 47))
    found = TwoSampleTest(n_permutations=199).test(X, Y, names=("ca", "cb"))
    assert found.verdict() == (
        "ca (100 rows) and cb (100 rows) differ (p ≤ 0.005). "
        "Largest difference: region = north in 47 % of the rows of cb and in 21 % of those of ca."
    )
    assert found.features[0].means == pytest.approx((0.21, 0.47), abs=1e-12)
    assert found.features[0].is_indicator
    smokers = TwoSampleTest(n_permutations=199).test(
        *(each.set_axis(["smoker"], axis=1) for each in (X, Y))
    )
    assert smokers.verdict() == (
        "The samples of 100 and 100 rows differ (p ≤ 0.005). "
        "Largest difference: smoker is 1 in 47 % of the rows of Y and in 21 % of those of X."
    )
    X.iloc[0] = 0.5
    assert not TwoSampleTest(n_permutations=19).test(X, Y).features[0].is_indicator


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ((0.015, 0.0425), ["1.5 %", "4.2 %"]),
        ((0.213, 0.468), ["21 %", "47 %"]),
        ((0.03, 0.475), ["3 %", "48 %"]),
        ((0.015, 0.475), ["1.5 %", "48 %"]),
        ((0.0249, 0.0251), ["2.49 %", "2.51 %"]),
        ((0.0996, 0.08), ["10 %", "8 %"]),
        ((0.0, 1.0), ["0 %", "100 %"]),
        ((0.4721, 0.4724), ["47.21 %", "47.24 %"]),
    ],
)
def test_small_shares_have_a_decimal(shares, texts):
    assert share_texts(shares) == texts


def test_samples_too_small_to_reach_the_level_say_so():
    def verdict(X, Y, **options):
        return TwoSampleTest(**options).test(np.array(X, dtype=float), np.array(Y, dtype=float))

    pair = verdict([1, 2], [3, 4])
    assert pair.verdict() == (
        "There are too few rows to tell whether the samples of 2 and 2 rows differ: with so few "
        "rows, p cannot be below 0.33."
    )
    assert pair.p_value == pytest.approx(pair.least_p_value) == pytest.approx(1 / 3)
    four = verdict([1, 2, 3], [9])
    assert four.verdict().endswith(": with so few rows, p cannot be below 0.25.")
    assert verdict([1, 2, 3], [9, 8, 7]).least_p_value == pytest.approx(
        0.1
    )  # of 20, one and its mirror image
    rows = rng().normal(size=(2, 40))
    few = verdict(*rows, n_permutations=9)
    assert few.verdict() == (
        "It was not tested at level 0.05 whether the samples of 40 and 40 rows differ: with only "
        "9 permutations, p cannot be below 0.1. Use more permutations."
    )
    assert (
        verdict(*rows, n_permutations=999, early_stopping=5)
        .verdict(0.01)
        .startswith("No difference between the samples of 40 and 40 rows detected (")
    )
    assert "too few" not in verdict(*rows[:, :30], n_permutations=19).verdict()
    three = IndependenceTest().test(rows[0, :3], rows[1, :3])
    assert three.verdict() == (
        "There are too few rows to tell whether x and y are dependent: with 3 rows, p cannot be "
        "below 0.17."
    )
    shuffled = IndependenceTest(n_permutations=9).test(*rows)
    assert shuffled.verdict() == (
        "It was not tested at level 0.05 whether x and y are dependent: with only 9 permutations, "
        "p cannot be below 0.1. Use more permutations."
    )


class TestFewValuesFarFromAllOthers:
    """They make the mean and spread of a column, not what is said of it."""

    @staticmethod
    def shifted(wild):
        rng = np.random.default_rng(SEED)
        X, Y = rng.normal(size=(100, 2)), rng.normal([1, 0], size=(100, 2))
        X[7, 0] = wild
        return [pd.DataFrame(each, columns=["x", "u"]) for each in (X, Y)]

    @pytest.mark.parametrize("options", [{}, {"block_length": 1}, {"block_length": 4}])
    @pytest.mark.parametrize("wild", [1e2, -1e6, 1e9])
    def test_the_verdict_is_on_medians(self, wild, options):
        X, Y = self.shifted(wild)
        result = TwoSampleTest(n_permutations=199, random_state=0, **options).test(X, Y)
        size = Y["x"].median() - X["x"].median()
        assert result.features[0].medians == (X["x"].median(), Y["x"].median())
        assert result.verdict().endswith(
            f"Largest difference: median of 'x', {size:.2g} higher in Y (the median is used "
            "because a few values are extreme)."
        )
        ordinary = TwoSampleTest(n_permutations=199, random_state=0, **options)
        X["x"] = np.minimum(np.abs(X["x"]), 3)
        other = ordinary.test(X, Y).features[1]
        assert (other.shift, other.share) == (result.features[1].shift, result.features[1].share)

    def test_a_shift_of_cauchy_columns_is_one_of_medians(self):
        rng = np.random.default_rng(SEED)
        X, Y = rng.standard_cauchy((300, 2)), rng.standard_cauchy((300, 2))
        Y[:, 0] += 1
        result = TwoSampleTest(n_permutations=199, random_state=0).test(X, Y)
        assert "median of column 0, " in result.verdict()
        assert result.features[1].differs_in == "shape"

    def test_only_columns_whose_spread_few_rows_make_have_limits(self):
        rng = np.random.default_rng(SEED)
        columns = {
            "normal": rng.normal(size=400),
            "lognormal": np.exp(rng.normal(size=400)),
            "rare": (rng.random(400) < 0.02).astype(float),
            "two groups": rng.normal(size=400) + 100 * (rng.random(400) < 0.2),
            "wild": np.concatenate([rng.normal(size=399), [1e9]]),
        }
        rows = np.stack(list(columns.values()), axis=1)
        low, high = far_limits(rows)
        assert np.isfinite(low).tolist() == np.isfinite(high).tolist() == [False] * 4 + [True]
        assert np.array_equal(clipped(rows)[:, :4], in_units(rows)[:, :4])
        with_limits, without = clipped(rows)[:-1, 4], rows[:-1, 4]
        assert np.corrcoef(with_limits, without)[0, 1] == pytest.approx(1)
