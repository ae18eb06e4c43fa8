"""Filters s_λ: what is left of each component of the empirical mean. One small class per estimator of the paper."""

from typing import Any

from muhat._messages import refusal, unknown_name
from muhat.filters._base import Filter, Iteration, Shrinker
from muhat.filters._componentwise import Componentwise
from muhat.filters._constant import KME, SimpleShrinkage
from muhat.filters._landweber import Landweber, NuMethod
from muhat.filters._tikhonov import IteratedTikhonov, Tikhonov
from muhat.filters._truncation import TruncatedSVD

FILTERS: dict[str, type[Shrinker]] = {
    "kme": KME,
    "s-kmse": SimpleShrinkage,
    "f-kmse": Tikhonov,
    "iterated-tikhonov": IteratedTikhonov,
    "landweber": Landweber,
    "nu-method": NuMethod,
    "tsvd": TruncatedSVD,
    "componentwise": Componentwise,
}
"""The estimators of the paper by name."""

ALIASES = {"tikhonov": "f-kmse", "accelerated-landweber": "nu-method"}


def as_filter(filter: Any) -> Shrinker:
    """Return the filter that a name or a filter object stands for.

    Examples
    --------
    >>> as_filter("tikhonov")
    Tikhonov()
    """
    if isinstance(filter, Shrinker):
        return filter
    if isinstance(filter, str):
        name = ALIASES.get(filter, filter)
        if name in FILTERS:
            return FILTERS[name]()
        raise ValueError(unknown_name("filter", filter, ["auto", *FILTERS, *ALIASES]))
    raise TypeError(refusal("filter", "a name or a filter object is needed", f"{type(filter).__name__} {filter!r}"))


def name_of(filter: Shrinker) -> str:
    """Return the name of an estimator of the paper, or the class's own.

    Examples
    --------
    >>> name_of(Tikhonov())
    'f-kmse'
    """
    return next((name for name, kind in FILTERS.items() if type(filter) is kind), type(filter).__name__)


__all__ = [
    "ALIASES",
    "FILTERS",
    "KME",
    "Componentwise",
    "Filter",
    "IteratedTikhonov",
    "Iteration",
    "Landweber",
    "NuMethod",
    "Shrinker",
    "SimpleShrinkage",
    "Tikhonov",
    "TruncatedSVD",
    "as_filter",
    "name_of",
]
