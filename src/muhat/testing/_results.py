"""What every result of a test has, and that of a test of independence: p-values and verdicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from muhat._arrays import Array
from muhat._messages import option
from muhat._reportable import Reportable
from muhat._summary import FOUND, NEUTRAL, HtmlReprMixin, Summary
from muhat._text import agree, count, listed
from muhat._wording import is_at_floor, p_value_text
from muhat.kernels import Kernel
from muhat.testing._contrast import ValueContrast
from muhat.testing._copies import MIN_SHARE_NAMED
from muhat.testing._explained import ExplainedVariance
from muhat.testing._permutations import PermutationTable
from muhat.testing._row_order import RowOrder, pairs_note
from muhat.testing._statistics import Statistic
from muhat.testing._wording import source_columns

NOT_COMPARABLE = "Do not compare it between pairs of columns: the kernels are chosen for each pair"
"""What is said of the kernel correlation wherever it is printed."""

MIN_TREND_ERRORS = 3
"""Standard errors of the rank correlation from which on a trend is reported."""

MONOTONE_CORRELATION = 0.9
"""Rank correlation from which on y rises or falls with x, however few rows there are."""

MIN_SHARE_EXPLAINED, MIN_SHARE_BEYOND = 0.05, 0.15
"""Share of a variance from which on a verdict says that it is explained: of any, and beyond the
square of a rank correlation that is named already."""

MIN_ERRORS_OF_LINE = 2
"""Standard errors of a rank correlation that give the direction where no curve explains more."""

LEVEL = 0.05
"""The level at which a verdict calls samples different, or columns dependent."""

N_NAMED = 5
"""Rows that a result names, of each sample."""

NO_SINGLE_COLUMN = (
    "No single column differs significantly: the difference is in how columns vary together, or "
    "in small differences of several columns."
)
"""What a verdict says where samples or groups differ, but no column by itself."""


@dataclass(frozen=True)
class SingleTest:
    """One statistic of one kernel, with its p-value as if it were the only one asked."""

    kernels: tuple[Kernel, ...]
    """The kernel; for independence, that of x and that of y."""
    statistics: tuple[Statistic, ...]
    """The statistic with its λ or t; for independence, that of x and that of y, or one of both."""
    value: float
    p_value: float
    standardized: float
    """The normal score of the value: in standard deviations of a normal distribution."""

    def __str__(self) -> str:
        if len(self.statistics) < len(self.kernels):
            return f"{self.statistics[0]} of {' × '.join(map(short, self.kernels))}"
        return " × ".join(
            f"{h} of {short(k)}" for h, k in zip(self.statistics, self.kernels, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {
            "kernels": [repr(kernel) for kernel in self.kernels],
            "statistics": [str(statistic) for statistic in self.statistics],
            "value": self.value,
            "p_value": self.p_value,
            "standardized": self.standardized,
        }


def short(kernel: Kernel) -> str:
    """Return a kernel with its bandwidth in three digits."""
    bandwidth = getattr(kernel, "bandwidth", None)
    if bandwidth is None:
        return repr(kernel)
    return f"{type(kernel).__name__}({bandwidth:.3g})"


def at_level(p_value: float, level: float) -> str:
    """Return " at level 0.01" where a reader who thinks of 0.05 would decide differently."""
    if (p_value <= level) == (p_value <= LEVEL):
        return ""
    return f" at level {level:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Result(Reportable, HtmlReprMixin):
    """The result of a test.

    Attributes
    ----------
    p_value : float
        Exact for all statistics together: under the null hypothesis P(p ≤ α) ≤ α for every α; never
        zero.
    statistic : float
        The combination of all statistics: the soft maximum of their normal scores.
    permuted : array of shape (n_permutations,)
        The same for every permutation.
    n_permutations : int
        How many there were, beside the observed data.
    is_complete : bool
        Whether these are all permutations that differ, instead of random ones.
    best : SingleTest
        The largest statistic: its kernel, bandwidth, λ and weight h.
    tests : tuple of SingleTest
        All of them.
    least_p_value : float
        The least p-value that data of this size, or this number of permutations, can give.
    """

    p_value: float
    statistic: float
    permuted: Array
    n_permutations: int
    is_complete: bool
    best: SingleTest
    tests: tuple[SingleTest, ...]
    least_p_value: float

    @property
    def pvalue(self) -> float:
        """The same as ``p_value``: its name in SciPy."""
        return self.p_value

    @property
    def is_at_floor(self) -> bool:
        """Whether p_value is 1/(n_permutations + 1), the least that random permutations give."""
        return is_at_floor(self.p_value, self.n_permutations, self.is_complete)

    @property
    def p_text(self) -> str:
        """The p-value as verdicts show it: "p = 0.47", or "p ≤ 0.001" for the least possible."""
        return p_value_text(self.p_value, self.n_permutations, self.is_complete)

    @property
    def details(self) -> str:
        """How the p-value was made: permutations, statistics, and the largest of these."""
        many = "one statistic"
        if len(self.tests) > 1:
            many = f"{len(self.tests)} statistics"
        how = "random"
        if self.is_complete:
            how = "all"
        if len(self.tests) > 1:
            largest = f"; largest: {self.best}"
        else:
            largest = f" ({self.best})"
        return f"{self.p_text}, {many} on {self.n_permutations} {how} permutations{largest}"

    def is_too_small(self, level: float = LEVEL) -> bool:
        """Whether data of this size, or this number of permutations, cannot reach a level."""
        return self.least_p_value > level

    def _too_few(self, question: str, units: str, level: float) -> str:
        """Return the sentence on too few rows, or on too few permutations, for a question.

        The question follows "whether", such as "a and b differ".
        """
        least = f"p cannot be below {self.least_p_value:.2g}"
        if self.is_complete:
            return f"There are too few rows to tell whether {question}: with {units}, {least}."
        permutations = count(self.n_permutations, "permutation")
        found = f"It was not tested at level {level:g} whether {question}"
        return f"{found}: with only {permutations}, {least}. Use more permutations."

    def verdict(self, level: float = LEVEL) -> str:
        """Return the finding at a level in one or two sentences, and what was left out."""
        return " ".join([self._finding(level), *getattr(self, "left_out", ())])

    def _finding(self, level: float) -> str:
        """Return what the test finds."""
        raise NotImplementedError

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types, without the permuted ones."""
        return {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "n_permutations": self.n_permutations,
            "is_complete": self.is_complete,
            "least_p_value": self.least_p_value,
            "best": self.best.to_dict(),
            "tests": [each.to_dict() for each in self.tests],
            "verdict": self.verdict(level),
        }

    def _summary(self) -> Summary:
        rows = [
            ("p-value", self.p_text.removeprefix("p = ").removeprefix("p ")),
            *self._effect_rows(),
        ]
        tone = NEUTRAL
        if self.p_value <= LEVEL:
            tone = FOUND
        return Summary(self.verdict(), ("", ""), rows, tone)

    def _effect_rows(self) -> list[tuple[str, str]]:
        """Return the rows of the summary on how large an effect is."""
        return []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.details})"


Candidates = list[tuple[tuple[Kernel, ...], tuple[Statistic, ...]]]
"""Every statistic of every kernel, all parameters numbers."""


def result_fields(table: PermutationTable, candidates: Candidates) -> dict[str, Any]:
    """Return the fields that every result has, from the values of all statistics."""
    tests = []
    observed, scores = table.values[:, 0], table.standardized[:, 0]
    for place, (kernels, statistics) in enumerate(candidates):
        value, p, score = observed[place], table.p_values[place], scores[place]
        tests.append(SingleTest(kernels, statistics, float(value), float(p), float(score)))
    return {
        "p_value": table.p_value,
        "statistic": float(table.combined[0]),
        "permuted": table.combined[1:],
        "n_permutations": table.values.shape[1] - 1,
        "best": tests[table.largest_statistic],
        "tests": tuple(tests),
    }


@dataclass(frozen=True, eq=False, repr=False)
class IndependenceResult(Result):
    """Whether the columns x and the columns y are dependent.

    Attributes
    ----------
    p_value, statistic, permuted, n_permutations, is_complete, best, tests, least_p_value
        As for every ``Result``.
    n : int
        The number of rows.
    correlation : float
        The effect size, the kernel correlation: HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)) for the kernels
        with the largest HSIC of ``tests``, corrected for chance: from 0 (independent) to 1. The
        kernels are chosen for each pair of columns, so do not compare it between pairs: a
        correlation of 0.995 can have a smaller value than one of 0.98.
    rank_correlation : float or None
        Spearman's rank correlation, for the direction of the dependence: of one column and one
        column; None otherwise.
    explained : ExplainedVariance or None
        The share of the variance of one column that the other side explains, by groups of its
        values or by bins: where one side is one column, and the other is one too or has few values.
    contrast : ValueContrast or None
        The values of a text column between which the other side differs most, where one side is the
        indicators of a text column, and the other side too or a single column.
    x_names, y_names : tuple of str or None
        The names of the columns, where data frames were given.
    n_copies : int
        How many rows of (x, y) are exact copies of others, whether they were dropped or not.
    copies_stand_out : bool
        Whether rows that are equal in x are mostly equal in y too, beyond what values that repeat
        explain: the verdict then mentions the copies.
    copies_can_be_dropped : bool
        Whether ``distinct=True`` would be valid: not where values of x and of y repeat beside
        copies.
    distinct : bool
        Whether copies were dropped.
    p_value_distinct : float or None
        The p-value without copies, where these stand out, can be dropped and were not.
    constant : tuple of str
        Which of 'x' and 'y' are the same in all rows: p is then 1.
    left_out : tuple of str
        Sentences on what of the data was not tested, with which the verdict ends.
    row_order : pair of RowOrder or None
        In which columns of x and of y rows that follow each other are alike beyond chance, as in
        time series; None unless they are on both sides.
    """

    n: int
    correlation: float
    x_names: tuple[str, ...] | None = None
    y_names: tuple[str, ...] | None = None
    n_copies: int = 0
    copies_stand_out: bool = False
    distinct: bool = False
    constant: tuple[str, ...] = ()
    copies_can_be_dropped: bool = True
    left_out: tuple[str, ...] = ()
    rank_correlation: float | None = None
    p_value_distinct: float | None = None
    explained: ExplainedVariance | None = None
    contrast: ValueContrast | None = None
    row_order: tuple[RowOrder, RowOrder] | None = None

    def _finding(self, level: float) -> str:
        """Return what the test finds at a level, how sure, how strong and in which direction."""
        x, y = _listed(self.x_names, "x"), _listed(self.y_names, "y")
        rows = f"{self.n:,} row{'' if self.n == 1 else 's'}, {self.p_text}"
        if self.constant:
            who = " and ".join({"x": x, "y": y}[side] for side in self.constant)
            are = agree(len(self.constant), "is", "are")
            found = f"No dependence between {x} and {y} can be detected"
            return f"{found}, because {who} {are} constant ({rows})."
        if self.is_too_small(level):
            question = f"{x} and {y} are dependent"
            return self._too_few(question, f"{self.n:,} rows", level) + self._on_copies
        if self.p_value > level:
            found = f"No dependence between {x} and {y} detected{at_level(self.p_value, level)}"
            return f"{found} ({rows}).{self._on_copies}"
        limit = self._not_tested(x, y)
        strength = ""
        if self.p_value_distinct is None or self.p_value_distinct <= level:  # not made by copies
            strength = self._direction(x, y) or self._explained_text(x, y)
            if self.contrast is not None:
                strength += f" {self.contrast.words}"
        are = f"{x} and {y} are dependent{at_level(self.p_value, level)}"
        found = f"{are} ({rows}).{limit}{strength}{self._on_copies}"
        return f"{found} {pairs_note(self.row_order, self.n)}".rstrip()

    def _not_tested(self, x: str, y: str) -> str:
        """Return that single columns are not tested, after a space; empty without several."""
        several = []
        for names, otherwise in ((self.x_names, x), (self.y_names, y)):
            if names is not None and _has_several(names):
                several.append(f"which of {listed(source_columns(names), N_NAMED)}")
            else:
                several.append(otherwise)
        first, second = several
        if first == x and second == y:
            return ""
        if first == x:
            first, second = second, first
        return f" The test does not show {first} is related to {second}."

    def _direction(self, x: str, y: str) -> str:
        """Return a sentence on whether y rises or falls with x, with a space before it."""
        if self.rank_correlation is None:
            return ""
        measured = f"(rank correlation {self.rank_correlation:.2f})".replace("-", "−")
        # Under independence √(n − 1) times the rank correlation is about N(0, 1); if the spread of
        # y depends on x, it varies more.
        least = MIN_TREND_ERRORS
        if self.explained is not None and not self._is_curved:
            least = MIN_ERRORS_OF_LINE
        is_clear = abs(self.rank_correlation) * (self.n - 1) ** 0.5 >= least
        if not is_clear and abs(self.rank_correlation) < MONOTONE_CORRELATION:
            curve = self._explained_text(x, y)
            if curve:
                return f" The relation is not simply rising or falling {measured}, but{curve}"
            return f" {y} has no clear upward or downward trend with {x} {measured}."
        tendency = "lower"
        if self.rank_correlation > 0:
            tendency = "higher"
        found = f" Where {x} is higher, {y} tends to be {tendency} {measured}."
        if self._is_curved:
            found += self._explained_text(x, y)
        return found

    @property
    def _is_curved(self) -> bool:
        """Whether one column explains clearly more of the other than a straight line would."""
        if self.explained is None or self.rank_correlation is None:
            return False
        return self.explained.share >= self.rank_correlation**2 + MIN_SHARE_BEYOND

    def _explained_text(self, x: str, y: str) -> str:
        """Return how much of a variance is explained, with a space before it; empty if little."""
        if self.explained is None or self.explained.share < MIN_SHARE_EXPLAINED:
            return ""
        if self.explained.by == "y":
            x, y = y, x
        return f" {x} explains about {100 * self.explained.share:.0f} % of the variance of {y}."

    def _effect_rows(self) -> list[tuple[str, str]]:
        rows = [("kernel correlation (from 0, independent, to 1)", f"{self.correlation:.2g}")]
        if self.rank_correlation is not None:
            measured = f"{self.rank_correlation:.2f}".replace("-", "−")
            rows.insert(0, ("rank correlation (Spearman)", measured))
        return rows

    @property
    def _on_copies(self) -> str:
        """A sentence on rows that are copies, with a space before it; empty without them."""
        if not self.n_copies:
            return ""
        copies = f"{self.n_copies:,}"
        if self.distinct:
            were = "1 row that was an exact copy was"
            if self.n_copies != 1:
                were = f"{copies} exact copies of rows were"
            return f" {were} dropped before the test."
        if not self.copies_stand_out or self._copies_change_nothing:
            return ""
        are = agree(self.n_copies, "is an exact copy of another", "are exact copies of other rows")
        advice = ""
        if self.p_value_distinct is not None:
            p = p_value_text(self.p_value_distinct, self.n_permutations, self.is_complete)
            advice = f" Without the copies, {p}. Use {option('distinct')} to drop them."
        assumed = "but the p-value assumes independent rows"
        return f" {copies} of {self.n:,} rows {are}, {assumed}.{advice}"

    @property
    def _copies_change_nothing(self) -> bool:
        """Whether there are few copies, and the verdict is the same without them."""
        if self.p_value_distinct is None or self.n_copies > MIN_SHARE_NAMED * self.n:
            return False
        return (self.p_value <= LEVEL) == (self.p_value_distinct <= LEVEL)

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types."""
        return {
            "n": self.n,
            **super().to_dict(level),
            "correlation": self.correlation,
            "rank_correlation": self.rank_correlation,
            "explained": None if self.explained is None else asdict(self.explained),
            "contrast": None if self.contrast is None else asdict(self.contrast),
            "n_copies": self.n_copies,
            "p_value_distinct": self.p_value_distinct,
            "distinct": self.distinct,
            "row_order": self._row_order_dict(),
        }

    def _row_order_dict(self) -> dict[str, Any] | None:
        """Return how alike neighbouring rows are on each side, in JSON's types."""
        if self.row_order is None:
            return None
        x, y = self.row_order
        return {"x": x.to_dict(), "y": y.to_dict()}


def _has_several(names: tuple[str, ...] | None) -> bool:
    """Whether one side has more than one column; indicators of one text column are one."""
    return names is not None and len(source_columns(names)) > 1


def _listed(names: tuple[str, ...] | None, otherwise: str) -> str:
    """Return the names of columns in words, several in brackets; of many, the first ones."""
    if not names:
        return otherwise
    names = tuple(source_columns(names))
    if len(names) > N_NAMED:
        return f"({', '.join(names[: N_NAMED - 1])} and {len(names) - N_NAMED + 1} more columns)"
    if len(names) == 1:
        return names[0]
    return f"({', '.join(names)})"
