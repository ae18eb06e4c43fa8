"""Conditional means with exact leave-one-out, and importance weights."""

from muhat.conditional._distribution import ConditionalDistribution
from muhat.conditional._estimator import ConditionalMean
from muhat.conditional._matching import KernelMeanMatching

__all__ = ["ConditionalDistribution", "ConditionalMean", "KernelMeanMatching"]
