"""The stacked mean: many estimates of a kernel mean, weighted by how they do on points that are left out."""

from muhat.stacking._batch import StackedSample, stacked_means
from muhat.stacking._candidates import (
    Candidate,
    GaussianFit,
    InDegree,
    NuSteps,
    PlainMean,
    WardMixtures,
    default_candidates,
)
from muhat.stacking._embedding import MixedEmbedding
from muhat.stacking._estimator import StackedMean
from muhat.stacking._sample import Folds, Sample, Waves
from muhat.stacking._weights import LeftOutMoments

__all__ = [
    "Candidate",
    "Folds",
    "GaussianFit",
    "InDegree",
    "LeftOutMoments",
    "MixedEmbedding",
    "NuSteps",
    "PlainMean",
    "Sample",
    "StackedMean",
    "StackedSample",
    "WardMixtures",
    "Waves",
    "default_candidates",
    "stacked_means",
]
