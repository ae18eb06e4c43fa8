"""A hint where rows that follow each other are alike: in time series, never in independent rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from muhat.__main__ import command_line
from muhat.cli._row_order import Autocorrelation

HINT = "rows that follow each other are alike in "
FEW = ["--permutations", "99"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def autoregression(rng, n, shift=0.0):
    """Two columns, each 0.9 of its value one row before and noise."""
    rows = np.zeros((n, 2))
    for t in range(1, n):
        rows[t] = 0.9 * rows[t - 1] + rng.normal(size=2)
    return pd.DataFrame(rows + shift, columns=["u", "v"])


def said(*arguments):
    result = CliRunner().invoke(command_line(), [*arguments])
    assert result.exit_code == 0, result.stderr
    return result.stderr


def test_it_is_spearmans_correlation_of_neighbours():
    rows = autoregression(np.random.default_rng(0), 50).to_numpy()
    found = Autocorrelation.from_samples([rows], ["u", "v"])
    values = [spearmanr(column[:-1], column[1:])[0] for column in rows.T]
    assert found.is_clear
    assert found.value == pytest.approx(max(values), abs=0.01)
    assert found.column == ["u", "v"][int(np.argmax(values))]


@pytest.mark.parametrize("law", ["normal", "cauchy", "coins", "weights"])
def test_independent_rows_do_not_cause_it(law):
    rng = np.random.default_rng(1)
    for n in (5, 30, 200, 2000):
        size = n, 500
        draws = {
            "normal": rng.normal(size=size),
            "cauchy": rng.standard_cauchy(size=size),
            "coins": (rng.random(size=size) < 0.1).astype(float),
            "weights": rng.poisson(1.0, size=size).astype(float),
        }
        assert not Autocorrelation.from_samples([draws[law]], range(500)).is_clear


def test_files_sorted_by_the_group_do_not_cause_it():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["u", "v"])
    frame["g"] = np.repeat(["a", "b"], 100)
    frame.loc[frame["g"] == "b", "u"] += 3
    frame.to_csv("sorted.csv", index=False)
    for command in ("test", "groups"):
        assert said(command, "sorted.csv", "--by", "g", *FEW) == ""


def test_a_dependence_on_independent_rows_does_not_cause_it():
    rng = np.random.default_rng(3)
    x = np.sort(rng.normal(size=200))
    pd.DataFrame({"x": rng.permutation(x), "y": 0.0}).assign(y=lambda each: each.x**2).to_csv(
        "i.csv", index=False
    )
    assert said("independence", "i.csv", "--x", "x", "--y", "y", *FEW) == ""
    # sorted by x, independent of y: neighbours are alike in x alone, which does no harm
    pd.DataFrame({"x": x, "y": rng.normal(size=200)}).to_csv("s.csv", index=False)
    assert said("independence", "s.csv", "--x", "x", "--y", "y", *FEW) == ""


def test_every_test_says_it_of_time_series():
    rng = np.random.default_rng(4)
    one, other = autoregression(rng, 200), autoregression(rng, 200, shift=5)
    one.to_csv("one.csv", index=False)
    other.to_csv("other.csv", index=False)
    pd.concat([one, other]).to_csv("both.csv", index=False)
    blocks = "--block-length ROWS permutes blocks of rows."
    assert said("test", "one.csv", "other.csv", *FEW).endswith(blocks + "\n")
    assert said("drift", "one.csv", "other.csv").endswith(blocks + "\n")
    assert "--clusters COLUMN" in said("groups", "one.csv", "other.csv", *FEW)
    assert HINT in said("independence", "both.csv", "--x", "u", "--y", "v", *FEW)
    assert said("test", "one.csv", "other.csv", "--block-length", "20", *FEW) == ""
    assert said("drift", "one.csv", "other.csv", "--block-length", "20") == ""


def test_nothing_is_said_where_no_difference_is_found():
    autoregression(np.random.default_rng(5), 200).to_csv("one.csv", index=False)
    pd.read_csv("one.csv").sample(frac=1, random_state=0).to_csv("other.csv", index=False)
    assert HINT not in said("test", "one.csv", "other.csv", *FEW)
