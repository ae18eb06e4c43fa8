"""Without threads (a browser, a restricted container) the same work is done in order."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from muhat import (
    ConditionalMean,
    DriftDetector,
    IndependenceTest,
    KernelMean,
    Nystrom,
    StackedMean,
    TwoSampleTest,
    compare,
    mmd,
)
from muhat import _arrays as arrays
from muhat._threaded_property import ThreadedProperty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = RNG.normal(size=(500, 3)) + 0.1
y = X[:, 0] + np.sin(X[:, 1])


CALLS = {
    "KernelMean": lambda: KernelMean().fit(X).weights_,
    "truncated SVD": lambda: KernelMean(filter="tsvd").fit(X[:200]).weights_,
    "blocks": lambda: KernelMean(filter="nu-method", gram="blocks").fit(X).weights_,
    "compare": lambda: [row.score for row in compare(X[:200]).rows],
    "StackedMean": lambda: StackedMean().fit(X[:100]).score_samples(Y),
    "TwoSampleTest": lambda: TwoSampleTest(n_permutations=19, random_state=0).test(X, Y).p_value,
    "IndependenceTest": lambda: (
        IndependenceTest(n_permutations=19, random_state=0).test(X[:, :1], X[:, 1:]).p_value
    ),
    "ConditionalMean": lambda: ConditionalMean().fit(X, y).predict(Y),
    "DriftDetector": lambda: DriftDetector(random_state=0).fit(X).update(Y).p_value,
    "mmd": lambda: mmd(X, Y),
    "batches": lambda: (
        KernelMean(gram=Nystrom(50)).fit_batches([X[:300], X[300:]]).score_samples(Y)
    ),
}


def no_thread(thread):
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("name", CALLS)
def test_without_threads_the_result_is_the_same(name, monkeypatch):
    expected = np.asarray(CALLS[name](), dtype=float)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    found = np.asarray(CALLS[name](), dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_started", [0, 1, 2])
def test_every_chunk_is_worked_on_once_however_many_threads_start(n_started, monkeypatch):
    monkeypatch.setattr(arrays, "available_cores", lambda: 4)
    start, started, seen = threading.Thread.start, [], []

    def start_some(thread):
        if len(started) >= n_started:
            no_thread(thread)
        started.append(thread)
        start(thread)

    def square(number):
        seen.append(number)
        return number**2

    monkeypatch.setattr(threading.Thread, "start", start_some)
    assert arrays.share_between_cores(square, range(50)) == [number**2 for number in range(50)]
    assert sorted(seen) == list(range(50))


@pytest.mark.parametrize("cores", [1, 4])
def test_an_error_of_the_work_is_raised_and_ends_it(cores, monkeypatch):
    monkeypatch.setattr(arrays, "available_cores", lambda: cores)
    seen = []

    def fail(number):
        seen.append(number)
        raise RuntimeError(f"chunk {number}")

    with pytest.raises(RuntimeError, match="chunk"):
        arrays.share_between_cores(fail, range(1000))
    assert len(seen) <= cores


def test_a_property_of_two_objects_is_computed_by_two_threads_at_a_time():
    both = threading.Barrier(2, timeout=20)  # raises an error if one of them has to wait

    class Computed:
        def __init__(self, number):
            self.number = number

        @ThreadedProperty
        def value(self):
            """Doubled."""
            both.wait()
            return 2 * self.number

    objects = [Computed(1), Computed(2)]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda each: each.value, objects)) == [2, 4]
    assert [each.value for each in objects] == [2, 4]  # kept: nobody waits
