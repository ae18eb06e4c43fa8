"""Verdicts say what a reader of them alone must know of the file: ids, and what was left out."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from muhat import compare
from muhat.__main__ import command_line
from muhat.figures import group_map_plot

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


@pytest.fixture
def text_columns():
    """Two text columns and one of numbers, which depend on the first."""
    rng = np.random.default_rng(1)
    kind = np.repeat(["high", "low", "mid"], 40)
    ok = np.where(np.arange(120) % 40 < np.where(kind == "mid", 36, 10), "yes", "no")
    amount = np.where(kind == "mid", 3.0, 0.0) + rng.normal(size=120)
    order = rng.permutation(120)
    table = pd.DataFrame({"kind": kind, "ok": ok, "amount": amount}).iloc[order]
    table.to_csv("text.csv", index=False)
    return table


@pytest.mark.parametrize(("x", "y"), [("kind", "ok"), ("kind", "amount"), ("amount", "kind")])
def test_dependence_of_a_text_column_has_a_direction_and_a_size(text_columns, x, y):
    verdict = verdict_of("independence", "text.csv", "--x", x, "--y", y, "--one-hot")
    assert verdict.startswith(f"{x} and {y} are dependent (120 rows, p ≤ 0.001).")
    if y == "ok":
        found = (
            "ok = yes in 90 % of the rows with kind = mid and in 25 % of those with kind = high."
        )
    else:
        means = text_columns.groupby("kind")["amount"].mean()
        low = means.idxmin()
        found = f"The mean of amount is highest for kind = mid ({means['mid']:.3g}) and lowest for "
        found += f"kind = {low} ({means[low]:.3g}).".replace("-", "−")
    assert verdict.endswith(found)


def test_a_far_value_that_repeats_is_named_although_nothing_is_found():
    rng = np.random.default_rng(0)
    a = pd.DataFrame(rng.normal(10, 1, size=(80, 2)), columns=["height", "weight"])
    b = a.copy()
    b.loc[[3, 9], "weight"] = -999
    a.to_csv("a.csv", index=False)
    b.to_csv("b.csv", index=False)
    verdict = verdict_of("test", "a.csv", "b.csv")
    assert verdict.startswith("No difference between")
    found = "In weight, the value −999 is in 2.5 % of the rows of b and in 0 % of those of a."
    assert f"{found} It is far from all others." in verdict


@pytest.mark.parametrize("command", ["test", "groups"])
def test_ties_of_a_single_column_are_not_called_copies(command):
    """Sales are zero on most days: such rows are not entered twice."""
    rng = np.random.default_rng(0)
    sales = np.where(rng.random(200) < np.repeat([0.9, 0.5], 100), 0, rng.lognormal(3, 1, 200))
    table = pd.DataFrame({"sales": sales, "shop": np.repeat(["a", "b"], 100)})
    table.to_csv("zeros.csv", index=False)
    verdict = verdict_of(command, "zeros.csv", "--by", "shop")
    assert "differ (p ≤ 0.001)" in verdict
    assert "copies" not in verdict
    assert "equal to rows" not in verdict
    twice = pd.DataFrame({"x": np.repeat(rng.normal(size=60), 2) + np.repeat([0, 2], 60)})
    twice.assign(shop=np.repeat(["a", "b"], 60)).to_csv("twice.csv", index=False)
    assert "60 of the 120 rows are exact copies" in verdict_of(command, "twice.csv", "--by", "shop")


@pytest.mark.parametrize("command", ["test", "groups"])
def test_equal_answers_on_a_scale_are_not_called_copies(command):
    """With two questions and five answers, many persons answer alike; copied forms are named."""
    rng = np.random.default_rng(0)
    shop = np.repeat(["a", "b"], 60)
    mood = rng.normal(np.where(shop == "a", 2.6, 3.8), 0.6)
    answers = np.clip(np.rint(mood[:, None] + rng.normal(size=(120, 2))), 1, 5)
    table = pd.DataFrame(answers, columns=["service", "price"]).assign(shop=shop)
    table.to_csv("answers.csv", index=False)
    verdict = verdict_of(command, "answers.csv", "--by", "shop")
    assert "differ (p ≤ 0.001)" in verdict
    assert "copies" not in verdict
    table["minutes"] = rng.lognormal(2, 1, 120)  # no two are equal unless a form is entered twice
    pd.concat([table, table[:12]]).to_csv("twice.csv", index=False)
    assert "12 of the 132 rows are exact copies" in verdict_of(command, "twice.csv", "--by", "shop")


@pytest.mark.parametrize("command", ["test", "groups"])
def test_rows_that_are_copied_many_times_are_named(command):
    """Of 20 lakes each row is there six times: values are rounded, so that some are equal too."""
    rng = np.random.default_rng(0)
    lakes = pd.DataFrame(rng.normal(7, 1, size=(40, 3)).round(1), columns=["ph", "oxygen", "iron"])
    lakes["month"] = np.repeat(["May", "June"], 20)
    lakes.loc[20:, "ph"] += 2
    pd.concat([lakes] * 6).to_csv("lakes.csv", index=False)
    verdict = verdict_of(command, "lakes.csv", "--by", "month")
    assert "200 of the 240 rows are exact copies of another row of the same" in verdict


def test_errors_of_large_values_are_written_out():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=60)
    pd.DataFrame({"x": x, "y": 1e5 * x + 2e4 * rng.normal(size=60)}).to_csv("y.csv", index=False)
    verdict = verdict_of("predict", "y.csv", "--target", "y")
    assert "e+0" not in verdict
    assert "000, RMSE " in verdict


def test_a_higher_r2_beside_larger_errors_is_explained():
    rng = np.random.default_rng(0)
    for name, spread, noise in (("train", 0.5, 1), ("new", 4, 1.6)):
        x = spread * rng.normal(size=100)
        y = x + noise * rng.normal(size=100)
        pd.DataFrame({"x": np.clip(x, -1.5, 1.5), "y": y}).to_csv(f"{name}.csv", index=False)
    verdict = verdict_of("predict", "train.csv", "new.csv", "--target", "y")
    reason = "R² is higher although errors are larger, because y varies more in new."
    assert reason in verdict


def test_rows_that_may_be_pairs_are_pointed_to_the_test_of_pairs():
    rng = np.random.default_rng(0)
    before = rng.normal(100, 20, size=25)
    after = before - 4 + rng.normal(0, 3, size=25)
    ids, when = np.tile(np.arange(25), 2), np.repeat(["before", "after"], 25)
    table = pd.DataFrame({"id": ids, "when": when, "bp": np.r_[before, after]})
    table.to_csv("pairs.csv", index=False)
    command = "muhat groups pairs.csv --by when --pairs id"
    advice = f"each value of id is once in both samples. If it names the same units, use {command}."
    assert advice in verdict_of("test", "pairs.csv", "--by", "when")
    assert "differ when rows are paired by id (p = 0.002)" in verdict_of(*command.split()[1:])
    table.head(49).to_csv("some.csv", index=False)
    assert "same units" not in verdict_of("test", "some.csv", "--by", "when")


def test_a_map_says_which_groups_have_no_ellipse():
    place = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    errors = np.array([[0.1, 0.1], [0.1, 0.1], [np.nan, np.nan]])
    drawn = group_map_plot(["a", "b", "c"], place, errors, np.array([0.6, 0.4]))
    assert drawn.note == "ellipses: 2 SE, none: unknown"
    assert "groups without one, such as groups of one row, is not known" in drawn.caption
    drawn = group_map_plot(["a", "b", "c"], place, errors * np.nan, np.array([0.6, 0.4]))
    assert drawn.note == "no ellipses: errors not known"


def test_a_gain_of_more_than_everything_is_not_asked_for():
    rows = np.random.default_rng(0).normal(size=(50, 3))[:3]
    verdict = compare(rows).verdict()
    assert verdict.endswith("This may be chance: with so few rows, no gain would be significant.")


def test_a_method_for_intervals_is_not_ignored():
    options = ["--target", "y", "--intervals", "conformal"]
    run = CliRunner().invoke(command_line(), ["predict", "first.csv", *options])
    assert run.exit_code == 0
    assert "--intervals conformal is for rows of NEW; without NEW it is not used." in run.stderr


def test_lines_of_python_name_the_unusual_rows_of_the_page(capsys):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["x", "y", "z"])
    table.loc[[3, 5], "x"] = np.nan
    table.to_csv("data.csv", index=False)
    options = ["data.csv", "--missing", "drop", "--components", "2"]
    verdict = verdict_of("pca", *options, "--report", "page.html")
    page = html.unescape(re.sub(r"<[^>]+>", "", Path("page.html").read_text()))
    start = page.index("import numpy as np\n")
    end = page.index("print(result.verdict())", start)
    exec(page[start:end] + "print(result.verdict())", {})
    named = re.compile(r"Most unusual rows: [0-9, and]+\.")
    assert named.findall(capsys.readouterr().out) == named.findall(verdict) != []
