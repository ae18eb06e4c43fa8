"""The stacked mean: left-out candidates against refits, weights against a solver, and what it gains."""

import pickle
import warnings
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.integrate import simpson
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_ndtr
from sklearn.utils.estimator_checks import parametrize_with_checks

from muhat import Gaussian, KernelMean, Laplacian, Matern, Mixture, StackDisplay, StackedMean, SyntheticFamily
from muhat.embedding import Embedding
from muhat.kernels import InverseMultiquadric, Linear, Polynomial, RationalQuadratic
from muhat.kernels._mixtures import has_closed_form
from muhat.paper._estimators import losses_of_auto
from muhat.paper._samples import exact_losses, gaussian_kernels, stacked_losses
from muhat.stacking import (
    Candidate,
    ClusterJitter,
    Folds,
    GaussianFit,
    InDegree,
    IndependentBlocks,
    LeftOutMoments,
    MixedEmbedding,
    NuSteps,
    PlainMean,
    Recombination,
    Sample,
    WardMixtures,
    Waves,
    _batch,
    _sample,
    default_candidates,
    stacked_means,
)
from muhat.stacking._candidates import mixture_of_clusters, wave_of
from muhat.stacking._sample import (
    cut,
    distinct_rows,
    is_better_once,
    is_drawn_again,
    orthogonal_frequencies,
    unevenness,
)
from muhat.stacking._span import ADDED, MOST_DRAWS, Span, draws_for
from muhat.stacking._weights import PULL, TOTAL

EXACT = [PlainMean(), NuSteps(), InDegree(), GaussianFit()]
"""The candidates that are left out exactly."""


def a_sample(n=24, d=3, kernel=None, masses=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.2][:d] + 5
    X[-1] = X[0]
    masses = np.full(n, 1 / n) if masses is None else masses
    return Sample((kernel or Gaussian()).resolve(X), X, masses / masses.sum(), n)


def left_out_ways(sample, splits, seed=1):
    rng = np.random.default_rng(seed)
    folds = Folds.from_sample(sample, splits, rng)
    return folds, Waves(sample, orthogonal_frequencies(sample.kernel, 40, sample.X.shape[1], rng))


@pytest.mark.parametrize("candidate", EXACT, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("splits", [None, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern(0.3)], ids=lambda each: type(each).__name__)
def test_left_out_equals_refitting(candidate, splits, weighted, kernel):
    sample = a_sample(kernel=kernel, masses=np.linspace(1, 3, 24) if weighted else None)
    folds, waves = left_out_ways(sample, splits)
    fast = candidate.left_out(sample, folds, waves)
    slow = Candidate.left_out(candidate, sample, folds, waves)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("splits", [None, 5])
def test_left_out_clusters_equal_refitting_with_the_clusters_kept(whiten, splits):
    sample = a_sample(30, masses=np.linspace(1, 2, 30))
    folds, waves = left_out_ways(sample, splits)
    candidate = WardMixtures(whiten=whiten)
    smallest, parents = candidate._clusters(sample)
    for parent, fast in zip(parents, candidate.left_out(sample, folds, waves), strict=True):
        labels = parent[smallest]
        for rows, wave in zip(folds, fast, strict=True):
            kept = np.unique(labels[~rows], return_inverse=True)[1]
            mixture = mixture_of_clusters(sample.without(rows), kept)
            np.testing.assert_allclose(wave, wave_of(mixture, waves, ~rows)[0], atol=1e-9)


@pytest.mark.parametrize("candidate", [IndependentBlocks(), ClusterJitter()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("splits", [None, 5])
def test_left_out_recombinations_equal_refitting_with_clusters_and_blocks_kept(candidate, splits):
    sample = a_sample(30, masses=np.linspace(1, 2, 30))
    folds, waves = left_out_ways(sample, splits)
    labels = candidate.labels(sample)
    for (parts,), waves_left in zip(candidate.parts([sample]), candidate.left_out(sample, folds, waves), strict=True):
        np.testing.assert_allclose(parts.sum(axis=0), 1)
        for rows, wave in zip(folds, waves_left, strict=True):
            left = sample.without(rows)
            refit = Recombination(left.X, left.masses, labels[~rows], parts)
            np.testing.assert_allclose(wave, wave_of(refit, waves, ~rows)[0], atol=1e-12)


class TestRowsThatWereDrawnAgain:
    """Rows of a finite population that was drawn from with replacement: what repeats says nothing new."""

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(1, 5), min_size=2, max_size=12))
    def test_leave_one_out_with_the_narrowest_kernel_decides(self, counts):
        draws = np.repeat(np.arange(len(counts)), counts)
        plain, distinct = [], []
        for i, x in enumerate(draws):
            left = np.delete(draws, i)
            for scores, values in ((plain, left), (distinct, np.unique(left))):
                masses = np.bincount(values, minlength=len(counts)) / len(values)
                scores.append((masses**2).sum() - 2 * masses[x])
        expected = np.mean(plain) - np.mean(distinct) > 1e-12
        assert is_better_once(np.array(counts)) == expected

    @pytest.mark.parametrize(
        ("scale", "d", "n"), [(1000, 1, 1000), (3, 1, 30), (10, 2, 300), (3, 3, 300), (1, 4, 50)], ids=str
    )
    def test_rows_that_are_equal_by_chance_were_not(self, scale, d, n):
        for seed in range(10):
            X = np.round(scale * np.random.default_rng(seed).normal(size=(n, d)))
            first, counts = distinct_rows(X)
            assert len(counts) < n
            assert not is_drawn_again(Gaussian(1.0), X, first, counts)

    def test_categories_that_are_equal_by_chance_were_not(self):
        for seed in range(10):
            levels = np.random.default_rng(seed).choice(4, size=(60, 5), p=[0.4, 0.3, 0.2, 0.1])
            for X in (levels, np.eye(4)[levels].reshape(60, 20)):
                assert not is_drawn_again(Gaussian(1.0), X, *distinct_rows(X))

    def test_repeats_that_lie_in_one_region_were_not(self):
        """Half the mass on 40 rows, and half spread out: counted once, the 40 would lose a third of theirs."""
        fired = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            group, apart = rng.normal(size=(40, 5)) + 4, rng.normal(size=(100, 5))
            X = np.where(rng.random((100, 1)) < 0.5, group[rng.integers(40, size=100)], apart)
            first, counts = distinct_rows(X)
            fired += is_better_once(counts)
            assert not is_drawn_again(Gaussian(5.0), X, first, counts)
        assert fired > 3  # the narrowest kernel does not see where rows are

    @pytest.mark.parametrize("columns", [1, 3])
    def test_two_values_keep_their_masses(self, columns):
        X = np.repeat([[0.0] * columns, [1.0] * columns], (10, 5), axis=0)
        assert is_better_once(np.array([10, 5]))
        assert not is_drawn_again(Gaussian(1.0), X, *distinct_rows(X))

    def test_unevenness_is_in_units_of_all_ways_to_deal_counts_out(self):
        rows, kernel = np.random.default_rng(0).normal(size=(5, 2)), Gaussian(1.0)
        once, distances, found = Embedding(kernel, rows, np.full(5, 1 / 5)), [], []
        for counts in map(np.array, set(permutations([2, 2, 1, 1, 1]))):
            distances.append(Embedding(kernel, rows, counts / 7).distance(once) ** 2)
            found.append(unevenness(kernel, rows, counts))
        np.testing.assert_allclose(found, np.array(distances) / np.mean(distances), rtol=1e-10)

    @pytest.mark.parametrize("n_frequencies", [None, 20_000])
    def test_moments_are_those_of_leaving_out_a_draw_whichever_rows_repeat(self, n_frequencies):
        """Four of ten rows were drawn twice: the mean over all ways to choose these of leaving out each of 14 draws."""
        rows, kernel = np.random.default_rng(0).normal(size=(10, 3)), Gaussian(1.0)
        X = np.concatenate([rows, rows[:4]])
        mu = StackedMean(kernel=kernel, candidates=EXACT, n_frequencies=n_frequencies).fit(X)

        def moments(left, x):
            sample = Sample(kernel, left, np.full(len(left), 1 / len(left)), 10)
            span = Span.from_measures(sample, [m for each in EXACT for m in each.fit(sample)], 1, None)
            return span.gram(), span.values(x[None])[0]

        without = [moments(np.delete(rows, i, axis=0), x) for i, x in enumerate(rows)]
        whole = [moments(rows, x) for x in rows]
        inner, cross = 0.0, 0.0
        ways = list(combinations(range(10), 4))
        for repeated in ways:
            for i in range(10):
                found, draws = (whole, 2) if i in repeated else (without, 1)
                inner, cross = inner + draws * found[i][0], cross + draws * found[i][1]
        assert mu.names_[0] == "KME of distinct rows"
        close = 1e-12 if n_frequencies is None else 0.01
        np.testing.assert_allclose(mu.moments_.inner, inner / (14 * len(ways)), atol=close)
        np.testing.assert_allclose(mu.moments_.cross, cross / (14 * len(ways)), atol=close)

    def test_a_table_below_itself_has_the_mean_of_the_table(self):
        X = np.random.default_rng(0).normal(size=(30, 3))
        once, twice = (StackedMean(kernel=Gaussian(1.0)).fit(rows) for rows in (X, np.concatenate([X, X])))
        np.testing.assert_allclose(twice.weights_, once.weights_)
        assert twice.embedding_.distance(once.embedding_) < 1e-7

    def test_the_risk_is_below_that_of_the_mean_of_the_distinct_rows(self):
        rng = np.random.default_rng(0)
        population, kernel = rng.normal(size=(60, 3)), Gaussian(1.0)
        truth = Embedding(kernel, population, np.full(60, 1 / 60))
        losses = []
        for _ in range(40):
            X = population[rng.integers(60, size=40)]
            distinct = np.unique(X, axis=0)
            plain, once = (Embedding(kernel, rows, np.full(len(rows), 1 / len(rows))) for rows in (X, distinct))
            losses.append([f.distance(truth) ** 2 for f in (plain, once, StackedMean(kernel=kernel).fit(X).embedding_)])
        plain, once, stacked = np.mean(losses, axis=0)
        assert stacked < 0.97 * once < 0.97 * 0.8 * plain

    def test_a_value_that_is_likely_keeps_its_mass(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        X[:10] = 0
        mu = StackedMean(kernel=Gaussian(0.1), candidates=[]).fit(X)
        assert mu.names_ == ["KME"]
        assert mu.embedding_(np.zeros((1, 2)))[0] == pytest.approx(0.25 * mu.weights_[0], abs=0.01)

    def test_many_rows_all_count(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(20, 3))[np.r_[0:20, 0:3]]
        monkeypatch.setattr(_sample, "REPEATS_UP_TO", 22)
        assert StackedMean(candidates=[]).fit(X).names_ == ["KME"]

    def test_weights_that_are_given_are_kept(self):
        X = np.random.default_rng(0).normal(size=(20, 3))[np.r_[0:20, 0:3]]
        assert StackedMean(candidates=[]).fit(X).names_ == ["KME of distinct rows"]
        assert StackedMean(candidates=[]).fit(X, sample_weight=np.ones(23)).names_ == ["KME"]


@pytest.mark.parametrize("parts", [[[1, 0], [0, 1]], [[1, 1], [0.5, 0.5], [-0.5, -0.5]]], ids=["blocks", "jitter"])
def test_recombinations_are_all_ways_to_put_rows_of_a_cluster_together(parts):
    X, masses, labels = np.array([[0, 0], [1, 3], [2, 5], [9.0, 9]]), np.array([0.1, 0.3, 0.4, 0.2]), [0, 0, 0, 1]
    P = Recombination(X, masses, np.array(labels), np.array(parts, dtype=float))
    omega = np.random.default_rng(0).normal(size=(6, 2))
    expected = 0
    for c, pi in enumerate([0.8, 0.2]):
        members = [i for i in range(4) if labels[i] == c]
        for chosen in product(members, repeat=len(parts)):
            probability = pi * np.prod([masses[i] / pi for i in chosen])
            row = sum(a * X[i] for a, i in zip(np.array(parts), chosen, strict=True))
            expected = expected + probability * np.exp(1j * omega @ row)
    np.testing.assert_allclose(P.characteristic_function(omega), expected, atol=1e-12)
    drawn = P.draw(40_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.exp(1j * drawn @ omega.T).mean(axis=0), expected, atol=0.02)
    np.testing.assert_allclose(drawn.mean(axis=0), masses @ X, atol=1e-3)


def test_recombinations_take_part_as_points_that_are_drawn():
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert StackedMean().fit(X).names_[-3:] == ["2 blocks of features", "3 blocks of features", "jitter"]
    alone = StackedMean(candidates=[ClusterJitter()]).fit(X)
    assert alone.names_ == ["KME", "jitter"]
    assert len(alone.embedding_.points) > len(X)


def test_draws_add_no_more_to_the_risk_than_they_may():
    masses = np.array([0.1, 0.5, 0.2])
    added = (masses**2 / draws_for(20, masses)).sum() * 20
    assert 0.9 * ADDED < added < 1.0001 * ADDED
    assert sum(draws_for(10**6, masses)) <= MOST_DRAWS + len(masses)
    assert draws_for(20, masses) == draws_for(20, masses + 1e-7 * np.array([1, -1, 1]))


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(2.0), RationalQuadratic(2.0)], ids=repr)
def test_moments_by_frequencies_are_those_by_refits_up_to_their_error(kernel):
    sample, candidates = a_sample(kernel=kernel), EXACT
    folds = Folds.from_sample(sample, None, np.random.default_rng(0))
    exact = LeftOutMoments.from_refits(candidates, sample, folds, 1, np.random.default_rng(0))
    found = []
    for seed in range(8):
        frequencies = orthogonal_frequencies(kernel, 256, 3, np.random.default_rng(seed))
        found.append(LeftOutMoments.from_waves(candidates, sample, folds, Waves(sample, frequencies)))
    for name in ("inner", "cross", "risk"):
        values = np.array([getattr(moments, name) for moments in found])
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.all(np.abs(values.mean(axis=0) - getattr(exact, name)) <= 5 * error + 1e-12)
        assert np.all(error < 0.02)


def test_moments_by_refits_are_those_of_elements_without_the_point():
    sample = a_sample(12)
    folds = Folds.from_sample(sample, None, np.random.default_rng(0))
    moments = LeftOutMoments.from_refits(EXACT, sample, folds, 1, np.random.default_rng(0))
    inner, cross = 0.0, 0.0
    for rows in folds:
        left = sample.without(rows)
        elements = []
        for measure in (measure for each in EXACT for measure in each.fit(left)):
            zero = Embedding(sample.kernel, left.X, np.zeros(left.n))
            if isinstance(measure, Mixture):
                elements.append(MixedEmbedding(zero, measure, measure.weights))
            else:
                elements.append(Embedding(sample.kernel, left.X, measure))
        inner = inner + np.array([[f.inner(g) for g in elements] for f in elements]) / 12
        cross = cross + np.array([f(sample.X[rows])[0] for f in elements]) / 12
    np.testing.assert_allclose(moments.inner, inner, atol=1e-12)
    np.testing.assert_allclose(moments.cross, cross, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000), st.floats(0, 2))
def test_weights_are_the_minimum(count, seed, shift):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, count + 1))
    inner, cross = root @ root.T, rng.normal(size=count) + shift
    inner[0, 0] += abs(rng.normal() + cross[0])
    moments = LeftOutMoments(inner[None], cross[None], np.ones(1))
    w = moments.best_weights()
    assert w.min() >= 0
    assert w.sum() <= 1 + 1e-9

    def objective(w):
        risk = max(moments.risk, 0)
        return moments.score(w) + PULL * risk * ((w - 1 / count) ** 2).sum() - 2 * TOTAL * risk * w.sum()

    slack = {"type": "ineq", "fun": lambda w: 1 - w.sum()}
    best = minimize(objective, np.full(count, 1 / count), bounds=[(0, 1)] * count, constraints=slack, tol=1e-12)
    assert objective(w) <= best.fun + 1e-6 * (1 + abs(best.fun))


def test_means_of_gaussians_under_the_exponential_kernel_are_those_of_its_own_closed_form():
    def of_one(x, mean, variance, sigma):  # E exp(−|x − Y|/σ)
        s, gap = variance**0.5, x - mean
        sides = [np.exp(g / sigma + variance / (2 * sigma**2) + log_ndtr(-g / s - s / sigma)) for g in (gap, -gap)]
        return sum(sides)

    P = Mixture([0.4, 0.6], [[-1.0], [2.0]], [[[0.5]], [[1e-4]]])
    for x in (-1.0, 0.3, 2.0, 9.0):
        expected = 0.4 * of_one(x, -1.0, 0.5, 0.7) + 0.6 * of_one(x, 2.0, 1e-4, 0.7)
        assert P.mean(Matern(0.7, 0.5), np.array([[x]]))[0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(
    "kernel", [Matern(2.0), Matern(2.0, 0.8), RationalQuadratic(1.0, 0.7), InverseMultiquadric(1.0)]
)
def test_means_of_gaussians_equal_integrals(kernel):
    P = Mixture([1.0], [[-1.0]], [[[0.5]]])
    y = np.linspace(-1 - 9 * 0.5**0.5, -1 + 9 * 0.5**0.5, 200_001)
    density = np.exp(-((y + 1) ** 2)) / np.sqrt(np.pi)
    for x in (-1.0, 0.3, 9.0):
        expected = simpson(density * kernel(np.array([[x]]), y[:, None])[0], x=y)
        assert P.mean(kernel, np.array([[x]]))[0] == pytest.approx(expected, abs=1e-8)
    double = Mixture([1.0], [[-1.0]], [[[1.0]]])  # the law of the difference of two
    assert P.inner(kernel, P) == pytest.approx(double.mean(kernel, np.array([[-1.0]]))[0], abs=1e-12)


class TestMixedEmbedding:
    """Points and Gaussians, mixed."""

    kernel = Gaussian(1.3)
    rng = np.random.default_rng(0)
    atoms = Embedding(kernel, rng.normal(size=(6, 2)), rng.normal(size=6))
    gaussians = Mixture([0.5, 0.5], rng.normal(size=(2, 2)), np.stack([np.diag([0.3, 1.0]), np.eye(2)]))
    f = MixedEmbedding(atoms, gaussians, np.array([0.7, -0.2]))

    def test_values_and_inner_products_are_those_of_many_draws(self):
        each = zip(self.gaussians.means, self.gaussians.covariances, strict=True)
        draws = [Mixture([1.0], [mean], [S]).sample(40_000, 1) for mean, S in each]
        points = np.concatenate([self.atoms.points, *draws])
        weights = np.concatenate([self.atoms.weights, np.full(40_000, 0.7 / 40_000), np.full(40_000, -0.2 / 40_000)])
        drawn = Embedding(self.kernel, points, weights)
        Y = np.random.default_rng(2).normal(size=(5, 2))
        np.testing.assert_allclose(self.f(Y), drawn(Y), atol=5e-3)
        assert self.f.inner(self.atoms) == pytest.approx(drawn.inner(self.atoms), abs=2e-2)
        assert self.f.inner(self.f) == pytest.approx(self.f.inner(drawn), abs=2e-2)

    def test_it_is_a_vector(self):
        g = 2 * self.f - self.atoms
        Y = np.random.default_rng(2).normal(size=(5, 2))
        np.testing.assert_allclose(g(Y), 2 * self.f(Y) - self.atoms(Y), atol=1e-12)
        np.testing.assert_allclose((self.atoms + self.f)(Y), (self.f + self.atoms)(Y), atol=1e-14)
        assert self.atoms.inner(self.f) == pytest.approx(self.f.inner(self.atoms), abs=1e-14)
        assert (self.f - self.f).norm() < 1e-7
        assert self.f.distance(self.atoms) == pytest.approx((self.f - self.atoms).norm())
        assert pickle.loads(pickle.dumps(self.f)).norm() == self.f.norm()

    def test_its_loss_is_a_squared_distance(self):
        P = Mixture([1.0], [[0.2, 0.1]], [np.eye(2)])
        zero = Embedding(self.kernel, np.zeros((1, 2)), np.zeros(1))
        truth = MixedEmbedding(zero, P, np.ones(1))
        assert self.f.loss(P) == pytest.approx((self.f - truth).squared_norm(), abs=1e-12)

    def test_another_kernel_is_refused(self):
        with pytest.raises(ValueError, match="the same kernel"):
            self.f + Embedding(Gaussian(1.0), np.zeros((1, 2)), np.ones(1))


@parametrize_with_checks([StackedMean()])
@pytest.mark.filterwarnings("ignore:bandwidth='median'")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("d", [1, 20])
def test_its_risk_is_below_that_of_every_filter(share, d):
    draws = list(SyntheticFamily(d).draw(range(60), 50, 7))
    kernels = gaussian_kernels(draws, share**0.5)
    filters = losses_of_auto(exact_losses(draws, kernels))
    stacked = stacked_losses({"first": 0, "last": 60}, draws, kernels)
    assert stacked.losses.mean() < min(each.losses.mean() for each in filters)


@pytest.mark.parametrize(
    ("n", "d", "kernel"),
    [
        (50, 4, Gaussian()),
        (50, 1, Gaussian(0.3)),
        (20, 3, Laplacian()),
        (10, 30, Matern()),
        (3, 2, Gaussian()),
        (7, 2, 2.0 * RationalQuadratic(1.0)),
        (120, 2, Gaussian()),  # each by itself
        (12, 2, Linear()),  # each by itself
    ],
    ids=repr,
)
def test_many_samples_at_once_have_the_means_that_each_has_by_itself(n, d, kernel):
    """Where Gaussians are drawn, the least difference of weights draws other points: what is left is their noise."""
    close = 1e-7 if has_closed_form(kernel) else 1e-3
    samples = np.random.default_rng(0).normal(size=(5, n, d))
    samples[1] = samples[1][np.arange(n) // 2]  # rows that are equal
    samples[2] = 1e3 * samples[2] + 7
    kernels = [kernel.resolve(X) for X in samples]
    found = stacked_means(samples, kernels, range(5))
    for place, (X, own, many) in enumerate(zip(samples, kernels, found, strict=True)):
        one = StackedMean(kernel=own, random_state=place).fit(X)
        np.testing.assert_allclose(many.weights, one.weights_, atol=1e-5)
        np.testing.assert_allclose(many.embedding(samples[0]), one.embedding_(samples[0]), atol=close)
        assert many.embedding.squared_norm() == pytest.approx(one.embedding_.squared_norm(), abs=close)


def test_one_kernel_and_random_state_serve_all_samples():
    samples = np.random.default_rng(0).normal(size=(3, 20, 2))
    for X, many in zip(samples, stacked_means(samples), strict=True):
        one = StackedMean().fit(X)
        np.testing.assert_allclose(many.weights, one.weights_, atol=1e-5)
        np.testing.assert_allclose(many.embedding(X), one.embedding_(X), atol=1e-7)


def test_samples_that_cannot_be_taken_together_are_refused():
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match="samples must be matrices of one shape"):
        stacked_means([X, X[:4]])
    with pytest.raises(ValueError, match="random_states must be one, or one for each of 2 samples"):
        stacked_means([X, X], random_states=[1])
    with pytest.raises(ValueError, match=r"samples, one below the other, .*row 5"):
        stacked_means([X, X + np.nan])
    for wrong in (np.ma.masked_equal(X, 0), csr_array(X)):
        with pytest.raises(TypeError, match="sparse ones or masked values"):
            stacked_means([X, wrong])
    with pytest.raises(TypeError, match="random_states must be whole numbers"):
        stacked_means([X, X], random_states=np.random.RandomState(0))


def test_samples_with_rows_too_far_apart_for_single_precision_are_fitted_by_themselves():
    samples = np.random.default_rng(0).normal(size=(3, 20, 2))
    samples[1, :2] += 1e6
    for place, (X, many) in enumerate(zip(samples, stacked_means(list(samples)), strict=True)):
        difference = np.abs(many.weights - StackedMean().fit(X).weights_).max()
        assert (difference == 0) == (place == 1)
        assert difference < 1e-5


def test_trees_are_cut_as_scipy_cuts_them():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(30, 2)) for _ in range(6)]
    samples = [X if place % 2 else np.round(X) for place, X in enumerate(samples)]  # some with heights that are tied
    trees = np.stack([linkage(X, "ward") for X in samples])
    for tree, levels in zip(trees, cut(trees, [2, 4, 8]), strict=True):
        for size, labels in zip([2, 4, 8], levels, strict=True):
            expected = fcluster(tree, size, "maxclust")
            np.testing.assert_array_equal(labels[:, None] == labels, expected[:, None] == expected)
            assert set(labels) == set(range(labels.max() + 1))


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Gaussian(1.0) + Matern(1.0), "rbf"], ids=str)
def test_any_kernel_works(kernel):
    X = a_sample(40).X
    mu = StackedMean(kernel=kernel).fit(X)
    assert np.isfinite(mu.score(X))
    assert mu.gain_ >= 0


def test_gaussians_without_a_closed_form_are_draws():
    mu = StackedMean(kernel="laplacian").fit(a_sample().X)
    assert isinstance(mu.embedding_, Embedding)
    assert len(mu.embedding_.points) > 24
    again = StackedMean(kernel="laplacian").fit(a_sample().X)
    assert again.embedding_.distance(mu.embedding_) == 0


def test_rows_without_mass_do_not_take_part():
    X = a_sample(30).X
    kernel, mass = Gaussian(2.0), np.r_[np.ones(20), np.zeros(10)]
    whole = StackedMean(kernel=kernel).fit(X, sample_weight=mass)
    part = StackedMean(kernel=kernel).fit(X[:20])
    np.testing.assert_array_equal(whole.weights_, part.weights_)
    assert whole.embedding_.distance(part.embedding_) < 1e-7


@pytest.mark.parametrize("n", [101, 2500])
def test_many_rows_are_left_out_in_folds(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    mu = StackedMean(kernel=Gaussian(0.3)).fit(X)
    P = Mixture([1.0], np.zeros((1, 2)), np.eye(2)[None])
    assert mu.embedding_.loss(P) < KernelMean(kernel=Gaussian(0.3), filter="kme").fit(X).embedding_.loss(P)


@dataclass
class Standard(Candidate):
    """N(0, I), whatever the sample."""

    def names(self, sample):
        return ["standard normal"]

    def fit(self, sample):
        d = sample.X.shape[1]
        return [Mixture(np.ones(1), np.zeros((1, d)), np.eye(d)[None])]


def test_a_candidate_of_ones_own_takes_part():
    X = np.random.default_rng(0).normal(size=(40, 3))
    mu = StackedMean(candidates=[*default_candidates(), Standard()]).fit(X)
    assert mu.names_[-1] == "standard normal"
    assert mu.weights_[-1] > 0.3
    alone = StackedMean(candidates=[Standard()]).fit(X)
    assert alone.names_ == ["KME", "standard normal"]


@dataclass
class Listed(Candidate):
    """The masses, as a list."""

    def names(self, sample):
        return ["listed"]

    def fit(self, sample):
        return [sample.masses.tolist()]


def test_weights_may_be_a_list_and_a_share_that_is_none_is_refused():
    X = np.random.default_rng(0).normal(size=(40, 3))
    mu = StackedMean(candidates=[Listed()]).fit(X)
    assert mu.embedding_.weights.sum() == pytest.approx(mu.weights_.sum())
    with pytest.raises(ValueError, match="ClusterJitter: share must be positive and finite, got 'half'"):
        StackedMean(candidates=[ClusterJitter(share="half")]).fit(X)


DEGENERATE = {
    "equal": np.ones((10, 2)),
    "one": np.ones((1, 2)),
    "two": np.array([[0.0, 1.0], [2.0, 0.0]]),
    "three": np.array([[0.0], [1.0], [5.0]]),
    "wide": np.random.default_rng(0).normal(size=(8, 60)),
    "constant column": np.c_[np.ones(15), np.arange(15.0)],
    "Cauchy": np.random.default_rng(0).standard_cauchy(size=(40, 2)) ** 3,
    "clusters of one": np.repeat(10.0 ** np.arange(12), 1)[:, None],
    "huge": 1e150 * np.random.default_rng(0).normal(size=(12, 2)),
    "tiny": 1e-150 * np.random.default_rng(0).normal(size=(12, 2)),
    "float32": np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32),
    "whole": np.arange(24).reshape(12, 2),
}


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_samples_have_a_defined_answer(name, kernel):
    X = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "bandwidth='median'")
        mu = StackedMean(kernel=kernel).fit(X)
        assert np.isfinite(mu.score_samples(X)).all()
        assert np.isfinite(mu.gain_)
        assert mu.weights_.min() >= 0
        assert mu.weights_.sum() <= 1 + 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "precomputed"}, "a kernel of rows is needed"),
        ({"candidates": ["kme"]}, "candidates must be a list"),
        ({"n_frequencies": 0}, "n_frequencies must be"),
        ({"candidates": [NuSteps(steps=(0,))]}, "steps must be"),
        ({"candidates": [WardMixtures(sizes=(1,))]}, "sizes must be"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        StackedMean(**arguments).fit(np.random.default_rng(0).normal(size=(9, 2)))


def test_the_display_shows_every_candidate():
    pytest.importorskip("matplotlib").use("agg")
    mu = StackedMean().fit(a_sample().X)
    display = StackDisplay.from_estimator(mu).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == mu.names_
    np.testing.assert_allclose([bar.get_width() for bar in display.ax_.patches], mu.weights_)


def test_a_gain_has_the_standard_error_of_its_folds():
    draws = [draw.X for draw in SyntheticFamily(5).draw(range(60), 40, 3)]
    fitted = [StackedMean(kernel=Gaussian(3.0), candidates=[GaussianFit()]).fit(X) for X in draws]
    w = np.array([0.3, 0.4, 0.3])  # fixed, so that nothing is chosen on the rows
    gains, errors = np.array([mu.moments_.gain(w) for mu in fitted]).T
    assert 0.8 * gains.std() < errors.mean() < 2.5 * gains.std()  # left-out terms share rows, which makes it large


def test_samples_that_fall_back_to_be_fitted_by_themselves_keep_their_random_state(monkeypatch):
    monkeypatch.setattr(_batch._Block, "_moments", lambda self, left_out: (np.full((2, 1, 1), np.nan), None))
    samples = np.random.default_rng(0).normal(size=(2, 20, 2))
    for X, seed, many in zip(samples, (3, 4), stacked_means(samples, Laplacian(), [3, 4]), strict=True):
        assert np.array_equal(many.weights, StackedMean(kernel=Laplacian(), random_state=seed).fit(X).weights_)
