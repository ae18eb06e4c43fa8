"""Power of the default tests beside plain tests of our own: what each finds, and misses.

Its experiment is of independence; ``differences_of_tests`` has the same of two samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from muhat.testing import IndependenceTest, TwoSampleTest
from paper._alternatives import DEPENDENCE, DIFFERENCES, Alternative
from paper._arrays import Array
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, legend_of_markers, name_rows
from paper._tables import column, distinct, grouped, markdown, one, where
from paper.experiments.levels_of_tests import note_of_size

LEVEL = 0.05

SEED = 181126
"""Of these draws: the defaults were chosen on draws of other seeds (docs/tests-design.md)."""

PROBLEMS: dict[str, Mapping[str, Alternative]] = {
    "independence": DEPENDENCE,
    "two samples": DIFFERENCES,
}
"""What there is to find, by problem."""

OURS: dict[str, type[Any]] = {"independence": IndependenceTest, "two samples": TwoSampleTest}

FORMER: dict[str, dict[str, Any]] = {
    "independence": {"statistics": ("mmd", "spectral")},
    "two samples": {"statistics": ("mmd", "spectral", "kernel-fisher")},
}
"""By problem, the options of one soft maximum of 256 or 220 statistics, formerly the default.

For two samples the energy distances were two more families, with weights of 0.025 each.
"""

TITLES = {
    "default": "the default",
    "former": "one soft maximum",
    "distance covariance": "distance covariance",
    "HSIC": "HSIC, median bandwidths",
    "energy": "energy test",
    "MMD": "MMD, median bandwidth",
}
STYLES = {
    "default": ("#D55E00", "o"),
    "former": ("#E69F00", "o"),
    "distance covariance": ("#000000", "|"),
    "HSIC": ("#0072B2", "x"),
    "energy": ("#000000", "|"),
    "MMD": ("#0072B2", "x"),
}
"""Tests in the order of legends."""

PLAIN = ("distance covariance", "HSIC", "energy", "MMD")
"""The tests that are a few lines of their own."""

CASE_COLUMNS = ("problem", "alternative", "n", "smooth", "test")
"""The columns that say what a power is of."""


def settings(quick: bool, problem: str, seed: int, repetitions: int) -> Settings:
    """Return the alternatives and the numbers of repetitions and permutations."""
    cells = [[problem, name] for name in PROBLEMS[problem]]
    chosen: Settings = {
        "seed": seed,
        "repetitions": repetitions,
        "n_permutations": 999,
        "block": 20,
        "cells": cells,
    }
    if quick:
        chosen |= {
            "repetitions": 2,
            "n_permutations": 19,
            "block": 2,
            "cells": [cells[0], cells[-1]],
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of repetitions of each alternative."""
    count, block = settings["repetitions"], settings["block"]
    found = []
    for first in range(0, count, block):
        for problem, name in settings["cells"]:
            found.append(
                {
                    "problem": problem,
                    "alternative": name,
                    "first": first,
                    "last": min(first + block, count),
                }
            )
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return how many of a block of draws each test rejects."""
    alternatives = PROBLEMS[task["problem"]]
    law, place = alternatives[task["alternative"]], list(alternatives).index(task["alternative"])
    p_values: dict[str, list[float]] = {}
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng(
            [settings["seed"], list(PROBLEMS).index(task["problem"]), place, number]
        )
        X, Y = law.draw(rng, law.n)
        options = {
            "n_permutations": settings["n_permutations"],
            "random_state": int(rng.integers(2**31)),
            "n_jobs": 1,
        }
        ours = OURS[task["problem"]]
        former = ours(**FORMER[task["problem"]], **options)
        found = {
            "default": float(ours(**options).test(X, Y).p_value),
            "former": float(former.test(X, Y).p_value),
        }
        plain = plain_difference
        if task["problem"] == "independence":
            plain = plain_dependence
        found |= plain(X, Y, settings["n_permutations"], rng)
        for name, p in found.items():
            p_values.setdefault(name, []).append(p)
    case = {
        "problem": task["problem"],
        "alternative": task["alternative"],
        "n": law.n,
        "smooth": law.smooth,
    }
    case["draws"] = task["last"] - task["first"]
    rejected = {}
    for name, values in p_values.items():
        rejected[name] = np.array(values) <= LEVEL + 1e-9
    rows = []
    for name, each in rejected.items():
        by_one = int((each != rejected["default"]).sum())
        rows.append({**case, "test": name, "rejected": int(each.sum()), "disagreed": by_one})
    return rows


def plain_dependence(
    X: Array, Y: Array, n_permutations: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p-values of distance covariance and of HSIC, from the same permutations."""
    orders = []
    for _ in range(n_permutations):
        orders.append(rng.permutation(len(X)))
    x, y = (distances(_scaled(rows)) for rows in (X, Y))
    pairs = {"distance covariance": (x, y), "HSIC": (gaussian(x), gaussian(y))}
    found = {}
    for name, (left, right) in pairs.items():
        left, right = _centred(left), _centred(right)
        values = []
        for order in orders:
            values.append((left * right[np.ix_(order, order)]).sum())
        found[name] = p_value((left * right).sum(), values)
    return found


def plain_difference(
    X: Array, Y: Array, n_permutations: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p-values of the energy test and of MMD, from the same permutations."""
    labels = np.concatenate([np.full(len(X), 1 / len(X)), np.full(len(Y), -1 / len(Y))])
    orders = [labels] + [rng.permutation(labels) for _ in range(n_permutations)]
    W = np.stack(orders)
    D = distances(_scaled(np.concatenate([X, Y])))
    found = {}
    for name, matrix in (("energy", -D), ("MMD", gaussian(D))):
        values = ((W @ matrix) * W).sum(axis=1)
        found[name] = p_value(values[0], values[1:])
    return found


def p_value(observed: float, values: Any) -> float:
    """Return (1 + how many are as large as observed)/(B + 1), where ties up to rounding count.

    Examples
    --------
    >>> p_value(2.0, [1.0, 2.0, 3.0])
    0.75
    """
    values = np.asarray(values, dtype=np.float64)
    tolerance = 1e-12 * max(np.abs(values).max(), abs(observed))
    return float((1 + (values >= observed - tolerance).sum()) / (len(values) + 1))


def distances(rows: Array) -> Array:
    """Return the Euclidean distances of all pairs of rows."""
    return np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=-1))


def gaussian(D: Array) -> Array:
    """Return a Gaussian kernel at distances; σ² is the median of their squares, or one if zero."""
    variance = np.median(D[np.triu_indices(len(D), 1)] ** 2) or 1.0
    return np.exp(-(D**2) / (2 * variance))


def _scaled(rows: Array) -> Array:
    """Return columns of mean 0 and variance 1, as the tests make them by default."""
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def _centred(matrix: Array) -> Array:
    return matrix - matrix.mean(axis=0) - matrix.mean(axis=1)[:, None] + matrix.mean()


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the power of every test against every alternative, with its standard error.

    Beside it is that of the difference from the default's power: on the same draws, its square is
    the share of draws on which only one of both rejects, less the squared difference, over draws.
    """
    rows = rows_of_tasks(settings, results)
    found = []
    for problem, name in settings["cells"]:
        cell = where(rows, problem=problem, alternative=name)
        default = _share(where(cell, test="default"), "rejected")
        for key, some in grouped(cell, *CASE_COLUMNS).items():
            draws = int(column(some, "draws").sum())
            power, disagreed = _share(some, "rejected"), _share(some, "disagreed")
            case = dict(zip(CASE_COLUMNS, key, strict=True))
            errors = {
                "error": float(np.sqrt(power * (1 - power) / draws)),
                "paired_error": float(np.sqrt((disagreed - (default - power) ** 2) / draws)),
            }
            found.append({**case, "draws": draws, "power": power, **errors})
    return found


def _share(rows: Sequence[Row], name: str) -> float:
    """Return the share of draws that a column counts."""
    return float(column(rows, name).sum() / column(rows, "draws").sum())


def findings(results: Results, problem: str) -> list[Finding]:
    """Return how the default compares with the plain tests and with one soft maximum."""
    found = []
    for smooth, kind in ((True, "smooth"), (False, "other")):
        rows = where(results.rows, problem=problem, smooth=smooth)
        what = f"{problem}, {kind} alternatives: power of the default less that of"
        if rows:
            number = _summary(_gaps(rows, PLAIN))
            found.append(Finding(f"{what} the better plain test.", number))
            number = _summary(_gaps(rows, ("former",)))
            found.append(Finding(f"{what} one soft maximum of all statistics.", number))
    return found


@dataclass(frozen=True)
class _Gap:
    """The power of the default less that of another test on the same draws."""

    alternative: str
    value: float
    error: float

    def __str__(self) -> str:
        return f"{_signed(self.value)} ± {self.error:.3f} ({self.alternative})"


def _summary(gaps: Sequence[_Gap]) -> str:
    """Return the mean of the gaps, the least and the largest."""
    ordered = sorted(gaps, key=lambda gap: gap.value)
    mean = _signed(float(np.mean([gap.value for gap in gaps])))
    return f"{mean} in the mean of {len(gaps)}; least {ordered[0]}, most {ordered[-1]}"


def _gaps(rows: Sequence[Row], others: Sequence[str]) -> list[_Gap]:
    """Return the gap between the default and the best of others, by alternative."""
    gaps = []
    for (name,), tests in grouped(rows, "alternative").items():
        best = max((row for row in tests if row["test"] in others), key=lambda row: row["power"])
        gap = one(tests, test="default")["power"] - best["power"]
        gaps.append(_Gap(name, gap, best["paired_error"]))
    return gaps


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def details(results: Results, problem: str, full: Settings) -> str:
    """Return the power of all tests against all alternatives."""
    cells = where(results.rows, problem=problem)
    tests = distinct(cells, "test", STYLES)
    table = []
    for (name, n, draws), rows in grouped(cells, "alternative", "n", "draws").items():
        shown = {}
        for row in rows:
            shown[row["test"]] = _compared(row)
        table.append([name, str(n), f"{draws:.0f}", *map(shown.__getitem__, tests)])
    titles = []
    for test in tests:
        titles.append(TITLES[test])
    lines = markdown([problem, "n", "repetitions", *titles], table)
    return "\n".join([*note_of_size(results, full), *lines])


def _compared(row: Row) -> str:
    """Return a power with its error, and in brackets that of its difference from the default."""
    text = f"{row['power']:.3f} ± {row['error']:.3f}"
    if row["test"] == "default":
        return text
    return f"{text} ({row['paired_error']:.3f})"


def figure(results: Results, problem: str) -> Any:
    """Return the figure: the power of every test against every alternative."""
    shown = where(results.rows, problem=problem)
    cells = grouped(shown, "alternative", "n")
    drawn = blank(1.4 + 0.26 * len(cells))
    ax = drawn.subplots()
    for place, rows in enumerate(cells.values()):
        for row in rows:
            colour, marker = STYLES[row["test"]]
            size = 5
            if marker == "|":
                size = 10
            ax.plot(
                row["power"], place, marker=marker, color=colour, markersize=size, linestyle="none"
            )
    name_rows(ax, [f"{name}, n = {n}" for name, n in cells])
    ax.set(xlim=(-0.02, 1.02), xlabel=f"power at level {LEVEL}")
    styles = {}
    for test in distinct(shown, "test", STYLES):
        styles[TITLES[test]] = STYLES[test]
    legend_of_markers(drawn, styles, columns=3)
    return drawn


def experiment_of(
    problem: str, seed: int, repetitions: int, name: str, title: str, text: str
) -> Experiment:
    """Return the experiment of one problem."""
    chosen = partial(settings, problem=problem, seed=seed, repetitions=repetitions)
    return Experiment(
        name=name,
        title=title,
        text=text,
        settings=chosen,
        tasks=tasks,
        run=run,
        table=table,
        findings=partial(findings, problem=problem),
        details=partial(details, problem=problem, full=chosen(False)),
        figure=partial(figure, problem=problem),
    )


EXPERIMENT = experiment_of(
    "independence",
    SEED,
    200,
    name="test-alternatives",
    title="how often the test of independence finds smooth and other dependence",
    text=(
        "Pairs that depend on each other, in ways that are in many data (linear, monotone, "
        "logistic, counts, heavy tails) and in ways that simple tests miss. Power at level 0.05 of "
        "`IndependenceTest()`, beside distance covariance and HSIC, each by a few plain lines of "
        "its own with as many permutations, on columns scaled to mean 0 and variance 1. “One soft "
        "maximum” has all statistics of HSIC and truncated SVD in one family: formerly the "
        "default. Every test sees the same draws; ± is a standard error, and in brackets is that "
        "of the difference from the default on the same draws. (The csv also has two samples, by "
        "an earlier default.)"
    ),
)
