"""Many groups: their kernel means estimated together, and learning from them."""

from muhat.groups._estimator import KernelMeans
from muhat.groups._learning import GroupClassifier, GroupRegressor

__all__ = ["GroupClassifier", "GroupRegressor", "KernelMeans"]
