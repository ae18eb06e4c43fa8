"""``muhat test`` and ``muhat independence``: a verdict and an exit code; or one sentence."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from muhat import IndependenceTest, TwoSampleTest
from muhat.__main__ import command_line
from muhat.cli import _samples
from muhat.cli._options import FOUND
from muhat.data import open_batches
from muhat.testing import IndependenceResult, TwoSampleResult

FEW = ["--permutations", 99]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two samples that differ in v: two files, one file by a word or a number, and Parquet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(3)
    a = pd.DataFrame(rng.normal(size=(40, 3)), columns=["u", "v", "w"])
    b = pd.DataFrame(rng.normal(size=(30, 3)) * [1, 4, 1] + [0, 3, 0], columns=["u", "v", "w"])
    a.to_csv("a.csv", index=False)
    b[["w", "u", "v"]].to_csv("b.csv", index=False)
    both = pd.concat([a.assign(group="old", year=1), b.assign(group="new", year=2)])
    both.to_csv("both.csv", index=False)
    both.to_parquet("both.parquet", index=False)
    return a, b


def run(*arguments):
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])


def assert_refused(result, *words):
    assert result.exit_code == 2, result.stderr
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("muhat: ")
    for word in words:
        assert word in line


def test_two_files_get_a_table_and_a_verdict(files):
    a, b = files
    result = run("test", "a.csv", "b.csv", "--no-standardize", "--out", "test.svg", *FEW)
    assert result.exit_code == 0
    assert "witness function" in Path("test.svg").read_text()
    expected = TwoSampleTest(n_permutations=99, standardize=False).test(a, b, names=("a", "b"))
    verdict, floor, figure = result.stdout.splitlines()[-3:]
    assert verdict == expected.verdict()
    assert (
        floor
        == "0.01 is the smallest p-value that 99 permutations can give. Use --permutations 999 to "
        "find out whether p is smaller."
    )
    assert figure == "Figure: test.svg"
    assert expected.features[0].shift > 0
    assert "change from a " in result.stdout
    assert " to b " in result.stdout
    assert "a: 40 rows, b: 30 rows; 3 columns" in result.stdout
    line = r"^ v +mean [+]\d\.\d\d SD; SD 1\.1 → \d\.\d +\d+\.\d\d +≤ 0.01 *$"
    assert re.search(line, result.stdout, flags=re.MULTILINE)
    rows = ", ".join(str(row + 1) for row in expected.rows_x[:5])
    assert f"Rows most typical of a rather than b, counted from 1: {rows}." in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[1:9])


@pytest.mark.parametrize("file", ["both.csv", "both.parquet"])
def test_one_file_is_divided_by_a_column_of_words_or_numbers(file):
    by_word = run("test", file, "--by", "group", "--drop", "year", "--json", *FEW)
    by_year = run("test", file, "--by", "year", "--drop", "group", "--json", *FEW)
    word, year = json.loads(by_word.stdout), json.loads(by_year.stdout)
    assert word["samples"] == ["old", "new"]
    assert year["samples"] == ["year = 1", "year = 2"]
    assert (word["n"], word["m"], year["n"], year["m"]) == (40, 30, 40, 30)
    assert word["p_value"] == year["p_value"] == 0.01
    assert word["features"][0]["name"] == "v"
    assert word["verdict"].startswith(
        "old (40 rows) and new (30 rows) differ (p ≤ 0.01). Largest difference: mean of 'v', "
    )
    spread = "'v' also varies more in new (SD 4.1) than in old (SD 1.1)."
    assert f" standard deviations higher in new; {spread}" in word["verdict"]


@pytest.mark.parametrize(
    "command",
    [["test", "--by", "year"], ["drift", "k.csv"], ["independence", "--x=k = z,u", "--y=k"]],
)
def test_a_column_with_the_name_of_an_indicator_is_refused(files, command):
    frame = files[0].assign(k=["y", "z"] * 20, year=[1, 2] * 20)
    frame.assign(**{"k = z": 1.0}).to_csv("k.csv", index=False)
    words = ["'k = z' beside 'k'; rename it or leave it out with --drop"]
    assert_refused(run(*command[:1], "k.csv", *command[1:], "--one-hot"), *words)


def test_rows_of_a_divided_file_have_its_own_numbers(files):
    frame = pd.read_csv("both.csv").drop(columns="year").sample(frac=1, random_state=0)
    frame.to_csv("mixed.csv", index=False)
    found = json.loads(run("test", "mixed.csv", "--by", "group", "--json", *FEW).stdout)
    first, second = dict.fromkeys(frame.group)  # in the order of the file
    for rows, group in ((found["rows_x"], first), (found["rows_y"], second)):
        assert set(frame.group.iloc[np.array(rows) - 1]) == {group}
    printed = run("test", "mixed.csv", "--by", "group", *FEW).stdout
    rows = ", ".join(map(str, found["rows_x"][:5]))
    assert f"of {first} rather than {second}, counted from 1: {rows}." in printed


def test_without_a_difference_no_rows_are_said_to_be_typical(files):
    files[0][:20].to_csv("a.csv", index=False)
    files[0][20:].to_csv("b.csv", index=False)
    printed = run("test", "a.csv", "b.csv", "--report", "page.html", *FEW).stdout
    assert "counted from 1" not in printed
    assert "Rows are counted from 1" not in Path("page.html").read_text(encoding="utf-8")


def test_words_of_a_column_stay_with_their_rows():
    lines = [
        "# of two years",
        "name;size;kind",
        "a b;1.5;oak",
        "",
        "c;2.5;ash",
        "# and",
        "d;0.5;'elm'",
        '"e;f";1;oak',
    ]
    Path("trees.csv").write_text("\n".join(lines))
    batches = open_batches("trees.csv", drop=["name", "kind"])
    assert batches.read().data.tolist() == [[1.5], [2.5], [0.5], [1.0]]
    assert batches.words("kind") == ["oak", "ash", "'elm'", "oak"]
    assert batches.words("name") == ["a b", "c", "d", "e;f"]
    np.save("numbers.npy", np.ones((3, 2)))
    with pytest.raises(
        ValueError, match="a file whose columns have names is needed, got a file without"
    ):
        open_batches("numbers.npy").words("column 1")


def test_a_pipeline_fails_where_samples_differ_and_goes_on_where_they_do_not():
    assert run("test", "a.csv", "b.csv", "--fail-below", 0.01, *FEW).exit_code == FOUND
    same = run("test", "a.csv", "a.csv", "--fail-below", 0.01, *FEW)
    assert same.exit_code == 0
    assert "typical" not in same.stdout
    assert (
        run("independence", "a.csv", "--x", "u", "--y", "v", "--fail-below", 0.01, *FEW).exit_code
        == 0
    )


def test_independence_of_columns(files):
    a, _ = files
    a.assign(z=a["u"] ** 2).to_csv("c.csv", index=False)
    options = ["independence", "c.csv", "--x", "u,v", "--y", "z", "--no-standardize", *FEW]
    printed, as_json = run(*options), json.loads(run(*options, "--json").stdout)
    expected = IndependenceTest(n_permutations=99, standardize=False).test(
        a[["u", "v"]], (a["u"] ** 2).rename("z")
    )
    assert f"\n{expected.verdict()}\n" in printed.stdout
    assert expected.verdict().startswith(
        "(u, v) and z are dependent (40 rows, p ≤ 0.01). The test does not show which of u and v "
    )
    assert as_json["p_value"] == expected.p_value <= 0.05
    assert (as_json["x"], as_json["y"], as_json["n"]) == (["u", "v"], ["z"], 40)
    a[["u", "v"]].round().to_csv("few.csv", index=False)
    refused = run("independence", "few.csv", "--x", "u", "--y", "v", "--distinct", *FEW)
    assert refused.exit_code == 2
    assert "with --distinct, x or y must have different values" in " ".join(refused.output.split())
    assert "leave out --distinct, because rows that are equal" in " ".join(refused.output.split())


def test_standardizing_looks_at_both_samples_together(files):
    a, b = files
    for name, rows in (("a", a), ("b", b)):
        (rows * [1000, 1, 0.001] + 5).to_csv(f"scaled_{name}.csv", index=False)
    plain, scaled = (
        json.loads(run("test", *both, "--json", *FEW).stdout)
        for both in (("a.csv", "b.csv"), ("scaled_a.csv", "scaled_b.csv"))
    )
    assert [each["p_value"] for each in scaled["tests"]] == [
        each["p_value"] for each in plain["tests"]
    ]


def test_text_columns_become_indicators(files):
    a, b = files
    a.assign(kind=["oak", "ash"] * 20).to_csv("a.csv", index=False)
    b.assign(kind="elm").to_csv("b.csv", index=False)
    two = json.loads(run("test", "a.csv", "b.csv", "--one-hot", "--json", *FEW).stdout)
    assert {"kind = ash", "kind = elm", "kind = oak"} < {each["name"] for each in two["features"]}
    assert two["features"][0]["name"] == "kind = elm"
    by = json.loads(run("test", "both.csv", "--by", "year", "--one-hot", "--json", *FEW).stdout)
    assert by["features"][0]["share"] == pytest.approx(1)  # the group is the year
    a.assign(kind=[f"word {row}" for row in range(40)]).to_csv("a.csv", index=False)
    assert_refused(
        run("test", "a.csv", "b.csv", "--one-hot"),
        "at most 20 different values",
        "in 'kind'",
        "--drop kind",
    )
    a.assign(kind=[f"2024-01-{1 + row % 28:02}" for row in range(40)]).to_csv("a.csv", index=False)
    assert_refused(run("test", "a.csv", "b.csv", "--one-hot"), "they are dates; leave it out with")
    a.assign(kind=[1.5, 2.5] * 20).to_csv("a.csv", index=False)
    assert_refused(
        run("test", "a.csv", "b.csv", "--one-hot"),
        "column 'kind' is text in b.csv and numbers in a.csv; leave it out with --drop kind.",
    )


@pytest.mark.parametrize("command", ["test", "groups", "drift"])
@pytest.mark.parametrize("option", ["--only-numeric", "--one-hot"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_column_that_is_text_in_one_file_only_is_called_so(files, command, option, first):
    a, b = files
    a.assign(c=range(40)).to_csv("a.csv", index=False)
    b.assign(c="x").to_csv("b.csv", index=False)
    names = [f"{each}.csv" for each in sorted("ab", key=lambda each: each != first)]
    result = run(command, *names, option)
    if (command, option, first) == ("drift", "--only-numeric", "b"):
        assert "a.csv has a column 'c' that the reference does not have" in result.stderr
        return
    where = r"text in (b\.csv|the reference) and numbers in (a\.csv|the reference)"
    assert re.search(f"column 'c' is {where}; leave it out with --drop c\\.", result.stderr)
    assert "lacks" not in result.stderr


def test_a_column_of_text_in_the_second_of_two_large_files_is_called_so(files, monkeypatch):
    monkeypatch.setattr(_samples, "available_memory", lambda: 0.0)
    files[1].assign(w="x").to_csv("b.csv", index=False)
    said = "column 'w' is text in b.csv and numbers in the first file; leave it out with --drop w."
    for command in ("test", "drift"):
        assert said in run(command, "a.csv", "b.csv", "--only-numeric").stderr


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_independence_of_text_columns_alone(ending):
    frame = pd.DataFrame(
        {"kind": ["oak", "elm", "ash"] * 20, "leaf": ["wide", "wide", "thin"] * 20}
    )
    getattr(frame, f"to_{ending}")(f"trees.{ending}")
    asked = [
        "independence",
        f"trees.{ending}",
        "--x",
        "kind",
        "--y",
        "leaf",
        "--kernel",
        "gaussian",
        *FEW,
    ]
    assert json.loads(run(*asked, "--one-hot", "--json").stdout)["p_value"] == 0.01
    assert_refused(
        run(*asked),
        "column 'kind' must be numeric",
        "; make indicators of its values with --one-hot.",
    )


def test_independence_of_a_text_column():
    result = run(
        "independence", "both.csv", "--x", "group", "--y", "v", "--one-hot", "--json", *FEW
    )
    assert json.loads(result.stdout)["p_value"] == 0.01
    assert_refused(
        run("independence", "both.csv", "--x", "group", "--y", "v"),
        "column 'group' must be numeric",
        "--one",
    )


def test_files_too_large_to_be_read_at_once_are_tested_in_passes(files, monkeypatch):
    read = json.loads(run("test", "a.csv", "b.csv", "--json", *FEW).stdout)
    monkeypatch.setattr(_samples, "available_memory", lambda: 0.0)
    streamed = json.loads(run("test", "a.csv", "b.csv", "--json", *FEW).stdout)
    for key in ("samples", "n", "m", "p_value", "rows_x", "rows_y"):
        assert streamed[key] == read[key]
    a, _ = files
    a.assign(x=1.5).to_csv("b.csv", index=False)
    assert_refused(
        run("test", "a.csv", "b.csv"), "b.csv has a column 'x' that the first file does not have"
    )


REFUSED = {
    "other columns": (
        ["a.csv", "narrow.csv"],
        ["narrow.csv lacks column 'w' that a.csv has; leave it out with --drop w."],
    ),
    "a missing value": (
        ["a.csv", "hole.csv"],
        ["hole.csv: column 'v' must have no missing values, got one in line 3; "],
    ),
    "no second file": (["hole.csv", "none.csv"], ["no such file: none.csv"]),
    "few permutations": (
        ["a.csv", "b.csv", "--fail-below", 0.001, *FEW],
        ["at least 999 permutations", "got 99"],
    ),
    "no level": (
        ["a.csv", "b.csv", "--fail-below", 2],
        ["a level between 0 and 1 is needed, got 2.0"],
    ),
    "by one value": (
        ["both.csv", "--by", "one"],
        ["column 'one' must have two values, got 1 ('x')"],
    ),
    "by three values": (
        ["three.csv", "--by", "g"],
        ["must have two values, got 3 ('p', 'q', 'r')", "or use muhat groups"],
    ),
    "by no column": (["both.csv", "--by", "grup"], ["did you mean 'group'?"]),
    "by two files": (
        ["a.csv", "b.csv", "--by", "u"],
        ["--by: one file is needed with --by, got 2"],
    ),
    "one file": (["a.csv"], ["two files are needed, or one with --by, got 1 file"]),
    "text": (
        ["both.csv", "both.csv", "--drop", "year"],
        ["column 'group' must be numeric, got 'old'"],
    ),
    "a figure": (
        ["a.csv", "b.csv", "--out", "test.gif"],
        ["--out: a file name ending in .png, .svg or .pdf is needed"],
    ),
    "a kernel": (["a.csv", "b.csv", "--kernel", "gausian"], ["did you mean 'gaussian'?"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_sentence(case, files):
    a, _ = files
    a[["u", "v"]].to_csv("narrow.csv", index=False)
    a[:1].to_csv("row.csv", index=False)
    pd.DataFrame({"u": [1, 1, 1]}).to_csv("equal.csv", index=False)
    a.assign(v=a["v"].where(a.index != 1)).to_csv("hole.csv", index=False)
    a.assign(g=["p", "q", "r", "r"] * 10).to_csv("three.csv", index=False)
    if case == "by one value":
        a.assign(one="x").to_csv("both.csv", index=False)
    arguments, words = REFUSED[case]
    assert_refused(run("test", *arguments), *words)


def test_two_files_to_compare_lead_to_the_test():
    said = "to compare two files: muhat test a.csv b.csv."
    assert_refused(run("compare", "a.csv", "b.csv"), "unexpected extra argument", said)


def test_few_rows_are_named_as_a_reason_to_find_nothing():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(7, 2)), rng.normal(size=(8, 2))
    reason = "With so few rows, only a very large difference could be detected."
    assert reason in TwoSampleTest(n_permutations=99).test(few, many).verdict()
    assert reason not in TwoSampleTest(n_permutations=99).test(many, many[::-1] + 0.1).verdict()
    assert reason not in TwoSampleTest(n_permutations=99).test(few, many + 9).verdict()


def test_independence_refuses_a_column_on_both_sides():
    assert_refused(
        run("independence", "a.csv", "--x", "u,v", "--y", "v"),
        "a column can be in only one of them",
    )
    assert_refused(
        run("independence", "a.csv", "--x", "u", "--y", "z"),
        "a.csv has no column 'z'; its columns are u, v, w.",
    )


@pytest.mark.parametrize("options", [[], ["--no-standardize"], ["--distinct"], ["--by"]])
def test_the_python_lines_of_a_report_give_the_same_p_to_the_last_digit(
    files, monkeypatch, options
):
    """Only v differs, so that p is not at its floor and another scaling would show."""
    a, b = files
    pd.concat([a, a[:3]]).to_csv("a.csv", index=False)
    (b / [1, 3.5, 1])[["w", "u", "v"]].to_csv("b.csv", index=False)
    lines = []
    monkeypatch.setattr(TwoSampleResult, "to_html", lambda *_, code, **__: lines.append(code))
    given = (
        ["both.csv", "--by", "group", "--drop", "year"]
        if options == ["--by"]
        else ["a.csv", "b.csv", *options]
    )
    found = json.loads(run("test", *given, "--json", "--report", "page.html", *FEW).stdout)
    space = {}
    exec(lines[0], space)
    assert space["result"].p_value == found["p_value"]
    assert space["result"].statistic == found["statistic"]
    assert space["result"].names == tuple(found["samples"])


READINGS = {
    "one-hot": ["--drop", "note", "--one-hot", "--missing", "drop"],
    "drop": ["--drop", "kind,note", "--missing", "drop"],
    "only numeric": ["--only-numeric", "--missing", "drop"],
}
"""Options that say which columns and rows of a file are read."""


def with_text(frame, kinds):
    """Return rows with a column of kinds and one that differs in all rows, and two gaps."""
    frame = frame.assign(kind=kinds[np.arange(len(frame)) % len(kinds)], note=np.arange(len(frame)))
    frame = frame.astype({"note": str}).assign(note=lambda rows: "n" + rows["note"])
    frame.loc[3, "u"] = np.nan
    frame.loc[5, "v"] = np.nan
    return frame


def ran(lines):
    """Return the result of lines of Python."""
    space = {}
    exec(lines, space)
    return space["result"]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("command", ["two files", "one file", "large files"])
def test_the_python_lines_read_the_same_columns_and_rows(files, monkeypatch, reading, command):
    a, b = files
    a = with_text(a, np.array(["oak", "ash"]))
    b = with_text((b / [1, 3.5, 1])[["w", "v", "u"]], np.array(["elm", "oak", "yew"]))
    a.to_csv("a.csv", index=False)
    b.to_csv("b.csv", index=False)
    pd.concat([a.assign(group="old"), b.assign(group="new")]).to_csv("both.csv", index=False)
    lines = []
    monkeypatch.setattr(TwoSampleResult, "to_html", lambda *_, code, **__: lines.append(code))
    given = ["a.csv", "b.csv"]
    if command == "one file":
        given = ["both.csv", "--by", "group"]
    if command == "large files":
        monkeypatch.setattr(_samples, "available_memory", lambda: 0.0)
    given += READINGS[reading]
    found = json.loads(run("test", *given, "--json", "--report", "page.html", *FEW).stdout)
    result = ran(lines[0])
    assert result.p_value == found["p_value"]
    assert result.statistic == found["statistic"]
    assert [each.name for each in result.features] == [each["name"] for each in found["features"]]


@pytest.mark.parametrize("options", [[], ["--one-hot"], ["--one-hot", "--missing", "drop"]])
def test_the_python_lines_of_independence_give_the_same_p(files, monkeypatch, options):
    rows = with_text(files[0], np.array(["oak", "ash", "elm"]))
    if "drop" not in options:
        rows = rows.dropna()
    rows.to_csv("a.csv", index=False)
    lines = []
    monkeypatch.setattr(IndependenceResult, "to_html", lambda *_, code, **__: lines.append(code))
    x = "u,w"
    if options:
        x = "kind,u"
    given = ["a.csv", "--x", x, "--y", "v", *options, "--json", "--report", "page.html", *FEW]
    found = json.loads(run("independence", *given).stdout)
    result = ran(lines[0])
    assert (result.p_value, result.n) == (found["p_value"], found["n"])
    assert result.statistic == found["statistic"]


def test_every_file_that_is_written_is_named():
    printed = run("test", "a.csv", "b.csv", "--out", "f.png", "--report", "r.html", *FEW).stdout
    assert printed.endswith("Figure: f.png\nReport: r.html\n")
    printed = run("independence", "a.csv", "--x", "u", "--y", "v", "--out", "g.png", *FEW).stdout
    assert printed.endswith("Figure: g.png\n")
    assert "Kernel correlation: " in printed
    assert "Do not compare it between pairs of columns" in printed


def test_options_take_columns_between_commas_unless_a_column_has_one_in_its_name():
    rows = pd.DataFrame(np.random.default_rng(4).normal(size=(30, 4)), columns=list("abcd"))
    rows.to_csv("rows.csv", index=False)
    rows.rename(columns={"c": "a,b"}).to_csv("comma.csv", index=False)
    quick = ["--permutations", "9", "--json"]

    def tested(*arguments):
        result = run(*arguments, *quick)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def features(*arguments):
        found = tested("test", "rows.csv", "rows.csv", *arguments)
        return sorted(each["name"] for each in found["features"])

    assert features("--drop", "a,b") == features("--drop", "a, b") == ["c", "d"]
    assert features("--drop", "a,b", "--drop", "d") == ["c"]
    both = tested("test", "comma.csv", "comma.csv", "--drop", "a,b")
    assert sorted(each["name"] for each in both["features"]) == ["a", "b", "d"]
    assert tested("independence", "comma.csv", "--x", "a,b", "--y", "b,d")["x"] == ["a,b"]
    assert tested("independence", "rows.csv", "--x", "a,b", "--y", "c,d")["x"] == ["a", "b"]
    message = run("test", "rows.csv", "rows.csv", "--drop", "a,e").stderr
    assert "rows.csv has no column 'e'" in message


def test_of_two_files_one_may_have_decimal_commas():
    rows = pd.DataFrame(np.random.default_rng(4).normal(size=(30, 2)), columns=["a", "b"])
    rows[:12].to_csv("points.csv", index=False)
    rows[12:].to_csv("commas.csv", index=False, sep=";", decimal=",")
    rows[12:].to_csv("points2.csv", index=False)
    rows[:12].to_parquet("points.parquet")
    expected = run("test", "points.csv", "points2.csv", "--permutations", "19", "--json")
    for first in ("points.csv", "points.parquet"):
        found = run("test", first, "commas.csv", "--decimal", ",", "--permutations", 19, "--json")
        assert found.exit_code == 0, found.stderr
        one, other = json.loads(found.stdout), json.loads(expected.stdout)
        assert one["p_value"] == other["p_value"]
    message = run("test", "points.csv", "commas.csv").stderr
    assert "column 'a' has decimal commas" in message


def test_drift_says_what_of_a_batch_was_dropped_or_is_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = rng.choice(["y", "n"], size=60)
    frame = pd.DataFrame({"amount": rng.normal(size=60), "ok": words})
    frame.to_csv("reference.csv", index=False)
    frame[:40].assign(ok="z").to_csv("z.csv", index=False)
    gaps = frame.assign(amount=np.where(np.arange(60) % 2, frame.amount, np.nan))
    gaps.to_csv("gaps.csv", index=False)
    found = run(
        *("drift", "reference.csv", "z.csv", "gaps.csv", "--one-hot", "--missing", "drop"), "--json"
    )
    result = json.loads(found.stdout)
    unknown = "z.csv: 40 rows have a value of ok that the reference does not have ('z')."
    assert unknown in result["batches"][0]["verdict"]
    assert "Dropped 30 of 60 rows with missing values" in result["batches"][1]["verdict"]
    assert unknown in result["verdict"]
    one = run("drift", "reference.csv", "gaps.csv", "--one-hot", "--missing", "drop").stdout
    assert "Dropped 30 of 60 rows" in " ".join(one.split())


def test_a_verdict_names_a_level_at_which_it_decides_otherwise():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 1)), rng.normal(0.45, 1, size=(60, 1))
    result = TwoSampleTest(n_permutations=1999).test(X, Y)
    assert 0.001 < result.p_value < 0.05
    assert " detected at level 0.001 (p = " in result.verdict(0.001)
    assert "level" not in result.verdict()
