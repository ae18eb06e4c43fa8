"""The page of a test of groups: which differ from the rest, and in which columns."""

from __future__ import annotations

from muhat._summary import FOUND, NEUTRAL
from muhat._text import number
from muhat._wording import p_value_text, shift_text
from muhat.figures import groups_bars
from muhat.report._data import Context, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.testing import GroupResult

MAX_PAIRS = 50
"""The most pairs in a table."""


def groups_report(result: GroupResult, context: Context) -> Report:
    """Return the page of a test of groups."""
    is_found = result.p_value <= context.level
    what = f"groups by {result.title}" if result.title else "groups"
    return Report(
        kind="Test of groups",
        question=f"Do {len(result.groups):,} {what} differ, and which?",
        verdict=result.verdict(context.level),
        badge="They differ" if is_found else "No difference detected",
        tone=FOUND if is_found else NEUTRAL,
        facts=_facts(result, context.level),
        sections=[
            Section("Groups", (), (), [groups_bars(result), _groups_table(result)]),
            *_pairs_sections(result),
            Section("Columns", (), (), [_columns_table(result)]),
        ],
        data=data_section(context, context.samples("data") or [], ()),
        assumptions=_assumptions(result),
        code=context.code,
        provenance=context.provenance(),
    )


def _p(result: GroupResult, value: float) -> str:
    return p_value_text(value, result.n_permutations, result.is_complete)


def _facts(result: GroupResult, level: float) -> list[Fact]:
    n_found = sum(each.p_value <= level for each in result.groups)
    return [
        Fact("p-value of all groups together", number(result.p_value)),
        Fact("groups found to differ", f"{n_found:,}", f"of {len(result.groups):,}, corrected"),
        Fact("rows", f"{result.n:,}"),
        Fact("permutations", f"{result.n_permutations:,}"),
    ]


def _groups_table(result: GroupResult) -> Table:
    rows = []
    for each in result.groups:
        column = f"{each.column} {shift_text(each.shift)}" if each.column else ""
        rows.append(
            [
                Cell(str(each.group), is_name=True),
                Cell(f"{each.n:,}", float(each.n)),
                Cell(number(each.mmd), each.mmd),
                Cell(_p(result, each.p_value), each.p_value),
                Cell(column, is_name=True),
            ]
        )
    titles = ["group", "rows", "MMD from the rest", "p, corrected", "mean differs most in (SD)"]
    return Table("Every group against all others", titles, rows)


def _pairs_sections(result: GroupResult) -> list[Section]:
    """Return the pairs that differ most; nothing for two groups, or without pairs."""
    if len(result.pairs) < 2:
        return []
    rows = []
    for each in result.pairs[:MAX_PAIRS]:
        rows.append(
            [
                Cell(str(each.first), is_name=True),
                Cell(str(each.second), is_name=True),
                Cell(number(each.mmd), each.mmd),
                Cell(f"p = {each.p_value:.2g}", each.p_value),
            ]
        )
    title = f"The {len(rows):,} of {len(result.pairs):,} pairs with the smallest p-values"
    table = Table(title, ["group", "other group", "MMD", "p, corrected"], rows)
    return [Section("Pairs", (), (), [table])]


def _columns_table(result: GroupResult) -> Table:
    rows = []
    for each in result.features:
        rows.append(
            [
                Cell(each.name, is_name=True),
                Cell(f"{100 * each.share:.1f} %", each.share),
                Cell(_p(result, each.p_value), each.p_value),
                Cell(f"{each.group} {shift_text(each.shift)}", is_name=True),
            ]
        )
    titles = ["column", "share of its spread between groups", "p, corrected", "furthest mean (SD)"]
    return Table("Every column alone", titles, rows)


def _assumptions(result: GroupResult) -> list[str]:
    return [
        "The p-value of all groups together is exact if labels could be exchanged under the design "
        "that was given: rows that are independent of each other, or strata, clusters and pairs.",
        "The p-values of single groups are corrected for the number of groups. Once some groups "
        "differ, those of the others are approximate.",
        "The p-values of pairs are permuted within the pair and corrected for the number of pairs: "
        "they are valid whatever the other groups are.",
        "A group that is not found to differ is not proven to be alike: few rows show little.",
    ]
