"""Many groups: their kernel means estimated together."""

from muhat.groups._estimator import KernelMeans

__all__ = ["KernelMeans"]
