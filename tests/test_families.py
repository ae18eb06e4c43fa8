"""Families of statistics, the kernel of distances, input and verdicts of independence tests."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import cauchy, norm, rankdata, spearmanr

from benchmarks.weights import PROBLEMS, power
from muhat import IndependenceTest, Nystrom, RandomFeatures, TwoSampleTest
from muhat.kernels import Function, Gaussian, Precomputed
from muhat.testing._distances import Distance, LargestRankDifference, ranks_among
from muhat.testing._explained import ExplainedVariance
from muhat.testing._marginals import (
    counts_between,
    largest_mean_difference,
    mean_scores_at_cuts,
)
from muhat.testing._permutations import Family, PermutationTable
from muhat.testing._ranks import as_ranks
from paper._alternatives import DEPENDENCE, DIFFERENCES

CLOSE = 1e-10
SEED = 12


def rng():
    return np.random.default_rng(SEED)


def combined_by_loops(z, families):
    """C(b) by the formula, one permutation and one comparison at a time."""
    columns = z.shape[1]
    total = np.zeros(columns)
    for weight, rows in families:
        s = [np.log(np.mean([np.exp(5 * z[j, b]) for j in rows])) / 5 for b in range(columns)]
        for b in range(columns):
            p = sum(other >= s[b] - 1e-9 * np.abs(s).max() for other in s) / columns
            if p == 1 / columns:
                p *= norm.sf(s[b]) / norm.sf(sorted(s)[-2])
            total[b] += weight * np.tan(np.pi * (0.5 - min(p, 1 - 0.5 / columns)))
    return total


def test_families_are_combined_by_the_formula():
    values = rng().normal(size=(5, 40))
    values[4, :7] = values[4, 0]  # ties
    families = (
        Family(0.6, np.array([0, 2, 3])),
        Family(0.3, np.array([1])),
        Family(0.1, np.array([4])),
    )
    table = PermutationTable(values, np.abs(values).max(axis=1), None, families)
    expected = combined_by_loops(
        table.standardized, [(each.weight, each.rows) for each in families]
    )
    as_normal = norm.isf(cauchy.sf(expected))  # the weights sum to one
    np.testing.assert_allclose(table.combined, as_normal, rtol=CLOSE)
    assert table.p_value == np.mean(expected >= expected[0] - 1e-9)
    least, largest = (
        np.empty((3, 40)),
        [table.standardized[each.rows].max(axis=0) for each in families],
    )
    for number, each in enumerate(families):
        least[number] = [np.mean(largest[number] >= one) / each.weight for one in largest[number]]
    for number, each in enumerate(families):
        for row in each.rows:
            within = np.mean(largest[number] >= table.standardized[row, 0]) / each.weight
            assert table.corrected[row] == pytest.approx(
                np.mean(least.min(axis=0) <= within * (1 + 1e-9))
            )
    assert (table.corrected >= table.p_values).all()


def test_an_extreme_value_of_a_family_of_little_weight_has_the_least_p_value():
    values = rng().normal(size=(2, 40))
    values[1, 0] = 30.0
    families = (Family(0.9, np.array([0])), Family(0.1, np.array([1])))
    table = PermutationTable(values, np.abs(values).max(axis=1), None, families)
    assert table.p_value == 1 / 40
    ranks = PermutationTable(values.argsort().argsort() / 40, np.ones(2), None, families)
    assert ranks.p_value > 1 / 40  # an order alone does not say how far out it is


@pytest.mark.parametrize("spread", [False, True])
def test_the_column_in_which_ranks_differ_most_has_the_largest_score(spread):
    """Each column is in its standard deviations over all relabelings; a constant one has none."""
    Z = np.column_stack([rng().standard_cauchy(size=(7, 2)), [1, 1, 1, 2, 2, 3, 3], np.ones(7)])
    labels = np.zeros((7, 35), dtype=bool)
    for column, rows in enumerate(combinations(range(7), 3)):
        labels[list(rows), column] = True
    scores = []
    for values in Z.T[:3]:
        ranks = rankdata(values)
        if spread:
            ranks = norm.ppf((ranks - 0.5) / 7) ** 2
        differences = np.array([ranks[each].mean() - ranks[~each].mean() for each in labels.T])
        scores.append(np.abs(differences) / differences.std())
    expected = np.max(scores, axis=0)
    score = LargestRankDifference(spread=spread).scores
    ranks = score(ranks_among(np.sort(Z, axis=0), Z) / 7)
    [found] = largest_mean_difference(ranks, labels)
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=CLOSE)
    # With a cut between all values, units of one row have the same ranks from counts.
    counts = []
    for values in Z.T:
        cuts = np.unique(values)[1:]
        counts.append(counts_between(values, cuts, np.arange(7), 7))
    np.testing.assert_allclose(mean_scores_at_cuts(counts, score), ranks, rtol=CLOSE)


def test_a_balanced_column_of_two_values_has_no_spread_to_compare():
    """Its squared normal scores are equal up to rounding, of which no statistic is made."""
    shares = (
        ranks_among(np.repeat([[0.0], [1.0]], 50, axis=0), np.tile([[0.0], [1.0]], (50, 1))) / 100
    )
    scores = LargestRankDifference(spread=True).scores(shares)
    labels = rng().permuted(np.tile(np.arange(100)[:, None] < 40, (1, 20)), axis=0)
    assert not largest_mean_difference(scores, labels).any()


def test_ranks_are_scaled_and_ranked_among_the_rows():
    X = np.array([[3.0, 0.0], [1.0, 0.0], [2.0, 1.0], [100.0, 1.0]])
    ranks, others = as_ranks(X, np.array([[2.5, 0.0], [1000.0, 0.5]]))
    np.testing.assert_allclose(ranks[:, 0], np.array([2, 0, 1, 3]) / np.sqrt(1.25) - np.sqrt(1.8))
    np.testing.assert_allclose(ranks[:, 1], [-1, -1, 1, 1])
    assert ranks[0, 0] > others[0, 0] > ranks[2, 0]
    assert others[1, 0] > ranks[3, 0]
    moved = IndependenceTest(n_permutations=19).test(X[:, :1], X[:, 1])
    kernels = [type(each.kernels[0]).__name__ for each in moved.tests]
    assert set(kernels) >= {"Gaussian", "RankGaussian"}


def test_a_family_that_never_changes_has_no_say():
    values = np.array([[3.0, 1.0, 2.0, 0.0], [7.0, 7.0, 7.0, 7.0]])
    families = (Family(0.5, np.array([0])), Family(0.5, np.array([1])))
    table = PermutationTable(values, np.array([3.0, 7.0]), None, families)
    assert table.p_value == 0.25
    assert table.largest_statistic == 0
    assert table.corrected.tolist() == [0.25, 1.0]
    nothing = PermutationTable(values[[1, 1]], np.array([7.0, 7.0]), None, families)
    assert nothing.p_value == 1.0
    assert nothing.corrected.tolist() == [1.0, 1.0]


def test_over_all_orders_the_default_has_the_distribution_that_theory_says():
    """Each order observed once: P(p ≤ k/120) ≤ k/120, and never zero."""
    X, Y = rng().normal(size=(5, 2)), rng().normal(size=(5, 1))
    found = [
        Fraction(IndependenceTest().test(X, Y[list(order)]).p_value).limit_denominator(1000)
        for order in permutations(range(5))
    ]
    assert all(sum(p <= Fraction(k, 120) for p in found) <= k for k in range(121))
    assert len(set(found)) > 100


def test_over_all_relabelings_the_default_of_two_samples_has_it_too():
    Z, found = rng().normal(size=(7, 2)), []
    for rows in combinations(range(7), 3):
        result = TwoSampleTest(bandwidths=2).test(
            Z[list(rows)], Z[np.setdiff1d(np.arange(7), rows)]
        )
        found.append(Fraction(result.p_value).limit_denominator(1000))
    assert all(sum(p <= Fraction(k, 35) for p in found) <= k for k in range(36))
    assert len(set(found)) > 25


@pytest.mark.parametrize("ranks", [False, True])
def test_the_kernel_of_distances_gives_energy_distance_and_distance_covariance(ranks):
    X, Y = rng().standard_t(2, size=(12, 2)), rng().normal(1.0, size=(12, 3))
    kernel, other = Distance(ranks).resolve(X), Distance(ranks).resolve(Y)
    x, y = (rankdata(each, axis=0) if ranks else each for each in (X, Y))
    H = np.eye(12) - 1 / 12
    A, B = H @ cdist(x, x) @ H, H @ cdist(y, y) @ H
    np.testing.assert_allclose(H @ kernel(X) @ H * kernel.unit, -A / 2, atol=CLOSE)
    np.testing.assert_allclose(kernel(X).diagonal(), kernel.diagonal(X), rtol=CLOSE)
    assert np.linalg.eigvalsh(kernel(X)).min() > -CLOSE
    hsic = np.trace(kernel(X) @ H @ other(Y) @ H) / 144
    assert 4 * hsic * kernel.unit * other.unit == pytest.approx((A * B).sum() / 144, rel=CLOSE)
    w = np.repeat([1 / 5, -1 / 7], [5, 7])
    energy = -w @ cdist(x, x) @ w
    assert 2 * w @ kernel(X) @ w * kernel.unit == pytest.approx(energy, rel=CLOSE)


def test_distances_are_those_of_the_data_whatever_its_units():
    X = rng().normal(size=(9, 2))
    for factor in (1e-200, 1e200, 1e308 / np.abs(X).max()):
        np.testing.assert_allclose(
            Distance().resolve(factor * X)(factor * X),
            Distance().resolve(X)(X),
            rtol=CLOSE,
            atol=CLOSE,
        )


OF_RANKS = [
    "MMD of Linear(ranks, largest of columns)",
    "MMD of Linear(squared normal scores, largest of columns)",
]


@pytest.mark.parametrize("gram", ["dense", Nystrom(39), RandomFeatures(60)])
def test_two_samples_have_their_ranks_however_kernels_are_held(gram):
    X, Y = rng().normal(size=(20, 2)), rng().normal(0.5, size=(19, 2))
    result = TwoSampleTest(gram=gram, bandwidths=1, n_permutations=19, random_state=0).test(X, Y)
    assert list(map(str, result.tests[-2:])) == OF_RANKS
    dense = TwoSampleTest(gram="dense", bandwidths=1, n_permutations=19, random_state=0).test(X, Y)
    assert result.tests[-2:] == dense.tests[-2:]
    assert not isinstance(
        result.best.kernels[0], Distance
    )  # effect size and witness are of a kernel


def test_ranks_of_samples_in_bins_and_batches(monkeypatch):
    X, Y = rng().normal(size=(300, 2)), rng().normal(0.1, size=(300, 2))
    options = {"gram": Nystrom(20), "bandwidths": 1, "n_permutations": 19, "random_state": 0}
    assert len(TwoSampleTest(bins=40, **options).test(X, Y).tests) == 2 * 6 + 2
    monkeypatch.setattr("muhat.testing.TwoSampleTest.max_single_rows", 500)
    in_batches = TwoSampleTest(bins=40, **options).test(np.split(X, 3), np.split(Y, 5))
    assert list(map(str, in_batches.tests[-2:])) == OF_RANKS
    assert min(each.value for each in in_batches.tests[-2:]) > 0
    asked = TwoSampleTest(statistics="mmd", **options).test(X, Y)
    assert len(asked.tests) == 2  # what is given means what it says
    sequential = TwoSampleTest(early_stopping=5, **options).test(X, Y)
    assert not any(isinstance(each.kernels[0], Distance) for each in sequential.tests)


def test_what_is_asked_for_is_all_there_is():
    X, Y = rng().normal(size=(20, 1)), rng().normal(size=(20, 1))
    quick = {"n_permutations": 9, "bandwidths": 2}
    assert len(IndependenceTest(**quick).test(X, Y).tests) == 2 * 4 + 2 * 4 + 3
    assert len(IndependenceTest("gaussian", **quick).test(X, Y).tests) == (2 * 4) ** 2
    assert len(IndependenceTest(statistics="mmd", **quick).test(X, Y).tests) == 4
    assert len(IndependenceTest(kernel_y="laplacian", **quick).test(X, Y).tests) == (2 * 4) ** 2


def test_a_linear_and_a_fine_dependence_are_both_found():
    x = rng().normal(size=60)
    linear = IndependenceTest(n_permutations=199).test(x, x + rng().normal(size=60)[::-1])
    assert linear.p_value == 1 / 200
    wave = IndependenceTest(n_permutations=199).test(x, np.sin(5 * x))
    assert wave.p_value == 1 / 200
    assert wave.correlation <= 1


@pytest.mark.parametrize("side", ["x", "y", "both"])
def test_a_constant_depends_on_nothing(side):
    x = np.ones(20) if side in ("x", "both") else rng().normal(size=20)
    y = np.ones(20) if side in ("y", "both") else rng().normal(size=20)
    result = IndependenceTest(n_permutations=19).test(x, y)
    assert result.p_value == 1.0
    assert result.correlation == 0.0
    who = "x and y" if side == "both" else side
    are = "are" if side == "both" else "is"
    assert f", because {who} {are} constant (20 rows, p = 1)." in result.verdict()


def test_precomputed_matrices_and_lists_of_objects_are_tested():
    x, words = rng().normal(size=(20, 1)), ["a" * (1 + number % 5) for number in range(20)]
    quick = {"n_permutations": 39, "statistics": "mmd", "standardize": False}
    plain = IndependenceTest(Gaussian(1.0), **quick).test(x, x**2)
    K, L = Gaussian(1.0)(x), Gaussian(1.0)(x**2)
    numbers = np.arange(20)
    by_matrix = IndependenceTest(Precomputed(K), kernel_y=Precomputed(L), **quick).test(
        numbers, numbers[:, None]
    )
    given = IndependenceTest("precomputed", **quick).test(K, L)
    for each in (by_matrix, given):
        assert each.p_value == plain.p_value
        assert each.tests[0].value == pytest.approx(plain.tests[0].value, rel=CLOSE)
    length = Function(lambda a, b: np.exp(-((len(a) - len(b)) ** 2) / 2), rows=True)
    of_words = IndependenceTest(length, kernel_y=Gaussian(1.0), **quick).test(words, x)
    of_lengths = IndependenceTest(Gaussian(1.0), **quick).test(
        np.array([float(len(word)) for word in words]), x
    )
    assert of_words.p_value == of_lengths.p_value


def test_verdicts_name_the_columns():
    frame = pd.DataFrame(rng().normal(size=(50, 2)), columns=["cement", "water"])
    frame["strength"] = frame["cement"] + frame["water"]
    found = IndependenceTest().test(frame[["cement", "water"]], frame["strength"])
    assert found.verdict() == (
        "(cement, water) and strength are dependent (50 rows, p ≤ 0.001). The test does not show "
        "which of cement and water is related to strength."
    )
    frame["other"] = rng().normal(size=1050)[1000:]
    nothing = IndependenceTest().test(frame[["cement"]], frame["other"])
    assert (
        nothing.verdict()
        == f"No dependence between cement and other detected (50 rows, p = {nothing.p_value:.2g})."
    )
    assert found.to_dict()["n_copies"] == 0


def test_copies_are_counted_said_and_dropped():
    x, y = rng().normal(size=(40, 1)), rng().normal(size=(40, 2))
    X, Y = (np.concatenate([each, each[:10]]) for each in (x, y))
    result = IndependenceTest(n_permutations=19).test(X, Y)
    assert result.n_copies == 10
    dropped = IndependenceTest(n_permutations=19, distinct=True).test(X, Y)
    assert result.p_value_distinct == dropped.p_value > result.p_value
    assert result.verdict().endswith(
        " 10 of 50 rows are exact copies of other rows, but the p-value assumes independent rows. "
        f"Without the copies, p = {dropped.p_value:.2g}. Use distinct=True to drop them."
    )
    assert (dropped.n, dropped.n_copies) == (40, 10)
    assert dropped.p_value == IndependenceTest(n_permutations=19).test(x, y).p_value
    assert dropped.verdict().endswith(" 10 exact copies of rows were dropped before the test.")
    yes_or_no = rng().integers(2, size=(2, 60))
    ties = IndependenceTest(n_permutations=19).test(*yes_or_no)
    assert ties.n_copies == 56
    assert "copies" not in ties.verdict()  # values that repeat are no copies


def test_copies_of_pairs_whose_values_repeat_anyway_are_not_dropped():
    x, y = rng().geometric(0.3, size=(2, 200))
    kept = np.unique(np.array([x, y]), axis=1)
    levels = f"{len(set(x))} different values of x and {len(set(y))} of y"
    got = f"{levels} in {kept.shape[1]} such rows; use distinct=False"
    with pytest.raises(
        ValueError, match=f"^IndependenceTest: with distinct=True, .*, got {got}, because rows"
    ):
        IndependenceTest(distinct=True).test(x, y)
    continuous = rng().normal(size=200)
    x, y = (np.concatenate([each, each[:50]]) for each in (x, continuous))
    assert IndependenceTest(n_permutations=19, distinct=True).test(x, y).n == 200
    equal = IndependenceTest(n_permutations=19).test(
        *np.repeat(rng().integers(100, size=(2, 40)), 3, axis=1)
    )
    end = "but the p-value assumes independent rows."  # dropping them is not offered
    assert end in equal.verdict()
    without = np.array([[0, 0, 1, 2], [0, 1, 1, 3]])
    assert (
        IndependenceTest(n_permutations=19, distinct=True).test(*without).n == 4
    )  # no copies: nothing is dropped


def test_y_has_a_kernel_of_its_own_where_that_of_x_says_nothing_about_it():
    x = rng().normal(size=(30, 1))
    y, K = x[:, 0] + rng().normal(size=30), Gaussian(1.0)(x)
    quick = {"n_permutations": 39, "bandwidths": 2}
    expected = IndependenceTest(Precomputed(K), kernel_y="gaussian", **quick).test(range(30), y)
    found = IndependenceTest(Precomputed(K), **quick).test(range(30), y)
    assert (found.p_value, found.statistic) == (expected.p_value, expected.statistic)
    assert found.p_value == 1 / 40
    numbers = rng().permutation(30)  # whole numbers are values of y, not rows of K
    assert "Gaussian" in IndependenceTest(Precomputed(K), **quick).test(range(30), numbers).details
    assert IndependenceTest(**quick).test(range(30), range(30)).p_value == 1 / 40
    words = ["a" * (1 + number % 5) for number in range(30)]
    length = Function(lambda a, b: float(min(len(a), len(b))), rows=True)
    counts = [float(len(word)) for word in words]
    assert IndependenceTest(length, **quick).test(words, counts).p_value == 1 / 40
    assert IndependenceTest(length, **quick).test(words, words).p_value == 1 / 40


@pytest.mark.parametrize("name", [*DEPENDENCE, *DIFFERENCES])
def test_every_alternative_gives_rows(name):
    alternative = {**DEPENDENCE, **DIFFERENCES}[name]
    X, Y = alternative.draw(rng(), 30)
    assert len(X) == len(Y) == 30
    assert X.ndim == Y.ndim == 2
    assert np.isfinite(X).all()
    assert np.isfinite(Y).all()
    np.testing.assert_array_equal(alternative.draw(rng(), 30)[1], Y)


def test_the_verdict_on_two_columns_says_whether_one_rises_or_falls_with_the_other():
    rng = np.random.default_rng(3)
    dose = rng.choice([0.0, 5.0, 10.0, 20.0], size=100)
    frame = pd.DataFrame({"dose": dose, "pressure": 120 - dose + 5 * rng.normal(size=100)})
    result = IndependenceTest(n_permutations=99).test(frame[["dose"]], frame[["pressure"]])
    assert result.rank_correlation == pytest.approx(spearmanr(frame)[0])
    assert "Where dose is higher, pressure tends to be lower (rank correlation −0." in (
        result.verdict()
    )
    x = rng.normal(size=200)
    symmetric = IndependenceTest(n_permutations=99).test(x, x**2 + 0.1 * rng.normal(size=200))
    assert " The relation is not simply rising or falling (rank correlation " in symmetric.verdict()
    wide = IndependenceTest(n_permutations=19).test(rng.normal(size=(50, 2)), rng.normal(size=50))
    assert wide.rank_correlation is None
    assert wide.explained is None


def test_a_verdict_says_how_much_of_a_variance_is_explained():
    generator = np.random.default_rng(12)
    x, noise = generator.uniform(-2, 2, size=400), generator.normal(size=400)
    bent = IndependenceTest(n_permutations=99).test(x, x**2 + 0.5 * noise)
    share = 1 - 0.25 / (0.25 + np.var(x**2))
    assert bent.explained.share == pytest.approx(share, abs=0.04)
    explained = f"x explains about {100 * bent.explained.share:.0f} % of the variance of y."
    assert bent.verdict().endswith(explained)
    assert bent.to_dict()["explained"] == {"by": "x", "share": bent.explained.share}
    wave = IndependenceTest(n_permutations=99).test(x, np.sin(8 * x))
    assert wave.explained.share > 0.9
    line = IndependenceTest(n_permutations=99).test(x, x + noise)
    assert "explains" not in line.verdict()
    group = generator.integers(3, size=400)
    of_groups = IndependenceTest(n_permutations=99).test(noise + group, np.eye(3)[group])
    assert of_groups.verdict().endswith(
        f" y explains about {100 * of_groups.explained.share:.0f} % of the variance of x."
    )
    assert of_groups.explained.share == pytest.approx(0.4, abs=0.08)


def test_nothing_is_explained_without_a_relation():
    generator = np.random.default_rng(13)
    shares = []
    for n in (50, 200, 1000):
        for _ in range(30):
            found = ExplainedVariance.from_rows(*generator.normal(size=(2, n, 1)))
            shares.append(found.share)
    assert np.mean(shares) < 0.06
    few = ExplainedVariance.from_rows(*generator.normal(size=(2, 49, 1)))
    assert few is None


@pytest.mark.parametrize("problem", ["independence", "two samples"])
def test_power_is_measured_by_the_weights_of_families(problem):
    name, n, *powers = next(power(problem, 1, n_permutations=19))
    laws = DEPENDENCE if problem == "independence" else DIFFERENCES
    assert laws[name].n == n
    *_, weights = PROBLEMS[problem]
    assert len(powers) == 3 + len(weights)  # plain tests, one soft maximum, and sets of weights


def test_the_kernel_correlation_is_zero_by_chance():
    """It is the cosine of the centred Gram matrices, less its mean over all orders."""
    x, y = rng().normal(size=(2, 6, 1))
    kernel, H = Gaussian(0.3), np.eye(6) - 1 / 6
    A, B = (H @ kernel(each) @ H for each in (x, y))
    norms = np.linalg.norm(A) * np.linalg.norm(B)
    by_chance = np.mean([np.sum(A * B[np.ix_(each, each)]) for each in permutations(range(6))])
    cosine, by_chance = np.sum(A * B) / norms, by_chance / norms
    expected = max(0.0, (cosine - by_chance) / (1 - by_chance))
    for gram in ("dense", Nystrom(6)):
        test = IndependenceTest(kernel, statistics="mmd", standardize=False, gram=gram)
        assert test.test(x, y).correlation == pytest.approx(expected, rel=1e-6)
        assert test.test(x, x).correlation == pytest.approx(1)


def test_two_columns_of_zeros_and_ones_rise_or_fall():
    x = (rng().random(60) < 0.5).astype(float)
    y = np.where(rng().random(60) < 0.35, 1 - x, x)
    verdict = IndependenceTest(n_permutations=199).test(x, y).verdict()
    assert "Where x is higher, y tends to be higher" in verdict


def test_values_that_repeat_as_few_are_possible_are_no_copies():
    x, y = rng().integers(2, size=(2, 100)).astype(float)
    y[x == 0] = 0
    verdict = IndependenceTest(n_permutations=199).test(x, y).verdict()
    assert "are dependent" in verdict
    assert "copies" not in verdict


def test_a_dependence_that_copies_make_has_no_direction_or_strength():
    x, y = rng().normal(size=(2, 50))
    order = rng().permutation(200)
    result = IndependenceTest(n_permutations=199).test(np.tile(x, 4)[order], np.tile(y, 4)[order])
    assert result.p_value_distinct > 0.05
    assert "explains" not in result.verdict()
    assert "tends" not in result.verdict()
    assert "Without the copies, p = " in result.verdict()
