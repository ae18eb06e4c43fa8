"""``muhat pca``: verdict, files, saved models, bad options; figures and the page of components."""

import csv
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from muhat import ComponentMapDisplay, ComponentsDisplay, KernelPCA
from muhat.__main__ import command_line
from muhat.figures import loadings_bars, noise_plot, scores_plot, variance_bars
from muhat.pca import describe_components
from muhat.plots import figure_of_components


def invoke(*arguments):
    return CliRunner().invoke(command_line(), list(map(str, arguments)))


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 2 * np.pi, 60)
    X = np.column_stack([np.cos(t), np.sin(t), np.cos(t) + 2, 1000 * np.sin(t)])
    X += 0.1 * rng.normal(size=X.shape) * [1, 1, 1, 1000]
    path = tmp_path / "ring.csv"
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["left", "up", "again", "metres", "side"])
        for row in X:
            writer.writerow([*row, "north" if row[1] > 0 else "south"])
    return path


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_everything_is_written_and_the_saved_model_scores_new_rows(table, tmp_path):
    files = {
        "--scores": tmp_path / "scores.csv",
        "--out": tmp_path / "map.png",
        "--report": tmp_path / "page.html",
        "--save": tmp_path / "model.muhat",
    }
    options = []
    for name, path in files.items():
        options += [name, path]
    run = invoke("pca", table, "--by", "side", *options)
    assert run.exit_code == 0, run.output
    assert "2 components explain" in " ".join(run.output.split())
    assert all(path.exists() for path in files.values())
    page = files["--report"].read_text()
    for text in (
        "Map of the rows",
        "Columns correlated with component 1",
        "Unusual rows",
        "novelty p =",
    ):
        assert text in page
    written = rows_of(files["--scores"])
    assert list(written[0]) == [
        "row",
        "component_1",
        "component_2",
        "reconstruction_error",
        "novelty_p",
    ]
    applied = invoke("apply", files["--save"], table, "--out", tmp_path / "new.csv")
    assert applied.exit_code == 0, applied.output
    again = rows_of(tmp_path / "new.csv")
    for one, other in zip(written, again, strict=True):
        assert abs(float(one["component_1"]) - float(other["component_1"])) < 1e-12
        assert 0 < float(other["novelty_p"]) <= 1
    assert "distributed differently" not in applied.stderr
    numbers = pd.read_csv(table)
    numbers[numbers.select_dtypes("number").columns] += 1
    numbers.to_csv(table, index=False)
    drifted = invoke("apply", files["--save"], table, "--out", tmp_path / "new.csv")
    assert "the rows that the model was fitted to" in drifted.stderr


def test_json_has_the_same_numbers_as_python(table):
    found = json.loads(invoke("pca", table, "--by", "side", "--components", 3, "--json").output)
    rows = rows_of(table)
    X = np.array([[float(row[name]) for name in ("left", "up", "again", "metres")] for row in rows])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    pca = KernelPCA(3).fit(scaled)
    assert np.allclose(found["explained_variance_ratio"], pca.explained_variance_ratio_)
    assert found["components"] == 3
    assert found["recommended_components"] == pca.choose_components().n_components
    scores = pca.transform(scaled)
    expected = np.corrcoef(X[:, 1], scores[:, 0])[0, 1]
    assert abs(found["correlations"]["up"][0] - expected) < 1e-9


def test_a_filter_shrinks_all_components(table):
    run = invoke("pca", table, "--by", "side", "--filter", "tikhonov", "--json")
    found = json.loads(run.output)
    assert found["filter"] == "f-kmse"
    assert found["explained"] is None
    assert "shrunk by" in found["verdict"]


BAD = [
    (["--components", "0"], "--components: a whole number of at least 1"),
    (["--components", "many"], "--components: a whole number of at least 1"),
    (["--components", "61"], "at most the number of rows, 60"),
    (["--filter", "kme"], "one function of the eigenvalues"),
    (["--bandwidth", "-1"], "--bandwidth"),
    (["--scores", "scores.txt"], "ending in .csv"),
    (["--by", "nowhere"], "nowhere"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD)
def test_bad_options_are_refused_in_one_sentence(table, options, sentence):
    if "--by" not in options:
        options = [*options, "--by", "side"]
    run = invoke("pca", table, *options)
    assert run.exit_code == 2
    assert sentence in " ".join(run.output.split())


def test_text_is_refused_or_made_indicators(table):
    assert invoke("pca", table).exit_code == 2
    run = invoke("pca", table, "--one-hot", "--json")
    names = json.loads(run.output)["correlations"]
    assert [name for name in names if "north" in name]


def test_constant_columns_and_few_rows(tmp_path):
    constant = tmp_path / "constant.csv"
    constant.write_text("a,b\n" + "1,2\n" * 5)
    assert "some column must vary" in " ".join(invoke("pca", constant).output.split())
    few = tmp_path / "few.csv"
    few.write_text("a,b\n1,2\n2,3\n")
    assert "at least 3 rows" in " ".join(invoke("pca", few).output.split())
    three = tmp_path / "three.csv"
    three.write_text("a,b\n1,2\n2,3\n5,1\n")
    run = invoke("pca", three)
    assert run.exit_code == 0
    assert "With only 3 rows this is a rough indication" in " ".join(run.output.split())


def test_where_no_component_is_worth_keeping_none_is_said_to_be_chosen():
    X = np.random.default_rng(1).normal(size=(60, 3))
    nothing = describe_components(KernelPCA("loo").fit(X), X)
    assert nothing.choice.best == 0
    assert not nothing.to_dict()["is_chosen"]
    page = nothing.to_html()
    assert "shown; none was chosen" in page
    assert "chosen by left-out rows" not in page
    assert "The dot is what the model has." in page
    plot = noise_plot(nothing.choice)
    assert plot.series[1].chosen[0] == 0
    assert "none is recommended" in plot.caption
    assert plot.note == "marked: the lowest, at 0 components"
    assert "as given" in describe_components(KernelPCA(2).fit(X), X).to_html()


def test_novelty_p_values_are_described_as_what_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for rows, words in ((30, "share of rows"), (2100, "2,000 random rows")):
        X = rng.normal(size=(rows, 2))
        pd.DataFrame(X, columns=["u", "v"]).to_csv("rows.csv", index=False)
        options = ["--components", "1", "--report", "page.html"]
        printed = CliRunner().invoke(command_line(), ["pca", "rows.csv", *options]).stdout
        assert words in printed
        assert ("when left out" in printed) == (rows == 30)
        page = Path("page.html").read_text(encoding="utf-8")
        assert ("no p-value is below 0.0005" in page) == (rows == 2100)
        assert ("some row always has the smallest" in page) == (rows == 30)


def test_figures_are_drawn_by_matplotlib_and_as_a_page():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    labels = np.repeat(list("abcdefghij"), 4)
    for count in (1, 2):
        result = describe_components(KernelPCA(count).fit(X), X, labels=labels)
        figure_of_components(result).draw_without_rendering()
        page = result.to_html()
        assert f"Columns correlated with component {count}" in page
        # Bars of both signs start in the middle of their column.
        for width, left in re.findall(r"width:([\d.]+)%;margin-left:([\d.]+)%", page):
            assert float(left) == 50 or float(left) + float(width) == pytest.approx(50, abs=0.11)
    plot = scores_plot(result)
    assert [each.name for each in plot.series][-1] == "other"
    assert sum(len(each.x) for each in plot.series) == 40
    assert len(variance_bars(result.pca).bars) == 2
    bars = loadings_bars(result).bars
    order = result.leading_columns(0)
    assert [bar.length for bar in bars] == result.correlations[order, 0].tolist()
    assert all(bar.is_strong for bar in bars)  # grey stands for what is not significant
    chosen = dataclasses.replace(result.choice, best=3, n_components=2)
    assert noise_plot(chosen).series[1].chosen[0] == 2
    for display in (
        ComponentMapDisplay.from_estimator(result.pca, X),
        ComponentsDisplay.from_choice(result.pca),
    ):
        display.plot()
