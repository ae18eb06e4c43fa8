"""Kernel principal components: scores, denoising, novelty, and how many components."""

from muhat.pca._choice import ComponentChoice, ComponentPath
from muhat.pca._estimator import KernelPCA
from muhat.pca._result import ComponentsResult, describe_components

__all__ = [
    "ComponentChoice",
    "ComponentPath",
    "ComponentsResult",
    "KernelPCA",
    "describe_components",
]
