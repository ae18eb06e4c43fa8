"""Commands take care of the user's files: none is overwritten, rows and samples have their names, nothing is silent."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from muhat.__main__ import command_line

FEW = ["--permutations", 99]
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["a", "b"])
FRAME["y"] = np.sin(FRAME["a"]) + 0.1 * RNG.normal(size=40)
OTHER = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["a", "b", "y"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two files of the same columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    FRAME.to_csv("t.csv", index=False)
    OTHER.to_csv("o.csv", index=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])


def succeeded(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    [line] = [each for each in result.stderr.splitlines() if "warning:" not in each]
    return line


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["predict", "t.csv", "--target", "y", "--save-predictions", "t.csv"], "--save-predictions"),
        (["predict", "t.csv", "o.csv", "--target", "y", "--save-predictions", "./o.csv"], "--save-predictions"),
        (["predict", "t.csv", "link.csv", "--target", "y", "--save-predictions", "o.csv"], "--save-predictions"),
        (["apply", "m.muhat", "o.csv", "--out", "o.csv"], "--out"),
    ],
)
def test_no_output_overwrites_an_input(arguments, option):
    succeeded("predict", "t.csv", "--target", "y", "--save", "m.muhat")
    Path("link.csv").symlink_to("o.csv")
    before = Path("t.csv").read_bytes(), Path("o.csv").read_bytes()
    line = refused(*arguments)
    assert line.startswith(f"muhat: {option}: a file that is not read by the same command is needed, got its input")
    assert (Path("t.csv").read_bytes(), Path("o.csv").read_bytes()) == before


def test_states_and_models_have_their_ending_and_a_state_is_continued_in_place():
    for arguments in (["compare", "t.csv"], ["predict", "t.csv", "--target", "y"], ["drift", "t.csv", "o.csv"]):
        assert refused(*arguments, "--save", "o.csv") == (
            "muhat: --save: a file name ending in .muhat is needed, got 'o.csv'."
        )
    succeeded("drift", "t.csv", "o.csv", "--save", "s.muhat")
    OTHER.iloc[:20].to_csv("p.csv", index=False)
    succeeded("drift", "--resume", "s.muhat", "p.csv", "--save", "s.muhat")
    Path("s.html").symlink_to("s.muhat")
    assert "--report: a file that is not read" in refused("drift", "--resume", "s.muhat", "o.csv", "--report", "s.html")
    Path("t.html").symlink_to("t.csv")
    for arguments in (
        ["test", "t.csv", "o.csv"],
        ["independence", "t.csv", "--x", "a", "--y", "y"],
        ["compare", "t.csv"],
        ["predict", "t.csv", "--target", "y"],
    ):
        assert "--report: a file that is not read" in refused(*arguments, "--report", "t.html")
    same = ["--save-predictions", "page.html", "--report", "page.html"]
    assert "every output needs a file of its own" in refused("predict", "t.csv", "--target", "y", *same)
