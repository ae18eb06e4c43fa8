"""Claims of the paper and findings of our own, and how their numbers and verdicts are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paper._estimators import display_name

HOLDS, FAILS = "holds", "does not hold"

NEGLIGIBLE_PERCENT = 0.1
"""An improvement, in percent, that we call none."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, and what we find.

    Attributes
    ----------
    place : str
        Where the paper makes it.
    says : str
        What it says.
    number : str
        Our number with its 95 % confidence interval.
    verdict : str
        "holds", "does not hold" or "holds only for …".
    """

    place: str
    says: str
    number: str
    verdict: str


@dataclass(frozen=True)
class Finding:
    """A result on something that the paper does not state; it has no verdict.

    Attributes
    ----------
    what : str
        What was measured.
    number : str
        The result, with its error.
    """

    what: str
    number: str


def with_interval(
    row: Mapping[str, Any], name: str = "improvement", unit: str = " %", digits: int | None = None
) -> str:
    """Return a number of a table with its interval, with one or two digits by default.

    Examples
    --------
    >>> with_interval({"improvement": 2.63, "improvement_low": 2.1, "improvement_high": 3.2})
    '2.63 % [2.10, 3.20]'
    """
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if digits is None:
        digits = 1
        if max(abs(low), abs(high)) < 10:
            digits = 2
    return f"{decimal(value, digits)}{unit} [{decimal(low, digits)}, {decimal(high, digits)}]"


def decimal(value: float, digits: int) -> str:
    """Return a number with a typographic minus sign, and none before zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def in_one_cell(lines: Iterable[str]) -> str:
    """Return lines one under the other, inside a cell of a table."""
    return "<br>".join(lines)


def verdict(is_true: bool) -> str:
    """Return the verdict on a claim that is true or not."""
    if is_true:
        return HOLDS
    return FAILS


def verdict_for(holding: list[str], asked: Iterable[str]) -> str:
    """Return the verdict on a claim about several estimators, given those that it holds for.

    Examples
    --------
    >>> verdict_for(["f-kmse"], ["f-kmse", "tsvd"])
    'holds only for F-KMSE'
    """
    if not holding:
        return FAILS
    if len(holding) == len(list(asked)):
        return HOLDS
    return "holds only for " + ", ".join(display_name(name) for name in holding)
