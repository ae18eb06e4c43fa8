"""The evidence on the tests: draws are what they are said to be, quick runs work, and verdicts follow the numbers."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from muhat import IndependenceTest, Nystrom
from muhat.paper import PAGES, Results, draw, evidence_page, read_finished
from muhat.paper._claims import FAILS, HOLDS
from muhat.paper.levels_of_tests import PEERS, SETTINGS
from muhat.paper.power_of_tests import _bump, four_gaussians, paired_table, permutation_table, perturbed_uniform

ROOT = Path(__file__).parents[1]
PAGE = PAGES["tests-evidence"]
PROVENANCE = {"commit": "0123abc", "seconds": 1.0, "versions": {}}


@pytest.fixture(scope="module")
def results():
    """Every experiment on the tests, run small."""
    found = {}
    for name, experiment in PAGE.experiments.items():
        settings = experiment.settings(True)
        rows = experiment.table(settings, [experiment.run(settings, task) for task in experiment.tasks(settings)])
        found[name] = Results(settings, rows, PROVENANCE)
    return found


def test_small_runs_have_a_page_and_figures(results, tmp_path):
    text = evidence_page(PAGE, results, tmp_path, tmp_path / "page.md")
    for name in PAGE.experiments:
        assert f"## {name}:" in text
        draw(PAGE.experiments[name], results[name]).draw_without_rendering()
    assert {row["setting"] for row in results["test-levels"].rows} == set(SETTINGS)
    assert all(row["smallest"] > 0 for row in results["test-levels"].rows)
    assert "| uniform, d = 1, P = 1 | " in text


def test_a_level_fails_where_too_many_or_too_few_are_rejected(results):
    experiment = PAGE.experiments["test-levels"]

    def verdicts(**changes):
        rows = [{**row, "rejected": row["level"], "error": 0.01, "kolmogorov_smirnov_p": 0.5} for row in few]
        rows[4].update(changes)
        return [claim.verdict for claim in experiment.claims(replace(results["test-levels"], rows=rows))]

    few = results["test-levels"].rows
    assert verdicts() == [HOLDS] * 4
    assert verdicts(rejected=few[4]["level"] + 0.031)[0] == FAILS
    assert verdicts(rejected=few[4]["level"] - 0.031)[1] == FAILS
    assert verdicts(smallest=0.0)[2] == FAILS
    assert verdicts(kolmogorov_smirnov_p=1e-6)[3] == FAILS


def test_power_is_judged_against_what_peers_published(results):
    experiment = PAGE.experiments["test-power"]

    def verdicts(power):
        settings = experiment.settings(False)
        p_values = [0.0] * round(500 * power) + [1.0] * round(500 * (1 - power))
        rows = experiment.table(settings, [[{"cell": 2, "group": "default", "p_values": p_values}]])
        found = [row for row in rows if (row["problem"], row["d"], row["P"]) == ("uniform", 1, 3)]
        return [claim.verdict for claim in experiment.claims(replace(results["test-power"], rows=found))]

    assert verdicts(0.6) == [HOLDS, FAILS]
    assert verdicts(0.5) == [FAILS, FAILS]
    assert verdicts(0.7) == [HOLDS, HOLDS]


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
        assert min(abs(inside.mean() - 0.25 - gain), abs(inside.mean() - 0.25 + gain)) < 4 * np.sqrt(0.19 / 40_000)
    Z = four_gaussians(20_000, 1.3, rng)
    wide = (Z > 0).all(axis=1)
    assert Z[wide].std(axis=0) == pytest.approx([1.3, 1.3], rel=0.03)
    assert Z[(Z < 0).all(axis=1)].std(axis=0) == pytest.approx([1.0, 1.0], rel=0.03)


def test_the_default_of_the_evidence_is_the_default():
    rng = np.random.default_rng(0)
    table, names = permutation_table(rng.random((20, 1)), rng.random((15, 1)), Nystrom(10), 9, rng)
    assert table.values.shape == (20 * 16, 10)
    assert [names.count([name]) for name in ("mmd", "tsvd", "f-kmse", "shrunk-means")] == [20, 100, 100, 100]
    chosen = np.array([name == ["mmd"] for name in names])
    assert table.only(chosen).standardized.tolist() == table.standardized[chosen].tolist()


def test_so_it_is_for_independence():
    X, Y = np.random.default_rng(0).random((2, 30, 1))
    table, names = paired_table(X, Y, Nystrom(10), 9, np.random.default_rng(1))
    default = np.array(["shrunk-means" not in each for each in names])
    seed = int(np.random.default_rng(1).integers(2**31))
    options = {"gram": Nystrom(10), "n_permutations": 9, "random_state": seed}
    result = IndependenceTest(statistics=("mmd", "spectral"), **options).test(X, Y)
    assert table.only(default).p_value == result.p_value
    np.testing.assert_allclose(table.only(default).values[:, 0], [each.value for each in result.tests])
    assert names.count(["mmd", "mmd"]) == 16
    assert names.count(["shrunk-means", "shrunk-means"]) == 144
    assert not any(len({each == "shrunk-means" for each in some}) == 2 for some in names)


def test_the_committed_page_is_what_its_results_say():
    path, folder = ROOT / "docs" / "tests-evidence.md", ROOT / "docs" / "evidence"
    text = path.read_text(encoding="utf-8")
    found = read_finished(folder, PAGE.experiments.values())
    assert evidence_page(PAGE, found, folder, path) == text
    assert list(found) == list(PAGE.experiments)
    assert "-dirty" not in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / target).is_file(), target


def test_other_packages_were_measured_with_their_versions():
    found = json.loads(PEERS.read_text(encoding="utf-8"))["peers"]
    assert {"hyppo MMD", "dcor energy test", "frouros MMD", "alibi-detect MMDDrift"} <= set(found)
    for peer in found.values():
        assert peer["version"] if "levels" in peer else peer.get("missing") or peer.get("failed")
