"""Run benchmarks, print their ratios, exit with 1 if a limit is missed: ``make bench``.

``--save`` also writes the ratios of these groups to docs/evidence/bench.json, from which the
README's table is made (benchmarks/summary.py).
"""

import sys
from importlib import import_module

from benchmarks.summary import save

GROUPS = (
    "core",
    "stacking",
    "groups",
    "pca",
    "testing",
    "conditional",
    "seconds",
    "evidence",
    "approximation",
    "products",
    "files",
    "scale",
    "cluster",
)


def main(groups: list[str], saved: bool = False) -> bool:
    """Run the benchmarks of these groups and return whether a limit was missed."""
    missed = False
    for group in groups:
        ratios = []
        for benchmark in import_module(f"benchmarks.{group}").BENCHMARKS:
            for ratio in benchmark():
                print(ratio, flush=True)
                ratios.append(ratio)
                missed |= not ratio.kept
        if saved:
            save(group, ratios)
    return missed


if __name__ == "__main__":  # a cluster's workers import this module too
    named = [each for each in sys.argv[1:] if each != "--save"]
    if not set(named) <= set(GROUPS):
        sys.exit(f"python -m benchmarks [--save] [GROUP ...]; groups: {', '.join(GROUPS)}")
    sys.exit(main(named or list(GROUPS), "--save" in sys.argv))
