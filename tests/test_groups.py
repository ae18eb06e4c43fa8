"""The kernel means of many groups: equal to the formulas by loops, and bounded."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from sklearn.base import clone

from muhat import (
    Embedding,
    Gaussian,
    GroupDistanceDisplay,
    GroupMapDisplay,
    KernelMeans,
    Laplacian,
    Mixture,
    Nystrom,
    RandomFeatures,
    load,
    save,
)
from muhat._random_states import checked_seed
from muhat.errors import MuhatError
from muhat.groups._cells import CellRows, ExactCells
from muhat.groups._dimension import effective_dimension
from muhat.groups._folds import dealt_to_folds
from muhat.groups._rows import LabelledRows
from reference_groups import joint_weights

SAME = 1e-10
"""Fast and slow route, in weights and gains."""


def rng(seed=0):
    return np.random.default_rng(seed)


def on_circle(T=12, n=15, seed=0, d=2):
    """Groups whose means lie on a circle."""
    random = rng(seed)
    angles = random.uniform(0, 2 * np.pi, T)
    centres = np.zeros((T, d))
    centres[:, 0], centres[:, 1] = np.cos(angles), np.sin(angles)
    sizes = np.full(T, n) if np.isscalar(n) else np.resize(n, T)
    return [c + random.normal(size=(size, d)) for c, size in zip(centres, sizes, strict=True)]


def stacked(samples):
    return np.concatenate(samples), np.repeat(np.arange(len(samples)), list(map(len, samples)))


@pytest.mark.parametrize("sizes", [10, (1, 2, 3, 7, 20), (2, 2), (40, 5)], ids=str)
def test_the_fast_route_equals_the_formulas_by_loops(sizes):
    X, codes = stacked(on_circle(10, sizes))
    kernel = Gaussian(1.2)
    model = KernelMeans(kernel=kernel, standardize=False).fit(X, codes)
    rows = LabelledRows(X, np.arange(10), codes, np.ones(len(X)))
    folds = dealt_to_folds(rows, 5, checked_seed(model, model.random_state))
    kappa = model._joint.kappa
    W, gain = joint_weights(kernel(X), codes, folds, 5, kappa)
    assert np.abs(model.weights_ - W).max() < SAME
    assert abs(model.gain_ - gain) < SAME


def test_sums_over_cells_do_not_depend_on_blocks(monkeypatch):
    X, codes = stacked(on_circle(6, (3, 40, 9)))
    rows = LabelledRows(X, np.arange(6), codes, rng(1).uniform(0.5, 2, len(X)))
    cells = CellRows.from_rows(rows, dealt_to_folds(rows, 3, 0), 3)
    monkeypatch.setattr("muhat.groups._cells.BLOCK_ROWS", 7)
    small = ExactCells.from_rows(Gaussian(1.0), cells)
    K = cells.masses[:, None] * Gaussian(1.0)(cells.X) * cells.masses
    members = cells.cells == np.arange(18)[:, None]
    expected = (members @ K @ members.T).reshape(6, 3, 6, 3)
    np.testing.assert_allclose(small.sums, expected, rtol=1e-12, atol=1e-12)


def test_the_effective_dimension_is_that_of_the_covariance_within_groups():
    """Of rows with d independent columns of one variance and the linear kernel it is d."""
    X = rng().normal(size=(900, 6)) + np.repeat(5 * rng(1).normal(size=(9, 6)), 100, axis=0)
    rows = CellRows(X, np.ones(900), np.repeat(np.arange(9), 100), 9, 1)
    assert abs(effective_dimension(lambda Y: Y @ Y.T, rows) - 6) < 0.3


ADVERSARIAL = {
    "one group far away": [*on_circle(11), rng(5).normal(size=(15, 2)) + 30],
    "two equal groups": [*on_circle(6), *on_circle(6)[:1]],
    "mostly equal rows": [np.repeat(rng(t).normal(size=(2, 2)), 6, axis=0) for t in range(8)],
    "yes and no": [(rng(t).random((12, 1)) < 0.2).astype(float) for t in range(9)],
    "one row and many": [rng(t).normal(size=(1 if t % 2 else 60, 2)) for t in range(8)],
    "a wide and narrow ones": [rng(t).normal(size=(9, 2)) * (0.1, 20)[t == 3] for t in range(8)],
    "two groups": on_circle(2),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("gram", ["dense", Nystrom(8)], ids=["dense", "landmarks"])
def test_no_group_moves_further_than_its_bound(name, gram):
    model = KernelMeans(kernel=Gaussian(1.0), gram=gram).fit(ADVERSARIAL[name])
    moved = np.linalg.norm(model._joint.means - model._joint.vectors.Z, axis=1)
    assert (moved <= model.bounds_ * (1 + 1e-9) + 1e-12).all()
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1)


def test_the_bound_is_that_of_the_means_themselves():
    samples = ADVERSARIAL["a wide and narrow ones"]
    model = KernelMeans(kernel=Gaussian(1.0), standardize=False).fit(samples)
    for t, sample in enumerate(samples):
        plain = Embedding(model.kernel_, sample, np.full(len(sample), 1 / len(sample)))
        assert model.embedding_of(t).distance(plain) <= model.bounds_[t] * (1 + 1e-6) + 1e-9


def test_ways_to_give_groups_are_the_same():
    samples = on_circle()
    X, codes = stacked(samples)
    expected = KernelMeans().fit(samples)
    names = np.array([f"shop {t:02d}" for t in range(12)])
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(shop=names[codes])
    others = [
        KernelMeans().fit(X, codes),
        KernelMeans().fit(dict(enumerate(samples))),
        KernelMeans().fit(samples, names),
        KernelMeans().fit(frame, groups="shop"),
        KernelMeans().fit(frame[["a", "b"]], frame["shop"].astype("category")),
        KernelMeans().fit(pl.DataFrame(frame), groups="shop"),
        KernelMeans().fit(pl.DataFrame(frame).to_arrow(), groups="shop"),
    ]
    for other in others:
        np.testing.assert_array_equal(other.weights_, expected.weights_)
        assert other.gain_ == expected.gain_
    assert list(others[3].groups_) == list(names)
    assert list(others[3].feature_names_in_) == ["a", "b"]


def test_the_order_of_rows_and_labels_does_not_matter():
    X, codes = stacked(on_circle(9, (4, 10, 25)))
    first = KernelMeans().fit(X, codes)
    order = rng().permutation(len(X))
    relabel = rng(1).permutation(9)
    second = KernelMeans().fit(X[order], relabel[codes[order]])
    np.testing.assert_allclose(second.weights_[np.ix_(relabel, relabel)], first.weights_, atol=1e-9)
    np.testing.assert_allclose(second.gain_, first.gain_, rtol=1e-9)


def test_whole_weights_are_repeated_rows_and_others_are_shares():
    X, codes = stacked(on_circle(8))
    counts = rng().integers(0, 4, len(X))
    weighted = KernelMeans().fit(X, codes, sample_weight=counts)
    repeated = KernelMeans().fit(np.repeat(X, counts, axis=0), np.repeat(codes, counts))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-12)
    assert list(weighted.n_rows_) == list(repeated.n_rows_)
    masses = rng().uniform(0.5, 1.5, len(X))
    once = KernelMeans().fit(X, codes, sample_weight=masses)
    twice = KernelMeans().fit(X, codes, sample_weight=2.5 * masses)
    np.testing.assert_allclose(once.weights_, twice.weights_, atol=1e-9)


def test_the_mean_of_a_group_is_a_function_with_the_values_norms_and_distances_that_are_reported():
    samples = on_circle()
    model = KernelMeans(standardize=False).fit(samples)
    points = rng(3).normal(size=(7, 2))
    values = model.score_samples(points)
    assert values.shape == (7, 12)
    first, second = model.embedding_of(2), model.embedding_of(5)
    np.testing.assert_allclose(values[:, 2], first(points), rtol=1e-10)
    np.testing.assert_allclose(model.gram_[2, 5], first.inner(second), rtol=1e-10)
    np.testing.assert_allclose(model.distances_[2, 5], first.distance(second), rtol=1e-8)
    gaps = model.coordinates_[:, None] - model.coordinates_
    np.testing.assert_allclose(np.linalg.norm(gaps, axis=2), model.distances_, atol=1e-8)


def test_as_many_landmarks_as_rows_give_the_exact_means():
    X, codes = stacked(on_circle(8, (3, 12)))
    exact = KernelMeans(kernel=Laplacian(2.0)).fit(X, codes)
    landmarks = KernelMeans(kernel=Laplacian(2.0), gram=Nystrom(len(X))).fit(X, codes)
    np.testing.assert_allclose(landmarks.weights_, exact.weights_, atol=1e-7)
    np.testing.assert_allclose(landmarks.distances_, exact.distances_, atol=1e-7)
    np.testing.assert_allclose(landmarks.score_samples(X), exact.score_samples(X), atol=1e-7)
    known = [X[codes == 3], X[codes == 4][:5]]  # whose rows are landmarks
    np.testing.assert_allclose(landmarks.transform(known), exact.transform(known), atol=1e-6)


def test_random_features_are_near_the_exact_means():
    samples = on_circle()
    exact = KernelMeans().fit(samples)
    near = KernelMeans(gram=RandomFeatures(4000)).fit(samples)
    assert np.abs(near.distances_ - exact.distances_).max() < 0.03
    assert near.embedding_of(3)(samples[0]).shape == (15,)


def test_new_groups_have_coordinates_near_those_of_groups_like_them():
    samples = on_circle(30, 40)
    model = KernelMeans().fit(samples[:20])
    truth = KernelMeans().fit(samples).coordinates_
    new = model.transform(samples[20:])
    assert new.shape == (10, model.coordinates_.shape[1])
    nearest = np.linalg.norm(model.coordinates_ - new[:, None], axis=2).argmin(axis=1)
    expected = np.linalg.norm(truth[:20] - truth[20:, None], axis=2)
    assert (np.take_along_axis(expected, nearest[:, None], 1) < 0.1).all()


def test_many_groups_are_estimated_on_landmarks(monkeypatch):
    monkeypatch.setattr("muhat.groups._estimator.MAX_GROUPS_EXACT", 5)
    model = KernelMeans().fit(on_circle())
    assert model._space.features.size <= 180
    monkeypatch.setattr("muhat.groups._candidates.BLOCK_ENTRIES", 200)
    in_blocks = KernelMeans().fit(on_circle())
    np.testing.assert_allclose(in_blocks.weights_, model.weights_, atol=1e-9)


def test_groups_of_one_row_gain_from_the_others():
    samples = on_circle(60, (1, 30), d=5)
    model = KernelMeans(kernel=Gaussian(2.0), standardize=False).fit(samples)
    assert (np.diag(model.weights_)[::2] < 0.5).all()


def test_groups_of_one_row_alone_stay_as_they_are():
    model = KernelMeans().fit(on_circle(8, 1))
    np.testing.assert_array_equal(model.weights_, np.eye(8))
    assert model.gain_ is None


def test_constant_data_is_no_trouble():
    model = KernelMeans(kernel=Gaussian(1.0)).fit(np.ones((12, 2)), np.repeat(np.arange(6), 2))
    assert np.abs(model.distances_).max() < 1e-6
    assert np.isfinite(model.weights_).all()


def test_two_equal_groups_have_equal_means():
    samples = on_circle(8)
    model = KernelMeans().fit([*samples, samples[0]])
    assert model.distances_[0, 8] < 1e-7


def test_float32_rows_give_nearly_the_same():
    samples = on_circle()
    single = KernelMeans(standardize=False).fit([each.astype(np.float32) for each in samples])
    rounded = [each.astype(np.float32).astype(float) for each in samples]
    double = KernelMeans(standardize=False).fit(rounded)
    np.testing.assert_allclose(single.weights_, double.weights_, atol=1e-4)


def test_the_gain_is_there_from_six_groups_on():
    assert KernelMeans().fit(on_circle(5)).gain_ is None
    assert "too few" in KernelMeans().fit(on_circle(5)).verdict()
    model = KernelMeans().fit(on_circle(6))
    assert model.gain_error_ > 0
    assert "6 groups" in model.verdict()


def test_a_verdict_never_states_a_gain_of_all_the_error():
    model = KernelMeans().fit(on_circle(6))
    model.gain_, model.gain_error_ = 1.04, 0.05
    assert "by 99 % (standard error 5 %)" in model.verdict()


def test_groups_that_share_nothing_keep_their_plain_means():
    """Small gains in the RKHS would be paid for by bias in values and distances."""
    random = rng(2)
    samples = [10 * random.normal(size=10) + random.normal(size=(20, 10)) for _ in range(25)]
    model = KernelMeans(standardize=False).fit(samples)
    np.testing.assert_array_equal(model.weights_, np.eye(25))
    assert model.gain_ == 0
    assert model.verdict().startswith("Means of 25 groups: plain averages are used")


def test_groups_of_few_kinds_gain_much_and_in_truth():
    """Five kinds of groups, losses in closed form."""
    random = rng(11)
    angles = 2 * np.pi * random.integers(5, size=40) / 5
    centres = 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    samples = [c + random.normal(size=(30, 2)) for c in centres]
    model = KernelMeans(standardize=False).fit(samples)
    joint, plain = 0.0, 0.0
    for t, sample in enumerate(samples):
        law = Mixture([1.0], [centres[t]], [np.eye(2)])
        joint += model.embedding_of(t).loss(law)
        plain += Embedding(model.kernel_, sample, np.full(30, 1 / 30)).loss(law)
    assert joint < 0.3 * plain
    assert abs(model.gain_ - (1 - joint / plain)) < 4 * model.gain_error_


def test_rows_of_a_cluster_share_a_fold():
    X, codes = stacked(on_circle(6))
    clusters = np.tile(np.arange(15), 6)
    rows = LabelledRows(X, np.arange(6), codes, np.ones(len(X)), clusters)
    folds = dealt_to_folds(rows, 5, 0)
    assert all(len(set(folds[clusters == c])) == 1 for c in range(15))
    shared = KernelMeans().fit(X, codes, clusters=clusters)
    assert shared.gain_ != KernelMeans().fit(X, codes).gain_


def test_folds_are_even_within_every_group():
    X, codes = stacked(on_circle(30, (1, 3, 12)))
    rows = LabelledRows(X, np.arange(30), codes, np.ones(len(X)))
    folds = dealt_to_folds(rows, 5, 0)
    for t in range(30):
        counts = np.bincount(folds[codes == t], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert len(set(folds[np.isin(codes, np.arange(0, 30, 3))])) > 1


def test_parameters_are_kept_and_cloned():
    model = KernelMeans(kernel="laplacian", gram=Nystrom(20), standardize=False, n_splits=3)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.set_params(kernel__bandwidth=2.0).kernel.bandwidth == 2.0


X, CODES = stacked(on_circle(4))
BAD = {
    "one group": (lambda: KernelMeans().fit(X, np.zeros(len(X))), "at least two groups"),
    "one sample": (lambda: KernelMeans().fit([X]), "at least two groups"),
    "no labels": (lambda: KernelMeans().fit(X), "a label for each row"),
    "too few labels": (lambda: KernelMeans().fit(X, CODES[:-1]), "one label for each of 60 rows"),
    "a missing label": (
        lambda: KernelMeans().fit(X, np.where(np.arange(60) == 7, np.nan, CODES)),
        r"1 missing \(first: groups\[7\]\)",
    ),
    "None for a label": (
        lambda: KernelMeans().fit(X, [None, *CODES[1:]]),
        r"1 missing \(first: groups\[0\]\)",
    ),
    "an empty group": (
        lambda: KernelMeans().fit([X, X[:0]]),
        "at least one row, got none in sample 1",
    ),
    "weights zero": (
        lambda: KernelMeans().fit(X, CODES, sample_weight=1.0 * (CODES > 0)),
        "a row of positive weight",
    ),
    "an unknown column": (
        lambda: KernelMeans().fit(pd.DataFrame(X, columns=["a", "b"]), "shop"),
        "must name a column",
    ),
    "two samples of one label": (
        lambda: KernelMeans().fit([X, X], ["a", "a"]),
        "must have different labels",
    ),
    "labels of samples": (lambda: KernelMeans().fit([X, X], ["a"]), "each of 2 samples"),
    "a matrix": (
        lambda: KernelMeans(kernel="precomputed").fit(X, CODES),
        "a kernel that is computed from rows",
    ),
    "one fold": (lambda: KernelMeans(n_splits=1).fit(X, CODES), "n_splits"),
    "standardize": (lambda: KernelMeans(standardize="no").fit(X, CODES), "standardize"),
    "gram": (lambda: KernelMeans(gram="nothing").fit(X, CODES), "gram"),
    "a label": (lambda: KernelMeans().fit(X, CODES).embedding_of(9), "0, 1, 2, 3"),
    "an array to transform": (lambda: KernelMeans().fit(X, CODES).transform(X), "a list"),
}


def test_samples_of_other_columns_are_an_error():
    with pytest.raises(ValueError, match="features"):
        KernelMeans().fit([X, X[:, :1]])


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_in_one_sentence(name):
    call, words = BAD[name]
    with pytest.raises(MuhatError, match=words):
        call()


@pytest.mark.parametrize("gram", ["dense", Nystrom(10), RandomFeatures(20)], ids=str)
def test_a_fitted_model_can_be_saved_and_loaded(gram, tmp_path):
    names = np.array(["a", "b", "c", "d"], dtype=object)
    model = KernelMeans(gram=gram).fit(X, names[CODES])
    save(model, tmp_path / "groups.muhat")
    same = load(tmp_path / "groups.muhat")
    np.testing.assert_array_equal(same.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(same.groups_, model.groups_)
    np.testing.assert_array_equal(same.transform([X]), model.transform([X]))


def test_errors_of_coordinates_have_the_size_of_the_scatter_between_samples():
    """Two groups far apart keep their plain means, whose scatter is known from many samples."""
    kernel = Gaussian(3.0)
    found, reported = [], []
    for seed in range(40):
        random = rng(seed)
        samples = [random.normal(size=(25, 1)), 6 + random.normal(size=(25, 1))]
        model = KernelMeans(kernel=kernel, standardize=False).fit(samples)
        found.append(np.abs(model.coordinates_[:, 0]))
        reported.append(model.coordinate_errors_[:, 0])
    # Coordinates are from the centre of both, which has half of each group's noise.
    ratio = np.mean(reported) / np.std(found, axis=0).mean()
    assert 1.0 < ratio < 2.0


def test_groups_are_drawn_on_a_map_and_as_distances():
    samples = on_circle()
    model = KernelMeans().fit(samples)
    shown = GroupMapDisplay.from_estimator(model).plot()
    assert len(shown.ax_.collections) == 13  # an ellipse for each group, and the dots
    drawn = {text.get_text() for text in shown.ax_.texts} - {""}  # without those in the way
    assert drawn <= {str(t) for t in range(12)}
    assert len(drawn) > 6
    np.testing.assert_array_equal(shown.coordinates, model.coordinates_[:, :2])
    matrix = GroupDistanceDisplay.from_estimator(model).plot()
    assert sorted(matrix.order) == list(range(12))
    assert matrix.ax_.images[0].get_array().shape == (12, 12)
    pyplot.close("all")


def test_two_groups_are_drawn_on_a_line():
    shown = GroupMapDisplay.from_estimator(KernelMeans().fit(on_circle(2)))
    assert not shown.coordinates[:, 1].any()
    assert shown.shares[0] == pytest.approx(1)
