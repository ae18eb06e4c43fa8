"""The evidence on kernel PCA: experiments run small, and the page that is kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from muhat import KernelPCA
from muhat._arrays import BLAS_ON_ONE_THREAD
from paper import PAGES, Results, draw, evidence_page
from paper._tables import from_csv, to_csv
from paper.experiments import pca_components, pca_denoising, pca_novelty

ROOT = Path(__file__).parents[1]
PAGE = PAGES["pca-evidence"]


def quick(name):
    """The results of an experiment run small, as they are read from its files."""
    experiment = PAGE.experiments[name]
    settings = json.loads(json.dumps(experiment.settings(True)))
    raw = []
    with BLAS_ON_ONE_THREAD:
        for task in experiment.tasks(settings):
            raw.append(json.loads(json.dumps(experiment.run(settings, task))))
    rows = from_csv(to_csv(experiment.table(settings, raw)))
    return Results(settings, rows, {"seconds": 1.0, "commit": "0123abc"})


@pytest.fixture(scope="module")
def results():
    return {name: quick(name) for name in PAGE.experiments}


def test_every_experiment_has_a_figure_findings_and_a_section_on_the_page(results, tmp_path):
    for name, experiment in PAGE.experiments.items():
        draw(experiment, results[name]).draw_without_rendering()
        assert experiment.findings(results[name])
        assert experiment.text.endswith(".")
    text = evidence_page(PAGE, results, tmp_path, tmp_path / "page.md")
    assert all(f"## {name}: " in text for name in PAGE.experiments)


def test_the_error_of_the_best_number_is_that_of_a_regression_on_scores():
    settings = pca_components.settings(True)
    task = {"shape": "circle in R³", "n": 60, "repetition": 0}
    X, new, clean = pca_components.sample(settings, task)
    errors = pca_components.linear_errors(X, new, clean, 5)
    pca = KernelPCA(3).fit(X)
    own = np.column_stack([np.ones(60), pca.transform(X)])
    weights = np.linalg.lstsq(own, X, rcond=None)[0]
    predicted = np.column_stack([np.ones(len(new)), pca.transform(new)]) @ weights
    assert abs(errors[3] - ((predicted - clean) ** 2).mean()) < 1e-10


def test_the_peer_of_denoising_is_scikit_learns_with_alpha_one():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 5)), rng.normal(size=(10, 5))
    peer = pca_denoising.SklearnKernelPCA(
        3, kernel="rbf", gamma=0.1, fit_inverse_transform=True
    ).fit(X)
    theirs = peer.inverse_transform(peer.transform(new))
    rows = pca_denoising.best_peer(X, new, theirs, 3, 0.1)  # its grid holds alpha 1, the same gamma
    assert np.abs(rows - theirs).max() < 1e-8


def test_detectors_rank_far_rows_first():
    rng = np.random.default_rng(0)
    new = np.concatenate([rng.normal(size=(10, 3)), 8 + rng.normal(size=(10, 3))])
    for scores in pca_novelty.detector_scores(rng.normal(size=(50, 3)), new).values():
        assert scores[10:].min() > scores[:10].max()
