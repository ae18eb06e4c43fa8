"""``compare`` on any number of rows: features, batches out of core, the command line."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from muhat import KernelMean
from muhat.comparison import Comparison, passes
from muhat.comparison import compare as compare_as_it_is
from muhat.data import ArraySource, ColumnMoments, StreamSource
from muhat.datasets import standardized
from muhat.filters import FILTERS
from muhat.gram import Nystrom, RandomFeatures
from muhat.gram._plan import MAX_ROWS_DENSE
from muhat.kernels import Laplacian
from muhat.selection import MAX_ROWS_REFIT

compare = partial(compare_as_it_is, standardize=True)
"""As the command compares."""

SAME = 1e-8
"""The same number by another route."""

NAMES = ("a", "b", "c", "d")


def sample(n, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 50, d) + 4
    X[:, -1] = 7  # a column that says nothing
    return X


def in_batches(X, *ends):
    return np.split(X, ends)


def assert_same(one, other, rtol=SAME):
    assert [row.name for row in one.rows] == [row.name for row in other.rows]
    assert one.best.name == other.best.name
    assert (one.n, one.d) == (other.n, other.d)
    assert one.risk == pytest.approx(other.risk, rel=rtol)
    for row, its in zip(one.rows, other.rows, strict=True):
        np.testing.assert_allclose(row.grid, its.grid, rtol=1e-6, atol=1e-12)
        assert (row.scores is None) == (its.scores is None)
        if row.scores is not None:
            np.testing.assert_allclose(row.scores, its.scores, rtol=rtol)
        assert row.strength == pytest.approx(its.strength, abs=1e-6)


class Counting:
    """Batches that count the passes over them."""

    def __init__(self, batches):
        self.batches = batches
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        return iter(self.batches)


# Standardising


@pytest.mark.parametrize("ends", [(), (1,), (1, 2, 700), tuple(range(10, 1000, 10))])
def test_columns_are_standardised_in_batches_as_they_are_at_once(ends):
    X = sample(1000)
    parts = in_batches(X, *ends)
    first, *others = (ArraySource(part).total(ColumnMoments.from_batch) for part in parts)
    spread = sum(others, first)
    np.testing.assert_allclose(spread.standardized(X), standardized(X), atol=1e-12)
    assert (spread.standardized(X)[:, -1] == 0).all()


@given(
    X=arrays(
        np.float64, (12, 2), elements=st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)
    ),
    scale=st.sampled_from([1e-300, 1e-160, 1.0, 1e160, 1e300]),
    end=st.integers(1, 11),
)
@settings(max_examples=60, deadline=None)
def test_no_unit_of_measurement_overflows_or_vanishes(X, scale, end):
    X = X * scale
    first, second = (
        ColumnMoments.from_batch(next(iter(ArraySource(part)))) for part in in_batches(X, end)
    )
    np.testing.assert_allclose((first + second).standardized(X), standardized(X), atol=1e-6)


def test_small_deviations_from_a_large_mean_are_not_lost():
    X = np.random.default_rng(0).normal(size=(5000, 1))
    moved = StreamSource([part + 1e8 for part in in_batches(X, *range(100, 5000, 100))]).total(
        ColumnMoments.from_batch
    )
    np.testing.assert_allclose(moved.standardized(X + 1e8), standardized(X), atol=1e-6)


# Routes agree


@pytest.mark.parametrize("gram", [Nystrom(60), RandomFeatures(80)])
@pytest.mark.parametrize("standardize", [True, False])
def test_batches_are_compared_as_their_rows_at_once(gram, standardize):
    X = sample(2000)
    whole = compare(X, gram=gram, standardize=standardize)
    batches = compare(in_batches(X, 1, 900, 901), gram=gram, standardize=standardize)
    assert_same(batches, whole)
    assert batches.approximation_error == pytest.approx(whole.approximation_error, rel=1e-6)
    assert batches.kernel.bandwidth == pytest.approx(whole.kernel.bandwidth, rel=SAME)


@pytest.mark.parametrize("selection", ["loo", "gcv", "kfold", "rate"])
@pytest.mark.parametrize("n", [120, MAX_ROWS_REFIT + 50])
def test_with_all_points_as_landmarks_it_is_the_dense_comparison(n, selection):
    X = np.random.default_rng(1).normal(size=(n, 5)).round(2)
    filters = [name for name in FILTERS if name != "componentwise"]
    options = {"kernel": Laplacian(), "selection": selection, "filters": filters}
    dense, held = compare(X, gram="dense", **options), compare(X, gram=Nystrom(n), **options)
    assert held.gram == "nystrom"
    np.testing.assert_allclose(held.eigenvalues, dense.eigenvalues, atol=SAME)
    if selection != "kfold":  # folds are dealt out by other means
        assert_same(held, dense)


@pytest.mark.parametrize("standardize", [True, False])
def test_landmarks_that_are_given_are_standardised_with_the_rows(standardize):
    X = sample(300) * [1, 100, 1e-3, 1] + [0, 1e5, 3, 0]
    options = {"filters": ["f-kmse"], "standardize": standardize}
    given = compare(X, gram=Nystrom(landmarks=X), **options)
    for row, dense in zip(given.rows, compare(X, gram="dense", **options).rows, strict=True):
        assert row.score == pytest.approx(dense.score, rel=1e-6)
    with pytest.raises(
        ValueError, match="landmarks must be an array of at least one row of 4 features"
    ):
        compare(X, gram=Nystrom(landmarks=X[:, :2]), **options)


def test_the_scores_are_those_that_kernel_mean_chooses_by():
    X = sample(3000)
    comparison = compare(X, filters=["f-kmse"], gram=Nystrom(50))
    choice = KernelMean(filter="f-kmse", gram=Nystrom(50)).fit(standardized(X)).choice_
    np.testing.assert_allclose(comparison["f-kmse"].scores, choice.scores, rtol=SAME)


def test_few_rows_in_batches_are_compared_dense_without_another_pass():
    X = sample(200)
    batches = Counting(in_batches(X, 50, 60))
    comparison = compare(batches, filters=["f-kmse", "tsvd"])
    assert comparison.gram == "dense"
    assert batches.passes == 2
    assert_same(comparison, compare(X, filters=["f-kmse", "tsvd"]), rtol=1e-10)


@pytest.mark.parametrize("filters", [None, ["s-kmse"], ["landweber"], ["tsvd"]])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_passes_are_as_many_as_are_told(filters, standardize):
    batches = Counting(in_batches(sample(600), 100))
    compare(batches, filters=filters, standardize=standardize, gram=Nystrom(20))
    assert batches.passes == len(passes(filters, standardize))


def test_single_precision_is_compared_in_double():
    X = sample(MAX_ROWS_DENSE + 1).astype(np.float32)
    comparison = compare([X], filters=["s-kmse"], gram=Nystrom(20))
    assert_same(
        comparison, compare(X.astype(np.float64), filters=["s-kmse"], gram=Nystrom(20)), rtol=1e-6
    )
    assert comparison.eigenvalues.dtype == np.float64


def test_a_list_of_data_frames_is_batches_and_a_list_of_lists_is_a_sample():
    X = sample(40)
    frames = [pd.DataFrame(part, columns=NAMES) for part in in_batches(X, 10)]
    assert compare(frames, filters="f-kmse").n == compare(X.tolist(), filters="f-kmse").n == 40


# What a comparison says of itself


def test_more_rows_than_a_matrix_takes_are_held_by_features_and_it_says_why():
    comparison = compare(sample(MAX_ROWS_DENSE + 1), filters=["s-kmse"])
    assert comparison.gram == "nystrom"
    assert comparison.gram_reason.startswith(
        f"{MAX_ROWS_DENSE + 1} rows are too many for an eigendecomposition; on 500"
    )
    assert f"(nystrom; {comparison.gram_reason})" in comparison.notes[0]
    assert (
        f"from the exact one by {comparison.approximation_error:.2g} in the norm of the RKHS"
        in comparison.notes[0]
    )
    told = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert (told["gram"], told["gram_reason"]) == ("nystrom", comparison.gram_reason)
    assert told["approximation_error"] == comparison.approximation_error > 0


def test_a_dense_comparison_has_no_error_and_needs_no_note():
    comparison = compare(sample(30), filters=["s-kmse"])
    assert comparison.notes == ()
    assert (comparison.gram, comparison.approximation_error) == ("dense", 0)


def test_features_that_miss_most_of_the_kernel_are_told():
    X = np.random.default_rng(0).normal(size=(1000, 30))
    comparison = compare(X, filters=["s-kmse"], gram=Nystrom(10), kernel=Laplacian(1.0))
    assert comparison.kept == pytest.approx(comparison.eigenvalues.sum())  # k(x, x) is 1
    assert comparison.kept < 0.1
    assert "scores and risk describe only this part" in comparison.notes[1]
    assert len(compare(X[:, :1], filters=["s-kmse"], gram=Nystrom(50)).notes) == 1


def test_a_score_that_would_take_hours_is_left_out_and_said():
    comparison = compare(
        sample(40_000, d=2), filters=["nu-method", "f-kmse"], selection="rate", gram=Nystrom(10)
    )
    assert comparison["nu-method"].score is None
    assert comparison["f-kmse"].score is not None
    assert any(note.startswith("nu-method has no leave-one-out score") for note in comparison.notes)


@pytest.mark.parametrize(
    ("batches", "options", "sentence"),
    [
        (
            [np.ones((3, 2))],
            {"gram": "blocks"},
            r"compare: leave-one-out needs .*, got 'blocks'",
        ),
        (
            [np.ones((3, 2))],
            {"gram": "dense"},
            r"compare: rows in batches need .*, got 'dense'",
        ),
        (
            np.ones((3, 2)),
            {"gram": "blocks"},
            r"compare: leave-one-out needs .*, got 'blocks'",
        ),
        (np.ones((3, 2)), {"gram": "nystroem"}, r"did you mean 'nystrom'\?"),
        (
            iter([np.ones((3, 2))]),
            {},
            r"compare: batches that can be iterated more than once are needed, got a list_iterator",
        ),
        (Counting([]), {}, "at least one batch is needed"),
        (
            [np.ones((1, 2))],
            {},
            r"compare: selection by LeaveOneOut needs at least 2 rows, got n_samples = 1",
        ),
        ([np.ones((3, 2)), np.ones((3, 3))], {}, r"batch 1: 2 columns are needed"),
        (sample(50), {"gram": Nystrom(51)}, r"n_components must be at most the number of rows, 50"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(batches, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare(batches, **options)


def test_a_nan_in_batch_700_is_told_by_batch_and_row():
    parts = [np.random.default_rng(0).normal(size=(3, 2)) for _ in range(702)]
    parts[700] = np.array([[0, 1], [np.nan, 1], [2, 3]])
    with pytest.raises(
        ValueError, match=r"batch 700: .* NaN in its row 1 \(row 2101 of all, counted from 0\)"
    ):
        compare(parts)


@pytest.mark.parametrize(("gram", "what"), [(Nystrom(10), "features"), ("blocks", "products")])
def test_an_estimator_that_does_not_hold_its_matrix_is_no_comparison(gram, what):
    mu = KernelMean(filter="f-kmse", gram=gram).fit(sample(50))
    with pytest.raises(ValueError, match=f"one fitted by {what}; use muhat.compare"):
        Comparison.from_estimator(mu)
