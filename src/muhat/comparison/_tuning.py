"""A parameter for every estimator, and a leave-one-out score for every one that has it at a price one can pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muhat._arrays import Array
from muhat.filters import FILTERS, KME, Shrinker, as_filter
from muhat.gram import Problem
from muhat.selection import GCV, RULES, Choice, LeaveOneOut, Rule
from muhat.selection._base import Candidates

EXACT_UP_TO = 300
"""Rows up to which every point is really left out for the filters that have no cheaper exact score."""


@dataclass(frozen=True)
class Tuned:
    """A choice and the rule that made it."""

    choice: Choice
    rule: Rule


def shrinkers_of(filters: Any) -> list[Shrinker]:
    """Return the filters that names and objects stand for, each once, KME first."""
    if filters is None or isinstance(filters, (str, Shrinker)):
        filters = ["auto" if filters is None else filters]
    shrinkers: list[Shrinker] = [KME()]
    for filter in map(as_filter, FILTERS if "auto" in filters else filters):
        if filter not in shrinkers:
            shrinkers.append(filter)
    return shrinkers


def passes(filters: Any = None, standardize: bool = True) -> tuple[str, ...]:
    """Return what ``compare`` passes over batches for, in order, beyond 300 points.

    Examples
    --------
    >>> passes()
    ('standardizing', 'drawing', 'summing up', 'leaving out')
    """
    left_out = any(filter.analytic and not filter.constant for filter in shrinkers_of(filters))
    return ("standardizing",) * standardize + ("drawing", "summing up") + ("leaving out",) * left_out


def tune(problem: Problem, wanted: Rule, filters: Sequence[Shrinker]) -> list[Tuned]:
    """Choose a parameter for each filter, by the wanted rule where it can; what filters share is computed once."""
    rules = [_rule_for(filter, wanted, problem.n) for filter in filters]
    tuned: dict[int, Tuned] = {}
    for kind in dict.fromkeys(kind for kind, _ in rules):
        places = [place for place, (own, _) in enumerate(rules) if own == kind]
        rule = rules[places[0]][1]
        choices = rule.choices(problem, [filters[place] for place in places])
        tuned.update(zip(places, (Tuned(choice, rule) for choice in choices), strict=True))
    return [tuned[place] for place in range(len(filters))]


def _rule_for(filter: Shrinker, wanted: Rule, n: int) -> tuple[str, Rule]:
    """Return the rule for a filter, by name: the wanted one, unless there is nothing to choose or it cannot choose."""
    if filter.parameterless:
        return ("unscored", GCV()) if not _affordable(filter, n) else ("parameterless", LeaveOneOut())
    if isinstance(wanted, LeaveOneOut) and not _affordable(filter, n):
        return "gcv instead", GCV(grid=wanted.grid)
    if isinstance(wanted, GCV) and filter.constant:
        return "loo instead", LeaveOneOut(grid=wanted.grid)
    return "wanted", wanted


def _affordable(filter: Shrinker, n: int) -> bool:
    """Whether the exact leave-one-out score takes less than minutes."""
    return filter.analytic or filter.constant or n <= EXACT_UP_TO


def leave_one_out(problem: Problem, tuned: Sequence[Tuned]) -> list[Array | None]:
    """Return the leave-one-out scores along each grid: known already where that rule chose, None where too dear."""
    known = [each.choice.scores if isinstance(each.rule, LeaveOneOut) else None for each in tuned]
    choices = [each.choice for each, scores in zip(tuned, known, strict=True) if scores is None]
    candidates = [Candidates(choice.filter, choice.grid) for choice in choices]
    missing = [each for each in candidates if problem.n <= EXACT_UP_TO or LeaveOneOut.is_cheap(problem, each)]
    found = dict(zip([id(each.filter) for each in missing], LeaveOneOut().scores(problem, missing), strict=True))
    return [found.get(id(each.choice.filter), scores) for each, scores in zip(tuned, known, strict=True)]


def name_of_rule(rule: Rule) -> str:
    """Return a rule's name, or its class's own."""
    return next((name for name, kind in RULES.items() if type(rule) is kind), type(rule).__name__)
