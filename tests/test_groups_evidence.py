"""The evidence on groups: true means are exact, other estimators follow their formulas."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from muhat import Embedding, Gaussian, KernelMeans, Mixture
from paper import PAGES, Results, draw, evidence_page
from paper._checkpoints import through_json
from paper._group_laws import GaussianGroups, class_shares, draw_groups, rotated, speakers, towns
from paper._group_rivals import PlainMeans, q_aggregation, rivals, weighted
from paper.experiments import group_learning, group_means
from paper.experiments.group_means import LAWS, averaged, by_group, losses_of_draw

ROOT = Path(__file__).parents[1]
PAGE = PAGES["groups-evidence"]
PROVENANCE = {"commit": "0123abc", "seconds": 1.0, "versions": {}}


@pytest.fixture(scope="module")
def results():
    """Every experiment on groups, run small."""
    found = {}
    for name, experiment in PAGE.experiments.items():
        settings = through_json(experiment.settings(True))
        rows = []
        for task in through_json(experiment.tasks(settings)):
            rows.append(through_json(experiment.run(settings, task)))
        found[name] = Results(settings, experiment.table(settings, rows), PROVENANCE)
    return found


def test_small_runs_have_a_page_and_figures(results, tmp_path):
    text = evidence_page(PAGE, results, tmp_path, tmp_path / "page.md")
    for name, experiment in PAGE.experiments.items():
        assert f"## {name}:" in text
        assert experiment.is_quick(results[name])
        draw(experiment, results[name]).draw_without_rendering()
    assert "## Claims" not in text


def test_the_mean_of_normal_rows_is_that_of_the_library():
    law = rotated(3, np.random.default_rng(0))
    kernel = Gaussian(1.3)
    X = np.random.default_rng(1).normal(size=(4, 2))
    for t in range(3):
        same = Mixture([1.0], law.centres[t][None], law.covariances[t][None])
        weights = np.full(4, 0.25)
        mean = Embedding(kernel, X, weights)
        ours = law.values(kernel, X)[:, t]
        loss = weights @ kernel(X) @ weights - 2 * weights @ ours + law.gram(kernel)[t, t]
        np.testing.assert_allclose(loss, mean.loss(same), rtol=1e-10)


@pytest.mark.parametrize("law", [rotated, class_shares("wine", 1.0), speakers, towns])
def test_rows_are_of_the_law_whose_mean_is_known(law):
    """Values of the kernel mean are averages of the kernel over many rows."""
    rng = np.random.default_rng(0)
    groups = law(4, rng)
    rows = groups.draw(2, 20_000, rng)
    X = groups.draw(1, 5, rng)
    kernel = Gaussian(2.0)
    expected = kernel(X, rows).mean(axis=1)
    np.testing.assert_allclose(groups.values(kernel, X)[:, 2], expected, atol=0.02)


def test_losses_are_those_of_the_embeddings():
    cell = ["five clusters, radius 2", 1.5, 6, [4, 9]]
    row = losses_of_draw(cell, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    law = LAWS[cell[0]](6, rng)
    samples, _ = draw_groups(law, cell[3], rng)
    model = KernelMeans(kernel=Gaussian(1.5), standardize=False).fit(samples)
    ours, plain = 0.0, 0.0
    for t, sample in enumerate(samples):
        true = Mixture([1.0], law.centres[t][None], law.covariances[t][None])
        ours += model.embedding_of(t).loss(true)
        plain += Embedding(Gaussian(1.5), sample, np.full(len(sample), 1 / len(sample))).loss(true)
    np.testing.assert_allclose([row["ours"], row["plain"]], [ours, plain], rtol=1e-8)


@pytest.fixture
def plain_means():
    law = LAWS["curve, d = 10"](8, np.random.default_rng(0))
    assert isinstance(law, GaussianGroups)
    samples, n = draw_groups(law, [6, 12], np.random.default_rng(1))
    X = np.concatenate(samples)
    kernel = Gaussian(4.0)
    return PlainMeans.from_gram(by_group(averaged(kernel, X, X, n), n), np.ones(8), n)


def test_other_estimators_average_the_plain_means(plain_means):
    names = set()
    for name, _, W in rivals(plain_means):
        names.add(name)
        if name != "S-KMSE":
            np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-9)
            assert W.min() > -1e-9
    assert names == set(group_means.COLOURS) - {group_means.OURS}


def test_q_aggregation_is_the_least_bound_in_the_simplex(plain_means):
    W = q_aggregation(plain_means, 0.3)
    both = plain_means.noise[:, None] + plain_means.noise
    np.fill_diagonal(both, 0)
    for t in (0, 5):

        def bound(w, t=t):
            linear = -2 * plain_means.products[t] + 0.3 * both[t]
            return 1000 * (w @ plain_means.G @ w + linear @ w)

        best = minimize(
            bound,
            np.full(8, 1 / 8),
            bounds=[(0, 1)] * 8,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert bound(W[t]) <= best.fun + 1e-3


def test_neighbours_are_weighted_by_the_least_bound(plain_means):
    """A group without neighbours keeps its mean; else no other share has a lower bound."""
    near = plain_means.neighbours(1.0)
    near[0] = np.arange(8) == 0
    W = weighted(plain_means, near, 0.5)
    np.testing.assert_allclose(W[0], np.eye(8)[0])
    D = plain_means.noise
    for t in range(1, 8):
        others = np.flatnonzero(near[t] & (np.arange(8) != t))
        if len(others):
            D_V = 1 / (1 / D[others]).sum()
            shares = np.linspace(0, 1, 1001)
            bounds = shares**2 * D[t] + (1 - shares) ** 2 * (D_V + 0.5 * D[t])
            assert abs(W[t, t] - shares[bounds.argmin()]) < 2e-3


@pytest.mark.parametrize(
    "problem", [*group_learning.REGRESSIONS, *group_learning.CLASSIFICATIONS], ids=str
)
def test_problems_draw_a_y_for_each_group(problem):
    make = {**group_learning.REGRESSIONS, **group_learning.CLASSIFICATIONS}[problem]
    groups = make(5, 7, np.random.default_rng(0))
    assert [len(sample) for sample in groups.samples] == [7] * 5
    assert groups.y.shape == (5,)
