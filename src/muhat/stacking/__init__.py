"""The stacked mean: many estimates of a kernel mean, weighted by leave-one-out."""

from muhat.stacking._candidates import (
    Candidate,
    GaussianFit,
    NuSteps,
    PlainMean,
    WardMixtures,
)
from muhat.stacking._copula import GaussianCopula
from muhat.stacking._embedding import MixedEmbedding
from muhat.stacking._estimator import StackedMean, default_candidates
from muhat.stacking._measures import Copula, Recombination
from muhat.stacking._recombined import ClusterJitter, IndependentBlocks
from muhat.stacking._sample import Folds, RandomFourierMoments, StackSample
from muhat.stacking._weights import LeftOutMoments

__all__ = [
    "Candidate",
    "ClusterJitter",
    "Copula",
    "Folds",
    "GaussianCopula",
    "GaussianFit",
    "IndependentBlocks",
    "LeftOutMoments",
    "MixedEmbedding",
    "NuSteps",
    "PlainMean",
    "RandomFourierMoments",
    "Recombination",
    "StackSample",
    "StackedMean",
    "WardMixtures",
    "default_candidates",
]
