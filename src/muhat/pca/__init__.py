"""Kernel principal components: scores, denoising, novelty, and how many components."""

from muhat.pca._choice import ComponentChoice, ComponentPath
from muhat.pca._estimator import KernelPCA

__all__ = ["ComponentChoice", "ComponentPath", "KernelPCA"]
