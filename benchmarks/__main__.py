"""Run every benchmark and print its ratios: ``make bench``; exit code 1 if a limit is missed."""

import sys

from benchmarks import approximation, cluster, core, evidence

missed = 0
for benchmark in (*core.ALL, *evidence.ALL, *approximation.ALL, *cluster.ALL):
    for ratio in benchmark():
        print(ratio, flush=True)
        missed += not ratio.kept
sys.exit(missed > 0)
