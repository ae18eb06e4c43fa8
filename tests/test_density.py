"""MatchedMixture: objective by other code and draws, gradient by differences, fits."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from catalogue import SAMPLES, SEED
from muhat import Embedding, KernelMean
from muhat import density as module
from muhat.density import MatchedMixture, _Objective, kmeans_start
from muhat.kernels import Gaussian, Laplacian, Mixture, Scaled

KERNELS = {
    "gaussian": Gaussian(1.3),
    "multiple": 2.5 * Gaussian(0.7),
    "sum": Gaussian(0.5) + Gaussian(2.0),
    "sum of multiples": 0.5 * (3 * Gaussian(1.0) + Gaussian(4.0)) + Gaussian(0.3),
}

CANCELLED = 1e-11
"""Of ‖μ_Q − μ‖², relative to what cancels in it."""
DIFFERENCE = 1e-5
"""The step of a central difference, the cube root of the rounding unit."""
DIFFERENCED = 1e-7
"""The accuracy of a derivative by it, relative to what cancels."""
SAME_FIT = 1e-3
"""Two fits of one problem that differ by rounding, in units of the points' spread: both stop by
tol."""

TRUTH = Mixture.isotropic([0.3, 0.7], [[-3.0, 0.0], [2.0, 1.0]], [0.5, 1.5])
X = TRUTH.sample(80, SEED)
FAST = {"n_init": 3, "random_state": 0}
"""For tests in which the start does not matter."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Hundreds of small fits, for which threads wait for each other longer than they work."""
    with threadpool_limits(1):
        yield


def fitted(n_components=2, **parameters):
    return MatchedMixture(n_components, **FAST | parameters).fit(X)


def random_mixture(rng, r, d):
    return Mixture.isotropic(
        rng.dirichlet(np.ones(r)), 2 * rng.normal(size=(r, d)), rng.gamma(1.0, size=r) + 0.01
    )


def random_embedding(rng, n, d, kernel):
    return Embedding(kernel, rng.normal(size=(n, d)), rng.normal(size=n))


def at(objective, mixture):
    return module._vector(mixture, objective.centre, objective.unit)


def cancels(objective, embedding):
    """The size of the parts of ‖μ_Q − μ‖²/‖μ‖²."""
    return (
        embedding.kernel.bound * (1 + np.abs(embedding.weights).sum()) ** 2 / objective.squared_norm
    )


def central_difference(objective, vector):
    steps = DIFFERENCE * np.eye(len(vector))
    return np.array(
        [objective(vector + step)[0] - objective(vector - step)[0] for step in steps]
    ) / (2 * DIFFERENCE)


@st.composite
def problems(draw):
    """An embedding with weights of either sign, and a mixture near it or far."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r, d, n = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(2, 10))
    scale, shift, far = (
        10.0 ** draw(st.integers(*between)) for between in ((-6, 6), (-2, 4), (-2, 2))
    )
    drawn = random_embedding(rng, n, d, Gaussian(1.0))
    kernel = Gaussian(scale * draw(st.floats(0.2, 5)))
    if draw(st.booleans()):
        kernel = draw(st.floats(0.1, 10)) * Gaussian(scale * draw(st.floats(0.2, 5))) + kernel
    weights, means, variances = (
        rng.dirichlet(np.ones(r)),
        far * rng.normal(size=(r, d)),
        rng.gamma(1.0, size=r),
    )
    moved = Mixture.isotropic(weights, scale * (means + shift), scale**2 * (variances + 0.01))
    return Embedding(kernel, scale * (drawn.points + shift), drawn.weights), moved


class TestTheObjective:
    @settings(max_examples=150, deadline=None)
    @given(problems())
    def test_is_the_squared_distance_of_the_closed_form_over_the_squared_norm(self, problem):
        embedding, mixture = problem
        objective = _Objective.from_embedding(embedding)
        value, _ = objective(at(objective, mixture))
        expected = mixture.squared_distance(embedding) / embedding.squared_norm()
        assert value == pytest.approx(expected, abs=1e-8 * cancels(objective, embedding))

    @pytest.mark.parametrize("name", KERNELS)
    def test_is_that_of_the_closed_form_to_rounding_where_points_are_near_the_origin(self, name):
        rng = np.random.default_rng(SEED)
        for d in (1, 3, 8):
            embedding, mixture = (
                random_embedding(rng, 12, d, KERNELS[name]),
                random_mixture(rng, 3, d),
            )
            objective = _Objective.from_embedding(embedding)
            expected = mixture.squared_distance(embedding) / embedding.squared_norm()
            assert objective(at(objective, mixture))[0] == pytest.approx(
                expected, abs=CANCELLED * cancels(objective, embedding)
            )

    @pytest.mark.parametrize("name", KERNELS)
    def test_is_the_average_over_draws_from_the_mixture(self, name):
        rng = np.random.default_rng(SEED)
        embedding, mixture = random_embedding(rng, 6, 2, KERNELS[name]), random_mixture(rng, 3, 2)
        objective = _Objective.from_embedding(embedding)
        one, other = mixture.sample(1500, rng), mixture.sample(1500, rng)
        of_pairs = embedding.kernel(one, other).diagonal() - embedding(one) - embedding(other)
        squared_distances = of_pairs + embedding.squared_norm()
        value = objective.squared_norm * objective(at(objective, mixture))[0]
        assert abs(squared_distances.mean() - value) < 4 * squared_distances.std() / np.sqrt(1500)

    @settings(max_examples=150, deadline=None)
    @given(problems())
    def test_has_the_gradient_of_its_central_differences(self, problem):
        embedding, mixture = problem
        objective = _Objective.from_embedding(embedding)
        vector = at(objective, mixture)
        gap = np.abs(objective(vector)[1] - central_difference(objective, vector)).max()
        assert gap < 1e-5 * cancels(objective, embedding)

    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize(("r", "d"), [(1, 1), (3, 1), (1, 4), (4, 3)])
    def test_has_that_gradient_to_many_digits_for_every_kernel(self, name, r, d):
        rng = np.random.default_rng(SEED + r + d)
        embedding = random_embedding(rng, 12, d, KERNELS[name])
        objective = _Objective.from_embedding(embedding)
        vector = at(objective, random_mixture(rng, r, d))
        gap = np.abs(objective(vector)[1] - central_difference(objective, vector)).max()
        assert gap < DIFFERENCED * cancels(objective, embedding)

    def test_has_no_slope_where_a_component_is_out_of_the_kernels_sight(self):
        embedding = Embedding(Gaussian(1.0), X, np.full(len(X), 1 / len(X)))
        objective = _Objective.from_embedding(embedding)
        value, gradient = objective(at(objective, Mixture.isotropic([1.0], [[1e9, 0.0]], [1.0])))
        assert value == pytest.approx(1 + 1 / 3 / objective.squared_norm)
        assert np.abs(gradient[1:-1]).max() == 0

    def test_is_the_same_far_from_the_origin(self):
        weights = np.random.default_rng(SEED).normal(size=len(X))
        near, far = np.round(X, 3), np.round(X, 3) + 2.0**20
        values = []
        for points, shift in ((near, 0.0), (far, 2.0**20)):
            objective = _Objective.from_embedding(Embedding(Gaussian(0.5), points, weights))
            mixture = Mixture.isotropic(TRUTH.weights, TRUTH.means + shift, [0.5, 1.5])
            values.append(objective(at(objective, mixture)))
        assert values[1][0] == pytest.approx(values[0][0], rel=1e-7)
        np.testing.assert_allclose(values[1][1], values[0][1], atol=1e-7)

    def test_does_not_see_points_of_weight_zero(self):
        weights = np.append(np.full(len(X), 1 / len(X)), 0.0)
        with_another = Embedding(Gaussian(1.0), np.vstack([X, [[1e3, 1e3]]]), weights)
        one, other = (
            _Objective.from_embedding(with_another),
            _Objective.from_embedding(Embedding(Gaussian(1.0), X, weights[:-1])),
        )
        assert one.unit == other.unit
        np.testing.assert_allclose(one(at(one, TRUTH))[1], other(at(other, TRUTH))[1], atol=1e-13)


class TestTheSolver:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("r", [1, 3])
    def test_lowers_the_objective_from_its_start(self, name, r):
        embedding = KernelMean(kernel=KERNELS[name]).fit(X).embedding_
        start = kmeans_start(X, r, 3, 0)
        density = MatchedMixture(r).fit_embedding(embedding, start)
        assert density.squared_distance_ < start.squared_distance(embedding)
        assert density.squared_distance_ == pytest.approx(
            density.mixture_.squared_distance(embedding), rel=1e-6
        )
        assert density.converged_

    def test_recovers_the_mixture_from_its_own_mean(self):
        many = TRUTH.sample(4000, SEED)
        density = MatchedMixture(2, tol=1e-9, **FAST).fit_embedding(
            Embedding(Gaussian(1.5), many, np.full(4000, 1 / 4000))
        )
        order = density.weights_.argsort()
        np.testing.assert_allclose(density.weights_[order], TRUTH.weights, atol=0.02)
        np.testing.assert_allclose(density.means_[order], TRUTH.means, atol=0.1)
        np.testing.assert_allclose(density.variances_[order], [0.5, 1.5], rtol=0.1)

    def test_stays_at_the_minimum_it_started_from(self):
        first = fitted(tol=1e-12)
        again = MatchedMixture(2, tol=1e-12).fit_embedding(first.embedding_, first.mixture_)
        assert again.converged_
        np.testing.assert_allclose(again.means_, first.means_, atol=SAME_FIT)
        np.testing.assert_allclose(again.weights_, first.weights_, atol=SAME_FIT)

    @pytest.mark.parametrize("factor", [1e-3, 0.1, 0.5, 1.0, 3.0, -1.0])
    def test_keeps_to_reason_for_an_embedding_of_any_mass(self, factor):
        embedding = factor * KernelMean(filter="kme").fit(X).embedding_
        assert_sane(MatchedMixture(3, **FAST).fit_embedding(embedding), X)

    @pytest.mark.parametrize("seed", range(5))
    def test_keeps_to_reason_for_weights_of_either_sign(self, seed):
        embedding = random_embedding(np.random.default_rng(seed), 20, 2, Gaussian(1.0))
        assert_sane(MatchedMixture(4, **FAST).fit_embedding(embedding), embedding.points)

    def test_puts_the_mass_that_a_shrunk_mean_lacks_into_a_wide_component(self):
        embedding = 0.6 * KernelMean(filter="kme").fit(X).embedding_
        density = MatchedMixture(3, **FAST).fit_embedding(embedding)
        wide = density.variances_ > 10 * X.var(axis=0).mean()
        assert density.weights_[wide].sum() == pytest.approx(0.4, abs=0.05)

    @pytest.mark.parametrize("share", [0.3, 1.0, 3.0])
    @pytest.mark.parametrize(
        ("name", "r"), [("overlapping", 2), ("more than there are", 4), ("heavy tails", 3)]
    )
    def test_has_converged_within_a_percent_of_a_reference_from_the_same_start(
        self, name, r, share
    ):
        rng = np.random.default_rng(SEED)
        points = {
            "overlapping": X,
            "more than there are": TRUTH.sample(60, 1),
            "heavy tails": rng.standard_t(3, size=(60, 3)),
        }[name]
        kernel = Gaussian(share * Gaussian().resolve(points).bandwidth)
        embedding = KernelMean(kernel=kernel, filter="kme").fit(points).embedding_
        start = kmeans_start(points, r, 3, 0)
        density = MatchedMixture(r).fit_embedding(embedding, start)
        objective = _Objective.from_embedding(embedding)
        bounds = objective.bounds(r, density.min_variance)
        first = np.clip(at(objective, start), bounds.lb, bounds.ub)
        tight = {"ftol": 0.0, "gtol": 0.0, "maxiter": 10**4, "maxfun": 10**5, "maxls": 50}
        reference = minimize(
            objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options=tight
        )
        assert density.converged_
        assert density.squared_distance_ <= 1.01 * reference.fun * objective.squared_norm

    def test_stopped_early_it_is_nearer_to_its_start_and_does_not_claim_to_have_converged(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            early, late = fitted(3, early_stopping=1e-4), fitted(3)
        assert early.n_iter_ < late.n_iter_
        assert early.squared_distance_ > late.squared_distance_
        assert (early.converged_, late.converged_) == (False, True)

    def test_has_not_converged_after_one_step_and_warns(self):
        with pytest.warns(
            ConvergenceWarning, match="not converged after 1 steps; increase max_iter or tol"
        ) as caught:
            density = fitted(max_iter=1)
        assert not density.converged_
        assert density.n_iter_ == 1
        assert caught[0].filename == __file__

    @pytest.mark.parametrize(
        ("away", "tol", "converged"),
        [(0.0, 1e-6, True), (0.0, 1e-16, True), (1e-7, 1e-6, True), (1e-2, 1e-6, False)],
    )
    def test_takes_a_failed_line_search_for_a_minimum_only_where_it_is_flat(
        self, monkeypatch, away, tol, converged
    ):
        at_minimum = fitted(tol=1e-16)

        def search_that_fails(objective, begin, bounds, **_):
            begin[1] += away
            return OptimizeResult(x=begin, status=2, nit=5)

        monkeypatch.setattr(module, "minimize", search_that_fails)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            density = MatchedMixture(2, tol=tol).fit_embedding(
                at_minimum.embedding_, at_minimum.mixture_
            )
        assert density.converged_ is converged
        assert len(caught) == (not converged)

    def test_converges_for_a_tolerance_below_rounding(self):
        assert fitted(tol=1e-300).converged_

    def test_takes_any_number_of_steps(self):
        assert fitted(max_iter=10**12).converged_

    def test_is_repeated_by_its_random_state(self):
        for state in (3, np.int64(3)):
            one, other = (fitted(3, n_init=1, random_state=state) for _ in range(2))
            np.testing.assert_array_equal(one.means_, other.means_)
            np.testing.assert_array_equal(one.sample(5)[0], other.sample(5)[0])

    def test_starts_from_the_average_variance_of_any_covariance(self):
        embedding = KernelMean().fit(X).embedding_
        one = Mixture(TRUTH.weights, TRUTH.means, [np.diag([1.0, 3.0]), np.diag([0.5, 1.5])])
        other = Mixture.isotropic(TRUTH.weights, TRUTH.means, [2.0, 1.0])
        fits = [MatchedMixture(2).fit_embedding(embedding, start) for start in (one, other)]
        np.testing.assert_array_equal(fits[0].means_, fits[1].means_)

    @pytest.mark.parametrize(
        ("weights", "variances"), [([1.0, 0.0], [0.0, 1.0]), ([0.5, 0.5], [1e-300, 1e300])]
    )
    def test_moves_a_start_into_its_bounds(self, monkeypatch, weights, variances):
        def checked(objective, begin, bounds, **options):
            assert (begin >= bounds.lb).all()
            assert (begin <= bounds.ub).all()
            return minimize(objective, begin, bounds=bounds, **options)

        monkeypatch.setattr(module, "minimize", checked)
        start = Mixture.isotropic(weights, [[0.0, 1e100], [1.0, 0.0]], variances)
        assert_sane(MatchedMixture(2).fit_embedding(KernelMean().fit(X).embedding_, start), X)

    def test_needs_no_point_for_a_component_when_given_a_start(self):
        embedding = Embedding(Gaussian(1.0), X[:1], np.ones(1))
        assert_sane(MatchedMixture(2).fit_embedding(embedding, TRUTH), X[:1])


def assert_sane(density, X):
    """On the simplex, near the points, and no narrower than allowed."""
    points = np.asarray(X, dtype=np.float64)
    spread = np.sqrt(points.var(axis=0).mean())
    assert np.isfinite(density.squared_distance_)
    assert density.weights_.min() > 0
    assert density.weights_.sum() == pytest.approx(1)
    unit = spread or min(
        gaussian.bandwidth for _, gaussian in module._gaussians(density.embedding_.kernel)
    )
    assert (density.means_ >= points.min(axis=0) - 1.001 * unit).all()
    assert (density.means_ <= points.max(axis=0) + 1.001 * unit).all()
    assert density.variances_.min() >= density.min_variance * spread**2 * (1 - 1e-9)
    assert density.variances_.min() > 0
    assert density.variances_.max() <= module.MAX_VARIANCE * unit**2 * (1 + 1e-9)
    assert np.isfinite(density.score_samples(points)).all()
    np.testing.assert_allclose(density.predict_proba(points).sum(axis=1), 1)


class TestAmongItsKin:
    # scikit-learn itself skips one check, check_array_api_input, unless SCIPY_ARRAY_API is set for
    # the whole process.
    @parametrize_with_checks(
        [
            MatchedMixture(n_init=2, tol=1e-2),
            MatchedMixture(1, mean=KernelMean(filter="kme"), n_init=1),
        ]
    )
    @pytest.mark.filterwarnings("ignore:bandwidth='median'")
    def test_scikit_learns_own_checks_pass(self, estimator, check):
        check(estimator)

    def test_it_clones_pickles_and_leaves_its_parameters_alone(self):
        mean = KernelMean(kernel=Gaussian(1.0), filter="s-kmse")
        density = MatchedMixture(3, mean=mean, min_variance=0.1, **FAST)
        before = density.get_params()
        assert clone(density).get_params(deep=False).keys() == density.get_params(deep=False).keys()
        assert density.fit(X) is density
        assert density.get_params() == before
        assert not hasattr(mean, "embedding_")
        copy = pickle.loads(pickle.dumps(density))
        np.testing.assert_array_equal(copy.score_samples(X), density.score_samples(X))
        np.testing.assert_array_equal(clone(density).fit(X).means_, density.means_)

    def test_it_works_in_a_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), MatchedMixture(2, **FAST)).fit(X)
        assert pipeline.score_samples(X).shape == (len(X),)
        assert set(pipeline.predict(X)) == {0, 1}

    def test_a_grid_search_finds_the_number_of_components_and_reaches_the_kernel_mean(self):
        search = GridSearchCV(
            MatchedMixture(mean=KernelMean(), **FAST),
            {"n_components": [1, 2], "mean__filter": ["kme", "f-kmse"]},
            cv=3,
        )
        search.fit(X)
        assert search.best_params_["n_components"] == 2
        assert search.best_score_ == search.cv_results_["mean_test_score"].max()

    @pytest.mark.parametrize("kind", ["frame", "list", "float32", "whole numbers"])
    def test_it_takes_points_of_any_kind(self, kind):
        whole = np.round(X)
        points = {
            "frame": pd.DataFrame(whole, columns=["a", "b"]),
            "list": whole.tolist(),
            "float32": whole.astype(np.float32),
            "whole numbers": whole.astype(int),
        }[kind]
        density, expected = (
            MatchedMixture(2, **FAST).fit(points),
            MatchedMixture(2, **FAST).fit(whole),
        )
        np.testing.assert_array_equal(density.means_, expected.means_)
        assert density.means_.dtype == np.float64
        np.testing.assert_array_equal(density.score_samples(points), expected.score_samples(whole))
        assert density.bic(points) == expected.bic(whole)
        assert density.aic(points) == expected.aic(whole)
        assert hasattr(density, "feature_names_in_") == (kind == "frame")

    def test_names_of_features_do_not_outlive_their_fit(self):
        density = MatchedMixture(2, **FAST).fit(pd.DataFrame(X, columns=["a", "b"]))
        density.fit_embedding(fitted().embedding_)
        assert density.score(X) == pytest.approx(fitted().score(X))

    def test_fit_is_fit_embedding_of_the_kernel_mean(self):
        mean = KernelMean(filter="s-kmse", kernel=Gaussian(2.0))
        one = fitted(mean=mean)
        other = MatchedMixture(2, **FAST).fit_embedding(mean.fit(X).embedding_)
        np.testing.assert_array_equal(one.means_, other.means_)
        assert other.n_features_in_ == 2

    def test_an_embedding_of_single_precision_is_matched_in_double(self):
        mean = KernelMean(filter="kme", kernel=Gaussian(2.0))
        single, double = (
            mean.fit(np.round(X, 1).astype(kind)).embedding_ for kind in (np.float32, np.float64)
        )
        one, other = (
            MatchedMixture(2, **FAST).fit_embedding(embedding) for embedding in (single, double)
        )
        np.testing.assert_allclose(one.means_, other.means_, atol=SAME_FIT)
        exact = Embedding(
            single.kernel, single.points.astype(np.float64), single.weights.astype(np.float64)
        )
        assert one.squared_distance_ == pytest.approx(
            one.mixture_.squared_distance(exact), rel=1e-9
        )


class TestTheDensity:
    def test_is_that_of_scikit_learns_mixture_with_the_same_parameters(self):
        density = fitted(3)
        theirs = GaussianMixture(3, covariance_type="spherical")
        theirs.weights_, theirs.means_, theirs.covariances_ = (
            density.weights_,
            density.means_,
            density.variances_,
        )
        theirs.precisions_cholesky_ = 1 / np.sqrt(density.variances_)
        np.testing.assert_allclose(density.score_samples(X), theirs.score_samples(X), rtol=1e-12)
        np.testing.assert_allclose(density.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
        np.testing.assert_array_equal(density.predict(X), theirs.predict(X))
        assert density.score(X) == pytest.approx(theirs.score(X), rel=1e-12)
        assert density.bic(X) == pytest.approx(theirs.bic(X), rel=1e-12)
        assert density.aic(X) == pytest.approx(theirs.aic(X), rel=1e-12)

    @pytest.mark.parametrize("r", [1, 3])
    def test_criteria_are_their_definitions(self, r):
        density = fitted(r)
        n_parameters = r * 2 + r + (r - 1)
        log_likelihood = density.score_samples(X).sum()
        assert density.bic(X) == pytest.approx(n_parameters * np.log(len(X)) - 2 * log_likelihood)
        assert density.aic(X) == pytest.approx(2 * n_parameters - 2 * log_likelihood)

    def test_integrates_to_one_on_the_line(self):
        density = MatchedMixture(2, **FAST).fit(X[:, :1])
        total, _ = quad(
            lambda x: np.exp(density.score_samples([[x]])[0]),
            -30,
            30,
            points=density.means_.ravel(),
        )
        assert total == pytest.approx(1, abs=1e-7)

    def test_integrates_to_one_in_the_plane(self):
        density = fitted(mean=KernelMean(filter="kme"))
        axis, step = np.linspace(-20, 20, 401, retstep=True)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        assert np.exp(density.score_samples(grid)).sum() * step**2 == pytest.approx(1, abs=1e-9)

    def test_the_most_probable_component_has_the_largest_probability(self):
        density = fitted(3)
        probabilities = density.predict_proba(X)
        np.testing.assert_array_equal(density.predict(X), probabilities.argmax(axis=1))
        joint = [
            w * np.exp(-((X - m) ** 2).sum(axis=1) / 2 / v) / (2 * np.pi * v)
            for w, m, v in zip(density.weights_, density.means_, density.variances_, strict=True)
        ]
        np.testing.assert_allclose(
            probabilities, np.transpose(joint / np.sum(joint, axis=0)), atol=1e-12
        )

    def test_draws_have_its_moments(self):
        density, m = fitted(3, mean=KernelMean(filter="kme")), 40_000
        drawn, component = density.sample(m)
        assert drawn.shape == (m, 2)
        assert component.shape == (m,)
        pi, theta, v = density.weights_, density.means_, density.variances_
        np.testing.assert_allclose(
            np.bincount(component, minlength=3) / m, pi, atol=4 * 0.5 / np.sqrt(m)
        )
        gap = np.abs(drawn.mean(axis=0) - pi @ theta)
        assert (gap < 4 * drawn.std(axis=0) / np.sqrt(m)).all()
        squares = drawn**2
        gap = np.abs(squares.mean(axis=0) - pi @ (theta**2 + v[:, None]))
        assert (gap < 4 * squares.std(axis=0) / np.sqrt(m)).all()
        logs = density.score_samples(
            drawn
        )  # their average is minus the entropy, as is that of other code's draws
        others = density.score_samples(density.mixture_.sample(m, SEED))
        assert abs(logs.mean() - others.mean()) < 4 * np.sqrt((logs.var() + others.var()) / m)

    def test_a_draw_is_of_one_point_by_default_and_keeps_the_number_of_features(self):
        drawn, component = fitted().sample()
        assert drawn.shape == (1, 2)
        assert component.shape == (1,)


SCALES = [
    (1e-6, 0.0),
    (1e6, 0.0),
    (1.0, 1e3),
    (1e-6, 1.0),
    (1e100, 0.0),
    (1e-100, 0.0),
    (2.0**-5, 2.0**20),
]
DEGENERATE = {
    **SAMPLES,
    "all rows equal": np.full((6, 3), 0.1) + 1e6,
    "two distinct rows": np.repeat([[0.0, 1.0], [1.0, 5.0]], 5, axis=0),
    "a point far away": np.vstack([X, [[1e12, -1e12]]]),
    "a cluster of one point": np.vstack([X, [[30.0, 30.0]]]),
    "points on a grid": np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(
        -1, 2
    ),
}


class TestWhateverTheData:
    @pytest.mark.parametrize(("scale", "shift"), SCALES)
    def test_units_and_origin_do_not_matter(self, scale, shift):
        points = np.round(X, 3)
        expected, density = (
            MatchedMixture(2, **FAST).fit(Y) for Y in (points, scale * points + shift)
        )
        np.testing.assert_allclose((density.means_ - shift) / scale, expected.means_, atol=SAME_FIT)
        np.testing.assert_allclose(
            density.variances_ / scale**2, expected.variances_, rtol=SAME_FIT
        )
        np.testing.assert_allclose(density.weights_, expected.weights_, atol=SAME_FIT)
        stopped = [
            MatchedMixture(2, early_stopping=1e-6, **FAST).fit(Y)
            for Y in (points, scale * points + shift)
        ]
        assert stopped[0].n_iter_ == stopped[1].n_iter_
        shifted = density.score(scale * points + shift) + 2 * np.log(scale)
        assert shifted == pytest.approx(expected.score(points), abs=SAME_FIT)

    def test_a_million_away_it_is_as_good_as_at_the_origin(self):
        points = np.round(X, 3)
        far = points + 1e6
        near, density = (MatchedMixture(2, tol=1e-10, **FAST).fit(Y) for Y in (points, far))
        np.testing.assert_allclose(density.means_ - 1e6, near.means_, atol=1e-4)
        assert density.squared_distance_ == pytest.approx(near.squared_distance_, rel=1e-6)
        np.testing.assert_allclose(
            density.score_samples(far), near.score_samples(points), atol=1e-3
        )

    @pytest.mark.filterwarnings("ignore:bandwidth='median'")
    @pytest.mark.parametrize("name", DEGENERATE)
    @pytest.mark.parametrize("r", [1, 2, "n"])
    def test_a_fit_is_sane(self, name, r):
        points = DEGENERATE[name]
        early = (
            {"early_stopping": 1e-6} if r == "n" else {}
        )  # a component for every point is matched ever better
        density = MatchedMixture(min(len(points), 20) if r == "n" else r, **FAST, **early).fit(
            points
        )
        assert_sane(density, points)

    @pytest.mark.filterwarnings("ignore:bandwidth='median'")
    @settings(max_examples=40, deadline=None)
    @given(
        st.integers(2, 12),
        st.integers(1, 4),
        st.integers(1, 2),
        st.integers(-6, 6),
        st.integers(0, 9),
        st.integers(0),
    )
    def test_a_fit_is_sane_for_any_sample(self, n, d, r, scale, digits, seed):
        points = 10.0**scale * np.round(
            np.random.default_rng(seed).standard_t(2, size=(n, d)), digits
        )
        assert_sane(MatchedMixture(r, n_init=1, random_state=0).fit(points), points)

    @pytest.mark.parametrize("bandwidth", [1e-6, 1.0, 1e6])
    def test_where_all_rows_are_equal_the_bandwidth_is_the_unit(self, bandwidth):
        density = MatchedMixture(
            1, mean=KernelMean(kernel=Gaussian(bandwidth), filter="kme"), **FAST
        ).fit(X[[0, 0, 0]])
        np.testing.assert_allclose(density.means_, X[:1], rtol=1e-12)
        np.testing.assert_allclose(density.variances_, 1e-2 * bandwidth**2, rtol=1e-9)

    def test_a_constant_column_keeps_its_value(self):
        density = MatchedMixture(2, **FAST).fit(np.column_stack([X, np.full(len(X), 0.1)]))
        np.testing.assert_array_equal(density.means_[:, 2], 0.1)

    @pytest.mark.parametrize("min_variance", [1e-6, 1e-2, 1.0])
    def test_no_component_is_narrower_than_allowed(self, min_variance):
        points = np.vstack([X, [[30.0, 30.0]]])
        density = MatchedMixture(
            3, mean=KernelMean(filter="kme"), min_variance=min_variance, **FAST
        ).fit(points)
        least = min_variance * points.var(axis=0).mean()
        assert density.variances_.min() == pytest.approx(least, rel=1e-9)

    @pytest.mark.filterwarnings("ignore:bandwidth='median'")
    def test_more_components_than_distinct_points_start_as_points(self):
        start = kmeans_start(np.repeat([[0.0], [1.0]], 4, axis=0), 4, 2, 0)
        assert set(start.means.ravel()) <= {0.0, 1.0}
        assert start.weights.sum() == pytest.approx(1)
        assert not start.covariances.any()

    def test_the_start_is_the_clusters_shares_means_and_variances(self):
        start = kmeans_start(np.array([[0.0, 0.0], [0.0, 2.0], [10.0, 0.0]]), 2, random_state=0)
        order = start.weights.argsort()
        np.testing.assert_allclose(start.weights[order], [1 / 3, 2 / 3])
        np.testing.assert_allclose(start.means[order], [[10.0, 0.0], [0.0, 1.0]])
        np.testing.assert_allclose(start.covariances[order], [np.zeros((2, 2)), 0.5 * np.eye(2)])


PARAMETERS_REFUSED = {
    "no component": (
        {"n_components": 0},
        "MatchedMixture: n_components must be a whole number of at least 1, got 0",
    ),
    "components a fraction": (
        {"n_components": 2.0},
        "n_components must be a whole number of at least 1, got 2.0",
    ),
    "components a word": (
        {"n_components": "two"},
        "n_components must be a whole number of at least 1, got 'two'",
    ),
    "components true": (
        {"n_components": True},
        "n_components must be a whole number of at least 1, got True",
    ),
    "no run": ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
    "no step": ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
    "tol zero": ({"tol": 0.0}, "MatchedMixture: tol must be positive and finite, got 0.0"),
    "early_stopping zero": (
        {"early_stopping": 0.0},
        "early_stopping must be positive and finite, got 0.0",
    ),
    "tol NaN": ({"tol": float("nan")}, "tol must be positive and finite, got nan"),
    "min_variance zero": ({"min_variance": 0}, "min_variance must be positive and finite, got 0"),
    "min_variance large": ({"min_variance": 2.0}, "min_variance must be at most 1, got 2.0"),
    "mean a name": (
        {"mean": "kme"},
        "mean must be a KernelMean or None, got str; use fit_embedding for any embedding",
    ),
    "mean a class": ({"mean": KernelMean}, "mean must be a KernelMean or None"),
    "seed a word": ({"random_state": "zero"}, "random_state"),
    "another kernel": (
        {"mean": KernelMean(kernel=Laplacian(2.0))},
        r"MatchedMixture: a Gaussian kernel, or a sum or multiple of Gaussians, is needed, "
        r"got Laplacian\(bandwidth=2.0\); use KernelMean\(kernel='gaussian'\)",
    ),
    "random features": (
        {"mean": KernelMean(gram="random-features")},
        "MatchedMixture: mean must be an estimate in the RKHS of its kernel, without random "
        "features, got gram='random-features'; use gram='nystrom'",
    ),
    "a sum with another kernel": (
        {"mean": KernelMean(kernel=Gaussian() + Laplacian())},
        "got Laplacian",
    ),
    "a bad mean": ({"mean": KernelMean(filter="kmee")}, "did you mean 'kme'?"),
    "more components than points": (
        {"n_components": 81},
        "at least n_components = 81 points are needed, got n_samples = 80; "
        "use fewer components or more points",
    ),
}

EMBEDDINGS_REFUSED = {
    "zero": (
        Embedding(Gaussian(1.0), X, np.zeros(80)),
        "finite embedding that is not zero is needed, got .* weights sum to 0",
    ),
    "points": (X, "an Embedding on points is needed, got ndarray; use fit\\(X\\) for points"),
    "random features": (
        KernelMean(kernel=Gaussian(1.0), filter="kme", gram="random-features").fit(X).embedding_,
        "an Embedding on points is needed, got FeatureEmbedding; .* gram='nystrom'",
    ),
    "another kernel": (
        Embedding(Laplacian(1.0), X, np.ones(80)),
        "a Gaussian kernel, .* is needed, got Laplacian",
    ),
    "no bandwidth": (
        Embedding(Gaussian(), X, np.ones(80)),
        "bandwidth must be positive and finite, got 'median'",
    ),
    "factor negative": (
        Embedding(Scaled(Gaussian(1.0), -1.0), X, np.ones(80)),
        "factor must be positive",
    ),
    "too few points": (
        Embedding(Gaussian(1.0), X[:1], np.ones(1)),
        "at least n_components = 2 points are needed, got",
    ),
    "too few with weight": (
        Embedding(Gaussian(1.0), X, np.eye(80)[0]),
        "at least n_components = 2 points are needed, got n_samples = 1",
    ),
}

STARTS_REFUSED = {
    "another dimension": Mixture.isotropic([0.5, 0.5], [[0.0], [1.0]], [1.0, 1.0]),
    "another number of components": Mixture.isotropic([1.0], [[0.0, 1.0]], [1.0]),
    "an array": TRUTH.means,
}


class TestBadInput:
    @pytest.mark.parametrize("case", PARAMETERS_REFUSED)
    def test_a_bad_parameter_is_refused(self, case):
        parameters, sentence = PARAMETERS_REFUSED[case]
        with pytest.raises((ValueError, TypeError), match=sentence) as refused:
            MatchedMixture(**FAST | parameters).fit(X)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("case", EMBEDDINGS_REFUSED)
    def test_a_bad_embedding_is_refused(self, case):
        embedding, sentence = EMBEDDINGS_REFUSED[case]
        with pytest.raises((ValueError, TypeError), match=sentence) as refused:
            MatchedMixture(2, **FAST).fit_embedding(embedding)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("case", STARTS_REFUSED)
    def test_a_bad_start_is_refused(self, case):
        with pytest.raises(
            ValueError, match="start must be a Mixture of 2 components in 2 dimensions, got"
        ) as refused:
            MatchedMixture(2).fit_embedding(fitted().embedding_, STARTS_REFUSED[case])
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("n_samples", [0, -1, 1.5, "3", None, True])
    def test_a_bad_number_of_draws_is_refused(self, n_samples):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1, got"):
            fitted().sample(n_samples)

    def test_bad_points_are_refused_in_the_estimators_words(self):
        with pytest.raises(
            ValueError,
            match=r"MatchedMixture: X must be finite, got 1 row with NaN \(first: X\[1\]\)",
        ):
            MatchedMixture().fit([[0.0], [np.nan]])
        with pytest.raises(ValueError, match="n_samples = 1"):
            MatchedMixture().fit([[0.0]])
        with pytest.raises(ValueError, match="X has 1 features, but MatchedMixture is expecting 2"):
            fitted().score_samples([[0.0]])

    def test_a_density_that_was_not_fitted_says_so(self):
        density = MatchedMixture()
        calls = [
            density.score_samples,
            density.score,
            density.predict,
            density.predict_proba,
            density.bic,
            density.aic,
        ]
        for call in (
            *(lambda call=call: call(X) for call in calls),
            density.sample,
            lambda: density.mixture_,
        ):
            with pytest.raises(NotFittedError):
                call()

    def test_nor_was_one_whose_fit_was_refused(self):
        density = MatchedMixture(2)
        with pytest.raises(ValueError, match="not zero"):
            density.fit_embedding(0 * fitted().embedding_)
        for call in (lambda: density.predict(X), density.sample, lambda: density.mixture_):
            with pytest.raises(NotFittedError):
                call()


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e-100, 1e100])
def test_extreme_scales_are_right_or_refused(scale):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = MatchedMixture(2, n_init=2)
    if not 1e-150 < scale < 1e150:
        with pytest.raises(
            ValueError, match=r"points must vary by 1e-150 to 1e\+150, .*; rescale X"
        ):
            model.fit(scale * X)
        return
    same, scaled = MatchedMixture(2, n_init=2).fit(X), model.fit(scale * X)
    np.testing.assert_allclose(scaled.variances_ / scale**2, same.variances_, rtol=1e-6)
    np.testing.assert_allclose(
        scaled.score(scale * X), same.score(X) - 2 * np.log(scale), rtol=1e-6
    )
