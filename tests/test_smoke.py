"""One small test of every capability: ``make quick``; other files check the numbers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from muhat import (
    ConditionalMean,
    DriftDetector,
    DriftDisplay,
    FilterDisplay,
    GroupTest,
    IndependenceTest,
    KernelMean,
    LeaveOneOutDisplay,
    Mixture,
    TwoSampleTest,
    theory,
)
from muhat.comparison import compare
from muhat.data import open_batches
from muhat.datasets import SyntheticFamily, load_dataset
from muhat.density import MatchedMixture
from muhat.filters import FILTERS
from muhat.gram import GRAMS, Nystrom
from muhat.kernels import KERNELS, Gaussian, Laplacian, Linear
from muhat.selection import RULES, Fixed

RNG = np.random.default_rng(0)
X = 1 + RNG.normal(size=(60, 2))


def is_finite(mean):
    return bool(np.isfinite(mean.embedding_(X[:3])).all() and mean.embedding_.norm() > 0)


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
def test_every_kernel(kernel):
    assert is_finite(KernelMean(kernel=kernel).fit(X))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(1.0) + Linear(),
        Gaussian() * Laplacian(),
        2.0 * Gaussian(),
        RBF(1.0),
        lambda X, Y: X @ Y.T,
    ],
    ids=["sum", "product", "multiple", "scikit-learn's", "function"],
)
def test_kernels_made_of_others_and_those_of_others(kernel):
    assert is_finite(KernelMean(kernel=kernel).fit(X))


def test_a_precomputed_kernel():
    assert KernelMean(kernel="precomputed").fit(Gaussian(1.0)(X)).weights_.shape == (60,)


@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter(filter):
    assert is_finite(KernelMean(filter=filter).fit(X))


@pytest.mark.parametrize("selection", [*RULES, Fixed(0.1)], ids=str)
def test_every_rule(selection):
    assert is_finite(KernelMean(filter="f-kmse", selection=selection).fit(X))


@pytest.mark.parametrize("gram", GRAMS)
def test_every_way_to_hold_the_gram_matrix(gram):
    assert is_finite(KernelMean(gram=gram).fit(X))


def test_weights_targets_and_single_precision():
    mean = KernelMean(target=np.full(60, 1 / 60)).fit(
        X.astype(np.float32), sample_weight=np.arange(1.0, 61)
    )
    assert is_finite(mean)
    assert mean.weights_.dtype == np.float32


def test_lists_of_filters_embeddings_as_targets_and_distances():
    mean = KernelMean(kernel=Gaussian(1.0), filter=["f-kmse", "landweber"]).fit(X)
    towards = KernelMean(kernel=Gaussian(1.0), target=mean.embedding_).fit(X + 1)
    assert mean.embedding_.distance(towards.embedding_) > 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frame = pytest.importorskip(library).DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert KernelMean().fit(frame).feature_names_in_.tolist() == ["a", "b"]


def test_pipelines_and_grid_searches():
    assert np.isfinite(make_pipeline(StandardScaler(), KernelMean()).fit(X).score_samples(X)).all()
    density = MatchedMixture(2, mean=KernelMean())
    assert GridSearchCV(density, {"mean__kernel__bandwidth": [1.0, 4.0]}, cv=2).fit(X).best_params_


def test_batches_streams_partial_fits_and_merging():
    batches = np.array_split(X, 3)
    gram = Nystrom(landmarks=X[:10])
    assert is_finite(KernelMean(gram=gram).fit_batches(batches))
    assert is_finite(KernelMean(gram=gram).fit_batches(iter(batches)))
    one, two = (
        KernelMean(gram=gram, kernel=Gaussian(1.0)).partial_fit(part)
        for part in np.array_split(X, 2)
    )
    assert one.merge(two).n_samples_seen_ == 60


def test_dask():
    array = pytest.importorskip("dask.array")
    assert is_finite(KernelMean(gram=Nystrom(10)).fit(array.from_array(X, chunks=(20, 2))))


@pytest.mark.parametrize("name", ["rows.csv", "rows.npy", "rows.parquet"])
def test_files(name, tmp_path):
    path = tmp_path / name
    if name.endswith("csv"):
        np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    elif name.endswith("npy"):
        np.save(path, X)
    else:
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame(X, columns=["a", "b"]).to_parquet(path)
    assert is_finite(KernelMean(gram=Nystrom(10)).fit_batches(open_batches(path)))


def test_comparison_and_its_figure(tmp_path):
    from muhat.plots import comparison_figure

    comparison = compare(X)
    assert comparison.verdict()
    assert comparison_figure(comparison).axes
    for display in (LeaveOneOutDisplay, FilterDisplay):
        assert display.from_estimator(KernelMean().fit(X)).plot()


def test_conditional_means():
    model = ConditionalMean().fit(X, X[:, 0] + np.sin(X[:, 1]))
    assert model.loo_score_ > 0.5
    assert np.isfinite(model.predict_interval(X, confidence=0.8)).all()
    assert np.isfinite(model.predict_quantiles(X, [0.1, 0.9])).all()


def test_tests_and_drift():
    settings = {
        "kernel": "gaussian",
        "bandwidths": "median",
        "n_permutations": 99,
        "random_state": 0,
    }
    assert TwoSampleTest(**settings).test(X, [X[:30] + 3, X[30:] + 3]).p_value == 0.01
    assert IndependenceTest(**settings).test(X[:, :1], X[:, :1] ** 2).p_value == 0.01
    groups = np.repeat(["a", "b", "c"], 20)
    assert GroupTest(**settings).test(X + 3 * (groups == "b")[:, None], groups).p_value == 0.01
    test = TwoSampleTest(gram=Nystrom(10), bins=20, early_stopping=5, **settings)
    detector = DriftDetector(test, random_state=0).fit(X)
    assert [detector.update(X[:30] + shift).is_alarm for shift in (0, 5)] == [False, True]
    assert DriftDisplay.from_detector(detector).plot()


def test_density_theory_and_data():
    assert np.isfinite(MatchedMixture(2).fit(X).score(X))
    assert theory.theorem_1(Gaussian(1.0)(X), c=1.0, beta=1.5) is not None
    assert theory.theorem_2(risk=[0.1, 0.2], mean=[1.0, 0.5]).upper.shape == (2,)
    assert (
        theory.theorem_3(FILTERS["f-kmse"](), 0.1, n=60, beta=1.0, source_norm=1.0).probability < 1
    )
    assert theory.check_definition_1(FILTERS["f-kmse"](), [0.1, 1.0]) is not None
    mean = KernelMean(kernel=Gaussian(1.0)).fit(X).embedding_
    assert Mixture.isotropic([1.0], [[0.0, 0.0]], [1.0]).squared_distance(mean) > 0
    assert load_dataset("wine").data.shape[0] == 178
    assert next(iter(SyntheticFamily(2).draw([0], n=5, random_state=0))).X.shape == (5, 2)


@pytest.mark.parametrize(
    "arguments",
    [["muhat", "compare", "--out", "figure.png"], ["paper", "figure-2", "--quick"]],
    ids=" ".join,
)
def test_commands(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    assert done.returncode == 0, done.stderr
