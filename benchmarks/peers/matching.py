"""KernelMeanMatching beside skada's and adapt's, in an environment that has both.

    python -m venv peers && peers/bin/pip install numpy scipy scikit-learn cvxopt skada adapt
    PYTHONPATH=src peers/bin/python benchmarks/peers/matching.py > docs/evidence/matching-peers.csv

Each minimises ‖(1/n) Σ w_i k(x_i, ·) − μ‖² over 0 ≤ w_i ≤ 10 with mean one; theirs may miss the
mean by 1e-6. adapt's solver is called without the rest of its package, which needs TensorFlow.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np

from muhat import Gaussian, KernelMeanMatching

SIZES = (50, 100, 1000)
SKADA_UP_TO = 100
"""Rows that its solver takes seconds for, and more of them many minutes."""

SHIFTS = (0.5, 1.0)
BOUND = 10.0
SLACK = 1e-6


def ours(X: Any, Y: Any, sigma: float) -> Any:
    """Return our weights."""
    return KernelMeanMatching(kernel=Gaussian(sigma), bound=BOUND).fit(X, Y).weights_


def skada(X: Any, Y: Any, sigma: float) -> Any:
    """Return skada's weights, by the more accurate of its solvers."""
    from skada import KMMReweightAdapter

    adapter = KMMReweightAdapter(
        gamma=1 / (2 * sigma**2), B=BOUND, eps=SLACK, max_iter=10_000, solver="scipy"
    )
    domain = np.concatenate([np.ones(len(X)), -np.ones(len(Y))])
    return adapter.fit(np.concatenate([X, Y]), sample_domain=domain).source_weights_


def adapt(X: Any, Y: Any, sigma: float) -> Any:
    """Return adapt's weights."""
    if "adapt.base" not in sys.modules:
        base, utils = ModuleType("adapt.base"), ModuleType("adapt.utils")
        base.BaseAdaptEstimator, base.make_insert_doc = object, lambda *_: lambda kind: kind  # type: ignore[attr-defined]
        utils.set_random_seed = lambda _: None  # type: ignore[attr-defined]
        package = ModuleType("adapt")
        package.__path__ = [
            next(f"{each}/adapt" for each in sys.path if _is_there(f"{each}/adapt/instance_based"))
        ]
        inner = ModuleType("adapt.instance_based")
        inner.__path__ = [f"{package.__path__[0]}/instance_based"]
        sys.modules |= {
            "adapt": package,
            "adapt.base": base,
            "adapt.utils": utils,
            "adapt.instance_based": inner,
        }
    from adapt.instance_based._kmm import KMM

    solver = KMM.__new__(KMM)
    vars(solver).update(B=BOUND, eps=SLACK, kernel="rbf", gamma=1 / (2 * sigma**2), max_size=10**6)
    vars(solver).update(tol=1e-10, max_iter=1000, verbose=0, random_state=0)
    return np.ravel(solver.fit_weights(X, Y))


def _is_there(path: str) -> bool:
    from pathlib import Path

    return Path(path).is_dir()


def objective(X: Any, Y: Any, sigma: float, weights: Any) -> float:
    """Return the squared distance that is left, of weights brought to mean one."""
    kernel, v = Gaussian(sigma), weights / weights.sum()
    return float(v @ kernel(X) @ v - 2 * v @ kernel(X, Y).mean(axis=1) + kernel(Y).mean())


def named(package: str) -> str:
    """Return a package with its version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def main() -> None:
    """Print a row for each problem and solver."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["n", "shift", "solver", "objective", "above_ours", "largest_weight", "cpu_seconds"]
    )
    solvers: dict[str, Callable[..., Any]] = {"muhat": ours, "skada": skada, "adapt": adapt}
    for n in SIZES:
        for shift in SHIFTS:
            rng = np.random.default_rng(n)
            X, Y = rng.normal(size=(n, 2)), rng.normal(shift, size=(n, 2))
            least = None
            for name, solve in solvers.items():
                if name == "skada" and n > SKADA_UP_TO:
                    continue
                start = process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    weights = solve(X, Y, 1.0)
                seconds = process_time() - start
                value = objective(X, Y, 1.0, weights)
                least = value if least is None else least
                cells = [
                    f"{value:.9g}",
                    f"{value - least:.2g}",
                    f"{weights.max():.6g}",
                    f"{seconds:.2f}",
                ]
                writer.writerow([n, shift, named(name), *cells])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
