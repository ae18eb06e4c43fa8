"""The evidence on the tests: draws are as described, and verdicts follow the numbers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from muhat.kernels import Gaussian
from paper import PAGES, Results, draw, evidence_page
from paper._tables import one
from paper.experiments import alternatives_of_tests as alternatives
from paper.experiments import levels_of_tests as levels
from paper.experiments.levels_of_tests import PEERS, PRECOMPUTED, ROUTES
from paper.experiments.power_of_tests import _bump, four_gaussians, perturbed_uniform

ROOT = Path(__file__).parents[1]
PAGE = PAGES["tests-evidence"]
PROVENANCE = {"commit": "0123abc", "seconds": 1.0, "versions": {}}


@pytest.fixture(scope="module")
def results():
    """Every experiment on the tests, run small."""
    found = {}
    for name, experiment in PAGE.experiments.items():
        settings = experiment.settings(True)
        rows = experiment.table(
            settings, [experiment.run(settings, task) for task in experiment.tasks(settings)]
        )
        found[name] = Results(settings, rows, PROVENANCE)
    return found


def test_small_runs_have_a_page_and_figures(results, tmp_path):
    text = evidence_page(PAGE, results, tmp_path, tmp_path / "page.md")
    for name in PAGE.experiments:
        assert f"## {name}:" in text
        draw(PAGE.experiments[name], results[name]).draw_without_rendering()
    assert "## Claims" not in text
    assert "| uniform, d = 1, P = 1 | " in text


def test_every_route_of_every_test_is_in_the_table_of_levels(results):
    wanted = {(test, route) for test, routes in ROUTES.items() for route in routes}
    assert {(row["test"], row["route"]) for row in results["test-levels"].rows} == wanted
    full = levels.settings(False)["cells"]
    assert {(test, route) for test, route, _ in full} == wanted
    assert all(row["smallest"] > 0 for row in results["test-levels"].rows)


@pytest.mark.parametrize("test", ["TwoSampleTest", "IndependenceTest"])
def test_a_gram_matrix_that_was_computed_before_is_a_route(test):
    X, Y = np.random.default_rng(0).normal(size=(2, 24, 2))
    assert (
        0
        < ROUTES[test][PRECOMPUTED](X, Y, {"n_permutations": 19, "random_state": 0, "n_jobs": 1})
        <= 1
    )


def test_a_cell_that_rejects_too_often_is_named_with_what_chance_makes_of_so_many():
    rows = [
        {
            "test": "T",
            "route": "dense",
            "null": null,
            "draws": 400,
            "rejected": share,
            "error": 0.01,
            "smallest": 0.05,
        }
        for null, share in (("ties", 0.05), ("copies", 0.09), ("Cauchy", 0.01))
    ]
    rows = [{**row, "z": (row["rejected"] - 0.05) / row["error"]} for row in rows]
    largest, above, smallest = levels.findings(Results(levels.settings(False), rows, PROVENANCE))
    assert largest.number.startswith(
        "4.0 standard errors (0.0900: T, dense, copies); the largest of 3 "
    )
    assert largest.number.endswith("is 0.8 in the mean")
    assert above.number == "T, dense, copies: 0.090"
    assert smallest.number == "0.05"


def test_power_stands_beside_what_peers_published(results):
    experiment = PAGE.experiments["test-power"]
    settings = experiment.settings(False)
    rows = experiment.table(settings, [[{"cell": 2, "p_values": [0.0] * 300 + [1.0] * 200}]])
    found = [row for row in rows if (row["problem"], row["d"], row["P"]) == ("uniform", 1, 3)]
    (finding,) = experiment.findings(replace(results["test-power"], rows=found))
    assert finding.number == "0.600 ± 0.022; MMDAgg 0.602 ± 0.022"


def test_plain_tests_are_their_definitions():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    D = alternatives.distances(X)
    assert D[2, 5] == pytest.approx(np.linalg.norm(X[2] - X[5]))
    np.testing.assert_allclose(alternatives.gaussian(D), Gaussian().resolve(X)(X), rtol=1e-12)
    yes_no = alternatives.distances(np.array([[0.0]] * 8 + [[1.0]]))
    assert alternatives.gaussian(yes_no)[0, 8] == pytest.approx(np.exp(-0.5))
    A, B = (alternatives.distances(rows) for rows in (X, Y))
    a, b = (each - each.mean(0) - each.mean(1)[:, None] + each.mean() for each in (A, B))
    # Székely, Rizzo and Bakirov (2007), theorem 1: S1 + S2 − 2 S3
    sums = (A * B).mean() + A.mean() * B.mean() - 2 * (A.mean(axis=1) * B.mean(axis=1)).mean()
    assert (a * b).mean() == pytest.approx(sums)
    x, y = X[:4, :1], X[4:, :1]
    energy = 2 * np.abs(x - y.T).mean() - np.abs(x - x.T).mean() - np.abs(y - y.T).mean()
    w = np.concatenate([np.full(4, 1 / 4), np.full(5, -1 / 5)])
    assert -w @ alternatives.distances(X[:, :1]) @ w == pytest.approx(energy)


def test_plain_tests_find_what_is_there_and_hold_their_level():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 1))
    assert set(
        alternatives.plain_dependence(x, x + 0.3 * rng.normal(size=(40, 1)), 99, rng).values()
    ) == {0.01}
    assert set(alternatives.plain_difference(x, x + 2, 99, rng).values()) == {0.01}
    pairs = [
        alternatives.plain_dependence(*rng.normal(size=(2, 12, 1)), 19, rng) for _ in range(200)
    ]
    samples = [
        alternatives.plain_difference(*rng.normal(size=(2, 12, 1)), 19, rng) for _ in range(200)
    ]
    for found in (pairs, samples):
        for name in found[0]:
            assert np.mean([each[name] <= 0.05 for each in found]) < 0.05 + 3.5 * np.sqrt(
                0.05 * 0.95 / 200
            )


def test_the_default_stands_beside_the_better_plain_test():
    powers = {"default": 0.6, "former": 0.4, "distance covariance": 0.7, "HSIC": 0.5}
    cell = {
        "problem": "independence",
        "alternative": "linear",
        "n": 30,
        "smooth": True,
        "draws": 100,
        "error": 0.05,
        "paired_error": 0.03,
    }
    rows = [{**cell, "test": test, "power": power} for test, power in powers.items()]
    plain, former = alternatives.EXPERIMENT.findings(Results({}, rows, PROVENANCE))
    gap = "−0.100 ± 0.030 (linear)"
    assert plain.number == f"−0.100 in the mean of 1; least {gap}, most {gap}"
    assert former.number.startswith("+0.200 in the mean of 1; ")
    blocks = []
    default, hsic = np.array([[1, 0, 0, 1], [1, 0, 0, 0]]), np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    for ours, others in zip(default, hsic, strict=True):
        rows = []
        for test, each in (("default", ours), ("HSIC", others)):
            counts = {"rejected": each.sum(), "disagreed": (each != ours).sum(), "draws": 4}
            rows.append({**cell, "test": test, **counts})
        blocks.append(rows)
    found = one(alternatives.table({"cells": [["independence", "linear"]]}, blocks), test="HSIC")
    assert found["power"] == 0.5
    assert found["paired_error"] == pytest.approx((hsic - default).std() / np.sqrt(8))


def test_perturbed_uniforms_have_their_density():
    x = np.linspace(-1.2, 0.2, 50)
    expected = [
        np.exp(-1 / (1 - (4 * each + 3) ** 2)) if -1 < each < -0.5
        else -np.exp(-1 / (1 - (4 * each + 1) ** 2)) if -0.5 < each < 0
        else 0.0
        for each in x
    ]  # fmt: skip
    np.testing.assert_allclose(_bump(x), expected, atol=1e-15)
    rng = np.random.default_rng(0)
    X = perturbed_uniform(40_000, 1, 2, 2.7, rng)[:, 0]
    grid = (np.arange(4000) + 0.5) / 4000
    for half in (0, 1):  # each half of each bump has more or less, by one sign
        inside = (half / 2 < X) & (half / 2 + 0.25 > X)
        gain = 2.7 / 2 * _bump(grid[grid < 0.25] * 2 - 1).sum() / 4000
        assert min(
            abs(inside.mean() - 0.25 - gain), abs(inside.mean() - 0.25 + gain)
        ) < 4 * np.sqrt(0.19 / 40_000)
    Z = four_gaussians(20_000, 1.3, rng)
    wide = (Z > 0).all(axis=1)
    assert Z[wide].std(axis=0) == pytest.approx([1.3, 1.3], rel=0.03)
    assert Z[(Z < 0).all(axis=1)].std(axis=0) == pytest.approx([1.0, 1.0], rel=0.03)


def test_other_packages_were_measured_with_their_versions():
    found = json.loads(PEERS.read_text(encoding="utf-8"))["peers"]
    assert {"hyppo MMD", "dcor energy test", "frouros MMD", "alibi-detect MMDDrift"} <= set(found)
    for peer in found.values():
        assert peer["version"] if "levels" in peer else peer.get("missing") or peer.get("failed")
