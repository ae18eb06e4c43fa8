"""Tests of many groups: the fast path is the obvious loop, and designs are exact."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh

from muhat import Gaussian, GroupTest, Nystrom, Spectral, TwoSampleTest
from muhat.errors import MuhatError
from muhat.testing import MMD, _designs, _groups
from muhat.testing._designs import GroupDesign, encode
from muhat.testing._group_statistics import (
    Comparisons,
    GroupSpectrum,
    GroupSums,
    kernel_statistics,
)
from muhat.testing._groups import corrected_p_values

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
    compared = Comparisons.choose(design, 50)
    spectrum = GroupSpectrum.from_rows(kernel, X[design.rows], "dense", X, design)
    found = kernel_statistics(spectrum, [MMD(), Spectral("f-kmse", 0.02)], sums, compared)
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


def test_comparisons_are_those_of_the_obvious_loop_and_have_the_variance_that_theory_says():
    _, design = design_of("unequal")
    X = rows(6)
    labels = design.relabelings(5000, np.random.default_rng(0))
    sums = GroupSums.from_labels(labels, design.sizes, 3)
    compared = Comparisons.choose(design, 50)
    spectrum = GroupSpectrum.from_rows(Gaussian(1.0), X[design.rows], "dense", X, design)
    n = sums.n_rows
    [(_, S)] = list(sums.blocks(spectrum.Z))
    values = compared.values(spectrum.gamma, S, n)
    U = spectrum.Z
    for b, label in enumerate(labels):
        contrasts = [
            *(
                (label == t) / (label == t).sum() - (label != t) / (label != t).sum()
                for t in range(3)
            ),
            *(
                (label == t) / (label == t).sum() - (label == u) / (label == u).sum()
                for t, u in compared.pairs
            ),
        ]
        for value, w in zip(values[:, b], contrasts, strict=True):
            expected = 6 * (spectrum.gamma * (U.T @ w) ** 2).sum() / (w @ w)
            assert value == pytest.approx(expected, abs=CLOSE)
    variances = compared.variances(spectrum.stratum_squares(design.strata), n[0])
    np.testing.assert_allclose(values.mean(axis=1), variances @ spectrum.gamma, atol=CLOSE)


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


@pytest.mark.parametrize(
    ("make", "design"),
    [
        (plain, ()),
        (repeated_measures, ("clusters",)),
        (confounded, ("strata",)),
        (paired, ("pairs",)),
    ],
)
def test_levels_hold_in_every_design(make, design):
    assert level(make, **dict.fromkeys(design)) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


@pytest.mark.parametrize("make", [repeated_measures, confounded])
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
        "Of 8 groups by shop (200 rows in all), 1 was found to differ from the rest: "
        "shop 3 (p ≤ 0.005, corrected for 8 groups)."
    )
    assert "Largest difference: price, whose mean is 2." in verdict
    assert "higher in shop 3 than in the rest." in verdict
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


def test_a_design_without_a_group_keeps_the_other_units():
    groups, clusters = encode("groups", list("aabbccab")), encode("clusters", list("11223345"))
    design = GroupDesign.from_labels(groups, None, clusters, None, np.random.default_rng(0))
    left = design.without(1)
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
    assert "too few to tell" in result.verdict()


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
        (5, {}, "got a int"),
        (
            list("aabbaa"),
            {"strata": [1, 1, 2, 2, 3, 3]},
            "some of strata must have rows of two groups",
        ),
        (
            list("aabbaa"),
            {"pairs": [1, 1, 2, 2, 3, 3]},
            "some of pairs must have rows of two groups",
        ),
        (
            list("ababab"),
            {"clusters": [1, 1, 2, 2, 3, 3]},
            "one group, got two in cluster 1; give units",
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
    with pytest.raises(MuhatError, match="a gram with a spectrum is needed"):
        GroupTest(gram="blocks").test(X, groups)
    with pytest.raises(MuhatError, match="a kernel of rows is needed"):
        GroupTest("precomputed").test(X, groups)


def test_a_group_that_is_wider_is_not_said_to_be_shifted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 1))
    X[:40] *= 4
    X[:40] -= X[:40].mean()
    verdict = GroupTest(n_permutations=199).test(X, np.repeat(list("ABCD"), 40)).verdict()
    assert "1 was found to differ from the rest: A" in verdict
    assert "in spread or shape more than in its mean" in verdict


def test_a_small_p_of_one_group_beside_a_large_one_of_all_is_called_a_hint():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(35, 2))
    X[:10] += 0.6
    labels = np.repeat(list("ABCDE"), [10, 3, 8, 12, 2])
    result = GroupTest(n_permutations=199).test(X, labels)
    assert result.p_value > 0.05 >= result.groups[0].p_value
    assert "corrected for 5 groups: a hint, not a finding." in result.verdict()
