"""Selection rules: how a filter's parameter is chosen, and how one filter is chosen among many."""

from typing import Any

from muhat._messages import refusal, unknown_name
from muhat.filters import FILTERS, Shrinker
from muhat.selection._base import Choice, Rule
from muhat.selection._gcv import GCV
from muhat.selection._given import Fixed, Given, Rate
from muhat.selection._kfold import KFold
from muhat.selection._leave_one_out import LeaveOneOut
from muhat.selection._lepski import Lepski

RULES: dict[str, type[Rule]] = {"loo": LeaveOneOut, "gcv": GCV, "kfold": KFold, "lepski": Lepski, "rate": Rate}
"""Selection rules by name, with their default parameters."""

LEAVE_OUT_UP_TO = 50
"""Rows up to which ``filter="auto"`` also tries the filters for which every point is really left out."""


def as_rule(selection: Any) -> Rule:
    """Return the rule that a name or a rule object stands for.

    Examples
    --------
    >>> as_rule("kfold")
    KFold(n_splits=5, seed=0, grid=None)
    """
    if isinstance(selection, Rule):
        return selection
    if isinstance(selection, str):
        if selection in RULES:
            return RULES[selection]()
        raise ValueError(unknown_name("selection", selection, RULES))
    got = f"{type(selection).__name__} {selection!r}"
    raise TypeError(refusal("selection", "a name or a rule object is needed", got, "Fixed(0.1) fixes the parameter"))


def every_filter(n: int, rule: Rule) -> list[Shrinker]:
    """Return the filters that ``filter="auto"`` tries on n points: all that the rule can score at a fair price."""
    if not rule.comparable or getattr(rule, "grid", None) is not None:
        needed = (
            "filter='auto' compares filters by a score, each on a grid of its own; 'loo', 'kfold' and 'gcv' have one"
        )
        raise ValueError(refusal("selection", needed, rule, "name the filter"))
    filters = [kind() for kind in FILTERS.values()]
    if isinstance(rule, GCV):
        return [filter for filter in filters if not filter.constant]
    if isinstance(rule, LeaveOneOut) and n > LEAVE_OUT_UP_TO:
        return [filter for filter in filters if filter.analytic]
    return filters


__all__ = [
    "GCV",
    "LEAVE_OUT_UP_TO",
    "RULES",
    "Choice",
    "Fixed",
    "Given",
    "KFold",
    "LeaveOneOut",
    "Lepski",
    "Rate",
    "Rule",
    "as_rule",
    "every_filter",
]
