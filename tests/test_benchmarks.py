"""Benchmarks run: each one at a tiny size, so that none is left behind when names change."""

import sys
from importlib import import_module
from math import isfinite

import pytest

from benchmarks.__main__ import GROUPS
from benchmarks.timing import Ratio

ALL = {
    f"{group}.{benchmark.__name__}": (benchmark, tiny)
    for group in GROUPS
    for benchmark, tiny in import_module(f"benchmarks.{group}").BENCHMARKS.items()
}


@pytest.mark.parametrize("name", ALL)
def test_a_benchmark_runs_at_a_tiny_size_and_yields_ratios(name, tmp_path):
    benchmark, tiny = ALL[name]
    if name.startswith(("scale.", "testing.many")) and not sys.platform.startswith("linux"):
        pytest.skip("the peak of a process is read from /proc")
    if name == "approximation.approximation":
        tiny = {**tiny, "folder": tmp_path}
    ratios = list(benchmark(**tiny))
    assert all(isinstance(ratio, Ratio) and isfinite(ratio.ours) for ratio in ratios)
    assert ratios or name in ("scale.passes", "scale.defaults")


def test_a_ratio_says_whether_its_limit_is_kept():
    assert Ratio("quicker", ours=1.0, peer=3.0, limit=2, larger_is_better=True).kept
    assert not Ratio("slower", ours=3.0, peer=1.0, limit=2).kept
    assert "MISSED" in str(Ratio("slower", ours=3.0, peer=1.0, limit=2))
