"""The stacked mean: candidates against refits, weights against a solver, and gains."""

import pickle
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.integrate import simpson
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtri
from scipy.stats import rankdata
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from muhat import (
    Gaussian,
    KernelMean,
    Laplacian,
    Matern,
    Mixture,
    StackDisplay,
    StackedMean,
    SyntheticFamily,
)
from muhat.embedding import Embedding
from muhat.kernels import InverseMultiquadric, Linear, Polynomial, RationalQuadratic
from muhat.stacking import (
    Candidate,
    ClusterJitter,
    Folds,
    GaussianCopula,
    GaussianFit,
    IndependentBlocks,
    LeftOutMoments,
    MixedEmbedding,
    NuSteps,
    PlainMean,
    RandomFourierMoments,
    Recombination,
    StackSample,
    WardMixtures,
    _stack,
    default_candidates,
)
from muhat.stacking._candidates import mixture_of_clusters, wave_of_measure
from muhat.stacking._sample import cut, orthogonal_frequencies, waves_of
from muhat.stacking._span import MAX_DRAWS, MONTE_CARLO_BUDGET, draws_for
from muhat.stacking._stack import HeldOutGain, Stack, held_out_gain
from muhat.stacking._weights import RIDGE, SUM_BONUS
from paper._estimators import losses_of_auto
from paper._samples import exact_losses, gaussian_kernels

EXACT = [PlainMean(), NuSteps(), GaussianFit()]
"""The candidates that are left out exactly."""


def a_sample(n=24, d=3, kernel=None, masses=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.2][:d] + 5
    X[-1] = X[0]
    masses = np.full(n, 1 / n) if masses is None else masses
    return StackSample((kernel or Gaussian()).resolve(X), X, masses / masses.sum(), n)


def left_out_ways(sample, splits, seed=1):
    rng = np.random.default_rng(seed)
    folds = Folds.from_sample(sample, splits, rng)
    return folds, RandomFourierMoments(
        sample, orthogonal_frequencies(sample.kernel, 40, sample.X.shape[1], rng)
    )


@pytest.mark.parametrize("candidate", EXACT, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("splits", [None, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kernel", [Gaussian(), Laplacian(), Matern(0.3)], ids=lambda each: type(each).__name__
)
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
            np.testing.assert_allclose(wave, wave_of_measure(mixture, waves, ~rows)[0], atol=1e-9)


@pytest.mark.parametrize(
    "candidate", [IndependentBlocks(), ClusterJitter()], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize("splits", [None, 5])
def test_left_out_recombinations_equal_refitting_with_clusters_and_blocks_kept(candidate, splits):
    sample = a_sample(30, masses=np.linspace(1, 2, 30))
    folds, waves = left_out_ways(sample, splits)
    labels = candidate.labels(sample)
    for parts, waves_left in zip(
        candidate.parts(sample), candidate.left_out(sample, folds, waves), strict=True
    ):
        np.testing.assert_allclose(parts.sum(axis=0), 1)
        for rows, wave in zip(folds, waves_left, strict=True):
            left = sample.without(rows)
            refit = Recombination(left.X, left.masses, labels[~rows], parts)
            np.testing.assert_allclose(wave, wave_of_measure(refit, waves, ~rows)[0], atol=1e-12)


@pytest.mark.parametrize("splits", [None, 5])
def test_a_left_out_copula_equals_refitting_with_scores_kept(splits):
    sample = a_sample(30, masses=np.linspace(1, 2, 30))
    folds, waves = left_out_ways(sample, splits)
    candidate = GaussianCopula()
    (found,) = candidate.left_out(sample, folds, waves)
    for rows, wave in zip(folds, found, strict=True):
        refit = candidate.of_scores(sample.without(rows), sample.normal_scores[~rows])
        assert len(refit.X) == (~rows).sum()
        np.testing.assert_allclose(wave, wave_of_measure(refit, waves, ~rows)[0], atol=1e-12)


class TestCopula:
    """The columns' own distributions, with the dependence of normal ones."""

    @staticmethod
    def rows(n, rng):
        """Two lognormal columns, of normal ones with correlation 0.8, and rounded counts."""
        Z = (
            rng.normal(size=(n, 3))
            @ np.linalg.cholesky([[1, 0.8, 0], [0.8, 1, 0.3], [0, 0.3, 1]]).T
        )
        return np.c_[np.exp(Z[:, :2]), np.round(Z[:, 2])]

    @staticmethod
    def fitted(X, masses=None):
        masses = np.full(len(X), 1 / len(X)) if masses is None else masses / masses.sum()
        sample = StackSample(Gaussian(1.0), X, masses, len(X))
        return sample, GaussianCopula().fit(sample)[0]

    def test_it_is_the_law_if_that_is_a_copula(self):
        X = self.rows(20_000, np.random.default_rng(0))
        P = self.fitted(X)[1]
        assert P.correlation[0, 1] == pytest.approx(0.8, abs=0.02)
        assert P.correlation[0, 2] == pytest.approx(0, abs=0.03)
        omega = np.random.default_rng(1).normal(size=(50, 3))
        truth = waves_of(X @ omega.T).mean(axis=0)
        drawn = waves_of(P.draw(20_000, np.random.default_rng(2)) @ omega.T).mean(axis=0)
        np.testing.assert_allclose(drawn, truth, atol=0.03)
        np.testing.assert_allclose(P.characteristic_function(omega), truth, atol=0.1)

    def test_columns_keep_their_distributions(self):
        X = self.rows(50, np.random.default_rng(0))
        drawn = self.fitted(X)[1].draw(5000, np.random.default_rng(1))
        for column, values in zip(drawn.T[:2], np.sort(X.T)[:2], strict=True):
            below = column[:, None] < (values[1:] + values[:-1]) / 2
            np.testing.assert_allclose(below.mean(axis=0), np.arange(1, 50) / 50, atol=0.02)
        levels, counts = np.unique(X[:, 2], return_counts=True)
        at_level = np.isclose(drawn[:, 2:], levels).mean(axis=0)
        assert (np.abs(50 * at_level - counts) <= 2.01).all()  # the outermost rows reach beyond

    def test_scores_are_those_of_ranks_where_values_are_apart_or_tied(self):
        X = np.array([[3.0, 0], [1, 0], [2, 0], [2, 0], [9, 0], [5, 0]])
        sample = self.fitted(X)[0]
        expected = ndtri((rankdata(X[:, 0]) - 0.5) / 6)
        np.testing.assert_allclose(sample.normal_scores[:, 0], expected - expected.mean())
        np.testing.assert_allclose(sample.normal_scores[:, 1], 0, atol=1e-12)

    def test_masses_are_counts(self):
        X, counts = self.rows(30, np.random.default_rng(0)), np.arange(30) % 4 + 1
        sample, weighted = self.fitted(X, counts)
        repeated_sample, repeated = self.fitted(np.repeat(X, counts, axis=0))
        size = 1 / (weighted.masses**2).sum()
        off = ~np.eye(3, dtype=bool)
        ratio = size / (size + 1) / (counts.sum() / (counts.sum() + 1))
        np.testing.assert_allclose(weighted.correlation[off], ratio * repeated.correlation[off])
        np.testing.assert_allclose(
            np.repeat(sample.normal_scores, counts, axis=0), repeated_sample.normal_scores
        )

    def test_noise_does_not_move_it_where_values_of_unequal_mass_tie(self):
        rng = np.random.default_rng(0)
        X, masses = rng.integers(4, size=(40, 3)).astype(float), rng.uniform(0.2, 2, size=40)
        X[:, 1] = 1
        normals = rng.normal(size=(1000, 3))
        before = self.fitted(X, masses)[1]
        after = self.fitted(X + 1e-9 * rng.normal(size=X.shape), masses)[1]
        np.testing.assert_allclose(after.at(normals), before.at(normals), atol=1e-4)
        omega = rng.normal(size=(50, 3))
        np.testing.assert_allclose(
            after.characteristic_function(omega), before.characteristic_function(omega), atol=1e-6
        )

    def test_it_takes_part_with_2_to_100_columns(self):
        X = np.random.default_rng(0).normal(size=(20, 101))
        for d, expected in ((1, 0), (2, 1), (100, 1), (101, 0)):
            names = StackedMean(candidates=[GaussianCopula()]).fit(X[:, :d]).names_
            assert names == ["KME", "Gaussian copula"][: 1 + expected]

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", Linear()], ids=str)
    def test_degenerate_rows_have_a_copula(self, kernel):
        for X in (np.ones((9, 2)), np.arange(9.0)[:, None] * [1, -2], np.eye(2)):
            mu = StackedMean(kernel=kernel, candidates=[GaussianCopula()])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert np.isfinite(mu.fit(X).score_samples(X)).all()

    def test_it_moves_and_scales_with_its_rows(self):
        rng = np.random.default_rng(0)
        X, normals = self.rows(40, rng), rng.normal(size=(200, 3))
        P = self.fitted(X)[1]
        for unit, origin in ((1e150, 0.0), (1e-150, 0.0), (1.0, 1e6), (-1.0, 0.0)):
            moved = self.fitted(unit * X + origin)[1]
            np.testing.assert_allclose(moved.correlation, P.correlation, atol=1e-9)
            if unit > 0:
                at = (moved.at(normals) - origin) / unit
                np.testing.assert_allclose(at, P.at(normals), atol=1e-8)

    def test_neither_the_order_of_rows_nor_that_of_columns_matters(self):
        rng = np.random.default_rng(0)
        X, masses, normals = self.rows(40, rng), rng.uniform(size=40), rng.normal(size=(200, 3))
        P, order, columns = self.fitted(X, masses)[1], rng.permutation(40), [2, 0, 1]
        shuffled = self.fitted(X[order], masses[order])[1]
        np.testing.assert_allclose(shuffled.at(normals), P.at(normals), atol=1e-12)
        turned = self.fitted(X[:, columns], masses)[1]
        np.testing.assert_allclose(turned.correlation, P.correlation[np.ix_(columns, columns)])

    def test_correlations_are_positive_definite_however_columns_depend(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(30, 1))
        cases = (
            np.repeat(x, 100, axis=1),
            np.c_[x, -x, x**3],
            np.c_[x, np.ones(30), 1e-9 * x],
            np.repeat(rng.normal(size=(3, 2)), 10, axis=0),
            rng.normal(size=(10, 100)),
        )
        for X in cases:
            correlation = self.fitted(X)[1].correlation
            np.testing.assert_allclose(correlation, correlation.T, rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(np.diagonal(correlation), 1)
            assert np.linalg.eigvalsh(correlation).min() > 0.5 / (len(X) + 1)

    @pytest.mark.parametrize("rho", [0.0, 0.95])
    def test_it_does_no_harm_where_a_gaussian_is_right(self, rho):
        root = np.linalg.cholesky([[1, rho], [rho, 1]])
        P = Mixture([1.0], [[0.0, 0.0]], [root @ root.T])
        losses = []
        for seed in range(20):
            X = np.random.default_rng([3, seed]).normal(size=(20, 2)) @ root.T
            some = (default_candidates()[:-1], default_candidates())
            fits = [StackedMean(kernel=Gaussian(1.5), candidates=each).fit(X) for each in some]
            losses.append([mu.embedding_.loss(P) for mu in fits])
        without, with_it = np.mean(losses, axis=0)
        assert with_it < 1.02 * without

    def test_it_lowers_the_risk_on_skewed_columns_that_depend(self):
        population = self.rows(4000, np.random.default_rng(1))
        kernel = Gaussian(0.5 * Gaussian().resolve(population).bandwidth)
        truth = Embedding(kernel, population, np.full(4000, 1 / 4000))
        losses = []
        for seed in range(20):
            X = self.rows(50, np.random.default_rng([2, seed]))
            some = (default_candidates()[:-1], default_candidates())
            losses.append(
                [
                    StackedMean(kernel=kernel, candidates=each).fit(X).embedding_.distance(truth)
                    ** 2
                    for each in some
                ]
            )
        without, with_it = np.mean(losses, axis=0)
        assert with_it < 0.95 * without


def test_waves_are_exponentials():
    phases = np.r_[np.random.default_rng(0).normal(size=1000) * 100, np.pi * np.arange(-4, 5), 1e9]
    np.testing.assert_allclose(waves_of(phases), np.exp(1j * phases), atol=1e-13)


class TestRowsThatRepeat:
    """Rows count as often as they are there."""

    X = np.random.default_rng(0).normal(size=(40, 3))[
        np.random.default_rng(1).integers(40, size=40)
    ]

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian", Linear()], ids=str)
    def test_weights_of_one_are_no_weights(self, kernel):
        plain = StackedMean(kernel=kernel).fit(self.X)
        ones = StackedMean(kernel=kernel).fit(self.X, sample_weight=np.ones(40))
        np.testing.assert_array_equal(ones.candidate_weights_, plain.candidate_weights_)
        np.testing.assert_array_equal(ones.score_samples(self.X), plain.score_samples(self.X))
        assert ones.gain_ == plain.gain_

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_whole_weights_are_counts(self, kernel):
        counts = np.random.default_rng(2).integers(0, 4, size=40)
        weighted = StackedMean(kernel=kernel).fit(self.X, sample_weight=counts)
        repeated = StackedMean(kernel=kernel).fit(np.repeat(self.X, counts, axis=0))
        np.testing.assert_array_equal(weighted.candidate_weights_, repeated.candidate_weights_)
        np.testing.assert_array_equal(
            weighted.score_samples(self.X), repeated.score_samples(self.X)
        )
        assert weighted.n_samples_seen_ == counts.sum()

    def test_other_weights_are_masses_of_which_only_ratios_matter(self):
        masses = np.random.default_rng(2).uniform(0.5, 2, size=40)
        once = StackedMean(kernel=Gaussian(1.0)).fit(self.X, sample_weight=masses)
        thrice = StackedMean(kernel=Gaussian(1.0)).fit(self.X, sample_weight=3 * masses)
        np.testing.assert_allclose(once.candidate_weights_, thrice.candidate_weights_, atol=1e-9)
        equal = StackedMean(kernel=Gaussian(1.0)).fit(self.X, sample_weight=np.full(40, 0.1))
        np.testing.assert_allclose(
            equal.candidate_weights_,
            StackedMean(kernel=Gaussian(1.0)).fit(self.X).candidate_weights_,
            atol=1e-9,
        )

    def test_counts_too_large_to_repeat_are_masses(self):
        counts = np.r_[np.full(20, 10_000), np.full(20, 20_000)]
        mu = StackedMean(kernel=Gaussian(1.0)).fit(self.X, sample_weight=counts)
        ratios = StackedMean(kernel=Gaussian(1.0)).fit(self.X, sample_weight=counts / 3e6)
        np.testing.assert_allclose(mu.candidate_weights_, ratios.candidate_weights_, atol=1e-9)

    def test_a_copy_that_is_left_out_leaves_the_others(self):
        """The moments of KME, by loops."""
        K, n = Gaussian(1.0)(self.X), len(self.X)
        mu = StackedMean(kernel=Gaussian(1.0), candidates=[], n_frequencies=None).fit(self.X)
        inner, cross = [], []
        for i in range(n):
            left = np.arange(n) != i
            inner.append(K[np.ix_(left, left)].mean())
            cross.append(K[i, left].mean())
        assert mu.moments_.inner[0, 0] == pytest.approx(np.mean(inner), abs=1e-12)
        assert mu.moments_.cross[0] == pytest.approx(np.mean(cross), abs=1e-12)


def _grid(shape, scale):
    return np.round(scale * np.random.default_rng(3).normal(size=shape))


TIED = {
    "drawn with replacement": TestRowsThatRepeat.X,
    "a grid": _grid((60, 2), 2.0),
    "a grid of one column": _grid((60, 1), 4.0),
    "a lattice": np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), -1).reshape(-1, 2),
    "a cube": np.stack(np.meshgrid(*[[0.0, 1.0]] * 5), -1).reshape(-1, 5),
    "a constant column": np.c_[np.random.default_rng(0).normal(size=(40, 3)), np.ones(40)],
    "two values": np.repeat([[0.0], [1.0]], (25, 25), axis=0),
    "ten values": np.arange(50.0)[:, None] % 10,
    "in folds": _grid((120, 2), 3.0),
}


@pytest.mark.parametrize("name", TIED)
def test_noise_that_the_kernel_cannot_see_does_not_move_it(name):
    X = TIED[name]
    for share in (1.0, 0.3):
        kernel = Gaussian(share * Gaussian().resolve(X).bandwidth)
        mu = StackedMean(kernel=kernel).fit(X).embedding_
        for seed in range(2):
            noise = 1e-9 * np.random.default_rng(seed).normal(size=X.shape)
            assert (StackedMean(kernel=kernel).fit(X + noise).embedding_ - mu).norm() < 1e-6


@pytest.mark.parametrize("value", [1e15, 2.0**62, -1e8])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=repr)
def test_equal_rows_have_their_own_mean_however_large_they_are(value, kernel):
    assert StackedMean(kernel=kernel).fit(
        np.full((20, 3), value)
    ).embedding_.norm() == pytest.approx(1, abs=1e-12)
    rows = value + np.arange(30.0)[:, None] % 7 * 1024
    near = StackedMean(kernel=Gaussian(1024.0)).fit(rows - value)
    far = StackedMean(kernel=Gaussian(1024.0)).fit(rows)
    assert far.embedding_.norm() == pytest.approx(near.embedding_.norm(), abs=1e-9)


@pytest.mark.parametrize("levels", [2, 3, 8])
def test_few_values_keep_the_plain_mean(levels):
    X = np.random.default_rng(0).integers(levels, size=(50, 1)).astype(float)
    mu = StackedMean(kernel=Gaussian(1.0)).fit(X)
    np.testing.assert_array_equal(mu.candidate_weights_, np.eye(len(mu.candidate_weights_))[0])
    assert mu.gain_ == pytest.approx(0, abs=1e-12)


def test_distinct_rows_are_counted_up_to_what_the_kernel_sees():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    for noise in (0.0, 1e-9):
        X = np.repeat(rows, 3, axis=0)
        X = X + noise * np.random.default_rng(1).normal(size=X.shape)
        sample = StackSample(Gaussian(1.0), X, np.full(60, 1 / 60), 60)
        assert sample.n_distinct == pytest.approx(20, abs=1e-3)
        assert sample.distinct_share == pytest.approx(1 / 3, abs=1e-4)
    assert StackSample(Gaussian(1.0), rows, np.full(20, 1 / 20), 20).n_distinct == pytest.approx(
        20, abs=1e-3
    )
    many = np.arange(3000.0)[:, None] % 5
    assert StackSample(
        Gaussian(1.0), many, np.full(3000, 1 / 3000), 3000
    ).n_distinct == pytest.approx(5, abs=1e-3)


def test_the_total_mass_is_one_unless_it_is_free():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for kernel in ("gaussian", "laplacian"):
        assert StackedMean(kernel=kernel).fit(X).embedding_.weights.sum() == pytest.approx(
            1, abs=1e-9
        )
    free = StackedMean(unit_mass=False, kernel=Gaussian(0.5)).fit(X)
    assert free.candidate_weights_.sum() <= 1 + 1e-9
    assert free.embedding_.weights.sum() < 0.999


@pytest.mark.parametrize(
    "parts", [[[1, 0], [0, 1]], [[1, 1], [0.5, 0.5], [-0.5, -0.5]]], ids=["blocks", "jitter"]
)
def test_recombinations_are_all_ways_to_put_rows_of_a_cluster_together(parts):
    X, masses, labels = (
        np.array([[0, 0], [1, 3], [2, 5], [9.0, 9]]),
        np.array([0.1, 0.3, 0.4, 0.2]),
        [0, 0, 0, 1],
    )
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
    names = StackedMean().fit(X).names_
    assert names[-3:] == ["2 blocks of features", "3 blocks of features", "Gaussian copula"]
    assert (
        StackedMean(kernel="laplacian").fit(X).names_[-1] == "jitter"
    )  # where Gaussians have no closed form
    alone = StackedMean(candidates=[ClusterJitter()]).fit(X)
    assert alone.names_ == ["KME", "jitter"]
    assert len(alone.embedding_.points) > len(X)


def test_draws_add_no_more_to_the_risk_than_they_may():
    masses = np.array([0.1, 0.5, 0.2])
    added = (masses**2 / draws_for(20, masses)).sum() * 20
    assert 0.9 * MONTE_CARLO_BUDGET < added < 1.0001 * MONTE_CARLO_BUDGET
    assert sum(draws_for(10**6, masses)) <= MAX_DRAWS + len(masses)
    assert draws_for(20, masses) == draws_for(20, masses + 1e-7 * np.array([1, -1, 1]))


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(2.0), RationalQuadratic(2.0)], ids=repr)
def test_moments_by_frequencies_are_those_by_refits_up_to_their_error(kernel):
    sample, candidates = a_sample(kernel=kernel), EXACT
    folds = Folds.from_sample(sample, None, np.random.default_rng(0))
    exact = LeftOutMoments.from_refits(candidates, sample, folds, 1, np.random.default_rng(0))
    found = []
    for seed in range(8):
        frequencies = orthogonal_frequencies(kernel, 256, 3, np.random.default_rng(seed))
        found.append(
            LeftOutMoments.from_waves(
                candidates, sample, folds, RandomFourierMoments(sample, frequencies)
            )
        )
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
@given(st.integers(1, 8), st.integers(0, 10_000), st.floats(0, 2), st.booleans())
def test_weights_are_the_minimum(count, seed, shift, free):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, count + 1))
    inner, cross = root @ root.T, rng.normal(size=count) + shift
    inner[0, 0] += abs(rng.normal() + cross[0])
    masses = None if free else np.append(1, rng.uniform(0.5, 1, size=count - 1))
    moments = LeftOutMoments(inner[None], cross[None], np.ones(1))
    w = moments.best_weights(masses)
    assert w.min() >= 0
    if free:
        assert w.sum() <= 1 + 1e-9
    else:
        assert masses @ w == pytest.approx(1)

    def objective(w):
        risk = max(moments.risk, 0)
        bonus = 2 * SUM_BONUS * risk * w.sum() if free else 0
        return moments.score(w) + RIDGE * risk * ((w - 1 / count) ** 2).sum() - bonus

    total = (
        {"type": "ineq", "fun": lambda w: 1 - w.sum()}
        if free
        else {"type": "eq", "fun": lambda w: masses @ w - 1}
    )
    best = minimize(
        objective, np.full(count, 1 / count), bounds=[(0, 2)] * count, constraints=total, tol=1e-12
    )
    assert objective(w) <= best.fun + 1e-6 * (1 + abs(best.fun))


def test_means_of_gaussians_under_the_exponential_kernel_are_those_of_its_own_closed_form():
    def of_one(x, mean, variance, sigma):  # E exp(−|x − Y|/σ)
        s, gap = variance**0.5, x - mean
        sides = [
            np.exp(g / sigma + variance / (2 * sigma**2) + log_ndtr(-g / s - s / sigma))
            for g in (gap, -gap)
        ]
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
    assert P.inner(kernel, P) == pytest.approx(
        double.mean(kernel, np.array([[-1.0]]))[0], abs=1e-12
    )


class TestMixedEmbedding:
    """Points and Gaussians, mixed."""

    kernel = Gaussian(1.3)
    rng = np.random.default_rng(0)
    atoms = Embedding(kernel, rng.normal(size=(6, 2)), rng.normal(size=6))
    gaussians = Mixture(
        [0.5, 0.5], rng.normal(size=(2, 2)), np.stack([np.diag([0.3, 1.0]), np.eye(2)])
    )
    f = MixedEmbedding(atoms, gaussians, np.array([0.7, -0.2]))

    def test_values_and_inner_products_are_those_of_many_draws(self):
        each = zip(self.gaussians.means, self.gaussians.covariances, strict=True)
        draws = [Mixture([1.0], [mean], [S]).sample(40_000, 1) for mean, S in each]
        points = np.concatenate([self.atoms.points, *draws])
        weights = np.concatenate(
            [self.atoms.weights, np.full(40_000, 0.7 / 40_000), np.full(40_000, -0.2 / 40_000)]
        )
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
    losses = []
    for place, (draw, kernel) in enumerate(zip(draws, kernels, strict=True)):
        mu = StackedMean(kernel=kernel, random_state=place).fit(draw.X)
        losses.append(draw.distribution.squared_distance(mu.embedding_))
    assert np.mean(losses) < min(each.losses.mean() for each in filters)


def test_trees_are_cut_as_scipy_cuts_them():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(30, 2)) for _ in range(6)]
    samples = [
        X if place % 2 else np.round(X) for place, X in enumerate(samples)
    ]  # some with heights that are tied
    for X in samples:
        tree = linkage(X, "ward")
        for size, labels in zip([2, 4, 8], cut(tree, [2, 4, 8]), strict=True):
            expected = fcluster(tree, size, "maxclust")
            np.testing.assert_array_equal(labels[:, None] == labels, expected[:, None] == expected)
            assert set(labels) == set(range(labels.max() + 1))


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(), Gaussian(1.0) + Matern(1.0), "rbf"], ids=str
)
def test_any_kernel_works(kernel):
    X = a_sample(40).X
    mu = StackedMean(kernel=kernel).fit(X)
    assert np.isfinite(mu.score(X))
    assert -1 < mu.gain_ <= 1


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
    np.testing.assert_array_equal(whole.candidate_weights_, part.candidate_weights_)
    assert whole.embedding_.distance(part.embedding_) < 1e-7


@pytest.mark.parametrize("n", [101, 2500])
def test_many_rows_are_left_out_in_folds(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    mu = StackedMean(kernel=Gaussian(0.3)).fit(X)
    P = Mixture([1.0], np.zeros((1, 2)), np.eye(2)[None])
    assert mu.embedding_.loss(P) < KernelMean(kernel=Gaussian(0.3), filter="kme").fit(
        X
    ).embedding_.loss(P)


@dataclass
class Standard(Candidate):
    """N(0, I), whatever the sample."""

    def names(self, sample):
        return ["standard normal"]

    def fit(self, sample):
        d = sample.X.shape[1]
        return [Mixture(np.ones(1), np.zeros((1, d)), np.eye(d)[None])]


def test_the_way_from_the_plain_mean_is_damped_as_the_default_rule_counts_bias():
    """By a search for the best share of the way, and by the definition of D with loops."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    moments = LeftOutMoments((root @ root.T)[None], rng.normal(size=(1, 4)), np.ones(1))
    w = np.array([0.1, 0.2, 0.3, 0.4])
    h = w - np.eye(4)[0]
    along, squared = (moments.cross - moments.inner[0]) @ h, h @ moments.inner @ h
    shares = np.linspace(0, 1, 100_001)
    for factor in (0.05, 1.0, 1.7, 40.0):
        searched = shares[np.argmax(2 * shares * along - factor * shares**2 * squared)]
        assert moments.damping(w, factor) == pytest.approx(searched, abs=2e-5)
    assert moments.damping(w, np.inf) == 0
    X, masses = rng.normal(size=(6, 2)), np.array([1, 2, 1, 3, 1, 2]) / 10
    K = Gaussian(1.0)(X)
    mean = sum(m * K[:, j] for j, m in enumerate(masses))
    centred = [[K[i, j] - mean[i] - mean[j] + masses @ mean for j in range(6)] for i in range(6)]
    trace = sum(m * centred[i][i] for i, m in enumerate(masses))
    D = trace**2 / sum(
        masses[i] * masses[j] * centred[i][j] ** 2 for i in range(6) for j in range(6)
    )
    assert StackSample(Gaussian(1.0), X, masses, 6).bias_factor == pytest.approx(
        D / (D - 2) if D > 2 else np.inf
    )


def test_a_candidate_of_ones_own_takes_part():
    X = np.random.default_rng(0).normal(size=(40, 3))
    mu = StackedMean(candidates=[*default_candidates(), Standard()]).fit(X)
    assert mu.names_[-1] == "standard normal"
    assert mu.candidate_weights_[-1] == mu.candidate_weights_[1:].max() > 0.2
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
    assert mu.embedding_.weights.sum() == pytest.approx(1)
    with pytest.raises(
        ValueError, match="ClusterJitter: share must be positive and finite, got 'half'"
    ):
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
        assert mu.candidate_weights_.min() >= 0
        assert mu.embedding_.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unit_mass": "yes"}, "unit_mass must be True or False"),
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


def test_the_display_shows_every_candidate_that_contributes():
    pytest.importorskip("matplotlib").use("agg")
    mu = StackedMean().fit(a_sample().X)
    display = StackDisplay.from_estimator(mu).plot()
    drawn = [
        place
        for place in np.argsort(-mu.candidate_weights_)
        if mu.candidate_weights_[place] > 0.0005
    ]
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [mu.names_[place] for place in drawn]
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, mu.candidate_weights_[drawn])


def test_a_gain_is_that_of_refits_scored_on_folds_that_they_have_not_seen(monkeypatch):
    """By loops and inner products in the RKHS; the fast one differs by its random frequencies."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    kernel, candidates = Gaussian(2.0), EXACT
    sample = StackSample(kernel, X, np.full(30, 1 / 30), 30)
    differences, risks = [], []
    rng = np.random.default_rng(0)
    for rows in Folds.from_sample(sample, 5, rng):
        left = StackSample(kernel, X[~rows], np.full(24, 1 / 24), 24)
        stack = Stack.from_sample(candidates, left, 20_000, True, rng)
        plain = Embedding(kernel, left.X, left.masses)
        mu = 0 * plain
        for w, m in zip(stack.weights, stack.measures, strict=True):
            is_mixture = isinstance(m, Mixture)
            part = (
                MixedEmbedding(0 * plain, m, m.weights)
                if is_mixture
                else Embedding(kernel, left.X, m)
            )
            mu = mu + w * part
        for x in X[rows]:
            point = Embedding(kernel, x[None], np.ones(1))
            differences.append(plain.distance(point) ** 2 - mu.distance(point) ** 2)
            risks.append(plain.squared_norm() - plain.inner(point))
    gain = np.mean(differences) / np.mean(risks)
    odds = 0.8 * gain / (1 - gain)
    monkeypatch.setattr(_stack, "N_SCORING_FREQUENCIES", 50_000)
    found = held_out_gain(candidates, sample, 20_000, True)
    assert found.gain == pytest.approx(odds / (1 + odds), abs=0.02)
    assert 0 < found.error < 0.5


def test_a_gain_is_that_of_the_last_fit():
    mu = StackedMean()
    with pytest.raises(NotFittedError):
        mu.gain_  # noqa: B018
    first = mu.fit(np.random.default_rng(0).normal(size=(30, 3))).gain_
    assert mu.fit(np.random.default_rng(1).normal(size=(30, 3))).gain_ != first


def test_a_verdict_says_no_more_than_two_standard_errors_allow():
    mu = StackedMean().fit(np.random.default_rng(0).normal(size=(60, 10)))
    for gain, error, best, words in [
        (0.11, 0.04, 2.0, "is estimated to lower the expected squared error by 11.0 %"),
        (
            0.11,
            0.04,
            20.0,
            "(standard error 4.0 %; with the best single filter it is 20.0 % lower, "
            "standard error 5.0 %)",
        ),
        (-0.007, 0.047, 2.0, "It is not clear whether the stacked mean lowers the expected"),
        (-0.2, 0.05, 2.0, "raises the expected squared error"),
        (1.0, 0.09, 38.3, "estimated to remove nearly all of the expected squared error"),
    ]:
        vars(mu)["_held_out"] = HeldOutGain(gain, error)
        assert words in mu.verdict(best, 5.0)


@pytest.mark.parametrize("n_frequencies", [200, None])
@pytest.mark.filterwarnings("error")
def test_scales_are_right_or_refused_in_a_sentence(n_frequencies):
    X = np.random.default_rng(0).normal(size=(30, 2))
    plain = StackedMean(n_frequencies=n_frequencies).fit(X)
    for scale in (2.0**480, 2.0**-480):
        scaled = StackedMean(n_frequencies=n_frequencies).fit(scale * X)
        np.testing.assert_allclose(
            scaled.candidate_weights_, plain.candidate_weights_, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            scaled.score_samples(scale * X), plain.score_samples(X), rtol=1e-9
        )
    with pytest.raises(
        ValueError, match="whose squared distances are finite are needed, got a column that spans"
    ):
        StackedMean(n_frequencies=n_frequencies).fit(1e200 * X)
    with pytest.raises(ValueError, match="a bandwidth of at least 1e-150 is needed"):
        StackedMean(n_frequencies=n_frequencies).fit(1e-200 * X)
