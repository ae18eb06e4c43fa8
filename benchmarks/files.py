"""Reading text: one pass against pyarrow, all passes of ``muhat compare`` against NumPy."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import csv

from benchmarks.timing import Ratio, medians
from muhat.comparison import passes
from muhat.data import open_batches, read_table


def reading(n: int = 1_000_000) -> Iterator[Ratio]:
    """(o) A CSV of 20 columns with all digits; large samples take a pass for each purpose."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.csv"
        X = np.random.default_rng(0).normal(size=(n, 20))
        csv.write_csv(
            pyarrow.table({f"x{place}": column for place, column in enumerate(X.T, 1)}), path
        )
        one_pass, alone, at_once, by_numpy = medians(
            lambda: sum(len(batch) for batch in open_batches(path)),
            lambda: csv.read_csv(path),
            lambda: read_table(path),
            lambda: np.loadtxt(path, delimiter=",", skiprows=1),
            rounds=1,
        )
    print(f"(o) {n / one_pass:.3g} rows per second in batches")
    yield Ratio(f"(o) a pass over {n:g} rows of CSV, against pyarrow alone", one_pass, alone, 2)
    before = len(passes()) * by_numpy
    yield Ratio(
        f"(o) what compare reads of {n:g} rows, against before",
        at_once,
        before,
        10,
        larger_is_better=True,
    )


BENCHMARKS = {reading: {"n": 300}}
