"""A tolerance: more than δ from the rest. Noise is the obvious loop's, and levels are held."""

import numpy as np
import pytest

from muhat import Gaussian, GroupTest, Nystrom, Precomputed, TwoSampleTest
from muhat.errors import MuhatError
from muhat.testing._designs import GroupDesign, encode
from muhat.testing._group_statistics import GroupDistances, GroupSpectrum
from muhat.testing._tolerance import _CellNoise, _PairNoise, equivalent_shift

CLOSE = 1e-10

KERNEL = Gaussian(1.0)


def distance_of_shift(shift, sigma=1.0):
    """The MMD of N(0, 1) and N(shift, 1) in closed form, for a Gaussian kernel."""
    variance = sigma**2 + 2
    return np.sqrt(2 * sigma / np.sqrt(variance) * (1 - np.exp(-(shift**2) / (2 * variance))))


def shifted(rng, n, m, shift):
    """Two groups of n and m rows, the first shifted."""
    groups = np.repeat(["a", "b"], [n, m])
    return rng.normal(size=(n + m, 1)) + shift * (groups == "a")[:, None], groups


def tolerance_test(tolerance, **parameters):
    return GroupTest(
        KERNEL,
        statistics="mmd",
        standardize=False,
        tolerance=tolerance,
        n_permutations=99,
        **parameters,
    )


class FixedNumbers:
    """In place of a generator: known normal numbers, and χ² at its mean."""

    def __init__(self, values):
        self.values = values

    def normal(self, size):
        assert self.values.shape == size
        return self.values

    def chisquare(self, degrees, size):
        return np.broadcast_to(degrees, size).astype(float)


def design_and_features(groups, strata=None, clusters=None, pairs=None):
    rng = np.random.default_rng(2)
    given = []
    for each in (groups, strata, clusters, pairs):
        given.append(None if each is None else encode("labels", list(each)))
    design = GroupDesign.from_labels(*given, rng)
    X = rng.normal(size=(len(groups), 2))
    rows = X[design.rows]
    spectrum = GroupSpectrum.from_rows(KERNEL, rows, "dense", rows, design)
    return design, spectrum.features(design)


def coefficients(design, t, steps):
    """How the rows of every unit enter the mean difference of group t from the rest."""
    n = design.row_counts
    N = n[:, steps >= steps[t]].sum(axis=1)
    rows = sum(n[s, t] * (N[s] - n[s, t]) / N[s] for s in range(len(N)) if N[s])
    found = []
    for label, stratum in zip(design.labels, design.strata, strict=True):
        own = (label == t) - n[stratum, t] / N[stratum] if steps[label] >= steps[t] else 0.0
        found.append(own / rows)
    return np.array(found)


@pytest.mark.parametrize(
    "design",
    [
        {"groups": "aaabbbbcc"},
        {"groups": "aaabbaabb", "strata": "111112222"},
        {"groups": "aaabbccaabbcc", "strata": "1111111222222"},
        {"groups": "aaaabbbbb", "clusters": "112234455"},
    ],
)
@pytest.mark.parametrize("last", [0, 1])
def test_noise_of_cells_is_that_of_the_obvious_loop(design, last):
    design, features = design_and_features(**design)
    steps = np.zeros(design.n_groups, dtype=int)
    if design.n_groups > 2:
        steps[1:] = last  # without the first group, which stands out
    noise = _CellNoise(features, design, steps)
    multipliers = np.random.default_rng(0).normal(size=(3, len(design.labels)))
    found = noise.draw(3, FixedNumbers(multipliers))
    for t in range(design.n_groups):
        a = coefficients(design, t, steps)
        difference = a @ features
        np.testing.assert_allclose(noise.differences[t], difference, atol=CLOSE)
        for b, epsilon in enumerate(multipliers):
            total = 0.0
            for i in range(len(design.labels)):
                same = (design.labels == design.labels[i]) & (design.strata == design.strata[i])
                c = same.sum()
                mean = features[same].sum(axis=0) / design.sizes[same].sum()
                residual = (features[i] - design.sizes[i] * mean) * np.sqrt(c / (c - 1))
                total += epsilon[i] * a[i] * residual
            np.testing.assert_allclose(found[b, t], total, atol=CLOSE)


@pytest.mark.parametrize("steps", [(0, 0, 0), (1, 1, 0)])
def test_noise_of_pairs_varies_by_whole_pairs(steps):
    design, features = design_and_features("abcabcabab", pairs="1112223344")
    steps = np.array(steps)
    noise = _PairNoise(features, design, steps)
    multipliers = np.random.default_rng(0).normal(size=(2, 4))
    found = noise.draw(2, FixedNumbers(multipliers))
    for t in range(3):
        a = coefficients(design, t, steps)
        np.testing.assert_allclose(noise.differences[t], a @ features, atol=CLOSE)
        n = design.row_counts
        N = n[:, steps >= steps[t]].sum(axis=1)
        w = n[:, t] * (N - n[:, t]) / N
        c = (w > 0).sum()
        for b, epsilon in enumerate(multipliers):
            total = 0.0
            for pair in range(4):
                inside = design.strata == pair
                own = a[inside] @ features[inside] - w[pair] / w.sum() * noise.differences[t]
                total += epsilon[pair] * own * np.sqrt(c / (c - 1))
            np.testing.assert_allclose(found[b, t], total, atol=CLOSE)


def test_distances_with_strata_are_averages_of_differences_within_them():
    design, features = design_and_features("aabbbabbbcc", strata="11111222233")
    distances = GroupDistances.from_features(features, design)
    difference, rows = 0.0, 0.0
    for stratum in (0, 1):
        a = (design.strata == stratum) & (design.labels == 0)
        b = (design.strata == stratum) & (design.labels == 1)
        weight = a.sum() * b.sum() / (a.sum() + b.sum())
        difference += weight * (features[a].mean(axis=0) - features[b].mean(axis=0))
        rows += weight
    assert distances.between[0, 1] == pytest.approx(np.linalg.norm(difference / rows))
    assert np.isnan(distances.between[0, 2])  # no stratum has both
    assert distances.from_rest[0] == pytest.approx(np.linalg.norm(difference / rows))


def test_a_larger_tolerance_never_has_a_smaller_p_value():
    X, groups = shifted(np.random.default_rng(0), 40, 60, 0.8)
    exact = tolerance_test(0.0).test(X, groups)
    p_values = [exact.tolerance.p_value]
    for delta in (0.1, 0.2, 0.3, 0.4, 0.6, 1.0):
        result = tolerance_test(delta).test(X, groups)
        assert result.p_value == exact.p_value
        p_values.append(result.tolerance.p_value)
    assert min(p_values) >= exact.p_value
    assert p_values[0] <= 0.05 < p_values[-1]
    assert p_values == sorted(p_values)


@pytest.mark.parametrize(("n", "m", "shift"), [(15, 15, 1.0), (10, 60, 0.5), (60, 60, 0.3)])
def test_at_the_tolerance_the_level_is_about_held(n, m, shift):
    rng = np.random.default_rng(7)
    test = tolerance_test(distance_of_shift(shift))
    draws = 120
    count = 0
    for seed in range(draws):
        result = test.set_params(random_state=seed).test(*shifted(rng, n, m, shift))
        count += result.tolerance.p_value <= 0.1
    assert count / draws <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / draws)


def test_more_than_the_tolerance_is_found_where_rows_are_many():
    rng = np.random.default_rng(3)
    groups = np.repeat(list("abcde"), 1000)
    X = rng.normal(size=(5000, 1)) + 0.15 * np.isin(groups, ["b", "d"])[:, None]
    X[groups == "d"] += 0.6
    few = {"kernel": "gaussian", "bandwidths": "median", "statistics": "mmd"}
    result = GroupTest(**few, tolerance=0.1, n_permutations=199).test(X, groups)
    found = {each.group: (each.p_value, each.p_tolerance) for each in result.groups}
    assert found["d"][1] <= 0.05
    assert found["b"][0] <= 0.05 < found["b"][1]
    verdict = result.verdict()
    assert "differs from the others by more than the tolerance: d (MMD 0." in verdict
    assert " against a tolerance of 0.1, approximate p ≤ 0.005, corrected for 5" in verdict
    assert " standard deviations is about as large as the tolerance." in verdict
    assert "but not detectably by more than the tolerance." in verdict
    large = GroupTest(**few, tolerance=0.9, n_permutations=199).test(X, groups)
    assert (
        "No group detectably differs from the others by more than the tolerance" in large.verdict()
    )
    assert large.to_dict()["tolerance"]["delta"] == 0.9


def test_halves_are_those_of_every_group_in_the_order_of_rows():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([0, 1, 2], [5, 6, 1]))
    X = rng.normal(size=(12, 2))
    result = tolerance_test("halves").test(X, groups)
    first, second = [], []
    for group in (0, 1):  # one row has no second half
        rows = np.flatnonzero(groups == group)
        first += rows[: (len(rows) + 1) // 2].tolist()
        second += rows[(len(rows) + 1) // 2 :].tolist()
    w = np.zeros(12)
    w[first], w[second] = 1 / len(first), -1 / len(second)
    assert result.tolerance.delta == pytest.approx(np.sqrt(w @ KERNEL(X) @ w))
    assert "the distance between the first and the second half" in result.tolerance.text
    (single,) = (each for each in result.groups if each.group == 2)
    assert single.p_tolerance == 1.0


def test_two_groups_are_said_to_differ_by_more_or_not():
    X, groups = shifted(np.random.default_rng(0), 80, 80, 2.0)
    far = tolerance_test(0.2).test(X, groups).verdict()
    near = tolerance_test(0.9).test(X, groups).verdict()
    assert "They differ by more than the tolerance (approximate p" in far
    assert "(approximate p ≤ 0.01): the estimated distance (MMD) is " in far
    assert " against a tolerance of 0.2." in far
    assert "They do not detectably differ by more than the tolerance (approximate p = " in near
    assert " against a tolerance of 0.9." in near
    Y, groups = shifted(np.random.default_rng(0), 80, 80, 0.0)
    nothing = tolerance_test(0.2).test(Y, groups)
    assert nothing.p_value > 0.05
    end = "So a difference larger than the tolerance (MMD 0.2) was not detected either."
    assert nothing.verdict().endswith(end)


def test_the_shift_that_equals_a_tolerance_moves_the_mean_by_it():
    X = np.random.default_rng(0).normal(size=(300, 1))
    assert equivalent_shift(KERNEL, X, distance_of_shift(0.4)) == pytest.approx(0.4, rel=0.1)
    assert equivalent_shift(KERNEL, X, 1.5) is None


def test_repeated_measures_are_not_taken_for_more_rows():
    """Twelve units of ten rows that are like each other: rows alone would find too much."""
    rng = np.random.default_rng(1)
    unit = np.repeat(np.arange(12), 10)
    count = alone = 0
    for seed in range(30):
        X = rng.normal(size=(12, 1))[unit] + 0.3 * rng.normal(size=(120, 1))
        test = tolerance_test(0.1, random_state=seed)
        count += test.test(X, unit % 2, clusters=unit).tolerance.p_value <= 0.1
        alone += test.test(X, unit % 2).tolerance.p_value <= 0.1
    assert count <= 7
    assert alone > 15


@pytest.mark.parametrize("tolerance", [-0.1, np.nan, np.inf, "half", True, [0.1]])
def test_what_is_no_tolerance_raises(tolerance):
    with pytest.raises(MuhatError, match="tolerance must be a number of at least 0, 'halves'"):
        GroupTest(tolerance=tolerance).test(np.arange(6.0), list("aabbcc"))


def test_strata_with_single_units_raise():
    with pytest.raises(MuhatError, match="pass small strata as pairs= instead of strata="):
        tolerance_test(0.1).test(np.arange(6.0), list("abbabb"), strata=[1, 1, 1, 2, 2, 2])


def test_constant_rows_are_within_any_tolerance():
    result = GroupTest(tolerance="halves").test(np.ones((8, 1)), list("aabbccdd"))
    assert result.tolerance.p_value == 1.0
    assert result.tolerance.delta == 0.0


def test_two_samples_have_the_tolerance_of_two_groups():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 1)) + 1.5, rng.normal(size=(50, 1))
    test = TwoSampleTest(KERNEL, statistics="mmd", standardize=False, tolerance=0.2)
    found = test.test(X, Y, names=("before", "after"))
    groups = tolerance_test(0.2).test(np.r_[X, Y], np.repeat([0, 1], [60, 50]))
    assert found.tolerance.distance == pytest.approx(groups.groups[0].mmd)
    assert found.tolerance.kernel == KERNEL
    assert found.tolerance.p_value <= 0.01
    assert "They differ by more than the tolerance (approximate p " in found.verdict()
    distance = f"{found.tolerance.distance:.2g} against a tolerance of 0.2."
    assert f": the estimated distance (MMD) is {distance}" in found.verdict()
    assert " standard deviations is about as large as the tolerance." in found.verdict()
    nothing = test.test(Y[:25], Y[25:])
    assert nothing.p_value > 0.05
    assert "larger than the tolerance (MMD 0.2) was not detected either." in nothing.verdict()
    assert found.to_dict()["tolerance"]["delta"] == 0.2
    far = test.set_params(tolerance=1.2).test(X, Y)
    assert far.tolerance.p_value > 0.5
    assert "They do not detectably differ by more than the tolerance" in far.verdict()
    K = KERNEL(np.r_[X, Y])
    by_matrix = test.set_params(kernel=Precomputed(K), tolerance=0.2).test(
        range(60), range(60, 110)
    )
    assert by_matrix.tolerance.distance == pytest.approx(found.tolerance.distance)
    assert by_matrix.tolerance.shift is None


def test_halves_of_two_samples_are_those_of_the_first():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 1)), rng.normal(size=(15, 1))
    test = TwoSampleTest(KERNEL, statistics="mmd", standardize=False, tolerance="halves")
    w = np.repeat([0.1, -0.1], 10)
    delta = test.test(X, Y).tolerance.delta
    assert delta == pytest.approx(np.sqrt(w @ KERNEL(X) @ w))
    with pytest.raises(MuhatError, match="tolerance and block_length cannot be combined"):
        test.set_params(block_length=3).test(X, Y)
    assert (
        TwoSampleTest(tolerance=0.1).test(np.ones((5, 1)), np.ones((6, 1))).tolerance.p_value == 1
    )


def test_the_tolerance_of_very_many_rows_is_that_of_some(monkeypatch):
    monkeypatch.setattr(TwoSampleTest, "max_single_rows", 200)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 1)), rng.normal(size=(700, 1)) + 1.0
    few = {"bandwidths": "median", "gram": Nystrom(50), "n_permutations": 99}
    test = TwoSampleTest("gaussian", tolerance=0.05, **few)
    assert test.test([X[:400], X[400:]], Y).tolerance.p_value <= 0.05
