"""muhat predict: a table, JSON, a figure and files that say what the library says."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from muhat import ConditionalMean, load
from muhat.__main__ import command_line

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"])
FRAME["y"] = np.sin(2 * FRAME["a"]) + 0.1 * FRAME["b"] + 0.1 * RNG.normal(size=60)
FEATURES = FRAME[["a", "b"]].to_numpy()
MODEL = make_pipeline(StandardScaler(), ConditionalMean()).fit(FEATURES, FRAME["y"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "train.csv", index=False)
    FRAME[["b", "a"]].iloc[:5].to_csv(tmp_path / "new.csv", index=False)
    FRAME.assign(kind="x").to_csv(tmp_path / "words.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(command_line(), ["predict", *arguments])


def test_new_rows_have_predictions_and_intervals_whatever_the_order_of_columns(folder):
    found = json.loads(run("train.csv", "new.csv", "--target", "y", "--json").stdout)
    scaled = MODEL[:-1].transform(FEATURES[:5])
    rows = found["predictions"]
    np.testing.assert_allclose([row["prediction"] for row in rows], MODEL.predict(FEATURES[:5]))
    ends = MODEL[-1].predict_interval(scaled)
    np.testing.assert_allclose([[row["low"], row["high"]] for row in rows], ends)
    assert found["coverage"] is None
    assert found["loo_r2"] == pytest.approx(MODEL[-1].loo_score_)
    assert max(found["importance"], key=found["importance"].get) == "a"
    conformal = json.loads(run("train.csv", "new.csv", "--target", "y", "--json", "--intervals", "conformal").stdout)
    order = np.random.default_rng(0).permutation(60)
    calibrating, rest = order[:20], np.sort(order[20:])
    fitted = clone(MODEL).fit(FEATURES[rest], FRAME["y"].to_numpy()[rest])  # the scaler sees no row that calibrates
    reach = np.sort(np.abs(FRAME["y"].to_numpy()[calibrating] - fitted.predict(FEATURES[calibrating])))[18]
    middle = fitted.predict(FEATURES[:5])
    expected = np.column_stack([middle - reach, middle + reach])
    np.testing.assert_allclose([[row["low"], row["high"]] for row in conformal["predictions"]], expected)


def test_without_new_rows_each_is_predicted_from_all_others_and_files_are_written(folder):
    result = run(
        *("train.csv", "--target", "y", "--out", "figure.png", "--save-predictions", "all.csv", "--save", "model.muhat")
    )
    assert result.exit_code == 0, result.output
    assert "train: 60 rows, 2 features, predicting 'y'" in result.stdout
    assert "… and 50 more" in result.stdout
    assert "each row from all others, 90 % intervals by leave-one-out residuals:" in result.stdout
    assert "inside" not in result.stdout
    assert (folder / "figure.png").stat().st_size > 10_000
    written = pd.read_csv("all.csv")
    np.testing.assert_allclose(written["prediction"], MODEL[-1].loo_predictions_)
    np.testing.assert_allclose(written["y"], FRAME["y"])
    inside = (written["low"] <= written["y"]) & (written["y"] <= written["high"])
    assert 0.9 <= inside.mean() < 0.95
    np.testing.assert_allclose(load("model.muhat").predict(FRAME[["a", "b"]]), MODEL.predict(FEATURES))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv"], "the column to predict is needed, got none"),
        (["train.csv", "--target", "z"], "train.csv has no column 'z'; its columns are a, b, y."),
        (["new.csv", "train.csv", "--target", "y"], "new.csv has no column 'y'; its columns are b, a."),
        (["words.csv", "--target", "kind"], "column 'kind' is text; --target must be a column of numbers."),
        (["words.csv", "--target", "kind", "--one-hot"], "column 'kind' is text; --target must be"),
        (["train.csv", "--target", "y", "--intervals", "bayes"], "'bayes'"),
        (["train.csv", "--target", "y", "--out", "figure.txt"], "a file name ending in .png, .svg, .pdf is needed"),
        (["train.csv", "--target", "y", "--confidence", "1.5"], "--confidence: q must be a number between 0 and 1"),
        (["train.csv", "--target", "y", "--confidence", "0.99"], "takes at least 99 rows, got 60; lower it"),
        (["words.csv", "--target", "y"], "kind"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(folder, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("intervals", ["jackknife+", "conformal"])
def test_coverage_is_told_of_new_rows_only(folder, intervals):
    asked = ["--target", "y", "--intervals", intervals]
    own = json.loads(run("train.csv", *asked, "--json", "--report", "own.html").stdout)
    assert (own["intervals"], own["coverage"]) == ("leave-one-out residuals", None)
    assert "by leave-one-out residuals of these same rows." in (folder / "own.html").read_text(encoding="utf-8")
    new = json.loads(run("train.csv", "train.csv", *asked, "--json").stdout)
    assert new["intervals"] == intervals
    assert new["coverage"] > 0.5
    assert "% inside their intervals." in run("train.csv", "train.csv", *asked).stdout


def test_columns_of_words_can_be_left_out_and_new_rows_must_have_the_features(folder):
    assert run("words.csv", "--target", "y", "--only-numeric").exit_code == 0
    FRAME[["a"]].to_csv("less.csv", index=False)
    result = run("train.csv", "less.csv", "--target", "y")
    assert "less.csv lacks column 'b' that train has." in result.stderr
