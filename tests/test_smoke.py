"""One small test of every capability: ``make quick``. Whether the numbers are right is for the other files."""

import subprocess
import sys

import numpy as np
import pytest

from muhat import KernelMean
from muhat.comparison import compare
from muhat.data import open_batches
from muhat.density import MatchedMixture
from muhat.filters import FILTERS
from muhat.gram import GRAMS, Nystrom
from muhat.kernels import KERNELS, Gaussian
from muhat.paper import theory
from muhat.paper.datasets import SyntheticFamily, load_dataset
from muhat.selection import RULES, Fixed

RNG = np.random.default_rng(0)
X = 1 + RNG.normal(size=(60, 2))


def is_finite(mean):
    return bool(np.isfinite(mean.embedding_(X[:3])).all() and mean.embedding_.norm() > 0)


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"precomputed"}))
def test_every_kernel(kernel):
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
    mean = KernelMean(target=np.full(60, 1 / 60)).fit(X.astype(np.float32), sample_weight=np.arange(1.0, 61))
    assert is_finite(mean)
    assert mean.weights_.dtype == np.float32


def test_batches_streams_partial_fits_and_merging():
    batches = np.array_split(X, 3)
    gram = Nystrom(landmarks=X[:10])
    assert is_finite(KernelMean(gram=gram).fit_batches(batches))
    assert is_finite(KernelMean(gram=gram).fit_batches(iter(batches)))
    one, two = (KernelMean(gram=gram, kernel=Gaussian(1.0)).partial_fit(part) for part in np.array_split(X, 2))
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


def test_density_theory_and_data():
    assert np.isfinite(MatchedMixture(2).fit(X).score(X))
    assert theory.theorem_1(Gaussian(1.0)(X), c=1.0, beta=1.5) is not None
    assert theory.check_definition_1(FILTERS["f-kmse"](), [0.1, 1.0]) is not None
    assert load_dataset("wine").data.shape[0] == 178
    assert next(iter(SyntheticFamily(2).draw([0], n=5, random_state=0))).X.shape == (5, 2)


@pytest.mark.parametrize("arguments", [["compare"], ["reproduce", "figure-2", "--quick"]], ids=" ".join)
def test_commands(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "muhat", *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
