"""Fitting to rows that come in batches: sums over them, in as many passes as they allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from muhat._accumulation import Accumulation, drawn_for
from muhat._arrays import Array
from muhat._messages import refusal
from muhat._targets import as_target
from muhat._validation import as_frame, checked_sample, checked_weights
from muhat.data import ROWS, DaskSource, Source, StreamSource, checked_batch
from muhat.filters import Shrinker, as_filter
from muhat.gram import Approximation, FeatureMap, Problem, ProductProblem
from muhat.gram._plan import plan_for_stream
from muhat.kernels import Kernel, Precomputed, as_kernel
from muhat.selection import Choice, Rule, as_rule, every_filter
from muhat.selection._by_products import is_smooth

LARGE = 1e30
"""Weights up to which, and down to one over which, sums of their squares stay in the range of a float."""


def _takes_batches(estimator: InBatches) -> bool:
    """Tell that rows may come in batches, or refuse: they can where the Gram matrix is held by features."""
    if isinstance(as_kernel(estimator.kernel), Precomputed):
        needed = "rows that come in batches need a kernel of points"
        raise ValueError(refusal("KernelMean", needed, "a precomputed one"))
    return bool(plan_for_stream(estimator.gram))


class InBatches:
    """The part of ``KernelMean`` that fits by features, to rows that need not be held."""

    kernel: Any
    filter: Any
    selection: Any
    gram: Any
    target: Any
    n_features_in_: int
    kernel_: Kernel
    gram_: str | Approximation
    eigenvalues_: Array | None
    features_: FeatureMap | None
    embedding_: Any
    weights_: Array
    choice_: Choice
    _accumulated: Accumulation | None

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Estimate the kernel mean of rows that come in batches, of any number.

        Parameters
        ----------
        batches : iterable of arrays, data frames or pyarrow tables of shape (rows, d)
            What can be iterated anew, such as a list or ``muhat.data.open_batches("big.parquet")``, is passed over
            three times: to draw landmarks and bandwidth from all rows, to sum up, and to leave rows out. An iterator,
            which can be passed over once, is given to ``partial_fit`` batch by batch.

        Returns
        -------
        self : KernelMean
            The fitted estimator. If a batch of an iterator cannot be taken, what got before it is kept.
        """
        _takes_batches(self)
        if hasattr(batches, "shape") or isinstance(batches, str | PathLike):
            needed, got = "batches must be an iterable of arrays or data frames", f"a {type(batches).__name__}"
            advice = "give an array to fit, and a path to muhat.data.open_batches"
            raise ValueError(refusal("KernelMean.fit_batches", needed, got, advice))
        self._accumulated = None
        remaining = iter(batches)
        first = as_frame(next(remaining, None))
        if first is None:
            raise ValueError(refusal("batches", "at least one batch is needed", "none"))
        checked_batch(first, 0)
        checked_sample(self, first, reset=True)  # learns the names of the features
        if isinstance(batches, Iterator):
            return self._fit_once(chain([first], remaining))
        approximation = self._approximation()
        return self._fit_source(StreamSource(batches), approximation, as_rule(self.selection))

    @available_if(_takes_batches)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sample, which is not held: only what its features sum up to is.

        The first call after a ``fit``, which is forgotten, settles selection, kernel and features on its rows, and
        measures ``approximation_error_`` on them: give the bandwidth as a number, and the landmarks as an array, where
        these should not depend on which rows come first. As rows are seen once, leave-one-out becomes k-fold, the folds
        being dealt out by a hash of each row, equal rows of a call in turn; and S-KMSE chooses from parameters around
        the best one for equal weights, whatever the weights are.

        Parameters
        ----------
        X : array or data frame of shape (rows, d)
            More rows.
        y : None
            Ignored.
        sample_weight : array of shape (rows,), default=None
            Their weights, not negative, in the same unit in all calls; one each by default.

        Returns
        -------
        self : KernelMean
            The estimator, fitted to all rows so far.
        """
        before: Accumulation | None = getattr(self, "_accumulated", None)
        X = checked_sample(self, X, reset=before is None)
        if before is not None:
            X = X.astype(before.features.dtype, copy=False)
            if sample_weight is not None and not np.any(sample_weight):
                return self  # rows without mass do not take part
        weights = None if sample_weight is None else checked_weights(self, sample_weight, len(X))
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
            if not 1 / LARGE < weights.min() <= weights.max() < LARGE:
                needed = f"weights must be between {1 / LARGE:g} and {LARGE:g}, or zero, to be added up"
                raise ValueError(refusal("KernelMean.partial_fit", needed, f"{weights.min():g} to {weights.max():g}"))
        return self._select((before or self._begun(X)).with_rows(X, weights))

    def merge(self, other: InBatches) -> Self:
        """Add the rows that another estimator has seen by ``partial_fit``, with the same kernel and features.

        Parameters
        ----------
        other : KernelMean
            The other one, which stays as it is.

        Returns
        -------
        self : KernelMean
            The estimator, fitted to the rows of both.
        """
        mine, its = (getattr(each, "_accumulated", None) for each in (self, other))
        if mine is None or its is None:
            needed, got = "both estimators must be fitted by partial_fit", "one that was not"
            raise ValueError(refusal("KernelMean.merge", needed, got, "fit both so"))
        return self._select(mine + its)

    def _check_enough(self, rule: Rule, n: int) -> None:
        if n < rule.least_points:
            needed = f"selection by {type(rule).__name__} needs at least {rule.least_points} rows"
            advice = "give more rows; selection=Fixed(...) and a bandwidth that is a number need one row only"
            raise ValueError(refusal(type(self).__name__, needed, f"n_samples = {n}", advice))

    def _approximation(self) -> Approximation:
        """Return the features to hold the Gram matrix of batches by."""
        planned = plan_for_stream(self.gram)
        self.gram_, self.gram_reason_ = planned.gram, planned.reason
        return planned.gram

    def _settled(self, approximation: Approximation, rule: Rule, rows: Array) -> Accumulation:
        """Settle kernel and features on some rows, and return an accumulation without any."""
        begun = Accumulation.begun(as_kernel(self.kernel), approximation, rule, rows)
        self.kernel_, self.features_, self.approximation_error_ = begun.features.kernel, begun.features, begun.error
        return begun

    def _fit_source(
        self, source: Source, approximation: Approximation, rule: Rule, points: Array | None = None
    ) -> Self:
        """Fit in passes over the rows: to learn features from some, to sum up, and, if need be, to leave rows out."""
        drawn = drawn_for(approximation, source)
        self._check_enough(rule, drawn.count)
        accumulated = self._settled(approximation, rule, drawn.rows).with_source(source, drawn)
        return self._choose_by_features(accumulated, source, points)

    def _fit_dask(self, X: Any, sample_weight: Any) -> Self:
        """Fit to a dask array or data frame, whose rows stay where they are."""
        if sample_weight is not None:
            needed, advice = "rows on a cluster all weigh the same", "repeat rows, or fit with weights in memory"
            raise ValueError(refusal(type(self).__name__, needed, "sample_weight", advice))
        approximation = self._approximation()
        source = DaskSource.from_collection(X)
        checked_sample(self, source.example, reset=True)  # learns the names of the features
        self._accumulated = None
        return self._fit_source(source, approximation, as_rule(self.selection))

    def _begun(self, rows: Array) -> Accumulation:
        """Return an accumulation without rows, its features settled on these."""
        rule = as_rule(self.selection).in_one_pass()
        self._check_enough(rule, len(rows))
        return self._settled(self._approximation(), rule, rows)

    def _fit_once(self, batches: Iterator[Any]) -> Self:
        """Fit to an iterator in its one pass; whatever stops it, what got before is kept."""
        accumulated, stream = None, iter(StreamSource(batches))
        try:
            for batch in stream:
                try:
                    accumulated = (accumulated or self._begun(batch.X)).with_rows(batch.X)
                except ValueError:
                    if len(batch.X) < ROWS:  # a stream that yields so few is at its end, or was cut short
                        next(stream, None)  # raises what cut it short
                    raise
        except BaseException as problem:
            if accumulated is not None:
                self._select(accumulated)
                problem.add_note(f"The {self.n_samples_seen_} rows before it are kept: go on with partial_fit.")
            raise
        assert accumulated is not None  # a stream without batches raises
        return self._select(accumulated)

    def _select(self, accumulated: Accumulation) -> Self:
        """Choose by what has been accumulated, and keep it."""
        self._choose_by_features(accumulated)
        self._accumulated = accumulated
        return self

    def _choose_by_features(
        self, accumulated: Accumulation, source: Source | None = None, points: Array | None = None
    ) -> Self:
        features = accumulated.features
        target = as_target(self.target, self.kernel_, self.n_features_in_, points)
        problem = accumulated.problem(source, target)
        self._choose(problem, accumulated.rule)
        self.embedding_ = features.embedding(self.choice_.weights(problem).astype(features.dtype))
        self.weights_ = self.embedding_.weights
        if target is not None:
            rest = 1 - self.choice_.shrinkage_at_zero
            self.embedding_ = self.embedding_ + rest * features.of_same_space(target)
        self.eigenvalues_ = problem.spectrum.gamma
        return self

    def _choose(self, problem: Problem, rule: Rule) -> None:
        filters = self._filters(rule, problem)
        if isinstance(problem, ProductProblem):
            rule = rule.on_products(filters, problem.n)
        self.choices_ = rule.choices(problem, filters)
        self.choice_ = rule.best(problem, self.choices_)
        self.filter_, self.rule_ = self.choice_.filter, rule
        self.n_samples_seen_ = problem.n

    def _filters(self, rule: Rule, problem: Problem) -> list[Shrinker]:
        automatic = isinstance(self.filter, str) and self.filter == "auto"
        filters = every_filter(problem.n, rule) if automatic else [as_filter(self.filter)]
        if automatic and isinstance(problem, ProductProblem):
            filters = [filter for filter in filters if is_smooth(filter)]
        return [filter.bounded_by(problem.kappa2(self.kernel_.bound)) for filter in filters]
