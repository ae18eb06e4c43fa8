"""Bad input gets one clear sentence: who, what was needed, what was got, what to do."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from catalogue import SAMPLES
from muhat import ConditionalMean, Embedding, KernelMean, MatchedMixture, StackedMean, TwoSampleTest
from muhat._random_states import as_rng, checked_seed
from muhat._validation import as_frame, check_range
from muhat.data import DataSet
from muhat.filters import IteratedTikhonov, Landweber, NuMethod
from muhat.gram import Nystrom, RandomFeatures
from muhat.kernels import (
    Function,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
    Scaled,
)
from muhat.selection import GCV, Fixed, KFold, LeaveOneOut, Rate

X = SAMPLES["random"]
K = Gaussian(1.0)(X)


def with_value(value, *places):
    changed = X.copy()
    for place in places:
        changed[place] = value
    return changed


SAMPLES_REFUSED = {
    "NaN": (
        with_value(np.nan, (3, 0), (7, 1)),
        r"got 2 rows with NaN \(first: X\[3\]\); drop or impute",
    ),
    "infinity": (
        with_value(-np.inf, (5, 2)),
        r"got 1 row with infinite values \(inf\) \(first: X\[5\]\)",
    ),
    "NaN in a frame": (
        pd.DataFrame(with_value(np.nan, (4, 0))),
        r"1 row with NaN \(first: X\[4\]\)",
    ),
    "empty": (np.empty((0, 3)), r"at least one row is needed, got 0 sample\(s\)"),
    "no features": (np.empty((5, 0)), r"0 feature\(s\)"),
    "one row": (X[:1], "LeaveOneOut needs at least 2 rows, got n_samples = 1"),
    "one dimension": (
        X[:, 0],
        r"two dimensions, points in rows, got shape \(12,\); Reshape your data",
    ),
    "three dimensions": (X[None], "dim 3"),
    "strings": (
        np.array([["a", "b"], ["c", "d"]]),
        "X must be numeric, got text, dates or lists in column 0",
    ),
    "a text column": (
        np.array([[1, "b"], [2, "d"]], dtype=object),
        "got text, dates or lists in column 1",
    ),
    "lists within": (
        np.array([[1, [2]], [1, 2]], dtype=object),
        "got text, dates or lists in column 1",
    ),
    "unequal lists": (
        [[1], [1, 2]],
        "X must be an array, a data frame or lists of equal lengths, .* got unequal ones",
    ),
    "a generator": (
        (row for row in X),
        r"got a generator; pass the rows as a list, such as list\(X\), or batches to fit_batches",
    ),
    "a data set": (
        DataSet("x", X, ("a", "b", "c")),
        r"got a DataSet; pass its data, as in read_table\(path\).data",
    ),
    "a Series": (
        pd.Series(X[:, 0]),
        r"got shape \(12,\); Reshape your data with X.to_frame\(\) for one feature",
    ),
    "a set": (
        {1, 2},
        "got a set; pass a list of rows, because a set has no order and no repeated rows",
    ),
    "a range": (range(9), r"got a range; pass an array of two dimensions, such as numpy.arange"),
    "a dict": (
        {"a": [1]},
        r"got a dict; convert it to a data frame, such as with pandas.DataFrame\(X\)",
    ),
    "two columns of one name": (
        pd.DataFrame(X, columns=["a", "b", "a"]),
        "must have different names, got 'a' twice",
    ),
    "sparse columns": (
        pd.DataFrame.sparse.from_spmatrix(csr_array(X)),
        r"use X.sparse.to_dense\(\)",
    ),
    "a category": (
        pd.DataFrame({"c": pd.Categorical(["u", "v"])}),
        "in 'c'; encode text with pandas.get_dummies",
    ),
    "a category of polars": (
        pl.DataFrame({"c": pl.Series(["u", "v"], dtype=pl.Categorical)}),
        "in 'c'; encode text",
    ),
    "dates": (
        pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
        "text or dates in 'd'",
    ),
    "text of pyarrow": (pyarrow.table({"a": [1, 2], "c": ["u", "v"]}), "text or dates in 'c'"),
    "integers that floats make equal": (
        2**53 + 2 * np.arange(4).reshape(-1, 1) // 2,
        r"exact up to 2\*\*53, got 4 different rows of larger whole numbers, "
        r"which become 3 different rows; subtract",
    ),
    "nothing": (None, "points in rows, got a NoneType.$"),
    "complex": (X + 1j, "Complex data not supported"),
    "sparse": (csr_array(X), r"X must be dense, got a sparse matrix; use X.toarray\(\)"),
    "a named text column": (
        pd.DataFrame({"age": [1, 2], "name": ["a", "b"]}),
        "got text or dates in 'name'",
    ),
    "a named text column of polars": (
        pl.DataFrame({"age": [1, 2], "name": ["a", "b"]}),
        "got text or dates in 'name'",
    ),
}


@pytest.mark.parametrize("case", SAMPLES_REFUSED)
def test_a_bad_sample_is_refused(case):
    sample, sentence = SAMPLES_REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence) as refused:
        KernelMean().fit(sample)
    assert "\n" not in str(refused.value)


PARAMETERS_REFUSED = {
    "bandwidth zero": (
        {"kernel": Gaussian(0.0)},
        "Gaussian: bandwidth must be positive and finite, or 'median', got 0.0",
    ),
    "bandwidth negative": ({"kernel": Laplacian(-1)}, "Laplacian: bandwidth must be positive"),
    "bandwidth a word": ({"kernel": Gaussian("mean")}, "or 'median', got 'mean'"),
    "bandwidth NaN": ({"kernel": Gaussian(float("nan"))}, "bandwidth must be positive"),
    "nu zero": (
        {"kernel": Matern(1.0, nu=0)},
        "Matern: nu must be positive and finite, or infinity, got 0",
    ),
    "alpha negative": ({"kernel": RationalQuadratic(1.0, alpha=-2)}, "alpha must be positive"),
    "degree a fraction": (
        {"kernel": Polynomial(1.5)},
        "degree must be a whole number of at least 1, got 1.5",
    ),
    "coef0 negative": (
        {"kernel": Polynomial(2, coef0=-1.0)},
        "coef0 must be a number, not negative, got -1.0",
    ),
    "factor zero": ({"kernel": Scaled(Gaussian(), 0)}, "factor must be positive"),
    "kernel misspelt": ({"kernel": "gausian"}, "did you mean 'gaussian'?"),
    "kernel a number": (
        {"kernel": 3},
        "a name, a kernel object or a function is needed, got int 3",
    ),
    "kernel a matrix": (
        {"kernel": K},
        r"got ndarray .* …; pass the matrix as X, with kernel='precomputed'",
    ),
    "bandwidths of all pairs": ({"kernel": Gaussian(K)}, r"bandwidth must be positive .* …\.$"),
    "kernel of rows": (
        {"kernel": lambda x, y: 1.0},
        r"got shape \(\) and type float64; if it is a function of two rows, wrap it as Function",
    ),
    "kernel of positive numbers": (
        {"kernel": "chi2"},
        "got ValueError: X contains negative values; change X, or use another kernel.$",
    ),
    "kernel not symmetric": ({"kernel": lambda X, Y: X[:, :1] + 2 * Y[:, 0]}, "is needed, got K"),
    "kernel not finite": (
        {"kernel": Function(lambda X, Y: np.full((len(X), len(Y)), np.nan))},
        "must be finite",
    ),
    "kernel indefinite": (
        {"kernel": lambda X, Y: -(X @ Y.T)},
        "must be positive semi-definite, got an eigenvalue of",
    ),
    "filter misspelt": ({"filter": "landwebber"}, "did you mean 'landweber'?"),
    "filter a class": (
        {"filter": Landweber},
        "filter: an object is needed, got the class Landweber; create an object by calling the",
    ),
    "selection misspelt": ({"selection": "lo"}, "did you mean 'loo'?"),
    "selection a number": (
        {"selection": 0.1},
        r"got float 0.1; use Fixed\(0.1\) to fix the parameter",
    ),
    "gram misspelt": ({"gram": "dens"}, "did you mean 'dense'?"),
    "grid with zero": (
        {"filter": "f-kmse", "selection": LeaveOneOut(grid=[0.0, 1.0])},
        "λ must be positive and finite",
    ),
    "grid negative": ({"filter": "s-kmse", "selection": GCV(grid=[-1.0])}, "λ must be positive"),
    "grid empty": (
        {"filter": "f-kmse", "selection": LeaveOneOut(grid=[])},
        "λ must be positive and finite",
    ),
    "grid NaN": (
        {"filter": "f-kmse", "selection": KFold(grid=[np.nan])},
        "λ must be positive and finite",
    ),
    "iterations zero": (
        {"filter": "landweber", "selection": Fixed(0)},
        "whole number from 1 to 1e.15, or a list of them, got 0",
    ),
    "iterations a fraction": (
        {"filter": "nu-method", "selection": Fixed(2.5)},
        "whole number from 1 to 100000",
    ),
    "fixed list": (
        {"filter": "f-kmse", "selection": Fixed([0.1, 0.2])},
        "Fixed: one value is needed",
    ),
    "fixed for kme": (
        {"filter": "kme", "selection": Fixed(0.1)},
        "KME takes no parameter, got 0.1",
    ),
    "grid for kme": (
        {"filter": "kme", "selection": LeaveOneOut(grid=[0.1])},
        "KME takes no parameter",
    ),
    "rate for componentwise": (
        {"filter": "componentwise", "selection": "rate"},
        "Rate: a filter with a parameter λ",
    ),
    "rate of zero": ({"filter": "f-kmse", "selection": Rate(c=0)}, "Rate: c must be positive"),
    "auto and a rate": (
        {"selection": "rate"},
        "several filters are compared by a score .* use only one filter",
    ),
    "auto and fixed": ({"selection": Fixed(0.1)}, "use only one filter"),
    "auto with a grid": ({"selection": LeaveOneOut(grid=[0.1])}, "use only one filter"),
    "one fold": (
        {"filter": "f-kmse", "selection": KFold(1)},
        "n_splits must be a whole number of at least 2, got 1",
    ),
    "more folds than rows": (
        {"filter": "f-kmse", "selection": KFold(13)},
        "KFold needs at least 13 rows, got n_samples = 12",
    ),
    "order zero": (
        {"filter": IteratedTikhonov(0)},
        "order must be a whole number of at least 1, got 0",
    ),
    "a step too long": ({"filter": Landweber(eta=2.0)}, "eta must be at most 1/κ² = 1, got 2.0"),
    "a step of zero": ({"filter": Landweber(eta=0)}, "eta must be positive"),
    "nu-method on too little": (
        {"filter": NuMethod(kappa2=0.5)},
        "kappa2 must be at least the kernel's bound 1, got 0.5",
    ),
    "nu of zero": ({"filter": NuMethod(nu=0)}, "nu must be positive"),
    "target of other length": (
        {"target": np.ones(3)},
        r"12 finite weights on the sample are needed, got ndarray of shape",
    ),
    "target of unequal lists": (
        {"target": [[1], [1, 2]]},
        r"an Embedding or finite weights, .* list of shape \(2,\)",
    ),
    "target not finite": (
        {"target": np.full(12, np.nan)},
        "an Embedding or finite weights, one for each row",
    ),
    "target of another kernel": (
        {"kernel": Gaussian(1.0), "target": Embedding(Gaussian(2.0), X, np.ones(12))},
        "the target must have the kernel Gaussian.*pass kernel=target.kernel",
    ),
}


@pytest.mark.parametrize("case", PARAMETERS_REFUSED)
def test_a_bad_parameter_is_refused(case):
    parameters, sentence = PARAMETERS_REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=sentence) as refused:
        KernelMean(**parameters).fit(X)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


GRAMS_REFUSED = {
    "not square": (K[:, :5], r"must be a square matrix, got shape \(12, 5\)"),
    "not symmetric": (K + np.triu(np.ones_like(K), 1), r"must be symmetric, got K\[0, \d+\] = "),
    "not positive semi-definite": (
        K - 2 * np.eye(12),
        "must be positive semi-definite, got an eigenvalue of -",
    ),
}


@pytest.mark.parametrize("filter", ["auto", "kme", "landweber"])
@pytest.mark.parametrize("case", GRAMS_REFUSED)
def test_a_bad_gram_matrix_is_refused(case, filter):
    matrix, sentence = GRAMS_REFUSED[case]
    selection = Fixed(3) if filter == "landweber" else "loo"
    with pytest.raises(ValueError, match=sentence):
        KernelMean(kernel="precomputed", filter=filter, selection=selection).fit(matrix)


WEIGHTS_REFUSED = {
    "negative": (-np.ones(12), "finite and not negative, got -1.0 in sample_weight\\[0\\]"),
    "all zero": (np.zeros(12), "must not sum to zero, got only zeros"),
    "too few": (np.ones(5), r"one weight for each of 12 rows, got \(5,\)"),
    "NaN": (np.full(12, np.nan), "finite and not negative, got nan in sample_weight\\[0\\]"),
    "masked": (
        np.ma.masked_equal(np.arange(1.0, 13), 3),
        "sample_weight must not have masked values, got masked",
    ),
    "all but one zero": (np.eye(12)[0], "needs at least 2 rows, got n_samples = 1"),
}


@pytest.mark.parametrize("case", WEIGHTS_REFUSED)
def test_bad_weights_are_refused(case):
    weights, sentence = WEIGHTS_REFUSED[case]
    with pytest.raises(ValueError, match=sentence):
        KernelMean().fit(X, sample_weight=weights)


def test_use_before_fit_is_refused():
    for use in ("score_samples", "score"):
        with pytest.raises(NotFittedError, match="This KernelMean instance is not fitted yet"):
            getattr(KernelMean(), use)(X)


def test_another_number_of_features_later_is_refused():
    with pytest.raises(
        ValueError, match="X has 2 features, but KernelMean is expecting 3 features"
    ):
        KernelMean().fit(X).score_samples(X[:, :2])


def test_unequal_lists_are_refused_wherever_numbers_are_needed():
    unequal = [[1], [1, 2]]
    for call in (
        lambda: KernelMean().fit(X, sample_weight=unequal),
        lambda: KernelMean().fit_batches([unequal]),
        lambda: Embedding(Gaussian(1.0), X, unequal),
        lambda: Gaussian(1.0).product(X, unequal),
    ):
        with pytest.raises(ValueError, match=r"numbers.*, got .* type object.$"):
            call()


@pytest.mark.parametrize("filter", [["f-kmse", "s-kmse"], ["kme", "f-kmse"]], ids=str)
def test_advice_for_rows_that_come_once_can_be_followed(filter):
    with pytest.raises(ValueError, match=r"scored by the same rule; .*; use selection='kfold'"):
        KernelMean(filter=filter, selection="gcv").partial_fit(X)
    assert KernelMean(filter=filter, selection="kfold").partial_fit(X).n_samples_seen_ == len(X)


def test_other_names_of_features_later_are_refused():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="feature names"):
        KernelMean().fit(frame).score_samples(frame.rename(columns={"a": "z"}))


def test_a_median_bandwidth_without_a_sample_is_refused():
    with pytest.raises(ValueError, match=r"call resolve\(X\) to learn the bandwidth from X"):
        Gaussian()(X)
    with pytest.raises(ValueError, match="needs at least one row, got none"):
        Gaussian().resolve(X[:0])


def test_values_beyond_the_range_of_a_float_are_refused():
    with pytest.raises(ValueError, match="must be finite, got NaN or infinite ones; rescale X"):
        KernelMean(kernel=Polynomial(3)).fit(X * 1e150)


DAYS = np.datetime64("2020-01-01") + np.arange(12)
TARGETS_REFUSED = {
    "masked": (
        np.ma.masked_equal(np.arange(12.0), 3),
        "y must not have masked values, got masked ones",
    ),
    "dates": (DAYS, "y must be real numbers, got dates or times; convert times to numbers"),
    "spans of time": (DAYS - DAYS[0], "got dates or times"),
    "a Series of dates": (pd.Series(DAYS), "got dates or times"),
    "a frame with dates": (pd.DataFrame({"a": range(12), "day": DAYS}), "got dates or times"),
    "dates of polars": (pl.DataFrame({"day": DAYS}), "got dates or times"),
    "a Series of polars": (pl.Series(DAYS), "got dates or times"),
    "dates of pyarrow": (pyarrow.table({"day": DAYS}), "got dates or times"),
    "dates of Python": (list(DAYS.tolist()), "got dates or times"),
    "text": (["a"] * 12, "y must be real numbers, got text or objects"),
}


@pytest.mark.parametrize("case", TARGETS_REFUSED)
def test_a_bad_target_is_refused(case):
    y, sentence = TARGETS_REFUSED[case]
    with pytest.raises(ValueError, match=sentence) as refused:
        ConditionalMean().fit(X, y)
    assert "\n" not in str(refused.value)


def test_a_masked_array_without_a_mask_and_a_target_of_pyarrow_are_taken():
    y = X[:, 0] + X[:, 1] ** 2
    expected = ConditionalMean().fit(X, y).predict(X)
    for same in (np.ma.masked_array(y), pyarrow.array(y), pl.Series(y), y.tolist()):
        np.testing.assert_array_equal(ConditionalMean().fit(X, same).predict(X), expected)


def test_a_pyarrow_table_is_a_sample_without_pandas(monkeypatch):
    table = pyarrow.table(
        {"a": X[:, 0], "b": pyarrow.array([True, False] * 6), "c": pyarrow.array(range(12))}
    )
    monkeypatch.setitem(sys.modules, "pandas", None)
    mean = KernelMean(filter="f-kmse").fit(table)
    assert mean.feature_names_in_.tolist() == ["a", "b", "c"]
    rows = np.column_stack([X[:, 0], [True, False] * 6, range(12)])
    expected = KernelMean(filter="f-kmse").fit(rows).score_samples(rows)
    np.testing.assert_array_equal(mean.score_samples(table), expected)
    with pytest.raises(ValueError, match="feature names"):
        mean.score_samples(table.rename_columns(["a", "b", "z"]))


def test_columns_of_pyarrow_keep_their_kinds():
    table = pyarrow.table(
        {
            "number": pyarrow.array([1, None]),
            "flag": pyarrow.array([None, True]),
            "single": pyarrow.array([1.5, 2.5], pyarrow.float32()),
            "decimal": pyarrow.array([1.25, 2.5]).cast(pyarrow.decimal128(5, 2)),
        }
    )
    np.testing.assert_array_equal(
        np.asarray(as_frame(table)), [[1, np.nan, 1.5, 1.25], [np.nan, 1, 2.5, 2.5]]
    )
    words = as_frame(table.append_column("kind", pyarrow.array(["u", "v"]).dictionary_encode()))
    assert words["kind"].tolist() == ["u", "v"]
    assert words.iloc[:, [4, 2]].columns == ["kind", "single"]
    assert np.asarray(as_frame(table.select(["single"]))).dtype == np.float32


def test_a_random_state_is_a_number_a_generator_or_refused():
    assert (
        checked_seed("T", 3)
        == checked_seed("T", np.int64(3))
        == checked_seed("T", np.random.RandomState(3))
    )
    assert checked_seed("T", np.random.default_rng(3)) == checked_seed(
        "T", np.random.default_rng(3)
    )
    assert as_rng("T", 3).random() == as_rng("T", 3).random()
    assert as_rng("T", None).random() != as_rng("T", None).random()
    for wrong in ("seed", 1.5, True, -1, 2**32, [1]):
        with pytest.raises(
            (TypeError, ValueError), match="T: random_state must be None, a whole number"
        ):
            checked_seed("T", wrong)


DRAWN = {
    "StackedMean": lambda state: StackedMean(random_state=state).fit(X).score_samples(X),
    "MatchedMixture": lambda state: (
        MatchedMixture(2, n_init=1, random_state=state).fit(X).sample(5)[0]
    ),
    "sample": lambda state: ConditionalMean().fit(X, X[:, 0]).sample(X, 3, random_state=state),
    "Nystrom": lambda state: Nystrom(4, random_state=state).resolve(Gaussian(1.0), X).landmarks,
    "Nystrom by k-means": lambda state: (
        Nystrom(4, "k-means++", state).resolve(Gaussian(1.0), X).landmarks
    ),
    "RandomFeatures": lambda state: RandomFeatures(8, random_state=state).resolve(Gaussian(1.0), X)(
        X
    ),
    "TwoSampleTest": lambda state: (
        TwoSampleTest(n_permutations=19, random_state=state).test(X, X + 0.5).permuted
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_everything_that_draws_takes_the_same_random_states(name):
    draw = DRAWN[name]
    for make in (lambda seed: seed, np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(draw(make(3)), draw(make(3)))
        assert not np.array_equal(draw(make(3)), draw(make(4)))
    stream = np.random.default_rng(3)
    assert not np.array_equal(draw(stream), draw(stream))
    for wrong in ("seed", 1.5, True, -1, 2**32):
        with pytest.raises(
            ValueError, match=f"^{name.split()[0]}: random_state must be None, a whole number"
        ):
            draw(wrong)


def test_rows_further_apart_than_the_largest_float_are_refused():
    for rows in ([[-1.5e308], [1.5e308]], [[0.0, 0.0], [1.5e308, 1.5e308]]):
        with pytest.raises(
            ValueError, match="got rows further apart than the largest float; rescale X"
        ):
            check_range("T", np.array(rows))
    for scale in (0.0, 1e-320, 1.0, 1e200, 1e307):
        check_range("T", scale * np.array([[0.0, 1.0], [1.0, 0.0]]))
