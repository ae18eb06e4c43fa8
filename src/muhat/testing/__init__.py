"""Tests of two samples, groups, independence and drift: many statistics, one exact p-value."""

from muhat.testing._drift import DriftDetector
from muhat.testing._drift_results import DriftResult
from muhat.testing._group_results import GroupResult
from muhat.testing._groups import GroupTest
from muhat.testing._independence import IndependenceTest
from muhat.testing._mmd import mmd
from muhat.testing._results import IndependenceResult, Result, SingleTest
from muhat.testing._shrunk_covariance import ShrunkCovariance
from muhat.testing._statistics import MMD, STATISTICS, ShrunkMeans, Spectral, Statistic
from muhat.testing._two_sample_results import TwoSampleResult, Witness
from muhat.testing._two_samples import TwoSampleTest

__all__ = [
    "MMD",
    "STATISTICS",
    "DriftDetector",
    "DriftResult",
    "GroupResult",
    "GroupTest",
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
    "Witness",
    "mmd",
]
