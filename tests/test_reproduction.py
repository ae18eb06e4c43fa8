"""Experiments that are killed resume, and their tables are the same to the last bit."""

import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pytest

import muhat
from paper import ResultsError, TaskError, _results, _run, read_results, reproduce
from paper._checkpoints import Checkpoints
from paper._files import locked
from paper._provenance import PACKAGES, source_commit, source_digest
from paper._tables import from_csv, to_csv
from toy_experiments import conditions, deadly, toy

ROOT = Path(__file__).parents[1]
SEED = 3
COUNT = 40  # tasks of the toy
MOMENTS = 4
PATIENCE = 60  # seconds until a process that does not end is a failure
DURATION = 0.04  # seconds in which a few tasks end


class Killed(BaseException):
    """Stands for a kill at a certain line: nothing after it happens."""


def kill(*_):
    raise Killed


class Place:
    """A folder for results, and a log of the tasks that were computed for it."""

    def __init__(self, path):
        self.path = path
        self.results = path / "results"
        self.log = path / "log"

    @property
    def computed(self):
        return (
            [int(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        )

    @property
    def stored(self):
        return {int(path.stem) for path in self.results.glob(".checkpoints/*/*.json")}

    @property
    def table(self):
        return (self.results / "toy.csv").read_bytes()

    def run(self, *, quick=True, again=False, n_jobs=2, **changes):
        """Run the toy in this process."""
        experiment = toy(self.log, **changes)
        reproduce([experiment], self.results, quick=quick, again=again, n_jobs=n_jobs)

    def start(self):
        """Start the toy as a user does: in a session of its own, like that of a terminal."""
        code = "import sys, toy_experiments; toy_experiments.main(*sys.argv[1:])"
        command = [sys.executable, "-c", code, str(self.results), str(self.log)]
        search = [str(Path(__file__).parent), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search))}
        return subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def assert_clean(self):
        """The results are there and nothing else."""
        assert sorted(os.listdir(self.results)) == ["toy.csv", "toy.json"]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The table of a run in one process that nothing disturbed."""
    place = Place(tmp_path_factory.mktemp("undisturbed"))
    place.run(quick=False, n_jobs=1, seconds=0.0)
    assert place.computed == list(range(COUNT))
    return place.table


def compute_in_this_process(patch):
    """Let no workers start: it takes them seconds."""

    def in_this_process(calls, pool):
        for call in calls:
            yield call, call.compute()

    patch.setattr(_run, "in_processes", in_this_process)
    patch.setattr(_run, "process_pool", nullcontext)


@pytest.fixture
def in_this_process(monkeypatch):
    compute_in_this_process(monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A quick run that has ended, to be copied."""
    place = Place(tmp_path_factory.mktemp("finished"))
    with pytest.MonkeyPatch.context() as patch:
        compute_in_this_process(patch)
        place.run()
    assert place.computed == list(range(6))
    return place


@pytest.fixture
def done(finished, place):
    """A copy of a quick run that has ended; its log, which is a setting, stays where it was."""
    shutil.copytree(finished.results, place.results)
    place.log = finished.log
    place.log.write_text("")
    return place


def wait_until(condition, process=None):
    """Wait for a condition, or for the end of a process."""
    end = time.monotonic() + PATIENCE
    while not condition() and (process is None or process.poll() is None):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


def processes_of(session):
    """The processes of a session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(of) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def test_a_run_killed_at_four_moments_ends_with_the_same_table_and_computes_nothing_twice(
    place, undisturbed
):
    random = np.random.default_rng(SEED)
    for moment in range(MOMENTS):
        stored, logged = place.stored, len(place.computed)
        target = logged + random.integers(3)
        process = place.start()
        wait_until(
            lambda target=target: place.results.exists() and len(place.computed) >= target, process
        )
        time.sleep(random.uniform(0, DURATION))
        if moment % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.communicate()
        wait_until(lambda process=process: not processes_of(process.pid))  # no orphans
        assert stored <= place.stored
        assert not stored & set(place.computed[logged:])
    assert 0 < len(place.stored) < COUNT
    stored, logged = place.stored, len(place.computed)
    place.run(quick=False)
    assert sorted(place.computed[logged:]) == sorted(set(range(COUNT)) - stored)
    assert place.table == undisturbed
    place.assert_clean()


@pytest.mark.parametrize("computed", [0, 5])
def test_ctrl_c_ends_a_run_at_once_with_one_sentence_and_it_resumes(
    place, undisturbed, computed, monkeypatch
):
    process = place.start()
    wait_until(
        lambda: (place.results / ".checkpoints").exists() and len(place.computed) >= computed,
        process,
    )
    time.sleep(DURATION)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    stored = place.stored
    assert (
        stderr
        == f"toy: interrupted, {len(stored)} of {COUNT} tasks finished; the same command resumes\n"
    )
    wait_until(lambda: not processes_of(process.pid))
    logged = len(place.computed)
    compute_in_this_process(monkeypatch)
    place.run(quick=False)
    assert sorted(place.computed[logged:]) == sorted(set(range(COUNT)) - stored)
    assert place.table == undisturbed


@pytest.mark.usefixtures("in_this_process")
def test_a_kill_while_results_are_written_loses_nothing(place, monkeypatch):
    whole = _results.atomic_write

    def killed_at(ending):
        def write(path, content):
            if path.suffix == ending:
                path.with_name(f".{path.name}.part").write_bytes(content[:10])
                raise Killed
            whole(path, content)

        return write

    for ending in (".csv", ".json"):
        monkeypatch.setattr(_results, "atomic_write", killed_at(ending))
        with pytest.raises(Killed):
            place.run()
        assert place.stored == set(range(6))
    monkeypatch.setattr(_results, "atomic_write", whole)
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "delete", kill)
        with pytest.raises(Killed):
            place.run()
    assert place.stored == set(range(6))
    table = place.table
    place.run()
    assert sorted(place.computed) == list(range(6))
    assert place.table == table
    place.assert_clean()


@pytest.mark.usefixtures("in_this_process")
def test_a_broken_checkpoint_counts_as_missing(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(_results, "atomic_write", kill)
        with pytest.raises(Killed):
            place.run()
    [folder] = place.results.glob(".checkpoints/*")
    (folder / "1.json").write_bytes((folder / "1.json").read_bytes()[:-20])
    (folder / "2.json").write_text("[]")
    (folder / "3.json").write_text("{}")
    (folder / "5.json").write_bytes(b"\xff")
    place.log.write_text("")
    place.run()
    assert sorted(place.computed) == [1, 2, 3, 5]
    place.assert_clean()


def test_what_is_done_is_not_computed_again(done, capsys):
    done.run()
    assert capsys.readouterr().err == "toy: already computed\n"
    assert done.computed == []


def test_results_of_other_source_code_are_reported_as_such(done, capsys):
    about = json.loads((done.results / "toy.json").read_text())
    (done.results / "toy.json").write_text(json.dumps({**about, "source": "other"}))
    done.run()
    changed = "toy: already computed, by source code that has changed since\n"
    assert capsys.readouterr().err == changed
    assert done.computed == []


@pytest.mark.usefixtures("in_this_process")
def test_a_table_edited_by_hand_is_computed_again(done):
    table = done.table
    (done.results / "toy.csv").write_bytes(table.replace(b"10,", b"11,", 1))
    done.run()
    assert sorted(done.computed) == list(range(6))
    assert done.table == table


@pytest.mark.usefixtures("in_this_process")
def test_again_the_same_is_computed(done, capsys):
    table = done.table
    done.run(again=True)
    assert sorted(done.computed) == list(range(6))
    assert done.table == table
    assert re.fullmatch(r"toy: .*toy\.csv \(0:00:0\d of work\)\n", capsys.readouterr().err)


@pytest.mark.usefixtures("in_this_process")
def test_results_of_other_settings_are_written_over_only_again(done):
    table = done.table
    with pytest.raises(
        ResultsError,
        match=r"without results of toy that have other settings is needed.* --again\.$",
    ):
        done.run(seed=8)
    assert done.table == table
    assert done.computed == []
    done.run(seed=8, again=True)
    assert sorted(done.computed) == list(range(6))
    assert done.table != table


def test_a_task_that_fails_is_named_and_the_others_are_kept(place, finished, monkeypatch):
    """The last one fails: of a task that is begun after, there would be no checkpoint."""
    with pytest.raises(
        TaskError, match=r"^toy, task 5 \{'number': 5, 'n': 15\}: AwkwardError: no luck$"
    ) as caught:
        place.run(n_jobs=1, fails=5)
    assert "in run\n" in str(caught.value.__cause__)  # where in the worker it was
    assert place.stored == {0, 1, 2, 3, 4}
    place.path.joinpath("repaired").touch()
    compute_in_this_process(monkeypatch)
    place.run(fails=5)
    assert sorted(place.computed) == list(range(6))
    assert place.table == finished.table


def test_a_worker_that_is_ended_from_outside_is_reported(tmp_path):
    with pytest.raises(TaskError, match="deadly: a worker process was ended from outside"):
        reproduce([deadly()], tmp_path, n_jobs=1)


def test_a_second_run_in_the_folder_is_refused(done):
    with (
        locked(done.results),
        pytest.raises(ResultsError, match="one run at a time can write its results here"),
    ):
        done.run()
    done.run()
    assert done.computed == []


def test_without_locks_a_run_is_possible(done, monkeypatch):
    monkeypatch.setattr("paper._files.fcntl", None)
    done.run()
    assert done.computed == []


def test_workers_stay_on_one_core_and_times_are_measured_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("MUHAT_DATA", "somewhere")
    reproduce([conditions()], tmp_path, n_jobs=2)
    rows = read_results(tmp_path, "conditions").rows
    assert os.getpid() not in {row["process"] for row in rows}
    assert all(before["end"] <= after["start"] for before, after in pairwise(rows))
    assert {(row["threads"], row["blas"], row["data"]) for row in rows} == {(1, 1, "somewhere")}


@pytest.mark.usefixtures("in_this_process")
def test_checkpoints_of_other_source_code_are_not_used(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("paper._provenance.source_digest", lambda: "before")
        patched.setattr(_results, "atomic_write", kill)
        with pytest.raises(Killed):
            place.run()
    assert place.stored == set(range(6))
    place.log.write_text("")
    place.run()
    assert sorted(place.computed) == list(range(6))


def test_zero_jobs_are_refused(place):
    with pytest.raises(ValueError, match="n_jobs must be"):
        place.run(n_jobs=0)


def test_a_folder_that_cannot_be_is_refused(place):
    place.results.touch()
    with pytest.raises(FileExistsError):
        place.run()


def test_results_are_read_with_all_that_they_came_from(finished):
    read = read_results(finished.results, "toy")
    assert read.settings == {
        "seed": 7,
        "count": 6,
        "seconds": 0.025,
        "log": str(finished.log),
        "fails": None,
    }
    assert [row["n"] for row in read.rows] == list(range(10, 16))
    assert to_csv(read.rows) == finished.table
    assert set(read.provenance["versions"]) == {"muhat", "python", "numpy", "scipy", "scikit-learn"}
    assert read.provenance["versions"]["muhat"] == muhat.__version__
    assert read.provenance["cores"] == joblib.cpu_count()
    assert read.provenance["seconds"] > 0  # of the processor: these tasks mostly sleep
    assert {"name", "title", "source", "commit", "platform", "sha256"} < set(read.provenance)


def test_missing_and_changed_results_are_refused_in_one_sentence(done):
    with pytest.raises(
        ResultsError,
        match=r"other\.csv: the results of other are needed, got none; compute them first",
    ):
        read_results(done.results, "other")
    (done.results / "toy.csv").write_bytes(done.table + b"\n")
    with pytest.raises(ResultsError, match=r"toy\.csv: .*, got a file that was changed since"):
        read_results(done.results, "toy")
    (done.results / "toy.json").write_text("{")
    with pytest.raises(ResultsError, match="got none"):
        read_results(done.results, "toy")


def test_a_table_comes_back_to_the_last_bit():
    values = [
        0.1 + 0.2,
        1e-300,
        -0.0,
        5e-324,
        1e16,
        math.inf,
        -math.inf,
        12,
        -(10**30),
        True,
        False,
        None,
    ]
    values += ["tsvd", "a, b", 'a "quoted" word', "two\nlines", "ν-method", "-"]
    rows = [{"value": value, "place": place} for place, value in enumerate(values)]
    read = from_csv(to_csv(rows))
    assert [repr(row["value"]) for row in read] == [repr(value) for value in values]
    assert math.isnan(from_csv(to_csv([{"value": math.nan}]))[0]["value"])
    assert (
        to_csv([{"a": np.float64(0.1), "b": np.int64(3), "c": np.bool_(True)}])
        == b"a,b,c\n0.1,3,True\n"
    )
    assert from_csv(to_csv([])) == []


def test_a_cell_that_has_no_place_in_a_table_is_refused():
    with pytest.raises(ValueError, match="column 'path': a cell must be a string"):
        to_csv([{"path": [1, 2]}])


def test_a_digest_of_the_source_code_sees_every_file(tmp_path):
    copies = {name: tmp_path / name for name in PACKAGES}
    for name, folder in PACKAGES.items():
        shutil.copytree(folder, copies[name], ignore=shutil.ignore_patterns("__pycache__"))
    before = source_digest(copies)
    for changed in ("muhat/mean.py", "paper/experiments/figure_1.py"):
        (tmp_path / changed).write_text("")
        after = source_digest(copies)
        assert after != before
        before = after


def test_the_commit_is_marked_for_changes_but_those_of_the_results(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):  # set where a hook runs the tests
        monkeypatch.delenv(name, raising=False)
    package, inside = tmp_path / "src" / "muhat", tmp_path / "results"
    for folder in (package, inside):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()

    def git(*arguments):
        identity = [
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True
        )

    assert source_commit(package, inside) is None
    git("init")
    assert source_commit(package, inside) is None  # nothing of the package is in this repository
    git("add", "src")
    git("commit", "-m", "All")
    commit = source_commit(package, inside)
    assert len(commit) == 40
    (inside / "toy.csv").touch()
    assert source_commit(package, inside) == commit
    assert source_commit(package, tmp_path.parent) == f"{commit}-dirty"
    (package / "__init__.py").write_text("1")
    assert source_commit(package, inside) == f"{commit}-dirty"


def test_on_a_terminal_there_is_a_bar(place, monkeypatch):
    compute_in_this_process(monkeypatch)
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    place.run()
    assert "/6" in stream.getvalue()
    assert stream.getvalue().endswith(" of work)\n")


def test_theorems_and_data_sets_need_no_extra():
    extras = ("typer", "rich", "matplotlib", "pyarrow", "dask", "distributed", "pandas")
    code = f"""if True:
        import sys
        sys.modules.update(dict.fromkeys({extras!r}))
        from muhat import load_dataset
        from muhat.theory import admissible_fraction
        print(load_dataset("wine").data.shape, admissible_fraction(1.0, 2.0) < 1)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(178, 13) True\n"
