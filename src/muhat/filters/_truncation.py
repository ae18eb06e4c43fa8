"""Keep the leading components, drop the rest."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array
from muhat.filters._base import Formula
from muhat.gram import Problem

THRESHOLDS = 100
DISTINCT = 1 + 1e-8


@dataclass
class TruncatedSVD(Formula):
    """s_λ(γ) = 1 if γ ≥ λ else 0: projection on the leading kernel principal components (Table 1 of the paper).

    It jumps, so that it has no cheap leave-one-out score: an exact one takes an eigendecomposition for each left-out
    point. The paper chooses its λ by generalised cross-validation (``selection="gcv"``).
    """

    analytic: ClassVar[bool] = False
    B = 1.0
    C = 1.0
    qualification = float("inf")

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        """s_λ(γ) = 1 if γ ≥ λ else 0."""
        return (gamma >= parameter).astype(gamma.dtype)

    def D(self, eta: float, kappa2: float = 1.0) -> float:
        """γ^η < λ^η wherever r_λ = 1."""
        return 1.0

    def grid(self, problem: Problem) -> Array:
        """Return thresholds between neighbouring eigenvalues, at most a hundred, denser among the first."""
        return self.between(problem.spectrum.gamma)

    @staticmethod
    def between(gamma: Array) -> Array:
        """Return thresholds between neighbouring eigenvalues, given ascending, and one below the least of them."""
        descending = gamma.reshape(-1, gamma.shape[-1]).mean(axis=0)[::-1].astype(np.float64)
        positive = descending[descending > 0]
        if not positive.size:
            return np.ones(1)
        following = np.append(positive[1:], positive[-1] / 4)
        between = np.sqrt(positive * following)[positive > DISTINCT * following]
        kept = np.unique(np.geomspace(1, len(between), THRESHOLDS).round().astype(int))
        return between[kept - 1][::-1]
