"""How often the tests reject where there is nothing to find: at most as often as they say, in every setting."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kstwo

from muhat._arrays import Array
from muhat.gram import Nystrom
from muhat.mean import KernelMean
from muhat.paper._checkpoints import canonical
from muhat.paper._claims import FAILS, HOLDS, NOT_IN_PAPER, Claim
from muhat.paper._experiment import Experiment, Results, Row, Settings, Task
from muhat.paper._figures import blank, legend_below, legend_handle, name_rows
from muhat.paper._tables import distinct, where
from muhat.testing import MMD, IndependenceTest, Spectral, TwoSampleTest

LEVELS = (0.01, 0.05, 0.1)
COLOURS = ("#0072B2", "#D55E00", "#009E73")

Draw = Callable[[np.random.Generator], tuple[Array, Array]]


def _normal(n: int, m: int, d: int) -> Draw:
    return lambda rng: (rng.normal(size=(n, d)), rng.normal(size=(m, d)))


def _ties(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.integers(3, size=(12, 2)).astype(float), rng.integers(3, size=(16, 2)).astype(float)


def _duplicates(rng: np.random.Generator) -> tuple[Array, Array]:
    points = rng.normal(size=(10, 2))
    return points[rng.integers(10, size=20)], points[rng.integers(10, size=15)]


def _cauchy(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.standard_cauchy((20, 2)), rng.standard_cauchy((20, 2))


def _paired(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.normal(size=(20, 1)), rng.normal(size=(20, 2))


def _by_leave_one_out(X: Array, Y: Array, **options: Any) -> TwoSampleTest:
    """Return a test whose λ is the one leave-one-out chooses for the mean of the pool, whatever the labels are."""
    lam = KernelMean(filter="f-kmse").fit(np.concatenate([X, Y])).choice_.parameter
    return TwoSampleTest("gaussian", bandwidths="median", statistics=Spectral("f-kmse", lam), **options)


def _two(**parameters: Any) -> Callable[..., Any]:
    return lambda X, Y, **options: TwoSampleTest(**parameters, **options)


SETTINGS: dict[str, tuple[Draw, Callable[..., Any], bool]] = {
    "default, n = m = 10": (_normal(10, 10, 2), _two(), False),
    "default, n = m = 25": (_normal(25, 25, 2), _two(), False),
    "default, 15 and 40 rows": (_normal(15, 40, 2), _two(), False),
    "default, d = 100": (_normal(15, 15, 100), _two(), False),
    "default, Cauchy": (_cauchy, _two(), False),
    "default, three values": (_ties, _two(), True),
    "default, duplicates": (_duplicates, _two(), True),
    "U-statistics, 10 and 25 rows": (
        _normal(10, 25, 2),
        _two(statistics=[MMD(True), Spectral(unbiased=True)], kernel="gaussian", bandwidths=5),
        False,
    ),
    "λ by leave-one-out on the pool": (_normal(20, 20, 2), _by_leave_one_out, False),
    "Nyström": (_normal(40, 30, 2), _two(gram=Nystrom(15), kernel="gaussian", bandwidths=5), False),
    "bins": (_normal(60, 60, 2), _two(bins=20, kernel="gaussian", bandwidths=3), False),
    "early stopping": (_normal(20, 20, 2), _two(early_stopping=10, kernel="gaussian", bandwidths=3), True),
    "independence": (_paired, lambda X, Y, **options: IndependenceTest(**options), False),
    "independence, SCOSE": (_paired, lambda X, Y, **options: IndependenceTest(statistics="scose", **options), False),
    "default, n = m = 500": (_normal(500, 500, 5), _two(gram=Nystrom(100)), False),
}
"""How samples are drawn, the test of them, and whether p-values may be larger than uniform ones, as with ties."""

LARGE = ("default, n = m = 500",)
"""Settings of more than 400 rows."""

PEERS = Path(__file__).with_name("peers_of_tests.json")
"""What benchmarks/peers/measure.py found of other packages' tests, with their versions."""

SAME = {
    "n = m = 10": "default, n = m = 10",
    "n = m = 25": "default, n = m = 25",
    "three values": "default, three values",
}
"""Samples that peers were measured on, and the setting in which ours was."""


def settings(quick: bool) -> Settings:
    """Return the numbers of draws."""
    return {
        "seed": 12,
        "draws": 5 if quick else 5000,
        "large_draws": 1 if quick else 1000,
        "n_permutations": 19 if quick else 99,
        "block": 250,
        "settings": list(SETTINGS),
    }


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each setting."""
    found = []
    for name in settings["settings"]:
        draws = settings["large_draws" if name in LARGE else "draws"]
        block = settings["block"] // (5 if name in LARGE else 1)
        found += [
            {"setting": name, "first": first, "last": min(first + block, draws)} for first in range(0, draws, block)
        ]
    return sorted(found, key=lambda task: task["first"] * (5 if task["setting"] in LARGE else 1))


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the p-values of a block of draws."""
    draw, make, _ = SETTINGS[task["setting"]]
    place, p_values = settings["settings"].index(task["setting"]), []
    for number in range(task["first"], task["last"]):
        X, Y = draw(np.random.default_rng([settings["seed"], place, number]))
        test = make(X, Y, n_permutations=settings["n_permutations"], random_state=number, n_jobs=1)
        p_values.append(float(test.test(X, Y).p_value))
    return [{"setting": task["setting"], "p_values": p_values}]


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return how often each setting rejects at each level, its smallest p-value and how far from uniform all are."""
    rows, found = [row for rows in results for row in rows], []
    for name in settings["settings"]:
        p = np.concatenate([row["p_values"] for row in rows if row["setting"] == name])
        grid = np.arange(1, settings["n_permutations"] + 2) / (settings["n_permutations"] + 1)
        gap = float(np.abs((p[:, None] <= grid + 1e-9).mean(axis=0) - grid).max())
        uniform = {"kolmogorov_smirnov": gap, "kolmogorov_smirnov_p": float(kstwo.sf(gap, len(p)))}
        for level in LEVELS:
            error = float(np.sqrt(level * (1 - level) / len(p)))
            share = float((p <= level + 1e-9).mean())
            row = {"setting": name, "draws": len(p), "level": level, "rejected": share, "error": error}
            zero = {"smallest": float(p.min()), "zero": float((p == 0).mean())}
            found.append({**row, **zero, "conservative": SETTINGS[name][2], **uniform})
    return found


def claims(results: Results) -> list[Claim]:
    """Return whether every level holds, on both sides where there are no ties."""
    rows = results.rows
    off = [(row["rejected"] - row["level"]) / row["error"] for row in rows]
    largest = max(off)
    two_sided = [z for z, row in zip(off, rows, strict=True) if not row["conservative"]]
    aggregated = [row for row in rows if row["setting"].startswith("default") and not row["conservative"]]
    least = min(row["kolmogorov_smirnov_p"] for row in aggregated)
    cells = f"{len(rows)} pairs of a setting and a level"
    return [
        Claim(
            NOT_IN_PAPER,
            "Where there is nothing to find, at most α + 3 standard errors are rejected.",
            f"{cells}: {largest:.1f} standard errors above α at most",
            HOLDS if largest <= 3 else FAILS,
        ),
        Claim(
            NOT_IN_PAPER,
            "At least α − 3 standard errors are, where there are no ties.",
            f"{min(two_sided):.1f} standard errors from α at least",
            HOLDS if min(two_sided) >= -3 else FAILS,
        ),
        Claim(
            NOT_IN_PAPER,
            "No p-value is zero.",
            f"the smallest is {min(row['smallest'] for row in rows):.3g}",
            HOLDS if min(row["smallest"] for row in rows) > 0 else FAILS,
        ),
        Claim(
            NOT_IN_PAPER,
            "The p-value of the default is uniform on its grid (Kolmogorov and Smirnov, Bonferroni at 1 %).",
            f"the smallest of {len(aggregated) // len(LEVELS)} p-values is {least:.3f}",
            HOLDS if least >= 0.01 * len(LEVELS) / len(aggregated) else FAILS,
        ),
    ]


def details(results: Results) -> str:
    """Return the shares of all settings, and those of other packages' tests where they were measured."""
    lines = [
        *note_of_size(results, settings(False)),
        f"| setting | draws | {' | '.join(f'p ≤ {level:g}' for level in LEVELS)} | smallest p |",
        "|---" * (len(LEVELS) + 3) + "|",
    ]
    for setting in distinct(results.rows, "setting"):
        rows = where(results.rows, setting=setting)
        shares = " | ".join(f"{row['rejected']:.4f}" for row in rows)
        lines.append(f"| {setting} | {rows[0]['draws']:.0f} | {shares} | {rows[0]['smallest']:.3g} |")
    return "\n".join(lines) + "\n\n" + _beside_peers(results)


def note_of_size(results: Results, full: Settings) -> list[str]:
    """Return a line that says so, where results have fewer draws or repetitions than a full run."""
    is_full = canonical(results.settings) == canonical(full)
    return [] if is_full else ["**Not a full run: fewer draws or repetitions, as stated below.**\n"]


def _beside_peers(results: Results) -> str:
    """Return the levels of other packages' tests beside ours, as far as they were measured."""
    found = json.loads(PEERS.read_text(encoding="utf-8"))["peers"]
    lines = [
        "Other packages' tests on such samples (`benchmarks/peers/measure.py`, in an environment of their own):\n",
        f"| samples | test | draws | permutations | {' | '.join(f'p ≤ {level:g}' for level in LEVELS)} | p = 0 |",
        "|---" * (len(LEVELS) + 5) + "|",
    ]
    for samples, setting in SAME.items():
        ours = where(results.rows, setting=setting)
        shares = " | ".join(f"{row['rejected']:.3f}" for row in ours)
        count = f"{ours[0]['draws']:.0f} | {results.settings['n_permutations']}"
        lines.append(f"| {samples} | muhat | {count} | {shares} | {ours[0]['zero']:.3f} |")
        for name, peer in found.items():
            if samples in peer.get("levels", {}):
                level = peer["levels"][samples]
                shares = " | ".join(f"{level['rejected'][str(each)]:.3f}" for each in LEVELS)
                count = f"{level['draws']} | {level['permutations']}"
                lines.append(f"| {samples} | {name} ({peer['version']}) | {count} | {shares} | {level['zero']:.3f} |")
    missing = [f"{name}: {why}." for name, peer in found.items() if (why := peer.get("missing") or peer.get("failed"))]
    return "\n".join([*lines, *(["", *missing] if missing else [])])


def figure(results: Results) -> Any:
    """Return the figure: how far the rejections are from the level, in standard errors."""
    names = list(dict.fromkeys(row["setting"] for row in results.rows))
    drawn = blank(1.2 + 0.24 * len(names))
    ax = drawn.subplots()
    ax.axvspan(-3, 3, color="#EEEEEE", zorder=0)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    for row in results.rows:
        off = (row["rejected"] - row["level"]) / row["error"]
        ax.plot(off, names.index(row["setting"]), marker="o", markersize=4.5, color=COLOURS[LEVELS.index(row["level"])])
    name_rows(ax, names)
    ax.set_xlabel("rejections less the level, in standard errors")
    entries = zip(LEVELS, COLOURS, strict=True)
    legend_below(drawn, {f"level {a:g}": legend_handle(color=c, marker="o", linestyle="none") for a, c in entries})
    return drawn


EXPERIMENT = Experiment(
    name="test-levels",
    title="how often the tests reject where there is nothing to find",
    text=(
        "Both samples are drawn from one distribution, or x and y independently, and the share of p-values up to a "
        "level is set against it. With ties, and after an early stop, fewer may be."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    details=details,
    figure=figure,
)
