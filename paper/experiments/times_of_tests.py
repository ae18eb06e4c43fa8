"""How long the tests take on one core, beside other packages' tests with as many permutations."""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from muhat.testing import IndependenceTest, TwoSampleTest
from paper._claims import Finding, in_one_cell
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, legend_of_markers, name_rows, plain_numbers
from paper._tables import markdown, one
from paper.experiments.levels_of_tests import PEERS

TESTS: dict[str, Callable[..., Any]] = {
    "default": TwoSampleTest,
    "MMD": lambda **options: TwoSampleTest(
        "gaussian", bandwidths="median", statistics="mmd", **options
    ),
    "independence": IndependenceTest,
}

PEERS_N = 500
"""The size of both samples, of five columns, on which peers were timed."""

OURS, THEIRS = "#0072B2", "#999999"


def settings(quick: bool) -> Settings:
    """Return what is timed: a test, the rows of each sample, and permutations."""
    cases = [
        ("default", 50),
        ("MMD", PEERS_N),
        ("default", PEERS_N),
        ("default", 2500),
        ("independence", PEERS_N),
    ]
    if quick:
        cases = [(test, 20 if n == PEERS_N else 10) for test, n in cases]
    chosen: Settings = {
        "seed": 12,
        "d": 5,
        "n_permutations": 1999,
        "rounds": 3,
        "cases": cases,
    }
    if quick:
        chosen |= {"n_permutations": 19, "rounds": 1}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each case."""
    found = []
    for test, n in settings["cases"]:
        found.append({"test": test, "n": n})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the processor's seconds of one case, the shortest of several rounds."""
    rng = np.random.default_rng(settings["seed"])
    X, Y = rng.normal(size=(2, task["n"], settings["d"]))
    test = TESTS[task["test"]](n_permutations=settings["n_permutations"], random_state=0, n_jobs=1)
    seconds = []
    for _ in range(settings["rounds"]):
        start = time.process_time()
        result = test.test(X, Y)
        seconds.append(time.process_time() - start)
    return [{**task, "statistics": len(result.tests), "seconds": min(seconds)}]


def times_of_peers(permutations: int) -> dict[str, float]:
    """Return the processor's seconds of other packages' tests, for as many permutations."""
    found = json.loads(PEERS.read_text(encoding="utf-8"))["peers"]
    times = {}
    for name, peer in found.items():
        if "seconds" in peer:
            timed = peer["seconds"]
            factor = (permutations + 1) / (timed["permutations"] + 1)
            times[f"{name} ({peer['version']})"] = timed["cpu"] * factor
    return times


def findings(results: Results) -> list[Finding]:
    """Return our times beside those of other packages' tests."""
    n = results.settings["cases"][1][1]
    default = one(results.rows, test="default", n=n)["seconds"]
    mmd = one(results.rows, test="MMD", n=n)["seconds"]
    lines = [f"the default {default:.2f} s, MMD alone {mmd:.2f} s"]
    for name, seconds in times_of_peers(results.settings["n_permutations"]).items():
        lines.append(f"{name} {seconds:.2f} s")
    what = f"Seconds for a test of n = m = {n} rows, with as many permutations each."
    return [Finding(what, in_one_cell(lines))]


def _bars(results: Results) -> list[tuple[str, float, str]]:
    """Return a name, seconds and a colour for each of our cases and each peer."""
    bars = []
    for row in results.rows:
        name = f"{row['test']}, n = {row['n']:.0f} ({row['statistics']:.0f} in all)"
        bars.append((name, row["seconds"], OURS))
    n = results.settings["cases"][1][1]
    for name, seconds in times_of_peers(results.settings["n_permutations"]).items():
        bars.append((f"{name}, n = {n}", seconds, THEIRS))
    return bars


def details(results: Results) -> str:
    """Return the table of times."""
    lines = []
    for name, seconds, _ in _bars(results):
        lines.append([name, f"{seconds:.3g}"])
    return "\n".join(markdown(["test", "seconds"], lines))


def figure(results: Results) -> Any:
    """Return the figure: seconds of every test."""
    bars = _bars(results)
    drawn = blank(1.2 + 0.24 * len(bars))
    ax = drawn.subplots()
    for place, (_, seconds, colour) in enumerate(bars):
        ax.plot(seconds, place, marker="o", color=colour)
    name_rows(ax, [name for name, _, _ in bars])
    ax.set(xscale="log", xlabel="seconds of one core")
    plain_numbers(ax.xaxis)
    scaled = "other packages, scaled to as many permutations"
    legend_of_markers(drawn, {"muhat": (OURS, "o"), scaled: (THEIRS, "o")})
    return drawn


EXPERIMENT = Experiment(
    name="test-times",
    title="how long the tests take on one core",
    text=(
        "Seconds of the processor for one test of two normal samples in five dimensions, or of "
        "independence, with 1999 permutations; in brackets, how many statistics. Other packages "
        "were timed in an environment of their own with fewer permutations; their seconds are "
        "scaled up in proportion."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    findings=findings,
    details=details,
    figure=figure,
    alone=True,
)
