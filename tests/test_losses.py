"""Exact losses of many samples at once are those of each estimate on its own."""

import numpy as np
import pytest

from muhat import KernelMean
from muhat._parts import as_filter
from muhat.datasets import SyntheticFamily
from muhat.kernels import Gaussian
from muhat.selection import GCV, Fixed, LeaveOneOut
from muhat.theory import ExactLosses

SEED = 7


@pytest.fixture(scope="module")
def draws():
    return list(SyntheticFamily(5).draw(range(6), n=20, random_state=SEED))


def exact_losses(draws):
    kernels = [Gaussian().resolve(draw.X) for draw in draws]
    return ExactLosses.from_samples(
        [draw.X for draw in draws], [draw.distribution for draw in draws], kernels
    )


@pytest.fixture(scope="module")
def exact(draws):
    return exact_losses(draws)


@pytest.mark.parametrize(
    ("name", "grid"), [("f-kmse", [0.01, 1.0]), ("landweber", [1, 30]), ("s-kmse", [0.1])]
)
def test_losses_of_a_path_are_those_of_single_fits(draws, exact, name, grid):
    path = exact.of_path(as_filter(name).bounded_by(1.0), np.array(grid))
    assert path.shape == (len(draws), len(grid))
    for place, parameter in enumerate(grid):
        for i, draw in enumerate(draws):
            mu = KernelMean(filter=name, selection=Fixed(parameter)).fit(draw.X)
            assert path[i, place] == pytest.approx(
                draw.distribution.squared_distance(mu.embedding_), rel=1e-9
            )


@pytest.mark.parametrize(
    ("name", "selection", "rule"), [("s-kmse", "loo", LeaveOneOut()), ("tsvd", "gcv", GCV())]
)
def test_losses_of_a_choice_are_those_of_single_fits(draws, name, selection, rule):
    for draw in draws:
        exact = exact_losses([draw])
        mu = KernelMean(filter=name, selection=selection).fit(draw.X)
        [loss] = exact.of_choice(rule.choose(exact.problem, as_filter(name).bounded_by(1.0)))
        assert loss == pytest.approx(draw.distribution.squared_distance(mu.embedding_), rel=1e-6)


def test_losses_of_multiples_need_no_decomposition_and_are_the_same(draws, exact):
    s = np.array([1.0, 0.7])
    assert np.allclose(
        exact.of_multiples(s)[:, :1], exact.of_path(as_filter("kme"), np.zeros(1)), rtol=1e-10
    )
    assert np.allclose(
        exact.of_multiples(s)[:, 1:], exact.of_path(as_filter("s-kmse"), 1 / s[1:] - 1), rtol=1e-10
    )
    fresh = exact_losses(draws[:2])
    fresh.of_multiples(s)
    assert "spectrum" not in vars(fresh.problem)


def test_the_best_multiple_is_the_best_there_is(exact):
    assert np.allclose(
        exact.of_best_multiple(),
        exact.of_multiples(np.linspace(0, 1, 10_001)).min(axis=1),
        rtol=1e-6,
    )


def test_each_sample_is_a_problem_of_its_own_too(exact):
    together = exact.problem.components.gamma
    assert np.allclose(
        [problem.components.gamma for problem in exact.problems], together, atol=1e-12
    )


def test_what_does_not_fit_together_is_refused(draws):
    X, P = draws[0].X, draws[0].distribution
    with pytest.raises(
        ValueError,
        match="one kernel for each sample are needed, got 2 samples, 2 distributions and 1",
    ):
        ExactLosses.from_samples([X, X], [P, P], [Gaussian(1.0)])
    with pytest.raises(
        ValueError, match=r"all samples must have the same shape, got \(19, 5\), \(20, 5\)"
    ):
        ExactLosses.from_samples([X, X[1:]], [P, P], [Gaussian(1.0)] * 2)
