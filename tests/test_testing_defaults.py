"""What a test does without options.

Scaling, direction, copies, one-column and other inputs; and ``muhat.mmd``.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

import muhat
from muhat import MMD, DriftDetector, IndependenceTest, Laplacian, Precomputed, TwoSampleTest, mmd
from muhat.data import ColumnMoments, DataSet, SampleBatch
from muhat.data._copies import EqualRows
from muhat.errors import MuhatError
from muhat.figures import differences_bars
from muhat.kernels import Function, Gaussian
from muhat.testing._copies import RowCounts
from muhat.testing._marginals import FeatureDifference
from muhat.testing._samples import ConstantColumns
from muhat.testing._wording import size_text, with_medians, with_moments

QUICK = {"bandwidths": 2, "n_permutations": 99}
CLOSE = 1e-12


def samples(n=40, m=30, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) * [1, 1000], rng.normal(size=(m, 2)) * [1, 1000] + [shift, 0]


def within(X, Y):
    """Return the standard deviation within two samples, of every column."""
    squares = len(X) * X.var(axis=0) + len(Y) * Y.var(axis=0)
    return np.sqrt(squares / (len(X) + len(Y) - 2))


def scaled(X, Y):
    both = np.concatenate([X, Y])
    return tuple((each - both.mean(axis=0)) / both.std(axis=0) for each in (X, Y))


@pytest.mark.parametrize("form", ["arrays", "batches", "dask"])
def test_columns_are_standardized_over_both_samples_in_every_form(form):
    X, Y = samples()
    given = {"arrays": lambda each: each, "batches": lambda each: [each[:7], each[7:]]}
    if form == "dask":
        array = pytest.importorskip("dask.array")
        given["dask"] = lambda each: array.from_array(each, chunks=(11, 2))
    found = TwoSampleTest(**QUICK).test(given[form](X), given[form](Y))
    expected = TwoSampleTest(standardize=False, **QUICK).test(*scaled(X, Y))
    assert found.p_value == expected.p_value
    assert found.mmd == pytest.approx(expected.mmd, rel=1e-9)
    np.testing.assert_allclose(
        found.witness(X), expected.witness(scaled(X, Y)[0]), atol=1e-9
    )  # in units of the rows
    np.testing.assert_allclose(found.witness_x, expected.witness_x, atol=1e-9)


@pytest.mark.parametrize("form", ["arrays", "bins", "batches", "dask", "drift"])
@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_shifts_are_in_standard_deviations_within_the_samples(form, scale, monkeypatch):
    monkeypatch.setattr(
        "muhat.testing.TwoSampleTest.max_single_rows", 50
    )  # so that batches are summed up
    X, Y = samples(40, 40, shift=50.0)
    expected = (Y.mean(axis=0) - X.mean(axis=0)) / within(X, Y)
    given = [scale * each for each in (X, Y)]
    if form == "batches":
        given = [[each[:7], each[7:]] for each in given]
    elif form == "dask":
        array = pytest.importorskip("dask.array")
        given = [array.from_array(each, chunks=(11, 2)) for each in given]
    if form == "drift":
        result = DriftDetector().fit(given[0]).update(given[1])
    else:
        result = TwoSampleTest(bins=8 if form == "bins" else None, gram="nystrom", **QUICK).test(
            *given
        )
    for each in result.features:
        assert each.shift == pytest.approx(expected[int(each.name[-1])], rel=1e-9)
    assert (
        result.features[0].shift > 40
    )  # in standard deviations of both together it could not exceed 2


def test_the_spread_of_a_shift_where_samples_have_none():
    constant = TwoSampleTest(**QUICK).test(
        np.full(30, 0.1), np.full(30, 0.3)
    )  # whose means are rounded
    assert constant.features[0].shift == pytest.approx(2.0)
    X = samples()[0]
    row = np.array([[3.0, 500.0]])
    one_row = DriftDetector().fit(X).update(row)
    expected = ((row - X.mean(axis=0)) / X.std(axis=0, ddof=1))[0]
    for each in one_row.features:
        assert each.shift == pytest.approx(expected[int(each.name[-1])])
    half = TwoSampleTest(**QUICK).test(np.zeros(60), X[:, 0] + 300)
    assert half.features[0].shift == pytest.approx(
        (X[:, 0] + 300).mean() / np.sqrt(39 / 98 * X[:, 0].var(ddof=1))
    )
    shift = f"{half.features[0].shift:.0f} standard deviations higher in Y"
    assert f"mean of column 0, {shift}; column 0 also varies more in Y (" in half.verdict()


def test_a_shift_in_a_narrow_column_is_seen_beside_a_wide_one():
    X, Y = samples(100, 100, shift=1.0)
    assert TwoSampleTest(**QUICK).test(X, Y).p_value == 0.01
    by_distance = {
        "kernel": "gaussian",
        "statistics": "mmd",
        **QUICK,
    }  # other statistics scale components themselves
    assert TwoSampleTest(**by_distance).test(X, Y).p_value == 0.01
    assert TwoSampleTest(standardize=False, **by_distance).test(X, Y).p_value > 0.05


def test_independence_scales_each_side_by_itself():
    X, Y = samples(30, 30)
    own = [(each - each.mean(axis=0)) / each.std(axis=0) for each in (X, Y)]
    found = IndependenceTest(**QUICK).test(X, Y)
    assert found.statistic == pytest.approx(
        IndependenceTest(standardize=False, **QUICK).test(*own).statistic
    )


def test_shifts_are_second_minus_first_and_verdicts_name_the_samples():
    X, Y = samples(shift=1.5)
    result = TwoSampleTest(**QUICK).test(X, Y, names=("before", "after"))
    assert result.features[0].shift == pytest.approx(
        (Y - X.mean(axis=0)).mean(axis=0)[0] / within(X, Y)[0]
    )
    shift = f"{result.features[0].shift:.2g}"
    largest = f"Largest difference: mean of column 0, {shift} standard deviations higher in after."
    assert result.verdict() == f"before (40 rows) and after (30 rows) differ (p ≤ 0.01). {largest}"
    turned = TwoSampleTest(**QUICK).test(Y, X, names=("after", "before"))
    assert f"{shift} standard deviations lower in before." in turned.verdict()
    files = [DataSet(name, rows, ("a", "b")) for name, rows in (("old", X), ("new", Y))]
    assert (
        "mean of 'a', " + shift + " standard deviations higher in new."
        in TwoSampleTest(**QUICK).test(*files).verdict()
    )
    drifted = DriftDetector().fit(X).update(Y + np.array([5, 0]))
    assert drifted.features[0].shift > 0
    assert "higher than in the reference" in drifted.verdict()


def test_a_verdict_says_what_is_a_bound_and_what_was_measured():
    X, Y = samples(shift=0.0)
    result = TwoSampleTest(**QUICK).test(X, Y)
    nothing = "No difference between the samples of 40 and 30 rows detected"
    assert result.verdict() == f"{nothing} (p = {result.p_value:.2g})."
    few = TwoSampleTest(**QUICK).test(
        X[:4], Y[:4] + np.array([90, 0])
    )  # all 70 relabelings: p is measured
    assert few.is_complete
    assert not few.is_at_floor
    assert "p = 0.029" in few.verdict()
    X, Y = samples()
    hint = TwoSampleTest(**QUICK).test(X, Y)
    assert hint.features[0].p_value < 0.05 < hint.p_value
    assert "Tested alone, column 0 has p = 0.04. Treat this as a hint only" in hint.verdict()


def test_frames_are_taken_by_the_names_of_their_columns():
    X, Y = (pd.DataFrame(each, columns=["a", "b"]) for each in samples())
    expected = TwoSampleTest(**QUICK).test(X, Y)
    turned = TwoSampleTest(**QUICK).test(X, Y[["b", "a"]])
    assert turned.p_value == expected.p_value
    assert turned.features == expected.features
    np.testing.assert_array_equal(expected.witness(X[["b", "a"]]), expected.witness(X))
    with pytest.raises(
        ValueError,
        match="witness: the columns of the samples are needed, such as 'b', got 'a', 'c'",
    ):
        expected.witness(X.rename(columns={"b": "c"}))
    with pytest.raises(
        ValueError, match=r"witness: rows with 2 columns are needed, got shape \(3, 1\)"
    ):
        expected.witness(np.ones((3, 1)))


def test_one_dimension_is_one_column():
    X, Y = (each[:, 0] for each in samples())
    expected = TwoSampleTest(**QUICK).test(X[:, None], Y[:, None])
    for one, other in (
        (X, Y),
        (X.tolist(), Y.tolist()),
        (pd.Series(X, name="age"), pd.Series(Y, name="age")),
    ):
        found = TwoSampleTest(**QUICK).test(one, other)
        assert found.p_value == expected.p_value
    assert found.features[0].name == "age"
    assert IndependenceTest(**QUICK).test(pd.Series(X[:30]), Y).n == 30


def test_copies_are_counted_and_dropped_on_demand():
    X, Y = samples(60, 50, shift=0.0)
    copied = np.concatenate([X, X[:20]])
    nothing = TwoSampleTest(**QUICK).test(copied, np.concatenate([Y, X[:5]]))
    assert nothing.p_value > 0.05
    assert "copies" not in nothing.verdict()
    assert "5 rows of Y are equal to rows of X." in nothing.verdict()
    result = TwoSampleTest(**QUICK).test(copied, np.concatenate([Y + 2, X[:5]]))
    assert (result.n_copies, result.n_shared) == (20, 5)
    assert (
        "20 of the 135 rows are exact copies of another row of the same sample" in result.verdict()
    )
    assert "5 rows of Y are equal to rows of X. This is expected if few " in result.verdict()
    assert "If both samples contain the same observations, use distinct=" in result.verdict()
    alone = TwoSampleTest(**QUICK).test(copied, Y + 2).verdict()
    assert "the true p-value is larger. Use distinct=True to drop copies." in alone
    distinct = TwoSampleTest(distinct=True, **QUICK).test(copied, np.concatenate([Y, X[:5]]))
    assert distinct.n + distinct.m == 110
    assert (distinct.n_copies, distinct.n_shared) == (0, 0)
    assert set(distinct.at_rows.numbers_x) <= set(range(80))
    alone = TwoSampleTest(distinct=True, **QUICK).test(X, Y)
    assert alone.n_copies == 0
    few = np.random.default_rng(0).integers(
        2, size=(50, 2)
    )  # few values are possible: equal rows are no copies
    assert "copies" not in TwoSampleTest(**QUICK).test(few[:25], few[25:]).verdict()
    same = TwoSampleTest(**QUICK).test(X, X[::-1])
    assert same.verdict() == (
        "No difference between the samples of 60 and 60 rows: "
        "both consist of the same rows (p = 1)."
    )
    nothing = TwoSampleTest(distinct=True, **QUICK).test(np.ones(30), np.ones(20))
    assert nothing.p_value == 1
    assert (
        nothing.verdict() == "No difference between the samples of 30 and 20 rows: "
        "all rows of both are equal (p = 1)."
    )
    only_copies = TwoSampleTest(distinct=True, random_state=1, **QUICK).test(
        [0.0] * 30 + [1.0] * 30, [1.0]
    )
    assert only_copies.too_few_distinct
    assert only_copies.p_value == only_copies.features[0].p_value == 1
    left = "after exact copies of rows were dropped, too few rows were left to compare"
    found = "No difference between the samples of 60 and 1 rows detected"
    assert only_copies.verdict() == f"{found}: {left} (p = 1)."
    detector = DriftDetector(distinct=True).fit(np.ones((9, 2)))
    assert (
        detector.update(np.ones((5, 2))).verdict()
        == f"No drift detected in batch 1: {left} (5 rows, p = 1)."
    )
    assert detector.update(np.full((5, 2), 2.0)).p_value == 1
    unbiased = TwoSampleTest(statistics=MMD(unbiased=True), distinct=True, **QUICK)
    assert unbiased.test(X, np.ones((5, 2))).too_few_distinct
    with pytest.raises(ValueError, match="distinct and block_length cannot be combined"):
        TwoSampleTest(distinct=True, block_length=5).test(X, Y)


def test_counts_of_rows_add_up_and_are_estimated_beyond_what_is_kept(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    rows = np.concatenate([rows, rows[:1000]])
    parts = [
        RowCounts.from_batch(muhat.data.SampleBatch(each, 0))
        for each in np.split(rows, [100, 3500])
    ]
    assert (parts[0] + parts[1] + parts[2]).n_copies == 1000
    monkeypatch.setattr("muhat.testing._copies.MAX_COUNTED_ROWS", 500)
    parts = [
        RowCounts.from_batch(muhat.data.SampleBatch(each, 0))
        for each in np.split(rows, [100, 3500])
    ]
    total = parts[0] + parts[1] + parts[2]
    assert len(total.hashes) == 500
    assert (
        abs(total.n_copies - 1000) < 250
    )  # the share 1/4 over 500 different rows has a standard error of 1/60


def test_constant_data_have_p_one_and_constant_columns_are_warned_of_once():
    for early in (None, 5):
        result = TwoSampleTest(early_stopping=early, n_permutations=99).test(
            np.ones((9, 2)), np.ones((8, 2))
        )
        assert result.p_value == 1
        assert (
            result.verdict() == "No difference between the samples of 9 and 8 rows: "
            "all rows of both are equal (p = 1)."
        )
    X, Y = samples()
    X[:, 1] = Y[:, 1] = 3.0
    with pytest.warns(
        ConstantColumns, match="column 'column 1' is constant in all rows of both"
    ) as caught:
        TwoSampleTest(**QUICK).test(X, Y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = DriftDetector().fit(np.ones((30, 2)))
        assert detector.update(np.ones((9, 2))).p_value == 1
        assert detector.update(np.ones((1, 2))).p_value == 1
        assert not detector.update([[1.0, 2.0]]).is_reachable
        DriftDetector().fit(X).update(Y)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-305])
@pytest.mark.parametrize("bins", [None, 8])
def test_extreme_scales_change_nothing(standardize, scale, bins):
    X, Y = samples()
    test = TwoSampleTest("gaussian", standardize=standardize, bins=bins, **QUICK)
    plain, extreme = test.test(X, Y), test.test(X * scale, Y * scale)
    assert extreme.p_value == plain.p_value
    for one, other in zip(extreme.features, plain.features, strict=True):
        assert (one.name, one.p_value) == (other.name, other.p_value)
        assert one.shift == pytest.approx(other.shift, rel=1e-6)
        assert one.share == pytest.approx(other.share, rel=1e-6)


def test_rows_that_are_further_apart_than_the_largest_float_are_compared_by_standardizing():
    X, Y = (np.sign(each) * 1.5e308 for each in samples())
    result = TwoSampleTest(**QUICK).test(X, Y)
    assert result.p_value == TwoSampleTest(**QUICK).test(np.sign(X), np.sign(Y)).p_value
    assert np.isfinite([each.shift for each in result.features]).all()
    for test in (TwoSampleTest, IndependenceTest):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(
                ValueError,
                match=f"^{test.__name__}: distances between rows must be finite, .*; use stand",
            ):
                test(standardize=False, **QUICK).test(X[:30], Y)


def test_a_matrix_and_functions_of_objects_give_what_rows_do():
    X, Y = scaled(*samples(shift=2.0))
    Z = np.concatenate([X, Y])
    kernel = Gaussian(1.3)
    expected = TwoSampleTest(kernel, standardize=False, n_permutations=99).test(X, Y)
    K = kernel(Z)
    found = [
        TwoSampleTest(Precomputed(K), n_permutations=99).test(range(40), np.arange(40, 70)),
        TwoSampleTest("precomputed", n_permutations=99).test(K[:40], K[40:]),
    ]
    objects = [{"at": row} for row in Z]

    def of_pair(one, other):
        return float(np.exp(-((one["at"] - other["at"]) ** 2).sum() / (2 * 1.3**2)))

    def of_lists(ones, others):
        return [[of_pair(one, other) for other in others] for one in ones]

    for function in (Function(of_pair, rows=True), of_lists):
        found.append(TwoSampleTest(function, n_permutations=99).test(objects[:40], objects[40:]))
    for each in found:
        assert each.p_value == expected.p_value
        assert each.mmd == pytest.approx(expected.mmd, rel=1e-9)
        assert each.verdict() == "The samples of 40 and 30 rows differ (p ≤ 0.01)."
        assert each.to_dict()["features"] == []
    x, y = X[:20], Y[:20]
    both = {"kernel": Precomputed(kernel(x)), "kernel_y": Precomputed(kernel(y))}
    rows = IndependenceTest(kernel, standardize=False, n_permutations=99).test(x, y)
    assert (
        IndependenceTest(**both, n_permutations=99).test(range(20), range(20)).p_value
        == rows.p_value
    )
    assert (
        IndependenceTest("precomputed", n_permutations=99).test(kernel(x), kernel(y)).p_value
        == rows.p_value
    )
    text = ["cat", "hat", "cap"] * 4, ["dog", "fog", "dig"] * 4
    shared = Function(lambda one, other: len({*one} & {*other}), rows=True)
    assert TwoSampleTest(shared, n_permutations=99).test(*text).p_value == 0.01


REFUSED = {
    "numbers beyond the matrix": (
        Precomputed(np.eye(5)),
        [0, 1],
        [2, 7],
        "row numbers: whole numbers below 5, got",
    ),
    "no square": (
        "precomputed",
        np.ones((3, 4)),
        np.ones((2, 4)),
        r"needs rows of one square matrix K, got shape \(3",
    ),
    "a mixture": (
        [Precomputed(np.eye(5)), "gaussian"],
        [0, 1],
        [2, 3],
        "cannot be combined with others, got Gauss",
    ),
    "a seed": (None, np.eye(3), np.eye(3), "random_state must be None, a whole number from 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tested_is_refused_in_one_sentence(case):
    kernel, X, Y, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=f"^TwoSampleTest: .*{sentence}"):
        TwoSampleTest(kernel, random_state="zero" if case == "a seed" else 0).test(X, Y)


def test_the_seed_is_zero_by_default_and_may_be_a_generator():
    X, Y = samples(shift=0.3)
    first, again = (TwoSampleTest(**QUICK).test(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.permuted, again.permuted)
    drawn = [
        TwoSampleTest(random_state=np.random.default_rng(1), **QUICK).test(X, Y).permuted
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*drawn)
    assert DriftDetector().random_state == IndependenceTest().random_state == 0


def looped(X, Y, k, unbiased):
    """MMD² by the definition, pair by pair."""

    def mean(A, B, without):
        values = [
            k(a, b) for i, a in enumerate(A) for j, b in enumerate(B) if not (without and i == j)
        ]
        return sum(values) / len(values)

    return mean(X, X, unbiased) + mean(Y, Y, unbiased) - 2 * mean(X, Y, False)


@pytest.mark.parametrize("unbiased", [False, True])
def test_mmd_is_the_plain_formula(unbiased, monkeypatch):
    monkeypatch.setattr("muhat.testing._mmd.ROWS_PER_BLOCK", 5)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(0.5, size=(9, 2))
    Z = np.concatenate([X, Y])
    sigma = np.sqrt(np.median([((Z[i] - Z[j]) ** 2).sum() for i in range(21) for j in range(i)]))
    kernels = [
        ("gaussian", lambda a, b: np.exp(-((a - b) ** 2).sum() / (2 * sigma**2))),
        (Laplacian(0.7), lambda a, b: np.exp(-np.abs(a - b).sum() / 0.7)),
        ("linear", lambda a, b: a @ b),
    ]
    for kernel, k in kernels:
        expected = looped(X, Y, k, unbiased)
        assert mmd(X, Y, kernel, squared=True, unbiased=unbiased) == pytest.approx(
            expected, abs=CLOSE
        )
        assert mmd(X, Y, kernel, unbiased=unbiased) == pytest.approx(
            np.sqrt(max(expected, 0)), abs=CLOSE
        )
    assert mmd(X, X) == 0
    assert mmd(X, X, unbiased=True) == 0 > mmd(X, X, unbiased=True, squared=True)
    K = Gaussian(sigma)(Z)
    assert mmd(range(12), range(12, 21), Precomputed(K)) == pytest.approx(mmd(X, Y), abs=CLOSE)
    frames = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Y, columns=["a", "b"])[["b", "a"]]
    assert mmd(*frames) == mmd(X, Y)
    with pytest.raises(ValueError, match="X and Y must have the same columns, got 2 and 1 columns"):
        mmd(X, Y[:, 0])


def test_equal_pairs_of_rows_are_those_of_a_look_at_each():
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(3, size=(40, 2)).astype(float),
        rng.integers(-1, 1, size=(40, 1)) * 0.0,
    )  # 0 and −0 are equal
    y[:20] = rng.normal(size=(20, 1))
    equal = EqualRows.from_pairs(x, y)
    rows = [(*a, *b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    first = [rows.index(row) for row in rows]
    assert equal.first.tolist() == sorted(set(first))
    assert equal.first[equal.groups].tolist() == first
    assert equal.n_copies == 40 - len(set(rows)) > 0


def test_two_series_are_two_samples_of_one_column_whatever_they_are_called():
    rng = np.random.default_rng(3)
    X, Y = pd.Series(rng.normal(size=40), name="before"), pd.Series(rng.normal(1, 1, 40))
    result = TwoSampleTest(**QUICK).test(X, Y.rename("after"))
    assert result.names == ("before", "after")
    assert [each.name for each in result.features] == ["value"]
    plain = TwoSampleTest(**QUICK).test(X.to_numpy(), Y.to_numpy())
    assert result.p_value == result.pvalue == plain.p_value
    with pytest.raises(TypeError, match=r"X must be an array, a data frame .* got a set"):
        TwoSampleTest(**QUICK).test({1.0, 2.0}, X)


@pytest.mark.parametrize("n", [40, 350])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_constant_column_does_not_move_p(n, standardize):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    test = TwoSampleTest(standardize=standardize, **QUICK)
    expected = test.test(X, Y)
    with pytest.warns(UserWarning, match="is constant in all rows of both"):
        found = test.test(*(np.insert(rows, 1, 7.3, axis=1) for rows in (X, Y)))
    assert found.p_value == expected.p_value < 0.95
    np.testing.assert_allclose(found.permuted, expected.permuted, rtol=1e-9)


@pytest.mark.parametrize("value", [15.0, 30.0])
def test_one_wild_value_is_not_called_a_wider_spread(value):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(2, 100, 2))
    Y[:, 0] += 0.8
    Y[3, 0] = value
    most = TwoSampleTest(**QUICK).test(X, Y).features[0]
    assert most.name == "column 0"
    assert most.differs_in == "median"
    assert most.medians == (np.median(X[:, 0]), np.median(Y[:, 0]))
    assert abs(most.shift - 0.8) < 0.3


def test_spreads_that_more_than_two_rows_make_are_named():
    rng = np.random.default_rng(4)
    columns = tuple(map(str, range(500)))
    for rows in (20, 100, 1000):
        X, Y = rng.normal(size=(rows, 500)), 2 * rng.normal(size=(rows, 500))
        moments = [ColumnMoments.from_batch(SampleBatch(each, 0)) for each in (X, Y)]
        same = tuple(FeatureDifference(name, 0.1, 0.0, 0.01) for name in columns)
        found = with_medians(with_moments(same, *moments, columns), X, Y, columns)
        assert sum(each.medians is not None for each in found) <= 5


def ages(codes=12, size=150):
    """Return two samples of ages; some of the second are 9999."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(50, 8, size=(2, size, 2))
    Y[:codes, 0] = 9999
    return [pd.DataFrame(each, columns=["age", "other"]) for each in (X, Y)]


def test_a_value_far_from_all_others_that_repeats_in_one_sample_is_named():
    X, Y = ages()
    result = TwoSampleTest(**QUICK).test(X, Y, names=("old", "new"))
    named = "the value 9999 is in 8 % of the rows of new and in 0 % of those of old."
    assert f"not its median; {named}" in result.verdict()
    assert result.to_dict()["features"][0]["repeated"] == {"value": 9999, "shares": (0, 0.08)}
    assert "9,999" in result.to_html(data={"old": X, "new": Y})
    many = TwoSampleTest(**QUICK).test(*ages(30), names=("old", "new"))
    assert "9999 is in 20 % of the rows of new" in many.verdict()
    for same in ((ages(12)[1], ages(13)[1]), ages(1)):
        features = TwoSampleTest(**QUICK).test(*same).features
        assert all(each.repeated is None for each in features)


def test_tables_bars_and_pages_say_shape_where_the_verdict_does():
    X, Y = ages()
    rng = np.random.default_rng(1)
    sides = np.where(rng.random(200) < 0.5, -0.95, 0.95)
    Z = pd.DataFrame({"z": rng.normal(size=200), "u": rng.normal(size=200)})
    bimodal = Z.assign(z=sides + rng.normal(0, 0.31, 200), u=rng.normal(size=200))
    for before, after, shape in ((X, Y, "spread or shape"), (Z, bimodal, "shape")):
        result = TwoSampleTest(**QUICK).test(before, after, names=("old", "new"))
        most, other = result.features
        assert most.differs_in == "shape"
        assert f"in the {shape} of its distribution" in result.verdict()
        assert size_text(most, 0.05) == shape
        assert size_text(most, 0.001).startswith(("mean ", "median "))
        assert size_text(other, 0.05).startswith("mean ")
        assert f"{shape}, p " in str(differences_bars(result.features, result.names, 99, 0.05))
        page = result.to_html()
        assert f">{shape}<" in page
        assert "of its distribution: old → new" in page


def test_tables_show_what_differs_mean_share_or_spread():
    rng = np.random.default_rng(8)
    X, Y = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) * [1, 3, 1] + [2, 0, 0]
    X[:, 2], Y[:, 2] = np.arange(200) < 50, np.arange(200) < 120
    columns = ["moved", "wide", "kind = oak"]
    frames = [pd.DataFrame(each, columns=columns) for each in (X, Y)]
    result = TwoSampleTest(**QUICK).test(*frames, names=("before", "after"))
    found = {each.name: each for each in result.features}
    assert found["moved"].differs_in == "mean"
    assert found["wide"].differs_in == "spread"
    assert found["kind = oak"].differs_in == "share"
    texts = {name: size_text(each, 0.05) for name, each in found.items()}
    spreads = found["wide"].spreads
    assert texts["wide"] == f"SD {spreads[0]:.1f} → {spreads[1]:.1f}"
    assert texts["kind = oak"] == "25 % → 60 %"
    assert texts["moved"] == f"mean {found['moved'].shift:+.2f} SD"
    assert "25 % → 60 %, p" in str(differences_bars(result.features, result.names, 99, 0.05))
    shown = result._repr_html_()
    assert "change from before to after (SD: standard deviations)" in shown
    wide = TwoSampleTest(**QUICK).test(*(each[["wide"]] for each in frames))
    tile = f"{spreads[0]:.1f} → {spreads[1]:.1f}"
    assert tile in wide.to_html()
    assert "standard deviation: X → Y" in wide.to_html()


def test_copies_are_named_also_where_every_row_has_many():
    rng = np.random.default_rng(4)
    X, Y = (np.repeat(rng.normal(size=(15, 2)), 8, axis=0) for _ in "xy")
    result = TwoSampleTest(n_permutations=99).test(X, Y)
    assert result.p_value <= 0.05
    assert result.n_copies == 210
    assert "210 of the 240 rows are exact copies" in result.verdict()
    assert "Use distinct=True to drop copies." in result.verdict()
    few = rng.integers(0, 3, size=(240, 2)).astype(float)  # nine different rows
    moved = few[:99] + np.array([1, 0])
    assert "copies" not in TwoSampleTest(n_permutations=99).test(moved, few).verdict()


def test_two_samples_cannot_have_one_name():
    with pytest.raises(MuhatError, match="names must be different, got"):
        TwoSampleTest().test(np.arange(5.0), np.arange(6.0), names=("shop", "shop"))
