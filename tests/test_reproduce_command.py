"""``python -m paper``: every experiment, small; and what it says when something is wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from paper import EXPERIMENTS, PAGES, Experiment, _command
from toy_experiments import deadly, squares

COMMAND = [sys.executable, "-m", "paper"]
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_data_folder_is_named(monkeypatch):
    monkeypatch.delenv("MUHAT_DATA", raising=False)


def environment():
    """As in a clone, where ``paper`` is found from the current folder; no data is named."""
    kept = {key: value for key, value in os.environ.items() if key != "MUHAT_DATA"}
    return {**kept, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run the command in this process, in a folder and with an environment of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_command.os, "environ", dict(os.environ))

    def run(*arguments):
        capsys.readouterr()
        status = _command.main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return SimpleNamespace(exit_code=status, stdout=printed.out, stderr=printed.err)

    return run


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """The folder of results where everything was run, small, as a user does."""
    place = tmp_path_factory.mktemp("reproduced")
    done = subprocess.run(
        [*COMMAND, "--quick"], capture_output=True, text=True, cwd=place, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Quick run, far below the paper's sizes: no verdicts.",
        "Evidence: muhat-results-quick/evidence.md",
    ]
    return place / "muhat-results-quick"


@pytest.fixture
def results(reproduced, tmp_path):
    """A copy of it, in the folder where the command runs."""
    return shutil.copytree(reproduced, tmp_path / "muhat-results-quick")


def assert_refused(done, sentence):
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_experiment_runs_small_and_leaves_a_table_its_settings_and_its_figure(reproduced):
    names = {f"{name}.{kind}" for name in EXPERIMENTS for kind in ("csv", "json", "png", "svg")}
    assert {path.name for path in reproduced.iterdir()} == names | {"evidence.md"}


def test_the_page_has_every_experiment_links_to_files_that_are_there_and_no_verdict(reproduced):
    text = (reproduced / "evidence.md").read_text()
    assert f"without verdicts: {', '.join(EXPERIMENTS)}." in text
    assert not re.search(r"\*\*(holds|does not hold)", text)
    for name in EXPERIMENTS:
        assert f"## {name}:" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (reproduced / target).is_file()
    assert not re.search(r"\bnan\b", text)


def test_what_is_done_is_not_done_again_and_the_page_stays_the_same(command, results):
    before = (results / "evidence.md").read_text()
    (results / "evidence.md").unlink()
    done = command("loss", "figure-2", "--quick", "--page", "my page.md")
    assert done.exit_code == 0
    assert done.stderr.count("already computed") == 2
    assert results.joinpath("../my page.md").read_text().count(
        "](muhat-results-quick/"
    ) == before.count("](")
    assert command("loss", "--quick").exit_code == 0
    assert (results / "evidence.md").read_text() == before


def test_links_survive_spaces(command, results):
    results.rename(results.with_name("my results"))
    assert command("figure-2", "--quick", "--out", "my results", "--page", "page.md").exit_code == 0
    assert "](my%20results/figure-2.png)" in results.with_name("page.md").read_text()


def test_the_list_names_every_experiment(command, tmp_path):
    names = {line.split()[0] for line in command("--list").stdout.splitlines()}
    for page in PAGES.values():
        assert set(page.experiments) <= names
    assert {"evidence:", "stacking:", "group-tests:"} <= names
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["figure-3d"], "figure-3c, "),
        (["loss", "--data", "nowhere"], "no such folder"),
        (["loss", "--n-jobs", "0"], "n_jobs"),
        (["loss", "--out", "taken"], "taken"),
    ],
)
def test_a_mistake_is_answered_by_one_sentence(command, tmp_path, arguments, sentence):
    (tmp_path / "taken").write_text("")
    assert_refused(command(*arguments, "--quick"), sentence)
    assert not list(tmp_path.glob("**/*.csv"))


def test_a_wrong_data_folder_in_the_environment_is_refused_before_the_work(
    command, tmp_path, monkeypatch
):
    monkeypatch.setitem(_command.os.environ, "MUHAT_DATA", str(tmp_path / "nowhere"))
    assert_refused(command("table-2"), "no such folder")
    assert not (tmp_path / "muhat-results").exists()


def test_full_results_are_not_lost_by_a_quick_run(command, results):
    about = json.loads((results / "figure-2.json").read_text())
    about["settings"]["points"] = 200  # those of a full run
    (results / "figure-2.json").write_text(json.dumps(about))
    before = (results / "figure-2.csv").read_bytes()
    assert_refused(command("figure-2", "--quick"), "have other settings")
    assert (results / "figure-2.csv").read_bytes() == before


def test_results_of_other_settings_and_broken_ones_are_left_out_of_the_page(command, results):
    about = json.loads((results / "figure-3c.json").read_text())
    about["settings"]["former"] = 1
    (results / "figure-3c.json").write_text(json.dumps(about))
    (results / "loss.json").write_text("{}")
    assert command("figure-2", "--quick").exit_code == 0
    text = (results / "evidence.md").read_text()
    assert "## figure-3a:" in text
    assert "## figure-3c:" not in text
    assert "## loss:" not in text


def test_an_experiment_is_added_in_two_places_its_file_and_the_list_of_a_page(
    command, tmp_path, monkeypatch
):
    added = squares()
    page = replace(PAGES["stacking-evidence"], experiments={added.name: added})
    monkeypatch.setitem(PAGES, "stacking-evidence", page)
    assert "squares" in command("--list").stdout
    done = command("stacking", "--out", "results", "--n-jobs", "1")
    assert done.exit_code == 0, done.stderr
    results = tmp_path / "results"
    assert (results / "squares.csv").read_text() == "x,y\n0,0\n1,1\n2,4\n"
    assert {path.name for path in results.iterdir()} == {
        *(f"squares.{ending}" for ending in ("csv", "json", "png", "svg")),
        "stacking-evidence.md",
    }
    assert "## squares: squares of numbers" in (results / "stacking-evidence.md").read_text()


def test_a_task_that_fails_is_answered_by_one_sentence(command, monkeypatch):
    experiment: Experiment = deadly()
    experiments = {**EXPERIMENTS, "deadly": experiment}
    monkeypatch.setitem(PAGES, "evidence", replace(PAGES["evidence"], experiments=experiments))
    assert_refused(
        command("deadly", "--quick", "--n-jobs", "1"),
        "deadly: a worker process was ended from outside",
    )


def test_a_run_that_is_interrupted_says_so_and_keeps_its_checkpoints(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "when-it-pays", "--quick"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    checkpoints = tmp_path / "muhat-results-quick" / ".checkpoints"
    for _ in range(6000):
        if list(checkpoints.glob("*/*.json")):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=60)[1]
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert "the same command resumes" in printed
    assert list(checkpoints.glob("*/*.json"))
