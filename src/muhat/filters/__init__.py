"""Filters s_λ: what is left of each component of the empirical mean. One small class per estimator of the paper."""

from muhat.filters._base import Filter, Iteration, Shrinker
from muhat.filters._spectral import (
    KME,
    Componentwise,
    IteratedTikhonov,
    Landweber,
    NuMethod,
    Showalter,
    SimpleShrinkage,
    Tikhonov,
    TruncatedSVD,
)

FILTERS: dict[str, type[Shrinker]] = {
    "kme": KME,
    "s-kmse": SimpleShrinkage,
    "f-kmse": Tikhonov,
    "iterated-tikhonov": IteratedTikhonov,
    "landweber": Landweber,
    "nu-method": NuMethod,
    "showalter": Showalter,
    "tsvd": TruncatedSVD,
    "componentwise": Componentwise,
}
"""The estimators of the paper, and Showalter's filter, by name."""

ALIASES = {"tikhonov": "f-kmse", "accelerated-landweber": "nu-method"}
"""Other names of the same."""

AUTO = ("kme", "f-kmse")
"""What ``filter="auto"`` chooses from: the plain average, and the filter that was never worse by the rule that it is
chosen by (``LeaveOneOut(bias_factor="auto")``). The largest of many noisy scores is not a gain."""


def name_of(filter: Shrinker) -> str:
    """Return the name of an estimator of the paper, such as 'f-kmse', or the class's own."""
    return next(
        (name for name, kind in FILTERS.items() if type(filter) is kind), type(filter).__name__
    )


__all__ = ["ALIASES", "AUTO", "FILTERS", "Filter", "Iteration", "Shrinker", "name_of"]
__all__ += ["KME", "IteratedTikhonov", "Landweber", "SimpleShrinkage", "Tikhonov"]
__all__ += ["Componentwise", "NuMethod", "Showalter", "TruncatedSVD"]
