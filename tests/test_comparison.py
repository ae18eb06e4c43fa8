"""The comparison: the numbers of KernelMean, an honest verdict, and results as files."""

import json
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import reference
from catalogue import SAMPLES, SEED
from muhat import KernelMean, StackedMean
from muhat._text import listed
from muhat._wording import gain_parts
from muhat.comparison import Comparison
from muhat.comparison import compare as compare_as_it_is
from muhat.datasets import standardized, wine
from muhat.filters import AUTO, FILTERS, IteratedTikhonov
from muhat.gram import Nystrom
from muhat.kernels import Gaussian
from muhat.selection import MAX_ROWS_REFIT, Fixed, LeaveOneOut
from muhat.selection._leave_one_out import _threshold
from muhat.stacking._stack import HeldOutGain

compare = partial(compare_as_it_is, standardize=True)
"""As the command compares."""

SAME = 1e-9
"""Relative: the same number by the same route, after another order of operations."""

RULES_WITH_A_PARAMETER_FOR_ALL = ["loo", "gcv", "kfold", "rate"]


def random_sample(n, d=6):
    return np.random.default_rng(SEED).normal(size=(n, d)) * np.geomspace(1, 100, d) + 3


@pytest.fixture(scope="module")
def sample():
    return random_sample(40)


@pytest.fixture(scope="module")
def comparison(sample):
    return compare(sample)


@pytest.fixture(scope="module")
def large_comparison():
    return compare(random_sample(MAX_ROWS_REFIT + 1))


@pytest.mark.parametrize("name", FILTERS)
def test_every_row_is_what_kernel_mean_chooses(sample, comparison, name):
    choice = KernelMean(filter=name).fit(standardized(sample)).choice_
    row = comparison[name]
    assert row.score == pytest.approx(choice.score, rel=SAME)
    assert row.strength == pytest.approx(choice.strength, rel=1e-6, abs=SAME)
    assert row.at_edge == choice.at_edge
    np.testing.assert_allclose(row.scores, choice.scores, rtol=SAME)
    if choice.parameter is None:
        assert row.parameter is None
    else:
        assert row.parameter == pytest.approx(choice.parameter, rel=1e-6)


def test_the_default_is_what_kernel_mean_takes(sample, comparison):
    mu = KernelMean().fit(standardized(sample))
    assert comparison.default.filter == mu.filter_
    assert comparison.default.parameter == pytest.approx(mu.choice_.parameter, rel=1e-6)
    plain = KernelMean(filter="f-kmse", selection=LeaveOneOut(grid=[mu.choice_.parameter])).fit(
        standardized(sample)
    )
    assert comparison.default.score == pytest.approx(
        plain.choice_.score, rel=SAME
    )  # scored as all others are
    assert (
        f"uses the filter f-kmse with {comparison.default.setting}" in comparison.default_verdict()
    )
    np.testing.assert_allclose(comparison.eigenvalues, mu.eigenvalues_, atol=SAME)


def test_the_default_keeps_the_plain_average_of_yes_and_no():
    X = (np.random.default_rng(SEED).random((50, 1)) < 0.15).astype(float)
    comparison = compare(X, kernel=Gaussian(1.0))
    assert comparison.default.name == "kme"
    keeps = "By default, KernelMean() keeps the plain average for these rows."
    assert comparison.default_verdict() == keeps
    assert comparison.best.improvement > 0
    assert (
        not comparison.helps
    )  # whatever the score says: the noise has one dimension, and so has the choice


def test_improvement_is_in_percent_of_the_unbiased_estimate_of_the_risk(sample, comparison):
    K = comparison.kernel(standardized(sample))
    n = len(K)
    risk = (
        (np.trace(K) / n - K.mean()) / (n - 1) * n / (n - 1)
    )  # on the n − 1 points that leave-one-out leaves
    assert comparison.risk == pytest.approx(risk, rel=SAME)
    for row in comparison.rows:
        assert row.improvement == pytest.approx(
            100 * (comparison["kme"].score - row.score) / risk, abs=1e-6
        )
    assert comparison["kme"].improvement == 0


def test_strengths_along_the_grid_hold_the_chosen_one(comparison):
    for row in comparison.rows:
        assert row.strengths[row.index] == row.strength
        assert len(row.strengths) == len(row.scores) == len(row.improvements)


@pytest.mark.parametrize("selection", RULES_WITH_A_PARAMETER_FOR_ALL)
def test_every_rule_has_a_row_for_every_estimator_scored_by_leave_one_out(sample, selection):
    comparison = compare(sample, selection=selection)
    assert [row.name for row in comparison.rows] == list(FILTERS)
    X = standardized(sample)
    for name in ("f-kmse", "landweber"):
        row = comparison[name]
        chosen = KernelMean(filter=name, selection=selection).fit(X).choice_.parameter
        assert row.parameter == pytest.approx(chosen, rel=1e-6)
        rescored = (
            KernelMean(filter=name, selection=LeaveOneOut(grid=[row.parameter]))
            .fit(X)
            .choice_.score
        )
        assert row.score == pytest.approx(rescored, rel=SAME)
        assert row.selection == selection


def test_gcv_leaves_simple_shrinkage_to_leave_one_out_and_says_so(sample):
    comparison = compare(sample, selection="gcv")
    assert comparison["s-kmse"].selection == "loo"
    assert comparison["s-kmse"].parameter == pytest.approx(compare(sample)["s-kmse"].parameter)
    assert comparison.notes == ("The parameter of s-kmse is chosen by loo, not gcv.",)


def test_a_large_sample_leaves_out_the_scores_that_take_too_long_and_says_so(large_comparison):
    without_score, by_gcv = [], []
    for name, kind in FILTERS.items():
        row = large_comparison[name]
        if kind.analytic or kind.constant:
            assert row.score is not None
            assert row.selection != "gcv"
            continue
        without_score.append(name)
        assert row.score is None
        assert row.scores is None
        assert row.improvement is None
        if not kind.parameterless:
            by_gcv.append(name)
            assert row.selection == "gcv"
    assert large_comparison["f-kmse"].selection == "loo"
    scores, *rules = large_comparison.notes
    assert {"tsvd", "componentwise"} <= set(without_score)
    names = listed(without_score, len(without_score))
    assert scores.startswith(f"{names} have no leave-one-out score: with more than 300 rows")
    assert rules == [f"The parameter of {name} is chosen by gcv, not loo." for name in by_gcv]
    assert " with a score" in large_comparison.verdict()


def test_a_large_sample_chooses_the_truncation_that_gcv_does(large_comparison):
    X = standardized(random_sample(MAX_ROWS_REFIT + 1))
    choice = KernelMean(filter="tsvd", selection="gcv").fit(X).choice_
    assert large_comparison["tsvd"].parameter == pytest.approx(choice.parameter, rel=1e-6)


def test_kme_takes_part_whatever_is_asked_for(sample):
    assert [row.name for row in compare(sample, filters=["landweber"]).rows] == ["kme", "landweber"]
    assert [row.name for row in compare(sample, filters="tikhonov").rows] == ["kme", "f-kmse"]
    assert [row.name for row in compare(sample, filters=["kme", "kme"]).rows] == ["kme"]
    assert [row.name for row in compare(sample, filters=["auto"]).rows] == list(FILTERS)


def test_two_filters_of_one_kind_are_told_apart(sample):
    rows = compare(sample, filters=[IteratedTikhonov(2), IteratedTikhonov(5)]).rows
    assert [row.name for row in rows] == [
        "kme",
        "IteratedTikhonov(order=2)",
        "IteratedTikhonov(order=5)",
    ]


def test_a_fixed_parameter_is_scored_too(sample):
    row = compare(sample, filters=["f-kmse"], selection=Fixed(0.1))["f-kmse"]
    assert row.parameter == 0.1
    expected = (
        KernelMean(filter="f-kmse", selection=LeaveOneOut(grid=[0.1]))
        .fit(standardized(sample))
        .choice_.score
    )
    assert row.score == pytest.approx(expected, rel=SAME)


def test_features_are_standardised_as_scikit_learn_does(sample):
    np.testing.assert_allclose(
        standardized(sample), StandardScaler().fit_transform(sample), atol=1e-12
    )


def test_constant_features_are_standardised_to_zero():
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0), np.zeros(7)])
    scaled = standardized(X)
    assert (scaled[:, [0, 2]] == 0).all()
    np.testing.assert_allclose([scaled[:, 1].mean(), scaled[:, 1].var()], [0, 1], atol=1e-12)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_the_unit_of_measurement_does_not_matter(sample, comparison, factor):
    assert compare(sample * factor)["f-kmse"].score == pytest.approx(
        comparison["f-kmse"].score, rel=SAME
    )


@pytest.mark.parametrize(
    "options", [{}, {"selection": "gcv"}, {"selection": "kfold"}, {"gram": Nystrom(20)}], ids=repr
)
def test_on_an_array_every_filter_is_exactly_what_kernel_mean_chooses(options):
    X = random_sample(MAX_ROWS_REFIT + 1)
    comparison = compare_as_it_is(X, standardize=False, **options)
    for name in FILTERS:
        mu = KernelMean(filter=name, **options).fit(X)
        assert comparison.kernel == mu.kernel_
        assert comparison[name].parameter == mu.choice_.parameter
        np.testing.assert_array_equal(comparison[name].grid, mu.choice_.grid)
        if comparison[name].selection == "loo":
            np.testing.assert_allclose(comparison[name].scores, mu.choice_.scores, rtol=1e-11)


def test_no_more_than_all_of_a_risk_is_said_to_be_gained_and_gains_rank_as_scores_do():
    """Once, standardizing made a linear kernel's mean zero, and a gain of 200 % was reported."""
    X = random_sample(60)
    centred = compare_as_it_is(X - X.mean(axis=0), kernel="linear")
    assert centred.best.improvement > 100
    by_score = sorted(centred.rows, key=lambda row: row.score)
    in_order = sorted((row.improvement for row in centred.rows), reverse=True)
    np.testing.assert_allclose([row.improvement for row in by_score], in_order, rtol=1e-12)
    assert len({row.improvement for row in by_score}) >= len({row.score for row in by_score}) > 4
    assert "indistinguishable from zero" in centred.verdict()
    assert "no estimator can gain more than 100 % of KME's risk" in centred.notes[0]
    scaled = compare(X, kernel="linear")
    assert scaled.best.improvement < 100
    as_scaled = KernelMean(kernel="linear", filter="f-kmse").fit(X / X.std(axis=0)).choice_
    assert scaled["f-kmse"].score == pytest.approx(as_scaled.score, rel=SAME)


def test_kernels_without_a_bound_are_compared(sample):
    comparison = compare(sample, kernel="linear", standardize=False)
    choice = KernelMean(kernel="linear", filter="landweber").fit(sample).choice_
    assert comparison["landweber"].score == pytest.approx(choice.score, rel=SAME)


def test_a_data_frame_is_a_sample(sample, comparison):
    assert compare(pd.DataFrame(sample)).verdict() == comparison.verdict()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_every_sample_has_a_verdict_and_can_be_written_as_json(name, kernel):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "bandwidth='median'")
        comparison = compare(SAMPLES[name], kernel=kernel)
    assert comparison.verdict().endswith(".")
    written = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert written["n"] == len(SAMPLES[name])
    assert [row["name"] for row in written["estimators"]] == list(FILTERS)


def test_json_holds_the_numbers(comparison):
    written = comparison.to_dict()
    row = written["estimators"][4]
    assert row["name"] == "landweber"
    assert row["symbol"] == "t"
    assert row["parameter"] == comparison["landweber"].parameter
    assert row["scores"] == comparison["landweber"].scores.tolist()
    assert written["eigenvalues"] == comparison.eigenvalues.tolist()
    assert written["best"] == comparison.best.name


def test_what_is_not_finite_is_none_in_json():
    rng = np.random.default_rng(SEED)
    opposed = rng.normal(size=(20, 3))
    written = compare(np.concatenate([opposed, -opposed]), kernel="linear").to_dict()["estimators"][
        1
    ]
    assert written["parameter"] is None  # λ = ∞: the target itself
    assert written["strength"] == 1


def test_the_verdict_names_the_winner_and_its_gain(comparison):
    best = comparison.best
    assert best.score == min(row.score for row in comparison.rows)
    tried = sum(len(row.grid) for row in comparison.rows)
    assert comparison.verdict().startswith(
        "No filter detectably lowers the expected squared error of the kernel mean of "
        f"these {comparison.n} rows below that of the plain average. "
        f"The best of {tried} candidates seems to lower it by "
        f"{best.gain_text.split()[0]} % (standard error "
    )


def test_the_verdict_says_that_shrinkage_helps_only_where_that_is_clear():
    few = np.random.default_rng(SEED).normal(
        size=(30, 30)
    )  # nothing in common but the kernel's diagonal
    clear = compare(few, kernel=Gaussian(1.0), filters=["s-kmse", "f-kmse", "nu-method"])
    assert clear.helps
    tried = sum(len(row.grid) for row in clear.rows)
    gain, _, error = clear.best.gain_text.partition(" ± ")
    assert clear.verdict().startswith(
        f"Shrinkage helps: compared with the plain average, {clear.best.label} lowers the "
        "expected squared error of the kernel "
        f"mean of these 30 rows by {gain} % (standard error {error} %; "
        f"significant after correction for the {tried} candidates)."
    )
    unclear = replace(clear, threshold=clear.best.improvement / clear.best.standard_error + 1)
    assert not unclear.helps
    assert unclear.verdict().startswith(
        "No filter detectably lowers the expected squared error of the kernel mean of "
        "these 30 rows below that of the plain average. "
        f"The best of {tried} candidates seems to lower it by {gain} % "
        f"(standard error {error} %). This may be chance: such a gain is significant after "
        f"correction for the {tried} candidates only if it is above "
        f"{unclear.threshold * clear.best.standard_error:.3g} %."
    )
    # A wide error of the best does not hide that what KernelMean() takes is clear.
    wide = replace(clear, best=replace(clear.best, standard_error=1e3))
    assert wide.helps
    assert f"plain average, {clear.default.label} lowers" in wide.verdict()
    biased = replace(clear, extra_bias=np.inf)
    unsure = (
        "%). This estimate leaves out a part of the bias; corrected for it, no gain is significant."
    )
    assert unsure in biased.verdict()


def test_two_rows_are_too_few_for_a_verdict():
    two = compare(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert (
        two.verdict() == "2 rows are too few to tell whether shrinkage improves their kernel mean."
    )
    assert two.stacked_verdict() == (
        "Too few rows to tell whether the stacked mean is better than the plain average."
    )


def test_the_threshold_is_the_largest_of_correlated_gains_by_chance(comparison):
    terms = np.random.default_rng(SEED).normal(size=(4000, 20))
    one, same = _threshold(terms[:, :1]), _threshold(np.repeat(terms[:, :1], 20, axis=1))
    twenty = _threshold(terms / terms.std(axis=0))
    assert one == pytest.approx(2, abs=0.1)
    assert same == pytest.approx(one)
    assert twenty == pytest.approx(
        norm.isf(1 - norm.cdf(2) ** (1 / 20)), abs=0.15
    )  # independent ones: Šidák
    assert comparison.threshold > 2


def test_a_threshold_from_few_rows_has_students_tails():
    assert _threshold(np.zeros((5, 0))) == pytest.approx(student.isf(norm.sf(2), 4))


def test_the_verdict_says_when_shrinkage_does_not_help():
    comparison = compare(random_sample(30), filters=["s-kmse"], selection=Fixed(1.0))
    assert comparison.best.name == "kme"
    assert "Shrinkage by filters does not help: no filter" in comparison.verdict()


def test_the_verdict_says_when_there_is_no_risk():
    comparison = compare(np.ones((6, 2)), kernel=Gaussian(1.0))
    assert "the plain average is exact" in comparison.verdict()
    assert all(row.improvement is None for row in comparison.rows)


def test_the_verdict_says_when_the_choice_is_at_the_edge(sample):
    X = random_sample(40)
    narrow = compare(X, filters=["s-kmse"], selection=LeaveOneOut(grid=[1e-4, 1e-3]))
    assert narrow["s-kmse"].at_edge
    assert (
        "at the edge of its grid: it gives the strongest shrinkage that was tried"
        in narrow.verdict()
    )


def test_the_verdict_says_when_no_difference_can_be_told(sample):
    slight = compare(sample, filters=["s-kmse"], selection=Fixed(1e-4))
    assert 0 < slight.best.improvement < slight.best.standard_error
    lower, error = gain_parts(slight.best.improvement, slight.best.standard_error)
    gain = lower.removesuffix(" lower")
    assert slight.verdict().startswith(
        "No filter detectably lowers the expected squared error of the kernel mean of "
        "these 40 rows below that of the plain average. "
        f"s-kmse (λ = 0.0001) seems to lower it by {gain} ({error}). This may be "
        "chance: such a gain is significant only if it is above "
        f"{slight.threshold * slight.best.standard_error:.3g} %."
    )


@pytest.mark.parametrize(
    ("gain", "error", "text"),
    [
        (0.4123, 0.5178, "0.41 ± 0.52"),
        (12.3456, 3.21, "12.3 ± 3.2"),
        (0.0, 0.0, "0"),
        (2e-5, 3.4e-4, "0"),
        (-1.53e-7, 7.1e-8, "0"),
        (-0.001, 0.2, "0.00 ± 0.20"),
        (3.14159, 0.00123, "3.14 ± 0.00"),
    ],
)
def test_a_gain_has_the_digits_of_its_error(comparison, gain, error, text):
    row = replace(comparison.best, improvements=np.array([gain]), index=0, standard_error=error)
    assert row.gain_text == text


@pytest.mark.parametrize("gram", ["dense", Nystrom(40)], ids=str)
def test_the_standard_error_is_that_of_the_differences_to_kme_with_each_point_left_out(
    sample, gram
):
    X = standardized(sample)
    for row in compare(sample, kernel=Gaussian(2.0), gram=gram).rows:
        F, n = reference.features(Gaussian(2.0)(X)), len(X)
        gains = []
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            pair = [("kme", None), (row.name, row.parameter)]
            losses = [
                ((F[i] - reference.estimate(*each, F[rest], np.ones(n - 1))) ** 2).sum()
                for each in pair
            ]
            gains.append(losses[0] - losses[1])
        risk = (np.trace(F @ F.T) / n - (F.mean(axis=0) ** 2).sum()) / (n - 1) * n / (n - 1)
        assert row.improvement == pytest.approx(100 * np.mean(gains) / risk, rel=1e-6, abs=1e-9)
        assert row.standard_error == pytest.approx(
            100 * np.std(gains, ddof=1) / n**0.5 / risk, rel=1e-6, abs=1e-9
        )


def test_a_fitted_estimator_is_a_comparison(sample, comparison):
    again = Comparison.from_estimator(KernelMean().fit(standardized(sample)))
    assert [row.name for row in again.rows] == list(AUTO)
    assert again["f-kmse"].improvement == pytest.approx(comparison.default.improvement, abs=1e-6)
    assert again.d == sample.shape[1]


def test_a_fitted_estimator_is_compared_on_one_more_decomposition(sample, monkeypatch):
    mu = KernelMean(kernel=Gaussian(10.0)).fit(sample)
    decompose, found = np.linalg.eigh, []
    monkeypatch.setattr(
        np.linalg, "eigh", lambda matrix: found.append(matrix.shape) or decompose(matrix)
    )
    Comparison.from_estimator(mu)
    assert found == [(len(sample), len(sample))]


def test_a_fitted_estimator_without_kme_is_measured_against_it(sample, comparison):
    again = Comparison.from_estimator(
        KernelMean(filter="f-kmse", selection="gcv").fit(standardized(sample))
    )
    assert [row.name for row in again.rows] == ["kme", "f-kmse"]
    assert again["kme"].score == pytest.approx(comparison["kme"].score, rel=SAME)


def test_an_estimator_with_weights_or_a_target_is_no_comparison(sample):
    weights = np.arange(1.0, 1 + len(sample))
    with pytest.raises(ValueError, match="without target and sample_weight"):
        Comparison.from_estimator(KernelMean().fit(sample, sample_weight=weights))
    with pytest.raises(ValueError, match="without target and sample_weight"):
        Comparison.from_estimator(KernelMean(target=weights / weights.sum()).fit(sample))
    with pytest.raises(ValueError, match="without target and sample_weight"):
        Comparison.from_estimator(KernelMean(filter="kme").fit(sample, sample_weight=weights))
    with pytest.raises(ValueError, match="a kernel that is computed from rows is needed"):
        Comparison.from_estimator(KernelMean(kernel="precomputed").fit(Gaussian(10.0)(sample)))
    with pytest.raises(NotFittedError):
        Comparison.from_estimator(KernelMean())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"filters": ["landwebber"]}, "did you mean 'landweber'"),
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
        ({"kernel": "precomputed"}, "a kernel that is computed from rows is needed"),
        ({"selection": "lo"}, "did you mean 'loo'"),
        ({"X": np.ones((1, 3))}, "at least 2 rows are needed"),
        ({"X": np.ones((4, 3)), "selection": "kfold"}, "needs at least 5 rows"),
        ({"X": np.array([[1.0], [np.nan]])}, "1 row with NaN"),
        ({"X": np.ones((5, 2, 2))}, "dim"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(sample, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare(**{"X": sample, **arguments})


def test_the_wine_data_are_those_of_the_paper():
    data = wine()
    assert data.name == "wine"
    assert data.data.shape == (178, 13)
    assert data.feature_names[0] == "alcohol"
    assert data.data[:, 12].max() > 1000  # unscaled


def test_a_stacked_mean_that_seems_to_gain_more_than_all_risk_is_explained():
    comparison, stacked = (
        compare(random_sample(30), filters=["s-kmse"]),
        StackedMean().fit(random_sample(30)),
    )
    vars(stacked)["_held_out"] = HeldOutGain(1.2, 0.1)
    assert not comparison.notes
    assert (
        "no estimator can gain more than 100 % of KME's risk"
        in replace(comparison, stacked=stacked).notes[0]
    )


@pytest.mark.parametrize("form", ["array", "list", "series", "dask"])
def test_one_dimension_is_one_column(form):
    values = np.random.default_rng(0).normal(size=30)
    given = {
        "array": lambda: values,
        "list": values.tolist,
        "series": lambda: pd.Series(values, name="a"),
    }
    if form == "dask":
        array = pytest.importorskip("dask.array")
        given["dask"] = lambda: array.from_array(values, chunks=11)
    found, expected = (
        compare(each, filters=["s-kmse"])["s-kmse"] for each in (given[form](), values[:, None])
    )
    assert found.improvement == pytest.approx(expected.improvement, rel=1e-6)
