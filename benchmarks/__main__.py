"""Run benchmarks, print their ratios, exit with 1 if a limit is missed: ``make bench``."""

import sys
from importlib import import_module

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


def main(groups: list[str]) -> bool:
    """Run the benchmarks of these groups and return whether a limit was missed."""
    missed = False
    for group in groups:
        for benchmark in import_module(f"benchmarks.{group}").BENCHMARKS:
            for ratio in benchmark():
                print(ratio, flush=True)
                missed |= not ratio.kept
    return missed


if __name__ == "__main__":  # a cluster's workers import this module too
    sys.exit(main(sys.argv[1:] or list(GROUPS)))
