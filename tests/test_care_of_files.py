"""Commands take care of files: none is overwritten, rows and samples have their names."""

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
        (
            ["predict", "t.csv", "--target", "y", "--save-predictions", "t.csv"],
            "--save-predictions",
        ),
        (
            ["predict", "t.csv", "o.csv", "--target", "y", "--save-predictions", "./o.csv"],
            "--save-predictions",
        ),
        (
            ["predict", "t.csv", "link.csv", "--target", "y", "--save-predictions", "o.csv"],
            "--save-predictions",
        ),
        (["apply", "m.muhat", "o.csv", "--out", "o.csv"], "--out"),
    ],
)
def test_no_output_overwrites_an_input(arguments, option):
    succeeded("predict", "t.csv", "--target", "y", "--save", "m.muhat")
    Path("link.csv").symlink_to("o.csv")
    before = Path("t.csv").read_bytes(), Path("o.csv").read_bytes()
    line = refused(*arguments)
    assert line.startswith(
        f"muhat: {option}: an output file that is not an input of the same command is needed, "
        "got the input "
    )
    assert (Path("t.csv").read_bytes(), Path("o.csv").read_bytes()) == before


COMMANDS = [
    (["test", "t.csv", "o.csv", *FEW], "--out", "f.png"),
    (["test", "t.csv", "o.csv", *FEW], "--report", "r.html"),
    (["groups", "t.csv", "o.csv", *FEW], "--report", "r.html"),
    (["independence", "t.csv", "--x", "a", "--y", "b", *FEW], "--report", "r.html"),
    (["drift", "t.csv", "o.csv"], "--report", "r.html"),
    (["predict", "t.csv", "--target", "y"], "--save-predictions", "p.csv"),
    (["pca", "t.csv"], "--scores", "s.csv"),
    (["compare", "t.csv", "--filter", "f-kmse", "--out", "c.png"], "--save", "n.muhat"),
    (["apply", "m.muhat", "o.csv"], "--out", "a.json"),
]


@pytest.mark.parametrize(("arguments", "option", "file"), COMMANDS)
def test_a_file_that_replaces_an_older_one_is_called_so(arguments, option, file):
    if arguments[0] == "apply":
        succeeded("predict", "t.csv", "--target", "y", "--save", "m.muhat")
    written = succeeded(*arguments, option, file).stdout.splitlines()[-1]
    assert written.endswith(f": {file}")
    again = succeeded(*arguments, option, file).stdout.splitlines()[-1]
    assert again == f"{written} (replaced an older file)"


@pytest.mark.parametrize("arguments", [each for each, _, _ in COMMANDS if each[0] != "apply"])
def test_json_has_the_warnings_that_the_terminal_shows(arguments):
    for file, frame in (("t.csv", FRAME), ("o.csv", OTHER)):
        frame.assign(c=1.0).to_csv(file, index=False)
    if arguments[0] == "independence":
        arguments = [*arguments[:-3], "b,c", *FEW]
    result = succeeded(*arguments, "--json")
    found = json.loads(result.stdout)["warnings"]
    assert any("column 'c' is constant" in each for each in found)
    shown = [line.removeprefix("muhat: ") for line in result.stderr.splitlines()]
    assert [each.removeprefix("warning: ") for each in shown] == found


def test_json_of_a_model_at_rows_unlike_its_own_has_the_warning():
    succeeded("predict", "t.csv", "--target", "y", "--save", "m.muhat")
    OTHER.assign(a=OTHER["a"] + 5).to_csv("far.csv", index=False)
    found = json.loads(succeeded("apply", "m.muhat", "far.csv", "--json").stdout)
    assert "distributed differently" in found["warnings"][0]


def test_states_and_models_have_their_ending_and_a_state_is_continued_in_place():
    for arguments in (
        ["compare", "t.csv"],
        ["predict", "t.csv", "--target", "y"],
        ["drift", "t.csv", "o.csv"],
    ):
        assert refused(*arguments, "--save", "o.csv") == (
            "muhat: --save: a file name ending in .muhat is needed, got 'o.csv'."
        )
    succeeded("drift", "t.csv", "o.csv", "--save", "s.muhat")
    OTHER.iloc[:20].to_csv("p.csv", index=False)
    succeeded("drift", "--resume", "s.muhat", "p.csv", "--save", "s.muhat")
    Path("s.html").symlink_to("s.muhat")
    assert "--report: an output file that is not an input" in refused(
        "drift", "--resume", "s.muhat", "o.csv", "--report", "s.html"
    )
    Path("t.html").symlink_to("t.csv")
    for arguments in (
        ["test", "t.csv", "o.csv"],
        ["independence", "t.csv", "--x", "a", "--y", "y"],
        ["compare", "t.csv"],
        ["predict", "t.csv", "--target", "y"],
    ):
        assert "--report: an output file that is not an input" in refused(
            *arguments, "--report", "t.html"
        )
    same = ["--save-predictions", "page.html", "--report", "page.html"]
    assert "every output needs a different file" in refused(
        "predict", "t.csv", "--target", "y", *same
    )


def test_rows_keep_the_numbers_of_their_file_where_others_are_dropped():
    holes = FRAME.copy()
    holes.loc[[0, 3], "a"] = np.nan
    holes.to_csv("holes.csv", index=False)
    kept = [number + 1 for number in range(40) if number not in (0, 3)]
    options = ["--target", "y", "--missing", "drop", "--save-predictions", "p.csv"]
    for files in (["holes.csv"], ["t.csv", "holes.csv"]):
        found = json.loads(succeeded("predict", *files, *options, "--json").stdout)
        assert [each["row"] for each in found["predictions"]] == kept
        assert [
            int(line["row"]) for line in csv.DictReader(Path("p.csv").read_text().splitlines())
        ] == kept
    page = succeeded("predict", "holes.csv", *options, "--report", "p.html", "--save", "m.muhat")
    table = page.stdout.partition("rows counted from 1:")[2].splitlines()
    assert [int(line.split()[0]) for line in table if line[:5].strip().isdigit()] == kept[:10]
    applied = succeeded("apply", "m.muhat", "holes.csv", "--missing", "drop")
    lines = list(csv.DictReader(applied.stdout.splitlines()))
    assert [int(line["row"]) for line in lines] == kept
    expected = succeeded("apply", "m.muhat", "t.csv").stdout.splitlines()
    assert expected[0] == "prediction,lower,upper,far_from_training"
    for column, name in enumerate(["prediction", "lower", "upper"]):
        found = [float(line[name]) for line in lines]
        whole = [float(expected[row].split(",")[column]) for row in kept]
        np.testing.assert_allclose(found, whole, rtol=1e-9)
    as_json = json.loads(
        succeeded("apply", "m.muhat", "holes.csv", "--missing", "drop", "--json").stdout
    )
    assert as_json["row"] == kept


def test_files_of_the_same_name_are_told_apart_by_their_folders():
    for folder, frame in (("jan", FRAME), ("feb", OTHER + 3)):
        Path(folder).mkdir()
        frame.to_csv(f"{folder}/data.csv", index=False)
    files = ["jan/data.csv", "feb/data.csv"]
    found = json.loads(succeeded("test", *files, *FEW, "--report", "p.html", "--json").stdout)
    assert found["samples"] == ["jan/data", "feb/data"]
    assert found["verdict"].endswith("higher in feb/data.")
    assert "names=[&#x27;jan/data&#x27;, &#x27;feb/data&#x27;]" in Path("p.html").read_text()
    drifted = json.loads(succeeded("drift", "o.csv", *files, "--json").stdout)
    assert [each["name"] for each in drifted["batches"]] == ["jan/data.csv", "feb/data.csv"]
    predicted = succeeded("predict", *files, "--target", "y").stdout
    assert "(higher in feb/data)" in predicted or "(lower in feb/data)" in predicted


def test_a_column_to_leave_out_need_not_be_in_every_file():
    OTHER.assign(name="x").to_csv("named.csv", index=False)
    for files in (["t.csv", "named.csv"], ["named.csv", "t.csv"]):
        plain = [file.replace("named", "o") for file in files]
        same = [
            succeeded("test", *each, *FEW, "--json").stdout
            for each in ([*files, "--drop", "name"], plain)
        ]
        assert json.loads(same[0])["p_value"] == json.loads(same[1])["p_value"]
        succeeded("drift", *files, "--drop", "name", "--report", "p.html")
        succeeded("predict", *files, "--target", "y", "--drop", "name", "--report", "p.html")
    succeeded("test", "t.csv", "named.csv", "--drop", "name", *FEW, "--report", "p.html")
    for command in (["test"], ["drift"], ["predict", "--target", "y"]):
        line = refused(*command, "t.csv", "named.csv", "--drop", "nome")
        assert "t.csv has no column 'nome'; its columns are a, b, y" in line


@pytest.mark.parametrize(
    "fitted",
    [
        ["predict", "t.csv", "--target", "y", "--no-standardize"],
        ["predict", "t.csv", "--target", "y"],
        ["compare", "t.csv", "--filter", "f-kmse", "--json"],
        ["compare", "t.csv", "--json"],
    ],
)
def test_applying_a_model_to_rows_unlike_its_own_is_warned_of(fitted):
    succeeded(*fitted, "--save", "m.muhat")
    FRAME.assign(b=FRAME["b"] + 5).to_csv("far.csv", index=False)
    FRAME.sample(frac=0.5, random_state=0).to_csv("near.csv", index=False)
    warning = "warning: The rows of far.csv are distributed differently from the rows that the "
    warning += "model was fitted to (p ≤ 0.001), most of all in b (higher in far.csv). "
    assert warning in succeeded("apply", "m.muhat", "far.csv").stderr
    assert warning in succeeded("apply", "m.muhat", "far.csv", "--out", "f.csv").stderr
    assert "differently" not in succeeded("apply", "m.muhat", "near.csv").stderr


def test_a_verdict_ends_with_what_was_left_out():
    holes = OTHER.assign(region="north")
    holes.loc[:3, "a"] = np.nan
    holes.to_csv("holes.csv", index=False)
    FRAME.assign(region="south").to_csv("whole.csv", index=False)
    options = ["--only-numeric", "--missing", "drop", *FEW]
    found = succeeded("test", "whole.csv", "holes.csv", *options, "--report", "p.html")
    ending = "Not tested: region. 4 of 30 rows of holes with missing values were dropped."
    assert any(line.endswith(f". {ending}") for line in found.stdout.splitlines())
    assert ending in Path("p.html").read_text()
    assert json.loads(succeeded("test", "whole.csv", "holes.csv", *options, "--json").stdout)[
        "verdict"
    ].endswith(ending)
    pd.concat([FRAME.assign(g="u"), holes.drop(columns="region").assign(g="v")]).to_csv(
        "by.csv", index=False
    )
    by = json.loads(succeeded("test", "by.csv", "--by", "g", *options, "--json").stdout)["verdict"]
    assert by.endswith(". 4 of 70 rows with missing values were dropped.")
    columns = [
        "independence",
        "holes.csv",
        "--x",
        "a",
        "--y",
        "y",
        "--missing",
        "drop",
        "--json",
        *FEW,
    ]
    assert json.loads(succeeded(*columns).stdout)["verdict"].endswith(
        "4 of 30 rows with missing values were dropped."
    )


def test_distinct_says_what_it_dropped():
    pd.concat([OTHER, OTHER, OTHER]).to_csv("dup.csv", index=False)
    found = succeeded("test", "t.csv", "dup.csv", "--distinct", *FEW, "--report", "p.html")
    sentence = "Dropped 60 of 90 rows of dup that are exact copies."
    assert any(line.endswith(sentence) for line in found.stdout.splitlines())
    assert sentence in Path("p.html").read_text()
    assert "Dropped" not in succeeded("test", "t.csv", "o.csv", "--distinct", *FEW).stdout


def test_the_same_rows_twice_are_recognised():
    found = json.loads(
        succeeded(
            "predict", "t.csv", "t.csv", "--target", "y", "--json", "--report", "p.html"
        ).stdout
    )
    assert "The rows of t are the training rows, so this does not show how well" in found["verdict"]
    assert "No new rows: these are training rows" in Path("p.html").read_text()
    FRAME.iloc[:20].to_csv("half.csv", index=False)
    found = json.loads(succeeded("predict", "t.csv", "half.csv", "--target", "y", "--json").stdout)
    assert "All rows of half are training rows, so this does not show" in found["verdict"]
    OTHER.to_csv("new.csv", index=False)
    found = json.loads(succeeded("predict", "t.csv", "new.csv", "--target", "y", "--json").stdout)
    assert "this does not show" not in found["verdict"]
    assert (
        "t.csv has the same rows as the reference." in succeeded("drift", "t.csv", "t.csv").stderr
    )
    assert "same rows" not in succeeded("drift", "t.csv", "o.csv").stderr


def test_groups_come_as_numbers_rise_or_as_the_file_has_them():
    for values, names in (
        (["9", "10"], ["g = 9", "g = 10"]),
        (["before", "after"], ["before", "after"]),
    ):
        frame = pd.concat([OTHER.assign(g=values[0]), FRAME.assign(g=values[1])])
        frame.to_csv("g.csv", index=False)
        found = json.loads(succeeded("test", "g.csv", "--by", "g", *FEW, "--json").stdout)
        assert (found["samples"], found["n"]) == (names, 30)
    pd.concat([FRAME.assign(g=10), OTHER.assign(g=9)]).to_csv("g.csv", index=False)
    found = json.loads(succeeded("test", "g.csv", "--by", "g", *FEW, "--json").stdout)
    assert found["samples"] == ["g = 9", "g = 10"]


def test_sentences_are_in_the_words_of_the_command():
    FRAME.iloc[:1].to_csv("one.csv", index=False)
    OTHER.iloc[:1].to_csv("other.csv", index=False)
    assert (
        refused("test", "one.csv", "other.csv")
        == "muhat: one.csv: it must have at least 2 rows, got 1 row."
    )
    assert refused("drift", "one.csv", "o.csv") == (
        "muhat: one.csv: a reference of at least 2 rows is needed, got 1 row."
    )
    assert refused("compare", "one.csv") == "muhat: one.csv: at least 2 rows are needed, got 1 row."
    assert refused("test", "t.csv", "o.csv", "--missing", "no") == (
        "muhat: --missing: 'error' or 'drop' is needed, got 'no'."
    )
    FRAME.iloc[:10].to_csv("ten.csv", index=False)
    line = refused("predict", "ten.csv", "--target", "y", "--confidence", 0.99)
    assert line.startswith("muhat: --confidence: confidence 0.99 needs at least")
    succeeded("predict", "t.csv", "--target", "y", "--save", "m.muhat")
    assert refused("apply", "m.muhat", "o.csv", "--missing", "no").startswith(
        "muhat: --missing: 'error' or"
    )
    assert refused("apply", "m.muhat", "o.csv", "--interval", 0.999).startswith(
        "muhat: --interval: "
    )
    line = refused("predict", "one.csv", "--target", "y")
    assert line.startswith("muhat: one.csv: ")
    assert "Fixed" not in line
    assert refused("apply", "none.muhat", "o.csv") == "muhat: no such file: none.muhat"


def test_columns_that_differ_in_case_only_are_what_is_meant():
    OTHER.rename(columns={"a": "A"}).to_csv("upper.csv", index=False)
    for command in (["test"], ["drift"], ["predict", "--target", "y"]):
        line = refused(*command, "t.csv", "upper.csv")
        assert "upper.csv lacks column 'a' that" in line
        assert line.endswith("did you mean 'A'?")
    assert refused("predict", "t.csv", "--target", "Y").endswith("did you mean 'y'?")


def test_dates_are_not_to_become_indicators():
    for ending in ("csv", "parquet"):
        days = pd.date_range("2026-01-01", periods=40)
        frame = FRAME.assign(day=days)
        frame.to_csv("d.csv", index=False) if ending == "csv" else frame.to_parquet(
            "d.parquet", index=False
        )
        line = refused("compare", f"d.{ending}")
        assert "column 'day' must be numeric" in line
        assert line.endswith(
            "leave it out with --drop day, or write it as a number, such as days since the first."
        )
    FRAME.assign(kind="x").to_csv("k.csv", index=False)
    assert "--one-hot" in refused("compare", "k.csv")
