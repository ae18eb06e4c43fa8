"""Filters s_λ: how much of each component of the empirical mean an estimator keeps.

There is one small class for each estimator of the paper.
"""

from muhat._registry import parts_by_name
from muhat.filters import _spectral
from muhat.filters._base import Filter, Iteration, Shrinker
from muhat.filters._spectral import *  # noqa: F403

FILTERS: dict[str, type[Shrinker]] = parts_by_name(_spectral)
"""The estimators of the paper, and Showalter's filter, by name."""

ALIASES = {alias: name for name, kind in FILTERS.items() for alias in kind.aliases}
"""Other names of the same filters."""

AUTO = tuple(name for name, kind in FILTERS.items() if kind.in_auto)
"""What ``KernelMean(filter="auto")`` chooses from: the plain average and F-KMSE.

F-KMSE was never worse than the plain average by the rule that chooses between them
(``LeaveOneOut(bias_factor="auto")``). A longer list would not help: the largest of many noisy
scores is not a gain."""

CONDITIONAL_AUTO = tuple(name for name, kind in FILTERS.items() if kind.in_conditional_auto)
"""What ``ConditionalMean(filter="auto")`` chooses from: filters with a cheap exact score."""


def name_of(filter: Shrinker) -> str:
    """Return the name of an estimator of the paper, such as 'f-kmse', or that of the class."""
    return filter.name


__all__ = ["ALIASES", "AUTO", "CONDITIONAL_AUTO", "FILTERS"]
__all__ += ["Filter", "Iteration", "Shrinker", "name_of"]
__all__ += _spectral.__all__
