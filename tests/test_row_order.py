"""A caution where neighbouring rows are alike: in time series, not in independent rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from scipy.stats import spearmanr
from typer.testing import CliRunner

from muhat import DriftDetector, GroupTest, IndependenceTest, TwoSampleTest
from muhat.__main__ import command_line
from muhat.testing._row_order import RowOrder, groups_note, pairs_note, row_order_note

CAUTION = "Caution: neighbouring rows are alike"
MAY_BE_CHANCE = "If they depend on each other, as in a time series, this may be chance"
SORTED = "If independent rows were only sorted, p is right."
FEW = ["--permutations", "99"]
N_WARM_UP = 200


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def autoregression(rng, n, coefficient=0.9, columns=2):
    """Columns whose values are each some share of the value one row before, and noise."""
    noise = rng.normal(size=(n + N_WARM_UP, columns))
    return lfilter([1], [1, -coefficient], noise, axis=0)[N_WARM_UP:]


def as_frame(rows):
    return pd.DataFrame(rows, columns=["u", "v"])


def printed(*arguments):
    result = CliRunner().invoke(command_line(), [*arguments])
    assert result.exit_code == 0, result.stderr
    assert CAUTION not in result.stderr
    return " ".join(result.stdout.split())


def test_it_is_spearmans_correlation_of_neighbours():
    rows = autoregression(np.random.default_rng(0), 500)
    found = RowOrder.from_samples([rows], ["u", "v"])
    values = [spearmanr(column[:-1], column[1:])[0] for column in rows.T]
    assert found.correlation == pytest.approx(max(values), abs=0.005)
    assert found.column == ["u", "v"][int(np.argmax(values))]


def test_rows_of_different_samples_are_not_neighbours():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(3, 1)) + 10 * place for place in range(200)]
    assert RowOrder.from_samples(samples, ["u"]) is None
    assert RowOrder.from_samples([np.concatenate(samples)], ["u"]) is not None


def test_a_time_series_is_found_beside_many_independent_rows():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(5000, 2)), autoregression(rng, 100)]
    assert RowOrder.from_samples(samples, ["u", "v"]) is not None


@pytest.mark.parametrize(
    "law", ["normal", "cauchy", "coins", "rare", "weights", "mostly zero", "five values"]
)
def test_independent_rows_do_not_cause_it(law):
    """In 1 of 1,000 cases at most; here none of 500 for each size."""
    rng = np.random.default_rng(1)
    for n in (5, 20, 30, 100, 200, 2000):
        size = n, 500
        draws = {
            "normal": rng.normal(size=size),
            "cauchy": rng.standard_cauchy(size=size),
            "coins": (rng.random(size=size) < 0.5).astype(float),
            "rare": (rng.random(size=size) < 0.02).astype(float),
            "weights": rng.poisson(1.0, size=size).astype(float),
            "mostly zero": np.where(rng.random(size=size) < 0.7, 0.0, rng.normal(size=size)),
            "five values": rng.integers(0, 5, size=size).astype(float),
        }
        assert RowOrder.from_samples([draws[law]], range(500)) is None


def test_runs_of_a_rare_value_are_found():
    rows = np.zeros((1000, 1))
    for start in (50, 300, 700):
        rows[start : start + 12] = 1.0
    assert RowOrder.from_samples([rows], ["u"]).correlation > 0.8


@pytest.mark.parametrize("coefficient", [0.5, 0.9])
def test_blocks_that_are_advised_have_five_autocorrelation_times(coefficient):
    rng = np.random.default_rng(0)
    found = RowOrder.from_samples([autoregression(rng, 20_000, coefficient)], ["u", "v"])
    time = (1 + coefficient) / (1 - coefficient)
    assert found.block_length == pytest.approx(5 * time, rel=0.25)
    assert found.distance == pytest.approx(time, rel=0.25, abs=1)


def test_short_blocks_are_called_short_and_long_ones_are_not():
    rng = np.random.default_rng(0)
    for _ in range(20):
        strong = RowOrder.from_samples([autoregression(rng, 1000, 0.95)], ["u", "v"])
        assert strong.is_short(10)
        assert not strong.is_short(strong.block_length)
        weak = RowOrder.from_samples([autoregression(rng, 1000, 0.5)], ["u", "v"])
        assert not weak.is_short(50)


def test_the_verdict_on_two_samples_says_it_and_what_to_do():
    rows = autoregression(np.random.default_rng(0), 4000, 0.8)
    result = TwoSampleTest(n_permutations=99).test(rows[:2000], rows[2000:] + 1)
    length = result.row_order.block_length
    assert result.verdict().endswith(
        f" {CAUTION} (rank correlation {result.row_order.correlation:.2f} in "
        f"{result.row_order.column}). {MAY_BE_CHANCE}: "
        f"use block_length={length}. {SORTED}"
    )
    assert result.to_dict()["row_order"]["block_length"] == length
    with_blocks = TwoSampleTest(n_permutations=99, block_length=length)
    verdict = with_blocks.test(rows[:2000], rows[2000:] + 1).verdict()
    assert "differ (approximate" in verdict
    assert "alike" not in verdict


def test_the_verdict_says_that_blocks_are_too_short():
    rows = autoregression(np.random.default_rng(0), 4000, 0.95)
    test = TwoSampleTest(n_permutations=99, block_length=10)
    result = test.test(rows[:2000], rows[2000:] + 1)
    assert (
        "Caution: blocks of 10 rows are too short, because neighbouring rows are alike (rank "
        in result.verdict()
    )
    assert result.verdict().endswith(
        f"This may be chance: use block_length={result.row_order.block_length}."
    )


def test_too_few_rows_for_blocks_are_called_so():
    rows = autoregression(np.random.default_rng(0), 400, 0.95)
    verdict = TwoSampleTest(n_permutations=99).test(rows[:200], rows[200:] + 3).verdict()
    assert f"{MAY_BE_CHANCE}, and there are too few rows to tell: blocks of about " in verdict
    assert verdict.endswith(f" rows would be needed. {SORTED}")


def test_nothing_is_said_where_nothing_is_found():
    rows = autoregression(np.random.default_rng(5), 400)
    result = TwoSampleTest(n_permutations=99).test(rows[::2], rows[1::2])
    assert result.p_value > 0.05
    assert result.row_order is not None
    assert CAUTION not in result.verdict()


def test_batches_are_looked_at_in_their_order():
    rows = autoregression(np.random.default_rng(0), 4000)
    in_memory = TwoSampleTest(n_permutations=99).test(rows[:2000], rows[2000:] + 1)
    batches = [rows[:2000][start : start + 500] for start in range(0, 2000, 500)]
    in_batches = TwoSampleTest(n_permutations=99).test(batches, rows[2000:] + 1)
    assert in_batches.row_order == in_memory.row_order


def test_independence_says_it_if_both_sides_are_alike():
    rng = np.random.default_rng(0)
    x, y = autoregression(rng, 600, 0.95).T
    test = IndependenceTest(n_permutations=99)
    result = test.test(x, y)
    assert result.p_value <= 0.05
    distance = min(each.distance for each in result.row_order)
    assert result.verdict().endswith(
        f" {CAUTION} both in x (rank correlation {result.row_order[0].correlation:.2f}) and in y "
        f"({result.row_order[1].correlation:.2f}). {MAY_BE_CHANCE}: "
        f"keep only one row in {distance}. {SORTED}"
    )
    assert set(result.to_dict()["row_order"]) == {"x", "y"}
    # sorted by x, and y depends on nothing but x: neighbours are alike in x alone
    ordered = np.sort(x)
    assert test.test(ordered, rng.permutation(y)).row_order is None


def test_one_row_in_an_autocorrelation_time_is_nearly_independent():
    """At level 0.05; all rows would be rejected in about 60 % of cases."""
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(60):
        x, y = autoregression(rng, 2000, 0.9).T
        distance = 19
        test = IndependenceTest("gaussian", bandwidths="median", n_permutations=99)
        p_values.append(test.test(x[::distance], y[::distance]).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15


def test_groups_say_it_without_clusters_or_pairs():
    rows = autoregression(np.random.default_rng(0), 600)
    groups = np.repeat(["a", "b", "c"], 200)
    days = np.arange(600) // 20
    test = GroupTest(n_permutations=99)
    result = test.test(rows, groups)
    assert (
        "Caution: neighbouring rows of a group are alike (rank correlation 0.9" in result.verdict()
    )
    assert result.verdict().endswith(
        f"{MAY_BE_CHANCE}: give units of several rows, such as days, as clusters. {SORTED}"
    )
    assert result.to_dict()["row_order"]["column"] in ("column 0", "column 1")
    assert test.test(rows, groups, clusters=days).row_order is None


def test_many_small_groups_are_looked_at_together():
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.cumsum(rng.normal(size=(6, 1)), axis=0) for _ in range(100)])
    result = GroupTest(n_permutations=49).test(rows, np.repeat(np.arange(100), 6))
    assert result.row_order is not None
    shuffled = rng.normal(size=(600, 1))
    result = GroupTest(n_permutations=49).test(shuffled, np.repeat(np.arange(100), 6))
    assert result.row_order is None


def test_drift_says_it_of_the_batch_and_of_all():
    rows = autoregression(np.random.default_rng(0), 4000, 0.8)
    detector = DriftDetector().fit(rows[:2000])
    result = detector.update(rows[2000:] + 1)
    length = result.row_order.block_length
    assert result.verdict().endswith(
        f"{MAY_BE_CHANCE}: start again with block_length={length}. {SORTED}"
    )
    assert "is at most 5 % if rows are independent.) Caution: neighb" in detector.verdict()
    assert json.loads(json.dumps(result.to_dict()))["row_order"]["block_length"] == length
    with_blocks = DriftDetector(block_length=length, alpha=0.5, horizon=1).fit(rows[:2000])
    assert "alike" not in with_blocks.update(rows[2000:] + 1).verdict()


def test_drift_counts_rows_of_the_file_and_not_of_what_was_drawn_from_it():
    rows = autoregression(np.random.default_rng(0), 14_000, 0.95)
    detector = DriftDetector(n_reference=2000).fit(rows[:10_000])
    independent = np.random.default_rng(1).normal(3, size=(4000, 2))
    for batch in (rows[10_000:] + 3, independent):
        result = detector.update(batch)
        assert result.row_order.block_length == pytest.approx(5 * 39, rel=0.5)


def test_notes_are_empty_without_a_finding():
    assert row_order_note(None, 100, None) == pairs_note(None, 100) == groups_note(None) == ""


def test_files_sorted_by_the_group_do_not_cause_it():
    rng = np.random.default_rng(2)
    frame = as_frame(rng.normal(size=(200, 2)))
    frame["g"] = np.repeat(["a", "b"], 100)
    frame.loc[frame["g"] == "b", "u"] += 3
    frame.to_csv("sorted.csv", index=False)
    for command in ("test", "groups"):
        assert "alike" not in printed(command, "sorted.csv", "--by", "g", *FEW)


def test_a_dependence_on_independent_rows_does_not_cause_it():
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    pd.DataFrame({"x": x, "y": x**2}).to_csv("i.csv", index=False)
    assert "alike" not in printed("independence", "i.csv", "--x", "x", "--y", "y", *FEW)


def test_every_command_says_it_once_with_its_options():
    rng = np.random.default_rng(4)
    one, other = autoregression(rng, 1000, 0.8), autoregression(rng, 1000, 0.8) + 5
    as_frame(one).to_csv("one.csv", index=False)
    as_frame(other).to_csv("other.csv", index=False)
    as_frame(np.concatenate([one, other])).to_csv("both.csv", index=False)
    said = printed("test", "one.csv", "other.csv", *FEW)
    assert said.count(CAUTION) == 1
    assert f"{MAY_BE_CHANCE}: use --block-length " in said
    assert f"{MAY_BE_CHANCE}: start again with --block-length " in printed(
        "drift", "one.csv", "other.csv"
    )
    said = printed("groups", "one.csv", "other.csv", *FEW)
    assert "such as days, as --clusters COLUMN." in said
    said = printed("independence", "both.csv", "--x", "u", "--y", "v", *FEW)
    assert f"{CAUTION} both in u" in said
    found = json.loads(printed("test", "one.csv", "other.csv", "--json", *FEW))
    assert found["row_order"]["correlation"] > 0.7
    assert found["warnings"] == []
    length = str(found["row_order"]["block_length"])
    assert "alike" not in printed("test", "one.csv", "other.csv", "--block-length", length, *FEW)
