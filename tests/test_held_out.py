"""Gains on data sets from files: rows that were not drawn measure them."""

import re

import numpy as np
import pytest

from muhat import StackedMean
from muhat.kernels import Gaussian
from paper.held_out import bootstrap_ratios, gains, main, moved_by_noise, rows_of_file


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    for name, columns in (("first", 2), ("second", 3)):
        rows = np.column_stack([rng.normal(size=(60, columns)), rng.integers(3, size=60)])
        header = ",".join(f"x{number}" for number in range(columns + 1))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header=header, comments="")
    return tmp_path


def test_columns_of_few_values_are_left_out_and_the_others_standardized(folder):
    rows = rows_of_file(folder / "second.csv")
    assert rows.shape == (60, 3)
    np.testing.assert_allclose(rows.std(axis=0), 1, rtol=0.02)


def test_a_gain_is_the_mean_loss_by_rows_not_drawn_beside_the_plain_averages(folder):
    rows = rows_of_file(folder / "first.csv")
    stacked, _ = gains(rows, ("gaussian", 1.0), n=20, samples=2, seed=5)
    kernel = Gaussian().resolve(rows)
    losses = []
    for sample in range(2):
        order = np.random.default_rng([5, sample]).permutation(60)
        X, rest = rows[order[:20]], rows[order[20:]]
        between = kernel(rest)
        truth = (between.sum() - len(rest)) / (len(rest) * (len(rest) - 1))
        plain = kernel(X).mean() - 2 * kernel(X, rest).mean() + truth
        mu = StackedMean(kernel=kernel, random_state=sample).fit(X).embedding_
        losses.append((plain, mu.squared_norm() - 2 * mu(rest).mean() + truth))
    plain, ours = np.mean(losses, axis=0)
    assert stacked.value == pytest.approx(100 * (1 - ours / plain), abs=1e-6)


def test_the_command_has_a_line_for_each_file_and_their_mean(folder, capsys):
    main([str(folder), "-n", "15", "--samples", "2"])
    *lines, spread = capsys.readouterr().out.splitlines()[-4:]
    titles = ["| first", "| second", "| mean of 2: all sets"]
    assert [line.split(" | ")[0] for line in lines] == titles
    assert spread.startswith("| standard deviation over these sets |")
    first, second, mean = (_number(line) for line in lines)
    assert mean == pytest.approx((first + second) / 2, abs=0.11)  # of rounded numbers


def _number(line):
    return float(re.search(r"(−?\d+\.\d) ±", line)[1].replace("−", "-"))


def test_noise_moves_the_estimate_little():
    rows = np.random.default_rng(1).normal(size=(60, 3))
    assert moved_by_noise(rows, 20, seed=0) < 1e-6


def test_a_bootstrap_ratio_is_the_root_of_mean_variance_over_that_of_new_samples(folder, capsys):
    rows = rows_of_file(folder / "second.csv")
    plain = bootstrap_ratios(rows, 15, samples=3, seed=0)[1]
    kernel = Gaussian().resolve(rows)

    def norm(drawn):
        return np.sqrt(np.mean([[kernel(rows[[i]], rows[[j]]) for i in drawn] for j in drawn]))

    variances = []
    for sample in range(3):
        drawn = np.random.default_rng([0, sample]).permutation(60)[:15]
        rng = np.random.default_rng([0, sample, 2])
        variances.append(
            np.var([norm(drawn[rng.integers(15, size=15)]) for _ in range(10)], ddof=1)
        )
    new = [norm(np.random.default_rng([0, s, 4]).permutation(60)[:15]) for s in range(30)]
    true = np.var(new, ddof=1) * 59 / 45
    assert plain.value == pytest.approx(np.sqrt(np.mean(variances) / true), rel=1e-6)
    assert 0 < plain.error < plain.value
    main([str(folder), "-n", "15", "--samples", "2", "--bootstrap"])
    assert "| second |" in capsys.readouterr().out
