"""The leave-one-out gain of every choice, whatever rule chose, with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from muhat._parts import as_filters, rule_of_auto
from muhat._tolerances import GAIN_ROUNDING
from muhat.comparison._row import Row
from muhat.data import SampleBatch
from muhat.filters import AUTO, name_of
from muhat.gram import DenseProblem, FeatureProblem, SpectralProblem
from muhat.mean import Solution
from muhat.selection import MAX_ROWS_REFIT, Choice, LeaveOneOut, name_of_rule
from muhat.selection._base import Candidates
from muhat.selection._leave_one_out import gain_errors

N_ROWS_FOR_ERRORS = 1000
"""Rows from which the standard errors of gains are estimated."""


def rows_of(
    solution: Solution, choices: Sequence[Choice], scored: Sequence[Choice | None], risk: float
) -> tuple[tuple[Row, ...], float]:
    """Return a row for each choice, and the number of errors that makes the best one clear.

    Gains are shares of KME's risk.
    """
    problem = cast(SpectralProblem, solution.problem)
    names = [name_of(choice.filter) for choice in choices]
    is_risk = risk > GAIN_ROUNDING * float(problem.trace) * problem.mass_range[1]
    errors: Sequence[float | None] = [None] * len(choices)
    threshold = np.inf
    if is_risk:
        errors, threshold = _errors(solution, scored)
    rows = []
    for name, choice, own, error in zip(names, choices, scored, errors, strict=True):
        row = Row(
            name=name,
            filter=choice.filter,
            parameter=choice.parameter,
            selection="",
            strength=choice.strength,
            at_edge=choice.at_edge,
            index=choice.index,
            grid=choice.grid,
            strengths=choice.strengths,
            scores=None,
            improvements=None,
            standard_error=None,
            shrinkage=choice.shrinkage(problem),
        )
        if names.count(name) > 1:
            row = replace(row, name=repr(choice.filter))
        if not choice.filter.parameterless:
            row = replace(row, selection=name_of_rule(choice.rule))
        if own is not None:
            row = replace(row, scores=own.scores)
            if is_risk:
                row = replace(row, improvements=100 * own.gains / risk)
        if error is not None:
            row = replace(row, standard_error=100 * error / risk)
        rows.append(row)
    return tuple(rows), threshold


def default_row(solution: Solution, risk: float) -> Row:
    """Return the row of what ``KernelMean()`` takes, scored by plain leave-one-out."""
    problem = cast(SpectralProblem, solution.problem)
    rule = cast(LeaveOneOut, rule_of_auto(LeaveOneOut()))
    kappa2 = problem.kappa2(solution.kernel.bound)
    filters = [each.bounded_by(kappa2) for each in as_filters(list(AUTO))]
    choice = rule.best(problem, rule.choices(problem, filters))
    rows, _ = rows_of(solution, [choice], by_leave_one_out(problem, [choice]), risk)
    return rows[0]


def _errors(
    solution: Solution, scored: Sequence[Choice | None]
) -> tuple[list[float | None], float]:
    """Return the standard error of each gain, and the threshold for the largest gain.

    At most a thousand rows are used. A choice without a score has None.
    """
    problem = solution.problem
    if isinstance(problem, FeatureProblem):
        assert solution.drawn is not None
        rows = problem.rows(SampleBatch(solution.drawn[:N_ROWS_FOR_ERRORS], 0))
    else:
        every = slice(None, None, -(-problem.n // N_ROWS_FOR_ERRORS))
        rows = cast(DenseProblem, problem).rows[every]
    found = gain_errors(
        cast(SpectralProblem, problem), rows, [each for each in scored if each is not None]
    )
    known = iter(found.standard_errors)
    errors: list[float | None] = []
    for each in scored:
        error = None
        if each is not None:
            error = next(known)
        errors.append(error)
    return errors, found.threshold


def by_leave_one_out(problem: SpectralProblem, choices: Sequence[Choice]) -> list[Choice | None]:
    """Return each choice with its leave-one-out gains.

    They are known where that rule chose, and None where they are too expensive.
    """
    scored: list[Choice | None] = []
    others: dict[int, Candidates] = {}
    for place, choice in enumerate(choices):
        if _is_plain(choice.rule):
            scored.append(choice)
            continue
        scored.append(None)
        candidates = Candidates(choice.filter, choice.grid)
        if problem.n <= MAX_ROWS_REFIT or LeaveOneOut.is_cheap(problem, candidates):
            others[place] = candidates
    scores = LeaveOneOut().prepare(problem, list(others.values()))
    for number, (place, each) in enumerate(others.items()):
        gains = scores.gains(number, each.grid)
        scored[place] = replace(choices[place], gains=gains, unshrunk=float(scores.unshrunk))
    return scored


def _is_plain(rule: Any) -> bool:
    """Whether a rule's gains are those of plain leave-one-out."""
    return isinstance(rule, LeaveOneOut) and rule.bias_factor in (None, 1)
