"""Tests of many groups: the fast path is the obvious loop, and designs are exact."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh

from muhat import Gaussian, GroupTest, Nystrom, Spectral, TwoSampleTest
from muhat.errors import MuhatError
from muhat.figures._groups import groups_bars
from muhat.testing import MMD, _designs, _group_pairs, _group_steps, _groups
from muhat.testing._designs import GroupDesign, encode
from muhat.testing._group_pairs import (
    PairFactor,
    chunks_of_pairs,
    corrected_over_pairs,
    multipliers,
    p_values_of_pairs,
)
from muhat.testing._group_statistics import (
    GroupDistances,
    GroupSpectrum,
    GroupSums,
    kernel_statistics,
    variances_against_rest,
)
from muhat.testing._group_steps import corrected_p_values
from muhat.testing._permutations import NullMoments
from muhat.testing._wording import share_texts

CLOSE = 1e-10

DESIGNS = {
    "none": ("aabbc", None, None, None),
    "unequal": ("abbbbc", None, None, None),
    "strata": ("ababcca", "1111222", None, None),
    "pairs": ("abcabcab", None, None, "11122233"),
    "clusters": ("aaabbbcc", None, "11223344", None),
    "clusters of other sizes": ("aaabbcc", None, "1112345", None),
    "clusters in strata": ("aabbaabb", "11112222", "11223344", None),
}
"""Groups, strata, clusters and pairs of a few rows."""


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def design_of(name, seed=0):
    """Return the codes of a design's rows, and the design."""
    given = [None if each is None else encode("labels", list(each)) for each in DESIGNS[name]]
    if name == "clusters":
        given[0] = encode("labels", list("aabbccaa"))
    design = GroupDesign.from_labels(*given, np.random.default_rng(seed))
    return given, design


def relabelings_by_brute_force(given):
    """Return the labels of rows for every permutation that the design allows, with repetitions."""
    groups, strata, clusters, pairs = (None if each is None else each.codes for each in given)
    n = len(groups)
    units = np.arange(n) if clusters is None else clusters
    numbers = np.unique(units)
    first = [np.flatnonzero(units == number)[0] for number in numbers]
    block = np.zeros(n, dtype=int)
    for each in (strata, pairs):
        if each is not None:
            block = block * 100 + each
    for order in permutations(range(len(numbers))):
        if all(block[first[i]] == block[first[j]] for i, j in enumerate(order)):
            labels = np.empty(n, dtype=int)
            for i, j in enumerate(order):
                labels[units == numbers[i]] = groups[first[j]]
            yield labels, block


def statistic_by_loop(K, labels, block, weight):
    """T_h = N Σ_k h(γ_k) Σ_t n_t (u_kᵀ w_t)², the Gram matrix centred within strata."""
    N = len(K)
    same = block[:, None] == block
    H = np.eye(N) - same / same.sum(axis=1)
    gamma, U = eigh(H @ K @ H / N)
    kept = gamma > 1e-12
    total = 0.0
    for g, u in zip(gamma[kept], U[:, kept].T, strict=True):
        for group in np.unique(labels):
            member = labels == group
            w = member / member.sum() - 1 / N
            total += N * weight(g) * member.sum() * (u @ w) ** 2
    return total


@pytest.mark.parametrize("name", DESIGNS)
def test_statistics_of_every_relabeling_are_those_of_the_obvious_loop(name):
    given, design = design_of(name)
    X = rows(len(given[0].codes))
    kernel = Gaussian(1.3)
    labels = design.relabelings(5000, np.random.default_rng(1))
    sums = GroupSums.from_labels(labels, design.sizes, design.n_groups)
    spectrum = GroupSpectrum.from_rows(kernel, X[design.rows], "dense", X, design)
    found = kernel_statistics(spectrum, [MMD(), Spectral("f-kmse", 0.02)], sums, design)
    weights = (lambda g: g, lambda g: g / (g + 0.02))
    K = kernel(X[design.rows])
    for column in range(0, len(labels), max(1, len(labels) // 20)):
        of_rows = labels[column][design.unit]
        for value, weight in zip(found.values[:, column], weights, strict=True):
            expected = statistic_by_loop(K, of_rows, design.row_strata, weight)
            assert value == pytest.approx(expected, abs=CLOSE, rel=CLOSE)


@pytest.mark.parametrize("name", DESIGNS)
def test_p_values_are_those_of_full_enumeration(name):
    given, _ = design_of(name)
    X = rows(len(given[0].codes), seed=3)
    kernel = Gaussian(1.3)
    K = kernel(X)
    values = [
        statistic_by_loop(K, labels, block, lambda g: g)
        for labels, block in relabelings_by_brute_force(given)
    ]
    expected = np.mean(np.array(values) >= values[0] - 1e-12)
    columns = [None if each is None else each.codes for each in given]
    test = GroupTest(kernel, statistics="mmd", standardize=False, n_permutations=5000)
    result = test.test(X, columns[0], strata=columns[1], clusters=columns[2], pairs=columns[3])
    assert result.is_complete
    assert result.p_value == pytest.approx(expected)
    assert result.p_value >= result.least_p_value - 1e-12


def test_distances_and_variances_are_those_of_the_obvious_loop():
    _, design = design_of("unequal")
    X = rows(6)
    labels = design.relabelings(5000, np.random.default_rng(0))
    sums = GroupSums.from_labels(labels, design.sizes, 3)
    spectrum = GroupSpectrum.from_rows(Gaussian(1.0), X[design.rows], "dense", X, design)
    K = Gaussian(1.0)(X[design.rows])
    member = labels[0] == np.arange(3)[:, None]
    distances = GroupDistances.from_features(spectrum.features(design), design)
    for t, own in enumerate(member):
        w = own / own.sum() - ~own / (~own).sum()
        assert distances.from_rest[t] == pytest.approx(np.sqrt(w @ K @ w))
        for u, other in enumerate(member):
            w = own / own.sum() - other / other.sum()
            assert distances.between[t, u] == pytest.approx(np.sqrt(w @ K @ w), abs=1e-7)
    total = np.zeros((3, len(spectrum.gamma)))
    for label in labels:
        for t in range(3):
            w = (label == t) / (label == t).sum() - (label != t) / (label != t).sum()
            total[t] += 6 * (spectrum.Z.T @ w) ** 2 / (w @ w)
    variances = variances_against_rest(spectrum, design, sums.n_rows[0])
    np.testing.assert_allclose(total / len(labels), variances, atol=CLOSE)


def pair_by_loop(K, codes, block, units, pair):
    """Return the exact p-value of a pair: MMD² over ‖w‖², all relabelings of its units."""
    kept = np.flatnonzero(np.isin(codes, pair))
    numbers = np.unique(units[kept])
    first = np.array([kept[units[kept] == number][0] for number in numbers])
    same = block[kept][:, None] == block[kept]
    H = np.eye(len(kept)) - same / same.sum(axis=1)
    centred = H @ K[np.ix_(kept, kept)] @ H
    values = []
    for order in permutations(range(len(numbers))):
        if all(block[first[i]] == block[first[j]] for i, j in enumerate(order)):
            of_unit = dict(zip(numbers, codes[first[list(order)]], strict=True))
            labels = np.array([of_unit[units[row]] for row in kept])
            a, b = labels == pair[0], labels == pair[1]
            w = a / a.sum() - b / b.sum()
            values.append(w @ centred @ w / (1 / a.sum() + 1 / b.sum()))
    if len(set(codes[first])) < 2:
        return 1.0
    return np.mean(np.array(values) >= values[0] - 1e-12)


@pytest.mark.parametrize("name", DESIGNS)
def test_p_values_of_pairs_are_those_of_full_enumeration_within_the_pair(name):
    given, design = design_of(name)
    codes = given[0].codes
    n = len(codes)
    X = rows(n, seed=4)
    spectrum = GroupSpectrum.from_rows(Gaussian(1.3), X[design.rows], "dense", X, design)
    factor = PairFactor(spectrum, spectrum.gamma[None])
    units = np.arange(n) if given[2] is None else given[2].codes
    block = np.zeros(n, dtype=int)
    block[design.rows] = design.row_strata
    pairs = np.column_stack(np.triu_indices(design.n_groups, 1))
    for chunk in chunks_of_pairs(design, pairs, np.random.default_rng(0)):
        found = p_values_of_pairs(chunk, [factor], design, 5000)
        for pair, p in zip(chunk.pairs, found, strict=True):
            assert p == pytest.approx(pair_by_loop(Gaussian(1.3)(X), codes, block, units, pair))


def test_forms_and_sums_over_units_give_pairs_the_values_of_the_obvious_loop():
    rng = np.random.default_rng(0)
    labels = encode("groups", np.repeat([0, 1, 2], [8, 9, 9]))
    design = GroupDesign.from_labels(labels, None, None, None, rng)
    X = rows(26)
    spectrum = GroupSpectrum.from_rows(Gaussian(1.0), X[design.rows], "dense", X, design)
    H = np.array([spectrum.gamma, spectrum.gamma / (spectrum.gamma + 0.02), spectrum.gamma > 0.01])
    member = np.array([rng.permutation([True] * 8 + [False] * 9) for _ in range(50)])
    for chunk in chunks_of_pairs(design, np.array([[0, 1], [0, 2]]), rng):
        # Three statistics of one kernel are cheaper by sums, one by products.
        sums = _group_pairs._chunk_statistics(chunk, [PairFactor(spectrum, H)], design)
        forms = _group_pairs._chunk_statistics(chunk, [PairFactor(spectrum, H[:1])], design)
        assert type(sums) is not type(forms)
        everyone = np.arange(len(chunk.pairs))
        Z = spectrum.Z
        for each in (sums, forms):
            values = each.values(member, everyone)
            for place, (a, b) in enumerate(chunk.pairs):
                units = np.flatnonzero(np.isin(design.labels, (a, b)))
                for own, value in zip(member, values[:, place], strict=True):
                    difference = Z[units][own].mean(axis=0) - Z[units][~own].mean(axis=0)
                    expected = H @ difference**2 / (1 / 8 + 1 / 9)
                    np.testing.assert_allclose(value, expected[: len(value)], atol=CLOSE)


def test_values_at_a_score_invert_scores():
    mean, spread, skewness = np.array([[3.0, 1.0, 2.0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    moments = NullMoments(mean, spread, skewness)
    values = moments.values_at(1.7)
    np.testing.assert_allclose(moments.scores(values[:, None])[:2, 0], 1.7)
    assert values[2] == np.inf
    assert moments.values_at(-50.0)[0] == -np.inf


def test_multipliers_are_the_most_pairs_that_can_be_equal():
    def design_with(n_groups, strata=None):
        labels = encode("groups", np.tile(np.arange(n_groups), 2))
        return GroupDesign.from_labels(labels, strata, None, None, np.random.default_rng(0))

    # Of four groups, 6, 3, 2, 1 or 0 pairs can be equal.
    assert multipliers(design_with(2), 1).tolist() == [0]
    assert multipliers(design_with(3), 3).tolist() == [1, 1, 1]
    assert multipliers(design_with(4), 6).tolist() == [3, 3, 3, 3, 2, 1]
    incomplete = design_with(3, encode("strata", [1, 1, 1, 1, 1, 2]))
    assert multipliers(incomplete, 3).tolist() == [2, 2, 1]
    steps = multipliers(design_with(4), 6)
    p = corrected_over_pairs(np.array([0.3, 0.001, 0.2, 0.02, 0.5, 0.9]), steps, 0.01)
    np.testing.assert_allclose(p, [0.9, 0.01, 0.6, 0.06, 1.0, 1.0])


def wide_and_narrow(rng):
    """Two groups that are alike and four times as wide as the four others."""
    groups = np.repeat(np.arange(6), 8)
    return rng.normal(size=(48, 2)) * np.where(groups < 2, 4.0, 1.0)[:, None], groups


def test_pairs_of_equal_groups_keep_their_level_if_other_groups_have_another_spread():
    rng = np.random.default_rng(5)
    test = GroupTest("gaussian", bandwidths="median", statistics="mmd", n_permutations=99)
    n_false = n_true = 0
    for _ in range(120):
        result = test.test(*wide_and_narrow(rng))
        found = [{each.first, each.second} for each in result.pairs if each.p_value <= 0.05]
        n_false += any(each <= {0, 1} or each <= {2, 3, 4, 5} for each in found)
        n_true += any(len(each & {0, 1}) == 1 for each in found)
    assert n_false / 120 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert n_true > 100


def test_two_groups_are_two_samples():
    X = rows(9)
    groups = list("aaaabbbbb")
    kernels, statistics = [Gaussian(1.0), Gaussian(0.5)], ["mmd", Spectral("tsvd", [0.1, 0.01])]
    pair = TwoSampleTest(kernels, statistics=statistics).test(X[:4], X[4:])
    found = GroupTest(kernels, statistics=statistics).test(X, groups)
    assert found.is_complete
    assert found.p_value == pytest.approx(pair.p_value)
    assert found.pairs[0].mmd == pytest.approx(pair.mmd)
    assert found.groups[0].mmd == pytest.approx(pair.mmd)


def test_the_shift_of_two_groups_is_that_of_two_samples():
    """With few rows, a spread by all rows instead of degrees of freedom would be another."""
    random = np.random.default_rng(7)
    X, Y = random.normal(size=(4, 1)), random.normal(1.0, 1.0, size=(6, 1))
    of_samples = TwoSampleTest().test(X, Y).features[0].shift
    groups = GroupTest().test(np.concatenate([X, Y]), np.repeat(["a", "b"], [4, 6])).groups
    of_groups = {each.group: each.shift for each in groups}
    assert of_samples == pytest.approx(of_groups["b"]) == pytest.approx(-of_groups["a"])


def test_corrected_p_values_compare_with_the_largest_score():
    scores = np.array([[3.0, 1.0, 0.0, 2.0], [1.0, 4.0, 0.0, 0.0]])
    assert corrected_p_values(scores).tolist() == [0.5, 0.75]


def level(make, repetitions=200, **design):
    """Return the share of p ≤ 0.1 over draws under the null hypothesis."""
    rng = np.random.default_rng(11)
    test = GroupTest("gaussian", bandwidths="median", statistics="mmd", n_permutations=19)
    count = 0
    for seed in range(repetitions):
        X, groups, others = make(rng)
        used = {name: others[name] for name in design}
        count += test.set_params(random_state=seed).test(X, groups, **used).p_value <= 0.1
    return count / repetitions


def repeated_measures(rng):
    """Nine subjects in three groups, with six rows each that are like each other."""
    subject = np.repeat(np.arange(9), 6)
    X = rng.normal(size=(9, 2))[subject] + 0.5 * rng.normal(size=(54, 2))
    return X, subject % 3, {"clusters": subject}


def confounded(rng):
    """Two sites that differ, of which one has more rows of the first group."""
    site = np.repeat([0, 1], 20)
    groups = np.r_[rng.permutation([0] * 15 + [1] * 5), rng.permutation([0] * 5 + [1] * 15)]
    return rng.normal(size=(40, 2)) + 2.0 * site[:, None], groups, {"strata": site}


def paired(rng):
    """Twelve plots that differ, each with three treatments in random order."""
    plot = np.repeat(np.arange(12), 3)
    groups = np.tile(np.arange(3), 12)
    return 2 * rng.normal(size=(12, 2))[plot] + rng.normal(size=(36, 2)), groups, {"pairs": plot}


def plain(rng):
    """Groups of 1, 5 and 20 rows with ties."""
    return rng.integers(0, 3, size=(26, 2)), np.repeat([0, 1, 2], [1, 5, 20]), {}


def balanced(rng):
    """Three groups of ten rows."""
    return rng.normal(size=(30, 2)), np.repeat([0, 1, 2], 10), {}


def unbalanced(rng):
    """Groups of 3, 9 and 28 rows with heavy tails."""
    return rng.standard_t(2, size=(40, 2)), np.repeat([0, 1, 2], [3, 9, 28]), {}


def tied(rng):
    """Rows of two zeros and ones."""
    return rng.integers(0, 2, size=(30, 2)), np.repeat([0, 1, 2], 10), {}


def single_rows(rng):
    """Ten groups of one row beside one of twenty."""
    return rng.normal(size=(30, 2)), np.r_[np.arange(10), np.full(20, 10)], {}


def many_groups(rng):
    """Twenty groups of three rows."""
    return rng.normal(size=(60, 2)), np.repeat(np.arange(20), 3), {}


def clusters_in_strata(rng):
    """Two sites that differ, each with eight subjects of four rows, groups unequal by site."""
    subject = np.repeat(np.arange(16), 4)
    site = subject // 8
    of_subject = np.r_[rng.permutation([0] * 6 + [1] * 2), rng.permutation([0] * 2 + [1] * 6)]
    X = rng.normal(size=(16, 2))[subject] + 0.5 * rng.normal(size=(64, 2)) + 2.0 * site[:, None]
    return X, of_subject[subject], {"clusters": subject, "strata": site}


@pytest.mark.parametrize(
    ("make", "design"),
    [
        (plain, ()),
        (balanced, ()),
        (unbalanced, ()),
        (tied, ()),
        (single_rows, ()),
        (many_groups, ()),
        (clusters_in_strata, ("clusters", "strata")),
        (repeated_measures, ("clusters",)),
        (confounded, ("strata",)),
        (paired, ("pairs",)),
    ],
)
def test_levels_hold_in_every_design(make, design):
    assert level(make, **dict.fromkeys(design)) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


@pytest.mark.parametrize(
    ("sizes", "alike", "rows_each"),
    [
        (([12] * 3, [2] * 20), 0.5, 2),
        (([12] * 5, [2] * 8, [4] * 8), 0.0, 2),
        (([1, *[12] * 8], [5] * 9), 0.5, 5),
    ],
)
def test_levels_hold_if_sizes_of_clusters_go_with_the_group(sizes, alike, rows_each):
    """Also of single columns; without equal sizes some were at 0.2 or more."""
    n = np.concatenate(sizes)
    cluster = np.repeat(np.arange(len(n)), n)
    groups = np.repeat(np.arange(len(sizes)), [len(each) for each in sizes])[cluster]
    rng = np.random.default_rng(31)
    test = GroupTest("gaussian", bandwidths="median", statistics="mmd", n_permutations=19)
    rejected = np.zeros(2)
    for seed in range(200):
        X = np.sqrt(alike) * rng.normal(size=(len(n), 2))[cluster]
        X += np.sqrt(1 - alike) * rng.normal(size=X.shape)
        result = test.set_params(random_state=seed).test(X, groups, clusters=cluster)
        smallest = min(each.p_value for each in result.features)
        rejected += np.array([result.p_value, smallest]) <= 0.1
    assert (rejected / 200).max() <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)
    assert f"{rows_each} random rows of each cluster are compared" in result.verdict()


@pytest.mark.parametrize("make", [repeated_measures, confounded, clusters_in_strata])
def test_ignoring_the_design_rejects_far_too_often(make):
    assert level(make, repetitions=60) > 0.5


def test_pairs_see_what_differs_within_units():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(30), 2)
    groups = np.tile(["before", "after"], 30)
    X = 5 * rng.normal(size=(30, 1))[unit] + rng.normal(size=(60, 1)) + (groups == "after")[:, None]
    test = GroupTest(n_permutations=199)
    assert test.test(X, groups, pairs=unit).p_value <= 0.01
    assert test.test(X, groups).p_value > 0.05


@pytest.mark.parametrize("gram", ["dense", Nystrom(40)])
def test_the_odd_groups_are_found_and_named(gram):
    rng = np.random.default_rng(1)
    shops = np.repeat([f"shop {number}" for number in range(8)], 25)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["price", "margin", "rows"])
    frame.loc[shops == "shop 3", "price"] += 2.5
    frame["shop"] = shops
    result = GroupTest(gram=gram, n_permutations=199).test(frame, "shop")
    assert result.p_value == 1 / 200
    assert result.groups[0].group == "shop 3"
    assert result.groups[0].column == "price"
    assert [each.p_value <= 0.05 for each in result.groups] == [True] + [False] * 7
    significant = [each for each in result.pairs if each.p_value <= 0.05]
    assert len(significant) == 7
    assert all("shop 3" in (each.first, each.second) for each in significant)
    assert [each.p_value <= 0.05 for each in result.features] == [True, False, False]
    verdict = result.verdict()
    assert verdict.startswith(
        "1 of the 8 groups of column shop (200 rows in all) differs from the others: shop 3 "
        "(p ≤ 0.005, corrected for 8 groups)."
    )
    assert "Largest difference: price, whose mean is 2." in verdict
    assert "higher in shop 3 than in the others." in verdict
    assert "shop 3" in result._repr_html_()
    assert result.to_dict()["groups"][0]["group"] == "shop 3"


def test_a_group_that_stands_out_is_left_out_of_the_rest_of_the_others():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(4), 20)
    X = rng.normal(size=(80, 1)) + 4.0 * (groups == 2)[:, None]
    test = GroupTest("gaussian", bandwidths=2, n_permutations=99)
    found = {each.group: each.p_value for each in test.test(X, groups).groups}
    assert found[2] == 0.01
    assert min(found[0], found[1], found[3]) > 0.05


def odd_groups():
    """Ten groups: one far above the others, one a little above them."""
    rng = np.random.default_rng(8)
    groups = np.repeat(list("abcdefghij"), 30)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["price", "amount"])
    frame["price"] += 20.0 * (groups == "c") + 1.5 * (groups == "f")
    return frame, groups


def test_every_number_of_a_group_is_against_the_same_rest():
    """All others are 2.2 above those that do not stand out, and f is 1.5 above these."""
    frame, groups = odd_groups()
    result = GroupTest(n_permutations=199, tolerance=0.1).test(frame, groups)
    found = {each.group: each for each in result.groups}
    assert [each.group for each in result.groups[:2]] == ["c", "f"]
    assert found["c"].n_rest == 270
    own, rest = groups == "f", ~np.isin(groups, ["c", "f"])
    assert found["f"].n_rest == rest.sum()
    assert (found["f"].p_value, found["f"].column) == (0.005, "price")
    values = frame["price"] - frame["price"].groupby(groups).transform("mean")
    n_groups = len(np.unique(groups)) - 1  # without c
    spread = np.sqrt((values[own | rest] ** 2).sum() / ((own | rest).sum() - n_groups))
    shift = (frame["price"][own].mean() - frame["price"][rest].mean()) / spread
    assert found["f"].shift == pytest.approx(shift)
    X = (frame - frame.mean()) / frame.std(ddof=0)
    K = result.tolerance.kernel(X.to_numpy())
    w = own / own.sum() - rest / rest.sum()
    assert found["f"].mmd == pytest.approx(np.sqrt(w @ K @ w))
    assert "price +1." in result.change_text(found["f"])
    (feature,) = (each for each in result.features if each.name == "price")
    assert (feature.group, feature.shift) == ("c", found["c"].shift)


def test_shifts_of_groups_of_two_rows_are_in_standard_deviations_of_rows():
    """Means take half of the degrees of freedom: without that, shifts were √2 too large."""
    groups = np.repeat(np.arange(60), 2)
    X = np.random.default_rng(3).normal(size=(120, 1)) + 6.0 * (groups == 7)[:, None]
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99)
    (found,) = (each for each in test.test(X, groups).groups if each.group == 7)
    truth = X[groups == 7].mean() - X[groups != 7].mean()
    assert found.shift == pytest.approx(truth, rel=0.2)


def test_a_group_of_one_row_does_not_hide_others():
    """Scores of single rows have heavy tails: the largest of each relabeling was theirs."""
    rng = np.random.default_rng(4)
    groups = np.r_[np.repeat(np.arange(10), 25), 10]
    X = rng.gamma(2.0, size=(251, 3))
    X[groups == 6, 0] += 1.5
    test = GroupTest(n_permutations=199)
    with_single = {each.group: each.p_value for each in test.test(X, groups).groups}
    without = {each.group: each.p_value for each in test.test(X[:250], groups[:250]).groups}
    assert with_single[6] == without[6] == 0.005
    assert min(p for group, p in with_single.items() if group != 6) > 0.05


def test_a_verdict_does_not_explain_one_group_by_another():
    rng = np.random.default_rng(42)
    year = np.repeat([2019, 2020, 2021, 2022], 40)
    X = rng.normal(size=(160, 2))
    X[year == 2020] *= 2.5
    X[year == 2019, 0] -= 0.4
    verdict = GroupTest(n_permutations=199).test(X, year).verdict()
    assert "differs from the others: 2020" in verdict
    assert "which varies more in 2020 (its standard deviation is 2." in verdict


def test_groups_that_stand_out_are_taken_out_together_and_half_of_them_at_most():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(8), 20)
    X = rng.normal(size=(160, 1)) + 4.0 * groups[:, None]
    kernel = Gaussian(50.0)  # nearly linear: distances grow with shifts
    test = GroupTest(kernel, statistics="mmd", standardize=False, n_permutations=99)
    found = {each.group: each for each in test.test(X, groups).groups}
    assert [found[group].n_rest for group in range(8)] == [140, 100, 60, 60, 60, 60, 100, 140]
    assert [found[group].p_value for group in (0, 1, 6, 7)] == [0.01] * 4
    assert [found[group].shift > 0 for group in range(8)] == [False] * 4 + [True] * 4


def test_equal_groups_are_not_called_odd_beside_groups_that_are(monkeypatch):
    """The largest of the equal groups left the rest with the odd one: false in 17 of 60 draws."""
    monkeypatch.setattr(GroupTest, "_pair_p_values", lambda *_: np.ones(0))  # slow, not used here
    test = GroupTest("gaussian", bandwidths="median", statistics="mmd", n_permutations=99)
    groups = np.repeat(np.arange(5), [100, 8, 8, 8, 75])
    n_false = n_found = 0
    for seed in range(60):
        X = np.random.default_rng(seed).normal(size=(len(groups), 2))
        X[groups == 4, 0] += 1.5
        found = {each.group: each.p_value for each in test.test(X, groups).groups}
        n_false += min(found[group] for group in range(4)) <= 0.05
        n_found += found[4] <= 0.05
    assert n_false <= 7  # 0.05 and 2.4 standard errors
    assert n_found >= 40


def test_a_majority_has_the_groups_that_are_most_alike():
    places = np.array([0.0, 0.1, 5.0, 0.3, 5.2])
    unlike = (places[:, None] - places) ** 2
    assert _group_steps._most_alike(unlike, 1).tolist() == [True, True, False, True, False]
    assert _group_steps._most_alike(unlike, 2).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("gram", ["dense", Nystrom(15)])
def test_the_spectrum_of_some_groups_is_that_of_their_rows_alone(gram):
    groups, strata = np.repeat(np.arange(5), 12), np.tile([0, 1, 2], 20)
    X = rows(60) + groups[:, None]
    codes = encode("groups", groups), encode("strata", strata)
    design = GroupDesign.from_labels(*codes, None, None, np.random.default_rng(0))
    whole = GroupSpectrum.from_rows(Gaussian(1.0), X[design.rows], gram, X, design)
    stays = np.array([True, False, True, True, False])
    found = whole.of_groups(Gaussian(1.0), X[design.rows], design, stays)
    left = design.of_groups(stays)
    expected = GroupSpectrum.from_rows(Gaussian(1.0), X[left.rows], gram, X, left)
    np.testing.assert_allclose(found.gamma, expected.gamma, atol=CLOSE)
    one, other = found.features(left), expected.features(left)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=CLOSE)


def test_a_design_without_a_group_keeps_the_other_units():
    groups, clusters = encode("groups", list("aabbccab")), encode("clusters", list("11223345"))
    design = GroupDesign.from_labels(groups, None, clusters, None, np.random.default_rng(0))
    left = design.of_groups(np.arange(design.n_groups) != 1)
    assert left.names == ("a", "c")
    assert [left.names[each] for each in left.labels] == ["a", "c", "a"]
    assert left.rows.tolist() == [0, 1, 4, 5, 6]
    assert left.unit.tolist() == [0, 0, 1, 1, 2]


def test_labels_may_be_text_numbers_columns_or_a_mixture():
    X = rows(12)
    text = np.repeat(["b", "a", "c"], 4)
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99)
    p = test.test(X, text).p_value
    codes = np.unique(text, return_inverse=True)[1]
    for labels in (list(text), pd.Series(text), pd.Categorical(text), codes, codes[:, None]):
        assert test.test(X, labels).p_value == p
    mixed = ["a" if each == "a" else number for each, number in zip(text, codes, strict=True)]
    assert {each.group for each in test.test(X, mixed).groups} == {"a", 1, 2}
    assert test.test(X, pd.Series(text, name="site")).title == "site"


def test_design_columns_may_be_columns_of_the_data_frame():
    X = rows(12)
    frame = pd.DataFrame(X, columns=["x", "y"])
    frame["g"], frame["s"] = list("aabbccaabbcc"), [1] * 6 + [2] * 6
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99)
    found = test.test(frame, "g", strata="s")
    assert found.p_value == test.test(X, frame["g"], strata=frame["s"]).p_value
    assert {each.name for each in found.features} == {"x", "y"}


def test_the_verdict_of_two_groups_names_the_strata():
    X, site = rows(60), pd.Series(np.tile([0, 1], 30), name="lab")
    groups = np.repeat(["north", "south"], 30)
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99)
    both = "north (30 rows) and south (30 rows)"
    nothing = test.test(X, groups, strata=site)
    p = f"(p = {nothing.p_value:.2g})"
    assert nothing.verdict() == f"No difference between {both} detected within strata by lab {p}."
    shifted = X + 3.0 * (groups == "south")[:, None]
    found = test.test(shifted, groups, strata=site).verdict()
    assert found.startswith(f"{both} differ within strata by lab (p ≤ 0.01).")
    assert test.test(shifted, groups).verdict().startswith(f"{both} differ (p ≤ 0.01).")


def test_verdicts_name_pairs_and_count_clusters():
    X, groups = rows(40), np.tile(["after", "before"], 20)
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99)
    unit = pd.Series(np.repeat(np.arange(20), 2), name="patient")
    assert " when rows are paired by patient (" in test.test(X, groups, pairs=unit).verdict()
    few = test.test(X, np.sort(groups), clusters=np.repeat(np.arange(4), 10))
    assert few.verdict().startswith(
        "There are too few rows to tell whether the 2 groups (40 rows in all) differ: with 4 "
        "clusters, "
    )
    many = test.test(X, np.sort(groups), clusters=np.repeat(np.arange(20), 2))
    together = " Rows of the same cluster are kept together: 20 clusters are compared, not 40 rows."
    assert together in many.verdict()


def test_duplicates_and_constant_data_have_p_values_of_one_or_less():
    assert GroupTest().test(np.ones((9, 2)), list("aaabbbccc")).p_value == 1.0
    twice = np.repeat(rows(4), 3, axis=0)
    assert 0 < GroupTest(n_permutations=99).test(twice, list("abc") * 4).p_value <= 1
    same = GroupTest("gaussian", n_permutations=99).test(twice, np.tile([0, 1, 2], 4))
    assert same.p_value == 1.0


def test_many_rows_are_permuted_in_bins_of_one_size(monkeypatch):
    monkeypatch.setattr(_designs, "MAX_SINGLE_ROWS", 100)
    monkeypatch.setattr(_designs, "MIN_BINS", 30)
    monkeypatch.setattr(_designs, "BINS_PER_GROUP", 10)
    X = rows(310)
    groups = np.repeat([0, 1, 2], [100, 150, 60])
    X[groups == 2] += 1
    result = GroupTest("gaussian", bandwidths=2, n_permutations=99).test(X, groups)
    assert result.rows_together == 10
    assert result.n == 310
    assert result.p_value == 0.01
    monkeypatch.setattr(_groups, "MAX_GROUPS_FOR_PAIRS", 2)
    assert GroupTest("gaussian", n_permutations=9).test(X, groups).pairs == ()


def test_p_values_of_few_rows_say_so():
    result = GroupTest().test(rows(4), list("aabb"))
    assert result.p_value >= result.least_p_value == pytest.approx(2 / 6)
    assert "too few rows to tell whether the 2 groups (4 rows in all) differ" in result.verdict()


@pytest.mark.parametrize(
    ("groups", "design", "message"),
    [
        (["a"] * 6, {}, "at least two groups are needed, got one"),
        (list("aabb"), {}, "groups must have a label for each of 6 rows, got 4"),
        (["a", "b", None, "a", "b", "a"], {}, r"got 1 missing \(first: row 2\)"),
        ([0.0, 1.0, np.nan, 0.0, 1.0, 1.0], {}, r"got 1 missing \(first: row 2\)"),
        (
            pd.Categorical(list("aabbab"), list("abc")),
            {},
            "every group must have rows, got none of 'c'",
        ),
        ("shop", {}, "groups='shop' must name a column of a data frame"),
        (None, {}, "groups must have a label for each row, got None"),
        (list("abcdef"), {}, "at least one group must have two or more rows, got 6"),
        (
            list("aabbcc"),
            {"clusters": [1, 1, 2, 2, 3, 3]},
            "at least one group must have two or more clusters",
        ),
        (5, {}, "got a int"),
        (
            list("aabbaa"),
            {"strata": [1, 1, 2, 2, 3, 3]},
            "some strata must have rows of two or more groups",
        ),
        (
            list("aabbaa"),
            {"pairs": [1, 1, 2, 2, 3, 3]},
            "some pairs must have rows of two or more groups",
        ),
        (
            list("ababab"),
            {"clusters": [1, 1, 2, 2, 3, 3]},
            "one group, got two in cluster 1; pass units",
        ),
        (
            list("aabbaa"),
            {"clusters": [1, 1, 2, 2, 3, 3], "strata": [1, 2, 1, 2, 1, 2]},
            "one stratum, got two in cluster 1",
        ),
    ],
)
def test_what_cannot_be_tested_raises_one_sentence(groups, design, message):
    with pytest.raises(MuhatError, match=message):
        GroupTest().test(rows(6), groups, **design)


def test_invalid_parameters_raise():
    X, groups = rows(6), list("aabbcc")
    with pytest.raises(MuhatError, match="must not be unbiased"):
        GroupTest(statistics=MMD(unbiased=True)).test(X, groups)
    with pytest.raises(MuhatError, match="a gram with eigenvalues is needed"):
        GroupTest(gram="blocks").test(X, groups)
    with pytest.raises(MuhatError, match="a kernel that is computed from rows is needed"):
        GroupTest("precomputed").test(X, groups)


def test_a_group_that_is_wider_is_not_said_to_be_shifted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 1))
    X[:40] *= 4
    X[:40] -= X[:40].mean()
    verdict = GroupTest(n_permutations=199).test(X, np.repeat(list("ABCD"), 40)).verdict()
    assert "1 of the 4 groups (160 rows in all) differs from the others: A" in verdict
    assert "column 0, which varies more in A (its standard deviation is 3." in verdict


def test_a_small_p_of_one_group_beside_a_large_one_of_all_is_said_to_be_perhaps_chance():
    result = GroupTest(n_permutations=99).test(rows(30), np.repeat(list("ABCDE"), 6))
    assert result.p_value > 0.05
    first, second, *others = result.groups
    small = replace(first, p_value=0.02)
    one = replace(result, groups=(small, second, *others))
    start = (
        f"No difference between the 5 groups detected (30 rows in all, p = {result.p_value:.2g})."
    )
    assert one.verdict() == (
        f"{start} Group {first.group} alone stands out a little (p = 0.02, corrected for 5 "
        "groups), which may be chance."
    )
    assert not any(bar.is_strong for bar in groups_bars(one).bars)
    two = replace(result, groups=(small, replace(second, p_value=0.04), *others))
    assert two.verdict() == (
        f"{start} Groups {first.group} and {second.group} stand out a little (each p ≤ 0.04, "
        "corrected for 5 groups), which may be chance."
    )


def test_verdicts_have_shares_of_categories_and_name_both_of_two_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(list("abcd"), 40)
    north = (rng.random(160) < np.where(groups == "b", 0.9, 0.3)).astype(float)
    frame = pd.DataFrame({"region = north": north, "x": rng.normal(size=160)})
    test = GroupTest(n_permutations=199)
    shares = [100 * north[groups == "b"].mean(), 100 * north[groups != "b"].mean()]
    expected = f"region = north in {shares[0]:.0f} % of the rows of b and {shares[1]:.0f} % of "
    expected += "the others."
    assert expected in test.test(frame, groups).verdict()
    site = np.tile([0, 1], 80)
    assert test.test(frame, groups, strata=site).groups[0].shares is None
    assert (
        "differs from the others within strata: b ("
        in test.test(frame, groups, strata=site).verdict()
    )
    X = rng.normal(size=(80, 1)) * np.repeat([1.0, 4.0], 40)[:, None]
    verdict = test.test(X, groups[:80]).verdict()
    assert "which varies more in b (its standard deviation is " in verdict
    assert " times that in a)." in verdict


@pytest.mark.parametrize(
    ("labels", "first", "second"),
    [
        (["before", "after"], "before", "after"),
        (["after", "before"], "after", "before"),
        (["10", "9"], "9", "10"),
        ([10, 9], "9", "10"),
    ],
)
@pytest.mark.parametrize("kind", ["mean", "spread", "share"])
def test_of_two_groups_the_second_to_appear_differs_from_the_first(labels, first, second, kind):
    groups = np.repeat(np.array(labels, dtype=object), 40)
    is_second = groups.astype(str) == second
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    if kind == "mean":
        X[is_second, 0] += 2
        said = f" higher in {second} than in {first}."
    elif kind == "spread":
        X[is_second, 0] *= 4
        said = f"varies more in {second} (its standard deviation is "
    else:
        X[:, 0] = rng.random(80) < np.where(is_second, 0.9, 0.2)
        shares = share_texts((X[is_second, 0].mean(), X[~is_second, 0].mean()))
        said = f"in {shares[0]} of the rows of {second} and {shares[1]} of {first}."
    result = GroupTest(n_permutations=99).test(X, groups)
    assert result.order == (first, second)
    assert result.verdict().startswith(f"{first} (40 rows) and {second} (40 rows) differ")
    assert said in result.verdict()
    del result.__dict__["order"]  # as in results of earlier versions
    old = sorted([first, second])
    assert result.verdict().startswith(f"{old[0]} (40 rows) and {old[1]} (40 rows) differ")


def test_a_difference_of_columns_together_is_not_laid_on_one_of_them():
    rng = np.random.default_rng(0)
    groups = np.repeat(list("abc"), 60)
    X = rng.normal(size=(180, 2))
    X[groups == "b", 1] = 0.95 * X[groups == "b", 0] + 0.31 * X[groups == "b", 1]
    result = GroupTest(n_permutations=199).test(X, groups)
    assert result.p_value <= 0.05
    assert "No single column differs significantly: the difference is in how" in result.verdict()


def test_p_values_of_clusters_of_different_sizes_are_exact_over_all_relabelings(monkeypatch):
    """No more than a share a of all relabelings, equally likely without a difference, has p ≤ a.

    That is of each analysis by itself, without the choice by sizes. Scales of statistics depended
    on how many rows the observed groups had: 2 of 35 had p ≤ 1/35.
    """
    monkeypatch.setattr(GroupDesign, "_sizes_go_with_groups", lambda *_: False)
    rng = np.random.default_rng([131, 30])
    cluster = np.repeat(np.arange(8), [1, 1, 1, 1, 10, 10, 10, 10])
    X = rng.normal(size=(44, 1))
    p_values = []
    for chosen in combinations(range(1, 8), 3):  # the first cluster's group is "a"
        groups = np.where(np.isin(cluster, [0, *chosen]), "a", "b")
        p_values.append(GroupTest().test(X, groups, clusters=cluster).p_value)
    p_values = np.sort(p_values)
    assert (p_values >= np.arange(1, 36) / 35 - 1e-9).all()


def test_clusters_whose_sizes_differ_in_spread_alone_are_cut_to_one_size():
    """24 clusters of five rows, and four of one or twenty-five: the mean logarithms are equal."""
    unit = np.repeat(np.arange(28), [*[5] * 24, *[1, 25] * 2])
    X = np.random.default_rng(0).normal(size=(len(unit), 2))
    found = GroupTest(n_permutations=19).test(X, unit >= 24, clusters=unit)
    assert "so only 5 random rows of each cluster are compared" in found.left_out[0]


def test_products_held_by_group_give_the_steps_of_products_from_rows(monkeypatch):
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat(np.arange(6), 100))
    X = rng.normal(size=(600, 3)) + 2.0 * (labels == 3)[:, None]
    test = GroupTest("gaussian", bandwidths="median", n_permutations=19)
    held = test.test(X, labels)
    monkeypatch.setattr("muhat.testing._group_statistics.MAX_PRODUCTS_HELD", 0)
    from_rows = test.test(X, labels)
    for one, other in zip(held.groups, from_rows.groups, strict=True):
        assert (one.group, one.p_value) == (other.group, other.p_value)
        assert one.mmd == pytest.approx(other.mmd, rel=1e-10)


def test_a_verdict_says_which_deviations_names_clusters_and_speaks_of_single_rows():
    rng = np.random.default_rng(0)
    unit = pd.Series(np.repeat(np.arange(20), 2), name="patient")
    groups = np.tile(["after", "before"], 20)
    X = rng.normal(size=(40, 1)) + 3.0 * (groups == "after")[:, None]
    test = GroupTest(n_permutations=99)
    paired = test.test(X, groups, pairs=unit).verdict()
    assert paired.endswith(
        "(SD) are those of rows of the same patient, without the difference between groups."
    )
    clusters = test.test(X, np.repeat(["a", "b"], 20), clusters=unit).verdict()
    assert (
        " Rows of the same patient are kept together: 20 clusters are compared, not 40 rows."
        in (clusters)
    )
    single = test.test(X, ["one", *["many"] * 20, *["more"] * 19]).verdict()
    assert single.endswith("one has one row: too few rows to tell whether it differs.")


def test_repeated_rows_of_a_unit_in_a_group_change_sides_together():
    """Five rows of each person before and after, which share the noise of their visit."""
    rng = np.random.default_rng(7)
    person = np.repeat(np.arange(8), 10)
    groups = np.tile(np.repeat(["after", "before"], 5), 8)
    test = GroupTest("gaussian", bandwidths="median", n_permutations=99, random_state=0)
    rejected = 0
    for _ in range(20):
        X = np.repeat(rng.normal(size=(16, 1)), 5, axis=0) + 0.1 * rng.normal(size=(80, 1))
        found = test.test(X, groups, pairs=person)
        rejected += found.p_value <= 0.05
    assert rejected <= 4  # of more than 4 the probability is 0.003; by rows nearly all reject
    visit = np.repeat(np.arange(16), 5)
    assert found.p_value == test.test(X, groups, pairs=person, clusters=visit).p_value
    together = "Rows of the same unit and group are kept together: 16 clusters are compared"
    assert together in found.verdict()


def test_copies_within_groups_are_named_where_groups_differ():
    rng = np.random.default_rng(0)
    X, groups = np.repeat(rng.normal(size=(30, 2)), 4, axis=0), np.repeat(["a", "b"], 60)
    X[60:] += 1
    result = GroupTest(n_permutations=99).test(X, groups)
    assert result.n_copies == 90
    assert (
        "90 of the 120 rows are exact copies of another row of the same group. Unless copies are "
        "separate observations, the true p-value is larger. Drop copies before the test."
        in result.verdict()
    )
    units = np.repeat(np.arange(30), 4)
    assert "copies" not in GroupTest(n_permutations=99).test(X, groups, clusters=units).verdict()


def test_a_column_that_is_constant_within_groups_has_a_shift_of_ordinary_size():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=90), np.repeat([0.1, 0.1, 0.7], 30)])
    result = GroupTest(n_permutations=99).test(X, np.repeat(["a", "b", "c"], 30))
    assert all(abs(each.shift) < 10 for each in result.groups)


def test_a_far_value_hides_neither_a_column_nor_its_direction():
    """One value of 1e6 makes the column's mean and spread, but not what the verdict says of it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 3))
    groups = np.repeat(["a", "b"], 60)
    rows[groups == "b", 0] += 1
    rows[7, 0] = 1e6
    found = GroupTest(n_permutations=199).test(rows, groups)
    [first, _, _] = found.features
    assert (first.name, first.is_limited) == ("column 0", True)
    assert first.p_value <= 0.05
    assert "Largest difference: column 0, whose mean is " in found.verdict()
    assert "standard deviations higher in b than in a" in found.verdict()
    assert "(a few extreme values are limited)" in found.verdict()
    assert not any(each.is_limited for each in found.features[1:])
    rows[7, 0] = 0
    assert "limited" not in GroupTest(n_permutations=199).test(rows, groups).verdict()
