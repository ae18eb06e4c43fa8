"""The paper's statements, computed: Theorems 1 to 3, Definition 1, Proposition 2."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from muhat import KernelMean
from muhat._arrays import Array
from muhat.embedding import Embedding
from muhat.filters import (
    FILTERS,
    Componentwise,
    Filter,
    IteratedTikhonov,
    Landweber,
    NuMethod,
    Showalter,
    SimpleShrinkage,
    Tikhonov,
    TruncatedSVD,
)
from muhat.gram import DenseGram
from muhat.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Mixture, Polynomial
from muhat.selection import Fixed
from muhat.theory import (
    SmoothOperator,
    admissible_fraction,
    characteristic_bound,
    check_definition_1,
    rates,
    shrink_components,
    theorem_1,
    theorem_2,
    theorem_3,
    whitening,
)
from muhat.theory._constants import stated_constants

SEED = 11
STANDARD_ERRORS = 5

cs, betas = st.floats(1e-3, 1e3), st.floats(1.05, 8)


def assert_is_the_average_of(draws: Array, value: float) -> None:
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    assert abs(draws.mean() - value) < STANDARD_ERRORS * error


# Theorem 1


@settings(max_examples=100, deadline=None)
@given(c=cs, beta=betas)
def test_A_is_the_infimum_over_real_n_of_the_fraction_in_the_proof(c: float, beta: float) -> None:
    def fraction(log_n: float) -> float:
        n = np.exp(log_n)
        return float((c**2 + 2 * c * n**beta) / (n * c**2 + c**2 + 2 * c * n**beta))

    found = minimize_scalar(fraction, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10})
    np.testing.assert_allclose(admissible_fraction(c, beta), found.fun, rtol=1e-8)


@settings(max_examples=100, deadline=None)
@given(c=cs, beta=betas)
def test_A_is_the_formula_of_the_paper_attained_where_its_docstring_says(
    c: float, beta: float
) -> None:
    root = 2 ** (1 / beta) * beta
    printed = root / (root + c ** (1 / beta) * (beta - 1) ** ((beta - 1) / beta))
    attained = (c / (2 * (beta - 1))) ** (1 / beta)
    np.testing.assert_allclose(admissible_fraction(c, beta), printed, rtol=1e-12)
    np.testing.assert_allclose(admissible_fraction(c, beta, attained), printed, rtol=1e-9)


def test_A_tends_to_one_for_small_c_but_to_one_half_for_large_beta() -> None:
    assert admissible_fraction(1e-30, 2.0) > 1 - 1e-14
    assert admissible_fraction(1.0, 1e12) == pytest.approx(
        0.5, abs=1e-9
    )  # the paper's remark says one
    assert admissible_fraction(1.0, 100.0, n=2) > 1 - 1e-14
    assert admissible_fraction(1.0, 1e12, n=1) == pytest.approx(3 / 4)  # λ = c at n = 1 whatever β


@settings(max_examples=50, deadline=None)
@given(c=cs, beta=betas, larger=st.floats(1.01, 10))
def test_A_falls_with_c(c: float, beta: float, larger: float) -> None:
    assert 0 < admissible_fraction(larger * c, beta) < admissible_fraction(c, beta) < 1


@dataclass(frozen=True)
class Moments:
    """What the exact risks of a distribution depend on."""

    squared_norm: float
    mean_diagonal: float

    @classmethod
    def from_mixture(cls, P: Mixture, kernel: Kernel) -> "Moments":
        return cls(P.inner(kernel, P), P.expected_diagonal(kernel))

    def kme_risk(self, n: int) -> float:
        return (self.mean_diagonal - self.squared_norm) / n

    def shrunk_risk(self, n: int, c: float, beta: float) -> float:
        """The proof of Theorem 1(ii), with its second term mended."""
        kept, lost = n**beta / (n**beta + c), c / (n**beta + c)
        return kept**2 * self.kme_risk(n) + lost**2 * self.squared_norm

    def gain(self, n: int, c: float, beta: float) -> float:
        """KME's risk minus that of simple shrinkage, divided by λ/(1+λ)²."""
        lam = c * n**-beta
        return (lam + 2) * self.kme_risk(n) - lam * self.squared_norm


kernels = st.sampled_from([Linear(), Gaussian(0.5), Gaussian(3.0), Polynomial(2)])


def largest_c(ratio: float, beta: float) -> float:
    """The c with A(c, β) = ratio: the most that λ = cn^(−β) may shrink."""
    return float(2 * ((1 / ratio - 1) * beta / (beta - 1) ** ((beta - 1) / beta)) ** beta)


@settings(max_examples=200, deadline=None)
@given(
    share=st.floats(1e-3, 0.999),
    beta=st.floats(1.05, 4),
    kernel=kernels,
    shift=st.floats(0.1, 3),
    variance=st.floats(0.01, 4),
    d=st.integers(1, 4),
)
def test_inside_the_class_simple_shrinkage_beats_the_empirical_mean_for_every_n(
    share: float, beta: float, kernel: Kernel, shift: float, variance: float, d: int
) -> None:
    P = Mixture.isotropic(
        [0.4, 0.6], [[shift] * d, [-shift] + [0.0] * (d - 1)], [variance, 2 * variance]
    )
    moments = Moments.from_mixture(P, kernel)
    c = share * largest_c(moments.squared_norm / moments.mean_diagonal, beta)
    assert moments.squared_norm < admissible_fraction(c, beta) * moments.mean_diagonal
    for n in (1, 2, 3, 5, 10, 100):
        lam = c * n**-beta
        assert moments.gain(n, c, beta) > 0
        np.testing.assert_allclose(
            moments.kme_risk(n) - moments.shrunk_risk(n, c, beta),
            moments.gain(n, c, beta) * lam / (1 + lam) ** 2,
            atol=1e-12 * moments.mean_diagonal,
        )


@settings(max_examples=200, deadline=None)
@given(
    c=st.floats(0.01, 100),
    beta=st.floats(1.05, 3),
    n=st.integers(1, 20),
    ratio=st.floats(0.001, 0.999),
)
def test_at_one_n_simple_shrinkage_is_better_exactly_below_the_fraction_at_n(
    c: float, beta: float, n: int, ratio: float
) -> None:
    fraction = admissible_fraction(c, beta, n)
    assume(abs(ratio - fraction) > 1e-9)  # beyond rounding
    assert (Moments(ratio, 1.0).gain(n, c, beta) > 0) == (ratio < fraction)


def test_outside_of_the_class_there_is_an_n_where_simple_shrinkage_is_worse() -> None:
    c, beta = 2000.0, 2.0
    n = round(
        (c / (2 * (beta - 1))) ** (1 / beta)
    )  # where A is attained, nearly a whole number: 31.6
    moments = Moments(1.001 * admissible_fraction(c, beta), 1.0)
    assert moments.shrunk_risk(n, c, beta) > moments.kme_risk(n)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
def test_the_exact_risk_of_simple_shrinkage_is_its_average_loss(kernel: Kernel) -> None:
    P = Mixture.isotropic([0.5, 0.5], [[0.5, 0.0], [-0.2, 1.0]], [1.0, 0.3])
    n, c, beta, rng = 8, 3.0, 1.5, np.random.default_rng(SEED)
    weights = np.full(n, 1 / n / (1 + c * n**-beta))
    losses = [P.squared_distance(Embedding(kernel, P.sample(n, rng), weights)) for _ in range(2000)]
    assert_is_the_average_of(
        np.array(losses), Moments.from_mixture(P, kernel).shrunk_risk(n, c, beta)
    )


@settings(max_examples=100, deadline=None)
@given(c=cs, beta=betas, length=st.floats(0.01, 10), d=st.integers(1, 5))
def test_under_the_linear_kernel_the_class_bounds_the_mean_by_the_trace_of_the_covariance(
    c: float, beta: float, length: float, d: int
) -> None:
    A = admissible_fraction(c, beta)
    P = Mixture.isotropic([1.0], [[length] + [0.0] * (d - 1)], [0.7])
    moments = Moments.from_mixture(P, Linear())
    inside = moments.squared_norm < A * moments.mean_diagonal
    james_stein = length < np.sqrt(0.7 * d * A / (1 - A))
    assert inside == (length**2 / (0.7 * d) < A / (1 - A)) == james_stein


def test_the_estimates_of_theorem_1_are_the_means_off_and_on_the_diagonal() -> None:
    X = np.random.default_rng(SEED).normal(size=(7, 2))
    kernel = Polynomial(2)
    K = kernel(X)
    answer = theorem_1(DenseGram.from_sample(kernel, X), c=1.0, beta=2.0)
    assert theorem_1(K, c=1.0, beta=2.0) == theorem_1(K.tolist(), c=1.0, beta=2.0) == answer
    assert answer.squared_norm == pytest.approx(K[~np.eye(7, dtype=bool)].mean())
    assert answer.mean_diagonal == pytest.approx(np.diagonal(K).mean())
    assert answer.ratio == pytest.approx(answer.squared_norm / answer.mean_diagonal)
    estimated = Moments(answer.squared_norm, answer.mean_diagonal)
    assert answer.risk_difference == pytest.approx(
        estimated.shrunk_risk(7, 1.0, 2.0) - estimated.kme_risk(7)
    )


def test_a_point_of_mass_two_counts_as_much_as_its_share_of_all_pairs() -> None:
    X, masses = np.random.default_rng(SEED).normal(size=(5, 2)), np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    K, pairs = Gaussian(1.0)(X), np.outer(masses, masses)
    np.fill_diagonal(pairs, 0)
    answer = theorem_1(DenseGram.from_sample(Gaussian(1.0), X, masses), c=1.0, beta=2.0)
    assert answer.squared_norm == pytest.approx((pairs * K).sum() / pairs.sum())
    assert answer.mean_diagonal == pytest.approx(1.0)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
def test_the_estimates_of_theorem_1_are_unbiased_and_their_standard_error_is_right(
    kernel: Kernel,
) -> None:
    P = Mixture.isotropic([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.3])
    n, c, beta, rng = 100, 50.0, 1.5, np.random.default_rng(SEED)
    moments = Moments.from_mixture(P, kernel)
    answers = [
        theorem_1(DenseGram.from_sample(kernel, P.sample(n, rng)), c, beta) for _ in range(500)
    ]
    assert_is_the_average_of(
        np.array([answer.squared_norm for answer in answers]), moments.squared_norm
    )
    if isinstance(kernel, Linear):
        assert_is_the_average_of(
            np.array([answer.mean_diagonal for answer in answers]), moments.mean_diagonal
        )
    difference = moments.shrunk_risk(n, c, beta) - moments.kme_risk(n)
    assert_is_the_average_of(np.array([answer.risk_difference for answer in answers]), difference)
    ratio = moments.squared_norm / moments.mean_diagonal
    deviations = np.array([(answer.ratio - ratio) / answer.standard_error for answer in answers])
    assert 0.85 < deviations.std() < 1.2


def test_theorem_1_answers_yes_inside_and_no_outside() -> None:
    rng = np.random.default_rng(SEED)
    centred, distant = rng.normal(size=(200, 5)), 5 + rng.normal(size=(200, 5))
    inside, outside = (
        theorem_1(DenseGram.from_sample(Linear(), X), c=100.0, beta=1.5) for X in (centred, distant)
    )
    assert inside.inside
    assert not outside.inside
    assert outside.ratio > 0.9 > outside.bound
    assert outside.inside_at_n == (outside.ratio < outside.bound_at_n)
    assert inside.bound == admissible_fraction(100.0, 1.5) < inside.bound_at_n


# The appendix: translation-invariant kernels


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(1.9)], ids=repr)
def test_the_l1_norm_of_the_kernel_is_its_integral(kernel: Kernel, d: int) -> None:
    def section(x: float) -> float:
        return float(kernel(np.array([[x]]), np.zeros((1, 1)))[0, 0])

    integral = 2 * quad(section, 0, np.inf)[0]  # both kernels are products over coordinates
    assert characteristic_bound(kernel, d, 1.0, 2.0).l1_norm == pytest.approx(integral**d)


@settings(max_examples=200, deadline=None)
@given(
    c=cs, beta=betas, share=st.floats(0.01, 1), d=st.integers(1, 6), bandwidth=st.floats(0.1, 10)
)
def test_a_characteristic_function_below_the_bound_puts_a_distribution_into_the_class(
    c: float, beta: float, share: float, d: int, bandwidth: float
) -> None:
    kernel = Gaussian(bandwidth)
    bound = characteristic_bound(kernel, d, c, beta)
    assert bound.bound < bound.widest
    for limit in (bound.bound, bound.widest):
        variance = np.pi / (share * limit) ** (
            4 / d
        )  # ‖φ‖² = ∫ exp(−variance·‖ω‖²) dω = (π/variance)^(d/2)
        P = Mixture.isotropic([1.0], [[0.0] * d], [variance])
        assert P.inner(kernel, P) < admissible_fraction(c, beta)


def test_the_widest_bound_on_the_characteristic_function_cannot_be_widened() -> None:
    c, beta, kernel = 1e12, 2.0, Gaussian(1.0)
    widest = characteristic_bound(kernel, 1, c, beta).widest
    beyond = Mixture.isotropic(
        [1.0], [[0.0]], [np.pi / (1.01 * widest) ** 4]
    )  # of norm 1.01 · widest
    assert beyond.inner(kernel, beyond) > admissible_fraction(c, beta)


def test_the_bound_on_the_characteristic_function_is_that_of_the_appendix() -> None:
    A = admissible_fraction(1.0, 2.0)
    bound = characteristic_bound(2.0 * Laplacian(0.5), 3, 1.0, 2.0, l1_norm=2.0)
    assert bound.bound == pytest.approx(np.sqrt(A * (2 * np.pi) ** 1.5 * 2.0 / 2.0))


# Theorem 2

positive_numbers, numbers = st.floats(1e-3, 1e3), st.floats(-30, 30)


@settings(max_examples=200, deadline=None)
@given(risk=positive_numbers, mean=numbers, target=numbers, share=st.floats(0.01, 0.99))
def test_within_the_range_of_theorem_2_shrinking_helps_and_outside_it_hurts(
    risk: float, mean: float, target: float, share: float
) -> None:
    answer = theorem_2(risk, mean, target)
    assert answer.difference(share * answer.upper) < 0
    assert answer.difference(answer.upper / share) > 0
    assert answer.difference(-share * answer.upper) > 0
    assert abs(answer.difference(answer.upper)) < 1e-12 * risk


@settings(max_examples=200, deadline=None)
@given(risk=positive_numbers, mean=numbers, target=numbers, step=st.floats(1e-3, 1))
def test_the_optimum_of_theorem_2_is_half_of_its_range(
    risk: float, mean: float, target: float, step: float
) -> None:
    answer = theorem_2(risk, mean, target)
    gap = (target - mean) ** 2
    assert answer.best == pytest.approx(risk / (risk + gap))
    assert answer.difference(answer.best) == pytest.approx(-(risk**2) / (risk + gap))
    for other in (answer.best - step, answer.best + step):
        assert answer.difference(other) > answer.difference(answer.best)


def test_the_risk_difference_of_theorem_2_is_that_of_simulated_components() -> None:
    rng = np.random.default_rng(SEED)
    risk, mean, target = (
        np.array([0.5, 2.0, 0.1]),
        np.array([1.0, -0.5, 0.2]),
        np.array([0.0, 1.0, 0.2]),
    )
    answer = theorem_2(risk, mean, target)
    estimates = mean + np.sqrt(risk) * rng.normal(size=(200_000, 3))
    for alpha in (0.3 * answer.upper, answer.best, 1.2 * answer.upper):
        shrunk = alpha * target + (1 - alpha) * estimates
        draws = (shrunk - mean) ** 2 - (estimates - mean) ** 2
        for component in range(3):
            assert_is_the_average_of(draws[:, component], answer.difference(alpha)[component])
        assert_is_the_average_of(draws.sum(axis=1), answer.difference(alpha).sum())


def test_with_one_alpha_for_all_components_theorem_2_is_the_theorem_of_simple_shrinkage() -> None:
    risk, mean = np.array([0.5, 2.0, 0.1]), np.array([1.0, -0.5, 0.2])
    n, c, beta = 4, 3.0, 1.5
    alpha = c / (n**beta + c)
    moments = Moments(float(mean @ mean), float(mean @ mean + n * risk.sum()))
    difference = theorem_2(risk, mean).difference(np.full(3, alpha)).sum()
    assert difference == pytest.approx(moments.shrunk_risk(n, c, beta) - moments.kme_risk(n))


def test_without_risk_there_is_nothing_to_gain() -> None:
    answer = theorem_2([0.0, 0.0], mean=[1.0, 0.0])
    np.testing.assert_array_equal(answer.upper, [0.0, 0.0])
    np.testing.assert_array_equal(answer.difference(0.5), [0.25, 0.0])


# Definition 1

STATED: dict[str, Filter] = {
    **{name: kind() for name, kind in FILTERS.items() if issubclass(kind, Filter)},
    **{f"iterated-tikhonov {order}": IteratedTikhonov(order) for order in (1, 2, 3, 7)},
    **{f"nu-method {nu}": NuMethod(nu) for nu in (0.3, 0.5, 1.0, 1.5, 2.0, 3.0)},
}
"""Every registered filter with its defaults, and some with other parameters."""
ITERATIONS = [1, 2, 3, 5, 10, 30, 100]


def test_the_componentwise_filter_has_no_constants() -> None:
    assert not issubclass(Componentwise, Filter)  # no function of γ alone, and so without constants


def parameters_of(filter: Filter, kappa2: float) -> list[Any]:
    """From λ = κ², where Definition 1 ends, down to nearly none."""
    if isinstance(filter, Landweber | NuMethod):
        return ITERATIONS
    return [kappa2 * factor for factor in (1.0, 0.5, 0.1, 1e-2, 1e-4)]


@pytest.mark.parametrize("kappa2", [1.0, 0.5, 4.0])
@pytest.mark.parametrize("filter", STATED.values(), ids=STATED.keys())
def test_every_filter_satisfies_definition_1_with_the_constants_it_states(
    filter: Filter, kappa2: float
) -> None:
    check = check_definition_1(filter, parameters_of(filter, kappa2), kappa2)
    assert check.holds, check
    assert check.measured.B <= check.stated.B * (1 + 1e-6)
    assert check.measured.C <= check.stated.C * (1 + 1e-6)
    assert (check.measured.D <= check.stated.D * (1 + 1e-6)).all()


@pytest.mark.parametrize("kappa2", [1.0, 0.5, 4.0])
@pytest.mark.parametrize(
    ("filter", "parameters"),
    [
        (SimpleShrinkage(), [1e-4, 2e-4]),
        (Tikhonov(), [1e-4, 2e-4]),
        (IteratedTikhonov(3), [1e-3, 2e-3]),
        (IteratedTikhonov(7), [0.02, 0.021]),
        (NuMethod(0.5), [60, 90]),
        (NuMethod(1.0), [60, 90]),
        (NuMethod(3.0), [60, 90]),
        (Landweber(), [100, 200]),
        (Showalter(), [0.01, 0.02]),
        (TruncatedSVD(), [0.01, 0.02]),
    ],
    ids=repr,
)
def test_the_measured_qualification_is_the_stated_one(
    filter: Filter, parameters: list[Any], kappa2: float
) -> None:
    scale = 1 if isinstance(filter, Landweber | NuMethod) else kappa2
    check = check_definition_1(filter, [scale * parameter for parameter in parameters], kappa2)
    assert check.measured.qualification == pytest.approx(filter.qualification, rel=0.1)


def test_a_residual_below_rounding_does_not_hide_the_qualification() -> None:
    check = check_definition_1(IteratedTikhonov(3), np.geomspace(1e-8, 1, 33))
    assert check.measured.qualification == pytest.approx(3, rel=0.01)


def test_a_jump_is_measured_right_beside_it() -> None:
    check = check_definition_1(TruncatedSVD(), [0.1234567], exponents=[2.0])
    np.testing.assert_allclose(check.measured.D, 1, rtol=1e-12)


def test_one_lambda_shows_no_qualification() -> None:
    assert np.isnan(check_definition_1(Tikhonov(), [0.1]).measured.qualification)


def test_beyond_its_qualification_a_filter_needs_ever_larger_constants() -> None:
    @dataclass
    class Unlimited(Tikhonov):
        qualification = 2.0

    check = check_definition_1(Unlimited(), [1e-4], exponents=[2.0])
    assert not check.holds
    np.testing.assert_allclose(check.measured.D, 1e4, rtol=1e-3)  # λκ²/(κ²+λ) / λ² = 1/λ


@pytest.mark.parametrize(
    ("filter", "parameters", "least"),
    [
        (Tikhonov(), [1e-3], lambda eta: eta**eta * (1 - eta) ** (1 - eta)),
        (Landweber(), [1000], lambda eta: (eta / np.e) ** eta),
        (Showalter(), [1e-3], lambda eta: (eta / np.e) ** eta),
        (TruncatedSVD(), [0.1], lambda eta: 1.0),
        (SimpleShrinkage(), [1e-3], lambda eta: 1e-3 ** (1 - eta) / (1 + 1e-3)),
        (IteratedTikhonov(3), [1e-3], lambda eta: eta**eta * (3 - eta) ** (3 - eta) / 27),
    ],
    ids=lambda value: repr(value) if isinstance(value, Filter) else "",
)
def test_measured_constants_are_those_found_by_algebra(
    filter: Filter, parameters: Any, least: Any
) -> None:
    check = check_definition_1(filter, parameters, exponents=[0.25, 0.5, 0.75])
    np.testing.assert_allclose(
        check.measured.D, [least(eta) for eta in (0.25, 0.5, 0.75)], rtol=2e-3
    )


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 2.0, 5.0])
def test_the_nu_method_overshoots_most_in_its_first_step(nu: float) -> None:
    measured = check_definition_1(NuMethod(nu), ITERATIONS).measured.B
    assert measured == pytest.approx((4 * nu + 2) / (4 * nu + 1))
    later = check_definition_1(NuMethod(nu), ITERATIONS[1:])
    assert measured > later.measured.B


def test_a_filter_of_ones_own_is_measured_though_it_states_nothing() -> None:
    @dataclass
    class Squared(Filter):
        def shrinkage(self, gamma: Array, parameter: Any) -> Array:
            return gamma**2 / (gamma**2 + parameter**2)

    check = check_definition_1(Squared(), [1e-3, 1e-2, 0.1, 1.0])
    assert not check.holds
    assert np.isnan(
        [check.stated.B, check.stated.C, check.stated.qualification, *check.stated.D]
    ).all()
    np.testing.assert_allclose([check.measured.B, check.measured.C], 1, atol=1e-5)
    assert check.measured.qualification == pytest.approx(2, rel=1e-3)
    np.testing.assert_array_equal(check.exponents, [0.25, 0.5, 1.0, 2.0])
    assert check.measured.D[-2:] == pytest.approx(
        [0.5, 1.0], rel=1e-3
    )  # λ²γ^η/(γ²+λ²) ≤ λ^η/2 at η = 1, λ² at η = 2


def test_a_constant_that_is_too_small_does_not_hold() -> None:
    @dataclass
    class Own(Landweber):
        B, C = 1.0, 1.0

        def D(self, eta: float, kappa2: float) -> float:
            return float((eta / np.e) ** eta)

    @dataclass
    class Boastful(Own):
        B = 0.9

    assert check_definition_1(Own(), ITERATIONS).holds
    assert not check_definition_1(Boastful(), ITERATIONS).holds


# Theorem 3


def test_the_three_terms_of_theorem_3_are_those_of_the_paper() -> None:
    n, kappa2, delta, h = 400, 4.0, 2.0, 3.0
    bound = theorem_3(Tikhonov(), 0.25, n=n, beta=0.5, source_norm=h, kappa2=kappa2, delta=delta)
    assert bound.noise == pytest.approx((2 * 2 + 2 * np.sqrt(2 * 2)) / 20)
    assert bound.bias == pytest.approx(0.5 * 0.25**0.5 * 3)  # D = ½ at η = ½
    assert bound.operator == pytest.approx(np.sqrt(2 * np.sqrt(2) * 4 * np.sqrt(2)) / 400**0.25 * 3)
    assert bound.total == pytest.approx(bound.noise + bound.bias + bound.operator)
    assert bound.probability == pytest.approx(1 - 3 * np.exp(-2))
    assert theorem_3(Tikhonov(), 0.25, n=n, beta=0.5, source_norm=h, delta=0.5).probability == 0


def test_beyond_its_qualification_a_filter_gains_nothing_from_smoothness() -> None:
    smooth = [theorem_3(Tikhonov(), 0.01, n=100, beta=beta, source_norm=1.0) for beta in (1.0, 2.0)]
    assert smooth[0].bias == smooth[1].bias == pytest.approx(0.01)
    iterated = [
        theorem_3(IteratedTikhonov(3), 0.01, n=100, beta=beta, source_norm=1.0)
        for beta in (1.0, 2.0)
    ]
    assert iterated[1].bias == pytest.approx(4 / 27 * 1e-4) == iterated[0].bias * 0.01
    landweber = theorem_3(Landweber(), 50, n=100, beta=2.0, source_norm=1.0, kappa2=4.0)
    assert landweber.bias == pytest.approx((2 / np.e) ** 2 * (4 / 50) ** 2)


def test_tau_is_one_up_to_beta_one_and_a_lipschitz_constant_beyond() -> None:
    given_tau = theorem_3(Tikhonov(), 0.1, n=100, beta=3.0, source_norm=1.0, kappa2=2.0, tau=1.0)
    assert theorem_3(
        Tikhonov(), 0.1, n=100, beta=3.0, source_norm=1.0, kappa2=2.0
    ).operator == pytest.approx(3 * 2.0**2 * given_tau.operator)
    rng = np.random.default_rng(SEED)
    for _ in range(50):
        first, second = (
            factor @ factor.T for factor in rng.normal(size=(2, 4, 4)) * rng.uniform(0.01, 0.5)
        )
        largest = max(np.linalg.norm(first, 2), np.linalg.norm(second, 2))
        for beta in (0.2, 0.5, 0.9, 1.0, 1.5, 3.0):
            gap = np.linalg.norm(power(first, beta) - power(second, beta), 2)
            tau = 1.0 if beta <= 1 else beta * largest ** (beta - 1)
            assert gap <= tau * np.linalg.norm(first - second) ** min(1, beta) * (1 + 1e-9)


def power(matrix: Array, beta: float) -> Array:
    gamma, U = np.linalg.eigh(matrix)
    return (U * np.maximum(gamma, 0) ** beta) @ U.T


@dataclass(frozen=True)
class Finite:
    """A uniform distribution on few points; rows of Φ are the k(z_j, ·) in R^m."""

    Phi: Array

    @classmethod
    def of(cls, kernel: Kernel, Z: Array) -> "Finite":
        return cls(power(kernel(Z), 0.5))

    @property
    def mean(self) -> Array:
        return self.Phi.mean(axis=0)

    @property
    def covariance(self) -> Array:
        return self.Phi.T @ self.Phi / len(self.Phi)


PARAMETERS = [
    ("kme", 1.0),
    ("f-kmse", 0.05),
    ("iterated-tikhonov", 0.1),
    ("landweber", 20),
    ("nu-method", 5),
]


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
@pytest.mark.parametrize(("name", "parameter"), [*PARAMETERS, ("tsvd", 0.05), ("s-kmse", 0.1)])
def test_the_bound_of_theorem_3_holds_and_so_does_the_inequality_that_it_comes_from(
    name: str, parameter: float, beta: float
) -> None:
    rng = np.random.default_rng(SEED)
    P = Finite.of(Gaussian(1.0), 2 * rng.normal(size=(6, 2)))
    h = float(np.linalg.norm(np.linalg.solve(power(P.covariance, beta), P.mean)))
    filter, n, delta = FILTERS[name](), 50, 3.0
    assert isinstance(filter, Filter)
    bound = theorem_3(filter, parameter, n=n, beta=beta, source_norm=h, delta=delta)
    eta = min(beta, filter.qualification)
    stated = stated_constants(filter, [eta], 1.0)
    errors = []
    for _ in range(50):
        Phi = P.Phi[rng.integers(6, size=n)]
        C_hat, mu_hat = Phi.T @ Phi / n, Phi.mean(axis=0)
        gamma, U = np.linalg.eigh(C_hat)
        estimate = U @ (
            filter.bounded_by(1.0).shrinkage(np.maximum(gamma, 0), parameter) * (U.T @ mu_hat)
        )
        errors.append(np.linalg.norm(estimate - P.mean))
        noise = stated.B * np.linalg.norm(mu_hat - P.mean)
        bias = stated.D[0] * filter.as_lambda(parameter) ** eta * h
        moved = np.linalg.norm(P.covariance - C_hat)
        operator = stated.C * max(1.0, beta) * moved ** min(1, beta) * h
        assert errors[-1] <= (noise + bias + operator) * (1 + 1e-12)
        assert bias == pytest.approx(bound.bias)
    assert np.mean(np.array(errors) > bound.total) <= 3 * np.exp(-delta)


@pytest.mark.parametrize(
    ("filter", "beta", "error", "lam"),
    [
        (Tikhonov(), 0.5, 0.25, 0.5),
        (Tikhonov(), 1.0, 0.5, 0.5),
        (Tikhonov(), 4.0, 0.5, 0.5),  # the paper: λ = o(n^(−1/2)) however smooth
        (IteratedTikhonov(3), 4.0, 0.5, 1 / 6),
        (NuMethod(2.0), 4.0, 0.5, 1 / 4),
        (TruncatedSVD(), 4.0, 0.5, 1 / 8),  # the larger β, the slower may λ fall
        (Landweber(), 0.2, 0.1, 0.5),
    ],
)
def test_the_rates_are_those_of_theorem_3(
    filter: Filter, beta: float, error: float, lam: float
) -> None:
    assert rates(filter, beta).of_error == pytest.approx(error)
    assert rates(filter, beta).of_lambda == pytest.approx(lam)


def test_with_the_rate_of_theorem_3_the_bias_falls_as_fast_as_the_other_terms() -> None:
    for filter, beta in [
        (Tikhonov(), 0.5),
        (Tikhonov(), 3.0),
        (IteratedTikhonov(2), 3.0),
        (TruncatedSVD(), 3.0),
    ]:
        bounds = [
            theorem_3(filter, n ** -rates(filter, beta).of_lambda, n=n, beta=beta, source_norm=1.0)
            for n in (10**4, 10**8)
        ]
        fall = [
            getattr(bounds[1], term) / getattr(bounds[0], term) for term in ("bias", "operator")
        ]
        np.testing.assert_allclose(fall, 1e-4 ** rates(filter, beta).of_error, rtol=1e-9)


# Proposition 2: the smooth operator


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)], ids=repr)
@pytest.mark.parametrize(("name", "parameter"), [*PARAMETERS[1:], ("tsvd", 0.05), ("s-kmse", 0.1)])
def test_the_smooth_operator_maps_the_empirical_mean_to_the_spectral_estimate(
    name: str, parameter: float, kernel: Kernel
) -> None:
    X = np.random.default_rng(SEED).normal(size=(20, 3))
    filter = FILTERS[name]()
    assert isinstance(filter, Filter)
    estimate = (
        KernelMean(kernel=kernel, filter=filter, selection=Fixed(parameter)).fit(X).embedding_
    )
    F = SmoothOperator(kernel, X, filter, parameter)
    mu_hat = Embedding(kernel, X, np.full(20, 1 / 20))
    Y = np.random.default_rng(SEED + 1).normal(size=(10, 3))
    np.testing.assert_allclose(F(mu_hat)(Y), estimate(Y), rtol=1e-8, atol=1e-10)


def test_the_smooth_operator_is_linear_and_symmetric_on_the_whole_space() -> None:
    rng = np.random.default_rng(SEED)
    X, kernel = rng.normal(size=(15, 2)), Gaussian(1.0)
    f, g = (Embedding(kernel, rng.normal(size=(4, 2)), rng.normal(size=4)) for _ in range(2))
    for filter in (Tikhonov(), SimpleShrinkage(), NuMethod()):
        F = SmoothOperator(kernel, X, filter, 3)
        assert F(f).inner(g) == pytest.approx(f.inner(F(g)))
        np.testing.assert_allclose(F(f + 2 * g)(X), F(f)(X) + 2 * F(g)(X), rtol=1e-9)
    np.testing.assert_allclose(
        SmoothOperator(kernel, X, SimpleShrinkage(), 3)(f)(X), f(X) / 4, rtol=1e-9
    )


def test_the_smooth_operator_is_the_covariance_operator_times_the_filter() -> None:
    rng = np.random.default_rng(SEED)
    X, lam = rng.normal(size=(12, 2)), 0.1
    f = Embedding(Gaussian(1.0), rng.normal(size=(3, 2)), rng.normal(size=3))
    # Ĉ(Ĉ+λ)⁻¹f = (1/n) Σ_j a_j k(x_j, ·) with a = (K/n + λ)⁻¹ f(X): F̂f + λ(Ĉ+λ)⁻¹f = f.
    a = np.linalg.solve(Gaussian(1.0)(X) / 12 + lam * np.eye(12), f(X))
    smoothed = SmoothOperator(Gaussian(1.0), X, Tikhonov(), lam)(f)
    np.testing.assert_allclose(smoothed.weights, a / 12, rtol=1e-9)


def test_with_tikhonovs_filter_the_smooth_operator_minimises_the_regression_of_equation_8() -> None:
    rng = np.random.default_rng(SEED)
    n, lam, X = 8, 0.07, rng.normal(size=(8, 2))
    K = Gaussian(1.0)(X)

    def loss(M: Array) -> float:
        """Of F = Σ_ij M_ij k(x_i, ·) ⊗ k(x_j, ·): weights of k(x_j, ·) − F k(x_j, ·), by column."""
        R = np.eye(n) - M @ K
        return float(np.trace(R.T @ K @ R) / n + lam * np.trace(M.T @ K @ M @ K))

    F = SmoothOperator(Gaussian(1.0), X, Tikhonov(), lam)
    images = np.column_stack(
        [F(Embedding(F.kernel, X, e)).weights for e in np.eye(n)]
    )  # F k(x_j, ·) = Σ_i (MK)_ij …
    M = np.linalg.solve(K, images.T).T
    for _ in range(20):
        step = rng.normal(size=(n, n))
        assert min(loss(M + 1e-2 * step), loss(M - 1e-2 * step)) > loss(M)
        assert loss(M + 1e-5 * step) == pytest.approx(loss(M - 1e-5 * step), rel=1e-7)


def test_a_bandwidth_is_learnt_from_the_sample_by_the_smooth_operator() -> None:
    X = np.random.default_rng(SEED).normal(size=(10, 2))
    assert SmoothOperator("gaussian", X, Tikhonov(), 0.1).kernel == Gaussian().resolve(X)


# Equation 5 and whitening


def test_whitening_is_the_textbooks() -> None:
    rng = np.random.default_rng(SEED)
    X = 3 + rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    white = whitening(X)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(white.mean(axis=0), X.mean(axis=0))
    root = power(np.linalg.inv(np.cov(X.T, bias=True)), 0.5)
    np.testing.assert_allclose(white - X.mean(axis=0), (X - X.mean(axis=0)) @ root, atol=1e-9)


def test_whitening_leaves_a_direction_without_variance_alone() -> None:
    X = (
        np.random.default_rng(SEED).normal(size=(30, 2))
        @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0]])
        + 5
    )
    white = whitening(X)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.diag([1.0, 1.0, 0.0]), atol=1e-10)
    np.testing.assert_allclose(white[:, 2], 5)


def test_under_the_linear_kernel_the_general_form_is_the_spectral_estimate() -> None:
    X, lam = 1 + np.random.default_rng(SEED).normal(size=(25, 3)), 0.4
    alpha, basis = np.linalg.eigh(X.T @ X / 25)  # Ĉ, which is not centred
    shrunk = shrink_components(X.mean(axis=0), np.zeros(3), basis, lam / (alpha + lam))
    weights = KernelMean(kernel="linear", filter="f-kmse", selection=Fixed(lam)).fit(X).weights_
    np.testing.assert_allclose(weights @ X, shrunk)


def test_with_one_h_for_all_the_general_form_is_a_convex_combination() -> None:
    rng = np.random.default_rng(SEED)
    vector, target = rng.normal(size=(2, 4))
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    np.testing.assert_allclose(
        shrink_components(vector, target, basis, np.full(4, 0.3)),
        0.3 * target + 0.7 * vector,
        rtol=1e-10,
    )


# Refusals


@dataclass
class Unstated(Filter):
    """A filter without constants."""

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return gamma / (gamma + parameter)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            lambda: admissible_fraction(0.0, 2.0),
            "admissible_fraction: c must be positive and finite, got 0.0",
        ),
        (lambda: admissible_fraction(1.0, 1.0), "beta must be above 1 and finite, got 1.0"),
        (lambda: admissible_fraction(1.0, 2.0, n=-1), "n must be positive"),
        (
            lambda: theorem_1(DenseGram.from_sample(Gaussian(1.0), np.zeros((1, 1))), 1.0, 2.0),
            "at least 2 points",
        ),
        (
            lambda: theorem_1(DenseGram.from_sample(Linear(), np.zeros((3, 1))), 1.0, 2.0),
            r"∫k\(x, x\)dP must be positive",
        ),
        (
            lambda: theorem_1(np.zeros((3, 2)), 1.0, 2.0),
            r"theorem_1: a Gram matrix of shape \(n, n\) or .* got shape \(3, 2\); "
            r"pass kernel\(X\) for a sample",
        ),
        (lambda: theorem_1(np.triu(np.ones((3, 3))), 1.0, 2.0), r"k\(x, y\) = k\(y, x\) is needed"),
        (lambda: theorem_1(np.full((3, 3), np.nan), 1.0, 2.0), "must be finite"),
        (lambda: theorem_1("K", 1.0, 2.0), "must be real numbers in two dimensions"),
        (lambda: theorem_2(["a"], [0.0]), "theorem_2: risk, mean and target must be numbers"),
        (
            lambda: theorem_2([1.0, 2.0], [0.0] * 3),
            r"one for each component, got shapes \(2,\), \(3,\) and \(\)",
        ),
        (
            lambda: shrink_components(np.ones(2), np.ones(2), np.eye(3), np.ones(3)),
            "shrink_components: vectors",
        ),
        (lambda: whitening([1.0, 2.0]), "points must be real numbers in two dimensions"),
        (
            lambda: characteristic_bound(Matern(1.0), 2, 1.0, 2.0),
            "Gaussian and Laplacian .*pass l1_norm",
        ),
        (
            lambda: characteristic_bound(Gaussian(), 2, 1.0, 2.0),
            "bandwidth must be a number before .* got 'median'",
        ),
        (lambda: characteristic_bound(Gaussian(1.0), 0, 1.0, 2.0), "d must be a whole number"),
        (
            lambda: characteristic_bound(Matern(1.0), 2, 1.0, 2.0, l1_norm=-1.0),
            "l1_norm must be positive",
        ),
        (lambda: theorem_2([-1.0], [0.0]), "must not be negative, .*got a risk of -1.0"),
        (
            lambda: theorem_3(Unstated(), 0.1, n=10, beta=1.0, source_norm=1.0),
            "states its constants .*measures them",
        ),
        (
            lambda: theorem_3(Tikhonov(), 2.0, n=10, beta=1.0, source_norm=1.0),
            "a λ of at most κ² = 1, got λ = 2",
        ),
        (
            lambda: theorem_3(Tikhonov(), -1.0, n=10, beta=1.0, source_norm=1.0),
            "λ must be positive",
        ),
        (lambda: theorem_3(Tikhonov(), 0.1, n=0, beta=1.0, source_norm=1.0), "n must be positive"),
        (
            lambda: theorem_3(Tikhonov(), 0.1, n=10, beta=1.0, source_norm=1.0, tau=-1.0),
            "tau must be positive",
        ),
        (lambda: rates(Tikhonov(), 0.0), "beta must be positive"),
        (lambda: check_definition_1(Tikhonov(), [2.0]), "a λ of at most κ² = 1, got λ = 2"),
        (lambda: check_definition_1(Tikhonov(), [0.1], kappa2=0.0), "kappa2 must be positive"),
        (
            lambda: check_definition_1(Tikhonov(), [0.1], exponents=[2.0]),
            "at most the filter's qualification 1",
        ),
        (
            lambda: check_definition_1(Tikhonov(), [0.1], exponents=[]),
            "exponents must not be empty",
        ),
        (lambda: check_definition_1(NuMethod(), [1.5]), "whole number"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(
    question: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        question()


def test_a_rule_that_is_no_function_of_the_eigenvalues_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a filter s_λ\(γ\) is needed, got Componentwise"):
        check_definition_1(Componentwise(), [1.0])


def test_theorem_1_does_not_contradict_itself_on_a_weighted_sample() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        X, masses = rng.normal(size=(6, 2)), rng.dirichlet(np.full(6, 0.5))
        answer = theorem_1(
            DenseGram.from_sample(Gaussian(rng.uniform(0.3, 5)), X, masses),
            c=rng.uniform(0.1, 20),
            beta=1.5,
        )
        assert answer.inside_at_n == (answer.risk_difference < 0)


def test_rates_need_a_stated_qualification_and_theorem_2_finite_means() -> None:
    with pytest.raises(ValueError, match="a filter that states its qualification is needed"):
        rates(Unstated(), 2.0)
    with pytest.raises(ValueError, match="means and targets must be finite"):
        theorem_2([1.0], [np.nan])
