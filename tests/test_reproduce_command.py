"""``muhat reproduce``: every experiment, small; and what it says when something is wrong."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from muhat.paper.experiments import EXPERIMENTS


def muhat(*arguments, folder, **options):
    environment = {key: value for key, value in os.environ.items() if key != "MUHAT_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "muhat", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        **options,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder where everything was run, small."""
    place = tmp_path_factory.mktemp("reproduced")
    done = muhat("reproduce", "--quick", folder=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Evidence: muhat-results-quick/evidence.md\n"
    return place


def test_every_experiment_runs_small_and_leaves_a_table_its_settings_and_its_figure(folder):
    results = folder / "muhat-results-quick"
    names = {f"{name}.{kind}" for name in EXPERIMENTS for kind in ("csv", "json", "png", "svg")}
    assert {path.name for path in results.iterdir() if not path.name.startswith(".")} == names | {"evidence.md"}


def test_the_page_has_every_experiment_and_links_to_files_that_are_there(folder):
    page = folder / "muhat-results-quick" / "evidence.md"
    text = page.read_text()
    assert "Quick run" in text
    for name in EXPERIMENTS:
        assert f"## {name}:" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / target).is_file()
    assert not re.search(r"\bnan\b", text)


def test_what_is_done_is_not_done_again_and_the_page_stays_the_same(folder):
    page = folder / "muhat-results-quick" / "evidence.md"
    before = page.read_text()
    done = muhat("reproduce", "loss", "figure-2", "--quick", "--page", "page.md", folder=folder)
    assert done.returncode == 0
    assert done.stderr.count("done before") == 2
    assert page.read_text() == before
    assert (folder / "page.md").read_text().count("](muhat-results-quick/") == before.count("](")


def test_the_list_names_every_experiment(tmp_path):
    done = muhat("reproduce", "--list", folder=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(EXPERIMENTS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["figure-3d"], "did you mean 'figure-3c'?"),
        (["loss", "--data", "nowhere"], "svmguide2: a folder that holds svmguide2.csv"),
        (["loss", "--processes", "0"], "--processes"),
        (["loss", "--page", "nowhere/page.md"], "a folder is needed to write into"),
        (["loss", "--out", "taken"], "taken"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(tmp_path, arguments, sentence):
    (tmp_path / "taken").write_text("")
    done = muhat("reproduce", *arguments, "--quick", folder=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_full_results_are_not_lost_by_a_quick_run(folder):
    done = muhat("reproduce", "figure-2", "--out", "muhat-results-quick", folder=folder)
    assert done.returncode == 2
    assert "other settings" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_data_folder_in_the_environment_is_told_before_the_work(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "muhat", "reproduce", "table-2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MUHAT_DATA": str(tmp_path / "nowhere")},
    )
    assert done.returncode == 2
    assert "no such folder" in done.stderr
    assert not (tmp_path / "muhat-results").exists()


def test_a_place_that_is_taken_is_told_before_the_work(tmp_path):
    (tmp_path / "out" / "figure-2.png").mkdir(parents=True)
    done = muhat("reproduce", "figure-2", "--quick", "--out", "out", folder=tmp_path)
    assert done.returncode == 2
    assert "figure-2.png" in done.stderr
    assert not (tmp_path / "out" / "figure-2.csv").exists()


def test_the_page_may_go_to_a_new_folder_of_results_and_links_survive_spaces(tmp_path):
    out, page = "my results", "my results/evidence.md"
    done = muhat("reproduce", "figure-2", "--quick", "--out", out, "--page", page, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = muhat("reproduce", "figure-2", "--quick", "--out", out, "--page", "page.md", folder=tmp_path)
    assert "](my%20results/figure-2.png)" in (tmp_path / "page.md").read_text()


def test_results_of_another_version_are_left_out_of_the_page(folder, tmp_path):
    copied = tmp_path / "old"
    shutil.copytree(folder / "muhat-results-quick", copied)
    about = copied / "figure-3c.json"
    about.write_text(about.read_text().replace('"muhat": "', '"muhat": "0.0.'))
    (copied / "loss.json").write_text("{}")
    done = muhat("reproduce", "figure-2", "--quick", "--out", "old", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (copied / "evidence.md").read_text()
    assert "## figure-3a:" in text
    assert "## figure-3c:" not in text
    assert "## loss:" not in text


def test_a_run_that_is_interrupted_says_so_and_goes_on(tmp_path):
    command = [sys.executable, "-m", "muhat", "reproduce", "when-it-pays", "--quick"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    pieces = tmp_path / "muhat-results-quick" / ".pieces"
    for _ in range(600):
        if list(pieces.glob("*/*.json")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "the same command goes on from here" in told
    done = muhat("reproduce", "when-it-pays", "--quick", folder=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "muhat-results-quick" / "when-it-pays.csv").is_file()
