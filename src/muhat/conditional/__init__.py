"""Conditional means: what y is, and how sure, given x, by every filter and with exact leave-one-out."""

from muhat.conditional._distribution import ConditionalDistribution
from muhat.conditional._estimator import ConditionalChoice, ConditionalMean

__all__ = ["ConditionalChoice", "ConditionalDistribution", "ConditionalMean"]
