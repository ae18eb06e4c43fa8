"""Masked values and dates are errors wherever rows, targets, weights or labels are given."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from muhat import (
    ConditionalMean,
    DriftDetector,
    Gaussian,
    GroupClassifier,
    GroupRegressor,
    GroupTest,
    IndependenceTest,
    KernelMean,
    KernelMeans,
    KernelPCA,
    StackedMean,
    TwoSampleTest,
    mmd,
)
from muhat.errors import MuhatError

RNG = np.random.default_rng(8)
N = 30
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=N)
LABELS = np.repeat(list("abcde"), N // 5)
OUTCOMES = np.arange(5.0)
CLASSES = np.array([0, 1, 0, 1, 0])
DAYS = (np.datetime64("2020-01-01") + np.arange(N)).astype("datetime64[ns]")
FRAME = pd.DataFrame({"a": X[:, 0], "day": DAYS})
TEST = TwoSampleTest(n_permutations=9)
REGRESSION = ConditionalMean().fit(X, Y)
REGRESSOR = GroupRegressor().fit(X, OUTCOMES, groups=LABELS)
CLASSIFIER = GroupClassifier().fit(X, CLASSES, groups=LABELS)


def masked(values, huge=1e6):
    """Return values of which one is masked, with a wrong one behind the mask."""
    found = np.ma.masked_array(np.array(values))
    if found.dtype.kind in "fi":
        found.data[(1,) * found.ndim] = huge
    found[(1,) * found.ndim] = np.ma.masked
    return found


MASKED = {
    "y of a score": lambda: REGRESSION.score(X, masked(Y)),
    "weights of a score": lambda: REGRESSION.score(X, Y, sample_weight=masked(np.ones(N))),
    "y of groups": lambda: REGRESSOR.score(X, masked(OUTCOMES), groups=LABELS),
    "classes": lambda: GroupClassifier().fit(X, masked(CLASSES), groups=LABELS),
    "classes by sample": lambda: GroupClassifier().fit(np.split(X, 5), masked(CLASSES)),
    "classes of a score": lambda: CLASSIFIER.score(X, masked(CLASSES), groups=LABELS),
    "witness": lambda: TEST.test(X, X + 1).witness(masked(X)),
    "embedding": lambda: KernelMean().fit(X).embedding_(masked(X)),
    "kernel": lambda: Gaussian(1.0)(masked(X), X),
}


@pytest.mark.parametrize("case", MASKED)
def test_masked_values_raise(case):
    with pytest.raises(MuhatError, match="must not have masked values"):
        MASKED[case]()


@pytest.mark.parametrize(
    "fit",
    [
        lambda labels: KernelMeans().fit(X, labels),
        lambda labels: GroupRegressor().fit(X, OUTCOMES, groups=labels),
        lambda labels: REGRESSOR.predict(X, groups=labels),
        lambda labels: CLASSIFIER.predict(X, groups=labels),
    ],
)
def test_masked_labels_are_missing_ones(fit):
    with pytest.raises(MuhatError, match=r"groups must have a label for every row, got 1 missing"):
        fit(masked(LABELS))


TABLES = {
    "pandas": FRAME,
    "pandas objects": FRAME.assign(day=[dt.date(2020, 1, 1)] * N),
    "pandas with a time zone": FRAME.assign(day=pd.date_range("2020", periods=N, tz="UTC")),
    "pandas periods": FRAME.assign(day=pd.period_range("2020", periods=N, freq="D")),
    "polars": pl.DataFrame(FRAME),
    "polars spans": pl.DataFrame(FRAME).with_columns(pl.col("day") - pl.col("day").min()),
    "pyarrow": pa.Table.from_pandas(FRAME),
    "pyarrow days": pa.table({"a": X[:, 0], "day": pa.array([dt.date(2020, 1, 1)] * N)}),
    "pyarrow times": pa.table({"a": X[:, 0], "day": pa.array([dt.time(1)] * N)}),
    "only dates": pa.table({"a": pa.array(DAYS), "day": pa.array(DAYS)}),
}
DATES_IN_X = {
    "KernelMean": lambda table: KernelMean().fit(table),
    "KernelMean in batches": lambda table: KernelMean().fit_batches([table, table]),
    "StackedMean": lambda table: StackedMean().fit(table),
    "ConditionalMean": lambda table: ConditionalMean().fit(table, Y),
    "ConditionalMean in batches": lambda table: ConditionalMean().fit_batches([table, table], "a"),
    "KernelPCA in batches": lambda table: KernelPCA(1).fit_batches([table, table]),
    "KernelMeans": lambda table: KernelMeans().fit(table, LABELS),
    "TwoSampleTest": lambda table: TEST.test(table, table),
    "TwoSampleTest in batches": lambda table: TEST.test([table, table], [table]),
    "IndependenceTest": lambda table: IndependenceTest(n_permutations=9).test(X, table),
    "GroupTest": lambda table: GroupTest(n_permutations=9).test(table, LABELS),
    "DriftDetector": lambda table: DriftDetector().fit(table),
    "DriftDetector in batches": lambda table: DriftDetector().fit([table, table]),
    "mmd": lambda table: mmd(table, table),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("case", DATES_IN_X)
def test_dates_among_columns_raise_and_are_not_numbers(case, kind):
    with pytest.raises(MuhatError, match=r"must be numeric, got (text or )?dates"):
        DATES_IN_X[case](TABLES[kind])


@pytest.mark.parametrize(
    "dates",
    [
        [dt.date(2020, 1, 1)] * N,
        pd.Series([dt.datetime(2020, 1, 1)] * N, dtype=object),
        pd.Series(pd.date_range("2020", periods=N, tz="UTC")),
        pd.Series(pd.period_range("2020", periods=N, freq="D")),
        pa.array([dt.time(1)] * N),
        pa.array(DAYS),
        DAYS,
    ],
)
def test_one_column_of_dates_raises(dates):
    for test in (
        lambda: IndependenceTest(n_permutations=9).test(X, dates),
        lambda: TEST.test(dates, dates),
        lambda: mmd(dates, dates),
    ):
        with pytest.raises(MuhatError, match=r"must be numeric, got text, dates or lists"):
            test()


@pytest.mark.parametrize("y", [DAYS, FRAME["day"], pl.Series(DAYS), TABLES["only dates"]])
def test_dates_as_y_raise_in_fit_and_in_score(y):
    for use in (ConditionalMean().fit, REGRESSION.score):
        with pytest.raises(MuhatError, match=r"y must be real numbers, got dates or times"):
            use(X, y)
    with pytest.raises(MuhatError, match=r"y must be real numbers, got dates or times"):
        REGRESSOR.score(X, DAYS[:5], groups=LABELS)


def test_a_score_is_that_of_scikit_learn_with_and_without_weights():
    from sklearn.metrics import r2_score

    weights = RNG.random(N)
    predicted = REGRESSION.predict(X)
    assert REGRESSION.score(X, Y) == r2_score(Y, predicted)
    assert REGRESSION.score(X, Y, weights) == r2_score(Y, predicted, sample_weight=weights)


def test_the_target_of_batches_is_named_and_not_given():
    with pytest.raises(MuhatError, match=r"the name or number of a column .* got a ndarray"):
        ConditionalMean().fit_batches([X, X], [Y])


def test_series_of_two_samples_may_have_different_names_in_mmd_too():
    before, after = pd.Series(X[:, 0], name="before"), pd.Series(X[:, 1], name="after")
    assert mmd(before, after) == mmd(X[:, 0], X[:, 1])
    with pytest.raises(MuhatError, match=r"^mmd: X and Y must have the same columns"):
        mmd(before.to_frame(), after.to_frame())


@pytest.mark.parametrize(
    "fit",
    [
        lambda weights: StackedMean().fit(X, sample_weight=weights),
        lambda weights: KernelPCA(1).fit(X, sample_weight=weights),
        lambda weights: KernelMeans().fit(X, LABELS, sample_weight=weights),
    ],
)
def test_weights_without_a_finite_sum_raise_before_numpy_warns(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MuhatError, match=r"sample_weight must have a finite sum"):
            fit(np.full(N, 1e308))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_pre_images_of_extreme_rows_raise_in_words_of_their_own(scale):
    pca = KernelPCA(1).fit(X * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MuhatError, match=r"^KernelPCA.denoise: X must be at most 1e\+140"):
            pca.denoise(X * scale)
        with pytest.raises(MuhatError, match=r"^KernelPCA.inverse_transform: X must be at most"):
            pca.inverse_transform(pca.transform(X * scale))


def test_groups_of_the_largest_floats_are_compared_without_a_warning():
    rows = np.array([[1.5e308], [-1.5e308]] * (N // 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = GroupTest(n_permutations=9).test(rows, LABELS)
    assert np.isfinite(result.pictures.columns[0].quantiles).all()
