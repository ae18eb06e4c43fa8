"""Tests of two samples and of independence: many statistics on one set of permutations, one exact p-value."""

from muhat.testing._independence import IndependenceTest
from muhat.testing._results import IndependenceResult, Result, SingleTest, TwoSampleResult
from muhat.testing._shrunk_covariance import ShrunkCovariance
from muhat.testing._statistics import MMD, STATISTICS, ShrunkMeans, Spectral, Statistic
from muhat.testing._two_samples import TwoSampleTest

__all__ = [
    "MMD",
    "STATISTICS",
    "IndependenceResult",
    "IndependenceTest",
    "Result",
    "ShrunkCovariance",
    "ShrunkMeans",
    "SingleTest",
    "Spectral",
    "Statistic",
    "TwoSampleResult",
    "TwoSampleTest",
]
