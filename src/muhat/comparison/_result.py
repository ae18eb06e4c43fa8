"""What a comparison found, in numbers and in words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, rounding
from muhat._parts import Parts
from muhat._reportable import Reportable
from muhat._summary import GOOD, NEUTRAL, HtmlReprMixin, Summary
from muhat._text import agree, listed
from muhat._validation import checked_masses
from muhat._wording import gain_parts
from muhat.comparison._arguments import checked_parts
from muhat.comparison._row import Row, json_safe
from muhat.comparison._scoring import by_leave_one_out, default_row, rows_of
from muhat.errors import MuhatError
from muhat.gram import APPROXIMATIONS, FactorProblem, FeatureProblem, SpectralProblem
from muhat.gram._feature_problem import ERROR_ROWS
from muhat.kernels import Kernel
from muhat.mean import KernelMean, Solution, solve, warn_of_open_end
from muhat.selection import MAX_ROWS_REFIT, Fixed, LeaveOneOut, name_of_rule
from muhat.selection._base import bias_factor_on
from muhat.stacking import StackedMean

NUMBER = re.compile(r"\d+\.\d+(e[+-]?\d+)?")
"""A number with decimals in the text of a kernel."""

MAX_MISSED_SHARE = 0.1
"""The share of the kernel that features may miss without a note."""

MIN_ROWS_FOR_ERROR = 3
"""Rows from which on gains of left-out rows vary, so that they have a standard error."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Reportable, HtmlReprMixin):
    """Every filter on one sample, with its parameter, score and gain.

    Attributes
    ----------
    rows : tuple of Row
        The filters. KME, with which all others are compared, comes first.
    best : Row
        The filter with the lowest leave-one-out score; of equal ones, the one that shrinks least.
    risk : float
        R, the unbiased estimate of KME's risk E‖μ̂ − μ‖² with n − 1 points, as many as
        leave-one-out uses.
    eigenvalues : array of shape (n,) or (r,)
        The eigenvalues of K/n, ascending, or those of its approximation.
    kernel, selection : Kernel and str
        The kernel, with all parameters as numbers, and the name of the requested selection rule.
    n, d : int
        The number of points and of features.
    gram, gram_reason : str
        How the Gram matrix was stored ('dense', 'nystrom' or 'random-features'), and why.
    n_components, kept : int and float
        The number of features of the approximation, zero without one; and the share of
        Σ k(x_i, x_i) that the features retain.
    approximation_error, error_unit : float and str
        The error of the approximated mean, as in ``KernelMean``, and the norm it is measured in.
    stacked : StackedMean or None
        The stacked mean of the same rows; None if only some filters were compared, or if there are
        too many rows for a Gram matrix.
    standardize : bool
        Whether every column was scaled to mean 0 and variance 1.
    threshold : float
        How many standard errors the best gain must exceed to be significant, corrected for the
        number of candidates.
    default : Row or None
        What ``KernelMean()`` chooses for these rows: the plain average or F-KMSE. None if there are
        too many rows for a Gram matrix.
    """

    rows: tuple[Row, ...]
    best: Row
    risk: float
    eigenvalues: Array
    kernel: Kernel
    selection: str
    n: int
    d: int
    gram: str = "dense"
    gram_reason: str = ""
    n_components: int = 0
    approximation_error: float = 0.0
    error_unit: str = ""
    kept: float = 1.0
    stacked: StackedMean | None = None
    standardize: bool = False
    threshold: float = 2.0
    extra_bias: float = 0.0
    """What a strength of one adds to the squared bias, in percent of the risk.

    It is zero unless the squared bias is counted more than once.
    """
    default: Row | None = None

    @classmethod
    def from_solution(cls, solution: Solution, parts: Parts) -> Comparison:
        """Score every choice by leave-one-out and measure it against KME, the first."""
        problem = cast(SpectralProblem, solution.problem)
        choices = solution.choices
        rule = LeaveOneOut()
        for choice in choices:
            warn_of_open_end(choice)
        scored = by_leave_one_out(problem, choices)
        risk = float(problem.spectrum.risk) * problem.n / (problem.n - 1)
        rows, threshold = rows_of(solution, choices, scored, risk)
        best = rule.best(problem, [each for each in scored if each is not None]).filter
        winner = next(row for row in rows if row.filter is best)
        if solution.features is not None:
            dimension = solution.features.dimension
        else:
            dimension = cast(Array, solution.points).shape[1]
        sizes = (problem.n, dimension)
        about = problem.spectrum.gamma, solution.kernel, name_of_rule(parts.rule)
        known: dict[str, Any] = {"gram_reason": solution.plan.reason, "threshold": threshold}
        if isinstance(problem, FactorProblem):
            known["gram"] = "low-rank"
        if winner.improvement is not None:
            again = float(bias_factor_on("auto", problem)) - 1
            known["extra_bias"] = 100 * again * float(problem.spectrum.squared_norm) / risk
        comparison = cls(rows, winner, risk, *about, *sizes, **known)
        if solution.accumulated is not None:
            return comparison._with_features(solution)
        return replace(comparison, default=default_row(solution, risk))

    def _with_features(self, solution: Solution) -> Comparison:
        """Return the comparison with what is known of the features."""
        problem, kind = cast(FeatureProblem, solution.problem), type(solution.plan.gram)
        gram = kind.__name__
        for name, known in APPROXIMATIONS.items():
            if known is kind:
                gram = name
        own, features = problem.sums.own, problem.features
        kept, error_unit = 1.0, "its values (root mean square)"
        if own:
            kept = float(problem.spectrum.trace) * problem.sums.total_mass / own
        if features.projects:
            error_unit = "the norm of the RKHS"
        return replace(
            self,
            gram=gram,
            n_components=features.size,
            approximation_error=cast(Any, solution.accumulated).error,
            error_unit=error_unit,
            kept=kept,
        )

    @classmethod
    def from_estimator(cls, estimator: KernelMean) -> Comparison:
        """Return the comparison of all filters that a ``KernelMean`` has tried.

        It must be fitted without target and weights.
        """
        check_is_fitted(estimator)
        if estimator.features_ is not None or estimator.gram_ == "blocks":
            needed = "an estimator that has stored its Gram matrix is needed"
            got = "one fitted by features"
            if estimator.features_ is None:
                got = "one fitted by products"
            raise MuhatError("Comparison", needed, got, "use muhat.compare(X, gram=...)")
        filters = list(map(attrgetter("filter"), estimator.choices_))
        selection = estimator.selection
        if isinstance(estimator.filter, str) and estimator.filter == "auto":
            selection = estimator.choices_[0].rule
        parts = checked_parts(estimator.kernel_, filters, selection, "dense")
        points = estimator.embedding_.points[: len(estimator.weights_)]
        solution = solve(parts, points, checked_masses("Comparison", None, len(points)))
        own = next(choice for choice in solution.choices if choice.filter == estimator.filter_)
        if own.parameter is not None:  # the estimator's own may have been chosen on a factor
            own = Fixed(estimator.choice_.parameter).choose(solution.problem, own.filter)
        weights = solution.embedding(own).weights
        gap = np.abs(weights - estimator.weights_).max()
        if estimator.target is not None or gap > rounding(weights) ** 0.5 * np.abs(weights).max():
            needed = "an estimator fitted without target and sample_weight is needed"
            raise MuhatError("Comparison", needed, "one fitted with", "use muhat.compare(X)")
        return cls.from_solution(solution, parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the table, one sentence each."""
        notes = []
        if self.n_components:
            how = (
                f"The Gram matrix is approximated by {self.n_components} features "
                f"({self.gram}; {self.gram_reason})"
            )
            error = (
                f"On {min(self.n, ERROR_ROWS)} rows, the approximate mean differs from the exact "
                f"one by {self.approximation_error:.2g}"
            )
            notes.append(f"{how}. {error} in {self.error_unit}.")
            if self.kept < 1 - MAX_MISSED_SHARE:
                kept = f"The features retain {100 * self.kept:.3g} % of the mean of k(x, x)"
                notes.append(
                    f"{kept}, and scores and risk describe only this part. Use more features or a "
                    "larger bandwidth to retain more."
                )
        stacked = 0.0
        if self.stacked is not None:
            stacked = 100 * self.stacked.gain_
        if round(max(self.best.improvement or 0.0, stacked), 2) > 100:
            notes.append(
                "Estimated gains above 100 % only rank the estimators: no estimator can gain more "
                "than 100 % of KME's risk."
            )
        unscored = [row.name for row in self.rows if row.scores is None]
        if unscored:
            names = listed(unscored, len(unscored))
            price = f"would need {self.n} eigendecompositions"
            notes.append(
                f"{names} {agree(len(unscored), 'has', 'have')} no leave-one-out score: with more "
                f"than {MAX_ROWS_REFIT} rows, it {price}."
            )
        for row in self.rows:
            if row.selection not in ("", self.selection):
                notes.append(
                    f"The parameter of {row.name} is chosen by {row.selection}, not "
                    f"{self.selection}."
                )
        return tuple(notes)

    def default_verdict(self) -> str:
        """Return one sentence on the choice of ``KernelMean()`` for these rows.

        It is empty if the choice is not known.
        """
        default = self.default
        if default is None or default.improvement is None:
            return ""
        if default.strength == 0:
            return "By default, KernelMean() keeps the plain average for these rows."
        lower, error = gain_parts(default.improvement, default.standard_error)
        by = lower.removesuffix(" lower")
        gain = " ".join(
            filter(None, [f"is estimated to lower the error by {by}", error and f"({error})"])
        )
        chosen = f"the filter {default.name} with {default.setting}"
        return f"By default, KernelMean() uses {chosen}, which {gain}."

    @property
    def helps(self) -> bool:
        """Whether the best filter, or the default, is clearly better than the plain average.

        Two conditions must hold. The gain, with the squared bias multiplied as by
        ``LeaveOneOut(bias_factor="auto")``, exceeds ``threshold`` standard errors: two, corrected
        for the number of candidates. And the default ``KernelMean()``, which is not the best of
        many scores, gains more than one standard error.
        """
        return self._clearly_better is not None

    @property
    def _clearly_better(self) -> Row | None:
        """The best filter if it is clearly better, else what ``KernelMean()`` takes if that is."""
        default = self.default
        if default is not None and (default.improvement or 0.0) <= (default.standard_error or 0.0):
            return None
        for row in (self.best, default):
            if row is not None and self._is_clear(row):
                return row
        return None

    def _is_clear(self, row: Row) -> bool:
        """Whether a gain exceeds chance, corrected for the number of candidates."""
        if row.improvement is None or row.strength == 0:
            return False
        # Infinite where the variance is that of two components or fewer.
        excess = row.strength**2 * self.extra_bias
        return bool(row.improvement - excess > self.threshold * (row.standard_error or 0.0))

    @property
    def kernel_text(self) -> str:
        """The kernel as text, numbers with four digits."""
        return NUMBER.sub(lambda found: f"{float(found[0]):.4g}", repr(self.kernel))

    def verdict(self) -> str:
        """Return one sentence: does a filter beat the plain average, which, and by how much?"""
        clear, on = self._clearly_better, f"these {self.n:,} rows"
        best = clear or self.best
        if best.improvement is None:
            return (
                "The kernel does not distinguish any of these rows: the plain average is exact and "
                "cannot be improved."
            )
        if self.n < MIN_ROWS_FOR_ERROR:
            return (
                f"{self.n} rows are too few to tell whether shrinkage improves their kernel mean."
            )
        if best.improvement <= 0:
            return (
                f"Shrinkage by filters does not help: no filter{self._with_a_score} is better than "
                f"the plain average on {on}."
            )
        if clear is not None and best.improvement >= 100:
            return (
                f"Shrinkage helps: the kernel mean of {on} is indistinguishable from zero. "
                f"{best} shrinks it to zero, which is estimated to remove all of the plain "
                "average's expected squared error."
            )
        what = f"the expected squared error of the kernel mean of {on}"
        if clear is not None:
            return self._clear_text(best, best.improvement, what)
        return self._unclear_text(best, best.improvement, what)

    def _clear_text(self, best: Row, improvement: float, what: str) -> str:
        """Return by how much a filter lowers an error that ``what`` names."""
        lower, error = gain_parts(improvement, best.standard_error)
        sure = "; ".join(filter(None, [error, f"significant{self._corrected}"]))
        lowers = f"compared with the plain average, {best.label} lowers {what}"
        by = lower.removesuffix(" lower")
        return f"Shrinkage helps: {lowers} by {by} ({sure}).{_edge_sentence(best)}"

    def _unclear_text(self, best: Row, improvement: float, what: str) -> str:
        """Return that no gain is clear, the largest one, and which would be."""
        lower, error = gain_parts(improvement, best.standard_error)
        sure = (
            "This estimate leaves out a part of the bias; corrected for it, no gain is significant"
        )
        least = self.threshold * (best.standard_error or 0.0)
        if improvement <= least:
            needed = f"it is above {gain_parts(least, None)[0].removesuffix(' lower')}"
            sure = (
                f"This may be chance: such a gain is significant{self._corrected} only if {needed}"
            )
            if least >= 100:
                sure = "This may be chance: with so few rows, no gain would be significant"
        tried = str(best)
        if self._n_candidates > 2:
            tried = f"The best of {self._n_candidates:,} candidates{self._with_a_score}"
        by = lower.removesuffix(" lower")
        gain = " ".join(filter(None, [f"seems to lower it by {by}", error and f"({error})"]))
        below = f"{what} below that of the plain average"
        finding = f"No filter detectably lowers {below}. {tried} {gain}. {sure}."
        if not _is_strongest(best):  # weaker shrinkage than the weakest would not help either
            return finding
        return f"{finding}{_edge_sentence(best)}"

    @property
    def _n_candidates(self) -> int:
        """The number of candidates with a score; KME is one."""
        return sum(len(row.grid) for row in self.rows if row.scores is not None)

    @property
    def _with_a_score(self) -> str:
        """What candidates are counted, with a space before it; empty for all."""
        if any(row.scores is None for row in self.rows):
            return " with a score"
        return ""

    @property
    def _corrected(self) -> str:
        """What significance is corrected for, with a space before it; empty for one candidate."""
        if self._n_candidates <= 2:
            return ""
        candidates = f"{self._n_candidates:,} candidates{self._with_a_score}"
        return f" after correction for the {candidates}"

    def stacked_verdict(self) -> str:
        """Return one sentence on the stacked mean; empty if there is none."""
        if self.stacked is None or self.best.improvement is None:
            return ""
        return self.stacked.verdict(self.best.improvement, self.best.standard_error or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return all results in types that JSON has; None for numbers that are not finite."""
        numbers = (
            "n",
            "d",
            "gram",
            "gram_reason",
            "approximation_error",
            "kept",
            "selection",
            "risk",
            "eigenvalues",
        )
        stacked = None
        if self.stacked is not None:
            stacked = json_safe(self.stacked.to_dict())
        return {
            **{name: json_safe(getattr(self, name)) for name in numbers},
            "n_components": self.n_components or None,
            "kernel": repr(self.kernel),
            "best": self.best.name,
            "helps": self.helps,
            "default": self.default_verdict(),
            "verdict": self.verdict(),
            "notes": list(self.notes),
            "estimators": list(map(Row.to_dict, self.rows)),
            "stacked": stacked,
        }

    def _summary(self) -> Summary:
        verdicts = (self.verdict(), self.default_verdict(), self.stacked_verdict())
        rows = []
        for row in self.rows:
            rows.append((row.name, row.setting, row.gain_text, f"{100 * row.strength:.3g} %"))
        tone = NEUTRAL
        if self.helps:
            tone = GOOD
        return Summary(
            " ".join(filter(None, verdicts)),
            ("estimator", "parameter", "gain over KME, % of its error", "shrunk"),
            rows,
            tone,
        )

    def __getitem__(self, name: str) -> Row:
        return {row.name: row for row in self.rows}[name]

    def __repr__(self) -> str:
        return (
            f"Comparison({len(self.rows)} estimators on {self.n} points of {self.d} features, "
            f"best: {self.best})"
        )


def _edge_sentence(row: Row) -> str:
    """Return a sentence for a parameter at the edge of its grid, after a space; else nothing."""
    if not row.at_edge:
        return ""
    side = "weakest"
    if _is_strongest(row):
        side = "strongest"
    edge = f"is at the edge of its grid: it gives the {side} shrinkage that was tried"
    return f" The parameter of {row.label} {edge}."


def _is_strongest(row: Row) -> bool:
    """Return whether the parameter is that of the strongest shrinkage which was tried."""
    return bool(row.strength >= row.strengths.max())
