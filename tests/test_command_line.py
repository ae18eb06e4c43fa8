"""The command line: a table, a verdict and a figure; or one sentence on stderr, and nothing left behind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import muhat
from muhat import cli
from muhat.comparison import compare
from muhat.data import read_table
from muhat.datasets import wine
from muhat.filters import FILTERS

QUICK = ["--filter", "f-kmse"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("muhat.plots._saving.DPI", 50)
    return tmp_path


@pytest.fixture
def table():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    np.savetxt("table.csv", rows, delimiter=",", header="a,b,c", comments="")
    return "table.csv"


def run(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def shell(*arguments, **environment):
    """Run the command as a user does."""
    command = [sys.executable, "-m", "muhat", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def assert_refused(result, *words):
    """Exit code 2, one line on stderr that says what is wrong, nothing on stdout."""
    code = result.returncode if hasattr(result, "returncode") else result.exit_code
    assert code == 2, result.stderr
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("muhat: ")
    assert "Traceback" not in line
    for word in words:
        assert word in line


def write(name, text):
    Path(name).write_text(text)
    return name


def test_the_demonstration_prints_a_table_and_a_verdict_and_draws_a_figure():
    result = shell("compare", COLUMNS="80")
    assert result.returncode == 0
    assert result.stderr == ""
    for name in FILTERS:
        assert re.search(rf"^ *{name} ", result.stdout, flags=re.MULTILINE)
    assert "wine: 178 points, 13 features" in result.stdout
    assert compare(wine().data).verdict() in result.stdout
    assert Path("muhat-compare.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir() == ["muhat-compare.png"]
    assert "\x1b" not in result.stdout
    body = result.stdout[: result.stdout.index(" does best")].splitlines()[:-1]
    assert max(map(len, body)) <= 80


def test_a_table_is_read_from_a_file(table):
    result = run("compare", table, *QUICK)
    assert result.exit_code == 0
    assert "table: 20 points, 3 features" in result.stdout
    row = compare(read_table(table).data)["f-kmse"]
    assert f"λ = {row.parameter:.3g}" in result.stdout
    assert f"{row.score:#.6g}" in result.stdout
    assert f"{row.improvement:.2f}" in result.stdout
    assert result.stdout.endswith("Figure: muhat-compare.png\n")


def test_json_stands_alone_on_stdout_and_makes_no_figure(table):
    result = shell("compare", table, "--json")
    assert result.returncode == 0
    assert result.stderr == ""
    written = json.loads(result.stdout)
    assert written["data"] == "table"
    assert written["figure"] is None
    assert [row["name"] for row in written["estimators"]] == list(FILTERS)
    comparison = compare(read_table(table).data)
    assert written["estimators"][2]["score"] == pytest.approx(comparison["f-kmse"].score)
    assert os.listdir() == [table]


def test_json_makes_a_figure_where_one_is_asked_for(table):
    result = run("compare", table, *QUICK, "--json", "--out", "figure.svg")
    assert json.loads(result.stdout)["figure"] == "figure.svg"
    assert Path("figure.svg").exists()


@pytest.mark.parametrize(("name", "start"), [("f.png", b"\x89PNG"), ("f.SVG", b"<?xml"), ("f.pdf", b"%PDF")])
def test_the_ending_says_what_kind_of_figure(table, name, start):
    assert run("compare", table, *QUICK, "--out", name).exit_code == 0
    assert Path(name).read_bytes().startswith(start)


def test_options_reach_the_comparison(table):
    options = ["--kernel", "laplacian", "--bandwidth", "3", "--selection", "gcv", "--no-standardize"]
    written = json.loads(run("compare", table, *QUICK, "--filter", "tsvd", "--json", *options).stdout)
    assert written["kernel"] == "Laplacian(bandwidth=3.0)"
    assert written["selection"] == "gcv"
    assert [row["name"] for row in written["estimators"]] == ["kme", "f-kmse", "tsvd"]
    expected = compare(
        read_table(table).data, muhat.kernels.Laplacian(3.0), ["f-kmse"], selection="gcv", standardize=False
    )
    assert written["estimators"][1]["score"] == pytest.approx(expected["f-kmse"].score)


def test_an_edge_and_a_missing_score_are_marked():
    np.save("large.npy", np.random.default_rng(0).normal(size=(301, 2)))
    result = run("compare", "large.npy", "--filter", "tsvd", "--filter", "landweber", "--selection", "rate")
    assert re.search(r"^ *tsvd .*–", result.stdout, flags=re.MULTILINE)
    assert "No leave-one-out score for tsvd" in result.stdout
    result = run("compare", "large.npy", "--filter", "landweber", "--selection", "gcv")
    assert re.search(r"^ *landweber .*edge", result.stdout, flags=re.MULTILINE)
    assert "edge: the parameter is the first or last of its grid" in result.stdout


def test_the_version_is_told():
    assert shell("--version").stdout == f"muhat {muhat.__version__}\n"


def test_without_a_command_there_is_help():
    result = run()
    assert result.exit_code == 0
    assert "compare" in result.stdout


def test_a_warning_is_one_line_on_stderr_beside_the_result():
    write("equal.csv", "a,b\n" + "1,2\n" * 10)
    result = run("compare", "equal.csv", *QUICK, "--json")
    assert result.exit_code == 0
    assert "nothing to improve" in json.loads(result.stdout)["verdict"]
    [line] = result.stderr.splitlines()
    assert line.startswith("muhat: warning: bandwidth='median'")


def test_a_poor_terminal_gets_no_colour_and_no_letter_that_it_does_not_have(table):
    result = shell("compare", table, *QUICK, FORCE_COLOR="1", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert set(re.findall(r"\x1b\[([0-9;]*)m", result.stdout)) == {"0", "1"}  # bold for the best, and its end
    assert "? = " in result.stdout


def test_a_missing_file_is_refused():
    assert_refused(shell("compare", "nowhere.csv"), "nowhere.csv", "no such file")
    assert os.listdir() == []


def test_a_column_of_words_is_refused_by_name():
    write("words.csv", "size,colour\n1,red\n2,blue\n")
    assert_refused(run("compare", "words.csv"), "'colour'", "'red'", "line 2")
    assert os.listdir() == ["words.csv"]


def test_an_unknown_name_is_refused_with_the_closest():
    assert_refused(shell("compare", "--filter", "landwebber"), "did you mean 'landweber'?")
    assert os.listdir() == []


def test_an_unwritable_place_is_refused_before_the_file_is_read():
    assert_refused(shell("compare", "nowhere.csv", "--out", "no/folder/f.png"), "no/folder/f.png", "a folder is needed")
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.csv", "", ["an empty file"]),
        ("header.csv", "a,b\n", ["a header only"]),
        ("holes.csv", "a,b\n1,2\n3,\n", ["line 3", "'b'"]),
        ("ragged.csv", "1,2\n3\n", ["line 2"]),
        ("one.csv", "1,2\n", ["at least 2 rows"]),
        ("table.xlsx", "PK", [".parquet"]),
        ("broken.npy", "no array", ["a damaged one"]),
        ("broken.parquet", "no table", ["a damaged one"]),
    ],
)
def test_a_file_that_is_no_sample_is_refused(name, text, words):
    assert_refused(run("compare", write(name, text)), *words)
    assert os.listdir() == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kernel", "gausian"], ["did you mean 'gaussian'?"]),
        (["--kernel", "precomputed"], ["a kernel of points"]),
        (["--selection", "lo"], ["did you mean 'loo'?"]),
        (["--bandwidth", "-1"], ["must be positive"]),
        (["--bandwidth", "nan"], ["must be positive"]),
        (["--bandwidth", "wide"], ["--bandwidth"]),
        (["--kernel", "linear", "--bandwidth", "1"], ["--bandwidth", "'linear'"]),
        (["--bandwith", "1"], ["--bandwith"]),
        (["--out", "figure.txt"], ["--out", ".svg", "'figure.txt'"]),
        (["--out", "."], ["--out", "'.'"]),
        (["--out", os.devnull], ["--out"]),
        (["one.csv", "two.csv"], ["two.csv"]),
    ],
)
def test_an_option_that_cannot_be_is_refused(arguments, words):
    assert_refused(run("compare", *arguments), *words)
    assert os.listdir() == []


def test_an_unknown_command_is_refused():
    assert_refused(run("comapre"), "comapre")


def test_too_many_points_for_the_memory_are_refused(monkeypatch):
    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(cli, "compare", full)
    assert_refused(run("compare"), "memory", "--gram nystrom")


def test_an_interruption_is_one_line_and_leaves_nothing(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "comparison_figure", interrupted)
    result = run("compare", *QUICK)
    assert result.exit_code == 130
    assert result.stderr == "muhat: interrupted.\n"
    assert result.stdout == ""
    assert os.listdir() == []


def test_a_bug_is_not_dressed_up_as_an_error_of_the_user(monkeypatch):
    def bug(*arguments, **options):
        raise AssertionError("a bug")

    monkeypatch.setattr(cli, "compare", bug)
    assert isinstance(run("compare").exception, AssertionError)


def test_a_label_can_be_dropped():
    name = write("labelled.csv", "a,b,kind\n1,2,x\n3,5,y\n4,4,x\n0,1,y\n")
    assert_refused(run("compare", name), "column 'kind' must be numeric")
    result = run("compare", name, "--drop", "kind", "--json", *QUICK)
    assert json.loads(result.stdout)["d"] == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
def test_a_full_standard_output_is_one_line(table):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "muhat", "compare", table, "--json", *QUICK]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "a place that can be written to is needed" in result.stderr
