"""KernelMean: the kernel mean of a sample, shrunk, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat._parts import HasKernel, Parts, as_gram, as_kernel, choices_by
from muhat._radius import HasRadius
from muhat._summary import EstimatorHtmlReprMixin, Summary, four_digits
from muhat._validation import (
    as_frame,
    check_range,
    check_scale,
    checked_masses,
    checked_sample,
    checked_weights,
    is_dask,
)
from muhat.data import (
    ArraySource,
    DaskSource,
    ReservoirSample,
    Source,
    StreamSource,
    checked_batch,
    is_empty,
)
from muhat.data._sources import CHUNK_ROWS
from muhat.data._summaries import places_of
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.filters import KME, name_of
from muhat.filters._base import Shrinker
from muhat.gram import (
    Accumulation,
    Approximation,
    BlockGram,
    BlockProblem,
    DenseGram,
    DenseProblem,
    FactorGram,
    FactorProblem,
    FeatureMap,
    PivotedCholesky,
)
from muhat.gram._auto import refine_plan
from muhat.gram._factor import EXACT_TOL, factor_of_sample
from muhat.gram._feature_problem import FeatureProblem, Folds
from muhat.gram._plan import Plan, can_factor, check_batches, plan_in_memory, plan_one_pass
from muhat.gram._problem import Problem, Target, TargetWeights
from muhat.kernels import Kernel, Precomputed
from muhat.selection import Choice, KFold, LeaveOneOut, Rule
from muhat.selection._base import unscored_choice
from muhat.selection._on_factor import ProductProblem, can_choose_on_factor, choose_on_factor

__all__ = ["KernelMean"]

MAX_WEIGHT_RATIO = 1e30
"""Largest weight, and 1/(smallest), whose sums of squares stay in the float range."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A sample's problem and every filter's choice.

    What an estimator, or a comparison, is made from.
    """

    kernel: Kernel
    plan: Plan
    problem: Problem
    choices: list[Choice]
    target: Element | None
    points: Array | None = None
    present: Array | None = None
    """The rows in memory, and which of them have a mass."""
    accumulated: Accumulation | None = None
    """The features and what rows sum up to, where the Gram operator is held by these."""
    drawn: Array | None = None
    """Rows drawn from those that are not in memory."""

    @property
    def features(self) -> FeatureMap | None:
        """The feature map of an approximated Gram operator, else None."""
        if self.accumulated is None:
            return None
        return self.accumulated.features

    @property
    def best(self) -> Choice:
        """The choice to take: the best by the rule that all filters share."""
        return self.choices[0].rule.best(self.problem, self.choices)

    @property
    def mean(self) -> Element:
        """μ̂ itself."""
        return self._element(self.problem.mean_weights)

    @property
    def spread(self) -> tuple[Any, ...]:
        """Whether all rows weigh the same.

        Of features also Σ p_i k(x_i, x_i), and μ̂ in the kernel PCA basis.
        """
        are_equal = self.problem.mass_range[0] == self.problem.mass_range[1]
        if not isinstance(self.problem, FeatureProblem):
            return (are_equal,)
        sums, components = self.problem.sums, self.problem.components
        return are_equal, sums.own / sums.total_mass, components.gamma, components.mean

    def embedding(self, choice: Choice) -> Element:
        """Return the estimate of a choice, as an element of the RKHS."""
        shrunk, rest = self._element(choice.weights(self.problem)), 1 - choice.shrinkage_at_zero
        if self.target is None:
            return shrunk
        return shrunk + rest * (
            self.target if self.features is None else self.features.compatible(self.target)
        )

    def _element(self, weights: Array) -> Element:
        """Return the function with these weights on the rows that take part, or on the features."""
        if self.features is not None:
            return self.features.embedding(weights.astype(self.features.precision))
        assert self.points is not None
        assert self.present is not None
        on_points = np.zeros(len(self.points), self.problem.dtype)
        on_points[self.present] = weights
        return Embedding(self.kernel, self.points, on_points)


def solve(parts: Parts, X: Array, masses: Array, plan: Plan | None = None) -> Solution:
    """Hold the Gram operator of rows in memory as planned, and choose a parameter for each filter.

    X are validated rows, or the Gram matrix of a precomputed kernel; a row of mass zero does not
    take part. Without a plan, one is made.
    """
    present = masses > 0
    n = int(present.sum())
    if not isinstance(parts.kernel, Precomputed):
        check_range(parts.who, X)
    plan = plan or plan_in_memory(parts.gram, parts.kernel, n, X.itemsize)
    if isinstance(plan.gram, Approximation):
        rows, weights = X, masses
        if n < len(X):
            rows, weights = X[present], masses[present]
        source = ArraySource(rows, None if np.ptp(weights) == 0 else weights)
        return solve_source(parts, source, plan, points=X, present=present)
    rules = parts.rules(plan.access, n)
    parts.check_enough(rules, n)
    kernel, points = parts.resolve_kernel(X, present)
    target = parts.target_on(kernel, points.shape[1], points)
    if parts.gram == "auto" and target is None and can_factor(kernel, n):
        on_factor = _solve_on_factor(parts, plan, rules, kernel, points, masses, present)
        if on_factor is not None:
            return on_factor
    problem = _held(plan, kernel, points, masses, present, target)
    choices = _chosen(parts, rules, problem, kernel, points)
    return Solution(kernel, plan, problem, choices, target, points, present)


def _solve_on_factor(
    parts: Parts,
    plan: Plan,
    rules: Sequence[Rule],
    kernel: Kernel,
    points: Array,
    masses: Array,
    present: Array,
) -> Solution | None:
    """Choose on a low-rank factor of K, where one is exact or good enough to choose on.

    None if there is no such factor: K is decomposed then.
    """
    rows, own = points[present], masses[present]
    n, are_equal = len(rows), bool(np.ptp(own) == 0)
    factor = factor_of_sample(kernel, rows)
    missed = float(own @ factor.remainder)
    if missed <= EXACT_TOL * float(own @ kernel.diagonal(rows)):
        gram = FactorGram.from_factor(factor, kernel, rows, None if are_equal else own)
        problem: Problem = FactorProblem(gram)
        reason = (
            f"the Gram matrix of {n} rows has rank {factor.rank} to rounding, so it is stored as a "
            f"low-rank factor, which misses {factor.error:.1g} of its trace"
        )
        plan = replace(plan, gram=PivotedCholesky(EXACT_TOL), reason=reason)
        choices = _chosen(parts, rules, problem, kernel, points)
        return Solution(kernel, plan, problem, choices, None, points, present)
    is_double = points.dtype == np.float64
    is_estimate = parts.best_of  # a comparison looks at all eigenvalues
    has_rules = can_choose_on_factor(rules, parts.filters, n)
    if not (are_equal and is_double and is_estimate and has_rules):
        return None
    product_problem = ProductProblem(DenseGram.from_sample(kernel, rows))
    filters = _bounded_filters(parts, product_problem, kernel, points)
    found = choose_on_factor(product_problem, cast(LeaveOneOut, rules[0]), filters, factor)
    if found is None:
        return None
    reason = (
        f"{plan.reason}, but none was needed: λ is chosen on a low-rank factor of {factor.rank} "
        f"pivots, which misses {factor.error:.1g} of the trace and changes the gain by about "
        f"{found.error:.1g} of its standard error; weights are exact, computed by "
        f"{product_problem.lanczos.steps} products with the matrix"
    )
    plan = replace(plan, reason=reason)
    return Solution(kernel, plan, product_problem, found.choices, None, points, present)


def solve_source(
    parts: Parts,
    source: Source,
    plan: Plan | None = None,
    points: Array | None = None,
    present: Array | None = None,
) -> Solution:
    """Sum up features of rows that can be read again, and choose each filter's parameter.

    Without a plan, rows that turn out so few that all were drawn in the first pass are held in
    memory instead. ``points`` are all rows, where they are in memory, for a target of weights on
    them; those ``present`` have a mass.
    """
    approximation = (plan_one_pass(parts.gram) if plan is None else plan).gram
    assert isinstance(approximation, Approximation)
    drawn = source.total(partial(ReservoirSample.from_batch, size=approximation.rows_to_learn_from))
    check_range(parts.who, drawn.rows)
    if plan is None:
        plan = plan_in_memory(parts.gram, parts.kernel, drawn.count, drawn.rows.itemsize)
        if plan.gram == "dense":
            return solve(parts, drawn.rows, np.broadcast_to(1 / drawn.count, drawn.count))
    assert isinstance(plan.gram, Approximation)
    rules = parts.rules(plan.access, drawn.count)
    parts.check_enough(rules, drawn.count)
    empty = Accumulation.from_rows(parts.kernel, plan.gram, folds_of_rules(rules), drawn.rows)
    if parts.gram == "auto":
        fitted = refine_plan(plan, empty, drawn, source, shrinks=parts.shrinks)
        if fitted.plan.gram == "dense":
            return _solve_dense(parts, fitted.plan, source, drawn.rows, points, present)
        plan, empty = fitted.plan, fitted.accumulation
    accumulated = empty.add_source(source, drawn)
    kernel = accumulated.features.kernel
    target = parts.target_on(kernel, accumulated.features.dimension, points)
    problem = accumulated.problem(source, target, target_weights(target, points, present))
    choices = _chosen(parts, rules, problem, kernel, drawn.rows)
    return Solution(
        kernel, plan, problem, choices, target, accumulated=accumulated, drawn=drawn.rows
    )


def _solve_dense(
    parts: Parts,
    plan: Plan,
    source: Source,
    drawn: Array,
    points: Array | None,
    present: Array | None,
) -> Solution:
    """Hold the Gram matrix of rows after all, which are in memory or were all drawn."""
    if points is None or present is None:
        points, present = drawn, np.ones(len(drawn), bool)
    weights = None
    if isinstance(source, ArraySource):
        weights = source.weights
    masses = np.zeros(len(points))
    masses[present] = 1.0
    if weights is not None:
        masses[present] = weights
    return solve(parts, points, masses / masses.sum(), plan)


def folds_of_rules(rules: Sequence[Rule]) -> Folds:
    """Return how rows are to be split as they are summed up, so that the rules can choose."""
    rule = next((rule for rule in rules if isinstance(rule, KFold)), None)
    if rule is None:
        return Folds()
    return Folds(rule.n_splits, rule.random_state)


def target_weights(
    target: Element | None, points: Array | None, present: Array | None
) -> TargetWeights | None:
    """Return the weights that a target has on the sample's own rows, of those that have a mass."""
    if not isinstance(target, Embedding) or points is None or present is None:
        return None
    places, tau = places_of(target.points, points), np.zeros(len(points))
    tau[places[places >= 0]] = target.weights[places >= 0]
    return TargetWeights(
        tau[present], float(target.weights.sum()) if (target.weights >= 0).all() else None
    )


def _held(
    plan: Plan, kernel: Kernel, rows: Array, masses: Array, present: Array, target: Element | None
) -> Problem:
    """Return the problem of points in memory."""
    points, own = rows[present], masses[present]
    weights, on_sample = None if np.ptp(own) == 0 else own, target_weights(target, rows, present)
    aim = None
    if target is not None:
        aim = Target(target(points), target.squared_norm(), on_sample)
    if plan.gram == "blocks":
        return BlockProblem(BlockGram.from_sample(kernel, points, weights), aim)
    problem = DenseProblem(DenseGram.from_sample(kernel, points, weights), aim)
    if not kernel.positive_semidefinite:
        problem.spectrum  # noqa: B018 — refuses an indefinite matrix, which no filter is made for
    return problem


def _chosen(
    parts: Parts, rules: Sequence[Rule], problem: Problem, kernel: Kernel, rows: Array
) -> list[Choice]:
    """Return the choice for each filter.

    One that has nothing to choose needs no score of too few rows.
    """
    filters = _bounded_filters(parts, problem, kernel, rows)
    if parts.has_choice or problem.n >= rules[0].least_points:
        return choices_by(rules, problem, filters)
    return [unscored_choice(rules[0], filters[0])]


def _bounded_filters(parts: Parts, problem: Problem, kernel: Kernel, rows: Array) -> list[Shrinker]:
    """Return the filters for the kernel's largest value; raise MuhatError for one out of range."""
    check_scale(type(kernel).__name__, problem.largest_value, problem.dtype, rows)
    return [each.bounded_by(problem.kappa2(kernel.bound)) for each in parts.filters]


def warn_of_open_end(choice: Choice) -> None:
    """Warn of a choice at the end of a grid that was too dear to widen."""
    if choice.stopped_at_grid_end:
        place = (
            f"{choice.parameter:.3g} is at the end of its grid, which goes from "
            f"{choice.grid[0]:.3g} to {choice.grid[-1]:.3g}"
        )
        advice = f"use a wider grid, as in selection={type(choice.rule).__name__}(grid=[...])"
        warnings.warn(
            f"{choice.filter!r}: the best parameter {place}; {advice}.", UserWarning, stacklevel=4
        )


def _takes_batches(estimator: Any) -> bool:
    """Whether an estimator's rows may come in batches; raise MuhatError that says why not."""
    check_batches(as_gram(estimator.gram), as_kernel(estimator.kernel), type(estimator).__name__)
    return True


class KernelMean(HasKernel, HasRadius, EstimatorHtmlReprMixin, BaseEstimator):
    """Estimate the kernel mean of a sample, with shrinkage if leave-one-out shows a gain.

    The plain average μ̂ = (1/n) Σ k(x_i, ·) is shrunk towards a target f*, to
    μ_λ = f* + s_λ(Ĉ)(μ̂ − f*). The filter s_λ multiplies each component in the basis of kernel PCA,
    and its parameter λ is chosen from the data.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel; with ``'precomputed'``, X is a Gram matrix. The default bandwidth is the median
        distance between rows.
    filter : str, Shrinker or list of these, default='auto'
        ``'kme'``, ``'s-kmse'``, ``'f-kmse'`` (or ``'tikhonov'``), ``'iterated-tikhonov'``,
        ``'landweber'``, ``'nu-method'`` (or ``'accelerated-landweber'``), ``'showalter'``,
        ``'tsvd'``, ``'componentwise'``, or an object. From a list, the best is chosen. ``'auto'``
        is F-KMSE, or the plain average if no λ gains, chosen by
        ``LeaveOneOut(bias_factor="auto")`` (docs/selection.md).
    selection : str or Rule, default='loo'
        How the filter's parameter is chosen: ``'loo'`` (exact leave-one-out), ``'gcv'``,
        ``'kfold'``, ``'rate'``, or an object, such as ``Fixed(0.1)`` or ``LeaveOneOut(grid=[0.1,
        1])``. If a rule cannot choose for a filter, or would need a refit for each of many rows,
        another rule is used, and ``rule_`` names it.
    gram : str, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is stored. ``'dense'``: as a matrix. ``'blocks'``: not at all; exact
        products with it need memory proportional to n. ``Nystrom(500)`` or
        ``RandomFeatures(1000)`` (or 'nystrom', 'random-features'): approximated by features of each
        row, for any number of rows. ``'auto'`` is dense up to 5000 rows that fit in memory, with a
        low-rank factor of K if that is accurate enough. Beyond, it uses landmarks whose error is
        below a tenth of the standard error of the plain average (docs/scale.md). ``gram_reason_``
        says what was chosen, why, and its cost.
    target : Embedding or array of shape (n,), default=None
        The target f*, as an element of the RKHS or as weights on the sample; by default zero.

    Attributes
    ----------
    weights_ : array of shape (n,) or (m,)
        β, the weights of the estimate on the rows, or on the m landmarks or features.
    embedding_ : Embedding or FeatureEmbedding
        The estimate: a function that can be evaluated, added, and compared by its distance.
    filter_, rule_ : Shrinker and Rule
        The chosen filter, and the rule that chose its parameter.
    choice_, choices_ : Choice and list of Choice
        The chosen parameter, with the grid and its scores; and the same for every filter tried.
    kernel_ : Kernel
        The kernel, with its bandwidth as a number.
    eigenvalues_ : array of shape (n,) or (r,)
        The eigenvalues of K/n, ascending; None if they were not computed. ``gram="dense"`` always
        computes them.
    gram_, gram_reason_ : str or Approximation, and str
        How the Gram matrix was stored, and why.
    features_ : FeatureMap
        The features of an approximated Gram matrix; otherwise None.
    approximation_error_ : float
        The error of the approximated mean, estimated on 2000 rows: in the RKHS for Nyström, the
        root mean square error of values for random features; zero if the mean is exact.
    n_samples_seen_, n_features_in_ : int
        The number of rows and of features.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features, if X had any.

    See Also
    --------
    StackedMean : A weighted average of many estimates.
    KernelMeans : Means of many groups at once.
    compare : All filters side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> mu = KernelMean(filter="f-kmse").fit(X)
    >>> mu.weights_.shape
    (100,)
    >>> bool(mu.choice_.score < KernelMean(filter="kme").fit(X).choice_.score)
    True
    """

    kernel_: Kernel
    gram_: str | Approximation
    gram_reason_: str
    choices_: list[Choice]
    choice_: Choice
    filter_: Shrinker
    rule_: Rule
    n_samples_seen_: int
    weights_: Array
    approximation_error_: float
    eigenvalues_: Array | None

    embedding_: Any
    _stream: _Stream | None

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        filter: Any = "auto",
        selection: Any = "loo",
        gram: Any = "auto",
        target: Any = None,
    ) -> None:
        self.kernel = kernel
        self.filter = filter
        self.selection = selection
        self.gram = gram
        self.target = target

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the kernel mean of a sample; y is ignored.

        Parameters
        ----------
        X : array or data frame of shape (n, d), also of dask
            The sample, or its Gram matrix if the kernel is precomputed. Dask rows stay on the
            workers; only sums, and a random sample of rows to learn features from, are sent to this
            process.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, not negative; equal by default. Rows of weight zero are ignored.
            The bandwidth depends on the other rows, but not on their weights.
        """
        parts = self._parts()
        self._stream = None
        if is_dask(X):
            return self._fit_dask(parts, X, sample_weight)
        rows = checked_sample(self, X, reset=True)
        masses = checked_masses(parts.who, sample_weight, len(rows))
        return self._keep(solve(parts, rows, masses))

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Estimate the kernel mean of any number of rows, read in batches.

        If a batch of an iterator raises an error, the rows before it are kept.

        Parameters
        ----------
        batches : iterable of arrays, data frames or pyarrow tables of shape (rows, d)
            A list, or ``muhat.open_batches("big.parquet")``, is read three times: to draw the rows
            for landmarks and bandwidth, to sum, and to leave rows out. An iterator is read once, as
            by ``partial_fit``; its first few thousand rows form one batch.
        """
        parts = self._parts()
        parts.check_batches(rows_again=not isinstance(batches, Iterator))
        if (
            hasattr(batches, "shape")
            or isinstance(batches, str | PathLike)
            or not isinstance(batches, Iterable)
        ):
            needed = "batches must be an iterable of arrays or data frames"
            got = f"a {type(batches).__name__}"
            advice = "use fit for an array, and muhat.open_batches for a path"
            raise MuhatError("KernelMean.fit_batches", needed, got, advice)
        self._stream = None
        if isinstance(batches, Iterator):
            return self._fit_iterator(batches)
        self._learn_names(batches)
        return self._keep(solve_source(parts, StreamSource(batches)))

    @available_if(_takes_batches)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sample; only sums of their features are kept.

        y is ignored.

        The first call after a ``fit``, which is forgotten, resolves the arguments, learns kernel
        and features from its rows, and measures ``approximation_error_`` on them: give the
        bandwidth as a number, and the landmarks as an array, where these should not depend on which
        rows come first. While there are fewer rows than k-fold takes, or one where the bandwidth is
        fitted, they are kept, fitted from together, and averaged without shrinkage. Rows are read
        once, so k-fold stands in for leave-one-out. Folds are assigned by a hash of each row, and
        equal rows of a call in turn. S-KMSE chooses from parameters around the best one for equal
        weights, whatever the weights are.

        Parameters
        ----------
        X : array or data frame of shape (rows, d)
            More rows.
        sample_weight : array of shape (rows,), default=None
            Their weights, not negative, in the same unit in all calls; one each by default.
        """
        stream: _Stream | None = getattr(self, "_stream", None)
        before = stream or _Stream.from_parts(self._parts())
        if stream is not None and getattr(X, "shape", (1,))[0] == 0:
            return self
        X = checked_sample(self, X, reset=stream is None)
        if (
            stream is not None
            and np.shape(sample_weight) == (len(X),)
            and not np.any(sample_weight)
        ):
            return self  # rows without mass do not take part
        weights = None
        if sample_weight is not None:
            weights = checked_weights("KernelMean", sample_weight, len(X))
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
            if not 1 / MAX_WEIGHT_RATIO < weights.min() <= weights.max() < MAX_WEIGHT_RATIO:
                needed = (
                    f"weights must be zero, or between {1 / MAX_WEIGHT_RATIO:g} and "
                    f"{MAX_WEIGHT_RATIO:g}"
                )
                raise MuhatError(
                    "KernelMean.partial_fit", needed, f"{weights.min():g} to {weights.max():g}"
                )
        return self._continue(before.add(X, weights))

    def merge(self, other: KernelMean) -> Self:
        """Add the rows that another estimator has seen by ``partial_fit``; the other is unchanged.

        Both must have the same kernel and features.
        """
        mine, its = (getattr(each, "_stream", None) for each in (self, other))
        if mine is None or its is None or mine.accumulated is None or its.accumulated is None:
            needed = "both estimators must be fitted by partial_fit"
            got = "one that was not, or with too few rows"
            raise MuhatError("KernelMean.merge", needed, got, "call partial_fit on both")
        return self._continue(replace(mine, accumulated=mine.accumulated + its.accumulated))

    def score_samples(self, X: Any) -> Array:
        """Return the estimate's values μ(x), of shape (m,), at new points X of shape (m, d).

        For a precomputed kernel, X is the matrix k(x, x_i) of shape (m, n) to the sample.
        """
        check_is_fitted(self, "embedding_")
        return self._values(checked_sample(self, X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance ‖k(x, ·) − μ‖² of new points to the estimate.

        Larger scores are better.

        Use it to compare filters and their parameters, not kernels or bandwidths: the score tends
        to its maximum, 0, as σ → ∞, so a grid search would always choose the largest bandwidth.
        Choose the bandwidth by the purpose of the mean, such as the power of a test or the loss of
        a prediction, or keep the default, the median rule (docs/selection.md).

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) to the sample. This matrix
            does not contain k(x, x), so the mean of k(x, x) is then left out of the score. It is a
            constant, and does not change comparisons.
        """
        check_is_fitted(self, "embedding_")
        X = checked_sample(self, X, reset=False)
        own = 0.0
        if not isinstance(self.kernel_, Precomputed):
            own = float(self.kernel_.diagonal(X).mean())
        return float(2 * self._values(X).mean() - self.embedding_.squared_norm() - own)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        if not hasattr(self, "choice_"):
            return text
        parameter = ""
        if self.choice_.parameter is not None:
            parameter = f" at {self.choice_.parameter:.4g}"
        moved = f"{100 * self.choice_.strength:.3g} % shrunk"
        how = ""
        if self.features_ is not None:
            how = f" by {self.features_.size} features"
        return (
            f"{text} fitted to {self.n_samples_seen_} points{how}: "
            f"{self.filter_!r}{parameter}, {moved}"
        )

    def _summary(self) -> Summary:
        kernel = four_digits(repr(self.kernel_))
        sentence = (
            f"{four_digits(repr(self.filter_))} on {self.n_samples_seen_:,} rows with {kernel}; "
            f"{self.gram_reason_}."
        )
        rows = []
        for each in self.choices_:
            parameter, gain = four_digits(each.parameter), four_digits(float(each.gain))
            rows.append((name_of(each.filter), parameter, gain, f"{100 * each.strength:.3g} %"))
        return Summary(sentence, ("filter", "λ or t", "gain over KME", "shrunk"), rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        return tags

    def _parts(self) -> Parts:
        """Resolve and check every argument."""
        return Parts.from_arguments("KernelMean", **self.get_params(deep=False))

    def _fit_dask(self, parts: Parts, X: Any, sample_weight: Any) -> Self:
        """Fit to a dask array or data frame, whose rows stay where they are."""
        parts.check_batches(rows_again=True)
        if sample_weight is not None:
            needed = "weights are not supported for dask data"
            advice = "repeat rows, or load the rows and fit with weights in memory"
            raise MuhatError(parts.who, needed, "sample_weight", advice)
        source = DaskSource.from_collection(X)
        checked_sample(self, source.example, reset=True)  # learns the names of the features
        return self._keep(solve_source(parts, source))

    def _fit_iterator(self, batches: Iterator[Any]) -> Self:
        """Fit to an iterator in its one pass; whatever stops it, the rows before are kept."""
        stream = _Stream.from_parts(self._parts())
        first = self._learn_names(batches)
        rows = iter(StreamSource(chain([first], batches)))
        try:
            for batch in rows:
                try:
                    stream = stream.add(batch.X)
                except ValueError:
                    if (
                        len(batch.X) < CHUNK_ROWS
                    ):  # a stream that yields so few is at its end, or was cut short
                        next(rows, None)  # raises what cut it short
                    raise
        except BaseException as problem:
            if stream.accumulated is not None:
                self._continue(stream)
                problem.add_note(
                    f"The {self.n_samples_seen_} rows before the error are kept. Continue with "
                    "partial_fit."
                )
            raise
        return self._continue(stream)

    def _learn_names(self, batches: Iterable[Any]) -> Any:
        """Return the first batch, after learning the names of the features from it.

        A file is not left open.
        """
        remaining = iter(batches)
        first = next((frame for frame in map(as_frame, remaining) if not is_empty(frame)), None)
        if first is None:
            raise MuhatError("batches", "at least one batch is needed", "none")
        if remaining is not batches and hasattr(remaining, "close"):
            remaining.close()
        checked_batch(first, 0)
        checked_sample(self, first, reset=True)
        return first

    def _continue(self, stream: _Stream) -> Self:
        """Choose by the rows so far, and keep what more rows can be added to."""
        self._keep(stream.solution())
        self._stream = stream
        return self

    def _keep(self, solution: Solution) -> Self:
        """Keep the estimate of the best choice."""
        choice, features = solution.best, solution.features
        warn_of_open_end(choice)
        self.kernel_ = solution.kernel
        self.gram_ = solution.plan.gram
        self.gram_reason_ = solution.plan.reason
        self.choices_, self.choice_ = solution.choices, choice
        self.filter_ = choice.filter
        self.rule_ = choice.rule
        self.n_samples_seen_ = solution.problem.n
        self.embedding_ = solution.embedding(choice)
        self._mean = solution.mean
        self._spread = solution.spread
        self.weights_ = self.embedding_.weights
        if features is not None and solution.target is not None:
            self.weights_ = features.embedding(
                choice.weights(solution.problem).astype(features.precision)
            ).weights
        elif solution.points is not None:
            self.weights_ = self.weights_[: len(solution.points)]
        self.features_ = features
        self.approximation_error_ = 0.0
        if solution.accumulated is not None:
            self.approximation_error_ = solution.accumulated.error
        known = vars(solution.problem).get("spectrum")
        self.eigenvalues_ = None
        if isinstance(solution.problem, FactorProblem):
            self.eigenvalues_ = solution.problem.eigenvalues
        elif known is not None:
            self.eigenvalues_ = known.gamma
        return self

    def _values(self, X: Array) -> Array:
        if isinstance(self.kernel_, Precomputed):
            return X @ self.embedding_.weights
        return self.embedding_(X)


@dataclass(frozen=True, eq=False)
class _Stream:
    """The state of a fit to rows that are read once.

    It has the arguments, resolved at the first row, and what the rows so far sum up to.

    Until there are as many as the rule takes, the rows themselves are kept.
    """

    parts: Parts
    plan: Plan
    rules: list[Rule]
    accumulated: Accumulation | None = None
    first: tuple[tuple[Array, Array | None], ...] = ()

    @classmethod
    def from_parts(cls, parts: Parts) -> _Stream:
        """Return a stream before its first row, or refuse what cannot be fitted in one pass."""
        parts.check_batches(rows_again=False)
        plan = plan_one_pass(parts.gram)
        return cls(parts, plan, parts.rules(plan.access))

    def add(self, X: Array, weights: Array | None = None) -> _Stream:
        """Return the stream with these rows too."""
        if self.accumulated is not None:
            X = X.astype(self.accumulated.features.dtype, copy=False)
            if not self.first:
                return replace(self, accumulated=self.accumulated.add_rows(X, weights))
        some = (*self.first, (X, weights))
        rows = np.concatenate([each for each, _ in some])
        assert isinstance(self.plan.gram, Approximation)
        accumulated = Accumulation.from_rows(
            self.parts.kernel, self.plan.gram, folds_of_rules(self.rules), rows
        )
        for each in some:
            accumulated = accumulated.add_rows(*each)
        assert accumulated.sums is not None
        in_folds = accumulated.folds.n_splits == 1 or np.count_nonzero(accumulated.sums.count) > 1
        is_learnt = len(rows) > 1 or accumulated.features.kernel == self.parts.kernel
        enough = (
            in_folds and is_learnt and len(rows) >= max(rule.least_points for rule in self.rules)
        )
        return replace(self, accumulated=accumulated, first=() if enough else some)

    def solution(self) -> Solution:
        """Choose by the rows so far; by too few of them, without shrinkage."""
        assert self.accumulated is not None
        kernel = self.accumulated.features.kernel
        target = self.parts.target_on(kernel, self.accumulated.features.dimension, None)
        problem = self.accumulated.problem(None, target)
        if self.first:
            choices = [unscored_choice(self.rules[0], KME())]
        else:
            choices = _chosen(self.parts, self.rules, problem, kernel, np.ones(1))
        return Solution(kernel, self.plan, problem, choices, target, accumulated=self.accumulated)
