"""What a claim is, and how its number and verdict are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muhat.paper.experiments.base import Row
from muhat.paper.reproduction import where
from muhat.plots._style import name_of

HOLDS, FAILS = "holds", "does not hold"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and what got of it.

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


def one(rows: Iterable[Row], **conditions: Any) -> Row:
    """Return the only row with these values."""
    (row,) = where(rows, **conditions)
    return row


def told(row: Row, name: str = "improvement", unit: str = " %") -> str:
    """Return a number with its interval, such as "2.6 % [2.1, 3.2]"."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    digits = 2 if max(abs(low), abs(high)) < 10 else 1
    return f"{minus(value, digits)}{unit} [{minus(low, digits)}, {minus(high, digits)}]"


def minus(value: float, digits: int) -> str:
    """Return a number with a real minus sign, and none before zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def listed(parts: Iterable[str]) -> str:
    """Return parts one under the other, inside a cell of a table."""
    return "<br>".join(parts)


def all_or_some(holding: list[str], asked: Iterable[str]) -> str:
    """Return the verdict on a claim about several estimators, given those that it holds for."""
    if not holding:
        return FAILS
    if len(holding) == len(list(asked)):
        return HOLDS
    return "holds only for " + ", ".join(name_of(name) for name in holding)
