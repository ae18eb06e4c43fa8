"""Power of the default tests by the weights of their families, on draws for tuning.

``python -m benchmarks.weights 100 499`` takes 100 draws of each law, and 499 permutations.
docs/tests-design.md shows more of the same draws. No seed is that of the evidence, on which nothing
is chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from muhat.testing import IndependenceTest, TwoSampleTest
from muhat.testing import _independence as independence
from muhat.testing import _two_samples as two_samples
from muhat.testing._permutations import PermutationTable
from paper._alternatives import DEPENDENCE, DIFFERENCES, Alternative
from paper.experiments.alternatives_of_tests import (
    FORMER,
    LEVEL,
    plain_dependence,
    plain_difference,
)

SEEDS = {"independence": 910001, "two samples": 331907}
"""Of the draws that weights were chosen on."""

Weights = Sequence[float]

PROBLEMS: Mapping[str, tuple[Any, Any, Mapping[str, Alternative], Any, Sequence[Weights]]] = {
    "independence": (
        IndependenceTest,
        independence,
        DEPENDENCE,
        plain_dependence,
        [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.25, 0.25, 0.5), (0.3, 0.25, 0.45), (0.3, 0.3, 0.4)],
    ),
    "two samples": (
        TwoSampleTest,
        two_samples,
        DIFFERENCES,
        plain_difference,
        [
            *((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.9, 0.1, 0)),
            *((0.9, 0.08, 0.02), (0.88, 0.1, 0.02), (0.85, 0.12, 0.03), (0.85, 0.1, 0.05)),
        ],
    ),
}
"""By problem: the test, its module, the laws, the plain tests and the weights of the families."""


class _Tables:
    """Keeps the table of the last test that a module made a result of."""

    def __init__(self, module: Any) -> None:
        self.module, self.original = module, module.result_fields

    def __enter__(self) -> _Tables:
        self.module.result_fields = self._remember
        return self

    def __exit__(self, *failure: object) -> None:
        self.module.result_fields = self.original

    def _remember(self, table: PermutationTable, candidates: Any) -> dict[str, Any]:
        self.last = table
        fields: dict[str, Any] = self.original(table, candidates)
        return fields


def power(problem: str, repetitions: int, n_permutations: int = 999) -> Iterator[list[Any]]:
    """Yield, for each law, the power of the default by its weights, after that of other tests.

    These are the plain tests and one soft maximum of all statistics.
    """
    test, module, laws, plain, weights = PROBLEMS[problem]
    for place, (name, law) in enumerate(laws.items()):
        rejected = []
        for number in range(repetitions):
            rng = np.random.default_rng(
                [SEEDS[problem], list(PROBLEMS).index(problem), place, number]
            )
            X, Y = law.draw(rng, law.n)
            options: dict[str, Any] = {"n_permutations": n_permutations, "n_jobs": 1}
            options["random_state"] = int(rng.integers(2**31))
            p_values = list(plain(X, Y, n_permutations, rng).values())
            p_values.append(test(**FORMER[problem], **options).test(X, Y).p_value)
            with _Tables(module) as tables:
                test(**options).test(X, Y)
            for some in weights:
                families = []
                for family, weight in zip(tables.last.families, some, strict=True):
                    if weight:
                        families.append(replace(family, weight=float(weight)))
                p_values.append(replace(tables.last, families=tuple(families)).p_value)
            rejected.append(np.array(p_values) <= LEVEL + 1e-9)
        yield [name, law.n, *np.mean(rejected, axis=0).tolist()]


def main(repetitions: int, n_permutations: int) -> None:
    """Print a table for each problem."""
    for problem, (*_, weights) in PROBLEMS.items():
        print(f"{problem}, {repetitions} draws; plain tests, one soft maximum, weights {weights}")
        for name, n, *powers in power(problem, repetitions, n_permutations):
            print(
                f"| {name} ({n}) | " + " | ".join(f"{each:.2f}" for each in powers) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
