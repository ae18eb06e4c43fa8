"""How a sample is held to be compared on: its Gram matrix as it is, or by features, whatever its rows come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from muhat._accumulation import Accumulation, drawn_for
from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import checked_sample, is_dask
from muhat.data import ArraySource, ColumnMoments, ReservoirSample, Source, StreamSource, TransformedSource
from muhat.datasets import standardized
from muhat.gram import GRAMS_BY_NAME, Approximation, DenseGram, FeatureProblem, Problem, SampleProblem
from muhat.gram._plan import FeaturePlan, as_gram, plan_for_rows, plan_for_stream
from muhat.kernels import Kernel
from muhat.mean import KernelMean
from muhat.selection import LeaveOneOut, Rule


@dataclass(frozen=True)
class Holding:
    """How a Gram matrix is held.

    Parameters
    ----------
    gram, reason : str
        The name of the way, and why it was taken.
    features : int, default=0
        The number of features, where it is held by these.
    error, error_in : float and str, default=0.0 and ''
        What their mean misses, and what that is measured in.
    kept : float, default=1.0
        The share of Σ k(x_i, x_i) that they keep.
    """

    gram: str
    reason: str
    features: int = 0
    error: float = 0.0
    error_in: str = ""
    kept: float = 1.0

    @classmethod
    def by_features(cls, plan: FeaturePlan, problem: FeatureProblem, error: float) -> Holding:
        """Return it for features."""
        names = {kind: name for name, kind in GRAMS_BY_NAME.items()}
        name, features, own = (
            names.get(type(plan.gram), type(plan.gram).__name__),
            problem.features,
            problem.summary.own,
        )
        kept = float(problem.spectrum.trace) * problem.summary.total_mass / own if own else 1.0
        return cls(name, plan.reason, features.size, error, features.error_in, kept)


@dataclass(frozen=True)
class Held:
    """A sample's problem, and how its Gram matrix is held.

    Parameters
    ----------
    problem : Problem
        What filters and rules work on.
    kernel : Kernel
        k, with every parameter a number.
    d : int
        The number of columns.
    how : Holding
        How the Gram matrix is held.
    """

    problem: Problem
    kernel: Kernel
    d: int
    how: Holding


@dataclass(frozen=True)
class Wish:
    """What the problem of a sample is to be.

    Parameters
    ----------
    kernel : Kernel
        The kernel, its bandwidth perhaps to be learnt.
    rule : Rule
        The rule that will choose.
    gram : str or Approximation
        How the Gram matrix is to be held.
    standardize : bool
        Whether features are brought to mean 0 and variance 1.
    """

    kernel: Kernel
    rule: Rule
    gram: Any
    standardize: bool

    def of(self, X: Any) -> Held:
        """Return it for an array, a data frame, or batches that can be iterated anew."""
        if is_dask(X):
            needed, advice = "rows in memory or in batches are needed", "give X.compute(), or files by open_batches"
            raise ValueError(refusal("compare", needed, f"dask's {type(X).__name__}", advice))
        return self._of_batches(X) if are_batches(X) else self._of_array(X)

    def _of_array(self, X: Any) -> Held:
        X = checked_sample(KernelMean(), X, reset=True)
        self._check_enough(len(X))
        plan = plan_for_rows(self.gram, len(X), X.itemsize)
        if isinstance(plan.gram, Approximation):
            source = self._prepared(ArraySource(X))
            return self._by_features(source, FeaturePlan(plan.gram, plan.reason), drawn_for(plan.gram, source))
        return self._dense(standardized(X) if self.standardize else X, plan.reason)

    def _of_batches(self, batches: Iterable[Any]) -> Held:
        if isinstance(batches, Iterator):
            needed, advice = "batches that can be iterated anew are needed", "give a list, or what open_batches returns"
            raise ValueError(refusal("compare", needed, f"a {type(batches).__name__}", advice))
        by_features = plan_for_stream(self.gram, "compare")
        source = self._prepared(StreamSource(batches))
        drawn = drawn_for(by_features.gram, source)
        self._check_enough(drawn.count)
        if as_gram(self.gram) != "auto":
            return self._by_features(source, by_features, drawn)
        plan = plan_for_rows("auto", drawn.count, drawn.rows.itemsize)
        if isinstance(plan.gram, Approximation):
            return self._by_features(source, FeaturePlan(plan.gram, plan.reason), drawn)
        return self._dense(drawn.rows, plan.reason)  # so few that all were drawn, in their order

    def _check_enough(self, n: int) -> None:
        least = max(self.rule.least_points, LeaveOneOut.least_points)
        if n < least:
            raise ValueError(refusal("compare", f"at least {least} rows are needed", f"n_samples = {n}"))

    def _prepared(self, source: Source) -> TransformedSource:
        """Return the rows in float64, which alone tells scores apart that differ by shares of 1/n, standardized."""
        return TransformedSource(
            source, source.total(ColumnMoments.from_batch).standardized if self.standardize else in_double
        )

    def _dense(self, X: Array, reason: str) -> Held:
        kernel = self.kernel.resolve(X)
        return Held(SampleProblem(DenseGram.from_sample(kernel, X)), kernel, X.shape[1], Holding("dense", reason))

    def _by_features(self, source: TransformedSource, plan: FeaturePlan, drawn: ReservoirSample) -> Held:
        gram = plan.gram.changed(source.change, drawn.rows)
        accumulated = Accumulation.begun(self.kernel, gram, self.rule, drawn.rows).with_source(source, drawn)
        problem, features = accumulated.problem(source), accumulated.features
        how = Holding.by_features(plan, problem, accumulated.error)
        return Held(problem, features.kernel, features.dimension, how)


def are_batches(X: Any) -> bool:
    """Whether a sample comes in batches: a file's, or a list of arrays or data frames."""
    if hasattr(X, "shape") or isinstance(X, str):
        return False
    if isinstance(X, list | tuple):
        return bool(X) and len(getattr(X[0], "shape", ())) == 2
    return isinstance(X, Iterable)


in_double = partial(np.asarray, dtype=np.float64)
"""Rows in float64, as they are."""
