"""Features z(x) with ⟨z(x), z(y)⟩ ≈ k(x, y): Nyström's, from landmarks, and random ones, from the kernel alone."""

from muhat.features.base import Approximation, FeatureEmbedding, FeatureMap
from muhat.features.fourier import FourierFeatures, RandomFeatures
from muhat.features.nystrom import Nystrom, NystromFeatures
from muhat.features.summary import Folds, Summary

GRAMS_BY_NAME: dict[str, type[Approximation]] = {"nystrom": Nystrom, "random-features": RandomFeatures}
"""The approximations by name, with their default parameters."""

__all__ = [
    "GRAMS_BY_NAME",
    "Approximation",
    "FeatureEmbedding",
    "FeatureMap",
    "Folds",
    "FourierFeatures",
    "Nystrom",
    "NystromFeatures",
    "RandomFeatures",
    "Summary",
]
