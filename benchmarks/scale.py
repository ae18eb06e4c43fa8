"""Many rows: memory and time of exact products, of Nyström's features, of streams and of files."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem

from benchmarks.made import made_parquet
from benchmarks.timing import Ratio, medians
from muhat import KernelMean
from muhat._arrays import available_cores, share_between_cores
from muhat.data import ArraySource, ReservoirSample
from muhat.filters import FILTERS
from muhat.gram import FeatureProblem, FeatureSums, Folds, Nystrom
from muhat.kernels import Gaussian
from muhat.selection import LeaveOneOut

GIB = 2.0**30
SIGMA = np.sqrt(40.0)

IN_A_PROCESS = """
import json, time
import numpy as np
from muhat import ConditionalMean, KernelMean, compare
from muhat.gram import Nystrom
from muhat.data import open_batches
from muhat.kernels import Gaussian

class Made:
    '''Batches that are made anew in every pass, so that nothing of them is held.'''
    def __init__(self, rows): self.rows = rows
    def __iter__(self):
        for start in range(0, self.rows, 8192):
            yield np.random.default_rng(start).normal(size=(min(8192, self.rows - start), 20))

def peak():
    with open('/proc/self/status') as status:  # getrusage would tell the parent's peak too
        return 1024 * int(next(line for line in status if line.startswith('VmHWM')).split()[1])
{setup}
before, start = peak(), time.perf_counter()
{work}
print(json.dumps([peak() - before, time.perf_counter() - start]))
"""

CHEAP = ("kme", "s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method")
"""Filters with a cheap exact leave-one-out score."""


def measured(work: str, setup: str = "") -> tuple[float, float]:
    """Return by how many bytes some work raises the peak of a fresh process, and its seconds."""
    code = IN_A_PROCESS.format(setup=setup, work=work)
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    bytes_, seconds = (float(part) for part in output.splitlines()[-1].strip("[]").split(","))
    return bytes_, seconds


def blocks(n: int = 100_000) -> Iterator[Ratio]:
    """(i) The memory of an exact fit, its parameter chosen by k-fold."""
    setup = f"X = np.random.default_rng(0).normal(size=({n}, 20))"
    peak, seconds = measured("KernelMean(gram='blocks', filter='nu-method').fit(X)", setup)
    print(f"(i) exact fit of {n} rows with 5 folds: {seconds:.0f} s")
    yield Ratio(
        f"(i) peak memory of gram='blocks', n = {n}, above the data",
        peak / GIB,
        1.0,
        1.0,
        unit=" GiB",
    )


def nystrom(n: int = 1_000_000, m: int = 500) -> Iterator[Ratio]:
    """(j) A fit, every filter scored, against computing the features alone."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    peer = Nystroem(gamma=1 / (2 * SIGMA**2), n_components=m, random_state=0).fit(X[:10_000])
    mean = KernelMean(gram=Nystrom(m), kernel=Gaussian(SIGMA))
    filters = [FILTERS[name]() for name in CHEAP]
    every = KernelMean(gram=Nystrom(m), kernel=Gaussian(SIGMA), filter=filters)
    ours, all_filters, transform = medians(
        lambda: mean.fit(X), lambda: every.fit(X), lambda: peer.transform(X), rounds=1
    )
    what = f"n = {n:g}, against Nystroem.transform"
    yield Ratio(f"(j) KernelMean(Nystrom({m})), {what}", ours, transform, 1.2)
    yield Ratio(f"(j) the same with all filters, {what}", all_filters, transform, 1.2)
    _say_bound(n, m, transform)


def _say_bound(n: int, m: int, transform: float) -> None:
    """Print what a fit cannot do without: k(L, x) twice, one Σ k kᵀ and one product with (m, m)."""
    rows = min(n, 8192)
    X, Y = np.random.default_rng(0).normal(size=(2, rows, 20))
    kernel, W = Gaussian(SIGMA), np.eye(m)
    values = kernel(X, Y[:m])
    W = W[: values.shape[1], : values.shape[1]]
    chunks = [slice(None)] * available_cores()

    def on_every_core(work: Callable[[], object]) -> Callable[[], object]:
        return lambda: share_between_cores(lambda _: work(), chunks)

    seconds = medians(
        on_every_core(lambda: kernel(X, Y[:m])),
        on_every_core(lambda: values.T @ values),
        on_every_core(lambda: values @ W),
        rounds=5,
    )
    each = n / (rows * len(chunks)) * np.array(seconds)
    least = 2 * each[0] + each[1] + each[2]
    print(
        f"(j) bound by BLAS: kernel values twice {2 * each[0]:.1f} s, their products "
        f"{each[1]:.1f} s, one rotation {each[2]:.1f} s: {least / transform:.2f} of the transform"
    )


def passes(rows: int = 200_000, sizes: tuple[int, ...] = (200, 500, 1000)) -> Iterator[Ratio]:
    """(m) What each pass over the rows costs, for docs/scale.md; it prints, without a limit."""
    d = 20
    X = np.random.default_rng(0).normal(size=(rows, d))
    source, kernel = ArraySource(X), Gaussian(SIGMA)
    for m in sizes:
        features = Nystrom(m).resolve(kernel, X[:20_000])
        summing = partial(FeatureSums.from_source, source, features, Folds())
        sums = summing()
        problem = FeatureProblem(features, sums, source)
        filters = [FILTERS[name]().bounded_by(1.0) for name in CHEAP]
        drawing, adding, leaving = medians(
            lambda: source.total(partial(ReservoirSample.from_batch, size=20_000)),
            summing,
            lambda problem=problem, filters=filters: LeaveOneOut().choices(problem, filters),
            rounds=1,
        )
        each = ", ".join(
            f"{what} {1e6 * seconds / rows:.2f}"
            for what, seconds in (
                ("drawing", drawing),
                ("summing up", adding),
                ("leaving out", leaving),
            )
        )
        size = 8 * (sums.covariance.size + sums.mean.size) / 2**20
        print(
            f"(m) m = {m}, d = {d}: microseconds per row on both cores: {each}; "
            f"a summary has {size:.2f} MiB"
        )
    yield from ()


def growth(
    sizes: tuple[int, int, int] = (10_000, 100_000, 1_000_000), m: int = 200
) -> Iterator[Ratio]:
    """(k) Time and memory of streams as they get longer."""
    taken, peaks = [], []
    for rows in sizes:
        work = f"KernelMean(gram=Nystrom({m}), kernel=Gaussian({SIGMA})).fit_batches(Made({rows}))"
        peak, seconds = measured(work)
        taken.append(seconds)
        peaks.append(peak)
    slope = float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])
    print(
        "(k) "
        + ", ".join(
            f"{rows} rows {seconds:.2f} s" for rows, seconds in zip(sizes, taken, strict=True)
        )
    )
    yield Ratio(
        f"(k) exponent of time in n, from {sizes[0]:g} to {sizes[2]:g} rows",
        slope,
        1.0,
        1.1,
        unit="",
    )
    what = f"(k) peak memory of a stream of {sizes[2]:g} rows, against one of {sizes[1]:g}"
    yield Ratio(what, peaks[2] / GIB, peaks[1] / GIB, 1.25, unit=" GiB")


def parquet(n: int = 10_000_000, m: int = 200) -> Iterator[Ratio]:
    """(l) Many rows of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.parquet"
        made_parquet(path, n, 20, seed=0, dtype="float32")
        size = path.stat().st_size / GIB
        work = f"mean = KernelMean(gram=Nystrom({m})).fit_batches(open_batches({str(path)!r}))"
        peak, seconds = measured(work)
        by_arrow = "from pyarrow.parquet import ParquetFile"
        reading = f"for batch in ParquetFile({str(path)!r}).iter_batches(8192): batch.columns"
        _, read = measured(reading, by_arrow)
        features = f"z = Nystrom({m}).resolve(Gaussian({SIGMA}), next(iter(Made({min(n, 8192)}))))"
        _, one_pass = measured(f"for batch in Made({min(n, 200_000)}): z(batch)", features)
        _, made = measured(f"for batch in Made({min(n, 200_000)}): pass")
    one_pass = max(one_pass - made, 0.0) * n / min(n, 200_000)
    print(f"(l) {n} rows, {size:.2f} GiB of Parquet: {seconds:.1f} s")
    print(
        f"(l) its three passes: pyarrow alone reads them in {3 * read:.1f} s; "
        f"one pass of features on one core takes {one_pass:.1f} s, which bounds it if longer"
    )
    yield Ratio(f"(l) peak memory of {n:g} rows from Parquet", peak / GIB, 1.0, 2.0, unit=" GiB")


CALLS = {
    "KernelMean()": "KernelMean().fit(X)",
    "ConditionalMean()": "ConditionalMean().fit(X, y)",
    "compare": "compare(X)",
}
"""The defaults that docs/scale.md times, each in a fresh process after a tiny call."""


def defaults(
    sizes: tuple[int, ...] = (5000, 5001, 50_000),
    columns: tuple[int, ...] = (3, 20),
    calls: tuple[str, ...] = tuple(CALLS),
) -> Iterator[Ratio]:
    """(n) Seconds and memory of the defaults, for docs/scale.md; it prints, without a limit."""
    for name in calls:
        for n in sizes:
            for d in columns:
                made = (
                    f"rng = np.random.default_rng({n + d})\n"
                    f"X = rng.normal(size=(60, {d}))\ny = X[:, 0]\n{CALLS[name]}\n"
                    f"X = rng.normal(size=({n}, {d}))\ny = X[:, 0] + 0.3 * rng.normal(size={n})"
                )
                peak, seconds = measured(CALLS[name], made)
                print(
                    f"(n) {name}, {n} × {d}: {seconds:.2g} s, "
                    f"{peak / 2**20:.0f} MiB beyond the data",
                    flush=True,
                )
    yield from ()


BENCHMARKS = {
    passes: {"rows": 300, "sizes": (10,)},
    defaults: {"sizes": (30,), "columns": (2,), "calls": ("KernelMean()",)},
    nystrom: {"n": 300, "m": 10},
    growth: {"sizes": (100, 200, 300), "m": 10},
    parquet: {"n": 300, "m": 10},
    blocks: {"n": 60},
}
