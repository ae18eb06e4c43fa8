"""The drift detector: exact p-values, alpha over all batches, bounded memory, states."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import muhat
from muhat import DriftDetector, DriftDisplay, Nystrom, Precomputed, TwoSampleTest
from muhat.__main__ import command_line
from muhat.cli import _samples
from muhat.cli._options import FOUND
from muhat.data import open_batches
from muhat.testing import _drift
from muhat.testing._drift import share_of, spent_share

RNG = np.random.default_rng(0)
QUICK = TwoSampleTest(
    "gaussian", bandwidths=2, statistics="mmd", gram=Nystrom(10), early_stopping=10
)


def made(n, shift=0.0, rng=RNG):
    return pd.DataFrame(rng.normal([0, shift], size=(n, 2)), columns=["a", "b"])


@parametrize_with_checks([DriftDetector(random_state=0)])
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("horizon", [1, 3, 100])
def test_all_levels_together_are_alpha(horizon):
    shares = np.array([share_of(number, horizon) for number in range(1, 20 * horizon + 1)])
    spent = np.array([spent_share(number, horizon) for number in range(1, 20 * horizon + 1)])
    np.testing.assert_allclose(np.cumsum(shares), spent, rtol=1e-12)
    assert shares[0] == 1 / (2 * horizon)
    assert np.all(np.diff(shares) <= 0)
    assert 0.9 < spent[-1] < spent_share(10**9, horizon) < 1


def test_a_p_value_is_that_of_the_test_of_batch_against_reference():
    reference, batch = made(60), made(30, 2.0)
    detector = DriftDetector(QUICK, standardize=False, random_state=0).fit(reference)
    result = detector.update(batch, "today")
    assert result.test.n_permutations >= 2 / result.level - 1
    seed = int(np.random.SeedSequence([detector._seed, 1]).generate_state(1)[0] >> 1)
    again = clone(QUICK).set_params(n_permutations=7999, standardize=False, random_state=seed)
    again = again.test(reference, batch, names=("the reference", "today"))
    assert result.p_value == again.p_value
    assert result.test.to_dict() == again.to_dict()
    assert result.is_alarm
    assert result.features[0].name == "b"
    assert result.features[0].shift > 0
    shift = result.features[0].shift
    expected = (
        "Drift detected in today (30 rows, p ≤ 0.000125). Largest change: mean of 'b', "
        f"{shift:.2g} standard deviations higher than in the reference."
    )
    assert result.verdict() == expected
    assert json.loads(json.dumps(result.to_dict()))["verdict"] == expected


def test_without_drift_alarms_in_a_whole_life_are_as_rare_as_alpha_says():
    """30 lives of 6 batches at alpha = 0.3: more than 19 alarms have probability 4e-5."""
    rng = np.random.default_rng(1)
    lives, p_values = 0, []
    for life in range(30):
        detector = DriftDetector(QUICK, alpha=0.3, horizon=4, random_state=life).fit(
            rng.integers(3, size=(40, 1))
        )
        p_values += [detector.update(rng.integers(3, size=(12, 1)) * 1.0).p_value for _ in range(6)]
        lives += detector.n_alarms_ > 0
    assert lives <= 19
    assert 0.4 < np.mean(p_values) < 0.7


def test_drift_is_found_and_remembered():
    detector = DriftDetector(QUICK, n_history=3, random_state=0).fit(made(200))
    shifts = [0, 0, 0, 2, 2]
    alarms = [detector.update(made(50, shift)).is_alarm for shift in shifts]
    assert alarms == [False, False, False, True, True]
    assert (detector.n_batches_, detector.n_alarms_, detector.first_alarm_) == (5, 2, 4)
    assert [each.number for each in detector.history_] == [3, 4, 5]
    assert all(each.test is None for each in detector.history_)
    assert detector.spent_ == pytest.approx(5 * 0.05 / 200)
    assert detector.verdict().startswith(
        "Drift detected in 2 of 5 batches: batch 4, batch 5. Largest change in batch 5: mean of "
    )
    display = DriftDisplay.from_detector(detector).plot()
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == [
        "batch 3",
        "batch 4",
        "batch 5",
    ]
    assert [text.get_text() for text in display.ax_.texts] == ["b", "b"]


def test_score_spends_nothing():
    detector = DriftDetector(QUICK, random_state=0).fit(made(100))
    before = pickle.dumps(detector)
    batch = made(30, 3.0)
    assert detector.score(batch) == detector.score(batch) == 0.001
    assert pickle.dumps(detector) == before


def test_memory_does_not_grow():
    detector = DriftDetector(QUICK, n_reference=50, n_history=2, random_state=0).fit(made(5000))
    assert detector.reference_.shape == (50, 2)
    sizes = []
    for _ in range(4):
        assert (
            len(detector.update(made(1000)).test.witness_y) == 200
        )  # of 4 times the reference's rows
        sizes.append(len(pickle.dumps(detector)))
    assert sizes[3] <= sizes[1] + 50


@pytest.mark.parametrize("way", ["pickle", "muhat.save"])
def test_a_detector_that_was_kept_goes_on_as_if_nothing_had_happened(way, tmp_path):
    batches = [made(40, shift) for shift in (0, 0, 2)]
    straight = DriftDetector(QUICK, random_state=3).fit(made(100, rng=np.random.default_rng(2)))
    resumed = DriftDetector(QUICK, random_state=3).fit(made(100, rng=np.random.default_rng(2)))
    for batch in batches:
        if way == "pickle":
            resumed = pickle.loads(pickle.dumps(resumed))
        else:
            muhat.save(resumed, tmp_path / "state.muhat")
            resumed = muhat.load(tmp_path / "state.muhat")
        assert resumed.update(batch).to_dict() == straight.update(batch).to_dict()
    assert resumed.feature_names_in_.tolist() == ["a", "b"]
    assert resumed.history_[-1].is_alarm


def test_what_fails_spends_nothing(monkeypatch):
    detector = DriftDetector(QUICK, random_state=0).fit(made(50))
    detector.update(made(20))
    before = pickle.dumps(detector)
    monkeypatch.setattr(TwoSampleTest, "test", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        detector.update(made(20))
    assert pickle.dumps(detector) == before


@pytest.mark.parametrize("library", ["pandas", "polars", "batches", "file", "dask"])
def test_every_source_gives_the_same_p_value(library, tmp_path):
    rng = np.random.default_rng(4)
    reference, batch = made(80, rng=rng), made(30, 0.5, rng=rng)
    detector = DriftDetector(QUICK, random_state=0).fit(reference)
    given = {"pandas": lambda each: each, "batches": lambda each: [each[:7], each[7:]]}
    if library == "polars":
        given["polars"] = pytest.importorskip("polars").from_pandas
    if library == "dask":
        frame = pytest.importorskip("dask.dataframe")
        given["dask"] = lambda each: frame.from_pandas(each, npartitions=3)
    if library == "file":
        reference.to_parquet(tmp_path / "reference.parquet")
        batch.to_parquet(tmp_path / "batch.parquet")
        files = {80: "reference.parquet", 30: "batch.parquet"}
        given["file"] = lambda each: open_batches(tmp_path / files[len(each)])
    other = DriftDetector(QUICK, random_state=0).fit(given[library](reference))
    assert other.feature_names_in_.tolist() == ["a", "b"]
    assert other.update(given[library](batch)).p_value == detector.update(batch).p_value
    assert other.has_seen(given[library](batch))
    assert not other.has_seen(made(30))


def test_blocks_keep_rows_together_and_are_called_approximate():
    rows = np.arange(600.0).reshape(300, 2)
    detector = DriftDetector(QUICK, n_reference=60, block_length=5, random_state=0).fit(rows)
    blocks = detector.reference_.reshape(12, 5, 2)[:, :, 0]
    assert np.all(np.diff(blocks, axis=1) == 2)
    assert len(np.unique(blocks)) == 60
    result = detector.update(RNG.normal(size=(40, 2)) + 300)
    assert not result.is_exact
    assert result.test.rows_together % 5 == 0
    assert "approximate" in result.verdict()
    assert " over all batches, is at most about 5 %.)" in detector.verdict()


REFUSED = {
    "alpha": ({"alpha": 1.5}, ValueError, "alpha must be below 1, got 1.5"),
    "horizon": ({"horizon": 0}, ValueError, "horizon must be a whole number of at least 1, got 0"),
    "reference": (
        {"n_reference": 1},
        ValueError,
        "n_reference must be a whole number of at least 2, got 1",
    ),
    "standardize": (
        {"standardize": "no"},
        ValueError,
        "standardize must be True or False, got 'no'",
    ),
    "test": ({"test": "mmd"}, TypeError, "test must be a TwoSampleTest or None, got a str"),
    "block of the test": (
        {"test": TwoSampleTest(block_length=24)},
        ValueError,
        "test must not have a block_length, got 24; pass block_length to the detector",
    ),
    "matrix": (
        {"test": TwoSampleTest(Precomputed(np.eye(60)))},
        ValueError,
        "test must have a kernel that is computed from rows, got a precomputed one; give the rows",
    ),
    "block": (
        {"block_length": 40},
        ValueError,
        "a reference of at least 80 rows is needed, got n_samples = 50",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_parameters_are_refused_in_one_sentence(case):
    settings, kind, sentence = REFUSED[case]
    with pytest.raises(kind, match=f"^DriftDetector: {sentence}"):
        DriftDetector(**settings).fit(made(50))


def test_bad_batches_are_refused_in_one_sentence():
    detector = DriftDetector(QUICK, random_state=0).fit(made(50))
    for batch, sentence in (
        (made(20).rename(columns={"a": "c"}), "got 'c', 'b'"),
        ([RNG.normal(size=(9, 3))], "a batch of 2 columns is needed, got 3"),
        (made(20).where(lambda each: each < 1), "batch must be finite"),
    ):
        with pytest.raises(ValueError, match=sentence):
            detector.update(batch)
    assert detector.n_batches_ == 0
    with pytest.raises(NotFittedError):
        DriftDetector().update(made(20))


@pytest.mark.parametrize("kind", ["pandas", "polars", "batches"])
def test_columns_of_a_batch_are_found_by_name_in_any_order(kind):
    batch = made(30, 1.0)
    make = {"pandas": lambda each: each, "polars": pl.from_pandas, "batches": lambda each: [each]}
    one, other = (DriftDetector(QUICK, random_state=0).fit(made(50)) for _ in range(2))
    other.reference_ = one.reference_
    result = one.update(make[kind](batch[["b", "a"]]))
    assert result.to_dict() == other.update(make[kind](batch)).to_dict()
    assert one.has_seen(batch)
    with pytest.raises(ValueError, match=r"in their order \('a', 'b'\), got 'b', 'a'; select"):
        one.score(make[kind](batch[["b", "a"]]))  # as scikit-learn's own methods do


def test_verdicts_say_how_many_copies_were_dropped():
    detector = DriftDetector(QUICK, distinct=True, random_state=0).fit(made(50))
    batch = made(20)
    detector.update(made(20), "plain")
    assert "copies" not in detector.verdict()
    result = detector.update(pd.concat([batch, batch[:7]]), "again")
    assert (result.n_dropped, result.to_dict()["n_dropped"]) == (7, 7)
    assert result.verdict().endswith(" 7 exact copies of rows were dropped before the test.")
    assert "dropped before the tests: 7 for again." in detector.verdict()


def test_a_level_that_no_number_of_permutations_reaches_is_refused(monkeypatch):
    monkeypatch.setattr(_drift, "MAX_PERMUTATIONS", 100)
    detector = DriftDetector(QUICK, alpha=0.5, horizon=10, random_state=0).fit(made(50))
    for _ in range(10):
        detector.update(made(20))
    with pytest.raises(
        ValueError,
        match=r"a level of at least 0.02 is needed, got 0.0063 for batch 11; fit a new detector",
    ):
        detector.update(made(20))


NEEDED = (
    "An alarm needs p ≤ 0.00025, so that false alarms are rare over all batches, also those to come"
)
"""What a verdict says about the level of a batch."""


def test_a_batch_of_too_few_rows_to_reach_its_level_says_so():
    detector = DriftDetector(random_state=0).fit(made(20))
    few, more = detector.update(made(3, 50.0)), detector.update(made(8, 50.0))
    assert few.p_value > few.level
    assert not few.is_reachable
    assert few.verdict() == (
        "batch 1 has too few rows to raise an alarm, whatever their values "
        f"(3 rows, p = 0.00056). {NEEDED}."
    )
    assert more.is_reachable
    assert more.is_alarm


def test_pages_figures_and_tables_say_which_batches_have_too_few_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    detector = DriftDetector(random_state=0).fit(made(20, 0.0, rng))
    found = []
    for n, shift in ((3, 50.0), (8, 0.0), (8, 50.0)):
        found.append(detector.update(made(n, shift, rng)).finding)
    assert found == ["too few rows", "no drift", "drift"]
    shown = DriftDisplay.from_detector(detector).plot()
    names = {text.get_text() for text in shown.ax_.get_legend().get_texts()}
    assert {"too few rows", "no drift", "drift"} <= names
    assert "<td>too few rows</td>" in detector.to_html()
    for name, n in (("reference", 20), ("week1", 3)):
        pd.DataFrame(made(n, 0.0, rng), columns=["a", "b"]).to_csv(f"{name}.csv", index=False)
    printed = run("reference.csv", "week1.csv").stdout
    assert re.search(r"^ week1.csv .*too few rows *$", printed, flags=re.MULTILINE)


def test_a_detector_whose_batches_are_all_too_small_says_so():
    detector = DriftDetector().fit(made(5))
    detector.update(made(5), "g5.csv")
    detector.update(made(3), "g3.csv")
    assert detector.verdict() == (
        "No batch could raise an alarm. An alarm needs p ≤ 0.00025. With a reference of 5 rows, "
        "g5.csv (5 rows) and g3.csv (3 rows) have too few rows for so small a p-value."
    )


def test_a_detector_without_alarms_says_which_batch_was_closest():
    detector = DriftDetector(n_history=3).fit(made(60))
    assert detector.verdict() == "No batch has been tested yet."
    first = detector.update(made(40), "before.csv")
    alone = detector.verdict()
    second = detector.update(made(40, 0.3), "after.csv")
    closest = min(first, second, key=lambda each: each.p_value)
    found = f"Closest to an alarm: {closest.name}, p = {closest.p_value:.2g}. {NEEDED}."
    assert detector.verdict() == f"No drift detected in any of 2 batches. {found}"
    assert (
        first.verdict()
        == alone
        == (f"No drift detected in before.csv (40 rows, p = {first.p_value:.2g}). {NEEDED}.")
    )
    detector.update(made(1), "tiny1.csv")
    assert detector.verdict() == (
        f"No drift detected in any of 3 batches. {found} "
        "tiny1.csv has too few rows to raise an alarm."
    )
    detector.update(made(1), "tiny2.csv")
    assert detector.verdict() == (
        "No drift detected in any of 4 batches. "
        "Closest to an alarm, of the last 3 batches: after.csv, "
        f"p = {second.p_value:.2g}. {NEEDED}. "
        "tiny1.csv, tiny2.csv have too few rows to raise an alarm."
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A reference with a text column, three weeks of which the last has drifted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(5)
    for name, n, shift in (
        ("reference", 80, 0),
        ("week1", 30, 0),
        ("week2", 30, 0),
        ("week3", 30, 3),
    ):
        frame = made(n, shift, rng).assign(kind=rng.choice(["oak", "ash"], n))
        frame.to_parquet(f"{name}.parquet")
    return [f"week{number}.parquet" for number in (1, 2, 3)]


def run(*arguments):
    return CliRunner().invoke(command_line(), ["drift", *map(str, arguments)])


def test_a_thinned_reference_says_of_how_many_rows_it_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(6200).to_parquet("big.parquet")
    made(40).to_parquet("new.parquet")
    result = run("big.parquet", "new.parquet", "--save", "s.muhat", "--report", "p.html")
    assert result.stdout.startswith("reference: 5,000 random rows of 6,200, 2 columns; alpha")
    assert "drawn from 6,200, of 2 columns" in Path("p.html").read_text()
    again = run("new.parquet", "--resume", "s.muhat")
    assert again.stdout.startswith("reference: 5,000 random rows of 6,200, 2 columns; alpha")
    old = muhat.load("s.muhat")
    del old._reference_spacing  # as in states of earlier versions
    assert old.n_reference_rows_ == 5000


def test_new_files_get_a_table_a_verdict_and_a_time_line(files):
    options = ["reference.parquet", *files, "--drop", "kind"]
    result = run(*options, "--out", "drift.svg")
    assert result.exit_code == 0, result.stderr
    assert "week3.parquet" in Path("drift.svg").read_text()
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "reference: 80 rows, 2 columns; alpha = 0.05, of which 0.00075 is spent on 3 batches"
    )
    assert lines[-1] == "Figure: drift.svg"
    assert lines[-2].startswith(
        "Drift detected in 1 of 3 batches: week3.parquet. Largest change in week3.parquet: mean of"
    )
    assert lines[-3].startswith(
        "Drift detected in week3.parquet (30 rows, p ≤ 0.000125). Largest change: mean of 'b', "
    )
    assert all(len(line) <= 80 for line in lines[1:-3])
    as_json = json.loads(run(*options, "--json").stdout)
    assert [each["is_alarm"] for each in as_json["batches"]] == [False, False, True]
    assert as_json["verdict"] == lines[-2]
    assert run(*options, "--fail-below", 0.05).exit_code == FOUND
    assert run(*options[:-3], "--drop", "kind", "--fail-below", 0.05).exit_code == 0


def test_a_state_is_resumed_and_files_are_tested_once(files):
    straight = json.loads(run("reference.parquet", *files, "--one-hot", "--json").stdout)
    run("reference.parquet", *files[:2], "--one-hot", "--save", "state.muhat")
    result = run("--resume", "state.muhat", *files[1:], "--one-hot", "--json")
    assert "week2.parquet has been tested before and is skipped" in result.stderr
    resumed = json.loads(result.stdout)
    assert resumed["batches"] == straight["batches"][2:]
    assert resumed["verdict"] == straight["verdict"]
    names = muhat.load("state.muhat").feature_names_in_.tolist()
    assert names == ["a", "b", "kind = ash", "kind = oak"]


@pytest.mark.parametrize("options", [["--one-hot"], ["--drop", "kind"]])
def test_the_lines_of_python_read_files_as_the_command_does(files, monkeypatch, options):
    lines = []
    monkeypatch.setattr(DriftDetector, "to_html", lambda *_, code, **__: lines.append(code))
    if options == ["--drop", "kind"]:  # a column that only some files have
        pd.read_parquet(files[1]).drop(columns="kind").to_parquet(files[1])
    given = ["reference.parquet", *files, *options, "--json", "--report", "page.html"]
    found = json.loads(run(*given).stdout)
    space = {}
    exec(lines[0], space)
    p_values = [each.p_value for each in space["detector"].history_]
    assert p_values == [each["p_value"] for each in found["batches"]]


def test_a_file_that_had_drifted_before_counts_for_the_exit_status(files):
    kept = ["--drop", "kind", "--save", "state.muhat"]
    assert (
        run("reference.parquet", *files[1:], *kept, "--horizon", 9, "--alpha", 0.04).exit_code == 0
    )
    again = ["--resume", "state.muhat", "--drop", "kind", "--fail-below", 0.04, "--horizon", 9]
    result = run(*again, files[2])
    assert result.exit_code == FOUND
    assert (
        "week3.parquet has been tested before and is skipped; drift was detected then."
        in result.stderr
    )
    assert run(*again, files[1]).exit_code == 0


def test_the_verdict_of_a_clean_batch_begins_with_it_after_an_earlier_alarm(files):
    options = ["--drop", "kind", "--fail-below", 0.05]
    assert run("reference.parquet", files[2], *options, "--save", "s.muhat").exit_code == FOUND
    later = run("--resume", "s.muhat", files[0], *options)
    assert later.exit_code == 0
    said = " ".join(later.stdout.split())
    assert "No drift detected in week1.parquet (p = " in said
    assert "All batches so far: Drift detected in 1 of 2 batches: week3.parquet." in said


def test_a_state_is_not_overwritten_unless_it_is_resumed(files):
    first = ["reference.parquet", files[0], "--drop", "kind", "--save", "state.muhat"]
    assert run(*first).exit_code == 0
    for arguments in (first, ["--resume", "other.muhat", *first[1:]]):
        Path("other.muhat").write_bytes(Path("state.muhat").read_bytes())
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr == (
            "muhat: --save: state.muhat exists and would be overwritten; continue it with "
            "--resume state.muhat. To start again, delete it or choose another name.\n"
        )
    assert muhat.load("state.muhat").n_batches_ == 1


def test_a_resumed_state_that_is_not_saved_is_named_and_one_without_new_batches_is_saved(files):
    run("reference.parquet", files[0], "--drop", "kind", "--save", "state.muhat")
    resumed = ["--resume", "state.muhat", "--drop", "kind"]
    assert run(*resumed, files[1]).stderr == (
        "muhat: The state was not saved, and state.muhat is unchanged; add --save state.muhat to "
        "keep this batch.\n"
    )
    assert "not saved" not in run(*resumed, files[0]).stderr
    assert run(*resumed, files[0], "--save", "copy.muhat").exit_code == 0
    assert muhat.load("copy.muhat").n_batches_ == 1


def test_a_text_column_may_have_the_sign_of_indicators_in_its_name(files):
    for name in ("reference", "week3"):
        pd.read_parquet(f"{name}.parquet").rename(columns={"kind": "kind = of tree"}).to_parquet(
            f"{name}.parquet"
        )
    result = run("reference.parquet", "week3.parquet", "--one-hot", "--save", "state.muhat")
    assert result.exit_code == 0, result.stderr
    assert muhat.load("state.muhat").feature_names_in_[-1] == "kind = of tree = oak"


KILLED = """
import os, sys
from muhat.__main__ import command_line
from muhat import TwoSampleTest
calls, test = [], TwoSampleTest.test
def until_killed(self, X, Y, **names):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), 9)
    return test(self, X, Y, **names)
TwoSampleTest.test = until_killed
options = ["--drop", "kind", "--save", "state.muhat"]
command_line()(["drift", "reference.parquet", *sys.argv[1:], *options])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signal 9 is one of POSIX")
def test_a_run_killed_in_mid_update_resumes_from_its_last_state_with_nothing_lost(files):
    done = subprocess.run([sys.executable, "-c", KILLED, *files], capture_output=True, check=False)
    assert done.returncode == -9
    assert muhat.load("state.muhat").n_batches_ == 1
    resumed = run(
        "--resume", "state.muhat", *files, "--drop", "kind", "--save", "state.muhat", "--json"
    )
    straight = json.loads(run("reference.parquet", *files, "--drop", "kind", "--json").stdout)
    assert json.loads(resumed.stdout)["batches"] == straight["batches"][1:]
    assert [each.p_value for each in muhat.load("state.muhat").history_] == [
        each["p_value"] for each in straight["batches"]
    ]


def test_files_too_large_to_be_read_at_once_are_drawn_from(files, monkeypatch):
    read = json.loads(run("reference.parquet", *files, "--drop", "kind", "--json").stdout)
    monkeypatch.setattr(_samples, "available_memory", lambda: 0.0)
    streamed = json.loads(run("reference.parquet", *files, "--drop", "kind", "--json").stdout)
    assert [each["p_value"] for each in streamed["batches"]] == [
        each["p_value"] for each in read["batches"]
    ]


REFUSED_FILES = {
    "one file": (
        ["reference.parquet"],
        "a reference and at least one new file are needed, got 1 file",
    ),
    "text": (["reference.parquet", "week1.parquet"], "column 'kind' must be numeric, got 'ash'"),
    "no column": (
        ["reference.parquet", "few.csv", "--one-hot"],
        "few.csv lacks column 'b' that the reference has.",
    ),
    "a new column": (
        ["few.csv", "week1.parquet", "--one-hot"],
        "a column 'b' that the reference does not have; leave it out with --drop b.",
    ),
    "no state": (
        ["--resume", "mean.muhat", "week1.parquet"],
        "a state that muhat drift --save wrote is needed, got",
    ),
    "another alpha": (
        ["--resume", "s.muhat", "week1.parquet", "--fail-below", 0.01],
        "is needed, 0.05, got 0.01",
    ),
    "alpha": (
        ["--resume", "s.muhat", "week1.parquet", "--alpha", 0.01],
        "--alpha: the alpha of s.muhat is needed, 0.05",
    ),
    "horizon": (
        ["--resume", "s.muhat", "week1.parquet", "--horizon", 9],
        "is needed, 100, got 9; leave out this option",
    ),
    "blocks": (
        ["--resume", "s.muhat", "week1.parquet", "--block-length", 5],
        "is needed, None, got 5; leave out this option",
    ),
    "scale": (
        ["--resume", "s.muhat", "week1.parquet", "--no-standardize"],
        "is needed, True, got False; leave out this option",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_bad_files_are_refused_in_one_sentence(case, files):
    frame = pd.read_parquet("reference.parquet")
    frame[["a", "kind"]].to_csv("few.csv", index=False)
    muhat.save(muhat.KernelMean().fit(frame[["a"]]), "mean.muhat")
    muhat.save(DriftDetector(random_state=0).fit(frame[["a", "b"]]), "s.muhat")
    arguments, sentence = REFUSED_FILES[case]
    result = run(*arguments)
    assert result.exit_code == 2, result.stdout
    [line] = result.stderr.splitlines()
    assert sentence in line


def test_a_command_says_nothing_about_names_of_columns(files):
    result = run("reference.parquet", *files, "--drop", "kind")
    assert result.stderr == ""


def test_a_small_p_without_an_alarm_points_to_the_horizon(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    made(100, 0, rng).to_csv("reference.csv", index=False)
    made(60, 0.6, rng).to_csv("after.csv", index=False)
    printed = run("reference.csv", "after.csv").stdout.splitlines()
    assert printed[-2] == (
        "Alarm levels are set for 100 batches and more; "
        "where fewer are planned, say so before testing: "
        "--horizon NUMBER."
    )
    assert printed[-1].startswith("No drift detected in after.csv (60 rows, p = ")
    assert "--horizon" not in run("reference.csv", "after.csv", "--horizon", 1).stdout


def test_a_change_of_no_single_column_names_none():
    rng = np.random.default_rng(0)
    joint = rng.multivariate_normal([0, 0], [[1, 0.95], [0.95, 1]], size=150)
    result = DriftDetector().fit(rng.normal(size=(300, 2))).update(joint)
    assert result.is_alarm
    assert min(each.p_value for each in result.features) > 0.05
    assert result.most_changed == ""
    assert "No single column changed significantly: the change is in how" in result.verdict()
