"""Each rule × filter × Gram × source works, or raises one sentence before the first row."""

import itertools

import numpy as np
import pytest

from muhat import (
    Embedding,
    Fixed,
    Gaussian,
    KernelMean,
    LeaveOneOut,
    Nystrom,
    RandomFeatures,
    Tikhonov,
    compare,
)
from muhat.filters import FILTERS
from muhat.selection import RULES

X = np.random.default_rng(0).normal(size=(24, 3))
GRAMS = {
    "auto": "auto",
    "dense": "dense",
    "blocks": "blocks",
    "nystrom": Nystrom(8),
    "random": RandomFeatures(20),
}
RULE_PARTS = {**{name: name for name in RULES}, "fixed": Fixed(2)}
SOURCES = ("array", "batches", "iterator", "dask")


class Batches:
    """Batches that count how often one is asked for, and how many iterators are still open."""

    def __init__(self, parts):
        self.parts = parts
        self.read = self.open = 0

    def __iter__(self):
        self.open += 1
        try:
            for part in self.parts:
                self.read += 1
                yield part
        finally:
            self.open -= 1


def fit(source, **options):
    """Fit to the rows as they come from a source."""
    mu = KernelMean(kernel=Gaussian(2.0), **options)
    if source == "array":
        return mu.fit(X)
    if source == "dask":
        da = pytest.importorskip("dask.array")
        return mu.fit(da.from_array(X, chunks=(8, 3)))
    batches = Batches(np.split(X, 3))
    try:
        return mu.fit_batches(iter(batches) if source == "iterator" else batches)
    except ValueError as problem:
        problem.batches_read = batches.read
        raise


def refusal(source, **options):
    """Return the sentence that a fit raises, or None; no batch may have been read."""
    try:
        mu = fit(source, **options)
    except ValueError as problem:
        return (
            f"{problem} (after {problem.batches_read} batches)"
            if getattr(problem, "batches_read", 0)
            else str(problem)
        )
    return None if np.isfinite(mu.score_samples(X[:3])).all() else "not finite"


@pytest.mark.filterwarnings("ignore:.*is at the end of its grid")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("gram", GRAMS)
def test_every_combination_works_or_is_refused_before_the_first_row(gram, source):
    sentences = [
        refusal(source, gram=GRAMS[gram], selection=RULE_PARTS[rule], filter=filter)
        for rule, filter in itertools.product(RULE_PARTS, ["auto", *FILTERS])
    ]
    refused = [sentence for sentence in sentences if sentence is not None]
    assert not [
        sentence for sentence in refused if not sentence.endswith((".", "?")) or "\n" in sentence
    ]
    assert (len(refused) == len(sentences)) == (gram in ("dense", "blocks") and source != "array")


@pytest.mark.parametrize(
    "options",
    [
        {"filter": "landwebber"},
        {"filter": ["kme", "tsvdd"]},
        {"selection": "lo"},
        {"selection": LeaveOneOut(grid=[-1.0]), "filter": "f-kmse"},
        {"gram": "nystroem"},
        {"gram": Nystrom(0)},
        {"gram": Nystrom(5, landmarks="random")},
        {"gram": RandomFeatures(7)},
        {"target": "zero"},
        {"target": np.zeros(24)},
        {"target": Embedding(Gaussian(1.0), X, np.ones(24)), "kernel": "laplacian"},
        {"kernel": "gausian"},
        {"kernel": Gaussian(-1.0)},
    ],
    ids=repr,
)
@pytest.mark.parametrize("source", ["batches", "iterator", "dask"])
def test_a_wrong_argument_is_refused_before_the_first_row(options, source):
    batches, mu = Batches(np.split(X, 3)), KernelMean(**options)
    da = pytest.importorskip("dask.array")
    ways = {
        "batches": lambda: mu.fit_batches(batches),
        "iterator": lambda: mu.fit_batches(iter(batches)),
        "dask": lambda: mu.fit(da.from_delayed(_never(), shape=X.shape, dtype=float)),
    }
    with pytest.raises((TypeError, ValueError)):
        ways[source]()
    assert batches.read == 0


def _never():
    from dask import delayed

    @delayed
    def rows():
        raise AssertionError("a row was read")

    return rows()


def test_a_file_is_not_left_open():
    batches = Batches(np.split(X, 3))
    KernelMean(gram=Nystrom(8)).fit_batches(batches)
    assert batches.open == 0


def test_changing_the_array_afterwards_does_not_change_the_model():
    rows = X.copy()
    mu = KernelMean(filter="f-kmse").fit(rows)
    before = mu.score_samples(X)
    rows[:] = 0
    np.testing.assert_array_equal(mu.score_samples(X), before)


def test_weights_have_the_share_of_a_target_that_is_weights_on_the_sample():
    target = np.random.default_rng(1).normal(size=24) / 24
    mu = KernelMean(filter="s-kmse", target=target).fit(X)
    s = mu.choice_.shrinkage_at_zero
    np.testing.assert_allclose(mu.weights_, s / 24 + (1 - s) * target, rtol=1e-12)
    np.testing.assert_array_equal(mu.embedding_.weights, mu.weights_)


def test_a_precomputed_kernel_takes_a_target_on_some_of_its_rows():
    K = Gaussian(2.0)(X)
    whole = KernelMean(kernel="precomputed", filter="kme").fit(K)
    target = Embedding(whole.kernel_, np.array([[3], [5]]), np.array([0.5, 0.5]))
    mu = KernelMean(kernel="precomputed", filter="f-kmse", target=target).fit(K)
    of_points = KernelMean(
        kernel=Gaussian(2.0),
        filter="f-kmse",
        target=Embedding(Gaussian(2.0), X[[3, 5]], [0.5, 0.5]),
    )
    np.testing.assert_allclose(mu.score_samples(K), of_points.fit(X).score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("gram", ["dense", "blocks", Nystrom(1)], ids=str)
def test_the_empirical_mean_of_one_row_needs_no_score_and_no_bandwidth(gram):
    mu = KernelMean(kernel=Gaussian(1.0), filter="kme", gram=gram).fit(X[:1])
    np.testing.assert_allclose(mu.weights_, [1.0], rtol=1e-12)
    assert np.isnan(mu.choice_.score)
    with pytest.warns(
        UserWarning, match="there is only one row; using 1. Give the bandwidth as a number"
    ):
        median = KernelMean(filter="kme", gram=gram).fit(X[:1])
    np.testing.assert_array_equal(median.score_samples(X), mu.score_samples(X))


@pytest.mark.parametrize("selection", ["loo", Fixed(0.1)], ids=str)
def test_a_bandwidth_is_learnt_when_there_is_a_second_row(selection):
    mu = KernelMean(filter="f-kmse", selection=selection)
    with pytest.warns(UserWarning, match="there is only one row; using 1"):
        assert mu.partial_fit(X[:1]).kernel_ == Gaussian(1.0)
    mu.partial_fit(X[1:9])
    assert mu.kernel_ == Gaussian().resolve(X[:9])
    together = KernelMean(filter="f-kmse", selection=selection).partial_fit(X[:9])
    np.testing.assert_allclose(mu.weights_, together.weights_, rtol=1e-9)


def test_a_first_batch_may_have_one_row():
    mu = KernelMean(kernel=Gaussian(2.0), gram=Nystrom(landmarks=X[:5]))
    for row in X[:4]:
        mu.partial_fit(row[None])
        assert mu.choice_.strength == 0
    for row in X[4:]:
        mu.partial_fit(row[None])
    assert mu.n_samples_seen_ == 24
    at_once = KernelMean(
        kernel=Gaussian(2.0), gram=Nystrom(landmarks=X[:5]), selection="kfold"
    ).partial_fit(X)
    np.testing.assert_allclose(mu.features_.landmarks, at_once.features_.landmarks)


@pytest.mark.parametrize("gram", ["dense", "blocks", Nystrom(8)], ids=str)
@pytest.mark.parametrize("factor", [1e-170, 1e-155, 1e150])
def test_kernel_values_whose_squares_are_no_numbers_are_refused(gram, factor):
    with pytest.raises(ValueError, match=r"k\(x, x\) must be between .* rescale X"):
        KernelMean(kernel="linear", gram=gram).fit(factor * X)


def test_partial_fit_says_why_it_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        KernelMean(gram="dense").partial_fit(X)
    why = "need gram='nystrom' or 'random-features', got 'dense'"
    assert why in str(caught.value.__cause__)


@pytest.mark.parametrize("selection", ["gcv", "loo"])
def test_auto_never_takes_a_way_that_rule_or_filter_cannot_go(selection, monkeypatch):
    monkeypatch.setattr("muhat.gram._plan.MAX_ROWS_DENSE", 20)
    assert KernelMean(filter=Tikhonov(), selection=selection).fit(X).features_ is not None
    assert KernelMean(filter="componentwise").fit(X).features_ is not None


def test_compare_takes_dask_arrays():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(8, 3))
    ours, truth = (
        compare(each, filters=["f-kmse"], standardize=False)["f-kmse"].score for each in (rows, X)
    )
    assert ours == truth
    ours, truth = (compare(each, filters=["f-kmse"])["f-kmse"].score for each in (rows, X))
    assert ours == pytest.approx(truth, rel=1e-13)  # moments of columns are added up chunk by chunk


def test_weights_of_another_length_are_refused_whatever_they_are():
    mu = KernelMean(gram=Nystrom(5)).partial_fit(X)
    for weights in ([0], [], np.zeros(7)):
        with pytest.raises(ValueError, match="one weight for each of 24 rows"):
            mu.partial_fit(X, sample_weight=weights)
    assert mu.partial_fit(X[:0]).partial_fit(X, sample_weight=np.zeros(24)).n_samples_seen_ == 24


def test_a_stream_may_begin_with_equal_rows():
    mu = KernelMean(kernel=Gaussian(1.0))
    for row in [*np.zeros((8, 1, 2)), np.ones((1, 2))]:
        mu.partial_fit(row)
    assert mu.n_samples_seen_ == 9


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("rows.csv", "got a str; read a file with muhat.read_table"),
        (None, "got a NoneType"),
        ({"a": [1, 2]}, "got a dict"),
        ([[1, 2], [3]], "got unequal ones"),
        (
            [X, X[:3]],
            "got unequal ones; give all rows the same number of values, or "
            "batches of rows to fit_batches",
        ),
    ],
    ids=str,
)
def test_what_is_no_sample_is_refused_with_the_way_to_one(rows, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        KernelMean().fit(rows)


def test_the_filter_that_cannot_be_compared_is_named():
    with pytest.raises(ValueError, match="the same rule; KME can only be scored"):
        KernelMean(filter=["kme", "f-kmse"], selection="gcv").fit(X)


def test_a_comparison_of_batches_warns_of_an_open_end():
    rows = np.random.default_rng(0).normal(size=(2000, 3)) * [30, 1, 0.03] + [
        9,
        0.3,
        0.01,
    ]  # small parts matter too
    with pytest.warns(UserWarning, match="is at the end of its grid"):
        compare(
            np.split(rows, 2),
            kernel="linear",
            filters=["nu-method"],
            gram=Nystrom(3),
            standardize=False,
        )
