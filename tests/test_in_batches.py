"""Samples by features and in batches: against leaving rows out and the dense route."""

import pickle
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from catalogue import EXACT, KERNELS, NAMES, SAMPLES, SEED, VARIANTS
from muhat import KernelMean
from muhat._parts import as_filter
from muhat.data import (
    ArraySource,
    BatchError,
    ReservoirSample,
    SampleBatch,
    StreamSource,
    checked_batch,
    folds_of,
)
from muhat.data import _sources as stream_module
from muhat.gram import FeatureEmbedding, FeatureProblem, FeatureSums, Folds, Nystrom, RandomFeatures
from muhat.gram._plan import plan_in_memory
from muhat.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed
from muhat.selection import GCV, Fixed, KFold, LeaveOneOut
from muhat.selection import _poles as moments

RNG = np.random.default_rng(SEED)
pytestmark = pytest.mark.filterwarnings("ignore:.*is at the end of its grid")


@pytest.fixture(autouse=True)
def grids_as_they_are(monkeypatch):
    """Scores that take a pass do not refine grids: both routes are compared on one grid."""
    monkeypatch.setattr("muhat.selection._base.MAX_REFINEMENTS", 0)


X = RNG.normal(size=(60, 3))
NEW = RNG.normal(size=(25, 3))
KERNEL = Gaussian(1.5)
LANDMARKS = RNG.normal(size=(9, 3))
SAME = 1e-8

MAPS = {
    "nystrom": Nystrom(landmarks=LANDMARKS),
    "random features": RandomFeatures(12),
}


def settled(parameter, name):
    """A parameter of each filter, with what is needed to reach it in the reference."""
    return {"kme": 0.0, "componentwise": 0.0, "landweber": 7, "nu-method": 4}.get(name, parameter)


def problem_of(approximation, rows=X, weights=None, target=None, folds=None, kernel=KERNEL):
    z = approximation.resolve(kernel, rows)
    source = ArraySource(rows, weights)
    return FeatureProblem(
        z,
        source.total(lambda batch: FeatureSums.from_batch(batch, z, folds or Folds())),
        source,
        target,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("aimed", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", MAPS)
def test_the_leave_one_out_score_is_that_of_really_leaving_rows_out(
    way, name, aimed, weighted, monkeypatch
):
    monkeypatch.setattr(stream_module, "CHUNK_ROWS", 7)  # many batches
    rows = X[:20]
    weights = RNG.integers(1, 4, size=20).astype(float) if weighted else np.ones(20)
    target = None
    z = MAPS[way].resolve(KERNEL, rows)
    if aimed:
        target = z.embedding(0.3 * z(NEW).mean(axis=0))
    problem = problem_of(MAPS[way], rows, weights if weighted else None, target)
    filter, grid = as_filter(name), [0.003, 0.05, 1.0]
    if name in ("landweber", "nu-method"):
        grid = [1, 7, 40]
    rule = LeaveOneOut() if filter.parameterless else LeaveOneOut(grid=grid)
    choice = rule.choose(problem, filter.bounded_by(1.0))
    aim = None if target is None else z.coordinates(target)
    for parameter, score in zip(choice.grid, choice.scores, strict=True):
        slow = reference.leave_one_out_score(name, parameter, z(rows), weights, aim)
        assert score == pytest.approx(slow, rel=EXACT)
    estimate = choice.weights(problem) + (
        0 if aim is None else (1 - choice.shrinkage_at_zero) * aim
    )
    slow = reference.estimate(name, choice.grid[choice.index], z(rows), weights, aim)
    np.testing.assert_allclose(estimate, slow, atol=1e-10)


def test_a_heavy_row_is_really_left_out():
    weights = np.array([300.0, *np.ones(19)])
    problem = problem_of(MAPS["nystrom"], X[:20], weights)
    choice = LeaveOneOut(grid=[0.01, 0.1]).choose(problem, as_filter("f-kmse"))
    F = problem.features(X[:20])
    slow = [reference.leave_one_out_score("f-kmse", each, F, weights) for each in choice.grid]
    np.testing.assert_allclose(choice.scores, slow, rtol=EXACT)


def test_resolvents_that_are_put_together_from_few_functions_are_exact(monkeypatch):
    rows = RNG.normal(size=(300, 3))
    found = {}
    for limit in (0, 10**9):
        monkeypatch.setattr(moments, "MIN_ROWS_COMPRESSED", limit)
        found[limit] = KernelMean(gram=Nystrom(250), kernel=Laplacian(1.0)).fit(rows).choices_
        found[limit] += KernelMean(gram="dense", kernel=Laplacian(1.0)).fit(rows).choices_
    for few, all_of_them in zip(*found.values(), strict=True):
        np.testing.assert_allclose(few.scores, all_of_them.scores, rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", MAPS)
def test_the_k_fold_score_leaves_out_the_rows_that_the_hash_deals_out(way, name):
    rule = (
        KFold(4, random_state=3)
        if as_filter(name).parameterless
        else KFold(4, random_state=3, grid=[settled(0.02, name)])
    )
    problem = problem_of(MAPS[way], folds=Folds(4, random_state=3))
    choice = rule.choose(problem, as_filter(name).bounded_by(1.0))
    dealt = folds_of(X, 4, random_state=3)
    folds = [np.flatnonzero(dealt == fold) for fold in range(4)]
    F = problem.features(X)
    slow = reference.leave_out_score(name, choice.grid[0], F, np.ones(len(X)), folds)
    assert choice.score == pytest.approx(slow, rel=EXACT)


@pytest.mark.parametrize(
    "sample", ["random", "duplicated", "two points", "a constant column", "far from the origin"]
)
@pytest.mark.parametrize("name", NAMES)
def test_with_all_points_as_landmarks_nothing_is_lost(name, sample):
    rows = SAMPLES[sample]
    bandwidth = Gaussian().resolve(rows).bandwidth
    for selection in ("loo", *([] if as_filter(name).parameterless else ["rate"])):
        if name == "componentwise" and selection == "rate":
            continue
        common = {"kernel": Gaussian(bandwidth), "filter": name, "selection": selection}
        dense = KernelMean(gram="dense", **common).fit(rows)
        features = KernelMean(gram=Nystrom(len(rows)), **common).fit(rows)
        np.testing.assert_allclose(
            features.score_samples(rows), dense.score_samples(rows), atol=SAME
        )
        np.testing.assert_allclose(features.choice_.scores, dense.choice_.scores, atol=SAME)


@pytest.mark.parametrize(
    "name", [name for name in KERNELS if name not in ("matern 0.8", "matern 3.7")]
)
def test_with_all_points_as_landmarks_every_kernel_gives_its_dense_estimate(name):
    rows = SAMPLES["random"]
    dense = KernelMean(gram="dense", kernel=KERNELS[name], filter="f-kmse").fit(rows)
    features = KernelMean(gram=Nystrom(len(rows)), kernel=KERNELS[name], filter="f-kmse").fit(rows)
    values = dense.score_samples(rows)
    np.testing.assert_allclose(
        features.score_samples(rows), values, atol=SAME * np.abs(values).max()
    )
    np.testing.assert_allclose(features.choice_.scores, dense.choice_.scores, rtol=SAME)


@pytest.mark.parametrize("rule", [GCV(), Fixed(0.03)], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("name", ["f-kmse", "iterated-tikhonov", "tsvd"])
def test_rules_that_need_no_rows_agree_with_the_dense_route(rule, name):
    dense = KernelMean(gram="dense", kernel=KERNEL, filter=name, selection=rule).fit(X)
    features = KernelMean(gram=Nystrom(len(X)), kernel=KERNEL, filter=name, selection=rule).fit(X)
    assert features.choice_.parameter == pytest.approx(dense.choice_.parameter, rel=1e-6)
    np.testing.assert_allclose(features.score_samples(NEW), dense.score_samples(NEW), atol=SAME)
    np.testing.assert_allclose(features.choice_.strength, dense.choice_.strength, atol=1e-6)


def test_weights_and_a_target_agree_with_the_dense_route():
    weights = RNG.integers(0, 4, size=len(X)).astype(float)
    target = KernelMean(kernel=KERNEL, filter="kme").fit(NEW).embedding_
    for aim in (None, target, np.full(len(X), 0.1 / len(X))):
        common = {"kernel": KERNEL, "filter": "f-kmse", "target": aim}
        present = np.ones(len(X)) if isinstance(aim, np.ndarray) else weights
        dense = KernelMean(gram="dense", **common).fit(X, sample_weight=present)
        features = KernelMean(gram=Nystrom(landmarks=X), **common).fit(X, sample_weight=present)
        np.testing.assert_allclose(features.score_samples(NEW), dense.score_samples(NEW), atol=SAME)
        np.testing.assert_allclose(features.choice_.scores, dense.choice_.scores, rtol=SAME)


def test_random_features_carry_their_target_over():
    common = {
        "kernel": KERNEL,
        "filter": "f-kmse",
        "selection": Fixed(0.1),
        "gram": RandomFeatures(40),
    }
    target = KernelMean(kernel=KERNEL, filter="kme").fit(NEW).embedding_
    mu = KernelMean(target=target, **common).fit(X)
    assert isinstance(mu.embedding_, FeatureEmbedding)
    F = mu.features_(X)
    slow = reference.estimate("f-kmse", 0.1, F, np.ones(len(X)), mu.features_(NEW).mean(axis=0))
    np.testing.assert_allclose(mu.embedding_.coordinates, slow, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, len(X) - 1), max_size=8),
    st.sampled_from(["loo", "kfold", "gcv"]),
    st.booleans(),
)
def test_it_does_not_matter_how_rows_are_batched(cuts, selection, single):
    rows = X.astype(np.float32) if single else X
    tolerance = 1e-4 if single else SAME
    batches = np.split(rows, sorted(set(cuts)))
    whole = KernelMean(gram=Nystrom(20), selection=selection, filter="f-kmse").fit(rows)
    batched = KernelMean(gram=Nystrom(20), selection=selection, filter="f-kmse").fit_batches(
        batches
    )
    assert batched.kernel_ == whole.kernel_
    assert batched.features_ == whole.features_
    assert batched.n_samples_seen_ == len(X)
    np.testing.assert_allclose(batched.choice_.scores, whole.choice_.scores, rtol=tolerance)
    np.testing.assert_allclose(batched.score_samples(NEW), whole.score_samples(NEW), atol=tolerance)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(6, len(X) - 1), max_size=6),
    st.randoms(use_true_random=False),
    st.integers(0, len(X)),
)
def test_partial_fits_in_any_order_merge_to_one(cuts, random, cut):
    def blank():
        return KernelMean(gram=MAPS["nystrom"], kernel=KERNEL)

    whole = blank().partial_fit(X)
    order = list(range(len(X)))
    random.shuffle(order)
    rows = X[order]
    stepwise = blank()
    for part in np.split(rows, sorted(set(cuts))):
        stepwise.partial_fit(part)
    parts = [blank().partial_fit(part) for part in (rows[:cut], rows[cut:]) if len(part) >= 5]
    if sum(each.n_samples_seen_ for each in parts) == len(X):
        merged = parts[0] if len(parts) == 1 else parts[0].merge(parts[1])
        assert merged.n_samples_seen_ == len(X)
        np.testing.assert_allclose(merged.score_samples(NEW), whole.score_samples(NEW), atol=SAME)
    np.testing.assert_allclose(stepwise.score_samples(NEW), whole.score_samples(NEW), atol=SAME)
    np.testing.assert_allclose(stepwise.choice_.scores, whole.choice_.scores, rtol=SAME)


def test_a_partial_fit_with_weights_counts_a_row_as_often_as_it_weighs():
    weights = RNG.integers(0, 4, size=len(X)).astype(float)
    common = {
        "gram": MAPS["nystrom"],
        "kernel": KERNEL,
        "filter": "f-kmse",
        "selection": Fixed(0.1),
    }
    weighted = KernelMean(**common).partial_fit(X[:30], sample_weight=weights[:30])
    weighted.partial_fit(X[30:], sample_weight=weights[30:])
    repeated = KernelMean(**common).partial_fit(np.repeat(X, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighted.score_samples(NEW), repeated.score_samples(NEW), atol=SAME)


def test_the_k_fold_score_of_weighted_rows_is_that_of_leaving_them_out():
    weights = RNG.integers(1, 4, size=len(X)).astype(float)
    problem = problem_of(MAPS["nystrom"], weights=weights, folds=Folds(4))
    choice = KFold(4, grid=[0.02, 0.3]).choose(problem, as_filter("f-kmse"))
    dealt = folds_of(X, 4, 0)
    folds = [np.flatnonzero(dealt == fold) for fold in range(4)]
    slow = [
        reference.leave_out_score("f-kmse", each, problem.features(X), weights, folds)
        for each in choice.grid
    ]
    np.testing.assert_allclose(choice.scores, slow, rtol=EXACT)


def test_an_iterator_is_seen_once_and_a_list_three_times():
    common = {"gram": MAPS["nystrom"], "kernel": KERNEL}
    once = KernelMean(**common).fit_batches(iter(np.array_split(X, 5)))
    assert isinstance(once.rule_, KFold)
    np.testing.assert_allclose(
        once.score_samples(NEW), KernelMean(**common).partial_fit(X).score_samples(NEW), atol=SAME
    )
    again = KernelMean(**common).fit_batches(np.array_split(X, 5))
    assert isinstance(again.rule_, LeaveOneOut)
    np.testing.assert_allclose(
        again.score_samples(NEW), KernelMean(**common).fit(X).score_samples(NEW), atol=SAME
    )


def test_a_fit_forgets_partial_fits():
    mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).partial_fit(NEW).fit(X)
    assert mu.n_samples_seen_ == len(X)
    assert mu.partial_fit(NEW).n_samples_seen_ == len(NEW)


def test_a_mapped_file_is_not_held(tmp_path):
    rows = RNG.normal(size=(150_000, 100))
    np.save(tmp_path / "rows.npy", rows)
    common = {"gram": Nystrom(20), "filter": "f-kmse", "kernel": Gaussian(14.0)}
    whole = KernelMean(**common).fit(rows)
    del rows
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    tracemalloc.start()
    mu = KernelMean(**common).fit(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(mu.weights_, whole.weights_, rtol=SAME)
    assert peak < 0.75 * mapped.nbytes


def test_an_estimator_is_pickled_between_partial_fits():
    mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).partial_fit(X[:30])
    back = pickle.loads(pickle.dumps(mu)).partial_fit(X[30:])
    np.testing.assert_allclose(
        back.score_samples(NEW), mu.partial_fit(X[30:]).score_samples(NEW), atol=1e-14
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_filters_go_through(variant):
    name, filter, settings_ = VARIANTS[variant]
    problem = problem_of(MAPS["nystrom"], X[:15])
    parameter = 3 if name == "nu-method" else 0.05
    choice = LeaveOneOut(grid=[parameter]).choose(problem, filter.bounded_by(1.0))
    slow = reference.leave_one_out_score(
        name, parameter, problem.features(X[:15]), np.ones(15), **settings_
    )
    assert choice.score == pytest.approx(slow, rel=EXACT)


@parametrize_with_checks(
    [
        KernelMean(gram="nystrom"),
        KernelMean(gram="random-features"),
        KernelMean(gram=Nystrom(3), selection="kfold"),
    ]
)
@pytest.mark.filterwarnings("ignore:bandwidth='median'")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


class TestDrawing:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.integers(0, 60), max_size=6), st.integers(1, 80), st.integers(0, 5))
    def test_a_draw_does_not_depend_on_batches(self, cuts, size, seed):
        edges = [0, *sorted(cuts), 60]
        parts = [SampleBatch(X[a:b], a) for a, b in pairwise(edges) if a < b]
        draws = [ReservoirSample.from_batch(part, size, seed) for part in parts]
        RNG.shuffle(draws)
        drawn = draws[0]
        for other in draws[1:]:
            drawn = drawn + other
        whole = ReservoirSample.from_batch(SampleBatch(X, 0), size, seed)
        np.testing.assert_array_equal(drawn.rows, whole.rows)
        assert drawn.count == 60
        assert len(drawn.rows) == min(size, 60)
        np.testing.assert_array_equal(drawn.rows, X[drawn.numbers])

    def test_every_row_is_as_likely_as_any_other(self):
        counts = np.zeros(60)
        for seed in range(3000):
            counts[ReservoirSample.from_batch(SampleBatch(X, 0), 15, seed).numbers] += 1
        expected = 3000 * 15 / 60
        chi2 = ((counts - expected) ** 2 / (expected * 0.75)).sum()
        assert 25 < chi2 < 105  # 59 degrees of freedom: beyond 1 in 1000 on either side

    def test_folds_are_of_about_one_size_and_equal_rows_are_dealt_out_in_turn(self):
        rows = RNG.normal(size=(20_000, 2))
        dealt = folds_of(rows, 5, 0)
        counts = np.bincount(dealt, minlength=5)
        assert np.abs(counts - 4000).max() < 4 * np.sqrt(3200)
        np.testing.assert_array_equal(
            folds_of(np.vstack([rows, rows]), 5, 0), np.concatenate([dealt, (dealt + 1) % 5])
        )
        single = rows.astype(np.float32)
        np.testing.assert_array_equal(
            folds_of(single, 5, 0), folds_of(single.astype(np.float64), 5, 0)
        )
        assert (folds_of(rows, 5, 1) != dealt).mean() > 0.7
        np.testing.assert_array_equal(
            folds_of(np.array([[0.0]]), 5, 0), folds_of(np.array([[-0.0]]), 5, 0)
        )


class TestPlan:
    @pytest.mark.parametrize(
        ("n", "memory", "expected"),
        [
            (100, 1e12, "dense"),
            (5000, 1e12, "dense"),
            (5001, 1e12, "nystrom"),
            (1000, 4e6, "nystrom"),
            (200_000, 1e12, "nystrom"),
        ],
    )
    def test_auto_goes_by_rows_and_memory_and_says_why(self, monkeypatch, n, memory, expected):
        monkeypatch.setattr("muhat.gram._plan.available_memory", lambda: memory)
        planned = plan_in_memory("auto", KERNEL, n, 8)
        assert (planned.gram if isinstance(planned.gram, str) else "nystrom") == expected
        assert str(n) in planned.reason

    def test_a_given_matrix_is_dense_however_large(self):
        assert plan_in_memory("auto", Precomputed(), 10**6, 8).gram == "dense"

    def test_a_fitted_estimator_tells_it(self):
        mu = KernelMean().fit(X)
        assert mu.gram_ == "dense"
        assert mu.gram_reason_ == "60 rows are few enough for one eigendecomposition"
        assert mu.approximation_error_ == 0.0
        mu = KernelMean(gram=Nystrom(5)).fit(X)
        assert mu.gram_reason_ == "as requested"
        assert mu.approximation_error_ == pytest.approx(mu.features_.error(X))

    @pytest.mark.parametrize("gram", ["blocs", 3, None, Nystrom])
    def test_what_is_no_way_is_refused(self, gram):
        with pytest.raises((ValueError, TypeError), match=r"^gram: "):
            KernelMean(gram=gram).fit(X)


def test_batches_of_pyarrow_are_taken_with_their_names():
    table = pyarrow.table({name: X[:, place] for place, name in enumerate("abc")})
    mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL, selection=Fixed(0.1), filter="f-kmse")
    expected = mu.fit(X).weights_
    np.testing.assert_array_equal(mu.fit(table).weights_, expected)
    for way in (list, iter):
        mu.fit_batches(way(table.to_batches(20)))
        assert mu.feature_names_in_.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(mu.weights_, expected, rtol=SAME)


@pytest.mark.parametrize("way", ["blocks", "nystrom"])
def test_a_target_has_weights_on_rows_without_mass_too(way):
    gram = Nystrom(landmarks=X) if way == "nystrom" else way
    options = {
        "kernel": KERNEL,
        "filter": "f-kmse",
        "selection": Fixed(0.1),
        "target": RNG.uniform(size=60) / 60,
    }
    weights = np.r_[0, np.ones(59)]
    mu, dense = (
        KernelMean(gram=each, **options).fit(X, sample_weight=weights) for each in (gram, "dense")
    )
    np.testing.assert_allclose(mu.score_samples(NEW), dense.score_samples(NEW), rtol=SAME)


class TestRefusals:
    def refused(self, message, batches, **parameters):
        with pytest.raises(ValueError, match=message) as caught:
            KernelMean(**{"gram": MAPS["nystrom"], "kernel": KERNEL, **parameters}).fit_batches(
                batches
            )
        assert "\n" not in str(caught.value)
        return caught.value

    def test_a_nan_in_batch_700_is_named_with_its_row(self):
        batches = [X[:2] for _ in range(800)]
        batches[700] = np.array([[0.0, 1.0, 2.0], [0.0, np.nan, 2.0]])
        problem = self.refused(
            r"^batch 700: .*NaN in its row 1 \(row 1401 of all, counted from 0\)", batches
        )
        assert isinstance(problem, BatchError)
        assert (problem.batch, problem.row) == (700, 1)

    @pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError("disk gone")], ids=repr)
    @pytest.mark.parametrize("rows", [3, 10])
    def test_what_cuts_a_stream_short_is_told_even_if_there_are_too_few_rows(self, problem, rows):
        def batches():
            yield X[:rows]
            raise problem

        with pytest.raises(type(problem)) as caught:
            KernelMean(gram=Nystrom(20)).fit_batches(batches())
        assert caught.value is problem

    def test_rows_that_do_not_come_again_are_refused(self):
        class Fewer:
            passes = 0

            def __iter__(self):
                self.passes += 1
                return iter([X[: 60 // self.passes]])

        class Once:
            batches = iter([X])

            def __iter__(self):
                return self.batches

        self.refused(
            r"^batches: every pass must read the same rows, got 30 rows and then 20; pass a list",
            Fewer(),
        )
        self.refused(
            r"^batches: at least one batch is needed in every pass, got no batch with rows; "
            r"give a list",
            Once(),
        )

    def test_a_number_too_large_for_the_type_of_the_first_batch(self):
        batches = [X.astype(np.float32), np.full((2, 3), 1e39)]
        place = r"in its row 0 \(row 60 of all, counted from 0\)"
        self.refused(
            rf"^batch 1: .*finite in float32.*too large for it {place}; .*float64", batches
        )

    def test_a_missing_whole_number_of_a_data_frame_is_named_with_its_row(self):
        frame = pd.DataFrame(
            {"a": pd.array([1, 2, None], "Int64"), "b": [1.0, 2.0, 3.0], "c": [True, True, False]}
        )
        self.refused(r"^batch 0: .*NaN in its row 2 \(counted from 0\);", [frame])

    def test_a_masked_value_is_not_taken_for_a_number(self):
        self.refused(
            r"^batch 1: batches must not have masked values, got masked ones",
            [X, np.ma.masked_greater(X, 1.0)],
        )

    def test_what_came_before_a_nan_is_not_lost(self):
        batches = [RNG.normal(size=(4, 3)) for _ in range(800)]
        spoilt = [*batches[:700], np.full((4, 3), np.inf), *batches[701:]]
        mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL)
        with pytest.raises(
            BatchError, match=r"batch 700: .*an infinite value in its row 0"
        ) as caught:
            mu.fit_batches(iter(spoilt))
        assert any("2800 rows before the error are kept" in note for note in caught.value.__notes__)
        assert mu.n_samples_seen_ == 2800
        for batch in batches[701:]:
            mu.partial_fit(batch)
        rest = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL)
        rest.partial_fit(np.concatenate([*batches[:700], *batches[701:]]))
        np.testing.assert_allclose(mu.score_samples(NEW), rest.score_samples(NEW), atol=SAME)

    def test_a_partial_fit_that_fails_changes_nothing(self):
        mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).partial_fit(X)
        values = mu.score_samples(NEW)
        for wrong in (np.full((2, 3), np.nan), X[:, :2], [["a", "b", "c"]]):
            with pytest.raises(ValueError, match="KernelMean"):
                mu.partial_fit(wrong)
        assert mu.n_samples_seen_ == len(X)
        np.testing.assert_array_equal(mu.score_samples(NEW), values)

    def test_batches_with_other_columns(self):
        self.refused(
            r"^batch 1: 3 columns are needed, as the first batch has, got 2", [X, X[:, :2]]
        )
        frames = [pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X, columns=list("acb"))]
        self.refused(r"^batch 1: column 1 must be 'b', as in the first batch, got 'c'", frames)

    def test_empty_batches_only(self):
        self.refused("^batches: at least one batch is needed.*, got none", [X[:0], X[:0]])

    def test_no_batch(self):
        self.refused("^batches: at least one batch is needed, got none", [])
        self.refused("^batches: at least one batch is needed, got none", iter([]))

    def test_text_and_shapes(self):
        self.refused("^batch 1: numbers are needed", [X, np.array([["a", "b", "c"]])])
        self.refused("^batch 1: two dimensions are needed", [X, X[0]])

    def test_more_landmarks_than_rows(self):
        self.refused(
            "^Nystrom: n_components must be at most the number of rows, 60, got 61",
            [X],
            gram=Nystrom(61),
        )
        with pytest.raises(
            ValueError, match=r"^Nystrom: n_components must be at most the number of rows"
        ):
            KernelMean(gram=Nystrom(61)).fit(X)

    def test_duplicate_landmarks_are_fine(self):
        doubled = Nystrom(landmarks=np.vstack([LANDMARKS, LANDMARKS]))
        once, twice = (
            KernelMean(gram=gram, kernel=KERNEL).fit(X) for gram in (MAPS["nystrom"], doubled)
        )
        assert once.features_.size == twice.features_.size == len(LANDMARKS)
        np.testing.assert_allclose(once.score_samples(NEW), twice.score_samples(NEW), atol=SAME)

    @pytest.mark.parametrize("gram", ["dense", "blocks"])
    def test_a_gram_that_holds_all_rows_takes_no_batches(self, gram):
        self.refused("^KernelMean: rows in batches need gram='nystrom'", [X], gram=gram)
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
            KernelMean(gram=gram).partial_fit(X)
        assert "rows in batches need gram='nystrom'" in str(caught.value.__cause__)

    def test_a_precomputed_kernel_takes_no_batches(self):
        self.refused("a kernel (of points|that can be called on points)", [X], kernel="precomputed")
        assert not hasattr(KernelMean(kernel="precomputed"), "partial_fit")

    def test_merging_what_does_not_fit_together(self):
        one = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).partial_fit(X)
        for other in (
            KernelMean(gram=MAPS["nystrom"], kernel=Gaussian(2.0)).partial_fit(X),
            KernelMean(gram=Nystrom(5), kernel=KERNEL).partial_fit(X),
        ):
            with pytest.raises(
                ValueError, match=r"^KernelMean\.merge: both estimators must have the same kernel"
            ):
                one.merge(other)
        single = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).partial_fit(X.astype(np.float32))
        with pytest.raises(
            ValueError,
            match=r"^KernelMean\.merge: .* rows of the same type, got float64 and float32\.$",
        ):
            one.merge(single)
        with pytest.raises(
            ValueError, match=r"^KernelMean\.merge: .* the same folds, got Folds\(n_splits=5.*=3"
        ):
            one.merge(
                KernelMean(gram=MAPS["nystrom"], kernel=KERNEL, selection=KFold(3)).partial_fit(X)
            )
        with pytest.raises(
            ValueError, match=r"^KernelMean\.merge: both estimators must be fitted by partial_fit"
        ):
            one.merge(KernelMean(gram=MAPS["nystrom"], kernel=KERNEL).fit(X))

    def test_weights_whose_squares_leave_the_range(self):
        mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL)
        for weight in (1e-90, 1e160):
            with pytest.raises(
                ValueError, match=r"^KernelMean\.partial_fit: weights must be zero, or between"
            ):
                mu.partial_fit(X, sample_weight=np.full(len(X), weight))
        mu.partial_fit(X).partial_fit(X, sample_weight=np.zeros(len(X)))
        assert mu.n_samples_seen_ == len(X)

    def test_an_array_or_a_path_where_batches_are_meant(self):
        for wrong in (X, "rows.npy", pd.DataFrame(X)):
            self.refused(r"^KernelMean\.fit_batches: batches must be an iterable of arrays", wrong)

    def test_values_that_overflow_on_rows_that_are_no_landmarks(self):
        rows = np.vstack([X, np.full((1, 3), 1e80)])
        with pytest.raises(ValueError, match=r"^Polynomial: values k\(x, y\) must be finite"):
            KernelMean(gram=Nystrom(landmarks=X), kernel=Polynomial(5)).fit(rows)

    @pytest.mark.parametrize("seed", [-1, None])
    def test_a_seed_that_is_none_in_words(self, seed):
        with pytest.raises(ValueError, match=r"^KFold: random_state must be a whole number"):
            KernelMean(gram=Nystrom(5), selection=KFold(random_state=seed)).fit(X)

    def test_an_interrupt_keeps_what_came_before(self):
        def batches():
            yield X
            raise KeyboardInterrupt

        mu = KernelMean(gram=MAPS["nystrom"], kernel=KERNEL)
        with pytest.raises(KeyboardInterrupt):
            mu.fit_batches(batches())
        assert mu.n_samples_seen_ == len(X)

    def test_a_target_by_weights_where_no_sample_is_held(self):
        self.refused("an Embedding is needed if rows are read in batches", [X], target=np.ones(60))

    def test_a_checked_batch_keeps_its_type(self):
        for dtype in (np.float32, np.float64):
            assert checked_batch(X.astype(dtype), 0).dtype == dtype
        assert checked_batch(np.ones((2, 2), int), 0).dtype == np.float64
        assert [batch.X.dtype for batch in StreamSource([X.astype(np.float32), X])] == [np.float32]


def test_features_of_an_unbounded_kernel_take_its_largest_value_for_the_step():
    rows = RNG.normal(size=(40, 2))
    for kernel in (Linear(), Polynomial(2)):
        dense = KernelMean(gram="dense", kernel=kernel, filter="landweber").fit(rows)
        features = KernelMean(gram=Nystrom(landmarks=rows), kernel=kernel, filter="landweber").fit(
            rows
        )
        assert features.filter_.eta == pytest.approx(dense.filter_.eta, rel=1e-12)


def test_matern_and_laplacian_by_random_features_come_near_the_dense_estimate():
    rows = RNG.normal(size=(200, 2))
    for kernel in (Gaussian(1.5), Laplacian(3.0), Matern(1.5, nu=1.5)):
        dense = KernelMean(gram="dense", kernel=kernel, filter="s-kmse").fit(rows)
        features = KernelMean(gram=RandomFeatures(600), kernel=kernel, filter="s-kmse").fit(rows)
        gap = np.abs(features.score_samples(rows) - dense.score_samples(rows)).max()
        assert gap < 0.15
        assert 0.005 < features.approximation_error_ < 0.06


def test_rows_of_few_values_shrink_no_more_in_one_pass_than_by_leave_one_out():
    rows = RNG.integers(0, 2, size=(600, 1)).astype(float)
    once, anew = KernelMean(gram="nystrom").partial_fit(rows), KernelMean(gram="nystrom").fit(rows)
    assert once.choice_.strength < 0.02
    np.testing.assert_allclose(
        once.score_samples(rows[:5]), anew.score_samples(rows[:5]), atol=0.02
    )
    constant = KernelMean(gram="nystrom", kernel=Gaussian(1.0)).partial_fit(np.ones((10, 3)))
    assert np.isfinite(constant.score_samples(np.ones((1, 3)))).all()


def test_frames_of_numbers_truths_and_whole_numbers_are_batches():
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1] > 0, "c": pd.array(np.arange(len(X)), dtype="Int64")}
    )
    mixed = KernelMean(gram=Nystrom(9), filter="f-kmse").fit_batches([frame, frame])
    plain = KernelMean(gram=Nystrom(9), filter="f-kmse").fit(
        pd.concat([frame, frame]).astype(float)
    )
    np.testing.assert_allclose(mixed.weights_, plain.weights_, atol=SAME)


@pytest.mark.parametrize("gram", ["dense", "blocks", Nystrom(20)], ids=str)
def test_one_row_far_away_leaves_the_others_as_they_are(gram):
    rows = X.copy()
    rows[7] = 1e20
    mu = KernelMean(kernel=Gaussian(1.0), filter="kme", gram=gram).fit(rows)
    rest = np.delete(X, 7, axis=0)
    slow = np.exp(-((rest[:, None] - rest) ** 2).sum(axis=-1) / 2).sum(axis=1) / len(X)
    far = mu.score_samples(np.vstack([rest[:2], np.full((1, 3), 1e17)]))
    np.testing.assert_allclose(far[:2], mu.score_samples(rest[:2]), rtol=1e-12)
    if gram in ("dense", "blocks"):
        np.testing.assert_allclose(mu.score_samples(rest), slow, rtol=1e-12)
