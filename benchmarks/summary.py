"""The README's table of speed-ups, and the sentences above it, from saved results.

``make bench SAVE=1`` (or ``GROUP=core``, ``GROUP=products``) and benchmarks/peers/coming_from.py
save them; ``python -m benchmarks.summary`` prints both texts.
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
        "all leave-one-out scores of a kernel mean (every filter and λ), 2,000 rows",
        "2,000 refits, each with one row left out (extrapolated from 3 refits)",
    ),
    (
        "products",
        "batches of rbf_kernel",
        "product with the Gram matrix of 50,000 × 20, too large for memory",
        "scikit-learn's `rbf_kernel` in batches",
    ),
    ("products", "PyKeOps", "the same", "PyKeOps on the CPU"),
    (
        "core",
        "Gaussian Gram",
        "Gaussian Gram matrix of 10,000 × 20",
        "scikit-learn's `rbf_kernel`",
    ),
    (
        "core",
        "one Gram and one eigh",
        "`KernelMean().fit`, 2,000 rows",
        "one Gram matrix and one `eigh` of NumPy",
    ),
)
"""Group, a part of the ratio's name, and the first two cells of the README's row."""

SIDE_BY_SIDE = ROOT / "docs" / "evidence" / "coming-from.json"
"""Results of benchmarks/peers/coming_from.py, which the table has below those of ``make bench``."""

TASKS = (
    (
        "`KernelRidge`",
        "kernel ridge regression, tuned, 331 rows",
        "scikit-learn's `GridSearchCV(KernelRidge)`, 63 candidates",
    ),
    ("MAPIE", "jackknife+ prediction intervals, 331 rows", "MAPIE around `KernelRidge`"),
    ("hyppo", "a two-sample and an independence test, 999 permutations", "hyppo's MMD and Dcorr"),
    ("dcor", "the same", "dcor's energy and distance covariance tests"),
    ("`KernelPCA`", "kernel PCA, ten components of 1797 × 64", "scikit-learn's `KernelPCA`"),
)
"""A part of the task's title, and the first two cells of the README's row."""


def _git(*arguments: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def save(group: str, ratios: Sequence[Ratio]) -> None:
    """Add the ratios of a group to the results, with the commit that they are of."""
    results: dict[str, Any] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    commit = _git("rev-parse", "--short", "HEAD")
    if _git("status", "--porcelain", "--", "src", "benchmarks"):
        commit += "-dirty"
    lines = []
    for ratio in ratios:
        line = {"what": ratio.what, "ours": ratio.ours, "peer": ratio.peer, "unit": ratio.unit}
        lines.append(line)
    results[group] = {"commit": commit, "ratios": lines}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def speed_up(ours: float, peer: float) -> str:
    """Return how many times faster, with two digits."""
    times = peer / ours
    if times >= 100:
        return f"{float(f'{times:.2g}'):,.0f}×"
    return f"{times:.2g}×"


def table(results: dict[str, Any], tasks: dict[str, Any]) -> str:
    """Return the README's table; larger is better."""
    lines = ["| task | compared with | speed-up |", "|---|---|---|"]
    for part, what, peer in TASKS:
        (task,) = (found for title, found in tasks.items() if part in title)
        times = speed_up(task["ours"]["seconds"], task["peer"]["seconds"])
        lines.append(f"| {what} | {peer} | {times} |")
    for group, part, what, peer in ROWS:
        (ratio,) = (each for each in results[group]["ratios"] if part in each["what"])
        lines.append(f"| {what} | {peer} | {speed_up(ratio['ours'], ratio['peer'])} |")
    return "\n".join(lines)


def note(results: dict[str, Any]) -> str:
    """Return the sentences above the table, with the commits that were measured."""
    commits = sorted({results[group]["commit"] for group, *_ in ROWS})
    return (
        "A speed-up of 2× means that muhat takes half the time of the other package; below 1×, "
        f"muhat is slower. The first {len(TASKS)} rows compare processor times on one thread "
        f"(`benchmarks/peers/coming_from.py`). The other {len(ROWS)} compare wall times on two "
        f"cores (`make bench`, commit {' and '.join(commits)})."
    )


def committed() -> tuple[str, str]:
    """Return the sentences and the table of the committed results."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    tasks = json.loads(SIDE_BY_SIDE.read_text(encoding="utf-8"))
    return note(results), table(results, tasks)


if __name__ == "__main__":
    print("\n\n".join(committed()))
