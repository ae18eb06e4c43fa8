"""Sources of batches: small, empty and broken ones; and sharing work between cores."""

import os

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config

from muhat._arrays import available_cores, limit_cores, share_between_cores
from muhat.data import CHUNK_ROWS, BatchError, ColumnMoments, StreamSource
from muhat.data import _sources as sources

X = np.random.default_rng(0).normal(size=(40, 3))


def rows_of(batches):
    return list(StreamSource(batches))


def test_the_work_on_small_batches_grows_with_their_number_and_no_faster(monkeypatch):
    calls = []
    monkeypatch.setattr(
        sources, "len", lambda values: calls.append(1) or values.__len__(), raising=False
    )
    work = []
    for number in (500, 1000):
        calls.clear()
        assert StreamSource([X[:1]] * number).total(ColumnMoments.from_batch).count == number
        work.append(len(calls))
    assert work[1] <= 2 * work[0]


def test_small_batches_are_joined_to_chunks():
    batches = rows_of([X] * (CHUNK_ROWS // len(X) + 2))
    assert len(batches) <= 3
    assert sum(len(batch.X) for batch in batches) == len(X) * (CHUNK_ROWS // len(X) + 2)


@pytest.mark.parametrize("empty", [X[:0], pd.DataFrame(X[:0]), [], np.empty((0, 7))])
def test_empty_batches_are_skipped_wherever_they_are(empty):
    for batches in ([empty, X], [X, empty], [X[:7], empty, X[7:]]):
        np.testing.assert_array_equal(np.concatenate([batch.X for batch in rows_of(batches)]), X)


@pytest.mark.parametrize("batches", [[], [X[:0]], [X[:0], X[:0]]])
def test_empty_batches_only_are_refused(batches):
    with pytest.raises(
        ValueError, match="at least one batch is needed in every pass, got no batch with rows"
    ):
        rows_of(batches)


def test_an_empty_batch_counts_in_the_number_of_a_bad_one():
    with pytest.raises(BatchError, match=r"batch 2: .* row 1 \(row 41 of all, counted from 0\)"):
        rows_of([X, X[:0], np.array([[1, 2, 3], [1, np.nan, 3]])])


def cores(_=None):
    return available_cores()


def test_cores_are_those_that_joblib_counts(monkeypatch):
    assert available_cores() >= 1
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert available_cores() == 1


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("muhat._arrays.joblib.cpu_count", lambda: 2)
    monkeypatch.setattr("muhat._arrays.os.sched_getaffinity", lambda _: {-1, -2}, raising=False)
    assert available_cores() == 2


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two cores are shared")
def test_workers_of_joblib_share_the_cores():
    half = max(1, available_cores() // 2)
    with parallel_config(backend="loky"):
        assert Parallel(2)(delayed(cores)(task) for task in range(3)) == [half] * 3
    assert Parallel(2, backend="threading")(delayed(cores)(task) for task in range(3)) == [1] * 3


def test_a_context_of_joblib_limits_the_cores(two_cores):
    with parallel_config(n_jobs=1):
        assert available_cores() == 1
    assert available_cores() == 2


def test_what_a_thread_of_ours_calls_stays_on_its_core(two_cores):
    inside = []
    share_between_cores(lambda _: inside.append(available_cores()), range(3))
    assert inside == [1, 1, 1]
    with limit_cores(1):
        assert available_cores() == 1
    assert available_cores() == 2


def test_threads_of_a_dask_worker_share_the_cores(two_cores):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        assert client.submit(cores, pure=False).result() == 1
    assert available_cores() == 2
