"""A real cluster of two worker processes gives the fit in memory, whatever happens."""

import logging
import os
import pickle
import signal
import subprocess
import sys
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cloudpickle import dumps
from distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV

from muhat import KernelMean
from muhat._validation import is_dask
from muhat.data import BatchError, DaskSource, ReservoirSample
from muhat.gram import Nystrom, RandomFeatures
from muhat.kernels import Gaussian

TOLERANCE = 1e-8
NAMES = list("abcde")
X = np.random.default_rng(0).normal(size=(1500, 5)) * np.linspace(0.5, 2, 5)
POINTS = np.random.default_rng(1).normal(size=(20, 5))

pytestmark = pytest.mark.xdist_group("dask")  # one cluster is enough, where xdist goes by groups


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def same(ours, truth):
    """Whether two fits agree in choices, scores of all candidates, and values."""
    assert type(ours.filter_) is type(truth.filter_)
    assert ours.choice_.parameter == pytest.approx(truth.choice_.parameter, rel=TOLERANCE)
    for mine, its in zip(ours.choices_, truth.choices_, strict=True):
        np.testing.assert_allclose(mine.scores, its.scores, rtol=TOLERANCE, atol=0)
    np.testing.assert_allclose(ours.weights_, truth.weights_, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(ours.embedding_(POINTS), truth.embedding_(POINTS), rtol=TOLERANCE)
    assert ours.n_samples_seen_ == truth.n_samples_seen_
    assert ours.approximation_error_ == pytest.approx(truth.approximation_error_, rel=TOLERANCE)


def frame(rows=X, npartitions=4):
    return dd.from_pandas(pd.DataFrame(rows, columns=NAMES), npartitions=npartitions)


@pytest.mark.parametrize(
    "gram", [Nystrom(40), RandomFeatures(60)], ids=["nystrom", "random-features"]
)
@pytest.mark.parametrize("selection", ["loo", "kfold"])
def test_a_fit_on_the_cluster_is_the_fit_in_memory(client, gram, selection):
    truth = KernelMean(gram=gram, selection=selection).fit(X)
    for data in (da.from_array(X, chunks=(400, 5)), frame(npartitions=3)):
        ours = KernelMean(gram=gram, selection=selection).fit(data)
        same(ours, truth)


@pytest.mark.parametrize("chunks", [(1500, 5), (1, 5), (97, 2), ((1000, 0, 500), 5), (300, 1)])
def test_how_rows_and_columns_are_chunked_does_not_matter(threads, chunks):
    rows = X[:60] if chunks[0] == 1 else X
    same(
        KernelMean(gram=Nystrom(40)).fit(da.from_array(rows, chunks=chunks)),
        KernelMean(gram=Nystrom(40)).fit(rows),
    )


def test_the_number_of_workers_changes_no_bit(client):
    data = da.from_array(X, chunks=(100, 5))
    on_two = KernelMean(gram=Nystrom(40)).fit(data)
    with dask.config.set(
        scheduler=dask.get
    ):  # by its name, old versions warn that there is a cluster
        on_one = KernelMean(gram=Nystrom(40)).fit(data)
    np.testing.assert_array_equal(on_two.weights_, on_one.weights_)
    np.testing.assert_array_equal(on_two.choice_.scores, on_one.choice_.scores)


def test_rows_that_are_on_the_workers_already_are_found_there(client):
    same(
        KernelMean(gram=Nystrom(40)).fit(da.from_array(X, chunks=(400, 5)).persist()),
        KernelMean(gram=Nystrom(40)).fit(X),
    )


def deadly(rows, block_info, log):
    """Return the rows; the second time that the third block is asked for, kill the worker."""
    number = block_info[0]["chunk-location"][0]
    with open(log, "a") as lines:
        lines.write(f"{number}\n")
    if number == 3 and log.read_text().split().count("3") == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def test_a_worker_killed_in_mid_fit_changes_no_bit(client, tmp_path):
    data = da.from_array(X, chunks=(200, 5))
    truth = KernelMean(gram=Nystrom(40)).fit(data)
    before, log = client.run(os.getpid), tmp_path / "log"
    ours = KernelMean(gram=Nystrom(40)).fit(data.map_blocks(deadly, log=log, dtype=float))
    assert (
        log.read_text().split().count("3") >= 4
    )  # three passes, and one that the worker did not survive
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != set(before.values())
    np.testing.assert_array_equal(ours.weights_, truth.weights_)
    np.testing.assert_array_equal(ours.choice_.scores, truth.choice_.scores)


def test_what_reaches_the_client_does_not_grow_with_the_rows(client, monkeypatch):
    received = []

    def get(self, *arguments, **options):
        results = original(self, *arguments, **options)
        received.append(len(pickle.dumps(results)))
        return results

    original = Client.get
    monkeypatch.setattr(Client, "get", get)
    monkeypatch.setattr(Nystrom, "rows_to_learn_from", 500)
    sizes = []
    for n in (4_000, 64_000):
        received.clear()
        rows = da.random.default_rng(0).normal(size=(n, 5), chunks=(4000, 5))
        KernelMean(gram=Nystrom(20), filter="s-kmse").fit(rows)
        sizes.append(sum(received))
    assert len(received) >= 2
    assert sizes[1] < sizes[0] + 1000 < 64_000


def test_the_work_is_in_the_graph_once():
    class Sent:
        count = 0

        def __reduce__(self):
            Sent.count += 1
            return int, ()

    def get(graph, keys, **_):
        for task in getattr(
            graph, "__dask_graph__", lambda: graph
        )().values():  # dask 2024.8 gives the graph itself
            dumps(task)
        return [[1.0]]

    with dask.config.set(scheduler=get):
        DaskSource.from_collection(da.from_array(X, chunks=(50, 5))).total(partial(max, Sent()))
    assert Sent.count == 2  # once to see how large it is


def test_data_frames_have_names_and_whole_numbers_and_single_precision(threads):
    fitted = KernelMean(gram=Nystrom(40)).fit(frame())
    assert list(fitted.feature_names_in_) == NAMES
    assert fitted.n_features_in_ == 5
    table = (
        pd.DataFrame(X, columns=NAMES)
        .assign(a=np.arange(1500) % 7)
        .astype({"a": "Int64", "b": "float32"})
    )
    whole = KernelMean(gram=Nystrom(40)).fit(dd.from_pandas(table, npartitions=3))
    same(whole, KernelMean(gram=Nystrom(40)).fit(table.to_numpy(np.float64)))
    single = KernelMean(gram=Nystrom(40), selection="kfold").fit(frame(X.astype(np.float32)))
    assert single.weights_.dtype == np.float32
    assert (
        KernelMean(gram=Nystrom(9)).fit(da.from_array(X.astype(np.float32))).weights_.dtype
        == np.float32
    )


def test_left_to_itself_the_gram_is_held_as_for_an_array_and_says_why(threads):
    fitted = KernelMean(filter="s-kmse").fit(da.from_array(X, chunks=(500, 5)))
    assert (fitted.gram_, fitted.gram_reason_) == (
        "dense",
        "1500 rows are few enough for one eigendecomposition",
    )
    assert pickle.loads(pickle.dumps(fitted)).score_samples(POINTS) == pytest.approx(
        fitted.score_samples(POINTS)
    )


def test_a_target_is_shrunk_to_there_too(threads):
    target = KernelMean(kernel=Gaussian(2.0), filter="kme").fit(POINTS).embedding_
    settings = {"kernel": Gaussian(2.0), "gram": Nystrom(40), "target": target, "filter": "f-kmse"}
    same(
        KernelMean(**settings).fit(da.from_array(X, chunks=(500, 5))), KernelMean(**settings).fit(X)
    )


def test_empty_partitions_are_skipped(client):
    table = frame(npartitions=6)
    kept = table[table.a > 0.2]
    parts = dd.concat([table[table.a > 1e9], kept])
    assert 0 in dask.compute([dask.delayed(len)(part) for part in parts.to_delayed()])[0]
    same(
        KernelMean(gram=Nystrom(40)).fit(parts), KernelMean(gram=Nystrom(40)).fit(X[X[:, 0] > 0.2])
    )


def test_a_nan_is_reported_with_its_block_and_row(client):
    wrong = X.copy()
    wrong[1017, 2] = np.nan
    for data, batch, row in (
        (da.from_array(wrong, chunks=(100, 5)), 10, 17),
        (frame(wrong, 3), 2, 17),
    ):
        place = rf"NaN in its row {row} \(row 1017 of all, counted from 0\)"
        with pytest.raises(BatchError, match=rf"batch {batch}: .*{place}") as caught:
            KernelMean(gram=Nystrom(40)).fit(data)
        assert (caught.value.batch, caught.value.row) == (batch, row)
    missing = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64")})
    with pytest.raises(BatchError, match="NaN in its row 2"):
        KernelMean().fit(dd.from_pandas(missing, npartitions=1))


def other_columns(table, partition_info=None):
    return table.rename(columns={"b": "B"}) if partition_info["number"] == 1 else table


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            lambda: da.from_array(X)[da.from_array(X)[:, 0] > 0],
            r"unknown ones; call X\.compute_chunk_sizes\(\) first",
        ),
        (lambda: frame().a, "two dimensions or a dask data frame is needed, got dask's Series"),
        (lambda: da.from_array(X)[:, 0], r"is needed, got an array of shape \(1500,\)"),
        (lambda: dask.delayed(X), "got dask's Delayed"),
        (lambda: da.zeros((0, 5)), "at least one row is needed, got only empty blocks"),
        (lambda: frame()[frame().a > 1e9], "at least one row is needed, got only empty blocks"),
        (lambda: frame().assign(word="no"), "text or dates in 'word'"),
        (lambda: da.from_array(X).astype(str), "batch 0: numbers are needed"),
        (lambda: da.from_array(X)[:1], "at least 2 rows"),
        (
            lambda: da.ma.masked_greater(da.from_array(X), 1.0),
            "batch 0: batches must not have masked values, got masked ones",
        ),
        (
            lambda: frame().map_partitions(
                other_columns, meta=frame()._meta, enforce_metadata=False
            ),
            "batch 1: column 1 must be 'b'.* got 'B'",
        ),
    ],
    ids=[
        "unknown",
        "series",
        "vector",
        "delayed",
        "no-rows",
        "all-empty",
        "text",
        "strings",
        "one-row",
        "masked",
        "columns",
    ],
)
def test_what_cannot_be_taken_is_refused_in_a_sentence(threads, data, sentence):
    with pytest.raises(ValueError, match=sentence):
        KernelMean(gram=Nystrom()).fit(data())


def test_chunk_sizes_that_were_computed_are_known(threads):
    rows = da.from_array(X, chunks=(400, 5))
    some = rows[rows[:, 0] > 0].compute_chunk_sizes()
    same(KernelMean(gram=Nystrom(40)).fit(some), KernelMean(gram=Nystrom(40)).fit(X[X[:, 0] > 0]))


@pytest.mark.parametrize(
    ("fit", "sentence"),
    [
        (
            lambda rows: KernelMean(gram="dense").fit(rows),
            "need gram='nystrom' or 'random-features', got 'dense'",
        ),
        (
            lambda rows: KernelMean(gram="blocks").fit(rows),
            "need gram='nystrom' or 'random-features', got 'blocks'",
        ),
        (lambda rows: KernelMean().fit(rows, sample_weight=np.ones(1500)), "got sample_weight"),
        (lambda rows: KernelMean(target=np.ones(1500)).fit(rows), "an Embedding is needed"),
        (lambda rows: KernelMean(kernel="precomputed").fit(rows), "need a kernel that is computed"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_in_a_sentence(threads, fit, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit(da.from_array(X, chunks=(500, 5)))


def test_values_are_asked_for_block_by_block(threads):
    rows = da.from_array(X, chunks=(400, 5))
    fitted = KernelMean(gram=Nystrom(40), filter="s-kmse").fit(rows)
    for ask in (fitted.score_samples, fitted.score, fitted.partial_fit):
        with pytest.raises(TypeError, match="X must be in memory here, got dask's Array; use"):
            ask(rows)
    values = rows.map_blocks(fitted.score_samples, drop_axis=1, dtype=float).compute()
    np.testing.assert_allclose(values, fitted.score_samples(X))


def test_draws_do_not_depend_on_how_rows_are_chunked(threads):
    draws = [
        DaskSource.from_collection(da.from_array(X, chunks=(rows, 5))).total(
            partial(ReservoirSample.from_batch, size=30)
        )
        for rows in (7, 400, 1500)
    ]
    for draw in draws:
        np.testing.assert_array_equal(draw.numbers, draws[0].numbers)
        np.testing.assert_array_equal(draw.rows, X[draw.numbers])
        assert draw.count == 1500


def test_a_large_map_is_sent_without_a_warning(client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "30kB"}):
        KernelMean(gram=Nystrom(150), filter="s-kmse").fit(
            da.random.default_rng(0).normal(size=(900, 5), chunks=(300, 5))
        )


def test_a_fit_without_a_cluster_leaves_settings_as_they_are():
    """The first import of distributed, which sets its defaults, must not meet our changes."""
    code = (
        "import dask, dask.array as da; from muhat import KernelMean;"
        "rows = da.ones((9, 1), chunks=3) * da.arange(9, chunks=3)[:, None];"
        "KernelMean(filter='s-kmse').fit(rows);"
        "import distributed; dask.config.get('distributed.comm.timeouts.connect')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_collections_of_dask_are_known_without_it():
    assert is_dask(da.ones(3))
    assert is_dask(frame())
    assert not is_dask(X)
    assert not is_dask(pd.DataFrame(X))
    assert not is_dask(None)


def test_a_grid_search_on_the_cluster_finds_the_same(client):
    def search():
        return GridSearchCV(
            KernelMean(kernel=Gaussian(1.0)), {"filter": ["kme", "s-kmse", "f-kmse"]}, cv=3
        )

    here = search().fit(X[:150])
    with parallel_config(backend="dask"):
        there = search().fit(X[:150])
    np.testing.assert_array_equal(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"]
    )
    assert there.best_params_ == here.best_params_
