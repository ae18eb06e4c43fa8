"""The radius of a kernel mean: its formulas, the limit law, and coverage."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from catalogue import SEED
from muhat import Gaussian, Kernel, KernelMean, Linear, Nystrom, SyntheticFamily
from muhat._radius import METHODS, weighted_chi_square_quantile

X = np.random.default_rng(SEED).normal(size=(60, 2))


class Signed(Kernel):
    """k(x, y) with the sign of x_0 y_0: bounded by one, and as often negative."""

    positive_semidefinite = True
    bound = 1.0

    def __call__(self, X, Y=None):
        Y = X if Y is None else Y
        return Gaussian(1.5)(X, Y) * np.sign(X[:, :1] * Y[:, 0])


MU = KernelMean(kernel=Gaussian(1.5), filter="kme").fit(X)


def test_bounds_are_their_formulas():
    K = Gaussian(1.5)(X)
    pairs = (1 - K)[~np.eye(60, dtype=bool)].mean()  # of ‖k(x, ·) − k(y, ·)‖²/2, without bias
    L2, L4 = log(2 / 0.1), log(4 / 0.1)
    expected = {
        "mcdiarmid": sqrt(1 / 60) + sqrt(2) * sqrt(log(1 / 0.1) / 120),
        "bernstein": sqrt(2 * L2 / 60) + 4 / 3 * L2 / 60,
        "empirical-bernstein": sqrt(2 * pairs * L4 / 60) + 16 / 3 * L4 / 60,
    }
    for method, value in expected.items():
        assert MU.radius(0.9, method) == pytest.approx(value, rel=1e-12)
    assert MU.radius(0.9, "bernstein", variance=0.3) == pytest.approx(
        sqrt(0.6 * L2 / 60) + 4 / 3 * L2 / 60
    )
    scaled = KernelMean(kernel=4 * Gaussian(1.5), filter="kme").fit(X)
    for method in METHODS:
        assert scaled.radius(0.9, method) == pytest.approx(2 * MU.radius(0.9, method), rel=1e-6)
    assert MU.radius(0.99) > MU.radius() == MU.radius(0.95, "empirical-bernstein")


def test_a_kernel_that_may_be_negative_has_a_larger_diameter():
    K = Gaussian(1.5)(X) * np.sign(X[:, :1] * X[:, 0])
    mu = KernelMean(kernel=Signed(), filter="kme").fit(X)
    v, L = (1 - K)[~np.eye(60, dtype=bool)].mean(), log(4 / 0.05)
    assert mu.radius() == pytest.approx(
        sqrt(2 * v * L / 60) + (4 * sqrt(2) + 4 / 3) * L / 60, rel=1e-9
    )


@pytest.mark.parametrize(
    "gamma", [[1.0], [1.0, 1e-3], [1.0] * 4, [0.7, 0.2, 0.1], 0.8 ** np.arange(40)]
)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_quantiles_of_the_limit_law_are_those_of_draws(gamma, level):
    gamma = np.sort(np.asarray(gamma))
    found = weighted_chi_square_quantile(gamma, gamma.sum() + 0.5, level) - 0.5
    if np.ptp(gamma) == 0:
        assert found == pytest.approx(chi2(len(gamma)).ppf(level), rel=2e-4)
    draws = np.random.default_rng(SEED).chisquare(1, size=(100_000, len(gamma))) @ gamma
    assert np.mean(draws <= found) == pytest.approx(
        level, abs=4 * sqrt(level * (1 - level) / 100_000)
    )


def test_the_limit_law_has_the_eigenvalues_of_the_centred_gram_matrix():
    K = Gaussian(1.5)(X)
    H = np.eye(60) - 1 / 60
    gamma = np.linalg.eigvalsh(H @ K @ H) / 59
    expected = sqrt(weighted_chi_square_quantile(np.maximum(gamma, 0), gamma.sum(), 0.95) / 60)
    assert MU.radius(method="asymptotic") == pytest.approx(expected, rel=1e-4)
    on_landmarks = KernelMean(kernel=Gaussian(1.5), filter="kme", gram=Nystrom(60)).fit(X)
    for method in METHODS:
        assert on_landmarks.radius(method=method) == pytest.approx(
            MU.radius(method=method), rel=1e-3
        )


@pytest.mark.parametrize("n", [2, 5, 20])
@pytest.mark.parametrize("filter", ["kme", "f-kmse", "s-kmse"])
@pytest.mark.parametrize("method", METHODS[:-1])
def test_no_radius_is_larger_than_the_space_allows(n, filter, method):
    rows = X[:n]
    mu = KernelMean(kernel=4 * Gaussian(1.5), filter=filter).fit(rows)
    signed = KernelMean(kernel=Signed(), filter=filter).fit(rows)
    assert mu.radius(0.999, method) <= sqrt(2) * 2 * (1 + np.maximum(-mu.weights_, 0).sum()) ** 0.5
    assert signed.radius(0.999, method) <= 2


def test_the_largest_radius_reaches_every_distribution():
    mu = KernelMean(kernel=Gaussian(1.5), filter="kme").fit(X[:3])
    far = (
        KernelMean(kernel=Gaussian(1.5), filter="kme").fit(X[:1] + 1e3).embedding_
    )  # all of P in one place
    assert mu.radius(0.999) == pytest.approx(mu.embedding_.distance(far), rel=1e-9)


def test_a_shrunk_mean_is_further_away_by_what_it_was_moved():
    shrunk = KernelMean(kernel=Gaussian(1.5), filter="f-kmse").fit(X)
    moved = shrunk.embedding_.distance(MU.embedding_)
    assert moved > 0
    for method in METHODS:
        assert shrunk.radius(method=method) == pytest.approx(
            MU.radius(method=method) + moved, rel=1e-9
        )


def test_the_truth_is_within_the_radius_as_often_as_is_promised():
    """A small version of the experiment radius; the bounds are far from tight."""
    for n, draws in ((20, 50), (100, 100)):
        covered = dict.fromkeys(METHODS, 0)
        for draw in SyntheticFamily(20).draw(range(draws), n, SEED):
            mu = KernelMean(filter="kme").fit(draw.X)
            loss = draw.distribution.squared_distance(mu.embedding_)
            for method in METHODS:
                covered[method] += loss <= mu.radius(method=method) ** 2
        asymptotic = covered.pop("asymptotic") / draws
        assert set(covered.values()) == {draws}
        assert abs(asymptotic - 0.95) < 0.06


@pytest.mark.parametrize(
    ("mu", "arguments", "message"),
    [
        (MU, {"method": "hoeffding"}, "unknown name 'hoeffding'|'hoeffding'"),
        (MU, {"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
        (
            MU,
            {"confidence": 1 - 1e-9, "method": "asymptotic"},
            "the limiting distribution is known only up to a confidence of 1 − 1e-06",
        ),
        (MU, {"confidence": "x"}, "confidence must be positive and finite, got 'x'"),
        (MU, {"variance": 1.0}, "variance can be given only with 'bernstein' and 'mcdiarmid'"),
        (
            KernelMean(kernel=Linear(), filter="kme").fit(X),
            {},
            "needs a kernel with a bound on .*, got Linear",
        ),
        (
            KernelMean(filter="kme").fit(X, sample_weight=np.arange(60)),
            {},
            "at least 2 rows, all of the same weight, are needed",
        ),
        (KernelMean(filter="kme", kernel=Gaussian(1.0)).fit(X[:1]), {}, "at least 2 rows"),
        (
            KernelMean(filter="kme", gram="random-features").fit(X),
            {},
            "features whose error in the norm of the RKHS is known are needed",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(mu, arguments, message):
    with pytest.raises(ValueError, match=message):
        mu.radius(**arguments)


def test_a_confidence_of_next_to_nothing_has_a_small_radius():
    assert 0 <= MU.radius(1e-9, "asymptotic") <= MU.radius(0.01, "asymptotic")
