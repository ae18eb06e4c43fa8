"""``muhat compare --save`` and ``muhat apply``: the best estimate of a file scores other rows."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import muhat
from muhat import ConditionalMean, KernelMean, MatchedMixture, StackedMean, TwoSampleTest
from muhat.__main__ import command_line

RNG = np.random.default_rng(0)
OLD = pd.DataFrame(RNG.normal(size=(40, 3)) * [1, 5, 9], columns=["a", "<b>", "γ"])
NEW = pd.DataFrame(RNG.normal(size=(9, 3)) * [1, 5, 9], columns=["a", "<b>", "γ"])


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """The new rows in another order of columns, beside a column that the model does not know."""
    monkeypatch.chdir(tmp_path)
    OLD.to_csv("old.csv", index=False)
    OLD.to_parquet("old.parquet", index=False)
    NEW[["γ", "a", "<b>"]].assign(name="x").to_csv("new.csv", index=False)


BOOLEANS = {"true": 1, "false": 0}


def run(*arguments):
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])


def applied(*arguments):
    result = run("apply", *arguments)
    assert result.exit_code == 0, result.stderr
    header, *lines = csv.reader(result.stdout.splitlines())
    as_numbers = [[float(BOOLEANS.get(each, each)) for each in line] for line in lines]
    return pd.DataFrame(as_numbers, columns=header)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ([], StackedMean),
        (["--filter", "f-kmse"], KernelMean),
        (["--filter", "f-kmse", "--no-standardize"], KernelMean),
        (["--filter", "f-kmse", "--gram", "nystrom", "--features", 9], KernelMean),
    ],
)
def test_the_winner_of_a_comparison_scores_new_rows(options, kind):
    if kind is StackedMean:  # which wins clearly with this kernel
        options = ["--bandwidth", 1]
    result = run("compare", "old.csv", "--save", "model.muhat", "--json", *options)
    assert result.exit_code == 0, result.stderr
    model = muhat.load("model.muhat")
    mean = model[-1] if hasattr(model, "steps") else model
    assert type(mean) is kind
    if kind is KernelMean:
        best = next(
            row for row in json.loads(result.stdout)["estimators"] if row["name"] == "f-kmse"
        )
        assert mean.choice_.parameter == pytest.approx(best["parameter"], rel=1e-6)
    assert applied("model.muhat", "new.csv")["score"].tolist() == model.score_samples(NEW).tolist()


def test_a_file_in_batches_is_kept_as_one_in_memory(monkeypatch):
    options = ["--filter", "f-kmse", "--gram", "nystrom", "--features", 9, "--json"]
    assert run("compare", "old.csv", "--save", "at-once.muhat", *options).exit_code == 0
    assert run("compare", "old.parquet", "--save", "in-batches.muhat", *options).exit_code == 0
    one, other = (
        applied(name, "new.csv")["score"] for name in ("at-once.muhat", "in-batches.muhat")
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_conditional_mean_predicts_with_intervals_and_quantiles():
    model = ConditionalMean().fit(OLD[["a", "<b>"]], OLD["γ"])
    muhat.save(model, "model.muhat")
    found = applied("model.muhat", "new.csv", "--interval", 0.8, "--quantiles", "0.25,0.5")
    x = NEW[["a", "<b>"]]
    assert found["prediction"].tolist() == model.predict(x).tolist()
    assert found[["lower", "upper"]].to_numpy().tolist() == model.predict_interval(x, 0.8).tolist()
    assert (
        found[["q0.25", "q0.5"]].to_numpy().tolist()
        == model.predict_quantiles(x, [0.25, 0.5]).tolist()
    )


def test_a_regression_has_the_intervals_of_predict_unless_others_or_none_are_asked_for():
    model = ConditionalMean().fit(OLD[["a", "<b>"]], OLD["γ"])
    muhat.save(model, "model.muhat")
    found = applied("model.muhat", "new.csv")
    ends = model.predict_interval(NEW[["a", "<b>"]], 0.9)
    assert found[["lower", "upper"]].to_numpy().tolist() == ends.tolist()
    far = "far_from_training"
    assert list(applied("model.muhat", "new.csv", "--interval", 0)) == ["prediction", far]
    of_median = applied("model.muhat", "new.csv", "--quantiles", 0.5)
    assert list(of_median) == ["prediction", "q0.5", far]
    muhat.save(ConditionalMean().fit(OLD[["a"]][:9], OLD["γ"][:9]), "few.muhat")  # too few for 90 %
    assert list(applied("few.muhat", "new.csv")) == ["prediction", far]


def test_rows_far_from_the_training_rows_are_counted_and_marked():
    muhat.save(ConditionalMean().fit(OLD[["a", "<b>"]], OLD["γ"]), "model.muhat")
    assert "far from" not in run("apply", "model.muhat", "new.csv").stderr
    NEW.assign(a=[0.0] * 7 + [40.0] * 2).to_csv("far.csv", index=False)
    warning = run("apply", "model.muhat", "far.csv").stderr
    assert "2 of 9 rows of far.csv lie far from all training rows" in warning
    is_far = [False] * 7 + [True] * 2
    assert applied("model.muhat", "far.csv")["far_from_training"].tolist() == is_far
    assert run("apply", "model.muhat", "far.csv").stdout.splitlines()[-1].endswith(",true")
    found = json.loads(run("apply", "model.muhat", "far.csv", "--json").stdout)
    assert found["far_from_training"] == is_far


@pytest.mark.parametrize("option", ["--standardize", "--no-standardize"])
def test_a_kept_prediction_finds_its_columns_by_their_names(option):
    assert (
        run("predict", "old.csv", "--target", "γ", option, "--save", "model.muhat").exit_code == 0
    )
    found = applied("model.muhat", "new.csv")
    assert (
        found["prediction"].tolist()
        == muhat.load("model.muhat").predict(NEW[["a", "<b>"]]).tolist()
    )
    NEW[["γ", "a"]].to_csv("less.csv", index=False)
    line = run("apply", "model.muhat", "less.csv").stderr
    assert "less.csv lacks column '<b>' that the model was trained on." in line
    NEW[["a", "<b>"]].to_csv("less.csv", index=False, header=False)
    assert run("apply", "model.muhat", "less.csv").stderr == (
        "muhat: less.csv lacks column 'a' (and 1 more) that the model was trained on; its first "
        "line looks like data, not names.\n"
    )
    NEW[["γ"]].to_csv("less.csv", index=False)
    assert (
        "less.csv lacks column 'a' (and 1 more) that"
        in run("apply", "model.muhat", "less.csv").stderr
    )


def test_several_outputs_have_a_column_each_and_json_holds_the_same():
    model = ConditionalMean(filter="f-kmse").fit(OLD[["a"]], OLD[["<b>", "γ"]])
    muhat.save(model, "model.muhat")
    found = applied("model.muhat", "new.csv")
    names = ["prediction", "lower", "upper"]
    of_outputs = [f"{name}_{output}" for name in names for output in (0, 1)]
    assert found.columns.tolist() == [*of_outputs, "far_from_training"]
    assert (
        run("apply", "model.muhat", "new.csv", "--out", "found.json").stdout
        == "Saved: found.json\n"
    )
    written = json.loads(Path("found.json").read_text())
    assert written == {"model": "ConditionalMean", **found.to_dict("list"), "warnings": []}


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (
            lambda: MatchedMixture(2, n_init=2, random_state=0).fit(OLD.to_numpy()),
            ["log_density", "component"],
        ),
        (lambda: KernelMean().fit(OLD.to_numpy()).embedding_, ["value"]),
        (lambda: TwoSampleTest(n_permutations=9).test(OLD.to_numpy(), NEW.to_numpy()), ["witness"]),
    ],
)
def test_other_models_say_what_they_can(model, columns):
    muhat.save(model(), "model.muhat")
    found = applied("model.muhat", "new.csv", "--drop", "name")
    assert found.columns.tolist() == columns
    assert len(found) == len(NEW)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (lambda: muhat.compare(OLD.to_numpy(), filters="f-kmse"), [], "got a Comparison."),
        (lambda: KernelMean().fit(OLD), ["--interval", 0.9], "a model of y given x is needed"),
        (lambda: KernelMean().fit(OLD), ["--interval", 0], "a model of y given x is needed"),
        (lambda: ConditionalMean().fit(OLD[["a"]], OLD["γ"]), ["--interval", 9], "between 0 and 1"),
        (lambda: KernelMean().fit(OLD.rename(columns={"a": "other"})), [], "'other'"),
        (lambda: KernelMean().fit(OLD), ["--out", "found.xlsx"], ".csv or .json is needed"),
        (
            lambda: ConditionalMean().fit(OLD[["a"]], OLD["γ"]),
            ["--quantiles", "many"],
            "numbers between 0 and 1",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused_in_one_sentence(model, options, words):
    muhat.save(model(), "model.muhat")
    result = run("apply", "model.muhat", "new.csv", "--drop", "name", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert words in line


def test_a_name_that_two_columns_have_is_numbered_or_refused_where_one_of_them_is_meant():
    muhat.save(KernelMean().fit(OLD[["a"]]), "model.muhat")
    Path("twice.csv").write_text(
        "a,a,γ\n" + "".join(f"{row},{row**2},{row**3}\n" for row in range(20))
    )  # 19 for an interval
    for arguments in (
        ["apply", "model.muhat", "twice.csv"],
        ["predict", "old.csv", "twice.csv", "--target", "γ", "--drop", "<b>"],
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "all columns must have different names, got 'a' twice" in result.stderr
    for arguments in (
        ["compare", "--save", "kept.muhat"],
        ["predict", "--target", "γ", "--save", "kept.muhat"],
    ):
        result = run(arguments[0], "twice.csv", *arguments[1:])
        assert result.exit_code == 0
        assert "two columns are named 'a'; the later one is called 'a (2)' here." in result.stderr
        assert run("apply", "kept.muhat", "twice.csv").exit_code == 0


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work():
    assert run("compare", "old.csv", "--save", "none/model.muhat").exit_code == 2
    assert run("apply", "old.csv", "new.csv").stderr.endswith("got another kind of file.\n")
