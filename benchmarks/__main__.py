"""Run every benchmark, or those named, and print their ratios: ``make bench``; exit code 1 if a limit is missed."""

import sys
from importlib import import_module

GROUPS = ("core", "evidence", "approximation", "products", "scale", "cluster")

missed = 0
for group in sys.argv[1:] or GROUPS:
    for benchmark in import_module(f"benchmarks.{group}").ALL:
        for ratio in benchmark():
            print(ratio, flush=True)
            missed += not ratio.kept
sys.exit(missed > 0)
