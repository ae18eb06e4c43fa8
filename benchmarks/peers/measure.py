"""Other packages' two-sample tests: false rejections, shares of p = 0, and times.

Run it in an environment of its own, which needs none of muhat:

    python -m venv peers && peers/bin/pip install hyppo dcor frouros
    # and another environment for alibi-detect[torch]
    peers/bin/python benchmarks/peers/measure.py paper/experiments/peers_of_tests.json

Packages that cannot be in one environment take one each, and the same file. Failures are recorded.
Draws and permutations for the times can be given too (300 and 49); a level is measured with 99
permutations.
"""

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

DRAWS = 300
PERMUTATIONS = 99
LEVELS = (0.01, 0.05, 0.1)


def hyppo(X: Any, Y: Any, permutations: int) -> float:
    from hyppo.ksample import MMD

    return float(MMD().test(X, Y, reps=permutations, workers=1, auto=False)[1])


def hyppo_as_it_is(X: Any, Y: Any, permutations: int) -> float:
    from hyppo.ksample import MMD

    return float(MMD().test(X, Y, reps=permutations, workers=1)[1])


def dcor(X: Any, Y: Any, permutations: int) -> float:
    from dcor.homogeneity import energy_test

    return float(energy_test(X, Y, num_resamples=permutations, random_state=0).pvalue)


def frouros(X: Any, Y: Any, permutations: int) -> float:
    from frouros.callbacks import PermutationTestDistanceBased
    from frouros.detectors.data_drift import MMD

    callback = PermutationTestDistanceBased(
        num_permutations=permutations, num_jobs=1, random_state=0, name="test"
    )
    detector = MMD(callbacks=[callback])
    detector.fit(X=X)
    return float(detector.compare(X=Y)[1]["test"]["p_value"])


def alibi_detect(X: Any, Y: Any, permutations: int) -> float:
    from alibi_detect.cd import MMDDrift

    detector = MMDDrift(X, backend="pytorch", n_permutations=permutations)
    return float(detector.predict(Y)["data"]["p_val"])


PEERS: dict[str, tuple[str, Callable[[Any, Any, int], float]]] = {
    "hyppo MMD": ("hyppo", hyppo),
    "hyppo MMD as it is called": ("hyppo", hyppo_as_it_is),
    "dcor energy test": ("dcor", dcor),
    "frouros MMD": ("frouros", frouros),
    "alibi-detect MMDDrift": ("alibi-detect", alibi_detect),
}

SAMPLES: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "n = m = 10": lambda rng: (rng.normal(size=(10, 2)), rng.normal(size=(10, 2))),
    "n = m = 25": lambda rng: (rng.normal(size=(25, 2)), rng.normal(size=(25, 2))),
    "three values": lambda rng: (
        rng.integers(3, size=(12, 2)).astype(float),
        rng.integers(3, size=(16, 2)).astype(float),
    ),
}


def levels(
    test: Callable[[Any, Any, int], float], draw: Callable[..., Any], draws: int
) -> dict[str, Any]:
    """Return the shares of p-values up to each level, and of those that are zero."""
    rng = np.random.default_rng(12)
    np.random.seed(12)  # noqa: NPY002 — of packages that draw from it
    p = np.array([test(*draw(rng), PERMUTATIONS) for _ in range(draws)])
    rejected = {str(level): float((p <= level + 1e-9).mean()) for level in LEVELS}
    return {
        "draws": draws,
        "permutations": PERMUTATIONS,
        "rejected": rejected,
        "zero": float((p == 0).mean()),
    }


def seconds(test: Callable[[Any, Any, int], float], permutations: int) -> dict[str, Any]:
    """Return the time of one test at n = m = 500, d = 5, and its processor time with children."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(500, 5)), rng.normal(size=(500, 5))
    test(X[:20], Y[:20], 9)  # compiled, where it is
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    test(X, Y, permutations)
    return {
        "permutations": permutations,
        "wall": time.perf_counter() - start,
        "cpu": sum(os.times()[:4]) - cpu,
    }


def main(path: str, draws: int = DRAWS, permutations: int = 49) -> None:
    """Measure every installed package, and add the results to those in the file."""
    found: dict[str, Any] = {"peers": {}}
    if Path(path).exists():
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    for name, (package, test) in PEERS.items():
        try:
            result: dict[str, Any] = {"version": version(package)}
        except PackageNotFoundError:
            found["peers"].setdefault(name, {"missing": f"{package} was not installed"})
            continue
        result |= {"python": platform.python_version(), "numpy": version("numpy")}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result["levels"] = {
                    place: levels(test, draw, draws) for place, draw in SAMPLES.items()
                }
                if test is not hyppo_as_it_is:  # which permutes nothing beyond 20 rows
                    result["seconds"] = seconds(test, permutations)
        except Exception as problem:  # a peer's failure is a finding
            result["failed"] = f"{type(problem).__name__}: {problem}"
        found["peers"][name] = result
        Path(path).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(name, json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
