"""Verdicts say what a reader of them alone must know of the file: ids, and what was left out."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from muhat.__main__ import command_line

CAUTION = (
    "Caution: column rownames looks like an id and is used too; leave it out with "
    "--drop rownames unless it is a measurement."
)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A file with row names, sorted by group, and its two halves."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rows = {"rownames": np.arange(1, 61), "x": x, "y": x + rng.normal(size=60)}
    table = pd.DataFrame({**rows, "g": np.repeat(["a", "b"], 30)})
    table.to_csv("all.csv", index=False)
    table.drop(columns="g").head(30).to_csv("first.csv", index=False)
    table.drop(columns="g").tail(30).to_csv("second.csv", index=False)
    table.loc[[40, 50], "x"] = np.nan
    table.to_csv("gaps.csv", index=False)


def verdict_of(*arguments):
    run = CliRunner().invoke(command_line(), [*map(str, arguments), "--json"])
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)["verdict"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["test", "all.csv", "--by", "g"],
        ["test", "first.csv", "second.csv"],
        ["groups", "all.csv", "--by", "g"],
        ["drift", "first.csv", "second.csv"],
        ["predict", "all.csv", "--target", "y", "--drop", "g"],
        ["predict", "first.csv", "second.csv", "--target", "y"],
        ["pca", "all.csv", "--by", "g"],
    ],
)
def test_a_verdict_says_which_column_looks_like_an_id(arguments):
    assert verdict_of(*arguments).count(CAUTION) == 1
    option = ["--drop", "rownames"]
    if "--drop" in arguments:
        option = ["--drop", "rownames,g"]
    assert "looks like an id" not in verdict_of(*arguments, *option)


def test_an_id_that_is_predicted_or_only_names_clusters_is_no_caution():
    assert "an id" not in verdict_of("predict", "first.csv", "--target", "rownames")
    assert "an id" not in verdict_of("groups", "all.csv", "--by", "g", "--clusters", "rownames")


@pytest.mark.parametrize("command", [["predict", "--target", "y"], ["pca"]])
def test_a_verdict_says_how_many_rows_were_dropped(command):
    name, *options = command
    options += ["--missing", "drop", "--drop", "rownames,g"]
    verdict = verdict_of(name, "gaps.csv", *options)
    assert "gaps.csv: Dropped 2 of 60 rows with missing values (x 2)." in verdict
