"""``python -m paper.held_out FOLDER``: the stacked mean on data sets that nothing was tuned on.

Every CSV file of the folder is a data set: its numeric columns with at least ten different values,
standardized, and at most 2000 of its rows. Rows are drawn without replacement, and the rows that
were not drawn measure the loss, as in the experiment finite-populations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from muhat.data import read_table
from muhat.datasets import standardized
from muhat.mean import KernelMean
from muhat.stacking import StackedMean
from paper._arrays import Array
from paper._claims import decimal
from paper._statistics import Interval, improvement
from paper._tables import markdown
from paper.experiments.finite_populations import Estimates, Population, kernel_for

KERNELS = {
    "Gaussian": ("gaussian", 1.0),
    "Gaussian, σ² × 0.25": ("gaussian", 0.25),
    "Gaussian, σ² × 0.1": ("gaussian", 0.1),
    "Laplacian": ("laplacian", 1.0),
}
"""Kernels by their titles, with σ² as a share of the median rule's."""

MIN_VALUES = 10
"""Different values that a column must have."""

MAX_ROWS = 2000

FREQUENCIES = 512
"""For the loss of the stacked mean under the Laplacian kernel."""

NOISE = 1e-9

N_RESAMPLES = 10
"""Bootstrap samples of each sample."""


DISTINCT = 0.98
"""Share of distinct rows from which on the rows of a set are called distinct."""


@dataclass(frozen=True)
class SetGains:
    """The gains on one data set, by kernel and estimator."""

    name: str
    n_rows: int
    n_columns: int
    is_distinct: bool
    gains: list[list[Interval]]


@dataclass(frozen=True)
class Ratio:
    """A ratio of standard errors, and its own standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Return both with two decimals."""
        return f"{decimal(self.value, 2)} ± {decimal(self.error, 2)}"


def rows_of_file(path: Path) -> Array:
    """Return the standardized rows of a file."""
    rows = read_table(path, only_numeric=True, missing="drop").data
    counts = []
    for column in rows.T:
        counts.append(len(np.unique(column)))
    rows = rows[:, np.array(counts) >= MIN_VALUES]
    order = np.random.default_rng(0).permutation(len(rows))
    return standardized(rows[order[:MAX_ROWS]])


def gains(
    rows: Array, kernel: tuple[str, float], n: int, samples: int, seed: int
) -> list[Interval]:
    """Return the gains over the plain average in % of its risk: stacked mean, default."""
    population = Population(kernel_for(rows, *kernel), rows)
    losses = []
    for sample in range(samples):
        drawn = population.draw(n, [seed, sample])
        X = rows[drawn]
        weights = {
            "kme": np.full(n, 1 / n),
            "default": KernelMean(kernel=population.kernel).fit(X).weights_,
        }
        stacked = StackedMean(kernel=population.kernel, random_state=sample).fit(X)
        estimates = Estimates(X, weights, stacked)
        rng = np.random.default_rng([seed, sample, 1])
        losses.append(population.measure(drawn, estimates, FREQUENCIES, rng).losses)
    plain, default, stacked_losses = np.transpose(losses)
    return [improvement(stacked_losses, plain), improvement(default, plain)]


def bootstrap_ratios(rows: Array, n: int, samples: int, seed: int) -> list[Ratio]:
    """Return bootstrap / true standard error of ‖μ‖ for the stacked mean and the plain average.

    Under the Gaussian kernel. Each sample is resampled ten times, and ten times as many new samples
    are drawn. Rows are drawn without replacement, which lowers the variance over new samples to
    (N − n)/(N − 1) of that of independent rows if there are N, so it is divided by that.
    """
    population = Population(kernel_for(rows, "gaussian", 1.0), rows)

    def norms(X: Array) -> tuple[float, float]:
        mean = StackedMean(kernel=population.kernel).fit(X).embedding_
        return mean.norm(), float(np.sqrt(population.kernel(X).mean()))

    resampled = np.empty((samples, N_RESAMPLES, 2))
    for sample in range(samples):
        X = rows[population.draw(n, [seed, sample])]
        rng = np.random.default_rng([seed, sample, 2])
        for again in range(N_RESAMPLES):
            resampled[sample, again] = norms(X[rng.integers(n, size=n)])
    new = np.empty((samples * N_RESAMPLES, 2))
    for sample in range(len(new)):
        new[sample] = norms(rows[population.draw(n, [seed, sample, 4])])
    share = (len(rows) - n) / (len(rows) - 1)
    found = []
    for each in (0, 1):
        found.append(_ratio(resampled[..., each], new[:, each], share))
    return found


def _ratio(resampled: Array, new: Array, share: float) -> Ratio:
    """Return the root of mean bootstrap variance over variance, which is a share of the true one.

    ``resampled`` has a row for each sample. The error is by the delta method.
    """
    variances = resampled.var(axis=1, ddof=1)
    squares = (new - new.mean()) ** 2 * len(new) / (len(new) - 1) / share
    parts = []
    for each in (variances, squares):
        parts.append(each.std(ddof=1) / len(each) ** 0.5 / each.mean())
    ratio = float(np.sqrt(variances.mean() / squares.mean()))
    return Ratio(ratio, ratio * float(np.hypot(*parts)) / 2)


def moved_by_noise(rows: Array, n: int, seed: int) -> float:
    """Return ‖μ − μ'‖ of a sample and of the same sample with noise of 1e-9 added."""
    X = rows[np.random.default_rng(seed).permutation(len(rows))[:n]]
    noise = NOISE * np.random.default_rng([seed, 3]).standard_normal(X.shape)
    kernel = kernel_for(rows, "gaussian", 1.0)
    mean, moved = (StackedMean(kernel=kernel).fit(each).embedding_ for each in (X, X + noise))
    return mean.distance(moved)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the gains on each file, their means, and what noise and bootstrap show if asked."""
    parser = argparse.ArgumentParser(prog="python -m paper.held_out", description=__doc__)
    parser.add_argument("folder", type=Path, help="of CSV files with at least 2n rows")
    parser.add_argument("-n", type=int, default=50, help="rows of a sample")
    parser.add_argument("--samples", type=int, default=30, help="of each data set")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument(
        "--bootstrap", action="store_true", help="bootstrap and noise in place of the gains"
    )
    asked = parser.parse_args(arguments)
    files = sorted(asked.folder.glob("*.csv"))
    if asked.bootstrap:
        _print_bootstrap(files, asked.n, asked.samples, asked.seed)
        return
    found = []
    for path in files:
        rows = rows_of_file(path)
        each = []
        for kernel in KERNELS.values():
            each.append(gains(rows, kernel, asked.n, asked.samples, asked.seed))
        distinct = len(np.unique(rows, axis=0)) / len(rows)
        n_rows, n_columns = rows.shape
        found.append(SetGains(path.stem, n_rows, n_columns, distinct >= DISTINCT, each))
    _print_gains(found)


def _print_gains(found: Sequence[SetGains]) -> None:
    """Print the gains on each set, then means and spreads over sets."""
    lines = []
    for each in found:
        lines.append([each.name, f"{each.n_rows} × {each.n_columns}", *map(_pair, each.gains)])
    repeating = []
    for each in found:
        if not each.is_distinct:
            repeating.append(each)
    lines += _summary("all sets", found)
    if repeating and len(repeating) < len(found):
        lines += _summary("sets of distinct rows", [each for each in found if each.is_distinct])
        lines += _summary("sets with repeated rows", repeating)
    print("Gain over the plain average in % of its risk: stacked mean / `KernelMean()`.\n")
    print("\n".join(markdown(["data set", "rows × columns", *KERNELS], lines)))


def _summary(title: str, some: Sequence[SetGains]) -> list[list[str]]:
    """Return two lines of the table: the mean over sets, and how much sets differ."""
    means, spreads = [], []
    for of_kernel in zip(*(each.gains for each in some), strict=True):
        by_estimator = list(zip(*of_kernel, strict=True))
        means.append(_pair([_mean(each) for each in by_estimator]))
        deviations = []
        for each in by_estimator:
            deviations.append(np.std([gain.value for gain in each]))
        spreads.append(" / ".join(decimal(float(each), 1) for each in deviations))
    return [
        [f"mean of {len(some)}: {title}", "", *means],
        ["standard deviation over these sets", "", *spreads],
    ]


def _print_bootstrap(files: Sequence[Path], n: int, samples: int, seed: int) -> None:
    """Print bootstrap over true standard error, and what noise does, for each file."""
    lines, found = [], []
    for path in files:
        rows = rows_of_file(path)
        ratios = bootstrap_ratios(rows, n, samples, seed)
        found.append([each.value for each in ratios])
        moved = moved_by_noise(rows, n, seed)
        lines.append([path.stem, str(len(rows)), *map(str, ratios), f"{moved:.1e}"])
    means = []
    for mean in np.mean(found, axis=0).tolist():
        means.append(decimal(mean, 2))
    lines.append([f"mean of {len(files)}", "", *means, ""])
    titles = ["data set", "rows", "stacked mean", "plain average", "moved by noise of 1e-9"]
    print("Bootstrap over true standard error of ‖μ‖.\n")
    print("\n".join(markdown(titles, lines)))


def _mean(values: Sequence[Interval]) -> Interval:
    """Return the mean over data sets; the interval is for new samples of the same sets."""
    value = float(np.mean([each.value for each in values]))
    reach = float(np.sqrt(np.sum([(each.high - each.value) ** 2 for each in values]))) / len(values)
    return Interval(value, value - reach, value + reach)


def _pair(values: Sequence[Interval]) -> str:
    """Return numbers with their standard errors, about half the reach of an interval."""
    parts = []
    for each in values:
        parts.append(f"{decimal(each.value, 1)} ± {decimal((each.high - each.value) / 2, 1)}")
    return " / ".join(parts)


if __name__ == "__main__":
    main()
