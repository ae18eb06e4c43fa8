"""What a test says, and why: the p-value, which statistic spoke, and all the others."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from muhat._arrays import Array
from muhat._reportable import Reportable
from muhat._shown import Shown
from muhat.embedding import Element
from muhat.kernels import Kernel
from muhat.testing._marginals import FeatureDifference
from muhat.testing._permutations import PermutationTable
from muhat.testing._statistics import Statistic

LEVEL = 0.05
"""The level at which a verdict calls samples different, or columns dependent."""

SHOWN = 5
"""Rows that a result names, of each sample."""


@dataclass(frozen=True)
class SingleTest:
    """One statistic of one kernel, with its p-value as if it were the only one asked."""

    kernels: tuple[Kernel, ...]
    """The kernel; for independence, that of x and that of y."""
    statistics: tuple[Statistic, ...]
    """The statistic with its λ or t; for independence, the weights h of x and of y, or one of both."""
    value: float
    p_value: float
    standardized: float
    """The normal score of the value: as far out as so many standard deviations of a normal law."""

    def __str__(self) -> str:
        if len(self.statistics) < len(self.kernels):
            return f"{self.statistics[0]} of {' × '.join(map(short, self.kernels))}"
        return " × ".join(f"{h} of {short(k)}" for h, k in zip(self.statistics, self.kernels, strict=True))

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
    return repr(kernel) if bandwidth is None else f"{type(kernel).__name__}({bandwidth:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class Result(Reportable, Shown):
    """What every test has to say.

    Attributes
    ----------
    p_value : float
        Exact for all statistics together: under the null hypothesis P(p ≤ α) ≤ α for every α; never zero.
    statistic : float
        The combination of all statistics: the soft maximum of their normal scores.
    permuted : array of shape (n_permutations,)
        The same for every permutation.
    n_permutations : int
        How many there were, beside the observed data.
    is_complete : bool
        Whether these are all permutations that differ, instead of random ones.
    best : SingleTest
        The statistic that spoke: the kernel, bandwidth, λ and weight h that were largest.
    tests : tuple of SingleTest
        All of them.
    """

    p_value: float
    statistic: float
    permuted: Array
    n_permutations: int
    is_complete: bool
    best: SingleTest
    tests: tuple[SingleTest, ...]

    @property
    def _because(self) -> str:
        many = f"{len(self.tests)} statistics" if len(self.tests) > 1 else "one statistic"
        how = "all" if self.is_complete else "random"
        spoke = f"; {self.best} spoke" if len(self.tests) > 1 else f" ({self.best})"
        return f"p = {self.p_value:.3g}, {many} on {self.n_permutations} {how} permutations{spoke}"

    def verdict(self, level: float = LEVEL) -> str:
        """Return one sentence: what the test finds at a level, and why."""
        raise NotImplementedError

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types, without the permuted ones."""
        return {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "n_permutations": self.n_permutations,
            "is_complete": self.is_complete,
            "best": self.best.to_dict(),
            "tests": [each.to_dict() for each in self.tests],
            "verdict": self.verdict(level),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._because})"


Candidates = list[tuple[tuple[Kernel, ...], tuple[Statistic, ...]]]
"""Every statistic of every kernel, all parameters numbers."""


def of_table(table: PermutationTable, candidates: Candidates) -> dict[str, Any]:
    """Return what every result has, from the values of all statistics."""
    tests = tuple(
        SingleTest(kernels, statistics, float(value), float(p), float(standardized))
        for (kernels, statistics), value, p, standardized in zip(
            candidates, table.values[:, 0], table.p_values, table.standardized[:, 0], strict=True
        )
    )
    return {
        "p_value": table.p_value,
        "statistic": float(table.combined[0]),
        "permuted": table.combined[1:],
        "n_permutations": table.values.shape[1] - 1,
        "best": tests[table.loudest],
        "tests": tests,
    }


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(Result):
    """Whether two samples come from one distribution, and where they differ.

    Attributes
    ----------
    p_value, statistic, permuted, n_permutations, is_complete, best, tests
        As for every ``Result``.
    n, m : int
        The numbers of rows.
    rows_together : int
        How many rows are permuted together, as a bin or a block.
    is_exact : bool
        Whether the p-value is exact; it is approximate where rows that depend on each other were permuted in blocks.
    mmd : float
        The effect size: the distance of the two kernel means, for the kernel that spoke.
    mmd_interval : tuple of two floats
        An approximate 95 % confidence interval of that distance between the distributions the samples come from. The
        distance of the samples is larger by its noise, and may lie above the interval where there is no difference.
    witness : Embedding or FeatureEmbedding
        The function that the statistic which spoke is largest for: above zero where the first sample has more mass.
    witness_x, witness_y : arrays of shape (n,) and (m,)
        Its values at the rows of both samples; beyond 20,000 rows in both, at some of them drawn at random.
    numbers_x, numbers_y : arrays of shape (n,) and (m,)
        The numbers of these rows.
    features : tuple of FeatureDifference
        Every feature by itself, the one that differs most first.
    most_telling_x, most_telling_y : arrays of shape (n, 2) and (m, 2)
        The values of the two features that differ most, where the witness was evaluated.
    """

    n: int
    m: int
    rows_together: int
    is_exact: bool
    mmd: float
    mmd_interval: tuple[float, float]
    witness: Element
    witness_x: Array
    witness_y: Array
    numbers_x: Array
    numbers_y: Array
    features: tuple[FeatureDifference, ...]
    most_telling_x: Array
    most_telling_y: Array

    @property
    def rows_x(self) -> Array:
        """The rows of X that are least like Y, in order: where the witness is largest."""
        return self.numbers_x[self.witness_x.argsort(kind="stable")[::-1]]

    @property
    def rows_y(self) -> Array:
        """The rows of Y that are least like X, in order: where the witness is smallest."""
        return self.numbers_y[self.witness_y.argsort(kind="stable")]

    @property
    def _because(self) -> str:
        if self.rows_together == 1:
            return super()._because
        what = "bins" if self.is_exact else "blocks"
        return f"{super()._because}, {what} of {self.rows_together} rows{'' if self.is_exact else ', approximate'}"

    def verdict(self, level: float = LEVEL) -> str:
        """Return one sentence: what the test finds at a level, and why."""
        n, m = self.n, self.m
        if self.p_value > level:
            return f"No difference is found between the two samples of {n} and {m} rows ({self._because})."
        most = self.features[0]
        where = f"; taken by itself, {most.name} differs most" if most.p_value <= level else ""
        return f"The two samples of {n} and {m} rows differ ({self._because}){where}."

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types, and the rows of each sample that are least like the other."""
        return {
            "n": self.n,
            "m": self.m,
            **super().to_dict(level),
            "rows_together": self.rows_together,
            "is_exact": self.is_exact,
            "mmd": self.mmd,
            "mmd_interval": list(self.mmd_interval),
            "rows_x": self.rows_x[:SHOWN].tolist(),
            "rows_y": self.rows_y[:SHOWN].tolist(),
            "features": [{field.name: getattr(each, field.name) for field in fields(each)} for each in self.features],
        }


@dataclass(frozen=True, eq=False, repr=False)
class IndependenceResult(Result):
    """Whether the columns y depend on the columns x.

    Attributes
    ----------
    p_value, statistic, permuted, n_permutations, is_complete, best, tests
        As for every ``Result``.
    n : int
        The number of rows.
    correlation : float
        The effect size: HSIC(x, y)/√(HSIC(x, x) HSIC(y, y)) for the kernels of ``best``, between 0 and 1.
    x_names, y_names : tuple of str or None
        The names of the columns, where data frames were given.
    n_copies : int
        How many rows of (x, y) are exact copies of others, whether they were dropped or not.
    copies_stand_out : bool
        Whether rows that are equal in x are mostly equal in y too, beyond what values that repeat explain: the verdict
        then mentions the copies.
    distinct : bool
        Whether copies were dropped.
    constant : tuple of str
        Which of 'x' and 'y' are the same in all rows: p is then 1.
    """

    n: int
    correlation: float
    x_names: tuple[str, ...] | None = None
    y_names: tuple[str, ...] | None = None
    n_copies: int = 0
    copies_stand_out: bool = False
    distinct: bool = False
    constant: tuple[str, ...] = ()

    def verdict(self, level: float = LEVEL) -> str:
        """Return one or two sentences: what the test finds at a level, how sure, and how strong."""
        x, y = _listed(self.x_names, "x"), _listed(self.y_names, "y")
        rows = f"{self.n:,} row{'' if self.n == 1 else 's'}, {self._p_text}"
        if self.constant:
            who = " and ".join({"x": x, "y": y}[side] for side in self.constant)
            are = "are" if len(self.constant) > 1 else "is"
            return f"No dependence of {y} on {x} can be seen: {who} {are} the same in all rows ({rows})."
        if self.p_value > level:
            return f"No dependence of {y} on {x} detected ({rows}).{self._on_copies}"
        verb = "depend" if len(self.y_names or ()) > 1 else "depends"
        strength = f"kernel correlation {self.correlation:.2g} on a scale from 0 to 1"
        return f"{y} {verb} on {x} ({rows}; {strength}).{self._on_copies}"

    @property
    def _p_text(self) -> str:
        """The p-value; where it is the least that so many random permutations can give, as a bound."""
        is_least = not self.is_complete and self.p_value * (self.n_permutations + 1) < 1.5
        return f"p {'≤' if is_least else '='} {self.p_value:.2g}"

    @property
    def _on_copies(self) -> str:
        """A sentence on rows that are copies, with a space before it; nothing where there are none to speak of."""
        if not self.n_copies:
            return ""
        copies = f"{self.n_copies:,}"
        if self.distinct:
            were = "1 row that was an exact copy was" if self.n_copies == 1 else f"{copies} exact copies of rows were"
            return f" {were} dropped before the test."
        if not self.copies_stand_out:
            return ""
        are = "is an exact copy of another" if self.n_copies == 1 else "are exact copies of others"
        return f" {copies} of {self.n:,} rows {are}; p assumes independent rows (distinct=True drops copies)."

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return the numbers in JSON's types."""
        return {
            "n": self.n,
            **super().to_dict(level),
            "correlation": self.correlation,
            "n_copies": self.n_copies,
            "distinct": self.distinct,
        }


def _listed(names: tuple[str, ...] | None, otherwise: str) -> str:
    """Return the names of columns in words, the first ones of many."""
    if not names:
        return otherwise
    if len(names) > SHOWN:
        return f"{', '.join(names[: SHOWN - 1])} and {len(names) - SHOWN + 1} more columns"
    return ", ".join(names)
