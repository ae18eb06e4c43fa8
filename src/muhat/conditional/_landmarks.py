"""``gram="auto"`` of a regression beyond what is decomposed: landmarks until little is missed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat._arrays import Array
from muhat.gram import FeatureMap, Nystrom
from muhat.gram._nystrom import DEFAULT_SIZE
from muhat.gram._plan import Plan
from muhat.kernels import Kernel

MAX_MISSED = 1e-3
"""The share of tr K that landmarks may miss; predictions are then as good as with all rows."""

LANDMARK_COUNTS = (1000, 2000)
"""Numbers of landmarks to try where 500 miss more."""

MAX_WORK = 4e10
"""The most work, rows times squared landmarks: about as long as 5,000 rows are decomposed."""

N_PROBE_ROWS = 2000
"""The most rows on which the share is estimated."""


def with_enough_landmarks(plan: Plan, kernel: Kernel, X: Array) -> Plan:
    """Return the plan of ``gram="auto"`` with as many landmarks as its error asks for."""
    n = len(X)
    m = min(DEFAULT_SIZE, n)
    gram = Nystrom()
    missed = missed_share(gram.resolve(kernel, X), X)
    for larger in LANDMARK_COUNTS:
        if missed <= MAX_MISSED or n * larger**2 > MAX_WORK or larger > n:
            break
        m, gram = larger, Nystrom(larger)
        missed = missed_share(gram.resolve(kernel, X), X)
    found = f"{m} landmarks miss {100 * missed:.2g} % of the trace of the Gram matrix"
    if missed > MAX_MISSED:
        found += f", more than {100 * MAX_MISSED:g} %: gram=Nystrom(m) with more is more accurate"
    return replace(plan, gram=gram, reason=f"{plan.reason}; {found}")


def missed_share(features: FeatureMap, X: Array) -> float:
    """Return tr(K − Z Zᵀ)/tr K, estimated on some of the rows."""
    rows = X[:: -(-len(X) // N_PROBE_ROWS)].astype(np.float64)
    diagonal = features.kernel.diagonal(rows)
    missed = np.maximum(diagonal - (features(rows) ** 2).sum(axis=1), 0)
    total = diagonal.sum()
    if not total > 0:
        return 0.0
    return float(missed.sum() / total)
