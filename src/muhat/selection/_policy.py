"""Which rule chooses for which filter: the one asked for, another that stands in for it, or none and a sentence why.

The same everywhere, from what the rule needs, what the filter needs and what the way to hold the Gram operator gives:

- Leave-one-out is exact and cheap for filters that are analytic or constant. Truncated SVD, the component-wise rule and
  filters of your own that jump take a refit for each point: up to ``REFIT_UP_TO`` points these are done; beyond, and
  where rows do not come again, generalised cross-validation (GCV), the paper's rule for truncated SVD, stands in.
- Where there are only products with A, or rows come once, k-fold stands in for leave-one-out of smooth filters.
- A filter without a parameter has nothing to choose; among others it is scored by leave-one-out or its stand-in.
- GCV is flat for filters that treat all components alike: leave-one-out stands in.
- What is left is refused, before the first row is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from muhat._messages import refusal
from muhat.filters import Shrinker
from muhat.gram import Access, Problem
from muhat.selection._base import Choice, Rule, Scored
from muhat.selection._gcv import GCV
from muhat.selection._kfold import KFold
from muhat.selection._leave_one_out import LeaveOneOut


def rules_for(rule: Rule, filters: Sequence[Shrinker], access: Access, n: int) -> list[Rule]:
    """Return the rule that chooses for each filter; filters that are compared share one where they can.

    Examples
    --------
    >>> from muhat.filters import KME, Tikhonov, TruncatedSVD
    >>> rules_for(LeaveOneOut(), [KME(), Tikhonov()], Access.PRODUCTS | Access.ROWS, n=10**5)
    [KFold(n_splits=5, random_state=0, grid=None), KFold(n_splits=5, random_state=0, grid=None)]
    >>> rules_for(LeaveOneOut(), [TruncatedSVD()], Access.SPECTRUM | Access.ROWS, n=1000)
    [GCV(grid=None)]
    """
    rules = [_rule_for(rule, filter, access, n) for filter in filters]
    fallback = next((each for each in rules if isinstance(each, KFold)), rule)
    if fallback is not rule:
        rules = [
            fallback if filter.needs == Access.PRODUCTS else own for own, filter in zip(rules, filters, strict=True)
        ]
    one_of_each: dict[str, Rule] = {}
    return [one_of_each.setdefault(repr(each), each) for each in rules]


def choices_by(rules: Sequence[Rule], problem: Problem, filters: Sequence[Shrinker]) -> list[Choice]:
    """Return each filter's choice by its rule; what filters with the same rule share is computed once."""
    found: dict[int, Choice] = {}
    for rule in {id(rule): rule for rule in rules}.values():
        places = [place for place, own in enumerate(rules) if own is rule]
        found.update(zip(places, rule.choices(problem, [filters[place] for place in places]), strict=True))
    return [found[place] for place in range(len(filters))]


def _rule_for(rule: Rule, filter: Shrinker, access: Access, n: int) -> Rule:
    if filter.parameterless and not (isinstance(rule, Scored) and rule.grid is None):
        rule = LeaveOneOut()  # there is nothing to choose, and a score is all that is wanted
    for candidate in (rule, _stand_in(rule, filter, n)):
        if candidate is not None and access.covers(candidate.needs(filter)) and candidate.can_choose(filter, n):
            return candidate
    name = type(filter).__name__
    needed = f"{type(rule).__name__} needs all eigenpairs for {name}"
    if Access.SPECTRUM in access:
        needed = f"{type(rule).__name__} cannot choose for {name} where rows come once"
    got = "products with A alone" if Access.PRODUCTS in access else "rows that do not come again"
    advice = (
        "use gram='dense' or 'nystrom'" if filter.needs == Access.SPECTRUM else "use selection='kfold' or gram='dense'"
    )
    raise ValueError(refusal("gram='blocks'" if Access.PRODUCTS in access else "selection", needed, got, advice))


def _stand_in(rule: Rule, filter: Shrinker, n: int) -> Rule | None:
    """Return the rule that chooses where the one asked for cannot, with the same grid."""
    if isinstance(rule, LeaveOneOut):
        if filter.needs == Access.PRODUCTS:
            return KFold(max(2, min(KFold.n_splits, n)), grid=rule.grid)
        return GCV(rule.grid)
    return LeaveOneOut(rule.grid) if isinstance(rule, GCV) and filter.constant else None
