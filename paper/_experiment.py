"""What an experiment is: settings, independent tasks, the table of their results, figure, text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from paper._claims import Claim, Finding

Settings: TypeAlias = dict[str, Any]
"""Everything that the numbers of an experiment depend on; JSON can hold it."""

Task: TypeAlias = dict[str, Any]
"""What one task is given beside the settings; JSON can hold it."""

Row: TypeAlias = dict[str, Any]
"""One row: of a table, with strings, numbers, booleans or None; of a task, also with lists."""


@dataclass(frozen=True)
class Results:
    """The results of an experiment, as they are in its files.

    Parameters
    ----------
    settings : dict
        Everything that the numbers depend on.
    rows : list of dict
        The tidy table.
    provenance : dict
        Versions, source code, commit, machine and seconds of work.
    """

    settings: Settings
    rows: list[Row]
    provenance: dict[str, Any]


def single_task(settings: Settings) -> list[Task]:
    """Return the tasks of an experiment that is not worth dividing: one."""
    return [{}]


def rows_of_tasks(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of all tasks, where they are the table."""
    found: list[Row] = []
    for rows in results:
        found.extend(rows)
    return found


def in_blocks(case: Task, count: int, size: int) -> list[Task]:
    """Return the tasks of a case with ``count`` samples: blocks from ``first`` to ``last``.

    Examples
    --------
    >>> in_blocks({"n": 10}, 5, 3)
    [{'n': 10, 'first': 0, 'last': 3}, {'n': 10, 'first': 3, 'last': 5}]
    """
    starts = range(0, count, size)
    found = []
    for first in starts:
        found.append({**case, "first": first, "last": min(first + size, count)})
    return found


def no_claims(results: Results) -> list[Claim]:
    """Return the claims of an experiment about which the paper makes none."""
    return []


def no_findings(results: Results) -> list[Finding]:
    """Return the findings of an experiment that has none beyond the paper's claims."""
    return []


def no_details(results: Results) -> str:
    """Return what stands under a figure that needs nothing."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment that is divided into tasks, so that it can be interrupted and resumed.

    Its functions are defined at the top level of a module, so that worker processes find them by
    name. Settings, tasks and the rows of a task pass through JSON before they are used: tuples
    arrive as lists and keys as strings.

    Parameters
    ----------
    name : str
        What it is called on the command line and how its files are named, such as ``"figure-3c"``.
    title : str
        One line on what it shows.
    text : str
        What a reader has to know to read its figure.
    settings : callable
        ``settings(quick)`` returns everything that the numbers depend on, the seed included;
        ``quick`` asks for a small version of the experiment that takes seconds.
    run : callable
        ``run(settings, task)`` returns the rows of one task. It is called in another process, on
        one core; it draws random numbers from the seed in the settings and from the task alone.
    figure : callable
        ``figure(results)`` returns the figure; :func:`paper.draw` calls it, with sizes for print.
    tasks : callable, default=single_task
        ``tasks(settings)`` returns the tasks, in order. None needs the result of another.
    table : callable, default=rows_of_tasks
        ``table(settings, results)`` returns the tidy table, from the rows of all tasks in their
        order.
    claims : callable, default=no_claims
        ``claims(results)`` returns what the paper claims, with our number and a verdict.
    findings : callable, default=no_findings
        ``findings(results)`` returns results on what the paper does not state, without verdicts.
    details : callable, default=no_details
        ``details(results)`` returns Markdown that stands under the figure on the evidence page.
    alone : bool, default=False
        Whether times are measured: then its tasks run one at a time, and nothing else beside them.
    """

    name: str
    title: str
    text: str
    settings: Callable[[bool], Settings]
    run: Callable[[Settings, Task], list[Row]]
    figure: Callable[[Results], Any]
    tasks: Callable[[Settings], list[Task]] = single_task
    table: Callable[[Settings, list[list[Row]]], list[Row]] = rows_of_tasks
    claims: Callable[[Results], list[Claim]] = no_claims
    findings: Callable[[Results], list[Finding]] = no_findings
    details: Callable[[Results], str] = no_details
    alone: bool = False

    def is_quick(self, results: Results) -> bool:
        """Whether results are those of the small version."""
        return results.settings == self.settings(True)
