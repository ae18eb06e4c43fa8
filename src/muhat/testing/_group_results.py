"""The result of a test of groups: one p-value, and which groups, pairs and columns differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from muhat._summary import FOUND, NEUTRAL, Summary
from muhat._wording import p_text, p_value_text, rows_text, shift_text
from muhat.testing._group_columns import GroupFeature
from muhat.testing._results import LEVEL, Result
from muhat.testing._wording import MIN_STANDARD_ERRORS, shift_words

N_GROUPS_NAMED = 10
"""Groups that a verdict names."""


@dataclass(frozen=True)
class GroupDifference:
    """How one group differs from all others together."""

    group: Any
    """Its label."""
    n: int
    """Its rows."""
    mmd: float
    """The distance of its kernel mean from that of the rest."""
    p_value: float
    """Corrected for the number of groups by the largest statistic (Westfall and Young), groups
    that stand out more being left out of the rest. Exact if no group differs; approximate for the
    others if some do."""
    column: str
    """The column in which it differs most from the rest; empty without columns."""
    shift: float
    """The mean of that column minus that of the rest, in standard deviations within groups."""


@dataclass(frozen=True)
class PairDifference:
    """How two groups differ."""

    first: Any
    """The label of one group."""
    second: Any
    """The label of the other."""
    mmd: float
    """The distance of their kernel means."""
    p_value: float
    """Permuted within the pair, and corrected for the number of pairs by Shaffer's step-down: valid
    whatever the other groups are. Never below the p-value of all groups; 1 if no stratum has both
    groups."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupResult(Result):
    """Whether groups come from one distribution, and which differ.

    Attributes
    ----------
    p_value, statistic, permuted, n_permutations, is_complete, best, tests, least_p_value
        As for every ``Result``: ``p_value`` is exact for all groups together.
    n : int
        The number of rows.
    groups : tuple of GroupDifference
        Every group against all others, the smallest p-value first.
    pairs : tuple of PairDifference
        All pairs, the smallest p-value first; empty beyond 50 groups.
    features : tuple of GroupFeature
        Every column, the smallest p-value first.
    title : str or None
        What groups are called: the name of their column.
    rows_together : int
        How many rows are permuted together as a bin; 1 without bins, also with clusters.
    """

    n: int
    groups: tuple[GroupDifference, ...]
    pairs: tuple[PairDifference, ...]
    features: tuple[GroupFeature, ...]
    title: str | None = None
    rows_together: int = 1

    def _finding(self, level: float) -> str:
        """Return what the test finds at a level: which groups differ, and in what."""
        many = f"{len(self.groups):,} groups" + (f" by {self.title}" if self.title else "")
        found = f"({self.n:,} rows in all, {self.p_text})"
        if self.is_too_small(level):
            return self._too_few(f"{self.n:,} rows in {many}", level)
        if self.p_value > level:
            return f"No difference between {many} detected {found}.{self._single_group(level)}"
        if len(self.groups) == 2:
            first, second = sorted(self.groups, key=_label)
            both = (
                f"{first.group} ({rows_text(first.n)}) and {second.group} ({rows_text(second.n)})"
            )
            return f"{both} differ ({self.p_text}). {self._where(level)}".rstrip()
        different = [each for each in self.groups if each.p_value <= level]
        if not different:
            sentence = f"The {many} differ {found}, but none stands out from the rest."
        else:
            sentence = f"Of {many} ({self.n:,} rows in all), {self._different_text(different)}."
        return f"{sentence} {self._where(level)}".rstrip()

    def _single_group(self, level: float) -> str:
        """Return a sentence on a small p-value of one group where all together have none."""
        first = self.groups[0]
        if first.p_value > level or len(self.groups) == 2:
            return ""
        p = p_value_text(first.p_value, self.n_permutations, self.is_complete)
        return (
            f" {first.group} alone against the rest has {p}, corrected for {len(self.groups):,} "
            "groups: a hint, not a finding."
        )

    def _different_text(self, different: list[GroupDifference]) -> str:
        """Return which groups differ from the rest, with their corrected p-values."""
        listed = _listed([str(each.group) for each in different])
        p = p_value_text(different[0].p_value, self.n_permutations, self.is_complete)
        were = "was"
        if len(different) > 1:
            p = f"each {p_text(max(each.p_value for each in different), is_bound=True)}"
            were = "were"
        found = f"{len(different):,} {were} found to differ from the rest: {listed}"
        return f"{found} ({p}, corrected for {len(self.groups):,} groups)"

    def _where(self, level: float) -> str:
        """Return in which column the first group that differs does so most, and how.

        If no group stands out, it is the group with the largest shift of the column that differs
        most. A shift below two standard errors is not called one: the column differs in spread or
        shape.
        """
        if not self.features or self.features[0].p_value > level:
            return ""
        most = self.features[0]
        group, column, shift = most.group, most.name, most.shift
        if self.groups[0].p_value <= level:
            group, column, shift = self.groups[0].group, self.groups[0].column, self.groups[0].shift
        n = next(each.n for each in self.groups if str(each.group) == str(group))
        error = (1 / n + 1 / max(1, self.n - n)) ** 0.5
        if abs(shift) < MIN_STANDARD_ERRORS * error:
            return f"Largest difference: {most.name}, in spread or shape more than in its mean."
        words = shift_words(shift, f"in {group} than in the rest")
        return f"Largest difference: {column}, whose mean is {words}."

    def _summary(self) -> Summary:
        rows = []
        for each in self.groups:
            p = p_value_text(each.p_value, self.n_permutations, self.is_complete)
            most = f"{each.column} {shift_text(each.shift)}" if each.column else ""
            rows.append((str(each.group), f"{each.n:,}", p, most))
        tone = FOUND if self.p_value <= LEVEL else NEUTRAL
        header = ("group", "rows", "against the rest", "differs most in (SD)")
        return Summary(self.verdict(), header, rows, tone)

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types."""
        return {
            "n": self.n,
            **super().to_dict(level),
            "groups": [{**asdict(each), "group": str(each.group)} for each in self.groups],
            "pairs": [
                {**asdict(each), "first": str(each.first), "second": str(each.second)}
                for each in self.pairs
            ],
            "features": [asdict(each) for each in self.features],
        }


def _label(each: GroupDifference) -> str:
    return str(each.group)


def _listed(names: list[str]) -> str:
    """Return names in words, the first ones of many."""
    if len(names) > N_GROUPS_NAMED:
        return f"{', '.join(names[:N_GROUPS_NAMED])} and {len(names) - N_GROUPS_NAMED:,} more"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
