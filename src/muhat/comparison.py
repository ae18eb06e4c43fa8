"""Every filter on one sample, side by side: which is better here, and by how much of KME's risk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, rounding
from muhat._messages import sample_size
from muhat._parts import Parts, as_filters, without_harm
from muhat._reportable import Reportable
from muhat._summary import GOOD, NEUTRAL, HtmlReprMixin, Summary
from muhat._validation import as_frame, checked_masses, checked_sample
from muhat._wording import gain_parts, gain_text, setting_text
from muhat.data import ArraySource, ColumnMoments, SampleBatch, Source, TransformedSource, as_source
from muhat.errors import MuhatError
from muhat.filters import AUTO, FILTERS, KME, Shrinker, name_of
from muhat.gram import (
    APPROXIMATIONS,
    Approximation,
    DenseProblem,
    FactorProblem,
    FeatureProblem,
    SpectralProblem,
)
from muhat.gram._feature_problem import ERROR_ROWS
from muhat.kernels import Kernel, Precomputed
from muhat.mean import KernelMean, Solution, solve, solve_source, warn_of_open_end
from muhat.selection import MAX_ROWS_REFIT, Choice, Fixed, LeaveOneOut, name_of_rule
from muhat.selection._base import GAIN_ROUNDING, Candidates, bias_factor_on
from muhat.selection._leave_one_out import gain_errors
from muhat.stacking import StackedMean

NUMBER = re.compile(r"\d+\.\d+(e[+-]?\d+)?")
"""A number with decimals in the text of a kernel."""

MAX_MISSED_SHARE = 0.1
"""The share of the kernel that features may miss without a note."""

N_ROWS_FOR_ERRORS = 1000
"""Rows from which the standard errors of gains are estimated."""


MIN_ROWS_FOR_ERROR = 3
"""Rows from which on gains of left-out rows vary, so that they have a standard error."""


def compare(
    X: Any,
    kernel: Any = "gaussian",
    filters: Any = None,
    selection: Any = "loo",
    standardize: bool = True,
    gram: Any = "auto",
) -> Comparison:
    """Compare filters on a sample, all on one decomposition.

    For each, what ``KernelMean(filter=...)`` chooses.

    Beside all filters, on rows in memory, is the stacked mean, ``StackedMean``.

    Parameters
    ----------
    X : array or data frame of shape (n, d), also of dask, or batches of them
        The sample, of at least 2 points; one dimension is one column. Batches must be such that can
        be iterated anew, as a list or ``muhat.open_batches("big.parquet")``: they are passed over
        up to four times (to standardize, to draw landmarks and bandwidth, to sum up and to leave
        points out), and never held at once if they are many.
    kernel, selection : as in ``KernelMean``, default='gaussian' and 'loo'
        The kernel, and how parameters are chosen; where a rule cannot choose for a filter, a note
        says which stood in.
    filters : sequence of str or Shrinker, default=None
        The filters; by default, or for ``'auto'``, all of ``muhat.filters.FILTERS``. KME, which all
        are measured against, always takes part.
    standardize : bool, default=True
        Whether every feature is brought to mean 0 and variance 1, as in the paper, constant
        features to 0. For kernels that are no function of x − y, whose mean that would make zero,
        features are scaled and not centred.
    gram : str, Nystrom or RandomFeatures, default='auto'
        One of 'auto', 'dense', 'nystrom', 'random-features'.
        How the Gram matrix is held: as it is, up to 5000 points by default, or approximated by
        features, which takes any number. The scores are then the exact leave-one-out scores of the
        approximated kernel.

    Returns
    -------
    comparison : Comparison
        A row for each filter, with its leave-one-out score, whatever rule chose the parameter.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> comparison = compare(X, filters=["s-kmse", "landweber"])
    >>> [row.name for row in comparison.rows]
    ['kme', 's-kmse', 'landweber']
    >>> comparison["kme"].improvement
    0.0
    """
    parts = _parts(kernel, filters, selection, gram)
    rows = _rows(parts, X)
    if standardize:
        moments = _as_source(rows).total(ColumnMoments.from_batch)
        transform = partial(moments.standardized, center=parts.kernel.translation_invariant)
        if isinstance(parts.gram, Approximation):
            example = np.zeros((1, len(moments.mean)))
            parts = replace(parts, gram=parts.gram.transformed(transform, example))
        rows = TransformedSource(rows, transform) if isinstance(rows, Source) else transform(rows)
    if isinstance(rows, Source):
        comparison = Comparison.from_solution(solve_source(parts, rows), parts)
        return replace(comparison, standardize=standardize)
    solution = solve(parts, rows, checked_masses("compare", None, len(rows)))
    comparison = replace(Comparison.from_solution(solution, parts), standardize=standardize)
    if filters is not None or solution.accumulated is not None:
        return comparison
    return replace(comparison, stacked=StackedMean(kernel=solution.kernel).fit(rows))


def _as_source(rows: Any) -> Source:
    if isinstance(rows, Source):
        return rows
    return ArraySource(rows)


def passes(filters: Any = None, standardize: bool = True) -> tuple[str, ...]:
    """Return what ``compare`` passes over batches for, in order, beyond 300 points."""
    shrinkers = as_filters(_with_kme(filters), tuple(FILTERS))
    left_out = any(filter.analytic and not filter.constant for filter in shrinkers)
    return (
        ("standardizing",) * standardize + ("drawing", "summing up") + ("leaving out",) * left_out
    )


def _parts(kernel: Any, filters: Any, selection: Any, gram: Any) -> Parts:
    """Resolve and check every argument but the sample."""
    parts = Parts.from_arguments(
        "compare",
        kernel=kernel,
        filter=_with_kme(filters),
        selection=selection,
        gram=gram,
        auto=tuple(FILTERS),
        best_of=False,
    )
    if isinstance(parts.kernel, Precomputed):
        needed, advice = "a kernel of points is needed", "pass the points and the kernel's name"
        raise MuhatError("compare", needed, "'precomputed'", advice)
    if parts.gram == "blocks":
        needed = "leaving out every point takes gram='dense', 'nystrom' or 'random-features'"
        raise MuhatError(
            "compare", needed, "'blocks'", "or KernelMean(gram='blocks') for one filter"
        )
    return parts


def _with_kme(filters: Any) -> list[Any]:
    """Return the filters asked for, KME first."""
    if not isinstance(filters, list | tuple):
        if filters is None:
            filters = "auto"
        filters = [filters]
    return [KME(), *filters]


def _rows(parts: Parts, X: Any) -> Array | Source:
    """Return a sample as rows in memory or as batches that can be passed over again, validated."""
    X = _one_column(X)
    source = as_source("compare", X)
    if source is not None:
        parts.check_batches(rows_again=True)
        return source
    rows = checked_sample(KernelMean(), X, reset=True)
    if len(rows) < LeaveOneOut.least_points:
        raise MuhatError("compare", "at least 2 rows are needed", sample_size(len(rows)))
    return rows


def _one_column(X: Any) -> Any:
    """Return what has one dimension, as a Series or a list of numbers, as one column.

    Anything else as it is.
    """
    X = as_frame(X)
    if isinstance(X, range) or (
        isinstance(X, list | tuple) and all(isinstance(each, Real) for each in X)
    ):
        X = np.asarray(X)
    if len(getattr(X, "shape", ())) != 1:
        return X
    if hasattr(X, "to_frame"):
        return X.to_frame()
    return X[:, None]


@dataclass(frozen=True, eq=False)
class Row:
    """One filter of a comparison.

    Its name, the parameter that was chosen for it, and how it does.
    """

    name: str
    filter: Shrinker
    parameter: Any
    """The chosen λ or number of iterations t; None where there is none."""
    selection: str
    """The name of the rule that chose; empty where there was nothing to choose."""
    strength: float
    """‖μ̂ − μ_λ‖/‖μ̂‖, how far μ̂ was moved: 0 is not at all, 1 is onto the target."""
    at_edge: bool
    """Whether the parameter is the first or last of its grid."""
    index: int
    grid: Array
    """The candidates, in which the parameter has this place."""
    strengths: Array
    scores: Array | None
    improvements: Array | None
    """The strength, leave-one-out score and gain of each candidate.

    The gain is 100 (LOO_KME − LOO)/R, in percent of KME's estimated risk R, computed as a gain and
    not as a difference of scores. An estimate may be above 100, the gain is not. Scores are None
    where they would take a refit for each of too many points.
    """
    standard_error: float | None
    """That of the chosen parameter's improvement, in percent too.

    From the n differences to KME of which the score is the mean, or from a thousand of them. The
    improvement of the estimate on this very sample may be off by it.
    """
    shrinkage: Array
    """s of every component, for the chosen parameter."""

    @property
    def score(self) -> float | None:
        """The leave-one-out score of the chosen parameter."""
        if self.scores is None:
            return None
        return float(self.scores[self.index])

    @property
    def improvement(self) -> float | None:
        """The chosen parameter's estimate of 100 (R − R_λ)/R.

        Optimistic where the parameter was chosen by it.
        """
        if self.improvements is None:
            return None
        return float(self.improvements[self.index])

    @property
    def gain_text(self) -> str:
        """The improvement with its standard error, as many digits as that has, such as '0.4 ± 0.5'.

        '–' without one.
        """
        return gain_text(self.improvement, self.standard_error)

    @property
    def symbol(self) -> str:
        """The parameter's letter: λ, or t for iterations; empty without a parameter."""
        return self.filter.symbol

    @property
    def setting(self) -> str:
        """The chosen parameter as text, such as 't = 12'; empty where there is none."""
        return setting_text(self.symbol, self.parameter)

    @property
    def label(self) -> str:
        """The name as sentences have it: S-KMSE for s-kmse."""
        if self.name.endswith(("kme", "kmse")):
            return self.name.upper()
        return self.name

    def __str__(self) -> str:
        if self.symbol:
            return f"{self.name} ({self.setting})"
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the row in JSON's types, None for what is not finite."""
        numbers = (
            "name",
            "symbol",
            "parameter",
            "selection",
            "score",
            "improvement",
            "standard_error",
            "strength",
        )
        arrays = ("grid", "strengths", "scores", "improvements")
        return {name: _json_safe(getattr(self, name)) for name in (*numbers, "at_edge", *arrays)}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Reportable, HtmlReprMixin):
    """Every filter on one sample, chosen for and scored on one decomposition.

    Attributes
    ----------
    rows : tuple of Row
        The filters; KME, which all are measured against, comes first.
    best : Row
        The one with the least leave-one-out score; of equal ones, the one that shrinks least.
    risk : float
        R, the unbiased estimate of KME's risk E‖μ̂ − μ‖² on n − 1 points, which is what
        leave-one-out leaves.
    eigenvalues : array of shape (n,) or (r,)
        The eigenvalues of K/n, ascending; those of its approximation where it is held by features.
    kernel, selection : Kernel and str
        The kernel, every parameter a number, and the name of the rule that was asked for.
    n, d : int
        The number of points and of features.
    gram, gram_reason : str
        How the Gram matrix was held, 'dense', 'nystrom' or 'random-features', and why.
    n_components, kept : int and float
        The number of features it is approximated by, zero where it is not; and the share of Σ
        k(x_i, x_i) they keep.
    approximation_error, error_unit : float and str
        What the features' mean misses, as ``KernelMean`` has it, and what that is measured in.
    stacked : StackedMean or None
        The stacked mean of the same rows; none where filters were asked for or rows do not fit in a
        Gram matrix.
    standardize : bool
        Whether every feature was brought to mean 0 and variance 1.
    threshold : float
        How many of its standard errors the best gain must exceed to be clear, as the largest of all
        candidates' gains.
    default : Row or None
        What ``KernelMean()`` takes of these rows: the plain average or F-KMSE, by the rule that
        does no harm; none where rows are not held in a Gram matrix.
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
        scored = _by_leave_one_out(problem, choices)
        risk = float(problem.spectrum.risk) * problem.n / (problem.n - 1)
        rows, threshold = _rows_of(solution, choices, scored, risk)
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
        return replace(comparison, default=_default_row(solution, risk))

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
            needed = "an estimator that holds its Gram matrix is needed"
            got = "one fitted by features"
            if estimator.features_ is None:
                got = "one fitted by products"
            raise MuhatError("Comparison", needed, got, "use muhat.compare(X, gram=...)")
        filters = [choice.filter for choice in estimator.choices_]
        selection = estimator.selection
        if isinstance(estimator.filter, str) and estimator.filter == "auto":
            selection = estimator.choices_[0].rule
        parts = _parts(estimator.kernel_, filters, selection, "dense")
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
        """What a reader of the table has to know, a sentence each."""
        notes = []
        if self.n_components:
            how = (
                f"The Gram matrix is approximated by {self.n_components} features "
                f"({self.gram}; {self.gram_reason})"
            )
            error = (
                f"on {min(self.n, ERROR_ROWS)} rows their mean is off by "
                f"{self.approximation_error:.2g}"
            )
            notes.append(f"{how}: {error} in {self.error_unit}.")
            if self.kept < 1 - MAX_MISSED_SHARE:
                kept = f"The features keep {100 * self.kept:.3g} % of the mean of k(x, x)"
                notes.append(
                    f"{kept}: scores and risk are of that part alone. More features, or a "
                    "wider kernel, keep more."
                )
        stacked = 0.0
        if self.stacked is not None:
            stacked = 100 * self.stacked.gain_
        if round(max(self.best.improvement or 0.0, stacked), 2) > 100:
            notes.append(
                "Estimates above 100 % rank the estimators; no more than all of KME's risk "
                "can be gained."
            )
        unscored = [row.name for row in self.rows if row.scores is None]
        if unscored:
            names = " and ".join(filter(None, (", ".join(unscored[:-1]), unscored[-1])))
            price = f"{self.n} eigendecompositions"
            notes.append(
                f"No leave-one-out score for {names}, beyond {MAX_ROWS_REFIT} points: it "
                f"takes {price}."
            )
        for row in self.rows:
            if row.selection not in ("", self.selection):
                notes.append(
                    f"The parameter of {row.name} is chosen by {row.selection}, not "
                    f"{self.selection}."
                )
        return tuple(notes)

    def default_verdict(self) -> str:
        """Return one sentence on what ``KernelMean()`` takes of these rows.

        Empty where that is not known.
        """
        default = self.default
        if default is None or default.improvement is None:
            return ""
        if default.strength == 0:
            return "KernelMean() with its defaults keeps the plain average here."
        lower, error = gain_parts(default.improvement, default.standard_error)
        gain = ", ".join(filter(None, [f"expected squared error {lower}", error]))
        chosen = f"{default.name} with {default.setting}"
        return f"KernelMean() with its defaults chooses {chosen} ({gain})."

    @property
    def helps(self) -> bool:
        """Whether the best filter is clearly better than the plain average.

        Its gain, with the squared bias counted as often as ``LeaveOneOut(bias_factor="auto")``
        counts it, must exceed ``threshold`` standard errors: two, corrected for the number of
        candidates. And what ``KernelMean()`` takes, which is not the largest of many scores, must
        gain more than one standard error too.
        """
        best, default = self.best, self.default
        if best.improvement is None or best.strength == 0:
            return False
        if default is not None and (default.improvement or 0.0) <= (default.standard_error or 0.0):
            return False
        # Infinite where the variance is that of two components or fewer.
        excess = best.strength**2 * self.extra_bias
        return bool(best.improvement - excess > self.threshold * (best.standard_error or 0.0))

    @property
    def kernel_text(self) -> str:
        """The kernel as text, numbers with four digits."""
        return NUMBER.sub(lambda found: f"{float(found[0]):.4g}", repr(self.kernel))

    def verdict(self) -> str:
        """Return in one sentence if a filter beats the plain average, which, and by how much."""
        best, on = self.best, f"these {self.n:,} rows"
        n_candidates = 0
        among = ""
        for row in self.rows:
            if row.scores is None:
                among = " of those scored"
            else:
                n_candidates += len(row.grid)
        if best.improvement is None:
            return (
                "All rows are equal to the kernel: the plain average is exact, and there is "
                "nothing to improve."
            )
        if self.n < MIN_ROWS_FOR_ERROR:
            return (
                f"{self.n} rows are too few to tell whether shrinkage improves their kernel mean."
            )
        if best.improvement <= 0:
            return (
                f"No filter{among} is better than the plain average on {on}: shrinkage does "
                "not help here."
            )
        if self.helps and best.improvement >= 100:
            return (
                f"Shrinkage helps: the mean of {on} cannot be told from zero, and {best}, "
                "which shrinks it to zero, "
                "is estimated to save all of the plain average's expected squared error."
            )
        lower, error = gain_parts(best.improvement, best.standard_error)
        gain = ", ".join(filter(None, [lower, error]))
        many = f"{best}{among}"
        corrected = ""
        if n_candidates > 2:  # KME is one
            many = f"best of {n_candidates:,} candidates{among}"
            corrected = f" after correction for the {n_candidates:,} candidates{among}"
        edge = _edge_sentence(best)
        what = f"the expected squared error of the kernel mean of {on}"
        if self.helps:
            by = lower.removesuffix(" lower")
            sure = "; ".join(filter(None, [error, f"significant{corrected}"]))
            return f"Shrinkage helps: {best.label} lowers {what} by {by} ({sure}).{edge}"
        sure = "not enough to be sure once its bias is counted"
        if best.improvement <= self.threshold * (best.standard_error or 0.0):
            sure = "within chance"
        return f"Shrinkage does not detectably lower {what} ({many}: {gain}, {sure}).{edge}"

    def stacked_verdict(self) -> str:
        """Return one sentence on the stacked mean beside the filters; empty without one."""
        if self.stacked is None or self.best.improvement is None:
            return ""
        return self.stacked.verdict(self.best.improvement)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types, None for what is not finite."""
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
        return {
            **{name: _json_safe(getattr(self, name)) for name in numbers},
            "n_components": self.n_components or None,
            "kernel": repr(self.kernel),
            "best": self.best.name,
            "helps": self.helps,
            "default": self.default_verdict(),
            "verdict": self.verdict(),
            "notes": list(self.notes),
            "estimators": [row.to_dict() for row in self.rows],
            "stacked": None if self.stacked is None else _json_safe(self.stacked.to_dict()),
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
    if row.strength >= row.strengths.max():
        side = "strongest"
    return f" The parameter of {row.label} is at the edge of its grid, the {side} shrinkage tried."


def _rows_of(
    solution: Solution, choices: Sequence[Choice], scored: Sequence[Choice | None], risk: float
) -> tuple[tuple[Row, ...], float]:
    """Return a row for each choice, and the number of errors that makes the best one clear.

    Gains are shares of KME's risk.
    """
    problem = cast(SpectralProblem, solution.problem)
    names = [name_of(choice.filter) for choice in choices]
    is_risk = risk > GAIN_ROUNDING * float(problem.trace) * problem.mass_range[1]
    errors: Sequence[float | None] = [None] * len(choices)
    threshold = np.inf
    if is_risk:
        errors, threshold = _errors(solution, scored)
    rows = []
    for name, choice, own, error in zip(names, choices, scored, errors, strict=True):
        row = Row(
            name=name,
            filter=choice.filter,
            parameter=choice.parameter,
            selection="",
            strength=choice.strength,
            at_edge=choice.at_edge,
            index=choice.index,
            grid=choice.grid,
            strengths=choice.strengths,
            scores=None,
            improvements=None,
            standard_error=None,
            shrinkage=choice.shrinkage(problem),
        )
        if names.count(name) > 1:
            row = replace(row, name=repr(choice.filter))
        if not choice.filter.parameterless:
            row = replace(row, selection=name_of_rule(choice.rule))
        if own is not None:
            row = replace(row, scores=own.scores)
            if is_risk:
                row = replace(row, improvements=100 * own.gains / risk)
        if error is not None:
            row = replace(row, standard_error=100 * error / risk)
        rows.append(row)
    return tuple(rows), threshold


def _default_row(solution: Solution, risk: float) -> Row:
    """Return the row of what ``KernelMean()`` takes, scored by plain leave-one-out."""
    problem = cast(SpectralProblem, solution.problem)
    rule = cast(LeaveOneOut, without_harm(LeaveOneOut()))
    kappa2 = problem.kappa2(solution.kernel.bound)
    filters = [each.bounded_by(kappa2) for each in as_filters(list(AUTO))]
    choice = rule.best(problem, rule.choices(problem, filters))
    rows, _ = _rows_of(solution, [choice], _by_leave_one_out(problem, [choice]), risk)
    return rows[0]


def _errors(
    solution: Solution, scored: Sequence[Choice | None]
) -> tuple[list[float | None], float]:
    """Return the standard error of each gain, and the threshold for the largest gain.

    At most a thousand rows are used. A choice without a score has None.
    """
    problem = solution.problem
    if isinstance(problem, FeatureProblem):
        assert solution.drawn is not None
        rows = problem.rows(SampleBatch(solution.drawn[:N_ROWS_FOR_ERRORS], 0))
    else:
        every = slice(None, None, -(-problem.n // N_ROWS_FOR_ERRORS))
        rows = cast(DenseProblem, problem).rows[every]
    found = gain_errors(
        cast(SpectralProblem, problem), rows, [each for each in scored if each is not None]
    )
    known = iter(found.standard_errors)
    errors: list[float | None] = []
    for each in scored:
        error = None
        if each is not None:
            error = next(known)
        errors.append(error)
    return errors, found.threshold


def _by_leave_one_out(problem: SpectralProblem, choices: Sequence[Choice]) -> list[Choice | None]:
    """Return each choice with its leave-one-out gains.

    Known where that rule chose, None where they are too dear.
    """
    scored: list[Choice | None] = []
    others: dict[int, Candidates] = {}
    for place, choice in enumerate(choices):
        if _is_plain(choice.rule):
            scored.append(choice)
            continue
        scored.append(None)
        candidates = Candidates(choice.filter, choice.grid)
        if problem.n <= MAX_ROWS_REFIT or LeaveOneOut.is_cheap(problem, candidates):
            others[place] = candidates
    scores = LeaveOneOut().prepare(problem, list(others.values()))
    for number, (place, each) in enumerate(others.items()):
        gains = scores.gains(number, each.grid)
        scored[place] = replace(choices[place], gains=gains, unshrunk=float(scores.unshrunk))
    return scored


def _is_plain(rule: Any) -> bool:
    """Whether a rule's gains are those of plain leave-one-out."""
    return isinstance(rule, LeaveOneOut) and rule.bias_factor in (None, 1)


def _json_safe(value: Any) -> Any:
    """Return a value in JSON's types, None for what is not finite."""
    if isinstance(value, dict):
        return {name: _json_safe(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return [_json_safe(each) for each in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def fit_best(
    comparison: Comparison,
    X: Any,
    *,
    selection: Any = "loo",
    gram: Any = "auto",
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Return the estimator that was best in ``compare(X, ...)``, fitted to the same rows.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    X : array of shape (n, d), or batches that can be iterated again
        The rows that were compared on.
    selection, gram : as in ``compare``
        What was asked for there.
    feature_names : sequence of str, default=None
        Names by which the fitted estimator knows its columns.

    Returns
    -------
    estimator : KernelMean, StackedMean or Pipeline
        A pipeline standardizes new rows as the rows of the comparison were.
    """
    mean = _best_mean(comparison, selection, gram)
    scaler = None
    rows = X
    if comparison.standardize:
        scaler = StandardScaler(with_mean=comparison.kernel.translation_invariant)
        if hasattr(X, "shape"):
            rows = scaler.fit_transform(X)
        else:
            for batch in X:
                scaler.partial_fit(batch)
            rows = _ScaledBatches(X, scaler)
    if hasattr(X, "shape"):
        mean.fit(rows)
    else:
        mean.fit_batches(rows)
    if feature_names is not None:
        first = mean
        if scaler is not None:
            first = scaler
        first.feature_names_in_ = np.array(feature_names, dtype=object)
    if scaler is None:
        return mean
    return make_pipeline(scaler, mean)


def _best_mean(comparison: Comparison, selection: Any, gram: Any) -> Any:
    """Return the stacked mean if its gain is clear and the largest, else the best filter."""
    best, stacked = comparison.best, comparison.stacked
    if stacked is not None:
        to_beat = max(best.improvement or 0.0, 100 * stacked.gain_error_)
        if 100 * stacked.gain_ > to_beat:
            return StackedMean(kernel=comparison.kernel)
    kernel, filter = comparison.kernel, best.filter
    return KernelMean(kernel=kernel, filter=filter, selection=selection, gram=gram)


@dataclass
class _ScaledBatches:
    """Batches that a scaler brings to mean 0 and variance 1 in each pass over them."""

    batches: Iterable[Array]
    scaler: StandardScaler

    def __iter__(self) -> Iterator[Array]:
        return map(self.scaler.transform, self.batches)
