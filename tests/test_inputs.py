"""Categories, missing values and decimal commas in every command, and notes on them."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from muhat import load, open_batches, read_table
from muhat.__main__ import command_line
from muhat._files import FileError
from muhat.data import _text

RNG = np.random.default_rng(5)
N = 60
CITIES = np.array(["Zürich", "Bern", "Genf"])[RNG.integers(0, 3, N)]
AGE, INCOME = RNG.normal(40, 9, N).round(2), RNG.normal(5e4, 9e3, N).round(2)
MEMBER = RNG.random(N) < 0.5
FRAME = pd.DataFrame({"age": AGE, "city": CITIES, "member": MEMBER, "income": INCOME})
FRAME["y"] = np.where(CITIES == "Bern", 3.0, 0.0) + 0.1 * AGE + 0.01 * RNG.normal(size=N)
ENCODED = np.column_stack(
    [AGE, MEMBER, INCOME, FRAME["y"], *(name == CITIES for name in ("Bern", "Genf", "Zürich"))]
)
NAMES = ("age", "member", "income", "y", "city = Bern", "city = Genf", "city = Zürich")
FEW = ["--permutations", 99]


def as_dictionary(path):
    FRAME.astype({"city": "category"}).to_parquet(path, index=False)
    assert pyarrow.types.is_dictionary(parquet.read_schema(path).field("city").type)


def as_enum(path):
    kind = pl.Enum(["Bern", "Genf", "Zürich"])
    pl.DataFrame(FRAME.to_dict("list")).with_columns(pl.col("city").cast(kind)).write_parquet(path)


WRITTEN = {
    "text.csv": lambda path: FRAME.to_csv(path, index=False),
    "text.parquet": lambda path: FRAME.to_parquet(path, index=False),
    "category.parquet": as_dictionary,
    "enum.parquet": as_enum,
    "category.feather": lambda path: FRAME.astype({"city": "category"}).to_feather(path),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def run(*arguments):
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments])


def succeeded(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.parametrize("name", WRITTEN)
def test_categories_become_indicators_and_booleans_numbers(name):
    WRITTEN[name](name)
    table = read_table(name, one_hot=True)
    assert table.feature_names == NAMES
    np.testing.assert_array_equal(table.data, ENCODED)
    batches = open_batches(name, rows=7, one_hot=True)
    assert batches.categories == {"city": ["Bern", "Genf", "Zürich"]}
    np.testing.assert_array_equal(np.concatenate(list(batches)), ENCODED)
    with pytest.raises(
        FileError, match=r"column 'city' must be numeric, got .* make indicators .* one_hot=True"
    ):
        read_table(name)


def test_columns_of_dates_are_left_out_as_dates():
    frame = FRAME[["age"]].assign(
        ts=pd.date_range("2024-01-01", periods=N, freq="h"), city=list(CITIES[:1]) * N
    )
    frame.to_parquet("dated.parquet")
    said = f"Left out: city (not numbers: {str(CITIES[0])!r}), ts (dates)."
    assert read_table("dated.parquet", only_numeric=True).notes == (f"dated.parquet: {said}",)
    frame.drop(columns="city").to_parquet("dated.parquet")
    notes = read_table("dated.parquet", only_numeric=True).notes
    assert notes == ("dated.parquet: Left out: ts (dates).",)


ALIKE = "'Yes' and 'yes' of column ok are different values; they differ only in upper and lower"


def test_values_that_differ_in_case_only_are_named():
    one = FRAME[["age"]].assign(ok=["yes", "no"] * (N // 2))
    other = one.assign(ok=["Yes", "no"] * (N // 2))
    one.to_csv("one.csv", index=False)
    other.to_csv("other.csv", index=False)
    both = pd.concat([one.assign(g="a"), other.assign(g="b")])
    both.to_csv("both.csv", index=False)
    for arguments in (
        ["test", "one.csv", "other.csv"],
        ["groups", "one.csv", "other.csv"],
        ["test", "both.csv", "--by", "g"],
        ["groups", "both.csv", "--by", "g"],
        ["independence", "both.csv", "--x", "ok", "--y", "age"],
    ):
        found = json.loads(succeeded(*arguments, "--one-hot", "--json", *FEW).stdout)
        assert found["verdict"].endswith(f"{ALIKE} case."), arguments
    found = json.loads(succeeded("drift", "one.csv", "other.csv", "--one-hot", "--json").stdout)
    assert "'yes' and 'Yes' of column ok are different values" in found["verdict"]
    assert f"{ALIKE} case." in read_table("both.csv", one_hot=True, drop=["g"]).notes[0]
    alike = succeeded("test", "one.csv", "one.csv", "--one-hot", *FEW)
    assert "different values" not in alike.stdout + alike.stderr


def commands(file):
    """Every command on a file with a column of text, in which rows may be missing."""
    return {
        "test": ["test", file, "--by", "member", *FEW],
        "two files": ["test", file, file, *FEW],
        "independence": ["independence", file, "--x", "city,age", "--y", "y", *FEW],
        "drift": ["drift", file, file],
        "predict": ["predict", file, "--target", "y"],
        "predict new": ["predict", file, file, "--target", "y"],
        "compare": ["compare", file, "--filter", "f-kmse"],
    }


@pytest.mark.parametrize("command", commands("x"))
def test_every_command_takes_categories_missing_values_and_decimal_commas(command):
    gaps = FRAME.astype({"city": "category"})
    gaps.loc[[3, 8], "age"] = np.nan
    gaps.loc[8, "city"] = None
    gaps.to_parquet("gaps.parquet", index=False)
    gaps.to_csv("comma.csv", index=False, sep=";", decimal=",")
    found = []
    for file, options in (("gaps.parquet", []), ("comma.csv", ["--decimal", ","])):
        arguments = commands(file)[command]
        result = succeeded(*arguments, "--one-hot", "--missing", "drop", "--json", *options)
        assert (
            f"muhat: {file}: Dropped 2 of 60 rows with missing values (age 2, city 1).\n"
            in result.stderr
        )
        found.append(
            {
                k: v
                for k, v in json.loads(result.stdout.replace(file, "the file")).items()
                if k not in ("data", "python", "samples", "shown", "warnings")
            }
        )
        refused = run(*arguments, "--one-hot", *options)
        assert refused.exit_code == 2
        assert "drop these rows with --missing drop, or fill them in." in refused.stderr
    if command not in ("drift", "predict new", "two files"):  # which name the files
        assert found[0] == found[1]
    without = run(*commands("comma.csv")[command], "--one-hot", "--missing", "drop")
    assert without.exit_code == 2 or "age" in without.stderr


def test_a_kept_model_encodes_new_rows_with_the_values_it_knows():
    FRAME.to_csv("old.csv", index=False)
    new = FRAME.iloc[:6].assign(city=["Basel", "Bern", "Bern", "Genf", "Basel", "Zürich"])
    new[["city", "y", "age", "member", "income"]].to_csv("new.csv", index=False)
    expected = pd.DataFrame(
        np.array(new[["age", "member", "income"]], float), columns=["age", "member", "income"]
    )
    for name in ("Bern", "Genf", "Zürich"):
        expected[f"city = {name}"] = (new["city"] == name).to_numpy(float)
    note = "muhat: new.csv: 2 rows with an unknown city ('Basel'): "
    note += "all indicators of this column are 0 in these rows.\n"
    succeeded("predict", "old.csv", "--target", "y", "--one-hot", "--save", "model.muhat")
    result = succeeded("apply", "model.muhat", "new.csv")
    assert note in result.stderr
    written = [float(line.partition(",")[0]) for line in result.stdout.split()[1:]]
    np.testing.assert_allclose(written, load("model.muhat").predict(expected), rtol=1e-12)
    at_once = json.loads(
        succeeded("predict", "old.csv", "new.csv", "--target", "y", "--one-hot", "--json").stdout
    )
    np.testing.assert_allclose(
        [row["prediction"] for row in at_once["predictions"]], written, rtol=1e-9
    )
    succeeded(
        "compare",
        "old.csv",
        "--drop",
        "y",
        "--one-hot",
        "--filter",
        "f-kmse",
        "--save",
        "mean.muhat",
        "--json",
    )
    scores = [
        float(line) for line in succeeded("apply", "mean.muhat", "new.csv").stdout.split()[1:]
    ]
    np.testing.assert_allclose(scores, load("mean.muhat").score_samples(expected), rtol=1e-12)


def test_a_foreign_file_is_said_to_lack_columns():
    FRAME.to_csv("old.csv", index=False)
    succeeded("predict", "old.csv", "--target", "y", "--one-hot", "--save", "model.muhat")
    Path("foreign.csv").write_text("bmi,age\n1.5,2\n2.5,3\n")
    refused = run("apply", "model.muhat", "foreign.csv").stderr
    assert (
        refused
        == "muhat: foreign.csv lacks column 'member' (and 4 more) that the model was trained on.\n"
    )
    FRAME.assign(age="old").to_csv("words.csv", index=False)
    line = run("apply", "model.muhat", "words.csv").stderr
    assert "column 'age' must be numeric, got 'old' in line 2; write numbers" in line


def test_a_second_file_is_read_with_the_indicators_of_the_first():
    first = pd.DataFrame({"city": ["Bern", "Genf"], "age": [1.5, 2.5]})
    first.to_csv("first.csv", index=False)
    first.assign(city=["Genf", "Basel"]).to_parquet("second.parquet", index=False)
    names = read_table("first.csv", one_hot=True).feature_names
    assert names == ("age", "city = Bern", "city = Genf")
    second = read_table("second.parquet", columns=names[::-1], one_hot=True)
    assert second.feature_names == names[::-1]
    assert second.data.tolist() == [[1, 0, 1.5], [0, 0, 2.5]]
    assert second.notes == (
        "second.parquet: 1 row with an unknown city ('Basel'): all indicators of this column are "
        "0 in these rows.",
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("size", [None, 200])
def test_dropping_rows_is_what_pandas_does(monkeypatch, ending, size):
    frame = FRAME.copy()
    rows, columns = np.nonzero(RNG.random(frame.shape) < 0.1)
    for row, column in zip(rows, columns, strict=True):
        if column != 2:
            frame.iloc[row, column] = np.nan if column != 1 else None
    path = f"gaps.{ending}"
    getattr(frame, f"to_{ending}")(path, index=False)
    if size:
        monkeypatch.setattr(_text, "CHUNK_CHARACTERS", size)
    kept = frame.dropna()
    batches = open_batches(path, one_hot=True, missing="drop", rows=7)
    table = batches.read()
    np.testing.assert_array_equal(
        table.data[:, :4], kept[["age", "member", "income", "y"]].to_numpy(float)
    )
    np.testing.assert_array_equal(np.concatenate(list(batches)), table.data)
    assert batches.words("city") == kept["city"].tolist()
    assert batches.n == len(kept)
    np.testing.assert_array_equal(batches.dropped, frame.index.difference(kept.index))
    counts = frame.isna().sum()
    (note,) = table.notes
    assert note.startswith(
        f"{path}: Dropped {len(frame) - len(kept)} of 60 rows with missing values ("
    )
    assert all(f"{name} {count}" in note for name, count in counts.items() if count)


def test_infinite_values_are_not_dropped_and_all_rows_missing_is_refused():
    Path("inf.csv").write_text("a,b\n1,2\n,3\ninf,4\n")
    with pytest.raises(
        FileError, match=r"column 'a' must have no infinite values, got one in line 4; replace"
    ):
        read_table("inf.csv", missing="drop")
    Path("gone.csv").write_text("a,b\n1,\n,3\n")
    with pytest.raises(FileError, match="only rows with missing values"):
        read_table("gone.csv", missing="drop")


def test_rows_of_a_test_have_the_numbers_of_the_file_without_those_dropped():
    frame = FRAME[["age", "income"]].assign(group=["a", "b"] * 30)
    frame.loc[[0, 7], "age"] = np.nan
    frame.loc[11, "group"] = None
    frame.to_csv("both.csv", index=False)
    found = json.loads(
        succeeded("test", "both.csv", "--by", "group", "--missing", "drop", "--json", *FEW).stdout
    )
    assert found["samples"] == ["b", "a"]  # in the order of the rows that are tested
    assert (found["n"], found["m"]) == (28, 29)
    assert set(frame["group"][np.array(found["rows_x"]) - 1]) == {"b"}
    assert set(frame["group"][np.array(found["rows_y"]) - 1]) == {"a"}
    assert not {1, 8, 12} & {*found["rows_x"], *found["rows_y"]}


def test_decimal_commas_are_read_as_pandas_does_and_offered_where_they_are_seen():
    FRAME[["age", "income"]].to_csv("comma.csv", sep=";", decimal=",", index=False)
    table = read_table("comma.csv", decimal=",")
    np.testing.assert_array_equal(table.data, FRAME[["age", "income"]])
    refused = run("compare", "comma.csv").stderr
    first = f"{AGE[0]}".replace(".", ",")
    assert refused == (
        f"muhat: comma.csv: column 'age' has decimal commas, as {first!r} in line 2; "
        "use --decimal , or convert them.\n"
    )
    FRAME[["age", "city"]].assign(n=range(N)).to_csv("some.csv", sep=";", decimal=",", index=False)
    left_out = read_table("some.csv", only_numeric=True, drop=["n"], decimal=",")
    assert left_out.notes == (f"some.csv: Left out: city (not numbers: {str(CITIES[0])!r}).",)
    FRAME[["age", "income"]].assign(n=RNG.normal(size=N).round()).to_csv(
        "m.csv", sep=";", decimal=",", index=False
    )
    Path("m.csv").write_text(Path("m.csv").read_text().replace(",0\n", "\n"))
    result = succeeded("compare", "m.csv", "--only-numeric", "--filter", "f-kmse", "--json")
    assert (
        f"muhat: m.csv: Left out: age, income (not numbers: {first!r}). "
        "Use --decimal , if age and income have decimal commas.\n"
    ) in result.stderr


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a;b;c\n1;1,5;x\n2;;y\n", " Use decimal=',' if b has decimal commas."),
        ("a;b\n1.5;1,5\n2;2,5\n", ""),  # a would then be no number
        ("a;b\n1;1,500\n2;2,500\n", ""),  # may be thousands
        ("a;b\n1;1,5\n2;low\n", ""),
    ],
)
def test_columns_left_out_for_their_decimal_commas_are_named(text, advice):
    Path("left.csv").write_text(text)
    [note] = read_table("left.csv", only_numeric=True).notes
    assert note.endswith("')." + advice)


def test_indicators_of_decimal_commas_are_warned_of_with_the_option_that_reads_numbers():
    Path("prices.csv").write_text("price;n;kind\n1,5;3;a\n2,25;4;b\n1,5;6;a\n")
    advice = "price becomes indicators of values. Use decimal=',' if price has decimal commas."
    with pytest.warns(UserWarning, match=re.escape(advice)):
        table = read_table("prices.csv", one_hot=True)
    assert "price = 1,5" in table.feature_names
    with warnings.catch_warnings(action="error"):
        read_table("prices.csv", one_hot=True, decimal=",")
        read_table("prices.csv", one_hot=True, drop=["price"])
    lines = [f"{number},5;{number % 3}" for number in range(30)]
    Path("prices.csv").write_text("\n".join(["price;n", *lines]))
    with pytest.raises(FileError) as caught:
        read_table("prices.csv", one_hot=True)
    assert str(caught.value).endswith(
        "got more in 'price'; use decimal=',' if it has decimal commas, "
        "or leave it out with drop=['price']."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "a;b\n1,5;2.5\n3,5;4\n",
            "column 'b' has points, as '2.5' in line 2; remove them if they are thousands "
            "separators, or leave out decimal=',' if they are decimal points.",
        ),
        (
            "a;b\n1.000,5;2\n3,5;4\n",
            "column 'a' has thousands separators, as '1.000,5' in line 2; remove them.",
        ),
        (
            "a;b\n1.000.000;2\n3,5;4\n",
            "column 'a' has thousands separators, as '1.000.000' in line 2; remove them.",
        ),
        ("a;b\n1,5;2.x\n3,5;4\n", "column 'b' must be numeric, got '2.x' in line 2"),
    ],
)
def test_points_beside_decimal_commas_are_refused(text, sentence):
    Path("mixed.csv").write_text(text)
    with pytest.raises(FileError, match=sentence):
        read_table("mixed.csv", decimal=",")


@pytest.mark.parametrize("separator", [None, ","])
def test_commas_can_separate_numbers_with_decimal_commas_in_quotes(separator):
    Path("quoted.csv").write_text('a,b,"c"\n"1,5",2,"-0,25"\n"3,5","4",7\n')
    table = read_table("quoted.csv", decimal=",", separator=separator)
    assert table.feature_names == ("a", "b", "c")
    assert table.data.tolist() == [[1.5, 2, -0.25], [3.5, 4, 7]]


def test_a_comma_separates_nothing_where_other_characters_do():
    Path("one.csv").write_text("a\n1,5\n2,5\n")
    Path("blanks.csv").write_text('a b\n"1,5" "2,5"\n"3,5" "4,5"\n')
    assert read_table("one.csv", decimal=",").data.tolist() == [[1.5], [2.5]]
    assert read_table("blanks.csv", decimal=",").data.tolist() == [[1.5, 2.5], [3.5, 4.5]]


def test_options_of_text_files_and_their_values_are_checked():
    FRAME.to_parquet("f.parquet")
    FRAME.to_csv("f.csv")
    with pytest.raises(FileError, match="decimal applies only to text files"):
        read_table("f.parquet", decimal=",")
    with pytest.raises(
        FileError, match="separator and decimal must be different characters, unless"
    ):
        read_table("f.csv", decimal=",", separator=",")
    with pytest.raises(ValueError, match="missing must be 'error' or 'drop', got 'mean'"):
        read_table("f.csv", missing="mean")
    with pytest.raises(ValueError, match=r"decimal must be '.' or ',', got ';'"):
        read_table("f.csv", decimal=";")


def test_a_label_is_warned_of_once_and_constant_columns_are():
    frame = FRAME[["age", "income"]].assign(target=[0, 1] * 30, same=2.5)
    for name in ("one.csv", "two.csv", "three.csv"):
        frame.to_csv(name, index=False)
    lines = succeeded("drift", "one.csv", "two.csv", "three.csv").stderr.splitlines()
    label = "column 'target' looks like a class label; "
    label += "exclude it with --drop target if it is not a feature."
    assert lines.count(f"muhat: warning: {label}") == 1
    assert (
        "muhat: warning: column 'same' is constant: the same value in every row of a file." in lines
    )
    assert (
        "class label"
        not in succeeded("independence", "one.csv", "--x=age", "--y=target", *FEW).stderr
    )
    assert "class label" not in succeeded("predict", "one.csv", "--target", "target").stderr


def test_names_that_two_columns_have_are_numbered_with_a_warning():
    Path("twice.csv").write_text("a,a,a (2),b\n1,2,3,4\n5,6,7,9\n")
    with pytest.warns(
        UserWarning, match="two columns are named 'a'; the later one is called 'a \\(3\\)' here"
    ):
        table = read_table("twice.csv", drop=["b"])
    assert table.feature_names == ("a", "a (3)", "a (2)")
    np.testing.assert_array_equal(table.data, [[1, 2, 3], [5, 6, 7]])
    twice = pyarrow.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"])
    parquet.write_table(twice, "twice.parquet")
    with pytest.raises(FileError, match="all columns must have different names, got 'a' twice"):
        read_table("twice.parquet")


@pytest.mark.parametrize("command", ["test", "groups", "drift"])
def test_a_column_that_is_constant_in_several_files_is_warned_of_once(command):
    frame = FRAME[["age", "income"]].assign(same=2.5)
    frame[:30].to_csv("one.csv", index=False)
    frame[30:].to_csv("two.csv", index=False)
    lines = succeeded(command, "one.csv", "two.csv").stderr.splitlines()
    told = "muhat: warning: column 'same' is constant: the same value in every row of a file."
    assert [line for line in lines if "constant" in line] == [told]


def test_a_file_of_decimal_commas_alone_is_not_said_to_have_no_numbers_without_advice():
    FRAME[["age", "income"]].to_csv("de.csv", sep=";", decimal=",", index=False)
    result = run("compare", "de.csv", "--only-numeric")
    assert result.exit_code == 2
    assert "use --decimal , if age and income have decimal commas" in result.stderr


def test_groups_in_two_files_of_equal_rows_are_said_to_be_copies():
    for name, rows in (("one.csv", FRAME[:20]), ("two.csv", FRAME[20:]), ("copy.csv", FRAME[:20])):
        rows[["age", "income"]].to_csv(name, index=False)
    told = succeeded("groups", "one.csv", "two.csv", "copy.csv").stderr.splitlines()
    assert told == ["muhat: copy.csv has the same rows as one.csv."]


@pytest.mark.parametrize("option", ["--alpha", "--fail-below"])
def test_a_level_above_one_is_said_of_the_option_and_not_of_the_file(option):
    FRAME[["age"]].to_csv("one.csv", index=False)
    result = run("drift", "one.csv", "one.csv", option, 5)
    assert result.exit_code == 2
    told = f"muhat: {option}: a level between 0 and 1 is needed, got 5.0."
    assert told in result.stderr


@pytest.mark.parametrize("column", ["age", "city"])
def test_a_column_of_the_model_cannot_be_dropped(column):
    FRAME.to_csv("all.csv", index=False)
    succeeded("predict", "all.csv", "--target", "y", "--one-hot", "--save", "m.muhat")
    result = run("apply", "m.muhat", "all.csv", "--drop", column)
    assert result.exit_code == 2
    told = f"--drop: columns that the model does not need can be dropped, got '{column}'"
    assert told in result.stderr
    succeeded("apply", "m.muhat", "all.csv", "--drop", "y")
