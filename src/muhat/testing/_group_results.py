"""The result of a test of groups: one p-value, and which groups, pairs and columns differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isnan, log
from typing import Any

from muhat._summary import FOUND, NEUTRAL, Summary
from muhat._wording import p_text, p_value_text, rows_text, shift_text
from muhat.data._selection import INDICATOR
from muhat.testing._copies import group_copies_note
from muhat.testing._group_columns import GroupFeature
from muhat.testing._group_pictures import GroupPictures
from muhat.testing._results import LEVEL, NO_SINGLE_COLUMN, Result, at_level
from muhat.testing._row_order import RowOrder, groups_note
from muhat.testing._tolerance import Tolerance
from muhat.testing._wording import (
    MIN_SPREAD_ERRORS,
    MIN_SPREAD_RATIO,
    MIN_STANDARD_ERRORS,
    quoted_name,
    share_texts,
    shift_words,
)

WHICH_REST = (
    "Each group is compared with the rest: all other groups, except those that differ more than it."
)
"""What tables compare a group with, by every number."""

N_GROUPS_NAMED = 10
"""Groups that a verdict names."""


@dataclass(frozen=True)
class GroupDifference:
    """How one group differs from the rest: all other groups but those that stand out more."""

    group: Any
    """Its label."""
    n: int
    """Its rows."""
    n_rest: int
    """The rows of the rest."""
    mmd: float
    """The distance of its kernel mean from that of the rest, in the kernel of the largest
    statistic, or in that of a tolerance. With strata, an average of differences within them."""
    p_value: float
    """Corrected for the number of groups by the largest statistic (Westfall and Young), and never
    below that of a majority of groups around it. At most the level if no group differs; about the
    level or less for the others if some do, as long as more than half of the groups are alike."""
    column: str
    """The column in which it differs most from the rest; empty without columns."""
    shift: float
    """The mean of that column minus that of the rest, in standard deviations within groups (and
    within strata, if there are any)."""
    spread: float
    """The standard deviation of that column in the group over that within the rest; 0 if the group
    has one row."""
    shares: tuple[float, float] | None = None
    """Of a column of zeros and ones, the share of ones in the group and in the rest; None for
    other columns, and with strata."""
    p_tolerance: float | None = None
    """For a distance of more than the tolerance from the rest, corrected for the number of groups:
    approximate, and never below ``p_value``. None without a tolerance."""
    is_limited: bool = False
    """Whether few values of that column are far from all others: ``shift`` and ``spread`` are then
    computed with these values limited to 3 interquartile ranges from the quartiles."""


@dataclass(frozen=True)
class PairDifference:
    """How two groups differ."""

    first: Any
    """The label of one group."""
    second: Any
    """The label of the other."""
    mmd: float
    """The distance of their kernel means; nan if no stratum has both groups."""
    p_value: float
    """Permuted within the pair, and corrected for the number of pairs by Shaffer's step-down: valid
    whatever the other groups are. Never below the p-value of all groups; 1 if no stratum has both
    groups."""


@dataclass(frozen=True)
class _Change:
    """How a column differs between a group of n rows and the rest."""

    group: str
    n: int
    n_rest: int
    column: str
    shift: float
    spread: float
    rest: str = "the others"
    shares: tuple[float, float] | None = None
    is_limited: bool = False

    @property
    def kind(self) -> str:
        """Whether it differs most in its "mean", "spread" or "shape"."""
        error = (1 / self.n + 1 / max(1, self.n_rest)) ** 0.5
        is_shifted = abs(self.shift) >= MIN_STANDARD_ERRORS * error
        log_ratio = 0.0
        if self.spread > 0 and self.n > 1:
            log_ratio = abs(log(self.spread))
        if is_shifted and abs(self.shift) >= log_ratio:
            return "mean"
        if log_ratio >= max(log(MIN_SPREAD_RATIO), MIN_SPREAD_ERRORS * error / 2**0.5):
            return "spread"
        if is_shifted:
            return "mean"
        return "shape"

    def reversed(self) -> _Change:
        """Return how the rest differs from the group, if it is one group too."""
        spread = 0.0
        if self.spread > 0:
            spread = 1 / self.spread
        shares = None
        if self.shares is not None:
            shares = self.shares[1], self.shares[0]
        return replace(
            self,
            group=self.rest,
            rest=self.group,
            n=self.n_rest,
            n_rest=self.n,
            shift=-self.shift,
            spread=spread,
            shares=shares,
        )

    @property
    def words(self) -> str:
        """The change as the end of a sentence."""
        if self.shares is not None:
            own, others = share_texts(self.shares)
            name = self.column
            if INDICATOR not in name:
                name = f"{name} = 1"
            return f"{name} in {own} of the rows of {self.group} and {others} of {self.rest}"
        kind, limited = self.kind, ""
        if self.is_limited:
            limited = "a few extreme values are limited"
        if kind == "mean":
            if limited:
                limited = f" ({limited})"
            words = shift_words(self.shift, f"in {self.group} than in {self.rest}")
            return f"{self.column}, whose mean is {words}{limited}"
        if kind == "spread":
            more = "less"
            if self.spread > 1:
                more = "more"
            times = f"its standard deviation is {self.spread:.2g} times that in {self.rest}"
            if limited:
                times = f"{times}; {limited}"
            return f"{self.column}, which varies {more} in {self.group} ({times})"
        return f"{self.column}, in the shape of its distribution rather than its mean or spread"

    @property
    def short(self) -> str:
        """The change in a cell of a table."""
        return {
            "mean": shift_text(self.shift),
            "spread": f"SD × {self.spread:.2g}",
            "shape": "(shape)",
        }[self.kind]


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
        Every group against the rest, the smallest p-value first. The rest are all other groups
        except those that differ even more. P-value, distance and shift all compare with this rest.
    pairs : tuple of PairDifference
        All pairs, the smallest p-value first; empty beyond 50 groups.
    features : tuple of GroupFeature
        Every column, the smallest p-value first.
    title : str or None
        What groups are called: the name of their column.
    rows_together : int
        How many rows are permuted together as a bin; 1 without bins, also with clusters.
    tolerance : Tolerance or None
        What was allowed, in which kernel, and whether any group differs by more.
    pictures : GroupPictures or None
        What displays and pages draw: a map, distances, and quantiles of columns.
    left_out : tuple of str
        Sentences on what of the data was not tested, with which the verdict ends.
    strata : str or None
        The name of the column of strata, "" if it has no name; None without strata.
    pairs_by : str or None
        The name of the column of pairs, "" if it has no name; None without pairs.
    n_clusters : int or None
        How many clusters are compared; None without clusters.
    clusters_by : str or None
        The name of the column of clusters, "" if it has no name; None without clusters.
    n_copies : int
        Rows that equal an earlier row of their group; 0 with clusters or pairs, and where these are
        ties of the only column that varies.
    row_order : RowOrder or None
        In which ``column`` rows of a group that follow each other are alike beyond chance, as in a
        time series, and their rank ``correlation``; None if they are not, and with clusters or
        pairs.
    order : tuple of str
        The labels of groups: numbers as they rise, others as they appear. Of two groups, a verdict
        says how the second differs from the first.
    """

    n: int
    groups: tuple[GroupDifference, ...]
    pairs: tuple[PairDifference, ...]
    features: tuple[GroupFeature, ...]
    title: str | None = None
    rows_together: int = 1
    tolerance: Tolerance | None = None
    pictures: GroupPictures | None = None
    left_out: tuple[str, ...] = ()
    strata: str | None = None
    pairs_by: str | None = None
    n_clusters: int | None = None
    clusters_by: str | None = None
    row_order: RowOrder | None = None
    n_copies: int = 0
    order: tuple[str, ...] = ()

    def _finding(self, level: float) -> str:
        """Return what the test finds at a level: which groups differ, and in what."""
        many = f"{len(self.groups):,} groups"
        if self.title:
            many = f"{many} of column {quoted_name(self.title)}"
        found = f"({self.n:,} rows in all, {self.p_text})"
        if self.is_too_small(level):
            units = "so few rows"
            if self.n_clusters is not None:
                units = f"{self.n_clusters:,} clusters"
            return self._too_few(f"the {many} ({self.n:,} rows in all) differ", units, level)
        if self.p_value > level:
            return self._nothing_found(many, found, level)
        if len(self.groups) == 2:
            sentences = [self._two_differ(level), self._tolerance_of_two(level)]
        elif self.tolerance is not None:
            sentences = self._tolerance_sentences(many, found, level)
        else:
            sentences = [self._many_differ(many, found, level)]
        sentences += [self._kept_together, self._where(level), self._single_rows(level)]
        sentences.append(group_copies_note(self.n_copies, self.n))
        sentences.append(groups_note(self.row_order))
        return " ".join(filter(None, sentences))

    def _nothing_found(self, many: str, found: str, level: float) -> str:
        """Return that no difference was found, also not by more than a tolerance."""
        if len(self.groups) == 2:
            many, found = self._both, f"({self.p_text})"
        else:
            many = f"the {many}"
        detected = f"detected{at_level(self.p_value, level)}"
        sentence = f"No difference between {many} {detected}{self._within} {found}."
        if self.tolerance is not None:
            sentence += f" {self.tolerance.no_difference}"
        sentences = [sentence, self._kept_together, self._single_group(level)]
        sentences.append(self._single_rows(level))
        return " ".join(filter(None, sentences))

    def _single_rows(self, level: float) -> str:
        """Return a sentence on groups of one row that are not found to differ; empty if none."""
        names = [str(each.group) for each in self.groups if each.n == 1 and each.p_value > level]
        if not names:
            return ""
        if len(names) == 1:
            return f"{names[0]} has one row: too few rows to tell whether it differs."
        return f"{_listed(names)} have one row each: too few rows to tell whether they differ."

    @property
    def _within(self) -> str:
        """Within what groups are compared, with a space before it; empty for rows alone."""
        within = ""
        if self.strata is not None:
            within = f" within {_by('strata', self.strata)}"
        if self.pairs_by is not None:
            within += f" when rows are {_by('paired', self.pairs_by)}"
        return within

    @property
    def _kept_together(self) -> str:
        """A sentence on rows that are permuted together; empty without clusters."""
        if self.n_clusters is None:
            return ""
        together = f"Rows of the same {self.clusters_by or 'cluster'} are kept together"
        return f"{together}: {self.n_clusters:,} clusters are compared, not {rows_text(self.n)}."

    @property
    def which_deviations(self) -> str:
        """What standard deviations (SD) are within, as a sentence; empty for rows alone."""
        same = []
        if self.strata is not None:
            same.append(self.strata or "stratum")
        if self.pairs_by is not None:
            same.append(self.pairs_by or "pair")
        if not same:
            return ""
        return (
            f"Standard deviations (SD) are those of rows of the same {' and '.join(same)}, without "
            "the difference between groups."
        )

    @property
    def _two_in_order(self) -> list[GroupDifference]:
        """Two groups, in the order of ``order``."""
        order = list(self.order)
        names = [str(each.group) for each in self.groups]
        if sorted(order) != sorted(names):  # a result of an earlier version
            order = sorted(names)
        return sorted(self.groups, key=lambda each: order.index(str(each.group)))

    @property
    def _both(self) -> str:
        """Two groups with their rows."""
        first, second = self._two_in_order
        return f"{first.group} ({rows_text(first.n)}) and {second.group} ({rows_text(second.n)})"

    def _two_differ(self, level: float) -> str:
        differ = f"differ{at_level(self.p_value, level)}"
        return f"{self._both} {differ}{self._within} ({self.p_text})."

    def _tolerance_of_two(self, level: float) -> str:
        """Return whether two groups differ by more than the tolerance; empty without one."""
        if self.tolerance is None:
            return ""
        return self.tolerance.finding(level, self._p_text(self.tolerance.p_value))

    def _many_differ(self, many: str, found: str, level: float) -> str:
        """Return which groups differ from the rest."""
        different = [each for each in self.groups if each.p_value <= level]
        if not different:
            single = "but no single group differs detectably from the others"
            return f"The {many} differ{self._within} {found}, {single}."
        p_values = [each.p_value for each in different]
        return self._different_text(many, different, p_values, f"from the others{self._within}")

    def _tolerance_sentences(self, many: str, found: str, level: float) -> list[str]:
        """Return which groups differ from the rest by more than the tolerance."""
        assert self.tolerance is not None
        different = self._more_than_tolerance(level)
        how = "more than the tolerance"
        if not different:
            distance = f"the largest MMD is {self.tolerance.against(self.tolerance.distance)}"
            nothing = f"No group detectably differs from the others by {how}: {distance}."
            return [f"The {many} differ{self._within} {found}.", nothing, self.tolerance.sentence]
        p_values = [each.p_tolerance or 1.0 for each in different]
        from_rest = f"from the others by {how}{self._within}"
        sentences = [self._different_text(many, different, p_values, from_rest)]
        others = sum(each.p_value <= level for each in self.groups) - len(different)
        if others:
            differ = "groups differ"
            if others == 1:
                differ = "group differs"
            sentences.append(f"{others:,} more {differ}, but not detectably by {how}.")
        sentences.append(self.tolerance.sentence)
        return sentences

    def _more_than_tolerance(self, level: float) -> list[GroupDifference]:
        """Return the groups that differ by more than the tolerance, the most distant first."""
        found = []
        for each in self.groups:
            if each.p_tolerance is not None and each.p_tolerance <= level:
                found.append(each)
        return sorted(found, key=lambda each: (each.p_tolerance, -each.mmd))

    def _p_text(self, p: float) -> str:
        return p_value_text(p, self.n_permutations, self.is_complete)

    def _single_group(self, level: float) -> str:
        """Return a sentence on small p-values of single groups where all together have none."""
        outstanding = [each for each in self.groups if each.p_value <= level]
        if not outstanding or len(self.groups) == 2:
            return ""
        names = _listed([str(each.group) for each in outstanding])
        who, p = f"Group {names} alone stands out", self._p_text(outstanding[0].p_value)
        if len(outstanding) > 1:
            largest = max(each.p_value for each in outstanding)
            who, p = f"Groups {names} stand out", f"each {p_text(largest, is_bound=True)}"
        corrected = f"{p}, corrected for {len(self.groups):,} groups"
        return f"{who} a little ({corrected}), which may be chance."

    def _different_text(
        self, many: str, different: list[GroupDifference], p_values: list[float], how: str
    ) -> str:
        """Return which groups differ from the rest, with their corrected p-values."""
        names = _listed([str(each.group) for each in different])
        p, differ = self._p_text(p_values[0]), "differs"
        if len(different) > 1:
            p, differ = p_text(max(p_values), is_bound=True), "differ"
        if self.tolerance is not None:
            p = f"approximate {p}"
        if len(different) > 1:
            p = f"each {p}"
        if self.tolerance is not None:
            p = f"{self._mmd_text(different)}, {p}"
        rows = f"({self.n:,} rows in all)"
        corrected = f"({p}, corrected for {len(self.groups):,} groups)"
        who = f"{len(different):,} of the {many}"
        if len(different) == len(self.groups):
            who = f"All {many}"
        return f"{who} {rows} {differ} {how}: {names} {corrected}."

    def _mmd_text(self, different: list[GroupDifference]) -> str:
        """Return the distances of groups from the rest beside the tolerance."""
        assert self.tolerance is not None
        distances = sorted(each.mmd for each in different)
        least = f"{distances[0]:.2g} to "
        if f"{distances[0]:.2g}" == f"{distances[-1]:.2g}":
            least = ""
        return f"MMD {least}{self.tolerance.against(distances[-1])}"

    def _where(self, level: float) -> str:
        """Return in which column a group that differs does so most, and how.

        It is the largest change of the table among groups that differ. If none of these is in a
        column that differs by itself, nor of a spread, it is a column in which a group that stands
        out adds most; if no group stands out, any group.
        """
        if not self.features:
            return ""
        differ = [each for each in self.groups if each.p_value <= level]
        if self.tolerance is not None:
            differ = self._more_than_tolerance(level) or differ
        p_of_column = {each.name: each.p_value for each in self.features}
        changes = []
        for one in differ:
            change = self._change(one)
            if p_of_column[one.column] <= level or change.kind == "spread":
                changes.append(change)
        if changes:
            return self._largest_difference(max(changes, key=_size_of_change))
        if self.features[0].p_value > level:
            if len(self.features) == 1:
                return ""
            return NO_SINGLE_COLUMN
        different = {str(each.group) for each in self.groups if each.p_value <= level}
        for each in self.features:
            if each.p_value <= level and (each.group in different or not different):
                return self._largest_difference(self._change_of_column(each))
        return ""

    def _largest_difference(self, change: _Change) -> str:
        """Return a change as a sentence, and which standard deviations it is in.

        Of two groups, it is that of the second from the first.
        """
        if len(self.groups) == 2 and change.group == str(self._two_in_order[0].group):
            change = change.reversed()
        sentence = f"Largest difference: {change.words}."
        if self.which_deviations and change.shares is None and change.kind != "shape":
            sentence += f" {self.which_deviations}"
        return sentence

    def _change_of_column(self, each: GroupFeature) -> _Change:
        """Return how the group that adds most to a column's difference differs in it."""
        (group,) = (one for one in self.groups if str(one.group) == each.group)
        rest = self._name_of_rest(group)
        return _Change(
            each.group,
            group.n,
            group.n_rest,
            each.name,
            each.shift,
            each.spread,
            rest,
            is_limited=each.is_limited,
        )

    def _name_of_rest(self, each: GroupDifference) -> str:
        """Return what the rest of a group are called: by their name if they are one group."""
        if len(self.groups) > 2:
            return "the others"
        (other,) = (str(other.group) for other in self.groups if other is not each)
        return other

    def _change(self, each: GroupDifference) -> _Change:
        return _Change(
            str(each.group),
            each.n,
            each.n_rest,
            each.column,
            each.shift,
            each.spread,
            self._name_of_rest(each),
            each.shares,
            each.is_limited,
        )

    def change_text(self, each: GroupDifference) -> str:
        """Return the column in which a group differs most, and by how much, for a table."""
        if not each.column:
            return ""
        change = self._change(each)
        if change.kind != "shape":
            return f"{each.column} {change.short}"
        if each.p_value > LEVEL:
            return f"{each.column} {shift_text(each.shift)}"
        if self.features[0].p_value > LEVEL:
            return "no single column"
        return f"{each.column} {change.short}"

    def column_text(self, each: GroupFeature) -> str:
        """Return which group adds most to the difference of a column, and how, for a table."""
        return f"{each.group} {self._change_of_column(each).short}"

    def _summary(self) -> Summary:
        rows = []
        for each in self.groups:
            p = self._p_text(each.p_value)
            sizes = f"{each.n:,}", f"{each.n_rest:,}"
            rows.append((str(each.group), *sizes, p, self.change_text(each)))
        tone = NEUTRAL
        if self.p_value <= LEVEL:
            tone = FOUND
        header = ("group", "rows", "rows of the rest", "p against the rest", "differs most in (SD)")
        return Summary(self.verdict(), header, rows, tone)

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types."""
        return {
            "n": self.n,
            **super().to_dict(level),
            "groups": [{**asdict(each), "group": str(each.group)} for each in self.groups],
            "pairs": [_pair_dict(each) for each in self.pairs],
            "features": [asdict(each) for each in self.features],
            "tolerance": None if self.tolerance is None else self.tolerance.to_dict(),
            "n_copies": self.n_copies,
            "row_order": None if self.row_order is None else self.row_order.to_dict(),
        }


def _pair_dict(each: PairDifference) -> dict[str, Any]:
    """Return a pair in JSON's types."""
    found = asdict(each)
    found["first"], found["second"] = str(each.first), str(each.second)
    if isnan(each.mmd):
        found["mmd"] = None
    return found


def _size_of_change(change: _Change) -> float:
    """Return how large a change is: of a mean in SD, of a spread by the logarithm of its ratio."""
    size = abs(change.shift)
    if change.kind == "spread":
        size = abs(log(change.spread))
    return round(size, 9)  # two groups differ equally from each other, but for rounding errors


def _by(what: str, title: str) -> str:
    """Return "pairs by patient"; "pairs" if the column has no name."""
    if not title:
        return what
    return f"{what} by {title}"


def _listed(names: list[str]) -> str:
    """Return names in words, the first ones of many."""
    if len(names) > N_GROUPS_NAMED:
        return f"{', '.join(names[:N_GROUPS_NAMED])} and {len(names) - N_GROUPS_NAMED:,} more"
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
