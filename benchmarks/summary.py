"""The README's table of speed-ups, from saved ratios: ``make bench SAVE=1`` writes them.

The committed ones were typed from the table of a whole ``make bench`` of commit 1676eb0 on an
otherwise idle machine, with the two digits that it had.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.timing import Ratio

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "evidence" / "bench.json"

ROWS = (
    (
        "core",
        "against a refit",
        "every leave-one-out score of every filter, n = 2000",
        "a refit without each row, estimated from 3 of them",
    ),
    ("core", "Gaussian Gram", "Gaussian Gram matrix, n = 10,000, d = 20", "`rbf_kernel`"),
    ("core", "in float32", "the same in float32", "`rbf_kernel`"),
    (
        "products",
        "batches of rbf_kernel",
        "product with the Gram matrix of 50,000 rows, not in memory",
        "batches of `rbf_kernel`",
    ),
    (
        "products",
        "PyKeOps",
        "the same",
        "PyKeOps on the CPU",
    ),
    (
        "files",
        "what compare reads",
        "what `muhat compare` reads of a CSV of 10⁶ rows",
        "NumPy's `loadtxt`, in each of four passes",
    ),
    (
        "core",
        "one Gram and one eigh",
        "`KernelMean().fit`, n = 2000",
        "its Gram matrix and one `eigh` of NumPy",
    ),
)
"""Group, a part of the ratio's name, and the first two cells of the README's row."""

SIDE_BY_SIDE = ROOT / "docs" / "evidence" / "coming-from.json"
"""Results of benchmarks/peers/coming_from.py, which the table has below those of ``make bench``."""

TASKS = (
    (
        "`KernelRidge`",
        "kernel ridge regression, 331 rows, λ and filter chosen by leave-one-out",
        "`GridSearchCV(KernelRidge)`, 9 × 7 parameters",
    ),
    ("hyppo", "two tests, 999 permutations, many kernels each", "hyppo's MMD and Dcorr"),
    ("dcor", "the same", "dcor's energy and distance covariance tests"),
    ("MAPIE", "jackknife+ intervals, 331 rows", "MAPIE around `KernelRidge`"),
    ("`KernelPCA`", "ten components of 1797 × 64", "scikit-learn's `KernelPCA`"),
)
"""A part of the task's title, and the first two cells of the README's row."""


def save(group: str, ratios: Sequence[Ratio]) -> None:
    """Add the ratios of a group to the results, with the commit that they are of."""
    results: dict[str, Any] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = []
    for ratio in ratios:
        line = {"what": ratio.what, "ours": ratio.ours, "peer": ratio.peer, "unit": ratio.unit}
        lines.append(line)
    results[group] = {"commit": commit.strip(), "ratios": lines}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def speed_up(ours: float, peer: float) -> str:
    """Return how many times faster, with two digits."""
    times = peer / ours
    if times >= 100:
        return f"{float(f'{times:.2g}'):,.0f}×"
    return f"{times:.2g}×"


def table(results: dict[str, Any], tasks: dict[str, Any]) -> str:
    """Return the README's table; larger is better."""
    lines = ["| | against | speed-up |", "|---|---|---|"]
    for group, part, what, peer in ROWS:
        (ratio,) = (each for each in results[group]["ratios"] if part in each["what"])
        lines.append(f"| {what} | {peer} | {speed_up(ratio['ours'], ratio['peer'])} |")
    for part, what, peer in TASKS:
        (task,) = (found for title, found in tasks.items() if part in title)
        times = speed_up(task["ours"]["seconds"], task["peer"]["seconds"])
        lines.append(f"| {what} | {peer} | {times} |")
    return "\n".join(lines)


def committed_table() -> str:
    """Return the table of the committed results."""
    texts = [path.read_text(encoding="utf-8") for path in (RESULTS, SIDE_BY_SIDE)]
    return table(*map(json.loads, texts))


if __name__ == "__main__":
    print(committed_table())
