"""muhat predict: a table, JSON, a figure and files that say what the library says."""

import html
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from muhat import ConditionalMean, load
from muhat.__main__ import command_line
from muhat._python_lines import predict_lines
from muhat.conditional import LeftOutFit, evaluate
from muhat.conditional._evaluation import Evaluation
from muhat.filters import Iteration
from muhat.plots import figure_of_prediction

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"])
FRAME["y"] = np.sin(2 * FRAME["a"]) + 0.1 * FRAME["b"] + 0.1 * RNG.normal(size=60)
FEATURES = FRAME[["a", "b"]].to_numpy()
MODEL = ConditionalMean(bandwidth="median").fit(FEATURES, FRAME["y"])


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
    rows = found["predictions"]
    assert [row["row"] for row in rows] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal([row["prediction"] for row in rows], MODEL.predict(FEATURES[:5]))
    ends = MODEL.predict_interval(FEATURES[:5])
    np.testing.assert_array_equal([[row["lower"], row["upper"]] for row in rows], ends)
    assert found["coverage"] is None
    assert found["loo_r2"] == pytest.approx(MODEL.loo_score_)
    assert max(found["importance"], key=found["importance"].get) == "a"
    conformal = json.loads(
        run("train.csv", "new.csv", "--target", "y", "--json", "--intervals", "conformal").stdout
    )
    order = np.random.default_rng(0).permutation(60)
    calibrating, rest = order[:20], np.sort(order[20:])
    fitted = clone(MODEL).fit(
        FEATURES[rest], FRAME["y"].to_numpy()[rest]
    )  # the scaler sees no row that calibrates
    reach = np.sort(
        np.abs(FRAME["y"].to_numpy()[calibrating] - fitted.predict(FEATURES[calibrating]))
    )[18]
    middle = fitted.predict(FEATURES[:5])
    expected = np.column_stack([middle - reach, middle + reach])
    np.testing.assert_allclose(
        [[row["lower"], row["upper"]] for row in conformal["predictions"]], expected
    )


def test_without_new_rows_each_is_predicted_from_all_others_and_files_are_written(folder):
    result = run(
        *(
            "train.csv",
            "--target",
            "y",
            "--out",
            "figure.png",
            "--save-predictions",
            "all.csv",
            "--save",
            "model.muhat",
        )
    )
    assert result.exit_code == 0, result.output
    assert "train: 60 rows, 2 features, predicting 'y'" in result.stdout
    assert "… and 50 more" in result.stdout
    typical, rmse = (
        np.median(np.abs(MODEL.loo_residuals_)),
        np.sqrt(np.mean(MODEL.loo_residuals_**2)),
    )
    fit = f"R² {MODEL.loo_score_:.2f} on rows left out of the fit "
    fit += f"(60 rows; median absolute error {typical:.2g}, RMSE {rmse:.2g})."
    assert f"\ny can be predicted from a and b: {fit}\n" in result.stdout
    assert (
        f" filter, {'t' if isinstance(MODEL.filter_, Iteration) else 'λ'} = "
        in result.stdout.split(fit)[1]
    )
    assert (
        "each row from all others, with 90 % intervals from leave-one-out residuals, rows counted"
        in result.stdout
    )
    assert "inside" not in result.stdout
    for written in ("Figure: figure.png", "Predictions: all.csv", "Saved: model.muhat"):
        assert written in result.stdout
    assert (folder / "figure.png").stat().st_size > 10_000
    written = pd.read_csv("all.csv")
    np.testing.assert_allclose(written["prediction"], MODEL.loo_predictions_)
    np.testing.assert_allclose(written["y"], FRAME["y"])
    assert written["row"].tolist() == list(range(1, 61))
    inside = (written["lower"] <= written["y"]) & (written["y"] <= written["upper"])
    assert 0.87 <= inside.mean() < 0.97
    np.testing.assert_allclose(
        load("model.muhat").predict(FRAME[["a", "b"]]), MODEL.predict(FEATURES)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv"], "the column to predict is needed, got none"),
        (["train.csv", "--target", "z"], "train.csv has no column 'z'; its columns are a, b, y."),
        (
            ["new.csv", "train.csv", "--target", "y"],
            "new.csv has no column 'y'; its columns are b, a.",
        ),
        (
            ["words.csv", "--target", "kind"],
            "column 'kind' is text; --target must be a column of numbers.",
        ),
        (["words.csv", "--target", "kind", "--one-hot"], "column 'kind' is text; --target must be"),
        (["train.csv", "--target", "y", "--intervals", "bayes"], "'bayes'"),
        (
            ["train.csv", "--target", "y", "--out", "figure.txt"],
            "a file name ending in .png, .svg or .pdf is needed",
        ),
        (
            ["train.csv", "--target", "y", "--confidence", "90"],
            "confidence must be between 0 and 1, got 90.0; for 90 % give 0.9",
        ),
        (
            ["train.csv", "--target", "y", "--confidence", "0.99"],
            "needs at least 199 rows, got 60; use a confidence of 0.96 or less",
        ),
        (
            ["train.csv", "--target", "y", "--bandwidth", "wide"],
            "a positive number, 'median' or 'loo' is needed",
        ),
        (["words.csv", "--target", "y"], "kind"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(folder, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("intervals", ["residuals", "jackknife+", "conformal"])
def test_coverage_is_told_of_new_rows_only(folder, intervals):
    asked = ["--target", "y", "--intervals", intervals]
    own = json.loads(run("train.csv", *asked, "--json", "--report", "own.html").stdout)
    assert (own["intervals"], own["coverage"]) == ("leave-one-out residuals", None)
    assert "by leave-one-out residuals of these same rows." in (folder / "own.html").read_text(
        encoding="utf-8"
    )
    new = json.loads(run("train.csv", "train.csv", *asked, "--json").stdout)
    assert new["intervals"] == intervals
    assert new["coverage"] > 0.5
    said = " ".join(run("train.csv", "train.csv", *asked).stdout.split())
    assert "The 90 % intervals contain " in said
    assert " % of the true values of train." in said


def test_columns_of_words_can_be_left_out_and_new_rows_must_have_the_features(folder):
    assert run("words.csv", "--target", "y", "--only-numeric").exit_code == 0
    FRAME[["a"]].to_csv("less.csv", index=False)
    result = run("train.csv", "less.csv", "--target", "y")
    assert "less.csv lacks column 'b' that train has." in result.stderr


def elsewhere(n=60):
    """Rows whose column a lies elsewhere, where the model knows nothing."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal([4, 0], size=(n, 2)), columns=["a", "b"])
    return frame.assign(y=np.sin(2 * frame["a"]) + 3 * frame["a"])


def test_the_truth_of_new_rows_decides_the_verdict(folder):
    elsewhere().to_csv("far.csv", index=False)
    found = json.loads(
        run("train.csv", "far.csv", "--target", "y", "--json", "--report", "page.html").stdout
    )
    rows = f"far ({len(elsewhere())} rows)"
    worse = (
        f"The model predicts y far worse on {rows} than on training rows left out of the fit: R² −"
    )
    assert found["verdict"].startswith(worse)
    inside = " % of the true values of far."
    shift = "The new rows are distributed differently from the training rows (p ≤ 0.001), "
    shift += "most of all in a (higher in far)."
    assert inside in found["verdict"]
    assert found["verdict"].endswith(f" may be much too narrow. {shift}")
    assert (found["r2"], found["coverage"]) < (0, 0.5)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "The model predicts y far worse on far (" in page
    assert "R² on far" in page
    assert "R² on left-out rows" in page
    assert "y: predictions of far against true values" in page
    assert 'class="verdict bad"' in page
    rng = np.random.default_rng(2)
    fresh = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    fresh["y"] = np.sin(2 * fresh["a"]) + 0.1 * fresh["b"] + 0.1 * rng.normal(size=80)
    fresh.to_csv("fresh.csv", index=False)
    same = json.loads(
        run("train.csv", "fresh.csv", "--target", "y", "--json", "--report", "page.html").stdout
    )
    assert "far worse" not in same["verdict"]
    assert "distributed differently" not in same["verdict"]
    assert 'class="verdict bad"' not in (folder / "page.html").read_text(encoding="utf-8")


def test_errors_that_are_larger_by_chance_are_not_said_to_be_about_as_large():
    left_out = np.resize([1.0, -1.0], 250)
    one_outlier = np.append(np.resize([1.0, -1.0], 79), 12.0)
    found = Evaluation(one_outlier, left_out, np.abs(one_outlier) < 2, 0.9, 0.9, 0.95)
    assert found.standing == "unclear"
    said = found.sentence("rent", "new")
    assert said.startswith(
        "The model seems to predict rent worse on new (80 rows) than on training rows left out of "
        "the fit, but this may be chance: R² 0.90 against 0.95, RMSE 1.67 against 1."
    )


def test_a_useless_model_is_not_said_to_do_as_well_on_new_rows(folder):
    rng = np.random.default_rng(3)
    for name in ("old", "new"):
        noise = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "dose"])
        noise.to_csv(f"{name}.csv", index=False)
    found = json.loads(
        run("old.csv", "new.csv", "--target", "dose", "--json", "--report", "page.html").stdout
    )
    assert max(found["r2"], found["loo_r2"]) <= 0
    assert found["verdict"].startswith("The model cannot predict dose from age: R² is ")
    assert " on new (60 rows) and " in found["verdict"]
    assert 'class="verdict good"' not in (folder / "page.html").read_text(encoding="utf-8")


def test_new_rows_without_the_target_are_tested_for_drift(folder):
    elsewhere().drop(columns="y").to_csv("far.csv", index=False)
    result = run("train.csv", "far.csv", "--target", "y")
    shift = (
        "Caution: the rows of far are distributed differently from the training rows (p ≤ 0.001), "
    )
    shift += "most of all in a (higher in far)."
    assert f"{shift} Predictions and intervals may be wrong." in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "options", [[], ["--no-standardize"], ["--bandwidth", "0.7"], ["--bandwidth", "loo"]]
)
def test_the_lines_of_python_on_the_page_give_the_same_numbers(folder, options):
    found = json.loads(run("train.csv", "--target", "y", "--json", *options).stdout)
    run("train.csv", "--target", "y", "--report", "page.html", *options)
    given = (
        float(options[1]) if options[1:] == ["0.7"] else (options[1] if options[1:] else "median")
    )
    model = ConditionalMean(bandwidth=given, standardize="--no-standardize" not in options)
    lines = predict_lines("train.csv", "y", {}, model)
    assert html.escape(lines.splitlines()[-1], quote=False) in html.unescape(
        (folder / "page.html").read_text("utf-8")
    )
    names = {}
    exec(lines, names)
    assert names["model"].loo_predictions_.tolist() == [
        row["prediction"] for row in found["predictions"]
    ]


def test_copies_are_counted_in_words_and_on_the_page(folder):
    pd.concat([FRAME, FRAME.iloc[:8]]).to_csv("twice.csv", index=False)
    said = "8 of 68 rows are exact copies of other rows. Leave-one-out leaves out all copies"
    result = run("twice.csv", "--target", "y", "--report", "page.html")
    assert result.exit_code == 0, result.output
    assert said in result.stdout
    assert said in html.unescape((folder / "page.html").read_text(encoding="utf-8"))
    assert json.loads(run("twice.csv", "--target", "y", "--json").stdout)["n_copies"] == 8
    assert "copies" not in run("train.csv", "--target", "y").stdout


def test_features_that_do_not_help_are_said_not_to(folder):
    rng = np.random.default_rng(5)
    pd.DataFrame(rng.normal(size=(80, 3)), columns=["x1", "x2", "y"]).to_csv(
        "noise.csv", index=False
    )
    found = json.loads(run("noise.csv", "--target", "y", "--json", "--report", "page.html").stdout)
    score = f"{found['loo_r2']:.2f}".replace("-", "−")
    assert found["loo_r2"] < 0
    assert found["verdict"] == (
        "The model cannot predict y from x1 and x2: on rows left out of the fit, predictions are "
        f"no better than the mean (80 rows; R² {score})."
    )
    assert found["verdict"] in (folder / "page.html").read_text(encoding="utf-8")
    fit = LeftOutFit(0.031, 0.04, np.ones(30))
    assert fit.sentence("y", ["x"]) == (
        "It is not clear whether y can be predicted from x: "
        "R² 0.03, standard error 0.04, on rows left out of the fit (30 rows)."
    )


def test_a_target_of_two_values_is_named_and_one_of_text_is_to_be_recoded(folder):
    rng = np.random.default_rng(2)
    x = rng.normal(size=60)
    bought = (x + 0.5 * rng.normal(size=60) > 0).astype(int)
    pd.DataFrame({"x": x, "bought": bought}).to_csv("sales.csv", index=False)
    note = (
        "bought has only the values 0 and 1: read a prediction as an estimate of the probability "
        "of 1, and ignore prediction intervals, which can go beyond these values."
    )
    arguments = ("--target", "bought", "--json", "--report", "page.html")
    for files in (["sales.csv"], ["sales.csv", "sales.csv"]):
        assert note in json.loads(run(*files, *arguments).stdout)["verdict"]
        assert note in (folder / "page.html").read_text(encoding="utf-8")
    others = evaluate(ConditionalMean().fit(x[:, None], 2.0 - bought), target="kind").verdict()
    assert (
        "kind has only the values 1 and 2: read a prediction as an estimate of their mean" in others
    )
    assert "only the values" not in evaluate(MODEL).verdict()
    words = np.where(bought, "yes", "no")
    pd.DataFrame({"x": x, "bought": words}).to_csv("sales.csv", index=False)
    refused = " ".join(run("sales.csv", "--target", "bought").stderr.split())
    assert "If it has two values, such as yes and no, recode it as 0 and 1." in refused


def test_far_values_of_y_are_named_and_intervals_contain_their_predictions():
    rng = np.random.default_rng(61)
    x = rng.normal(size=(200, 1))
    y = 2 * x[:, 0] + 0.3 * rng.normal(size=200)
    assert "far from all others" not in evaluate(ConditionalMean().fit(x, y)).verdict()
    y[[5, 60, 100]] = 9999
    model = ConditionalMean().fit(x, y)
    said = evaluate(model, [[0.0], [1.0]]).verdict()
    assert "Caution: 3 of 200 values of y are far from all others (up to 9999) and make " in said
    for method in ("residuals", "jackknife+", "conformal"):
        lower, upper = model.predict_interval(x, method=method).T
        assert (lower <= model.predict(x)).all()
        assert (model.predict(x) <= upper).all()
    y[[5, 60]] = 0
    result = evaluate(ConditionalMean().fit(x, y))
    far = "1 of 200 values of y is far from all others (9999) and makes 100 % of its"
    assert far in result.verdict()
    assert far in result.to_html()


def test_an_r2_of_few_rows_is_said_to_be_perhaps_chance():
    may_be_chance = "This is from 5 rows only, so R² may be chance."
    assert LeftOutFit(0.75, 0.1, np.ones(5)).sentence("y", ["a", "b"]) == (
        "It is not clear whether y can be predicted from a and b: "
        f"R² 0.75, standard error 0.1, on rows left out of the fit (5 rows). {may_be_chance}"
    )
    clear = LeftOutFit(0.97, 0.02, np.ones(5)).sentence("y", ["a"])
    assert clear.startswith(
        "y can be predicted from a: R² 0.97 on rows left out of the fit (5 rows; "
    )
    assert clear.endswith(f". {may_be_chance}")
    assert "chance" not in LeftOutFit(-0.2, 0.1, np.ones(5)).sentence("y", ["a"])
    assert "chance" not in LeftOutFit(0.75, 0.1, np.ones(20)).sentence("y", ["a"])
    x = np.linspace(0, 3, 12)[:, None]
    new = evaluate(ConditionalMean().fit(x, x[:, 0]), x[:3] + 0.1, confidence=0.8)
    assert "(12 rows) R² is" in new.verdict()
    assert "This is from 12 rows only, so R² may be chance." in new.verdict()


def test_new_rows_without_truth_get_the_score_of_left_out_rows_and_no_word_on_drift(folder):
    found = json.loads(
        run("train.csv", "new.csv", "--target", "y", "--json", "--report", "page.html").stdout
    )
    sentence = (
        "y is predicted for 5 rows of new, with 90 % intervals. "
        f"On rows of train left out of the fit (60 rows) R² is {MODEL.loo_score_:.2f}."
    )
    assert found["verdict"] == sentence
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert sentence in page
    assert "No drift detected" not in page
    assert "x helps to predict y" in page


def test_the_figure_shows_new_rows(folder):
    def panels(X, y=None):
        given = {"names": ("train", "fresh"), "columns": ("a", "b")}
        return figure_of_prediction(evaluate(MODEL, X, y, **given)).axes

    truth = FRAME["y"].to_numpy()[:30]
    known = panels(FEATURES[:30], truth)
    assert len(known) == 3
    np.testing.assert_allclose(
        known[1].collections[0].get_offsets(),
        np.column_stack([MODEL.predict(FEATURES[:30]), truth]),
    )
    title = "y: predictions of fresh against true values (30 rows, R² "
    assert known[1].get_title("left").startswith(title)
    unknown = panels(FEATURES[:5])
    assert unknown[1].get_title("left") == "y: predictions of fresh (5 rows, 90 % intervals)"
    assert len(unknown[1].collections[0].get_segments()) == 5


def test_python_gives_the_result_of_the_command_in_one_call(folder):
    elsewhere().to_csv("far.csv", index=False)
    printed = json.loads(run("train.csv", "far.csv", "--target", "y", "--json").stdout)
    model = ConditionalMean().fit(FRAME[["a", "b"]], FRAME["y"])
    far = pd.read_csv("far.csv")
    result = evaluate(model, far[["a", "b"]], far["y"], names=("train", "far"))
    assert result.verdict() == printed["verdict"]
    assert result.to_dict() == {name: printed[name] for name in result.to_dict()}
    assert "Far worse on new rows" in result.to_html()
    own = evaluate(model)
    np.testing.assert_array_equal(own.predicted, model.loo_predictions_)
    assert (own.r2, own.coverage) == (model.loo_score_, None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (object(), "a ConditionalMean is needed"),
        (
            ConditionalMean(kernel="precomputed").fit(FEATURES @ FEATURES.T, FRAME["y"]),
            "fitted to rows in memory",
        ),
        (ConditionalMean().fit(FEATURES, FRAME[["y", "a"]]), "a model of one output is needed"),
    ],
    ids=["no model", "precomputed", "two outputs"],
)
def test_a_model_that_cannot_be_evaluated_raises(model, message):
    with pytest.raises(ValueError, match=message):
        evaluate(model)


def test_new_rows_far_from_all_training_rows_are_named(folder):
    assert "far from" not in run("train.csv", "new.csv", "--target", "y").stdout
    FRAME[["a", "b"]].iloc[:3].assign(a=[0.0, 50.0, 0.0]).to_csv("far.csv", index=False)
    written = ["--save-predictions", "p.csv"]
    found = json.loads(run("train.csv", "far.csv", "--target", "y", "--json", *written).stdout)
    assert pd.read_csv("p.csv")["far_from_training"].tolist() == [False, True, False]
    assert Path("p.csv").read_text().splitlines()[2].endswith(",true")
    assert (found["n_far"], found["far_rows"], found["n_outside_range"]) == (1, [2], 1)
    words = "1 of 3 rows of far lies far from all training rows (row 2, outside the range of a)"
    assert words in found["verdict"]
    FRAME[["a", "b"]].iloc[:1].assign(b=-50.0).to_csv("one.csv", index=False)
    result = run("train.csv", "one.csv", "--target", "y", "--report", "page.html")
    assert "The only row of one lies far from all training rows" in " ".join(result.stdout.split())
    page = (folder / "page.html").read_text()
    assert "Some new rows are far from all training rows" in page


def test_left_out_errors_that_are_alike_in_neighbouring_rows_are_named(folder):
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(120, 2)).cumsum(axis=0)
    pd.DataFrame(steps, columns=["x", "y"]).to_csv("series.csv", index=False)
    arguments = ["series.csv", "--target", "y", "--bandwidth", "3"]
    found = json.loads(run(*arguments, "--json").stdout)
    correlation = found["row_order"]["correlation"]
    sentence = (
        "Errors of neighbouring training rows are alike (rank correlation "
        f"{correlation:.2f}), as in a time series: if the training rows are in time order, R² and "
        "intervals may be far too optimistic for later rows."
    )
    assert correlation > 0.5
    assert sentence in found["verdict"]
    assert sentence in " ".join(run(*arguments, "--report", "page.html").stdout.split())
    assert sentence in html.unescape((folder / "page.html").read_text())
    in_python = ConditionalMean(bandwidth=3.0, standardize=True).fit(steps[:, :1], steps[:, 1])
    assert sentence in evaluate(in_python).verdict()


def test_left_out_errors_of_independent_rows_are_not_called_alike():
    rng = np.random.default_rng(0)
    for n in (30, 120):
        x = np.sort(rng.normal(size=(n, 1)), axis=0)
        y = x[:, 0] ** 2 + rng.normal(size=n)
        assert evaluate(ConditionalMean().fit(x, y)).row_order is None
        # copies are left out together: their errors are alike
        twice = ConditionalMean().fit(np.repeat(x, 2, axis=0), np.repeat(y, 2))
        assert evaluate(twice).row_order is None
