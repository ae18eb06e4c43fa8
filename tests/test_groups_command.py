"""``muhat groups``: a table of groups, a verdict, exit codes; or one sentence on stderr."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from muhat import GroupTest, KernelMeans, load
from muhat.__main__ import command_line
from muhat.cli._options import FOUND
from muhat.testing import GroupResult

FEW = ["--permutations", 99]


@pytest.fixture(autouse=True)
def shops(tmp_path, monkeypatch):
    """Four shops, of which the south is more expensive, on five days; also as a file each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["price", "amount"])
    frame["shop"] = np.repeat(["north", "south", "east", "west"], 20)
    frame["day"] = np.tile(["mo", "tu", "we", "th", "fr"], 16)
    frame.loc[frame["shop"] == "south", "price"] += 3
    frame.to_csv("sales.csv", index=False)
    for name, rows in frame.groupby("shop"):
        rows.drop(columns=["shop", "day"]).to_csv(f"{name}.csv", index=False)
    return frame


def run(*arguments):
    return CliRunner().invoke(command_line(), ["groups", *map(str, arguments)])


def test_groups_of_a_column_get_a_table_and_a_verdict(shops):
    result = run("sales.csv", "--by", "shop", "--drop", "day", *FEW)
    assert result.exit_code == 0, result.stderr
    expected = GroupTest(n_permutations=99).test(shops.drop(columns="day"), "shop")
    assert result.stdout.startswith("sales: 80 rows, 2 columns, 4 groups\n")
    assert result.stdout.splitlines()[-1] == expected.verdict()
    assert expected.verdict().startswith(
        "1 of the 4 groups of column shop (80 rows in all) differs from the others: south ("
    )
    assert all(len(line) <= 80 for line in result.stdout.splitlines()[:-1])


@pytest.mark.parametrize("design", ["strata", "pairs"])
def test_a_design_is_that_of_the_library(shops, design):
    options = ["sales.csv", "--by", "shop", f"--{design}", "day", "--json", *FEW]
    printed = json.loads(run(*options).stdout)
    test = GroupTest(n_permutations=99)
    expected = test.test(shops[["price", "amount"]], shops["shop"], **{design: shops["day"]})
    assert printed.pop("warnings") == []
    assert printed == json.loads(json.dumps({"data": "sales", **expected.to_dict()}))
    assert printed["groups"][0]["group"] == "south"
    assert len(printed["pairs"]) == 6


def test_a_file_for_each_group_and_the_exit_code_of_a_difference():
    files = ["north.csv", "south.csv", "east.csv"]
    result = run(*files, "--fail-below", 0.05, *FEW)
    assert result.exit_code == FOUND
    found = "1 of the 3 groups (60 rows in all) differs from the others: south (p ≤ 0.01, "
    assert found in result.stdout
    assert run("north.csv", "east.csv", "--fail-below", 0.01, *FEW).exit_code == 0


def test_files_of_the_same_name_in_two_folders_are_two_groups(shops, tmp_path):
    for folder, name in (("one", "north"), ("two", "south")):
        (tmp_path / folder).mkdir()
        (tmp_path / f"{name}.csv").rename(tmp_path / folder / "data.csv")
    result = run("one/data.csv", "two/data.csv", "--json", *FEW)
    groups = json.loads(result.stdout)["groups"]
    assert sorted(each["group"] for each in groups) == ["one/data", "two/data"]


def test_two_groups_come_in_the_order_of_the_file(shops):
    after = shops.assign(time="after", price=shops["price"] + 5)
    rows = pd.concat([shops.assign(time="before"), after])
    rows.drop(columns=["shop", "day"]).to_csv("times.csv", index=False)
    verdict = run("times.csv", "--by", "time", *FEW).stdout.splitlines()[-1]
    assert verdict.startswith("before (80 rows) and after (80 rows) differ")
    assert " higher in after than in before." in verdict


def test_the_means_are_saved_and_applied(shops):
    result = run("sales.csv", "--by", "shop", "--drop", "day", "--save", "means.muhat", *FEW)
    assert result.stdout.endswith("Saved: means.muhat\n")
    means = load("means.muhat")
    assert isinstance(means, KernelMeans)
    assert means.groups_.tolist() == ["east", "north", "south", "west"]
    applied = CliRunner().invoke(command_line(), ["apply", "means.muhat", "north.csv"])
    header, first, *_ = applied.stdout.splitlines()
    assert header == "score_east,score_north,score_south,score_west"
    expected = means.score_samples(pd.read_csv("north.csv"))[0]
    np.testing.assert_allclose([float(each) for each in first.split(",")], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sales.csv"], "a column of groups, or a file for each group, is needed, got 1 file"),
        (["north.csv", "east.csv", "--by", "price"], "--by: one file is needed with --by, got 2"),
        (["north.csv", "east.csv", "north.csv"], "each group is needed, got north.csv twice; give"),
        (["north.csv", "east.csv", "./north.csv"], "each group is needed, got north.csv twice"),
        (["sales.csv", "--by", "shp", "--drop", "day"], "did you mean 'shop'?"),
        (["sales.csv", "--by", "shop", "--strata", "shop"], "got 'shop' twice"),
        (["sales.csv", "--by", "shop"], "column 'day' must be numeric"),
        (["sales.csv", "--by", "shop", "--save", "means.csv"], "ending in .muhat is needed"),
        (["north.csv", "sales.csv", "--drop", "shop"], "sales.csv"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert message in line


def test_a_report_shows_the_verdict_and_every_group(shops, tmp_path):
    result = run(
        "sales.csv", "--by", "shop", "--drop", "day", "--report", "page.html", "--json", *FEW
    )
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        "1 of the 4 groups of column shop (80 rows in all) differs from the others: south" in page
    )
    for shop in ("north", "south", "east", "west"):
        assert shop in page


def test_a_tolerance_is_that_of_the_library_and_decides_the_exit_code(shops):
    options = ["sales.csv", "--by", "shop", "--drop", "day", *FEW]
    printed = json.loads(run(*options, "--tolerance", "0.3", "--json").stdout)
    expected = GroupTest(n_permutations=99, tolerance=0.3).test(shops.drop(columns="day"), "shop")
    assert printed["tolerance"] == json.loads(json.dumps(expected.tolerance.to_dict()))
    assert run(*options, "--fail-below", 0.05).exit_code == FOUND
    assert run(*options, "--fail-below", 0.05, "--tolerance", 0.3).exit_code == FOUND
    within = run(*options, "--fail-below", 0.05, "--tolerance", 1.3)
    assert within.exit_code == 0
    nothing = "No group detectably differs from the others by more than the tolerance"
    assert nothing in within.stdout
    assert "p, more than" in within.stdout
    halves = run(*options, "--tolerance", "halves")
    assert "the distance between the first and the second half of the rows" in halves.stdout


@pytest.mark.parametrize("tolerance", ["-1", "much", "nan"])
def test_what_is_no_tolerance_is_one_sentence(tolerance):
    result = run("sales.csv", "--by", "shop", "--drop", "day", f"--tolerance={tolerance}")
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert "--tolerance: a number of at least 0, or 'halves', is needed" in line


def test_a_figure_and_the_lines_of_python_of_a_report(shops, tmp_path):
    result = run(
        *["sales.csv", "--by", "shop", "--strata", "day", "--out", "groups.png"],
        *["--report", "page.html", *FEW],
    )
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "groups.png").stat().st_size > 10_000
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    code = html.unescape(re.search(r"<code>(from muhat import GroupTest.*?)</code>", page, re.S)[1])
    found = {}
    exec(code, found)
    printed = json.loads(run("sales.csv", "--by", "shop", "--strata", "day", "--json", *FEW).stdout)
    assert found["result"].p_value == printed["p_value"]
    assert found["result"].groups[0].mmd == pytest.approx(printed["groups"][0]["mmd"])


@pytest.mark.parametrize("by", [True, False])
def test_the_lines_of_python_read_text_as_the_command_does(shops, monkeypatch, by):
    lines = []
    monkeypatch.setattr(GroupResult, "to_html", lambda *_, code, **__: lines.append(code))
    kinds = np.array(["oak", "ash", "elm"])
    rows = shops.drop(columns="day").assign(kind=kinds[np.arange(len(shops)) % 3])
    rows.loc[3, "price"] = np.nan
    rows.to_csv("kinds.csv", index=False)
    given = ["kinds.csv", "--by", "shop"]
    if not by:
        given = []
        for name, group in rows.groupby("shop"):
            group.drop(columns="shop").iloc[:, ::-1].to_csv(f"{name}.csv", index=False)
            given.append(f"{name}.csv")
    given += ["--one-hot", "--missing", "drop", "--report", "page.html", *FEW]
    found = json.loads(run(*given, "--json").stdout)
    space = {}
    exec(lines[0], space)
    assert space["result"].p_value == found["p_value"]
    assert space["result"].statistic == found["statistic"]


def test_what_is_left_out_ends_the_verdict(shops):
    shops.loc[3, "price"] = np.nan
    shops.to_csv("gaps.csv", index=False)
    result = run("gaps.csv", "--by", "shop", "--only-numeric", "--missing", "drop", *FEW)
    assert "Not tested: day." in result.stdout
    assert "1 of 80 rows" in result.stdout
