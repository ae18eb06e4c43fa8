"""Kernel principal components: scores, denoising, novelty, and how many components."""

from muhat.pca._choice import ComponentPath
from muhat.pca._estimator import KernelPCA

__all__ = ["ComponentPath", "KernelPCA"]
