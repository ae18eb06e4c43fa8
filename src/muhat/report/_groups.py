"""The page of a test of groups: which differ from the rest, and in which columns."""

from __future__ import annotations

from math import isnan

from muhat._summary import FOUND, NEUTRAL
from muhat._text import number
from muhat._wording import p_value_text
from muhat.figures import (
    Matrix,
    Plot,
    dendrogram_plot,
    different_groups,
    distances_matrix,
    group_column_plots,
    group_map_plot,
    groups_bars,
)
from muhat.figures._groups import MAX_BARS, MAX_LABELS
from muhat.report._data import Context, data_section
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.testing import GroupResult
from muhat.testing._group_results import WHICH_REST
from muhat.testing._wording import quoted_name

MAX_PAIRS = 50
"""The most pairs in a table."""


def groups_report(result: GroupResult, context: Context) -> Report:
    """Return the page of a test of groups."""
    is_found = result.p_value <= context.level
    what = "groups"
    if result.title:
        what = f"groups of column {quoted_name(result.title)}"
    return Report(
        kind="Test of groups",
        question=f"Do {len(result.groups):,} {what} differ, and which?",
        verdict=result.verdict(context.level),
        badge=_badge(result, context.level),
        tone=FOUND if is_found else NEUTRAL,
        facts=_facts(result, context.level),
        sections=[
            Section("Groups", (), (), [groups_bars(result, context.level), _groups_table(result)]),
            *_map_sections(result, context.level),
            *_pairs_sections(result),
            _columns_section(result, context.level),
        ],
        data=data_section(context, context.samples("data") or [], ()),
        assumptions=_assumptions(result),
        code=context.code,
        provenance=context.provenance(),
    )


def _badge(result: GroupResult, level: float) -> str:
    if result.p_value > level:
        return "No difference detected"
    if result.tolerance is None:
        return "They differ"
    if result.tolerance.p_value <= level:
        return "Some differ by more than the tolerance"
    return "They differ, but not detectably by more than the tolerance"


def _p(result: GroupResult, value: float) -> str:
    return p_value_text(value, result.n_permutations, result.is_complete)


def _facts(result: GroupResult, level: float) -> list[Fact]:
    n_found = len(different_groups(result, level))
    facts = [
        Fact("p-value of all groups together", number(result.p_value)),
        Fact("groups found to differ", f"{n_found:,}", f"of {len(result.groups):,}, corrected"),
    ]
    if result.tolerance is not None:
        n_more = sum((each.p_tolerance or 1.0) <= level for each in result.groups)
        note = f"MMD {number(result.tolerance.delta)}, approximate"
        facts.append(Fact("by more than the tolerance", f"{n_more:,}", note))
    return [
        *facts,
        Fact("rows", f"{result.n:,}"),
        Fact("permutations", f"{result.n_permutations:,}"),
    ]


def _map_sections(result: GroupResult, level: float) -> list[Section]:
    """Return the map of the groups, their dendrogram and the matrix; nothing for two groups."""
    found = result.pictures
    if found is None or len(found.labels) < 3:
        return []
    labels = [str(label) for label in found.labels]
    different = different_groups(result, level)
    blocks: list[Plot | Matrix] = [
        group_map_plot(labels, found.coordinates, found.errors, found.shares, different)
    ]
    if len(labels) <= MAX_LABELS:
        blocks.append(dendrogram_plot(labels, found.distances, different))
        blocks.append(distances_matrix(labels, found.distances))
    return [Section("Which groups are similar", (), (), blocks)]


def _groups_table(result: GroupResult) -> Table:
    rows = []
    for each in result.groups:
        row = [
            Cell(str(each.group), is_name=True),
            Cell(f"{each.n:,}", float(each.n)),
            Cell(f"{each.n_rest:,}", float(each.n_rest)),
            Cell(number(each.mmd), each.mmd),
            Cell(_p(result, each.p_value), each.p_value),
        ]
        if each.p_tolerance is not None:
            row.append(Cell(_p(result, each.p_tolerance), each.p_tolerance))
        rows.append([*row, Cell(result.change_text(each), is_name=True)])
    titles = ["group", "rows", "rows of the rest", "MMD from the rest", "p, corrected"]
    if result.tolerance is not None:
        titles.append("p for more than the tolerance, corrected")
    note = (
        f"{WHICH_REST} The last column names the column of the data that differs most: +0.5 means "
        "that its mean is higher than in the rest by 0.5 standard deviations (SD) within groups; "
        "SD × 2 means that its standard deviation is 2 times that within the rest. "
        f"{result.which_deviations}"
    ).strip()
    titles.append("differs most in (SD)")
    return Table("Every group against the rest", titles, rows, note=note)


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
                _distance_cell(each.mmd),
                Cell(f"p = {each.p_value:.2g}", each.p_value),
            ]
        )
    title = f"The {len(rows):,} of {len(result.pairs):,} pairs with the smallest p-values"
    table = Table(title, ["group", "other group", "MMD", "p, corrected"], rows)
    return [Section("Pairs", (), (), [table])]


def _distance_cell(distance: float) -> Cell:
    """Return a distance; empty for two groups that share no stratum."""
    if isnan(distance):
        return Cell("–")
    return Cell(number(distance), distance)


def _columns_section(result: GroupResult, level: float) -> Section:
    """Return the columns that differ as pictures, and all of them as a table."""
    plots = group_column_plots(result, level)
    sentences = []
    if plots and len(result.groups) > MAX_BARS:
        sentences.append(f"Of {len(result.groups):,} groups, {MAX_BARS} are shown in the pictures.")
    return Section("Columns", sentences, (), [*plots, _columns_table(result)])


def _columns_table(result: GroupResult) -> Table:
    rows = []
    for each in result.features:
        rows.append(
            [
                Cell(each.name, is_name=True),
                Cell(f"{100 * each.share:.1f} %", each.share),
                Cell(_p(result, each.p_value), each.p_value),
                Cell(result.column_text(each), is_name=True),
            ]
        )
    titles = ["column", "share of its spread between groups", "p, corrected", "most in (SD)"]
    return Table("Every column alone", titles, rows)


def _assumptions(result: GroupResult) -> list[str]:
    return [
        "The p-value of all groups together is exact if rows are independent of each other. With "
        "clusters or pairs, rows of the same cluster or pair may depend on each other; with "
        "strata, strata may differ.",
        "The p-values of single groups are corrected for the number of groups. If some groups "
        "differ, the p-values of the other groups are approximate.",
        "The p-value of a pair comes from permutations of these two groups only, and is corrected "
        "for the number of pairs. It is valid whatever the other groups are.",
        *_cluster_assumptions(result),
        *_tolerance_assumptions(result),
        "A group without a detected difference can still differ: with few rows, only large "
        "differences are detected.",
    ]


def _cluster_assumptions(result: GroupResult) -> list[str]:
    if getattr(result, "n_clusters", None) is None:
        return []
    return [
        "If clusters differ in size, p-values are exact only if the sizes do not depend on the "
        "group. Where sizes are found to depend on it, as many rows of each cluster are compared, "
        "and the verdict says so."
    ]


def _tolerance_assumptions(result: GroupResult) -> list[str]:
    if result.tolerance is None:
        return []
    return [
        f"The tolerance is {result.tolerance.text}, measured with {result.tolerance.kernel!r} on "
        "the columns as they were tested. P-values for differences larger than the tolerance come "
        "from a bootstrap. They are approximate, better with more rows, and never below the "
        "p-value for any difference."
    ]
