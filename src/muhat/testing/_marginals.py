"""Feature by feature, how far two samples are apart: the energy distance of each column, with corrected p-values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, slices
from muhat.testing._permutations import AT_ONCE, PermutationTable


@dataclass(frozen=True)
class FeatureDifference:
    """How much two samples differ in one feature, all others left aside."""

    name: str
    share: float
    """The energy distance as a share of 2 E|x − y|, the most it can be: 0 for equal samples, 1 for two constants."""
    shift: float
    """Mean of the first sample less that of the second, in standard deviations of the pool."""
    p_value: float
    """Corrected for the number of features: exact for the question whether any of them differs."""


def feature_differences(Z: Array, labels: Array, names: tuple[str, ...]) -> tuple[FeatureDifference, ...]:
    """Return the difference in every column of the pooled rows, the largest first; columns of labels are permutations.

    With both distribution functions F and G, the energy distance 2E|x−y| − E|x−x'| − E|y−y'| is 2 ∫ (F − G)².
    """
    N, n = len(Z), int(labels[:, 0].sum())
    integrals = np.empty((Z.shape[1], labels.shape[1]))
    largest = np.empty(Z.shape[1])
    share_of_pool = np.arange(1, N) / N
    for column, values in enumerate(Z.T):
        order = values.argsort(kind="stable")
        gaps = np.diff(values[order])
        for some in slices(0, labels.shape[1], max(1, AT_ONCE // N)):
            F = np.cumsum(labels[order, some], axis=0, dtype=np.float64)[:-1] / n
            # The pool's distribution function is a mean of F and G, so that F − G = (F − pool) N/m.
            integrals[column, some] = (N / (N - n)) ** 2 * (gaps @ (F - share_of_pool[:, None]) ** 2)
        first = labels[order, 0]
        F, G = (np.cumsum(each)[:-1] / each.sum() for each in (first, ~first))
        largest[column] = gaps @ (F * (1 - G) + G * (1 - F))  # E|x − y|
    table = PermutationTable(integrals, integrals.max(axis=1))
    shares = np.divide(integrals[:, 0], largest, out=np.zeros_like(largest), where=largest > 0)
    spread = Z.std(axis=0)
    gap = Z[labels[:, 0]].mean(axis=0) - Z[~labels[:, 0]].mean(axis=0)
    shifts = np.divide(gap, spread, out=np.zeros_like(spread), where=largest > 0)
    found = [
        FeatureDifference(name, float(share), float(shift), float(p))
        for name, share, shift, p in zip(names, shares, shifts, table.corrected, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: (each.p_value, -each.share)))
