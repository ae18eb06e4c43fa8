"""The waiting times of whole calls, against one eigendecomposition or a bare interpreter."""

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.timing import Ratio, medians
from muhat import ConditionalMean, Gaussian, IndependenceTest, KernelMean, TwoSampleTest
from muhat.filters import Tikhonov
from muhat.gram import DenseGram, DenseProblem
from muhat.gram._factor import factor_of_sample
from muhat.selection import LeaveOneOut
from muhat.selection._base import Candidates
from muhat.selection._leave_one_out import gain_errors
from muhat.selection._on_factor import ProductProblem, choose_on_factor
from muhat.selection._smoother import LeaveOneOutSmoother

BASE = "import sklearn.base, scipy.stats"
"""What every command imports before it can compute anything."""


def _say_load() -> None:
    """Print how busy the machine is, where it says so: ratios are for an idle one."""
    if hasattr(os, "getloadavg"):
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


def _gram(n: int) -> np.ndarray:
    """Return the Gram matrix, divided by n, of normal rows in 20 dimensions."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    return Gaussian().resolve(X)(X) / n


def two_samples(
    sizes: Sequence[tuple[int, float]] = ((1000, 0.8), (500, 0.4), (5000, 2.0)),
    dimensions: Sequence[int] = (2, 5, 20),
    n_eigh: int = 2000,
    rounds: int = 3,
) -> Iterator[Ratio]:
    """TwoSampleTest().test with 999 permutations, its picture and intervals included."""
    K = _gram(n_eigh)
    _say_load()
    for n, limit in sizes:
        for d in dimensions:
            rng = np.random.default_rng(d)
            X, Y = rng.normal(size=(n, d)), rng.normal(0.1, size=(n, d))
            test = TwoSampleTest(random_state=0)
            ours, eigh = medians(
                lambda test=test, X=X, Y=Y: test.test(X, Y),
                lambda: np.linalg.eigh(K),
                rounds=rounds,
            )
            what = f"TwoSampleTest().test, n = m = {n}, d = {d}, against eigh({n_eigh})"
            yield Ratio(what, ours, eigh, limit)


def independence(
    sizes: Sequence[tuple[int, float]] = ((400, 0.4), (2000, 1.5), (5001, 2.0), (50_000, 6.0)),
    n_eigh: int = 2000,
    rounds: int = 3,
) -> Iterator[Ratio]:
    """IndependenceTest().test of two columns and one: matrices, and landmarks beyond 3000 rows."""
    K = _gram(n_eigh)
    _say_load()
    for n, limit in sizes:
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 2))
        y = X[:, :1] ** 2 + rng.normal(size=(n, 1))
        test = IndependenceTest(random_state=0)
        ours, eigh = medians(
            lambda test=test, X=X, y=y: test.test(X, y), lambda: np.linalg.eigh(K), rounds=rounds
        )
        what = f"IndependenceTest().test, n = {n}, d = 2 and 1, against eigh({n_eigh})"
        yield Ratio(what, ours, eigh, limit)


def whole_fits(
    cases: Sequence[tuple[int, int, float]] = ((5000, 3, 0.1), (5000, 20, 0.35), (2000, 20, 1.0)),
    rounds: int = 1,
) -> Iterator[Ratio]:
    """KernelMean().fit against its Gram matrix and one eigh; and what its choice loses."""
    for n, d, limit in cases:
        _say_load()
        X = np.random.default_rng(n + d).normal(size=(n, d))
        kernel = Gaussian().resolve(X)
        ours, peer = medians(
            lambda X=X: KernelMean().fit(X),
            lambda X=X, kernel=kernel, n=n: np.linalg.eigh(kernel(X) / n),
            rounds=rounds,
        )
        mu = KernelMean().fit(X)
        print(f"KernelMean().fit, {n} × {d}: {mu.gram_reason_}")
        yield Ratio(
            f"KernelMean().fit, {n} × {d}, against one Gram and one eigh", ours, peer, limit
        )
        yield _lost_by_choice(X, mu)


def _lost_by_choice(X: np.ndarray, mu: KernelMean) -> Ratio:
    """Return by how much the exact score at the chosen λ falls short of the best one."""
    from muhat._parts import Parts
    from muhat.mean import solve

    dense = KernelMean(gram="dense", kernel=mu.kernel_)
    parts = Parts.from_arguments("KernelMean", **dense.get_params(deep=False))
    solution = solve(parts, X, np.full(len(X), 1 / len(X)))
    problem, best = solution.problem, solution.best
    if best.parameter is None or mu.choice_.parameter is None:
        return Ratio("what the choice of no parameter loses", 0.0, 1.0, 0.1, unit="")
    rule = LeaveOneOut(bias_factor=best.rule.bias_factor)
    candidates = Candidates(best.filter, np.array([mu.choice_.parameter, best.parameter]))
    own, largest = rule.prepare(problem, [candidates]).gains(0, candidates.grid)
    error = gain_errors(problem, problem.rows, [best]).standard_errors[0]
    what = f"what the chosen λ loses, {len(X)} × {X.shape[1]}, against the gain's standard error"
    return Ratio(what, max(float(largest - own), 0.0), error, 0.1, unit="")


SETTINGS = tuple((d, width) for d in (5, 8, 20, 50) for width in (0.3, 0.5, 1.0))
"""Columns, and bandwidths in units of the median."""


def choices_on_factors(
    n: int = 1500, settings: Sequence[tuple[int, float]] = SETTINGS, draws: int = 2
) -> Iterator[Ratio]:
    """What F-KMSE's λ loses by being chosen on a factor, and how far its gain is off.

    Normal rows, rows of normal mixtures with heavy tails, and exponential ones.
    """
    rule, filter = LeaveOneOut(bias_factor="auto"), Tikhonov()
    lost, off, decomposed = [0.0], [0.0], 0
    for seed in range(100, 100 + draws):
        for d, width in settings:
            for X in _made(np.random.default_rng([seed, d]), n, d):
                kernel = Gaussian(width * Gaussian().resolve(X).bandwidth)
                gram = DenseGram.from_sample(kernel, X)
                found = choose_on_factor(
                    ProductProblem(gram), rule, [filter], factor_of_sample(kernel, X)
                )
                if found is None:
                    decomposed += 1
                    continue
                problem, [own] = DenseProblem(gram), found.choices
                best = rule.choose(problem, filter)
                both = np.array([own.parameter, best.parameter])
                gains = rule.prepare(problem, [Candidates(filter, both)]).gains(0, both)
                error = gain_errors(problem, problem.rows, [best]).standard_errors[0]
                lost.append(float(gains[1] - gains[0]) / error)
                off.append(abs(float(own.gain - gains[0])) / error)
    print(
        f"λ chosen on a factor, {len(lost) - 1} samples of {n} rows, {decomposed} more decomposed: "
        f"gains off by {np.median(off):.2g} of their standard error (median), {max(off):.2g} (most)"
    )
    yield Ratio(
        f"the most that λ chosen on a factor of {n} rows loses, in standard errors of the gain",
        max(lost),
        1.0,
        0.1,
        unit="",
    )


def _made(rng: np.random.Generator, n: int, d: int) -> Iterator[np.ndarray]:
    """Yield normal, mixed and exponential rows."""
    X = rng.normal(size=(n, d))
    yield X
    centres = 3 * rng.normal(size=(5, d))
    yield X * rng.gamma(2.0, size=(n, 1)) + centres[rng.integers(5, size=n)]
    yield rng.exponential(size=(n, d))


def conditional_scores(n: int = 2000, rounds: int = 5) -> Iterator[Ratio]:
    """All leave-one-out scores of a ConditionalMean beyond the decomposition they share."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    _say_load()
    model = ConditionalMean(gram="dense").fit(X, y)
    K, regression = model.kernel_(X) / n, model._fit.regression
    candidates = [Candidates(choice.filter, choice.grid) for choice in model.choices_]
    scores, fit, eigh = medians(
        lambda: LeaveOneOutSmoother(regression).scores(candidates),
        lambda: ConditionalMean().fit(X, y),
        lambda: np.linalg.eigh(K),
        rounds=rounds,
    )
    count = sum(len(each.grid) for each in candidates)
    print(f"ConditionalMean().fit, n = {n}: {fit / eigh:.2f} of one eigh")
    yield Ratio(
        f"{count} leave-one-out scores of a regression, n = {n}, against eigh", scores, eigh, 0.3
    )


def _python(*arguments: str) -> None:
    """Run a fresh interpreter that may keep what it compiles."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def _first_output(*arguments: str, folder: Path) -> float:
    """Return after how many seconds a command, in a folder, writes something on a terminal."""
    import pty  # not on every system

    ours, its = pty.openpty()
    start = time.perf_counter()
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=its, stderr=its, stdin=its, cwd=folder) as job:
        os.read(ours, 1)
        taken = time.perf_counter() - start
        os.close(its)
        while job.poll() is None:  # or the command would wait for somebody to read
            if select.select([ours], [], [], 0.1)[0]:
                with suppress(OSError):  # the end of what a terminal shows
                    os.read(ours, 65536)
    os.close(ours)
    return taken


def commands(rows: int = 768, columns: int = 8, rounds: int = 5) -> Iterator[Ratio]:
    """The command ``muhat`` on a small table, and imports, against a bare interpreter."""
    _say_load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.csv"
        rng = np.random.default_rng(0)
        group = rng.integers(2, size=rows)
        table = np.column_stack([rng.normal(size=(rows, columns)) + 0.2 * group[:, None], group])
        names = ",".join([*(f"x{j}" for j in range(1, columns + 1)), "group"])
        np.savetxt(path, table, delimiter=",", header=names, comments="", fmt="%.6g")
        test = ("-m", "muhat", "test", str(path), "--by", "group")
        whole, helped, imported, base = medians(
            lambda: _python(*test),
            lambda: _python("-m", "muhat", "--help"),
            lambda: _python("-c", "from muhat import KernelMean"),
            lambda: _python("-c", BASE),
            rounds=rounds,
        )
        what = f"against python -c '{BASE}'"
        yield Ratio(f"muhat test, {rows} × {columns}, {what}", whole, base, 2.0)
        yield Ratio(f"muhat --help, {what}", helped, base, 1.0)
        with_linalg = "import numpy, scipy.linalg, sklearn.base"
        imported, base = medians(
            lambda: _python("-c", "from muhat import KernelMean"),
            lambda: _python("-c", with_linalg),
            rounds=3 * rounds,
        )
        yield Ratio(f"from muhat import KernelMean, against {with_linalg}", imported, base, 1.15)
        for name, arguments in _every_command(path).items():
            first = median(
                _first_output("-m", "muhat", *arguments, folder=path.parent) for _ in range(rounds)
            )
            yield Ratio(f"first output of muhat {name}, against a second", first, 1.0, 1.0)


def _every_command(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the arguments of each command on a small table with the column ``group``."""
    table = str(path)
    return {
        "test": ("test", table, "--by", "group"),
        "compare": ("compare", table),
        "independence": ("independence", table, "--y", "group"),
        "groups": ("groups", table, "--by", "group"),
        "predict": ("predict", table, "--target", "group"),
        "drift": ("drift", table, table),
    }


BENCHMARKS = {
    two_samples: {"sizes": ((20, 0.8),), "dimensions": (2,), "n_eigh": 30, "rounds": 1},
    independence: {"sizes": ((20, 0.4),), "n_eigh": 30, "rounds": 1},
    choices_on_factors: {"n": 60, "settings": ((20, 1.0),), "draws": 1},
    whole_fits: {"cases": ((40, 2, 1.0),), "rounds": 1},
    conditional_scores: {"n": 40, "rounds": 1},
    commands: {"rows": 30, "columns": 2, "rounds": 1},
}
"""With the arguments of a tiny run."""
