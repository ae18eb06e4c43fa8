"""Figures of a test of groups."""

from __future__ import annotations

from muhat._wording import p_value_text
from muhat.figures._plot import Bar, Bars
from muhat.testing import GroupResult

MAX_BARS = 20
"""Groups that are drawn, the smallest p-values first."""


def groups_bars(result: GroupResult) -> Bars:
    """Return how far the groups are from the rest, with their corrected p-values."""
    bars = []
    for each in result.groups[:MAX_BARS]:
        p = p_value_text(each.p_value, result.n_permutations, result.is_complete)
        bars.append(Bar(str(each.group), each.mmd, p))
    return Bars(
        "Groups against the rest",
        "Bars: the distance (MMD) of a group's kernel mean from that of all other rows. A small "
        "group is far away by chance; its p-value allows for that.",
        ("group", f"p, corrected for {len(result.groups):,} groups"),
        bars,
        axis="MMD from the rest",
    )
