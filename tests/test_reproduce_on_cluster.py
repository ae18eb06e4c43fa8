"""Experiments on a real cluster of two worker processes: the same tables, whatever happens to a worker."""

import logging
import os
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from muhat.__main__ import command_line
from muhat.paper import TaskError, read_results, reproduce
from muhat.paper._progress import Progress
from muhat.paper._provenance import Provenance
from toy_experiments import conditions, deadly, toy

COUNT = 6
"""Tasks of the quick toy."""

pytestmark = pytest.mark.xdist_group("dask")  # one cluster at a time, where xdist goes by groups


@pytest.fixture(scope="module")
def cluster():
    cluster = LocalCluster(
        2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    yield cluster
    with suppress(
        TimeoutError
    ):  # as distributed does at exit: it may wait for ever for workers that were killed
        cluster.close(timeout=30)


class Recorder(Progress):
    """Notes how many tasks had checkpoints when a run was started, and how many were computed."""

    def __init__(self):
        self.resumed, self.computed = [], 0

    def started(self, name, tasks, finished):
        self.resumed.append(finished)

    def task_done(self):
        self.computed += 1


def test_experiments_on_the_cluster_write_the_same_table_and_resume(cluster, tmp_path):
    here, there, recorder = tmp_path / "here", tmp_path / "there", Recorder()
    reproduce([toy(tmp_path / "log")], here, quick=True, n_jobs=1, progress=Progress())
    failing = toy(tmp_path / "log", fails=COUNT - 1)
    with pytest.raises(TaskError, match=r"toy, task 5 .*AwkwardError: no luck"):
        reproduce(
            [failing], there, quick=True, cluster=cluster.scheduler_address, progress=recorder
        )
    assert 0 < recorder.computed < COUNT
    (tmp_path / "repaired").touch()
    reproduce([failing], there, quick=True, cluster=cluster.scheduler_address, progress=recorder)
    assert recorder.resumed[0] == 0
    assert recorder.computed == COUNT  # each once
    assert (there / "toy.csv").read_bytes() == (here / "toy.csv").read_bytes()


def test_what_measures_times_runs_here(cluster, tmp_path):
    reproduce(
        [conditions()], tmp_path, n_jobs=-1, cluster=cluster.scheduler_address, progress=Progress()
    )
    with Client(cluster, set_as_default=False) as client:
        on_cluster = client.run(os.getpid).values()
    assert not {row["process"] for row in read_results(tmp_path, "conditions").rows} & set(
        on_cluster
    )


def test_a_cluster_with_other_source_code_is_refused(cluster, tmp_path, monkeypatch):
    now = Provenance.from_process
    monkeypatch.setattr(
        Provenance, "from_process", lambda place: replace(now(place), source="other")
    )
    with pytest.raises(
        TaskError, match=r"other source code of muhat .* on a cluster install the same code"
    ):
        reproduce(
            [toy(tmp_path / "log")],
            tmp_path,
            cluster=cluster.scheduler_address,
            progress=Progress(),
        )


def test_the_command_runs_on_a_cluster(cluster, tmp_path):
    arguments = [
        "reproduce",
        "figure-1",
        "--quick",
        "--out",
        str(tmp_path),
        "--cluster",
        cluster.scheduler_address,
    ]
    assert CliRunner().invoke(command_line(), arguments).exit_code == 0
    assert (tmp_path / "figure-1.csv").exists()


def test_tasks_that_kill_their_workers_are_named_in_a_sentence(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(TaskError, match="deadly: the cluster lost a task"):
        reproduce([deadly()], tmp_path, cluster=cluster.scheduler_address, progress=Progress())


def test_a_cluster_that_does_not_answer_or_has_no_dask_is_refused_in_a_sentence(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("muhat.paper._workers.ANSWER_SECONDS", 0.2)
    for address in ("tcp://127.0.0.1:9", "nowhere at all"):
        with pytest.raises(ValueError, match="a dask scheduler that answers is needed, got"):
            reproduce([toy(tmp_path / "log")], tmp_path, cluster=address)
    with pytest.raises(ValueError, match="either n_jobs or cluster is needed"):
        reproduce([toy(tmp_path / "log")], tmp_path, cluster="tcp://127.0.0.1:9", n_jobs=2)
    arguments = [
        "reproduce",
        "figure-1",
        "--quick",
        "--out",
        str(tmp_path),
        "--cluster",
        "tcp://127.0.0.1:9",
    ]
    result = CliRunner().invoke(command_line(), arguments)
    assert result.exit_code == 2, result.stderr
    assert result.stderr.startswith(
        "muhat: reproduce: the address of a dask scheduler that answers is needed"
    )
    assert result.stderr.count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    sentence = r"a cluster needs dask, got no package 'distributed'; pip install 'muhat\[dask\]'"
    with pytest.raises(ValueError, match=sentence):
        reproduce([toy(tmp_path / "log")], tmp_path, cluster="tcp://127.0.0.1:9")
