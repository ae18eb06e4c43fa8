"""Conditional means of rows that are not in memory equal those of rows that are."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from catalogue import SEED
from muhat import (
    ConditionalMean,
    Gaussian,
    Nystrom,
    RandomFeatures,
    load,
    open_batches,
    save,
)
from muhat.conditional._landmarks import missed_share

EXACT = 1e-9

RNG = np.random.default_rng(SEED)
X = RNG.normal(size=(500, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=500) + 3, X[:, 1] * X[:, 2]])
ROWS = np.hstack([X, Y])
NEW = RNG.normal(size=(7, 3))
NAMED = pd.DataFrame(NEW, columns=list("abc"))


def assert_same(one, other, tolerance=EXACT):
    """Two models choose by the same scores, predict the same and leave out the same."""
    assert one.choice_.parameter == pytest.approx(other.choice_.parameter, rel=tolerance)
    for mine, its in zip(one.choices_, other.choices_, strict=True):
        lam = np.array([mine.filter.as_lambda(parameter) for parameter in mine.grid])
        rounded = np.finfo(float).eps / lam  # as γ is, next to the least λ
        assert (np.abs(mine.scores / its.scores - 1) <= np.maximum(EXACT, rounded)).all()
    predictions = [
        each.predict(NAMED if hasattr(each, "feature_names_in_") else NEW) for each in (one, other)
    ]
    np.testing.assert_allclose(*predictions, rtol=0, atol=tolerance)
    np.testing.assert_allclose(one.loo_predictions_, other.loo_predictions_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(one.loo_residuals_, other.loo_residuals_, rtol=0, atol=tolerance)
    assert one.loo_score_ == pytest.approx(other.loo_score_, rel=tolerance)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("gram", [Nystrom(40), RandomFeatures(150)])
def test_batches_have_the_exact_leave_one_out_of_the_approximated_kernel(gram, has_intercept):
    in_memory = ConditionalMean(gram=gram, fit_intercept=has_intercept).fit(X, Y)
    batches = [ROWS[:200], ROWS[200:230], ROWS[230:]]
    assert_same(
        ConditionalMean(gram=gram, fit_intercept=has_intercept).fit_batches(batches, [3, 4]),
        in_memory,
    )


@pytest.mark.parametrize("filter", ["tikhonov", "nu-method"])
def test_dask_has_the_same(filter):
    # At the median bandwidth the landmarks' Gram matrix has a condition of 1e8, and what a
    # cluster's order of summation rounds differently is seen in the ninth digit of predictions.
    parts = {"kernel": Gaussian(1.0), "gram": Nystrom(40), "filter": filter}
    model = ConditionalMean(**parts)
    in_memory = ConditionalMean(**parts).fit(X, Y[:, 0])
    assert_same(
        model.fit(da.from_array(X, chunks=(180, 2)), da.from_array(Y[:, 0], chunks=300)), in_memory
    )
    frame = dd.from_pandas(pd.DataFrame(ROWS, columns=list("abcyz")), npartitions=3)
    assert_same(model.fit(frame[["a", "b", "c"]], frame["y"]), in_memory)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    both = ConditionalMean(**parts).fit(X, Y)
    assert_same(model.fit(frame[["a", "b", "c"]], frame[["y", "z"]]), both)


def test_files_are_fitted_by_the_name_of_the_target(tmp_path):
    pd.DataFrame(ROWS, columns=list("abcyz")).to_csv(tmp_path / "rows.csv", index=False)
    batches = open_batches(tmp_path / "rows.csv", drop=["z"], rows=64)
    model = ConditionalMean(gram=Nystrom(40)).fit_batches(batches, "y")
    assert_same(model, ConditionalMean(gram=Nystrom(40)).fit(X, Y[:, 0]))
    assert_same(pickle.loads(pickle.dumps(model)), model, 1e-14)
    save(model, tmp_path / "model")
    assert_same(load(tmp_path / "model"), model, 1e-14)


def test_few_rows_in_batches_are_read_at_once():
    model = ConditionalMean().fit_batches([ROWS[:100], ROWS[100:]], [3, 4])
    assert model.gram_ == "dense"
    assert_same(model, ConditionalMean().fit(X, Y))
    assert model.predict_quantiles(NEW, [0.1, 0.9]).shape == (7, 2, 2)


def test_intervals_of_batches_are_the_left_out_residuals_around_the_prediction():
    model = ConditionalMean(gram=Nystrom(40)).fit_batches([ROWS[:, :4]], 3)
    reach = np.sort(np.abs(model.loo_residuals_))[451 - 1]  # ⌈.9·501⌉
    middle = model.predict(NEW)
    found = model.predict_interval(
        NEW, method="jackknife+"
    )  # the plain jackknife, as docs/conditional.md says
    np.testing.assert_allclose(found, np.column_stack([middle - reach, middle + reach]), atol=1e-12)
    in_memory = ConditionalMean(gram=Nystrom(40)).fit(X, Y[:, 0])
    np.testing.assert_allclose(
        model.predict_interval(NEW), in_memory.predict_interval(NEW), rtol=1e-6
    )


def test_a_bandwidth_is_chosen_for_batches_too():
    model = ConditionalMean(gram=Nystrom(30), bandwidth="loo", filter="tikhonov").fit_batches(
        [ROWS[:, :4]], -1
    )
    in_memory = ConditionalMean(gram=Nystrom(30), bandwidth="loo", filter="tikhonov").fit(
        X, Y[:, 0]
    )
    np.testing.assert_allclose(model.bandwidth_scores_, in_memory.bandwidth_scores_, rtol=1e-8)
    assert model.kernel_ == in_memory.kernel_


STREAMED = [ROWS[:, :4]]

REFUSED = {
    "batches must be arrays that can be iterated more than once, got a ndarray": lambda: (
        ConditionalMean().fit_batches(ROWS, 3)
    ),
    "that can be iterated more than once, got a list_iterator": lambda: (
        ConditionalMean().fit_batches(iter(STREAMED), 3)
    ),
    "at least one batch is needed, got none": lambda: ConditionalMean().fit_batches([], 3),
    "target must be one or more of the columns 0, 1, 2, 3, got 'y'": lambda: (
        ConditionalMean().fit_batches(STREAMED, "y")
    ),
    "target must name at least one column, no column twice": lambda: ConditionalMean().fit_batches(
        STREAMED, [1, 1]
    ),
    "rows in batches need kernel_y='linear'": lambda: ConditionalMean(
        kernel_y="gaussian"
    ).fit_batches(STREAMED, 3),
    "rows in batches need gram='nystrom'": lambda: ConditionalMean(gram="dense").fit_batches(
        STREAMED, 3
    ),
    "weights and distributions need the outputs of all rows, got a fit in batches": lambda: (
        ConditionalMean(gram=Nystrom(20))
        .fit_batches(STREAMED, 3)
        .predict_quantiles(NEW, 0.5, "weights")
    ),
    "conformal intervals need rows in memory": lambda: (
        ConditionalMean(gram=Nystrom(20))
        .fit_batches(STREAMED, 3)
        .predict_interval(NEW, method="conformal")
    ),
    "gram must be 'auto', 'dense', 'nystrom' or 'random-features', got 'blocks'; use landmarks": (
        lambda: ConditionalMean(gram="blocks").fit(X, Y)
    ),
    "selection must be 'loo', 'gcv', LeaveOneOut, GCV, Fixed or Rate": lambda: ConditionalMean(
        selection="kfold"
    ).fit(X, Y),
    "weights are not supported for dask data": lambda: ConditionalMean().fit(
        da.from_array(X), da.from_array(Y), np.ones(500)
    ),
    "X and y must both be dask arrays": lambda: ConditionalMean().fit(da.from_array(X), Y),
    "X and y must have the same number of rows, got 500 and 499": lambda: ConditionalMean().fit(
        da.from_array(X), da.from_array(Y[1:])
    ),
    "y must vary, got 1 in every row": lambda: ConditionalMean().fit_batches([np.ones((30, 2))], 0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(message):
    with pytest.raises(ValueError, match=message) as refused:
        REFUSED[message]()
    assert "\n" not in str(refused.value)


def test_auto_takes_more_landmarks_where_500_miss_much(monkeypatch):
    monkeypatch.setattr("muhat.gram._plan.MAX_ROWS_DENSE", 1000)
    rng = np.random.default_rng(SEED)
    wide = rng.normal(size=(1200, 10))
    y = wide[:, 0] * wide[:, 1] + rng.normal(size=1200)
    model = ConditionalMean(filter="tikhonov").fit(wide, y)
    assert model.gram_ == Nystrom(1000)
    assert "; 1000 landmarks miss 0.0" in model.gram_reason_
    asked = ConditionalMean(filter="tikhonov", gram=Nystrom(1000)).fit(wide, y)
    np.testing.assert_array_equal(model.predict(wide), asked.predict(wide))
    assert asked.gram_reason_ == "as requested"
    narrow = ConditionalMean(filter="tikhonov").fit(wide[:, :2], y)
    assert narrow.gram_ == Nystrom()
    assert "; 500 landmarks miss " in narrow.gram_reason_
    monkeypatch.setattr("muhat.conditional._landmarks.MAX_WORK", 1200 * 600**2)
    dear = ConditionalMean(filter="tikhonov").fit(wide, y)
    assert dear.gram_ == Nystrom()
    assert dear.gram_reason_.endswith("gram=Nystrom(m) with more is more accurate")


def test_the_missed_share_is_that_of_the_trace():
    features = Nystrom(30).resolve(Gaussian(1.0), X)
    K, C = Gaussian(1.0)(X), Gaussian(1.0)(X, features.landmarks)
    projected = C @ np.linalg.solve(Gaussian(1.0)(features.landmarks), C.T)
    share = np.trace(K - projected) / np.trace(K)
    assert missed_share(features, X) == pytest.approx(share, rel=1e-6)
